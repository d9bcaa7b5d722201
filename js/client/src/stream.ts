// Reads server-sent events through lost connections.

/** An answer that is not a success. */
export class ApiError extends Error {
  /** The HTTP status. */
  status: number;
  /** What a program can tell the error by, if the server sends it. */
  code?: string;
  /** The faults of arguments, if the server sends them. */
  faults?: unknown[];

  constructor(status: number, error: { message?: string; code?: string; faults?: unknown[] } = {}) {
    super(error.message || `The server answered ${status}.`);
    this.status = status;
    this.code = error.code;
    this.faults = error.faults;
  }
}

/** Returns an answer that is a success. Throws an `ApiError` for any other, and for a page. */
export async function checked(response: Response): Promise<Response> {
  const { status, headers, url } = response;
  const isPage = headers.get("content-type")?.startsWith("text/html"); // of a development server, for unknown paths
  if (response.ok && !isPage) return response;
  const body = await response.json().catch(() => null);
  if (body?.error?.message) throw new ApiError(status, body.error);
  const detail = typeof body?.detail === "string" && body.detail; // of FastAPI
  const isOwn = detail && ![401, 404, 405].includes(status);
  const found = isPage ? "a page (text/html)" : `status ${status}${detail ? ` (${detail})` : ""}`;
  throw new ApiError(status, {
    message: isOwn
      ? detail
      : `${url}: expected an endpoint of agents-tools, got ${found}. ` +
        "Check the options 'url' and 'headers', and the proxy.",
  });
}

/** Whether to try a request again: the server could not be reached, or has failed. */
export const isTransient = (error: unknown): boolean =>
  error instanceof ApiError ? error.status >= 500 : !(error instanceof SyntaxError);

/** The endpoints that do not answer. */
const unreachable = new Set<string>();

/** Writes to the console, once until the server answers, what to check: browsers do not tell pages the cause. */
export function reportLost(endpoint: string, address: string, found: string): void {
  if (unreachable.has(endpoint)) return;
  unreachable.add(endpoint);
  const { origin } = globalThis.location ?? {};
  console.warn(
    `[agents-tools] ${address}: no answer (${found}). Trying again. Check that the server is started, and that the ` +
      `protocol, the host and the port are right. If the address has another origin than the page, check that the ` +
      `server allows ${origin}: see its log, and 'allowed_origins'.`,
  );
}

export const reportFound = (endpoint: string): boolean => unreachable.delete(endpoint);

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

const FIRST_PAUSE = 250;
const LAST_PAUSE = 4_000;
const SILENCE = 45_000; // three heartbeats of the server

/**
 * Yields the data of events from a stream, each one once, until the server has no more (status 204). After a lost
 * connection it continues behind the last event.
 *
 * @param open Requests the events behind the one with this id.
 * @throws ApiError The server refuses the request; after a status from 500 on, it is tried again.
 */
export async function* follow<T = unknown>(
  open: (after: number, signal: AbortSignal) => Promise<Response>,
  { after = -1, signal, onLost, silence = SILENCE }: FollowOptions = {},
): AsyncGenerator<T, void, undefined> {
  let wait = 0;
  while (!signal?.aborted) {
    const watchdog = new Watchdog(silence, signal);
    try {
      const response = await checked(await open(after, watchdog.signal));
      onLost?.(false);
      if (response.status === 204 || !response.body) return;
      for await (const { id, data } of frames(response.body, watchdog)) {
        if (id !== undefined && id <= after) continue;
        after = id ?? after;
        wait = 0;
        yield data as T;
      }
    } catch (error) {
      if (signal?.aborted) return;
      if (!isTransient(error)) throw error;
      onLost?.(true);
      wait ||= FIRST_PAUSE;
    } finally {
      watchdog.stop();
    }
    if (wait) await pause(wait, signal);
    wait = Math.min(wait * 2 || FIRST_PAUSE, LAST_PAUSE);
  }
}

/** Waits. Ends early when a signal is aborted, the network is back, or `retryNow` is called. */
export function pause(time: number, ...signals: (AbortSignal | undefined)[]): Promise<void> {
  const over = new AbortController();
  return new Promise<void>((done) => {
    const timer = setTimeout(done, time);
    const listen = { signal: over.signal };
    for (const signal of signals) {
      signal?.addEventListener("abort", () => done(), listen);
      if (signal?.aborted) done();
    }
    for (const name of ["online", RETRY]) globalThis.addEventListener?.(name, () => done(), listen);
    over.signal.onabort = () => clearTimeout(timer);
  }).finally(() => over.abort());
}

const RETRY = "agents-tools-retry";

/** Ends all pauses between tries. */
export const retryNow = (): boolean => dispatchEvent(new Event(RETRY));

/** Aborts a request from which no data comes. */
export class Watchdog {
  #abort = new AbortController();
  #timer?: ReturnType<typeof setTimeout>;
  #silence: number;

  constructor(silence: number = SILENCE, signal?: AbortSignal) {
    this.#silence = silence;
    signal?.addEventListener("abort", () => this.#abort.abort(), { signal: this.signal });
    this.seen();
  }

  get signal(): AbortSignal {
    return this.#abort.signal;
  }

  seen(): void {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#abort.abort(), this.#silence);
  }

  stop(): void {
    clearTimeout(this.#timer);
    this.#abort.abort(); // closes the connection of a reader that has left
  }
}

/** Returns a `fetch` whose bodies fail like those of a lost network after a time without data. */
export function watched(ask: typeof fetch): typeof fetch {
  return async (input, init) => {
    const response = await ask(input, init);
    if (!response.body || response.status === 204) return response; // Chromium can give it a body
    const reader = response.body.getReader();
    const body = new ReadableStream<Uint8Array>({
      async pull(controller) {
        let isSilent = false;
        const timer = setTimeout(() => {
          isSilent = true;
          void reader.cancel();
        }, SILENCE);
        const { value, done } = await reader.read().finally(() => clearTimeout(timer));
        if (isSilent) controller.error(new TypeError("No data from the server."));
        else if (done) controller.close();
        else controller.enqueue(value);
      },
      cancel: (reason) => reader.cancel(reason),
    });
    return new Response(body, response);
  };
}

/** Cuts a body of server-sent events into frames. */
export async function* frames(body: ReadableStream<Uint8Array>, watchdog: Watchdog) {
  const reader = body.pipeThrough(new TextDecoderStream() as ReadableWritablePair<string, Uint8Array>).getReader();
  let pieces: string[] = []; // of a frame whose end is still to come: a large one has hundreds
  let last = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      watchdog.seen();
      if (done) return;
      pieces.push(value);
      const isWhole = (last + value).includes("\n\n");
      last = value.at(-1) ?? last;
      if (!isWhole) continue;
      const parts = pieces.join("").split("\n\n");
      pieces = [parts.pop() ?? ""];
      for (const part of parts) {
        const frame = parseFrame(part);
        if (frame) yield frame;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** Returns the id and the data of a frame; `null` for a comment. */
export function parseFrame(text: string): { id?: number; data: unknown } | null {
  let id: number | undefined;
  const data: string[] = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(5));
    else if (line.startsWith("id:")) id = Number(line.slice(line.lastIndexOf(":") + 1));
  }
  return data.length ? { id, data: JSON.parse(data.join("\n")) } : null;
}
