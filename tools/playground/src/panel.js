// The right pane: the run that is shown, its timeline, and the history.
import { Approvals } from "./approval.js";
import { turnOf } from "./chats.js";
import { Comparison, compared } from "./compare.js";
import { Exports, History } from "./history.js";
import { listKeys } from "./keys.js";
import { Result } from "./results.js";
import { cancel, edit, rerun, resume, shown } from "./runs.js";
import { current, narrow, onlyRuns, side } from "./state.js";
import { Timeline } from "./timeline.js";
import { Tree } from "./tree.js";
import { Status, TabPanel, Tabs } from "./ui.js";

const TABS = [
  ["run", "Run"],
  ["timeline", "Timeline"],
  ["history", "History"],
];
const VIEWS = { run: Run, timeline: OfRun, history: History, compare: Comparison };

export function Panel() {
  const view = VIEWS[side.value];
  const tabs = TABS.filter(([id]) => id !== "history" || !onlyRuns());
  if (compared.value) tabs.push(["compare", "Compare"]);
  return html`
    <${Tabs} name="side" label="Runs" tabs=${tabs} current=${side.value} onSelect=${(id) => (side.value = id)} />
    <${TabPanel} name="side" current=${side.value} class="scroll"><${view} /></${TabPanel}>`;
}

function noRun() {
  if (onlyRuns()) return html`<p class="empty">Choose a run. Its events appear here, also while it runs.</p>`;
  return html`<div class="first">
    <p>Nothing has run yet. Events of a run appear here.</p>
    <ol>
      <li>Choose a tool on the left and fill in its form, or choose an agent and write to it.</li>
      <li>Press <kbd>Ctrl ↵</kbd>. The arguments are checked before the tool runs.</li>
      <li>Follow the run here: its calls, its timeline with the requests to models, and its result.</li>
      <li>Change your code and save the file: the page loads it again.</li>
    </ol>
    <p><button type="button" class="small" onClick=${listKeys}>Show all keys</button></p>
  </div>`;
}

function OfRun() {
  return shown.value ? html`<${Timeline} key=${shown.value.id} view=${shown.value} />` : noRun();
}

function Run() {
  const view = shown.value;
  if (!view) return noRun();
  view.changed(view.tree.root).value;
  const detail = view.detail.value;
  const status = detail?.status ?? (view.tree.root.status === "waiting" ? "running" : view.tree.root.status);
  return html`<div class="run" key=${view.id}>
    <div class="bar-line">
      <h2>${view.name}</h2><${Status} status=${status} />
      <span class="push actions">
        ${
          canResume(status, detail) &&
          html`<button type="button" class="primary" onClick=${() => resume(view)}>Resume</button>`
        }
        ${
          status === "running" || status === "orphaned"
            ? html`<button type="button" class="danger" disabled=${view.cancelling.value}
                    onClick=${() => cancel(view)}>${view.cancelling.value ? "Cancelling…" : "Cancel"}</button>`
            : detail &&
              html`<button type="button" onClick=${() => rerun(detail)}>Run again</button>
                      <button type="button" class="quiet" onClick=${() => edit(detail)}>Edit</button>`
        }
      </span>
    </div>
    ${view.failure.value && html`<p class="verdict bad">${view.failure.value}</p>`}
    ${
      isInChat(view)
        ? detail?.approvals?.length > 0 && html`<p class="verdict warn">A call waits for your decision in the conversation.</p>`
        : html`<${Approvals} view=${view} place="run" />`
    }
    <${Tree} view=${view} />
    ${detail?.result && !["running", "interrupted", "orphaned"].includes(detail.status) && html`<${Result} detail=${detail} />`}
    ${detail && html`<div class="actions wrap exports"><${Exports} id=${view.id} /></div>`}
  </div>`;
}

/** Whether the conversation next to the run shows its questions. */
const isInChat = (view) => !narrow.value && turnOf(view.id) && current("agent")?.name === view.name;

/** A run whose server has ended, or whose calls were decided on a server without its tools. */
const canResume = (status, detail) =>
  status === "orphaned" || (status === "interrupted" && detail?.approvals?.length === 0);
