"""The stdio transport: a server process, its pipes, and its shutdown.

The pieces of a line are collected in a list until the line is complete, so that the reading time is
linear. A line that cannot be read fails only the call that it answers.
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

from agents_tools.concurrency import processes
from agents_tools.errors import MCPConnectionError
from agents_tools.mcp._executables import child_environment, program_of
from agents_tools.mcp._streams import MessageSink, MessageSource
from agents_tools.mcp.client.pending_requests import handle_message
from agents_tools.text.json_limits import JsonLimits, check_bounds
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from types import TracebackType

    from agents_tools.mcp._streams import MessageTransport
    from agents_tools.mcp.client.pending_requests import PendingRequests
    from agents_tools.mcp.config import MCPServerConfig

__all__ = ["StdioTransport"]

logger = logging.getLogger("agents_tools.mcp")

GRACE = 2.0
"""Seconds from closing the input of a server to SIGTERM, and from there to SIGKILL."""
_ID_WINDOW = 400
"""Bytes at both ends of an unreadable line that are searched for its id."""
_EXIT_CODE_WAIT = 0.15
"""Seconds to wait for the exit code of a process whose pipes are closed."""
_DISCOVER_TIMEOUT = 3.0
"""Seconds after which a server is assumed not to support `server/discover`."""
_YIELD_EVERY = 256
"""Dropped messages after which the reader yields to other tasks on the loop."""
_MAX_UNREAD = 8 << 20
"""Bytes of unread lines above which reading from the server is paused."""
_LIMITS = JsonLimits(size=1 << 40, depth=200, nodes=1 << 40)
"""The limits for a line that the fast parser rejects; the size has already been checked."""
_STDERR_LINES = 20
_STDERR_WIDTH = 2_000


class StdioTransport:
    """The process of a server, and the message streams of its session.

    Args:
        config: The configuration of the server.
        wire: Creates messages of the SDK.
        pending: Tracks the requests in flight.
    """

    def __init__(
        self, config: MCPServerConfig, wire: MessageTransport, pending: PendingRequests
    ) -> None:
        self.config = config
        self.pid: int | None = None
        self.exit_code: int | None = None
        self._wire = wire
        self._pending = pending
        self._process: _ServerProcess | None = None
        self._group: int | None = None

    async def __aenter__(self) -> tuple[_StdoutReader, _StdinWriter]:
        config = self.config
        loop = asyncio.get_running_loop()
        try:
            transport, process = await loop.subprocess_exec(
                lambda: _ServerProcess(config.name, config.max_message),
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
            raise MCPConnectionError(_start_error(config, error), server=config.name) from error
        self._process = process
        self.pid = transport.get_pid()
        if os.name == "posix":
            self._group = self.pid
            processes.watch(self.pid)
        return _StdoutReader(process, self._wire, self._pending), _StdinWriter(
            process, self._pending
        )

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
            if process.is_closed:
                await process.wait_for_exit(0.5)
            self.exit_code = process.exit_code  # a code after the shutdown is not the server's own
            process.end_input()
            if not await process.wait_for_exit(GRACE):
                self._signal(signal.SIGTERM)
                if not await process.wait_for_exit(GRACE):
                    self._signal(_KILL)
                    await process.wait_for_exit(GRACE)
        finally:
            self._signal(_KILL)  # ends remaining children, and the process after an exception
            if self._group is not None:
                processes.forget(self._group)
                self._group = None  # the system can reuse the number from now on
            process.close()

    @property
    def stderr_tail(self) -> list[str]:
        """The last lines of stderr, without control characters."""
        return [] if self._process is None else self._process.stderr_tail()

    async def wait_for_exit_code(self) -> None:
        """Wait briefly for the exit code of a process whose pipes are closed."""
        if self._process is not None and await self._process.wait_for_exit(_EXIT_CODE_WAIT):
            self.exit_code = self._process.exit_code

    def abandon(self) -> None:
        """Kill the process at once, from any thread: its event loop has ended."""
        if self._group is not None:
            self._signal(_KILL)
            processes.forget(self._group)
            self._group = None

    def _signal(self, number: int) -> None:
        if self._group is not None:
            processes.signal_session(self._group, number)
        elif self._process is not None:
            self._process.kill()


_KILL = getattr(signal, "SIGKILL", signal.SIGTERM)


def _start_error(config: MCPServerConfig, error: Exception) -> str:
    if config.cwd is not None and not Path(config.cwd).is_dir():
        why = f"its folder {config.cwd} does not exist"
    elif isinstance(error, FileNotFoundError):
        why = f"program {config.command!r} was not found; install it, or use its full path"
    elif isinstance(error, PermissionError):
        why = f"{config.command!r} is not executable"
    else:
        why = getattr(error, "strerror", None) or str(error)
    return f"MCP server {config.name!r} cannot be started: {why}."


class _ServerProcess(asyncio.SubprocessProtocol):
    """The asyncio protocol of a server process: its output, its input, and its exit."""

    def __init__(self, name: str, max_message: int) -> None:
        self.name = name
        self.lines: deque[bytes | tuple[bytes, str]] = deque()
        self.exit_code: int | None = None
        self._max_message = max_message
        self._loop = asyncio.get_running_loop()
        self._pieces: list[bytes] = []
        self._size = 0
        self._oversized: bytes | None = None
        self._tail = b""
        self._unread = 0
        self._paused = False
        self.is_closed = False
        self._wake: asyncio.Future[None] | None = None
        self._exited = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._stderr: deque[bytes] = deque(maxlen=_STDERR_LINES)
        self._stderr_piece = b""
        self._discover_id: int | str | None = None
        self._timers: list[asyncio.TimerHandle] = []
        self._transport: asyncio.SubprocessTransport
        self._input: asyncio.WriteTransport

    # --- called by the loop

    def connection_made(self, transport: Any) -> None:
        """Store the transport."""
        self._transport = transport
        self._input = transport.get_pipe_transport(0)

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        """Handle output of the process."""
        if fd == 1:
            self._feed_stdout(data)
        else:
            self._feed_stderr(data)

    def pipe_connection_lost(self, fd: int, exc: Exception | None) -> None:
        """Handle a closed pipe."""
        del exc
        if fd == 1:
            self._finish()
        elif fd == 0:
            self._writable.set()

    def process_exited(self) -> None:
        """Store the exit code, and read the remaining output in the pipes."""
        self.exit_code = self._transport.get_returncode()
        self._exited.set()
        self._writable.set()
        if not self.is_closed:  # a child process can keep the pipes open
            self._timers.append(self._loop.call_later(0.2, self._finish))

    def pause_writing(self) -> None:
        """Pause writers: the process does not read fast enough."""
        self._writable.clear()

    def resume_writing(self) -> None:
        """Resume writers."""
        self._writable.set()

    # --- reading

    def _feed_stdout(self, data: bytes) -> None:
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            self._end_line(data[start:end] if start or end < len(data) else data)
            start = end + 1
        if start < len(data):
            self._add_piece(data[start:] if start else data)
        if self.lines and self._wake is not None and not self._wake.done():
            self._wake.set_result(None)
        if self._unread > _MAX_UNREAD and not self._paused:
            self._paused = True
            self._stdout_pipe().pause_reading()

    def _add_piece(self, piece: bytes) -> None:
        self._size += len(piece)
        if self._oversized is not None:
            self._tail = (self._tail + piece)[-_ID_WINDOW:]
            return
        self._pieces.append(piece)
        if self._size > self._max_message:
            self._oversized = b"".join(self._pieces)[:_ID_WINDOW]
            self._pieces.clear()
            self._tail = b""

    def _end_line(self, rest: bytes) -> None:
        if rest:
            self._add_piece(rest)
        line: bytes | tuple[bytes, str]
        if self._oversized is not None:
            reason = (
                f"it is {self._size:,} bytes long, and at most {self._max_message:,} are accepted "
                "(max_message)"
            )
            line = (self._oversized + self._tail, reason)
        else:
            line = self._pieces[0] if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces, self._size, self._oversized = [], 0, None
        if line:
            self.lines.append(line)
            self._unread += len(line) if isinstance(line, bytes) else 0

    def _feed_stderr(self, data: bytes) -> None:
        *lines, piece = (self._stderr_piece + data[-_STDERR_LINES * _STDERR_WIDTH :]).split(b"\n")
        self._stderr.extend(line[:_STDERR_WIDTH] for line in lines[-_STDERR_LINES:])
        self._stderr_piece = piece[:_STDERR_WIDTH]
        if logger.isEnabledFor(logging.DEBUG):
            for line in lines[-_STDERR_LINES:]:
                logger.debug("%s: %s", self.name, release_text(line.decode(errors="replace")))

    def stderr_tail(self) -> list[str]:
        """Return the last lines of stderr."""
        lines = [*self._stderr, self._stderr_piece][-_STDERR_LINES:]
        texts = (release_text(line.decode(errors="replace")).rstrip() for line in lines)
        return [text for text in texts if text]

    def _finish(self) -> None:
        self.is_closed = True
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    async def line(self) -> bytes | tuple[bytes, str] | None:
        """Return the next line; its ends and the reason if it is unreadable; `None` at EOF."""
        while not self.lines:
            if self.is_closed:
                return None
            self._wake = self._loop.create_future()
            await self._wake
        line = self.lines.popleft()
        self._unread -= len(line) if isinstance(line, bytes) else 0
        if self._paused and self._unread <= _MAX_UNREAD // 2:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self._stdout_pipe().resume_reading()
        return line

    def _stdout_pipe(self) -> Any:
        return self._transport.get_pipe_transport(1)

    def schedule_discover_error(self, number: int | str) -> None:
        """Answer `server/discover` with an error if the server does not answer it.

        A server of an older protocol version can ignore requests that it does not know.
        """
        self._discover_id = number
        head = f'{{"jsonrpc": "2.0", "id": {number}}}'.encode()
        timeout = (head, "no answer to server/discover")
        self._timers.append(self._loop.call_later(_DISCOVER_TIMEOUT, self._put_line, timeout))

    def is_discover(self, number: object) -> bool:
        """Return whether a number is the id of the `server/discover` request."""
        return not isinstance(number, bool) and number is not None and number == self._discover_id

    def _put_line(self, line: tuple[bytes, str]) -> None:
        self.lines.append(line)
        if self._wake is not None and not self._wake.done():
            self._wake.set_result(None)

    # --- writing and shutdown

    async def write(self, data: bytes) -> None:
        """Write a line, and wait until the next one can be written.

        Raises:
            BrokenPipeError: The process has ended or closed its input.
        """
        if self.is_closed or self._exited.is_set() or self._input.is_closing():
            raise BrokenPipeError
        self._input.write(data)
        if not self._writable.is_set():
            await self._writable.wait()

    def end_input(self) -> None:
        """Close the input of the process, which asks the server to exit."""
        self._input.close()
        if self._paused:
            self._paused = False
            with contextlib.suppress(RuntimeError):
                self._stdout_pipe().resume_reading()
        self.lines.clear()

    async def wait_for_exit(self, seconds: float) -> bool:
        """Wait for the process; return whether it has exited within the time."""
        try:
            async with asyncio.timeout(seconds):
                await self._exited.wait()
        except TimeoutError:
            return False
        return True

    def kill(self) -> None:
        """Kill the process."""
        with contextlib.suppress(ProcessLookupError):
            self._transport.kill()

    def close(self) -> None:
        """Close the pipes."""
        self._finish()
        for timer in self._timers:
            timer.cancel()
        self._transport.close()


def _is_notification(message: dict[str, Any]) -> bool:
    return "id" not in message and isinstance(message.get("method"), str)


def _find_id(line: bytes) -> re.Match[bytes] | None:
    """Find the id of an unreadable answer: before its result, or at the end of the line."""
    head, tail = line[:_ID_WINDOW], line[-_ID_WINDOW:]
    if not head.startswith(b"{") or (b'"jsonrpc"' not in head and b'"jsonrpc"' not in tail):
        return None
    before = re.split(rb'"(?:result|error)"\s*:', head, maxsplit=1)[0]
    match = _ID.search(before)
    if match is None:
        *_, match = [None, *_ID.finditer(tail)]
    return match


_ID = re.compile(rb'"id"\s*:\s*(?:(\d{1,18})|"([^"]{1,100})")')


class _StdoutReader(MessageSource):
    """The stream that the session reads the messages of a server from."""

    def __init__(
        self, process: _ServerProcess, wire: MessageTransport, pending: PendingRequests
    ) -> None:
        self._process = process
        self._wire = wire
        self._pending = pending

    async def __anext__(self) -> Any:
        for count in itertools.count(1):
            line = await self._process.line()
            if count % _YIELD_EVERY == 0:
                await asyncio.sleep(0)
            if line is None:
                self._pending.close()
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
            # Invalid UTF-8 and lone surrogates are accepted here; results are sanitized later.
            try:
                text = line.decode(errors="replace")
                check_bounds(text, _LIMITS)
                data = json.loads(text)
            except (ValueError, RecursionError):
                return self._unreadable(line, f"it is not JSON ({error})")
        if not isinstance(data, dict):
            return self._drop("it is not a message")
        fields = cast("dict[str, Any]", data)
        if _is_notification(fields) and not self._pending.handle_notification(
            fields["method"], fields.get("params")
        ):
            return None
        if fields.get("jsonrpc") != "2.0":
            return self._drop("it is not a message")
        try:
            message = self._wire.message(fields)
        except ValueError:
            return self._fail_request(fields.get("id"), "it is not a JSON-RPC message")
        return message if handle_message(message, self._pending) else None

    def _unreadable(self, line: bytes, why: str) -> Any:
        """Return an error for the request that an unreadable line answers; drop other lines."""
        match = _find_id(line)
        if match is None:
            return self._drop(why)
        number = int(match[1]) if match[1] else match[2].decode(errors="replace")
        return self._fail_request(number, why)

    def _fail_request(self, number: Any, why: str) -> Any:
        """Return an error as the answer to a pending request; drop any other answer."""
        request = self._pending.find(number)
        if request is None and not self._process.is_discover(number):
            return self._drop(why)
        self._pending.ignored += 1
        if request is not None:
            request.fault = f"its answer cannot be read: {why}"
            self._pending.requests.pop(request.id or number, None)
        return self._wire.error(number if request is None else request.id, why)

    def _drop(self, why: str) -> None:
        self._pending.ignored += 1
        logger.debug("%s: A line was dropped: %s", self._process.name, why)


class _StdinWriter(MessageSink):
    """The stream that the session writes the messages for a server to."""

    def __init__(self, process: _ServerProcess, pending: PendingRequests) -> None:
        self._process = process
        self._pending = pending

    async def send(self, item: Any) -> None:
        """Write one message.

        Raises:
            ClosedResourceError: The process has ended or closed its input.
        """
        from anyio import ClosedResourceError

        message = getattr(item.message, "root", item.message)
        request = self._pending.register(message)
        if getattr(message, "method", None) == "server/discover":
            self._process.schedule_discover_error(message.id)
        line = message.model_dump_json(by_alias=True, exclude_unset=True) + "\n"
        try:
            if request is not None:
                request.sent = True
            await self._process.write(line.encode(errors="replace"))
        except BrokenPipeError:
            if request is not None:
                request.sent = False
            raise ClosedResourceError from None
