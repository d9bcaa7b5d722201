"""Replays the correct calls of BFCL's multi-turn tasks: as calls, behind a search, and as programs.

`python -m tests.benchmarks.code_mode.bfcl [--forms …]` prints how many tasks end in the expected state,
and what they take. Other libraries are installed into environments of their own under `.bench/`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools import Agent, FunctionTool, Runner, code_mode, tool_search
from agents_tools.content import MessageOutputItem, ToolCallOutputItem
from agents_tools.testing import tool_call
from agents_tools.toolset.code.stubs import function_names
from agents_tools.toolset.token_usage import estimated_tokens
from tests.benchmarks.bfcl.cases import DATA_SET
from tests.benchmarks.code_mode.__main__ import Measured, ReplayModel, compact, item_text
from tests.benchmarks.code_mode.world import Call, Described, Task, World, tasks_in
from tests.benchmarks.subjects import BENCH, Subject
from tests.benchmarks.tables import markdown

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.benchmarks.code_mode.peers import Replayed

OWN = {
    "single": "one call per request",
    "parallel": "parallel calls",
    "search": "parallel calls, tools found by search",
    "code": "code mode",
    "code-search": "code mode, functions found by search",
}
PEERS = {
    "fastmcp": Subject(
        distribution="fastmcp",
        python=BENCH / "code-mode-fastmcp" / "bin" / "python",
        needs=("fastmcp[code-mode]",),
    ),
    "pydantic-ai-harness": Subject(
        distribution="pydantic-ai-harness",
        python=BENCH / "code-mode-harness" / "bin" / "python",
        needs=("pydantic-ai-harness[code-mode]",),
    ),
}
_SEARCHED = 1
"""The tokens for functions in the description, where programs search for them."""


@dataclass
class Total:
    """What all tasks have taken in one form.

    Attributes:
        measured: The requests and tokens.
        tasks: The number of tasks.
        failed: The ids of the tasks that did not end in the expected state.
    """

    measured: Measured = field(default_factory=Measured)
    tasks: int = 0
    failed: list[str] = field(default_factory=list[str])

    def add(self, task_id: str, *, reached: bool) -> None:
        """Count a task."""
        self.tasks += 1
        if not reached:
            self.failed.append(task_id)


def _tool(described: Described) -> FunctionTool[..., Any]:
    async def call(context: Any, args_json: str) -> Any:
        del context
        return described.result(json.loads(args_json))

    return FunctionTool.from_schema(
        name=described.name,
        description=described.description,
        schema=described.schema,
        on_invoke_tool=call,
    )


async def replay(task: Task, data: Path, form: str, total: Total) -> None:
    """Replay a task in a form, and add what it takes.

    Args:
        task: The task.
        data: The folder of the descriptions.
        form: One of `OWN`.
        total: Receives what it takes.
    """
    expected, world = World(task, data), World(task, data)
    tools = [_tool(one) for one in world.tools]
    offered: list[Any] = tools
    if form == "search":
        offered = [tool_search(tools)]
    elif form.startswith("code"):
        offered = [code_mode(tools, max_tokens=_SEARCHED if form == "code-search" else 3_000)]
    functions = {tool.name: name for name, tool in function_names(tools).items()}
    known: set[str] = set()
    history: list[Any] = []
    for question, lines in zip(task.questions, task.calls, strict=True):
        for line in lines:
            expected.run(line)
        calls = [world.parsed(line) for line in lines]
        new = " ".join(sorted({call.name for call in calls} - known))
        known.update(call.name for call in calls)
        model = ReplayModel(_script(form, calls, new, functions), total.measured)
        agent = Agent("Worker", tools=offered, model=model)
        messages = [*history, {"role": "user", "content": question}]
        result = await Runner.run(agent, messages, max_turns=None)
        history = result.to_input_list()
    total.add(task.id, reached=world.state == expected.state)


def _script(form: str, calls: list[Call], new: str, functions: dict[str, str]) -> list[list[Any]]:
    """Return the calls of each request of the model in a turn; `new` names tools not used before."""
    if not calls:
        return []
    items = [tool_call(call.name, call.arguments) for call in calls]
    if form == "single":
        return [[item] for item in items]
    if form == "parallel":
        return [items]
    if form == "search":
        called = [
            tool_call("call_tool", {"name": call.name, "arguments": call.arguments})
            for call in calls
        ]
        return [*([[tool_call("tool_search", query=new)]] if new else []), called]
    code = "\n".join(f"await {call.to_python(functions[call.name])}" for call in calls)
    program = [tool_call("run_code", code=code)]
    if form == "code-search" and new:
        return [[tool_call("run_code", code=f"print(await search_tools({new!r}))")], program]
    return [program]


def replay_peer(name: str, tasks: Iterable[Task], total: Total) -> None:
    """Replay the tasks with another library, and add what they take.

    Args:
        name: One of `PEERS`.
        tasks: The tasks.
        total: Receives what they take.
    """
    peer = PEERS[name]
    peer.install()
    done = subprocess.run(
        [str(peer.python), "-W", "ignore", "-m", "tests.benchmarks.code_mode.peers", name],
        env={**os.environ, "PYTHONPATH": f".{os.pathsep}{_packages()}"},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    by_id = {task.id: task for task in tasks}
    for line in done.stdout.splitlines():
        replayed: Replayed = json.loads(line)
        _count(replayed, by_id[replayed["id"]].questions, total.measured)
        total.add(replayed["id"], reached=replayed["reached"])


def _count(replayed: Replayed, questions: list[str], measured: Measured) -> None:
    """Count the tokens of all requests and responses, as `ReplayModel` does."""
    definitions = sum(
        estimated_tokens(compact({"type": "function", **one})) for one in replayed["definitions"]
    )
    conversation = 0
    for question, steps in zip(questions, replayed["turns"], strict=True):
        conversation += estimated_tokens(item_text({"role": "user", "content": question}))
        for number, step in enumerate([*steps, None]):
            if step is None:
                written = [MessageOutputItem(text="Done.")]
                read: list[Any] = []
            else:
                name, call_id = step["name"], f"call_{number}"
                written = [tool_call(name, step["arguments"], call_id=call_id)]
                read = [ToolCallOutputItem(call_id=call_id, name=name, output=step["output"])]
            sent = sum(estimated_tokens(item_text(one.to_dict())) for one in written)
            measured.requests += 1
            measured.tokens += definitions + conversation + sent
            conversation += sent
            conversation += sum(estimated_tokens(item_text(one.to_dict())) for one in read)


def _packages() -> str:
    """Install the data set, and return the folder of its packages."""
    DATA_SET.install()
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    command = [str(DATA_SET.python), "-c", code]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.strip()


def main() -> None:
    """Replay all tasks, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.code_mode.bfcl")
    parser.add_argument("--forms", nargs="+", choices=[*OWN, *PEERS], default=[*OWN, *PEERS])
    forms = parser.parse_args().forms
    packages = _packages()
    sys.path.append(packages)
    data = Path(packages) / "bfcl_eval" / "data"
    tasks = tasks_in(data)
    rows: list[tuple[str, ...]] = []
    for form in forms:
        print(f"Replaying {len(tasks)} tasks: {form} …", file=sys.stderr)
        total = Total()
        if form in PEERS:
            replay_peer(form, tasks, total)
        else:
            for task in tasks:
                asyncio.run(replay(task, data, form, total))
        print(f"Not in the expected state: {total.failed}", file=sys.stderr)
        reached = f"{total.tasks - len(total.failed)} of {total.tasks}"
        title = OWN.get(form) or f"code mode of {form}"
        rows.append((title, reached, f"{total.measured.requests:,}", f"{total.measured.tokens:,}"))
    print(markdown(("BFCL v4, multi-turn base", "expected state", "requests", "tokens"), rows))


if __name__ == "__main__":
    main()
