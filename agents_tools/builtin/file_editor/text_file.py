"""The storage format of a text file: encoding, byte order mark, line ends, line offsets."""

from __future__ import annotations

import bisect
import codecs
import os
from dataclasses import dataclass, field
from typing import Protocol

from agents_tools.errors import ToolError

__all__ = [
    "ByteSource",
    "BytesSource",
    "FileChangedError",
    "FileSource",
    "TextFormat",
    "TextScan",
    "binary_kind",
    "body_of",
    "scan",
]

_BLOCK = 1 << 16
_HEAD = 8192
_HIGH = bytes(range(128, 256))
_UNDEFINED = (b"\x81", b"\x8d", b"\x8f", b"\x90", b"\x9d")
"""Bytes that are undefined in cp1252."""
_WIDE = (  # longer marks first: the UTF-32 mark begins with the UTF-16 mark
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS = (
    (b"%PDF-", "a PDF document"),
    (b"PK\x03\x04", "a ZIP archive, or a document stored as one"),
    (b"\x1f\x8b", "gzip data"),
    (b"BZh", "bzip2 data"),
    (b"\xfd7zXZ\0", "xz data"),
    (b"\x28\xb5\x2f\xfd", "Zstandard data"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x7fELF", "an ELF program"),
    (b"MZ", "a Windows program"),
    (b"\xca\xfe\xba\xbe", "compiled Java or a Mach-O program"),
    (b"\xcf\xfa\xed\xfe", "a Mach-O program"),
    (b"\0asm", "a WebAssembly module"),
    (b"SQLite format 3\0", "a SQLite database"),
    (b"\x89PNG\r\n\x1a\n", "a PNG image"),
    (b"\xff\xd8\xff", "a JPEG image"),
    (b"GIF8", "a GIF image"),
    (b"ID3", "MP3 audio"),
    (b"OggS", "Ogg audio"),
)
_TEXT_TOO = frozenset({b"BZh", b"MZ", b"GIF8", b"ID3", b"OggS"})
"""Signatures that a text file can begin with as well."""
_ODD = bytes(set(range(32)) - set(b"\t\n\r\f\b\x1b")) + b"\x7f"


class FileChangedError(Exception):
    """A file has changed since the read began."""


class ByteSource(Protocol):
    """Bytes that can be read in pieces."""

    size: int

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer at the end."""
        ...


class BytesSource:
    """Bytes in memory, read in pieces."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self.size = len(data)

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer at the end."""
        return self._data[start : start + length]


class FileSource:
    """An open file, read in pieces; `FileChangedError` is raised if it was truncated."""

    def __init__(self, fd: int, size: int) -> None:
        self._fd = fd
        self.size = size

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer at the end."""
        pieces: list[bytes] = []
        length = min(length, self.size - start)
        while length > 0:
            piece = os.pread(self._fd, length, start)
            if not piece:
                raise FileChangedError
            pieces.append(piece)
            start += len(piece)
            length -= len(piece)
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)


@dataclass(frozen=True, slots=True)
class TextFormat:
    r"""The storage format of a text.

    Edits work on a body: bytes in an ASCII-compatible encoding, with line ends that end with
    `\\n`, and without a byte order mark. Bytes that stay the same in the body stay the same in
    the file.

    Attributes:
        codec: The encoding of the body.
        bom: The byte order mark of the file.
        wide: The encoding of the file if it is not ASCII-compatible.
        strays: The number of invalid bytes in a UTF-8 file.
        returns: Whether lines end with a single carriage return.
    """

    codec: str = "utf-8"
    bom: bytes = b""
    wide: str = ""
    strays: int = 0
    returns: bool = False

    @property
    def name(self) -> str:
        """The encoding, for messages."""
        name = (self.wide or self.codec).upper().removesuffix("-LE").removesuffix("-BE")
        if self.codec == "cp1252":
            name = "cp1252"
        if self.bom and not self.wide:
            name += " with BOM"
        return f"{name} with {self.strays:,} bytes that are not" if self.strays else name

    @property
    def converted(self) -> bool:
        """Return whether the body differs from the file, apart from the byte order mark."""
        return bool(self.wide) or self.returns

    def body(self, raw: bytes) -> bytes:
        """Return the body of the content of a file."""
        body = raw[len(self.bom) :] if self.bom else raw
        if self.wide:
            try:
                text = body.decode(self.wide, "surrogatepass")
            except UnicodeDecodeError:  # the scan has decoded it before
                raise FileChangedError from None
            body = text.encode("utf-8", "surrogatepass")
        return body.replace(b"\r", b"\n") if self.returns else body

    def raw(self, body: bytes) -> bytes:
        """Return the content of a file with a body."""
        if self.returns:
            body = body.replace(b"\n", b"\r")
        if self.wide:
            body = body.decode("utf-8", "surrogatepass").encode(self.wide, "surrogatepass")
        return self.bom + body if self.bom else body

    def decode(self, data: bytes) -> str:
        """Return the text of a part of the body; invalid bytes become lone surrogates."""
        if self.wide:
            try:
                return data.decode("utf-8", "surrogatepass")
            except UnicodeDecodeError:  # it begins or ends within a character
                return data.decode("utf-8", "surrogateescape")
        return data.decode(self.codec, "surrogateescape")

    def decode_start(self, data: bytes, length: int) -> str:
        """Return the text of the start of a part of the body without splitting a character.

        Args:
            data: The part.
            length: The number of bytes to decode.
        """
        if len(data) <= length:
            return self.decode(data)
        end = length
        if self.codec == "utf-8":
            while end > max(length - 3, 0) and data[end] & 0xC0 == 0x80:  # noqa: PLR2004 - continuation byte
                end -= 1
            if data[end] & 0xC0 == 0x80:  # noqa: PLR2004 - not a character
                end = length
        return self.decode(data[:end])

    def encode(self, text: str, subject: str) -> bytes:
        """Return the bytes of a text in the body.

        Args:
            text: The text.
            subject: The subject of the error message.

        Raises:
            ToolError: It cannot be stored this way.
        """
        try:
            return text.encode(self.codec)
        except UnicodeEncodeError as error:
            character = text[error.start]
            shown = f"U+{ord(character):04X}"
            if character.isprintable():
                shown = f"{character!r} ({shown})"
            advice = "Leave it out."
            if self.codec != "utf-8":
                advice = (
                    "Use other characters, or view the file and write all of it with create, "
                    "which stores UTF-8."
                )
            raise ToolError(
                f"{subject} contains {shown}, which cannot be stored: the file is {self.name}. "
                f"{advice}"
            ) from None


@dataclass(slots=True)
class TextScan:
    """The format and line offsets of a text.

    Attributes:
        form: The storage format.
        size: The size of the body in bytes.
        ends: The number of line ends.
        crlf: The number of CRLF line ends.
        open_end: Whether the last line has no line end.
        before: For each block, the number of line ends before it.
    """

    form: TextFormat
    size: int = 0
    ends: int = 0
    crlf: int = 0
    open_end: bool = False
    before: list[int] = field(default_factory=list[int])

    @property
    def lines(self) -> int:
        """The number of lines."""
        return self.ends + self.open_end

    def start(self, line: int, source: ByteSource) -> int:
        """Return the offset of a line in the body.

        Args:
            line: Its number, from 1; one past the last line is the end.
            source: The body.
        """
        if line <= 1:
            return 0
        if line > self.lines:
            return self.size
        block = bisect.bisect_left(self.before, line - 1) - 1
        data = source.read(block * _BLOCK, _BLOCK)
        at = -1
        for _ in range(line - 1 - self.before[block]):
            at = data.find(b"\n", at + 1)
            if at < 0:
                raise FileChangedError
        return block * _BLOCK + at + 1


class _BodyBytes:
    """The bytes after the byte order mark."""

    def __init__(self, source: ByteSource, mark: int) -> None:
        self._source = source
        self._mark = mark
        self.size = max(source.size - mark, 0)

    def read(self, start: int, length: int) -> bytes:
        """Return the bytes from a place on, fewer at the end."""
        return self._source.read(start + self._mark, length)


def body_of(source: ByteSource, form: TextFormat) -> ByteSource:
    """Return a source that reads the body of a file in pieces.

    Args:
        source: The content of the file.
        form: The storage format.
    """
    if form.converted:
        return BytesSource(form.body(source.read(0, source.size)))
    return _BodyBytes(source, len(form.bom)) if form.bom else source


def scan(source: ByteSource) -> TextScan:
    """Detect the storage format and the line offsets of a text.

    Args:
        source: The content of a file that is not binary. It is read block by block.

    Raises:
        FileChangedError: The file has changed since it was opened.
    """
    head = source.read(0, 4)
    form = TextFormat(bom=codecs.BOM_UTF8 if head.startswith(codecs.BOM_UTF8) else b"")
    for bom, codec in _WIDE:
        if head.startswith(bom):
            form = TextFormat(bom=bom, wide=codec)
            break
    shape = _scan(body_of(source, form), form)
    if shape.form.returns:
        shape = _scan(body_of(source, shape.form), shape.form)
    return shape


def _scan(body: ByteSource, form: TextFormat) -> TextScan:
    guess = _Guess()
    shape = TextScan(form, body.size)
    last = b""
    returns = form.returns
    for at in range(0, body.size, _BLOCK):
        block = body.read(at, _BLOCK)
        shape.before.append(shape.ends)
        shape.ends += block.count(b"\n")
        if b"\r" in block or last == b"\r":
            returns = True
            shape.crlf += (last + block).count(b"\r\n")
        guess.look(block)
        last = block[-1:]
    shape.open_end = bool(last) and last != b"\n"
    codec, strays = guess.result()
    if form.wide:
        codec, strays = "utf-8", 0
    returns = form.returns or (returns and not shape.ends)
    shape.form = TextFormat(codec, form.bom, form.wide, strays, returns)
    return shape


class _Guess:
    """Detects the encoding of a text from its bytes."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("surrogateescape")
        self._wrong = self._right = 0
        self._undefined = self._pending = False

    def look(self, block: bytes) -> None:
        """Process the next bytes."""
        if block.isascii() and not self._pending:
            return
        self._count(self._decoder.decode(block), block)
        self._pending = bool(self._decoder.getstate()[0])
        self._undefined = self._undefined or any(byte in block for byte in _UNDEFINED)

    def _count(self, text: str, block: bytes) -> None:
        beyond = len(text) - len(block.translate(None, _HIGH))
        try:
            text.encode()
            wrong = 0
        except UnicodeEncodeError:
            wrong = len(text) - len(text.encode(errors="ignore").decode())
        self._wrong += wrong
        self._right += beyond - wrong

    def result(self) -> tuple[str, int]:
        """Return the encoding and the number of bytes invalid in it."""
        self._count(self._decoder.decode(b"", final=True), b"")
        if not self._wrong or self._right > self._wrong:
            return "utf-8", self._wrong
        return "latin-1" if self._undefined else "cp1252", 0


def binary_kind(source: ByteSource) -> str | None:
    """Return the kind of a binary file, or `None` for a text file.

    Args:
        source: The content of the file; only its start is read.
    """
    head = source.read(0, _HEAD)
    for bom, codec in _WIDE:
        if head.startswith(bom):
            return _not_wide(source, bom, codec)
    odd = len(head) - len(head.translate(None, _ODD))
    binary = b"\0" in head or odd * 10 > len(head)
    for mark, kind in _KINDS:
        if head.startswith(mark) and (binary or mark not in _TEXT_TOO):
            return kind
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "a WebP image"
    return "binary data" if binary else None


def _not_wide(source: ByteSource, bom: bytes, codec: str) -> str | None:
    try:
        source.read(len(bom), source.size).decode(codec, "surrogatepass")
    except UnicodeDecodeError:
        return f"binary data with the mark of {codec[:6].upper()}"
    return None
