"""The parameters of a callable: their kinds, defaults and resolved annotations."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Any

from agents_tools.errors import UserTypeError
from agents_tools.schema.callables import EMPTY, implementation, raw_annotations

__all__ = [
    "EMPTY",
    "Param",
    "SourceLocation",
    "describe_annotation",
    "is_context_annotation",
    "place_of",
    "read_parameters",
    "return_annotation",
]

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter of a callable with its resolved annotation."""

    name: str
    kind: Any
    annotation: Any
    default: Any

    @property
    def required(self) -> bool:
        """Whether a call must pass the parameter."""
        return self.default is EMPTY and self.kind not in {
            Parameter.VAR_POSITIONAL,
            Parameter.VAR_KEYWORD,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceLocation:
    """The location of a callable's source, for error messages."""

    tool: str
    where: str

    def refuse(self, message: str, remedy: str) -> UserTypeError:
        """Return an error with the tool, the location, the problem and the remedy."""
        return UserTypeError(f"Tool {self.tool!r} ({self.where}): {message} {remedy}")


def place_of(func: Callable[..., Any], tool: str) -> SourceLocation:
    """Return the location of a callable: its file and line, or its module and name."""
    code = getattr(implementation(func), "__code__", None)
    if code is not None:
        return SourceLocation(tool=tool, where=f"{code.co_filename}:{code.co_firstlineno}")
    owner = func if hasattr(func, "__qualname__") else type(func)
    module = getattr(owner, "__module__", None) or "?"
    return SourceLocation(tool=tool, where=f"{module}.{getattr(owner, '__qualname__', '?')}")


def read_parameters(
    func: Callable[..., Any], place: SourceLocation, *, local_names: Names, skip: int
) -> list[Param]:
    """Return the parameters of a callable with resolved annotations.

    Args:
        func: Any callable.
        place: The location of the callable, for error messages.
        local_names: Names of the declaring scope, for postponed annotations.
        skip: The number of leading parameters to leave out: one for an unbound method.

    Raises:
        UserError: The signature cannot be read, or an annotation cannot be resolved.
    """
    signature = read_signature(func, place)
    resolve = _Resolver(func, local_names)
    params: list[Param] = []
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
        params.extend(_expand(parameter, annotation, place))
    return params


def read_signature(func: Callable[..., Any], place: SourceLocation) -> inspect.Signature:
    """Return the signature of a callable.

    Raises:
        UserError: The callable has none, as some builtins.
    """
    try:
        if sys.version_info >= (3, 14):
            import annotationlib

            return inspect.signature(func, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(func)
    except Exception as error:
        raise place.refuse(
            f"its signature cannot be read ({error or type(error).__name__}).",
            "Write a function with annotated parameters that calls it, and decorate that function.",
        ) from error


def return_annotation(func: Callable[..., Any], *, local_names: Names | None = None) -> Any:
    """Return the return annotation, or `EMPTY` if there is none or it cannot be resolved."""
    target = implementation(func)
    if inspect.isclass(func):
        return EMPTY
    annotation = raw_annotations(target).get("return", EMPTY)
    if annotation is EMPTY:
        return EMPTY
    try:
        return _Resolver(func, local_names or {})(annotation)
    except Exception:  # noqa: BLE001 - without the return type only its schema is missing
        return EMPTY


def describe_annotation(annotation: Any) -> str:
    """Return an annotation as source code."""
    if isinstance(annotation, str):
        return repr(annotation)
    if isinstance(annotation, type) and not typing.get_args(annotation):
        name = annotation.__qualname__
        module = annotation.__module__
        return name if module in {"builtins", "__main__"} else f"{module}.{name}"
    try:
        return repr(annotation).replace("typing.", "")
    except Exception:  # noqa: BLE001 - a foreign __repr__ can raise any error
        return f"<{type(annotation).__name__}>"


class _Resolver:
    """Resolves annotations one by one, so that an error affects only one of them."""

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


def _expand(parameter: Parameter, annotation: Any, place: SourceLocation) -> Iterator[Param]:
    """Yield the parameter itself, or the keys of `**kwargs: Unpack[SomeTypedDict]`."""
    if parameter.kind is Parameter.VAR_KEYWORD and _is_unpack(annotation):
        yield from _typed_dict_parameters(typing.get_args(annotation)[0], parameter.name, place)
        return
    if parameter.kind is Parameter.VAR_POSITIONAL and _is_unpack(annotation):
        raise place.refuse(
            f"*{parameter.name} is annotated {describe_annotation(annotation)}, a tuple of "
            "different types, which JSON Schema cannot describe as one parameter.",
            "Annotate it with a single type for all items.",
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


def _typed_dict_parameters(typed_dict: Any, name: str, place: SourceLocation) -> Iterator[Param]:
    from typing_extensions import get_type_hints, is_typeddict

    if not is_typeddict(typed_dict):
        raise place.refuse(
            f"**{name} unpacks {describe_annotation(typed_dict)}, which is not a TypedDict.",
            "Unpack a TypedDict, or annotate the extra arguments with one type.",
        )
    try:
        hints = get_type_hints(typed_dict, include_extras=True)
    except Exception as error:
        raise place.refuse(
            f"the annotations of {describe_annotation(typed_dict)} cannot be resolved ({error}).",
            "Import every name in them at run time.",
        ) from error
    optional: Sequence[str] = typed_dict.__optional_keys__
    for key, hint in hints.items():
        qualifiers = list(_qualifiers(hint))
        is_optional = "NotRequired" in qualifiers or (
            key in optional and "Required" not in qualifiers
        )
        yield Param(
            name=key,
            kind=Parameter.KEYWORD_ONLY,
            annotation=_without_qualifiers(hint),
            default=LEFT_OUT if is_optional else EMPTY,
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


class _OmittedParameter:
    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT: Any = _OmittedParameter()
"""The default of an optional parameter that is passed only if a call has a value for it."""


def is_context_annotation(annotation: Any) -> bool:
    """Return whether a parameter with this annotation receives the context of the call."""
    while (origin := typing.get_origin(annotation)) is not None:
        if origin in {typing.Union, types.UnionType}:
            arms = [arm for arm in typing.get_args(annotation) if arm is not types.NoneType]
            return bool(arms) and all(map(is_context_annotation, arms))
        annotation = typing.get_args(annotation)[0] if origin is typing.Annotated else origin
    return isinstance(annotation, type) and getattr(annotation, "is_run_context", False) is True
