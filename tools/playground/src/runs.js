// The run that is shown and the list of past runs: starting, following, cancelling, deciding.
import { drawDue, inFrame, signal } from "./view.js";
import * as api from "./api.js";
import { chatOf, newSession, turnOf } from "./chats.js";
import { confirm } from "./dialog.js";
import { EventTree } from "../../../js/client/src/tree.ts";
import { pretty, same } from "./json.js";
import { Spans } from "./spans.js";
import { attachAgain, attachmentsOf, detach, readAttachments } from "./attachments.js";
import { agents, attempt, draftOf, inputOf, linkTo, middle, pane, select, setAddress, setInput, side, tools } from "./state.js";
import { focusField } from "./form.js";
import { copy, say, statusWord } from "./ui.js";

/** @type {import("./view.js").Signal<RunView | null>} */
export const shown = signal(null);
export const past = signal({ runs: [], more: false, loaded: false });
/**
 * The event that a link or the user has chosen.
 * @type {import("./view.js").Signal<{run: string, event: number, view: "run"|"timeline", shown?: boolean} | null>}
 */
export const chosen = signal(null);
/** Seconds since 1970; ticks while something runs. */
export const now = signal(Date.now() / 1000);
/** A run on the page: its tree, which changes with each frame, and what the server says of it. */
export class RunView {
  /** @param {{id: string, kind: string, name: string}} of @param {boolean} fresh Whether it was started here. */
  constructor({ id, kind, name, status, session = null }, fresh) {
    Object.assign(this, { id, kind, name, fresh, status, session });
    this.tree = new EventTree();
    this.spans = new Spans(kind);
    this.requests = signal(new Map());
    this.detail = signal(null);
    this.cancelling = signal(false);
    this.failure = signal("");
    this.signals = new WeakMap();
    this.views = new WeakMap();
  }

  /**
   * How a node is shown: whether it is open, and how many of its calls are listed.
   * @param {import("../../../js/client/src/tree.ts").CallNode} node @param {boolean} open Whether it is open at first.
   */
  shownAs(node, open = true) {
    if (!this.views.has(node)) this.views.set(node, { open: signal(open), most: signal(MOST_CALLS) });
    return this.views.get(node);
  }

  /** Opens what is around the chosen event once it has come, and scrolls to it. */
  reveal() {
    const goal = chosen.value;
    const node = goal?.run === this.id && !goal.shown && goal.view === "run" && this.tree.nodeOf(goal.event);
    if (!node) return;
    goal.shown = true;
    for (let at = node; at; at = at.parent) {
      const { open, most } = this.shownAs(at);
      open.value = true;
      if (at.items.length > MOST_CALLS) most.value = Infinity;
    }
    requestAnimationFrame(() => {
      const found = document.getElementById(this.idOfEvent(goal.event)) ?? document.getElementById(this.idOf(node));
      found?.scrollIntoView({ block: "center" });
      found?.closest(".event, [role=treeitem]")?.focus({ preventScroll: true });
    });
  }

  /** The signal that says a node has changed. @param {import("../../../js/client/src/tree.ts").Node} node */
  changed(node) {
    if (!this.signals.has(node)) this.signals.set(node, signal(0));
    return this.signals.get(node);
  }

  /** The id of the row of a node on the page. */
  idOf(node) {
    return `call-${this.id}-${node.key}`.replace(/[^\w-]/g, "_");
  }

  idOfEvent(event) {
    return `event-${this.id}-${event}`;
  }

  /** @param {number} again How often to look whether a run whose calls are decided has continued. */
  follow(again = 20) {
    this.stop?.abort();
    this.stop = new AbortController();
    followed.add(this);
    const { signal: stopped } = this.stop;
    if (this.status === "orphaned") this.#settle(); // its events have no end yet
    const watched = api.watchRun(this.id, this.tree.lastId, (event) => this.#take(event), stopped);
    return watched
      .catch((error) => (this.failure.value = error.message))
      .finally(() => stopped.aborted || this.#settle(20, again));
  }

  #take(event) {
    const over = this.tree.apply(event);
    this.spans.apply(event, event.timestamp ? Date.parse(event.timestamp) / 1000 : Date.now() / 1000);
    inFrame(this.paint);
    if (event.type === "run_finished_event" && !event.path.length && !over) this.#settle();
    if (event.name === "tool_approval_requested" && this.fresh) this.#settle(); // other calls still run
    return over;
  }

  /**
   * What the server knows of the requests to models, by path and number; asked for again when
   * there is another request or response.
   */
  loadRequests() {
    const { requests } = this.spans;
    const state = `${requests.length} ${requests.filter((one) => one.to !== null).length} ${this.detail.value?.status}`;
    if (requests.length && this.requestsAt !== state) {
      this.requestsAt = state;
      clearTimeout(this.asking);
      this.asking = setTimeout(() => this.#askRequests(), 150);
    }
    return this.requests.value;
  }

  async #askRequests() {
    const found = await attempt(() => api.requests(this.id));
    const counts = {};
    const entries = (found ?? []).map((one) => {
      const path = JSON.stringify(one.path);
      counts[path] = (counts[path] ?? -1) + 1;
      return [JSON.stringify([one.path, counts[path]]), one];
    });
    this.requests.value = new Map(entries);
  }

  /** However many events a frame brings, each node that they changed is drawn once, as far as there is time. */
  paint = (end) => {
    const { touched } = this.tree;
    this.#followEnd(() => {
      for (const node of touched) {
        touched.delete(node);
        this.changed(node).value++;
        drawDue();
        if (performance.now() > end) break;
      }
    });
    this.reveal();
    tick();
    if (touched.size) inFrame(this.paint);
  };

  /** Keeps the end of a new run in view while it grows, if the user has not scrolled away from it. */
  #followEnd(change) {
    const ends = [shown.value === this && this.fresh && "side-panel", this.session && "chat-log"]
      .map((id) => id && document.getElementById(id))
      .filter((panel) => panel && panel.scrollHeight - panel.scrollTop - panel.clientHeight < 24);
    change();
    queueMicrotask(() => ends.forEach((panel) => (panel.scrollTop = panel.scrollHeight)));
  }

  async #settle(tries = 20, again = 0) {
    const { stop } = this;
    const detail = await attempt(() => api.run(this.id));
    if (!detail || stop.signal.aborted) return;
    this.#followEnd(() => (this.detail.value = detail));
    this.cancelling.value = false;
    if (detail.status === "running" && this.tree.root.status !== "running" && tries)
      setTimeout(() => this.#settle(tries - 1), 250); // the server is still storing the end
    if (detail.status === "interrupted" && !detail.approvals.length && again)
      setTimeout(() => stop.signal.aborted || this.follow(again - 1), 250); // it was decided, and is about to continue
    if (detail.approvals?.length && this.fresh) say(`${this.name}: needs approval`);
    if (detail.status === "running" || detail.status === "orphaned") return;
    if (chosen.value?.run === this.id && chosen.value.event > this.tree.lastId)
      this.failure.value = `This run has no event ${chosen.value.event}.`;
    if (this !== shown.value && !this.fresh) return;
    say(`${this.name}: ${statusWord(detail.status)}`);
    loadPast();
  }
}

/** How many calls within one are listed at first. */
export const MOST_CALLS = 200;

let ticking;
/** The runs whose events are on the page. @type {Set<RunView>} */
const followed = new Set();

/** Keeps the clock going while a run on the page is running. */
function tick() {
  followed.forEach((view) => view.stop.signal.aborted && followed.delete(view));
  const running = [...followed].some((view) => view.tree.root.status === "running");
  if (!running) ticking = clearInterval(ticking);
  else ticking ??= setInterval(() => (now.value = Date.now() / 1000), 100);
}

/** Shows a run from its first event on. One that stands in a conversation is the same there. */
export function open(run, fresh = false) {
  const before = shown.value;
  const known = turnOf(run.id);
  const view = known ?? new RunView(run, fresh);
  if (before && before !== view && !turnOf(before.id)) before.stop.abort();
  shown.value = view;
  if (!(fresh && run.session)) pane.value = "run";
  if (chosen.value?.run !== run.id) choose(null);
  setAddress({ run: run.id });
  if ((fresh && !run.session) || ["history", "compare"].includes(side.value)) side.value = "run";
  if (!known) view.follow();
  if (run.session) join(view);
  if (fresh) {
    say(`${run.name} started`);
    loadPast();
  }
}

/**
 * Chooses an event, so that the address of the page names it.
 * @param {RunView | null} view @param {number} [event] @param {"run"|"timeline"} [place]
 */
export function choose(view, event, place = "run") {
  chosen.value = view && { run: view.id, event, view: place, shown: true };
  setAddress({ event: view ? event : null, view: view && place === "timeline" ? place : null });
}

/** Chooses an event, and copies the link to it. */
export function copyLink(view, event, place) {
  choose(view, event, place);
  return copy(linkTo(view.id, event, place), "Link to the event");
}

/** Shows the conversation that a run is part of. @param {RunView} view */
async function join(view) {
  if (!agents.value.some((one) => one.name === view.name)) return; // a run of another program
  const chat = chatOf(view.name);
  if (chat.session.value === view.session) {
    if (view.fresh) chat.add(view);
    return;
  }
  chat.change(view.session, [view]);
  await loadSession(chat, view.name);
}

/** The number of runs that a conversation shows at first. */
const TURNS = 20;

async function loadSession(chat, name, limit = TURNS) {
  const session = chat.session.value;
  const page = await attempt(() => api.session(session, limit));
  if (!page || chat.session.value !== session) return;
  const known = new Map(chat.turns.value.map((view) => [view.id, view]));
  const turns = page.runs
    .filter((run) => run.name === name)
    .map((run) => known.get(run.id) ?? new RunView(run, run.status === "running"));
  chat.change(session, turns, page.more);
  turns.filter((view) => !view.stop).forEach((view) => view.follow());
}

/** @param {string} agent */
export const loadEarlier = (agent) =>
  loadSession(chatOf(agent), agent, chatOf(agent).turns.value.length + TURNS);

/** Shows the run in the address of the page: a link, or the page was loaded again. */
export async function openLinked() {
  const params = new URLSearchParams(location.search);
  const id = params.get("run");
  const run = id && (await attempt(() => api.run(id)));
  if (!run) return;
  const listed = run.kind === "tool" ? tools.value : agents.value;
  const named = ["tool", "agent"].some((kind) => params.has(kind));
  if (!named && listed.some((one) => one.name === run.name)) select(run.kind, run.name);
  const event = Number.parseInt(params.get("event"), 10);
  const place = params.get("view") === "timeline" ? "timeline" : "run";
  if (event >= 0) chosen.value = { run: id, event, view: place };
  side.value = place;
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

let sending = false;

/** Sends what is written to an agent, as the next message of its conversation. */
export async function runAgent(name) {
  const input = inputOf(name);
  if (!input.value.trim() && !attachmentsOf(name).value.length)
    return document.getElementById("agent-input")?.focus();
  const chat = chatOf(name);
  const last = chat.turns.value.at(-1);
  if (sending || (last && ["running", "interrupted"].includes(last.detail.value?.status ?? "running"))) return;
  const session = chat.session.value ?? newSession();
  sending = true;
  const text = input.value;
  const files = await readAttachments(name);
  const started = files && (await attempt(() => api.startAgent(name, text, files, session, chat.changes.value)));
  sending = false;
  if (!started) return;
  detach(name);
  if (input.value === text) setInput(name, "");
  if (chat.session.value !== session) chat.change(session);
  open({ id: started.run_id, kind: "agent", name, session }, true);
  const log = document.getElementById("chat-log");
  if (log) requestAnimationFrame(() => (log.scrollTop = log.scrollHeight));
}

export async function cancel(view) {
  view.cancelling.value = true;
  const answer = await attempt(() => api.cancel(view.id));
  if (!answer?.cancelled) view.cancelling.value = false;
}

/** Cancels one call; the run goes on. @param {RunView} view @param {import("../../../js/client/src/tree.ts").CallNode} node */
export async function cancelCall(view, node) {
  const answer = await attempt(() => api.cancelCall(view.id, node.path.at(-1)));
  if (answer) say(answer.cancelled ? `${node.name} is being cancelled` : `${node.name} is not running any more`);
}

/** Continues a run whose server has ended. @param {RunView} view */
export async function resume(view) {
  if (!(await attempt(() => api.resume(view.id)))) return;
  view.detail.value = view.status = null;
  view.follow();
}

/** @param {RunView} view @param {object[]} decisions About some or all of the calls that wait. */
export async function decide(view, decisions) {
  const done = await attempt(() => api.decide(view.id, decisions));
  if (!done) return;
  view.detail.value = null;
  view.fresh = true;
  say("Decision sent");
  view.follow();
}

export async function loadPast(more = false) {
  const { runs: known } = past.value;
  const page = await attempt(() => api.runs(more ? known.at(-1)?.id : undefined));
  if (!page) return;
  if (more) past.value = { runs: [...known, ...page.runs], more: page.more, loaded: true };
  else putNewest(page);
}

/** Asks for the newest runs, without a word if the server does not answer. */
export async function refreshPast() {
  const page = await api.runs().catch(() => null);
  const { runs, loaded } = past.value;
  if (page && !(loaded && same(page.runs, runs.slice(0, page.runs.length)))) putNewest(page);
}

/** Puts the newest runs before those that are known already. */
function putNewest(page) {
  const { runs: known, more: further } = past.value;
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
  else {
    setInput(run.name, run.input ?? "");
    attachAgain(run);
  }
}

/** @param {object} [run] Without one, all of them are deleted. */
export async function forget(run) {
  const text = "The list and the stored events of all runs are deleted. This cannot be undone.";
  if (!run && !(await confirm({ title: "Delete the history?", text, action: "Delete all", dangerous: true })))
    return;
  const done = await attempt(async () => (await api.forget(run?.id), true));
  if (!done) return;
  if (run) chatOf(run.name).remove(run.id);
  past.value = run
    ? { ...past.value, runs: past.value.runs.filter((one) => one.id !== run.id) }
    : { runs: [], more: false, loaded: true };
  say(run ? "Run deleted" : "History deleted");
}
