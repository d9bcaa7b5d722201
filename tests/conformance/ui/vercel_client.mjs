// Plays the pages of a chat with the real AI SDK: `node vercel_client.mjs FOLDER < JOBS`.
//
// FOLDER holds an installed `ai`; JOBS is a JSON list of {name, api, does, version}. For each one a
// line of JSON is printed: the message as the page shows it at the end, and all that went wrong.

import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { pathToFileURL } from "node:url";

const folder = process.argv[2];
const jobs = await text(process.stdin);
const require = createRequire(join(resolve(folder), "node_modules", "ai", "package.json"));
const manifest = require("./package.json");
const entry = manifest.exports["."].import ?? manifest.exports["."].default ?? manifest.module;
const file = typeof entry === "string" ? entry : entry.default;
const ai = await import(pathToFileURL(join(resolve(folder), "node_modules", "ai", file)));

const complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...said) => complaints.push(`${level}: ${said.map(String).join(" ")}`);
}
process.on("warning", (warning) => complaints.push(`warning: ${warning}`));
process.on("unhandledRejection", (error) => complaints.push(`unhandled: ${error?.stack ?? error}`));

// The state of `useChat`, without React.
class State {
  status = "ready";
  error = undefined;
  messages = [];
  pushMessage = (message) => {
    this.messages = [...this.messages, this.snapshot(message)];
  };
  popMessage = () => {
    this.messages = this.messages.slice(0, -1);
  };
  replaceMessage = (index, message) => {
    this.messages = this.messages.map((one, at) => (at === index ? this.snapshot(message) : one));
  };
  snapshot = (value) => structuredClone(value);
}

class Page extends ai.AbstractChat {
  constructor(options) {
    const state = new State();
    state.messages = options.messages ?? [];
    super({ ...options, state });
    this.page = state;
  }
}

// Gives the response up to so many bytes, and then the error of a lost connection.
function cutAfter(bytes) {
  let isCut = false;
  return async (url, options) => {
    const response = await fetch(url, options);
    if (isCut || !response.ok || response.body === null) return response;
    isCut = true;
    const reader = response.body.getReader();
    let left = bytes;
    const body = new ReadableStream({
      async pull(controller) {
        const { done, value } = await reader.read();
        if (done) return controller.close();
        if (value.length < left) {
          left -= value.length;
          return controller.enqueue(value);
        }
        await reader.cancel();
        controller.error(new TypeError("network error"));
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
}

// Gives a stream that was written by hand.
function answerOf(text) {
  const headers = { "content-type": "text/event-stream" };
  return async () => new Response(text, { status: 200, headers });
}

const sleep = (seconds) => new Promise((done) => setTimeout(done, seconds * 1000));

async function until(holds, what) {
  for (let waited = 0; waited < 20; waited += 0.01) {
    if (holds()) return;
    await sleep(0.01);
  }
  throw new Error(`waited too long for ${what}`);
}

const toolParts = (message) =>
  (message?.parts ?? []).filter((one) => one.type === "dynamic-tool" || one.type.startsWith("tool-"));

// When a page sends by itself. What was written by hand may look like a call of the page's own, and
// then it would send for ever.
function automatic(job, asked) {
  if (job.does === "read") return () => false;
  return asked && job.version >= 6
    ? ai.lastAssistantMessageIsCompleteWithApprovalResponses
    : ai.lastAssistantMessageIsCompleteWithToolCalls;
}

async function play(job) {
  const isCut = job.does === "cut" || job.does === "reload";
  const seen = { errors: [], calledHere: [], finishes: [], logs: 0, statuses: [], requests: [] };
  const asked = job.does === "approve" || job.does === "reject";
  let stopping = false;
  const counted = async (url, options) => {
    seen.requests.push(`${options?.method ?? "GET"} ${new URL(url).pathname}`);
    return (job.does === "read" ? answerOf(job.text) : isCut ? cut : fetch)(url, options);
  };
  const cut = cutAfter(job.bytes ?? 3000);
  const options = {
    id: `chat-${job.name}`,
    transport: new ai.DefaultChatTransport({ api: job.api, fetch: counted }),
    sendAutomaticallyWhen: automatic(job, asked),
    onToolCall: ({ toolCall }) => {
      seen.calledHere.push(toolCall.toolName);
    },
    onError: (error) => seen.errors.push(`${error.name}: ${error.message}`),
    onFinish: ({ isAbort, isDisconnect, isError, finishReason }) =>
      seen.finishes.push({ isAbort, isDisconnect, isError, finishReason }),
    onData: (part) => {
      if (part.type === "data-agents-tool-log") seen.logs += 1;
      if (part.data?.progress?.message !== "waiting" || stopping) return;
      stopping = true;
      if (job.does === "stop") page.stop();
      if (job.does === "stop_here") {
        const headers = { "content-type": "application/json" };
        fetch(`${job.api}/${page.id}/stop`, { method: "POST", headers });
      }
    },
  };
  let page = new Page(options);
  await page.sendMessage({ text: "Go." });
  if (asked) await answer(page, job, seen);
  if (isCut) {
    seen.before = structuredClone(page.lastMessage?.parts ?? []);
    if (job.does === "reload") page = new Page({ ...options, messages: page.messages.slice(0, 1) });
    await page.resumeStream();
  }
  if (job.does === "again") {
    seen.before = structuredClone(page.lastMessage?.parts ?? []);
    await page.resumeStream(); // there is nothing to resume
  }
  if (job.does === "talk") await page.sendMessage({ text: "And more." });
  await until(() => page.status === "ready" || page.status === "error", "the end");
  // A run that is stopped may still run here, and would go on for a page that resumes it.
  const stored = ["read", "stop"].includes(job.does) ? {} : await load(job, page);
  const valid = await ai
    .safeValidateUIMessages?.({ messages: page.messages })
    .then((told) => (told.success ? null : String(told.error)));
  return {
    name: job.name,
    version: manifest.version,
    status: page.status,
    messages: page.messages,
    valid: valid ?? null,
    ...stored,
    ...seen,
  };
}

// Gives the messages that the server has, and those that a page shows that loads and resumes them.
async function load(job, { id }) {
  const response = await fetch(`${job.api}/${id}/messages`);
  const stored = await response.json();
  const transport = new ai.DefaultChatTransport({ api: job.api });
  const loaded = new Page({ id, transport, messages: structuredClone(stored) });
  await loaded.resumeStream();
  return { stored, loaded: loaded.messages };
}

async function answer(page, job, seen) {
  seen.before = structuredClone(page.lastMessage.parts);
  const approved = job.does === "approve";
  const reason = approved ? undefined : "not today";
  if (job.version === 5) {
    const questions = page.lastMessage.parts
      .filter((part) => part.type === "data-agents-tool-approval")
      .map((part) => ({ id: part.data.approvalId, approved, reason }));
    await page.sendMessage(undefined, { body: { approvals: questions } });
    return;
  }
  for (const part of toolParts(page.lastMessage)) {
    if (part.state !== "approval-requested") continue;
    await page.addToolApprovalResponse({ id: part.approval.id, approved, reason });
  }
  await until(() => seen.finishes.length >= 2, "the answer to be sent by itself");
}

async function tooLate(job) {
  await sleep(15);
  throw new Error(`${job.name} has not ended in 15 s`);
}

for (const job of JSON.parse(jobs)) {
  complaints.length = 0;
  let told;
  try {
    told = await Promise.race([play(job), tooLate(job)]);
  } catch (error) {
    told = { name: job.name, failed: String(error?.stack ?? error) };
  }
  process.stdout.write(`${JSON.stringify({ ...told, complaints: [...complaints] })}\n`);
}
await new Promise((done) => process.stdout.write("", done)); // a pipe is written in the background
process.exit(0);
