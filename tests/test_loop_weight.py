"""The cost of a run, counted instead of timed."""

from __future__ import annotations

import gc
import sys
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import agents_tools
from agents_tools import Agent, Runner, function_tool
from agents_tools.testing import ScriptedModel, tool_call

if TYPE_CHECKING:
    from types import FrameType

PACKAGE = str(Path(agents_tools.__file__).parent)


@function_tool
async def add(a: int, b: int) -> str:
    """Add two numbers."""
    return str(a + b)


async def _counted(tools: list[Any], turns: int) -> Counter[str]:
    """Count the function calls of a warm run in each file of the package."""
    entered: Counter[str] = Counter()

    def enter(frame: FrameType, event: str, arg: object) -> None:
        file = frame.f_code.co_filename
        if event == "call" and file.startswith(PACKAGE) and "testing" not in file:
            entered[file] += 1

    for _ in range(2):
        entered.clear()
        model = ScriptedModel([*(tool_call("add", a=1, b=2) for _ in range(turns)), "3"])
        agent = Agent("Adder", tools=tools, model=model)
        await Runner.run(agent, "1 + 2?", max_turns=None)  # the first run builds what is kept
        model.add(*(tool_call("add", a=1, b=2) for _ in range(turns)), "3")
        gc.collect()
        gc.disable()  # finalizers of what other tests have left would be counted
        sys.setprofile(enter)
        try:
            await Runner.run(agent, "1 + 2?", max_turns=None)
        finally:
            sys.setprofile(None)
            gc.enable()
    return entered


async def entered_by_a_small_run() -> Counter[str]:
    """Count the calls in each file of the package that a run of two turns with one tool makes."""
    return await _counted([add], 1)


async def test_a_run_of_two_turns_enters_few_files_and_makes_few_calls() -> None:
    """Each call is a cost of every run and a step when debugging."""
    entered = await entered_by_a_small_run()
    assert len(entered) <= 28, sorted(Path(file).name for file in entered)
    assert entered.total() <= 222


async def test_each_turn_makes_as_many_calls_as_the_previous_one() -> None:
    """A long run must not get slower with its history."""
    few, more, most = [(await _counted([add], turns)).total() for turns in (2, 4, 6)]
    assert more - few == most - more


async def test_many_tools_do_not_slow_down_a_turn() -> None:
    """The tool list must be prepared once, not once per turn."""
    many = [add, *(add.with_(name=f"add_{number}") for number in range(99))]
    alone = (await _counted([add], 2)).total() - (await _counted([add], 1)).total()
    among = (await _counted(many, 2)).total() - (await _counted(many, 1)).total()
    assert among == alone
