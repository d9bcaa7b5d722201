"""The multi-turn tasks of BFCL: their calls, and the objects that these change.

Imports only the standard library and, in a task, `bfcl_eval`, because each library replays the tasks
in an environment of its own.
"""

from __future__ import annotations

import ast
import copy
import importlib
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tests.benchmarks.bfcl.cases import json_schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

__all__ = ["Call", "Described", "Task", "World", "tasks_in"]


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
class Call:
    """A correct call.

    Attributes:
        name: The name of the tool.
        arguments: The arguments by name.
    """

    name: str
    arguments: dict[str, Any]

    def to_python(self, function: str) -> str:
        """Return the call as an expression with keyword arguments."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.arguments.items())
        return f"{function}({arguments})"


@dataclass
class Described:
    """A tool of a task.

    Attributes:
        name: The name.
        description: The description.
        schema: The JSON Schema of the arguments.
        method: The method that is called, with keyword arguments.
    """

    name: str
    description: str
    schema: dict[str, Any]
    method: Callable[..., Any]

    def result(self, arguments: dict[str, Any]) -> Any:
        """Call the tool, and return its result as JSON; some numbers are of mpmath."""
        return json.loads(json.dumps(self.method(**arguments), default=str))


def tasks_in(data: Path) -> list[Task]:
    """Return the tasks in the data of the package `bfcl_eval`."""
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
        self.tools: list[Described] = []
        for name in task.classes:
            module = importlib.import_module(config.CLASS_FILE_PATH_MAPPING[name])
            one = self.objects[name] = getattr(module, name)()
            if name not in config.STATELESS_CLASSES:
                one._load_scenario(copy.deepcopy(task.config.get(name, {})))
            file = data / "multi_turn_func_doc" / config.MULTI_TURN_FUNC_DOC_FILE_MAPPING[name]
            self.tools += [
                Described(
                    described["name"],
                    described["description"],
                    json_schema(described["parameters"]),
                    getattr(one, described["name"]),
                )
                for described in _lines(file)
            ]

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

    def parsed(self, call: str) -> Call:
        """Return the tool and the arguments of a call in Python."""
        expression: Any = ast.parse(call, mode="eval").body
        schema = next(one.schema for one in self.tools if one.name == expression.func.id)
        required = set(schema.get("required", ()))
        names = sorted(schema["properties"], key=lambda name: name not in required)
        values = [ast.literal_eval(one) for one in expression.args]
        arguments = dict(zip(names, values, strict=False))
        arguments |= {one.arg: ast.literal_eval(one.value) for one in expression.keywords}
        return Call(expression.func.id, arguments)

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
