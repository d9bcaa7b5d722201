"""Calls of a tool as an agent makes them, with their outcome and events."""

from __future__ import annotations

import typing
from dataclasses import dataclass
from typing import Any

from agents_tools.events.kinds import NotifyStreamEvent, ToolStreamStartEvent
from agents_tools.testing.invariants import check_events

if typing.TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ToolCall", "call_tool", "call_tool_sync"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCall:
    """The result of one tool call.

    Attributes:
        outcome: The outcome.
        events: The events in order, including start and end.
    """

    outcome: CallOutcome
    events: tuple[Event, ...]

    @property
    def status(self) -> CallStatus:
        """The status: `ok`, `invalid_args`, `tool_error` and so on."""
        return self.outcome.status

    @property
    def value(self) -> Any:
        """The return value of the function; `None` unless the status is `ok`."""
        return self.outcome.value

    @property
    def output(self) -> ToolOutput:
        """The output for the model."""
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
    context: object = None,
    **kwargs: object,
) -> ToolCall:
    """Call a tool as an agent does, and return its outcome and events.

    Failures become outputs. The events are checked with `check_events`.

    Args:
        tool: The tool.
        arguments: A JSON string or a mapping.
        context: A `RunContextWrapper`, a new `ToolContext`, or `None`.
        **kwargs: Arguments by name, instead of `arguments`.

    Raises:
        EventLawError: The events of the call violate a rule.
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
    context: object = None,
    **kwargs: object,
) -> ToolCall:
    """Call a tool from synchronous code; see `call_tool`."""
    from agents_tools.concurrency.bridge import run_sync

    return run_sync(call_tool, tool, arguments, context=context, **kwargs)
