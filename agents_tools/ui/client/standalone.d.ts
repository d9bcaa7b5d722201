import { LiveRun } from "./client.js";
import { type UseRunOptions } from "./react.js";
export * from "./client.js";
export * from "./react.js";
/** Shows a run in an element of the page, and returns it. It is empty until it is started or opened. */
export declare function showRun(element: Element, { id, ...options }: UseRunOptions): LiveRun;
