"""All built-in tools as a list for an agent and as a registry."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from agents_tools.builtin.file_editor import FileEditorTool
from agents_tools.builtin.finish import FinishTool
from agents_tools.builtin.glob import GlobTool
from agents_tools.builtin.grep import GrepTool
from agents_tools.builtin.paths import DEFAULT_PROTECTED, ConfinedWorkspace
from agents_tools.builtin.skill import SkillTool
from agents_tools.builtin.task_tracker import TaskTrackerTool
from agents_tools.builtin.terminal import TerminalTool
from agents_tools.builtin.think import ThinkTool
from agents_tools.classes.action import close_executors
from agents_tools.classes.per_run import shared_by_runs
from agents_tools.classes.registry import ToolRegistry

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable

    from agents_tools.builtin.sandbox import Sandbox
    from agents_tools.builtin.skill import SkillRegistry
    from agents_tools.classes.definition import ToolDefinition

__all__ = ["DefaultTools", "create_default_registry", "get_default_tools"]


class DefaultTools(list[Any]):
    """A list of tools and a context manager that closes their executors.

    Args:
        tools: The tools.
        workspace: The directories that they share, which are closed with them.
    """

    def __init__(
        self, tools: Iterable[Any] = (), workspace: ConfinedWorkspace | None = None
    ) -> None:
        super().__init__(tools)
        self._workspace = workspace

    def __enter__(self) -> Self:
        """Return itself."""
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
    shared: bool = False,
) -> DefaultTools:
    """Return the tools of an agent that works on files: shell, editor, search and task list.

    Each run, and each run of a sub-agent, gets its own shell, undo history and task list at its
    first call, which are closed with the run. Calls outside of a run share those of the list.

    Args:
        working_dir: The directory to which the tools are confined; the current one by default.
        sandbox: The sandbox of the shell; the level `process` by default.
        skills: The skills that the agent can use.
        shared: Whether all runs share the shell, the undo history and the task list of the list.
            To share them between some runs only, use `RunConfig(tool_state=...)`.

    Raises:
        UserError: The directory does not exist.
    """
    directory = Path(working_dir or ".")
    skill_folders = () if skills is None else skills.protected(directory)
    protected = (*DEFAULT_PROTECTED, *skill_folders)
    workspace = ConfinedWorkspace(directory, protected=protected)
    groups: Iterable[Iterable[ToolDefinition[Any, Any]]] = (
        TerminalTool.create(working_dir=directory, sandbox=sandbox, protected=protected),
        FileEditorTool.create(workspace=workspace),
        GlobTool.create(workspace=workspace),
        GrepTool.create(workspace=workspace),
        TaskTrackerTool.create(),
        ()
        if skills is None
        else SkillTool.create(skill_registry=skills, working_dir=directory, sandbox=sandbox),
    )
    created = [tool for tools in groups for tool in tools]
    return DefaultTools(shared_by_runs(created) if shared else created, workspace)


def create_default_registry(
    skill_registry: SkillRegistry | None = None,
    *,
    working_dir: str | os.PathLike[str] | None = None,
    sandbox: Sandbox | None = None,
) -> ToolRegistry:
    """Return a registry with all built-in tools.

    Args:
        skill_registry: Skills, which add the tool `use_skill`.
        working_dir: The directory to which the tools are confined; the current one by default.
        sandbox: The sandbox of the shell; the level `process` by default.

    Raises:
        UserError: The directory does not exist.
    """
    tools = get_default_tools(working_dir, sandbox=sandbox, skills=skill_registry)
    first = ("execute_bash", "str_replace_editor", "think", "finish")
    tools += [*ThinkTool.create(), *FinishTool.create()]
    tools.sort(key=lambda tool: first.index(tool.name) if tool.name in first else len(first))
    registry = ToolRegistry()
    registry.register_many(tools)
    return registry
