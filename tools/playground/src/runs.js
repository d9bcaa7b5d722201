// The run that is shown and the list of past runs: starting, following, cancelling, deciding.
import { signal } from "./view.js";
import * as api from "./api.js";
import { confirm } from "./dialog.js";
import { EventTree } from "../../../js/client/src/tree.ts";
import { pretty } from "./json.js";
import { agents, attempt, draftOf, inputOf, middle, pane, select, side, tools } from "./state.js";
import { focusField } from "./form.js";
import { say, statusWord } from "./ui.js";

/** @type {import("./view.js").Signal<RunView | null>} */
export const shown = signal(null);
export const past = signal({ runs: [], more: false, loaded: false });
/** Seconds since 1970; ticks while something runs. */
export const now = signal(Date.now() / 1000);
/** The run whose approvals are asked for in a dialog. */
export const asking = signal(null);

/** A run on the page: its tree, which changes with each frame, and what the server says of it. */
export class RunView {
  /** @param {{id: string, kind: string, name: string}} of @param {boolean} fresh Whether it was started here. */
  constructor({ id, kind, name, status }, fresh) {
    Object.assign(this, { id, kind, name, fresh, status });
    this.began = performance.now();
    this.tree = new EventTree();
    this.detail = signal(null);
    this.cancelling = signal(false);
    this.failure = signal("");
    this.signals = new WeakMap();
  }

  /** The signal that says a node has changed. @param {import("../../../js/client/src/tree.ts").Node} node */
  changed(node) {
    if (!this.signals.has(node)) this.signals.set(node, signal(0));
    return this.signals.get(node);
  }

  follow() {
    this.stop = new AbortController();
    const { signal: stopped } = this.stop;
    if (this.status === "orphaned") this.#settle(); // its events have no end yet
    const watched = api.watchRun(this.id, this.tree.lastId, (event) => this.#take(event), stopped);
    return watched
      .catch((error) => (this.failure.value = error.message))
      .finally(() => stopped.aborted || this.#settle());
  }

  #take(event) {
    const over = this.tree.apply(event);
    this.frame ??= requestAnimationFrame(() => this.#paint());
    if (event.type === "run_finished_event" && !event.path.length && !over) this.#settle();
    return over;
  }

  /** However many events a frame brings, each node that they changed is drawn once. */
  #paint() {
    this.frame = null;
    const nodes = [...this.tree.touched];
    this.tree.touched.clear();
    this.#followEnd(() => nodes.forEach((node) => this.changed(node).value++));
    tick();
  }

  /** Keeps the end of a new run in view while it grows, if the user has not scrolled away from it. */
  #followEnd(change) {
    const panel = document.getElementById("side-panel");
    const isAtEnd = panel && panel.scrollHeight - panel.scrollTop - panel.clientHeight < 24;
    change();
    if (this.fresh && isAtEnd) queueMicrotask(() => (panel.scrollTop = panel.scrollHeight));
  }

  async #settle(tries = 20) {
    const detail = await attempt(() => api.run(this.id));
    if (!detail || this.stop.signal.aborted) return;
    this.#followEnd(() => (this.detail.value = detail));
    this.cancelling.value = false;
    if (detail.status === "running" && this.tree.root.status !== "running" && tries)
      setTimeout(() => this.#settle(tries - 1), 250); // the server is still storing the end
    if (detail.status === "running" || detail.status === "orphaned") return;
    say(`${this.name}: ${statusWord(detail.status)}`);
    if (this.fresh && detail.approvals?.length && this.asked !== this.tree.lastId) {
      this.asked = this.tree.lastId; // asked for once; closing the dialog is an answer, too
      if (!isTyping(this.began)) asking.value = this; // the dialog would take the keys
    }
    loadPast();
  }
}

let typed = 0;
document.addEventListener("input", () => (typed = performance.now()), true);

/** Whether the user has written in a field since then and is still there, or decides about something. */
const isTyping = (since) =>
  document.querySelector("dialog[open]") !== null ||
  (typed > since && document.activeElement.matches("input, textarea, select"));

let ticking;

/** Keeps the clock going while the shown run is running. */
function tick() {
  const running = shown.value?.tree.root.status === "running";
  if (!running) ticking = clearInterval(ticking);
  else ticking ??= setInterval(() => (now.value = Date.now() / 1000), 100);
}

/** Shows a run from its first event on. */
export function open(run, fresh = false) {
  shown.value?.stop.abort();
  const view = new RunView(run, fresh);
  shown.value = view;
  asking.value = null;
  pane.value = "run";
  history.replaceState(null, "", `?run=${encodeURIComponent(run.id)}`);
  if (fresh || side.value === "history") side.value = "run";
  view.follow();
  if (fresh) {
    say(`${run.name} started`);
    loadPast();
  }
}

/** Shows the run in the address of the page: a link, or the page was loaded again. */
export async function openLinked() {
  const id = new URLSearchParams(location.search).get("run");
  const run = id && (await attempt(() => api.run(id)));
  if (!run) return;
  const listed = run.kind === "tool" ? tools.value : agents.value;
  if (listed.some((one) => one.name === run.name)) select(run.kind, run.name);
  open(run);
}

/** Runs a tool with what its draft holds; whatever is wrong is shown at its field. */
export async function runTool(tool) {
  const draft = draftOf(tool);
  const box = brokenBox(draft);
  if (draft.broken.value || box) {
    middle.value = "arguments";
    const { line, column } = draft.broken.value ?? box;
    say(`Not run: the JSON is broken at line ${line}, column ${column}`);
    requestAnimationFrame(() =>
      document.getElementById(draft.broken.value ? "json-editor" : box.id)?.focus(),
    );
    return;
  }
  const sure = !tool.destructive || (await confirmRun(tool, draft.text.value));
  if (sure) await attempt(() => post(tool, draft, tool.destructive));
}

/** A box whose text is not JSON; one whose field is gone from the form does not count. */
function brokenBox(draft) {
  const gone = (box) => middle.value === "arguments" && !document.getElementById(box.id);
  return Object.values(draft.boxes.value).find((box) => !gone(box));
}

const confirmRun = (tool, text, message) =>
  confirm({
    title: `Run ${tool.name}?`,
    action: `Run ${tool.name}`,
    dangerous: true,
    code: text,
    text:
      message ?? "This tool is marked as destructive. It will run with these arguments:",
  });

async function post(tool, draft, confirmed) {
  try {
    const { run_id: id } = await api.startTool(tool.name, draft.text.value, confirmed);
    draft.settle([], null);
    open({ id, kind: "tool", name: tool.name }, true);
  } catch (error) {
    if (error.code === "confirm" && !confirmed) {
      if (await confirmRun(tool, draft.text.value, error.message)) await post(tool, draft, true);
      return;
    }
    if (!error.faults) throw error;
    showFaults(draft, error.faults, error.message);
  }
}

/** Shows faults at their fields and goes to the first. */
export function showFaults(draft, faults, message) {
  draft.settle(faults, message);
  middle.value = "arguments";
  pane.value = "edit";
  say(`${faults.length} ${faults.length === 1 ? "problem" : "problems"} in the arguments`);
  if (faults.length) requestAnimationFrame(() => focusField(draft.faults.value[0].path));
}

export async function checkTool(tool) {
  const draft = draftOf(tool);
  if (draft.broken.value) return;
  const ok = await attempt(() => draft.check());
  if (ok) say("The arguments are valid");
  if (ok === false) showFaults(draft, draft.faults.value, draft.verdict.value);
}

export async function runAgent(name) {
  const input = inputOf(name);
  if (!input.value.trim()) return document.getElementById("agent-input")?.focus();
  const started = await attempt(() => api.startAgent(name, input.value));
  if (started) open({ id: started.run_id, kind: "agent", name }, true);
}

export async function cancel(view) {
  view.cancelling.value = true;
  const answer = await attempt(() => api.cancel(view.id));
  if (!answer?.cancelled) view.cancelling.value = false;
}

/** Continues a run whose server has ended. @param {RunView} view */
export async function resume(view) {
  if (!(await attempt(() => api.resume(view.id)))) return;
  view.stop.abort();
  view.detail.value = view.status = null;
  view.follow();
}

/** @param {RunView} view @param {object[]} decisions One for each open approval. */
export async function decide(view, decisions) {
  const done = await attempt(() => api.decide(view.id, decisions));
  if (!done) return;
  view.stop.abort();
  view.detail.value = null;
  view.began = performance.now();
  say("Decision sent");
  view.follow();
}

export async function loadPast(more = false) {
  const { runs: known, more: further } = past.value;
  const page = await attempt(() => api.runs(more ? known.at(-1)?.id : undefined));
  if (!page) return;
  if (more) past.value = { runs: [...known, ...page.runs], more: page.more, loaded: true };
  else {
    const fresh = new Set(page.runs.map((run) => run.id));
    const older = page.more
      ? known.filter((run) => !fresh.has(run.id) && run.started < page.runs.at(-1).started)
      : [];
    past.value = {
      runs: [...page.runs, ...older],
      more: older.length ? further : page.more,
      loaded: true,
    };
  }
}

/** Runs something again as it was; what destroys is asked for again, too. */
export async function rerun(run) {
  const tool = run.kind === "tool" && tools.value.find((one) => one.name === run.name);
  const text = pretty(run.arguments);
  if (tool?.destructive && !(await confirmRun(tool, text))) return;
  const from = side.value;
  const started = await attempt(() =>
    tool?.destructive ? api.startTool(run.name, text, true) : api.rerun(run.id),
  );
  const seen = side.value;
  if (started) open({ ...run, id: started.run_id }, true);
  if (seen !== from) side.value = seen; // whoever has gone to look elsewhere is left there
}

/** Puts what a past run was given into the form. */
export function edit(run) {
  const listed = run.kind === "tool" ? tools.value : agents.value;
  const found = listed.find((one) => one.name === run.name);
  if (!found) return say(`${run.name} is not there any more`);
  select(run.kind, run.name);
  middle.value = "arguments";
  if (run.kind === "tool") draftOf(found).load(run.arguments ?? {});
  else inputOf(run.name).value = run.input ?? "";
}

/** @param {object} [run] Without one, all of them are deleted. */
export async function forget(run) {
  const text = "The list and the stored events of all runs are deleted. This cannot be undone.";
  if (!run && !(await confirm({ title: "Delete the history?", text, action: "Delete all", dangerous: true })))
    return;
  const done = await attempt(async () => (await api.forget(run?.id), true));
  if (!done) return;
  past.value = run
    ? { ...past.value, runs: past.value.runs.filter((one) => one.id !== run.id) }
    : { runs: [], more: false, loaded: true };
  say(run ? "Run deleted" : "History deleted");
}
