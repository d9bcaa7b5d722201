"""Order of policies: the tables on the explanation page are correct."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable
from inspect import isfunction
from pathlib import Path
from typing import Any, TypeVar

import pytest

from agents_tools import FunctionTool, ToolContext, ToolError, function_tool, policies
from agents_tools.policies import (
    ArgTransform,
    Policy,
    cache,
    circuit_breaker,
    input_guardrail,
    limit,
    needs_approval,
    output_guardrail,
    redact,
    retry,
    timeout,
    transform,
)

TestT = TypeVar("TestT", bound=Callable[..., object])
PAGE = Path(__file__).parents[2] / "docs/explanation/policies.md"
ROWS = [
    [cell.strip().strip("`") for cell in line.strip("|").split("|")]
    for line in PAGE.read_text(encoding="utf-8").splitlines()
    if line.startswith("| `")
]
ACTS = {row[0]: row[1] for row in ROWS if len(row) == 4}
PAIRS = {(row[0], row[1]) for row in ROWS if len(row) == 3}


def look(number: int) -> int:
    """Look at a number."""
    return number


EXAMPLES: dict[str, Any] = {
    "approve_destructive": policies.approve_destructive(),
    "background": policies.background(),
    "cache": cache(),
    "circuit_breaker": circuit_breaker(),
    "exclusive": policies.exclusive(),
    "hide": policies.hide(number=1),
    "input_guardrail": input_guardrail(lambda *_: None),
    "isolate": policies.isolate(),
    "limit": limit(calls=1),
    "needs_approval": needs_approval(),
    "offload": policies.offload(),
    "output_guardrail": output_guardrail(lambda *_: None),
    "redact": redact("x"),
    "rename": policies.rename("other"),
    "repair_json": policies.repair_json(),
    "retry": retry(),
    "security_risk": policies.security_risk(),
    "timeout": timeout(1),
    "transform": transform(number=ArgTransform(name="count")),
    "truncate": policies.truncate(10),
    "with_metadata": policies.with_metadata(mine=1),
}


MOMENTS = (
    "schema",
    "repair_text",
    "map_arguments",
    "map_error",
    "before",
    "around",
    "filter_output",
    "filter_event",
)


def moments_of(name: str) -> list[str]:
    """Return the moments at which a policy acts, read from the policy itself."""
    plain = function_tool(look)
    tool = EXAMPLES[name](plain)
    found: list[str] = []
    for policy in tool.policies:
        kind = type(policy)
        for moment in MOMENTS:
            if getattr(kind, moment) is not getattr(Policy, moment):
                is_last = moment == "before" and kind.asks_person
                found.append(f"{moment} (last)" if is_last else moment)
    if tool.source is not plain.source:
        found.append("source")
    rest, before = (
        (one.name, one.metadata, one.max_output, one.stack.at_end) for one in (tool, plain)
    )
    return found if rest == before else [*found, "tool"]


def test_the_table_has_every_policy() -> None:
    assert set(ACTS) == {name for name in policies.__all__ if name.islower()} == set(EXAMPLES)


@pytest.mark.parametrize("name", sorted(EXAMPLES))
def test_the_table_lists_the_moments_of_each_policy(name: str) -> None:
    assert ACTS[name].split(", ") == moments_of(name)


def test_the_page_names_the_moments_in_their_order() -> None:
    """The numbered list is the order of a call; the other moments have no place in it."""
    named = re.findall(r"\*\*`(\w+)`\*\*", PAGE.read_text(encoding="utf-8"))
    assert named == [*MOMENTS[1:-1], "schema", "filter_event"]
    methods = {
        name for name in vars(Policy) if isfunction(getattr(Policy, name)) and name[0] != "_"
    }
    assert set(named) == methods - {"apply"}


class Body:
    """A tool that fails a given number of times, and counts its runs."""

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures
        self.runs = 0

        @function_tool
        async def body(word: str = "a") -> str:
            self.runs += 1
            if self.runs <= self.failures:
                raise ConnectionError(word)
            return f"{word} {self.runs}"

        self.tool = body


async def outputs_of_two_calls(tool: FunctionTool[..., Any], args: str = "{}") -> list[str]:
    outcomes = [await tool.call(None, args) for _ in range(2)]
    return [str(one.output) if one.status == "ok" else one.status for one in outcomes]


shown: set[tuple[str, str]] = set()


def shows(*pairs: tuple[str, str]) -> Callable[[TestT], TestT]:
    """Note that a test shows the rows of the table about these pairs of policies."""
    shown.update(pairs)
    return lambda test: test


@shows(("retry", "timeout"), ("timeout", "retry"))
def test_retry_and_timeout() -> None:
    """One deadline per attempt, or one for all attempts."""
    tries: list[float | None] = []

    @function_tool
    async def slow(ctx: ToolContext[Any]) -> str:
        tries.append(ctx.deadline)
        await asyncio.Event().wait()
        return "never"

    each = retry(3, backoff=0, idempotent=True)(timeout(0.03)(slow))
    assert asyncio.run(each.call(None, "{}")).status == "timeout"
    assert len(set(tries)) == 3
    tries.clear()
    together = timeout(0.05)(retry(3, backoff=0, idempotent=True)(slow))
    assert asyncio.run(together.call(None, "{}")).status == "timeout"
    assert len(tries) == 1


@shows(("cache", "retry"), ("cache", "limit"), ("limit", "cache"))
async def test_cache_and_others() -> None:
    """Policies outside a cache act on each call, those inside only when the tool runs."""
    body = Body(failures=1)
    assert await outputs_of_two_calls(cache()(retry(2, backoff=0)(body.tool))) == ["a 2", "a 2"]
    assert await outputs_of_two_calls(cache()(limit(calls=1)(Body().tool))) == ["a 1", "a 1"]
    assert await outputs_of_two_calls(limit(calls=1)(cache()(Body().tool))) == ["a 1", "denied"]


@shows(("retry", "limit"), ("limit", "retry"))
async def test_retry_and_limit() -> None:
    """Either attempts or calls count."""
    assert (
        await outputs_of_two_calls(retry(2, backoff=0)(limit(calls=1)(Body(failures=1).tool)))
        == ["denied"] * 2
    )
    again = limit(calls=1)(retry(2, backoff=0)(Body(failures=1).tool))
    assert await outputs_of_two_calls(again) == ["a 2", "denied"]


@shows(("retry", "circuit_breaker"), ("circuit_breaker", "retry"))
async def test_retry_and_circuit_breaker() -> None:
    """Either attempts or calls count."""
    body = Body(failures=9)
    assert (
        await outputs_of_two_calls(retry(5, backoff=0)(circuit_breaker(2)(body.tool)))
        == ["overloaded"] * 2
    )
    assert body.runs == 2
    body = Body(failures=9)
    tool = circuit_breaker(2)(retry(3, backoff=0)(body.tool))
    assert [*await outputs_of_two_calls(tool), *await outputs_of_two_calls(tool)] == [
        "tool_error"
    ] * 2 + ["overloaded"] * 2
    assert body.runs == 6


@shows(("cache", "output_guardrail"), ("output_guardrail", "cache"))
async def test_cache_and_output_guardrail() -> None:
    """The guardrail checks each returned value, or each computed one."""
    looked: list[str] = []

    def watch(_: Any, value: str) -> str:
        looked.append(value)
        if len(looked) > 2:
            raise ToolError("no more")
        return f"<{value}>"

    assert (
        await outputs_of_two_calls(cache()(output_guardrail(watch)(Body().tool))) == ["<a 1>"] * 2
    )
    assert looked == ["a 1"]
    assert await outputs_of_two_calls(output_guardrail(watch)(cache()(Body().tool))) == [
        "<a 1>",
        "tool_error",
    ]


@shows(("cache", "redact"), ("redact", "cache"))
async def test_cache_and_redact() -> None:
    """Either the stored value is redacted, or the returned one."""
    calls: list[str] = []

    def take_out(text: str) -> str:
        calls.append(text)
        return text.replace("a", "#")

    inside, outside = cache()(redact(take_out)(Body().tool)), redact(take_out)(cache()(Body().tool))
    assert [await inside.invoke() for _ in range(2)] == ["# 1"] * 2
    assert len(calls) == 1
    assert [await outside.invoke() for _ in range(2)] == ["# 1"] * 2
    assert len(calls) == 3


@shows(("cache", "transform"))
async def test_cache_and_transform() -> None:
    """The cache key has the hidden values, at any position."""
    words = iter("bccdee")
    fill = transform(word=ArgTransform(fill=lambda _: next(words)))
    inside = cache(shared=True)(fill(Body().tool))
    assert [await inside.on_invoke_tool(None, "{}") for _ in range(3)] == ["b 1", "c 2", "c 2"]
    outside = fill(cache(shared=True)(Body().tool))
    assert [await outside.on_invoke_tool(None, "{}") for _ in range(3)] == ["d 1", "e 2", "e 2"]


@shows(("cache", "input_guardrail"))
async def test_cache_and_input_guardrail() -> None:
    """The guardrail checks every call, and the arguments it returns are the cache key."""
    seen: list[str] = []

    def watch(_: Any, arguments: dict[str, Any]) -> dict[str, Any]:
        seen.append(arguments["word"])
        return {"word": "b"}

    for tool in (
        cache()(input_guardrail(watch)(Body().tool)),
        input_guardrail(watch)(cache()(Body().tool)),
    ):
        texts = [await tool.on_invoke_tool(None, f'{{"word": "{word}"}}') for word in "xy"]
        assert texts == ["b 1", "b 1"]
    assert seen == ["x", "y"] * 2


@shows(
    ("needs_approval", "cache"),
    ("needs_approval", "input_guardrail"),
    ("transform", "needs_approval"),
)
async def test_approval_and_others() -> None:
    """Approval comes first, and its arguments do not depend on its position."""
    seen: list[str] = []

    def rule(_: Any, arguments: dict[str, Any]) -> bool:
        seen.append(arguments["word"])
        return False

    for tool in (
        needs_approval(rule)(cache()(Body().tool)),
        cache()(needs_approval(rule)(Body().tool)),
    ):
        assert await outputs_of_two_calls(tool, '{"word": "b"}') == ["b 1"] * 2
    names = transform(word=ArgTransform(name="term"))
    for tool in (
        needs_approval(rule)(names(Body().tool)),
        names(needs_approval(rule)(Body().tool)),
    ):
        assert await outputs_of_two_calls(tool, '{"term": "b"}') == ["b 1", "b 2"]
    upper = input_guardrail(lambda _, arguments: {"word": arguments["word"].upper()})
    for tool in (
        needs_approval(rule)(upper(Body().tool)),
        upper(needs_approval(rule)(Body().tool)),
    ):
        assert await outputs_of_two_calls(tool, '{"word": "b"}') == ["B 1", "B 2"]
    assert seen == ["b"] * 8 + ["B"] * 4


@shows(("transform", "input_guardrail"))
async def test_transform_and_input_guardrail() -> None:
    """A guardrail sees the tool's own argument names at any position."""
    seen: list[str] = []

    def watch(_: Any, arguments: dict[str, Any]) -> None:
        seen.extend(arguments)

    names = transform(word=ArgTransform(name="term"))
    await names(input_guardrail(watch)(Body().tool)).call(None, '{"term": "b"}')
    await input_guardrail(watch)(names(Body().tool)).call(None, '{"term": "b"}')
    assert seen == ["word", "word"]


def test_every_table_row_about_two_policies_has_a_test() -> None:
    assert re.search(r"^\| outside \| inside \|", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    assert shown == PAIRS
