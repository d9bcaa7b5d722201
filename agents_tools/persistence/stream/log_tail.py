"""Follow a log that another process or stream writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.persistence.stream.log import PAGE

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore, PendingFuture

__all__ = ["LogTail"]


class LogTail:
    """Passes on new events of a store. It uses callbacks of futures, so it needs no thread or task.

    Args:
        store: The store.
        after: The id after which it begins.
        receive: A weak reference to the function that receives the events.
        fail: A weak reference to the function that receives the error when reading fails.
    """

    def __init__(
        self,
        store: EventStore,
        after: int,
        receive: Callable[[], Callable[[list[Event]], None] | None],
        fail: Callable[[], Callable[[Exception], None] | None],
    ) -> None:
        self._store = store
        self._after = after
        self._get_receive = receive
        self._get_fail = fail
        self._steps = self._follow()
        self._waiting: PendingFuture[Any] | None = None
        self._is_stopped = False

    def start(self) -> None:
        """Start to follow the log."""
        self._advance(None)

    def stop(self) -> None:
        """Stop following the log."""
        self._is_stopped = True
        if self._waiting is not None:
            self._waiting.cancel()

    def _follow(self) -> Generator[PendingFuture[Any], Any, None]:
        """Yield the futures to wait for, and pass on the events that were read."""
        while True:
            newest: int = yield self._store.wait(self._after)
            events: list[Event] = yield self._store.read(self._after, limit=PAGE)
            receive = self._get_receive()
            if receive is None:  # the stream does not exist any more
                return
            if events:
                receive(events)
            # Without events, the new ones were deleted meanwhile: do not wait for them again.
            self._after = events[-1].id if events else max(newest, self._after)

    def _advance(self, done: PendingFuture[Any] | None) -> None:
        while not self._is_stopped:
            error = done.error() if done else None
            if error is not None:
                self._fail(error)
                return
            done = next(self._steps, None) if done is None else self._next(done.result())
            if done is None:
                return
            self._waiting = done
            if not done.done():
                done.add_done_callback(self._advance)
                return

    def _next(self, result: Any) -> PendingFuture[Any] | None:
        try:
            return self._steps.send(result)
        except StopIteration:
            return None

    def _fail(self, error: BaseException) -> None:
        fail = self._get_fail()
        if fail is not None and isinstance(error, Exception):
            fail(error)
