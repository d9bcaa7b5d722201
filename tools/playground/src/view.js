// Draws the page: elements and components from descriptions, and again when their values change.
// In the other modules, html`…` is a description; it is turned into calls of `h` by the build.

/**
 * @typedef {object} Drawn What stands on the page for a description.
 * @property {object} of The description: type, props, key.
 * @property {Drawn} [host] The element around it.
 * @property {Node} [dom] Its element or text; a component has none of its own.
 * @property {Map<string, Drawn>} parts What is in it, by key, in order.
 * @property {number} depth
 */

const SVG = new Set(["svg", "path"]);
const PROPERTIES = new Set(["value", "checked"]);

/** The component that is being drawn, and how many things of its own it has asked for. */
let drawing = null;
let asked = 0;
/** The components to draw again, and whether that is about to happen. */
const due = new Set();
let soon = false;
/** What was made in this turn and has something to do once it is on the page. */
let mounted = [];

/** Describes an element (by its name) or a component (by its function). */
export const h = (type, props, ...children) => ({
  type,
  key: props?.key,
  props: children.length ? { ...props, children } : { ...props },
});

/** Puts a description on the page. @param {object} of @param {Element} dom */
export function render(of, dom) {
  const root = { dom, parts: new Map(), depth: 0 };
  fill(root, [of], root);
  arrange(root);
  afterwards();
}

/** Draws the parts of an element or component; those with the same key and type are kept. */
function fill(drawn, children, host) {
  const { parts } = drawn;
  drawn.parts = new Map();
  for (const [key, of] of listed(children)) {
    const old = parts.get(key);
    const same = old?.of.type === of.type;
    if (same) parts.delete(key);
    const part = same ? old : { host, parts: new Map(), depth: drawn.depth + 1 };
    drawn.parts.set(key, part);
    if (part.of !== of) draw(part, of);
  }
  parts.forEach((part) => remove(part, true));
}

/** The children that show something, each with a key: its own one or its place. */
function* listed(children, before = "") {
  for (const [index, child] of children.entries()) {
    const key = before + (child?.key === undefined ? index : `=${child.key}`);
    if (Array.isArray(child)) yield* listed(child, `${key}/`);
    else if (child?.type) yield [key, child];
    else if (child !== null && child !== undefined && typeof child !== "boolean")
      yield [key, { type: "", props: String(child) }];
  }
}

/** @param {Drawn} drawn @param {object} of */
function draw(drawn, of) {
  const { type, props } = of;
  const old = drawn.of?.props;
  drawn.of = of;
  if (typeof type === "function") return drawComponent(drawn);
  if (!type) {
    drawn.dom ??= new Text();
    if (old !== props) drawn.dom.data = props;
    return undefined;
  }
  if (!old) {
    drawn.dom = SVG.has(type)
      ? document.createElementNS("http://www.w3.org/2000/svg", type)
      : document.createElement(type);
    if (props.ref) mounted.push(drawn);
  }
  const { dom } = drawn;
  for (const name in { ...old, ...props })
    if (!PROPERTIES.has(name) && props[name] !== old?.[name]) setProperty(dom, name, props[name]);
  fill(drawn, props.children ?? [], drawn);
  arrange(drawn);
  for (const name of PROPERTIES)
    if (name in props && dom[name] !== (props[name] ?? "")) dom[name] = props[name] ?? "";
  return undefined;
}

function setProperty(dom, name, value) {
  if (name.startsWith("on")) dom[name.toLowerCase()] = value;
  else if (name === "style") Object.assign(dom.style, value);
  else if (name === "children" || name === "key" || name === "ref") return;
  else if (value === undefined || value === null || (value === false && !name.startsWith("aria-")))
    dom.removeAttribute(name);
  else dom.setAttribute(name, value === true && !name.startsWith("aria-") ? "" : value);
}

function drawComponent(drawn) {
  const { type, props } = drawn.of;
  due.delete(drawn);
  drawing = drawn;
  asked = 0;
  let made;
  try {
    made = type(props);
  } finally {
    drawing = null;
  }
  fill(drawn, [made], drawn.host);
}

/** The nodes of what is drawn: its own, or those of its parts. */
const nodesOf = (drawn) => (drawn.dom ? [drawn.dom] : [...drawn.parts.values()].flatMap(nodesOf));

/** Puts the nodes of an element in order. */
function arrange({ dom, parts }) {
  let at = dom.firstChild;
  for (const node of [...parts.values()].flatMap(nodesOf)) {
    if (node === at) at = at.nextSibling;
    else dom.insertBefore(node, at);
  }
}

function remove(drawn, visible) {
  due.delete(drawn);
  drawn.seen?.forEach((watchers) => watchers.delete(drawn));
  drawn.parts.forEach((part) => remove(part, visible && !drawn.dom));
  drawn.undo?.();
  if (visible) drawn.dom?.remove();
}

/** Calls what waits for its element to be on the page; what it gives is called when it goes. */
function afterwards() {
  const all = mounted;
  mounted = [];
  for (const drawn of all) drawn.undo = drawn.of.props.ref(drawn.dom);
}

/** Draws what is due at once, outer components first: they decide whether the inner ones stay. */
export function drawDue() {
  soon = false;
  while (due.size)
    for (const drawn of [...due].sort((one, other) => one.depth - other.depth)) {
      if (!due.has(drawn)) continue;
      const before = nodesOf(drawn);
      drawComponent(drawn);
      const after = nodesOf(drawn);
      if (before.length !== after.length || after.some((node, index) => node !== before[index]))
        arrange(drawn.host);
    }
  afterwards();
}

/** How many milliseconds of a frame go to what is waiting for one. */
const BUDGET = 8;
const waiting = new Set();
let framed = 0;

/**
 * Calls functions in the next frames, in each as many as fit into a few milliseconds, so that the page stays
 * responsive. @param {(end: number) => void} job Is told when its time is over.
 */
export function inFrame(job) {
  waiting.add(job);
  framed ||= requestAnimationFrame(callWaiting);
}

function callWaiting() {
  framed = 0;
  const end = performance.now() + BUDGET;
  for (const job of waiting) {
    waiting.delete(job);
    job(end);
    drawDue();
    if (performance.now() > end) break;
  }
  if (waiting.size) framed ||= requestAnimationFrame(callWaiting);
}

/** @template T A value; each component that reads `.value` is drawn again when it is set. */
export class Signal {
  #value;
  #watchers = new Set();

  /** @param {T} value */
  constructor(value) {
    this.#value = value;
  }

  get value() {
    if (drawing) {
      this.#watchers.add(drawing);
      (drawing.seen ??= new Set()).add(this.#watchers);
    }
    return this.#value;
  }

  set value(value) {
    if (value === this.#value) return;
    this.#value = value;
    this.#watchers.forEach((drawn) => due.add(drawn));
    if (due.size && !soon) queueMicrotask(drawDue);
    soon ||= due.size > 0;
  }
}

/** @template T @param {T} value @returns {Signal<T>} */
export const signal = (value) => new Signal(value);

/** What a component keeps from one drawing to the next; asked for in the same order each time. */
export function keep(make) {
  drawing.kept ??= [];
  if (asked === drawing.kept.length) drawing.kept.push(make());
  return drawing.kept[asked++];
}

/** A value of the component that is being drawn. */
export const useSignal = (value) => keep(() => signal(value));
