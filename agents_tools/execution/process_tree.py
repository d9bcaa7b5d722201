"""Ends a worker process and all processes that its tools have started."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    import subprocess

__all__ = ["MARKER", "alive", "child_marker", "kill_tree", "start_time"]

MARKER: Final = "AGENTS_TOOLS_WORKER"
"""The environment variable that marks the processes of a worker, daemons included."""

_PROC: Final = "/proc"
_TERMINATE_SECONDS: Final = 0.2
"""The time between SIGTERM and SIGKILL."""
_KILL_SECONDS: Final = 2.0


class _WorkerDescendant(NamedTuple):
    pid: int
    parent: int
    group: int
    session: int
    start_time: int


def child_marker(marker: str) -> str:
    """Return the value of `MARKER` for a child; in a worker, it starts with the worker's own."""
    own = os.environ.get(MARKER)
    return marker if own is None else f"{own}/{marker}"


def start_time(pid: int) -> int:
    """Return the start time of a process in the unit of `/proc`; 0 if it is not known."""
    seen = _read(pid) if sys.platform == "linux" else None
    return 0 if seen is None else seen.start_time


def kill_tree(process: subprocess.Popen[bytes], marker: str, since: int) -> None:
    """End a process and its descendants with SIGTERM, and 0.2 seconds later with SIGKILL.

    Blocks until they have ended, for about two seconds at most.

    Args:
        process: The first process, which is the leader of its session.
        marker: The value of `MARKER` in its environment.
        since: The start time of the process.
    """
    if process.returncode is None:
        _signal_group(process.pid, signal.SIGTERM)
        with contextlib.suppress(OSError):
            os.kill(process.pid, signal.SIGCONT)
        latest = time.monotonic() + _TERMINATE_SECONDS
        while alive(process) and time.monotonic() < latest:
            time.sleep(0.002)
    latest = time.monotonic() + _KILL_SECONDS
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
    """Return whether a child runs, without releasing its process id if the system allows that."""
    if not hasattr(os, "waitid"):
        return process.poll() is None
    if process.returncode is not None:
        return False
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


def _members(process: subprocess.Popen[bytes], marker: bytes, since: int) -> list[int]:
    """Return the processes that are in the session of a worker, or have its marker."""
    if sys.platform != "linux":
        return []
    first = process.pid
    is_id_valid = process.returncode is None  # a free id can belong to another process
    members: list[int] = []
    for name in os.listdir(_PROC):  # noqa: PTH208 - only one file of each process is read
        seen = _read(int(name)) if name.isdecimal() else None
        if seen is None or seen.pid == os.getpid() or seen.start_time < since:
            continue
        in_session = is_id_valid and first in {seen.session, seen.group}
        if seen.pid != first and (in_session or _is_marked(seen.pid, marker)):
            members.append(seen.pid)
    return members


def _is_marked(pid: int, marker: bytes) -> bool:
    """Return whether a worker, or a worker within it, start_time a process."""
    prefix = marker + b"/"
    return any(item == marker or item.startswith(prefix) for item in _environment(pid))


def _read(pid: int) -> _WorkerDescendant | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - read for every process
            line = file.read()
    except OSError:
        return None
    fields = line.rpartition(b")")[2].split()
    if fields[0] in {b"Z", b"X", b"x"}:
        return None
    return _WorkerDescendant(pid, int(fields[1]), int(fields[2]), int(fields[3]), int(fields[19]))


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123 - as above
            return file.read().split(b"\0")
    except OSError:
        return []
