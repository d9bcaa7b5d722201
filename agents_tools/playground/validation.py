"""Validation of arguments without a call, for the page."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools.errors import ModelBehaviorError
from agents_tools.schema.problems import format_path
from agents_tools.tool.call import Call
from agents_tools.tool.failure import default_tool_error_function
from agents_tools.tool.invocation import prepare

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.errors import ArgumentProblem
    from agents_tools.playground.target_state import Tool
    from agents_tools.tool.context import ToolContext

__all__ = ["ArgumentRefusal", "arguments_text", "refusal_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ArgumentRefusal:
    """The reason why arguments are invalid.

    Attributes:
        message: The error message that a model would get.
        faults: One record for each invalid value.
    """

    message: str
    faults: tuple[Mapping[str, Any], ...]


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Return arguments as JSON text, as a model would write them."""
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which the tool rejects
        return json.dumps(arguments, separators=(",", ":"))
    return text


async def refusal_of(tool: Tool, arguments: Mapping[str, Any]) -> ArgumentRefusal | None:
    """Return why a tool rejects arguments, or `None` if it accepts them.

    Nothing of the tool is run.
    """
    text = arguments_text(arguments)
    call = Call.running(None, tool.name, text)
    await prepare(call, tool, text)
    error = call.failure
    if error is None:
        return None
    message = await _error_text(tool, call.context, error)
    problems = error.problems if isinstance(error, ModelBehaviorError) else ()
    return ArgumentRefusal(message=message, faults=tuple(_faults(problems, str(error))))


async def _error_text(tool: Tool, context: ToolContext[Any], error: Exception) -> str:
    function = tool.failure_error_function or default_tool_error_function
    try:
        text = function(context, error)
        return text if isinstance(text, str) else str(await text)
    except Exception:  # noqa: BLE001 - the user's function may fail in any way
        return default_tool_error_function(context, error)


def _faults(problems: Sequence[ArgumentProblem], message: str) -> list[dict[str, Any]]:
    """Return each problem with its line of the message, without the repeated path."""
    lines = message.splitlines()[1:] if len(problems) > 1 or problems[:1] else []
    faults: list[dict[str, Any]] = []
    for index, problem in enumerate(problems):
        start = f"- {format_path(problem.path)}: "
        line = lines[index] if index < len(lines) else ""
        text = line.removeprefix(start) if line.startswith(start) else ""
        if not text and not problem.path:
            text = message
        faults.append(
            {
                "path": list(problem.path),
                "message": text or f"expected {problem.expected or 'something else'}",
                "expected": problem.expected,
                "got": problem.got,
            }
        )
    return faults or [{"path": [], "message": message, "expected": "", "got": ""}]
