import type { Decision, Run } from "./protocol.js";
import * as api from "./requests.js";
import { EventTree, type CallNode } from "./tree.js";
export interface LiveRunOptions extends api.Endpoint {
    /**
     * The name of a parameter of the page's address that keeps the id of the run, so that a page that is loaded again
     * and a copied address show the same run. By default the id is not kept.
     */
    param?: string;
}
/** A decision about a call: whether it can run, a reason for the model, other arguments as JSON text. */
export type Answer = Omit<Decision, "call_id" | "path" | "arguments"> & {
    arguments?: string | null;
};
/** A run that a page starts or opens, its tree, and what the user can do with it. */
export declare class LiveRun {
    #private;
    options: LiveRunOptions;
    tree: EventTree;
    /** The id of the run; `null` before the start. */
    id: string | null;
    status: "idle" | "starting" | Run["status"];
    /** The final output, when the run has ended. */
    output: unknown;
    /** Whether the connection is lost; it is tried again and again. */
    lost: boolean;
    /** Why the run or the last request failed. */
    error: string | null;
    constructor(options: LiveRunOptions);
    /** Calls a function after each change, at most once for each frame of the screen. Returns how to stop it. */
    subscribe(listener: () => void): () => void;
    get isRunning(): boolean;
    /** The calls that wait for a decision. */
    get approvals(): CallNode[];
    /** Starts a run, and follows it. Until the server has answered, a second call (a double click) has no effect. */
    start(request: api.RunRequest): Promise<void>;
    /** Shows a run, and follows it; by default the one in the page's address, if there is one. */
    open(id?: string | null): void;
    /** Stops following the run, which continues. */
    close(): void;
    /** Cancels the run. */
    cancel(reason?: string): Promise<void>;
    /** Cancels one call; the run continues. */
    cancelCall(call: CallNode): Promise<void>;
    /** Decides about a call that waits. Returns why the server has refused the decision, else `null`. */
    decide(call: CallNode, decision: boolean | Omit<Decision, "call_id" | "path">): Promise<string | null>;
    /** Continues a run whose server has ended. */
    resume(): Promise<void>;
}
