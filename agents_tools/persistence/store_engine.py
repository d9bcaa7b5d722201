"""The threads and the state of a run store in this process.

This is the one implementation of threads, leases and waiting for all kinds of storage.
"""

from __future__ import annotations

import contextlib
import logging
import os
import threading
import weakref
from collections import deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final, TypeVar, cast

from agents_tools.concurrency.future import PendingFuture, batched_wakeups
from agents_tools.errors import (
    EventStoreError,
    LeaseLostError,
)
from agents_tools.events.coalesce import coalesce
from agents_tools.events.envelope import INVALID_ID
from agents_tools.persistence.lease import LeaseHolder
from agents_tools.persistence.rows import DisplayRow
from agents_tools.persistence.storage import (
    AppendRows,
    DeleteLog,
    LogPosition,
    PostMessage,
    ReleaseLease,
    RenewLeases,
    TakeLease,
)
from agents_tools.persistence.write_errors import (
    run_in_use_error,
    stale_lease_error,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.rows import EventRow
    from agents_tools.persistence.storage import (
        LogStorage,
        WriteRequest,
    )

__all__ = ["LogState", "StoreEngine", "close_engine"]

S = TypeVar("S")
T = TypeVar("T")

_BLOCK: Final = 1_024
"""The number of ids that are reserved at a time for events that are not stored."""
_MAX_ROWS: Final = 4_096
_MERGED: Final = 8_192
"""The number of new display events after which the deferred ones of a log are merged.

The stream of the run keeps as many of the same events in memory.
"""
_MAX_BYTES: Final = 16 << 20
_READERS: Final = 4
_GROUP_WAIT: Final = 0.0003
"""How long to wait for as many requests as in the last synced write, in seconds.

A sync takes about as long, so waiting for callers that append again saves syncs.
"""
_CHECK_INTERVAL: Final = 0.5
"""How often waiting readers are checked even if no change was reported, in seconds."""

_id = attrgetter("id")

logger = logging.getLogger("agents_tools")


class LogState:
    """The state of one log in this process.

    Attributes:
        name: The name.
        handles: The number of open handles.
        epoch: The epoch of the lease that this process holds; 0 if it holds none.
        last_id: The id of the last event; up to date with a lease, as the next two.
        reserved: The largest id that an event that is not stored uses.
        block: The largest id that is reserved in the storage.
        unsettled: The largest ids of pending appends.
        session: The session of the run.
        waiting: The futures that wait for an event, with the id that has to be exceeded.
        message_waits: The futures that wait for a message, with the number.
        last_message: The number of the last message that is known.
        failure: The error of the last attempt to take the lease, or of its loss, until the lease
            is taken again.
        is_run: Whether the log is the log of a run, with a lease.
        deferred: The display events that are written together later.
        merge_at: The number of deferred events at which they are merged.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.handles = 0
        self.session: str | None = None
        self.waiting: dict[PendingFuture[int], int] = {}
        self.message_waits: dict[PendingFuture[int], int] = {}
        self.last_message = 0
        self.failure: EventStoreError | None = None
        self.unsettled: dict[object, int] = {}
        self.taking: PendingFuture[LogPosition] | None = None
        self.reset()

    def reset(self) -> None:
        """Forget the log, which was deleted."""
        self.end_lease()
        self.last_id = self.reserved = INVALID_ID
        self.deferred: deque[Event] = deque()
        self.merge_at = _MERGED

    def end_lease(self) -> None:
        """Forget the lease. A closed log still reports its end."""
        self.epoch = 0
        self.block = INVALID_ID
        self.taking = None
        self.is_reserving = self.is_run = False

    def begin(self, position: LogPosition) -> None:
        """Hold the lease from now on."""
        self.failure = None
        self.epoch, self.last_id = position.epoch, position.last_id
        self.block = position.reserved
        self.reserved = max(self.reserved, position.reserved)
        self.last_message = max(self.last_message, position.message)
        self.is_run = position.is_run

    def lose(self, error: EventStoreError) -> None:
        """Forget a lease that another process has taken; appends raise this error."""
        self.end_lease()
        self.failure = error

    @property
    def newest_id(self) -> int:
        """The id of the last event, which can be deferred."""
        try:
            return max(self.deferred[-1].id, self.last_id)
        except IndexError:
            return self.last_id

    @property
    def next_id(self) -> int:
        """The id of the next event, valid with a lease."""
        return max(self.newest_id, self.reserved, *list(self.unsettled.values())) + 1


class _Job:
    """A request with the future of its caller."""

    __slots__ = ("pending", "request", "rows", "size", "state")

    def __init__(
        self,
        request: WriteRequest | None,
        pending: PendingFuture[Any],
        *,
        state: LogState | None = None,
        rows: int = 0,
        size: int = 0,
    ) -> None:
        self.request = request
        self.pending = pending
        self.state = state
        self.rows = rows
        self.size = size


class StoreEngine:
    """The threads and the in-process state of a store.

    Requests are written in order by one thread, several together. If the storage waits for nothing,
    they are written in the thread of the caller.
    """

    def __init__(self, storage: LogStorage, *, keep_display: bool) -> None:
        self.storage = storage
        self.closed = False
        self.keep_display = keep_display
        self._logs: dict[str, LogState] = {}
        self._reset()
        _engines.add(self)

    def _reset(self) -> None:
        self.holder = LeaseHolder.create()
        self._lock = threading.RLock()
        self._write_lock = threading.RLock()
        self._condition = threading.Condition()
        self._jobs: deque[_Job] = deque()
        self._deferring: dict[str, LogState] = {}
        self._writer: threading.Thread | None = None
        self._group_size = 0
        self._notify_at = 1
        self._readers: ThreadPoolExecutor | None = None
        self._watch: threading.Thread | None = None
        self._watch_condition = threading.Condition()
        self._renewer: threading.Thread | None = None
        self._renewer_wake = threading.Event()

    def check_open(self) -> None:
        """Raise `EventStoreError` if the store is closed."""
        if self.closed:
            raise self.closed_error()

    def closed_error(self) -> EventStoreError:
        """Return the error of a closed store."""
        place = self.storage.place
        return EventStoreError(f"The store {place} is closed. Open it again.", store=place)

    def log_state(self, name: str) -> LogState:
        """Return the state of a log, with one more handle."""
        with self._lock:
            state = self._logs.get(name)
            if state is None:
                state = self._logs[name] = LogState(name)
            state.handles += 1
            return state

    def close_log(self, state: LogState) -> None:
        """Remove a handle. The last one releases the lease and fails the waiting futures."""
        with self._lock:
            state.handles -= 1
            if state.handles:
                return
            if self._logs.get(state.name) is state:
                del self._logs[state.name]
            waiting = [*state.waiting, *state.message_waits]
            state.waiting.clear()
            state.message_waits.clear()
        for pending in waiting:
            pending.fail(self._log_closed(state))
        if state.epoch or state.taking is not None:
            released = self.release(state)
            if not self.is_writer_thread:
                with contextlib.suppress(EventStoreError, TimeoutError):
                    released.result(self.storage.lease_ttl)

    def _log_closed(self, state: LogState) -> EventStoreError:
        place = self.storage.place
        return EventStoreError(f"The log {state.name!r} in {place} was closed.", store=place)

    # --- requests

    @property
    def is_writer_thread(self) -> bool:
        """Return whether the caller runs in the writer thread, which must not wait for itself."""
        return self._writer is threading.current_thread()

    def submit(self, request: WriteRequest) -> PendingFuture[Any]:
        """Write a request."""
        pending: PendingFuture[Any] = PendingFuture()
        self._put(_Job(request, pending))
        return pending

    def take(
        self, state: LogState, session: str | None = None, *, is_exclusive: bool = False
    ) -> PendingFuture[LogPosition]:
        """Take the lease of a log, once for all its handles."""
        with self._lock:
            if is_exclusive and (state.epoch or state.taking is not None):
                error = run_in_use_error(state.name, self.storage.place, self.holder)
                return PendingFuture.failed(error)
            if state.epoch:
                return PendingFuture.now(self._own_position(state))
            if state.taking is not None:
                return state.taking
            pending: PendingFuture[LogPosition] = PendingFuture()
            state.taking = pending
            state.session = session or state.session
        request = TakeLease(
            name=state.name,
            holder=self.holder,
            ttl=self.storage.lease_ttl,
            session=state.session,
        )
        self._put(_Job(request, pending, state=state))
        self._start_renewing()
        return pending

    def _own_position(self, state: LogState) -> LogPosition:
        return LogPosition(
            epoch=state.epoch,
            last_id=state.last_id,
            reserved=state.reserved,
            message=state.last_message,
        )

    def release(self, state: LogState) -> PendingFuture[None]:
        """Release the lease of a log, after the pending appends."""
        pending: PendingFuture[None] = PendingFuture()
        self._put(_Job(None, pending, state=state))
        return pending

    def append(
        self,
        state: LogState,
        rows: Sequence[EventRow],
        expected: int | None,
        *,
        sync: bool,
        consumed: Sequence[int],
    ) -> PendingFuture[int]:
        """Append rows, and take the lease before if needed."""
        if not state.epoch:
            if isinstance(state.failure, LeaseLostError):
                return PendingFuture.failed(state.failure)
            self.take(state)
        pending: PendingFuture[int] = PendingFuture()
        request = AppendRows(
            name=state.name,
            epoch=0,  # that of the lease, when the request is written
            rows=rows,
            expected=expected,
            sync=sync,
            consumed=consumed,
        )
        job = _Job(
            request, pending, state=state, rows=len(rows), size=sum(row.size for row in rows)
        )
        if rows and rows[-1].id != INVALID_ID:
            state.unsettled[job] = rows[-1].id
        self._put(job)
        return pending

    def reserve(self, state: LogState, id: int) -> None:
        """Reserve ids up to this one, and more of them ahead."""
        state.reserved = max(state.reserved, id)
        if state.reserved + _BLOCK // 2 > state.block and not state.is_reserving:
            state.is_reserving = True
            self.append(state, (), None, sync=False, consumed=())

    def delete(self, name: str) -> PendingFuture[None]:
        """Delete a log; handles of this store lose their lease."""
        return self.submit(DeleteLog(name=name, holder=self.holder))

    def _put(self, job: _Job) -> None:
        if self.closed:
            job.pending.fail(self.closed_error())
            return
        if self.storage.is_immediate:
            with self._write_lock:
                if job.state is not None and job.state.deferred:
                    self._write_deferred(job.state, ends=_ends_run(job.request))
                self._write([job])
            return
        with self._condition:
            self._jobs.append(job)
            if self._writer is None:
                self._writer = threading.Thread(
                    target=self._run_writer, name="agents-tools-store-writer", daemon=True
                )
                self._writer.start()
            if len(self._jobs) >= self._notify_at:
                self._condition.notify()

    # --- display events

    def defer(self, state: LogState, events: Sequence[Event]) -> bool:
        """Keep display events, and write them together; return whether this is possible.

        A storage in memory loses nothing by this, and clients of the run read its stream. The
        events are merged and written when the store is read, or when other events follow.
        """
        if not state.is_run or not self.storage.is_immediate or state.waiting or not events:
            return False
        for event in events:
            if not event.droppable or event.id < 0:
                return False
        if not state.epoch:
            return False
        state.deferred += events  # without the lock, which a write of another log can hold
        self._deferring[state.name] = state
        if len(state.deferred) >= state.merge_at:
            with self._write_lock:
                merged = self._take_deferred(state)
                state.deferred.extendleft(reversed(merged))
                state.merge_at = 2 * len(merged) + _MERGED
        return True

    def _take_deferred(self, state: LogState) -> list[Event]:
        """Remove and merge the deferred events of a log; other threads add some meanwhile."""
        events = [state.deferred.popleft() for _ in range(len(state.deferred))]
        return sorted(coalesce(events), key=_id)

    def _write_deferred(self, state: LogState, *, ends: bool = False) -> None:
        """Write the deferred events of a log, unless they would be deleted at once.

        Args:
            state: The state of the log.
            ends: Whether its run ends with the next write.
        """
        self._deferring.pop(state.name, None)
        state.merge_at = _MERGED
        if ends and not self.keep_display:
            state.deferred.clear()
            return
        merged = self._take_deferred(state)
        rows = cast("list[EventRow]", [DisplayRow(event) for event in merged])
        if rows:
            request = AppendRows(name=state.name, epoch=0, rows=rows)
            ((job, result),) = self._apply([_Job(request, PendingFuture(), state=state)])
            self._resolve(job, result)

    def _write_all_deferred(self) -> None:
        if self._deferring:
            with self._write_lock:
                for state in list(self._deferring.values()):
                    self._write_deferred(state)

    # --- the writer thread

    def _run_writer(self) -> None:
        while jobs := self._next_jobs():
            self._write(jobs)

    def _next_jobs(self) -> list[_Job]:
        """Wait for jobs; return those to write together, or none after `close`."""
        with self._condition:
            if len(self._jobs) < self._group_size and not self.closed:
                self._notify_at = self._group_size
                self._condition.wait(_GROUP_WAIT)
                self._notify_at = 1
            while not self._jobs and not self.closed:
                self._condition.wait()
            group: list[_Job] = []
            rows = size = 0
            while self._jobs and rows < _MAX_ROWS and size < _MAX_BYTES:
                job = self._jobs[0]
                # A lease has to be there before the appends under it are prepared.
                if group and isinstance(job.request, TakeLease):
                    break
                group.append(self._jobs.popleft())
                rows += job.rows + 1
                size += job.size
                if isinstance(job.request, TakeLease):
                    break
            return group

    def _write(self, jobs: list[_Job]) -> None:
        """Write jobs, and resolve their futures."""
        with self._write_lock:
            done = self._apply(jobs)
        with batched_wakeups():
            for job, result in done:
                self._resolve(job, result)

    def _apply(self, jobs: Sequence[_Job]) -> list[tuple[_Job, Any]]:
        """Write jobs; return them with their results or errors."""
        done: list[tuple[_Job, Any]] = []
        written: list[tuple[_Job, WriteRequest]] = []
        ids: dict[str, int] = {}
        for job in jobs:
            try:
                request = self._prepare(job, ids)
            except Exception as error:  # noqa: BLE001 - raised by the future
                if job.state is not None:
                    job.state.unsettled.pop(job, None)
                done.append((job, error))
                continue
            if request is None:
                done.append((job, None))
            else:
                written.append((job, request))
        is_sync = any(isinstance(one, AppendRows) and one.sync for _, one in written)
        self._group_size = len(jobs) if is_sync else 0
        if written:
            try:
                results = self.storage.write([request for _, request in written])
            except Exception as error:  # noqa: BLE001 - raised by the futures
                results = [error] * len(written)
            for (job, request), result in zip(written, results, strict=True):
                self._update(job, request, result)
                done.append((job, result))
        return done

    def _prepare(self, job: _Job, ids: dict[str, int]) -> WriteRequest | None:
        """Return the request of a job, complete with the state of its log; `None` for no request.

        Args:
            job: The job.
            ids: The last id of each log in the requests that are written before this one. Rows
                with these ids are no repeated ones, whose confirmation was lost.

        Raises:
            EventStoreError: The store does not hold the lease.
        """
        request, state = job.request, job.state
        if state is None:
            return request
        if request is None:
            return self._release_request(state)
        if not isinstance(request, AppendRows):
            return request
        if not state.epoch:
            raise state.failure or self._no_lease(state)
        created = next((row.created for row in request.rows if row.created), None)
        state.is_run = state.is_run or created is not None
        status = next((row.status for row in reversed(request.rows) if row.status), None)
        if not state.is_run:
            status = None
        known_id = max(state.last_id, ids.get(state.name, INVALID_ID))
        ids[state.name] = max(known_id, request.rows[-1].id if request.rows else INVALID_ID)
        return replace(
            request,
            epoch=state.epoch,
            known_id=known_id,
            used=state.reserved,
            reserved=self._block_for(state, request.rows),
            created=created,
            status=status,
            drop_display=status not in {None, "interrupted"} and not self.keep_display,
        )

    def _block_for(self, state: LogState, rows: Sequence[EventRow]) -> int:
        """Return the id up to which ids are reserved: at least half a block ahead of use."""
        if state.reserved == INVALID_ID:
            return INVALID_ID
        used = max(state.reserved, state.last_id, rows[-1].id if rows else INVALID_ID)
        return state.block if used + _BLOCK // 2 <= state.block else used + _BLOCK

    def _release_request(self, state: LogState) -> ReleaseLease | None:
        if not state.epoch:
            return None
        request = ReleaseLease(name=state.name, epoch=state.epoch, reserved=state.reserved)
        state.end_lease()
        return request

    def _no_lease(self, state: LogState) -> LeaseLostError:
        return stale_lease_error(state.name, self.storage.place)

    def _update(self, job: _Job, request: WriteRequest, result: Any) -> None:
        """Update the state of the log of a job."""
        state = job.state
        if isinstance(request, DeleteLog) and not isinstance(result, Exception):
            deleted = self._logs.get(request.name)
            if deleted is not None:
                deleted.reset()
        if state is None:
            return
        state.unsettled.pop(job, None)
        if isinstance(request, TakeLease):
            state.taking = None
            if isinstance(result, LogPosition):
                state.begin(result)
            elif isinstance(result, EventStoreError):
                state.failure = result
        elif isinstance(request, AppendRows):
            state.is_reserving = False
            if isinstance(result, LeaseLostError):
                state.lose(result)
            elif not isinstance(result, Exception):
                state.block = max(state.block, request.reserved)
                state.last_id = max(state.last_id, int(result))

    def _resolve(self, job: _Job, result: Any) -> None:
        """Resolve the future of a job, and those that wait for what it has written."""
        state, request = job.state, job.request
        if isinstance(result, Exception):
            job.pending.fail(result)
            return
        if isinstance(request, AppendRows) and state is not None:
            self._resolve_waits(state.waiting, state.last_id)
            status = next((row.status for row in reversed(request.rows) if row.status), None)
            if status is not None and state.is_run:
                state.end_lease()
        elif isinstance(request, PostMessage):
            receiver = self._logs.get(request.name)
            if receiver is not None:
                receiver.last_message = max(receiver.last_message, result)
                self._resolve_waits(receiver.message_waits, receiver.last_message)
        job.pending.resolve(result)

    # --- reads

    def submit_read(self, read: Callable[[], T]) -> PendingFuture[T]:
        """Read in a thread; in the thread of the caller if the storage waits for nothing."""
        if self.closed:
            return PendingFuture.failed(self.closed_error())
        if self.storage.is_immediate:
            self._write_all_deferred()
            try:
                return PendingFuture.now(read())
            except Exception as error:  # noqa: BLE001 - raised by the future
                return PendingFuture.failed(error)
        with self._lock:
            if self._readers is None:
                self._readers = ThreadPoolExecutor(_READERS, "agents-tools-store-reader")
            readers = self._readers
        try:
            return PendingFuture(readers.submit(read))
        except RuntimeError:  # closed concurrently, or the interpreter is shutting down
            return PendingFuture.failed(self.closed_error())

    def read_here(self, read: Callable[[], T]) -> T:
        """Read in the thread of the caller."""
        self.check_open()
        self._write_all_deferred()
        return read()

    def chain(
        self, begin: Callable[[], PendingFuture[S]], finish: Callable[[S], T]
    ) -> PendingFuture[T]:
        """Return a future with the result of a future that a read returns."""
        done: PendingFuture[T] = PendingFuture()

        def end(pending: PendingFuture[S]) -> None:
            try:
                done.resolve(finish(pending.result()))
            except BaseException as error:  # noqa: BLE001 - raised by the future
                done.fail(error)

        def begun(pending: PendingFuture[PendingFuture[S]]) -> None:
            try:
                pending.result().add_done_callback(end)
            except BaseException as error:  # noqa: BLE001 - raised by the future
                done.fail(error)

        self.submit_read(begin).add_done_callback(begun)
        return done

    # --- waiting

    def wait(self, state: LogState, after: int, *, is_message: bool) -> PendingFuture[int]:
        """Wait for an event or a message with a larger number."""
        self._write_all_deferred()
        waits = state.message_waits if is_message else state.waiting
        pending: PendingFuture[int] = PendingFuture(on_cancel=lambda: waits.pop(pending, None))
        with self._lock:
            known = state.last_message if is_message else state.last_id
            if state.epoch and known > after:
                return PendingFuture.now(known)
            waits[pending] = after
        if self.storage.is_immediate:
            self._check_waits([state])
        elif is_message or not state.epoch:
            self._start_watching()
            self.submit_read(partial(self._check_waits, [state]))
        if self.closed:
            pending.fail(self.closed_error())
        return pending

    def _resolve_waits(self, waits: dict[PendingFuture[int], int], last: int) -> None:
        if not waits:
            return
        with self._lock:
            due = [pending for pending, after in waits.items() if last > after]
            for pending in due:
                waits.pop(pending, None)
        for pending in due:
            pending.resolve(last)

    def _watched(self) -> list[LogState]:
        with self._lock:
            return [
                state
                for state in self._logs.values()
                if state.message_waits or (state.waiting and not state.epoch)
            ]

    def _check_waits(self, states: Sequence[LogState]) -> None:
        """Resolve the futures whose events or messages another store has written."""
        if not states:
            return
        try:
            found = self.storage.positions([state.name for state in states])
        except EventStoreError as error:
            for state in states:
                self._fail_waits(state, error)
            return
        for state in states:
            position = found.get(state.name)
            if position is not None:
                state.last_message = max(state.last_message, position.message)
                self._resolve_waits(state.message_waits, state.last_message)
                if not state.epoch:
                    self._resolve_waits(state.waiting, position.last_id)

    def _fail_waits(self, state: LogState, error: Exception) -> None:
        with self._lock:
            waiting = [*state.waiting, *state.message_waits]
            state.waiting.clear()
            state.message_waits.clear()
        for pending in waiting:
            pending.fail(error)

    def _start_watching(self) -> None:
        with self._watch_condition:
            if self.closed:
                return
            if self._watch is None:
                self._watch = threading.Thread(
                    target=self._run_watch, name="agents-tools-store-watch", daemon=True
                )
                self._watch.start()
            self._watch_condition.notify()

    def _run_watch(self) -> None:
        while self._has_waits():
            self._check_waits(self._watched())
            if not self._watched():
                continue
            try:
                self.storage.wait_for_change(_CHECK_INTERVAL)
            except EventStoreError as error:
                for state in self._watched():
                    self._fail_waits(state, error)

    def _has_waits(self) -> bool:
        """Wait until a future waits for another process; return `False` if the store is closed."""
        with self._watch_condition:
            while not self.closed and not self._watched():
                self._watch_condition.wait()
            return not self.closed

    # --- leases

    def _start_renewing(self) -> None:
        if self.storage.is_immediate:
            return
        with self._lock:
            if self._renewer is None and not self.closed:
                self._renewer = threading.Thread(
                    target=self._run_renewer, name="agents-tools-store-leases", daemon=True
                )
                self._renewer.start()

    def _run_renewer(self) -> None:
        while not self._renewer_wake.wait(self.storage.lease_ttl / 3) and not self.closed:
            with self._lock:
                leases = {state.name: state.epoch for state in self._logs.values() if state.epoch}
            if leases:
                self._renew(leases)

    def renew(self, state: LogState) -> PendingFuture[bool]:
        """Renew the lease of a log; the future tells whether this store still holds it."""
        if not state.epoch:
            return PendingFuture.now(False)
        leases = {state.name: state.epoch}
        return self.chain(lambda: self._renew(leases), lambda lost: state.name not in lost)

    def _renew(self, leases: Mapping[str, int]) -> PendingFuture[Any]:
        renewed = self.submit(RenewLeases(leases=leases, ttl=self.storage.lease_ttl))
        renewed.add_done_callback(self._renewed)
        return renewed

    def _renewed(self, pending: PendingFuture[Any]) -> None:
        error = pending.error()
        if error is not None:
            logger.warning("The leases of %s were not renewed: %s", self.storage.place, error)
            return
        for name in pending.result():
            state = self._logs.get(name)
            if state is not None and state.epoch:
                state.lose(self._no_lease(state))

    # --- closing

    def close(self) -> None:
        """Write what is pending, release the leases and end the threads."""
        with self._lock:
            if self.closed:
                return
            states = list(self._logs.values())
        for state in states:
            if state.epoch or state.taking is not None:
                self.release(state)
        with self._condition, self._watch_condition:
            self.closed = True
            self._condition.notify_all()
            self._watch_condition.notify_all()
        self._renewer_wake.set()
        self.storage.wake()
        _engines.discard(self)
        for thread in (self._writer, self._watch, self._renewer):
            if thread is not None and thread is not threading.current_thread():
                thread.join()
        if self._readers is not None:
            here = threading.current_thread().name.startswith("agents-tools-store-reader")
            self._readers.shutdown(wait=not here)
        self.storage.close()
        for state in states:
            self._fail_waits(state, self.closed_error())

    def after_fork(self) -> None:
        """Reset in a forked child, which has neither the threads nor the leases."""
        self.storage.after_fork()
        self._reset()
        for state in self._logs.values():
            state.reset()
            state.waiting.clear()
            state.message_waits.clear()


def _ends_run(request: WriteRequest | None) -> bool:
    """Return whether a request ends its run, so that it does not wait for a person either."""
    return isinstance(request, AppendRows) and any(
        row.status not in {None, "interrupted"} for row in request.rows
    )


def close_engine(engine: StoreEngine) -> None:
    """Close a store. A finalizer can run in a thread of the store, which must not join others."""
    if threading.current_thread().name.startswith("agents-tools-store"):
        threading.Thread(target=engine.close, name="agents-tools-close", daemon=True).start()
    else:
        engine.close()


_engines: Final[weakref.WeakSet[StoreEngine]] = weakref.WeakSet()


def _after_fork() -> None:
    for engine in list(_engines):
        engine.after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
