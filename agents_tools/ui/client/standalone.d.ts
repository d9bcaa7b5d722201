import type { LiveRunOptions, RunRequest } from "./client.js";
export * from "./client.js";
export * from "./react.js";
export interface ShowRunOptions extends LiveRunOptions {
    /** The run to show at first. */
    id?: string;
}
/**
 * Shows runs in an element of the page. Returns a function that starts a run there.
 *
 * With `param`, a page that is loaded again shows its run again.
 */
export declare function showRun(element: Element, options: ShowRunOptions): (request: RunRequest) => Promise<void>;
