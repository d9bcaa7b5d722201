"""Redaction of texts in the results and events of a tool."""

from __future__ import annotations

import json
import re
import threading
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from agents_tools.content.outputs import ToolOutputText, as_tool_result
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.base import Event, RichEvent
from agents_tools.events.coalesce import is_raw_delta
from agents_tools.events.field_types import payload_fields
from agents_tools.events.kinds import (
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.policies._policy import with_parentheses
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import library_logger
from agents_tools.tool.policy import Policy

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Run

__all__ = ["redact"]

WINDOW = 256
"""Characters of a streamed text that are held back, and that patterns can look back at."""


@with_parentheses
def redact(
    *what: str | re.Pattern[str] | Callable[[str], str], replacement: str = "[redacted]"
) -> Policy:
    """Remove texts from the results of a tool and from the events of its calls.

    Both the value for the application and the output for the model are redacted, including error
    messages. If a value that is not plain JSON contains a match, it is replaced with its redacted
    JSON. In streamed text, matches that span several deltas are found as well: the last 256
    characters are held back until more text or another event follows. The arguments in the start
    event are redacted, but the tool, approvals and the messages of the model contain the original
    ones. A custom event is dropped if a match is in a field that cannot contain text, such as a
    number; numbers in events of this library stay. Images, audio and other binary data stay
    unchanged.

    Args:
        *what: Regular expressions, as text or compiled; or functions that take a text and return
            the redacted text. Functions receive streamed text line by line.
        replacement: The replacement for each match of an expression.

    Raises:
        UserError: An expression is not valid, or matches the empty string.
    """
    return _Redaction(_RedactionRules(what, replacement))


class _Redaction(Policy):
    needs_arguments = False

    name = "redact(...)"

    def __init__(self, rules: _RedactionRules) -> None:
        self._rules = rules
        self._events: WeakKeyDictionary[Call, _EventRedactor] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def filter_event(self, call: Call, event: Event) -> list[Event]:
        return self._redactor(call)(event)

    async def around(self, call: Call, call_next: Run) -> Any:
        try:
            return self._rules.of_value(await call_next(call), call.tool.to_json)
        finally:
            # The filter stays active, because background work can still emit events.
            for event in self._redactor(next(call.ancestors)).flush():
                call.emit(event)

    def filter_output(self, call: Call, output: ToolOutput) -> ToolOutput:
        del call
        if isinstance(output, str):
            return self._rules.of_text(output)
        return [self._rules.of_value(block) for block in output]

    def _redactor(self, call: Call) -> _EventRedactor:
        """Return what redacts the events of a call, which has state for streamed text."""
        with self._lock:
            found = self._events.get(call)
            if found is None:
                found = self._events[call] = _EventRedactor(self._rules, call.path)
        return found


class _RedactionRules:
    """The expressions and functions of one `redact` policy."""

    def __init__(self, what: Iterable[Any], replacement: str) -> None:
        self.replacement = replacement
        self.patterns: list[re.Pattern[str]] = []
        self.functions: list[Callable[[str], str]] = []
        for one in what:
            if isinstance(one, (str, re.Pattern)):
                self.patterns.append(_compile(typing.cast("Any", one)))
            elif callable(one):
                self.functions.append(typing.cast("Callable[[str], str]", one))
            else:
                raise UserTypeError(
                    "redact(...) is not valid: expected regular expressions and functions from "
                    f"text to text, got {one!r:.80}."
                )
        if not self.patterns and not self.functions:
            raise UserValueError(
                "redact(...) has no rules. Pass a regular expression or a function."
            )

    def of_text(self, text: str) -> str:
        """Return a complete text with all rules applied."""
        for pattern in self.patterns:
            text = pattern.sub(lambda _: self.replacement, text)
        return self.by_functions(text)

    def by_functions(self, text: str) -> str:
        """Return a text with the functions applied."""
        for function in self.functions:
            text = function(text)
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserTypeError(
                    "A function of redact(...) returned a wrong value: expected a string, got "
                    f"{type_with_article(text)}."
                )
        return text

    def of_value(self, value: Any, write: Callable[[Any], str] | None = None) -> Any:
        """Return a redacted copy of a value, or the value itself if nothing matches.

        Args:
            value: The value.
            write: Serializes other objects as JSON; a redacted object becomes its redacted JSON.
        """
        if isinstance(value, str):
            redacted = self.of_text(value)
            return value if redacted == value else redacted
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            text = str(value)
            return value if (redacted := self.of_text(text)) == text else redacted
        if isinstance(value, bytes):
            return self._of_bytes(value)
        if type(value) is dict or (write is None and isinstance(value, Mapping)):
            return self._of_object(typing.cast("Mapping[Any, Any]", value), write)
        if type(value) in {list, tuple}:
            return self._of_list(value, write)
        if _is_block(value):
            return self._of_block(value)
        return value if write is None else self._of_other(value, write)

    def _of_other(self, value: Any, write: Callable[[Any], str]) -> Any:
        result = as_tool_result(value)
        if result is None:
            return self._of_object_as_json(value, write)
        content = self.of_value(result.content, write)
        structured = self._of_object_as_json(result.structured, write)  # can be the value itself
        if content is result.content and structured is result.structured:
            return value
        return replace(result, content=content, structured=structured)

    def _of_object_as_json(self, value: Any, write: Callable[[Any], str]) -> Any:
        """Return a value, or its redacted JSON if something matches in it."""
        if value is None:
            return None
        data: Any = json.loads(write(value))
        redacted = self.of_value(data)
        is_iterator = hasattr(value, "__next__") or hasattr(value, "__anext__")  # now consumed
        return value if redacted is data and not is_iterator else redacted

    def _of_list(self, items: Any, write: Callable[[Any], str] | None) -> Any:
        redacted = [self.of_value(item, write) for item in items]
        return items if all(map(_is, items, redacted)) else redacted

    def _of_object(
        self, value: Mapping[Any, Any], write: Callable[[Any], str] | None
    ) -> Mapping[Any, Any]:
        redacted: dict[Any, Any] = {}
        changed = False
        for key, member in value.items():
            name = redacted_key = (
                self.of_value(key) if isinstance(key, (str, bytes, int, float)) else key
            )
            count = 1
            while name in redacted:  # two keys must not be merged
                count += 1
                name = f"{redacted_key} ({count})"
            redacted[name] = self.of_value(member, write)
            changed = changed or name is not key or redacted[name] is not member
        return redacted if changed else value

    def _of_bytes(self, value: bytes) -> bytes:
        try:
            text = value.decode()
        except UnicodeDecodeError:
            return value
        redacted = self.of_text(text)
        return value if redacted == text else redacted.encode()

    def _of_block(self, block: Any) -> Any:
        names = ["text"] if isinstance(block, ToolOutputText) else ["data", "url", "filename"]
        known = {field.name for field in fields(block)}
        changes: dict[str, Any] = {}
        for name in names:
            if name in known:
                value = getattr(block, name)
                redacted = self.of_value(value)
                if redacted is not value:
                    changes[name] = redacted
        return replace(block, **changes) if changes else block


def _compile(expression: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        pattern = re.compile(expression)
        matches_empty = pattern.search("") is not None
    except (re.error, TypeError) as error:
        raise UserValueError(
            f"redact(...) has an expression that is not valid: {expression!r:.80}: {error}."
        ) from error
    if matches_empty:
        raise UserValueError(
            f"redact(...): {expression!r:.80} matches the empty string, so every position would "
            "get a replacement. Change it to match at least one character."
        )
    return pattern


def _is_block(value: Any) -> bool:
    return is_dataclass(value) and getattr(type(value), "type", None) in _BLOCKS


_BLOCKS = {"text", "image", "audio", "file"}


def _is(one: object, other: object) -> bool:
    return one is other


# --- events


class _TextKey(NamedTuple):
    """Identifies the streamed text that a delta belongs to."""

    path: tuple[str, ...]
    ids: tuple[Any, ...]


class _EventRedactor:
    """The event filter of one call, which also filters the events of calls inside it."""

    def __init__(self, rules: _RedactionRules, path: tuple[str, ...]) -> None:
        self.rules = rules
        self.path = path
        self._texts: dict[_TextKey, _TextBuffer] = {}
        self._lock = threading.RLock()

    def __call__(self, event: Event) -> list[Event]:
        """Return the redacted event, after the text that was held back and precedes it."""
        path = event.path
        key = _key(path, event)
        with self._lock:
            if key is None:
                before = (
                    [] if isinstance(event, ToolProgressEvent) else self._text_before(path, event)
                )
                return [*before, *self._redact_event(event)]
            text = self._texts.get(key)
            if text is None:
                text = self._texts[key] = _TextBuffer(self.rules)
            text.event = event
            released = text.add(_delta(event))
        return [_with_delta(event, released)] if released else []

    def flush(self) -> list[Event]:
        """Return the text of the call itself that is held back; calls inside it flush their own."""
        with self._lock:
            try:
                return self._end_texts(self.path, deep=False)
            except Exception:  # noqa: BLE001 - text that cannot be redacted is not emitted
                library_logger().exception("A function of redact(...) failed on the end of a text.")
                return []

    def _text_before(self, path: tuple[str, ...], event: Event) -> list[Event]:
        if isinstance(event, (ToolStreamEndEvent, RunFinishedEvent)):
            return self._end_texts(path)
        return self._end_texts(path, deep=False)

    def _end_texts(self, path: tuple[str, ...], *, deep: bool = True) -> list[Event]:
        events: list[Event] = []
        for key in list(self._texts):
            if key.path == path or (deep and key.path[: len(path)] == path):
                events += self._texts.pop(key).end()
        return events

    def _redact_event(self, event: Event) -> list[Event]:
        changes: dict[str, Any] = {}
        for field in payload_fields(event.__class__):
            value = getattr(event, field.name)
            redacted = self.rules.of_value(value)
            if redacted is value:
                continue
            if field.type.accepts(redacted):
                changes[field.name] = redacted
            elif not _is_library_event(event):
                return []  # for example a number, which cannot be replaced with text
        if not changes:
            return [event]
        if issubclass(event.__class__, RichEvent):
            changes["attached"] = None  # created again from the payload when needed
        return [event.replace(**changes)]


def _is_library_event(event: Event) -> bool:
    """Return whether the class of an event is part of this library.

    Numbers in such events are counts and times, which do not come from the tool.
    """
    return event.__class__.__module__.partition(".")[0] == __name__.partition(".")[0]


class _TextBuffer:
    """A streamed text, of which the end is held back until no match can continue there."""

    def __init__(self, rules: _RedactionRules) -> None:
        self._rules = rules
        self._text = ""  # the text that is held back, after some text that was released
        self._released = 0  # how much of it was released
        self.event: Event | None = None

    def add(self, delta: str) -> str:
        """Add a delta, and return the text that can be released."""
        self._text += delta
        return self._release(len(self._text) - WINDOW)

    def end(self) -> Iterator[Event]:
        """Yield an event with the rest of the text, if there is any."""
        rest = self._release(len(self._text), is_end=True)
        if rest and self.event is not None:
            yield _with_delta(self.event, rest)

    def _release(self, until: int, *, is_end: bool = False) -> str:
        if self._rules.functions and not is_end:
            line = self._text.rfind("\n") + 1
            until = line if until - line < 4 * WINDOW else until
        spans = sorted(
            match.span()
            for pattern in self._rules.patterns
            for match in pattern.finditer(self._text)
        )
        for start, end in spans:
            if start < until < end:  # the match can continue; hold it back unless it is very long
                until = start if len(self._text) - start <= 4 * WINDOW else end
        if until <= self._released:
            return ""
        released = self._rules.by_functions("".join(self._parts(spans, until)))
        self._drop_released(spans, until)
        return released

    def _parts(self, spans: list[tuple[int, int]], until: int) -> Iterator[str]:
        position = self._released
        for start, end in spans:
            if start >= until or end <= position:
                continue
            if start >= position:
                yield self._text[position:start]
                yield self._rules.replacement
            position = min(end, until)
        yield self._text[position:until]

    def _drop_released(self, spans: list[tuple[int, int]], until: int) -> None:
        """Drop released text, except the part that a pattern can look back at."""
        first = max(0, until - WINDOW)
        for start, end in spans:
            if start < first < end and until - start <= 4 * WINDOW:
                first = start
        self._text = self._text[first:]
        self._released = until - first


def _key(path: tuple[str, ...], event: Event) -> _TextKey | None:
    if isinstance(event, NotifyStreamEvent):
        return _TextKey(path, (event.tag, event.level)) if event.is_delta else None
    if not isinstance(event, RawResponseStreamEvent) or not is_raw_delta(event.data):
        return None
    ids = (event.data.get(name) for name in ("type", "item_id", "output_index", "call_id"))
    return _TextKey(path, tuple(map(str, ids)))


def _delta(event: Any) -> str:
    return event.data if isinstance(event, NotifyStreamEvent) else event.data["delta"]


def _with_delta(event: Any, text: str) -> Event:
    if isinstance(event, NotifyStreamEvent):
        return event.replace(data=text)
    return event.replace(data={**event.data, "delta": text})
