"""Messages on a byte stream: four bytes of length, then JSON."""

from __future__ import annotations

import json
import struct
from typing import Any, Final, cast

__all__ = ["MAX_FRAME", "FrameReader", "FrameTooLargeError", "encode"]

MAX_FRAME: Final = 64 << 20
"""The maximum size of a message, in bytes."""

_HEAD: Final = struct.Struct(">I")


_to_text: Final = json.JSONEncoder(separators=(",", ":")).encode


class FrameTooLargeError(ValueError):
    """A message is longer than `MAX_FRAME`."""


def encode(message: dict[str, Any]) -> bytes:
    """Return the bytes of a message.

    Raises:
        FrameTooLargeError: The message is longer than `MAX_FRAME`.
    """
    body = _to_text(message).encode()
    if len(body) > MAX_FRAME:
        raise FrameTooLargeError(f"expected at most {MAX_FRAME:,} bytes, got {len(body):,}")
    return _HEAD.pack(len(body)) + body


class FrameReader:
    """Splits a stream of bytes into messages."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Append bytes that were received."""
        self._buffer += data

    def next(self) -> dict[str, Any] | None:
        """Return the next message, or `None` if it is not complete.

        Raises:
            FrameTooLargeError: The message is longer than `MAX_FRAME`.
            ValueError: The message is not a JSON object.
        """
        buffer = self._buffer
        if len(buffer) < _HEAD.size:
            return None
        (length,) = _HEAD.unpack_from(buffer)
        if length > MAX_FRAME:
            raise FrameTooLargeError(f"expected at most {MAX_FRAME:,} bytes, got {length:,}")
        end = _HEAD.size + length
        if len(buffer) < end:
            return None
        try:
            message: Any = json.loads(buffer[_HEAD.size : end].decode())
        except RecursionError:
            raise ValueError("the message is nested too deeply") from None
        if not isinstance(message, dict):
            raise ValueError("the message is not an object")  # noqa: TRY004 - like invalid JSON
        del buffer[:end]
        return cast("dict[str, Any]", message)
