"""Keeps secrets out of what a stream hands on, also where a text comes in pieces."""

from __future__ import annotations

from collections.abc import Mapping
from threading import RLock
from typing import TYPE_CHECKING, Any, Final, NamedTuple, cast

from agents_tools._secrets import (
    LONGEST,
    MASK,
    SHORTEST,
    forms_of,
    registered_forms,
    revealed,
)
from agents_tools.errors import UserValueError
from agents_tools.events import (
    INVALID_ID,
    Event,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RichEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
)
from agents_tools.stream._forms import Forms
from agents_tools.stream._squeeze import is_raw_delta

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools._secrets import Form

__all__ = ["Masker"]

_TEXTS: Final = 10_000
"""How many texts are looked at at once."""
_DEEPEST: Final = 200
_LONGEST_NUMBER: Final = 1 << 12  # bits


class Masker:
    """Masks the secrets of one stream, and those that are registered for the process.

    Deltas of one text are read as the one text that they are. Of a delta, what could be the
    beginning of a secret is held back; it comes with the next delta of the text, or as a delta of
    its own when the call says something else, or ends. Such a delta takes the `seq` of the event
    that it goes before, and that and all later ones move on by one: `seq` still increases.
    """

    def __init__(self, secrets: Mapping[str, Any]) -> None:
        # Held while events are masked and put in the log, so that they stay in order.
        self.lock = RLock()
        self._own: tuple[Form, ...] = ()
        self._registered: tuple[Form, ...] = ()
        self._forms = Forms(())
        self._of: object = None
        self._texts: dict[_Key, _Text] = {}
        self._moved = 0  # how many deltas of its own there were
        self._last = INVALID_ID  # the greatest `seq` so far
        self.is_needed = False  # whether there are secrets of the stream, or were any
        self.use(secrets)

    def use(self, secrets: Mapping[str, Any]) -> None:
        """Mask these values from now on, besides the registered ones."""
        with self.lock:
            self._own = _forms_of(secrets)
            self._note()

    def _note(self) -> None:
        self.is_needed = bool(self._own or self._texts or self._moved)

    def clean(self, event: Event) -> list[Event]:
        """Give what to hand on now: what was held back and is due before it, and the event."""
        self._look_up()
        key = _key(event)
        if key is not None:
            released = self._overflow(event)
            masked = self._go_on(key, event)
        else:
            released = [] if isinstance(event, ToolProgressEvent) else self._due(event)
            masked = _without_secrets(event, self._forms)
        self._note()
        return [*released, self._in_its_place(masked)]

    def release(self) -> list[Event]:
        """Give everything that is held back: nothing more comes."""
        self._look_up()
        released = [event for text in self._texts.values() for event in self._let_go(text)]
        self._texts.clear()
        return released

    def _look_up(self) -> None:
        registered = registered_forms()
        if self._of is not self._own or self._registered is not registered:
            self._of, self._registered = self._own, registered
            self._forms = Forms((*registered, *self._own))

    def _go_on(self, key: _Key, event: Event) -> Event:
        before = self._texts.pop(key, None)
        text = (before.tail if before else "") + _delta(event)
        shown = before.shown if before else 0
        said, hold, end = self._forms.mask_beginning(text, shown)
        if hold < len(text):
            self._texts[key] = _Text(text[hold:], end - hold, event)
        masked = _with_delta(event, said)
        return masked if key.notified else _without_secrets(masked, self._forms)

    def _overflow(self, event: Event) -> list[Event]:
        """Release the oldest of too many texts, of calls that may never say that they ended."""
        if len(self._texts) < _TEXTS:
            return []
        return self._let_go(self._texts.pop(next(iter(self._texts))), event)

    def _due(self, event: Event) -> list[Event]:
        """Release what belongs before an event: what its call has said, and what ends with it."""
        if not self._texts:
            return []
        ended = _ended(event)
        released: list[Event] = []
        for key, text in list(self._texts.items()):
            if ended is not None and key.path[: len(ended)] == ended:
                released += self._let_go(text, event)
                del self._texts[key]
            elif key.path == event.path:
                released += self._let_go(text, event)
                self._texts[key] = text._replace(shown=len(text.tail))
        return released

    def _let_go(self, text: _Text, before: Event | None = None) -> list[Event]:
        """Say what was held back; most of a secret is masked, though it is not all of it."""
        if text.shown >= len(text.tail):
            return []
        rest = _with_delta(text.event, self._forms.mask_end(text.tail, text.shown))
        if rest.seq < 0:  # nobody has stamped it
            return [rest]
        number = self._last + 1 if before is None or before.seq < 0 else before.seq + self._moved
        self._moved += 1
        self._last = max(self._last, number)
        return [_numbered(rest, number)]

    def _in_its_place(self, event: Event) -> Event:
        if event.seq < 0:
            return event
        number = event.seq + self._moved
        self._last = max(self._last, number)
        return _numbered(event, number) if self._moved else event


class _Key(NamedTuple):
    """Which text a delta belongs to."""

    path: tuple[str, ...]
    notified: bool
    facts: tuple[Any, ...]


class _Text(NamedTuple):
    """The end of a text that goes on: it could be the beginning of a secret."""

    tail: str
    shown: int  # how much of it was handed on
    event: Event  # the delta it came with


def _forms_of(secrets: Mapping[str, Any]) -> tuple[Form, ...]:
    forms: dict[Form, None] = {}
    for name, value in secrets.items():
        secret = revealed(value)
        if not secret:
            continue
        if not SHORTEST <= len(secret) <= LONGEST:
            raise UserValueError(
                f"secrets[{name!r}]: a secret has {SHORTEST} to {LONGEST:,} bytes, this one has "
                f"{len(secret):,}. A shorter one would be masked all over ordinary text; leave "
                "it out.",
            )
        forms.update(dict.fromkeys(forms_of(secret)))
    return tuple(forms)


# --- deltas ---------------------------------------------------------------------------------------


def _key(event: Event) -> _Key | None:
    """Tell which text an event goes on with; `None` if it is no delta."""
    if isinstance(event, NotifyStreamEvent):
        return _Key(event.path, True, (event.tag, event.level)) if event.is_delta else None
    if not isinstance(event, RawResponseStreamEvent) or not is_raw_delta(event.data):
        return None
    facts = tuple(str(event.data.get(name)) for name in _FACTS)
    return _Key(event.path, False, facts)


_FACTS: Final = ("type", "call_id", "item_id", "output_index", "content_index", "summary_index")


def _ended(event: Event) -> tuple[str, ...] | None:
    """Give the path that is over with an event; `None` if none is."""
    if isinstance(event, (ToolStreamEndEvent, RunFinishedEvent)):
        return event.path
    if not isinstance(event, RunItemStreamEvent):
        return None
    item: Mapping[str, Any] = event.item
    output = item.get("type") == "function_call_output"
    return (*event.path, str(item.get("call_id"))) if output else None


def _numbered(event: Event, seq: int) -> Event:
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


def _without_secrets(event: Any, forms: Forms) -> Event:
    """Mask an event; it stays as it is where there is no secret in it."""
    changes = dict(_changes(event, forms))
    if not changes:
        return cast("Event", event)
    if issubclass(event.__class__, RichEvent):
        changes["attached"] = None  # made anew from the payload, by whoever asks for it
    return cast("Event", event.replace(**changes))


def _changes(event: Event, forms: Forms) -> Iterator[tuple[str, Any]]:
    for one, shape in event.__class__.__event_payload__:
        value = getattr(event, one.name)
        masked = _masked(value, forms, _DEEPEST)
        if masked is not value and shape.accepts(masked):
            yield one.name, masked


def _masked(value: Any, forms: Forms, depth: int) -> Any:
    """Mask a JSON value, `bytes` included; give the value itself where nothing is to be masked."""
    if isinstance(value, str):
        return forms.mask(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, bytes):
        return _masked_bytes(value, forms)
    if isinstance(value, (int, float)):
        return MASK if _is_secret(value, forms) else value
    if not isinstance(value, (Mapping, list, tuple)):
        return value
    if not depth:
        return MASK
    container = cast("Any", value)
    if isinstance(value, Mapping):
        return _masked_object(container, forms, depth - 1)
    items: list[Any] = [_masked(item, forms, depth - 1) for item in container]
    return container if all(map(_is, items, container)) else items


def _masked_object(value: Mapping[Any, Any], forms: Forms, depth: int) -> Mapping[Any, Any]:
    masked: dict[Any, Any] = {}
    count = 1
    changed = False
    for key, member in value.items():
        name = _masked(key, forms, depth)
        while name in masked:  # two keys that hold secrets must not become one
            count += 1
            name = f"{MASK} ({count})"
        masked[name] = _masked(member, forms, depth)
        changed = changed or name is not key or masked[name] is not member
    return masked if changed else value


def _masked_bytes(value: bytes, forms: Forms) -> bytes:
    text = value.decode("utf-8", "surrogateescape")
    masked = forms.mask(text)
    return value if masked is text else masked.encode("utf-8", "surrogateescape")


def _is_secret(value: float, forms: Forms) -> bool:
    if isinstance(value, int) and value.bit_length() > _LONGEST_NUMBER:
        return False
    text = str(value)
    return forms.mask(text) is not text


def _is(one: object, other: object) -> bool:
    return one is other
