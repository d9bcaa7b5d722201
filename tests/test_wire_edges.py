"""What goes to a provider, at the edges of what a schema may say, and what comes back."""

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


def of(*required: str, **properties: Any) -> dict[str, Any]:
    """Make the schema of an object."""
    return {"type": "object", "properties": properties, "required": list(required)}


def sent(schema: dict[str, Any]) -> dict[str, Any]:
    """Give the parameters of a tool as Anthropic gets them, without its strict mode."""
    return to_anthropic(tool("t", schema, strict=False))["input_schema"]


# -- the root ----------------------------------------------------------------------------------


def test_an_object_or_null_is_an_object_where_a_call_has_arguments() -> None:
    """A call always brings an object; only what can never be one is refused."""
    maybe = {**of("a", a=TEXT), "type": ["object", "null"]}
    assert sent({"$ref": "#/$defs/A", "$defs": {"A": maybe}})["type"] == "object"
    with pytest.raises(UserError, match="must be one object"):
        sent({"$ref": "#/$defs/A", "$defs": {"A": {"type": ["array", "null"], "items": TEXT}}})


def test_a_choice_is_told_only_where_there_is_one() -> None:
    """Two forms that ask for the same parameter leave nothing to choose."""
    arms = [of("a", a=TEXT), of("a", a={"type": "integer"})]
    assert "description" not in sent({"type": "object", "anyOf": arms})
    arms = [of("a", a=TEXT), of("b", b=TEXT)]
    assert sent({"type": "object", "anyOf": arms})["description"] == "(pass a or b)"


def test_names_that_become_the_same_are_counted() -> None:
    """The model sees what is the second, and what the third."""
    schema = of(**{"a[b": TEXT, "a]b": TEXT, "a(b": TEXT})
    projection = project(tool("t", schema, strict=False), "anthropic")
    assert list(projection.wire["input_schema"]["properties"]) == ["a_b", "a_b_2", "a_b_3"]
    back = projection.decode('{"a_b": "1", "a_b_2": "2", "a_b_3": "3"}')
    assert json.loads(back) == {"a[b": "1", "a]b": "2", "a(b": "3"}


# -- options and warnings ----------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"key", bytearray(b"key")])
def test_bytes_are_no_option(value: Any) -> None:
    """They would go out as a list of numbers."""
    with pytest.raises(UserError, match="is invalid: expected JSON values, got byte"):
        to_anthropic(tool("t", of(), metadata={"anthropic": {"cache_control": value}}))


def test_a_tool_that_cannot_be_strict_is_told_where_it_is_exported() -> None:
    """A warning that points into the package helps nobody."""
    made = tool("tag", of("tags", tags={"type": "object", "additionalProperties": TEXT}))
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
def test_references_are_written_out_as_asked(export: Any) -> None:
    """Who asks for nothing gets what the models of that provider follow."""
    shared = of(**{f"field_{number}": TEXT for number in range(9)})
    point = {"$ref": "#/$defs/Shared"}
    made = tool("t", {**of("x", "y", x=point, y=point), "$defs": {"Shared": shared}}, strict=False)

    def refers(**options: Any) -> bool:
        return "$ref" in json.dumps(export(made, **options))

    assert refers() is not WRITTEN_OUT[export]
    assert refers(inline_refs=False)
    assert not refers(inline_refs=True)


@pytest.mark.parametrize(
    ("name", "title", "said"),
    [
        ("Box_int_", "Box[int]", False),
        ("shop__models__Box", "Box", False),
        ("Box-Input", "Box", False),
        ("Box", "Box", False),
        ("Box", "Cardboard", True),
    ],
)
def test_a_title_that_repeats_the_name_of_a_type_is_left_out(
    name: str, title: str, said: bool
) -> None:
    """Also where the name was made from it to be one of its kind."""
    ref = {"$ref": f"#/$defs/{name}"}
    schema = {**of(x=ref, y=ref), "$defs": {name: {**of(a=TEXT, b=TEXT, c=TEXT), "title": title}}}
    assert ("title" in sent(schema)["$defs"][name]) is said


def test_a_description_for_openai_takes_the_place_of_the_tools_own() -> None:
    """Over chat completions it stands inside the function, not beside it."""
    made = tool("t", of(), metadata={"openai": {"description": "For you."}})
    wire = to_openai_chat(made)
    assert wire["function"]["description"] == "For you."
    assert "description" not in wire


# -- names of tools ----------------------------------------------------------------------------


def test_gemini_takes_names_that_start_with_an_underscore() -> None:
    """Only the first sign matters: digits may follow, and no digit may lead."""
    for name in ("_t", "t1", "a"):
        assert to_gemini(tool(name, of()))["name"] == name
    for name in ("1t", "-t"):
        with pytest.raises(UserError, match="expected a letter or an underscore first"):
            to_gemini(tool(name, of()))


def test_gemini_gets_the_schema_of_a_tool_that_takes_any_key() -> None:
    """No listed parameter is not the same as no parameter."""
    free = {"type": "object", "additionalProperties": TEXT}
    assert to_gemini(tool("t", free))["parametersJsonSchema"]["additionalProperties"] == TEXT
    assert "parametersJsonSchema" not in to_gemini(tool("t", of()))


@pytest.mark.parametrize("name", [None, ""])
def test_a_tool_without_a_name_is_called_by_its_kind(name: str | None) -> None:
    """The message says which one is meant, as well as it can."""

    class Nameless:
        pass

    made: Any = Nameless()
    made.name = name
    with pytest.raises(UserError, match=r"Tool 'Nameless' \(Nameless\) runs at its provider"):
        to_openai_chat(made)


# -- arguments on their way back ---------------------------------------------------------------

MAYBE: dict[str, Any] = {"type": ["string", "null"]}
NUMBER: dict[str, Any] = {"type": "integer"}


def array(*first: Any, **more: Any) -> dict[str, Any]:
    """Make the schema of an array."""
    return {"type": "array", **({"prefixItems": list(first)} if first else {}), **more}


def decoded(schema: dict[str, Any], arguments: Any) -> Any:
    """Decode arguments with the nulls of the strict dialect taken out."""
    return json.loads(decoder(schema, nulls=True)(json.dumps(arguments)))


@pytest.mark.parametrize(
    ("one", "other", "value", "kept"),
    [
        # arrays are told apart by what is in them
        (
            array(items=of("v", v=NUMBER, n=TEXT)),
            array(items=of("v", v=TEXT, n=MAYBE)),
            [{"v": "a", "n": None}],
            [{"v": "a", "n": None}],
        ),
        (
            array(items=of("v", v=TEXT, n=MAYBE)),
            array(items=of("v", v=NUMBER, n=TEXT)),
            [{"v": 1, "n": None}],
            [{"v": 1}],
        ),
        # what follows the items that are described may be anything
        (array(of(n=TEXT)), NUMBER, [{"n": None}, 5], [{}, 5]),
        # what is declared beside a schema is no foreign key
        (
            {"allOf": [of(a=TEXT, n=TEXT), of(b=TEXT)]},
            NUMBER,
            {"a": "1", "n": None, "b": "2"},
            {"a": "1", "b": "2"},
        ),
        (
            {"allOf": [{"$ref": "#/$defs/A"}, of(b=TEXT)]},
            NUMBER,
            {"a": "1", "n": None, "b": "2"},
            {"a": "1", "b": "2"},
        ),
        # alternatives within alternatives
        (
            {"anyOf": [of("v", v=NUMBER, n=MAYBE)]},
            of("v", v=TEXT, n=TEXT),
            {"v": "a", "n": None},
            {"v": "a"},
        ),
    ],
)
def test_the_alternative_is_the_one_that_takes_the_value(
    one: Any, other: Any, value: Any, kept: Any
) -> None:
    """Whether a null is the tool's own depends on it, so it is looked for at any depth."""
    schema = {**of(x={"anyOf": [one, other]}), "$defs": {"A": of(a=TEXT, n=TEXT)}}
    assert decoded(schema, {"x": value}) == {"x": kept}


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
def test_an_alternative_is_told_from_another_by_one_value(
    fits: Any, fails: Any, value: Any
) -> None:
    """In either order: only the one that fits says which of the two nulls is the tool's own."""
    right, wrong = of("v", v=fits, n=MAYBE, k=TEXT), of("v", v=fails, n=TEXT, k=MAYBE)
    for arms in ([right, wrong], [wrong, right]):
        given = {"v": value, "n": None, "k": None}
        back = decoded(of(x={"anyOf": arms}), {"x": given})
        assert back == {"x": {"v": value, "n": None}}


# -- what comes back, for MCP ------------------------------------------------------------------


@pytest.mark.parametrize("version", [None, "2025-06-18", "2026-07-28"])
def test_only_what_is_no_object_is_wrapped(version: str | None) -> None:
    """Clients read the fields of an object by their names."""
    output = of("a", a=TEXT)
    named = {"$ref": "#/$defs/A", "$defs": {"A": output}}
    for schema in (output, named):
        wire = to_mcp(tool("t", of(), output=schema), protocol_version=version)
        assert list(wire["outputSchema"]["properties"]) == ["a"]
        assert output_is_wrapped(schema, version) is False
    assert output_is_wrapped(None, version) is False
    assert output_is_wrapped(TEXT, version) is (version != "2026-07-28")


def test_what_is_not_said_of_a_tool_is_left_out() -> None:
    """A title of null is refused by clients, and the whole list with it."""
    wire = to_mcp(tool("t", of(), annotations=ToolAnnotations(readOnlyHint=True)))
    assert wire["annotations"]["readOnlyHint"] is True
    assert "title" not in wire["annotations"]


def test_fixed_values_keep_their_type_in_an_output() -> None:
    """Some clients look at `type` alone."""
    output = of("a", a={"type": "string", "enum": ["x", "y"]})
    assert to_mcp(tool("t", of(), output=output))["outputSchema"]["properties"] == {
        "a": {"type": "string", "enum": ["x", "y"]}
    }


# -- the short form ----------------------------------------------------------------------------


def test_null_is_left_out_as_a_default_only() -> None:
    """As a fixed value it is the one value there is."""
    fixed = {"const": None, "default": None}
    assert sent(of("a", a=fixed))["properties"]["a"] == {"const": None}


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
def test_alternatives_of_several_types(arms: Any, short: Any) -> None:
    """Each type is named once."""
    assert sent(of("a", a={"anyOf": arms}))["properties"]["a"] == short


def test_a_title_that_is_no_text_is_passed_on() -> None:
    """Servers send such things, and no provider minds: the tool is not lost for it."""
    assert sent(of("a", a={"type": "string", "title": 5}))["properties"]["a"]["title"] == 5


def test_a_recursive_root_is_written_out_as_often_as_any_type() -> None:
    """Once within itself; then the model is told that it goes on."""
    root = {**of(name=TEXT, inner={"$ref": "#"}), "title": "Tree"}
    inner = to_gemini(tool("t", root, strict=False))["parametersJsonSchema"]["properties"]["inner"]
    again = inner["properties"]["inner"]
    assert inner["properties"]["name"] == TEXT
    assert (again["type"], again.get("properties")) == ("object", None)
    assert "with the same structure as its parent" in again["description"]
