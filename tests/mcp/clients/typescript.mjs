// The TypeScript SDK, in either of its lines: `node typescript.mjs SDK TARGET STEPS`, where SDK is its
// file index.js or index.mjs. See steps.py for what it does and tells.
import { existsSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";

const [sdk, target, steps] = process.argv.slice(2);
const load = (path) => import(pathToFileURL(join(dirname(sdk), path)));
const second = sdk.endsWith(".mjs");
const { Client } = await load(second ? "index.mjs" : "index.js");
const { StdioClientTransport } = await load(second ? "stdio.mjs" : "stdio.js");
const { StreamableHTTPClientTransport } = await load(second ? "index.mjs" : "streamableHttp.js");

const BOUND = 30_000;

async function comes(file) {
  for (const end = Date.now() + BOUND; Date.now() < end; ) {
    if (existsSync(file)) return true;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
  return false;
}

function request(client, step, params, options) {
  if (step.do === "read") return client.readResource({ uri: step.uri });
  if (step.do === "prompt") return client.getPrompt(params);
  if (step.do === "task") return task(client, params);
  return second ? client.callTool(params, options) : client.callTool(params, undefined, options);
}

async function task(client, params) {
  let created = false;
  for await (const message of client.experimental.tasks.callToolStream(params)) {
    if (message.type === "taskCreated") created = true;
    if (message.type === "error") throw message.error;
    if (message.type === "result" && created) return message.result;
  }
  throw new Error("the call did not become a task");
}

async function answer(client, step) {
  const progress = [];
  const onprogress = (told) => {
    progress.push([told.progress, told.total ?? null, told.message ?? null]);
    if (step.heard) writeFileSync(join(step.heard, String(told.message)), "");
  };
  const params = { name: step.name, arguments: step.arguments ?? {} };
  const controller = new AbortController();
  const options = { onprogress, signal: controller.signal };
  const call = request(client, step, params, options);
  const folder = step.cancel ?? step.leave;
  if (folder) {
    const ended = call.catch(() => {});
    await comes(join(folder, "began"));
    controller.abort();
    await ended;
    return { cancelled: "cancel" in step && (await comes(join(folder, "cancelled"))) };
  }
  try {
    return { result: await call, progress };
  } catch (error) {
    return { error: `${error.name}: ${error.message}`, progress };
  }
}

const client = new Client(
  { name: "typescript", version: "1.0.0" },
  { capabilities: { elicitation: {}, sampling: { tools: {} } }, ...(second ? { versionNegotiation: { mode: "auto" } } : {}) },
);
const { CreateMessageRequestSchema, ElicitRequestSchema } = second ? {} : await load("../types.js");
client.setRequestHandler(second ? "elicitation/create" : ElicitRequestSchema, ({ params }) => {
  const [name] = Object.keys(params.requestedSchema.properties);
  return { action: "accept", content: { [name]: 7 } };
});
client.setRequestHandler(second ? "sampling/createMessage" : CreateMessageRequestSchema, ({ params }) => {
  const answer = { role: "assistant", model: "small" };
  const { content } = params.messages.at(-1);
  if (Array.isArray(content)) {
    const text = `It is ${content[0].content[0].text}.`;
    return { ...answer, content: { type: "text", text }, stopReason: "endTurn" };
  }
  const call = { type: "tool_use", id: "c1", name: params.tools[0].name, input: { a: 2, b: 3 } };
  return { ...answer, content: [call], stopReason: "toolUse" };
});
if (target.startsWith("http")) {
  await client.connect(new StreamableHTTPClientTransport(new URL(target)));
} else {
  const [command, ...args] = JSON.parse(target);
  await client.connect(new StdioClientTransport({ command, args }));
}
const { tools } = await client.listTools();
const calls = [];
for (const step of JSON.parse(steps)) calls.push(await answer(client, step));
const version = second ? client.getNegotiatedProtocolVersion() : "";
console.log(JSON.stringify({ version, tools, calls }));
await client.close();
