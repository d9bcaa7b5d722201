"""Questions of a running tool to the person behind the run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from agents_tools.errors import ToolDeniedError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Question", "ask_person"]


class Question(NamedTuple):
    """A question of a tool to the person behind the run."""

    message: str
    """The question."""
    schema: dict[str, Any]
    """The JSON Schema of the answer."""
    tool_name: str
    """The name of the tool that asks."""
    tool_call_id: str
    """The id of the call that asks."""
    path: tuple[str, ...]
    """The ids of the enclosing calls, outermost first; the last one is the call that asks."""


async def ask_person(
    asker: Callable[[Question], Any] | None,
    message: str,
    answer: Any,
    *,
    tool_name: str,
    tool_call_id: str,
    path: tuple[str, ...],
) -> Any:
    """Return the answer to a question; `ToolContext.ask` documents the parameters and errors."""
    if asker is None:
        raise ToolDeniedError(
            f"Tool {tool_name!r} asked a question, but the run has no handler for questions: "
            f"{message}"
        )
    from pydantic import TypeAdapter, ValidationError

    message = release_text(message)
    adapter: TypeAdapter[Any] = TypeAdapter(answer)
    reply = asker(Question(message, adapter.json_schema(), tool_name, tool_call_id, path))
    if hasattr(reply, "__await__"):
        reply = await reply
    if reply is None:
        raise ToolDeniedError(f"The user declined to answer: {message}")
    try:
        return adapter.validate_python(reply)
    except ValidationError as error:
        problems = "; ".join(problem["msg"] for problem in error.errors(include_url=False)[:3])
        raise ToolDeniedError(f"The answer to {message!r} is invalid: {problems}.") from None
