"""Limits of the connections of a listener, in uvicorn's protocol for HTTP/1.1."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING, Any, ClassVar

from agents_tools.server.file_limits import max_process_connections
from agents_tools.server.log_throttle import LogThrottle

if TYPE_CHECKING:
    import asyncio

    from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol
else:  # as uvicorn selects it; both have the attributes that are used here
    try:
        from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol as HttpProtocol
    except ImportError:
        from uvicorn.protocols.http.h11_impl import H11Protocol as HttpProtocol

__all__ = ["ConnectionGate", "GuardedProtocol", "guarded_protocol"]

logger = logging.getLogger("agents_tools")

_BUSY = (
    b"HTTP/1.1 503 Service Unavailable\r\nconnection: close\r\nretry-after: 1\r\n"
    b"content-length: 0\r\n\r\n"
)
_TOO_SLOW = b"HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"


def guarded_protocol(gate: ConnectionGate, head_timeout: float) -> type[GuardedProtocol]:
    """Return the protocol of the connections of one listener.

    Args:
        gate: Admits the connections.
        head_timeout: The seconds in which the head of a request must arrive.
    """
    facts = {"gate": gate, "head_timeout": head_timeout}
    return type("ListenerProtocol", (GuardedProtocol,), facts)


class _OpenConnections:
    """The number of connections of all listeners of the process, which share its open files."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.count = 0

    def add(self, change: int) -> None:
        with self._lock:
            self.count += change


_all = _OpenConnections()


class ConnectionGate:
    """Admits connections up to a limit.

    At the limit, the connection that has been idle for longest makes room for the new one: it has
    sent no request yet, or none since its last response. So clients that only connect cannot lock
    out those that send requests.

    Args:
        max_connections: The largest number of connections of this listener.

    Attributes:
        idle: The connections without a request that is being answered, the oldest first.
    """

    def __init__(self, max_connections: int | None) -> None:
        self._max = max_connections
        self._process_max = max_process_connections()
        self._open = 0
        self._throttle = LogThrottle()
        self.idle: dict[Any, None] = {}

    def enter(self) -> bool:
        """Return whether one more connection is admitted, and count it."""
        limit = self._reached_limit()
        if limit is not None:
            oldest = next(iter(self.idle), None)
            if oldest is None:
                self.warn(f"{limit}, and all of them are in use")
                return False
            self.warn(f"{limit}, and this one was idle")
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


class GuardedProtocol(HttpProtocol):
    """A connection with a time for the head of each request.

    Uvicorn closes a connection that is idle after a response, but not one that never sends a
    whole head: not at its beginning, and not after the first byte of a further request.

    Attributes:
        gate: Admits the connection.
        head_timeout: The seconds in which the head of a request must arrive.
    """

    gate: ClassVar[ConnectionGate]
    head_timeout: ClassVar[float]
    _is_admitted = False
    _is_released = False
    _timer: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        """Admit the connection, or answer it with 503."""
        self._is_admitted = self.gate.enter()
        if not self._is_admitted:
            transport.write(_BUSY)
            transport.close()
            return
        super().connection_made(transport)
        self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Read a part of a request."""
        if self._is_admitted:
            super().data_received(data)
            self._watch_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count the connection as closed."""
        if self._is_admitted:
            self.release()
            super().connection_lost(exc)

    def release(self) -> None:
        """Stop the timer, and count the connection as closed, once."""
        self._stop_timer()
        if not self._is_released:
            self._is_released = True
            self.gate.leave()

    def eof_received(self) -> None:
        """Read the end of the requests."""
        if self._is_admitted:
            super().eof_received()

    def on_response_complete(self) -> None:
        """Count the connection as idle, unless the next request has come already."""
        super().on_response_complete()
        if self._is_idle() and not self._is_released:
            self.gate.idle[self] = None

    def _is_idle(self) -> bool:
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _watch_head(self) -> None:
        """Start the timer at the first byte of a head, and stop it when the head is there."""
        if not self._is_idle():
            self._stop_timer()
        elif self._timer is None:
            self._timer = self.loop.call_later(self.head_timeout, self._give_up)
            self.gate.idle[self] = None

    def _stop_timer(self) -> None:
        self.gate.idle.pop(self, None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _give_up(self) -> None:
        self._stop_timer()
        if self.transport.get_write_buffer_size():
            self.transport.abort()  # the client does not read either
        elif not self.transport.is_closing():
            self.gate.warn(
                f"the head of a request did not arrive within {self.head_timeout:g} s "
                "(head_timeout=)"
            )
            self.transport.write(_TOO_SLOW)
            self.transport.close()
