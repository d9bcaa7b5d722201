"""Events as lines of JSON (`application/x-ndjson`), for programs that read line by line."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from agents_tools.errors import UserValueError
from agents_tools.events import event_from_dict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.events import Event

__all__ = ["CONTENT_TYPE", "decode", "encode", "json_of"]

CONTENT_TYPE = "application/x-ndjson"
"""The media type of lines of JSON."""

_UNSEEN_ENDS = re.compile(rb"\xe2\x80[\xa8\xa9]|\xc2\x85")
"""U+2028, U+2029 and U+0085: JSON has them as they are, and some readers end a line there."""


def encode(events: Iterable[Event]) -> Iterator[str]:
    """Give each event as one line, its end included.

    Args:
        events: The events.

    Raises:
        UserError: An event has no JSON form.
    """
    for event in events:
        yield json_of(event).decode() + "\n"


def decode(text: str | Iterable[str]) -> Iterator[Event]:
    """Read what `encode` gave; empty lines, which keep connections open, are passed over.

    Args:
        text: A text, or its lines one by one.

    Raises:
        UserError: A line is no event; the message gives its number.
    """
    lines = text.split("\n") if isinstance(text, str) else text
    for number, line in enumerate(lines, start=1):
        if line.strip():
            yield event_of(line, f"line {number}")


def json_of(event: Event) -> bytes:
    """Give an event as JSON that is one line for every reader.

    Raises:
        UserError: It has no JSON form.
    """
    from pydantic_core import PydanticSerializationError, to_json

    try:
        data = to_json(event.to_dict())
    except PydanticSerializationError:  # half a surrogate pair, which only escapes can carry
        return json.dumps(event.to_dict(), separators=(",", ":")).encode()
    if b"\xe2\x80" in data or b"\xc2\x85" in data:
        return _UNSEEN_ENDS.sub(_escaped, data)
    return data


def event_of(text: str, place: str) -> Event:
    """Read one event.

    Raises:
        UserError: It is none; the message names the place.
    """
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UserValueError(f"{place} is no JSON: {error}.") from None
    try:
        return event_from_dict(data)
    except UserValueError as error:
        raise UserValueError(f"{place} is no event: {error}") from None


def _escaped(found: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(found[0].decode())
