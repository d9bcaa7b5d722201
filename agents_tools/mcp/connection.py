"""One server: connected by a task of its own, again when it was lost, asked from anywhere."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import logging
import time
import weakref
from collections import deque
from contextvars import Context
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools._bridge import is_blocked
from agents_tools._text import safe_text, shorten
from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
    UserError,
)
from agents_tools.mcp._exchange import Exchange, Request
from agents_tools.mcp._sdk import Hooks, Refusal, open_session
from agents_tools.mcp._shapes import objects
from agents_tools.mcp.config import without_secrets

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from agents_tools.context import ToolContext
    from agents_tools.mcp._sdk import Session
    from agents_tools.mcp._stdio import StdioTransport
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["Connection", "Owner", "ServerStats", "elsewhere"]

logger = logging.getLogger("agents_tools.mcp")

MAX_PAGES = 100
MAX_TOOLS = 5_000
_ATTEMPTS, _WINDOW = 5, 60.0
"""So many attempts that fail within so many seconds, and no more are made until they are over."""
_DEBOUNCE = 0.3
"""Seconds after a list has changed before it is asked for: such news comes in bursts."""
_PATIENCE = 5.0
"""The longest wait that a server may ask for before a request is sent once more."""
_GOODBYE = 2.0
"""Seconds that a call which was cancelled gets on another loop to tell its server so."""
_LOOK = 1.0
"""Seconds after which a call that waits for another loop looks whether that still runs."""
_CLOSING = 8.0
"""Seconds that a connection may take to close."""
_FIRST_PAUSE = 0.1


class Owner(Protocol):
    """What a connection tells whoever has it."""

    def hooks(self, connection: Connection) -> Hooks:
        """Give what the server may ask for."""
        ...

    def listed(
        self, connection: Connection, tools: list[dict[str, Any]], refused: dict[str, str]
    ) -> None:
        """Take the tools of the server, and why some cannot be called: at first, and on changes."""
        ...


class ServerStats:
    """What has happened on one connection.

    Attributes:
        calls: Calls of tools.
        errors: Calls that failed.
        connects: How often it was connected.
        dropped: Messages of the server that could not be used.
    """

    __slots__ = ("calls", "connects", "dropped", "errors")

    def __init__(self) -> None:
        self.calls = 0
        self.errors = 0
        self.connects = 0
        self.dropped = 0


class NotRunError(Exception):
    """The request has surely not been acted upon.

    Args:
        why: What went wrong.
        again: Whether it may succeed on a new connection.
        wait: How many seconds the server asks to wait first.
        code: The HTTP status, where there was one.
    """

    def __init__(
        self, why: str, *, again: bool = True, wait: float | None = None, code: int | None = None
    ) -> None:
        super().__init__(why)
        self.again = again
        self.wait = wait
        self.code = code


class Connection:
    """One server. It is connected when it is first needed, and again after it was lost.

    Args:
        config: The server.
        owner: Who is told of its tools.
    """

    def __init__(self, config: MCPServerConfig, owner: Owner) -> None:
        self.config = config
        # Weakly: the task of a connection would keep alive what nobody else has any more.
        self._owner = weakref.ref(owner)
        self.stats = ServerStats()
        self.error: MCPError | None = None
        self._link: _Link | None = None
        self._leaving: set[_Link] = set()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._failed: deque[float] = deque(maxlen=_ATTEMPTS)
        self._closed = False

    @property
    def name(self) -> str:
        """The name of the server."""
        return self.config.name

    @property
    def owner(self) -> Owner | None:
        """Who is told of its tools; `None` when nobody has that any more."""
        return self._owner()

    @property
    def loop(self) -> asyncio.AbstractEventLoop | None:
        """The event loop that it lives on; calls from others are made there."""
        return self._loop

    @property
    def hooks(self) -> Hooks:
        """What the server may ask for."""
        owner = self._owner()
        return Hooks() if owner is None else owner.hooks(self)

    def listed(self, tools: list[dict[str, Any]], refused: dict[str, str]) -> None:
        """Hand on the tools of the server, and why some of them cannot be called."""
        owner = self._owner()
        if owner is not None:
            owner.listed(self, tools, refused)

    @property
    def connected(self) -> bool:
        """Whether there is a session at the moment."""
        link = self._link
        return link is not None and link.session is not None and not link.over

    @property
    def session(self) -> Session | None:
        """The session at the moment."""
        link = self._link
        return None if link is None or link.over else link.session

    @property
    def pid(self) -> int | None:
        """The process of a stdio server at the moment."""
        link = self._link
        return None if link is None or link.process is None else link.process.pid

    @property
    def requests(self) -> list[Request]:
        """The requests that are in flight."""
        link = self._link
        return [] if link is None else list(link.exchange.requests.values())

    async def connect(self) -> None:
        """Connect, if there is no connection.

        Raises:
            MCPConnectionError: It cannot be.
        """
        await self._here(self._ready)

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        *,
        context: ToolContext[Any] | None = None,
        on_progress: Callable[[Mapping[str, Any]], None] | None = None,
        repeatable: bool = False,
    ) -> dict[str, Any]:
        """Send a request and give its result; from any event loop.

        A request that has surely not been acted upon is sent once more, on a new connection.

        Args:
            method: Its method.
            params: Its params.
            context: The call that it is made for.
            on_progress: Hears its progress.
            repeatable: Whether it may be sent again although its outcome is unknown.

        Raises:
            MCPConnectionError: The server cannot be reached; nothing has happened.
            MCPProtocolError: The server answered with an error.
            MCPTimeoutError: It was silent for too long.
            ToolLostError: The connection was lost, and nobody knows what has happened.
        """
        make = partial(
            Request,
            method,
            context=context,
            caller=asyncio.get_running_loop(),
            on_progress=on_progress,
        )
        return await self._here(lambda: self._request(make, dict(params), repeatable))

    async def close(self) -> None:
        """Close the connection and end the process, within bounded time."""
        self._closed = True
        await self._here(self._close)

    async def restart(self) -> None:
        """Close the connection and make it anew; calls that come meanwhile take the new one.

        Raises:
            MCPConnectionError: It cannot be, or was closed for good.
        """

        async def anew() -> None:
            self._failed.clear()
            await self._close()
            await self._ready()

        await self._here(anew)

    def close_soon(self) -> None:
        """Close the connection without waiting for it, from any thread."""
        self._closed = True
        loop = self._loop
        if loop is not None and loop.is_running():
            asyncio.run_coroutine_threadsafe(self._close(), loop)

    def reopen(self) -> None:
        """Let it connect again."""
        self._closed = False
        self._failed.clear()

    # --- on the loop that has the connection

    async def _here(self, make: Callable[[], Awaitable[Any]]) -> Any:
        """Await something on the loop that has the connection."""
        loop = asyncio.get_running_loop()
        while (owner := self._loop) is not loop:
            if owner is None or not owner.is_running():
                self._adopt(loop)
                break
            with contextlib.suppress(_LoopEndedError):  # nothing has happened: belong to this loop
                return await elsewhere(owner, make, server=self.name)
        return await make()

    def _adopt(self, loop: asyncio.AbstractEventLoop) -> None:
        """Leave behind what a loop that is gone has left, and belong to this one."""
        for link in ({self._link} if self._link else set[_Link]()) | self._leaving:
            link.abandon()
        self._leaving.clear()
        self._link = None
        self._loop = loop

    async def _ready(self) -> _Link:
        link = self._link
        if link is None or link.over or link.retired:
            if self._closed:
                raise MCPConnectionError(
                    f"MCP server {self.name!r} was removed or closed.", server=self.name
                )
            self._check_budget()
            if link is not None:
                self._leave(link)
            link = self._link = _Link(self, pause=self._pause())
        await asyncio.shield(link.ready)
        return link

    def _check_budget(self) -> None:
        """Refuse an attempt where the last ones have all failed just now."""
        if len(self._failed) == _ATTEMPTS and self.error is not None:
            left = self._failed[0] + _WINDOW - time.monotonic()
            if left > 0:
                raise MCPConnectionError(
                    f"{self.error} ({_ATTEMPTS} attempts have failed; the next is made in "
                    f"{left:.0f} s.)",
                    server=self.name,
                )

    def _pause(self) -> float:
        """How long to wait before an attempt: longer with each one that has failed."""
        return _FIRST_PAUSE * (2 ** (len(self._failed) - 1)) if self._failed else 0.0

    def _leave(self, link: _Link) -> None:
        self._leaving.add(link)
        if not link.ready.done():
            link.task.cancel()
        link.retire()
        link.task.add_done_callback(lambda _: self._leaving.discard(link))

    def succeeded(self) -> None:
        """Note that a connection was made."""
        self._failed.clear()
        self.error = None
        self.stats.connects += 1

    def failed(self, error: MCPError) -> None:
        """Note that a connection could not be made."""
        self._failed.append(time.monotonic())
        self.error = error

    async def _request(
        self,
        make: Callable[[], Request],
        params: dict[str, Any],
        repeatable: bool,
    ) -> dict[str, Any]:
        first = True
        while True:
            link = await self._ready()
            request = make()
            try:
                return await link.send(request, params)
            except NotRunError as error:
                if not first or not error.again or (error.wait or 0) > _PATIENCE:
                    raise self._not_run(error) from None
                if error.wait is not None:
                    await asyncio.sleep(error.wait)
            except ToolLostError:
                if not first or not repeatable:
                    raise
            first = False
            if self._link is link and (link.over or request.status == _NOT_FOUND):
                link.retire()

    def _not_run(self, error: NotRunError) -> MCPConnectionError:
        wait = "" if error.wait is None else f" It asks to wait {error.wait:g} s."
        return MCPConnectionError(
            f"MCP server {self.name!r} did not take the request: {error}.{wait}",
            server=self.name,
            code=error.code,
        )

    async def _close(self) -> None:
        if self._link is not None:
            self._leave(self._link)
            self._link = None
        for link in self._leaving:
            link.exchange.close()
        tasks = {link.task for link in self._leaving}
        if not tasks:
            return
        _, late = await asyncio.wait(tasks, timeout=_CLOSING)
        for task in late:
            task.cancel()
        if late:
            await asyncio.wait(late, timeout=1)
            logger.warning("MCP server %r did not close within %g s.", self.name, _CLOSING)


async def elsewhere(
    loop: asyncio.AbstractEventLoop, make: Callable[[], Awaitable[Any]], *, server: str
) -> Any:
    """Await something of a server on another loop; a cancellation here reaches it there.

    Raises:
        UserError: That loop waits for what runs here.
        MCPConnectionError: That loop has ended before it came to this; nothing has happened.
        ToolLostError: That loop has ended in the middle of it.
    """
    if is_blocked(loop):
        raise UserError(
            "The connection to the MCP server belongs to the event loop that waits for this call: "
            "it was called from sync code on the thread of that loop. Write "
            "`await tool.invoke(...)` there, or run the sync code in a thread: "
            "`await asyncio.to_thread(...)`."
        )
    job = _Job(loop, make, server)
    answer = asyncio.wrap_future(job.answer)
    answer.add_done_callback(_seen)
    try:
        loop.call_soon_threadsafe(job.begin)
        while not answer.done():
            await asyncio.wait({answer}, timeout=_LOOK)
            job.look()
    except asyncio.CancelledError:
        if not job.answer.cancel():
            with contextlib.suppress(RuntimeError):  # it is closed
                loop.call_soon_threadsafe(job.stop)
            await asyncio.wait({answer}, timeout=_GOODBYE)
        raise
    except RuntimeError:  # the loop is closed
        raise _LoopEndedError(server) from None
    return answer.result()


class _LoopEndedError(MCPConnectionError):
    """A loop has ended, or stands still, before it came to what it was to do."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The event loop that has the connection to MCP server {server!r} has ended; nothing "
            "was sent. Open it on a loop that runs as long as its tools are used.",
            server=server,
        )


class _Job:
    """Something that another loop is to await. A loop that ends drops what it was told to begin."""

    def __init__(
        self, loop: asyncio.AbstractEventLoop, make: Callable[[], Awaitable[Any]], server: str
    ) -> None:
        self.answer: concurrent.futures.Future[Any] = concurrent.futures.Future()
        self._loop = loop
        self._make = make
        self._server = server
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin, on that loop, unless it is not wanted any more."""
        if self.answer.set_running_or_notify_cancel():
            self._task = self._loop.create_task(self._run())
            self._task.add_done_callback(self._end)

    def stop(self) -> None:
        """Cancel it, on that loop."""
        if self._task is not None:
            self._task.cancel()

    def look(self) -> None:
        """See whether that loop still comes to it, or to its end.

        Raises:
            MCPConnectionError: It was not begun, and never is.
            ToolLostError: It has no end.
        """
        if self.answer.done() or self._loop.is_running():
            return
        if self.answer.cancel():
            raise _LoopEndedError(self._server)
        if self._loop.is_closed():
            raise _lost_with_its_loop()

    async def _run(self) -> None:
        try:
            value = await self._make()
        except asyncio.CancelledError:
            self.answer.set_exception(_lost_with_its_loop())
            raise
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for it
            self.answer.set_exception(error)
        else:
            self.answer.set_result(value)

    def _end(self, task: asyncio.Task[None]) -> None:
        if task.cancelled() and not self.answer.done():  # before its first step
            self.answer.set_exception(_lost_with_its_loop())


def _lost_with_its_loop() -> ToolLostError:
    return ToolLostError(
        "The event loop that had the connection to the MCP server has ended during the call, which "
        "may have taken effect or not; nobody knows."
    )


class _Link:
    """One life of a connection, from connecting to closing, in one task.

    The SDK's clients have to be left in the task that entered them, and what breaks in them
    cancels that task; so no caller's task is ever theirs.
    """

    def __init__(self, connection: Connection, *, pause: float) -> None:
        loop = asyncio.get_running_loop()
        self.connection = connection
        self.config = connection.config
        self.session: Session | None = None
        self.process: StdioTransport | None = None
        self.exchange = Exchange(on_change=self._changed, on_log=self._logged)
        self.ready: asyncio.Future[None] = loop.create_future()
        self.ready.add_done_callback(_seen)
        self.retired = False
        self._relist = asyncio.Event()
        self._logs = 0
        self.task = loop.create_task(
            self._live(pause),
            name=f"mcp {connection.name}",
            context=Context(),  # not that of the call which happens to need the connection first
        )
        # A task that is cancelled before its first step has no chance to say so itself.
        self.task.add_done_callback(lambda _: self._fail("connecting was cancelled"))

    @property
    def over(self) -> bool:
        """Whether it can be used no more."""
        return self.exchange.closed.is_set() or self.task.done()

    def retire(self) -> None:
        """Take no more requests, and close when those in flight have their answers."""
        self.retired = True
        if not self.exchange.requests:
            self.exchange.close()

    def abandon(self) -> None:
        """End the process at once: the loop of the task is gone."""
        if self.process is not None:
            self.process.abandon()

    # --- its life

    async def _live(self, pause: float) -> None:
        late = asyncio.get_running_loop().call_later(
            pause + self.config.connect_timeout, self._too_late
        )
        try:
            await asyncio.sleep(pause)
            await self._serve(late)
        except asyncio.CancelledError:
            if not self.ready.done():
                self._fail("connecting was cancelled")
            task = asyncio.current_task()
            if task is not None and task.cancelling() and not late.cancelled():
                return  # cancelled by ourselves, or by a loop that ends
            raise
        except BaseException as error:  # noqa: BLE001 - told to whoever waits for the connection
            self._end_with(error)
        finally:
            late.cancel()
            self.exchange.close()
            self.connection.stats.dropped += self.exchange.ignored

    async def _serve(self, late: asyncio.TimerHandle) -> None:
        hooks = self.connection.hooks
        async with open_session(self.config, self.exchange, hooks, self._started) as session:
            self.session = session
            await self._list()
            late.cancel()
            if self.ready.done():
                return
            self.connection.succeeded()
            self.ready.set_result(None)
            beside = [asyncio.create_task(work()) for work in (self._listen, self._keep_listed)]
            try:
                await self.exchange.closed.wait()
            finally:
                for task in beside:
                    task.cancel()
                await asyncio.gather(*beside, return_exceptions=True)

    def _started(self, process: StdioTransport) -> None:
        self.process = process

    def _too_late(self) -> None:
        self._fail(f"it has not answered within {self.config.connect_timeout:g} s")
        self.exchange.close()
        self.task.cancel()

    def _end_with(self, error: BaseException) -> None:
        cause = _cause(error)
        if self.ready.done():
            logger.debug("The connection to MCP server %r has ended: %r", self.config.name, cause)
        elif isinstance(cause, MCPError):
            self.connection.failed(cause)
            self.ready.set_exception(cause)
        else:
            self._fail(self.exchange.fault or _told(cause), cause)

    def _fail(self, why: str, cause: BaseException | None = None) -> None:
        if self.ready.done():
            return
        told = [why]
        if self.process is not None:
            words = self._last_words(self.process)
            told = words if self.process.exit_code is not None else [why, *words]
        why = without_secrets(self.config, "; ".join(told))
        error = MCPConnectionError(
            f"MCP server {self.config.name!r} could not be connected: {why}",
            server=self.config.name,
            code=self.exchange.refused,
        )
        error.__cause__ = cause
        self.connection.failed(error)
        self.ready.set_exception(error)

    def _last_words(self, process: StdioTransport) -> list[str]:
        """Give the exit code of a process and the end of its stderr, as far as there are any."""
        told: list[str] = []
        if process.exit_code is not None:
            told.append(f"its process ended with exit code {process.exit_code}")
        if lines := process.stderr_tail:
            told.append("it wrote to stderr:\n" + "\n".join(f"  {line}" for line in lines))
        return told

    # --- what it says by itself

    def _changed(self, method: str) -> None:
        if method == "notifications/tools/list_changed":
            self._relist.set()

    def _logged(self, params: Mapping[str, Any]) -> None:
        self._logs += 1
        if self._logs > _MOST_LOGS or not logger.isEnabledFor(logging.DEBUG):
            return
        text = shorten(safe_text(str(params.get("data"))), 500)
        logger.debug("%s (%s): %s", self.config.name, params.get("level"), text)

    async def _listen(self) -> None:
        session = self.session
        pause = 1.0
        while session is not None:
            try:
                await session.listen(self._changed)
            except Exception as error:  # noqa: BLE001 - a stream beside the calls, tried again
                logger.debug("%s: the stream of changes has ended: %r", self.config.name, error)
            else:
                return
            await asyncio.sleep(pause)
            pause = min(pause * 2, 60.0)
            self._relist.set()  # what changed meanwhile was not heard

    async def _keep_listed(self) -> None:
        while True:
            await self._relist.wait()
            await asyncio.sleep(_DEBOUNCE)
            self._relist.clear()
            try:
                await self._list()
            except Exception as error:  # noqa: BLE001 - also of hooks; the next change is heard
                logger.warning(
                    "The tools of MCP server %r stay as they were: %s", self.config.name, error
                )

    async def _list(self) -> None:
        """Ask for the tools, and hand them on without those that no call can be made of."""
        tools = await self.list_tools()
        refused: dict[str, str] = {}
        if self.session is not None and self.config.transport == "http":
            refused, self.exchange.mirror = self.session.mirrored(tools)
        self.connection.listed(tools, refused)

    # --- requests

    async def list_tools(self) -> list[dict[str, Any]]:
        """Ask for all pages of the list of tools."""
        session = self.session
        if session is None or (session.capabilities and "tools" not in session.capabilities):
            return []
        tools: list[dict[str, Any]] = []
        seen: set[str] = set()
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            params: dict[str, Any] = {} if cursor is None else {"cursor": cursor}
            try:
                page = await self.send(Request("tools/list"), params)
            except NotRunError as error:
                raise MCPConnectionError(
                    f"MCP server {self.config.name!r} does not list its tools: {error}.",
                    server=self.config.name,
                    code=error.code,
                ) from None
            if not isinstance(page.get("tools"), list):
                raise self._nonsense("its list of tools is no list")
            tools += objects(page["tools"])
            given = page.get("nextCursor")
            cursor = given if isinstance(given, str) and given else None
            if cursor in seen:
                raise self._nonsense(f"its list of tools goes in a circle at cursor {cursor!r:.60}")
            if len(tools) > MAX_TOOLS - (cursor is not None):
                logger.warning(
                    "MCP server %r has more than %d tools; the rest is left out.",
                    self.config.name,
                    MAX_TOOLS,
                )
                return tools[:MAX_TOOLS]
            if cursor is None:
                return tools
            seen.add(cursor)
        raise self._nonsense(
            f"its list of tools has more than {MAX_PAGES} pages; the last cursor was {cursor!r:.60}"
        )

    def _nonsense(self, what: str) -> MCPProtocolError:
        return MCPProtocolError(
            f"MCP server {self.config.name!r} cannot be used: {what}.", server=self.config.name
        )

    async def send(self, request: Request, params: dict[str, Any]) -> dict[str, Any]:
        """Send a request and give its result, with everything that can go wrong told apart."""
        session, config = self.session, self.config
        if session is None or self.over:
            raise NotRunError("the connection has ended")
        now = asyncio.get_running_loop().time()
        request.idle, request.latest = config.timeout, now + config.max_time
        if request.context is not None and request.context.deadline is not None:
            request.latest = min(request.latest, request.context.deadline)
        try:
            async with asyncio.timeout_at(min(now + request.idle, request.latest)) as clock:
                request.clock = clock
                return await session.send(request, params)
        except TimeoutError:
            if request.lost or self.over:
                raise await self._gone(request) from None
            raise self._silent(request) from None
        except Refusal as refusal:
            closed = refusal.code == _CLOSED and (
                request.cut or refusal.message == "Connection closed"  # the SDK's own words
            )
            ended = closed or self.exchange.closed.is_set()
            if request.lost or (ended and request.fault is None):
                raise await self._gone(request) from None
            raise self._refused(request, refusal) from None
        except ConnectionError:
            self.retire()  # nothing can be sent on it any more, whatever still comes
            raise await self._gone(request) from None
        finally:
            request.clock = None
            if request.id is not None:
                self.exchange.requests.pop(request.id, None)
            if self.retired and not self.exchange.requests:
                self.exchange.close()

    async def _gone(self, request: Request) -> Exception:
        why = request.fault or "the connection has ended"
        if self.process is not None:
            await self.process.settle()
            why = "; ".join([why, *self._last_words(self.process)])
        why = without_secrets(self.config, why)
        if not request.sent:
            return NotRunError(why, code=request.status)
        return ToolLostError(
            f"MCP server {self.config.name!r} was lost during the call, which may have taken "
            f"effect or not; nobody knows. Why: {why}"
        )

    def _silent(self, request: Request) -> MCPTimeoutError:
        config = self.config
        if asyncio.get_running_loop().time() >= request.latest:
            why = f"took longer than {config.max_time:g} s (max_time)"
            if request.context is not None and request.context.deadline is not None:
                why = "had no answer before the deadline of the call"
        else:
            why = f"said nothing for {config.timeout:g} s (timeout)"
        return MCPTimeoutError(
            f"MCP server {config.name!r} {why}; the call was cancelled.", server=config.name
        )

    def _refused(self, request: Request, refusal: Refusal) -> Exception:
        name, status = self.config.name, request.status
        if request.fault is not None and not request.sent:
            session_gone = status == _NOT_FOUND and request.in_session
            again = status is None or session_gone or request.retry_after is not None
            why = without_secrets(self.config, request.fault)
            return NotRunError(why, again=again, wait=request.retry_after, code=status)
        why = request.fault or shorten(safe_text(refusal.message), 1_000)
        why = without_secrets(self.config, why)
        code = refusal.code if status is None or request.fault is None else status
        return MCPProtocolError(
            f"MCP server {name!r} answers with an error: {why}", server=name, code=code
        )


_MOST_LOGS = 10_000
_NOT_FOUND, _CLOSED = 404, -32000


def _seen(future: asyncio.Future[None]) -> None:
    """Look at the outcome, which nobody may be waiting for any more."""
    if not future.cancelled():
        future.exception()


def _cause(error: BaseException) -> BaseException:
    """Give the error inside the groups that structured concurrency wraps it in."""
    while isinstance(error, BaseExceptionGroup):
        inside = cast("BaseExceptionGroup[BaseException]", error).exceptions
        error = next((e for e in inside if not isinstance(e, asyncio.CancelledError)), inside[0])
    return error


def _told(error: BaseException) -> str:
    with contextlib.suppress(Exception):
        text = shorten(safe_text(str(getattr(error, "message", "") or error)), 500).rstrip(".")
        if text:
            return text
    return type(error).__name__
