import { type ReactNode } from "react";
import { LiveRun, type CallNode, type LiveRunOptions } from "./client.js";
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
/** The question whether a call may run, while it waits for the answer. */
export declare function Approval({ run, node }: {
    run: LiveRun;
    node: CallNode;
}): ReactNode;
