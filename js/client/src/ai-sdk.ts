// The AI SDK: the calls in a message of `useChat` with their approvals, and a stream that survives lost connections.
import { createElement as h, useEffect, useRef, type ReactNode } from "react";
import { callTree, readArguments, type Answer, type CallNode, type CallSnapshot } from "./client.js";
import { CallList } from "./react.js";
import { pause, watched } from "./stream.js";

/** What the components need of the result of `useChat`. */
export interface Chat {
  id: string;
  status: string;
  error?: Error | undefined;
  messages: readonly object[];
  setMessages(update: (messages: any[]) => any[]): void;
  addToolApprovalResponse?(response: { id: string; approved: boolean; reason?: string }): void | PromiseLike<void>;
  sendMessage(message?: undefined, options?: { body?: object }): Promise<void>;
  resumeStream(options?: { headers?: Record<string, string> }): Promise<void>;
}

/** A part of a message. Its fields depend on the type. */
type Part = any;
export interface MessageParts {
  parts: readonly { type: string }[];
}

interface Approval {
  id: string;
  /** Whether it is a data part, as for version 5, and not a tool part. */
  isData: boolean;
}

/** The calls of a message. */
interface Calls {
  roots: CallNode[];
  approvals: Map<string, Approval>;
  /** The part where a call is shown. */
  places: Map<Part, string>;
}

const STATES: Record<string, string> = {
  "input-streaming": "preparing",
  "approval-requested": "approval",
  "approval-responded": "waiting",
  "output-available": "ok",
  "output-error": "tool_error",
  "output-denied": "denied",
};

function readCalls({ parts }: MessageParts, refused: string | null): Calls {
  const snapshots: CallSnapshot[] = [];
  const approvals: Calls["approvals"] = new Map();
  const places: Calls["places"] = new Map();
  const seen = new Set<string>();
  for (const part of parts as readonly Part[]) {
    const call = part.type === DATA ? ofData(part.data) : part.type === QUESTION ? ofQuestion(part) : ofTool(part);
    if (!call) continue;
    if (part.state === "approval-responded" && refused !== null) Object.assign(call, { status: "approval", refused });
    if (call.status === "approval") approvals.set(call.id, { id: part.approval?.id ?? part.id, isData: !part.approval });
    snapshots.push(call);
    if (!seen.has(call.id)) places.set(part, call.id);
    seen.add(call.id);
  }
  // The state of a data part says less.
  for (const id of approvals.keys()) snapshots.push({ id, status: "approval" });
  return { roots: callTree(snapshots), approvals, places };
}

const DATA = "data-agents-tool";
const QUESTION = "data-agents-tool-approval";

function ofData({ callId, parentCallId, toolName, input, artifacts, ...data }: Part): CallSnapshot {
  const { attempt: _, ...rest } = data; // a line says it
  return {
    ...rest,
    id: callId,
    name: toolName,
    ...(parentCallId !== undefined && { parent: parentCallId }),
    ...(input !== undefined && { args: input }),
    ...(artifacts && { artifacts: artifacts.map((one: Part) => ({ name: one.name, uri: one.url, mime: one.mediaType })) }),
  };
}

const ofQuestion = ({ data: { callId, toolName, input, state, parentCallId: parent } }: Part): CallSnapshot => ({
  id: callId,
  name: toolName,
  args: input,
  ...(parent !== undefined && { parent }),
  ...(state === "requested" && { status: "approval" }),
});

function ofTool(part: Part): CallSnapshot | null {
  const { type, toolCallId: id, toolName: name = type.replace(/^tool-/, ""), state, input } = part;
  if (typeof id !== "string") return null;
  const isOpen = state === "input-available" || part.preliminary;
  const output = part.output ?? part.errorText;
  return {
    id,
    name,
    args: input,
    edit: part.approval?.arguments,
    ...(!isOpen && STATES[state] && { status: STATES[state] }),
    ...(output !== undefined && { output }),
  };
}

export interface CallPartProps {
  /** The result of `useChat`. */
  chat: Chat;
  message: MessageParts;
  part: { type: string };
}

/** A call of the agent with what happens within it, at its first part. Shows nothing for other parts. */
export function CallPart({ chat, message, part }: CallPartProps): ReactNode {
  const { roots, approvals, places } = readCalls(message, chat.status === "error" ? messageOf(chat.error) : null);
  const node = roots.find((one) => one.path[0] === places.get(part));
  if (!node) return null;
  const decide = (call: CallNode, answer: Answer) => sendAnswer(chat, approvals.get(call.path.at(-1)!)!, answer);
  return h(CallList, { calls: [node], run: { decide } });
}

/** Answers an approval of a message, with other arguments if there are any. */
async function sendAnswer(chat: Chat, { id, isData }: Approval, answer: Answer): Promise<null> {
  const { approve: approved, message, arguments: edited } = answer;
  const reason = message ?? undefined;
  if (isData || !chat.addToolApprovalResponse) {
    await chat.sendMessage(undefined, { body: { approvals: [{ id, approved, reason, arguments: edited }] } });
    return null;
  }
  // The SDK has no field for edited arguments, but keeps and sends those of the approval.
  const request = (part: Part): Part =>
    part.approval?.id === id
      ? { ...part, state: "approval-requested", approval: { id, ...(edited && { arguments: edited }) } }
      : part;
  chat.setMessages((messages) => messages.map((one) => ({ ...one, parts: one.parts.map(request) })));
  await chat.addToolApprovalResponse({ id, approved, reason });
  return null;
}

/** Returns the message of an error of the server, which the SDK has as JSON text. */
function messageOf({ message }: Error = new Error()): string {
  const data = readArguments(message) as { error?: { message?: string } } | string;
  return (typeof data === "object" && data.error?.message) || message;
}

const FIRST_PAUSE = 250;
const LAST_PAUSE = 4_000;

/**
 * Continues a chat when its connection is lost, as soon as the server can be reached, and when an approval was answered
 * elsewhere: immediately after another tab, else when the page becomes visible. Returns whether the connection is lost.
 * The run must survive the disconnect: serve it with a store or `on_disconnect="detach"`.
 */
export function useReconnect(chat: Chat): boolean {
  const wait = useRef(0);
  const latest = useRef(chat);
  latest.current = chat;
  const { status, error } = chat;
  // The SDK passes on what `fetch` throws when the network is lost; refusals are errors of other classes.
  const isLost = status === "error" && error instanceof TypeError;
  if (status === "ready" || status === "streaming") wait.current = 0;
  useEffect(() => {
    if (!isLost) return undefined;
    const stop = new AbortController();
    wait.current = Math.min(wait.current * 2 || FIRST_PAUSE, LAST_PAUSE);
    void pause(wait.current, stop.signal).then(() => {
      if (stop.signal.aborted) return;
      const { messages, sendMessage, resumeStream } = latest.current;
      void (isUnanswered(messages.at(-1)) ? sendMessage() : resumeStream());
    });
    return () => stop.abort();
  }, [isLost && error]); // a resume that fails changes the error only
  useAnswersOfOthers(chat, latest);
  return isLost || wait.current > 0;
}

/** Resumes the stream of a chat that shows an approval when another page has answered it. */
function useAnswersOfOthers({ id, status, messages }: Chat, latest: { current: Chat }): void {
  const last = messages.at(-1);
  const question = useRef<string | undefined>(undefined);
  question.current = status === "ready" ? openQuestion(last) : undefined;
  const isAnswering = useRef(false);
  const isBehind = useRef(false); // another tab has answered, and the open request began before
  const tabs = useRef<BroadcastChannel | null>(null);
  const follow = (): void => {
    isBehind.current = latest.current.status !== "ready";
    if (question.current === undefined) return;
    // The server sends nothing while the question is open, so that the form stays as it is.
    void latest.current.resumeStream({ headers: { "agents-tools-question": question.current } });
  };
  useEffect(() => {
    const onVisible = () => document.hidden || follow();
    tabs.current = new BroadcastChannel(`agents-tools ${id}`);
    tabs.current.onmessage = follow;
    document.addEventListener("visibilitychange", onVisible);
    return () => {
      tabs.current?.close();
      document.removeEventListener("visibilitychange", onVisible);
    };
  }, [id]);
  useEffect(() => {
    const hasContinued = isAnswering.current && (status === "streaming" || status === "ready");
    if (hasContinued) tabs.current?.postMessage(null);
    isAnswering.current = status === "submitted" && isAnswered(last);
    if (status === "ready" && isBehind.current) follow();
  }, [status]);
}

/** Returns the id of the first approval that a message asks for. */
function openQuestion(message: Part): string | undefined {
  const isOpen = ({ type, state, data }: Part): boolean =>
    state === "approval-requested" || (type === QUESTION && data.state === "requested");
  const part = message?.parts.find(isOpen);
  return part?.approval?.id ?? part?.id;
}

/** Whether the last request has no answer yet, so that it is sent again: the server runs it once. */
const isUnanswered = (message: Part): boolean => message?.role === "user" || isAnswered(message);

const isAnswered = (message: Part): boolean =>
  !!message?.parts.some((part: Part) => part.state === "approval-responded");

/** A `fetch` for the transport: after 45 seconds without data, not even a heartbeat, the connection counts as lost. */
export const watchedFetch: typeof fetch = watched((input, init) => fetch(input, init));
