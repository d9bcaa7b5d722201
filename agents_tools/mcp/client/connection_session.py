"""One session of a connection: a task that connects, sends requests and updates the tool list."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
)
from agents_tools.mcp._sdk import MODERN
from agents_tools.mcp.client.cross_loop import consume_exception
from agents_tools.mcp.client.pending_requests import (
    NotRunError,
    PendingRequest,
    PendingRequests,
    request_of_run,
)
from agents_tools.mcp.client.request_timeouts import RequestTimeout, RequestTimeouts
from agents_tools.mcp.client.sdk import open_session
from agents_tools.mcp.client.sdk_session import ServerRefusal
from agents_tools.mcp.client.server_lists import ListReceiver, ServerLists
from agents_tools.mcp.client.server_log import report_log
from agents_tools.mcp.client.subscriptions import ResourceSubscriptions, UpdateStream
from agents_tools.mcp.config import without_secrets
from agents_tools.mcp.oauth import OAuth
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.mcp.client.sdk_session import ClientHooks, ClientSession
    from agents_tools.mcp.client.stdio import StdioTransport
    from agents_tools.mcp.config import MCPServerConfig, ProtocolEra

__all__ = ["ConnectionSession", "SessionOwner"]

logger = logging.getLogger("agents_tools.mcp")

_MAX_LOGS = 10_000
"""The maximum number of log messages of a server; further ones are dropped."""
_CLOSED = -32000


class SessionOwner(ListReceiver, Protocol):
    """The connection that a session belongs to."""

    config: MCPServerConfig
    protocol: ProtocolEra

    @property
    def name(self) -> str:
        """The name of the server."""
        ...

    @property
    def hooks(self) -> ClientHooks:
        """The callbacks for requests of the server."""
        ...

    @property
    def subscriptions(self) -> ResourceSubscriptions:
        """The subscriptions to resources of the server."""
        ...

    def record_success(self) -> None:
        """Record that a session was opened."""
        ...

    def record_failure(self, error: MCPError) -> None:
        """Record that a session could not be opened."""
        ...

    def record_dropped(self, count: int) -> None:
        """Add to the number of messages that could not be used."""
        ...


class ConnectionSession:
    """One session of a connection, from connecting to closing, in a task of its own.

    The SDK's clients must be exited in the task that entered them, and an error inside them
    cancels that task. Therefore they never run in the task of a caller.

    Args:
        owner: The connection.
        delay: Seconds to wait before connecting.
    """

    def __init__(self, owner: SessionOwner, *, delay: float) -> None:
        loop = asyncio.get_running_loop()
        self.owner = owner
        self.config = owner.config
        self.client: ClientSession | None = None
        self.process: StdioTransport | None = None
        self.lists = ServerLists(self, owner)
        self.updates = UpdateStream(self, owner.subscriptions)
        self.pending = PendingRequests(
            on_change=self.lists.record_change,
            on_update=owner.subscriptions.record_update,
            on_log=self._on_log,
        )
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ready.add_done_callback(consume_exception)
        self.retired = False
        self._timeouts = RequestTimeouts()
        self._logs = 0
        # An empty context: the session must not inherit the variables of the call that opens it.
        self.task = loop.create_task(self._run(delay), name=f"mcp {owner.name}", context=Context())
        # A task that is cancelled before its first step cannot resolve `ready` itself.
        self.task.add_done_callback(lambda _: self._fail("connecting was cancelled"))

    @property
    def is_closed(self) -> bool:
        """Whether the session can no longer send requests."""
        return self.pending.closed.is_set() or self.task.done()

    @property
    def is_open(self) -> bool:
        """Whether the session accepts requests."""
        return self.ready.done() and not self.retired and not self.is_closed

    def retire(self) -> None:
        """Accept no more requests, and close when those in flight have finished."""
        self.retired = True
        if not self.pending.requests:
            self.pending.close()

    def abandon(self) -> None:
        """Kill the server process at once: the loop of the task has ended."""
        if self.process is not None:
            self.process.abandon()

    # --- the task

    async def _run(self, delay: float) -> None:
        loop = asyncio.get_running_loop()
        timeout = delay + self.config.connect_timeout
        timer = _ConnectTimer(loop, timeout, self._on_connect_timeout)
        if isinstance(self.config.auth, OAuth):
            # A login is bounded by itself; then the server has its full time.
            self.pending.on_wait = partial(timer.extend, self.config.auth.timeout + timeout)
        try:
            await asyncio.sleep(delay)
            await self._serve(timer)
        except asyncio.CancelledError:
            if not self.ready.done():
                self._fail("connecting was cancelled")
            task = asyncio.current_task()
            if task is not None and task.cancelling() and not timer.cancelled():
                return  # cancelled by the connection, or by a loop that ends
            raise
        except BaseException as error:  # noqa: BLE001 - `ready` raises it in the callers
            self._finish_with(error)
        finally:
            timer.cancel()
            self.pending.close()
            self._timeouts.close()
            self.owner.record_dropped(self.pending.ignored)

    async def _serve(self, timer: _ConnectTimer) -> None:
        """Open the session, and keep it open until it is closed from either side."""
        hooks = self.owner.hooks
        async with open_session(
            self.config, self.pending, hooks, self._set_process, protocol=self.owner.protocol
        ) as client:
            self.client = client
            await self._request_logs(client)
            await self.lists.load()
            timer.cancel()
            if self.ready.done():
                return
            self.owner.record_success()
            self.ready.set_result(None)
            background = [
                asyncio.create_task(work)
                for work in (
                    self._watch_changes(),
                    self.lists.keep_current(),
                    self.updates.restore(),
                    self.owner.subscriptions.deliver(),
                )
            ]
            try:
                await self.pending.closed.wait()
            finally:
                for task in background:
                    task.cancel()
                await asyncio.gather(*background, self.updates.close(), return_exceptions=True)

    async def _request_logs(self, client: ClientSession) -> None:
        """Request log messages, up to 2025-11-25; each request does this in later versions."""
        level = self.config.log_level
        if level is None or client.version >= MODERN or "logging" not in client.capabilities:
            return
        try:
            await self.send(PendingRequest("logging/setLevel"), {"level": level})
        except (MCPProtocolError, NotRunError) as error:
            logger.warning("MCP server %r sends no log messages: %s", self.config.name, error)

    def _set_process(self, process: StdioTransport) -> None:
        self.process = process

    def _on_connect_timeout(self) -> None:
        seconds = self.config.connect_timeout
        self._fail(f"it has not answered within {seconds:g} s (connect_timeout={seconds:g})")
        self.pending.close()
        self.task.cancel()

    def _finish_with(self, error: BaseException) -> None:
        cause = _root_cause(error)
        if self.ready.done():
            logger.debug("The connection to MCP server %r has ended: %r", self.config.name, cause)
        elif isinstance(cause, MCPError):
            self.owner.record_failure(cause)
            self.ready.set_exception(cause)
        else:
            self._fail(self.pending.fault or _describe(cause), cause)

    def _fail(self, why: str, cause: BaseException | None = None) -> None:
        """Fail the connection attempt, unless it has already succeeded or failed."""
        if self.ready.done():
            return
        reasons = [why]
        if self.process is not None:
            facts = self._describe_process(self.process)
            reasons = facts if self.process.exit_code is not None else [why, *facts]
        why = without_secrets(self.config, "; ".join(reasons))
        error = MCPConnectionError(
            f"MCP server {self.config.name!r} could not be connected: {why}",
            server=self.config.name,
            code=self.pending.http_status,
        )
        error.__cause__ = cause
        self.owner.record_failure(error)
        self.ready.set_exception(error)

    def _describe_process(self, process: StdioTransport) -> list[str]:
        """Return the exit code of a process and the end of its stderr, if there are any."""
        facts: list[str] = []
        if process.exit_code is not None:
            facts.append(f"its process ended with exit code {process.exit_code}")
        if lines := process.stderr_tail:
            facts.append("it wrote to stderr:\n" + "\n".join(f"  {line}" for line in lines))
        return facts

    # --- notifications of the server

    def _on_log(self, params: Mapping[str, Any]) -> None:
        self._logs += 1
        if self._logs <= _MAX_LOGS:
            calls = self.pending.requests.values()
            report_log(self.config.name, params, self.config.log_level, request_of_run(calls))

    async def _watch_changes(self) -> None:
        """Read the stream of changes, if the protocol version has one; reopen it after errors."""
        client = self.client
        delay = 1.0
        while client is not None:
            try:
                await client.listen(self.lists.record_change)
            except Exception as error:  # noqa: BLE001 - calls work without the stream; reopen it
                logger.debug("%s: the stream of changes has ended: %r", self.config.name, error)
            else:
                return
            await asyncio.sleep(delay)
            delay = min(delay * 2, 60.0)
            self.lists.record_changes()  # those during the pause were not reported

    # --- requests

    async def send(self, request: PendingRequest, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and return its result.

        Raises:
            NotRunError: The server has certainly not acted upon the request.
            ToolLostError: The connection was lost; it is unknown whether the request was executed.
            MCPTimeoutError: The server did not answer in time.
            MCPProtocolError: The server answered with an error.
        """
        client, config = self.client, self.config
        if client is None or self.is_closed:
            raise NotRunError("the connection has ended")
        now = asyncio.get_running_loop().time()
        request.idle_timeout, request.deadline = config.timeout, now + config.max_time
        if request.context is not None and request.context.deadline is not None:
            request.deadline = min(request.deadline, request.context.deadline)
        try:
            when = min(now + request.idle_timeout, request.deadline)
            request.timeout = RequestTimeout(self._timeouts, when)
            with request.timeout:
                return await client.send(request, params)
        except TimeoutError:
            if request.lost or self.is_closed:
                raise await self._lost_error(request) from None
            raise self._timeout_error(request) from None
        except ServerRefusal as refusal:
            closed = refusal.code == _CLOSED and (
                request.stream_ended or refusal.message == "Connection closed"  # the SDK's text
            )
            ended = closed or self.pending.closed.is_set()
            if request.lost or (ended and request.fault is None):
                raise await self._lost_error(request) from None
            raise self._refusal_error(request, refusal) from None
        except ConnectionError:
            self.retire()  # no request can be sent, but answers can still arrive
            raise await self._lost_error(request) from None
        finally:
            request.timeout = None
            if request.id is not None:
                self.pending.requests.pop(request.id, None)
            if self.retired and not self.pending.requests:
                self.pending.close()

    async def _lost_error(self, request: PendingRequest) -> Exception:
        why = request.fault or "the connection has ended"
        if self.process is not None:
            await self.process.wait_for_exit_code()
            why = "; ".join([why, *self._describe_process(self.process)])
        why = without_secrets(self.config, why)
        if not request.sent:
            return NotRunError(why, code=request.status)
        return ToolLostError(
            f"MCP server {self.config.name!r} was lost during the call; it is unknown whether the "
            f"call took effect. Reason: {why}"
        )

    def _timeout_error(self, request: PendingRequest) -> MCPTimeoutError:
        config = self.config
        if asyncio.get_running_loop().time() >= request.deadline:
            why = f"took longer than {config.max_time:g} s (max_time)"
            if request.context is not None and request.context.deadline is not None:
                why = "did not answer before the deadline of the call"
        else:
            why = f"sent nothing for {config.timeout:g} s (timeout)"
        return MCPTimeoutError(
            f"MCP server {config.name!r} {why}; the call was cancelled.", server=config.name
        )

    def _refusal_error(self, request: PendingRequest, refusal: ServerRefusal) -> Exception:
        name, status = self.config.name, request.status
        if request.fault is not None and not request.sent:
            retryable = status is None or request.session_lost or request.retry_after is not None
            why = without_secrets(self.config, request.fault)
            return NotRunError(
                why, retryable=retryable, retry_after=request.retry_after, code=status
            )
        why = request.fault or release_text(refusal.message, limit=1_000)
        why = without_secrets(self.config, why)
        code = refusal.code if status is None or request.fault is None else status
        return MCPProtocolError(
            f"MCP server {name!r} answered with an error: {why}", server=name, code=code
        )


class _ConnectTimer:
    """The timeout for connecting, which a login extends.

    Args:
        loop: The event loop.
        seconds: The timeout, in seconds.
        callback: Called when the time is over.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, seconds: float, callback: Callable[[], None]
    ) -> None:
        self._loop = loop
        self._callback = callback
        self._handle = loop.call_later(seconds, callback)

    def extend(self, seconds: float) -> None:
        """Restart the timeout with another value, unless it was cancelled."""
        if not self._handle.cancelled():
            self._handle.cancel()
            self._handle = self._loop.call_later(seconds, self._callback)

    def cancel(self) -> None:
        """Stop the timeout."""
        self._handle.cancel()

    def cancelled(self) -> bool:
        """Return whether the timeout was stopped."""
        return self._handle.cancelled()


def _root_cause(error: BaseException) -> BaseException:
    """Return the first error inside nested exception groups."""
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((e for e in inside if not isinstance(e, asyncio.CancelledError)), inside[0])
    return error


def _describe(error: BaseException) -> str:
    """Return the shortened message of an error, or its type if it has no message."""
    with contextlib.suppress(Exception):
        text = release_text(str(getattr(error, "message", "") or error), limit=500).rstrip(".")
        if text:
            return text
    return type(error).__name__
