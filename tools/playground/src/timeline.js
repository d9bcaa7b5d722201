// A run over time: a bar for each request to a model and each call, with the facts of the one that
// is chosen below its bar.
import { useSignal } from "./view.js";
import * as api from "./api.js";
import { factsOf } from "./attachments.js";
import { brief, pretty } from "./json.js";
import { choose, chosen, copyLink, now } from "./runs.js";
import { attempt } from "./state.js";
import { Code, Icon, Status, arrows, dollars, duration, statusWord } from "./ui.js";

/** How many bars are drawn: the newest. */
const MOST = 200;
/** A call that starts later than this after the model has asked for it has waited, in seconds. */
const WAITED = 0.02;

/** @param {{view: import("./runs.js").RunView}} props */
export function Timeline({ view }) {
  const { root, calls } = view.tree;
  [root, ...calls].forEach((node) => view.changed(node).value);
  const facts = view.loadRequests();
  const all = rowsOf(view, root, facts);
  if (!all.length) return html`<p class="empty">No call and no request to a model has started yet.</p>`;
  const goal = chosen.value?.run === view.id && chosen.value.view === "timeline" ? chosen.value.event : null;
  const at = all.findIndex((row) => row.event === goal);
  const rows = all.slice(at < 0 ? -MOST : Math.min(at, Math.max(0, all.length - MOST)));
  const running = root.status === "running" || rows.some((row) => row.to === null);
  const last = running ? now.value + view.tree.ahead : 0;
  const zero = Math.min(root.start ?? Infinity, ...rows.map((row) => row.from));
  const end = Math.max(root.end ?? 0, last, ...rows.map((row) => row.to ?? Math.max(last, row.from)));
  const span = Math.max(end - zero, 0.001);
  const scale = { zero, span, last };
  return html`<div class="timeline">
    <${Totals} facts=${facts} calls=${calls.length} />
    ${all.length > rows.length && html`<p class="note">${(all.length - rows.length).toLocaleString()} earlier bars</p>`}
    <div class="axis" aria-hidden="true">${ticks(span).map(
      (at) => html`<span
        style=${{ left: `${(at / span) * 100}%` }}>${at === 0 ? "0" : duration(at)}</span>`,
    )}</div>
    <ul onKeyDown=${arrows("button.bar-row")}>
      ${rows.map(
        (row) => html`<li key=${row.key} ref=${row.event === goal && !chosen.value.shown ? scroll : undefined}>
          <${Bar} row=${row} scale=${scale} open=${row.event === goal}
            onClick=${() => (row.event === goal ? choose(null) : choose(view, row.event, "timeline"))} />
          ${row.event === goal && html`<${About} row=${row} scale=${scale} view=${view} />`}
        </li>`,
      )}
    </ul>
    <p class="legend note"><span class="swatch model" />model <span class="swatch call" />tool
      <span class="swatch wait" />waiting <span class="swatch retry" />failed attempt</p>
  </div>`;
}

/** Scrolls to the bar of a link, once. */
function scroll(bar) {
  chosen.value.shown = true;
  requestAnimationFrame(() => {
    bar.scrollIntoView({ block: "center" });
    bar.firstElementChild.focus({ preventScroll: true });
  });
}

/** The requests and calls within a node by their start; each call is followed by those within it. */
function rowsOf(view, node, facts) {
  const requests = view.spans.requestsOf(node.path).map((request) => requestRow(request, facts));
  const calls = node.items.filter((item) => item.type === "call").map((item) => callRow(view, item.node));
  return [...requests, ...calls]
    .filter((row) => row.from !== null)
    .sort((one, other) => one.from - other.from)
    .flatMap((row) => (row.node ? [row, ...rowsOf(view, row.node, facts)] : [row]));
}

function requestRow(request, facts) {
  const fact = facts.get(JSON.stringify([request.path, request.ordinal]));
  return {
    key: `request ${JSON.stringify(request.path)} ${request.ordinal}`,
    kind: "model",
    event: request.event,
    name: fact?.model ?? "model",
    depth: request.path.length,
    from: fact?.sent ?? request.from,
    to: request.to,
    status: request.to === null ? "running" : "ok",
    request,
    fact,
  };
}

function callRow(view, node) {
  const { asked, waits, attempts } = view.spans.callOf(node.path);
  const start = node.start ?? asked ?? waits[0]?.from ?? null;
  const to = node.duration !== null ? node.start + node.duration : node.end;
  const queued = asked !== null && node.start - asked > WAITED && !waits.length;
  const waited = queued ? [{ from: asked, to: node.start }] : waits;
  return {
    key: node.key,
    kind: "call",
    event: node.event,
    name: node.name,
    depth: node.path.length - 1,
    from: Math.min(start ?? Infinity, ...waited.map((wait) => wait.from)),
    start: node.start,
    to: node.start === null && node.status !== "approval" ? (to ?? start) : to,
    status: node.status,
    node,
    waits: waited,
    queued,
    attempts,
  };
}

function Bar({ row, scale, open, onClick }) {
  const { zero, span, last } = scale;
  const end = endOf(row, last);
  const part = (from, to, style) => html`<span class="bar ${style}" style=${{
    left: `${((from - zero) / span) * 100}%`,
    width: `${(Math.max(0, to - from) / span) * 100}%`,
  }} />`;
  const mark = (at) =>
    html`<span class="bar retry" style=${{ left: `${((at - zero) / span) * 100}%`, width: "3px" }} />`;
  const { request } = row;
  const label = `${row.kind === "model" ? "Request to " : ""}${row.name}`;
  return html`<button type="button" class="bar-row" aria-expanded=${open} onClick=${onClick}
      aria-label="${label}: begins at ${duration(row.from - zero)}, takes ${duration(end - row.from)}, ${statusWord(row.status)}">
    <span class="label" style=${{ paddingLeft: `${4 + row.depth * 12}px` }}>${
      request && html`<${Icon} name="model" />`
    }${row.name}</span>
    <span class="track">
      ${
        request
          ? [
              part(row.from, request.first ?? end, "model early"),
              request.first !== null && part(request.first, end, "model"),
              request.retries.map(({ at }) => mark(at)),
            ]
          : [
              row.waits.map((wait) => part(wait.from, wait.to ?? last, "wait")),
              row.start !== null && part(row.start, end, row.status),
              row.attempts.map(({ at }) => mark(at)),
            ]
      }
    </span>
  </button>`;
}

const endOf = (row, last) => row.to ?? Math.max(last, row.from);

/** Round steps, about five of them. */
function ticks(span) {
  const rough = span / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough);
  return Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, index) => index * step).filter(
    (at) => at < span * 0.88,
  );
}

const counted = (number, word) => `${number.toLocaleString()} ${word}${number === 1 ? "" : "s"}`;

/** The requests, tokens and cost of the run and of all runs within it. */
function Totals({ facts, calls }) {
  const used = [...facts.values()].map((fact) => fact.usage).filter(Boolean);
  const sum = (key) => used.reduce((total, usage) => total + (usage[key] ?? 0), 0);
  const costs = used.map((usage) => usage.cost);
  const parts = [
    facts.size > 0 && counted(facts.size, "request"),
    sum("input_tokens") > 0 && `${sum("input_tokens").toLocaleString()} tokens in`,
    sum("output_tokens") > 0 && `${sum("output_tokens").toLocaleString()} out`,
    costs.length > 0 && costs.every((cost) => cost !== null) && dollars(sum("cost")),
    calls > 0 && counted(calls, "call"),
  ].filter(Boolean);
  return html`<p class="totals">${parts.join(" · ")}</p>`;
}

function About({ row, scale, view }) {
  const { zero, last } = scale;
  const facts = row.request ? aboutRequest(row, zero) : aboutCall(row, zero, last);
  return html`<div class="about-bar">
    <dl class="facts">${facts
      .filter(([, value]) => value !== null && value !== undefined && value !== "")
      .map(([term, value]) => [html`<dt>${term}</dt>`, html`<dd>${value}</dd>`])}</dl>
    ${row.request && html`<${Prompt} view=${view} fact=${row.fact} />`}
    <p class="actions"><button type="button" class="small" onClick=${() => copyLink(view, row.event, "timeline")}>
      <${Icon} name="link" />Copy link</button></p>
  </div>`;
}

function aboutRequest({ from, to, status, request, fact }, zero) {
  const usage = fact?.usage;
  const tokens = (key) => usage?.[key] > 0 && usage[key].toLocaleString();
  return [
    ["Agent", fact?.agent],
    ["Model", fact?.model],
    ["Status", html`<${Status} status=${status} />`],
    ["Begins", duration(from - zero)],
    ["First token", request.first === null ? null : `after ${duration(request.first - from)}`],
    ["Takes", to === null ? null : duration(to - from)],
    ["Input tokens", tokens("input_tokens") || null],
    ["Cached", tokens("cached_input_tokens") || null],
    ["Output tokens", tokens("output_tokens") || null],
    ["Reasoning", tokens("reasoning_tokens") || null],
    ["Cost", usage && (usage.cost === null ? "unknown" : dollars(usage.cost))],
    ["Stopped by", fact?.finish_reason],
    ...request.retries.map(({ at, attempt: number, delay }) => [
      `Attempt ${number}`,
      `failed at ${duration(at - zero)}; repeated after ${duration(delay)}`,
    ]),
  ];
}

function aboutCall({ node, from, start, to, waits, queued, attempts }, zero, last) {
  return [
    ["Call", node.agent ? `${node.name} (agent ${node.agent})` : node.name],
    ["Status", html`<${Status} status=${node.status} />`],
    ["Begins", duration((start ?? from) - zero)],
    ["Takes", start === null ? null : duration(Math.max(0, (to ?? last) - start))],
    ...waits.map((wait) => [
      queued ? "Waited" : "Approval",
      `${duration((wait.to ?? last) - wait.from)}${wait.to === null ? " so far" : ""}`,
    ]),
    ...attempts.map(({ at, attempt: number, error, delay }) => [
      `Attempt ${number}`,
      `failed at ${duration(at - zero)}: ${error ?? "no reason given"}${delay ? `; repeated after ${duration(delay)}` : ""}`,
    ]),
    ["Path", html`<span class="mono">${node.path.join(" › ")}</span>`],
    ["Arguments", html`<span class="mono">${brief(node.args, 300)}</span>`],
  ];
}

/** The prompt that was sent; the server of this page keeps it in memory. */
function Prompt({ view, fact }) {
  const loaded = useSignal(null);
  if (fact?.prompt === null || fact?.prompt === undefined)
    return html`<p class="note">The prompt is known only to the server that has sent it, until it stops.</p>`;
  const load = async (event) => {
    if (event.currentTarget.open && !loaded.value)
      loaded.value = (await attempt(() => api.prompt(view.id, fact.prompt))) ?? null;
  };
  const prompt = loaded.value;
  return html`<details class="prompt" onToggle=${load}>
    <summary>Prompt that was sent</summary>
    ${
      prompt &&
      html`
      ${prompt.instructions && html`<${Message} role="instructions" content=${prompt.instructions} />`}
      ${prompt.input.map((item) => html`<${Message} ...${shownItem(item)} />`)}
      ${
        prompt.tools.length > 0 &&
        html`<details><summary>${counted(prompt.tools.length, "tool")}</summary>
          ${prompt.tools.map(
            (tool) => html`<details><summary class="mono">${tool.name}</summary>
              <p class="note">${tool.description}</p>
              <${Code} text=${pretty(tool.parameters)} label="Parameters of ${tool.name}" /></details>`,
          )}</details>`
      }
      ${Object.keys(prompt.settings).length > 0 && html`<${Code} text=${pretty(prompt.settings)} label="Settings" />`}`
    }
  </details>`;
}

/** An item of the conversation as a role and a text. */
function shownItem(item) {
  if (item.type === "function_call") return { role: `calls ${item.name}`, content: item.arguments };
  if (item.type === "function_call_output")
    return { role: `result of ${item.name ?? item.call_id}`, content: item.output };
  return { role: item.role ?? item.type, content: item.content ?? item.summary ?? item };
}

const LONGEST = 20_000;

/** A file of a message, which the prompt has without its content. */
const fileText = (block) =>
  block?.size !== undefined
    ? `[${factsOf({ ...block, name: block.filename ?? block.type, mime: block.mime_type })}]`
    : undefined;

function Message({ role, content }) {
  const blocks = typeof content === "string" ? [{ text: content }] : Array.isArray(content) ? content : [content];
  const text = blocks.map((block) => block?.text ?? fileText(block) ?? pretty(block)).join("\n");
  return html`<figure class="message"><figcaption class="note">${role}</figcaption>
    <pre class="code" tabindex="0" role="group" aria-label="Message: ${role}">${
      text.length > LONGEST ? `${text.slice(0, LONGEST)}… (${text.length.toLocaleString()} characters)` : text
    }</pre></figure>`;
}
