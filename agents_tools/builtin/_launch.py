"""Starting programs from threads that were made for it.

What Landlock, seccomp and `no_new_privs` take from a thread, the programs that it starts have not
got either; so a thread gives all of it up, starts one program, and ends. And a program that is to
die with its parent dies with the thread that started it: it is started from one that stays.
"""

from __future__ import annotations

import os
import queue
import signal
import threading
from concurrent.futures import Future
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable

__all__ = ["from_lasting_thread", "from_restricted_thread"]


def from_restricted_thread(
    restrict: Callable[[], None], start: Callable[[], subprocess.Popen[bytes]] | None = None
) -> subprocess.Popen[bytes] | None:
    """Start a program from a thread that has restricted itself, and that nobody else uses.

    Args:
        restrict: What the thread gives up.
        start: Starts the program; without it the thread only tries.

    Raises:
        OSError: It could not be restricted, or the program not be started.
    """
    result: Future[subprocess.Popen[bytes] | None] = Future()

    def run() -> None:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            restrict()
            result.set_result(None if start is None else start())
        except BaseException as error:  # noqa: BLE001 - it is raised where it is waited for
            result.set_exception(error)

    thread = threading.Thread(target=run, name="agents-tools-start", daemon=True)
    thread.start()
    try:
        return result.result()
    finally:
        thread.join()


def from_lasting_thread(
    start: Callable[[], subprocess.Popen[bytes]],
) -> subprocess.Popen[bytes]:
    """Start a program from a thread that ends with this process.

    Args:
        start: Starts the program.

    Raises:
        OSError: It could not be started.
    """
    return _lasting.run(start)


class _Lasting:
    """A thread that does what it is told, one after the other."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._waiting: queue.SimpleQueue[
            tuple[Callable[[], subprocess.Popen[bytes]], Future[subprocess.Popen[bytes]]]
        ] = queue.SimpleQueue()

    def run(self, start: Callable[[], subprocess.Popen[bytes]]) -> subprocess.Popen[bytes]:
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="agents-tools-starter", daemon=True
                )
                self._thread.start()
        result: Future[subprocess.Popen[bytes]] = Future()
        self._waiting.put((start, result))
        return result.result()

    def _work(self) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        while True:
            start, result = self._waiting.get()
            try:
                result.set_result(start())
            except BaseException as error:  # noqa: BLE001 - as above
                result.set_exception(error)
            del start, result


_lasting = _Lasting()


def _start_anew() -> None:
    """Give a forked process a thread of its own: it has not got that of its parent."""
    global _lasting  # noqa: PLW0603 - one for the process, as the thread is
    _lasting = _Lasting()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
