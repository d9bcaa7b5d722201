"""The conversion of events to the items of a conversation."""

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
    ToolCallItem,
    ToolCallOutputItem,
    input_items,
    item_of_event,
)
from agents_tools.content.outputs import ToolOutputImage, ToolOutputText, to_output
from agents_tools.errors import UserError
from agents_tools.events.envelope import EventSource
from agents_tools.events.kinds import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    ErrorEvent,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
    RunStartedEvent,
    SummaryEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import AnyEvent, CallStatus

__all__ = ["items_of", "observation_outcome"]

logger = logging.getLogger("agents_tools")

_NO_RESULT = "The call has no result: the agent was stopped before there was one."


def items_of(events: Sequence[Event], path: tuple[str, ...] = ()) -> list[Item]:
    """Return the items of a conversation; each call has exactly one output, right after its turn.

    Args:
        events: The events of a stream.
        path: The call ids that lead to the agent; by default the outermost agent.
    """
    own = [event for event in events if event.path == path]
    forgotten, summaries = _forgotten(own)
    forgotten |= _superseded(own)
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
    return turns.items()


class _ConversationTurns:
    """Puts items into the order that models expect: calls, their outputs, then other items.

    A message that arrived during a request comes after its response, which did not consider it.

    Attributes:
        calls: The calls so far, by their ids.
    """

    def __init__(self) -> None:
        self.calls: dict[str, ToolCallItem] = {}
        self._items: list[Item] = []
        self._sources: list[int] = []  # the event of each input item, or -1
        self._open: dict[str, ToolCallOutputItem | None] = {}
        self._later: list[Item] = []
        self._turn: int | None = None

    def add(self, item: Item, turn: int | None, at: int) -> None:
        """Add the next item.

        Args:
            item: The item.
            turn: The event to which the model responded with the item; `None` for other items.
            at: The event of the item.
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
        while turn is not None and self._items and self._sources[-1] > turn:
            self._later.insert(0, self._items.pop())
            self._sources.pop()
        self._items.append(item)
        self._sources.append(at if turn is None else -1)
        if isinstance(item, ToolCallItem):
            self.calls[item.call_id] = item
            if item.needs_answer:
                self._open[item.call_id] = None

    def items(self) -> list[Item]:
        """Return all items, with an output that reports the loss for each call without one."""
        self._close()
        return self._items

    def _close(self) -> None:
        for call_id, output in self._open.items():
            call = self.calls[call_id]
            self._items.append(output or _output(call, _NO_RESULT, "lost"))
        self._items += self._later
        self._sources += [-1] * (len(self._items) - len(self._sources))
        self._open, self._later = {}, []


def _superseded(events: Iterable[Event]) -> set[int]:
    """Return the ids of observations of lost results that another observation has.

    A runtime reports the loss of a result that the log of a continued run still has.
    """
    lost: dict[int, str | None] = {}
    results: set[str | None] = set()
    for event in events:
        if not isinstance(event, ObservationEvent):
            continue
        if event.observation.get("error_id") == "lost":
            lost[event.id] = event.tool_call_id
        else:
            results.add(event.tool_call_id)
    return {event_id for event_id, call_id in lost.items() if call_id in results}


def _forgotten(events: Iterable[Event]) -> tuple[set[int], dict[int, str]]:
    """Return the ids of removed events, and the summaries by the id of the event they replace."""
    removed: set[int] = set()
    summaries: dict[int, str] = {}
    for event in events:
        if isinstance(event, ActionEvent) and event.kind == CondensationAction.__name__:
            try:
                action = cast("CondensationAction", cast("Any", event).value)
            except UserError:  # logged by `_readable`
                continue
            removed.update(action.forgotten_event_ids)
            if action.forgotten_event_ids and action.summary:
                summaries[min(action.forgotten_event_ids)] = action.summary
    return removed, summaries


def _readable(
    event: Event, calls: dict[str, ToolCallItem], authors: dict[int, EventSource | None]
) -> list[Item]:
    """Return the items of an event; an invalid event is logged and has none."""
    try:
        return list(_items(event, calls, authors))
    except UserError as error:
        logger.warning("Event %d is left out of the history: %s", event.id, error)
        return []


def _items(
    event: Event, calls: dict[str, ToolCallItem], authors: dict[int, EventSource | None]
) -> Iterator[Item]:
    match known := cast("AnyEvent", event):
        case MessageEvent():
            role = "user" if known.role == "user" else "system"
            yield from input_items([{"role": role, "content": known.content}])
        case RunItemStreamEvent():
            item = item_of_event(cast("RunItemStreamEvent[Any]", event))
            if item is not None:
                yield item
        case ActionEvent():
            yield from _of_action(cast("ActionEvent[Any]", event))
        case ObservationEvent():
            yield from _of_observation(cast("ObservationEvent[Any]", event), calls, authors)
        case ToolStreamStartEvent() | ToolStreamEndEvent() | ToolAttemptEvent() | GapEvent():
            pass
        case NotifyStreamEvent() | ToolProgressEvent() | ToolArtifactEvent():
            pass
        case RunStartedEvent() | RunFinishedEvent() | RawResponseStreamEvent() | ErrorEvent():
            pass
        case SummaryEvent():
            pass
        case AgentUpdatedStreamEvent() | AgentStateChangedEvent() | NullEvent() | RunRecordEvent():
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
        outcome = observation_outcome(event)
        yield _output(call, outcome.output, outcome.status)
        return
    by_user = event.cause is not None and authors.get(event.cause) is EventSource.USER
    if event.kind == RecallObservation.__name__:
        if text := event.value.text:
            yield MessageInputItem(role="system", content=text)
    elif by_user and not event.hidden:
        output = _observation_output(event)
        text = output if isinstance(output, str) else str(output)
        yield MessageInputItem(content=f"Result of an action of the user:\n{text}")


def observation_outcome(event: ObservationEvent[Any]) -> CallOutcome:
    """Return the outcome of the call that an observation answers."""
    output = _observation_output(event)
    if event.observation.get("is_error") is not True:
        return CallOutcome("ok", output, output)
    return CallOutcome(_STATUSES.get(event.observation.get("error_id"), "tool_error"), None, output)


_STATUSES: dict[Any, CallStatus] = {
    "invalid_args": "invalid_args",
    "invalid_action": "invalid_args",
    "timeout": "timeout",
    "cancelled": "cancelled",
    "denied": "denied",
    "overloaded": "overloaded",
    "lost": "lost",
}
"""The statuses of calls by the error ids of their observations."""


def _observation_output(event: ObservationEvent[Any]) -> ToolOutput:
    """Return the output for the model, even if the class of the observation is unknown."""
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
