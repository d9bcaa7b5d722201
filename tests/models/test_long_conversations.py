"""Conversations that are longer than the context window, on the wires of all providers."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, RunConfig, Runner, function_tool
from agents_tools.agents.compaction import summarize, token_budget
from agents_tools.content import ToolCallItem, ToolCallOutputItem
from agents_tools.errors import ModelError
from agents_tools.events import SummaryEvent
from agents_tools.persistence import MemoryRunStore
from tests.models.strict_providers import PROVIDERS, OpenAIChat, StrictProvider

if TYPE_CHECKING:
    from agents_tools import Emit, Model, ModelRequest, ModelResponse
    from tests.models.http_server import ScriptedServer

BUDGET = 32_000
RESULT = "lorem ipsum dolor sit amet, " * 1_430  # 40,040 characters, about 10,000 tokens
LARGEST = BUDGET * 4
"""The largest request in bytes: four letters are one token of English text."""


@function_tool
def search(page: int) -> str:
    """Search a page."""
    return f"page {page}: {RESULT}"


@function_tool(name_override="search")
def tiny(page: int) -> str:
    """Search a page."""
    return f"page {page}"


async def _run(provider: StrictProvider, server: ScriptedServer, turns: int) -> Any:
    """Run an agent against a provider; return the result and the events in the log."""
    server.answer(*[provider] * (3 * turns))
    store = MemoryRunStore()
    config = RunConfig(
        prepare_input=token_budget(BUDGET, summary=summarize()), store=store, model_retries=0
    )
    async with provider.model() as model:
        agent = Agent("Reader", "Read all pages.", tools=[search], model=model)
        result = await Runner.run(agent, "Read the pages.", run_config=config, max_turns=None)
    return result, await store.log(result.run_id).read_all()


@pytest.mark.timeout(120)  # 300 requests, and almost as many for summaries
@pytest.mark.parametrize("turns", [30, pytest.param(300, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", PROVIDERS, ids=lambda kind: kind.__name__)
async def test_a_conversation_with_large_results_stays_within_the_budget(
    kind: type[StrictProvider], turns: int, server: ScriptedServer
) -> None:
    """A provider refuses a call without its output, or reasoning without its call."""
    provider = kind(server.url, turns, limit=LARGEST)
    result, events = await _run(provider, server, turns)
    assert provider.refusals == []
    assert result.final_output == "done"
    assert len(provider.bodies) == turns + 1

    # The log and the result have everything.
    calls = [one.call_id for one in result.new_items if isinstance(one, ToolCallItem)]
    calls = [one for one in calls if not one.startswith("ws_")]  # hosted calls have no output
    outputs = [one for one in result.new_items if isinstance(one, ToolCallOutputItem)]
    assert len(calls) == turns + 2 * (turns // 10)
    assert [one.call_id for one in outputs] == calls
    assert {len(one.output) for one in outputs if isinstance(one.output, str)} <= set(
        range(len(RESULT), len(RESULT) + 12)
    )

    # Each summary is in the log, was asked once, and counts in the usage.
    summaries = [one for one in events if isinstance(one, SummaryEvent)]
    assert [one.summary for one in summaries] == [
        f"summary number {number}" for number in range(1, len(provider.summaries) + 1)
    ]
    assert result.usage.requests == turns + 1 + len(summaries)
    last = json.dumps(provider.bodies[-1])
    assert summaries[-1].summary in last
    assert "Read the pages." in last


class _Trimmed:
    """A model that reads the last items only, wherever they begin.

    Args:
        inner: The model that answers.
    """

    def __init__(self, inner: Model) -> None:
        self._inner = inner

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        shown = [*request.input[:1], *request.input[-7:]]
        return await self._inner.respond(replace(request, input=shown), emit)


@pytest.mark.parametrize("kind", PROVIDERS[1:], ids=lambda kind: kind.__name__)
async def test_the_providers_refuse_what_is_cut_at_any_place(
    kind: type[StrictProvider], server: ScriptedServer
) -> None:
    """The test above means nothing if its providers accept everything."""
    provider = kind(server.url, turns=20, limit=LARGEST)
    server.answer(*[provider] * 40)
    config = RunConfig(model_retries=0)
    async with provider.model() as model:
        agent = Agent("Reader", tools=[tiny], model=_Trimmed(model))
        with pytest.raises(ModelError):
            await Runner.run(agent, "Go.", run_config=config, max_turns=None)
    assert len(provider.refusals) == 1


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "assistant", "tool_calls": [{"id": "c1"}]}],
        [{"role": "assistant", "tool_calls": [{"id": "c1"}]}, {"role": "user", "content": "x"}],
        [{"role": "user", "content": "x"}, {"role": "tool", "tool_call_id": "c1"}],
    ],
)
def test_the_provider_of_chat_completions_refuses_a_call_without_output(messages: Any) -> None:
    """The library never sends such a conversation on this wire, however it was cut."""
    assert OpenAIChat("", turns=1, limit=1).fault({"messages": messages}) is not None
