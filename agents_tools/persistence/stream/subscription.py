"""Call callbacks with the events of a stream, one event after the other."""

from __future__ import annotations

import inspect
from contextvars import ContextVar, copy_context
from threading import Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agents_tools.concurrency.bridge import call_async_from_sync
from agents_tools.concurrency.future import LoopReference, running_loop
from agents_tools.persistence import PendingFuture

if TYPE_CHECKING:
    import weakref
    from asyncio import Task
    from collections.abc import Callable

    from agents_tools.events.base import Event
    from agents_tools.persistence.stream.log import Cursor, EventLog

__all__ = [
    "SubscriberReports",
    "Subscription",
    "TaskSubscription",
    "ThreadSubscription",
    "current_subscription",
    "is_async",
]

_IDLE_TIMEOUT: Final = 1.0
"""How long the thread of a subscription waits for the next event before it ends, in seconds."""

_CALLBACK_TIMEOUT: Final = 1.0
"""How long `unsubscribe` waits for a callback that is running in another thread, in seconds."""

_LOOP_TIMEOUT: Final = 0.05
"""The same when `unsubscribe` blocks an event loop."""

_current: ContextVar[Subscription | None] = ContextVar("agents_tools_subscription", default=None)


class SubscriberReports(NamedTuple):
    """The callbacks of a subscription into its stream, while the stream exists."""

    on_failure: weakref.WeakMethod[Callable[[Subscription, Exception, Event | None], None]]
    on_detached: weakref.WeakMethod[Callable[[Subscription, str], None]]

    def report_failure(
        self, subscription: Subscription, error: Exception, event: Event | None
    ) -> None:
        """Report that the callback raised, or that events could not be read."""
        callback = self.on_failure()
        if callback is not None:
            callback(subscription, error, event)

    def report_end(self, subscription: Subscription, why: str) -> None:
        """Report that the subscription ended without `unsubscribe`."""
        callback = self.on_detached()
        if callback is not None:
            callback(subscription, why)


class Subscription:
    """A callback that gets the events of a stream.

    Attributes:
        subscriber_id: The id of the subscriber.
        callback_id: The id of the callback, unique for its subscriber.
        failures: The number of failures of the callback in a row.
    """

    def __init__(
        self,
        subscriber_id: str,
        callback_id: str,
        callback: Callable[[Event], Any],
        cursor: Cursor,
        reports: SubscriberReports,
        max_failures: int,
    ) -> None:
        self.subscriber_id = subscriber_id
        self.callback_id = callback_id
        self.failures = 0
        self.rank: tuple[int, str, str] = (0, subscriber_id, callback_id)
        self.drained: PendingFuture[None] = PendingFuture()
        self._callback = callback
        self._cursor = cursor
        self._log: EventLog = cursor.log
        self._reports = reports
        self._max_failures = max_failures
        self._active = True
        self._callback_lock = Lock()
        self._callback_thread: object = None  # the thread that is in the callback
        cursor.start(self)

    @property
    def active(self) -> bool:
        """Return whether the callback gets events."""
        return self._active

    @property
    def name(self) -> str:
        """The name of the subscription in reports."""
        return f"{self.subscriber_id}/{self.callback_id}"

    def begin(self) -> None:
        """Start to deliver existing and future events."""
        with self._log.lock:
            if self._cursor.at >= self._log.next_id and not self._log.closed:
                self._log.waiting[self] = None
                return
        self.wake()

    def stop(self, *, wait: bool = True) -> None:
        """Stop delivery, and wait for a running callback, but for a second at most."""
        self._active = False
        self._cursor.leave()
        with self._log.lock:
            is_waiting = self._log.waiting.pop(self, self) is None
        if is_waiting:
            self.retire()
        if wait:
            self._wait_for_callback()

    def retire(self) -> None:
        """End a subscription that waits for events, because none will come."""
        self._finish()

    def wake(self) -> None:
        """Continue to read."""
        raise NotImplementedError

    def is_inside(self) -> bool:
        """Return whether the caller runs inside the callback."""
        return _current.get() is self

    def is_dead(self) -> bool:
        """Return whether the callback can never be called again."""
        return False

    def after_fork(self) -> bool:
        """Reset in a forked child; return whether the subscription waits for events there."""
        self._active = False  # its task runs in the parent process
        return False

    # --- for subclasses ---------------------------------------------------------------------------

    def _pause(self) -> bool:
        """Register as waiting, or end; return `False` if there are events to read."""
        with self._log.lock:
            if self._log.next_id > self._cursor.at and self._active:
                return False
            if self._active and not self._log.closed:
                self._log.waiting[self] = None
                return True
        self._finish()
        return True

    def _finish(self) -> None:
        """End the subscription: it was stopped, or all published events were delivered."""
        self._cursor.leave()
        self.drained.resolve(None)

    def _record_failure(self, error: BaseException, event: Event | None) -> None:
        if not isinstance(error, Exception):  # SystemExit or the cancellation of an inner task
            error = RuntimeError(f"The callback raised {error!r}, which is not an Exception.")
        self.failures += 1
        self._reports.report_failure(self, error, event)
        if self.failures >= self._max_failures and self._active:
            self._active = False
            self._reports.report_end(self, f"it failed {self.failures} times in a row")

    def _wait_for_callback(self) -> None:
        raise NotImplementedError


class ThreadSubscription(Subscription):
    """A subscription with a sync callback, called in a thread that ends when it is idle."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._context = copy_context()
        self._wakeup = Lock()
        self._wakeup.acquire()
        self._has_ended = True  # whether there is no thread; protected by the lock of the log

    def after_fork(self) -> bool:
        """Forget the thread, which does not exist in the child, unless it has forked itself."""
        if self._callback_thread is current_thread():
            return False
        self._callback_lock, self._wakeup, self._callback_thread = Lock(), Lock(), None
        self._wakeup.acquire()
        self._has_ended = True
        return self._active

    def wake(self) -> None:
        """Wake the thread, or start one."""
        if not self._has_ended:
            self._wakeup.release()
            return
        self._has_ended = False
        thread = Thread(target=self._work, name=f"events-{self.name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no thread can be started: try again at the next event
            self._reports.report_failure(self, error, None)
            with self._log.lock:
                self._has_ended = True
                self._log.waiting[self] = None

    def retire(self) -> None:
        """End the subscription and its waiting thread."""
        if self._has_ended:
            self._finish()
        else:
            self._wakeup.release()

    def _work(self) -> None:
        self._context.run(_current.set, self)
        while True:
            try:
                events = self._cursor.take() if self._active else []
                if isinstance(events, PendingFuture):
                    events = events.result()
                    self._cursor.clear_pending()
            except Exception as error:  # noqa: BLE001 - the store cannot be read
                self._reports.report_failure(self, error, None)
                self._active = False
                self._reports.report_end(self, "its next events cannot be read")
                continue
            for event in events:
                if not self._deliver(event):
                    break
            if not events and self._pause() and not self._wait_for_wakeup():
                return

    def _wait_for_wakeup(self) -> bool:
        """Wait to be woken; return `False` if this thread has to end."""
        if self.drained.done():
            return False
        if self._wakeup.acquire(timeout=_IDLE_TIMEOUT):
            return True
        with self._log.lock:
            if self in self._log.waiting:
                self._has_ended = True
                return False
        return self._wakeup.acquire()  # another thread is about to wake this one

    def _deliver(self, event: Event) -> bool:
        with self._callback_lock:
            if not self._active:
                return False
            self._callback_thread = current_thread()
            try:
                self._context.run(self._call, event)
                self.failures = 0
            except BaseException as error:  # noqa: BLE001 - an error of the callback must not end the thread
                self._record_failure(error, event)
            finally:
                self._callback_thread = None
        self._cursor.advance(event.id)
        return self._active

    def _call(self, event: Event) -> None:
        result = self._callback(event)
        if inspect.isawaitable(result):
            call_async_from_sync(_await_result, result)

    def _wait_for_callback(self) -> None:
        if self._callback_thread is current_thread() or self.is_inside():
            return
        patience = _LOOP_TIMEOUT if running_loop() is not None else _CALLBACK_TIMEOUT
        if self._callback_lock.acquire(timeout=patience):
            self._callback_lock.release()


class TaskSubscription(Subscription):
    """A subscription with an async callback, called on the event loop of `subscribe`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._loop = LoopReference()
        self._task: Task[None] | None = None
        self._cursor.is_dead = self._loop.is_closed

    @property
    def loop_reference(self) -> LoopReference:
        """The event loop on which the callback runs."""
        return self._loop

    def is_dead(self) -> bool:
        """Return whether its loop is closed."""
        return self._loop.is_closed()

    def wake(self) -> None:
        """Start a task that continues to read."""
        if self._loop.call(self._start):
            return
        self._give_up("its event loop is closed")

    def _give_up(self, why: str) -> None:
        self._active = False
        self._reports.report_end(self, why)
        self._finish()

    def _start(self) -> None:
        self._task = self._loop.loop.create_task(self._work(), name=f"events-{self.name}")
        self._task.add_done_callback(self._on_task_done)

    def _on_task_done(self, task: Task[None]) -> None:
        """End the subscription if the task was cancelled before it began to run."""
        if self._task is task:
            self._task = None
            self._give_up("its task was cancelled")

    async def _work(self) -> None:
        _current.set(self)
        try:
            while True:
                events = self._cursor.take() if self._active else []
                if isinstance(events, PendingFuture):
                    events = await events
                    self._cursor.clear_pending()
                for event in events:
                    if not self._active:
                        break
                    await self._deliver(event)
                if not events and self._pause():
                    return
        except Exception as error:  # noqa: BLE001 - the store cannot be read
            self._reports.report_failure(self, error, None)
            self._give_up("its next events cannot be read")
        except BaseException:
            self._give_up("its task was cancelled")
            raise
        finally:
            self._task = None

    async def _deliver(self, event: Event) -> None:
        from asyncio import CancelledError

        try:
            await self._callback(event)
            self.failures = 0
        except CancelledError as error:
            if self._task is None or self._task.cancelling():
                raise
            self._record_failure(error, event)
        except Exception as error:  # noqa: BLE001 - reported; delivery continues
            self._record_failure(error, event)
        self._cursor.advance(event.id)

    def _wait_for_callback(self) -> None:
        """Wait for one turn of the loop, which can be about to call the callback."""
        loop = self._loop
        if loop.is_here() or not loop.loop.is_running():
            return
        turn: PendingFuture[None] = PendingFuture()
        if loop.call(lambda: turn.resolve(None)):
            patience = _LOOP_TIMEOUT if running_loop() is not None else _CALLBACK_TIMEOUT
            turn.wait_in_thread(patience)


def current_subscription() -> Subscription | None:
    """Return the subscription whose callback is running; `None` outside of callbacks."""
    return _current.get()


def is_async(callback: Callable[..., Any]) -> bool:
    """Return whether a call returns a coroutine."""
    call = getattr(callback, "__call__", None)  # noqa: B004 - `__call__` can be async
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(call)


async def _await_result(result: Any) -> None:
    await result
