"""Changes between two lists of tools, and whether they break callers."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, strategies as st

from agents_tools.cli.options import PROVIDERS
from agents_tools.cli.schema import described
from agents_tools.cli.schema_text import DefinitionReader, describe_type, notes_on, parameters_of
from agents_tools.cli.target import load_tools
from agents_tools.errors import UserError
from agents_tools.wire.diff import SchemaChange, compare_schemas, compare_tools, read_tool_list
from tests.cli.conftest import FIXTURE

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Run


def changes(old: Any, new: Any) -> list[str]:
    """Compare one parameter `p`, and return the changes with breaking ones marked."""
    found = compare_schemas(
        {"type": "object", "properties": {"p": old}}, {"type": "object", "properties": {"p": new}}
    )
    return [("! " if change.breaking else "") + change.message for change in found]


INT, TEXT, NULL = {"type": "integer"}, {"type": "string"}, {"type": "null"}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (INT, INT, []),
        (INT, TEXT, ["! no longer accepts integer, only string", "now also accepts string"]),
        (INT, {"type": "number"}, ["now also accepts number"]),
        ({"type": "number"}, INT, ["! no longer accepts number, only integer"]),
        (INT, {"anyOf": [INT, NULL]}, ["now also accepts null"]),
        ({"anyOf": [INT, NULL]}, INT, ["! no longer accepts null, only integer"]),
        ({"type": ["integer", "null"]}, {"anyOf": [NULL, INT]}, []),
        (INT, {}, ["now accepts any value"]),
        ({}, INT, ["! no longer accepts any, only integer"]),
        ({"enum": ["a", "b"]}, {"enum": ["a"]}, ['! no longer accepts "b"']),
        ({"enum": ["a"]}, {"enum": ["a", "b"]}, ['now also accepts "b"']),
        (TEXT, {"enum": ["a"]}, ['! now accepts only "a"']),
        ({"enum": ["a"]}, TEXT, ["now accepts other values than those listed"]),
        ({"const": "a"}, {"enum": ["a"]}, []),
        ({**INT, "minimum": 1}, {**INT, "minimum": 2}, ["! minimum changed from 1 to 2"]),
        ({**INT, "minimum": 1}, {**INT, "minimum": 0}, ["minimum changed from 1 to 0"]),
        ({**INT, "maximum": 9}, INT, ["maximum 9 dropped"]),
        (INT, {**INT, "maximum": 9}, ["! maximum 9 added"]),
        (TEXT, {**TEXT, "minLength": 0}, ["minLength 0 added"]),
        (TEXT, {**TEXT, "pattern": "a+"}, ['! pattern "a+" added']),
        ({**INT, "multipleOf": 6}, {**INT, "multipleOf": 3}, ["multipleOf changed from 6 to 3"]),
        ({**INT, "multipleOf": 3}, {**INT, "multipleOf": 6}, ["! multipleOf changed from 3 to 6"]),
        (
            {"type": "array", "items": {"type": "number"}},
            {"type": "array", "items": INT},
            ["! no longer accepts number, only integer"],
        ),
        (
            {"type": "object", "additionalProperties": INT},
            {"type": "object", "additionalProperties": TEXT},
            ["! no longer accepts integer, only string", "now also accepts string"],
        ),
        (
            {"type": "object", "additionalProperties": True},
            {"type": "object", "additionalProperties": False},
            ["! no longer accepts other members"],
        ),
        ({**INT, "default": 1}, {**INT, "default": 2}, ["default changed from 1 to 2"]),
        ({**INT, "description": "a"}, {**INT, "description": "b"}, ["description changed"]),
    ],
)
def test_a_narrowed_value_breaks_and_a_widened_one_does_not(
    old: Any, new: Any, expected: list[str]
) -> None:
    """A call that was valid must stay valid."""
    assert changes(old, new) == expected


def test_added_and_removed_tools_and_parameters_are_reported() -> None:
    """Each is reported with its location."""

    def tool(name: str, properties: dict[str, Any], required: list[str]) -> dict[str, Any]:
        schema = {"type": "object", "properties": properties, "required": required}
        return {"name": name, "description": "", "parameters": schema}

    old = [tool("a", {"x": INT, "y": INT, "z": INT}, ["z"]), tool("gone", {}, [])]
    new = [tool("a", {"y": INT, "z": INT, "v": INT, "w": INT}, ["y", "w"]), tool("came", {}, [])]
    found = compare_tools(read_tool_list(old), read_tool_list(new))
    assert [(str(change), change.breaking) for change in found] == [
        ("a.x: parameter removed", True),
        ("a.y: became required", True),
        ("a.z: became optional", False),
        ("a.v: optional parameter added", False),
        ("a.w: required parameter added", True),
        ("gone: tool removed", True),
        ("came: tool added", False),
    ]


def test_members_of_referenced_and_recursive_schemas_are_compared() -> None:
    """A change deep in a model changes the tool, and recursion must end."""

    def schema(size: dict[str, Any]) -> dict[str, Any]:
        node = {
            "type": "object",
            "properties": {"size": size, "child": {"$ref": "#/$defs/Node"}},
        }
        return {
            "type": "object",
            "properties": {"node": {"$ref": "#/$defs/Node"}},
            "$defs": {"Node": node},
        }

    assert compare_schemas(schema(INT), schema({**INT, "maximum": 3})) == [
        SchemaChange(tool="", path="node.size", message="maximum 3 added", breaking=True)
    ]


@pytest.mark.parametrize("provider", [None, *PROVIDERS])
def test_every_form_that_schema_writes_can_be_compared(provider: str | None) -> None:
    """`--diff` reads the earlier output of the same command."""
    document = described(load_tools(FIXTURE), provider, strict=None)
    shapes = read_tool_list(json.loads(json.dumps(document)))
    assert [shape.name for shape in shapes][:2] == ["add", "echo"]
    assert set(shapes[0].parameters["properties"]) == {"a", "b"}
    assert compare_tools(shapes, shapes) == []


@pytest.mark.parametrize("document", [1, "x", [1], [{}], {"name": 5}])
def test_a_file_without_a_list_of_tools_is_rejected(document: Any) -> None:
    """With a wrong file, all tools would look new."""
    with pytest.raises(UserError):
        read_tool_list(document)


_kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "array"])
_leaves = st.one_of(
    st.builds(lambda kind: {"type": kind}, _kinds),
    st.builds(lambda values: {"enum": values}, st.lists(st.integers(0, 5), min_size=1)),
    st.builds(lambda low: {"type": "integer", "minimum": low}, st.integers(0, 3)),
    st.just({}),
)
_schemas = st.recursive(
    _leaves,
    lambda inner: st.one_of(
        st.builds(lambda arms: {"anyOf": arms}, st.lists(inner, min_size=1, max_size=3)),
        st.builds(lambda item: {"type": "array", "items": item}, inner),
        st.builds(
            lambda members: {"type": "object", "properties": members},
            st.dictionaries(st.sampled_from("abc"), inner),
        ),
    ),
    max_leaves=6,
)


@given(_schemas)
def test_a_schema_does_not_differ_from_itself(schema: dict[str, Any]) -> None:
    """There must be no false positives."""
    assert changes(schema, schema) == []


@given(_schemas)
def test_one_more_alternative_never_breaks(schema: dict[str, Any]) -> None:
    """The previous alternatives still accept what they accepted before."""
    found = changes(schema, {"anyOf": [schema, {"type": "string", "enum": ["new"]}]})
    assert not [message for message in found if message.startswith("!")]


def test_the_command_exits_1_on_a_breaking_change_only(run: Run, tmp_path: Path) -> None:
    """A pipeline uses the exit code."""
    old = tmp_path / "old.json"
    old.write_text(run("schema", "TOOLS").out)
    same = run("schema", "TOOLS", "--diff", str(old))
    assert (same.code, same.out) == (0, "no changes\n")

    tools = json.loads(old.read_text())
    tools[0]["description"] = "Another."
    old.write_text(json.dumps(tools))
    compatible = run("schema", "TOOLS", "add", "--diff", str(old))
    assert (compatible.code, compatible.out) == (0, "compatible  add: description changed\n")

    tools[0]["parameters"]["properties"]["c"] = {"type": "string"}
    old.write_text(json.dumps(tools))
    breaking = run("schema", "TOOLS", "--diff", str(old), "--json")
    assert breaking.code == 1
    assert breaking.json["breaking"] is True
    assert breaking.json["changes"][0]["path"] == "c"


def test_an_invalid_old_file_is_a_usage_error(run: Run, tmp_path: Path) -> None:
    """Exit code 1 would mean that the tools changed."""
    wrong = tmp_path / "old.json"
    assert run("schema", "TOOLS", "--diff", str(wrong)).code == 2
    wrong.write_text("{")
    assert run("schema", "TOOLS", "--diff", str(wrong)).code == 2


LOOP = {"$ref": "#/$defs/Loop"}
BOMB: dict[str, Any] = {f"L{n}": {"anyOf": [{"$ref": f"#/$defs/L{n + 1}"}] * 2} for n in range(60)}
ODD: list[dict[str, Any]] = [
    {"$defs": {"Loop": {"anyOf": [LOOP, LOOP]}}, "properties": {"p": LOOP}},
    {"$defs": {"Loop": {"allOf": [LOOP]}}, "properties": {"p": LOOP}},
    {"$defs": {**BOMB, "L60": INT}, "properties": {"p": {"$ref": "#/$defs/L0"}}},
    {"properties": {"p": {"type": [{"a": 1}], "enum": 3, "minimum": "x"}}, "required": 7},
    {"properties": {"p": {"anyOf": "x", "items": 1, "maximum": [], "pattern": {}}}},
    {"properties": [1], "required": [["p"]], "type": {"a": 1}},
]


@pytest.mark.requirement("S29")
@pytest.mark.parametrize("old", ODD)
@pytest.mark.parametrize("new", ODD)
def test_any_third_party_schema_can_be_compared(old: dict[str, Any], new: dict[str, Any]) -> None:
    """Recursive references end, and an invalid schema gives no findings."""
    compare_schemas(old, new)
    for schema in parameters_of(old).values():
        reader = DefinitionReader(old)
        assert isinstance(notes_on(reader, schema), list)
        assert isinstance(describe_type(reader, schema), str)
