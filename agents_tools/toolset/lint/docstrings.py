"""What the docstring of a Python tool documents, next to its parameters."""

from __future__ import annotations

import inspect
import re
from typing import TYPE_CHECKING, Any

from agents_tools.schema.docstring import parse_docstring

if TYPE_CHECKING:
    from agents_tools.tool.tool import FunctionTool

__all__ = ["documented_parameters", "unknown_in_docstring"]


def unknown_in_docstring(tool: FunctionTool[..., Any]) -> tuple[list[str], list[str]]:
    """Return the documented names that are not parameters, and the parameters without a text.

    Args:
        tool: A tool. Both lists are empty if it is not a Python function with a docstring.
    """
    function = tool.__dict__.get("__wrapped__")
    if function is None:
        return [], []
    text = inspect.getdoc(function)
    documented = parse_docstring(text).params if text else {}
    if not documented:
        return [], []
    names = list(inspect.signature(function).parameters)
    unknown = [name for name in documented if name.lstrip("*") not in names]
    return unknown, [name for name in names if name not in documented]


def documented_parameters(description: str) -> dict[str, str]:
    """Return the parameters that the sections of a description document, with their texts.

    Args:
        description: The description of a tool, which can be a whole docstring.
    """
    if not _SECTION.search(description):
        return {}
    return {
        name: text
        for name, text in parse_docstring(description).params.items()
        if name.isidentifier()
    }


_SECTION = re.compile(
    r"^[ \t]*(?:(?:Args|Arguments|Parameters|Params):?[ \t]*$|:param |@param )", re.MULTILINE
)
