"""Convert arguments from a provider's schema back to the tool's own schema."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, cast

from agents_tools.schema.references import JsonSchema, References, accepts_null

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["decoder", "unchanged"]


def unchanged(arguments: str) -> str:
    """Return the arguments unchanged, for a projection that needs no conversion."""
    return arguments


def decoder(
    schema: Mapping[str, Any], *, nulls: bool = False, names: Mapping[str, str] | None = None
) -> Callable[[str], str]:
    """Return a function that converts the arguments of a model back to the tool's own schema.

    Args:
        schema: The tool's own schema.
        nulls: Whether the conversion made optional parameters nullable. If so, a `null` that the
            tool's own schema does not allow is removed, because it represents an omitted key.
        names: The original names of renamed parameters by their name at the provider.

    Returns:
        A function from JSON text to JSON text. Text that needs no change, is not a JSON object or
        contains a duplicate key is returned unchanged and fails the later validation. Numbers keep
        their exact digits.
    """
    if not nulls and not names:
        return unchanged
    references = References(schema) if nulls else None
    renamed = dict(names or {})

    def decode(arguments: str) -> str:
        if not renamed and "null" not in arguments:
            return arguments
        try:
            value = _DECODER.decode(arguments)
            if type(value) is not dict:
                return arguments
            parsed = cast("dict[str, Any]", value)
            changed = bool(renamed.keys() & parsed.keys())
            if changed:
                parsed = _object([(renamed.get(key, key), item) for key, item in parsed.items()])
            if references is not None:
                changed |= _NullRemover(references).remove_nulls(references.root, parsed)
            return _text(parsed) if changed else arguments
        except (ValueError, RecursionError):
            return arguments

    return decode


class _Number(str):
    """A JSON number with its exact digits."""

    __slots__ = ()

    def value(self) -> float:
        return float(self)

    def is_integer(self) -> bool:
        return self.value().is_integer()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) != len(pairs):
        raise ValueError("duplicate key in an object")
    return out


_DECODER = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_Number, parse_float=_Number, parse_constant=_Number
)


def _text(value: object) -> str:
    match value:
        case dict():
            items = cast("dict[str, object]", value).items()
            return "{" + ",".join(f"{json.dumps(key)}:{_text(item)}" for key, item in items) + "}"
        case list():
            return "[" + ",".join(map(_text, cast("list[object]", value))) + "]"
        case _Number():
            return str(value)
        case _:
            return json.dumps(value)


class _NullRemover:
    """Removes from parsed arguments, in place, the nulls that represent omitted keys.

    In a union, a branch that accepts the unchanged value has priority: its nulls belong to the
    tool's own schema. Otherwise the first branch that accepts the value without them is used.
    """

    def __init__(self, references: References) -> None:
        self.references = references
        self.results: dict[tuple[int, int, bool], bool] = {}

    def remove_nulls(self, schema: object, value: object) -> bool:
        if not isinstance(schema, dict) or not isinstance(value, (dict, list)):
            return False
        node, instance = cast("JsonSchema", schema), cast("object", value)
        changed = False
        for part in self.applicable_schemas(node, instance):
            changed |= self.remove_nulls(part, instance)
        if isinstance(value, list):
            items = cast("list[object]", value)
            for item, child in zip(items, self.item_schemas(node, len(items)), strict=True):
                changed |= self.remove_nulls(child, item)
            return changed
        mapping = cast("dict[str, object]", value)
        properties: JsonSchema = node.get("properties", {})
        required = node.get("required", ())
        for name in [name for name in mapping if name in properties]:
            if mapping[name] is not None:
                changed |= self.remove_nulls(properties[name], mapping[name])
            elif name not in required and not accepts_null(properties[name], self.references):
                del mapping[name]
                changed = True
        return changed

    def applicable_schemas(self, node: JsonSchema, value: object) -> list[object]:
        """Return the subschemas that apply to the value as a whole."""
        parts: list[object] = list(node.get("allOf", ()))
        if "$ref" in node:
            parts.append(self.references.target(node["$ref"]))
        for key in ("anyOf", "oneOf"):
            branches: list[object] = node.get(key, [])
            if any(self.accepts(branch, value, nulls=False) for branch in branches):
                continue
            parts.extend(
                [branch for branch in branches if self.accepts(branch, value, nulls=True)][:1]
            )
        return parts

    def item_schemas(self, node: JsonSchema, count: int) -> list[object]:
        first: Any = node.get("prefixItems", ())
        rest: Any = node.get("items", True)
        if isinstance(rest, list):
            first, rest = cast("list[object]", rest), node.get("additionalItems", True)
        return [*first[:count], *[rest] * (count - len(first))]

    def accepts(self, schema: object, value: object, *, nulls: bool, closed: bool = True) -> bool:
        """Return whether a schema accepts the structure of a value.

        Results for objects and arrays are cached, since every branch on every level is checked.

        Args:
            schema: The schema.
            value: The value.
            nulls: Whether to ignore nulls that represent omitted keys.
            closed: Whether objects without `additionalProperties` reject other keys.
        """
        if not isinstance(schema, dict):
            return schema is True
        node = cast("JsonSchema", schema)
        key = (id(node), id(value), nulls)
        if not closed or not isinstance(value, (dict, list)):
            return self._accepts(node, value, nulls=nulls, closed=closed)
        result = self.results.get(key)
        if result is None:
            container = cast("object", value)
            result = self.results[key] = self._accepts(node, container, nulls=nulls, closed=closed)
        return result

    def _accepts(self, node: JsonSchema, value: object, *, nulls: bool, closed: bool) -> bool:
        if "$ref" in node:
            target = self.references.target(node["$ref"])
            if not self.accepts(target, value, nulls=nulls, closed=closed):
                return False
        if "const" in node and not _equals_literal(node["const"], value):
            return False
        if "enum" in node and not any(_equals_literal(item, value) for item in node["enum"]):
            return False
        kinds = node.get("type", ())
        if kinds and not any(
            _has_type(value, k) for k in ([kinds] if isinstance(kinds, str) else kinds)
        ):
            return False
        parts: list[object] = node.get("allOf", [])
        closed = closed and not parts
        if not all(self.accepts(part, value, nulls=nulls, closed=False) for part in parts):
            return False
        for key in ("anyOf", "oneOf"):
            if key in node and not any(
                self.accepts(branch, value, nulls=nulls, closed=closed) for branch in node[key]
            ):
                return False
        if isinstance(value, dict):
            mapping = cast("dict[str, object]", value)
            return self.accepts_object(node, mapping, nulls=nulls, closed=closed)
        if isinstance(value, list):
            items = cast("list[object]", value)
            if not node.get("minItems", 0) <= len(items) <= node.get("maxItems", len(items)):
                return False
            schemas = self.item_schemas(node, len(items))
            return all(self.accepts(s, i, nulls=nulls) for s, i in zip(schemas, items, strict=True))
        return _is_within_bounds(node, value)

    def accepts_object(
        self, node: JsonSchema, value: dict[str, object], *, nulls: bool, closed: bool
    ) -> bool:
        properties: JsonSchema = node.get("properties", {})
        required = node.get("required", ())
        if not all(name in value for name in required):
            return False
        # Objects without `additionalProperties` are closed in the provider's schema.
        rest = node.get("additionalProperties", not (closed and properties))
        for name, item in value.items():
            child = properties.get(name, rest)
            omitted = nulls and item is None and name in properties and name not in required
            if not omitted and not self.accepts(child, item, nulls=nulls):
                return False
        return True


def _has_type(value: object, kind: str) -> bool:
    match kind:
        case "null":
            return value is None
        case "boolean":
            return isinstance(value, bool)
        case "string":
            return isinstance(value, str) and not isinstance(value, _Number)
        case "number":
            return isinstance(value, _Number)
        case "integer":
            return isinstance(value, _Number) and value.is_integer()
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


def _equals_literal(literal: object, value: object) -> bool:
    if isinstance(value, _Number):
        return type(literal) in (int, float) and float(cast("float", literal)) == value.value()
    return type(literal) is type(value) and literal == value


def _is_within_bounds(node: JsonSchema, value: object) -> bool:
    """Return whether a number or string is within its bounds, which can distinguish branches."""
    if isinstance(value, _Number):
        number = value.value()
        minimum, maximum = node.get("minimum", number), node.get("maximum", number)
        above, below = node.get("exclusiveMinimum"), node.get("exclusiveMaximum")
        is_above = above is None or number > above
        is_below = below is None or number < below
        return bool(minimum <= number <= maximum and is_above and is_below)
    if isinstance(value, str):
        return bool(node.get("minLength", 0) <= len(value) <= node.get("maxLength", len(value)))
    return True
