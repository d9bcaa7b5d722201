"""Closing the objects of a JSON Schema that do not say whether they accept further keys."""

from __future__ import annotations

import typing
from typing import Any

__all__ = ["close_objects"]

Schema = dict[str, Any]

_OPENING = frozenset(
    {
        "$dynamicRef",
        "$ref",
        "additionalProperties",
        "allOf",
        "anyOf",
        "dependentSchemas",
        "if",
        "oneOf",
        "patternProperties",
        "unevaluatedProperties",
    }
)
"""Keywords after which a schema can allow keys that `properties` does not name."""

_ALONE = frozenset({"additionalProperties", "contains", "items", "propertyNames"})
_DEFINITIONS = frozenset({"$defs", "definitions"})
_NAMED = _DEFINITIONS | {"patternProperties", "properties"}
_COMBINED = frozenset({"allOf", "dependentSchemas", "else", "if", "not", "then"})


def close_objects(root: Schema) -> Schema:
    """Return a JSON Schema with `additionalProperties: false` in each implicitly open object.

    A part of a combination stays as it is, because other parts can name further keys.
    """

    def close(node: Any, *, can_close: bool) -> Any:
        if isinstance(node, list):
            return [close(one, can_close=can_close) for one in typing.cast("list[Any]", node)]
        if not isinstance(node, dict):
            return node
        schema = typing.cast("Schema", node)
        is_alone = can_close and not schema.keys() & {"allOf", "properties"}
        result: Schema = {}
        for key, value in schema.items():
            if key in _NAMED and isinstance(value, dict):
                named = typing.cast("Schema", value).items()
                each = can_close and (key not in _DEFINITIONS or not combines_references)
                result[key] = {name: close(one, can_close=each) for name, one in named}
            elif key in _ALONE or key == "prefixItems":
                result[key] = close(value, can_close=can_close)
            elif key in _COMBINED or key in {"anyOf", "oneOf"}:
                result[key] = close(value, can_close=is_alone and key not in _COMBINED)
            else:
                result[key] = value
        if can_close and schema.get("properties") and not _OPENING.intersection(schema):
            result["additionalProperties"] = False
        return result

    combines_references = _combines_references(root)
    return close(root, can_close=True)


def _combines_references(root: Schema) -> bool:
    """Return whether a definition of a schema can be a part of a combination."""
    pending: list[tuple[Any, bool]] = [(root, False)]
    while pending:
        node, is_part = pending.pop()
        if isinstance(node, list):
            pending.extend((one, is_part) for one in typing.cast("list[Any]", node))
        if not isinstance(node, dict):
            continue
        schema = typing.cast("Schema", node)
        if "$ref" in schema and (is_part or "properties" in schema):
            return True
        pending.extend((one, is_part or key in _COMBINED) for key, one in schema.items())
    return False
