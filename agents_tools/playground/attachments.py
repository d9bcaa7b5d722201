"""The files of messages to agents: read from requests, and shown without their content."""

from __future__ import annotations

import binascii
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from agents_tools.content.items import MessageInputItem
from agents_tools.content.outputs import ToolOutputText, block_from_dict, block_of_file
from agents_tools.server.http_errors import HttpError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.content.items import Item
    from agents_tools.content.outputs import ContentBlock

__all__ = [
    "MOST_BODY",
    "MOST_BYTES",
    "File",
    "blocks_of",
    "files_of",
    "input_of",
    "item_without_data",
    "read_files",
    "text_of",
    "without_data",
]

MOST_BYTES = 10 << 20
"""The largest size of the files of a message. A run log stores events of 16 MiB, in base64."""
MOST_BODY = 16 << 20
"""The largest body of a request, which has the files in base64."""
_MOST_FILES = 20
_LONGEST_NAME = 200

File: TypeAlias = Mapping[str, Any]
"""The facts about a file as JSON: its `name`, `mime_type` and `size`, `None` if it is unknown."""


def read_files(body: Mapping[str, Any]) -> list[ContentBlock]:
    """Return the files of a request as content blocks.

    Args:
        body: The request. Each of its `files` has a `name` and its `data` in base64.

    Raises:
        HttpError: The files are invalid, or too large.
    """
    given: object = body.get("files", [])
    if not isinstance(given, list):
        raise HttpError(422, "files: expected a list.")
    files = cast("list[Any]", given)
    if len(files) > _MOST_FILES:
        raise HttpError(
            422, f"files: expected at most {_MOST_FILES}, got {len(files)}. Send fewer."
        )
    blocks = [_read_file(file, f"files[{number}]") for number, file in enumerate(files)]
    size = sum(len(getattr(block, "data", b"")) for block in blocks)
    if size > MOST_BYTES:
        raise HttpError(
            413,
            f"The files are too large: expected at most {MOST_BYTES >> 20} MiB together, got "
            f"{size / (1 << 20):.1f} MiB. Send smaller files.",
        )
    return blocks


def _read_file(file: Any, at: str) -> ContentBlock:
    facts = cast("dict[str, object]", file if isinstance(file, dict) else {})
    name, data = facts.get("name"), facts.get("data")
    if not isinstance(name, str) or not name or not isinstance(data, str):
        raise HttpError(422, f"{at}: expected a name, and data in base64.")
    try:
        content = binascii.a2b_base64(data, strict_mode=True)
    except ValueError:
        raise HttpError(422, f"{at}.data is not base64. Encode the file.") from None
    name = name.encode(errors="replace").decode()
    return block_of_file(content, release_text(name, limit=_LONGEST_NAME))


def input_of(text: str, files: Sequence[ContentBlock]) -> str | list[MessageInputItem]:
    """Return a message as the input of a run."""
    if not files:
        return text
    content = [ToolOutputText(text), *files] if text else list(files)
    return [MessageInputItem(content=content)]


def text_of(content: object) -> str:
    """Return the text of the content of a message."""
    return "\n".join(str(one["text"]) for one in _parts(content) if one.get("type") == "text")


def blocks_of(content: object) -> list[ContentBlock]:
    """Return the files in the content of a message, with their data."""
    return [block_from_dict(one) for one in _parts(content) if one.get("type") != "text"]


def files_of(content: object) -> list[File]:
    """Return the facts about the files in the content of a message."""
    return [
        {
            "name": one.get("filename") or one.get("type"),
            "mime_type": one.get("mime_type"),
            "size": one.get("size"),
        }
        for one in without_data(_parts(content))
        if one.get("type") != "text"
    ]


def without_data(content: Any) -> Any:
    """Return the content of a message as JSON, with the `size` of each file instead of its data."""
    if not isinstance(content, list):
        return content
    return [_without_data(one) for one in _parts(cast("object", content))]


def _without_data(part: Mapping[str, Any]) -> Mapping[str, Any]:
    data = part.get("data")
    if not isinstance(data, str):
        return part
    size = len(data) * 3 // 4 - data[-2:].count("=")
    return {**{name: value for name, value in part.items() if name != "data"}, "size": size}


def item_without_data(item: Item) -> dict[str, Any]:
    """Return an item of a conversation as JSON, with the size of each file instead of its data."""
    shown = item.to_dict()
    for key in ("content", "output"):
        if key in shown:
            shown[key] = without_data(shown[key])
    return shown


def _parts(content: object) -> list[Mapping[str, Any]]:
    """Return the blocks of the content of a message as JSON."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    parts = cast("list[Any]", content) if isinstance(content, list) else []
    return [cast("Mapping[str, Any]", one) for one in parts if isinstance(one, Mapping)]
