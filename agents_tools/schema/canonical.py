"""The canonical form of accepted arguments: JSON values of the published types, with defaults."""

from __future__ import annotations

import typing
from functools import cache
from typing import Any

from agents_tools.schema.lookup import json_type, named_types, types_of

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.schema.lookup import SchemaLookup

    Schema = dict[str, Any]

__all__ = ["canonical_value"]


def canonical_value(value: Any, schemas: Sequence[Schema], lookup: SchemaLookup) -> Any:
    """Return a copy of an accepted JSON value in its canonical form, at any depth.

    Objects get the published defaults of the properties that they lack. Numbers and booleans that
    the configuration of a pydantic model accepts in another type, such as `"off"` for `false`, are
    converted, so that a rule about the value cannot be bypassed.

    Args:
        value: The value.
        schemas: The schemas of the value: several if it has alternatives.
        lookup: The JSON Schema of the document.
    """
    if isinstance(value, list):
        return _canonical_list(typing.cast("list[Any]", value), schemas, lookup)
    if isinstance(value, dict):
        return _canonical_object(typing.cast("Schema", value), schemas, lookup)
    return _of_published_type(value, schemas)


def _canonical_list(items: list[Any], schemas: Sequence[Schema], lookup: SchemaLookup) -> list[Any]:
    fixed = max((len(schema.get("prefixItems", ())) for schema in schemas), default=0)
    rest = lookup.below(schemas, fixed)  # the same for all further elements
    return [
        canonical_value(item, lookup.below(schemas, index) if index < fixed else rest, lookup)
        for index, item in enumerate(items)
    ]


def _canonical_object(
    value: Schema, schemas: Sequence[Schema], lookup: SchemaLookup
) -> dict[str, Any]:
    result = {
        key: canonical_value(item, lookup.below(schemas, key), lookup)
        for key, item in value.items()
    }
    objects = [one for one in schemas if "object" in (named_types(one) or ("object",))]
    if len(objects) == 1:  # of several alternatives, it is not known which one applies
        for key, schema in objects[0].get("properties", {}).items():
            if key not in result and isinstance(schema, dict) and "default" in schema:
                below = lookup.below(objects, key)
                result[key] = canonical_value(schema["default"], below, lookup)
    return result


def _of_published_type(value: Any, schemas: Sequence[Schema]) -> Any:
    if value is None:
        return None
    sent, types = json_type(value), types_of(schemas, value) - {"null"}
    if len(types) != 1 or sent in types or (sent, *types) == ("integer", "number"):
        return value
    convert = _converter(*types)
    try:
        return value if convert is None else convert(value)
    except ValueError:
        return value


@cache
def _converter(type_name: str) -> Callable[[Any], Any] | None:
    """Return the function with which pydantic converts values to a JSON type."""
    from pydantic_core import SchemaValidator

    kind: Any = {"boolean": "bool", "integer": "int", "number": "float"}.get(type_name)
    return None if kind is None else SchemaValidator({"type": kind}).validate_python
