"""Run the body of a tool in another process or on another machine, and lose the worker.

Run it: python examples/remote_tools.py. It prints the progress of the first call as the worker
reports it. The second call is lost with its worker, and the third one finds no worker.

The worker is this file, started again with the argument `serve`. It listens on loopback.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from agents_tools import Event, ToolProgressEvent, streaming_tool
from agents_tools.execution import run_on
from agents_tools.mcp import MCPBackend, serve


@streaming_tool
async def render(scene: str, frames: int) -> AsyncIterator[Event | str]:
    """Render a scene.

    Args:
        scene: Its name.
        frames: How many frames of it.
    """
    for frame in range(1, frames + 1):
        await asyncio.sleep(0.01)
        yield ToolProgressEvent(frame, total=frames, message=scene)
    yield f"{scene}.mp4"


async def main() -> None:
    """Start a worker, render there, watch it, and have the worker die in the middle of a call."""
    worker = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "serve", stdout=asyncio.subprocess.PIPE
    )
    if worker.stdout is None:
        raise RuntimeError("there is no pipe")
    url = (await worker.stdout.readline()).decode().strip()

    async with MCPBackend(url) as backend:
        there = run_on(backend)(render)  # an agent would get it so: Agent(..., tools=[there])

        async with there.stream(scene="harbour", frames=3) as stream:
            async for event in stream:
                if isinstance(event, ToolProgressEvent):
                    print(f"{event.message}: frame {event.current} of {event.total}")
        print("result:", stream.result)

        async with there.stream(scene="storm", frames=1_000_000) as stream:
            async for event in stream:
                if isinstance(event, ToolProgressEvent) and event.current == 1:
                    print(f"{event.message}: frame 1, and the worker is killed")
                    worker.kill()
        outcome = stream.outcome
        print(f"{outcome.status}: {outcome.output}")  # what the model would read

        await worker.wait()
        outcome = await there.call(None, '{"scene": "harbour", "frames": 3}')
        print(f"{outcome.status}: nothing was run, so it may be called again")


def say_where(url: str) -> None:
    """Tell the other process the address."""
    print(url, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve([render], "http", port=0, auth=False, worker=True, on_ready=say_where)
    else:
        asyncio.run(main())
