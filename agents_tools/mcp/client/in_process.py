"""Call a server in the same process by functions, with version 2 of the SDK."""

from __future__ import annotations

import importlib
import itertools
import logging
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

__all__ = ["InProcessDispatcher"]

logger = logging.getLogger("agents_tools.mcp")

_INVALID_PARAMS, _INTERNAL, _CLOSED = -32602, -32603, -32000


class InProcessDispatcher:
    """Connects a session of the SDK to a server in the same process; a `Dispatcher` of the SDK.

    A request is a call of the server's function. Other than the `DirectDispatcher` of the SDK, it
    adds neither a timeout, which this library has, nor a turn of the event loop to each request.

    Args:
        serve: Answers a request of a context, by its method and params.

    Attributes:
        envelope: The protocol version and the capabilities of the client, which each request has
            in its `_meta`.
    """

    def __init__(self, serve: Callable[[Any, str, Any], Awaitable[dict[str, Any]]]) -> None:
        import anyio
        from pydantic import ValidationError

        exceptions: Any = importlib.import_module("mcp.shared.exceptions")
        transport: Any = importlib.import_module("mcp.shared.transport_context")
        self.transport = transport.TransportContext(kind="direct", can_send_request=False)
        self.no_back_channel: Any = exceptions.NoBackChannelError
        self._error: Any = exceptions.MCPError
        self._invalid = ValidationError
        self._serve = serve
        self._numbers = itertools.count(1)
        self._closed = anyio.Event()
        self._handlers: tuple[Any, Any] | None = None
        self.envelope: Mapping[str, Any] = {}

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Call the server.

        Raises:
            MCPError: The server answers with an error, or the connection is closed.
        """
        if self._handlers is None or self._closed.is_set():
            raise self._error(code=_CLOSED, message="Connection closed")
        if method == "server/discover" and params is not None:
            self.envelope = params["_meta"]
        options = opts or {}
        number = options.get("request_id") or next(self._numbers)
        context = _RequestContext(self, number, options.get("on_progress"))
        try:
            return await self._serve(context, method, params)
        except self._error:
            raise
        except self._invalid as error:
            message = "Invalid request parameters"
            raise self._error(code=_INVALID_PARAMS, message=message, data="") from error
        except Exception:
            logger.exception("A server in this process failed to answer %r.", method)
            raise self._error(code=_INTERNAL, message="Internal server error") from None

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None
    ) -> None:
        """Do nothing: these protocol versions have no notifications of clients."""

    async def run(
        self, on_request: Any, on_notify: Any, on_notify_intercept: Any = None, *, task_status: Any
    ) -> None:
        """Deliver the notifications of the server to the session, until it is cancelled."""
        del on_request  # these protocol versions have no requests of servers
        self._handlers = (on_notify, on_notify_intercept)
        try:
            task_status.started()
            await self._closed.wait()
        finally:
            self._closed.set()

    async def deliver(self, context: _RequestContext, method: str, params: Any) -> None:
        """Deliver a notification of the server, unless the connection is closed."""
        if self._handlers is None or self._closed.is_set():
            return
        on_notify, intercept = self._handlers
        if intercept is None or not intercept(method, params):
            await on_notify(context, method, params)


class _RequestContext:
    """What the server sees of a request; a `DispatchContext` of the SDK.

    Args:
        dispatcher: The connection.
        request_id: The id of the request.
        on_progress: Called with the progress that the server reports.
    """

    can_send_request = False
    message_metadata = None

    def __init__(
        self, dispatcher: InProcessDispatcher, request_id: int | str, on_progress: Any
    ) -> None:
        self.transport = dispatcher.transport
        self.request_id = request_id
        self._dispatcher = dispatcher
        self._on_progress = on_progress

    @cached_property
    def cancel_requested(self) -> Any:
        """An event that is never set: a cancelled call is cancelled in its own task."""
        import anyio

        return anyio.Event()

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        """Refuse the request of a server.

        Raises:
            NoBackChannelError: These protocol versions have no requests of servers.
        """
        del params, opts
        raise self._dispatcher.no_back_channel(method)

    async def notify(
        self, method: str, params: Mapping[str, Any] | None, opts: Mapping[str, Any] | None = None
    ) -> None:
        """Deliver a notification to the client."""
        del opts
        await self._dispatcher.deliver(self, method, params)

    async def progress(
        self, progress: float, total: float | None = None, message: str | None = None
    ) -> None:
        """Report progress to the client."""
        if self._on_progress is not None:
            await self._on_progress(progress, total, message)
