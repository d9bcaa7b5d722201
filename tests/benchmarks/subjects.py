"""What is timed: the library and its peers, each with its adapter and its own environment."""

from __future__ import annotations

import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path

BENCH = Path(__file__).parents[2] / ".bench"
MCP = "from mcp import Client"


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """One thing that is timed.

    Attributes:
        distribution: The name it is installed by.
        adapter: The module that says how it does what is timed; `None` where it has no tools.
        statement: What its users write to get the decorator.
        client: The module that says how it calls over MCP; `None` where that is not timed.
        client_statement: What its users write to get the client.
        python: The interpreter of the environment it is installed in.
    """

    distribution: str
    adapter: str | None = None
    statement: str = ""
    client: str | None = None
    client_statement: str = ""
    python: Path

    def install(self) -> None:
        """Make its environment, unless it is there."""
        home = self.python.parents[1]
        if self.python.exists():
            return
        print(f"Installing {self.distribution} …", file=sys.stderr)
        venv.create(home, with_pip=True)
        pip = [str(self.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*pip, self.distribution], check=True)


def _peer(distribution: str, adapter: str, statement: str, **client: str) -> Subject:
    return Subject(
        distribution=distribution,
        adapter=f"tests.benchmarks.peers.{adapter}",
        statement=statement,
        python=_python(distribution),
        **client,
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
            python=Path(sys.executable),
        ),
        _peer("openai-agents", "openai_agents", "from agents import function_tool"),
        _peer(
            "fastmcp",
            "fastmcp",
            "from fastmcp.tools import Tool",
            client="tests.benchmarks.peers.fastmcp_client",
            client_statement="from fastmcp import Client",
        ),
        _peer("pydantic-ai-slim", "pydantic_ai", "from pydantic_ai import Tool"),
        _peer("langchain-core", "langchain_core", "from langchain_core.tools import tool"),
        Subject(
            distribution="mcp",
            client="tests.benchmarks.mcp.limit",
            client_statement=MCP,
            python=_python("mcp"),
        ),
    )
}
