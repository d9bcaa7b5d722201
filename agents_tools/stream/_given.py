"""Looks at what a stream is given."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import INVALID_ID, Event, EventSource
from agents_tools.stream._log import Policy

if TYPE_CHECKING:
    from agents_tools.action import Action, Observation

__all__ = ["as_event", "as_source", "check_options", "first_after"]


def as_event(event: Event | Action | Observation) -> Event:
    """Put an action or observation into an event of that name."""
    if isinstance(event, Event):
        return event
    from agents_tools.action import Action, Observation
    from agents_tools.event_types import event_of

    if not isinstance(cast("object", event), (Action, Observation)):
        raise UserTypeError(
            f"add_event takes an Event, an Action or an Observation, not {type(event).__name__}.",
        )
    return cast("Event", event_of(event))


def as_source(source: EventSource | str) -> EventSource:
    """Give a source by its name."""
    try:
        return EventSource(source)
    except ValueError:
        known = ", ".join(EventSource)
        raise UserValueError(f"source is one of {known}, not {source!r}.") from None


def first_after(id: int) -> int:
    """Give the first id after one, or after none at all."""
    return max(id, INVALID_ID) + 1


def check_options(policy: str, max_pending: int, max_failures: int = 1) -> None:
    """Refuse what no reader can be."""
    if policy not in get_args(Policy):
        known = ", ".join(get_args(Policy))
        raise UserValueError(f"policy is one of {known}, not {policy!r}.")
    if max_pending < 1:
        raise UserValueError(f"max_pending must be at least 1 event, not {max_pending!r}.")
    if max_failures < 1:
        raise UserValueError(f"max_failures must be at least 1, not {max_failures!r}.")
