"""Test decoding of arguments: it removes only the changes that the projection made."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_tools.wire.decode import decoder, unchanged

STRING = {"type": "string"}
MAYBE = {"type": ["string", "null"]}


def object_schema(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Return an object schema."""
    return {"type": "object", "properties": properties, "required": list(required)}


def decode_arguments(schema: dict[str, Any], arguments: Any) -> Any:
    """Decode arguments, removing the nulls of the strict dialect."""
    return json.loads(decoder(schema, nulls=True)(json.dumps(arguments)))


def test_a_projection_without_changes_needs_no_decoding() -> None:
    """The runner can skip the step, and the text is not even parsed."""
    assert decoder(object_schema(a=STRING)) is unchanged
    text = '{"a": null}'
    assert unchanged(text) is text


def test_a_null_for_an_omitted_parameter_is_removed() -> None:
    """The default of the function then applies."""
    assert decode_arguments(object_schema(("a",), a=STRING, b=STRING), {"a": "x", "b": None}) == {
        "a": "x"
    }


def test_a_null_that_the_tool_allows_stays() -> None:
    """`None` is a value of that parameter and can differ from its default."""
    assert decode_arguments(object_schema(a=MAYBE, b=STRING), {"a": None, "b": None}) == {"a": None}


def test_a_null_for_a_required_parameter_stays() -> None:
    """It is an error of the model, and validation must report it as null and not as missing."""
    assert decode_arguments(object_schema(("a",), a=STRING), {"a": None}) == {"a": None}


def test_nulls_are_removed_at_any_depth() -> None:
    """Nested models have optional fields, too."""
    inner = object_schema(("x",), x=STRING, y=STRING)
    schema = object_schema(
        one=inner,
        many={"type": "array", "items": inner},
        pair={"type": "array", "prefixItems": [inner, MAYBE], "items": False},
        both={"allOf": [inner, object_schema(z=STRING)]},
    )
    sent = {"x": "1", "y": None}
    arguments = {
        "one": sent,
        "many": [sent, sent],
        "pair": [sent, None],
        "both": {**sent, "z": None},
    }
    kept = {"x": "1"}
    assert decode_arguments(schema, arguments) == {
        "one": kept,
        "many": [kept, kept],
        "pair": [kept, None],
        "both": kept,
    }


def test_nulls_are_removed_through_recursive_references() -> None:
    """The model decides how deep a tree is."""
    node = object_schema(("value",), value=STRING, note=STRING, next={"$ref": "#/$defs/Node"})
    schema = {**object_schema(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}
    sent = {"value": "a", "note": None, "next": {"value": "b", "note": "n", "next": None}}
    assert decode_arguments(schema, {"root": sent}) == {
        "root": {"value": "a", "next": {"value": "b", "note": "n"}}
    }


def test_the_alternative_is_selected_by_its_tag() -> None:
    """A null can be an artifact in one model of a union and a valid value in another."""
    schema = object_schema(
        ("x",),
        x={
            "anyOf": [
                object_schema(("kind",), kind={"const": "a"}, note=STRING),
                object_schema(("kind",), kind={"const": "b"}, note=MAYBE),
            ]
        },
    )
    assert decode_arguments(schema, {"x": {"kind": "a", "note": None}}) == {"x": {"kind": "a"}}
    assert decode_arguments(schema, {"x": {"kind": "b", "note": None}}) == {
        "x": {"kind": "b", "note": None}
    }


@pytest.mark.parametrize(
    ("one", "other", "sent", "kept"),
    [
        (
            object_schema(("a",), a=STRING, n=STRING),
            object_schema(("b",), b=STRING, n=MAYBE),
            {"a": "1", "n": None},
            {"a": "1"},
        ),
        (
            object_schema(("v",), v={"type": "integer"}, n=STRING),
            object_schema(("v",), v={"type": "number"}, n=MAYBE),
            {"v": 1.5, "n": None},
            {"v": 1.5, "n": None},
        ),
        (
            object_schema(("v",), v={"type": "integer", "maximum": 9}, n=MAYBE),
            object_schema(("v",), v={"type": "integer", "minimum": 10}, n=STRING),
            {"v": 10, "n": None},
            {"v": 10},
        ),
        (
            object_schema(("v",), v={"enum": [True]}, n=MAYBE),
            object_schema(("v",), v={"enum": [1]}, n=STRING),
            {"v": 1, "n": None},
            {"v": 1},
        ),
        (object_schema(n=STRING), object_schema(n=MAYBE), {"n": None}, {"n": None}),
    ],
)
def test_the_alternative_is_selected_by_its_shape(
    one: Any, other: Any, sent: Any, kept: Any
) -> None:
    """Untagged alternatives are selected as by a validator; ambiguous nulls stay."""
    assert decode_arguments(object_schema(x={"anyOf": [one, other]}), {"x": sent}) == {"x": kept}


def test_text_is_unchanged_where_nothing_is_removed() -> None:
    """Validation reports positions in the text that the model wrote."""
    decode = decoder(object_schema(a=STRING, b=MAYBE), nulls=True)
    for text in ('{"a":"x"}', '{ "b": null }', '{"a": "null"}'):
        assert decode(text) is text


@pytest.mark.parametrize(
    "text",
    ["", "null", "[null]", '"null"', '{"a": null', '{"a": null, "a": "x"}', '{"a": null} null'],
)
def test_invalid_text_is_left_to_validation(text: str) -> None:
    """Decoding must not repair errors that validation has to reject, such as a duplicate key."""
    assert decoder(object_schema(a=STRING), nulls=True)(text) is text


def test_numbers_and_text_keep_their_exact_form() -> None:
    """A decimal must not pass through a float, and a lone surrogate must be preserved."""
    decode = decoder(object_schema(a=STRING, b={}, c={}), nulls=True)
    big = "9" * 5_000
    text = f'{{"a": null, "b": [0.10000000000000000001, {big}, 1e400, NaN, -0], "c": "\\ud800é"}}'
    out = decode(text)
    assert out == f'{{"b":[0.10000000000000000001,{big},1e400,NaN,-0],"c":"\\ud800\\u00e9"}}'


def test_nested_unions_decode_in_bounded_time() -> None:
    """Deeply nested arguments must not cause an exponential search for alternatives."""
    node = object_schema(("l", "r"), l={"$ref": "#/$defs/E"}, r={"$ref": "#/$defs/E"}, n=STRING)
    other = object_schema(("l", "r"), l={"$ref": "#/$defs/E"}, r={"$ref": "#/$defs/E"}, n=STRING)
    leaf = object_schema(("v",), v=STRING, n=STRING)
    schema = {
        **object_schema(x={"$ref": "#/$defs/E"}),
        "$defs": {"E": {"anyOf": [node, other, leaf]}},
    }
    value: Any = {"v": "x", "n": None}
    for _ in range(60):
        value = {"l": value, "r": {"v": "y", "n": None}, "n": None}
    out = decode_arguments(schema, {"x": value})
    assert "null" not in json.dumps(out)


def test_endlessly_nested_arguments_are_left_to_validation() -> None:
    """Validation enforces the limits of a call; decoding must not crash."""
    text = '{"a": null, "b": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert decoder(object_schema(a=STRING, b={}), nulls=True)(text) is text


def test_original_names_are_restored() -> None:
    """A parameter whose name the provider refuses is renamed in the exported schema."""
    decode = decoder(object_schema(größe=STRING, b=STRING), names={"groe": "größe"})
    assert json.loads(decode('{"groe": "1", "b": null}')) == {"größe": "1", "b": None}
    text = '{"b": "1"}'
    assert decode(text) is text


def test_original_names_and_nulls_are_restored_together() -> None:
    """Both can affect one parameter."""
    decode = decoder(object_schema(größe=STRING, b=STRING), nulls=True, names={"groe": "größe"})
    assert json.loads(decode('{"groe": null, "b": "1"}')) == {"b": "1"}


def test_a_renamed_key_that_occurs_twice_is_left_to_validation() -> None:
    """If the original and the renamed key both occur, one value would be lost."""
    decode = decoder(object_schema(größe=STRING), names={"groe": "größe"})
    text = '{"groe": "1", "größe": "2"}'
    assert decode(text) is text
