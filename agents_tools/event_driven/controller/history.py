"""What a model reads of the events of a conversation."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, cast

from agents_tools.classes.event_types import (
    CondensationAction,
    MessageAction,
    RecallObservation,
    SystemMessageAction,
)
from agents_tools.content.items import (
    Item,
    MessageInputItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    input_items,
    item_from_dict,
)
from agents_tools.content.outputs import ToolOutputImage, ToolOutputText, to_output
from agents_tools.errors import UserError
from agents_tools.events.envelope import EventSource
from agents_tools.events.kinds import (
    ActionEvent,
    MessageEvent,
    ObservationEvent,
    RunItemStreamEvent,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import CallStatus

__all__ = ["items_of"]

logger = logging.getLogger("agents_tools")

_NO_RESULT = "The call has no result: the agent was stopped before there was one."


def items_of(events: Sequence[Event], path: tuple[str, ...] = ()) -> list[Item]:
    """Return what a model reads of events: each call has exactly one output, right after its turn.

    Args:
        events: The events of a stream.
        path: Whose conversation it is: that of the calls of these ids, or the outermost one.
    """
    own = [event for event in events if event.path == path]
    forgotten, summaries = _forgotten(own)
    turns = _ConversationTurns()
    authors: dict[int, EventSource | None] = {}
    for event in own:
        if event.id in summaries:
            turns.add(MessageInputItem(role="system", content=summaries[event.id]), None, event.id)
        if event.type == ActionEvent.type:
            authors[event.id] = event.source
        if event.id not in forgotten:
            for item in _readable(event, turns.calls, authors):
                turn = event.cause if isinstance(event, RunItemStreamEvent) else None
                turns.add(item, turn, event.id)
    return turns.whole()


class _ConversationTurns:
    """Puts items in the order that models take: calls, their outputs, and then what came between.

    What was said while the model wrote comes after its answer, which does not regard it.

    Attributes:
        calls: The calls so far, by their ids.
    """

    def __init__(self) -> None:
        self.calls: dict[str, ToolCallItem] = {}
        self._items: list[Item] = []
        self._said: list[int] = []  # for each item, the event in which the model was told it, or -1
        self._open: dict[str, ToolCallOutputItem | None] = {}
        self._later: list[Item] = []
        self._turn: int | None = None

    def add(self, item: Item, turn: int | None, at: int) -> None:
        """Add the next item.

        Args:
            item: The item.
            turn: The event that the model answered with it; `None` for what is no answer.
            at: The event that it is in.
        """
        if isinstance(item, ToolCallOutputItem):
            if self._open.get(item.call_id, item) is None:
                self._open[item.call_id] = item
                if None not in self._open.values():
                    self._close()
            return
        if self._open and turn is None:
            self._later.append(item)
            return
        if turn is None or turn != self._turn:
            self._close()
        self._turn = turn
        while turn is not None and self._items and self._said[-1] > turn:
            self._later.insert(0, self._items.pop())
            self._said.pop()
        self._items.append(item)
        self._said.append(at if turn is None else -1)
        if isinstance(item, ToolCallItem):
            self.calls[item.call_id] = item
            if item.needs_answer:
                self._open[item.call_id] = None

    def whole(self) -> list[Item]:
        """Return all items; a call that was never answered says so."""
        self._close()
        return self._items

    def _close(self) -> None:
        for call_id, output in self._open.items():
            call = self.calls[call_id]
            self._items.append(output or _output(call, _NO_RESULT, "lost"))
        self._items += self._later
        self._said += [-1] * (len(self._items) - len(self._said))
        self._open, self._later = {}, []


def _forgotten(events: Iterable[Event]) -> tuple[set[int], dict[int, str]]:
    """Return the ids that are left out, and the summaries by the id in whose place they stand."""
    left_out: set[int] = set()
    summaries: dict[int, str] = {}
    for event in events:
        if isinstance(event, ActionEvent) and event.kind == CondensationAction.__name__:
            try:
                action = cast("CondensationAction", cast("Any", event).value)
            except UserError:  # told by `_readable`
                continue
            left_out.update(action.forgotten_event_ids)
            if action.forgotten_event_ids and action.summary:
                summaries[min(action.forgotten_event_ids)] = action.summary
    return left_out, summaries


def _readable(
    event: Event, calls: dict[str, ToolCallItem], authors: dict[int, EventSource | None]
) -> list[Item]:
    """Return the items of an event; a damaged one has none, and stops no one."""
    try:
        return list(_items(event, calls, authors))
    except UserError as error:
        logger.warning("Event %d is left out of the history: %s", event.id, error)
        return []


def _items(
    event: Event, calls: dict[str, ToolCallItem], authors: dict[int, EventSource | None]
) -> Iterator[Item]:
    match event:
        case MessageEvent():
            role = "user" if event.role == "user" else "system"
            yield from input_items([{"role": role, "content": event.content}])
        case RunItemStreamEvent():
            item = item_from_dict(event.item)
            if not isinstance(item, ToolApprovalItem):
                yield item
        case ActionEvent():
            yield from _of_action(cast("ActionEvent[Any]", event))
        case ObservationEvent():
            yield from _of_observation(cast("ObservationEvent[Any]", event), calls, authors)
        case _:
            pass


def _of_action(event: ActionEvent[Any]) -> Iterator[Item]:
    if event.kind == MessageAction.__name__ and event.source is not EventSource.AGENT:
        action = cast("MessageAction", event.value)
        images = [ToolOutputImage(url=url) for url in action.image_urls]
        yield MessageInputItem(
            content=[ToolOutputText(action.content), *images] if images else action.content
        )
    elif event.kind == SystemMessageAction.__name__:
        yield MessageInputItem(role="system", content=event.value.content)


def _of_observation(
    event: ObservationEvent[Any],
    calls: dict[str, ToolCallItem],
    authors: dict[int, EventSource | None],
) -> Iterator[Item]:
    call = calls.get(event.tool_call_id or "")
    if call is not None:
        failed = event.observation.get("is_error") is True
        yield _output(call, _observation_output(event), "tool_error" if failed else "ok")
        return
    by_user = event.cause is not None and authors.get(event.cause) is EventSource.USER
    if event.kind == RecallObservation.__name__:
        if text := event.value.text:
            yield MessageInputItem(role="system", content=text)
    elif by_user and not event.hidden:
        told = _observation_output(event)
        text = told if isinstance(told, str) else str(told)
        yield MessageInputItem(content=f"What the user has done gave:\n{text}")


def _observation_output(event: ObservationEvent[Any]) -> ToolOutput:
    """Return what a model reads of an observation, whether its class is known here or not."""
    try:
        return to_output(event.value.__tool_result__())
    except UserError:
        return to_output(dict(event.observation))


def _output(call: ToolCallItem, output: ToolOutput, status: CallStatus) -> ToolCallOutputItem:
    return ToolCallOutputItem(
        call_id=call.call_id,
        name=call.name,
        output=output,
        status=status,
        kind=call.kind,
        agent=call.agent,
    )
