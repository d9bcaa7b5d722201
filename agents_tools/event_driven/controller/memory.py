"""A memory that answers the recall actions of a stream."""

from __future__ import annotations

import inspect
import logging
from contextlib import suppress
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import to_json

from agents_tools.classes.event_types import RecallAction, RecallObservation, event_of
from agents_tools.errors import UserError
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import ActionEvent
from agents_tools.persistence import EventFilter
from agents_tools.persistence.stream import EventStreamSubscriber

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.events.base import Event
    from agents_tools.persistence.stream import EventStream

__all__ = ["MemorySubscriber"]

logger = logging.getLogger("agents_tools")


class MemorySubscriber:
    """Answers each `RecallAction` of a stream with one `RecallObservation`.

    ```python
    MemorySubscriber(stream, lambda action: notes.search(action.query))
    ```

    Args:
        stream: The stream.
        recall: Returns the entries for a `RecallAction` as text or a JSON value, or `None` if there
            are none. Sync or async. Its exceptions are logged, and count as no entries.
    """

    def __init__(self, stream: EventStream, recall: Callable[[RecallAction], Any]) -> None:
        self._stream = stream
        self._recall = recall
        self._subscription = stream.subscribe(
            EventStreamSubscriber.MEMORY,
            self._handle_async if inspect.iscoroutinefunction(recall) else self._handle,
            f"memory-{id(self):x}",
            where=EventFilter(types=(ActionEvent.type,)),
        )

    def close(self) -> None:
        """Stop answering."""
        self._stream.unsubscribe(self._subscription.subscriber_id, self._subscription.callback_id)

    def _handle(self, event: Event) -> Any:
        """Answer at once, or return an awaitable that answers."""
        action = _recall_action(event)
        if action is None:
            return None
        entries: Any = None
        try:
            entries = self._recall(action)
        except Exception:  # a failing memory must not stop the agent
            logger.exception("The memory failed on %r.", action.query)
        if inspect.isawaitable(entries):
            return self._answer_later(event, action, entries)
        self._answer(event, action, entries)
        return None

    async def _handle_async(self, event: Event) -> None:
        later = self._handle(event)
        if later is not None:
            await later

    async def _answer_later(self, event: Event, action: RecallAction, later: Any) -> None:
        entries: Any = None
        try:
            entries = await later
        except Exception:  # as above
            logger.exception("The memory failed on %r.", action.query)
        self._answer(event, action, entries)

    def _answer(self, event: Event, action: RecallAction, entries: Any) -> None:
        text = entries if isinstance(entries, str) else "" if entries is None else _as_text(entries)
        observation = RecallObservation(text, action.query, action.recall_type)
        origin = Origin(path=event.path, source=EventSource.ENVIRONMENT)
        with suppress(UserError):  # the stream was closed meanwhile
            self._stream.publish(event_of(observation).replace(cause=event.id, origin=origin))


def _as_text(entries: Any) -> str:
    return to_json(entries, fallback=str).decode(errors="replace")


def _recall_action(event: Event) -> RecallAction | None:
    action_event = cast("ActionEvent[Any]", event)
    with suppress(UserError):  # the published action can be invalid
        return action_event.value if action_event.kind == RecallAction.__name__ else None
    return None
