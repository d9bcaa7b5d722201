"""The program of a worker process: it imports tools and runs one call after the other.

It talks to its owner over one socket, whose number is its only argument. When the socket ends, so
does it, and all that its tools have started with it.
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
from agents_tools.execution.protocol import CallEnvelope, ended
from agents_tools.execution.worker_call import Execution
from agents_tools.text.escape import type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.execution.protocol import CallEvent
    from agents_tools.tool.tool import FunctionTool

__all__ = ["main"]

_CHUNK: Final = 1 << 16
_SAID_BY_OWNER: Final = frozenset({"accepted", "started"})
_UNCLEAN: Final = frozenset({"timeout", "cancelled"})


def main(number: int) -> None:
    """Serve the owner at the other end of a socket until it ends.

    Args:
        number: The descriptor of the socket.
    """
    with socket.socket(fileno=number) as sock:
        sock.set_inheritable(False)
        os.register_at_fork(after_in_child=sock.close)  # or the owner would not see this one end
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(line_buffering=True)  # a killed process writes nothing more
        os.environ.pop("PYTHONPATH", None)
        frames = FrameReader()
        order = _wait_for_order(sock, frames)
        try:
            tools = _prepared(order)
        except BaseException as error:  # noqa: BLE001 - told to the owner, whatever it is
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
    except Exception:  # noqa: BLE001 - a broken __str__ of the module's own exception
        return type_name(type(error))


def _wait_for_order(sock: socket.socket, frames: FrameReader) -> dict[str, Any]:
    while (order := frames.next()) is None:
        data = sock.recv(_CHUNK)
        if not data:
            _end_with_all()
        frames.feed(data)
    return order


def _prepared(order: dict[str, Any]) -> dict[str, FunctionTool[..., Any]]:
    from agents_tools.execution.tool_reference import load

    sys.path[:] = order["path"]
    sys.argv[:] = [order["argv"]]
    _set_limits(order["memory"])
    _guard.importing = True
    try:
        return load(order["addresses"], order["main"])
    finally:
        _guard.importing = False


def _set_limits(memory: int | None) -> None:
    import resource

    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # a crash is to be over at once
    if memory is not None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


class _WorkerServer:
    """Runs what the owner sends, one call at a time."""

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
        """Take orders until there is no one to give them."""
        loop = asyncio.get_running_loop()
        while True:
            while (order := self._frames.next()) is not None:
                if "end" in order:
                    return
                await self._take(order)
            try:
                data = await loop.sock_recv(self._sock, _CHUNK)
            except OSError:
                data = b""
            if not data:
                _end_with_all()
            self._frames.feed(data)

    async def _take(self, order: dict[str, Any]) -> None:
        if "call" in order:
            envelope = CallEnvelope.from_dict(order["call"])
            self._task = asyncio.create_task(self._run(envelope))
        elif "rest" in order:
            await self._send({"ack": True})
            if self._execution is not None:
                self._execution.cancel()
            self._task = asyncio.create_task(self._come_to_rest(self._task))

    async def _run(self, envelope: CallEnvelope) -> None:
        self._before = asyncio.all_tasks()
        tool = self._tools.get(envelope.tool)
        if tool is None:
            await self._tell("result", unknown_tool(envelope.tool, self._tools))
            return
        self._execution = execution = Execution(tool, envelope)
        try:
            async with aclosing(execution.events()) as events:
                async for said in events:
                    if said.kind == "result":
                        stopped = said.payload["status"] in _UNCLEAN
                        await self._say(said, clean=not stopped and not abandoned_jobs())
                    elif said.kind not in _SAID_BY_OWNER:
                        await self._say(said)
        except Exception:  # noqa: BLE001 - whatever it is, the owner must not wait for ever
            try:
                import traceback

                traceback.print_exc()
            finally:
                _end_with_all()
        finally:
            self._execution = None

    async def _come_to_rest(self, call: asyncio.Task[None] | None) -> None:
        """Return whether what a stopped call left behind ends within its grace."""
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

    async def _say(self, said: CallEvent, *, clean: bool = True) -> None:
        try:
            await self._tell(said.kind, said.payload, clean=clean)
        except FrameTooLargeError as error:
            if said.kind == "result":
                told = f"The result of the tool is too large to be sent ({error})."
                await self._tell("result", ended("tool_error", told), clean=clean)
            else:
                sys.stderr.write(f"An event of the tool is too large to be sent ({error}).\n")

    async def _tell(self, kind: str, payload: Mapping[str, Any], *, clean: bool = True) -> None:
        await self._send({"said": kind, "payload": payload, "clean": clean})

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
                _end_with_all()


def _end_with_all() -> NoReturn:
    """End at once, with all that was started from here: the owner is gone."""
    if os.getpgrp() == os.getpid():
        os.killpg(0, signal.SIGKILL)
    os._exit(1)


if __name__ == "__main__":
    main(int(sys.argv[1]))
