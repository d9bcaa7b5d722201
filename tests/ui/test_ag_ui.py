"""AG-UI: the encoder that turns events into frames, for clients of every version."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agents_tools import (
    Agent,
    Event,
    ModelRequest,
    ModelResponse,
    RawResponseStreamEvent,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    ToolAnnotations,
    ToolArtifactEvent,
    ToolContext,
    ToolStreamStartEvent,
    UserError,
    event_from_dict,
    function_tool,
)
from agents_tools.agents import call_delta, call_started, text_delta
from agents_tools.errors import ModelError
from agents_tools.events import GapEvent, ToolAttemptEvent, ToolStreamEndEvent
from agents_tools.events.coalesce import drop_display_events
from agents_tools.testing import ScriptedModel, check_ag_ui, tool_call
from agents_tools.text.characters import safe_text
from agents_tools.ui import ag_ui
from agents_tools.ui.ag_ui import AgUiEncoder, encode
from tests.ui.scenarios import (
    DELTAS,
    SCENARIOS,
    add,
    decided_events_of,
    events_of,
)

Frame = dict[str, Any]
VERSIONS = ("1.0", "0.x")
SMALL = [name for name in SCENARIOS if name not in {"deltas", "slow_reader"}]
HELLO: Frame = {"id": "u1", "role": "user", "content": "Go."}


def encoder(version: Any = "1.0", **options: Any) -> AgUiEncoder:
    given: dict[str, Any] = {"thread_id": "t", "run_id": "r", "messages": [HELLO], **options}
    return AgUiEncoder(version=version, **given)


def frames_of(events: Iterable[Event], version: Any = "1.0", **options: Any) -> list[Frame]:
    one = encoder(version, **options)
    return [frame for event in events for frame in one.encode(event)] + one.close()


async def without_durations(name: str) -> list[Event]:
    """Yield the events of a run with a fixed clock, so that nothing depends on time."""
    return [event.replace(timestamp=1e9) for event in await events_of(SCENARIOS[name])]


def summary(frames: Iterable[Mapping[str, Any]]) -> list[str]:
    """Return a line for each frame: its type and its distinguishing field."""
    lines: list[str] = []
    for frame in frames:
        parts = [frame["type"]]
        for name in ("messageId", "toolCallId", "toolCallName", "delta", "name", "content"):
            value = frame.get(name)
            if isinstance(value, Mapping):
                value = {key: value[key] for key in ("status", "progress", "name") if key in value}
            if value is not None:
                parts.append(str(value))
        if "subagentRunId" in frame:
            parts.append(f"<{frame['subagentRunId']}>")
        lines.append(" ".join(parts))
    return lines


def assistant_texts(messages: Sequence[Frame]) -> tuple[str, ...]:
    return tuple(
        one["content"]
        for one in messages
        if one["role"] == "assistant" and one.get("content") and "subagentRunId" not in one
    )


def calls(messages: Sequence[Frame]) -> tuple[str, ...]:
    return tuple(
        call["id"]
        for one in messages
        if "subagentRunId" not in one
        for call in one.get("toolCalls", ())
    )


def without_activity_order(messages: Sequence[Frame]) -> list[Frame]:
    """Return a conversation without the order of its activities, which depends on their arrival."""
    shown = sorted(
        (one for one in messages if one["role"] == "activity"), key=lambda one: one["id"]
    )
    return [one for one in messages if one["role"] != "activity"] + shown


def conversation_of(frames: Iterable[Frame], before: Sequence[Frame] = (HELLO,)) -> list[Frame]:
    """Return the conversation of a client that has read the frames, with whole snapshots."""
    from agents_tools.ui.ag_ui.messages import MessageHistory

    book = MessageHistory(before)
    for frame in frames:
        if frame["type"] == "MESSAGES_SNAPSHOT":
            book = MessageHistory(frame["messages"])
        book.apply(frame)
    return book.list()


# --- all runs, all versions


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_every_run_becomes_a_valid_stream(name: str, version: Any) -> None:
    """A client can read any run to its end, with all of its texts."""
    scenario = SCENARIOS[name]
    events = await events_of(scenario)
    one = encoder(version)
    frames = [frame for event in events for frame in one.encode(event)]
    assert not one.held
    assert one.close() == []
    check_ag_ui(frames, version)
    check_ag_ui(encode(events, version=version), version)
    assert assistant_texts(one.messages) == tuple(map(safe_text, scenario.text))
    assert calls(one.messages) == scenario.calls
    assert frames[-1]["type"] == ("RUN_ERROR" if scenario.ends == "error" else "RUN_FINISHED")
    assert without_activity_order(conversation_of(frames)) == without_activity_order(one.messages)


@pytest.mark.requirement("F23")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SMALL)
async def test_a_late_client_ends_with_the_same_conversation(name: str, version: Any) -> None:
    """A page that is opened during a run shows earlier and later events."""
    events = await events_of(SCENARIOS[name])
    whole = conversation_of(frames_of(events, version))
    for cut in range(1, len(events)):
        one = encoder(version)
        for event in events[:cut]:
            one.encode(event)
        frames = one.prelude() + [frame for event in events[cut:] for frame in one.encode(event)]
        check_ag_ui(frames, version)
        assert without_activity_order(conversation_of(frames, before=())) == without_activity_order(
            whole
        )
        half_fed = conversation_of([*frames_of(events[: cut // 2], version), *frames])
        assert without_activity_order(half_fed) == without_activity_order(whole)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SMALL)
async def test_a_stream_that_ends_early_leaves_nothing_open(name: str, version: Any) -> None:
    """A page must not wait after a server stops or an event is missing."""
    events = await events_of(SCENARIOS[name])
    for cut in range(len(events)):
        for status in ("cancelled", "error", "ok"):
            one = encoder(version)
            frames = [frame for event in events[:cut] for frame in one.encode(event)]
            check_ag_ui(frames + one.close(status), version)
            assert one.close() == []


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SMALL)
async def test_serialized_events_give_the_same_frames(name: str, version: Any) -> None:
    """Frames depend on the events alone, whether they come from a store or a run."""
    events = await without_durations(name)
    travelled = [event_from_dict(json.loads(json.dumps(event.to_dict()))) for event in events]
    assert frames_of(travelled, version) == frames_of(events, version)


@pytest.mark.parametrize("name", ["tool", "nested", "parallel", "retry", "reasoning", "cancel"])
async def test_any_subset_of_events_becomes_a_valid_stream(name: str) -> None:
    """A slow consumer loses details, never the conversation or the stream."""
    scenario = SCENARIOS[name]
    events = await events_of(scenario)
    loose = [at for at, event in enumerate(events) if not event.durable]

    @given(st.sets(st.sampled_from(loose)), st.sampled_from(VERSIONS))
    def lose_display(lost: set[int], version: Any) -> None:
        kept: list[Event] = []
        for at, event in enumerate(events):
            is_raw = isinstance(event, RawResponseStreamEvent)
            if at in lost and (event.droppable or is_raw):
                kept.append(GapEvent(dropped=1))
            else:
                kept.append(event)
        frames = frames_of(kept, version)
        check_ag_ui(frames, version)
        assert assistant_texts(conversation_of(frames)) == tuple(map(safe_text, scenario.text))

    @given(st.sets(st.integers(0, len(events) - 1)), st.sampled_from(VERSIONS))
    def lose_anything(lost: set[int], version: Any) -> None:
        kept = [event for at, event in enumerate(events) if at not in lost]
        called = [
            "/".join((*event.path, str(event.item["call_id"])))
            for event in events
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_called"
        ]
        check_ag_ui(frames_of(kept, version), version, earlier_calls=called)

    lose_display()
    lose_anything()


async def test_frames_have_whole_times_and_no_nulls() -> None:
    """One null in an optional field makes a client of 1.0 fail the whole run."""
    events = await events_of(SCENARIOS["nested"])
    frames = frames_of(events)
    assert {type(frame["timestamp"]) for frame in frames} == {int}
    assert abs(frames[-1]["timestamp"] - events[-1].timestamp * 1000) < 2
    assert all(value is not None for frame in frames for value in frame.values())
    texts = list(encode(events))
    assert all(text.startswith("data: {") and text.endswith("}\n\n") for text in texts)
    assert not any("\r" in text or text.count("\n") != 2 for text in texts)


# --- single features


async def test_a_call_with_progress() -> None:
    """All frames, as a client of 1.0 gets them."""
    frames = frames_of(await without_durations("tool"))
    assert summary(frames) == snapshot(
        [
            "RUN_STARTED",
            "TEXT_MESSAGE_START r-1",
            "TEXT_MESSAGE_CONTENT r-1 I look. ",
            "TEXT_MESSAGE_END r-1",
            "TOOL_CALL_START call_1 crawl",
            'TOOL_CALL_ARGS call_1 {"url": "a"}',
            "TOOL_CALL_END call_1",
            "CUSTOM agents_tools.notify",
            "ACTIVITY_SNAPSHOT act-call_1 {'status': 'running', 'progress': {'current': 1, 'total': 3, 'message': 'page 1'}}",
            "CUSTOM agents_tools.notify",
            "CUSTOM agents_tools.notify",
            "CUSTOM agents_tools.notify",
            "ACTIVITY_SNAPSHOT act-call_1-1 {'name': 'page.html'}",
            "ACTIVITY_SNAPSHOT act-call_1 {'status': 'ok', 'progress': {'current': 3, 'total': 3, 'message': 'page 3'}}",
            "TOOL_CALL_RESULT r-result-call_1 call_1 Read a.",
            "TEXT_MESSAGE_START r-2",
            "TEXT_MESSAGE_CONTENT r-2 Looked.",
            "TEXT_MESSAGE_END r-2",
            "RUN_FINISHED",
        ]
    )


async def test_an_agent_inside_an_agent() -> None:
    """A client of 1.0 sees the speaker of each message; older ones get what they can show."""
    events = await without_durations("nested_approve")
    assert summary(frames_of(events)) == snapshot(
        [
            "RUN_STARTED",
            "TOOL_CALL_START call_1 ask_leaf",
            'TOOL_CALL_ARGS call_1 {"input": "d',
            'TOOL_CALL_ARGS call_1 eep"}',
            "TOOL_CALL_END call_1",
            "SUBAGENT_STARTED leaf <call_1>",
            "TOOL_CALL_START call_1/call_1 drop <call_1>",
            'TOOL_CALL_ARGS call_1/call_1 {"table": "t <call_1>',
            'TOOL_CALL_ARGS call_1/call_1 "} <call_1>',
            "TOOL_CALL_END call_1/call_1 <call_1>",
            "SUBAGENT_FINISHED <call_1>",
            "RUN_FINISHED",
        ]
    )
    assert summary(frames_of(events, "0.x")) == snapshot(
        [
            "RUN_STARTED",
            "TOOL_CALL_START call_1 ask_leaf",
            'TOOL_CALL_ARGS call_1 {"input": "d',
            'TOOL_CALL_ARGS call_1 eep"}',
            "TOOL_CALL_END call_1",
            "ACTIVITY_SNAPSHOT act-call_1 {'status': 'running'}",
            "ACTIVITY_SNAPSHOT act-call_1/call_1 {'status': 'running'}",
            "ACTIVITY_SNAPSHOT act-call_1 {'status': 'waiting'}",
            "ACTIVITY_SNAPSHOT act-call_1/call_1 {'status': 'waiting'}",
            "CUSTOM agents_tools.approval",
            "RUN_FINISHED",
        ]
    )


async def test_a_result_carries_the_outcome_of_the_call() -> None:
    """The protocol has no field for errors and durations, so they are in the metadata."""
    events = await events_of(SCENARIOS["tool_error"])
    frames = frames_of(events)
    results = [frame for frame in frames if frame["type"] == "TOOL_CALL_RESULT"]
    told = {frame["toolCallId"]: frame["metadata"]["agents_tools"] for frame in results}
    assert [(key, told[key]["status"], told[key]["isError"]) for key in sorted(told)] == [
        ("call_1", "tool_error", True),
        ("call_2", "invalid_args", True),
    ]
    [ended] = [
        event.duration
        for event in events
        if isinstance(event, ToolStreamEndEvent) and event.path == ("call_1",)
    ]
    assert told["call_1"]["duration"] == round(ended, 6)  # in seconds, as everywhere
    assert all(one["seq"] > 0 for one in told.values())
    assert told["call_1"]["path"] == ["call_1"]


async def test_a_result_of_several_kinds() -> None:
    """Clients before 1.0 accept only text."""
    events = await events_of(SCENARIOS["multimodal"])
    [new] = [one for one in frames_of(events) if one["type"] == "TOOL_CALL_RESULT"]
    [old] = [one for one in frames_of(events, "0.x") if one["type"] == "TOOL_CALL_RESULT"]
    assert new["content"][0] == {"type": "text", "text": "A pixel."}
    assert new["content"][1]["type"] == "image"
    assert new["content"][1]["source"]["mimeType"] == "image/png"
    assert old["content"] == "A pixel.\n[image, image/png, not shown here]"
    [shown] = [one for one in frames_of(events) if one.get("activityType") == "AGENTS_ARTIFACT"]
    assert shown["content"]["name"] == "pixel.png"
    assert shown["content"]["base64"] == new["content"][1]["source"]["value"]


async def test_a_partial_answer_is_retracted() -> None:
    """When the model is asked again after a break, its partial text must disappear."""
    events = await events_of(SCENARIOS["retry"])
    frames = frames_of(events)
    [taken_back] = [one for one in frames if one["type"] == "MESSAGES_SNAPSHOT"]
    assert taken_back["messages"] == [HELLO]
    assert assistant_texts(conversation_of(frames)) == ("At last a whole answer.",)
    unknown = frames_of(events, messages=None)  # a snapshot would remove more than that
    check_ag_ui(unknown)
    assert not [one for one in unknown if one["type"] == "MESSAGES_SNAPSHOT"]


async def test_after_a_gap_the_whole_text_is_sent() -> None:
    """The item replaces the deltas that a slow consumer lost."""
    events, _ = drop_display_events(await events_of(SCENARIOS["deltas"]), 1_000)
    assert any(isinstance(event, GapEvent) for event in events)
    frames = frames_of(events)
    assert assistant_texts(conversation_of(frames)) == SCENARIOS["deltas"].text
    told = sum(one["type"] == "TEXT_MESSAGE_CONTENT" for one in frames)
    [gap] = [one["value"]["dropped"] for one in frames if one.get("name") == "agents_tools.gap"]
    assert told < DELTAS
    assert told + gap >= DELTAS


async def test_a_slow_reader_gets_the_whole_text_in_larger_parts() -> None:
    """The deltas of a model are merged before any is dropped."""
    frames = frames_of(await events_of(SCENARIOS["slow_reader"]))
    texts = [one["delta"] for one in frames if one["type"] == "TEXT_MESSAGE_CONTENT"]
    assert ("".join(texts),) == SCENARIOS["slow_reader"].text
    assert len(texts) < DELTAS
    assert not [one for one in frames if one.get("name") == "agents_tools.gap"]


async def test_every_delta_comes_when_nothing_is_lost() -> None:
    """10,000 of them, one frame each."""
    frames = frames_of(await events_of(SCENARIOS["deltas"]))
    assert sum(one["type"] == "TEXT_MESSAGE_CONTENT" for one in frames) == DELTAS


async def test_errors_have_a_code() -> None:
    """A page can distinguish a run with too many turns from one whose model failed."""
    for name, code, words in (
        ("max_turns", "max_turns_exceeded", "did not finish within 2 turns"),
        ("model_fails", "model_error", "The model is gone."),
    ):
        events = await events_of(SCENARIOS[name])
        assert frames_of(events)[-1]["code"] == code
        assert words in frames_of(events)[-1]["message"]
        hidden = frames_of(events, errors="hide")[-1]
        assert (hidden["code"], hidden["message"]) == (code, "The run failed.")


async def test_a_call_that_waits_for_a_person() -> None:
    """The run ends with an interrupt that describes the question and the answer."""
    before, after = await decided_events_of(SCENARIOS["nested_approve"])
    one = encoder()
    frames = [frame for event in before for frame in one.encode(event)]
    assert frames[-1]["outcome"] == snapshot(
        {
            "type": "interrupt",
            "interrupts": [
                {
                    "id": "call_1/call_1",
                    "reason": "tool_call",
                    "toolCallId": "call_1/call_1",
                    "message": "Approve this call of drop?",
                    "responseSchema": {
                        "type": "object",
                        "properties": {
                            "approved": {
                                "type": "boolean",
                                "description": "Whether the call can run.",
                            },
                            "message": {
                                "type": "string",
                                "description": "The reason for a rejection. The model gets it.",
                            },
                            "arguments": {
                                "type": "object",
                                "description": "Arguments that replace those of the call.",
                            },
                        },
                        "required": ["approved"],
                    },
                    "metadata": {
                        "agents_tools": {
                            "tool": "drop",
                            "arguments": '{"table":"t"}',
                            "approval": True,
                            "path": ["call_1", "call_1"],
                            "seq": 13,
                        }
                    },
                    "subagentRunId": "call_1",
                }
            ],
        }
    )
    [suspended] = [frame for frame in frames if frame["type"] == "SUBAGENT_FINISHED"]
    assert suspended["outcome"] == {"type": "suspended", "interruptIds": ["call_1/call_1"]}
    [custom] = [
        frame for frame in frames_of(before, "0.x") if frame.get("name") == "agents_tools.approval"
    ]
    assert custom["value"]["interrupts"][0]["id"] == "call_1/call_1"
    second = encoder(run_id="r2", messages=one.messages)
    frames = [frame for event in after for frame in second.encode(event)]
    check_ag_ui(frames, earlier_calls=["call_1", "call_1/call_1"])
    results = {one["toolCallId"]: one["content"] for one in frames if "toolCallId" in one}
    assert results == {"call_1/call_1": "t is gone", "call_1": "leaf dropped"}
    assert assistant_texts(second.messages) == ("top is done",)


async def test_both_parts_of_an_interrupted_run_in_one_stream() -> None:
    """A log contains them in sequence; for the client these are two runs."""
    before, after = await decided_events_of(SCENARIOS["approve"])
    frames = frames_of([*before, *after])
    started = [frame["runId"] for frame in frames if frame["type"] == "RUN_STARTED"]
    assert started == ["r", "r+"]
    assert frames[-1]["outcome"] == {"type": "success"}
    cut = next(at for at, one in enumerate(frames) if one.get("runId") == "r+")
    check_ag_ui(frames[:cut])
    check_ag_ui(frames[cut:], earlier_calls=["call_2"])


# --- calls within calls


async def run(agent: Agent[Any, Any], text: str = "Go.") -> list[Event]:
    streamed = Runner.run_streamed(agent, text, run_config=RunConfig())
    return [event async for event in streamed.stream_events()]


def scripted(*steps: Any, tools: Sequence[Any] = (), name: str = "helper") -> Agent[Any, Any]:
    return Agent(name, model=ScriptedModel(steps), tools=list(tools))


async def test_a_tool_that_runs_an_agent_twice() -> None:
    """Clients reject a sub-agent id that is used for a second run."""
    inner = scripted("one", "two", name="inner")

    @function_tool
    async def twice() -> str:
        """Ask twice."""
        first = await Runner.run(inner, "a")
        second = await Runner.run(inner, "b")
        return f"{first.final_output} {second.final_output}"

    events = await run(scripted(tool_call("twice", call_id="c"), "done", tools=[twice]))
    frames = frames_of(events)
    check_ag_ui(frames)
    ids = [one["subagentRunId"] for one in frames if one["type"] == "SUBAGENT_STARTED"]
    assert ids == ["c", "c#2"]


async def test_a_tool_that_calls_a_tool() -> None:
    """A model did not request that call, so it is shown but not part of the conversation."""

    @function_tool
    async def outer(context: ToolContext[Any]) -> str:
        """Call another tool."""
        return str(await add.invoke(a=1, b=2, context=context))

    events = await run(scripted(tool_call("outer", call_id="c"), "done", tools=[outer]))
    frames = frames_of(events)
    check_ag_ui(frames)
    started = [one["toolCallId"] for one in frames if one["type"] == "TOOL_CALL_START"]
    assert started == ["c"]
    shown = [one["content"] for one in frames if one["type"] == "ACTIVITY_SNAPSHOT"]
    assert [(one["tool"], one["parent"], one["status"]) for one in shown] == [
        ("add", "c", "running"),
        ("add", "c", "ok"),
    ]


async def test_ids_with_slashes_stay_apart() -> None:
    """Ids come from providers; a path of two ids differs from one id that contains a slash."""
    from agents_tools.ui.ag_ui.frames import path_of, wire_id

    paths = [("a", "b"), ("a/b",), ("a%2Fb",), ("a", "b/c"), ("a/b", "c"), ("a",)]
    assert len({wire_id(path) for path in paths}) == len(paths)
    assert [path_of(wire_id(path)) for path in paths] == paths


async def test_progress_is_rate_limited() -> None:
    """A thousand steps in a moment become a few frames, and the last one is sent."""

    @function_tool
    async def count(context: ToolContext[Any]) -> str:
        """Count."""
        for number in range(300):
            context.progress(number + 1, 300)
        return "counted"

    events = await run(scripted(tool_call("count", call_id="c"), "done", tools=[count]))
    moment = events[0].timestamp
    events = [event.replace(timestamp=moment + event.seq / 1000) for event in events]
    shown = [one for one in frames_of(events) if one["type"] == "ACTIVITY_SNAPSHOT"]
    assert len(shown) < 12
    assert shown[-1]["content"]["progress"] == {"current": 300, "total": 300}
    assert shown[-1]["content"]["status"] == "ok"


async def test_delayed_progress_can_be_requested() -> None:
    """A call that becomes silent after its progress still shows its latest step."""
    events = await events_of(SCENARIOS["tool"])
    moment = events[0].timestamp
    one = encoder()
    told: list[Frame] = []
    for event in events:
        told += one.encode(event.replace(timestamp=moment))
        if one.held:
            told += one.flush()
            assert not one.held
            assert one.flush() == []
    check_ag_ui(told)
    steps = [
        one["content"].get("progress", {}).get("current")
        for one in told
        if one["type"] == "ACTIVITY_SNAPSHOT"
    ]
    assert steps[:3] == [1, 2, 3]


async def test_many_and_large_artifacts() -> None:
    """The activity of a call lists the last ones only, and large ones by name."""

    @function_tool
    async def make(context: ToolContext[Any]) -> str:
        """Make files."""
        for number in range(60):
            context.artifact(f"{number}.txt", "ü" * (100_000 if number == 59 else 1))
        return "made"

    events = await run(scripted(tool_call("make", call_id="c"), "done", tools=[make]))
    frames = frames_of(events)
    check_ag_ui(frames)
    shown = [one["content"] for one in frames if one.get("activityType") == "AGENTS_ARTIFACT"]
    assert len(shown) == 60
    assert shown[-1]["size"] == 200_000
    assert "text" not in shown[-1]
    last = [one["content"] for one in frames if one.get("activityType") == "AGENTS_TOOL"][-1]
    assert (len(last["artifacts"]), last["artifactCount"]) == (50, 60)


@pytest.mark.requirement("S19")
async def test_text_is_safe_to_show() -> None:
    """Text of tools and models cannot control a terminal or mislead the reader."""
    texts = list(encode(await events_of(SCENARIOS["hostile_text"])))
    shown = [json.loads(text[6:]) for text in texts if "TOOL_CALL_ARGS" not in text]
    assert not any("\x1b" in str(frame) or "\\u001b" in json.dumps(frame) for frame in shown)


async def test_a_streamed_call_that_gets_another_id() -> None:
    """A repeated call id is replaced by a new one; the old call must not stay open."""
    same = [tool_call("add", a=1, b=2, call_id="c"), tool_call("add", a=3, b=4, call_id="c")]
    events = await run(scripted(same, "done", tools=[add]))
    frames = frames_of(events)
    check_ag_ui(frames)
    results = [one["content"] for one in frames if one["type"] == "TOOL_CALL_RESULT"]
    assert results == ["3", "7"]


async def test_a_call_that_has_ended_before_the_next_one_is_complete() -> None:
    """Calls that start early finish while others of the same answer are still streamed."""
    gate = asyncio.Event()
    hints = ToolAnnotations(readOnlyHint=True)

    @function_tool(annotations=hints)
    async def quick() -> str:
        """Answer at once."""
        gate.set()
        return "quick"

    @function_tool(annotations=hints)
    async def slow() -> str:
        """Answer later."""
        await asyncio.sleep(0)
        return "slow"

    class Patient(ScriptedModel):
        async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
            response = await super().respond(request, emit)
            if len(self.requests) == 1:
                await gate.wait()
                await asyncio.sleep(0)
            return response

    both = [tool_call("quick", call_id="c1"), tool_call("slow", call_id="c2")]
    agent = Agent("helper", model=Patient([both, "done"]), tools=[quick, slow])
    streamed = Runner.run_streamed(agent, "Go.", run_config=RunConfig(start_calls_early=True))
    frames = frames_of([event async for event in streamed.stream_events()])
    check_ag_ui(frames)
    results = {
        one["toolCallId"]: one["content"] for one in frames if one["type"] == "TOOL_CALL_RESULT"
    }
    assert results == {"c1": "quick", "c2": "slow"}
    [message] = [one for one in conversation_of(frames) if one.get("toolCalls")]
    assert [call["id"] for call in message["toolCalls"]] == ["c1", "c2"]


def test_a_streamed_text_that_differs_from_the_item_is_replaced() -> None:
    """The final item takes precedence over the streamed text."""
    item = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "B"}],
    }
    one = encoder()
    frames = one.encode(text_delta("A"))
    frames += one.encode(RunItemStreamEvent("message_output_created", item)) + one.close("ok")
    check_ag_ui(frames)
    assert assistant_texts(conversation_of(frames)) == ("B",)


def test_a_streamed_call_that_is_not_executed() -> None:
    """It is closed and gets an output, so that the conversation can be sent to a model."""
    for messages in ([HELLO], None):
        one = encoder(messages=messages)
        frames = one.encode(call_started("c", "add")) + one.encode(call_delta("c", "{"))
        frames += one.encode(RawResponseStreamEvent({"type": "agents_tools.retry"}))
        frames += one.close("ok")
        check_ag_ui(frames)
        assert bool(calls(conversation_of(frames))) == (messages is None)


@pytest.mark.parametrize("inside", [False, True])
@pytest.mark.parametrize("version", VERSIONS)
async def test_a_model_that_breaks_off_in_the_middle_of_a_call(inside: bool, version: Any) -> None:
    """All of its frames are closed, wherever it breaks off."""

    class Breaking:
        async def respond(self, request: ModelRequest, emit: Any) -> ModelResponse:
            emit(text_delta("I will "))
            emit(call_started("c", "add"))
            emit(call_delta("c", '{"a"'))
            raise ModelError("The model is gone.")

    agent: Agent[Any, Any] = Agent("inner", model=Breaking(), tools=[add])
    if inside:
        agent = scripted(
            tool_call("inner", input="x"), "Done.", tools=[agent.as_tool(streaming=True)]
        )
    streamed = Runner.run_streamed(agent, "Go.", run_config=RunConfig(model_retries=0))
    events: list[Event] = []
    with suppress(ModelError):
        async for event in streamed.stream_events():
            events.append(event)  # noqa: PERF401 - those before the error count
    frames = frames_of(events, version)
    check_ag_ui(frames, version)
    assert "add" not in str([one.get("toolCalls") for one in conversation_of(frames)])
    check_ag_ui(frames_of(events, version, messages=None), version)


def test_hosted_calls_are_shown_but_not_part_of_the_conversation() -> None:
    """The provider has run them; a client would wait for the output of an ordinary call."""
    item = {
        "type": "tool_call",
        "kind": "hosted",
        "call_id": "c",
        "name": "web_search",
        "arguments": "{}",
    }
    one = encoder()
    frames = one.encode(RunItemStreamEvent("tool_called", item)) + one.close("ok")
    check_ag_ui(frames)
    assert [one["content"] for one in frames if one["type"] == "ACTIVITY_SNAPSHOT"] == [
        {"call": "c", "tool": "web_search", "status": "ok", "hosted": True}
    ]


def test_the_usage_of_a_run_is_reported() -> None:
    """It uses the field names of the protocol."""
    usage = {
        "requests": 1,
        "input_tokens": 10,
        "output_tokens": 5,
        "cached_input_tokens": 4,
        "cache_write_tokens": 3,
        "cost": 0.01,
    }
    event = RunFinishedEvent(output={"a": 1}, usage=usage)
    [_, last] = encoder().encode(event)
    assert last["usage"] == [
        {
            "inputTokens": 10,
            "outputTokens": 5,
            "cachedInputTokens": 4,
            "cacheWriteInputTokens": 3,
            "totalTokens": 15,
        }
    ]
    assert last["result"] == {"a": 1}
    assert "usage" not in encoder("0.x").encode(event)[-1]


def test_events_after_the_end_are_not_sent() -> None:
    """A client would reject the whole run because of them."""
    one = encoder()
    check_ag_ui(one.encode(RunFinishedEvent()))
    assert one.encode(text_delta("late")) == []
    assert one.finished


def test_the_ids_of_a_run_without_a_client() -> None:
    """Stored events can be shown without a client request; the run supplies the ids."""
    [frame, _] = [json.loads(text[6:]) for text in encode([RunFinishedEvent()])]
    assert frame["threadId"] == frame["runId"]
    assert frame["runId"].startswith("run_")


def test_an_unknown_version_is_rejected() -> None:
    """The message lists the available versions."""
    with pytest.raises(UserError, match=r"expected '1\.0' or '0\.x'"):
        AgUiEncoder(version="2")  # type: ignore[arg-type]


def test_the_module_is_found_by_name() -> None:
    """`agents_tools.ui` itself does not import it."""
    import agents_tools.ui

    assert agents_tools.ui.ag_ui is ag_ui
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = agents_tools.ui.nothing  # type: ignore[attr-defined]


async def test_each_field_of_an_activity_is_documented() -> None:
    """Pages read the content of activities, which the protocol leaves open."""
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "ag-ui.md").read_text()
    section = page.partition("### Activities")[2].partition("\n## ")[0]
    tool, artifact = (
        {
            name
            for row in re.findall(r"^\| (`.*?) \|", part, re.MULTILINE)
            for name in _NAME.findall(row)
        }
        for part in section.split("The `content` of the type `AGENTS_ARTIFACT`")
    )
    made: list[Event] = [
        ToolArtifactEvent("a.txt", "text", mime_type="text/plain", uri="file:///a.txt"),
        ToolArtifactEvent("a.bin", b"bytes"),
        ToolAttemptEvent(1, error="busy"),
    ]
    sent: dict[str, set[str]] = {"AGENTS_TOOL": set(), "AGENTS_ARTIFACT": set()}
    for name in SCENARIOS:
        events = await events_of(SCENARIOS[name])
        start = next((one for one in events if isinstance(one, ToolStreamStartEvent)), None)
        if start is not None and start.origin is not None:
            at = events.index(start) + 1
            events[at:at] = [one.stamped(start.origin, start.seq) for one in made]
        for version in ("1.0", "0.x"):
            for frame in frames_of(events, version):
                if frame["type"] == "ACTIVITY_SNAPSHOT":
                    sent[frame["activityType"]] |= frame["content"].keys()
    assert sent["AGENTS_ARTIFACT"] == artifact
    assert sent["AGENTS_TOOL"] == tool - {"hosted"}  # of calls that a provider makes


_NAME = re.compile("`(.*?)`")
