"""Find and terminate all descendants of a process.

On Linux they are found in `/proc` by their session, their parents and an inherited environment
variable, so that daemons are found too. Other systems use the process group.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Iterable

__all__ = ["MARKER", "ProcessTree"]

MARKER = "AGENTS_TOOLS_PROCESS"
"""The variable that marks descendants; its value is unique for each start."""

_PROC = "/proc"
_TICK = 0.01
_LONGEST_TICK = 0.05
_AT_LEAST = 1.0
"""The minimum seconds for SIGKILL, in addition to the grace."""
_GROWTH = 64
"""If so many processes are started during the grace, SIGKILL follows immediately."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _ProcessEntry:
    """A row of the process table."""

    pid: int
    parent: int
    group: int
    session: int
    started: int
    dead: bool


class ProcessTree:
    """A process and its descendants.

    Args:
        process: The first one; it leads a session of its own.
        marker: The value of `MARKER` in its environment.
        namespace: Whether it is the outer of the two processes of a PID namespace. They are not
            counted, and all processes in the namespace end with them.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], marker: str, *, namespace: bool = False
    ) -> None:
        self._process = process
        self._marker = f"{MARKER}={marker}".encode()
        self._namespace = namespace
        self._first = _read(process.pid) if _has_proc() else None
        self._known: dict[int, int] = {}  # pid: start time
        self._strangers: dict[int, int] = {}
        self._sessions = {process.pid: self._first.started if self._first else 0}

    def descendants(self) -> list[int]:
        """Return the running processes without the first one, oldest first."""
        helpers = self._helpers()
        return [pid for pid in self._alive() if pid not in helpers and pid != self._process.pid]

    def end(self, grace: float) -> int:
        """Terminate all of them: SIGTERM, and SIGKILL after the grace.

        Args:
            grace: Seconds between the two.

        Returns:
            The number of processes left.
        """
        if self._first is None:
            return self._end_group(grace)
        self._reap()
        if not self._alive():
            return 0
        self._ask(time.monotonic() + grace)
        latest = time.monotonic() + max(grace, _AT_LEAST)
        self._kill(latest)
        self._reap()
        return len(self._alive())

    # --- SIGTERM and SIGKILL

    def _ask(self, latest: float) -> None:
        """Send SIGTERM to all, stopped during the search, and wait for their ends."""
        helpers = self._helpers()
        found = (
            [pid for pid in self._alive() if pid not in helpers]
            if self._namespace
            else self._hold(latest)
        )
        self._signal(found, signal.SIGTERM)
        self._signal(found, signal.SIGCONT)
        tick = _TICK / 10
        while time.monotonic() < latest:
            self._reap()
            alive = [pid for pid in self._alive() if pid not in helpers]
            if not alive or len(alive) > len(found) + _GROWTH:
                return
            if not found:  # the namespace was not ready yet
                found = alive
                self._signal(found, signal.SIGTERM)
            time.sleep(tick)
            tick = min(tick * 2, _LONGEST_TICK)

    def _kill(self, latest: float) -> None:
        tick = _TICK / 10
        while True:
            if self._namespace:
                self._signal([*self._helpers(), *self._alive()], signal.SIGKILL)
            else:
                self._signal(self._hold(latest), signal.SIGKILL)
            self._reap()
            if not self._alive() or time.monotonic() > latest:
                return
            time.sleep(tick)
            tick = min(tick * 2, _LONGEST_TICK)

    def _hold(self, latest: float) -> list[int]:
        """Stop all of them until no new one is found: stopped processes cannot fork."""
        held: set[int] = set()
        while True:
            found = self._alive()
            new = [pid for pid in found if pid not in held]
            if not new or time.monotonic() > latest:
                return found
            for group in {seen.group for pid in new if (seen := _read(pid)) is not None}:
                if group > 1 and group != os.getpgrp():
                    with contextlib.suppress(OSError):
                        os.killpg(group, signal.SIGSTOP)  # includes processes that are being forked
            self._signal(new, signal.SIGSTOP)
            held.update(new)

    def _signal(self, pids: Iterable[int], number: int) -> None:
        for pid in pids:
            seen = _read(pid)
            if seen is not None and seen.started == self._known.get(pid):
                with contextlib.suppress(OSError):
                    os.kill(pid, number)

    def _reap(self) -> None:
        self._process.poll()

    # --- search

    def _alive(self) -> list[int]:
        """Return the descendants from the process table."""
        if self._first is None:
            return [] if self._process.poll() is not None else [self._process.pid]
        table = _table(self._first.started)
        self._known = {
            pid: started
            for pid, started in self._known.items()
            if pid in table and table[pid].started == started
        }
        self._forget_sessions(table)
        grown = True
        while grown:
            new = [seen for seen in table.values() if seen.pid not in self._known]
            found = [seen for seen in new if self._belongs(seen)]
            grown = bool(found)
            self._known.update((seen.pid, seen.started) for seen in found)
            for seen in found:
                leader = table.get(seen.session)
                if leader is not None and leader.pid in self._known:
                    self._sessions[seen.session] = leader.started
        alive = [table[pid] for pid in self._known if not table[pid].dead]
        return [seen.pid for seen in sorted(alive, key=_age)]

    def _belongs(self, seen: _ProcessEntry) -> bool:
        if self._first is not None and seen.pid == self._first.pid:
            return seen.started == self._first.started
        if seen.parent in self._known or seen.session in self._sessions:
            return True
        if seen.dead or self._strangers.get(seen.pid) == seen.started:
            return False
        environment = _environment(seen.pid)
        if self._marker in environment:
            return True
        if any(environment):  # empty during exec
            self._strangers[seen.pid] = seen.started
        return False

    def _forget_sessions(self, table: dict[int, _ProcessEntry]) -> None:
        """Forget the sessions whose number was reused."""
        for session, started in list(self._sessions.items()):
            leader = table.get(session)
            if leader is not None and leader.started != started:
                del self._sessions[session]
        live = {seen.session for seen in table.values()}
        for session in [one for one in self._sessions if one not in live]:
            if session != self._process.pid or self._process.returncode is not None:
                del self._sessions[session]

    def _helpers(self) -> set[int]:
        """Return the two processes of the namespace."""
        if not self._namespace or self._first is None:
            return set()
        first = self._process.pid
        children = [pid for pid in self._alive() if (seen := _read(pid)) and seen.parent == first]
        return {first, *children}

    # --- other systems

    def _end_group(self, grace: float) -> int:
        process = self._process
        if not hasattr(os, "killpg"):
            process.kill()
            return 0 if _within(_AT_LEAST, lambda: process.poll() is not None) else 1
        steps = ((signal.SIGTERM, grace), (signal.SIGKILL, max(grace, _AT_LEAST)))
        for number, seconds in steps:
            if not _group_alive(process, number):
                break
            _within(seconds, lambda: not _group_alive(process, 0))
        return 1 if _group_alive(process, 0) else 0


def _age(seen: _ProcessEntry) -> tuple[int, int]:
    return seen.started, seen.pid


def _group_alive(process: subprocess.Popen[bytes], number: int) -> bool:
    """Send a signal to the group, and return whether it exists."""
    process.poll()
    try:
        os.killpg(process.pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:  # on macOS also of a group of zombies
        return process.returncode is None
    return True


def _within(seconds: float, condition: Callable[[], bool]) -> bool:
    latest = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > latest:
            return False
        time.sleep(_TICK)
    return True


def _has_proc() -> bool:
    return sys.platform == "linux" and _read(os.getpid()) is not None


def _table(since: int) -> dict[int, _ProcessEntry]:
    """Return the processes started since a time, without this one."""
    found = (_read(int(name)) for name in os.listdir(_PROC) if name.isdecimal())  # noqa: PTH208
    own = os.getpid()
    return {seen.pid: seen for seen in found if seen and seen.started >= since and seen.pid != own}


def _read(pid: int) -> _ProcessEntry | None:
    try:
        with open(f"{_PROC}/{pid}/stat", "rb") as file:  # noqa: PTH123 - read for every process
            line = file.read()
    except OSError:
        return None
    fields = line.rpartition(b")")[2].split()
    return _ProcessEntry(
        pid=pid,
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        started=int(fields[19]),
        dead=fields[0] in {b"Z", b"X", b"x"},
    )


def _environment(pid: int) -> list[bytes]:
    try:
        with open(f"{_PROC}/{pid}/environ", "rb") as file:  # noqa: PTH123
            return file.read().split(b"\0")
    except OSError:
        return []
