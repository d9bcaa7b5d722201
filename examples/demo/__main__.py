"""`make demo`: the library in six commands, without a key and without the network."""

from __future__ import annotations

import inspect
import os
import shlex
import subprocess
import sys
from pathlib import Path
from textwrap import indent

from examples.demo.tools import weigh

TOOLS = "examples/demo/tools.py"
AGENTS = "examples/demo/agents.py"
REQUEST = "Drop a stone from 100 m on every planet, and survey the files of the project."
BAD = '{"planet": "Pluto", "mass_kg": -70, "unit": "lb"}'


def main() -> int:
    """Show a tool, call it well and badly, watch tools and agents work."""
    os.chdir(Path(__file__).parents[2])
    say("A tool is a function with a decorator.", first=True)
    print(indent(inspect.getsource(weigh.__wrapped__).rstrip(), "    "), flush=True)

    say("The model gets a definition made from its signature and its docstring.")
    run("schema", TOOLS, "weigh", "--provider", "anthropic", "--json")

    say("Arguments are validated against that schema before the function runs.")
    run("call", TOOLS, "weigh", "planet=Mars", "mass_kg=80")

    say("Invalid arguments never reach the function. The error says how to correct them.")
    run("call", TOOLS, "weigh", "--input-json", BAD)

    say("A slow tool reports its progress. The model gets only the last lines.")
    run("call", TOOLS, "survey")

    say("Any function can be a tool. This one is part of the standard library.")
    run("call", "urllib.parse:parse_qs", "qs=city=Oslo&city=Rome&days=3")

    say("An agent is a model with tools, and agents can be tools. These two work in parallel.")
    print(indent(source_of("guide"), "    "), end="\n\n", flush=True)
    run("run", AGENTS, REQUEST)
    note = "(The model is a set of rules that needs no key. Use another one with --model NAME.)"
    print(styled(note, "2"), flush=True)

    say("Next: write your own tools with docs/tutorial.md, and read the files in examples/.")
    return 0


def say(text: str, *, first: bool = False) -> None:
    """Print a heading."""
    print("" if first else "\n", styled(text, "1"), "\n", sep="", flush=True)


def source_of(name: str) -> str:
    """Return the source of an assignment at the end of the file of agents."""
    start = f"\n{name} = "
    text = Path(AGENTS).read_text(encoding="utf-8").rstrip()
    return f"{name} = {text.rpartition(start)[2]}"


def run(*words: str) -> None:
    """Run a command as if it had been typed."""
    print(styled("$ ", "2") + styled(shlex.join(["agents-tools", *words]), "36"), flush=True)
    # "-m" finds the command line of this very environment, whatever the path says
    command = [sys.executable, "-m", "agents_tools.cli", *words]
    code = subprocess.run(command, check=False).returncode  # noqa: S603
    if code:
        print(styled(f"(exit code {code})", "2"), flush=True)


def styled(text: str, style: str) -> str:
    """Style a text where it is shown on a terminal."""
    unwanted = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
    return f"\x1b[{style}m{text}\x1b[0m" if sys.stdout.isatty() and not unwanted else text


if __name__ == "__main__":
    sys.exit(main())
