"""Guardrails of agents: checks of the input and the final output of a run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest

from agents_tools import (
    Agent,
    GuardrailFunctionOutput,
    InputGuardrail,
    InputGuardrailTripwireTriggered,
    OutputGuardrail,
    OutputGuardrailTripwireTriggered,
    RunConfig,
    Runner,
    ToolAnnotations,
    UserError,
    function_tool,
    input_guardrail,
    output_guardrail,
    policies,
)
from agents_tools.content import MessageOutputItem
from agents_tools.errors import ModelError
from agents_tools.persistence import SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call

WITHIN = 30.0


def passed(info: Any = None) -> GuardrailFunctionOutput:
    """Return the result of a check that found nothing."""
    return GuardrailFunctionOutput(output_info=info, tripwire_triggered=False)


def tripped(info: Any = None) -> GuardrailFunctionOutput:
    """Return the result of a check that refuses."""
    return GuardrailFunctionOutput(output_info=info, tripwire_triggered=True)


class Stage:
    """A model, a tool and a guardrail that meet at events."""

    def __init__(self) -> None:
        self.asked, self.cancelled, self.checking = (asyncio.Event() for _ in range(3))
        self.release = asyncio.Event()
        self.called: list[str] = []

        @function_tool(annotations=ToolAnnotations(readOnlyHint=True))
        async def look() -> str:
            """Look."""
            self.called.append("look")
            return "seen"

        self.tool = look

    async def hang(self, request: Any) -> Any:
        """Never answer."""
        self.asked.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.cancelled.set()
            raise


# --- the input


async def test_a_blocking_guardrail_stops_the_run_before_the_model_is_asked() -> None:
    """No tokens are spent on input that is refused."""
    seen: list[Any] = []

    @input_guardrail(run_in_parallel=False)
    def no_swearing(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        seen.append((ctx.context, agent.name, given))
        return tripped("rude")

    model = ScriptedModel(["Hello."])
    agent = Agent(name="A", model=model, input_guardrails=[no_swearing])
    with pytest.raises(InputGuardrailTripwireTriggered) as caught:
        await Runner.run(agent, "damn", context="app")
    assert str(caught.value) == "Input guardrail 'no_swearing' stopped the run of agent 'A'."
    assert caught.value.guardrail_result.output.output_info == "rude"
    assert caught.value.guardrail_result.guardrail is no_swearing
    assert caught.value.run_result.input_guardrail_results == [caught.value.guardrail_result]
    assert (model.requests, seen) == ([], [("app", "A", "damn")])


async def test_a_parallel_guardrail_cancels_the_request_in_progress() -> None:
    """The model is asked meanwhile, so that a check that passes costs no time."""
    stage = Stage()

    @input_guardrail
    async def check(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(stage.asked.wait(), WITHIN)
        return tripped()

    agent = Agent(name="A", model=ScriptedModel([stage.hang]), input_guardrails=[check])
    run = Runner.run_streamed(agent, "x")
    with pytest.raises(InputGuardrailTripwireTriggered):
        await run.wait()
    assert stage.cancelled.is_set()
    assert run.new_items == []


@pytest.mark.parametrize("early", [False, True])
async def test_no_tool_is_called_before_a_parallel_guardrail_has_passed(early: bool) -> None:
    """A response that is there first waits, also with calls that could start early."""
    stage = Stage()

    @input_guardrail
    async def check(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(stage.release.wait(), WITHIN)
        stage.called.append("checked")
        return passed()

    def answer(request: Any) -> Any:
        asyncio.get_running_loop().call_soon(stage.release.set)
        return tool_call("look")

    model = ScriptedModel([answer, "Done."])
    agent = Agent(name="A", model=model, tools=[stage.tool], input_guardrails=[check])
    result = await Runner.run(agent, "x", run_config=RunConfig(start_calls_early=early))
    assert stage.called == ["checked", "look"]
    assert [one.guardrail for one in result.input_guardrail_results] == [check]


@pytest.mark.parametrize("early", [False, True])
async def test_no_tool_is_called_after_a_parallel_guardrail_has_refused(early: bool) -> None:
    """The response with the call is dropped: it is not part of the conversation."""
    stage = Stage()

    @input_guardrail
    async def check(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(stage.release.wait(), WITHIN)
        return tripped()

    def answer(request: Any) -> Any:
        asyncio.get_running_loop().call_soon(stage.release.set)
        return tool_call("look")

    model = ScriptedModel([answer, "Done."])
    agent = Agent(name="A", model=model, tools=[stage.tool], input_guardrails=[check])
    with pytest.raises(InputGuardrailTripwireTriggered) as caught:
        await Runner.run(agent, "x", run_config=RunConfig(start_calls_early=early))
    assert (stage.called, len(model.requests)) == ([], 1)
    assert caught.value.run_result.new_items == []


async def test_the_first_refusal_ends_the_other_checks() -> None:
    """A check that still runs is cancelled, and its cleanup is awaited."""
    stage = Stage()

    @input_guardrail
    async def slow(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return await stage.hang(None)

    @input_guardrail(name="fast one")
    async def fast(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        await asyncio.wait_for(stage.asked.wait(), WITHIN)
        return tripped()

    agent = Agent(name="A", model=ScriptedModel(["x"]), input_guardrails=[slow, fast])
    with pytest.raises(InputGuardrailTripwireTriggered, match="'fast one'"):
        await Runner.run(agent, "x")
    assert stage.cancelled.is_set()


async def test_an_error_of_the_model_cancels_the_check() -> None:
    """The run fails at once and leaves no task behind."""
    stage = Stage()

    @input_guardrail
    async def slow(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return await stage.hang(None)

    async def fail(request: Any) -> Any:
        await asyncio.wait_for(stage.asked.wait(), WITHIN)
        raise ModelError("broken", retryable=False)

    agent = Agent(name="A", model=ScriptedModel([fail]), input_guardrails=[slow])
    with pytest.raises(ModelError, match="broken"):
        await Runner.run(agent, "x")
    assert stage.cancelled.is_set()


async def test_cancelling_a_run_cancels_its_check_and_its_request() -> None:
    """Both are tasks of the run."""
    stage, second = Stage(), Stage()

    @input_guardrail
    async def slow(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        return await second.hang(None)

    agent = Agent(name="A", model=ScriptedModel([stage.hang]), input_guardrails=[slow])
    task = asyncio.ensure_future(Runner.run(agent, "x"))
    for event in (stage.asked, second.asked):
        await asyncio.wait_for(event.wait(), WITHIN)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stage.cancelled.is_set()
    assert second.cancelled.is_set()


async def test_an_error_of_a_guardrail_ends_the_run() -> None:
    """Input that could not be checked is not answered."""

    @input_guardrail
    def broken(ctx: Any, agent: Any, given: Any) -> Any:
        raise LookupError("no list of words")

    @input_guardrail
    def wrong(ctx: Any, agent: Any, given: Any) -> Any:
        return False

    for guardrail, kind in ((broken, LookupError), (wrong, UserError)):
        agent = Agent(name="A", model=ScriptedModel(["x"]), input_guardrails=[guardrail])
        with pytest.raises(kind):
            await Runner.run(agent, "x")


async def test_only_the_first_agent_checks_the_input_and_only_the_last_one_the_output() -> None:
    """The input comes from the user once; the output is that of the agent that answers."""
    log: list[str] = []

    def of(name: str) -> Any:
        def check_input(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
            log.append(f"{name} in {given}")
            return passed()

        def check_output(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
            log.append(f"{name} out {agent.name} {output}")
            return passed(name)

        return {
            "input_guardrails": [InputGuardrail(check_input)],
            "output_guardrails": [OutputGuardrail(check_output)],
        }

    model = ScriptedModel({"A": [tool_call("transfer_to_b")], "B": ["Done."]})
    b = Agent(name="B", model=model, **of("b"))
    a = Agent(name="A", model=model, handoffs=[b], **of("a"))
    result = await Runner.run(
        a, [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]
    )
    both = [{"role": "user", "content": "1"}, {"role": "user", "content": "2"}]
    assert log == [f"a in {both}", "b out B Done."]
    [checked] = result.output_guardrail_results
    assert (checked.agent, checked.agent_output, checked.output) == (b, "Done.", passed("b"))


async def test_an_output_guardrail_refuses_the_final_output() -> None:
    """The exception carries the run, whose last message is the refused output."""
    ended: list[object] = []

    @output_guardrail
    async def no_secrets(ctx: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
        return tripped() if "secret" in output else passed()

    agent = Agent(name="A", model=ScriptedModel(["A secret."]), output_guardrails=[no_secrets])
    run = Runner.run_streamed(agent, "x")
    with pytest.raises(OutputGuardrailTripwireTriggered, match="'no_secrets' refused") as caught:
        ended.extend([event async for event in run.stream_events()])
    assert caught.value.guardrail_result.agent_output == "A secret."
    [item] = caught.value.run_result.new_items
    assert isinstance(item, MessageOutputItem)
    assert run.output_guardrail_results == [caught.value.guardrail_result]
    assert caught.value.run_result.final_output is None


# --- resumed runs and sessions


async def test_the_input_is_checked_once_in_a_run_that_is_resumed(tmp_path: Path) -> None:
    """It was accepted when the run began: neither a state nor the store repeats the check."""
    checks: list[str] = []

    @input_guardrail
    def check(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        checks.append(given)
        return passed()

    stage = Stage()
    for config in (RunConfig(), RunConfig(store=SQLiteRunStore(tmp_path / "runs.db"))):
        model = ScriptedModel([tool_call("look"), "Done."])
        tool = policies.needs_approval(stage.tool)
        agent = Agent(name="A", model=model, tools=[tool], input_guardrails=[check])
        state = (await Runner.run(agent, "x", run_config=config)).to_state()
        state.approve(state.interruptions[0])
        result = await Runner.run(agent, state, run_config=config)
        assert result.final_output == "Done."
    assert checks == ["x", "x"]


async def test_a_check_sees_the_new_input_of_a_session_and_not_its_history(tmp_path: Path) -> None:
    """A refused message stays in the session until it is removed, and is not checked again."""
    seen: list[Any] = []

    @input_guardrail(run_in_parallel=False)
    def check(ctx: Any, agent: Any, given: Any) -> GuardrailFunctionOutput:
        seen.append(given)
        return tripped() if given == "damn" else passed()

    model = ScriptedModel(["Hello.", "Fine."])
    agent = Agent(name="A", model=model, input_guardrails=[check])
    async with SQLiteRunStore(tmp_path / "runs.db") as store:
        session = store.session("s")
        await Runner.run(agent, "Hi", session=session)
        with pytest.raises(InputGuardrailTripwireTriggered):
            await Runner.run(agent, "damn", session=session)
        assert await session.pop_item() == {"role": "user", "content": "damn"}
        await Runner.run(agent, "Sorry", session=session)
    assert seen == ["Hi", "damn", "Sorry"]
    assert [item.to_dict()["role"] for item in model.requests[-1].input] == [
        "user",
        "assistant",
        "user",
    ]


# --- errors


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: Agent(name="A", input_guardrails=[cast("Any", print)]),
            "policies.input_guardrail checks",
        ),
        (lambda: Agent(name="A", output_guardrails=cast("Any", print)), "with @output_guardrail"),
        (lambda: input_guardrail(cast("Any", "x")), "expects a function, got a str"),
        (lambda: OutputGuardrail(cast("Any", 5)), "expects a function, got an int"),
    ],
)
def test_a_wrong_declaration_says_what_is_expected(make: Any, message: str) -> None:
    """The policies of tools have the same names, so the error tells them apart."""
    with pytest.raises(UserError, match=message):
        make()


async def test_guardrails_that_do_not_end_share_one_grace_period(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The run waited for each of them, one after the other."""
    monkeypatch.setattr("agents_tools.concurrency.supervisor.GRACE", 0.05)
    go = asyncio.Event()

    @input_guardrail
    async def hangs(*_: Any) -> GuardrailFunctionOutput:
        try:
            await asyncio.Event().wait()
        finally:
            await go.wait()
        raise AssertionError

    @input_guardrail
    async def refuses(*_: Any) -> GuardrailFunctionOutput:
        await asyncio.sleep(0)
        return GuardrailFunctionOutput(None, tripwire_triggered=True)

    agent = Agent("A", model=ScriptedModel(["x"]), input_guardrails=[hangs, hangs, hangs, refuses])
    async with asyncio.timeout(2):
        with pytest.raises(InputGuardrailTripwireTriggered):
            await Runner.run(agent, "hi")
    go.set()
