// One function for each request of the protocol of `sse.app` and `handle_run`.
import type { Decision, Run, RunEvent } from "./protocol.js";
import { ApiError, checked, follow, pause, reportFound, reportLost, type FollowOptions } from "./stream.js";

/** Where the server is, and how to ask it. */
export interface Endpoint {
  /** The address of the app or of the route, without the path of a request, such as `/agent`. */
  url: string;
  /** Headers of each request, such as a token, or a function that returns them. */
  headers?: HeadersInit | (() => HeadersInit | Promise<HeadersInit>);
  /** Whether to send cookies to another origin; see `fetch`. */
  credentials?: RequestCredentials;
  /** Used in place of the browser's `fetch`. */
  fetch?: typeof fetch;
}

/** What to run: the input of an agent, or a call of a tool. */
export type RunRequest = { run_id?: string; thread_id?: string } & (
  | { input: string | { [key: string]: unknown }[] }
  | { tool: string; arguments?: { [key: string]: unknown } }
);

export interface RequestOptions {
  signal?: AbortSignal;
  /** Called when the server cannot be reached, and when it is back. */
  onLost?: (lost: boolean) => void;
}

const name = encodeURIComponent;

async function send(endpoint: Endpoint, path: string, init: RequestInit = {}): Promise<Response> {
  const { url, headers, credentials } = endpoint;
  if (typeof url !== "string" || /^[\w.-]+:\d/.test(url)) {
    const message = `Option 'url': expected an address such as "/agent" or "http://localhost:8000", got ${JSON.stringify(url)}.`;
    throw new ApiError(0, { message }); // it would be a lost connection for ever
  }
  const own = new Headers(typeof headers === "function" ? await headers() : headers);
  new Headers(init.headers).forEach((value, key) => own.set(key, value));
  const ask = endpoint.fetch ?? fetch;
  const address = url.replace(/\/$/, "") + path;
  try {
    const response = await ask(address, { ...init, headers: own, ...(credentials && { credentials }) });
    if (GATEWAY.includes(response.status)) reportLost(url, address, `status ${response.status}`);
    else reportFound(url);
    return response;
  } catch (error) {
    if (error instanceof TypeError) reportLost(url, address, error.message);
    throw error;
  }
}

/** What a proxy answers when it does not reach the server. */
const GATEWAY = [502, 504];

const get = async <T>(endpoint: Endpoint, path: string, signal?: AbortSignal): Promise<T> =>
  (await checked(await send(endpoint, path, { signal }))).json();

/**
 * Posts JSON, again and again while the server cannot be reached. `known` says what to return if the server refuses
 * a repetition because an earlier try has arrived.
 */
async function post<T>(
  endpoint: Endpoint,
  path: string,
  body: object,
  { signal, onLost }: RequestOptions = {},
  { headers = {}, known }: { headers?: Record<string, string>; known?: () => Promise<T> } = {},
): Promise<T> {
  const json = { "content-type": "application/json", ...headers };
  for (let wait = 250, tries = 0; ; wait = Math.min(wait * 2, 4_000), tries++) {
    try {
      const response = await send(endpoint, path, {
        method: "POST",
        headers: json,
        body: JSON.stringify(body),
        signal,
      });
      const result = await (await checked(response)).json();
      if (tries) onLost?.(false);
      return result;
    } catch (error) {
      const status = error instanceof ApiError ? error.status : 0;
      if (status === 409 && tries && known) return known();
      const isUnreached = error instanceof TypeError || GATEWAY.includes(status);
      if (signal?.aborted || !isUnreached) throw error;
      onLost?.(true);
      await pause(wait, signal);
      signal?.throwIfAborted();
    }
  }
}

/**
 * Starts a run in the background, exactly once: it is tried again with the same id while the server cannot be
 * reached.
 */
export function startRun(endpoint: Endpoint, request: RunRequest, options?: RequestOptions): Promise<Run> {
  const run_id = request.run_id ?? newId();
  const known = () => getRun(endpoint, run_id, options?.signal);
  return post(endpoint, "/runs", { ...request, run_id }, options, {
    headers: { prefer: "respond-async" },
    known,
  });
}

/** Returns the state of a run. */
export const getRun = (endpoint: Endpoint, id: string, signal?: AbortSignal): Promise<Run> =>
  get(endpoint, `/runs/${name(id)}`, signal);

/** Returns the newest runs of the caller. */
export const listRuns = async (endpoint: Endpoint, signal?: AbortSignal): Promise<Run[]> =>
  (await get<{ runs: Run[] }>(endpoint, "/runs", signal)).runs;

/** Yields the events of a run, each one once, until it has ended or waits for a decision. */
export const followRun = (endpoint: Endpoint, id: string, options?: FollowOptions) =>
  follow<RunEvent>(
    (after, signal) => send(endpoint, `/runs/${name(id)}/events?after=${after}`, { signal }),
    options,
  );

/** Decides about calls that wait. After the last decision, the run continues. */
export const decide = (
  endpoint: Endpoint,
  id: string,
  decisions: Decision[],
  options?: RequestOptions,
): Promise<Pick<Run, "status" | "approvals">> =>
  post(endpoint, `/runs/${name(id)}/approvals`, { decisions }, options, {
    known: () => getRun(endpoint, id, options?.signal),
  });

type Cancelled = { cancelled: boolean; status: Run["status"] };

/** Cancels a run. */
export const cancelRun = (endpoint: Endpoint, id: string, reason = "", options?: RequestOptions) =>
  post<Cancelled>(endpoint, `/runs/${name(id)}/cancel`, { reason }, options);

/** Cancels one call of a run, also inside a sub-agent. The run continues. */
export const cancelCall = (endpoint: Endpoint, id: string, callId: string, options?: RequestOptions) =>
  post<Cancelled>(endpoint, `/runs/${name(id)}/calls/${name(callId)}/cancel`, {}, options);

/** Continues a run whose server has ended. */
export const resumeRun = (endpoint: Endpoint, id: string, options?: RequestOptions) =>
  post<{ status: Run["status"] }>(endpoint, `/runs/${name(id)}/resume`, {}, options);

/** Returns a random id. `crypto.randomUUID` exists on pages from HTTPS and from this machine only. */
const newId = () =>
  "run_" + [...crypto.getRandomValues(new Uint8Array(16))].map((one) => one.toString(16).padStart(2, "0")).join("");
