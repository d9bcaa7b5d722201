"""Hypothesis strategies for the arguments of a tool, derived from its schema."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, cast

from hypothesis import strategies as st
from pydantic_core import to_json

from agents_tools.errors import UserValueError
from agents_tools.testing.fakes import ArgumentsCheck

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from hypothesis.strategies import SearchStrategy

    from agents_tools.tool.tool import FunctionTool

    Schema = Mapping[str, Any]

__all__ = ["bad_tool_arguments", "tool_arguments"]

_MOST = 5
"""The largest number of members that a list or object gets beyond the required ones."""
_SIZE = 2**53
_ANNOTATIONS = {"$defs", "default", "description", "discriminator", "examples", "title"}
"""Keywords next to a union that restrict no value."""
_TEXT = st.text(st.characters(codec="utf-8"), max_size=20)
_JSON: SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-_SIZE, _SIZE) | st.floats(-1e9, 1e9) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=5,
)


def tool_arguments(tool: FunctionTool[..., Any]) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for valid arguments of a tool.

    ```python
    @given(tool_arguments(search))
    def test_answers_whatever_it_is_asked(arguments):
        assert call_tool_sync(search, arguments).status == "ok"
    ```

    Args:
        tool: The tool.

    Returns:
        A strategy for dictionaries of JSON values.

    Raises:
        UserError: The schema has a reference that does not exist.
    """
    made = _ValueStrategies(tool.json_schema).of(tool.json_schema)
    return cast("SearchStrategy[dict[str, Any]]", made.filter(_accepted_by(tool)))


def bad_tool_arguments(tool: FunctionTool[..., Any]) -> SearchStrategy[dict[str, Any]]:
    """Return a strategy for invalid arguments of a tool: valid ones with one error.

    The error is a parameter that is missing, unknown, of another type or out of bounds.

    Args:
        tool: The tool.

    Returns:
        A strategy for dictionaries of JSON values.
    """
    accepted = _accepted_by(tool)

    @st.composite
    def spoiled(draw: Callable[[SearchStrategy[Any]], Any]) -> dict[str, Any]:
        arguments = dict(draw(tool_arguments(tool)))
        names = sorted(arguments)
        kind = draw(st.sampled_from(["missing", "unknown", "other"] if names else ["unknown"]))
        if kind == "unknown":
            arguments[draw(_TEXT.filter(lambda name: name not in arguments))] = draw(_JSON)
            return arguments
        name = draw(st.sampled_from(names))
        if kind == "missing":
            del arguments[name]
        else:
            arguments[name] = draw(_JSON)
        return arguments

    return spoiled().filter(lambda arguments: not accepted(arguments))


def _accepted_by(tool: FunctionTool[..., Any]) -> Callable[[Any], bool]:
    gate = ArgumentsCheck(tool)
    return lambda arguments: gate.accepts(to_json(arguments).decode())


class _ValueStrategies:
    """Creates strategies for the schemas in one document."""

    def __init__(self, root: Schema) -> None:
        self._root = root
        self._known: dict[str, SearchStrategy[Any]] = {}

    def of(self, schema: Any) -> SearchStrategy[Any]:
        """Return a strategy for the values of a schema."""
        if schema is True or schema == {}:
            return _JSON
        if not isinstance(schema, dict):
            return st.nothing()
        described = cast("dict[str, Any]", schema)
        if "$ref" in described:
            return self._referred(str(described["$ref"]))
        if "const" in described:
            return st.just(described["const"])
        if "enum" in described:
            return st.sampled_from(cast("list[Any]", described["enum"]))
        for key in ("anyOf", "oneOf"):
            if key in described:
                rest = {name: one for name, one in described.items() if name != key}
                arms = cast("list[Any]", described[key])
                return st.one_of([self._of_arm(arm, rest) for arm in arms])
        if "allOf" in described:
            merged = {key: value for key, value in described.items() if key != "allOf"}
            for arm in cast("list[dict[str, Any]]", described["allOf"]):
                merged = _merge(merged, self._resolved(arm))
            return self.of(merged)
        kind: Any = described.get("type")
        if isinstance(kind, list):
            return st.one_of([self.of({**described, "type": one}) for one in cast("Any", kind)])
        return self._of_kind(kind, described)

    def _of_arm(self, arm: Any, rest: dict[str, Any]) -> SearchStrategy[Any]:
        """Return a strategy for one schema of a union, together with the keywords next to it."""
        if not isinstance(arm, dict) or rest.keys() <= _ANNOTATIONS:
            return self.of(arm)
        return self.of(_merge(rest, self._resolved(cast("dict[str, Any]", arm))))

    def _of_kind(self, kind: Any, schema: dict[str, Any]) -> SearchStrategy[Any]:
        match kind:
            case "null":
                return st.none()
            case "boolean":
                return st.booleans()
            case "integer":
                return _integers(schema)
            case "number":
                return _numbers(schema)
            case "string":
                return _strings(schema)
            case "array":
                return self._array(schema)
            case "object":
                return self._object(schema)
            case _:
                return self._object(schema) if "properties" in schema else _JSON

    def _referred(self, pointer: str) -> SearchStrategy[Any]:
        if pointer not in self._known:
            target = self._target(pointer)
            self._known[pointer] = st.deferred(lambda: self.of(target))
        return self._known[pointer]

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        return self._target(str(schema["$ref"])) if "$ref" in schema else schema

    def _target(self, pointer: str) -> dict[str, Any]:
        found: Any = self._root
        for step in pointer.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(found, dict) or name not in found:
                raise UserValueError(f"The schema refers to {pointer!r}, which does not exist.")
            found = cast("dict[str, Any]", found)[name]
        return cast("dict[str, Any]", found)

    def _array(self, schema: dict[str, Any]) -> SearchStrategy[Any]:
        least = int(schema.get("minItems", 0))
        most = int(schema.get("maxItems", least + _MOST))
        first = [self.of(item) for item in cast("list[Any]", schema.get("prefixItems", []))]
        rest = schema.get("items", True)
        if first:
            fixed = st.tuples(*first).map(list)
            if rest is False or "items" not in schema:
                return fixed
            more = st.lists(self.of(rest), max_size=max(0, most - len(first)))
            return st.tuples(fixed, more).map(lambda both: both[0] + both[1])
        items = self.of(rest)
        unique = repr if schema.get("uniqueItems") else None
        return st.lists(items, min_size=least, max_size=most, unique_by=unique)

    def _object(self, schema: dict[str, Any]) -> SearchStrategy[Any]:
        known = cast("dict[str, Any]", schema.get("properties", {}))
        needed = set(cast("list[str]", schema.get("required", [])))
        required = {name: self.of(known.get(name, True)) for name in sorted(needed)}
        optional = {name: self.of(one) for name, one in known.items() if name not in needed}
        own = st.fixed_dictionaries(required, optional=optional)
        others = schema.get("additionalProperties", not known)
        if others is False or (others is True and known):
            return own
        least = max(0, int(schema.get("minProperties", 0)) - len(required))
        most = int(schema.get("maxProperties", least + _MOST))
        names = _TEXT.filter(lambda name: name not in known)
        more = st.dictionaries(names, self.of(others), min_size=least, max_size=most)
        return st.tuples(own, more).map(lambda both: {**both[1], **both[0]})


def _merge(first: dict[str, Any], second: dict[str, Any]) -> dict[str, Any]:
    """Return one schema with the keywords of two; both have to hold for properties."""
    merged = {**first, **second}
    if "properties" in first and "properties" in second:
        merged["properties"] = {**first["properties"], **second["properties"]}
    if "required" in first and "required" in second:
        merged["required"] = [*first["required"], *second["required"]]
    return merged


def _integers(schema: dict[str, Any]) -> SearchStrategy[Any]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if (bound := schema.get("exclusiveMinimum")) is not None:
        low = math.floor(bound) + 1
    if (bound := schema.get("exclusiveMaximum")) is not None:
        high = math.ceil(bound) - 1
    low = None if low is None else math.ceil(low)
    high = None if high is None else math.floor(high)
    step = schema.get("multipleOf")
    if step and float(step).is_integer():
        times = int(step)
        first = None if low is None else -(-low // times)
        last = None if high is None else high // times
        return st.integers(first, last).map(lambda number: number * times)
    return st.integers(low, high)


def _numbers(schema: dict[str, Any]) -> SearchStrategy[Any]:
    low: Any = schema.get("exclusiveMinimum", schema.get("minimum"))
    high: Any = schema.get("exclusiveMaximum", schema.get("maximum"))
    step = schema.get("multipleOf")
    if step:
        first = None if low is None else math.ceil(low / step)
        last = None if high is None else math.floor(high / step)
        return st.integers(first, last).map(lambda number: number * step)
    return st.floats(
        -1e9 if low is None and high is None else low,
        1e9 if low is None and high is None else high,
        allow_nan=False,
        allow_infinity=False,
        exclude_min="exclusiveMinimum" in schema,
        exclude_max="exclusiveMaximum" in schema,
    )


def _strings(schema: dict[str, Any]) -> SearchStrategy[Any]:
    least, most = int(schema.get("minLength", 0)), schema.get("maxLength")
    made = _FORMATS.get(str(schema.get("format")))
    if made is not None:
        return made
    if "pattern" in schema:
        matching = st.from_regex(str(schema["pattern"]))
        return matching.filter(
            lambda text: len(text) >= least and (most is None or len(text) <= most)
        )
    return st.text(st.characters(codec="utf-8"), min_size=least, max_size=most)


_FORMATS: dict[str, SearchStrategy[Any]] = {
    "date-time": st.datetimes(timezones=st.timezones()).map(lambda when: when.isoformat()),
    "date": st.dates().map(str),
    "time": st.times().map(str),
    "duration": st.timedeltas().map(lambda span: f"P{span.days}DT{span.seconds}S"),
    "uuid": st.uuids().map(str),
    "ipv4": st.ip_addresses(v=4).map(str),
    "ipv6": st.ip_addresses(v=6).map(str),
    "email": st.emails(),
    "uri": st.from_regex(r"\Ahttps://[a-z]{1,10}\.(com|org)/[a-z]{0,10}\Z"),
    "path": st.from_regex(r"\A[a-z]{1,8}(/[a-z]{1,8}){0,2}\Z"),
}
