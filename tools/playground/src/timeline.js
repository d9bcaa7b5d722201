// The calls of a run over time: one bar each, with the details of the one that is looked at.
import { useSignal } from "./view.js";
import { brief } from "./json.js";
import { now } from "./runs.js";
import { Status, arrows, duration, statusWord } from "./ui.js";

/** How many calls are drawn: the newest. */
const MOST = 200;

/** @param {{view: import("./runs.js").RunView}} props */
export function Timeline({ view }) {
  const { root, calls } = view.tree;
  const looked = useSignal(null);
  [root, ...calls].forEach((node) => view.changed(node).value);
  const all = calls.filter((node) => node.start !== null);
  const begun = all.slice(-MOST);
  if (!begun.length) return html`<p class="empty">No call has started yet.</p>`;
  const zero = Math.min(root.start ?? Infinity, ...begun.map((node) => node.start));
  const running = begun.some((node) => node.end === null) || root.status === "running";
  const last = running ? now.value + view.tree.ahead : 0;
  const end = Math.max(root.end ?? 0, last, ...begun.map((node) => endOf(node, last)));
  const span = Math.max(end - zero, 0.001);
  const rows = begun.map((node) => ({
    node,
    from: node.start - zero,
    took: endOf(node, last) - node.start,
  }));
  const row = rows.find(({ node }) => node === looked.value) ?? rows[0];
  return html`<div class="timeline">
    ${all.length > MOST && html`<p class="note">${all.length - MOST} earlier calls</p>`}
    <div class="axis" aria-hidden="true">${ticks(span).map(
      (at) => html`<span
        style=${{ left: `${(at / span) * 100}%` }}>${at === 0 ? "0" : duration(at)}</span>`,
    )}</div>
    <ul onKeyDown=${arrows("button")}>
      ${rows.map(
        ({ node, from, took }) => html`<li key=${node.key}>
        <button type="button" class=${row.node === node ? "looked" : ""}
            aria-label="${node.name}: begins at ${duration(from)}, takes ${duration(took)}, ${statusWord(node.status)}"
          onMouseEnter=${() => (looked.value = node)} onFocus=${() => (looked.value = node)}>
          <span class="label" style=${{ paddingLeft: `${4 + (node.path.length - 1) * 12}px` }}>${node.name}</span>
          <span class="track"><span class="bar ${node.status}"
              style=${{ left: `${(from / span) * 100}%`, width: `${(took / span) * 100}%` }} /></span>
        </button>
      </li>`,
      )}
    </ul>
    <${About} ...${row} />
  </div>`;
}

const endOf = (node, last) =>
  node.duration !== null ? node.start + node.duration : (node.end ?? Math.max(last, node.start));

/** Round steps, about five of them. */
function ticks(span) {
  const rough = span / 5;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((by) => by * power).find((by) => by >= rough);
  return Array.from({ length: Math.floor(span / step + 1e-9) + 1 }, (_, index) => index * step).filter(
    (at) => at < span * 0.95,
  );
}

const About = ({ node, from, took }) => html`<dl class="facts">
  <dt>Call</dt><dd>${node.name}${node.agent ? ` (agent ${node.agent})` : ""}</dd>
  <dt>Status</dt><dd><${Status} status=${node.status} /></dd>
  <dt>Begins</dt><dd>${duration(from)}</dd>
  <dt>Takes</dt><dd>${duration(took)}</dd>
  <dt>Path</dt><dd class="mono">${node.path.join(" › ")}</dd>
  <dt>Arguments</dt><dd class="mono">${brief(node.args, 300)}</dd>
</dl>`;
