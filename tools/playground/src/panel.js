// The right pane: the run that is shown, its timeline, and the history.
import { useSignal } from "./view.js";
import { Approvals } from "./approval.js";
import { turnOf } from "./chats.js";
import { Exports, History } from "./history.js";
import { pretty } from "./json.js";
import { cancel, edit, rerun, resume, shown } from "./runs.js";
import { current, narrow, onlyRuns, side } from "./state.js";
import { Timeline } from "./timeline.js";
import { Output, Tree } from "./tree.js";
import { Code, Status, TabPanel, Tabs, dollars } from "./ui.js";

const TABS = [
  ["run", "Run"],
  ["timeline", "Timeline"],
  ["history", "History"],
];
const VIEWS = { run: Run, timeline: OfRun, history: History };

export function Panel() {
  const view = VIEWS[side.value];
  const tabs = onlyRuns() ? TABS.filter(([id]) => id !== "history") : TABS;
  return html`
    <${Tabs} name="side" label="Runs" tabs=${tabs} current=${side.value} onSelect=${(id) => (side.value = id)} />
    <${TabPanel} name="side" current=${side.value} class="scroll"><${view} /></${TabPanel}>`;
}

const noRun = () =>
  html`<p class="empty">${
    onlyRuns() ? "Choose a run. Its events appear here, also while it runs." : "Nothing has run yet. Events of a run appear here."
  }</p>`;

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

function Result({ detail }) {
  const shown = useSignal("model");
  const chosen = shown.value;
  const views = {
    model: [detail.kind === "agent" ? "Answer" : "As the model sees it", AsTheModelSeesIt],
    value: ["As a value", ({ result }) => html`<${Code} text=${pretty(result.value)} label="Value" />`],
    ...(detail.kind === "agent" && detail.result.usage && { usage: ["Usage", Usage] }),
  };
  const tabs = Object.entries(views).map(([id, [label]]) => [id, label]);
  const view = views[chosen][1];
  return html`<section class="result" aria-label="Result">
    <${Tabs} name="result" label="Result" class="sub" tabs=${tabs} current=${chosen} onSelect=${(id) => (shown.value = id)} />
    <${TabPanel} name="result" current=${chosen}>
      <${view} result=${detail.result} name=${detail.name} />
    </${TabPanel}>
  </section>`;
}

/** What came back; the error stands apart where the model is told something else. */
function AsTheModelSeesIt({ result: { model, error }, name }) {
  const same = model?.length === 1 && model[0].text === error;
  const some = model?.length > 0 || !error;
  return html`
    ${error && !same && html`<p class="verdict bad">${error}</p>`}
    ${some && html`<${Output} blocks=${model ?? []} name=${name} />`}`;
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
