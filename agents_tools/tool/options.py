"""Validation of the options of a tool when it is declared or changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any, TypedDict, cast

from agents_tools.errors import UserTypeError
from agents_tools.tool.failure import DEFAULT

if TYPE_CHECKING:
    from typing import Self

    from agents_tools.schema.docstring import DocstringStyle
    from agents_tools.tool.records import FailureErrorFunction, IsEnabled, ToolAnnotations

__all__ = [
    "ForeignOptions",
    "StreamingToolOptions",
    "ToolOptions",
    "check_foreign_options",
    "check_option_names",
    "check_options",
    "refuse_options",
]


class _SharedOptions(TypedDict, total=False):
    name_override: str | None
    description_override: str | None
    docstring_style: DocstringStyle | None
    use_docstring_info: bool
    failure_error_function: FailureErrorFunction | None
    strict_mode: bool
    start_early: bool
    is_enabled: IsEnabled
    annotations: ToolAnnotations | None
    metadata: Mapping[str, Any] | None


class ToolOptions(_SharedOptions, total=False):
    """The options of `function_tool`, for functions that pass them on."""

    output_schema: bool
    run_in_thread: bool


class StreamingToolOptions(_SharedOptions, total=False):
    """The options of `streaming_tool`, for functions that pass them on."""

    enable_bracketing: bool


_DOCSTRING_STYLES = ("google", "numpy", "sphinx")


def _is_boolean(value: object) -> bool:
    return isinstance(value, bool)


def _is_annotations(value: object) -> bool:
    from agents_tools.tool.records import ToolAnnotations

    return value is None or isinstance(value, ToolAnnotations)


_BOOLEAN = (_is_boolean, "True or False")
_EXPECTED: dict[str, tuple[Callable[[Any], bool], str]] = {
    "annotations": (
        _is_annotations,
        "ToolAnnotations, such as ToolAnnotations(readOnlyHint=True)",
    ),
    "description_override": (lambda value: value is None or isinstance(value, str), "a string"),
    "docstring_style": (
        lambda value: value is None or value in _DOCSTRING_STYLES,
        "'google', 'numpy', 'sphinx' or None",
    ),
    "enable_bracketing": _BOOLEAN,
    "failure_error_function": (
        lambda value: value is None or value is DEFAULT or callable(value),
        "a function of (context, error), or None",
    ),
    "is_enabled": (
        lambda value: isinstance(value, bool) or callable(value),
        "a boolean, or a function of (context, agent)",
    ),
    "metadata": (lambda value: value is None or isinstance(value, Mapping), "a dictionary"),
    "output_schema": _BOOLEAN,
    "run_in_thread": _BOOLEAN,
    "start_early": _BOOLEAN,
    "strict_json_schema": _BOOLEAN,
    "strict_mode": _BOOLEAN,
    "use_docstring_info": _BOOLEAN,
}


def check_options(name: str, **options: object) -> None:
    """Raise an error for the first option of a tool that has a wrong type.

    Args:
        name: The name of the tool.
        options: The options, by the names that the caller wrote.

    Raises:
        UserError: An option has a wrong type.
    """
    for option, value in options.items():
        fits, expected = _EXPECTED[option]
        if not fits(cast("Any", value)):
            raise UserTypeError(
                f"Tool {name!r}: option {option}= expects {expected}, got {value!r:.60}."
            )


def check_option_names(owner: str, names: Iterable[str], known: Iterable[str]) -> None:
    """Raise an error for the first unknown option, with the most similar known option.

    Args:
        owner: The function or object that has the options.
        names: The names that the caller wrote.
        known: The names of all options.

    Raises:
        UserError: An option is unknown.
    """
    known = tuple(dict.fromkeys(known))
    for name in names:
        if name not in known:
            from agents_tools.events.field_types import nearest_name

            check_foreign_options(owner.removesuffix("(...)"), (name,))
            longer = [option for option in known if option.startswith(f"{name}_")]
            near = nearest_name(name, known) or nearest_name("".join(longer[:1]), longer)
            hint = near or f" Its options: {', '.join(known)}."
            raise UserTypeError(f"{owner} has no option {name!r}.{hint}")


def check_foreign_options(owner: str, names: Iterable[str], known: Iterable[str] = ()) -> None:
    """Raise an error for the first option that only openai-agents has, with its counterpart.

    Args:
        owner: The function or class that has the options.
        names: The names that the caller wrote.
        known: The names of options that exist.

    Raises:
        UserError: An option exists only there.
    """
    foreign = [name for name in names if name not in known]
    if not foreign:
        return
    remedies = import_module("agents_tools.export._openai_agents_names").OPTIONS.get(owner, {})
    for name in foreign:
        if name in remedies:
            raise UserTypeError(f"{owner}(...) has no option {name!r}. {remedies[name]}")


def refuse_options(owner: str, function: Callable[..., Any], unknown: Mapping[str, Any]) -> None:
    """Raise an error for the options that a function received and does not have.

    Args:
        owner: The name of the function.
        function: The function.
        unknown: The options.

    Raises:
        UserError: There is such an option.
    """
    from inspect import signature

    known = [name for name in signature(function).parameters if name not in {"self", "unknown"}]
    check_option_names(f"{owner}(...)", unknown, known)


class ForeignOptions:
    """Base of dataclasses whose constructor explains an unknown option."""

    __slots__ = ()

    def __new__(cls, *_: Any, **options: Any) -> Self:
        """Create an object, unless an option is unknown."""
        if unknown := options.keys() - cast("Any", cls).__dataclass_fields__.keys():
            check_foreign_options(cls.__name__, unknown)
            _check_parameters(cls, unknown)
        return super().__new__(cls)


def _check_parameters(cls: type, names: Iterable[str]) -> None:
    """Raise an error for an option that the constructor of a class does not accept.

    A subclass can have a constructor of its own.
    """
    from inspect import Parameter, signature

    parameters = signature(cast("Any", cls).__init__).parameters
    if all(one.kind is not Parameter.VAR_KEYWORD for one in parameters.values()):
        check_option_names(f"{cls.__name__}(...)", sorted(names), list(parameters)[1:])
