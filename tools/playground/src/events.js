// Folds the native events of a run into the tree that is shown. Plain data: no page, no signals.

/** How many of those that come in numbers are kept; the newest are. */
const MOST = { line: 200, artifact: 50 };
const MOST_TEXT = 20_000;
const SPARE = 1.25; // cutting happens now and then, not with each event

/**
 * @typedef {object} Node A run or a call. Its identity is its path: call ids are not unique.
 * @property {string[]} path
 * @property {string} name
 * @property {string} status
 * @property {object[]} items What happened in it, in order; `type` says what each is.
 * @property {Record<string, number>} earlier How many lines and artifacts were left out before those in `items`.
 */

/** @param {string[]} path @param {string} name @returns {Node} */
const newNode = (path, name) => ({
  path,
  name,
  key: JSON.stringify(path),
  status: "waiting",
  agent: null,
  args: undefined,
  draft: "",
  start: null,
  end: null,
  duration: null,
  progress: null,
  items: [],
  added: 0,
  kept: { line: 0, artifact: 0 },
  earlier: { line: 0, artifact: 0 },
  output: undefined,
  error: null,
  usage: null,
  delta: null,
  open: null,
});

export class RunTree {
  root = newNode([], "");
  lastId = -1;
  /** How far the server's clock is ahead of ours, in seconds. */
  ahead = 0;
  /** @type {Set<Node>} The nodes that changed since somebody looked. */
  touched = new Set();
  #nodes = new Map([[this.root.key, this.root]]);

  /** All calls, each followed by those within it. */
  get calls() {
    const below = (node) =>
      node.items.flatMap((item) => (item.type === "call" ? [item.node, ...below(item.node)] : []));
    return below(this.root);
  }

  /** @param {object} event @returns {boolean} Whether the run has ended for good with this event. */
  apply(event) {
    this.lastId = Math.max(this.lastId, event.id);
    const node = this.#at(event.path ?? [], event.tool_name);
    this.touched.add(node);
    const at = event.timestamp ? Date.parse(event.timestamp) / 1000 : Date.now() / 1000;
    this.ahead = Math.max(this.ahead, at - Date.now() / 1000);
    HANDLERS[event.type]?.(this, node, event, at);
    return event.type === "run_finished_event" && node === this.root && event.status !== "interrupted";
  }

  /** The node of a path; made, with those around it, when it is not there yet. */
  #at(path, name) {
    const known = this.#nodes.get(JSON.stringify(path));
    if (known) {
      if (name && path.length) known.name = name;
      return known;
    }
    const parent = this.#at(path.slice(0, -1), null);
    const node = newNode(path, name ?? path.at(-1));
    this.#nodes.set(node.key, node);
    add(parent, { type: "call", node });
    this.touched.add(parent);
    return node;
  }

  /** @param {Node} parent @param {string} id */
  child(parent, id, name) {
    const node = this.#at([...parent.path, id], name);
    this.touched.add(node);
    return node;
  }

  /** @param {Node} parent @param {Node} node */
  drop(parent, node) {
    this.#nodes.delete(node.key);
    parent.items = parent.items.filter((item) => item.node !== node);
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
export const isOver = (node) => OVER.has(node.status);

const HANDLERS = {
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
    if (node !== tree.root) return;
    node.status = event.status;
    node.end = at;
    if (event.status !== "interrupted") endTheRest(tree, event.status, at);
  },
  message_event(tree, node, event) {
    if (event.role === "user") add(node, { type: "input", text: textOf(event.content) });
  },
  raw_response_event: (tree, node, event) => STREAMED[event.data?.type]?.(tree, node, event.data),
  run_item_stream_event: (tree, node, event, at) => ITEMS[event.name]?.(tree, node, event.item, at),
  tool_stream_start_event(tree, node, event, at) {
    // A call can start while the model writes its arguments; the draft is shown until they are complete.
    const args = node.draft && node.args === undefined ? undefined : event.input_args;
    Object.assign(node, { status: "running", start: at, end: null, args });
  },
  tool_stream_end_event(tree, node, event, at) {
    Object.assign(node, { status: event.status, end: at, duration: event.duration });
  },
  notify_stream_event(tree, node, event) {
    if (!event.is_delta) return addLine(node, event.level, event.data, event.tag);
    if (!node.delta) node.delta = add(node, { type: "delta", text: "", cut: 0 });
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
  action_event: (tree, node, event) => event.hidden || addLine(node, "info", event.kind, "action"),
  observation_event: (tree, node, event) => event.hidden || addLine(node, "info", event.kind, "observation"),
  agent_state_changed_event: (tree, node, event) =>
    addLine(node, "info", `${event.state} ${event.reason}`, "state"),
};

/** What a model streams; whole items follow and say the same. */
const STREAMED = {
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
    node.items = node.items.filter((item) => !item.streamed);
    node.open = null;
    const begun = node.items.filter((item) => item.node?.status === "preparing");
    begun.forEach((item) => tree.drop(node, item.node));
    addLine(node, "warning", `the model did not answer (attempt ${data.attempt ?? 1}); trying again`);
  },
};

const ITEMS = {
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
    call.status = "approval";
  },
  output_refused: (tree, node, item) =>
    addLine(node, "error", item.reason ?? item.message ?? "the output was refused"),
};

function answered(tree, node, item, at) {
  const call = tree.child(node, item.call_id, item.name);
  call.output = item.output;
  if (item.in_background) return; // it was acknowledged, and continues
  if (!isOver(call)) call.status = item.status ?? "ok";
  call.end ??= at;
}

function endTheRest(tree, status, at) {
  for (const call of tree.calls) {
    if (isOver(call)) continue;
    call.status = status === "cancelled" ? "cancelled" : "lost";
    call.end = at;
    tree.touched.add(call);
  }
}

const addLine = (node, level, text, tag = null) => add(node, { type: "line", level, text, tag });

/** Adds an item, and takes the oldest of its type away when there are too many. */
function add(node, item) {
  const { type } = item;
  item.key = node.added++;
  node.items.push(item);
  if (type in MOST && ++node.kept[type] >= MOST[type] * SPARE) {
    let over = node.kept[type] - MOST[type];
    node.earlier[type] += over;
    node.kept[type] = MOST[type];
    node.items = node.items.filter((one) => one.type !== type || over-- <= 0);
  }
  return item;
}

function addText(item, more) {
  item.text += more;
  if (item.text.length < MOST_TEXT * SPARE) return;
  const over = item.text.length - MOST_TEXT;
  item.cut += over;
  item.text = item.text.slice(over);
}

function openText(node, type) {
  if (node.open?.type !== type) {
    node.open = add(node, { type, text: "", cut: 0, streamed: true });
  }
  return node.open;
}

function closeText(node) {
  node.open = null;
}

/** The whole text replaces what was streamed of it. */
function wholeText(node, type, text) {
  const streamed = node.items.find((item) => item.streamed && item.type === type);
  node.open = null;
  if (streamed) Object.assign(streamed, { text: "", cut: 0, streamed: false });
  addText(streamed ?? add(node, { type, text: "", cut: 0 }), text);
}

/** @param {string | {text?: string, refusal?: string}[]} content */
export function textOf(content) {
  if (typeof content === "string") return content;
  if (!Array.isArray(content))
    return content === undefined || content === null ? "" : JSON.stringify(content);
  return content
    .map((block) => (typeof block === "string" ? block : (block.text ?? block.refusal ?? `[${block.type}]`)))
    .join("\n");
}

function readArguments(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
