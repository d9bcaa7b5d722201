// The middle pane: a tool with its form and JSON side by side, or an agent with its input.
import { AgentEditor } from "./chat.js";
import { Form, focusField } from "./form.js";
import { checkTool, runAgent, runTool } from "./runs.js";
import { agents, current, draftOf, info, middle, selected, tools } from "./state.js";
import { Badges } from "./tools.js";
import { CopyButton, TabPanel, Tabs } from "./ui.js";
import { Views } from "./views.js";

export function Editor() {
  const tool = current("tool");
  const agent = current("agent");
  if (tool) return html`<${ToolEditor} key=${tool.name} tool=${tool} />`;
  if (agent) return html`<${AgentEditor} key=${agent.name} agent=${agent} />`;
  const gone = selected.value && `${selected.value.name} is not in the newest version of the file.`;
  const some = tools.value.length + agents.value.length > 0;
  return html`<p class="empty">${gone || (some ? "Choose a tool or an agent on the left." : "There is nothing to run yet.")}</p>`;
}

/** Runs what is shown; bound to Ctrl+Enter. */
export function runCurrent() {
  const tool = current("tool");
  const agent = current("agent");
  if (tool) runTool(tool);
  else if (agent) runAgent(agent.name);
}

const TABS = [
  ["arguments", "Arguments"],
  ["views", "What the model sees"],
];

function ToolEditor({ tool: one }) {
  const { source } = one;
  return html`
    <header class="head">
      <h2>${one.annotations?.title ?? one.name} ${
        one.annotations?.title &&
        html`<span class="mono">
          ${one.name}</span>`
      }</h2>
      <span class="badges"><${Badges} tool=${one} /></span>
      ${one.description && html`<p class="about">${one.description}</p>`}
      ${
        source &&
        html`<p class="source"><span class="mono">
              ${source.file.split("/").slice(-2).join("/")}:${source.line}</span>
        <${CopyButton} text="${source.file}:${source.line}" what="Place">Copy place</${CopyButton}></p>`
      }
    </header>
    <${Tabs} name="middle" label="Views of ${one.name}" tabs=${TABS} current=${middle.value}
        onSelect=${(id) => (middle.value = id)} />
    <${TabPanel} name="middle" current=${middle.value} class="scroll">
      ${
        middle.value === "views"
          ? html`<${Views} key=${info.value.generation} tool=${one} />`
          : html`<${Arguments} tool=${one} />`
      }
    </${TabPanel}>`;
}

function Arguments({ tool: one }) {
  const draft = draftOf(one);
  return html`
    <div class="split">
      <div>
        <${Verdict} draft=${draft} />
        <${Form} draft=${draft} schema=${one.schema} />
      </div>
      <${JsonEditor} draft=${draft} />
    </div>
    <div class="actions run-bar">
      <button type="button" class="primary" aria-keyshortcuts="Control+Enter"
          onClick=${() => runTool(one)}>Run <kbd>Ctrl ↵</kbd></button>
      <button type="button" disabled=${Boolean(draft.broken.value)} onClick=${() => checkTool(one)}>Check</button>
      ${
        one.example &&
        html`<button type="button" class="quiet"
          onClick=${() => draft.load(one.example)}>Use example</button>`
      }
    </div>`;
}

/** What the last check said, with a way to each fault. */
function Verdict({ draft }) {
  const verdict = draft.verdict.value;
  const faults = draft.faults.value;
  if (verdict === null || verdict === "stale") return null;
  if (verdict === "ok") return html`<p class="verdict good">These arguments are valid.</p>`;
  return html`<div class="verdict bad">
    <p><b>${faults.length} ${faults.length === 1 ? "problem" : "problems"}</b></p>
    <ul>${faults.map(
      (fault) => html`<li><button type="button" class="link" onClick=${() => focusField(fault.path)}>
      <code>${fault.path.join(".") || "arguments"}</code></button> ${fault.message}</li>`,
    )}</ul>
    <details><summary>Error message for the model</summary><pre class="code" tabindex="0">${verdict}</pre></details>
  </div>`;
}

function JsonEditor({ draft }) {
  const broken = draft.broken.value;
  const goTo = () => {
    const area = document.getElementById("json-editor");
    area.focus();
    area.setSelectionRange(broken.offset, broken.offset + 1);
  };
  return html`<div class="json">
    <div class="field-head"><label for="json-editor"><span class="name">JSON</span></label>
      <span class="field-tools"><${CopyButton} text=${() => draft.text.value} what="JSON" /></span></div>
    <textarea id="json-editor" class="mono editor" spellcheck="false" value=${draft.text.value}
        aria-invalid=${broken ? "true" : undefined}
      aria-describedby="json-fault" onInput=${(event) => draft.setText(event.target.value)} />
    <div id="json-fault" role="status" class=${broken ? "verdict bad" : ""}>
      ${
        broken &&
        html`<p><button type="button" class="link"
              onClick=${goTo}>Line ${broken.line}, column ${broken.column}</button>: ${broken.message}.
        The form waits until this is mended.</p>
        <button type="button" class="small"
            onClick=${() => draft.discardText()}>Go back to the last valid arguments</button>`
      }
    </div>
  </div>`;
}
