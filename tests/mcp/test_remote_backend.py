"""A remote backend and its worker in this process: the data that is sent between them."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
from collections.abc import AsyncGenerator
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import (
    Event,
    MessageEvent,
    NotifyStreamEvent,
    ToolContext,
    ToolError,
    ToolProgressEvent,
    UserError,
    function_tool,
    policies,
    streaming_tool,
)
from agents_tools.events import event_from_dict
from agents_tools.execution import CallEnvelope, CallEvent, ToolBackend, pin_of, run_on
from agents_tools.mcp import MCPBackend, MCPToolManager, mcp_server
from agents_tools.mcp.remote.protocol import (
    CALL_KEY,
    EVENTS_KEY,
    OUTCOME_KEY,
    events_in,
    meta_of,
    order_in,
    outcome_in,
)
from tests.mcp.small import Small, listening, over_http

SECRET = "sk-live-0123456789abcdef"  # noqa: S105 - looks like one
NASTY = "ok\x1b]52;c;Zm9v\x07\u202egnp.exe\u200b"
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@function_tool
async def echo(value: Any) -> Any:
    """Give a value back."""
    return value


@streaming_tool
async def work(ctx: ToolContext) -> AsyncGenerator[Any]:
    """Say what a tool says, and what an agent inside of it would."""
    yield ToolProgressEvent(1, total=2, message="half")
    ctx.emit(MessageEvent("what the agent thinks", role="assistant"))
    yield NotifyStreamEvent(NASTY)
    yield "done"


@function_tool
def fail(how: str) -> str:
    """Fail."""
    if how == "told":
        raise ToolError("The kettle is empty.")
    raise RuntimeError("the password is hunter2")


@function_tool
def look(ctx: ToolContext[Any]) -> dict[str, Any]:
    """Show what a tool sees of its request."""
    request = ctx.context
    return {"headers": dict(request.headers), "principal": repr(request.principal)}


calls: list[str] = []


@function_tool
def once(thing: str) -> int:
    """Count how often it runs."""
    calls.append(thing)
    return len(calls)


TOOLS = [echo, work, fail, look, once]


@contextlib.asynccontextmanager
async def served(tools: Any = TOOLS, **options: Any) -> AsyncGenerator[str]:
    """Serve tools over HTTP, and yield the address."""
    app = mcp_server(tools, **options)
    async with listening(app) as address:
        try:
            yield f"{address}/mcp"
        finally:
            await app.aclose()


@contextlib.asynccontextmanager
async def backend_of(tools: Any = TOOLS, **options: Any) -> AsyncGenerator[MCPBackend]:
    """Serve tools, and yield a backend for them."""
    async with served(tools, **options) as url, MCPBackend(url) as backend:
        yield backend


def envelope(tool: str, arguments: dict[str, Any] | None = None, **more: Any) -> CallEnvelope:
    number = next(_numbers)
    made = {"call_id": f"call-{number}", "arguments": json.dumps(arguments or {})}
    given: dict[str, Any] = {**made, **more}
    return CallEnvelope(tool=tool, **given)


_numbers = iter(range(1_000_000))


async def all_of(backend: ToolBackend, call: CallEnvelope) -> list[CallEvent]:
    async with asyncio.timeout(15):
        return [event async for event in backend.submit(call)]


# --- results and events


async def test_it_implements_the_backend_protocol() -> None:
    """Functions that accept backends accept this one."""
    assert isinstance(MCPBackend("http://127.0.0.1:1/mcp"), ToolBackend)


async def test_the_events_of_a_call_are_those_of_the_tool() -> None:
    """Each has the form in which events are stored and sent elsewhere."""
    async with backend_of() as backend:
        call = envelope("work")
        events = await all_of(backend, call)
    event_list = [event_from_dict(one.payload) for one in events if one.kind == "event"]
    assert [one.type for one in event_list] == ["tool_progress_event", "notify_stream_event"]
    assert {one.path for one in event_list} == {(call.call_id,)}
    assert {one.tool_name for one in event_list} == {"work"}
    assert events[-1].payload["output"] == "done"


async def test_hidden_text_of_a_worker_is_removed() -> None:
    """Texts of a worker are untrusted: terminal sequences and bidirectional controls are removed."""
    async with backend_of() as backend:
        events = await all_of(backend, envelope("work"))
    (text,) = [one.payload["data"] for one in events if "data" in one.payload]
    assert text == "okgnp.exe"


async def test_external_backends_get_work_events_and_own_ones_all_events() -> None:
    """Events of agents inside a tool are for their own application only."""
    found: list[list[str]] = []
    for worker in (False, True):
        async with backend_of(worker=worker) as backend:
            events = await all_of(backend, envelope("work"))
            found.append([one.payload["type"] for one in events if one.kind == "event"])
            assert [one.seq for one in events] == list(range(len(events)))
    work = ["tool_progress_event", "notify_stream_event"]
    assert found == [work, [work[0], "message_event", work[1]]]


async def test_internal_errors_are_hidden_from_external_clients(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """They get the type and a number from the log, unless `errors` is set."""
    with caplog.at_level(logging.CRITICAL, "agents_tools.mcp"):
        async with backend_of() as backend:
            (*_, crash) = await all_of(backend, envelope("fail", {"how": "crash"}))
            (*_, told) = await all_of(backend, envelope("fail", {"how": "told"}))
        async with backend_of(errors="show") as backend:
            (*_, shown) = await all_of(backend, envelope("fail", {"how": "crash"}))
    assert crash.payload["status"] == "tool_error"
    assert "hunter2" not in json.dumps(crash.to_dict())
    assert crash.payload["error"]["type"] == "RuntimeError"
    assert told.payload["error"]["message"] == "The kettle is empty."
    assert "hunter2" in shown.payload["error"]["message"]


async def test_other_clients_see_ordinary_mcp() -> None:
    """A worker is an MCP server like any other."""
    received: list[Event] = []
    async with served(worker=True) as url, MCPToolManager() as manager:
        tools = {tool.origin.wire_name: tool for tool in await manager.add_server("w", url=url)}
        outcome = await tools["work"].call(ToolContext(emit=received.append), "{}")
    assert outcome.output == "done"
    assert {"tool_progress_event", "notify_stream_event"} <= {one.type for one in received}


async def test_a_worker_without_streaming_sends_its_events_with_the_result() -> None:
    """With `json_response`, events cannot be sent before the result, and none is lost."""
    async with backend_of(json_response=True) as backend:
        events = await all_of(backend, envelope("work"))
    assert [one.kind for one in events] == ["accepted", "started", "event", "event", "result"]


@pytest.mark.parametrize("worker", [False, True])
async def test_policies_of_the_worker_apply_unless_the_backend_has_applied_them(
    *, worker: bool
) -> None:
    """A caller other than the application itself cannot skip a policy."""
    guarded = policies.needs_approval(once)
    calls.clear()
    async with backend_of([guarded], worker=worker) as backend:
        outcome = await run_on(backend)(once).call(None, '{"thing": "tea"}')
    assert outcome.status == ("ok" if worker else "denied")
    assert len(calls) == int(worker)


async def test_a_tool_that_differs_is_rejected() -> None:
    """The tool runs only if the definitions of the caller and the worker are equal."""
    async with backend_of() as backend:
        (*_, same) = await all_of(
            backend, envelope("echo", {"value": None}, definition=pin_of(echo))
        )
        (*_, other) = await all_of(backend, envelope("echo", {"value": 1}, definition="0" * 64))
    assert (same.payload["status"], same.payload["output"]) == ("ok", "(no output)")
    assert other.payload["status"] == "tool_error"
    assert "Nothing was run" in other.payload["output"]


# --- authentication


@pytest.mark.requirement("S20")
async def test_callers_do_not_get_the_answers_of_others() -> None:
    """The id of a call does not give access to its result."""

    class Tokens:
        def verify_token(self, token: str) -> Any:
            who = {"token-of-ada-123456": "ada", "token-of-bob-123456": "bob"}.get(token)
            return None if who is None else type("T", (), {"client_id": who, "subject": who})()

    calls.clear()
    call = envelope("once", {"thing": "tea"}, principal="ada")
    async with served(auth=Tokens()) as url:
        answers: list[Any] = []
        for token in ("token-of-ada-123456", "token-of-ada-123456", "token-of-bob-123456"):
            async with MCPBackend(url, token=token) as backend:
                answers.append((await all_of(backend, call))[-1].payload["structured"])
    assert answers == [1, 1, 2]


@pytest.mark.requirement("S23")
async def test_a_tool_sees_no_credentials() -> None:
    """Tokens are not forwarded to tools, whatever their header is called."""
    headers = {"X-Access-Token": SECRET, "X-Team": "tea", "Api-Key": SECRET, "X-Auth": SECRET}
    async with (
        served(auth=SECRET) as url,
        MCPBackend(url, token=SECRET, headers=headers) as backend,
    ):
        (*_, seen) = await all_of(backend, envelope("look"))
    assert SECRET not in json.dumps(seen.to_dict())
    assert seen.payload["structured"]["headers"]["x-team"] == "tea"


async def test_each_worker_gets_its_own_token() -> None:
    """A token is sent only to the server that it is for."""
    tokens = {}
    async with contextlib.AsyncExitStack() as stack:
        for secret in ("the-token-of-the-first", "the-token-of-the-second"):
            tokens[await stack.enter_async_context(served(auth=secret))] = secret
        async with MCPBackend(tokens, token=tokens) as backend:
            for _ in range(4):
                (*_, last) = await all_of(backend, envelope("echo", {"value": 1}))
                assert last.payload["status"] == "ok"
            assert (await backend.health()).workers == 2


@pytest.mark.parametrize(
    ("urls", "options", "text"),
    [
        ([], {}, "at least one worker"),
        (["http://a/mcp", "http://b/mcp"], {"token": SECRET}, "token={url: token}"),
        ("http://a/mcp", {"token": {"http://b/mcp": SECRET}}, "no address of a worker"),
        ("ftp://a", {}, "expects a complete URL"),
        ("http://a/mcp", {"attempts": 0}, "attempts="),
        ("http://a/mcp", {"heartbeat": 0}, "heartbeat="),
        ("http://a/mcp", {"heartbeat": float("inf")}, "heartbeat="),
        ("http://a/mcp", {"token": ""}, "token"),
        ("http://a/mcp", {"token": f"{SECRET}\r\nx: y"}, "token"),
        ("http://a/mcp", {"token": f"{SECRET}\u0436"}, "token"),
        ("http://a/mcp", {"token": 7}, "token="),
        (7, {}, "address of a worker"),
    ],
)
async def test_invalid_options_are_rejected(urls: Any, options: dict[str, Any], text: str) -> None:
    """The error is raised early, and never shows a token."""
    with pytest.raises(UserError, match=text) as caught:
        MCPBackend(urls, **options)
    assert SECRET not in str(caught.value)


async def test_a_closed_backend_rejects_calls() -> None:
    """A call after the end is an error of the program."""
    backend = MCPBackend("http://127.0.0.1:1/mcp")
    await backend.aclose()
    with pytest.raises(UserError, match="closed"):
        await all_of(backend, envelope("echo"))


# --- third-party servers


async def test_any_mcp_server_can_be_a_worker() -> None:
    """Its progress becomes events; other features are not available."""
    async with over_http(Small()) as url, MCPBackend(url) as backend:
        events = await all_of(backend, envelope("steps", {"n": 2}))
        (*_, failed) = await all_of(backend, envelope("fail"))
        (*_, added) = await all_of(backend, envelope("add", {"a": 1, "b": 2}))
        kinds = [one.kind for one in events]
    assert kinds == ["accepted", "started", "event", "event", "result"]
    assert [one.payload["message"] for one in events if one.kind == "event"] == [
        "step 1",
        "step 2",
    ]
    assert [one.seq for one in events] == list(range(5))
    assert events[-1].payload["output"] == "2 steps"
    assert failed.payload["error"]["message"] == "The shelf is empty."
    assert added.payload["structured"] == {"sum": 3}


@pytest.mark.requirement("S33")
async def test_a_flood_of_events_is_bounded() -> None:
    """A slow consumer misses some events and gets their number."""

    @streaming_tool
    async def flood(count: int) -> AsyncGenerator[Any]:
        for number in range(count):
            yield NotifyStreamEvent(str(number))
        yield "done"

    count = 30_000
    async with backend_of([flood]) as backend:
        stream = backend.submit(envelope("flood", {"count": count}))
        async with contextlib.aclosing(stream):
            first = await anext(stream)
            await _until_there_is_no_more(backend)
            rest = [event async for event in stream]
    assert first.kind == "accepted"
    event_list = [one.payload for one in rest if one.kind == "event"]
    dropped = sum(one.get("dropped", 0) for one in event_list)
    received = [one for one in event_list if "data" in one]
    assert len(received) < 10_000
    assert dropped + len(received) == count
    assert rest[-1].payload["output"] == "done"


async def _until_there_is_no_more(backend: MCPBackend) -> None:
    async with asyncio.timeout(30):
        while (await backend.health()).busy:  # noqa: ASYNC110 - the other end is the same process
            await asyncio.sleep(0.01)


# --- message format


def test_an_envelope_is_preserved() -> None:
    """Only the deadline changes: it is sent as the remaining time."""
    sent = envelope(
        "echo",
        {"value": None},
        attempt=2,
        definition="abc",
        idempotency_key="key",
        idempotent=True,
        principal="ada",
        trace={"traceparent": "00-1-2-01", "authorization": SECRET},
        limits={"memory": 7},
    )
    meta = meta_of(sent, restart=1, heartbeat=3)
    assert SECRET not in json.dumps(meta)
    order = order_in(meta, "echo", {"value": None})
    assert order is not None
    assert (order.restart, order.heartbeat) == (1, 3.0)
    assert order.envelope.trace == {"traceparent": "00-1-2-01"}
    assert {**order.envelope.to_dict(), "trace": {}} == {**sent.to_dict(), "trace": {}}
    assert order_in({"progressToken": 1}, "echo", {}) is None


@pytest.mark.parametrize(
    "told",
    [
        {"v": 2, "call_id": "a", "attempt": 1},
        {"v": 1, "call_id": "", "attempt": 1},
        {"v": 1, "call_id": "a" * 300, "attempt": 1},
        {"v": 1, "call_id": "a", "attempt": True},
        {"v": 1, "call_id": 7, "attempt": 1},
        None,
    ],
)
def test_an_invalid_call_is_rejected(told: Any) -> None:
    """A client of another release gets an error; the worker does not guess."""
    with pytest.raises(UserError):
        order_in({CALL_KEY: told}, "echo", {})


@pytest.mark.requirement("S33")
@given(JSON)
def test_invalid_worker_messages_do_not_break_the_caller(sent: Any) -> None:
    """Invalid messages are ignored."""
    call = CallEnvelope(call_id="a", tool="echo")
    for told in events_in({EVENTS_KEY: [sent, [0, "event", 1.5, sent]]}, call) or ():
        assert isinstance(told.payload, dict)
    events_in({EVENTS_KEY: sent}, call)
    outcome_in({"_meta": {OUTCOME_KEY: sent}}, call)
    outcome_in({"_meta": {OUTCOME_KEY: {"payload": sent}}, "content": sent}, call)
    outcome_in({"_meta": {OUTCOME_KEY: {"payload": {"status": sent}}}}, call)
    with contextlib.suppress(UserError):
        order_in({CALL_KEY: sent}, "echo", {})
