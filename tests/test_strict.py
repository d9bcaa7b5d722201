"""The strict dialect: what becomes of a JSON Schema before constrained decoding sees it."""

from __future__ import annotations

import copy
from typing import Any, Literal, Optional, Union

import jsonschema_rs
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field, RootModel

from agents_tools import ensure_strict_json_schema
from agents_tools.errors import UserError
from agents_tools.schema.references import check_limits
from agents_tools.schema.strict import ANTHROPIC_STRICT, OPENAI_STRICT, to_strict


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


def of(**properties: Any) -> dict[str, Any]:
    """Make an object schema that requires all its properties."""
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def converted(schema: Any) -> Any:
    """Convert one property, required, and give what became of it."""
    return ensure_strict_json_schema(of(x=schema))["properties"]["x"]


def test_a_models_schema_becomes_strict() -> None:
    """The whole conversion at once: what a reader compares with the provider's documentation."""
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
                            "description": '(default "DE")',
                        },
                    },
                    "required": ["city", "country"],
                    "additionalProperties": False,
                },
                "stops": {
                    "title": "Stops",
                    "type": ["array", "null"],
                    "items": {"$ref": "#/$defs/Place"},
                    "description": "(default [])",
                },
                "kind": {
                    "title": "Kind",
                    "type": ["string", "null"],
                    "enum": ["car", "train", None],
                    "description": '(default "train")',
                },
                "seats": {"title": "Seats", "anyOf": [{"type": "integer"}, {"type": "null"}]},
                "name": {
                    "title": "Name",
                    "type": ["string", "null"],
                    "pattern": "^[a-z]+$",
                    "description": '(default "trip", minLength 2)',
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
                            "description": '(default "DE")',
                        },
                    },
                    "required": ["city", "country"],
                    "additionalProperties": False,
                }
            },
        }
    )


def test_the_input_is_left_alone() -> None:
    """A tool's schema is shared by all exports, so none may change it."""
    schema = Trip.model_json_schema()
    before = copy.deepcopy(schema)
    ensure_strict_json_schema(schema)["properties"]["kind"]["enum"].append("boat")
    assert schema == before


@pytest.mark.parametrize("model", [Node, Place, Trip])
def test_a_strict_schema_stays_as_it_is(model: type[BaseModel]) -> None:
    """Schemas pass through several hands; converting twice must not add a second note or null."""
    once = ensure_strict_json_schema(model.model_json_schema())
    assert ensure_strict_json_schema(once) == once


def test_recursion_is_kept_by_reference() -> None:
    """A tree has no other finite form, and OpenAI allows it."""
    strict = ensure_strict_json_schema(Node.model_json_schema())
    validator = jsonschema_rs.validator_for(strict)
    leaf = {"value": 1, "children": None, "parent": None}
    assert validator.is_valid({"value": 0, "children": [leaf, leaf], "parent": leaf})
    assert not validator.is_valid({"value": 0, "children": [{"value": 1}], "parent": None})


def test_a_recursive_root_may_refer_to_itself() -> None:
    """Hand-written schemas say `#` for the whole schema."""
    schema = of(name={"type": "string"}, inner={"anyOf": [{"$ref": "#"}, {"type": "null"}]})
    assert ensure_strict_json_schema(schema) == schema


def test_a_described_reference_is_written_out() -> None:
    """Strict mode refuses a `$ref` with company; both descriptions are kept."""
    schema = of(x={"$ref": "#/$defs/P", "description": "Where it begins."})
    schema["$defs"] = {"P": {"description": "Where it is.", **of(city={"type": "string"})}}
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
    """It cannot be written out, and the description must not be lost."""
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
def test_what_strict_mode_lacks_is_rewritten_or_told(schema: Any, expected: Any) -> None:
    """Nothing the author said may be lost silently: it is kept, rewritten or put into words."""
    assert converted(schema) == expected


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
def test_optional_properties_may_be_null_instead(schema: Any, nullable: Any) -> None:
    """All properties are required, so null is the only way left to say nothing."""
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
def test_what_may_be_null_already_gets_no_second_null(schema: Any) -> None:
    """A null there is the tool's own and must not look like one of ours."""
    whole = {
        "type": "object",
        "properties": {"x": schema},
        "$defs": {"Maybe": {"type": ["string", "null"]}},
    }
    assert to_strict(whole, OPENAI_STRICT)[1] is False


def test_parts_of_all_of_are_merged() -> None:
    """Inheritance in hand-written schemas is an `allOf`, which strict mode does not know."""
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


def test_choices_of_required_keys_are_told() -> None:
    """Common in tools of MCP servers: the keys are declared, only their combination is not sayable."""
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


def test_definitions_nobody_uses_are_left_out() -> None:
    """They cost tokens and can make a schema fail for nothing."""
    schema = {
        **of(x={"$ref": "#/definitions/A"}),
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


def test_a_reference_may_point_anywhere_in_the_schema() -> None:
    """Hand-written schemas refer to a sibling property; it becomes a definition."""
    schema = of(a={"type": "integer", "minimum": 1}, b={"$ref": "#/properties/a"})
    strict = ensure_strict_json_schema(schema)
    assert jsonschema_rs.validator_for(strict).is_valid({"a": 1, "b": 1})
    assert not jsonschema_rs.validator_for(strict).is_valid({"a": 1, "b": 0})


def test_a_parameterless_schema_is_an_empty_object() -> None:
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
            of(x=OPEN),
            snapshot(
                "#/properties/x, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            of(x={"type": "array", "items": of(y=OPEN)}),
            snapshot(
                "#/properties/x/items/properties/y, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            of(x={"type": "object"}),
            snapshot(
                "#/properties/x, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            {**of(x={"type": "string"}), "additionalProperties": True},
            snapshot(
                "the schema, which is an open map. Declare its keys (with a model, dataclass or TypedDict), or use a list of pairs"
            ),
        ),
        (
            of(x={}),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            of(x=True),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            of(x={"description": "Anything."}),
            snapshot("#/properties/x, which accepts a value of any type. Give it a type"),
        ),
        (
            of(x={"type": "array"}),
            snapshot("#/properties/x/items, which accepts a value of any type. Give it a type"),
        ),
        (
            {"type": "array", "items": {"type": "string"}},
            snapshot("the schema, which is not an object. Make it one"),
        ),
        (
            {"anyOf": [of(a={"type": "string"}), of(b={"type": "string"})]},
            snapshot("the schema, which offers alternatives at its root. Make it one object"),
        ),
        (
            of(x={"$ref": "https://example.org/s.json"}),
            snapshot(
                "the reference 'https://example.org/s.json' does not point into the schema itself; move its target to $defs"
            ),
        ),
        (
            of(x={"$ref": "#/$defs/Missing"}),
            snapshot("the target of the reference '#/$defs/Missing' does not exist in the schema"),
        ),
        (
            of(x={"enum": [{"a": 1}]}),
            snapshot(
                "#/properties/x, which lists objects or arrays as its values. Name them by strings"
            ),
        ),
        (
            of(x={"type": "text"}),
            snapshot(
                "#/properties/x, which has an unknown type 'text'. Use one of string, number, integer, boolean, object, array, null"
            ),
        ),
        (
            of(x={"allOf": [of(a={"type": "string"}), of(b={"type": "string"})]}),
            snapshot("#/properties/x, which has an allOf that cannot be merged. Write one schema"),
        ),
        (
            of(x={"allOf": [{"type": "string"}, {"type": "integer"}]}),
            snapshot("#/properties/x, which has 'type' twice (allOf). Write one schema"),
        ),
        (
            of(x={"type": "string", "$anchor": "a"}),
            snapshot("#/properties/x, which has its own $id or anchor. Use plain $defs and $ref"),
        ),
        (
            {"type": "object", "properties": {}, "required": ["a"]},
            snapshot("the schema, which requires 'a' but does not declare it. Declare it"),
        ),
        (
            {**of(x={"$ref": "#/$defs/A"}), "$defs": {"A": {"$ref": "#/$defs/A"}}},
            snapshot("the reference '#/$defs/A' points to itself"),
        ),
    ],
)
def test_a_refusal_names_the_place_and_the_remedy(schema: Any, message: str) -> None:
    """The author of a tool reads it, and must know what to change without reading the schema."""
    with pytest.raises(UserError) as caught:
        ensure_strict_json_schema(schema)
    text = str(caught.value)
    assert text.removeprefix(HEAD).removesuffix(TAIL).splitlines() == [message]


def test_a_refusal_is_a_sentence_and_what_to_do() -> None:
    """The texts of the table above, once in full."""
    with pytest.raises(UserError) as caught:
        ensure_strict_json_schema(of(x={}))
    assert (
        str(caught.value)
        == f"{HEAD}#/properties/x, which accepts a value of any type. Give it a type{TAIL}"
    )


def nested(levels: int) -> dict[str, Any]:
    """Make a schema of arrays within arrays."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = {"type": "array", "items": schema}
    return schema


@pytest.mark.parametrize("levels", [300, 5_000])
def test_a_schema_too_deep_is_refused(levels: int) -> None:
    """A hostile server's schema must not exhaust the stack of the process that lists its tools."""
    with pytest.raises(UserError, match=r"nested more than 200 levels deep|contains itself"):
        ensure_strict_json_schema(of(x=nested(levels)))


def test_a_schema_too_large_is_refused() -> None:
    """The work must stay bounded whatever a server sends."""
    with pytest.raises(UserError, match="more than 100,000 values"):
        check_limits({"enum": list(range(200_000))})


def test_a_schema_that_contains_itself_is_refused() -> None:
    """A cycle of Python objects is no JSON."""
    schema: dict[str, Any] = {"type": "array"}
    schema["items"] = schema
    with pytest.raises(UserError, match="contains itself"):
        ensure_strict_json_schema(of(x=schema))


def test_a_schema_with_foreign_values_is_refused() -> None:
    """A set or a class in a schema is a mistake that no provider could be sent."""
    with pytest.raises(UserError, match="contains only JSON values"):
        ensure_strict_json_schema(of(x={"enum": {1, 2}}))


def test_references_that_double_each_time_are_refused() -> None:
    """Thirty small definitions can stand for a billion nodes once they are written out."""
    pair: dict[str, Any] = {"type": "array", "prefixItems": [{"$ref": "", "description": "d"}] * 2}
    definitions: dict[str, Any] = {"D30": {"type": "string"}}
    for number in range(30):
        definition = copy.deepcopy(pair)
        for item in definition["prefixItems"]:
            item["$ref"] = f"#/$defs/D{number + 1}"
        definitions[f"D{number}"] = definition
    schema = {**of(x={"$ref": "#/$defs/D0", "description": "d"}), "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        ensure_strict_json_schema(schema)


def test_a_long_chain_of_references_is_refused_without_deep_recursion() -> None:
    """Each step of writing references out uses the stack."""
    definitions: dict[str, Any] = {
        f"D{number}": {"$ref": f"#/$defs/D{number + 1}", "description": "d"}
        for number in range(900)
    }
    definitions["D900"] = {"type": "string"}
    schema = {**of(x={"$ref": "#/$defs/D0", "description": "d"}), "$defs": definitions}
    with pytest.raises(UserError, match="expands without end"):
        ensure_strict_json_schema(schema)


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        (of(x={"enum": [f"v{n}" for n in range(1_001)]}), "1,000 enum values"),
        (of(**{f"p{n}": {"type": "string"} for n in range(5_001)}), "5,000 properties"),
        (of(**{f"{n:0200}": {"type": "string"} for n in range(700)}), "120,000 characters"),
    ],
)
def test_what_the_provider_would_refuse_for_its_size_is_refused_here(
    schema: Any, what: str
) -> None:
    """Better a warning for one tool at export than a failed request for all of them."""
    with pytest.raises(UserError, match=what):
        ensure_strict_json_schema(schema)


def test_objects_nested_deeper_than_the_provider_allows_are_refused() -> None:
    """As above, for depth."""
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(12):
        schema = of(x=schema)
    with pytest.raises(UserError, match="deeper than 10 objects"):
        ensure_strict_json_schema(schema)


def test_the_dialect_of_anthropic_keeps_optional_properties_optional() -> None:
    """It allows them, and counts every nullable one against a small budget."""
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


def test_the_dialect_of_anthropic_refuses_recursion() -> None:
    """Its grammar is not recursive; sending such a schema fails the request."""
    with pytest.raises(UserError, match="is recursive"):
        to_strict(Node.model_json_schema(), ANTHROPIC_STRICT)


def test_a_root_that_is_a_reference_is_written_out() -> None:
    """Pydantic gives a recursive model's schema that root, and providers ask for an object."""
    schema = RootModel[Union[Node]].model_json_schema()
    assert ensure_strict_json_schema(schema)["type"] == "object"
