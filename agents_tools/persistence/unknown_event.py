"""Stored events of types that this program does not know."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time by `payload_fields`
from typing import Any, Final

from agents_tools.errors import UserError
from agents_tools.events.base import Event, event_class
from agents_tools.events.kinds import NullEvent
from agents_tools.events.registry import event_from_dict

__all__ = ["UnknownEvent", "event_of"]

_ENVELOPE: Final[tuple[str, ...]] = (
    *("v", "id", "seq", "timestamp", "source", "cause"),
    *("path", "tool_name", "tool_call_id"),
)


@event_class
class UnknownEvent(Event):
    """A stored event whose class is not registered, or whose fields do not fit its class.

    Its `type` is the stored type, and `to_dict` returns the stored form unchanged, so you can show,
    forward and export it. It is never part of a conversation.

    Args:
        wire: The stored form.
        problem: The error that reading it as an event of its type raised.
    """

    wire: Mapping[str, Any]
    problem: str = ""

    @property
    def type(self) -> str:  # type: ignore[override] # pyright: ignore[reportIncompatibleVariableOverride]
        """The stored type."""
        return str(self.wire.get("type"))

    def to_dict(self) -> dict[str, Any]:
        """Return the stored form."""
        wire: dict[str, Any] = dict.fromkeys(_ENVELOPE)
        return {**wire, **self.wire, "id": self.id}


def event_of(wire: dict[str, Any]) -> Event:
    """Return the event with this stored form; an `UnknownEvent` if it cannot be read."""
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
    event = UnknownEvent(wire, problem)
    identity = {"id": known.id, "seq": known.seq, "timestamp": known.timestamp}
    return event.replace(**identity, cause=known.cause, origin=known.origin)
