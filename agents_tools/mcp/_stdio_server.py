"""Standard input and output as a server's wire: every line is answered, nothing else gets on it.

While it serves, descriptor 0 is empty and descriptor 1 is stderr, so that what a tool prints or a
child of it writes cannot corrupt the wire.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import sys
import threading
from typing import TYPE_CHECKING, Any

from agents_tools._json import JsonFault, JsonLimits, check_bounds
from agents_tools.mcp._shapes import an_object
from agents_tools.mcp._streams import Sink, Source

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import BinaryIO

__all__ = ["stdio_streams"]

_LIMITS = JsonLimits(size=16 << 20, depth=200, nodes=1_000_000)
_ID = re.compile(r'"id"\s*:\s*(-?\d{1,18}|"(?:[^"\\]|\\.){1,200}")')
_HEAD = 400
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
_WAITING = 1_000
"""Lines that are read ahead of their handling."""


@contextlib.asynccontextmanager
async def stdio_streams() -> AsyncGenerator[tuple[Any, Any]]:
    """Give the two streams of messages that a session works with, over stdin and stdout."""
    with _claimed() as (source, sink):
        lines = _Lines(source, sink)
        lines.start()
        try:
            yield lines, _Sink(sink)
        finally:
            lines.stop()


@contextlib.contextmanager
def _claimed() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Take descriptors 0 and 1 away from everybody else, for as long as this lasts."""
    sys.stdout.flush()
    kept_in, kept_out = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        # Not closed with the file: a thread may still wait in a read of it.
        source = os.fdopen(kept_in, "rb", closefd=False)
        sink = os.fdopen(kept_out, "wb", closefd=False)
        yield source, sink
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(kept_in, 0)
        os.dup2(kept_out, 1)
        os.close(nothing)


class _Lines(Source):
    """The messages of a client; what is no message is answered here."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(_WAITING)
        self._stopped = False

    def start(self) -> None:
        """Read in a thread of its own, which ends with the process."""
        threading.Thread(target=self._read, name="agents-tools-stdin", daemon=True).start()

    def stop(self) -> None:
        """Take no more lines."""
        self._stopped = True
        self._room.release()

    def _read(self) -> None:
        while not self._stopped:
            self._room.acquire()
            try:
                line = self._source.readline()
            except (OSError, ValueError):
                line = b""
            with contextlib.suppress(RuntimeError):  # the loop is closed
                self._loop.call_soon_threadsafe(self._queue.put_nowait, line or None)
            if not line:
                return

    async def __anext__(self) -> Any:
        while True:
            line = await self._queue.get()
            if line is None:
                self._queue.put_nowait(None)  # the end stays the end, however often it is read
                raise StopAsyncIteration
            self._room.release()
            if not line.strip():
                continue
            message = self._message(line)
            if message is not None:
                return message

    def _message(self, line: bytes) -> Any:
        """Give a message; answer what is none, so that whoever sent it does not wait."""
        from mcp.shared.message import SessionMessage
        from pydantic_core import from_json

        text = line.decode(errors="replace")
        try:
            check_bounds(text, _LIMITS)
            data: Any = from_json(text)
        except (JsonFault, ValueError) as error:
            self._refuse(text, _PARSE_ERROR, f"This is no JSON that can be taken: {error}")
            return None
        try:
            message = _from_wire(data)
            if type(an_object(data).get("id", 0)) not in {int, str}:
                raise ValueError  # noqa: TRY301 - the SDK takes it for a notification
        except ValueError:
            self._refuse(text, _INVALID_REQUEST, "This is no JSON-RPC message.")
            return None
        return SessionMessage(message)

    def _refuse(self, text: str, code: int, why: str) -> None:
        found = _ID.search(text[:_HEAD]) or _ID.search(text[-_HEAD:])
        number = None
        if found is not None:
            with contextlib.suppress(ValueError):
                number = json.loads(found[1])
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why[:500]}}
        _write(self._sink, json.dumps(error).encode())


def _from_wire(data: Any) -> Any:
    from agents_tools.mcp._sdk import message_of

    return message_of(data)


class _Sink(Sink):
    """The messages for a client, a line each."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = asyncio.Lock()

    async def send(self, item: Any) -> None:
        """Write one message.

        Raises:
            ClosedResourceError: Nobody reads any more.
        """
        from anyio import ClosedResourceError

        message = getattr(item.message, "root", item.message)
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode(errors="replace")
        try:
            async with self._lock:
                if len(data) < _SMALL:
                    _write(self._sink, data)
                else:  # more than a pipe takes at once: the loop goes on meanwhile
                    await asyncio.to_thread(_write, self._sink, data)
        except (OSError, ValueError):
            raise ClosedResourceError from None


_SMALL = 16 << 10


def _write(sink: BinaryIO, data: bytes) -> None:
    sink.write(data + b"\n")
    sink.flush()
