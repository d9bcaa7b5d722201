"""Servers over HTTP that fail below the protocol."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, Callable
from importlib import metadata
from typing import Any

import pytest

from agents_tools import FunctionTool
from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
)
from agents_tools.mcp import MCPToolManager
from agents_tools.testing import call_tool
from tests.mcp.hostile_http import (
    Fault,
    HostileHTTP,
    Request,
    cut_body,
    cut_request,
    event,
    silence,
    slow_body,
    sse,
    status,
    text_answer,
    typed,
)

BOUND = 45.0
"""Seconds after which a wait counts as endless."""
AT_ONCE = 5.0
"""Seconds for a farewell that nobody answers."""
LINE = int(metadata.version("mcp").partition(".")[0])
"""The line of the SDK that is installed."""
NEEDS_TWO = pytest.mark.skipif(LINE < 2, reason="SDK 1.x supports one protocol era")
ERAS = pytest.mark.parametrize(
    "modern",
    [pytest.param(False, id="legacy"), pytest.param(True, id="modern", marks=NEEDS_TWO)],
)

Tool = FunctionTool[..., Any]


@contextlib.asynccontextmanager
async def connected(
    server: HostileHTTP, **options: Any
) -> AsyncGenerator[tuple[MCPToolManager, dict[str, Tool]]]:
    """Yield a manager with one server, and its tools by their names on the server."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        await manager.add_server("far", url=server.url, **options)
        tools = manager.get_tools_by_server("far")
        yield manager, {str(tool.origin.wire_name): tool for tool in tools}


async def call(tool: Tool, **arguments: Any) -> Any:
    """Call a tool as an agent does and check the event invariants."""
    return (await call_tool(tool, arguments)).outcome


async def still_works(tools: dict[str, Tool]) -> None:
    outcome = await call(tools["echo"], text="still here")
    assert (outcome.status, outcome.output) == ("ok", "still here")


# --- F32: invalid answers


@ERAS
async def test_a_server_without_faults_works(*, modern: bool) -> None:
    """This is the baseline for the other tests."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        await still_works(tools)
        assert (await call(tools["add"], a=1, b=2)).output == "3"
        assert server.calls == ["echo", "add"]
    assert modern or server.given == set(), "a session that is left is ended"


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize("code", [400, 401, 403, 404, 405, 413, 500, 501])
async def test_an_error_status_fails_that_call(*, code: int, modern: bool) -> None:
    """The error names the status, there are no endless retries, and the next call works."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", status(code, b"nothing here"), status(code), status(code))
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert isinstance(outcome.error, MCPError)
        assert outcome.error.server == "far"
        assert str(code) in str(outcome.error)
        asked = server.count("tools/call")
        assert asked == 1 if code != 404 else asked <= 2
        assert server.calls == []
        await call(tools["echo"], text="x")
        await call(tools["echo"], text="x")
        await still_works(tools)


@pytest.mark.requirement("F32")
@pytest.mark.parametrize("code", [401, 403])
async def test_missing_credentials_are_named_as_the_remedy(code: int) -> None:
    """This holds in a call, and where a server cannot even be connected."""
    async with HostileHTTP() as server, connected(server) as (manager, tools):
        server.next("tools/call", status(code))
        outcome = await call(tools["echo"], text="x")
        assert "headers=" in str(outcome.error)
        for method in ("server/discover", "initialize"):
            server.next(method, status(code), status(code))
        with pytest.raises(MCPConnectionError, match=rf"{code}.*headers="):
            await manager.add_server("closed", url=server.url)
        assert manager.get_server_names() == ["far"]


@pytest.mark.requirement("F32")
@ERAS
async def test_a_short_retry_after_is_respected(*, modern: bool) -> None:
    """A call rejected with 429 cannot have run, so it is sent once more."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", status(429, retry_after="0"))
        await still_works(tools)
        assert server.count("tools/call") == 2


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize("code", [429, 503])
async def test_a_long_retry_after_fails_the_call(*, code: int, modern: bool) -> None:
    """The call fails at once, and the error contains the requested delay."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", status(code, retry_after="3600"))
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert "3600" in str(outcome.error)
        assert server.count("tools/call") == 1
        await still_works(tools)


@pytest.mark.requirement("F32")
async def test_a_busy_server_gets_one_retry() -> None:
    """Retries are bounded."""
    async with HostileHTTP() as server, connected(server) as (_, tools):
        server.next("tools/call", *[status(429, retry_after="0")] * 20)
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert "429" in str(outcome.error)
        assert server.count("tools/call") == 2


@pytest.mark.requirement("F32", "S14", "S23")
@ERAS
@pytest.mark.parametrize("code", [301, 302, 303, 307, 308])
async def test_a_redirect_to_another_host_is_not_followed(*, code: int, modern: bool) -> None:
    """Neither the arguments nor the credentials may reach another host."""
    async with HostileHTTP(modern=modern) as other, HostileHTTP(modern=modern) as server:
        secret = {"authorization": "Bearer secret"}
        async with connected(server, headers=secret) as (_, tools):
            server.next("tools/call", status(code, location=other.url))
            outcome = await call(tools["echo"], text="x")
            assert outcome.status == "tool_error"
            assert "redirect" in str(outcome.error)
            assert other.requests == []
            await still_works(tools)
        assert all(one.headers["authorization"] == "Bearer secret" for one in server.requests)


@pytest.mark.requirement("F32")
async def test_an_endless_redirect_is_abandoned() -> None:
    """Redirects are bounded."""
    async with HostileHTTP() as server, connected(server) as (_, tools):
        server.next("tools/call", *[status(307, location=server.url)] * 100)
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert server.count("tools/call") < 60


PAGES: dict[str, Fault] = {
    "html": typed("text/html", b"<html>Log in to the hotel network</html>"),
    "text": typed("text/plain", b"hello"),
    "no type": typed(None, b"hello"),
    "strange type": typed("\xe9;;;=", b"hello"),
    "nothing": typed("application/json", b""),
    "half of it": typed("application/json", b'{"jsonrpc": "2.0", "id": 1, "res'),
    "a list": typed("application/json", b"[]"),
    "too deep": typed("application/json", b"[" * 100_000),
    "no utf-8": typed("application/json", b'{"a": "\xff\xfe"}'),
    "another object": typed("application/json", b'{"hello": "world"}'),
    "another id": typed("application/json", b'{"jsonrpc": "2.0", "id": 99999, "result": {}}'),
    "a body that ends early": cut_body,
    "no content": status(204),
    "accepted, but no answer": status(202),
    "events without an answer": sse(),
    "events that are no messages": sse(lambda _: b"data: {\n\n", lambda _: b"data: [1]\n\n"),
}


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize("kind", PAGES)
async def test_an_invalid_answer_fails_only_its_call(*, kind: str, modern: bool) -> None:
    """Each call has one outcome, an early one where possible, and the next one works."""
    async with (
        HostileHTTP(modern=modern) as server,
        connected(server, timeout=1.0) as (_, tools),
    ):
        server.next("tools/call", PAGES[kind])
        outcome = await call(tools["echo"], text="x")
        assert outcome.status in {"tool_error", "lost", "timeout"}
        assert "far" in str(outcome.error)
        assert server.count("tools/call") == 1, "it may have been run"
        await still_works(tools)


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize(
    "kind",
    ["html", "text", "no type", "half of it", pytest.param("another object", marks=NEEDS_TWO)],
)
async def test_an_invalid_answer_fails_before_the_timeout(*, kind: str, modern: bool) -> None:
    """A login page is recognized at once."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", PAGES[kind])
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert isinstance(outcome.error, MCPProtocolError)


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize("kind", PAGES)
async def test_an_address_without_an_mcp_server_is_rejected(*, kind: str, modern: bool) -> None:
    """The connection attempt fails within its timeout."""
    async with HostileHTTP(modern=modern) as server, asyncio.timeout(BOUND):
        for method in ("initialize", "server/discover"):
            server.next(method, *[PAGES[kind]] * 3)
        async with MCPToolManager(connect_timeout=1.0) as manager:
            with pytest.raises(MCPError, match="far"):
                await manager.add_server("far", url=server.url)
            assert manager.get_server_names() == []
        assert len(server.requests) < 20


# --- F32: streams that end early


@pytest.mark.requirement("F32")
@ERAS
async def test_a_call_whose_stream_is_cut_in_an_event_is_lost(*, modern: bool) -> None:
    """The server was running the call, and its outcome is unknown."""

    def half(request: Request) -> bytes:
        return event(text_answer(request, "x"))[:40]

    async with HostileHTTP(modern=modern) as server, connected(server, timeout=3.0) as (_, tools):
        server.next("tools/call", sse(half, reset=True))
        outcome = await call(tools["echo"], text="x")
        if LINE < 2:
            # the SDK does not report the end of a stream
            assert outcome.status in {"lost", "timeout"}
        else:
            assert outcome.status == "lost"
            assert isinstance(outcome.error, ToolLostError)
        assert server.count("tools/call") == 1
        await still_works(tools)


@pytest.mark.requirement("F32")
async def test_a_stream_with_event_ids_is_resumed() -> None:
    """The older version supports resuming; the call is not affected."""
    async with HostileHTTP() as server, connected(server) as (_, tools):
        asked: list[Request] = []

        def first(request: Request) -> bytes:
            asked.append(request)
            return b"id: 7\nretry: 1\ndata: \n\n"

        def half(request: Request) -> bytes:
            return event(text_answer(request, "x"))[:40]

        def rest(request: Request) -> bytes:
            assert request.headers["last-event-id"] == "7"
            return event(text_answer(asked[0], "taken up"), "8")

        server.next("tools/call", sse(first, half, reset=True))
        server.next("GET", sse(rest))
        outcome = await call(tools["echo"], text="x")
        assert (outcome.status, outcome.output) == ("ok", "taken up")
        assert server.count("tools/call") == 1
        await still_works(tools)


@pytest.mark.requirement("F32")
async def test_a_stream_that_cannot_be_resumed_is_abandoned() -> None:
    """Attempts are bounded, and the call has one outcome."""
    async with HostileHTTP() as server, connected(server, timeout=3.0) as (_, tools):
        server.next("tools/call", sse(lambda _: b"id: 7\nretry: 1\ndata: \n\n", reset=True))
        server.next("GET", *[status(500)] * 1_000)
        outcome = await call(tools["echo"], text="x")
        assert outcome.status in {"lost", "timeout"}
        assert server.count("GET") < 20
        await still_works(tools)


def answer(request: Request) -> bytes:
    """Return the valid answer as an event."""
    return event(text_answer(request, "found"))


@pytest.mark.requirement("F32")
@ERAS
async def test_an_answer_is_found_among_other_events(*, modern: bool) -> None:
    """Comments, other messages, unknown fields, and an answer that arrives byte by byte."""

    def other(request: Request) -> bytes:
        unknown = event({"jsonrpc": "2.0", "method": "notifications/unknown"})
        return b": a comment\n\nevent: strange\nfoo: bar\n\nid: \xff\n\n" + unknown

    def byte(at: int) -> Callable[[Request], bytes]:
        return lambda request: answer(request)[at : at + 1] or b"\n"

    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", sse(other, *[byte(at) for at in range(150)]))
        outcome = await call(tools["echo"], text="x")
        assert (outcome.status, outcome.output) == ("ok", "found")
        await still_works(tools)


@pytest.mark.requirement("F32")
@ERAS
@pytest.mark.parametrize(
    "data",
    [b"data: not json\n\n", b"data: [1]\n\n", b"data: \xff\n\n", b'data: {"id": 1}\n\n'],
)
async def test_events_that_are_not_messages_fail_one_call_at_most(
    *, data: bytes, modern: bool
) -> None:
    """The connection stays usable."""
    async with HostileHTTP(modern=modern) as server, connected(server, timeout=3.0) as (_, tools):
        server.next("tools/call", sse(lambda _: data, answer))
        outcome = await call(tools["echo"], text="x")
        assert outcome.status in {"ok", "tool_error", "lost"}
        assert server.count("tools/call") == 1
        await still_works(tools)


# --- F32: slow servers


@pytest.mark.requirement("F32")
@ERAS
async def test_a_slow_body_ends_at_the_timeout(*, modern: bool) -> None:
    """Bytes without a message are not progress."""
    async with HostileHTTP(modern=modern) as server, connected(server, timeout=0.5) as (_, tools):
        server.next("tools/call", slow_body(server))
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "timeout"
        assert isinstance(outcome.error, MCPTimeoutError)
        assert server.silent.is_set()
        await still_works(tools)


@pytest.mark.requirement("F32")
@ERAS
async def test_a_missing_answer_ends_at_the_timeout(*, modern: bool) -> None:
    """Concurrent calls are not blocked."""
    async with HostileHTTP(modern=modern) as server, connected(server, timeout=1.0) as (_, tools):
        server.next("tools/call", silence(server))
        waiting = asyncio.create_task(call(tools["add"], a=1, b=2))
        await server.silent.wait()
        await still_works(tools)
        assert (await waiting).status == "timeout"
        await still_works(tools)
        assert server.count("tools/call") == 3


@pytest.mark.requirement("F26")
@pytest.mark.parametrize("fault", [silence, slow_body])
async def test_a_server_that_does_not_initialize_is_abandoned(
    fault: Callable[[HostileHTTP], Fault],
) -> None:
    """Timeouts work over HTTP as over pipes."""
    async with HostileHTTP() as server, asyncio.timeout(BOUND), MCPToolManager() as manager:
        for method in ("initialize", "server/discover"):
            server.next(method, fault(server))
        with pytest.raises(MCPConnectionError, match=r"0\.5 s"):
            await manager.add_server("far", url=server.url, connect_timeout=0.5)
        server.heal()
        await manager.add_server("far", url=server.url)


@pytest.mark.requirement("F32")
@ERAS
async def test_a_cancelled_call_leaves_the_connection_usable(*, modern: bool) -> None:
    """The older version notifies the server; the newer one closes the stream."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", silence(server))
        task = asyncio.create_task(tools["echo"].invoke(text="x"))
        await server.silent.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await still_works(tools)
        if not modern:
            assert server.count("notifications/cancelled") == 1


# --- F33: servers that have stopped or restarted


@pytest.mark.requirement("F33")
@ERAS
async def test_a_call_cut_off_after_its_request_is_lost(*, modern: bool) -> None:
    """The server may have run the call, so it is not repeated."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", cut_request)
        outcome = await call(tools["idempotent"])
        assert outcome.status == "lost"
        assert isinstance(outcome.error, ToolLostError)
        assert server.count("tools/call") == 1
        await still_works(tools)


@pytest.mark.requirement("S17")
@ERAS
async def test_idempotent_calls_to_a_trusted_server_are_repeated(*, modern: bool) -> None:
    """There is one repetition, and only of that tool."""
    async with HostileHTTP(modern=modern) as server, connected(server, trusted=True) as (_, tools):
        server.next("tools/call", cut_request)
        assert (await call(tools["idempotent"])).status == "ok"
        assert server.count("tools/call") == 2
        server.next("tools/call", cut_request, cut_request)
        assert (await call(tools["idempotent"])).status == "lost"
        server.next("tools/call", cut_request)
        assert (await call(tools["echo"], text="x")).status == "lost"
        assert server.count("tools/call") == 5


@pytest.mark.requirement("F33")
@ERAS
async def test_a_refused_connection_fails_the_call_and_recovers(*, modern: bool) -> None:
    """Nothing was sent, which the error states; a server that is back is used at once."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        await still_works(tools)
        await server.stop()
        for _ in range(3):
            outcome = await call(tools["echo"], text="x")
            assert outcome.status == "tool_error"
            assert isinstance(outcome.error, MCPConnectionError)
            assert "127.0.0.1" in str(outcome.error)
        await server.start()
        await still_works(tools)


@pytest.mark.requirement("F33")
@ERAS
async def test_a_restart_between_two_calls_is_transparent(*, modern: bool) -> None:
    """The session is lost; a new one is started, and the call runs once."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        await still_works(tools)
        await server.stop()
        await server.start()
        outcome = await call(tools["echo"], text="again")
        assert (outcome.status, outcome.output) in {("ok", "again"), ("lost", outcome.output)}
        if outcome.status == "ok":
            assert server.calls == ["echo", "echo"]
        await still_works(tools)


NO_SESSION: Any = {"code": -32000, "message": "Bad Request: No valid session ID provided"}


@pytest.mark.requirement("F33")
@pytest.mark.parametrize(
    "unknown",
    [
        (404, b""),
        (400, json.dumps({"jsonrpc": "2.0", "error": NO_SESSION, "id": None}).encode()),
        (400, b"Unknown session."),
    ],
    ids=["as in the specification", "as in the TypeScript SDK", "as a text"],
)
async def test_an_expired_session_is_replaced_once(unknown: tuple[int, bytes]) -> None:
    """The request was not run; ten calls share the new session."""
    async with HostileHTTP(unknown=unknown) as server, connected(server) as (_, tools):
        await still_works(tools)
        server.given.clear()
        outcomes = await asyncio.gather(*[call(tools["echo"], text=str(n)) for n in range(10)])
        assert [outcome.output for outcome in outcomes] == [str(n) for n in range(10)]
        assert server.count("initialize") == 2
        assert len(server.calls) == 11


@pytest.mark.requirement("F33")
@pytest.mark.parametrize("sessions", [True, False])
async def test_a_server_that_loses_every_session_gets_one_retry(*, sessions: bool) -> None:
    """There is one new session; without sessions, 404 is an answer."""
    async with HostileHTTP(sessions=sessions) as server, connected(server) as (_, tools):
        asked = 2 if sessions else 1
        server.next("tools/call", *[status(404)] * asked)
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert server.count("tools/call") == asked
        assert server.count("initialize") <= 3
        await still_works(tools)


@pytest.mark.requirement("F33")
@ERAS
async def test_calls_in_flight_have_one_outcome_each_when_the_server_stops(*, modern: bool) -> None:
    """The calls are lost, and the next one works."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        server.next("tools/call", *[silence(server)] * 10)
        calls = [asyncio.create_task(call(tools["echo"], text="x")) for _ in range(10)]
        await server.came("tools/call", 10)
        await server.stop()
        assert {outcome.status for outcome in await asyncio.gather(*calls)} == {"lost"}
        await server.start()
        await still_works(tools)


@pytest.mark.requirement("F33")
@ERAS
async def test_a_manager_can_be_closed_after_its_server_has_stopped(*, modern: bool) -> None:
    """The failed session end is not an error."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (_, tools):
        await still_works(tools)
        await server.stop()


@pytest.mark.requirement("F33")
@ERAS
async def test_a_manager_can_be_closed_while_its_server_does_not_answer(*, modern: bool) -> None:
    """It takes bounded time, even during calls."""
    async with HostileHTTP(modern=modern) as server, connected(server) as (manager, tools):
        server.next("tools/call", silence(server))
        server.next("DELETE", silence(server))
        waiting = asyncio.create_task(call(tools["echo"], text="x"))
        await server.silent.wait()
        async with asyncio.timeout(AT_ONCE):
            await manager.cleanup()
        assert (await waiting).status == "lost"


@pytest.mark.requirement("F32")
async def test_servers_that_fail_do_not_affect_the_others() -> None:
    """Three of the four servers in the configuration are broken."""
    async with (
        asyncio.timeout(BOUND),
        HostileHTTP() as good,
        HostileHTTP() as broken,
        HostileHTTP() as silent,
        HostileHTTP() as gone,
    ):
        await gone.stop()
        for method in ("initialize", "server/discover"):
            broken.next(method, *[status(500)] * 5)
            silent.next(method, *[silence(silent)] * 5)
        servers = {"good": good, "broken": broken, "silent": silent, "gone": gone}
        config = {"mcpServers": {name: {"url": one.url} for name, one in servers.items()}}
        async with MCPToolManager.from_config(config, connect_timeout=1.0) as manager:
            assert set(manager.failures) == {"broken", "silent", "gone"}
            assert "500" in str(manager.failures["broken"])
            assert "127.0.0.1" in str(manager.failures["gone"])
            (echo,) = [tool for tool in manager.get_tools() if tool.name == "good_echo"]
            assert (await call(echo, text="x")).status == "ok"


@pytest.mark.requirement("F32")
async def test_error_texts_of_a_server_are_sanitized() -> None:
    """They are short, without control characters and without markup."""
    async with HostileHTTP() as server, connected(server) as (_, tools):
        server.next("tools/call", status(500, ("no\x1b[31m\u202ered " * 10_000).encode()))
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert not {"\x1b", "\u202e"} & set(outcome.output + str(outcome.error))
        assert len(str(outcome.error)) < 2_000
        json.dumps(outcome.output)
