// CopilotKit: the activities of calls as a tree, and their approvals.
import { createElement as h, Fragment, useEffect, useReducer, type ReactElement, type ReactNode } from "react";
import { argumentsText, callTree, readArguments, type Answer, type CallSnapshot } from "./client.js";
import { ApprovalForm, CallList } from "./react.js";

const TOOL = "AGENTS_TOOL";
const ARTIFACT = "AGENTS_ARTIFACT";

/** What the components need of an agent of AG-UI. */
interface Agent {
  messages: readonly object[];
}

/** An activity, and its content. Their fields are documented with the events of AG-UI. */
type Loose = any;

/** Accepts every content: the server has checked it. */
const content = {
  "~standard": { version: 1 as const, vendor: "agents-tools", validate: (value: unknown) => ({ value: value as Loose }) },
};

/** What draws the trees of an agent again. An agent calls only those who subscribed before its run. */
const trees = new WeakMap<object, Set<() => void>>();

/** Shows the tree of a call at the activity of the outermost call. */
function Activity({ message, agent }: { message: Loose; agent: Agent | undefined }): ReactElement | null {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  const { content, activityType } = message;
  const isRoot = activityType === TOOL && content.parent === undefined;
  useEffect(() => {
    if (!agent || !isRoot) return undefined;
    const drawn = trees.get(agent) ?? new Set();
    trees.set(agent, drawn.add(redraw));
    return () => void drawn.delete(redraw);
  }, [agent, isRoot]);
  useEffect(() => {
    if (agent) trees.get(agent)?.forEach((draw) => draw());
  }, [agent, content]);
  if (!isRoot) return null; // the tree of the outermost call has it
  const all: Loose[] = [...(agent?.messages ?? []), message];
  const contents = new Map(all.map((one) => [one.id, one.content]));
  const calls = all.filter((one) => one.activityType === TOOL).map((one) => ofActivity(one, contents));
  const node = callTree(calls).find((one) => one.path[0] === content.call);
  return node ? h(CallList, { calls: [node] }) : null;
}

function ofActivity({ content }: Loose, contents: Map<string, Loose>): CallSnapshot {
  const { call: id, tool: name, arguments: args, result, attempt, artifacts, ...rest } = content;
  return {
    ...rest,
    id,
    name,
    ...(args !== undefined && { args }),
    ...(result !== undefined && { output: result }),
    ...(attempt && { attempt: `attempt ${attempt.count} failed: ${attempt.error ?? "no reason given"}` }),
    ...(artifacts && { artifacts: artifacts.map((one: Loose) => ofArtifact(one, contents.get(one.messageId))) }),
  };
}

const ofArtifact = ({ name, uri, mimeType: mime }: Loose, content: Loose) => ({
  name,
  uri,
  mime,
  data: content?.text ?? (content?.base64 && { encoding: "base64", data: content.base64 }),
});

/** For `<CopilotKitProvider renderActivityMessages={activities}>`: calls with their progress, artifacts and inner calls. */
export const activities = [TOOL, ARTIFACT].map((activityType) => ({ activityType, content, render: Activity }));

interface Interrupts {
  interrupts: readonly object[];
  resolve(payload: unknown, interruptId: string): unknown;
}

/** For `useInterrupt({ render: approvals })`: the calls that wait for a decision, with arguments that can be edited. */
export function approvals({ interrupts, resolve }: Interrupts): ReactElement {
  const forms = interrupts.map(({ id, metadata }: Loose): ReactNode => {
    const { tool, arguments: text, error: refused } = metadata.agents_tools;
    const onDecide = async ({ approve, message, arguments: edited }: Answer) => {
      await resolve({ approved: approve, ...(message && { message }), ...(edited && { arguments: edited }) }, id);
      return null;
    };
    return h(ApprovalForm, { key: id, name: tool, text: argumentsText(readArguments(text), text), onDecide, refused });
  });
  return h(Fragment, null, h("div", { className: "agents-run" }, forms));
}
