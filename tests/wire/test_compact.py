"""Test that compact schemas use fewer tokens and keep their meaning."""

from __future__ import annotations

import copy
from enum import Enum
from typing import Annotated, Any, Literal, Optional, Union

import jsonschema_rs
import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from agents_tools.errors import UserError
from agents_tools.wire.compact import FULL_JSON_SCHEMA, CompactForm, compact

INLINED = CompactForm(inline_refs=True)


class Color(Enum):
    """A color."""

    RED = "red"
    BLUE = "blue"


class Point(BaseModel):
    """A point."""

    x: float
    y: float
    label: Optional[str] = None


class Tree(BaseModel):
    """A tree."""

    name: str
    branches: list[Tree] = []


class Drawing(BaseModel):
    """What a tool takes."""

    origin: Point = Field(description="Where it starts.")
    corners: list[Point]
    color: Color = Color.RED
    fill: Optional[Color] = None
    width: Annotated[int, Field(ge=1)] = 1
    style: Literal["plain"] = "plain"
    label: Optional[str] = Field(default=None, title="A caption")
    scale: Union[int, str] = 1
    rotation: Optional[float]


def object_schema(**properties: Any) -> dict[str, Any]:
    """Return an object schema that requires all its properties."""
    return {"type": "object", "properties": properties, "required": list(properties)}


def compact_property(schema: Any, form: CompactForm = FULL_JSON_SCHEMA) -> Any:
    """Compact one required property and return its schema."""
    return compact(object_schema(x=schema), form)["properties"]["x"]


def test_the_schema_of_a_model_becomes_shorter() -> None:
    """All steps at once, to compare with the schema of pydantic."""
    assert compact(Drawing.model_json_schema(), FULL_JSON_SCHEMA) == snapshot(
        {
            "description": "What a tool takes.",
            "properties": {
                "origin": {"$ref": "#/$defs/Point", "description": "Where it starts."},
                "corners": {"items": {"$ref": "#/$defs/Point"}, "type": "array"},
                "color": {"description": "A color.", "enum": ["red", "blue"], "default": "red"},
                "fill": {"description": "A color.", "enum": ["red", "blue"]},
                "width": {"default": 1, "minimum": 1, "type": "integer"},
                "style": {"const": "plain", "default": "plain"},
                "label": {"title": "A caption", "type": "string"},
                "scale": {"default": 1, "type": ["integer", "string"]},
                "rotation": {"type": ["number", "null"]},
            },
            "required": ["origin", "corners", "rotation"],
            "type": "object",
            "additionalProperties": False,
            "$defs": {
                "Point": {
                    "description": "A point.",
                    "properties": {
                        "x": {"type": "number"},
                        "y": {"type": "number"},
                        "label": {"type": "string"},
                    },
                    "required": ["x", "y"],
                    "type": "object",
                    "additionalProperties": False,
                }
            },
        }
    )


def test_the_input_is_not_modified() -> None:
    """All exports share the schema of a tool, so none may change it."""
    schema = Drawing.model_json_schema()
    before = copy.deepcopy(schema)
    compact(schema, FULL_JSON_SCHEMA)
    compact(schema, INLINED)
    assert schema == before


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, {"type": ["string", "null"]}),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, {"type": ["string", "integer"]}),
        ({"type": "string", "enum": ["a", "b"]}, {"enum": ["a", "b"]}),
        ({"type": "string", "const": "a"}, {"const": "a"}),
        ({"anyOf": [{"type": "string", "const": "a"}, {"type": "null"}]}, {"enum": ["a", None]}),
        (
            {
                "anyOf": [{"type": "string", "description": "in"}, {"type": "null"}],
                "description": "out",
            },
            {"type": ["string", "null"], "description": "out\nin"},
        ),
        (
            {"allOf": [{"type": "string"}], "description": "d"},
            {"type": "string", "description": "d"},
        ),
        ({"type": "string", "title": "X"}, {"type": "string"}),
        ({"type": "string", "title": "Chosen"}, {"type": "string", "title": "Chosen"}),
        ({"type": "integer", "default": 3}, {"type": "integer", "default": 3}),
        (
            {"default": {"title": "X", "default": None}},
            {"default": {"title": "X", "default": None}},
        ),
    ],
)
def test_redundant_keywords_are_shortened(schema: Any, expected: Any) -> None:
    """Tests each step separately; values such as a default are not schemas and stay the same."""
    assert compact_property(schema) == expected


@pytest.mark.parametrize(
    "schema",
    [
        {"anyOf": [{"not": {"const": "a"}, "type": "string"}, {"type": "null"}]},
        {"anyOf": [{"type": "string"}, {"type": "string", "minLength": 2}]},
        {"anyOf": [{"type": "string"}, True]},
        {"allOf": [{"minLength": 2}], "type": "string"},
    ],
)
def test_keywords_that_carry_meaning_stay(schema: Any) -> None:
    """Compacting must not change the meaning."""
    assert compact_property(schema) == schema


def test_a_null_default_is_expressed_only_by_omission() -> None:
    """A null alternative next to an optional key costs tokens without information."""
    schema = object_schema()
    schema["properties"] = {
        "a": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
        "b": {"enum": ["x", None], "default": None},
        "c": {"type": ["string", "integer", "null"], "default": None},
        "d": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": "x"},
        "e": {"type": "null", "default": None},
    }
    del schema["required"]
    assert compact(schema, FULL_JSON_SCHEMA)["properties"] == snapshot(
        {
            "a": {"type": "string"},
            "b": {"enum": ["x"]},
            "c": {"type": ["string", "integer"]},
            "d": {"default": "x", "type": ["string", "null"]},
            "e": {"type": "null"},
        }
    )


def test_a_definition_used_once_is_inlined() -> None:
    """Its name and the reference cost tokens without information."""
    schema = {
        **object_schema(x={"$ref": "#/$defs/A"}),
        "$defs": {"A": object_schema(y={"type": "string"})},
    }
    assert "$defs" not in compact(schema, FULL_JSON_SCHEMA)


def test_a_large_definition_used_twice_is_shared() -> None:
    """Inlining it twice would cost more than its name."""
    big = object_schema(**{f"field_{n}": {"type": "string"} for n in range(9)})
    schema = {
        **object_schema(x={"$ref": "#/$defs/A"}, y={"$ref": "#/$defs/A"}),
        "$defs": {"A": big, "B": big},
    }
    short = compact(schema, FULL_JSON_SCHEMA)
    assert short["properties"] == {"x": {"$ref": "#/$defs/A"}, "y": {"$ref": "#/$defs/A"}}
    assert list(short["$defs"]) == ["A"]


def test_a_small_definition_used_twice_is_inlined() -> None:
    """An enumeration of two words is shorter than a reference to it."""
    schema = {
        **object_schema(x={"$ref": "#/$defs/Color"}, y={"$ref": "#/$defs/Color"}),
        "$defs": {"Color": {"enum": ["red", "blue"], "type": "string", "title": "Color"}},
    }
    assert compact(schema, FULL_JSON_SCHEMA)["properties"]["y"] == {"enum": ["red", "blue"]}


def test_a_recursive_definition_keeps_its_reference() -> None:
    """No other finite form has the same meaning."""
    short = compact(Tree.model_json_schema(), FULL_JSON_SCHEMA)
    validator = jsonschema_rs.validator_for(short)
    assert validator.is_valid(
        {"name": "a", "branches": [{"name": "b", "branches": [{"name": "c"}]}]}
    )
    assert not validator.is_valid({"name": "a", "branches": [{"name": "b", "branches": [{}]}]})


@pytest.mark.requirement("A73")
def test_references_are_inlined_for_models_that_cannot_follow_them() -> None:
    """Some models read `$ref` as text."""
    short = compact(Drawing.model_json_schema(), INLINED)
    assert "$ref" not in str(short)
    assert "$defs" not in short
    assert short["properties"]["corners"]["items"] == snapshot(
        {
            "description": "A point.",
            "properties": {
                "x": {"type": "number"},
                "y": {"type": "number"},
                "label": {"type": "string"},
            },
            "required": ["x", "y"],
            "type": "object",
            "additionalProperties": False,
        }
    )


@pytest.mark.requirement("A73")
def test_a_recursive_type_is_cut_with_a_note() -> None:
    """Inlining would not end; the note tells the model that the structure repeats."""
    tree = {
        **object_schema(root={"$ref": "#/$defs/Tree"}),
        "$defs": Tree.model_json_schema()["$defs"],
    }
    assert compact(tree, INLINED) == snapshot(
        {
            "type": "object",
            "properties": {
                "root": {
                    "description": "A tree.",
                    "properties": {
                        "name": {"type": "string"},
                        "branches": {
                            "default": [],
                            "items": {
                                "description": "A tree.",
                                "properties": {
                                    "name": {"type": "string"},
                                    "branches": {
                                        "default": [],
                                        "items": {
                                            "description": "A nested Tree with the same structure as its parent.",
                                            "type": "object",
                                        },
                                        "type": "array",
                                    },
                                },
                                "required": ["name"],
                                "type": "object",
                                "additionalProperties": False,
                            },
                            "type": "array",
                        },
                    },
                    "required": ["name"],
                    "type": "object",
                    "additionalProperties": False,
                }
            },
            "required": ["root"],
            "additionalProperties": False,
        }
    )


def test_a_recursive_root_is_cut_too() -> None:
    """Hand-written schemas use `#` for the whole schema."""
    schema = object_schema(name={"type": "string"}, inner={"$ref": "#"})
    short = compact(schema, INLINED)
    assert "$ref" not in str(short)
    assert jsonschema_rs.validator_for(short).is_valid(
        {"name": "a", "inner": {"name": "b", "inner": {"name": "c", "inner": {"any": "thing"}}}}
    )


def test_a_type_that_recurs_in_many_places_is_cut_earlier() -> None:
    """Each level multiplies by the number of places, and each copy costs tokens."""
    node = object_schema(**{f"n{n}": {"$ref": "#/$defs/N"} for n in range(12)})
    short = compact({**object_schema(x={"$ref": "#/$defs/N"}), "$defs": {"N": node}}, INLINED)
    assert str(short).count("A nested N") == 12


def test_references_that_multiply_are_refused() -> None:
    """Thirty small definitions can expand to a billion parts."""
    definitions: dict[str, Any] = {"D30": {"type": "string"}}
    for number in range(30):
        to = {"$ref": f"#/$defs/D{number + 1}"}
        definitions[f"D{number}"] = object_schema(a=to, b=to)
    schema = {**object_schema(x={"$ref": "#/$defs/D0"}), "$defs": definitions}
    assert compact(schema, FULL_JSON_SCHEMA)["$defs"]
    with pytest.raises(UserError, match="more than 20,000 parts after its references are inlined"):
        compact(schema, INLINED)


@pytest.mark.parametrize("form", [FULL_JSON_SCHEMA, INLINED])
def test_objects_with_listed_properties_are_closed(form: CompactForm) -> None:
    """Models invent keys unless the schema forbids it."""
    short = compact(
        object_schema(x=object_schema(y={"type": "string"}), z={"type": "object"}), form
    )
    assert short["additionalProperties"] is False
    assert short["properties"]["x"]["additionalProperties"] is False
    assert short["properties"]["z"] == {"type": "object"}


@pytest.mark.parametrize(
    "schema",
    [
        {"allOf": [object_schema(a={"type": "string"}), object_schema(b={"type": "string"})]},
        {"allOf": [{"$ref": "#/$defs/A"}, object_schema(b={"type": "string"})]},
        {
            **object_schema(a={"type": "string"}),
            "anyOf": [object_schema(b={"type": "string"}), object_schema(b={"type": "number"})],
        },
        {**object_schema(b={"type": "string"}), "$ref": "#/$defs/A"},
        {
            **object_schema(a={"type": "string"}),
            "if": object_schema(a={"const": "1"}),
            "then": object_schema(b={"type": "string"}),
        },
        {"not": object_schema(c={"type": "string"}), "type": "object"},
    ],
)
@pytest.mark.parametrize("form", [FULL_JSON_SCHEMA, INLINED])
def test_objects_in_combinations_stay_open(schema: Any, form: CompactForm) -> None:
    """Closing one part of a combination would forbid the properties of another part."""
    whole = {
        **object_schema(x=schema, again={"$ref": "#/$defs/A"}),
        "$defs": {"A": object_schema(a={"type": "string"})},
    }
    arguments = {"x": {"a": "1", "b": "2"}, "again": {"a": "1"}}
    assert jsonschema_rs.validator_for(whole).is_valid(arguments)
    assert jsonschema_rs.validator_for(compact(whole, form)).is_valid(arguments)


def test_a_negated_schema_is_not_closed() -> None:
    """Closing the schema inside `not` would accept more values."""
    schema = {"type": "object", "not": object_schema(c={"type": "string"})}
    validator = jsonschema_rs.validator_for(compact(object_schema(x=schema), FULL_JSON_SCHEMA))
    assert not validator.is_valid({"x": {"c": "1", "d": "2"}})


def test_unresolvable_references_leave_the_schema_unchanged() -> None:
    """The provider may know an external reference."""
    schema = object_schema(x={"$ref": "https://example.org/s.json", "title": "X"})
    assert compact(schema, FULL_JSON_SCHEMA) == schema


def test_a_reference_can_point_anywhere_in_the_schema() -> None:
    """Its target can move when the schema is rewritten."""
    x = {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None}
    schema = {
        "type": "object",
        "properties": {"x": x, "y": {"$ref": "#/properties/x/anyOf/0"}},
    }
    validator = jsonschema_rs.validator_for(compact(schema, FULL_JSON_SCHEMA))
    assert validator.is_valid({"y": 1})
    assert not validator.is_valid({"y": 0})


def test_constraints_that_a_provider_ignores_are_described() -> None:
    """A model can only respect constraints that it reads."""
    form = CompactForm(
        keywords=frozenset({"minimum", "maximum"}), null_literals=False, bare_literals=False
    )
    schema = object_schema(
        a={"type": "string", "minLength": 2, "description": "A name."},
        b={"type": "integer", "exclusiveMinimum": 0, "default": 3},
        c={"type": "string", "const": "x"},
        d={"type": "boolean", "const": True},
        e={"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]},
    )
    assert compact(schema, form)["properties"] == snapshot(
        {
            "a": {"type": "string", "description": "A name. (minLength 2)"},
            "b": {"type": "integer", "minimum": 1, "description": "(default 3)"},
            "c": {"type": "string", "enum": ["x"]},
            "d": {"type": "boolean", "description": "(const true)"},
            "e": {"anyOf": [{"type": "string", "enum": ["a", "b"]}, {"type": "null"}]},
        }
    )
