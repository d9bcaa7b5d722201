"""Arguments on their way back: only what the projection put in is taken out."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agents_tools.wire.decode import decoder, unchanged

STRING = {"type": "string"}
MAYBE = {"type": ["string", "null"]}


def of(required: tuple[str, ...] = (), **properties: Any) -> dict[str, Any]:
    """Make an object schema."""
    return {"type": "object", "properties": properties, "required": list(required)}


def decoded(schema: dict[str, Any], arguments: Any) -> Any:
    """Decode arguments with the nulls of the strict dialect taken out."""
    return json.loads(decoder(schema, nulls=True)(json.dumps(arguments)))


def test_a_projection_that_adds_nothing_needs_no_decoding() -> None:
    """The loop may skip the step, and the text is not even parsed."""
    assert decoder(of(a=STRING)) is unchanged
    text = '{"a": null}'
    assert unchanged(text) is text


def test_a_null_that_stands_for_nothing_is_removed() -> None:
    """The function's own default then applies."""
    assert decoded(of(("a",), a=STRING, b=STRING), {"a": "x", "b": None}) == {"a": "x"}


def test_a_null_of_the_tools_own_stays() -> None:
    """`None` is a value of that parameter and may differ from its default."""
    assert decoded(of(a=MAYBE, b=STRING), {"a": None, "b": None}) == {"a": None}


def test_a_null_for_a_required_parameter_stays() -> None:
    """It is the model's mistake, and validation must say so rather than call the key missing."""
    assert decoded(of(("a",), a=STRING), {"a": None}) == {"a": None}


def test_nulls_are_removed_at_any_depth() -> None:
    """Nested models have optional fields of their own."""
    inner = of(("x",), x=STRING, y=STRING)
    schema = of(
        one=inner,
        many={"type": "array", "items": inner},
        pair={"type": "array", "prefixItems": [inner, MAYBE], "items": False},
        both={"allOf": [inner, of(z=STRING)]},
    )
    sent = {"x": "1", "y": None}
    arguments = {
        "one": sent,
        "many": [sent, sent],
        "pair": [sent, None],
        "both": {**sent, "z": None},
    }
    kept = {"x": "1"}
    assert decoded(schema, arguments) == {
        "one": kept,
        "many": [kept, kept],
        "pair": [kept, None],
        "both": kept,
    }


def test_nulls_are_removed_through_recursive_references() -> None:
    """A tree is as deep as the model makes it."""
    node = of(("value",), value=STRING, note=STRING, next={"$ref": "#/$defs/Node"})
    schema = {**of(root={"$ref": "#/$defs/Node"}), "$defs": {"Node": node}}
    sent = {"value": "a", "note": None, "next": {"value": "b", "note": "n", "next": None}}
    assert decoded(schema, {"root": sent}) == {
        "root": {"value": "a", "next": {"value": "b", "note": "n"}}
    }


def test_the_alternative_is_found_by_its_tag() -> None:
    """A null that is ours in one model of a union can be the tool's own in another."""
    schema = of(
        ("x",),
        x={
            "anyOf": [
                of(("kind",), kind={"const": "a"}, note=STRING),
                of(("kind",), kind={"const": "b"}, note=MAYBE),
            ]
        },
    )
    assert decoded(schema, {"x": {"kind": "a", "note": None}}) == {"x": {"kind": "a"}}
    assert decoded(schema, {"x": {"kind": "b", "note": None}}) == {"x": {"kind": "b", "note": None}}


@pytest.mark.parametrize(
    ("one", "other", "sent", "kept"),
    [
        (
            of(("a",), a=STRING, n=STRING),
            of(("b",), b=STRING, n=MAYBE),
            {"a": "1", "n": None},
            {"a": "1"},
        ),
        (
            of(("v",), v={"type": "integer"}, n=STRING),
            of(("v",), v={"type": "number"}, n=MAYBE),
            {"v": 1.5, "n": None},
            {"v": 1.5, "n": None},
        ),
        (
            of(("v",), v={"type": "integer", "maximum": 9}, n=MAYBE),
            of(("v",), v={"type": "integer", "minimum": 10}, n=STRING),
            {"v": 10, "n": None},
            {"v": 10},
        ),
        (
            of(("v",), v={"enum": [True]}, n=MAYBE),
            of(("v",), v={"enum": [1]}, n=STRING),
            {"v": 1, "n": None},
            {"v": 1},
        ),
        (of(n=STRING), of(n=MAYBE), {"n": None}, {"n": None}),
    ],
)
def test_the_alternative_is_found_by_its_shape(one: Any, other: Any, sent: Any, kept: Any) -> None:
    """Unions without a tag are told apart as a validator would; in doubt the null is the tool's own."""
    assert decoded(of(x={"anyOf": [one, other]}), {"x": sent}) == {"x": kept}


def test_text_is_given_back_as_it_came_where_nothing_is_removed() -> None:
    """Validation reports places in the text that the model wrote."""
    decode = decoder(of(a=STRING, b=MAYBE), nulls=True)
    for text in ('{"a":"x"}', '{ "b": null }', '{"a": "null"}'):
        assert decode(text) is text


@pytest.mark.parametrize(
    "text",
    ["", "null", "[null]", '"null"', '{"a": null', '{"a": null, "a": "x"}', '{"a": null} null'],
)
def test_what_is_not_in_order_is_left_to_validation(text: str) -> None:
    """Decoding must not repair what validation has to reject, such as a key that occurs twice."""
    assert decoder(of(a=STRING), nulls=True)(text) is text


def test_numbers_and_text_keep_their_exact_form() -> None:
    """A decimal must not pass through a float, and a lone surrogate must still be seen."""
    decode = decoder(of(a=STRING, b={}, c={}), nulls=True)
    big = "9" * 5_000
    text = f'{{"a": null, "b": [0.10000000000000000001, {big}, 1e400, NaN, -0], "c": "\\ud800é"}}'
    out = decode(text)
    assert out == f'{{"b":[0.10000000000000000001,{big},1e400,NaN,-0],"c":"\\ud800\\u00e9"}}'


def test_unions_within_unions_take_bounded_time() -> None:
    """A model's nested arguments must not make the search for alternatives explode."""
    node = of(("l", "r"), l={"$ref": "#/$defs/E"}, r={"$ref": "#/$defs/E"}, n=STRING)
    other = of(("l", "r"), l={"$ref": "#/$defs/E"}, r={"$ref": "#/$defs/E"}, n=STRING)
    leaf = of(("v",), v=STRING, n=STRING)
    schema = {
        **of(x={"$ref": "#/$defs/E"}),
        "$defs": {"E": {"anyOf": [node, other, leaf]}},
    }
    value: Any = {"v": "x", "n": None}
    for _ in range(60):
        value = {"l": value, "r": {"v": "y", "n": None}, "n": None}
    out = decoded(schema, {"x": value})
    assert "null" not in json.dumps(out)


def test_arguments_nested_without_end_are_left_to_validation() -> None:
    """The limits of a call are checked there; here nothing may break."""
    text = '{"a": null, "b": ' + "[" * 100_000 + "]" * 100_000 + "}"
    assert decoder(of(a=STRING, b={}), nulls=True)(text) is text


def test_names_are_given_back() -> None:
    """A parameter whose name the provider does not take was renamed on the wire."""
    decode = decoder(of(größe=STRING, b=STRING), names={"groe": "größe"})
    assert json.loads(decode('{"groe": "1", "b": null}')) == {"größe": "1", "b": None}
    text = '{"b": "1"}'
    assert decode(text) is text


def test_names_and_nulls_are_given_back_together() -> None:
    """Both can meet in one parameter."""
    decode = decoder(of(größe=STRING, b=STRING), nulls=True, names={"groe": "größe"})
    assert json.loads(decode('{"groe": null, "b": "1"}')) == {"b": "1"}


def test_a_renamed_name_given_twice_is_left_to_validation() -> None:
    """Once renamed and once in its own form: one of them would be lost."""
    decode = decoder(of(größe=STRING), names={"groe": "größe"})
    text = '{"groe": "1", "größe": "2"}'
    assert decode(text) is text
