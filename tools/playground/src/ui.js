// The small parts that every view is made of: icons, tabs, badges, times, copying.
import { signal } from "./view.js";
import { LongText } from "./results.js";

const SHAPES = {
  search: "M11 11l3.5 3.5M12.5 7.25a5.25 5.25 0 1 1-10.5 0 5.25 5.25 0 0 1 10.5 0z",
  chevron: "M6 3.5 10.5 8 6 12.5",
  keys: "M1.5 4h13v8h-13zM4 6.5h.01M6.7 6.5h.01M9.3 6.5h.01M12 6.5h.01M5 9.5h6",
  model: "M8 2l1.6 4.4L14 8l-4.4 1.6L8 14l-1.6-4.4L2 8l4.4-1.6z",
  tool: "M9.5 2.5a3.5 3.5 0 0 0-3.3 4.7L2.5 10.9v2.6h2.6l3.7-3.7a3.5 3.5 0 0 0 4.5-4.3L11 7.8 8.2 5l2.3-2.3a3.5 3.5 0 0 0-1-.2z",
  close: "M4 4l8 8M12 4l-8 8",
  plus: "M8 3v10M3 8h10",
  clip: "M13.5 7.5 8.2 12.8a3.2 3.2 0 0 1-4.5-4.5l5.6-5.6a2.1 2.1 0 0 1 3 3L6.8 11.2a1 1 0 0 1-1.5-1.5L10 5",
  file: "M4 1.5h5.5L12.5 4.5v10H4zM9.5 1.5v3h3",
  save: "M8 2v8M4.5 7 8 10.5 11.5 7M3 13.5h10",
  link: "M6.5 9.5a2.6 2.6 0 0 0 3.7 0l2.5-2.5a2.6 2.6 0 0 0-3.7-3.7l-1 1M9.5 6.5a2.6 2.6 0 0 0-3.7 0L3.300 9a2.6 2.6 0 0 0 3.7 3.7l1-1",
  up: "M8 13V3M4 7l4-4 4 4",
  down: "M8 3v10M4 9l4 4 4-4",
  dark: "M13 9.5A5.5 5.5 0 0 1 6.5 3a5.5 5.5 0 1 0 6.5 6.5z",
  light:
    "M8 1.5v1.5M8 13v1.5M1.5 8H3M13 8h1.5M3.5 3.5l1 1M11.5 11.5l1 1M3.5 12.5l1-1M11.5 4.5l1-1M11 8a3 3 0 1 1-6 0 3 3 0 0 1 6 0z",
  auto: "M2 3.5h12v7.5H2zM5.5 14h5",
};

/** @param {{name: keyof SHAPES}} props */
export const Icon = ({ name }) =>
  html`<svg class="icon" viewBox="0 0 16 16" aria-hidden="true"><path d=${SHAPES[name]} /></svg>`;

/** The mark of the project, as in docs/images/logo.svg. */
export const Mark = () =>
  html`<svg class="mark" viewBox="0 0 32 32" aria-hidden="true"><path class="nut" d=${NUT} /><path class="spark" d=${SPARK} /></svg>`;
const NUT = "M16 4 26.4 10v12L16 28 5.6 22V10z";
const SPARK = "M16 6.5l2.9 6.6 6.6 2.9-6.6 2.9-2.9 6.6-2.9-6.6L6.5 16l6.6-2.9z";

export const IconButton = ({ icon, label, ...rest }) =>
  html`<button type="button" class="icon-button" aria-label=${label} title=${label} ...${rest}>
        <${Icon} name=${icon} /></button>`;

/** Tabs after the ARIA pattern: arrows move, one tab stop. `tabs` is [id, label, extra?][]. */
export function Tabs({ label, tabs, current, onSelect, name, class: style = "" }) {
  const move = (event) => {
    const at = tabs.findIndex(([id]) => id === current);
    const next = { ArrowRight: at + 1, ArrowLeft: at - 1, Home: 0, End: tabs.length - 1 }[event.key];
    if (next === undefined) return;
    event.preventDefault();
    const to = (next + tabs.length) % tabs.length;
    onSelect(tabs[to][0]);
    event.currentTarget.children[to].focus();
  };
  return html`<div role="tablist" class="tabs ${style}" aria-label=${label} onKeyDown=${move}>
    ${tabs.map(
      ([id, text, extra]) => html`<button type="button" role="tab" key=${id} id="${name}-tab-${id}"
      aria-selected=${id === current} aria-controls="${name}-panel" tabindex=${id === current ? 0 : -1}
      onClick=${() => onSelect(id)}>${text}${extra}</button>`,
    )}
  </div>`;
}

export const TabPanel = ({ name, current, children, class: style = "" }) =>
  html`<div role="tabpanel" id="${name}-panel" class=${style} aria-labelledby="${name}-tab-${current}"
        tabindex="0">${children}</div>`;

/** Moves the focus among the buttons that `selector` names, with the arrow keys. */
export function arrows(selector) {
  return (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1, Home: -Infinity, End: Infinity }[event.key];
    if (!step || event.target.matches("input, textarea, select")) return;
    const all = [...event.currentTarget.querySelectorAll(selector)];
    const at = all.indexOf(event.target);
    if (at < 0) return;
    event.preventDefault();
    all[Math.max(0, Math.min(all.length - 1, at + step))].focus();
  };
}

const WORDS = {
  ok: "done",
  running: "running",
  waiting: "waiting",
  preparing: "being written",
  approval: "needs approval",
  interrupted: "needs approval",
  orphaned: "server ended",
  cancelled: "cancelled",
  error: "failed",
  tool_error: "tool error",
  invalid_args: "invalid arguments",
  timeout: "timed out",
  denied: "denied",
  overloaded: "overloaded",
  lost: "lost",
};
const TONES = {
  ok: "good",
  running: "busy",
  waiting: "calm",
  preparing: "calm",
  cancelled: "calm",
  approval: "warn",
  interrupted: "warn",
  orphaned: "warn",
};

export const statusWord = (status) => WORDS[status] ?? status;
export const Status = ({ status }) =>
  html`<span class="status ${TONES[status] ?? "bad"}"><span class="dot" aria-hidden="true" />
        ${statusWord(status)}</span>`;

export const Badge = ({ tone = "", children }) => html`<span class="badge ${tone}">${children}</span>`;

/** @param {number | null} cost */
export const dollars = (cost) =>
  cost?.toLocaleString("en", { style: "currency", currency: "USD", maximumFractionDigits: 4 }) ?? "unknown";

/** @param {number} seconds */
export function duration(seconds) {
  if (seconds < 0.0995) return `${Math.round(seconds * 1000)} ms`;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
}

/** A point in time, as short as the day allows. @param {string} iso */
export function clock(iso) {
  const date = new Date(iso);
  const today = date.toDateString() === new Date().toDateString();
  return date.toLocaleString(
    undefined,
    today ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "short" },
  );
}

/** What screen readers are told next. */
export const spoken = signal("");
export const say = (text) => (spoken.value = text);

/** @param {string} text @param {string} what What is copied, in words. @returns Whether it was. */
export async function copy(text, what) {
  let done = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    done = copyTheOldWay(text);
  }
  say(done ? `${what} copied` : `${what} not copied: the browser refused`);
  return done;
}

/** Where the page is not served from this machine, browsers offer nothing else. */
function copyTheOldWay(text) {
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  const done = document.execCommand("copy");
  area.remove();
  return done;
}

export function CopyButton({ text, what, children = "Copy" }) {
  const click = async ({ currentTarget: { classList } }) => {
    const wanted = typeof text === "function" ? await text() : text;
    if (wanted === undefined || !(await copy(wanted, what))) return;
    classList.add("done");
    setTimeout(() => classList.remove("done"), 1200);
  };
  return html`<button type="button" class="small" onClick=${click}>${children}</button>`;
}

/** Gives the browser a file to save. */
export function download(filename, parts, type = "text/plain") {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(parts, { type }));
  link.download = filename;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}

const TOKENS = /("(?:[^"\\]|\\.)*")(\s*:)?|\b(?:true|false|null)\b|-?\d[\d.eE+-]*/g;

/** JSON with quiet colours; text nodes only. */
export function Code({ text, label }) {
  const parts = [];
  let last = 0;
  if (text.length > 200_000) return html`<${LongText} text=${text} label=${label} />`;
  if (text.length < 60_000) {
    for (const found of text.matchAll(TOKENS)) {
      const kind = found[2] ? "key" : found[1] ? "text" : "atom";
      const piece = found[1] ?? found[0];
      parts.push(text.slice(last, found.index), html`<span class=${kind}>${piece}</span>`);
      last = found.index + piece.length;
    }
  }
  parts.push(text.slice(last));
  return html`<pre class="code" tabindex="0" role="group" aria-label=${label}>${parts}</pre>`;
}
