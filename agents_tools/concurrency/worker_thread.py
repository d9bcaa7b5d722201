"""A thread that does what it is handed, in order, several things at a time where it can."""

from __future__ import annotations

import logging
import threading
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["WorkerThread"]

T = TypeVar("T")

logger = logging.getLogger("agents_tools")


class WorkerThread(Generic[T]):
    """A daemon thread that is started with the first thing it is handed.

    Args:
        name: The name of the thread.
        work: Does what was handed in, all that waits at once up to `most`.
        most: How many things at once.
    """

    def __init__(self, name: str, work: Callable[[list[T]], None], *, most: int = 256) -> None:
        self._name = name
        self._work = work
        self._most = most
        self._queue: SimpleQueue[T | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._ended = False

    def submit(self, thing: T) -> bool:
        """Hand something in; `False` when it is ended."""
        with self._lock:
            if self._ended:
                return False
            self._queue.put(thing)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return True

    def end(self) -> None:
        """Do what was handed in, take nothing more, and wait for the thread."""
        with self._lock:
            thread, first = self._thread, not self._ended
            self._ended = True
            if first:
                self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        going = True
        while going:
            things: list[T] = []
            thing = self._queue.get()
            while thing is not None:
                things.append(thing)
                if len(things) >= self._most:
                    break
                try:
                    thing = self._queue.get_nowait()
                except Empty:
                    break
            going = thing is not None
            if things:
                self._do(things)

    def _do(self, things: list[T]) -> None:
        try:
            self._work(things)
        except Exception:  # whoever waits was told; the thread has to go on
            logger.exception("%s failed.", self._name)
