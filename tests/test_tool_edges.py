"""Test edge cases of tools: failing failure functions, released errors and extra data."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents_tools import Agent, NotifyStreamEvent, RunConfig, Runner, function_tool, streaming_tool
from agents_tools.testing import ScriptedModel, tool_call


class BoomError(Exception):
    """The exception that tools raise here."""


async def test_a_failure_function_that_raises_is_logged(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The model still gets an output, and the author finds the second error in the log."""

    def explain(context: Any, error: Exception) -> str:
        raise KeyError("the explanation failed")

    @function_tool(failure_error_function=explain)
    async def fail() -> None:
        raise BoomError("no")

    model = ScriptedModel([tool_call("fail"), "over"])
    result = await Runner.run(Agent("A", model=model, tools=[fail]), "go")
    [answer] = [item["output"] for item in result.to_input_list() if "output" in item]
    assert "no" in answer
    assert "The failure function of tool 'fail' raised an exception." in caplog.text
    assert "the explanation failed" in caplog.text


async def test_an_error_is_freed_with_its_last_reference() -> None:
    """An error references frames and their arguments; a cycle would keep all of them alive."""

    @function_tool(failure_error_function=None)
    async def fail() -> None:
        raise BoomError("no")

    gone: list[weakref.ref[BaseException]] = []
    gc.collect()
    gc.disable()
    try:
        for _ in range(2):
            try:
                await fail.invoke("{}")
            except BoomError as error:
                gone.append(weakref.ref(error))
        assert [ref() for ref in gone] == [None, None]
    finally:
        gc.enable()


def test_metadata_of_a_tool_is_preserved() -> None:
    """Exporters read it from the tool."""

    @function_tool(metadata={"team": "maps"})
    def find() -> None: ...

    @streaming_tool(metadata={"team": "maps"})
    async def watch() -> AsyncIterator[Any]:
        yield NotifyStreamEvent("x")

    assert find.metadata["team"] == watch.metadata["team"] == "maps"


@pytest.mark.parametrize("shape", [list, tuple])
async def test_an_agent_accepts_nested_lists_of_tools(shape: Any) -> None:
    """Modules can offer their tools as lists, which the caller need not flatten."""

    @function_tool
    def one() -> str:
        return "1"

    @function_tool
    def two() -> str:
        return "2"

    model = ScriptedModel([[tool_call("one"), tool_call("two")], "over"])
    agent = Agent("A", model=model, tools=[shape([one, shape([two])])])
    result = await Runner.run(agent, "go", run_config=RunConfig(timeout=5))
    answers = [item["output"] for item in result.to_input_list() if "output" in item]
    assert answers == ["1", "2"]


def test_the_description_of_the_decorator_replaces_the_docstring() -> None:
    """A docstring for programmers is then not sent to the model."""

    def weigh(what: str) -> str:
        """Weigh something.

        Args:
            what: What is weighed.
        """
        return what

    described, undescribed = function_tool(weigh), function_tool(use_docstring_info=False)(weigh)
    assert (described.description, undescribed.description) == ("Weigh something.", "")
    assert described.json_schema["properties"]["what"]["description"] == "What is weighed."
    assert "description" not in undescribed.json_schema["properties"]["what"]
