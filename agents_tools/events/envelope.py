"""The source of events: who emitted them, and inside which calls."""

from __future__ import annotations

from enum import StrEnum
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["INVALID_ID", "EventSource", "Origin"]

INVALID_ID: Final = -1
"""The `id` of an event that is not stored in a stream."""


class EventSource(StrEnum):
    """The kind of participant that an event comes from."""

    AGENT = "agent"
    USER = "user"
    ENVIRONMENT = "environment"


class Origin:
    """The source of events. It is created once per call and shared by all events of the call.

    Args:
        tool_name: The name of the tool, if a tool emits the events.
        tool_call_id: The id of the tool call.
        path: The ids of the calls that contain the events, outermost first. An empty path means
            that the events belong to the conversation itself.
        source: The kind of participant that emits the events.
        sinks: The receivers that have already received events of this origin. They are neither
            compared nor serialized.
    """

    __slots__ = ("path", "sinks", "source", "tool_call_id", "tool_name")

    def __init__(
        self,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        path: tuple[str, ...] = (),
        source: EventSource = EventSource.AGENT,
        sinks: tuple[Callable[[Any], None], ...] = (),
    ) -> None:
        self.tool_name: Final = tool_name
        self.tool_call_id: Final = tool_call_id
        self.path: Final = path
        self.source: Final = source
        self.sinks: Final = sinks

    def __eq__(self, other: object) -> bool:
        """Compare by value."""
        if not isinstance(other, Origin):
            return NotImplemented
        return self is other or _origin_values(self) == _origin_values(other)

    def __hash__(self) -> int:
        """Hash by value."""
        return hash(_origin_values(self))

    def __repr__(self) -> str:
        """Return the fields, without the sinks."""
        values = (repr(value) for value in _origin_values(self)[:3])
        return f"Origin({', '.join(values)}, {self.source.value})"


_origin_values: Callable[[Origin], tuple[Any, ...]] = attrgetter(
    "tool_name",
    "tool_call_id",
    "path",
    "source",
)
