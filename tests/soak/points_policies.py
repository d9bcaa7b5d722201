"""Calls of tools that have policies around them, for faults at each of their awaits."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from agents_tools import ToolContext, function_tool, policies
from tests.soak.points_calls import both_ways, slow_tool
from tests.soak.points_stage import Scenario, Stage, together

__all__ = ["POLICIES"]


async def _repeat(stage: Stage) -> None:
    """Call once more: a place that was not given back would never be had."""
    outcome = await stage.kept["tool"].call(None, '{"text": "again"}')
    assert outcome.status == "ok", outcome


async def _repeat_in_time(stage: Stage) -> None:
    """Call once more; on a busy machine the few milliseconds of the tool can pass before."""
    outcome = await stage.kept["tool"].call(None, '{"text": "again"}')
    assert outcome.status in {"ok", "timeout"}, outcome


def _at_once(make: Callable[[Stage], Any], *texts: str) -> Callable[[Stage], Awaitable[Any]]:
    """Make several calls of a tool at the same time, each in a task of its own."""

    async def play(stage: Stage) -> None:
        tool = stage.kept["tool"] = make(stage)
        await together(*(tool.call(None, f'{{"text": "{text}"}}') for text in texts))

    return play


def _alone(make: Callable[[Stage], Any]) -> Callable[[Stage], Awaitable[Any]]:
    async def play(stage: Stage) -> None:
        tool = stage.kept["tool"] = make(stage)
        stage.kept["outcome"] = await tool.call(None, '{"text": "x"}')

    return play


def _slow(*around: Any, **more: Any) -> Callable[[Stage], Any]:
    """Return a function that creates a slow tool with policies."""

    def make(stage: Stage) -> Any:
        tool = slow_tool(stage, **more)
        for policy in around:
            tool = policy(stage)(tool)
        return tool

    return make


def _overdue(stage: Stage) -> Any:
    """Return a tool that exceeds its time limit, except for one text."""

    @policies.timeout(0.005)
    @function_tool
    async def overdue(text: str) -> str:
        """Wait for what never comes."""
        with stage.inside("overdue"):
            try:
                await stage.at("body", body=True)
                if text != "again":
                    await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
            return text

    return overdue


def _overdue_thread(stage: Stage) -> Any:
    @policies.timeout(0.03)
    @function_tool
    def overdue(context: ToolContext[Any], text: str) -> str:
        """Work until the caller no longer waits."""
        with stage.inside("overdue"):
            stage.hit("body", body=True)
            while text != "again" and not context.cancelled:
                time.sleep(0.001)
            return text

    return overdue


def _flaky(stage: Stage) -> Any:
    failures = [OSError("away"), OSError("still away")]

    @policies.retry(3, backoff=0.0)
    @function_tool
    async def flaky(text: str) -> str:
        """Fail twice."""
        with stage.inside("flaky"):
            await stage.at("body", body=True)
            if failures:
                raise failures.pop()
            return text

    return flaky


def _guarded(stage: Stage) -> Any:
    async def look_in(_: Any, __: dict[str, Any]) -> None:
        await stage.at("input guardrail")

    async def look_out(_: Any, __: Any) -> None:
        await stage.at("output guardrail")

    return policies.output_guardrail(look_out)(policies.input_guardrail(look_in)(slow_tool(stage)))


async def _approved(stage: Stage) -> None:
    async def wanted(_: Any, __: dict[str, Any]) -> bool:
        await stage.at("predicate")
        return False

    tool = stage.kept["tool"] = policies.needs_approval(wanted)(slow_tool(stage))
    await tool.call(None, '{"text": "x"}')


def _keyed(stage: Stage) -> Any:
    async def key(_: Any, arguments: Mapping[str, Any]) -> Any:
        await stage.at("key")
        return arguments["text"]

    return policies.cache(key=key)(slow_tool(stage))


def _hidden(stage: Stage) -> Any:
    def without(text: str) -> str:
        stage.hit("rule")
        return text.replace("half", "whole")

    return policies.redact(without)(slow_tool(stage))


def _everything(stage: Stage) -> Any:
    tool = policies.timeout(5)(slow_tool(stage))
    tool = policies.retry(2, backoff=0.0)(tool)
    tool = policies.circuit_breaker(50)(tool)
    tool = policies.limit(concurrent=1, queue=5)(tool)
    tool = policies.offload(100)(tool)
    return policies.redact("half")(policies.truncate(1_000)(policies.cache()(tool)))


def _held(_: Stage) -> Any:
    return policies.limit(concurrent=1)


def _paced(_: Stage) -> Any:
    return policies.limit(per_second=2_000, burst=1)


POLICIES: list[Scenario] = [
    *both_ways("timeout", _alone(_slow(lambda _: policies.timeout(5))), again=_repeat),
    *both_ways("timeout that strikes", _alone(_overdue), again=_repeat_in_time),
    *both_ways("timeout of a thread", _alone(_overdue_thread), again=_repeat_in_time),
    *both_ways("retry", _alone(_flaky), again=_repeat),
    *both_ways("limit", _at_once(_slow(_held), "a", "b", "c"), again=_repeat),
    *both_ways("pace", _at_once(_slow(_paced), "a", "b"), again=_repeat),
    *both_ways(
        "exclusive", _at_once(_slow(lambda _: policies.exclusive()), "a", "b"), again=_repeat
    ),
    *both_ways("cache", _at_once(_slow(lambda _: policies.cache()), "a", "a", "b"), again=_repeat),
    *both_ways("cache with a key", _at_once(_keyed, "a", "a"), again=_repeat),
    *both_ways(
        "circuit breaker",
        _at_once(_slow(lambda _: policies.circuit_breaker(3)), "a", "b"),
        again=_repeat,
    ),
    *both_ways("guardrails", _alone(_guarded), again=_repeat),
    *both_ways("approval", _approved, again=_repeat),
    *both_ways("redact", _alone(_hidden), again=_repeat),
    *both_ways("offload", _alone(_slow(lambda _: policies.offload(1))), again=_repeat),
    *both_ways("many policies", _at_once(_everything, "a", "a", "b"), again=_repeat),
]
