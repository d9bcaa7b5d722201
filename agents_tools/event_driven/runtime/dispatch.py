"""The conversion of actions to tool calls, and of their outcomes to observations."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools.classes.action import ImageContent, TextContent
from agents_tools.classes.event_types import (
    BrowseInteractiveAction,
    BrowserOutputObservation,
    CmdOutputObservation,
    CmdRunAction,
    FileEditAction,
    FileEditObservation,
    FileReadAction,
    FileReadObservation,
    IPythonRunCellAction,
    IPythonRunCellObservation,
    MCPAction,
    MCPObservation,
)
from agents_tools.content.outputs import ToolOutputImage, ToolOutputText
from agents_tools.policies import timeout as time_limit

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.classes.action import Observation
    from agents_tools.event_driven.runtime.tools import AnyTool
    from agents_tools.tool.records import CallOutcome

__all__ = ["HANDLERS", "ActionHandler", "RuntimeCall", "content_of", "in_time", "of_mcp"]

_BLOCKING_SECONDS = 600.0
"""The default time limit of a blocking command, in seconds."""
_GRACE_SECONDS = 5.0
"""The extra time for a tool to end its command itself, in seconds."""


@dataclass(frozen=True, slots=True)
class RuntimeCall:
    """A tool call for an action."""

    tool: AnyTool
    arguments: Mapping[str, Any]
    action: Any = None
    to_observation: Callable[[Any, CallOutcome], Observation] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionHandler:
    """The tool for a class of actions, and the conversions of arguments and outcomes."""

    tool_name: str
    to_arguments: Callable[[Any], Mapping[str, Any]]
    to_observation: Callable[[Any, CallOutcome], Observation] | None = None


def in_time(tool: AnyTool, action: Any) -> AnyTool:
    """Return the tool with the time limit of an action.

    A tool that ends commands itself has `_GRACE_SECONDS` more to do so.
    """
    seconds: float | None = getattr(action, "timeout", None)
    if seconds is None:
        return tool
    grace = _GRACE_SECONDS if isinstance(action, CmdRunAction) else 0.0
    return time_limit(seconds + grace)(tool)


def _command(action: CmdRunAction) -> dict[str, Any]:
    seconds = action.timeout or (_BLOCKING_SECONDS if action.blocking else None)
    typed = action.is_input or None
    return {"command": action.command, "timeout": seconds, "is_input": typed}


def _of_command(action: CmdRunAction, outcome: CallOutcome) -> Observation:
    code = getattr(outcome.value, "exit_code", None)
    content, failed = content_of(outcome.output), outcome.status != "ok"
    return CmdOutputObservation(content, action.command, code, action.hidden, is_error=failed)


def _view(action: FileReadAction) -> dict[str, Any]:
    part = None if (action.start, action.end) == (1, -1) else [action.start, action.end]
    return {"command": "view", "path": action.path, "view_range": part}


def _of_view(action: FileReadAction, outcome: CallOutcome) -> Observation:
    failed = outcome.status != "ok"
    return FileReadObservation(content_of(outcome.output), action.path, is_error=failed)


def _edit(action: FileEditAction) -> dict[str, Any]:
    arguments = action.model_dump(exclude={"thought", "timeout"})
    return {**arguments, "replace_all": action.replace_all or None}


def _of_edit(action: FileEditAction, outcome: CallOutcome) -> Observation:
    value = outcome.value
    return FileEditObservation(
        content_of(outcome.output),
        action.path,
        getattr(value, "prev_exists", True),
        getattr(value, "diff", None),
        is_error=outcome.status != "ok",
    )


def _of_cell(action: IPythonRunCellAction, outcome: CallOutcome) -> Observation:
    return IPythonRunCellObservation(content_of(outcome.output), action.code)


def _of_browser(action: BrowseInteractiveAction, outcome: CallOutcome) -> Observation:
    del action
    return BrowserOutputObservation(
        content_of(outcome.output), str(getattr(outcome.value, "url", None) or "")
    )


def of_mcp(action: MCPAction, outcome: CallOutcome) -> Observation:
    """Return the observation of a call to an MCP tool."""
    return MCPObservation(content_of(outcome.output), action.name, action.arguments, action.server)


HANDLERS: dict[str, ActionHandler] = {
    "CmdRunAction": ActionHandler(
        tool_name="execute_bash", to_arguments=_command, to_observation=_of_command
    ),
    "FileReadAction": ActionHandler(
        tool_name="str_replace_editor", to_arguments=_view, to_observation=_of_view
    ),
    "FileEditAction": ActionHandler(
        tool_name="str_replace_editor", to_arguments=_edit, to_observation=_of_edit
    ),
    "IPythonRunCellAction": ActionHandler(
        tool_name="execute_ipython_cell",
        to_arguments=lambda action: {"code": action.code},
        to_observation=_of_cell,
    ),
    "BrowseInteractiveAction": ActionHandler(
        tool_name="browser",
        to_arguments=lambda action: {"code": action.browser_actions},
        to_observation=_of_browser,
    ),
}
"""The handlers of the standard actions, with the usual names of the tools."""


def content_of(output: Any) -> Any:
    """Return the output of a tool as the content of an observation."""
    if isinstance(output, str):
        return output
    return [_content_block(block) for block in output]


def _content_block(block: Any) -> TextContent | ImageContent:
    if isinstance(block, ToolOutputText):
        return TextContent(text=block.text)
    if isinstance(block, ToolOutputImage) and block.data is not None:
        data = base64.b64encode(block.data).decode()
        return ImageContent(image_urls=[f"data:{block.mime_type};base64,{data}"])
    if isinstance(block, ToolOutputImage) and block.url is not None:
        return ImageContent(image_urls=[block.url])
    return TextContent(text=f"[{block!r}]")
