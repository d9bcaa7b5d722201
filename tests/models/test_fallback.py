"""Fallback models."""

from __future__ import annotations

import asyncio
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, RunConfig, Runner, function_tool, policies
from agents_tools.agents import ModelPrice, ModelRequest, RunState, text_delta
from agents_tools.content import Usage
from agents_tools.errors import (
    BudgetExceeded,
    ContextWindowExceeded,
    ModelError,
    ToolRefusedError,
    UserError,
)
from agents_tools.events import RawResponseStreamEvent
from agents_tools.models.anthropic import AnthropicModel
from agents_tools.models.fallback import FallbackModel
from agents_tools.models.limited import LimitedModel, RequestLimit
from agents_tools.models.openai_responses import OpenAIResponsesModel
from agents_tools.persistence import MemoryRunStore
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.tool import ToolAnnotations
from agents_tools.wire.project import project
from tests.waiting import comes

if TYPE_CHECKING:
    from agents_tools.agents import ModelResponse
    from agents_tools.events import Emit

WITHIN = 20
QUICK = RunConfig(retry_backoff=0)
BUSY = ModelError("busy", status=529, retryable=True)


def pair(first: list[Any], second: list[Any]) -> tuple[ScriptedModel, ScriptedModel, FallbackModel]:
    usage = Usage(requests=1, input_tokens=1)
    one = ScriptedModel(first, name="one", usage=usage)
    two = ScriptedModel(second, name="two", usage=usage)
    return one, two, FallbackModel(one, two)


async def run(agent: Agent[Any, Any], config: RunConfig = QUICK, input: Any = "go") -> Any:
    return await asyncio.wait_for(Runner.run(agent, input, run_config=config), WITHIN)


@pytest.mark.parametrize("retries", [0, 2])
async def test_the_next_model_answers_after_the_retries_of_the_first(retries: int) -> None:
    """A short overload is better cured by a retry, a long one by another provider."""
    one, two, model = pair([BUSY] * (retries + 1), ["from two"])
    config = RunConfig(retry_backoff=0, model_retries=retries, prices=dict(PRICES))
    streamed = Runner.run_streamed(Agent("A", model=model), "go", run_config=config)
    events = [event async for event in streamed.stream_events()]
    assert streamed.final_output == "from two"
    assert len(one.requests) == retries + 1
    assert len(two.requests) == 1
    assert two.requests[0].input == one.requests[0].input
    changes = [
        event.data
        for event in events
        if isinstance(event, RawResponseStreamEvent) and "model" in event.data
    ]
    assert changes == [
        {
            "type": "agents_tools.retry",
            "attempt": 1,
            "delay": 0.0,
            "model": "two",
            "provider": None,
        }
    ]
    assert streamed.raw_responses[0].model == "two"
    assert list(streamed.usage.by_model()) == ["two"]
    assert streamed.usage.cost == pytest.approx(0.02)


PRICES = {
    "one": ModelPrice(input=10_000, output=0),
    "two": ModelPrice(input=20_000, output=0),
}


async def test_each_request_starts_with_the_first_model() -> None:
    """An outage ends at some time."""
    one, two, model = pair([BUSY, "from one"], [tool_call("add", a=1, b=2)])
    result = await run(Agent("A", model=model, tools=[add]), RunConfig(model_retries=0))
    assert result.final_output == "from one"
    assert [response.model for response in result.raw_responses] == ["two", "one"]
    assert len(two.requests) == 1
    assert len(one.requests) == 2


@function_tool
async def add(a: int, b: int = 5) -> str:
    """Add two numbers."""
    return str(a + b)


@pytest.mark.parametrize(
    "error",
    [
        ModelError("no key", status=401),
        ModelError("bad request", status=400),
        ContextWindowExceeded("too long", status=400),
        UserError("a bug"),
    ],
)
async def test_a_refused_request_is_not_sent_to_another_model(error: Exception) -> None:
    """It has a fault that must be seen."""
    one, two, model = pair([error], ["never"])
    with pytest.raises(type(error), match=str(error)):
        await run(Agent("A", model=model))
    assert len(one.requests) == 1
    assert not two.requests


@pytest.mark.parametrize(
    "error",
    [
        ModelError("no quota", status=429),
        ModelError("no credit", status=402),
        ModelError("broken", status=500),
    ],
)
async def test_an_error_that_no_retry_cures_uses_the_next_model_at_once(error: Exception) -> None:
    """A quota that is used up lasts for a month."""
    one, _, model = pair([error], ["from two"])
    assert (await run(Agent("A", model=model))).final_output == "from two"
    assert len(one.requests) == 1


async def test_if_all_models_fail_each_was_tried_with_its_retries_once() -> None:
    """Retries of the whole list would multiply with those of each model."""
    last = ModelError("two is busy", retryable=True)
    one, two, model = pair([BUSY] * 9, [last] * 9)
    nested = FallbackModel(LimitedModel(model, RequestLimit(concurrent=1)), model)
    with pytest.raises(ModelError, match="two is busy"):
        await run(Agent("A", model=nested), RunConfig(retry_backoff=0, model_retries=1))
    assert len(one.requests) == len(two.requests) == 4  # in each of the two lists


async def test_the_application_can_decide_about_errors() -> None:
    """A model with a larger context window can read a conversation that is too long."""
    one = ScriptedModel([ContextWindowExceeded("too long"), BUSY, "never"])
    model = FallbackModel(
        one, ScriptedModel(["large"]), fallback_on=lambda e: isinstance(e, ContextWindowExceeded)
    )
    assert (await run(Agent("A", model=model))).final_output == "large"
    with pytest.raises(ModelError, match="busy"):
        await run(Agent("A", model=model), RunConfig(model_retries=0))


async def test_the_application_can_decide_asynchronously() -> None:
    """A coroutine is true, whatever it returns."""

    async def decide(error: ModelError) -> bool:
        await asyncio.sleep(0)
        return isinstance(error, ContextWindowExceeded)

    one = ScriptedModel([ContextWindowExceeded("too long"), ModelError("refused", status=400)])
    model = FallbackModel(one, ScriptedModel(["large", "never"]), fallback_on=decide)
    assert (await run(Agent("A", model=model))).final_output == "large"
    with pytest.raises(ModelError, match="refused"):
        await run(Agent("A", model=model))


class BreaksOff:
    """A model that fails in the middle of its text."""

    name = "breaks off"

    async def respond(self, request: ModelRequest, emit: Emit) -> ModelResponse:
        emit(text_delta("half a sen"))
        raise ModelError("cut", retryable=True)


async def test_streamed_text_is_withdrawn_before_the_next_model_writes() -> None:
    """A reader must not see two beginnings joined."""
    model = FallbackModel(BreaksOff(), ScriptedModel(["A whole sentence."]))
    config = RunConfig(model_retries=0)
    streamed = Runner.run_streamed(Agent("A", model=model), "go", run_config=config)
    shown: list[str] = []
    async for event in streamed.stream_events():
        if isinstance(event, RawResponseStreamEvent):
            if event.data["type"] == "agents_tools.retry":
                assert shown == ["half a sen"]
                shown.clear()
            elif event.data["type"] == "response.output_text.delta":
                shown.append(event.data["delta"])
    assert "".join(shown) == streamed.final_output == "A whole sentence."


class Dialect(ScriptedModel):
    """A model that receives tools in the format of a provider."""

    def __init__(self, steps: list[Any], provider: str | None) -> None:
        super().__init__(steps, name=str(provider))
        self.provider = provider


@policies.needs_approval()
@function_tool
async def double(größe: int, runden: int = 3) -> str:
    """Double a number."""
    return f"{größe * 2} in {runden}"


@pytest.mark.parametrize("is_stored", [False, True])
async def test_calls_are_read_in_the_format_of_the_model_that_made_them(*, is_stored: bool) -> None:
    """Providers get other names and types of parameters; the mark also survives an interruption."""
    name = name_at("anthropic")
    failing = Dialect([BUSY, "done"], "openai_responses")
    model = FallbackModel(failing, Dialect([tool_call("double", {name: 4})], "anthropic"))
    agent = Agent("A", model=model, tools=[double])
    store = MemoryRunStore() if is_stored else None
    config = RunConfig(model_retries=0, store=store)
    result = await run(agent, config)
    state = RunState.from_json(result.to_state().to_json())
    state.approve(state.interruptions[0])
    again = await run(agent, config, state)
    assert again.final_output == "done"
    assert [item.output for item in again.new_items if item.type == "tool_call_output_item"] == [
        "8 in 3"
    ]


@pytest.mark.parametrize("is_stored", [False, True])
async def test_another_model_can_continue_a_run_that_waits(*, is_stored: bool) -> None:
    """The person has approved the call, so it must run as it was made."""
    first = Dialect([tool_call("double", {name_at("anthropic"): 4})], "anthropic")
    config = RunConfig(model_retries=0, store=MemoryRunStore() if is_stored else None)
    agent = Agent("A", model=first, tools=[double])
    state = RunState.from_json((await run(agent, config)).to_state().to_json())
    state.approve(state.interruptions[0])
    other = replace(agent, model=Dialect(["done"], "openai_responses"))
    again = await run(other, config, state)
    assert again.final_output == "done"
    assert [item.output for item in again.new_items if item.type == "tool_call_output_item"] == [
        "8 in 3"
    ]


def name_at(provider: str) -> str:
    """Return the name of the parameter `größe` at a provider."""
    name = next(iter(project(double, provider).wire["input_schema"]["properties"]))
    assert name != "größe"
    return name


async def test_early_calls_are_read_in_the_format_of_the_model_that_makes_them() -> None:
    """They start before the response exists."""
    started: list[int] = []

    @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
    async def measure(größe: int) -> str:
        """Measure."""
        started.append(größe)
        return "measured"

    async def before_the_end(request: ModelRequest) -> Any:
        assert request.on_call is not None
        request.on_call(call)
        await comes(lambda: started)
        return call

    call = replace(tool_call("measure", {name_at("anthropic"): 4}), call_id="call_1")
    failing = Dialect([BUSY, "done"], "openai_responses")
    model = FallbackModel(failing, Dialect([before_the_end], "anthropic"))
    config = RunConfig(model_retries=0, start_calls_early=True)
    result = await run(Agent("A", model=model, tools=[measure]), config)
    assert result.final_output == "done"
    assert started == [4]


async def test_a_tool_that_one_provider_refuses_is_left_out_and_the_same_model_answers() -> None:
    """The rest of the request is valid."""
    refused = ToolRefusedError("bad schema", tool_name="add", reason="no such type")
    one, two, model = pair([refused, "from one"], ["never"])
    result = await run(Agent("A", model=model, tools=[add]))
    assert result.final_output == "from one"
    assert [len(request.tools) for request in one.requests] == [1, 0]
    assert not two.requests


async def test_a_dollar_budget_needs_the_price_of_each_model() -> None:
    """Any of them can answer."""
    _, two, model = pair([BUSY] * 5, [tool_call("add", a=1, b=2), "never"])
    agent = Agent("A", model=LimitedModel(model, RequestLimit(concurrent=2)), tools=[add])
    with pytest.raises(UserError, match=re.escape("the price of 'two' is not known")):
        await run(agent, RunConfig(max_cost=1, prices={"one": PRICES["one"]}))
    with pytest.raises(BudgetExceeded, match=r"spent \$0\.0200"):
        await run(agent, RunConfig(max_cost=0.02, prices=PRICES, retry_backoff=0))
    assert len(two.requests) == 1


async def test_outside_a_run_each_model_is_asked_once() -> None:
    """A model is also an object that programs call themselves."""
    one, two, model = pair([BUSY], ["from two"])
    events: list[Any] = []
    response = await model.respond(ModelRequest(input=[]), events.append)
    assert response.model == "two"
    assert len(one.requests) == len(two.requests) == 1
    assert repr(model).startswith("FallbackModel(<")


def test_names_are_loaded_and_other_arguments_are_refused() -> None:
    """A wrong argument must fail where it is written."""
    model = FallbackModel("claude-sonnet-5", "openai/gpt-5")
    assert [type(one) for one in model.models] == [AnthropicModel, OpenAIResponsesModel]
    assert (model.name, model.provider) == ("claude-sonnet-5", "anthropic")
    with pytest.raises(UserError, match="at least two models, got 1"):
        FallbackModel("openai/gpt-5")
    with pytest.raises(UserError, match="is not a model"):
        FallbackModel("openai/gpt-5", 5)  # type: ignore[arg-type]
    with pytest.raises(UserError, match="fallback_on"):
        FallbackModel("openai/gpt-5", "gpt-5", fallback_on=5)  # type: ignore[arg-type]
