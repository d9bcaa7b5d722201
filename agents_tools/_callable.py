"""Looks at a callable without reading its signature: what the decorators can afford to do."""

from __future__ import annotations

import functools
import sys
import types
import typing
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["EMPTY", "caller_names", "implementation", "name_of", "raw_annotations"]


class _Empty:
    def __repr__(self) -> str:
        return "<empty>"


EMPTY: Any = _Empty()
"""Stands where a parameter has no annotation or no default."""


def name_of(func: Callable[..., Any]) -> str:
    """Give the name a callable goes by: that of the function behind a partial or an instance."""
    for candidate in (func, implementation(func)):
        name = getattr(candidate, "__name__", None)
        if isinstance(name, str) and name not in {"__call__", "__init__", "__new__"}:
            return name
    return type(func).__name__


def implementation(func: Callable[..., Any]) -> Any:
    """Find the function behind partials, wrappers, bound methods, instances and classes."""
    current: Any = func
    for _ in range(100):  # a wrapper may point at itself
        if isinstance(current, (functools.partial, functools.partialmethod)):
            current = typing.cast("Any", current).func
        elif isinstance(current, types.MethodType):
            current = current.__func__
        elif isinstance(current, (staticmethod, classmethod)):
            current = typing.cast("Any", current).__func__
        elif isinstance(current, (types.FunctionType, type)):
            wrapped = current.__dict__.get("__wrapped__")
            if wrapped is None:
                return _constructor(current) if isinstance(current, type) else current
            current = wrapped
        elif (wrapped := _own(current, "__wrapped__")) is not None:
            current = wrapped
        elif isinstance(_own(type(current), "__call__"), types.FunctionType):
            current = type(current).__call__
        else:
            return current
    return current


def _own(value: Any, name: str) -> Any:
    try:
        from inspect import getattr_static

        return getattr_static(value, name, None) and getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a foreign __getattr__ may raise anything
        return None


def _constructor(cls: type) -> Any:
    for name in ("__init__", "__new__"):
        method = getattr(cls, name, None)
        if isinstance(method, types.FunctionType):
            return method
    return cls


def caller_names(func: Callable[..., Any], frame: types.FrameType | None) -> Mapping[str, Any]:
    """Keep the names that postponed annotations of a nested function need from its scope.

    Args:
        func: The function that is being declared.
        frame: The frame that declares it, where local classes live.

    Returns:
        The local variables that its annotations mention; empty for a function of a module.
    """
    target = implementation(func)
    qualname = getattr(target, "__qualname__", "")
    if frame is None or "." not in qualname or sys.version_info >= (3, 14):
        return {}
    texts = [text for text in raw_annotations(target).values() if isinstance(text, str)]
    if not texts:
        return {}
    found: dict[str, Any] = {}
    for text in texts:
        try:
            code = compile(text, "<annotation>", "eval")
        except (SyntaxError, ValueError):
            continue
        for name in code.co_names:
            scope: types.FrameType | None = frame
            while scope is not None and scope.f_code.co_name != "<module>":
                if name in scope.f_locals:
                    found[name] = scope.f_locals[name]
                    break
                scope = scope.f_back
    return found


def raw_annotations(target: Any) -> dict[str, Any]:
    """Give the annotations as they stand on a function, its own or an empty mapping."""
    found = getattr(target, "__annotations__", None)
    return typing.cast("dict[str, Any]", found) if isinstance(found, dict) else {}
