"""Serve an app on a socket with uvicorn, within limits that clients cannot exhaust."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._package import missing_extra
from agents_tools.errors import UserError, UserValueError
from agents_tools.server.file_limits import accept_burst
from agents_tools.server.log_throttle import throttled_server_logs
from agents_tools.server.signals import shared_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ["HEAD_TIMEOUT", "bound_socket", "serve_app", "url_of"]

HEAD_TIMEOUT = 10.0
"""The seconds in which the head of a request must arrive."""
_KEEP_ALIVE = 75
"""Seconds for which an idle connection is kept open: more than on most proxies."""
_MAX_PORT = 65_535
_BACKLOG = 2_048
"""Connections that wait in the kernel until they are accepted."""


def bound_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens on an address.

    Args:
        host: The address.
        port: The port; 0 for a free one.

    Raises:
        UserError: The address cannot be used.
    """
    if not 0 <= port <= _MAX_PORT:  # the system would use another port
        raise UserValueError(f"port= is invalid: expected 0 to {_MAX_PORT}, got {port}.")
    try:
        family, kind, _, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # The protocol must be TCP explicitly: otherwise asyncio does not set TCP_NODELAY, and
        # small writes are delayed by 40 ms.
        sock = socket.socket(family, kind, socket.IPPROTO_TCP)
    except OSError as error:
        raise UserError(
            f"The address {host!r} cannot be listened on: {error.strerror}. Pass another host=."
        ) from None
    try:
        if os.name == "posix":
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.bind(address)
        sock.listen(_BACKLOG)
        sock.setblocking(False)
    except OSError as error:
        sock.close()
        raise UserError(
            f"The address {host}:{port} cannot be listened on: {error.strerror}. Choose another "
            "port, or 0 for a free one."
        ) from None
    return sock


def url_of(host: str, sock: socket.socket) -> str:
    """Return the URL of a socket that listens on an address, without a path."""
    return f"http://{f'[{host}]' if ':' in host else host}:{sock.getsockname()[1]}"


async def serve_app(
    app: Any,
    sock: socket.socket,
    *,
    head_timeout: float = HEAD_TIMEOUT,
    max_connections: int | None = None,
    shutdown_timeout: int = 5,
    lifespan: Literal["auto", "on", "off"] = "auto",
    handle_signals: bool = False,
    on_ready: Callable[[], Any] | None = None,
    on_stop: Callable[[], Awaitable[None]] | None = None,
) -> None:
    """Serve an app until the task is cancelled or a signal arrives, and close the socket.

    A client that does not send the head of its request in time is disconnected. The process
    accepts fewer connections than it can have open files, because an event loop that has none left
    spends its time on failed attempts to accept. Messages that clients cause are throttled.

    Args:
        app: The ASGI app.
        sock: A listening socket.
        head_timeout: The seconds in which the head of a request must arrive.
        max_connections: The largest number of connections at the same time. The limit of open files
            of the process applies in any case.
        shutdown_timeout: The seconds that requests in flight have to finish.
        lifespan: Whether the app gets lifespan events.
        handle_signals: Whether SIGINT and SIGTERM stop the server.
        on_ready: Called when the server accepts requests.
        on_stop: Called before the server waits for requests in flight.

    Raises:
        UserError: An option is invalid, or the extra `ui` is not installed.
    """
    _check("head_timeout", head_timeout)
    if max_connections is not None:
        _check("max_connections", max_connections)
    try:
        import uvicorn

        from agents_tools.server.guarded_protocol import ConnectionGate, guarded_protocol
    except ImportError as error:
        raise missing_extra("Serving over HTTP", "ui", error) from error

    config = uvicorn.Config(
        app,
        http=guarded_protocol(ConnectionGate(max_connections), head_timeout),
        ws="none",
        lifespan=lifespan,
        backlog=accept_burst(),
        log_level="warning",
        access_log=False,
        timeout_graceful_shutdown=shutdown_timeout,
        timeout_keep_alive=_KEEP_ALIVE,
        server_header=False,
    )

    class Server(uvicorn.Server):
        """Reports when it is ready, and shares signals with other servers of the process."""

        @contextlib.contextmanager
        def capture_signals(self) -> Generator[None]:
            with shared_signals(self) if handle_signals else contextlib.nullcontext():
                yield

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            sock.listen(_BACKLOG)  # the loop has set it to the number that it accepts at once
            if on_ready is not None and self.started:
                on_ready()

    server = Server(config)
    with throttled_server_logs():
        serving = asyncio.create_task(server.serve(sockets=[sock]), name="agents_tools server")
        try:
            await asyncio.shield(serving)
        finally:
            server.should_exit = True
            try:
                if on_stop is not None:
                    await on_stop()
                await asyncio.wait({serving}, timeout=shutdown_timeout + 2)
            finally:
                serving.cancel()  # where the app does not stop
                sock.close()


def _check(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise UserValueError(f"{name}= is invalid: expected a number above 0, got {value!r:.60}.")
