"""Shared code of the HTTP model adapters: tool definitions, URLs and streamed responses."""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import json
import logging
import math
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakSet

from agents_tools.content.outputs import ToolOutputFileContent, ToolOutputText
from agents_tools.errors import UserError, UserValueError
from agents_tools.text.escape import shorten
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterable

    from agents_tools.agents.hosted.base import HostedTool
    from agents_tools.content.outputs import ContentBlock
    from agents_tools.errors import ModelError
    from agents_tools.tool.tool import FunctionTool

__all__ = [
    "RefusedReasoning",
    "StreamedResponse",
    "ToolDefinitionCache",
    "ToolDefinitions",
    "base64_text",
    "block_as_text",
    "check_url",
    "count",
    "host_of",
    "merge_extra",
    "read_stream",
    "retry_after",
    "text",
]

_log = logging.getLogger("agents_tools")
_CACHE_SIZE = 8
_warned: WeakSet[object] = WeakSet()


@dataclass(frozen=True, slots=True)
class ToolDefinitions:
    """The tools of a request, in the format of the provider.

    Attributes:
        tools: The tools of the request.
        wire: Their definitions for the provider, without tools that it does not support.
        names: The name of the tool of each definition in `wire`.
    """

    tools: tuple[object, ...]
    wire: list[dict[str, Any]]
    names: list[str]


class ToolDefinitionCache:
    """Converts tools to the format of a provider, once for the same tuple of tools.

    Args:
        provider: The name of the format.
        hosted: Returns the definition of a hosted tool.
        search: The provider's own tool search, added if there are deferred tools.
    """

    __slots__ = ("_cached", "_hosted", "_provider", "_search")

    def __init__(
        self,
        provider: str,
        hosted: Callable[[HostedTool], dict[str, Any]],
        search: Mapping[str, Any] | None = None,
    ) -> None:
        self._provider = provider
        self._hosted = hosted
        self._search = search
        self._cached: tuple[ToolDefinitions, ...] = ()

    def get(self, tools: tuple[FunctionTool[..., Any] | HostedTool, ...]) -> ToolDefinitions:
        """Return the definitions of tools."""
        for definitions in self._cached:
            if definitions.tools is tools:
                return definitions
        wire: list[dict[str, Any]] = []
        names: list[str] = []
        for tool in tools:
            definition = self._definition(tool)
            if definition is not None:
                wire.append(definition)
                names.append(tool.name)
        if self._search is not None and _needs_search(wire):
            wire.append(dict(self._search))
            names.append(self._search.get("name", self._search["type"]))
        definitions = ToolDefinitions(tools, wire, names)
        # Agents that call each other use one model in turns, so the last few are cached.
        self._cached = (definitions, *self._cached[: _CACHE_SIZE - 1])
        return definitions

    def _definition(self, tool: Any) -> dict[str, Any] | None:
        if hasattr(tool, "to_responses"):
            return self._hosted(tool)
        try:
            return project(tool, self._provider).wire
        except UserError as error:
            _warn_once(tool, f"Tool {tool.name!r} is left out: {error}")
            return None


def _needs_search(wire: list[dict[str, Any]]) -> bool:
    """Return whether there are deferred tools and no tool search yet."""
    return any(definition.get("defer_loading") for definition in wire) and not any(
        str(definition.get("type", "")).startswith("tool_search") for definition in wire
    )


def _warn_once(tool: object, message: str) -> None:
    if tool not in _warned:
        _warned.add(tool)
        _log.warning(message)
        warnings.warn(message, stacklevel=2)


def check_url(url: str | None, option: str) -> str | None:
    """Return a valid URL unchanged, and `None` for an empty one.

    Raises:
        UserError: The URL does not start with http:// or https://.
    """
    if url and not url.startswith(("http://", "https://")):
        raise UserValueError(
            f"{option}: expected a URL that starts with http:// or https://, got {url!r:.80}."
        )
    return url or None


def host_of(url: object) -> str:
    """Return the host of a URL in lower case; an empty string if there is none."""
    match = re.match(r"https?://(?:[^/@]*@)?([^/?#]+)", str(url))
    return match[1].lower() if match else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Return the wait in seconds that a provider requests; `None` if it requests none.

    The headers contain milliseconds, seconds, or a date.
    """
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    else:
        value = headers.get("retry-after")
        seconds = _number(value)
        if seconds is None and value:
            with contextlib.suppress(ValueError, TypeError):
                seconds = parsedate_to_datetime(value).timestamp() - time.time()
    return None if seconds is None or not math.isfinite(seconds) else max(0.0, seconds)


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def base64_text(data: bytes) -> str:
    """Return bytes as base64 text."""
    return binascii.b2a_base64(data, newline=False).decode()


def count(value: object) -> int:
    """Return a positive integer, or 0 for anything else."""
    return value if type(value) is int and value > 0 else 0


def text(value: object) -> str:
    """Return a string, or an empty one for anything else."""
    return value if isinstance(value, str) else ""


def merge_extra(body: dict[str, Any], extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Merge the caller's extra fields into a request body; nested objects are merged one level."""
    for name, value in (extra or {}).items():
        current = body.get(name)
        if isinstance(value, Mapping) and isinstance(current, dict):
            body[name] = {**cast("dict[str, Any]", current), **cast("Mapping[str, Any]", value)}
        else:
            body[name] = value
    body.pop("stream", None)  # the adapters always stream
    return body


def block_as_text(block: ContentBlock) -> str:
    """Return the text of a block that the model does not accept, or a description of it."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None) or block.type
    if block.data is None:
        return f"[{name}: {block.url or block.file_id}]"
    if isinstance(block, ToolOutputFileContent):
        with contextlib.suppress(UnicodeDecodeError):
            content = block.data.decode()
            if "\0" not in content:
                return f"[{block.filename}]\n{content}" if block.filename else content
    return f"[{name}: {len(block.data):,} bytes of {block.mime_type}, not shown]"


class RefusedReasoning:
    """Remembers reasoning that a provider refused, since another account or provider wrote it.

    Each later request of the conversation would contain it, be refused and have to be repeated.
    """

    __slots__ = ("_hashes",)

    def __init__(self) -> None:
        self._hashes: dict[int, None] = {}

    def __contains__(self, value: object) -> bool:
        """Return whether the provider refused reasoning with this encrypted text or signature."""
        return hash(value) in self._hashes

    def update(self, values: Iterable[str]) -> None:
        """Add the encrypted texts or signatures of reasoning; the oldest are forgotten."""
        self._hashes |= dict.fromkeys(map(hash, values))
        for value in list(self._hashes)[:-_MOST_REFUSED]:
            del self._hashes[value]


_MOST_REFUSED = 10_000


class StreamedResponse(Protocol):
    """Builds a response from the events of its stream."""

    is_complete: bool
    """Whether the response has arrived completely."""

    def process(self, event: Any) -> None:
        """Process the next event."""
        ...

    def process_body(self, body: dict[str, Any]) -> None:
        """Process the JSON body of a server that does not stream."""
        ...


_TRAILING_TIMEOUT = 2.0
"""Seconds to wait for further events after a response is complete."""
_END = object()


async def read_stream(
    stream: Any,
    answer: StreamedResponse,
    *,
    exception_error: Callable[[Exception], ModelError],
    early_end_error: Callable[[str], ModelError],
) -> None:
    """Pass the events of a stream to a response until the stream ends.

    Some servers and proxies answer with one JSON object in place of a stream. It is used if it is
    a complete response.

    Args:
        stream: The stream.
        answer: Processes the events.
        exception_error: Returns the error for an exception of the client.
        early_end_error: Returns the error for a stream that ended too early, from the reason.

    Raises:
        ModelError: The stream ended before the response was complete, or an event is too large.
    """
    size = _EventSize(stream)
    events = aiter(stream)
    while True:
        try:
            # A complete response is read to the end: usage figures follow, and the connection can
            # be reused. An error at this point does not affect the response.
            async with asyncio.timeout(_TRAILING_TIMEOUT if answer.is_complete else None):
                event = await anext(events, _END)
        except Exception as error:  # the client does not wrap errors of its parsers and sockets
            if answer.is_complete:
                return
            if size.is_exceeded:
                too_large = early_end_error(f"an event has more than {_MAX_EVENT >> 20} MiB")
                too_large.retryable = False
                raise too_large from None
            raise exception_error(error) from error
        if event is _END:
            if not answer.is_complete:
                _read_body(size.start, answer, early_end_error)
            return
        size.begin()
        answer.process(event)


def _read_body(
    body: bytes, answer: StreamedResponse, early_end_error: Callable[[str], ModelError]
) -> None:
    """Pass the body of a stream without events to a response."""
    value: object = None
    with contextlib.suppress(ValueError, RecursionError):
        value = json.loads(body)
    if isinstance(value, dict):
        answer.process_body(cast("dict[str, Any]", value))
    if answer.is_complete:
        return
    reason = "it ended before the response was complete"
    if body.strip():
        shown = shorten(body[:_MOST_SHOWN].decode(errors="replace").strip(), 300)
        reason = f"expected a stream of events, got {shown}"
    raise early_end_error(reason)


_MOST_SHOWN = 1_000
"""The bytes of an unexpected body that are decoded for an error."""
_MAX_EVENT = 32 << 20
"""The largest event of a stream, in bytes after decompression: about ten large images."""


class _EventSize:
    """Limits how many bytes of a stream arrive without an event, and keeps those before the first.

    The client collects an event until its end, so a few bytes that are decompressed to a line
    without an end would fill the memory.

    Args:
        stream: The stream of a client. A stream without an HTTP response is not limited.
    """

    __slots__ = ("_pieces", "_size")

    def __init__(self, stream: Any) -> None:
        self._size = 0
        self._pieces: list[bytes] | None = []
        response: Any = getattr(stream, "response", None)
        if response is not None:
            # The clients have no public place to see the bytes; they read them with this method.
            response.aiter_bytes = partial(self._count, response.aiter_bytes)

    @property
    def is_exceeded(self) -> bool:
        """Whether the current event is too large."""
        return self._size > _MAX_EVENT

    @property
    def start(self) -> bytes:
        """The bytes that have arrived, as long as there was no event."""
        return b"".join(self._pieces or ())

    def begin(self) -> None:
        """Begin with the next event."""
        self._size = 0
        self._pieces = None

    async def _count(self, read: Callable[[], AsyncIterator[bytes]]) -> AsyncIterator[bytes]:
        async for piece in read():
            self._size += len(piece)
            if self.is_exceeded:
                raise OverflowError
            if self._pieces is not None:
                self._pieces.append(piece)
            yield piece
