"""A site with an agent for the tests of the web client, behind a line that can be cut."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine, Generator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, TypeVar

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    ToolProgressEvent,
    function_tool,
    streaming_tool,
)
from agents_tools.persistence import SQLiteRunStore
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui import RunManager, ag_ui, handle_run, vercel
from tests.ui.web import PATIENCE, served

ResultT = TypeVar("ResultT")

PAGES = 6
"""How many pages `scan` reads; the test opens a gate after each one."""


@dataclass
class Site:
    """The site while it is served.

    Attributes:
        pages: The HTML pages by path.
        port: The port that the browser uses, at the end of the line.
        ports: The ports of the servers.
        gate: Each release lets `scan` read one more page.
        starts: How many runs were started.
        scans: How many times `scan` was called.
        protocol: What the server speaks: that of `handle_run`, or that of another client.
        store: Where the runs are stored, for two servers; in memory by default.
    """

    pages: dict[str, str]
    port: int = 0
    ports: list[int] = field(default_factory=list[int])
    gate: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(0))
    starts: int = 0
    scans: int = 0
    protocol: Literal["sse", "ag_ui", "vercel"] = "sse"
    store: Path | None = None
    _loop: asyncio.AbstractEventLoop | None = None
    _line: _Line | None = None
    _agent: Agent[Any, Any] | None = None

    def url(self, path: str) -> str:
        """Return the address of a path."""
        return f"http://127.0.0.1:{self.port}{path}"

    def release(self, pages: int = 1) -> None:
        """Let `scan` read more pages."""
        assert self._loop is not None
        for _ in range(pages):
            self._loop.call_soon_threadsafe(self.gate.release)

    def cut(self) -> None:
        """Cut all connections, and refuse new ones."""
        assert self._line is not None
        self._run(self._line.cut())

    def restore(self) -> None:
        """Accept connections again."""
        assert self._line is not None
        self._run(self._line.open())

    def switch(self) -> None:
        """Let the line lead to the second server."""
        assert self._line is not None
        self.cut()
        self._line.target = self.ports[1]
        self.restore()

    def _run(self, job: Coroutine[Any, Any, ResultT]) -> ResultT:
        assert self._loop is not None
        return asyncio.run_coroutine_threadsafe(job, self._loop).result(PATIENCE)

    def agent(self) -> Agent[Any, Any]:
        """Return a shop with a researcher; its tools wait for the test."""

        @streaming_tool
        async def scan(pages: int) -> AsyncIterator[Event | str]:
            """Read pages."""
            self.scans += 1
            for page in range(1, pages + 1):
                yield ToolProgressEvent(page, total=pages, message="pages")
                yield NotifyStreamEvent(f"read page {page}")
                await self.gate.acquire()
            yield f"{pages} pages"

        @function_tool
        async def wait(what: str) -> str:
            """Wait for something that does not come."""
            await asyncio.Event().wait()
            return what

        @needs_approval
        @function_tool
        def order(count: int) -> str:
            """Order flour."""
            return f"{count} bags ordered"

        researcher = Agent(
            "researcher",
            tools=[scan],
            model=ScriptedModel([tool_call("scan", pages=PAGES), "Flour is cheap."]),
        )
        calls = [tool_call("research", input="flour"), tool_call("wait", what="rain")]
        script = [
            calls if self.protocol == "sse" else calls[:1],  # others cannot cancel a single call
            tool_call("order", count=3),
            "The flour comes tomorrow.",
            "You are welcome.",
        ]
        research = researcher.as_tool("research", "Research something.", streaming=True)
        return Agent("shop", tools=[research, wait, order], model=ScriptedModel(script))

    async def page(self, request: Request) -> Response:
        """Answer with a page."""
        return HTMLResponse(self.pages[request.url.path])

    def _first_agent(self) -> Agent[Any, Any]:
        self._agent = self._agent or self.agent()
        return self._agent

    def app(self) -> Any:
        """Return the application of one server, with a route for the agent."""
        keeps_display = self.protocol == "ag_ui"  # its guide says so
        store = (
            None if self.store is None else SQLiteRunStore(self.store, keep_display=keeps_display)
        )
        if self.protocol != "sse":
            app = ag_ui.app if self.protocol == "ag_ui" else vercel.app
            agent = self._first_agent()
            return app(agent, store=store, on_disconnect="detach", heartbeat=0.2)
        runs = RunManager(store=store)
        shared = None if store is None else self._first_agent()  # its script continues elsewhere

        async def handle(request: Request) -> Response:
            self.starts += request.method == "POST" and request.path_params["path"] == "runs"
            return await handle_run(request, agent=shared or self.agent(), runs=runs)

        routes = [
            Route("/agent/{path:path}", handle, methods=["GET", "POST"]),
            *(Route(path, self.page) for path in self.pages),
        ]
        return Starlette(routes=routes, lifespan=runs.lifespan)


class _Line:
    """A TCP proxy.

    Args:
        target: The port of the server.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self.port = 0

    async def open(self) -> None:
        """Accept connections."""
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def cut(self) -> None:
        """Cut all connections, and refuse new ones."""
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            async with _connection(self.target) as far, asyncio.TaskGroup() as group:
                group.create_task(_copy(reader, far[1]))
                group.create_task(_copy(far[0], writer))
        except* (OSError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.transport.abort()


@contextlib.asynccontextmanager
async def _connection(
    port: int,
) -> AsyncGenerator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65_536):
        writer.write(data)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()


@contextlib.contextmanager
def open_site(
    pages: dict[str, str],
    store: Path | None = None,
    protocol: Literal["sse", "ag_ui", "vercel"] = "sse",
) -> Generator[Site]:
    """Serve a site in a thread while the block runs, with a store on two servers."""
    site = Site(pages, store=store, protocol=protocol)
    ready, stop = threading.Event(), asyncio.Event()

    async def serve() -> None:
        site._loop = asyncio.get_running_loop()
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(1 if store is None else 2):
                site.ports.append(await stack.enter_async_context(served(site.app())))
            site._line = line = _Line(site.ports[0])
            await line.open()
            site.port = line.port
            ready.set()
            await stop.wait()
            await line.cut()

    thread = threading.Thread(target=asyncio.run, args=(serve(),), daemon=True)
    thread.start()
    assert ready.wait(PATIENCE)
    try:
        yield site
    finally:
        assert site._loop is not None
        site._loop.call_soon_threadsafe(stop.set)
        thread.join(PATIENCE)
        assert not thread.is_alive()
