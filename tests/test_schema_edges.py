"""Schemas at the edges: references written in odd ways, values that are null, what nobody named."""

from __future__ import annotations

import functools
import inspect
import json
import threading
from typing import TYPE_CHECKING, Annotated, Any, NotRequired, Required

import pytest
from pydantic import Field, SecretStr, create_model
from typing_extensions import TypedDict, Unpack

from agents_tools import ModelBehaviorError, ensure_strict_json_schema, function_tool
from agents_tools.errors import UserError
from agents_tools.schema import function_schema
from agents_tools.schema.strict import ANTHROPIC_STRICT, to_strict

if TYPE_CHECKING:
    from collections.abc import Callable


def optional(schema: Any) -> Any:
    """Convert one property that may be left out, and give what became of it."""
    return ensure_strict_json_schema({"type": "object", "properties": {"x": schema}})["properties"][
        "x"
    ]


@pytest.mark.parametrize(
    ("schema", "strict"),
    [
        ({"const": "a"}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"const": None}, {"type": "null", "const": None}),
        ({"enum": ["a", None]}, {"type": ["string", "null"], "enum": ["a", None]}),
    ],
)
def test_a_value_of_its_own_may_be_null_only_where_it_is(schema: Any, strict: Any) -> None:
    """A fixed value without a type says by itself whether null is among it."""
    assert optional(schema) == strict


def test_a_reference_may_be_written_as_an_address_writes_it() -> None:
    """Spaces and such are written with `%` in a reference, and as they are in `$defs`."""
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a%20b"}},
        "required": ["x"],
        "$defs": {"a b": {"type": "string"}},
    }
    assert ensure_strict_json_schema(schema)["$defs"] == {"a_b": {"type": "string"}}


@pytest.mark.parametrize("number", ["1", "7", "99999999999999999999"])
def test_a_reference_past_the_end_of_a_list_leads_nowhere(number: str) -> None:
    """It is refused in our words, not with an error about an index."""
    ref = f"#/properties/y/anyOf/{number}"
    properties = {"x": {"$ref": ref}, "y": {"anyOf": [{"type": "string"}]}}
    schema = {"type": "object", "properties": properties, "required": ["x", "y"]}
    with pytest.raises(UserError, match="does not exist in the schema"):
        ensure_strict_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({"items": {"type": "string"}}, "array"),
        ({"prefixItems": [{"type": "string"}]}, "array"),
        ({"properties": {}}, "object"),
        ({"additionalProperties": False, "properties": {}}, "object"),
        ({"const": "a", "enum": ["a", "b"]}, "string"),
    ],
)
def test_the_type_is_told_by_what_stands_beside_it(schema: Any, kind: str) -> None:
    """Strict mode asks for a type everywhere; schemas written by hand often have none."""
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    assert ensure_strict_json_schema(whole)["properties"]["x"]["type"] == kind


CHAINS: dict[str, Callable[[Any], Any]] = {
    "anyOf": lambda below: {"anyOf": [below, {"type": "null"}]},
    "oneOf": lambda below: {"oneOf": [{"type": "null"}, below]},
    "items": lambda below: {"type": "array", "items": below},
    "prefixItems": lambda below: {"type": "array", "prefixItems": [below]},
    "rest": lambda below: {"type": "array", "prefixItems": [{"type": "null"}], "items": below},
    "allOf": lambda below: {"allOf": [below]},
    "properties": lambda below: {"type": "object", "properties": {"y": below}},
}


@pytest.mark.parametrize("link", CHAINS)
def test_a_chain_of_definitions_ends_whatever_links_it(link: str) -> None:
    """Each link that is written out uses the stack; a thousand would be too many."""
    definitions: dict[str, Any] = {
        f"D{number}": CHAINS[link]({"$ref": f"#/$defs/D{number + 1}", "description": "d"})
        for number in range(1_000)
    }
    definitions["D1000"] = {"type": "string"}
    x = {"$ref": "#/$defs/D0", "description": "d"}
    schema = {"type": "object", "properties": {"x": x}, "required": ["x"], "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        to_strict(schema, ANTHROPIC_STRICT)


def test_objects_may_be_nested_as_deeply_as_the_provider_allows() -> None:
    """Ten levels are taken, the eleventh is refused: counted exactly."""

    def nested(levels: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(levels):
            schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        return schema

    assert ensure_strict_json_schema(nested(10))["type"] == "object"
    with pytest.raises(UserError, match="deeper than 10 objects"):
        ensure_strict_json_schema(nested(11))


@pytest.mark.parametrize(
    ("beside", "items", "most"),
    [
        ({}, {"type": "string"}, 1),
        ({"items": False}, {"type": "string"}, 1),
        (
            {"items": {"type": "integer"}},
            {"anyOf": [{"type": "string"}, {"type": "integer"}]},
            None,
        ),
        ({"items": {"type": "string"}}, {"type": "string"}, None),
        ({"items": {"type": "string"}, "maxItems": 5}, {"type": "string"}, 5),
    ],
)
def test_what_follows_the_first_items_of_an_array_is_kept(
    beside: Any, items: Any, most: int | None
) -> None:
    """A tuple has a fixed length where nothing may follow, and only there."""
    schema = {"type": "array", "prefixItems": [{"type": "string"}], **beside}
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    x = ensure_strict_json_schema(whole)["properties"]["x"]
    assert (x["items"], x.get("maxItems")) == (items, most)


class Filters(TypedDict):
    until: int
    since: NotRequired[int]


def test_what_a_function_says_of_itself() -> None:
    """Providers with a strict mode are asked for it unless it is turned off."""

    def find(text: str, **filters: Unpack[Filters]) -> str:
        return text

    schema = function_schema(find)
    assert schema.strict_json_schema
    assert not function_schema(find, strict_json_schema=False).strict_json_schema
    assert schema.signature == inspect.signature(find)


def test_a_key_that_is_left_out_of_a_model_is_left_out_of_the_call() -> None:
    """A key of a TypedDict that may be absent has no default that could be passed."""

    def find(text: str = "all", **filters: Unpack[Filters]) -> None: ...

    schema = function_schema(find)
    model = schema.params_pydantic_model
    assert schema.to_call_args(model.model_validate({"until": 1})) == (
        [],
        {"text": "all", "until": 1},
    )
    given = model.model_validate({"until": 1, "since": 2})
    assert schema.to_call_args(given) == ([], {"text": "all", "until": 1, "since": 2})


@pytest.mark.parametrize(
    ("field", "key"),
    [
        (Field(alias="a"), "a"),
        (Field(validation_alias="v"), "v"),
        (Field(alias="a", validation_alias="v"), "v"),
        (Field(alias="a", serialization_alias="s"), "a"),
        (Field(serialization_alias="s"), "number"),
    ],
)
def test_a_parameter_goes_by_the_name_that_is_read(field: Any, key: str) -> None:
    """Of pydantic's three names the one for reading counts: the model writes it, we read it."""

    @function_tool
    def double(number: Annotated[int, field]) -> int:
        return 2 * number

    assert list(double.params_json_schema["properties"]) == [key]
    assert double.invoke_sync(json.dumps({key: 4})) == 8


def test_a_default_from_pydantic_is_a_value() -> None:
    """Only `Field(...)` describes; any other object of pydantic's is what the argument is."""

    class FieldInfo:
        """A class of the author's that only has the name."""

    own = FieldInfo()

    @function_tool
    def show(key: SecretStr = SecretStr("tulip"), info: Any = own) -> bool:  # noqa: B008
        return key.get_secret_value() == "tulip" and info is own

    assert show.invoke_sync("{}") is True
    assert show.params_json_schema.get("required") is None


@pytest.mark.parametrize("text", ["{}", '{"a": null, "b": null, "c": null}'])
def test_what_a_field_says_of_a_default_reaches_the_function(text: str) -> None:
    """Python's own default is pydantic's mark there, which is no number."""

    @function_tool
    def add(
        a: int = Field(default=1),
        b: Annotated[list[int], Field(default_factory=lambda: [2])] = Field(  # noqa: B008
            default_factory=lambda: [20]
        ),
        c: int = Field(3, description="The third."),
    ) -> list[Any]:
        return [a, *b, c]

    assert add.invoke_sync(text) == [1, 20, 3]


def test_each_call_gets_a_value_of_its_own_from_a_factory() -> None:
    """One list for all calls would carry what one call put in into the next."""

    @function_tool
    def collect(into: list[int] = Field(default_factory=list)) -> int:  # noqa: B008
        into.append(1)
        return len(into)

    assert [collect.invoke_sync("{}") for _ in range(2)] == [1, 1]
    assert "into" not in collect.params_json_schema.get("required", [])


def test_further_arguments_cannot_take_the_place_of_declared_ones() -> None:
    """Python would raise `got multiple values` for a parameter that goes by another name."""

    @function_tool
    def send(number: Annotated[int, Field(alias="n")] = 0, **rest: int) -> dict[str, Any]:
        return {"number": number, **rest}

    assert send.invoke_sync('{"n": 1, "x": 2}') == {"number": 1, "x": 2}
    assert send.invoke_sync('{"rest": 3}') == {"number": 0, "rest": 3}  # the name of all is free
    with pytest.raises(ModelBehaviorError, match="number: unknown, leave it out"):
        send.invoke_sync('{"n": 1, "number": 2}')


def test_a_name_bound_by_position_alone_is_free_for_further_arguments() -> None:
    """Python tells the two apart, so a tool does."""

    def send(to: str, /, **rest: int) -> dict[str, Any]:
        return {"first": to, **rest}

    tool = function_tool(functools.partial(send, "me"), name_override="send")
    assert tool.invoke_sync('{"to": 5}') == {"first": "me", "to": 5}


def test_types_of_one_name_are_told_apart() -> None:
    """Two modules may each have a `Place`: each parameter refers to its own."""

    def place(**fields: Any) -> Any:
        return create_model("Place", **fields)

    def go(start: Any, end: Any) -> None: ...

    here, there, again = place(city=(str, ...)), place(lat=(float, ...)), place(city=(str, ...))
    for types, count in (((here, there), 2), ((here, again), 1), ((here, here), 1)):
        go.__annotations__.update(zip(("start", "end"), types, strict=True))
        schema = function_schema(go).params_json_schema
        start, end = (
            schema["$defs"][schema["properties"][key]["$ref"].removeprefix("#/$defs/")]
            for key in ("start", "end")
        )
        assert [list(one["properties"]) for one in (start, end)] == [
            list(one.model_fields) for one in types
        ]
        assert len(schema["$defs"]) in {count, 2}


def unit(schema: dict[str, Any]) -> None:
    schema["unit"] = "m"


def test_a_field_may_change_its_own_schema() -> None:
    """As in pydantic: a dictionary is added, a function is called."""

    def go(
        a: Annotated[int, Field(json_schema_extra={"unit": "m"})],
        b: Annotated[int, Field(json_schema_extra=unit)],
    ) -> None: ...

    properties = function_schema(go).params_json_schema["properties"]
    assert [one["unit"] for one in properties.values()] == ["m", "m"]


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        ("Nowhere", "'Nowhere'"),
        (range, "the type range, which"),
        (threading.Barrier, "the type threading.Barrier, which"),
        (list[threading.Barrier], "the type list[threading.Barrier], which"),
    ],
)
def test_a_refused_annotation_is_written_as_in_code(annotation: Any, words: str) -> None:
    """An author finds the place by the text of the annotation."""

    def go(a: Any) -> None: ...

    go.__annotations__["a"] = annotation
    with pytest.raises(UserError) as caught:
        function_schema(go)
    assert words in str(caught.value)
    assert f"{__file__}:{go.__code__.co_firstlineno}" in str(caught.value)


class Bare:
    """Its instances can be called, and have no code of their own."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.__signature__ = inspect.Signature(
            [inspect.Parameter("a", inspect.Parameter.KEYWORD_ONLY, annotation=range)]
        )

    __call__ = print


def test_what_has_no_line_is_named_by_its_module() -> None:
    """Callables written in C, or instances that call them, are named instead."""
    with pytest.raises(UserError, match=rf"\({__name__}\.Bare\)"):
        function_schema(Bare(print), name_override="bare")


def test_names_are_looked_up_where_a_function_was_made() -> None:
    """Code that is run from a text has names of its own, and the module's name of who ran it."""
    space: dict[str, Any] = {"__name__": __name__}
    text = "from __future__ import annotations\nOwn = int\ndef double(a: Own): return 2 * a\n"
    exec(text, space)  # noqa: S102 - the text stands above
    double: Any = function_tool(space["double"])
    assert double.invoke_sync('{"a": 4}') == 8


class Loose(TypedDict, total=False):
    near: int
    far: Required[int]


def test_a_key_of_a_loose_dictionary_may_be_left_out_unless_it_is_required() -> None:
    """`total=False`, `Required` and `NotRequired` mean what they mean to a type checker."""

    @function_tool
    def go(**options: Unpack[Loose]) -> dict[str, Any]:
        return dict(options)

    assert go.params_json_schema["required"] == ["far"]
    assert go.invoke_sync('{"far": 1}') == {"far": 1}
    with pytest.raises(ModelBehaviorError, match="far: missing"):
        go.invoke_sync('{"near": 1}')


def test_arguments_by_position_of_mixed_types_are_refused() -> None:
    """A JSON array of arguments has no place to say which is which."""

    def go(*parts: *tuple[int, str]) -> None: ...

    with pytest.raises(UserError, match=r"\*parts is annotated .*, a tuple of different types"):
        function_schema(go)


def test_bounds_hold_however_they_are_written() -> None:
    """The quick way and the careful way of reading know the same bounds."""

    @function_tool
    def go(
        count: Annotated[int, Field(ge=1, le=9)] = 1,
        share: Annotated[float, Field(gt=0, lt=1)] = 0.5,
        name: Annotated[str, Field(min_length=2, max_length=3)] = "ab",
        more: Annotated[list[Annotated[int, Field(multiple_of=5)]], Field(max_length=2)] = [],  # noqa: B006
    ) -> bool:
        return True

    good = ('"count": 9', '"count": "1"', '"share": 0.1', '"name": "abc"', '"more": [5, "10"]')
    for one in good:
        assert go.invoke_sync(f"{{{one}}}") is True
    bad = ('"count": 0', '"count": "10"', '"share": 1', '"share": "0"', '"name": "a"')
    bad += ('"name": "abcd"', '"more": [1]', '"more": ["7"]', '"more": [5, 5, 5]')
    for one in bad:
        with pytest.raises(ModelBehaviorError, match="expected"):
            go.invoke_sync(f"{{{one}}}")


def test_two_parameters_of_one_name_are_refused() -> None:
    """A call could fill only one of them."""

    def weigh(a: Annotated[int, Field(alias="x")], b: Annotated[int, Field(alias="x")]) -> int:
        return a + b

    with pytest.raises(UserError, match="parameters 'a' and 'b' both have the name 'x'"):
        function_tool(weigh).build()
