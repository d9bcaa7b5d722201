"""The guardian: a process that cleans up after another one has died.

`processes` starts it with the text of this module, and without the packages that are installed:
commands in a workspace can change those, but must not decide what runs outside of their sandbox. So
this module imports the standard library only.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sys
import time
from pathlib import Path
from typing import IO

__all__ = ["TEMPORARY", "guard", "remove_directory", "signal_session"]

TEMPORARY = "agents-tools-"
"""The prefix of the names of directories that are removed with their contents."""

_PAUSE = 2.0
"""Seconds between SIGTERM and SIGKILL."""


def guard(commands: IO[bytes]) -> None:
    """Read commands until the other process has ended, then clean up.

    Args:
        commands: Lines: `watch N` and `forget N`, `all PATH`, `empty PATH` and `keep PATH`.
    """
    groups: set[int] = set()
    paths: dict[bytes, bytes] = {}
    for line in commands:
        command, _, target = line.rstrip(b"\n").partition(b" ")
        if command == b"watch":
            groups.add(int(target))
        elif command == b"forget":
            groups.discard(int(target))
        elif command == b"keep":
            paths.pop(target, None)
        else:
            paths[target] = command
    if groups:
        for group in groups:
            signal_session(group, signal.SIGTERM)
        time.sleep(_PAUSE)
        for group in groups:
            signal_session(group, signal.SIGKILL)
    for path, mode in paths.items():
        with contextlib.suppress(OSError):
            _remove(Path(os.fsdecode(path)), only_empty=mode == b"empty")


def signal_session(leader: int, number: int) -> None:
    """Send a signal to the group and the session that a process leads, without waiting.

    A shell creates a group for each of its jobs, so that the group of its leader is not enough. The
    session is only searched on Linux.

    Args:
        leader: The id of the process, which can have ended.
        number: The number of the signal.
    """
    if leader in {os.getpgrp(), os.getsid(0)}:
        return
    with contextlib.suppress(OSError):
        os.killpg(leader, number)
    with contextlib.suppress(FileNotFoundError):
        for name in os.listdir("/proc"):  # noqa: PTH208 - as text
            with contextlib.suppress(OSError):
                if name.isdecimal() and os.getsid(int(name)) == leader:
                    os.kill(int(name), number)


def _remove(path: Path, *, only_empty: bool) -> None:
    if path.is_symlink():
        return
    if not only_empty:
        if path.name.startswith(TEMPORARY):
            remove_directory(path)
    elif path.is_dir():
        path.rmdir()
    elif path.read_bytes() in {b"", b".\n"}:  # as they were created
        path.unlink()


def remove_directory(directory: Path) -> None:
    """Remove a directory, also if a command has removed the permissions of its owner."""
    shutil.rmtree(directory, ignore_errors=True)
    if directory.exists():
        for path, names, _ in os.walk(directory):
            for one in (Path(path, name) for name in names):
                if not one.is_symlink():
                    with contextlib.suppress(OSError):
                        one.chmod(0o700)
        shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    guard(sys.stdin.buffer)
