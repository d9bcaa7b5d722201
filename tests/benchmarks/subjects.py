"""What is timed: the library and its peers, each with its adapter and its own environment."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

BENCH = Path(__file__).parents[2] / ".bench"
MCP = "from mcp import Client"
CLASSES = "from {} import Action, Observation, ToolDefinition, ToolExecutor"
BUILTIN = "FileEditorTool, GlobTool, GrepTool, TerminalTool"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that is timed.

    Attributes:
        distribution: The name it is installed by.
        adapter: The module that says how it does what is timed; `None` where it has no tools.
        statement: What its users write to get the decorator.
        client: The module that says how it calls over MCP; `None` where that is not timed.
        client_statement: What its users write to get the client.
        classes_statement: What its users write to get what class-based tools are made of.
        builtin: The module that says how its class-based and built-in tools are used; `None` where
            these are not timed.
        builtin_statement: What its users write to get its built-in tools.
        events: The module that says how its events are published and stored; `None` where these
            are not timed.
        python: The interpreter of the environment it is installed in.
        needs: What is installed, where it is more than the distribution or not the newest.
        version: The Python that the environment is made with, where not any will do.
        environment: Variables that its processes get.
    """

    distribution: str
    adapter: str | None = None
    statement: str = ""
    client: str | None = None
    client_statement: str = ""
    builtin: str | None = None
    classes_statement: str = ""
    builtin_statement: str = ""
    events: str | None = None
    python: Path
    needs: tuple[str, ...] = ()
    version: tuple[int, int] | None = None
    environment: Mapping[str, str] = field(default_factory=dict[str, str])

    def install(self) -> None:
        """Make its environment, unless it is there."""
        home = self.python.parents[1]
        if self.python.exists():
            return
        print(f"Installing {self.distribution} …", file=sys.stderr)
        subprocess.run([self._interpreter(), "-m", "venv", str(home)], check=True)
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        try:
            subprocess.run([*pip, *(self.needs or (self.distribution,))], check=True)
        except BaseException:
            shutil.rmtree(home)  # or the next run takes what is half there for all of it
            raise

    def _interpreter(self) -> str:
        """Find a Python: this one if it will do, else on the PATH or under pyenv."""
        if self.version is None or self.version == sys.version_info[:2]:
            return sys.executable
        name = "python{}.{}".format(*self.version)
        for python in _interpreters(name):
            done = subprocess.run([python, "--version"], check=False, capture_output=True)
            if done.returncode == 0:  # pyenv puts programs on the PATH that only say what they lack
                return python
        sys.exit(
            f"{self.distribution} needs {name}. Put it on the PATH, or name the --subjects "
            "to time without it."
        )


def _interpreters(name: str) -> Iterator[str]:
    if found := shutil.which(name):
        yield found
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv")
    yield from map(str, sorted(pyenv.glob(f"versions/*/bin/{name}")))


def _peer(
    distribution: str,
    adapter: str,
    statement: str,
    *,
    client: str | None = None,
    connects: str = "",
) -> Subject:
    return Subject(
        distribution=distribution,
        adapter=f"tests.benchmarks.peers.{adapter}",
        statement=statement,
        client=client,
        client_statement=connects,
        python=_python(distribution),
    )


def _python(distribution: str) -> Path:
    return BENCH / distribution / "bin" / "python"


SUBJECTS = {
    subject.distribution: subject
    for subject in (
        Subject(
            distribution="agents-tools",
            adapter="tests.benchmarks.library",
            statement="from agents_tools import function_tool",
            client="tests.benchmarks.mcp.library",
            client_statement="from agents_tools.mcp import MCPToolManager",
            builtin="tests.benchmarks.builtin.library",
            classes_statement=CLASSES.format("agents_tools.classes.definition"),
            builtin_statement="from agents_tools.builtin import " + BUILTIN,
            events="tests.benchmarks.events.library",
            python=Path(sys.executable),
        ),
        _peer("openai-agents", "openai_agents", "from agents import function_tool"),
        _peer(
            "fastmcp",
            "fastmcp",
            "from fastmcp.tools import Tool",
            client="tests.benchmarks.peers.fastmcp_client",
            connects="from fastmcp import Client",
        ),
        _peer("pydantic-ai-slim", "pydantic_ai", "from pydantic_ai import Tool"),
        _peer("langchain-core", "langchain_core", "from langchain_core.tools import tool"),
        Subject(
            distribution="mcp",
            client="tests.benchmarks.mcp.limit",
            client_statement=MCP,
            python=_python("mcp"),
        ),
        Subject(
            distribution="openhands-tools",
            builtin="tests.benchmarks.peers.openhands",
            classes_statement=CLASSES.format("openhands.sdk.tool"),
            builtin_statement="""
from openhands.tools.file_editor import FileEditorTool
from openhands.tools.glob import GlobTool
from openhands.tools.grep import GrepTool
from openhands.tools.terminal import TerminalTool
""",
            events="tests.benchmarks.peers.openhands_events",
            python=_python("openhands"),
            needs=("openhands-sdk==1.58.0", "openhands-tools==1.58.0"),
            version=(3, 12),
            environment={
                "LITELLM_LOCAL_MODEL_COST_MAP": "True",  # else its import waits for the network
                "OPENHANDS_SUPPRESS_BANNER": "1",
            },
        ),
        Subject(
            distribution="langgraph",
            events="tests.benchmarks.peers.langgraph_events",
            python=_python("langgraph"),
        ),
    )
}
