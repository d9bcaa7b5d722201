"""`python -m tests.benchmarks.search.tokens`: the tokens of the definitions of LiveMCPBench.

Each library makes a tool of each definition, and exports it for a model as it does by default. The
name, the description and the schema of each export are counted with the vocabulary o200k. The
definitions are read where `--live-tools` or the variable `LIVE_MCP_TOOLS` says.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.tables import markdown

LIBRARIES = ("agents-tools", "openai-agents", "pydantic-ai-slim", "langchain-core", "fastmcp")


def main() -> None:
    """Run what the command line asks for."""
    from tests.benchmarks.search.data import live_tools
    from tests.benchmarks.tokens import count

    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.search.tokens")
    known = os.environ.get("LIVE_MCP_TOOLS")
    parser.add_argument("--live-tools", type=Path, default=known, required=known is None)
    tools = live_tools(Path(parser.parse_args().live_tools))
    rows = [["as the servers list them", f"{count(map(_plain, tools)):,}", str(len(tools))]]
    for library in LIBRARIES:
        exported = _exported(library, tools)
        rows.append([library, f"{count(map(_plain, exported)):,}", str(len(exported))])
    print(markdown(["", "tokens", "tools"], rows))


def _plain(definition: dict[str, Any]) -> dict[str, Any]:
    inner = definition.get("function", definition)
    return {key: inner.get(key) for key in ("name", "description", "parameters")}


def _exported(library: str, tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    subject = SUBJECTS[library]
    subject.install()
    done = subprocess.run(
        [str(subject.python), "-m", "tests.benchmarks.search.tokens", "--worker", library],
        input=json.dumps(tools),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env={**os.environ, **subject.environment},
    )
    exported: list[dict[str, Any]] = json.loads(done.stdout)
    return exported


def worker(library: str) -> None:
    """Export the tools on standard input with a library, in its own environment."""
    name = SUBJECTS[library].adapter
    if name is None:
        sys.exit(f"{library} has no tools")
    adapter = importlib.import_module(name)
    exported: list[dict[str, Any]] = []
    for one in json.load(sys.stdin):
        try:
            tool = adapter.from_schema(one["name"], one["parameters"], _body, one["description"])
            exported += adapter.definitions([tool])
        except Exception as error:  # noqa: BLE001 - a library that cannot use a schema exports none
            print(f"{library} refuses {one['name']}: {error!r:.200}", file=sys.stderr)
    json.dump(exported, sys.stdout)


async def _body(arguments: dict[str, Any]) -> str:
    return str(arguments)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--worker"]:
        worker(sys.argv[2])
    else:
        main()
