"""Validation of tool names."""

from __future__ import annotations

import re

from agents_tools.errors import UserValueError

__all__ = ["check_tool_name", "valid_tool_name"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def check_tool_name(name: str) -> str:
    """Return the name unchanged if every model provider and MCP accept it.

    Raises:
        UserError: The name is not accepted; the message suggests one that is.
    """
    if isinstance(name, str) and _NAME.fullmatch(name):  # pyright: ignore[reportUnnecessaryIsInstance]
        return name
    plain = valid_tool_name(str(name), default="my_tool")
    raise UserValueError(
        f"The tool name {name!r} is not accepted by model providers: expected 1 to 64 letters, "
        f"digits, '_' and '-'. Choose another name, for example name_override={plain!r}."
    )


def valid_tool_name(name: str, *, default: str = "tool") -> str:
    """Return a name that every provider accepts, unchanged if possible.

    Args:
        name: Any text.
        default: The name if the text has no accepted character.
    """
    if _NAME.fullmatch(name):
        return name
    return re.sub(r"[^A-Za-z0-9_-]+", "_", name).strip("_")[:64] or default
