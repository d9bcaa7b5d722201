// A call that waits for approval, as a card where the run is shown. It never takes the focus.
import { signal } from "./view.js";
import { pretty, read, same } from "./json.js";
import { decide } from "./runs.js";

/** What a person is writing about each call; both places that show the run share it. */
const drafts = new WeakMap();

function draftOf(view, call) {
  if (!drafts.has(view)) drafts.set(view, new Map());
  const known = drafts.get(view);
  const key = JSON.stringify([call.path, call.call_id]);
  if (!known.has(key)) {
    const given = read(call.arguments);
    known.set(key, {
      given,
      text: signal(given.fault ? call.arguments : pretty(given.value)),
      message: signal(""),
      sent: signal(false),
    });
  }
  return known.get(key);
}

/** @param {{view: import("./runs.js").RunView, place: string}} props `place` keeps the ids apart. */
export function Approvals({ view, place }) {
  const waiting = view.detail.value?.approvals ?? [];
  if (!waiting.length) return null;
  return html`<div class="approvals">${waiting.map(
    (call) =>
      html`<${Card} key=${JSON.stringify([call.path, call.call_id])} view=${view} call=${call} place=${place} />`,
  )}</div>`;
}

function Card({ view, call, place }) {
  const draft = draftOf(view, call);
  const text = draft.text.value;
  const told = read(text);
  const edited = !told.fault && !same(told.value, draft.given.value);
  const id = `${place}-${[...(call.path ?? []), call.call_id].join("-")}`.replace(/[^\w-]/g, "_");
  const send = async (event, decision) => {
    const card = event.currentTarget.closest(".approval");
    const next = card.closest("[tabindex='0']");
    draft.sent.value = true;
    next?.focus({ preventScroll: true }); // the card goes away with the focus in it
    await decide(view, [{ call_id: call.call_id, path: call.path, ...decision }]);
    draft.sent.value = false;
  };
  const message = draft.message.value.trim();
  return html`<section class="approval" aria-labelledby="${id}-title">
    <h3 id="${id}-title">Approve ${call.name}?</h3>
    <p class="note">The call waits for your decision. You can change its arguments first.${
      call.path?.length > 0 && ` Within ${call.path.join(" › ")}.`
    }</p>
    <div class="field">
      <label for="${id}-arguments"><span class="name">Arguments</span></label>
      <textarea id="${id}-arguments" class="mono editor" rows="1" spellcheck="false" value=${text}
        aria-invalid=${told.fault ? "true" : undefined} aria-describedby="${id}-fault"
        onInput=${(event) => (draft.text.value = event.target.value)} />
      <p class="fault" id="${id}-fault" role="status">
        ${told.fault && `Line ${told.fault.line}, column ${told.fault.column}: ${told.fault.message}`}</p>
    </div>
    <div class="field">
      <label for="${id}-message"><span class="name">Message to the model if you reject</span></label>
      <textarea id="${id}-message" rows="1" value=${draft.message.value}
        onInput=${(event) => (draft.message.value = event.target.value)} />
    </div>
    <div class="actions wrap">
      <button type="button" class="primary" disabled=${Boolean(told.fault) || draft.sent.value}
        onClick=${(event) => send(event, { approve: true, ...(edited && { arguments: text }) })}>
        ${edited ? "Approve with changes" : "Approve"}</button>
      <button type="button" class="danger" disabled=${draft.sent.value}
        onClick=${(event) => send(event, { approve: false, ...(message && { message }) })}>Reject</button>
    </div>
  </section>`;
}
