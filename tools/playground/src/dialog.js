// The dialog: a question with yes or no.
import { signal } from "./view.js";
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
export function Modal({ title, onClose, children }) {
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
