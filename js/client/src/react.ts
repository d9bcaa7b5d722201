// React: a hook that follows a run, and components that show it. Preact can stand for React.
import {
  createElement as h,
  Fragment,
  useEffect,
  useId,
  useReducer,
  useRef,
  useState,
  type FormEvent,
  type ReactNode,
} from "react";
import {
  argumentsProblem,
  argumentsText,
  isOver,
  LiveRun,
  type Answer,
  type CallNode,
  type Item,
  type LiveRunOptions,
} from "./client.js";

export interface UseRunOptions extends LiveRunOptions {
  /** The run to show at first. By default, the one that `param` names in the address, or none. */
  id?: string;
}

/** Returns a run that the component starts or shows. The component is drawn again when the run changes. */
export function useRun({ id, ...options }: UseRunOptions): LiveRun {
  const [run] = useState(() => new LiveRun(options));
  run.options = options;
  return useLiveRun(run, id);
}

/** Follows a run while the component is on the page, and draws the component again when the run changes. */
export function useLiveRun(run: LiveRun, id?: string): LiveRun {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const unsubscribe = run.subscribe(redraw);
    run.open(id ?? run.id ?? undefined);
    return () => {
      unsubscribe();
      run.close();
    };
  }, [run, id, run.options.url]);
  return run;
}

/** The texts of the components: for each status, and for buttons. Change them for another language. */
export const words: Record<string, string> = {
  idle: "",
  starting: "starting",
  waiting: "waiting",
  preparing: "preparing",
  approval: "needs approval",
  running: "running",
  interrupted: "waits for you",
  orphaned: "waits for a server",
  ok: "done",
  invalid_args: "invalid arguments",
  tool_error: "failed",
  error: "failed",
  timeout: "timed out",
  cancelled: "cancelled",
  denied: "denied",
  overloaded: "overloaded",
  lost: "lost",
  cancel: "Cancel",
  approve: "Approve",
  reject: "Reject",
  edit: "Edit arguments",
  discard: "Discard changes",
  arguments: "Arguments",
  reason: "Reason for a rejection",
  output: "Result",
  reconnecting: "No connection to the server. Trying again…",
};

/** A run as a tree of calls, live, with their progress, approvals and buttons to cancel. */
export function RunTree({ run }: { run: LiveRun }): ReactNode {
  if (run.status === "idle" && !run.error) return null;
  return h(
    "section",
    { className: "agents-run", "data-status": run.status },
    h(
      "header",
      null,
      h("span", { role: "status" }, run.lost ? words.reconnecting : words[run.status]),
      run.isRunning && run.id && h(CancelButton, { onCancel: () => run.cancel() }),
    ),
    run.error && h("p", { role: "alert" }, run.error),
    h(Items, { run, node: run.tree.root }),
  );
}

/** The progress of a call, if it reports any. */
export function Progress({ node }: { node: CallNode }): ReactNode {
  if (!node.progress) return null;
  const { current, total, message } = node.progress;
  const text = [total ? `${current} of ${total}` : `${current}`, message].filter(Boolean).join(" ");
  return h(
    "label",
    { className: "agents-progress" },
    h("progress", total ? { value: current, max: total } : isOver(node) ? { value: 1 } : null),
    ` ${text}`,
  );
}

/** What a user can do with a call. A `LiveRun` has both. */
export interface CallActions {
  cancelCall?(call: CallNode): Promise<void>;
  /** Decides about a call that waits. Returns why the decision was refused, else `null`. */
  decide?(call: CallNode, answer: Answer): Promise<string | null>;
}

/** The question whether a call can run, while it waits for the answer. */
export function Approval({ run, node }: { run: CallActions; node: CallNode }): ReactNode {
  if (node.status !== "approval" || !run.decide) return null;
  const onDecide = (answer: Answer) => run.decide!(node, answer);
  const text = argumentsText(node.args, node.argsText);
  return h(ApprovalForm, { name: node.name, text, onDecide, edit: node.edit, refused: node.refused });
}

export interface ApprovalFormProps {
  /** The name of the tool. */
  name: string;
  /** The arguments of the call, as JSON text. */
  text: string;
  /** Sends the answer. Returns why it was refused, else `null`. */
  onDecide: (answer: Answer) => Promise<string | null>;
  /** The arguments of an earlier answer, and why it was refused. */
  edit?: string | null;
  refused?: string | null;
}

/** The question whether a call can run: its arguments, which can be edited, and the answers. */
export function ApprovalForm({ name, text, onDecide, edit: given, refused = null }: ApprovalFormProps): ReactNode {
  const [reason, setReason] = useState("");
  const [isSent, setSent] = useState(false);
  const [draft, setDraft] = useState<string | null>(null);
  const [own, setProblem] = useState<string | null>(null); // empty if the user has discarded the changes
  const editor = useRef<HTMLTextAreaElement>(null);
  const problemId = useId();
  const isEdited = draft !== null;
  const problem = own ?? refused;
  useEffect(() => editor.current?.focus(), [isEdited]);
  // The form can be on the page before the reason has come.
  useEffect(() => {
    if (refused !== null && given) setDraft((known) => known ?? given);
  }, [refused]);

  const decide = async (approve: boolean) => {
    const edit = approve && isEdited && draft !== text ? draft : null;
    let refusal = edit === null ? null : argumentsProblem(edit);
    if (refusal === null) {
      setSent(true);
      refusal = await onDecide({ approve, message: approve ? null : reason || null, arguments: edit });
      setSent(false);
    }
    setProblem(refusal);
    if (refusal !== null) editor.current?.focus();
  };
  const edit = () => {
    setDraft(isEdited ? null : text);
    setProblem("");
  };
  const button = (label: string, onClick: () => void) =>
    h("button", { type: "button", disabled: isSent, onClick }, label);
  return h(
    "div", // not a form: the Enter key must not decide
    { className: "agents-approval", role: "group", "aria-label": `${name}: ${words.approval}` },
    isEdited
      ? h("textarea", {
          ref: editor,
          value: draft,
          rows: Math.min(draft.split("\n").length + 1, 16),
          spellCheck: false,
          "aria-label": `${words.arguments}: ${name}`,
          "aria-invalid": !!problem,
          "aria-describedby": problem ? problemId : undefined,
          onInput: (event: FormEvent<HTMLTextAreaElement>) => setDraft(event.currentTarget.value),
        })
      : h("pre", null, text),
    problem && h("p", { id: problemId, role: "alert" }, problem),
    h("input", {
      value: reason,
      placeholder: words.reason,
      "aria-label": words.reason,
      onInput: (event: FormEvent<HTMLInputElement>) => setReason(event.currentTarget.value),
    }),
    button(words.approve, () => void decide(true)),
    button(words.reject, () => void decide(false)),
    button(isEdited ? words.discard : words.edit, edit),
  );
}

function CancelButton({ label, onCancel }: { label?: string; onCancel: () => Promise<void> }): ReactNode {
  const [isSent, setSent] = useState(false);
  const cancel = () => {
    setSent(true);
    void onCancel().finally(() => setSent(false));
  };
  const name = label && `${words.cancel} ${label}`;
  return h("button", { type: "button", disabled: isSent, "aria-label": name, onClick: cancel }, words.cancel);
}

/** How many of the calls and of the lines of a node are shown: the newest. */
const MOST = { call: 200, line: 8 };

const descriptions = new WeakMap<CallNode, { version: number; run: CallActions; element: ReactNode }>();

/** Describes a call. The same description is drawn only once, so that only changed calls are drawn. */
function describe(run: CallActions, node: CallNode): ReactNode {
  const known = descriptions.get(node);
  if (known?.version === node.version && known.run === run) return known.element;
  const element = h(Call, { key: node.key, run, node, version: node.version });
  descriptions.set(node, { version: node.version, run, element });
  return element;
}

interface CallProps {
  run: CallActions;
  node: CallNode;
  /** Changes with the node. */
  version: number;
}

/** A list of calls, each with what happens within it. For a run, `RunTree` shows more. */
export function CallList({ calls, run = {} }: { calls: CallNode[]; run?: CallActions }): ReactNode {
  const items = calls.map((node) => h(Call, { key: node.key, run, node, version: node.version }));
  return h("section", { className: "agents-run" }, h("ul", null, items));
}

/** A call with its progress, the calls within it and its result. */
function Call({ run, node }: CallProps): ReactNode {
  const args = node.args === undefined ? node.draft : JSON.stringify(node.args);
  return h(
    "li",
    { className: "agents-call", "data-status": node.status },
    h(
      "header",
      null,
      h("b", null, node.name),
      h("code", null, args === "{}" ? "" : args),
      h("span", { className: "agents-status" }, words[node.status]),
      node.duration !== null && isOver(node) && h("time", null, `${node.duration.toFixed(1)} s`),
      node.status === "running" &&
        run.cancelCall &&
        h(CancelButton, { label: node.name, onCancel: () => run.cancelCall!(node) }),
    ),
    h(Progress, { node }),
    h(Approval, { run, node }),
    h(Items, { run, node }),
    h(Result, { node }),
  );
}

/** The result of a call, unless the text of its agent has said the same. */
function Result({ node }: { node: CallNode }): ReactNode {
  if (node.output === undefined) return null;
  const text = textOfOutput(node.output);
  if (node.items.some((item) => item.type === "text" && item.text === text)) return null;
  return h("details", null, h("summary", null, words.output), h("pre", null, text));
}

/** What happened in a run or a call, in order. */
function Items({ run, node }: { run: CallActions; node: CallNode }): ReactNode {
  const left = { call: 0, line: 0 };
  for (const { type } of node.items) if (type in left) left[type as "call"]++;
  const groups: { key: string; calls?: ReactNode[]; element?: ReactNode }[] = [];
  for (const item of node.items) {
    if (item.type in MOST && left[item.type as "call"]-- > MOST[item.type as "call"]) continue;
    if (item.type === "input" && node.parent) continue; // the arguments of the call have it
    const last = groups.at(-1);
    if (item.type !== "call") groups.push({ key: `${item.key}`, element: h(Part, { item }) });
    else if (last?.calls) last.calls.push(describe(run, item.node));
    else groups.push({ key: `calls ${item.key}`, calls: [describe(run, item.node)] });
  }
  return groups.map(({ key, calls, element }) =>
    calls ? h("ul", { key }, calls) : h(Fragment, { key }, element),
  );
}

function Part({ item }: { item: Exclude<Item, { type: "call" }> }): ReactNode {
  switch (item.type) {
    case "line":
      return h("p", { className: "agents-line", "data-level": item.level }, item.text);
    case "artifact":
      return h(Artifact, item);
    case "delta":
      return h("pre", null, item.text);
    case "reasoning":
      return h("p", { className: "agents-reasoning" }, item.text);
    case "input":
      return h(
        "p",
        { className: "agents-input" },
        [item.text, ...item.files.map(({ name }) => `[${name}]`)].filter(Boolean).join("\n"),
      );
    default:
      return h("p", { className: `agents-${item.type}` }, item.text);
  }
}

/** The name of an artifact, as a link to its address or its content. */
function Artifact({ name, data, uri, mime }: Extract<Item, { type: "artifact" }>): ReactNode {
  const type = mime ?? "text/plain;charset=utf-8";
  const base64 = (data as { data?: string } | null)?.data;
  const content = typeof data === "string" ? `,${encodeURIComponent(data)}` : base64 && `;base64,${base64}`;
  const isImage = !!base64 && !!mime?.startsWith("image/");
  const isLink = !!uri && /^https?:/.test(uri);
  const href = isLink ? uri : content ? `data:${type}${content}` : undefined;
  const kind = isLink ? { target: "_blank", rel: "noreferrer" } : { download: name };
  return h(
    "p",
    { className: "agents-artifact" },
    isImage && h("img", { src: `data:${mime};base64,${base64}`, alt: name }),
    href ? h("a", { href, ...kind }, name) : name,
  );
}

/** The output of a call as text. */
function textOfOutput(output: unknown): string {
  if (typeof output === "string") return output;
  const blocks = Array.isArray(output) ? output : [output];
  return blocks.map((one) => (typeof one?.text === "string" ? one.text : JSON.stringify(one, null, 2))).join("\n");
}
