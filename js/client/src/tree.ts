// Reduces the events of a run to a tree of calls. Plain data: no page, no requests.
import type { RunEvent } from "./protocol.js";

/** How many items of these types are kept; the newest are. */
const MOST: Record<string, number> = { line: 200, artifact: 50 };
const MOST_TEXT = 20_000;
const SPARE = 1.25; // cutting happens now and then, not with each event

/** The status of a call or a run. */
export type NodeStatus =
  | "waiting" // not started yet
  | "preparing" // the model writes the arguments
  | "approval" // waits for a decision
  | "running"
  | "interrupted" // of a run, or of a call of an agent: a call within it waits for a decision
  | "ok"
  | "invalid_args"
  | "tool_error"
  | "timeout"
  | "cancelled"
  | "denied"
  | "overloaded"
  | "lost"
  | "error";

/** A file of a message. */
export interface MessageFile {
  name: string;
  mime: string | null;
  /** The number of bytes; `null` if it is unknown. */
  size: number | null;
}

/** A part of a run or a call, in the order in which the parts came, with the id of its (first) event. */
export type Item = { key: number; event: number } & (
  | { type: "call"; node: CallNode }
  | { type: "input"; text: string; files: MessageFile[] }
  | TextItem
  | { type: "line"; level: string; text: string; tag: string | null }
  | { type: "artifact"; name: string; data: unknown; uri: string | null; mime: string | null }
);

/** Text of the model (`text`, `reasoning`) or of a tool (`delta`). */
export interface TextItem {
  type: "text" | "reasoning" | "delta";
  text: string;
  /** How many characters before `text` were left out. */
  cut: number;
  /** Whether the whole text has not come yet. */
  streamed?: boolean;
}

type Keyed<T> = T & { key: number; event: number };

/** A run or a call. Its identity is its path, because ids of calls are not unique. */
export interface CallNode {
  path: string[];
  /** The path as text. */
  key: string;
  parent: CallNode | null;
  /** The id of its first event. */
  event: number;
  name: string;
  status: NodeStatus;
  /** The agent that runs in it. */
  agent: string | null;
  /** The arguments; `undefined` while the model writes them, when `draft` has the text so far. */
  args: unknown;
  draft: string;
  /** The arguments as the server sent them, of a call that waits for a decision. */
  argsText?: string;
  /** The arguments of the last answer, and why the server has refused them. */
  edit?: string | null;
  refused?: string | null;
  /** Times in seconds since 1970, and the duration in seconds. */
  start: number | null;
  end: number | null;
  duration: number | null;
  progress: { current: number; total: number | null; message: string | null } | null;
  items: Item[];
  /** How many lines and artifacts were left out before those in `items`. */
  earlier: Record<string, number>;
  /** What the model gets: text, or a list of blocks. */
  output: unknown;
  error: string | null;
  usage: { [key: string]: unknown } | null;
  /** Grows with each change of the node or of a node below it, when `EventTree.flush` is called. */
  version: number;
  /** @internal */ added: number;
  /** @internal */ kept: Record<string, number>;
  /** @internal */ delta: Keyed<TextItem> | null;
  /** @internal */ open: Keyed<TextItem> | null;
}

/** The id of the event that is being applied. */
let applying = -1;

/** Returns a run or a call of which nothing is known yet. */
export const newNode = (path: string[], name: string, parent: CallNode | null): CallNode => ({
  path,
  key: JSON.stringify(path),
  parent,
  event: applying,
  name,
  status: "waiting",
  agent: null,
  args: undefined,
  draft: "",
  start: null,
  end: null,
  duration: null,
  progress: null,
  items: [],
  earlier: { line: 0, artifact: 0 },
  output: undefined,
  error: null,
  usage: null,
  version: 0,
  added: 0,
  kept: { line: 0, artifact: 0 },
  delta: null,
  open: null,
});

/** The tree of a run. */
export class EventTree {
  /** The run. */
  root: CallNode = newNode([], "", null);
  /** The id of the last event. */
  lastId = -1;
  /** How far the server's clock is ahead of ours, in seconds. */
  ahead = 0;
  /** The nodes that have changed since the last look at them. */
  touched: Set<CallNode> = new Set();
  #nodes: Map<string, CallNode> = new Map([[this.root.key, this.root]]);
  /** The node of each event: the id of the first of some events in a row, and their node. */
  #owners: { from: number; node: CallNode }[] = [];

  /** All calls, each followed by those within it. */
  get calls(): CallNode[] {
    const below = (node: CallNode): CallNode[] =>
      node.items.flatMap((item) => (item.type === "call" ? [item.node, ...below(item.node)] : []));
    return below(this.root);
  }

  /** Adds an event. Returns whether it is the end of the run, and not a stop for a decision. */
  apply(event: RunEvent): boolean {
    if (this.lastId < 0) this.root.event = event.id;
    this.lastId = Math.max(this.lastId, event.id);
    applying = event.id;
    const node = this.#at(event.path ?? [], event.tool_name);
    this.touched.add(node);
    const at = event.timestamp ? Date.parse(event.timestamp) / 1000 : Date.now() / 1000;
    this.ahead = Math.max(this.ahead, at - Date.now() / 1000);
    (HANDLERS[event.type] as Handler | undefined)?.(this, node, event, at);
    const call = "item" in event && (event.item as Loose)?.call_id;
    const owner = (call && this.#nodes.get(JSON.stringify([...node.path, call]))) || node;
    if (this.#owners.at(-1)?.node !== owner) this.#owners.push({ from: event.id, node: owner });
    return event.type === "run_finished_event" && node === this.root && event.status !== "interrupted";
  }

  /** The node of a path; made, with those around it, when it is not there yet. */
  #at(path: string[], name: string | null): CallNode {
    const known = this.#nodes.get(JSON.stringify(path));
    if (known) {
      if (name && path.length) known.name = name;
      return known;
    }
    const parent = this.#at(path.slice(0, -1), null);
    const node = newNode(path, name ?? path.at(-1) ?? "", parent);
    this.#nodes.set(node.key, node);
    add(parent, { type: "call", node });
    this.touched.add(parent);
    return node;
  }

  /** Returns a call within a run or call. @internal */
  child(parent: CallNode, id: string, name: string | null): CallNode {
    const node = this.#at([...parent.path, id], name);
    this.touched.add(node);
    return node;
  }

  /** The call that an event is about, or the run; `undefined` for an event that has not come yet. */
  nodeOf(id: number): CallNode | undefined {
    return id > this.lastId ? undefined : this.#owners.findLast(({ from }) => from <= id)?.node;
  }

  /** Removes a call that the model has not finished. @internal */
  drop(parent: CallNode, node: CallNode): void {
    this.#nodes.delete(node.key);
    parent.items = parent.items.filter((item) => !(item.type === "call" && item.node === node));
  }

  /** The calls that wait for a decision. */
  get approvals(): CallNode[] {
    return this.calls.filter((node) => node.status === "approval");
  }

  /** Sets which calls wait for a decision, as the server has it. */
  setApprovals(waiting: { path: string[] }[]): void {
    const keys = new Set(waiting.map(({ path }) => JSON.stringify(path)));
    for (const node of this.calls) {
      const status = keys.has(node.key) ? "approval" : node.status === "approval" ? "waiting" : null;
      if (status === null || status === node.status) continue;
      node.status = status;
      this.touched.add(node);
    }
  }

  /** Ends a run that its server has lost. */
  lose(): void {
    this.root.status = "error";
    this.touched.add(this.root);
    endTheRest(this, "error", Date.now() / 1000 + this.ahead);
  }

  /** Increases the version of each changed node and of those around it. Returns whether any has changed. */
  flush(): boolean {
    const changed = new Set<CallNode>();
    for (const node of this.touched)
      for (let at: CallNode | null = node; at && !changed.has(at); at = at.parent) changed.add(at);
    this.touched.clear();
    for (const node of changed) node.version++;
    return changed.size > 0;
  }
}

const OVER = new Set([
  "ok",
  "invalid_args",
  "tool_error",
  "timeout",
  "cancelled",
  "denied",
  "overloaded",
  "lost",
  "error",
]);
/** Whether a call or a run has ended. */
export const isOver = (node: CallNode): boolean => OVER.has(node.status);

type Handler = (tree: EventTree, node: CallNode, event: RunEvent, at: number) => void;
type Handlers = {
  [T in RunEvent["type"]]?: (
    tree: EventTree,
    node: CallNode,
    event: Extract<RunEvent, { type: T }>,
    at: number,
  ) => void;
};
/** An item of a run, or an event of the model; their fields depend on the provider. */
type Loose = any;

const HANDLERS: Handlers = {
  run_started_event(tree, node, event, at) {
    node.agent = event.agent;
    node.start ??= at;
    node.end = null;
    node.status = "running";
  },
  run_finished_event(tree, node, event, at) {
    closeText(node);
    node.usage = event.usage;
    node.error = event.error;
    if (node !== tree.root) {
      if (event.status === "interrupted") node.status = "interrupted"; // a call within waits
      return;
    }
    node.status = event.status as NodeStatus;
    node.end = at;
    if (event.status !== "interrupted") endTheRest(tree, event.status, at);
  },
  message_event(tree, node, event) {
    if (event.role !== "user") return;
    const parts: Loose[] = Array.isArray(event.content) ? event.content : [event.content];
    const files = parts.filter((part) => part?.type && part.type !== "text");
    const text = textOf(files.length ? parts.filter((part) => !files.includes(part)) : event.content);
    add(node, { type: "input", text, files: files.map(fileOf) });
  },
  raw_response_event(tree, node, event) {
    const data = event.data as Loose;
    STREAMED[data?.type]?.(tree, node, data);
  },
  run_item_stream_event: (tree, node, event, at) => ITEMS[event.name]?.(tree, node, event.item, at),
  tool_stream_start_event(tree, node, event, at) {
    // A call can start while the model writes its arguments; the draft is shown until they are complete.
    const args = node.draft && node.args === undefined ? undefined : event.input_args;
    Object.assign(node, { status: "running", start: at, end: null, duration: null, args });
  },
  tool_stream_end_event(tree, node, event, at) {
    // The call of an agent that waits ends as cancelled, and starts again after the decision.
    const status = node.status === "interrupted" && event.status === "cancelled" ? node.status : event.status;
    Object.assign(node, { status, end: at, duration: event.duration });
  },
  notify_stream_event(tree, node, event) {
    if (!event.is_delta) return addLine(node, event.level, event.data, event.tag);
    node.delta ??= add<TextItem>(node, { type: "delta", text: "", cut: 0 });
    addText(node.delta, event.data);
  },
  tool_progress_event(tree, node, { current, total, message }) {
    node.progress = { current, total, message };
  },
  tool_artifact_event(tree, node, { name, data, uri, mime_type: mime }) {
    add(node, { type: "artifact", name, data, uri, mime });
  },
  tool_attempt_event(tree, node, { attempt, error, delay }) {
    const next = delay ? `; again in ${delay} s` : "";
    addLine(node, "warning", `attempt ${attempt} failed: ${error ?? "no reason given"}${next}`);
  },
  gap_event: (tree, node, event) => addLine(node, "debug", `${event.dropped} events were left out here`),
  error_event: (tree, node, event) => addLine(node, "error", event.message, event.kind),
  agent_updated_stream_event(tree, node, event) {
    node.agent = event.agent;
  },
  action_event(tree, node, event) {
    if (!event.hidden) addLine(node, "info", event.kind, "action");
  },
  observation_event(tree, node, event) {
    if (!event.hidden) addLine(node, "info", event.kind, "observation");
  },
  agent_state_changed_event: (tree, node, event) =>
    addLine(node, "info", `${event.state} ${event.reason}`, "state"),
};

/** What a model streams; whole items follow and say the same. */
const STREAMED: Record<string, (tree: EventTree, node: CallNode, data: Loose) => void> = {
  "response.output_item.added"(tree, node, { item }) {
    closeText(node);
    if (item?.type !== "function_call") return;
    const call = tree.child(node, item.call_id, item.name);
    if (call.args === undefined) call.status = "preparing";
  },
  "response.output_text.delta": (tree, node, data) => addText(openText(node, "text"), data.delta),
  "response.reasoning_summary_text.delta": (tree, node, data) =>
    addText(openText(node, "reasoning"), data.delta),
  "response.function_call_arguments.delta"(tree, node, data) {
    if (data.call_id) tree.child(node, data.call_id, null).draft += data.delta;
  },
  "agents_tools.retry"(tree, node, data) {
    node.items = node.items.filter((item) => !("streamed" in item && item.streamed));
    node.open = null;
    for (const item of node.items)
      if (item.type === "call" && item.node.status === "preparing") tree.drop(node, item.node);
    addLine(node, "warning", `the model did not answer (attempt ${data.attempt ?? 1}); trying again`);
  },
};

const ITEMS: Record<string, (tree: EventTree, node: CallNode, item: Loose, at: number) => void> = {
  message_output_created: (tree, node, item) => wholeText(node, "text", textOf(item.content)),
  reasoning_item_created: (tree, node, item) =>
    wholeText(node, "reasoning", textOf(item.summary ?? item.content)),
  tool_called(tree, node, item) {
    closeText(node);
    const call = tree.child(node, item.call_id, item.name);
    call.args ??= readArguments(item.arguments);
    if (call.status === "preparing") call.status = "waiting";
  },
  tool_output: answered,
  background_result: answered,
  tool_approval_requested(tree, node, item) {
    const call = tree.child(node, item.call_id, item.name);
    call.args ??= readArguments(item.arguments);
    call.argsText = item.arguments;
    call.refused = item.error ?? null;
    call.status = "approval";
  },
  output_refused: (tree, node, item) =>
    addLine(node, "error", item.reason ?? item.message ?? "the output was refused"),
};

function answered(tree: EventTree, node: CallNode, item: Loose, at: number) {
  const call = tree.child(node, item.call_id, item.name);
  call.output = item.output;
  if (item.in_background) return; // it was acknowledged, and continues
  if (!isOver(call)) call.status = item.status ?? "ok";
  call.end ??= at;
}

function endTheRest(tree: EventTree, status: string, at: number) {
  for (const call of tree.calls) {
    if (isOver(call)) continue;
    call.status = status === "cancelled" ? "cancelled" : "lost";
    call.end = at;
    tree.touched.add(call);
  }
}

const addLine = (node: CallNode, level: string, text: string, tag: string | null = null) => {
  add(node, { type: "line", level, text, tag });
};

/** Adds an item, and takes the oldest of its type away when there are too many. */
export function add<T extends { type: string }>(node: CallNode, part: T): Keyed<T> {
  const { type } = part;
  const item = Object.assign(part, { key: node.added++, event: applying });
  node.items.push(item as unknown as Item);
  if (type in MOST && ++node.kept[type] >= MOST[type] * SPARE) {
    let over = node.kept[type] - MOST[type];
    node.earlier[type] += over;
    node.kept[type] = MOST[type];
    node.items = node.items.filter((one) => one.type !== type || over-- <= 0);
  }
  return item;
}

function addText(item: TextItem, more: string) {
  item.text += more;
  if (item.text.length < MOST_TEXT * SPARE) return;
  const over = item.text.length - MOST_TEXT;
  item.cut += over;
  item.text = item.text.slice(over);
}

function openText(node: CallNode, type: "text" | "reasoning"): TextItem {
  if (node.open?.type !== type) {
    node.open = add<TextItem>(node, { type, text: "", cut: 0, streamed: true });
  }
  return node.open!;
}

function closeText(node: CallNode) {
  node.open = null;
}

/** The whole text replaces what was streamed of it. */
function wholeText(node: CallNode, type: "text" | "reasoning", text: string) {
  const streamed = node.items.find((item) => item.type === type && "streamed" in item && item.streamed) as
    TextItem | undefined;
  node.open = null;
  if (streamed) Object.assign(streamed, { text: "", cut: 0, streamed: false });
  addText(streamed ?? add<TextItem>(node, { type, text: "", cut: 0 }), text);
}

/** A content block that is not text. Its data is in base64, or only its size is known. */
const fileOf = ({ type, filename, mime_type: mime = null, size, data }: Loose): MessageFile => ({
  name: filename ?? type,
  mime,
  size: size ?? (data ? Math.floor((data.replace(/=+$/, "").length * 3) / 4) : null),
});

/** The text of the content of a message: text, or a list of blocks. */
export function textOf(content: unknown): string {
  if (typeof content === "string") return content;
  if (!Array.isArray(content))
    return content === undefined || content === null ? "" : JSON.stringify(content);
  return content
    .map((block: Loose) => (typeof block === "string" ? block : (block.text ?? block.refusal ?? `[${block.type}]`)))
    .join("\n");
}

/** Returns the value of JSON text, or the text if it is not JSON. */
export function readArguments(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
