"""Detect whether a program waits for input, from its current system call (Linux)."""

from __future__ import annotations

import contextlib
import os
import platform
import stat
import struct
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["waits_for_input"]

_CALLS = {
    "x86_64": ({0}, {23, 270}, {7, 271}),
    "aarch64": ({63}, {72}, {73}),
}
"""The system call numbers of each machine: read; select and pselect6; poll and ppoll."""
_CONTROLLING = os.makedev(5, 0)
"""`/dev/tty`."""


def waits_for_input(shell: int, group: int | None, terminal: int) -> bool:
    """Return whether a program in the foreground waits for its terminal.

    Args:
        shell: The process that leads the session.
        group: The process group in the foreground; `None` if it is the shell itself.
        terminal: The number of the terminal's device.

    Returns:
        Whether it waits; `False` if that cannot be determined.
    """
    calls = _CALLS.get(platform.machine())
    if calls is None:
        return False
    if group is None:
        return _waits(shell, calls, terminal)
    return any(_waits(pid, calls, terminal) for pid in _members(shell, group))


def _members(shell: int, group: int) -> Iterator[int]:
    """Yield the processes of a group that descend from the shell."""
    pending = [shell]
    while pending:
        pid = pending.pop()
        with contextlib.suppress(OSError, ValueError, IndexError):
            text = Path(f"/proc/{pid}/task/{pid}/children").read_text()
            pending += [int(word) for word in text.split()]
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            if int(fields[2]) == group:
                yield pid


def _waits(pid: int, calls: tuple[set[int], set[int], set[int]], terminal: int) -> bool:
    reads, selects, polls = calls
    try:
        words = Path(f"/proc/{pid}/syscall").read_text().split()
        number, first, second = int(words[0]), int(words[1], 16), int(words[2], 16)
    except (OSError, ValueError, IndexError):  # it is running, or access is denied
        return False
    if number in reads:
        return _is_terminal(pid, first, terminal)
    if number in selects:
        return first == 1 and _is_terminal(pid, 0, terminal)
    if number in polls and second == 1:
        return _is_terminal(pid, _polled(pid, first), terminal)
    return False


def _polled(pid: int, address: int) -> int:
    """Return the descriptor of the single record that a program polls."""
    with contextlib.suppress(OSError, struct.error), Path(f"/proc/{pid}/mem").open("rb", 0) as file:
        file.seek(address)
        fd: int = struct.unpack("i", file.read(4))[0]
        return fd
    return -1


def _is_terminal(pid: int, fd: int, terminal: int) -> bool:
    with contextlib.suppress(OSError):
        seen = Path(f"/proc/{pid}/fd/{fd}").stat()
        return stat.S_ISCHR(seen.st_mode) and seen.st_rdev in {terminal, _CONTROLLING}
    return False
