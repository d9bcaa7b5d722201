"""Raw JSON Schemas: which keys are accepted, and what is refused at the declaration."""

from __future__ import annotations

import json
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from agents_tools import FunctionTool, UserError
from agents_tools.testing import call_tool
from agents_tools.wire.project import PROVIDERS, project

CITY = {"type": "string"}
POINT = {"type": "object", "properties": {"lat": {"type": "number"}}}


def tool(**schema: Any) -> FunctionTool:
    async def run(_context: Any, args_json: str) -> str:
        return args_json

    return FunctionTool.from_schema(
        name="find", schema={"type": "object", **schema}, on_invoke_tool=run
    )


class Color(StrEnum):
    RED = "red"


class Level(IntEnum):
    LOW = 1


@pytest.mark.parametrize("provider", PROVIDERS)
@pytest.mark.parametrize("is_validated", [True, False])
async def test_members_of_enumerations_are_plain_values(provider: str, is_validated: bool) -> None:
    """They are JSON values for `json.dumps`, so they are for every provider."""

    async def run(_context: Any, args_json: str) -> str:
        return args_json

    properties: Any = {"color": {"enum": list(Color)}, "level": {"enum": list(Level)}}
    schema = {"type": "object", "properties": properties}
    options: Any = {
        "name": "paint",
        "on_invoke_tool": run,
        "metadata": {"openai": {"a": Color.RED}},
    }
    paint = (
        FunctionTool.from_schema(schema=schema, **options)
        if is_validated
        else FunctionTool(description="", params_json_schema=schema, **options)
    )
    assert '"red"' in json.dumps(project(paint, provider).wire)
    assert (await call_tool(paint, {"color": "red", "level": 1})).status == "ok"


@pytest.mark.parametrize("is_validated", [True, False])
def test_the_schema_of_the_results_is_copied_and_checked(is_validated: bool) -> None:
    """A later change of the mapping must not change the tool."""

    async def run(_context: Any, args_json: str) -> str:
        return args_json

    def tool_with(output: Any) -> FunctionTool:
        options: Any = {"name": "paint", "on_invoke_tool": run, "output_json_schema": output}
        schema = {"type": "object"}
        if is_validated:
            return FunctionTool.from_schema(schema=schema, **options)
        return FunctionTool(description="", params_json_schema=schema, **options)

    output: dict[str, Any] = {"type": "object", "properties": {"color": {"enum": list(Color)}}}
    paint = tool_with(output)
    output["properties"].clear()
    assert '"red"' in json.dumps(project(paint, "mcp").wire["outputSchema"])
    with pytest.raises(UserError, match="output_json_schema of tool 'paint' must be"):
        tool_with([1])
    with pytest.raises(UserError, match="output_json_schema of tool 'paint' has a value"):
        tool_with({"default": float("nan")})


@pytest.mark.parametrize(
    ("schema", "arguments", "message"),
    [
        ({"properties": {"city": CITY}}, {"citty": "Oslo"}, "citty: unknown, did you mean 'city'?"),
        (
            {"properties": {"at": POINT}},
            {"at": {"lat": 1, "lng": 2}},
            "at.lng: unknown, the known keys are lat",
        ),
        (
            {"properties": {"all": {"type": "array", "items": POINT}}},
            {"all": [{"lat": 1}, {"lta": 1}]},
            "all[1].lta: unknown, did you mean 'lat'?",
        ),
        (
            {"properties": {"at": {"propertyNames": {"enum": ["lat", "lng"]}}}},
            {"at": {"lta": 1}},
            "at.lta: unknown, did you mean 'lat'?",
        ),
        (
            {"properties": {"at": {"propertyNames": {"maxLength": 2}}}},
            {"at": {"lat": 1}},
            'at.lat: expected at most 2 characters as the key, got "lat"',
        ),
        (
            {"properties": {"at": {"type": "array", "uniqueItems": True}}},
            {"at": [1, 1]},
            "at: expected another value ([1,1] has non-unique elements), got [1, 1]",
        ),
        ({"properties": {"city": False}}, {"city": 1}, "city: unknown, leave it out"),
        ({"properties": {"city": {"const": None}}}, {"city": 1}, "city: expected null, got 1"),
        (
            {"properties": {"at": {"$ref": "#/$defs/P"}}, "$defs": {"P": POINT}},
            {"at": {"latt": 1}},
            "at.latt: unknown, did you mean 'lat'?",
        ),
        (
            {"properties": {"at": {"anyOf": [POINT, {"type": "null"}]}}},
            {"at": {"latt": 1}},
            "at.latt: unknown, did you mean 'lat'?",
        ),
    ],
)
async def test_an_unknown_key_is_refused_where_the_schema_says_nothing(
    schema: dict[str, Any], arguments: dict[str, Any], message: str
) -> None:
    """A misspelled key of an optional value would otherwise be lost without a word."""
    outcome = await tool(**schema).call(None, json.dumps(arguments))
    assert (outcome.status, outcome.output) == (
        "invalid_args",
        f"Invalid arguments for tool 'find':\n- {message}",
    )


@pytest.mark.parametrize("reference", ["#/$defs/A%20b", "#"])
async def test_values_behind_any_reference_are_converted(reference: str) -> None:
    """Generators escape the names of generic types."""
    schema = {"properties": {"at": {"$ref": reference}}, "$defs": {"A b": POINT}}
    assert (await tool(**schema).call(None, '{"at": "{}"}')).output == '{"at":{}}'


@pytest.mark.parametrize(
    ("schema", "arguments"),
    [
        ({}, {"anything": 1}),
        ({"properties": {"a": {}}, "additionalProperties": True}, {"b": 1}),
        ({"properties": {"a": {}}, "additionalProperties": {"type": "integer"}}, {"b": 1}),
        ({"properties": {"a": {}}, "patternProperties": {"^x": {}}}, {"xy": 1}),
        ({"properties": {"a": {}}, "allOf": [{"properties": {"b": {}}}]}, {"a": 1, "b": 1}),
        ({"allOf": [{"properties": {"a": {}}}, {"properties": {"b": {}}}]}, {"a": 1, "b": 1}),
        (
            {
                "allOf": [{"$ref": "#/$defs/A"}, {"properties": {"b": {}}}],
                "$defs": {"A": {"properties": {"a": {}}}},
            },
            {"a": 1, "b": 1},
        ),
        (
            {"properties": {"a": {}}, "anyOf": [{"properties": {"b": {}}, "required": ["b"]}]},
            {"a": 1, "b": 1},
        ),
        (
            {
                "properties": {"at": {"allOf": [POINT, {"properties": {"name": CITY}}]}},
            },
            {"at": {"lat": 1, "name": "x"}},
        ),
        (
            {"properties": {"a": {}}, "if": {"properties": {"a": {"const": 1}}}, "then": {}},
            {"a": 1, "b": 2},
        ),
    ],
)
async def test_a_key_that_a_schema_can_allow_is_accepted(
    schema: dict[str, Any], arguments: dict[str, Any]
) -> None:
    """Other parts of a combination can name further keys."""
    outcome = await tool(**schema).call(None, json.dumps(arguments))
    assert outcome.status == "ok", outcome.output
    assert json.loads(str(outcome.output)) == arguments


BOUNDED = {"type": "number", "minimum": 0, "exclusiveMinimum": True, "maximum": 9}
PAIR = {"type": "array", "items": [CITY, {"type": "integer"}], "additionalItems": False}


@pytest.mark.parametrize("dialect", [{}, {"$schema": "http://json-schema.org/draft-04/schema#"}])
async def test_a_schema_of_draft_4_is_published_and_enforced_in_the_current_dialect(
    dialect: dict[str, str],
) -> None:
    """Models and providers know the current form only. Names of properties are no keywords."""
    properties = {"n": BOUNDED, "pair": PAIR, "exclusiveMinimum": {"type": "boolean"}}
    found = tool(**dialect, properties=properties)
    assert found.json_schema["properties"] == {
        "n": {"type": "number", "maximum": 9, "exclusiveMinimum": 0},
        "pair": {"type": "array", "prefixItems": [CITY, {"type": "integer"}], "items": False},
        "exclusiveMinimum": {"type": "boolean"},
    }
    assert "$schema" not in found.json_schema
    given = {"n": 9, "pair": ["Oslo", 1], "exclusiveMinimum": True}
    assert (await found.call(None, json.dumps(given))).status == "ok"
    for wrong in ({"n": 0}, {"pair": [1, 1]}, {"pair": ["Oslo", 1, 2]}):
        assert (await found.call(None, json.dumps(wrong))).status == "invalid_args"


async def test_a_schema_that_names_another_draft_keeps_its_meaning() -> None:
    """In draft 7, the list form of `items` is valid."""
    found = tool(**{"$schema": "http://json-schema.org/draft-07/schema#"}, properties={"a": PAIR})
    assert found.json_schema["properties"]["a"] == PAIR
    assert (await found.call(None, '{"a": ["Oslo", 1]}')).status == "ok"
    assert (await found.call(None, '{"a": [1, 1]}')).status == "invalid_args"


async def test_a_text_whose_match_is_aborted_is_refused_with_the_reason() -> None:
    """The model cannot act on the message of the engine for patterns."""
    found = tool(properties={"a": {"type": "string", "pattern": r"^(a*)*\1b$"}})
    outcome = await found.call(None, json.dumps({"a": "a" * 30}))
    assert outcome.output == (
        "Invalid arguments for tool 'find':\n"
        "- a: expected a string that its pattern can check in limited time, "
        f'got "{"a" * 30}"'
    )
