"""Keeps one event from being too large for the store and for those who read."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.events import Event, GapEvent, NotifyStreamEvent, RichEvent, ToolArtifactEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = ["LARGEST", "LEFT_OUT", "bounded"]

LARGEST: Final = 16 << 20
"""How much an event may say: characters and bytes of its texts, and a few for all other values."""

_KEPT: Final = 1 << 16
"""How much is kept of a text that is cut."""

_SMALL: Final = 16
"""What a value weighs besides its text."""

LEFT_OUT: Final = f"left out: an event has at most {LARGEST >> 20} MiB"
"""What is said wherever something is cut."""

_NOTE: Final = f"({LEFT_OUT}, and this has too many parts)"
_NO_FORM: Final = object()
_DEEPEST: Final = 100
_SCALARS: Final = frozenset({int, float, bool, type(None)})


def bounded(event: Event) -> Event:
    """Give an event that is not too large: itself, or a copy with what is too large cut.

    Long texts keep their beginning, and a note of how long they were. A payload that consists of
    very many small things becomes such a note; where its event has no place for one, a `GapEvent`
    stands for it.
    """
    if event.__class__ is NotifyStreamEvent:
        if len(cast("NotifyStreamEvent", event).data) <= LARGEST:
            return event
    elif _weighed(event.__event_values__(event), LARGEST, 0) >= 0:
        return event
    changes = {
        one.name: _cut(getattr(event, one.name), shape.accepts)
        for one, shape in event.__class__.__event_payload__
    }
    if any(change is _NO_FORM for change in changes.values()):
        gap = GapEvent(1)
        return gap.replace(seq=event.seq, timestamp=event.timestamp, origin=event.origin)
    if isinstance(event, ToolArtifactEvent):
        changes["mime_type"] = "text/plain"  # half a picture is none
    if issubclass(event.__class__, RichEvent):
        changes["attached"] = None  # made anew from the payload, by whoever asks for it
    return event.replace(**changes)


def _weighed(value: Any, left: int, depth: int) -> int:
    """Take what a value weighs off what is left; negative when that was not enough."""
    left -= _SMALL
    kind = value.__class__
    if kind in _SCALARS or depth > _DEEPEST:  # no event that is deeper has a form in JSON
        return left
    if kind is str or isinstance(value, (str, bytes)):
        return left - len(value)
    parts: Iterable[Any] = ()
    if kind is dict or isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        left -= sum([_SMALL + len(key) for key in members if key.__class__ is str])
        parts = members.values()
    elif isinstance(value, (list, tuple)):
        parts = cast("list[Any]", value)
    for part in parts:
        if left < 0:
            break
        if part.__class__ is str:
            left -= _SMALL + len(part)
        elif part.__class__ in _SCALARS:
            left -= _SMALL
        else:
            left = _weighed(part, left, depth + 1)
    return left


def _cut(value: Any, accepts: Callable[[object], bool]) -> Any:
    """Make a value of a payload small, in a form that its field takes, or say that none is."""
    if _is_small(value):
        return value
    shorter = _shortened(value, 0)
    if _is_small(shorter):
        return shorter
    forms: list[Any] = [_NOTE, {"left_out": _NOTE}, None]
    if isinstance(shorter, dict):  # what it is may be told by its other members
        members = cast("dict[Any, Any]", shorter)
        some = {key: one if _is_small(one) else _NOTE for key, one in members.items()}
        forms = [some, *forms] if _is_small(some) else forms
    return next((one for one in forms if accepts(one)), _NO_FORM)


def _is_small(value: object) -> bool:
    return _weighed(value, LARGEST // 16, 0) >= 0


def _shortened(value: Any, depth: int) -> Any:
    """Cut the long texts in a value."""
    if isinstance(value, (str, bytes)):
        return value if len(value) <= _KEPT else _cut_text(value)
    if depth > _DEEPEST:
        return value
    if isinstance(value, Mapping):
        members = cast("Mapping[Any, Any]", value)
        return {key: _shortened(member, depth + 1) for key, member in members.items()}
    if isinstance(value, (list, tuple)):
        return [_shortened(item, depth + 1) for item in cast("list[Any]", value)]
    return value


def _cut_text(value: str | bytes) -> str:
    """Keep the beginning of a text; of bytes a part is worth nothing."""
    if isinstance(value, bytes):
        return f"({len(value):,} bytes {LEFT_OUT})"
    return f"{value[:_KEPT]}… ({len(value) - _KEPT:,} characters {LEFT_OUT})"
