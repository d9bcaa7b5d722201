// The keys of the page, and the dialog that lists them.
import { signal } from "./view.js";
import { Modal } from "./dialog.js";
import { runCurrent } from "./editor.js";
import { narrow, pane } from "./state.js";

const listed = signal(false);
export const listKeys = () => (listed.value = true);

const KEYS = [
  ["Ctrl ↵", "Run the tool, or send the message"],
  ["/", "Search tools and agents"],
  ["F6", "Go to the next pane"],
  ["← → Home End", "Move among tabs; move the divider between panes (Home resets it)"],
  ["↑ ↓ ← →", "Move in the list, in the tree of a run and in the timeline; open and close"],
  ["↵", "Send a message; open a bar of the timeline"],
  ["J K", "Go to the next or previous event in the tree of a run"],
  ["C", "Copy the link to the call or event in that tree"],
  ["Esc", "Close a dialog; empty the search"],
  ["?", "Show this list"],
];

export function Keys() {
  if (!listed.value) return null;
  const close = () => (listed.value = false);
  return html`<${Modal} title="Keys" onClose=${close}>
    <dl class="facts keys">${KEYS.map(([key, does]) => [html`<dt><kbd>${key}</kbd></dt>`, html`<dd>${does}</dd>`])}</dl>
    <div class="actions"><button type="button" class="primary" onClick=${close}>Close</button></div>
  </${Modal}>`;
}

const PANES = ["tools", "edit", "run"];

function nextPane(back) {
  const visible = PANES.filter((id) => document.querySelector(`.pane.${id}`));
  const at = visible.findIndex((id) => document.querySelector(`.pane.${id}`).contains(document.activeElement));
  const to = visible[(Math.max(at, back ? 0 : -1) + (back ? -1 : 1) + visible.length) % visible.length];
  const focus = () => document.querySelector(`.pane.${to}`).focus();
  if (!narrow.value) return focus();
  pane.value = to;
  requestAnimationFrame(focus);
  return undefined;
}

function keyPressed(event) {
  if (document.querySelector("dialog[open]")) return;
  const typing = event.target.matches("input, textarea, select");
  const does = {
    Enter: () => (event.ctrlKey || event.metaKey) && (runCurrent(), true),
    F6: () => (nextPane(event.shiftKey), true),
    "/": () => !typing && (search(), true),
    "?": () => !typing && (listKeys(), true),
  }[event.key];
  if (does?.()) event.preventDefault();
}

/** At once where the field is on the screen, so that what is typed next is not lost. */
function search() {
  const focus = () => document.getElementById("search")?.focus();
  if (!narrow.value) return focus();
  pane.value = "tools";
  requestAnimationFrame(focus);
  return undefined;
}

addEventListener("keydown", keyPressed);
