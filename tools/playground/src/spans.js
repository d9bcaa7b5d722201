// Folds the events of a run into what takes time besides the calls: requests to models and waits.

/**
 * @typedef {object} Request
 * @property {string[]} path The calls around the run that has sent it.
 * @property {number} ordinal Its number among the requests of that path, from 0.
 * @property {number} event The id of the event that it follows.
 * @property {number} from
 * @property {number | null} first When the first part of the response arrived.
 * @property {number | null} to
 * @property {boolean} seen Whether an event shows that there was one; until then it is expected.
 * @property {{at: number, attempt: number, delay: number}[]} retries
 */

const keyOf = (path) => JSON.stringify(path);
const RESPONSES = new Set(["message_output_created", "reasoning_item_created", "tool_called"]);
const OUTPUTS = new Set(["tool_output", "background_result"]);

export class Spans {
  /** @type {Request[]} In the order of their start. */
  requests = [];
  /** The requests of each run, by its path; the last one can be open. */
  #byPath = new Map();
  /** The calls of each run that have no output yet. */
  #open = new Map();
  /** Per call: when the model asked for it, its waits for a person, and its failed attempts. */
  #calls = new Map();

  /** @param {string} kind Whether a tool or an agent runs: the call of a tool needs no model. */
  constructor(kind) {
    this.kind = kind;
  }

  /** @param {string[]} path @returns {Request[]} */
  requestsOf(path) {
    return this.#byPath.get(keyOf(path)) ?? [];
  }

  /** @param {string[]} path */
  callOf(path) {
    const key = keyOf(path);
    if (!this.#calls.has(key)) this.#calls.set(key, { asked: null, waits: [], attempts: [] });
    return this.#calls.get(key);
  }

  /** @param {object} event @param {number} at Seconds since 1970. */
  apply(event, at) {
    this.event = event.id;
    const path = event.path ?? [];
    if (event.type === "run_started_event") this.#expect(path, at);
    else if (event.type === "run_finished_event") this.#finish(path, event.status, at);
    else if (event.type === "raw_response_event") this.#part(path, event.data, at);
    else if (event.type === "run_item_stream_event") this.#item(path, event, at);
    else if (event.type === "tool_stream_start_event") this.#endWait(path, at);
    else if (event.type === "tool_attempt_event")
      this.callOf(path).attempts.push({ at, attempt: event.attempt, error: event.error, delay: event.delay });
  }

  #openCalls(path) {
    const key = keyOf(path);
    if (!this.#open.has(key)) this.#open.set(key, new Set());
    return this.#open.get(key);
  }

  /** A run that waits for nothing else waits for its model. */
  #expect(path, at) {
    if (this.kind === "tool" && !path.length) return;
    if (this.#openCalls(path).size || this.#current(path)) return;
    const own = this.requestsOf(path);
    this.#byPath.set(keyOf(path), own);
    const request = { path, ordinal: own.length, event: this.event, from: at, first: null, to: null, seen: false, retries: [] };
    own.push(request);
    this.requests.push(request);
  }

  #current(path) {
    const last = this.requestsOf(path).at(-1);
    return last?.to === null ? last : undefined;
  }

  #part(path, data, at) {
    const request = this.#current(path);
    if (!request) return;
    request.seen = true;
    if (data?.type === "agents_tools.retry") {
      request.first = null;
      request.retries.push({ at, attempt: data.attempt ?? 1, delay: data.delay ?? 0 });
    } else request.first ??= at;
  }

  #item(path, { name, item }, at) {
    const calls = this.#openCalls(path);
    const call = item?.call_id && this.callOf([...path, item.call_id]);
    if (RESPONSES.has(name)) {
      const request = this.#current(path);
      if (request) Object.assign(request, { seen: true, to: at });
      if (name === "tool_called") {
        calls.add(item.call_id);
        call.asked ??= at;
      }
    } else if (name === "tool_approval_requested") {
      calls.add(item.call_id);
      call.waits.push({ from: at, to: null });
    } else if (OUTPUTS.has(name)) {
      this.#endWait([...path, item.call_id], at);
      calls.delete(item.call_id);
      this.#expect(path, at);
    }
  }

  #endWait(path, at) {
    this.callOf(path).waits.forEach((wait) => (wait.to ??= at));
  }

  /** A run that ends well does not ask its model again. */
  #finish(path, status, at) {
    const request = this.#current(path);
    if (!request) return;
    if (request.seen || status === "error" || status === "cancelled") request.to = at;
    else {
      this.requestsOf(path).pop();
      this.requests = this.requests.filter((one) => one !== request);
    }
  }
}
