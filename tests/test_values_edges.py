"""Test enumerations and literals: accepted values, refused values and their error messages."""

from __future__ import annotations

import enum
import ipaddress
import json
from collections import deque
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, PastDate
from pydantic.dataclasses import dataclass
from typing_extensions import TypedDict

from agents_tools import ModelBehaviorError, UserError, function_tool
from agents_tools.schema import function_schema


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Share(enum.Enum):
    HALF = 0.5
    WHOLE = 1.0


class Flag(enum.Enum):
    ON = True
    OFF = False


class Mixed(enum.Enum):
    NAME = "a"
    NUMBER = 1
    NOTHING = None


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Guessing(enum.Enum):
    ONE = 1

    @classmethod
    def _missing_(cls, value: object) -> Any:
        return cls.ONE if value == "one" else None


CASES: dict[str, tuple[Any, dict[str, Any], list[str]]] = {
    "int enum": (Level, {"1": Level.LOW, '"2"': Level.HIGH, "1.0": Level.LOW}, ["true", "3", "null", '"x"', "1.5"]),
    "float enum": (Share, {"0.5": Share.HALF, "1": Share.WHOLE}, ["true", "2", '"x"', "null"]),
    "bool enum": (Flag, {"true": Flag.ON, "false": Flag.OFF}, ["1", "0", "null"]),
    "mixed enum": (
        Mixed,
        {'"a"': Mixed.NAME, "1": Mixed.NUMBER, "null": Mixed.NOTHING},
        ["true", "2", '"b"', "[1]"],
    ),
    "text enum": (Colour, {'"red"': Colour.RED}, ['"Red"', "1", "true", "null"]),
    "enum that guesses": (Guessing, {"1": Guessing.ONE, '"one"': Guessing.ONE}, ["2", '"two"']),
    "int literal": (Literal[1, 2], {"1": 1, "2.0": 2}, ["true", "3", "null"]),
    "one int literal": (Literal[5], {"5": 5}, ["6", "true"]),
    "bool literal": (Literal[True], {"true": True}, ["1", "false", "null"]),
    "mixed literal": (Literal["a", 1] | None, {'"a"': "a", "1": 1, "null": None}, ["true", "2", '"b"']),
    "literal of members": (Literal[Level.LOW, Level.HIGH], {"1": Level.LOW, "2": Level.HIGH}, ["3", "true"]),
    "literal of text members": (Literal[Colour.RED], {'"red"': Colour.RED}, ['"blue"', "1"]),
    "both": (Literal[Colour.RED, 1], {'"red"': Colour.RED, "1": 1}, ['"blue"', "true", "2"]),
    "address": (ipaddress.IPv4Address, {'"10.0.0.1"': ipaddress.IPv4Address("10.0.0.1")}, ["true", "1.5", "null", '"x"']),
    "network": (ipaddress.IPv4Network, {'"10.0.0.0/8"': ipaddress.IPv4Network("10.0.0.0/8")}, ["false", '"x"']),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("within", ["alone", "list", "map"])
def test_a_fixed_value_must_have_the_exact_json_type(case: str, within: str) -> None:
    """`true` is not 1 and `1` is not `true`, although they are equal in Python."""
    annotation, taken, refused = CASES[case]
    frame = {"alone": "{}", "list": "[{}]", "map": '{{"k": {}}}'}[within]

    def take(it: Any) -> Any:
        return it

    take.__annotations__["it"] = {
        "alone": annotation,
        "list": list[annotation],
        "map": dict[str, annotation],
    }[within]
    tool = function_tool(take, failure_error_function=None)
    for text, value in taken.items():
        found = tool.invoke_sync(f'{{"it": {frame.format(text)}}}')
        inner = found if within == "alone" else found[0 if within == "list" else "k"]
        assert (type(inner), inner) == (type(value), value)
    for text in refused:
        with pytest.raises(ModelBehaviorError, match="expected"):
            tool.invoke_sync(f'{{"it": {frame.format(text)}}}')


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (Level, "expected one of 1, 2, got 3"),
        (Share, "expected one of 0.5, 1.0, got 3"),
        (Literal[5], "expected 5, got 3"),
        (Literal[1, 2, 5], "expected one of 1, 2, 5, got 3"),
        (Literal["a", "b"], 'expected one of "a", "b", got 3'),
    ],
)
def test_a_refusal_lists_the_values(annotation: Any, words: str) -> None:
    """The model can then choose one of them."""

    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    with pytest.raises(ModelBehaviorError) as caught:
        function_tool(take).invoke_sync(json.dumps({"it": 3}))
    assert words in str(caught.value)


@pytest.mark.parametrize("careful", [False, True])
def test_null_means_the_default_or_none_in_both_readers(careful: bool) -> None:
    """A quoted number selects the careful reader; null must mean the same there."""

    @function_tool
    def take(
        number: int = 0,
        items: list[int] = [1],  # noqa: B006
        table: dict[str, int] = {"a": 1},  # noqa: B006
        level: Level = Level.LOW,
        maybe: int | None = 5,
        maybes: list[int | None] = [6],  # noqa: B006
        words: list[str] | None = ["x"],  # noqa: B006
    ) -> list[Any]:
        return [items, table, level, maybe, maybes, words]

    number = '"7"' if careful else "7"
    nulls = ", ".join(
        f'"{name}": null' for name in ("items", "table", "level", "maybe", "maybes", "words")
    )
    found = take.invoke_sync(f'{{"number": {number}, {nulls}}}')
    assert found == [[1], {"a": 1}, Level.LOW, None, [6], None]
    found = take.invoke_sync(f'{{"number": {number}, "maybes": [null, 1]}}')
    assert found == [[1], {"a": 1}, Level.LOW, 5, [None, 1], ["x"]]


class Raw(enum.Enum):
    A = b"a"


class Planet(enum.Enum):
    EARTH = (1.0, (0, 3))
    MARS = (0.1, (0, 6))


def test_members_that_are_tuples_are_passed_as_arrays() -> None:
    """The schema publishes arrays, which no member equals in Python."""

    @function_tool
    def visit(planet: Planet, then: list[Planet] | None = None) -> list[str]:
        return [one.name for one in (planet, *(then or ()))]

    mars = visit.params_json_schema["$defs"]["Planet"]["enum"][1]
    assert mars == [0.1, [0, 6]]
    assert visit.invoke_sync({"planet": mars, "then": [[1.0, [0, 3]]]}) == ["MARS", "EARTH"]
    with pytest.raises(ModelBehaviorError, match=r"planet: expected one of .*, got \[0.1\]"):
        visit.invoke_sync({"planet": [0.1]})


@pytest.mark.parametrize(
    ("annotation", "value", "expected"),
    [
        (Annotated[date, Field(ge=date(2020, 1, 2))], "2019-01-01", "a value greater than or equal to 2020-01-02"),
        (Annotated[timedelta, Field(lt=timedelta(hours=1))], "PT2H", "a value less than 1 hour"),
        (Annotated[Decimal, Field(gt=1)], 1, "a number greater than 1"),
        (PastDate, "2999-01-01", "a date in the past"),
        (AwareDatetime, "2020-01-02T03:04:05", "a time with a time zone, for example 2026-01-02T03:04:05Z"),
        (time, "10", "a valid time, for example 14:30"),
        (Decimal, [], "a number"),
        (deque[int], 5, "an array"),
    ],
)  # fmt: skip
def test_what_is_expected_is_a_phrase(annotation: Any, value: Any, expected: str) -> None:
    """The messages of pydantic are sentences about the input."""

    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    with pytest.raises(ModelBehaviorError) as caught:
        function_tool(take).invoke_sync({"it": value})
    line = f"- it: expected {expected}, got {json.dumps(value)}"
    assert str(caught.value) == f"Invalid arguments for tool 'take':\n{line}"


class Handle:
    """A user class without a JSON form."""


class Order(TypedDict):
    """A type with a key of such a class."""

    number: int
    handles: list[Handle]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ([int], "has no JSON form"),
        ({"a": int}, "has no JSON form"),
        (Literal[b"a"], "its values are bytes, and no JSON value equals those"),
        (list[Raw], "its values are bytes, and no JSON value equals those"),
        ({"a": int}, "(it is no JSON type,"),
        (Order, f"('{__name__}.Handle' in it is no JSON type,"),
        (Handle, "it is no JSON type, model, dataclass, TypedDict or enum"),
    ],
)
def test_an_annotation_that_is_not_a_type_is_refused_with_our_error(
    annotation: Any, words: str
) -> None:
    """A common mistake is a list of types instead of a type."""

    def take(it: Any) -> None: ...

    take.__annotations__["it"] = annotation
    with pytest.raises(UserError) as caught:
        function_schema(take)
    assert words in str(caught.value)


def test_unhashable_metadata_is_accepted() -> None:
    """Authors can put any object into `Annotated`."""

    def take(it: Annotated[list[int], {"unit": "m"}], of: Annotated[int, [1]] = 1) -> list[int]:
        return [*it, of]

    assert function_tool(take).invoke_sync('{"it": [1, 2]}') == [1, 2, 1]


# -- values of any type ------------------------------------------------------------------------


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")


class OpenKeys(TypedDict):
    __pydantic_config__ = ConfigDict(extra="allow")  # type: ignore[misc]


@dataclass(config=ConfigDict(extra="allow"))
class OpenFields:
    pass


@pytest.mark.parametrize(
    ("kind", "around"),
    [
        (Any, "{}"),
        (list, "[{}]"),
        (dict, '{{"k": {}}}'),
        (list[Any], "[{}]"),
        (dict[str, Any], '{{"k": {}}}'),
        (Open, '{{"k": {}}}'),
        (OpenKeys, '{{"k": {}}}'),
        (OpenFields, '{{"k": {}}}'),
    ],
    ids=["any", "list", "dict", "list of any", "dict of any", "model", "keys", "fields"],
)
def test_values_of_any_type_have_a_depth_limit(kind: Any, around: str) -> None:
    """A short text of brackets could otherwise overflow the stack of code that traverses it."""

    def take(x: Any) -> str:
        return "taken"

    take.__annotations__["x"] = kind
    tool = function_tool(take)
    for levels, taken in ((20, True), (70, False)):
        text = '{"x": ' + around.format("[" * levels + "]" * levels) + "}"
        if taken:
            assert tool.invoke_sync(text) == "taken"
        else:
            with pytest.raises(ModelBehaviorError, match="64 levels"):
                tool.invoke_sync(text)


def test_number_keys_are_converted_to_numbers() -> None:
    """JSON keys are text, but the function receives the annotated type."""

    @function_tool
    def take(x: dict[int, int]) -> str:
        return repr(x)

    assert take.invoke_sync('{"x": {"1": 2}}') == "{1: 2}"
    with pytest.raises(ModelBehaviorError):
        take.invoke_sync('{"x": {"one": 2}}')
