"""Validate the arguments of a stream."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast, get_args

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.base import Event
from agents_tools.events.envelope import INVALID_ID, EventSource
from agents_tools.persistence.stream.log import Policy

if TYPE_CHECKING:
    from agents_tools.classes.action import Action, Observation

__all__ = ["as_event", "as_source", "check_options", "first_after"]


def as_event(event: Event | Action | Observation) -> Event:
    """Return an event; wrap an action or an observation in an event of that name."""
    if isinstance(event, Event):
        return event
    from agents_tools.classes.action import Action, Observation
    from agents_tools.classes.event_types import event_of

    if not isinstance(cast("object", event), (Action, Observation)):
        raise UserTypeError(
            "add_event(event): expected an Event, an Action or an Observation, got "
            f"{type(event).__name__}.",
        )
    return cast("Event", event_of(event))


def as_source(source: EventSource | str) -> EventSource:
    """Return the source with a name."""
    try:
        return EventSource(source)
    except ValueError:
        known = ", ".join(EventSource)
        raise UserValueError(
            f"source is unknown: expected one of {known}, got {source!r}."
        ) from None


def first_after(id: int) -> int:
    """Return the id after an id; 0 after `INVALID_ID`.

    Raises:
        UserTypeError: The id is not an integer, for example the text of a query parameter.
    """
    if not isinstance(cast("object", id), int):
        raise UserTypeError(
            f"after= expects the id of an event, a whole number from -1 on, got {id!r:.60}."
        )
    return max(id, INVALID_ID) + 1


def check_options(policy: str, max_pending: int, max_failures: int = 1) -> None:
    """Raise `UserValueError` if an option of a reader is invalid."""
    if policy not in get_args(Policy):
        known = ", ".join(get_args(Policy))
        raise UserValueError(f"policy is unknown: expected one of {known}, got {policy!r}.")
    if max_pending < 1:
        raise UserValueError(f"max_pending must be at least 1, got {max_pending!r}.")
    if max_failures < 1:
        raise UserValueError(f"max_failures must be at least 1, got {max_failures!r}.")
