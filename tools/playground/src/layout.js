// The widths of the panes on a wide screen: dividers that a pointer drags and the arrow keys move.
import { signal } from "./view.js";

const KEY = "agents-tools-panes";
const STEP = 24;
const LEAST = { tools: 160, run: 280 };
const MIDDLE = 320;

/** The widths that were chosen, in pixels; those of the style sheet for the others. */
const widths = signal(JSON.parse(localStorage.getItem(KEY) ?? "{}"));

function setWidth(name, width) {
  const other = name === "tools" ? "run" : "tools";
  const most = innerWidth - MIDDLE - widthOf(other);
  const fits = Math.round(Math.max(LEAST[name], Math.min(width, most)));
  widths.value = { ...widths.value, [name]: fits };
  localStorage.setItem(KEY, JSON.stringify(widths.value));
}

const widthOf = (name) => document.querySelector(`.pane.${name}`)?.offsetWidth ?? LEAST[name];

/** The columns of the panes; undefined for those of the style sheet. */
export function columns() {
  const { tools, run } = widths.value;
  if (!tools && !run) return "";
  const least = (name, other) => `minmax(${LEAST[name]}px, ${other}px)`;
  return `${tools ? least("tools", tools) : "minmax(13rem, 17rem)"} minmax(${MIDDLE}px, 1.15fr) ${
    run ? least("run", run) : "minmax(21rem, 1fr)"
  }`;
}

/** @param {{name: "tools" | "run", label: string}} props The pane whose width changes. */
export function Divider({ name, label }) {
  const sign = name === "tools" ? 1 : -1;
  const drag = (event) => {
    const { currentTarget: divider, clientX: from, pointerId } = event;
    const width = widthOf(name);
    event.preventDefault();
    divider.focus();
    divider.setPointerCapture(pointerId);
    divider.onpointermove = ({ clientX }) => setWidth(name, width + sign * (clientX - from));
    divider.onpointerup = divider.onpointercancel = () => (divider.onpointermove = null);
  };
  const move = (event) => {
    const by = { ArrowLeft: -STEP, ArrowRight: STEP }[event.key];
    if (by) setWidth(name, widthOf(name) + sign * by);
    else if (event.key === "Home") {
      const { [name]: _, ...rest } = widths.value;
      widths.value = rest;
      localStorage.setItem(KEY, JSON.stringify(rest));
    } else return;
    event.preventDefault();
  };
  return html`<div class="divider of-${name}" role="separator" aria-orientation="vertical" tabindex="0" aria-label=${label}
    aria-valuemin=${LEAST[name]} aria-valuenow=${widths.value[name] ?? LEAST[name]} aria-controls=${`pane-of-${name}`}
    onPointerDown=${drag} onKeyDown=${move} />`;
}
