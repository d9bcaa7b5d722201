"""Save a run that waits for approval as JSON, and resume it in another process.

Run it: python examples/resume_in_another_process.py. It prints the steps of two processes: the
first one writes a letter, the second one sends it.

This program starts itself again. A script replaces the language model, so that it runs offline. For
a real model, pass its name: `model="openai/gpt-5"`, with OPENAI_API_KEY set.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from agents_tools import Agent, Runner, function_tool
from agents_tools.agents import RunState
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call

PROCESS = "two" if sys.argv[1:2] == ["two"] else "one"


@function_tool
def write_letter(to: str) -> str:
    """Write a letter.

    Args:
        to: Who is to read it.
    """
    print(f"  (process {PROCESS} writes)")
    return f"a letter to {to}"


@needs_approval
@function_tool
def send_letter(to: str) -> str:
    """Send the letter.

    Args:
        to: Who gets it.
    """
    print(f"  (process {PROCESS} sends)")
    return f"sent to {to}"


def secretary(*answers: object) -> Agent:
    """Return the agent, with the answers of its model in this process."""
    return Agent(
        name="Secretary",
        instructions="You write and send letters.",
        tools=[write_letter, send_letter],
        model=ScriptedModel(answers),
    )


def begin(file: Path) -> None:
    """Run until a person must decide, and save the state."""
    agent = secretary(
        tool_call("write_letter", to="Ada", call_id="first"),
        tool_call("send_letter", to="Ada", call_id="second"),
    )
    result = Runner.run_sync(agent, "Write to Ada.")
    file.write_text(result.to_state().to_json(), encoding="utf-8")
    print("saved;", ", ".join(item.name for item in result.interruptions), "waits")


def go_on(file: Path) -> None:
    """Read the run, approve what waits, and finish it: the letter is not written twice."""
    state = RunState.from_json(file.read_text(encoding="utf-8"))
    for item in state.interruptions:
        state.approve(item)
    result = Runner.run_sync(secretary("Ada has her letter."), state)
    print(result.final_output)


if __name__ == "__main__":
    if PROCESS == "two":
        go_on(Path(sys.argv[2]))
    else:
        with tempfile.TemporaryDirectory() as folder:
            state_file = Path(folder, "run.json")
            begin(state_file)
            sys.stdout.flush()
            command = [sys.executable, __file__, "two", str(state_file)]
            subprocess.run(command, check=True)  # noqa: S603 - this very program
