"""End a program and all processes that it has started, also when this process has died.

`ProcessTree` finds the processes by their parents, their sessions and an environment variable that
they inherit, so that daemons are found too. `watch` registers a program, and `remove_at_exit` a
directory, with a guardian: a small process that ends the program and removes the directory when
this process dies, even by `kill -9`.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Final

import psutil

from agents_tools.concurrency import guardian
from agents_tools.concurrency.guardian import TEMPORARY, remove_directory, signal_session

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = [
    "MARKER",
    "TEMPORARY",
    "ProcessTree",
    "cancel_removal",
    "end_now",
    "forget",
    "is_alive",
    "new_marker",
    "remove_at_exit",
    "remove_directory",
    "signal_session",
    "watch",
]

MARKER: Final = "AGENTS_TOOLS_PROCESS"
"""The environment variable that marks descendants; its value is unique for each start."""

_FIRST_PAUSE: Final = 0.001
_LONGEST_PAUSE: Final = 0.05
_MIN_KILL_SECONDS: Final = 1.0
"""The minimum time until the processes have ended after SIGKILL."""
_MAX_GROWTH: Final = 64
"""If so many processes are started during the grace, SIGKILL follows immediately."""


def new_marker(unique: str) -> str:
    """Return the value of `MARKER` for a program; it starts with that of this process, if any.

    Args:
        unique: A text that no other start uses.
    """
    own = os.environ.get(MARKER)
    return unique if own is None else f"{own}/{unique}"


class ProcessTree:
    """A process and its descendants.

    Args:
        process: The first one; it leads a session of its own.
        marker: The value of `MARKER` in its environment.
        is_namespace: Whether it is the outer of the two processes of a PID namespace. They are not
            counted, and all processes in the namespace end with them.
    """

    def __init__(
        self, process: subprocess.Popen[bytes], marker: str, *, is_namespace: bool = False
    ) -> None:
        self._lock = threading.RLock()
        self._process = process
        self._marker = marker
        self._is_namespace = is_namespace
        first = _find(process.pid)
        self._known: set[psutil.Process] = set() if first is None else {first}
        self._unrelated: set[psutil.Process] = set()
        self._sessions: dict[int, psutil.Process | None] = {process.pid: first}
        """The sessions of the tree, with their leaders."""

    def descendants(self) -> list[int]:
        """Return the running processes without the first one, oldest first."""
        with self._lock:
            alive = self._alive()
            helpers = self._helpers(alive)
        pid = self._process.pid
        return [one.pid for one in alive if one not in helpers and one.pid != pid]

    def end(self, grace: float) -> int:
        """Terminate all of them: SIGTERM, and SIGKILL after the grace.

        Args:
            grace: Seconds between the two.

        Returns:
            The number of processes left.
        """
        with self._lock:
            self._process.poll()
            left = 0
            if self._alive() and self._terminate(time.monotonic() + grace):
                left = self._kill(time.monotonic() + max(grace, _MIN_KILL_SECONDS))
            if not left:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._process.wait(_MIN_KILL_SECONDS)  # it has ended, and is reaped here
            return left

    # --- SIGTERM and SIGKILL

    def _terminate(self, latest: float) -> bool:
        """Send SIGTERM to all, stopped during the search; return whether one is left in the end."""
        if self._is_namespace:
            alive = self._alive()
            helpers = self._helpers(alive)
            found = [one for one in alive if one not in helpers]
        else:
            helpers = set[psutil.Process]()
            found = self._stop_all(latest)
        _call_each("terminate", found)
        _call_each("resume", found)
        pause = _FIRST_PAUSE
        while time.monotonic() < latest:
            self._process.poll()
            alive = [one for one in self._alive() if one not in helpers]
            if not alive:
                return self._is_namespace  # its own two processes
            if len(alive) > len(found) + _MAX_GROWTH:
                return True
            if not found:  # the namespace was not ready yet
                found = alive
                _call_each("terminate", found)
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)
        return True

    def _kill(self, latest: float) -> int:
        """Send SIGKILL to all until none is left or the time is over; return how many are left."""
        pause = _FIRST_PAUSE
        while True:
            _call_each("kill", self._alive() if self._is_namespace else self._stop_all(latest))
            self._process.poll()
            left = len(self._alive())
            if not left or time.monotonic() > latest:
                return left
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE)

    def _stop_all(self, latest: float) -> list[psutil.Process]:
        """Stop all of them until no new one is found: stopped processes cannot fork."""
        stopped: set[psutil.Process] = set()
        while True:
            found = self._alive()
            new = [one for one in found if one not in stopped]
            if not new or time.monotonic() > latest:
                return found
            for group in _groups_of(new):  # includes processes that are being forked
                with contextlib.suppress(OSError):
                    os.killpg(group, signal.SIGSTOP)
            _call_each("suspend", new)
            stopped.update(new)

    # --- search

    def _alive(self) -> list[psutil.Process]:
        """Return the running processes of the tree, oldest first."""
        table = {one.pid: one for one in _all_processes()}
        self._known = {one for one in self._known if table.get(one.pid) == one}
        self._unrelated &= {*table.values()}
        self._forget_sessions(table)
        has_grown = True
        while has_grown:
            pids = {one.pid for one in self._known}
            others = [one for one in table.values() if one not in self._known]
            found = [one for one in others if self._belongs(one, pids)]
            has_grown = bool(found)
            self._known.update(found)
            for session in {_session_of(one.pid) for one in found}:
                leader = table.get(session)
                if leader is not None and leader in self._known:
                    self._sessions[session] = leader
        return sorted((one for one in self._known if not _is_dead(one)), key=_start_order)

    def _belongs(self, one: psutil.Process, pids: set[int]) -> bool:
        if _session_of(one.pid) in self._sessions or _parent_of(one) in pids:
            return True
        if one in self._unrelated:
            return False
        environment = _environment_of(one)
        marker = environment.get(MARKER, "")
        if marker == self._marker or marker.startswith(f"{self._marker}/"):
            return True
        if environment:  # it is empty while a process starts another program
            self._unrelated.add(one)
        return False

    def _forget_sessions(self, table: dict[int, psutil.Process]) -> None:
        """Forget the sessions without processes, whose numbers can be used again."""
        live = {_session_of(pid) for pid in table}
        for session, leader in list(self._sessions.items()):
            found = table.get(session)
            is_reused = found is not None and leader is not None and found != leader
            is_first = session == self._process.pid and self._process.returncode is None
            if is_reused or not (is_first or session in live):
                del self._sessions[session]

    def _helpers(self, alive: Iterable[psutil.Process]) -> set[psutil.Process]:
        """Return the two processes of the namespace."""
        if not self._is_namespace:
            return set()
        first = self._process.pid
        return {one for one in alive if first in {one.pid, _parent_of(one)}}


def _all_processes() -> Iterator[psutil.Process]:
    """Yield all processes but this one."""
    own = os.getpid()
    for pid in psutil.pids():
        if pid != own and (one := _find(pid)) is not None:
            yield one


def _find(pid: int) -> psutil.Process | None:
    try:
        return psutil.Process(pid)
    except psutil.Error:
        return None


def _is_dead(one: psutil.Process) -> bool:
    try:
        return one.status() in {psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD}
    except psutil.Error:
        return True


def _parent_of(one: psutil.Process) -> int:
    try:
        return one.ppid()
    except psutil.Error:
        return -1


def _environment_of(one: psutil.Process) -> dict[str, str]:
    try:
        return one.environ()
    except (psutil.Error, OSError):
        return {}


def _start_order(one: psutil.Process) -> tuple[float, int]:
    return one.create_time(), one.pid


def _session_of(pid: int) -> int:
    """Return the id of the session of a process; -1 if it is unknown."""
    if sys.platform != "win32":
        with contextlib.suppress(OSError):
            return os.getsid(pid)
    return -1


def _groups_of(processes: Iterable[psutil.Process]) -> set[int]:
    """Return the process groups of processes, without that of this process."""
    groups: set[int] = set()
    if sys.platform != "win32":
        for one in processes:
            with contextlib.suppress(OSError):
                groups.add(os.getpgid(one.pid))
        groups -= {0, 1, os.getpgrp()}
    return groups


def _call_each(action: str, processes: Iterable[psutil.Process]) -> None:
    """Call a method such as `terminate` of each process, unless its id was reused."""
    for one in processes:
        with contextlib.suppress(psutil.Error, OSError):
            getattr(one, action)()


def end_now(process: subprocess.Popen[bytes]) -> None:
    """Kill a program and the processes in its session, or its children on Windows.

    This does not wait for their end, and does not find daemons.

    Args:
        process: The first one; it leads a session of its own.
    """
    if process.poll() is not None:
        return
    if sys.platform != "win32":
        signal_session(process.pid, signal.SIGKILL)
    elif (first := _find(process.pid)) is not None:
        with contextlib.suppress(psutil.Error):
            _call_each("kill", first.children(recursive=True))
        _call_each("kill", [first])


def is_alive(process: subprocess.Popen[bytes]) -> bool:
    """Return whether a child runs, without releasing its process id if the system allows that."""
    if not hasattr(os, "waitid"):
        return process.poll() is None
    if process.returncode is not None:
        return False
    try:
        return os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None
    except ChildProcessError:
        return False


# --- the guardian


class _GuardianProcess(subprocess.Popen[bytes]):
    def __del__(self) -> None:
        """Skip the warning that it still runs: it outlives this process."""


class _Guardian:
    """The process that cleans up when this one dies, from the side of this process.

    It reads commands from a pipe that only this process can write to, and that the system closes
    when this process ends, after its handlers of `atexit`. It starts with the first registration.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: set[int] = set()
        self.paths: dict[str, str] = {}
        """The paths to remove, each with its mode: `all` or `empty`."""
        self.process: _GuardianProcess | None = None
        self.pipe = -1

    def send(self, command: str, target: object) -> None:
        """Send a command to the process if it runs."""
        data = memoryview(os.fsencode(f"{command} {target}\n"))
        with contextlib.suppress(OSError):
            while data and self.pipe >= 0:
                data = data[os.write(self.pipe, data) :]

    def start(self) -> None:
        """Start the process unless it runs, and send it all groups and paths."""
        if self.process is not None and self.process.poll() is None:
            return
        self.process = None
        self.close_pipe()
        python = getattr(sys, "_base_executable", sys.executable)  # not one in a workspace
        if not python or getattr(sys, "frozen", False):
            return
        commands, self.pipe = os.pipe()
        try:
            self.process = _GuardianProcess(
                [python, "-I", "-S", "-c", _SOURCE],
                stdin=commands,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # Ctrl-C in the terminal must not end it
                cwd="/",
                env={name: os.environ[name] for name in _LIBRARIES if name in os.environ},
            )
        except OSError:
            self.close_pipe()
        finally:
            os.close(commands)
        for group in self.groups:
            self.send("watch", group)
        for path, mode in self.paths.items():
            self.send(mode, path)

    def close_pipe(self) -> None:
        """Close the pipe, so that the process cleans up when no other process has it open."""
        pipe, self.pipe = self.pipe, -1
        if pipe >= 0:
            os.close(pipe)


_SOURCE: Final = Path(guardian.__file__).read_text()
"""Read before any command runs, because a command could change the file."""
_LIBRARIES: Final = ("DYLD_LIBRARY_PATH", "LD_LIBRARY_PATH", "SYSTEMROOT")
"""The environment variables that the interpreter itself can need; others can hold keys."""

_guardian = _Guardian()


def watch(group: int) -> None:
    """End a process group, and the session of the same id, when this process ends.

    Args:
        group: The id of the group. On Windows, which has no groups, nothing happens.
    """
    if os.name != "posix":
        return
    with _guardian.lock:
        _guardian.start()
        _guardian.groups.add(group)
        _guardian.send("watch", group)


def forget(group: int) -> None:
    """Stop watching a process group that has ended.

    Args:
        group: The id of the group.
    """
    with _guardian.lock:
        if group in _guardian.groups:
            _guardian.groups.discard(group)
            _guardian.send("forget", group)


def remove_at_exit(path: str | os.PathLike[str], *, only_empty: bool = False) -> None:
    """Remove a path when this process ends, after the process groups.

    Args:
        path: A directory whose name starts with `TEMPORARY`, which is removed with its contents,
            or any file or directory with `only_empty`. A path with a line break is not removed,
            and on Windows no path is.
        only_empty: Whether the path is removed only if it is empty, or a file with one dot.
    """
    text = os.fspath(path)
    if os.name != "posix" or "\n" in text:
        return
    mode = "empty" if only_empty else "all"
    with _guardian.lock:
        _guardian.start()
        _guardian.paths[text] = mode
        _guardian.send(mode, text)


def cancel_removal(path: str | os.PathLike[str]) -> None:
    """Cancel the removal of a path, because it was removed or must be kept.

    Args:
        path: The path that was passed to `remove_at_exit`.
    """
    text = os.fspath(path)
    with _guardian.lock:
        if _guardian.paths.pop(text, None) is not None:
            _guardian.send("keep", text)


def _reset_after_fork() -> None:
    """Create a new guardian in a forked process; the existing one belongs to its parent."""
    global _guardian
    parent, _guardian = _guardian, _Guardian()
    parent.close_pipe()  # otherwise it stays open when the parent ends


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_reset_after_fork)
