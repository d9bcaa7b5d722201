"""A server for tests that stops at once: uvicorn only looks ten times a second whether to stop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncGenerator, Generator
from typing import Any

import uvicorn

__all__ = ["running"]

_PAUSE = 0.002
_PATIENCE = 90.0


class _Server(uvicorn.Server):
    """A server that leaves the signals to the test and waits for an event instead of ticks."""

    def __init__(self, config: uvicorn.Config) -> None:
        super().__init__(config)
        self.ended = asyncio.Event()

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    async def main_loop(self) -> None:
        await self.on_tick(0)  # sets the default headers
        await self.ended.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for server in self.servers:
            server.close()
        for sock in sockets or ():
            sock.close()
        state = self.server_state
        for connection in list(state.connections):
            connection.shutdown()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(self.config.timeout_graceful_shutdown):
                while state.connections or state.tasks:  # noqa: ASYNC110 - uvicorn has no event
                    await asyncio.sleep(_PAUSE)
        for task in state.tasks:
            task.cancel()
        await self.lifespan.shutdown()


@contextlib.asynccontextmanager
async def running(app: Any, sock: socket.socket, **options: Any) -> AsyncGenerator[uvicorn.Server]:
    """Serve an ASGI app on a bound socket while the block runs.

    Args:
        app: The app.
        sock: The socket; it is closed at the end.
        **options: Further options of `uvicorn.Config`.
    """
    usual: dict[str, Any] = {
        "log_config": None,
        "access_log": False,
        "timeout_graceful_shutdown": 0.1,
    }
    config = uvicorn.Config(app, **(usual | options))
    server = _Server(config)
    task = asyncio.create_task(server.serve(sockets=[sock]))
    try:
        yield server
    finally:
        server.ended.set()
        await asyncio.wait_for(task, _PATIENCE)
        sock.close()
