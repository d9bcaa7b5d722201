"""A client of the playground that sends the requests of its page, without a network."""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents_tools.playground import app
from agents_tools.playground.target_state import LoadedTarget

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Sequence

    from agents_tools.playground import PlaygroundApp

TOKEN = "a-token-for-tests-only"  # noqa: S105 - of these tests alone
BOUND = 45.0


@dataclass(frozen=True, kw_only=True)
class Answer:
    """The response of the server."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """Return the body as JSON."""
        return json.loads(self.body)


@dataclass(kw_only=True)
class Client:
    """The page's end of it.

    Attributes:
        app: The playground.
        token: What is sent as the bearer token; `None` for none.
    """

    app: PlaygroundApp
    token: str | None = TOKEN
    open: set[asyncio.Task[None]] = field(default_factory=set["asyncio.Task[None]"])

    async def ask(
        self, method: str, target: str, body: Any = None, headers: Sequence[tuple[str, str]] = ()
    ) -> Answer:
        """Send a request and wait for the complete response."""
        parts: list[Any] = []

        async def send(message: Any) -> None:
            parts.append(message)

        scope, messages = self._request(method, target, body, headers)
        async with asyncio.timeout(BOUND):
            await self.app(scope, _receive(messages), send)
        content = b"".join(part.get("body", b"") for part in parts[1:])
        return Answer(status=parts[0]["status"], headers=_named(parts[0]), body=content)

    async def get(self, target: str) -> Any:
        """Request a resource that must exist."""
        answer = await self.ask("GET", target)
        assert answer.status == 200, answer.body
        return answer.json

    async def post(self, target: str, body: Any, status: int = 200) -> Any:
        """Send something."""
        answer = await self.ask("POST", target, body)
        assert answer.status == status, answer.body
        return answer.json

    @contextlib.asynccontextmanager
    async def stream(self, target: str) -> AsyncGenerator[AsyncGenerator[dict[str, Any]]]:
        """Follow a stream of events; leaving the block cuts the connection."""
        pieces: asyncio.Queue[Any] = asyncio.Queue()
        scope, messages = self._request("GET", target, None, ())
        task = asyncio.create_task(self.app(scope, _receive(messages), pieces.put))
        try:
            async with asyncio.timeout(BOUND):
                yield _frames(pieces)
        finally:
            task.cancel()
            await asyncio.wait({task})

    async def run(self, body: Any) -> dict[str, Any]:
        """Start a run and wait until it has ended or waits."""
        started = await self.post("/api/runs", body, 202)
        return await self.ended(started["run_id"])

    async def ended(self, run_id: str) -> dict[str, Any]:
        """Wait until a run has ended or waits, and return its details."""
        async with self.stream(f"/api/runs/{run_id}/events?after=-1") as frames:
            async for _ in frames:
                pass
        return await self.get(f"/api/runs/{run_id}")

    def _request(
        self, method: str, target: str, body: Any, headers: Sequence[tuple[str, str]]
    ) -> tuple[dict[str, Any], list[Any]]:
        given = {"host": "127.0.0.1:8321"}
        if self.token is not None:
            given["authorization"] = f"Bearer {self.token}"
        data = b""
        if body is not None:
            data = body if isinstance(body, bytes) else json.dumps(body).encode()
            given["content-type"] = "application/json"
        split = urlsplit(target)
        pairs = [*((k, v) for k, v in given.items() if k not in dict(headers)), *headers]
        scope = {
            "type": "http",
            "method": method,
            "path": split.path,
            "query_string": split.query.encode(),
            "headers": [(key.encode(), value.encode("latin-1")) for key, value in pairs],
            "client": ("127.0.0.1", 1),
        }
        return scope, [{"type": "http.request", "body": data, "more_body": False}]


@contextlib.asynccontextmanager
async def playing(*tools: Any, agents: Any = None, **options: Any) -> AsyncGenerator[Client]:
    """Yield a client of a playground with some tools."""
    loaded = LoadedTarget(target="tools.py", tools=tools, agents=agents or {}, place="tools.py")
    options = {"token": TOKEN, "target": "tools.py", **options}
    async with serving(app(lambda: loaded, **options)) as client:
        yield client


@contextlib.asynccontextmanager
async def serving(made: PlaygroundApp) -> AsyncGenerator[Client]:
    """Yield a client of a running playground."""
    await made.start()
    try:
        yield Client(app=made)
    finally:
        await made.aclose()


def _receive(messages: list[Any]) -> Any:
    async def receive() -> Any:
        if messages:
            return messages.pop(0)
        return await asyncio.Event().wait()

    return receive


async def _frames(pieces: asyncio.Queue[Any]) -> AsyncGenerator[dict[str, Any]]:
    """Read frames until the end of the stream."""
    start = await pieces.get()
    if start["status"] == 204:
        return
    assert start["status"] == 200, await pieces.get()
    text = b""
    more = True
    while more:
        message = await pieces.get()
        more = message.get("more_body", False)
        text += message.get("body", b"")
        *whole, text = text.split(b"\n\n")
        for frame in whole:
            lines = dict(line.split(": ", 1) for line in frame.decode().split("\n") if ": " in line)
            if lines:
                yield {**lines, "data": json.loads(lines["data"])}


def _named(start: Any) -> dict[str, str]:
    return {key.decode().lower(): value.decode("latin-1") for key, value in start["headers"]}
