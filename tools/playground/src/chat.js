// The conversation with an agent: its messages, calls and answers, and what is written next.
import { useSignal } from "./view.js";
import * as api from "./api.js";
import { Approvals } from "./approval.js";
import { chatOf } from "./chats.js";
import { isOver } from "../../../js/client/src/tree.ts";
import { AttachButton, Attachments, Files, attachmentsOf, dragging, paste } from "./attachments.js";
import { brief } from "./json.js";
import { Markdown } from "./markdown.js";
import { cancel, loadEarlier, open, runAgent, shown } from "./runs.js";
import { attempt, inputOf, narrow, pane, setInput, side } from "./state.js";
import { Artifact, Took } from "./tree.js";
import { Badge, Icon, Status, say } from "./ui.js";

/** How many calls that follow each other are listed: the last ones. */
const MOST_CALLS = 6;

export function AgentEditor({ agent: one }) {
  const chat = chatOf(one.name);
  const turns = chat.turns.value;
  const start = () => {
    chat.change(null);
    say("New conversation");
    document.getElementById("agent-input")?.focus();
  };
  return html`
    <header class="head">
      <div class="bar-line">
        <h2>${one.name}</h2>
        <span class="badges"><${Badge}>agent</${Badge}>${one.model && html`<${Badge}>${one.model}</${Badge}>`}</span>
        ${
          turns.length > 0 &&
          html`<span class="push"><button type="button" class="small" onClick=${start}>New conversation</button></span>`
        }
      </div>
      <${Settings} agent=${one} chat=${chat} />
    </header>
    <div class="scroll chat" id="chat-log" role="region" aria-label="Conversation with ${one.name}" tabindex="0">
      ${
        chat.more.value &&
        html`<button type="button" class="small" onClick=${() => loadEarlier(one.name)}>Load earlier messages</button>`
      }
      ${!turns.length && html`<${Welcome} agent=${one} />`}
      ${turns.map((view) => html`<${Turn} key=${view.id} view=${view} />`)}
    </div>
    <${Composer} agent=${one} busy=${turns.at(-1)} />`;
}

/** The instructions and the model, which can be changed for the next messages. */
function Settings({ agent: one, chat }) {
  const loaded = useSignal(null);
  const changes = chat.changes.value;
  const load = async (event) => {
    if (event.currentTarget.open) loaded.value ??= (await attempt(() => api.agent(one.name))) ?? null;
  };
  const change = (name, text) => {
    const { [name]: _, ...rest } = chat.changes.value;
    chat.changes.value = text === (loaded.value[name] ?? "") ? rest : { ...rest, [name]: text };
  };
  const changed = Object.keys(changes);
  const own = loaded.value;
  return html`<details class="settings" onToggle=${load}>
    <summary>Instructions, model and tools ${changed.length > 0 && html`<${Badge} tone="warn">changed</${Badge}>`}</summary>
    ${
      own &&
      html`<div class="field"><label for="agent-instructions"><span class="name">Instructions</span></label>
        <textarea id="agent-instructions" rows="2" value=${changes.instructions ?? own.instructions ?? ""}
          placeholder=${own.instructions === null ? "computed for each run" : "none"}
          onInput=${(event) => change("instructions", event.target.value)} /></div>
      <div class="field"><label for="agent-model"><span class="name">Model</span></label>
        <input id="agent-model" class="mono" autocomplete="off" value=${changes.model ?? own.model ?? ""}
          placeholder="the default model" onInput=${(event) => change("model", event.target.value)} /></div>
      ${
        changed.length > 0 &&
        html`<p class="actions wrap note">The next messages use these ${changed.join(" and ")}; the code stays as it is.
          <button type="button" class="small" onClick=${() => (chat.changes.value = {})}>Reset</button></p>`
      }`
    }
    <p class="source">${
      one.tools.length ? html`Tools: <span class="mono">${one.tools.join(", ")}</span>` : "It has no tools."
    }</p>
  </details>`;
}

const Welcome = ({ agent }) => html`<div class="welcome">
  <p>Write to ${agent.name} below. It remembers the messages of this conversation.</p>
  <p class="note">The run is shown on the right, with a timeline of its calls and of the requests to the model.</p>
</div>`;

const focus = (area) => area.focus({ preventScroll: true });

function Composer({ agent, busy: last }) {
  const input = inputOf(agent.name);
  if (last) last.changed(last.tree.root).value;
  const status = last && statusOf(last);
  const running = status === "running";
  const waits = status === "interrupted";
  const keys = (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    runAgent(agent.name);
  };
  const empty = !input.value.trim() && !attachmentsOf(agent.name).value.length;
  return html`<div class="composer ${dragging.value ? "dragging" : ""}">
    <label class="unseen" for="agent-input">Message</label>
    <${Attachments} agent=${agent.name} />
    <textarea id="agent-input" rows="1" ref=${focus} value=${input.value} placeholder="Message to ${agent.name}"
      aria-describedby="agent-hint" onInput=${(event) => setInput(agent.name, event.target.value)} onKeyDown=${keys}
      onPaste=${(event) => paste(event, agent.name)} />
    <div class="actions">
      <${AttachButton} agent=${agent.name} />
      <span class="note" id="agent-hint">${
        waits
          ? "Decide about the waiting call first."
          : running
            ? "Wait for the answer, or stop it."
            : html`<kbd>↵</kbd> sends, <kbd>Shift ↵</kbd> starts a line.`
      }</span>
      <span class="push actions">
        ${
          running &&
          html`<button type="button" class="danger" disabled=${last.cancelling.value} onClick=${() => cancel(last)}>
            ${last.cancelling.value ? "Stopping…" : "Stop"}</button>`
        }
        <button type="button" class="primary" disabled=${empty || running || waits}
          onClick=${() => runAgent(agent.name)}>Send</button>
      </span>
    </div>
  </div>`;
}

/** The status of a run: what the server says, or what its events say until then. */
export function statusOf(view) {
  const { status } = view.tree.root;
  return view.detail.value?.status ?? (status === "waiting" ? "running" : status);
}

function Turn({ view }) {
  const { root } = view.tree;
  view.changed(root).value;
  const current = shown.value === view;
  const status = statusOf(view);
  const show = () => {
    open(view);
    side.value = "run";
    pane.value = "run";
  };
  return html`<article class="turn ${current ? "current" : ""}" aria-label="Turn">
    ${parts(root.items).map((part) => describe(part, view, isOver(root)))}
    ${root.error && html`<p class="verdict bad">${root.error}</p>`}
    <${Approvals} view=${view} place="chat" />
    <p class="turn-end"><${Status} status=${status} /><${Took} node=${root} view=${view} />
      <button type="button" class="small quiet" aria-pressed=${current} onClick=${show}>
        ${current && !narrow.value ? "Shown on the right" : "Show run"}</button></p>
  </article>`;
}

/** The items of a run; calls that follow each other are one part. */
function parts(items) {
  const made = [];
  for (const item of items) {
    const last = made.at(-1);
    if (item.type !== "call") made.push(item);
    else if (last?.type === "calls") last.nodes.push(item.node);
    else made.push({ type: "calls", key: `after ${last?.key}`, nodes: [item.node] });
  }
  return made.filter((part) => PARTS[part.type]);
}

const drawn = new WeakMap();

/** The same description as long as a part stays as it is, so that only the growing end is drawn. */
function describe(part, view, over) {
  const make = () => html`<${PARTS[part.type]} key=${part.key} item=${part} view=${view} over=${over} />`;
  if (part.type === "calls") return make();
  const known = drawn.get(part);
  const now = `${part.streamed} ${over} ${part.cut} ${part.text?.length}`;
  if (known?.now === now) return known.of;
  const of = make();
  drawn.set(part, { now, of });
  return of;
}

const PARTS = {
  input: ({ item, view }) => html`<div class="input">${item.text && html`<p>${item.text}</p>`}
    <${Files} files=${item.files} run=${view.id} /></div>`,
  text: Said,
  reasoning: ({ item }) =>
    html`<details class="reasoning"><summary>Reasoning</summary><p>${item.text}</p></details>`,
  line: ({ item }) =>
    html`<p class="line level-${item.level}">${item.level !== "info" && html`<b>${item.level}</b> `}${item.text}</p>`,
  artifact: Artifact,
  calls: Calls,
};

/** The tree keeps the end of a long text; the result of the run has all of it. */
function Said({ item, view, over }) {
  const answer = item.cut > 0 && view.detail.value?.result?.model?.[0]?.text;
  const typing = !over && item.streamed ? "typing" : "";
  if (item.cut > 0 && !answer?.endsWith(item.text))
    return html`<p class="said long-said ${typing}">
      <span class="note">${item.cut.toLocaleString()} earlier characters </span>${item.text}</p>`;
  return html`<div class="said ${typing}"><${Markdown} text=${answer || item.text} /></div>`;
}

function Calls({ item: { nodes }, view }) {
  const all = useSignal(false);
  const listed = all.value ? nodes : nodes.slice(-MOST_CALLS);
  const hidden = nodes.length - listed.length;
  return html`<ul class="chat-calls">
    ${
      hidden > 0 &&
      html`<li><button type="button" class="small quiet" onClick=${() => (all.value = true)}>
        Show ${hidden.toLocaleString()} earlier calls</button></li>`
    }
    ${listed.map((node) => html`<${CallLine} key=${node.key} node=${node} view=${view} />`)}
  </ul>`;
}

/** One call; a click shows it in the run. */
function CallLine({ node, view }) {
  view.changed(node).value;
  const { progress } = node;
  const go = () => {
    open(view);
    side.value = "run";
    pane.value = "run";
    requestAnimationFrame(() => document.getElementById(view.idOf(node))?.scrollIntoView({ block: "nearest" }));
  };
  return html`<li><button type="button" class="chat-call" onClick=${go}>
    <${Icon} name="tool" /><span class="name">${node.name}</span>
    <span class="args">${node.args === undefined ? node.draft : brief(node.args, 80)}</span>
    ${progress?.total && !isOver(node) && html`<span class="note count">${progress.current} of ${progress.total}</span>`}
    <${Status} status=${node.status} /></button></li>`;
}
