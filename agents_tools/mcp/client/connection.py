"""A connection to one MCP server: connect on first use, reconnect, and serve calls of any loop."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
import weakref
from collections import deque
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

from agents_tools.errors import MCPConnectionError, MCPError, ToolLostError
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.client.connection_session import ConnectionSession
from agents_tools.mcp.client.cross_loop import LoopEndedError, run_on_loop
from agents_tools.mcp.client.pending_requests import NotRunError, PendingRequest
from agents_tools.mcp.client.sdk_session import ClientHooks
from agents_tools.mcp.client.subscriptions import ResourceSubscriptions

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.mcp._sdk import ListKind
    from agents_tools.mcp.client.sdk_session import ClientSession
    from agents_tools.mcp.config import MCPServerConfig, ProtocolEra
    from agents_tools.tool.context import ToolContext

__all__ = ["Connection", "ConnectionOwner", "ServerStats"]

logger = logging.getLogger("agents_tools.mcp")

_MAX_FAILURES, _FAILURE_WINDOW = 5, 60.0
"""The number of failed attempts within a number of seconds that blocks further attempts."""
_FIRST_BACKOFF = 0.1
"""Seconds to wait after the first failed attempt; each further failure doubles the wait."""
_MAX_RETRY_AFTER = 5.0
"""The longest wait in seconds, as requested by a server, after which a request is sent again."""
_CLOSE_TIMEOUT = 8.0
"""Seconds that a connection has to close."""


class ConnectionOwner(Protocol):
    """The owner of a connection, such as a manager: provides callbacks and receives tools."""

    def hooks(self, connection: Connection) -> ClientHooks:
        """Return the callbacks for requests of the server."""
        ...

    def listed(
        self, connection: Connection, tools: list[dict[str, Any]], refused: dict[str, str]
    ) -> None:
        """Receive the tools of the server, after connecting and after each change.

        Args:
            connection: The connection that listed them.
            tools: The tools as the server lists them.
            refused: The reasons why tools cannot be called, by their names.
        """
        ...

    def resources_listed(
        self,
        connection: Connection,
        resources: list[dict[str, Any]],
        templates: list[dict[str, Any]],
    ) -> None:
        """Receive the resources and templates of the server, if its configuration wants them."""
        ...

    def list_changed(self, connection: Connection, kind: ListKind) -> None:
        """Receive the notification that a list has changed, also by a new connection."""
        ...


class ServerStats:
    """Counters of one connection.

    Attributes:
        calls: Tool calls.
        errors: Tool calls that failed.
        connects: Successful connection attempts.
        dropped: Messages from the server that could not be used.
    """

    __slots__ = ("calls", "connects", "dropped", "errors")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.connects = 0
        self.dropped = 0


class Connection:
    """A connection to one server, opened on first use and reopened after it was lost.

    A connection belongs to the event loop that used it first, and calls from other loops run on
    that loop. After that loop has ended, the connection belongs to the loop of the next caller.

    Args:
        config: The configuration of the server.
        owner: Provides the callbacks and receives the tools.
    """

    def __init__(self, config: MCPServerConfig, owner: ConnectionOwner) -> None:
        self.config = config
        self.protocol: ProtocolEra = config.protocol
        # A weak reference: the task of an open connection must not keep an unused owner alive.
        self._owner = weakref.ref(owner)
        self.stats = ServerStats()
        self.subscriptions = ResourceSubscriptions()
        self.error: MCPError | None = None
        self._session: ConnectionSession | None = None
        self._retired: set[ConnectionSession] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failures: deque[float] = deque(maxlen=_MAX_FAILURES)
        self._closed = False

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.config.name

    @property
    def owner(self) -> ConnectionOwner | None:
        """The owner; `None` after it was garbage-collected."""
        return self._owner()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that the connection belongs to; calls from other loops run there."""
        return self._loop

    @property
    def hooks(self) -> ClientHooks:
        """The callbacks for requests of the server."""
        owner = self._owner()
        return ClientHooks() if owner is None else owner.hooks(self)

    def listed(self, tools: list[dict[str, Any]], refused: dict[str, str]) -> None:
        """Pass the tools of the server to the owner, and why some of them cannot be called."""
        owner = self._owner()
        if owner is not None:
            owner.listed(self, tools, refused)

    def resources_listed(
        self, resources: list[dict[str, Any]], templates: list[dict[str, Any]]
    ) -> None:
        """Pass the resources and templates of the server to the owner."""
        owner = self._owner()
        if owner is not None:
            owner.resources_listed(self, resources, templates)

    def list_changed(self, kind: ListKind) -> None:
        """Notify the owner that a list of the server has changed."""
        owner = self._owner()
        if owner is not None:
            owner.list_changed(self, kind)

    @property
    def connected(self) -> bool:
        """Return whether a session is open."""
        return self.session is not None

    @property
    def session(self) -> ClientSession | None:
        """The open session of the SDK; `None` without a connection."""
        session = self._session
        return None if session is None or session.is_closed else session.client

    @property
    def pid(self) -> int | None:
        """The process ID of a stdio server; `None` if there is no process."""
        session = self._session
        return None if session is None or session.process is None else session.process.pid

    @property
    def requests(self) -> list[PendingRequest]:
        """The requests in flight."""
        session = self._session
        return [] if session is None else list(session.pending.requests.values())

    async def connect(self) -> None:
        """Connect, if there is no connection.

        Raises:
            MCPConnectionError: The server cannot be connected.
        """
        await self._run_on_own_loop(self._ensure_session)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        context: ToolContext[Any] | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
        repeatable: bool = False,
    ) -> dict[str, Any]:
        """Send a request and return its result; can be called from any event loop.

        A request that the server has certainly not acted upon is sent once more, on a new
        connection.

        Args:
            method: The JSON-RPC method.
            params: The parameters of the method.
            context: The tool call that the request is part of.
            on_progress: Called with the params of each progress notification.
            repeatable: Whether the request can be sent again although its outcome is unknown.

        Raises:
            MCPConnectionError: The server cannot be reached; the request was not executed.
            MCPProtocolError: The server answered with an error.
            MCPTimeoutError: The server did not answer in time.
            ToolLostError: The connection was lost; it is unknown whether the request was executed.
        """
        loop = asyncio.get_running_loop()
        create_request = partial(PendingRequest, method, context, loop, on_progress)
        if self._loop is loop:  # the usual case, for which one coroutine less is awaited
            return await self._request(create_request, dict(params), repeatable)
        return await self._run_on_own_loop(
            lambda: self._request(create_request, dict(params), repeatable)
        )

    async def subscribe(self, uri: str, callback: Callable[[str], Any]) -> None:
        """Call a function whenever a resource changes; it is called on the connection's loop.

        Raises:
            MCPError: The server cannot be reached, or refuses the subscription.
        """

        async def add() -> None:
            session = await self._ensure_session()
            is_new = uri not in self.subscriptions.uris
            self.subscriptions.add(uri, callback)
            try:
                if is_new:
                    await session.updates.subscribe(uri)
            except BaseException as error:
                self.subscriptions.discard(uri, callback)
                if isinstance(error, NotRunError):
                    raise self._not_run(error) from None
                raise

        await self._run_on_own_loop(add)

    async def unsubscribe(self, uri: str) -> None:
        """Remove the functions for a resource.

        Raises:
            MCPError: The server cannot be reached, or refuses it. It is not called any more.
        """

        async def remove() -> None:
            session = self._session
            if not self.subscriptions.remove(uri) or session is None or session.is_closed:
                return
            try:
                await session.updates.unsubscribe(uri)
            except NotRunError as error:
                raise self._not_run(error) from None

        await self._run_on_own_loop(remove)

    async def close(self) -> None:
        """Close the connection and end the server process, within bounded time."""
        self._closed = True
        await self._run_on_own_loop(self._close)

    async def restart(self) -> None:
        """Close the connection and open it again; concurrent calls use the new one.

        Raises:
            MCPConnectionError: The server cannot be connected, or the connection was closed.
        """

        async def reconnect() -> None:
            self._failures.clear()
            await self._close()
            await self._ensure_session()

        await self._run_on_own_loop(reconnect)

    async def use_legacy(self) -> bool:
        """Use the protocol versions up to 2025-11-25 from now on, on a new session.

        Returns:
            Whether the connection uses them. If the server does not support them, or the
            configuration excludes them, nothing changes.
        """

        async def change() -> bool:
            if self.config.protocol != "auto":
                return False
            is_new = self.protocol == "auto"  # otherwise another call is changing it
            if is_new:
                session = self.session
                if session is None or session.version < MODERN or self._session is None:
                    return False
                self.protocol = "legacy"
                self._retire(self._session)
            try:
                await self._ensure_session()
            except MCPError as error:
                logger.debug("%s: cannot use earlier protocol versions: %s", self.name, error)
                self.protocol = "auto"
                return False
            if is_new:
                logger.info(
                    "MCP server %r sends requests during calls; protocol versions up to 2025-11-25 "
                    "are used from now on.",
                    self.name,
                )
            return True

        return await self._run_on_own_loop(change)

    def close_soon(self) -> None:
        """Close the connection in the background; can be called from any thread."""
        self._closed = True
        loop = self._loop
        if loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(self._close(), loop)

    def reopen(self) -> None:
        """Allow a closed connection to connect again, and forget its failed attempts."""
        self._closed = False
        self._failures.clear()

    # --- on the loop that owns the connection

    async def _run_on_own_loop(self, create: Callable[[], Awaitable[Any]]) -> Any:
        """Await a coroutine on the loop that owns the connection."""
        loop = asyncio.get_running_loop()
        while (owner := self._loop) is not loop:
            if owner is None or not owner.is_running():
                self._move_to(loop)
                break
            # The loop ended before it started the coroutine, so nothing was sent: try again here.
            with contextlib.suppress(LoopEndedError):
                return await run_on_loop(owner, create, server=self.name)
        return await create()

    def _move_to(self, loop: asyncio.AbstractEventLoop) -> None:
        """Move the connection to a loop, and abandon the sessions of its loop that has ended."""
        sessions = self._retired | ({self._session} if self._session else set[ConnectionSession]())
        for session in sessions:
            session.abandon()
        self._retired.clear()
        self._session = None
        self._loop = loop

    async def _ensure_session(self) -> ConnectionSession:
        """Return the open session; open one if there is none, or if it accepts no more requests."""
        session = self._session
        if session is None or session.is_closed or session.retired:
            if self._closed:
                raise MCPConnectionError(
                    f"MCP server {self.name!r} was removed or closed.", server=self.name
                )
            self._check_failures()
            if session is not None:
                self._retire(session)
            session = self._session = ConnectionSession(self, delay=self._backoff())
        if not session.ready.done():
            await asyncio.shield(session.ready)
        session.ready.result()  # raises why it could not be opened
        return session

    def _check_failures(self) -> None:
        """Raise an error if too many attempts have failed within the window."""
        if len(self._failures) == _MAX_FAILURES and self.error is not None:
            remaining = self._failures[0] + _FAILURE_WINDOW - time.monotonic()
            if remaining > 0:
                raise MCPConnectionError(
                    f"{self.error} ({_MAX_FAILURES} attempts have failed; the next one is allowed "
                    f"in {remaining:.0f} s.)",
                    server=self.name,
                )

    def _backoff(self) -> float:
        """Return the wait before an attempt, in seconds."""
        return _FIRST_BACKOFF * (2 ** (len(self._failures) - 1)) if self._failures else 0.0

    def _retire(self, session: ConnectionSession) -> None:
        self._retired.add(session)
        if not session.ready.done():
            session.task.cancel()
        session.retire()
        session.task.add_done_callback(lambda _: self._retired.discard(session))

    def record_success(self) -> None:
        """Record that a session was opened."""
        self._failures.clear()
        self.error = None
        self.stats.connects += 1

    def record_failure(self, error: MCPError) -> None:
        """Record that a session could not be opened."""
        self._failures.append(time.monotonic())
        self.error = error

    def record_dropped(self, count: int) -> None:
        """Add to the number of messages that could not be used."""
        self.stats.dropped += count

    async def _request(
        self,
        create_request: Callable[[], PendingRequest],
        params: dict[str, Any],
        repeatable: bool,
    ) -> dict[str, Any]:
        first = True
        while True:
            session = self._session
            if session is None or not session.is_open:
                session = await self._ensure_session()
            request = create_request()
            try:
                return await session.send(request, params)
            except NotRunError as error:
                if not first or not error.retryable or (error.retry_after or 0) > _MAX_RETRY_AFTER:
                    raise self._not_run(error) from None
                if error.retry_after is not None:
                    await asyncio.sleep(error.retry_after)
            except ToolLostError:
                if not first or not repeatable:
                    raise
            first = False
            if self._session is session and (session.is_closed or request.session_lost):
                session.retire()

    def _not_run(self, error: NotRunError) -> MCPConnectionError:
        wait = "" if error.retry_after is None else f" Retry after {error.retry_after:g} s."
        return MCPConnectionError(
            f"MCP server {self.name!r} did not accept the request: {error}.{wait}",
            server=self.name,
            code=error.code,
        )

    async def _close(self) -> None:
        if self._session is not None:
            self._retire(self._session)
            self._session = None
        for session in self._retired:
            session.pending.close()
        tasks = {session.task for session in self._retired}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_CLOSE_TIMEOUT)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1)
            logger.warning("MCP server %r did not close within %g s.", self.name, _CLOSE_TIMEOUT)
