"""Run a tool on another machine: `serve` there, the MCP client here, and a server that is killed.

Run it: python examples/remote_tools.py. It prints the progress of the first call as the server
reports it. The second call is lost with its server, and the third one cannot connect.

The server is this file, started again with the argument `serve`. It listens on loopback.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator

from agents_tools import Event, ToolProgressEvent, streaming_tool
from agents_tools.mcp import MCPToolManager, serve


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
    """Start a server, render there, watch it, and kill the server in the middle of a call."""
    server = await asyncio.create_subprocess_exec(
        sys.executable, __file__, "serve", stdout=asyncio.subprocess.PIPE
    )
    if server.stdout is None:
        raise RuntimeError("The server has no standard output.")
    url = (await server.stdout.readline()).decode().strip()

    async with MCPToolManager() as manager:
        [there] = await manager.add_server("studio", url=url)  # Agent(..., tools=[there])

        async with there.stream(scene="harbour", frames=3) as stream:
            async for event in stream:
                if isinstance(event, ToolProgressEvent):
                    print(f"{event.message}: frame {event.current:g} of {event.total:g}")
        print("result:", stream.outcome.output)

        async with there.stream(scene="storm", frames=1_000_000) as stream:
            async for event in stream:
                if isinstance(event, ToolProgressEvent) and event.current == 1:
                    print(f"{event.message}: frame 1, and the server is killed")
                    server.kill()
        outcome = stream.outcome
        print(f"{outcome.status}: {outcome.output}")  # the text for the model

        await server.wait()
        outcome = await there.call(None, '{"scene": "harbour", "frames": 3}')
        print(f"{outcome.status}: nothing was run, so it can be called again")


def print_address(url: str) -> None:
    """Send the address to the other process."""
    print(url, flush=True)


if __name__ == "__main__":
    if sys.argv[1:] == ["serve"]:
        serve([render], "http", port=0, auth=False, on_ready=print_address)
    else:
        asyncio.run(main())
