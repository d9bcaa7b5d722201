"""Our tools in agents that ask for odd things; `AGENTS_TOOLS_FRAMEWORK` says of which framework."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import AsyncIterator
from typing import Any

import pytest
from pydantic import BaseModel

from agents_tools import (
    Agent,
    FunctionTool,
    NotifyStreamEvent,
    ToolContext,
    ToolStreamEndEvent,
    UserError,
    function_tool,
    listen,
    register_secret,
    streaming_tool,
)
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.toolset import Toolset
from tests.frameworks.suite import Call, Report, harness_of

pytestmark = pytest.mark.anyio

HARNESS: Any = harness_of(os.environ["AGENTS_TOOLS_FRAMEWORK"])


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def _run(tools: Any, *calls: Call) -> Report:
    return await asyncio.wait_for(HARNESS.run(HARNESS.ours(tools), calls), 30)


def _open(name: str, *parameters: str, **schema: Any) -> tuple[FunctionTool[..., Any], list[Any]]:
    """Return a tool with a schema of its own, and its arguments."""
    found: list[Any] = []

    async def call(_context: ToolContext[Any], args_json: str) -> str:
        found.append(json.loads(args_json))
        return "fine"

    properties = {parameter: {"type": "string"} for parameter in parameters}
    whole = {"type": "object", "properties": properties, **schema}
    made = FunctionTool(
        name=name, description="Call.", params_json_schema=whole, on_invoke_tool=call
    )
    return made, found


NAMES = [
    "self",
    "args",
    "kwargs",
    "name",
    "type",
    "id",
    "context",
    "ctx",
    "tool_context",
    "agent",
    "team",
    "run_context",
    "fc",
    "input",
    "arguments",
    "session_state",
    "images",
    "files",
    "dependencies",
    "tool_call_id",
    "call_id",
    "workflow_context",
    "invocation_state",
    "func",
    "function",
    "class",
    "def",
    "print",
    "media",
    "error",
    "result",
    "messages",
    "user_id",
]
"""Names that frameworks or Python have uses of their own for."""


@pytest.mark.parametrize("several", [True, False])
async def test_parameters_may_have_any_name(several: bool) -> None:
    """Tools of MCP servers are named by people who have never heard of the framework."""
    groups = [NAMES] if several else [[name] for name in NAMES]
    tools: list[Any] = []
    given: list[Any] = []
    calls: list[Call] = []
    for number, names in enumerate(groups):
        tool, found = _open(f"call_{number}", *names)
        arguments = {name: f"the {name}" for name in names}
        calls.append(Call(f"id_{number}", tool.name, json.dumps(arguments)))
        tools.append(tool)
        given.append((found, arguments))
    report = await _run(tools, *calls)
    assert report.error is None
    for found, arguments in given:
        assert found == [arguments]


async def test_schemas_may_be_empty_open_or_within_themselves() -> None:
    """No arguments, any arguments, and arguments that hold the like of themselves."""

    class Node(BaseModel):
        name: str
        children: list[Node] = []

    @function_tool
    def depth(node: Node) -> str:
        """Tell how deep a tree is."""

        def deep(one: Node) -> int:
            return 1 + max((deep(child) for child in one.children), default=0)

        return f"{deep(node)} deep"

    @function_tool
    def nothing() -> str:
        """Take nothing."""
        return "taken"

    bare, seen = _open("bare")
    tree = {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}
    calls = [
        Call("c1", "nothing"),
        Call("c2", "bare"),
        Call("c3", "depth", json.dumps({"node": tree})),
    ]
    report = await _run([nothing, bare, depth], *calls)
    assert report.error is None
    texts = {call_id: answer.text for call_id, answer in report.answers.items()}
    assert "taken" in texts["c1"]
    assert "3 deep" in texts["c3"]
    assert seen == [{}]


async def test_names_may_have_dashes() -> None:
    """Providers take them, so the framework in between has to."""
    if HARNESS.name == "smolagents":
        pytest.skip("it is for code, which has no such names; a test of its own says so")
    tool, found = _open("look-up", "topic")
    report = await _run([tool], Call("c-1", "look-up", '{"topic": "bees"}'))
    assert report.answers["c-1"].text == "fine"
    assert found == [{"topic": "bees"}]


async def test_two_calls_of_one_id_are_two_calls() -> None:
    """Some servers number their calls from one again, or not at all."""
    if HARNESS.name in {"agent_framework", "smolagents"}:
        pytest.skip("it takes them for one call, whoever made the tool")
    made: list[str] = []

    @function_tool
    async def take(ctx: ToolContext[Any], what: str) -> str:
        """Take something."""
        ctx.notify(f"taking {what}")
        await asyncio.sleep(0)
        made.append(what)
        return what

    with listen() as heard:
        report = await _run(
            [take],
            Call("same", "take", '{"what": "a"}'),
            Call("same", "take", '{"what": "b"}'),
        )
    assert report.error is None
    assert report.final == "done"
    assert sorted(made) == ["a", "b"]
    ended = [event for event in heard if isinstance(event, ToolStreamEndEvent)]
    assert [event.status for event in ended] == ["ok", "ok"]


async def test_a_result_that_is_too_large_is_shortened() -> None:
    """What would fill the window of the model does not reach it."""

    @function_tool
    def flood() -> str:
        """Say a lot."""
        return "x" * 3_000_000

    report = await _run([flood], Call("c1", "flood"))
    assert report.error is None
    assert 0 < len(report.answers["c1"].text) < 300_000


async def test_secrets_reach_neither_the_model_nor_a_stream() -> None:
    """A secret that the application has named is masked wherever it is said."""
    secret = "sk-canary-4711-do-not-tell"  # noqa: S105 - nobody's
    register_secret(secret)

    @streaming_tool
    async def leak(ctx: ToolContext[Any]) -> AsyncIterator[Any]:
        """Leak."""
        ctx.notify(f"with {secret}")
        yield NotifyStreamEvent(f"again {secret}")
        yield f"the key is {secret}"

    @function_tool
    def fail() -> str:
        """Fail."""
        raise ValueError(f"no access with {secret}")

    with listen() as heard:
        report = await _run([leak, fail], Call("c1", "leak"), Call("c2", "fail"))
    told = f"{report.answers} {report.streamed} {list(heard)}"
    assert report.error is None
    assert secret not in told


async def test_a_tool_that_cancels_itself_has_failed() -> None:
    """Only whoever runs the agent can cancel it."""

    @function_tool
    async def stop() -> str:
        """Stop."""
        raise asyncio.CancelledError

    report = await _run([stop], Call("c1", "stop"))
    assert report.error is None
    assert report.final == "done"


@pytest.mark.parametrize("error", [SystemExit(3), GeneratorExit(), StopAsyncIteration("x")])
async def test_what_no_tool_should_raise_ends_no_run(error: BaseException) -> None:
    """A library that calls `sys.exit` is no reason to end the agent."""

    @function_tool
    async def leave() -> str:
        """Leave."""
        raise error

    report = await _run([leave], Call("c1", "leave"))
    assert report.error is None
    assert report.final == "done"


async def test_a_toolset_is_a_list_of_tools() -> None:
    """What names tools together works wherever a list does."""
    tool, found = _open("look_up", "topic")
    report = await _run(Toolset(tool).prefix("my_"), Call("c1", "my_look_up", '{"topic": "a"}'))
    assert report.error is None
    assert found == [{"topic": "a"}]


async def test_approval_of_a_call_that_fails_anyway_is_asked_of_nobody() -> None:
    """Arguments that do not fit are answered, whoever would have to agree to the call."""
    launched: list[Any] = []

    @needs_approval
    @function_tool
    def launch(rocket: int) -> str:
        """Launch a rocket."""
        launched.append(rocket)
        return "launched"

    report = await _run([launch], Call("c1", "launch", '{"rocket": "none at all"}'))
    assert report.error is None
    assert report.final == "done"
    assert "rocket" in report.answers["c1"].text
    assert not launched


async def test_an_agent_of_ours_answers_and_is_heard() -> None:
    """An agent is a tool like any other, with a stream of its own."""

    @function_tool
    async def dig(ctx: ToolContext[Any]) -> str:
        """Dig."""
        ctx.notify("digging")
        return "dug"

    model = ScriptedModel([tool_call("dig"), "It is deep."])
    digger = Agent("Digger", tools=[dig], model=model).as_tool(streaming=True)
    with listen() as heard:
        report = await _run([digger], Call("f1", "digger", '{"input": "Dig."}'))
    assert report.error is None
    assert "It is deep." in report.answers["f1"].text
    assert "digging" not in report.answers["f1"].text
    said = [event.data for event in heard if isinstance(event, NotifyStreamEvent)]
    assert said.count("digging") == 1


def test_an_agent_is_no_tool_until_it_is_made_one() -> None:
    """The error says how."""
    with pytest.raises(UserError, match=r"got Agent\. Pass agent\.as_tool"):
        HARNESS.ours(Agent("Digger"))
