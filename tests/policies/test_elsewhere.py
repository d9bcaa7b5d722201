"""Policies work the same in other agent frameworks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agents_tools import ToolContext, function_tool, policies
from agents_tools.policies import ArgTransform
from tests.frameworks.suite import Call, Harness, harness_of

tries: list[str] = []


@function_tool
async def echo(ctx: ToolContext[Any], text: str) -> str:
    """Give a text back.

    Args:
        text: The text.
    """
    tries.append(text)
    ctx.notify(f"got {text}")
    if text == "stumble" and len(tries) == 1:
        raise ConnectionError("lost")
    return f"> {text}"


async def run_calls(
    at: Harness, policy: Any, *arguments_of_calls: str
) -> tuple[list[str], list[dict[str, Any]]]:
    """Let an agent of the framework call the tool; return its answers and streamed events."""
    tries.clear()
    calls = [Call(f"call_{number}", "echo", text) for number, text in enumerate(arguments_of_calls)]
    report = await at.run(at.ours([policy(echo)]), calls)
    assert report.error is None, report.error
    return [report.answers[call.id].text for call in calls], report.streamed


HELLO = '{"text": "hello"}'


async def timeout(at: Harness) -> None:
    assert (await run_calls(at, policies.timeout(20), HELLO))[0] == ["> hello"]


async def retry(at: Harness) -> None:
    texts, _ = await run_calls(at, policies.retry(2, backoff=0), '{"text": "stumble"}')
    assert (texts, len(tries)) == (["> stumble"], 2)


async def circuit_breaker(at: Harness) -> None:
    texts, _ = await run_calls(at, policies.circuit_breaker(1), '{"text": "stumble"}')
    assert "lost" in texts[0]


async def limit(at: Harness) -> None:
    texts, _ = await run_calls(at, policies.limit(calls=1), HELLO, HELLO)
    assert sorted(text.startswith(">") for text in texts) == [False, True]


async def exclusive(at: Harness) -> None:
    assert (await run_calls(at, policies.exclusive(), HELLO))[0] == ["> hello"]


async def cache(at: Harness) -> None:
    texts, _ = await run_calls(at, policies.cache(), HELLO, HELLO)
    assert (texts, len(tries)) == (["> hello"] * 2, 1)


async def hide(at: Harness) -> None:
    assert (await run_calls(at, policies.hide(text="fixed"), "{}"))[0] == ["> fixed"]


async def transform(at: Harness) -> None:
    renamed = policies.transform(text=ArgTransform(name="words", default="none"))
    texts, _ = await run_calls(at, renamed, '{"words": "hello"}', "{}", '{"words": 1}')
    assert texts[:2] == ["> hello", "> none"]
    assert "words: expected a string" in texts[2]


async def offload(at: Harness) -> None:
    texts, _ = await run_calls(at, policies.offload(4, preview=3), HELLO)
    assert texts[0].startswith("> h\n[The result has 7 characters")


async def redact(at: Harness) -> None:
    texts, streamed = await run_calls(at, policies.redact("hello", replacement="#"), HELLO)
    assert texts == ["> #"]
    assert "hello" not in json.dumps(
        [event for event in streamed if "notify" in event.get("type", "")]
    )


async def truncate(at: Harness) -> None:
    assert len((await run_calls(at, policies.truncate(5), '{"text": "hello there"}'))[0][0]) < 12


async def output_guardrail(at: Harness) -> None:
    assert (await run_calls(at, policies.output_guardrail(lambda _, value: value.upper()), HELLO))[
        0
    ] == ["> HELLO"]


async def input_guardrail(at: Harness) -> None:
    other = policies.input_guardrail(lambda _, arguments: {"text": "other"})
    assert (await run_calls(at, other, HELLO))[0] == ["> other"]


CHECKS: list[Callable[[Harness], Awaitable[None]]] = [
    timeout,
    retry,
    circuit_breaker,
    limit,
    exclusive,
    cache,
    hide,
    transform,
    offload,
    redact,
    truncate,
    output_guardrail,
    input_guardrail,
]


@pytest.mark.parametrize("framework", ["openai-agents", "langchain", "pydantic-ai"])
@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
async def test_a_policy_works_in_another_framework(
    framework: str, check: Callable[[Harness], Awaitable[None]]
) -> None:
    await check(harness_of(framework))
