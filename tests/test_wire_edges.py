"""What goes to a provider, at the edges of what a schema may say, and what comes back."""

from __future__ import annotations

import json
import warnings
from typing import Any

import pytest

from agents_tools._strict import StrictFallbackWarning
from agents_tools.errors import UserError
from agents_tools.wire._decode import decoder
from agents_tools.wire._project import project
from agents_tools.wire.anthropic import to_anthropic
from agents_tools.wire.openai_chat import to_openai_chat
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
    assert sent({"type": "object", "anyOf": arms})["description"] == "(give a or b)"


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
    with pytest.raises(UserError, match="must hold JSON values only, not byte"):
        to_anthropic(tool("t", of(), metadata={"anthropic": {"cache_control": value}}))


def test_a_tool_that_cannot_be_strict_is_told_where_it_is_exported() -> None:
    """A warning that points into the package helps nobody."""
    made = tool("tag", of("tags", tags={"type": "object", "additionalProperties": TEXT}))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        to_openai_chat(made)
    [warning] = caught
    assert (warning.category, warning.filename) == (StrictFallbackWarning, __file__)


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
