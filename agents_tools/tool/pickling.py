"""References to tools by module and name, with which they are pickled."""

from __future__ import annotations

import sys
from importlib import import_module
from operator import attrgetter
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserTypeError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["reference_to"]


def reference_to(tool: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """Return a function and its arguments that find the tool again, as `__reduce__` does.

    Raises:
        UserError: The tool is neither a variable of a module, nor a method of its instance.
    """
    if tool.bound_to is not None:
        if _has_equal_settings(tool, getattr(tool.bound_to, tool.__name__, None)):
            return getattr, (tool.bound_to, tool.__name__)
    elif (address := _address_of(tool)) is not None:
        return _tool_at, address
    raise UserTypeError(
        f"Tool {tool.name!r} cannot be pickled: expected a tool that a module or a class has under "
        f"a name of its own, got one from {tool.origin.place or 'a schema'} that has none. Assign "
        "it to a variable at the top level of a module."
    )


def _tool_at(module: str, qualname: str) -> Any:
    return attrgetter(qualname)(import_module(module))


def _address_of(tool: Any) -> tuple[str, str] | None:
    try:
        if attrgetter(tool.__qualname__)(sys.modules[tool.__module__]) is tool:
            return tool.__module__, tool.__qualname__
    except (AttributeError, KeyError):
        pass  # it is a variable with another name, or of another module
    for module, content in list(sys.modules.items()):
        for name, value in list(getattr(content, "__dict__", {}).items()):
            if value is tool:
                return module, name
    return None


_COPY_ATTRIBUTES = frozenset(
    {
        "__wrapped__",
        "_bound_to",
        "_call",
        "_origin",
        "_schema",
        "_source",
        "runner",
        "stack",
        "streamed_parameters",
    }
)
"""The attributes that differ between two bound copies of the same tool."""


def _has_equal_settings(tool: Any, other: Any) -> bool:
    """Return whether two tools are equal apart from `_COPY_ATTRIBUTES`."""
    if type(other) is not type(tool):
        return False
    return _settings(other) == _settings(tool) and other.__wrapped__ == tool.__wrapped__


def _settings(tool: Any) -> dict[str, Any]:
    values = cast("dict[str, Any]", vars(tool))
    return {name: value for name, value in values.items() if name not in _COPY_ATTRIBUTES}
