"""What only LlamaIndex has, with our tools in it and its tools here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from llama_index.core.agent.react.formatter import ReActChatFormatter
from llama_index.core.agent.workflow import AgentWorkflow
from llama_index.core.base.llms.types import (
    AudioBlock,
    DocumentBlock,
    ImageBlock,
    TextBlock,
)
from llama_index.core.llms.llm import ToolSelection
from llama_index.core.query_engine import CustomQueryEngine
from llama_index.core.tools import (
    FunctionTool as ForeignTool,
    QueryEngineTool,
    ToolMetadata,
    ToolOutput,
    acall_tool_with_selection,
    call_tool_with_selection,
)
from llama_index.core.workflow import Context, HumanResponseEvent, InputRequiredEvent

from agents_tools import (
    FunctionTool,
    ToolContext,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    function_tool,
)
from agents_tools.export.llama_index import LlamaIndexToolEvent, from_llama_index, to_llama_index
from agents_tools.policies import needs_approval
from tests.frameworks import functions
from tests.frameworks.harness.elsewhere._hostile import (
    check_raised,
    check_refused,
    check_returned,
    outcome_of,
)
from tests.frameworks.harness.llama_index import HARNESS, ScriptedModel, make_agent
from tests.frameworks.suite import Call
from tests.frameworks.tools import TOOLS

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def test_the_schema_is_handed_over_as_it_is() -> None:
    """A model is told what the tool accepts, nested types included; changing it changes nothing."""
    tool = TOOLS["book"]
    given = to_llama_index(tool).metadata.get_parameters_dict()
    assert given == tool.params_json_schema
    given["properties"].clear()
    assert to_llama_index(tool).metadata.get_parameters_dict() == tool.params_json_schema
    wire = to_llama_index(tool).metadata.to_openai_tool()
    assert wire["function"]["parameters"] == tool.params_json_schema


def test_agents_that_reason_in_text_read_the_schema() -> None:
    """The ReAct prompt holds the schema as text."""
    messages = ReActChatFormatter().format(tools=to_llama_index([TOOLS["book"]]), chat_history=[])
    assert json.dumps(TOOLS["book"].params_json_schema, ensure_ascii=False) in str(messages[0])


async def test_tools_are_called_outside_workflows_too() -> None:
    """`predict_and_call` of a model calls tools by itself, sync and async, and has no context."""
    tools = to_llama_index([TOOLS["greet"], TOOLS["crunch"], TOOLS["fail"]])
    chosen = ToolSelection(tool_id="1", tool_name="crunch", tool_kwargs={"steps": 2})
    assert (await acall_tool_with_selection(chosen, tools)).content == "2 steps done"
    assert call_tool_with_selection(chosen, tools).content == "2 steps done"
    wrong = ToolSelection(tool_id="2", tool_name="fail", tool_kwargs={"reason": "rain"})
    output = call_tool_with_selection(wrong, tools)
    assert output.is_error
    assert output.content == "Tool 'fail' failed: ValueError: it failed because of rain"
    assert isinstance(output.exception, ValueError)
    assert tools[0]("Ada").content == "Hello Ada!"


async def test_a_workflow_of_several_agents() -> None:
    """A workflow of several agents calls tools in a place of its own."""
    agent = make_agent(
        ScriptedModel([Call("c1", "crawl", '{"pages": 2}')], "done"),
        to_llama_index([TOOLS["crawl"]]),
    )
    handler: Any = AgentWorkflow(agents=[agent], root_agent=agent.name).run(user_msg="Go.")
    told = [
        event async for event in handler.stream_events() if isinstance(event, LlamaIndexToolEvent)
    ]
    assert str((await handler).response.content) == "done"
    kinds = [event.event["type"] for event in told]
    assert kinds[0] == "tool_stream_start_event"
    assert kinds.count("tool_progress_event") == 2
    assert kinds[-1] == "tool_stream_end_event"
    json.dumps([event.model_dump() for event in told])


async def test_the_context_of_the_workflow_is_the_applications_object() -> None:
    """Tools share the state of the workflow; an object of the application's goes first."""
    seen: list[Any] = []

    @function_tool
    async def remember(ctx: ToolContext[Any], workflow_context: str) -> str:
        seen.append(ctx.context)
        if isinstance(ctx.context, Context):
            await ctx.context.store.set("remembered", workflow_context)
        return "kept"

    for own in (None, "mine"):
        tools = [to_llama_index(remember, context=own)]
        report = await HARNESS.run(tools, [Call("c1", "remember", '{"workflow_context": "x"}')])
        assert report.answers["c1"].text == "kept"
        assert report.error is None
    assert isinstance(seen[0], Context)
    assert seen[1] == "mine"


async def test_a_tool_waits_for_a_person_as_workflows_do() -> None:
    """What a workflow raises to wait is no failure of the tool."""

    @function_tool
    async def ask(ctx: ToolContext[Any], question: str) -> str:
        answer = await ctx.context.wait_for_event(
            HumanResponseEvent, waiter_event=InputRequiredEvent(prefix=question)
        )
        return str(answer.response)

    agent = make_agent(
        ScriptedModel([Call("c1", "ask", '{"question": "Really?"}')], "done"),
        [to_llama_index(ask)],
    )
    handler: Any = agent.run(user_msg="Go.")
    answers: list[Any] = []
    async for event in handler.stream_events():
        if isinstance(event, InputRequiredEvent):
            handler.ctx.send_event(HumanResponseEvent(response="yes"))
        if type(event).__name__ == "ToolCallResult":
            answers.append(event.tool_output.content)
    await handler
    assert answers == ["yes"]


async def test_blocks_of_content_stay_what_they_are() -> None:
    """Images, sounds and documents reach the model as its framework has them."""

    @function_tool
    def everything() -> list[Any]:
        return [
            ToolOutputText("all"),
            ToolOutputImage(data=functions.PIXEL, detail="low"),
            ToolOutputImage(url="https://example.com/a.png"),
            ToolOutputImage(file_id="file-1"),
            ToolOutputAudio(data=b"RIFF0000WAVEdata"),
            ToolOutputFileContent(data=b"abcd", filename="a.txt"),
        ]

    output = await to_llama_index(everything).acall()
    text, image, linked, stored, sound, file = output.blocks
    assert text.text == "all"
    assert image.resolve_image().read() == functions.PIXEL
    assert (image.image_mimetype, image.detail) == ("image/png", "low")
    assert str(linked.url) == "https://example.com/a.png"
    assert "file-1" in stored.text
    assert sound.resolve_audio().read() == b"RIFF0000WAVEdata"
    assert sound.format == "wav"
    assert file.resolve_document().read() == b"abcd"
    assert (file.title, file.document_mimetype) == ("a.txt", "text/plain")

    back = from_llama_index(to_llama_index_without_context(everything))
    outcome = await outcome_of(back)
    assert [block.type for block in outcome.output] == [
        "text",
        "image",
        "image",
        "text",
        "audio",
        "file",
    ]
    assert outcome.output[1].data == functions.PIXEL
    assert outcome.output[5].data == b"abcd"


def to_llama_index_without_context(tool: FunctionTool[..., Any]) -> Any:
    """Return a tool of ours as one of theirs, which takes no context."""
    theirs = to_llama_index(tool)
    theirs.requires_context = False
    return theirs


async def test_the_exception_itself_where_it_is_asked_for() -> None:
    """Where a tool has no failure function its error is the framework's business."""
    tool = TOOLS["fail"].with_(failure_error_function=None)
    report = await HARNESS.run([to_llama_index(tool)], [Call("c1", "fail", '{"reason": "rain"}')])
    assert report.answers["c1"].text == "it failed because of rain"
    assert report.answers["c1"].failed


async def test_a_call_that_needs_a_person_is_not_run() -> None:
    """Nobody can be asked there."""
    functions.bodies.clear()
    tool = needs_approval(TOOLS["greet"])
    report = await HARNESS.run([to_llama_index(tool)], [Call("c1", "greet", '{"name": "Ada"}')])
    assert "needs the approval of a person" in report.answers["c1"].text
    assert report.answers["c1"].failed
    assert functions.bodies == []


async def test_a_sync_call_from_within_a_loop() -> None:
    """`tool.call` blocks its thread, and works whatever runs there."""
    assert to_llama_index(TOOLS["crunch"]).call(steps=1).content == "1 steps done"


async def test_foreign_tools_that_raise() -> None:
    """Whatever they raise is a failure of ours."""

    def make(body: Callable[[], Any]) -> FunctionTool[..., Any]:
        async def odd() -> Any:
            return body()

        return from_llama_index(ForeignTool.from_defaults(async_fn=odd))

    await check_raised(make)


async def test_foreign_tools_with_odd_results() -> None:
    """LlamaIndex makes text of everything; what is JSON comes as JSON."""

    def make(body: Callable[[], Any]) -> FunctionTool[..., Any]:
        def odd() -> Any:
            return body()

        return from_llama_index(ForeignTool.from_defaults(odd))

    await check_returned(make)
    found = await outcome_of(make(lambda: {"a": [1, None]}))
    assert found.output == '{"a":[1,null]}'


async def test_foreign_failures_are_failures() -> None:
    """`is_error`, with and without an exception, and the words of the tool."""

    def make(output: ToolOutput) -> FunctionTool[..., Any]:
        theirs = ForeignTool.from_defaults(lambda: "", name="odd", callback=lambda _: output)
        return from_llama_index(theirs)

    given: dict[str, Any] = {"tool_name": "odd", "raw_input": {}, "raw_output": None}
    told = await outcome_of(make(ToolOutput(content="no luck", is_error=True, **given)))
    assert (told.status, told.output) == ("tool_error", "no luck")
    raised = ToolOutput(content="", is_error=True, exception=LookupError("no luck"), **given)
    told = await outcome_of(make(raised))
    assert (told.status, told.output) == ("tool_error", "Tool 'odd' failed: LookupError: no luck")
    blocks = [TextBlock(text="a"), ImageBlock(url="https://example.com/a.png")]
    told = await outcome_of(make(ToolOutput(blocks=blocks, **given)))
    assert [block.type for block in told.output] == ["text", "image"]
    empty = [DocumentBlock(data=b"", title="none"), AudioBlock(audio=b"")]
    told = await outcome_of(make(ToolOutput(blocks=empty, **given)))
    assert told.status == "tool_error"


async def test_query_engines_are_tools() -> None:
    """What is not a function has one argument, and is asked by name."""

    class Engine(CustomQueryEngine):
        def custom_query(self, query_str: str) -> str:
            return f"about {query_str}"

    theirs = QueryEngineTool.from_defaults(Engine(), name="ask", description="Ask.")
    ours = from_llama_index([theirs])[0]
    assert (await outcome_of(ours, input="bees")).output == "about bees"
    assert (await outcome_of(ours)).status == "invalid_args"


def test_what_cannot_work_is_refused() -> None:
    """In our words, when it is declared."""

    async def needs(ctx: Context, topic: str) -> str:
        return topic

    needs.__annotations__["ctx"] = Context
    theirs = ForeignTool.from_defaults(async_fn=needs)
    check_refused(lambda: from_llama_index(theirs), "needs", "Context", "partial_params")
    check_refused(lambda: from_llama_index("greet"), "from_llama_index()", "str")  # type: ignore[call-overload]
    check_refused(lambda: to_llama_index(max), "@function_tool")  # type: ignore[call-overload]

    def unclear(topic: "Nowhere") -> str:  # noqa: F821, UP037
        return str(topic)

    check_refused(
        lambda: from_llama_index(ForeignTool.from_defaults(unclear)), "unclear", "fn_schema"
    )

    class Wrong(ToolMetadata):
        def get_parameters_dict(self) -> dict[str, Any]:
            return {"type": "object", "properties": {"a": {"$ref": "#/$defs/nowhere"}}}

    wrong = ForeignTool(lambda: "", metadata=Wrong("d", "wrong"))
    check_refused(lambda: from_llama_index(wrong), "wrong")


async def test_names_that_no_provider_takes() -> None:
    """The closest one is given, and the tool is the same."""
    theirs = ForeignTool.from_defaults(lambda: "yes", name="ask me!", description="Ask.")
    ours = from_llama_index(theirs)
    assert ours.name == "ask_me"
    assert (await outcome_of(ours)).output == "yes"


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

    call = asyncio.create_task(
        outcome_of(from_llama_index(ForeignTool.from_defaults(async_fn=wait)))
    )
    await begun.wait()
    call.cancel()
    await asyncio.wait([call])
    assert call.cancelled()
    assert ended.is_set()


def test_results_for_programs_stay() -> None:
    """`raw_output` is what the function returned."""

    @function_tool
    def count() -> ToolResult:
        return ToolResult(content="three", structured={"count": 3})

    output = to_llama_index(count).call()
    assert output.content == "three"
    assert isinstance(output.raw_output, ToolResult)
