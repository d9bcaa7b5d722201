import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";
type Run = ReturnType<HttpAgent["run"]>;
type RunInput = Parameters<HttpAgent["run"]>[0];
/**
 * An `HttpAgent` for an endpoint of `ag_ui.app`. `connectAgent()` shows the newest run of the thread: its messages so
 * far, and what follows. A run that starts meanwhile waits for the messages, and keeps those that the user has added.
 * When the connection is lost, the stream continues as soon as the server can be reached; the client sees one stream. The
 * run must survive the disconnect: serve it with a store or `on_disconnect="detach"`.
 */
export declare class ConnectedAgent extends HttpAgent {
    private ask;
    /** Aborts the request for the thread. */
    private connection;
    /** Resolves when the messages of the thread are there, or cannot be had. */
    private restored;
    constructor(config: HttpAgentConfig);
    clone(): ConnectedAgent;
    connectAgent(...[parameters, subscriber]: Parameters<HttpAgent["connectAgent"]>): Promise<import("@ag-ui/client").RunAgentResult>;
    /** Leaves the thread; front ends do so before they start a run. */
    detachActiveRun(): Promise<void>;
    private join;
    /** Follows the newest run of the thread. */
    protected connect(input: RunInput): Run;
}
export {};
