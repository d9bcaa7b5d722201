"""What happened while tools, agents and conversations worked, in a form that travels.

An event is a small record with a payload (`NotifyStreamEvent.data` …) and an envelope: where it
comes from (`path`, `tool_name`, `tool_call_id`, `source`), its place in the run (`seq`,
`timestamp`) and, once a stream has stored it, its `id`. Whoever emits an event fills the envelope
in on a copy (`stamp`); one `Origin` is shared by everything that a call says.

Type checkers see events as frozen. At run time they are plain slotted objects: an event is made,
stamped and delivered in about half a microsecond, and a guard would cost as much again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import StrEnum
from functools import lru_cache
from math import isfinite
from operator import attrgetter
from time import gmtime, strftime, time
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    Literal,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
    get_args,
    overload,
)

from agents_tools.errors import UserKeyError, UserTypeError, UserValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from inspect import Signature
    from typing import Self

    from typing_extensions import TypeVar as TypeVarWithDefault

    RichT = TypeVarWithDefault("RichT", default=Any)
else:
    RichT = TypeVar("RichT")

__all__ = [
    "CONTENT",
    "COUNT",
    "FLAG",
    "INVALID_ID",
    "JSON",
    "NUMBER",
    "OBJECT",
    "TEXT",
    "WIRE_VERSION",
    "ActionEvent",
    "AgentStateChangedEvent",
    "AgentUpdatedStreamEvent",
    "AnyEvent",
    "CallStatus",
    "Emit",
    "ErrorEvent",
    "Event",
    "EventSource",
    "GapEvent",
    "Level",
    "MessageEvent",
    "NotifyStreamEvent",
    "NullEvent",
    "ObservationEvent",
    "Origin",
    "RawResponseStreamEvent",
    "RichEvent",
    "RunFinishedEvent",
    "RunItemStreamEvent",
    "RunStartedEvent",
    "Shape",
    "StreamingToolEndEvent",
    "StreamingToolStartEvent",
    "ToolArtifactEvent",
    "ToolAttemptEvent",
    "ToolProgressEvent",
    "ToolStreamEndEvent",
    "ToolStreamStartEvent",
    "event_from_dict",
    "event_json_schema",
    "event_to_dict",
    "field",
    "one_of",
    "optional",
    "register_decoder",
    "register_event",
    "stamp",
]

INVALID_ID: Final = -1
"""The `id` of an event that no stream has stored."""

WIRE_VERSION: Final = 1
"""The version of the wire form that this release writes and reads."""

CallStatus: TypeAlias = Literal[
    "ok",
    "invalid_args",
    "tool_error",
    "timeout",
    "cancelled",
    "denied",
    "overloaded",
    "lost",
]
"""How a call ended. `lost` means that its outcome is unknown."""

Level: TypeAlias = Literal["debug", "info", "success", "warning", "error"]
"""How important a notification is."""

Role: TypeAlias = Literal["user", "assistant", "system"]
"""Who wrote a message."""


class EventSource(StrEnum):
    """Who an event comes from."""

    AGENT = "agent"
    USER = "user"
    ENVIRONMENT = "environment"


class Origin:
    """Where events come from; made once per call and shared by all that the call says.

    Args:
        tool_name: The tool that speaks, if one does.
        tool_call_id: The call of that tool.
        path: The ids of the calls around the event, outermost first; empty means "part of the
            conversation itself".
        source: Who speaks.
        sinks: What has received events of this origin already; neither compared nor sent.
    """

    __slots__ = ("path", "sinks", "source", "tool_call_id", "tool_name")

    def __init__(
        self,
        tool_name: str | None = None,
        tool_call_id: str | None = None,
        path: tuple[str, ...] = (),
        source: EventSource = EventSource.AGENT,
        sinks: tuple[Emit, ...] = (),
    ) -> None:
        self.tool_name: Final = tool_name
        self.tool_call_id: Final = tool_call_id
        self.path: Final = path
        self.source: Final = source
        self.sinks: Final = sinks

    def __eq__(self, other: object) -> bool:
        """Compare by value."""
        if not isinstance(other, Origin):
            return NotImplemented
        return self is other or _origin_values(self) == _origin_values(other)

    def __hash__(self) -> int:
        """Hash by value."""
        return hash(_origin_values(self))

    def __repr__(self) -> str:
        """Show every field."""
        values = (repr(value) for value in _origin_values(self)[:3])
        return f"Origin({', '.join(values)}, {self.source.value})"


_origin_values: Callable[[Origin], tuple[Any, ...]] = attrgetter(
    "tool_name",
    "tool_call_id",
    "path",
    "source",
)


# --- what a payload field may hold ----------------------------------------------------------------


class Shape:
    """What one payload field may hold, in Python and on the wire.

    Args:
        expected: The rule in words, for error messages.
        accepts: Whether a Python value fits.
        schema: The JSON schema of the wire form.
        encode: Turns a value that fits into its wire form; it also gets the place, in words.
        decode: Turns a wire form back, likewise.
    """

    __slots__ = ("accepts", "decode", "encode", "expected", "schema")

    def __init__(
        self,
        expected: str,
        accepts: Callable[[object], bool],
        schema: Mapping[str, Any],
        *,
        encode: Callable[[Any, str], object] | None = None,
        decode: Callable[[Any, str], object] | None = None,
    ) -> None:
        self.expected: Final = expected
        self.accepts: Final = accepts
        self.schema: Final = schema
        self.encode: Final = encode
        self.decode: Final = decode


def optional(shape: Shape) -> Shape:
    """Make a shape that admits `None` as well."""
    encode, decode = shape.encode, shape.decode
    return Shape(
        f"{shape.expected} or null",
        lambda value: value is None or shape.accepts(value),
        {"anyOf": [shape.schema, {"type": "null"}]},
        encode=encode and (lambda value, at: None if value is None else encode(value, at)),
        decode=decode and (lambda value, at: None if value is None else decode(value, at)),
    )


def one_of(*choices: str) -> Shape:
    """Make a shape that admits exactly these strings."""
    return Shape(
        f"one of {', '.join(choices)}",
        lambda value: isinstance(value, str) and value in choices,
        {"enum": list(choices)},
        encode=lambda value, _at: str.__str__(value),
    )


_MAX_DEPTH: Final = 100
_MAX_INT_BITS: Final = 14_000  # some 4,300 digits, the most that Python's json writes and reads
_MAX_SHOWN: Final = 60


def _is_int(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: object) -> bool:
    return isfinite(value) if isinstance(value, float) else _is_int(value)


def _encode_text(value: str, _at: str) -> str:
    """Write lone surrogates as escapes: UTF-8 has no room for them and a consumer would fail."""
    text = str.__str__(value)
    return text if text.isascii() else text.encode("utf-8", "backslashreplace").decode("utf-8")


def _encode_content(value: str | bytes, at: str) -> object:
    if isinstance(value, str):
        return _encode_text(value, at)
    from binascii import b2a_base64

    return {"encoding": "base64", "data": b2a_base64(value, newline=False).decode("ascii")}


def _decode_content(value: object, at: str) -> object:
    if not isinstance(value, Mapping):
        return value
    marked = cast("Mapping[str, object]", value)
    text = marked.get("data")
    if set(marked) != {"encoding", "data"} or marked["encoding"] != "base64":
        raise _misfit(at, 'a string or {"encoding": "base64", "data": …}', marked)
    if not isinstance(text, str):
        raise _misfit(f"{at}.data", "base64 text", text)
    from binascii import Error, a2b_base64

    try:
        return a2b_base64(text.encode("ascii"), strict_mode=True)
    except (Error, UnicodeEncodeError):
        raise _misfit(f"{at}.data", "base64 text", text) from None


def _json_value(value: object, at: str, depth: int = 0) -> object:
    """Copy a JSON value, or say where it is none."""
    if value is None or isinstance(value, (str, int, float)):
        return _json_scalar(value, at)
    if depth == _MAX_DEPTH:
        raise _misfit(at, f"at most {_MAX_DEPTH} levels of nesting", value)
    if isinstance(value, Mapping):
        return {
            _json_key(key, at): _json_value(item, f"{at}.{key}", depth + 1)
            for key, item in cast("Mapping[object, object]", value).items()
        }
    if isinstance(value, (list, tuple)):
        items = cast("list[object]", value)
        return [_json_value(item, f"{at}[{i}]", depth + 1) for i, item in enumerate(items)]
    raise _misfit(at, "a JSON value", value)


def _json_scalar(value: str | float | None, at: str) -> str | float | bool | None:
    if isinstance(value, str):
        return _encode_text(value, at)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):
        if value.bit_length() > _MAX_INT_BITS:
            raise _misfit(at, "a whole number of at most 4,300 digits", value)
        return int(value)
    if not isfinite(value):
        raise _misfit(at, "a finite number", value)
    return float(value)


def _json_key(key: object, at: str) -> str:
    if not isinstance(key, str):
        raise _misfit(at, "an object whose keys are strings", key)
    return _encode_text(key, at)


def _misfit(at: str, expected: str, value: object) -> UserValueError:
    return UserValueError(f"{at}: expected {expected}, got {_shown(value)}.")


def _shown(value: object) -> str:
    """Show a bad value shortly; a container by its kind only, for it may be large."""
    if isinstance(value, Mapping):
        return "an object"
    if isinstance(value, (list, tuple)):
        return "a list"
    if isinstance(value, int) and value.bit_length() > _MAX_INT_BITS:
        return "a longer one"
    if value is None or isinstance(value, (str, bytes, int, float)):
        text = repr(value[:_MAX_SHOWN] if isinstance(value, (str, bytes)) else value)
        return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"
    return f"a Python object of type {type(value).__name__}"


TEXT: Final = Shape(
    "a string",
    lambda value: isinstance(value, str),
    {"type": "string"},
    encode=_encode_text,
)
FLAG: Final = Shape("true or false", lambda value: isinstance(value, bool), {"type": "boolean"})
COUNT: Final = Shape(
    "a whole number from 0 to 2**63 - 1",
    lambda value: _is_int(value) and 0 <= cast("int", value) < 2**63,
    {"type": "integer", "minimum": 0, "maximum": 2**63 - 1},
)
NUMBER: Final = Shape("a finite number", _is_number, {"type": "number"}, encode=_json_value)
CONTENT: Final = Shape(
    "a string or bytes",
    lambda value: isinstance(value, (str, bytes)),
    {
        "anyOf": [
            {"type": "string"},
            {
                "type": "object",
                "properties": {
                    "encoding": {"const": "base64"},
                    "data": {"type": "string", "contentEncoding": "base64"},
                },
                "required": ["encoding", "data"],
                "additionalProperties": False,
            },
        ],
    },
    encode=_encode_content,
    decode=_decode_content,
)
JSON: Final = Shape("a JSON value", lambda _: True, {}, encode=_json_value, decode=_json_value)
OBJECT: Final = Shape(
    "an object",
    lambda value: isinstance(value, Mapping),
    {"type": "object"},
    encode=_json_value,
    decode=_json_value,
)


# --- how an event class comes to be ---------------------------------------------------------------

_ENVELOPE_KEYS: Final = frozenset(
    ("v", "type", "id", "seq", "timestamp", "source", "cause", "path", "tool_name", "tool_call_id"),
)
_REQUIRED: Final = object()
_T = TypeVar("_T")


class _Field:
    """A declared field of an event class; one without a shape belongs to the envelope."""

    __slots__ = ("at", "default", "name", "put", "shape")

    def __init__(self, shape: Shape | None, default: object) -> None:
        self.shape: Final = shape
        self.default: Final = default
        self.name = ""
        self.at = ""  # the place in words, for error messages
        self.put: Callable[[Any, object], None]  # its setter, from the class

    def of(self, cls: _EventClass, name: str) -> _Field:
        """Give the field as it is in this class."""
        own = _Field(self.shape, self.default)
        own.name = name
        own.at = f"{getattr(cls, 'type', '') or cls.__name__}.{name}"
        own.put = getattr(cls, name).__set__
        return own


@overload
def field(shape: Shape) -> Any: ...
@overload
def field(shape: Shape, *, default: _T) -> _T: ...
def field(shape: Shape, *, default: object = _REQUIRED) -> object:
    """Declare one payload field of an event class.

    Args:
        shape: What it holds.
        default: Its value when none is given; without one the field is required.
    """
    return _Field(shape, default)


def _envelope(default: _T, *, init: Literal[False] = False) -> _T:
    """Declare a field that is filled in by whoever emits or stores the event."""
    del init  # read by type checkers only: the constructor does not take the field
    return cast("_T", _Field(None, default))


@dataclass_transform(frozen_default=True, field_specifiers=(field, _envelope))
class _EventClass(type):
    """Gives an event class its slots, its constructor and its copy function from its fields."""

    __event_keys__: frozenset[str]
    __event_slots__: tuple[_Field, ...]
    __event_payload__: tuple[tuple[_Field, Shape], ...]

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
    ) -> _EventClass:
        slots = {old.name: old for base in bases for old in getattr(base, "__event_slots__", ())}
        own = {key: value for key, value in namespace.items() if isinstance(value, _Field)}
        for key in own:
            del namespace[key]
            if key == "v" or any(hasattr(base, key) for base in bases):
                raise UserValueError(
                    f"{name}.{key}: every event of this kind has something of that name already; "
                    "give the field another one.",
                )
        slots |= own
        payload = tuple(key for key, slot in slots.items() if slot.shape is not None)
        namespace.setdefault("__slots__", tuple(own))
        namespace["__match_args__"] = payload
        namespace["__event_values__"] = staticmethod(_reader(payload))
        created = super().__new__(cls, name, bases, namespace)
        fields = tuple(slot.of(created, key) for key, slot in slots.items())
        created.__event_keys__ = _ENVELOPE_KEYS.union(payload)
        created.__event_slots__ = fields
        created.__event_payload__ = tuple((one, one.shape) for one in fields if one.shape)
        if own:
            _complete(created, namespace)
        return created

    @property
    def __signature__(cls) -> Signature:
        """The signature of the constructor, for `help` and `inspect`."""
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(
                    one.name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if one.default is _REQUIRED else one.default,
                )
                for one, _ in cls.__event_payload__
            ],
        )


_new: Final = object.__new__
_EventT = TypeVar("_EventT", bound="Event")


def _complete(cls: _EventClass, namespace: Mapping[str, object]) -> None:
    """Add what depends on the fields, unless the class brings a faster one of its own."""
    made: dict[str, object] = {"__init__": _constructor(cls), "__copy__": _copier(cls)}
    if cls.__event_payload__:
        made["stamped"] = Event.stamped
    for key in made.keys() - namespace.keys():
        setattr(cls, key, made[key])


def _reader(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Make the function that reads these attributes of an object into a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)


def _constructor(cls: _EventClass) -> Callable[..., None]:
    payload = [(one.put, shape.accepts) for one, shape in cls.__event_payload__]
    blanks = [(one.put, one.default) for one in cls.__event_slots__ if one.shape is None]

    def __init__(self: Event, *args: object, **given: object) -> None:  # noqa: N807
        if given or len(args) != len(payload):
            args = _arguments(cls, args, given)
        fits = True
        for (put, accepts), value in zip(payload, args, strict=True):
            put(self, value)
            fits = fits and accepts(value)
        for put, default in blanks:
            put(self, default)
        if not fits:
            _check(self)

    return __init__


def _arguments(
    cls: _EventClass,
    args: tuple[object, ...],
    given: dict[str, object],
) -> tuple[object, ...]:
    """Put the arguments of a constructor in order, as Python does it for a function."""
    payload = cls.__event_payload__
    if len(args) > len(payload):
        raise TypeError(f"{cls.__name__}() takes {len(payload)} arguments, got {len(args)}.")
    values = list(args)
    for one, _ in payload[len(args) :]:
        value = given.pop(one.name, one.default)
        if value is _REQUIRED:
            raise TypeError(f"{cls.__name__}() needs a value for {one.name!r}.")
        values.append(value)
    for name in given:
        why = "got two values for" if name in cls.__event_keys__ else "has no field"
        raise TypeError(f"{cls.__name__}() {why} {name!r}.")
    return tuple(values)


def _copier(cls: _EventClass) -> Callable[[Any], Any]:
    read = _reader([one.name for one in cls.__event_slots__])
    setters = [one.put for one in cls.__event_slots__]

    def __copy__(self: Event) -> Event:  # noqa: N807
        copy = _new(self.__class__)
        for put, value in zip(setters, read(self), strict=True):
            put(copy, value)
        return copy

    return __copy__


class Event(metaclass=_EventClass):
    """Base of all events.

    Attributes:
        INVALID_ID: The `id` of an event that no stream has stored.
        type: The name of the class on the wire.
        durable: Whether it belongs to the conversation: with an empty `path`, it is history.
        droppable: Whether a full channel may merge it with its neighbours or leave it out.
        id: Its number in the stream that stored it.
        seq: Its place in the run.
        timestamp: When it was emitted, in seconds since 1970.
        cause: The `id` of the event that led to it.
        origin: Who said it; `None` until it is stamped.
    """

    INVALID_ID: ClassVar[int] = INVALID_ID
    type: ClassVar[str] = ""
    durable: ClassVar[bool] = False
    droppable: ClassVar[bool] = False

    id: int = _envelope(INVALID_ID)
    seq: int = _envelope(-1)
    timestamp: float = _envelope(0.0)
    cause: int | None = _envelope(None)
    origin: Origin | None = _envelope(None)

    if TYPE_CHECKING:

        @staticmethod
        def __event_values__(event: Event, /) -> tuple[Any, ...]: ...
        def __copy__(self) -> Self: ...

    @property
    def source(self) -> EventSource | None:
        """Who said it."""
        return None if self.origin is None else self.origin.source

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the calls around it, outermost first."""
        return () if self.origin is None else self.origin.path

    @property
    def tool_name(self) -> str | None:
        """The tool that said it."""
        return None if self.origin is None else self.origin.tool_name

    @property
    def tool_call_id(self) -> str | None:
        """The call in which it was said."""
        return None if self.origin is None else self.origin.tool_call_id

    def stamped(self, origin: Origin, seq: int) -> Self:
        """Copy the event, with its origin, its place in the run and the time."""
        copy = self.__copy__()
        thawed: Any = copy
        thawed.origin = origin
        thawed.seq = seq
        thawed.timestamp = time()
        return copy

    def replace(self, **changes: Any) -> Self:
        """Copy the event with some fields of its payload or its envelope changed."""
        copy = self.__copy__()
        slots = {slot.name: slot for slot in self.__class__.__event_slots__}
        for name, value in changes.items():
            if name not in slots:
                raise TypeError(f"{self.__class__.__name__} has no field {name!r}.")
            slots[name].put(copy, value)
        _check(copy)
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Give the wire form: a new dictionary that JSON can carry.

        Raises:
            UserValueError: A payload holds something that has no JSON form, NaN included.
        """
        if not self.type:
            raise UserTypeError(f"{self.__class__.__name__} has no `type` and so no wire form.")
        origin = self.origin or _NOWHERE
        wire: dict[str, Any] = {
            "v": WIRE_VERSION,
            "type": self.type,
            "id": self.id,
            "seq": self.seq,
            "timestamp": _encode_time(self.timestamp, self.type),
            "source": origin.source.value if self.origin else None,
            "cause": self.cause,
            "path": list(origin.path),
            "tool_name": origin.tool_name,
            "tool_call_id": origin.tool_call_id,
        }
        for (one, shape), value in zip(
            self.__class__.__event_payload__,
            self.__event_values__(self),
            strict=True,
        ):
            if not shape.accepts(value):
                raise _misfit(one.at, shape.expected, value)
            wire[one.name] = shape.encode(value, one.at) if shape.encode else value
        return wire

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make an event of this class from its wire form; `event_from_dict` finds the class.

        Raises:
            UserValueError: A field is missing, superfluous or of the wrong shape.
        """
        _check_keys(cls, data)
        event = _new(cls)
        for slot in cls.__event_slots__:
            if slot.shape is None:
                slot.put(event, slot.default)
        for one, shape in cls.__event_payload__:
            if one.name in data:
                one.put(event, _decode(shape, data[one.name], one.at))
            elif one.default is _REQUIRED:
                raise UserValueError(f"{one.at} is missing.")
            else:
                one.put(event, one.default)
        _decode_envelope(event, data)
        return event

    def __eq__(self, other: object) -> bool:
        """Compare by value; times are equal when their microseconds are."""
        if not isinstance(other, Event) or other.__class__ is not self.__class__:
            return NotImplemented
        read = self.__event_values__
        return self is other or (_identity(self) == _identity(other) and read(self) == read(other))

    def __hash__(self) -> int:
        """Hash by what tells events apart in a run; payloads need not be hashable."""
        return hash((self.type, self.id, self.seq))

    def __repr__(self) -> str:
        """Show what was said and by which call, shortly."""
        shown = [
            f"{slot.name}={_brief(value)}"
            for slot, value in _payload(self)
            if slot.default is _REQUIRED or value != slot.default
        ]
        shown += [f"id={self.id}"] if self.id != INVALID_ID else []
        shown += [f"seq={self.seq}", f"path={'/'.join(self.path)!r}"] if self.origin else []
        return f"{self.__class__.__name__}({', '.join(shown)})"


_NOWHERE: Final = Origin()


def _payload(event: Event) -> Iterator[tuple[_Field, Any]]:
    fields = (one for one, _ in event.__class__.__event_payload__)
    return zip(fields, event.__event_values__(event), strict=True)


def _check(event: Event) -> None:
    """Refuse a payload that does not fit its declaration."""
    for one, value in _payload(event):
        shape = cast("Shape", one.shape)
        if not shape.accepts(value):
            at = f"{event.__class__.__name__}.{one.name}"
            raise _misfit(at, shape.expected, value)


def _identity(event: Event) -> tuple[object, ...]:
    return (event.id, event.seq, _micros(event.timestamp), event.cause, event.origin)


def _micros(timestamp: float) -> int:
    return round(timestamp * 1e6) if isfinite(timestamp) else -1


def _brief(value: object) -> str:
    """Show a value of a payload in at most one line."""
    text = repr(value[: _MAX_SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= _MAX_SHOWN else f"{text[: _MAX_SHOWN - 1]}…"


def stamp(event: _EventT, origin: Origin, seq: int) -> _EventT:
    """Give the event an origin, a place and a time, on a copy.

    An event that has an origin was said by an inner call; it is returned as it is.
    """
    return event.stamped(origin, seq) if event.origin is None else event


# --- what calls say -------------------------------------------------------------------------------


class NotifyStreamEvent(Event):
    """A tool tells the person who watches how it gets on.

    Args:
        data: The text.
        is_delta: Whether the text goes on from the last delta of this call.
        tag: A free word for the display.
        level: How important it is.
    """

    type = "notify_stream_event"
    droppable = True

    data: str = field(TEXT)
    is_delta: bool = field(FLAG, default=False)
    tag: str | None = field(optional(TEXT), default=None)
    level: Level = field(one_of(*get_args(Level)), default="info")

    if not TYPE_CHECKING:  # what each call says, or by the thousand, is made and copied by hand

        def __init__(
            self,
            data: str,
            is_delta: bool = False,
            tag: str | None = None,
            level: Level = "info",
        ) -> None:
            self.data = data
            self.is_delta = is_delta
            self.tag = tag
            self.level = level
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if (
                data.__class__ is not str
                or is_delta.__class__ is not bool
                or tag is not None
                or level != "info"
            ):
                _check(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Copy the event, as every event does, in fewer steps."""
            copy = _new(self.__class__)
            copy.data = self.data
            copy.is_delta = self.is_delta
            copy.tag = self.tag
            copy.level = self.level
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolProgressEvent(Event):
    """A tool tells how far it is; the latest one of a call stands for all before it.

    Args:
        current: What is done.
        total: What there is to do, if that is known.
        message: What is being done.
    """

    type = "tool_progress_event"
    droppable = True

    current: float = field(NUMBER)
    total: float | None = field(optional(NUMBER), default=None)
    message: str | None = field(optional(TEXT), default=None)

    if not TYPE_CHECKING:

        def __init__(
            self,
            current: float,
            total: float | None = None,
            message: str | None = None,
        ) -> None:
            self.current = current
            self.total = total
            self.message = message
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if (
                current.__class__ is not int
                or (total is not None and total.__class__ is not int)
                or (message is not None and message.__class__ is not str)
            ):
                _check(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Copy the event, as every event does, in fewer steps."""
            copy = _new(self.__class__)
            copy.current = self.current
            copy.total = self.total
            copy.message = self.message
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolArtifactEvent(Event):
    """A tool hands over something to keep or to show beside its answer.

    Args:
        name: What to call it.
        data: The thing itself …
        uri: … or where it is.
        mime_type: What kind of thing it is.
    """

    type = "tool_artifact_event"
    droppable = True

    name: str = field(TEXT)
    data: str | bytes | None = field(optional(CONTENT), default=None)
    uri: str | None = field(optional(TEXT), default=None)
    mime_type: str | None = field(optional(TEXT), default=None)


class ToolStreamStartEvent(Event):
    """A call begins.

    Args:
        input_args: Its arguments as JSON values, without the context.
    """

    type = "tool_stream_start_event"

    input_args: Mapping[str, Any] = field(OBJECT)

    if not TYPE_CHECKING:

        def __init__(self, input_args: Mapping[str, Any]) -> None:
            self.input_args = input_args
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if input_args.__class__ is not dict:
                _check(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Copy the event, as every event does, in fewer steps."""
            copy = _new(self.__class__)
            copy.input_args = self.input_args
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolStreamEndEvent(Event):
    """A call is over; nothing of it comes after this.

    Args:
        status: How it ended.
        duration: How long it took, in seconds.
    """

    type = "tool_stream_end_event"

    status: CallStatus = field(one_of(*get_args(CallStatus)))
    duration: float = field(NUMBER, default=0.0)

    if not TYPE_CHECKING:

        def __init__(self, status: CallStatus, duration: float = 0.0) -> None:
            self.status = status
            self.duration = duration
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if status != "ok" or duration.__class__ is not float:
                _check(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Copy the event, as every event does, in fewer steps."""
            copy = _new(self.__class__)
            copy.status = self.status
            copy.duration = self.duration
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


StreamingToolStartEvent = ToolStreamStartEvent
StreamingToolEndEvent = ToolStreamEndEvent


class ToolAttemptEvent(Event):
    """One attempt of a call failed and another follows.

    Args:
        attempt: The number of the attempt that failed, from 1.
        error: Why it failed.
        delay: The pause before the next one, in seconds.
    """

    type = "tool_attempt_event"

    attempt: int = field(COUNT)
    error: str | None = field(optional(TEXT), default=None)
    delay: float = field(NUMBER, default=0.0)


class GapEvent(Event):
    """Display events were left out here, because the reader was too slow for them.

    Args:
        dropped: How many.
    """

    type = "gap_event"

    dropped: int = field(COUNT)


# --- what runs say --------------------------------------------------------------------------------


class RichEvent(Event, Generic[RichT]):
    """Base of events that stand for a richer object, of a class that this module does not know.

    The payload is the JSON form of the object. `value` is the object itself: the one that was
    attached, or one made from the payload by the decoder that is registered for the class.
    """

    attached: RichT | None = _envelope(None)

    @property
    def value(self) -> RichT:
        """The object that this event stands for.

        Raises:
            UserKeyError: None was attached, and no decoder is registered for this class.
        """
        if self.attached is None:
            decode = _decoders.get(self.type)
            if decode is None:
                raise UserKeyError(
                    f"{self.__class__.__name__} came from its wire form and nothing is known that "
                    f"makes an object of it; register_decoder({self.__class__.__name__}, …) does.",
                )
            thawed: Any = self
            thawed.attached = decode(self)
        return cast("RichT", self.attached)

    def attach(self, value: RichT) -> Self:
        """Copy the event with the object it stands for."""
        copy = self.__copy__()
        thawed: Any = copy
        thawed.attached = value
        return copy


class RunItemStreamEvent(RichEvent[RichT]):
    """A run has a new item: a message, a tool call, the output of one.

    Args:
        name: What happened, for example `tool_called`.
        item: The item as JSON.
    """

    type = "run_item_stream_event"
    durable = True

    name: str = field(TEXT)
    item: Mapping[str, Any] = field(OBJECT)


class RawResponseStreamEvent(Event):
    """A piece of a model's answer, as it came.

    Args:
        data: The piece as JSON.
    """

    type = "raw_response_stream_event"
    droppable = True

    data: Any = field(JSON)


class AgentUpdatedStreamEvent(Event):
    """Another agent is at work from here on.

    Args:
        agent: Its name.
    """

    type = "agent_updated_stream_event"

    agent: str = field(TEXT)


class RunStartedEvent(Event):
    """A run begins.

    Args:
        run_id: Its id.
        agent: The name of the agent that runs.
    """

    type = "run_started_event"

    run_id: str | None = field(optional(TEXT), default=None)
    agent: str | None = field(optional(TEXT), default=None)


class RunFinishedEvent(Event):
    """A run is over.

    Args:
        status: How it ended.
        output: Its final output as JSON.
        usage: What it consumed.
        error: Why it failed, if it did.
    """

    type = "run_finished_event"

    status: str = field(TEXT, default="ok")
    output: Any = field(JSON, default=None)
    usage: Mapping[str, Any] | None = field(optional(OBJECT), default=None)
    error: str | None = field(optional(TEXT), default=None)


# --- what conversations say -----------------------------------------------------------------------


class MessageEvent(Event):
    """Somebody says something in the conversation.

    Args:
        content: A text, or a list of content blocks as JSON.
        role: Who says it.
    """

    type = "message_event"
    durable = True

    content: Any = field(JSON)
    role: Role = field(one_of(*get_args(Role)), default="user")


class ActionEvent(RichEvent[RichT]):
    """Something is to be done.

    Args:
        kind: The name of the action's class.
        action: The action as JSON.
        hidden: Whether people are not shown it.
    """

    type = "action_event"
    durable = True

    kind: str = field(TEXT)
    action: Mapping[str, Any] = field(OBJECT)
    hidden: bool = field(FLAG, default=False)


class ObservationEvent(RichEvent[RichT]):
    """Something was done or seen; `cause` is the id of the action it answers.

    Args:
        kind: The name of the observation's class.
        observation: The observation as JSON.
        hidden: Whether people are not shown it.
    """

    type = "observation_event"
    durable = True

    kind: str = field(TEXT)
    observation: Mapping[str, Any] = field(OBJECT)
    hidden: bool = field(FLAG, default=False)


class AgentStateChangedEvent(Event):
    """The agent is in another state.

    Args:
        state: The new state.
        reason: Why.
    """

    type = "agent_state_changed_event"
    durable = True

    state: str = field(TEXT)
    reason: str = field(TEXT, default="")


class ErrorEvent(Event):
    """Something went wrong and the conversation goes on with that knowledge.

    Args:
        message: What, in words.
        kind: The name of the error's class.
    """

    type = "error_event"
    durable = True

    message: str = field(TEXT)
    kind: str | None = field(optional(TEXT), default=None)


class NullEvent(Event):
    """Nothing happened; consumers pass over it."""

    type = "null_event"


AnyEvent: TypeAlias = (
    NotifyStreamEvent
    | ToolProgressEvent
    | ToolArtifactEvent
    | ToolStreamStartEvent
    | ToolStreamEndEvent
    | ToolAttemptEvent
    | GapEvent
    | RunItemStreamEvent[Any]
    | RawResponseStreamEvent
    | AgentUpdatedStreamEvent
    | RunStartedEvent
    | RunFinishedEvent
    | MessageEvent
    | ActionEvent[Any]
    | ObservationEvent[Any]
    | AgentStateChangedEvent
    | ErrorEvent
    | NullEvent
)
"""All events of this module, for a `match` that a type checker holds complete."""

Emit: TypeAlias = Callable[[Event], None]
"""Takes an event; never waits, may be called from any thread."""


# --- to the wire and back -------------------------------------------------------------------------

_RichEventT = TypeVar("_RichEventT", bound=RichEvent[Any])

_classes: Final[dict[str, type[Event]]] = {}
_decoders: Final[dict[str, Callable[[Any], object]]] = {}


def register_event(cls: type[_EventT]) -> type[_EventT]:
    """Make a class of events known to `event_from_dict`; usable as a decorator.

    Raises:
        UserValueError: The class has no `type`, or another class has the same.
    """
    known = _classes.setdefault(cls.type, cls) if cls.type else None
    if known is not cls:
        why = f"{known.__name__} has the type {cls.type!r} too" if known else "it has no `type`"
        raise UserValueError(f"{cls.__name__} cannot be registered: {why}.")
    return cls


def register_decoder(cls: type[_RichEventT], decode: Callable[[_RichEventT], object]) -> None:
    """Say how `value` of these events is made from their payload.

    Raises:
        UserValueError: Another decoder is registered for the class.
    """
    if _decoders.setdefault(cls.type, decode) is not decode:
        raise UserValueError(f"{cls.__name__} already has a decoder.")


def event_to_dict(event: Event) -> dict[str, Any]:
    """Give the wire form of an event: `event.to_dict()`."""
    return event.to_dict()


def event_from_dict(data: Mapping[str, Any]) -> Event:
    """Make an event from its wire form.

    Raises:
        UserValueError: The type is unknown, the version is not this release's, or a field is
            missing, superfluous or of the wrong shape.
    """
    if not isinstance(cast("object", data), Mapping):
        raise _misfit("event", "an object", data)
    version = data.get("v")
    if version.__class__ is not int or version != WIRE_VERSION:
        raise UserValueError(
            f"event.v: this release reads version {WIRE_VERSION} of the wire form, "
            f"got {_shown(version)}.",
        )
    name = data.get("type")
    cls = _classes.get(name) if isinstance(name, str) else None
    if cls is None:
        raise UserValueError(
            f"event.type: there is no event type {_shown(name)}.{_nearest(name, _classes)} "
            "A class of your own needs register_event.",
        )
    return cls.from_dict(data)


def event_json_schema() -> dict[str, Any]:
    """Give the JSON schema (2020-12) of the wire form of all registered events."""
    classes = list(_classes.values())
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Event",
        "description": f"An event of agents_tools on the wire, version {WIRE_VERSION}.",
        "oneOf": [{"$ref": f"#/$defs/{cls.__name__}"} for cls in classes],
        "$defs": {cls.__name__: _class_schema(cls) for cls in classes},
    }


def _class_schema(cls: type[Event]) -> dict[str, Any]:
    from copy import deepcopy

    properties: dict[str, Any] = {"v": {"const": WIRE_VERSION}, "type": {"const": cls.type}}
    properties |= deepcopy(_ENVELOPE_SCHEMA)
    required = ["v", "type"]
    for slot, shape in cls.__event_payload__:
        properties[slot.name] = deepcopy(dict(shape.schema))
        if slot.default is _REQUIRED:
            required.append(slot.name)
        else:
            properties[slot.name]["default"] = slot.default
    return {
        "type": "object",
        "title": cls.__name__,
        "description": (cls.__doc__ or "").partition("\n")[0],
        "properties": properties,
        "required": required,
        "additionalProperties": False,
        "anyOf": deepcopy(_ORIGIN_RULE),
    }


_TEXT_OR_NULL: Final = {"type": ["string", "null"], "default": None}
_NUMBER_IN_STREAM: Final = {"type": "integer", "minimum": -1, "maximum": 2**63 - 1}
_ENVELOPE_SCHEMA: Final[dict[str, Any]] = {
    "id": {**_NUMBER_IN_STREAM, "default": INVALID_ID},
    "seq": {**_NUMBER_IN_STREAM, "default": -1},
    "timestamp": {**_TEXT_OR_NULL, "format": "date-time"},
    "source": {"enum": [*(source.value for source in EventSource), None], "default": None},
    "cause": {**_NUMBER_IN_STREAM, "type": ["integer", "null"], "default": None},
    "path": {"type": "array", "items": {"type": "string"}, "default": []},
    "tool_name": _TEXT_OR_NULL,
    "tool_call_id": _TEXT_OR_NULL,
}
_ORIGIN_RULE: Final[list[dict[str, Any]]] = [
    {"required": ["source"], "properties": {"source": {"type": "string"}}},
    {
        "properties": {
            "source": {"type": "null"},
            "path": {"maxItems": 0},
            "tool_name": {"type": "null"},
            "tool_call_id": {"type": "null"},
        },
    },
]
"""Who has a place has a source: an event that was not stamped has neither."""


def _check_keys(cls: type[Event], data: Mapping[str, Any]) -> None:
    if data.get("type") != cls.type:
        raise _misfit(f"{cls.type}.type", repr(cls.type), data.get("type"))
    if data.keys() <= cls.__event_keys__:
        return
    for key in data:
        if key not in cls.__event_keys__:
            near = _nearest(key, cls.__event_keys__)
            raise UserValueError(f"{cls.type}: there is no field {_shown(key)}.{near}")


def _nearest(name: object, known: Iterable[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name[:_MAX_SHOWN], known, n=1) if isinstance(name, str) else ()
    return f" Did you mean {near[0]!r}?" if near else ""


def _decode(shape: Shape, value: object, at: str, member: str = "") -> Any:
    decoded = shape.decode(value, at + member) if shape.decode else value
    if not shape.accepts(decoded):
        raise _misfit(at + member, shape.expected, value)
    return decoded


def _decode_envelope(event: Any, data: Mapping[str, Any]) -> None:
    kind = event.type
    event.id = _decode(_STREAM_NUMBER, data.get("id", INVALID_ID), kind, ".id")
    event.seq = _decode(_STREAM_NUMBER, data.get("seq", -1), kind, ".seq")
    cause = data.get("cause")
    event.cause = None if cause is None else _decode(_CAUSE, cause, kind, ".cause")
    event.timestamp = _decode_time(data.get("timestamp"), kind)
    source = data.get("source")
    path = data.get("path", ())
    name = data.get("tool_name")
    call_id = data.get("tool_call_id")
    if source is None:
        if path or name is not None or call_id is not None:
            raise _misfit(f"{kind}.source", f"one of {', '.join(EventSource)} with a path", None)
        _decode(_PATH, path, kind, ".path")
        return
    event.origin = _origin(
        _decode(_NAME, name, kind, ".tool_name"),
        _decode(_NAME, call_id, kind, ".tool_call_id"),
        tuple(_decode(_PATH, path, kind, ".path")),
        _decode(_SOURCE, source, kind, ".source"),
    )


@lru_cache(maxsize=256)
def _origin(name: str | None, call_id: str | None, path: tuple[str, ...], source: str) -> Origin:
    """Give the origin that all that a call says have in common."""
    return Origin(name, call_id, path, EventSource(source))


_STREAM_NUMBER: Final = Shape(
    "a whole number from -1 to 2**63 - 1",
    lambda value: _is_int(value) and -1 <= cast("int", value) < 2**63,
    _NUMBER_IN_STREAM,
)
_CAUSE: Final = optional(_STREAM_NUMBER)
_SOURCE: Final = optional(one_of(*EventSource))
_NAME: Final = optional(TEXT)
_PATH: Final = Shape(
    "a list of strings",
    lambda value: (
        isinstance(value, (list, tuple))
        and all(isinstance(part, str) for part in cast("list[object]", value))
    ),
    {"type": "array", "items": {"type": "string"}},
)

_A_TIME: Final = "an ISO 8601 time from 1970 to 9999 with its offset from UTC"
_LAST_SECOND: Final = 253_402_300_799
"""The end of the year 9999, beyond which ISO 8601 needs an agreement."""


def _encode_time(timestamp: float, kind: str) -> str | None:
    if not 0.0 <= timestamp <= _LAST_SECOND:
        raise _misfit(f"{kind}.timestamp", "seconds since 1970", timestamp)
    micros = _micros(timestamp)
    if micros == 0:
        return None
    seconds, micros = divmod(micros, 1_000_000)
    return f"{_date_and_time(seconds)}.{micros:06d}+00:00"


@lru_cache(maxsize=4)
def _date_and_time(seconds: int) -> str:
    return strftime("%Y-%m-%dT%H:%M:%S", gmtime(seconds))


def _decode_time(text: object, kind: str) -> float:
    if text is None:
        return 0.0
    from datetime import datetime

    at = ".timestamp"
    try:
        moment = datetime.fromisoformat(cast("str", text))
        timestamp = moment.timestamp()
    except (TypeError, ValueError, OverflowError):
        raise _misfit(kind + at, _A_TIME, text) from None
    if moment.tzinfo is None or not 0.0 <= timestamp <= _LAST_SECOND:
        raise _misfit(kind + at, _A_TIME, text)
    return timestamp


for _cls in get_args(AnyEvent):
    register_event(getattr(_cls, "__origin__", _cls))
