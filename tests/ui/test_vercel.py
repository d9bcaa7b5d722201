"""Runs as messages of the Vercel AI SDK: the encoder for each event, and the app."""

from __future__ import annotations

import asyncio
import base64
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

import pytest

from agents_tools import (
    Agent,
    Event,
    NotifyStreamEvent,
    RunFinishedEvent,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    UserError,
    progress,
    streaming_tool,
)
from agents_tools.agents import (
    call_delta,
    call_started,
    message_started,
    reasoning_delta,
    refusal_delta,
    text_delta,
)
from agents_tools.events import (
    EventSource,
    GapEvent,
    Origin,
    RawResponseStreamEvent,
    RunItemStreamEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
)
from agents_tools.events.coalesce import drop_display_events
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, check_vercel, tool_call
from agents_tools.ui import vercel
from agents_tools.ui.vercel import asgi_app
from agents_tools.ui.vercel.asgi_app import frames_of
from tests.ui.scenarios import (
    LONG,
    SCENARIOS,
    Scenario,
    add,
    crawl,
    decided_events_of,
    drop,
    events_of,
    wait_for_ever,
)
from tests.ui.web import Exchange, ask

Chunk = dict[str, Any]
VERSIONS: tuple[vercel.Version, ...] = (5, 6, 7)
START = 1_700_000_000.0


def at(event: Event, *path: str, after: float = 0.0, tool: str | None = None) -> Event:
    """Return an event with a position and a time."""
    call = path[-1] if path else None
    name = tool or ("work" if path else None)
    stamped = event.stamped(Origin(name, call, path, EventSource.AGENT), 0)
    cast("Any", stamped).timestamp = START + after
    return stamped


def item(what: str, /, *path: str, **fields: Any) -> Event:
    event: RunItemStreamEvent[Any] = RunItemStreamEvent(name=what, item=fields)
    return at(cast("Event", event), *path)


def message_item(text: str, *path: str) -> Event:
    content = [{"type": "output_text", "text": text}]
    return item("message_output_created", *path, type="message", role="assistant", content=content)


def called(call_id: str, *path: str, name: str = "work", arguments: str = "{}") -> Event:
    return item("tool_called", *path, call_id=call_id, name=name, arguments=arguments)


def output(call_id: str, content: Any, *path: str, status: str = "ok") -> Event:
    return item("tool_output", *path, call_id=call_id, name="work", output=content, status=status)


BEGIN = at(RunStartedEvent(run_id="run_1", agent="helper"))
USAGE = {"requests": 1, "input_tokens": 2, "cost": 0.5, "breakdown": []}
END = at(RunFinishedEvent(status="ok", usage=USAGE))
CALLED = called("c")
RUNNING = at(ToolStreamStartEvent({}), "c")
OVER = at(ToolStreamEndEvent("ok", 0.5), "c")


def chunks_of(
    events: Iterable[Event], version: vercel.Version = 7, *, ends: bool = True, **options: Any
) -> list[Chunk]:
    """Encode the events of one run, and check that the version accepts the chunks."""
    encoder = vercel.VercelEncoder(version, **options)
    chunks = [chunk for event in events for chunk in encoder.encode(event)]
    chunks += encoder.close()
    if ends:
        check_vercel(chunks, version)
    return chunks


def kinds(chunks: Iterable[Mapping[str, Any]], start: str = "") -> list[str]:
    return [chunk["type"] for chunk in chunks if chunk["type"].startswith(start)]


def work(chunks: Iterable[Chunk]) -> list[Chunk]:
    """Return the snapshots of calls."""
    return [chunk["data"] for chunk in chunks if chunk["type"] == "data-agents-tool"]


def text(chunks: Iterable[Chunk]) -> str:
    return "".join(chunk["delta"] for chunk in chunks if chunk["type"] == "text-delta")


async def scenario_events(scenario: Scenario) -> list[list[Event]]:
    if scenario.approve is None:
        return [await events_of(scenario)]
    return list(await decided_events_of(scenario))


# --- every scenario


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("name", SCENARIOS)
async def test_every_run_is_a_valid_message(name: str, version: vercel.Version) -> None:
    """The encoder emits no chunk that a client of the version would drop or misread."""
    scenario = SCENARIOS[name]
    before, *after = await scenario_events(scenario)
    frames = list(vercel.encode(before, version))
    check_vercel(frames, version)
    chunks = [json.loads(frame[6:]) for frame in frames[:-1]]
    if after:
        encoder = vercel.VercelEncoder(version)
        for event in before:
            encoder.encode(event)
        rest = encoder.restart()
        rest += [chunk for event in after[0] for chunk in encoder.encode(event)]
        rest += encoder.close()
        check_vercel(rest, version, before=chunks)
        check_vercel(list(vercel.encode([*before, *after[0]], version)), version)
        chunks += rest
    ids = dict.fromkeys(chunk["toolCallId"] for chunk in chunks if "toolCallId" in chunk)
    own = [one for one in ids if "/" not in one and one != "call_lost"]
    assert own == list(scenario.calls)


@pytest.mark.parametrize("name", ["tool", "nested", "deltas", "slow_reader"])
async def test_the_same_events_give_the_same_chunks(name: str) -> None:
    """A page that reconnects gets the same message."""
    events = await events_of(SCENARIOS[name])
    assert list(vercel.encode(events)) == list(vercel.encode(events))


async def test_ten_thousand_deltas_arrive_completely() -> None:
    assert text(chunks_of(await events_of(SCENARIOS["deltas"]))) == LONG
    assert text(chunks_of(await events_of(SCENARIOS["slow_reader"]))) == LONG
    with_gap, dropped = drop_display_events(await events_of(SCENARIOS["deltas"]), 1_000)
    assert dropped
    assert text(chunks_of(with_gap)) == LONG


# --- frames


def test_frames_of_a_whole_message() -> None:
    events = [BEGIN, at(text_delta("Hé\n")), message_item("Hé\n"), END]
    assert list(vercel.encode(events)) == [
        (
            'data: {"type":"start","messageId":"msg_1",'
            '"messageMetadata":{"runId":"run_1","agent":"helper"}}\n\n'
        ),
        'data: {"type":"start-step"}\n\n',
        'data: {"type":"text-start","id":"text-1"}\n\n',
        'data: {"type":"text-delta","id":"text-1","delta":"Hé\\n"}\n\n',
        'data: {"type":"text-end","id":"text-1"}\n\n',
        'data: {"type":"finish-step"}\n\n',
        (
            'data: {"type":"finish","finishReason":"stop","messageMetadata":{"runId":"run_1",'
            '"agent":"helper","usage":{"requests":1,"inputTokens":2,"cost":0.5,"totalTokens":2},'
            '"status":"ok"}}\n\n'
        ),
        "data: [DONE]\n\n",
    ]


def test_a_call_from_its_first_delta_to_its_output() -> None:
    served = {"dynamic": True, "providerExecuted": True}
    events = [
        BEGIN,
        at(call_started("c", "work")),
        at(call_delta("c", '{"a":')),
        at(call_delta("c", " 1}"), after=1.0),
        called("c", arguments='{"a": 1}'),
        RUNNING,
        OVER,
        output("c", [{"type": "text", "text": "done"}]),
        END,
    ]
    assert chunks_of(events)[2:-2] == [
        {"type": "tool-input-start", "toolCallId": "c", "toolName": "work", **served},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": '{"a":'},
        {"type": "tool-input-delta", "toolCallId": "c", "inputTextDelta": " 1}"},
        {
            "type": "tool-input-available",
            "toolCallId": "c",
            "toolName": "work",
            "input": {"a": 1},
            **served,
        },
        {
            "type": "tool-output-available",
            "toolCallId": "c",
            "output": [{"type": "text", "text": "done"}],
            **served,
        },
    ]


def test_an_unknown_version_is_rejected() -> None:
    with pytest.raises(UserError, match="expected 5, 6 or 7"):
        vercel.VercelEncoder(cast("Any", 4))
    with pytest.raises(UserError, match="expected 5, 6 or 7"):
        vercel.app(SCENARIOS["plain"].make(), version=cast("Any", 8))


# --- model output


def test_items_restore_lost_deltas() -> None:
    """The item contains the deltas that were dropped on the way."""
    gap = at(GapEvent(dropped=2))
    late = [at(text_delta("Hello ")), gap, at(text_delta("ld")), message_item("Hello world")]
    assert text(chunks_of([BEGIN, *late, END])) == "Hello world"
    first_lost = [gap, at(text_delta("rld")), message_item("Hello world")]
    assert text(chunks_of([BEGIN, *first_lost, END])) == "Hello world"
    assert text(chunks_of([BEGIN, message_item("Hello world"), END])) == "Hello world"


def test_two_messages_of_one_answer_are_two_parts() -> None:
    pieces = [message_started(), text_delta("One."), message_started(), text_delta("Two.")]
    events = [
        BEGIN,
        *(at(piece) for piece in pieces),
        message_item("One."),
        message_item("Two."),
        END,
    ]
    chunks = chunks_of(events)
    assert text(chunks) == "One.Two."
    assert kinds(chunks, "text").count("text-start") == 2


def test_reasoning_and_refusals_are_shown() -> None:
    events = [BEGIN, at(reasoning_delta("Hm.")), at(refusal_delta("No.")), END]
    chunks = chunks_of(events)
    assert kinds(chunks, "reasoning") == ["reasoning-start", "reasoning-delta", "reasoning-end"]
    assert text(chunks) == "No."


@pytest.mark.requirement("S19")
def test_terminal_sequences_are_removed_even_when_split() -> None:
    """The parts of a sequence are checked together."""
    events = [BEGIN, at(text_delta("a\x1b[3")), at(text_delta("1mb\u202e")), message_item("a"), END]
    assert text(chunks_of(events)) == "ab"


@pytest.mark.parametrize("version", VERSIONS)
def test_an_interrupted_answer_is_retracted(version: vercel.Version) -> None:
    """The newest version removes the step; older ones at least leave nothing open."""
    retry = at(RawResponseStreamEvent({"type": "agents_tools.retry", "attempt": 1, "delay": 0.1}))
    pieces = [at(text_delta("Half")), at(call_started("lost", "work"))]
    chunks = chunks_of([BEGIN, *pieces, retry, at(text_delta("Whole")), END], version)
    closed = {5: "tool-output-error", 6: "tool-input-error", 7: "reset-step"}
    assert closed[version] in kinds(chunks)
    assert text(chunks[-4:]) == "Whole"


def test_a_break_before_the_first_delta_retracts_nothing() -> None:
    """The step contains the calls of the previous answer, which were executed."""
    retry = at(RawResponseStreamEvent({"type": "agents_tools.retry", "attempt": 1, "delay": 0.1}))
    events = [BEGIN, CALLED, RUNNING, OVER, output("c", "x"), retry, message_item("Done"), END]
    assert "reset-step" not in kinds(chunks_of(events))


def test_each_answer_is_a_separate_step() -> None:
    events = [
        BEGIN,
        message_item("I look."),
        CALLED,
        RUNNING,
        OVER,
        output("c", "x"),
        message_item("Done."),
        END,
    ]
    chunks = chunks_of(events)
    assert kinds(chunks).count("start-step") == 2
    assert kinds(chunks)[-5:-1] == ["text-start", "text-delta", "text-end", "finish-step"]


# --- calls


def test_progress_is_sent_at_most_twenty_times_a_second() -> None:
    """Each snapshot replaces the previous one, so most of them can be skipped."""
    steps = [at(ToolProgressEvent(n, 1000), "c", after=n / 1000) for n in range(1, 1001)]
    over = at(ToolStreamEndEvent("ok", 1.0), "c", after=1.0)
    chunks = chunks_of([BEGIN, CALLED, RUNNING, *steps, over, output("c", "x"), END])
    snapshots = work(chunks)
    assert len(snapshots) <= 22
    assert snapshots[0]["progress"] == {"current": 1, "total": 1000}
    assert snapshots[-1] == {
        "callId": "c",
        "toolName": "work",
        "status": "ok",
        "progress": {"current": 1000, "total": 1000},
        "duration": 1.0,
    }


def test_delayed_progress_is_sent_in_a_pause() -> None:
    """A call that becomes silent still shows its latest progress."""
    encoder = vercel.VercelEncoder()
    for event in (BEGIN, CALLED, RUNNING, at(ToolProgressEvent(1, 3), "c")):
        encoder.encode(event)
    assert not encoder.pending
    assert encoder.encode(at(ToolProgressEvent(2, 3), "c", after=0.01)) == []
    assert encoder.pending
    assert work(encoder.flush())[0]["progress"] == {"current": 2, "total": 3}
    assert not encoder.pending
    assert encoder.flush() == []


def test_log_lines_and_deltas_are_transient() -> None:
    """They are for `onData`; the message keeps only the last one."""
    lines = [at(NotifyStreamEvent(f"line {n}"), "c", after=n / 1000) for n in range(20)]
    pieces = [at(NotifyStreamEvent("to", is_delta=True), "c", after=0.03 + n / 9) for n in range(9)]
    warned = at(NotifyStreamEvent("careful", level="warning", tag="disk"), "c", after=2)
    chunks = chunks_of(
        [BEGIN, CALLED, RUNNING, *lines, *pieces, warned, OVER, output("c", ""), END]
    )
    logs = [chunk for chunk in chunks if chunk["type"] == "data-agents-tool-log"]
    assert all(log["transient"] and "id" not in log for log in logs)
    entries = [entry for log in logs for entry in log["data"]["entries"]]
    assert [entry["text"] for entry in entries[:20]] == [f"line {n}" for n in range(20)]
    assert "".join(entry["text"] for entry in entries[20:-1]) == "to" * 9
    assert entries[-1] == {"text": "careful", "level": "warning", "tag": "disk"}
    last = work(chunks)[-1]
    assert len(last["lines"]) == 5
    assert last["text"] == "to" * 9


def test_progress_after_the_end_of_a_call_is_dropped() -> None:
    """A client would overwrite the result with it."""
    late = [at(ToolProgressEvent(1), "c"), at(NotifyStreamEvent("late"), "c", "inner")]
    before = chunks_of([BEGIN, CALLED, RUNNING, OVER, output("c", "x"), END])
    assert chunks_of([BEGIN, CALLED, RUNNING, OVER, *late, output("c", "x"), *late, END]) == before


def test_calls_within_calls_are_named_by_their_path() -> None:
    """The call ids of every agent start from the same number."""
    inner = ("call_1", "a/b%", "call_1")
    events = [
        BEGIN,
        called("call_1"),
        at(ToolStreamStartEvent({}), "call_1"),
        at(RunStartedEvent(run_id="r2", agent="inner"), "call_1"),
        called("a/b%", "call_1", name="ask", arguments='{"x": 1}'),
        at(ToolStreamStartEvent({"x": 1}), *inner[:2], tool="ask"),
        at(ToolProgressEvent(1, 2, "deep"), *inner, tool="leaf"),
        at(text_delta("I say"), *inner[:2], tool="ask"),
        at(ToolStreamEndEvent("ok", 0.0), *inner[:2], tool="ask"),
        output("a/b%", "told", "call_1"),
        at(ToolStreamEndEvent("ok", 0.0), "call_1"),
        output("call_1", "x"),
        END,
    ]
    last = {snapshot["callId"]: snapshot for snapshot in work(chunks_of(events))}
    assert list(last) == ["call_1", "call_1/a%2Fb%25", "call_1/a%2Fb%25/call_1"]
    assert last["call_1"] == {
        "callId": "call_1",
        "toolName": "work",
        "status": "ok",
        "agent": "inner",
        "duration": 0.0,
    }
    assert last["call_1/a%2Fb%25"] == {
        "callId": "call_1/a%2Fb%25",
        "parentCallId": "call_1",
        "toolName": "ask",
        "status": "ok",
        "input": {"x": 1},
        "text": "I say",
        "duration": 0.0,
        "output": "told",
    }


def test_streamed_text_of_a_tool_can_be_its_preliminary_output() -> None:
    """Pages without a progress view can show it."""
    pieces = [at(NotifyStreamEvent("ab", is_delta=True), "c", after=n) for n in range(3)]
    events = [BEGIN, CALLED, RUNNING, *pieces, OVER, output("c", "real"), END]
    outputs = [
        (chunk["output"], chunk.get("preliminary", False))
        for chunk in chunks_of(events, preliminary=True)
        if chunk["type"] == "tool-output-available"
    ]
    assert outputs == [("ab", True), ("abab", True), ("ababab", True), ("real", False)]
    assert not any(chunk.get("preliminary") for chunk in chunks_of(events))


def test_retries_are_reported() -> None:
    again = at(ToolAttemptEvent(1, "timed out", 0.5), "c")
    snapshot = work(chunks_of([BEGIN, CALLED, RUNNING, again, OVER, output("c", ""), END]))[0]
    assert snapshot["attempt"] == 2
    assert snapshot["lines"] == [{"text": "Attempt 1 failed: timed out", "level": "warning"}]


@pytest.mark.requirement("S6")
@pytest.mark.parametrize(
    ("artifact", "parts"),
    [
        (
            ToolArtifactEvent("a.txt", data="hi", mime_type="text/plain"),
            [{"type": "file", "url": "data:text/plain;base64,aGk=", "mediaType": "text/plain"}],
        ),
        (
            ToolArtifactEvent("a", uri="https://x.test/a.png", mime_type="image/png"),
            [{"type": "file", "url": "https://x.test/a.png", "mediaType": "image/png"}],
        ),
        (
            ToolArtifactEvent("a", uri="https://x.test/a"),
            [
                {
                    "type": "source-url",
                    "sourceId": "artifact-1",
                    "url": "https://x.test/a",
                    "title": "a",
                }
            ],
        ),
        (ToolArtifactEvent("a", uri="javascript:alert(1)", mime_type="text/html"), []),
        (ToolArtifactEvent("a", uri="file:///etc/passwd"), []),
        (ToolArtifactEvent("a", data="x", mime_type="text/html,<script>"), []),
        (ToolArtifactEvent("a", data=b"0" * 100_000, mime_type="image/png"), []),
        (ToolArtifactEvent("a", data=b"0"), []),
    ],
)
def test_artifacts_are_parts_where_a_browser_may_open_them(
    artifact: ToolArtifactEvent, parts: list[Chunk]
) -> None:
    """Script links of a tool and local paths of the server are not sent."""
    events = [BEGIN, CALLED, RUNNING, at(artifact, "c"), OVER, output("c", ""), END]
    chunks = chunks_of(events)
    assert [chunk for chunk in chunks if chunk["type"] in {"file", "source-url"}] == parts
    assert work(chunks)[0]["artifacts"][0]["name"] == artifact.name


@pytest.mark.parametrize("data", ["für", "für".encode()])
def test_the_size_of_an_artifact_is_in_bytes(data: str | bytes) -> None:
    """A page shows one unit for text and for files."""
    artifact = ToolArtifactEvent("a", data=data)
    events = [BEGIN, CALLED, RUNNING, at(artifact, "c"), OVER, output("c", ""), END]
    assert work(chunks_of(events))[0]["artifacts"][0]["size"] == 4


@pytest.mark.requirement("S20")
@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    ("status", "kind"),
    [
        ("tool_error", "tool-output-error"),
        ("timeout", "tool-output-error"),
        ("denied", "tool-output-error"),
        ("overloaded", "tool-output-error"),
        ("lost", "tool-output-error"),
        ("invalid_args", "tool-input-error"),
    ],
)
def test_failures_have_the_error_text_of_the_model(
    status: str, kind: str, version: vercel.Version
) -> None:
    """Secrets are masked."""
    message = "password=hunter2secret is wrong\x1b[0m"
    chunks = chunks_of([BEGIN, CALLED, RUNNING, output("c", message, status=status), END], version)
    failed = next(chunk for chunk in chunks if "errorText" in chunk)
    assert failed["type"] == (kind if version > 5 else "tool-output-error")
    assert "hunter2" not in failed["errorText"]
    assert failed["errorText"].endswith("is wrong")


def test_a_hosted_call_has_no_local_output() -> None:
    hosted = item("tool_called", call_id="c", name="web_search", arguments="{}", kind="hosted")
    assert "tool-output-available" in kinds(chunks_of([BEGIN, hosted, END]))


def test_invalid_json_arguments_are_shown_unchanged() -> None:
    events = [BEGIN, called("c", arguments="{oops"), output("c", "no", status="invalid_args"), END]
    shown = [chunk["input"] for chunk in chunks_of(events) if "input" in chunk]
    assert shown == ["{oops", "{oops"]


def test_a_direct_tool_call_is_a_message_too() -> None:
    chunks = chunks_of([at(ToolStreamStartEvent({"a": 1}), "c"), at(ToolProgressEvent(1), "c")])
    assert kinds(chunks)[:3] == ["start", "start-step", "tool-input-available"]
    assert chunks[2]["input"] == {"a": 1}


# --- end of the message


@pytest.mark.parametrize("version", VERSIONS)
def test_all_parts_are_closed_before_a_run_is_aborted(version: vercel.Version) -> None:
    """A page would show an open part as running forever."""
    events = [
        BEGIN,
        at(text_delta("I")),
        CALLED,
        RUNNING,
        called("i", "c"),
        at(NotifyStreamEvent("half", is_delta=True), "c"),
        at(RunFinishedEvent(status="cancelled", error="stopped by the user")),
    ]
    chunks = chunks_of(events, version, preliminary=True)
    assert kinds(chunks)[-4:] == ["tool-output-error", "finish-step", "abort", "finish"]
    assert chunks[-1].get("finishReason") == (None if version == 5 else "other")
    assert chunks[-1]["messageMetadata"]["status"] == "cancelled"
    assert chunks[-2].get("reason") == ("stopped by the user" if version == 7 else None)
    assert chunks[-1]["messageMetadata"]["reason"] == "stopped by the user"
    assert {one["callId"]: one["status"] for one in work(chunks)} == {
        "c": "cancelled",
        "c/i": "cancelled",
    }


def test_a_stream_that_ends_early_is_closed_explicitly() -> None:
    encoder = vercel.VercelEncoder()
    chunks = [*encoder.encode(BEGIN), *encoder.encode(at(text_delta("I")))]
    chunks += encoder.close("error", "the server stops")
    check_vercel(chunks, 7)
    assert chunks[-1] == {"type": "error", "errorText": "The run failed."}
    assert encoder.close() == []
    assert encoder.encode(at(text_delta("more"))) == []


@pytest.mark.requirement("S20")
def test_an_error_is_the_last_chunk_and_hides_exceptions() -> None:
    """A client reads nothing after it, and exception texts can contain secrets."""
    failed = at(RunFinishedEvent(status="error", error="OSError: api_key=abcdef123456 refused"))
    events = [BEGIN, CALLED, RUNNING, failed]
    assert chunks_of(events)[-1] == {"type": "error", "errorText": "The run failed."}
    shown = chunks_of(events, errors="show")
    assert shown[-2]["finishReason"] == "error"
    assert shown[-1]["errorText"].startswith("OSError: ")
    assert "abcdef123456" not in shown[-1]["errorText"]


def test_a_message_without_its_first_events_still_has_a_start() -> None:
    """A long run without a store keeps only its last events."""
    events = [at(GapEvent(dropped=5)), at(text_delta("x")), message_item("All of it"), END]
    chunks = chunks_of(events, run_id="run_9")
    assert chunks[0]["messageId"] == "msg_9"
    assert text(chunks) == "All of it"


def test_a_waiting_run_can_be_aborted() -> None:
    waits = at(RunFinishedEvent(status="interrupted"))
    ask_for_it = item("tool_approval_requested", call_id="c", name="work", arguments="{}")
    called_off = at(RunFinishedEvent(status="cancelled"))
    chunks = chunks_of([BEGIN, CALLED, ask_for_it, waits, called_off])
    assert kinds(chunks)[-4:] == ["tool-output-error", "finish-step", "abort", "finish"]


@pytest.mark.requirement("S26")
def test_a_lone_surrogate_does_not_break_a_frame() -> None:
    """A lone surrogate cannot be encoded as UTF-8."""
    half = "\ud800"
    events = [
        at(RunStartedEvent(run_id=f"r{half}", agent=half)),
        at(call_started(f"c{half}", half)),
        at(call_delta(f"c{half}", half)),
        called(f"c{half}", arguments=f'{{"a": "{half}"}}'),
        at(text_delta(half)),
        output(f"c{half}", half),
        at(ToolProgressEvent(1, message=half), f"c{half}"),
        END,
    ]
    check_vercel(list(vercel.encode(events)), 7)


def test_a_rate_is_above_zero() -> None:
    with pytest.raises(UserError, match="a number above 0"):
        vercel.VercelEncoder(snapshots_per_second=0)


# --- approvals


async def test_a_waiting_call_requests_approval_in_its_part() -> None:
    before, after = await scenario_events(SCENARIOS["approve"])
    question = next(c for c in chunks_of(before) if c["type"] == "tool-approval-request")
    run_id = cast("RunStartedEvent", before[0]).run_id
    assert question == {
        "type": "tool-approval-request",
        "approvalId": f"{run_id}/call_2",
        "toolCallId": "call_2",
    }
    assert chunks_of(before)[-1]["finishReason"] == "tool-calls"
    whole = chunks_of([*before, *after])
    assert kinds(whole).count("finish") == kinds(whole).count("start") == 1
    answers = [c["approved"] for c in whole if c["type"] == "tool-approval-response"]
    assert answers == [True]


async def test_a_denied_call_is_marked_in_each_version() -> None:
    before, after = await scenario_events(SCENARIOS["reject"])
    events = [*before, *after]
    assert "tool-output-denied" in kinds(chunks_of(events, 7))
    assert "tool-output-denied" in kinds(chunks_of(events, 6))
    assert "tool-approval-response" not in kinds(chunks_of(events, 6))
    states = [
        chunk["data"]["state"]
        for chunk in chunks_of(events, 5)
        if chunk["type"] == "data-agents-tool-approval"
    ]
    assert states == ["requested", "denied"]
    assert "tool-output-error" in kinds(chunks_of(events, 5))


async def test_a_nested_call_requests_approval_in_a_separate_step() -> None:
    """In the step of the outer call, the page would not send the answer automatically."""
    before, _ = await scenario_events(SCENARIOS["nested_approve"])
    chunks = chunks_of(before)
    last = len(chunks) - 1 - kinds(chunks)[::-1].index("start-step")
    assert kinds(chunks[last:], "tool-") == ["tool-input-available", "tool-approval-request"]
    question = next(c for c in chunks_of(before, 5) if c["type"] == "data-agents-tool-approval")
    assert question["data"]["parentCallId"] == "call_1"
    assert question["data"]["agent"] == "leaf"


# --- the app


def body(*parts: Mapping[str, Any], **more: Any) -> dict[str, Any]:
    """Return the body that `useChat` posts for one message of the user."""
    content = list(parts) or [{"type": "text", "text": "Go."}]
    user = {"id": "u1", "role": "user", "parts": content}
    return {"id": "chat", "messages": [user], "trigger": "submit-message", **more}


def sent(exchange: Exchange) -> list[Chunk]:
    """Return the chunks of a response."""
    assert exchange.status == 200, exchange.text
    frames = [one for one in exchange.text.split("\n\n") if one.startswith("data: {")]
    return [json.loads(frame[6:]) for frame in frames]


def assistant_message(chunks: Sequence[Chunk]) -> dict[str, Any]:
    """Return the assistant message with the fields that approval answers need."""
    parts = [
        {
            "type": "dynamic-tool",
            "toolName": "drop",
            "toolCallId": chunk["toolCallId"],
            "state": "approval-responded",
            "input": {},
            "approval": {"id": chunk["approvalId"], "approved": True},
        }
        for chunk in chunks
        if chunk["type"] == "tool-approval-request"
    ]
    return {"id": chunks[0]["messageId"], "role": "assistant", "parts": parts}


async def test_a_chat_is_answered_as_a_stream() -> None:
    app = vercel.app(SCENARIOS["tool"].make())
    answer = await ask(app, "POST", "/", body())
    assert answer.headers["x-vercel-ai-ui-message-stream"] == "v1"
    assert answer.headers["content-type"] == "text/event-stream"
    assert answer.headers["cache-control"] == "no-cache, no-transform"
    check_vercel([answer.text], 7)
    assert text(sent(answer)) == "I look. Looked."
    await app.aclose()


async def test_the_history_of_a_chat_reaches_the_model() -> None:
    """It contains calls with their outputs, but no nested activity."""
    model = ScriptedModel(["Hi."])
    app = vercel.app(Agent("helper", model=model, tools=[add]))
    image = "data:image/png;base64," + base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
    call = {"type": "dynamic-tool", "toolName": "add", "toolCallId": "call_1", "input": {"a": 1}}
    messages = [
        {"id": "1", "role": "user", "parts": [{"type": "text", "text": "One"}]},
        {
            "id": "2",
            "role": "assistant",
            "parts": [
                {"type": "step-start"},
                {"type": "reasoning", "text": "Hm"},
                {"type": "text", "text": "I add."},
                {**call, "state": "output-available", "output": 3},
                {**call, "toolCallId": "call_1/call_1", "state": "output-available", "output": 1},
                {"type": "data-agents-tool", "id": "call_1", "data": {}},
                {**call, "toolCallId": "e", "state": "output-error", "errorText": "no"},
                {**call, "toolCallId": "d", "state": "output-denied", "approval": {"id": "x"}},
                {**call, "toolCallId": "o", "state": "input-available"},
                {**call, "toolCallId": "w", "state": "input-streaming"},
                {"type": "step-start"},
                {"type": "text", "text": "Three."},
            ],
        },
        {
            "id": "3",
            "role": "assistant",
            "parts": [{**call, "type": "tool-add", "state": "output-available", "output": "x"}],
        },
        {
            "id": "4",
            "role": "user",
            "parts": [
                {"type": "text", "text": "Look"},
                {"type": "file", "mediaType": "image/png", "url": image},
                {"type": "file", "mediaType": "application/pdf", "url": "https://x.test/a.pdf"},
                {"type": "data-mood", "data": "good"},
            ],
        },
    ]
    answer = await ask(app, "POST", "/", {"id": "chat", "messages": messages})
    assert text(sent(answer)) == "Hi."
    given = [one.to_dict() for one in model.requests[0].input]
    assert [(one.get("type", one.get("role")), one.get("call_id")) for one in given] == [
        ("user", None),
        ("message", None),
        ("function_call", "call_1"),
        ("function_call", "e"),
        ("function_call", "d"),
        ("function_call", "o"),
        ("function_call_output", "call_1"),
        ("function_call_output", "e"),
        ("function_call_output", "d"),
        ("function_call_output", "o"),
        ("message", None),
        ("function_call", "call_1-2"),
        ("function_call_output", "call_1-2"),
        ("user", None),
    ]
    outputs = {one["call_id"]: (one["output"], one["status"]) for one in given if "output" in one}
    assert outputs == {
        "call_1": ("3", "ok"),
        "e": ("no", "tool_error"),
        "d": ("A person refused this call.", "denied"),
        "o": ("The call was not finished; it has no result.", "cancelled"),
        "call_1-2": ("x", "ok"),
    }
    assert [block["type"] for block in given[-1]["content"]] == ["text", "image", "file"]
    await app.aclose()


USER = {"id": "1", "role": "user", "parts": [{"type": "text", "text": "x"}]}
REPLY = {"id": "a", "approved": 1}


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "id: expected the id of the chat"),
        ({"id": "c"}, "messages: expected a list, got null"),
        ({"id": "c", "messages": []}, "messages: expected at least one message"),
        ({"id": "c", "messages": [3]}, r"messages\[0\]: expected an object, got a number"),
        ({"id": "c", "messages": [USER], "trigger": "x"}, "trigger: expected submit-message or"),
        ({"id": "c", "messages": [{"role": "user"}]}, r"messages\[0\].parts: expected a list"),
        (
            {"id": "c", "messages": [{**USER, "parts": []}]},
            r"messages\[0\].parts: expected at least one text or file",
        ),
        (
            {"id": "c", "messages": [{**USER, "role": "system"}]},
            r"messages\[0\].role: expected user or assistant, got system",
        ),
        ({"id": "c", "messages": [{**USER, "role": "tool"}]}, r"messages\[0\].role: expected user"),
        (body({"type": "text"}), r"messages\[0\].parts\[0\].text: expected a text, got null"),
        (body({"type": "image"}), r"messages\[0\].parts\[0\].type: expected text, file or data"),
        (body({"type": "file", "url": "blob:x", "mediaType": "a/b"}), r"parts\[0\].url: expected"),
        (
            body({"type": "file", "url": "data:a/b;base64,%%", "mediaType": "a/b"}),
            r"parts\[0\].url: .*not valid base64",
        ),
        (body(approvals=[REPLY]), r"approvals\[0\].approved: expected true or false, got a number"),
        (body(approvals=[{}]), r"approvals\[0\].id: expected the id"),
        ({**body(), "id": "\x00"}, "thread_id is a text"),
    ],
)
async def test_an_invalid_chat_request_is_rejected_with_the_field(
    given: dict[str, Any], message: str
) -> None:
    """The error names the field and what is expected."""
    app = vercel.app(SCENARIOS["plain"].make())
    answer = await ask(app, "POST", "/", given)
    assert answer.status == 422
    assert re.search(message, answer.message), answer.message
    await app.aclose()


async def test_an_approval_resumes_the_run() -> None:
    """The answer is in the part that requested it."""
    app = vercel.app(SCENARIOS["nested_approve"].make())
    first = await ask(app, "POST", "/", body())
    check_vercel([first.text], 7)
    message = assistant_message(sent(first))
    given = {"id": "chat", "messages": [*body()["messages"], message], "messageId": message["id"]}
    second = await ask(app, "POST", "/", given)
    check_vercel([second.text], 7, before=[first.text])
    assert text(sent(second)) == "top is done"
    assert sent(second)[0]["messageId"] == message["id"]
    third = await ask(app, "POST", "/", given)
    assert text(sent(third)) == "top is done", "an answer that is sent again changes nothing"
    await app.aclose()


async def test_a_request_that_is_repeated_starts_one_run() -> None:
    """A page that got no answer cannot know whether the request has arrived."""
    agent = SCENARIOS["tool"].make()
    app = vercel.app(agent)
    first = await ask(app, "POST", "/", body())
    again = await ask(app, "POST", "/", body())
    assert text(sent(again)) == text(sent(first)) == "I look. Looked."
    assert sent(again)[0]["messageId"] == sent(first)[0]["messageId"]
    model = cast("ScriptedModel", agent.model)
    assert len(model.requests) == 2
    new = await ask(app, "POST", "/", body(trigger="regenerate-message"))
    assert new.status == 200
    assert len(model.requests) > 2
    await app.aclose()


async def test_an_approval_can_have_other_arguments() -> None:
    """Invalid ones do not run the call: it asks again, and says why."""
    app = vercel.app(SCENARIOS["approve"].make())
    first = await ask(app, "POST", "/", body())
    message = assistant_message(sent(first))

    async def decide(arguments: str) -> Exchange:
        (part,) = message["parts"]
        part["approval"]["arguments"] = arguments
        given = {"messages": [*body()["messages"], message], "messageId": message["id"]}
        return await ask(app, "POST", "/", body(**given))

    refused = await decide("[1]")
    assert refused.status == 422
    assert "messages[1].parts[0].approval" in refused.message
    second = await decide('{"table": 7, "more": 1}')
    check_vercel([second.text], 7, before=[first.text])
    (data,) = [one["data"] for one in sent(second) if one["type"] == "data-agents-tool"]
    assert data["lines"][0]["level"] == "error"
    assert "more" in data["lines"][0]["text"]
    assert "tool-approval-request" in {one["type"] for one in sent(second)}
    third = await decide('{"table": "z"}')
    outputs = [one["output"] for one in sent(third) if one["type"] == "tool-output-available"]
    assert [output.endswith("z is gone") for output in outputs] == [True]
    await app.aclose()


@pytest.mark.requirement("S35")
@pytest.mark.parametrize("chat", ["chat", "another"])
async def test_an_approval_counts_for_a_run_of_its_chat_only(chat: str) -> None:
    """A call that only the page claims to be approved is not executed."""
    app = vercel.app(Agent("helper", model=ScriptedModel(["x", "y"]), tools=[drop]))
    await ask(app, "POST", "/", body())
    approval = {"id": "run_made_up/call_1", "approved": True}
    answer = await ask(app, "POST", "/", {**body(approvals=[approval]), "id": chat})
    assert answer.status == 409
    assert "does not exist" in answer.message
    await app.aclose()


@pytest.mark.requirement("F23")
async def test_a_message_can_be_replayed_from_its_start() -> None:
    """The same frames are sent, then the new ones."""
    runs = RunManager(on_disconnect="detach")
    agent = Agent(
        "helper",
        model=ScriptedModel([tool_call("wait_for_ever", call_id="call_1")]),
        tools=[wait_for_ever],
    )
    app = vercel.app(agent, runs=runs)
    assert (await ask(app, "GET", "/chat/stream")).status == 204
    first = Exchange(app, "POST", "/", body())
    seen = await first.until("waiting")
    await first.leave()
    again = Exchange(app, "GET", "/chat/stream")
    assert (await again.until("waiting")).startswith(seen.split('"status":"running"')[0])
    stopped = await ask(app, "POST", "/chat/stop", {})
    assert stopped.json == {"stopped": True}
    await again.whole()
    check_vercel([again.text], 7)
    assert kinds(sent(again))[-2:] == ["abort", "finish"]
    await runs.aclose()


async def test_a_completed_message_is_not_replayed(monkeypatch: pytest.MonkeyPatch) -> None:
    """204 means that there is nothing to resume."""
    runs = RunManager()
    app = vercel.app(SCENARIOS["plain"].make(), runs=runs)
    whole = await ask(app, "POST", "/", body())
    again = await ask(app, "GET", "/chat/stream")
    assert again.text == whole.text, "its end may still have been on its way"
    monkeypatch.setattr(asgi_app, "_RESEND_PERIOD", 0.0)
    assert (await ask(app, "GET", "/chat/stream")).status == 204
    await runs.aclose()


async def test_a_disconnect_cancels_the_run_unless_it_is_detached() -> None:
    """`stop()` of the page only closes the connection."""
    for what, status in (("cancel", "cancelled"), ("detach", "running")):
        runs = RunManager(on_disconnect=cast("Any", what))
        model = ScriptedModel([tool_call("wait_for_ever", call_id="call_1")])
        app = vercel.app(Agent("helper", model=model, tools=[wait_for_ever]), runs=runs)
        page = Exchange(app, "POST", "/", body())
        await page.until("waiting")
        await page.leave()
        live = (await runs.list())[0]
        if what == "cancel":
            await live.wait()
        assert live.status == status
        await runs.aclose()


async def test_progress_is_shown_and_comments_are_sent_while_a_tool_is_silent() -> None:
    """Delayed progress is sent in the pause, and comments keep the connection open."""
    model = ScriptedModel([tool_call("wait_for_ever", call_id="call_1")])
    app = vercel.app(Agent("helper", model=model, tools=[wait_for_ever]), heartbeat=0.01)
    page = Exchange(app, "POST", "/", body())
    await page.until("waiting")
    await page.until("\n\n:\n\n", 2)
    await page.leave()
    await app.aclose()


@streaming_tool
async def hurry():
    """Report more progress at once than is sent at once, and wait."""
    yield NotifyStreamEvent("begin")
    progress(9, 9, "step 9")
    await asyncio.Event().wait()
    yield "never"


async def test_a_page_can_leave_in_a_pause() -> None:
    """The pending read of the next event is cancelled before the events are closed."""
    runs = RunManager()
    model = ScriptedModel([tool_call("hurry", call_id="call_1")])
    live = runs.start(Agent("helper", model=model, tools=[hurry]), "Go.")
    frames = frames_of(live, vercel.VercelEncoder())
    async for frame in frames:
        if b"step 9" in frame:
            break
    await frames.aclose()
    await runs.aclose()


async def test_a_page_that_leaves_at_once_leaves_no_run() -> None:
    """This holds even before the first part of the answer."""
    runs = RunManager()
    model = ScriptedModel([tool_call("wait_for_ever", call_id="call_1")])
    app = vercel.app(Agent("helper", model=model, tools=[wait_for_ever]), runs=runs)
    page = Exchange(app, "POST", "/", body())
    await page.leave()
    for live in await runs.list():
        await live.wait()
        assert live.status == "cancelled"
    await runs.aclose()


async def test_stopping_without_a_run_is_not_an_error() -> None:
    app = vercel.app(SCENARIOS["plain"].make())
    assert (await ask(app, "POST", "/chat/stop", {})).json == {"stopped": False}
    await app.aclose()


async def test_the_app_can_be_mounted() -> None:
    """The path of a chat can end with its name or with a slash."""
    from starlette.applications import Starlette
    from starlette.routing import Mount

    chat = vercel.app(Agent("helper", model=ScriptedModel(["Hi.", "Ho."]), tools=[crawl]))
    site = Starlette(routes=[Mount("/api/chat", chat)])
    assert text(sent(await ask(site, "POST", "/api/chat/", body()))) == "Hi."
    again = await ask(site, "GET", "/api/chat/chat/stream")
    assert text(sent(again)) == "Hi."
    await chat.aclose()


def test_only_an_agent_can_be_served() -> None:
    with pytest.raises(UserError, match="expected an Agent, got list"):
        vercel.app(cast("Any", [add]))
