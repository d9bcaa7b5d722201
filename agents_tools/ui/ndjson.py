"""Encode events as lines of JSON (`application/x-ndjson`), and decode them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agents_tools.errors import UserValueError
from agents_tools.events.registry import event_from_dict
from agents_tools.persistence.stream.masking import masked_events
from agents_tools.text.output import release_json
from agents_tools.text.secrets import has_secrets

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events.base import Event

__all__ = ["CONTENT_TYPE", "decode", "encode"]

CONTENT_TYPE = "application/x-ndjson"
"""The media type of lines of JSON."""

_LINE_SEPARATORS = re.compile(rb"\xe2\x80[\xa8\xa9]|\xc2\x85")
"""U+2028, U+2029 and U+0085: valid in JSON strings, but some readers end a line there."""


def encode(events: Iterable[Event]) -> Iterator[str]:
    """Yield each event as one line with its line end.

    Args:
        events: The events.

    Raises:
        UserError: An event has no JSON form.
    """
    for event in masked_events(events):
        yield json_of(event).decode() + "\n"


def decode(text: str | Iterable[str]) -> Iterator[Event]:
    """Yield the events of lines from `encode`. Empty lines, the heartbeat, are ignored.

    Args:
        text: A string, or its lines.

    Raises:
        UserError: A line is not an event. The message has the number of the line.
    """
    lines = text.split("\n") if isinstance(text, str) else text
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield event_of(line, f"line {number}")


def json_of(event: Event) -> bytes:
    """Return an event as JSON on one line.

    Raises:
        UserError: The event has no JSON form.
    """
    from pydantic_core import to_json

    wire = event.to_dict()
    data = to_json(release_json(wire, to="program") if has_secrets() else wire)
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        return _LINE_SEPARATORS.sub(_escape, data)
    return data


def event_of(text: str, location: str) -> Event:
    """Return the event in a JSON text.

    Raises:
        UserError: The text is not an event. The message begins with the location.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserValueError(f"{location} is not JSON: {error}.") from None
    try:
        return event_from_dict(data)
    except UserValueError as error:
        raise UserValueError(f"{location} is not an event: {error}") from None


def _escape(match: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(match[0].decode())
