"""check_events: the rules of event streams."""

from __future__ import annotations

from itertools import count
from typing import ClassVar

import pytest

from agents_tools.events import (
    ActionEvent,
    Event,
    GapEvent,
    NotifyStreamEvent,
    Origin,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.events.base import event_class
from agents_tools.testing import EventLawError, check_events


def stamped(*events: tuple[Event, str]) -> list[Event]:
    """Stamp events with their paths, in this order."""
    numbers = count()
    return [event.stamped(origin(path), next(numbers)) for event, path in events]


def origin(path: str) -> Origin:
    """Return the origin of a call from its path; the tool has the name of the call."""
    parts = tuple(path.split("/")) if path else ()
    return Origin(f"tool_{parts[-1]}" if parts else None, parts[-1] if parts else None, parts)


def start(path: str) -> tuple[Event, str]:
    """Return the start event of a call."""
    return ToolStreamStartEvent({}), path


def end(path: str) -> tuple[Event, str]:
    """Return the end event of a call."""
    return ToolStreamEndEvent("ok", 0.5), path


def line(path: str, text: str = "hello") -> tuple[Event, str]:
    """Return a display event of a call."""
    return NotifyStreamEvent(text), path


def broken(events: list[Event], *, brackets: bool = True) -> EventLawError:
    """Return the error for events that break a law."""
    with pytest.raises(EventLawError) as caught:
        check_events(events, brackets=brackets)
    return caught.value


def test_a_valid_run_passes() -> None:
    """Nested and parallel calls, items, attempts and gaps are all valid."""
    events = stamped(
        (RunStartedEvent("run", "agent"), ""),
        (RawResponseStreamEvent({"delta": "x"}), ""),
        (RunItemStreamEvent("tool_called", {"call_id": "a"}), ""),
        start("a"),
        start("b"),
        line("a"),
        start("a/c"),
        (RunStartedEvent("inner", "sub"), "a"),
        (ToolAttemptEvent(1, "it broke", 0.1), "a/c"),
        (RunItemStreamEvent("tool_output", {"call_id": "c"}), "a"),
        (ToolProgressEvent(1, 2), "b"),
        end("a/c"),
        end("b"),
        line("a"),
        end("a"),
        (RunFinishedEvent("ok"), ""),
    )
    events[9] = events[9].replace(origin=Origin("tool_c", "c", ("a",)))
    events.insert(6, GapEvent(3).replace(seq=-1))
    check_events(events)


def test_no_events_are_valid() -> None:
    """A tool with hidden brackets can emit nothing at all."""
    check_events([])


def test_any_iterable_is_read() -> None:
    """Events often come from a generator."""
    check_events(iter(stamped(start("a"), end("a"))))


def test_the_error_names_the_law_the_event_and_the_reason() -> None:
    events = stamped(start("a"), end("a"), line("a", "late"))
    error = broken(events)
    assert isinstance(error, AssertionError)
    assert (error.index, error.event) == (2, events[2])
    assert str(error) == (
        "Broken law: no event of a call comes after its end. At event 2, "
        "NotifyStreamEvent(data='late', seq=2, path='a'): call 'a' ended at event 1."
    )


@pytest.mark.parametrize(
    ("events", "law", "index"),
    [
        pytest.param(stamped(start("a")), "every call that starts also ends", None, id="no end"),
        pytest.param(
            stamped(end("a")), "every call on a path was started before", 0, id="no start"
        ),
        pytest.param(stamped(start("a"), start("a")), "a call starts once", 1, id="two starts"),
        pytest.param(
            stamped(start("a"), end("a"), end("a")),
            "no event of a call comes after its end",
            2,
            id="two ends",
        ),
        pytest.param(
            stamped(start("a"), end("a"), start("a")),
            "no event of a call comes after its end",
            2,
            id="started again",
        ),
        pytest.param(
            stamped(start("a"), end("a"), line("a/b")),
            "no event of a call comes after its end",
            2,
            id="child after the end of its parent",
        ),
        pytest.param(
            stamped(start("a"), start("a/b"), end("a"), end("a/b")),
            "a call ends before its parent call",
            2,
            id="parent ends first",
        ),
        pytest.param(
            stamped(line("a"), start("a"), end("a")),
            "every call on a path was started before",
            0,
            id="event before the start",
        ),
        pytest.param(
            stamped(start("a/b"), end("a/b")),
            "every call on a path was started before",
            0,
            id="parent not started",
        ),
        pytest.param(
            stamped((ToolStreamStartEvent({}), "")),
            "every call has an id on its path",
            0,
            id="start without a path",
        ),
        pytest.param(
            [NotifyStreamEvent("x")],
            "every event was stamped",
            0,
            id="not stamped",
        ),
        pytest.param(
            [NotifyStreamEvent("x").stamped(origin(""), -1)],
            "every event was stamped",
            0,
            id="no seq",
        ),
        pytest.param(
            [NotifyStreamEvent("x").stamped(origin(""), seq) for seq in (1, 2, 2)],
            "seq strictly increases",
            2,
            id="seq repeated",
        ),
        pytest.param(
            [NotifyStreamEvent("x").stamped(origin(""), seq) for seq in (2, 1)],
            "seq strictly increases",
            1,
            id="seq falls",
        ),
        pytest.param(
            [
                NotifyStreamEvent("x").stamped(origin(""), seq).replace(id=number)
                for seq, number in ((0, 5), (1, 5))
            ],
            "id strictly increases",
            1,
            id="id repeated",
        ),
    ],
)
def test_each_law_is_checked(events: list[Event], law: str, index: int | None) -> None:
    """A checker that accepts one of these would hide the bug in every run."""
    error = broken(events)
    assert (error.law, error.index) == (law, index)


def test_events_must_carry_the_id_and_tool_of_their_call() -> None:
    """A UI would otherwise show them in a wrong place."""
    events = stamped(start("a"), line("a"), end("a"))
    events[1] = events[1].replace(origin=Origin("tool_a", "b", ("a",)))
    assert broken(events).law == "the path of an event ends with the id of its call"
    events[1] = events[1].replace(origin=Origin("other", "a", ("a",)))
    assert broken(events).law == "a call has one tool"


def test_display_events_are_never_durable() -> None:
    """Durable events become history, which the model reads."""

    @event_class
    class Confused(Event):
        type = "confused_event"
        durable: ClassVar[bool] = True
        droppable: ClassVar[bool] = True

        text: str

    class DurableNote(NotifyStreamEvent):
        durable: ClassVar[bool] = True

    for event in (Confused("x"), DurableNote("x")):
        assert broken(stamped((event, ""))).law == "events for display are not durable"


def test_calls_with_hidden_brackets_can_emit_events() -> None:
    """`enable_bracketing=False` only removes start and end."""
    events = stamped(line("a"), line("a/b"), (ActionEvent("K", {}), "a"), start("c"), end("c"))
    check_events(events, brackets=False)
    assert broken(events).law == "every call on a path was started before"


@pytest.mark.parametrize(
    ("events", "law"),
    [
        (stamped(start("a")), "every call that starts also ends"),
        (stamped(end("a")), "every call that ends was started"),
        (stamped(start("a"), end("a"), line("a")), "no event of a call comes after its end"),
        (stamped(line("x"), start("x/a"), start("x/a")), "a call starts once"),
    ],
)
def test_hidden_brackets_do_not_relax_other_laws(events: list[Event], law: str) -> None:
    """Calls with a start event are still checked."""
    assert broken(events, brackets=False).law == law
