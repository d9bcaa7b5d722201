"""What type checkers know of events: constructors, fields that are frozen, and exhaustive matches."""

from __future__ import annotations

from typing import Any, Literal, assert_never, assert_type

from agents_tools import ActionEvent, Event, NotifyStreamEvent, ToolStreamEndEvent
from agents_tools.events import AnyEvent, RichEvent, register_event


@register_event
class ThoughtEvent(Event):
    """An event class of an application."""

    type = "acme_thought_event"

    text: str
    level: Literal["low", "high"] = "low"


@register_event
class PlanEvent(RichEvent[list[str]]):
    """An event class that represents an object of an application."""

    type = "acme_plan_event"

    steps: list[str]


thought = ThoughtEvent("why", level="high")
assert_type(thought.text, str)
assert_type(thought.replace(text="how"), ThoughtEvent)
assert_type(ThoughtEvent.from_dict(thought.to_dict()), ThoughtEvent)
assert_type(PlanEvent(["a"]).value, list[str])
assert_type(ActionEvent[int]("K", {}).value, int)
ToolStreamEndEvent(status="ok", duration=1.5)

ThoughtEvent()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
ThoughtEvent("a", level="mid")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
ThoughtEvent("a", seq=3)  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
NotifyStreamEvent(3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
thought.text = "b"  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]
thought.seq = 3  # type: ignore[misc] # pyright: ignore[reportAttributeAccessIssue]


def incomplete(event: AnyEvent) -> Any:
    """Handle one kind only."""
    match event:
        case NotifyStreamEvent():
            return event.data
        case _:
            assert_never(event)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
