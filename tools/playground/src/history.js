// The list of past runs and what can be done with each.
import { keep, useSignal } from "./view.js";
import * as api from "./api.js";
import { compare } from "./compare.js";
import { brief } from "./json.js";
import { edit, forget, loadPast, open, past, refreshPast, rerun, shown } from "./runs.js";
import { attempt, info } from "./state.js";
import { CopyButton, IconButton, Status, arrows, clock, download, duration } from "./ui.js";

/** How often the list is asked for while it is shown: other programs can start runs. */
const INTERVAL = 2_000;

const poll = () => {
  const timer = setInterval(() => document.hidden || refreshPast(), INTERVAL);
  return () => clearInterval(timer);
};

export const History = () => html`<div ref=${poll}><${Runs} /></div>`;

function Runs() {
  keep(() => loadPast());
  const { runs, more, loaded } = past.value;
  if (!loaded) return html`<p class="empty">Loading…</p>`;
  if (!runs.length)
    return html`<p class="empty">No runs yet. Your runs are listed here${info.value.history ? " and stored" : " until the server stops"}.</p>`;
  return html`
    ${info.value.store && html`<p class="note store">Runs in <span class="mono">${info.value.store}</span></p>`}
    <ul class="history" onKeyDown=${arrows(".past")}>${runs.map(
      (run) => html`<${Past} key=${run.id}
        run=${run} />`,
    )}</ul>
    <div class="actions">
      ${more && html`<button type="button" onClick=${() => loadPast(true)}>Load older runs</button>`}
      ${!info.value.store && html`<button type="button" class="quiet" onClick=${() => forget()}>Delete all</button>`}
    </div>`;
}

function Past({ run }) {
  const more = useSignal(false);
  const files = (run.files ?? []).map((file) => file.name);
  const given = run.kind === "tool" ? brief(run.arguments ?? {}) : [run.input, ...files].filter(Boolean).join(" · ");
  return html`<li class=${shown.value?.id === run.id ? "current" : ""}>
    <div class="head">
      <button type="button" class="past" onClick=${() => open(run)}>
        <span class="row"><span class="name">${run.name}</span><${Status} status=${run.status} /></span>
        <span class="about mono">${given}</span>
        ${run.summary && html`<span class="about">${run.summary}</span>`}
        <span class="when"><time datetime=${run.started}>${clock(run.started)}</time>
            ${run.duration !== null && html`<span>${duration(run.duration)}</span>`}</span>
      </button>
      <${IconButton} icon="chevron" label="Actions for ${run.name}, ${clock(run.started)}" aria-expanded=${more.value}
          onClick=${() => (more.value = !more.value)} />
    </div>
    ${more.value && html`<${Actions} run=${run} />`}
  </li>`;
}

const Actions = ({ run }) => html`<div class="actions wrap">
  <button type="button" class="small" onClick=${() => rerun(run)}>Run again</button>
  <button type="button" class="small" onClick=${() => edit(run)}>Edit and run</button>
  ${
    shown.value &&
    shown.value.id !== run.id &&
    html`<button type="button" class="small" onClick=${() => compare(run)}>Compare with the shown run</button>`
  }
  <${Exports} id=${run.id} />
  <button type="button" class="small danger" onClick=${() => forget(run)}>Delete</button>
</div>`;

/** Takes a run elsewhere: as code, as a command or as a test. */
export function Exports({ id }) {
  const text = async (as) => (await attempt(() => api.exported(id, as)))?.text;
  const save = async () => {
    const file = await attempt(() => api.exported(id, "pytest"));
    if (file) download(file.name, [file.text], "text/x-python");
  };
  return html`
    <${CopyButton} text=${() => text("python")} what="Python">Copy as Python</${CopyButton}>
    <${CopyButton} text=${() => text("cli")} what="Command">Copy as command</${CopyButton}>
    <${CopyButton} text=${() => text("json")} what="JSON">Copy as JSON</${CopyButton}>
    <button type="button" class="small" onClick=${save}>Save as test</button>`;
}
