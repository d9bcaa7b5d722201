// The calls of a message as a tree, from snapshots of each call: what the AI SDK and AG-UI send.
import { add, isOver, newNode, type CallNode, type NodeStatus } from "./tree.js";

/** What is known of a call. Only `id` is required. */
export interface CallSnapshot {
  id: string;
  /** The id of the call around it. */
  parent?: string;
  name?: string;
  status?: string;
  agent?: string;
  /** The arguments, and the result. */
  args?: unknown;
  output?: unknown;
  /** In seconds. */
  duration?: number;
  progress?: { current: number; total?: number; message?: string };
  lines?: { text: string; level?: string; tag?: string }[];
  /** The end of the text that it streams. */
  text?: string;
  artifacts?: { name: string; uri?: string; mime?: string; data?: unknown }[];
  /** The text of an attempt that failed. */
  attempt?: string;
  /** The arguments of the last answer, and why the server has refused them. */
  edit?: string | null;
  refused?: string | null;
}

/**
 * Returns the calls that are not within another one, with all others below them. Snapshots of one call are combined;
 * the fields of later ones win.
 */
export function callTree(snapshots: Iterable<CallSnapshot>): CallNode[] {
  const all = new Map<string, CallSnapshot>();
  for (const snapshot of snapshots) all.set(snapshot.id, { ...all.get(snapshot.id), ...snapshot });
  const nodes = new Map<string, CallNode>();
  const make = (call: CallSnapshot): CallNode => {
    const known = nodes.get(call.id);
    if (known) return known;
    const around = call.parent === undefined ? undefined : all.get(call.parent);
    const parent = around && around !== call ? make(around) : null;
    const node = newNode([...(parent?.path ?? []), call.id], call.name ?? "", parent);
    nodes.set(call.id, node);
    fill(node, call);
    if (parent) add(parent, { type: "call", node });
    return node;
  };
  for (const call of all.values()) make(call);
  return [...nodes.values()].filter((node) => node.parent === null);
}

function fill(node: CallNode, { progress, ...call }: CallSnapshot): void {
  node.status = (call.status as NodeStatus) ?? "running";
  node.agent = call.agent ?? null;
  node.args = call.args;
  node.output = call.output;
  node.duration = call.duration ?? null;
  node.edit = call.edit;
  node.refused = call.refused;
  if (progress) node.progress = { total: null, message: null, ...progress };
  if (call.attempt !== undefined && !isOver(node))
    add(node, { type: "line", level: "warning", text: call.attempt, tag: null });
  for (const { text, level = "info", tag = null } of call.lines ?? []) add(node, { type: "line", level, text, tag });
  if (call.text) add(node, { type: "delta", text: call.text, cut: 0 });
  for (const { name, uri = null, mime = null, data = null } of call.artifacts ?? [])
    add(node, { type: "artifact", name, uri, mime, data });
}
