"""Whether a tool takes some arguments, and what is wrong with each that it does not take."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools._arguments import SchemaReader, format_path
from agents_tools.context import ToolContext
from agents_tools.errors import ModelBehaviorError, UserError
from agents_tools.tool import default_tool_error_function

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools._problem import ArgumentProblem
    from agents_tools.playground.loaded import Tool

__all__ = ["Refusal", "arguments_text", "refusal_of"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """Why arguments are not taken.

    Attributes:
        message: What the model would be told.
        faults: One record for each place.
    """

    message: str
    faults: tuple[Mapping[str, Any], ...]


def arguments_text(arguments: Mapping[str, Any]) -> str:
    """Give arguments as JSON text, as a model would."""
    text = json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode()
    except UnicodeEncodeError:  # half a surrogate pair, which the tool then refuses
        return json.dumps(arguments, separators=(",", ":"))
    return text


async def refusal_of(tool: Tool, arguments: Mapping[str, Any]) -> Refusal | None:
    """Say why a tool does not take some arguments; `None` where it does.

    Nothing of the tool runs but its validation.
    """
    text = arguments_text(arguments)
    context: ToolContext[Any] = ToolContext(tool_name=tool.name)
    prepared = await tool.prepare(context, text)
    error = context.refusal
    if error is None and prepared == text:
        error = _by_schema(tool, text)
    if error is None:
        return None
    message = await _told(tool, context, error)
    problems = error.problems if isinstance(error, ModelBehaviorError) else ()
    return Refusal(message=message, faults=tuple(_faults(problems, str(error))))


def _by_schema(tool: Tool, text: str) -> ModelBehaviorError | None:
    """Check by the schema that is published, for tools whose policies have changed it."""
    try:
        SchemaReader(tool.name, tool.params_json_schema).settled(text)
    except ModelBehaviorError as error:
        return error
    except UserError:  # nothing is there to enforce it; the call itself will tell
        return None
    return None


async def _told(tool: Tool, context: ToolContext[Any], error: Exception) -> str:
    function = tool.failure_error_function or default_tool_error_function
    try:
        told = function(context, error)
        return told if isinstance(told, str) else str(await told)
    except Exception:  # noqa: BLE001 - a function of the user's, which fails
        return default_tool_error_function(context, error)


def _faults(problems: Sequence[ArgumentProblem], message: str) -> list[dict[str, Any]]:
    """Give each problem with its line of the message, which names the place once more."""
    lines = message.splitlines()[1:] if len(problems) > 1 or problems[:1] else []
    told: list[dict[str, Any]] = []
    for index, problem in enumerate(problems):
        start = f"- {format_path(problem.path)}: "
        line = lines[index] if index < len(lines) else ""
        text = line.removeprefix(start) if line.startswith(start) else ""
        if not text and not problem.path:
            text = message
        told.append(
            {
                "path": list(problem.path),
                "message": text or f"expected {problem.expected or 'something else'}",
                "expected": problem.expected,
                "got": problem.got,
            }
        )
    return told or [{"path": [], "message": message, "expected": "", "got": ""}]
