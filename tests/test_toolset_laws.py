"""The laws of toolsets: what holds of their methods, whatever the tools are."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, strategies as st

from agents_tools import Agent, FunctionTool
from agents_tools.content import MessageInputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.policies import rename
from agents_tools.tool.declaration import Policy
from agents_tools.toolset import Toolset, tool_search
from tests.test_toolset import make_tool, names

_SIGNS = st.sampled_from("abcXYZ019_-")
NAMES = st.text(_SIGNS, min_size=1, max_size=64)
PREFIXES = st.text(_SIGNS, min_size=1, max_size=12)
TOOLS = st.lists(NAMES, max_size=6, unique=True).map(
    lambda given: [make_tool(name) for name in given]
)
PATTERNS = st.sampled_from(["*", "a*", "*_*", "?", "*[0-9]", "X??*"])


def around(name: str) -> Any:
    """Make a policy that does nothing but be there."""
    policy = Policy(name=name, wrap=lambda inner: inner)
    return lambda tool: tool.with_(policy=policy)


def shown(toolset: Toolset) -> list[str]:
    """Give the tools with their policies."""
    return [repr(tool) for tool in toolset]


@given(TOOLS, st.integers(0, 6), st.integers(0, 6))
def test_it_does_not_matter_how_toolsets_are_combined(
    tools: list[Any], one: int, other: int
) -> None:
    """(a + b) + c is a + (b + c) is all at once; nothing added changes nothing; twice is once."""
    one, other = sorted((one, other))
    a, b, c = Toolset(tools[:one]), Toolset(tools[one:other]), Toolset(tools[other:])
    whole = list(Toolset(tools))
    assert list(a.combine(b).combine(c)) == list(a.combine(b.combine(c))) == whole
    assert list(a.combine(b, c)) == list(Toolset(a, [b, [c]])) == whole
    assert list(a.combine()) == list(Toolset().combine(a)) == list(a.combine(a)) == list(a)


@given(TOOLS, PREFIXES)
def test_a_prefix_can_be_taken_off_again(tools: list[Any], prefix: str) -> None:
    """Names that fit come back as they were; all others stay apart from each other."""
    whole = Toolset(tools).prefix(prefix)
    assert len(set(names(whole))) == len(tools)
    assert all(len(tool.name) <= 64 for tool in whole)
    fitting = Toolset(tools).filter(lambda tool: len(prefix) + len(tool.name) <= 64)
    back = fitting.prefix(prefix).rename(lambda name: name.removeprefix(prefix))
    assert names(back) == names(fitting)
    assert [tool.json_schema for tool in back] == [tool.json_schema for tool in fitting]
    if all(len(prefix) * 2 + len(tool.name) <= 64 for tool in tools):
        assert names(whole.prefix(prefix)) == names(Toolset(tools).prefix(prefix + prefix))


@given(TOOLS, st.randoms(use_true_random=False))
def test_names_can_be_exchanged_and_exchanged_back(tools: list[Any], random: Any) -> None:
    """All of them change at once, so that they may take each other's."""
    old = names(tools)
    new = random.sample(old, len(old))
    there = Toolset(tools).rename(dict(zip(old, new, strict=True)))
    assert names(there) == new
    assert names(there.rename(dict(zip(new, old, strict=True)))) == old


@given(TOOLS, PATTERNS, PATTERNS)
def test_a_filter_keeps_what_it_keeps_and_its_order(tools: list[Any], one: str, other: str) -> None:
    """Twice is once, and two may be exchanged; the tools themselves stay the same objects."""
    whole = Toolset(tools)
    kept = list(whole.filter(one))
    assert list(whole.filter(one).filter(one)) == kept
    assert [tool for tool in tools if tool in kept] == kept
    assert list(whole.filter(one).filter(other)) == list(whole.filter(other).filter(one))
    either = set(whole.filter(one)) | set(whole.filter(other))
    assert set(whole.filter(one, other)) == either


@given(TOOLS, PATTERNS)
def test_policies_go_around_in_the_order_they_are_given(tools: list[Any], pattern: str) -> None:
    """The last is the outermost; it does not matter whether tools are chosen before or after."""
    whole = Toolset(tools)
    both = whole.map(around("inner")).map(around("outer"))
    assert shown(both) == shown(whole.map(lambda tool: around("outer")(around("inner")(tool))))
    assert shown(both) == [f"<FunctionTool {tool.name!r} + inner + outer>" for tool in tools]
    chosen = whole.map(around("inner")).filter(pattern)
    assert shown(chosen) == shown(whole.filter(pattern).map(around("inner")))
    assert shown(whole.map(lambda tool: tool)) == shown(whole)
    assert names(whole.map(lambda tool: rename(f"{tool.name[:60]}_{tool.name[60:]}")(tool))) == [
        f"{name[:60]}_{name[60:]}" for name in names(whole)
    ]


@given(TOOLS.filter(bool))
def test_a_policy_around_a_search_is_one_around_what_it_finds(tools: list[Any]) -> None:
    """`tool_search(tools).map(policy)` is `tool_search(tools.map(policy))`."""
    options: Any = {"name": "zz-search", "call_name": "zz-call"}
    for mode in ("proxy", "reveal"):
        after = tool_search(tools, mode=mode, **options).map(around("p")).map(around("q"))
        before = tool_search(Toolset(tools).map(around("p")).map(around("q")), mode=mode, **options)
        boxes = [asyncio.run(Agent("x", tools=[given]).toolbox(None)) for given in (after, before)]
        one, other = ([repr(tool) for tool in (*box.offered, *box.hidden)] for box in boxes)
        assert one == other
        for tool in tools:
            call = ToolCallItem(call_id="1", name=tool.name, arguments="{}")
            found, again = (box.resolve(call)[0] for box in boxes)
            assert repr(found) == repr(again) == f"<FunctionTool {tool.name!r} + p + q>"


@given(TOOLS, PATTERNS)
def test_what_comes_out_is_the_same_object_each_time(tools: list[Any], pattern: str) -> None:
    """Whatever is asked of a toolset, and however it was asked."""
    whole = Toolset(tools).prefix("p_").map(around("x")).defer().filter(f"p_{pattern}")
    assert asyncio.run(whole.get_tools()) is asyncio.run(whole.get_tools())
    assert list(whole) == list(asyncio.run(whole.get_tools()))
    assert list(whole.defer()) == list(whole)


@given(
    st.lists(st.sampled_from([f"t{n}" for n in range(8)]), max_size=12),
    st.integers(1, 4),
    st.booleans(),
)
def test_a_list_of_revealed_tools_only_grows_at_its_end(
    steps: list[str], bound: int, two: bool
) -> None:
    """For any conversation, with one search or two: what prompt caches hang on."""
    tools = [make_tool(f"t{n}", f"Thing {n}.") for n in range(8)]
    parts: list[list[FunctionTool[..., Any]]] = [tools[:4], tools[4:]] if two else [tools]
    searches = [
        tool_search(part, name=f"s{n}", call_name=f"c{n}", mode="reveal", max_revealed=bound)
        for n, part in enumerate(parts)
    ]
    agent = Agent("x", tools=[*searches, make_tool("own")])
    history: list[Any] = [MessageInputItem(content="go")]
    before: tuple[Any, ...] = ()
    for number, name in enumerate(steps):
        place = next(n for n, part in enumerate(parts) if name in names(part))
        told = json.dumps({"tools": [{"name": name}]}, separators=(",", ":"))
        history += [
            ToolCallItem(call_id=str(number), name=f"s{place}", arguments="{}"),
            ToolCallOutputItem(call_id=str(number), name=f"s{place}", output=told),
        ]
        offered = asyncio.run(agent.toolbox(_Scope(history))).offered  # pyright: ignore[reportArgumentType]
        assert offered[: len(before)] == before
        before = offered
    most = len(searches) * (bound + 2) + 1
    assert len(before) <= most


class _Scope:
    """What an agent is told of a run: its conversation."""

    provider = None

    def __init__(self, history: list[Any]) -> None:
        self.history = history
        self.run = self
