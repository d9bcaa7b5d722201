"""Serve the playground on a socket."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    from agents_tools.playground.api import PlaygroundApp

__all__ = ["serve"]

_CLEANUP_TIME = 1
"""The seconds that open connections have when the server stops."""


async def serve(
    app: PlaygroundApp,
    listener: socket.socket,
    *,
    on_ready: Callable[[], Any] | None = None,
) -> None:
    """Serve the playground until the task is cancelled, which also cancels all runs.

    Args:
        app: The playground.
        listener: A listening socket.
        on_ready: Called when the server accepts requests.

    Raises:
        UserError: The extra `ui` is not installed.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise UserError(
            "Serving the playground requires uvicorn: pip install 'agents-tools[ui]'."
        ) from error

    class PlaygroundServer(uvicorn.Server):
        """A server that leaves signals to its caller."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            if on_ready is not None and self.started:
                on_ready()

    config = uvicorn.Config(
        app,
        log_level="error",
        access_log=False,
        lifespan="off",
        timeout_graceful_shutdown=_CLEANUP_TIME,
        server_header=False,
    )
    server = PlaygroundServer(config)
    await app.start()
    serving = asyncio.create_task(server.serve(sockets=[listener]), name="playground")
    try:
        await asyncio.shield(serving)
    finally:
        server.should_exit = True
        try:
            await app.aclose()
        finally:
            await asyncio.wait({serving}, timeout=_CLEANUP_TIME + 1)
            listener.close()
