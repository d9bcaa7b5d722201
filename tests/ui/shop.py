"""A server of runs as a program: `python -m tests.ui.shop STORE FOLDER`.

It prints its port. The tools write a line to a file for each call, so that a test sees calls that
run twice. The model needs no state, so that each process continues the runs of the others.
"""

from __future__ import annotations

import asyncio
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import uvicorn

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    RunConfig,
    ToolAnnotations,
    ToolContext,
    function_tool,
    streaming_tool,
)
from agents_tools.agents import Model, ModelResponse
from agents_tools.content.items import MessageOutputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.persistence import open_run_store
from agents_tools.policies import needs_approval
from agents_tools.ui import sse

__all__ = ["STEPS", "shop_agent"]

STEPS = {
    "pay": ["note", "pay"],
    "wait": ["note", "hold"],
    "tell": ["tell"],
}
"""The calls of a run, by the input."""


class Steps(Model):
    """Requests the calls of the input, one in each turn."""

    async def respond(self, request: Any, emit: Any) -> ModelResponse:
        """Return the next call, or the answer."""
        del emit
        steps = STEPS[request.input[0].content.partition(" ")[0]]
        done = sum(isinstance(item, ToolCallOutputItem) for item in request.input)
        if done == len(steps):
            return ModelResponse(items=[MessageOutputItem(text="Done.")])
        call = ToolCallItem(call_id=f"call_{done + 1}", name=steps[done], arguments="{}")
        return ModelResponse(items=[call], finish_reason="tool_calls")


def shop_agent(folder: Path) -> Agent[Any, Any]:
    """Return the agent of the shop.

    Args:
        folder: The folder of the files that the tools write and wait for.
    """

    def write(name: str, context: ToolContext[Any]) -> None:
        with (folder / name).open("a") as file:
            file.write(f"{context.run_id}\n")

    @function_tool
    def note(context: ToolContext[Any]) -> str:
        """Note an order."""
        write("noted", context)
        return "noted"

    @needs_approval
    @function_tool
    def pay(context: ToolContext[Any]) -> str:
        """Pay an order."""
        write("paid", context)
        return "paid"

    @function_tool(annotations=ToolAnnotations(idempotentHint=True))
    async def hold(context: ToolContext[Any]) -> str:
        """Wait until the shop is open."""
        write("held", context)
        while not (folder / "open").exists():  # noqa: ASYNC110 - another process creates it
            await asyncio.sleep(0.02)
        return "open"

    @streaming_tool
    async def tell() -> AsyncIterator[Any]:
        """Tell a text, and end when the shop is open."""
        for number in range(50):
            yield NotifyStreamEvent(f"{number},", is_delta=True)
        (folder / "told").touch()
        while not (folder / "open").exists():  # noqa: ASYNC110 - another process creates it
            await asyncio.sleep(0.02)
        yield "told"

    return Agent("shop", tools=[note, pay, hold, tell], model=Steps())


async def main(place: str, folder: str) -> None:
    """Serve until the process ends."""
    with socket.socket() as sock, closing(open_run_store(place)) as store:
        sock.bind(("127.0.0.1", 0))
        sock.listen(512)
        config = RunConfig(resume_orphans=True)
        app = sse.app(shop_agent(Path(folder)), store=store, run_config=config)
        print(sock.getsockname()[1], flush=True)  # noqa: T201 - the test reads it
        server = uvicorn.Server(
            uvicorn.Config(app, log_config=None, access_log=False, timeout_graceful_shutdown=3)
        )
        await server.serve(sockets=[sock])


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
