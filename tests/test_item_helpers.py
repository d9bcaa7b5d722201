"""ItemHelpers: reading texts and input lists from run items."""

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


async def test_message_texts_exclude_tool_outputs() -> None:
    """Calls and their outputs are items as well, but not text for a reader."""
    result = await ran()
    messages = [item for item in result.new_items if isinstance(item, MessageOutputItem)]
    assert [ItemHelpers.text_message_output(item) for item in messages] == ["First, ", "3."]
    assert ItemHelpers.text_message_outputs(result.new_items) == "First, 3."
    assert ItemHelpers.text_message_outputs([]) == ""


async def test_an_input_is_converted_to_a_list_of_items() -> None:
    """A text, or the items of a run, can be the input of the next run."""
    [one] = ItemHelpers.input_to_new_input_list("1 + 2?")
    assert (one["role"], one["content"]) == ("user", "1 + 2?")
    history = (await ran()).to_input_list()
    assert ItemHelpers.input_to_new_input_list(history) == history
    with pytest.raises(UserError, match=r"input\[0\]"):
        ItemHelpers.input_to_new_input_list([{"role": "nobody"}])
