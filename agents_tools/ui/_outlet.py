"""Takes frames to one client as they come, and finds out when nobody is there any more."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from agents_tools._supervisor import finish

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping

    Receive: TypeAlias = Callable[[], Awaitable[MutableMapping[str, Any]]]
    Send: TypeAlias = Callable[[MutableMapping[str, Any]], Awaitable[None]]

__all__ = ["Outlet"]

_CHUNK = 64 << 10
"""Bytes of frames that wait for a client; beyond them its frames are not made."""
_PACE = 0.004
"""Seconds in which frames gather after one was sent, so that a flood goes in fewer pieces."""


class Outlet:
    """Takes frames from their iterator to a client.

    Three tasks: one reads frames ahead up to a bound, one writes what is there, and one waits for
    the client to go. None of them outlives `aclose`.

    Args:
        send: Takes the answer.
        frames: The frames.
        heartbeat: After how many silent seconds something is sent all the same.
        heartbeat_frame: What.
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
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._tasks: list[asyncio.Task[Any]] = []
        self._loop = asyncio.get_running_loop()
        self._paused = True
        self._sent = self._loop.time()
        self._due = False
        self._timer: asyncio.TimerHandle | None = None

    async def run(self, receive: Receive, start: MutableMapping[str, Any]) -> bool:
        """Send everything; say whether the client was gone before.

        Raises:
            Exception: What the iterator raised; the answer is left unfinished, so that the client
                knows.
        """
        self._beat()
        writing = self._begin(self._write(start), "write")
        leaving = self._begin(_left(receive), "watch")
        self._begin(self._read(), "read")
        await asyncio.wait({writing, leaving}, return_when=asyncio.FIRST_COMPLETED)
        if writing.done():
            return not writing.result()
        leaving.result()
        return True

    async def aclose(self) -> None:
        """Stop all, and close the iterator."""
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

    def _begin(self, job: Any, name: str) -> asyncio.Task[Any]:
        task = self._loop.create_task(job, name=f"agents_tools stream {name}")
        self._tasks.append(task)
        return task

    async def _read(self) -> None:
        """Take frames as they come, as long as the client takes them, too."""
        try:
            async for frame in self._frames:
                self._ready.append(frame)
                self._size += len(frame)
                self._news.set()
                if self._paused:
                    await asyncio.sleep(_PACE)
                    self._go_on_reading()
                while self._size >= _CHUNK:
                    self._room.clear()
                    await self._room.wait()
                    self._go_on_reading()
        except Exception as error:  # noqa: BLE001 - raised where the answer is written
            self._failure = error
        finally:
            self._ended = True
            self._news.set()

    def _go_on_reading(self) -> None:
        """Take what is there at once without a pause; who waits for a frame lets others run."""
        self._paused = False
        self._loop.call_soon(self._pause)

    def _pause(self) -> None:
        self._paused = True

    def _beat(self) -> None:
        """Ask for a heartbeat when nothing was sent for long, and look again in time."""
        if self._heartbeat is None:
            return
        rest = self._sent + self._heartbeat - self._loop.time()
        if rest <= 0:
            self._due, rest = True, self._heartbeat
            self._news.set()
        self._timer = self._loop.call_later(rest, self._beat)

    async def _write(self, start: MutableMapping[str, Any]) -> bool:
        """Send what is there, again and again; say whether the client has got all."""
        try:
            await self._send(start)
            await self._send_body(b"", more=True)
            while True:
                data = await self._next()
                if data is None:
                    break
                await self._send_body(data, more=True)
                del data  # whoever waits for more holds nothing of what was sent
            if self._failure is None:
                await self._send_body(b"", more=False)
        except OSError:  # how servers of ASGI 2.4 say that nobody is there
            return False
        if self._failure is not None:
            raise self._failure
        return True

    async def _next(self) -> bytes | None:
        """Wait for frames and give all that are there; `None` at the end."""
        while not self._ready:
            if self._ended:
                return None
            if self._due:
                return self._heartbeat_frame
            self._news.clear()
            await self._news.wait()
        ready, self._ready = self._ready, []
        self._size = 0
        self._room.set()
        return b"".join(ready)

    async def _send_body(self, data: bytes, *, more: bool) -> None:
        await self._send({"type": "http.response.body", "body": data, "more_body": more})
        self._sent, self._due = self._loop.time(), False


async def _left(receive: Receive) -> None:
    """Wait until the client is gone."""
    while (await receive())["type"] != "http.disconnect":
        pass
