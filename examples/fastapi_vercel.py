"""Serve an agent with FastAPI and the Vercel AI SDK, for `useChat` of a React page.

Run it: python examples/fastapi_vercel.py (needs the extra `ui`, and fastapi). It prints a command
for curl and code for a page, and serves until Ctrl-C. With curl you see the frames that a page
receives: the parts of a message, with the call of the tool and its progress.

Simple rules replace the language model, so that this runs offline. For a real model, set its name:
`MODEL = "openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from fastapi import FastAPI

from agents_tools import Agent, Event, NotifyStreamEvent, ToolProgressEvent, streaming_tool
from agents_tools.ui import serve, vercel

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
chat = vercel.app(
    baker,
    version=7,  # the major version of the npm package `ai` in the page
    allowed_origins=["http://localhost:3000"],  # where the page is served while you write it
)
site = FastAPI(lifespan=chat.lifespan)  # so that runs end with the server
site.mount("/api/chat", chat)


@site.get("/")
def health() -> dict[str, str]:
    """Stand for the rest of the application."""
    return {"status": "ok"}


HOW_TO_TRY = """\
Serving the AI SDK until Ctrl-C. In another terminal:

  curl -N {url} -H 'content-type: application/json' -d '{{
    "id": "chat-1", "trigger": "submit-message", "messages": [
      {{"id": "m1", "role": "user", "parts": [{{"type": "text", "text": "bake 3 rolls"}}]}}]}}'

In a page: useChat({{ transport: new DefaultChatTransport({{ api: "{url}" }}) }})"""


if __name__ == "__main__":
    port = int(sys.argv[1]) if sys.argv[1:] else 8000
    print(HOW_TO_TRY.format(url=f"http://127.0.0.1:{port}/api/chat/"), flush=True)
    serve(site, port=port, on_ready=None)
