"""What adapters over HTTP share: the tools of a request, addresses, figures, and small readers."""

from __future__ import annotations

import asyncio
import binascii
import contextlib
import logging
import math
import re
import time
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, cast
from weakref import WeakSet

from agents_tools.errors import UserError, UserValueError
from agents_tools.outputs import ToolOutputFileContent, ToolOutputText
from agents_tools.wire._project import project

if TYPE_CHECKING:
    from collections.abc import Callable

    from agents_tools.errors import ModelError
    from agents_tools.hosted import HostedTool
    from agents_tools.outputs import ContentBlock
    from agents_tools.tool import FunctionTool

__all__ = [
    "Answer",
    "Offer",
    "Offers",
    "base64_text",
    "checked_url",
    "count",
    "followed",
    "host_of",
    "merged",
    "retry_after",
    "shown_as_text",
    "text",
]

_log = logging.getLogger("agents_tools")
_MOST_OFFERS = 8
_warned: WeakSet[object] = WeakSet()


@dataclass(frozen=True, slots=True)
class Offer:
    """The tools of a request, as the provider is told about them.

    Attributes:
        tools: As the request has them.
        wire: What the provider is told; a tool that cannot be told is left out.
        names: The name of the tool behind each element of `wire`.
    """

    tools: tuple[object, ...]
    wire: list[dict[str, Any]]
    names: list[str]


class Offers:
    """Tells a provider about tools; for the same tuple of tools the work is done once.

    Args:
        provider: The wire projection.
        hosted: Describes a hosted tool.
        search: The provider's own search, offered where tools are loaded only when it finds them.
    """

    __slots__ = ("_hosted", "_kept", "_provider", "_search")

    def __init__(
        self,
        provider: str,
        hosted: Callable[[HostedTool], dict[str, Any]],
        search: Mapping[str, Any] | None = None,
    ) -> None:
        self._provider = provider
        self._hosted = hosted
        self._search = search
        self._kept: tuple[Offer, ...] = ()

    def of(self, tools: tuple[FunctionTool[..., Any] | HostedTool, ...]) -> Offer:
        """Give the tools as the provider is told about them."""
        for offer in self._kept:
            if offer.tools is tools:
                return offer
        wire: list[dict[str, Any]] = []
        names: list[str] = []
        for tool in tools:
            told = self._told(tool)
            if told is not None:
                wire.append(told)
                names.append(tool.name)
        if self._search is not None and _needs_search(wire):
            wire.append(dict(self._search))
            names.append(self._search.get("name", self._search["type"]))
        offer = Offer(tools, wire, names)
        # Agents that call each other take turns with one model: a few offers are kept.
        self._kept = (offer, *self._kept[: _MOST_OFFERS - 1])
        return offer

    def _told(self, tool: Any) -> dict[str, Any] | None:
        if hasattr(tool, "to_responses"):
            return self._hosted(tool)
        try:
            return project(tool, self._provider).wire
        except UserError as error:
            _warn_once(tool, f"Tool {tool.name!r} is left out: {error}")
            return None


def _needs_search(wire: list[dict[str, Any]]) -> bool:
    """Whether there are tools to be found, and nothing yet that finds them."""
    return any(told.get("defer_loading") for told in wire) and not any(
        str(told.get("type", "")).startswith("tool_search") for told in wire
    )


def _warn_once(tool: object, said: str) -> None:
    if tool not in _warned:
        _warned.add(tool)
        _log.warning(said)
        warnings.warn(said, stacklevel=2)


def checked_url(url: str | None, where: str) -> str | None:
    """Give an address back if it is one; `None` for none.

    Raises:
        UserError: It is something else.
    """
    if url and not url.startswith(("http://", "https://")):
        raise UserValueError(
            f"{where}: expected an address that starts with http:// or https://, got {url!r:.80}."
        )
    return url or None


def host_of(url: object) -> str:
    """Give the host in an address."""
    found = re.match(r"https?://(?:[^/@]*@)?([^/?#]+)", str(url))
    return found[1].lower() if found else ""


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Give the seconds that a provider asks to wait: as a number, in milliseconds, or as a date."""
    seconds = _number(headers.get("retry-after-ms"))
    if seconds is not None:
        seconds /= 1000
    else:
        given = headers.get("retry-after")
        seconds = _number(given)
        if seconds is None and given:
            with contextlib.suppress(ValueError, TypeError):
                seconds = parsedate_to_datetime(given).timestamp() - time.time()
    return None if seconds is None or not math.isfinite(seconds) else max(0.0, seconds)


def _number(value: str | None) -> float | None:
    try:
        return None if value is None else float(value)
    except ValueError:
        return None


def base64_text(data: bytes) -> str:
    """Give bytes as base64 text."""
    return binascii.b2a_base64(data, newline=False).decode()


def count(value: object) -> int:
    """Give a figure, or 0 for anything else."""
    return value if type(value) is int and value > 0 else 0


def text(value: object) -> str:
    """Give a text, or the empty one for anything else."""
    return value if isinstance(value, str) else ""


def merged(body: dict[str, Any], extra: Mapping[str, Any] | None) -> dict[str, Any]:
    """Lay the caller's own fields over a request; objects in both are joined."""
    for name, value in (extra or {}).items():
        own = body.get(name)
        if isinstance(value, Mapping) and isinstance(own, dict):
            body[name] = {**cast("dict[str, Any]", own), **cast("Mapping[str, Any]", value)}
        else:
            body[name] = value
    body.pop("stream", None)  # always so, or the answer could not be read
    return body


def shown_as_text(block: ContentBlock) -> str:
    """Say in words what a block holds that a model does not take as it is: text in full."""
    if isinstance(block, ToolOutputText):
        return block.text
    name = getattr(block, "filename", None) or block.type
    if block.data is None:
        return f"[{name}: {block.url or block.file_id}]"
    if isinstance(block, ToolOutputFileContent):
        with contextlib.suppress(UnicodeDecodeError):
            words = block.data.decode()
            if "\0" not in words:
                return f"[{block.filename}]\n{words}" if block.filename else words
    return f"[{name}: {len(block.data):,} bytes of {block.mime_type}, not shown]"


class Answer(Protocol):
    """Puts an answer together from the events of its stream."""

    whole: bool
    """Whether everything has come that the answer needs."""

    def take(self, event: Any) -> None:
        """Take the next event."""
        ...


_LINGER = 2.0
"""Seconds of silence at which a whole answer is not waited upon any longer."""
_END = object()


async def followed(
    stream: Any,
    answer: Answer,
    *,
    broken: Callable[[Exception], ModelError],
    cut: Callable[[str], ModelError],
) -> None:
    """Hand the events of a stream over as they come.

    Args:
        stream: The stream.
        answer: Takes the events.
        broken: Gives the error for what the client raised.
        cut: Gives the error for a stream that ended too early, from the reason.

    Raises:
        ModelError: The stream ended before the answer was whole.
    """
    events = aiter(stream)
    while True:
        try:
            # A whole answer is read to the end all the same: figures follow, and the connection
            # can be used again. What breaks then breaks no answer.
            async with asyncio.timeout(_LINGER if answer.whole else None):
                event = await anext(events, _END)
        except Exception as error:  # the client lets pass what its parsers and sockets raise
            if answer.whole:
                return
            raise broken(error) from error
        if event is _END:
            if answer.whole:
                return
            raise cut("it ended before the answer was complete")
        answer.take(event)
