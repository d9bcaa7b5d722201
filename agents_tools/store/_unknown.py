"""An event of a type that this program does not know, as what it is."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import UserError
from agents_tools.events import OBJECT, TEXT, Event, NullEvent, event_from_dict, field

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["UnknownEvent", "event_of"]

_ENVELOPE: Final[tuple[str, ...]] = (
    *("v", "id", "seq", "timestamp", "source", "cause"),
    *("path", "tool_name", "tool_call_id"),
)
_MOST_KINDS: Final = 256


class UnknownEvent(Event):
    """Stands for a stored event whose class is not registered here, or has other fields here.

    Its `type` is the one that was stored, and `to_dict` gives the stored form unchanged, so that it
    can be shown, sent on and exported. It is never part of a conversation.

    Args:
        wire: The stored form.
        problem: Why it could not be read as an event of its type.
    """

    wire: Mapping[str, Any] = field(OBJECT)
    problem: str = field(TEXT, default="")

    def to_dict(self) -> dict[str, Any]:
        """Give the stored form."""
        wire: dict[str, Any] = dict.fromkeys(_ENVELOPE)
        return {**wire, **self.wire, "id": self.id}


def event_of(wire: dict[str, Any]) -> Event:
    """Make an event from its stored form; of what cannot be read as one, an `UnknownEvent`."""
    try:
        return event_from_dict(wire)
    except UserError as error:
        return _unknown(wire, str(error))


def _unknown(wire: dict[str, Any], problem: str) -> Event:
    envelope = {key: wire[key] for key in _ENVELOPE if key in wire}
    try:
        known: Event = NullEvent.from_dict({**envelope, "type": NullEvent.type})
    except UserError:
        known = NullEvent()
    event = _class_of(str(wire.get("type")))(wire, problem)
    identity = {"id": known.id, "seq": known.seq, "timestamp": known.timestamp}
    return event.replace(**identity, cause=known.cause, origin=known.origin)


@lru_cache(_MOST_KINDS)
def _class_of(kind: str) -> type[UnknownEvent]:
    """Make the class whose `type` this is: `type` belongs to the class of an event."""
    return type("UnknownEvent", (UnknownEvent,), {"type": kind, "__module__": __name__})
