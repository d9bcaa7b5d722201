"""The output of a command: its start and end in memory, all of it in a file."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from collections import deque
from dataclasses import dataclass
from pathlib import Path

from agents_tools.builtin.terminal.ansi import clean, unfinished
from agents_tools.concurrency import processes

__all__ = ["OutputExcerpt", "OutputFiles", "TerminalOutput"]

_HEAD = 1 << 20
_TAIL = 1 << 20
_LONGEST_LINE = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputExcerpt:
    """The shown part of an output.

    Attributes:
        text: Plain text.
        truncated: Whether a part is omitted.
        file: The file with the whole raw output; `None` if nothing is omitted.
    """

    text: str
    truncated: bool = False
    file: str | None = None


class OutputFiles:
    """The private directory of the files with whole outputs.

    Args:
        limit: The maximum total size in bytes. The oldest files are removed above it.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self.path = Path(tempfile.mkdtemp(prefix="agents-tools-output-")).resolve()
        processes.remove_at_exit(self.path)
        self._sizes: dict[Path, int] = {}
        self._count = 0

    def make(self) -> tuple[Path, int]:
        """Create a file, and return its path and a writable descriptor."""
        self._count += 1
        path = self.path / f"output-{self._count}.txt"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
        fd = os.open(path, flags, 0o600)
        self._sizes[path] = 0
        return path, fd

    def grown(self, path: Path, size: int) -> int:
        """Reserve space for a file, and return the number of bytes it can grow."""
        others = sum(self._sizes.values()) - self._sizes[path]
        while others + self._sizes[path] + size > self.limit and len(self._sizes) > 1:
            oldest = next(one for one in self._sizes if one != path)
            others -= self._sizes[oldest]
            self.remove(oldest)
        room = max(0, min(size, self.limit - self._sizes[path] - others))
        self._sizes[path] += room
        return room

    def remove(self, path: Path) -> None:
        """Remove a file."""
        self._sizes.pop(path, None)
        with contextlib.suppress(OSError):
            path.unlink()

    def close(self) -> None:
        """Remove all files."""
        shutil.rmtree(self.path, ignore_errors=True)
        processes.cancel_removal(self.path)


class TerminalOutput:
    """The output since the last call of `take`.

    Args:
        files: Stores output that is too long to show.
    """

    def __init__(self, files: OutputFiles) -> None:
        self._files = files
        self._held = b""
        self._start()

    def _start(self) -> None:
        self.total = 0
        self.full = False
        self._head = bytearray()
        self._tail: deque[bytes] = deque()
        self._tail_size = 0
        self._path: Path | None = None
        self._fd = -1
        held, self._held = self._held, b""
        if held:
            self.add(held)

    def add(self, data: bytes) -> None:
        """Add output."""
        self.total += len(data)
        room = _HEAD - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        if not data:
            return
        if self._fd < 0:
            self._save(bytes(self._head))
        self._save(data)
        self._tail.append(data)
        self._tail_size += len(data)
        while self._tail_size - len(self._tail[0]) >= _TAIL:
            self._tail_size -= len(self._tail.popleft())

    def take(self, limit: int, *, more: bool = False) -> OutputExcerpt:
        """Return an excerpt of the output, and start over.

        Args:
            limit: The maximum number of characters.
            more: Whether the command continues, so that an incomplete character is kept for later.
        """
        try:
            return self._shown(limit, more=more)
        finally:
            self._close()
            self._start()

    def close(self) -> None:
        """Close the file; it stays until the directory is removed."""
        self._close()

    def _shown(self, limit: int, *, more: bool) -> OutputExcerpt:
        tail = b"".join(self._tail)
        if more:
            last = tail or bytes(self._head)
            held = unfinished(last)
            self._held = last[len(last) - held :]
            if tail:
                tail = tail[: len(tail) - held]
            else:
                del self._head[len(self._head) - held :]
        if self.total <= _HEAD + self._tail_size:
            text = clean(bytes(self._head) + tail)
            if len(text) <= limit:
                self._forget()
                return OutputExcerpt(text=text)
            head, rest = text, text
            count = f"{len(text):,} characters"
        else:
            head, rest = clean(bytes(self._head)), clean(_from_line(tail))
            count = f"{self.total:,} bytes"
        if self._path is None:
            self._save(bytes(self._head))
        return self._cut(head, rest, limit, count)

    def _cut(self, head: str, rest: str, limit: int, count: str) -> OutputExcerpt:
        first = head[: limit // 2]
        last = rest[max(0, len(rest) - (limit - limit // 2)) :]
        where = f"all of it is in {self._path}"
        if self.full:
            where = f"the first {self._files.limit:,} bytes are in {self._path}"
        notice = (
            f"[of {count}, the first {len(first):,} and the last {len(last):,} characters are "
            f"shown; {where}]"
        )
        glue = "" if first.endswith("\n") or not first else "\n"
        text = f"{first}{glue}{notice}\n{last}"
        return OutputExcerpt(text=text, truncated=True, file=str(self._path))

    def _save(self, data: bytes) -> None:
        if self._path is None:
            self._path, self._fd = self._files.make()
        room = self._files.grown(self._path, len(data))
        self.full = self.full or room < len(data)
        view = memoryview(data)[:room]
        try:
            while view:
                view = view[os.write(self._fd, view) :]
        except OSError:  # the disk is full
            self.full = True

    def _forget(self) -> None:
        if self._path is not None:
            self._files.remove(self._path)

    def _close(self) -> None:
        if self._fd >= 0:
            os.close(self._fd)
            self._fd = -1


def _from_line(data: bytes) -> bytes:
    """Drop the incomplete line or character at the start of the tail."""
    end = data.find(b"\n", 0, _LONGEST_LINE)
    if end >= 0:
        return data[end + 1 :]
    start = 0
    while start < min(3, len(data)) and 0x80 <= data[start] < 0xC0:  # noqa: PLR2004 - continuation
        start += 1
    return data[start:]
