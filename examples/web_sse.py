"""Watch a run over HTTP, lose the connection, and resume.

Run it: python examples/web_sse.py. It prints the events before the connection is lost, and the
remaining events after the client reconnects. It needs the extra `ui`, and httpx as a client.

The server is `sse.app` under uvicorn, on a free port of this machine. The client reads a few
frames, loses its connection, and reconnects with the id of its last event.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, AsyncIterator

import httpx
import uvicorn

from agents_tools import Event, NotifyStreamEvent, RunFinishedEvent, streaming_tool
from agents_tools.ui import sse


@streaming_tool
async def take_stock(shelves: int) -> AsyncIterator[NotifyStreamEvent | str]:
    """Count what is on the shelves."""
    for shelf in range(1, shelves + 1):
        await asyncio.sleep(0.02)
        yield NotifyStreamEvent(f"shelf {shelf}")
    yield f"{17 * shelves} pieces"


@contextlib.asynccontextmanager
async def serving() -> AsyncGenerator[str]:
    """Serve the tool while the block runs, and give the address."""
    # "detach": a run goes on when its client is cut off; it could also be cancelled.
    app = sse.app([take_stock], on_disconnect="detach")
    sock = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", timeout_graceful_shutdown=1))
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield f"http://127.0.0.1:{sock.getsockname()[1]}"
    finally:
        server.should_exit = True
        await task
        sock.close()


async def frames(answer: httpx.Response) -> AsyncIterator[Event]:
    """Yield the events of an answer as they arrive."""
    text = ""
    async for part in answer.aiter_text():
        *whole, text = (text + part).split("\n\n")
        for event in sse.decode("".join(f"{frame}\n\n" for frame in whole)):
            yield event


def tell(event: Event) -> None:
    """Print what is of interest."""
    if isinstance(event, NotifyStreamEvent):
        print(f"  {event.data}")
    elif isinstance(event, RunFinishedEvent):
        print(f"  {event.status}: {event.output}")


async def main() -> None:
    """Start a run, lose the connection, and come back."""
    async with serving() as url, httpx.AsyncClient(base_url=url, trust_env=False) as client:
        call = {"tool": "take_stock", "arguments": {"shelves": 4}, "run_id": "stock"}
        last = -1
        print("Watching:")
        async with client.stream("POST", "/runs", json=call) as answer:
            async for event in frames(answer):
                tell(event)
                last = event.id
                if isinstance(event, NotifyStreamEvent) and event.data == "shelf 2":
                    break  # and the connection is closed
        print("Cut off. Back again:")
        headers = {"Last-Event-ID": f"stock:{last}"}
        async with client.stream("GET", "/runs/stock/events", headers=headers) as answer:
            async for event in frames(answer):
                tell(event)
        told = (await client.get("/runs/stock")).json()
        print(f"The run is {told['status']}; it has said {told['last_event_id'] + 1} things.")


if __name__ == "__main__":
    asyncio.run(main())
