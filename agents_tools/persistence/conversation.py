"""The conversation of a session or a run, as the items that its events describe."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.content.items import (
    Item,
    MessageInputItem,
    ToolCallItem,
    ToolCallOutputItem,
    input_items,
    item_of_event,
)
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import MessageEvent, RunItemStreamEvent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.events.base import Event

__all__ = ["REMOVED", "conversation", "input_event", "message_event", "open_calls", "waiting_calls"]

REMOVED: Final = "item_removed"
"""The name of the event that removes the last item of a conversation."""

_USER: Final = Origin(source=EventSource.USER)


def input_event(item: Item) -> MessageEvent | RunItemStreamEvent:
    """Return the event of an item that is the input of a run."""
    if isinstance(item, MessageInputItem):
        return message_event(item)
    return RunItemStreamEvent("input", item.to_dict())


def message_event(message: MessageInputItem, *, is_outermost: bool = True) -> MessageEvent:
    """Return the event of a message to the model.

    Args:
        message: The message.
        is_outermost: Whether a message with the role of a user comes from the user. The input of
            the run of a sub-agent comes from the agent that calls it.
    """
    by_user = message.role == "user"
    event = MessageEvent(message.to_dict()["content"], role="user" if by_user else "system")
    return event.replace(origin=_USER, timestamp=time()) if by_user and is_outermost else event


def open_calls(history: Sequence[Item]) -> list[ToolCallItem]:
    """Return the calls of a conversation that have no output."""
    waiting: dict[str, ToolCallItem] = {}
    for item in history:
        if isinstance(item, ToolCallItem) and item.needs_answer:
            waiting[item.call_id] = item
        elif isinstance(item, ToolCallOutputItem):
            waiting.pop(item.call_id, None)
    return list(waiting.values())


def conversation(events: Sequence[Event]) -> list[Item]:
    """Return the items of a conversation from its events.

    Messages that arrived before the outputs of earlier calls come after those outputs, because
    models require that outputs directly follow their calls. Of two outputs or results of a call,
    which a run has repeated when it was resumed, the last one counts. An event `item_removed`
    removes the last item before it.
    """
    items: list[Item] = []
    later: list[Item] = []
    open_ids: set[str] = set()
    outputs: dict[str, int] = {}  # the index of the output of each call
    for item in _items_of(events):
        if item is None:  # the last item was removed
            items, later = [*items, *later], []
            removed = items.pop() if items else None
            if isinstance(removed, ToolCallItem):
                open_ids.discard(removed.call_id)
            elif isinstance(removed, ToolCallOutputItem):
                del outputs[removed.call_id]
                open_ids.add(removed.call_id)
            continue
        if isinstance(item, ToolCallItem):
            outputs.pop(item.call_id, None)
        elif isinstance(item, ToolCallOutputItem) and item.call_id in outputs:
            items[outputs[item.call_id]] = item
            continue
        if isinstance(item, MessageInputItem) and open_ids:
            later.append(item)
            continue
        if isinstance(item, ToolCallOutputItem):
            open_ids.discard(item.call_id)
        else:
            items += later
            later = []
        if isinstance(item, ToolCallItem) and item.needs_answer:
            open_ids.add(item.call_id)
        if isinstance(item, ToolCallOutputItem):
            outputs[item.call_id] = len(items)
        items.append(item)
        if later and not open_ids:
            items += later
            later = []
    return _with_last_results(items + later)


def _with_last_results(items: list[Item]) -> list[Item]:
    """Return items without the results of calls in the background that later ones replace."""
    kept: list[Item] = []
    answered: set[str] = set()
    for item in reversed(items):
        if isinstance(item, ToolCallItem):
            answered.discard(item.call_id)
        elif isinstance(item, MessageInputItem) and item.call_id is not None:
            if item.call_id in answered:
                continue
            answered.add(item.call_id)
        kept.append(item)
    return kept[::-1]


def _items_of(events: Sequence[Event]) -> Iterator[Item | None]:
    """Yield the items of the outermost run; `None` where the last one was removed."""
    for event in events:
        if event.path:
            continue
        if isinstance(event, MessageEvent):
            yield from input_items([{"role": event.role, "content": event.content}])
        elif isinstance(event, RunItemStreamEvent) and event.name == REMOVED:
            yield None
        elif isinstance(event, RunItemStreamEvent):
            item = item_of_event(cast("RunItemStreamEvent[Any]", event))
            if item is not None:
                yield item


def waiting_calls(events: Sequence[Event]) -> set[str]:
    """Return the ids of the calls that wait for approval and have not run."""
    waiting: set[str] = set()
    for event in events:
        if isinstance(event, RunItemStreamEvent) and not event.path:
            if event.name == "tool_approval_requested":
                waiting.add(str(event.item.get("call_id")))
            elif event.name == "tool_approval_granted":
                waiting.discard(str(event.item.get("call_id")))
    return waiting
