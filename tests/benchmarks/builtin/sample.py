"""What the tools work on: a class-based tool from text, files to edit, a tree to search."""

from __future__ import annotations

import itertools
import json
import sys
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

ARGUMENTS = json.dumps({"text": "hello ", "times": 2})
SAID = "hello hello "

_ACTION = '''
    """Say something."""

    text: str = Field(description="What to say.")
    times: int = Field(default=1, ge=1, le=100, description="How often to say it.")
'''
_TOOL = '''
class Say{n}Observation(Observation):
    """What was said."""

    said: str = ""


class Say{n}Executor(ToolExecutor[Say{n}Action, Say{n}Observation]):
    def __call__(self, action, conversation=None):
        said = action.text * action.times
        return Say{n}Observation.from_text(said, said=said)


class Say{n}Tool(ToolDefinition[Say{n}Action, Say{n}Observation]):
    @classmethod
    def create(cls, conv_state=None, **params):
        return [
            cls(
                description="Says something, once or several times.",
                action_type=Say{n}Action,
                observation_type=Say{n}Observation,
                executor=Say{n}Executor(),
            )
        ]
'''
_MODELS = '''
class Say{n}Observation(BaseModel):
    """What was said."""

    content: list[Text] = []
    is_error: bool = False
    said: str = ""
'''

_serial = itertools.count()


def tool_source(classes: str) -> Callable[[], Callable[[], type[Any]]]:
    """Return a function that defines a new tool.

    Args:
        classes: The statement that imports the base classes.
    """
    head = f"from pydantic import Field\n{classes}\n\nclass Say{{n}}Action(Action):{_ACTION}"
    return lambda: _defining(head + _TOOL, "Say{n}Tool")


def models_source() -> Callable[[], tuple[type[Any], type[Any]]]:
    """Prepare the definition of two plain models, the action and the observation."""
    head = "from pydantic import BaseModel, Field\nfrom tests.benchmarks.builtin.limit import Text"
    text = f"{head}\n\nclass Say{{n}}Action(BaseModel):{_ACTION}{_MODELS}"
    return _defining(f"{text}\nboth = Say{{n}}Action, Say{{n}}Observation\n", "both")


def _defining(text: str, name: str) -> Callable[[], Any]:
    n = next(_serial)
    module = ModuleType(f"benchmark_classes_{n}")
    sys.modules[module.__name__] = module  # where names in annotations are looked up
    code: CodeType = compile(text.format(n=n), f"{module.__name__}.py", "exec", dont_inherit=True)

    def define() -> Any:
        exec(code, module.__dict__)  # noqa: S102 - the text above
        return vars(module)[name.format(n=n)]

    return define


BIG_LINES = 192_000
SMALL_LINES = 200
MARK = "the mark number {}."


def write_lines(path: Path, count: int) -> None:
    """Write a file of lines of 52 characters, with a mark in the middle."""
    lines = [f"line {n:>7} of the file, as long as all of the next\n" for n in range(count)]
    lines[count // 2] = MARK.format(0) + "\n"
    path.write_text("".join(lines), encoding="utf-8")


FILES = 3_000
FOUND = 60
"""How many files have the needle."""
NEEDLE = r"needle_\d+"
GLOB = "*.toml"
GLOBBED = 75
_KINDS = ("py", "py", "ts", "md")


def make_tree(root: Path) -> None:
    """Make directories with 3,000 files of 2 KB: 100 directories, three levels deep."""
    root.mkdir()
    text = "def value(index: int) -> str:  # gives what is there\n    return text\n" * 30
    for n in range(FILES):
        directory = root / f"package_{n % 10}" / f"part_{n // 10 % 10}"
        directory.mkdir(parents=True, exist_ok=True)
        kind = "toml" if n % (FILES // GLOBBED) == 0 else _KINDS[n % len(_KINDS)]
        needle = f"needle_{n}\n" if n % (FILES // FOUND) == 1 else ""
        (directory / f"file_{n}.{kind}").write_text(text + needle, encoding="utf-8")
