"""Handoffs: another agent continues the run."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, cast

import pytest
from inline_snapshot import snapshot
from pydantic import BaseModel

from agents_tools import (
    Agent,
    AgentHooks,
    HandoffInputData,
    MaxTurnsExceeded,
    RunConfig,
    RunHooks,
    Runner,
    ToolAnnotations,
    UserError,
    event_from_dict,
    event_to_dict,
    function_tool,
    handoff,
    policies,
)
from agents_tools.agents import ModelSettings, RunState, remove_all_tools
from agents_tools.content import MessageInputItem, ToolCallOutputItem
from agents_tools.events import AgentUpdatedStreamEvent, ToolStreamStartEvent
from agents_tools.persistence import MemoryRunStore, SQLiteRunStore
from agents_tools.testing import ScriptedModel, check_events, tool_call


class Reason(BaseModel):
    """Why the customer is handed over."""

    reason: str
    urgent: bool = False


@function_tool
def pay_back(euros: int) -> str:
    """Pay money back."""
    return f"paid {euros}"


def outputs(result: Any) -> list[tuple[str, str, Any]]:
    """Return the name, the status and the output of each call."""
    return [
        (item.name, item.status, item.output)
        for item in result.new_items
        if isinstance(item, ToolCallOutputItem)
    ]


def texts(items: Any) -> list[Any]:
    """Return a short form of each item."""
    return [
        item.content
        if isinstance(item, MessageInputItem)
        else getattr(item, "text", None) or f"{item.type} {item.name}"
        for item in items
    ]


async def test_the_next_agent_continues_with_its_own_model_tools_and_instructions() -> None:
    """The conversation goes on: one result, one usage, one history."""
    first = ScriptedModel([tool_call("transfer_to_refunds")])
    second = ScriptedModel([tool_call("pay_back", euros=5), "You get 5 euros."])
    refunds = Agent(name="Refunds", instructions="You refund.", tools=[pay_back], model=second)
    desk = Agent(name="Desk", instructions="You help.", handoffs=[refunds], model=first)
    run = Runner.run_streamed(desk, "Refund me")
    events = [event async for event in run.stream_events()]
    result = await run.wait()

    assert (result.final_output, result.last_agent, run.current_agent) == (
        "You get 5 euros.",
        refunds,
        refunds,
    )
    asked = [(one.agent, one.instructions, len(one.input)) for one in second.requests]
    assert asked == [("Refunds", "You refund.", 3), ("Refunds", "You refund.", 5)]
    assert [tool.name for tool in second.requests[0].tools] == ["pay_back"]
    assert outputs(result) == [
        ("transfer_to_refunds", "ok", '{"assistant": "Refunds"}'),
        ("pay_back", "ok", "paid 5"),
    ]
    assert [getattr(item, "agent", None) for item in result.new_items] == [
        *["Desk"] * 2,
        *["Refunds"] * 3,
    ]
    assert result.usage.requests == 3
    check_events(events)
    [changed] = [event for event in events if isinstance(event, AgentUpdatedStreamEvent)]
    assert changed.new_agent is refunds
    stored = event_from_dict(event_to_dict(changed))
    assert isinstance(stored, AgentUpdatedStreamEvent)
    assert stored.new_agent.name == "Refunds"


async def test_the_model_sees_a_handoff_as_a_tool() -> None:
    """The default texts name the agent; the overrides replace them."""
    model = ScriptedModel(["Hello."])
    refunds = Agent(name="Refunds & more", handoff_description="Refunds money.", model=model)
    desk = Agent(
        name="Desk",
        model=model,
        handoffs=[
            refunds,
            handoff(refunds, "escalate", "Call the boss.", lambda ctx, reason: None, Reason),
            handoff(refunds, "hidden", is_enabled=False),
        ],
    )
    await Runner.run(desk, "Hi")
    tools = [
        (tool.name, tool.description, tool.json_schema)
        for tool in cast("list[Any]", model.requests[0].tools)
    ]
    assert tools == snapshot(
        [
            (
                "transfer_to_refunds___more",
                "Hand the conversation over to agent 'Refunds & more'. Refunds money.",
                {"properties": {}, "title": "transfer_to_refunds___more_args", "type": "object"},
            ),
            (
                "escalate",
                "Call the boss.",
                {
                    "properties": {
                        "reason": {"title": "Reason", "type": "string"},
                        "urgent": {"default": False, "title": "Urgent", "type": "boolean"},
                    },
                    "required": ["reason"],
                    "title": "escalate_args",
                    "type": "object",
                },
            ),
        ]
    )


async def test_on_handoff_receives_the_context_and_valid_input() -> None:
    """The model corrects invalid input, as for any tool."""
    seen: list[Any] = []

    async def note(ctx: Any, reason: Reason) -> None:
        seen.append((ctx.context, reason))

    model = ScriptedModel(
        [
            tool_call("transfer_to_b", urgent=True),
            tool_call("transfer_to_b", reason="late"),
            "Done.",
        ]
    )
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[handoff(b, on_handoff=note, input_type=Reason)])
    result = await Runner.run(a, "x", context="app")
    assert seen == [("app", Reason(reason="late"))]
    assert [status for _, status, _ in outputs(result)] == ["invalid_args", "ok"]
    assert result.last_agent is b


async def test_a_failed_on_handoff_refuses_the_handoff() -> None:
    """The model reads the reason, and the agent stays."""

    def refuse(ctx: Any) -> None:
        raise RuntimeError("the office is closed")

    model = ScriptedModel([tool_call("transfer_to_b"), "Sorry."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[handoff(b, on_handoff=refuse)])
    result = await Runner.run(a, "x")
    assert result.last_agent is a
    [(_, status, output)] = outputs(result)
    assert status == "tool_error"
    assert "the office is closed" in output


async def test_only_the_first_handoff_of_a_turn_counts() -> None:
    """Two agents cannot both continue; the other calls of the turn run as usual."""
    called: list[str] = []
    model = ScriptedModel(
        [
            [
                tool_call("transfer_to_b"),
                tool_call("pay_back", euros=1),
                tool_call("transfer_to_c"),
            ],
            "I am B.",
        ]
    )
    b, c = Agent(name="B", model=model), Agent(name="C", model=model)
    handoffs: list[Any] = [
        handoff(one, on_handoff=lambda ctx, one=one: called.append(one.name)) for one in (b, c)
    ]
    a = Agent(name="A", model=model, tools=[pay_back], handoffs=handoffs)
    result = await Runner.run(a, "x")
    assert (result.last_agent, called) == (b, ["B"])
    assert outputs(result) == snapshot(
        [
            ("transfer_to_b", "ok", '{"assistant": "B"}'),
            ("pay_back", "ok", "paid 1"),
            (
                "transfer_to_c",
                "denied",
                "Not done: the conversation already goes to agent 'B' after this turn.",
            ),
        ]
    )


async def test_hooks_are_called_for_the_handoff_and_not_as_for_a_tool() -> None:
    """The methods and the order of their arguments are those of openai-agents."""
    log: list[str] = []

    class Log(RunHooks[Any]):
        async def on_agent_start(self, context: Any, agent: Any) -> None:
            log.append(f"start {agent.name}")

        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            log.append(f"{from_agent.name} -> {to_agent.name}")

        async def on_tool_start(self, context: Any, agent: Any, tool: Any) -> None:
            log.append(f"{agent.name} calls {tool.name}")

        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: Any) -> None:
            log.append(f"{tool.name} ends")

        async def on_agent_end(self, context: Any, agent: Any, output: object) -> None:
            log.append(f"end {agent.name}")

    class Own(AgentHooks[Any]):
        async def on_handoff(self, context: Any, agent: Any, source: Any) -> None:
            log.append(f"{agent.name} follows {source.name}")

        async def on_start(self, context: Any, agent: Any) -> None:
            log.append(f"own start {agent.name}")

    model = ScriptedModel([tool_call("transfer_to_b"), tool_call("pay_back", euros=1), "Done."])
    b = Agent(name="B", model=model, tools=[pay_back], hooks=Own())
    await Runner.run(Agent(name="A", model=model, handoffs=[b]), "x", hooks=Log())
    assert log == [
        "start A",
        "A -> B",
        "B follows A",
        "start B",
        "own start B",
        "B calls pay_back",
        "pay_back ends",
        "end B",
    ]


async def test_agents_can_hand_over_to_each_other_within_max_turns() -> None:
    """The turns of all agents count, so that two agents cannot pass a user around forever."""
    steps = [tool_call("transfer_to_b"), tool_call("transfer_to_a")] * 3
    model = ScriptedModel([*steps, "A again."])
    a = Agent(name="A", model=model)
    b = Agent(name="B", model=model, handoffs=[a])
    a.handoffs.append(b)
    result = await Runner.run(a, "x")
    assert (result.final_output, result.last_agent) == ("A again.", a)
    model.add(*steps)
    with pytest.raises(MaxTurnsExceeded):
        await Runner.run(a, "x", max_turns=4)


async def test_a_forced_tool_choice_applies_to_the_first_turn_of_each_agent() -> None:
    """Otherwise a specialist with a required tool would skip it after a handoff."""
    model = ScriptedModel([tool_call("transfer_to_b"), tool_call("pay_back", euros=1), "Done."])
    forced = ModelSettings(tool_choice="required")
    b = Agent(name="B", model=model, tools=[pay_back], model_settings=forced)
    await Runner.run(Agent(name="A", model=model, handoffs=[b]), "x")
    assert [request.settings.tool_choice for request in model.requests] == [None, "required", None]


async def test_an_agent_inside_a_tool_can_hand_over() -> None:
    """The change stays inside: the caller gets the answer of the last agent."""
    model = ScriptedModel(
        {
            "Outer": [tool_call("helper", input="help"), "Fine."],
            "Helper": [tool_call("transfer_to_expert")],
            "Expert": ["It is blue."],
        }
    )
    expert = Agent(name="Expert", model=model)
    helper = Agent(name="Helper", model=model, handoffs=[expert])
    outer = Agent(name="Outer", model=model, tools=[helper.as_tool(streaming=True)])
    run = Runner.run_streamed(outer, "x")
    events = [event async for event in run.stream_events()]
    result = await run.wait()
    assert result.last_agent is outer
    assert outputs(result) == [("helper", "ok", "It is blue.")]
    [changed] = [event for event in events if isinstance(event, AgentUpdatedStreamEvent)]
    assert len(changed.path) == 1


# --- input filters


async def test_an_input_filter_changes_what_the_next_agent_sees_and_nothing_else() -> None:
    """The result keeps all items, and later turns follow the filtered ones."""
    seen: list[HandoffInputData] = []

    async def last_words(data: HandoffInputData) -> HandoffInputData:
        seen.append(data)
        return data.clone(input_history="Short.", pre_handoff_items=(), input_items=())

    model = ScriptedModel(
        [
            [tool_call("pay_back", euros=1)],
            ["Moment.", tool_call("transfer_to_b")],
            tool_call("pay_back", euros=2),
            "Done.",
        ]
    )
    b = Agent(name="B", model=model, tools=[pay_back])
    a = Agent(
        name="A", model=model, tools=[pay_back], handoffs=[handoff(b, input_filter=last_words)]
    )
    result = await Runner.run(a, "A long story.", context="app")
    [data] = seen
    assert data.input_history == "A long story."
    assert texts(data.pre_handoff_items) == [
        "tool_call_item pay_back",
        "tool_call_output_item pay_back",
    ]
    assert texts(data.new_items) == [
        "Moment.",
        "tool_call_item transfer_to_b",
        "tool_call_output_item transfer_to_b",
    ]
    assert data.run_context is not None
    assert data.run_context.context == "app"
    assert texts(model.requests[2].input) == ["Short."]
    assert texts(model.requests[3].input) == [
        "Short.",
        "tool_call_item pay_back",
        "tool_call_output_item pay_back",
    ]
    assert len(result.to_input_list()) == 9


async def test_a_later_filter_sees_what_the_earlier_one_left() -> None:
    """Items that were removed for one agent do not come back for the next one."""
    seen: list[Any] = []

    def look(data: HandoffInputData) -> HandoffInputData:
        seen.append((data.input_history, texts(data.pre_handoff_items), texts(data.new_items)))
        return data

    model = ScriptedModel([tool_call("transfer_to_b"), tool_call("transfer_to_c"), "Done."])
    c = Agent(name="C", model=model)
    b = Agent(name="B", model=model, handoffs=[handoff(c, input_filter=look)])
    a = Agent(name="A", model=model, handoffs=[handoff(b, input_filter=remove_all_tools)])
    await Runner.run(a, "Hello")
    assert texts(model.requests[1].input) == ["Hello"]
    assert seen == [
        ("Hello", [], ["tool_call_item transfer_to_c", "tool_call_output_item transfer_to_c"])
    ]
    assert texts(model.requests[2].input) == ["Hello", *seen[0][2]]


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda data: None, "expected HandoffInputData, got a NoneType"),
        (lambda data: data.clone(new_items=data.new_items[:1]), "separated calls .*: c1"),
        (lambda data: data.clone(input_history=(), new_items=()), "left no items"),
        (lambda data: data.clone(new_items=(5,)), "expected an item"),
    ],
)
async def test_a_wrong_result_of_a_filter_ends_the_run(wrong: Any, message: str) -> None:
    """A model would refuse a call without its output, with an error that names no filter."""
    model = ScriptedModel([tool_call("transfer_to_b", call_id="c1"), "Done."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[handoff(b, input_filter=wrong)])
    with pytest.raises(UserError, match=message):
        await Runner.run(a, "x")


# --- approvals and stores


async def test_a_handoff_can_wait_for_approval() -> None:
    """A handoff is a tool, so policies apply to it."""
    model = ScriptedModel([tool_call("transfer_to_b"), "I am B."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[policies.needs_approval(handoff(b))])
    first = await Runner.run(a, "x")
    assert first.last_agent is a
    state = RunState.from_json(first.to_state().to_json())
    state.approve(state.interruptions[0])
    result = await Runner.run(a, state)
    assert (result.final_output, result.last_agent) == ("I am B.", b)


async def test_a_state_continues_with_the_agent_of_the_handoff() -> None:
    """The agent and what it sees are part of the state; the first agent starts the run again."""
    model = ScriptedModel([tool_call("transfer_to_b"), tool_call("pay_back", euros=1), "Done."])
    b = Agent(name="B", model=model, tools=[policies.needs_approval(pay_back)])
    a = Agent(name="A", model=model, handoffs=[handoff(b, input_filter=remove_all_tools)])
    first = await Runner.run(a, "x")
    assert first.last_agent is b
    state = RunState.from_json(first.to_state().to_json())
    assert (state.agent, state.current_agent) == ("A", "B")
    state.approve(state.interruptions[0])
    with pytest.raises(UserError, match="belongs to another agent"):
        await Runner.run(b, state)
    with pytest.raises(UserError, match="agent 'A' has no handoff to it"):
        await Runner.run(Agent(name="A", model=model), state)
    result = await Runner.run(a, state)
    assert (result.final_output, result.last_agent) == ("Done.", b)
    assert texts(model.requests[2].input) == [
        "x",
        "tool_call_item pay_back",
        "tool_call_output_item pay_back",
    ]


async def test_a_message_after_the_interruption_does_not_stop_a_handoff() -> None:
    """The handoff was approved; the next agent reads the message."""
    model = ScriptedModel([tool_call("transfer_to_b"), "I am B."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[policies.needs_approval(handoff(b))])
    state = (await Runner.run(a, "x")).to_state()
    state.approve(state.interruptions[0])
    state.history.append(MessageInputItem(content="Hurry."))
    result = await Runner.run(a, state)
    assert (model.requests[1].agent, result.last_agent) == ("B", b)
    assert texts(model.requests[1].input)[-1] == "Hurry."


_PROGRAM = """
import asyncio, os, signal, sys
from agents_tools import Agent, RunConfig, Runner, SQLiteRunStore, ToolAnnotations, function_tool, handoff
from agents_tools.agents import remove_all_tools
from agents_tools.testing import ScriptedModel, tool_call

@function_tool(annotations=ToolAnnotations(idempotentHint=True))
def pay_back(euros: int) -> str:
    os.kill(os.getpid(), signal.SIGKILL)

model = ScriptedModel([tool_call("transfer_to_b"), tool_call("pay_back", euros=1)])
b = Agent(name="B", model=model, tools=[pay_back])
a = Agent(name="A", model=model, handoffs=[
    handoff(b, on_handoff=lambda ctx: open(sys.argv[2], "a").write("once "),
            input_filter=remove_all_tools)])
config = RunConfig(store=SQLiteRunStore(sys.argv[1]))
asyncio.run(Runner.run(a, "x", run_id="r", run_config=config))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGKILL")
async def test_a_killed_run_continues_with_the_agent_of_the_handoff(tmp_path: Path) -> None:
    """The recorded calls tell which agent continues, and the handoff does not happen twice."""
    place, notes = tmp_path / "runs.db", tmp_path / "notes"
    program = subprocess.run(  # noqa: ASYNC221, S603 - the test waits for its end
        [sys.executable, "-c", _PROGRAM, str(place), str(notes)], check=False, cwd=Path.cwd()
    )
    assert program.returncode == -9

    def note(ctx: Any) -> None:
        notes.write_text("twice")

    @function_tool(annotations=ToolAnnotations(idempotentHint=True), name_override="pay_back")
    def pay(euros: int) -> str:
        """Pay."""
        return "paid"

    hooks: list[str] = []

    class Log(RunHooks[Any]):
        async def on_handoff(self, context: Any, from_agent: Any, to_agent: Any) -> None:
            hooks.append("handoff")

    model = ScriptedModel({"B": ["Done."]})
    b = Agent(name="B", model=model, tools=[pay])
    a = Agent(
        name="A",
        model=model,
        handoffs=[handoff(b, on_handoff=note, input_filter=remove_all_tools)],
    )
    async with SQLiteRunStore(place) as store:
        result = await Runner.resume(a, "r", store=store, hooks=Log())
        assert (result.final_output, result.last_agent, hooks) == ("Done.", b, [])
        assert texts(model.requests[0].input) == [
            "x",
            "tool_call_item pay_back",
            "tool_call_output_item pay_back",
        ]
        stored = await store.log("r").read()
        changes = [event for event in stored if isinstance(event, AgentUpdatedStreamEvent)]
        assert [event.agent for event in changes] == ["B"]
        again = await Runner.resume(a, "r", store=store)
        assert (again.final_output, again.last_agent) == ("Done.", b)
    assert notes.read_text() == "once "


async def test_a_call_that_waits_after_a_handoff_is_resumed_with_the_agent_of_the_handoff() -> None:
    """The recorded request for approval is that of a later turn than the handoff."""
    model = ScriptedModel([tool_call("transfer_to_b"), tool_call("pay_back", euros=1), "Done."])
    b = Agent(name="B", model=model, tools=[policies.needs_approval(pay_back)])
    a = Agent(name="A", model=model, handoffs=[b])
    async with MemoryRunStore() as store:
        await Runner.run(a, "x", run_id="r", run_config=RunConfig(store=store))
        waiting = await Runner.resume(a, "r", store=store)
        assert waiting.last_agent is b
        assert [(item.name, item.agent) for item in waiting.interruptions] == [("pay_back", "B")]
        await store.decide("r", waiting.interruptions[0].call_id, True)
        result = await Runner.resume(a, "r", store=store)
    assert (result.final_output, result.last_agent) == ("Done.", b)
    assert [name for name, *_ in outputs(result)] == ["transfer_to_b", "pay_back"]
    assert outputs(result)[-1] == ("pay_back", "ok", "paid 1")


async def test_the_second_of_two_handoffs_that_are_approved_one_by_one_is_denied() -> None:
    """The state does not lose that the first one has been done."""
    model = ScriptedModel([[tool_call("transfer_to_b"), tool_call("transfer_to_c")], "I am B."])
    b, c = Agent(name="B", model=model), Agent(name="C", model=model)
    ask = policies.needs_approval
    a = Agent(name="A", model=model, handoffs=[ask(handoff(b)), ask(handoff(c))])
    result = await Runner.run(a, "x")
    for _ in range(2):
        state = RunState.from_json(result.to_state().to_json())
        state.approve(state.interruptions[0])
        result = await Runner.run(a, state)
    assert result.last_agent is b
    assert [
        (item["name"], item["status"]) for item in result.to_input_list() if "output" in item
    ] == [
        ("transfer_to_b", "ok"),
        ("transfer_to_c", "denied"),
    ]


async def test_a_handoff_that_was_interrupted_happens_again() -> None:
    """Without a function of the application, it has no effect that could happen twice."""
    model = ScriptedModel([tool_call("transfer_to_b"), "I am B.", "I am B again."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[b])
    async with MemoryRunStore(keep_display=True) as store:
        await Runner.run(a, "x", run_id="r", run_config=RunConfig(store=store))
        events = await store.log("r").read()
        begun = next(at for at, one in enumerate(events) if isinstance(one, ToolStreamStartEvent))
        interrupted = store.log("interrupted")
        await interrupted.append([event.replace(id=-1) for event in events[: begun + 1]])
        interrupted.close()
        result = await Runner.resume(a, "interrupted", store=store)
    assert (result.final_output, result.last_agent) == ("I am B again.", b)
    assert outputs(result) == [("transfer_to_b", "ok", '{"assistant": "B"}')]


async def test_a_session_starts_with_its_agent_again(tmp_path: Path) -> None:
    """Each run of a session has its own first agent; the conversation has all calls."""
    model = ScriptedModel([tool_call("transfer_to_b"), "I am B.", "I am A."])
    b = Agent(name="B", model=model)
    a = Agent(name="A", model=model, handoffs=[b])
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        await Runner.run(a, "one", session=store.session("s"))
        result = await Runner.run(a, "two", session=store.session("s"))
    assert result.last_agent is a
    assert texts(model.requests[2].input) == [
        "one",
        "tool_call_item transfer_to_b",
        "tool_call_output_item transfer_to_b",
        "I am B.",
        "two",
    ]


# --- errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda b: Agent(name="A", handoffs=cast("Any", ["B"])), "got a str"),
        (lambda b: Agent(name="A", handoffs=cast("Any", b)), "got an Agent"),
        (lambda b: Agent(name="A", handoffs=[pay_back]), "got a FunctionTool"),
        (lambda b: Agent(name="A", handoffs=[b, b.clone()]), "transfer_to_b"),
        (lambda b: handoff(cast("Any", "B")), "expects an Agent, got a str"),
        (
            lambda b: handoff(b, on_handoff=cast("Any", 5)),
            "on_handoff= expects a function, got an int",
        ),
        (
            lambda b: handoff(b, input_filter=cast("Any", 5)),
            "input_filter= expects a function, got an int",
        ),
        (lambda b: handoff(b, input_type=Reason), "Pass on_handoff="),
        (lambda b: handoff(b, on_handoff=lambda: None), r"a function of \(context\)"),
        (
            lambda b: handoff(b, on_handoff=lambda ctx: None, input_type=Reason),
            r"a function of \(context, input\)",
        ),
        (lambda b: handoff(b, "no spaces"), "no spaces"),
        (lambda b: handoff(b, on_handoff=print, input_type=int), "int"),
    ],
)
def test_a_wrong_declaration_names_the_agent_and_the_remedy(make: Any, message: str) -> None:
    """It fails where it is written, not in the middle of a run."""
    with pytest.raises(UserError, match=message):
        make(Agent(name="B"))


async def test_a_handoff_can_be_called_like_any_tool() -> None:
    """Outside a run, nothing changes, and the caller gets the output."""
    outcome = await handoff(Agent(name="B")).call(None, "{}")
    assert json.loads(str(outcome.output)) == {"assistant": "B"}
