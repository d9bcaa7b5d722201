"""Reads along with a log that somebody else writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.stream._log import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agents_tools.events import Event
    from agents_tools.store import EventStore, Pending

__all__ = ["Feed"]


class Feed:
    """Waits for what is new in a store, and hands it over; nothing runs meanwhile.

    Args:
        store: The store.
        after: The id after which it begins.
        take: Gives what takes the events, as long as that is there.
        end: Gives what takes the reason why there will be no more, likewise.
    """

    def __init__(
        self,
        store: EventStore,
        after: int,
        take: Callable[[], Callable[[list[Event]], None] | None],
        end: Callable[[], Callable[[Exception], None] | None],
    ) -> None:
        self._store = store
        self._after = after
        self._take = take
        self._end = end
        self._steps = self._follow()
        self._waiting: Pending[Any] | None = None
        self._stopped = False

    def start(self) -> None:
        """Begin to read along."""
        self._go_on(None)

    def stop(self) -> None:
        """Read no more."""
        self._stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _follow(self) -> Generator[Pending[Any], Any, None]:
        """Say what to wait for next."""
        while True:
            newest: int = yield self._store.wait(self._after)
            events: list[Event] = yield self._store.read(self._after, limit=PAGE)
            take = self._take()
            if take is None:  # nobody is there any more
                return
            if events:
                take(events)
            # Where there is nothing, what there was has been deleted: it is not waited for again.
            self._after = events[-1].id if events else max(newest, self._after)

    def _go_on(self, done: Pending[Any] | None) -> None:
        while not self._stopped:
            error = done.error() if done else None
            if error is not None:
                self._fail(error)
                return
            done = next(self._steps, None) if done is None else self._next(done.result())
            if done is None:
                return
            self._waiting = done
            if not done.done():
                done.add_done_callback(self._go_on)
                return

    def _next(self, result: Any) -> Pending[Any] | None:
        try:
            return self._steps.send(result)
        except StopIteration:
            return None

    def _fail(self, error: BaseException) -> None:
        end = self._end()
        if end is not None and isinstance(error, Exception):
            end(error)
