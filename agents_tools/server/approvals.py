"""Parse the decisions of users about calls that wait for approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

from agents_tools.agents.state import edited_arguments
from agents_tools.errors import UserError
from agents_tools.server.http_errors import HttpError, json_kind, shown
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from agents_tools.content.items import ToolApprovalItem

__all__ = ["CallReference", "read_decision", "waiting_call"]


class CallReference(NamedTuple):
    """Which of the waiting calls of a run a decision is about.

    Attributes:
        call_id: The id of the call.
        path: The ids of the enclosing calls, outermost first, with or without its own id. Needed
            if several waiting calls have the same id.
    """

    call_id: str
    path: tuple[str, ...] | None = None


def read_decision(given: Any, place: str = "decisions[0]") -> tuple[CallReference, Decision]:
    """Return the decision in a JSON object, and the call that it is about.

    Args:
        given: The object: `call_id`, `approve`, and optionally `path`, `message`, `arguments` (an
            object or JSON text) and `always`.
        place: The location of the object, for error messages.

    Raises:
        HttpError: The object is not a decision.
    """
    if not isinstance(given, Mapping):
        raise HttpError(422, f"{place}: expected an object, got {json_kind(given)}.")
    data = cast("Mapping[str, Any]", given)
    path, arguments = data.get("path"), data.get("arguments")
    _check(f"{place}.call_id", "a text", isinstance(data.get("call_id"), str))
    _check(f"{place}.approve", "true or false", isinstance(data.get("approve"), bool))
    _check(f"{place}.path", "a list of texts", path is None or _is_path(path))
    _check(f"{place}.message", "a text", isinstance(data.get("message"), (str, type(None))))
    _check(f"{place}.arguments", "an object", isinstance(arguments, (str, Mapping, type(None))))
    _check(f"{place}.always", "true or false", isinstance(data.get("always"), (bool, type(None))))
    if arguments is not None and data["approve"]:
        try:
            arguments = edited_arguments(cast("Mapping[str, Any] | str", arguments))
        except UserError as error:
            raise HttpError(422, f"{place}: {error}") from None
    else:
        arguments = None  # a rejected call does not run, so it needs none
    decision = Decision(
        approved=data["approve"],
        message=data.get("message"),
        arguments=arguments,
        always=bool(data.get("always")),
    )
    return CallReference(data["call_id"], None if path is None else tuple(path)), decision


def waiting_call(
    reference: CallReference, waiting: Sequence[ToolApprovalItem], place: str
) -> ToolApprovalItem:
    """Return the waiting call of a reference.

    Raises:
        HttpError: No call matches, or several calls match.
    """
    matching = [
        item
        for item in waiting
        if item.call_id == reference.call_id
        and reference.path in {None, item.path, (*item.path, item.call_id)}
    ]
    if len(matching) == 1:
        return matching[0]
    named = ", ".join("/".join((*item.path, item.call_id)) for item in waiting)
    if not matching:
        raise HttpError(
            422,
            f"{place}: the call {shown(reference.call_id)} does not wait. Waiting calls: {named}.",
        )
    raise HttpError(
        422,
        f"{place}: several calls with the id {shown(reference.call_id)} wait. Add the path of one "
        f"of them: {named}.",
    )


def _check(place: str, expected: str, fits: bool) -> None:
    if not fits:
        raise HttpError(422, f"{place}: expected {expected}.")


def _is_path(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(part, str) for part in cast("Sequence[object]", value)
    )
