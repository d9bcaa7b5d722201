import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";
type Run = ReturnType<HttpAgent["run"]>;
type RunInput = Parameters<HttpAgent["run"]>[0];
/**
 * An `HttpAgent` for an endpoint of `ag_ui.app`. `connectAgent()` shows the newest run of the thread: its messages so
 * far, and what follows. When the connection is lost, the stream continues as soon as the server can be reached; the
 * client sees one stream. The run must survive the disconnect: serve it with a store or `on_disconnect="detach"`.
 */
export declare class ConnectedAgent extends HttpAgent {
    private ask;
    constructor(config: HttpAgentConfig);
    clone(): ConnectedAgent;
    private join;
    /** Follows the newest run of the thread. */
    protected connect(input: RunInput): Run;
}
export {};
