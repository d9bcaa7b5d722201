"""Convert the outputs of tools to content blocks of the protocol."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING, Any

from agents_tools.content.outputs import (
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)

if TYPE_CHECKING:
    from agents_tools.content.outputs import ContentBlock, ToolOutput

__all__ = ["content_block", "content_blocks"]


def content_blocks(output: ToolOutput) -> list[dict[str, Any]]:
    """Return the content of a result as protocol JSON."""
    if isinstance(output, str):
        return [{"type": "text", "text": output}]
    return [content_block(block, number) for number, block in enumerate(output, start=1)]


def content_block(block: ContentBlock, number: int = 1) -> dict[str, Any]:
    """Return the protocol's JSON for a block.

    Args:
        block: The block.
        number: Its place in the list, for the name of a file without a name.
    """
    if isinstance(block, ToolOutputText):
        return {"type": "text", "text": block.text}
    kind = block.mime_type
    if block.data is not None:
        data = base64.b64encode(block.data).decode()
        if isinstance(block, ToolOutputImage):
            return {"type": "image", "data": data, "mimeType": kind or "application/octet-stream"}
        if isinstance(block, ToolOutputAudio):
            return {"type": "audio", "data": data, "mimeType": kind or "application/octet-stream"}
        name = block.filename or f"file-{number}"
        resource: dict[str, Any] = {"uri": f"attachment:///{name}", "blob": data}
        if kind is not None:
            resource["mimeType"] = kind
        if kind is not None and kind.startswith("text/"):
            text = _as_text(block.data)
            if text is not None:
                del resource["blob"]
                resource["text"] = text
        return {"type": "resource", "resource": resource}
    uri = block.url or f"file-id:{block.file_id}"
    filename = block.filename if isinstance(block, ToolOutputFileContent) else None
    link = {"type": "resource_link", "uri": uri, "name": filename or uri.rpartition("/")[2] or uri}
    return {**link, "mimeType": kind} if kind is not None else link


def _as_text(data: bytes) -> str | None:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None
