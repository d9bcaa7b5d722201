"""Hand durable events to a store, in order, without making anybody wait."""

from __future__ import annotations

from collections import deque
from functools import partial
from threading import RLock
from typing import TYPE_CHECKING, Final

from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events import (
    ActionEvent,
    Event,
    MessageEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
)
from agents_tools.store import Pending

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.store import Durability, EventStore

__all__ = ["Saver"]

_BATCH: Final = 512
"""How many events are handed over at once."""


class Saver:
    """What is on its way into the store.

    One batch is under way at a time; what comes meanwhile is the next one. A batch that the store
    had no room for stays first in line and is tried again: with `flush`, and now and then.

    Args:
        store: The store.
        report: Gets what went wrong, with the event that it went wrong with.
    """

    def __init__(
        self, store: EventStore, report: Callable[[Exception, Event | None], None]
    ) -> None:
        self._store = store
        self._report = report
        self._lock = RLock()  # reentrant: a finalizer may publish in here
        self._unsaved: deque[Event] = deque()
        self._busy = False
        self._pause = 0  # how many events have to wait before a failed store is tried again
        self._singly = 0  # how many of the next events are handed over one by one
        self._lost: Exception | None = None  # why something will never be stored
        self._broken: EventConflictError | None = None
        self._flushing: list[tuple[Event, Pending[None]]] = []

    def add(self, event: Event) -> None:
        """Put an event in line; under the lock of the log, so that the line is in order."""
        if self._broken is None:
            self._unsaved.append(event)

    def unsaved(self) -> list[Event]:
        """Give what is not in the store yet."""
        while True:
            try:
                return list(self._unsaved)
            except RuntimeError:  # another thread has just put something in line
                continue

    def go(self) -> None:
        """Begin to hand over what is in line; called outside of every lock."""
        while batch := self._claim():
            try:
                pending = self._store.append(batch, durability=_durability(batch))
            except Exception as error:  # noqa: BLE001 - whoever flushes gets it
                pending = Pending.failed(error)
            if not pending.done():
                pending.add_done_callback(partial(self._settled, batch))
                return
            self._settle(batch, pending.error())

    def flush(self) -> Pending[None]:
        """Give what is done when everything that is in line now is stored."""
        with self._lock:
            lost, self._lost = self._lost, None
            error = self._broken or lost
            if error is not None:
                return Pending.failed(error)
            if not self._unsaved:
                return Pending.now(None)
            done: Pending[None] = Pending()
            self._flushing.append((self._unsaved[-1], done))
            self._pause = 0
        self.go()
        return done

    def after_fork(self) -> None:
        """Start anew in a child: what is on its way is stored by the parent."""
        self._lock = RLock()
        self._unsaved.clear()
        self._flushing = []
        self._busy = False

    def _claim(self) -> list[Event]:
        with self._lock:
            count = len(self._unsaved)
            if self._busy or not count or count < self._pause:
                return []
            self._busy = True
            # By index: other threads append meanwhile, and an iterator would not bear that.
            return [self._unsaved[n] for n in range(1 if self._singly else min(count, _BATCH))]

    def _settled(self, batch: list[Event], pending: Pending[int]) -> None:
        self._settle(batch, pending.error())
        self.go()

    def _settle(self, batch: list[Event], error: BaseException | None) -> None:
        reported: Event | None = None
        with self._lock:
            self._busy = False
            failure = error if isinstance(error, Exception) else None
            if error is None:
                done = self._take_off(batch)
            elif isinstance(error, EventConflictError):
                self._broken = error
                self._unsaved.clear()
                done, self._flushing = [one for _, one in self._flushing], []
            elif isinstance(error, EventStoreError):
                self._pause = 2 * len(self._unsaved)
                done, self._flushing = [one for _, one in self._flushing], []
            elif len(batch) > 1:  # one of them has no place in any store: find out which
                self._singly = len(batch)
                return
            else:
                self._lost = failure
                reported = batch[0]
                done = self._take_off(batch)
        if failure is not None:
            self._report(failure, reported)
        for pending in done:
            if failure is None:
                pending.resolve(None)
            else:
                pending.fail(failure)

    def _take_off(self, batch: list[Event]) -> list[Pending[None]]:
        """Take what is done out of the line, and give those who waited for it."""
        for _ in batch:
            self._unsaved.popleft()
        self._singly = max(0, self._singly - len(batch))
        self._pause = 0
        last = batch[-1].id
        done = [one for event, one in self._flushing if event.id <= last]
        self._flushing = [(event, one) for event, one in self._flushing if event.id > last]
        return done


def _durability(batch: list[Event]) -> Durability:
    return "sync" if any(map(_is_grave, batch)) else "normal"


def _is_grave(event: Event) -> bool:
    """Whether somebody relies on it having been heard: what people say, decide and are told."""
    match event:
        case MessageEvent(role="user"):
            return True
        case RunItemStreamEvent(name=name):
            return name.startswith("tool_approval")
        case ActionEvent(kind=kind):
            return kind == "AgentFinishAction"
        case RunFinishedEvent():
            return not event.path
        case _:
            return False
