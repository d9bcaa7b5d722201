// Two runs next to each other: their facts, and the lines in which arguments and results differ.
import { signal } from "./view.js";
import * as api from "./api.js";
import { factsOf } from "./attachments.js";
import { pretty } from "./json.js";
import { shown } from "./runs.js";
import { attempt, pane, side } from "./state.js";
import { Status, clock, dollars, duration, say } from "./ui.js";

/** The details of the two runs; null when none are compared. */
export const compared = signal(null);

/** Above this many pairs of lines the texts are shown without their differences. */
const MOST_PAIRS = 1_000_000;
const MOST_LINES = 2_000;

/** Compares a run with the one that is shown. @param {{id: string}} run */
export async function compare(run) {
  const first = shown.value?.id ?? run.id;
  const pair = await attempt(() => Promise.all([api.run(first), api.run(run.id)]));
  if (!pair) return;
  compared.value = pair;
  side.value = "compare";
  pane.value = "run";
  say(`${pair[0].name} and ${pair[1].name} compared`);
}

export function Comparison() {
  const [one, other] = compared.value;
  const rows = [
    ["Run", (run) => run.name],
    ["Status", (run) => html`<${Status} status=${run.status} />`],
    ["Started", (run) => clock(run.started)],
    ["Takes", (run) => (run.duration === null ? "" : duration(run.duration))],
    ["Input tokens", (run) => tokens(run, "input_tokens")],
    ["Output tokens", (run) => tokens(run, "output_tokens")],
    ["Cost", (run) => (run.result.usage?.cost ? dollars(run.result.usage.cost) : "")],
  ].filter(([, of]) => [one, other].some((run) => of(run) && of(run) !== "0"));
  return html`<div class="comparison">
    <div class="table" tabindex="0" role="group" aria-label="Facts of both runs"><table>
      <thead><tr><td /><th scope="col">First</th><th scope="col">Second</th></tr></thead>
      <tbody>${rows.map(
        ([name, of]) => html`<tr><th scope="row">${name}</th><td>${of(one)}</td><td>${of(other)}</td></tr>`,
      )}</tbody>
    </table></div>
    <${Difference} title=${one.kind === "tool" ? "Arguments" : "Message"} one=${givenTo(one)} other=${givenTo(other)} />
    <${Difference} title="Result" one=${resultOf(one)} other=${resultOf(other)} />
  </div>`;
}

const tokens = (run, name) => run.result.usage?.[name]?.toLocaleString() ?? "";
const givenTo = (run) =>
  run.kind === "tool"
    ? pretty(run.arguments)
    : [run.input ?? "", ...(run.files ?? []).map((file) => `[${factsOf({ ...file, mime: file.mime_type })}]`)].join("\n");

function resultOf({ result: { model, value, error } }) {
  if (value !== null && typeof value === "object") return pretty(value);
  const texts = (model ?? []).map((block) => block.text ?? `[${block.type}]`);
  return texts.join("\n") || (error ?? "");
}

const SIGNS = { added: "+", removed: "-", same: " " };

function Difference({ title, one, other }) {
  const lines = one === other ? null : difference(one.split("\n"), other.split("\n"));
  return html`<section aria-label=${title}>
    <h3>${title} ${one === other && html`<span class="note">the same</span>`}</h3>
    <pre class="code difference" tabindex="0" role="group" aria-label="Differences of: ${title}">${
      lines
        ? lines
            .slice(0, MOST_LINES)
            .map(([kind, text]) => html`<span class=${kind}>${SIGNS[kind]} ${text}</span>`)
        : one.slice(0, 20_000)
    }</pre>
  </section>`;
}

/** The lines of two texts in order, each `same`, `removed` or `added`. */
export function difference(one, other) {
  let start = 0;
  while (start < Math.min(one.length, other.length) && one[start] === other[start]) start += 1;
  let end = 0;
  const most = Math.min(one.length, other.length) - start;
  while (end < most && one.at(-1 - end) === other.at(-1 - end)) end += 1;
  const same = (lines) => lines.map((line) => ["same", line]);
  return [
    ...same(one.slice(0, start)),
    ...middle(one.slice(start, one.length - end), other.slice(start, other.length - end)),
    ...same(end ? one.slice(-end) : []),
  ];
}

/** The longest common lines, by the table of their lengths. */
function middle(one, other) {
  const removed = one.map((line) => ["removed", line]);
  const added = other.map((line) => ["added", line]);
  if (one.length * other.length > MOST_PAIRS) return [...removed, ...added];
  const width = other.length + 1;
  const lengths = new Uint32Array((one.length + 1) * width);
  for (let a = one.length - 1; a >= 0; a -= 1)
    for (let b = other.length - 1; b >= 0; b -= 1)
      lengths[a * width + b] =
        one[a] === other[b]
          ? lengths[(a + 1) * width + b + 1] + 1
          : Math.max(lengths[(a + 1) * width + b], lengths[a * width + b + 1]);
  const made = [];
  let [a, b] = [0, 0];
  while (a < one.length || b < other.length) {
    if (a < one.length && b < other.length && one[a] === other[b]) {
      made.push(["same", one[a]]);
      a += 1;
      b += 1;
    } else if (b === other.length || (a < one.length && lengths[(a + 1) * width + b] >= lengths[a * width + b + 1]))
      made.push(removed[a++]);
    else made.push(added[b++]);
  }
  return made;
}
