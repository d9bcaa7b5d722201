"""Test the conversion of JSON Schemas to the strict dialect for constrained decoding."""

from __future__ import annotations

import copy
from typing import Annotated, Any, Literal, Optional, Union

import jsonschema_rs
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, RootModel

from agents_tools import ensure_strict_json_schema, function_tool, to_openai_responses
from agents_tools.errors import UserError
from agents_tools.schema.references import check_limits
from agents_tools.schema.strict import ANTHROPIC_STRICT, OPENAI_STRICT, to_strict
from agents_tools.wire.project import project


class Node(BaseModel):
    """A node of a tree."""

    value: int
    children: list[Node] = []
    parent: Optional[Node] = Field(default=None, description="None for the root.")


class Place(BaseModel):
    """Where it is."""

    city: str
    country: str = "DE"


class Trip(BaseModel):
    """What a tool takes."""

    start: Place = Field(description="Where it begins.")
    stops: list[Place] = []
    kind: Literal["car", "train"] = "train"
    seats: Optional[int] = None
    name: str = Field(default="trip", min_length=2, pattern="^[a-z]+$")


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return an object schema that requires all its properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def convert_property(schema: Any) -> Any:
    """Convert one required property and return its new schema."""
    return ensure_strict_json_schema(object_schema(x=schema))["properties"]["x"]


def test_the_schema_of_a_model_becomes_strict() -> None:
    """The whole conversion at once, to compare with the documentation of the provider."""
    assert ensure_strict_json_schema(Trip.model_json_schema()) == snapshot(
        {
            "title": "Trip",
            "description": "What a tool takes.",
            "type": "object",
            "properties": {
                "start": {
                    "title": "Place",
                    "description": """\
Where it begins.
Where it is.\
""",
                    "type": "object",
                    "properties": {
                        "city": {"title": "City", "type": "string"},
                        "country": {
                            "title": "Country",
                            "type": ["string", "null"],
                            "description": '(null: default "DE")',
                        },
                    },
                    "required": ["city", "country"],
                    "additionalProperties": False,
                },
                "stops": {
                    "title": "Stops",
                    "type": ["array", "null"],
                    "items": {"$ref": "#/$defs/Place"},
                    "description": "(null: default [])",
                },
                "kind": {
                    "title": "Kind",
                    "type": ["string", "null"],
                    "enum": ["car", "train", None],
                    "description": '(null: default "train")',
                },
                "seats": {"title": "Seats", "anyOf": [{"type": "integer"}, {"type": "null"}]},
                "name": {
                    "title": "Name",
                    "type": ["string", "null"],
                    "pattern": "^[a-z]+$",
                    "description": '(null: default "trip", minLength 2)',
                },
            },
            "required": ["start", "stops", "kind", "seats", "name"],
            "additionalProperties": False,
            "$defs": {
                "Place": {
                    "title": "Place",
                    "description": "Where it is.",
                    "type": "object",
                    "properties": {
                        "city": {"title": "City", "type": "string"},
                        "country": {
                            "title": "Country",
                            "type": ["string", "null"],
                            "description": '(null: default "DE")',
                        },
                    },
                    "required": ["city", "country"],
                    "additionalProperties": False,
                }
            },
        }
    )


def test_the_input_is_not_modified() -> None:
    """All exports share the schema of a tool, so none may change it."""
    schema = Trip.model_json_schema()
    before = copy.deepcopy(schema)
    ensure_strict_json_schema(schema)["properties"]["kind"]["enum"].append("boat")
    assert schema == before


@pytest.mark.parametrize("model", [Node, Place, Trip])
def test_a_strict_schema_is_unchanged(model: type[BaseModel]) -> None:
    """Converting a schema twice must not add a second note or null."""
    once = ensure_strict_json_schema(model.model_json_schema())
    assert ensure_strict_json_schema(once) == once


def test_recursion_is_expressed_by_reference() -> None:
    """A tree has no other finite form, and OpenAI allows references."""
    strict = ensure_strict_json_schema(Node.model_json_schema())
    validator = jsonschema_rs.validator_for(strict)
    leaf = {"value": 1, "children": None, "parent": None}
    assert validator.is_valid({"value": 0, "children": [leaf, leaf], "parent": leaf})
    assert not validator.is_valid({"value": 0, "children": [{"value": 1}], "parent": None})


def test_a_recursive_root_can_reference_itself() -> None:
    """Hand-written schemas use `#` for the whole schema."""
    schema = object_schema(
        name={"type": "string"}, inner={"anyOf": [{"$ref": "#"}, {"type": "null"}]}
    )
    assert ensure_strict_json_schema(schema) == schema


def test_a_described_reference_is_inlined() -> None:
    """Strict mode refuses a `$ref` with sibling keys; both descriptions are retained."""
    schema = object_schema(x={"$ref": "#/$defs/P", "description": "Where it begins."})
    schema["$defs"] = {
        "P": {"description": "Where it is.", **object_schema(city={"type": "string"})}
    }
    assert ensure_strict_json_schema(schema)["properties"]["x"] == snapshot(
        {
            "description": """\
Where it begins.
Where it is.\
""",
            "type": "object",
            "properties": {"city": {"type": "string"}},
            "required": ["city"],
            "additionalProperties": False,
        }
    )


def test_a_described_recursive_reference_is_wrapped() -> None:
    """It cannot be inlined, and the description must not be lost."""
    strict = ensure_strict_json_schema(Node.model_json_schema())
    parent = strict["$defs"]["Node"]["properties"]["parent"]
    assert parent == snapshot(
        {"description": "None for the root.", "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}]}
    )


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "string", "minLength": 3, "maxLength": 9},
            snapshot({"type": "string", "description": "(minLength 3, maxLength 9)"}),
        ),
        ({"type": "string", "format": "email"}, snapshot({"type": "string", "format": "email"})),
        (
            {"type": "string", "format": "uri", "description": "A link."},
            snapshot({"description": 'A link. (format "uri")', "type": "string"}),
        ),
        ({"type": "string", "pattern": "^a+$"}, snapshot({"type": "string", "pattern": "^a+$"})),
        (
            {"type": "string", "pattern": "^(?!a)b$"},
            snapshot({"type": "string", "description": '(pattern "^(?!a)b$")'}),
        ),
        (
            {"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2},
            snapshot({"type": "integer", "minimum": 1, "exclusiveMaximum": 9, "multipleOf": 2}),
        ),
        (
            {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            snapshot(
                {"type": "array", "items": {"type": "string"}, "description": "(uniqueItems)"}
            ),
        ),
        (
            {"type": "integer", "default": 10, "description": "How many."},
            snapshot({"description": "How many. (default 10)", "type": "integer"}),
        ),
        (
            {"type": "boolean", "default": False},
            snapshot({"type": "boolean", "description": "(default false)"}),
        ),
        ({"type": ["integer", "null"], "default": None}, snapshot({"type": ["integer", "null"]})),
        (
            {"type": "string", "deprecated": True, "examples": ["a"]},
            snapshot({"type": "string", "description": '(deprecated, examples ["a"])'}),
        ),
        (
            {"type": "string", "not": {"const": "a"}},
            snapshot({"type": "string", "description": '(not {"const":"a"})'}),
        ),
        (
            {"oneOf": [{"type": "string"}, {"type": "integer"}]},
            snapshot({"anyOf": [{"type": "string"}, {"type": "integer"}]}),
        ),
        (
            {"allOf": [{"type": "string"}], "description": "A name."},
            snapshot({"description": "A name.", "type": "string"}),
        ),
        (
            {"enum": ["a", 1, None]},
            snapshot({"type": ["string", "integer", "null"], "enum": ["a", 1, None]}),
        ),
        ({"const": True}, snapshot({"type": "boolean", "const": True})),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "number"}] * 2,
                "minItems": 2,
                "maxItems": 2,
            },
            snapshot({"type": "array", "items": {"type": "number"}, "minItems": 2, "maxItems": 2}),
        ),
        (
            {
                "type": "array",
                "prefixItems": [{"type": "string"}, {"type": "number"}],
                "minItems": 2,
            },
            snapshot(
                {
                    "type": "array",
                    "items": {"anyOf": [{"type": "string"}, {"type": "number"}]},
                    "maxItems": 2,
                    "minItems": 2,
                    "description": '(items in this order: {"type":"string"}, {"type":"number"})',
                }
            ),
        ),
        (
            {"type": "string", "x-order": 1, "readOnly": True, "$comment": "c"},
            snapshot({"type": "string"}),
        ),
        (
            {"type": "string", "anyOf": [{"format": "date"}, {"enum": ["today"]}]},
            snapshot(
                {
                    "anyOf": [
                        {"type": "string", "format": "date"},
                        {"type": "string", "enum": ["today"]},
                    ]
                }
            ),
        ),
    ],
)
def test_unsupported_keywords_are_rewritten_or_described(schema: Any, expected: Any) -> None:
    """No constraint may be lost silently: it is retained, rewritten or described in words."""
    assert convert_property(schema) == expected


@pytest.mark.parametrize(
    ("schema", "nullable"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        ({"type": ["string", "integer"]}, {"type": ["string", "integer", "null"]}),
        ({"type": "string", "enum": ["a"]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "string", "const": "a"}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"$ref": "#/$defs/D"}, {"anyOf": [{"$ref": "#/$defs/D"}, {"type": "null"}]}),
        (
            {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/D"}]},
            {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/D"}, {"type": "null"}]},
        ),
    ],
)
def test_optional_properties_become_nullable(schema: Any, nullable: Any) -> None:
    """All properties are required, so null is the only way to omit a value."""
    whole = {"type": "object", "properties": {"x": schema}, "$defs": {"D": {"type": "integer"}}}
    strict = ensure_strict_json_schema(whole)
    assert strict["properties"]["x"] == nullable
    assert strict["required"] == ["x"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": ["string", "null"]},
        {"enum": ["a", None]},
        {"anyOf": [{"type": "string"}, {"type": "null"}]},
        {"$ref": "#/$defs/Maybe"},
    ],
)
def test_a_nullable_property_gets_no_second_null(schema: Any) -> None:
    """A null that the tool allows must not be mistaken for an omitted value."""
    whole = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"Maybe": {"type": ["string", "null"]}},
    }
    assert to_strict(whole, OPENAI_STRICT)[1] is False


STRING = {"type": "string"}
CLOSED = {"type": "object", "properties": {"a": STRING}, "additionalProperties": False}


def test_parts_of_all_of_are_merged() -> None:
    """Hand-written schemas use `allOf` for inheritance, which strict mode does not support."""
    schema = {
        "allOf": [{"$ref": "#/$defs/Base"}, {"properties": {"b": {"type": "string"}}}],
        "$defs": {
            "Base": {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
        },
    }
    assert ensure_strict_json_schema(schema) == snapshot(
        {
            "type": "object",
            "properties": {"a": {"type": "string"}, "b": {"type": ["string", "null"]}},
            "required": ["a", "b"],
            "additionalProperties": False,
        }
    )


@pytest.mark.parametrize(
    "parts",
    [
        {"properties": {"a": STRING}, "allOf": [CLOSED]},
        {"allOf": [CLOSED, {"properties": {"a": STRING}}]},
        {"allOf": [CLOSED, CLOSED]},
        {"allOf": [CLOSED, {"required": ["a"]}, {"type": "object", "properties": {}}]},
    ],
    ids=["object and part", "closed first", "two closed", "required"],
)
def test_a_closed_part_of_all_of_is_merged_if_it_declares_every_property(parts: Any) -> None:
    """A closed part forbids what others declare in addition; here they declare nothing more."""
    strict = ensure_strict_json_schema({"type": "object", **parts})
    assert list(strict["properties"]) == strict["required"] == ["a"]
    assert strict["additionalProperties"] is False


def test_a_single_part_of_all_of_can_be_a_closed_empty_object() -> None:
    """Generators wrap a reference so that it can have a description."""
    empty = {"type": "object", "properties": {}, "additionalProperties": False}
    assert ensure_strict_json_schema({"allOf": [empty]}) == empty
    strict = ensure_strict_json_schema(object_schema(x={"allOf": [empty], "description": "None."}))
    assert strict["properties"]["x"] == {**empty, "description": "None."}


@pytest.mark.parametrize("ref", ["#/$defs/A", "#/$defs/Z"])
@pytest.mark.parametrize("place", ["property", "part", "root"])
def test_descriptions_along_a_chain_of_references_are_all_kept(ref: str, place: str) -> None:
    schema: Any = {
        "property": {"type": "object", "properties": {"x": {"$ref": ref}}},
        "part": {"type": "object", "properties": {"x": {"allOf": [{"$ref": ref}, {"title": "X"}]}}},
        "root": {"$ref": ref},
    }[place]
    definitions = {
        "Z": {"$ref": "#/$defs/A"},
        "A": {"$ref": "#/$defs/B", "description": "of the alias"},
        "B": {**CLOSED, "description": "of the type"},
    }
    text = str(ensure_strict_json_schema({**schema, "$defs": definitions}))
    assert "of the alias" in text
    assert "of the type" in text


def test_a_definition_can_have_the_name_of_a_keyword() -> None:
    strict = ensure_strict_json_schema(
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/$id"}},
            "required": ["x"],
            "$defs": {"$id": {"type": "string"}},
        }
    )
    assert strict == snapshot(
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/_id"}},
            "required": ["x"],
            "additionalProperties": False,
            "$defs": {"_id": {"type": "string"}},
        }
    )


def test_alternatives_of_required_keys_are_described() -> None:
    """Tools of MCP servers often have them; strict mode cannot express the combination of keys."""
    schema = {
        "type": "object",
        "properties": {
            "x": {
                "type": "object",
                "properties": {"id": {"type": "string"}, "url": {"type": "string"}},
                "anyOf": [{"required": ["id"]}, {"required": ["url"]}],
            }
        },
        "required": ["x"],
    }
    assert ensure_strict_json_schema(schema)["properties"]["x"] == snapshot(
        {
            "type": "object",
            "properties": {"id": {"type": ["string", "null"]}, "url": {"type": ["string", "null"]}},
            "required": ["id", "url"],
            "additionalProperties": False,
            "description": '(anyOf [{"required":["id"]},{"required":["url"]}])',
        }
    )


def test_unused_definitions_are_removed() -> None:
    """They cost tokens and can cause an unnecessary refusal."""
    schema = {
        **object_schema(x={"$ref": "#/definitions/A"}),
        "definitions": {"A": {"type": "string"}, "B": {}},
    }
    assert ensure_strict_json_schema(schema) == snapshot(
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/$defs/A"}},
            "required": ["x"],
            "additionalProperties": False,
            "$defs": {"A": {"type": "string"}},
        }
    )


def test_a_reference_can_point_anywhere_in_the_schema() -> None:
    """A sibling property that a schema references becomes a definition."""
    schema = object_schema(a={"type": "integer", "minimum": 1}, b={"$ref": "#/properties/a"})
    strict = ensure_strict_json_schema(schema)
    assert jsonschema_rs.validator_for(strict).is_valid({"a": 1, "b": 1})
    assert not jsonschema_rs.validator_for(strict).is_valid({"a": 1, "b": 0})


def test_a_parameterless_schema_becomes_an_empty_object() -> None:
    """Many servers describe a tool without parameters as a bare object."""
    assert ensure_strict_json_schema({"type": "object"}) == snapshot(
        {"type": "object", "properties": {}, "additionalProperties": False}
    )


HEAD = "OpenAI's strict mode cannot express "
TAIL = ", or turn strict mode off for the tool."
OPEN = {"type": "object", "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    ("schema", "message"),
    [
        (
            object_schema(x=OPEN),
            snapshot(
                "#/properties/x, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            object_schema(x={"type": "array", "items": object_schema(y=OPEN)}),
            snapshot(
                "#/properties/x/items/properties/y, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            object_schema(x={"type": "object"}),
            snapshot(
                "#/properties/x, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            {**object_schema(x={"type": "string"}), "additionalProperties": True},
            snapshot(
                "the schema, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            object_schema(x={}),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            object_schema(x=True),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            object_schema(x={"description": "Anything."}),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            object_schema(x={"type": "array"}),
            snapshot("#/properties/x/items, which accepts a value of any type. Give it a type"),
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            snapshot("the schema, which is not an object. Make it one"),
        ),
        (
            object_schema(x={"allOf": [{"const": True}, {"const": 1}]}),
            snapshot("#/properties/x, which has 'const' twice (allOf). Write one schema"),
        ),
        (
            object_schema(x={"const": True, "enum": [1]}),
            snapshot("#/properties/x, which has no possible value. Make const and enum agree"),
        ),
        (
            object_schema(x={"allOf": [CLOSED, {"properties": {"b": STRING}}]}),
            snapshot("#/properties/x, which has an allOf that cannot be merged. Write one schema"),
        ),
        (
            {"type": "object", "properties": []},
            snapshot(
                "the schema, which has 'properties' with a value that is not an object. Correct the schema"
            ),
        ),
        (
            {"anyOf": [object_schema(a={"type": "string"}), object_schema(b={"type": "string"})]},
            snapshot("the schema, which offers alternatives at its root. Make it one object"),
        ),
        (
            object_schema(x={"$ref": "https://example.org/s.json"}),
            snapshot(
                "the reference 'https://example.org/s.json' does not point into the schema itself; move its target to $defs"
            ),
        ),
        (
            object_schema(x={"$ref": "#/$defs/Missing"}),
            snapshot("the target of the reference '#/$defs/Missing' does not exist in the schema"),
        ),
        (
            object_schema(x={"enum": [{"a": 1}]}),
            snapshot(
                "#/properties/x, which lists objects or arrays as its values. Name them by strings"
            ),
        ),
        (
            object_schema(x={"type": "text"}),
            snapshot(
                "#/properties/x, which has an unknown type 'text'. Use one of string, number, integer, boolean, object, array, null"
            ),
        ),
        (
            object_schema(
                x={
                    "allOf": [
                        object_schema(a={"type": "string"}),
                        object_schema(b={"type": "string"}),
                    ]
                }
            ),
            snapshot("#/properties/x, which has an allOf that cannot be merged. Write one schema"),
        ),
        (
            object_schema(x={"allOf": [{"type": "string"}, {"type": "integer"}]}),
            snapshot("#/properties/x, which has 'type' twice (allOf). Write one schema"),
        ),
        (
            object_schema(x={"type": "string", "$anchor": "a"}),
            snapshot("#/properties/x, which has its own $id or anchor. Use plain $defs and $ref"),
        ),
        (
            {"type": "object", "properties": {}, "required": ["a"]},
            snapshot("the schema, which requires 'a' but does not declare it. Declare it"),
        ),
        (
            {**object_schema(x={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}},
            snapshot("the reference '#/$defs/A' points to itself"),
        ),
    ],
)
def test_a_refusal_names_the_location_and_the_remedy(schema: Any, message: str) -> None:
    """The author of a tool must know what to change without reading the schema."""
    with pytest.raises(UserError) as caught:
        ensure_strict_json_schema(schema)
    text = str(caught.value)
    assert text.removeprefix(HEAD).removesuffix(TAIL).splitlines() == [message]


@pytest.mark.parametrize("schema", [[], "object", None])
def test_a_schema_of_a_wrong_type_is_refused(schema: Any) -> None:
    with pytest.raises(UserError, match="expected as a dictionary, got a"):
        ensure_strict_json_schema(schema)


def test_a_refusal_has_a_sentence_and_a_remedy() -> None:
    """Shows one message of the table above in full."""
    with pytest.raises(UserError) as caught:
        ensure_strict_json_schema(object_schema(x={}))
    assert (
        str(caught.value)
        == f"{HEAD}#/properties/x, which accepts a value of any type. Give it a type{TAIL}"
    )


def nested_arrays(levels: int) -> dict[str, Any]:
    """Return a schema of nested arrays."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize("levels", [300, 5_000])
def test_a_schema_that_is_too_deep_is_refused(levels: int) -> None:
    """The schema of a hostile server must not overflow the stack of the client."""
    with pytest.raises(UserError, match=r"nested more than 200 levels deep|contains itself"):
        ensure_strict_json_schema(object_schema(x=nested_arrays(levels)))


def test_a_schema_that_is_too_large_is_refused() -> None:
    """The work must be bounded whatever a server sends."""
    with pytest.raises(UserError, match="more than 100,000 values"):
        check_limits({"enum": list(range(200_000))})


def test_a_schema_that_contains_itself_is_refused() -> None:
    """A cycle of Python objects is not JSON."""
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(UserError, match="contains itself"):
        ensure_strict_json_schema(object_schema(x=schema))


def test_a_schema_with_values_that_are_not_json_is_refused() -> None:
    """No provider could receive a set or a class in a schema."""
    with pytest.raises(UserError, match="contains only JSON values"):
        ensure_strict_json_schema(object_schema(x={"enum": {1, 2}}))


def test_references_that_double_at_each_level_are_refused() -> None:
    """Thirty small definitions can expand to a billion nodes."""
    pair: dict[str, Any] = {"type": "array", "prefixItems": [{"$ref": "", "description": "d"}] * 2}
    definitions: dict[str, Any] = {"D30": {"type": "string"}}
    for number in range(30):
        definition = copy.deepcopy(pair)
        for item in definition["prefixItems"]:
            item["$ref"] = f"#/$defs/D{number + 1}"
        definitions[f"D{number}"] = definition
    schema = {**object_schema(x={"$ref": "#/$defs/D0", "description": "d"}), "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        ensure_strict_json_schema(schema)


def test_a_long_chain_of_references_is_refused_without_deep_recursion() -> None:
    """Each step of inlining uses the stack."""
    definitions: dict[str, Any] = {
        f"D{number}": {"$ref": f"#/$defs/D{number + 1}", "description": "d"}
        for number in range(900)
    }
    definitions["D900"] = {"type": "string"}
    schema = {**object_schema(x={"$ref": "#/$defs/D0", "description": "d"}), "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        ensure_strict_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (object_schema(x={"enum": [f"v{n}" for n in range(1_001)]}), "1,000 enum values"),
        (object_schema(**{f"p{n}": {"type": "string"} for n in range(5_001)}), "5,000 properties"),
        (
            object_schema(**{f"{n:0200}": {"type": "string"} for n in range(700)}),
            "120,000 characters",
        ),
    ],
)
def test_a_schema_over_the_size_limits_of_the_provider_is_refused(schema: Any, what: str) -> None:
    """A warning for one tool at export is better than a failed request for all of them."""
    with pytest.raises(UserError, match=what):
        ensure_strict_json_schema(schema)


def test_a_schema_over_the_depth_limit_of_the_provider_is_refused() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = object_schema(x=schema)
    with pytest.raises(UserError, match="deeper than 10 objects"):
        ensure_strict_json_schema(schema)


def test_the_anthropic_dialect_retains_optional_properties() -> None:
    """Anthropic allows them, and it limits the number of nullable ones."""
    strict, nulls = to_strict(Trip.model_json_schema(), ANTHROPIC_STRICT)
    assert strict["required"] == ["start"]
    assert nulls is False
    assert strict["properties"]["name"] == snapshot(
        {
            "title": "Name",
            "type": "string",
            "default": "trip",
            "description": '(minLength 2, pattern "^[a-z]+$")',
        }
    )


def test_the_anthropic_dialect_refuses_recursion() -> None:
    """Its grammar is not recursive; a request with such a schema fails."""
    with pytest.raises(UserError, match="is recursive"):
        to_strict(Node.model_json_schema(), ANTHROPIC_STRICT)


def test_a_root_that_is_a_reference_is_inlined() -> None:
    """Pydantic creates such a root for a recursive model, and providers require an object."""
    schema = RootModel[Union[Node]].model_json_schema()
    assert ensure_strict_json_schema(schema)["type"] == "object"


async def test_the_schema_says_what_null_means_for_an_optional_parameter() -> None:
    """In strict mode no parameter can be omitted, so null is the only way to ask for a default."""

    @function_tool
    def book(
        seats: int = 1,
        row: int | None = 5,
        name: str | None = None,
        note: Annotated[str, "N."] = "",
    ) -> str:
        return repr((seats, row, name, note))

    definition = to_openai_responses(book)
    descriptions = {
        name: schema.get("description")
        for name, schema in definition["parameters"]["properties"].items()
    }
    assert definition["strict"] is True
    assert descriptions == {
        "seats": "(null: default 1)",
        "row": "(default 5, null: no value)",
        "name": None,
        "note": 'N. (null: default "")',
    }
    text = '{"seats": null, "row": null, "name": null, "note": null}'
    assert await book.on_invoke_tool(None, text) == "(1, None, None, '')"
    decoded = project(book, "openai_responses").decode(text)
    assert await book.on_invoke_tool(None, decoded) == "(1, None, None, '')"
