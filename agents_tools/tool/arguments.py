"""Conversion of the arguments of a call to JSON text and back."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from agents_tools.errors import UserTypeError, UserValueError

__all__ = ["arguments_to_json", "encode_arguments", "parse_arguments", "parse_object"]


def arguments_to_json(name: str, arguments: Any, keywords: Mapping[str, Any]) -> str:
    """Return the arguments of a call as JSON text.

    Args:
        name: The name of the tool, for error messages.
        arguments: JSON text, which is returned unchanged; a mapping; or `None`.
        keywords: Arguments by name, added to the mapping.

    Raises:
        UserError: The arguments are of another type, have no JSON form, or are passed as JSON
            text and by name at once.
    """
    if isinstance(arguments, str):
        if keywords:
            raise UserTypeError(
                f"Tool {name!r} got both JSON text and keyword arguments. Pass one of the two."
            )
        return arguments
    if arguments is not None and not isinstance(arguments, Mapping):
        raise UserTypeError(
            f"Tool {name!r} expects a JSON string, a mapping, or keyword arguments, got a "
            f"{type(arguments).__name__}."
        )
    values = {**typing.cast("Mapping[str, Any]", arguments or {}), **keywords}
    remedy = "To pass Python objects, call the function itself: `tool(...)`."
    return encode_arguments(values, f"of tool {name!r}", remedy)


def encode_arguments(arguments: Mapping[str, Any], source: str, remedy: str) -> str:
    """Return arguments as JSON text.

    Args:
        arguments: The arguments.
        source: The source of the arguments, for the error message.
        remedy: The last sentence of the error message.

    Raises:
        UserError: An argument cannot be converted to JSON.
    """
    from pydantic_core import to_json

    try:
        # Bytes are base64, except in pydantic models, which are written by their own rules.
        return to_json(arguments, inf_nan_mode="constants", bytes_mode="base64").decode()
    except Exception as error:
        raise UserValueError(
            f"The arguments {source} cannot be converted to JSON ({error}). {remedy}"
        ) from error


def parse_arguments(args_json: str) -> Mapping[str, Any]:
    """Return the arguments of a call as JSON values; empty if the text is not a JSON object."""
    return parse_object(args_json) or {}


def parse_object(args_json: object) -> dict[str, Any] | None:
    """Return a JSON object as JSON values; `None` if the text is not one that tools accept.

    Empty text and `null` are read as an empty object, and a string that contains an object is read
    as that object.

    Args:
        args_json: The text.
    """
    from pydantic_core import from_json

    from agents_tools.text.json_limits import check_bounds, check_keys

    if not isinstance(args_json, str):
        return None
    if not args_json.strip():
        return {}
    try:
        check_bounds(args_json)
        value: Any = from_json(args_json)
        check_keys(args_json)
    except (TypeError, ValueError):  # half of a surrogate pair raises TypeError
        return None
    if isinstance(value, str) and value.lstrip().startswith("{"):
        return parse_object(value)
    if value is None:
        return {}
    return typing.cast("dict[str, Any]", value) if isinstance(value, dict) else None
