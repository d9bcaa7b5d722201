"""Fast inspection of callables for the decorators, without reading signatures."""

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
"""The value for a missing annotation or default."""


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a callable, or of the function behind a partial or an instance."""
    for candidate in (func, implementation(func)):
        name = getattr(candidate, "__name__", None)
        if isinstance(name, str) and name not in {"__call__", "__init__", "__new__"}:
            return name
    return type(func).__name__


def implementation(func: Callable[..., Any]) -> Any:
    """Return the function behind partials, wrappers, bound methods, instances and classes."""
    current: Any = func
    for _ in range(100):  # a wrapper can refer to itself
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
        elif (wrapped := _static_attribute(current, "__wrapped__")) is not None:
            current = wrapped
        elif isinstance(_static_attribute(type(current), "__call__"), types.FunctionType):
            current = type(current).__call__
        else:
            return current
    return current


def _static_attribute(value: Any, name: str) -> Any:
    try:
        from inspect import getattr_static

        return getattr_static(value, name, None) and getattr(value, name, None)
    except Exception:  # noqa: BLE001 - a foreign __getattr__ can raise any error
        return None


def _constructor(cls: type) -> Any:
    for name in ("__init__", "__new__"):
        method = getattr(cls, name, None)
        if isinstance(method, types.FunctionType):
            return method
    return cls


def caller_names(func: Callable[..., Any], frame: types.FrameType | None) -> Mapping[str, Any]:
    """Return the local names that the postponed annotations of a nested function use.

    Args:
        func: The decorated function.
        frame: The frame that defines the function, and possibly local classes.

    Returns:
        The local variables named in the annotations; empty for a function of a module.
    """
    target = implementation(func)
    qualname = getattr(target, "__qualname__", "")
    if frame is None or "." not in qualname or sys.version_info >= (3, 14):
        return {}
    texts = [text for text in raw_annotations(target).values() if isinstance(text, str)]
    if not texts:
        return {}
    names: dict[str, Any] = {}
    for text in texts:
        try:
            code = compile(text, "<annotation>", "eval")
        except (SyntaxError, ValueError):
            continue
        for name in code.co_names:
            scope: types.FrameType | None = frame
            while scope is not None and scope.f_code.co_name != "<module>":
                if name in scope.f_locals:
                    names[name] = scope.f_locals[name]
                    break
                scope = scope.f_back
    return names


def raw_annotations(target: Any) -> dict[str, Any]:
    """Return the unresolved annotations of a function, or an empty mapping."""
    annotations = getattr(target, "__annotations__", None)
    return typing.cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
