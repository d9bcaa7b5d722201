"""What only the Microsoft Agent Framework has, with our tools in it and its tools here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from agent_framework import (
    SKIP_PARSING,
    Content,
    FunctionInvocationContext,
    FunctionMiddleware,
    FunctionTool as ForeignTool,
    tool as foreign_tool,
)

from agents_tools import (
    FunctionTool,
    ToolContext,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    function_tool,
    listen,
)
from agents_tools.export.agent_framework import from_agent_framework, to_agent_framework
from agents_tools.policies import needs_approval
from tests.frameworks import functions
from tests.frameworks.harness.agent_framework import HARNESS, ScriptedClient, make_agent
from tests.frameworks.harness.elsewhere._hostile import (
    check_raised,
    check_refused,
    check_returned,
    outcome_of,
)
from tests.frameworks.suite import Call
from tests.frameworks.tools import TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


async def test_the_schema_is_handed_over_as_it_is() -> None:
    """A model is told what the tool accepts, nested types included; changing it changes nothing."""
    tool = TOOLS["book"]
    client = ScriptedClient("done")
    await make_agent(client, to_agent_framework([tool])).run("Go.")
    wire = client.offered[0].to_json_schema_spec()["function"]
    assert wire["parameters"] == tool.params_json_schema
    assert (wire["name"], wire["description"]) == (tool.name, tool.description)
    wire["parameters"]["properties"].clear()
    assert to_agent_framework(tool).parameters() == tool.params_json_schema


async def test_arguments_are_validated_by_the_tool() -> None:
    """The framework looks at the first level only, and tells its model nothing of what is wrong."""
    calls = [
        Call("c1", "greet", '{"name": 3}'),
        Call("c2", "greet", "{}"),
        Call("c3", "greet", '{"name": "Ada", "more": 1}'),
        Call("c4", "greet", "no json"),
    ]
    report = await HARNESS.run(to_agent_framework([TOOLS["greet"]]), calls)
    for call in calls:
        assert "Invalid arguments for tool 'greet'" in report.answers[call.id].text
    assert "name" in report.answers["c2"].text


async def test_what_a_run_brings_along() -> None:
    """The context of the call is the application's object, unless there is one."""
    seen: list[Any] = []

    @function_tool
    def remember(ctx: ToolContext[Any]) -> str:
        seen.append((ctx.context, ctx.tool_call_id))
        return "kept"

    for own in (None, "mine"):
        client = ScriptedClient([Call("c1", "remember"), Call("c2", "remember")], "done")
        agent = make_agent(client, [to_agent_framework(remember, context=own)])
        await agent.run("Go.", function_invocation_kwargs={"user": "Ada"})
    assert sorted(call_id for _, call_id in seen) == ["c1", "c1", "c2", "c2"]
    assert isinstance(seen[0][0], FunctionInvocationContext)
    assert seen[0][0].kwargs["user"] == "Ada"
    assert seen[3][0] == "mine"


async def test_middleware_sees_the_call() -> None:
    """What stands around functions there stands around ours, and may change the arguments."""
    seen: list[Any] = []

    class Looking(FunctionMiddleware):
        async def process(self, context: FunctionInvocationContext, call_next: Any) -> None:
            seen.append((context.function.name, dict(context.arguments)))
            context.arguments = {"name": "Bo"}
            await call_next()
            seen.append(context.result[0].text)

    client = ScriptedClient([Call("c1", "greet", '{"name": 3}')], "done")
    agent = make_agent(client, [to_agent_framework(TOOLS["greet"])], middleware=[Looking()])
    await agent.run("Go.")
    assert seen == [("greet", {"name": 3}), "Hello Bo!"]


async def test_tools_are_called_by_hand() -> None:
    """`tool.invoke`, with and without arguments."""
    greet = to_agent_framework(TOOLS["greet"])
    assert (await greet.invoke(arguments={"name": "Ada"}))[0].text == "Hello Ada!"
    assert (await greet.invoke(name="Ada"))[0].text == "Hello Ada!"
    assert "Invalid arguments" in (await greet.invoke())[0].text


async def test_blocks_of_content_are_its_items() -> None:
    """Images, sounds and files reach the model as the framework has them, and come back."""

    @function_tool
    def everything() -> list[Any]:
        return [
            ToolOutputText("all"),
            ToolOutputImage(data=functions.PIXEL),
            ToolOutputImage(url="https://example.com/a.png"),
            ToolOutputImage(url="data:image/gif;base64,AAAA"),
            ToolOutputAudio(data=b"RIFF0000WAVEdata"),
            ToolOutputFileContent(data=b"abcd", filename="a.txt"),
            ToolOutputFileContent(file_id="file-1"),
        ]

    theirs = to_agent_framework(everything)
    items = await theirs.invoke(arguments={})
    assert [item.type for item in items] == [
        "text",
        "data",
        "uri",
        "data",
        "data",
        "data",
        "hosted_file",
    ]
    assert [item.media_type for item in items[1:6]] == [
        "image/png",
        "image/png",
        "image/gif",
        "audio/wav",
        "text/plain",
    ]
    assert items[5].name == "a.txt"
    back = await outcome_of(from_agent_framework(theirs))
    assert [block.type for block in back.output] == [
        "text",
        "image",
        "image",
        "image",
        "audio",
        "file",
        "file",
    ]
    assert back.output[1].data == functions.PIXEL
    assert back.output[5] == ToolOutputFileContent(
        data=b"abcd", filename="a.txt", mime_type="text/plain"
    )


async def test_the_exception_itself_where_it_is_asked_for() -> None:
    """Where a tool has no failure function its error is the framework's business."""
    tool = TOOLS["fail"].with_(failure_error_function=None)
    report = await HARNESS.run(
        [to_agent_framework(tool)], [Call("c1", "fail", '{"reason": "rain"}')]
    )
    assert report.answers["c1"].failed
    assert "it failed because of rain" in report.answers["c1"].text


async def test_streams_of_the_agent() -> None:
    """An agent that is streamed calls tools as one that is not; who listens hears them."""
    client = ScriptedClient([Call("c1", "crawl", '{"pages": 2}')], "done")
    stream = make_agent(client, [to_agent_framework(TOOLS["crawl"])]).run("Go.", stream=True)
    results: list[str] = []
    with listen() as heard:
        async for update in stream:
            results += [item.result for item in update.contents if item.type == "function_result"]
    assert results == ["2 pages read"]
    assert [event.tool_call_id for event in heard] == ["c1"] * 4


async def test_a_call_that_needs_a_person_is_not_run() -> None:
    """Nobody can be asked there."""
    functions.bodies.clear()
    tool = needs_approval(TOOLS["greet"])
    report = await HARNESS.run([to_agent_framework(tool)], [Call("c1", "greet", '{"name": "A"}')])
    assert "needs the approval of a person" in report.answers["c1"].text
    assert functions.bodies == []


async def test_approval_is_not_lost_on_the_way() -> None:
    """A tool that asks there asks here."""
    ran: list[str] = []

    @foreign_tool(approval_mode="always_require")
    def wipe(path: str) -> str:
        """Wipe it."""
        ran.append(path)
        return "gone"

    outcome = await outcome_of(from_agent_framework(wipe), path="/")
    assert outcome.status == "denied"
    assert ran == []


def odd_tool(body: Callable[[], Any]) -> FunctionTool[..., Any]:
    """Make a tool of ours of one of theirs that does this."""

    async def odd() -> Any:
        return body()

    return from_agent_framework(ForeignTool(name="odd", description="Odd.", func=odd))


async def test_foreign_tools_that_raise() -> None:
    """Whatever they raise is a failure of ours."""
    await check_raised(odd_tool)


async def test_foreign_tools_with_odd_results() -> None:
    """The framework makes text of everything; what it leaves as it is we make text of."""
    await check_returned(odd_tool)

    def raw() -> Any:
        return {"a": [1, None]}

    theirs = ForeignTool(name="raw", func=raw, result_parser=SKIP_PARSING)
    assert (await outcome_of(from_agent_framework(theirs))).output == '{"a":[1,null]}'


async def test_foreign_items() -> None:
    """What the framework has more kinds of than we do is told as JSON; an error is a failure."""
    call = Content.from_function_call("c", "other", arguments={})
    told = await outcome_of(odd_tool(lambda: [Content.from_text("a"), call]))
    assert json.loads(told.output[1].text)["name"] == "other"
    failed = await outcome_of(odd_tool(lambda: Content.from_error(message="no luck")))
    assert (failed.status, failed.output) == ("tool_error", "no luck")
    broken = Content("data", uri="data:image/png;base64,!!", media_type="image/png")
    failed = await outcome_of(odd_tool(lambda: broken))
    assert failed.status == "tool_error"
    assert "not valid base64" in failed.output


def test_what_cannot_work_is_refused() -> None:
    """In our words, when it is declared."""
    check_refused(
        lambda: from_agent_framework(ForeignTool(name="told")), "'told'", "got a declaration"
    )
    check_refused(lambda: from_agent_framework(max), "from_agent_framework()")  # type: ignore[call-overload]
    check_refused(lambda: to_agent_framework(max), "@function_tool")  # type: ignore[call-overload]
    schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}
    wrong = ForeignTool(name="wrong", func=lambda a: a, input_model=schema)
    check_refused(lambda: from_agent_framework(wrong), "wrong")


async def test_limits_of_the_framework_hold() -> None:
    """How often a tool may be called is counted there."""

    @foreign_tool(max_invocations=1)
    def once() -> str:
        """Only once."""
        return "yes"

    ours = from_agent_framework(once)
    assert (await outcome_of(ours)).output == "yes"
    assert "maximum invocation limit" in (await outcome_of(ours)).output


async def test_cancelling_the_call_cancels_a_foreign_tool() -> None:
    """Our cancellation reaches an async function of theirs."""
    begun, ended = asyncio.Event(), asyncio.Event()

    async def wait() -> str:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    ours = from_agent_framework(ForeignTool(name="wait", func=wait))
    call = asyncio.create_task(outcome_of(ours))
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert ended.is_set()
