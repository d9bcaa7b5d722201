"""The built-in tools under the name that programs written for OpenHands look for them."""

from __future__ import annotations

from typing import Any

from agents_tools import builtin

__all__ = builtin.__all__  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    return getattr(builtin, name)
