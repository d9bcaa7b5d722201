"""Replacement of lone surrogates in what goes to a model and comes from it.

JSON can represent half of a surrogate pair, but UTF-8 cannot, so a request with one fails. A model
that splits an emoji over two deltas sends each half for itself.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import (
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import ToolOutputText
from agents_tools.events.kinds import RawResponseStreamEvent
from agents_tools.text.characters import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.agents.model import ModelResponse
    from agents_tools.content.items import Item
    from agents_tools.events.base import Emit, Event

__all__ = ["PairJoiner", "encodable_caller", "encodable_items", "encodable_response"]


def encodable_items(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items without lone surrogates; the same sequence if there are none."""
    changed = {
        place: clean for place, item in enumerate(items) if (clean := _encodable(item)) is not item
    }
    if not changed:
        return items
    return [changed.get(place, item) for place, item in enumerate(items)]


def encodable_response(response: ModelResponse) -> ModelResponse:
    """Return a response without lone surrogates; the same object if it has none."""
    items = encodable_items(response.items)
    return response if items is response.items else replace(response, items=items)


def encodable_caller(
    on_call: Callable[[ToolCallItem], None] | None,
) -> Callable[[ToolCallItem], None] | None:
    """Return a function that passes calls of a model on, without lone surrogates."""
    if on_call is None:
        return None
    return lambda item: on_call(cast("ToolCallItem", _encodable(item)))


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


def _encodable(item: Item) -> Item:
    """Return an item without lone surrogates; the same object if it has none."""
    changes: dict[str, Any] = {}
    for name in _TEXTS.get(type(item), ()):
        value = getattr(item, name)
        clean: Any = (
            replace_surrogates(value) if isinstance(value, str) else _encodable_value(value)
        )
        if clean is not value:
            changes[name] = clean
    return replace(item, **changes) if changes else item


_TEXTS: dict[type, tuple[str, ...]] = {
    MessageInputItem: ("content",),
    MessageOutputItem: ("text", "refusal", "provider_data"),
    ReasoningItem: ("text", "provider_data"),
    ToolCallItem: ("call_id", "name", "arguments", "provider_data"),
    ToolCallOutputItem: ("call_id", "output"),
}
"""The fields of items that a request contains."""


def _encodable_value(value: Any) -> Any:
    """Return a JSON value, or blocks, without lone surrogates; the same object if it has none."""
    match value:
        case str():
            return replace_surrogates(value)
        case ToolOutputText(text=text):
            clean = replace_surrogates(text)
            return value if clean is text else ToolOutputText(clean)
        case dict():
            members = cast("dict[str, Any]", value)
            copy = {replace_surrogates(key): _encodable_value(one) for key, one in members.items()}
            is_same = all(map(_is, copy, members)) and all(
                map(_is, copy.values(), members.values())
            )
            return members if is_same else copy
        case list():
            items = cast("list[Any]", value)
            copies = [_encodable_value(one) for one in items]
            return items if all(map(_is, copies, items)) else copies
        case _:
            return value


def _is(one: object, other: object) -> bool:
    return one is other
