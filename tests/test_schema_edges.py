"""Test edge cases of schemas: unusual references, nullable values and unnamed parameters."""

from __future__ import annotations

import functools
import inspect
import json
import threading
from typing import TYPE_CHECKING, Annotated, Any, Generic, NotRequired, Required, TypeVar

import pytest
from pydantic import Field, SecretStr, create_model
from typing_extensions import TypedDict, Unpack

from agents_tools import ModelBehaviorError, ensure_strict_json_schema, function_tool
from agents_tools.errors import UserError
from agents_tools.schema import function_schema
from agents_tools.schema.strict import ANTHROPIC_STRICT, to_strict

if TYPE_CHECKING:
    from collections.abc import Callable


def convert_optional(schema: Any) -> Any:
    """Convert one optional property and return its new schema."""
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
def test_a_constant_becomes_nullable_only_if_null_is_allowed(schema: Any, strict: Any) -> None:
    """A constant without a type decides by its values whether null is allowed."""
    assert convert_optional(schema) == strict


def test_a_reference_can_be_percent_encoded() -> None:
    """Spaces are written as `%20` in a reference, but unencoded in `$defs`."""
    schema = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/a%20b"}},
        "required": ["x"],
        "$defs": {"a b": {"type": "string"}},
    }
    assert ensure_strict_json_schema(schema)["$defs"] == {"a_b": {"type": "string"}}


@pytest.mark.parametrize("number", ["1", "7", "99999999999999999999"])
def test_a_reference_past_the_end_of_a_list_is_refused(number: str) -> None:
    """The error is one of this library and not an `IndexError`."""
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
def test_a_missing_type_is_inferred_from_other_keywords(schema: Any, kind: str) -> None:
    """Strict mode requires a type everywhere, and hand-written schemas often have none."""
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
def test_a_long_chain_of_definitions_is_refused_for_every_kind_of_link(link: str) -> None:
    """Inlining each link uses the stack, and a thousand links would be too many."""
    definitions: dict[str, Any] = {
        f"D{number}": CHAINS[link]({"$ref": f"#/$defs/D{number + 1}", "description": "d"})
        for number in range(1_000)
    }
    definitions["D1000"] = {"type": "string"}
    x = {"$ref": "#/$defs/D0", "description": "d"}
    schema = {"type": "object", "properties": {"x": x}, "required": ["x"], "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        to_strict(schema, ANTHROPIC_STRICT)


def test_objects_can_be_nested_up_to_the_limit_of_the_provider() -> None:
    """Ten levels are accepted and the eleventh is refused."""

    def nested(levels: int) -> dict[str, Any]:
        schema: dict[str, Any] = {"type": "string"}
        for _ in range(levels):
            schema = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
        return schema

    assert ensure_strict_json_schema(nested(10))["type"] == "object"
    with pytest.raises(UserError, match="deeper than 10 objects"):
        ensure_strict_json_schema(nested(11))


@pytest.mark.parametrize(
    ("keywords", "items", "most"),
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
def test_items_after_the_first_ones_of_an_array_are_retained(
    keywords: Any, items: Any, most: int | None
) -> None:
    """A tuple has a fixed length only if no further items are allowed."""
    schema = {"type": "array", "prefixItems": [{"type": "string"}], **keywords}
    whole = {"type": "object", "properties": {"x": schema}, "required": ["x"]}
    x = ensure_strict_json_schema(whole)["properties"]["x"]
    assert (x["items"], x.get("maxItems")) == (items, most)


class Filters(TypedDict):
    until: int
    since: NotRequired[int]


def test_functions_are_strict_by_default() -> None:
    """Providers are asked for strict mode unless it is turned off."""

    def find(text: str, **filters: Unpack[Filters]) -> str:
        return text

    schema = function_schema(find)
    assert schema.strict_json_schema
    assert not function_schema(find, strict_json_schema=False).strict_json_schema
    assert schema.signature == inspect.signature(find)


def test_an_omitted_key_of_a_typed_dict_is_omitted_in_the_call() -> None:
    """An optional key of a TypedDict has no default value."""

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
def test_a_parameter_uses_its_validation_alias(field: Any, key: str) -> None:
    """Of the three aliases of pydantic, the one for input applies to arguments."""

    @function_tool
    def double(number: Annotated[int, field]) -> int:
        return 2 * number

    assert list(double.params_json_schema["properties"]) == [key]
    assert double.invoke_sync(json.dumps({key: 4})) == 8


def test_a_default_can_be_any_pydantic_object() -> None:
    """Only `Field(...)` is a description; any other object is the value itself."""

    class FieldInfo:
        """A user class with the same name as the class of pydantic."""

    own = FieldInfo()

    @function_tool
    def show(key: SecretStr = SecretStr("tulip"), info: Any = own) -> bool:  # noqa: B008
        return key.get_secret_value() == "tulip" and info is own

    assert show.invoke_sync("{}") is True
    assert show.params_json_schema.get("required") is None


@pytest.mark.parametrize("text", ["{}", '{"a": null, "b": null, "c": null}'])
def test_a_default_in_field_is_passed_to_the_function(text: str) -> None:
    """The Python default is then a `FieldInfo` object, which is not a number."""

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


def test_a_default_factory_creates_a_new_value_for_each_call() -> None:
    """A shared list would carry values from one call to the next."""

    @function_tool
    def collect(into: list[int] = Field(default_factory=list)) -> int:  # noqa: B008
        into.append(1)
        return len(into)

    assert [collect.invoke_sync("{}") for _ in range(2)] == [1, 1]
    assert "into" not in collect.params_json_schema.get("required", [])


def test_extra_arguments_cannot_replace_declared_parameters() -> None:
    """Python would raise `got multiple values` for a parameter with an alias."""

    @function_tool
    def send(number: Annotated[int, Field(alias="n")] = 0, **rest: int) -> dict[str, Any]:
        return {"number": number, **rest}

    assert send.invoke_sync('{"n": 1, "x": 2}') == {"number": 1, "x": 2}
    assert send.invoke_sync('{"rest": 3}') == {
        "number": 0,
        "rest": 3,
    }  # the `**` name is free
    with pytest.raises(ModelBehaviorError, match="number: unknown, leave it out"):
        send.invoke_sync('{"n": 1, "number": 2}')


def test_the_name_of_a_positional_only_parameter_is_free_for_extra_arguments() -> None:
    """Python distinguishes the two, and so does a tool."""

    def send(to: str, /, **rest: int) -> dict[str, Any]:
        return {"first": to, **rest}

    tool = function_tool(functools.partial(send, "me"), name_override="send")
    assert tool.invoke_sync('{"to": 5}') == {"first": "me", "to": 5}


def test_types_with_the_same_name_are_distinguished() -> None:
    """Two modules can each have a `Place`; each parameter must reference its own."""

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


def test_a_field_can_change_its_own_schema() -> None:
    """As in pydantic, a dictionary is merged and a function is called."""

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
def test_a_refused_annotation_is_shown_as_in_the_source(annotation: Any, words: str) -> None:
    """The author can then search for the text of the annotation."""

    def go(a: Any) -> None: ...

    go.__annotations__["a"] = annotation
    with pytest.raises(UserError) as caught:
        function_schema(go)
    assert words in str(caught.value)
    assert f"{__file__}:{go.__code__.co_firstlineno}" in str(caught.value)


class Bare:
    """A class whose instances are callable but have no code object."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.__signature__ = inspect.Signature(
            [inspect.Parameter("a", inspect.Parameter.KEYWORD_ONLY, annotation=range)]
        )

    __call__ = print


def test_a_callable_without_source_is_named_by_its_module() -> None:
    """Covers callables written in C and callable instances."""
    with pytest.raises(UserError, match=rf"\({__name__}\.Bare\)"):
        function_schema(Bare(print), name_override="bare")


def test_names_in_annotations_are_resolved_where_the_function_was_defined() -> None:
    """Code run with `exec` has its own namespace but the module name of its caller."""
    space: dict[str, Any] = {"__name__": __name__}
    text = "from __future__ import annotations\nOwn = int\ndef double(a: Own): return 2 * a\n"
    exec(text, space)  # noqa: S102 - the text stands above
    double: Any = function_tool(space["double"])
    assert double.invoke_sync('{"a": 4}') == 8


class Loose(TypedDict, total=False):
    near: int
    far: Required[int]


def test_keys_of_a_non_total_typed_dict_are_optional_unless_required() -> None:
    """`total=False`, `Required` and `NotRequired` have the same meaning as for a type checker."""

    @function_tool
    def go(**options: Unpack[Loose]) -> dict[str, Any]:
        return dict(options)

    assert go.params_json_schema["required"] == ["far"]
    assert go.invoke_sync('{"far": 1}') == {"far": 1}
    with pytest.raises(ModelBehaviorError, match="far: missing"):
        go.invoke_sync('{"near": 1}')


Item = TypeVar("Item")


class Match(TypedDict, Generic[Item]):
    equals: Item
    other: NotRequired[list[Item]]


def test_a_typed_dict_with_type_arguments_can_be_unpacked() -> None:
    def go(**options: Unpack[Match[int]]) -> dict[str, Any]:
        return dict(options)

    tool = function_tool(go)
    assert tool.invoke_sync('{"equals": "1", "other": ["2"]}') == {"equals": 1, "other": [2]}


def test_the_type_parameters_of_a_class_are_known_in_its_methods() -> None:
    """`class Store[T]` defines them outside of the module and of the class."""

    class Store:
        def put(self, values: list[Kept]) -> int:  # type: ignore[name-defined]  # noqa: F821
            return len(values)

    Store.__type_params__ = (TypeVar("Kept"),)  # type: ignore[attr-defined]
    assert function_tool(Store().put).invoke_sync('{"values": "[1, 2]"}') == 2


def test_positional_arguments_of_mixed_types_are_refused() -> None:
    """A JSON array of arguments cannot express a type for each position."""

    def go(*parts: *tuple[int, str]) -> None: ...

    with pytest.raises(UserError, match=r"\*parts is annotated .*, a tuple of different types"):
        function_schema(go)


def test_bounds_apply_in_both_readers() -> None:
    """The fast and the careful argument reader enforce the same bounds."""

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


def test_two_parameters_with_the_same_name_are_refused() -> None:
    """A call could fill only one of them."""

    def weigh(a: Annotated[int, Field(alias="x")], b: Annotated[int, Field(alias="x")]) -> int:
        return a + b

    with pytest.raises(UserError, match="parameters 'a' and 'b' both have the name 'x'"):
        function_tool(weigh).build()
