"""What programs read out of the items of a run."""

from __future__ import annotations

from typing import Any

import pytest

from agents_tools import Agent, ItemHelpers, Runner, function_tool
from agents_tools.content import MessageOutputItem
from agents_tools.errors import UserError
from agents_tools.testing import ScriptedModel, tool_call


@function_tool
def add(a: int, b: int) -> int:
    """Add."""
    return a + b


async def ran() -> Any:
    model = ScriptedModel([["First, ", tool_call("add", a=1, b=2, call_id="c1")], "3."])
    return await Runner.run(Agent("Adder", tools=[add], model=model), "1 + 2?")


async def test_the_texts_of_a_run_are_read_without_what_its_tools_said() -> None:
    """Calls and their outputs are items as well, and no text for a reader."""
    result = await ran()
    messages = [item for item in result.new_items if isinstance(item, MessageOutputItem)]
    assert [ItemHelpers.text_message_output(item) for item in messages] == ["First, ", "3."]
    assert ItemHelpers.text_message_outputs(result.new_items) == "First, 3."
    assert ItemHelpers.text_message_outputs([]) == ""


async def test_an_input_is_given_as_the_list_it_stands_for() -> None:
    """A text, and what a run ended with, go on as the input of the next one."""
    [one] = ItemHelpers.input_to_new_input_list("1 + 2?")
    assert (one["role"], one["content"]) == ("user", "1 + 2?")
    history = (await ran()).to_input_list()
    assert ItemHelpers.input_to_new_input_list(history) == history
    with pytest.raises(UserError, match=r"input\[0\]"):
        ItemHelpers.input_to_new_input_list([{"role": "nobody"}])
