"""Ends a worker process with all that its tools have started."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import subprocess

__all__ = ["MARKER", "alive", "below", "kill_tree", "started"]

MARKER: Final = "AGENTS_TOOLS_WORKER"
"""The variable by which all that came from a worker is known, daemons included."""

_PROC: Final = "/proc"
_ASKED: Final = 0.2
"""Seconds between SIGTERM and SIGKILL."""
_PATIENCE: Final = 2.0


class _SeenProcess(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    started: int


def below(marker: str) -> str:
    """Return the value of `MARKER` for a process from here.

    Where this is a worker, below its own.
    """
    own = os.environ.get(MARKER)
    return marker if own is None else f"{own}/{marker}"


def started(pid: int) -> int:
    """Return when a process started, in the unit of `/proc`; 0 where that is not known."""
    seen = _read(pid) if sys.platform == "linux" else None
    return 0 if seen is None else seen.started


def kill_tree(process: subprocess.Popen[bytes], marker: str, since: int) -> None:
    """End a process and all that came from it: SIGTERM, and a moment later SIGKILL.

    Blocks until they are gone, for about two seconds at most.

    Args:
        process: The first one; it leads a session of its own.
        marker: The value of `MARKER` in its environment.
        since: When it started.
    """
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            os.kill(process.pid, signal.SIGCONT)
        latest = time.monotonic() + _ASKED
        while alive(process) and time.monotonic() < latest:
            time.sleep(0.002)
    latest = time.monotonic() + _PATIENCE
    while time.monotonic() < latest:
        if process.returncode is None:
            _signal_group(process.pid, signal.SIGKILL)
        left = _members(process, f"{MARKER}={marker}".encode(), since)
        process.poll()
        if not left and process.returncode is not None:
            return
        for pid in left:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.002)


def _signal_group(group: int, number: int) -> None:
    with contextlib.suppress(OSError):
        os.killpg(group, number)


def alive(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a child runs; its number stays taken, where the system allows that."""
    if not hasattr(os, "waitid"):
        return process.poll() is None
    if process.returncode is not None:
        return False
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _members(process: subprocess.Popen[bytes], marker: bytes, since: int) -> list[int]:
    """Return the processes that are left of a session, and what has its marker."""
    if sys.platform != "linux":
        return []
    first = process.pid
    number_is_ours = process.returncode is None  # somebody else may have it once it is free
    found: list[int] = []
    for name in os.listdir(_PROC):  # noqa: PTH208 - of each process only one file is read
        seen = _read(int(name)) if name.isdecimal() else None
        if seen is None or seen.pid == os.getpid() or seen.started < since:
            continue
        of_session = number_is_ours and first in {seen.session, seen.group}
        if seen.pid != first and (of_session or _is_marked(seen.pid, marker)):
            found.append(seen.pid)
    return found


def _is_marked(pid: int, marker: bytes) -> bool:
    """Look whether a process came from a worker, or from a worker that one had itself."""
    beginning = marker + b"/"
    return any(one == marker or one.startswith(beginning) for one in _environment(pid))


def _read(pid: int) -> _SeenProcess | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - read for every process
            line = file.read()
    except OSError:
        return None
    fields = line.rpartition(b")")[2].split()
    if fields[0] in {b"Z", b"X", b"x"}:
        return None
    return _SeenProcess(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            return file.read().split(b"\0")
    except OSError:
        return []
