"""Limit the size of an event, so that it is not too large for stores and readers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events.base import Event, RichEvent
from agents_tools.events.field_types import payload_fields
from agents_tools.events.kinds import GapEvent, NotifyStreamEvent, ToolArtifactEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LARGEST", "LEFT_OUT", "limit_size"]

LARGEST: Final = 16 << 20
"""The largest size of a payload: the characters and bytes of its texts, plus 16 per value."""

_CUT_LENGTH: Final = 1 << 16
"""The length to which a long text is cut, in characters."""

_BASE_SIZE: Final = 16
"""The size of a value besides its text."""

LEFT_OUT: Final = f"left out: an event has at most {LARGEST >> 20} MiB"
"""The note in place of removed text."""

_NOTE: Final = f"({LEFT_OUT}, and this has too many parts)"
_NOT_POSSIBLE: Final = object()
_MAX_DEPTH: Final = 100
_SCALAR_TYPES: Final = frozenset({int, float, bool, type(None)})


def limit_size(event: Event) -> Event:
    """Return the event itself, or a copy with cut values if it is too large.

    Long texts are cut and end with a note of the removed length. A value with very many small parts
    is replaced by a note. If its field does not accept a note, a `GapEvent` replaces the event.
    """
    if event.__class__ is NotifyStreamEvent and len(cast("Any", event).data) <= LARGEST:
        return event
    fields = payload_fields(event.__class__)
    if _remaining_size([getattr(event, one.name) for one in fields], LARGEST, 0) >= 0:
        return event
    changes = {one.name: _cut(getattr(event, one.name), one.type.accepts) for one in fields}
    if any(change is _NOT_POSSIBLE for change in changes.values()):
        gap = GapEvent(1)
        return gap.replace(seq=event.seq, timestamp=event.timestamp, origin=event.origin)
    if isinstance(event, ToolArtifactEvent):
        changes["mime_type"] = "text/plain"  # an incomplete image cannot be shown
    if issubclass(event.__class__, RichEvent):
        changes["attached"] = None  # decoded from the payload again when `value` is read
    return event.replace(**changes)


def _remaining_size(value: Any, left: int, depth: int) -> int:
    """Return `left` minus the size of a value; negative if the value is too large."""
    left -= _BASE_SIZE
    kind = value.__class__
    if kind in _SCALAR_TYPES or depth > _MAX_DEPTH:  # deeper values have no JSON form
        return left
    if kind is str or isinstance(value, (str, bytes)):
        return left - len(value)
    parts: Iterable[Any] = ()
    if kind is dict or isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        left -= sum([_BASE_SIZE + len(key) for key in members if key.__class__ is str])
        parts = members.values()
    elif isinstance(value, (list, tuple)):
        parts = cast("list[Any]", value)
    for part in parts:
        if left < 0:
            break
        if part.__class__ is str:
            left -= _BASE_SIZE + len(part)
        elif part.__class__ in _SCALAR_TYPES:
            left -= _BASE_SIZE
        else:
            left = _remaining_size(part, left, depth + 1)
    return left


def _cut(value: Any, accepts: Callable[[object], bool]) -> Any:
    """Return a smaller value that the field accepts, or `_NOT_POSSIBLE`."""
    if _is_small(value):
        return value
    shorter = _shorten(value, 0)
    if _is_small(shorter):
        return shorter
    forms: list[Any] = [_NOTE, {"left_out": _NOTE}, None]
    if isinstance(shorter, dict):  # keep the members that are small
        members = cast("dict[Any, Any]", shorter)
        some = {key: one if _is_small(one) else _NOTE for key, one in members.items()}
        forms = [some, *forms] if _is_small(some) else forms
    return next((one for one in forms if accepts(one)), _NOT_POSSIBLE)


def _is_small(value: object) -> bool:
    return _remaining_size(value, LARGEST // 16, 0) >= 0


def _shorten(value: Any, depth: int) -> Any:
    """Return a value with cut texts."""
    if isinstance(value, (str, bytes)):
        return value if len(value) <= _CUT_LENGTH else _cut_text(value)
    if depth > _MAX_DEPTH:
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {key: _shorten(member, depth + 1) for key, member in members.items()}
    if isinstance(value, (list, tuple)):
        return [_shorten(item, depth + 1) for item in cast("list[Any]", value)]
    return value


def _cut_text(value: str | bytes) -> str:
    """Return the beginning of a text with a note. Bytes are replaced by a note."""
    if isinstance(value, bytes):
        return f"({len(value):,} bytes {LEFT_OUT})"
    return f"{value[:_CUT_LENGTH]}… ({len(value) - _CUT_LENGTH:,} characters {LEFT_OUT})"
