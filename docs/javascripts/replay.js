// Answers the requests of `@agents-tools/client` from a recorded run, at its own pace: a page without a server.

/** Returns a function in place of `fetch`. `recording` is what `python -m tools.recording` writes. */
export function replay({ first, ...decided }) {
  let parts = [first];
  const refused = { error: { message: "This run is a recording: it cannot be cancelled." } };
  return async (url, { method = "GET", body, signal } = {}) => {
    const { pathname, searchParams } = new URL(url, location.href);
    if (pathname.endsWith("/events")) return stream(parts.at(-1).events, Number(searchParams.get("after")), signal);
    if (pathname.endsWith("/cancel")) return Response.json(refused, { status: 409 });
    if (pathname.endsWith("/approvals")) {
      parts.push(JSON.parse(body).decisions[0].approve ? decided.approved : decided.denied);
      return Response.json({ ...first.run, status: "running", approvals: [] });
    }
    if (method === "POST") parts = [first];
    return Response.json(parts.at(-1).run);
  };
}

/** Sends the events behind an id as server-sent events, each as long after the one before as in the recording. */
function stream(events, after, signal) {
  const rest = events.filter((event) => event.id > after);
  if (!rest.length) return new Response(null, { status: 204 });
  const encoder = new TextEncoder();
  let last = rest[0];
  const body = new ReadableStream({
    async pull(controller) {
      const event = rest.shift();
      if (!event || signal?.aborted) return controller.close();
      await new Promise((done) => setTimeout(done, Date.parse(event.timestamp) - Date.parse(last.timestamp)));
      last = event;
      controller.enqueue(encoder.encode(`id: ${event.id}\ndata: ${JSON.stringify(event)}\n\n`));
    },
  });
  return new Response(body, { headers: { "content-type": "text/event-stream" } });
}
