"""Takes out of results and events what is not for whoever reads them."""

from __future__ import annotations

import json
import re
import threading
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, NamedTuple

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import (
    Event,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RichEvent,
    RunFinishedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.outputs import ToolOutputText, result_of
from agents_tools.policies._change import Change, change_around

if typing.TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from agents_tools._records import Call
    from agents_tools.context import ToolContext
    from agents_tools.outputs import ToolOutput

__all__ = ["redact"]

WINDOW = 256
"""Characters of a text in pieces that are held back, and looked back at."""


def redact(
    *what: str | re.Pattern[str] | Callable[[str], str], replacement: str = "[redacted]"
) -> Change:
    """Take texts out of what a tool returns, and out of all that the call says while it runs.

    The value for the application is redacted as well as what the model gets, error messages that
    the model is told included. A value that is no plain JSON is replaced by its JSON where there
    is something in it. In a text that is said in pieces, what spans pieces is found too: the last
    256 characters are held back until more comes, or the call says something else. The arguments
    that the start event shows are redacted too; the tool, approvals and the messages of the model
    itself have them as they are. An event of your own with something in it that is no text, and
    cannot become one, is left out; numbers in events of the library stay. Images, sounds and
    other binary data stay as they are.

    Args:
        *what: Regular expressions, as text or compiled; or functions that are given a text and
            give it back redacted, to which text in pieces is given line by line.
        replacement: What stands in the place of what an expression finds.

    Raises:
        UserError: An expression is none, or would find nothing everywhere.
    """
    rules = _Rules(what, replacement)

    def veil(context: ToolContext[Any]) -> _Veil:
        return _Veil(rules, context.path)

    def wrap(inner: Call) -> Call:
        async def call(context: ToolContext[Any], args_json: str) -> Any:
            try:
                value = await inner(context, args_json)
                return rules.of_value(value, None if context.tool is None else context.tool.to_json)
            finally:
                # The veil stays: what a call has left running may still say something.
                for veil in context.veils:
                    if isinstance(veil, _Veil) and veil.is_of(rules, context):
                        for event in veil.rest():
                            context.emit(event)

        return call

    def reply(context: ToolContext[Any], output: ToolOutput) -> ToolOutput:
        del context
        if isinstance(output, str):
            return rules.of_text(output)
        return [rules.of_value(block) for block in output]

    return change_around("redact(...)", wrap, veil=veil, reply=reply)


class _Rules:
    """What is taken out."""

    def __init__(self, what: Iterable[Any], replacement: str) -> None:
        self.replacement = replacement
        self.patterns: list[re.Pattern[str]] = []
        self.functions: list[Callable[[str], str]] = []
        for one in what:
            if isinstance(one, (str, re.Pattern)):
                self.patterns.append(_compiled(typing.cast("Any", one)))
            elif callable(one):
                self.functions.append(typing.cast("Callable[[str], str]", one))
            else:
                raise UserTypeError(
                    "redact(...) takes regular expressions and functions from text to text, not "
                    f"{one!r:.80}."
                )
        if not self.patterns and not self.functions:
            raise UserValueError("redact(...) takes nothing out: give it a regular expression.")

    def of_text(self, text: str) -> str:
        """Give a whole text redacted."""
        for pattern in self.patterns:
            text = pattern.sub(lambda _: self.replacement, text)
        return self.by_functions(text)

    def by_functions(self, text: str) -> str:
        """Give a text as the functions leave it."""
        for function in self.functions:
            text = function(text)
            if not isinstance(text, str):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise UserTypeError(
                    f"A function of redact(...) gave a {type(text).__name__}; it has to give text."
                )
        return text

    def of_value(self, value: Any, write: Callable[[Any], str] | None = None) -> Any:
        """Give a value redacted; itself where nothing is in it.

        Args:
            value: The value.
            write: Writes as JSON what is none yet, for which the redacted JSON then stands.
        """
        if isinstance(value, str):
            redacted = self.of_text(value)
            return value if redacted == value else redacted
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, (int, float)):
            shown = str(value)
            return value if (redacted := self.of_text(shown)) == shown else redacted
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
        result = result_of(value)
        if result is None:
            return self._of_written(value, write)
        content = self.of_value(result.content, write)
        structured = self._of_written(result.structured, write)  # it may be the value itself
        if content is result.content and structured is result.structured:
            return value
        return replace(result, content=content, structured=structured)

    def _of_written(self, value: Any, write: Callable[[Any], str]) -> Any:
        """Give a value, or its redacted JSON where something is in that."""
        if value is None:
            return None
        data: Any = json.loads(write(value))
        redacted = self.of_value(data)
        read_once = hasattr(value, "__next__") or hasattr(value, "__anext__")
        return value if redacted is data and not read_once else redacted

    def _of_list(self, items: Any, write: Callable[[Any], str] | None) -> Any:
        redacted = [self.of_value(item, write) for item in items]
        return items if all(map(_is, items, redacted)) else redacted

    def _of_object(
        self, value: Mapping[Any, Any], write: Callable[[Any], str] | None
    ) -> Mapping[Any, Any]:
        redacted: dict[Any, Any] = {}
        changed = False
        for key, member in value.items():
            name = plain = self.of_value(key) if isinstance(key, (str, bytes, int, float)) else key
            count = 1
            while name in redacted:  # two keys must not become one
                count += 1
                name = f"{plain} ({count})"
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


def _compiled(given: str | re.Pattern[str]) -> re.Pattern[str]:
    try:
        pattern = re.compile(given)
        empty = pattern.search("") is not None
    except (re.error, TypeError) as error:
        raise UserValueError(
            f"redact(...) takes regular expressions for text; {given!r:.80} is none: {error}."
        ) from error
    if empty:
        raise UserValueError(
            f"redact(...): {given!r:.80} matches where nothing is, so it would be all over every "
            "text. Let it match one character at least."
        )
    return pattern


def _is_block(value: Any) -> bool:
    return is_dataclass(value) and getattr(type(value), "type", None) in _BLOCKS


_BLOCKS = {"text", "image", "audio", "file"}


def _is(one: object, other: object) -> bool:
    return one is other


# --- events


class _Key(NamedTuple):
    """Which text a piece belongs to."""

    path: tuple[str, ...]
    facts: tuple[Any, ...]


class _Veil:
    """What may be heard of the events of one call, and of the calls that it makes."""

    def __init__(self, rules: _Rules, path: tuple[str, ...]) -> None:
        self.rules = rules
        self.path = path
        self._texts: dict[_Key, _Text] = {}
        self._lock = threading.RLock()

    def __call__(self, emitter: ToolContext[Any], event: Event) -> list[Event]:
        """Give what may be heard of an event, and what was held back and is due before it."""
        path = emitter.path if event.origin is None else event.path
        key = _key(path, event)
        with self._lock:
            if key is None:
                due = [] if isinstance(event, ToolProgressEvent) else self._due(path, event)
                return [*due, *self._redacted(event)]
            text = self._texts.get(key)
            if text is None:
                text = self._texts[key] = _Text(self.rules)
            text.event = event
            said = text.add(_piece(event))
        return [_with_piece(event, said)] if said else []

    def is_of(self, rules: _Rules, context: ToolContext[Any]) -> bool:
        """Whether it was put there for this call, and not for one around it."""
        return self.rules is rules and self.path == context.path

    def rest(self) -> list[Event]:
        """Give all that is held back."""
        with self._lock:
            try:
                return self._ended(self.path)
            except Exception:  # noqa: BLE001 - what cannot be redacted is not said
                _log().exception("A function of redact(...) failed on the end of a text.")
                return []

    def _due(self, path: tuple[str, ...], event: Event) -> list[Event]:
        if isinstance(event, (ToolStreamEndEvent, RunFinishedEvent)):
            return self._ended(path)
        return self._ended(path, deep=False)

    def _ended(self, path: tuple[str, ...], *, deep: bool = True) -> list[Event]:
        due: list[Event] = []
        for key in list(self._texts):
            if key.path == path or (deep and key.path[: len(path)] == path):
                due += self._texts.pop(key).end()
        return due

    def _redacted(self, event: Event) -> list[Event]:
        changes: dict[str, Any] = {}
        for field, shape in event.__class__.__event_payload__:
            value = getattr(event, field.name)
            redacted = self.rules.of_value(value)
            if redacted is value:
                continue
            if shape.accepts(redacted):
                changes[field.name] = redacted
            elif not _is_ours(event):
                return []  # a number, say, in whose place no text can stand
        if not changes:
            return [event]
        if issubclass(event.__class__, RichEvent):
            changes["attached"] = None  # made anew from the payload, by whoever asks for it
        return [event.replace(**changes)]


def _is_ours(event: Event) -> bool:
    """Whether the library made an event: its counts and times are nothing that a tool says."""
    return event.__class__.__module__.partition(".")[0] == __name__.partition(".")[0]


class _Text:
    """A text that comes in pieces: what of it may be said, and what has to wait."""

    def __init__(self, rules: _Rules) -> None:
        self._rules = rules
        self._text = ""  # what is held back, and what was said just before it
        self._said = 0  # how much of that was said
        self.event: Event | None = None

    def add(self, piece: str) -> str:
        """Give what may be said now that a piece has come."""
        self._text += piece
        return self._say(len(self._text) - WINDOW)

    def end(self) -> Iterator[Event]:
        """Yield what was held back, as nothing more comes."""
        rest = self._say(len(self._text), is_end=True)
        if rest and self.event is not None:
            yield _with_piece(self.event, rest)

    def _say(self, until: int, *, is_end: bool = False) -> str:
        if self._rules.functions and not is_end:
            line = self._text.rfind("\n") + 1
            until = line if until - line < 4 * WINDOW else until
        spans = sorted(
            found.span()
            for pattern in self._rules.patterns
            for found in pattern.finditer(self._text)
        )
        for start, end in spans:
            if start < until < end:  # it may go on: all of it waits, unless it is very long
                until = start if len(self._text) - start <= 4 * WINDOW else end
        if until <= self._said:
            return ""
        said = self._rules.by_functions("".join(self._parts(spans, until)))
        self._forget(spans, until)
        return said

    def _parts(self, spans: list[tuple[int, int]], until: int) -> Iterator[str]:
        place = self._said
        for start, end in spans:
            if start >= until or end <= place:
                continue
            if start >= place:
                yield self._text[place:start]
                yield self._rules.replacement
            place = min(end, until)
        yield self._text[place:until]

    def _forget(self, spans: list[tuple[int, int]], until: int) -> None:
        """Keep only as much of what was said as an expression may look back at."""
        first = max(0, until - WINDOW)
        for start, end in spans:
            if start < first < end and until - start <= 4 * WINDOW:
                first = start
        self._text = self._text[first:]
        self._said = until - first


def _key(path: tuple[str, ...], event: Event) -> _Key | None:
    if isinstance(event, NotifyStreamEvent):
        return _Key(path, (event.tag, event.level)) if event.is_delta else None
    raw: Any = event.data if isinstance(event, RawResponseStreamEvent) else None
    if not isinstance(raw, dict):
        return None
    data = typing.cast("dict[str, Any]", raw)
    if not str(data.get("type")).endswith(".delta") or not isinstance(data.get("delta"), str):
        return None
    facts = (data.get(name) for name in ("type", "item_id", "output_index", "call_id"))
    return _Key(path, tuple(map(str, facts)))


def _piece(event: Any) -> str:
    return event.data if isinstance(event, NotifyStreamEvent) else event.data["delta"]


def _with_piece(event: Any, text: str) -> Event:
    if isinstance(event, NotifyStreamEvent):
        return event.replace(data=text)
    return event.replace(data={**event.data, "delta": text})


def _log() -> Any:
    import logging

    return logging.getLogger("agents_tools")
