"""A server in a process of its own: its pipes, its words on stderr, and its end.

Reading costs time in proportion to what is read: pieces of a line are kept in a list until its
end comes. A line that cannot be read costs the one call that it was the answer to.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import logging
import os
import re
import signal
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agents_tools import _guardian
from agents_tools._json import JsonLimits, check_bounds
from agents_tools._text import safe_text
from agents_tools.errors import MCPConnectionError
from agents_tools.mcp._exchange import passed
from agents_tools.mcp._programs import child_environment, program_of
from agents_tools.mcp._streams import Sink, Source

if TYPE_CHECKING:
    from types import TracebackType

    from agents_tools.mcp._exchange import Exchange
    from agents_tools.mcp._streams import Wire
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["StdioTransport"]

logger = logging.getLogger("agents_tools.mcp")

GRACE = 2.0
"""Seconds between the end of a server's input, SIGTERM and SIGKILL."""
_HEAD = 400
"""Bytes of a line that are looked at for the id of its request."""
_MOMENT = 0.15
_UNKNOWN = 3.0
"""Seconds after which a server is taken not to know the question for its versions."""
_BREATH = 256
"""Messages for nobody after which others on the loop get a turn."""
_WAITING = 8 << 20
"""Bytes of unread lines from which on nothing more is read from a server."""
_LIMITS = JsonLimits(size=1 << 40, depth=200, nodes=1 << 40)
"""Of a line that the fast reader has refused; its size was looked at before."""
_STDERR_LINES = 20
_STDERR_WIDTH = 2_000


class StdioTransport:
    """The process of a server, and the two streams of messages that the session works with.

    Args:
        config: How it is started.
        wire: What makes messages of the SDK.
        exchange: The connection.
    """

    def __init__(self, config: MCPServerConfig, wire: Wire, exchange: Exchange) -> None:
        self.config = config
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._wire = wire
        self._exchange = exchange
        self._process: _Process | None = None
        self._group: int | None = None

    async def __aenter__(self) -> tuple[_Reader, _Writer]:
        config = self.config
        loop = asyncio.get_running_loop()
        try:
            transport, process = await loop.subprocess_exec(
                lambda: _Process(config.name, config.max_message),
                program_of(config),
                *config.args,
                stdin=-1,
                stdout=-1,
                stderr=-1,
                env=child_environment(config),
                cwd=config.cwd,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise MCPConnectionError(_not_started(config, error), server=config.name) from error
        self._process = process
        self.pid = transport.get_pid()
        if os.name == "posix":
            self._group = self.pid
            _guardian.watch(self.pid)
        return _Reader(process, self._wire, self._exchange), _Writer(process, self._exchange)

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        process = self._process
        if process is None:
            return
        try:
            if process.over:
                await process.ended_within(0.5)
            self.exit_code = process.exit_code  # before it is asked to end
            process.end_input()
            if not await process.ended_within(GRACE):
                self._signal(signal.SIGTERM)
                if not await process.ended_within(GRACE):
                    self._signal(_KILL)
                    await process.ended_within(GRACE)
        finally:
            self._signal(_KILL)  # what it has left running, or, in a hurry, itself
            if self._group is not None:
                _guardian.forget(self._group)
                self._group = None  # the number may be somebody else's from now on
            process.close()

    @property
    def stderr_tail(self) -> list[str]:
        """The last lines that it wrote to stderr, safe to show."""
        return [] if self._process is None else self._process.stderr_tail()

    async def settle(self) -> None:
        """Wait a moment for the exit code of a process whose pipes are closed."""
        if self._process is not None and await self._process.ended_within(_MOMENT):
            self.exit_code = self._process.exit_code

    def abandon(self) -> None:
        """End the process at once, from any thread: the loop that had it is gone."""
        if self._group is not None:
            self._signal(_KILL)
            _guardian.forget(self._group)
            self._group = None

    def _signal(self, number: int) -> None:
        if self._group is not None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._group, number)
        elif self._process is not None:
            self._process.kill()


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _not_started(config: MCPServerConfig, error: Exception) -> str:
    if config.cwd is not None and not Path(config.cwd).is_dir():
        why = f"its folder {config.cwd} does not exist"
    elif isinstance(error, FileNotFoundError):
        why = f"there is no program {config.command!r}; install it, or give its whole path"
    elif isinstance(error, PermissionError):
        why = f"{config.command!r} may not be executed"
    else:
        why = getattr(error, "strerror", None) or str(error)
    return f"MCP server {config.name!r} cannot be started: {why}."


class _Process(asyncio.SubprocessProtocol):
    """What comes out of a process, and when it ends."""

    def __init__(self, name: str, max_message: int) -> None:
        self.name = name
        self.lines: deque[bytes | tuple[bytes, str]] = deque()
        self.exit_code: int | None = None
        self._max_message = max_message
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._size = 0
        self._skipped: bytes | None = None
        self._tail = b""
        self._unread = 0
        self._paused = False
        self.over = False
        self._wake: asyncio.Future[None] | None = None
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stderr: deque[bytes] = deque(maxlen=_STDERR_LINES)
        self._stderr_piece = b""
        self._asked: int | str | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._transport: asyncio.SubprocessTransport
        self._input: asyncio.WriteTransport

    # --- called by the loop

    def connection_made(self, transport: Any) -> None:
        """Learn the transport."""
        self._transport = transport
        self._input = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Take what came out of a pipe."""
        if fd == 1:
            self._take(data)
        else:
            self._take_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Learn that a pipe was closed."""
        del exc
        if fd == 1:
            self._finish()
        elif fd == 0:
            self._writable.set()

    def process_exited(self) -> None:
        """Learn that the process has ended; what it left in its pipes is still read."""
        self.exit_code = self._transport.get_returncode()
        self._exited.set()
        self._writable.set()
        if not self.over:  # somebody else may hold its pipes open
            self._timers.append(self._loop.call_later(0.2, self._finish))

    def pause_writing(self) -> None:
        """Learn that it does not read as fast as it is written to."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Learn that it has caught up."""
        self._writable.set()

    # --- reading

    def _take(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._end_line(data[start:end] if start or end < len(data) else data)
            start = end + 1
        if start < len(data):
            self._add(data[start:] if start else data)
        if self.lines and self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self._unread > _WAITING and not self._paused:
            self._paused = True
            self._out().pause_reading()

    def _add(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._skipped is not None:
            self._tail = (self._tail + piece)[-_HEAD:]
            return
        self._pieces.append(piece)
        if self._size > self._max_message:
            self._skipped = b"".join(self._pieces)[:_HEAD]
            self._pieces.clear()
            self._tail = b""

    def _end_line(self, rest: bytes) -> None:
        if rest:
            self._add(rest)
        line: bytes | tuple[bytes, str]
        if self._skipped is not None:
            reason = (
                f"it is {self._size:,} bytes long, and at most {self._max_message:,} are accepted "
                "(max_message)"
            )
            line = (self._skipped + self._tail, reason)
        else:
            line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._size, self._skipped = [], 0, None
        if line:
            self.lines.append(line)
            self._unread += len(line) if isinstance(line, bytes) else 0

    def _take_stderr(self, data: bytes) -> None:
        *lines, piece = (self._stderr_piece + data[-_STDERR_LINES * _STDERR_WIDTH :]).split(b"\n")
        self._stderr.extend(line[:_STDERR_WIDTH] for line in lines[-_STDERR_LINES:])
        self._stderr_piece = piece[:_STDERR_WIDTH]
        if logger.isEnabledFor(logging.DEBUG):
            for line in lines[-_STDERR_LINES:]:
                logger.debug("%s: %s", self.name, safe_text(line.decode(errors="replace")))

    def stderr_tail(self) -> list[str]:
        """Give the last lines of stderr."""
        lines = [*self._stderr, self._stderr_piece][-_STDERR_LINES:]
        texts = (safe_text(line.decode(errors="replace")).rstrip() for line in lines)
        return [text for text in texts if text]

    def _finish(self) -> None:
        self.over = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def line(self) -> bytes | tuple[bytes, str] | None:
        """Give the next line, or its beginning and why it is not there; `None` at the end."""
        while not self.lines:
            if self.over:
                return None
            self._wake = self._loop.create_future()
            await self._wake
        line = self.lines.popleft()
        self._unread -= len(line) if isinstance(line, bytes) else 0
        if self._paused and self._unread <= _WAITING // 2:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self._out().resume_reading()
        return line

    def _out(self) -> Any:
        return self._transport.get_pipe_transport(1)

    def answer_later(self, number: int | str) -> None:
        """Answer the first question of all in place of a server that only knows older ones.

        Such a server may say nothing at all to a request that it does not know.
        """
        self._asked = number
        head = f'{{"jsonrpc": "2.0", "id": {number}}}'.encode()
        late = (head, "no answer to server/discover")
        self._timers.append(self._loop.call_later(_UNKNOWN, self._put, late))

    def is_asked(self, number: object) -> bool:
        """Whether this is the id of the first question."""
        return not isinstance(number, bool) and number is not None and number == self._asked

    def _put(self, line: tuple[bytes, str]) -> None:
        self.lines.append(line)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # --- writing, ending

    async def write(self, data: bytes) -> None:
        """Write a line, and wait until there is room for the next.

        Raises:
            BrokenPipeError: The process reads no more.
        """
        if self.over or self._exited.is_set() or self._input.is_closing():
            raise BrokenPipeError
        self._input.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def end_input(self) -> None:
        """Close its input: the polite way to ask a server to end."""
        self._input.close()
        if self._paused:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self._out().resume_reading()
        self.lines.clear()

    async def ended_within(self, seconds: float) -> bool:
        """Wait for its end."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    def close(self) -> None:
        """Let go of the pipes."""
        self._finish()
        for timer in self._timers:
            timer.cancel()
        self._transport.close()


def _is_notification(message: dict[str, Any]) -> bool:
    return "id" not in message and isinstance(message.get("method"), str)


def _id_in(line: bytes) -> re.Match[bytes] | None:
    """Find the id of an answer that cannot be read: before its result, or at its very end."""
    head, tail = line[:_HEAD], line[-_HEAD:]
    if not head.startswith(b"{") or (b'"jsonrpc"' not in head and b'"jsonrpc"' not in tail):
        return None
    before = re.split(rb'"(?:result|error)"\s*:', head, maxsplit=1)[0]
    found = _ID.search(before)
    if found is None:
        *_, found = [None, *_ID.finditer(tail)]
    return found


_ID = re.compile(rb'"id"\s*:\s*(?:(\d{1,18})|"([^"]{1,100})")')


class _Reader(Source):
    """The messages of a server, as the session reads them."""

    def __init__(self, process: _Process, wire: Wire, exchange: Exchange) -> None:
        self._process = process
        self._wire = wire
        self._exchange = exchange

    async def __anext__(self) -> Any:
        for count in itertools.count(1):
            line = await self._process.line()
            if count % _BREATH == 0:
                await asyncio.sleep(0)
            if line is None:
                self._exchange.close()
                raise StopAsyncIteration
            message = self._unreadable(*line) if isinstance(line, tuple) else self._read(line)
            if message is not None:
                return message
        raise AssertionError

    def _read(self, line: bytes) -> Any:
        from pydantic_core import from_json

        try:
            data: Any = from_json(line)
        except ValueError as error:
            try:  # what is no UTF-8, or half a surrogate, is left to what makes results safe
                text = line.decode(errors="replace")
                check_bounds(text, _LIMITS)
                data = json.loads(text)
            except (ValueError, RecursionError):
                return self._unreadable(line, f"it is no JSON ({error})")
        if not isinstance(data, dict):
            return self._left_out("it is no message")
        found = cast("dict[str, Any]", data)
        if _is_notification(found) and not self._exchange.notified(
            found["method"], found.get("params")
        ):
            return None
        if found.get("jsonrpc") != "2.0":
            return self._left_out("it is no message")
        try:
            message = self._wire.message(found)
        except ValueError:
            return self._failed(found.get("id"), "it is no JSON-RPC message")
        return message if passed(message, self._exchange) else None

    def _unreadable(self, line: bytes, why: str) -> Any:
        """Give an error to whoever waits for this line, if that can be seen; else leave it out."""
        found = _id_in(line)
        if found is None:
            return self._left_out(why)
        return self._failed(int(found[1]) if found[1] else found[2].decode(errors="replace"), why)

    def _failed(self, number: Any, why: str) -> Any:
        """Give an error as the answer to a request that is still waiting for one."""
        request = self._exchange.of(number)
        if request is None and not self._process.is_asked(number):
            return self._left_out(why)
        self._exchange.ignored += 1
        if request is not None:
            request.fault = f"its answer cannot be read: {why}"
            self._exchange.requests.pop(request.id or number, None)
        return self._wire.error(number if request is None else request.id, why)

    def _left_out(self, why: str) -> None:
        self._exchange.ignored += 1
        logger.debug("%s: a line was left out: %s", self._process.name, why)


class _Writer(Sink):
    """The messages for a server, as the session writes them."""

    def __init__(self, process: _Process, exchange: Exchange) -> None:
        self._process = process
        self._exchange = exchange

    async def send(self, item: Any) -> None:
        """Write one message.

        Raises:
            ClosedResourceError: The process reads no more.
        """
        from anyio import ClosedResourceError

        message = getattr(item.message, "root", item.message)
        request = self._exchange.outgoing(message)
        if getattr(message, "method", None) == "server/discover":
            self._process.answer_later(message.id)
        line = message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        try:
            if request is not None:
                request.sent = True
            await self._process.write(line.encode(errors="replace"))
        except BrokenPipeError:
            if request is not None:
                request.sent = False
            raise ClosedResourceError from None
