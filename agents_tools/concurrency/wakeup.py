"""Waking of tasks from any thread."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["LoopReference", "LoopWaiter"]


class LoopReference:
    """An event loop and its thread."""

    __slots__ = ("_thread", "loop")

    def __init__(self) -> None:
        from asyncio import get_running_loop

        self.loop: AbstractEventLoop = get_running_loop()
        self._thread = get_ident()

    def is_here(self) -> bool:
        """Return whether this is the thread of the loop."""
        return get_ident() == self._thread

    def is_closed(self) -> bool:
        """Return whether the loop is closed."""
        return self.loop.is_closed()

    def call(self, fn: Callable[[], object]) -> bool:
        """Make the loop call a function soon; `False` if the loop is closed."""
        try:
            if get_ident() == self._thread:
                self.loop.call_soon(fn)
            else:
                self.loop.call_soon_threadsafe(fn)
        except RuntimeError:
            return False
        return True


class LoopWaiter:
    """A waiting task."""

    __slots__ = ("_future", "_home")

    def __init__(self, home: LoopReference) -> None:
        self._home = home
        self._future = home.loop.create_future()

    def wake(self) -> None:
        """Wake the task. Can be called from any thread, and repeatedly."""
        if self._home.is_here() and not self._home.is_closed():
            self._settle()
        else:
            self._home.call(self._settle)

    async def wait(self, timeout: float | None = None) -> None:  # noqa: ASYNC109 - not an error
        """Wait until `wake` is called, or for `timeout` seconds."""
        if timeout is None:
            await self._future
            return
        timer = self._home.loop.call_later(timeout, self._settle)
        try:
            await self._future
        finally:
            timer.cancel()

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
