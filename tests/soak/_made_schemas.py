"""Makes up JSON Schemas, as people and servers write them, and values that they allow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from tests.soak._made_texts import any_text, any_value

if TYPE_CHECKING:
    from random import Random

    Schema = dict[str, Any]

__all__ = ["a_raw_schema", "a_value_of"]

_NAMES = ("a", "b", "kind", "x-y", "größe", "$ref", "type", "properties", "", "a" * 70, "a/b~c")
_KINDS = ("string", "integer", "number", "boolean", "null", "array", "object")
_PATTERNS = ("^a+$", "^[0-9]{5}$", "^(?!x).*$", "(a+)+$", "[", "\\d", "^\\p{L}+$", "")
_FORMATS = ("date-time", "email", "uri", "uuid", "ipv4", "password", "binary", "int64", "odd")
_REFS = (
    "#",
    "#/$defs/A",
    "#/$defs/B",
    "#/definitions/A",
    "#/properties/a",
    "#/$defs/missing",
    "#A",
    "#/$defs/A/properties/a",
    "https://example.com/schema.json",
    "other.json#/$defs/A",
    "#/$defs/%41",
)


def a_raw_schema(rng: Random) -> Schema:
    """Make up the schema of a tool's arguments; every so often one that is broken."""
    schema = _an_object(rng, 3)
    if rng.random() < 0.6:
        schema[rng.choice(("$defs", "$defs", "definitions"))] = {
            name: _any_schema(rng, 2) for name in ("A", "B")
        }
    if rng.random() < 0.1:
        schema["$schema"] = rng.choice(
            (
                "https://json-schema.org/draft/2020-12/schema",
                "http://json-schema.org/draft-07/schema#",
                "http://example.com/unknown",
                5,
            )
        )
    if rng.random() < 0.3:
        _break(rng, schema)
    return schema


def _break(rng: Random, schema: Any) -> None:
    """Put a value where the schema has another, somewhere in it."""
    while isinstance(schema, dict) and schema:
        held = cast("Schema", schema)
        key = rng.choice(list(held))
        if not isinstance(held[key], dict) or rng.random() < 0.3:
            held[key] = any_value(rng, 2)
            return
        schema = held[key]


def _any_schema(rng: Random, depth: int) -> Any:
    kind = rng.randrange(14)
    if kind == 0:
        return rng.choice((True, False, {}))
    if kind in {1, 2}:
        told: Schema = {"$ref": rng.choice(_REFS)}
        return told if rng.random() < 0.6 else told | {"description": "Beside it."}
    if kind == 3 or not depth:
        return _a_scalar(rng)
    if kind in {4, 5}:
        return _an_array(rng, depth)
    if kind in {6, 7, 8}:
        return _an_object(rng, depth)
    if kind in {9, 10}:
        key = rng.choice(("anyOf", "oneOf", "allOf"))
        arms = [_any_schema(rng, depth - 1) for _ in range(rng.randint(1, 3))]
        return {key: arms} | (_a_scalar(rng) if rng.random() < 0.2 else {})
    if kind == 11:
        return {"enum": [any_value(rng, 1) for _ in range(rng.randint(0, 3))]}
    if kind == 12:
        return {"const": any_value(rng, 1)}
    return rng.choice(
        (
            {"not": _any_schema(rng, depth - 1)},
            {"if": {"type": "string"}, "then": _any_schema(rng, depth - 1), "else": {}},
            {"type": rng.sample(_KINDS, 2)},
            {"nullable": True, "type": "string"},
            {"$dynamicRef": "#A"},
            {"$anchor": "A", "type": "integer"},
            {"$id": "https://example.com/other.json", "type": "object"},
        )
    )


def _a_scalar(rng: Random) -> Schema:
    kind = rng.choice(_KINDS[:5])
    told: Schema = {"type": kind}
    if rng.random() < 0.3:
        told["description"] = any_text(rng)
    if rng.random() < 0.2:
        told["default"] = any_value(rng, 1)
    if kind == "string" and rng.random() < 0.5:
        told |= rng.choice(
            (
                {"pattern": rng.choice(_PATTERNS)},
                {"format": rng.choice(_FORMATS)},
                {"minLength": 2, "maxLength": rng.choice((1, 5))},
            )
        )
    if kind in {"integer", "number"} and rng.random() < 0.5:
        told |= rng.choice(
            (
                {"minimum": 1, "maximum": rng.choice((0, 9))},
                {"exclusiveMinimum": rng.choice((0, True)), "multipleOf": rng.choice((2, 0.1))},
                {"minimum": 10**30},
            )
        )
    return told


def _an_array(rng: Random, depth: int) -> Schema:
    told: Schema = {"type": "array"}
    if rng.random() < 0.8:
        told["items"] = _any_schema(rng, depth - 1)
    if rng.random() < 0.2:
        told["prefixItems"] = [_any_schema(rng, depth - 1), {"type": "integer"}]
    if rng.random() < 0.2:
        told |= {"minItems": rng.choice((0, 1, 3)), "uniqueItems": True}
    if rng.random() < 0.1:
        told["contains"] = {"type": "integer"}
    return told


def _an_object(rng: Random, depth: int) -> Schema:
    names = rng.sample(_NAMES, rng.randint(0, 3))
    told: Schema = {"type": "object"}
    if names or rng.random() < 0.8:
        told["properties"] = {name: _any_schema(rng, depth - 1) for name in names}
    if names and rng.random() < 0.5:
        told["required"] = names[: rng.randint(1, len(names))]
    match rng.randrange(12):
        case 0:
            told["additionalProperties"] = rng.choice((False, True, {"type": "string"}, {}))
        case 1:
            told["patternProperties"] = {rng.choice(_PATTERNS): {"type": "integer"}}
        case 2:
            told["propertyNames"] = {"pattern": "^[a-z]"}
        case 3:
            told |= {"minProperties": 1, "maxProperties": 2}
        case 4:
            told["dependentRequired"] = {"a": ["b"]}
        case 5:
            told["allOf"] = [_any_schema(rng, depth - 1)]
        case 6:
            told["anyOf"] = [{"required": ["a"]}, {"required": ["b"]}]
        case 7:
            told["unevaluatedProperties"] = False
        case _:
            pass
    return told


# --- values

_TEXTS = {
    "date-time": "2026-01-02T03:04:05Z",
    "date": "2026-01-02",
    "time": "03:04:05Z",
    "duration": "P1DT2H",
    "uuid": "12345678-1234-4678-9234-567812345678",
    "email": "a@example.com",
    "uri": "https://example.com/",
    "^[0-9]{5}$": "01234",
    "^[a-z]+(-[a-z]+)*$": "ab-c",
    "^a+$": "aa",
}


def a_value_of(rng: Random, schema: Any, root: Any, depth: int = 6) -> Any:
    """Make a value that a schema likely allows; a validator has to say whether it does."""
    if not isinstance(schema, dict) or depth < 0:
        return any_value(rng, 1)
    told = cast("Schema", schema)
    if isinstance(told.get("$ref"), str):
        return a_value_of(rng, _target(root, told["$ref"]), root, depth - 1)
    if "const" in told:
        return told["const"]
    for key in ("enum", "anyOf", "oneOf"):
        if isinstance(told.get(key), list) and told[key]:
            chosen = rng.choice(cast("list[Any]", told[key]))
            return chosen if key == "enum" else a_value_of(rng, chosen, root, depth - 1)
    kind = told.get("type")
    if isinstance(kind, list) and kind:
        kind = rng.choice(cast("list[Any]", kind))
    match kind:
        case "object":
            return _object_of(rng, told, root, depth)
        case "array":
            return _array_of(rng, told, root, depth)
        case "string":
            known = _TEXTS.get(str(told.get("format"))) or _TEXTS.get(str(told.get("pattern")))
            return known or rng.choice(("ab", "abc", "éa"))
        case "integer" | "number":
            return _number_of(rng, told)
        case "boolean":
            return rng.random() < 0.5
        case "null":
            return None
        case _:
            return any_value(rng, 1)


def _target(root: Any, pointer: str) -> Any:
    found = root
    for step in pointer.removeprefix("#").split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, dict):
            return True
        found = cast("Schema", found).get(name, True)
    return found


def _object_of(rng: Random, told: Schema, root: Any, depth: int) -> dict[str, Any]:
    named = told.get("properties")
    properties = cast("Schema", named) if isinstance(named, dict) else {}
    needed: Any = told.get("required")
    made = {
        name: a_value_of(rng, one, root, depth - 1)
        for name, one in properties.items()
        if (isinstance(needed, list) and name in needed) or rng.random() < depth / 10
    }
    more = told.get("additionalProperties")
    if isinstance(more, dict) and rng.random() < 0.5:
        made["more"] = a_value_of(rng, more, root, depth - 1)
    return made


def _array_of(rng: Random, told: Schema, root: Any, depth: int) -> list[Any]:
    first = told.get("prefixItems")
    made: list[Any] = []
    if isinstance(first, list):
        made = [a_value_of(rng, one, root, depth - 1) for one in cast("list[Any]", first)]
    least, most = told.get("minItems", 0), told.get("maxItems", 3)
    if not isinstance(least, int) or not isinstance(most, int):
        return made
    size = rng.randint(min(least, 5), max(least, min(most, 5)) if depth else least)
    items = told.get("items", True)
    while len(made) < size and items is not False:
        made.append(a_value_of(rng, items, root, depth - 1))
    return made


def _number_of(rng: Random, told: Schema) -> Any:
    least = told.get("minimum", told.get("exclusiveMinimum", 0))
    step = told.get("multipleOf", 1)
    if not isinstance(least, (int, float)) or not isinstance(step, (int, float)):
        return 0
    number = least + step * rng.randint(0, 5)
    return int(number) if told.get("type") == "integer" and number < 10**9 else number
