"""Fuzzes MCP both ways: rubbish sent to our server, and a server of rubbish for our client."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import json
import logging
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, get_args

from agents_tools.errors import AgentsToolsError, MCPError
from agents_tools.events import CallStatus
from agents_tools.mcp import MCPToolManager, mcp_server
from tests.mcp.small import LINE, listening
from tests.soak._made_cases import Cases
from tests.soak._made_frames import HELLO, a_frame
from tests.soak._made_served import TOOLS
from tests.soak.campaign import Budget, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from random import Random

    from agents_tools import FunctionTool

__all__ = ["run"]

HERE = Path(__file__).parent
PATIENCE = 15.0
"""Seconds for what takes none: what takes longer hangs."""
FRAMES = 150
"""Messages to one server."""
FEWEST = 10
"""Messages to one program, which takes its time to start."""
CALLS = 25
"""Calls of one spoiling server."""
MOST_OF_AN_ANSWER = 300_000
ATTEMPTS = 6
"""Calls after which a server that has calmed down has to be well again."""


def run(budget: Budget) -> Outcome:
    """Take the ways in turn."""
    cases = Cases("fuzz_mcp", budget)
    loggers = [logging.getLogger(name) for name in ("agents_tools", "mcp", "uvicorn")]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL + 1)
    try:
        for number, rng in cases:
            asyncio.run(WAYS[number % len(WAYS)](cases, rng))
    finally:
        for logger in loggers:
            logger.setLevel(logging.NOTSET)
    return cases.outcome()


# --- our server on stdin and stdout


class _Program:
    """Our server in a process of its own.

    Args:
        process: The process.
    """

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._pings = 0

    async def send(self, data: bytes) -> None:
        """Send a line, or several."""
        assert self._process.stdin is not None
        self._process.stdin.write(data + b"\n")
        await self._process.stdin.drain()

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        """Ask something, and give the answer to it.

        Raises:
            LookupError: Something else was written, or the server has ended.
            TimeoutError: There is no answer.
        """
        self._pings += 1
        name = f"asked-{self._pings}"
        told = {"jsonrpc": "2.0", "id": name, "method": method, "params": params}
        await self.send(json.dumps(told).encode())
        async with asyncio.timeout(PATIENCE):
            while (answer := await self.read()).get("id") != name:
                pass
        return answer

    async def read(self) -> dict[str, Any]:
        """Read a message."""
        assert self._process.stdout is not None
        line = await self._process.stdout.readline()
        if not line:
            message = f"the server has ended with {await self._process.wait()}"
            raise LookupError(message)
        told = json.loads(line, parse_constant=_refuse)
        if not isinstance(told, dict) or cast("Any", told).get("jsonrpc") != "2.0":
            message = f"the server wrote {line[:500]!r}"
            raise LookupError(message)
        return cast("dict[str, Any]", told)


def _refuse(constant: str) -> float:
    message = f"the server wrote {constant}"
    raise LookupError(message)


@contextlib.asynccontextmanager
async def _program() -> AsyncGenerator[_Program]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.soak._made_served",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        cwd=HERE.parents[1],
        limit=1 << 24,
    )
    try:
        made = _Program(process)
        await made.ask("initialize", **HELLO["params"])
        await made.send(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}')
        yield made
    finally:
        assert process.stdin is not None
        process.stdin.close()
        try:
            await asyncio.wait_for(process.wait(), PATIENCE)
        except TimeoutError:
            process.kill()
            await process.wait()
        getattr(process, "_transport").close()  # noqa: B009 - or it waits for the loop's end


async def _over_stdio(cases: Cases, rng: Random) -> None:
    frame = b""
    try:
        async with _program() as server:
            for number in range(FRAMES):
                if cases.left < 0 and number > FEWEST:
                    return
                frame = a_frame(rng)
                cases.count += 1
                cases.add("stdio frames")
                await server.send(frame)
                answer = await server.ask("ping")
                if answer.get("result") != {}:
                    cases.found("stdio ping", f"ping got {answer}", "stdio", _sent(frame))
                    return
                if number % 25 == 0:
                    answer = await server.ask("tools/call", name="add", arguments={"a": 2, "b": 3})
                    if "5" not in json.dumps(answer.get("result")):
                        cases.found("stdio call", f"2 + 3 got {answer}", "stdio", _sent(frame))
    except (LookupError, OSError, ValueError, TimeoutError) as error:
        cases.found(f"stdio {type(error).__name__}", f"{error!r}", "stdio", _sent(frame))


def _sent(frame: bytes) -> str:
    return f"after the message {frame[:3_000]!r}"


# --- our server over HTTP

_HEADERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("mcp-protocol-version", ("2025-11-25", "2026-07-28", "2024-11-05", "odd", "", "é")),
    ("mcp-session-id", ("none", "", "é", "a" * 300)),
    ("mcp-method", ("tools/call", "ping", "odd")),
    ("mcp-name", ("echo", "odd", "=?base64?!!?=")),
    ("last-event-id", ("0", "odd", "")),
    ("accept", ("application/json", "text/event-stream", "*/*", "odd", "")),
    ("content-type", ("text/plain", "", "application/json; charset=utf-16", "odd")),
    ("origin", ("null", "https://evil.example")),
)
_GOOD = {
    "accept": "application/json, text/event-stream",
    "content-type": "application/json",
    "mcp-protocol-version": "2025-11-25",
}


async def _over_http(cases: Cases, rng: Random) -> None:
    httpx: Any = importlib.import_module("httpx" if LINE == 1 else "httpx2")
    app = mcp_server(TOOLS, stateless=rng.random() < 0.5, json_response=rng.random() < 0.5)
    async with listening(app) as address, httpx.AsyncClient(timeout=PATIENCE) as client:
        greeted = await client.post(f"{address}/mcp", json=HELLO, headers=_GOOD)
        session = greeted.headers.get("mcp-session-id")
        good = _GOOD if session is None else {**_GOOD, "mcp-session-id": session}
        for number in range(FRAMES):
            if cases.left < 0:
                return
            frame = a_frame(rng)
            headers = dict(good)
            headers |= {name: rng.choice(all_) for name, all_ in _HEADERS if rng.random() < 0.04}
            method = rng.choice(("POST",) * 30 + ("GET", "PUT", "HEAD", "DELETE"))
            cases.count += 1
            cases.add("HTTP requests")
            told = f"{method} {headers} {frame[:3_000]!r}"
            try:
                status = await _status(client, method, f"{address}/mcp", frame, headers)
            except Exception as error:  # noqa: BLE001 - what is looked for
                cases.found(f"http {type(error).__name__}", f"it raised {error!r}", "http", told)
                return
            cases.add(f"HTTP {status // 100}xx")
            if status >= 500:
                cases.found(f"http {status}", f"the status is {status}", "http", told)
            if number % 10 == 9 and not await _greets(client, f"{address}/mcp"):
                cases.found("http good", "a good client is served no more", "http", told)
                return


async def _status(
    client: Any, method: str, address: str, body: bytes, headers: dict[str, str]
) -> int:
    """Send a request, and read what comes at once."""
    headed = {name: value.encode("utf-8") for name, value in headers.items()}
    sent = client.stream(method, address, content=body, headers=headed)
    async with sent as answer:
        if method != "GET":
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(1 if b"listen" in body else PATIENCE):
                    await answer.aread()
        return int(answer.status_code)


async def _greets(client: Any, address: str) -> bool:
    answer = await client.post(address, json=HELLO, headers=_GOOD)
    return answer.status_code == 200 and "agents-tools" in answer.text


# --- our client


async def _spoiled_calls(cases: Cases, rng: Random) -> None:
    await _with_server(cases, rng, "calls")


async def _spoiled_server(cases: Cases, rng: Random) -> None:
    await _with_server(cases, rng, "all")


async def _with_server(cases: Cases, rng: Random, mode: str) -> None:
    seed = str(rng.getrandbits(40))
    program = ["-S", "-I", str(HERE / "_made_server.py"), mode, seed]
    again = f"the server python tests/soak/_made_server.py {mode} {seed}"
    try:
        async with asyncio.timeout(PATIENCE * 4):
            async with MCPToolManager(timeout=0.5, connect_timeout=3, max_time=3) as manager:
                try:
                    await manager.add_server("made", command=sys.executable, args=program)
                except MCPError:
                    cases.add("servers refused")
                    cases.count += 1
                    return
                cases.add("servers connected")
                await _call_often(cases, rng, manager, mode, again)
    except TimeoutError:
        cases.found(f"{mode} hang", "the client goes on for ever", mode, again)
    except Exception as error:  # noqa: BLE001 - what is looked for
        cases.found(f"{mode} {type(error).__name__}", f"it raised {error!r}", mode, again)


async def _call_often(
    cases: Cases, rng: Random, manager: MCPToolManager, mode: str, again: str
) -> None:
    for number in range(CALLS):
        tools = manager.get_tools()
        if cases.left < 0 or not tools:
            break
        tool = rng.choice(tools)
        text = '{"a": 1, "b": 2}' if tool.origin.wire_name == "add" else '{"text": "a"}'
        wrong = await _of_call(cases, tool, text)
        if wrong is not None:
            cases.found(f"{mode} {wrong[0]}", wrong[1], mode, f"{again}, call {number}")
            return
    echo = [tool for tool in manager.get_tools() if tool.origin.wire_name == "echo"]
    if mode != "calls" or not echo:
        return
    said: list[str] = []
    for _ in range(ATTEMPTS):
        outcome = await echo[0].call(None, '{"text": "calm"}')
        if (outcome.status, outcome.output) == ("ok", "calm"):
            return
        said.append(f"{outcome.status}: {outcome.output}"[:300])
    cases.found("calls recovery", f"the connection is not well again: {said}", mode, again)


async def _of_call(cases: Cases, tool: FunctionTool[..., Any], text: str) -> tuple[str, str] | None:
    cases.count += 1
    try:
        async with asyncio.timeout(PATIENCE):
            outcome = await tool.call(None, text)
    except TimeoutError:
        return "hang", f"a call of {tool.name} takes more than {PATIENCE} s"
    cases.add(f"calls: {outcome.status}")
    if outcome.status not in get_args(CallStatus):
        return "status", f"the call ended as {outcome.status}"
    if outcome.error is not None and not isinstance(outcome.error, AgentsToolsError):
        return "foreign error", f"the call ended as {outcome.status} with {outcome.error!r}"
    if len(str(outcome.output)) > MOST_OF_AN_ANSWER:
        return "long", f"the answer has {len(str(outcome.output))} characters"
    return None


WAYS = (_over_stdio, _over_http, _spoiled_calls, _spoiled_server)
