// The result of a run in the views that fit it: as the model reads it, as Markdown, as a table, as a
// tree of its values, and as JSON.
import { useSignal } from "./view.js";
import { brief, isObject, pretty } from "./json.js";
import { Markdown, isMarkdown, jsonOf } from "./markdown.js";
import { Artifact } from "./tree.js";
import { Code, TabPanel, Tabs, dollars, download } from "./ui.js";

/** How many characters, rows, columns and members are drawn at once. */
const MOST_TEXT = 60_000;
const MOST_ROWS = 100;
const MOST_COLUMNS = 40;
const MOST_MEMBERS = 100;

/** @param {{detail: object}} props What the server says of a run that has ended. */
export function Result({ detail }) {
  const chosen = useSignal(null);
  const views = viewsOf(detail);
  const current = chosen.value in views ? chosen.value : Object.keys(views)[0];
  const [, View, props] = views[current];
  const tabs = Object.entries(views).map(([id, [label]]) => [id, label]);
  return html`<section class="result" aria-label="Result">
    <${Tabs} name="result" label="Result" class="sub" tabs=${tabs} current=${current} onSelect=${(id) => (chosen.value = id)} />
    <${TabPanel} name="result" current=${current}>
      <${View} key=${current} result=${detail.result} name=${detail.name} ...${props} />
    </${TabPanel}>
  </section>`;
}

/** The views that fit a result, the best one first. */
function viewsOf({ kind, result }) {
  const { model, value, usage } = result;
  const text = model?.length === 1 ? model[0].text : undefined;
  const json = value !== null && typeof value === "object" ? value : text && jsonOf(text);
  const table = tableOf(json);
  const model_ = { model: [kind === "agent" ? "Answer" : "As the model sees it", AsTheModelSeesIt] };
  const marked = text && isMarkdown(text) && !result.error && { markdown: ["Markdown", Markdown, { text }] };
  return {
    ...(kind === "agent" && marked),
    ...model_,
    ...marked,
    ...(table && { table: ["Table", Table, { table }] }),
    ...(json && typeof json === "object" && { tree: ["Tree", Json, { value: json }] }),
    value: ["As a value", ({ result: { value: whole } }) => html`<${Code} text=${pretty(whole)} label="Value" />`],
    ...(kind === "agent" && usage && { usage: ["Usage", Usage] }),
  };
}

/** What came back; the error stands apart where the model is told something else. */
function AsTheModelSeesIt({ result: { model, error }, name }) {
  const same = model?.length === 1 && model[0].text === error;
  const some = model?.length > 0 || !error;
  return html`
    ${error && !same && html`<p class="verdict bad">${error}</p>`}
    ${some && html`<${Output} blocks=${model ?? []} name=${name} />`}`;
}

/** What the model gets of a call: text, or blocks of text, images and files. */
export function Output({ blocks, name }) {
  const list =
    typeof blocks === "string"
      ? [{ type: "text", text: blocks }]
      : Array.isArray(blocks)
        ? blocks
        : [{ type: "text", text: pretty(blocks) }];
  if (!list.length) return html`<p class="note">Nothing.</p>`;
  return list.map((block) => {
    const mime = block.mime_type ?? block.media_type;
    if (typeof block.text === "string") return html`<${LongText} text=${block.text} label="Result of ${name}" />`;
    if (typeof block.data === "string")
      return html`<${Artifact} item=${{ name: block.filename ?? block.type, mime, data: { encoding: "base64", data: block.data } }} />`;
    return html`<${Code} text=${pretty(block)} label="Result of ${name}" />`;
  });
}

/** The beginning of a text, and more of it on request: a long one would block the page. */
export function LongText({ text, label }) {
  const most = useSignal(MOST_TEXT);
  const left = text.length - most.value;
  const shown = left > 0 ? text.slice(0, most.value) : text;
  return html`<div class="long">
    <pre class="code" tabindex="0" role="group" aria-label=${label}>${shown === "" ? "(empty text)" : shown}</pre>
    ${
      left > 0 &&
      html`<p class="actions wrap note">${left.toLocaleString()} more characters
        <button type="button" class="small" onClick=${() => (most.value += MOST_TEXT)}>Show more</button>
        <button type="button" class="small" onClick=${() => download("result.txt", [text])}>Download</button></p>`
    }
  </div>`;
}

/** A list of objects or of lists as columns and rows; null for other values. */
function tableOf(value) {
  if (!Array.isArray(value) || !value.length) return null;
  const sample = value.slice(0, MOST_ROWS);
  if (sample.every(Array.isArray)) {
    const width = Math.min(MOST_COLUMNS, Math.max(...sample.map((row) => row.length)));
    return width ? { columns: Array.from({ length: width }, (_, index) => index), rows: value } : null;
  }
  if (!sample.every(isObject)) return null;
  const columns = [...new Set(sample.flatMap(Object.keys))].slice(0, MOST_COLUMNS);
  return columns.length ? { columns, rows: value } : null;
}

const cell = (value) =>
  value === undefined ? "" : typeof value === "string" ? value.slice(0, 400) : brief(value, 200);

function Table({ table: { columns, rows } }) {
  const most = useSignal(MOST_ROWS);
  const left = rows.length - most.value;
  return html`<div class="long">
    <div class="table" tabindex="0" role="group" aria-label="Table"><table>
      <thead><tr>${columns.map((name) => html`<th scope="col">${String(name)}</th>`)}</tr></thead>
      <tbody>${rows
        .slice(0, most.value)
        .map((row) => html`<tr>${columns.map((name) => html`<td>${cell(row?.[name])}</td>`)}</tr>`)}</tbody>
    </table></div>
    <p class="actions wrap note">${rows.length.toLocaleString()} ${rows.length === 1 ? "row" : "rows"}
      ${
        left > 0 &&
        html`<button type="button" class="small" onClick=${() => (most.value += MOST_ROWS)}>
          Show ${Math.min(left, MOST_ROWS)} more</button>`
      }</p>
  </div>`;
}

const Json = ({ value }) => html`<div class="code json-tree"><${Members} value=${value} /></div>`;

/** The members of a list or object; those of a member are drawn when it is opened. */
function Members({ value }) {
  const most = useSignal(MOST_MEMBERS);
  const keys = Object.keys(value);
  const left = keys.length - most.value;
  return html`<ul>
    ${keys.slice(0, most.value).map((key) => html`<li key=${key}><${Member} name=${key} value=${value[key]} /></li>`)}
    ${
      left > 0 &&
      html`<li><button type="button" class="small" onClick=${() => (most.value += MOST_MEMBERS)}>
        Show ${Math.min(left, MOST_MEMBERS).toLocaleString()} of ${left.toLocaleString()} more</button></li>`
    }
  </ul>`;
}

function Member({ name, value }) {
  const open = useSignal(false);
  const label = html`<span class="key">${name}</span>: `;
  if (!(Array.isArray(value) || isObject(value)) || !Object.keys(value).length) {
    const kind = typeof value === "string" ? "text" : "atom";
    return html`<p>${label}<span class=${kind}>${brief(value, 2_000)}</span></p>`;
  }
  return html`<details onToggle=${(event) => (open.value = event.currentTarget.open)}>
    <summary>${label}<span class="note">${
      Array.isArray(value) ? `[${value.length}] ` : `{${Object.keys(value).length}} `
    }${open.value ? "" : brief(value, 60)}</span></summary>
    ${open.value && html`<${Members} value=${value} />`}
  </details>`;
}

/** The counts of the run, its cost, and the cost of each agent and model. */
function Usage({ result }) {
  const { breakdown = [], cost, ...counts } = result.usage;
  const rows = [
    ...Object.entries(counts).map(([key, count]) => [key.replaceAll("_", " "), count?.toLocaleString() ?? "unknown"]),
    ["cost", dollars(cost)],
    ...(breakdown.length > 1 ? breakdown : []).map((part) => [`cost of ${part.agent} (${part.model})`, dollars(part.cost)]),
  ];
  return html`<dl class="facts">
    ${rows.map(([key, value]) => [html`<dt>${key}</dt>`, html`<dd>${value}</dd>`])}
  </dl>`;
}
