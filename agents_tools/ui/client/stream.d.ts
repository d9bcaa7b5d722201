/** An answer that is not a success. */
export declare class ApiError extends Error {
    /** The HTTP status. */
    status: number;
    /** What a program can tell the error by, if the server sends it. */
    code?: string;
    /** The faults of arguments, if the server sends them. */
    faults?: unknown[];
    constructor(status: number, error?: {
        message?: string;
        code?: string;
        faults?: unknown[];
    });
}
/** Returns an answer that is a success. Throws an `ApiError` for any other, and for a page. */
export declare function checked(response: Response): Promise<Response>;
/** Whether to try a request again: the server could not be reached, or has failed. */
export declare const isTransient: (error: unknown) => boolean;
/** Writes to the console, once until the server answers, what to check: browsers do not tell pages the cause. */
export declare function reportLost(endpoint: string, address: string, found: string): void;
export declare const reportFound: (endpoint: string) => boolean;
export interface FollowOptions {
    /** The id of the last event that is known; -1 for none. */
    after?: number;
    /** Ends the reading. */
    signal?: AbortSignal;
    /** Called when the connection is lost, and when it is back. */
    onLost?: (lost: boolean) => void;
    /** The milliseconds without data, not even a heartbeat, after which a connection is given up. */
    silence?: number;
}
/**
 * Yields the data of events from a stream, each one once, until the server has no more (status 204). After a lost
 * connection it continues behind the last event.
 *
 * @param open Requests the events behind the one with this id.
 * @throws ApiError The server refuses the request; after a status from 500 on, it is tried again.
 */
export declare function follow<T = unknown>(open: (after: number, signal: AbortSignal) => Promise<Response>, { after, signal, onLost, silence }?: FollowOptions): AsyncGenerator<T, void, undefined>;
/** Waits. Ends early when a signal is aborted, the network is back, or `retryNow` is called. */
export declare function pause(time: number, ...signals: (AbortSignal | undefined)[]): Promise<void>;
/** Ends all pauses between tries. */
export declare const retryNow: () => boolean;
/** Aborts a request from which no data comes. */
export declare class Watchdog {
    #private;
    constructor(silence?: number, signal?: AbortSignal);
    get signal(): AbortSignal;
    seen(): void;
    stop(): void;
}
/** Returns a `fetch` whose bodies fail like those of a lost network after a time without data. */
export declare function watched(ask: typeof fetch): typeof fetch;
/** Cuts a body of server-sent events into frames. */
export declare function frames(body: ReadableStream<Uint8Array>, watchdog: Watchdog): AsyncGenerator<{
    id?: number;
    data: unknown;
}, void, unknown>;
/** Returns the id and the data of a frame; `null` for a comment. */
export declare function parseFrame(text: string): {
    id?: number;
    data: unknown;
} | null;
