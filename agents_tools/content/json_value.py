"""Serialize the values that tools return as JSON."""

from __future__ import annotations

import binascii
import functools
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Set as AbstractSet,
    ValuesView,
)
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import partial
from io import IOBase
from itertools import islice
from operator import countOf
from os import fspath
from types import CoroutineType, GeneratorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, NoReturn, cast

from agents_tools.content.tables import is_missing, is_table, read_table
from agents_tools.errors import UserTypeError
from agents_tools.text.characters import replace_surrogates
from agents_tools.text.escape import describe_value, type_name
from agents_tools.text.nouns import with_article
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from pydantic_core import SchemaSerializer

__all__ = [
    "BYTES",
    "CHECKED_LEVELS",
    "UnserializableOutput",
    "contain_iterator",
    "exact_type",
    "is_iterator",
    "read_iterator",
    "serialize",
    "to_json",
    "types_of",
]

BYTES: Any = (bytes, bytearray, memoryview)


class UnserializableOutput(UserTypeError):  # noqa: N818 - a public name of 0.1
    """A tool returned a value without a JSON form. The message names the value and the remedy.

    Attributes:
        problem: The message without the remedy, which is for the author of the tool only.
        path: The location in the returned value, in Python syntax; empty for the whole value.
    """

    def __init__(self, problem: str, remedy: str = "", *, path: str = "") -> None:
        super().__init__(f"{problem} {remedy}".strip())
        self.problem = problem
        self.path = path


def to_json(value: Any, serializer: SchemaSerializer | None = None) -> str:
    """Return a value as compact JSON, with the rules of `to_output`.

    Args:
        value: The value.
        serializer: A prebuilt serializer for the type of the value.

    Raises:
        UnserializableOutput: The value, or a part of it, has no JSON form.
    """
    return serialize(value, serializer, is_unread=_contains_iterator(value, CHECKED_LEVELS))


_CONTAINERS = frozenset((dict, list, tuple))
CHECKED_LEVELS = 2
_CHECKED_MEMBERS = 32
_MAX_ITEMS = 100_000
_MAX_DEPTH = 100
_TOO_DEEP = (
    f"The result is nested more than {_MAX_DEPTH} levels deep.",
    "Return a flatter value.",
)


def serialize(value: Any, serializer: SchemaSerializer | None, *, is_unread: bool) -> str:
    """Return a value as JSON.

    Args:
        value: The value.
        serializer: A prebuilt serializer for the type of the value.
        is_unread: Whether the value contains iterators, as far as they were searched for.
    """
    # A serializer reads iterators to their end, and some are endless, so it does not get them.
    if not is_unread and (data := _try_serializer(value, serializer)) is not None:
        return data.decode()
    try:
        return _untyped_serializer()(_JsonConverter(is_unread=is_unread).convert(value)).decode()
    except RecursionError:
        raise UnserializableOutput(*_TOO_DEEP) from None


_SERIALIZER_ERRORS = (ValueError, TypeError, RecursionError)
"""The errors of pydantic's serializers for values that they do not support."""


def _try_serializer(value: Any, serializer: SchemaSerializer | None) -> bytes | None:
    if serializer is not None:
        try:
            data = serializer.to_json(value, by_alias=True, warnings=False)
        except _SERIALIZER_ERRORS:
            return _try_serializer(value, None)
    else:
        try:
            data = _untyped_serializer()(value)
        except _SERIALIZER_ERRORS:
            return None
    return data if _is_finite(data) else None


def _contains_iterator(value: Any, levels: int) -> bool:
    """Return whether there are iterators in the first levels of a value."""
    kind = exact_type(value)
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return issubclass(kind, Iterator)
    return contain_iterator(types_of(value), value, levels)


def types_of(members: Collection[Any]) -> Collection[Any]:
    """Return the distinct types of values."""
    for member in members:
        first = exact_type(member)
        same = countOf(map(exact_type, members), first) == len(members)
        return (first,) if same else set(map(exact_type, members))
    return ()


def contain_iterator(kinds: Collection[Any], members: Collection[Any], levels: int) -> bool:
    """Return whether members of these types are iterators or contain some."""
    for kind in kinds:
        if issubclass(kind, Iterator):
            return True
    if not levels or len(members) > _CHECKED_MEMBERS or _CONTAINERS.isdisjoint(kinds):
        return False
    return any(_contains_iterator(member, levels - 1) for member in members)


exact_type: Callable[[object], Any] = type
"""`type`, typed so that type checkers do not narrow the result."""


def is_iterator(kind: Any) -> bool:
    """Return whether a type is an iterator and not a file."""
    return issubclass(kind, Iterator) and not issubclass(kind, IOBase)


def read_iterator(iterator: Iterator[Any], where: str) -> list[Any]:
    """Return the items of an iterator.

    Raises:
        UnserializableOutput: The iterator has too many items.
    """
    items = list(islice(iterator, _MAX_ITEMS + 1))
    if len(items) <= _MAX_ITEMS:
        return items
    if issubclass(exact_type(iterator), GeneratorType):
        cast("Any", iterator).close()
    raise UnserializableOutput(
        f"The result{where} has more than {_MAX_ITEMS:,} items.",
        "Return a shorter list, or write the tool with @streaming_tool and yield events.",
        path=where.removeprefix(" at "),
    )


@functools.cache
def _untyped_serializer() -> Callable[[Any], bytes]:
    from pydantic_core import to_json as write

    return partial(write, by_alias=True, inf_nan_mode="null")


def _is_finite(data: bytes) -> bool:
    """Return whether JSON text contains neither NaN nor Infinity, which some models configure."""
    # Searching for a single letter first is many times faster.
    if (b"N" not in data or b"NaN" not in data) and (b"I" not in data or b"Infinity" not in data):
        return True
    from pydantic_core import from_json

    try:
        from_json(data, allow_inf_nan=False)
    except ValueError:
        return False
    return True


class _JsonConverter:
    """Convert a value that no serializer supports to JSON values, and track the location.

    Args:
        is_unread: Whether the iterators of the value are unread, because no serializer was tried.
    """

    def __init__(self, *, is_unread: bool) -> None:
        self._is_unread = is_unread
        self._steps: list[object] = []
        self._active: set[int] = set()

    def convert(self, value: Any) -> Any:
        """Return the JSON form of a value.

        Raises:
            UnserializableOutput: A part of the value has no JSON form.
        """
        kind = exact_type(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return replace_surrogates(str.__str__(value))
        if issubclass(kind, int):
            return int.__int__(value)
        if issubclass(kind, float):
            return float.__float__(value)  # NaN and the infinities become null when written
        if issubclass(kind, BYTES):
            return _bytes_text(bytes(value))
        if len(self._steps) > _MAX_DEPTH:
            raise UnserializableOutput(*_TOO_DEEP)
        if id(value) in self._active:
            self._refuse("contains itself", "Return it without the cycle.")
        self._active.add(id(value))
        try:
            return self._convert_object(value, kind)
        finally:
            self._active.discard(id(value))

    def _convert_object(self, value: Any, kind: Any) -> Any:
        if issubclass(kind, Mapping):
            return self._convert_members(value.items())
        if kind is range:
            return self._convert_items(read_iterator(iter(value), self._location()))
        if issubclass(kind, Sequence | AbstractSet | ValuesView):
            return self._convert_items(value)
        if issubclass(kind, Enum):
            return self.convert(value.value)
        if hasattr(kind, "__fspath__"):
            return self.convert(fspath(value))
        if hasattr(kind, "__content_block__"):
            return self.convert(value.to_dict())
        if hasattr(kind, "__pydantic_serializer__"):
            return self._convert_model(value)
        names = _field_names(value, kind)
        if names is not None:
            return self._convert_members((name, getattr(value, name)) for name in names)
        if issubclass(kind, IOBase):  # a file is an iterator of lines, but not meant as a list
            self._refuse_value(kind)
        if issubclass(kind, Iterator):
            return self._convert_items(self._read_iterator(value))
        if is_missing(value):
            return None
        if hasattr(kind, "tolist"):  # arrays and scalars of numpy, series and indexes of pandas
            return self.convert(value.tolist())
        if is_table(kind) and (table := read_table(value)) is not None:
            header = table.header
            rows = (dict(zip(header, row, strict=True)) for row in table.rows())
            return self._convert_items(read_iterator(rows, self._location()))
        if hasattr(kind, "to_pylist"):  # arrays of Arrow
            return self.convert(value.to_pylist())
        return self._convert_scalar(value, kind)

    def _convert_members(self, members: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, member in members:
            self._steps.append(key)
            plain[self._convert_key(key)] = self.convert(member)
            self._steps.pop()
        return plain

    def _convert_items(self, items: Iterable[Any]) -> list[Any]:
        plain: list[Any] = []
        for index, item in enumerate(items):
            self._steps.append(index)
            plain.append(self.convert(item))
            self._steps.pop()
        return plain

    def _convert_key(self, key: Any) -> str:
        if isinstance(key, str):
            return replace_surrogates(str.__str__(key))
        if isinstance(key, bytes):
            return _bytes_text(key)
        try:
            return replace_surrogates(next(iter(_to_jsonable({key: None}))))
        except (ValueError, TypeError):
            self._refuse_value(exact_type(key), " as a key")

    def _convert_model(self, value: Any) -> Any:
        try:
            dumped = value.__pydantic_serializer__.to_python(value, by_alias=True, warnings=False)
        except (ValueError, TypeError) as error:
            why = f": {release_text(str(error), limit=300, patterns=True)}"
            self._refuse("cannot be serialized", "Fix its serializer.", why, error)
        return self.convert(dumped)

    def _read_iterator(self, iterator: Iterator[Any]) -> list[Any]:
        if not self._is_unread:
            why = f": a {type_name(exact_type(iterator))} can be read only once"
            self._refuse("cannot be serialized", "Return a list instead.", why)
        return read_iterator(iterator, self._location())

    def _convert_scalar(self, value: Any, kind: Any) -> Any:
        try:
            plain = _to_jsonable(value)
        except (ValueError, TypeError):
            if issubclass(kind, CoroutineType):
                value.close()  # avoids the warning that it was never awaited
            self._refuse_value(kind)
        return replace_surrogates(plain) if isinstance(plain, str) else plain

    def _refuse_value(self, kind: Any, role: str = "") -> NoReturn:
        remedy = next(text for base, text in _REMEDIES if issubclass(kind, base))
        where = self._location()
        verb = "contains" if where else "is"
        raise UnserializableOutput(
            f"The result {verb} {_with_article(kind)}{role}{where}, which has no JSON form.",
            remedy,
            path=where.removeprefix(" at "),
        )

    def _refuse(
        self, problem: str, remedy: str, why: str = "", cause: Exception | None = None
    ) -> NoReturn:
        where = self._location()
        raise UnserializableOutput(
            f"The result {problem}{where}{why}.", remedy, path=where.removeprefix(" at ")
        ) from cause

    def _location(self) -> str:
        path = "".join(map(_path_step, self._steps)).removeprefix(".")
        return f" at {release_text(path, limit=160, patterns=True)}" if path else ""


def _path_step(step: object) -> str:
    if isinstance(step, str) and step.isidentifier():
        return f".{step}"
    return f"[{describe_value(step)}]"


def _with_article(kind: Any) -> str:
    if issubclass(kind, type):
        return "a class"
    return with_article(type_name(kind))


_REMEDIES: tuple[tuple[Any, str], ...] = (
    (AsyncIterator, "Collect its items in a list, or write the tool with @streaming_tool."),
    (Awaitable, "Await it before returning."),
    (type, "Return an instance of it, or its name."),
    (BaseException, "Raise it instead of returning it."),
    (IOBase, "Return its content."),
    (Callable, "Call it before returning."),
    (object, "Return text, a number, a list, a dict, a dataclass or a pydantic model."),
)


def _field_names(value: Any, kind: Any) -> list[str] | None:
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
        return [attribute.name for attribute in attributes]
    struct: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)  # a struct of msgspec
    if struct is not None:
        return list(struct)
    return list(value.__dict__) if kind is SimpleNamespace else None


def _to_jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return binascii.b2a_base64(data, newline=False).decode()
