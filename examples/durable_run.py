"""Resume a run after a crash: its process is killed in the middle, and another one continues.

Run it: python examples/durable_run.py. It prints the steps of two processes: the first one dies
during a payment, the second one reports this call to the model as lost.

Finished steps do not run again. The interrupted step may or may not have taken effect, and the
model is informed of that. This program starts itself twice. A script replaces the language model,
so that it runs offline. For a real model, pass its name: `model="openai/gpt-5"`, with
OPENAI_API_KEY set.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile

from agents_tools import Agent, RunConfig, Runner, function_tool
from agents_tools.content import ToolCallOutputItem
from agents_tools.persistence import SQLiteRunStore
from agents_tools.testing import ScriptedModel, tool_call


@function_tool
def book(flight: str) -> str:
    """Book a flight.

    Args:
        flight: Its number.
    """
    print(f"  booked {flight}", flush=True)
    return f"{flight} is booked"


@function_tool
def pay(amount: int) -> str:
    """Pay.

    Args:
        amount: How much, in euros.
    """
    print(f"  paid {amount}, and the power fails", flush=True)
    os._exit(1)  # the process ends without any cleanup


def clerk(*answers: object) -> Agent:
    """Return the agent, with the answers of its model in this process."""
    return Agent(name="Clerk", tools=[book, pay], model=ScriptedModel(answers))


def start_or_resume(agent: Agent, file: str) -> None:
    """Start the run, or resume it if the file contains it."""
    config = RunConfig(store=SQLiteRunStore(file))
    result = Runner.run_sync(agent, "Book LH 1 and pay.", run_id="trip-42", run_config=config)
    for item in result.new_items:
        if isinstance(item, ToolCallOutputItem):
            print(f"  {item.name}: {item.status}")
    print(f"  {result.final_output}")


def main(process: str, file: str) -> None:
    """Be one of the processes, or start them."""
    if process == "first":
        start_or_resume(clerk(tool_call("book", flight="LH 1"), tool_call("pay", amount=90)), file)
    elif process == "second":
        start_or_resume(clerk("LH 1 is booked. Please check whether it was paid."), file)
    else:
        for name in ("first", "second"):
            print(f"the {name} process", flush=True)
            subprocess.run([sys.executable, __file__, name, file], check=False)  # noqa: S603 - our own program


if __name__ == "__main__":
    if sys.argv[1:]:
        main(*sys.argv[1:3])
    else:
        with tempfile.TemporaryDirectory() as folder:
            main("", os.path.join(folder, "runs.db"))  # noqa: PTH118 - a plain path
