"""Ask questions of a served tool to the person who uses the client (elicitation)."""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any

from agents_tools.mcp._coerce import an_object
from agents_tools.mcp.server.served_client import MissingCapabilityError
from agents_tools.tool.question import UnansweredError

if TYPE_CHECKING:
    from agents_tools.mcp.server.served_client import ServedClient
    from agents_tools.tool.question import Question

__all__ = ["ask_client"]

_KEY = "answer"
_SCALARS = frozenset({"string", "number", "integer", "boolean"})


async def ask_client(client: ServedClient, question: Question) -> Any:
    """Ask the person at the client a question, and return the answer.

    The answer has the form of `elicitation/create`, from protocol version 2025-06-18 on; a question
    with a URL is of 2025-11-25.

    Raises:
        UnansweredError: The person declined or closed the question, or cannot be asked.
    """
    message = question.message
    if question.url is not None:
        message = message.removesuffix(f"\n{question.url}")
        mode: dict[str, Any] = {"mode": "url", "url": question.url}
        mode["elicitationId"] = uuid.uuid4().hex
        needs: dict[str, dict[str, Any]] = {"elicitation": {"url": {}}}
    else:
        mode = {"mode": "form", "requestedSchema": _form_of(question)}
        needs = {"elicitation": {}}
    try:
        result = await client.request(
            "elicitation/create",
            {"message": message, **mode},
            needs=needs,
            key=question.key,
        )
    except MissingCapabilityError as error:
        raise MissingCapabilityError(_text(question, str(error)), error.capabilities) from None
    except UnansweredError as error:
        raise _unavailable(question, str(error)) from None
    return _read_result(question, result)


def _form_of(question: Question) -> dict[str, Any]:
    """Return the form that requests the answer to a question.

    A form of the protocol is an object with scalar fields. A scalar value becomes its only field.

    Raises:
        UnansweredError: A form cannot express the answer.
    """
    schema = question.schema
    fields = an_object(schema.get("properties"))
    if schema.get("type") == "object" and fields:
        if all(map(_is_form_field, fields.values())):
            return schema
    elif _is_form_field(schema):
        return {"type": "object", "properties": {_KEY: schema}, "required": [_KEY]}
    why = "a form can only have fields for texts, numbers, booleans and choices"
    raise _unavailable(question, why)


def _is_form_field(field: Any) -> bool:
    """Return whether a form supports a field: a scalar, or a selection from a list of choices."""
    schema = an_object(field)
    if schema.get("type") != "array":
        return schema.get("type") in _SCALARS
    items = an_object(schema.get("items"))
    return "enum" in items or "anyOf" in items or "oneOf" in items


def _read_result(question: Question, result: dict[str, Any]) -> Any:
    """Return the answer in a result of `elicitation/create`.

    Raises:
        UnansweredError: The person declined or closed the question.
    """
    action = result.get("action")
    if action == "accept":
        if question.url is not None:
            return True
        content = an_object(result.get("content"))
        value = content.get(_KEY)
        # A form without the field is an invalid answer; `None` would mean that there is none.
        return content if value is None or question.schema.get("type") == "object" else value
    if action == "decline":
        raise UnansweredError(f"The user declined to answer: {question.message}")
    raise UnansweredError(
        f"The user closed the question without an answer: {question.message}", reason="cancelled"
    )


def _unavailable(question: Question, why: str) -> UnansweredError:
    return UnansweredError(_text(question, why), reason="unavailable")


def _text(question: Question, why: str) -> str:
    return (
        f"{question.tool_name!r} asked a question that the client cannot answer, because {why}: "
        f"{question.message}"
    )
