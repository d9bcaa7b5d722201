"""Listens on an address for the page, until it is told to end."""

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

_FAREWELL = 1
"""Seconds that open connections have at the end."""


async def serve(
    app: PlaygroundApp,
    listener: socket.socket,
    *,
    on_ready: Callable[[], Any] | None = None,
) -> None:
    """Serve the playground until the task is cancelled; runs are cancelled then.

    Args:
        app: The playground.
        listener: A socket that listens already.
        on_ready: Called once requests are answered.

    Raises:
        UserError: The extra `ui` is not installed.
    """
    try:
        import uvicorn
    except ModuleNotFoundError as error:
        if error.name != "uvicorn":
            raise
        raise UserError(
            "Serving the playground takes uvicorn: pip install 'agents-tools[ui]'."
        ) from error

    class PlaygroundServer(uvicorn.Server):
        """Leaves signals to whoever runs it."""

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
        timeout_graceful_shutdown=_FAREWELL,
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
            await asyncio.wait({serving}, timeout=_FAREWELL + 1)
            listener.close()
