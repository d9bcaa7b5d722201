"""Compares two lists of tools: would callers of the old ones still be understood by the new?"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools._strict import References
from agents_tools._text import shorten
from agents_tools.errors import UserError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "Change",
    "Reader",
    "Schema",
    "ToolShape",
    "compare_schemas",
    "compare_tools",
    "described_kind",
    "kind_of_value",
    "parameters_of",
    "shapes_of",
]

Schema = dict[str, Any]
Kind: TypeAlias = Literal["added", "removed", "changed"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolShape:
    """What a list of tools says about one of them.

    Attributes:
        name: Its name.
        description: What it does.
        parameters: The JSON Schema of its arguments.
        output: The JSON Schema of its results, where there is one.
    """

    name: str
    description: str = ""
    parameters: Schema
    output: Schema | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One difference.

    Attributes:
        tool: The tool it is about.
        path: The parameter it is about, with its members; empty for the tool as a whole.
        message: What is different.
        breaking: Whether a call that was good may be refused now.
        kind: Whether what it is about came, went, or is another one.
    """

    tool: str
    path: str = ""
    message: str
    breaking: bool
    kind: Kind = "changed"

    def __str__(self) -> str:
        where = f"{self.tool}.{self.path}" if self.path else self.tool
        return f"{where}: {self.message}"


def shapes_of(document: object) -> list[ToolShape]:
    """Read a list of tools as `schema` writes it, in its own form or that of any provider.

    Raises:
        UserError: It is no such list.
    """
    if isinstance(document, Mapping):
        whole = cast("Mapping[str, Any]", document)
        document = whole.get("tools", [whole])
    if not isinstance(document, list):
        raise UserValueError("it is no list of tools")
    return [_shape(entry) for entry in cast("list[object]", document)]


def compare_tools(old: list[ToolShape], new: list[ToolShape]) -> list[Change]:
    """List what is different, in the order of the old list, then the tools that came."""
    now = {tool.name: tool for tool in new}
    changes: list[Change] = []
    for before in old:
        after = now.get(before.name)
        if after is None:
            changes.append(
                Change(tool=before.name, message="tool removed", breaking=True, kind="removed")
            )
            continue
        changes.extend(_compare_tool(before, after))
    known = {tool.name for tool in old}
    changes.extend(
        Change(tool=name, message="tool added", breaking=False, kind="added")
        for name in now
        if name not in known
    )
    return changes


def compare_schemas(old: Mapping[str, Any], new: Mapping[str, Any]) -> list[Change]:
    """List what is different between two schemas of arguments."""
    comparison = _Comparison("", Reader(old), Reader(new))
    comparison.compare(dict(old), dict(new), "")
    return comparison.changes


_SCHEMA_KEYS = (
    "parameters",
    "parametersJsonSchema",
    "params_json_schema",
    "input_schema",
    "inputSchema",
)


def _shape(entry: object) -> ToolShape:
    if not isinstance(entry, Mapping):
        raise UserValueError("one of its tools is no object")
    tool = cast("Mapping[str, Any]", entry)
    for envelope in ("function", "toolSpec"):
        if isinstance(tool.get(envelope), Mapping):
            tool = tool[envelope]
    if not isinstance(tool.get("name"), str):
        raise UserValueError("one of its tools has no name")
    found: object = next((tool[key] for key in _SCHEMA_KEYS if key in tool), None)
    schema = cast("Schema", found) if isinstance(found, Mapping) else {}
    schema = schema.get("json", schema)  # as Bedrock wraps it
    output = tool.get("output", tool.get("outputSchema"))
    return ToolShape(
        name=tool["name"],
        description=str(tool.get("description") or ""),
        parameters=schema,
        output=dict(cast("Mapping[str, Any]", output)) if isinstance(output, Mapping) else None,
    )


def _compare_tool(old: ToolShape, new: ToolShape) -> list[Change]:
    comparison = _Comparison(old.name, Reader(old.parameters), Reader(new.parameters))
    comparison.compare(old.parameters, new.parameters, "")
    if old.description != new.description:
        comparison.note("", "description changed")
    if old.output != new.output:
        comparison.note("", "schema of the result changed")
    return comparison.changes


class _Comparison:
    """The comparison of one pair of schemas, with references followed."""

    def __init__(self, tool: str, old: Reader, new: Reader) -> None:
        self.changes: list[Change] = []
        self._tool = tool
        self._old = old
        self._new = new
        self._inside: set[tuple[str, str]] = set()  # the pairs that are being compared

    def note(
        self, path: str, message: str, *, breaking: bool = False, kind: Kind = "changed"
    ) -> None:
        self.changes.append(
            Change(tool=self._tool, path=path, message=message, breaking=breaking, kind=kind)
        )

    def compare(self, old: object, new: object, path: str) -> None:
        """Note whether all that the old schema accepted is accepted by the new one."""
        pair = (json.dumps(old, sort_keys=True), json.dumps(new, sort_keys=True))
        if pair in self._inside:  # schemas may refer to themselves
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
                _shown(schema["default"]) if "default" in schema else "none"
                for schema in (old, new)
            )
            self.note(path, f"default changed from {before} to {after}")
        if path and old.get("description") != new.get("description"):
            self.note(path, "description changed")

    def _compare_arm(self, arm: Schema, after: list[Schema], path: str) -> None:
        """Compare one old alternative with the new one that takes most of it."""
        able = [candidate for candidate in after if _takes_kind(candidate, arm)]
        if not able:
            was = described_kind(self._old, arm)
            now = " or ".join(dict.fromkeys(described_kind(self._new, item) for item in after))
            self.note(path, f"no longer accepts {was}, only {now}", breaking=True)
            return
        tries = [self._tried(arm, candidate, path) for candidate in able]
        best = min(tries, key=lambda found: (sum(one.breaking for one in found), len(found)))
        self.changes.extend(best)

    def _tried(self, old: Schema, new: Schema, path: str) -> list[Change]:
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
            told = ", ".join(map(_shown, after))
            self.note(path, f"now accepts only {told}", breaking=True)
            return
        gone = [value for value in before if not _is_in(value, after)]
        come = [value for value in after if not _is_in(value, before)]
        if gone:
            told = ", ".join(map(_shown, gone))
            self.note(path, f"no longer accepts {told}", breaking=True)
        if come:
            self.note(path, f"now also accepts {', '.join(map(_shown, come))}")

    def _compare_bound(
        self, old: Schema, new: Schema, keyword: str, path: str, *, raised: bool
    ) -> None:
        before, after = old.get(keyword), new.get(keyword)
        if before == after:
            return
        if after is None:
            self.note(path, f"{keyword} {_shown(before)} dropped")
        elif before is None:
            self.note(path, f"{keyword} {_shown(after)} added", breaking=_bites(keyword, after))
        else:
            tighter = after > before if raised else after < before
            text = f"{keyword} changed from {_shown(before)} to {_shown(after)}"
            self.note(path, text, breaking=tighter)

    def _compare_exact(self, old: Schema, new: Schema, keyword: str, path: str) -> None:
        before, after = old.get(keyword), new.get(keyword)
        if before == after:
            return
        if not after:
            self.note(path, f"{keyword} {_shown(before)} dropped")
        elif not before:
            self.note(path, f"{keyword} {_shown(after)} added", breaking=True)
        else:
            text = f"{keyword} changed from {_shown(before)} to {_shown(after)}"
            divides = keyword == "multipleOf" and before % after == 0
            self.note(path, text, breaking=not divides)

    def _compare_members(self, old: Schema, new: Schema, path: str) -> None:
        before, after = _properties(old), _properties(new)
        needed, demanded = set(old.get("required", ())), set(new.get("required", ()))
        for name, schema in before.items():
            at = f"{path}.{name}" if path else name
            if name not in after:
                self._removed(new, schema, at)
                continue
            if name in demanded and name not in needed:
                self.note(at, "became required", breaking=True)
            elif name in needed and name not in demanded:
                self.note(at, "became optional")
            self.compare(schema, after[name], at)
        for name in after:
            if name in before:
                continue
            at = f"{path}.{name}" if path else name
            if name in demanded:
                self.note(at, "required parameter added", breaking=True, kind="added")
            else:
                self.note(at, "optional parameter added", kind="added")
        self._compare_others(old, new, path)

    def _removed(self, new: Schema, schema: object, at: str) -> None:
        others = new.get("additionalProperties")
        if others is True:
            self.note(at, "parameter is no longer described")
        elif isinstance(others, dict):
            self.compare(schema, cast("Schema", others), at)
        else:
            self.note(at, "parameter removed", breaking=True, kind="removed")

    def _compare_others(self, old: Schema, new: Schema, path: str) -> None:
        """Compare what members beside the named ones may be."""
        before, after = old.get("additionalProperties"), new.get("additionalProperties")
        at = f"{path}.*" if path else "*"
        if isinstance(before, dict) and isinstance(after, dict):
            self.compare(cast("Schema", before), cast("Schema", after), at)
        elif before == after:
            return
        elif isinstance(after, dict) and before is True:
            self.compare({}, cast("Schema", after), at)
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


def _bites(keyword: str, bound: object) -> bool:
    """Whether a bound refuses anything: a length of at least nothing does not."""
    return not (keyword in {"minLength", "minItems", "minProperties"} and bound == 0)


def _untyped(arms: list[Schema]) -> bool:
    return any("type" not in arm for arm in arms)


def _takes_kind(candidate: Schema, arm: Schema) -> bool:
    """Whether values of the old type are looked at by the new alternative at all."""
    wanted = candidate.get("type")
    return (
        wanted is None
        or wanted == arm.get("type")
        or (wanted == "number" and arm.get("type") == "integer")
    )


def _is_in(value: Any, values: list[Any]) -> bool:
    """Whether a value is listed; `1` is not `true`, as it is in Python."""
    return any(value == other and kind_of_value(value) == kind_of_value(other) for other in values)


def _properties(schema: Schema) -> dict[str, object]:
    found = schema.get("properties")
    return cast("dict[str, object]", found) if isinstance(found, dict) else {}


def _shown(value: Any) -> str:
    return shorten(json.dumps(value, ensure_ascii=False), 40)


# --- reading one schema


class Reader:
    """Reads the schemas within one schema.

    Args:
        root: The whole schema, where references lead.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root: Schema = dict(root)
        self._references = References(self.root)

    def read(self, schema: object) -> Schema:
        """Give a schema with references followed and a lone `allOf` taken apart.

        What is not as JSON Schema has it is left out.
        """
        found: Schema = cast("Schema", schema) if isinstance(schema, dict) else {}
        for _ in range(_LONGEST_CHAIN):
            try:
                found = self._references.followed(found)
            except UserError:
                return {}
            arms = found.get("allOf")
            if not isinstance(arms, list) or len(cast("list[Any]", arms)) != 1:
                return {key: value for key, value in found.items() if _is_usable(key, value)}
            (arm,) = cast("list[Any]", arms)
            rest = {key: value for key, value in found.items() if key != "allOf"}
            found = {**(cast("Schema", arm) if isinstance(arm, dict) else {}), **rest}
        return {}

    def arms(self, schema: object) -> list[Schema]:
        """Give the alternatives of a schema, each of one type; an untyped one as it is."""
        return list(islice(self._arms(schema, set()), _MOST_ARMS))

    def _arms(self, schema: object, seen: set[str]) -> Iterator[Schema]:
        """Yield alternatives; what is referred to once more has been yielded, or never ends."""
        given: Schema = cast("Schema", schema) if isinstance(schema, dict) else {}
        ref = given.get("$ref")
        if isinstance(ref, str):
            if ref in seen:
                return
            seen.add(ref)
        found = self.read(given)
        for key in ("anyOf", "oneOf"):
            if key in found:
                rest = {k: v for k, v in found.items() if k not in {key, *_ANNOTATIONS}}
                for child in found[key]:
                    yield from ({**rest, **arm} for arm in self._arms(child, seen))
                return
        kinds = found.get("type")
        if isinstance(kinds, list):
            yield from (_of_kind(found, kind) for kind in cast("list[str]", kinds))
        elif kinds is None and (values := _choices(found)) is not None:
            by_kind = list(dict.fromkeys(kind_of_value(value) for value in values))
            yield from (_of_kind(found, kind) for kind in by_kind)
        else:
            yield found

    def property(self, schema: object, name: str) -> object:
        """Give the schema of one member of an object."""
        for arm in self.arms(schema):
            properties = arm.get("properties")
            if isinstance(properties, dict) and name in properties:
                return cast("Schema", properties)[name]
        for arm in self.arms(schema):
            if isinstance(arm.get("additionalProperties"), dict):
                return arm["additionalProperties"]
        return {}


_LONGEST_CHAIN = 50
_MOST_ARMS = 200
_NUMBERS = frozenset(
    {
        *("minimum", "exclusiveMinimum", "minLength", "minItems", "minProperties"),
        *("maximum", "exclusiveMaximum", "maxLength", "maxItems", "maxProperties", "multipleOf"),
    }
)
_LISTS = frozenset({"anyOf", "oneOf", "enum", "examples", "prefixItems"})
_TEXTS = frozenset({"pattern", "format", "title", "description"})


def _is_usable(keyword: str, value: object) -> bool:
    """Whether the value of a keyword is of the kind that it has to be."""
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
    """Give the schemas of the parameters by name."""
    found = Reader(schema).read(dict(schema)).get("properties")
    return cast("dict[str, Schema]", found) if isinstance(found, dict) else {}


def described_kind(reader: Reader, schema: object, *, depth: int = 0) -> str:
    """Say what a value must be: `integer`, `array of string`, or `red or blue`."""
    arms = reader.arms(schema)
    found = list(dict.fromkeys(_kind_of_arm(reader, arm, depth) for arm in arms))
    if "null" in found:  # last, since it is what most callers never send
        found = [kind for kind in found if kind != "null"] + ["null"]
    return " or ".join(found)


def kind_of_value(value: object) -> str:
    """Give the JSON type of a value."""
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


_DEEPEST = 2


def _kind_of_arm(reader: Reader, arm: Schema, depth: int) -> str:
    choices = _choices(arm)
    if choices is not None:
        return " or ".join(
            choice if isinstance(choice, str) else json.dumps(choice) for choice in choices
        )
    kind = str(arm.get("type", "any"))
    if depth >= _DEEPEST:
        return kind
    if kind == "array" and arm.get("items"):
        return f"array of {described_kind(reader, arm['items'], depth=depth + 1)}"
    if kind == "object" and isinstance(arm.get("properties"), dict):
        return f"object {{{shorten(', '.join(arm['properties']), 40)}}}"
    if kind == "object" and isinstance(arm.get("additionalProperties"), dict):
        return f"object of {described_kind(reader, arm['additionalProperties'], depth=depth + 1)}"
    return kind


def _choices(schema: Schema) -> list[Any] | None:
    if "const" in schema:
        return [schema["const"]]
    values = schema.get("enum")
    return cast("list[Any]", values) if isinstance(values, list) else None


def _of_kind(schema: Schema, kind: Any) -> Schema:
    """Give the part of a schema of several types that is about one of them."""
    one = {**schema, "type": kind}
    values = _choices(schema)
    if values is not None:
        one["enum"] = [value for value in values if kind_of_value(value) == kind]
        one.pop("const", None)
    return one
