"""Test the laws of toolset methods with arbitrary tools."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from hypothesis import given, strategies as st

from agents_tools import Agent, FunctionTool
from agents_tools.content import MessageInputItem, ToolCallItem, ToolCallOutputItem
from agents_tools.policies import Policy, rename
from agents_tools.toolset import Toolset, tool_search
from tests.test_toolset import make_tool, names

_SIGNS = st.sampled_from("abcXYZ019_-")
NAMES = st.text(_SIGNS, min_size=1, max_size=64)
PREFIXES = st.text(_SIGNS, min_size=1, max_size=12)
TOOLS = st.lists(NAMES, max_size=6, unique=True).map(
    lambda given: [make_tool(name) for name in given]
)
PATTERNS = st.sampled_from(["*", "a*", "*_*", "?", "*[0-9]", "X??*"])


def named_policy(name: str) -> Any:
    """Return a policy that has no effect."""
    policy = Policy()
    policy.name = name
    return lambda tool: tool.with_(policy=policy)


def reprs(toolset: Toolset) -> list[str]:
    """Return the repr of each tool, which lists its policies."""
    return [repr(tool) for tool in toolset]


@given(TOOLS, st.integers(0, 6), st.integers(0, 6))
def test_combining_toolsets_is_associative_and_idempotent(
    tools: list[Any], one: int, other: int
) -> None:
    """(a + b) + c equals a + (b + c); adding nothing or the same toolset again changes nothing."""
    one, other = sorted((one, other))
    a, b, c = Toolset(tools[:one]), Toolset(tools[one:other]), Toolset(tools[other:])
    whole = list(Toolset(tools))
    assert list(a.combine(b).combine(c)) == list(a.combine(b.combine(c))) == whole
    assert list(a.combine(b, c)) == list(Toolset(a, [b, [c]])) == whole
    assert list(a.combine()) == list(Toolset().combine(a)) == list(a.combine(a)) == list(a)


@given(TOOLS, PREFIXES)
def test_a_prefix_can_be_removed_again(tools: list[Any], prefix: str) -> None:
    """Names that fit are restored; all others stay distinct."""
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
def test_names_can_be_swapped_and_swapped_back(tools: list[Any], random: Any) -> None:
    """All names change at once, so tools can exchange names."""
    old = names(tools)
    new = random.sample(old, len(old))
    there = Toolset(tools).rename(dict(zip(old, new, strict=True)))
    assert names(there) == new
    assert names(there.rename(dict(zip(new, old, strict=True)))) == old


@given(TOOLS, PATTERNS, PATTERNS)
def test_a_filter_is_idempotent_commutative_and_preserves_order(
    tools: list[Any], one: str, other: str
) -> None:
    """The tools themselves stay the same objects."""
    whole = Toolset(tools)
    kept = list(whole.filter(one))
    assert list(whole.filter(one).filter(one)) == kept
    assert [tool for tool in tools if tool in kept] == kept
    assert list(whole.filter(one).filter(other)) == list(whole.filter(other).filter(one))
    either = set(whole.filter(one)) | set(whole.filter(other))
    assert set(whole.filter(one, other)) == either


@given(TOOLS, PATTERNS)
def test_policies_are_applied_in_order_and_the_last_is_outermost(
    tools: list[Any], pattern: str
) -> None:
    """Filtering before or after a policy makes no difference."""
    whole = Toolset(tools)
    both = whole.map(named_policy("inner")).map(named_policy("outer"))
    assert reprs(both) == reprs(
        whole.map(lambda tool: named_policy("outer")(named_policy("inner")(tool)))
    )
    assert reprs(both) == [f"<FunctionTool {tool.name!r} + inner + outer>" for tool in tools]
    chosen = whole.map(named_policy("inner")).filter(pattern)
    assert reprs(chosen) == reprs(whole.filter(pattern).map(named_policy("inner")))
    assert reprs(whole.map(lambda tool: tool)) == reprs(whole)
    assert names(whole.map(lambda tool: rename(f"{tool.name[:60]}_{tool.name[60:]}")(tool))) == [
        f"{name[:60]}_{name[60:]}" for name in names(whole)
    ]


@given(TOOLS.filter(bool))
def test_a_policy_on_a_search_equals_a_policy_on_its_tools(tools: list[Any]) -> None:
    """`tool_search(tools).map(policy)` equals `tool_search(tools.map(policy))`."""
    options: Any = {"name": "zz-search", "call_name": "zz-call"}
    for mode in ("proxy", "reveal"):
        after = (
            tool_search(tools, mode=mode, **options).map(named_policy("p")).map(named_policy("q"))
        )
        before = tool_search(
            Toolset(tools).map(named_policy("p")).map(named_policy("q")), mode=mode, **options
        )
        boxes = [asyncio.run(Agent("x", tools=[given]).toolbox(None)) for given in (after, before)]
        one, other = ([repr(tool) for tool in (*box.offered, *box.hidden)] for box in boxes)
        assert one == other
        for tool in tools:
            call = ToolCallItem(call_id="1", name=tool.name, arguments="{}")
            found, again = (box.resolve(call)[0] for box in boxes)
            assert repr(found) == repr(again) == f"<FunctionTool {tool.name!r} + p + q>"


@given(TOOLS, PATTERNS)
def test_the_tools_are_the_same_objects_each_time(tools: list[Any], pattern: str) -> None:
    """This holds for all methods of a toolset."""
    whole = Toolset(tools).prefix("p_").map(named_policy("x")).defer().filter(f"p_{pattern}")
    assert asyncio.run(whole.get_tools()) is asyncio.run(whole.get_tools())
    assert list(whole) == list(asyncio.run(whole.get_tools()))
    assert list(whole.defer()) == list(whole)


@given(
    st.lists(st.sampled_from([f"t{n}" for n in range(8)]), max_size=12),
    st.integers(1, 4),
    st.booleans(),
)
def test_revealed_tools_are_only_appended_to_the_list(
    steps: list[str], bound: int, two: bool
) -> None:
    """Prompt caches depend on this, for any conversation with one or two searches."""
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
        output = json.dumps({"tools": [{"name": name}]}, separators=(",", ":"))
        history += [
            ToolCallItem(call_id=str(number), name=f"s{place}", arguments="{}"),
            ToolCallOutputItem(call_id=str(number), name=f"s{place}", output=output),
        ]
        offered = asyncio.run(agent.toolbox(_Scope(history))).offered  # pyright: ignore[reportArgumentType]
        assert offered[: len(before)] == before
        before = offered
    most = len(searches) * (bound + 2) + 1
    assert len(before) <= most


class _Scope:
    """The part of a run that an agent needs here: its conversation."""

    provider = None

    def __init__(self, history: list[Any]) -> None:
        self.history = history
        self.run = self
