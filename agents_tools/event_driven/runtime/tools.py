"""The tools of a runtime, by name and by class of actions."""

from __future__ import annotations

from contextlib import suppress
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.classes.action import close_executors
from agents_tools.classes.registry import ToolRegistry, ToolSpec
from agents_tools.errors import UserError, UserValueError
from agents_tools.tool.flatten import flatten_tools
from agents_tools.tool.state import ToolState
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["AnyTool", "RuntimeTools"]

AnyTool: TypeAlias = FunctionTool[..., Any]


class RuntimeTools:
    """The tools of a runtime, by name and by the class of their actions.

    Attributes:
        state: The objects that the tools hold between the actions, such as the shell of a terminal.
            Two runtimes with the same tools have two of them.
    """

    def __init__(self, tools: ToolRegistry | Iterable[Any], working_dir: Any) -> None:
        self.state = ToolState()
        self._registry = tools if isinstance(tools, ToolRegistry) else None
        self._state = SimpleNamespace(workspace=SimpleNamespace(working_dir=working_dir))
        self._by_name: dict[str, AnyTool] = {}
        self._by_kind: dict[str, AnyTool] = {}
        self._created: list[Any] = []
        if not isinstance(tools, ToolRegistry):
            for tool in flatten_tools(tools):
                self._add(tool)

    def named(self, name: str) -> AnyTool | None:
        """Return the tool with a name; `None` if there is none."""
        found = self._by_name.get(name)
        if found is None and self._registry is not None and name.isidentifier():
            with suppress(UserError):
                self._create(self._registry, name)
        return self._by_name.get(name) if found is None else found

    def for_kind(self, kind: str) -> AnyTool | None:
        """Return the tool for a class of actions; `None` if there is none."""
        if kind not in self._by_kind and self._registry is not None:
            for name in dict.fromkeys([*self._registry.get_tool_names(), _BUILTIN.get(kind, "")]):
                self.named(name)
        return self._by_kind.get(kind)

    def remote(self, server: str | None, name: str) -> AnyTool | None:
        """Return a tool of an MCP server, by its name on the server or in this program."""
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
            raise UserError(
                f"Several servers have a tool {name!r}: {servers}. Set the server of the action."
            )
        return next(iter(found.values()), None)

    def names(self) -> list[str]:
        """Return the names of all tools."""
        known = [] if self._registry is None else self._registry.get_tool_names()
        return list(dict.fromkeys([*self._by_name, *known]))

    def close(self) -> None:
        """Close the created tools, and the state of all tools."""
        self.state.close()
        close_executors(getattr(tool, "executor", tool) for tool in self._created)

    def _create(self, registry: ToolRegistry, name: str) -> None:
        is_registered = registry.get_tool(name) is not None
        tools = registry.make(ToolSpec(name=name), self._state)
        if not is_registered:
            self._created += tools
        for tool in tools:
            self._add(tool)
        if len(tools) == 1:
            self._by_name.setdefault(name, _function_tool(tools[0]))

    def _add(self, tool: Any) -> None:
        function_tool = self._by_name[tool.name] = _function_tool(tool)
        action_type = getattr(tool, "action_type", None)
        if action_type is not None:
            self._by_kind[action_type.__name__] = function_tool


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
"""The names of the built-in tools, by the classes of their actions."""


def _function_tool(tool: Any) -> AnyTool:
    if isinstance(tool, FunctionTool):
        return cast("AnyTool", tool)
    convert = getattr(tool, "as_function_tool", None)
    if convert is None:
        raise UserValueError(
            f"The tools of a runtime are invalid: expected tools, got {tool!r:.80}."
        )
    return convert()
