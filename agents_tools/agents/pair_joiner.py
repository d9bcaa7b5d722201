"""Join the halves of surrogate pairs in the deltas of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.events.kinds import RawResponseStreamEvent
from agents_tools.text.characters import replace_surrogates

if TYPE_CHECKING:
    from agents_tools.events.base import Emit, Event

__all__ = ["PairJoiner"]


class PairJoiner:
    """Joins the halves of surrogate pairs that are split over two deltas of a model.

    Args:
        emit: Receives the events.
    """

    def __init__(self, emit: Emit) -> None:
        self._emit = emit
        self._held: tuple[Any, RawResponseStreamEvent] | None = None

    def __call__(self, event: Event) -> None:
        """Pass an event of a model on; the first half of a pair waits for the next delta."""
        delta: Any = event.data.get("delta") if isinstance(event, RawResponseStreamEvent) else None
        if isinstance(delta, str) and (self._held is not None or not delta.isascii()):
            self._push(cast("RawResponseStreamEvent", event), delta)
        else:
            self.finish()
            self._emit(event)

    def finish(self) -> None:
        """Emit a half that no other half follows, as U+FFFD."""
        if self._held is not None:
            half, self._held = self._held[1], None
            self._emit(half.replace(data={**half.data, "delta": "\ufffd"}))

    def _push(self, event: RawResponseStreamEvent, delta: str) -> None:
        key = {**event.data, "delta": ""}
        if self._held is not None and self._held[0] == key:
            delta = self._held[1].data["delta"] + delta
            self._held = None
        else:
            self.finish()
        if "\ud800" <= delta[-1:] <= "\udbff":
            delta, half = delta[:-1], delta[-1]
            self._held = (key, event.replace(data={**event.data, "delta": half}))
        text = replace_surrogates(delta)
        if text == event.data["delta"]:
            self._emit(event)
        elif text:
            self._emit(event.replace(data={**event.data, "delta": text}))
