"""Edge cases of runs: early calls, cancellation, inner runs, sessions and failing ends."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from agents_tools import (
    Agent,
    EventSource,
    MessageEvent,
    MessageOutputItem,
    ModelRequest,
    ModelResponse,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    ToolAnnotations,
    ToolCallItem,
    ToolCallOutputItem,
    ToolContext,
    Usage,
    function_tool,
)
from agents_tools.agents import FunctionToolResult, RunHooks, ToolsToFinalOutputResult
from agents_tools.errors import RunTimeoutError
from agents_tools.mcp import MCPToolManager
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call
from tests.mcp.small import Small, tool as small_tool
from tests.watched_storage import FailingWrites, watched_store

WITHIN = 45.0
"""Seconds that anything here may take at most."""


class ScriptModel:
    """A model whose answers are functions of the request."""

    provider = None

    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)

    async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
        items = await self.answers.pop(0)(request)
        return ModelResponse(items=items)


class BlockingTool:
    """A read-only tool that runs until it is cancelled, and records the cancellation."""

    def __init__(self, *, slow_to_leave: bool = False) -> None:
        self.entered = asyncio.Event()
        self.leaving = asyncio.Event()
        self.over = False
        self.may_leave = asyncio.Event()
        if not slow_to_leave:
            self.may_leave.set()

        @function_tool(name_override="look", annotations=ToolAnnotations(readOnlyHint=True))
        async def look() -> str:
            """Look."""
            self.entered.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.leaving.set()
                await self.may_leave.wait()
                self.over = True
            return "seen"

        self.tool = look


async def test_an_early_call_missing_from_the_answer_is_cancelled() -> None:
    """It must not run on while the model is asked again."""
    tool = BlockingTool()
    seen: list[bool] = []

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(tool_call("look", call_id="c1"))
        async with asyncio.timeout(WITHIN):
            await tool.entered.wait()
        return [MessageOutputItem(text="no number")]

    async def second(request: ModelRequest) -> list[Any]:
        seen.append(tool.over)
        return [MessageOutputItem(text='{"response": 4}')]

    agent = Agent("A", model=ScriptModel(first, second), tools=[tool.tool], output_type=int)
    async with asyncio.timeout(WITHIN):
        result = await Runner.run(agent, "go", run_config=RunConfig(start_calls_early=True))
    assert (result.final_output, seen) == (4, [True])


async def test_an_early_call_ends_with_the_run() -> None:
    """A hook that fails on the answer ends the run, and no call outlives it."""
    tool = BlockingTool()

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(call)
        async with asyncio.timeout(WITHIN):
            await tool.entered.wait()
        return [call]

    class Fails(RunHooks[Any]):
        async def on_llm_end(self, context: Any, agent: Any, response: Any) -> None:
            raise RuntimeError("the hook failed")

    call = tool_call("look", call_id="c1")
    agent = Agent("A", model=ScriptModel(first), tools=[tool.tool])
    config = RunConfig(start_calls_early=True)
    with pytest.raises(RuntimeError, match="the hook failed"):
        await asyncio.wait_for(Runner.run(agent, "go", run_config=config, hooks=Fails()), WITHIN)
    assert tool.over


async def test_a_model_request_contains_the_output_schema() -> None:
    """Providers use it for structured output; without a type the output is plain text."""
    collected: list[Any] = []

    async def answer(request: ModelRequest) -> list[Any]:
        collected.append(request.output)
        return [MessageOutputItem(text='{"response": 4}')]

    await Runner.run(Agent("A", model=ScriptModel(answer)), "go")
    await Runner.run(Agent("A", model=ScriptModel(answer), output_type=int), "go")
    assert collected[0] is None
    assert collected[1].schema["properties"]["response"]["type"] == "integer"


async def test_input_messages_are_emitted_with_their_source() -> None:
    """Only user messages have the source USER: a UI shows them on the other side."""
    messages = [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": "Hello"},
        {"role": "developer", "content": "Be kind."},
    ]
    result = Runner.run_streamed(Agent("A", model=ScriptedModel(["Hi"])), messages)
    events = [event async for event in result.stream_events()]
    message_events = [event for event in events if isinstance(event, MessageEvent)]
    assert [(event.role, event.source) for event in message_events] == [
        ("system", EventSource.AGENT),
        ("user", EventSource.USER),
        ("system", EventSource.AGENT),
    ]
    assert all(event.timestamp > 0 for event in message_events)


async def test_a_run_cancelled_while_ending_emits_its_end_event() -> None:
    """Subscribers wait for the last event; a second cancel must not remove it."""
    tool = BlockingTool(slow_to_leave=True)

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(tool_call("look", call_id="c1"))
        return await asyncio.Event().wait()  # pyright: ignore[reportReturnType]

    agent = Agent("A", model=ScriptModel(first), tools=[tool.tool])
    result = Runner.run_streamed(agent, "go", run_config=RunConfig(start_calls_early=True))
    events: list[Any] = []

    async def read() -> None:
        events.extend([event async for event in result.stream_events()])

    reading = asyncio.ensure_future(read())
    async with asyncio.timeout(WITHIN):
        await tool.entered.wait()
        result.cancel()
        await tool.leaving.wait()
        result.cancel()
        tool.may_leave.set()
        await asyncio.wait([reading])
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.status == "cancelled"
    assert tool.over


@pytest.mark.parametrize("outer", [None, 60.0])
async def test_an_inner_run_has_its_own_timeout(outer: float | None) -> None:
    """The timeout of an agent used as a tool applies in addition to that of the outer run."""

    async def never(request: ModelRequest) -> list[Any]:
        return await asyncio.Event().wait()  # pyright: ignore[reportReturnType]

    inner = Agent("Inner", model=ScriptModel(never))
    tool = inner.as_tool(
        tool_name="ask", tool_description="Ask.", run_config=RunConfig(timeout=0.05)
    )
    model = ScriptedModel([tool_call("ask", input="x"), "over"])
    async with asyncio.timeout(WITHIN):
        result = await Runner.run(
            Agent("Outer", model=model, tools=[tool]), "go", run_config=RunConfig(timeout=outer)
        )
    [answer] = [item["output"] for item in result.to_input_list() if "output" in item]
    assert "'Inner' took longer than 0.05 s" in answer
    assert result.final_output == "over"


async def test_an_inner_run_ends_with_the_outer_run() -> None:
    """Without its own timeout, only the error of the outer run is reported, once."""

    async def never(request: ModelRequest) -> list[Any]:
        return await asyncio.Event().wait()  # pyright: ignore[reportReturnType]

    tool = Agent("Inner", model=ScriptModel(never)).as_tool(
        tool_name="ask", tool_description="Ask."
    )
    outer = Agent("Outer", model=ScriptedModel([tool_call("ask", input="x")]), tools=[tool])
    with pytest.raises(RunTimeoutError, match=r"'Outer' took longer than 0\.1 s"):
        await asyncio.wait_for(Runner.run(outer, "go", run_config=RunConfig(timeout=0.1)), WITHIN)


async def test_a_cancelled_run_waits_for_a_write_of_its_store(tmp_path: Path) -> None:
    """The next run of the session reads what is being written."""
    began, allowed = threading.Event(), threading.Event()

    def wait(_: Any) -> None:
        began.set()
        allowed.wait(WITHIN)

    async with watched_store(tmp_path / "runs.db", before=wait) as store:
        agent, config = Agent("A", model=ScriptedModel(["Hi"])), RunConfig(store=store)
        running = asyncio.ensure_future(
            Runner.run(agent, "go", run_id="r", run_config=config, session="chat")
        )
        await asyncio.to_thread(began.wait, WITHIN)
        running.cancel()
        for _ in range(20):
            await asyncio.sleep(0)
        assert not running.done()
        allowed.set()
        await asyncio.wait([running], timeout=WITHIN)
        assert running.cancelled()
        assert [event.type for event in await store.log("r").read()][-1] == "run_finished_event"


async def test_a_failed_write_of_a_cancelled_run_is_logged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A cancelled run can no longer raise another error."""
    fails, asked = FailingWrites(1_000), asyncio.Event()

    async def never(request: ModelRequest) -> list[Any]:
        asked.set()
        return await asyncio.Event().wait()  # pyright: ignore[reportReturnType]

    async with watched_store(tmp_path / "runs.db", before=fails) as store:
        agent, config = Agent("A", model=ScriptModel(never)), RunConfig(store=store)
        running = asyncio.ensure_future(Runner.run(agent, "go", run_id="r", run_config=config))
        async with asyncio.timeout(WITHIN):
            await asked.wait()
            fails.left = 0
            running.cancel()
            await asyncio.wait([running])
    assert running.cancelled()
    assert "The end of run 'r' (cancelled) was not stored: The disk is full." in caplog.text


@function_tool
def weigh(of: str) -> dict[str, int]:
    """Weigh something."""
    return {of: 3}


async def test_the_tool_value_is_the_output_of_a_run_that_stops_at_it() -> None:
    """The value itself, not the text for the model."""
    agent = Agent(
        "A",
        model=ScriptedModel([tool_call("weigh", of="tea")]),
        tools=[weigh],
        tool_use_behavior="stop_on_first_tool",
    )
    result = await asyncio.wait_for(Runner.run(agent, "go"), WITHIN)
    assert result.final_output == {"tea": 3}


async def test_a_tool_use_behavior_function_sees_values_and_refusals() -> None:
    """A refused call has the text for the model as its value, and is marked as failed."""
    seen: list[Any] = []

    def decide(context: Any, results: list[FunctionToolResult]) -> ToolsToFinalOutputResult:
        seen.extend((one.output, one.run_item.status, one.run_item.agent) for one in results)
        return ToolsToFinalOutputResult(is_final_output=True, final_output="done")

    calls = [tool_call("weigh", of="tea"), tool_call("wiegh", of="tea")]
    model = ScriptedModel([calls])
    agent = Agent("A", model=model, tools=[weigh], tool_use_behavior=decide)
    result = await asyncio.wait_for(Runner.run(agent, "go"), WITHIN)
    assert result.final_output == "done"
    assert seen[0] == ({"tea": 3}, "ok", "A")
    assert seen[1][0].startswith("There is no tool 'wiegh'. Did you mean 'weigh'?")
    assert seen[1][1:] == ("invalid_args", "A")
    made = [item for item in result.new_items if isinstance(item, ToolCallItem)]
    assert [item.agent for item in made] == ["A", "A"]


@pytest.mark.parametrize(("length", "times"), [(15, 2), (16, 1)])
async def test_a_repeated_call_id_gets_the_stored_answer(length: int, times: int) -> None:
    """A long id is not a restarting counter, so the call is the same one."""
    ran: list[str] = []

    @function_tool
    def send(text: str) -> str:
        ran.append(text)
        return f"sent {text}"

    call = tool_call("send", text="x", call_id="c" * length)
    agent = Agent("A", model=ScriptedModel([call, call, "over"]), tools=[send])
    result = await asyncio.wait_for(Runner.run(agent, "go"), WITHIN)
    answers = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert [(one.output, one.status) for one in answers] == [("sent x", "ok")] * 2
    assert len({one.call_id for one in answers}) == 2
    assert len(ran) == times


async def test_a_call_without_an_id_does_not_start_early() -> None:
    """It could not be found again in the answer, and would run twice."""
    ran: list[str] = []
    before: list[int] = []

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look() -> str:
        ran.append("x")
        return "seen"

    call = tool_call("look", call_id="")

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(call)
        for _ in range(10):
            await asyncio.sleep(0)
        before.append(len(ran))
        return [call]

    async def second(request: ModelRequest) -> list[Any]:
        return [MessageOutputItem(text="over")]

    agent = Agent("A", model=ScriptModel(first, second), tools=[look])
    config = RunConfig(start_calls_early=True)
    await asyncio.wait_for(Runner.run(agent, "go", run_config=config), WITHIN)
    assert (before, len(ran)) == ([0], 1)


async def test_a_model_reads_the_session_before_the_input() -> None:
    """The earlier conversation is input of the run, and not stored again."""
    session = MemoryRunStore().session("chat")
    await Runner.run(Agent("A", model=ScriptedModel(["yes?"])), "before", session=session)
    seen: list[Any] = []

    async def answer(request: ModelRequest) -> list[Any]:
        seen.extend(request.input)
        return [MessageOutputItem(text="over")]

    agent = Agent("A", model=ScriptModel(answer))
    result = await asyncio.wait_for(Runner.run(agent, "now", session=session), WITHIN)
    texts = [item.to_dict()["content"] for item in seen]
    assert [texts[0], texts[2]] == ["before", "now"]
    assert "yes?" in str(texts[1])
    assert [item.type for item in result.new_items] == ["message_output_item"]
    assert len(await session.events()) == 4


async def test_an_early_call_runs_once() -> None:
    """The answer that contains the call takes over the running one."""
    ran: list[Any] = []
    entered = asyncio.Event()
    may_end = asyncio.Event()

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look(context: ToolContext[Any]) -> str:
        ran.append(context.tool_call_id)
        entered.set()
        await may_end.wait()
        return "seen"

    call = tool_call("look", call_id="c1")

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(call)
        async with asyncio.timeout(WITHIN):
            await entered.wait()
        asyncio.get_running_loop().call_soon(may_end.set)
        return [call]

    async def second(request: ModelRequest) -> list[Any]:
        return [MessageOutputItem(text="over")]

    agent = Agent("A", model=ScriptModel(first, second), tools=[look])
    config = RunConfig(start_calls_early=True)
    await asyncio.wait_for(Runner.run(agent, "go", run_config=config), WITHIN)
    assert ran == ["c1"]


async def test_a_tool_sees_the_usage_of_the_run() -> None:
    """It can stop before the budget is spent."""
    used: list[Usage | None] = []

    @function_tool
    async def look(context: ToolContext[Any]) -> str:
        used.append(context.usage)
        return "seen"

    model = ScriptedModel([tool_call("look"), "over"])
    result = await asyncio.wait_for(Runner.run(Agent("A", model=model, tools=[look]), "go"), WITHIN)
    assert used[0] is result.usage


# --- call state


async def test_a_tool_sees_in_its_cleanup_that_the_run_was_cancelled() -> None:
    """All calls of the run are marked before the first of them is cancelled."""
    seen: list[bool] = []
    entered = asyncio.Event()

    @function_tool
    async def work(context: ToolContext[Any]) -> str:
        seen.append(context.cancelled)
        entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            seen.append(context.cancelled)
        return "done"

    agent = Agent("A", model=ScriptedModel([tool_call("work")]), tools=[work])
    run = asyncio.ensure_future(Runner.run(agent, "go"))
    await asyncio.wait_for(entered.wait(), WITHIN)
    run.cancel()
    await asyncio.wait({run}, timeout=WITHIN)
    assert run.cancelled()
    assert seen == [False, True]


@pytest.mark.parametrize(
    ("needed", "approved", "granted"),
    [(True, True, 1), (True, False, 0), (False, True, 0)],
)
async def test_only_an_approved_call_emits_tool_approval_granted(
    needed: bool, approved: bool, granted: int
) -> None:
    """Not a call without approval, nor a refused one."""

    @function_tool
    async def send() -> str:
        return "sent"

    tool = needs_approval(lambda context, arguments: needed)(send)
    agent = Agent("A", model=ScriptedModel([tool_call("send"), "over"]), tools=[tool])
    config = RunConfig(approve=lambda item: approved)
    run = Runner.run_streamed(agent, "go", run_config=config)
    events = [event async for event in run.stream_events()]
    names = [event.name for event in events if isinstance(event, RunItemStreamEvent)]
    assert names.count("tool_approval_granted") == granted
    [output] = [item for item in run.new_items if isinstance(item, ToolCallOutputItem)]
    assert output.status == ("ok" if approved or not needed else "denied")


@pytest.mark.parametrize("is_stored", [False, True])
async def test_a_cancelled_call_has_one_output_for_its_readers(
    tmp_path: Path, is_stored: bool
) -> None:
    """Also if the run can be resumed, and the call then runs again or is lost."""
    tool = BlockingTool()
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        config = RunConfig(store=store if is_stored else None)
        agent = Agent("A", model=ScriptedModel([tool_call("look")]), tools=[tool.tool])
        run = Runner.run_streamed(agent, "go", run_config=config)
        await asyncio.wait_for(tool.entered.wait(), WITHIN)
        run.cancel()
        statuses = [
            event.item["status"]
            async for event in run.stream_events()
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
        ]
    assert statuses == ["cancelled"]


async def test_annotations_of_a_server_do_not_allow_early_or_repeated_calls(
    tmp_path: Path,
) -> None:
    """Only trusted code can state that a second call does no harm."""
    small = Small(small_tool("hang", annotations={"readOnlyHint": True, "idempotentHint": True}))
    early: list[list[str]] = []

    async def first(request: ModelRequest) -> list[Any]:
        [name] = [tool.name for tool in request.tools]
        call = tool_call(name, call_id="c1")
        assert request.on_call is not None
        request.on_call(call)
        for _ in range(50):
            await asyncio.sleep(0)
        early.append(list(small.called))
        return [call]

    async def second(request: ModelRequest) -> list[Any]:
        return [MessageOutputItem(text="over")]

    async with (
        asyncio.timeout(3 * WITHIN),
        SQLiteRunStore(tmp_path / "runs.db") as store,
        MCPToolManager() as manager,
    ):
        await manager.add_server("box", server=small.server)
        agent = Agent("A", model=ScriptModel(first, second), tools=manager.get_tools())
        config = RunConfig(store=store, start_calls_early=True)
        run = asyncio.ensure_future(Runner.run(agent, "go", run_id="r", run_config=config))
        await small.began.wait()
        run.cancel()
        await asyncio.wait({run})
        result = await Runner.resume(agent, "r", run_config=config)
    [output] = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert (early, small.called, output.status) == ([[]], ["hang"], "lost")


async def test_a_hook_reads_the_arguments_before_the_tool_runs() -> None:
    """It can count or refuse calls by their arguments."""
    seen: list[Any] = []

    @function_tool
    def weigh(what: str) -> str:
        return what

    class Reads(RunHooks[Any]):
        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            seen.append((context.tool_name, context.arguments))

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            seen.append((context.tool_name, result.status))

    model = ScriptedModel([tool_call("weigh", what="tea"), "over"])
    agent = Agent("A", model=model, tools=[weigh])
    await asyncio.wait_for(Runner.run(agent, "go", hooks=Reads()), WITHIN)
    assert seen == [("weigh", {"what": "tea"}), ("weigh", "ok")]


async def test_an_early_call_that_ends_before_the_answer_emits_its_output() -> None:
    """After the call item, so that a UI shows both."""
    looked = asyncio.Event()

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def look() -> str:
        looked.set()
        return "seen"

    call = tool_call("look", call_id="c1")

    async def first(request: ModelRequest) -> list[Any]:
        assert request.on_call is not None
        request.on_call(call)
        await asyncio.wait_for(looked.wait(), WITHIN)
        for _ in range(50):
            await asyncio.sleep(0)
        return [call]

    async def second(request: ModelRequest) -> list[Any]:
        return [MessageOutputItem(text="over")]

    agent = Agent("A", model=ScriptModel(first, second), tools=[look])
    run = Runner.run_streamed(agent, "go", run_config=RunConfig(start_calls_early=True))
    async with asyncio.timeout(WITHIN):
        names = [
            event.name
            async for event in run.stream_events()
            if isinstance(event, RunItemStreamEvent) and event.name.startswith("tool_")
        ]
    assert names == ["tool_called", "tool_output"]
