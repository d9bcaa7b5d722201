"""Malformed JSON of a model is repaired if its meaning is clear, and marked."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from hypothesis import given, strategies as st

from agents_tools import NotifyStreamEvent, ToolStreamStartEvent, UserError, function_tool, listen
from agents_tools.policies import (
    ArgTransform,
    input_guardrail,
    needs_approval,
    repair_json,
    retry,
    transform,
)
from agents_tools.policies._repair import _load_repair, _repair_text


@repair_json()
@function_tool
async def tool(path: str = "/", count: int = 1, names: list[str] | None = None) -> str:
    """Return the arguments as text."""
    return f"{path} {count} {names}"


@pytest.mark.parametrize(
    ("text", "output"),
    [
        ('{"path": "/home/x",}', "/home/x 1 None"),
        ("{'path': '/home/x', 'count': 2}", "/home/x 2 None"),
        ('{path: "/home/x", count: 2}', "/home/x 2 None"),
        ("{path:'/home/x',count:2}", "/home/x 2 None"),
        ('```json\n{"path": "/home/x"}\n```', "/home/x 1 None"),
        ('```\n{"path": "/home/x",}\n```', "/home/x 1 None"),
        ('{"path": "/home/x", "names": None}', "/home/x 1 None"),
        ('{"path": "/home/x" "count": 2}', "/home/x 2 None"),
        ('{"path": "/home/x", // where\n "count": 2 /* how many */}', "/home/x 2 None"),
        ('{"path": "one\ntwo"}', "one\ntwo 1 None"),
        ('"{\\"path\\": \\"/home/x\\",}"', "/home/x 1 None"),
        ('\ufeff{"path": "/home/x"}', "/home/x 1 None"),
        ("{'names': ['None', 'True', \"it's\"],}", "/ 1 ['None', 'True', \"it's\"]"),
    ],
)
async def test_punctuation_is_repaired(text: str, output: str) -> None:
    """Cases from other libraries, which reject or silently change each of them."""
    outcome = await tool.call(None, text)
    assert (outcome.status, outcome.output) == ("ok", output)
    assert outcome.metadata is not None
    assert outcome.metadata["agents_tools"]["repaired_arguments"]


@pytest.mark.parametrize(
    "text",
    [
        '{"path": "/ho',
        '{"path": "/home/x"',
        '{"path": "/home/x", "names": ["a", "b"',
        '{"path": "/home/x", "names": ["a", "b"}',
        '{"names": ["}"]',
        '{"path": }',
        '{"path": "/a", "path": "/b",}',
        '{"path": "/a"} {"path": "/b"}',
        '[{"path": "/a"},]',
        'Sure! {"path": "/a"}',
        '{"path": "say "hi" now"}',
        "{'path': 'it's'}",
        '{"path": "C:\\path"}',
        '{"path": /a}',
        '{"count": NaN,}',
        '{"count": 01}',
        '{"count": 1 2}',
        '{"count": 1e999,}',
        '{"names": ["a",, "b"]}',
        '{"path": undefined}',
        '{"path": yes}',
        '{"path": "/a"; "count": 1}',
        '{"path" = "/a"}',
        "hello",
        "{,}",
        "{" * 100,
        "{'a':" * 70 + "1" + "}" * 70,
    ],
)
async def test_ambiguous_json_is_not_repaired(text: str) -> None:
    """A silent change of meaning is worse than an error; truncated text is an error."""
    outcome = await tool.call(None, text)
    assert outcome.status == "invalid_args"
    assert outcome.metadata is None


async def test_a_literal_before_a_stray_colon_keeps_its_type() -> None:
    """`true` is a value and does not become a string."""

    @repair_json()
    @function_tool
    async def switch(on: bool | str) -> str:
        return repr(on)

    outcome = await switch.call(None, '{"on": true:}')
    assert outcome.status == "invalid_args" or outcome.output == "True"


async def test_repaired_arguments_are_validated() -> None:
    """With the same errors as any arguments."""
    outcome = await tool.call(None, "{'count': 'many', 'pth': 1,}")
    assert outcome.status == "invalid_args"
    assert "count: expected an integer" in str(outcome.output)


async def test_valid_arguments_are_unchanged() -> None:
    """And no event is emitted."""
    async with listen() as events:
        outcome = await tool.call(None, '{ "path" : "/home/x" }')
    assert outcome.metadata is None
    assert not [event for event in events if isinstance(event, NotifyStreamEvent)]


async def test_a_repair_is_reported_as_an_event_and_in_the_metadata() -> None:
    async with listen() as events:
        outcome = await retry(2)(tool).call(None, '{"path": "/home/x",}')
    assert [event.type for event in events] == [
        "tool_stream_start_event",
        "notify_stream_event",
        "tool_stream_end_event",
    ]
    start, note, _ = events
    assert isinstance(start, ToolStreamStartEvent)
    assert start.input_args == {"path": "/home/x"}
    assert isinstance(note, NotifyStreamEvent)
    assert (note.level, note.tag) == ("warning", "repaired_arguments")
    assert outcome.metadata == {"agents_tools": {"repaired_arguments": '{"path": "/home/x",}'}}


async def test_approvals_and_guardrails_see_the_repaired_arguments() -> None:
    """In any order of the policies."""
    seen: list[dict[str, Any]] = []

    def look(_: Any, arguments: dict[str, Any]) -> None:
        seen.append(dict(arguments))

    for stack in (
        needs_approval(look)(input_guardrail(look)(tool)),
        repair_json()(needs_approval(look)(input_guardrail(look)(tool))),
        transform(path=ArgTransform(description="where"))(input_guardrail(look)(tool)),
    ):
        assert (await stack.call(None, "{'path': '/home/x'}")).status == "ok"
    assert seen == [{"path": "/home/x", "count": 1, "names": None}] * 5


async def test_without_strict_ambiguous_json_is_repaired_but_not_truncated_json() -> None:
    @repair_json(strict=False)
    @function_tool
    async def loose(path: str, count: int = 1) -> str:
        return f"{path} {count}"

    assert await loose.on_invoke_tool(None, 'Sure! {"path": "/a"}') == "/a 1"
    assert await loose.on_invoke_tool(None, '{"path": "say "hi" now"}') == 'say "hi" now 1'
    for text in ('{"path": "/ho', '{"path": "/a", "count": {"a": "}"}', '{"path": "/a"'):
        assert (await loose.call(None, text)).status == "invalid_args"


def test_a_missing_package_is_reported_with_the_install_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """At construction, not at the first malformed call."""
    monkeypatch.setitem(sys.modules, "json_repair", None)
    with pytest.raises(UserError, match=r"agents-tools\[repair\]"):
        repair_json()


_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


@given(value=st.dictionaries(st.text(max_size=5), _VALUES, max_size=4))
def test_the_python_repr_of_a_value_is_repaired(value: dict[str, Any]) -> None:
    """Models that were shown Python write it."""
    import ast
    import json

    repaired = _repair_text(repr(value), _load_repair(strict=True), strict=True)
    if repaired is not None:
        assert json.loads(repaired) == ast.literal_eval(repr(value))


@given(
    value=st.dictionaries(st.text(max_size=5), _VALUES, min_size=1, max_size=4),
    cut=st.integers(min_value=1, max_value=200),
)
def test_truncated_text_is_never_completed(value: dict[str, Any], cut: int) -> None:
    """At any position."""
    import json

    text = json.dumps(value)
    begun = text[: max(1, len(text) - cut)]
    assert _repair_text(begun, _load_repair(strict=True), strict=True) is None
