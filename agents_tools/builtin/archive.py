"""Unpack an untrusted archive: regular files and folders only, with limits on number and size."""

from __future__ import annotations

import bz2
import contextlib
import functools
import gzip
import os
import stat
import tarfile
import unicodedata
import zipfile
import zlib
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

from agents_tools.builtin.paths import PathNotAllowed, Root
from agents_tools.errors import UserValueError
from agents_tools.text.escape import describe_value

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["ArchiveError", "unpack"]

MOST_FILES = 2_000
MOST_BYTES = 100 * 1024 * 1024
MOST_RATIO = 100
_FREE_OF_RATIO = 64 * 1024
"""The unpacked size up to which the compression ratio is not checked."""
_CHUNK = 64 * 1024
_LONGEST_NAME = 255
_BAD = (tarfile.TarError, zipfile.BadZipFile, zlib.error, EOFError, OSError, RuntimeError)
_KINDS = (NotImplementedError, ValueError, *_BAD)


class ArchiveError(UserValueError):
    """A rejected archive; the message names the member and the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Member:
    name: str
    is_directory: bool
    executable: bool
    refusal: str | None
    size: int
    packed: int | None
    content: Any


def unpack(archive: Path, into: Path, *, max_bytes: int = MOST_BYTES) -> None:
    """Unpack an archive into an empty directory.

    Args:
        archive: A `.zip`, `.tar`, `.tar.gz` or `.tar.bz2` file; its content decides the format.
        into: The directory.
        max_bytes: The maximum total size of all files.

    Raises:
        ArchiveError: The file is not an archive, or a member is rejected. The caller removes the
            files unpacked so far.
    """
    try:
        packed = _packed_size(archive, max_bytes)
        with contextlib.ExitStack() as stack, Root(into) as root:
            _Extraction(archive, root, packed, max_bytes).run(_members(archive, stack, max_bytes))
    except (ArchiveError, PathNotAllowed):
        raise
    except _KINDS as error:
        raise ArchiveError(f"{archive.name} cannot be unpacked: {error}.") from None


def _packed_size(archive: Path, most: int) -> int:
    size = archive.stat().st_size
    if size > most:
        raise ArchiveError(f"{archive.name} is larger than {most:,} bytes.")
    return size


class _Extraction:
    """The extraction of one archive, with its counters."""

    def __init__(self, archive: Path, root: Root, packed: int, most: int) -> None:
        self._archive = archive.name
        self._root = root
        self._packed = packed
        self._most = most
        self._bytes = 0
        self._seen: dict[str, tuple[str, bool]] = {}
        self._files: set[str] = set()

    def run(self, members: Iterator[_Member]) -> None:
        for count, member in enumerate(members, 1):
            if count > MOST_FILES:
                raise ArchiveError(f"{self._archive} has more than {MOST_FILES:,} members.")
            parts = self._checked(member)
            if not parts:
                continue
            path = "/".join(parts)
            if member.is_directory:
                os.close(self._root.open_parent(f"{path}/x", make=True)[0])
            else:
                self._write(member, path)

    def _checked(self, member: _Member) -> list[str]:
        """Return the parts of a member's name after validation."""
        name = member.name
        if member.refusal is not None:
            raise self._refused(member, member.refusal)
        if not name or "\0" in name or "\\" in name or ":" in name or not name.isprintable():
            raise self._refused(member, "its name contains a forbidden character")
        if name.startswith("/"):
            raise self._refused(member, "its path is absolute")
        parts = [part for part in name.split("/") if part not in {"", "."}]
        if ".." in parts:
            raise self._refused(member, "its path contains '..'")
        if any(
            len(os.fsencode(part)) > _LONGEST_NAME or part != part.rstrip(". ") for part in parts
        ):
            raise self._refused(member, "its name is too long, or ends with a dot or a blank")
        if len(parts) > _LONGEST_NAME // 8:
            raise self._refused(member, "it is nested too deeply")
        self._check_clash(member, parts)
        return parts

    def _check_clash(self, member: _Member, parts: list[str]) -> None:
        """Reject a name that equals a previous one on other file systems."""
        for length in range(1, len(parts) + 1):
            path = "/".join(parts[:length])
            is_directory = member.is_directory or length < len(parts)
            key = unicodedata.normalize("NFC", unicodedata.normalize("NFC", path).casefold())
            known, was_directory = self._seen.setdefault(key, (path, is_directory))
            again = length == len(parts) and not member.is_directory and path in self._files
            if known != path or was_directory != is_directory or again:
                raise self._refused(member, f"it has the same name as {describe_value(known)}")
        if not member.is_directory:
            self._files.add("/".join(parts))

    def _write(self, member: _Member, path: str) -> None:
        self._check_size(member, member.size)
        parent, name = self._root.open_parent(path, make=True)
        try:
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
            mode = 0o755 if member.executable else 0o644
            fd = os.open(name, flags, mode, dir_fd=parent)
        finally:
            os.close(parent)
        written = 0
        with os.fdopen(fd, "wb") as file, member.content() as content:
            while chunk := content.read(_CHUNK):
                written += len(chunk)
                self._check_size(member, written)
                file.write(chunk)
        self._bytes += written

    def _check_size(self, member: _Member, size: int) -> None:
        total = self._bytes + size
        if total > self._most:
            raise ArchiveError(f"{self._archive} unpacks to more than {self._most:,} bytes.")
        if member.packed is None:
            too_much = total > max(_FREE_OF_RATIO, MOST_RATIO * self._packed)
        else:
            too_much = size > max(_FREE_OF_RATIO, MOST_RATIO * member.packed)
        if too_much:
            raise self._refused(member, f"it unpacks to more than {MOST_RATIO} times its size")

    def _refused(self, member: _Member, why: str) -> ArchiveError:
        return ArchiveError(
            f"{self._archive} is not unpacked: {why} ({describe_value(member.name)})."
        )


def _members(archive: Path, stack: contextlib.ExitStack, most: int) -> Iterator[_Member]:
    with archive.open("rb") as file:
        start = file.read(4)
    if start.startswith(b"PK"):
        return _zip_members(stack.enter_context(zipfile.ZipFile(archive)))
    opened: Any = stack.enter_context(archive.open("rb"))
    if start.startswith(b"\x1f\x8b"):
        opened = stack.enter_context(gzip.GzipFile(fileobj=opened))
    elif start.startswith(b"BZh"):
        opened = stack.enter_context(bz2.BZ2File(opened))
    limited: Any = _LimitedReader(opened, most + MOST_FILES * 4 * tarfile.BLOCKSIZE)
    return _tar_members(stack.enter_context(tarfile.open(fileobj=limited, mode="r|")))


class _LimitedReader:
    """A file that raises an error after a maximum number of bytes."""

    def __init__(self, file: IO[bytes], most: int) -> None:
        self._file = file
        self._left = most

    def read(self, size: int) -> bytes:
        """Read the next bytes."""
        data = self._file.read(min(size, self._left + 1))
        self._left -= len(data)
        if self._left < 0:
            raise ArchiveError("The archive unpacks to more bytes than allowed.")
        return data


def _zip_members(archive: zipfile.ZipFile) -> Iterator[_Member]:
    for info in archive.infolist():
        mode = info.external_attr >> 16
        kind = stat.S_IFMT(mode)
        refusal = None
        if kind not in {0, stat.S_IFREG, stat.S_IFDIR}:
            refusal = "it is a link or a device"
        elif info.flag_bits & 0x1:
            refusal = "it is encrypted"
        elif info.compress_type not in {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}:
            refusal = "its compression method is not supported"
        yield _Member(
            name=info.orig_filename,
            is_directory=info.is_dir(),
            executable=bool(mode & 0o111),
            refusal=refusal,
            size=info.file_size,
            packed=info.compress_size,
            content=functools.partial(archive.open, info),
        )


def _tar_members(archive: tarfile.TarFile) -> Iterator[_Member]:
    for info in archive:
        yield _Member(
            name=info.name,
            is_directory=info.isdir(),
            executable=bool(info.mode & 0o111),
            refusal=None if info.isreg() or info.isdir() else "it is a link or a device",
            size=info.size,
            packed=None,
            content=functools.partial(archive.extractfile, info),
        )
