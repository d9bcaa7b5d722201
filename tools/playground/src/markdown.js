// Markdown as descriptions of elements: blocks by lines, then the marks inside a line. A text never
// becomes HTML, and nothing is loaded from elsewhere: an image is a link.
import { inFrame, keep, signal } from "./view.js";
import { read } from "./json.js";
import { Code } from "./ui.js";

/** Longer texts are shown as they are; longer paragraphs without their marks. */
const MOST = 200_000;
const MOST_INLINE = 8_000;
const DEEPEST = 8;

/** How many blocks are drawn in one go; the others follow, so that the page stays responsive. */
const AT_ONCE = 4;
/** A longer list is several blocks. */
const MOST_ITEMS = 25;

/** @param {{text: string}} props */
export function Markdown({ text }) {
  const own = keep(() => {
    const most = signal(AT_ONCE);
    return { text: null, all: [], most, more: () => (most.value += AT_ONCE) };
  });
  const most = own.most.value;
  if (text.length > MOST) return html`<pre class="code" tabindex="0" role="group" aria-label="Text">${text}</pre>`;
  if (own.text !== text) Object.assign(own, { text, all: blocks(text.split("\n"), 0, { last: 2 }, own.all) });
  if (own.all.length > most) inFrame(own.more);
  return html`<div class="markdown">${own.all.slice(0, most).map((block) => block.of)}</div>`;
}

const FENCE = /^ {0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/;
const HEADING = /^ {0,3}(#{1,6})\s+(.*?)\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])( *\1){2,} *$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( *)([-*+]|\d{1,9}[.)])( +|$)/;
const DELIMITERS = /^ *\|? *:?-+:? *(\| *:?-+:? *)*\|? *$/;
const BLANK = /^\s*$/;

/** Whether a line ends the paragraph above it. */
const interrupts = (line) =>
  BLANK.test(line) || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || QUOTE.test(line) || ITEM.test(line);

/**
 * The blocks of some lines, each with its text. Blocks that `before` has at the same place with the
 * same text stay the same descriptions, so that a growing text is drawn at its end only.
 * @param {string[]} lines @param {number} depth @param {{last: number}} levels The level of the last heading.
 */
function blocks(lines, depth, levels, before = []) {
  const made = [];
  let at = 0;
  while (at < lines.length) {
    if (BLANK.test(lines[at])) {
      at += 1;
      continue;
    }
    const [of, next] = block(lines, at, depth, levels);
    const text = lines.slice(at, next).join("\n");
    const known = before[made.length];
    made.push(known?.text === text ? known : { text, of });
    at = next;
  }
  return made;
}

const inner = (...args) => blocks(...args).map((block) => block.of);

/** The block that begins at a line, and the line after it. */
function block(lines, at, depth, levels) {
  const line = lines[at];
  const fence = FENCE.exec(line);
  if (fence) return fenced(lines, at, fence);
  const heading = HEADING.exec(line);
  if (heading) {
    levels.last = Math.min(heading[1].length + 2, levels.last + 1); // no level is left out
    return [html`<p role="heading" aria-level=${levels.last} class="heading">${inline(heading[2])}</p>`, at + 1];
  }
  if (RULE.test(line)) return [html`<hr />`, at + 1];
  if (depth < DEEPEST && QUOTE.test(line)) return quote(lines, at, depth, levels);
  if (depth < DEEPEST && ITEM.test(line)) return list(lines, at, depth, levels);
  if (line.includes("|") && DELIMITERS.test(lines[at + 1] ?? "")) return table(lines, at);
  let end = at + 1;
  while (end < lines.length && !interrupts(lines[end])) end += 1;
  return [html`<p>${inline(lines.slice(at, end).join("\n").trim())}</p>`, end];
}

function fenced(lines, at, [, mark, language]) {
  const closing = (line) => line.trim().startsWith(mark) && /^(`+|~+)$/.test(line.trim());
  let end = at + 1;
  while (end < lines.length && !closing(lines[end])) end += 1;
  const text = lines.slice(at + 1, end).join("\n");
  const label = language || "Code";
  const of =
    language === "json"
      ? html`<${Code} text=${text} label=${label} />`
      : html`<pre class="code" tabindex="0" role="group" aria-label=${label}>${text}</pre>`;
  return [of, end + 1];
}

function quote(lines, at, depth, levels) {
  let end = at + 1;
  while (end < lines.length && (QUOTE.test(lines[end]) || !interrupts(lines[end]))) end += 1;
  const quoted = lines.slice(at, end).map((line) => line.replace(QUOTE, ""));
  return [html`<blockquote>${inner(quoted, depth + 1, levels)}</blockquote>`, end];
}

function list(lines, at, depth, levels) {
  const [, indent, mark] = ITEM.exec(lines[at]);
  const ordered = /\d/.test(mark);
  const items = [];
  let end = at;
  while (end < lines.length) {
    const found = ITEM.exec(lines[end]);
    if (found && found[1].length < indent.length + 2 && /\d/.test(found[2]) === ordered) {
      if (!depth && items.length === MOST_ITEMS) break;
      items.push([lines[end].slice(found[0].length)]);
    } else if (BLANK.test(lines[end])) {
      const next = lines[end + 1] ?? "";
      if (!next.startsWith(`${indent}  `) && !ITEM.test(next)) break;
      items.at(-1).push("");
    } else if (lines[end].startsWith(`${indent}  `) || !interrupts(lines[end])) {
      items.at(-1).push(lines[end].slice(Math.min(indent.length + 2, lines[end].search(/\S/))));
    } else break;
    end += 1;
  }
  const made = items.map((item) => html`<li>${listItem(item, depth, levels)}</li>`);
  return [ordered ? html`<ol start=${parseInt(mark, 10)}>${made}</ol>` : html`<ul>${made}</ul>`, end];
}

/** An item of one paragraph has no element for it, so that a plain list is not spread out. */
function listItem(lines, depth, levels) {
  const [first, ...rest] = lines;
  const task = /^\[([ xX])\] /.exec(first);
  const text = task ? [task[1] === " " ? "☐ " : "☑ ", ...inline(first.slice(4))] : inline(first);
  if (interrupts(first) && !BLANK.test(first)) return inner(lines, depth + 1, levels);
  return [...text, ...inner(rest, depth + 1, levels)];
}

const cells = (line) =>
  line
    .trim()
    .replace(/^\||\|$/g, "")
    .split(/(?<!\\)\|/)
    .map((cell) => inline(cell.trim().replaceAll("\\|", "|")));

function table(lines, at) {
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|") && !BLANK.test(lines[end])) end += 1;
  const head = cells(lines[at]);
  const rows = lines.slice(at + 2, end).map(cells);
  return [
    html`<div class="table" tabindex="0" role="group" aria-label="Table"><table>
      <thead><tr>${head.map((cell) => html`<th scope="col">${cell}</th>`)}</tr></thead>
      <tbody>${rows.map((row) => html`<tr>${head.map((_, index) => html`<td>${row[index] ?? ""}</td>`)}</tr>`)}</tbody>
    </table></div>`,
    end,
  ];
}

const MARKS =
  /\\([\\`*_{}[\]()#+\-.!|~<>])|(`+)(.*?[^`])\2(?!`)|!?\[([^\]\n]*)\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"\n]*")?\s*\)|\*\*(?=\S)(.+?)(?<=\S)\*\*|__(?=\S)(.+?)(?<=\S)__(?!\w)|\*(?=[^\s*])(.+?)(?<=[^\s*])\*(?!\*)|(?<!\w)_(?=[^\s_])(.+?)(?<=[^\s_])_(?!\w)|~~(?=\S)(.+?)(?<=\S)~~|<?(https?:\/\/[^\s<>]*[^\s<>.,;:!?'")\]])>?/gs;
const SAFE = /^(https?:|mailto:)/i;

/** The marks inside a line: code, emphasis, links. @param {string} text */
function inline(text, depth = 0) {
  if (text.length > MOST_INLINE || depth > 4) return [text];
  const made = [];
  let last = 0;
  for (const found of text.matchAll(MARKS)) {
    made.push(text.slice(last, found.index), marked(found, depth));
    last = found.index + found[0].length;
  }
  made.push(text.slice(last));
  return made;
}

function marked(found, depth) {
  const [all, escaped, , code, label, target, strong, strong2, em, em2, gone, address] = found;
  const within = (text) => inline(text, depth + 1);
  if (escaped) return escaped;
  if (code !== undefined) return html`<code>${code.replace(/^ (.*\S.*) $/s, "$1")}</code>`;
  if (target !== undefined) return SAFE.test(target) ? link(target, within(label || target)) : all;
  if (strong ?? strong2) return html`<strong>${within(strong ?? strong2)}</strong>`;
  if (em ?? em2) return html`<em>${within(em ?? em2)}</em>`;
  if (gone) return html`<del>${within(gone)}</del>`;
  return link(address, [address]);
}

const link = (address, content) =>
  html`<a href=${address} target="_blank" rel="noreferrer noopener">${content}</a>`;

/** Whether a text has marks that are worth a view of their own. @param {string} text */
export const isMarkdown = (text) =>
  text.length < MOST &&
  /^ {0,3}#{1,6} \S|^ {0,3}(```|~~~)|^ *([-*+]|\d+\.) \S.*\n *([-*+]|\d+\.) \S|\*\*\S|^\|.*\|$|\]\(https?:|^> /m.test(text);

/** The value of a text that is a JSON object or list; undefined for another text. */
export function jsonOf(text) {
  if (!/^\s*[[{]/.test(text) || text.length > 2_000_000) return undefined;
  return read(text).value;
}
