"""The base classes of events.

An event is a small record with a payload (`NotifyStreamEvent.data` …) and an envelope. The envelope
holds its source (`path`, `tool_name`, `tool_call_id`, `source`), its place in the run (`seq`,
`timestamp`) and its `id`, which a stream sets when it stores the event. The emitter sets the
envelope on a copy (`stamped`). All events of a call share one `Origin`.

Type checkers treat events as frozen. At run time they are slotted dataclasses without a guard,
because a guard would double the time that it takes to create an event.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields, make_dataclass
from operator import attrgetter
from time import time
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Final,
    Generic,
    TypeAlias,
    TypeVar,
    cast,
    dataclass_transform,
)

from agents_tools.errors import UserKeyError, UserValueError
from agents_tools.events.codec import decode_event, encode_event, micros_of
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.field_types import MAX_SHOWN, field_error, payload_fields

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Self

    from typing_extensions import TypeVar as TypeVarWithDefault

    RichT = TypeVarWithDefault("RichT", default=Any)
else:
    RichT = TypeVar("RichT")

__all__ = ["Emit", "Event", "RichEvent", "event_class", "register_decoder"]

Emit: TypeAlias = "Callable[[Event], None]"
"""A function that receives an event. It never waits and can be called from any thread."""

ClassT = TypeVar("ClassT")
RichEventT = TypeVar("RichEventT", bound="RichEvent[Any]")


@dataclass_transform(frozen_default=True, eq_default=False, field_specifiers=(field,))
def event_class(cls: type[ClassT]) -> type[ClassT]:
    """Make a class of events a slotted dataclass that keeps `__eq__` and `__repr__` of `Event`."""
    return dataclass(slots=True, eq=False, repr=False)(cls)


@event_class
class Event:
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

    id: int = field(default=INVALID_ID, init=False)
    seq: int = field(default=-1, init=False)
    timestamp: float = field(default=0.0, init=False)
    cause: int | None = field(default=None, init=False)
    origin: Origin | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        """Raise `UserValueError` if a payload value is invalid for its field."""
        for name, field_type, _ in payload_fields(self.__class__):
            value = getattr(self, name)
            if value.__class__ not in field_type.classes and not field_type.accepts(value):
                location = f"{self.__class__.__name__}.{name}"
                raise field_error(location, field_type.expected, value)

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
        copy: Self = _copy_function(self.__class__)(self)
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
        names = _field_names(self.__class__)
        for name, value in changes.items():
            if name not in names:
                raise TypeError(f"{self.__class__.__name__} has no field {name!r}.")
            setattr(copy, name, value)
        copy.__post_init__()
        return copy

    def to_dict(self) -> dict[str, Any]:
        """Return the wire form: a new dictionary that can be serialized as JSON.

        Raises:
            UserValueError: The payload holds a value without a JSON form, NaN included.
        """
        return encode_event(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create an event of this class from its wire form.

        Use `event_from_dict` for events of any class.

        Raises:
            UserValueError: A field is missing, unknown or invalid.
        """
        return decode_event(cls, data)

    def __copy__(self) -> Self:
        """Return a copy, without validating the payload again."""
        copy: Self = _copy_function(self.__class__)(self)
        return copy

    def __eq__(self, other: object) -> bool:
        """Compare by value, with timestamps rounded to microseconds."""
        if not isinstance(other, Event) or other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or _values(self) == _values(other)

    def __hash__(self) -> int:
        """Hash by type, id and sequence number, because payloads need not be hashable."""
        return hash((self.type, self.id, self.seq))

    def __repr__(self) -> str:
        """Return a short description of the payload and the envelope."""
        payload = [
            (name, getattr(self, name), default)
            for name, _, default in payload_fields(self.__class__)
        ]
        shown = [
            f"{name}={_short_repr(value)}"
            for name, value, default in payload
            if default is None or value != default()
        ]
        shown += [f"id={self.id}"] if self.id != INVALID_ID else []
        shown += [f"seq={self.seq}", f"path={'/'.join(self.path)!r}"] if self.origin else []
        return f"{self.__class__.__name__}({', '.join(shown)})"


def _field_names(cls: type[Event]) -> list[str]:
    return [one.name for one in fields(cls)]


_copy_functions: Final[dict[type[Event], Callable[[Any], Any]]] = {}


def _copy_function(cls: type[Event]) -> Callable[[Any], Any]:
    known = _copy_functions.get(cls)
    if known is None:
        known = _copy_functions[cls] = _new_copy_function(cls)
    return known


def _new_copy_function(cls: type[Event]) -> Callable[[Any], Any]:
    """Return a function that copies the fields of an event.

    Every emitted event is copied, and a loop over the names takes three times as long as the
    assignments that `dataclass` compiles.
    """
    names = _field_names(cls)
    create, values_of = object.__new__, attrgetter(*names)
    holder: Any = make_dataclass("_Fields", names)
    assign = holder.__init__

    def copy_event(event: Any) -> Any:
        copy = create(cls)
        assign(copy, *values_of(event))
        return copy

    return copy_event


def _values(event: Event) -> tuple[object, ...]:
    """Return the values that make two events of a class equal."""
    payload = [getattr(event, one.name) for one in payload_fields(event.__class__)]
    return (event.id, event.seq, micros_of(event.timestamp), event.cause, event.origin, payload)


def _short_repr(value: object) -> str:
    """Return the repr of a payload value, truncated."""
    text = repr(value[: MAX_SHOWN + 1] if isinstance(value, (str, bytes)) else value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


@event_class
class RichEvent(Event, Generic[RichT]):
    """Base of events that represent an object of a higher layer, for example a run item.

    The payload is the JSON form of the object. `value` is the object itself: the attached object,
    or a new one that the decoder registered for the class creates from the payload.
    """

    attached: RichT | None = field(default=None, init=False)

    @property
    def value(self) -> RichT:
        """The object that the event represents.

        Raises:
            UserKeyError: No object is attached and no decoder is registered for the class.
        """
        if self.attached is None:
            decode = _decoders.get(self.type)
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


_decoders: Final[dict[str, Callable[[Any], object]]] = {}


def register_decoder(cls: type[RichEventT], decode: Callable[[RichEventT], object]) -> None:
    """Register the function that creates `value` of these events from their payload.

    Raises:
        UserValueError: Another decoder is already registered for the class.
    """
    if _decoders.setdefault(cls.type, decode) is not decode:
        raise UserValueError(
            f"{cls.__name__} already has a decoder. Register each decoder only once."
        )
