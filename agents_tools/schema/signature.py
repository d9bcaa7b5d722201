"""The parameters of a callable: their kinds, defaults and resolved annotations."""

from __future__ import annotations

import inspect
import sys
import types
import typing
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import Parameter
from typing import Any

from agents_tools.errors import UserTypeError
from agents_tools.schema.callables import (
    EMPTY,
    class_names,
    closure_names,
    implementation,
    raw_annotations,
)

__all__ = [
    "EMPTY",
    "Param",
    "SourceLocation",
    "describe_annotation",
    "is_context_annotation",
    "location_of",
    "mismatched_signature",
    "positional_parameters",
    "read_parameters",
    "return_annotation",
]

Names = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Param:
    """A parameter of a callable with its resolved annotation.

    `is_stream` means that it receives an `ArgumentStream` of the annotation.
    """

    name: str
    kind: Any
    annotation: Any
    default: Any
    is_stream: bool = False

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


def location_of(func: Callable[..., Any], tool: str) -> SourceLocation:
    """Return the location of a callable: its file and line, or its module and name."""
    code = getattr(implementation(func), "__code__", None)
    if code is not None:
        return SourceLocation(tool=tool, where=f"{code.co_filename}:{code.co_firstlineno}")
    owner = func if hasattr(func, "__qualname__") else type(func)
    module = getattr(owner, "__module__", None) or "?"
    return SourceLocation(tool=tool, where=f"{module}.{getattr(owner, '__qualname__', '?')}")


def read_parameters(
    func: Callable[..., Any],
    location: SourceLocation,
    *,
    local_names: Names,
    skip: int,
) -> list[Param]:
    """Return the parameters of a callable with resolved annotations.

    Args:
        func: Any callable.
        location: The location of the callable, for error messages.
        local_names: Names of the declaring scope, for postponed annotations.
        skip: The number of leading parameters to leave out: one for an unbound method.

    Raises:
        UserError: The signature cannot be read, or an annotation cannot be resolved.
    """
    signature = read_signature(func, location)
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
                raise location.refuse(
                    f"the annotation {describe_annotation(annotation)} of parameter "
                    f"{parameter.name!r} cannot be resolved ({type(error).__name__}: {error}).",
                    "Import the name at run time (not only under TYPE_CHECKING) in the module "
                    "of the function, or annotate the parameter with a type that exists there.",
                ) from error
        params.extend(
            _without_stream(param, func, location)
            for param in _expand(parameter, annotation, location)
        )
    return params


def read_signature(func: Callable[..., Any], location: SourceLocation) -> inspect.Signature:
    """Return the signature of a callable.

    Raises:
        UserError: The callable has none, as some builtins.
    """
    try:
        return _signature(func)
    except Exception as error:
        raise location.refuse(
            f"its signature cannot be read ({error or type(error).__name__}).",
            "Write a function with annotated parameters that calls it, and decorate that function.",
        ) from error


def mismatched_signature(func: Callable[..., Any], *arguments: str) -> inspect.Signature | None:
    """Return the signature of a callable if it does not accept some positional arguments.

    Returns `None` if it accepts them, or if it has no signature, as some builtins.

    Args:
        func: The callable.
        arguments: One name for each argument.
    """
    try:
        signature = _signature(func)
    except (TypeError, ValueError):
        return None
    try:
        signature.bind(*arguments)
    except TypeError:
        return signature
    return None


def _signature(func: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        import annotationlib

        return inspect.signature(func, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(func)


def positional_parameters(
    func: Callable[..., Any], params: Sequence[Param], location: SourceLocation
) -> list[Param]:
    """Return the parameters that a call passes by position; the others are passed by name.

    A function gets by position only what it does not accept by name. Wrappers get by position all
    that they accept so, as direct callers pass it: some, such as those of
    `functools.singledispatch`, do not accept names.

    Raises:
        UserError: A wrapper accepts a parameter neither by position nor by name.
    """
    by_position = [param for param in params if param.kind in _POSITIONAL]
    wrappers = list(_wrapper_signatures(func))
    if any(param.kind is Parameter.VAR_POSITIONAL for param in params) or (
        wrappers and all(_accepts_positional(wrapper, len(by_position)) for wrapper in wrappers)
    ):
        chosen = by_position
    else:
        chosen = [p for p in by_position if p.kind is not Parameter.POSITIONAL_OR_KEYWORD]
    for param in params:
        by_name = param not in chosen and param.kind is not Parameter.VAR_KEYWORD
        if by_name and not all(_accepts_name(wrapper, param.name) for wrapper in wrappers):
            raise location.refuse(
                f"parameter {param.name!r} cannot be passed, because a decorator replaced the "
                "function by a wrapper that does not accept it.",
                "Let the wrapper accept *args and **kwargs.",
            )
    return chosen


_POSITIONAL = {
    Parameter.POSITIONAL_ONLY,
    Parameter.POSITIONAL_OR_KEYWORD,
    Parameter.VAR_POSITIONAL,
}


def _wrapper_signatures(func: Any) -> Iterator[inspect.Signature]:
    """Yield the signatures of the wrappers around a function, as they are written."""
    for _ in range(100):  # a wrapper can refer to itself
        if isinstance(func, types.MethodType):
            func = func.__func__
        wrapped = getattr(func, "__dict__", {}).get("__wrapped__")
        if wrapped is None:
            return
        try:
            yield inspect.signature(func, follow_wrapped=False)
        except (TypeError, ValueError):  # written in C, such as `functools.lru_cache`
            yield inspect.Signature(_ANYTHING)
        func = wrapped


_ANYTHING = [
    Parameter("args", Parameter.VAR_POSITIONAL),
    Parameter("kwargs", Parameter.VAR_KEYWORD),
]


def _accepts_positional(wrapper: inspect.Signature, count: int) -> bool:
    kinds = [parameter.kind for parameter in wrapper.parameters.values()]
    named = sum(kind in _POSITIONAL for kind in kinds)
    return Parameter.VAR_POSITIONAL in kinds or named >= count


def _accepts_name(wrapper: inspect.Signature, name: str) -> bool:
    by_name = {Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY}
    return any(
        parameter.kind is Parameter.VAR_KEYWORD
        or (parameter.name == name and parameter.kind in by_name)
        for parameter in wrapper.parameters.values()
    )


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
    """Resolves annotations one by one, so that an error affects only one of them.

    A name is looked up in the closure and the scopes where the function was defined, in its class,
    and in its module.
    """

    def __init__(self, func: Callable[..., Any], local_names: Names) -> None:
        target = implementation(func)
        self._globals: dict[str, Any] = getattr(target, "__globals__", None) or vars(
            sys.modules.get(getattr(target, "__module__", None) or "", types)
        )
        self._locals = {**class_names(func), **closure_names(func), **local_names}
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


def _expand(parameter: Parameter, annotation: Any, location: SourceLocation) -> Iterator[Param]:
    """Yield the parameter itself, or the keys of `**kwargs: Unpack[SomeTypedDict]`."""
    if parameter.kind is Parameter.VAR_KEYWORD and _is_unpack(annotation):
        yield from _typed_dict_parameters(typing.get_args(annotation)[0], parameter.name, location)
        return
    if parameter.kind is Parameter.VAR_POSITIONAL and _is_unpack(annotation):
        annotation = _item_type(annotation, parameter.name, location)
    yield Param(
        name=parameter.name,
        kind=parameter.kind,
        annotation=annotation,
        default=EMPTY if parameter.default is Parameter.empty else parameter.default,
    )


def _without_stream(param: Param, func: Callable[..., Any], location: SourceLocation) -> Param:
    """Return a parameter that is annotated with `ArgumentStream[str]` as one of a string.

    Raises:
        UserError: The function or the parameter cannot receive a stream.
    """
    annotation, is_stream = _streamed_type(param.annotation)
    if not is_stream:
        return param
    subject = f"parameter {param.name!r} is an ArgumentStream"
    target = implementation(func)
    if not inspect.iscoroutinefunction(target) and not inspect.isasyncgenfunction(target):
        raise location.refuse(
            f"{subject}, which only an async function can read.",
            "Write `async def`, or annotate the parameter with `str`.",
        )
    if param.kind in {Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD}:
        raise location.refuse(f"{subject}: expected a single argument.", "Remove the asterisks.")
    if param.default is not EMPTY and isinstance(param.default, str):
        raise location.refuse(
            f"{subject}: expected no default or None, got a string.",
            "Annotate it with `ArgumentStream[str] | None`, and set the default in the function.",
        )
    arms = [arm for arm in typing.get_args(annotation) if arm is not types.NoneType]
    text = arms[0] if typing.get_origin(annotation) is not None else annotation
    while typing.get_origin(text) is not None and typing.get_args(text):
        text = typing.get_args(text)[0]
    if text is not str:
        raise location.refuse(
            f"{subject} of {describe_annotation(text)}: expected text.",
            "Use `ArgumentStream[str]`; only text can be read while the model writes it.",
        )
    return replace(param, annotation=annotation, is_stream=True)


def _streamed_type(annotation: Any) -> tuple[Any, bool]:
    """Return an annotation with `ArgumentStream[T]` replaced by `T`, and whether it had one.

    It is found at the top level, in `Annotated`, and in a union with `None`.
    """
    origin, arms = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        inner, is_stream = _streamed_type(arms[0])
        metadata: tuple[Any, ...] = annotation.__metadata__
        return (typing.Annotated[(inner, *metadata)] if is_stream else annotation), is_stream
    if getattr(annotation, "is_argument_stream", False) is True:
        return next(iter(arms), str), True
    if origin in {typing.Union, types.UnionType} and types.NoneType in arms:
        found = [_streamed_type(arm) for arm in arms if arm is not types.NoneType]
        if len(found) == 1 and found[0][1]:
            return typing.Optional[found[0][0]], True  # noqa: UP045 - made at run time
    return annotation, False


def _is_unpack(annotation: Any) -> bool:
    """Return whether an annotation is `Unpack[...]`, or `*tuple[...]`."""
    if getattr(annotation, "__unpacked__", False) is True:
        return True
    origin = typing.get_origin(annotation)
    return origin is not None and getattr(origin, "__name__", getattr(origin, "_name", "")) == (
        "Unpack"
    )


def _item_type(annotation: Any, name: str, location: SourceLocation) -> Any:
    """Return the type of every item of `*args: *tuple[T, ...]`."""
    inner = annotation if typing.get_origin(annotation) is tuple else typing.get_args(annotation)[0]
    match typing.get_args(inner):
        case (item, end) if end is Ellipsis:
            return item
        case _:
            raise location.refuse(
                f"*{name} is annotated {describe_annotation(annotation)}, a tuple of "
                "different types, which JSON Schema cannot describe as one parameter.",
                "Annotate it with a single type for all items.",
            )


def _typed_dict_parameters(typed_dict: Any, name: str, location: SourceLocation) -> Iterator[Param]:
    from typing_extensions import get_type_hints, is_typeddict

    arguments = typing.get_args(typed_dict)
    typed_dict = typing.get_origin(typed_dict) or typed_dict
    if not is_typeddict(typed_dict):
        raise location.refuse(
            f"**{name} unpacks {describe_annotation(typed_dict)}, which is not a TypedDict.",
            "Unpack a TypedDict, or annotate the extra arguments with one type.",
        )
    try:
        hints = get_type_hints(typed_dict, include_extras=True)
    except Exception as error:
        raise location.refuse(
            f"the annotations of {describe_annotation(typed_dict)} cannot be resolved ({error}).",
            "Import every name in them at run time.",
        ) from error
    optional: Sequence[str] = typed_dict.__optional_keys__
    values = dict(zip(getattr(typed_dict, "__parameters__", ()), arguments, strict=False))
    for key, hint in hints.items():
        qualifiers = list(_qualifiers(hint))
        is_optional = "NotRequired" in qualifiers or (
            key in optional and "Required" not in qualifiers
        )
        yield Param(
            name=key,
            kind=Parameter.KEYWORD_ONLY,
            annotation=_with_arguments(_without_qualifiers(hint), values),
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


def _with_arguments(hint: Any, values: Mapping[Any, Any]) -> Any:
    """Return an annotation with type variables replaced by their values."""
    variables: tuple[Any, ...] = getattr(hint, "__parameters__", ())
    if isinstance(hint, typing.TypeVar):
        return values.get(hint, hint)
    return hint[tuple(values.get(one, one) for one in variables)] if variables else hint


_QUALIFIERS = {"Required", "NotRequired", "ReadOnly"}


class _OmittedParameter:
    def __repr__(self) -> str:
        return "<left out>"


LEFT_OUT: Any = _OmittedParameter()
"""The default of an optional parameter that is passed only if a call has a value for it."""


def is_context_annotation(annotation: Any) -> bool:
    """Return whether a parameter with this annotation receives the context of the call.

    The annotation is a class of contexts, or an alias, a `NewType` or a type variable for one.
    """
    for _ in range(100):  # an alias can refer to itself
        origin = typing.get_origin(annotation)
        if origin in {typing.Union, types.UnionType}:
            arms = [arm for arm in typing.get_args(annotation) if arm is not types.NoneType]
            return bool(arms) and all(map(is_context_annotation, arms))
        if origin is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif origin is not None:
            annotation = origin
        elif isinstance(annotation, type):
            return getattr(annotation, "is_run_context", False) is True
        else:
            annotation = _meaning(annotation)
    return False


def _meaning(annotation: Any) -> Any:
    """Return the type behind an alias (`type X = ...`), a `NewType` or a bound type variable."""
    name = _MEANINGS.get(type(annotation).__name__)
    try:
        return None if name is None else getattr(annotation, name, None)
    except NameError:  # the value of an alias is evaluated at this access
        return None


_MEANINGS = {"TypeAliasType": "__value__", "NewType": "__supertype__", "TypeVar": "__bound__"}
