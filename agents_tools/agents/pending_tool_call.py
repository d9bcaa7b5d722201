"""A tool call of a run, and the rules for when it runs."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from agents_tools.tool.records import is_read_only

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterator, Sequence

    from agents_tools.agents.streamed_calls import StreamedCall
    from agents_tools.agents.toolbox import Toolbox
    from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "HANDOFF",
    "PendingToolCall",
    "can_start_early",
    "group_calls",
    "runs_alone",
]


HANDOFF: Final = "handoff"
"""The kind of the origin of a tool that is a handoff."""


class PendingToolCall:
    """A call that waits for its output.

    Args:
        item: The call as the model sent it.
        toolbox: The tools of the turn.

    Attributes:
        item: The call as the model sent it.
        tool: The tool; `None` if the name is unknown.
        target: The call of the tool that runs. It differs from `item` if the model calls the tool
            through another one, such as `call_tool`.
        output_item: The output for the model; `None` until the call ends.
        value: What the tool returned, or the text for the model if the call failed.
        is_acknowledged: Whether the output only says that the call continues in the background.
        is_recorded: Whether the call is part of the conversation. A call that was started early is
            recorded when the complete response of the model arrives.
        is_handoff: Whether the call passes the conversation to another agent.
        edited_arguments: The arguments of a person who changed those of the model.
        task: The task of a call that was started early.
        streamed: What such a call reads while the model writes it; `None` if it is complete.
    """

    __slots__ = (
        "edited_arguments",
        "is_acknowledged",
        "is_handoff",
        "is_recorded",
        "item",
        "output_item",
        "streamed",
        "target",
        "task",
        "tool",
        "value",
    )

    def __init__(self, item: ToolCallItem, toolbox: Toolbox) -> None:
        self.item = item
        self.tool, arguments = toolbox.resolve(item)
        self.target = item
        if self.tool is not None and arguments is not None:
            self.target = replace(item, name=self.tool.name, arguments=arguments)
        self.output_item: ToolCallOutputItem | None = None
        self.value: Any = None
        self.is_acknowledged = False
        self.is_recorded = True
        self.edited_arguments: str | None = None
        self.task: asyncio.Future[None] | None = None
        self.streamed: StreamedCall | None = None
        self.is_handoff = self.tool is not None and self.tool.origin.kind == HANDOFF


def group_calls(calls: Sequence[PendingToolCall]) -> Iterator[list[PendingToolCall]]:
    """Yield groups of calls that run in parallel; an exclusive tool has a group of its own."""
    group: list[PendingToolCall] = []
    for call in calls:
        if not runs_alone(call.tool):
            group.append(call)
            continue
        if group:
            yield group
        group = []
        yield [call]
    if group:
        yield group


def runs_alone(tool: FunctionTool[..., Any] | None) -> bool:
    """Return whether no other call runs at the same time as this tool."""
    options: Any = None if tool is None else tool.metadata.get("agents_tools")
    return bool(options and options.get("exclusive"))


def can_start_early(item: ToolCallItem, tool: FunctionTool[..., Any] | None) -> bool:
    """Return whether a call can start before the response of the model is complete."""
    return (
        tool is not None
        and item.kind == "function"
        and bool(item.call_id)
        and is_read_only(tool)
        and not tool.can_need_approval
        and not runs_alone(tool)
        and tool.stack.at_end is None
    )
