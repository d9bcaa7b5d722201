import { type CallNode } from "./tree.js";
/** What is known of a call. Only `id` is required. */
export interface CallSnapshot {
    id: string;
    /** The id of the call around it. */
    parent?: string;
    name?: string;
    status?: string;
    agent?: string;
    /** The arguments, and the result. */
    args?: unknown;
    output?: unknown;
    /** In seconds. */
    duration?: number;
    progress?: {
        current: number;
        total?: number;
        message?: string;
    };
    lines?: {
        text: string;
        level?: string;
        tag?: string;
    }[];
    /** The end of the text that it streams. */
    text?: string;
    artifacts?: {
        name: string;
        uri?: string;
        mime?: string;
        data?: unknown;
    }[];
    /** The text of an attempt that failed. */
    attempt?: string;
    /** The arguments of the last answer, and why the server has refused them. */
    edit?: string | null;
    refused?: string | null;
}
/**
 * Returns the calls that are not within another one, with all others below them. Snapshots of one call are combined;
 * the fields of later ones win.
 */
export declare function callTree(snapshots: Iterable<CallSnapshot>): CallNode[];
