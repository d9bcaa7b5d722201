// The form of a schema: one field for each value, of every kind that schema.js knows.
import { useSignal } from "./view.js";
import { SCALARS } from "./controls.js";
import { brief, isObject } from "./json.js";
import { blank, limits, shapeOf, typeName, variantName, variantOf } from "./schema.js";
import { Icon, IconButton } from "./ui.js";

const idOf = (path) => `f-${path.map(encodeURIComponent).join("/")}`;
const without = (object, key) => Object.fromEntries(Object.entries(object).filter(([one]) => one !== key));
const CONTROL = "input, select, textarea, button";

/** The whole form. @param {{draft: import("./draft.js").Draft, schema: object}} props */
export function Form({ draft, schema }) {
  const value = draft.value.value;
  if (!isObject(value))
    return html`<p class="note">The arguments are not an object, so there is no form for them.</p>`;
  const { schema: own } = shapeOf(schema, schema);
  const form = { draft, root: schema, faults: draft.faults.value };
  return html`<fieldset class="form" disabled=${Boolean(draft.broken.value)} aria-label="Arguments">
    <${Members} own=${own} value=${value} set=${(next) => draft.setValue(next)} path=${[]} form=${form}
        label="arguments" />
  </fieldset>`;
}

/** Focuses the field of a fault, or the nearest field around it. @param {(string|number)[]} path */
export function focusField(path) {
  for (let length = path.length; length > 0; length--) {
    const found = document.getElementById(idOf(path.slice(0, length)));
    if (!found) continue;
    const target = found.matches(CONTROL) ? found : (found.querySelector(CONTROL) ?? found);
    target.focus();
    found.scrollIntoView({ block: "center" });
    return true;
  }
  return false;
}

/** Whether a value can be shown by the control of its kind; else it is shown as JSON. */
function suits(kind, value) {
  if (value === undefined || kind === "enum" || kind === "const" || kind === "union") return true;
  if (kind === "array" || kind === "tuple") return Array.isArray(value);
  if (kind === "object" || kind === "dict") return isObject(value);
  if (kind === "number")
    return (
      typeof value === "string" || typeof value === "number" || (value !== null && "rawJSON" in Object(value))
    );
  return kind === "json" || typeof value === kind;
}

/**
 * One value with its name, help and faults.
 * @param {{schema: object, value: any, set: (value: any) => void, path: (string|number)[], label: string,
 *   required: boolean, form: object, lead?: any, tools?: any}} props `lead` stands in for the label.
 */
function Field({ schema, value, set, path, label, required, form, lead, tools }) {
  const shape = shapeOf(schema, form.root);
  const kind = suits(shape.kind, value) ? shape.kind : "json";
  const simple = Object.hasOwn(SCALARS, kind);
  const id = idOf(path);
  const faults = faultsAt(form.faults, path, simple);
  const own = shape.schema;
  const told = [own.description && `${id}-help`, faults.length && `${id}-fault`].filter(Boolean).join(" ");
  const isNull = value === null && shape.nullable;
  const empty = value === undefined && !simple;
  const control = {
    shape: { ...shape, kind },
    own,
    value,
    set,
    path,
    form,
    label,
    required,
    id,
    aria: {
      "aria-describedby": told || undefined,
      "aria-invalid": faults.length ? "true" : undefined,
      ...(lead && { "aria-label": label }),
    },
  };
  const name = lead ?? html`<span class="name">${label}</span>`;
  const asNull = () => set(isNull ? blank(withoutNull(shape), form.root) : null);
  const body = isNull
    ? html`<p class="absent"><code>null</code></p>`
    : empty
      ? html`<${Absent} ...${control} />`
      : html`<${Control} ...${control} />`;
  const labelled = simple && !isNull && !lead;
  return html`<div class="field ${simple ? "" : "group"} ${faults.length ? "bad" : ""}"
        id=${simple && !isNull ? undefined : id}
      role=${labelled ? undefined : "group"} aria-label=${labelled ? undefined : label} tabindex=${labelled ? undefined : -1}>
    <div class="field-head">
      ${labelled ? html`<label for=${id}>${name}</label>` : name}
      <span class="type">${typeName(schema, form.root)}</span>
      ${required && html`<span class="required">required</span>`}
      <span class="field-tools">
        ${
          shape.nullable &&
          html`<button type="button" class="tiny" aria-pressed=${isNull}
            aria-label="${label} is null" onClick=${asNull}>null</button>`
        }
        ${
          !required &&
          value !== undefined &&
          html`<button type="button" class="tiny"
            aria-label="Leave out ${label}" onClick=${() => set(undefined)}>leave out</button>`
        }
        ${tools}
      </span>
    </div>
    ${own.description && html`<p class="help" id="${id}-help">${own.description}</p>`}
    ${body}
    ${simple && !isNull && limits(own) && html`<p class="hint">${limits(own)}</p>`}
    ${
      faults.length > 0 &&
      html`<div class="fault" id="${id}-fault">${faults.map(
        (text) => html`<p>
        ${text}</p>`,
      )}</div>`
    }
  </div>`;
}

function faultsAt(faults, path, within) {
  const here = faults.filter(
    (fault) =>
      path.every((step, index) => fault.path[index] === step) &&
      (within || fault.path.length === path.length),
  );
  return here.map((fault) => [...fault.path.slice(path.length), fault.message].join(": "));
}

function withoutNull({ kind, schema, variants }) {
  const base = kind === "union" ? { anyOf: variants } : schema;
  return base.default === null ? without(base, "default") : base;
}

/** A list, object or variant that is not there (yet). */
function Absent({ shape, own, set, label, form, id }) {
  return html`<p class="absent">
    <button type="button" id=${id} class="small" onClick=${() => set(blank(withoutNull(shape), form.root))}
        aria-label="Set ${label}"><${Icon} name="plus" />Set</button>
    ${"default" in own ? html`<span>default: <code>${brief(own.default)}</code></span>` : "not set"}
  </p>`;
}

const Control = (props) => html`<${CONTROLS[props.shape.kind]} ...${props} />`;

const CONTROLS = {
  ...SCALARS,
  object: ({ own, value, set, path, form, label }) =>
    html`<${Members} ...${{ own, value, set, path, form, label }} />`,
  dict: ({ own, value, set, path, form, label }) =>
    html`<${Entries} ...${{ value, set, path, form, label }} keys=${Object.keys(value)}
      schema=${own.additionalProperties} open=${true} />`,
  array: List,
  tuple: List,
  union: Union,
};

/** The fields of an object, and its further keys where it may have some. */
function Members({ own, value, set, path, form, label }) {
  const properties = own.properties ?? {};
  const further = Object.keys(value).filter((key) => !Object.hasOwn(properties, key));
  const open = isObject(own.additionalProperties) || own.additionalProperties === true;
  const put = (key, next) =>
    set(next === undefined ? without(value, key) : ordered({ ...value, [key]: next }, properties));
  const names = Object.keys(properties);
  if (!names.length && !further.length && !open) return html`<p class="note">It has no parameters.</p>`;
  return html`<div class="members">
    ${names.map(
      (
        key,
      ) => html`<${Field} key=${key} schema=${properties[key]} value=${value[key]} set=${(next) => put(key, next)}
      path=${[...path, key]} label=${key} required=${own.required?.includes(key) ?? false} form=${form} />`,
    )}
    ${
      (further.length > 0 || open) &&
      html`<${Entries} value=${value} set=${set} path=${path} form=${form} label=${label} keys=${further}
      schema=${isObject(own.additionalProperties) ? own.additionalProperties : {}} open=${open} />`
    }
  </div>`;
}

/** Keys stand as the schema lists them, whatever was filled in first. */
function ordered(value, properties) {
  const known = Object.keys(properties).filter((key) => key in value);
  return Object.fromEntries(
    [...known, ...Object.keys(value).filter((key) => !Object.hasOwn(properties, key))].map((key) => [
      key,
      value[key],
    ]),
  );
}

const freeKey = (value) =>
  ["key", ...Array.from({ length: 1000 }, (_, index) => `key${index + 2}`)].find((key) => !(key in value));
const focusLast = (list, selector) =>
  requestAnimationFrame(() => [...list.querySelectorAll(selector)].at(-1)?.focus());

/** Entries whose keys are free. */
function Entries({ value, set, path, form, label, keys, schema, open }) {
  const rename = (old, key) =>
    set(Object.fromEntries(Object.entries(value).map(([one, part]) => [one === old ? key : one, part])));
  const add = (event) => {
    focusLast(event.currentTarget.parentElement, ".key");
    set({ ...value, [freeKey(value)]: blank(schema, form.root) });
  };
  return html`<div class="entries">
    ${keys.map(
      (
        key,
        index,
      ) => html`<${Field} key=${index} schema=${schema} value=${value[key]} path=${[...path, key]} form=${form}
            required=${true}
      set=${(next) => set({ ...value, [key]: next ?? null })} label="${label} ${key}"
      lead=${html`<${Key} of=${label} name=${key} taken=${(name) => name !== key && name in value}
          rename=${(name) => rename(key, name)} />`}
      tools=${html`<${IconButton} icon="close" label="Remove ${key}"
          onClick=${() => set(without(value, key))} />`} />`,
    )}
    ${open && html`<button type="button" class="small add" onClick=${add}><${Icon} name="plus" />Add entry</button>`}
  </div>`;
}

function Key({ of, name, taken, rename }) {
  const local = useSignal(null);
  const twice = local.value !== null && taken(local.value);
  const write = (event) => {
    const text = event.target.value;
    local.value = taken(text) ? text : null;
    if (!taken(text)) rename(text);
  };
  return html`<input class="key mono" aria-label="Key in ${of}" value=${local.value ?? name}
        aria-invalid=${twice ? "true" : undefined} onInput=${write} onBlur=${() => (local.value = null)} />
    ${twice && html`<span class="fault" role="status">this key already exists</span>`}`;
}

/** A list, whether of any length or with its places fixed. */
function List({ shape, own, value, set, path, form, label }) {
  const fixed = shape.kind === "tuple" ? own.prefixItems : [];
  const rest = shape.kind === "tuple" ? (isObject(own.items) ? own.items : null) : (own.items ?? {});
  const move = (from, to) => set(value.with(from, value[to]).with(to, value[from]));
  const full = value.length >= (own.maxItems ?? Infinity);
  const add = (event) => {
    focusLast(event.currentTarget.parentElement, ".items > .field :is(input, select, textarea)");
    set([...value, blank(fixed[value.length] ?? rest ?? {}, form.root)]);
  };
  const tools = (index) =>
    index >= fixed.length &&
    html`
    <${IconButton} icon="up" label="Move ${label} ${index + 1} up" disabled=${index <= fixed.length}
        onClick=${() => move(index, index - 1)} />
    <${IconButton} icon="down" label="Move ${label} ${index + 1} down" disabled=${index === value.length - 1}
        onClick=${() => move(index, index + 1)} />
    <${IconButton} icon="close" label="Remove ${label} ${index + 1}" disabled=${value.length <= (own.minItems ?? 0)}
        onClick=${() => set(value.toSpliced(index, 1))} />`;
  return html`<div class="list">
    <div class="items">${value.map(
      (
        item,
        index,
      ) => html`<${Field} key=${index} schema=${fixed[index] ?? rest ?? {}} value=${item} path=${[...path, index]}
            form=${form}
      set=${(next) => set(value.with(index, next ?? null))} label="${label} ${index + 1}" required=${true} tools=${tools(index)} />`,
    )}</div>
    ${
      (rest || value.length < fixed.length) &&
      html`<button type="button" class="small add" disabled=${full}
        onClick=${add}><${Icon} name="plus" />Add to ${label}</button>`
    }
  </div>`;
}

/** One of several: what is written decides, unless it was chosen here. */
function Union(props) {
  const { shape, value, set, form, label } = props;
  const chosen = useSignal(null);
  const index = chosen.value?.of === value ? chosen.value.index : variantOf(value, shape.variants, form.root);
  const put = (next, at = index) => {
    chosen.value = { index: at, of: next };
    set(next);
  };
  const choose = (event) =>
    put(blank(shape.variants[event.target.value], form.root), Number(event.target.value));
  const inner = shapeOf(shape.variants[index], form.root);
  const kind = suits(inner.kind, value) ? inner.kind : "json";
  return html`<div class="union">
    <select aria-label="Variant of ${label}" value=${index} onChange=${choose}>
      ${shape.variants.map(
        (one, at) => html`<option value=${at}>
          ${variantName(one, form.root)}</option>`,
      )}
    </select>
    <${Control} key=${index} ...${props} shape=${{ ...inner, kind }} own=${inner.schema} set=${put}
        id="${props.id}-value" aria=${{ ...props.aria, "aria-label": label }} />
  </div>`;
}
