"""Argument validation: accepted forms and the error messages for the model."""

from __future__ import annotations

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field
from typing_extensions import TypedDict

from agents_tools import ModelBehaviorError, function_tool
from agents_tools.text import JsonLimits, configure_json_limits


class Location(TypedDict):
    lat: float
    long: float


@dataclass
class Window:
    start: int
    days: int = 7


class Filter(BaseModel):
    field: str
    limit: int = 10


@function_tool
def probe(
    a: int,
    b: str,
    items: list[dict[str, Any]] | None = None,
    loc: Location | None = None,
    ratio: float = 0.5,
    flag: bool = False,
    mode: Literal["fast", "slow"] = "fast",
    window: Window | None = None,
    where: Filter | None = None,
    count: Annotated[int, Field(ge=1, le=100)] = 1,
    anything: Any = None,
) -> dict[str, Any]:
    """Return the arguments."""
    return dict(locals())


@function_tool
def nothing_needed(limit: int = 10, name: str = "x") -> list[Any]:
    return [limit, name]


def refused(args_json: Any) -> ModelBehaviorError:
    """Call the probe with arguments that it must refuse, and return the error."""
    with pytest.raises(ModelBehaviorError) as caught:
        probe.invoke_sync(args_json)
    assert len(str(caught.value)) <= 2_048
    return caught.value


def accepted(**arguments: Any) -> dict[str, Any]:
    return probe.invoke_sync(json.dumps({"a": 1, "b": "x", **arguments}))


@pytest.mark.parametrize("text", ["", "  \n", "null", "{}", " { } ", " null "])
def test_empty_arguments_have_many_accepted_forms_if_none_is_required(text: str) -> None:
    """Models send all of these for a call without arguments."""
    assert nothing_needed.invoke_sync(text) == [10, "x"]


@pytest.mark.parametrize("text", ["[]", "0", "true", '""', '"x"', "[1]"])
def test_arguments_that_are_not_an_object_are_refused_even_if_none_is_required(text: str) -> None:
    """Otherwise any nonsense would call the tool with its defaults."""
    with pytest.raises(ModelBehaviorError, match="JSON object"):
        nothing_needed.invoke_sync(text)


def test_an_object_in_a_string_is_unwrapped() -> None:
    """Models sometimes encode their arguments twice; decoding is unambiguous."""
    assert probe.invoke_sync(json.dumps(json.dumps({"a": 1, "b": "x"})))["a"] == 1


def test_json_text_for_a_list_or_an_object_is_decoded() -> None:
    """The most common mistake of models with nested arguments."""
    found = accepted(items='[{"k": 1}]', loc='{"lat": 1, "long": 2}', where='{"field": "f"}')
    assert found["items"] == [{"k": 1}]
    assert found["loc"] == {"lat": 1.0, "long": 2.0}
    assert found["where"] == Filter(field="f")


def test_json_text_for_a_string_stays_text() -> None:
    """The schema asks for a string."""
    assert accepted(b='{"x": 1}')["b"] == '{"x": 1}'


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"a": "3"}, 3),
        ({"a": " 42 "}, 42),
        ({"a": 3.0}, 3),
        ({"a": "3.0"}, 3),
        ({"a": -7}, -7),
        ({"a": 10**30}, 10**30),
    ],
    ids=repr,
)
def test_integers_can_be_numeric_strings_and_whole_floats(
    value: dict[str, Any], expected: int
) -> None:
    """Models send them, and the conversion is exact."""
    found = accepted(**value)["a"]
    assert found == expected
    assert type(found) is int


@pytest.mark.parametrize(
    "value", [True, False, 3.5, "x", "", None, [], {}, "3.5", "true"], ids=repr
)
def test_other_values_for_an_integer_are_refused(value: Any) -> None:
    """A boolean is not a number, although it is an `int` in Python."""
    error = refused(json.dumps({"a": value, "b": "x"}))
    assert error.problems[0].path == ("a",)


@pytest.mark.parametrize("text", ["NaN", "Infinity", "-Infinity", "1e400", "true", '"nan"', '"x"'])
@pytest.mark.parametrize("name", ["ratio", "anything"])
def test_numbers_outside_json_are_refused(name: str, text: str) -> None:
    """They could not be written as JSON again."""
    if name == "anything" and text in {"true", '"nan"', '"x"'}:
        assert probe.invoke_sync(f'{{"a": 1, "b": "x", "anything": {text}}}')["a"] == 1
        return
    error = refused(f'{{"a": 1, "b": "x", "{name}": {text}}}')
    assert error.problems[0].path == (name,)


@pytest.mark.parametrize(
    ("value", "expected"), [(True, True), ("true", True), ("False", False), ("false", False)]
)
def test_booleans_can_be_quoted(value: Any, expected: bool) -> None:
    """Models quote them."""
    assert accepted(flag=value)["flag"] is expected


@pytest.mark.parametrize("value", [0, 1, "yes", "on", "1", "t", 1.0, []], ids=repr)
def test_other_values_for_a_boolean_are_refused(value: Any) -> None:
    """`yes` and `1` are not in the schema."""
    assert refused(json.dumps({"a": 1, "b": "x", "flag": value})).problems[0].path == ("flag",)


def test_null_selects_the_default_if_the_type_does_not_accept_it() -> None:
    """Strict modes of providers send null for omitted arguments."""
    found = accepted(
        ratio=None, flag=None, mode=None, count=None, window={"start": 1, "days": None}
    )
    assert (found["ratio"], found["flag"], found["mode"], found["count"]) == (0.5, False, "fast", 1)
    assert found["window"] == Window(1, 7)
    assert accepted(items=None)["items"] is None


def test_a_mutable_default_is_copied_for_each_call() -> None:
    """A tool that changes its default must not change the next call."""

    @function_tool
    def tool(a: list[int] = [], b: dict[str, int] = {}) -> int:  # noqa: B006 - the subject
        a.append(1)
        b["k"] = len(a)
        return len(a)

    assert tool.invoke_sync({}) == 1
    assert tool.invoke_sync({"a": None, "b": None}) == 1
    assert tool.invoke_sync({"a": [5]}) == 2


def test_an_immutable_default_itself_is_passed() -> None:
    """Some functions detect an omitted argument by identity."""
    marker = (1, 2)

    @function_tool
    def tool(a: tuple[int, ...] = marker, b: int = 1) -> bool:
        return a is marker

    assert tool.invoke_sync({}) is True
    assert tool.invoke_sync({"a": None}) is True
    assert tool.invoke_sync({"a": []}) is False


def test_the_rules_apply_inside_containers_typed_dicts_and_dataclasses() -> None:
    """Only a pydantic model has its own rules."""
    assert refused('{"a":1,"b":"x","loc":{"lat":true,"long":1}}').problems[0].path == ("loc", "lat")
    assert refused('{"a":1,"b":"x","loc":{"lat":1,"long":1,"alt":1}}').problems[0].path == (
        "loc",
        "alt",
    )
    assert refused('{"a":1,"b":"x","window":{"start":true}}').problems[0].path == (
        "window",
        "start",
    )
    assert refused('{"a":1,"b":"x","window":{"start":1,"dayz":1}}').problems[0].expected == (
        "did you mean 'days'?"
    )
    assert accepted(where={"field": "f", "limit": True})["where"].limit == 1


@pytest.mark.parametrize(
    "text",
    [
        '{"a": 1, "b": "x", "a": 2}',
        '{"a": 1, "b": "x", "\\u0061": 2}',
        '{"a": 1, "b": "x", "loc": {"lat": 1, "long": 2, "lat": 3}}',
        '{"a": 1, "b": "x", "items": [{"k": 1, "k": 2}]}',
        '{"a": 1, "b": "x", "anything": {"deep": [{"k": 1, "k": 2}]}}',
        '{"a": 1, "b": "x", "where": {"field": "f", "field": "g"}}',
        '{"a": 1, "b": "x", "window": {"start": 1, "start": 2}}',
        '{"a": 1, "b": "x", "ratio": 0.5, "ratio": 0.5}',
        '{"a": 1, "b": "a:b", "b": "c"}',
        '{"a": 1, "b": "\\u003a", "a": 2}',
        '{"a": 1, "b": "x", "anything": {"k" : "\\u003a", "k" : 2}}',
    ],
)
def test_a_duplicate_key_is_refused(text: str) -> None:
    """Silently using the last value could run something that was never approved."""
    error = refused(text)
    assert error.problems[0].kind == "duplicate_key"
    assert "twice" in str(error)


def test_colons_in_text_are_not_keys() -> None:
    """Times and URLs contain many."""
    assert accepted(b="https://x.org:80/a:b:c")["b"] == "https://x.org:80/a:b:c"


ODDITIES = {
    "byte order mark": ("\ufeff" + '{"a":1,"b":"x"}', "byte order mark"),
    "code fence": ('```json\n{"a":1,"b":"x"}\n```', "code fence"),
    "trailing text": ('{"a":1,"b":"x"} ok?', "follows after"),
    "two objects": ('{"a":1,"b":"x"}{"a":2}', "follows after"),
    "truncated": ('{"a":1,"b":"x', "ends too early"),
    "truncated key": ('{"a":1,', "ends too early"),
    "single quotes": ("{'a':1,'b':'x'}", "not valid JSON"),
    "trailing comma": ('{"a":1,"b":"x",}', "not valid JSON"),
    "python words": ('{"a":1,"b":None}', "not valid JSON"),
    "control character": ('{"a":1,"b":"x\ny"}', "not valid JSON"),
    "escaped half of a pair": ('{"a":1,"b":"\\ud800"}', "surrogate"),
    "raw half of a pair": ('{"a":1,"b":"\ud800"}', "surrogate"),
    "long integer": ('{"a":' + "9" * 5_000 + ',"b":"x"}', "more than 4,300 digits"),
    "long float": ('{"a":1,"b":"x","ratio":0.' + "9" * 5_000 + "}", "more than 4,300 digits"),
    "deep arrays": (
        '{"a":1,"b":"x","anything":' + "[" * 100_000 + "]" * 100_000 + "}",
        "64 levels",
    ),
    "deep objects": ('{"a":1,"b":"x","anything":' + '{"k":' * 70 + "1" + "}" * 71, "64 levels"),
    "unclosed depth": ("[" * 100_000, "64 levels"),
    "too long": ('{"a":1,"b":"' + "x" * 10_000_000 + '"}', "1,048,576"),
    "too many values": ('{"a":1,"b":"x","anything":[' + "1," * 150_000 + "1]}", "100,000"),
}


@pytest.mark.parametrize("name", ODDITIES)
def test_every_kind_of_invalid_json_has_its_own_reason(name: str) -> None:
    """The reason helps a model to send valid JSON the next time."""
    text, words = ODDITIES[name]
    assert words in str(refused(text))


def test_arguments_that_are_not_text_are_refused_or_read() -> None:
    """A loop can pass on the parsed arguments of its provider."""

    async def call(value: Any) -> Any:
        return await nothing_needed.on_invoke_tool(None, value)

    assert asyncio.run(call(None)) == '[10,"x"]'
    assert asyncio.run(call(b'{"limit": 3}')) == '[3,"x"]'
    assert "not UTF-8" in asyncio.run(call(b"\xff"))
    assert "Python dict" in asyncio.run(call({"limit": 3}))


def test_the_limits_can_be_set() -> None:
    """Some applications send larger arguments than others."""
    before = configure_json_limits(JsonLimits(size=200))
    try:
        assert "at most 200" in str(refused('{"a":1,"b":"' + "x" * 300 + '"}'))
    finally:
        configure_json_limits(before)


def test_an_error_lists_each_fault_once_with_path_expectation_and_value() -> None:
    """This text is all a model has to correct the call."""
    error = refused(
        json.dumps(
            {
                "a": "ten",
                "items": [{"ok": 1}, 5],
                "loc": {"lat": "north", "lng": 2},
                "mode": "quick",
                "cuont": 5,
                "count": 500,
                "where": {"limit": "many"},
            }
        )
    )
    assert str(error) == snapshot("""\
Invalid arguments for tool 'probe':
- a: expected an integer, got "ten"
- b: missing, expected a string (required)
- items[1]: expected an object, got 5
- loc.lat: expected a number, got "north"
- loc.long: missing, expected a number (required)
- loc.lng: unknown, did you mean 'long'?
- mode: expected one of "fast", "slow", got "quick"
- where.field: missing, expected a string (required)
- where.limit: expected an integer, got "many"
- count: expected a number less than or equal to 100, got 500
and 1 more\
""")


def test_at_most_ten_faults_are_listed() -> None:
    """A long error costs tokens and hides the important part."""
    error = refused(json.dumps({"a": 1, "b": "x", **{f"k{i}": 1 for i in range(20_000)}}))
    assert "and 19,990 more" in str(error)
    error = refused(json.dumps({"a": 1, "b": "x", "items": list(range(20_000))}))
    assert "and 19,990 more" in str(error)


def test_union_arms_are_reported_as_one_fault() -> None:
    """The names of the arms are internals of pydantic."""

    @function_tool
    def tool(value: int | bool | list[int], other: int | str = 1) -> None: ...

    with pytest.raises(ModelBehaviorError) as caught:
        tool.invoke_sync({"value": "x", "other": [1]})
    assert str(caught.value) == snapshot("""\
Invalid arguments for tool 'tool':
- value: expected an integer or true or false or an array, got "x"
- other: expected an integer or a string, got [1]\
""")


def test_the_message_of_a_custom_validator_reaches_the_model() -> None:
    """`ValueError` in a validator is a message for the model; any other error is the tool's."""
    from pydantic import AfterValidator

    def even(value: int) -> int:
        if value % 2:
            raise ValueError("only even numbers work")
        return value

    def broken(value: int) -> int:
        raise ZeroDivisionError

    @function_tool
    def tool(
        x: Annotated[int, AfterValidator(even)] = 2, y: Annotated[int, AfterValidator(broken)] = 0
    ) -> int:
        return x

    with pytest.raises(
        ModelBehaviorError, match=r"x: expected another value \(only even numbers work\), got 3"
    ):
        tool.invoke_sync({"x": 3})
    with pytest.raises(ZeroDivisionError):
        tool.invoke_sync({"y": 3})


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(
    st.text()
    | json_values.map(json.dumps)
    | st.fixed_dictionaries(
        {},
        optional=dict.fromkeys(
            ["a", "b", "items", "loc", "ratio", "flag", "mode", "window", "where", "count", "zz"],
            json_values,
        ),
    ).map(json.dumps)
    | st.binary().map(lambda raw: raw.decode("latin-1"))
)
def test_any_text_is_accepted_or_refused_with_a_path(text: str) -> None:
    """No input can cause another kind of exception, or a long message."""
    outcome = asyncio.run(probe.call(None, text))
    assert outcome.status in {"ok", "invalid_args"}
    if isinstance(outcome.error, ModelBehaviorError):
        assert outcome.error.problems
        assert len(str(outcome.error)) <= 2_048


@given(
    a=st.integers(-(2**70), 2**70),
    b=st.text(st.characters(exclude_categories=["Cs"])),
    ratio=st.floats(allow_nan=False, allow_infinity=False),
    items=st.lists(
        st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), st.integers(-9, 9))
    ),
)
def test_json_written_by_python_is_read_back_unchanged(
    a: int, b: str, ratio: float, items: list[dict[str, int]]
) -> None:
    found = probe.invoke_sync(json.dumps({"a": a, "b": b, "ratio": ratio, "items": items}))
    assert (found["a"], found["b"], found["items"]) == (a, b, items)
    assert math.isclose(found["ratio"], ratio) or found["ratio"] == ratio
