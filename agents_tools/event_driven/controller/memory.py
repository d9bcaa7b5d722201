"""A memory that answers what the agents of a stream recall."""

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
        recall: Returns what is known for a `RecallAction`, as text or as what has a JSON form;
            empty or `None` for nothing. Sync or async. What it raises is logged, and nothing is
            known then.
    """

    def __init__(self, stream: EventStream, recall: Callable[[RecallAction], Any]) -> None:
        self._stream = stream
        self._recall = recall
        self._subscription = stream.subscribe(
            EventStreamSubscriber.MEMORY,
            self._take_async if inspect.iscoroutinefunction(recall) else self._take,
            f"memory-{id(self):x}",
            where=EventFilter(types=(ActionEvent.type,)),
        )

    def close(self) -> None:
        """Answer no more."""
        self._stream.unsubscribe(self._subscription.subscriber_id, self._subscription.callback_id)

    def _take(self, event: Event) -> Any:
        """Answer at once, or give what does so when it is awaited."""
        action = _recalled(event)
        if action is None:
            return None
        known: Any = None
        try:
            known = self._recall(action)
        except Exception:  # an agent does not stop because its memory fails
            logger.exception("The memory failed on %r.", action.query)
        if inspect.isawaitable(known):
            return self._answer_later(event, action, known)
        self._answer(event, action, known)
        return None

    async def _take_async(self, event: Event) -> None:
        later = self._take(event)
        if later is not None:
            await later

    async def _answer_later(self, event: Event, action: RecallAction, later: Any) -> None:
        known: Any = None
        try:
            known = await later
        except Exception:  # as above
            logger.exception("The memory failed on %r.", action.query)
        self._answer(event, action, known)

    def _answer(self, event: Event, action: RecallAction, known: Any) -> None:
        text = known if isinstance(known, str) else "" if known is None else _as_text(known)
        observation = RecallObservation(text, action.query, action.recall_type)
        origin = Origin(path=event.path, source=EventSource.ENVIRONMENT)
        with suppress(UserError):  # the stream was closed meanwhile
            self._stream.publish(event_of(observation).replace(cause=event.id, origin=origin))


def _as_text(known: Any) -> str:
    return to_json(known, fallback=str).decode(errors="replace")


def _recalled(event: Event) -> RecallAction | None:
    found = cast("ActionEvent[Any]", event)
    with suppress(UserError):  # what somebody has published may be no action
        return found.value if found.kind == RecallAction.__name__ else None
    return None
