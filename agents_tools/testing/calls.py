"""Calls a tool the way an agent does, and keeps everything that came of it."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

from agents_tools.events import NotifyStreamEvent, ToolStreamStartEvent
from agents_tools.testing.laws import check_events

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools._records import CallOutcome
    from agents_tools.events import CallStatus, Event
    from agents_tools.outputs import ToolOutput
    from agents_tools.tool import FunctionTool

__all__ = ["ToolCall", "call_tool", "call_tool_sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """One call of a tool, seen from outside.

    Attributes:
        outcome: How it ended.
        events: What it said, its start and its end included, in order.
    """

    outcome: CallOutcome
    events: tuple[Event, ...]

    @property
    def status(self) -> CallStatus:
        """How it ended: `ok`, `invalid_args`, `tool_error` and so on."""
        return self.outcome.status

    @property
    def value(self) -> Any:
        """What the function returned; `None` unless it is `ok`."""
        return self.outcome.value

    @property
    def output(self) -> ToolOutput:
        """What the model gets."""
        return self.outcome.output

    @property
    def texts(self) -> list[str]:
        """The texts of its notifications."""
        return [event.data for event in self.events if isinstance(event, NotifyStreamEvent)]


async def call_tool(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any] | None = None,
    /,
    *,
    context: Any = None,
    **kwargs: Any,
) -> ToolCall:
    """Call a tool as an agent does: failures become answers, and everything said is kept.

    The laws of events are checked on the way.

    Args:
        tool: The tool.
        arguments: A JSON string or a mapping.
        context: A `RunContextWrapper`, a fresh `ToolContext`, or `None`.
        **kwargs: Arguments by name, instead of `arguments`.

    Raises:
        EventLawError: The events of the call break a law.
    """
    async with tool.stream(arguments, context=context, **kwargs) as stream:
        events = tuple([event async for event in stream])
    brackets = any(isinstance(event, ToolStreamStartEvent) for event in events)
    check_events(events, brackets=brackets)
    return ToolCall(outcome=stream.outcome, events=events)


def call_tool_sync(
    tool: FunctionTool[..., Any],
    arguments: str | Mapping[str, Any] | None = None,
    /,
    *,
    context: Any = None,
    **kwargs: Any,
) -> ToolCall:
    """Do what `call_tool` does, from synchronous code."""
    from agents_tools._bridge import run_sync

    return run_sync(call_tool, tool, arguments, context=context, **kwargs)
