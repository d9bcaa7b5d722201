"""What a call answers: text, content blocks, and the way from a return value to them."""

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
from dataclasses import dataclass, fields, is_dataclass
from enum import Enum
from functools import partial
from io import IOBase
from itertools import islice
from operator import countOf
from os import fspath
from types import CoroutineType, GeneratorType, SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, TypeAlias, cast

from agents_tools._secrets import mask
from agents_tools._text import describe_value, shorten, type_name
from agents_tools.errors import UserTypeError, UserValueError

if TYPE_CHECKING:
    from pydantic_core import SchemaSerializer

__all__ = [
    "ContentBlock",
    "ToolOutput",
    "ToolOutputAudio",
    "ToolOutputFileContent",
    "ToolOutputImage",
    "ToolOutputText",
    "ToolResult",
    "UnserializableOutput",
    "block_from_dict",
    "result_of",
    "to_json",
    "to_output",
    "truncate_output",
]


class UnserializableOutput(UserTypeError):  # noqa: N818 - says what it is about, not that it is one
    """A tool returned something that has no JSON form; the message says what, where and the remedy.

    Attributes:
        path: Where it stands in the returned value, as code would write it; may be empty.
    """

    def __init__(self, message: str, *, path: str = "") -> None:
        super().__init__(message)
        self.path = path


@dataclass(frozen=True, slots=True)
class ToolOutputText:
    """A piece of text.

    Attributes:
        text: The text.
    """

    type: ClassVar[Literal["text"]] = "text"

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text, "text", "ToolOutputText")

    def to_dict(self) -> dict[str, Any]:
        """Give the block as JSON."""
        return {"type": "text", "text": self.text}


class _Media:
    """What blocks that hold data, or say where it is, have in common."""

    __slots__ = ()

    type: ClassVar[Any]
    data: Any
    url: str | None
    file_id: str | None
    mime_type: str | None

    def __post_init__(self) -> None:
        kind = type_name(type(self)).rpartition(".")[2]
        given = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(given) != 1:
            came = " and ".join(given) if given else "none"
            raise UserValueError(f"{kind} takes one of data, url and file_id; got {came}.")
        if self.data is None:
            _require_text(getattr(self, given[0]), given[0], kind)
            return
        if not isinstance(self.data, _BYTES):
            raise UserTypeError(
                f"{kind}(data=) takes bytes, not {type_name(_kind(self.data))}. "
                "Decode base64 text with base64.b64decode() first."
            )
        object.__setattr__(self, "data", bytes(self.data))
        if self.mime_type is None:
            object.__setattr__(self, "mime_type", _guessed_type(self.data))

    def __repr__(self) -> str:
        """Show how much data there is instead of the data."""
        shown = [
            f"{name}=<{len(value):,} bytes>" if name == "data" else f"{name}={value!r}"
            for name, value in _given_fields(self)
        ]
        return f"{type_name(type(self)).rpartition('.')[2]}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Give the block as JSON, its data in base64; what is not set is left out."""
        given = dict(_given_fields(self))
        if self.data is not None:
            given["data"] = binascii.b2a_base64(self.data, newline=False).decode()
        return {"type": self.type, **given}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputImage(_Media):
    """An image, by exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: The encoded image.
        url: Where it is; a `data:` URL is fine.
        file_id: Its id in the file store of the model's provider.
        mime_type: Its type; seen from the data where it is not given.
        detail: How closely the model is to look at it.
    """

    type: ClassVar[Literal["image"]] = "image"

    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    mime_type: str | None = None
    detail: Literal["auto", "low", "high"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputAudio(_Media):
    """A sound, by exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: The encoded sound.
        url: Where it is.
        file_id: Its id in the file store of the model's provider.
        mime_type: Its type; seen from the data where it is not given.
    """

    type: ClassVar[Literal["audio"]] = "audio"

    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputFileContent(_Media):
    """A file, by exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: What is in the file.
        url: Where it is.
        file_id: Its id in the file store of the model's provider.
        filename: Its name, for display.
        mime_type: Its type; seen from the data where it is not given.
    """

    type: ClassVar[Literal["file"]] = "file"

    data: bytes | None = None
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    mime_type: str | None = None


ContentBlock: TypeAlias = ToolOutputText | ToolOutputImage | ToolOutputAudio | ToolOutputFileContent
"""One block of a result."""

ToolOutput: TypeAlias = str | list[ContentBlock]
"""What a model gets from a call: text, or content blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A result that tells apart what the model sees, what programs read and what stays inside.

    Attributes:
        content: What the model sees: anything that `to_output` takes. Where it is `None`, the
            model sees the structured value.
        structured: The value for programs, to be written as JSON.
        metadata: What only the application sees.
        is_error: Whether the result reports a failure.
    """

    content: Any = None
    structured: Any = None
    metadata: Mapping[str, Any] | None = None
    is_error: bool = False


def to_output(value: Any, serializer: SchemaSerializer | None = None) -> ToolOutput:
    """Turn what a tool returned into what the model gets.

    Text stays as it is, to the character, and `None` is empty text. Blocks, lists that hold a
    block, and bytes become content blocks. Anything else is written as compact JSON: NaN and the
    infinities as `null`, bytes that are no UTF-8 in base64, iterators as arrays, lone surrogates
    as visible escapes. A Python repr is never made.

    Args:
        value: What the tool returned.
        serializer: What writes it, prebuilt from the tool's return annotation. A value that it
            cannot write is written without it.

    Returns:
        Text, or a list of content blocks.

    Raises:
        UnserializableOutput: The value, or something in it, has no JSON form.
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    kind = _kind(value)
    if kind is list or kind is tuple:
        return _from_items(value, serializer)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, _BLOCKS):
        return [cast("ContentBlock", value)]
    if issubclass(kind, _BYTES):
        return [ToolOutputFileContent(data=bytes(value))]
    result = result_of(value)
    if result is not None:
        seen = result.structured if result.content is None else result.content
        return to_output(seen, serializer)
    if issubclass(kind, _LISTS):
        return _from_items(value, serializer)
    if _is_iterator(kind):
        return _from_items(_taken(value, ""), serializer)
    return to_json(value, serializer)


def result_of(value: Any) -> ToolResult | None:
    """Give the `ToolResult` that a value is, or that its class says it stands for.

    A class says so with a method `__tool_result__()`, as observations do.
    """
    if isinstance(value, ToolResult):
        return value
    stands_for: Any = getattr(_kind(value), "__tool_result__", None)
    return None if stands_for is None else cast("ToolResult", stands_for(value))


def to_json(value: Any, serializer: SchemaSerializer | None = None) -> str:
    """Write any value as compact JSON text, by the rules of `to_output`.

    Args:
        value: The value.
        serializer: What writes it, where one is prebuilt.

    Raises:
        UnserializableOutput: The value, or something in it, has no JSON form.
    """
    return _json(value, serializer, fresh=_holds_iterator(value, _LEVELS))


def truncate_output(output: ToolOutput, max_chars: int) -> tuple[ToolOutput, str | None]:
    """Shorten the text of an output to what a model may get.

    A text keeps its start and its end, with a note between them that says how much is missing.
    Of several text blocks those that fit are kept, the first that does not is shortened, and a
    note counts those behind it. Images, sounds and files are kept as they are.

    Args:
        output: The output.
        max_chars: The most characters of text, notes included.

    Returns:
        The shortened output, and the text that was taken out of it or `None`. Put back in the
        place of the note, it makes a text whole again; texts of several blocks are joined by an
        empty line.
    """
    room = max(0, max_chars)
    if not isinstance(output, str):
        return _fewer_texts(output, room)
    return (output, None) if len(output) <= room else _without_middle(output, room)


def block_from_dict(data: Mapping[str, Any]) -> ContentBlock:
    """Read a content block from the JSON that its `to_dict()` gave.

    Raises:
        UserValueError: It is no such JSON: an unknown type, key or value.
    """
    values = dict(data)
    name: object = values.pop("type", None)
    found = next((block for block in _BLOCKS if block.type == name), None)
    if found is None:
        known = ", ".join(block.type for block in _BLOCKS)
        raise UserValueError(f"Unknown content block type {describe_value(name)}; known: {known}.")
    unknown = sorted(values.keys() - {field.name for field in fields(found)})
    if unknown:
        raise UserValueError(
            f"A content block of type {found.type} has no {describe_value(unknown[0])}."
        )
    try:
        if values.get("data") is not None:
            values["data"] = binascii.a2b_base64(values["data"], strict_mode=True)
        return found(**values)
    except (ValueError, TypeError) as error:
        raise UserValueError(
            f"A content block of type {found.type} cannot be read: {error}"
        ) from error


# Blocks

_BLOCKS = (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)
_BYTES: Any = (bytes, bytearray, memoryview)
_LISTS = (list, tuple)
_SOURCES = ("data", "url", "file_id")
_SIGNATURES = (
    (0, b"\x89PNG\r\n\x1a\n", "image/png"),
    (0, b"\xff\xd8\xff", "image/jpeg"),
    (0, b"GIF8", "image/gif"),
    (8, b"WEBP", "image/webp"),
    (8, b"WAVE", "audio/wav"),
    (0, b"ID3", "audio/mpeg"),
    (0, b"\xff\xfb", "audio/mpeg"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
)


def _require_text(value: object, name: str, kind: str) -> None:
    if not isinstance(value, str):
        raise UserTypeError(f"{kind}({name}=) takes a str, not {type_name(type(value))}.")


def _given_fields(block: Any) -> list[tuple[str, Any]]:
    values = ((field.name, getattr(block, field.name)) for field in fields(block))
    return [(name, value) for name, value in values if value is not None]


def _guessed_type(data: bytes) -> str:
    for at, signature, mime_type in _SIGNATURES:
        if data.startswith(signature, at):
            return mime_type
    try:
        return "application/octet-stream" if "\0" in data.decode() else "text/plain"
    except UnicodeDecodeError:
        return "application/octet-stream"


def _from_items(items: Sequence[Any], serializer: SchemaSerializer | None) -> ToolOutput:
    kinds = _kinds(items)
    for kind in kinds:
        if issubclass(kind, _BLOCKS):
            return [_block(item) for item in items if item is not None]
    return _json(items, serializer, fresh=_hold_iterator(kinds, items, _LEVELS))


def _block(item: Any) -> ContentBlock:
    if isinstance(item, _BLOCKS):
        return item
    if isinstance(item, str):
        return ToolOutputText(str.__str__(item))
    if isinstance(item, _BYTES):
        return ToolOutputFileContent(data=bytes(item))
    return ToolOutputText(to_json(item))


# Truncation


def _without_middle(text: str, room: int) -> tuple[str, str]:
    kept = room - len(_gap(len(text), len(text)))
    if kept < 0:
        return text[:room], text[room:]
    tail = kept // 3
    start, end = kept - tail, len(text) - tail
    return text[:start] + _gap(end - start, len(text)) + text[end:], text[start:end]


def _gap(missing: int, size: int) -> str:
    return f"\n[… {missing:,} of {size:,} characters left out …]\n"


_LAST_NOTE = 48
"""Room for the note on blocks that are gone."""


def _fewer_texts(blocks: list[ContentBlock], room: int) -> tuple[ToolOutput, str | None]:
    if sum(len(block.text) for block in blocks if isinstance(block, ToolOutputText)) <= room:
        return blocks, None
    kept: list[ContentBlock] = []
    rest: list[str] = []
    gone = 0
    noted = room >= 2 * _LAST_NOTE
    room -= _LAST_NOTE if noted else 0
    for block in blocks:
        if not isinstance(block, ToolOutputText):
            kept.append(block)
        elif len(block.text) <= room and not rest:
            kept.append(block)
            room -= len(block.text)
        elif room and not rest:
            start, left = _without_middle(block.text, room)
            kept.append(ToolOutputText(start))
            rest.append(left)
        else:
            rest.append(block.text)
            gone += 1
    if gone and noted:
        kept.append(ToolOutputText(f"[… {gone:,} more texts left out …]"))
    return kept, "\n\n".join(rest)


# JSON

_CONTAINERS = frozenset((dict, list, tuple))
_LEVELS = 2
_FEW = 32
_MOST_ITEMS = 100_000
_DEEPEST = 100
_TOO_DEEP = f"The result is nested more than {_DEEPEST} levels deep. Return something flatter."


def _json(value: Any, serializer: SchemaSerializer | None, *, fresh: bool) -> str:
    # A writer uses iterators up, endless ones included: fresh ones are not left to it.
    if not fresh and (data := _written(value, serializer)) is not None:
        return data.decode()
    try:
        return _schemaless()(_Plain(fresh=fresh).of(value)).decode()
    except RecursionError:
        raise UnserializableOutput(_TOO_DEEP) from None


_UNKNOWN = (ValueError, TypeError, RecursionError)
"""What pydantic's writers raise for a value that they cannot write."""


def _written(value: Any, serializer: SchemaSerializer | None) -> bytes | None:
    if serializer is not None:
        try:
            data = serializer.to_json(value, by_alias=True, warnings=False)
        except _UNKNOWN:
            return _written(value, None)
    else:
        try:
            data = _schemaless()(value)
        except _UNKNOWN:
            return None
    return data if _is_finite(data) else None


def _holds_iterator(value: Any, levels: int) -> bool:
    """Look for iterators near the top of a value, where a glance costs little."""
    kind = _kind(value)
    if kind is dict:
        value = value.values()
    elif kind is not list and kind is not tuple:
        return issubclass(kind, Iterator)
    return _hold_iterator(_kinds(value), value, levels)


def _kinds(members: Collection[Any]) -> Collection[Any]:
    """Give the different types of some values; most often there is only one, or none."""
    for member in members:
        first = _kind(member)
        same = countOf(map(_kind, members), first) == len(members)
        return (first,) if same else set(map(_kind, members))
    return ()


def _hold_iterator(kinds: Collection[Any], members: Collection[Any], levels: int) -> bool:
    for kind in kinds:
        if issubclass(kind, Iterator):
            return True
    if not levels or len(members) > _FEW or _CONTAINERS.isdisjoint(kinds):
        return False
    return any(_holds_iterator(member, levels - 1) for member in members)


_kind: Callable[[object], Any] = type
"""The type of a value, under a name that says nothing of it to type checkers."""


def _is_iterator(kind: Any) -> bool:
    return issubclass(kind, Iterator) and not issubclass(kind, IOBase)


def _taken(iterator: Iterator[Any], where: str) -> list[Any]:
    items = list(islice(iterator, _MOST_ITEMS + 1))
    if len(items) <= _MOST_ITEMS:
        return items
    if issubclass(_kind(iterator), GeneratorType):
        cast("Any", iterator).close()
    raise UnserializableOutput(
        f"The result{where} goes on after {_MOST_ITEMS:,} items. Return a list of those that "
        "matter, or write the tool with @streaming_tool and yield events.",
        path=where.removeprefix(" at "),
    )


@functools.cache
def _schemaless() -> Callable[[Any], bytes]:
    from pydantic_core import to_json as write

    return partial(write, by_alias=True, inf_nan_mode="null")


def _is_finite(data: bytes) -> bool:
    """Tell whether there is no NaN in JSON that a model's own configuration may have written."""
    # Looking for one letter first is many times faster.
    if (b"N" not in data or b"NaN" not in data) and (b"I" not in data or b"Infinity" not in data):
        return True
    from pydantic_core import from_json

    try:
        from_json(data, allow_inf_nan=False)
    except ValueError:
        return False
    return True


class _Plain:
    """Rebuilds a value that no writer took from plain JSON values, and knows where it is.

    Args:
        fresh: Whether no writer had a go before, which may have used up iterators.
    """

    def __init__(self, *, fresh: bool) -> None:
        self._fresh = fresh
        self._steps: list[object] = []
        self._open: set[int] = set()

    def of(self, value: Any) -> Any:
        """Give the plain form of a value."""
        kind = _kind(value)
        if value is None or kind is bool:
            return value
        if issubclass(kind, str):
            return _encodable(str.__str__(value))
        if issubclass(kind, int):
            return int.__int__(value)
        if issubclass(kind, float):
            return float.__float__(value)  # NaN and the infinities become null when written
        if issubclass(kind, _BYTES):
            return _bytes_text(bytes(value))
        if len(self._steps) > _DEEPEST:
            raise UnserializableOutput(_TOO_DEEP)
        if id(value) in self._open:
            self._refuse("refers back to itself", "Return it without the cycle.")
        self._open.add(id(value))
        try:
            return self._object(value, kind)
        finally:
            self._open.discard(id(value))

    def _object(self, value: Any, kind: Any) -> Any:
        if issubclass(kind, Mapping):
            return self._members(value.items())
        if kind is range:
            return self._items(_taken(iter(value), self._where()))
        if issubclass(kind, Sequence | AbstractSet | ValuesView):
            return self._items(value)
        if issubclass(kind, Enum):
            return self.of(value.value)
        if hasattr(kind, "__fspath__"):
            return self.of(fspath(value))
        if issubclass(kind, _BLOCKS):
            return value.to_dict()
        if hasattr(kind, "__pydantic_serializer__"):
            return self._model(value)
        names = _field_names(value, kind)
        if names is not None:
            return self._members((name, getattr(value, name)) for name in names)
        if issubclass(kind, IOBase):  # an iterator of lines, but nobody meant it as one
            self._refuse_value(kind)
        if issubclass(kind, Iterator):
            return self._items(self._unused(value))
        if type_name(kind).startswith("numpy."):
            return self.of(value.tolist())
        return self._scalar(value, kind)

    def _members(self, members: Iterable[tuple[Any, Any]]) -> dict[str, Any]:
        plain: dict[str, Any] = {}
        for key, member in members:
            self._steps.append(key)
            plain[self._key(key)] = self.of(member)
            self._steps.pop()
        return plain

    def _items(self, items: Iterable[Any]) -> list[Any]:
        plain: list[Any] = []
        for index, item in enumerate(items):
            self._steps.append(index)
            plain.append(self.of(item))
            self._steps.pop()
        return plain

    def _key(self, key: Any) -> str:
        if isinstance(key, str):
            return _encodable(str.__str__(key))
        if isinstance(key, bytes):
            return _bytes_text(key)
        try:
            return _encodable(next(iter(_jsonable({key: None}))))
        except (ValueError, TypeError):
            self._refuse_value(_kind(key), " as a key")

    def _model(self, value: Any) -> Any:
        try:
            dumped = value.__pydantic_serializer__.to_python(value, by_alias=True, warnings=False)
        except (ValueError, TypeError) as error:
            why = f": {shorten(mask(str(error)), 300)}"
            self._refuse("cannot be written", "Mend its serializer.", why, error)
        return self.of(dumped)

    def _unused(self, iterator: Iterator[Any]) -> list[Any]:
        if not self._fresh:
            why = f" is a {type_name(_kind(iterator))}, which can be read only once"
            self._refuse("cannot be written: what is", "Return a list in its place.", why)
        return _taken(iterator, self._where())

    def _scalar(self, value: Any, kind: Any) -> Any:
        try:
            plain = _jsonable(value)
        except (ValueError, TypeError):
            if issubclass(kind, CoroutineType):
                value.close()  # or Python warns that nobody awaited it
            self._refuse_value(kind)
        return _encodable(plain) if isinstance(plain, str) else plain

    def _refuse_value(self, kind: Any, role: str = "") -> NoReturn:
        remedy = next(text for known, text in _REMEDIES if issubclass(kind, known))
        where = self._where()
        verb = "holds" if where else "is"
        raise UnserializableOutput(
            f"The result {verb} {_article(kind)}{role}{where}, which has no JSON form. {remedy}",
            path=where.removeprefix(" at "),
        )

    def _refuse(
        self, what: str, remedy: str, why: str = "", cause: Exception | None = None
    ) -> NoReturn:
        where = self._where()
        raise UnserializableOutput(
            f"The result {what}{where}{why}. {remedy}", path=where.removeprefix(" at ")
        ) from cause

    def _where(self) -> str:
        path = "".join(map(_step, self._steps)).removeprefix(".")
        return f" at {shorten(mask(path), 160)}" if path else ""


def _step(step: object) -> str:
    if isinstance(step, str) and step.isidentifier():
        return f".{step}"
    return f"[{describe_value(step)}]"


def _article(kind: Any) -> str:
    if issubclass(kind, type):
        return "a class"
    name = type_name(kind)
    return f"an {name}" if name[:1] in "aeiouAEIOU" else f"a {name}"


_REMEDIES: tuple[tuple[Any, str], ...] = (
    (AsyncIterator, "Collect its items in a list, or write the tool with @streaming_tool."),
    (Awaitable, "Await it before returning."),
    (type, "Return an instance of it, or its name."),
    (BaseException, "Raise it instead of returning it."),
    (IOBase, "Return what is in it."),
    (Callable, "Call it before returning."),
    (object, "Return text, a number, a list, a dict, a dataclass or a pydantic model."),
)


def _field_names(value: Any, kind: Any) -> list[str] | None:
    if is_dataclass(kind):
        return [field.name for field in fields(kind)]
    if (attributes := getattr(kind, "__attrs_attrs__", None)) is not None:
        return [attribute.name for attribute in attributes]
    struct: tuple[str, ...] | None = getattr(kind, "__struct_fields__", None)  # of msgspec
    if struct is not None:
        return list(struct)
    return list(value.__dict__) if kind is SimpleNamespace else None


def _jsonable(value: Any) -> Any:
    from pydantic_core import to_jsonable_python

    return to_jsonable_python(value)


def _encodable(text: str) -> str:
    """Write lone surrogates out, which no encoding of Unicode admits."""
    return text.encode("utf-8", "backslashreplace").decode()


def _bytes_text(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return binascii.b2a_base64(data, newline=False).decode()
