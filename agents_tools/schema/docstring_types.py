"""Resolve the types in docstrings, such as `list of str`."""

from __future__ import annotations

import re
import types
import typing
from collections import abc
from typing import TYPE_CHECKING, Any, Literal

from agents_tools.schema.docstring_sections import HEAD_LIMIT, without_roles

if TYPE_CHECKING:
    import ast
    from collections.abc import Mapping, Sequence

_TYPE_LIMIT = 200
_RISKY_LITERAL = r"\\|(?<!\w)\d\w*[A-Za-z]"  # compiling these can emit warnings
_TYPE_NOISE = (
    r"(?i)(?:^|[,;( ]) *(?:optional|required|keyword[- ]only|positional[- ]only) *\)?$"
    r"|[,;(] *(?:by )?defaults?(?: to| is| ?[=:]| |$).*$"
    r"|^\(?optional\)?,? (?=\w)"
)
_CONTAINER_OF = r"(\w+) of (.+)$"
_OR = r",? or |, ?"

_WORDS: dict[str, Any] = {
    word: kind
    for kind, words in {
        int: "int ints integer integers",
        float: "float floats",
        str: "str strs string strings",
        bool: "bool bools boolean booleans",
        bytes: "bytes",
        list: "list lists sequence sequences iterable iterables",
        tuple: "tuple tuples",
        set: "set sets",
        frozenset: "frozenset",
        dict: "dict dicts dictionary dictionaries mapping mappings",
        type(None): "none nonetype",
        Any: "any",
    }.items()
    for word in words.split()
}
_LITERAL: Any = Literal
_TYPING: dict[str, Any] = {
    "Any": Any,
    "Dict": dict,
    "FrozenSet": frozenset,
    "Iterable": abc.Iterable,
    "List": list,
    "Literal": _LITERAL,
    "Mapping": abc.Mapping,
    "Optional": typing.Optional,
    "Sequence": abc.Sequence,
    "Set": set,
    "Tuple": tuple,
    "Union": typing.Union,
}
_ARITY: dict[Any, int] = {list: 1, set: 1, frozenset: 1, dict: 2}
_SUBSCRIPTABLE = frozenset({"builtins", "collections", "collections.abc", "typing"})


def resolve_doc_type(text: str, namespace: Mapping[str, Any]) -> Any | None:
    """Return the annotation for a type in a docstring; `None` if it is unknown or ambiguous.

    Args:
        text: The type: `int`, `list of str`, `str or None`, `{'a', 'b'}`.
        namespace: The globals of the function, which define the names of other types. The text is
            parsed and never evaluated, and nothing in the namespace is called.
    """
    text = tidy_type(text)
    if not text or len(text) > _TYPE_LIMIT or re.search(_RISKY_LITERAL, text):
        return None
    try:
        resolved = _resolve_phrase(text, namespace)
    except (_UnknownTypeError, SyntaxError, ValueError, TypeError, RecursionError, MemoryError):
        return None
    return None if resolved is type(None) else resolved


class _UnknownTypeError(Exception):
    """The type is unknown or ambiguous."""


def tidy_type(text: str) -> str:
    """Return the text of a type without backquotes, `optional` and the default value."""
    if len(text) > HEAD_LIMIT or (text.isidentifier() and text != "optional"):
        return text
    text = " ".join(without_roles(text).replace("`", "").split()).rstrip(".")
    while (shorter := re.sub(_TYPE_NOISE, "", text).rstrip(" ,;")) != text:
        text = shorter
    return text


def _resolve_phrase(text: str, namespace: Mapping[str, Any]) -> Any:
    """Resolve a type in words: `int`, `int, str or None`, `list of str`."""
    parts = text.split(" or ")
    if len(parts) > 1:
        if set(text).isdisjoint("[{('\""):
            parts = re.split(_OR, text)
        if any(re.match(_CONTAINER_OF, part) for part in parts[:-1]) and set(parts[1:]) != {"None"}:
            raise _UnknownTypeError(text)  # ambiguous: "list of int or str"
        return _union([_resolve_phrase(part, namespace) for part in parts])
    match = re.match(_CONTAINER_OF, text)
    if match is None:
        import ast  # slow to import, and only needed for parameters without an annotation

        return _resolve_node(ast.parse(text, mode="eval").body, namespace)
    container = _WORDS.get(match[1].casefold())
    if container is dict:
        return dict
    if container not in {list, tuple, set, frozenset}:
        raise _UnknownTypeError(text)
    try:
        item = _resolve_phrase(match[2], namespace)
    except (_UnknownTypeError, SyntaxError):
        return container  # only the type of the items is unknown
    return types.GenericAlias(container, (item, ...) if container is tuple else (item,))


def _resolve_node(node: ast.expr, namespace: Mapping[str, Any]) -> Any:
    """Resolve a type in Python: a name, a subscript, a union, a set of choices."""
    import ast

    match node:
        case ast.Name(id=name):
            return _resolve_name(name, namespace)
        case ast.Attribute(value=value, attr=attr):
            return _resolve_attribute(value, attr, namespace)
        case ast.Constant(value=None):
            return type(None)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return _union([_resolve_node(left, namespace), _resolve_node(right, namespace)])
        case ast.Set(elts=choices):
            return _literal(choices)
        case ast.Subscript(value=value, slice=inner):
            items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
            return _subscript(_resolve_node(value, namespace), items, namespace)
        case _:
            raise _UnknownTypeError


def _subscript(origin: Any, items: list[ast.expr], namespace: Mapping[str, Any]) -> Any:
    import ast

    if origin is _LITERAL:
        return _literal(items)
    if getattr(origin, "__module__", None) not in _SUBSCRIPTABLE:
        raise _UnknownTypeError  # `__class_getitem__` can run code
    if len(items) != _ARITY.get(origin, len(items)):
        raise _UnknownTypeError
    arguments = [
        ...
        if isinstance(item, ast.Constant) and item.value is ...
        else _resolve_node(item, namespace)
        for item in items
    ]
    return origin[tuple(arguments) if len(arguments) > 1 else arguments[0]]


def _literal(choices: list[ast.expr]) -> Any:
    import ast

    values: list[object] = [choice.value for choice in choices if isinstance(choice, ast.Constant)]
    if len(values) < len(choices) or not all(
        value is None or isinstance(value, (str, int)) for value in values
    ):
        raise _UnknownTypeError
    return _LITERAL[tuple(values)]


def _resolve_name(name: str, namespace: Mapping[str, Any]) -> Any:
    value = namespace.get(name)
    if _is_type(value):
        return value
    word = _TYPING.get(name) or _WORDS.get(name.casefold())
    if word is None:
        raise _UnknownTypeError(name)
    return word


def _resolve_attribute(node: ast.expr, attr: str, namespace: Mapping[str, Any]) -> Any:
    import ast

    owner: Any = None
    if isinstance(node, ast.Name):
        owner = typing if node.id == "typing" else namespace.get(node.id)
    elif isinstance(node, ast.Attribute):
        owner = _resolve_attribute(node.value, node.attr, namespace)
    if not isinstance(owner, (types.ModuleType, type)):
        raise _UnknownTypeError
    value = vars(owner).get(attr)  # `getattr` can run code
    if not _is_type(value) and not isinstance(value, types.ModuleType):
        raise _UnknownTypeError
    return value


def _is_type(value: object) -> bool:
    if isinstance(value, (type, typing.NewType)) or type(value).__name__ == "TypeAliasType":
        return True
    return typing.get_origin(value) is not None or value is Any


def _union(members: Sequence[Any]) -> Any:
    return typing.Union[tuple(members)]  # noqa: UP007 - made at run time
