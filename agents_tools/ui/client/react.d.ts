import { type ReactNode } from "react";
import { LiveRun, type Answer, type CallNode, type LiveRunOptions } from "./client.js";
export interface UseRunOptions extends LiveRunOptions {
    /** The run to show at first. By default, the one that `param` names in the address, or none. */
    id?: string;
}
/** Returns a run that the component starts or shows. The component is drawn again when the run changes. */
export declare function useRun({ id, ...options }: UseRunOptions): LiveRun;
/** Follows a run while the component is on the page, and draws the component again when the run changes. */
export declare function useLiveRun(run: LiveRun, id?: string): LiveRun;
/** The texts of the components: for each status, and for buttons. Change them for another language. */
export declare const words: Record<string, string>;
/** A run as a tree of calls, live, with their progress, approvals and buttons to cancel. */
export declare function RunTree({ run }: {
    run: LiveRun;
}): ReactNode;
/** The progress of a call, if it reports any. */
export declare function Progress({ node }: {
    node: CallNode;
}): ReactNode;
/** What a user can do with a call. A `LiveRun` has both. */
export interface CallActions {
    cancelCall?(call: CallNode): Promise<void>;
    /** Decides about a call that waits. Returns why the decision was refused, else `null`. */
    decide?(call: CallNode, answer: Answer): Promise<string | null>;
}
/** The question whether a call can run, while it waits for the answer. */
export declare function Approval({ run, node }: {
    run: CallActions;
    node: CallNode;
}): ReactNode;
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
export declare function ApprovalForm({ name, text, onDecide, edit: given, refused }: ApprovalFormProps): ReactNode;
/** A list of calls, each with what happens within it. For a run, `RunTree` shows more. */
export declare function CallList({ calls, run }: {
    calls: CallNode[];
    run?: CallActions;
}): ReactNode;
