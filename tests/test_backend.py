"""Backends: the records on the wire, the reference, worker processes, and what both promise."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import FunctionTool, ToolContext, function_tool, notify, policies
from agents_tools.errors import ToolLostError, UserError
from agents_tools.events import MessageEvent
from agents_tools.execution import (
    BackendCapabilities,
    BackendHealth,
    CallEnvelope,
    CallEvent,
    Ledger,
    LocalBackend,
    ProcessBackend,
    ToolBackend,
    execute,
    pin_of,
    remote_tools,
    run_on,
)
from agents_tools.execution.protocol import CallLog, ended
from agents_tools.testing import BACKEND_TOOLS, BackendContract
from tests import isolated_tools as tools
from tests.scale import IS_FULL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.events import Event


@pytest.mark.requirement("F5", "F22", "F41", "S31")
class TestLocalBackend(BackendContract):
    """The reference implementation keeps the promises that it is to be an example of."""

    killable = False
    streams = 1_000 if IS_FULL else 200

    async def backend(self) -> ToolBackend:
        return LocalBackend(BACKEND_TOOLS)


class TestLocalBackendWithALimit(BackendContract):
    """Waiting in line changes none of them."""

    killable = False

    async def backend(self) -> ToolBackend:
        return LocalBackend(BACKEND_TOOLS, concurrency=2)


@pytest.mark.scaled
@pytest.mark.requirement("F5", "F22", "F25", "F41", "F45", "S31")
class TestProcessBackend(BackendContract):
    """Nor do processes."""

    kills = 50 if IS_FULL else 5
    streams = 1_000 if IS_FULL else 200

    async def backend(self) -> ToolBackend:
        return ProcessBackend("agents_tools.testing.backends:BACKEND_TOOLS")

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


# --- the records


@pytest.mark.requirement("S31")
def test_an_envelope_and_an_event_are_plain_json() -> None:
    """What is read is what was written; nothing in it is more than data."""
    envelope = CallEnvelope(
        call_id="c",
        attempt=2,
        tool="t",
        definition="d",
        arguments='{"v": 1, "__class__": "x"}',
        deadline=1.5,
        idempotency_key="k",
        idempotent=True,
        principal="p",
        trace={"traceparent": "00-1-2-01"},
        limits={"memory": 1},
        bare=True,
    )
    assert CallEnvelope.from_dict(json.loads(json.dumps(envelope.to_dict()))) == envelope
    event = CallEvent(call_id="c", attempt=1, seq=0, kind="event", time=1.0, payload={"v": 9})
    assert CallEvent.from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert CallEvent.from_dict({**event.to_dict(), "later": 1}) == event


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"v": 2}, "CallEnvelope.v has the wrong version: expected 1, got 2"),
        ({"tool": None}, "CallEnvelope.tool: expected str, got None"),
        ({"attempt": True}, "CallEnvelope.attempt: expected int, got True"),
        ({"trace": []}, "CallEnvelope.trace: expected Mapping"),
    ],
)
def test_what_is_no_envelope_is_told(change: dict[str, Any], message: str) -> None:
    data = CallEnvelope(call_id="c", tool="t").to_dict()
    with pytest.raises(UserError, match=message):
        CallEnvelope.from_dict({**data, **change})
    with pytest.raises(UserError, match=r"CallEnvelope\.call_id is missing"):
        CallEnvelope.from_dict({"v": 1})
    with pytest.raises(UserError, match="expected an object, got a list"):
        CallEnvelope.from_dict([])  # type: ignore[arg-type]
    event = CallLog("c", 1).create("accepted").to_dict()
    with pytest.raises(UserError, match=r"CallEvent\.kind is unknown: got 'shouted'"):
        CallEvent.from_dict({**event, "kind": "shouted"})


def test_a_pin_changes_with_the_name_and_the_schema_alone() -> None:
    assert pin_of(tools.add) == pin_of(tools.add.with_(description="other"))
    assert pin_of(tools.add) != pin_of(tools.add.with_(name="plus"))
    assert pin_of(tools.add) != pin_of(tools.whoami.with_(name="add"))


# --- the worker's side


async def said_by(tool: FunctionTool[..., Any], arguments: str = "{}", **more: Any) -> list[Any]:
    heartbeat = more.pop("heartbeat", None)
    envelope = CallEnvelope(call_id="c", tool=tool.name, arguments=arguments, **more)
    async with aclosing(execute(tool, envelope, heartbeat=heartbeat)) as events:
        return [event async for event in events]


async def test_a_long_silence_is_filled_with_signs_of_life() -> None:
    """A caller far away can tell a slow tool from a dead worker."""
    beats = asyncio.Event()

    @function_tool
    async def slow() -> str:
        await beats.wait()
        return "done"

    envelope = CallEnvelope(call_id="c", tool="slow")
    kinds: list[str] = []
    async with aclosing(execute(slow, envelope, heartbeat=0.01)) as events:
        async for event in events:
            kinds.append(event.kind)
            if kinds.count("heartbeat") == 3:
                beats.set()
    assert kinds[:5] == ["accepted", "started", *["heartbeat"] * 3]
    assert kinds[-1] == "result"


async def test_a_worker_can_have_an_object_of_its_own() -> None:
    backend = LocalBackend([tools.read_context], context=type("App", (), {"database": "its own"}))
    tool = run_on(backend)(tools.read_context)
    assert await tool.invoke(what="context", context=ToolContext("ours")) == "its own"


async def test_nobody_can_be_asked_at_a_worker() -> None:
    """A tool that was sent with its own policies keeps them: an approval is not skipped."""
    guarded = policies.needs_approval()(tools.add)
    events = await said_by(guarded, '{"a": 1, "b": 2}')
    assert events[-1].payload["status"] == "denied"
    events = await said_by(guarded, '{"a": 1, "b": 2}', bare=True)
    assert events[-1].payload["structured"] == 3


async def test_an_event_without_a_wire_form_does_not_end_the_call() -> None:
    @function_tool
    async def odd(context: ToolContext[Any]) -> str:
        context.emit(MessageEvent([float("nan")]))
        notify("after")
        return "done"

    events = await said_by(odd)
    assert [event.kind for event in events] == ["accepted", "started", "event", "result"]
    assert events[2].payload["data"] == "after"


@pytest.mark.requirement("F5")
async def test_a_tool_that_ignores_its_cancellation_is_not_waited_for() -> None:
    """The result is there at the deadline, whatever the tool does."""
    over = asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    events = await said_by(stubborn, deadline=time.time() + 0.05)
    assert events[-1].payload["status"] == "timeout"
    over.set()
    await asyncio.sleep(0)


# --- the caller's side


class Wire:
    """A backend that says what it is told to say."""

    name = "wire"
    capabilities = BackendCapabilities()

    def __init__(self, *said: CallEvent) -> None:
        self.said = said
        self.envelopes: list[CallEnvelope] = []

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        self.envelopes.append(envelope)
        for one in self.said:
            yield one

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        return False

    async def health(self) -> BackendHealth:
        return BackendHealth(ok=True)

    async def aclose(self) -> None: ...


def line(text: str, seq: int, attempt: int = 1) -> CallEvent:
    payload = notify_dict(text)
    return CallEvent(call_id="c", attempt=attempt, seq=seq, kind="event", time=0.0, payload=payload)


def notify_dict(text: str) -> dict[str, Any]:
    from agents_tools.events import NotifyStreamEvent

    return NotifyStreamEvent(text).to_dict()


def last(seq: int, attempt: int = 1, **payload: Any) -> CallEvent:
    whole = {"status": "ok", "output": "7", "structured": 7, "error": None, "metadata": None}
    return CallEvent(
        call_id="c",
        attempt=attempt,
        seq=seq,
        kind="result",
        time=0.0,
        payload={**whole, **payload},
    )


async def heard_from(*said: CallEvent) -> tuple[Any, list[tuple[str, Any]]]:
    heard: list[Event] = []
    tool = run_on(Wire(*said))(tools.add)
    outcome = await tool.call(ToolContext(emit=heard.append), '{"a": 1, "b": 2}')
    facts = {"notify_stream_event": "data", "gap_event": "dropped", "tool_attempt_event": "attempt"}
    inside = [(one.type, getattr(one, facts[one.type])) for one in heard[1:-1]]
    return outcome, inside


async def test_what_comes_twice_counts_once_and_what_is_missing_is_told() -> None:
    """Deduplicated by call, attempt and number; a reader sees where something was lost."""
    events = [line("a", 0), line("b", 1), line("a", 0), line("b", 1), line("e", 4), last(5)]
    outcome, inside = await heard_from(*events)
    assert outcome.value == 7
    assert inside == [
        ("notify_stream_event", "a"),
        ("notify_stream_event", "b"),
        ("gap_event", 2),
        ("notify_stream_event", "e"),
    ]


@pytest.mark.requirement("F45")
async def test_a_new_attempt_is_told_and_the_old_one_heard_no_more() -> None:
    """Numbers start again; what a lost worker still says is passed over."""
    again = CallEvent(call_id="c", attempt=2, seq=0, kind="restarted", time=0.0)
    events = [line("a", 0), again, line("late", 1, attempt=1), line("b", 1, 2), last(2, 2)]
    _, inside = await heard_from(*events)
    assert inside == [
        ("notify_stream_event", "a"),
        ("tool_attempt_event", 1),
        ("notify_stream_event", "b"),
    ]


async def test_a_stream_that_breaks_off_is_a_lost_call() -> None:
    outcome, _ = await heard_from(line("a", 0))
    assert (outcome.status, type(outcome.error)) == ("lost", ToolLostError)


@pytest.mark.parametrize(
    "status",
    ["invalid_args", "tool_error", "timeout", "cancelled", "denied", "overloaded", "lost"],
)
async def test_each_status_is_the_same_here(status: Any) -> None:
    """Statuses map one to one: `lost` stays `lost`."""
    outcome, _ = await heard_from(last(0, **ended(status, "why")))
    assert (outcome.status, str(outcome.error)) == (status, "why")


async def test_errors_keep_their_class_where_it_is_a_plain_one() -> None:
    """`retry(on=ConnectionError)` works as it does without the hop; nothing else is made."""
    for kind, found in (
        ("ConnectionError", ConnectionError),
        ("ValueError", ValueError),
        ("some.module.Error", UserError.__mro__[1]),
        ("KeyboardInterrupt", UserError.__mro__[1]),
        ("eval", UserError.__mro__[1]),
    ):
        outcome, _ = await heard_from(last(0, **ended("tool_error", "why", kind=kind)))
        assert isinstance(outcome.error, found), kind


async def test_an_envelope_says_what_the_call_knows() -> None:
    """A second attempt and a resumed run have the same key; trusted annotations count."""
    from agents_tools import ToolAnnotations

    wire = Wire(last(0))
    reading = tools.add.with_(annotations=ToolAnnotations(readOnlyHint=True))
    context = ToolContext(tool_call_id="c", run_id="r", deadline=time.monotonic() + 60)
    key = context.idempotency_key
    await run_on(wire)(reading).call(context, '{"a": 1, "b": 2}')
    sent = wire.envelopes[0]
    assert (sent.call_id, sent.idempotency_key, sent.attempt) == (key, key, 1)
    assert sent.idempotent
    assert sent.bare
    assert sent.definition == pin_of(tools.add)
    assert sent.deadline is not None
    await run_on(wire, name="other", idempotent=False)(reading).call(None, '{"a": 1, "b": 2}')
    sent = wire.envelopes[1]
    assert (sent.tool, sent.idempotent, sent.deadline) == ("other", False, None)
    assert sent.definition == pin_of(tools.add.with_(name="other"))


async def test_tools_known_by_their_definition_alone() -> None:
    """The worker's own policies apply; it is the one that validates."""
    backend = LocalBackend([tools.add, policies.needs_approval()(tools.whoami)])
    definition = {"name": "add", "description": "Adds.", "inputSchema": tools.add.json_schema}
    add, whoami = remote_tools(backend, [definition, tools.whoami])
    assert add.description == "Adds."
    assert await add.invoke(a=1, b=2) == 3
    assert (await add.call(None, '{"a": "x"}')).status == "invalid_args"
    assert (await whoami.call(None, "{}")).status == "denied"
    with pytest.raises(UserError, match="`name` and `inputSchema`"):
        remote_tools(backend, [{"name": "x"}])


def test_what_is_no_backend_and_no_tool_is_told() -> None:
    with pytest.raises(UserError, match="expects a backend"):
        run_on(object())  # type: ignore[arg-type]
    with pytest.raises(UserError, match="expects tools, got a function"):
        LocalBackend([len.__class__ and (lambda: 1)])
    with pytest.raises(UserError, match="Two tools of a backend have the name 'add'"):
        LocalBackend([tools.add, tools.add.with_()])

    class Holder:
        @run_on(LocalBackend([]))
        @function_tool
        def method(self, x: int) -> int:
            return x

    with pytest.raises(UserError, match="its instance, a Holder, cannot be sent"):
        Holder().method.invoke_sync(x=1)


# --- the ledger, and the line


@pytest.mark.requirement("F41")
async def test_strangers_do_not_get_each_others_answers() -> None:
    """A call is known by its principal and arguments too, not by its id alone."""
    ledger = Ledger()
    runs: list[str] = []

    async def once(**more: Any) -> int:
        envelope = CallEnvelope(call_id="c", tool="t", **more)
        log = CallLog("c", envelope.attempt)

        async def run() -> AsyncGenerator[CallEvent]:
            runs.append(envelope.arguments)
            yield log.create("result", {**ended("ok", ""), "structured": len(runs)})

        events = [event async for event in ledger.once(envelope, run)]
        return events[-1].payload["structured"]

    assert [await once(), await once()] == [1, 1]
    assert await once(principal="other") == 2
    assert await once(arguments='{"a": 1}') == 3
    assert await once(attempt=2) == 4
    assert [await once(), await once(principal="other")] == [1, 2]


@pytest.mark.requirement("F41")
async def test_who_makes_many_calls_pushes_out_their_own_answers() -> None:
    """Under the load of one principal the answers of another stay for their lost callers."""
    ledger = Ledger(max_calls=10)
    runs: list[str] = []

    async def once(call_id: str, principal: str) -> None:
        async def run() -> AsyncGenerator[CallEvent]:
            runs.append(call_id)
            yield CallLog(call_id, 1).create("result", ended("ok", ""))

        envelope = CallEnvelope(call_id=call_id, tool="t", principal=principal)
        assert [event.kind async for event in ledger.once(envelope, run)] == ["result"]

    quiet = [f"quiet {number}" for number in range(5)]
    for call_id in quiet:
        await once(call_id, "quiet")
    for number in range(100):
        await once(f"busy {number}", "busy")
    runs.clear()
    for call_id in [*quiet, "busy 99"]:
        await once(call_id, call_id.split()[0])
    assert runs == []
    await once("busy 1", "busy")
    assert runs == ["busy 1"]


async def test_a_full_backend_says_so_and_the_same_call_may_come_again() -> None:
    """`overloaded` means that nothing was run, so it is no answer to be remembered."""
    async with ProcessBackend(tools.ALL, workers=1, max_waiting=1) as backend:
        tool = run_on(backend)(tools.add)
        outcomes = await asyncio.gather(*(tool.call(None, '{"a": 1, "b": 2}') for _ in range(4)))
        counts = [outcome.status for outcome in outcomes]
        assert counts.count("overloaded") >= 1
        assert counts.count("ok") >= 1
        envelope = CallEnvelope(call_id="c", tool="add", arguments='{"a": 1, "b": 2}')
        ledger = Ledger()

        async def refused() -> AsyncGenerator[CallEvent]:
            yield CallLog("c", 1).create("result", ended("overloaded", "full"))

        for _ in range(2):
            events = [event async for event in ledger.once(envelope, refused)]
            assert events[-1].payload["status"] == "overloaded"
        events = [event async for event in ledger.once(envelope, lambda: backend.submit(envelope))]
        assert events[-1].payload["status"] == "ok"


async def test_a_closed_backend_takes_no_calls() -> None:
    for backend in (LocalBackend(tools.ALL), ProcessBackend(tools.ALL)):
        await backend.aclose()
        with pytest.raises(UserError, match="was closed"):
            await run_on(backend)(tools.add).invoke(a=1, b=2)
        assert not (await backend.health()).ok


async def test_a_call_that_was_accepted_before_the_end_gets_a_result_after_it() -> None:
    """A reader that paused is not left waiting for a backend that is no more."""
    for backend in (LocalBackend(tools.ALL), ProcessBackend(tools.ALL)):
        envelope = CallEnvelope(call_id="c", tool="add", arguments='{"a": 1, "b": 2}')
        async with aclosing(backend.submit(envelope)) as events:
            assert (await anext(events)).kind == "accepted"
            await backend.aclose()
            rest = [event async for event in events]
        assert rest[-1].payload["status"] == "cancelled"
