"""Write durable events to a store in order, in the background."""

from __future__ import annotations

from collections import deque
from contextlib import contextmanager
from functools import partial
from operator import attrgetter
from threading import RLock
from typing import TYPE_CHECKING, cast

from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events.coalesce import coalesce
from agents_tools.events.kinds import (
    ActionEvent,
    MessageEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
)
from agents_tools.persistence import PendingFuture
from agents_tools.persistence.stored_log import StoredLog

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

    from agents_tools.events.base import Event
    from agents_tools.persistence import Durability, EventStore

__all__ = ["LogWriter"]

_id = attrgetter("id")


class LogWriter:
    """The queue of events that are not in the store yet.

    One batch is written at a time; events that come meanwhile are in the next batch. When the store
    fails, the batch stays first in the queue. It is tried again at the next `flush`, or when the
    queue has doubled.

    Args:
        store: The store.
        report: Called with an error and the event that caused it, if it is known.
        merges_deltas: Whether neighbouring deltas of a text are written as one.
    """

    def __init__(
        self,
        store: EventStore,
        report: Callable[[Exception, Event | None], None],
        *,
        merges_deltas: bool = False,
    ) -> None:
        self._store = store
        self._report = report
        self._merges_deltas = merges_deltas
        # Only the log of a run can leave its display events to the store.
        self._defer = store.defer if merges_deltas and isinstance(store, StoredLog) else None
        self._lock = RLock()  # reentrant: a finalizer can publish while it is held
        self._unsaved: deque[Event] = deque()
        self._is_writing = False
        self._retry_at = 0  # queue length at which a failed store is tried again
        self._single_writes = 0  # the number of next events that are written one by one
        self._rejection: Exception | None = None  # why an event can never be stored
        self._conflict: EventConflictError | None = None
        self._flushing: list[tuple[Event, PendingFuture[None]]] = []
        self._groups = 0  # the number of open groups
        self._group_start = 0  # the length of the queue when the first group was opened
        self._consuming: list[int] = []  # the messages that the next event consumes
        self._consumed: dict[int, list[int]] = {}  # the messages that events consume, by their id

    @contextmanager
    def group(self) -> Generator[None]:
        """Write the events that are added in the block together, all or none."""
        with self._lock:
            if not self._groups:
                self._group_start = len(self._unsaved)
            self._groups += 1
        try:
            yield
        finally:
            with self._lock:
                self._groups -= 1

    def consume(self, number: int) -> None:
        """Delete a message to the run of the log with the next event that is added."""
        self._consuming.append(number)

    def add(self, event: Event) -> None:
        """Queue an event. The caller holds the lock of the log, so that the order is right."""
        if self._conflict is None:
            if self._consuming:
                self._consumed[event.id], self._consuming = self._consuming, []
            self._unsaved.append(event)

    def unsaved(self) -> list[Event]:
        """Return the events that are not in the store yet."""
        while True:
            try:
                return list(self._unsaved)
            except RuntimeError:  # another thread has queued an event meanwhile
                continue

    def write(self) -> None:
        """Start to write the queued events. The caller holds no lock."""
        if self._defer is not None and self._defer_display():
            return
        while batch := self._next_batch():
            try:
                pending = self._append(batch)
            except Exception as error:  # noqa: BLE001 - raised by `flush`
                pending = PendingFuture.failed(error)
            if not pending.done():
                pending.add_done_callback(partial(self._on_appended, batch))
                return
            self._finish(batch, pending.error())

    def _defer_display(self) -> bool:
        """Leave queued display events to the store, which writes them together."""
        with self._lock:
            if self._is_writing or self._groups or self._consumed or self._flushing:
                return False
            events = [self._unsaved[n] for n in range(len(self._unsaved))]
            if self._defer is None or not self._defer(events):
                return False
            for _ in events:
                self._unsaved.popleft()
            return True

    def _append(self, batch: list[Event]) -> PendingFuture[int]:
        consumed = (
            [number for event in batch for number in self._consumed.get(event.id, ())]
            if self._consumed
            else []
        )
        if self._merges_deltas and len(batch) > 1:
            batch = sorted(coalesce(batch), key=_id)
        if not consumed:
            return self._store.append(batch, durability=_durability(batch))
        return cast("StoredLog", self._store).append(
            batch, durability=_durability(batch), consumed=consumed
        )

    def flush(self) -> PendingFuture[None]:
        """Return a future that is done when the events queued now are stored."""
        with self._lock:
            rejection, self._rejection = self._rejection, None
            error = self._conflict or rejection
            if error is not None:
                return PendingFuture.failed(error)
            if not self._unsaved:
                return PendingFuture.now(None)
            done: PendingFuture[None] = PendingFuture()
            self._flushing.append((self._unsaved[-1], done))
            self._retry_at = 0
        self.write()
        return done

    def after_fork(self) -> None:
        """Reset in a forked child. The parent stores the queued events."""
        self._lock = RLock()
        self._unsaved.clear()
        self._flushing = []
        self._is_writing = False

    def _next_batch(self) -> list[Event]:
        with self._lock:
            count = self._group_start if self._groups else len(self._unsaved)
            if self._is_writing or not count or count < self._retry_at:
                return []
            self._is_writing = True
            # By index, because other threads append meanwhile and an iterator would fail.
            return [self._unsaved[n] for n in range(1 if self._single_writes else count)]

    def _on_appended(self, batch: list[Event], pending: PendingFuture[int]) -> None:
        self._finish(batch, pending.error())
        self.write()

    def _finish(self, batch: list[Event], error: BaseException | None) -> None:
        reported: Event | None = None
        with self._lock:
            self._is_writing = False
            failure = error if isinstance(error, Exception) else None
            if error is None:
                done = self._remove(batch)
            elif isinstance(error, EventConflictError):
                self._conflict = error
                self._unsaved.clear()
                done, self._flushing = [one for _, one in self._flushing], []
            elif isinstance(error, EventStoreError):
                self._retry_at = 2 * len(self._unsaved)
                done, self._flushing = [one for _, one in self._flushing], []
            elif len(batch) > 1:  # one event cannot be stored: write them one by one to find it
                self._single_writes = len(batch)
                return
            else:
                self._rejection = failure
                reported = batch[0]
                done = self._remove(batch)
        if failure is not None:
            self._report(failure, reported)
        for pending in done:
            if failure is None:
                pending.resolve(None)
            else:
                pending.fail(failure)

    def _remove(self, batch: list[Event]) -> list[PendingFuture[None]]:
        """Remove written events from the queue and return the flushes that are done."""
        for event in batch:
            self._unsaved.popleft()
            self._consumed.pop(event.id, None)
        self._group_start = max(0, self._group_start - len(batch))
        self._single_writes = max(0, self._single_writes - len(batch))
        self._retry_at = 0
        last = batch[-1].id
        done = [one for event, one in self._flushing if event.id <= last]
        self._flushing = [(event, one) for event, one in self._flushing if event.id > last]
        return done


def _durability(batch: list[Event]) -> Durability:
    return "sync" if any(map(_needs_sync, batch)) else "normal"


def _needs_sync(event: Event) -> bool:
    """Return whether an event must survive a power failure.

    These are user messages, approvals, and the end of a run.
    """
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
