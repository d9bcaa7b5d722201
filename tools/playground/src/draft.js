// The arguments that are being written for one tool: as a value, as text, and what is wrong with them.
import { signal } from "./view.js";
import * as api from "./api.js";
import { pretty, read } from "./json.js";
import { initial } from "./schema.js";

const PAUSE = 350;

/** @typedef {{path: (string|number)[], message: string, expected?: string, got?: string}} Fault */

export class Draft {
  /** @param {string} tool @param {object} schema */
  constructor(tool, schema) {
    this.tool = tool;
    this.value = signal(initial(schema, schema));
    this.text = signal(pretty(this.value.value));
    /** Where the text is not JSON; the value is then the last one that was. */
    this.broken = signal(null);
    /** What stands in boxes of the form though it is not JSON, by the id of the field. */
    this.boxes = signal({});
    /** @type {import("./view.js").Signal<Fault[]>} */
    this.faults = signal([]);
    /** What a check said: null before one, then `ok` or what the model would be told. */
    this.verdict = signal(null);
    this.edits = 0;
  }

  /** The form wrote a value. */
  setValue(value) {
    this.value.value = value;
    this.text.value = pretty(value);
    this.broken.value = null;
    this.#edited();
  }

  /** The editor wrote a text; it is kept whatever it is. */
  setText(text) {
    const { value, fault } = read(text);
    this.text.value = text;
    this.broken.value = fault ?? null;
    if (!fault) this.value.value = value;
    this.#edited();
  }

  /** Takes up arguments from elsewhere: an example, a past run. */
  load(value) {
    this.setValue(value);
    this.settle([], null);
  }

  /** Goes back from a broken text to the last value. */
  discardText() {
    this.setValue(this.value.value);
  }

  setBox(id, fault) {
    const { [id]: old, ...rest } = this.boxes.value;
    if (fault || old) this.boxes.value = fault ? { ...rest, [id]: fault } : rest;
  }

  /** @param {Fault[]} faults */
  settle(faults, verdict) {
    this.faults.value = faults.map((fault) => ({
      ...fault,
      path: known(fault.path, this.value.value),
    }));
    this.verdict.value = verdict;
  }

  /** Asks the server whether the arguments would be accepted. @returns {Promise<boolean>} */
  async check() {
    const edits = this.edits;
    const answer = await api.check(this.tool, this.text.value);
    if (edits === this.edits) this.settle(answer.faults ?? [], answer.ok ? "ok" : answer.message);
    return answer.ok;
  }

  /** Once something was checked, it is checked again after each edit. */
  #edited() {
    this.edits += 1;
    this.onEdit?.();
    clearTimeout(this.timer);
    if (this.verdict.value === null) return;
    if (this.verdict.value === "ok") this.verdict.value = "stale";
    if (!this.broken.value) this.timer = setTimeout(() => this.check().catch(() => {}), PAUSE);
  }
}

/** Leaves out of a path what is no key of the value, such as the tag of a union. */
function known(path, value) {
  const steps = [];
  let at = value;
  path.forEach((step, index) => {
    const there = at !== null && typeof at === "object" && (step in at || index === path.length - 1);
    if (!there) return;
    steps.push(step);
    at = at[step];
  });
  return steps;
}
