"""Approvals: which calls wait, which decisions are possible, and that each call runs once."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import textwrap
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel, SecretStr

from agents_tools import (
    Agent,
    Decision,
    Event,
    FunctionTool,
    ModelBehaviorError,
    RunConfig,
    RunFinishedEvent,
    RunItemStreamEvent,
    Runner,
    RunResult,
    RunResultStreaming,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    ToolContext,
    ToolDeniedError,
    ToolError,
    ToolStreamStartEvent,
    Usage,
    UserError,
    function_tool,
    streaming_tool,
)
from agents_tools.agents import RunState
from agents_tools.errors import BudgetExceeded, EventStoreError
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.policies import (
    exclusive,
    hide,
    input_guardrail,
    limit,
    needs_approval,
    output_guardrail,
    rename,
    retry,
    timeout,
)
from agents_tools.testing import ScriptedModel, check_events, tool_call
from agents_tools.tool import Question
from tests.watched_storage import FailingWrites, watched_store

AT_MOST = 5.0


class Ship:
    """A tool with side effects, and a log of its executions."""

    def __init__(self, *policies: Callable[[Any], Any], name: str = "ship") -> None:
        self.sent: list[int] = []

        @function_tool(name_override=name)
        async def ship(order: int, note: str = "") -> str:
            self.sent.append(order)
            return f"sent {order}{note}"

        self.tool: FunctionTool[..., Any] = ship
        for policy in policies or (needs_approval,):
            self.tool = policy(self.tool)


def agent(*steps: Any, tools: Any = (), name: str = "main", **options: Any) -> Agent:
    return Agent(name, model=ScriptedModel(steps), tools=list(tools), **options)


def outputs(result: RunResult | RunResultStreaming) -> list[tuple[str, Any]]:
    return [
        (item.status, item.output)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]


def through_json(state: RunState) -> RunState:
    """Return the state as another process would load it."""
    text = state.to_json()
    again = RunState.from_json(text)
    assert again.to_json() == text
    return again


# --- which calls wait


async def test_a_call_waits_survives_json_and_runs_once() -> None:
    """The conversation is the same as without the wait."""
    ship = Ship()
    one = agent([tool_call("ship", order=1)], "Done.", tools=[ship.tool])
    result = await Runner.run(one, "Ship it.")
    assert result.final_output is None
    assert result.interruptions == [
        ToolApprovalItem(
            call_id="call_1", name="ship", arguments='{"order":1,"note":""}', agent="main"
        )
    ]
    assert result.new_items[-1] == result.interruptions[0]
    assert ship.sent == []
    state = through_json(result.to_state())
    state.approve(state.interruptions[0])
    assert state.interruptions == []
    result = await Runner.run(one, through_json(state))
    assert ship.sent == [1]
    assert result.final_output == "Done."
    assert result.interruptions == []
    assert result.run_id == state.run_id
    assert [item.get("type", "message") for item in result.to_input_list()] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


STACKS: dict[str, tuple[Callable[[Any], Any], ...]] = {
    "alone": (needs_approval,),
    "called": (needs_approval(),),
    "inside retry": (needs_approval, retry(3)),
    "outside retry": (retry(3), needs_approval),
    "inside timeout": (needs_approval, timeout(5)),
    "inside limit": (needs_approval, limit(concurrent=1)),
    "inside guardrails": (
        needs_approval,
        input_guardrail(lambda ctx, args: None),
        output_guardrail(lambda ctx, value: value),
    ),
    "inside exclusive": (needs_approval, exclusive()),
    "twice": (needs_approval, needs_approval),
    "hidden argument": (needs_approval, hide(note="!")),
    "renamed": (rename("ship"), needs_approval),
}


@pytest.mark.parametrize("stack", STACKS)
async def test_a_call_waits_at_any_position_of_the_policy(stack: str) -> None:
    """Approval comes before any other policy starts."""
    ship = Ship(*STACKS[stack])
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    run = Runner.run_streamed(one, "Go.")
    events = [event async for event in run.stream_events()]
    check_events(events)
    assert not any(isinstance(event, ToolStreamStartEvent) for event in events)
    assert ship.sent == []
    assert [item.name for item in run.interruptions] == ["ship"]
    last = events[-1]
    assert isinstance(last, RunFinishedEvent)
    assert last.status == "interrupted"
    asked = [e for e in events if isinstance(e, RunItemStreamEvent) and "approval" in e.name]
    assert [event.attached for event in asked] == run.interruptions
    state = run.to_state()
    state.approve(state.interruptions[0])
    result = await Runner.run(one, state)
    assert ship.sent == [1]
    assert result.final_output == "x"


@pytest.mark.parametrize("kind", ["streaming", "sync", "method"])
async def test_any_kind_of_tool_can_need_approval(kind: str) -> None:
    ran: list[str] = []

    @needs_approval
    @streaming_tool
    async def streaming():
        ran.append("x")
        yield "x"

    @needs_approval
    @function_tool
    def sync() -> str:
        ran.append("x")
        return "x"

    class Owner:
        @needs_approval
        @function_tool
        async def method(self) -> str:
            ran.append("x")
            return "x"

    tool = {"streaming": streaming, "sync": sync, "method": Owner().method}[kind]
    one = agent(tool_call(kind), "x", tools=[tool])
    state = (await Runner.run(one, "Go.")).to_state()
    assert ran == []
    state.approve(state.interruptions[0])
    await Runner.run(one, state)
    assert ran == ["x"]


@pytest.mark.parametrize("kind", ["sync", "async", "raising", "False"])
async def test_a_rule_selects_the_calls_that_wait(kind: str) -> None:
    """It gets the context and the arguments; if it fails, the call waits."""

    def sync(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        assert context.tool_call_id == "call_1"
        assert context.context == "app"
        return arguments["order"] > 10

    async def later(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        return sync(context, arguments)

    def raising(context: ToolContext[Any], arguments: dict[str, Any]) -> bool:
        raise LookupError("rule")

    rules: dict[str, Any] = {"sync": sync, "async": later, "raising": raising, "False": False}
    rule = rules[kind]
    waits = {"sync": [False, True], "async": [False, True], "raising": [True, True]}
    found = []
    for order in (1, 11):
        ship = Ship(needs_approval(rule))
        one = agent(tool_call("ship", order=order), "x", tools=[ship.tool])
        result = await Runner.run(one, "Go.", context="app")
        found.append(bool(result.interruptions))
        assert ship.sent == ([] if result.interruptions else [order])
    assert found == waits.get(kind, [False, False])


async def test_an_invalid_call_needs_no_approval() -> None:
    """Invalid arguments and unknown tools are answered at once."""
    ship = Ship()
    calls = [tool_call("ship", order="one"), tool_call("shop", order=1)]
    result = await Runner.run(agent(calls, "x", tools=[ship.tool]), "Go.")
    assert [status for status, _ in outputs(result)] == ["invalid_args", "invalid_args"]


async def test_an_invalid_decision_is_reported() -> None:
    """The message names the waiting call, or where to find the waiting calls."""
    ship = Ship()
    result = await Runner.run(agent(tool_call("ship", order=1), tools=[ship.tool]), "Go.")
    state, item = result.to_state(), result.interruptions[0]
    others = {
        "another call": ToolApprovalItem(call_id="z", name="ship", arguments="{}"),
        "other arguments": ToolApprovalItem(call_id="call_1", name="ship", arguments="{}"),
        "a call inside": ToolApprovalItem(
            call_id="call_1", name="ship", arguments=item.arguments, path=("call_9",)
        ),
    }
    texts = {}
    for name, other in others.items():
        with pytest.raises(UserError) as caught:
            state.approve(other)
        texts[name] = str(caught.value)
    assert texts == snapshot(
        {
            "another call": "No call 'z' of tool 'ship' waits for approval. Pass an item of `state.interruptions`.",
            "other arguments": 'The item of call \'call_1\' does not match the waiting call: expected ship({"order":1,"note":""}), got ship({}). Pass an item of `state.interruptions`.',
            "a call inside": "No call 'call_1' of tool 'ship' waits for approval. Pass an item of `state.interruptions`.",
        }
    )
    with pytest.raises(UserError, match=r"expected a ToolApprovalItem, got a str\. Pass an item"):
        state.approve("ship")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError, match=r"approve\(\.\.\.\) has no option 'always_approve'\. Use "):
        state.approve(item, always_approve=True)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    with pytest.raises(UserError) as caught:
        state.approve(item, {"order": {1}})
    assert str(caught.value) == snapshot(
        "The arguments are not serializable as JSON: Object of type set is not JSON serializable."
    )
    assert ship.sent == []


# --- decisions


@pytest.mark.parametrize("message", [None, "Not before Monday."])
async def test_a_rejected_call_is_answered_and_not_run(message: str | None) -> None:
    """The model reads that a person rejected it, and why."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.reject(state.interruptions[0], message)
    result = await Runner.run(one, through_json(state))
    assert ship.sent == []
    expected = message or snapshot("A person refused this call of 'ship'.")
    assert outputs(result) == [("denied", expected)]
    assert result.final_output == "x"


async def test_a_rejection_of_a_tool_without_a_failure_function_ends_the_run() -> None:
    """Like any error of such a tool."""
    ship = Ship()
    tool = ship.tool.with_(failure_error_function=None)
    one = agent(tool_call("ship", order=1), "x", tools=[tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.reject(state.interruptions[0], "No.")
    with pytest.raises(ToolDeniedError, match=r"No\."):
        await Runner.run(one, state)
    assert ship.sent == []


@pytest.mark.parametrize("arguments", [{"order": 5}, '{"order": 5}'], ids=["mapping", "text"])
async def test_a_person_can_change_the_arguments(arguments: Any) -> None:
    """The call runs with the new ones, and the model is informed."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0], arguments)
    result = await Runner.run(one, through_json(state))
    assert ship.sent == [5]
    [(status, text)] = outputs(result)
    assert status == "ok"
    assert text.startswith("[A person changed the arguments before this ran, to: {")
    assert text.endswith("}]\nsent 5")


async def test_invalid_changed_arguments_go_back_to_the_person() -> None:
    """The call waits again, and its item has the fault; the model does not see it."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    first = await Runner.run(one, "Go.")
    state = first.to_state()
    state.approve(state.interruptions[0], {"order": "five"})
    result = await Runner.run(one, through_json(state))
    assert ship.sent == []
    assert outputs(result) == []
    [item] = result.interruptions
    assert item.error == snapshot(
        "Invalid arguments for tool 'ship':\n- order: expected an integer, got \"five\""
    )
    assert replace(item, error=None) == first.interruptions[0]
    assert result.new_items[-1] == item
    state = through_json(result.to_state())
    assert state.interruptions == [item]
    state.approve(item, {"order": 5})
    result = await Runner.run(one, through_json(state))
    assert ship.sent == [5]
    assert [status for status, _ in outputs(result)] == ["ok"]


@pytest.mark.parametrize("where", ["run", "tool"])
async def test_an_approver_is_asked_again_after_invalid_changed_arguments(where: str) -> None:
    """At most three times; then the call is denied."""
    ship, last = Ship(), Ship()
    seen: list[str | None] = []

    def decide(item: ToolApprovalItem) -> Decision:
        seen.append(item.error)
        is_valid = item.name == "last" and len(seen) == 3
        arguments = '{"order": 5}' if is_valid else '{"order": "five"}'
        return Decision(approved=True, arguments=arguments)

    async def results(tool: FunctionTool[..., Any]) -> list[tuple[str, Any]]:
        @function_tool
        async def helper() -> str:
            outcome = await tool.call(None, '{"order": 1}')
            return f"{outcome.status}: {outcome.output}"

        call = tool_call(tool.name, order=1) if where == "run" else tool_call("helper")
        one = agent(call, "x", tools=[tool, helper])
        return outputs(await Runner.run(one, "Go.", run_config=RunConfig(approve=decide)))

    [(status, text)] = await results(ship.tool)
    assert "that a person wrote for tool 'ship' are invalid. The call was not run." in text
    assert "denied" in (status, text.partition(":")[0])
    assert ship.sent == []
    assert [error is None for error in seen] == [True, False, False]
    seen.clear()
    [(status, text)] = await results(rename("last")(last.tool))
    assert (status, last.sent) == ("ok", [5])
    assert len(seen) == 3


async def test_an_approver_that_answers_always_is_asked_once() -> None:
    """The record of a decision is the same where a person decides during the run."""
    ship = Ship()
    asked: list[str] = []

    def decide(item: ToolApprovalItem) -> Decision:
        asked.append(item.call_id)
        return Decision(approved=True, always=True)

    one = agent(tool_call("ship", order=1), tool_call("ship", order=2), "x", tools=[ship.tool])
    result = await Runner.run(one, "Go.", run_config=RunConfig(approve=decide))
    assert (len(asked), ship.sent) == (1, [1, 2])
    assert result.final_output == "x"


async def test_always_applies_to_later_calls_until_the_tool_changes() -> None:
    """The approval is for this tool, not for any later tool of the same name."""
    ship = Ship()
    model = ScriptedModel(
        [tool_call("ship", order=1), tool_call("ship", order=2), tool_call("ship", order=3), "x"]
    )
    one = Agent("main", model=model, tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0], always=True)
    state = through_json(state)

    other = Ship(needs_approval, lambda tool: tool.with_(description="Ship it to Mars."))

    def swap(request: Any) -> Any:
        one.tools[:] = [other.tool]  # pyright: ignore[reportIndexIssue]
        return tool_call("ship", order=2)

    model._shared[0] = swap
    result = await Runner.run(one, state)
    assert ship.sent == [1, 2]
    assert other.sent == []
    assert [item.arguments for item in result.interruptions] == ['{"order":3,"note":""}']


async def test_several_calls_can_be_decided_one_by_one() -> None:
    """Decided calls run; the others keep waiting, and nothing runs twice."""
    ship, free = Ship(), Ship(lambda tool: tool, name="free")
    calls = [
        tool_call("ship", order=1),
        tool_call("free", order=2),
        tool_call("ship", order=3),
        tool_call("ship", order=4),
    ]
    one = agent(calls, "x", tools=[ship.tool, free.tool])
    result = await Runner.run(one, "Go.")
    assert free.sent == [2]
    assert [item.call_id for item in result.interruptions] == ["call_1", "call_3", "call_4"]
    state = through_json(result.to_state())
    state.approve(state.interruptions[2])
    result = await Runner.run(one, state)
    assert ship.sent == [4]
    assert [item.call_id for item in result.interruptions] == ["call_1", "call_3"]
    state = through_json(result.to_state())
    state.reject(state.interruptions[0])
    result = await Runner.run(one, state)
    state = through_json(result.to_state())
    assert ship.sent == [4]
    assert [item.call_id for item in result.interruptions] == ["call_3"]
    state.approve(state.interruptions[0])
    result = await Runner.run(one, state)
    assert (ship.sent, free.sent) == ([4, 3], [2])
    made = [item for item in result.to_input_list() if item.get("type") == "function_call_output"]
    assert [item["call_id"] for item in made] == ["call_1", "call_2", "call_3", "call_4"]
    assert [item["status"] for item in made] == ["denied", "ok", "ok", "ok"]


async def test_decisions_on_one_state_do_not_affect_another() -> None:
    """Two people can look at the same result; this includes inner runs."""
    ship = Ship()
    inner = agent(tool_call("ship", order=1), "in", tools=[ship.tool], name="inner")
    calls = [tool_call("ship", order=7), tool_call("inner", input="?")]
    one = agent(calls, "x", tools=[ship.tool, inner.as_tool()])
    result = await Runner.run(one, "Go.")
    mine = result.to_state()
    for item in mine.interruptions:
        mine.approve(item)
    assert len(result.to_state().interruptions) == 2


async def test_waiting_calls_are_counted_once() -> None:
    """A budget counts calls, not interruptions."""
    ship = Ship()
    config = RunConfig(max_tool_calls=2)
    calls = [tool_call("ship", order=1), tool_call("ship", order=2)]
    one = agent(calls, tool_call("ship", order=3), tools=[ship.tool])
    state = (await Runner.run(one, "Go.", run_config=config)).to_state()
    for item in state.interruptions:
        state.approve(item)
    with pytest.raises(BudgetExceeded):
        await Runner.run(one, through_json(state), run_config=config)
    assert sorted(ship.sent) == [1, 2]


async def test_a_resumed_run_keeps_its_usage_and_turns() -> None:
    ship = Ship()
    model = ScriptedModel(
        [tool_call("ship", order=1), "x"], usage=Usage(requests=1, input_tokens=5)
    )
    one = Agent("main", model=model, tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    result = await Runner.run(one, through_json(state))
    assert result.usage == Usage(requests=2, input_tokens=10, tool_calls=1)
    assert result.to_state().turns == 2
    assert len(result.input) == 1


async def test_a_tool_that_ends_the_run_ends_it_after_its_approval() -> None:
    """The tool use behavior is the same as without the wait."""
    ship = Ship()
    one = agent(
        tool_call("ship", order=1), tools=[ship.tool], tool_use_behavior="stop_on_first_tool"
    )
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    assert (await Runner.run(one, state)).final_output == "sent 1"


async def test_the_order_of_calls_is_kept_after_a_wait() -> None:
    """Which call ends a run does not depend on which of them had to wait."""
    ship, free = Ship(), Ship(lambda tool: tool, name="free")
    calls = [tool_call("free", order=1), tool_call("ship", order=2)]
    one = agent(calls, tools=[ship.tool, free.tool], tool_use_behavior="stop_on_first_tool")
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    assert (await Runner.run(one, state)).final_output == "sent 1"


# --- calls run at most once


async def test_a_resumed_state_does_not_rerun_answered_calls() -> None:
    """The state of the finished run holds the answers."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", "y", tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    done = await Runner.run(one, state)
    await Runner.run(one, through_json(done.to_state()))
    assert ship.sent == [1]


async def test_an_approved_call_runs_although_an_earlier_call_had_its_id() -> None:
    """Some providers number the calls of each turn; the earlier output is not its output."""
    ship = Ship()
    one = agent(tool_call("ship", order=2), "x", tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    waiting = state.interruptions[0]
    state.history[:0] = [
        ToolCallItem(call_id=waiting.call_id, name="ship", arguments='{"order": 1}'),
        ToolCallOutputItem(call_id=waiting.call_id, name="ship", output="sent 1"),
    ]
    state.input_count += 2
    state.approve(waiting)
    done = await Runner.run(one, through_json(state))
    assert ship.sent == [2]
    assert outputs(done) == [("ok", "sent 2")]


async def test_an_approved_call_that_is_cancelled_is_answered_and_not_run_again() -> None:
    """It can have taken effect; the decision is used up when the call starts."""
    entered, ran = asyncio.Event(), []

    @needs_approval
    @function_tool
    async def hangs() -> str:
        ran.append(1)
        entered.set()
        await asyncio.sleep(60)
        return "x"

    one = agent(tool_call("hangs"), "x", tools=[hangs])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    run = Runner.run_streamed(one, state)
    await entered.wait()
    running = through_json(run.to_state())
    run.cancel()
    check_events([event async for event in run.stream_events()])
    assert [status for status, _ in outputs(run)] == ["cancelled"]
    assert run.interruptions == []
    again = await Runner.run(one, through_json(run.to_state()))
    assert again.final_output == "x"
    crashed = await Runner.run(agent("y", tools=[hangs]), running)
    assert [status for status, _ in outputs(crashed)] == ["lost"]
    assert ran == [1]


async def test_a_cancelled_call_of_an_inner_agent_is_not_run_again() -> None:
    """The state of an inner run is used up when it resumes."""
    ship, entered = Ship(), asyncio.Event()

    @function_tool
    async def hangs() -> str:
        entered.set()
        await asyncio.sleep(60)
        return "x"

    inner = agent(
        tool_call("ship", order=1), tool_call("hangs"), "in", tools=[ship.tool, hangs], name="inner"
    )
    one = agent(tool_call("inner", input="?"), "x", tools=[inner.as_tool()])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    run = Runner.run_streamed(one, state)
    await entered.wait()
    run.cancel()
    assert [event async for event in run.stream_events()]
    assert [status for status, _ in outputs(run)] == ["cancelled"]
    result = await Runner.run(one, through_json(run.to_state()))
    assert ship.sent == [1]
    assert result.final_output == "x"


async def test_a_call_of_a_removed_tool_is_answered() -> None:
    """The run continues instead of waiting for a decision that is no longer possible."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    waiting = await Runner.run(agent("x"), through_json(state))
    assert waiting.interruptions == []
    assert outputs(waiting) == [("invalid_args", "There is no tool 'ship'. Tools: none.")]
    assert waiting.final_output == "x"


# --- decisions are bound to the call


def _arguments_of_the_call(data: dict[str, Any]) -> None:
    data["history"][1]["arguments"] = '{"order": 666}'


def _name_of_the_call(data: dict[str, Any]) -> None:
    data["history"][1]["name"] = data["pending"][0]["item"]["name"] = "ship2"


def _shown_arguments(data: dict[str, Any]) -> None:
    data["pending"][0]["item"]["arguments"] = '{"order": 0}'


def _pin(data: dict[str, Any]) -> None:
    data["pending"][0]["pin"] = "0" * 64


@pytest.mark.requirement("S35")
@pytest.mark.parametrize(
    "tamper", [_arguments_of_the_call, _name_of_the_call, _shown_arguments, _pin]
)
@pytest.mark.parametrize("when", ["before", "after"])
async def test_s35_a_changed_call_needs_a_new_approval(
    tamper: Callable[[dict[str, Any]], None], when: str
) -> None:
    """The approval covers exactly these arguments of exactly this tool."""
    ship, second = Ship(), Ship(name="ship2")
    one = agent(tool_call("ship", order=1), tools=[ship.tool, second.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    if when == "after":
        state.approve(state.interruptions[0])
    data = json.loads(state.to_json())
    tamper(data)
    state = RunState.from_dict(data)
    if when == "before":
        state.approve(state.interruptions[0])
    result = await Runner.run(one, state)
    assert (ship.sent, second.sent) == ([], [])
    call = result.to_input_list()[1]
    assert [(i.name, json.loads(i.arguments)) for i in result.interruptions] == [
        (call["name"], {"note": "", **json.loads(call["arguments"])})
    ]


@pytest.mark.requirement("S35")
@pytest.mark.parametrize("change", ["description", "schema"])
async def test_s35_a_changed_tool_needs_a_new_approval(change: str) -> None:
    """A tool that was redefined in the meantime is another tool."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), tools=[ship.tool])
    state = (await Runner.run(one, "Go.")).to_state()
    state.approve(state.interruptions[0])
    policy = (
        (lambda tool: tool.with_(description="Ship to Mars."))
        if change == "description"
        else hide(note="!")
    )
    other = Ship(needs_approval, policy)
    result = await Runner.run(agent(tools=[other.tool]), through_json(state))
    assert other.sent == []
    assert len(result.interruptions) == 1


BROKEN: dict[str, tuple[Any, str]] = {
    "no json": (
        "{",
        snapshot(
            "The state of the run is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 (char 1)."
        ),
    ),
    "no object": (
        "[]",
        snapshot("The state of the run is not valid: expected a JSON object, got a list."),
    ),
    "another thing": (
        "{}",
        snapshot(
            "The state of the run cannot be read: expected version 2 of 'agents_tools.run_state', got version None of None."
        ),
    ),
    "a later version": (
        '{"v": 3, "type": "agents_tools.run_state"}',
        snapshot(
            "The state of the run cannot be read: expected version 2 of 'agents_tools.run_state', got version 3 of 'agents_tools.run_state'."
        ),
    ),
    "a field of another type": ({"agent": 7}, snapshot("state.agent: expected a str, got an int.")),
    "history": (
        {"history": [{"type": "x"}]},
        snapshot(
            "state.history[0].type: expected one of message, reasoning, function_call, function_call_output, got 'x'."
        ),
    ),
    "pending": (
        {"pending": [{"item": {"type": "message", "role": "user", "content": ""}}]},
        snapshot("state.pending: expected calls that wait for approval."),
    ),
    "decision": ({"pending": "decision"}, snapshot("state.approved: expected a bool, got a str.")),
    "decision arguments": (
        {"pending": "arguments"},
        snapshot("state.arguments: expected a str, got an int."),
    ),
    "usage": (
        {"usage": {"tokens": 1}},
        snapshot(
            "usage.tokens is unknown: expected one of breakdown, cache_write_1h_tokens, cache_write_tokens, cached_input_tokens, cost, input_tokens, output_tokens, reasoning_tokens, requests, tool_calls."
        ),
    ),
    "nested": (
        {"nested": {"a": 1}},
        snapshot("state.a: expected a dict, got an int."),
    ),
    "deep": ("[" * 200_000, ""),
    "binary": (b"\xff\xfe", ""),
}


@pytest.mark.parametrize("case", BROKEN)
async def test_an_unreadable_state_is_refused(case: str) -> None:
    """States come from a store or a network and can hold anything."""
    broken_state, message = BROKEN[case]
    if isinstance(broken_state, dict):
        ship = Ship()
        one = agent(tool_call("ship", order=1), tools=[ship.tool])
        data = (await Runner.run(one, "Go.")).to_state().to_dict()
        pending = data["pending"][0]
        if broken_state.get("pending") == "decision":
            broken_state = {"pending": [{**pending, "decision": {"approved": "yes"}}]}
        elif broken_state.get("pending") == "arguments":
            broken_state = {
                "pending": [{**pending, "decision": {"approved": True, "arguments": 5}}]
            }
        broken_state = json.dumps({**data, **broken_state})
    with pytest.raises(UserError) as caught:
        RunState.from_json(broken_state)
    if message:
        assert str(caught.value) == message


async def test_a_state_of_another_agent_is_refused() -> None:
    """Its calls would run with the wrong tools."""
    ship = Ship()
    result = await Runner.run(agent(tool_call("ship", order=1), tools=[ship.tool]), "Go.")
    with pytest.raises(UserError) as caught:
        await Runner.run(agent("x", name="other"), result.to_state())
    assert str(caught.value) == snapshot(
        "The state belongs to another agent: expected a state of 'other', got one of 'main'."
    )


# --- agents inside agents


def _three_deep(ship: Ship, *, streaming: bool) -> Agent:
    deep = agent(tool_call("ship", order=1), "deep", tools=[ship.tool], name="deep")
    middle = agent(
        [tool_call("deep", input="?"), tool_call("ship", order=2)],
        "middle",
        tools=[deep.as_tool(streaming=streaming), ship.tool],
        name="middle",
    )
    return agent(
        tool_call("middle", input="?"),
        "outer",
        tools=[middle.as_tool(streaming=streaming)],
    )


@pytest.mark.parametrize("streaming", [True, False])
async def test_calls_two_agents_deep_wait_and_resume(*, streaming: bool) -> None:
    """The item has the path of the call; each is decided separately, via JSON."""
    ship = Ship()
    one = _three_deep(ship, streaming=streaming)
    run = Runner.run_streamed(one, "Go.")
    events: list[Event] = [event async for event in run.stream_events()]
    check_events(events)
    assert [(item.path, item.arguments, item.agent) for item in run.interruptions] == [
        (("call_1",), '{"order":2,"note":""}', "middle"),
        (("call_1", "call_1"), '{"order":1,"note":""}', "deep"),
    ]
    state = through_json(run.to_state())
    state.reject(state.interruptions[0], "Not this one.")
    result = await Runner.run(one, state)
    assert ship.sent == []
    assert [item.agent for item in result.interruptions] == ["deep"]
    state = through_json(result.to_state())
    state.approve(state.interruptions[0])
    result = await Runner.run(one, state)
    assert ship.sent == [1]
    assert result.final_output == "outer"
    assert outputs(result) == [("ok", "middle")]
    assert [item.get("type", "message") for item in result.to_input_list()] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]


@pytest.mark.parametrize("depth", [1, 2])
async def test_a_hidden_agent_shows_only_its_calls_that_wait(depth: int) -> None:
    """A person can decide only about a call that the user interface shows."""

    @function_tool
    def look() -> str:
        """Look."""
        return "seen"

    ship = Ship()
    one = agent([tool_call("look"), tool_call("ship", order=1)], "x", tools=[ship.tool, look])
    for _ in range(depth):
        one = agent(tool_call("inner", input="?"), "x", tools=[one.as_tool("inner")])
    path = ("call_1",) * depth

    async def shown(run: RunResultStreaming) -> list[tuple[str, tuple[str, ...], object]]:
        events = [event async for event in run.stream_events()]
        check_events(events)
        return [
            (event.name, event.path, event.item.get("output"))
            for event in events
            if event.path and isinstance(event, RunItemStreamEvent)
        ]

    waiting = Runner.run_streamed(one, "Go.")
    assert await shown(waiting) == [("tool_approval_requested", path, None)]
    state = through_json(waiting.to_state())
    state.approve(state.interruptions[0])
    result = Runner.run_streamed(one, state)
    assert await shown(result) == [
        ("tool_approval_granted", path, None),
        ("tool_output", path, "sent 1"),
    ]
    assert result.final_output == "x"


async def test_an_agent_tool_can_need_approval() -> None:
    """Its decision is stored while a call inside waits for another one."""
    ship = Ship()
    inner = agent(tool_call("ship", order=1), "in", tools=[ship.tool], name="inner")
    model = inner.model
    assert isinstance(model, ScriptedModel)
    one = agent(tool_call("inner", input="?"), "x", tools=[needs_approval(inner.as_tool())])
    state = through_json((await Runner.run(one, "Go.")).to_state())
    assert [item.name for item in state.interruptions] == ["inner"]
    assert model.requests == []
    state.approve(state.interruptions[0])
    state = through_json((await Runner.run(one, state)).to_state())
    assert [(item.name, item.path) for item in state.interruptions] == [("ship", ("call_1",))]
    state.approve(state.interruptions[0])
    result = await Runner.run(one, state)
    assert result.final_output == "x"
    assert ship.sent == [1]
    assert len(model.requests) == 2


async def test_a_run_inside_a_function_denies_calls_that_need_approval() -> None:
    """A Python function cannot be suspended and resumed in another process."""
    ship = Ship()
    inner = agent(tool_call("ship", order=1), "in", tools=[ship.tool], name="inner").as_tool()

    @function_tool
    async def helper() -> str:
        return await inner.invoke(input="?")

    result = await Runner.run(agent(tool_call("helper"), "x", tools=[helper]), "Go.")
    assert outputs(result) == snapshot(
        [
            (
                "denied",
                "Agent 'inner' waits for the approval of 'ship', but was called outside a run that can request it.",
            )
        ]
    )
    assert ship.sent == []


# --- immediate decisions


@pytest.mark.parametrize("kind", ["sync", "async", "decision", "no", "reason", "edit"])
async def test_an_approver_can_decide_immediately(kind: str) -> None:
    """The run does not stop then, even for inner agents with their own configuration."""
    seen: list[ToolApprovalItem] = []
    decisions: dict[str, Any] = {
        "decision": Decision(approved=True),
        "no": False,
        "reason": Decision(approved=False, message="Not today."),
        "edit": Decision(approved=True, arguments='{"order": 9}'),
    }

    def decide(item: ToolApprovalItem) -> Any:
        seen.append(item)
        return decisions.get(kind, True)

    async def later(item: ToolApprovalItem) -> Any:
        await asyncio.sleep(0)
        return decide(item)

    ship = Ship()
    inner = agent(tool_call("ship", order=2), "in", tools=[ship.tool], name="inner")
    calls = [tool_call("ship", order=1), tool_call("inner", input="?")]
    one = agent(
        calls, "x", tools=[ship.tool, inner.as_tool(run_config=RunConfig(max_parallel_tools=1))]
    )
    config = RunConfig(approve=later if kind == "async" else decide)
    run = Runner.run_streamed(one, "Go.", run_config=config)
    events = [event async for event in run.stream_events()]
    check_events(events)
    assert run.final_output == "x"
    assert [(item.path, item.call_id) for item in sorted(seen, key=lambda item: item.path)] == [
        ((), "call_1"),
        (("call_2",), "call_1"),
    ]
    if kind in {"no", "reason"}:
        assert ship.sent == []
        assert outputs(run)[0][0] == "denied"
    else:
        assert sorted(ship.sent) == ([9, 9] if kind == "edit" else [1, 2])


async def test_an_invalid_answer_of_an_approver_is_a_user_error() -> None:
    """A typo in the approver must not count as an approval."""
    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    with pytest.raises(UserError) as caught:
        await Runner.run(one, "Go.", run_config=RunConfig(approve=lambda item: "yes"))
    assert str(caught.value) == snapshot(
        "RunConfig(approve=...) returned a wrong value: expected a boolean or a Decision, got a str."
    )
    assert ship.sent == []


async def test_an_approver_that_fails_ends_the_run_without_the_call() -> None:
    """Without a decision the call must not run."""

    def broken(item: ToolApprovalItem) -> bool:
        raise LookupError("approver")

    ship = Ship()
    one = agent(tool_call("ship", order=1), "x", tools=[ship.tool])
    with pytest.raises(LookupError):
        await Runner.run(one, "Go.", run_config=RunConfig(approve=broken))
    assert ship.sent == []


async def test_a_call_outside_a_run_is_denied() -> None:
    """There is no approver to ask."""
    ship = Ship()
    with pytest.raises(ToolDeniedError) as caught:
        await ship.tool.invoke(order=1)
    assert str(caught.value) == snapshot(
        "Tool 'ship' needs the approval of a person, but no run can request it here. The call was not run. Call it in a run of an agent; for a tool that another tool calls, set RunConfig(approve=...)."
    )
    outcome = await ship.tool.call(None, '{"order": 1}')
    assert outcome.status == "denied"
    assert await ship.tool.on_invoke_tool(None, '{"order": 1}') == outcome.output
    assert ship.sent == []


# --- elicitation


@function_tool
async def order_pizza(context: ToolContext[Any]) -> str:
    size = await context.ask("Which size?", answer=Literal["small", "large"])
    return f"A {size} one."


@pytest.mark.parametrize("kind", ["sync", "async", "none", "wrong", "nobody"])
async def test_a_tool_can_ask_the_user(kind: str) -> None:
    """The answer has the requested type, or the call is denied."""
    seen: list[Question] = []

    def ask(question: Question) -> Any:
        seen.append(question)
        return {"none": None, "wrong": "huge"}.get(kind, "large")

    async def later(question: Question) -> Any:
        return ask(question)

    inner = agent(tool_call("order_pizza"), "in", tools=[order_pizza], name="inner")
    model = inner.model
    assert isinstance(model, ScriptedModel)
    one = agent(tool_call("inner", input="?"), "x", tools=[inner.as_tool(run_config=RunConfig())])
    config = RunConfig(ask=None if kind == "nobody" else later if kind == "async" else ask)
    await Runner.run(one, "Go.", run_config=config)
    answer = model.requests[1].input[-1]
    assert isinstance(answer, ToolCallOutputItem)
    expected = {
        "sync": ("ok", "A large one."),
        "async": ("ok", "A large one."),
        "none": snapshot(("denied", "The user declined to answer: Which size?")),
        "wrong": snapshot(
            (
                "denied",
                'The answer to \'Which size?\' is invalid: expected one of "small", "large", got "huge".',
            )
        ),
        "nobody": snapshot(
            (
                "denied",
                "Tool 'order_pizza' asked a question, but the run has no handler for questions: Which size?",
            )
        ),
    }
    assert (answer.status, answer.output) == expected[kind]
    if seen:
        assert seen[0].path == ("call_1", "call_1")
        assert seen[0].schema == {"enum": ["small", "large"], "type": "string"}
        assert (seen[0].tool_name, seen[0].tool_call_id) == ("order_pizza", "call_1")


class _Address(BaseModel):
    street: str
    number: int = 1


class _Login(BaseModel):
    password: SecretStr


async def _asked(answer: Any, reply: Any) -> tuple[str, Any]:
    """Return how a call ends that asks for an answer of a type, and the answer or the error."""
    received: list[Any] = []

    @function_tool
    async def ask(context: ToolContext[Any]) -> None:
        received.append(await context.ask("Which?", answer=answer))

    result = await Runner.run(
        agent(tool_call("ask"), "x", tools=[ask]), "Go.", run_config=RunConfig(ask=lambda _: reply)
    )
    ((status, output),) = outputs(result)
    return status, received[0] if received else output


@pytest.mark.parametrize(
    ("answer", "reply", "read"),
    [
        (int, "7", 7),
        (bool, "true", True),
        (list[int], [1, "2"], [1, 2]),
        (_Address, {"street": "a", "number": "2"}, _Address(street="a", number=2)),
        (_Address, '{"street": "a"}', _Address(street="a")),
        (_Login, _Login(password=SecretStr("x")), _Login(password=SecretStr("x"))),
    ],
)
async def test_answers_are_read_as_arguments_are(answer: Any, reply: Any, read: Any) -> None:
    """A web form sends text; an instance of the type is returned as it is."""
    assert await _asked(answer, reply) == ("ok", read)


@pytest.mark.parametrize(
    ("answer", "reply", "status", "problem"),
    [
        (int, "x", "denied", 'invalid: expected an integer, got "x".'),
        (_Address, {"number": 1}, "denied", "invalid: street: missing, expected a string"),
        (int, object(), "denied", 'invalid: expected an integer, got "<object object'),
        (int, "\ud800", "denied", "invalid: expected an integer, got"),
        (object.__init__, 1, "tool_error", "expected a type with a JSON form, got <slot wrapper"),
    ],
)
async def test_the_error_for_a_wrong_answer_names_its_place(
    answer: Any, reply: Any, status: str, problem: str
) -> None:
    """The tool and the person read what was expected."""
    ended, text = await _asked(answer, reply)
    assert ended == status
    assert problem in str(text)


# --- guardrails


async def test_guardrails_check_arguments_and_results() -> None:
    """They change, refuse or pass them; the model reads the reason."""
    ship = Ship(
        lambda tool: output_guardrail(_no_sevens)(input_guardrail(_small_only)(tool)),
    )
    calls = [tool_call("ship", order=n) for n in (1, 7, 50, 500)]
    result = await Runner.run(agent(calls, "x", tools=[ship.tool]), "Go.")
    assert sorted(ship.sent) == [1, 7, 10]
    assert outputs(result) == [
        ("ok", "sent 1"),
        ("tool_error", "It has a seven in it."),
        ("ok", "sent 10"),
        ("denied", "Far too many."),
    ]


def _small_only(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
    if arguments["order"] > 100:
        raise ToolDeniedError("Far too many.")
    return {"order": 10} if arguments["order"] > 10 else None


async def _no_sevens(context: ToolContext[Any], value: str) -> str:
    if "7" in value:
        raise ToolError("It has a seven in it.")
    return value


# --- another process

PROGRAM = """
    import asyncio, sys
    from pathlib import Path
    from agents_tools import Agent, Runner, function_tool
    from agents_tools.agents import RunState
    from agents_tools.policies import needs_approval
    from agents_tools.testing import ScriptedModel, tool_call

    step, place = sys.argv[1], Path(sys.argv[2])
    sent = place / "sent"

    @needs_approval
    @function_tool
    async def ship(order: int) -> str:
        '''Ship an order.'''
        with sent.open("a") as book:
            book.write(f"{order} ")
        return f"sent {order}"

    inner_steps = {"stop": [[tool_call("ship", order=1), tool_call("ship", order=2)]], "go": ["in"]}
    inner = Agent("inner", tools=[ship], model=ScriptedModel(inner_steps[step]))
    outer_steps = {"stop": [tool_call("inner", input="?")], "go": ["Done."]}
    outer = Agent("outer", tools=[inner.as_tool()], model=ScriptedModel(outer_steps[step]))

    async def main():
        state = place / "state.json"
        if step == "stop":
            result = await Runner.run(outer, "Ship them.")
            state.write_text(result.to_state().to_json())
            return
        waiting = RunState.from_json(state.read_text())
        first, second = waiting.interruptions
        waiting.approve(first)
        waiting.reject(second, "Not the second.")
        result = await Runner.run(outer, waiting)
        print(result.final_output, sent.read_text().strip())
        print(waiting.nested["call_1"].history[-1].name)

    asyncio.run(main())
"""


def test_a_run_resumes_in_another_process(tmp_path: Path) -> None:
    """The state and the same program are sufficient."""
    found = ""
    for step in ("stop", "go"):
        done = subprocess.run(  # noqa: S603 - a program of this test
            [sys.executable, "-c", textwrap.dedent(PROGRAM), step, str(tmp_path)],
            capture_output=True,
            text=True,
            timeout=15,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        found += done.stdout
    assert found.splitlines() == ["Done. 1", "ship"]


async def test_an_unknown_tool_that_raises_leaves_the_others_waiting() -> None:
    """A run that ends with an error keeps the calls that can still be decided."""
    ship = Ship()
    calls = [tool_call("ship", order=1), tool_call("boom")]

    @function_tool(failure_error_function=None)
    async def boom() -> str:
        raise ModelBehaviorError("boom")

    one = agent(calls, "x", tools=[ship.tool, boom])
    with pytest.raises(ModelBehaviorError) as caught:
        await Runner.run(one, "Go.")
    failed: Any = caught.value
    state = failed.run_result.to_state()
    for item in state.interruptions:
        state.approve(item)
    result = await Runner.run(one, through_json(state))
    assert result.final_output == "x"
    assert ship.sent in ([1], [])
    assert len(outputs(result)) == 2


async def test_a_person_approves_the_arguments_that_run() -> None:
    """A guardrail that rewrites arguments runs before the approval, at any position."""
    ran: list[str] = []

    def inside(context: ToolContext[Any], arguments: dict[str, Any]) -> dict[str, Any]:
        return {"path": "/data" + arguments["path"]}

    @function_tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return path

    guard = input_guardrail(inside)
    for tool in (needs_approval(guard(delete)), guard(needs_approval(delete))):
        model = ScriptedModel([tool_call("delete", path="/x"), "done"])
        agent = Agent("Main", tools=[tool], model=model)
        result = await Runner.run(agent, "Go.")
        [waiting] = result.interruptions
        assert json.loads(waiting.arguments) == {"path": "/data/x"}
        state = RunState.from_json(result.to_state().to_json())
        state.approve(state.interruptions[0])
        assert (await Runner.run(agent, state)).final_output == "done"
    assert ran == ["/data/x", "/data/x"]


async def test_arguments_changed_by_a_person_pass_the_guardrail_too() -> None:
    ran: list[str] = []

    def only_below(context: ToolContext[Any], arguments: dict[str, Any]) -> None:
        if not arguments["path"].startswith("/data"):
            raise ToolError("Only below /data.")

    @needs_approval
    @input_guardrail(only_below)
    @function_tool
    def delete(path: str) -> str:
        """Delete a file."""
        ran.append(path)
        return path

    model = ScriptedModel([tool_call("delete", path="/data/x"), "done"])
    agent = Agent("Main", tools=[delete], model=model)
    state = (await Runner.run(agent, "Go.")).to_state()
    state.approve(state.interruptions[0], {"path": "/etc"})
    result = await Runner.run(agent, state)
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert ran == []
    assert outputs[0].status == "tool_error"
    assert "Only below /data." in str(outputs[0].output)


async def test_a_waiting_call_in_a_session_is_requested_again_and_not_lost() -> None:
    """It has not run, so its outcome is known."""

    @needs_approval
    @function_tool
    def delete(path: str) -> str:
        """Delete a file."""
        return f"deleted {path}"

    session = MemoryRunStore().session("chat")
    model = ScriptedModel([tool_call("delete", path="/x"), "done"])
    agent = Agent("Main", tools=[delete], model=model)
    await Runner.run(agent, "Go.", session=session)
    again = await Runner.run(agent, [], session=session)
    assert [item.name for item in again.interruptions] == ["delete"]
    done = await Runner.run(
        agent, [], session=session, run_config=RunConfig(approve=lambda item: True)
    )
    assert done.final_output == "done"


async def test_an_approved_call_that_crashed_while_running_is_lost(tmp_path: Path) -> None:
    """The start is recorded first, so the next run knows that the call can have run."""
    ran: list[str] = []
    fails = FailingWrites(1_000)

    @needs_approval
    @function_tool
    async def pay(payee: str) -> str:
        """Pay somebody."""
        ran.append(payee)
        fails.left = 0  # as if the process ended here
        return "paid"

    model = ScriptedModel([tool_call("pay", payee="x"), "unsure"])
    agent = Agent("Main", tools=[pay], model=model)
    async with watched_store(tmp_path / "runs.db", before=fails) as store:
        config = RunConfig(store=store)
        state = (await Runner.run(agent, "Go.", session="chat", run_config=config)).to_state()
        state.approve(state.interruptions[0])
        with pytest.raises(EventStoreError):
            await Runner.run(agent, state, session="chat", run_config=config)
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        config = RunConfig(approve=lambda item: True, store=store)
        result = await Runner.run(agent, "And?", session="chat", run_config=config)
    outputs = [item for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert [item.status for item in outputs] == ["lost"]
    assert ran == ["x"]


async def test_an_output_guardrail_that_returns_none_passes_the_value() -> None:
    """A guardrail that only observes must not replace every output with None."""
    seen: list[Any] = []

    @output_guardrail(lambda context, value: seen.append(value))
    @function_tool
    def count() -> int:
        """Count."""
        return 3

    assert await count.invoke() == 3
    assert seen == [3]
