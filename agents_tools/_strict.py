"""JSON Schema into the strict dialect that providers use to constrain what a model writes.

What becomes of each keyword in the dialect of OpenAI (`ensure_strict_json_schema`):

- kept: `type`, `properties`, `items`, `anyOf`, `$ref`, `$defs`, `enum`, `const`, `title`,
  `description`, `pattern`, `format` (the nine known ones), `multipleOf`, `minimum`, `maximum`,
  `exclusiveMinimum`, `exclusiveMaximum`, `minItems`, `maxItems`;
- rewritten: `oneOf` (to `anyOf`), `allOf` (merged), `$ref` with annotations beside it (inlined),
  `definitions` (to `$defs`), `prefixItems` (to `items` of fixed length), `required`,
  `additionalProperties`;
- moved into the description, so that the model still reads them: `default`, `examples`,
  `deprecated`, `minLength`, `maxLength`, other formats, patterns that look around, `uniqueItems`,
  `minProperties`, `maxProperties`, `propertyNames`, `dependentRequired`, `dependentSchemas`, `not`,
  `if`, `then`, `else`, `contains`, `minContains`, `maxContains`, `contentEncoding`,
  `contentMediaType`;
- dropped: `default: null` (null already says it), `$schema`, `$comment`, `$id` of the root,
  `discriminator`, `readOnly`, `writeOnly`, `unevaluatedProperties: false` and keywords that
  JSON Schema does not know;
- refused: open maps, values of any type, a root that is no object, what `allOf` cannot merge,
  references out of the schema.
"""

from __future__ import annotations

import re
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NoReturn, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

__all__ = [
    "ANNOTATIONS",
    "ANTHROPIC_STRICT",
    "NOTED",
    "ONE_SCHEMA",
    "OPENAI_STRICT",
    "SCHEMA_LIST",
    "SCHEMA_MAP",
    "JsonSchema",
    "References",
    "StrictDialect",
    "StrictFallbackWarning",
    "accepts_null",
    "check_limits",
    "ensure_strict_json_schema",
    "joined",
    "note",
    "noted",
    "subschemas",
    "to_strict",
    "well_formed",
]

JsonSchema = dict[str, Any]
"""A JSON Schema that is an object; `True` and `False` are schemas only inside one."""

TYPES = ("string", "number", "integer", "boolean", "object", "array", "null")

MAX_DEPTH = 200
MAX_NODES = 100_000


class StrictFallbackWarning(UserWarning):
    """A tool was exported without strict mode, since its schema has no strict form."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StrictDialect:
    """What one provider's strict mode takes.

    Attributes:
        name: The provider, as messages call it.
        keywords: Constraints it understands; any other goes into the description.
        formats: Values of `format` it understands.
        optional_as_null: Every property must be required, so optional ones become nullable.
        recursive: Definitions may refer to themselves.
        min_items: The largest `minItems`; `None` for no limit.
        max_properties: Properties in one schema, definitions included.
        max_enum_values: Values of `enum` in one schema.
        max_characters: Length of all names and `enum` values together.
        max_nesting: Objects within objects.
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
    """Rewrite a schema so that strict mode accepts it.

    Every object is closed and every property required; what was optional may be null instead.
    Whatever the dialect cannot say is told in a description, or refused where that would change
    which arguments the model can write.

    Args:
        schema: The schema of an object. It is not changed.

    Returns:
        A new schema.

    Raises:
        UserError: The schema has no strict form; the message gives the place and the remedy.
    """
    check_limits(schema)
    return to_strict(schema, OPENAI_STRICT)[0]


def to_strict(schema: Mapping[str, Any], dialect: StrictDialect) -> tuple[JsonSchema, bool]:
    """Rewrite a schema for a dialect; the flag says whether optional properties became nullable."""
    conversion = _Conversion(References(schema), dialect)
    with well_formed():
        return conversion.root(cast("JsonSchema", schema)), conversion.nulls


@contextmanager
def well_formed() -> Generator[None, None, None]:
    """Turn what goes wrong on a keyword with a value of the wrong kind into a refusal.

    Raises:
        UserError: The schema is no JSON Schema.
    """
    try:
        yield
    except (AttributeError, IndexError, KeyError, TypeError, ValueError) as error:
        if isinstance(error, UserError):
            raise
        raise UserValueError(f"this is no JSON Schema: {error}") from error


def check_limits(schema: object) -> str:
    """Refuse a schema that is too deep or too large to be worked on, or that is not JSON.

    Returns:
        The schema as JSON text.

    Raises:
        UserError: A limit is passed.
    """
    import json

    try:
        text = json.dumps(schema, separators=(",", ":"))
    except (RecursionError, ValueError):
        raise UserValueError("the JSON Schema is nested without end") from None
    except TypeError as error:
        raise UserTypeError(f"a JSON Schema holds JSON values only: {error}") from None
    # The exact depth is counted only where there are brackets enough for it to be too much.
    if text.count("{") + text.count("[") > MAX_DEPTH and _depth_passes(schema, MAX_DEPTH):
        raise UserValueError(f"the JSON Schema is nested more than {MAX_DEPTH} levels deep")
    if text.count(",") > MAX_NODES:
        raise UserValueError(f"the JSON Schema has more than {MAX_NODES:,} values")
    return text


def _depth_passes(schema: object, limit: int) -> bool:
    level = [schema]
    for _ in range(limit):
        below: list[object] = []
        for node in level:
            if isinstance(node, dict):
                below.extend(cast("JsonSchema", node).values())
            elif isinstance(node, list):
                below.extend(cast("list[object]", node))
        if not below:
            return False
        level = below
    return True


# Where schemas stand inside a schema; every other keyword holds data.
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
_HOLDS_SCHEMAS = ONE_SCHEMA | SCHEMA_LIST | SCHEMA_MAP


def subschemas(schema: JsonSchema) -> list[tuple[str, JsonSchema]]:
    """List the schemas directly in a schema, each with its keyword; definitions are left out."""
    found: list[tuple[str, JsonSchema]] = []
    for key in schema.keys() & _HOLDS_SCHEMAS:
        value = schema[key]
        if isinstance(value, list):
            children = cast("list[object]", value)
        elif key in SCHEMA_MAP and isinstance(value, dict):
            children = list(cast("JsonSchema", value).values())
        else:
            children = [value]
        found.extend(
            (key, cast("JsonSchema", child)) for child in children if isinstance(child, dict)
        )
    return found


class References:
    """The references of a schema: what they point to, how often they occur, which are recursive.

    Args:
        schema: The whole schema.

    Asking for any of it raises `UserError` where a reference leads out of the schema or nowhere.
    """

    def __init__(self, schema: Mapping[str, Any]) -> None:
        self.root = cast("JsonSchema", schema)
        self._targets: dict[str, JsonSchema] = {}
        self._names: dict[str, str] = {}

    @property
    def uses(self) -> dict[str, int]:
        """How often each reference occurs."""
        return self._counted[0]

    @property
    def recursive(self) -> set[str]:
        """The references to what refers to itself."""
        return self._counted[1]

    def target(self, ref: str) -> JsonSchema:
        """Give the schema that a reference points to."""
        found = self._targets.get(ref)
        return self._resolve(ref) if found is None else found

    def followed(self, schema: JsonSchema) -> JsonSchema:
        """Put the target of a reference in its place; what stands beside it wins."""
        seen: set[str] = set()
        while "$ref" in schema:
            ref = str(schema["$ref"])
            if ref in seen:
                raise UserValueError(f"the reference {ref!r} leads back to itself")
            seen.add(ref)
            schema = {**self.target(ref), **{k: v for k, v in schema.items() if k != "$ref"}}
            if self.target(ref).get("$ref") is not None:
                schema["$ref"] = self.target(ref)["$ref"]
        return schema

    def name(self, ref: str) -> str:
        """Give the name under which a referenced schema stands in `$defs`."""
        name = self._names.get(ref)
        if name is None:
            wanted = re.sub(r"[^A-Za-z0-9_.-]", "_", _pointer(ref)[-1]) or "_"
            taken = set(self._names.values())
            name, number = wanted, 2
            while name in taken:
                name, number = f"{wanted}_{number}", number + 1
            self._names[ref] = name
        return name

    @property
    def combines(self) -> bool:
        """Whether a schema stands beside another for the same value, or serves to exclude."""
        return self._counted[2]

    @cached_property
    def _counted(self) -> tuple[dict[str, int], set[str], bool]:
        uses: dict[str, int] = {}
        edges: dict[str, set[str]] = {}
        combines = False
        waiting = ["#"]
        while waiting:
            ref = waiting.pop()
            if ref in edges:
                continue
            edges[ref] = set()
            for node in _all_within(self.target(ref)):
                if "$ref" in node:
                    to = str(node["$ref"])
                    uses[to] = uses.get(to, 0) + 1
                    edges[ref].add(to)
                    combines |= bool(node.keys() - ANNOTATIONS - {"$ref", "$defs", "definitions"})
                if node.keys() & _COMBINING:
                    beside = node.keys() & {"properties", "allOf", "$ref"}
                    combines |= bool(beside) or not _COMBINING.isdisjoint(node.keys() - _UNIONS)
            waiting.extend(edges[ref])
        return uses, _on_cycles(edges), combines

    def _resolve(self, ref: str) -> JsonSchema:
        node: object = self.root
        if ref != "#":
            for step in _pointer(ref):
                items = cast("list[object]", node) if isinstance(node, list) else []
                if isinstance(node, dict) and step in node:
                    node = cast("JsonSchema", node)[step]
                elif step.isdecimal() and int(step[:9]) < len(items):
                    node = items[int(step)]
                else:
                    raise UserValueError(f"the reference {ref!r} leads nowhere in the schema")
                if isinstance(node, dict) and "$id" in node:
                    raise UserValueError(
                        f"the reference {ref!r} leads into a schema with an $id of its own"
                    )
        if not isinstance(node, dict):
            raise UserValueError(f"the reference {ref!r} does not lead to a schema")
        self._targets[ref] = node
        return cast("JsonSchema", node)


def _all_within(schema: JsonSchema) -> list[JsonSchema]:
    found = [schema]
    for node in found:  # grows while it is read
        found.extend([child for _, child in subschemas(node)])
    return found


def _pointer(ref: str) -> list[str]:
    if ref == "#":
        return ["root"]
    if not ref.startswith("#/"):
        raise UserValueError(
            f"the reference {ref!r} does not point into the schema itself; "
            "put what it refers to under $defs"
        )
    if "%" in ref:
        from urllib.parse import unquote

        ref = unquote(ref)
    return [step.replace("~1", "/").replace("~0", "~") for step in ref[2:].split("/")]


def _on_cycles(edges: dict[str, set[str]]) -> set[str]:
    """Give the nodes on a cycle, or between two: peel off the ends until none is left."""
    left = {node: set(targets) for node, targets in edges.items()}
    for _ in range(2):
        into: dict[str, set[str]] = {node: set() for node in left}
        for node, targets in left.items():
            for target in targets:
                into[target].add(node)
        ends = [node for node, targets in left.items() if not targets]
        while ends:
            end = ends.pop()
            del left[end]
            for node in into.pop(end):
                targets = left[node]
                targets.discard(end)
                if not targets:
                    ends.append(node)
        left = {node: {n for n in into[node] if n in left} for node in left}
    return set(left)


def accepts_null(
    schema: object, references: References, _seen: frozenset[str] = frozenset()
) -> bool:
    """Say whether `null` is a value of the schema."""
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
        any(accepts_null(arm, references, _seen) for arm in node[key])
        for key in ("anyOf", "oneOf")
        if key in node
    )


def joined(outer: str | None, inner: str | None) -> str | None:
    """Put two descriptions of one value together, the nearer one first."""
    if not outer or not inner or inner in outer:
        return outer or inner
    return inner if outer in inner else f"{outer}\n{inner}"


def noted(description: str | None, notes: list[str]) -> str | None:
    """Append to a description, in brackets, what the schema itself cannot say."""
    if not notes:
        return description
    text = f"({', '.join(notes)})"
    return f"{description} {text}" if description else text


def note(key: str, value: object) -> str:
    """Say a keyword and its value in a description."""
    import json

    if value is True and key in {"uniqueItems", "deprecated"}:
        return key
    return f"{key} {json.dumps(value, ensure_ascii=False, separators=(',', ':'))}"


NOTED = frozenset(
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

# What changes the meaning of keywords beside it, so that schemas with it cannot be laid together.
_ENTANGLED = frozenset(
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

_EMPTY: JsonSchema = {"type": "object", "properties": {}}

_LOOKS_AROUND = re.compile(r"\(\?[=!<]|\\[1-9]|\(\?P[=>]")


@dataclass(slots=True)
class _Conversion:
    """One schema on its way into a dialect."""

    references: References
    dialect: StrictDialect
    nulls: bool = False
    definitions: dict[str, JsonSchema] = field(default_factory=dict[str, JsonSchema])
    nodes: int = 0
    properties: int = 0
    enum_values: int = 0
    characters: int = 0

    def root(self, schema: JsonSchema) -> JsonSchema:
        flat = self.flat(self.references.followed(schema), "#", 0)
        if "anyOf" in flat and "properties" not in flat:
            self.refuse("#", "offers alternatives at its root", "make it one object")
        if flat.get("type", "object") != "object":
            self.refuse("#", "is not an object", "make it one")
        if not (flat.keys() & {"properties", "additionalProperties", "patternProperties"}):
            flat = {**flat, **_EMPTY}
        out = self.node(flat, "#", 0, 0)
        if self.definitions:
            out["$defs"] = self.definitions
        return out

    def node(self, schema: object, at: str, depth: int, nest: int) -> JsonSchema:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            self.refuse(at, "unfolds without end", "refer to shared parts without a description")
        if not isinstance(schema, dict) or not schema:
            self.refuse(at, "takes a value of any type", "give it a type")
        flat = self.flat(cast("JsonSchema", schema), at, depth)
        if "$ref" in flat:
            return {"$ref": self.refer(flat["$ref"], at)}
        out: JsonSchema = {key: flat[key] for key in ("title", "description") if key in flat}
        notes: list[str] = []
        if "anyOf" in flat:
            self.union(flat, out, at, depth, nest, notes)
        else:
            self.plain(flat, out, at, depth, nest, notes)
        self.constraints(flat, out, notes)
        description = noted(out.get("description"), notes)
        if description is not None:
            out["description"] = description
        return out

    # -- one level of composition ------------------------------------------------------------

    def flat(self, schema: JsonSchema, at: str, depth: int) -> JsonSchema:
        """Resolve references with company, `allOf` and `oneOf`, without entering the children."""
        if depth > MAX_DEPTH // 2:
            self.refuse(at, "unfolds without end", "refer to shared parts without a description")
        if schema.keys() & _ANCHORS or (at != "#" and "$id" in schema):
            self.refuse(at, "has an $id or anchor of its own", "use plain $defs and $ref")
        node = schema
        if "$ref" in node:
            rest = {k: v for k, v in node.items() if k not in {"$ref", "$defs", "definitions"}}
            if not rest or not isinstance(node["$ref"], str):
                return {"$ref": str(node["$ref"])}
            if node["$ref"] in self.references.recursive:
                if rest.keys() <= ANNOTATIONS:
                    return {**rest, "anyOf": [{"$ref": node["$ref"]}]}
                self.refuse(at, "narrows a recursive type", "repeat the type instead")
            target = self.flat(self.references.target(node["$ref"]), at, depth + 1)
            node = self.merged(rest, target, at)
        if "allOf" in node:
            parts = [self.flat(part, at, depth + 1) for part in node["allOf"]]
            node = {k: v for k, v in node.items() if k != "allOf"}
            if len(parts) == 1 and "$ref" in parts[0]:
                return self.flat({**node, **parts[0]}, at, depth + 1)
            for part in parts:
                if part.get("$ref") in self.references.recursive:
                    self.refuse(at, "narrows a recursive type", "repeat the type instead")
                node = self.merged(node, self.references.followed(part), at)
        if "oneOf" in node:
            if "anyOf" in node:
                self.refuse(at, "has anyOf and oneOf", "keep one of them")
            node = {("anyOf" if k == "oneOf" else k): v for k, v in node.items()}
        return node

    def merged(self, one: JsonSchema, other: JsonSchema, at: str) -> JsonSchema:
        """Lay two schemas for the same value together, if no meaning is lost by it."""
        for this, that in ((one, other), (other, one)):
            if this.keys() & _ENTANGLED and that.keys() & (_ENTANGLED | {"properties", "items"}):
                self.refuse(at, "has an allOf that cannot be merged", "write one schema")
        out = dict(one)
        for key, value in other.items():
            if key == "description":
                out[key] = joined(one.get(key), value)
            elif key == "required":
                out[key] = [*out.get(key, ()), *(n for n in value if n not in out.get(key, ()))]
            elif key == "properties":
                mine: JsonSchema = out.get(key, {})
                if any(mine[name] != value[name] for name in mine.keys() & value.keys()):
                    self.refuse(at, "declares a property twice (allOf)", "declare it once")
                out[key] = {**mine, **value}
            elif key not in out:
                out[key] = value
            elif key not in ANNOTATIONS and out[key] != value:
                self.refuse(at, f"has {key!r} twice (allOf)", "write one schema")
        return out

    def refer(self, ref: str, at: str) -> str:
        if ref == "#" and self.dialect.recursive:
            return ref
        if ref in self.references.recursive and not self.dialect.recursive:
            self.refuse(at, "is recursive", "bound the nesting, for example with a list of parents")
        name = self.references.name(ref)
        if name not in self.definitions:
            self.definitions[name] = {}
            target = self.references.target(ref)
            if target.keys() == {"$ref"}:
                target = self.references.followed(target)
            self.definitions[name] = self.node(target, ref, 0, 0)
        return f"#/$defs/{name}"

    # -- one value ---------------------------------------------------------------------------

    def union(
        self, flat: JsonSchema, out: JsonSchema, at: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        arms: list[Any] = flat["anyOf"]
        beside = flat.keys() - ANNOTATIONS - {"anyOf", "discriminator", "$defs", "definitions"}
        if "properties" in beside and all(
            isinstance(arm, dict) and cast("JsonSchema", arm).keys() <= {"required"} for arm in arms
        ):
            notes.append(note("anyOf", arms))
            self.plain(flat, out, at, depth, nest, notes)
            return
        if beside - {"type"}:
            self.refuse(at, "has constraints beside its alternatives", "move them into each one")
        if not arms:
            self.refuse(at, "has no alternatives", "give it a type")
        if "type" in beside:
            arms = [
                arm if "type" in arm or "$ref" in arm else {"type": flat["type"], **arm}
                for arm in arms
            ]
        converted: list[JsonSchema] = []
        for number, arm in enumerate(arms):
            new = self.node(arm, f"{at}/anyOf/{number}", depth + 1, nest)
            if new not in converted:
                converted.append(new)
        out["anyOf"] = converted

    def plain(
        self, flat: JsonSchema, out: JsonSchema, at: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        kinds = self.kinds(flat, at)
        out["type"] = kinds[0] if len(kinds) == 1 else kinds
        if "enum" in flat or "const" in flat:
            self.literals(flat, out, at)
            return
        if "object" in kinds:
            self.closed(flat, out, at, depth, nest)
        if "array" in kinds:
            self.array(flat, out, at, depth, nest, notes)

    def kinds(self, flat: JsonSchema, at: str) -> list[str]:
        kinds: Any = flat.get("type")
        if kinds is None and "const" in flat:
            kinds = _kinds_of([flat["const"]])
        elif kinds is None and "enum" in flat:
            kinds = _kinds_of(flat["enum"])
        elif kinds is None and flat.keys() & {"properties", "additionalProperties"}:
            kinds = "object"
        elif kinds is None and flat.keys() & {"items", "prefixItems"}:
            kinds = "array"
        elif kinds is None:
            self.refuse(at, "takes a value of any type", "give it a type")
        listed = [kinds] if isinstance(kinds, str) else list(kinds)
        if not listed or any(kind not in TYPES for kind in listed):
            self.refuse(at, f"has an unknown type {kinds!r}", f"use one of {', '.join(TYPES)}")
        return listed

    def literals(self, flat: JsonSchema, out: JsonSchema, at: str) -> None:
        values: list[Any] = [flat["const"]] if "const" in flat else list(flat["enum"])
        if any(isinstance(value, (dict, list)) for value in values):
            self.refuse(at, "lists objects or arrays as its values", "name them by strings")
        if "const" in flat and "enum" in flat and flat["const"] not in flat["enum"]:
            self.refuse(at, "has no possible value", "make const and enum agree")
        self.enum_values += len(values)
        self.characters += sum(len(value) for value in values if isinstance(value, str))
        if self.enum_values > self.dialect.max_enum_values:
            self.refuse(at, f"passes {self.dialect.max_enum_values:,} enum values", "take a string")
        self.count_characters(at)
        if "const" in flat:
            out["const"] = flat["const"]
        else:
            out["enum"] = values

    def closed(self, flat: JsonSchema, out: JsonSchema, at: str, depth: int, nest: int) -> None:
        rest = flat.get("additionalProperties", False)
        if "properties" not in flat and "additionalProperties" not in flat:
            rest = True
        if rest is not False or flat.get("patternProperties"):
            self.refuse(
                at,
                "is an open map",
                "declare its keys (with a model, dataclass or TypedDict), take a list of pairs",
            )
        if nest >= self.dialect.max_nesting:
            self.refuse(
                at, f"is nested deeper than {self.dialect.max_nesting} objects", "flatten it"
            )
        declared: JsonSchema = flat.get("properties", {})
        required = set(flat.get("required", ()))
        if undeclared := [name for name in flat.get("required", ()) if name not in declared]:
            self.refuse(at, f"requires {undeclared[0]!r} but does not declare it", "declare it")
        self.properties += len(declared)
        self.characters += sum(map(len, declared))
        if self.properties > self.dialect.max_properties:
            self.refuse(at, f"passes {self.dialect.max_properties:,} properties", "split the tool")
        self.count_characters(at)
        out["properties"] = properties = {}
        for name, child in declared.items():
            new = self.node(child, f"{at}/properties/{name}", depth + 1, nest + 1)
            if self.dialect.optional_as_null and name not in required and not self.nullable(child):
                new = _nullable(new)
                self.nulls = True
            properties[name] = new
        names = [n for n in declared if self.dialect.optional_as_null or n in required]
        if names:
            out["required"] = names
        out["additionalProperties"] = False

    def nullable(self, schema: object) -> bool:
        return accepts_null(schema, self.references)

    def array(
        self, flat: JsonSchema, out: JsonSchema, at: str, depth: int, nest: int, notes: list[str]
    ) -> None:
        listed = isinstance(flat.get("items"), list)  # as tuples were written before 2020-12
        first: Any = flat.get("items" if listed else "prefixItems")
        rest: Any = flat.get("additionalItems" if listed else "items")
        if not first:
            out["items"] = self.node(True if rest is None else rest, f"{at}/items", depth + 1, nest)
            return
        arms: list[JsonSchema] = []
        each: list[str] = []
        for number, item in enumerate(first):
            new = self.node(item, f"{at}/prefixItems/{number}", depth + 1, nest)
            each.append(note("", new).strip())
            if new not in arms:
                arms.append(new)
        if rest not in (None, False) or flat.get("maxItems", -1) > len(first):
            new = self.node(True if rest is None else rest, f"{at}/items", depth + 1, nest)
            if new not in arms:
                arms.append(new)
        out["items"] = arms[0] if len(arms) == 1 else {"anyOf": arms}
        if len(arms) > 1:
            notes.append(f"items in this order: {', '.join(each)}")
        if rest in (None, False) and "maxItems" not in flat and "maxItems" in self.dialect.keywords:
            out["maxItems"] = len(first)

    def constraints(self, flat: JsonSchema, out: JsonSchema, notes: list[str]) -> None:
        """Keep the constraints that the dialect knows; say the others."""
        for key, value in flat.items():
            says_nothing = value is None if key == "default" else value is False
            if key not in NOTED or says_nothing:
                continue
            if key in self.dialect.keywords and self.understood(key, value):
                out[key] = value
            else:
                notes.append(note(key, value))

    def understood(self, key: str, value: Any) -> bool:
        if key == "format":
            return value in self.dialect.formats
        if key == "pattern":
            return _LOOKS_AROUND.search(value) is None
        if key == "minItems":
            return self.dialect.min_items is None or value <= self.dialect.min_items
        return True

    def count_characters(self, at: str) -> None:
        if self.characters > self.dialect.max_characters:
            self.refuse(
                at, f"passes {self.dialect.max_characters:,} characters of names", "shorten it"
            )

    def refuse(self, at: str, what: str, remedy: str) -> NoReturn:
        place = "the schema, which" if at == "#" else f"{at}, which"
        raise UserValueError(
            f"{self.dialect.name}'s strict mode cannot express {place} {what}. "
            f"{remedy[0].upper()}{remedy[1:]}, or turn strict mode off for the tool."
        )


def _kinds_of(values: list[Any]) -> list[str]:
    kinds: list[str] = []
    for value in values:
        match value:
            case None:
                kind = "null"
            case bool():
                kind = "boolean"
            case int():
                kind = "integer"
            case float():
                kind = "number"
            case str():
                kind = "string"
            case list():
                kind = "array"
            case _:
                kind = "object"
        if kind not in kinds:
            kinds.append(kind)
    return kinds


def _nullable(schema: JsonSchema) -> JsonSchema:
    """Let a schema of the dialect take `null` as well."""
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
