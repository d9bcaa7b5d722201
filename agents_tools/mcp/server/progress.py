"""Send the events of a call to its client as progress notifications and log messages."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agents_tools.events.channel import Channel
from agents_tools.events.kinds import NotifyStreamEvent
from agents_tools.mcp._progress_meta import EVENT_KEY, EVENTS_KEY, PROGRESS_EVENTS
from agents_tools.mcp._sdk import RawJson
from agents_tools.mcp.client.pending_requests import current_request
from agents_tools.persistence.stream.masking import EventMasker
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Iterable

    from agents_tools.events.base import Event
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import CallOutcome

    Report = Callable[["Notification"], Awaitable[None]]
    """Sends one notification."""

__all__ = ["LEVELS", "MemoryProgress", "Notification", "StreamProgress", "call_with_progress"]

logger = logging.getLogger("agents_tools.mcp")

LEVELS: Final = (
    "debug", "info", "notice", "warning", "error", "critical", "alert", "emergency",
)  # fmt: skip
"""The levels of log messages in increasing order (RFC 5424; `logging/setLevel`)."""


class Notification(NamedTuple):
    """A notification to a client.

    Attributes:
        method: The method.
        params: The params; those of progress are without the token.
    """

    method: str
    params: dict[str, Any]


_PROGRESS: Final = "notifications/progress"
_LOG: Final = "notifications/message"

_STEP: Final = 1e-6
"""The increase of progress when only the message is new: the protocol requires an increase."""
_PACE: Final = 0.01
"""Seconds between two groups of notifications.

It is also the time between the last one and the result, if it is not known whether the client has
read it. Clients in TypeScript handle a result before the notifications that arrive with it, and
then ignore these.
"""
_MAX_HOLD: Final = 1.0
"""The maximum time in seconds for which a result waits until the client has read the last one."""
_POLL: Final = 0.001
_MAX_GROUP: Final = 100
"""The number of notifications that a client without event data gets at a time."""
_MAX_READ: Final = 1_024
"""The number of notifications that are joined at a time."""
_MAX_MESSAGE: Final = 2_000
"""The number of characters of a message for a client without event data."""


async def call_with_progress(
    tool: Any, call: Call, text: str, report: Report, request: MCPRequest
) -> CallOutcome:
    """Call a tool, and send all its progress and log messages before returning its result.

    A client that reads event data gets every event. Others get messages of at most 2,000
    characters; if a burst has more than 100 reports in 10 ms, several are joined to one, with the
    last count and the texts on lines of their own. Notes (`notify`) are log messages, too, if the
    client has requested their level.

    Args:
        tool: The tool.
        call: The record of the call.
        text: The arguments as JSON text.
        report: Sends a notification.
        request: The request.
    """
    has_events = request.meta.get(EVENTS_KEY) is True
    channel = Channel()
    call.watch(channel)

    async def send() -> None:
        converter, masker = _Converter(has_events=has_events), EventMasker({})
        async for group in _each(channel) if has_events else _groups(channel):
            await send_all(converter, [one for event in group for one in masker.masked(event)])
        await send_all(converter, list(masker.release()))

    async def send_all(converter: _Converter, events: list[Event]) -> None:
        # A client that receives the events does not need the notes once more.
        level = None if has_events and request.has_progress else request.log_level
        logged = _log_messages(events, level, tool.name)
        found = converter.convert(events) if request.has_progress else []
        for one in [*logged, *(found if has_events else _joined(found))]:
            try:
                await report(one)
            except Exception:
                logger.exception("Progress of tool %r could not be sent.", tool.name)

    async with asyncio.TaskGroup() as group:
        group.create_task(send())
        try:
            return await tool.call(call, text)
        finally:
            channel.close()


async def _each(channel: Channel) -> AsyncIterator[list[Event]]:
    async for event in channel:
        yield [event]


async def _groups(channel: Channel) -> AsyncIterator[list[Event]]:
    """Yield the events of a channel: the first one at once, further ones together after a pause."""
    last = 0.0
    async for event in channel:
        group = [event]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout_at(last + _PACE):
                async for further in channel:
                    group.append(further)
                    if len(group) == _MAX_READ:
                        break
        yield group
        last = asyncio.get_running_loop().time()


def _joined(notifications: list[Notification]) -> list[Notification]:
    """Return at most 100 notifications: each one with the last count and the texts of several."""
    size = -(-len(notifications) // _MAX_GROUP) or 1
    if size == 1:
        return notifications
    joined: list[Notification] = []
    for start in range(0, len(notifications), size):
        part = [one.params for one in notifications[start : start + size]]
        texts = [params["message"] for params in part if params.get("message")]
        text = release_text("\n".join(texts), limit=_MAX_MESSAGE)
        params = {**part[-1], "message": text} if texts else part[-1]
        joined.append(Notification(_PROGRESS, params))
    return joined


def _log_messages(events: list[Event], level: str | None, logger_name: str) -> list[Notification]:
    """Return the notes among events as log messages; none below the level of the client."""
    if level not in LEVELS:
        return []
    messages: list[Notification] = []
    for event in events:
        if not isinstance(event, NotifyStreamEvent) or event.is_delta:
            continue
        own = event.level if event.level in LEVELS else "info"
        if LEVELS.index(own) >= LEVELS.index(level):
            text = release_text(event.data, limit=_MAX_MESSAGE)
            params = {"level": own, "logger": event.tag or logger_name, "data": text}
            messages.append(Notification(_LOG, params))
    return messages


class _Converter:
    """Converts events to notifications; the protocol requires increasing progress."""

    def __init__(self, *, has_events: bool) -> None:
        self._has_events = has_events
        self._progress = 0.0
        self._total: float | None = None
        self._has_count = False
        self._has_reported = False

    def convert(self, events: Iterable[Event]) -> list[Notification]:
        """Return the notifications for events, without those that are not sent."""
        return [self._converted(event) for event in events if event.type in PROGRESS_EVENTS]

    def _converted(self, event: Event) -> Notification:
        message: str | None
        if event.type == "tool_progress_event":
            current = float(cast("Any", event).current)
            self._total = cast("Any", event).total
            increased = max(current, self._progress + _STEP)
            self._progress = increased if self._has_reported else current
            self._has_count = True
            message = cast("Any", event).message
        else:
            self._progress += _STEP if self._has_count else 1
            message = _message_text(event)
        self._has_reported = True
        params: dict[str, Any] = {"progress": self._progress}
        if self._total is not None:
            params["total"] = self._total
        if message is not None:
            params["message"] = release_text(
                message, limit=None if self._has_events else _MAX_MESSAGE
            )
        if self._has_events:
            params["_meta"] = {EVENT_KEY: event.to_dict()}
        return Notification(_PROGRESS, params)


def _message_text(event: Event) -> str | None:
    """Return the text of an event for clients that show progress messages only."""
    fields: Any = event
    if event.type == "notify_stream_event":
        return str(fields.data)
    kind = f" ({fields.mime_type})" if fields.mime_type else ""
    return f"{fields.name}{kind}"


class StreamProgress:
    """Sends notifications over a stream to the client.

    Args:
        ctx: The context of the request in the SDK.
        token: The progress token of the client.
        holds: Whether the result has to wait after the last notification.
        has_read: Returns whether the client has read everything; `None` if this is not known.
    """

    def __init__(
        self, ctx: Any, token: Any, *, holds: bool, has_read: Callable[[], bool | None]
    ) -> None:
        self._ctx = ctx
        self._token = token
        self._holds = holds
        self._has_read = has_read
        self._last = 0.0

    async def __call__(self, notification: Notification) -> None:
        """Send a notification."""
        method, params = notification
        if method == _PROGRESS:
            params = {"progressToken": self._token, **params}
        await self._ctx.session.send_notification(
            RawJson(method, params), related_request_id=self._ctx.request_id
        )
        self._last = asyncio.get_running_loop().time()

    async def settle(self) -> None:
        """Wait until the result can be sent, so that the client has handled all notifications."""
        if not self._holds:
            return
        now = asyncio.get_running_loop().time
        end = self._last + _MAX_HOLD
        while (has_read := self._has_read()) is False and now() < end:  # noqa: ASYNC110
            await asyncio.sleep(_POLL)  # the system does not notify
        left = self._last + _PACE - now()
        if has_read is None and left > 0:
            await asyncio.sleep(left)


class MemoryProgress:
    """Passes notifications to a client in this process, which gets them without a token."""

    def __init__(self, ctx: Any) -> None:
        self._ctx = ctx

    async def __call__(self, notification: Notification) -> None:
        """Pass a notification to the request of this library's client, or to the SDK's."""
        request, (method, params) = current_request.get(), notification
        if method != _PROGRESS:
            await self._ctx.session.send_notification(
                RawJson(method, params), related_request_id=self._ctx.request_id
            )
        elif request is None:
            await self._ctx.session.report_progress(
                params["progress"], params.get("total"), params.get("message")
            )
        else:
            request.record_progress(params)

    async def settle(self) -> None:
        """Return at once: notifications are handled while they are passed."""
