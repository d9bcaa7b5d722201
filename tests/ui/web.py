"""HTTP test clients: in memory, message by message, and over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncGenerator, Callable, Mapping, MutableMapping
from typing import Any

from tests.quick_server import running

PATIENCE = 45.0
HOST = "127.0.0.1:8000"


class Exchange:
    """One request to an ASGI app in this process, its answer as it comes.

    Args:
        app: The app.
        method: The method.
        path: The path, with what follows a `?`.
        body: What is sent as JSON, or as it is where it is bytes; `None` for nothing.
        headers: Headers in addition to Host and Content-Type.
        kind: The content type.
        root_path: Where the app is mounted.
        spec: The version of ASGI that the server speaks: from 2.4 on, to send to a client that is
            gone is an error.
    """

    def __init__(
        self,
        app: Any,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        kind: str | None = "application/json",
        root_path: str = "",
        client: tuple[str, int] | None = ("127.0.0.1", 50_000),
        spec: str = "2.3",
    ) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.parts: list[bytes] = []
        self.sends = 0
        self._spec = spec
        data = body if isinstance(body, bytes) else b"" if body is None else _json(body)
        self._coming: list[MutableMapping[str, Any]] = [
            {"type": "http.request", "body": data, "more_body": False}
        ]
        self._gone = asyncio.Event()
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._room.set()
        place, _, query = path.partition("?")
        given = {"host": HOST, **({"content-type": kind} if kind else {}), **(headers or {})}
        scope: dict[str, Any] = {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": spec},
            "http_version": "1.1",
            "method": method,
            "path": root_path + place,
            "root_path": root_path,
            "query_string": query.encode(),
            "headers": [(key.encode(), value.encode("latin-1")) for key, value in given.items()],
            "client": client,
        }
        self.task = asyncio.ensure_future(app(scope, self._receive, self._send))
        self.task.add_done_callback(lambda _: self._news.set())

    @property
    def text(self) -> str:
        """Return the text received so far."""
        return b"".join(self.parts).decode()

    @property
    def json(self) -> Any:
        """Return the received body as JSON."""
        return json.loads(self.text)

    @property
    def message(self) -> str:
        """Return the message of an error response."""
        return self.json["error"]["message"]

    async def whole(self) -> Exchange:
        """Wait for the end of the response."""
        async with asyncio.timeout(PATIENCE):
            await self.task
        return self

    async def until(self, text: str, times: int = 1) -> str:
        """Wait until a text was received a number of times, and return everything received."""
        async with asyncio.timeout(PATIENCE):
            while self.text.count(text) < times:
                if self.task.done():
                    raise AssertionError(f"{text!r} has not come: {self.status} {self.text[-500:]}")
                self._news.clear()
                await self._news.wait()
        return self.text

    async def leave(self) -> None:
        """Close the connection, and wait until the app has noticed."""
        self.disconnect()
        async with asyncio.timeout(PATIENCE):
            await self.task

    def disconnect(self) -> None:
        """Close the connection."""
        self._gone.set()
        self._room.set()

    def stall(self) -> None:
        """Stop reading the response."""
        self._room.clear()

    def resume(self) -> None:
        """Read again."""
        self._room.set()

    async def wait_for(self, ready: Callable[[], object], within: float = PATIENCE) -> None:
        """Wait until a condition holds; it is checked for each received part."""
        async with asyncio.timeout(within):
            while not ready():
                assert not self.task.done(), f"it has ended: {self.status} {self.text[-500:]}"
                self._news.clear()
                await self._news.wait()

    async def _receive(self) -> MutableMapping[str, Any]:
        if self._coming:
            return self._coming.pop(0)
        if self._spec >= "2.4":
            await asyncio.Event().wait()  # this server reports it at the next send only
        await self._gone.wait()
        return {"type": "http.disconnect"}

    async def _send(self, message: MutableMapping[str, Any]) -> None:
        self.sends += 1
        await self._room.wait()
        if self._gone.is_set():
            if self._spec >= "2.4":
                raise OSError("the client is gone")
            return
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {key.decode(): value.decode() for key, value in message["headers"]}
        else:
            self._take(message.get("body", b""))
        self._news.set()

    def _take(self, part: bytes) -> None:
        self.parts.append(part)


async def ask(app: Any, method: str, path: str, body: Any = None, **how: Any) -> Exchange:
    """Send one request, and return the complete response."""
    return await Exchange(app, method, path, body, **how).whole()


@contextlib.asynccontextmanager
async def served(app: Any, *, backlog: int = 2048) -> AsyncGenerator[int]:
    """Serve an app on a free port of this machine while the block runs."""
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen(backlog)
    started = asyncio.Event()

    async def watched(scope: Any, receive: Any, send: Any) -> None:
        async def told(message: MutableMapping[str, Any]) -> None:
            await send(message)
            started.set()

        await app(scope, receive, told if scope["type"] == "lifespan" else send)

    async with running(watched, sock, ws="none"):
        async with asyncio.timeout(PATIENCE):
            await started.wait()
        yield sock.getsockname()[1]


class Raw:
    """A connection on which requests are written by hand.

    Args:
        reader: What comes.
        writer: What goes.
    """

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, port: int, limit: int = 1 << 20) -> AsyncGenerator[Raw]:
        """Connect to a port of this machine; the connection is cut at the end."""
        reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=limit)
        raw = cls(reader, writer)
        try:
            yield raw
        finally:
            raw.cut()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    def request(
        self, method: str, path: str, body: Any = None, headers: Mapping[str, str] | None = None
    ) -> None:
        """Write a request of HTTP 1.0, so that the body is raw and ends with the connection."""
        data = b"" if body is None else _json(body)
        given = {"Host": "127.0.0.1", "Content-Length": str(len(data)), **(headers or {})}
        if method == "POST":
            given.setdefault("Content-Type", "application/json")
        head = "".join(f"{name}: {value}\r\n" for name, value in given.items())
        self.writer.write(f"{method} {path} HTTP/1.0\r\n{head}\r\n".encode() + data)

    async def until(self, text: bytes) -> bytes:
        """Read up to a text."""
        async with asyncio.timeout(PATIENCE):
            return await self.reader.readuntil(text)

    def cut(self) -> None:
        """Cut the connection, as after a power failure."""
        transport: Any = self.writer.transport
        transport.abort()


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()
