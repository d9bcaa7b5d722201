"""Prepare chunks and arguments for a page."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final, TypeAlias
from urllib.parse import quote

from agents_tools.server.safe_json import written
from agents_tools.text.output import release_json, release_text

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = [
    "DONE",
    "HEADERS",
    "LATEST",
    "SERVED",
    "WITH_APPROVALS",
    "Chunk",
    "drop_none",
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


def frame(chunk: Mapping[str, Any]) -> str:
    """Return one chunk as a server-sent event."""
    # JSON has no raw line ends, so a chunk is always one line.
    return f"data: {written(release_json(chunk)).decode()}\n\n"


def parse_arguments(arguments: str) -> Any:
    """Parse the arguments of a call for display; return the cleaned text if it is not JSON."""
    try:
        return release_json(json.loads(arguments or "{}"))
    except (ValueError, RecursionError):
        return release_text(arguments)


def drop_none(**fields: Any) -> Chunk:
    """Return the fields that are not `None` as an object, because the SDK refuses null."""
    return {name: value for name, value in fields.items() if value is not None}


def wire_id(path: Sequence[str]) -> str:
    """Return the path of a call as its id, unique among agents that use the same call ids."""
    return "/".join(quote(part, safe="-._~:|+=@, ", errors="replace") for part in path)
