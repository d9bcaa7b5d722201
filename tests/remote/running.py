"""Servers of tools and what stands before them, as processes of a test, and their client."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from agents_tools import FunctionTool, ToolContext
from agents_tools.mcp import MCPToolManager
from tests.programs import find
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator
    from typing import Self, TypeAlias

    from agents_tools.tool import CallOutcome

    Tool: TypeAlias = FunctionTool[..., Any]
    Tools: TypeAlias = dict[str, Tool]

ROOT = Path(__file__).parents[2]
BOUND = 30.0
"""Seconds for what takes one: a test that waits longer has found a wait without an end."""
TOKEN = "a-token-of-the-worker"  # noqa: S105 - of a test


class ServerProcess:
    """A server in a process group of its own; it can be killed and started again at its address.

    Args:
        prefix: What the command begins with, to start it elsewhere.
        **options: What it serves with.
    """

    def __init__(self, *, prefix: tuple[str, ...] = (), **options: Any) -> None:
        self._prefix = prefix
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.url = ""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.kill()

    @property
    def pid(self) -> int:
        """Its process."""
        assert self._process is not None
        return self._process.pid

    @property
    def port(self) -> int:
        """Where it listens."""
        return urlsplit(self.url).port or 0

    def start(self) -> None:
        """Start it, at the port that it had before if it had one."""
        options = {**self._options, **({"port": self.port} if self.url else {})}
        command = [sys.executable, "-m", "tests.remote.server", json.dumps(options)]
        self._process = subprocess.Popen(  # noqa: S603 - our own words
            [*self._prefix, *command],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        self.url = self._process.stdout.readline().strip()
        assert self.url, "the server ended at once"

    def send(self, number: signal.Signals) -> None:
        """Send its group a signal."""
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.pid, number)

    def kill(self) -> None:
        """Kill it and all that it has started, as `kill -9` does."""
        if self._process is None:
            return
        self.send(signal.SIGKILL)
        self._process.wait(BOUND)
        if self._process.stdout is not None:
            self._process.stdout.close()


class Balancer:
    """A TCP proxy that forwards each connection to the next server, and can cut them all.

    Args:
        *ports: The ports of the servers.
        host: The address of the servers.
    """

    def __init__(self, *ports: int, host: str = "127.0.0.1") -> None:
        self._ports = ports
        self._host = host
        self._turn = 0
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self.url = ""

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._joined, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/mcp"
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        assert self._server is not None
        self._server.close()
        self.cut()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=BOUND)

    def cut(self) -> None:
        """Cut all connections, as a broken cable does that both ends notice."""
        for writer in list(self._open):
            writer.transport.abort()

    async def _joined(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        port, self._turn = self._ports[self._turn % len(self._ports)], self._turn + 1
        try:
            far_reader, far_writer = await asyncio.open_connection(self._host, port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, far_writer}
        try:
            await asyncio.gather(_pipe(reader, far_writer), _pipe(far_reader, writer))
        finally:
            self._open -= {writer, far_writer}
            for one in (writer, far_writer):
                one.transport.abort()


async def _pipe(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextlib.contextmanager
def nginx(*ports: int) -> Generator[str]:
    """Run nginx before some servers, in a folder of its own, and return its address."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    upstream = "\n".join(f"    server 127.0.0.1:{one} max_fails=0;" for one in ports)
    with tempfile.TemporaryDirectory() as folder:
        config = Path(folder) / "nginx.conf"
        config.write_text(_NGINX.format(folder=folder, port=port, upstream=upstream))
        process = subprocess.Popen(  # noqa: S603 - our own words
            [str(find("nginx")), "-p", folder, "-c", str(config), "-e", f"{folder}/errors"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            until(lambda: _listens(port))
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.terminate()
            process.wait(BOUND)


_NGINX = """
daemon off;
worker_processes 1;
pid {folder}/pid;
events {{ worker_connections 512; }}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream servers {{
{upstream}
    keepalive 16;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://servers;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_set_header Host 127.0.0.1;
      proxy_buffering off;
      proxy_read_timeout 1h;
    }}
  }}
}}
"""


def _listens(port: int) -> bool:
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


@contextlib.asynccontextmanager
async def tools_of(url: str, *, token: str | None = None, **options: Any) -> AsyncGenerator[Tools]:
    """Connect the MCP client to a server, and return its tools by their names."""
    headers = {} if token is None else {"authorization": f"Bearer {token}"}
    async with MCPToolManager() as manager:
        tools = await manager.add_server("far", url=url, headers=headers, prefix=None, **options)
        yield {tool.name: tool for tool in tools}


async def outcome_of(tool: Tool, *, emit: Any = None, **arguments: Any) -> CallOutcome:
    """Call a tool within the bound."""
    context: ToolContext[Any] = ToolContext(emit=emit)
    return await asyncio.wait_for(tool.call(context, json.dumps(arguments)), BOUND)


async def status_of(tool: Tool, **arguments: Any) -> str:
    """Call a tool and return its status."""
    return (await outcome_of(tool, **arguments)).status
