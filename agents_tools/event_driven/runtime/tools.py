"""The tools of a runtime, found by what an action says."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.classes.action import close_executors
from agents_tools.classes.registry import ToolRegistry, ToolSpec
from agents_tools.errors import UserError, UserValueError
from agents_tools.tool.flatten import flatten_tools
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AnyTool", "RuntimeTools"]

AnyTool: TypeAlias = FunctionTool[..., Any]


class RuntimeTools:
    """The tools of a runtime, by name and by the class of their actions."""

    def __init__(self, given: ToolRegistry | Iterable[Any], working_dir: Any) -> None:
        self._registry = given if isinstance(given, ToolRegistry) else None
        self._state = SimpleNamespace(workspace=SimpleNamespace(working_dir=working_dir))
        self._by_name: dict[str, AnyTool] = {}
        self._by_kind: dict[str, AnyTool] = {}
        self._made: list[Any] = []
        if not isinstance(given, ToolRegistry):
            for tool in flatten_tools(given):
                self._know(tool)

    def named(self, name: str) -> AnyTool | None:
        """Return the tool of a name."""
        found = self._by_name.get(name)
        if found is None and self._registry is not None and name.isidentifier():
            with suppress(UserError):
                self._make(self._registry, name)
        return self._by_name.get(name) if found is None else found

    def for_kind(self, kind: str) -> AnyTool | None:
        """Return the tool that takes a class of actions."""
        if kind not in self._by_kind and self._registry is not None:
            for name in dict.fromkeys([*self._registry.get_tool_names(), _BUILTIN.get(kind, "")]):
                self.named(name)
        return self._by_kind.get(kind)

    def remote(self, server: str | None, name: str) -> AnyTool | None:
        """Return a tool of an MCP server, by its name there or here."""
        known = [*self._by_name.values()]
        if self._registry is not None:
            known += self._registry.get_mcp_tools()
        found = {
            tool.name: tool
            for tool in known
            if (origin := tool.origin).server is not None
            and server in {None, origin.server}
            and name in {tool.name, origin.wire_name}
        }
        if len(found) > 1:
            servers = ", ".join(sorted(str(tool.origin.server) for tool in found.values()))
            raise UserError(f"Several servers have a tool {name!r}: {servers}. Say which one.")
        return next(iter(found.values()), None)

    def names(self) -> list[str]:
        """Return the names."""
        known = [] if self._registry is None else self._registry.get_tool_names()
        return list(dict.fromkeys([*self._by_name, *known]))

    def close(self) -> None:
        """Close what was made."""
        close_executors(getattr(tool, "executor", tool) for tool in self._made)

    def _make(self, registry: ToolRegistry, name: str) -> None:
        given = registry.get_tool(name) is not None
        made = registry.make(ToolSpec(name=name), self._state)
        if not given:
            self._made += made
        for tool in made:
            self._know(tool)
        if len(made) == 1:
            self._by_name.setdefault(name, _function_tool(made[0]))

    def _know(self, tool: Any) -> None:
        known = self._by_name[tool.name] = _function_tool(tool)
        action_type = getattr(tool, "action_type", None)
        if action_type is not None:
            self._by_kind[action_type.__name__] = known


_BUILTIN = {
    "TerminalAction": "execute_bash",
    "FileEditorAction": "str_replace_editor",
    "GlobAction": "glob",
    "GrepAction": "grep",
    "ThinkAction": "think",
    "FinishAction": "finish",
    "TaskTrackerAction": "task_tracker",
    "SkillAction": "use_skill",
}
"""The tools behind the shared registry, by the classes of their actions."""


def _function_tool(tool: Any) -> AnyTool:
    if isinstance(tool, FunctionTool):
        return cast("AnyTool", tool)
    become = getattr(tool, "as_function_tool", None)
    if become is None:
        raise UserValueError(f"A runtime takes tools; {tool!r:.80} is none.")
    return become()
