"""Landlock by system calls: a thread and its children can write only in some directories.

They can read everything except terminals, where the user types passwords.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import stat
import sys
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["ENOUGH", "SIGNALS", "abi", "make_ruleset", "restrict_thread"]

ENOUGH = 3
"""The first version that keeps files outside from being truncated (Linux 6.2)."""
_TCP = 4
_DEVICES = 5
"""The first version that handles the control of devices, such as the modes of a terminal."""
SIGNALS = 6
"""The first version that keeps signals and abstract sockets inside (Linux 6.12)."""

_CREATE, _ADD, _RESTRICT = 444, 445, 446
_VERSION = 1
_BENEATH = 1
_WRITE_FILE = 1 << 1
_READ_FILE = 1 << 2
_TRUNCATE = 1 << 14
_CONTROL_DEVICE = 1 << 15
_CHANGE_DIRECTORY = sum(1 << bit for bit in range(4, 14))
_TERMINALS = ("console", "hvc", "pts", "tty", "vcs", "xvc")
"""The first letters of the names of terminals in `/dev`."""
_NET = 0b11
_SCOPED = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (
        ("fs", ctypes.c_uint64),
        ("net", ctypes.c_uint64),
        ("scoped", ctypes.c_uint64),
    )


class _PathBeneath(ctypes.Structure):
    _pack_ = 1
    _layout_ = "ms"
    _fields_ = (("allowed", ctypes.c_uint64), ("parent", ctypes.c_int32))


def abi() -> int:
    """Return the version of the kernel, or 0 without Landlock."""
    if sys.platform != "linux":
        return 0
    try:
        return _call(_CREATE, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    except OSError:
        return 0


def make_ruleset(writable: Sequence[str], *, network: bool) -> int:
    """Create a ruleset: writes only beneath some paths, signals only to own processes.

    Everything can be read except terminals. Rules can only allow, so there is one for each entry
    of `/` and `/dev`; reading from an entry that is created later is denied.

    Args:
        writable: Directories, files and terminals; missing ones are skipped.
        network: Whether TCP stays allowed.

    Returns:
        A descriptor for `restrict_thread`; the caller closes it.

    Raises:
        OSError: The kernel rejects the rules.
    """
    version = abi()
    files = _WRITE_FILE | _READ_FILE | _TRUNCATE
    if version >= _DEVICES:
        files |= _CONTROL_DEVICE
    rules = _Ruleset(
        fs=files | _CHANGE_DIRECTORY,
        net=0 if network or version < _TCP else _NET,
        scoped=_SCOPED if version >= SIGNALS else 0,
    )
    size = 24 if version >= SIGNALS else 16 if version >= _TCP else 8
    ruleset = _call(_CREATE, ctypes.byref(rules), ctypes.c_size_t(size), ctypes.c_uint32(0))
    try:
        for path in writable:
            _allow(ruleset, path, files, files | _CHANGE_DIRECTORY)
        for path in _readable():
            _allow(ruleset, path, _READ_FILE, _READ_FILE)
    except OSError:
        os.close(ruleset)
        raise
    return ruleset


def restrict_thread(ruleset: int) -> None:
    """Restrict the calling thread and its future children permanently.

    Args:
        ruleset: The result of `make_ruleset`.

    Raises:
        OSError: The kernel denies it; call `no_new_privileges` first.
    """
    _call(_RESTRICT, ctypes.c_int(ruleset), ctypes.c_uint32(0))


def _readable() -> Iterator[str]:
    """Return the paths beneath which everything can be read."""
    yield from (str(one) for one in Path("/").iterdir() if one.name != "dev")
    for one in Path("/dev").iterdir():
        # The targets of links are entries themselves, or descriptors such as `/dev/stdin`.
        if not one.name.startswith(_TERMINALS) and not one.is_symlink():
            yield str(one)


def _allow(ruleset: int, path: str, file_rights: int, directory_rights: int) -> None:
    with contextlib.suppress(FileNotFoundError, PermissionError):
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
        try:
            is_directory = stat.S_ISDIR(os.fstat(fd).st_mode)
            rule = _PathBeneath(
                allowed=directory_rights if is_directory else file_rights, parent=fd
            )
            _call(_ADD, ctypes.c_int(ruleset), _BENEATH, ctypes.byref(rule), ctypes.c_uint32(0))
        finally:
            os.close(fd)


def _call(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    result = int(libc.syscall(ctypes.c_long(number), *arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    return result
