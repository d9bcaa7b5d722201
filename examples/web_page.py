"""Stream a tool to a web page: a button, a progress bar and live messages.

Run it: python examples/web_page.py (needs the extra `ui`), and open the printed address. `sse.app`
serves the tool. The page starts a run and reads its events with the browser's built-in API.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from agents_tools import Event, NotifyStreamEvent, ToolProgressEvent, streaming_tool
from agents_tools.ui import serve, sse

PAGE = """<!doctype html>
<meta charset="utf-8">
<title>Bakery</title>
<style>body { color-scheme: light dark; font: 1rem system-ui; margin: 2rem; }</style>
<button>Bake six rolls</button> <progress value="0" max="1"></progress>
<ul></ul>
<script>
const list = document.querySelector("ul"), bar = document.querySelector("progress");
const say = (text) => list.append(Object.assign(document.createElement("li"), {textContent: text}));

document.querySelector("button").onclick = async () => {
  const answer = await fetch("/runs", {
    method: "POST",
    headers: {"Content-Type": "application/json", "Prefer": "respond-async"},
    body: JSON.stringify({tool: "bake", arguments: {rolls: 6}}),
  });
  const run = await answer.json();
  const events = new EventSource(`/runs/${run.run_id}/events`);
  const on = (type, show) => events.addEventListener(type, (e) => show(JSON.parse(e.data)));
  on("notify_stream_event", (event) => say(event.data));
  on("tool_progress_event", (event) => { bar.max = event.total; bar.value = event.current; });
  on("run_finished_event", (event) => { say(event.output); events.close(); });
};
</script>
"""


@streaming_tool
async def bake(rolls: int) -> AsyncIterator[Event | str]:
    """Bake rolls.

    Args:
        rolls: How many.
    """
    yield NotifyStreamEvent("heating up")
    for done in range(1, rolls + 1):
        await asyncio.sleep(0.3)
        yield ToolProgressEvent(done, total=rolls)
    yield f"{rolls} rolls, still warm"


tools = sse.app([bake])


async def site(scope: Any, receive: Any, send: Any) -> None:
    """Answer with the page at `/`; all else is for the tools. A web framework does the same."""
    if scope["type"] == "http" and scope["path"] == "/":
        kind = (b"content-type", b"text/html; charset=utf-8")
        await send({"type": "http.response.start", "status": 200, "headers": [kind]})
        await send({"type": "http.response.body", "body": PAGE.encode()})
    else:
        await tools(scope, receive, send)


if __name__ == "__main__":
    port = int(sys.argv[1]) if sys.argv[1:] else 8000
    print(f"Open http://127.0.0.1:{port}/ and press the button. Ctrl-C ends.", flush=True)
    serve(site, port=port, on_ready=None)
