"""Which events are meant."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from agents_tools.errors import UserTypeError

if TYPE_CHECKING:
    from agents_tools.events import Event, EventSource

__all__ = ["EventFilter", "payload_text", "searched"]

_ENVELOPE: Final = (
    *("v", "type", "id", "seq", "timestamp", "source", "cause"),
    *("path", "tool_name", "tool_call_id"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class EventFilter:
    """Which events are meant; what is `None` does not matter.

    Args:
        types: They have one of these wire types, such as `message_event`.
        sources: They come from one of these.
        cause: They were led to by the event of this id.
        tool_call_id: They were said in this call.
        tool_name: They were said by this tool.
        since: They are not older, in seconds since 1970.
        until: They are not newer, in seconds since 1970.
        text: Their payload has this text somewhere in its JSON, in any case.
        hidden: Whether people are not shown them.
        run_id: They name this run.
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
        """Refuse a bare string where several are meant: it would be read letter by letter."""
        for name in ("types", "sources"):
            if isinstance(getattr(self, name), str):
                raise UserTypeError(
                    f"EventFilter.{name} takes a tuple, not the string {getattr(self, name)!r}."
                )

    def accepts(self, event: Event) -> bool:
        """Whether an event is meant; the cheap questions come first."""
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
            and (self.text is None or searched(self.text) in payload_text(event))
        )


def payload_text(event: Event) -> str:
    """Give the JSON of an event's payload as it is searched: without regard to case."""
    wire = event.to_dict()
    for key in _ENVELOPE:
        del wire[key]
    return json.dumps(wire, ensure_ascii=False).casefold()


def searched(text: str) -> str:
    """Give a text as it stands in such JSON."""
    return json.dumps(text, ensure_ascii=False)[1:-1].casefold()
