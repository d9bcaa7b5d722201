"""Features that only Strands has, with our tools in its agents and its tools and agents in ours."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
from strands import ToolContext as ForeignContext, tool as foreign_tool

from agents_tools import (
    ToolAnnotations,
    ToolContext,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolProgressEvent,
    UserError,
    function_tool,
    listen,
    progress,
    streaming_tool,
)
from agents_tools.export.strands import as_tool, from_strands, to_strands
from agents_tools.policies import needs_approval
from agents_tools.testing import call_tool
from tests.frameworks.functions import PIXEL
from tests.frameworks.harness.strands import ScriptedModel, answers_in, make_agent
from tests.frameworks.suite import Call

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@function_tool
def crunch(steps: int) -> str:
    """Work.

    Args:
        steps: How much.
    """
    for step in range(1, steps + 1):
        progress(step, steps)
    return f"{steps} done"


def test_one_tool_is_converted_to_one_and_a_list_to_a_list() -> None:
    """A single tool needs no list."""
    assert to_strands(crunch).tool_name == "crunch"
    assert [tool.tool_name for tool in to_strands([crunch])] == ["crunch"]
    with pytest.raises(UserError, match="two tools named 'crunch'"):
        to_strands([crunch, crunch])


def test_the_schema_is_a_copy_of_ours() -> None:
    """Strands adds missing descriptions to properties; our schema must not change."""
    before = crunch.params_json_schema
    agent = make_agent(ScriptedModel("done"), to_strands([crunch]))
    agent.tool_registry.get_all_tool_specs()
    assert to_strands(crunch).tool_spec["inputSchema"] == {"json": before}
    assert crunch.params_json_schema == before


def test_annotations_are_converted_in_both_directions() -> None:
    """Permission layers read them in both libraries."""
    hints = ToolAnnotations(readOnlyHint=True, destructiveHint=False)
    given: Any = to_strands(crunch.with_(annotations=hints)).tool_spec["annotations"]
    assert given == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": False,
        "openWorldHint": True,
    }

    @foreign_tool
    def look() -> str:
        """Look."""
        return ""

    look.tool_spec = {**look.tool_spec, "annotations": {**given, "vendorHint": 1}}
    assert from_strands(look).annotations == hints


def test_a_synchronous_agent_calls_our_tools() -> None:
    """`agent()` runs everything in its own loop, in a thread."""
    told: list[Any] = []

    def hear(**event: Any) -> None:
        if "tool_stream_event" in event:
            told.append(event["tool_stream_event"]["data"])

    @function_tool
    async def fetch(ctx: ToolContext[Any]) -> str:
        """Fetch."""
        await asyncio.sleep(0)
        return f"for {ctx.context['user']}"

    calls = [Call("c1", "crunch", '{"steps": 2}'), Call("c2", "fetch")]
    agent = make_agent(ScriptedModel(calls, "done"), to_strands([crunch, fetch]))
    agent.callback_handler = hear
    with listen() as heard:
        result = agent("Go.", invocation_state={"user": "Ann"})
    assert str(result).strip() == "done"
    answers = answers_in(agent.messages)
    assert (answers["c1"].text, answers["c2"].text) == ("2 done", "for Ann")
    assert [one["current"] for one in told if one["type"] == "tool_progress_event"] == [1.0, 2.0]
    assert len([event for event in heard if isinstance(event, ToolProgressEvent)]) == 2


def test_a_direct_tool_call_returns_the_result() -> None:
    """`agent.tool.crunch()` needs no model."""
    agent = make_agent(ScriptedModel(), to_strands([crunch]))
    result = agent.tool.crunch(steps=1)
    assert (result["status"], result["content"]) == ("success", [{"text": "1 done"}])


async def test_cancelling_the_agent_cancels_its_calls() -> None:
    """`agent.cancel()` only sets a signal, so our tools must watch it."""
    inside, over = asyncio.Event(), asyncio.Event()

    @function_tool
    async def wait() -> str:
        """Wait."""
        inside.set()
        try:
            await asyncio.Event().wait()
        finally:
            over.set()
        return ""

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_strands([wait]))
    run = asyncio.ensure_future(agent.invoke_async("Go."))
    await asyncio.wait_for(inside.wait(), 5)
    agent.cancel()
    result = await asyncio.wait_for(run, 5)
    assert over.is_set()
    assert result.stop_reason == "cancelled"
    assert answers_in(agent.messages)["c1"].failed


async def test_closing_the_stream_cancels_its_calls() -> None:
    """The results are no longer needed."""
    over = asyncio.Event()

    @streaming_tool
    async def crawl() -> Any:
        """Crawl."""
        try:
            while True:
                yield ToolProgressEvent(1)
                await asyncio.sleep(0)
        finally:
            over.set()

    agent = make_agent(ScriptedModel([Call("c1", "crawl")], "done"), to_strands([crawl]))
    events: Any = agent.stream_async("Go.")
    async for event in events:
        if "tool_stream_event" in event:
            break
    await events.aclose()
    await asyncio.wait_for(over.wait(), 5)


async def test_a_failure_keeps_its_exception_for_hooks() -> None:
    """Hooks of Strands get the exception; the model reads our error text."""
    from strands.hooks import AfterToolCallEvent

    seen: list[Any] = []

    @function_tool
    def fail() -> str:
        """Fail."""
        raise LookupError("nothing there")

    loud = fail.with_(name="loud", failure_error_function=None)
    calls = [Call("c1", "fail"), Call("c2", "loud")]
    agent = make_agent(ScriptedModel(calls, "done"), to_strands([fail, loud]))
    agent.hooks.add_callback(AfterToolCallEvent, lambda event: seen.append(event.exception))
    await agent.invoke_async("Go.")
    assert [type(error) for error in seen] == [LookupError, LookupError]
    answers = answers_in(agent.messages)
    assert answers["c1"].text == "Tool 'fail' failed: LookupError: nothing there"
    assert answers["c1"].failed
    assert answers["c2"].failed


async def test_files_are_documents() -> None:
    """Document names only allow letters, digits and a few other characters."""

    @function_tool
    def report() -> list[Any]:
        """Report."""
        return [
            ToolOutputFileContent(
                data=b"%PDF-", filename="q1_2026.pdf", mime_type="application/pdf"
            ),
            ToolOutputImage(url="https://example.com/a.png"),
        ]

    agent = make_agent(ScriptedModel([Call("c1", "report")], "done"), to_strands([report]))
    await agent.invoke_async("Go.")
    content = agent.messages[2]["content"][0]["toolResult"]["content"]
    assert content == [
        {"document": {"format": "pdf", "name": "q1-2026-pdf", "source": {"bytes": b"%PDF-"}}},
        {"text": "[image: at https://example.com/a.png]"},
    ]


@pytest.mark.parametrize(
    ("response", "text"),
    [
        (True, "launched V2"),
        ("yes", "launched V2"),
        ({"approved": True}, "launched V2"),
        ("no", "A person refused this call of 'launch'."),
        ("whatever", "A person refused this call of 'launch'."),
    ],
)
async def test_a_call_that_needs_approval_interrupts_the_agent(response: Any, text: str) -> None:
    """Strands agents ask for approval with interrupts."""
    launched: list[str] = []

    @needs_approval(lambda ctx, arguments: arguments["rocket"] != "toy")
    @function_tool
    async def launch(rocket: str) -> str:
        """Launch."""
        launched.append(rocket)
        return f"launched {rocket}"

    calls = [Call("c1", "launch", '{"rocket": "V2"}'), Call("c2", "launch", '{"rocket": "toy"}')]
    agent = make_agent(ScriptedModel(calls, "done"), to_strands([launch]))
    result = await agent.invoke_async("Go.")
    assert result.stop_reason == "interrupt"
    assert launched == ["toy"]
    (asked,) = result.interrupts
    assert asked.reason == {"tool": "launch", "arguments": '{"rocket":"V2"}'}
    answer = {"interruptResponse": {"interruptId": asked.id, "response": response}}
    result = await agent.invoke_async([answer])
    assert result.stop_reason == "end_turn"
    told = answers_in(agent.messages)
    assert (told["c1"].text, told["c1"].failed) == (text, not text.startswith("launched"))
    assert told["c2"].text == "launched toy"
    assert launched.count("V2") == text.startswith("launched")


async def test_without_an_agent_a_call_cannot_be_approved() -> None:
    """A tool of Strands can be used without an agent."""
    tool = to_strands(needs_approval(crunch))
    use: Any = {"toolUseId": "c1", "name": "crunch", "input": {"steps": 1}}
    events = [event async for event in tool.stream(use, {})]
    result = events[-1].tool_result
    assert result["status"] == "error"
    assert "no run can request it here" in result["content"][0]["text"]


async def test_progress_is_streamed() -> None:
    """Progress must be visible while the tool runs."""
    go = asyncio.Event()

    @function_tool
    async def wait(ctx: ToolContext[Any]) -> str:
        """Wait."""
        ctx.notify("ready")
        await asyncio.wait_for(go.wait(), 5)
        return "went"

    agent = make_agent(ScriptedModel([Call("c1", "wait")], "done"), to_strands([wait]))
    async for event in agent.stream_async("Go."):
        told = event.get("tool_stream_event")
        if told is not None and told["data"].get("data") == "ready":
            go.set()
    assert answers_in(agent.messages)["c1"].text == "went"


# --- their tools here


def test_a_converted_tool_converts_back_to_the_original() -> None:
    assert from_strands(to_strands(crunch)) is crunch
    assert from_strands(to_strands([crunch])) == [crunch]
    with pytest.raises(UserError, match=r"expects a .*AgentTool, got function"):
        from_strands(test_one_tool_is_converted_to_one_and_a_list_to_a_list)


async def test_results_of_their_tools_become_our_content_blocks() -> None:
    """An image is an image in both libraries."""

    @foreign_tool
    def draw() -> Any:
        """Draw."""
        image = {"image": {"format": "png", "source": {"bytes": PIXEL}}}
        return {"status": "success", "content": [{"text": "here"}, image, {"json": {"a": 1}}]}

    called = await call_tool(from_strands(draw))
    text, image, more = called.output
    assert (text.text, more.text) == ("here", '{"a":1}')
    assert (image.data, image.mime_type) == (PIXEL, "image/png")


async def test_an_interrupt_of_their_tool_waits_for_approval() -> None:
    """There is no result before the decision."""

    @foreign_tool(context=True)
    def launch(tool_context: ForeignContext) -> str:
        """Launch."""
        return tool_context.interrupt("launch", reason="really?")

    agent = make_agent(ScriptedModel(), [])
    called = await call_tool(from_strands(launch, invocation_state={"agent": agent}))
    assert called.status == "denied"
    assert "waits for an answer to launch: really?" in str(called.output)


# --- their agents here


async def test_an_agent_keeps_its_conversation_on_request() -> None:
    """Some agents are used as partners, not as functions."""
    for preserve, expected in ((False, 1), (True, 3)):
        model = ScriptedModel("one", "two")
        tool = as_tool(make_agent(model, [], name="Scout"), preserve_context=preserve)
        await call_tool(tool, input="a")
        await call_tool(tool, input="b")
        assert len(model.seen[-1]) == expected


async def test_calls_from_several_loops_are_queued() -> None:
    """An agent of Strands rejects concurrent calls; callers should not have to know."""
    agent = make_agent(ScriptedModel("one", "two", "three"), [], name="Scout")
    tool = as_tool(agent)
    answers: list[Any] = []
    threads = [
        threading.Thread(target=lambda: answers.append(as_tool(agent).invoke_sync(input="a")))
        for _ in range(2)
    ]
    for thread in threads:
        thread.start()
    answers.append(await tool.invoke(input="b"))
    for thread in threads:
        await asyncio.to_thread(thread.join, 10)
    assert sorted(answers) == ["one", "three", "two"]


async def test_an_agent_that_calls_itself_gets_an_error() -> None:
    """It would wait for itself forever."""
    agent = make_agent(ScriptedModel(), [], name="Scout")
    tool = as_tool(agent)
    agent.model = ScriptedModel([Call("c1", "scout", '{"input": "again"}')], "done")
    agent.tool_registry.register_tool(to_strands(tool))
    called = await call_tool(tool, input="Go.")
    assert called.output == "done"
    assert "cannot be called by itself" in answers_in(agent.messages)["c1"].text


async def test_progress_of_their_tools_belongs_to_the_inner_call() -> None:
    """It is shown where that tool is shown."""

    @foreign_tool
    async def work() -> Any:
        """Work."""
        yield {"done": 1}
        yield "worked"

    agent = make_agent(ScriptedModel([Call("f1", "work")], "done"), [work], name="Scout")
    called = await call_tool(as_tool(agent, streaming=True), input="Go.")
    said = [event for event in called.events if event.type == "notify_stream_event"]
    assert [(event.path[1:], event.data) for event in said] == [
        (("f1",), '{"done":1}'),
        (("f1",), "worked"),
        ((), "done"),
    ]
