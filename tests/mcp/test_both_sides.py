"""The MCP client and server of this library together: events and results are preserved."""

from __future__ import annotations

import asyncio
import contextlib
import math
import sys
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings, strategies as st

from agents_tools import (
    Agent,
    Event,
    FunctionTool,
    NotifyStreamEvent,
    Runner,
    ToolArtifactEvent,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolProgressEvent,
    ToolResult,
    UserError,
    function_tool,
    streaming_tool,
    to_mcp,
)
from agents_tools.mcp import MCPToolManager, mcp_server, roots, sample
from agents_tools.testing import ScriptedModel, call_tool, tool_call
from agents_tools.tool import Question
from agents_tools.tool.question import UnansweredError
from tests.mcp.small import listening
from tests.scale import IS_FULL, slow_case

BOUND = 45.0
"""Seconds after which a wait counts as endless."""

Tool = FunctionTool[..., Any]
ROOT = Path(__file__).parents[2]


# --- tools


@streaming_tool
async def perform(ctx: ToolContext[Any], lines: int) -> AsyncGenerator[Any]:
    """Say something of each kind."""
    yield NotifyStreamEvent("it begins")
    for number in range(1, lines + 1):
        yield ToolProgressEvent(number, total=lines, message=f"line {number}")
        ctx.notify(f"part {number} ", is_delta=True)
    yield ToolArtifactEvent("poem.txt", data=b"roses", mime_type="text/plain")
    yield f"{lines} lines"


@function_tool
def give(value: Any) -> Any:
    """Give back a value."""
    return value


@function_tool
def count(numbers: list[int]) -> dict[str, list[int]]:
    """Give numbers back."""
    return {"numbers": numbers}


@function_tool
def pieces() -> ToolResult:
    """Give one of each kind."""
    return ToolResult(
        content=[
            ToolOutputText("one of each"),
            ToolOutputImage(data=b"\x89PNG", mime_type="image/png"),
            ToolOutputAudio(data=b"RIFF", mime_type="audio/wav"),
            ToolOutputFileContent(data=b"\x00\x01", mime_type="application/x-tea", filename="tea"),
        ],
        structured={"kinds": 4},
        metadata={"_meta": {"mine": [1]}},
    )


@function_tool
def fail() -> str:
    """Fail."""
    raise ToolError("The kettle is empty.")


@function_tool
async def ask(ctx: ToolContext[Any]) -> str:
    """Ask the person behind the client."""
    return f"{await ctx.ask('How big?', answer=int)}"


@function_tool
async def ask_list(ctx: ToolContext[Any]) -> str:
    """Ask for a value that a form cannot express."""
    return f"{await ctx.ask('Which?', answer=list[list[int]])}"


@function_tool
async def infer() -> str:
    """Ask the model of the client."""
    message = {"role": "assistant", "content": "Yes?"}
    answer = await sample(["Hello", message, "A line."], system="Be brief.", models=["small"])
    return f"{answer.text} ({answer.model}, {answer.stop_reason})"


@function_tool
async def folders() -> str:
    """List the folders of the client."""
    return ", ".join(map(str, await roots()))


TOOLS: list[Tool] = [ask, count, fail, folders, give, infer, perform, pieces]


# --- the two of them


@contextlib.asynccontextmanager
async def joined(how: str, tools: Any = None, **options: Any) -> AsyncGenerator[dict[str, Tool]]:
    """Serve tools, and yield the tools of a connected manager by their original names."""
    async with contextlib.AsyncExitStack() as stack:
        app = mcp_server(TOOLS if tools is None else tools, stateless=how != "sessions")
        stack.push_async_callback(app.aclose)  # ends calls that wait for an answer
        if how == "memory":
            connection: dict[str, Any] = {"server": app._server.server}
        elif how == "stdio":
            connection = {
                "command": sys.executable,
                "args": ["-m", "tests.mcp.test_both_sides"],
                "cwd": ROOT,
            }
        else:
            address = await stack.enter_async_context(listening(app))
            connection = {"url": f"{address}/mcp"}
        manager = await stack.enter_async_context(MCPToolManager(**options))
        await manager.add_server("other", **connection)
        yield {str(tool.origin.wire_name): tool for tool in manager.get_tools()}


# Each test over stdio starts a process, which takes two seconds: two of them show the wire in
# `make test`, one in each direction.
STDIO = slow_case("stdio")
HOWS = pytest.mark.parametrize("how", ["memory", "http", "sessions", STDIO])


def comparable_events(events: tuple[Event, ...]) -> list[Any]:
    """Return the events of a tool without times and places."""
    parts = []
    for event in events:
        if isinstance(event, NotifyStreamEvent):
            parts.append(("delta" if event.is_delta else "note", event.data))
        elif isinstance(event, ToolProgressEvent):
            parts.append(("progress", event.current, event.total, event.message))
        elif isinstance(event, ToolArtifactEvent):
            parts.append(("artifact", event.name, event.mime_type, event.data))
    return parts


def merged(parts: list[Any]) -> list[Any]:
    """Join adjacent deltas: their boundaries are not guaranteed."""
    whole: list[Any] = []
    for one in parts:
        if one[0] == "delta" and whole and whole[-1][0] == "delta":
            whole[-1] = ("delta", whole[-1][1] + one[1])
        else:
            whole.append(one)
    return whole


@pytest.mark.parametrize("how", ["memory", "http", "sessions", STDIO])
async def test_events_of_a_tool_arrive_unchanged(how: str) -> None:
    """Notifications, progress, deltas and artifacts arrive in order, as the same events."""
    here = await call_tool(perform, {"lines": 3})
    async with asyncio.timeout(BOUND), joined(how) as tools:
        there = await call_tool(tools["perform"], {"lines": 3})
    assert there.status == here.status == "ok"
    assert there.output == here.output == "3 lines"
    assert merged(comparable_events(there.events)) == merged(comparable_events(here.events))
    kinds = [one[0] for one in merged(comparable_events(here.events))]
    assert {"note", "progress", "delta", "artifact"} == set(kinds)


@HOWS
async def test_events_of_a_tool_reach_the_run_of_the_client(how: str) -> None:
    """They have the path of the client's call, as for a local tool."""
    async with asyncio.timeout(BOUND), joined(how) as tools:
        script = [tool_call(tools["perform"].name, {"lines": 2}, call_id="c1"), "Done."]
        agent = Agent("helper", tools=list(tools.values()), model=ScriptedModel(script))
        streamed = Runner.run_streamed(agent, "Go.")
        events = [event async for event in streamed.stream_events()]
    received = [event for event in events if comparable_events((event,))]
    assert len(received) >= 6
    assert {one.origin and (one.origin.tool_name, one.origin.path) for one in received} == {
        (tools["perform"].name, ("c1",))
    }
    assert [event.seq for event in events] == sorted({event.seq for event in events})


@HOWS
async def test_content_of_each_kind_is_preserved(how: str) -> None:
    here = (await call_tool(pieces)).outcome
    async with asyncio.timeout(BOUND), joined(how) as tools:
        there = (await call_tool(tools["pieces"])).outcome
    assert there.output == here.output
    assert there.value.structured == {"kinds": 4}
    assert (there.value.metadata or {})["_meta"] == {"mine": [1]}


@HOWS
async def test_errors_keep_their_text(how: str) -> None:
    here = (await call_tool(fail)).outcome
    async with asyncio.timeout(BOUND), joined(how) as tools:
        there = (await call_tool(tools["fail"])).outcome
        assert (await call_tool(tools["count"], {"numbers": "x"})).status == "invalid_args"
    assert there.status == here.status == "tool_error"
    assert "The kettle is empty." in str(there.output)


@pytest.mark.parametrize("how", ["memory", "sessions", STDIO])
async def test_a_tool_asks_the_person_behind_the_client(how: str) -> None:
    async with asyncio.timeout(BOUND), joined(how, ask=lambda _question: 7) as tools:
        assert (await call_tool(tools["ask"])).output == "7"


HOWS_THAT_ASK = pytest.mark.parametrize("how", ["memory", "sessions", STDIO])


def close_question(question: Question) -> Any:
    raise UnansweredError(f"closed: {question.message}", reason="cancelled")


def refuse(question: Question) -> Any:
    raise ToolDeniedError(f"not now: {question.message}")


@HOWS_THAT_ASK
@pytest.mark.parametrize(
    ("handler", "text"),
    [
        (lambda _: None, "The user declined to answer: How big?"),
        (refuse, "The user declined to answer: How big?"),
        (close_question, "The user closed the question without an answer: How big?"),
        (True, "no handler answers questions (set RunConfig.ask, or ask= of the manager)"),
        (None, "because it does not support elicitation: How big?"),
    ],
    ids=["declined", "refused", "closed", "nobody", "undeclared"],
)
async def test_an_unanswered_question_has_a_reason(how: str, handler: Any, text: str) -> None:
    """The model must not read that a person declined if no person was asked."""
    async with asyncio.timeout(BOUND), joined(how, ask=handler) as tools:
        outcome = (await call_tool(tools["ask"])).outcome
    assert outcome.status == "tool_error"
    assert text in str(outcome.output)
    assert ("declined" in str(outcome.output)) == ("declined" in text)


@HOWS_THAT_ASK
async def test_a_tool_asks_the_model_of_the_client(how: str) -> None:
    received: list[Any] = []

    def answer(params: Any, _context: Any) -> dict[str, Any]:
        received.append(params)
        content = {"type": "text", "text": "a line"}
        return {"role": "assistant", "content": content, "model": "m", "stopReason": "endTurn"}

    async with asyncio.timeout(BOUND), joined(how, sample=answer) as tools:
        assert (await call_tool(tools["infer"])).output == "a line (m, endTurn)"
    (params,) = received
    assert [(m["role"], m["content"]["text"]) for m in params["messages"]] == [
        ("user", "Hello"),
        ("assistant", "Yes?"),
        ("user", "A line."),
    ]
    assert (params["systemPrompt"], params["maxTokens"]) == ("Be brief.", 1_024)
    assert params["modelPreferences"]["hints"] == [{"name": "small"}]


@HOWS_THAT_ASK
async def test_a_tool_reads_the_folders_of_the_client(how: str, tmp_path: Path) -> None:
    spaced = tmp_path / "a folder"
    async with asyncio.timeout(BOUND), joined(how, roots=[tmp_path, spaced]) as tools:
        assert (await call_tool(tools["folders"])).output == f"{tmp_path}, {spaced}"


@HOWS_THAT_ASK
async def test_a_client_without_a_model_or_folders_is_reported(how: str) -> None:
    async with asyncio.timeout(BOUND), joined(how, ask=lambda _: 1) as tools:
        texts = [str((await call_tool(tools[name])).output) for name in ("infer", "folders")]
    assert "The client did not ask its model, because it does not support sampling." in texts[0]
    assert "The client did not list its folders, because it does not support roots." in texts[1]


@HOWS_THAT_ASK
async def test_a_model_that_refuses_is_reported(how: str) -> None:
    async with asyncio.timeout(BOUND), joined(how, sample=lambda *_: None) as tools:
        assert "the request was declined" in str((await call_tool(tools["infer"])).output)


async def test_functions_for_served_tools_fail_in_other_calls() -> None:
    for name in (infer, folders):
        outcome = (await call_tool(name)).outcome
        assert "cannot reach a client: expected a call of an MCP client" in str(outcome.output)


@pytest.mark.parametrize("messages", [5, [5], [None]])
async def test_a_message_is_text_or_an_object(messages: Any) -> None:
    with pytest.raises(UserError, match="expects text, or a list of texts and of objects"):
        await sample(messages)


async def test_an_answer_that_no_form_can_express_is_not_asked() -> None:
    async with asyncio.timeout(BOUND), joined("http", [ask_list], ask=lambda _: [[1]]) as tools:
        text = str((await call_tool(tools["ask_list"])).output)
    assert "a form can only have fields for texts, numbers, booleans and choices" in text


async def test_a_client_without_a_session_cannot_be_asked() -> None:
    """Over HTTP up to 2025-11-25, a question needs the stream of a session."""
    headers = {"accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "other", "version": "1"},
    }
    async with (
        asyncio.timeout(BOUND),
        listening(mcp_server([ask])) as address,
        httpx.AsyncClient(headers=headers) as http,
    ):
        for method, more in (("initialize", params), ("tools/call", {"name": "ask"})):
            body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": more}
            response = await http.post(f"{address}/mcp", json=body)
    assert "asked a question that the client cannot answer, because" in response.text


@pytest.mark.requirement("B33", "B35")
@HOWS
async def test_tools_are_described_in_the_same_way(how: str) -> None:
    """The published schema is not wrapped."""
    async with asyncio.timeout(BOUND), joined(how) as tools:
        for here in TOOLS:
            there = tools[here.name]
            assert there.description == here.description
            assert there.json_schema == to_mcp(here)["inputSchema"]


async def test_a_chain_of_two_servers_changes_nothing() -> None:
    """A manager can itself be served, and the server in between is transparent."""
    here = await call_tool(perform, {"lines": 2})
    async with asyncio.timeout(BOUND), joined("http") as middle:  # noqa: SIM117 - one needs the other
        async with joined("http", list(middle.values())) as far:
            tools = {name.removeprefix("other_"): tool for name, tool in far.items()}
            there = await call_tool(tools["perform"], {"lines": 2})
            assert (await call_tool(tools["pieces"])).output == (await call_tool(pieces)).output
            assert "The kettle is empty." in str((await call_tool(tools["fail"])).output)
    assert merged(comparable_events(there.events)) == merged(comparable_events(here.events))


# --- any value


JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec="utf-8"), max_size=12),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8"), max_size=8), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(max_examples=5 if IS_FULL else 2)
@given(values=st.lists(JSON, min_size=1, max_size=25))
@pytest.mark.parametrize("how", ["memory", "http", STDIO])
def test_any_value_is_preserved(how: str, values: list[Any]) -> None:
    """This covers arguments, results and the model's text for them."""

    async def run() -> None:
        async with asyncio.timeout(BOUND), joined(how) as tools:
            for value in values:
                here = (await call_tool(give, {"value": value})).outcome
                there = (await call_tool(tools["give"], {"value": value})).outcome
                assert there.status == here.status == "ok", (value, there)
                assert there.output == here.output, value

    asyncio.run(run())


@settings(max_examples=10 if IS_FULL else 5)
@given(numbers=st.lists(st.integers(-(2**63), 2**63), max_size=6))
def test_any_integer_is_preserved(numbers: list[int]) -> None:
    """This includes integers beyond the precision of a float."""

    async def run() -> None:
        async with joined("http") as tools:
            outcome = (await call_tool(tools["count"], {"numbers": numbers})).outcome
            assert outcome.value.structured == {"numbers": numbers}

    asyncio.run(run())


@pytest.mark.slow
@settings(max_examples=5 if IS_FULL else 2)
@given(texts=st.lists(st.text(), min_size=1, max_size=8))
def test_any_text_arrives_or_is_rejected(texts: list[str]) -> None:
    """A lone surrogate fails its own call at most."""

    async def run() -> None:
        async with asyncio.timeout(BOUND), joined("stdio") as tools:
            for text in texts:
                outcome = (await call_tool(tools["give"], {"value": text})).outcome
                assert outcome.status in {"ok", "tool_error", "invalid_args"}, outcome
            assert (await call_tool(tools["give"], {"value": "x"})).output == "x"

    asyncio.run(run())


@pytest.mark.parametrize("how", ["memory", "http", STDIO])
async def test_numbers_outside_json_fail_only_their_own_call(how: str) -> None:
    async with asyncio.timeout(BOUND), joined(how) as tools:
        for value in (math.inf, -math.inf, math.nan):
            outcome = (await call_tool(tools["give"], {"value": value})).outcome
            assert outcome.status in {"ok", "tool_error", "invalid_args"}
            assert (await call_tool(tools["give"], {"value": 1})).output == "1"


@pytest.mark.requirement("F44")
async def test_a_sync_call_on_the_loop_of_the_connection_raises_instead_of_blocking() -> None:
    """The loop would wait for a call that needs the loop; in a thread the same call works."""
    async with asyncio.timeout(BOUND), joined("http") as tools:
        arguments = {"lines": 1}
        with pytest.raises(UserError, match="belongs to the event loop that waits"):
            tools["perform"].invoke_sync(arguments)
        outcome = await asyncio.to_thread(tools["perform"].invoke_sync, arguments)
        assert "1 lines" in str(outcome)


if __name__ == "__main__":
    from agents_tools.mcp import serve

    serve(TOOLS)
