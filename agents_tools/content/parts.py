"""The content parts of the OpenAI APIs, read as content blocks.

Chat Completions has `image_url`, `input_audio` and `file`; the Responses API has `input_text`,
`input_image`, `input_audio` and `input_file`. Both can be used in messages and in tool outputs.
"""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import Any, cast

from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    block_from_dict,
)
from agents_tools.errors import UserValueError
from agents_tools.text.nouns import type_with_article

__all__ = ["block_of_part"]


def block_of_part(part: Mapping[str, Any]) -> ContentBlock:
    """Return the content block of a part, or of the JSON of a block's `to_dict()`.

    Raises:
        UserError: The type, a key or a value is unknown.
    """
    match part.get("type"):
        case "input_text" | "output_text":
            return ToolOutputText(_text(part, "text"))
        case "input_image":
            return _image_part(part)
        case "image_url":
            return _chat_image_part(part)
        case "input_audio":
            return _audio_part(part)
        case "input_file":
            return _file_part(part)
        case "file" if "file" in part:
            _check_keys(part, "file")
            return _file_part(_mapping(part, "file"), at="file.")
        case _:
            return block_from_dict(part)


def _image_part(part: Mapping[str, Any]) -> ToolOutputImage:
    _check_keys(part, "image_url", "file_id", "detail")
    return ToolOutputImage(
        url=part.get("image_url"), file_id=part.get("file_id"), detail=part.get("detail")
    )


def _chat_image_part(part: Mapping[str, Any]) -> ToolOutputImage:
    _check_keys(part, "image_url")
    if isinstance(part.get("image_url"), str):  # as in the Responses API, and widely accepted
        return ToolOutputImage(url=part["image_url"])
    image = _mapping(part, "image_url")
    _check_keys(image, "url", "detail", at="image_url.")
    return ToolOutputImage(url=_text(image, "url", at="image_url."), detail=image.get("detail"))


def _audio_part(part: Mapping[str, Any]) -> ToolOutputAudio:
    _check_keys(part, "input_audio")
    audio = _mapping(part, "input_audio")
    _check_keys(audio, "data", "format", at="input_audio.")
    name = _text(audio, "format", at="input_audio.")
    return ToolOutputAudio(
        data=_decode_base64(audio, "data", at="input_audio."),
        mime_type=_AUDIO_TYPES.get(name, f"audio/{name}"),
    )


_AUDIO_TYPES = {"mp3": "audio/mpeg", "m4a": "audio/mp4"}


def _file_part(part: Mapping[str, Any], at: str = "") -> ToolOutputFileContent:
    _check_keys(part, "file_data", "file_url", "file_id", "filename", "detail", at=at)
    fields: dict[str, Any] = {name: part.get(name) for name in ("file_id", "filename", "detail")}
    encoded = part.get("file_data")
    if isinstance(encoded, str) and encoded[:5].lower() == "data:":
        return ToolOutputFileContent(url=encoded, **fields)
    data = None if encoded is None else _decode_base64(part, "file_data", at)
    return ToolOutputFileContent(data=data, url=part.get("file_url"), **fields)


_IGNORED = frozenset({"type", "prompt_cache_breakpoint"})
"""Keys of every part. A hint for the cache of one provider does not change the content."""


def _check_keys(part: Mapping[str, Any], *known: str, at: str = "") -> None:
    for key in part:
        if key not in known and key not in _IGNORED:
            raise UserValueError(
                f"{at}{key} is not a field of the part: expected {', '.join(known)}. Remove it."
            )


def _mapping(part: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = part.get(key)
    if not isinstance(value, Mapping):
        raise UserValueError(f"{key}: expected an object, got {type_with_article(value)}.")
    return cast("Mapping[str, Any]", value)


def _text(part: Mapping[str, Any], key: str, at: str = "") -> str:
    value = part.get(key)
    if not isinstance(value, str):
        raise UserValueError(f"{at}{key}: expected text, got {type_with_article(value)}.")
    return value


def _decode_base64(part: Mapping[str, Any], key: str, at: str) -> bytes:
    try:
        return binascii.a2b_base64("".join(_text(part, key, at).split()), strict_mode=True)
    except ValueError as error:
        raise UserValueError(f"{at}{key} is not valid base64: {error}.") from error
