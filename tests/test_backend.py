"""Backends: wire records, LocalBackend, ProcessBackend, and the contract of both."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import time
from contextlib import aclosing
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, FunctionTool, Runner, ToolContext, function_tool, notify, policies
from agents_tools.agents import RunState
from agents_tools.content import ToolCallOutputItem
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
from agents_tools.execution.protocol import CallLog, result_payload
from agents_tools.testing import BACKEND_TOOLS, BackendContract, ScriptedModel, tool_call
from tests import isolated_tools as tools
from tests.scale import IS_FULL

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.agents import RunResultStreaming
    from agents_tools.events import Event


@pytest.mark.requirement("F5", "F22", "F41", "S31")
class TestLocalBackend(BackendContract):
    """LocalBackend, the reference implementation."""

    killable = False
    streams = 1_000 if IS_FULL else 200

    async def backend(self) -> ToolBackend:
        return LocalBackend(BACKEND_TOOLS)


class TestLocalBackendWithALimit(BackendContract):
    """A concurrency limit does not change the contract."""

    killable = False

    async def backend(self) -> ToolBackend:
        return LocalBackend(BACKEND_TOOLS, concurrency=2)


@pytest.mark.scaled
@pytest.mark.requirement("F5", "F22", "F25", "F41", "F45", "S31")
class TestProcessBackend(BackendContract):
    """The contract across processes."""

    kills = 50 if IS_FULL else 5
    streams = 1_000 if IS_FULL else 200

    async def backend(self) -> ToolBackend:
        return ProcessBackend("agents_tools.testing.backends:BACKEND_TOOLS")

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)


# --- wire records


@pytest.mark.requirement("S31")
def test_an_envelope_and_an_event_are_plain_json() -> None:
    """Reading returns what was written."""
    envelope = CallEnvelope(
        call_id="c",
        attempt=2,
        tool="t",
        definition="d",
        arguments='{"v": 1, "__class__": "x"}',
        deadline=1.5,
        idempotency_key="k",
        idempotent=True,
        trace={"traceparent": "00-1-2-01"},
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
def test_an_invalid_envelope_is_refused_with_a_reason(change: dict[str, Any], message: str) -> None:
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


def test_a_pin_depends_only_on_the_name_and_the_schema() -> None:
    assert pin_of(tools.add) == pin_of(tools.add.with_(description="other"))
    assert pin_of(tools.add) != pin_of(tools.add.with_(name="plus"))
    assert pin_of(tools.add) != pin_of(tools.whoami.with_(name="add"))


# --- the worker's side


async def events_from_worker(
    tool: FunctionTool[..., Any], arguments: str = "{}", **more: Any
) -> list[Any]:
    heartbeat = more.pop("heartbeat", None)
    envelope = CallEnvelope(call_id="c", tool=tool.name, arguments=arguments, **more)
    async with aclosing(execute(tool, envelope, heartbeat=heartbeat)) as events:
        return [event async for event in events]


async def test_a_worker_sends_heartbeats_during_a_long_silence() -> None:
    """A remote caller can distinguish a slow tool from a dead worker."""
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


async def test_a_worker_can_have_its_own_context_object() -> None:
    backend = LocalBackend([tools.read_context], context=type("App", (), {"database": "its own"}))
    tool = run_on(backend)(tools.read_context)
    assert await tool.invoke(what=".database", context=ToolContext("ours")) == "its own"


async def test_a_worker_denies_calls_that_need_approval() -> None:
    """A tool that is sent with its own policies keeps them, so an approval is not skipped."""
    guarded = policies.needs_approval()(tools.add)
    events = await events_from_worker(guarded, '{"a": 1, "b": 2}')
    assert events[-1].payload["status"] == "denied"
    events = await events_from_worker(guarded, '{"a": 1, "b": 2}', bare=True)
    assert events[-1].payload["structured"] == 3


async def test_an_event_without_a_wire_form_does_not_end_the_call() -> None:
    @function_tool
    async def odd(context: ToolContext[Any]) -> str:
        context.emit(MessageEvent([float("nan")]))
        notify("after")
        return "done"

    events = await events_from_worker(odd)
    assert [event.kind for event in events] == ["accepted", "started", "event", "result"]
    assert events[2].payload["data"] == "after"


@pytest.mark.requirement("F5")
async def test_a_tool_that_ignores_its_cancellation_is_not_waited_for() -> None:
    """The result is sent at the deadline, whatever the tool does."""
    over = asyncio.Event()

    @function_tool
    async def stubborn() -> str:
        while not over.is_set():
            try:
                await over.wait()
            except asyncio.CancelledError:
                continue
        return "at last"

    events = await events_from_worker(stubborn, deadline=time.time() + 0.05)
    assert events[-1].payload["status"] == "timeout"
    over.set()
    await asyncio.sleep(0)


# --- the caller's side


class FakeBackend:
    """A backend that sends prepared events."""

    name = "wire"
    capabilities = BackendCapabilities()

    def __init__(self, *events: CallEvent) -> None:
        self.events = events
        self.envelopes: list[CallEnvelope] = []

    async def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        self.envelopes.append(envelope)
        for one in self.events:
            yield one

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        return envelope in self.envelopes

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        return False

    async def health(self) -> BackendHealth:
        return BackendHealth(ok=True)

    async def aclose(self) -> None: ...


def text_event(text: str, seq: int, attempt: int = 1) -> CallEvent:
    payload = notify_dict(text)
    return CallEvent(call_id="c", attempt=attempt, seq=seq, kind="event", time=0.0, payload=payload)


def notify_dict(text: str) -> dict[str, Any]:
    from agents_tools.events import NotifyStreamEvent

    return NotifyStreamEvent(text).to_dict()


def result_event(seq: int, attempt: int = 1, **payload: Any) -> CallEvent:
    whole = {"status": "ok", "output": "7", "structured": 7, "error": None, "metadata": None}
    return CallEvent(
        call_id="c",
        attempt=attempt,
        seq=seq,
        kind="result",
        time=0.0,
        payload={**whole, **payload},
    )


async def call_with_events(*events: CallEvent) -> tuple[Any, list[tuple[str, Any]]]:
    emitted: list[Event] = []
    tool = run_on(FakeBackend(*events))(tools.add)
    outcome = await tool.call(ToolContext(emit=emitted.append), '{"a": 1, "b": 2}')
    facts = {"notify_stream_event": "data", "gap_event": "dropped", "tool_attempt_event": "attempt"}
    inside = [(one.type, getattr(one, facts[one.type])) for one in emitted[1:-1]]
    return outcome, inside


async def test_duplicate_events_are_dropped_and_missing_ones_reported() -> None:
    """Events are deduplicated by call, attempt and number; a gap event marks a loss."""
    events = [
        text_event("a", 0),
        text_event("b", 1),
        text_event("a", 0),
        text_event("b", 1),
        text_event("e", 4),
        result_event(5),
    ]
    outcome, inside = await call_with_events(*events)
    assert outcome.value == 7
    assert inside == [
        ("notify_stream_event", "a"),
        ("notify_stream_event", "b"),
        ("gap_event", 2),
        ("notify_stream_event", "e"),
    ]


@pytest.mark.requirement("F45")
async def test_a_new_attempt_is_reported_and_late_events_of_the_old_one_are_dropped() -> None:
    """Numbers restart with each attempt."""
    again = CallEvent(call_id="c", attempt=2, seq=0, kind="restarted", time=0.0)
    events = [
        text_event("a", 0),
        again,
        text_event("late", 1, attempt=1),
        text_event("b", 1, 2),
        result_event(2, 2),
    ]
    _, inside = await call_with_events(*events)
    assert inside == [
        ("notify_stream_event", "a"),
        ("tool_attempt_event", 1),
        ("notify_stream_event", "b"),
    ]


async def test_a_stream_that_ends_without_a_result_is_a_lost_call() -> None:
    outcome, _ = await call_with_events(text_event("a", 0))
    assert (outcome.status, type(outcome.error)) == ("lost", ToolLostError)


@pytest.mark.parametrize(
    "status",
    ["invalid_args", "tool_error", "timeout", "cancelled", "denied", "overloaded", "lost"],
)
async def test_each_remote_status_is_kept(status: Any) -> None:
    """Statuses map one to one: `lost` stays `lost`."""
    outcome, _ = await call_with_events(result_event(0, **result_payload(status, "why")))
    assert (outcome.status, str(outcome.error)) == (status, "why")


async def test_builtin_errors_keep_their_class() -> None:
    """`retry(on=ConnectionError)` works as without a backend; other classes are not created."""
    for kind, found in (
        ("ConnectionError", ConnectionError),
        ("ValueError", ValueError),
        ("some.module.Error", UserError.__mro__[1]),
        ("KeyboardInterrupt", UserError.__mro__[1]),
        ("eval", UserError.__mro__[1]),
    ):
        outcome, _ = await call_with_events(
            result_event(0, **result_payload("tool_error", "why", kind=kind))
        )
        assert isinstance(outcome.error, found), kind


async def test_an_envelope_contains_the_facts_of_the_call() -> None:
    """A second attempt and a resumed run have the same key; trusted annotations count."""
    from agents_tools import ToolAnnotations

    wire = FakeBackend(result_event(0))
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


async def test_a_tool_known_only_by_its_definition_can_be_called() -> None:
    """The worker validates the arguments and applies its own policies."""
    backend = LocalBackend([tools.add, policies.needs_approval()(tools.whoami)])
    definition = {"name": "add", "description": "Adds.", "inputSchema": tools.add.json_schema}
    add, whoami = remote_tools(backend, [definition, tools.whoami])
    assert add.description == "Adds."
    assert await add.invoke(a=1, b=2) == 3
    assert (await add.call(None, '{"a": "x"}')).status == "invalid_args"
    assert (await whoami.call(None, "{}")).status == "denied"
    with pytest.raises(UserError, match="`name` and `inputSchema`"):
        remote_tools(backend, [{"name": "x"}])


def test_an_invalid_backend_or_tool_is_refused() -> None:
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


# --- the result ledger and the queue


@pytest.mark.requirement("F41")
async def test_a_call_is_identified_by_its_arguments_and_attempt_too() -> None:
    """The same id with other arguments is another call, and each runs once."""
    ledger = Ledger()
    runs: list[str] = []

    async def once(**more: Any) -> int:
        envelope = CallEnvelope(call_id="c", tool="t", **more)
        log = CallLog("c", envelope.attempt)

        async def run() -> AsyncGenerator[CallEvent]:
            runs.append(envelope.arguments)
            yield log.create("result", {**result_payload("ok", ""), "structured": len(runs)})

        events = [event async for event in ledger.once(envelope, run)]
        return events[-1].payload["structured"]

    assert [await once(), await once()] == [1, 1]
    assert await once(arguments='{"a": 1}') == 2
    assert await once(attempt=2) == 3
    assert [await once(), await once(attempt=2)] == [1, 3]


@pytest.mark.requirement("F41")
async def test_a_ledger_forgets_its_oldest_results() -> None:
    """The memory of a worker is bounded; a call that was forgotten runs again."""
    ledger = Ledger(max_calls=10)
    runs: list[str] = []

    async def once(call_id: str) -> None:
        async def run() -> AsyncGenerator[CallEvent]:
            runs.append(call_id)
            yield CallLog(call_id, 1).create("result", result_payload("ok", ""))

        envelope = CallEnvelope(call_id=call_id, tool="t")
        assert ledger.has_call(envelope) is (call_id in known)
        assert [event.kind async for event in ledger.once(envelope, run)] == ["result"]
        assert ledger.has_call(envelope)

    known: list[str] = []
    for number in range(20):
        await once(f"{number}")
    known, runs = ["15"], []
    await once("15")
    assert runs == []
    await once("3")
    assert runs == ["3"]


def test_a_backend_without_room_for_waiting_calls_is_refused() -> None:
    """It would refuse every call, also while its workers are idle."""
    with pytest.raises(UserError, match="max_waiting= is invalid: expected a positive number"):
        ProcessBackend(tools.ALL, max_waiting=0)


async def test_a_full_backend_reports_overloaded_and_the_call_can_be_repeated() -> None:
    """`overloaded` means that nothing was run, so that result is not stored."""
    async with ProcessBackend(tools.ALL, workers=1, max_waiting=1) as backend:
        tool = run_on(backend)(tools.add)
        outcomes = await asyncio.gather(*(tool.call(None, '{"a": 1, "b": 2}') for _ in range(4)))
        counts = [outcome.status for outcome in outcomes]
        assert counts.count("overloaded") >= 1
        assert counts.count("ok") >= 1
        refusal = next(one.output for one in outcomes if one.status == "overloaded")
        assert "1 calls wait for a worker of 'processes'" in str(refusal)
        envelope = CallEnvelope(call_id="c", tool="add", arguments='{"a": 1, "b": 2}')
        ledger = Ledger()

        async def refused() -> AsyncGenerator[CallEvent]:
            yield CallLog("c", 1).create("result", result_payload("overloaded", "full"))

        for _ in range(2):
            events = [event async for event in ledger.once(envelope, refused)]
            assert events[-1].payload["status"] == "overloaded"
        events = [event async for event in ledger.once(envelope, lambda: backend.submit(envelope))]
        assert events[-1].payload["status"] == "ok"


async def test_a_closed_backend_accepts_no_calls() -> None:
    for backend in (LocalBackend(tools.ALL), ProcessBackend(tools.ALL)):
        await backend.aclose()
        with pytest.raises(UserError, match="was closed"):
            await run_on(backend)(tools.add).invoke(a=1, b=2)
        assert not (await backend.health()).ok


async def test_a_call_accepted_before_close_gets_a_result_after_it() -> None:
    """A reader that paused must not wait for a closed backend."""
    for backend in (LocalBackend(tools.ALL), ProcessBackend(tools.ALL)):
        envelope = CallEnvelope(call_id="c", tool="add", arguments='{"a": 1, "b": 2}')
        async with aclosing(backend.submit(envelope)) as events:
            assert (await anext(events)).kind == "accepted"
            await backend.aclose()
            rest = [event async for event in events]
        assert rest[-1].payload["status"] == "cancelled"


@pytest.mark.requirement("F41")
async def test_a_resumed_run_gets_the_result_of_a_call_that_its_backend_knows() -> None:
    """A state was saved while the call ran; the body of the call must not run again."""
    ran: list[int] = []
    entered, go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def pay() -> str:
        """Pay."""
        ran.append(1)
        entered.set()
        await go.wait()
        return "paid"

    backend = LocalBackend([pay])
    tools = [run_on(backend)(pay)]
    answers = [tool_call("pay", call_id="call_0123456789abcdef"), "Done."]
    first = Agent("Clerk", tools=tools, model=ScriptedModel(answers))
    run = Runner.run_streamed(first, "Pay.", run_id="order")
    reading = asyncio.create_task(_read(run))
    await asyncio.wait_for(entered.wait(), 10)
    state = RunState.from_json(run.to_state().to_json())
    go.set()
    await reading
    again = Agent("Clerk", tools=tools, model=ScriptedModel(["Done."]))
    result = await Runner.run(again, state)
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert [(item.status, item.output) for item in outputs] == [("ok", "paid")]
    assert ran == [1]


async def _read(run: RunResultStreaming) -> None:
    async for _ in run.stream_events():
        pass
