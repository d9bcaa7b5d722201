import { type ReactNode } from "react";
/** What the components need of the result of `useChat`. */
export interface Chat {
    id: string;
    status: string;
    error?: Error | undefined;
    messages: readonly object[];
    setMessages(update: (messages: any[]) => any[]): void;
    addToolApprovalResponse?(response: {
        id: string;
        approved: boolean;
        reason?: string;
    }): void | PromiseLike<void>;
    sendMessage(message?: undefined, options?: {
        body?: object;
    }): Promise<void>;
    resumeStream(options?: {
        headers?: Record<string, string>;
    }): Promise<void>;
}
export interface MessageParts {
    parts: readonly {
        type: string;
    }[];
}
export interface CallPartProps {
    /** The result of `useChat`. */
    chat: Chat;
    message: MessageParts;
    part: {
        type: string;
    };
}
/** A call of the agent with what happens within it, at its first part. Shows nothing for other parts. */
export declare function CallPart({ chat, message, part }: CallPartProps): ReactNode;
/**
 * Continues a chat when its connection is lost, as soon as the server can be reached, and when an approval was answered
 * elsewhere: immediately after another tab, else when the page becomes visible. Returns whether the connection is lost.
 * The run must survive the disconnect: serve it with a store or `on_disconnect="detach"`.
 */
export declare function useReconnect(chat: Chat): boolean;
/** A `fetch` for the transport: after 45 seconds without data, not even a heartbeat, the connection counts as lost. */
export declare const watchedFetch: typeof fetch;
