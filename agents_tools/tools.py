"""The built-in tools, under the module name of programs written for OpenHands."""

from __future__ import annotations

from typing import Any

from agents_tools import builtin

__all__ = builtin.__all__  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    return getattr(builtin, name)


def __dir__() -> list[str]:
    return list(__all__)
