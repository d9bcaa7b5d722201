"""Questions of a running tool to the person behind the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from agents_tools.errors import ModelBehaviorError, ToolDeniedError, UserTypeError
from agents_tools.schema.arguments import ArgumentReader, Field
from agents_tools.schema.problems import describe_problem
from agents_tools.schema.types import NoSchemaError, TypeSchema, leaf_of, object_schema_of
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
    message = release_text(message)
    leaf = _leaf_of_answer(answer)
    reply = asker(Question(message, object_schema_of(leaf), tool_name, tool_call_id, path))
    if hasattr(reply, "__await__"):
        reply = await reply
    if reply is None:
        raise ToolDeniedError(f"The user declined to answer: {message}")
    if type(reply) is answer:
        return reply  # an instance: its JSON form could be masked
    try:
        return _read_answer(leaf, reply, tool_name)
    except ModelBehaviorError as error:
        problems = "; ".join(
            describe_problem(replace(problem, path=problem.path[1:]))
            for problem in error.problems[:3]
        )
        raise ToolDeniedError(f"The answer to {message!r} is invalid: {problems}.") from None


def _leaf_of_answer(answer: Any) -> TypeSchema:
    try:
        return leaf_of(answer)
    except NoSchemaError as error:
        raise UserTypeError(
            f"ctx.ask(answer=...) is not valid: expected a type with a JSON form, got {answer!r}, "
            f"because {error}. Use for example str, a Literal or a pydantic model."
        ) from None


def _read_answer(leaf: TypeSchema, reply: Any, tool_name: str) -> Any:
    """Return an answer as a Python value; it is read as an argument of a tool is.

    Raises:
        ModelBehaviorError: It is not of the type, or has no JSON form.
    """
    from pydantic_core import to_json

    schema: dict[str, Any] = {"type": "object", "properties": {"answer": leaf.json}}
    reader = ArgumentReader.of_fields(
        tool_name,
        [Field(name="answer", key="answer", leaf=leaf)],
        None,
        lambda: {**schema, "required": ["answer"], "$defs": leaf.defs},
    )
    try:
        text = to_json({"answer": reply}, fallback=repr)
    except ValueError:  # for example half of a surrogate pair
        text = to_json({"answer": release_text(repr(reply))})
    return reader.read(text.decode())["answer"]
