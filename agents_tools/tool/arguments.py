"""Conversion of the arguments of a call to JSON text and back."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import Any

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article

__all__ = ["arguments_to_json", "encode_arguments"]


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
            f"Tool {name!r} expects a JSON string, a mapping, or keyword arguments, got "
            f"{type_with_article(arguments)}. Pass the arguments by name, or call the function "
            "itself: `tool(...)`."
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
