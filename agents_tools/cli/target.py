"""Find the tools of a TARGET on the command line."""

from __future__ import annotations

import atexit
import difflib
import importlib
import importlib.machinery
import importlib.util
import inspect
import os
import re
import sys
import traceback
import types
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from agents_tools.cli.errors import CommandError
from agents_tools.cli.mcp_target import connect, is_mcp
from agents_tools.cli.output import prints_on_stderr, short_path
from agents_tools.errors import UserError
from agents_tools.tool.flatten import function_tools
from agents_tools.tool.tool import FunctionTool

__all__ = [
    "BUILTIN",
    "Tool",
    "attribute_of",
    "is_agent",
    "load_target",
    "load_tools",
    "parted",
    "pick",
    "tools_in",
]

Tool = FunctionTool[..., Any]
BUILTIN = "builtin"
"""The target for the built-in tools."""


def load_tools(target: str) -> list[Tool]:
    """Import a target and return its tools, in the order of their definition.

    Args:
        target: `file.py`, `package.module`, or either with `:attribute`. The attribute is a tool,
            a list, tuple or mapping of tools, an agent, an object whose methods are tools, or a
            function, which becomes a tool. Or MCP servers: a URL, or an `mcpServers` file. Or
            `builtin`: the built-in tools, in the current directory.

    Raises:
        CommandError: The target does not exist, cannot be imported, or has no tools.
    """
    return tools_in(load_target(target), target)


def load_target(target: str) -> Any:
    """Import a target and return the module, or the value of its attribute.

    Raises:
        CommandError: The target does not exist, or cannot be imported.
    """
    if is_mcp(target):
        return connect(target)
    if target == BUILTIN:
        return _builtin_tools()
    place, attribute = parted(target)
    with prints_on_stderr():
        module = _module_of(place)
        return attribute_of(module, attribute, place) if attribute else module


def _builtin_tools() -> list[Any]:
    """Return the built-in tools in the strongest sandbox of this machine."""
    from agents_tools.builtin.presets import get_default_tools
    from agents_tools.builtin.sandbox import Sandbox

    tools = get_default_tools(sandbox=Sandbox(level="auto"))
    atexit.register(tools.close)
    return tools


def tools_in(value: Any, target: str) -> list[Tool]:
    """Return the tools in the value of a target.

    Raises:
        CommandError: There are no tools.
    """
    with prints_on_stderr():
        return _tools_of(value, target)


def pick(tools: list[Tool], name: str, target: str) -> Tool:
    """Find a tool by its name.

    Raises:
        CommandError: There is no such tool, or more than one.
    """
    found = [tool for tool in tools if tool.name == name] or [
        tool for tool in tools if tool.origin.wire_name == name
    ]
    if len(found) == 1:
        return found[0]
    if found:
        if full := [tool.name for tool in found if tool.name != name]:
            raise CommandError(
                f"{target} has several tools {name!r}; use the full name.",
                hint=f"Tools: {', '.join(full)}.",
            )
        places = ", ".join(tool.origin.place or "?" for tool in found)
        raise CommandError(
            f"{target} has {len(found)} tools named {name!r}: {places}.",
            hint="Name one of them: file.py:attribute.",
        )
    names = [tool.name for tool in tools]
    near = difflib.get_close_matches(name, names, n=1)
    raise CommandError(
        f"{target} has no tool {name!r}.",
        hint=f"Did you mean {near[0]!r}?" if near else f"Tools: {', '.join(names)}.",
    )


def parted(target: str) -> tuple[str, str]:
    """Return the module of a target and its attribute, which can be empty."""
    place, colon, attribute = target.rpartition(":")
    if not colon or os.sep in attribute or "/" in attribute or len(place) == 1:
        return target, ""  # the colon of a Windows drive, or none
    return place, attribute


# --- modules


def _module_of(place: str) -> types.ModuleType:
    path = Path(place)
    if place.endswith(".py") or path.is_file():
        return _from_file(path)
    if path.is_dir() and not re.fullmatch(r"\w+(\.\w+)*", place):
        raise CommandError(
            f"{place} is a folder.", hint="Name a file, or a module: package.module."
        )
    if not re.fullmatch(r"[^\W\d]\w*(\.[^\W\d]\w*)*", place):
        raise CommandError(
            f"{place!r} is neither a Python file nor a module name.",
            hint="Write file.py, package.module, or either with :attribute.",
        )
    return _from_name(place)


def _from_file(path: Path) -> types.ModuleType:
    if not path.is_file():
        raise CommandError(f"file {path} not found.", hint=_nearby_file(path))
    path = path.resolve()
    _put_on_path(path.parent)
    # A unique name, so that the file cannot replace a module of the standard library.
    stem = re.sub(r"\W", "_", path.stem)
    name = f"agents_tools_target_{stem}"
    loader = importlib.machinery.SourceFileLoader(name, str(path))
    spec = importlib.util.spec_from_file_location(name, path, loader=loader)
    if spec is None:
        raise CommandError(f"{path} cannot be imported as Python.")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    _imported(str(path), lambda: loader.exec_module(module))
    return module


def _from_name(name: str) -> types.ModuleType:
    _put_on_path(Path.cwd())
    found: list[types.ModuleType] = []
    try:
        _imported(name, lambda: found.append(importlib.import_module(name)))
    except CommandError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name and _is_part(cause.name, name):
            hint = (
                "Modules are searched for in this folder and in the installed packages. To name a "
                "file, add its ending: tools.py."
            )
            parent, _, last = name.rpartition(".")
            if parent and Path(*parent.split(".")).with_suffix(".py").is_file():
                hint = f"Did you mean {parent}:{last}?"
            elif "." in name and Path(*name.split(".")[:-1]).is_dir():
                hint = "Its parent package exists, but has no such module."
            raise CommandError(f"module {name!r} not found.", hint=hint) from cause
        raise
    return found[0]


def _imported(name: str, load: Callable[[], object]) -> None:
    """Run the user's code and convert its exceptions to a `CommandError`."""
    try:
        load()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        raise _import_failed(name, error) from error


def _import_failed(name: str, error: BaseException) -> CommandError:
    shown = short_path(name)
    what = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    hint: str | None = "--debug shows the whole traceback."
    if isinstance(error, SyntaxError) and error.filename:
        line = (error.text or "").strip()
        at = f"\n  {short_path(error.filename)}:{error.lineno}" + (f": {line}" if line else "")
        return CommandError(f"{shown} cannot be imported: {error.msg}{at}", hint=hint)
    if isinstance(error, SystemExit):
        what = f"it ended the program (exit code {error.code!r})"
        hint = 'Put the code of a script below `if __name__ == "__main__":`.'
    elif isinstance(error, ImportError) and "no known parent package" in str(error):
        hint = "The file belongs to a package: name it as a module, package.module."
    elif isinstance(error, ModuleNotFoundError) and error.name:
        hint = f"Is {error.name.partition('.')[0]!r} installed in this environment?"
    return CommandError(f"{shown} cannot be imported: {what}{_frames_of(error)}", hint=hint)


def _frames_of(error: BaseException) -> str:
    """Return the user's own line that led to the error, and the line that raised it."""
    frames = [
        frame
        for frame in traceback.extract_tb(error.__traceback__)
        if not frame.filename.startswith("<frozen") and Path(frame.filename).parent != _HERE
    ]
    own = [frame for frame in frames if not _is_library(frame.filename)]
    chosen = [own[-1]] if own else []
    if frames and frames[-1] not in chosen:
        chosen.append(frames[-1])
    return "".join(
        f"\n  {short_path(frame.filename)}:{frame.lineno}"
        + (f": {frame.line}" if frame.line else "")
        for frame in chosen
    )


_HERE = Path(__file__).parent
_LIBRARY = Path(os.__file__).parent


def _is_library(filename: str) -> bool:
    path = Path(filename)
    return (
        "site-packages" in path.parts
        or path.is_relative_to(_LIBRARY)
        or path.is_relative_to(_HERE.parent)
        or filename.startswith("<")
    )


def _is_part(missing: str, name: str) -> bool:
    return name == missing or name.startswith(f"{missing}.")


def _put_on_path(folder: Path) -> None:
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))


def _nearby_file(path: Path) -> str | None:
    try:
        names = [found.name for found in path.parent.glob("*.py")]
    except OSError:
        return None
    near = difflib.get_close_matches(path.name, names, n=1)
    return f"Did you mean {path.with_name(near[0])}?" if near else None


# --- attributes


def attribute_of(module: types.ModuleType, attribute: str, place: str) -> Any:
    """Return an attribute of a module, or one within it.

    Raises:
        CommandError: The attribute does not exist.
    """
    value: Any = module
    for step in attribute.split("."):
        try:
            value = getattr(value, step)
        except AttributeError as error:
            names = [name for name in dir(value) if not name.startswith("_")]
            near = difflib.get_close_matches(step, names, n=1)
            raise CommandError(
                f"{place} has no attribute {attribute!r}.",
                hint=f"Did you mean {near[0]!r}?" if near else None,
            ) from error
    return value


def _tools_of_module(module: types.ModuleType, target: str) -> list[Tool]:
    tools: dict[Tool, None] = {}
    for value in vars(module).values():
        members = _members(value, target)
        if all(isinstance(member, FunctionTool) for member in members):
            tools |= dict.fromkeys(members)
    if tools:
        return list(tools)
    functions = [
        name
        for name, value in vars(module).items()
        if isinstance(value, types.FunctionType)
        and value.__module__ == module.__name__
        and not name.startswith("_")
    ]
    hint = "Decorate a function with @function_tool."
    agents = [name for name, value in vars(module).items() if is_agent(value)]
    if agents:
        hint = f"It has agents. Name one to get its tools: {target}:{agents[0]}"
    elif functions:
        hint = (
            f"It has functions ({', '.join(functions[:5])}). Decorate them with @function_tool, "
            f"or name one: {target}:{functions[0]}"
        )
    raise CommandError(f"{target} has no tools.", hint=hint)


def _tools_of(value: Any, target: str) -> list[Tool]:
    if _is_toolset(value):
        return [
            cast("Tool", one)
            for one in _toolset_tools(value, target)
            if isinstance(one, FunctionTool)
        ]
    listed: object = value
    found = [] if isinstance(listed, (list, tuple)) else list(function_tools([value]))
    if found and isinstance(found[0], FunctionTool) and hasattr(value, "name"):
        return [cast("Tool", found[0])]
    if isinstance(value, types.ModuleType):
        return _tools_of_module(value, target)
    if is_agent(value):
        return _tools_of_agent(value, target)
    if isinstance(value, Mapping):
        value = list(cast("Mapping[Any, Any]", value).values())
    if isinstance(value, (list, tuple, set, frozenset)):
        members = cast("Iterable[Any]", value)
        tools = [tool for member in members for tool in _tools_of(member, target)]
        if not tools:
            if is_mcp(target):
                hint = f"List the tools that were left out: agents-tools mcp list {target}"
                raise CommandError(f"{target} has no tools.", hint=hint)
            raise CommandError(f"{target} is empty.")
        return tools
    if methods := _methods_of(value):
        return methods
    if callable(value) and not isinstance(value, type):
        return [_create_tool(cast("Callable[..., Any]", value))]
    raise CommandError(
        f"{target} is not a tool but {_kind(value)}.",
        hint="Name a tool, a list, tuple, mapping or toolset, an agent, or a function.",
    )


def is_agent(value: object) -> bool:
    """Return whether a value is an agent, without importing the agents package for it."""
    module = sys.modules.get("agents_tools.agents.agent")
    return module is not None and isinstance(value, module.Agent)


def _tools_of_agent(agent: Any, target: str) -> list[Tool]:
    tools = [cast("Tool", tool) for tool in agent.known_tools if isinstance(tool, FunctionTool)]
    if not tools:
        raise CommandError(
            f"{target} is the agent {agent.name!r}, which has no function tools.",
            hint=f"To run it: agents-tools run {target} INPUT",
        )
    return tools


def _members(value: Any, target: str) -> list[Any]:
    """Return the members of a value, with lists and toolsets expanded."""
    if isinstance(value, (list, tuple)):
        return [one for member in cast("list[Any]", value) for one in _members(member, target)]
    return _toolset_tools(value, target) if _is_toolset(value) else list(function_tools([value]))


def _is_toolset(value: object) -> bool:
    return hasattr(type(value), "as_part")


def _toolset_tools(toolset: Any, target: str) -> list[Any]:
    """Return the tools of a toolset, fetched from its sources."""
    from agents_tools.concurrency.bridge import run_sync

    try:
        return list(run_sync(toolset.get_tools))
    except UserError as error:
        raise CommandError(f"{target} has no tools: {error}") from error


def _create_tool(function: Callable[..., Any]) -> Tool:
    from agents_tools.tool.decorators import function_tool, streaming_tool

    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        return streaming_tool(function)
    return function_tool(function)


def _methods_of(value: Any) -> list[Tool]:
    """Return the tools among the methods of an object."""
    if isinstance(value, (type, types.FunctionType)):
        return []
    names = {
        name: None
        for cls in reversed(type(value).__mro__)
        for name, member in vars(cls).items()
        if isinstance(member, FunctionTool)
    }
    return [getattr(value, name) for name in names]


def _kind(value: Any) -> str:
    if isinstance(value, type):
        return f"the class {value.__name__}"
    return f"of type {type(value).__name__}"
