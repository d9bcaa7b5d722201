"""Parse the decisions of users about calls that wait for approval."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.server.http_errors import HttpError, json_kind, shown

if TYPE_CHECKING:
    from agents_tools.content.items import ToolApprovalItem

__all__ = ["Verdict", "waiting_call"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The decision of a user about one call.

    Attributes:
        call_id: The id of the call.
        approve: Whether the call can run.
        path: The ids of the enclosing calls, outermost first, with or without its own id. Needed
            if several waiting calls have the same id.
        message: The reason for a rejection. The model gets it.
        arguments: New arguments for the call: a mapping or JSON text.
        always: Whether later calls of the tool need no approval in this run.
    """

    call_id: str
    approve: bool
    path: tuple[str, ...] | None = None
    message: str | None = None
    arguments: Mapping[str, Any] | str | None = None
    always: bool = False

    @classmethod
    def read(cls, given: Any, place: str = "decisions[0]") -> Verdict:
        """Return the verdict in a JSON value or in an object with these attributes.

        Args:
            given: The JSON value or the object.
            place: The location of the value, for error messages.

        Raises:
            HttpError: The value is not a verdict.
        """
        if isinstance(given, Verdict):
            return given
        if not isinstance(given, Mapping):
            if not hasattr(given, "call_id"):
                raise HttpError(422, f"{place}: expected an object, got {json_kind(given)}.")
            given = {name: getattr(given, name, None) for name in cls.__slots__}
        data = cast("Mapping[str, Any]", given)
        path = data.get("path")
        arguments = data.get("arguments")
        _check(f"{place}.call_id", "a text", isinstance(data.get("call_id"), str))
        _check(f"{place}.approve", "true or false", isinstance(data.get("approve"), bool))
        _check(f"{place}.path", "a list of texts", path is None or _is_path(path))
        _check(f"{place}.message", "a text", isinstance(data.get("message"), (str, type(None))))
        _check(f"{place}.arguments", "an object", isinstance(arguments, (str, Mapping, type(None))))
        _check(
            f"{place}.always", "true or false", isinstance(data.get("always"), (bool, type(None)))
        )
        return cls(
            call_id=data["call_id"],
            approve=data["approve"],
            path=None if path is None else tuple(path),
            message=data.get("message"),
            arguments=arguments,
            always=bool(data.get("always")),
        )


def waiting_call(
    verdict: Verdict, waiting: Sequence[ToolApprovalItem], place: str
) -> ToolApprovalItem:
    """Return the waiting call of a verdict.

    Raises:
        HttpError: No call matches, or several calls match.
    """
    matching = [
        item
        for item in waiting
        if item.call_id == verdict.call_id
        and verdict.path in {None, item.path, (*item.path, item.call_id)}
    ]
    if len(matching) == 1:
        return matching[0]
    named = ", ".join("/".join((*item.path, item.call_id)) for item in waiting)
    if not matching:
        raise HttpError(
            422,
            f"{place}: the call {shown(verdict.call_id)} does not wait. Waiting calls: {named}.",
        )
    raise HttpError(
        422,
        f"{place}: several calls with the id {shown(verdict.call_id)} wait. Add the path of one of "
        f"them: {named}.",
    )


def _check(place: str, expected: str, fits: bool) -> None:
    if not fits:
        raise HttpError(422, f"{place}: expected {expected}.")


def _is_path(value: object) -> bool:
    return isinstance(value, (list, tuple)) and all(
        isinstance(part, str) for part in cast("Sequence[object]", value)
    )
