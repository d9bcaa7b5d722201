"""Rewriting JSON Schemas of draft 4 in the current dialect."""

from __future__ import annotations

import typing
from typing import Any

from agents_tools.schema.references import ONE_SCHEMA, SCHEMA_LIST, SCHEMA_MAP

__all__ = ["upgrade_dialect"]

Schema = dict[str, Any]

_MAPS = SCHEMA_MAP | {"$defs", "definitions"}
_NESTED = ONE_SCHEMA | SCHEMA_LIST | {"items", "additionalItems"}
_BOUNDS = (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum"))


def upgrade_dialect(schema: Schema) -> Schema:
    """Return a JSON Schema in draft 2020-12 for one of draft 4, or one that names no draft.

    In draft 4, `exclusiveMinimum` and `exclusiveMaximum` are booleans, and `items` can be a list. A
    schema that names another draft stays as it is.

    Args:
        schema: The JSON Schema; it is not changed.
    """
    dialect = schema.get("$schema")
    if dialect is None:
        return _upgrade(schema)
    if isinstance(dialect, str) and "json-schema.org/draft-04/" in dialect:
        return _upgrade({key: value for key, value in schema.items() if key != "$schema"})
    return schema


def _upgrade(node: Any) -> Any:
    if isinstance(node, list):
        return [_upgrade(one) for one in typing.cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema: Schema = {}
    for key, value in typing.cast("Schema", node).items():
        if key in _MAPS and isinstance(value, dict):
            named = typing.cast("Schema", value).items()
            schema[key] = {name: _upgrade(one) for name, one in named}
        else:
            schema[key] = _upgrade(value) if key in _NESTED else value
    for exclusive, inclusive in _BOUNDS:
        if isinstance(schema.get(exclusive), bool):
            is_exclusive = schema.pop(exclusive)
            if is_exclusive and inclusive in schema:
                schema[exclusive] = schema.pop(inclusive)
    if isinstance(schema.get("items"), list):
        schema["prefixItems"] = schema.pop("items")
        if "additionalItems" in schema:
            schema["items"] = schema.pop("additionalItems")
    return schema
