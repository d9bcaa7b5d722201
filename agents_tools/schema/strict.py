"""Convert JSON Schemas to the strict dialects that providers enforce on model output.

The dialect of OpenAI (`ensure_strict_json_schema`) handles each keyword as follows:

- kept: `type`, `properties`, `items`, `anyOf`, `$ref`, `$defs`, `enum`, `const`, `title`,
  `description`, `pattern`, `format` (the nine known ones), `multipleOf`, `minimum`, `maximum`,
  `exclusiveMinimum`, `exclusiveMaximum`, `minItems`, `maxItems`;
- rewritten: `oneOf` (to `anyOf`), `allOf` (merged), `$ref` next to annotations (inlined),
  `definitions` (to `$defs`), `prefixItems` (to `items` of fixed length), `required`,
  `additionalProperties`;
- moved into the description, which the model reads: `default`, `examples`,
  `deprecated`, `minLength`, `maxLength`, other formats, patterns with lookaround, `uniqueItems`,
  `minProperties`, `maxProperties`, `propertyNames`, `dependentRequired`, `dependentSchemas`, `not`,
  `if`, `then`, `else`, `contains`, `minContains`, `maxContains`, `contentEncoding`,
  `contentMediaType`;
- of optional properties, the note on `default` says what `null` means, since no key can be omitted:
  `null: default 5`, or `default 5, null: no value` if the schema itself accepts null;
- dropped: `default: null` (redundant with null), `$schema`, `$comment`, `$id` of the root,
  `discriminator`, `readOnly`, `writeOnly`, `unevaluatedProperties: false` and keywords unknown
  to JSON Schema;
- rejected with an error: open maps, values of any type, a root that is not an object, an `allOf`
  that cannot be merged, references to other documents.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn, cast

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.schema.lookup import json_type
from agents_tools.schema.references import (
    ANNOTATIONS,
    MAX_DEPTH,
    MAX_NODES,
    JsonSchema,
    References,
    accepts_null,
    check_limits,
    equal_json,
    merge_descriptions,
    schema_errors,
)
from agents_tools.text.nouns import type_with_article

__all__ = [
    "ANTHROPIC_STRICT",
    "DESCRIBED_KEYWORDS",
    "OPENAI_STRICT",
    "StrictDialect",
    "StrictFallbackWarning",
    "append_notes",
    "describe_keyword",
    "ensure_strict_json_schema",
    "merge_descriptions",
    "to_strict",
]

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")


class StrictFallbackWarning(UserWarning):
    """A tool was exported without strict mode because its schema has no strict form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictDialect:
    """The subset of JSON Schema that the strict mode of one provider supports.

    Attributes:
        name: The name of the provider, for messages.
        keywords: The supported constraints; others are moved to the description.
        formats: The supported values of `format`.
        optional_as_null: Whether every property is required and optional ones become nullable.
        recursive: Whether definitions can refer to themselves.
        min_items: The largest supported `minItems`; `None` for no limit.
        max_properties: The maximum number of properties, definitions included.
        max_enum_values: The maximum number of `enum` values.
        max_characters: The maximum length of all names and `enum` values together.
        max_nesting: The maximum number of nested objects.
    """

    name: str
    keywords: frozenset[str]
    formats: frozenset[str]
    optional_as_null: bool = True
    recursive: bool = True
    min_items: int | None = None
    max_properties: int = MAX_NODES
    max_enum_values: int = MAX_NODES
    max_characters: int = 10 * MAX_NODES
    max_nesting: int = MAX_DEPTH


OPENAI_STRICT = StrictDialect(
    name="OpenAI",
    keywords=frozenset(
        {
            "pattern",
            "format",
            "multipleOf",
            "minimum",
            "maximum",
            "exclusiveMinimum",
            "exclusiveMaximum",
            "minItems",
            "maxItems",
        }
    ),
    formats=frozenset(
        {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
    ),
    max_properties=5_000,
    max_enum_values=1_000,
    max_characters=120_000,
    max_nesting=10,
)

ANTHROPIC_STRICT = StrictDialect(
    name="Anthropic",
    keywords=frozenset({"default", "format", "minItems"}),
    formats=OPENAI_STRICT.formats | {"uri"},
    optional_as_null=False,
    recursive=False,
    min_items=1,
)


def ensure_strict_json_schema(schema: Mapping[str, Any]) -> JsonSchema:
    """Return a schema that the strict mode of OpenAI accepts.

    Every object is closed and every property required; optional properties become nullable.
    Keywords that the dialect does not support are moved to a description. If that would change
    the set of valid arguments, an error is raised.

    Args:
        schema: The schema of an object. It is not changed.

    Returns:
        A new schema.

    Raises:
        UserError: The schema has no strict form; the message names the location and the remedy.
    """
    check_limits(schema)
    return to_strict(schema, OPENAI_STRICT)[0]


def to_strict(schema: Mapping[str, Any], dialect: StrictDialect) -> tuple[JsonSchema, bool]:
    """Return a schema in a dialect, and whether optional properties became nullable."""
    if not isinstance(schema, Mapping):  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserTypeError(
            f"The JSON Schema of an object is expected as a dictionary, got "
            f"{type_with_article(schema)}. Pass a dictionary such as "
            '{"type": "object", "properties": {...}}.'
        )
    conversion = _StrictConverter(References(schema), dialect)
    with schema_errors():
        return conversion.convert_root(cast("JsonSchema", schema)), conversion.added_null


def append_notes(description: str | None, notes: list[str]) -> str | None:
    """Append notes on the schema to a description, in parentheses."""
    if not notes:
        return description
    text = f"({', '.join(notes)})"
    return f"{description} {text}" if description else text


def describe_keyword(key: str, value: object) -> str:
    """Return a keyword and its value as text for a description."""
    import json

    if value is True and key in {"uniqueItems", "deprecated"}:
        return key
    return f"{key} {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"


DESCRIBED_KEYWORDS = frozenset(
    {
        "default",
        "examples",
        "deprecated",
        "minLength",
        "maxLength",
        "pattern",
        "format",
        "multipleOf",
        "minimum",
        "maximum",
        "exclusiveMinimum",
        "exclusiveMaximum",
        "minItems",
        "maxItems",
        "uniqueItems",
        "minProperties",
        "maxProperties",
        "propertyNames",
        "dependentRequired",
        "dependentSchemas",
        "not",
        "if",
        "then",
        "else",
        "contains",
        "minContains",
        "maxContains",
        "contentEncoding",
        "contentMediaType",
    }
)

# Keywords that change the meaning of sibling keywords: schemas with them cannot be merged.
_UNMERGEABLE = frozenset(
    {
        "additionalProperties",
        "patternProperties",
        "unevaluatedProperties",
        "prefixItems",
        "additionalItems",
        "unevaluatedItems",
        "contains",
        "minContains",
        "maxContains",
        "if",
        "then",
        "else",
    }
)

_ANCHORS = frozenset({"$anchor", "$dynamicRef", "$dynamicAnchor", "$recursiveRef"})

_KEYWORD_TYPES = {
    "properties": dict,
    "required": list,
    "enum": list,
    "allOf": list,
    "anyOf": list,
    "oneOf": list,
    "prefixItems": list,
}

_EMPTY: JsonSchema = {"type": "object", "properties": {}}

_LOOKAROUND = re.compile(r"\(\?[=!<]|\\[1-9]|\(\?P[=>]")


@dataclass(slots=True)
class _StrictConverter:
    """Converts one schema to a dialect, and counts its size."""

    references: References
    dialect: StrictDialect
    added_null: bool = False
    definitions: dict[str, JsonSchema] = field(default_factory=dict[str, JsonSchema])
    nodes: int = 0
    properties: int = 0
    enum_values: int = 0
    characters: int = 0

    def convert_root(self, schema: JsonSchema) -> JsonSchema:
        flat = self.flatten(self.references.follow(schema), "#", 0)
        if "anyOf" in flat and "properties" not in flat:
            self.refuse("#", "offers alternatives at its root", "make it one object")
        if flat.get("type", "object") != "object":
            self.refuse("#", "is not an object", "make it one")
        if not (flat.keys() & {"properties", "additionalProperties", "patternProperties"}):
            flat = {**flat, **_EMPTY}
        out = self.convert(flat, "#", 0, 0)
        if self.definitions:
            out["$defs"] = self.definitions
        return out

    def convert(
        self, schema: object, path: str, depth: int, nest: int, null_meaning: str = ""
    ) -> JsonSchema:
        """Convert one schema.

        Args:
            schema: The schema.
            path: Its location, for messages.
            depth: The depth of nested schemas.
            nest: The depth of nested objects.
            null_meaning: What `null` means for an optional property: `default` if only the dialect
                accepts it, `null` if the property itself does; empty if it is not optional.
        """
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.refuse(path, "expands without end", "refer to shared parts without a description")
        if not isinstance(schema, dict) or not schema:
            self.refuse(path, "accepts a value of any type", "give it a type")
        flat = self.flatten(cast("JsonSchema", schema), path, depth)
        if "$ref" in flat:
            return {"$ref": self.add_definition(flat["$ref"], path)}
        out: JsonSchema = {key: flat[key] for key in ("title", "description") if key in flat}
        notes: list[str] = []
        if "anyOf" in flat:
            self.convert_union(flat, out, path, depth, nest, notes)
        else:
            self.convert_value(flat, out, path, depth, nest, notes)
        self.convert_constraints(flat, out, notes, null_meaning)
        description = append_notes(out.get("description"), notes)
        if description is not None:
            out["description"] = description
        return out

    # -- one level of composition ------------------------------------------------------------

    def flatten(self, schema: JsonSchema, path: str, depth: int) -> JsonSchema:
        """Resolve `allOf`, `oneOf` and references with sibling keywords, on one level."""
        if depth > MAX_DEPTH // 2:
            self.refuse(path, "expands without end", "refer to shared parts without a description")
        if schema.keys() & _ANCHORS or (path != "#" and "$id" in schema):
            self.refuse(path, "has its own $id or anchor", "use plain $defs and $ref")
        for key, kind in _KEYWORD_TYPES.items():
            if key in schema and not isinstance(schema[key], kind):
                expected = "an array" if kind is list else "an object"
                self.refuse(
                    path, f"has {key!r} with a value that is not {expected}", "correct the schema"
                )
        node = schema
        if "$ref" in node:
            rest = {k: v for k, v in node.items() if k not in {"$ref", "$defs", "definitions"}}
            if not rest or not isinstance(node["$ref"], str):
                return {"$ref": str(node["$ref"])}
            if node["$ref"] in self.references.recursive:
                if rest.keys() <= ANNOTATIONS:
                    return {**rest, "anyOf": [{"$ref": node["$ref"]}]}
                self.refuse(path, "narrows a recursive type", "repeat the type instead")
            target = self.flatten(self.references.target(node["$ref"]), path, depth + 1)
            node = self.merge(rest, target, path)
        if "allOf" in node:
            parts = [self.flatten(part, path, depth + 1) for part in node["allOf"]]
            node = {k: v for k, v in node.items() if k != "allOf"}
            if len(parts) == 1 and "$ref" in parts[0]:
                return self.flatten({**node, **parts[0]}, path, depth + 1)
            for part in parts:
                if part.get("$ref") in self.references.recursive:
                    self.refuse(path, "narrows a recursive type", "repeat the type instead")
                node = self.merge(node, self.references.follow(part), path)
        if "oneOf" in node:
            if "anyOf" in node:
                self.refuse(path, "has anyOf and oneOf", "keep one of them")
            node = {("anyOf" if k == "oneOf" else k): v for k, v in node.items()}
        return node

    def merge(self, one: JsonSchema, other: JsonSchema, path: str) -> JsonSchema:
        """Merge two schemas of the same value; raise an error if this would lose a constraint."""
        if not (_can_merge(one, other) and _can_merge(other, one)):
            self.refuse(path, "has an allOf that cannot be merged", "write one schema")
        out = dict(one)
        for key, value in other.items():
            if key == "description":
                out[key] = merge_descriptions(one.get(key), value)
            elif key == "required":
                out[key] = [*out.get(key, ()), *(n for n in value if n not in out.get(key, ()))]
            elif key == "properties":
                declared: JsonSchema = out.get(key, {})
                shared = declared.keys() & value.keys()
                if not all(equal_json(declared[name], value[name]) for name in shared):
                    self.refuse(path, "declares a property twice (allOf)", "declare it once")
                out[key] = {**declared, **value}
            elif key not in out:
                out[key] = value
            elif key not in ANNOTATIONS and not equal_json(out[key], value):
                self.refuse(path, f"has {key!r} twice (allOf)", "write one schema")
        return out

    def add_definition(self, ref: str, path: str) -> str:
        if ref == "#" and self.dialect.recursive:
            return ref
        if ref in self.references.recursive and not self.dialect.recursive:
            self.refuse(
                path, "is recursive", "bound the nesting, for example with a list of parents"
            )
        name = self.references.name(ref)
        if name not in self.definitions:
            self.definitions[name] = {}
            target = self.references.target(ref)
            if target.keys() == {"$ref"}:
                target = self.references.follow(target)
            self.definitions[name] = self.convert(target, ref, 0, 0)
        return f"#/$defs/{name}"

    # -- one value ---------------------------------------------------------------------------

    def convert_union(
        self, flat: JsonSchema, out: JsonSchema, path: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        branches: list[Any] = flat["anyOf"]
        siblings = flat.keys() - ANNOTATIONS - {"anyOf", "discriminator", "$defs", "definitions"}
        if "properties" in siblings and all(
            isinstance(branch, dict) and cast("JsonSchema", branch).keys() <= {"required"}
            for branch in branches
        ):
            notes.append(describe_keyword("anyOf", branches))
            self.convert_value(flat, out, path, depth, nest, notes)
            return
        if siblings - {"type"}:
            self.refuse(path, "has constraints next to its alternatives", "move them into each one")
        if not branches:
            self.refuse(path, "has no alternatives", "give it a type")
        if "type" in siblings:
            branches = [
                branch if "type" in branch or "$ref" in branch else {"type": flat["type"], **branch}
                for branch in branches
            ]
        converted: list[JsonSchema] = []
        for number, branch in enumerate(branches):
            new = self.convert(branch, f"{path}/anyOf/{number}", depth + 1, nest)
            if new not in converted:
                converted.append(new)
        out["anyOf"] = converted

    def convert_value(
        self, flat: JsonSchema, out: JsonSchema, path: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        kinds = self.types_of(flat, path)
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
        if "enum" in flat or "const" in flat:
            self.convert_literals(flat, out, path)
            return
        if "object" in kinds:
            self.convert_object(flat, out, path, depth, nest)
        if "array" in kinds:
            self.convert_array(flat, out, path, depth, nest, notes)

    def types_of(self, flat: JsonSchema, path: str) -> list[str]:
        kinds: Any = flat.get("type")
        if kinds is None and "const" in flat:
            kinds = _types_of_values([flat["const"]])
        elif kinds is None and "enum" in flat:
            kinds = _types_of_values(flat["enum"])
        elif kinds is None and flat.keys() & {"properties", "additionalProperties"}:
            kinds = "object"
        elif kinds is None and flat.keys() & {"items", "prefixItems"}:
            kinds = "array"
        elif kinds is None:
            self.refuse(path, "accepts a value of any type", "give it a type")
        names = [kinds] if isinstance(kinds, str) else list(kinds)
        if not names or any(kind not in TYPES for kind in names):
            self.refuse(path, f"has an unknown type {kinds!r}", f"use one of {', '.join(TYPES)}")
        return names

    def convert_literals(self, flat: JsonSchema, out: JsonSchema, path: str) -> None:
        values: list[Any] = [flat["const"]] if "const" in flat else list(flat["enum"])
        if any(isinstance(value, (dict, list)) for value in values):
            self.refuse(path, "lists objects or arrays as its values", "name them by strings")
        listed: list[Any] = flat.get("enum", values)
        if "const" in flat and not any(equal_json(flat["const"], value) for value in listed):
            self.refuse(path, "has no possible value", "make const and enum agree")
        self.enum_values += len(values)
        self.characters += sum(len(value) for value in values if isinstance(value, str))
        if self.enum_values > self.dialect.max_enum_values:
            self.refuse(
                path, f"exceeds {self.dialect.max_enum_values:,} enum values", "use a string"
            )
        self.count_characters(path)
        if "const" in flat:
            out["const"] = flat["const"]
        else:
            out["enum"] = values

    def convert_object(
        self, flat: JsonSchema, out: JsonSchema, path: str, depth: int, nest: int
    ) -> None:
        rest = flat.get("additionalProperties", False)
        if "properties" not in flat and "additionalProperties" not in flat:
            rest = True
        if rest is not False or flat.get("patternProperties"):
            self.refuse(
                path,
                "is an open map",
                "declare its keys (with a model, dataclass or TypedDict), or use a list of pairs",
            )
        if nest >= self.dialect.max_nesting:
            self.refuse(
                path, f"is nested deeper than {self.dialect.max_nesting} objects", "flatten it"
            )
        declared: JsonSchema = flat.get("properties", {})
        required = set(flat.get("required", ()))
        if undeclared := [name for name in flat.get("required", ()) if name not in declared]:
            self.refuse(path, f"requires {undeclared[0]!r} but does not declare it", "declare it")
        self.properties += len(declared)
        self.characters += sum(map(len, declared))
        if self.properties > self.dialect.max_properties:
            self.refuse(
                path, f"exceeds {self.dialect.max_properties:,} properties", "split the tool"
            )
        self.count_characters(path)
        out["properties"] = properties = {}
        for name, child in declared.items():
            null_meaning = ""
            if self.dialect.optional_as_null and name not in required:
                null_meaning = "null" if self.accepts_null(child) else "default"
            new = self.convert(
                child, f"{path}/properties/{name}", depth + 1, nest + 1, null_meaning
            )
            if null_meaning == "default":
                new = _make_nullable(new)
                self.added_null = True
            properties[name] = new
        names = [n for n in declared if self.dialect.optional_as_null or n in required]
        if names:
            out["required"] = names
        out["additionalProperties"] = False

    def accepts_null(self, schema: object) -> bool:
        return accepts_null(schema, self.references)

    def convert_array(
        self, flat: JsonSchema, out: JsonSchema, path: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        is_list = isinstance(flat.get("items"), list)  # tuples before JSON Schema 2020-12
        first: Any = flat.get("items" if is_list else "prefixItems")
        rest: Any = flat.get("additionalItems" if is_list else "items")
        if not first:
            out["items"] = self.convert(
                True if rest is None else rest, f"{path}/items", depth + 1, nest
            )
            return
        branches: list[JsonSchema] = []
        descriptions: list[str] = []
        for number, item in enumerate(first):
            new = self.convert(item, f"{path}/prefixItems/{number}", depth + 1, nest)
            descriptions.append(describe_keyword("", new).strip())
            if new not in branches:
                branches.append(new)
        if rest not in (None, False) or flat.get("maxItems", -1) > len(first):
            new = self.convert(True if rest is None else rest, f"{path}/items", depth + 1, nest)
            if new not in branches:
                branches.append(new)
        out["items"] = branches[0] if len(branches) == 1 else {"anyOf": branches}
        if len(branches) > 1:
            notes.append(f"items in this order: {', '.join(descriptions)}")
        if rest in (None, False) and "maxItems" not in flat and "maxItems" in self.dialect.keywords:
            out["maxItems"] = len(first)

    def convert_constraints(
        self, flat: JsonSchema, out: JsonSchema, notes: list[str], null_meaning: str
    ) -> None:
        """Keep the supported constraints and add the others to the notes."""
        for key, value in flat.items():
            is_default = value is None if key == "default" else value is False
            if key not in DESCRIBED_KEYWORDS or is_default:
                continue
            if key in self.dialect.keywords and self.is_supported(key, value):
                out[key] = value
            elif key == "default" and null_meaning:
                notes.append(_describe_default(value, null_meaning))
            else:
                notes.append(describe_keyword(key, value))

    def is_supported(self, key: str, value: Any) -> bool:
        if key == "format":
            return value in self.dialect.formats
        if key == "pattern":
            return _LOOKAROUND.search(value) is None
        if key == "minItems":
            return self.dialect.min_items is None or value <= self.dialect.min_items
        return True

    def count_characters(self, path: str) -> None:
        if self.characters > self.dialect.max_characters:
            self.refuse(
                path, f"exceeds {self.dialect.max_characters:,} characters of names", "shorten it"
            )

    def refuse(self, path: str, problem: str, remedy: str) -> NoReturn:
        subject = "the schema, which" if path == "#" else f"{path}, which"
        raise UserValueError(
            f"{self.dialect.name}'s strict mode cannot express {subject} {problem}. "
            f"{remedy[0].upper()}{remedy[1:]}, or turn strict mode off for the tool."
        )


def _describe_default(value: object, null_meaning: str) -> str:
    """Return a default as text, and whether `null` stands for it: no key can be omitted."""
    text = describe_keyword("default", value)
    return f"null: {text}" if null_meaning == "default" else f"{text}, null: no value"


def _can_merge(one: JsonSchema, other: JsonSchema) -> bool:
    """Return whether the keywords of one schema mean the same next to those of another."""
    own = one.keys() & _UNMERGEABLE
    if not own:
        return True
    if own == {"additionalProperties"} and one["additionalProperties"] is False:
        if other.keys() & (_UNMERGEABLE - own):
            return False
        return other.get("properties", {}).keys() <= one.get("properties", {}).keys()
    return not other.keys() & (_UNMERGEABLE | {"properties", "items"})


def _types_of_values(values: list[Any]) -> list[str]:
    return list(dict.fromkeys(map(json_type, values)))


def _make_nullable(schema: JsonSchema) -> JsonSchema:
    """Return a schema of the dialect that also accepts `null`."""
    out = dict(schema)
    if "$ref" in out:
        return {"anyOf": [out, {"type": "null"}]}
    if "anyOf" in out:
        out["anyOf"] = [*out["anyOf"], {"type": "null"}]
        return out
    kinds = out["type"]
    out["type"] = [kinds, "null"] if isinstance(kinds, str) else [*kinds, "null"]
    if "const" in out:
        out["enum"] = [out.pop("const"), None]
    elif "enum" in out:
        out["enum"] = [*out["enum"], None]
    return out
