export type * from "./protocol.js";
export * from "./tree.js";
export { callTree, type CallSnapshot } from "./snapshots.js";
export * from "./requests.js";
export * from "./arguments.js";
export { LiveRun, type Answer, type LiveRunOptions } from "./live_run.js";
export { ApiError, follow, parseFrame, type FollowOptions } from "./stream.js";
