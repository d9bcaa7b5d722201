"""An MCP server over HTTP, in the process of the test, that fails as the test says; only stdlib.

`async with HostileHTTP() as server` gives one with the tools `echo`, `add` and `idempotent`.
`server.next(method, *faults)` says what happens with the next requests of a JSON-RPC method, or of
an HTTP method (`GET`); when the faults are used up it answers as it should.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Self

LEGACY, MODERN = "2025-11-25", "2026-07-28"
_OBJECT: dict[str, Any] = {"type": "object"}

TOOLS: list[dict[str, Any]] = [
    {
        "name": "echo",
        "description": "Give back a text.",
        "inputSchema": {**_OBJECT, "properties": {"text": {"type": "string"}}},
    },
    {
        "name": "add",
        "description": "Add two numbers.",
        "inputSchema": {
            **_OBJECT,
            "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
            "required": ["a", "b"],
        },
    },
    {
        "name": "idempotent",
        "description": "Says that it may be called again.",
        "inputSchema": _OBJECT,
        "annotations": {"idempotentHint": True, "readOnlyHint": True},
    },
]


@dataclass(frozen=True, slots=True)
class Request:
    """What came.

    Attributes:
        verb: The HTTP method.
        headers: The headers, by lower-case name.
        message: The JSON-RPC message; empty where there is none.
    """

    verb: str
    headers: Mapping[str, str]
    message: dict[str, Any]

    @property
    def method(self) -> str:
        """Return the JSON-RPC method, or the HTTP method if there is none."""
        return self.message.get("method") or self.verb

    @property
    def id(self) -> Any:
        """Return the id of the JSON-RPC request."""
        return self.message.get("id")


Fault = Callable[[Request, asyncio.StreamWriter], Awaitable[None]]
"""Writes what it wants for a request. The connection is closed after it."""


@dataclass(slots=True)
class HostileHTTP:
    """A server that can be stopped, started again at the same port, and told to fail.

    Attributes:
        modern: Whether it speaks the version without sessions.
        sessions: Whether it gives out session ids; of the older version only.
        requests: What came, in order.
        calls: The names of the tools that were run, in order.
        given: The session ids it has given out and still knows.
        silent: Set when a request came that is not answered.
        unknown: The status and the body of the answer to a request in an unknown session.
    """

    modern: bool = False
    sessions: bool = True
    requests: list[Request] = field(default_factory=list[Request])
    calls: list[str] = field(default_factory=list[str])
    given: set[str] = field(default_factory=set[str])
    silent: asyncio.Event = field(default_factory=asyncio.Event)
    unknown: tuple[int, bytes] = (404, b"")
    port: int = 0
    _came: asyncio.Event = field(default_factory=asyncio.Event)
    _faults: dict[str, deque[Fault]] = field(default_factory=lambda: defaultdict(deque[Fault]))
    _server: asyncio.Server | None = None
    _writers: set[asyncio.StreamWriter] = field(default_factory=set[asyncio.StreamWriter])
    _tasks: set[asyncio.Task[Any]] = field(default_factory=set[asyncio.Task[Any]])

    @property
    def url(self) -> str:
        """Return the address of the server."""
        return f"http://127.0.0.1:{self.port}/mcp"

    def next(self, method: str, *faults: Fault) -> None:
        """Set the faults for the next requests of a method."""
        self._faults[method].extend(faults)

    def heal(self) -> None:
        """Remove the faults that have not happened yet."""
        self._faults.clear()

    def count(self, method: str) -> int:
        """Return the number of received requests of a method."""
        return sum(request.method == method for request in self.requests)

    async def came(self, method: str, times: int) -> None:
        """Wait until a number of requests of a method has been received."""
        while self.count(method) < times:
            self._came.clear()
            await self._came.wait()

    async def start(self) -> None:
        """Listen at the previous port, or at a free one."""
        self._server = await asyncio.start_server(self._connected, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def stop(self) -> None:
        """Stop at once, as a killed process does: connections are cut, sessions are lost."""
        server, self._server = self._server, None
        if server is None:
            return
        server.close()
        for writer in self._writers:
            writer.transport.abort()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await server.wait_closed()
        self.given.clear()

    async def __aenter__(self) -> Self:
        await self.start()
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        await self.stop()

    # --- connections

    def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._talk(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._writers.add(writer)
        try:
            with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
                while (request := await read_request(reader)) is not None:
                    self.requests.append(request)
                    self._came.set()
                    if self._faults[request.method]:
                        await self._faults[request.method].popleft()(request, writer)
                        break
                    await self._answer(request, writer)
        finally:
            self._writers.discard(writer)
            writer.close()

    async def _answer(self, request: Request, writer: asyncio.StreamWriter) -> None:
        if request.verb == "GET":
            await respond(writer, 405)
        elif request.verb == "DELETE":
            self.given.discard(request.headers.get("mcp-session-id", ""))
            await respond(writer, 200)
        elif self._unknown_session(request):
            await respond(writer, *self.unknown)
        elif request.id is None:
            await respond(writer, 202)
        else:
            headers: dict[str, str] = {}
            if request.method == "initialize" and self.sessions and not self.modern:
                headers["mcp-session-id"] = session = f"session-{len(self.requests)}"
                self.given.add(session)
            message = {"jsonrpc": "2.0", "id": request.id, **self.result(request)}
            await respond_json(writer, message, headers=headers)

    def _unknown_session(self, request: Request) -> bool:
        if self.modern or not self.sessions or request.method in {"initialize", "server/discover"}:
            return False
        return request.headers.get("mcp-session-id") not in self.given

    # --- request handling

    def result(self, request: Request) -> dict[str, Any]:
        """Return the `result` or the `error` for a request."""
        method = request.method
        params: dict[str, Any] = request.message.get("params") or {}
        if method == ("initialize" if self.modern else "server/discover"):
            return {"error": {"code": -32601, "message": f"Method not found: {method}"}}
        if method == "initialize":
            info = {"name": "hostile", "version": "1"}
            return {
                "result": {
                    "protocolVersion": LEGACY,
                    "capabilities": {"tools": {}},
                    "serverInfo": info,
                }
            }
        if method == "server/discover":
            found = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}}
            return {"result": self._modern(found)}
        if method == "tools/list":
            return {"result": self._modern({"tools": TOOLS})}
        if method == "tools/call":
            return {"result": self._modern(self.call(params))}
        return {"error": {"code": -32601, "message": f"Method not found: {method}"}}

    def _modern(self, result: dict[str, Any]) -> dict[str, Any]:
        if not self.modern:
            return result
        return {**result, "resultType": "complete", "ttlMs": 0, "cacheScope": "private"}

    def call(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Run a tool."""
        name, arguments = params["name"], params.get("arguments") or {}
        self.calls.append(name)
        text = str(arguments["a"] + arguments["b"]) if name == "add" else arguments.get("text", "")
        return {"content": [{"type": "text", "text": text}]}


# --- HTTP


async def read_request(reader: asyncio.StreamReader) -> Request | None:
    """Read one request; return `None` if the connection ends instead."""
    head = await reader.readline()
    if not head:
        return None
    verb = head.split()[0].decode()
    headers: dict[str, str] = {}
    while (line := await reader.readline()).strip():
        name, _, value = line.decode().partition(":")
        headers[name.strip().lower()] = value.strip()
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(verb, headers, json.loads(body) if body else {})


async def respond(
    writer: asyncio.StreamWriter,
    status: int,
    body: bytes = b"",
    headers: Mapping[str, str] | None = None,
) -> None:
    """Write a whole response."""
    await respond_part(writer, status, body, {"content-length": str(len(body)), **(headers or {})})


async def respond_part(
    writer: asyncio.StreamWriter, status: int, body: bytes, headers: Mapping[str, str]
) -> None:
    """Write a head and the beginning of the body; the announced length can be greater."""
    lines = [f"HTTP/1.1 {status} So", *(f"{name}: {value}" for name, value in headers.items())]
    writer.write("\r\n".join([*lines, "", ""]).encode() + body)
    await writer.drain()


async def respond_json(
    writer: asyncio.StreamWriter, message: Any, headers: Mapping[str, str] | None = None
) -> None:
    """Write a response of JSON."""
    body = json.dumps(message).encode()
    await respond(writer, 200, body, {"content-type": "application/json", **(headers or {})})


def event(message: Any, number: str | None = None) -> bytes:
    """Return a server-sent event."""
    head = "" if number is None else f"id: {number}\n"
    return f"{head}data: {json.dumps(message)}\n\n".encode()


def text_answer(request: Request, text: str) -> dict[str, Any]:
    """Return the JSON-RPC response of a tool that returns a text."""
    result = {"content": [{"type": "text", "text": text}], "resultType": "complete"}
    return {"jsonrpc": "2.0", "id": request.id, "result": result}


# --- faults


def status(code: int, body: bytes = b"", **headers: str) -> Fault:
    """Answer with a status; `_` in the name of a header stands for a hyphen."""
    named = {name.replace("_", "-"): value for name, value in headers.items()}

    async def fault(request: Request, writer: asyncio.StreamWriter) -> None:
        await respond(writer, code, body, {"connection": "close", **named})

    return fault


def typed(content_type: str | None, body: bytes) -> Fault:
    """Answer with a body of some type."""

    async def fault(request: Request, writer: asyncio.StreamWriter) -> None:
        kind = {} if content_type is None else {"content-type": content_type}
        await respond(writer, 200, body, {"connection": "close", **kind})

    return fault


async def cut_request(request: Request, writer: asyncio.StreamWriter) -> None:
    """Cut the connection after the request was read, without an answer."""
    writer.transport.abort()


async def cut_body(request: Request, writer: asyncio.StreamWriter) -> None:
    """Cut the connection in the middle of a JSON body."""
    headers = {"content-type": "application/json", "content-length": "1000"}
    await respond_part(writer, 200, b'{"jsonrpc": "2.0", "id": ', headers)
    writer.transport.abort()


def sse(*events: Callable[[Request], bytes], reset: bool = False) -> Fault:
    """Answer with a stream of the given parts, and end it properly or cut it."""

    async def fault(request: Request, writer: asyncio.StreamWriter) -> None:
        headers = {"content-type": "text/event-stream", "transfer-encoding": "chunked"}
        await respond_part(writer, 200, b"", headers)
        for make in events:
            data = make(request)
            writer.write(b"%x\r\n%s\r\n" % (len(data), data))
            await writer.drain()
        if reset:
            writer.close()  # without the last chunk
        else:
            writer.write(b"0\r\n\r\n")
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed() if reset else await writer.drain()

    return fault


def silence(server: HostileHTTP) -> Fault:
    """Never answer, until the client disconnects."""

    async def fault(request: Request, writer: asyncio.StreamWriter) -> None:
        server.silent.set()
        await asyncio.Event().wait()

    return fault


def slow_body(server: HostileHTTP, pause: float = 0.05) -> Fault:
    """Announce a body and send it one byte at a time, forever."""

    async def fault(request: Request, writer: asyncio.StreamWriter) -> None:
        headers = {"content-type": "application/json", "content-length": "1000000"}
        await respond_part(writer, 200, b"", headers)
        server.silent.set()
        while True:
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(pause)

    return fault
