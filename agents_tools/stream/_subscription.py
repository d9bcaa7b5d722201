"""Callbacks that are called with the events of a stream, one after the other."""

from __future__ import annotations

import inspect
from contextlib import suppress
from contextvars import ContextVar, copy_context
from threading import Event as Signal, Lock, Thread, current_thread
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agents_tools._bridge import call_async_from_sync
from agents_tools.store import Pending
from agents_tools.stream._waking import Home

if TYPE_CHECKING:
    import weakref
    from asyncio import Task
    from collections.abc import Callable

    from agents_tools.events import Event
    from agents_tools.stream._log import Cursor, Log

__all__ = [
    "Reports",
    "Subscription",
    "TaskSubscription",
    "ThreadSubscription",
    "is_async",
    "speaker",
]

_LINGER: Final = 1.0
"""How long the thread of a subscription waits for the next event before it ends, in seconds."""

_PATIENCE: Final = 1.0
"""How long `unsubscribe` waits for a callback that is running in another thread, in seconds."""

_PATIENCE_OF_A_LOOP: Final = 0.05
"""The same, where an event loop stands still meanwhile."""

_inside: ContextVar[Subscription | None] = ContextVar("agents_tools_subscription", default=None)


class Reports(NamedTuple):
    """What a subscription tells its stream, if that is still there."""

    on_failure: weakref.WeakMethod[Callable[[Subscription, Exception, Event | None], None]]
    on_detached: weakref.WeakMethod[Callable[[Subscription, str], None]]

    def failed(self, subscription: Subscription, error: Exception, event: Event | None) -> None:
        """Say that a callback raised, or that events could not be read."""
        tell = self.on_failure()
        if tell is not None:
            tell(subscription, error, event)

    def detached(self, subscription: Subscription, why: str) -> None:
        """Say that the subscription is over, without anybody having asked for it."""
        tell = self.on_detached()
        if tell is not None:
            tell(subscription, why)


class Subscription:
    """A callback that gets the events of a stream.

    Attributes:
        subscriber_id: Who it belongs to.
        callback_id: Which of the subscriber's callbacks it is.
        failures: How often in a row the callback has raised.
    """

    def __init__(
        self,
        subscriber_id: str,
        callback_id: str,
        callback: Callable[[Event], Any],
        cursor: Cursor,
        reports: Reports,
        max_failures: int,
    ) -> None:
        self.subscriber_id = subscriber_id
        self.callback_id = callback_id
        self.failures = 0
        self.rank: tuple[int, str, str] = (0, subscriber_id, callback_id)
        self.drained: Pending[None] = Pending()
        self._callback = callback
        self._cursor = cursor
        self._log: Log = cursor.log
        self._reports = reports
        self._max_failures = max_failures
        self._active = True
        self._gate = Lock()
        self._runner: object = None  # the thread that is in the callback
        cursor.start(self)

    @property
    def active(self) -> bool:
        """Whether it gets events."""
        return self._active

    @property
    def name(self) -> str:
        """What it is called in reports."""
        return f"{self.subscriber_id}/{self.callback_id}"

    def begin(self) -> None:
        """Read what is there already, and everything that comes."""
        with self._log.lock:
            if self._cursor.at >= self._log.next_id and not self._log.closed:
                self._log.waiting[self] = None
                return
        self.wake()

    def stop(self, *, wait: bool = True) -> None:
        """Deliver no more; a callback that is running may end, and is waited for a moment."""
        self._active = False
        self._cursor.leave()
        with self._log.lock:
            waiting = self._log.waiting.pop(self, self) is None
        if waiting:
            self.retire()
        if wait:
            self._wait_for_callback()

    def retire(self) -> None:
        """Be over, having waited for events that will not come."""
        self._end()

    def wake(self) -> None:
        """Read on."""
        raise NotImplementedError

    def is_inside(self) -> bool:
        """Whether this is called by its own callback."""
        return _inside.get() is self

    def is_dead(self) -> bool:
        """Whether it can never be called again."""
        return False

    def after_fork(self) -> bool:
        """Start anew in a child; whether this waits for the next event there."""
        self._active = False  # what it belongs to is the parent's
        return False

    # --- for its worker ---------------------------------------------------------------------------

    def _pause(self) -> bool:
        """Wait from now on, if there is nothing to read."""
        with self._log.lock:
            if self._log.next_id > self._cursor.at and self._active:
                return False
            if self._active and not self._log.closed:
                self._log.waiting[self] = None
                return True
        self._end()
        return True

    def _end(self) -> None:
        """Be over: stopped, or everything that was published is delivered."""
        self._cursor.leave()
        self.drained.resolve(None)

    def _raised(self, error: BaseException, event: Event | None) -> None:
        if not isinstance(error, Exception):  # the exit or the cancellation of something inside
            error = RuntimeError(f"The callback was left with {error!r}.")
        self.failures += 1
        self._reports.failed(self, error, event)
        if self.failures >= self._max_failures and self._active:
            self._active = False
            self._reports.detached(self, f"it failed {self.failures} times in a row")

    def _wait_for_callback(self) -> None:
        raise NotImplementedError


class ThreadSubscription(Subscription):
    """A plain function, called in a thread that is there while there is something to do."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._context = copy_context()
        self._bell = Lock()
        self._bell.acquire()
        self._gone = True  # whether there is no thread; changed under the lock of the log

    def after_fork(self) -> bool:
        """Have no thread, unless it is the one that has forked."""
        if self._runner is current_thread():
            return False
        self._gate, self._bell, self._runner = Lock(), Lock(), None
        self._bell.acquire()
        self._gone = True
        return self._active

    def wake(self) -> None:
        """Let the thread go on, or start one."""
        if not self._gone:
            self._bell.release()
            return
        self._gone = False
        thread = Thread(target=self._work, name=f"events-{self.name}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:  # no thread can be started now: the next event tries again
            self._reports.failed(self, error, None)
            with self._log.lock:
                self._gone = True
                self._log.waiting[self] = None

    def retire(self) -> None:
        """Be over; a thread that waits ends as well."""
        if self._gone:
            self._end()
        else:
            self._bell.release()

    def _work(self) -> None:
        self._context.run(_inside.set, self)
        while True:
            try:
                taken = self._cursor.take() if self._active else []
                if isinstance(taken, Pending):
                    taken = taken.result()
                    self._cursor.took()
            except Exception as error:  # noqa: BLE001 - the store cannot be read
                self._reports.failed(self, error, None)
                self._active = False
                self._reports.detached(self, "what it has to read first cannot be read")
                continue
            for event in taken:
                if not self._deliver(event):
                    break
            if not taken and self._pause() and not self._linger():
                return

    def _linger(self) -> bool:
        """Wait for the bell; `False` when this thread is to end."""
        if self.drained.done():
            return False
        if self._bell.acquire(timeout=_LINGER):
            return True
        with self._log.lock:
            if self in self._log.waiting:
                self._gone = True
                return False
        return self._bell.acquire()  # it is about to ring

    def _deliver(self, event: Event) -> bool:
        with self._gate:
            if not self._active:
                return False
            self._runner = current_thread()
            try:
                self._context.run(self._call, event)
                self.failures = 0
            except BaseException as error:  # noqa: BLE001 - nothing may end the thread
                self._raised(error, event)
            finally:
                self._runner = None
        self._cursor.advance(event.id)
        return self._active

    def _call(self, event: Event) -> None:
        result = self._callback(event)
        if inspect.isawaitable(result):
            call_async_from_sync(_awaited, result)

    def _wait_for_callback(self) -> None:
        if self._runner is current_thread() or self.is_inside():
            return
        patience = _PATIENCE_OF_A_LOOP if _runs_loop() else _PATIENCE
        if self._gate.acquire(timeout=patience):
            self._gate.release()


class TaskSubscription(Subscription):
    """An async function, called on the loop of `subscribe`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._home = Home()
        self._task: Task[None] | None = None
        self._cursor.is_dead = self._home.is_closed

    @property
    def home(self) -> Home:
        """Where it runs."""
        return self._home

    def is_dead(self) -> bool:
        """Whether its loop is closed."""
        return self._home.is_closed()

    def wake(self) -> None:
        """Start a task that reads on."""
        if self._home.call(self._start):
            return
        self._give_up("its event loop is closed")

    def _give_up(self, why: str) -> None:
        self._active = False
        self._reports.detached(self, why)
        self._end()

    def _start(self) -> None:
        self._task = self._home.loop.create_task(self._work(), name=f"events-{self.name}")
        self._task.add_done_callback(self._note_end)

    def _note_end(self, task: Task[None]) -> None:
        """Be over also where the task was cancelled before it began, and could say nothing."""
        if self._task is task:
            self._task = None
            self._give_up("its task was cancelled")

    async def _work(self) -> None:
        _inside.set(self)
        try:
            while True:
                taken = self._cursor.take() if self._active else []
                if isinstance(taken, Pending):
                    taken = await taken
                    self._cursor.took()
                for event in taken:
                    if not self._active:
                        break
                    await self._deliver(event)
                if not taken and self._pause():
                    return
        except Exception as error:  # noqa: BLE001 - the store cannot be read
            self._reports.failed(self, error, None)
            self._give_up("what it has to read first cannot be read")
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
            self._raised(error, event)
        except Exception as error:  # noqa: BLE001 - reported; the others go on
            self._raised(error, event)
        self._cursor.advance(event.id)

    def _wait_for_callback(self) -> None:
        """Wait until the loop has done what it is just doing: it may be about to call."""
        home = self._home
        if home.is_here() or not home.loop.is_running():
            return
        turn = Signal()
        if home.call(turn.set):
            turn.wait(_PATIENCE_OF_A_LOOP if _runs_loop() else _PATIENCE)


def speaker() -> Subscription | None:
    """Give the subscription whose callback this is called in."""
    return _inside.get()


def is_async(callback: Callable[..., Any]) -> bool:
    """Whether calling it gives a coroutine."""
    call = getattr(callback, "__call__", None)  # noqa: B004 - an object may be async to call
    return inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(call)


async def _awaited(result: Any) -> None:
    await result


def _runs_loop() -> bool:
    from asyncio import get_running_loop

    with suppress(RuntimeError):
        get_running_loop()
        return True
    return False
