"""The program of a worker process, which imports tools and runs one call at a time.

It communicates with its owner over one socket, whose file descriptor is its only argument. When
the socket is closed, the worker ends with all processes that its tools have started.
"""

from __future__ import annotations

import asyncio
import contextlib
import io
import os
import signal
import socket
import sys
from contextlib import aclosing
from typing import TYPE_CHECKING, Any, Final, NoReturn

from agents_tools.concurrency.supervisor import GRACE
from agents_tools.concurrency.threads import abandoned_jobs
from agents_tools.errors import AgentsToolsError
from agents_tools.execution import import_guard as _guard
from agents_tools.execution.framing import FrameReader, FrameTooLargeError, encode
from agents_tools.execution.local import unknown_tool
from agents_tools.execution.protocol import CallEnvelope, result_payload
from agents_tools.execution.worker_call import Execution
from agents_tools.text.escape import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.execution.protocol import CallEvent
    from agents_tools.tool.tool import FunctionTool

__all__ = ["main"]

_CHUNK: Final = 1 << 16
_SENT_BY_OWNER: Final = frozenset({"accepted", "started"})
_STOPPED: Final = frozenset({"timeout", "cancelled"})


def main(number: int) -> None:
    """Run the calls of the owner until the socket is closed.

    Args:
        number: The file descriptor of the socket.
    """
    with socket.socket(fileno=number) as sock:
        sock.set_inheritable(False)
        os.register_at_fork(after_in_child=sock.close)  # so that the owner sees this process end
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)  # a killed process does not flush
        os.environ.pop("PYTHONPATH", None)
        frames = FrameReader()
        start = _receive_start(sock, frames)
        try:
            tools = _load_tools(start)
        except BaseException as error:  # noqa: BLE001 - every error is reported to the owner
            with contextlib.suppress(OSError):
                sock.sendall(encode({"failed": _error_text(error)[:10_000]}))
            return
        sock.sendall(encode({"ready": sorted(tools)}))
        sock.setblocking(False)
        asyncio.run(_WorkerServer(sock, frames, tools).serve())


def _error_text(error: BaseException) -> str:
    if isinstance(error, AgentsToolsError):
        return str(error)
    try:
        return f"{type_name(type(error))}: {error}"
    except Exception:  # noqa: BLE001 - the exception's __str__ can fail
        return type_name(type(error))


def _receive_start(sock: socket.socket, frames: FrameReader) -> dict[str, Any]:
    while (start := frames.next()) is None:
        data = sock.recv(_CHUNK)
        if not data:
            _kill_group()
        frames.feed(data)
    return start


def _load_tools(start: dict[str, Any]) -> dict[str, FunctionTool[..., Any]]:
    from agents_tools.execution.tool_reference import load

    sys.path[:] = start["path"]
    sys.argv[:] = [start["argv"]]
    _set_limits(start["memory"])
    _guard.importing = True
    try:
        return load(start["addresses"], start["main"])
    finally:
        _guard.importing = False


def _set_limits(memory: int | None) -> None:
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a core dump takes long
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


class _WorkerServer:
    """Runs the calls that the owner sends, one at a time."""

    def __init__(
        self, sock: socket.socket, frames: FrameReader, tools: dict[str, FunctionTool[..., Any]]
    ) -> None:
        self._sock = sock
        self._frames = frames
        self._tools = tools
        self._execution: Execution | None = None
        self._task: asyncio.Task[None] | None = None
        self._before: set[asyncio.Task[Any]] = set()
        self._lock = asyncio.Lock()

    async def serve(self) -> None:
        """Handle the messages of the owner until one of them ends the worker."""
        loop = asyncio.get_running_loop()
        while True:
            while (message := self._frames.next()) is not None:
                if "end" in message:
                    return
                await self._handle(message)
            try:
                data = await loop.sock_recv(self._sock, _CHUNK)
            except OSError:
                data = b""
            if not data:
                _kill_group()
            self._frames.feed(data)

    async def _handle(self, message: dict[str, Any]) -> None:
        if "call" in message:
            envelope = CallEnvelope.from_dict(message["call"])
            self._task = asyncio.create_task(self._run(envelope))
        elif "stop" in message:
            await self._send({"ack": True})
            if self._execution is not None:
                self._execution.cancel()
            self._task = asyncio.create_task(self._wait_until_idle(self._task))

    async def _run(self, envelope: CallEnvelope) -> None:
        self._before = asyncio.all_tasks()
        tool = self._tools.get(envelope.tool)
        if tool is None:
            await self._send_message("result", unknown_tool(envelope.tool, self._tools))
            return
        self._execution = execution = Execution(tool, envelope)
        try:
            async with aclosing(execution.events()) as events:
                async for message in events:
                    if message.kind == "result":
                        stopped = message.payload["status"] in _STOPPED
                        await self._forward(message, clean=not stopped and not abandoned_jobs())
                    elif message.kind not in _SENT_BY_OWNER:
                        await self._forward(message)
        except Exception:  # noqa: BLE001 - the owner must never wait forever
            try:
                import traceback

                traceback.print_exc()
            finally:
                _kill_group()
        finally:
            self._execution = None

    async def _wait_until_idle(self, call: asyncio.Task[None] | None) -> None:
        """Report whether the tasks and threads of a stopped call end within `GRACE` seconds."""
        if call is not None:
            await asyncio.wait({call})
        loop = asyncio.get_running_loop()
        latest = loop.time() + GRACE
        known = {*self._before, asyncio.current_task()}
        tick = 0.001
        while (left := bool(asyncio.all_tasks() - known or abandoned_jobs())) and (
            loop.time() < latest
        ):
            await asyncio.sleep(tick)
            tick = min(2 * tick, 0.05)
        await self._send({"idle": not left})

    async def _forward(self, message: CallEvent, *, clean: bool = True) -> None:
        try:
            await self._send_message(message.kind, message.payload, clean=clean)
        except FrameTooLargeError as error:
            if message.kind == "result":
                text = f"The result of the tool is too large to be sent: {error}."
                await self._send_message("result", result_payload("tool_error", text), clean=clean)
            else:
                sys.stderr.write(f"An event of the tool is too large to be sent: {error}.\n")

    async def _send_message(
        self, kind: str, payload: Mapping[str, Any], *, clean: bool = True
    ) -> None:
        await self._send({"kind": kind, "payload": payload, "clean": clean})

    async def _send(self, message: dict[str, Any]) -> None:
        data = memoryview(encode(message))
        async with self._lock:
            with contextlib.suppress(BlockingIOError, OSError):
                data = data[self._sock.send(data) :]
            if not data:
                return
            try:
                await asyncio.get_running_loop().sock_sendall(self._sock, data)
            except OSError:
                _kill_group()


def _kill_group() -> NoReturn:
    """Kill this process and all processes in its group, because the owner is gone."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
