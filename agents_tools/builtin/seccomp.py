"""Drop privileges, capabilities and system calls of a thread before it starts a program."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import socket
import struct
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = [
    "LOCAL",
    "NAMESPACED",
    "drop_capabilities",
    "filter_calls",
    "install",
    "no_new_privileges",
    "supported",
]

LOCAL = tuple(int(getattr(socket, name, -1)) for name in ("AF_UNIX", "AF_NETLINK"))
"""The socket families that stay on the machine."""
NAMESPACED = (*LOCAL, int(socket.AF_INET), int(socket.AF_INET6))
"""The socket families that stay in a network namespace."""

_MACHINES = {  # name: (audit architecture, number of `socket`, number of `prlimit64`)
    "x86_64": (0xC000003E, 41, 302),
    "aarch64": (0xC00000B7, 198, 261),
}
_X32 = 0x40000000
_IO_URING = (425, 426, 427)
"""Setup, enter and register of io_uring, which can create sockets without `socket`."""

_LOAD, _EQUAL, _AT_LEAST, _RETURN = 0x20, 0x15, 0x35, 0x06
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000

_PR_SET_SECCOMP = 22
_MODE_FILTER = 2
_PR_SET_NO_NEW_PRIVS = 38
_CAPABILITIES = 0x20080522


class _Program(ctypes.Structure):
    _fields_ = (("length", ctypes.c_ushort), ("filter", ctypes.c_char_p))


def supported() -> bool:
    """Return whether there is a filter for this machine."""
    return sys.platform == "linux" and platform.machine() in _MACHINES


def filter_calls(*, families: Sequence[int] | None, own_limits: bool) -> bytes:
    """Return a filter that denies some system calls.

    Args:
        families: The allowed socket families, without io_uring; `None` allows all.
        own_limits: Whether to deny access to the limits of other processes; a process then
            uses 0 for itself.

    Returns:
        A program for `install`, and for bubblewrap.
    """
    architecture, make_socket, limit = _MACHINES[platform.machine()]
    program = [
        _step(_LOAD, value=_ARCHITECTURE),
        _step(_EQUAL, 1, 0, architecture),
        _step(_RETURN, value=_REFUSE | errno.ENOSYS),
        _step(_LOAD, value=_NUMBER),
        _step(_AT_LEAST, 0, 1, _X32),  # the same calls with other numbers
        _step(_RETURN, value=_REFUSE | errno.ENOSYS),
    ]
    if families is not None:
        program += _table([(call, _REFUSE | errno.EPERM) for call in _IO_URING])
        program += _when(make_socket, families, errno.EACCES)
    if own_limits:
        program += _when(limit, [0], errno.EPERM)
    return b"".join([*program, _step(_RETURN, value=_ALLOW)])


def no_new_privileges() -> None:
    """Prevent children of the calling thread from gaining privileges by setuid programs."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def install(program: bytes) -> None:
    """Install a filter for the calling thread and its future children.

    Args:
        program: The result of `filter_calls`.

    Raises:
        OSError: The kernel rejects it.
    """
    held = _Program(len(program) // 8, program)
    _prctl(_PR_SET_SECCOMP, _MODE_FILTER, ctypes.byref(held))


def drop_capabilities(keep: Sequence[int]) -> None:
    """Drop all capabilities of the calling thread except some.

    Args:
        keep: The numbers of the capabilities to keep.
    """
    header = struct.pack("=Ii", _CAPABILITIES, 0)
    data = ctypes.create_string_buffer(24)
    libc = ctypes.CDLL(None, use_errno=True)
    _check(libc.capget(header, data))
    words = list(struct.unpack("=6I", data.raw))
    for at, word in enumerate(words):
        mask = sum(1 << number % 32 for number in keep if number // 32 == at // 3)
        words[at] = word & mask if at % 3 != _INHERITABLE else 0
    _check(libc.capset(header, struct.pack("=6I", *words)))


_INHERITABLE = 2


def _step(code: int, then: int = 0, otherwise: int = 0, value: int = 0) -> bytes:
    return struct.pack("=HBBI", code, then, otherwise, value)


def _when(call: int, allowed: Sequence[int], error: int) -> list[bytes]:
    """Return the steps that decide on a system call by its first argument."""
    body = [
        _step(_LOAD, value=_FIRST_ARGUMENT),
        *_table([(value, _ALLOW) for value in allowed]),
        _step(_RETURN, value=_REFUSE | error),
    ]
    return [_step(_EQUAL, 0, len(body), call), *body]


def _table(rows: Sequence[tuple[int, int]]) -> list[bytes]:
    """Return steps that look up the loaded value in a table, or continue after it."""
    return [
        step
        for value, result in rows
        for step in (_step(_EQUAL, 0, 1, value), _step(_RETURN, value=result))
    ]


def _prctl(option: int, *arguments: object) -> None:
    padded = [*arguments, 0, 0, 0, 0][:4]
    as_words = [ctypes.c_ulong(one) if isinstance(one, int) else one for one in padded]
    _check(ctypes.CDLL(None, use_errno=True).prctl(ctypes.c_int(option), *as_words))


def _check(result: int) -> None:
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
