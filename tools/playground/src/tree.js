// The live tree of a run: agents, calls and what they say, each part drawn when it changes.
import { useSignal } from "./view.js";
import * as api from "./api.js";
import { isOver } from "../../../js/client/src/tree.ts";
import { Files } from "./attachments.js";
import { brief, pretty, same } from "./json.js";
import { Output } from "./results.js";
import { MOST_CALLS, cancelCall, chosen, copyLink, now } from "./runs.js";
import { attempt } from "./state.js";
import { Badge, Code, Icon, IconButton, Status, download, duration } from "./ui.js";

/** @param {{view: import("./runs.js").RunView}} props */
export function Tree({ view }) {
  const { root } = view.tree;
  view.changed(root).value;
  const calls = root.items.filter((item) => item.type === "call");
  const alone = view.kind === "tool";
  if (alone && !calls.length)
    return html`<p class="note">${isOver(root) ? "No call was made." : "Starting…"}</p>`;
  /** The icon behind an event is no element of its own, because a run can have many events. */
  const copyOf = ({ target }) => {
    if (target.matches(".event")) copyLink(view, Number(target.dataset.event), "run"); // false would stop the click
  };
  return html`<div role="tree" class="tree" aria-label="Calls of this run" onKeyDown=${walk} onClick=${copyOf}>
    ${
      alone
        ? calls.map(
            ({ node }, index) =>
              html`<${Call} key=${node.key} view=${view} node=${node} level=${1} first=${index === 0} />`,
          )
        : html`<${Call} view=${view} node=${root} level=${1} first=${true} />`
    }
  </div>`;
}

const STOPS = "[role=treeitem], .event";

/** The keys of a tree: arrows move among calls, J and K among events, too. Inside of an item they are left alone. */
function walk(event) {
  const from = event.target;
  if (!from.matches(STOPS) || event.ctrlKey || event.metaKey || event.altKey) return;
  const all = [...event.currentTarget.querySelectorAll(STOPS)];
  const at = all.indexOf(from);
  const isCall = (item) => item.matches("[role=treeitem]");
  const open = from.getAttribute("aria-expanded") === "true";
  const toggle = () => from.querySelector(".toggle")?.click();
  const moves = {
    ArrowDown: () => all.slice(at + 1).find(isCall),
    ArrowUp: () => all.slice(0, at).findLast(isCall),
    j: () => all[at + 1],
    k: () => all[at - 1],
    Home: () => all[0],
    End: () => all.findLast(isCall),
    ArrowRight: () => (open ? from.querySelector("[role=treeitem]") : toggle()),
    ArrowLeft: () => (open ? toggle() : from.parentElement.closest("[role=treeitem]")),
    Enter: toggle,
    c: () => (from.matches(".event") ? from : from.querySelector(".anchor")).click(),
  };
  if (!moves[event.key]) return;
  event.preventDefault();
  const to = moves[event.key]();
  if (!to) return;
  all.forEach((item) => (item.tabIndex = item === to ? 0 : -1));
  to.focus();
}

const FAILED = new Set(["tool_error", "invalid_args", "timeout", "denied", "overloaded", "lost"]);

/** How many of the calls within one start open. */
const MOST_OPEN = 30;

const described = new WeakMap();

/** A call within another; the same description each time, so that only changed ones are drawn. */
function describe(node, view, level, open) {
  if (!described.has(node))
    described.set(node, html`<${Call} key=${node.key} ...${{ view, node, level, open }} />`);
  return described.get(node);
}

function Call({ view, node, level, first, open: before = true }) {
  const { open: opened, most } = view.shownAs(node, before);
  const open = opened.value;
  const calls = node.items.filter((item) => item.type === "call");
  const hidden = Math.max(0, Math.ceil((calls.length - most.value) / 50) * 50);
  const begin = hidden && node.items.indexOf(calls[hidden]);
  view.changed(node).value;
  const id = view.idOf(node);
  const isRoot = node === view.tree.root;
  return html`<div role="treeitem" class="call" aria-expanded=${open} aria-level=${level} aria-labelledby=${id}
        tabindex=${first ? 0 : -1}>
    <div class="row ${isChosen(view, node.event) ? "chosen" : ""}" id=${id}>
      <button type="button" class="toggle" tabindex="-1" aria-hidden="true" onClick=${() => (opened.value = !open)}>
          <${Icon} name="chevron" /></button>
      <span class="name">${isRoot ? view.name : node.name}</span>
      ${node.agent && html`<${Badge}>${isRoot ? "agent" : `agent ${node.agent}`}</${Badge}>`}
      <span class="args">${node.args === undefined ? node.draft : brief(node.args, 120)}</span>
      <${Status} status=${node.status} />
      <${Took} node=${node} view=${view} />
      ${
        !isRoot &&
        node.status === "running" &&
        html`<${IconButton} icon="close" label="Cancel ${node.name}" onClick=${() => cancelCall(view, node)} />`
      }
      <${Anchor} view=${view} event=${node.event} />
    </div>
    ${
      open &&
      html`<div class="body">
      <${Progress} node=${node} />
      ${Object.entries(node.earlier).map(
        ([type, count]) => count > 0 && html`<p class="note">${count.toLocaleString()} earlier ${type}s</p>`,
      )}
      ${
        hidden > 0 &&
        html`<button type="button" class="small" onClick=${() => (most.value += MOST_CALLS)}>
          Show earlier (${hidden.toLocaleString()})</button>`
      }
      ${grouped(node.items.filter((item, index) => index >= begin || item.type === "delta")).map((item) =>
        describeItem(item, view, level, !isOver(node)),
      )}
      ${node.error && html`<p class="line level-error"><b>failed</b> ${node.error}</p>`}
      ${
        FAILED.has(node.status) &&
        typeof node.output === "string" &&
        html`<p class="line level-error">
          <b>error</b> ${node.output}</p>`
      }
      ${(node.status === "tool_error" || node.error) && html`<${Traceback} view=${view} node=${node} />`}
      ${!isRoot && isOver(node) && html`<${Details} node=${node} />`}
    </div>`
    }
  </div>`;
}

/** How long it took, or has been taking. */
export function Took({ node, view }) {
  view.changed(node).value;
  if (node.start === null) return null;
  const seconds =
    node.duration ?? (node.end ?? Math.max(now.value + view.tree.ahead, node.start)) - node.start;
  return html`<span class="took">${duration(seconds)}</span>`;
}

function Progress({ node }) {
  if (!node.progress || (isOver(node) && node.status === "ok" && !node.progress.total)) return null;
  const { current, total, message } = node.progress;
  const share = total ? Math.max(0, Math.min(1, current / total)) : null;
  const text = total ? `${current} of ${total}` : `${current}`;
  return html`<div class="progress">
    <div class="bar ${share === null ? "open" : ""}" role="progressbar" aria-label="Progress of ${node.name}"
        aria-valuemin="0" aria-valuemax=${total ?? undefined}
      aria-valuenow=${total ? current : undefined} aria-valuetext=${message ? `${text}, ${message}` : text}>
      <div style=${{ width: `${(share ?? 1) * 100}%` }} />
    </div>
    <span class="note">${message ?? ""}</span><span class="note count">${text}</span>
  </div>`;
}

/** Calls that follow each other stand in one group of the tree. */
function grouped(items) {
  const groups = [];
  for (const item of items) {
    const last = groups.at(-1);
    if (item.type !== "call") groups.push(item);
    else if (last?.type === "calls") last.nodes.push(item.node);
    else groups.push({ type: "calls", key: `after ${last?.key}`, nodes: [item.node] });
  }
  return groups;
}

const isChosen = (view, event) =>
  chosen.value?.event === event && chosen.value.run === view.id && chosen.value.view === "run";

/** Copies the link to an event. The key C does the same, so this needs no tab stop of its own. */
function Anchor({ view, event }) {
  const click = (pressed) => {
    pressed.preventDefault();
    copyLink(view, event, "run");
  };
  return html`<a class="anchor" href="?run=${view.id}&event=${event}" tabindex="-1" aria-hidden="true"
    title="Copy the link to this event" onClick=${click} />`;
}

/** These items stay as they are, so that each is drawn once. */
const FIXED = new Set(["line", "artifact", "input"]);

function describeItem(item, view, level, live) {
  const make = () => html`<${Item} key=${item.key} ...${{ item, view, level, live }} />`;
  if (!FIXED.has(item.type)) return make();
  if (!described.has(item)) described.set(item, make());
  return described.get(item);
}

function Item(props) {
  const { item, view } = props;
  const body = ITEMS[item.type](props);
  if (item.type === "calls") return body;
  const here = isChosen(view, item.event);
  return html`<div class="event of-${item.type} ${here ? "chosen" : ""}" id=${view.idOfEvent(item.event)} tabindex="-1"
    data-event=${item.event} aria-current=${here ? "true" : undefined}>${body}</div>`;
}

const cut = (item) =>
  item.cut > 0 && html`<span class="note">${item.cut.toLocaleString()} earlier characters </span>`;

const ITEMS = {
  calls: ({ item, view, level }) => html`<div role="group" class="calls">
    ${item.nodes.map((node, index) => describe(node, view, level + 1, index < MOST_OPEN))}
  </div>`,
  input: ({ item }) => html`<div class="input">${item.text && html`<p>${item.text}</p>`}
    <${Files} files=${item.files} /></div>`,
  text: ({ item, live }) =>
    html`<p class="said ${live && item.streamed ? "typing" : ""}">${cut(item)}${item.text}</p>`,
  reasoning: ({ item }) =>
    html`<details class="reasoning"><summary>Reasoning</summary><p>${cut(item)}${item.text}</p></details>`,
  delta: ({ item, live }) =>
    html`<pre class="stream" tabindex="0"><span class=${live ? "typing" : ""}>
            ${cut(item)}${item.text}</span></pre>`,
  line: ({ item }) => html`<p class="line level-${item.level}">
    ${item.level !== "info" && html`<b>${item.level}</b> `}${
      item.tag &&
      html`<span class="tag">
        ${item.tag}</span> `
    }${item.text}
  </p>`,
  artifact: Artifact,
};

const PICTURE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;

export function Artifact({ item }) {
  const { name, mime, uri } = item;
  const binary = item.data?.encoding === "base64" ? item.data.data : null;
  const text = typeof item.data === "string" ? item.data : null;
  const save = () =>
    download(
      name,
      [binary ? Uint8Array.from(atob(binary), (one) => one.charCodeAt(0)) : text],
      mime ?? "application/octet-stream",
    );
  const picture =
    PICTURE.test(mime ?? "") &&
    (binary ? `data:${mime};base64,${binary}` : text && `data:${mime},${encodeURIComponent(text)}`);
  return html`<figure class="artifact">
    ${picture && html`<img src=${picture} alt=${name} />`}
    ${
      !picture &&
      text &&
      html`<pre class="code" tabindex="0" role="group" aria-label=${name}>
        ${text.slice(0, 2000)}</pre>`
    }
    <figcaption><span class="name">${name}</span> <span class="note">${mime ?? ""} ${uri ?? ""}</span>
      ${
        (binary ?? text) !== null &&
        html`<button type="button" class="small"
          onClick=${save}>Download</button>`
      }</figcaption>
  </figure>`;
}

function Details({ node }) {
  if (node.args === undefined && node.output === undefined) return null;
  return html`<details>
    <summary>Arguments and result</summary>
    ${node.args !== undefined && html`<${Code} text=${pretty(node.args)} label="Arguments of ${node.name}" />`}
    ${node.output !== undefined && html`<${Output} blocks=${node.output} name=${node.name} />`}
  </details>`;
}

const NO_TRACEBACK =
  "There is no traceback: the server was started again, or the error is not in your code.";

/** The traceback of a failed call or run; it is requested when it is opened. */
function Traceback({ view, node }) {
  const errors = useSignal(null);
  const load = async (event) => {
    if (!event.currentTarget.open || errors.value?.length) return;
    const found = await attempt(() => api.tracebacks(view.id));
    if (found)
      errors.value = found.filter((one) => same(one.path, node.path)).flatMap((one) => one.errors);
  };
  return html`<details class="traceback" onToggle=${load}>
    <summary>Traceback</summary>
    ${errors.value?.length === 0 && html`<p class="note">${NO_TRACEBACK}</p>`}
    ${errors.value?.map(
      (error, index) => html`
      ${index > 0 && html`<p class="note">Raised from:</p>`}
      <p class="line level-error"><b>${error.type}</b> ${error.message}</p>
      ${error.frames.map((frame) => html`<${Frame} frame=${frame} />`)}`,
    )}
  </details>`;
}

/** A frame of the user with its source and a link for the editor, or one line for another frame. */
function Frame({ frame: { file, path, line, function: name, own, first, source } }) {
  const place = `${file}:${line}`;
  const indent = Math.min(...source.filter((text) => text.trim()).map((text) => text.search(/\S/)));
  if (!own) return html`<p class="note">${place} in ${name}</p>`;
  return html`<figure class="frame">
    <figcaption><a href="vscode://file${encodeURI(`${path}:${line}`)}">${place}</a> in ${name}</figcaption>
    <pre class="code" tabindex="0" role="group" aria-label="Source of ${place}">${source.map((text, index) => {
      const number = first + index;
      return html`<span class="source-line ${number === line ? "here" : ""}"><span class="number">${number}</span>${`${text.slice(indent)}\n`}</span>`;
    })}</pre>
  </figure>`;
}
