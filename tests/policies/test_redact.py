"""Redacted text appears in no result, event or message."""

from __future__ import annotations

import asyncio
import re
import threading
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, strategies as st
from pydantic import BaseModel

from agents_tools import (
    Agent,
    Event,
    FunctionTool,
    NotifyStreamEvent,
    Runner,
    ToolContext,
    ToolError,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
    ToolTimeoutError,
    UserError,
    function_tool,
    listen,
    streaming_tool,
)
from agents_tools.events.base import event_class
from agents_tools.policies import needs_approval, redact, retry, timeout
from agents_tools.policies._redact import WINDOW, _RedactionRules, _TextBuffer
from agents_tools.testing import ScriptedModel, tool_call

CARD = r"\b\d{4}( ?\d{4}){3}\b"
NUMBER = "4111 1111 1111 1111"


class Customer(BaseModel):
    name: str
    card: str


@dataclass
class Payment:
    cards: list[str]


VALUES: dict[str, Any] = {
    "text": f"card {NUMBER}.",
    "number": 4111111111111111,
    "list": ["a", NUMBER],
    "number as a key": {4111111111111111: 1},
    "keys": {NUMBER: 1, "x": {"y": [NUMBER]}},
    "model": Customer(name="Anna", card=NUMBER),
    "models": ["a", {"b": Customer(name="Anna", card=NUMBER)}],
    "dataclass": Payment([NUMBER]),
    "set": {NUMBER},
    "bytes": NUMBER.encode(),
    "iterator": iter([NUMBER]),
    "block": ToolOutputText(NUMBER),
    "blocks": [ToolOutputText(NUMBER), ToolOutputImage(url=f"https://x/{NUMBER}")],
    "result": ToolResult(content=NUMBER, structured={"card": NUMBER}),
    "result of a model": ToolResult(content=None, structured=Customer(name="A", card=NUMBER)),
}


def holds(value: Any) -> bool:
    shown = repr(value) + str(getattr(value, "to_dict", str)())
    return re.search(r"4111 ?1111", shown) is not None


@pytest.mark.parametrize("name", VALUES)
async def test_redacted_text_is_in_no_value_and_no_output(name: str) -> None:
    """Neither for the application nor for the model."""

    @redact(CARD)
    @function_tool
    async def pay() -> Any:
        return VALUES[name]

    outcome = await pay.call(None, "{}")
    assert outcome.status == "ok"
    assert "[redacted]" in f"{outcome.output} {outcome.value}"
    assert not holds(outcome.output)
    assert not holds(outcome.value)


def returning(value: Any) -> FunctionTool:
    """Return a tool that returns one object."""
    return function_tool(lambda: value, name_override="same")


async def test_a_value_without_a_match_stays_the_same_object() -> None:
    """Nothing is copied or converted without need."""
    for value in (Customer(name="Anna", card="none"), ["a", {"b": 1}], "text", 7, b"\xff", None):
        assert await redact(CARD)(returning(value)).invoke() is value


async def test_redacted_text_is_in_no_error_message() -> None:
    @redact(CARD, replacement="<card>")
    @function_tool
    async def pay(how: str) -> str:
        raise ToolError(f"no {NUMBER}") if how == "told" else ValueError(NUMBER)

    assert await pay.on_invoke_tool(None, '{"how": "told"}') == "no <card>"
    assert not holds((await pay.call(None, '{"how": "crash"}')).output)


async def events_and_outcome(tool: Any, args: str = "{}") -> tuple[list[Event], Any]:
    async with listen() as events:
        outcome = await tool.call(None, args)
    return list(events), outcome


async def test_redacted_text_is_in_no_event_of_the_call_or_of_nested_calls() -> None:
    """Notes, progress, artifacts, and arguments of nested calls."""

    @function_tool
    async def inner(ctx: ToolContext[Any], card: str) -> str:
        ctx.notify(f"inner has {card}")
        return card

    @redact(CARD)
    @retry(2)
    @function_tool
    async def outer(ctx: ToolContext[Any]) -> str:
        ctx.notify(f"got {NUMBER}")
        ctx.progress(1, 2, f"charging {NUMBER}")
        ctx.artifact("bill.txt", f"card: {NUMBER}", mime_type="text/plain")
        ctx.artifact("bill.bin", f"card: {NUMBER}".encode())
        await inner.invoke(card=NUMBER)
        return "paid"

    events, outcome = await events_and_outcome(outer)
    assert outcome.output == "paid"
    assert len(events) == 9
    assert not [event for event in events if holds(event)]
    numbers = [event.seq for event in events]
    assert numbers == sorted(numbers)


async def test_redacted_text_is_not_in_the_arguments_of_the_start_event() -> None:
    """Not even if the call is refused; the tool and the approver get the original."""
    approved: list[str] = []

    def rule(_: Any, arguments: dict[str, Any]) -> bool:
        approved.append(arguments["card"])
        return False

    @needs_approval(rule)
    @redact(CARD)
    @function_tool
    async def charge(card: str) -> str:
        return f"{len(card)} digits"

    events: list[Event] = []
    outcome = await charge.call(ToolContext(emit=events.append), f'{{"card": "{NUMBER}"}}')
    assert (outcome.output, approved) == ("19 digits", [NUMBER])
    bad = await charge.call(ToolContext(emit=events.append), f'{{"card": ["{NUMBER}"]}}')
    assert bad.status == "invalid_args"
    assert not holds(bad.output)
    assert len(events) == 4
    assert not any(map(holds, events))


async def test_late_events_of_an_abandoned_attempt_are_redacted() -> None:
    """The thread of a sync tool cannot be stopped."""
    events: list[Event] = []
    again, said = threading.Event(), threading.Event()

    @retry(2, on=ToolTimeoutError, idempotent=True, backoff=0)
    @redact("secret")
    @timeout(0.05)
    @function_tool
    def work(ctx: ToolContext[Any]) -> str:
        if ctx.attempt == 1:
            assert again.wait(5)
            ctx.notify("a secret")
            said.set()
            return "too late"
        again.set()
        assert said.wait(5)
        return "done"

    late = asyncio.Event()
    loop = asyncio.get_running_loop()

    def record(event: Event) -> None:
        events.append(event)
        if isinstance(event, NotifyStreamEvent):
            loop.call_soon_threadsafe(late.set)

    patient = timeout(20)(work)
    await patient.call(ToolContext(emit=record), "{}")
    await asyncio.wait_for(late.wait(), 5)
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == [
        "a [redacted]"
    ]


async def test_a_person_can_change_the_arguments_of_a_redacted_call() -> None:
    """They are prepared again, and events are redacted once."""

    @needs_approval
    @redact(lambda text: text.replace("x", "xx"))
    @function_tool
    async def say(ctx: ToolContext[Any], text: str) -> str:
        ctx.notify(text)
        return "said"

    model = ScriptedModel([tool_call("say", text="-"), "done"])
    agent = Agent("Helper", tools=[say], model=model)
    waiting = await Runner.run(agent, "hi")
    state = waiting.to_state()
    state.approve(waiting.interruptions[0], arguments='{"text": "x"}')
    async with listen() as events:
        await Runner.run(agent, state)
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == ["xx"]


@pytest.mark.parametrize("fails", [False, True])
async def test_a_failing_redact_function_withholds_the_whole_text(
    fails: bool, caplog: pytest.LogCaptureFixture
) -> None:
    """The call still gets an answer; an empty one is safer than a leak."""

    def broken(text: str) -> str:
        raise RuntimeError(text)

    @redact(broken)
    @function_tool
    async def look() -> str:
        if fails:
            raise ValueError(NUMBER)
        return NUMBER

    outcome = await look.call(None, "{}")
    assert outcome.status == "tool_error"
    assert outcome.output == "Tool 'look' failed."
    assert "A policy of tool 'look' failed" in caplog.text


@event_class
class Paid(Event):
    """A custom event of an application."""

    type = "test_paid"

    card: int
    place: str = ""


async def test_an_event_that_cannot_be_redacted_is_dropped() -> None:
    """A text cannot replace a number."""

    @redact(CARD)
    @function_tool
    async def pay(ctx: ToolContext[Any]) -> str:
        ctx.emit(Paid(card=4111111111111111))
        ctx.emit(Paid(card=7, place=NUMBER))
        ctx.progress(1, total=2)
        return "paid"

    events: list[Event] = []
    await pay.call(ToolContext(emit=events.append), "{}")
    assert not any(map(holds, events))
    assert [event.place for event in events if isinstance(event, Paid)] == ["[redacted]"]
    assert len(events) == 4


async def test_matches_across_deltas_are_redacted() -> None:
    """Streamed text is searched as one text, and arrives complete."""
    text = f"before {NUMBER} between {NUMBER} after"

    @redact(CARD)
    @streaming_tool
    async def pay() -> AsyncIterator[Any]:
        for piece in (text[at : at + 3] for at in range(0, len(text), 3)):
            yield NotifyStreamEvent(piece, is_delta=True)
        yield NotifyStreamEvent("a line")
        yield "done"

    events, _ = await events_and_outcome(pay)
    assert not [event for event in events if holds(event)]
    said = [event for event in events if isinstance(event, NotifyStreamEvent)]
    assert "".join(event.data for event in said if event.is_delta) == (
        "before [redacted] between [redacted] after"
    )
    assert said[-1].data == "a line"
    assert events[0].type == "tool_stream_start_event"
    assert events[-1].type == "tool_stream_end_event"
    numbers = [event.seq for event in events]
    assert numbers == sorted(set(numbers))


async def test_long_texts_are_still_streamed() -> None:
    """Only the end is held back."""
    lengths: list[int] = []

    @redact(CARD)
    @function_tool
    async def write(ctx: ToolContext[Any]) -> str:
        for count in range(100):
            ctx.notify("x" * 10, is_delta=True)
            lengths.append(sum(len(event.data) for event in events if hasattr(event, "data")))
            del count
        return "done"

    events: list[Any] = []
    context = ToolContext[Any](emit=events.append)
    await write.call(context, "{}")
    assert lengths[50] >= 500 - WINDOW
    assert sum(len(event.data) for event in events if hasattr(event, "data")) == 1_000


async def test_texts_of_nested_calls_are_searched_separately() -> None:
    """A match cannot span the texts of two calls."""

    @function_tool
    async def inner(ctx: ToolContext[Any]) -> str:
        ctx.notify("4111 1111 ", is_delta=True)
        return ""

    @redact(CARD)
    @function_tool
    async def outer(ctx: ToolContext[Any]) -> str:
        await inner.invoke()
        ctx.notify("1111 1111", is_delta=True)
        await inner.invoke()
        return ""

    events, _ = await events_and_outcome(outer)
    said = [
        (event.tool_name, event.data) for event in events if isinstance(event, NotifyStreamEvent)
    ]
    assert sorted(said) == [("inner", "4111 1111 ")] * 2 + [("outer", "1111 1111")]


async def test_the_events_of_an_inner_agent_are_redacted() -> None:
    """Its items, its text deltas, and its answer."""
    inner = ScriptedModel([f"The card is {NUMBER}, thank you."])
    helper = redact(CARD)(Agent("Helper", model=inner).as_tool("helper", "Helps."))
    outer = ScriptedModel([tool_call("helper", input="go"), "done"])
    run = Runner.run_streamed(Agent("Outer", tools=[helper], model=outer), "hi")
    events = [event async for event in run.stream_events()]
    assert [event for event in events if "[redacted]" in str(event.to_dict())]
    assert not [event for event in events if holds(event)]
    assert not holds(run.new_items)


async def test_a_function_can_redact() -> None:
    """It gets whole lines of streamed text."""

    def no_names(text: str) -> str:
        return text.replace("Anna", "A.")

    @redact(no_names, re.compile("bob", re.IGNORECASE))
    @function_tool
    async def tell(ctx: ToolContext[Any]) -> str:
        for piece in ("An", "na and B", "ob\nAn", "na"):
            ctx.notify(piece, is_delta=True)
        return "Anna and Bob"

    events, outcome = await events_and_outcome(tell)
    assert outcome.output == "A. and [redacted]"
    said = "".join(event.data for event in events if isinstance(event, NotifyStreamEvent))
    assert said == "A. and [redacted]\nA."


async def test_a_redact_function_that_returns_no_text_is_an_error() -> None:
    """The result is withheld."""
    tool = redact(lambda text: None)(function_tool(lambda: "secret", name_override="tell"))  # type: ignore[arg-type,return-value]
    with pytest.raises(UserError, match="got a NoneType"):
        await tool.invoke()


async def test_an_event_whose_redaction_fails_is_dropped() -> None:
    """The call continues."""

    def choosy(text: str) -> str:
        if "bad" in text:
            raise ValueError(text)
        return text

    @redact(choosy)
    @function_tool
    async def tell(ctx: ToolContext[Any]) -> str:
        ctx.notify("good")
        ctx.notify("bad")
        ctx.notify("a bad end", is_delta=True)
        return "fine"

    events, outcome = await events_and_outcome(tell)
    assert outcome.output == "fine"
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == ["good"]


async def test_two_redact_policies_work_together() -> None:
    """The inner one is applied first."""

    @redact(r"\d+", replacement="#")
    @redact("Anna", replacement="A7")
    @function_tool
    async def tell(ctx: ToolContext[Any]) -> str:
        ctx.notify("Anna 42", is_delta=True)
        return "Anna 42"

    events, outcome = await events_and_outcome(tell)
    assert outcome.output == "A# #"
    assert [event.data for event in events if isinstance(event, NotifyStreamEvent)] == ["A# #"]


@pytest.mark.parametrize("what", [(), ("(",), ("x*",), (b"x",), (re.compile(b"x"),), (7,)])
def test_invalid_redact_options_are_refused(what: tuple[Any, ...]) -> None:
    """At construction."""
    with pytest.raises(UserError, match="redact"):
        redact(*what)


@given(
    parts=st.lists(
        st.sampled_from([NUMBER, "4111111111111111", " ", "x", "\n", "411", "words and more "]),
        max_size=60,
    ),
    data=st.data(),
)
def test_redaction_does_not_depend_on_how_the_text_is_split(
    parts: list[str], data: st.DataObject
) -> None:
    text = "".join(parts)
    rules = _RedactionRules([r"\b\d{4}(?: ?\d{4}){3}\b"], "#")
    cuts = data.draw(st.lists(st.integers(0, len(text)), max_size=30).map(sorted))
    pieces = [text[a:b] for a, b in zip([0, *cuts], [*cuts, len(text)], strict=True)]
    one = _TextBuffer(rules)
    one.event = NotifyStreamEvent("", is_delta=True)
    said = "".join(one.add(piece) for piece in pieces)
    said += "".join(event.data for event in one.end())  # type: ignore[attr-defined]
    assert said == rules.of_text(text)
