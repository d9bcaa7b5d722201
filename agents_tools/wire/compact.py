"""Shorten schemas without changing their meaning, so that they use fewer tokens.

The following parts are removed: titles that repeat a name; `default: null`, because omitting the
key has the same meaning; `null` among the types of such a parameter, for the same reason;
definitions that are used once, which are inlined; `anyOf` with null, which `type` can express; and
`type` next to `enum` or `const`, which are more specific. Objects that list their properties are
closed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError, UserValueError
from agents_tools.schema.references import (
    ANNOTATIONS,
    ONE_SCHEMA,
    SCHEMA_LIST,
    SCHEMA_MAP,
    JsonSchema,
    References,
    check_limits,
    subschemas,
)
from agents_tools.schema.strict import (
    DESCRIBED_KEYWORDS,
    append_notes,
    describe_keyword,
    merge_descriptions,
)

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["FULL_JSON_SCHEMA", "CompactForm", "compact"]

MAX_NODES = 20_000
MAX_UNROLLED_NODES = 150
UNROLL_LEVELS = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactForm:
    """The part of JSON Schema that a provider supports.

    Attributes:
        close: Whether to set `additionalProperties: false` in objects that list their properties.
        omit_null: Whether to remove null from a type if omitting the key has the same meaning.
        type_arrays: Whether `type` can be a list.
        bare_literals: Whether `enum` and `const` are allowed without `type`.
        null_literals: Whether `enum` can contain null.
        inline_refs: Whether to replace references by their targets; recursion ends after a few
            levels.
        keywords: The supported constraints; others are moved to the description. `None` for all.
    """

    close: bool = True
    omit_null: bool = True
    type_arrays: bool = True
    bare_literals: bool = True
    null_literals: bool = True
    inline_refs: bool = False
    keywords: frozenset[str] | None = None


FULL_JSON_SCHEMA = CompactForm()
"""The form of a provider that supports all of JSON Schema."""


def compact(schema: Mapping[str, Any], form: CompactForm) -> JsonSchema:
    """Return a schema with fewer tokens, in a form that a provider supports.

    Args:
        schema: The schema of an object. It is not changed.
        form: The part of JSON Schema that the provider supports.

    Raises:
        UserError: The schema is too large, or becomes too large when its references are inlined.
    """
    text = check_limits(schema)
    source = cast("JsonSchema", schema)
    if '"$ref"' not in text:
        return _Compaction(source, None, form).root()
    references = References(source)
    try:
        references.uses  # noqa: B018 -- evaluates all references, so that invalid ones fail here
    except UserError:
        return cast("JsonSchema", json.loads(text))
    for levels in range(UNROLL_LEVELS, -1, -1) if form.inline_refs else (0,):
        try:
            return _Compaction(source, references, form, levels).root()
        except _SchemaTooLarge:
            continue
    raise UserValueError(
        f"its schema has more than {MAX_NODES:,} parts after its references are inlined"
    )


class _SchemaTooLarge(Exception):  # noqa: N818 -- control flow inside this module
    """The converted schema exceeds the limit."""


# Whether to close objects. `_CLOSED`: close them. `_OPEN`: not this object, because a sibling
# schema declares more keys. `_OPEN_WITHIN`: none inside this schema, because it excludes values.
_OPEN_WITHIN, _OPEN, _CLOSED = 0, 1, 2
_EXCLUDING_KEYWORDS = frozenset({"not", "if", "contains", "propertyNames"})
_SIBLING_SCHEMAS = frozenset({"allOf", "then", "else", "dependentSchemas"})
_PREVENTS_CLOSING = _SIBLING_SCHEMAS | {"$ref", "anyOf", "oneOf", "if", "patternProperties"}

# These keywords apply to values of every type, so a null next to them would be checked as well.
_APPLIES_TO_ALL_TYPES = frozenset({"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "$ref"})


class _Compaction:
    """The conversion of one schema to a form."""

    def __init__(
        self, source: JsonSchema, references: References | None, form: CompactForm, levels: int = 0
    ) -> None:
        self.source = source
        self.references = references
        self.form = form
        self.levels = levels
        self.nodes = 0
        self.limit = MAX_UNROLLED_NODES if levels else MAX_NODES
        self.definitions: dict[str, JsonSchema] = {}
        self.converted: dict[str, JsonSchema] = {}
        self.depths: dict[str, int] = {}
        self.modes = (
            _definition_modes(source, references) if references and references.is_combined else {}
        )

    def root(self) -> JsonSchema:
        self.depths["#"] = 1
        out = self.node(self.source, None, _CLOSED)
        out.pop("title", None)  # repeats the name of the tool
        if self.definitions:
            out["$defs"] = self.definitions
        return out

    def node(self, schema: JsonSchema, name: str | None, mode: int) -> JsonSchema:
        """Rewrite one schema.

        Args:
            schema: The original schema.
            name: The name of its property or definition.
            mode: Whether to close objects.
        """
        self.nodes += 1
        if self.nodes > self.limit:
            raise _SchemaTooLarge
        out: JsonSchema = {}
        for key, value in schema.items():
            if key == "title":
                if not (
                    isinstance(value, str) and name is not None and _is_generated_title(value, name)
                ):
                    out[key] = value
            elif key in SCHEMA_MAP and isinstance(value, dict):
                out[key] = self.children(schema, key, cast("JsonSchema", value), mode)
            elif key in ONE_SCHEMA or key in SCHEMA_LIST:
                child_mode = _child_mode(schema, key, mode)
                if isinstance(value, dict):
                    out[key] = self.node(cast("JsonSchema", value), None, child_mode)
                elif isinstance(value, list):
                    out[key] = [
                        self.node(cast("JsonSchema", v), None, child_mode)
                        if isinstance(v, dict)
                        else v
                        for v in cast("list[object]", value)
                    ]
                else:
                    out[key] = value
            elif key == "required":
                if value:
                    out[key] = value
            elif key not in _DROPPED and not (key == "default" and value is None):
                out[key] = value
        if "$ref" in out:
            out = self.reference(out, mode)
        self.simplify(out)
        if (
            mode == _CLOSED
            and self.form.close
            and "properties" in out
            and "additionalProperties" not in out
            and not (out.keys() & _PREVENTS_CLOSING)
        ):
            out["additionalProperties"] = False
        if self.form.keywords is not None:
            self.describe_unsupported(out, self.form.keywords)
        return out

    def children(self, schema: JsonSchema, key: str, value: JsonSchema, mode: int) -> JsonSchema:
        child_mode = _child_mode(schema, key, mode)
        out: JsonSchema = {}
        required = schema.get("required", ())
        for name, child in value.items():
            if not isinstance(child, dict):
                out[name] = child
                continue
            node = cast("JsonSchema", child)
            new = out[name] = self.node(node, name if key == "properties" else None, child_mode)
            if (
                self.form.omit_null
                and key == "properties"
                and name not in required
                and "default" in node
                and node["default"] is None
            ):
                out[name] = self.without_null(new)
        return out

    # -- references --------------------------------------------------------------------------

    def reference(self, out: JsonSchema, mode: int) -> JsonSchema:
        references = cast("References", self.references)
        ref: str = out["$ref"]
        siblings = {key: value for key, value in out.items() if key != "$ref"}
        if siblings.keys() - ANNOTATIONS:
            if not self.form.inline_refs:
                return {"$ref": self.add_definition(ref), **siblings}
            return {**siblings, "allOf": [*siblings.get("allOf", ()), self.inline(ref, _OPEN)]}
        if not self.form.inline_refs and (
            ref in references.recursive or not self.is_shorter_inline(ref)
        ):
            return {"$ref": self.add_definition(ref), **siblings}
        return _with_annotations(self.inline(ref, mode), siblings)

    def is_shorter_inline(self, ref: str) -> bool:
        """Return whether inlining a definition at each use is shorter than references to it."""
        uses = cast("References", self.references).uses[ref]
        if uses == 1:
            return True
        size = len(_text(self.definition(ref)))
        name = len(cast("References", self.references).name(ref))
        return uses * size <= size + name + 6 + uses * (name + 20)

    def inline(self, ref: str, mode: int) -> JsonSchema:
        references = cast("References", self.references)
        target = references.target(ref)
        name = references.name(ref)
        depth = self.depths.get(ref, 0)
        if depth > (self.levels if ref in references.recursive else 0):
            return _recursion_stub(target, name)
        self.depths[ref] = depth + 1
        try:
            return self.node(target, name, mode)
        finally:
            self.depths[ref] = depth

    def add_definition(self, ref: str) -> str:
        if ref == "#":
            return ref
        references = cast("References", self.references)
        name = references.name(ref)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.definition(ref)
        return f"#/$defs/{name}"

    def definition(self, ref: str) -> JsonSchema:
        converted = self.converted.get(ref)
        if converted is None:
            references = cast("References", self.references)
            mode = self.modes.get(ref, _CLOSED)
            converted = self.node(references.target(ref), references.name(ref), mode)
            self.converted[ref] = converted
        return converted

    # -- rewriting one schema in place -------------------------------------------------------

    def simplify(self, out: JsonSchema) -> None:
        """Express unions by `type` if possible, and remove `type` next to literals."""
        parts = out.get("allOf")
        if parts is not None and len(parts) == 1 and not (out.keys() - ANNOTATIONS - {"allOf"}):
            merged = _with_annotations(parts[0], {k: v for k, v in out.items() if k != "allOf"})
            out.clear()
            out.update(merged)
        branches = out.get("anyOf")
        if branches and "type" not in out:
            self.simplify_union(out, branches)
        if self.form.bare_literals and "type" in out and (out.keys() & {"enum", "const"}):
            del out["type"]

    def simplify_union(self, out: JsonSchema, branches: list[JsonSchema]) -> None:
        if not all(isinstance(branch, dict) for branch in cast("list[object]", branches)):
            return
        if self.form.type_arrays and all(
            branch.keys() == {"type"} and isinstance(branch["type"], str) for branch in branches
        ):
            del out["anyOf"]
            out["type"] = list(dict.fromkeys(branch["type"] for branch in branches))
            return
        others = [branch for branch in branches if branch != {"type": "null"}]
        if len(others) != 1 or len(branches) != 2:  # noqa: PLR2004 -- one kind of value, or null
            return
        branch = others[0]
        if branch.keys() & _APPLIES_TO_ALL_TYPES:
            return
        if out.keys() - ANNOTATIONS - {"anyOf"}:
            return
        if branch.keys() & {"enum", "const"}:
            if not self.form.null_literals:
                return
        elif not self.form.type_arrays or "type" not in branch:
            return
        siblings = {key: value for key, value in out.items() if key != "anyOf"}
        merged = _with_annotations(branch, siblings)
        if "const" in merged:
            merged["enum"] = [merged.pop("const"), None]
        elif "enum" in merged:
            merged["enum"] = [*merged["enum"], None]
        if "type" in merged:
            kinds = merged["type"]
            kinds = [kinds] if isinstance(kinds, str) else kinds
            merged["type"] = [*(kind for kind in kinds if kind != "null"), "null"]
        out.clear()
        out.update(merged)

    def without_null(self, node: JsonSchema) -> JsonSchema:
        """Remove `null` from the types of a value, unless it is the only type."""
        out = dict(node)
        if "enum" in out and None in out["enum"] and len(out["enum"]) > 1:
            out["enum"] = [value for value in out["enum"] if value is not None]
        kinds = out.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            remaining = [kind for kind in cast("list[str]", kinds) if kind != "null"]
            out["type"] = remaining[0] if len(remaining) == 1 else remaining
        branches: list[Any] = out.get("anyOf", [])
        others = [branch for branch in branches if branch != {"type": "null"}]
        if others and len(others) < len(branches):
            out["anyOf"] = others
            if len(others) == 1 and not (out.keys() - ANNOTATIONS - {"anyOf"}):
                out = _with_annotations(others[0], {k: v for k, v in out.items() if k != "anyOf"})
        return out

    def describe_unsupported(self, out: JsonSchema, keywords: frozenset[str]) -> None:
        """Move constraints that the provider does not support to the description."""
        literals: list[Any] = [out["const"]] if "const" in out else out.get("enum", [])
        notes: list[str] = []
        if not all(type(value) in (str, int, float) for value in literals):
            key = "const" if "const" in out else "enum"
            notes.append(describe_keyword(key, out.pop(key)))
        elif "const" in out and "const" not in keywords:
            out["enum"] = [out.pop("const")]
        for key in [key for key in out if key in DESCRIBED_KEYWORDS and key not in keywords]:
            value = out.pop(key)
            bound = _INTEGER_BOUNDS.get(key)
            if (
                bound
                and out.get("type") == "integer"
                and bound[0] not in out
                and type(value) is int
            ):
                out[bound[0]] = value + bound[1]
            elif value is not False or key == "default":
                notes.append(describe_keyword(key, value))
        description = append_notes(out.get("description"), notes)
        if description is not None:
            out["description"] = description


_INTEGER_BOUNDS = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}

_DROPPED = frozenset({"$defs", "definitions", "$comment", "discriminator"})


def _child_mode(schema: JsonSchema, key: str, mode: int) -> int:
    if mode == _OPEN_WITHIN or key in _EXCLUDING_KEYWORDS:
        return _OPEN_WITHIN
    if key in _SIBLING_SCHEMAS:
        return _OPEN
    if key in {"anyOf", "oneOf"}:
        return _OPEN if "properties" in schema or "allOf" in schema or "$ref" in schema else mode
    return _CLOSED


def _definition_modes(source: JsonSchema, references: References) -> dict[str, int]:
    """Return the mode of each definition: the most restrictive one of its uses."""
    modes: dict[str, int] = {}
    pending: list[tuple[JsonSchema, int]] = [(source, _CLOSED)]
    while pending:
        schema, mode = pending.pop()
        if "$ref" in schema:
            ref: str = schema["$ref"]
            siblings = schema.keys() - ANNOTATIONS - {"$ref", "$defs", "definitions"}
            used = min(mode, _OPEN) if siblings else mode
            if used < modes.get(ref, _CLOSED + 1):
                modes[ref] = used
                pending.append((references.target(ref), used))
        pending.extend((child, _child_mode(schema, key, mode)) for key, child in subschemas(schema))
    return modes


def _with_annotations(inner: JsonSchema, siblings: JsonSchema) -> JsonSchema:
    """Return a schema with the annotations that are next to its reference."""
    out = {**inner, **siblings}
    description = merge_descriptions(siblings.get("description"), inner.get("description"))
    if description is not None:
        out["description"] = description
    return out


def _recursion_stub(target: JsonSchema, name: str) -> JsonSchema:
    kind = target.get("type")
    out: JsonSchema = {"type": kind} if isinstance(kind, str) else {}
    out["description"] = f"A nested {name} with the same structure as its parent."
    return out


def _is_generated_title(title: str, name: str) -> bool:
    if title == name or title == name.title().replace("_", " ").strip():
        return True
    plain = re.sub(r"[^A-Za-z0-9.\-_]", "_", title)
    key = name.removesuffix("-Input").removesuffix("-Output")
    return plain == key or key.endswith(f"__{plain}")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
