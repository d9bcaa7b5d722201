"""Format events, times and sizes for people."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from agents_tools.events.kinds import (
    AgentUpdatedStreamEvent,
    GapEvent,
    NotifyStreamEvent,
    NullEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
)
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import CallStatus

__all__ = ["byte_count", "described", "ended", "noted", "progressed", "seconds", "size"]


def noted(event: NotifyStreamEvent, line: str) -> str:
    """Return a line, with its level if it is a warning or an error."""
    return f"{event.level}: {line}" if event.level in {"warning", "error"} else line


def progressed(event: ToolProgressEvent) -> str:
    """Return the progress of a call as text."""
    parts = [f"{event.current:g}"]
    if event.total is not None:
        parts = [f"{event.current:g}/{event.total:g}"]
        if event.total > 0:
            parts.append(f"({event.current / event.total:.0%})")
    if event.message:
        parts.append(release_text(event.message))
    return " ".join(parts)


def described(event: Event) -> str:
    """Return a line for an event that is neither text nor progress; empty to show nothing."""
    match event:
        case ToolArtifactEvent():
            details = [event.mime_type or "", size(event.data), event.uri or ""]
            text = ", ".join(release_text(detail) for detail in details if detail)
            return f"made {release_text(event.name)}" + (f" ({text})" if text else "")
        case ToolAttemptEvent():
            why = f": {release_text(event.error)}" if event.error else ""
            return f"attempt {event.attempt} failed{why}; next in {seconds(event.delay)}"
        case AgentUpdatedStreamEvent():
            return f"continues with agent {release_text(event.agent)}"
        case GapEvent():
            return f"({event.dropped} events left out)"
        case NullEvent():
            return ""
        case _:
            payload = {k: v for k, v in event.to_dict().items() if k not in _ENVELOPE}
            return release_text(f"{event.type} {json.dumps(payload)}", limit=200)


_ENVELOPE = frozenset(
    {
        "v",
        "type",
        "id",
        "seq",
        "timestamp",
        "cause",
        "path",
        "source",
        "tool_name",
        "tool_call_id",
    }
)


def ended(status: CallStatus) -> str:
    """Return the status of a call as text that precedes its duration."""
    return {
        "ok": "done in",
        "cancelled": "cancelled after",
        "timeout": "timed out after",
    }.get(status, f"{status.replace('_', ' ')} after")


def seconds(duration: float) -> str:
    """Return a duration as text."""
    if duration < 10:  # noqa: PLR2004 - below it, tenths matter
        return f"{duration:.2g} s" if duration >= 0.01 else "0 s"  # noqa: PLR2004
    minutes, rest = divmod(round(duration), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def byte_count(data: str | bytes) -> int:
    """Return the size of data in bytes, for text in UTF-8."""
    return len(data.encode(errors="surrogatepass") if isinstance(data, str) else data)


def size(data: Any) -> str:
    """Return the size of data as text."""
    if data is None:
        return ""
    count = byte_count(data if isinstance(data, bytes) else str(data))
    amount = float(count)
    for unit in ("bytes", "kB", "MB"):
        if amount < 999.5:  # noqa: PLR2004 - above, it would be rounded to 1000
            return f"{amount:.3g} {unit}" if unit != "bytes" else f"{count} {unit}"
        amount /= 1000
    return f"{amount:.3g} GB"
