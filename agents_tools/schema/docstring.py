"""Read the descriptions of a function and its parameters from a docstring.

griffe parses the three styles, but does not accept every form that authors use: sections without a
blank line above, indented headings, `x -- text`, `@param x`, `:kwarg x:`. A normalizer for each
style therefore separates the sections about parameters from the prose, and rewrites them in the
form that griffe expects. griffe then returns the name, type and text of each entry.
"""

from __future__ import annotations

import re
import types
from dataclasses import dataclass, field, replace
from inspect import cleandoc, isclass, signature
from typing import TYPE_CHECKING, Any

from agents_tools.schema.callables import implementation
from agents_tools.schema.docstring_google import GoogleNormalizer
from agents_tools.schema.docstring_numpy import NumpyNormalizer
from agents_tools.schema.docstring_sections import DocstringStyle, plain_names, unmask
from agents_tools.schema.docstring_sphinx import SphinxNormalizer
from agents_tools.schema.docstring_types import resolve_doc_type, tidy_type

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from griffe import DocstringSection

    from agents_tools.schema.docstring_sections import SectionNormalizer

__all__ = [
    "Docstring",
    "DocstringStyle",
    "FuncDocumentation",
    "docstring_of",
    "generate_func_documentation",
    "parse_docstring",
    "resolve_doc_type",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Docstring:
    """The content of a docstring.

    Attributes:
        description: The prose outside of sections; `None` if there is none.
        params: The description of each parameter, by its plain name: `args`, not `*args`.
        types: The stated type of each parameter, as text; `''` if none is stated.
        style: The style of the sections; `None` if there are no sections.
    """

    description: str | None = None
    params: dict[str, str] = field(default_factory=dict[str, str])
    types: dict[str, str] = field(default_factory=dict[str, str])
    style: DocstringStyle | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FuncDocumentation:
    """The documentation of a function, read from its docstring.

    Attributes:
        name: The name of the function.
        description: The description of the function; `None` if the docstring has none.
        param_descriptions: The descriptions of the parameters that have one, by name.
    """

    name: str
    description: str | None
    param_descriptions: dict[str, str]


def parse_docstring(
    doc: str | None, *, style: DocstringStyle | None = None, param_names: Sequence[str] = ()
) -> Docstring:
    """Parse a docstring in any of the three styles, or in several at once.

    The description is the text before the first section and the prose after it. Notes and
    warnings are prose. Returns, raises, examples and references are sections that are left out.

    Args:
        doc: The docstring, with or without indentation.
        style: The style whose sections are read; all styles by default.
        param_names: The parameters of the function. They resolve ambiguous cases, such as a list
            of parameters below a heading of the author's own.
    """
    if not doc or not doc.strip():
        return Docstring()
    clean = cleandoc(doc.replace("\r\n", "\n").replace("\0", ""))
    text = "\n".join(line.rstrip() for line in clean.split("\n"))
    names = frozenset(param_names)
    parsed = _ParsedSections()
    for normalizer in (SphinxNormalizer, NumpyNormalizer, GoogleNormalizer):
        if style in {None, normalizer.style} and re.search(normalizer.hint, text):
            text = _read_sections(text, normalizer(names), parsed)
    return Docstring(
        description=re.sub(r"\n{3,}", "\n\n", text).strip() or None,
        params=parsed.params,
        types={name: parsed.types.get(name, "") for name in {**parsed.params, **parsed.types}},
        style=parsed.style,
    )


def docstring_of(
    func: Callable[..., Any],
    *,
    style: DocstringStyle | None = None,
    param_names: Sequence[str] = (),
) -> Docstring:
    """Return the parsed docstring of a callable.

    For a `partial`, it is the docstring of its function. For a method without a docstring, it is
    that of the overridden method. For a callable object, it is that of `__call__` or of the class.
    The docstring of a class is merged with that of its `__init__`.
    """
    target = implementation(func)
    doc = _doc(func) or _doc(target) or _inherited_doc(func)
    if doc is None and target is getattr(type(func), "__call__", None):  # noqa: B004 - not to call it
        doc = _doc(type(func))
    parsed = parse_docstring(doc, style=style, param_names=param_names)
    if not isclass(func):
        return parsed
    init = parse_docstring(_doc(target), style=style, param_names=param_names)
    explicit_types = {name: kind for name, kind in parsed.types.items() if kind}
    return replace(
        parsed,
        params=init.params | parsed.params,
        types=parsed.types | init.types | explicit_types,
        style=parsed.style or init.style,
    )


def generate_func_documentation(
    func: Callable[..., Any], style: DocstringStyle | None = None
) -> FuncDocumentation:
    """Return the name of a callable, and the descriptions of it and its parameters."""
    parsed = docstring_of(func, style=style, param_names=_parameter_names(func))
    name = getattr(func, "__name__", None) or getattr(implementation(func), "__name__", None)
    return FuncDocumentation(
        name=name if isinstance(name, str) and name != "__call__" else type(func).__name__,
        description=parsed.description,
        param_descriptions=parsed.params,
    )


def _doc(value: object) -> str | None:
    """Return the docstring of a value, unless an instance inherits it from its class."""
    doc = getattr(value, "__doc__", None)
    is_own = isclass(value) or doc is not getattr(type(value), "__doc__", None)
    return doc if is_own and isinstance(doc, str) else None


def _inherited_doc(func: object) -> str | None:
    if not isinstance(func, types.MethodType):
        return None
    owner = func.__self__ if isclass(func.__self__) else type(func.__self__)
    name = func.__name__
    docs = (_doc(vars(base)[name]) for base in owner.__mro__ if name in vars(base))
    return next((doc for doc in docs if doc), None)


def _parameter_names(func: Callable[..., Any]) -> Sequence[str]:
    try:
        return tuple(signature(func).parameters)
    except (TypeError, ValueError):
        return ()


class _ParsedSections:
    """The parsed parameters; the first description and type of each one are used."""

    __slots__ = ("params", "style", "types")

    def __init__(self) -> None:
        self.params: dict[str, str] = {}
        self.types: dict[str, str] = {}
        self.style: DocstringStyle | None = None

    def add(self, names: Sequence[str], annotation: object, description: str) -> None:
        type_text = "" if annotation is None else tidy_type(unmask(str(annotation)))
        text = unmask(description).strip()
        if "\n" in text:
            text = cleandoc(text)
        if not text and type_text and resolve_doc_type(type_text, {}) is None:
            text = type_text  # in "nodes : container of nodes" the type is a description
        for name in names:
            if text:
                self.params.setdefault(name, text)
            if type_text:
                self.types.setdefault(name, type_text)


def _read_sections(text: str, normalizer: SectionNormalizer, parsed: _ParsedSections) -> str:
    """Add the sections of one style to `parsed`; return the text without them."""
    if not normalizer.normalize(text.split("\n")):
        return text
    if parsed.style is None or not (parsed.params or parsed.types):
        parsed.style = normalizer.style
    try:
        sections = (
            _parse_with_griffe("\n".join(normalizer.sections), normalizer.style)
            if normalizer.sections
            else []
        )
    except (LookupError, ValueError, RecursionError, MemoryError):
        return text  # a function is not rejected because griffe cannot parse its docstring
    for section in sorted(sections, key=lambda section: section.kind.value == "attributes"):
        if section.kind.value in {"parameters", "attributes"}:
            for entry in section.value:
                names = [
                    normalizer.original_names.get(name, name) for name in plain_names(entry.name)
                ]
                parsed.add(names, entry.annotation, entry.description)
    return "\n".join(normalizer.prose)


def _parse_with_griffe(text: str, style: DocstringStyle) -> list[DocstringSection]:
    import griffe  # slow to import, so only docstrings with a section load it

    doc = griffe.Docstring("")
    doc.value = text.rstrip()  # `Docstring(text)` would miss a heading on the first line
    if style == "google":
        return griffe.parse_google(doc, warnings=False)
    if style == "numpy":
        return griffe.parse_numpy(doc, warnings=False)
    return griffe.parse_sphinx(doc, warnings=False)
