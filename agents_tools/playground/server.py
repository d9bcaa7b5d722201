"""Listens on an address for the page, until it is told to end."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agents_tools.playground.api import PlaygroundApp

__all__ = ["bound", "serve"]

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
    """
    import uvicorn

    class Server(uvicorn.Server):
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
    server = Server(config)
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


def bound(host: str, port: int) -> socket.socket:
    """Give a socket that listens on an address.

    Raises:
        UserError: It cannot be listened on.
    """
    try:
        family, _, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UserError(f"The address {host!r} cannot be listened on: {error.strerror}.") from None
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(128)
        listener.setblocking(False)
    except OSError as error:
        listener.close()
        raise UserError(
            f"The address {host}:{port} cannot be listened on: {error.strerror}. Choose another "
            "port, or 0 for a free one."
        ) from None
    return listener
