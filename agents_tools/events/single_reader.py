"""The part of event sources that wakes their reading task."""

from __future__ import annotations

from threading import RLock

from agents_tools.concurrency.future import PendingFuture, running_loop
from agents_tools.errors import UserError

__all__ = ["SingleReader", "yield_to_event_loop"]


class SingleReader:
    """Base of classes with one reading task, which writers in any thread wake."""

    def __init__(self) -> None:
        # Reentrant: a finalizer or a signal handler can interrupt this code and emit an event.
        self._lock = RLock()
        self._reader: PendingFuture[None] | None = None

    def _is_ready(self) -> bool:
        """Return whether the reader can continue: there is an event, or the source is closed."""
        raise NotImplementedError

    async def _wait_until_ready(self) -> None:
        if self._reader is not None and self._reader.can_be_set():
            raise UserError(
                "Two tasks read the same events: expected one reader, because each event goes to "
                "one reader only. Read in one task and pass the events on from there.",
            )
        reader = self._reader = PendingFuture(loop=running_loop())
        try:
            # Checked after the reader is registered: an event that comes before this line is seen
            # here, and the writer of a later one sees the reader.
            with self._lock:
                is_ready = self._is_ready()
            if not is_ready:
                await reader
        finally:
            if self._reader is reader:
                self._reader = None

    def _wake_reader(self) -> None:
        with self._lock:
            reader, self._reader = self._reader, None
        if reader is not None:
            reader.resolve(None)


async def yield_to_event_loop() -> None:
    """Let the other tasks of the event loop run once."""
    from asyncio import sleep

    await sleep(0)
