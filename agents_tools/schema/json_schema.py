"""The JSON Schema of a tool's arguments, read from a type or from a raw schema."""

from __future__ import annotations

import typing
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from agents_tools.schema.arguments import ArgumentReader

__all__ = ["check_output_schema", "check_params_schema", "copy_json", "reader_of"]


def reader_of(name: str, schema: Any) -> ArgumentReader:
    """Return the reader for the arguments that a schema describes.

    Args:
        name: The name of the tool, for error messages.
        schema: A pydantic model, a dataclass, a TypedDict, or a raw JSON Schema.

    Raises:
        UserError: The type has no JSON Schema, or the schema is invalid.
    """
    from agents_tools.schema.arguments import ArgumentReader
    from agents_tools.schema.types import NoSchemaError

    if isinstance(schema, Mapping):
        return ArgumentReader.of_schema(name, typing.cast("dict[str, Any]", copy_json(schema)))
    try:
        return ArgumentReader.of_type(name, schema)
    except NoSchemaError as error:
        raise UserTypeError(
            f"The schema of tool {name!r} cannot be converted to JSON Schema ({error}): got "
            f"{schema!r:.80}. "
            + (error.remedy or "Pass a pydantic model, a dataclass, a TypedDict or a JSON Schema.")
        ) from error


def check_params_schema(name: str, schema: Any) -> dict[str, Any]:
    """Return a deep copy of a raw JSON Schema.

    Raises:
        UserError: It is not the schema of an object, or not JSON.
    """
    mapping = typing.cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else None
    if mapping is None or mapping.get("type", "object") != "object":
        raise UserTypeError(
            f"The params_json_schema of tool {name!r} must be the JSON Schema of an object: "
            f'expected a mapping with "type": "object", got {schema!r:.80}.'
        )
    return _copy_schema(name, "params_json_schema", mapping)


def check_output_schema(name: str, schema: Any) -> dict[str, Any] | None:
    """Return a deep copy of the raw JSON Schema of results, if there is one.

    Raises:
        UserError: It is not a mapping, or not JSON.
    """
    if schema is None:
        return None
    if not isinstance(schema, Mapping):
        raise UserTypeError(
            f"The output_json_schema of tool {name!r} must be a JSON Schema: expected a mapping, "
            f"got {schema!r:.80}."
        )
    return _copy_schema(name, "output_json_schema", typing.cast("Mapping[str, Any]", schema))


def _copy_schema(name: str, option: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    import json

    try:
        # Also replaces members of enumerations by their plain values.
        return json.loads(json.dumps(copy_json(schema), allow_nan=False))
    except (RecursionError, TypeError, ValueError) as error:
        raise UserValueError(
            f"The {option} of tool {name!r} has a value that JSON cannot represent "
            f"({error}). Use only strings, finite numbers, booleans, None, lists, and mappings "
            "with string keys."
        ) from None


def copy_json(value: Any) -> Any:
    """Return a deep copy of a JSON value, about ten times faster than `copy.deepcopy`."""
    if isinstance(value, str):  # most values; the check for a mapping is slow
        return value
    if isinstance(value, Mapping):
        mapping = typing.cast("Mapping[str, Any]", value)
        return {key: copy_json(item) for key, item in mapping.items()}
    if isinstance(value, list):
        return [copy_json(item) for item in typing.cast("list[Any]", value)]
    return value
