"""The worker processes of a backend: started ahead, replaced when they are spent."""

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
    """Keeps a number of workers; may be used from several event loops.

    Args:
        recipe: What a worker is started with.
        workers: How many there are.
        max_calls: After how many calls one is replaced.
    """

    def __init__(self, recipe: WorkerRecipe, *, workers: int, max_calls: int) -> None:
        self._recipe = recipe
        self._size = workers
        self._max_calls = max_calls
        self._lock = threading.Lock()
        self._line: FairLock[WorkerProcess | StartError] = FairLock()
        self._children: set[WorkerProcess] = set()
        self._missing = workers
        self._threads: set[threading.Thread] = set()
        self._owner = os.getpid()
        self.closed = False

    @property
    def workers(self) -> int:
        """How many run."""
        return len(self._children)

    @property
    def waiting(self) -> int:
        """How many calls wait for one."""
        return self._line.waiting

    def start(self) -> None:
        """Start what is missing, in a thread of its own.

        Raises:
            UserError: This program is being imported by a worker itself.
        """
        _guard.check()
        if self._owner != os.getpid():
            self._reset_after_fork()
        if self.closed:
            return
        with self._lock:
            missing, self._missing = self._missing, 0
        for _ in range(missing):
            self._in_thread(self._add)

    async def acquire(self, ticket: LockTicket[WorkerProcess | StartError]) -> WorkerProcess | None:
        """Get a worker that takes calls, waiting for one; `None` if the ticket was left.

        Args:
            ticket: The place in the line.

        Raises:
            StartError: No worker comes up.
        """
        while True:
            self.start()
            self._reclaim()
            child = await self._line.take(ticket)
            if child is None:
                return None
            if isinstance(child, StartError):
                raise StartError(*child.args)  # one for each who is told
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
        """Return a worker back.

        Args:
            child: The worker.
            running: Whether its call may still run: it is stopped, and killed if need be.
            spent: Whether it is dead or of no more use.
            refill: Whether another takes its place at once, rather than for the next call.
        """
        child.loop = None
        if self.closed or spent:
            self._replace(child, refill=refill)
        elif running:
            self._in_thread(lambda: self._settle(child))
        elif child.calls >= self._max_calls:
            self._replace(child, refill=refill, politely=True)
        else:
            self._line.put(child)

    def _reclaim(self) -> None:
        """Take back the workers of calls whose event loop was closed under them."""
        for child in list(self._children):
            loop = child.loop
            if loop is not None and loop.is_closed():
                self.release(child, running=True)

    def _fail_waiting(self, error: StartError) -> None:
        """Tell all who wait that no worker comes up, unless there is one they can wait for."""
        with self._lock:
            hopeless = self._missing == self._size
        if hopeless:
            self._line.put_for_all(error)

    def close(self) -> None:
        """Kill all workers; calls in the line are sent away."""
        self.closed = True
        for child in self._line.clear():
            if isinstance(child, WorkerProcess):
                self._replace(child, refill=False)
        for child in list(self._children):
            child.strike()  # who uses it sees that, and gives it back

    async def closing(self) -> None:
        """Wait until all that `close` began is done."""
        latest = time.monotonic() + GRACE
        while self._threads or self._children:
            self.close()
            if time.monotonic() > latest:  # somebody holds on to a stream and does not read it
                for child in list(self._children):
                    self._replace(child, refill=False)
            await asyncio.sleep(0.005)

    def abandon(self) -> None:
        """Kill all workers now: no one can use them any more, or this process ends."""
        self.closed = True
        if self._owner == os.getpid():
            for child in list(self._children):
                child.strike()
                child.kill()
            self._children.clear()

    # --- in threads of their own, which end by themselves

    def _add(self) -> None:
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

    def _settle(self, child: WorkerProcess) -> None:
        if child.comes_to_rest():
            self.release(child)
        else:
            self._replace(child, refill=True)

    def _replace(self, child: WorkerProcess, *, refill: bool, politely: bool = False) -> None:
        with self._lock:
            if child not in self._children:
                return
            self._children.discard(child)
            self._missing += 1
        if not politely:
            child.strike()
        self._in_thread(child.end if politely else child.kill)
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
        except RuntimeError:  # there is none to be had: the system is full, or the program ends
            run()

    def _reset_after_fork(self) -> None:
        """Begin with no workers in a forked process: those there are belong to its parent."""
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._line = FairLock()
        self._children = set()
        self._threads = set()
        self._missing = self._size
