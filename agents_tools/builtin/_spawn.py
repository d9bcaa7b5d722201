"""Start of programs from dedicated threads.

Programs inherit the restrictions of Landlock, seccomp and `no_new_privs` from the thread that
starts them, so a new thread restricts itself, starts one program and ends. A program with a
parent-death signal dies with the thread that started it, so it is started from a thread that lives
as long as this process.
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

__all__ = ["default_signals", "run_in_lasting_thread", "run_in_restricted_thread"]


def default_signals() -> Callable[[], None] | None:
    """Return the `preexec_fn` that lets a program receive the signals that this process ignores.

    A process that was started by `nohup`, or as a background job of a script, ignores SIGHUP or
    SIGINT. Programs inherit that, and a shell cannot undo it, so Ctrl-C would not end a command.

    Returns:
        The function; `None` if no signal is ignored, because a `preexec_fn` prevents `vfork`.
        `subprocess` itself resets SIGPIPE and SIGXFSZ, which Python ignores.
    """
    if os.name != "posix":
        return None
    restored = {signal.SIGPIPE, signal.SIGXFSZ}
    ignored = [
        number
        for number in signal.valid_signals() - restored
        if signal.getsignal(number) is signal.SIG_IGN
    ]
    if not ignored:
        return None

    def reset() -> None:
        for number in ignored:
            signal.signal(number, signal.SIG_DFL)

    return reset


def run_in_restricted_thread(
    restrict: Callable[[], None], start: Callable[[], subprocess.Popen[bytes]] | None = None
) -> subprocess.Popen[bytes] | None:
    """Start a program from a new thread that restricts itself first.

    Args:
        restrict: Restricts the calling thread.
        start: Starts the program; without it, only the restriction is tried.

    Raises:
        OSError: The thread cannot be restricted, or the program cannot be started.
    """
    result: Future[subprocess.Popen[bytes] | None] = Future()

    def run() -> None:
        try:
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            restrict()
            result.set_result(None if start is None else start())
        except BaseException as error:  # noqa: BLE001 - raised again by result()
            result.set_exception(error)

    thread = threading.Thread(target=run, name="agents-tools-start", daemon=True)
    thread.start()
    try:
        return result.result()
    finally:
        thread.join()


def run_in_lasting_thread(
    start: Callable[[], subprocess.Popen[bytes]],
) -> subprocess.Popen[bytes]:
    """Start a program from a thread that ends with this process.

    Args:
        start: Starts the program.

    Raises:
        OSError: The program cannot be started.
    """
    return _lasting.run(start)


class _LongLivedThread:
    """A worker thread that runs functions one after the other."""

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


_lasting = _LongLivedThread()


def _start_again() -> None:
    """Create a new thread in a forked process, which does not inherit the parent's thread."""
    global _lasting  # noqa: PLW0603 - one for the process, as the thread is
    _lasting = _LongLivedThread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_again)
