"""A JSON Schema in words: what a parameter takes, for help texts."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents_tools._strict import References
from agents_tools._text import shorten
from agents_tools.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Reader", "Schema", "described_kind", "notes_on", "parameters_of"]

Schema = dict[str, Any]


class Reader:
    """Reads the schemas within one schema.

    Args:
        root: The whole schema, where references lead.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root: Schema = dict(root)
        self._references = References(self.root)

    def read(self, schema: object) -> Schema:
        """Give a schema with references followed and a lone `allOf` taken apart."""
        found: Schema = cast("Schema", schema) if isinstance(schema, dict) else {}
        try:
            found = self._references.followed(found)
        except UserError:
            return {}
        arms = found.get("allOf")
        if isinstance(arms, list) and len(cast("list[Any]", arms)) == 1:
            rest = {key: value for key, value in found.items() if key != "allOf"}
            return self.read({**self.read(cast("list[Any]", arms)[0]), **rest})
        return found

    def arms(self, schema: object) -> list[Schema]:
        """Give the alternatives of a schema, each of one type; an untyped one as it is."""
        found = self.read(schema)
        for key in ("anyOf", "oneOf"):
            if isinstance(found.get(key), list):
                rest = {k: v for k, v in found.items() if k not in {key, *_ANNOTATIONS}}
                return [
                    {**rest, **arm}
                    for child in cast("list[Any]", found[key])
                    for arm in self.arms(child)
                ]
        kinds = found.get("type")
        if isinstance(kinds, list):
            return [_of_kind(found, kind) for kind in cast("list[Any]", kinds)]
        if kinds is None and (values := _choices(found)) is not None:
            by_kind = list(dict.fromkeys(kind_of_value(value) for value in values))
            return [_of_kind(found, kind) for kind in by_kind]
        return [found]

    def property(self, schema: object, name: str) -> object:
        """Give the schema of one member of an object."""
        for arm in self.arms(schema):
            properties = arm.get("properties")
            if isinstance(properties, dict) and name in properties:
                return cast("Schema", properties)[name]
        for arm in self.arms(schema):
            if isinstance(arm.get("additionalProperties"), dict):
                return arm["additionalProperties"]
        return {}


_ANNOTATIONS = ("title", "description", "default", "examples", "discriminator", "deprecated")


def parameters_of(schema: Mapping[str, Any]) -> dict[str, Schema]:
    """Give the schemas of the parameters by name."""
    found = Reader(schema).read(dict(schema)).get("properties")
    return cast("dict[str, Schema]", found) if isinstance(found, dict) else {}


def described_kind(reader: Reader, schema: object, *, depth: int = 0) -> str:
    """Say what a value must be: `integer`, `array of string`, or `red or blue`."""
    arms = reader.arms(schema)
    found = list(dict.fromkeys(_kind_of_arm(reader, arm, depth) for arm in arms))
    if "null" in found:  # last, since it is what most callers never send
        found = [kind for kind in found if kind != "null"] + ["null"]
    return " or ".join(found)


def notes_on(reader: Reader, schema: object) -> list[str]:
    """List the bounds of a value, as short notes."""
    notes: list[str] = []
    for arm in reader.arms(schema):
        low, high = arm.get("minimum"), arm.get("maximum")
        if low is not None and high is not None:
            notes.append(f"{low:g} to {high:g}")
        elif low is not None:
            notes.append(f"{low:g} or more")
        elif high is not None:
            notes.append(f"{high:g} or less")
        for key, text in _BOUNDS.items():
            if key in arm:
                notes.append(text.format(arm[key]))
    return list(dict.fromkeys(notes))


def kind_of_value(value: object) -> str:
    """Give the JSON type of a value."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


_BOUNDS = {
    "exclusiveMinimum": "more than {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} characters",
    "maxLength": "at most {} characters",
    "minItems": "at least {} items",
    "maxItems": "at most {} items",
    "pattern": "like {}",
    "format": "{}",
}

_DEEPEST = 2


def _kind_of_arm(reader: Reader, arm: Schema, depth: int) -> str:
    choices = _choices(arm)
    if choices is not None:
        return " or ".join(
            choice if isinstance(choice, str) else json.dumps(choice) for choice in choices
        )
    kind = str(arm.get("type", "any"))
    if depth >= _DEEPEST:
        return kind
    if kind == "array" and arm.get("items"):
        return f"array of {described_kind(reader, arm['items'], depth=depth + 1)}"
    if kind == "object" and isinstance(arm.get("properties"), dict):
        return f"object {{{shorten(', '.join(arm['properties']), 40)}}}"
    if kind == "object" and isinstance(arm.get("additionalProperties"), dict):
        return f"object of {described_kind(reader, arm['additionalProperties'], depth=depth + 1)}"
    return kind


def _choices(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def _of_kind(schema: Schema, kind: Any) -> Schema:
    """Give the part of a schema of several types that is about one of them."""
    one = {**schema, "type": kind}
    values = _choices(schema)
    if values is not None:
        one["enum"] = [value for value in values if kind_of_value(value) == kind]
        one.pop("const", None)
    return one
