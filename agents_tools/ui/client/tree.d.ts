import type { RunEvent } from "./protocol.js";
/** The status of a call or a run. */
export type NodeStatus = "waiting" | "preparing" | "approval" | "running" | "interrupted" | "ok" | "invalid_args" | "tool_error" | "timeout" | "cancelled" | "denied" | "overloaded" | "lost" | "error";
/** A file of a message. */
export interface MessageFile {
    name: string;
    mime: string | null;
    /** The number of bytes; `null` if it is unknown. */
    size: number | null;
}
/** A part of a run or a call, in the order in which the parts came, with the id of its (first) event. */
export type Item = {
    key: number;
    event: number;
} & ({
    type: "call";
    node: CallNode;
} | {
    type: "input";
    text: string;
    files: MessageFile[];
} | TextItem | {
    type: "line";
    level: string;
    text: string;
    tag: string | null;
} | {
    type: "artifact";
    name: string;
    data: unknown;
    uri: string | null;
    mime: string | null;
});
/** Text of the model (`text`, `reasoning`) or of a tool (`delta`). */
export interface TextItem {
    type: "text" | "reasoning" | "delta";
    text: string;
    /** How many characters before `text` were left out. */
    cut: number;
    /** Whether the whole text has not come yet. */
    streamed?: boolean;
}
type Keyed<T> = T & {
    key: number;
    event: number;
};
/** A run or a call. Its identity is its path, because ids of calls are not unique. */
export interface CallNode {
    path: string[];
    /** The path as text. */
    key: string;
    parent: CallNode | null;
    /** The id of its first event. */
    event: number;
    name: string;
    status: NodeStatus;
    /** The agent that runs in it. */
    agent: string | null;
    /** The arguments; `undefined` while the model writes them, when `draft` has the text so far. */
    args: unknown;
    draft: string;
    /** The arguments as the server sent them, of a call that waits for a decision. */
    argsText?: string;
    /** The arguments of the last answer, and why the server has refused them. */
    edit?: string | null;
    refused?: string | null;
    /** Times in seconds since 1970, and the duration in seconds. */
    start: number | null;
    end: number | null;
    duration: number | null;
    progress: {
        current: number;
        total: number | null;
        message: string | null;
    } | null;
    items: Item[];
    /** How many lines and artifacts were left out before those in `items`. */
    earlier: Record<string, number>;
    /** What the model gets: text, or a list of blocks. */
    output: unknown;
    error: string | null;
    usage: {
        [key: string]: unknown;
    } | null;
    /** Grows with each change of the node or of a node below it, when `EventTree.flush` is called. */
    version: number;
}
/** Returns a run or a call of which nothing is known yet. */
export declare const newNode: (path: string[], name: string, parent: CallNode | null) => CallNode;
/** The tree of a run. */
export declare class EventTree {
    #private;
    /** The run. */
    root: CallNode;
    /** The id of the last event. */
    lastId: number;
    /** How far the server's clock is ahead of ours, in seconds. */
    ahead: number;
    /** The nodes that have changed since the last look at them. */
    touched: Set<CallNode>;
    /** All calls, each followed by those within it. */
    get calls(): CallNode[];
    /** Adds an event. Returns whether it is the end of the run, and not a stop for a decision. */
    apply(event: RunEvent): boolean;
    /** The call that an event is about, or the run; `undefined` for an event that has not come yet. */
    nodeOf(id: number): CallNode | undefined;
    /** The calls that wait for a decision. */
    get approvals(): CallNode[];
    /** Sets which calls wait for a decision, as the server has it. */
    setApprovals(waiting: {
        path: string[];
    }[]): void;
    /** Ends a run that its server has lost. */
    lose(): void;
    /** Increases the version of each changed node and of those around it. Returns whether any has changed. */
    flush(): boolean;
}
/** Whether a call or a run has ended. */
export declare const isOver: (node: CallNode) => boolean;
/** Adds an item, and takes the oldest of its type away when there are too many. */
export declare function add<T extends {
    type: string;
}>(node: CallNode, part: T): Keyed<T>;
/** The text of the content of a message: text, or a list of blocks. */
export declare function textOf(content: unknown): string;
/** Returns the value of JSON text, or the text if it is not JSON. */
export declare function readArguments(text: string): unknown;
export {};
