"""Tools at the edges: failure functions that fail, errors that go, what a tool is given besides."""

from __future__ import annotations

import gc
import weakref
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents_tools import Agent, NotifyStreamEvent, RunConfig, Runner, function_tool, streaming_tool
from agents_tools.testing import ScriptedModel, tool_call


class BoomError(Exception):
    """What a tool raises here."""


async def test_a_failure_function_that_fails_is_told_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """The model gets an answer all the same; the author finds the second error in the log."""

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


async def test_an_error_goes_with_the_last_who_holds_it() -> None:
    """It holds frames, and those hold arguments: a circle would keep all of it for a while."""

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


def test_what_is_said_beside_a_tool_stays_with_it() -> None:
    """Whoever exports it reads it there."""

    @function_tool(metadata={"team": "maps"})
    def find() -> None: ...

    @streaming_tool(metadata={"team": "maps"})
    async def watch() -> AsyncIterator[Any]:
        yield NotifyStreamEvent("x")

    assert find.metadata["team"] == watch.metadata["team"] == "maps"


@pytest.mark.parametrize("shape", [list, tuple])
async def test_an_agent_takes_tools_in_lists_of_lists(shape: Any) -> None:
    """Modules offer their tools as lists; nobody has to lay them together."""

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


def test_a_tool_is_described_as_its_decorator_says() -> None:
    """A docstring that is for people stays with them."""

    def weigh(what: str) -> str:
        """Weigh something.

        Args:
            what: What is weighed.
        """
        return what

    told, silent = function_tool(weigh), function_tool(use_docstring_info=False)(weigh)
    assert (told.description, silent.description) == ("Weigh something.", "")
    assert told.json_schema["properties"]["what"]["description"] == "What is weighed."
    assert "description" not in silent.json_schema["properties"]["what"]
