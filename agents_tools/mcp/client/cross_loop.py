"""Await a coroutine on the event loop that owns a connection, from another event loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.bridge import is_blocked
from agents_tools.concurrency.future import PendingFuture, call_on_loop
from agents_tools.errors import MCPConnectionError, ToolLostError, UserError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

__all__ = ["LoopEndedError", "consume_exception", "run_on_loop"]

_POLL_INTERVAL = 1.0
"""Seconds between two checks whether the other loop still runs."""
_CANCEL_TIMEOUT = 2.0
"""Seconds that a cancelled call has on the other loop to notify its server."""


class LoopEndedError(MCPConnectionError):
    """The other loop ended, or stopped, before it started the coroutine."""

    def __init__(self, server: str) -> None:
        super().__init__(
            f"The event loop that owns the connection to MCP server {server!r} has ended; nothing "
            "was sent. Open the connection on a loop that runs as long as its tools are used.",
            server=server,
        )


async def run_on_loop(
    loop: asyncio.AbstractEventLoop, create: Callable[[], Awaitable[Any]], *, server: str
) -> Any:
    """Await a coroutine on another loop; cancelling this call cancels the coroutine there.

    Args:
        loop: The loop that owns the connection.
        create: Creates the coroutine; it is called on that loop.
        server: The name of the server, for error messages.

    Raises:
        UserError: The other loop is blocked by the caller, so the two would wait for each other.
        MCPConnectionError: The other loop ended before it started the coroutine; nothing was sent.
        ToolLostError: The other loop ended while the coroutine was running.
    """
    if is_blocked(loop):
        raise UserError(
            "The connection to the MCP server belongs to the event loop that waits for this call: "
            "the call came from sync code on the thread of that loop. Write "
            "`await tool.invoke(...)` there, or run the sync code in a thread: "
            "`await asyncio.to_thread(...)`."
        )
    call = _LoopCall(loop, create, server)
    if not call_on_loop(loop, call.start):
        raise LoopEndedError(server)
    try:
        while not await call.outcome.wait(_POLL_INTERVAL):
            call.check_loop()
    except asyncio.CancelledError:
        if not call.prevent_start() and call_on_loop(loop, call.cancel):
            await call.outcome.wait(_CANCEL_TIMEOUT)
        raise
    return call.outcome.result()


class _LoopCall:
    """A coroutine that another loop awaits.

    A loop that ends drops its pending callbacks, so the caller checks repeatedly whether the loop
    still runs.
    """

    def __init__(
        self, loop: asyncio.AbstractEventLoop, create: Callable[[], Awaitable[Any]], server: str
    ) -> None:
        self.outcome: PendingFuture[Any] = PendingFuture()
        self._may_start: PendingFuture[bool] = PendingFuture()  # the first of both sides decides
        self._loop = loop
        self._create = create
        self._server = server
        self._task: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Start the coroutine, on the other loop, unless the caller has cancelled it."""
        if self._may_start.resolve(True):
            self._task = self._loop.create_task(self._run())
            self._task.add_done_callback(self._on_done)

    def prevent_start(self) -> bool:
        """Prevent the start of the coroutine; return `False` if it was started."""
        return self._may_start.resolve(False)

    def cancel(self) -> None:
        """Cancel the coroutine, on the other loop."""
        if self._task is not None:
            self._task.cancel()

    def check_loop(self) -> None:
        """Raise an error if the other loop can no longer finish the coroutine.

        Raises:
            MCPConnectionError: The coroutine was not started and never will be.
            ToolLostError: The coroutine was started and will not finish.
        """
        if self.outcome.done() or self._loop.is_running():
            return
        if self.prevent_start():
            raise LoopEndedError(self._server)
        if self._loop.is_closed():
            raise _lost_error()

    async def _run(self) -> None:
        try:
            value = await self._create()
        except asyncio.CancelledError:
            self.outcome.fail(_lost_error())
            raise
        except BaseException as error:  # noqa: BLE001 - raised in the caller
            self.outcome.fail(error)
        else:
            self.outcome.resolve(value)

    def _on_done(self, task: asyncio.Task[None]) -> None:
        # A task that is cancelled before its first step never reaches the `except` in `_run`.
        if task.cancelled():
            self.outcome.fail(_lost_error())


def _lost_error() -> ToolLostError:
    return ToolLostError(
        "The event loop that owned the connection to the MCP server ended during the call. "
        "It is unknown whether the call took effect."
    )


def consume_exception(future: asyncio.Future[None]) -> None:
    """Read the exception of a future, so that asyncio does not log it as never retrieved."""
    if not future.cancelled():
        future.exception()
