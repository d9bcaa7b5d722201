"""Stream frames to one client, and detect when it disconnects."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

from starlette.responses import Response

from agents_tools.concurrency.supervisor import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, MutableMapping

    from starlette.types import Receive, Scope, Send

__all__ = ["FrameResponse"]

_CHUNK = 64 << 10
"""The size of buffered frames, in bytes, at which reading pauses until the client reads."""
_COLLECT_TIME = 0.004
"""The seconds for which frames are collected, so that many frames are sent in few messages."""


class FrameResponse(Response):
    """A response with a stream of frames until they end or the client disconnects.

    Frames that are available at the same time are sent together. If the client does not read, at
    most about 64 KiB of frames are buffered. The iterator is always closed. In these points it
    differs from Starlette's `StreamingResponse`.

    Args:
        frames: The frames.
        content_type: The content type of the frames.
        headers: More headers.
        heartbeat: The seconds without data after which an empty frame is sent. It keeps the
            connection open and detects clients that have disconnected.
        heartbeat_frame: The empty frame.
        watching: Entered before the first frame and left after the last one or the disconnect.
    """

    def __init__(
        self,
        frames: AsyncIterator[bytes],
        *,
        content_type: str = "text/event-stream",
        headers: Mapping[str, str] | None = None,
        heartbeat: float | None = 15.0,
        heartbeat_frame: bytes = b":\n\n",
        watching: contextlib.AbstractContextManager[Any] | None = None,
    ) -> None:
        own = {
            "content-type": content_type,
            "cache-control": "no-cache, no-transform",
            "x-accel-buffering": "no",
            "x-content-type-options": "nosniff",
        }
        own |= {name.lower(): value for name, value in (headers or {}).items()}
        super().__init__(None, headers=own)
        del self.headers["content-length"]
        self._frames = frames
        self._heartbeat = heartbeat
        self._heartbeat_frame = heartbeat_frame
        self._watching = watching or contextlib.nullcontext()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the stream."""
        del scope
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        with self._watching:
            stream = _FrameSender(send, self._frames, self._heartbeat, self._heartbeat_frame)
            try:
                await stream.run(receive, start)
            finally:
                await stream.aclose()


class _FrameSender:
    """Sends frames from an iterator to a client.

    It has three tasks: one reads frames ahead up to a limit, one sends them, and one waits for the
    client to disconnect. `aclose` ends all of them.

    Args:
        send: The ASGI function for the response.
        frames: The frames.
        heartbeat: The seconds without data after which the heartbeat frame is sent.
        heartbeat_frame: The frame that is sent then.
    """

    def __init__(
        self,
        send: Send,
        frames: AsyncIterator[bytes],
        heartbeat: float | None,
        heartbeat_frame: bytes,
    ) -> None:
        self._send = send
        self._frames = frames
        self._heartbeat = heartbeat
        self._heartbeat_frame = heartbeat_frame
        self._ready: list[bytes] = []
        self._size = 0
        self._ended = False
        self._failure: BaseException | None = None
        self._has_data = asyncio.Event()
        self._has_room = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []
        self._loop = asyncio.get_running_loop()
        self._paused = True
        self._sent = self._loop.time()
        self._due = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, receive: Receive, start: MutableMapping[str, Any]) -> None:
        """Send all frames, or as many as the client accepts before it disconnects.

        Raises:
            Exception: The exception of the iterator. The response stays unfinished, so that the
                client detects the failure.
        """
        self._check_heartbeat()
        writing = self._start_task(self._write(start), "write")
        disconnecting = self._start_task(_wait_for_disconnect(receive), "watch")
        self._start_task(self._read(), "read")
        await asyncio.wait({writing, disconnecting}, return_when=asyncio.FIRST_COMPLETED)
        (writing if writing.done() else disconnecting).result()

    async def aclose(self) -> None:
        """Stop all tasks and close the iterator."""
        if self._timer is not None:
            self._timer.cancel()
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        try:
            for task in tasks:
                await finish(task, name="a stream to a client")
        finally:
            close = getattr(self._frames, "aclose", None)
            if close is not None and all(task.done() for task in tasks):
                await close()

    def _start_task(self, job: Any, name: str) -> asyncio.Task[Any]:
        task = self._loop.create_task(job, name=f"agents_tools stream {name}")
        self._tasks.append(task)
        return task

    async def _read(self) -> None:
        """Read frames, and pause while the client does not read."""
        try:
            async for frame in self._frames:
                self._ready.append(frame)
                self._size += len(frame)
                self._has_data.set()
                if self._paused:
                    await asyncio.sleep(_COLLECT_TIME)
                    self._continue_reading()
                while self._size >= _CHUNK:
                    self._has_room.clear()
                    await self._has_room.wait()
                    self._continue_reading()
        except Exception as error:  # noqa: BLE001 - raised by the writing task
            self._failure = error
        finally:
            self._ended = True
            self._has_data.set()

    def _continue_reading(self) -> None:
        """Read available frames without a pause, until the next turn of the loop."""
        self._paused = False
        self._loop.call_soon(self._pause)

    def _pause(self) -> None:
        self._paused = True

    def _check_heartbeat(self) -> None:
        """Request a heartbeat if the stream was silent, and schedule the next check."""
        if self._heartbeat is None:
            return
        rest = self._sent + self._heartbeat - self._loop.time()
        if rest <= 0:
            self._due, rest = True, self._heartbeat
            self._has_data.set()
        self._timer = self._loop.call_later(rest, self._check_heartbeat)

    async def _write(self, start: MutableMapping[str, Any]) -> None:
        """Send frames until the end or the disconnect."""
        try:
            await self._send(start)
            await self._send_body(b"", more=True)
            while True:
                data = await self._next()
                if data is None:
                    break
                await self._send_body(data, more=True)
                del data  # free the memory while waiting for the next frames
            if self._failure is None:
                await self._send_body(b"", more=False)
        except OSError:  # servers of ASGI 2.4 raise it after a disconnect
            return
        if self._failure is not None:
            raise self._failure

    async def _next(self) -> bytes | None:
        """Wait for frames and return all available ones; `None` at the end."""
        while not self._ready:
            if self._ended:
                return None
            if self._due:
                return self._heartbeat_frame
            self._has_data.clear()
            await self._has_data.wait()
        ready, self._ready = self._ready, []
        self._size = 0
        self._has_room.set()
        return b"".join(ready)

    async def _send_body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._sent, self._due = self._loop.time(), False


async def _wait_for_disconnect(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        pass
