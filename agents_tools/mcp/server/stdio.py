"""Standard input and output as the transport of a server.

While the server runs, descriptor 0 is empty and descriptor 1 is stderr, so that the output of a
tool or of its child processes cannot corrupt the protocol. The server answers every invalid line
with an error.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import stat
import sys
import threading
from array import array
from typing import TYPE_CHECKING, Any

from agents_tools.concurrency.future import call_on_loop
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._streams import MessageSink, MessageSource
from agents_tools.text.json_limits import JsonFault, JsonLimits, check_bounds

if sys.platform == "linux":
    import fcntl
    import termios

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import BinaryIO

__all__ = ["stdio_streams"]

_LIMITS = JsonLimits(size=16 << 20, depth=200, nodes=1_000_000)
_ID = re.compile(r'"id"\s*:\s*(-?\d{1,18}(?![\d.eE])|"(?:[^"\\]|\\.){1,200}")')
_ID_WINDOW = 400
_PARSE_ERROR, _INVALID_REQUEST = -32700, -32600
_READ_AHEAD = 1_000
"""The maximum number of lines that are read but not handled yet."""


@contextlib.asynccontextmanager
async def stdio_streams() -> AsyncGenerator[tuple[Any, Any]]:
    """Provide the message streams of a session, over stdin and stdout."""
    with _redirect_stdio() as (source, sink):
        lines = _StdinLines(source, sink)
        lines.start()
        try:
            yield lines, _StdoutSink(sink)
        finally:
            lines.stop()


@contextlib.contextmanager
def _redirect_stdio() -> Generator[tuple[BinaryIO, BinaryIO]]:
    """Return stdin and stdout as files; redirect descriptors 0 and 1 until the end of the block."""
    sys.stdout.flush()
    stdin, stdout = os.dup(0), os.dup(1)
    null = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(null, 0)
        os.dup2(2, 1)
        # The descriptors stay open when the files are closed: a thread can still be reading.
        source = os.fdopen(stdin, "rb", closefd=False)
        sink = os.fdopen(stdout, "wb", closefd=False)
        yield source, sink
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
        os.dup2(stdin, 0)
        os.dup2(stdout, 1)
        os.close(null)


class _StdinLines(MessageSource):
    """The messages of a client; lines that are not messages are answered with an error."""

    def __init__(self, source: BinaryIO, sink: BinaryIO) -> None:
        self._source = source
        self._sink = sink
        self._loop = asyncio.get_running_loop()
        self._queue: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._free_lines = threading.Semaphore(_READ_AHEAD)
        self._stopped = False

    def start(self) -> None:
        """Start a daemon thread that reads: a blocked read cannot be cancelled."""
        threading.Thread(target=self._read, name="agents-tools-stdin", daemon=True).start()

    def stop(self) -> None:
        """Stop reading."""
        self._stopped = True
        self._free_lines.release()

    def _read(self) -> None:
        while not self._stopped:
            self._free_lines.acquire()
            try:
                line = self._source.readline()
            except (OSError, ValueError):
                line = b""
            call_on_loop(self._loop, self._queue.put_nowait, line or None)
            if not line:
                return

    async def __anext__(self) -> Any:
        while True:
            line = await self._queue.get()
            if line is None:
                self._queue.put_nowait(None)  # every further read ends too
                raise StopAsyncIteration
            self._free_lines.release()
            if not line.strip():
                continue
            message = self._message(line)
            if message is not None:
                return message

    def _message(self, line: bytes) -> Any:
        """Return the message of a line; answer an invalid line with an error and return `None`."""
        from mcp.shared.message import SessionMessage
        from pydantic_core import from_json

        text = line.decode(errors="replace")
        try:
            check_bounds(text, _LIMITS)
            data: Any = from_json(text)
        except (JsonFault, ValueError) as error:
            why = f"The line is not valid JSON: {error}"
            self._send_error(_find_id(text), _PARSE_ERROR, why)
            return None
        number = an_object(data).get("id")
        is_id = type(number) in {int, str}
        try:
            message = _from_wire(data)
            if not is_id and "id" in data:
                raise ValueError  # noqa: TRY301 - the SDK would handle it as a notification
        except ValueError:
            number = number if is_id else None
            self._send_error(number, _INVALID_REQUEST, "The line is not a JSON-RPC message.")
            return None
        return SessionMessage(message)

    def _send_error(self, number: int | str | None, code: int, why: str) -> None:
        error = {"jsonrpc": "2.0", "id": number, "error": {"code": code, "message": why[:500]}}
        _write(self._sink, json.dumps(error).encode())


def _find_id(text: str) -> int | str | None:
    """Return the id of a message that cannot be parsed; `None` if it is not found."""
    match = _ID.search(text[:_ID_WINDOW]) or _ID.search(text[-_ID_WINDOW:])
    if match is None:
        return None
    try:
        return json.loads(match[1])
    except ValueError:
        return None


def _from_wire(data: Any) -> Any:
    from agents_tools.mcp._sdk import message_of

    return message_of(data)


class _StdoutSink(MessageSink):
    """The messages for a client, one per line."""

    def __init__(self, sink: BinaryIO) -> None:
        self._sink = sink
        self._lock = asyncio.Lock()

    async def send(self, item: Any) -> None:
        """Write one message.

        Raises:
            ClosedResourceError: The client has closed the pipe.
        """
        from anyio import ClosedResourceError

        message = getattr(item.message, "root", item.message)
        data = message.model_dump_json(by_alias=True, exclude_unset=True).encode(errors="replace")
        try:
            async with self._lock:
                if len(data) < _PIPE_SIZE:
                    _write(self._sink, data)
                else:  # a full pipe would block the event loop
                    await asyncio.to_thread(_write, self._sink, data)
        except (OSError, ValueError):
            raise ClosedResourceError from None

    def has_read(self) -> bool | None:
        """Return whether the client has read all messages; `None` if the system does not tell."""
        if sys.platform != "linux":
            return None
        # The unread bytes of a pipe, and the memory of the unread messages of a socket.
        request = {stat.S_IFIFO: termios.FIONREAD, stat.S_IFSOCK: termios.TIOCOUTQ}
        unread = array("i", [0])
        try:
            kind = stat.S_IFMT(os.fstat(self._sink.fileno()).st_mode)
            fcntl.ioctl(self._sink.fileno(), request[kind], unread)
        except (KeyError, OSError, ValueError):
            return None
        return unread[0] == 0


_PIPE_SIZE = 16 << 10
"""The size in bytes from which a message is written in a thread."""


def _write(sink: BinaryIO, data: bytes) -> None:
    sink.write(data + b"\n")
    sink.flush()
