// Plays the part of a user interface with the real AG-UI client: `node ag_ui_client.mjs FOLDER`.
//
// FOLDER holds an installed `@ag-ui/client`. Each line of the standard input is a job, a JSON
// object {name, url, input, does, approve}; for each one a line of JSON is printed: the messages
// that the client ended with, how the runs ended, and all that went wrong.

import { copyFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { createInterface } from "node:readline";
import { pathToFileURL } from "node:url";

const [folder] = process.argv.slice(2);
const file = join(resolve(folder), "node_modules", "@ag-ui", "client", "dist", "index.mjs");
const { HttpAgent } = await import(pathToFileURL(file));

// Our own client is loaded from a place where it finds the client to test.
const ours = new URL("../../../agents_tools/ui/client/ag-ui.js", import.meta.url);
const copy = join(resolve(folder), "agents-tools.mjs");
copyFileSync(ours, copy);

const AT_MOST = 30_000;
let timer;
let complaints = [];
for (const level of ["warn", "error"]) {
  console[level] = (...said) => complaints.push(`${level}: ${said.map(String).join(" ")}`);
}
process.on("unhandledRejection", (error) => complaints.push(`unhandled: ${error?.stack ?? error}`));

// Watches a run that goes on, as somebody who comes late.
class Watcher extends HttpAgent {
  run(input) {
    this.url = this.url.replace(/(connect)?$/, "connect");
    return super.run(input);
  }
}

const post = async (url, body) => {
  const answer = await fetch(url, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  return { status: answer.status, ...(await answer.json()) };
};

async function run(agent, parameters, told, onEvent) {
  const one = { types: {}, last: null, failed: null, result: undefined };
  told.runs.push(one);
  try {
    const { result } = await agent.runAgent(parameters, {
      onEvent: ({ event }) => {
        one.types[event.type] = (one.types[event.type] ?? 0) + 1;
        one.last = event;
        return onEvent?.(event);
      },
      onRunFailed: ({ error }) => {
        one.failed = `${error?.name}: ${error?.message}`;
      },
    });
    one.result = result;
  } catch (error) {
    one.failed ??= `${error?.name}: ${error?.message}`;
  }
  return one;
}

const user = (id, content) => ({ id, role: "user", content });

// Loses the connection of each response after a number of bytes that grows.
function cutting() {
  let limit = 150;
  return async (url, init) => {
    const response = await fetch(url, init);
    if (!response.ok) return response;
    let left = (limit *= 2);
    const cut = new TransformStream({
      transform(data, controller) {
        controller.enqueue(data.subarray(0, left));
        left -= data.length;
        if (left <= 0) controller.error(new TypeError("network error"));
      },
    });
    return new Response(response.body.pipeThrough(cut), { headers: response.headers });
  };
}

const doings = {
  async cut({ job, told }) {
    const { ConnectedAgent } = await import(pathToFileURL(copy));
    const agent = new ConnectedAgent({
      url: job.url,
      threadId: `thread-${job.name}`,
      initialMessages: [user("u1", job.input)],
      fetch: cutting(),
    });
    await run(agent, { runId: "r1" }, told);
    told.messages = agent.messages;
  },
  async send({ agent, told }) {
    await run(agent, { runId: "r1" }, told);
  },
  async again({ agent, told, job }) {
    await run(agent, { runId: "r1" }, told);
    agent.messages = [...agent.messages, user("u2", job.input)];
    await run(agent, { runId: "r2" }, told);
  },
  async decide({ agent, told, job }) {
    const first = await run(agent, { runId: "r1" }, told);
    const interrupts = first.last?.outcome?.interrupts ?? [];
    const resume = interrupts.map((one) => ({
      interruptId: one.id,
      status: "resolved",
      payload: job.approve ? { approved: true } : { approved: false, message: "not today" },
    }));
    // The oldest clients know of no resume=; what they forward does the same.
    await run(agent, { runId: "r2", resume, forwardedProps: { resume } }, told);
  },
  async cancel({ agent, told, job }) {
    let asked = false;
    await run(agent, { runId: "r1" }, told, async (event) => {
      if (asked || event.type !== "ACTIVITY_SNAPSHOT") return;
      if (event.content.progress?.message !== "waiting") return;
      asked = true;
      told.cancel = await post(`${job.url}cancel`, { threadId: agent.threadId });
    });
  },
  async abort({ agent, told }) {
    await run(agent, { runId: "r1" }, told, (event) => {
      if (event.type === "ACTIVITY_SNAPSHOT") setImmediate(() => agent.abortRun());
    });
  },
  async watch({ agent, told, job }) {
    // Another client looks on from the moment at which the run waits, until it is cancelled. One
    // that is not cancelled goes on when somebody looks on.
    const other = new Watcher({ url: job.url, threadId: agent.threadId });
    let watching;
    await run(agent, { runId: "r1" }, told, (event) => {
      const { progress, agent: inner } = event.content ?? {};
      const waits = `${progress?.message} ${event.delta}`.includes("waiting");
      if (watching || !(waits || inner === "leaf")) return;
      const seen = { runs: [], asked: job.does === "watch_end" };
      watching = run(other, { runId: "w1" }, seen, async (late) => {
        if (late.type === "ACTIVITY_SNAPSHOT" && !seen.asked) {
          seen.asked = true;
          told.cancel = await post(`${job.url}cancel`, { runId: "r1" });
        }
      }).then(() => (told.watched = { ...seen, messages: other.messages }));
    });
    await watching;
  },
  async tools({ agent, told }) {
    const tools = [
      {
        name: "ask_color",
        description: "Ask the person for a color.",
        parameters: { type: "object", properties: { why: { type: "string" } } },
      },
    ];
    const first = await run(agent, { runId: "r1", tools }, told);
    const calls = agent.messages.flatMap((one) => one.toolCalls ?? []);
    const answered = new Set(agent.messages.map((one) => one.toolCallId));
    for (const call of calls.filter((one) => !answered.has(one.id))) {
      agent.messages = [
        ...agent.messages,
        { id: `tool-${call.id}`, role: "tool", toolCallId: call.id, content: "green" },
      ];
    }
    told.pending = first.last?.outcome?.pendingToolCallIds ?? null;
    await run(agent, { runId: "r2", tools }, told);
  },
};

doings.watch_end = doings.watch;

for await (const line of createInterface({ input: process.stdin })) {
  if (!line.trim()) continue;
  const job = JSON.parse(line);
  complaints = [];
  const agent = new HttpAgent({
    url: job.url,
    threadId: `thread-${job.name}`,
    initialMessages: [user("u1", job.input)],
  });
  const told = { name: job.name, runs: [] };
  try {
    const late = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("it did not come to an end")), AT_MOST);
    });
    await Promise.race([doings[job.does]({ agent, told, job }), late]);
  } catch (error) {
    complaints.push(`thrown: ${error?.stack ?? error}`);
  }
  clearTimeout(timer);
  told.messages ??= agent.messages;
  told.complaints = complaints;
  process.stdout.write(`${JSON.stringify(told)}\n`);
}
process.exit(0); // whatever still hangs
