"""Flattened schemas for smolagents, which supports neither references nor unions at the top."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError
from agents_tools.schema.references import References

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FlatInputs", "flatten_inputs"]

_VALUE_KEYWORDS = frozenset({"enum", "const", "default", "examples"})
"""Keywords that hold values, not schemas."""
_DESCRIBED_ELSEWHERE = frozenset({"type", "description", "title", "default", "nullable"})
"""Keywords that the prompt of a code agent already shows, or does not need."""
_ALL_TYPES = ["string", "number", "integer", "boolean", "array", "object", "null"]
_MAX_INLINED = 5_000
"""References that are replaced by their schema; beyond this limit only the type remains."""


@dataclass(frozen=True, slots=True)
class FlatInputs:
    """The arguments of a tool in the form of smolagents.

    Attributes:
        inputs: A schema for each argument, with `type`, `description` and `nullable`.
        required: The names of the required arguments.
        nullable: The names of the arguments that accept null.
    """

    inputs: dict[str, dict[str, Any]]
    required: frozenset[str]
    nullable: frozenset[str]

    def bind_arguments(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments of a call by name.

        smolagents marks optional arguments as `nullable`. A null is therefore removed if the tool
        does not accept it, and added for a required argument that is missing and accepts it.
        """
        values = {**dict(zip(self.inputs, args, strict=False)), **arguments}
        if len(args) == 1 and not arguments and isinstance(args[0], dict):
            mapping = cast("dict[str, Any]", args[0])
            if mapping.keys() <= self.inputs.keys():
                values = mapping
        bound = {
            name: value
            for name, value in values.items()
            if value is not None or name in self.nullable or name in self.required
        }
        missing = (self.required & self.nullable) - bound.keys()
        return {**bound, **dict.fromkeys(missing)}

    def with_full_descriptions(self) -> dict[str, dict[str, Any]]:
        """Return the inputs with their whole JSON Schema in the descriptions."""
        return {
            name: {**schema, "description": _full_description(schema)}
            for name, schema in self.inputs.items()
        }


def flatten_inputs(schema: Mapping[str, Any]) -> FlatInputs:
    """Create the inputs of a tool from the schema of its arguments."""
    properties = cast("dict[str, Any]", schema.get("properties", {}))
    required = frozenset(cast("list[str]", schema.get("required", [])))
    inliner = _ReferenceInliner(schema)
    inputs: dict[str, dict[str, Any]] = {}
    nullable: set[str] = set()
    for name, schema_of_input in properties.items():
        inlined = inliner.inline(schema_of_input, frozenset())
        if "null" in _types(inlined):
            nullable.add(name)
        inputs[name] = _input(inlined, optional=name not in required or name in nullable)
    return FlatInputs(inputs, required, frozenset(nullable))


class _ReferenceInliner:
    """Replace references in a schema by the schemas that they refer to."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._references = References(schema)
        self._remaining = _MAX_INLINED

    def inline(self, value: Any, active: frozenset[str]) -> Any:
        """Return a schema without references.

        Args:
            value: A schema, or a part of one.
            active: The references that are being replaced, to detect recursive types.
        """
        if isinstance(value, list):
            return [self.inline(item, active) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        schema = cast("dict[str, Any]", value)
        siblings = {
            key: item if key in _VALUE_KEYWORDS else self.inline(item, active)
            for key, item in schema.items()
            if key not in {"$ref", "$defs"}
        }
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return siblings
        return {**self._target(ref, active), **siblings}

    def _target(self, ref: str, active: frozenset[str]) -> dict[str, Any]:
        try:
            target = self._references.target(ref)
        except UserError:
            return {}
        self._remaining -= 1
        if ref in active or self._remaining < 0:  # a recursive type cannot be replaced completely
            return {key: target[key] for key in ("type", "description") if key in target}
        return cast("dict[str, Any]", self.inline(target, active | {ref}))


def _input(inlined: Any, *, optional: bool) -> dict[str, Any]:
    """Return the schema of one argument, without a union at its top level."""
    schema = _as_object(inlined)
    branches = [_as_object(branch) for branch in cast("list[Any]", schema.pop("anyOf", []))]
    branches = [branch for branch in branches if branch.get("type") != "null"]
    types = _types({**schema, "anyOf": branches} if branches else schema)
    if len(branches) == 1:
        schema = {**branches[0], **schema}
    elif not all(list(branch) == ["type"] for branch in branches):
        schema["allOf"] = [*cast("list[Any]", schema.get("allOf", [])), {"anyOf": branches}]
    result: dict[str, Any] = {
        "type": _type(types),
        "description": schema.pop("description", ""),
        **{key: value for key, value in schema.items() if key != "type"},
    }
    return {**result, "nullable": True} if optional else result


def _as_object(schema: Any) -> dict[str, Any]:
    return dict(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else {}


def _type(types: list[str]) -> str | list[str]:
    """Return the types of one argument in the form of smolagents."""
    result = [name for name in types if name != "null"]
    # In a list of types, smolagents does not accept an integer for "number".
    if "number" in result and "integer" not in result and len(result) > 1:
        result.append("integer")
    return result[0] if len(result) == 1 else result or "null"


def _types(value: Any) -> list[str]:
    """Return the JSON types that a schema allows; all types if it does not restrict them."""
    if not isinstance(value, dict):
        return list(_ALL_TYPES)
    schema = cast("dict[str, Any]", value)
    declared = schema.get("type")
    if isinstance(declared, str):
        return [declared]
    if isinstance(declared, list):
        return list(cast("list[str]", declared))
    values = schema.get("enum", [schema["const"]] if "const" in schema else None)
    if isinstance(values, list):
        return _unique([_type_of(item) for item in cast("list[Any]", values)])
    for key in ("anyOf", "oneOf"):
        if isinstance(schema.get(key), list):
            return _unique([name for branch in schema[key] for name in _types(branch)])
    for branch in cast("list[Any]", schema.get("allOf", [])):
        if (types := _types(branch)) != _ALL_TYPES:
            return types
    return list(_ALL_TYPES)


def _unique(types: list[str]) -> list[str]:
    return list(dict.fromkeys(types))


def _type_of(value: Any) -> str:
    for kind, name in _NAMES:
        if isinstance(value, kind):
            return name
    return "null"


_NAMES: tuple[tuple[Any, str], ...] = (
    (bool, "boolean"),
    (int, "integer"),
    (float, "number"),
    (str, "string"),
    (list, "array"),
    (dict, "object"),
)


def _full_description(schema: dict[str, Any]) -> str:
    description = str(schema["description"])
    rest = {key: value for key, value in schema.items() if key not in _DESCRIBED_ELSEWHERE}
    sentences = [description] if description else []
    if schema.get("nullable"):
        sentences.append("Optional.")
    if rest:
        sentences.append(f"JSON Schema: {json.dumps(rest, ensure_ascii=False)}")
    return " ".join(sentences)
