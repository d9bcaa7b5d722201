"""Wake a task from any thread."""

from __future__ import annotations

from threading import get_ident
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from asyncio import AbstractEventLoop
    from collections.abc import Callable

__all__ = ["LoopReference", "LoopWaiter"]


class LoopReference:
    """An event loop, and the thread that it runs in."""

    __slots__ = ("_thread", "loop")

    def __init__(self) -> None:
        from asyncio import get_running_loop

        self.loop: AbstractEventLoop = get_running_loop()
        self._thread = get_ident()

    def is_here(self) -> bool:
        """Return whether this is the thread of the loop."""
        return get_ident() == self._thread

    def is_closed(self) -> bool:
        """Return whether nothing will ever run there again."""
        return self.loop.is_closed()

    def call(self, fn: Callable[[], object]) -> bool:
        """Let the loop call something soon; `False` if it is closed."""
        try:
            if get_ident() == self._thread:
                self.loop.call_soon(fn)
            else:
                self.loop.call_soon_threadsafe(fn)
        except RuntimeError:
            return False
        return True


class LoopWaiter:
    """A task that waits for something."""

    __slots__ = ("_future", "_home")

    def __init__(self, home: LoopReference) -> None:
        self._home = home
        self._future = home.loop.create_future()

    def wake(self) -> None:
        """Let it continue; callable in any thread, and again."""
        if self._home.is_here() and not self._home.is_closed():
            self._settle()
        else:
            self._home.call(self._settle)

    async def wait(self, patience: float | None = None) -> None:
        """Wait until it is woken, or patience ends."""
        if patience is None:
            await self._future
            return
        timer = self._home.loop.call_later(patience, self._settle)
        try:
            await self._future
        finally:
            timer.cancel()

    def _settle(self) -> None:
        if not self._future.done():
            self._future.set_result(None)
