"""Prepare text and JSON values for a page: escape unsafe characters, also in deltas."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import quote

from agents_tools.server.safe_json import written
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "DONE",
    "HEADERS",
    "LATEST",
    "SERVED",
    "WITH_APPROVALS",
    "Chunk",
    "SafeDeltas",
    "drop_none",
    "escape_value",
    "frame",
    "parse_arguments",
    "wire_id",
]

Chunk: TypeAlias = dict[str, Any]
"""One chunk of a UI message stream, as a JSON object."""

HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
"""The extra header of a response with a UI message stream."""

DONE: Final = "data: [DONE]\n\n"
"""The last frame of a stream."""

WITH_APPROVALS: Final = 6
"""The first version of the SDK with approvals."""

LATEST: Final = 7
"""The newest version of the SDK, which can reset a step (from 7.0.70 on)."""

SERVED: Final = {"dynamic": True, "providerExecuted": True}
"""The fields of every chunk of a tool.

`dynamic`, because the client application has no types for the tools. It is set on all chunks:
version 5 shows two parts for one call if only some chunks have it.

`providerExecuted`, because the call runs on the server. Without it the client's `onToolCall` would
be called to run the tool, and
`sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls` would send the finished message
again. Approvals still work, because `lastAssistantMessageIsCompleteWithApprovalResponses` checks
only the state of the parts.
"""

_INTRODUCERS = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_MAX_HELD = 256
_MAX_DEPTH = 100


def frame(chunk: Mapping[str, Any]) -> str:
    """Return one chunk as a server-sent event."""
    # JSON has no raw line ends, so a chunk is always one line.
    return f"data: {written(chunk).decode()}\n\n"


class SafeDeltas:
    """Escapes unsafe characters in a text that comes as deltas.

    An escape sequence can be split between deltas. So the text is held back from the character that
    begins a sequence until there is enough text to recognize it.
    """

    def __init__(self) -> None:
        self._held = ""

    def push(self, delta: str) -> str:
        """Add a delta and return the text that can be shown."""
        text = self._held + delta
        start = _INTRODUCERS.search(text)
        if start is None:
            self._held = ""
            return release_text(text)
        if len(text) - start.start() > _MAX_HELD:
            self._held = ""
            return release_text(text)
        self._held = text[start.start() :]
        return release_text(text[: start.start()])

    def rest(self) -> str:
        """Return the held text, because the text has ended."""
        text, self._held = self._held, ""
        return release_text(text)


def escape_value(value: Any, depth: int = 0) -> Any:
    """Return a copy of a JSON value with unsafe characters escaped in all texts."""
    if isinstance(value, str):
        return release_text(value)
    if isinstance(value, (dict, list, tuple)) and depth >= _MAX_DEPTH:
        return "…"
    if isinstance(value, dict):
        items = cast("Mapping[Any, Any]", value).items()
        return {release_text(str(key)): escape_value(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [escape_value(item, depth + 1) for item in cast("Sequence[Any]", value)]
    return value


def parse_arguments(arguments: str) -> Any:
    """Parse the arguments of a call for display; return the escaped text if it is not JSON."""
    try:
        return escape_value(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        return release_text(arguments)


def drop_none(**fields: Any) -> Chunk:
    """Return the fields that are not `None` as an object, because the SDK refuses null."""
    return {name: value for name, value in fields.items() if value is not None}


def wire_id(path: Sequence[str]) -> str:
    """Return the path of a call as its id, unique among agents that use the same call ids."""
    return "/".join(quote(part, safe="-._~:|+=@, ", errors="replace") for part in path)
