"""A small process that ends the programs this one has started when it dies without doing so itself.

It holds the reading end of a pipe whose writing end only this process has. Whatever ends this
process, `kill -9` included, closes the pipe; the guardian then ends the process groups it was told
of. It is a shell of a few lines, is started with the first server, and ends with the last.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading

__all__ = ["forget", "watch"]

_SCRIPT = """
groups=
while read -r what group; do
  if [ "$what" = watch ]; then
    groups="$groups $group"
  else
    kept=
    for one in $groups; do [ "$one" = "$group" ] || kept="$kept $one"; done
    groups=$kept
  fi
done
[ -n "$groups" ] || exit 0
for one in $groups; do kill -s TERM -- "-$one"; done
sleep 2
for one in $groups; do kill -s KILL -- "-$one"; done
"""
"""Reads `watch N` and `forget N`; at the end of its input it ends what is still watched."""

_SHELL = "/bin/sh"


class _Guardian:
    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.groups: set[int] = set()
        self.process: subprocess.Popen[bytes] | None = None

    def tell(self, what: str, group: int) -> None:
        """Pass a line on, if there is anybody to read it."""
        process = self.process
        if process is not None and process.stdin is not None:
            with contextlib.suppress(OSError, ValueError):
                process.stdin.write(f"{what} {group}\n".encode())
                process.stdin.flush()


_guardian = _Guardian()


def watch(group: int) -> None:
    """End a process group when this process ends.

    Args:
        group: The id of the group; nothing happens where there are none (Windows).
    """
    if os.name != "posix":
        return
    with _guardian.lock:
        _guardian.groups.add(group)
        process = _guardian.process
        if process is None or process.poll() is not None:
            with contextlib.suppress(OSError):
                _guardian.process = subprocess.Popen(  # noqa: S603 - a fixed program and script
                    [_SHELL, "-c", _SCRIPT],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    start_new_session=True,  # a Ctrl-C in the terminal is not for it
                    cwd="/",
                )
                for one in _guardian.groups - {group}:
                    _guardian.tell("watch", one)
        _guardian.tell("watch", group)


def forget(group: int) -> None:
    """Let go of a process group that has ended.

    Args:
        group: The id of the group.
    """
    with _guardian.lock:
        if group not in _guardian.groups:
            return
        _guardian.groups.discard(group)
        _guardian.tell("forget", group)
        if not _guardian.groups and (process := _guardian.process) is not None:
            _guardian.process = None
            _end(process)


def _end(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):
            process.stdin.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(timeout=1)  # it has read "forget" for the last group: it ends at once


def _start_anew() -> None:
    """Leave the guardian to the parent in a forked process, which has none of the servers."""
    global _guardian
    before, _guardian = _guardian, _Guardian()
    if before.process is not None and before.process.stdin is not None:
        with contextlib.suppress(OSError, ValueError):
            os.close(before.process.stdin.fileno())  # or the parent's end would go unnoticed
        before.process.returncode = 0  # not a child of this process: nobody here waits for it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_start_anew)
