"""Start of programs from dedicated threads.

Programs inherit the restrictions of Landlock, seccomp and `no_new_privs` from the thread that
starts them, so a new thread restricts itself, starts one program and ends. A program with a
parent-death signal dies with the thread that started it, so it is started from a thread that lives
as long as this process.
"""

from __future__ import annotations

import os
import signal
import threading
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.concurrency.worker_thread import WorkerThread

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["default_signals", "run_in_lasting_thread", "run_in_restricted_thread"]

T = TypeVar("T")
_Job: TypeAlias = "tuple[Callable[[], Any], PendingFuture[Any]]"


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


def run_in_restricted_thread(restrict: Callable[[], None], start: Callable[[], T]) -> T:
    """Start a program from a new thread that restricts itself first.

    Args:
        restrict: Restricts the calling thread.
        start: Starts the program, or does nothing to try only the restriction.

    Raises:
        OSError: The thread cannot be restricted, or the program cannot be started.
    """

    def run() -> T:
        restrict()
        return start()

    result: PendingFuture[T] = PendingFuture()
    thread = threading.Thread(
        target=_run_job, args=((run, result),), name="agents-tools-start", daemon=True
    )
    thread.start()
    try:
        return result.result()
    finally:
        thread.join()


def run_in_lasting_thread(start: Callable[[], T]) -> T:
    """Start a program from a thread that ends with this process.

    Args:
        start: Starts the program.

    Raises:
        OSError: The program cannot be started.
    """
    result: PendingFuture[T] = PendingFuture()
    _lasting.submit((start, result))
    return result.result()


def _run_job(job: _Job) -> None:
    start, result = job
    try:
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        result.resolve(start())
    except BaseException as error:  # noqa: BLE001 - raised again by result()
        result.fail(error)


def _new_thread() -> WorkerThread[_Job]:
    return WorkerThread("agents-tools-starter", lambda jobs: _run_job(*jobs), max_batch=1)


_lasting = _new_thread()


def _reset_after_fork() -> None:
    """Create a new thread in a forked process, which does not inherit the parent's thread."""
    global _lasting  # noqa: PLW0603 - one for the process, as the thread is
    _lasting = _new_thread()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
