"""Serve an agent with FastAPI and AG-UI, for CopilotKit and other clients of that protocol.

Run it: python examples/fastapi_ag_ui.py (needs the extra `ui`, and fastapi). It prints a command
for curl and code for a page, and serves until Ctrl-C. With curl you see the frames that a page
receives: the call of the tool, its progress as snapshots, the answer.

Simple rules replace the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from fastapi import FastAPI

from agents_tools import Agent, Event, NotifyStreamEvent, ToolProgressEvent, streaming_tool
from agents_tools.ui import ag_ui, serve

MODEL = "local/rules"


@streaming_tool
async def bake(rolls: int) -> AsyncIterator[Event | str]:
    """Bake rolls.

    Args:
        rolls: How many.
    """
    yield NotifyStreamEvent("heating up")
    for done in range(1, rolls + 1):
        await asyncio.sleep(0.2)
        yield ToolProgressEvent(done, total=rolls, message="rolls")
    yield f"{rolls} rolls, still warm"


baker = Agent("Baker", instructions="You bake what you are asked for.", tools=[bake], model=MODEL)
agent = ag_ui.app(
    baker,
    allowed_origins=["http://localhost:3000"],  # where the page is served while you write it
)
site = FastAPI(lifespan=agent.lifespan)  # so that runs end with the server
site.mount("/agent", agent)


@site.get("/")
def health() -> dict[str, str]:
    """Stand for the rest of the application."""
    return {"status": "ok"}


HOW_TO_TRY = """\
Serving AG-UI until Ctrl-C. In another terminal:

  curl -N {url} -H 'content-type: application/json' -d '{{"threadId": "t1", "runId": "r1",
    "messages": [{{"id": "m1", "role": "user", "content": "bake 3 rolls"}}]}}'

In a page: new HttpAgent({{ url: "{url}" }})"""


if __name__ == "__main__":
    port = int(sys.argv[1]) if sys.argv[1:] else 8000
    print(HOW_TO_TRY.format(url=f"http://127.0.0.1:{port}/agent/"), flush=True)
    serve(site, port=port, on_ready=None)
