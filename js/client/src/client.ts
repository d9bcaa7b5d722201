// The client of agents-tools: plain functions that need no framework.
export type * from "./protocol.js";
export * from "./tree.js";
export * from "./requests.js";
export { LiveRun, type LiveRunOptions } from "./live_run.js";
export { ApiError, follow, parseFrame, type FollowOptions } from "./stream.js";
