// Talks to the server: one function per request, and event streams that resume by id.
import { signal } from "./view.js";
import { parse } from "./json.js";

const KEY = "agents-tools-token";
const FIRST_PAUSE = 250;
let token = "";

/** Whether the server answers; `retry` is set while a stream waits to try again. */
export const link = signal({ lost: false });

/** An answer that is not a success. `code` and `faults` are what the server says about it. */
export class ApiError extends Error {
  /** @param {number} status @param {{message?: string, code?: string, faults?: object[]}} error */
  constructor(status, error) {
    super(error.message || `The server answered ${status}.`);
    this.status = status;
    this.code = error.code;
    this.faults = error.faults;
  }
}

/** Takes the token out of the address, so that it is neither bookmarked nor shared. */
export function readToken() {
  const found = new URLSearchParams(location.hash.slice(1)).get("token");
  if (found) {
    setToken(found);
    history.replaceState(null, "", location.pathname + location.search);
  }
  token = sessionStorage.getItem(KEY) || "";
}

/** @param {string} value */
export function setToken(value) {
  sessionStorage.setItem(KEY, (token = value));
}

/** @param {string} path @param {RequestInit} [options] */
async function request(path, options = {}) {
  const headers = { authorization: `Bearer ${token}` };
  if (options.body) headers["content-type"] = "application/json";
  const response = await fetch(`api/${path}`, { ...options, headers });
  if (response.ok) return response;
  const told = await response.json().catch(() => ({}));
  throw new ApiError(response.status, told.error || {});
}

const get = async (path) => parse(await (await request(path)).text());
const send = async (path, body, method = "POST") => {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  const response = await request(path, { method, body: text });
  return response.status === 204 ? null : response.json();
};
const name = encodeURIComponent;

export const info = () => get("info");
export const tools = () => get("tools");
export const views = (tool) => get(`tools/${name(tool)}/views`);
export const runs = (before) => get(`runs?limit=50${before ? `&before=${name(before)}` : ""}`);
export const run = (id) => get(`runs/${name(id)}`);
export const exported = (id, as) => get(`runs/${name(id)}/export?as=${as}`);
export const tracebacks = async (id) => (await get(`runs/${name(id)}/tracebacks`)).tracebacks;
export const requests = async (id) => (await get(`runs/${name(id)}/requests`)).requests;
export const prompt = (id, number) => get(`runs/${name(id)}/requests/${number}`);
export const session = (id, limit) => get(`sessions/${name(id)}?limit=${limit}`);
export const resume = (id) => send(`runs/${name(id)}/resume`, {});
export const cancel = (id) => send(`runs/${name(id)}/cancel`, {});
export const cancelCall = (id, call) => send(`runs/${name(id)}/calls/${name(call)}/cancel`, {});
export const decide = (id, decisions) => send(`runs/${name(id)}/approvals`, { decisions });
export const rerun = (id) => send(`runs/${name(id)}/rerun`, {});
export const forget = (id) => request(`runs${id ? `/${name(id)}` : ""}`, { method: "DELETE" });

/** The arguments go out as the text that was written, so that no number is changed on the way. */
export const check = (tool, text) => send(`tools/${name(tool)}/check`, `{"arguments":${text}}`);
export const startTool = (tool, text, confirmed) =>
  send("runs", `{"kind":"tool","name":${JSON.stringify(tool)},"confirmed":${confirmed},"arguments":${text}}`);
export const agent = (agent) => get(`agents/${name(agent)}`);
/** @param {{instructions?: string, model?: string}} changes What is different from the agent in the code. */
export const startAgent = (agent, input, session, changes) =>
  send("runs", { kind: "agent", name: agent, input, session, ...changes });

/**
 * Follows the events of a run until it ends, through lost connections.
 * @param {string} id
 * @param {number} after The id of the last event that is known; -1 for none.
 * @param {(event: object) => boolean} onEvent Says whether the run has ended with this event.
 * @param {AbortSignal} signal
 */
export function watchRun(id, after, onEvent, signal) {
  return follow((last) => `runs/${name(id)}/events?after=${last}`, after, onEvent, signal);
}

/**
 * Follows the changes of the target's files.
 * @param {number} generation
 * @param {(change: {generation: number}) => void} onChange
 */
export function watchChanges(generation, onChange) {
  let known = generation;
  const seen = (change) => {
    known = change.generation;
    onChange(change);
    return false;
  };
  return follow(() => `changes?generation=${known}`, -1, seen, new AbortController().signal);
}

/** Reads a stream again and again from where it broke off, until `onEvent` says that it is over. */
async function follow(path, after, onEvent, signal) {
  let last = after;
  let wait = FIRST_PAUSE;
  const take = (frame) => {
    if (frame.id !== undefined && frame.id <= last) return false;
    last = frame.id ?? last;
    wait = 0;
    return onEvent(frame.data);
  };
  while (!signal.aborted) {
    try {
      const response = await request(path(last), { signal });
      link.value = { lost: false };
      if (response.status === 204) return;
      for await (const frame of frames(response.body)) if (take(frame)) return;
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof ApiError && error.status < 500) throw error;
      link.value = { lost: true };
    }
    if (wait) await pause(wait, signal);
    wait = Math.min(wait * 2 || FIRST_PAUSE, 4000);
  }
}

/** Waits; ends early when somebody asks for another try. */
function pause(time, signal) {
  const over = new AbortController();
  return new Promise((done) => {
    const timer = setTimeout(done, time);
    const listen = { signal: over.signal };
    signal.addEventListener("abort", done, listen);
    addEventListener("online", done, listen);
    addEventListener("agents-tools-retry", done, listen);
    over.signal.onabort = () => clearTimeout(timer);
  }).finally(() => over.abort());
}

export const retryNow = () => dispatchEvent(new Event("agents-tools-retry"));

/** Cuts a body of server-sent events into frames. */
async function* frames(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let pieces = []; // of a frame whose end is still to come: a large one has thousands
  let last = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      pieces.push(value);
      const isWhole = (last + value).includes("\n\n");
      last = value.at(-1) ?? last;
      if (!isWhole) continue;
      const parts = pieces.join("").split("\n\n");
      pieces = [parts.pop()];
      for (const part of parts) {
        const frame = parseFrame(part);
        if (frame) yield frame;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

/** @param {string} text @returns {{id?: number, data: any} | null} */
export function parseFrame(text) {
  let id;
  const at = text.indexOf("\ndata:");
  if (at >= 0 && text.indexOf("\n", at + 1) < 0 && text.startsWith("id:")) {
    const head = text.slice(0, text.indexOf("\n")); // the usual frame, whose data can be large
    return { id: Number(head.slice(head.lastIndexOf(":") + 1)), data: JSON.parse(text.slice(at + 6)) };
  }
  const data = [];
  for (const line of text.split("\n")) {
    if (line.startsWith("data:")) data.push(line.slice(5));
    else if (line.startsWith("id:")) id = Number(line.slice(line.lastIndexOf(":") + 1));
  }
  return data.length ? { id, data: JSON.parse(data.join("\n")) } : null;
}
