// Talks to the server: one function per request, and event streams that resume by id.
import { signal } from "./view.js";
import { parse } from "./json.js";
import { ApiError, follow as followStream } from "../../../js/client/src/stream.ts";

export { ApiError };
export { retryNow } from "../../../js/client/src/stream.ts";

const KEY = "agents-tools-token";
let token = "";

/** Whether the server answers; `retry` is set while a stream waits to try again. */
export const link = signal({ lost: false });

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
  const text = typeof body === "string" || body instanceof Blob ? body : JSON.stringify(body);
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
export const file = async (id, number) => (await request(`runs/${name(id)}/files/${number}`)).blob();
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
/**
 * The data of files is not read again on its way out: it can have megabytes.
 * @param {{name: string, data: string}[]} files With their content in base64.
 * @param {{instructions?: string, model?: string}} changes What is different from the agent in the code.
 */
export function startAgent(agent, input, files, session, changes) {
  const rest = JSON.stringify({ kind: "agent", name: agent, input, session, ...changes }).slice(0, -1);
  const written = files.flatMap(({ name: file, data }, index) => [
    `${index ? "," : ""}{"name":${JSON.stringify(file)},"data":"`,
    data,
    '"}',
  ]);
  return send("runs", new Blob([rest, ',"files":[', ...written, "]}"]));
}

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

/** Reads a stream through lost connections, until `onEvent` says that it is over. */
async function follow(path, after, onEvent, signal) {
  const open = (last, stopped) => request(path(last), { signal: stopped });
  const onLost = (lost) => (link.value = { lost });
  for await (const event of followStream(open, { after, signal, onLost })) if (onEvent(event)) return;
}
