"""Reads a callable's parameters: their kinds, defaults and resolved annotations."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from agents_tools._callable import EMPTY, implementation, raw_annotations
from agents_tools.errors import UserTypeError

__all__ = [
    "EMPTY",
    "Param",
    "Place",
    "describe_annotation",
    "place_of",
    "read_parameters",
    "return_annotation",
]

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """One parameter of a callable, its annotation resolved."""

    name: str
    kind: Any
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call must give it."""
        return self.default is EMPTY and self.kind not in {
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a callable was written, for error messages."""

    tool: str
    where: str

    def refuse(self, message: str, remedy: str) -> UserTypeError:
        """Make the error that names the tool, the fault, the place and the remedy."""
        return UserTypeError(f"Tool {self.tool!r} ({self.where}): {message} {remedy}")


def place_of(func: Callable[..., Any], tool: str) -> Place:
    """Say where a callable was written: its file and line, or its module and name."""
    code = getattr(implementation(func), "__code__", None)
    if code is not None:
        return Place(tool=tool, where=f"{code.co_filename}:{code.co_firstlineno}")
    owner = func if hasattr(func, "__qualname__") else type(func)
    module = getattr(owner, "__module__", None) or "?"
    return Place(tool=tool, where=f"{module}.{getattr(owner, '__qualname__', '?')}")


def read_parameters(
    func: Callable[..., Any], place: Place, *, local_names: Names, skip: int
) -> list[Param]:
    """Read the parameters of a callable with their annotations resolved.

    Args:
        func: Any callable.
        place: Who asks, for error messages.
        local_names: Names of the declaring scope, for postponed annotations.
        skip: How many leading parameters to leave out: one for an unbound method.

    Raises:
        UserError: The signature cannot be read, or an annotation cannot be resolved.
    """
    signature = read_signature(func, place)
    resolve = _Resolver(func, local_names)
    found: list[Param] = []
    for parameter in list(signature.parameters.values())[skip:]:
        annotation = parameter.annotation
        if annotation is Parameter.empty:
            annotation = EMPTY
        else:
            try:
                annotation = resolve(annotation)
            except Exception as error:
                raise place.refuse(
                    f"the annotation {describe_annotation(annotation)} of parameter "
                    f"{parameter.name!r} cannot be resolved ({type(error).__name__}: {error}).",
                    "Import the name at run time (not only under TYPE_CHECKING) in the module "
                    "of the function, or annotate the parameter with a type that exists there.",
                ) from error
        found.extend(_expanded(parameter, annotation, place))
    return found


def read_signature(func: Callable[..., Any], place: Place) -> inspect.Signature:
    """Read a callable's signature.

    Raises:
        UserError: It has none, as some builtins.
    """
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            return inspect.signature(func, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(func)
    except Exception as error:
        raise place.refuse(
            f"its signature cannot be read ({error or type(error).__name__}).",
            "Wrap it in a function of your own with annotated parameters and decorate that.",
        ) from error


def return_annotation(func: Callable[..., Any], *, local_names: Names | None = None) -> Any:
    """Read the return annotation, or `EMPTY` where there is none or it cannot be resolved."""
    target = implementation(func)
    if inspect.isclass(func):
        return EMPTY
    annotation = raw_annotations(target).get("return", EMPTY)
    if annotation is EMPTY:
        return EMPTY
    try:
        return _Resolver(func, local_names or {})(annotation)
    except Exception:  # noqa: BLE001 - a return type that is not there costs only its schema
        return EMPTY


def describe_annotation(annotation: Any) -> str:
    """Write an annotation the way it stands in code."""
    if isinstance(annotation, str):
        return repr(annotation)
    if isinstance(annotation, type) and not typing.get_args(annotation):
        name = annotation.__qualname__
        module = annotation.__module__
        return name if module in {"builtins", "__main__"} else f"{module}.{name}"
    try:
        return repr(annotation).replace("typing.", "")
    except Exception:  # noqa: BLE001 - a foreign __repr__ may raise anything
        return f"<{type(annotation).__name__}>"


class _Resolver:
    """Resolves one annotation at a time, so that a bad one does not spoil the others."""

    def __init__(self, func: Callable[..., Any], local_names: Names) -> None:
        target = implementation(func)
        self._globals: dict[str, Any] = getattr(target, "__globals__", None) or vars(
            sys.modules.get(getattr(target, "__module__", None) or "", types)
        )
        self._locals = dict(local_names)
        for parameter in getattr(target, "__type_params__", ()):
            self._locals.setdefault(parameter.__name__, parameter)

    def __call__(self, annotation: Any) -> Any:
        if type(annotation) is type:
            return annotation
        holder = types.SimpleNamespace(__annotations__={"it": annotation})
        return typing.get_type_hints(
            holder,
            globalns=self._globals,
            localns=self._locals,
            include_extras=True,
        )["it"]


def _expanded(parameter: Parameter, annotation: Any, place: Place) -> Iterator[Param]:
    """Give the parameter itself, or the keys of `**kwargs: Unpack[SomeTypedDict]`."""
    if parameter.kind is Parameter.VAR_KEYWORD and _is_unpack(annotation):
        yield from _typed_dict_parameters(typing.get_args(annotation)[0], parameter.name, place)
        return
    if parameter.kind is Parameter.VAR_POSITIONAL and _is_unpack(annotation):
        raise place.refuse(
            f"*{parameter.name} is annotated {describe_annotation(annotation)}, a tuple of "
            "mixed types, which a JSON array of arguments cannot name.",
            "Annotate it with the one type that every item has.",
        )
    yield Param(
        name=parameter.name,
        kind=parameter.kind,
        annotation=annotation,
        default=EMPTY if parameter.default is Parameter.empty else parameter.default,
    )


def _is_unpack(annotation: Any) -> bool:
    origin = typing.get_origin(annotation)
    return origin is not None and getattr(origin, "__name__", getattr(origin, "_name", "")) == (
        "Unpack"
    )


def _typed_dict_parameters(typed_dict: Any, name: str, place: Place) -> Iterator[Param]:
    from typing_extensions import get_type_hints, is_typeddict

    if not is_typeddict(typed_dict):
        raise place.refuse(
            f"**{name} unpacks {describe_annotation(typed_dict)}, which is no TypedDict.",
            "Unpack a TypedDict, or annotate the extra arguments with one type.",
        )
    try:
        hints = get_type_hints(typed_dict, include_extras=True)
    except Exception as error:
        raise place.refuse(
            f"the annotations of {describe_annotation(typed_dict)} cannot be resolved ({error}).",
            "Import every name they use at run time.",
        ) from error
    optional: Sequence[str] = typed_dict.__optional_keys__
    for key, hint in hints.items():
        marks = list(_qualifiers(hint))
        left_out = "NotRequired" in marks or (key in optional and "Required" not in marks)
        yield Param(
            name=key,
            kind=Parameter.KEYWORD_ONLY,
            annotation=_without_qualifiers(hint),
            default=LEFT_OUT if left_out else EMPTY,
        )


def _qualifiers(hint: Any) -> Iterator[str]:
    while (name := getattr(typing.get_origin(hint), "_name", "")) in _QUALIFIERS:
        yield name
        hint = typing.get_args(hint)[0]


def _without_qualifiers(hint: Any) -> Any:
    for _ in list(_qualifiers(hint)):
        hint = typing.get_args(hint)[0]
    return hint


_QUALIFIERS = {"Required", "NotRequired", "ReadOnly"}


class _LeftOut:
    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT: Any = _LeftOut()
"""The default of a parameter that is not passed at all when a call does not give it."""
