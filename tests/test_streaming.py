"""Test streaming tools: live events, one result, and the laws of events for every kind of end."""

from __future__ import annotations

import asyncio
import gc
import threading
from collections.abc import AsyncIterator, Iterator
from time import perf_counter
from typing import Any

import pytest

from agents_tools import (
    Event,
    FunctionTool,
    ModelBehaviorError,
    NotifyStreamEvent,
    RunContextWrapper,
    ToolArtifactEvent,
    ToolCancelledError,
    ToolContext,
    ToolError,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamError,
    ToolStreamStartEvent,
    UserError,
    artifact,
    function_tool,
    listen,
    notify,
    progress,
    streaming_tool,
    track,
)
from agents_tools.events import StreamingToolEndEvent, StreamingToolStartEvent, bind
from agents_tools.policies import Call, Policy, timeout
from agents_tools.testing import check_events


@streaming_tool
async def data_pipeline(source_url: str):  # type: ignore[no-untyped-def]
    """Parse a remote source."""
    yield NotifyStreamEvent(data="[1/3] Establishing connection...")
    await asyncio.sleep(0)
    yield NotifyStreamEvent(data="[2/3] Connected, starting download...", tag="success")
    await asyncio.sleep(0)
    yield "Data pipeline processing successful, parsed 1,234 records."


async def watch(
    tool: FunctionTool[..., Any], *, brackets: bool = True, **arguments: Any
) -> tuple[list[Event], Any]:
    """Call a tool, check the laws of events, and return its events and its result."""
    async with tool.stream(**arguments) as stream:
        events = [event async for event in stream]
    check_events(events, brackets=brackets)
    return events, stream.result


def texts_and_types(events: list[Event]) -> list[str]:
    """Return the text of each notification and the type of each other event."""
    return [event.data if isinstance(event, NotifyStreamEvent) else event.type for event in events]


@pytest.mark.requirement("A35", "A41", "A42", "A43", "A44", "A50")
async def test_the_documented_pipeline_runs() -> None:
    """It has three stages between start and end, and the last yielded value is the result."""
    events, result = await watch(data_pipeline, source_url="https://x.org")
    assert texts_and_types(events) == [
        "tool_stream_start_event",
        "[1/3] Establishing connection...",
        "[2/3] Connected, starting download...",
        "tool_stream_end_event",
    ]
    assert result == "Data pipeline processing successful, parsed 1,234 records."
    start, _, second, end = events
    assert isinstance(start, ToolStreamStartEvent)
    assert start.input_args == {"source_url": "https://x.org"}
    assert isinstance(second, NotifyStreamEvent)
    assert second.tag == "success"
    assert isinstance(end, ToolStreamEndEvent)
    assert end.status == "ok"
    assert end.duration >= 0
    assert (StreamingToolStartEvent, StreamingToolEndEvent) == (type(start), type(end))
    assert {event.tool_name for event in events} == {"data_pipeline"}
    assert len({event.tool_call_id for event in events}) == 1
    assert {event.path for event in events} == {(start.tool_call_id,)}
    assert [event.seq for event in events] == sorted(event.seq for event in events)
    assert all(event.timestamp > 0 for event in events)


@pytest.mark.requirement("A51")
async def test_the_documented_typewriter_runs() -> None:
    """The deltas add up to the result."""

    async def summary(documents: list[str]) -> AsyncIterator[str]:
        for piece in ("All ", "about ", documents[0]):
            yield piece

    @streaming_tool
    async def research_and_summarize(topic: str):  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent(data=f"Searching for '{topic}'...")
        full = ""
        async for delta in summary([topic]):
            full += delta
            yield NotifyStreamEvent(data=delta, is_delta=True)
        yield full

    events, result = await watch(research_and_summarize, topic="bees")
    deltas = [event for event in events if isinstance(event, NotifyStreamEvent) and event.is_delta]
    assert "".join(event.data for event in deltas) == result == "All about bees"


@pytest.mark.requirement("A46", "A47", "A56")
async def test_a_streaming_tool_can_be_called_like_any_tool() -> None:
    """Without a subscriber the caller just gets the result."""
    assert isinstance(data_pipeline, FunctionTool)
    text = await data_pipeline.on_invoke_tool(RunContextWrapper(None), '{"source_url": "x"}')
    assert text.startswith("Data pipeline processing successful")
    assert data_pipeline.invoke_sync(source_url="x") == text

    @function_tool
    async def plain(source_url: str) -> str: ...  # type: ignore[empty-body]

    expected = plain.params_json_schema | {"title": "data_pipeline_args"}
    assert data_pipeline.params_json_schema == expected


@pytest.mark.requirement("A35", "A45")
async def test_the_decorator_works_with_and_without_arguments() -> None:
    """Covers every option."""

    @streaming_tool(
        name_override="other",
        description_override="Other.",
        docstring_style="google",
        use_docstring_info=False,
        failure_error_function=None,
        strict_mode=False,
        is_enabled=False,
        enable_bracketing=False,
    )
    async def tool(a: int):  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        yield "done"

    events, result = await watch(tool, brackets=False, a=1)
    assert (tool.name, tool.description, tool.is_enabled) == ("other", "Other.", False)
    assert tool.strict_json_schema is False
    assert (texts_and_types(events), result) == (["x"], "done")


@pytest.mark.requirement("A36", "A37")
@pytest.mark.parametrize("sync", [False, True])
async def test_the_first_yielded_value_that_is_not_an_event_ends_the_tool(sync: bool) -> None:
    """Code after it does not run, and `finally` runs before the result is delivered."""
    steps: list[str] = []

    async def asynchronous():  # type: ignore[no-untyped-def]
        try:
            yield NotifyStreamEvent("x")
            yield None
            yield {"rows": 3}
            steps.append("after")
            yield NotifyStreamEvent("never")
        finally:
            steps.append("finally")

    def synchronous():  # type: ignore[no-untyped-def]
        try:
            yield NotifyStreamEvent("x")
            yield None
            yield {"rows": 3}
            steps.append("after")
            yield NotifyStreamEvent("never")
        finally:
            steps.append("finally")

    tool = streaming_tool(name_override="tool")(synchronous if sync else asynchronous)
    assert await tool.invoke() == {"rows": 3}
    assert steps == ["finally"]
    assert await tool.on_invoke_tool(None, "{}") == '{"rows":3}'
    events, _ = await watch(tool)
    assert texts_and_types(events)[1:-1] == ["x"]


async def test_a_synchronous_generator_runs_in_one_thread_and_streams_live() -> None:
    """Its first event arrives before it ends, and it is closed in its own thread."""
    threads: set[int] = set()
    go_on = threading.Event()

    @streaming_tool
    def tool() -> Iterator[Any]:
        threads.add(threading.get_ident())
        try:
            yield NotifyStreamEvent("first")
            assert go_on.wait(5)
            threads.add(threading.get_ident())
            yield "done"
        finally:
            threads.add(threading.get_ident())

    async with tool.stream() as stream:
        async for event in stream:
            if isinstance(event, NotifyStreamEvent):
                go_on.set()
    assert stream.result == "done"
    assert len(threads) == 1
    assert threading.get_ident() not in threads


async def test_the_first_event_arrives_while_a_busy_producer_still_runs() -> None:
    """A tool that never awaits must still show progress."""
    ended = False

    @streaming_tool
    async def tool():  # type: ignore[no-untyped-def]
        nonlocal ended
        for i in range(2_000):
            yield NotifyStreamEvent(str(i))
        ended = True
        yield "done"

    early = None
    async with tool.stream() as stream:
        async for event in stream:
            if early is None and isinstance(event, NotifyStreamEvent):
                early = not ended
    assert early is True


async def test_other_tasks_run_while_a_policy_drops_all_events_of_a_busy_producer() -> None:
    """Otherwise the reader never waits for an event, and the tool blocks the event loop."""
    others: list[object] = []

    class Silent(Policy):
        def filter_event(self, call: Call, event: Event) -> tuple[Event, ...]:
            return ()

    @Silent()
    @streaming_tool
    async def tool() -> AsyncIterator[NotifyStreamEvent | bool]:
        end = perf_counter() + 0.1
        while not others and perf_counter() < end:
            yield NotifyStreamEvent("x")
        yield bool(others)

    async with tool.stream() as stream:
        asyncio.get_running_loop().call_later(0.001, others.append, "ran")
        assert [event async for event in stream] == []
    assert stream.result is True


@pytest.mark.parametrize("sync", [False, True])
async def test_a_stream_without_a_result_raises_an_error_that_names_the_tool(sync: bool) -> None:
    """A missing result would look like an empty one."""

    async def asynchronous():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")

    def synchronous():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")

    tool = streaming_tool(name_override="forgetful")(synchronous if sync else asynchronous)
    with pytest.raises(ToolStreamError, match=r"'forgetful'.*result"):
        await tool.invoke()
    assert "forgetful" in await tool.on_invoke_tool(None, "{}")


@pytest.mark.requirement("A44")
async def test_a_tool_that_raises_after_events_keeps_them() -> None:
    """The end event has the status error, and the failure function creates the output."""

    @streaming_tool
    async def tool():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        raise ToolError("no luck")

    async with tool.stream() as stream:
        events = [event async for event in stream]
    check_events(events)
    assert texts_and_types(events)[1] == "x"
    assert isinstance(events[-1], ToolStreamEndEvent)
    assert events[-1].status == "tool_error"
    assert stream.outcome.output == "no luck"
    with pytest.raises(ToolError, match="no luck"):
        _ = stream.result


async def test_a_call_with_invalid_arguments_has_only_a_start_and_an_end_event() -> None:
    """Each call of each tool has exactly one start and one end."""
    async with data_pipeline.stream('{"source": 1}') as stream:
        events = [event async for event in stream]
    check_events(events)
    assert [event.type for event in events] == [
        "tool_stream_start_event",
        "tool_stream_end_event",
    ]
    assert stream.outcome.status == "invalid_args"


@pytest.mark.requirement("A43")
async def test_a_start_event_has_the_arguments_without_the_context() -> None:
    """The context belongs to the application, and subscribers must not see it."""

    @streaming_tool
    async def tool(ctx: ToolContext[Any], a: int, b: str = "x"):  # type: ignore[no-untyped-def]
        yield a

    events, _ = await watch(tool, a=1)
    start = events[0]
    assert isinstance(start, ToolStreamStartEvent)
    assert start.type == "tool_stream_start_event"
    assert start.input_args == {"a": 1}


@pytest.mark.requirement("A48")
@pytest.mark.parametrize("text", ["not json", '{"source": 1}', '{"source_url": 1}'])
async def test_invalid_arguments_are_reported_or_raised(text: str) -> None:
    """The model gets a helpful text, or the application one class of error."""
    output = await data_pipeline.on_invoke_tool(None, text)
    assert output.startswith("Invalid arguments for tool 'data_pipeline'")
    raising = data_pipeline.with_(failure_error_function=None)
    with pytest.raises(ModelBehaviorError):
        await raising.on_invoke_tool(None, text)


async def test_ordinary_tools_can_publish_events() -> None:
    """They use their context, at any depth of their code and in threads."""

    def deep_inside() -> None:
        notify("deep", level="warning")
        progress(1, 3, "reading")
        artifact("table.csv", "a,b", mime_type="text/csv")

    @function_tool
    def in_thread(ctx: ToolContext[Any]) -> str:
        ctx.notify("context")
        deep_inside()
        return "done"

    @function_tool
    async def on_loop(ctx: ToolContext[Any]) -> str:
        ctx.notify("context")
        deep_inside()
        return "done"

    for tool in (in_thread, on_loop):
        events, result = await watch(tool)
        assert result == "done"
        first, second, third, fourth = events[1:-1]
        assert isinstance(first, NotifyStreamEvent)
        assert isinstance(second, NotifyStreamEvent)
        assert (first.data, second.level) == ("context", "warning")
        assert isinstance(third, ToolProgressEvent)
        assert (third.current, third.total, third.message) == (1, 3, "reading")
        assert isinstance(fourth, ToolArtifactEvent)
        assert (fourth.name, fourth.data, fourth.mime_type) == ("table.csv", "a,b", "text/csv")


async def test_track_reports_each_item() -> None:
    """One call around an iterable adds a progress bar."""

    @function_tool
    def tool() -> int:
        return sum(track([1, 2, 3], message="adding"))

    events, result = await watch(tool)
    published = [event for event in events if isinstance(event, ToolProgressEvent)]
    assert result == 6
    assert [(event.current, event.total) for event in published] == [(1, 3), (2, 3), (3, 3)]


def test_notify_outside_a_tool_does_nothing() -> None:
    """The same function can be used inside and outside of a tool."""
    notify("nobody listens")
    progress(1)
    artifact("x", "y")
    assert list(track(iter("ab"))) == ["a", "b"]


async def test_nested_calls_produce_one_flat_ordered_list_of_events() -> None:
    """Each event has the path of its call, and children end before their parents."""

    @streaming_tool
    async def inner(n: int):  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent(f"inner {n}")
        yield n

    @function_tool
    async def middle(n: int) -> int:
        notify(f"middle {n}")
        return sum(await asyncio.gather(*(inner.invoke(n=i) for i in range(n))))

    @streaming_tool
    async def outer():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("outer")
        yield await middle.invoke(n=3)

    events, result = await watch(outer)
    assert result == 3
    depths = {event.tool_name: len(event.path) for event in events}
    assert depths == {"outer": 1, "middle": 2, "inner": 3}
    assert sum(event.type == "tool_stream_start_event" for event in events) == 5
    for event in events:
        assert event.path[-1] == event.tool_call_id


@pytest.mark.requirement("A41")
async def test_events_of_an_inner_stream_can_be_forwarded_with_their_ids() -> None:
    """No subscriber receives them twice."""

    @streaming_tool
    async def inner():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("from inside")
        yield "inner result"

    @streaming_tool
    async def outer():  # type: ignore[no-untyped-def]
        async with inner.stream() as stream:
            async for event in stream:
                yield event
        yield stream.result

    async with listen() as listener:
        events, result = await watch(outer)
    assert result == "inner result"
    for found in (events, list(listener)):
        check_events(found)
        (inside,) = [event for event in found if isinstance(event, NotifyStreamEvent)]
        assert inside.tool_name == "inner"
        assert len(inside.path) == 2


async def test_an_inner_stream_that_is_not_forwarded_stays_private() -> None:
    """The tool that reads it decides."""

    @streaming_tool
    async def outer():  # type: ignore[no-untyped-def]
        async with data_pipeline.stream(source_url="x") as stream:
            async for _ in stream:
                pass
        yield "quiet"

    events, _ = await watch(outer)
    assert {event.tool_name for event in events} == {"outer"}


async def test_leaving_a_stream_early_cancels_the_call_and_runs_its_cleanup() -> None:
    """A consumer that stops reading cancels the work."""
    steps: list[str] = []

    @streaming_tool
    async def tool():  # type: ignore[no-untyped-def]
        try:
            yield NotifyStreamEvent("x")
            await asyncio.Event().wait()
            yield "never"
        finally:
            steps.append("finally")

    async with tool.stream() as stream:
        async for event in stream:
            if isinstance(event, NotifyStreamEvent):
                break
        with pytest.raises(UserError, match="still running"):
            _ = stream.result
    assert steps == ["finally"]
    with pytest.raises(ToolCancelledError, match="left early"):
        _ = stream.result


async def test_leaving_early_stops_a_synchronous_generator_at_its_next_yield() -> None:
    """A thread cannot be stopped from outside, but it checks for cancellation at each yield."""
    closed = threading.Event()
    turns: list[int] = []

    @streaming_tool
    def tool() -> Iterator[Any]:
        try:
            for i in range(1_000_000):
                turns.append(i)
                yield NotifyStreamEvent(str(i))
            yield "never"
        finally:
            closed.set()

    async with tool.stream() as stream:
        async for event in stream:
            if isinstance(event, NotifyStreamEvent):
                break
    assert await asyncio.to_thread(closed.wait, 5)
    assert len(turns) < 1_000_000


async def test_a_cancelled_call_has_an_end_event() -> None:
    """A user interface must not show it as running forever."""
    started = asyncio.Event()

    @streaming_tool
    async def tool():  # type: ignore[no-untyped-def]
        started.set()
        yield NotifyStreamEvent("x")
        await asyncio.Event().wait()
        yield "never"

    async with listen() as listener:
        task = asyncio.create_task(tool.invoke())
        await started.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    events = list(listener)
    check_events(events)
    assert isinstance(events[-1], ToolStreamEndEvent)
    assert events[-1].status == "cancelled"


async def test_a_timed_out_stream_keeps_its_events_and_ends_as_timeout() -> None:
    """Events that were published stay valid."""

    @timeout(0.05)
    @streaming_tool
    async def tool():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        await asyncio.Event().wait()
        yield "never"

    async with tool.stream() as stream:
        events = [event async for event in stream]
    check_events(events)
    assert texts_and_types(events)[1] == "x"
    assert isinstance(events[-1], ToolStreamEndEvent)
    assert events[-1].status == "timeout"
    assert stream.outcome.status == "timeout"


async def test_a_call_that_outlives_its_parent_is_ended_before_it() -> None:
    """The list of events stays well formed, even if a tool leaves tasks running."""
    release = asyncio.Event()
    left: list[asyncio.Task[Any]] = []

    @function_tool
    async def child() -> str:
        notify("child starts")
        await release.wait()
        notify("too late")
        return "late"

    @function_tool
    async def parent() -> str:
        left.append(asyncio.create_task(child.invoke()))
        await asyncio.sleep(0)
        return "done"

    events, _ = await watch(parent)
    assert [event.type for event in events[-2:]] == ["tool_stream_end_event"] * 2
    assert isinstance(events[-2], ToolStreamEndEvent)
    assert (events[-2].tool_name, events[-2].status) == ("child", "lost")
    release.set()
    assert await left[0] == "late"


@pytest.mark.requirement("A49")
async def test_a_thousand_concurrent_streams_do_not_mix() -> None:
    """Each event belongs to its own call, in order."""

    @streaming_tool
    async def tool(n: int):  # type: ignore[no-untyped-def]
        for i in range(5):
            yield NotifyStreamEvent(f"{n}:{i}")
            await asyncio.sleep(0)
        yield n

    async def one(n: int) -> bool:
        events, result = await watch(tool, n=n)
        return result == n and texts_and_types(events)[1:-1] == [f"{n}:{i}" for i in range(5)]

    assert all(await asyncio.gather(*(one(n) for n in range(1_000))))


async def test_a_consumer_that_stops_reading_does_not_block_the_tool() -> None:
    """Display events are dropped and counted; start and end events are never dropped."""

    @function_tool
    async def tool() -> str:
        for i in range(10_000):
            notify(str(i))
        return "done"

    async with tool.stream() as stream:
        await asyncio.wait({stream._task})  # without reading
        events = [event async for event in stream]
    assert stream.result == "done"
    assert events[0].type == "tool_stream_start_event"
    assert events[-1].type == "tool_stream_end_event"
    gaps = [event for event in events if event.type == "gap_event"]
    dropped = sum(event.dropped for event in gaps)  # type: ignore[attr-defined]
    shown = sum(isinstance(event, NotifyStreamEvent) for event in events)
    assert dropped + shown == 10_000
    assert dropped > 0


async def test_listen_receives_events_of_any_tool() -> None:
    """This includes tasks and threads that start inside the block."""

    @function_tool
    def tool(n: int) -> int:
        notify(f"say {n}")
        return n

    def foreign() -> None:
        tool.invoke_sync(n=3)

    async with listen() as events:
        await tool.on_invoke_tool(None, '{"n": 1}')
        await asyncio.create_task(tool.invoke(n=2))
        thread = threading.Thread(target=bind(foreign))
        thread.start()
        await asyncio.to_thread(thread.join, 5)
    published = [event.data for event in events if isinstance(event, NotifyStreamEvent)]
    assert published == ["say 1", "say 2", "say 3"]
    await tool.invoke(n=4)
    assert len([event for event in events if isinstance(event, NotifyStreamEvent)]) == 3


@pytest.mark.parametrize(
    "func", [lambda: "x", lambda x: x, print], ids=["lambda", "function", "builtin"]
)
def test_a_function_that_is_not_a_generator_is_refused(func: Any) -> None:
    """The decorator raises, and the error names the remedy."""
    with pytest.raises(UserError, match="function_tool"):
        streaming_tool(name_override="tool")(func)


async def test_a_stream_must_be_entered_once_before_it_is_read() -> None:
    """The error shows the correct code."""
    stream = data_pipeline.stream(source_url="x")
    with pytest.raises(UserError, match="async with"):
        async for _ in stream:
            pass
    async with stream:
        pass
    with pytest.raises(UserError, match="already used"):
        async with stream:
            pass


async def test_streams_leave_no_tasks_or_generators_behind() -> None:
    """This holds for every kind of end."""

    @streaming_tool
    async def tool(n: int):  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        if n == 1:
            raise ValueError("x")
        if n == 2:
            await asyncio.Event().wait()
        yield "done"

    for n in (0, 1, 2, 0, 1, 2):
        async with tool.stream(n=n) as stream:
            async for event in stream:
                if n == 2 and isinstance(event, NotifyStreamEvent):
                    break
    gc.collect()
    assert asyncio.all_tasks() == {asyncio.current_task()}


@pytest.mark.parametrize("text", ['{"x": "\ud800"}', '{"x": ' + "[" * 90 + "]" * 90 + "}"])
async def test_invalid_arguments_are_refused_with_a_listener_too(text: str) -> None:
    """The start event contains the arguments; arguments that are not JSON must not end the run."""

    @function_tool
    async def take(x: Any, y: int | None = None) -> str:
        return "taken"

    with listen() as events:
        outcome = await take.call(None, text)

    assert outcome.status == "invalid_args"
    assert [event.to_dict()["type"] for event in events] == [
        "tool_stream_start_event",
        "tool_stream_end_event",
    ]
