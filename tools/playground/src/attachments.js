// The files of messages to agents: those that the next message will have, and those that were sent.
import { signal, useSignal } from "./view.js";
import * as api from "./api.js";
import { attempt, current, info } from "./state.js";
import { Icon, IconButton, download, say } from "./ui.js";

const MOST_FILES = 20;
const PICTURE = /^image\/(png|jpeg|gif|webp|avif|bmp|svg\+xml)$/;

/** @typedef {{name: string, mime: string | null, size: number | null}} Facts */

/** A file that the next message will have, and the address of its content if it is a picture. */
class Attachment {
  static #made = 0;

  /** @param {File} file */
  constructor(file) {
    this.key = Attachment.#made++;
    this.file = file;
    this.name = file.name || "file";
    this.mime = file.type;
    this.size = file.size;
    this.picture = PICTURE.test(file.type) && URL.createObjectURL(file);
  }
}

const attached = new Map();
/** Why a file was not attached, by agent. */
const faults = new Map();
const of = (map, agent, value) => map.get(agent) ?? map.set(agent, signal(value)).get(agent);

/** What the next message to an agent will have. @param {string} agent @returns {import("./view.js").Signal<Attachment[]>} */
export const attachmentsOf = (agent) => of(attached, agent, []);
export const faultOf = (agent) => of(faults, agent, "");

/** @param {number} size In bytes. */
export function bytes(size) {
  if (size < 1024) return `${size} ${size === 1 ? "byte" : "bytes"}`;
  if (size < 1 << 20) return `${Math.round(size / 1024)} KiB`;
  return `${(size / (1 << 20)).toFixed(1)} MiB`;
}

/** A file as a text: its name, kind and size. @param {Facts} file */
export const factsOf = ({ name, mime, size }) =>
  [name, mime, size === null || size === undefined ? null : bytes(size)].filter(Boolean).join(", ");

/** Attaches files to the next message, as far as they fit. @param {string} agent @param {Iterable<File>} files */
export function attach(agent, files) {
  const list = attachmentsOf(agent);
  const most = info.value.most_bytes;
  const fault = faultOf(agent);
  fault.value = "";
  for (const file of files) {
    const total = list.value.reduce((sum, one) => sum + one.size, file.size);
    if (list.value.length === MOST_FILES) fault.value = `A message can have ${MOST_FILES} files. Send the others in another message.`;
    else if (total > most)
      fault.value = `${file.name} (${bytes(file.size)}) is too large: the files of a message can have ${bytes(most)} together. ${file.size > most ? "Attach a smaller file." : "Send it in another message."}`;
    else list.value = [...list.value, new Attachment(file)];
  }
  say(fault.value || `${list.value.length} ${list.value.length === 1 ? "file" : "files"} attached`);
  document.getElementById("agent-input")?.focus();
}

/** @param {string} agent @param {Attachment} [one] Without one, all are removed. */
export function detach(agent, one) {
  const list = attachmentsOf(agent);
  const gone = one ? [one] : list.value;
  gone.forEach(({ picture }) => picture && URL.revokeObjectURL(picture));
  list.value = list.value.filter((other) => !gone.includes(other));
  faultOf(agent).value = "";
  if (!one) return;
  say(`${one.name} removed`);
  document.getElementById("agent-input")?.focus();
}

/** The content of a file in base64. @param {Blob} file */
const read = (file) =>
  new Promise((done, fail) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result.slice(reader.result.indexOf(",") + 1));
    reader.onerror = () => fail(reader.error);
    reader.readAsDataURL(file);
  });

/** The files of the next message as the server takes them; undefined if one cannot be read. @param {string} agent */
export async function readAttachments(agent) {
  const made = [];
  for (const { name, file } of attachmentsOf(agent).value)
    try {
      made.push({ name, data: await read(file) });
    } catch {
      faultOf(agent).value = `${name} cannot be read. Remove it, or choose it again.`;
      say(faultOf(agent).value);
      return undefined;
    }
  return made;
}

/** Attaches the files of a run to the next message. @param {{id: string, name: string, files: {name: string, mime_type: string}[]}} run */
export async function attachAgain(run) {
  detach(run.name);
  const read = async ({ name, mime_type: type }, number) =>
    new File([await api.file(run.id, number)], name, { type: type ?? "" });
  const files = run.files?.length && (await attempt(() => Promise.all(run.files.map(read))));
  if (files) attach(run.name, files);
}

/** The files that the next message will have, and why others are not among them. */
export function Attachments({ agent }) {
  const list = attachmentsOf(agent).value;
  const fault = faultOf(agent).value;
  return html`${
    list.length > 0 &&
    html`<ul class="files" aria-label="Attached files">${list.map(
      (one) => html`<li class="file" key=${one.key}>
        ${one.picture ? html`<img src=${one.picture} alt="" />` : html`<${Icon} name="file" />`}
        <span class="file-name">${one.name}</span><span class="note">${bytes(one.size)}</span>
        <${IconButton} icon="close" label="Remove ${one.name}" onClick=${() => detach(agent, one)} /></li>`,
    )}</ul>`
  }${fault && html`<p class="fault" role="alert">${fault}</p>`}`;
}

/** The button that chooses files. */
export function AttachButton({ agent }) {
  const choose = () => document.getElementById("agent-files").click();
  const chosen = ({ target }) => {
    attach(agent, [...target.files]);
    target.value = ""; // the same file can be chosen again
  };
  return html`<input id="agent-files" type="file" multiple hidden aria-label="Files to attach" onChange=${chosen} />
    <${IconButton} icon="clip" label="Attach files" onClick=${choose} />`;
}

/** Takes files from the clipboard, unless it has a text, too. */
export function paste(event, agent) {
  const { files } = event.clipboardData;
  if (!files.length || event.clipboardData.getData("text/plain")) return;
  event.preventDefault();
  attach(agent, [...files]);
}

/** Whether files are being dragged over the page. */
export const dragging = signal(false);
const hasFiles = (event) => event.dataTransfer?.types.includes("Files") && current("agent");
addEventListener("dragover", (event) => {
  if (!hasFiles(event) || document.querySelector("dialog[open]")) return;
  event.preventDefault();
  dragging.value = true;
});
addEventListener("dragleave", (event) => !event.relatedTarget && (dragging.value = false));
addEventListener("drop", (event) => {
  dragging.value = false;
  if (!hasFiles(event) || !event.dataTransfer.files.length) return;
  event.preventDefault();
  attach(current("agent").name, [...event.dataTransfer.files]);
});

/** Calls something when an element comes into view. */
const whenSeen = (action) => (dom) => {
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    action();
  });
  observer.observe(dom);
  return () => observer.disconnect();
};

/** The files of a message that was sent, with the pictures where they can be read. @param {{files: Facts[], run?: string}} props */
export const Files = ({ files, run }) =>
  files.length > 0 &&
  html`<ul class="files" aria-label="Files of the message">${files.map(
    (file, number) => html`<${Sent} file=${file} run=${run} number=${number} />`,
  )}</ul>`;

function Sent({ file, run, number }) {
  const picture = useSignal(null);
  const { name, mime, size } = file;
  const load = async () => {
    const data = await api.file(run, number).catch(() => null);
    if (data) picture.value = URL.createObjectURL(new Blob([data], { type: mime }));
  };
  const save = async () => {
    const data = await attempt(() => api.file(run, number));
    if (data) download(name, [data], mime ?? "");
  };
  const isPicture = run && PICTURE.test(mime ?? "");
  return html`<li class="file" ref=${isPicture ? whenSeen(load) : undefined}>
    ${picture.value ? html`<img src=${picture.value} alt="" />` : html`<${Icon} name="file" />`}
    <span class="file-name">${name}</span>${size !== null && html`<span class="note">${bytes(size)}</span>`}
    ${run && size !== null && html`<${IconButton} icon="save" label="Download ${name}" onClick=${save} />`}</li>`;
}
