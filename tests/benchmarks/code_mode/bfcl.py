"""Replays the correct calls of BFCL's multi-turn tasks as single calls, in parallel, and as programs.

`python -m tests.benchmarks.code_mode.bfcl FOLDER`, where the folder has the package `bfcl_eval`, for
example of `pip install --no-deps --target FOLDER bfcl-eval`. It prints how many tasks end in the
expected state, and what they take.
"""

from __future__ import annotations

import ast
import asyncio
import copy
import importlib
import json
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agents_tools import Agent, FunctionTool, Runner, code_mode
from agents_tools.testing import tool_call
from agents_tools.toolset.code.stubs import function_names, parameter_names
from tests.benchmarks.bfcl.cases import json_schema
from tests.benchmarks.code_mode.__main__ import Measured, ReplayModel
from tests.benchmarks.tables import markdown

FORMS = ("single", "parallel", "code")


@dataclass
class Task:
    """A task of several turns.

    Attributes:
        id: The id.
        questions: The message of the user in each turn.
        calls: The correct calls of each turn, as Python.
        classes: The classes whose methods are the tools.
        config: The initial state by class.
    """

    id: str
    questions: list[str]
    calls: list[list[str]]
    classes: list[str]
    config: dict[str, Any]


@dataclass
class Total:
    """What all tasks have taken in one form.

    Attributes:
        measured: The requests and tokens.
        failed: The ids of the tasks that did not end in the expected state.
    """

    measured: Measured = field(default_factory=Measured)
    failed: list[str] = field(default_factory=list[str])


def tasks_in(data: Path) -> list[Task]:
    """Return the tasks in the data of the package."""
    name = "BFCL_v4_multi_turn_base.json"
    answers = {one["id"]: one["ground_truth"] for one in _lines(data / "possible_answer" / name)}
    return [
        Task(
            id=entry["id"],
            questions=[turn[-1]["content"] if turn else "" for turn in entry["question"]],
            calls=answers[entry["id"]],
            classes=entry["involved_classes"],
            config=entry["initial_config"],
        )
        for entry in _lines(data / name)
    ]


def _lines(file: Path) -> list[Any]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line]


class World:
    """The objects of one task, and the tools that change them.

    Args:
        task: The task.
        data: The folder of the descriptions.
    """

    def __init__(self, task: Task, data: Path) -> None:
        config: Any = importlib.import_module("bfcl_eval.constants.executable_backend_config")
        self.objects: dict[str, Any] = {}
        self.tools: list[FunctionTool[..., Any]] = []
        for name in task.classes:
            module = importlib.import_module(config.CLASS_FILE_PATH_MAPPING[name])
            one = self.objects[name] = getattr(module, name)()
            if name not in config.STATELESS_CLASSES:
                one._load_scenario(copy.deepcopy(task.config.get(name, {})))
            file = data / "multi_turn_func_doc" / config.MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
            self.tools += [_tool(described, one) for described in _lines(file)]

    def run(self, call: str) -> None:
        """Run a call in this process, as the evaluator of BFCL does."""
        methods = {
            name: getattr(one, name)
            for one in self.objects.values()
            for name in dir(one)
            if not name.startswith("_")
        }
        try:
            eval(call, methods)  # noqa: S307 - the correct calls of the data set
        except Exception:  # noqa: BLE001 - is a result for the evaluator
            return

    @property
    def state(self) -> str:
        """The state of all objects."""
        return "\n".join(f"{name}: {_plain(one)!r}" for name, one in self.objects.items())


_IGNORED = {"_random", "_last_modified", "parent"}


def _plain(one: Any) -> Any:
    """Return an object as plain values, without random generators and times."""
    if isinstance(one, dict):
        return {key: _plain(value) for key, value in one.items()}
    if isinstance(one, (list, tuple)):
        return [_plain(value) for value in one]
    if hasattr(one, "__dict__") and not isinstance(one, type):
        named = vars(one).items()
        return {name: _plain(value) for name, value in named if name not in _IGNORED}
    return one


def _tool(described: Any, instance: Any) -> FunctionTool[..., Any]:
    method = getattr(instance, described["name"])

    async def call(context: Any, args_json: str) -> Any:
        del context
        result = method(**json.loads(args_json))
        return json.loads(json.dumps(result, default=str))  # some numbers are of mpmath

    return FunctionTool.from_schema(
        name=described["name"],
        description=described["description"],
        schema=json_schema(described["parameters"]),
        on_invoke_tool=call,
    )


async def replay(task: Task, data: Path, form: str, total: Total) -> None:
    """Replay a task in a form, and add what it takes.

    Args:
        task: The task.
        data: The folder of the descriptions.
        form: One of `FORMS`.
        total: Receives what it takes.
    """
    expected, world = World(task, data), World(task, data)
    tools: list[Any] = [code_mode(world.tools)] if form == "code" else world.tools
    names = {tool.name: name for name, tool in function_names(world.tools).items()}
    history: list[Any] = []
    for question, calls in zip(task.questions, task.calls, strict=True):
        for call in calls:
            expected.run(call)
        script: list[list[Any]]
        if form == "code":
            lines = [f"await {names[_name(call)]}{call[len(_name(call)) :]}" for call in calls]
            script = [[tool_call("run_code", code="\n".join(lines))]] if lines else []
        else:
            items = [_as_item(call, world.tools) for call in calls]
            script = [[item] for item in items] if form == "single" else [items] if items else []
        model = ReplayModel(script, total.measured)
        agent = Agent("Worker", tools=tools, model=model)
        messages = [*history, {"role": "user", "content": question}]
        result = await Runner.run(agent, messages, max_turns=None)
        history = result.to_input_list()
    if world.state != expected.state:
        total.failed.append(task.id)


def _name(call: str) -> str:
    return call.partition("(")[0]


def _as_item(call: str, tools: list[FunctionTool[..., Any]]) -> Any:
    """Return a call in Python as that of a model."""
    parsed: Any = ast.parse(call, mode="eval").body
    tool = next(one for one in tools if one.name == _name(call))
    values = [ast.literal_eval(one) for one in parsed.args]
    arguments = dict(zip(parameter_names(tool.json_schema), values, strict=False))
    arguments |= {one.arg: ast.literal_eval(one.value) for one in parsed.keywords}
    return tool_call(tool.name, arguments)


async def main(folder: str) -> None:
    """Replay all tasks, and print the table."""
    sys.path.insert(0, folder)
    data = Path(folder) / "bfcl_eval" / "data"
    rows: list[tuple[str, ...]] = []
    tasks = tasks_in(data)
    for form in FORMS:
        total = Total()
        for task in tasks:
            await replay(task, data, form, total)
        reached = len(tasks) - len(total.failed)
        measured = total.measured
        print(form, total.failed, file=sys.stderr)
        rows.append(
            (form, f"{reached}/{len(tasks)}", f"{measured.requests:,}", f"{measured.tokens:,}")
        )
    print(markdown(("", "expected state", "requests", "tokens"), rows))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
