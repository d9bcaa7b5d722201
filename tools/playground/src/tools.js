// The list of tools and agents, with its search.
import { signal } from "./view.js";
import { agents, info, select, selected, tools } from "./state.js";
import { Badge, Icon, arrows } from "./ui.js";

const BROKEN = "Nothing could be loaded. The problems are listed above.";
const EMPTY =
  "No tools here yet. Decorate a function with @function_tool and save the file: it will show up.";
const words = signal("");

/** @param {{name: string, description?: string, instructions?: string}} one */
const matches = (one) => {
  const text =
    `${one.name} ${one.annotations?.title ?? ""} ${one.description ?? one.instructions ?? ""}`.toLowerCase();
  return words.value
    .toLowerCase()
    .split(/\s+/)
    .every((word) => text.includes(word));
};

/** What a tool says of itself, as badges. */
export function Badges({ tool }) {
  const { annotations: notes } = tool;
  return html`
    ${tool.kind !== "function" && html`<${Badge}>${tool.kind}</${Badge}>`}
    ${notes?.readOnlyHint && html`<${Badge}>read-only</${Badge}>`}
    ${tool.destructive && html`<${Badge} tone="bad">destructive</${Badge}>`}
    ${notes?.openWorldHint === false && html`<${Badge}>closed world</${Badge}>`}
    ${tool.needs_approval && html`<${Badge} tone="warn">approval</${Badge}>`}`;
}

export function ToolList() {
  const found = tools.value.filter(matches);
  const people = agents.value.filter(matches);
  const none = !tools.value.length && !agents.value.length;
  const leave = (event) => {
    if (event.key === "Escape" && words.value) words.value = "";
    else if (event.key === "ArrowDown") document.querySelector(".entry")?.focus();
  };
  return html`
    <div class="search">
      <${Icon} name="search" />
      <input id="search" type="search" placeholder="Search" aria-label="Search tools and agents"
          aria-keyshortcuts="/" value=${words.value}
        onInput=${(event) => (words.value = event.target.value)} onKeyDown=${leave} />
      <kbd aria-hidden="true">/</kbd>
    </div>
    <div class="scroll" onKeyDown=${arrows(".entry")}>
      ${none && html`<p class="empty">${info.value.problems.length ? BROKEN : EMPTY}</p>`}
      ${!none && !found.length && !people.length && html`<p class="empty">Nothing matches “${words.value}”.</p>`}
      <${Group} title="Tools" kind="tool" list=${found} />
      <${Group} title="Agents" kind="agent" list=${people} />
    </div>`;
}

function Group({ title, kind, list }) {
  if (!list.length) return null;
  return html`<section>
    <h2>${title} <span class="count">${list.length}</span></h2>
    <ul>${list.map((one) => describe(kind, one))}</ul>
  </section>`;
}

const described = new WeakMap();

/** The same description each time, so that a long list is drawn only where it changes. */
function describe(kind, one) {
  const make = (current) => html`<li key=${one.name}><${Entry} ...${{ kind, one, current }} /></li>`;
  if (selected.value?.kind === kind && selected.value.name === one.name) return make(true);
  if (!described.has(one)) described.set(one, make(false));
  return described.get(one);
}

function Entry({ kind, one, current }) {
  const about = (one.description ?? one.instructions ?? "").split("\n")[0];
  return html`<button type="button" class="entry" aria-current=${current ? "true" : undefined}
        onClick=${() => select(kind, one.name)}>
    <span class="name">${one.name}</span>
    ${about && html`<span class="about">${about}</span>`}
    <span class="badges">${
      kind === "tool"
        ? html`<${Badges} tool=${one} />`
        : one.model &&
          html`<${Badge}>
        ${one.model}</${Badge}>`
    }</span>
  </button>`;
}
