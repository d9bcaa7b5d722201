"""The built-in tools together: a list for an agent, and a registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agents_tools._paths import DEFAULT_PROTECTED, Workspace
from agents_tools.action import close_executors
from agents_tools.builtin.file_editor import FileEditorTool
from agents_tools.builtin.finish import FinishTool
from agents_tools.builtin.glob import GlobTool
from agents_tools.builtin.grep import GrepTool
from agents_tools.builtin.skill import SkillTool
from agents_tools.builtin.task_tracker import TaskTrackerTool
from agents_tools.builtin.terminal import TerminalTool
from agents_tools.builtin.think import ThinkTool
from agents_tools.registry import ToolRegistry

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from agents_tools.builtin.sandbox import Sandbox
    from agents_tools.builtin.skill import SkillRegistry
    from agents_tools.definition import ToolDefinition

__all__ = ["ToolSet", "create_default_registry", "get_default_tools"]


class ToolSet(list[Any]):
    """Tools in a list that closes what they hold, once each; a context manager.

    Args:
        tools: The tools.
        workspace: The directories they share, which are closed with them.
    """

    def __init__(self, tools: Iterable[Any] = (), workspace: Workspace | None = None) -> None:
        super().__init__(tools)
        self._workspace = workspace

    def __enter__(self) -> Self:
        """Give itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Close the tools."""
        self.close()

    def close(self) -> None:
        """Close the executors of the tools."""
        close_executors(getattr(tool, "executor", None) for tool in self)
        if self._workspace is not None:
            self._workspace.close()


def get_default_tools(
    working_dir: str | os.PathLike[str] | None = None,
    *,
    sandbox: Sandbox | None = None,
    skills: SkillRegistry | None = None,
) -> ToolSet:
    """Give the tools of an agent that works on files: shell, editor, search, and a plan.

    Args:
        working_dir: The directory they work in, and are confined to; the current one by default.
        sandbox: How the shell is confined; the level `process` by default.
        skills: Skills that it may use.

    Raises:
        UserError: There is no such directory.
    """
    place = Path(working_dir or ".")
    known = () if skills is None else skills.protected(place)
    protected = (*DEFAULT_PROTECTED, *known)
    workspace = Workspace(place, protected=protected)
    made: Iterable[Iterable[ToolDefinition[Any, Any]]] = (
        TerminalTool.create(working_dir=place, sandbox=sandbox, protected=protected),
        FileEditorTool.create(workspace=workspace),
        GlobTool.create(workspace=workspace),
        GrepTool.create(workspace=workspace),
        TaskTrackerTool.create(),
        ()
        if skills is None
        else SkillTool.create(skill_registry=skills, working_dir=place, sandbox=sandbox),
    )
    return ToolSet((tool for tools in made for tool in tools), workspace)


def create_default_registry(
    skill_registry: SkillRegistry | None = None,
    *,
    working_dir: str | os.PathLike[str] | None = None,
    sandbox: Sandbox | None = None,
) -> ToolRegistry:
    """Give a registry that has all the built-in tools.

    Args:
        skill_registry: Skills; with them there is `use_skill` as well.
        working_dir: The directory the tools are confined to; the current one by default.
        sandbox: How the shell is confined; the level `process` by default.

    Raises:
        UserError: There is no such directory.
    """
    tools = get_default_tools(working_dir, sandbox=sandbox, skills=skill_registry)
    first = ("execute_bash", "str_replace_editor", "think", "finish")
    tools += [*ThinkTool.create(), *FinishTool.create()]
    tools.sort(key=lambda tool: first.index(tool.name) if tool.name in first else len(first))
    registry = ToolRegistry()
    registry.register_many(tools)
    return registry
