"""Changes of single members of a JSON text keep the rest of the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agents_tools.cli.jsonc import remove_member, set_member
from agents_tools.mcp.config import parse_json

COMMENTED = """\
// The servers.
{
    "theme": "dark", /* a "comment" */
    "servers": {
        // The first one.
        "a": {"command": "x"}, // it works
        "b": {
            "command": "y",
        }, // and this one
    },
    "last": [1, "}", {"c": "//"}]
}
"""


def test_a_member_is_added_after_the_others() -> None:
    """Comments, order, trailing commas and the indentation stay."""
    assert set_member(COMMENTED, ("servers", "c"), {"command": "z"}) == snapshot("""\
// The servers.
{
    "theme": "dark", /* a "comment" */
    "servers": {
        // The first one.
        "a": {"command": "x"}, // it works
        "b": {
            "command": "y",
        }, // and this one
        "c": {
            "command": "z"
        }
    },
    "last": [1, "}", {"c": "//"}]
}
""")


def test_a_member_is_replaced_in_its_place() -> None:
    """Its comments stay too."""
    changed = set_member(COMMENTED, ("servers", "a"), {"command": "z"})
    assert '"a": {\n            "command": "z"\n        }, // it works' in changed
    assert set_member(changed, ("servers", "a"), {"command": "z"}) == changed


def test_missing_objects_are_added() -> None:
    """An empty file and an empty object get the same layout."""
    expected = '{\n  "servers": {\n    "a": 1\n  }\n}\n'
    assert set_member("", ("servers", "a"), 1) == expected
    assert set_member("{}\n", ("servers", "a"), 1) == expected
    assert set_member('{"servers": {}}', ("servers", "a"), 1) == ('{"servers": {\n    "a": 1\n  }}')


@pytest.mark.parametrize("name", ["a", "b"])
def test_a_member_is_removed_with_its_lines(name: str) -> None:
    """The other members and the comments stay."""
    changed = remove_member(COMMENTED, ("servers", name))
    other = "b" if name == "a" else "a"
    assert list(parse_json(changed)["servers"]) == [other]
    assert "// The first one." in changed
    assert remove_member(changed, ("servers", name)) == changed


def test_a_text_that_is_not_an_object_is_refused() -> None:
    """Nothing is guessed."""
    for text in ("[1]", '{"servers": [1]}', '{"servers": {"a"}}', '{"servers": {"a": '):
        with pytest.raises(ValueError, match=r"expected"):
            set_member(text, ("servers", "b"), 1)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    document=st.dictionaries(st.text(), st.dictionaries(st.text(), VALUES), max_size=4),
    section=st.sampled_from(["servers", "", '"', "//", "a,}"]),
    name=st.text(),
    value=VALUES,
    indent=st.sampled_from([None, 0, 2, "\t"]),
)
def test_a_change_has_the_effect_of_the_change_of_the_value(
    document: dict[str, Any], section: str, name: str, value: Any, indent: Any
) -> None:
    """For every document and layout, and a second change takes the first one back."""
    text = json.dumps(document, indent=indent, ensure_ascii=False)
    changed = set_member(text, (section, name), value)
    expected = {**document, section: {**document.get(section, {}), name: value}}
    assert json.loads(changed) == expected
    removed = remove_member(changed, (section, name))
    del expected[section][name]
    assert json.loads(removed) == expected
