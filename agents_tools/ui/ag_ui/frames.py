"""Writes single AG-UI frames: their ids, times, owners and the parts that results consist of."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, cast

from agents_tools.text.escape import safe_text

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
"""What a client understands: the first stable version, or one of those before it."""

ERROR_CODES: Final = {
    "BudgetExceeded": "budget_exceeded",
    "MaxTurnsExceeded": "max_turns_exceeded",
    "ModelBehaviorError": "model_behavior_error",
    "ModelError": "model_error",
    "RunTimeoutError": "run_timeout",
    "UserError": "user_error",
}
"""The `code` of RUN_ERROR by the class that a run ended with; others are `error`."""

_PLAIN_CODE = "error"
_PARTS = {"image": "image", "audio": "audio", "file": "document"}
_TYPES = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}
_FIELDS = {
    "input_tokens": "inputTokens",
    "output_tokens": "outputTokens",
    "cached_input_tokens": "cachedInputTokens",
    "reasoning_tokens": "reasoningTokens",
}


class FrameWriter:
    """Makes frames and remembers what they add up to.

    Args:
        version: What the client understands.
        messages: Follows the conversation.

    Attributes:
        frames: What was written since they were last taken.
        now: The time in milliseconds that the next frames carry; `None` for none.
        seq: The place in the run of what is being told.
        again: Whether what is written was told before, to somebody else.
    """

    def __init__(self, version: Version, messages: MessageHistory) -> None:
        self.version: Final = version
        self.messages: Final = messages
        self.frames: list[Frame] = []
        self.now: int | None = None
        self.seq = -1
        self.again = False

    def put(self, kind: str, owner: str | None = None, **fields: Any) -> None:
        """Write a frame; `None` among the fields stands for one that is left out."""
        frame: Frame = {"type": kind}
        for name, value in fields.items():
            if value is not None:
                frame[name] = value
        if owner is not None and self.version == "1.0":
            frame["subagentRunId"] = owner
        if self.now is not None:
            frame["timestamp"] = self.now
        if not self.again:
            self.messages.apply(frame)
        self.frames.append(frame)

    def facts(self, path: Path, **more: Any) -> dict[str, Any]:
        """Return the metadata of a frame about a call: what the protocol has no field for."""
        given = {name: value for name, value in more.items() if value is not None}
        return {"agents_tools": {**given, "path": list(path), "seq": self.seq}}

    def take(self) -> list[Frame]:
        """Return the frames that were written, and begin again."""
        taken, self.frames = self.frames, []
        return taken


def wire_id(path: Path) -> str:
    """Return the id of a call on the wire: unique in a run, where call ids alone are not."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def path_of(wire: str) -> Path:
    """Return the path that an id was made of."""
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in wire.split("/"))


def error_of(error: str | None, *, shown: bool) -> tuple[str, str]:
    """Return what is told of the error of a run, and its code.

    Args:
        error: What the run says of it, with the name of its class in front.
        shown: Whether its own words are for the client.
    """
    text = error or ""
    found = re.match(r"([A-Za-z_][\w.]*): ?(.*)", text, re.DOTALL)
    kind, words = (found[1], found[2]) if found else ("", text)
    code = ERROR_CODES.get(kind.rpartition(".")[2], _PLAIN_CODE)
    if not shown:
        return "The run failed.", code
    return safe_text(words or text or "The run failed."), code


def result_content(output: object, version: Version) -> str | list[Frame]:
    """Return the output of a call as the content of a tool message."""
    if isinstance(output, str):
        return safe_text(output)
    blocks: list[Any] = (
        cast("list[Any]", output) if isinstance(output, Sequence) else [output]  # a lone block
    )
    parts = [_part(cast("Mapping[str, Any]", block)) for block in blocks]
    if version == "1.0" and any(part["type"] != "text" for part in parts):
        return parts
    return "\n".join(part["text"] if part["type"] == "text" else _instead(part) for part in parts)


def usage_of(usage: Mapping[str, Any] | None) -> list[Frame] | None:
    """Return what a run has used; `None` where nothing is known of it."""
    counted = {name: int(usage[key]) for key, name in _FIELDS.items() if usage and usage.get(key)}
    if not counted:
        return None
    counted["totalTokens"] = counted.get("inputTokens", 0) + counted.get("outputTokens", 0)
    return [counted]


def _part(block: Mapping[str, Any]) -> Frame:
    kind = block.get("type")
    if kind not in _PARTS:
        return {"type": "text", "text": safe_text(str(block.get("text", "")))}
    mime = block.get("mime_type")
    source: Frame
    if block.get("data") is not None:
        source = {"type": "data", "value": block["data"], "mimeType": mime or _TYPES[kind]}
    elif block.get("url") is not None:
        source = {"type": "url", "value": block["url"], **({"mimeType": mime} if mime else {})}
    else:
        source = {
            "type": "file",
            "value": str(block.get("file_id", "")),
            **({"mimeType": mime} if mime else {}),
        }
    name = block.get("filename")
    named = {"metadata": {"filename": safe_text(str(name))}} if name else {}
    return {"type": _PARTS[kind], "source": source, **named}


def _instead(part: Frame) -> str:
    """Say in words what a client that takes only text does not get."""
    source = part["source"]
    if source["type"] == "url":
        return f"[{part['type']} at {safe_text(source['value'])}]"
    return f"[{part['type']}, {source.get('mimeType', 'of unknown type')}, not shown here]"
