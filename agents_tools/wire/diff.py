"""Compare two lists of tools, to find changes that break existing callers."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.errors import UserError, UserValueError
from agents_tools.schema.references import References
from agents_tools.text.escape import shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "DefinitionReader",
    "Schema",
    "SchemaChange",
    "ToolSchema",
    "compare_schemas",
    "compare_tools",
    "describe_type",
    "json_type",
    "parameters_of",
    "read_tool_list",
]

Schema = dict[str, Any]
Kind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSchema:
    """One tool in a list of tools.

    Attributes:
        name: The name.
        description: The description.
        parameters: The JSON Schema of the arguments.
        output: The JSON Schema of the results, if there is one.
    """

    name: str
    description: str = ""
    parameters: Schema
    output: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SchemaChange:
    """One difference.

    Attributes:
        tool: The name of the tool.
        path: The path of the parameter; empty for the tool as a whole.
        message: The description of the difference.
        breaking: Whether a call that was valid can now be rejected.
        kind: Whether the tool or parameter was added, removed or changed.
    """

    tool: str
    path: str = ""
    message: str
    breaking: bool
    kind: Kind = "changed"

    def __str__(self) -> str:
        where = f"{self.tool}.{self.path}" if self.path else self.tool
        return f"{where}: {self.message}"


def read_tool_list(document: object) -> list[ToolSchema]:
    """Read a list of tools as the command `schema` writes it, in the format of any provider.

    Raises:
        UserError: The document is not a list of tools.
    """
    if isinstance(document, Mapping):
        mapping = cast("Mapping[str, Any]", document)
        document = mapping.get("tools", [mapping])
    if not isinstance(document, list):
        raise UserValueError(f"expected a list of tools, got {json_type(document)}")
    return [_read_tool(entry) for entry in cast("list[object]", document)]


def compare_tools(old: list[ToolSchema], new: list[ToolSchema]) -> list[SchemaChange]:
    """Return the differences in the order of the old list, then the added tools."""
    new_tools = {tool.name: tool for tool in new}
    changes: list[SchemaChange] = []
    for before in old:
        after = new_tools.get(before.name)
        if after is None:
            changes.append(
                SchemaChange(
                    tool=before.name, message="tool removed", breaking=True, kind="removed"
                )
            )
            continue
        changes.extend(_compare_tool(before, after))
    known = {tool.name for tool in old}
    changes.extend(
        SchemaChange(tool=name, message="tool added", breaking=False, kind="added")
        for name in new_tools
        if name not in known
    )
    return changes


def compare_schemas(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[SchemaChange]:
    """Return the differences between two schemas of arguments."""
    comparison = _Comparison("", DefinitionReader(old), DefinitionReader(new))
    comparison.compare(dict(old), dict(new), "")
    return comparison.changes


_SCHEMA_KEYS = (
    "parameters",
    "parametersJsonSchema",
    "params_json_schema",
    "input_schema",
    "inputSchema",
)


def _read_tool(entry: object) -> ToolSchema:
    if not isinstance(entry, Mapping):
        raise UserValueError(f"expected each tool to be an object, got {json_type(entry)}")
    tool = cast("Mapping[str, Any]", entry)
    for envelope in ("function", "toolSpec"):
        if isinstance(tool.get(envelope), Mapping):
            tool = tool[envelope]
    if not isinstance(tool.get("name"), str):
        raise UserValueError("expected each tool to have a name, got one without a name")
    parameters: object = next((tool[key] for key in _SCHEMA_KEYS if key in tool), None)
    schema = cast("Schema", parameters) if isinstance(parameters, Mapping) else {}
    schema = schema.get("json", schema)  # Bedrock wraps the schema
    output = tool.get("output", tool.get("outputSchema"))
    return ToolSchema(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        parameters=schema,
        output=dict(cast("Mapping[str, Any]", output)) if isinstance(output, Mapping) else None,
    )


def _compare_tool(old: ToolSchema, new: ToolSchema) -> list[SchemaChange]:
    comparison = _Comparison(
        old.name, DefinitionReader(old.parameters), DefinitionReader(new.parameters)
    )
    comparison.compare(old.parameters, new.parameters, "")
    if old.description != new.description:
        comparison.note("", "description changed")
    if old.output != new.output:
        comparison.note("", "schema of the result changed")
    return comparison.changes


class _Comparison:
    """The comparison of two schemas; references are resolved."""

    def __init__(self, tool: str, old: DefinitionReader, new: DefinitionReader) -> None:
        self.changes: list[SchemaChange] = []
        self._tool = tool
        self._old = old
        self._new = new
        self._inside: set[tuple[str, str]] = set()  # the pairs that are being compared

    def note(
        self, path: str, message: str, *, breaking: bool = False, kind: Kind = "changed"
    ) -> None:
        self.changes.append(
            SchemaChange(tool=self._tool, path=path, message=message, breaking=breaking, kind=kind)
        )

    def compare(self, old: object, new: object, path: str) -> None:
        """Record the differences: breaking ones reject values that the old schema accepted."""
        pair = (json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True))
        if pair in self._inside:  # schemas can refer to themselves
            return
        self._inside.add(pair)
        try:
            self._compare_annotations(self._old.read(old), self._new.read(new), path)
            self._compare_arms(self._old.arms(old), self._new.arms(new), path)
        finally:
            self._inside.remove(pair)

    def _compare_arms(self, before: list[Schema], after: list[Schema], path: str) -> None:
        for arm in before:
            self._compare_arm(arm, after, path)
        if _untyped(before):
            return
        if _untyped(after):
            self.note(path, "now accepts any value")
            return
        kinds = {arm["type"] for arm in before}
        wider = {arm["type"] for arm in after} - kinds
        if "number" in kinds:
            wider.discard("integer")
        for kind in sorted(wider):
            self.note(path, f"now also accepts {kind}")

    def _compare_annotations(self, old: Schema, new: Schema, path: str) -> None:
        if old.get("default") != new.get("default") or ("default" in old) != ("default" in new):
            before, after = (
                _json_text(schema["default"]) if "default" in schema else "none"
                for schema in (old, new)
            )
            self.note(path, f"default changed from {before} to {after}")
        if path and old.get("description") != new.get("description"):
            self.note(path, "description changed")

    def _compare_arm(self, arm: Schema, after: list[Schema], path: str) -> None:
        """Compare one old branch of a union with the new branch that is closest to it."""
        candidates = [candidate for candidate in after if _accepts_type(candidate, arm)]
        if not candidates:
            old_type = describe_type(self._old, arm)
            new_types = " or ".join(dict.fromkeys(describe_type(self._new, item) for item in after))
            self.note(path, f"no longer accepts {old_type}, only {new_types}", breaking=True)
            return
        trials = [self._compare_pair(arm, candidate, path) for candidate in candidates]
        best = min(trials, key=lambda trial: (sum(one.breaking for one in trial), len(trial)))
        self.changes.extend(best)

    def _compare_pair(self, old: Schema, new: Schema, path: str) -> list[SchemaChange]:
        trial = _Comparison(self._tool, self._old, self._new)
        trial._inside = self._inside
        trial._compare_choices(old, new, path)
        for keyword in _LOWER:
            trial._compare_bound(old, new, keyword, path, raised=True)
        for keyword in _UPPER:
            trial._compare_bound(old, new, keyword, path, raised=False)
        for keyword in _EXACT:
            trial._compare_exact(old, new, keyword, path)
        trial._compare_members(old, new, path)
        trial._compare_items(old, new, path)
        return trial.changes

    def _compare_choices(self, old: Schema, new: Schema, path: str) -> None:
        before, after = _choices(old), _choices(new)
        if after is None:
            if before is not None:
                self.note(path, "now accepts other values than those listed")
            return
        if before is None:
            values = ", ".join(map(_json_text, after))
            self.note(path, f"now accepts only {values}", breaking=True)
            return
        removed = [value for value in before if not _is_in(value, after)]
        added = [value for value in after if not _is_in(value, before)]
        if removed:
            values = ", ".join(map(_json_text, removed))
            self.note(path, f"no longer accepts {values}", breaking=True)
        if added:
            self.note(path, f"now also accepts {', '.join(map(_json_text, added))}")

    def _compare_bound(
        self, old: Schema, new: Schema, keyword: str, path: str, *, raised: bool
    ) -> None:
        before, after = old.get(keyword), new.get(keyword)
        if before == after:
            return
        if after is None:
            self.note(path, f"{keyword} {_json_text(before)} dropped")
        elif before is None:
            self.note(
                path, f"{keyword} {_json_text(after)} added", breaking=_restricts(keyword, after)
            )
        else:
            tighter = after > before if raised else after < before
            text = f"{keyword} changed from {_json_text(before)} to {_json_text(after)}"
            self.note(path, text, breaking=tighter)

    def _compare_exact(self, old: Schema, new: Schema, keyword: str, path: str) -> None:
        before, after = old.get(keyword), new.get(keyword)
        if before == after:
            return
        if not after:
            self.note(path, f"{keyword} {_json_text(before)} dropped")
        elif not before:
            self.note(path, f"{keyword} {_json_text(after)} added", breaking=True)
        else:
            text = f"{keyword} changed from {_json_text(before)} to {_json_text(after)}"
            divides = keyword == "multipleOf" and before % after == 0
            self.note(path, text, breaking=not divides)

    def _compare_members(self, old: Schema, new: Schema, path: str) -> None:
        before, after = _properties(old), _properties(new)
        old_required, new_required = set(old.get("required", ())), set(new.get("required", ()))
        for name, schema in before.items():
            member_path = f"{path}.{name}" if path else name
            if name not in after:
                self._note_removed(new, schema, member_path)
                continue
            if name in new_required and name not in old_required:
                self.note(member_path, "became required", breaking=True)
            elif name in old_required and name not in new_required:
                self.note(member_path, "became optional")
            self.compare(schema, after[name], member_path)
        for name in after:
            if name in before:
                continue
            member_path = f"{path}.{name}" if path else name
            if name in new_required:
                self.note(member_path, "required parameter added", breaking=True, kind="added")
            else:
                self.note(member_path, "optional parameter added", kind="added")
        self._compare_others(old, new, path)

    def _note_removed(self, new: Schema, schema: object, member_path: str) -> None:
        others = new.get("additionalProperties")
        if others is True:
            self.note(member_path, "parameter is no longer described")
        elif isinstance(others, dict):
            self.compare(schema, cast("Schema", others), member_path)
        else:
            self.note(member_path, "parameter removed", breaking=True, kind="removed")

    def _compare_others(self, old: Schema, new: Schema, path: str) -> None:
        """Compare the schemas of additional members."""
        before, after = old.get("additionalProperties"), new.get("additionalProperties")
        member_path = f"{path}.*" if path else "*"
        if isinstance(before, dict) and isinstance(after, dict):
            self.compare(cast("Schema", before), cast("Schema", after), member_path)
        elif before == after:
            return
        elif isinstance(after, dict) and before is True:
            self.compare({}, cast("Schema", after), member_path)
        elif before is True or isinstance(before, dict):
            if after is not True:
                self.note(path, "no longer accepts other members", breaking=True)
        elif after is True or isinstance(after, dict):
            self.note(path, "now accepts other members")

    def _compare_items(self, old: Schema, new: Schema, path: str) -> None:
        if "items" in old or "items" in new:
            self.compare(old.get("items", {}), new.get("items", {}), f"{path}[]")
        before = cast("list[object]", old.get("prefixItems", []))
        after = cast("list[object]", new.get("prefixItems", []))
        for index, (one, other) in enumerate(zip(before, after, strict=False)):
            self.compare(one, other, f"{path}[{index}]")


_LOWER = ("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties")
_UPPER = ("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties")
_EXACT = ("multipleOf", "pattern", "format", "uniqueItems")


def _restricts(keyword: str, bound: object) -> bool:
    """Return whether a bound can reject a value; a minimum length of 0 cannot."""
    return not (keyword in {"minLength", "minItems", "minProperties"} and bound == 0)


def _untyped(arms: list[Schema]) -> bool:
    return any("type" not in arm for arm in arms)


def _accepts_type(candidate: Schema, arm: Schema) -> bool:
    """Return whether a new branch accepts values of the type of an old branch."""
    kind = candidate.get("type")
    return (
        kind is None
        or kind == arm.get("type")
        or (kind == "number" and arm.get("type") == "integer")
    )


def _is_in(value: Any, values: list[Any]) -> bool:
    """Return whether a list has a value; unlike in Python, `1` is not equal to `true`."""
    return any(value == other and json_type(value) == json_type(other) for other in values)


def _properties(schema: Schema) -> dict[str, object]:
    properties = schema.get("properties")
    return cast("dict[str, object]", properties) if isinstance(properties, dict) else {}


def _json_text(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 40)


# --- reading one schema


class DefinitionReader:
    """A reader of the subschemas of one schema.

    Args:
        root: The whole schema, which references point to.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root: Schema = dict(root)
        self._references = References(self.root)

    def read(self, schema: object) -> Schema:
        """Return a schema with references resolved and an `allOf` of one schema merged.

        Keywords with invalid values are left out.
        """
        resolved: Schema = cast("Schema", schema) if isinstance(schema, dict) else {}
        for _ in range(_MAX_CHAIN):
            try:
                resolved = self._references.follow(resolved)
            except UserError:
                return {}
            arms = resolved.get("allOf")
            if not isinstance(arms, list) or len(cast("list[Any]", arms)) != 1:
                return {key: value for key, value in resolved.items() if _is_usable(key, value)}
            (arm,) = cast("list[Any]", arms)
            rest = {key: value for key, value in resolved.items() if key != "allOf"}
            resolved = {**(cast("Schema", arm) if isinstance(arm, dict) else {}), **rest}
        return {}

    def arms(self, schema: object) -> list[Schema]:
        """Return the branches of a schema, one per type; a branch without a type is unchanged."""
        return list(islice(self._arms(schema, set()), _MAX_BRANCHES))

    def _arms(self, schema: object, seen: set[str]) -> Iterator[Schema]:
        """Yield branches; each reference is followed once, because references can be recursive."""
        unresolved: Schema = cast("Schema", schema) if isinstance(schema, dict) else {}
        ref = unresolved.get("$ref")
        if isinstance(ref, str):
            if ref in seen:
                return
            seen.add(ref)
        resolved = self.read(unresolved)
        for key in ("anyOf", "oneOf"):
            if key in resolved:
                rest = {k: v for k, v in resolved.items() if k not in {key, *_ANNOTATIONS}}
                for child in resolved[key]:
                    yield from ({**rest, **arm} for arm in self._arms(child, seen))
                return
        kinds = resolved.get("type")
        if isinstance(kinds, list):
            yield from (_restrict_to_type(resolved, kind) for kind in cast("list[str]", kinds))
        elif kinds is None and (values := _choices(resolved)) is not None:
            by_kind = list(dict.fromkeys(json_type(value) for value in values))
            yield from (_restrict_to_type(resolved, kind) for kind in by_kind)
        else:
            yield resolved

    def property(self, schema: object, name: str) -> object:
        """Return the schema of one member of an object."""
        for arm in self.arms(schema):
            properties = arm.get("properties")
            if isinstance(properties, dict) and name in properties:
                return cast("Schema", properties)[name]
        for arm in self.arms(schema):
            if isinstance(arm.get("additionalProperties"), dict):
                return arm["additionalProperties"]
        return {}


_MAX_CHAIN = 50
_MAX_BRANCHES = 200
_NUMBERS = frozenset(
    {
        *("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"),
        *("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "multipleOf"),
    }
)
_LISTS = frozenset({"anyOf", "oneOf", "enum", "examples", "prefixItems"})
_TEXTS = frozenset({"pattern", "format", "title", "description"})


def _is_usable(keyword: str, value: object) -> bool:
    """Return whether the value of a keyword has the type that JSON Schema requires."""
    if keyword in _NUMBERS:
        return isinstance(value, (int, float))
    if keyword in _TEXTS:
        return isinstance(value, str)
    if keyword in _LISTS:
        return isinstance(value, list)
    if keyword == "properties":
        return isinstance(value, dict)
    texts = [value] if keyword == "type" and isinstance(value, str) else value
    if keyword in {"type", "required"}:
        return isinstance(texts, list) and all(
            isinstance(one, str) for one in cast("list[object]", texts)
        )
    return True


_ANNOTATIONS = ("title", "description", "default", "examples", "discriminator", "deprecated")


def parameters_of(schema: Mapping[str, Any]) -> dict[str, Schema]:
    """Return the schemas of the parameters by name."""
    properties = DefinitionReader(schema).read(dict(schema)).get("properties")
    return cast("dict[str, Schema]", properties) if isinstance(properties, dict) else {}


def describe_type(reader: DefinitionReader, schema: object, *, depth: int = 0) -> str:
    """Describe the type of a schema: `integer`, `array of string`, or `red or blue`."""
    arms = reader.arms(schema)
    kinds = list(dict.fromkeys(_describe_branch(reader, arm, depth) for arm in arms))
    if "null" in kinds:  # last, because most callers never send it
        kinds = [kind for kind in kinds if kind != "null"] + ["null"]
    return " or ".join(kinds)


def json_type(value: object) -> str:
    """Return the JSON type of a value."""
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


_MAX_DEPTH = 2


def _describe_branch(reader: DefinitionReader, arm: Schema, depth: int) -> str:
    choices = _choices(arm)
    if choices is not None:
        return " or ".join(
            choice if isinstance(choice, str) else json.dumps(choice) for choice in choices
        )
    kind = str(arm.get("type", "any"))
    if depth >= _MAX_DEPTH:
        return kind
    if kind == "array" and arm.get("items"):
        return f"array of {describe_type(reader, arm['items'], depth=depth + 1)}"
    if kind == "object" and isinstance(arm.get("properties"), dict):
        return f"object {{{shorten(', '.join(arm['properties']), 40)}}}"
    if kind == "object" and isinstance(arm.get("additionalProperties"), dict):
        return f"object of {describe_type(reader, arm['additionalProperties'], depth=depth + 1)}"
    return kind


def _choices(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def _restrict_to_type(schema: Schema, kind: Any) -> Schema:
    """Return a schema of several types restricted to one of them."""
    one = {**schema, "type": kind}
    values = _choices(schema)
    if values is not None:
        one["enum"] = [value for value in values if json_type(value) == kind]
        one.pop("const", None)
    return one
