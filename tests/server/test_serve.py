"""The listener: clients that send no request, more clients than the process can have, and logs."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import os
import re
import resource
import signal
import socket
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import pytest

from agents_tools.errors import UserError
from agents_tools.server.listener import bound_socket, serve_app
from agents_tools.server.log_throttle import LogThrottle

PATIENCE = 45.0
SHORT = 0.2
"""A short timeout for the head of a request, in seconds."""
FILES = 160
"""The open files that a served process can have."""


async def answering(scope: Any, receive: Any, send: Any) -> None:
    """Answer; the path `/open` sends a response without an end."""
    del receive
    if scope["type"] == "http":
        await send({"type": "http.response.start", "status": 200, "headers": []})
        await send({"type": "http.response.body", "body": b"hello", "more_body": True})
        if scope["path"] == "/open":
            await asyncio.Event().wait()
        await send({"type": "http.response.body", "body": b""})


@contextlib.asynccontextmanager
async def served(**options: Any) -> AsyncGenerator[int]:
    """Serve the app on a free port while the block runs."""
    sock, ready = bound_socket("127.0.0.1", 0), asyncio.Event()
    port = sock.getsockname()[1]
    options = {"lifespan": "off", "shutdown_timeout": 1, "on_ready": ready.set, **options}
    task = asyncio.create_task(serve_app(answering, sock, **options))
    try:
        async with asyncio.timeout(PATIENCE):
            await ready.wait()
            yield port
    finally:
        task.cancel()
        await asyncio.wait({task})


class Client:
    """A connection that sends what it is told."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connected(cls, port: int, text: bytes = b"") -> Client:
        client = cls(*await asyncio.open_connection("127.0.0.1", port))
        client.writer.write(text)
        return client

    async def rest(self) -> bytes:
        """Return everything up to the end of the connection."""
        try:
            return await self.reader.read()
        except ConnectionError:
            return b""

    async def answer(self, path: str = "/", *, ends: bytes = b"0\r\n\r\n") -> bytes:
        """Send a request, and return the response."""
        self.writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        return await self.reader.readuntil(ends)

    def close(self) -> None:
        self.writer.transport.abort()


@pytest.mark.parametrize(
    "text", [b"", b"GET / HT", b"GET / HTTP/1.1\r\nHost: localhost\r\nX-A: "], ids=repr
)
async def test_a_client_that_sends_no_whole_head_is_disconnected(text: bytes) -> None:
    """Uvicorn alone would keep the connection for ever."""
    async with served(head_timeout=SHORT) as port:
        client = await Client.connected(port, text)
        assert (await client.rest()).startswith(b"HTTP/1.1 408 ")
        client.close()


@pytest.mark.parametrize("port", [-1, 65_536, 70_000])
def test_a_port_that_does_not_exist_is_rejected(port: int) -> None:
    """The system ignores the high bits and would listen on another port."""
    with pytest.raises(UserError, match=f"expected 0 to 65535, got {port}"):
        bound_socket("127.0.0.1", port).close()


async def test_a_head_that_drips_is_late() -> None:
    """A byte from time to time does not extend the time."""
    async with served(head_timeout=SHORT) as port:
        client = await Client.connected(port, b"GET / HTTP/1.1\r\nX-A: ")
        rest = asyncio.create_task(client.rest())
        while not (await asyncio.wait({rest}, timeout=SHORT / 10))[0]:
            client.writer.write(b"a")
        assert b"408" in rest.result()
        client.close()


async def test_the_second_request_of_a_connection_has_the_same_time() -> None:
    """The first byte of it ends the time that a connection can be idle."""
    async with served(head_timeout=SHORT) as port:
        client = await Client.connected(port)
        await client.answer()
        client.writer.write(b"GET / HT")
        assert b"408" in await client.rest()
        client.close()


async def test_an_idle_connection_and_an_open_response_are_not_late() -> None:
    """The time is for heads only: between requests and during a response, silence is normal."""
    async with served(head_timeout=SHORT) as port:
        idle, streaming = await Client.connected(port), await Client.connected(port)
        await idle.answer()
        await streaming.answer("/open", ends=b"hello")
        for _ in range(2):  # the time of these passes after the two have begun
            late = await Client.connected(port)
            await late.rest()
            late.close()
        assert b"hello" in await idle.answer()
        assert not streaming.reader.at_eof()
        idle.close()
        streaming.close()


async def test_a_connection_beyond_the_limit_is_refused_at_once() -> None:
    """A client learns it from the response instead of waiting."""
    async with served(max_connections=2) as port:
        using = [await Client.connected(port) for _ in range(2)]
        for client in using:
            await client.answer("/open", ends=b"hello")
        refused = await Client.connected(port)
        assert (await refused.rest()).startswith(b"HTTP/1.1 503 ")
        using.pop().close()
        late = await until_answered(port)
        for client in (*using, refused, late):
            client.close()


async def until_answered(port: int) -> Client:
    """Return a connection that got a response, when there is room for one."""
    while True:
        client = await Client.connected(port)
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await client.answer()
            return client
        client.close()


async def test_clients_without_a_request_do_not_lock_out_others() -> None:
    """The oldest of them makes room, however many there are."""
    async with served(max_connections=3) as port:
        silent = [await Client.connected(port, b"GET / HT") for _ in range(10)]
        client = await Client.connected(port)
        assert b"hello" in await client.answer()
        assert await silent[0].rest() == b""
        for one in (client, *silent):
            one.close()


async def test_clients_that_are_idle_after_a_response_do_not_lock_out_others() -> None:
    """HTTP lets a server close them; a busy one stays."""
    async with served(max_connections=3) as port:
        busy = await Client.connected(port)
        await busy.answer("/open", ends=b"hello")
        idle: list[Client] = []
        for _ in range(10):
            idle.append(await Client.connected(port))
            assert b"hello" in await idle[-1].answer()
        assert await idle[0].rest() == b""
        assert b"hello" in await idle[-1].answer()
        assert not busy.reader.at_eof()
        for one in (busy, *idle):
            one.close()


@pytest.mark.parametrize("name", ["head_timeout", "max_connections"])
async def test_a_limit_of_connections_is_a_number_above_zero(name: str) -> None:
    """The error names the option."""
    wrong: dict[str, Any] = {name: 0}
    with bound_socket("127.0.0.1", 0) as sock, pytest.raises(UserError, match=f"{name}= is inv"):
        await serve_app(answering, sock, **wrong)


TOOLS = '''
from agents_tools import function_tool

@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b
'''


@contextlib.asynccontextmanager
async def command(folder: Path) -> AsyncGenerator[tuple[int, str, Path]]:
    """Run `agents-tools serve` with few open files; yield its port, its token and its log."""
    (folder / "tools.py").write_text(TOOLS)
    words = ("serve", "tools.py", "--transport", "http", "--port", "0", "--json")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (FILES, FILES))

    log = folder / "log.txt"
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "agents_tools", *words),
            cwd=folder,
            env={**os.environ, "HOME": str(folder)},
            preexec_fn=limit,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors,
        )
    try:
        assert process.stdout is not None
        facts = json.loads(await process.stdout.readline())
        port = int(facts["url"].rpartition(":")[2].partition("/")[0])
        yield port, facts["authorization"], log
    finally:
        process.send_signal(signal.SIGTERM)
        await process.communicate()


@pytest.mark.requirement("S33")
async def test_more_half_open_connections_than_files_do_not_stop_a_server(tmp_path: Path) -> None:
    """Without a cap, accepting fails, fills the log with megabytes, and takes the whole processor."""
    async with asyncio.timeout(PATIENCE), command(tmp_path) as (port, _, log):
        held: list[socket.socket] = []
        for _ in range(2 * FILES):
            sock = socket.create_connection(("127.0.0.1", port), PATIENCE)
            with contextlib.suppress(OSError):  # an earlier one of them makes room for it
                sock.sendall(b"GET / HTTP/1.1\r\nx: ")
            held.append(sock)
        client = await Client.connected(port)
        assert (await client.answer("/healthz", ends=b"}")).startswith(b"HTTP/1.1 200 ")
        client.close()
        for sock in held:
            sock.close()
        text = log.read_text()
    assert "the limit for the open files of the process" in text
    assert "Traceback" not in text
    assert len(text) < 20_000


STREAMS = """
import asyncio, resource
from agents_tools.server.http_security import ListenerLimits, SecuredApp

resource.setrlimit(resource.RLIMIT_NOFILE, (256, 256))

async def main():
    async def block(scope, receive, send):
        await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.start":
            statuses.append(message["status"])

    statuses = []
    app = SecuredApp(block, is_stream=lambda scope: scope["path"] == "/stream")
    tasks = []
    for path in ["/stream"] * 80 + ["/"]:
        headers = [(b"host", b"localhost")]
        scope = {"type": "http", "method": "GET", "path": path, "headers": headers}
        tasks.append(asyncio.create_task(app(scope, None, send)))
    await asyncio.wait(tasks, timeout=0.1)
    print([task.done() for task in tasks].count(False), tasks[-1].done(), set(statuses))

asyncio.run(main())
"""


async def test_streams_leave_connections_for_other_requests() -> None:
    """Of 256 open files, 144 are connections, and a caller watches with half of them."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STREAMS), stdout=asyncio.subprocess.PIPE
    )
    async with asyncio.timeout(PATIENCE):
        output, _ = await process.communicate()
    assert output.decode().strip() == "73 False {503}"


# --- logs


def test_repeated_messages_are_counted_instead_of_logged() -> None:
    """The first message of the next period says how many there were."""
    now = 0.0
    throttle = LogThrottle(limit=2, period=10.0, clock=lambda: now)
    assert [throttle.admit("a") for _ in range(5)] == [0, 0, None, None, None]
    assert throttle.admit("b") == 0
    now = 10.0
    assert throttle.note("a") == " (3 similar messages were not logged.)"
    assert throttle.note("a") == ""
    assert throttle.note("a") is None
    now = 30.0
    assert throttle.admit("a") == 1


async def test_requests_that_are_no_http_do_not_fill_the_log(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each of them is a warning of uvicorn, which is logged again once the server has stopped."""
    async with served() as port:
        for _ in range(50):
            client = await Client.connected(port, b"nonsense\r\n\r\n")
            assert b"400" in await client.rest()
            client.close()
    for _ in range(30):
        logging.getLogger("uvicorn.error").warning("Of another server.")
    errors = capsys.readouterr().err
    assert 0 < errors.count("Invalid HTTP request") <= 20
    assert errors.count("Of another server.") == 30


# --- the public function

PROGRAM = '''
from agents_tools import function_tool
from agents_tools.ui import serve, sse

@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b

serve(sse.app([add]), port=0, on_ready=lambda url: print(url, flush=True))
'''


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
async def test_an_endpoint_is_served_until_a_signal(number: int) -> None:
    """An open stream does not delay the end for ever."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", PROGRAM), stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        url = (await process.stdout.readline()).decode().strip()
        client = await Client.connected(int(url.rpartition(":")[2]))
        assert b'"add"' in await client.answer("/tools", ends=b"]}")
        process.send_signal(number)
        await process.wait()
        client.close()
    assert process.returncode in {0, -number}


async def test_the_address_is_printed_when_the_server_accepts_requests() -> None:
    """Without it, a person who starts a server of the guides sees nothing."""
    program = PROGRAM.replace(", on_ready=lambda url: print(url, flush=True)", "")
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", program), stderr=asyncio.subprocess.PIPE
    )
    assert process.stderr is not None
    async with asyncio.timeout(PATIENCE):
        line = (await process.stderr.readline()).decode()
        process.terminate()
        await process.wait()
    assert re.fullmatch(r"Serving on http://127\.0\.0\.1:\d+\. Press Ctrl-C to stop\.\n", line)
