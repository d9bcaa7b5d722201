"""Budgets for a tree of agents, and the cost of runs."""

from __future__ import annotations

import asyncio
import json
import math
import sys
from typing import TYPE_CHECKING, Any

import genai_prices
import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot

from agents_tools import Agent, RunConfig, Runner, ToolContext, function_tool, policies
from agents_tools.agents import ModelPrice, ModelRequest, ModelResponse, RunState
from agents_tools.content import MessageOutputItem, ToolCallItem, Usage
from agents_tools.conversation import LLM, Agent as ConversationAgent, Conversation
from agents_tools.errors import BudgetExceeded, UserError
from agents_tools.persistence import MemoryRunStore
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from agents_tools.agents import Model
    from agents_tools.events import Emit

WITHIN = 60
AGENTS = 40
CENT = ModelPrice(input=10_000, output=0)  # a request of one token costs one cent
PRICES = {"endless": CENT}


class EndlessModel:
    """A model whose boss starts 40 agents, each of which calls its tool forever.

    Each request waits until all agents that still run have sent theirs, so that as many requests as
    possible are on their way when a budget is used up.

    Attributes:
        spent: The number of requests that were answered.
        spent_before: What was spent when each request started.
    """

    name = "endless"

    def __init__(self) -> None:
        self.spent = 0
        self.spent_before: list[int] = []

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        self.spent_before.append(self.spent)
        for _ in range(2 * AGENTS):
            await asyncio.sleep(0)  # lets the other agents send their requests
        self.spent += 1
        usage = Usage(requests=1, input_tokens=1)
        number = len(self.spent_before)
        names = ["worker"] * AGENTS if request.agent == "Boss" else ["note"]
        items = [
            ToolCallItem(call_id=f"call_{number}_{index}", name=name, arguments='{"input": "x"}')
            for index, name in enumerate(names)
        ]
        return ModelResponse(items=items, usage=usage)


def tree(model: Model, notes: list[str], **options: Any) -> Agent[Any, str]:
    """Return an agent that starts workers, each of which calls a tool forever."""

    @function_tool
    async def note(input: str) -> str:
        """Note."""
        notes.append(input)
        return "noted"

    worker = Agent("Worker", tools=[note], model=model)
    return Agent("Boss", tools=[worker.as_tool(max_turns=1_000, **options)], model=model)


async def run(agent: Agent[Any, Any], **more: Any) -> Any:
    return await asyncio.wait_for(Runner.run(agent, "go", max_turns=None, **more), WITHIN)


@pytest.mark.parametrize(
    ("budget", "limit"),
    [({"max_cost": 1.0, "prices": PRICES}, 100), ({"max_total_tokens": 100}, 100)],
)
@pytest.mark.parametrize("has_own_config", [False, True])
async def test_forty_parallel_agents_stop_within_one_request_each(
    budget: dict[str, Any], limit: int, *, has_own_config: bool
) -> None:
    """A budget that holds for each agent alone would let 40 times as much through."""
    model = EndlessModel()
    own = {"run_config": RunConfig(model_retries=0)} if has_own_config else {}
    with pytest.raises(BudgetExceeded, match="'Boss'") as caught:
        await run(tree(model, [], **own), run_config=RunConfig(**budget))
    assert max(model.spent_before) < limit  # no request starts after the budget is used up
    assert limit <= model.spent <= limit + AGENTS
    assert limit < len(model.spent_before)  # the requests did run in parallel
    usage = caught.value.run_result.usage
    assert usage.requests == usage.total_tokens == model.spent
    if "max_cost" in budget:
        assert math.isclose(usage.cost, model.spent / 100)


@pytest.mark.parametrize("limit", [41, 100])
async def test_tool_calls_of_a_tree_are_limited_exactly(limit: int) -> None:
    """Calls are counted before they run, so none is over the limit."""
    model, notes = EndlessModel(), list[str]()
    with pytest.raises(BudgetExceeded, match=f"'Boss' exceeded its limit of {limit} tool calls"):
        await run(tree(model, notes), run_config=RunConfig(max_tool_calls=limit))
    assert len(notes) == limit - AGENTS
    assert model.spent <= 1 + 2 * AGENTS + limit


async def test_agents_in_other_threads_count_for_the_budget() -> None:
    """A synchronous tool that runs an agent has an event loop of its own."""
    usage = Usage(requests=1, input_tokens=1)
    model = ScriptedModel(
        {"Outer": [[tool_call("ask")] * 8, "never"], "Inner": ["x"] * 8}, usage=usage
    )
    inner = Agent("Inner", model=model)

    @function_tool
    def ask() -> str:
        """Ask another agent."""
        return Runner.run_sync(inner, "x").final_output

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        config = RunConfig(max_cost=0.09, prices={"scripted": CENT})
        with pytest.raises(BudgetExceeded, match=r"\$0\.0900 of its limit of \$0\.09") as caught:
            await run(Agent("Outer", tools=[ask], model=model), run_config=config)
    finally:
        sys.setswitchinterval(interval)
    assert caught.value.run_result.usage.by_agent()["Inner"].requests == 8


# --- cost


async def test_the_cost_of_a_run_is_known_for_each_agent_and_model() -> None:
    """People ask which agent, and which model, is expensive."""
    small = ScriptedModel(
        ["found", "found"], name="small", usage=Usage(requests=1, input_tokens=1_000)
    )
    large = ScriptedModel(
        [[tool_call("finder", input="a"), tool_call("finder", input="b")], "done"],
        name="large",
        usage=Usage(
            requests=1,
            input_tokens=10_000,
            cached_input_tokens=6_000,
            cache_write_tokens=1_000,
            output_tokens=500,
        ),
    )
    finder = Agent("Finder", model=small)
    prices = {
        "openai/small": ModelPrice(input=1, output=2),
        "large": ModelPrice(input=4, output=20, cached_input=0.5, cache_write=5),
    }
    result = await run(
        Agent("Boss", tools=[finder.as_tool()], model=large), run_config=RunConfig(prices=prices)
    )
    of_large = (3_000 * 4 + 6_000 * 0.5 + 1_000 * 5 + 500 * 20) / 1e6
    usage = result.usage
    assert math.isclose(usage.cost, 2 * of_large + 0.002)
    assert list(usage.breakdown) == [("Boss", "large"), ("Finder", "small")]
    assert math.isclose(usage.by_agent()["Boss"].cost or 0, 2 * of_large)
    assert math.isclose(usage.by_model()["small"].cost or 0, 0.002)
    assert usage.unpriced_models == []
    assert usage.tool_calls == 2


async def test_the_cost_is_unknown_if_one_price_is() -> None:
    """A sum without one of its parts would look like the whole."""
    priced = ScriptedModel(
        [tool_call("free", input="a"), "done"],
        name="priced",
        usage=Usage(requests=1, input_tokens=1),
    )
    unknown = ScriptedModel(["x"], name="unknown")
    free = Agent("Free", model=unknown)
    result = await run(
        Agent("Boss", tools=[free.as_tool()], model=priced),
        run_config=RunConfig(prices={"priced": CENT}),
    )
    assert result.usage.cost is None
    assert result.usage.unpriced_models == ["unknown"]
    assert result.usage.by_agent()["Boss"].cost == 0.02


@pytest.mark.parametrize("where", ["Boss", "Worker"])
async def test_a_dollar_budget_without_a_price_is_refused_before_any_request(where: str) -> None:
    """The error names the model and the remedy; agents that are tools are checked as well."""
    model, other = ScriptedModel(["x"]), ScriptedModel(["x"], name="mystery-7b")
    worker = Agent("Worker", model=other if where == "Worker" else model)
    tool = policies.timeout(5)(worker.as_tool())
    middle = Agent("Middle", model=model, tools=[tool])
    boss = Agent("Boss", model=other if where == "Boss" else model, tools=[middle.as_tool()])
    with pytest.raises(UserError) as caught:
        await run(boss, run_config=RunConfig(max_cost=1, prices={"scripted": CENT}))
    assert str(caught.value) == snapshot(
        "RunConfig(max_cost=...) of agent 'Boss' cannot be checked: the price of 'mystery-7b' is not known. Install the price list with pip install -U 'agents-tools[prices]', or add the price in US dollars per million tokens, for example RunConfig(prices={'mystery-7b': ModelPrice(input=3, output=15)})."
    )
    assert not model.requests
    assert not other.requests


async def test_a_dollar_budget_ends_the_run_if_a_foreign_agent_reports_no_cost() -> None:
    """Agents of other frameworks report tokens, but not the models that used them."""

    @function_tool
    def ask_elsewhere(ctx: ToolContext[None]) -> str:
        """Ask an agent of another framework."""
        assert ctx.usage is not None
        ctx.usage.add(Usage(requests=1, input_tokens=5))
        return "asked"

    model = ScriptedModel([tool_call("ask_elsewhere"), "never"])
    agent = Agent("Boss", model=model, tools=[ask_elsewhere])
    with pytest.raises(UserError, match=r"another framework .*max_total_tokens"):
        await run(agent, run_config=RunConfig(max_cost=1, prices={"scripted": CENT}))
    assert len(model.requests) == 1


class HostedModel:
    """A model at a provider."""

    def __init__(self, name: str, usage: Usage, reported: str | None = None, **place: str) -> None:
        self.name = name
        vars(self).update(place)
        self._response = ModelResponse(
            items=[MessageOutputItem(text="hi")], usage=usage, model=reported
        )

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        return self._response


OPENAI = {"base_url": "https://api.openai.com/v1"}
ANTHROPIC = {"base_url": "https://api.anthropic.com"}
USED = Usage(
    requests=1,
    input_tokens=10_000,
    output_tokens=100,
    cached_input_tokens=2_000,
    cache_write_tokens=3_000,
    cache_write_1h_tokens=1_000,
)


@pytest.mark.parametrize(
    ("model", "listed"),
    [
        (HostedModel("gpt-5", USED, **OPENAI), ("gpt-5", "openai")),
        (HostedModel("gpt-5", USED, "gpt-5-2025-08-07", **OPENAI), ("gpt-5", "openai")),
        (HostedModel("claude-sonnet-5", USED, **ANTHROPIC), ("claude-sonnet-5", "anthropic")),
        (
            HostedModel("groq:llama-3.3-70b-versatile", USED, provider_id="groq"),
            ("llama-3.3-70b-versatile", "groq"),
        ),
    ],
)
async def test_prices_of_providers_come_from_genai_prices(
    model: Any, listed: tuple[str, str]
) -> None:
    """Cache writes for an hour cost more than those for five minutes."""
    result = await run(Agent("A", model=model), run_config=RunConfig(max_cost=10))
    name, provider = listed
    counts = genai_prices.Usage(
        input_tokens=10_000,
        output_tokens=100,
        cache_read_tokens=2_000,
        cache_write_tokens=3_000,
        cache_write_1h_tokens=1_000,
    )
    expected = genai_prices.calc_price(counts, name, provider_id=provider).total_price
    assert result.usage.cost == float(expected) > 0


@pytest.mark.parametrize(
    "model",
    [
        HostedModel("gpt-5", USED),
        HostedModel("gpt-5", USED, base_url="http://localhost:8000/v1"),
        HostedModel("gpt-99", USED, **OPENAI),
        HostedModel("gpt-5", Usage(requests=1, input_tokens=1, cached_input_tokens=5), **OPENAI),
    ],
)
async def test_a_model_elsewhere_has_no_listed_price(model: Any) -> None:
    """The name alone says nothing about the price on a server of your own."""
    assert (await run(Agent("A", model=model))).usage.cost is None


async def test_without_the_price_list_the_cost_is_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The list is an optional dependency."""
    monkeypatch.setitem(sys.modules, "genai_prices", None)
    model = HostedModel("gpt-5", USED, **OPENAI)
    assert (await run(Agent("A", model=model))).usage.cost is None
    with pytest.raises(UserError, match=r"agents-tools\[prices\]"):
        await run(Agent("A", model=model), run_config=RunConfig(max_cost=1))


async def test_a_model_that_knows_its_cost_reports_it() -> None:
    """Some servers return the cost of each request."""
    model = HostedModel("own", Usage(requests=1, input_tokens=5, cost=0.25))
    result = await run(Agent("A", model=model))
    assert result.usage.cost == result.usage.by_model()["own"].cost == 0.25


def test_a_conversation_without_prices_sums_the_known_cost(tmp_path: Path) -> None:
    """Prices of the application come first; see the test of the language model."""
    model = HostedModel("own", Usage(requests=1, input_tokens=5, cost=0.25))
    llm = LLM(model=model)
    with Conversation(ConversationAgent(llm=llm), workspace=tmp_path) as talk:
        for _ in range(2):
            talk.send_message("Go.")
            talk.run()
    assert llm.metrics.accumulated_cost == 0.5


async def test_a_resumed_run_keeps_its_cost() -> None:
    """Otherwise an interruption would raise the budget."""

    @policies.needs_approval()
    @function_tool
    def ship() -> str:
        """Ship."""
        return "shipped"

    usage = Usage(requests=1, input_tokens=1)
    agent = Agent(
        "Shop", tools=[ship], model=ScriptedModel([tool_call("ship"), "never"], usage=usage)
    )
    config = RunConfig(max_cost=0.01, prices={"scripted": CENT})
    result = await run(agent, run_config=config)
    state = RunState.from_json(result.to_state().to_json())
    state.approve(state.interruptions[0])
    assert state.usage.breakdown == result.usage.breakdown
    with pytest.raises(BudgetExceeded) as caught:
        await asyncio.wait_for(Runner.run(agent, state, run_config=config), WITHIN)
    assert str(caught.value) == snapshot(
        "Agent 'Shop' has spent $0.0100 of its limit of $0.01. To allow more, raise RunConfig(max_cost=...)."
    )
    assert caught.value.run_result.usage.tool_calls == 1


async def test_a_run_that_is_continued_from_its_log_keeps_its_cost() -> None:
    """The usage of agents inside finished calls is recorded with the call."""
    store = MemoryRunStore()
    usage = Usage(requests=1, input_tokens=1)
    failing = [tool_call("inner", input="x"), RuntimeError("the process ends")]
    config = RunConfig(store=store, prices={"scripted": CENT})
    inner = Agent("Inner", model=ScriptedModel(["in"], usage=usage))

    def agent(*steps: Any) -> Agent[Any, str]:
        return Agent("Outer", tools=[inner.as_tool()], model=ScriptedModel(steps, usage=usage))

    with pytest.raises(RuntimeError):
        await run(agent(*failing), run_id="r", run_config=config)
    result = await Runner.resume(agent("done"), "r", run_config=config)
    assert result.usage.cost == pytest.approx(0.03)
    assert result.usage.tool_calls == 1
    assert result.usage.by_agent()["Inner"].cost == 0.01


# --- the records


@pytest.mark.parametrize(
    ("create", "match"),
    [
        (lambda: RunConfig(max_cost=0), r"max_cost=\.\.\.\)"),
        (lambda: RunConfig(max_cost=float("nan")), "max_cost"),
        (lambda: RunConfig(prices=[]), "expected a mapping"),  # type: ignore[arg-type]
        (lambda: RunConfig(prices={"x": 3}), "ModelPrice, got 'x': 3"),  # type: ignore[dict-item]
        (lambda: ModelPrice(input=-1, output=0), r"ModelPrice\(input="),
        (lambda: ModelPrice(input=1, output=math.inf), r"ModelPrice\(output="),
        (lambda: ModelPrice(input=1, output=1, cached_input=True), "cached_input"),
        (lambda: ModelPrice(input=None, output=1), "input"),  # type: ignore[arg-type]
    ],
)
def test_invalid_prices_and_budgets_are_refused(create: Callable[[], Any], match: str) -> None:
    """A wrong price would be found on the bill."""
    with pytest.raises(UserError, match=match):
        create()


COUNTS = st.integers(0, 10**9)
PARTS = st.builds(
    Usage,
    requests=st.integers(1, 9),
    input_tokens=COUNTS,
    output_tokens=COUNTS,
    cached_input_tokens=COUNTS,
    cache_write_tokens=COUNTS,
    reasoning_tokens=COUNTS,
    cost=st.none() | st.integers(0, 100).map(float),
)


@given(st.lists(st.tuples(st.sampled_from("ab"), st.sampled_from("xy"), PARTS)))
def test_usages_add_up_and_round_trip_through_json(parts: list[tuple[str, str, Usage]]) -> None:
    """The total is the sum of its parts, and unknown if one of them is."""
    total = Usage()
    for agent, model, used in parts:
        one = used.copy()
        one.breakdown[agent, model] = used
        total.add(one)
    for groups in (total.by_agent(), total.by_model(), total.breakdown):
        again = Usage()
        for used in groups.values():
            again.add(used)
        assert again == total
    costs = [used.cost for _, _, used in parts]
    known = [cost for cost in costs if cost is not None]
    assert total.cost == (sum(known) if known and len(known) == len(costs) else None)
    restored = Usage.from_dict(json.loads(json.dumps(total.to_dict())))
    assert restored == total
    assert restored.breakdown == total.breakdown


@pytest.mark.parametrize(
    ("data", "match"),
    [
        ({"cost": -1}, "usage.cost"),
        ({"cost": "1"}, "usage.cost"),
        ({"cost": math.nan}, "usage.cost"),
        ({"breakdown": {}}, "usage.breakdown: expected a list"),
        ({"breakdown": [5]}, r"usage.breakdown\[0\]: expected an object with agent and model"),
        ({"breakdown": [{"agent": "a", "model": "m", "requests": -1}]}, r"\[0\].requests"),
        ({"breakdown": [{"agent": "a", "model": "m", "breakdown": []}]}, r"\[0\].breakdown"),
    ],
)
def test_invalid_json_of_a_usage_is_refused(data: Any, match: str) -> None:
    """A state comes from a file or a queue, which can contain anything."""
    with pytest.raises(UserError, match=match):
        Usage.from_dict(data)
