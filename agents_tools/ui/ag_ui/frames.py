"""Write AG-UI frames, and convert ids, errors, results and usage to their wire format."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from agents_tools.text.output import release_json, release_text

if TYPE_CHECKING:
    from agents_tools.ui.ag_ui.messages import Frame, MessageHistory

__all__ = [
    "ERROR_CODES",
    "FrameWriter",
    "Path",
    "Version",
    "error_of",
    "path_of",
    "result_content",
    "usage_of",
    "wire_id",
]

Path: TypeAlias = tuple[str, ...]

Version: TypeAlias = Literal["1.0", "0.x"]
"""A protocol version: the first stable version, or any version before it."""

ERROR_CODES: Final = {
    "BudgetExceeded": "budget_exceeded",
    "MaxTurnsExceeded": "max_turns_exceeded",
    "ModelBehaviorError": "model_behavior_error",
    "ModelError": "model_error",
    "RunTimeoutError": "run_timeout",
    "UserError": "user_error",
}
"""The `code` of RUN_ERROR by the class of the exception; other classes have `error`."""

_DEFAULT_CODE = "error"
_PART_TYPES = {"image": "image", "audio": "audio", "file": "document"}
_MIME_TYPES = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}
_TOKENS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cached_input_tokens": "cachedInputTokens",
    "cache_write_tokens": "cacheWriteInputTokens",
    "reasoning_tokens": "reasoningTokens",
}


class FrameWriter:
    """Writes frames and applies them to the message history.

    Args:
        version: The protocol version of the client.
        messages: The message history.

    Attributes:
        frames: The frames since the last call of `take`.
        now: The timestamp of the next frames in milliseconds; `None` for no timestamp.
        seq: The sequence number of the current event in its run.
        replaying: Whether the frames repeat earlier ones for a late client. The message history
            already contains those.
    """

    def __init__(self, version: Version, messages: MessageHistory) -> None:
        self.version: Final = version
        self.messages: Final = messages
        self.frames: list[Frame] = []
        self.now: int | None = None
        self.seq = -1
        self.replaying = False

    def put(self, kind: str, owner: str | None = None, **fields: Any) -> None:
        """Write a frame with released texts, and without the fields that are `None`."""
        frame: Frame = {"type": kind}
        for name, value in fields.items():
            if value is not None:
                frame[name] = release_json(value)
        if owner is not None and self.version == "1.0":
            frame["subagentRunId"] = owner
        if self.now is not None:
            frame["timestamp"] = self.now
        if not self.replaying:
            self.messages.apply(frame)
        self.frames.append(frame)

    def metadata(self, path: Path, **fields: Any) -> dict[str, Any]:
        """Return the metadata of a call, for values without a field in the protocol."""
        present = {name: value for name, value in fields.items() if value is not None}
        return {"agents_tools": {**present, "path": list(path), "seq": self.seq}}

    def take(self) -> list[Frame]:
        """Return the frames and remove them from the writer."""
        frames, self.frames = self.frames, []
        return frames


def wire_id(path: Path) -> str:
    """Return the id of a call on the wire. Call ids alone are not unique in a run."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def path_of(wire: str) -> Path:
    """Return the path of a call from its wire id."""
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in wire.split("/"))


def error_of(error: str | None, *, show: bool) -> tuple[str, str]:
    """Return the message and the code for the error of a run.

    Args:
        error: The error text of the run, which begins with the class of the exception.
        show: Whether the client gets the message of the exception.
    """
    text = error or ""
    match = re.match(r"([A-Za-z_][\w.]*): ?(.*)", text, re.DOTALL)
    kind, message = (match[1], match[2]) if match else ("", text)
    code = ERROR_CODES.get(kind.rpartition(".")[2], _DEFAULT_CODE)
    if not show:
        return "The run failed.", code
    return release_text(message or text or "The run failed."), code


def result_content(output: object, version: Version) -> str | list[Frame]:
    """Return the output of a call as the content of a tool message."""
    if isinstance(output, str):
        return release_text(output)
    blocks: list[Any] = (
        cast("list[Any]", output) if isinstance(output, Sequence) else [output]  # a single block
    )
    parts = [_part(cast("Mapping[str, Any]", block)) for block in blocks]
    if version == "1.0" and any(part["type"] != "text" for part in parts):
        return parts
    return "\n".join(part["text"] if part["type"] == "text" else _in_text(part) for part in parts)


def usage_of(usage: Mapping[str, Any] | None) -> list[Frame] | None:
    """Return the token usage of a run; `None` if it is unknown."""
    counts = {name: int(usage[key]) for key, name in _TOKENS.items() if usage and usage.get(key)}
    if not counts:
        return None
    counts["totalTokens"] = counts.get("inputTokens", 0) + counts.get("outputTokens", 0)
    return [counts]


def _part(block: Mapping[str, Any]) -> Frame:
    kind = block.get("type")
    if kind not in _PART_TYPES:
        return {"type": "text", "text": release_text(str(block.get("text", "")))}
    mime = block.get("mime_type")
    source: Frame
    if block.get("data") is not None:
        source = {
            "type": "data",
            "value": block["data"],
            "mimeType": mime or _MIME_TYPES[kind],
        }
    elif block.get("url") is not None:
        source = {"type": "url", "value": block["url"], **({"mimeType": mime} if mime else {})}
    else:
        source = {
            "type": "file",
            "value": str(block.get("file_id", "")),
            **({"mimeType": mime} if mime else {}),
        }
    name = block.get("filename")
    metadata = {"metadata": {"filename": release_text(str(name))}} if name else {}
    return {"type": _PART_TYPES[kind], "source": source, **metadata}


def _in_text(part: Frame) -> str:
    """Describe a part for a client that supports only text."""
    source = part["source"]
    if source["type"] == "url":
        return f"[{part['type']} at {release_text(source['value'])}]"
    return f"[{part['type']}, {source.get('mimeType', 'of unknown type')}, not shown here]"
