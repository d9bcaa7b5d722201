"""Every listener of the package is on loopback, needs a token, and rejects foreign web pages.

Each one is started as a user starts it and asked over real sockets. A place in the package that
opens a socket and is not in the table fails the suite.
"""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest

import agents_tools
from agents_tools import Agent, UserError, function_tool, playground
from agents_tools.mcp import mcp_server, serve, serve_async
from agents_tools.server.listener import bound_socket
from agents_tools.testing import ScriptedModel
from agents_tools.ui import ag_ui, sse, vercel
from tests.durable.lite import needs_dbos_on_sqlite
from tests.ui.web import served

PACKAGE = Path(agents_tools.__file__).parent
TOKEN = "canary-7f3a9c-canary-7f3a9c"  # noqa: S105 - opens nothing
PATIENCE = 30.0
TOOLS = """
from agents_tools import function_tool

@function_tool
def add(a: int, b: int) -> int:
    return a + b
"""


@function_tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@dataclass(frozen=True)
class Open:
    """A listener that is running.

    Attributes:
        port: Its port.
        token: The token that it accepts.
        path: A path that requires the token.
        body: What is posted there; `None` to get it.
    """

    port: int
    token: str
    path: str
    body: Any = None

    async def ask(self, **headers: str) -> httpx.Response:
        """Send a request."""
        method = "GET" if self.body is None else "POST"
        url = f"http://127.0.0.1:{self.port}{self.path}"
        given = {"accept": "application/json, text/event-stream", **headers}
        async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
            return await client.request(method, url, json=self.body, headers=given)


def initialize() -> dict[str, Any]:
    info = {"name": "a test", "version": "1"}
    params = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": info}
    return {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}


def talker() -> Agent[Any, Any]:
    return Agent("Talker", tools=[add], model=ScriptedModel(["Hello."] * 20))


# --- how each is started


@contextlib.asynccontextmanager
async def command(folder: Path, *words: str) -> AsyncGenerator[dict[str, Any]]:
    """Run a command that listens; yield the JSON from its standard output."""
    (folder / "tools.py").write_text(TOOLS)
    env = {**os.environ, "XDG_STATE_HOME": str(folder), "HOME": str(folder)}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agents_tools", *words),
        cwd=folder,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            yield json.loads(await process.stdout.readline())
    finally:
        process.send_signal(signal.SIGTERM)
        async with asyncio.timeout(PATIENCE):
            await process.communicate()


@contextlib.asynccontextmanager
async def by_dev(folder: Path) -> AsyncGenerator[Open]:
    words = ("dev", "tools.py", "--port", "0", "--json", "--no-open")
    async with command(folder, *words) as output:
        yield Open(httpx.URL(output["address"]).port or 0, output["token"], "/api/tools")


@contextlib.asynccontextmanager
async def by_serve_command(folder: Path) -> AsyncGenerator[Open]:
    words = ("serve", "tools.py", "--transport", "http", "--port", "0", "--json")
    async with command(folder, *words) as output:
        url, token = httpx.URL(output["url"]), output["authorization"].removeprefix("Bearer ")
        yield Open(url.port or 0, token, url.path, initialize())


@contextlib.asynccontextmanager
async def by_serve(folder: Path) -> AsyncGenerator[Open]:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = asyncio.create_task(
        serve_async(
            [add], "http", port=0, auth=TOKEN, json_response=True, on_ready=ready.set_result
        )
    )
    async with asyncio.timeout(PATIENCE):
        url = httpx.URL(await ready)
    try:
        yield Open(url.port or 0, TOKEN, url.path, initialize())
    finally:
        serving.cancel()
        await asyncio.wait({serving})


@contextlib.asynccontextmanager
async def by_playground(folder: Path) -> AsyncGenerator[Open]:
    app = playground.app(lambda: playground.LoadedTarget(target="tools", tools=(add,)), token=TOKEN)
    listener, ready = bound_socket("127.0.0.1", 0), asyncio.Event()
    port = listener.getsockname()[1]
    serving = asyncio.create_task(playground.serve(app, listener, on_ready=ready.set))
    async with asyncio.timeout(PATIENCE):
        await ready.wait()
    try:
        yield Open(port, TOKEN, "/api/tools")
    finally:
        serving.cancel()
        await asyncio.wait({serving})


def by_app(
    make: Callable[[Any], Any], path: str, body: Any
) -> Callable[[Path], AbstractAsyncContextManager[Open]]:
    """Return a starter that serves an app with a token, as a program with its own server does."""

    @contextlib.asynccontextmanager
    async def started(folder: Path) -> AsyncGenerator[Open]:
        async with served(make(TOKEN)) as port:
            yield Open(port, TOKEN, path, body)

    return started


AG_UI = {
    "threadId": "t1",
    "runId": "r1",
    "state": {},
    "messages": [{"id": "m1", "role": "user", "content": "Hi."}],
    "tools": [],
    "context": [],
    "forwardedProps": {},
}
VERCEL = {
    "id": "c1",
    "trigger": "submit-message",
    "messages": [{"id": "m1", "role": "user", "parts": [{"type": "text", "text": "Hi."}]}],
}
LISTENERS: dict[str, Callable[[Path], AbstractAsyncContextManager[Open]]] = {
    "agents-tools dev": by_dev,
    "agents-tools serve": by_serve_command,
    "serve_async": by_serve,
    "playground.serve": by_playground,
    "sse.app": by_app(
        lambda auth: sse.app([add], auth=auth),
        "/runs",
        {"tool": "add", "arguments": {"a": 1, "b": 2}},
    ),
    "ag_ui.app": by_app(lambda auth: ag_ui.app(talker(), auth=auth), "/", AG_UI),
    "vercel.app": by_app(lambda auth: vercel.app(talker(), auth=auth), "/", VERCEL),
    "mcp_server": by_app(
        lambda auth: mcp_server([add], auth=auth, json_response=True), "/mcp", initialize()
    ),
}


# --- what has to be so of each


@pytest.mark.parametrize("name", LISTENERS)
@pytest.mark.requirement("S1", "S2", "S3", "S4")
async def test_a_listener_is_on_loopback_behind_a_token(name: str, tmp_path: Path) -> None:
    """Other users of the machine, web pages, and other machines are rejected."""
    async with LISTENERS[name](tmp_path) as there:
        bearer = {"authorization": f"Bearer {there.token}"}
        assert (await there.ask(**bearer)).status_code == 200
        assert (await there.ask()).status_code == 401
        assert (await there.ask(authorization=f"Bearer {there.token}x")).status_code == 401
        assert (await there.ask(authorization=there.token)).status_code == 401
        await _only_own_names(there, bearer)
        await _only_json(there, bearer)
        for address in _own_addresses():  # it does not listen for other machines
            with pytest.raises(OSError, match="Errno"):
                await asyncio.open_connection(address, there.port)


async def _only_own_names(there: Open, bearer: dict[str, str]) -> None:
    for host in ("evil.example", "127.0.0.1.evil.example", "0.0.0.0"):  # noqa: S104 - refused
        reply = await there.ask(**bearer, host=host)
        assert reply.status_code == 421, host
        assert host in reply.text
        assert "allowed_hosts" in reply.text
    for origin in ("https://evil.example", "null", "http://127.0.0.1.evil.example"):
        reply = await there.ask(**bearer, origin=origin)
        assert reply.status_code == 403, origin
        assert "allowed_origins" in reply.text


async def _only_json(there: Open, bearer: dict[str, str]) -> None:
    """A web form is sent without a preflight request; its content types are refused."""
    url = f"http://127.0.0.1:{there.port}{there.path}"
    async with httpx.AsyncClient(trust_env=False, timeout=PATIENCE) as client:
        for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data"):
            headers = {**bearer, "content-type": kind}
            reply = await client.post(url, content=b"{}", headers=headers)
            assert reply.status_code == 415, kind


def _own_addresses() -> list[str]:
    """Return an address of this machine that others can reach, if there is one."""
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect(("192.0.2.1", 9))  # nothing is sent: this only selects the route
        own = str(probe.getsockname()[0])
        return [] if own.startswith(("127.", "0.")) else [own]
    return []


WITHOUT = {
    "sse.app": lambda **options: sse.app([add], **options),
    "ag_ui.app": lambda **options: ag_ui.app(talker(), **options),
    "vercel.app": lambda **options: vercel.app(talker(), **options),
    "mcp_server": lambda **options: mcp_server([add], **options),
}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.7", "tools.example"])  # noqa: S104
@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.requirement("S1")
def test_listening_for_others_without_auth_is_refused(name: str, host: str) -> None:
    """The error is raised before the socket opens, and names the option to pass."""
    with pytest.raises(UserError, match="auth= a token of at least 16 characters") as caught:
        WITHOUT[name](host=host)
    assert host in str(caught.value)


@pytest.mark.parametrize("name", WITHOUT)
@pytest.mark.requirement("S1", "S3")
async def test_an_app_without_auth_serves_only_this_machine(name: str) -> None:
    """The app does not know on which address its server listens."""
    from tests.ui.web import ask

    path, body = {"mcp_server": ("/mcp", initialize()), "sse.app": ("/runs", {})}.get(
        name, ("/", {})
    )
    for address in ("192.0.2.7", "10.0.0.5", "fe80::1%eth0", "2001:db8::1", "::ffff:10.0.0.5"):
        app = WITHOUT[name]()
        reply = await ask(app, "POST", path, body, client=(address, 50_000))
        assert reply.status == 403, address
        assert "auth=" in reply.text
        await app.aclose()


@pytest.mark.requirement("S3")
async def test_a_server_over_http_requires_a_token() -> None:
    """Access for every program of the machine must be requested explicitly."""
    needed = r"requires a token.*auth=False"
    with pytest.raises(UserError, match=needed):
        await asyncio.to_thread(serve, [add], "http", port=0)
    with pytest.raises(UserError, match=needed):
        await serve_async([add], "http", port=0)
    with pytest.raises(UserError, match=r"Listening on '192\.0\.2\.7'"):
        await serve_async([add], "http", host="192.0.2.7", port=0, auth=False)


@pytest.mark.parametrize(
    "words",
    [
        ("serve", "tools.py", "--transport", "http", "--host", "0.0.0.0"),  # noqa: S104 - refused
        ("serve", "tools.py", "--transport", "http", "--host", "0.0.0.0", "--no-auth"),  # noqa: S104
        ("dev", "tools.py", "--host", "0.0.0.0"),  # noqa: S104 - refused
    ],
    ids=["serve", "serve --no-auth", "dev"],
)
@pytest.mark.requirement("S1")
def test_a_command_does_not_listen_for_others_without_a_token(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    """The command exits, and its message names the option to pass."""
    (tmp_path / "tools.py").write_text(TOOLS)
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-m", "agents_tools", *words, "--port", "0"],
        cwd=tmp_path,
        env={**os.environ, "XDG_STATE_HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert "--auth-token-env" in done.stderr
    assert "Traceback" not in done.stderr


# --- no other listeners

KNOWN = {
    "server/listener.py": {"bind", "listen", "Server"},  # uvicorn, for all that listen
}
"""Where the package listens, and with what; the table above starts each of them."""

_OPENING = frozenset(
    (
        "bind",
        "listen",
        "start_server",
        "start_unix_server",
        "create_server",
        "run_server",
        "create_unix_server",
        "HTTPServer",
        "ThreadingHTTPServer",
        "TCPServer",
        "UnixServer",
        "Listener",
        "create_datagram_endpoint",
        "run_app",
        "TCPSite",
        "WSGIServer",
    )
)


def openings(source: str) -> set[str]:
    """Return the calls in a module that can open a listener."""
    found: set[str] = set()
    if not any(word in source for word in (*_OPENING, "uvicorn")):
        return found
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call):
            continue
        callee = node.func
        name = callee.attr if isinstance(callee, ast.Attribute) else getattr(callee, "id", "")
        owner = getattr(getattr(callee, "value", None), "id", "")
        if name in _OPENING or (owner == "uvicorn" and name != "Config"):
            found.add(name)
    return found


NO_SOCKETS = {
    "classes/registry_entry.py": {"bind"},  # inspect.Signature.bind
    "schema/signature.py": {"bind"},  # inspect.Signature.bind
    "tool/tool.py": {"bind"},  # a declaration to its instance
    "mcp/client/connection_session.py": {"listen"},  # for changes, at a session
    "mcp/server/notifications.py": {"listen"},  # for a stream of notifications
    "pytest_plugin.py": {"listen"},  # to the events of calls
    "events/listener.py": {"Listener"},  # of events
}


def test_every_call_that_opens_a_listener_is_known() -> None:
    """A new listener without these checks is a vulnerability; it must be added to the table."""
    found: dict[str, set[str]] = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        source = path.read_text("utf-8")
        name = path.relative_to(PACKAGE).as_posix()
        calls = openings(source) - NO_SOCKETS.get(name, set())
        if re.search(r"class \w+\(uvicorn\.Server\)", source):
            calls |= {"Server"}
        if calls:
            found[name] = calls
    assert found == KNOWN


@pytest.mark.parametrize(
    "line",
    [
        "sock.bind(('', 80))",
        "await asyncio.start_server(handle, port=80)",
        "uvicorn.run(app)",
        "http.server.HTTPServer(('', 80), Handler)",
        "multiprocessing.connection.Listener(('', 80))",
        "loop.create_server(Protocol)",
    ],
)
def test_a_new_listener_is_detected(line: str) -> None:
    """The search must be able to find something."""
    assert openings(f"async def main():\n    {line}")


@needs_dbos_on_sqlite
@pytest.mark.timeout(120)
@pytest.mark.leaves_behind  # the threads of DBOS end asynchronously
async def test_a_queue_worker_opens_no_port(tmp_path: Path) -> None:
    """The administration server of DBOS must be off."""
    pytest.importorskip("dbos")
    script = (
        "import asyncio, sys\n"
        "from agents_tools import function_tool\n"
        "from agents_tools.persistence.queue import serve_worker\n"
        "@function_tool\n"
        "def add(a: int, b: int) -> int:\n"
        "    return a + b\n"
        "async def main():\n"
        "    ready = asyncio.Event()\n"
        "    serve = serve_worker([add], 'sqlite:///runs.db', ready=ready.set)\n"
        "    worker = asyncio.ensure_future(serve)\n"
        "    await ready.wait()\n"
        "    print('ready', flush=True)\n"
        "    await asyncio.to_thread(sys.stdin.readline)\n"
        "    worker.cancel()\n"
        "    await asyncio.wait([worker])\n"
        "asyncio.run(main())\n"
    )
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", script),
        cwd=tmp_path,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    async with asyncio.timeout(100):
        assert await process.stdout.readline() == b"ready\n"
        listening = _ports_of(process.pid)
        process.stdin.close()
        await process.wait()
    assert listening == set()


def _ports_of(pid: int) -> set[str]:
    """Return the addresses that a process listens on, as reported by Linux."""
    inodes: set[str] = set()
    for one in Path(f"/proc/{pid}/fd").iterdir():
        with contextlib.suppress(OSError):
            if (target := str(one.readlink())).startswith("socket:["):
                inodes.add(target[8:-1])
    found: set[str] = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[3] == "0A" and fields[9] in inodes:
                found.add(fields[1])
    return found


if not Path("/proc/self/net/tcp").exists():
    test_a_queue_worker_opens_no_port = pytest.mark.skip("needs /proc/net")(
        test_a_queue_worker_opens_no_port
    )
