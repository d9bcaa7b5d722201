"""Show a run as a live tree in a web page: a sub-agent, progress, an approval, buttons to cancel.

Run it: python examples/web_tree.py (needs the extra `ui`), and open the printed address. The page
imports the client from the route of the agent, so it needs no build step. Load it again during a
run, or open its address in a second tab: both show the same run.

A script replaces the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import RunManager, handle_run, serve

MODEL = None
PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>Bakery</title>
<link rel="stylesheet" href="/agent/style.css">
<style>
  :root { color-scheme: light dark; }
  body { margin: 2rem auto; max-width: 44rem; padding: 0 1rem; }
</style>
<button>Plan the weekend</button>
<main></main>
<script type="module">
import { showRun } from "/agent/standalone.js";

const run = showRun(document.querySelector("main"), { url: "/agent", param: "run" });
document.querySelector("button").onclick = () =>
  run.isRunning || run.start({ input: "Plan the weekend." });
</script>
"""


@streaming_tool
async def read_orders(days: int) -> AsyncIterator[Event | str]:
    """Read the orders of the last days."""
    for day in range(1, days + 1):
        yield ToolProgressEvent(day, total=days, message="days")
        if day % 10 == 0:
            yield NotifyStreamEvent(f"read {day} days")
        await asyncio.sleep(0.1)
    yield "90 rolls and 12 cakes a day"


@needs_approval
@function_tool
def order(flour: int) -> str:
    """Order flour.

    Args:
        flour: How much, in kg.
    """
    return f"{flour} kg of flour come on Friday"


def bakery() -> Agent[Any, Any]:
    """Return a planner with an analyst as a tool."""
    script = {
        "Planner": [
            tool_call("analyse", input="How much do we sell on a weekend?"),
            tool_call("order", flour=40),
            "The flour comes on Friday: bake 180 rolls and 24 cakes.",
        ],
        "Analyst": [tool_call("read_orders", days=30), "90 rolls and 12 cakes a day."],
    }
    model = MODEL or ScriptedModel(script)
    analyst = Agent(
        "Analyst", instructions="You answer with data.", tools=[read_orders], model=model
    )
    analyse = analyst.as_tool("analyse", "Ask the analyst.", streaming=True)
    return Agent("Planner", instructions="You plan.", tools=[analyse, order], model=model)


async def agent(request: Request) -> Response:
    """Answer the requests of the page; the route could authenticate its user."""
    return await handle_run(request, agent=bakery(), runs=runs)


async def page(_: Request) -> Response:
    """Answer with the page."""
    return HTMLResponse(PAGE)


runs = RunManager()
site = Starlette(
    routes=[Route("/", page), Route("/agent/{path:path}", agent, methods=["GET", "POST"])],
    lifespan=runs.lifespan,
)

if __name__ == "__main__":
    port = int(sys.argv[1]) if sys.argv[1:] else 8000
    serve(
        site,
        port=port,
        on_ready=lambda url: print(f"Open {url}/ and press the button. Ctrl-C ends.", flush=True),
    )
