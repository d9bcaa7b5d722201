"""Encode progress and nested calls as data parts of the message.

The protocol has neither progress nor nested calls. So a call with more than input and output has a
`data-agents-tool` part, whose id is the path of the call. The client replaces the part with each
new snapshot. Lines and text deltas are also sent as `data-agents-tool-log`, which the client does
not store.

The rate of snapshots and lines is limited for each call. It uses the timestamps of the events, so
that the same events always produce the same chunks.
"""

from __future__ import annotations

import binascii
import re
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from agents_tools.events.kinds import (
    NotifyStreamEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
)
from agents_tools.text.output import TextStream, release_json, release_text
from agents_tools.ui._format import byte_count
from agents_tools.ui.vercel.text import SERVED, drop_none, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.events.base import Event
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["DataCall", "DataCalls"]

_MAX_LINES: Final = 5
_SNAPSHOT_TEXT: Final = 500
_MAX_TEXT: Final = 10_000
_MAX_ARTIFACTS: Final = 20
_MAX_INLINE: Final = 64 * 1024
_LINK_PREFIXES: Final = ("https://", "http://")
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")


class DataCall:
    """The state of one call that the page shows.

    Attributes:
        is_shown: Whether the call has a `data-agents-tool` part.
        sent_at: The time of the last update; `None` before that.
        entries: The lines and text deltas that were not sent.
        last: The last snapshot.
        has_new_text: Whether text was streamed after the last update.
    """

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path: Final = path
        self.id: Final = wire_id(path)
        self.name = release_text(name)
        self.status = "running"
        self.agent: str | None = None
        self.input: Any = None
        self.output: str | None = None
        self.progress: Chunk | None = None
        self.lines: deque[Chunk] = deque(maxlen=_MAX_LINES)
        self.text = ""
        self.artifacts: list[Chunk] = []
        self.attempt: int | None = None
        self.duration: float | None = None
        self.is_shown = len(path) > 1
        self.sent_at: float | None = None
        self.deltas = TextStream()
        self.entries: list[Chunk] = []
        self.last: Chunk | None = None
        self.has_new_text = False

    @property
    def is_open(self) -> bool:
        """Return whether the call has not ended."""
        return self.status in {"running", "waiting"}

    def snapshot(self) -> Chunk:
        """Return the `data-agents-tool` part of the call."""
        data = drop_none(
            callId=self.id,
            parentCallId=wire_id(self.path[:-1]) or None,
            toolName=self.name,
            status=self.status,
            agent=self.agent,
            input=self.input if len(self.path) > 1 else None,
            progress=self.progress,
            lines=list(self.lines) or None,
            text=self.text[-_SNAPSHOT_TEXT:] or None,
            artifacts=list(self.artifacts) or None,
            attempt=self.attempt,
            duration=None if self.duration is None else round(self.duration, 6),
            output=self.output,
        )
        return {"type": "data-agents-tool", "id": self.id, "data": data}

    def log(self) -> Chunk | None:
        """Return the new lines and text as a transient chunk, and remove them."""
        entries, self.entries = self.entries, []
        if not entries:
            return None
        data = {"callId": self.id, "toolName": self.name, "entries": entries}
        return {"type": "data-agents-tool-log", "data": data, "transient": True}

    def add_line(self, text: str, **fields: Any) -> None:
        """Add an output line."""
        self.end_deltas()
        line = drop_none(text=text, **fields)
        self.lines.append(line)
        self.entries.append(line)

    def add_delta(self, text: str) -> None:
        """Add a text delta."""
        self._add_text(self.deltas.push(text))

    def end_deltas(self) -> None:
        """Add the text that was held back."""
        self._add_text(self.deltas.finish())

    def _add_text(self, text: str) -> None:
        if not text:
            return
        self.text = (self.text + text)[-_MAX_TEXT:]
        self.has_new_text = True
        if self.entries and self.entries[-1].get("delta"):
            self.entries[-1]["text"] += text
        else:
            self.entries.append({"text": text, "delta": True})


class DataCalls:
    """The calls of a run and their snapshots.

    Args:
        interval: The shortest time between two snapshots of one call, in seconds.
        preliminary: Whether the streamed text of a call of the agent itself is sent as its output
            until the result comes.
    """

    def __init__(self, interval: float, *, preliminary: bool) -> None:
        self._interval = interval
        self._preliminary = preliminary
        self._calls: dict[tuple[str, ...], DataCall] = {}
        self._held: dict[tuple[str, ...], DataCall] = {}
        self._files = 0

    @property
    def pending(self) -> bool:
        """Return whether snapshots are held back; see `flush`."""
        return bool(self._held)

    def get(self, path: tuple[str, ...]) -> DataCall | None:
        """Return the call with this path, if there is one."""
        return self._calls.get(path)

    def at(self, path: tuple[str, ...], name: str | None) -> DataCall:
        """Return the call with this path; create it if it is missing."""
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = DataCall(path, name or "tool")
        return call

    def is_over(self, path: tuple[str, ...]) -> bool:
        """Return whether the call or an enclosing call has ended."""
        for depth in range(1, len(path) + 1):
            call = self._calls.get(path[:depth])
            if call is not None and not call.is_open:
                return True
        return False

    def open(self) -> Iterator[DataCall]:
        """Return the calls that have not ended, innermost first."""
        return (call for call in reversed(self._calls.values()) if call.is_open)

    def update(self, event: Event, now: float) -> list[Chunk]:
        """Apply a display event to its call."""
        call = self.at(event.path, event.tool_name)
        chunks: list[Chunk] = []
        match event:
            case ToolProgressEvent(current=current, total=total, message=message):
                text = release_text(message) if message else None
                call.progress = drop_none(current=current, total=total, message=text)
            case NotifyStreamEvent(is_delta=True):
                call.add_delta(event.data)
            case NotifyStreamEvent():
                level = event.level if event.level != "info" else None
                tag = release_text(event.tag) if event.tag else None
                call.add_line(release_text(event.data), level=level, tag=tag)
            case ToolAttemptEvent():
                call.attempt = event.attempt + 1
                error = f": {release_text(event.error)}" if event.error else ""
                call.add_line(f"Attempt {event.attempt} failed{error}", level="warning")
            case ToolArtifactEvent():
                chunks = self._artifact(call, event)
            case _:
                return []
        call.is_shown = True
        return chunks + self.touch(call, now)

    def touch(self, call: DataCall, now: float, *, at_once: bool = False) -> list[Chunk]:
        """Send the changes of a call, or hold them back if the last snapshot is too recent."""
        if at_once or call.sent_at is None or now - call.sent_at >= self._interval:
            return self._send(call, now)
        self._held[call.path] = call
        return []

    def due(self, now: float) -> list[Chunk]:
        """Send the held snapshots whose interval has passed."""
        if not self._held:
            return []
        ready = [c for c in self._held.values() if now - (c.sent_at or 0.0) >= self._interval]
        return [chunk for call in ready for chunk in self._send(call, now)]

    def flush(self, now: float) -> list[Chunk]:
        """Send all held snapshots."""
        return [chunk for c in list(self._held.values()) for chunk in self._send(c, now)]

    def _send(self, call: DataCall, now: float) -> list[Chunk]:
        self._held.pop(call.path, None)
        call.sent_at = now
        log = call.log()
        chunks = [log] if log is not None else []
        if call.is_shown and (snapshot := call.snapshot()) != call.last:
            call.last = snapshot
            chunks.append(snapshot)
        if self._preliminary and call.has_new_text and call.is_open and len(call.path) == 1:
            chunks.append(_preliminary_output(call))
        call.has_new_text = False
        return chunks

    def _artifact(self, call: DataCall, event: ToolArtifactEvent) -> list[Chunk]:
        """Add an artifact to its call. Send it as its own part if a browser can open it."""
        self._files += 1
        name, kind = release_text(event.name), _media_type(event)
        url = _url_of(event)
        size = None if event.data is None else byte_count(event.data)
        if len(call.artifacts) < _MAX_ARTIFACTS:
            link = url if url is not None and not url.startswith("data:") else None
            call.artifacts.append(drop_none(name=name, mediaType=kind, size=size, url=link))
        if url is None:
            return []
        if kind is not None:
            return [{"type": "file", "url": url, "mediaType": kind}]
        return [
            {"type": "source-url", "sourceId": f"artifact-{self._files}", "url": url, "title": name}
        ]


def _preliminary_output(call: DataCall) -> Chunk:
    """Return the text of a call as its output until the result replaces it."""
    return {
        "type": "tool-output-available",
        "toolCallId": call.id,
        "output": call.text,
        **SERVED,
        "preliminary": True,
    }


def _url_of(event: ToolArtifactEvent) -> str | None:
    """Return the URL of an artifact; `None` if it is too large or its link is not http(s)."""
    if event.uri is not None:
        # Other URLs can be scripts or files on the disk of the server.
        return release_json(event.uri) if event.uri.lower().startswith(_LINK_PREFIXES) else None
    data = event.data
    kind = _media_type(event)
    if data is None or len(data) > _MAX_INLINE or kind is None:
        return None
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    encoded = binascii.b2a_base64(content, newline=False).decode("ascii")
    return f"data:{kind};base64,{encoded}"


def _media_type(event: ToolArtifactEvent) -> str | None:
    kind = event.mime_type
    return kind if kind is not None and _MEDIA_TYPE.fullmatch(kind) else None
