"""What the playground shows: the tools and agents of a target, or why there are none."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents_tools.text.escape import safe_text

if TYPE_CHECKING:
    from agents_tools.agents.agent import Agent
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "Load",
    "LoadedTarget",
    "TargetError",
    "TargetProblem",
    "Tool",
    "place_of",
    "short_place",
]

if TYPE_CHECKING:
    Tool: TypeAlias = FunctionTool[..., Any]
    AnyAgent: TypeAlias = Agent[Any, Any]

_PACKAGE = Path(__file__).parent.parent
_LIBRARY = Path(os.__file__).parent


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetProblem:
    """One thing that keeps a target, or a tool of it, from being used.

    Attributes:
        place: File and line, or the name of the tool, as far as they are known.
        message: What is the matter and what to do.
    """

    place: str
    message: str

    @classmethod
    def at(cls, place: str, message: str) -> TargetProblem:
        """Make one of a message that may name the place as well."""
        file = re.sub(r":\d+$", "", place)
        for name in dict.fromkeys(filter(None, (place, str(Path(place).absolute())))):
            message = message.replace(f"\n  {name}: ", "\n  ").replace(f"\n  {name}\n", "\n")
            message = message.removesuffix(f"\n  {name}").replace(f" ({name})", "", 1)
        return cls(place=place, message=message.removeprefix(f"{file} "))

    def __str__(self) -> str:
        """Show it for a terminal or a log."""
        return safe_text(f"{self.place or 'the target'}: {self.message}")

    def to_dict(self) -> dict[str, str]:
        """Return it as JSON."""
        return {"place": safe_text(self.place), "message": safe_text(self.message)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTarget:
    """What a target has.

    Attributes:
        target: What was typed.
        tools: Its tools.
        agents: Its agents, by what their attribute is called.
        kind: Where they come from: Python code, MCP servers, or this library.
        place: The file or the module of Python code, or the address or file of MCP servers.
        attribute: What of the module is meant; empty for all of it.
        value: What that is.
        files: Files that it was made of, besides those that were imported.
        close: Lets go of what was opened for it.
    """

    target: str
    tools: tuple[Tool, ...] = ()
    agents: Mapping[str, AnyAgent] = field(default_factory=dict[str, "AnyAgent"])
    kind: Literal["python", "mcp", "builtin"] = "python"
    place: str = ""
    attribute: str = ""
    value: Any = None
    files: tuple[str, ...] = ()
    close: Callable[[], Any] | None = None


Load: TypeAlias = Callable[[], LoadedTarget]
"""Imports the target and gives what it has; raises `TargetError` where that cannot be done."""


class TargetError(Exception):
    """A target cannot be used as it is.

    Args:
        problems: Why.
        files: Files that have a part in it, besides those that were imported.
    """

    def __init__(self, *problems: TargetProblem, files: tuple[str, ...] = ()) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems
        self.files = files


def place_of(error: BaseException) -> tuple[str, str]:
    """Return the file that an error comes from, and the place in it for people.

    Both may be empty.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, f"{short_place(error.filename)}:{error.lineno or 1}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(frame.filename)]
    if not own:
        return "", ""
    return own[-1].filename, f"{short_place(own[-1].filename)}:{own[-1].lineno}"


def short_place(place: str) -> str:
    """Return a path from the current folder where it is below it."""
    path = Path(place)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return place


def is_own(filename: str) -> bool:
    """Return whether a file is one of the user's: of no library, and not of Python itself."""
    path = Path(filename)
    if filename.startswith("<") or not filename:
        return False
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return False
    return not any(path.is_relative_to(place) for place in (_LIBRARY, _PACKAGE, *_prefixes()))


def _prefixes() -> list[Path]:
    """Return the folders of virtual environments, which may lie within the user's own."""
    if sys.prefix == sys.base_prefix:
        return []
    return [Path(sys.prefix)]
