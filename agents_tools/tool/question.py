"""Questions of a running tool to the person behind the run."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from agents_tools.errors import ModelBehaviorError, ToolDeniedError, UserTypeError, UserValueError
from agents_tools.schema.arguments import ArgumentReader, Field
from agents_tools.schema.problems import describe_problem
from agents_tools.schema.types import NoSchemaError, TypeSchema, object_schema_of, type_schema_of
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["Question", "UnansweredError", "ask_person"]


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
    url: str | None = None
    """The page that the person is asked to open; the answer is then whether they agreed."""
    key: str | None = None
    """The name of the question within its call, if the tool gave it one."""


class UnansweredError(ToolDeniedError):
    """A question was not answered; raised by handlers that know the reason.

    A handler that returns `None` reports that the person declined.

    Args:
        message: The text for the model.
        reason: `declined` or `cancelled` by the person, or `unavailable`: no person can be asked.
    """

    def __init__(
        self, message: str, *, reason: Literal["declined", "cancelled", "unavailable"] = "declined"
    ) -> None:
        super().__init__(message)
        self.reason: Literal["declined", "cancelled", "unavailable"] = reason


async def ask_person(
    asker: Callable[[Question], Any] | None,
    message: str,
    answer: Any,
    *,
    tool_name: str,
    tool_call_id: str,
    path: tuple[str, ...],
    url: str | None = None,
    key: str | None = None,
) -> Any:
    """Return the answer to a question; `ToolContext.ask` documents the parameters and errors."""
    if asker is None:
        raise UnansweredError(
            f"Tool {tool_name!r} asked a question, but the run has no handler for questions: "
            f"{message}",
            reason="unavailable",
        )
    message = release_text(message)
    if url is not None:
        _check_url(url)
        message, answer = f"{message}\n{url}", bool  # shown also where a page cannot be opened
    type_schema = _type_schema_of_answer(answer)
    schema = object_schema_of(type_schema)
    reply = asker(Question(message, schema, tool_name, tool_call_id, path, url, key))
    if hasattr(reply, "__await__"):
        reply = await reply
    if reply is None or (url is not None and reply is False):
        raise UnansweredError(f"The user declined to answer: {message}", reason="declined")
    if type(reply) is answer:
        return reply  # an instance: its JSON form could be masked
    try:
        return _read_answer(type_schema, reply, tool_name)
    except ModelBehaviorError as error:
        problems = "; ".join(
            describe_problem(replace(problem, path=problem.path[1:]))
            for problem in error.problems[:3]
        )
        raise ToolDeniedError(f"The answer to {message!r} is invalid: {problems}.") from None


def _check_url(url: str) -> None:
    if not url.startswith(("https://", "http://")) or not url.isprintable():
        raise UserValueError(
            f"ctx.ask(url=...) expects a URL that starts with https:// or http://, got {url!r:.80}."
        )


def _type_schema_of_answer(answer: Any) -> TypeSchema:
    try:
        return type_schema_of(answer)
    except NoSchemaError as error:
        raise UserTypeError(
            f"ctx.ask(answer=...) is not valid: expected a type with a JSON form, got {answer!r}, "
            f"because {error}. Use for example str, a Literal or a pydantic model."
        ) from None


def _read_answer(type_schema: TypeSchema, reply: Any, tool_name: str) -> Any:
    """Return an answer as a Python value; it is read as an argument of a tool is.

    Raises:
        ModelBehaviorError: It is not of the type, or has no JSON form.
    """
    from pydantic_core import to_json

    schema: dict[str, Any] = {"type": "object", "properties": {"answer": type_schema.json}}
    reader = ArgumentReader.of_fields(
        tool_name,
        [Field(name="answer", key="answer", type_schema=type_schema)],
        None,
        lambda: {**schema, "required": ["answer"], "$defs": type_schema.defs},
    )
    try:
        text = to_json({"answer": reply}, fallback=repr)
    except ValueError:  # for example half of a surrogate pair
        text = to_json({"answer": release_text(repr(reply))})
    return reader.read(text.decode())["answer"]
