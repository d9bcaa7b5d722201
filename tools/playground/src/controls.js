// The controls of a form that hold one value each: text, numbers, choices, bytes and plain JSON.
import { useSignal } from "./view.js";
import { brief, pretty, read, same } from "./json.js";
import { isBase64, isBytes } from "./schema.js";

const placeholder = (own, required) =>
  "default" in own
    ? `default: ${typeof own.default === "string" ? own.default : brief(own.default)}`
    : required
      ? ""
      : "not set";

function Choice({ own, value, set, id, aria, required }) {
  const at = own.enum.findIndex((one) => same(one, value));
  const choose = (event) => set(event.target.value === "" ? undefined : own.enum[event.target.value]);
  const none =
    value === undefined
      ? placeholder(own, required) || "choose…"
      : at < 0
        ? `${brief(value)} (not one of these)`
        : "";
  return html`<select id=${id} ...${aria} value=${at < 0 ? "" : at} onChange=${choose}>
    ${none && html`<option value="">${none}</option>`}
    ${own.enum.map(
      (one, index) => html`<option value=${index}>
        ${typeof one === "string" ? one : brief(one)}</option>`,
    )}
  </select>`;
}

function Truth({ own, value, set, id, aria, required }) {
  if (required) {
    return html`<span class="check"><input type="checkbox" id=${id} ...${aria} checked=${value === true}
            onChange=${(event) => set(event.target.checked)} /><code aria-hidden="true">
            ${String(value)}</code></span>`;
  }
  return html`<${Choice} own=${{ ...own, enum: [true, false] }} ...${{ value, set, id, aria, required }} />`;
}

const NUMBER = /^\s*-?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?\s*$/;
const written = (value) => (value === undefined ? "" : (value?.rawJSON ?? String(value)));

/** What a text says as a number; a text that is none goes on as it is, for the check to name it. */
function numberOf(text) {
  if (text.trim() === "") return undefined;
  if (!NUMBER.test(text)) return text;
  const { value } = read(text.trim());
  return value ?? Number(text);
}

function NumberInput({ own, value, set, id, aria, required }) {
  const local = useSignal("");
  const shown = same(numberOf(local.value), value) ? local.value : written(value);
  const write = (text) => ((local.value = text), set(numberOf(text)));
  const step = (event) => {
    const by = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!by || (value !== undefined && typeof value !== "number")) return;
    event.preventDefault();
    write(String(Number(((value ?? own.default ?? 0) + by * (own.multipleOf ?? 1)).toPrecision(12))));
  };
  return html`<input id=${id} ...${aria} class="mono number"
        inputmode=${own.type === "integer" ? "numeric" : "decimal"} autocomplete="off"
    value=${shown} placeholder=${placeholder(own, required)} onInput=${(event) => write(event.target.value)} onKeyDown=${step} />`;
}

const NATIVE = { date: ["date", /^\d{4}-\d\d-\d\d$/], time: ["time", /^\d\d:\d\d(:\d\d)?$/] };
const HINTS = {
  "date-time": "2026-11-21T15:30:00Z",
  uri: "https://…",
  url: "https://…",
  email: "name@host",
  duration: "PT1H30M",
  uuid: "00000000-0000-…",
};

function Text(props) {
  const { own, value = "", set, id, aria, required } = props;
  const [native, fits] = NATIVE[own.format] ?? [];
  const write = (event) => set(event.target.value);
  const hint = placeholder(own, required) || HINTS[own.format] || "";
  if (isBytes(own)) return html`<${Bytes} ...${props} />`;
  if (native && (value === "" || fits.test(value)))
    return html`<input type=${native} step="1" id=${id} ...${aria} value=${value}
            onInput=${(event) => set(event.target.value || undefined)} />`;
  if (own.format === "date-time") {
    const now = () => set(new Date().toISOString().replace(/\.\d+/, ""));
    return html`<span class="with-button"><input id=${id} ...${aria} class="mono" value=${value}
            placeholder=${hint} onInput=${write} /><button type="button" class="small"
            onClick=${now}>Now</button></span>`;
  }
  const short = own.format || own.pattern || (own.maxLength ?? Infinity) <= 100;
  const shared = {
    id,
    ...aria,
    value,
    placeholder: hint,
    onInput: write,
    spellcheck: "false",
    autocomplete: "off",
  };
  return short
    ? html`<input type=${own.format === "password" ? "password" : "text"}
            inputmode=${{ uri: "url", email: "email" }[own.format]} ...${shared} />`
    : html`<textarea rows="1" ...${shared} />`;
}

/** Bytes: as text, or taken from a file. */
function Bytes({ own, value = "", set, id, aria, label }) {
  const fault = useSignal("");
  const base64 = isBase64(own);
  const choose = async (event) => {
    const [file] = event.target.files;
    if (!file) return;
    try {
      set(
        base64
          ? await asBase64(file, own.format === "base64url")
          : new TextDecoder("utf-8", { fatal: true }).decode(await file.arrayBuffer()),
      );
      fault.value = "";
    } catch {
      fault.value = `${file.name} is not UTF-8 text, and this field takes only that.`;
    }
  };
  return html`<div class="bytes">
    <textarea rows="1" id=${id} ...${aria} class="mono" value=${value}
        placeholder=${base64 ? "base64, or choose a file" : "text, or choose a file"} onInput=${(event) => set(event.target.value)} />
    <input type="file" aria-label="File for ${label}" onChange=${choose} />
    ${fault.value && html`<p class="fault" role="status">${fault.value}</p>`}
  </div>`;
}

function asBase64(file, url) {
  return new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onerror = () => fail(reader.error);
    reader.onload = () => {
      const text = String(reader.result).split(",")[1] ?? "";
      done(url ? text.replace(/\+/g, "-").replace(/\//g, "_") : text);
    };
    reader.readAsDataURL(file);
  });
}

/** Any JSON, as text. A text that is not JSON stays in the box, and the tool is not run with it. */
function JsonBox({ own, value, set, form, id, aria, required }) {
  const local = useSignal({ text: "" });
  const fault = form.draft.boxes.value[id];
  const shown = fault ? fault.text : local.value.value === value ? local.value.text : pretty(value);
  const write = (event) => {
    const text = event.target.value;
    const told = text.trim() ? read(text) : { value: undefined };
    local.value = { text, value: told.value };
    form.draft.setBox(id, told.fault && { ...told.fault, id, text });
    if (!told.fault) set(told.value);
  };
  return html`<textarea rows="1" class="mono" id=${id} ...${aria}
        aria-invalid=${fault ? "true" : aria["aria-invalid"]} spellcheck="false"
      value=${shown}
      placeholder=${placeholder(own, required) || "JSON"} onInput=${write} />
    ${fault && html`<p class="fault" role="status">Line ${fault.line}, column ${fault.column}: ${fault.message}</p>`}`;
}

/** What shows a value of each simple kind. */
export const SCALARS = {
  const: ({ own, value, set, id, aria }) =>
    value !== undefined && !same(value, own.const)
      ? html`<p class="absent"><code>${brief(value)}</code><button type="button" id=${id} class="small"
                onClick=${() => set(own.const)}>Set to ${brief(own.const)}</button></p>`
      : html`<input id=${id} ...${aria} class="mono" readonly
                value=${value === undefined ? "" : brief(own.const)} placeholder="not set: ${brief(own.const)}"
                onFocus=${() => value === undefined && set(own.const)} />`,
  enum: Choice,
  boolean: Truth,
  number: NumberInput,
  string: Text,
  json: JsonBox,
};
