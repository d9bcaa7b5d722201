"""The requests in flight on one connection, seen from the two streams below the SDK's session.

The session correlates requests and answers. These streams stand between it and the transport, so
that an answer is kept as it came, whatever the session would have refused of it; so that a flood
of notifications costs next to nothing; and so that it is known which requests have left.
"""

from __future__ import annotations

import asyncio
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from agents_tools.mcp._shapes import an_object
from agents_tools.mcp._streams import Sink, Source

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.context import ToolContext

__all__ = ["Exchange", "ReadStream", "Request", "WriteStream", "current_request"]

logger = logging.getLogger("agents_tools.mcp")


class Request:
    """One request: what is known of it below the session.

    Attributes:
        method: Its method.
        context: The call that it is made for.
        caller: The loop that the call runs on.
        on_progress: Hears its progress, a report as it came.
        id: Its id on the wire, once it is on its way.
        sent: Whether the server may have seen it.
        raw: The result as it came.
        fault: Why it has no answer, where the transport knows.
        cut: Whether the stream that its answer was to come on has ended without one.
        in_session: Whether it was sent in a session that the server may have forgotten.
        status: The HTTP status that it was refused with.
        retry_after: How many seconds the server asks to wait.
        clock: Its deadline, which is moved by progress and ended by the end of the connection.
        idle: How many seconds it may be silent.
        latest: When it has to be over, whatever its progress says.
    """

    __slots__ = (
        "caller",
        "clock",
        "context",
        "cut",
        "fault",
        "id",
        "idle",
        "in_session",
        "latest",
        "lost",
        "method",
        "on_progress",
        "raw",
        "retry_after",
        "sent",
        "status",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        *,
        context: ToolContext[Any] | None = None,
        caller: asyncio.AbstractEventLoop | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.method = method
        self.context = context
        self.caller = caller
        self.on_progress = on_progress
        self.id: int | str | None = None
        self.sent = False
        self.lost = False
        self.cut = False
        self.in_session = False
        self.raw: dict[str, Any] | None = None
        self.fault: str | None = None
        self.status: int | None = None
        self.retry_after: float | None = None
        self.clock: asyncio.Timeout | None = None
        self.idle = 0.0
        self.latest = 0.0

    def heard(self, report: Mapping[str, Any]) -> None:
        """Take one report of progress."""
        if self.lost:
            return
        if self.clock is not None and not self.clock.expired():
            now = asyncio.get_running_loop().time()
            self.clock.reschedule(min(now + self.idle, self.latest))
        if self.on_progress is not None:
            self.on_progress(report)

    def hold(self) -> None:
        """Let it be silent: the server waits for somebody here."""
        if self.clock is not None and not self.clock.expired() and not self.lost:
            self.clock.reschedule(self.latest)

    def lose(self) -> None:
        """Wake whoever waits for it: the connection is gone."""
        self.lost = True
        if self.clock is not None and not self.clock.expired():
            self.clock.reschedule(0)


current_request: ContextVar[Request | None] = ContextVar("mcp_request", default=None)
"""The request that the code around the session is just making."""


class Exchange:
    """What goes over one connection.

    Attributes:
        requests: The requests in flight by their ids.
        closed: Set when nothing more comes.
        ignored: How many messages came that nobody can use.
        fault: Why the last request could not be sent.
        refused: The HTTP status that the last request was refused with.
        mirror: Gives the headers that repeat arguments of a call, from the params of its request.

    Args:
        on_change: Called when the server says that a list of its changed, with the notification's
            method.
        on_log: Called with the params of a log message.
    """

    def __init__(
        self, *, on_change: Callable[[str], None], on_log: Callable[[Mapping[str, Any]], None]
    ) -> None:
        self.requests: dict[int | str, Request] = {}
        self.closed = asyncio.Event()
        self.ignored = 0
        self.fault: str | None = None
        self.refused: int | None = None
        self.mirror: Callable[[dict[str, Any]], dict[str, str]] | None = None
        self._on_change = on_change
        self._on_log = on_log

    def close(self) -> None:
        """Note that nothing more comes, and wake who waits."""
        if not self.closed.is_set():
            self.closed.set()
            for request in list(self.requests.values()):
                request.lose()

    def outgoing(self, message: Any) -> Request | None:
        """Note a message that is about to leave; give the request that it is."""
        method = getattr(message, "method", None)
        number = getattr(message, "id", None)
        request = current_request.get()
        if number is None or request is None or method != request.method:
            return None
        if request.id is None:
            request.id = number
            self.requests[number] = request
        return request

    def of(self, number: Any) -> Request | None:
        """Give a request by its id, which some servers give back as text."""
        if type(number) is not int and not isinstance(number, str):
            return None
        request = self.requests.get(number)
        if request is None and isinstance(number, str) and number.isdecimal():
            request = self.requests.get(int(number[:18]))
        return request

    def notified(self, method: str, params: Any) -> bool:
        """Take a notification; give whether the session has to see it too."""
        given = an_object(params)
        if method == "notifications/progress":
            request = self.of(given.get("progressToken"))
            if request is not None:
                request.heard(given)
            return False
        if method == "notifications/message":
            self._on_log(given)
            return False
        if method in _LISTS:
            self._on_change(method)
            return False
        if method in _FOR_SESSION:
            return True
        self.ignored += 1
        return False

    def answered(self, message: Any) -> None:
        """Take an answer: keep what came, and leave the session what it cannot stumble over."""
        request = self.of(message.id)
        result: object = message.result
        if request is None or not isinstance(result, dict):
            return
        self.requests.pop(request.id or 0, None)
        request.raw = an_object(cast("object", result))
        message.result = _for_session(request.method, request.raw)


_LISTS = frozenset({
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
})  # fmt: skip
_FOR_SESSION = frozenset({
    "notifications/cancelled",
    "notifications/subscriptions/acknowledged",
})  # fmt: skip


def _for_session(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Give the part of a result that the session works with; the whole of it is read by us."""
    if method == "tools/call":
        return {"content": [], "resultType": "complete"}
    if method == "tools/list":
        return {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return result


class ReadStream(Source):
    """What the session reads: a transport's stream without what it need not see.

    Args:
        inner: The stream of the transport.
        exchange: The connection.
    """

    def __init__(self, inner: Any, exchange: Exchange) -> None:
        self._inner = inner
        self._exchange = exchange

    @property
    def last_context(self) -> Any:
        """The context variables of whoever put the last message in, where the stream knows."""
        return getattr(self._inner, "last_context", None)

    async def __anext__(self) -> Any:
        while True:
            try:
                item = await self._inner.__anext__()
            except BaseException:
                self._exchange.close()
                raise
            if passed(item, self._exchange):
                return item

    def close(self) -> None:
        """Close the stream."""
        self._inner.close()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()


def passed(item: Any, exchange: Exchange) -> bool:
    """Whether the session is to see a message that came."""
    if isinstance(item, Exception):
        logger.debug("a message that cannot be read: %s", item)
        exchange.ignored += 1
        return False
    message = getattr(item.message, "root", item.message)
    method = getattr(message, "method", None)
    if method is None:
        if hasattr(message, "result"):
            exchange.answered(message)
        return True
    if getattr(message, "id", None) is None:
        return exchange.notified(method, message.params)
    return True


class WriteStream(Sink):
    """What the session writes to: a transport's stream that notes which requests leave.

    Args:
        inner: The stream of the transport.
        exchange: The connection.
        direct: Whether what is sent has reached the server; else the transport knows.
    """

    def __init__(self, inner: Any, exchange: Exchange, *, direct: bool = False) -> None:
        self._inner = inner
        self._exchange = exchange
        self._direct = direct

    async def send(self, item: Any) -> None:
        """Send a message."""
        request = self._exchange.outgoing(getattr(item.message, "root", item.message))
        if request is not None and self._direct:
            request.sent = True
        await self._inner.send(item)

    def close(self) -> None:
        """Close the stream."""
        self._inner.close()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()
