"""Command-line arguments parsed with a schema."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agents_tools.cli.arguments import arguments_json, parse_arguments
from agents_tools.cli.errors import CommandError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "dry_run": {"type": "boolean"},
        "maybe": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "string"}]},
        "choice": {"enum": ["red", 3, True]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"anyOf": [{"type": "array", "items": {"type": "integer"}}, {"type": "null"}]},
        "grid": {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
        "node": {"$ref": "#/$defs/Node"},
        "counts": {"type": "object", "additionalProperties": {"type": "integer"}},
        "any": {},
        "with.dot": {"type": "integer"},
    },
    "$defs": {
        "Node": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "size": {"type": "integer"},
                "child": {"$ref": "#/$defs/Node"},
            },
        }
    },
}


def parsed(*words: str) -> dict[str, Any]:
    """Parse words with the schema of this file."""
    return parse_arguments(SCHEMA, words)


def test_a_string_stays_a_string_whatever_it_looks_like() -> None:
    """Users do not quote a string that looks like a number or JSON."""
    for text in ("5", "true", "null", "[1]", '{"a": 1}', "", "a=b", " x "):
        assert parsed(f"text={text}") == {"text": text}


def test_values_are_parsed_according_to_the_schema() -> None:
    """`key=value` is parsed with the schema."""
    assert parsed(
        "count=5", "ratio=0.5", "dry_run=yes", "maybe=null", "either=7", "counts.a=1", "any=[1]"
    ) == snapshot(
        {
            "count": 5,
            "ratio": 0.5,
            "dry_run": True,
            "maybe": None,
            "either": 7,
            "counts": {"a": 1},
            "any": [1],
        }
    )


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("count=five", {"count": "five"}),
        ("count=5.0", {"count": "5.0"}),
        ("ratio=nan", {"ratio": "nan"}),
        ("ratio=1e999", {"ratio": "1e999"}),
        ("ratio=1_0", {"ratio": "1_0"}),
        ("dry_run=perhaps", {"dry_run": "perhaps"}),
        ("choice=green", {"choice": "green"}),
        ("count=" + "9" * 5000, {"count": "9" * 5000}),
    ],
)
def test_values_that_cannot_be_parsed_reach_the_tool_as_text(
    word: str, expected: dict[str, Any]
) -> None:
    """The tool reports what it expected; the command line does not guess or crash."""
    assert parsed(word) == expected


def test_choices_are_matched_by_their_spelling() -> None:
    """An enumeration can contain numbers and booleans as well as strings."""
    assert [parsed(f"choice={word}")["choice"] for word in ("red", "3", "true")] == ["red", 3, True]


def test_raw_json_is_passed_unchanged() -> None:
    """`key:=json` is raw even if the schema has another type."""
    assert parsed("text:=5", 'node:={"name": "x"}', "--count:=null") == {
        "text": 5,
        "node": {"name": "x"},
        "count": None,
    }


def test_a_repeated_key_makes_an_array() -> None:
    """This is the shell convention for lists."""
    assert parsed("tags=a", "tags=b") == {"tags": ["a", "b"]}
    assert parsed("tags=a") == {"tags": ["a"]}
    assert parsed("sizes=1", "sizes=2") == {"sizes": [1, 2]}
    assert parsed("sizes=[1,2]") == {"sizes": [1, 2]}
    assert parsed("sizes=[1,2]", "sizes=3") == {"sizes": [1, 2, 3]}
    assert parsed("grid=[1,2]", "grid=[3]") == {"grid": [[1, 2], [3]]}


def test_members_of_objects_are_set_by_their_path() -> None:
    """Nested objects need no JSON, and references in the schema are followed."""
    assert parsed("node.name=5", "node.child.size=6", "with.dot=7") == {
        "node": {"name": "5", "child": {"size": 6}},
        "with.dot": 7,
    }
    assert parsed('node:={"name": "a", "size": 1}', "node.size=2") == {
        "node": {"name": "a", "size": 2}
    }


def test_options_are_equivalent_to_key_value_words() -> None:
    """Other programs accept options in this form."""
    assert parsed(
        "--text", "-x", "--count=-5", "--dry-run", "--tags", "a", "--tags=b", "--node.size", "1"
    ) == {"text": "-x", "count": -5, "dry_run": True, "tags": ["a", "b"], "node": {"size": 1}}
    assert parsed("--no-dry-run") == {"dry_run": False}
    assert parsed("--dry-run", "false") == {"dry_run": False}
    is_open = {**SCHEMA, "additionalProperties": True}
    assert parse_arguments(is_open, ["--no-dry-run"]) == {"dry_run": False}
    assert parse_arguments(is_open, ["--no-more", "1"]) == {"no-more": 1}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("hello",), "'hello' is not an argument."),
        (("--txt", "a"), "unknown parameter --txt."),
        (("--text",), "--text needs a value."),
        (("count:=x",), "count:=x is not valid JSON"),
        (("count=1", "count=2"), "'count' appears 2 times: expected one value."),
        (("text=a", "text.b=1"), "'text.b' contradicts the earlier argument 'text'."),
    ],
)
def test_malformed_words_are_rejected(words: tuple[str, ...], message: str) -> None:
    """A typing error must not reach the tool."""
    with pytest.raises(CommandError) as caught:
        parsed(*words)
    assert message in str(caught.value)


def test_json_without_its_option_is_explained() -> None:
    """A user pastes the arguments of a model behind the name of the tool."""
    with pytest.raises(CommandError) as caught:
        parsed('{"text": "a"}')
    assert str(caught.value.hint).startswith("Write --input-json before the JSON. Parameters: ")


def test_an_unknown_option_is_reported_with_the_nearest_one() -> None:
    """This is the first message that a new user sees."""
    with pytest.raises(CommandError) as caught:
        parsed("--dry-runn")
    assert caught.value.hint == "Did you mean --dry-run?"


def test_an_open_schema_accepts_any_option() -> None:
    """A schema can allow additional properties."""
    assert parse_arguments({"type": "object", "additionalProperties": True}, ["--x", "1"]) == {
        "x": 1
    }


def test_json_input_alone_is_not_changed() -> None:
    """Duplicate keys and errors must reach the tool, which validates them as for a model."""
    assert arguments_json(SCHEMA, (), '{"a": 1, "a": 2,}') == '{"a": 1, "a": 2,}'


def test_words_add_to_json_input() -> None:
    """A saved call can be repeated with one change."""
    text = arguments_json(SCHEMA, ("count=2",), '{"text": "a", "count": 1}')
    assert json.loads(text) == {"text": "a", "count": 2}


@given(st.text(st.characters(codec="utf-8"), max_size=20), st.integers(), st.booleans())
def test_any_value_can_be_written_as_arguments(text: str, number: int, flag: bool) -> None:
    """The parsed value equals the original, whatever characters it has."""
    words = [f"text={text}", f"count={number}", f"dry_run={flag}", f"any:={json.dumps(text)}"]
    assert json.loads(arguments_json(SCHEMA, words, None)) == {
        "text": text,
        "count": number,
        "dry_run": flag,
        "any": text,
    }


@given(st.lists(st.text(max_size=12), max_size=6))
def test_no_words_crash_the_parser(words: list[str]) -> None:
    """Any input gives arguments or one clear message."""
    with contextlib.suppress(CommandError):
        arguments_json(SCHEMA, words, None)
