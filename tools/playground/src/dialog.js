// Dialogs: a question with yes or no, and the decision about calls that wait for approval.
import { signal, useSignal } from "./view.js";
import { pretty, read, same } from "./json.js";
import { Code } from "./ui.js";

const question = signal(null);

/**
 * Asks before something that cannot be undone.
 * @param {{title: string, text: string, action: string, code?: string, dangerous?: boolean}} about
 * @returns {Promise<boolean>}
 */
export const confirm = (about) => new Promise((answer) => (question.value = { ...about, answer }));

const modal = (dialog) => {
  const before = document.activeElement;
  dialog.showModal();
  return () => before?.isConnected && before.focus();
};

/** A modal dialog; Esc closes it and the focus goes back to where it was. */
function Modal({ title, onClose, children }) {
  return html`<dialog ref=${modal} aria-labelledby="dialog-title"
        onCancel=${(event) => (event.preventDefault(), onClose())}>
    <h2 id="dialog-title">${title}</h2>
    ${children}
  </dialog>`;
}

export function Question() {
  const asked = question.value;
  if (!asked) return null;
  const answer = (yes) => {
    question.value = null;
    asked.answer(yes);
  };
  return html`<${Modal} key=${asked.title} title=${asked.title} onClose=${() => answer(false)}>
    <p>${asked.text}</p>
    ${asked.code && html`<${Code} text=${asked.code} label="Arguments" />`}
    <div class="actions">
      <button type="button" class=${asked.dangerous ? "danger" : "primary"} onClick=${() => answer(true)}>
          ${asked.action}</button>
      <button type="button" autofocus onClick=${() => answer(false)}>Keep as it is</button>
    </div>
  </${Modal}>`;
}

/**
 * Goes through the calls that wait, one after the other, and gives all decisions at the end.
 * @param {{approvals: object[], onDecide: (decisions: object[]) => void, onClose: () => void}} props
 */
export function Approval({ approvals, onDecide, onClose }) {
  const earlier = useSignal([]);
  const made = earlier.value;
  const call = approvals[made.length];
  const decided = (decision) => {
    const all = [...made, { call_id: call.call_id, path: call.path, ...decision }];
    if (all.length === approvals.length) onDecide(all);
    else earlier.value = all;
  };
  const count = approvals.length > 1 ? ` (${made.length + 1} of ${approvals.length})` : "";
  return html`<${Modal} title="Approve ${call.name}?${count}" onClose=${onClose}>
    <${Decision} key=${made.length} call=${call} onDecide=${decided} onClose=${onClose} />
  </${Modal}>`;
}

function Decision({ call, onDecide, onClose }) {
  const given = read(call.arguments);
  const written = useSignal(given.fault ? call.arguments : pretty(given.value));
  const text = written.value;
  const message = useSignal("");
  const told = read(text);
  const edited = !told.fault && !same(told.value, given.value);
  const approve = () => onDecide({ approve: true, ...(edited && { arguments: text }) });
  const reject = () =>
    onDecide({ approve: false, ...(message.value.trim() && { message: message.value.trim() }) });
  return html`
    <p>The call waits for your decision. You can change its arguments first.</p>
    ${call.path?.length > 0 && html`<p class="note">Within ${call.path.join(" › ")}</p>`}
    <div class="field">
      <label for="approval-arguments"><span class="name">Arguments</span></label>
      <textarea id="approval-arguments" class="mono editor" spellcheck="false" value=${text}
          aria-invalid=${told.fault ? "true" : undefined}
        aria-describedby="approval-fault" onInput=${(event) => (written.value = event.target.value)} />
      <p class="fault" id="approval-fault" role="status">
          ${told.fault && `Line ${told.fault.line}, column ${told.fault.column}: ${told.fault.message}`}</p>
    </div>
    <div class="field">
      <label for="approval-message"><span class="name">Message to the model if you reject</span></label>
      <textarea id="approval-message" rows="1" value=${message.value}
          onInput=${(event) => (message.value = event.target.value)} />
    </div>
    <div class="actions">
      <button type="button" class="primary" disabled=${Boolean(told.fault)} onClick=${approve}>
          ${edited ? "Approve with changes" : "Approve"}</button>
      <button type="button" class="danger" onClick=${reject}>Reject</button>
      <button type="button" class="quiet" onClick=${onClose}>Decide later</button>
    </div>`;
}
