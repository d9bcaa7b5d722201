"""Schemas for smolagents, which knows one level of arguments and no references."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools._strict import References
from agents_tools.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FlatInputs", "flat_inputs"]

_DATA = frozenset({"enum", "const", "default", "examples"})
"""Keywords that hold values, not schemas."""
_SAID = frozenset({"type", "description", "title", "default", "nullable"})
"""What the prompt of a code agent says of an argument anyway, or need not say."""
_ALL = ["string", "number", "integer", "boolean", "array", "object", "null"]
_MOST = 5_000
"""Schemas that are put in the place of references; what is left then is only named."""


@dataclass(frozen=True, slots=True)
class FlatInputs:
    """The arguments of a tool, as smolagents describes them.

    Attributes:
        inputs: A schema for each, with `type`, `description` and `nullable`.
        required: Those that the tool insists on.
        nulls: Those that may be null.
    """

    inputs: dict[str, dict[str, Any]]
    required: frozenset[str]
    nulls: frozenset[str]

    def named(self, args: tuple[Any, ...], arguments: dict[str, Any]) -> dict[str, Any]:
        """Give the arguments of a call by name.

        `nullable` is their word for what may be left out: a null where the tool takes none is left
        out, and one that it insists on is put in.
        """
        given = {**dict(zip(self.inputs, args, strict=False)), **arguments}
        if len(args) == 1 and not arguments and isinstance(args[0], dict):
            only = cast("dict[str, Any]", args[0])
            if only.keys() <= self.inputs.keys():
                given = only
        kept = {
            name: value
            for name, value in given.items()
            if value is not None or name in self.nulls or name in self.required
        }
        missing = (self.required & self.nulls) - kept.keys()
        return {**kept, **dict.fromkeys(missing)}

    def told(self) -> dict[str, dict[str, Any]]:
        """Give the arguments with what their schema says beyond the type in the description."""
        return {name: {**given, "description": _told(given)} for name, given in self.inputs.items()}


def flat_inputs(schema: Mapping[str, Any]) -> FlatInputs:
    """Make the inputs of a tool from the schema of its arguments."""
    properties = cast("dict[str, Any]", schema.get("properties", {}))
    required = frozenset(cast("list[str]", schema.get("required", [])))
    inliner = _Inliner(schema)
    inputs: dict[str, dict[str, Any]] = {}
    nulls: set[str] = set()
    for name, given in properties.items():
        whole = inliner.inlined(given, frozenset())
        if "null" in _types(whole):
            nulls.add(name)
        inputs[name] = _input(whole, optional=name not in required or name in nulls)
    return FlatInputs(inputs, required, frozenset(nulls))


class _Inliner:
    """Puts schemas in the place of references to them."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self._references = References(schema)
        self._left = _MOST

    def inlined(self, value: Any, inside: frozenset[str]) -> Any:
        if isinstance(value, list):
            return [self.inlined(item, inside) for item in cast("list[Any]", value)]
        if not isinstance(value, dict):
            return value
        given = cast("dict[str, Any]", value)
        own = {
            key: item if key in _DATA else self.inlined(item, inside)
            for key, item in given.items()
            if key not in {"$ref", "$defs"}
        }
        ref = given.get("$ref")
        if not isinstance(ref, str):
            return own
        return {**self._target(ref, inside), **own}

    def _target(self, ref: str, inside: frozenset[str]) -> dict[str, Any]:
        try:
            target = self._references.target(ref)
        except UserError:
            return {}
        self._left -= 1
        if ref in inside or self._left < 0:  # a type within itself: its kind is all that is told
            return {key: target[key] for key in ("type", "description") if key in target}
        return cast("dict[str, Any]", self.inlined(target, inside | {ref}))


def _input(whole: Any, *, optional: bool) -> dict[str, Any]:
    """Give the schema of one argument; no union may stand on its first level."""
    given = _object(whole)
    arms = [_object(arm) for arm in cast("list[Any]", given.pop("anyOf", []))]
    kept = [arm for arm in arms if arm.get("type") != "null"]
    kinds = _types({**given, "anyOf": kept} if kept else given)
    if len(kept) == 1:
        given = {**kept[0], **given}
    elif not all(list(arm) == ["type"] for arm in kept):
        given["allOf"] = [*cast("list[Any]", given.get("allOf", [])), {"anyOf": kept}]
    found: dict[str, Any] = {
        "type": _type(kinds),
        "description": given.pop("description", ""),
        **{key: value for key, value in given.items() if key != "type"},
    }
    return {**found, "nullable": True} if optional else found


def _object(schema: Any) -> dict[str, Any]:
    return dict(cast("dict[str, Any]", schema)) if isinstance(schema, dict) else {}


def _type(kinds: list[str]) -> str | list[str]:
    """Give the types of one argument in their words; they take an integer for one number only."""
    kept = [kind for kind in kinds if kind != "null"]
    if "number" in kept and "integer" not in kept and len(kept) > 1:
        kept.append("integer")
    return kept[0] if len(kept) == 1 else kept or "null"


def _types(schema: Any) -> list[str]:
    """List the JSON types that a schema allows, as far as it says so itself."""
    if not isinstance(schema, dict):
        return list(_ALL)
    given = cast("dict[str, Any]", schema)
    kind = given.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, list):
        return list(cast("list[str]", kind))
    values = given.get("enum", [given["const"]] if "const" in given else None)
    if isinstance(values, list):
        return _unique([_type_of(value) for value in cast("list[Any]", values)])
    for key in ("anyOf", "oneOf"):
        if isinstance(given.get(key), list):
            return _unique([kind for arm in given[key] for kind in _types(arm)])
    for part in cast("list[Any]", given.get("allOf", [])):
        if (found := _types(part)) != _ALL:
            return found
    return list(_ALL)


def _unique(kinds: list[str]) -> list[str]:
    return list(dict.fromkeys(kinds))


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


def _told(given: dict[str, Any]) -> str:
    description = str(given["description"])
    more = {key: value for key, value in given.items() if key not in _SAID}
    parts = [description] if description else []
    if given.get("nullable"):
        parts.append("Optional.")
    if more:
        parts.append(f"JSON Schema: {json.dumps(more, ensure_ascii=False)}")
    return " ".join(parts)
