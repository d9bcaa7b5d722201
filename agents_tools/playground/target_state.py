"""A loaded target of the playground, or the problems that prevent loading."""

from __future__ import annotations

import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.agents.agent import Agent
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "Load",
    "LoadedTarget",
    "TargetError",
    "TargetProblem",
    "Tool",
    "is_own",
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
    """A problem that makes a target, or one of its tools, unusable.

    Attributes:
        place: File and line, or the name of the tool, if they are known.
        message: The problem and its remedy.
    """

    place: str
    message: str

    @classmethod
    def at(cls, place: str, message: str) -> TargetProblem:
        """Create a problem from a message, without repeating the place."""
        file = re.sub(r":\d+$", "", place)
        for name in dict.fromkeys(filter(None, (place, str(Path(place).absolute())))):
            message = message.replace(f"\n  {name}: ", "\n  ").replace(f"\n  {name}\n", "\n")
            message = message.removesuffix(f"\n  {name}").replace(f" ({name})", "", 1)
        return cls(place=place, message=message.removeprefix(f"{file} "))

    def __str__(self) -> str:
        """Return the problem for a terminal or a log."""
        return release_text(f"{self.place or 'the target'}: {self.message}")

    def to_dict(self) -> dict[str, str]:
        """Return the problem as JSON."""
        return {"place": release_text(self.place), "message": release_text(self.message)}


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedTarget:
    """The tools and agents of a target.

    Attributes:
        target: The target on the command line.
        tools: The tools.
        agents: The agents, by the names of their attributes.
        kind: The origin: Python code, MCP servers, or this library.
        place: The file or the module of Python code, or the URL or file of MCP servers.
        attribute: The attribute of the module; empty for the whole module.
        value: The value of the attribute or the module.
        files: Files of the target that were not imported, such as a configuration.
        close: Closes the resources of the target.
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
"""Imports the target and returns its tools and agents, or raises `TargetError`."""


class TargetError(Exception):
    """A target cannot be used.

    Args:
        problems: The problems.
        files: Files to watch, besides those that were imported.
    """

    def __init__(self, *problems: TargetProblem, files: tuple[str, ...] = ()) -> None:
        super().__init__("; ".join(problem.message for problem in problems))
        self.problems = problems
        self.files = files


def place_of(error: BaseException) -> tuple[str, str]:
    """Return the file of an error, and its place in a short form.

    Both can be empty.
    """
    if isinstance(error, SyntaxError) and error.filename:
        return error.filename, f"{short_place(error.filename)}:{error.lineno or 1}"
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if is_own(frame.filename)]
    if not own:
        return "", ""
    return own[-1].filename, f"{short_place(own[-1].filename)}:{own[-1].lineno}"


def short_place(place: str) -> str:
    """Return a path relative to the current folder, if it is below it."""
    path = Path(place)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        return str(path.relative_to(Path.cwd()))
    return place


def is_own(filename: str) -> bool:
    """Return whether a file belongs to the user, not to a library or to Python."""
    path = Path(filename)
    if filename.startswith("<") or not filename:
        return False
    if "site-packages" in path.parts or "dist-packages" in path.parts:
        return False
    return not any(path.is_relative_to(place) for place in (_LIBRARY, _PACKAGE, *_prefixes()))


def _prefixes() -> list[Path]:
    """Return the folders of virtual environments, which can be inside the user's folders."""
    if sys.prefix == sys.base_prefix:
        return []
    return [Path(sys.prefix)]
