"""Text and JSON values in the form in which people may see them, whole or in pieces."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias, cast
from urllib.parse import quote

from agents_tools._text import safe_text
from agents_tools.ui._written import written

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
    "frame",
    "given",
    "parsed",
    "shown",
    "wire_id",
]

Chunk: TypeAlias = dict[str, Any]
"""One chunk of a UI message stream, as a JSON object."""

HEADERS: Final = {"x-vercel-ai-ui-message-stream": "v1"}
"""The header of a response with a UI message stream, besides those of every event stream."""

DONE: Final = "data: [DONE]\n\n"
"""The last frame of a stream."""

WITH_APPROVALS: Final = 6
"""The first version of the SDK that knows approvals."""

LATEST: Final = 7
"""The newest version of the SDK, which can take back a step (from 7.0.70 on)."""

SERVED: Final = {"dynamic": True, "providerExecuted": True}
"""What every chunk of a tool carries.

`dynamic`, because the client application has no types for our tools; it stands on all chunks, for
version 5 keeps two parts of one call if it stands on some.

`providerExecuted`, because the call is made here. Without it the client's `onToolCall` would be
asked to run our tool, and `sendAutomaticallyWhen: lastAssistantMessageIsCompleteWithToolCalls`
would send the finished message back again. Approvals are answered all the same:
`lastAssistantMessageIsCompleteWithApprovalResponses` looks at the state of the parts alone.
"""

_INTRODUCERS = re.compile(r"[\x1b\x90\x98\x9b\x9d-\x9f]")
_LONGEST_HELD = 256
_DEEPEST = 100


def frame(chunk: Mapping[str, Any]) -> str:
    """Write one chunk as a frame of an event stream."""
    # JSON has no raw line ends, so one line always is one frame.
    return f"data: {written(chunk).decode()}\n\n"


class SafeDeltas:
    """Makes a text safe to show that comes in pieces.

    What acts on a terminal may be cut in two by the pieces. So from the character on that begins
    such a sequence the text is held back until it is long enough to be judged.
    """

    def __init__(self) -> None:
        self._held = ""

    def push(self, delta: str) -> str:
        """Take the next piece and give what can be shown now."""
        text = self._held + delta
        start = _INTRODUCERS.search(text)
        if start is None:
            self._held = ""
            return safe_text(text)
        if len(text) - start.start() > _LONGEST_HELD:
            self._held = ""
            return safe_text(text)
        self._held = text[start.start() :]
        return safe_text(text[: start.start()])

    def rest(self) -> str:
        """Give what was held back: nothing more comes."""
        text, self._held = self._held, ""
        return safe_text(text)


def shown(value: Any, depth: int = 0) -> Any:
    """Copy a JSON value with every text in it safe to show."""
    if isinstance(value, str):
        return safe_text(value)
    if isinstance(value, (dict, list, tuple)) and depth >= _DEEPEST:
        return "…"
    if isinstance(value, dict):
        items = cast("Mapping[Any, Any]", value).items()
        return {safe_text(str(key)): shown(item, depth + 1) for key, item in items}
    if isinstance(value, (list, tuple)):
        return [shown(item, depth + 1) for item in cast("Sequence[Any]", value)]
    return value


def parsed(arguments: str) -> Any:
    """Read the arguments of a call for people; what is no JSON stays the text that it is."""
    try:
        return shown(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        return safe_text(arguments)


def given(**fields: Any) -> Chunk:
    """Make an object of those fields that have a value: the SDK refuses a stream with a null."""
    return {name: value for name, value in fields.items() if value is not None}


def wire_id(path: Sequence[str]) -> str:
    """Name a call by its path, so that calls of equal ids in different agents stay apart."""
    return "/".join(quote(part, safe="-._~:|+=@, ", errors="replace") for part in path)
