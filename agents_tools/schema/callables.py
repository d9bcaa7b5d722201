"""Fast inspection of callables for the decorators, without reading signatures."""

from __future__ import annotations

import functools
import re
import sys
import types
import typing
from typing import Any

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = [
    "EMPTY",
    "class_names",
    "closure_names",
    "enclosing_names",
    "implementation",
    "name_of",
    "raw_annotations",
]


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


def enclosing_names(func: Callable[..., Any], frame: types.FrameType | None) -> dict[str, Any]:
    """Return the names in the annotations of a function that its enclosing scopes define.

    Only the classes and functions around the definition count, never other callers: a frame is
    used if its qualified name and its module show that the function was defined in it. The result
    refers to the values that the annotations name, and to no frame.

    Args:
        func: The decorated function.
        frame: The frame in which the decorator is applied.
    """
    target = implementation(func)
    scope = getattr(target, "__qualname__", "").rpartition(".")[0]
    if not scope or getattr(target, "__annotate__", None) is not None:
        return {}  # from Python 3.14 on, annotations that are not text know their scopes
    namespace = getattr(target, "__globals__", None)
    missing = _names_in(raw_annotations(target).values())
    names: dict[str, Any] = {}
    while missing and scope and frame is not None:
        code = frame.f_code
        function = scope.rpartition(".<locals>")[0]
        # The frame of a class is absent if one of its methods is decorated after its body has run.
        if code.co_qualname in {scope, function} and frame.f_globals is namespace:
            if code.co_flags & _CO_OPTIMIZED:  # the frame of a function, not of a class
                bound = missing.intersection((*code.co_varnames, *code.co_cellvars))
                bound |= missing.intersection(code.co_freevars)
                # Reading `f_locals` copies all variables of a function, so avoid it.
                values = frame.f_locals if bound else {}
                names |= {name: values[name] for name in bound if name in values}
                missing -= bound  # a variable without a value hides those of outer functions
            else:
                names |= _type_names(frame.f_locals, missing)
                missing -= names.keys()
            scope = "".join(code.co_qualname.rpartition("<locals>")[:2])
        frame = frame.f_back
    return names


_CO_OPTIMIZED = 0x1  # as in `inspect`, which costs its import


def _type_names(namespace: Mapping[str, Any], names: Iterable[str]) -> dict[str, Any]:
    """Return the names of a class that annotations can mean: not methods, nor defaults of fields.

    A method `list` or a field `date = None` must not hide the type of the same name.
    """
    values = {name: namespace[name] for name in names if name in namespace}
    return {
        name: value
        for name, value in values.items()
        if value is not None and not hasattr(value.__class__, "__get__")
    }


def closure_names(func: Callable[..., Any]) -> dict[str, Any]:
    """Return the variables of enclosing functions that the body of a function uses."""
    target = implementation(func)
    names: tuple[str, ...] = getattr(getattr(target, "__code__", None), "co_freevars", ())
    values: dict[str, Any] = {}
    for name, cell in zip(names, getattr(target, "__closure__", None) or (), strict=False):
        try:
            values[name] = cell.cell_contents
        except ValueError:  # the variable has no value yet
            continue
    return values


def class_names(func: Callable[..., Any], owner: type | None = None) -> dict[str, Any]:
    """Return the types that the class of a method defines, its type parameters, and itself.

    Args:
        func: A method, or any other callable.
        owner: A class that has the method or inherits it, if it is known.
    """
    target = implementation(func)
    qualname = getattr(target, "__qualname__", "").rpartition(".")[0]
    if not qualname or qualname.endswith("<locals>"):
        return {}
    module: str = getattr(target, "__module__", None) or ""
    bound_to = getattr(func, "__self__", None)
    kind = owner or (bound_to if isinstance(bound_to, type) else type(bound_to))
    named = (base for base in kind.__mro__ if base.__qualname__ == qualname)
    cls = next((base for base in named if base.__module__ == module), None)
    cls = cls or _at_path(sys.modules.get(module), qualname)
    if cls is None:
        return {}
    parameters = {one.__name__: one for one in getattr(cls, "__type_params__", ())}
    return {**parameters, cls.__name__: cls, **_type_names(vars(cls), vars(cls))}


def _at_path(module: types.ModuleType | None, qualname: str) -> type | None:
    """Return the class at a dotted path in a module, without calling any descriptor."""
    value: Any = module
    for name in qualname.split("."):
        value = vars(value).get(name) if isinstance(value, (type, types.ModuleType)) else None
    return value if isinstance(value, type) else None


def _names_in(annotations: Iterable[Any]) -> set[str]:
    """Return the names in the text of annotations, including text inside other annotations."""
    names: set[str] = set()
    pending = list(annotations)
    for item in pending:  # the list grows during the loop
        text = getattr(item, "__forward_arg__", item)
        if isinstance(text, str):
            names.update(_NAME.findall(text))
        else:
            pending.extend(getattr(item, "__args__", ()))
    return names


_NAME = re.compile(r"[^\W\d]\w*")


def raw_annotations(target: Any) -> dict[str, Any]:
    """Return the unresolved annotations of a function, or an empty mapping."""
    annotations = getattr(target, "__annotations__", None)
    return typing.cast("dict[str, Any]", annotations) if isinstance(annotations, dict) else {}
