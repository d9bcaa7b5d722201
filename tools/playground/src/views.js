// What the model sees of a tool: its definition for each provider, and what changed in it.
import { keep, signal, useSignal } from "./view.js";
import * as api from "./api.js";
import { pretty } from "./json.js";
import { attempt } from "./state.js";
import { Badge, Code, CopyButton, TabPanel, Tabs, clock } from "./ui.js";

/** Whose view is shown; stays when another tool is chosen. */
const provider = signal(null);

/** @param {{tool: {name: string, schema: object, output_schema: object | null}}} props */
export function Views({ tool }) {
  const answer = useSignal(null);
  keep(async () => (answer.value = (await attempt(() => api.views(tool.name))) ?? { views: [] }));
  const loaded = answer.value;
  if (!loaded) return html`<p class="empty">Loading…</p>`;
  const own = {
    id: "schema",
    label: "JSON schema",
    json: tool.schema,
    note: "The source of the other views.",
  };
  const output = tool.output_schema && {
    id: "output",
    label: "Output",
    json: tool.output_schema,
    note: "The schema of the result.",
  };
  const all = [...loaded.views, own, output].filter(Boolean);
  const view = all.find((one) => one.id === provider.value) ?? all[0];
  return html`
    <${Diff} diff=${loaded.diff} />
    <${Tabs} name="view" label="Providers" class="sub" current=${view.id} onSelect=${(id) => (provider.value = id)}
        tabs=${all.map((one) => [one.id, one.label])} />
    <${TabPanel} name="view" current=${view.id} class="view"><${View} view=${view} /></${TabPanel}>`;
}

function View({ view }) {
  const text = pretty(view.json);
  return html`
    <div class="bar-line">
      ${view.tokens !== undefined && html`<span><b>${view.tokens.toLocaleString()}</b> tokens</span>`}
      ${view.strict !== undefined && html`<${Badge}>${view.strict ? "strict" : "not strict"}</${Badge}>`}
      <span class="push"><${CopyButton} text=${text} what=${view.label} /></span>
    </div>
    ${view.note && html`<p class="note">${view.note}</p>`}
    <${Code} text=${text} label=${view.label} />`;
}

function Diff({ diff }) {
  if (!diff) return null;
  const breaking = diff.changes.some((change) => change.breaking);
  return html`<section class="diff" aria-label="Changes">
    <h3>${diff.changes.length ? "Changed" : "Unchanged"} since ${clock(diff.since)} ${breaking && html`<${Badge} tone="bad">breaking</${Badge}>`}</h3>
    <ul>${diff.changes.map(
      (change) => html`<li>
      <span class="sign ${change.kind}">${change.kind}</span> <code>${[change.path].flat().join(".")}</code> ${change.text}
      ${change.breaking && html` <${Badge} tone="bad">breaking</${Badge}>`}
    </li>`,
    )}</ul>
  </section>`;
}
