"""A disk for SQLite that fails on demand, and records the writes that reach it, in order.

It stands between SQLite and the disk: the default VFS of SQLite, whose writes, syncs and cuts go
through functions of ours. Every connection of the process that is opened meanwhile uses it. A sync
is noted and goes no further: this machine keeps its power, and a real sync can take a second.
"""

from __future__ import annotations

import ctypes
import sqlite3
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator

__all__ = ["FULL", "IO_ERROR", "Disk", "Step", "failing_disk", "has_disk"]

FULL = sqlite3.SQLITE_FULL
IO_ERROR = sqlite3.SQLITE_IOERR

_file = ctypes.c_void_p
_int = ctypes.c_int
_long = ctypes.c_longlong
_METHODS: list[tuple[str, Any]] = [
    ("close", ctypes.CFUNCTYPE(_int, _file)),
    ("read", ctypes.CFUNCTYPE(_int, _file, ctypes.c_void_p, _int, _long)),
    ("write", ctypes.CFUNCTYPE(_int, _file, ctypes.c_void_p, _int, _long)),
    ("truncate", ctypes.CFUNCTYPE(_int, _file, _long)),
    ("sync", ctypes.CFUNCTYPE(_int, _file, _int)),
]
_OTHERS = 14
"""Pointers behind those: of them nothing is changed."""
_OPEN = ctypes.CFUNCTYPE(_int, ctypes.c_void_p, ctypes.c_void_p, _file, _int, ctypes.POINTER(_int))


class _Methods(ctypes.Structure):
    _fields_ = [
        ("version", _int),
        *_METHODS,
        ("others", ctypes.c_void_p * _OTHERS),
    ]


class _Vfs(ctypes.Structure):
    _fields_ = [
        ("version", _int),
        ("size", _int),
        ("longest", _int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", ctypes.c_void_p),
        ("others", ctypes.c_void_p * 17),
    ]


@dataclass(frozen=True, slots=True)
class Step:
    """One thing that reached the disk.

    Attributes:
        kind: `write`, `truncate` or `sync`; `note` for what a test put in.
        file: The name of the file; for a note what it says.
        at: Where in the file it was written; for a cut the new length.
        data: What was written.
    """

    kind: str
    file: str
    at: int = 0
    data: bytes = b""


@dataclass(slots=True)
class Disk:
    """What happened, and what is to fail.

    Attributes:
        steps: What reached the disk.
        fails: Asked for each step whether it fails: with which code, or 0.
    """

    steps: list[Step] = field(default_factory=list[Step])
    fails: Callable[[Step], int] = lambda _: 0

    def note(self, text: str) -> None:
        """Note what a test knows at this moment."""
        self.steps.append(Step("note", text))

    def step(self, step: Step, act: Callable[[], int]) -> int:
        """Let a step pass, or fail."""
        code = self.fails(step)
        if code:
            return code
        self.steps.append(step)
        return act()


def has_disk() -> bool:
    """Whether this Python lets SQLite's functions be called: it may have them built in."""
    return _library() is not None


@contextmanager
def failing_disk() -> Generator[Disk]:
    """Put the disk in place while the block runs."""
    library = _library()
    assert library is not None
    disk = Disk()
    real = ctypes.cast(library.sqlite3_vfs_find(None), ctypes.POINTER(_Vfs))
    ours = _Vfs()
    ctypes.memmove(ctypes.byref(ours), real, ctypes.sizeof(_Vfs))
    tables = _Tables(disk)
    opened = ctypes.cast(real.contents.open, _OPEN)

    def open_file(vfs: Any, name: Any, file: Any, flags: Any, told: Any) -> int:
        code = opened(ctypes.addressof(real.contents), name, file, flags, told)
        if code == sqlite3.SQLITE_OK and name:
            path = ctypes.string_at(name).decode()
            tables.take(file, Path(path).name)
        return code

    callback = _OPEN(open_file)
    ours.open = ctypes.cast(callback, ctypes.c_void_p)
    ours.name = b"failing"
    library.sqlite3_vfs_register(ctypes.byref(ours), 1)
    try:
        yield disk
    finally:
        library.sqlite3_vfs_register(real, 1)
        library.sqlite3_vfs_unregister(ctypes.byref(ours))
        _kept.append((ours, callback, tables))  # files may be open that point here


_kept: list[object] = []


class _Tables:
    """The methods of opened files, replaced by ours; one table for each kind of file."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._names: dict[int, str] = {}
        self._tables: dict[int, tuple[_Methods, list[Any]]] = {}

    def take(self, file: int, name: str) -> None:
        """Put our methods in the place of those of a file that was just opened."""
        self._names[file] = name
        slot = ctypes.cast(file, ctypes.POINTER(ctypes.c_void_p))
        address = slot[0]
        if not address:
            return
        if address not in self._tables:
            self._tables[address] = self._replaced(address)
        slot[0] = ctypes.addressof(self._tables[address][0])

    def _replaced(self, address: int) -> tuple[_Methods, list[Any]]:
        real = ctypes.cast(address, ctypes.POINTER(_Methods)).contents
        table = _Methods()
        ctypes.memmove(ctypes.byref(table), ctypes.byref(real), ctypes.sizeof(_Methods))
        kinds = dict(_METHODS)
        disk, names = self._disk, self._names

        def write(file: int, data: int, amount: int, at: int) -> int:
            step = Step("write", names[file], at, ctypes.string_at(data, amount))
            return disk.step(step, lambda: real.write(file, data, amount, at))

        def truncate(file: int, length: int) -> int:
            step = Step("truncate", names[file], length)
            return disk.step(step, lambda: real.truncate(file, length))

        def sync(file: int, flags: int) -> int:
            return disk.step(Step("sync", names[file]), lambda: sqlite3.SQLITE_OK)

        kept = [kinds["write"](write), kinds["truncate"](truncate), kinds["sync"](sync)]
        table.write, table.truncate, table.sync = kept
        return table, [kept, real]


def _library() -> Any:
    import _sqlite3

    try:
        library = ctypes.CDLL(_sqlite3.__file__)
        library.sqlite3_vfs_find.restype = ctypes.c_void_p
    except (AttributeError, OSError):
        return None
    library.sqlite3_vfs_find.argtypes = [ctypes.c_char_p]
    library.sqlite3_vfs_register.argtypes = [ctypes.c_void_p, _int]
    library.sqlite3_vfs_unregister.argtypes = [ctypes.c_void_p]
    return library
