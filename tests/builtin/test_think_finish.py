"""`think` and `finish`: their schemas, their results, and how `finish` ends a run."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools import Agent, Runner, UserError
from agents_tools.builtin import FinishAction, FinishObservation, FinishTool, ThinkAction, ThinkTool
from agents_tools.builtin.think import THINK_DESCRIPTION
from agents_tools.testing import ScriptedModel, tool_call


@pytest.mark.requirement("B16", "B72", "C22", "D48")
async def test_a_thought_is_acknowledged_and_has_no_effect() -> None:
    """The call stays in the history."""
    tool = ThinkTool.create()[0]
    outcome = await tool.as_function_tool().call(None, '{"thought": "why?"}')
    assert (outcome.status, outcome.output) == ("ok", "Your thought has been logged.")
    assert tool(ThinkAction(thought="why?")).text == "Your thought has been logged."


@pytest.mark.requirement("B73")
def test_think_has_one_required_string_parameter() -> None:
    schema = ThinkTool.create()[0].as_function_tool().params_json_schema
    assert schema["required"] == ["thought"]
    assert list(schema["properties"]) == ["thought"]
    assert schema["properties"]["thought"]["type"] == "string"


@pytest.mark.requirement("B19", "B70", "B71", "B72")
@pytest.mark.parametrize("kind", [ThinkTool, FinishTool])
def test_both_are_read_only_and_accept_no_parameters(kind: type[ThinkTool | FinishTool]) -> None:
    """Policies read the annotations; a constructor parameter would be a mistake."""
    tool = kind.create(None)[0]
    assert tool.name == kind.__name__.removesuffix("Tool").lower()
    hints = tool.annotations
    assert hints is not None
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (
        True,
        False,
        True,
        False,
    )
    with pytest.raises(ValueError, match=r"accepts (no|only the) parameter.*depth") as raised:
        kind.create(depth=3)
    assert isinstance(raised.value, UserError)


@pytest.mark.requirement("D49")
def test_the_description_of_think_can_be_replaced() -> None:
    """Hints with examples of the domain are worth more than general ones."""
    assert ThinkTool.create()[0].as_function_tool().description == THINK_DESCRIPTION
    own = ThinkTool.create(description="Think about refunds.")[0]
    assert own.as_function_tool().description == "Think about refunds."


@pytest.mark.requirement("B16", "C23")
async def test_finish_returns_its_result() -> None:
    """A task that was given up is not an error of the call."""
    tool = FinishTool.create()[0].as_function_tool()
    outcome = await tool.call(None, '{"result": "no way", "success": false}')
    assert (outcome.status, outcome.output) == ("ok", "no way")
    assert isinstance(outcome.value, FinishObservation)
    assert (outcome.value.result, outcome.value.message) == ("no way", "no way")
    assert not outcome.value.success


@pytest.mark.requirement("C23")
@pytest.mark.parametrize("name", ["result", "message"])
def test_the_result_argument_has_two_names(name: str) -> None:
    """The specifications use different names."""
    action = FinishAction.model_validate({name: "done"})
    assert (action.result, action.message, action.success) == ("done", "done", True)
    with pytest.raises(ValueError, match="message"):
        FinishAction.model_validate({"result": "a", "message": "b"})


@pytest.mark.requirement("C23")
def test_the_schema_of_finish_has_one_name() -> None:
    """`result`, and `success`, which is true by default."""
    schema = FinishTool.create()[0].as_function_tool().params_json_schema
    assert list(schema["properties"]) == ["result", "success"]
    assert schema["required"] == ["result"]
    assert schema["properties"]["success"]["default"] is True


@pytest.mark.requirement("B70")
@pytest.mark.parametrize("success", [True, False])
async def test_finish_ends_a_run_that_is_configured_to_stop_at_it(success: bool) -> None:
    """A task that was given up ends the run as well."""
    tools = [tool.as_function_tool() for tool in (*ThinkTool.create(), *FinishTool.create())]
    agent: Agent[Any, Any] = Agent(
        "Worker",
        model=ScriptedModel(
            [tool_call("think", thought="…"), tool_call("finish", result="42", success=success)]
        ),
        tools=tools,
        tool_use_behavior={"stop_at_tool_names": ["finish"]},
    )
    result = await Runner.run(agent, "?")
    assert result.final_output.result == "42"
    assert result.final_output.success is success
