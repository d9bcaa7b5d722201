// AG-UI: an agent for the clients of the protocol that joins runs, and that survives lost connections.
import { HttpAgent, type HttpAgentConfig } from "@ag-ui/client";
import { checked, frames, isTransient, pause, reportFound, reportLost, Watchdog } from "./stream.js";

type Frame = { type: string; [key: string]: any };
type Run = ReturnType<HttpAgent["run"]>;
type RunInput = Parameters<HttpAgent["run"]>[0];
type Message = { id: string; role: string };
type Ask = (url: string, init: RequestInit) => Promise<Response>;

const FIRST_PAUSE = 250;
const LAST_PAUSE = 4_000;

/**
 * An `HttpAgent` for an endpoint of `ag_ui.app`. `connectAgent()` shows the newest run of the thread: its messages so
 * far, and what follows. A run that starts meanwhile waits for the messages, and keeps those that the user has added.
 * When the connection is lost, the stream continues as soon as the server can be reached; the client sees one stream. The
 * run must survive the disconnect: serve it with a store or `on_disconnect="detach"`.
 */
export class ConnectedAgent extends HttpAgent {
  private ask!: Ask;
  /** Aborts the request for the thread. */
  private connection: AbortController | undefined;
  /** Resolves when the messages of the thread are there, or cannot be had. */
  private restored: Promise<void> | undefined;

  constructor(config: HttpAgentConfig) {
    super(config);
    this.join(this.fetch);
  }

  clone(): ConnectedAgent {
    const other = super.clone() as ConnectedAgent;
    other.join(this.ask);
    return other;
  }

  async connectAgent(...[parameters, subscriber]: Parameters<HttpAgent["connectAgent"]>) {
    let restore = () => {};
    this.restored = new Promise((done) => (restore = done));
    const onMessagesChanged: NonNullable<typeof subscriber>["onMessagesChanged"] = (change) => {
      restore();
      return subscriber?.onMessagesChanged?.(change);
    };
    return super.connectAgent(parameters, { ...subscriber, onMessagesChanged }).finally(restore);
  }

  /** Leaves the thread; front ends do so before they start a run. */
  async detachActiveRun(): Promise<void> {
    await this.restored;
    await super.detachActiveRun();
    this.connection?.abort();
    this.connection = undefined;
  }

  private join(ask: Ask, known: () => Message[] = () => this.messages): void {
    this.ask = ask;
    this.fetch = (url, init) => connect(ask, url, init, known);
  }

  /** Follows the newest run of the thread. */
  protected connect(input: RunInput): Run {
    if (this.abortController.signal.aborted) this.abortController = new AbortController();
    const other = this.clone();
    other.join(this.ask, () => this.messages);
    other.abortController = this.connection = this.abortController;
    other.url = connectUrl(this.url);
    return other.run(input);
  }
}

const connectUrl = (url: string) => url.replace(/\/?(connect)?$/, "/connect");

/** Returns a response whose body continues through lost connections. */
async function connect(ask: Ask, url: string, init: RequestInit, known: () => Message[]): Promise<Response> {
  const joined = new Joined(ask, url, init, known);
  const response = await joined.first();
  if (response.status === 404 && url === connectUrl(url)) return joined.empty(); // the thread has no run yet
  if (!response.ok || !response.body) return response;
  const events = joined.events(response);
  const encoder = new TextEncoder();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { value, done } = await events.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(`data: ${JSON.stringify(value)}\n\n`));
    },
    async cancel() {
      await events.return();
    },
  });
  return new Response(body, { status: response.status, headers: response.headers });
}

/** The events of one run, from as many responses as are needed. */
class Joined {
  #ask: Ask;
  #url: string;
  #init: RequestInit;
  #known: () => Message[];
  #signal: AbortSignal | undefined;
  #wait = 0;
  #isStarted = false;
  #isOver = false;
  /** How to close what is open, by its type and id. */
  #open = new Map<string, Frame>();
  #subagents = new Set<string>();

  constructor(ask: Ask, url: string, init: RequestInit, known: () => Message[]) {
    this.#ask = ask;
    this.#url = url;
    this.#init = init;
    this.#known = known;
    this.#signal = init.signal ?? undefined;
  }

  /** Requests the run, again and again while the server cannot be reached: a run id starts one run only. */
  async first(): Promise<Response> {
    for (let isRepeated = false; ; isRepeated = true) {
      try {
        return await this.#request(isRepeated);
      } catch (error) {
        if (this.#signal?.aborted || !(error instanceof TypeError)) throw error;
        reportLost(this.#url, this.#url, error.message);
        await this.#pause();
      }
    }
  }

  /** Returns a run without events. */
  empty(): Response {
    const { threadId, runId } = JSON.parse(String(this.#init.body));
    const events = ["RUN_STARTED", "RUN_FINISHED"].map((type) => ({ type, threadId, runId }));
    const text = events.map((event) => `data: ${JSON.stringify(event)}\n\n`).join("");
    return new Response(text, { headers: { "content-type": "text/event-stream" } });
  }

  async *events(response: Response): AsyncGenerator<Frame, void, undefined> {
    for (let next: Response | null = response; ; next = null) {
      const watchdog = new Watchdog(undefined, this.#signal);
      try {
        const { body } = next ?? (await checked(await this.#request(true, watchdog.signal)));
        if (!next) yield* this.#close();
        for await (const { data } of frames(body!, watchdog)) {
          this.#wait = 0;
          yield* this.#join(data as Frame, !next);
        }
      } catch (error) {
        if (this.#signal?.aborted || !isTransient(error)) throw error;
      } finally {
        watchdog.stop();
      }
      if (this.#isOver) return;
      await this.#pause();
    }
  }

  async #pause(): Promise<void> {
    this.#wait = Math.min(this.#wait * 2 || FIRST_PAUSE, LAST_PAUSE);
    await pause(this.#wait, this.#signal);
    this.#signal?.throwIfAborted();
  }

  /** The server answers a repeated request with the conversation so far and what follows. */
  async #request(isRepeated: boolean, signal = this.#signal): Promise<Response> {
    const init = { ...this.#init, signal: signal ?? null };
    const response = await this.#ask(this.#url, init);
    reportFound(this.#url);
    // The answers to interrupts have arrived before; their run continues.
    if (isRepeated && response.status === 409) return this.#ask(connectUrl(this.#url), init);
    return response;
  }

  /** Closes what was open when the connection was lost; the server opens it again if it is not complete. */
  *#close(): Generator<Frame> {
    yield* [...this.#open.values()].reverse();
    this.#open.clear();
  }

  /** Adds what the server does not have: deleted activities, and what the user has added since the request. */
  #complete(messages: Message[]): Message[] {
    const ids = new Set(messages.map(({ id }) => id));
    const sent = new Set((JSON.parse(String(this.#init.body)).messages as Message[]).map(({ id }) => id));
    const complete = [...messages];
    let place = 0;
    for (const message of this.#known()) {
      if (ids.has(message.id)) place = complete.findIndex(({ id }) => id === message.id) + 1;
      else if (message.role === "activity") complete.splice(place++, 0, message);
      else if (message.role === "user" && !sent.has(message.id)) complete.push(message);
    }
    return complete;
  }

  *#join(event: Frame, isLater: boolean): Generator<Frame> {
    const { type, subagentRunId } = event;
    if (type === "MESSAGES_SNAPSHOT") event = { ...event, messages: this.#complete(event.messages) };
    const [, subject, action] = /^(.+)_(START|END|STARTED|FINISHED|ERROR)$/.exec(type) ?? [];
    if (type === "RUN_STARTED") {
      if (this.#isStarted) return;
      this.#isStarted = true;
    } else if (subject === "RUN") {
      this.#isOver = true;
      // They have ended while the connection was lost.
      if (isLater && action === "FINISHED")
        for (const id of [...this.#subagents].reverse()) yield { type: "SUBAGENT_FINISHED", subagentRunId: id };
    } else if (subject === "SUBAGENT") {
      if (action === "STARTED" && this.#subagents.has(subagentRunId)) return;
      if (action === "STARTED") this.#subagents.add(subagentRunId);
      else this.#subagents.delete(subagentRunId);
    } else if (action === "START" || action === "END") {
      const name = "toolCallId" in event ? "toolCallId" : "messageId";
      const key = `${subject} ${event[name]}`;
      const owner = subagentRunId === undefined ? {} : { subagentRunId };
      if (action === "END") this.#open.delete(key);
      else this.#open.set(key, { type: `${subject}_END`, [name]: event[name], ...owner });
    }
    yield event;
  }
}
