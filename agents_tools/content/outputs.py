"""The outputs of tools: text and content blocks, and the conversion of return values."""

from __future__ import annotations

import binascii
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from agents_tools.content.display import display, has_display
from agents_tools.content.json_value import (
    BYTES,
    CHECKED_LEVELS,
    UnserializableOutput,
    contain_iterator,
    exact_type,
    is_iterator,
    read_iterator,
    serialize,
    to_json,
    types_of,
)
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.escape import describe_value, type_name
from agents_tools.text.nouns import with_article

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike
    from typing import Self

    from pydantic_core import SchemaSerializer

    from agents_tools.content.tables import KeepTable

__all__ = [
    "NO_OUTPUT",
    "ContentBlock",
    "ToolOutput",
    "ToolOutputAudio",
    "ToolOutputFileContent",
    "ToolOutputImage",
    "ToolOutputText",
    "ToolResult",
    "UnserializableOutput",
    "as_tool_result",
    "block_from_dict",
    "block_of_file",
    "block_type_for",
    "output_text",
    "to_json",
    "to_model_output",
    "to_output",
    "truncate_output",
]


@dataclass(frozen=True, slots=True)
class ToolOutputText:
    """A text block.

    Attributes:
        text: The text.
    """

    __content_block__: ClassVar[bool] = True
    type: ClassVar[Literal["text"]] = "text"

    text: str

    def __post_init__(self) -> None:
        _require_text(self.text, "text", "ToolOutputText")

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON."""
        return {"type": "text", "text": self.text}


class _Media:
    """Base of the blocks that hold data or refer to it."""

    __slots__ = ()

    __content_block__ = True
    type: ClassVar[Any]
    data: Any
    url: str | None
    file_id: str | None
    filename: str | None
    mime_type: str | None

    def __post_init__(self) -> None:
        kind = type_name(type(self)).rpartition(".")[2]
        sources = [name for name in _SOURCES if getattr(self, name) is not None]
        if len(sources) != 1:
            got = " and ".join(sources) if sources else "none"
            raise UserValueError(f"{kind} expects exactly one of data, url and file_id, got {got}.")
        for name in ("filename", "mime_type", "detail"):
            if getattr(self, name, None) is not None:
                _require_text(getattr(self, name), name, kind)
        if self.data is None:
            value = getattr(self, sources[0])
            _require_text(value, sources[0], kind)
            if self.url is not None and value[:5].lower() == "data:":
                # Not every provider reads `data:` URLs, but all of them accept data.
                data, mime_type = _read_data_url(value, kind)
                object.__setattr__(self, "url", None)
                object.__setattr__(self, "data", data)
                object.__setattr__(self, "mime_type", self.mime_type or mime_type)
            return
        if not isinstance(self.data, BYTES):
            raise UserTypeError(
                f"{kind}(data=) expects bytes, got {type_name(exact_type(self.data))}. "
                "Decode base64 text with base64.b64decode() first; pass an address as url=."
            )
        object.__setattr__(self, "data", bytes(self.data))
        if self.mime_type is None:
            object.__setattr__(self, "mime_type", _detect_mime_type(self.data))

    @classmethod
    def from_path(cls, path: str | PathLike[str], *, mime_type: str | None = None) -> Self:
        """Read a file into a block.

        Args:
            path: The path of the file. Its last part becomes the `filename` of the block.
            mime_type: The media type; by default it follows from the data, or from the extension.

        Raises:
            UserValueError: The media type belongs to another kind of block.
            OSError: The file cannot be read.
        """
        from pathlib import Path

        file = Path(path)
        data = file.read_bytes()
        found = mime_type or _mime_type_of_file(data, file.name)
        if cls.type != "file" and found.partition("/")[0] != cls.type:
            raise UserValueError(
                f"{cls.__name__}.from_path({file.name!r}) expects {with_article(cls.type)}, got "
                f"{found}. Use {block_type_for(found).__name__}, or pass mime_type=."
            )
        create: Any = cls
        return cast("Self", create(data=data, mime_type=found, filename=file.name))

    def __repr__(self) -> str:
        """Return the fields, with the size of the data instead of the data."""
        shown = [
            f"{name}=<{len(value):,} bytes>" if name == "data" else f"{name}={value!r}"
            for name, value in _set_fields(self)
        ]
        return f"{type_name(type(self)).rpartition('.')[2]}({', '.join(shown)})"

    def to_dict(self) -> dict[str, Any]:
        """Return the block as JSON, with data in base64 and without fields that are not set."""
        values = dict(_set_fields(self))
        if self.data is not None:
            values["data"] = binascii.b2a_base64(self.data, newline=False).decode()
        return {"type": self.type, **values}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputImage(_Media):
    """An image block. Pass exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: The encoded image.
        url: The address of the image. A `data:` URL is decoded into `data` and `mime_type`.
        file_id: The id of the image in the file store of the model provider.
        filename: The name of the file, for display.
        mime_type: The media type; detected from the data by default.
        detail: The resolution at which the model reads the image.
    """

    type: ClassVar[Literal["image"]] = "image"

    data: bytes | None = field(default=None, kw_only=False)
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    mime_type: str | None = None
    detail: Literal["auto", "low", "high", "original"] | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputAudio(_Media):
    """An audio block. Pass exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: The encoded audio.
        url: The address of the audio. A `data:` URL is decoded into `data` and `mime_type`.
        file_id: The id of the audio in the file store of the model provider.
        filename: The name of the file, for display.
        mime_type: The media type; detected from the data by default.
    """

    type: ClassVar[Literal["audio"]] = "audio"

    data: bytes | None = field(default=None, kw_only=False)
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    mime_type: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ToolOutputFileContent(_Media):
    """A file block. Pass exactly one of `data`, `url` and `file_id`.

    Attributes:
        data: The content of the file.
        url: The address of the file. A `data:` URL is decoded into `data` and `mime_type`.
        file_id: The id of the file in the file store of the model provider.
        filename: The name of the file, for display.
        mime_type: The media type; detected from the data by default.
        detail: The resolution at which the model reads the pages, where the provider has this
            option (the Responses API of OpenAI).
    """

    type: ClassVar[Literal["file"]] = "file"

    data: bytes | None = field(default=None, kw_only=False)
    url: str | None = None
    file_id: str | None = None
    filename: str | None = None
    mime_type: str | None = None
    detail: Literal["auto", "low", "high"] | None = None


ContentBlock: TypeAlias = ToolOutputText | ToolOutputImage | ToolOutputAudio | ToolOutputFileContent
"""A content block of a message or a result."""

ToolOutput: TypeAlias = str | list[ContentBlock]
"""The output of a call for the model: text or content blocks."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult:
    """A result with separate values for the model, for programs and for the application.

    Attributes:
        content: The content for the model: any value that `to_output` accepts. If it is `None`,
            the model gets the structured value.
        structured: The value for programs, serialized as JSON.
        metadata: Values that only the application sees.
        is_error: Whether the result reports a failure.
    """

    content: Any = None
    structured: Any = None
    metadata: Mapping[str, Any] | None = None
    is_error: bool = False


def to_output(
    value: Any,
    serializer: SchemaSerializer | None = None,
    *,
    keep_table: KeepTable | None = None,
) -> ToolOutput:
    """Convert the return value of a tool to the output for the model.

    Text is returned unchanged, and `None` becomes empty text. Blocks, lists with a block, and
    bytes become content blocks; bytes of an image or a sound become a block of that kind. A table
    (pandas, polars, Arrow, DuckDB, or any object with `__arrow_c_stream__` or `__dataframe__`)
    becomes a text with its shape, its column types and its first rows in Markdown. Figures,
    images and objects with `_repr_png_` become images, and objects with `_repr_markdown_` become
    text. Any other value is serialized as compact JSON: NaN and infinities as `null`, bytes that
    are not UTF-8 in base64, iterators as arrays, lone surrogates as U+FFFD. A Python repr is never
    used.

    Args:
        value: The return value.
        serializer: A serializer built from the return annotation of the tool. A value that it does
            not support is serialized without it.
        keep_table: Called with the CSV text of each table that is not shown as a whole; returns
            the name under which it was stored.

    Returns:
        Text, or a list of content blocks.

    Raises:
        UnserializableOutput: The value, or a part of it, has no JSON form.
    """
    if type(value) is str:
        return value
    if value is None:
        return ""
    kind = exact_type(value)
    if kind is list or kind is tuple:
        return _convert_list(value, serializer, keep_table)
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, _BLOCKS):
        return [cast("ContentBlock", value)]
    if issubclass(kind, BYTES):
        return [_block_of_bytes(bytes(value))]
    result = as_tool_result(value)
    if result is not None:
        content = result.structured if result.content is None else result.content
        return to_output(content, serializer, keep_table=keep_table)
    if has_display(kind):
        shown = display(value, keep_table)
        if shown is not None:
            return shown if isinstance(shown, str) else [ToolOutputImage(shown)]
    if issubclass(kind, _LISTS):
        return _convert_list(value, serializer, keep_table)
    if is_iterator(kind):
        return _convert_list(read_iterator(value, ""), serializer, keep_table)
    return to_json(value, serializer)


NO_OUTPUT = "(no output)"
"""The output of a call that returned `None`, empty text or no content.

A model reads an empty result as a failure, or guesses what it was."""


def to_model_output(
    value: Any, serializer: SchemaSerializer | None, keep_table: KeepTable | None
) -> ToolOutput:
    """Return the result of `to_output`, or `NO_OUTPUT` if it is empty."""
    output = to_output(value, serializer, keep_table=keep_table)
    if isinstance(output, str):
        return output or NO_OUTPUT
    is_empty = all(isinstance(block, ToolOutputText) and not block.text for block in output)
    return NO_OUTPUT if is_empty else output


def as_tool_result(value: Any) -> ToolResult | None:
    """Return a value as `ToolResult`, or `None` if it does not represent one.

    A class represents a result with a method `__tool_result__()`, as observations do.
    """
    if isinstance(value, ToolResult):
        return value
    convert: Any = getattr(exact_type(value), "__tool_result__", None)
    return None if convert is None else cast("ToolResult", convert(value))


def output_text(output: ToolOutput) -> str:
    """Return the text of an output, with the type of each block that is not text."""
    if isinstance(output, str):
        return output
    return "\n".join(
        block.text if isinstance(block, ToolOutputText) else f"[{block.type}]" for block in output
    )


def truncate_output(output: ToolOutput, max_chars: int) -> tuple[ToolOutput, str | None]:
    """Truncate the text of an output.

    A JSON text stays JSON: its lists, objects and strings keep their start and end, with notes on
    what is omitted. Other texts keep their start and end, with a note in between on the number of
    omitted characters.
    Of several text blocks, those that fit are kept, the first one that does not fit is truncated,
    and a note counts the others. Images, audio and files are kept unchanged.

    Args:
        output: The output.
        max_chars: The maximum number of characters, notes included.

    Returns:
        The truncated output, and the omitted text or `None`. Of a JSON text, the whole text counts
        as omitted. Replacing the note with the omitted text restores another single text; the
        omitted texts of several blocks are joined by an empty line.
    """
    room = max(0, max_chars)
    if not isinstance(output, str):
        return _truncate_blocks(output, room)
    if len(output) <= room:
        return output, None
    from agents_tools.content.json_cut import shorten_json

    shorter = shorten_json(output, room)
    return _cut_middle(output, room) if shorter is None else (shorter, output)


def block_from_dict(data: Mapping[str, Any]) -> ContentBlock:
    """Return a content block from the JSON of its `to_dict()`.

    Raises:
        UserValueError: The type, a key or a value is unknown.
    """
    values = dict(data)
    name: object = values.pop("type", None)
    block_type = next((block for block in _BLOCKS if block.type == name), None)
    if block_type is None:
        known = ", ".join(block.type for block in _BLOCKS)
        raise UserValueError(
            f"Content block type is unknown: expected one of {known}, got {describe_value(name)}."
        )
    unknown = sorted(values.keys() - {field.name for field in fields(block_type)})
    if unknown:
        raise UserValueError(
            f"A content block of type {block_type.type} has no field {describe_value(unknown[0])}. "
            "Remove it."
        )
    try:
        if values.get("data") is not None:
            values["data"] = binascii.a2b_base64(values["data"], strict_mode=True)
        return block_type(**values)
    except (ValueError, TypeError) as error:
        raise UserValueError(
            f"A content block of type {block_type.type} is invalid: {error}"
        ) from error


def block_of_file(data: bytes, filename: str) -> ContentBlock:
    """Return the content of a file as a block.

    The kind of the block follows from the data, or from the extension of the name.

    Args:
        data: The content.
        filename: The name of the file.
    """
    mime_type = _mime_type_of_file(data, filename)
    return block_type_for(mime_type)(data, filename=filename, mime_type=mime_type)


# Blocks

_BLOCKS = (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)
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
    (0, b"\xff\xf3", "audio/mpeg"),
    (0, b"\xff\xf2", "audio/mpeg"),
    (4, b"ftypM4A", "audio/mp4"),
    (4, b"ftyphei", "image/heic"),
    (4, b"ftypavif", "image/avif"),
    (0, b"OggS", "audio/ogg"),
    (0, b"fLaC", "audio/flac"),
    (0, b"%PDF-", "application/pdf"),
    (0, b"PK\x03\x04", "application/zip"),
)


_UNSPECIFIC = frozenset({"application/octet-stream", "application/zip", "text/plain"})
"""Detected types of which a file name can tell more: a `.docx` is a ZIP file, a `.csv` is text."""


def block_type_for(
    mime_type: str,
) -> type[ToolOutputImage | ToolOutputAudio | ToolOutputFileContent]:
    """Return the kind of block for data of a media type."""
    match mime_type.partition("/")[0]:
        case "image":
            return ToolOutputImage
        case "audio":
            return ToolOutputAudio
        case _:
            return ToolOutputFileContent


def _read_data_url(url: str, kind: str) -> tuple[bytes, str]:
    """Return the data and the media type of a `data:` URL."""
    from urllib.parse import unquote_to_bytes

    header, comma, body = url[5:].partition(",")
    if not comma:
        raise UserValueError(
            f"{kind}(url=) has a 'data:' URL without data: expected data:<type>;base64,<data>, got "
            f"{url!r:.60}."
        )
    mime_type, *parameters = (part.strip().lower() for part in header.split(";"))
    data = unquote_to_bytes(body)
    if "base64" in parameters:
        try:
            data = binascii.a2b_base64(b"".join(data.split()), strict_mode=True)
        except binascii.Error as error:
            raise UserValueError(
                f"{kind}(url=) has a 'data:' URL that is not valid base64: {error}. Encode the "
                "data with base64.b64encode(), or pass the bytes as data=."
            ) from error
    return data, mime_type or "text/plain"


def _require_text(value: object, name: str, kind: str) -> None:
    if not isinstance(value, str):
        raise UserTypeError(f"{kind}({name}=) expects a str, got {type_name(type(value))}.")


def _set_fields(block: Any) -> list[tuple[str, Any]]:
    values = ((field.name, getattr(block, field.name)) for field in fields(block))
    return [(name, value) for name, value in values if value is not None]


def _detect_mime_type(data: bytes) -> str:
    for at, signature, mime_type in _SIGNATURES:
        if data.startswith(signature, at):
            return mime_type
    try:
        return "application/octet-stream" if "\0" in data.decode() else "text/plain"
    except UnicodeDecodeError:
        return "application/octet-stream"


def _mime_type_of_file(data: bytes, filename: str) -> str:
    from mimetypes import guess_type

    found = _detect_mime_type(data)
    return (found in _UNSPECIFIC and guess_type(filename)[0]) or found


def _convert_list(
    items: Sequence[Any], serializer: SchemaSerializer | None, keep_table: KeepTable | None
) -> ToolOutput:
    kinds = types_of(items)
    for kind in kinds:
        if issubclass(kind, _BLOCKS) or has_display(kind):
            return [_to_block(item, keep_table) for item in items if item is not None]
    return serialize(items, serializer, is_unread=contain_iterator(kinds, items, CHECKED_LEVELS))


def _to_block(item: Any, keep_table: KeepTable | None) -> ContentBlock:
    if isinstance(item, _BLOCKS):
        return item
    if isinstance(item, str):
        return ToolOutputText(str.__str__(item))
    if isinstance(item, BYTES):
        return _block_of_bytes(bytes(item))
    shown = display(item, keep_table) if has_display(exact_type(item)) else None
    if shown is None:
        return ToolOutputText(to_json(item))
    return ToolOutputText(shown) if isinstance(shown, str) else ToolOutputImage(shown)


def _block_of_bytes(data: bytes) -> ContentBlock:
    mime_type = _detect_mime_type(data)
    return block_type_for(mime_type)(data, mime_type=mime_type)


# Truncation


def _cut_middle(text: str, room: int) -> tuple[str, str]:
    room_for_text = room - len(_gap_note(len(text), len(text)))
    if room_for_text < 0:
        return text[:room], text[room:]
    tail = room_for_text // 3
    start, end = room_for_text - tail, len(text) - tail
    return text[:start] + _gap_note(end - start, len(text)) + text[end:], text[start:end]


def _gap_note(missing: int, size: int) -> str:
    return f"\n[… {missing:,} of {size:,} characters omitted …]\n"


_NOTE_LENGTH = 48
"""The space reserved for the note on omitted blocks."""


def _truncate_blocks(blocks: list[ContentBlock], room: int) -> tuple[ToolOutput, str | None]:
    if sum(len(block.text) for block in blocks if isinstance(block, ToolOutputText)) <= room:
        return blocks, None
    shown: list[ContentBlock] = []
    omitted: list[str] = []
    omitted_blocks = 0
    has_note = room >= 2 * _NOTE_LENGTH
    room -= _NOTE_LENGTH if has_note else 0
    for block in blocks:
        if not isinstance(block, ToolOutputText):
            shown.append(block)
        elif len(block.text) <= room and not omitted:
            shown.append(block)
            room -= len(block.text)
        elif room and not omitted:
            start, middle = _cut_middle(block.text, room)
            shown.append(ToolOutputText(start))
            omitted.append(middle)
        else:
            omitted.append(block.text)
            omitted_blocks += 1
    if omitted_blocks and has_note:
        shown.append(ToolOutputText(f"[… {omitted_blocks:,} more texts omitted …]"))
    return shown, "\n\n".join(omitted)
