"""A thread that processes submitted items in order and in batches."""

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
    """A daemon thread that starts with the first submitted item.

    Args:
        name: The name of the thread.
        work: The function that processes a batch of items.
        max_batch: The maximum number of items in a batch.
    """

    def __init__(self, name: str, work: Callable[[list[T]], None], *, max_batch: int = 256) -> None:
        self._name = name
        self._work = work
        self._max_batch = max_batch
        self._queue: SimpleQueue[T | None] = SimpleQueue()
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()
        self._ended = False

    def submit(self, item: T) -> bool:
        """Submit an item; `False` if the thread was ended."""
        with self._lock:
            if self._ended:
                return False
            self._queue.put(item)
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name=self._name, daemon=True)
                self._thread.start()
        return True

    def end(self) -> None:
        """Refuse new items, process the submitted ones, and wait for the thread."""
        with self._lock:
            thread, first = self._thread, not self._ended
            self._ended = True
            if first:
                self._queue.put(None)
        if thread is not None and thread is not threading.current_thread():
            thread.join()

    def _run(self) -> None:
        is_open = True
        while is_open:
            items: list[T] = []
            item = self._queue.get()
            while item is not None:
                items.append(item)
                if len(items) >= self._max_batch:
                    break
                try:
                    item = self._queue.get_nowait()
                except Empty:
                    break
            is_open = item is not None
            if items:
                self._process(items)

    def _process(self, items: list[T]) -> None:
        try:
            self._work(items)
        except Exception:  # `work` reports errors itself; the thread must continue
            logger.exception("%s failed.", self._name)
