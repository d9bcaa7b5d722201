"""Report the progress and nested calls of tools as data parts of the message.

The protocol has neither progress nor nested calls. So a call with more than an input and an output
has one `data-agents-tool` part. Its id is the path of the call, and each snapshot replaces the one
before. New lines and text deltas are also sent as `data-agents-tool-log`, which the client passes
on but does not store.

The rate of snapshots for each call is limited by the times of the events, so the same events always
produce the same chunks.
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
from agents_tools.text.escape import safe_text
from agents_tools.ui.vercel.text import SERVED, SafeDeltas, given, shown, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.events.base import Event
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["DataCall", "DataCalls"]

_LINES: Final = 5
_TAIL: Final = 500
_PREVIEW: Final = 10_000
_ARTIFACTS: Final = 20
_INLINE: Final = 64 * 1024
_LINKS: Final = ("https://", "http://")
_MEDIA_TYPE: Final = re.compile(r"[\w.+-]+/[\w.+-]+")


class DataCall:
    """The state of one call for its data part."""

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path: Final = path
        self.id: Final = wire_id(path)
        self.name = safe_text(name)
        self.status = "running"
        self.agent: str | None = None
        self.input: Any = None
        self.output: str | None = None
        self.progress: Chunk | None = None
        self.lines: deque[Chunk] = deque(maxlen=_LINES)
        self.text = ""
        self.artifacts: list[Chunk] = []
        self.attempt: int | None = None
        self.duration: float | None = None
        self.is_shown = len(path) > 1
        self.sent: float | None = None
        self.safe = SafeDeltas()
        self.fresh: list[Chunk] = []
        self.last: Chunk | None = None
        self.grown = False

    @property
    def is_open(self) -> bool:
        """Return whether the call has not ended."""
        return self.status in {"running", "waiting"}

    def snapshot(self) -> Chunk:
        """Return the state as a data part."""
        data = given(
            callId=self.id,
            parentCallId=wire_id(self.path[:-1]) or None,
            toolName=self.name,
            status=self.status,
            agent=self.agent,
            input=self.input if len(self.path) > 1 else None,
            progress=self.progress,
            lines=list(self.lines) or None,
            text=self.text[-_TAIL:] or None,
            artifacts=list(self.artifacts) or None,
            attempt=self.attempt,
            durationMs=None if self.duration is None else round(self.duration * 1000),
            output=self.output,
        )
        return {"type": "data-agents-tool", "id": self.id, "data": data}

    def log(self) -> Chunk | None:
        """Return the output since the last time as a transient part."""
        entries, self.fresh = self.fresh, []
        if not entries:
            return None
        data = {"callId": self.id, "toolName": self.name, "entries": entries}
        return {"type": "data-agents-tool-log", "data": data, "transient": True}

    def say(self, text: str, **more: Any) -> None:
        """Add an output line."""
        line = given(text=text, **more)
        self.lines.append(line)
        self.fresh.append(line)

    def piece(self, text: str) -> None:
        """Add a text delta."""
        text = self.safe.push(text)
        if not text:
            return
        self.text = (self.text + text)[-_PREVIEW:]
        self.grown = True
        if self.fresh and self.fresh[-1].get("delta"):
            self.fresh[-1]["text"] += text
        else:
            self.fresh.append({"text": text, "delta": True})


class DataCalls:
    """The calls of a run, and the snapshots that the rate limit holds back.

    Args:
        interval: The shortest time between two snapshots of a call, in seconds.
        preliminary: Whether streamed text of the agent's own calls is sent as preliminary output.
    """

    def __init__(self, interval: float, *, preliminary: bool) -> None:
        self._interval = interval
        self._preliminary = preliminary
        self._calls: dict[tuple[str, ...], DataCall] = {}
        self._waiting: dict[tuple[str, ...], DataCall] = {}
        self._files = 0

    @property
    def pending(self) -> bool:
        """Return whether a snapshot is held back."""
        return bool(self._waiting)

    def get(self, path: tuple[str, ...]) -> DataCall | None:
        """Return a call if it is known."""
        return self._calls.get(path)

    def at(self, path: tuple[str, ...], name: str | None) -> DataCall:
        """Return a call, a new one if it is not known."""
        call = self._calls.get(path)
        if call is None:
            call = self._calls[path] = DataCall(path, name or "tool")
        return call

    def is_over(self, path: tuple[str, ...]) -> bool:
        """Return whether a call or an enclosing call has ended, so that its events are late."""
        for depth in range(1, len(path) + 1):
            call = self._calls.get(path[:depth])
            if call is not None and not call.is_open:
                return True
        return False

    def open(self) -> Iterator[DataCall]:
        """Return the calls that have not ended, innermost first."""
        return (call for call in reversed(self._calls.values()) if call.is_open)

    def update(self, event: Event, now: float) -> list[Chunk]:
        """Apply a display event of a call and return its chunks."""
        call = self.at(event.path, event.tool_name)
        chunks: list[Chunk] = []
        match event:
            case ToolProgressEvent(current=current, total=total, message=message):
                text = safe_text(message) if message else None
                call.progress = given(current=current, total=total, message=text)
            case NotifyStreamEvent(is_delta=True):
                call.piece(event.data)
            case NotifyStreamEvent():
                level = event.level if event.level != "info" else None
                tag = safe_text(event.tag) if event.tag else None
                call.say(safe_text(event.data), level=level, tag=tag)
            case ToolAttemptEvent():
                call.attempt = event.attempt + 1
                why = f": {safe_text(event.error)}" if event.error else ""
                call.say(f"Attempt {event.attempt} failed{why}", level="warning")
            case ToolArtifactEvent():
                chunks = self._artifact(call, event)
            case _:
                return []
        call.is_shown = True
        return chunks + self.touch(call, now)

    def touch(self, call: DataCall, now: float, *, at_once: bool = False) -> list[Chunk]:
        """Return the chunks of a changed call, or hold them back for the rate limit."""
        if at_once or call.sent is None or now - call.sent >= self._interval:
            return self._send(call, now)
        self._waiting[call.path] = call
        return []

    def due(self, now: float) -> list[Chunk]:
        """Return the held chunks that the rate limit allows now."""
        if not self._waiting:
            return []
        ready = [c for c in self._waiting.values() if now - (c.sent or 0.0) >= self._interval]
        return [chunk for call in ready for chunk in self._send(call, now)]

    def flush(self, now: float) -> list[Chunk]:
        """Return all held chunks."""
        return [chunk for c in list(self._waiting.values()) for chunk in self._send(c, now)]

    def _send(self, call: DataCall, now: float) -> list[Chunk]:
        self._waiting.pop(call.path, None)
        call.sent = now
        log = call.log()
        chunks = [log] if log is not None else []
        if call.is_shown and (snapshot := call.snapshot()) != call.last:
            call.last = snapshot
            chunks.append(snapshot)
        if self._preliminary and call.grown and call.is_open and len(call.path) == 1:
            chunks.append(_preliminary_output(call))
        call.grown = False
        return chunks

    def _artifact(self, call: DataCall, event: ToolArtifactEvent) -> list[Chunk]:
        """Record an artifact, and return it as a separate part if a browser can show it."""
        self._files += 1
        name, kind = safe_text(event.name), _media_type(event)
        url = _url_of(event)
        size = len(event.data) if event.data is not None else None
        if len(call.artifacts) < _ARTIFACTS:
            link = url if url is not None and not url.startswith("data:") else None
            call.artifacts.append(given(name=name, mediaType=kind, size=size, url=link))
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
    """Return the URL of an artifact for a browser; `None` if it is too large or unsafe to open."""
    if event.uri is not None:
        # Other schemes can run a script or point to a file on the server's disk.
        return shown(event.uri) if event.uri.lower().startswith(_LINKS) else None
    data = event.data
    kind = _media_type(event)
    if data is None or len(data) > _INLINE or kind is None:
        return None
    content = data.encode("utf-8", "replace") if isinstance(data, str) else data
    encoded = binascii.b2a_base64(content, newline=False).decode("ascii")
    return f"data:{kind};base64,{encoded}"


def _media_type(event: ToolArtifactEvent) -> str | None:
    kind = event.mime_type
    return kind if kind is not None and _MEDIA_TYPE.fullmatch(kind) else None
