"""The requests in flight on one connection, tracked below the SDK's session.

The session matches answers to requests. The streams in this module sit between the session and
the transport, for three reasons: answers are stored as they arrived, even if the session would
reject them; a flood of notifications is cheap; and the client knows which requests were sent.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast

from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._streams import MessageSink, MessageSource
from agents_tools.mcp._task_names import TASKS
from agents_tools.tool.context import call_of

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterable, Mapping

    from agents_tools.mcp.client.request_timeouts import RequestTimeout
    from agents_tools.tool.context import ToolContext

__all__ = [
    "NotRunError",
    "PendingRequest",
    "PendingRequests",
    "ReadStream",
    "WriteStream",
    "current_request",
    "request_of_run",
]

logger = logging.getLogger("agents_tools.mcp")


class NotRunError(Exception):
    """The server has certainly not acted upon the request.

    Args:
        message: The reason.
        retryable: Whether the request can succeed on a new connection.
        retry_after: The wait that the server requests, in seconds.
        code: The HTTP status, if there is one.
    """

    def __init__(
        self,
        message: str,
        *,
        retryable: bool = True,
        retry_after: float | None = None,
        code: int | None = None,
    ) -> None:
        super().__init__(message)
        self.retryable = retryable
        self.retry_after = retry_after
        self.code = code


class PendingRequest:
    """One request, with the state that only the transport knows.

    Attributes:
        method: The JSON-RPC method.
        context: The tool call that the request is part of.
        caller_loop: The event loop of the call.
        on_progress: Called with the params of each progress notification.
        id: The JSON-RPC id, once the request was passed to the transport.
        sent: Whether the server can have received it.
        lost: Whether the connection was lost before the answer came.
        raw: The result as it arrived.
        fault: The reason why there is no answer, if the transport knows it.
        stream_ended: Whether the stream for its answer has ended without an answer.
        session_lost: Whether it was refused because the server does not know the session.
        status: The HTTP status of the response.
        retry_after: The wait that the server requests, in seconds.
        timeout: The running timeout: progress extends it, the end of the connection ends it.
        idle_timeout: The longest time without progress, in seconds.
        deadline: The latest time for the answer, on the clock of the event loop.
    """

    __slots__ = (
        "caller_loop",
        "context",
        "deadline",
        "fault",
        "id",
        "idle_timeout",
        "lost",
        "method",
        "on_progress",
        "raw",
        "retry_after",
        "sent",
        "session_lost",
        "status",
        "stream_ended",
        "timeout",
    )  # fmt: skip

    def __init__(
        self,
        method: str,
        context: ToolContext[Any] | None = None,
        caller_loop: asyncio.AbstractEventLoop | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
    ) -> None:
        self.method = method
        self.context = context
        self.caller_loop = caller_loop
        self.on_progress = on_progress
        self.id: int | str | None = None
        self.sent = False
        self.lost = False
        self.stream_ended = False
        self.session_lost = False
        self.raw: dict[str, Any] | None = None
        self.fault: str | None = None
        self.status: int | None = None
        self.retry_after: float | None = None
        self.timeout: RequestTimeout | None = None
        self.idle_timeout = 0.0
        self.deadline = 0.0

    def record_progress(self, params: Mapping[str, Any]) -> None:
        """Restart the idle timeout, and pass the params of a notification to `on_progress`."""
        if self.lost:
            return
        self.restart_idle_timeout()
        if self.on_progress is not None:
            self.on_progress(params)

    def keep_result(self, result: dict[str, Any]) -> dict[str, Any]:
        """Keep the result as it arrived; return one that the session accepts in its place."""
        self.raw = result
        return _result_for_session(self.method, result)

    def restart_idle_timeout(self) -> None:
        """Restart the idle timeout."""
        if self.timeout is not None and not self.lost:
            now = asyncio.get_running_loop().time()
            self.timeout.reschedule(min(now + self.idle_timeout, self.deadline))

    def suspend_idle_timeout(self) -> None:
        """Extend the timeout to the deadline: the server waits for a person on this side."""
        if self.timeout is not None and not self.lost:
            self.timeout.reschedule(self.deadline)

    def mark_lost(self) -> None:
        """Wake the caller: the connection has ended."""
        self.lost = True
        if self.timeout is not None:
            self.timeout.reschedule(0)


current_request: ContextVar[PendingRequest | None] = ContextVar("mcp_request", default=None)
"""The request that is being passed to the SDK's session."""


def request_of_run(requests: Iterable[PendingRequest]) -> PendingRequest | None:
    """Return the call that a message of the server belongs to; `None` if it is ambiguous.

    The protocol does not relate requests and log messages of servers to calls. The result is
    certain only if all calls in flight belong to one run. A call outside of a run is one of its
    own: in a gateway, two such calls can have different clients.

    Args:
        requests: The requests in flight.
    """
    calls = [one for one in requests if one.context is not None]
    runs = {one.context.run_id or one.context.path for one in calls if one.context is not None}
    return calls[-1] if calls and len(runs) == 1 else None


class PendingRequests:
    """The requests in flight on one connection.

    Attributes:
        requests: The requests in flight by their JSON-RPC ids.
        closed: Set when the connection has ended.
        ignored: The number of messages that could not be used.
        fault: The reason why the last request could not be sent.
        http_status: The HTTP status that the last request was refused with.
        header_mirror: Returns the headers that repeat arguments of a call, from its params.
        on_wait: Called when a request waits for the user to log in.

    Args:
        on_change: Called with the method of a notification that a list has changed.
        on_update: Called with the URI of a resource that has changed.
        on_log: Called with the params of a log message.
    """

    def __init__(
        self,
        *,
        on_change: Callable[[str], None],
        on_update: Callable[[str], None],
        on_log: Callable[[Mapping[str, Any]], None],
    ) -> None:
        self.requests: dict[int | str, PendingRequest] = {}
        self.closed = asyncio.Event()
        self.ignored = 0
        self._added = 0
        self.fault: str | None = None
        self.http_status: int | None = None
        self.header_mirror: Callable[[dict[str, Any]], dict[str, str]] | None = None
        self.on_wait: Callable[[], None] | None = None
        self._on_change = on_change
        self._on_update = on_update
        self._on_log = on_log

    def close(self) -> None:
        """Record the end of the connection, and wake the callers of all requests."""
        if not self.closed.is_set():
            self.closed.set()
            for request in list(self.requests.values()):
                request.mark_lost()

    @contextlib.contextmanager
    def waiting_for_user(self, request: PendingRequest | None) -> Generator[None]:
        """Suspend the idle timeout of a request while the user logs in, and extend connecting."""
        if self.on_wait is not None:
            self.on_wait()
        if request is None:
            yield
            return
        request.suspend_idle_timeout()
        try:
            yield
        finally:
            request.restart_idle_timeout()

    def register(self, message: Any) -> PendingRequest | None:
        """Register a message that is about to be sent; return its request if it is a request.

        The capabilities of the call are added to those that the message declares.
        """
        request = current_request.get()
        number = message.__dict__.get("id")
        if number is None or request is None or message.__dict__.get("method") != request.method:
            return None
        if request.id is None:
            request.id = number
            self.requests[number] = request
        _declare(message, request)
        return request

    def add(self, request: PendingRequest) -> None:
        """Add a request to a server in this process, which has no messages with ids."""
        self._added += 1
        request.id = f"direct-{self._added}"
        self.requests[request.id] = request

    def log(self, params: Mapping[str, Any]) -> None:
        """Handle a log message of a server in this process."""
        self._on_log(params)

    def find(self, number: Any) -> PendingRequest | None:
        """Return a request by its id, which some servers return as a string."""
        if type(number) is not int and not isinstance(number, str):
            return None
        request = self.requests.get(number)
        if request is None and isinstance(number, str) and number.isdecimal():
            request = self.requests.get(int(number[:18]))
        return request

    def handle_notification(self, method: str, params: Any) -> bool:
        """Handle a notification; return whether the session has to receive it too."""
        fields = an_object(params)
        if method == "notifications/progress":
            request = self.find(fields.get("progressToken"))
            if request is not None:
                request.record_progress(fields)
            return False
        if method == "notifications/message":
            self._on_log(fields)
            return False
        if method in _LIST_CHANGES:
            self._on_change(method)
            return False
        if method == "notifications/resources/updated" and isinstance(fields.get("uri"), str):
            self._on_update(fields["uri"])
            return False
        if method in _SESSION_NOTIFICATIONS:
            return True
        self.ignored += 1
        return False

    def handle_response(self, message: Any) -> None:
        """Store a result as it arrived, and replace it by one that the session accepts."""
        request = self.find(message.id)
        result: object = message.result
        if request is None or not isinstance(result, dict):
            return
        self.requests.pop(request.id or 0, None)
        if request.raw is None:  # otherwise the transport has kept it
            message.result = request.keep_result(cast("dict[str, Any]", result))


_LIST_CHANGES = frozenset({
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
})  # fmt: skip
_SESSION_NOTIFICATIONS = frozenset({
    "notifications/cancelled",
    "notifications/subscriptions/acknowledged",
})  # fmt: skip


def _result_for_session(method: str, result: dict[str, Any]) -> dict[str, Any]:
    """Return a minimal valid result for the session; the full one is in `PendingRequest.raw`."""
    if method == "tools/call":
        return {"content": [], "resultType": "complete"}
    if method == "tools/list":
        return {"tools": [], "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
    return result


class ReadStream(MessageSource):
    """The stream that the session reads: the transport's stream without handled messages.

    Args:
        inner: The stream of the transport.
        pending: The requests in flight.
    """

    def __init__(self, inner: Any, pending: PendingRequests) -> None:
        self._inner = inner
        self._pending = pending

    @property
    def last_context(self) -> Any:
        """The context variables of the sender of the last message, if the stream knows them."""
        return getattr(self._inner, "last_context", None)

    async def __anext__(self) -> Any:
        while True:
            try:
                item = await self._inner.__anext__()
            except BaseException:
                self._pending.close()
                raise
            if handle_message(item, self._pending):
                return item

    def close(self) -> None:
        """Close the stream."""
        self._inner.close()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()


def _message_in(item: Any) -> Any:
    """Return the message in an item of a stream; version 1 of the SDK has a model around it."""
    # An attribute that a model of pydantic lacks costs ten times as much as one that it has.
    return item.message.__dict__.get("root", item.message)


def handle_message(item: Any, pending: PendingRequests) -> bool:
    """Handle a message from the server; return whether the session has to receive it."""
    if isinstance(item, Exception):
        logger.debug("A message cannot be read: %s", item)
        pending.ignored += 1
        return False
    message = _message_in(item)
    fields = message.__dict__
    method = fields.get("method")
    if method is None:
        if "result" in fields:
            pending.handle_response(message)
        return True
    if fields.get("id") is None:
        return pending.handle_notification(method, message.params)
    return True


_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
"""The key, in `_meta` of a request, of the client's capabilities (from 2026-07-28 on)."""


def _declare(message: Any, request: PendingRequest) -> None:
    """Add to the capabilities of a message, in the versions that send them with it.

    The session knows neither whether the run of the request has a handler for questions, nor that
    calls can become tasks.
    """
    # The params belong to this message alone, but the capabilities to the session.
    params: Any = message.params or {}
    meta: Any = params.get("_meta")
    if not meta or _CAPABILITIES not in meta:
        return
    capabilities: dict[str, Any] = an_object(meta[_CAPABILITIES])
    if request.context is not None and call_of(request.context).find_asker() is not None:
        capabilities.setdefault("elicitation", {"form": {}, "url": {}})
    if request.method == "tools/call" or request.method.startswith("tasks/"):
        extensions: dict[str, Any] = an_object(capabilities.get("extensions"))
        capabilities["extensions"] = {**extensions, TASKS: {}}
    meta[_CAPABILITIES] = capabilities


class WriteStream(MessageSink):
    """The stream that the session writes to; it registers requests and uses the transport's stream.

    Args:
        inner: The stream of the transport.
        pending: The requests in flight.
        direct: Whether `send` delivers a message to the server; if not, the transport sets
            `PendingRequest.sent`.
    """

    def __init__(self, inner: Any, pending: PendingRequests, *, direct: bool = False) -> None:
        self._inner = inner
        self._pending = pending
        self._direct = direct

    async def send(self, item: Any) -> None:
        """Send a message."""
        message = _message_in(item)
        request = self._pending.register(message)
        if request is not None and self._direct:
            request.sent = True
        await self._inner.send(item)

    def close(self) -> None:
        """Close the stream."""
        self._inner.close()

    async def aclose(self) -> None:
        """Close the stream."""
        await self._inner.aclose()
