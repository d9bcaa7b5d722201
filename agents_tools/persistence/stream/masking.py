"""Mask secrets in the events of a stream, also when a text is split into deltas."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agents_tools.errors import UserValueError
from agents_tools.events.base import Event, RichEvent
from agents_tools.events.coalesce import is_raw_delta
from agents_tools.events.envelope import INVALID_ID
from agents_tools.events.field_types import payload_fields
from agents_tools.events.kinds import (
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.text.forms import LONGEST, MASK, SHORTEST, forms_of, secret_bytes
from agents_tools.text.secret_matcher import SecretMatcher
from agents_tools.text.secrets import has_secrets, registered_forms

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from agents_tools.text.forms import Form

__all__ = ["EventMasker", "masked_events"]

_MAX_TEXTS: Final = 10_000
"""The largest number of unfinished texts."""

_MAX_DEPTH: Final = 200
_MAX_NUMBER_BITS: Final = 1 << 12  # bits


def masked_events(events: Iterable[Event]) -> Iterator[Event]:
    """Yield events with the registered secrets masked, also those that deltas split."""
    masker = EventMasker({})
    for event in events:
        yield from masker.masked(event)
    yield from masker.release()


class EventMasker:
    """Masks the secrets of one stream, and those that are registered for the process.

    The deltas of a text are searched as one text. The end of a delta that could be the beginning of
    a secret is held back. It is sent with the next delta of the text, or as a separate delta before
    the next other event of the call. A separate delta gets the `seq` of the event that follows it,
    and the `seq` of that and all later events increases by one.
    """

    def __init__(self, secrets: Mapping[str, Any]) -> None:
        # Held while events are masked and appended to the log, so that they stay in order.
        self.lock = RLock()
        self._stream_forms: tuple[Form, ...] = ()
        self._registered: tuple[Form, ...] = ()
        self._matcher = SecretMatcher(())
        self._matched_forms: object = None
        self._texts: dict[_DeltaKey, _PendingText] = {}
        self._inserted = 0  # the number of separate deltas so far
        self._last_seq = INVALID_ID  # the largest `seq` so far
        self.is_needed = False  # whether the stream has or had secrets of its own
        self.use(secrets)

    def use(self, secrets: Mapping[str, Any]) -> None:
        """Replace the secrets of the stream. Registered secrets are masked as well."""
        with self.lock:
            self._stream_forms = _forms_of(secrets)
            self._update_is_needed()

    def _update_is_needed(self) -> None:
        self.is_needed = bool(self._stream_forms or self._texts or self._inserted)

    def masked(self, event: Event) -> list[Event]:
        """Return the masked event like `clean`; the event itself if there is no secret."""
        if has_secrets() or self.is_needed:
            return self.clean(event)
        return [event]

    def clean(self, event: Event) -> list[Event]:
        """Return the masked event, after the held text that is due before it."""
        self._refresh_matcher()
        key = _key(event)
        if key is not None:
            released = self._overflow(event)
            masked = self._mask_delta(key, event)
        else:
            released = [] if isinstance(event, ToolProgressEvent) else self._release_due(event)
            masked = _mask_event(event, self._matcher)
        self._update_is_needed()
        return [*released, self._renumber(masked)]

    def release(self) -> list[Event]:
        """Return all held text as deltas, because the stream ends."""
        self._refresh_matcher()
        released = [event for text in self._texts.values() for event in self._release_text(text)]
        self._texts.clear()
        return released

    def _refresh_matcher(self) -> None:
        registered = registered_forms()
        if self._matched_forms is not self._stream_forms or self._registered is not registered:
            self._matched_forms, self._registered = self._stream_forms, registered
            self._matcher = SecretMatcher((*registered, *self._stream_forms))

    def _mask_delta(self, key: _DeltaKey, event: Event) -> Event:
        before = self._texts.pop(key, None)
        text = (before.tail if before else "") + _delta(event)
        shown = before.shown if before else 0
        visible, hold, end = self._matcher.mask_beginning(text, shown)
        if hold < len(text):
            self._texts[key] = _PendingText(text[hold:], end - hold, event)
        masked = _with_delta(event, visible)
        return masked if key.is_notify else _mask_event(masked, self._matcher)

    def _overflow(self, event: Event) -> list[Event]:
        """Release the oldest text if there are too many: some calls never report their end."""
        if len(self._texts) < _MAX_TEXTS:
            return []
        return self._release_text(self._texts.pop(next(iter(self._texts))), event)

    def _release_due(self, event: Event) -> list[Event]:
        """Release held text of the call of an event, and of calls that end with the event."""
        if not self._texts:
            return []
        ended = _ended_path(event)
        released: list[Event] = []
        for key, text in list(self._texts.items()):
            if ended is not None and key.path[: len(ended)] == ended:
                released += self._release_text(text, event)
                del self._texts[key]
            elif key.path == event.path:
                released += self._release_text(text, event)
                self._texts[key] = text._replace(shown=len(text.tail))
        return released

    def _release_text(self, text: _PendingText, before: Event | None = None) -> list[Event]:
        """Return held text as a delta. If it is at least half of a secret, it is masked."""
        if text.shown >= len(text.tail):
            return []
        rest = _with_delta(text.event, self._matcher.mask_end(text.tail, text.shown))
        if rest.seq < 0:  # the event was not stamped by a run
            return [rest]
        number = (
            self._last_seq + 1 if before is None or before.seq < 0 else before.seq + self._inserted
        )
        self._inserted += 1
        self._last_seq = max(self._last_seq, number)
        return [_with_seq(rest, number)]

    def _renumber(self, event: Event) -> Event:
        if event.seq < 0:
            return event
        number = event.seq + self._inserted
        self._last_seq = max(self._last_seq, number)
        return _with_seq(event, number) if self._inserted else event


class _DeltaKey(NamedTuple):
    """The key of the text that a delta belongs to."""

    path: tuple[str, ...]
    is_notify: bool
    fields: tuple[Any, ...]


class _PendingText(NamedTuple):
    """The end of an unfinished text that could be the beginning of a secret."""

    tail: str
    shown: int  # the number of characters that were sent already
    event: Event  # the last delta of the text


def _forms_of(secrets: Mapping[str, Any]) -> tuple[Form, ...]:
    forms: dict[Form, None] = {}
    for name, value in secrets.items():
        secret = secret_bytes(value)
        if not secret:
            continue
        if not SHORTEST <= len(secret) <= LONGEST:
            raise UserValueError(
                f"secrets[{name!r}] has the wrong length: expected {SHORTEST} to {LONGEST:,} "
                f"bytes, got {len(secret):,}. Remove it: short values also occur in ordinary text.",
            )
        forms.update(dict.fromkeys(forms_of(secret)))
    return tuple(forms)


# --- deltas ---------------------------------------------------------------------------------------


def _key(event: Event) -> _DeltaKey | None:
    """Return the key of the text of a delta; `None` for other events."""
    if isinstance(event, NotifyStreamEvent):
        return _DeltaKey(event.path, True, (event.tag, event.level)) if event.is_delta else None
    if not isinstance(event, RawResponseStreamEvent) or not is_raw_delta(event.data):
        return None
    fields = tuple(str(event.data.get(name)) for name in _KEY_FIELDS)
    return _DeltaKey(event.path, False, fields)


_KEY_FIELDS: Final = (
    "type",
    "call_id",
    "item_id",
    "output_index",
    "content_index",
    "summary_index",
)


def _ended_path(event: Event) -> tuple[str, ...] | None:
    """Return the path of the call that ends with an event; `None` if none ends."""
    if isinstance(event, (ToolStreamEndEvent, RunFinishedEvent)):
        return event.path
    if not isinstance(event, RunItemStreamEvent):
        return None
    item: Mapping[str, Any] = event.item
    output = item.get("type") == "function_call_output" and not item.get("in_background")
    return (*event.path, str(item.get("call_id"))) if output else None


def _with_seq(event: Event, seq: int) -> Event:
    copy: Any = event.__copy__()
    copy.seq = seq
    return cast("Event", copy)


def _delta(event: Any) -> str:
    return event.data if isinstance(event, NotifyStreamEvent) else event.data["delta"]


def _with_delta(event: Any, text: str) -> Event:
    if isinstance(event, NotifyStreamEvent):
        return event if event.data == text else event.replace(data=text)
    return (
        event if event.data["delta"] == text else event.replace(data={**event.data, "delta": text})
    )


# --- payloads -------------------------------------------------------------------------------------


def _mask_event(event: Any, matcher: SecretMatcher) -> Event:
    """Return the event with masked secrets; the same object if it has none."""
    changes = dict(_changes(event, matcher))
    if not changes:
        return cast("Event", event)
    if issubclass(event.__class__, RichEvent):
        changes["attached"] = None  # decoded from the payload again when `value` is read
    return cast("Event", event.replace(**changes))


def _changes(event: Event, matcher: SecretMatcher) -> Iterator[tuple[str, Any]]:
    for name, field_type, _ in payload_fields(event.__class__):
        value = getattr(event, name)
        masked = _mask_value(value, matcher, _MAX_DEPTH)
        if masked is not value and field_type.accepts(masked):
            yield name, masked


def _mask_value(value: Any, matcher: SecretMatcher, depth: int) -> Any:
    """Return a JSON value or `bytes` with masked secrets; the same object if it has none."""
    if isinstance(value, str):
        return matcher.mask(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        return _mask_bytes(value, matcher)
    if isinstance(value, (int, float)):
        return MASK if _is_secret(value, matcher) else value
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if not depth:
        return MASK
    container = cast("Any", value)
    if isinstance(value, Mapping):
        return _mask_object(container, matcher, depth - 1)
    items: list[Any] = [_mask_value(item, matcher, depth - 1) for item in container]
    return container if all(map(_is, items, container)) else items


def _mask_object(value: Mapping[Any, Any], matcher: SecretMatcher, depth: int) -> Mapping[Any, Any]:
    masked: dict[Any, Any] = {}
    count = 1
    changed = False
    for key, member in value.items():
        name = _mask_value(key, matcher, depth)
        while name in masked:  # two masked keys must stay different
            count += 1
            name = f"{MASK} ({count})"
        masked[name] = _mask_value(member, matcher, depth)
        changed = changed or name is not key or masked[name] is not member
    return masked if changed else value


def _mask_bytes(value: bytes, matcher: SecretMatcher) -> bytes:
    text = value.decode("utf-8", "surrogateescape")
    masked = matcher.mask(text)
    return value if masked is text else masked.encode("utf-8", "surrogateescape")


def _is_secret(value: float, matcher: SecretMatcher) -> bool:
    if isinstance(value, int) and value.bit_length() > _MAX_NUMBER_BITS:
        return False
    text = str(value)
    return matcher.mask(text) is not text


def _is(one: object, other: object) -> bool:
    return one is other
