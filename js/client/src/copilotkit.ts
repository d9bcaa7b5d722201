// CopilotKit: the activities of calls as a tree, and their approvals.
import { createElement as h, Fragment, useEffect, useReducer, type ReactElement, type ReactNode } from "react";
import { argumentsText, callTree, readArguments, type Answer, type CallSnapshot } from "./client.js";
import { ApprovalForm, CallList } from "./react.js";

const TOOL = "AGENTS_TOOL";
const ARTIFACT = "AGENTS_ARTIFACT";

/** What the components need of an agent of AG-UI. */
interface Agent {
  messages: readonly object[];
  subscribe(subscriber: { onMessagesChanged: () => void }): { unsubscribe(): void };
}

/** An activity, and its content. Their fields are documented with the events of AG-UI. */
type Loose = any;

/** Accepts every content: the server has checked it. */
const content = {
  "~standard": { version: 1 as const, vendor: "agents-tools", validate: (value: unknown) => ({ value: value as Loose }) },
};

/** Shows the tree of a call at the activity of the outermost call. */
function Activity({ message, agent }: { message: Loose; agent: Agent | undefined }): ReactElement | null {
  const [, redraw] = useReducer((count: number) => count + 1, 0);
  useEffect(() => {
    const subscription = agent?.subscribe({ onMessagesChanged: redraw });
    return () => subscription?.unsubscribe();
  }, [agent]);
  const activities = (agent?.messages ?? [message]).filter(({ activityType }: Loose) => activityType === TOOL || activityType === ARTIFACT);
  const artifacts = new Map(activities.map(({ id, content }: Loose) => [id, content]));
  const node = callTree(activities.filter((one: Loose) => one.activityType === TOOL).map((one: Loose) => ofActivity(one, artifacts))).find(
    (one) => one.path[0] === message.content.call,
  );
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
export const activities = [
  { activityType: TOOL, content, render: Activity },
  { activityType: ARTIFACT, content, render: (): ReactElement | null => null }, // its call shows it
];

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
