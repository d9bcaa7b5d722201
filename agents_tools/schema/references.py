"""The structure of JSON Schemas: size limits, nested schemas, references and `null`."""

from __future__ import annotations

import re
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = [
    "ANNOTATIONS",
    "MAX_DEPTH",
    "MAX_NODES",
    "ONE_SCHEMA",
    "SCHEMA_LIST",
    "SCHEMA_MAP",
    "JsonSchema",
    "References",
    "accepts_null",
    "check_limits",
    "equal_json",
    "merge_descriptions",
    "schema_errors",
    "subschemas",
]

JsonSchema = dict[str, Any]
"""A JSON Schema that is an object. The schemas `True` and `False` occur only as subschemas."""

MAX_DEPTH = 200
MAX_NODES = 100_000


@contextmanager
def schema_errors() -> Generator[None, None, None]:
    """Convert the errors of malformed keywords to `UserError`.

    Raises:
        UserError: A keyword of the schema has a value of the wrong type.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserValueError(f"the value is not a valid JSON Schema: {error}") from error


def check_limits(schema: object) -> str:
    """Check that a schema is JSON and not too deep or too large to process.

    Returns:
        The schema as JSON text.

    Raises:
        UserError: The schema is not JSON, or it exceeds a limit.
    """
    import json

    try:
        text = json.dumps(schema, separators=(",", ":"))
    except (RecursionError, ValueError):
        raise UserValueError(
            "the JSON Schema contains itself; use $defs and $ref for recursion"
        ) from None
    except TypeError as error:
        raise UserTypeError(f"a JSON Schema contains only JSON values: {error}") from None
    # Count the exact depth only if there are enough brackets to exceed the limit.
    if text.count("{") + text.count("[") > MAX_DEPTH and _exceeds_depth(schema, MAX_DEPTH):
        raise UserValueError(f"the JSON Schema is nested more than {MAX_DEPTH} levels deep")
    if text.count(",") > MAX_NODES:
        raise UserValueError(f"the JSON Schema has more than {MAX_NODES:,} values")
    return text


def _exceeds_depth(schema: object, limit: int) -> bool:
    level = [schema]
    for _ in range(limit):
        children: list[object] = []
        for node in level:
            if isinstance(node, dict):
                children.extend(cast("JsonSchema", node).values())
            elif isinstance(node, list):
                children.extend(cast("list[object]", node))
        if not children:
            return False
        level = children
    return True


# The keywords whose values are schemas; the values of all other keywords are data.
ONE_SCHEMA = frozenset(
    {
        "items",
        "additionalProperties",
        "additionalItems",
        "contains",
        "propertyNames",
        "not",
        "if",
        "then",
        "else",
        "unevaluatedItems",
        "unevaluatedProperties",
        "contentSchema",
    }
)
SCHEMA_LIST = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
SCHEMA_MAP = frozenset({"properties", "patternProperties", "dependentSchemas"})

ANNOTATIONS = frozenset(
    {
        "title",
        "description",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$comment",
    }
)


_UNIONS = frozenset({"anyOf", "oneOf"})
_COMBINING = _UNIONS | {"allOf", "not", "if", "then", "else", "dependentSchemas", "contains"}
_SCHEMA_KEYWORDS = ONE_SCHEMA | SCHEMA_LIST | SCHEMA_MAP


def subschemas(schema: JsonSchema) -> list[tuple[str, JsonSchema]]:
    """Return the schemas directly inside a schema with their keywords, without definitions."""
    nested: list[tuple[str, JsonSchema]] = []
    for key in schema.keys() & _SCHEMA_KEYWORDS:
        value = schema[key]
        if isinstance(value, list):
            children = cast("list[object]", value)
        elif key in SCHEMA_MAP and isinstance(value, dict):
            children = list(cast("JsonSchema", value).values())
        else:
            children = [value]
        nested.extend(
            (key, cast("JsonSchema", child)) for child in children if isinstance(child, dict)
        )
    return nested


def merge_descriptions(outer: object, inner: object) -> str | None:
    """Return the combined descriptions of a value, the inner one first.

    A description that is not a text, as some servers send, is left out.
    """
    if not isinstance(outer, str) or not outer:
        return inner if isinstance(inner, str) and inner else None
    if not isinstance(inner, str) or not inner or inner in outer:
        return outer
    return inner if outer in inner else f"{outer}\n{inner}"


def equal_json(one: object, other: object) -> bool:
    """Return whether two JSON values are equal; unlike in Python, `true` is not 1."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, dict) and isinstance(other, dict):
        first, second = cast("JsonSchema", one), cast("JsonSchema", other)
        return first.keys() == second.keys() and all(
            equal_json(value, second[key]) for key, value in first.items()
        )
    if isinstance(one, list) and isinstance(other, list):
        items, others = cast("list[object]", one), cast("list[object]", other)
        return len(items) == len(others) and all(map(equal_json, items, others))
    return one == other


class References:
    """The references of a schema: their targets, their uses and whether they are recursive.

    Every member raises `UserError` if a target is outside of the schema or does not exist.

    Args:
        schema: The whole schema.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.root = cast("JsonSchema", schema)
        self._targets: dict[str, JsonSchema] = {}
        self._names: dict[str, str] = {}

    @property
    def uses(self) -> dict[str, int]:
        """The number of occurrences of each reference."""
        return self._usage[0]

    @property
    def recursive(self) -> set[str]:
        """The references whose target refers to itself, directly or indirectly."""
        return self._usage[1]

    def target(self, ref: str) -> JsonSchema:
        """Return the schema that a reference points to."""
        target = self._targets.get(ref)
        return self._resolve(ref) if target is None else target

    def follow(self, schema: JsonSchema) -> JsonSchema:
        """Return the schema with its reference resolved.

        Its own keywords override those of the target, except that descriptions are combined.
        """
        seen: set[str] = set()
        while "$ref" in schema:
            ref = str(schema["$ref"])
            if ref in seen:
                raise UserValueError(f"the reference {ref!r} points to itself")
            seen.add(ref)
            target = self.target(ref)
            description = merge_descriptions(schema.get("description"), target.get("description"))
            schema = {**target, **{k: v for k, v in schema.items() if k != "$ref"}}
            if description is not None:
                schema["description"] = description
            if target.get("$ref") is not None:
                schema["$ref"] = target["$ref"]
        return schema

    def name(self, ref: str) -> str:
        """Return the name of a referenced schema in `$defs`."""
        name = self._names.get(ref)
        if name is None:
            base = re.sub(r"[^A-Za-z0-9_.-]", "_", _pointer_steps(ref)[-1]) or "_"
            used = set(self._names.values())
            name, number = base, 2
            while name in used:
                name, number = f"{base}_{number}", number + 1
            self._names[ref] = name
        return name

    @property
    def is_combined(self) -> bool:
        """Return whether several schemas apply to the same value, or a schema excludes values."""
        return self._usage[2]

    @cached_property
    def _usage(self) -> tuple[dict[str, int], set[str], bool]:
        uses: dict[str, int] = {}
        edges: dict[str, set[str]] = {}
        combines = False
        pending = ["#"]
        while pending:
            ref = pending.pop()
            if ref in edges:
                continue
            edges[ref] = set()
            for node in _nested_schemas(self.target(ref)):
                if "$ref" in node:
                    target = str(node["$ref"])
                    uses[target] = uses.get(target, 0) + 1
                    edges[ref].add(target)
                    combines |= bool(node.keys() - ANNOTATIONS - {"$ref", "$defs", "definitions"})
                if node.keys() & _COMBINING:
                    siblings = node.keys() & {"properties", "allOf", "$ref"}
                    combines |= bool(siblings) or not _COMBINING.isdisjoint(node.keys() - _UNIONS)
            pending.extend(edges[ref])
        return uses, _nodes_on_cycles(edges), combines

    def _resolve(self, ref: str) -> JsonSchema:
        node: object = self.root
        if ref != "#":
            for step in _pointer_steps(ref):
                items = cast("list[object]", node) if isinstance(node, list) else []
                if isinstance(node, dict) and step in node:
                    node = cast("JsonSchema", node)[step]
                elif step.isdecimal() and int(step[:9]) < len(items):
                    node = items[int(step)]
                else:
                    raise UserValueError(
                        f"the target of the reference {ref!r} does not exist in the schema"
                    )
                # A map of definitions or properties can have a member named `$id`.
                if isinstance(node, dict) and isinstance(cast("JsonSchema", node).get("$id"), str):
                    raise UserValueError(
                        f"the reference {ref!r} points into a schema with its own $id"
                    )
        if not isinstance(node, dict):
            raise UserValueError(f"the reference {ref!r} does not point to a schema")
        self._targets[ref] = node
        return cast("JsonSchema", node)


def _nested_schemas(schema: JsonSchema) -> list[JsonSchema]:
    nested = [schema]
    for node in nested:  # the list grows during the loop
        nested.extend([child for _, child in subschemas(node)])
    return nested


def _pointer_steps(ref: str) -> list[str]:
    if ref == "#":
        return ["root"]
    if not ref.startswith("#/"):
        raise UserValueError(
            f"the reference {ref!r} does not point into the schema itself; move its target to $defs"
        )
    if "%" in ref:
        from urllib.parse import unquote

        ref = unquote(ref)
    return [step.replace("~1", "/").replace("~0", "~") for step in ref[2:].split("/")]


def _nodes_on_cycles(edges: dict[str, set[str]]) -> set[str]:
    """Return the nodes on a cycle or between two cycles, by removing end nodes repeatedly."""
    remaining = {node: set(targets) for node, targets in edges.items()}
    for _ in range(2):
        sources: dict[str, set[str]] = {node: set() for node in remaining}
        for node, targets in remaining.items():
            for target in targets:
                sources[target].add(node)
        ends = [node for node, targets in remaining.items() if not targets]
        while ends:
            end = ends.pop()
            del remaining[end]
            for node in sources.pop(end):
                targets = remaining[node]
                targets.discard(end)
                if not targets:
                    ends.append(node)
        remaining = {node: {n for n in sources[node] if n in remaining} for node in remaining}
    return set(remaining)


def accepts_null(
    schema: object, references: References, _seen: frozenset[str] = frozenset()
) -> bool:
    """Return whether `null` is a valid value of the schema."""
    if not isinstance(schema, dict):
        return schema is True
    node = cast("JsonSchema", schema)
    if "type" in node:
        kinds = node["type"]
        if kinds != "null" and (isinstance(kinds, str) or "null" not in kinds):
            return False
    if "const" in node and node["const"] is not None:
        return False
    if "enum" in node and None not in node["enum"]:
        return False
    ref = node.get("$ref")
    if ref is not None and (
        ref in _seen or not accepts_null(references.target(ref), references, _seen | {ref})
    ):
        return False
    if not all(accepts_null(part, references, _seen) for part in node.get("allOf", ())):
        return False
    return all(
        any(accepts_null(branch, references, _seen) for branch in node[key])
        for key in ("anyOf", "oneOf")
        if key in node
    )
