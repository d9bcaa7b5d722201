"""The base classes of events.

An event is a small record with a payload (`NotifyStreamEvent.data` …) and an envelope. The envelope
holds its source (`path`, `tool_name`, `tool_call_id`, `source`), its place in the run (`seq`,
`timestamp`) and its `id`, which a stream sets when it stores the event. The emitter sets the
envelope on a copy (`stamp`). All events of a call share one `Origin`.

Type checkers treat events as frozen. At run time they are plain slotted objects without a guard:
creating, stamping and delivering an event takes about half a microsecond, and a guard would double
that.
"""

from __future__ import annotations

from operator import attrgetter
from time import time
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
    overload,
)

from agents_tools.errors import UserKeyError, UserTypeError, UserValueError
from agents_tools.events.envelope import (
    INVALID_ID,
    WIRE_VERSION,
    EventSource,
    Origin,
    decode_envelope,
    decode_field,
    encode_time,
    micros_of,
)
from agents_tools.events.field_types import (
    MAX_SHOWN,
    FieldType,
    field_error,
    nearest_name,
    shorten_value,
)
from agents_tools.text.characters import replace_surrogates

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from inspect import Signature
    from typing import Self

    from typing_extensions import TypeVar as TypeVarWithDefault

    RichT = TypeVarWithDefault("RichT", default=Any)
else:
    RichT = TypeVar("RichT")

__all__ = [
    "Emit",
    "Event",
    "EventClass",
    "RichEvent",
    "decoders",
    "envelope_field",
    "field",
    "stamp",
]

Emit: TypeAlias = "Callable[[Event], None]"
"""A function that receives an event. It never waits and can be called from any thread."""

_ENVELOPE_KEYS: Final = frozenset(
    ("v", "type", "id", "seq", "timestamp", "source", "cause", "path", "tool_name", "tool_call_id"),
)
REQUIRED: Final = object()
_T = TypeVar("_T")


class _Field:
    """A declared field of an event class. A field without a type belongs to the envelope."""

    __slots__ = ("default", "field_type", "location", "name", "set")

    def __init__(self, field_type: FieldType | None, default: object) -> None:
        self.field_type: Final = field_type
        self.default: Final = default
        self.name = ""
        self.location = ""  # "type.field", for error messages
        self.set: Callable[[Any, object], None]  # the setter of the slot in the class

    def bound_to(self, cls: EventClass, name: str) -> _Field:
        """Return a copy of the field that sets the slot of one class."""
        bound = _Field(self.field_type, self.default)
        bound.name = name
        bound.location = f"{getattr(cls, 'type', '') or cls.__name__}.{name}"
        bound.set = getattr(cls, name).__set__
        return bound


@overload
def field(field_type: FieldType) -> Any: ...
@overload
def field(field_type: FieldType, *, default: _T) -> _T: ...
def field(field_type: FieldType, *, default: object = REQUIRED) -> object:
    """Declare one payload field of an event class.

    Args:
        field_type: The values that the field accepts.
        default: The value of the field when the constructor gets none. A field without a
            default is required.
    """
    return _Field(field_type, default)


def envelope_field(default: _T, *, init: Literal[False] = False) -> _T:
    """Declare a field that is set when the event is emitted or stored."""
    del init  # for type checkers only: the constructor does not accept the field
    return cast("_T", _Field(None, default))


@dataclass_transform(frozen_default=True, field_specifiers=(field, envelope_field))
class EventClass(type):
    """The metaclass of events: creates slots, constructor and copy function from the fields."""

    __event_keys__: frozenset[str]
    __event_slots__: tuple[_Field, ...]
    __event_payload__: tuple[tuple[_Field, FieldType], ...]

    def __new__(
        cls,
        name: str,
        bases: tuple[type, ...],
        namespace: dict[str, Any],
    ) -> EventClass:
        """Create an event class.

        Raises:
            UserValueError: A field has the name of an attribute of a base class.
        """
        inherited = (slot for base in bases for slot in getattr(base, "__event_slots__", ()))
        slots = {slot.name: slot for slot in inherited}
        own = {key: value for key, value in namespace.items() if isinstance(value, _Field)}
        for key in own:
            del namespace[key]
            if key == "v" or any(hasattr(base, key) for base in bases):
                raise UserValueError(
                    f"Field {name}.{key} is not allowed: the base class already has this name. "
                    "Rename the field.",
                )
        slots |= own
        payload = tuple(key for key, slot in slots.items() if slot.field_type is not None)
        namespace.setdefault("__slots__", tuple(own))
        namespace["__match_args__"] = payload
        namespace["__event_values__"] = staticmethod(_tuple_getter(payload))
        created = super().__new__(cls, name, bases, namespace)
        fields = tuple(slot.bound_to(created, key) for key, slot in slots.items())
        created.__event_keys__ = _ENVELOPE_KEYS.union(payload)
        created.__event_slots__ = fields
        created.__event_payload__ = tuple(
            (slot, slot.field_type) for slot in fields if slot.field_type
        )
        if own:
            _add_methods(created, namespace)
        return created

    @property
    def __signature__(cls) -> Signature:
        """The signature of the constructor, for `help` and `inspect`."""
        from inspect import Parameter, Signature

        return Signature(
            [
                Parameter(
                    slot.name,
                    Parameter.POSITIONAL_OR_KEYWORD,
                    default=Parameter.empty if slot.default is REQUIRED else slot.default,
                )
                for slot, _ in cls.__event_payload__
            ],
        )


new_event: Final = object.__new__
_EventT = TypeVar("_EventT", bound="Event")


def _add_methods(cls: EventClass, namespace: Mapping[str, object]) -> None:
    """Add the methods that depend on the fields, except those that the class defines itself."""
    methods: dict[str, object] = {"__init__": _init_method(cls), "__copy__": _copy_method(cls)}
    if cls.__event_payload__:
        methods["stamped"] = Event.stamped
    for key in methods.keys() - namespace.keys():
        setattr(cls, key, methods[key])


def _tuple_getter(names: Sequence[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return a function that reads these attributes of an object into a tuple."""
    if len(names) > 1:
        return attrgetter(*names)
    return lambda event: tuple(getattr(event, name) for name in names)


def _init_method(cls: EventClass) -> Callable[..., None]:
    payload = [(slot.set, field_type.accepts) for slot, field_type in cls.__event_payload__]
    defaults = [(slot.set, slot.default) for slot in cls.__event_slots__ if slot.field_type is None]

    def __init__(self: Event, *args: object, **kwargs: object) -> None:  # noqa: N807
        if kwargs or len(args) != len(payload):
            args = _bind_arguments(cls, args, kwargs)
        is_valid = True
        for (set_slot, accepts), value in zip(payload, args, strict=True):
            set_slot(self, value)
            is_valid = is_valid and accepts(value)
        for set_slot, default in defaults:
            set_slot(self, default)
        if not is_valid:
            check_payload(self)

    return __init__


def _bind_arguments(
    cls: EventClass,
    args: tuple[object, ...],
    kwargs: dict[str, object],
) -> tuple[object, ...]:
    """Return the arguments of a constructor in the order of the fields."""
    payload = cls.__event_payload__
    if len(args) > len(payload):
        raise TypeError(
            f"{cls.__name__}() accepts at most {len(payload)} arguments, got {len(args)}."
        )
    values = list(args)
    for slot, _ in payload[len(args) :]:
        value = kwargs.pop(slot.name, slot.default)
        if value is REQUIRED:
            raise TypeError(f"{cls.__name__}() requires a value for {slot.name!r}.")
        values.append(value)
    for name in kwargs:
        why = "got two values for" if name in cls.__event_keys__ else "has no field"
        raise TypeError(f"{cls.__name__}() {why} {name!r}.")
    return tuple(values)


def _copy_method(cls: EventClass) -> Callable[[Any], Any]:
    read = _tuple_getter([slot.name for slot in cls.__event_slots__])
    setters = [slot.set for slot in cls.__event_slots__]

    def __copy__(self: Event) -> Event:  # noqa: N807
        copy = new_event(self.__class__)
        for set_slot, value in zip(setters, read(self), strict=True):
            set_slot(copy, value)
        return copy

    return __copy__


class Event(metaclass=EventClass):
    """Base of all events.

    Attributes:
        INVALID_ID: The `id` of an event that no stream has stored.
        type: The name of the class on the wire.
        durable: Whether the event belongs to the conversation. Durable events with an empty `path`
            form the history.
        droppable: Whether a full channel can merge the event with its neighbours or drop it.
        id: The number of the event in the stream that stored it.
        seq: The sequence number of the event in the root run.
        timestamp: The time when the event was emitted, in seconds since 1970.
        cause: The `id` of the event that caused this one.
        origin: The source of the event; `None` until the event is stamped.
    """

    INVALID_ID: ClassVar[int] = INVALID_ID
    type: ClassVar[str] = ""
    durable: ClassVar[bool] = False
    droppable: ClassVar[bool] = False

    id: int = envelope_field(INVALID_ID)
    seq: int = envelope_field(-1)
    timestamp: float = envelope_field(0.0)
    cause: int | None = envelope_field(None)
    origin: Origin | None = envelope_field(None)

    if TYPE_CHECKING:

        @staticmethod
        def __event_values__(event: Event, /) -> tuple[Any, ...]: ...
        def __copy__(self) -> Self: ...

    @property
    def source(self) -> EventSource | None:
        """The kind of participant that emitted the event; `None` before it is stamped."""
        return None if self.origin is None else self.origin.source

    @property
    def path(self) -> tuple[str, ...]:
        """The ids of the calls that contain the event, outermost first."""
        return () if self.origin is None else self.origin.path

    @property
    def tool_name(self) -> str | None:
        """The name of the tool that emitted the event, if a tool did."""
        return None if self.origin is None else self.origin.tool_name

    @property
    def tool_call_id(self) -> str | None:
        """The id of the tool call that emitted the event, if a call did."""
        return None if self.origin is None else self.origin.tool_call_id

    def stamped(self, origin: Origin, seq: int) -> Self:
        """Return a copy with an origin, a sequence number and the current time."""
        copy = self.__copy__()
        mutable: Any = copy
        mutable.origin = origin
        mutable.seq = seq
        mutable.timestamp = time()
        return copy

    def replace(self, **changes: object) -> Self:
        """Return a copy with some fields of the payload or the envelope changed.

        Raises:
            TypeError: The class has no field of that name.
            UserValueError: A value is invalid for its field.
        """
        copy = self.__copy__()
        slots = {slot.name: slot for slot in self.__class__.__event_slots__}
        for name, value in changes.items():
            if name not in slots:
                raise TypeError(f"{self.__class__.__name__} has no field {name!r}.")
            slots[name].set(copy, value)
        check_payload(copy)
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form: a new dictionary that can be serialized as JSON.

        Raises:
            UserValueError: The payload holds a value without a JSON form, NaN included.
        """
        if not self.type:
            raise UserTypeError(
                f"{self.__class__.__name__} has no wire form: it does not define `type`. "
                "Set the class attribute `type` to a unique name."
            )
        origin = self.origin or _NO_ORIGIN
        wire: dict[str, Any] = {
            "v": WIRE_VERSION,
            "type": self.type,
            "id": self.id,
            "seq": self.seq,
            "timestamp": encode_time(self.timestamp, self.type),
            "source": origin.source.value if self.origin else None,
            "cause": self.cause,
            "path": list(map(replace_surrogates, origin.path)),
            "tool_name": origin.tool_name and replace_surrogates(origin.tool_name),
            "tool_call_id": origin.tool_call_id and replace_surrogates(origin.tool_call_id),
        }
        for (slot, field_type), value in zip(
            self.__class__.__event_payload__,
            self.__event_values__(self),
            strict=True,
        ):
            if not field_type.accepts(value):
                raise field_error(slot.location, field_type.expected, value)
            encode = field_type.encode
            wire[slot.name] = encode(value, slot.location) if encode else value
        return wire

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create an event of this class from its wire form.

        Use `event_from_dict` for events of any class.

        Raises:
            UserValueError: A field is missing, unknown or invalid.
        """
        _check_keys(cls, data)
        event = new_event(cls)
        for slot in cls.__event_slots__:
            if slot.field_type is None:
                slot.set(event, slot.default)
        for slot, field_type in cls.__event_payload__:
            if slot.name in data:
                slot.set(event, decode_field(field_type, data[slot.name], slot.location))
            elif slot.default is REQUIRED:
                raise UserValueError(
                    f"{slot.location} is missing: expected {field_type.expected}. Add the field."
                )
            else:
                slot.set(event, slot.default)
        decode_envelope(event, data)
        return event

    def __eq__(self, other: object) -> bool:
        """Compare by value, with timestamps rounded to microseconds."""
        if not isinstance(other, Event) or other.__class__ is not self.__class__:
            return NotImplemented
        read = self.__event_values__
        return self is other or (_identity(self) == _identity(other) and read(self) == read(other))

    def __hash__(self) -> int:
        """Hash by type, id and sequence number, because payloads need not be hashable."""
        return hash((self.type, self.id, self.seq))

    def __repr__(self) -> str:
        """Return a short description of the payload and the envelope."""
        shown = [
            f"{slot.name}={_short_repr(value)}"
            for slot, value in _payload(self)
            if slot.default is REQUIRED or value != slot.default
        ]
        shown += [f"id={self.id}"] if self.id != INVALID_ID else []
        shown += [f"seq={self.seq}", f"path={'/'.join(self.path)!r}"] if self.origin else []
        return f"{self.__class__.__name__}({', '.join(shown)})"


_NO_ORIGIN: Final = Origin()


def _check_keys(cls: type[Event], data: Mapping[str, Any]) -> None:
    if data.get("type") != cls.type:
        raise field_error(f"{cls.type}.type", repr(cls.type), data.get("type"))
    if data.keys() <= cls.__event_keys__:
        return
    for key in data:
        if key not in cls.__event_keys__:
            near = nearest_name(key, cls.__event_keys__)
            raise UserValueError(f"{cls.type}: unknown field {shorten_value(key)}.{near}")


def _payload(event: Event) -> Iterator[tuple[_Field, Any]]:
    fields = (slot for slot, _ in event.__class__.__event_payload__)
    return zip(fields, event.__event_values__(event), strict=True)


def check_payload(event: Event) -> None:
    """Raise `UserValueError` if a payload value is invalid for its field."""
    for slot, value in _payload(event):
        field_type = cast("FieldType", slot.field_type)
        if not field_type.accepts(value):
            location = f"{event.__class__.__name__}.{slot.name}"
            raise field_error(location, field_type.expected, value)


def _identity(event: Event) -> tuple[object, ...]:
    return (event.id, event.seq, micros_of(event.timestamp), event.cause, event.origin)


def _short_repr(value: object) -> str:
    """Return the repr of a payload value, truncated."""
    text = repr(value[: MAX_SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def stamp(event: _EventT, origin: Origin, seq: int) -> _EventT:
    """Return a copy of the event with an origin, a sequence number and the current time.

    An event that already has an origin was emitted by an inner call and is returned unchanged.
    """
    return event.stamped(origin, seq) if event.origin is None else event


decoders: Final[dict[str, Callable[[Any], object]]] = {}
"""The decoder of each type of rich event; see `register_decoder`."""


class RichEvent(Event, Generic[RichT]):
    """Base of events that represent an object of a higher layer, for example a run item.

    The payload is the JSON form of the object. `value` is the object itself: the attached object,
    or a new one that the decoder registered for the class creates from the payload.
    """

    attached: RichT | None = envelope_field(None)

    @property
    def value(self) -> RichT:
        """The object that the event represents.

        Raises:
            UserKeyError: No object is attached and no decoder is registered for the class.
        """
        if self.attached is None:
            decode = decoders.get(self.type)
            if decode is None:
                raise UserKeyError(
                    f"{self.__class__.__name__} has no value: it came from its wire form, and no "
                    f"decoder is registered. Call register_decoder({self.__class__.__name__}, …).",
                )
            mutable: Any = self
            mutable.attached = decode(self)
        return cast("RichT", self.attached)

    def attach(self, value: RichT) -> Self:
        """Return a copy with the object that the event represents."""
        copy = self.__copy__()
        mutable: Any = copy
        mutable.attached = value
        return copy
