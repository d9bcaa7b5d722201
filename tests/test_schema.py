"""Test the JSON Schema of function signatures, key by key."""

from __future__ import annotations

import datetime as dt
import decimal
import enum
import functools
import json
import pathlib
import typing
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, NotRequired, Optional, Union

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, create_model
from typing_extensions import Doc, TypedDict, Unpack

from agents_tools import (
    FunctionTool,
    RunContextWrapper,
    ToolContext,
    UserError,
    function_schema,
    function_tool,
)


class Location(TypedDict):
    lat: float
    long: float


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    zip: str | None = None


class Person(BaseModel):
    name: str = Field(description="Their name.", min_length=1)
    address: Address
    friends: list[Person] = []


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


@dataclass
class Point:
    x: int
    y: int = 0


class Options(TypedDict, total=False):
    depth: int
    name: str


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int = 9


class Dog(BaseModel):
    kind: Literal["dog"]


class Pair(typing.NamedTuple):
    left: int
    right: str


@pytest.mark.requirement("A13", "A15", "A16", "A17", "A19", "A21")
def test_the_first_documented_example_has_the_documented_schema() -> None:
    """Readers compare the output with the page that they learn from."""

    @function_tool
    async def fetch_weather(location: Location) -> str:
        """Fetch the weather for a given location.

        Args:
            location: The location to fetch the weather for.
        """
        return "sunny"

    assert fetch_weather.name == "fetch_weather"
    assert fetch_weather.description == "Fetch the weather for a given location."
    assert fetch_weather.params_json_schema == {
        "$defs": {
            "Location": {
                "properties": {
                    "lat": {"title": "Lat", "type": "number"},
                    "long": {"title": "Long", "type": "number"},
                },
                "required": ["lat", "long"],
                "title": "Location",
                "type": "object",
            }
        },
        "properties": {
            "location": {
                "$ref": "#/$defs/Location",
                "description": "The location to fetch the weather for.",
            }
        },
        "required": ["location"],
        "title": "fetch_weather_args",
        "type": "object",
    }


@pytest.mark.requirement("A12", "A14", "A20", "A21", "A22")
def test_the_second_documented_example_has_the_documented_schema() -> None:
    """It has a context, an override and an optional parameter."""

    @function_tool(name_override="fetch_data")
    def read_file(ctx: RunContextWrapper[Any], path: str, directory: str | None = None) -> str:
        """Read the contents of a file.

        Args:
            path: The path to the file to read.
            directory: The directory to read the file from.
        """
        return "<file contents>"

    assert isinstance(read_file, FunctionTool)
    assert read_file.params_json_schema == {
        "properties": {
            "path": {
                "description": "The path to the file to read.",
                "title": "Path",
                "type": "string",
            },
            "directory": {
                "anyOf": [{"type": "string"}, {"type": "null"}],
                "default": None,
                "description": "The directory to read the file from.",
                "title": "Directory",
            },
        },
        "required": ["path"],
        "title": "fetch_data_args",
        "type": "object",
    }


ANNOTATIONS: list[Any] = [
    str,
    int,
    float,
    bool,
    None,
    Any,
    object,
    list,
    dict,
    list[str],
    list[int],
    list[Any],
    list[list[float]],
    list[Person],
    dict[str, int],
    dict[str, Any],
    dict[str, list[str]],
    dict[str, Location],
    dict[int, str],
    set[str],
    frozenset[int],
    tuple[int, ...],
    tuple[int, str],
    Optional[int],
    str | None,
    Optional[list[str]],
    Optional[Address],
    Optional[Colour],
    Union[int, str],
    Union[int, str, None],
    Union[Cat, Dog],
    Literal["a", "b"],
    Literal["only"],
    Literal[1, 2],
    Literal["a", 1, True],
    Optional[Literal["a", "b"]],
    Location,
    Options,
    Address,
    Person,
    Point,
    Pair,
    Colour,
    Level,
    dt.datetime,
    dt.date,
    dt.timedelta,
    decimal.Decimal,
    uuid.UUID,
    pathlib.Path,
    Annotated[int, Field(ge=1, le=10)],
    Annotated[float, Field(gt=0, lt=1)],
    Annotated[str, Field(min_length=1, max_length=5)],
    Annotated[str, Field(pattern="^a+$")],
    Annotated[int, Field(multiple_of=5)],
    Annotated[list[int], Field(min_length=1)],
    Optional[Annotated[int, Field(ge=1)]],
    Annotated[Union[Cat, Dog], Field(discriminator="kind")],
    Annotated[int, Field(examples=[1, 2])],
    Annotated[str, Field(title="A title")],
    Annotated[Address, Field(description="An address.")],
]


@pytest.mark.requirement("A25")
@pytest.mark.parametrize(
    "annotation", ANNOTATIONS, ids=[f"{index}" for index in range(len(ANNOTATIONS))]
)
def test_a_type_has_the_same_schema_as_a_pydantic_field(annotation: Any) -> None:
    """Users and models know the schemas of pydantic; this library only composes them faster."""

    def tool(value: Any) -> None: ...

    tool.__annotations__ = {"value": annotation}
    expected = create_model("tool_args", value=(annotation, ...)).model_json_schema()
    assert function_tool(tool).params_json_schema == expected


PERSON = {"name": "Ada", "address": {"street": "x", "zip": None}, "friends": []}
VALUES: list[Any] = [
    "a",
    1,
    1.5,
    True,
    None,
    {"a": [1]},
    "x",
    [1, "a"],
    {"a": 1},
    ["a"],
    [1, 2],
    [1, "a", None],
    [[1.5], []],
    [PERSON],
    {"a": 1},
    {"a": None},
    {"a": ["b"]},
    {"a": {"lat": 1.5, "long": 2.0}},
    {"1": "a"},
    ["a"],
    [1],
    [1, 2],
    [1, "a"],
    None,
    "a",
    ["a"],
    {"street": "x", "zip": "1"},
    "red",
    "a",
    1,
    {"kind": "dog"},
    "b",
    "only",
    2,
    "a",
    "b",
    {"lat": 1.5, "long": 2.0},
    {"depth": 2},
    {"street": "x", "zip": None},
    {**PERSON, "friends": [PERSON]},
    {"x": 1, "y": 2},
    [1, "a"],
    "blue",
    2,
    "2027-03-05T10:00:00Z",
    "2027-03-05",
    "PT1H",
    "1.50",
    "12345678-1234-5678-1234-567812345678",
    "a/b",
    5,
    0.5,
    "abc",
    "aaa",
    10,
    [1],
    1,
    {"kind": "cat", "lives": 3},
    1,
    "x",
    {"street": "x", "zip": None},
]
"""One value for each of the types, as JSON."""


@pytest.mark.requirement("A25")
@pytest.mark.parametrize(
    ("annotation", "value"),
    list(zip(ANNOTATIONS, VALUES, strict=True)),
    ids=[f"{index}" for index in range(len(ANNOTATIONS))],
)
async def test_a_value_of_each_type_round_trips_through_the_function(
    annotation: Any, value: Any
) -> None:
    """The function receives the annotated type, created from JSON that a model can send."""

    def tool(value: Any) -> Any:
        return value

    tool.__annotations__ = {"value": annotation}
    outcome = await function_tool(tool).call(None, json.dumps({"value": value}))
    assert outcome.status == "ok", outcome.output
    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    assert outcome.value == adapter.validate_json(json.dumps(value))
    assert adapter.dump_python(outcome.value, mode="json") == value


@pytest.mark.requirement("A20", "A22")
@pytest.mark.parametrize(
    "annotation", [int, str | None, list[str], Address, Colour, Point], ids=str
)
def test_an_optional_parameter_has_the_same_schema_as_in_pydantic(annotation: Any) -> None:
    """Defaults are published if they have a JSON form."""
    defaults: dict[Any, Any] = {
        int: 3,
        str | None: None,
        list[str]: ["a"],
        Address: Address(street="x"),
        Colour: Colour.RED,
        Point: Point(1),
    }

    def tool(value: Any = defaults[annotation]) -> None: ...

    tool.__annotations__ = {"value": annotation}
    expected = create_model(
        "tool_args", value=(annotation, defaults[annotation])
    ).model_json_schema()
    assert function_tool(tool).params_json_schema == expected


def test_two_types_with_the_same_name_get_separate_definitions() -> None:
    """The second must not replace the first under `$defs`."""
    first = create_model("Same", a=(int, ...))
    second = create_model("Same", b=(str, ...), __module__="elsewhere")

    def tool(x: Any, y: Any) -> None: ...

    tool.__annotations__ = {"x": first, "y": second}
    schema = function_tool(tool).params_json_schema
    x, y = schema["properties"]["x"]["$ref"], schema["properties"]["y"]["$ref"]
    assert x != y
    names = [x.removeprefix("#/$defs/"), y.removeprefix("#/$defs/")]
    assert [list(schema["$defs"][name]["properties"]) for name in names] == [["a"], ["b"]]


def test_annotated_descriptions_override_docstring_descriptions() -> None:
    """Three libraries established three kinds of description; a docstring has least priority."""

    def tool(
        a: Annotated[int, "from a string"],
        b: Annotated[int, Doc("from Doc")],
        c: Annotated[int, Field(description="from Field")],
        d: int = Field(3, description="from the default", ge=1),
        e: int = 0,
    ) -> None:
        """Do it.

        Args:
            a: from the docstring
            e: from the docstring
        """

    properties = function_tool(tool).params_json_schema["properties"]
    assert {name: schema["description"] for name, schema in properties.items()} == {
        "a": "from a string",
        "b": "from Doc",
        "c": "from Field",
        "d": "from the default",
        "e": "from the docstring",
    }
    assert properties["d"]["default"] == 3
    assert properties["d"]["minimum"] == 1


class Place(TypedDict):
    city: Annotated[str, "The city."]
    code: Annotated[NotRequired[str], "Ignored.", Field(description="The postal code.")]
    street: NotRequired[Annotated[str, Doc("The street.")]]


@dataclass
class Order:
    place: Annotated[Place, "Where to send it."]
    count: Annotated[int, Field(ge=1), "How many."] = 1
    previous: Annotated[Order | None, "The order before."] = None


def test_a_text_in_an_annotation_describes_a_field_of_a_dataclass_or_typed_dict() -> None:
    """The text has the same meaning as for a parameter; a description in `Field` has priority."""

    def send(orders: list[Order]) -> Place:
        raise AssertionError

    tool = function_tool(send)
    fields = tool.params_json_schema["$defs"]["Order"]["properties"]
    assert fields == snapshot(
        {
            "place": {"$ref": "#/$defs/Place", "description": "Where to send it."},
            "count": {
                "default": 1,
                "description": "How many.",
                "minimum": 1,
                "title": "Count",
                "type": "integer",
            },
            "previous": {
                "anyOf": [{"$ref": "#/$defs/Order"}, {"type": "null"}],
                "default": None,
                "description": "The order before.",
            },
        }
    )
    places = [tool.params_json_schema["$defs"]["Place"], tool.output_json_schema]
    assert [
        {name: field["description"] for name, field in place["properties"].items()}
        for place in places
        if place
    ] == snapshot(
        [
            {"city": "The city.", "code": "The postal code.", "street": "The street."},
            {"city": "The city.", "code": "The postal code.", "street": "The street."},
        ]
    )


@pytest.mark.requirement("A17")
def test_docstrings_can_be_ignored() -> None:
    """`use_docstring_info=False` takes no text from them."""

    def tool(a: int) -> None:
        """Do it.

        Args:
            a: a number
        """

    schema = function_schema(tool, use_docstring_info=False)
    assert schema.description is None
    assert "description" not in schema.params_json_schema["properties"]["a"]


@pytest.mark.requirement("A15")
def test_explicit_descriptions_replace_the_docstring() -> None:
    """A description for the model can differ from the documentation for programmers."""

    def tool(a: int) -> None:
        """Do it.

        Args:
            a: a number
        """

    assert function_tool(tool).description == "Do it."
    other = function_tool(description_override="Do the other.")(tool)
    assert other.description == "Do the other."
    assert other.params_json_schema["properties"]["a"]["description"] == "a number"


@pytest.mark.requirement("A31", "A32")
def test_the_docstring_style_does_not_affect_the_schema() -> None:
    """The style is detected or given, and can be any of three."""

    def google(a: int, b: str = "") -> None:
        """Do it.

        Args:
            a: a number
            b: a word
        """

    def numpy(a: int, b: str = "") -> None:
        """Do it.

        Parameters
        ----------
        a : int
            a number
        b : str
            a word
        """

    def sphinx(a: int, b: str = "") -> None:
        """Do it.

        :param a: a number
        :param b: a word
        """

    styles: dict[Any, Any] = {"google": google, "numpy": numpy, "sphinx": sphinx}
    made = [function_schema(func, name_override="tool") for func in styles.values()]
    made += [
        function_schema(func, name_override="tool", docstring_style=style)
        for style, func in styles.items()
    ]
    assert {one.description for one in made} == {"Do it."}
    assert made[0].params_json_schema["properties"]["a"]["description"] == "a number"
    assert all(one.params_json_schema == made[0].params_json_schema for one in made)


def test_unannotated_parameters_take_their_type_from_the_docstring() -> None:
    """A documented type is better than none."""

    def tool(count, names=None, anything=1):  # type: ignore[no-untyped-def]
        """Do it.

        Args:
            count (int): how many
            names (list of str): which
            anything: whatever
        """

    properties = function_tool(tool).params_json_schema["properties"]
    assert properties == snapshot(
        {
            "count": {"type": "integer", "title": "Count", "description": "how many"},
            "names": {
                "anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}],
                "title": "Names",
                "description": "which",
                "default": None,
            },
            "anything": {"title": "Anything", "description": "whatever", "default": 1},
        }
    )


def test_any_parameter_name_works() -> None:
    """Authors of tools use names that pydantic models reserve."""

    def tool(
        schema: int,
        json: int,
        model_config: int,
        _x: int,
        cls: int,
        agent: int,
        größe: int,
        copy: int = 1,
        validate: int = 2,
        y__: int = 3,
    ) -> list[int]:
        return [schema, json, model_config, _x, cls, agent, größe, copy, validate, y__]

    built = function_tool(tool)
    names = list(built.params_json_schema["properties"])
    assert names == list(tool.__annotations__)[:-1]
    values = {name: index for index, name in enumerate(names)}
    assert built.invoke_sync(values) == list(range(10))


@pytest.mark.requirement("A23")
@pytest.mark.parametrize(
    "annotation",
    [
        RunContextWrapper,
        RunContextWrapper[Any],
        ToolContext,
        ToolContext[int],
        Optional[RunContextWrapper[Any]],
        ToolContext[int] | None,
        Annotated[ToolContext[Any], "the context"],
    ],
    ids=repr,
)
def test_the_context_parameter_is_found_by_its_annotation(annotation: Any) -> None:
    """It can have any position and is never part of the schema."""

    def tool(a: int, ctx: Any = None, *, b: int = 0) -> bool:
        return isinstance(ctx, ToolContext)

    tool.__annotations__["ctx"] = annotation
    built = function_tool(tool)
    assert list(built.params_json_schema["properties"]) == ["a", "b"]
    assert built.invoke_sync(a=1) is True


def test_a_positional_only_context_before_star_args_is_passed() -> None:
    """All parameters before `*args` must then be passed by position."""

    def tool(ctx: ToolContext[Any], a: int, b: int = 2, /, *rest: int, c: int = 3, **more: int):  # type: ignore[no-untyped-def]
        assert isinstance(ctx, ToolContext)
        return a, b, rest, c, more

    built = function_tool(tool)
    assert built.params_json_schema == snapshot(
        {
            "properties": {
                "a": {"type": "integer", "title": "A"},
                "b": {"type": "integer", "title": "B", "default": 2},
                "rest": {"type": "array", "items": {"type": "integer"}, "title": "Rest"},
                "c": {"type": "integer", "title": "C", "default": 3},
            },
            "additionalProperties": {"type": "integer"},
            "required": ["a"],
            "title": "tool_args",
            "type": "object",
        }
    )
    assert built.invoke_sync(a=1) == (1, 2, (), 3, {})
    assert built.invoke_sync(a=1, rest=[7, 8], c=4, z=9) == (1, 2, (7, 8), 4, {"z": 9})


def test_unpacked_typed_dicts_become_parameters() -> None:
    """`**kwargs: Unpack[...]` declares keys, and optional keys stay optional."""

    class Settings(TypedDict):
        """Settings."""

        size: int
        colour: NotRequired[str]

    def tool(**settings: Unpack[Settings]) -> dict[str, Any]:
        return dict(settings)

    built = function_tool(tool)
    assert built.params_json_schema["required"] == ["size"]
    assert built.invoke_sync(size=1) == {"size": 1}
    assert built.invoke_sync(size=1, colour="red") == {"size": 1, "colour": "red"}


def test_local_classes_in_postponed_annotations_are_resolved() -> None:
    """This module has `from __future__ import annotations`, so its annotations are strings."""

    class Local(BaseModel):
        value: int

    @function_tool
    def tool(it: Local, others: list[Local] | None = None) -> int:
        return it.value

    assert tool.invoke_sync({"it": {"value": 5}}) == 5


def test_all_kinds_of_callables_become_tools() -> None:
    """Any callable with a signature and a name can be a tool."""

    class Adder:
        """Add."""

        def __call__(self, a: int, b: int = 1) -> int:
            return a + b

        def method(self, a: int) -> int:
            return a + 10

        @classmethod
        def of_class(cls, a: int) -> int:
            return a + 20

    def add(a: int, b: int) -> int:
        return a + b

    @functools.lru_cache
    def cached(a: int) -> int:
        return a + 30

    @functools.wraps(add)
    def wrapper(*args: Any, **kwargs: Any) -> int:
        return add(*args, **kwargs) * 2

    cases: list[tuple[Callable[..., Any], dict[str, Any], int]] = [
        (Adder(), {"a": 1}, 2),
        (Adder().method, {"a": 1}, 11),
        (Adder.of_class, {"a": 1}, 21),
        (functools.partial(add, 5), {"b": 1}, 6),
        (functools.partial(add, b=5), {"a": 1}, 6),
        (cached, {"a": 1}, 31),
        (wrapper, {"a": 1, "b": 2}, 6),
    ]
    for func, arguments, expected in cases:
        assert function_tool(func).invoke_sync(arguments) == expected
    names = [function_tool(func).name for func, _, _ in cases]
    assert names == ["Adder", "method", "of_class", "add", "add", "cached", "add"]
    assert function_tool(lambda x: x, name_override="same").invoke_sync(x=3) == 3


class Stop(BaseModel):
    """Plan a stop.

    Attributes:
        city: Ignored.
        nights: How many nights.
    """

    city: str = Field(description="The city.")
    nights: int = 1
    tags: list[str] = Field(default=[], alias="tagList", description="Its tags.")


def test_the_fields_of_a_pydantic_class_describe_its_parameters() -> None:
    """The signature of the class lacks their descriptions; those of `Field` have priority."""
    tool = function_tool(Stop)
    properties = tool.params_json_schema["properties"]
    assert {name: schema.get("description") for name, schema in properties.items()} == {
        "city": "The city.",
        "nights": "How many nights.",
        "tagList": "Its tags.",
    }
    assert tool.invoke_sync({"city": "Rome", "tagList": ["a"]}) == Stop(city="Rome", tagList=["a"])


def _no_generator() -> Any:
    yield 1


class Opaque:
    """A class without a JSON form."""


def _opaque(thing: Opaque) -> None: ...


def _callback(call: Callable[[int], int]) -> None: ...


def _file(stream: typing.IO[str]) -> None: ...


def _nowhere(value: Missing) -> None: ...  # type: ignore[name-defined]  # noqa: F821


def _returns_nowhere(value: int) -> Missing: ...  # type: ignore[name-defined]  # noqa: F821


def _two_contexts(a: ToolContext[Any], b: ToolContext[Any]) -> None: ...


@pytest.mark.parametrize(
    ("func", "words"),
    [
        (_no_generator, ["_no_generator", "generator", "streaming_tool", "test_schema.py:"]),
        (_opaque, ["'thing'", "Opaque", "no JSON form", "test_schema.py:"]),
        (_callback, ["'call'", "Callable", "no JSON form", "test_schema.py:"]),
        (_file, ["'stream'", "IO[str]", "no JSON form"]),
        (_nowhere, ["'value'", "'Missing'", "cannot be resolved", "Import the name"]),
        (_two_contexts, ["'a'", "'b'", "context", "Keep one"]),
        (lambda x: x, ["<lambda>", "name_override"]),
        (getattr, ["getattr", "signature"]),
        (3, ["callable", "int"]),
    ],
    ids=lambda value: getattr(value, "__name__", "") if callable(value) else "",
)
def test_invalid_tools_are_refused_with_the_cause_and_a_remedy(func: Any, words: list[str]) -> None:
    """The error alone must be enough to fix the tool."""
    with pytest.raises(UserError) as caught:
        function_tool(typing.cast("Callable[..., Any]", func)).build()
    for word in words:
        assert word in str(caught.value)


def test_an_unresolvable_return_annotation_only_omits_the_output_schema() -> None:
    """Models never see it."""
    built = function_tool(_returns_nowhere)
    assert built.output_json_schema is None
    assert list(built.params_json_schema["properties"]) == ["value"]


@pytest.mark.parametrize("name", ["", "has space", "dotted.name", "ümlaut", "x" * 65, "a\n"])
def test_names_that_providers_refuse_are_refused_with_a_suggestion(name: str) -> None:
    """The error of a provider comes late and names no line."""

    def tool() -> None: ...

    tool.__name__ = name
    with pytest.raises(UserError, match="name_override="):
        function_tool(tool)


def test_changing_a_returned_schema_does_not_affect_the_tool() -> None:
    """Arguments are always validated against the published schema."""

    @function_tool
    def tool(a: list[Location]) -> None: ...

    schema = tool.params_json_schema
    schema["properties"]["a"]["items"].clear()
    schema["$defs"].clear()
    assert tool.params_json_schema["$defs"]
    assert tool.params_json_schema["properties"]["a"]["items"] == {"$ref": "#/$defs/Location"}


@pytest.mark.requirement("A34")
def test_the_pydantic_model_of_the_parameters_is_available() -> None:
    """Programs that use the model continue to work."""

    def tool(a: int, json: str = "x", *rest: int, **more: float) -> None: ...

    schema = function_schema(tool)
    model = schema.params_pydantic_model.model_validate(
        {"a": 1, "json": "y", "rest": [1, 2], "z": 0.5}
    )
    assert schema.to_call_args(model) == ([1, "y", 1, 2], {"z": 0.5})
    assert (schema.name, schema.description) == ("tool", None)
    assert schema.params_json_schema == function_tool(tool).params_json_schema


def test_the_schema_of_a_return_annotation_is_published() -> None:
    """Servers and typed callers use it."""

    @function_tool
    def tool() -> list[Point]: ...  # type: ignore[empty-body]

    schema = tool.output_json_schema
    assert schema is not None
    assert schema["items"] == {"$ref": "#/$defs/Point"}


def test_the_output_schema_can_be_disabled() -> None:
    """Its schema costs tokens."""

    @function_tool(output_schema=False)
    def tool() -> list[Point]: ...  # type: ignore[empty-body]

    assert tool.output_json_schema is None


def test_methods_bind_to_their_instance() -> None:
    """A tool declared in a class body behaves like the method it replaces."""

    class Bank:
        def __init__(self, balance: int) -> None:
            self.balance = balance

        @function_tool
        def deposit(self, amount: int) -> int:
            """Pay in."""
            self.balance += amount
            return self.balance

        @function_tool
        @classmethod
        def currency(cls, symbol: bool = False) -> str:
            return cls.__name__ + ("$" if symbol else "")

        @function_tool
        @staticmethod
        def rate(percent: int) -> float:
            return percent / 100

    one, two = Bank(1), Bank(2)
    assert one.deposit.invoke_sync(amount=10) == 11
    assert two.deposit(5) == 7
    assert one.deposit.name == "deposit"
    assert list(one.deposit.params_json_schema["properties"]) == ["amount"]
    assert list(Bank.deposit.params_json_schema["properties"]) == ["amount"]
    assert Bank.currency.invoke_sync(symbol=True) == "Bank$"
    assert one.rate.invoke_sync(percent=50) == 0.5
    with pytest.raises(UserError, match="not bound"):
        Bank.deposit.invoke_sync(amount=1)


def test_a_function_defined_outside_a_class_is_not_a_method() -> None:
    """Binding depends on where the function was defined."""

    @function_tool
    def outside(amount: int) -> int:
        return amount

    class Box:
        tool = outside

    assert Box().tool.invoke_sync(amount=3) == 3


def test_pydantic_models_keep_their_own_configuration() -> None:

    class Loose(BaseModel):
        model_config = ConfigDict(extra="allow")
        flag: int

    @function_tool
    def tool(it: Loose) -> dict[str, Any]:
        return it.model_dump()

    assert tool.invoke_sync({"it": {"flag": True, "more": 1}}) == {"flag": 1, "more": 1}
