"""The same schema in fewer tokens.

What goes, and why nothing is lost with it: titles that only repeat a name; `default: null`, since
leaving the key out means the same; `null` among the types of such a parameter, for that reason too;
definitions used once, which take their place; `anyOf` with null, which `type` can say; `type`
beside `enum` or `const`, which say more. Objects that list their properties are closed.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agents_tools._strict import (
    ANNOTATIONS,
    NOTED,
    ONE_SCHEMA,
    SCHEMA_LIST,
    SCHEMA_MAP,
    JsonSchema,
    References,
    check_limits,
    joined,
    note,
    noted,
    subschemas,
)
from agents_tools.errors import UserError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["NATURAL", "Form", "compact"]

MAX_NODES = 20_000
UNROLLED_NODES = 150
UNROLLED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Form:
    """What a provider understands of JSON Schema.

    Attributes:
        close: Say `additionalProperties: false` of objects that list their properties.
        omit_null: Where leaving a key out means null, do not offer null.
        type_arrays: `type` may be a list.
        bare_literals: `enum` and `const` may stand without `type`.
        null_literals: `enum` may list null.
        inline_refs: Nothing is referred to; what is recursive is cut after a few levels.
        keywords: Constraints it understands; others go into the description. `None`: all.
    """

    close: bool = True
    omit_null: bool = True
    type_arrays: bool = True
    bare_literals: bool = True
    null_literals: bool = True
    inline_refs: bool = False
    keywords: frozenset[str] | None = None


NATURAL = Form()
"""All of JSON Schema."""


def compact(schema: Mapping[str, Any], form: Form) -> JsonSchema:
    """Write a schema with fewer tokens, in a form that a provider understands.

    Args:
        schema: The schema of an object. It is not changed.
        form: What the provider understands.

    Raises:
        UserError: The schema is too large, or becomes so once its references are inlined.
    """
    text = check_limits(schema)
    source = cast("JsonSchema", schema)
    if '"$ref"' not in text:
        return _Compaction(source, None, form).root()
    references = References(source)
    try:
        references.uses  # noqa: B018 -- asked for here, so that odd references are found here
    except UserError:
        return cast("JsonSchema", json.loads(text))
    for levels in range(UNROLLED, -1, -1) if form.inline_refs else (0,):
        try:
            return _Compaction(source, references, form, levels).root()
        except _TooLarge:
            continue
    raise UserValueError(
        f"its schema has more than {MAX_NODES:,} parts once references are written out"
    )


class _TooLarge(Exception):  # noqa: N818 -- a signal, never seen outside
    """The unrolled schema is larger than it should be."""


# Whether an object may be closed where it stands: everywhere; not itself, since a schema beside it
# declares further keys; nowhere within, since the schema is used to exclude.
_OPEN_WITHIN, _OPEN, _CLOSED = 0, 1, 2
_EXCLUDING = frozenset({"not", "if", "contains", "propertyNames"})
_BESIDE = frozenset({"allOf", "then", "else", "dependentSchemas"})
_ELSEWHERE = _BESIDE | {"$ref", "anyOf", "oneOf", "if", "patternProperties"}

# These speak of every type, so a null let in beside them would have to pass them too.
_OF_ALL_TYPES = frozenset({"not", "if", "then", "else", "allOf", "anyOf", "oneOf", "$ref"})


class _Compaction:
    """One schema on its way into a form."""

    def __init__(
        self, source: JsonSchema, references: References | None, form: Form, levels: int = 0
    ) -> None:
        self.source = source
        self.references = references
        self.form = form
        self.levels = levels
        self.nodes = 0
        self.limit = UNROLLED_NODES if levels else MAX_NODES
        self.definitions: dict[str, JsonSchema] = {}
        self.written: dict[str, JsonSchema] = {}
        self.inside: dict[str, int] = {}
        self.modes = _modes(source, references) if references and references.combines else {}

    def root(self) -> JsonSchema:
        self.inside["#"] = 1
        out = self.node(self.source, None, _CLOSED)
        out.pop("title", None)  # the name of the tool says it
        if self.definitions:
            out["$defs"] = self.definitions
        return out

    def node(self, schema: JsonSchema, name: str | None, mode: int) -> JsonSchema:
        """Rewrite one schema.

        Args:
            schema: As it stands.
            name: The property or definition it belongs to.
            mode: Whether it may be closed.
        """
        self.nodes += 1
        if self.nodes > self.limit:
            raise _TooLarge
        out: JsonSchema = {}
        for key, value in schema.items():
            if key == "title":
                if not (isinstance(value, str) and name is not None and _is_automatic(value, name)):
                    out[key] = value
            elif key in SCHEMA_MAP and isinstance(value, dict):
                out[key] = self.children(schema, key, cast("JsonSchema", value), mode)
            elif key in ONE_SCHEMA or key in SCHEMA_LIST:
                below = _below(schema, key, mode)
                if isinstance(value, dict):
                    out[key] = self.node(cast("JsonSchema", value), None, below)
                elif isinstance(value, list):
                    out[key] = [
                        self.node(cast("JsonSchema", v), None, below) if isinstance(v, dict) else v
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
        self.fold(out)
        if (
            mode == _CLOSED
            and self.form.close
            and "properties" in out
            and "additionalProperties" not in out
            and not (out.keys() & _ELSEWHERE)
        ):
            out["additionalProperties"] = False
        if self.form.keywords is not None:
            self.say(out, self.form.keywords)
        return out

    def children(self, schema: JsonSchema, key: str, value: JsonSchema, mode: int) -> JsonSchema:
        below = _below(schema, key, mode)
        out: JsonSchema = {}
        required = schema.get("required", ())
        for name, child in value.items():
            if not isinstance(child, dict):
                out[name] = child
                continue
            node = cast("JsonSchema", child)
            new = out[name] = self.node(node, name if key == "properties" else None, below)
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
        beside = {key: value for key, value in out.items() if key != "$ref"}
        if beside.keys() - ANNOTATIONS:
            if not self.form.inline_refs:
                return {"$ref": self.refer(ref), **beside}
            return {**beside, "allOf": [*beside.get("allOf", ()), self.inline(ref, _OPEN)]}
        if not self.form.inline_refs and (ref in references.recursive or not self.shorter(ref)):
            return {"$ref": self.refer(ref), **beside}
        return _laid_over(self.inline(ref, mode), beside)

    def shorter(self, ref: str) -> bool:
        """Say whether repeating a definition takes less room than naming it."""
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
        depth = self.inside.get(ref, 0)
        if depth > (self.levels if ref in references.recursive else 0):
            return _cut(target, name)
        self.inside[ref] = depth + 1
        try:
            return self.node(target, name, mode)
        finally:
            self.inside[ref] = depth

    def refer(self, ref: str) -> str:
        if ref == "#":
            return ref
        references = cast("References", self.references)
        name = references.name(ref)
        if name not in self.definitions:
            self.definitions[name] = {}
            self.definitions[name] = self.definition(ref)
        return f"#/$defs/{name}"

    def definition(self, ref: str) -> JsonSchema:
        known = self.written.get(ref)
        if known is None:
            references = cast("References", self.references)
            mode = self.modes.get(ref, _CLOSED)
            known = self.node(references.target(ref), references.name(ref), mode)
            self.written[ref] = known
        return known

    # -- rewriting one schema in place -------------------------------------------------------

    def fold(self, out: JsonSchema) -> None:
        """Say alternatives by `type` where it can, and literals without it."""
        parts = out.get("allOf")
        if parts is not None and len(parts) == 1 and not (out.keys() - ANNOTATIONS - {"allOf"}):
            merged = _laid_over(parts[0], {k: v for k, v in out.items() if k != "allOf"})
            out.clear()
            out.update(merged)
        arms = out.get("anyOf")
        if arms and "type" not in out:
            self.fold_union(out, arms)
        if self.form.bare_literals and "type" in out and (out.keys() & {"enum", "const"}):
            del out["type"]

    def fold_union(self, out: JsonSchema, arms: list[JsonSchema]) -> None:
        if not all(isinstance(arm, dict) for arm in cast("list[object]", arms)):
            return
        if self.form.type_arrays and all(
            arm.keys() == {"type"} and isinstance(arm["type"], str) for arm in arms
        ):
            del out["anyOf"]
            out["type"] = list(dict.fromkeys(arm["type"] for arm in arms))
            return
        others = [arm for arm in arms if arm != {"type": "null"}]
        if len(others) != 1 or len(arms) != 2:  # noqa: PLR2004 -- one kind of value, or null
            return
        arm = others[0]
        if arm.keys() & _OF_ALL_TYPES:
            return
        if out.keys() - ANNOTATIONS - {"anyOf"}:
            return
        if arm.keys() & {"enum", "const"}:
            if not self.form.null_literals:
                return
        elif not self.form.type_arrays or "type" not in arm:
            return
        beside = {key: value for key, value in out.items() if key != "anyOf"}
        new = _laid_over(arm, beside)
        if "const" in new:
            new["enum"] = [new.pop("const"), None]
        elif "enum" in new:
            new["enum"] = [*new["enum"], None]
        if "type" in new:
            kinds = new["type"]
            kinds = [kinds] if isinstance(kinds, str) else kinds
            new["type"] = [*(kind for kind in kinds if kind != "null"), "null"]
        out.clear()
        out.update(new)

    def without_null(self, node: JsonSchema) -> JsonSchema:
        """Take `null` out of what a value may be, if something is left."""
        out = dict(node)
        if "enum" in out and None in out["enum"] and len(out["enum"]) > 1:
            out["enum"] = [value for value in out["enum"] if value is not None]
        kinds = out.get("type")
        if isinstance(kinds, list) and "null" in kinds:
            left = [kind for kind in cast("list[str]", kinds) if kind != "null"]
            out["type"] = left[0] if len(left) == 1 else left
        arms: list[Any] = out.get("anyOf", [])
        others = [arm for arm in arms if arm != {"type": "null"}]
        if others and len(others) < len(arms):
            out["anyOf"] = others
            if len(others) == 1 and not (out.keys() - ANNOTATIONS - {"anyOf"}):
                out = _laid_over(others[0], {k: v for k, v in out.items() if k != "anyOf"})
        return out

    def say(self, out: JsonSchema, keywords: frozenset[str]) -> None:
        """Move what the provider does not read into the description."""
        literals: list[Any] = [out["const"]] if "const" in out else out.get("enum", [])
        notes: list[str] = []
        if not all(type(value) in (str, int, float) for value in literals):
            key = "const" if "const" in out else "enum"
            notes.append(note(key, out.pop(key)))
        elif "const" in out and "const" not in keywords:
            out["enum"] = [out.pop("const")]
        for key in [key for key in out if key in NOTED and key not in keywords]:
            value = out.pop(key)
            bound = _NEAREST.get(key)
            if (
                bound
                and out.get("type") == "integer"
                and bound[0] not in out
                and type(value) is int
            ):
                out[bound[0]] = value + bound[1]
            elif value is not False or key == "default":
                notes.append(note(key, value))
        description = noted(out.get("description"), notes)
        if description is not None:
            out["description"] = description


_NEAREST = {"exclusiveMinimum": ("minimum", 1), "exclusiveMaximum": ("maximum", -1)}

_DROPPED = frozenset({"$defs", "definitions", "$comment", "discriminator"})


def _below(schema: JsonSchema, key: str, mode: int) -> int:
    if mode == _OPEN_WITHIN or key in _EXCLUDING:
        return _OPEN_WITHIN
    if key in _BESIDE:
        return _OPEN
    if key in {"anyOf", "oneOf"}:
        return _OPEN if "properties" in schema or "allOf" in schema or "$ref" in schema else mode
    return _CLOSED


def _modes(source: JsonSchema, references: References) -> dict[str, int]:
    """Find out how each definition may be closed: as its most delicate use allows."""
    modes: dict[str, int] = {}
    waiting: list[tuple[JsonSchema, int]] = [(source, _CLOSED)]
    while waiting:
        schema, mode = waiting.pop()
        if "$ref" in schema:
            ref: str = schema["$ref"]
            beside = schema.keys() - ANNOTATIONS - {"$ref", "$defs", "definitions"}
            used = min(mode, _OPEN) if beside else mode
            if used < modes.get(ref, _CLOSED + 1):
                modes[ref] = used
                waiting.append((references.target(ref), used))
        waiting.extend((child, _below(schema, key, mode)) for key, child in subschemas(schema))
    return modes


def _laid_over(inner: JsonSchema, beside: JsonSchema) -> JsonSchema:
    """Put the annotations of a place over the schema that stands there."""
    out = {**inner, **beside}
    description = joined(beside.get("description"), inner.get("description"))
    if description is not None:
        out["description"] = description
    return out


def _cut(target: JsonSchema, name: str) -> JsonSchema:
    kind = target.get("type")
    out: JsonSchema = {"type": kind} if isinstance(kind, str) else {}
    out["description"] = f"Another {name}, of the same form as the one around it."
    return out


def _is_automatic(title: str, name: str) -> bool:
    if title == name or title == name.title().replace("_", " ").strip():
        return True
    plain = re.sub(r"[^A-Za-z0-9.\-_]", "_", title)
    key = name.removesuffix("-Input").removesuffix("-Output")
    return plain == key or key.endswith(f"__{plain}")


def _text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
