// What the page knows of the target: its tools and agents, what is selected, and the drafts.
import { signal } from "./view.js";
import * as api from "./api.js";
import { Draft } from "./draft.js";
import { say } from "./ui.js";

/** loading, ready, token (none that is accepted) or failed. */
export const phase = signal("loading");
export const failure = signal("");
export const info = signal({
  name: "",
  version: "",
  target: "",
  problems: [],
  generation: 0,
  history: false,
});
export const tools = signal([]);
export const agents = signal([]);
/** @type {import("./view.js").Signal<{kind: "tool"|"agent", name: string} | null>} */
export const selected = signal(null);
/** What the last reload changed, in words; null when there is nothing to tell. */
export const reloaded = signal(null);
/** Which pane a narrow screen shows, which view the right pane shows and which the middle. */
export const pane = signal("tools");
/** Whether the screen shows one pane at a time. */
export const narrow = signal(false);
export const side = signal("run");
export const middle = signal("arguments");

/** What is selected, as the target has it now. @param {"tool"|"agent"} kind */
export const current = (kind) =>
  selected.value?.kind === kind
    ? (kind === "tool" ? tools : agents).value.find((one) => one.name === selected.value.name)
    : undefined;

/** Whether the page has a store and no target: then the history is a pane of its own. */
export const onlyRuns = () => info.value.store && !tools.value.length && !agents.value.length;

const drafts = new Map();
const inputs = new Map();

/** @param {{name: string, schema: object}} of @returns {Draft} */
export function draftOf(of) {
  const known = drafts.get(of.name);
  if (known) return known;
  const draft = new Draft(of.name, of.schema);
  drafts.set(of.name, draft);
  const before = savedTexts()[`tool ${of.name}`];
  if (before !== undefined) draft.setText(before);
  const isSecret = JSON.stringify(of.schema).includes('"password"');
  if (!isSecret) draft.onEdit = () => saveText(`tool ${of.name}`, draft.text.value);
  return draft;
}

/** What is being written to an agent. @param {string} name */
export function inputOf(name) {
  if (!inputs.has(name)) inputs.set(name, signal(savedTexts()[`agent ${name}`] ?? ""));
  return inputs.get(name);
}

/** @param {string} name @param {string} text */
export function setInput(name, text) {
  inputOf(name).value = text;
  saveText(`agent ${name}`, text);
}

// What is written survives a reload of the page, in this tab only.
const LONGEST = 100_000;
const place = () => `agents-tools-drafts ${info.value.target}`;
const savedTexts = () => JSON.parse(sessionStorage.getItem(place()) ?? "{}");
let saving;
const unsaved = new Map();

function saveText(key, text) {
  unsaved.set(key, text);
  clearTimeout(saving);
  saving = setTimeout(saveAll, 300);
}

function saveAll() {
  const saved = savedTexts();
  unsaved.forEach((text, key) => {
    if (text && text.length < LONGEST) saved[key] = text;
    else delete saved[key];
  });
  unsaved.clear();
  try {
    sessionStorage.setItem(place(), JSON.stringify(saved));
  } catch {
    sessionStorage.removeItem(place()); // there is no room for them
  }
}
addEventListener("pagehide", saveAll);

/** Sets parts of the address, so that a reload and a link show the same. @param {Record<string, string | null>} parts */
export function setAddress(parts) {
  const params = new URLSearchParams(location.search);
  for (const [name, value] of Object.entries(parts))
    if (value === null) params.delete(name);
    else params.set(name, value);
  history.replaceState(null, "", `?${params}`);
}

/** The address of an event of a run. @param {string} run @param {number} event @param {"run"|"timeline"} view Where it is shown. */
export function linkTo(run, event, view) {
  const params = new URLSearchParams(location.search);
  params.set("run", run);
  params.set("event", event);
  if (view === "timeline") params.set("view", view);
  else params.delete("view");
  return `${location.origin}${location.pathname}?${params}`;
}

/** The tool or agent in the address, if there is one. */
function addressed() {
  const params = new URLSearchParams(location.search);
  for (const [kind, list] of [["tool", tools.value], ["agent", agents.value]]) {
    const name = params.get(kind);
    if (list.some((one) => one.name === name)) return { kind, name };
  }
  return null;
}

/** @param {"tool"|"agent"} kind @param {string} name */
export function select(kind, name) {
  selected.value = { kind, name };
  setAddress({ tool: null, agent: null, [kind]: name });
  pane.value = "edit";
}

/** Something failed that no field is to blame for. */
export const trouble = signal("");

/** Runs something that asks the server, and shows it when that fails. */
export async function attempt(action) {
  trouble.value = "";
  try {
    return await action();
  } catch (error) {
    if (error instanceof api.ApiError && error.status === 401) phase.value = "token";
    trouble.value = error instanceof api.ApiError ? error.message : "The server cannot be reached.";
    say(trouble.value);
    return undefined;
  }
}

async function load() {
  const [about, listed] = await Promise.all([api.info(), api.tools()]);
  info.value = about;
  tools.value = listed.tools;
  agents.value = listed.agents;
  phase.value = "ready";
  const first = listed.tools[0];
  const agent = listed.agents[0];
  selected.value ??= addressed();
  if (!selected.value && first) selected.value = { kind: "tool", name: first.name };
  else if (!selected.value && agent) selected.value = { kind: "agent", name: agent.name };
  if (onlyRuns()) pane.value = "edit";
}

/** Loads everything and then follows the changes of the files. */
export async function start() {
  try {
    await load();
  } catch (error) {
    phase.value = error.status === 401 ? "token" : "failed";
    failure.value = error instanceof api.ApiError ? error.message : "The server cannot be reached.";
    return;
  }
  document.title = `${info.value.target || info.value.name} · playground`;
  attempt(() => api.watchChanges(info.value.generation, reload));
}

async function reload({ generation, problems }) {
  const before = new Map([...tools.value, ...agents.value].map((one) => [one.name, JSON.stringify(one)]));
  if (problems.length) info.value = { ...info.value, generation, problems };
  else if ((await attempt(async () => (await load(), true))) === undefined) return;
  const changed = [...tools.value, ...agents.value]
    .filter((one) => before.get(one.name) !== JSON.stringify(one))
    .map((one) => one.name);
  const gone = [...before.keys()].filter(
    (name) => ![...tools.value, ...agents.value].some((one) => one.name === name),
  );
  const told = [
    changed.length && `changed: ${changed.join(", ")}`,
    gone.length && `gone: ${gone.join(", ")}`,
  ].filter(Boolean);
  reloaded.value = problems.length ? null : `Reloaded. ${told.join("; ") || "No tool changed."}`;
  say(problems.length ? "The file has problems" : reloaded.value);
}
