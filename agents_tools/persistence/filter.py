"""Filter events by type, source, time and content."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agents_tools.errors import UserTypeError

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.envelope import EventSource

__all__ = ["EventFilter", "payload_text", "search_text"]

_ENVELOPE: Final = (
    *("v", "type", "id", "seq", "timestamp", "source", "cause"),
    *("path", "tool_name", "tool_call_id"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """A filter for events. A field that is `None` matches any event.

    Args:
        types: Match events with one of these wire types, such as `message_event`.
        sources: Match events from one of these sources.
        cause: Match events that the event with this id caused.
        tool_call_id: Match events of this tool call.
        tool_name: Match events of this tool.
        since: Match events at or after this time, in seconds since 1970.
        until: Match events at or before this time, in seconds since 1970.
        text: Match events with this text in the JSON of their payload, ignoring case.
        hidden: Match events that are hidden from users (`True`) or shown to them (`False`).
        run_id: Match events of this run.
    """

    types: tuple[str, ...] | None = None
    sources: tuple[EventSource, ...] | None = None
    cause: int | None = None
    tool_call_id: str | None = None
    tool_name: str | None = None
    since: float | None = None
    until: float | None = None
    text: str | None = None
    hidden: bool | None = None
    run_id: str | None = None

    def __post_init__(self) -> None:
        """Refuse a string instead of a tuple, because it would be read as single characters."""
        for name in ("types", "sources"):
            if isinstance(getattr(self, name), str):
                raise UserTypeError(
                    f"EventFilter.{name} is a string: expected a tuple, got "
                    f"{getattr(self, name)!r}."
                )

    def accepts(self, event: Event) -> bool:
        """Return whether an event matches."""
        # The cheap conditions come first.
        return (
            (self.types is None or event.type in self.types)
            and (self.sources is None or event.source in self.sources)
            and (self.cause is None or event.cause == self.cause)
            and (self.tool_call_id is None or event.tool_call_id == self.tool_call_id)
            and (self.tool_name is None or event.tool_name == self.tool_name)
            and (self.since is None or event.timestamp >= self.since)
            and (self.until is None or event.timestamp <= self.until)
            and (self.hidden is None or getattr(event, "hidden", False) == self.hidden)
            and (self.run_id is None or getattr(event, "run_id", None) == self.run_id)
            and (self.text is None or search_text(self.text) in payload_text(event))
        )


def payload_text(event: Event) -> str:
    """Return the JSON of the payload of an event, with case removed for a search."""
    wire = event.to_dict()
    for key in _ENVELOPE:
        del wire[key]
    return json.dumps(wire, ensure_ascii=False).casefold()


def search_text(text: str) -> str:
    """Return a text as it appears in the result of `payload_text`."""
    return json.dumps(text, ensure_ascii=False)[1:-1].casefold()
