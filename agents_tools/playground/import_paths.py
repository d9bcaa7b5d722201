"""Find the Python imports of a tool or an agent of a target."""

from __future__ import annotations

import keyword
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError, UserValueError
from agents_tools.playground.target_state import is_own, short_place
from agents_tools.text.output import release_text
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.playground.target_state import AnyAgent, LoadedTarget, Tool

__all__ = ["ImportPaths", "reach_agent", "reach_tool"]

_TAKEN = frozenset(
    {
        *("call", "context", "json", "result", "sys", "tool", "agent", "one"),
        *("call_tool_sync", "function_tool", "function_tools", "import_module", "streaming_tool"),
        *("Decision", "Runner", "ToolContext", "print", "str"),
    }
)
"""Names with another meaning in the generated code."""
_FUNCTION_TOOLS = "from agents_tools.tool import function_tools"


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportPaths:
    """Lines of Python that bind a name to a tool or an agent.

    Attributes:
        name: The name.
        path: A folder to add to `sys.path`, relative if possible.
        imports: The imports.
        setup: The lines after the imports.
    """

    name: str
    path: str | None = None
    imports: tuple[str, ...] = ()
    setup: tuple[str, ...] = ()


def reach_tool(loaded: LoadedTarget, tool: Tool) -> ImportPaths:
    """Return the imports of a tool."""
    if loaded.kind == "mcp":
        return _from_servers(loaded, tool)
    if loaded.kind == "builtin":
        return ImportPaths(
            name="tool",
            imports=(
                "from agents_tools.builtin.presets import get_default_tools",
                "from agents_tools.builtin.sandbox import Sandbox",
                _FUNCTION_TOOLS,
            ),
            setup=(
                'tools = function_tools(get_default_tools(sandbox=Sandbox(level="auto")))',
                _picked(tool),
            ),
        )
    for expression, value in _values_in(loaded):
        if value is tool:
            return _reached(loaded, expression)
    for expression, value in _values_in(loaded):
        if _has(value, tool.name):
            return _taken_from(loaded, expression, value, tool)
    return _made(loaded, tool)


def reach_agent(loaded: LoadedTarget, agent: AnyAgent) -> ImportPaths:
    """Return the imports of an agent."""
    for expression, value in _values_in(loaded):
        if value is agent:
            return _reached(loaded, expression)
    members = "{}.values()" if isinstance(loaded.value, Mapping) else "{}"

    def picked(it: str) -> str:
        listed = members.format(it)
        return f"agent = next(one for one in {listed} if one.name == {agent.name!r})"

    return _reached(loaded, loaded.attribute, setup=picked, name="agent")


# --- within a module


def _values_in(loaded: LoadedTarget) -> Iterator[tuple[str, Any]]:
    """Yield the names in the module of a target, with their values."""
    if loaded.attribute:
        yield loaded.attribute, loaded.value
        members = {
            name: getattr(loaded.value, name)
            for cls in type(loaded.value).__mro__
            for name, member in vars(cls).items()
            if isinstance(member, FunctionTool)
        }
    else:
        members = dict(getattr(loaded.value, "__dict__", {}))
    start = f"{loaded.attribute}." if loaded.attribute else ""
    for name, member in members.items():
        if name.isidentifier() and not keyword.iskeyword(name):
            yield start + name, member


def _has(value: Any, name: str) -> bool:
    """Return whether a list, a mapping, an agent or a class-based tool has a tool of this name."""
    try:
        members = list(function_tools(_listed(value)))
    except UserError:  # a toolset that must fetch its tools
        return False
    return any(isinstance(member, FunctionTool) and member.name == name for member in members)


def _listed(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        return list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, (list, tuple)):
        return [cast("Any", value)]
    if _is_agent(value) or hasattr(value, "as_part"):
        return value.known_tools
    return [value]


def _is_agent(value: object) -> bool:
    module = sys.modules.get("agents_tools.agents.agent")
    return module is not None and isinstance(value, module.Agent)


def _taken_from(loaded: LoadedTarget, expression: str, value: Any, tool: Tool) -> ImportPaths:
    if isinstance(value, FunctionTool):
        return _reached(loaded, expression)  # each access creates a new one
    members = "[{}]"
    if isinstance(value, Mapping):
        members = "{}.values()"
    elif isinstance(value, (list, tuple)):
        members = "{}"
    elif _is_agent(value):
        members = "{}.tools"

    def picked(it: str) -> str:
        listed = members.format(it)
        return f"tool = next(one for one in function_tools({listed}) if one.name == {tool.name!r})"

    return _reached(loaded, expression, imports=(_FUNCTION_TOOLS,), setup=picked, name="tool")


def _made(loaded: LoadedTarget, tool: Tool) -> ImportPaths:
    """Return code that creates the tool from a function, as the loader did.

    Raises:
        UserError: The target does not name a function.
    """
    if not loaded.attribute and not (tool.name.isidentifier() and not keyword.iskeyword(tool.name)):
        raise UserValueError(
            f"No name in {release_text(loaded.place)} refers to the tool {tool.name!r}. Assign it: "
            f"{re.sub('[^a-zA-Z0-9]', '_', tool.name)} = ..."
        )
    maker = "streaming_tool" if tool.origin.kind == "stream" else "function_tool"
    return _reached(
        loaded,
        loaded.attribute or tool.name,
        imports=(f"from agents_tools import {maker}",),
        setup=lambda it: f"tool = {maker}({it})",
        name="tool",
    )


def _reached(
    loaded: LoadedTarget,
    expression: str,
    *,
    imports: tuple[str, ...] = (),
    setup: Callable[[str], str] | None = None,
    name: str | None = None,
) -> ImportPaths:
    """Return the import of an expression.

    Args:
        loaded: The target.
        expression: A name of its module, or an attribute of one.
        imports: Other imports.
        setup: Returns lines that turn the expression into the tool or agent.
        name: The name of the tool or agent in these lines.
    """
    first, dot, rest = expression.partition(".")
    path, module = _module(loaded)
    known = f"{first}_" if first in _TAKEN else first
    expression = f"{known}{dot}{rest}"
    if all(part.isidentifier() and not keyword.iskeyword(part) for part in module.split(".")):
        renamed = "" if known == first else f" as {known}"
        own: tuple[str, ...] = (f"from {module} import {first}{renamed}",)
        before: tuple[str, ...] = ()
    else:
        own = ("from importlib import import_module",)
        before = (f"{known} = import_module({module!r}).{first}",)
    made = () if setup is None else (setup(expression),)
    return ImportPaths(
        name=name or expression,
        path=path,
        imports=(*imports, *own),
        setup=(*before, *made),
    )


def _module(loaded: LoadedTarget) -> tuple[str | None, str]:
    """Return the folder of a target's module, if it is not on the path, and its name."""
    path = Path(loaded.place)
    if loaded.place.endswith(".py") or path.is_file():
        folder = short_place(str(path.resolve().parent))
        return folder or ".", path.stem
    found: str = getattr(sys.modules.get(loaded.place.partition(".")[0]), "__file__", None) or ""
    return ("." if not found or is_own(found) else None), loaded.place


# --- servers


def _from_servers(loaded: LoadedTarget, tool: Tool) -> ImportPaths:
    config = repr(loaded.place)
    if loaded.place.lower().startswith(("http://", "https://")):
        config = f'{{"mcpServers": {{"server": {{"url": {loaded.place!r}}}}}}}, prefix=None'
    return ImportPaths(
        name="tool",
        imports=("from agents_tools.mcp import create_mcp_tools",),
        setup=(f"tools = create_mcp_tools({config})", _picked(tool)),
    )


def _picked(tool: Tool) -> str:
    return f"tool = next(one for one in tools if one.name == {tool.name!r})"
