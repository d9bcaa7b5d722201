"""How much of one event the playground keeps: what is larger is cut, and says so."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any, cast

from agents_tools.events import ToolArtifactEvent
from agents_tools.stream import EventStream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from agents_tools.events import Event

__all__ = ["CUT", "BoundedStream", "bounded"]

_MOST = 8 << 20
"""Characters of the payload of one event."""
_BEGINNING = 1_000
"""Characters that are kept of a text that is too long."""
_FEW = 100
CUT = "[The playground has left out "
"""How the text begins that stands for what is not kept."""


class BoundedStream(EventStream):
    """A stream that keeps no more of an event than people look at."""

    def publish(self, event: Event, /) -> Event:
        """Keep an event, or what fits of it."""
        return super().publish(bounded(event))


def bounded(event: Event, most: int = _MOST) -> Event:
    """Give an event, or a copy that holds less where it is too large.

    Args:
        event: The event.
        most: How many characters of text its payload may hold, more or less.
    """
    changes: dict[str, Any] = {}
    for field, _ in event.__class__.__event_payload__:
        value = getattr(event, field.name)
        if _size(value, most) > most:
            changes[field.name] = _cut(value, most)
    if not changes:
        return event
    if isinstance(event, ToolArtifactEvent) and "data" in changes:
        changes["mime_type"] = "text/plain"
    if hasattr(event, "attached"):
        changes["attached"] = None  # what the payload was made of
    return event.replace(**changes)


def _size(value: Any, most: int) -> int:
    """Give about how many characters a value takes as JSON, or some number above `most`."""
    if isinstance(value, (str, bytes)):
        return len(value)
    parts: Iterable[Any] = ()
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        parts = chain(members.keys(), members.values())
    elif isinstance(value, (list, tuple)):
        parts = cast("Iterable[Any]", value)
    size = 8
    for part in parts:
        size += _size(part, most - size)
        if size > most:
            break
    return size


def _cut(value: Any, most: int) -> Any:
    """Give what fits of a value that may be too large."""
    if _size(value, most) <= most:
        return value
    if isinstance(value, bytes):
        return _left_out(len(value), "bytes")
    if isinstance(value, str):
        left = len(value) - _BEGINNING
        return f"{value[:_BEGINNING]}\n{_left_out(left, 'characters')}"
    if isinstance(value, Mapping):
        return _cut_mapping(cast("Mapping[str, Any]", value), most)
    kept: list[Any] = []
    for number, member in enumerate(value):
        kept.append(_cut(member, most))
        most -= _size(kept[-1], most)
        if most <= 0:
            kept.append(_left_out(len(value) - number - 1, "more"))
            break
    return kept


def _cut_mapping(value: Mapping[str, Any], most: int) -> dict[str, Any]:
    data = value.get("data")
    if "type" in value and isinstance(data, str) and len(data) > most:  # half a picture is none
        return {"type": "text", "text": _left_out(len(data), f"characters of {value['type']}")}
    names = list(value)
    if len(names) <= _FEW:  # the small ones say what the large ones are
        names.sort(key=lambda name: _size(value[name], most))
    kept: dict[str, Any] = {}
    for name in names:
        kept[name] = _cut(value[name], most)
        most -= len(name) + _size(kept[name], most)
        if most <= 0:
            kept["…"] = _left_out(len(value) - len(kept), "more")
            break
    return kept


def _left_out(number: int, what: str) -> str:
    return f"{CUT}{number:,} {what}: it was too large to be kept.]"
