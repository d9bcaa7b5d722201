"""The worker processes of a backend: started in advance, and replaced when they are used up."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
import time
from typing import TYPE_CHECKING

from agents_tools.concurrency.fair_lock import FairLock, LockTicket
from agents_tools.concurrency.supervisor import GRACE
from agents_tools.errors import UserError
from agents_tools.execution import import_guard as _guard
from agents_tools.execution.worker_process import StartError, WorkerProcess, WorkerRecipe

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WorkerPool"]


class WorkerPool:
    """Keeps a number of workers running. Can be used from several event loops.

    Args:
        recipe: The settings with which a worker is started.
        workers: The number of workers.
        max_calls: The number of calls after which a worker is replaced.
    """

    def __init__(self, recipe: WorkerRecipe, *, workers: int, max_calls: int) -> None:
        self._recipe = recipe
        self._size = workers
        self._max_calls = max_calls
        self._lock = threading.Lock()
        self._queue: FairLock[WorkerProcess | StartError] = FairLock()
        self._children: set[WorkerProcess] = set()
        self._missing = workers
        self._threads: set[threading.Thread] = set()
        self._owner = os.getpid()
        self.closed = False

    @property
    def workers(self) -> int:
        """The number of workers that run."""
        return len(self._children)

    @property
    def waiting(self) -> int:
        """The number of calls that wait for a worker."""
        return self._queue.waiting

    def start(self) -> None:
        """Start the missing workers, each in its own thread.

        Raises:
            UserError: A worker is importing this program.
        """
        _guard.check()
        if self._owner != os.getpid():
            self._reset_after_fork()
        if self.closed:
            return
        with self._lock:
            missing, self._missing = self._missing, 0
        for _ in range(missing):
            self._in_thread(self._start_worker)

    async def acquire(self, ticket: LockTicket[WorkerProcess | StartError]) -> WorkerProcess | None:
        """Wait for a worker that accepts calls and return it; `None` if the ticket was left.

        Args:
            ticket: The ticket of the call in the queue.

        Raises:
            StartError: No worker can be started.
        """
        while True:
            self.start()
            self._reclaim()
            child = await self._queue.take(ticket)
            if child is None:
                return None
            if isinstance(child, StartError):
                raise StartError(*child.args)  # each waiting call needs its own exception
            if not child.alive:
                self.release(child, spent=True)
                continue
            child.loop = asyncio.get_running_loop()
            try:
                await child.ready()
            except StartError as error:
                self.release(child, spent=True, refill=False)
                self._fail_waiting(error)
                raise
            except BaseException:
                self.release(child)
                raise
            child.calls += 1
            return child

    def release(
        self,
        child: WorkerProcess,
        *,
        running: bool = False,
        spent: bool = False,
        refill: bool = True,
    ) -> None:
        """Return a worker to the pool.

        Args:
            child: The worker.
            running: Whether its call can still be running. The pool then stops the call, and
                kills the worker if the call does not end.
            spent: Whether the worker is dead or unusable.
            refill: Whether a new worker is started at once, instead of for the next call.
        """
        child.loop = None
        if self.closed or spent:
            self._replace(child, refill=refill)
        elif running:
            self._in_thread(lambda: self._stop_call(child))
        elif child.calls >= self._max_calls:
            self._replace(child, refill=refill, graceful=True)
        else:
            self._queue.put(child)

    def _reclaim(self) -> None:
        """Release the workers of calls whose event loop was closed while they ran."""
        for child in list(self._children):
            loop = child.loop
            if loop is not None and loop.is_closed():
                self.release(child, running=True)

    def _fail_waiting(self, error: StartError) -> None:
        """Send the error to all waiting calls if no worker is left that could run them."""
        with self._lock:
            all_missing = self._missing == self._size
        if all_missing:
            self._queue.put_for_all(error)

    def close(self) -> None:
        """Kill all workers, and accept no more calls."""
        self.closed = True
        for child in self._queue.clear():
            if isinstance(child, WorkerProcess):
                self._replace(child, refill=False)
        for child in list(self._children):
            child.send_kill()  # its call notices that, and releases it

    async def wait_closed(self) -> None:
        """Close the pool, and wait until all workers and threads have ended."""
        latest = time.monotonic() + GRACE
        while self._threads or self._children:
            self.close()
            if time.monotonic() > latest:  # a caller keeps a stream open without reading it
                for child in list(self._children):
                    self._replace(child, refill=False)
            await asyncio.sleep(0.005)

    def abandon(self) -> None:
        """Kill all workers now, because the backend was garbage-collected or this process ends."""
        self.closed = True
        if self._owner == os.getpid():
            for child in list(self._children):
                child.send_kill()
                child.kill()
            self._children.clear()

    # --- in separate threads, which end by themselves

    def _start_worker(self) -> None:
        try:
            child = WorkerProcess(self._recipe)
        except OSError as error:
            with self._lock:
                self._missing += 1
            self._fail_waiting(StartError(f"its process could not be started: {error}"))
            return
        with self._lock:
            self._children.add(child)
        self.release(child)

    def _stop_call(self, child: WorkerProcess) -> None:
        if child.stop_call():
            self.release(child)
        else:
            self._replace(child, refill=True)

    def _replace(self, child: WorkerProcess, *, refill: bool, graceful: bool = False) -> None:
        with self._lock:
            if child not in self._children:
                return
            self._children.discard(child)
            self._missing += 1
        if not graceful:
            child.send_kill()
        self._in_thread(child.end if graceful else child.kill)
        if refill and not self.closed:
            with contextlib.suppress(UserError):
                self.start()

    def _in_thread(self, work: Callable[[], None]) -> None:
        def run() -> None:
            try:
                work()
            finally:
                self._threads.discard(thread)

        thread = threading.Thread(target=run, name="agents-tools-worker", daemon=True)
        self._threads.add(thread)
        try:
            thread.start()
        except RuntimeError:  # no thread can be started: the system is full, or the program ends
            run()

    def _reset_after_fork(self) -> None:
        """Start without workers in a forked process; the existing ones belong to its parent."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._queue = FairLock()
        self._children = set()
        self._threads = set()
        self._missing = self._size
