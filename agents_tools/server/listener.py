"""Serve an app on a socket with uvicorn, within limits that clients cannot exhaust."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
import threading
from typing import TYPE_CHECKING, Any, Literal

from agents_tools._package import missing_extra
from agents_tools.errors import UserError, UserValueError
from agents_tools.server.log_throttle import LogThrottle, throttled_server_logs
from agents_tools.server.signals import shared_signals

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

__all__ = ["HEAD_TIMEOUT", "bound_socket", "serve_app", "url_of"]

logger = logging.getLogger("agents_tools")

HEAD_TIMEOUT = 10.0
"""The seconds in which the head of a request must arrive."""
_KEEP_ALIVE = 75
"""Seconds for which an idle connection is kept open: more than on most proxies."""
_BACKLOG = 2_048
"""Connections that wait in the kernel until they are accepted."""
_ACCEPT_BURST = 64
"""Connections that the event loop accepts at once, before the first of them is counted."""
_OTHER_FILES = 64
"""Descriptors for tools, stores and logs."""
_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-length: 0\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def bound_socket(host: str, port: int) -> socket.socket:
    """Open a socket that listens on an address.

    Args:
        host: The address.
        port: The port; 0 for a free one.

    Raises:
        UserError: The address cannot be used.
    """
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
            "port=, or 0 for a free one."
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
    except ImportError as error:
        raise missing_extra("Serving over HTTP", "ui", error) from error

    burst, _ = _accept_limits()
    config = uvicorn.Config(
        app,
        http=_guarded_protocol(_Gate(max_connections), head_timeout),
        ws="none",
        lifespan=lifespan,
        backlog=burst,
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
            finally:
                await asyncio.wait({serving}, timeout=shutdown_timeout + 2)
                sock.close()


def _check(name: str, value: object) -> None:
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not value > 0:
        raise UserValueError(f"{name}= is invalid: expected a number above 0, got {value!r:.60}.")


def _accept_limits() -> tuple[int, int | None]:
    """Return how many connections to accept at once, and how many the process can have open.

    Connections that were accepted at once are counted in later turns of the loop, so that up to
    three bursts can exist beyond the limit.
    """
    try:
        import resource
    except ImportError:  # Windows, which has no such limit
        return _ACCEPT_BURST, None
    files = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if files == resource.RLIM_INFINITY:
        return _ACCEPT_BURST, None
    burst = max(1, min(_ACCEPT_BURST, files // 16))
    return burst, max(files - 3 * burst - _OTHER_FILES, files // 4, 1)


class _OpenConnections:
    """The number of connections of all listeners of the process, which share its open files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, change: int) -> None:
        with self._lock:
            self.count += change


_all = _OpenConnections()


class _Gate:
    """Admits connections up to a limit.

    At the limit, the oldest connection that has not sent the head of a request makes room for the
    new one. So clients that only connect cannot lock out those that send requests.

    Args:
        max_connections: The largest number of connections of this listener.

    Attributes:
        waiting: The connections that are waiting for a head, the oldest first.
    """

    def __init__(self, max_connections: int | None) -> None:
        self._max = max_connections
        self._process_max = _accept_limits()[1]
        self._open = 0
        self._throttle = LogThrottle()
        self.waiting: dict[Any, None] = {}

    def enter(self) -> bool:
        """Return whether one more connection is admitted, and count it."""
        limit = self._reached_limit()
        if limit is not None:
            oldest = next(iter(self.waiting), None)
            if oldest is None:
                self.warn(f"{limit}, and all of them are in use")
                return False
            self.warn(f"{limit}, and this one had not sent a request")
            oldest.transport.abort()
            oldest.release()  # before the loop reports the loss: the next one is another's turn
        self._open += 1
        _all.add(1)
        return True

    def _reached_limit(self) -> str | None:
        if self._max is not None and self._open >= self._max:
            return f"{self._max} connections are open, the limit (max_connections=)"
        if self._process_max is not None and _all.count >= self._process_max:
            return (
                f"{self._process_max} connections are open, the limit for the open files of the "
                "process (ulimit -n)"
            )
        return None

    def leave(self) -> None:
        """Count a connection that was closed."""
        self._open -= 1
        _all.add(-1)

    def warn(self, problem: str) -> None:
        """Log why a connection is closed, unless the log has said it often."""
        note = self._throttle.note(problem)
        if note is not None:
            logger.warning("A connection was closed: %s.%s", problem, note)


def _guarded_protocol(gate: _Gate, head_timeout: float) -> type[asyncio.Protocol]:
    """Return uvicorn's protocol for HTTP/1.1 with a limit of connections and a timeout."""
    if TYPE_CHECKING:
        from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
    else:  # as uvicorn selects it; both have the attributes that are used here
        try:
            from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
        except ImportError:
            from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol

    class GuardedProtocol(HttpProtocol):
        """A connection. It is waiting for the head of a request if no request is being answered.

        Uvicorn closes a connection that is idle after a response, but not one that never sends a
        whole head: not at its beginning, and not after the first byte of a further request.
        """

        _is_admitted = False
        _is_released = False
        _timer: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            self._is_admitted = gate.enter()
            if not self._is_admitted:
                transport.write(_BUSY)
                transport.close()
                return
            super().connection_made(transport)
            self._watch_head()

        def data_received(self, data: bytes) -> None:
            if self._is_admitted:
                super().data_received(data)
                self._watch_head()

        def connection_lost(self, exc: Exception | None) -> None:
            if self._is_admitted:
                self.release()
                super().connection_lost(exc)

        def release(self) -> None:
            """Stop the timer, and count the connection as closed, once."""
            self._stop_timer()
            if not self._is_released:
                self._is_released = True
                gate.leave()

        def eof_received(self) -> None:
            if self._is_admitted:
                super().eof_received()

        def _watch_head(self) -> None:
            cycle: Any = self.cycle
            if cycle is not None and not cycle.response_complete:
                self._stop_timer()
            elif self._timer is None:
                self._timer = self.loop.call_later(head_timeout, self._give_up)
                gate.waiting[self] = None

        def _stop_timer(self) -> None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
                gate.waiting.pop(self, None)

        def _give_up(self) -> None:
            self._stop_timer()
            if self.transport.get_write_buffer_size():
                self.transport.abort()  # the client does not read either
            elif not self.transport.is_closing():
                gate.warn(
                    f"the head of a request did not arrive within {head_timeout:g} s "
                    "(head_timeout=)"
                )
                self.transport.write(_TOO_SLOW)
                self.transport.close()

    return GuardedProtocol
