"""Tools by the names of their modules: how a worker finds what its owner means."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.execution.local import tools_by_name
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["address_of", "addresses_of", "check_importable", "load", "main_program"]

_MAIN: Final = "__main__"
_MAIN_AT_WORKER: Final = "__agents_tools_main__"


def addresses_of(target: object) -> list[dict[str, Any]]:
    """Return where the tools of a target are.

    Args:
        target: `"module"`, `"module:name"`, a tool at the top level of a module, or several.

    Raises:
        UserError: Something of it cannot be found by a name.
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
        return [one for each in cast("Iterable[object]", target) for one in addresses_of(each)]
    raise UserTypeError(
        "A worker finds tools by the names of their modules: give 'package.module', "
        f"'package.module:name', or tools made from functions, not a {type(target).__name__}."
    )


def address_of(tool: FunctionTool[..., Any], what: str) -> dict[str, Any]:
    """Return where the function of a tool is.

    Args:
        tool: The tool.
        what: Who asks, for the error.

    Raises:
        UserError: It is nowhere where a worker could import it from.
    """
    function = tool.__dict__.get("__wrapped__")
    if function is None:
        raise UserTypeError(
            f"{what} takes tools made from functions; tool {tool.name!r} wraps none. Write one at "
            "the top level of a module that does the work."
        )
    module, name = getattr(function, "__module__", ""), getattr(function, "__qualname__", "")
    if hasattr(function, "__self__"):
        name = f"{name} of an instance"
    if not module or not all(part.isidentifier() for part in name.split(".")) or "." in name:
        raise UserTypeError(
            f"{what} takes functions that a worker can import; that of tool {tool.name!r}, "
            f"{name or function!r} of {module or 'no module'}{_place(function)}, has no name "
            "there: it is a lambda, a method, or defined inside another function. Move it to the "
            "top level of a module, and pass the values it uses as arguments."
        )
    if module == _MAIN_AT_WORKER:  # a worker has workers itself
        module = _MAIN
    address = {"module": module, "name": name, "tool": tool.name}
    main_program([address])
    return address


def check_importable(tool: FunctionTool[..., Any], address: Mapping[str, Any]) -> None:
    """Look whether the name still stands for the function of a tool, now that all is defined.

    Raises:
        UserError: It does not.
    """
    module, name = address["module"], address["name"]
    found = getattr(sys.modules.get(module), name, None)
    function = tool.__dict__.get("__wrapped__")
    if found is not function and getattr(found, "__wrapped__", None) is not function:
        raise UserError(
            f"A worker would look for the function of tool {tool.name!r} as {module}:{name}, and "
            f"that is {'nothing' if found is None else 'something else'}. Give the function a "
            "name of its own at the top level of the module."
        )


def main_program(addresses: Iterable[Mapping[str, Any]]) -> dict[str, str] | None:
    """Return how a worker imports the program itself, where a function is in it.

    Raises:
        UserError: The program is no file.
    """
    if not any(address["module"] == _MAIN for address in addresses):
        return None
    main = sys.modules[_MAIN]
    spec = getattr(main, "__spec__", None)
    if spec is not None and spec.name not in {_MAIN, _MAIN_AT_WORKER}:
        return {"module": spec.name}
    path = getattr(main, "__file__", None)
    if path is None or not Path(path).is_file():
        raise UserError(
            "A worker cannot import a function that was typed at a prompt or into a notebook: "
            "expected a function in a file. Move the function to a module."
        )
    return {"path": str(Path(path).resolve())}


# --- at the worker


def load(
    addresses: Iterable[Mapping[str, Any]], main: Mapping[str, str] | None
) -> dict[str, FunctionTool[..., Any]]:
    """Import tools.

    Args:
        addresses: Where they are.
        main: What the owner's own program is.

    Raises:
        UserError: One is not there.
    """
    program = None if main is None else _import_main(main)
    found: list[Any] = []
    for address in addresses:
        module = program if address["module"] == _MAIN else import_module(address["module"])
        found.extend(_tools_at(module, address))
    unique = {id(tool): tool for tool in found}
    return tools_by_name(unique.values())


def _tools_at(module: Any, address: Mapping[str, Any]) -> list[Any]:
    from agents_tools.tool.decorators import function_tool
    from agents_tools.tool.flatten import function_tools

    name, as_name = address["name"], address["tool"]
    if not name:
        contents = cast("dict[str, Any]", vars(module))
        things = [one for one in contents.values() if _is_tool(one)]
        if not things:
            raise UserError(f"The module {address['module']} has no tools.")
        return things
    if not hasattr(module, name):
        raise UserError(f"The module {address['module']} has no {name!r}.")
    thing: Any = getattr(module, name)
    if callable(thing) and not _is_tool(thing) and not _becomes_tool(thing):
        thing = function_tool(thing)
    tools = list(function_tools([thing]))
    return [tool.with_(name=as_name) for tool in tools] if as_name else tools


def _is_tool(thing: object) -> bool:
    return isinstance(thing, FunctionTool)


def _becomes_tool(thing: Any) -> bool:
    return not isinstance(thing, type) and hasattr(thing, "as_function_tool")


def _import_main(main: Mapping[str, str]) -> Any:
    """Import the owner's program under another name, so that its `if __name__` is not true."""
    if "module" in main:
        return import_module(main["module"])
    from importlib.util import module_from_spec, spec_from_file_location

    spec = spec_from_file_location(_MAIN_AT_WORKER, main["path"])
    if spec is None or spec.loader is None:
        raise UserError(f"{main['path']} is not a Python program that can be imported.")
    module = module_from_spec(spec)
    sys.modules[_MAIN_AT_WORKER] = sys.modules[_MAIN] = module
    spec.loader.exec_module(module)
    return module


def _place(function: Any) -> str:
    code = getattr(function, "__code__", None)
    return "" if code is None else f" ({Path(code.co_filename).name}:{code.co_firstlineno})"
