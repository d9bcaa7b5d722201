// The page: its frame, banners, theme and keys.
import { render, signal, useSignal } from "./view.js";
import * as api from "./api.js";
import { Question } from "./dialog.js";
import { Editor } from "./editor.js";
import { History } from "./history.js";
import { Keys, listKeys } from "./keys.js";
import { Divider, columns } from "./layout.js";
import { Panel } from "./panel.js";
import { openLinked } from "./runs.js";
import { current, failure, info, narrow, onlyRuns, pane, phase, reloaded, start, trouble } from "./state.js";
import { ToolList } from "./tools.js";
import { IconButton, Mark, Tabs, spoken } from "./ui.js";

const THEMES = { auto: "dark", dark: "light", light: "auto" };
const theme = signal(localStorage.getItem("agents-tools-theme") ?? "auto");
const panes = () => (onlyRuns() ? RUNS_ONLY : ALL());
const RUNS_ONLY = [
  ["edit", "History"],
  ["run", "Run"],
];
const ALL = () => [
  ["tools", "Tools"],
  ["edit", current("agent") ? "Chat" : "Edit"],
  ["run", "Runs"],
];

function Page() {
  if (phase.value === "loading") return html`<p class="empty">Loading…</p>`;
  if (phase.value !== "ready") return html`<${Closed} />`;
  const style = (id) => `pane ${id} ${pane.value === id ? "shown" : ""}`;
  const panel = narrow.value && {
    role: "tabpanel",
    id: "pane-panel",
    "aria-labelledby": `pane-tab-${pane.value}`,
  };
  return html`
    <a class="skip" href="#edit" onClick=${skip}>Skip to the ${onlyRuns() ? "history" : "arguments"}</a>
    <${Header} />
    <${Banners} />
    <main>
      ${
        narrow.value &&
        html`<${Tabs} name="pane" label="Panes" class="panes" tabs=${panes()} current=${pane.value}
          onSelect=${(id) => (pane.value = id)} />`
      }
      <div class="grid ${onlyRuns() ? "two" : ""}" style=${{ gridTemplateColumns: onlyRuns() || narrow.value ? "" : columns() }} ...${panel}>
      ${
        onlyRuns()
          ? html`<section class=${style("edit")} id="edit" tabindex="-1" aria-label="History">
              <div class="scroll"><${History} /></div></section>`
          : [
              html`<section class=${style("tools")} key="tools" id="pane-of-tools" tabindex="-1" aria-label="Tools and agents">
                <${ToolList} />${!narrow.value && html`<${Divider} name="tools" label="Width of the list" />`}</section>`,
              html`<section class=${style("edit")} key="edit" id="edit" tabindex="-1" aria-label="Edit"><${Editor} /></section>`,
            ]
      }
      <section class=${style("run")} id="pane-of-run" tabindex="-1" aria-label="Runs"><${Panel} />
        ${!narrow.value && !onlyRuns() && html`<${Divider} name="run" label="Width of the runs" />`}</section>
      </div>
    </main>
    <${Question} /><${Keys} />`;
}

function setTheme(name) {
  theme.value = name;
  document.documentElement.dataset.theme = name;
  localStorage.setItem("agents-tools-theme", name);
}

function skip(event) {
  event.preventDefault();
  pane.value = "edit";
  requestAnimationFrame(() => document.getElementById("edit").focus());
}

function Header() {
  const next = THEMES[theme.value];
  return html`<header class="top">
    <${Mark} /><h1>${info.value.target || "playground"}</h1>
    <span class="note">agents-tools ${info.value.version}</span>
    <span class="push" />
    <${IconButton} icon="keys" label="Keys" aria-keyshortcuts="?" onClick=${listKeys} />
    <${IconButton} icon=${theme.value} label="Theme: ${theme.value}. Change to ${next}"
        onClick=${() => setTheme(next)} />
  </header>`;
}

function Banners() {
  const { problems } = info.value;
  return html`<div class="banners" role="status">
    ${
      api.link.value.lost &&
      html`<div class="banner warn"><p>
            <b>Connection lost.</b> Reconnecting; missed events will be loaded.</p>
      <button type="button" class="small" onClick=${api.retryNow}>Try now</button></div>`
    }
    ${
      problems.length > 0 &&
      html`<div class="banner bad"><div><p>
            <b>The file has ${problems.length === 1 ? "a problem" : `${problems.length} problems`}.</b>
            ${" "}The last good version stays usable.</p>
      <ul>${problems.map(({ place, message }) => html`<li><code>${place}</code> ${message}</li>`)}</ul></div></div>`
    }
    ${reloaded.value && html`<${Note} of=${reloaded} />`}
    ${trouble.value && html`<${Note} of=${trouble} tone="bad" />`}
  </div>`;
}

const Note = ({ of, tone = "" }) =>
  html`<div class="banner ${tone}"><p>${of.value}</p><${IconButton} icon="close" label="Dismiss"
        onClick=${() => (of.value = null)} /></div>`;

/** When the page cannot be used: no token, or no server. */
function Closed() {
  const token = useSignal("");
  const enter = () => {
    api.setToken(token.value.trim());
    begin();
  };
  return html`<main class="closed">
    <h1>${phase.value === "token" ? "This page needs its token" : "The playground does not answer"}</h1>
    ${
      phase.value === "token"
        ? html`<p>Open the address that <code>agents-tools dev</code> printed, or paste the token from it.</p>
        <div class="field"><label for="token"><span class="name">Token</span></label>
          <input id="token" class="mono" autocomplete="off" value=${token.value}
              onInput=${(event) => (token.value = event.target.value)} onKeyDown=${(event) => event.key === "Enter" && enter()} /></div>
        <button type="button" class="primary" onClick=${enter}>Open</button>`
        : html`<p>${failure.value}</p><button type="button" class="primary" onClick=${begin}>Try again</button>`
    }
  </main>`;
}

async function begin() {
  await start();
  if (phase.value === "ready") await openLinked();
}

const Spoken = () => html`<p class="unseen" role="status" aria-live="polite">${spoken.value}</p>`;

const width = matchMedia("(max-width: 899px)");
width.addEventListener("change", () => (narrow.value = width.matches));
narrow.value = width.matches;
setTheme(theme.value);
api.readToken();
render(html`<${Page} /><${Spoken} />`, document.getElementById("app"));
begin();
