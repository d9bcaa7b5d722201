"""Test the edges of the schemas sent to providers and of the arguments they return."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from agents_tools import (
    ToolAnnotations,
    to_anthropic,
    to_bedrock,
    to_gemini,
    to_mcp,
    to_openai_chat,
    to_openai_responses,
)
from agents_tools.errors import UserError
from agents_tools.schema import StrictFallbackWarning
from agents_tools.wire.decode import decoder
from agents_tools.wire.mcp import output_is_wrapped
from agents_tools.wire.project import project
from tests.wire.tools import tool

TEXT: dict[str, Any] = {"type": "string"}


def object_schema(*required: str, **properties: Any) -> dict[str, Any]:
    """Return the schema of an object."""
    return {"type": "object", "properties": properties, "required": list(required)}


def export_parameters(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a tool as sent to Anthropic, without strict mode."""
    return to_anthropic(tool("t", schema, strict=False))["input_schema"]


# -- the root schema ---------------------------------------------------------------------------


def test_an_optional_object_at_the_root_becomes_an_object() -> None:
    """A call always has an object as arguments; a root that can never be one is refused."""
    maybe = {**object_schema("a", a=TEXT), "type": ["object", "null"]}
    assert export_parameters({"$ref": "#/$defs/A", "$defs": {"A": maybe}})["type"] == "object"
    with pytest.raises(UserError, match="must be one object"):
        export_parameters(
            {"$ref": "#/$defs/A", "$defs": {"A": {"type": ["array", "null"], "items": TEXT}}}
        )


def test_alternatives_are_described_only_if_they_differ() -> None:
    """Two forms with the same required parameter leave no choice."""
    arms = [object_schema("a", a=TEXT), object_schema("a", a={"type": "integer"})]
    assert "description" not in export_parameters({"type": "object", "anyOf": arms})
    arms = [object_schema("a", a=TEXT), object_schema("b", b=TEXT)]
    assert export_parameters({"type": "object", "anyOf": arms})["description"] == "(pass a or b)"


def test_duplicate_names_get_a_number() -> None:
    """The model can then distinguish the second from the third."""
    schema = object_schema(**{"a[b": TEXT, "a]b": TEXT, "a(b": TEXT})
    projection = project(tool("t", schema, strict=False), "anthropic")
    assert list(projection.wire["input_schema"]["properties"]) == ["a_b", "a_b_2", "a_b_3"]
    back = projection.decode('{"a_b": "1", "a_b_2": "2", "a_b_3": "3"}')
    assert json.loads(back) == {"a[b": "1", "a]b": "2", "a(b": "3"}


# -- options and warnings ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"key", bytearray(b"key")])
def test_bytes_are_refused_as_an_option(value: Any) -> None:
    """They would be sent as a list of numbers."""
    with pytest.raises(UserError, match="is invalid: expected JSON values, got byte"):
        to_anthropic(tool("t", object_schema(), metadata={"anthropic": {"cache_control": value}}))


def test_the_warning_about_a_non_strict_tool_points_to_the_export() -> None:
    """A warning that points into the package does not help the user."""
    made = tool("tag", object_schema("tags", tags={"type": "object", "additionalProperties": TEXT}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        to_openai_chat(made)
    [warning] = caught
    assert (warning.category, warning.filename) == (StrictFallbackWarning, __file__)


# -- references --------------------------------------------------------------------------------

WRITTEN_OUT = {
    to_openai_responses: False,
    to_openai_chat: False,
    to_anthropic: False,
    to_gemini: True,
    to_bedrock: True,
    to_mcp: False,
}


@pytest.mark.parametrize("export", WRITTEN_OUT)
def test_references_are_inlined_on_request(export: Any) -> None:
    """The default is the form that the models of that provider follow."""
    shared = object_schema(**{f"field_{number}": TEXT for number in range(9)})
    point = {"$ref": "#/$defs/Shared"}
    made = tool(
        "t",
        {**object_schema("x", "y", x=point, y=point), "$defs": {"Shared": shared}},
        strict=False,
    )

    def has_references(**options: Any) -> bool:
        return "$ref" in json.dumps(export(made, **options))

    assert has_references() is not WRITTEN_OUT[export]
    assert has_references(inline_refs=False)
    assert not has_references(inline_refs=True)


@pytest.mark.parametrize(
    ("name", "title", "is_retained"),
    [
        ("Box_int_", "Box[int]", False),
        ("shop__models__Box", "Box", False),
        ("Box-Input", "Box", False),
        ("Box", "Box", False),
        ("Box", "Cardboard", True),
    ],
)
def test_a_title_that_repeats_the_type_name_is_removed(
    name: str, title: str, is_retained: bool
) -> None:
    """This includes a name that was numbered to make it unique."""
    ref = {"$ref": f"#/$defs/{name}"}
    schema = {
        **object_schema(x=ref, y=ref),
        "$defs": {name: {**object_schema(a=TEXT, b=TEXT, c=TEXT), "title": title}},
    }
    assert ("title" in export_parameters(schema)["$defs"][name]) is is_retained


def test_a_description_for_openai_replaces_that_of_the_tool() -> None:
    """In chat completions it is inside the function object, not next to it."""
    made = tool("t", object_schema(), metadata={"openai": {"description": "For you."}})
    wire = to_openai_chat(made)
    assert wire["function"]["description"] == "For you."
    assert "description" not in wire


# -- names of tools ----------------------------------------------------------------------------


def test_gemini_accepts_names_with_a_leading_underscore() -> None:
    """Digits are allowed after the first character only."""
    for name in ("_t", "t1", "a"):
        assert to_gemini(tool(name, object_schema()))["name"] == name
    for name in ("1t", "-t"):
        with pytest.raises(UserError, match="expected a letter or an underscore first"):
            to_gemini(tool(name, object_schema()))


def test_gemini_gets_the_schema_of_a_tool_with_additional_properties() -> None:
    """A tool without listed parameters is not a tool without parameters."""
    free = {"type": "object", "additionalProperties": TEXT}
    assert to_gemini(tool("t", free))["parametersJsonSchema"]["additionalProperties"] == TEXT
    assert "parametersJsonSchema" not in to_gemini(tool("t", object_schema()))


@pytest.mark.parametrize("name", [None, ""])
def test_a_tool_without_a_name_is_named_by_its_type_in_errors(name: str | None) -> None:

    class Nameless:
        pass

    made: Any = Nameless()
    made.name = name
    with pytest.raises(UserError, match=r"Tool 'Nameless' \(Nameless\) runs at its provider"):
        to_openai_chat(made)


# -- decoding arguments ------------------------------------------------------------------------

MAYBE: dict[str, Any] = {"type": ["string", "null"]}
NUMBER: dict[str, Any] = {"type": "integer"}


def array(*first: Any, **more: Any) -> dict[str, Any]:
    """Return the schema of an array."""
    return {"type": "array", **({"prefixItems": list(first)} if first else {}), **more}


def decode(schema: dict[str, Any], arguments: Any) -> Any:
    """Decode arguments, removing the nulls of the strict dialect."""
    return json.loads(decoder(schema, nulls=True)(json.dumps(arguments)))


@pytest.mark.parametrize(
    ("one", "other", "value", "kept"),
    [
        # arrays are distinguished by their items
        (
            array(items=object_schema("v", v=NUMBER, n=TEXT)),
            array(items=object_schema("v", v=TEXT, n=MAYBE)),
            [{"v": "a", "n": None}],
            [{"v": "a", "n": None}],
        ),
        (
            array(items=object_schema("v", v=TEXT, n=MAYBE)),
            array(items=object_schema("v", v=NUMBER, n=TEXT)),
            [{"v": 1, "n": None}],
            [{"v": 1}],
        ),
        # further items can have any type
        (array(object_schema(n=TEXT)), NUMBER, [{"n": None}, 5], [{}, 5]),
        # a key declared next to a schema is known
        (
            {"allOf": [object_schema(a=TEXT, n=TEXT), object_schema(b=TEXT)]},
            NUMBER,
            {"a": "1", "n": None, "b": "2"},
            {"a": "1", "b": "2"},
        ),
        (
            {"allOf": [{"$ref": "#/$defs/A"}, object_schema(b=TEXT)]},
            NUMBER,
            {"a": "1", "n": None, "b": "2"},
            {"a": "1", "b": "2"},
        ),
        # nested alternatives
        (
            {"anyOf": [object_schema("v", v=NUMBER, n=MAYBE)]},
            object_schema("v", v=TEXT, n=TEXT),
            {"v": "a", "n": None},
            {"v": "a"},
        ),
    ],
)
def test_nulls_are_decoded_with_the_alternative_that_accepts_the_value(
    one: Any, other: Any, value: Any, kept: Any
) -> None:
    """Whether a null belongs to the value depends on the alternative, at any depth."""
    schema = {
        **object_schema(x={"anyOf": [one, other]}),
        "$defs": {"A": object_schema(a=TEXT, n=TEXT)},
    }
    assert decode(schema, {"x": value}) == {"x": kept}


@pytest.mark.parametrize(
    ("fits", "fails", "value"),
    [
        ({"type": "number"}, {"type": "integer"}, 1.5),
        ({"const": 2}, {"const": 1}, 2),
        ({"enum": [1, 2]}, {"enum": [3]}, 2),
        ({"const": False}, {"const": 0}, False),
        ({"minimum": 10}, {"exclusiveMaximum": 10}, 10),
        ({"maximum": 10}, {"exclusiveMinimum": 10}, 10),
        ({"exclusiveMinimum": 9}, {"maximum": 9}, 10),
        ({"exclusiveMaximum": 10}, {"minimum": 10}, 9),
        ({"minLength": 2}, {"maxLength": 1}, "ab"),
        ({"maxLength": 1}, {"minLength": 2}, "a"),
        (array(minItems=1), array(maxItems=0), ["a"]),
        (array(maxItems=0), array(minItems=1), []),
        (array(items=False), array(NUMBER, items=False, minItems=1), []),
        ({"type": ["string", "null"]}, TEXT, None),
    ],
)
def test_one_value_distinguishes_two_alternatives(fits: Any, fails: Any, value: Any) -> None:
    """In either order, only the matching one decides which null belongs to the value."""
    right, wrong = (
        object_schema("v", v=fits, n=MAYBE, k=TEXT),
        object_schema("v", v=fails, n=TEXT, k=MAYBE),
    )
    for arms in ([right, wrong], [wrong, right]):
        given = {"v": value, "n": None, "k": None}
        back = decode(object_schema(x={"anyOf": arms}), {"x": given})
        assert back == {"x": {"v": value, "n": None}}


# -- output schemas for MCP --------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28"])
def test_only_results_that_are_not_objects_are_wrapped(version: str | None) -> None:
    """Clients read the fields of an object by name."""
    output = object_schema("a", a=TEXT)
    named = {"$ref": "#/$defs/A", "$defs": {"A": output}}
    for schema in (output, named):
        wire = to_mcp(tool("t", object_schema(), output=schema), protocol_version=version)
        assert list(wire["outputSchema"]["properties"]) == ["a"]
        assert output_is_wrapped(schema, version) is False
    assert output_is_wrapped(None, version) is False
    assert output_is_wrapped(TEXT, version) is (version != "2026-07-28")


def test_missing_fields_of_a_tool_are_omitted() -> None:
    """Clients refuse a null title and the whole list with it."""
    wire = to_mcp(tool("t", object_schema(), annotations=ToolAnnotations(readOnlyHint=True)))
    assert wire["annotations"]["readOnlyHint"] is True
    assert "title" not in wire["annotations"]


def test_constants_have_a_type_in_an_output_schema() -> None:
    """Some clients only look at `type`."""
    output = object_schema("a", a={"type": "string", "enum": ["x", "y"]})
    assert to_mcp(tool("t", object_schema(), output=output))["outputSchema"]["properties"] == {
        "a": {"type": "string", "enum": ["x", "y"]}
    }


# -- the compact form --------------------------------------------------------------------------


def test_null_is_omitted_only_as_a_default() -> None:
    """As a constant it is the only allowed value."""
    fixed = {"const": None, "default": None}
    assert export_parameters(object_schema("a", a=fixed))["properties"]["a"] == {"const": None}


@pytest.mark.parametrize(
    ("arms", "short"),
    [
        ([{"type": ["string", "null"]}, {"type": "null"}], {"type": ["string", "null"]}),
        (
            [{"type": ["string", "null"]}, {"type": "integer"}],
            {"anyOf": [{"type": ["string", "null"]}, {"type": "integer"}]},
        ),
        ([{"enum": ["x", 1]}, {"type": "null"}], {"enum": ["x", 1, None]}),
    ],
)
def test_alternatives_of_several_types_list_each_type_once(arms: Any, short: Any) -> None:
    assert export_parameters(object_schema("a", a={"anyOf": arms}))["properties"]["a"] == short


def test_a_title_that_is_not_a_string_is_passed_on() -> None:
    """Some servers send one and providers accept it, so the tool stays usable."""
    assert (
        export_parameters(object_schema("a", a={"type": "string", "title": 5}))["properties"]["a"][
            "title"
        ]
        == 5
    )


def test_a_recursive_root_is_expanded_once() -> None:
    """After that the description says that the type repeats."""
    root = {**object_schema(name=TEXT, inner={"$ref": "#"}), "title": "Tree"}
    inner = to_gemini(tool("t", root, strict=False))["parametersJsonSchema"]["properties"]["inner"]
    again = inner["properties"]["inner"]
    assert inner["properties"]["name"] == TEXT
    assert (again["type"], again.get("properties")) == ("object", None)
    assert "with the same structure as its parent" in again["description"]
