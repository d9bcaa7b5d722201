import type { Decision, Run, RunEvent } from "./protocol.js";
import { type FollowOptions } from "./stream.js";
/** Where the server is, and how to ask it. */
export interface Endpoint {
    /** The address of the app or of the route, without the path of a request, such as `/agent`. */
    url: string;
    /** Headers of each request, such as a token, or a function that returns them. */
    headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
    /** Whether to send cookies to another origin; see `fetch`. */
    credentials?: RequestCredentials;
    /** Used in place of the browser's `fetch`. */
    fetch?: typeof fetch;
}
/** What to run: the input of an agent, or a call of a tool. */
export type RunRequest = {
    run_id?: string;
    thread_id?: string;
} & ({
    input: string | {
        [key: string]: unknown;
    }[];
} | {
    tool: string;
    arguments?: {
        [key: string]: unknown;
    };
});
export interface RequestOptions {
    signal?: AbortSignal;
    /** Called when the server cannot be reached, and when it is back. */
    onLost?: (lost: boolean) => void;
}
/**
 * Starts a run in the background, exactly once: it is tried again with the same id while the server cannot be
 * reached.
 */
export declare function startRun(endpoint: Endpoint, request: RunRequest, options?: RequestOptions): Promise<Run>;
/** Returns the state of a run. */
export declare const getRun: (endpoint: Endpoint, id: string, signal?: AbortSignal) => Promise<Run>;
/** Returns the newest runs of the caller. */
export declare const listRuns: (endpoint: Endpoint, signal?: AbortSignal) => Promise<Run[]>;
/** Yields the events of a run, each one once, until it has ended or waits for a decision. */
export declare const followRun: (endpoint: Endpoint, id: string, options?: FollowOptions) => AsyncGenerator<RunEvent, void, undefined>;
/** Decides about calls that wait. After the last decision, the run continues. */
export declare const decide: (endpoint: Endpoint, id: string, decisions: Decision[], options?: RequestOptions) => Promise<Pick<Run, "status" | "approvals">>;
type Cancelled = {
    cancelled: boolean;
    status: Run["status"];
};
/** Cancels a run. */
export declare const cancelRun: (endpoint: Endpoint, id: string, reason?: string, options?: RequestOptions) => Promise<Cancelled>;
/** Cancels one call of a run, also inside a sub-agent. The run continues. */
export declare const cancelCall: (endpoint: Endpoint, id: string, callId: string, options?: RequestOptions) => Promise<Cancelled>;
/** Continues a run whose server has ended. */
export declare const resumeRun: (endpoint: Endpoint, id: string, options?: RequestOptions) => Promise<{
    status: Run["status"];
}>;
export {};
