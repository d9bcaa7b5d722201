"""Write AG-UI frames with their ids, times and owners, and convert outputs and usage."""

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
"""The protocol version of a client: the first stable version, or an earlier one."""

ERROR_CODES: Final = {
    "BudgetExceeded": "budget_exceeded",
    "MaxTurnsExceeded": "max_turns_exceeded",
    "ModelBehaviorError": "model_behavior_error",
    "ModelError": "model_error",
    "RunTimeoutError": "run_timeout",
    "UserError": "user_error",
}
"""The `code` of RUN_ERROR by the class of the error; `error` for other classes."""

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
    """Writes frames and applies them to the message history.

    Args:
        version: The protocol version of the client.
        messages: The message history.

    Attributes:
        frames: The frames since the last `take`.
        now: The time of the next frames in milliseconds; `None` for no time.
        seq: The sequence number of the current event.
        is_replay: Whether the frames are repeated for a late client. They do not change the
            history.
    """

    def __init__(self, version: Version, messages: MessageHistory) -> None:
        self.version: Final = version
        self.messages: Final = messages
        self.frames: list[Frame] = []
        self.now: int | None = None
        self.seq = -1
        self.is_replay = False

    def put(self, kind: str, owner: str | None = None, **fields: Any) -> None:
        """Write a frame without the fields that are `None`."""
        frame: Frame = {"type": kind}
        for name, value in fields.items():
            if value is not None:
                frame[name] = value
        if owner is not None and self.version == "1.0":
            frame["subagentRunId"] = owner
        if self.now is not None:
            frame["timestamp"] = self.now
        if not self.is_replay:
            self.messages.apply(frame)
        self.frames.append(frame)

    def facts(self, path: Path, **more: Any) -> dict[str, Any]:
        """Return the metadata of a frame about a call, for which the protocol has no fields."""
        known = {name: value for name, value in more.items() if value is not None}
        return {"agents_tools": {**known, "path": list(path), "seq": self.seq}}

    def take(self) -> list[Frame]:
        """Return and clear the frames."""
        taken, self.frames = self.frames, []
        return taken


def wire_id(path: Path) -> str:
    """Return the id of a call for clients, unique in a run, unlike the id of the call itself."""
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in path)


def path_of(wire: str) -> Path:
    """Return the path of a call from its id for clients."""
    return tuple(part.replace("%2F", "/").replace("%25", "%") for part in wire.split("/"))


def error_of(error: str | None, *, shown: bool) -> tuple[str, str]:
    """Return the error message of a run for the client, and its code.

    Args:
        error: The error of the run, which begins with the name of its class.
        shown: Whether the client gets the message.
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
        cast("list[Any]", output) if isinstance(output, Sequence) else [output]  # a single block
    )
    parts = [_part(cast("Mapping[str, Any]", block)) for block in blocks]
    if version == "1.0" and any(part["type"] != "text" for part in parts):
        return parts
    return "\n".join(part["text"] if part["type"] == "text" else _instead(part) for part in parts)


def usage_of(usage: Mapping[str, Any] | None) -> list[Frame] | None:
    """Return the usage of a run; `None` if it is unknown."""
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
    """Return a text in place of a part that a text-only client cannot get."""
    source = part["source"]
    if source["type"] == "url":
        return f"[{part['type']} at {safe_text(source['value'])}]"
    return f"[{part['type']}, {source.get('mimeType', 'of unknown type')}, not shown here]"
