"""Finds tools in a worker by the names of their modules."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.execution.local import tools_by_name
from agents_tools.text.escape import MAIN_AT_WORKER
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["address_of", "addresses_of", "check_importable", "load", "main_program"]

_MAIN: Final = "__main__"


def addresses_of(target: object) -> list[dict[str, Any]]:
    """Return the addresses of tools: their modules and names.

    Args:
        target: `"module"`, `"module:name"`, a tool at the top level of a module, or several.

    Raises:
        UserError: A part of the target cannot be imported by name.
    """
    if isinstance(target, str):
        module, _, name = target.partition(":")
        if not module or target.endswith(":"):
            raise UserValueError(
                f"The target {target!r} is not a valid address. Write 'package.module' for all "
                "tools of a module, or 'package.module:name' for one."
            )
        return [{"module": module, "name": name, "tool": None}]
    if isinstance(target, FunctionTool):
        return [address_of(cast("FunctionTool[..., Any]", target), "ProcessBackend(...)")]
    if isinstance(target, (list, tuple)):
        return [
            address for item in cast("Iterable[object]", target) for address in addresses_of(item)
        ]
    raise UserTypeError(
        "The tools of a worker are invalid: expected 'package.module', 'package.module:name', or "
        f"tools made from functions, got {type_with_article(target)}."
    )


def address_of(tool: FunctionTool[..., Any], caller: str) -> dict[str, Any]:
    """Return the address of the function of a tool: its module and name.

    Args:
        tool: The tool.
        caller: The caller, such as `isolate(...)`, for the error message.

    Raises:
        UserError: A worker cannot import the function.
    """
    function = tool.__dict__.get("__wrapped__")
    if function is None:
        raise UserTypeError(
            f"Tool {tool.name!r} cannot run in a worker: {caller} expects tools made from "
            "functions. Write a function at the top level of a module, and decorate it with "
            "@function_tool."
        )
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if hasattr(function, "__self__"):
        name = f"{name} of an instance"
    if not module or not all(part.isidentifier() for part in name.split(".")) or "." in name:
        raise UserTypeError(
            f"Tool {tool.name!r} cannot run in a worker: {caller} expects a function that can be "
            f"imported, got {name or function!r} of {module or 'no module'}{_location(function)}, "
            "which is a lambda, a method, or defined inside another function. Move it to the top "
            "level of a module, and pass the values it uses as arguments."
        )
    if module == MAIN_AT_WORKER:  # this process is a worker that has workers itself
        module = _MAIN
    address = {"module": module, "name": name, "tool": tool.name}
    main_program([address])
    return address


def check_importable(tool: FunctionTool[..., Any], address: Mapping[str, Any]) -> None:
    """Raise an error if the address no longer leads to the function of the tool.

    Raises:
        UserError: The name was deleted, or assigned to another object.
    """
    module, name = address["module"], address["name"]
    value = getattr(sys.modules.get(module), name, None)
    function = tool.__dict__.get("__wrapped__")
    if value is not function and getattr(value, "__wrapped__", None) is not function:
        raise UserError(
            f"A worker cannot import the function of tool {tool.name!r}: expected it as "
            f"{module}:{name}, got {'nothing' if value is None else 'something else'}. Use a "
            "unique name for the function, at the top level of the module."
        )


def main_program(addresses: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """Return how a worker imports the main program; `None` if no function is defined there.

    Raises:
        UserError: The main program is not a file.
    """
    if not any(address["module"] == _MAIN for address in addresses):
        return None
    main = sys.modules[_MAIN]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name not in {_MAIN, MAIN_AT_WORKER}:
        return {"module": spec.name}
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise UserError(
            "A worker cannot import a function that was typed at a prompt or into a notebook: "
            "expected a function in a file. Move the function to a module."
        )
    return {"path": str(Path(path).resolve())}


# --- in the worker


def load(
    addresses: Iterable[Mapping[str, Any]], main: Mapping[str, str] | None
) -> dict[str, FunctionTool[..., Any]]:
    """Import tools.

    Args:
        addresses: The addresses of the tools.
        main: The result of `main_program` in the owner.

    Raises:
        UserError: A tool does not exist.
    """
    program = None if main is None else _import_main(main)
    tools: list[Any] = []
    for address in addresses:
        module = program if address["module"] == _MAIN else import_module(address["module"])
        tools.extend(_tools_at(module, address))
    unique = {id(tool): tool for tool in tools}
    return tools_by_name(unique.values())


def _tools_at(module: Any, address: Mapping[str, Any]) -> list[Any]:
    from agents_tools.tool.decorators import function_tool
    from agents_tools.tool.flatten import function_tools

    name, as_name = address["name"], address["tool"]
    if not name:
        contents = cast("dict[str, Any]", vars(module))
        tools = [value for value in contents.values() if _is_tool(value)]
        if not tools:
            raise UserError(f"The module {address['module']} has no tools.")
        return tools
    if not hasattr(module, name):
        raise UserError(f"The module {address['module']} has no {name!r}.")
    value: Any = getattr(module, name)
    if callable(value) and not _is_tool(value) and not _is_convertible(value):
        value = function_tool(value)
    tools = list(function_tools([value]))
    return [tool.with_(name=as_name) for tool in tools] if as_name else tools


def _is_tool(value: object) -> bool:
    return isinstance(value, FunctionTool)


def _is_convertible(value: Any) -> bool:
    return not isinstance(value, type) and hasattr(value, "as_function_tool")


def _import_main(main: Mapping[str, str]) -> Any:
    """Import the main program under another name, so that `__name__ == "__main__"` is false."""
    if "module" in main:
        return import_module(main["module"])
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(MAIN_AT_WORKER, main["path"])
    if spec is None or spec.loader is None:
        raise UserError(f"{main['path']} is not a Python program that can be imported.")
    module = module_from_spec(spec)
    sys.modules[MAIN_AT_WORKER] = sys.modules[_MAIN] = module
    spec.loader.exec_module(module)
    return module


def _location(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({Path(code.co_filename).name}:{code.co_firstlineno})"
