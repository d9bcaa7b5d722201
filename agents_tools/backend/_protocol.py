"""What a backend is: the records that travel to a worker and back, and the protocol."""

from __future__ import annotations

import types
import typing
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Literal,
    Protocol,
    TypeAlias,
    TypeGuard,
    runtime_checkable,
)

from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Self

    from agents_tools.events import CallStatus

__all__ = [
    "BackendCapabilities",
    "BackendHealth",
    "CallEnvelope",
    "CallEvent",
    "CallLog",
    "EventKind",
    "ToolBackend",
    "ended",
    "is_result",
]

VERSION: Final = 1
"""The version of both records on the wire."""

EventKind: TypeAlias = Literal["accepted", "started", "event", "heartbeat", "restarted", "result"]
"""What a `CallEvent` says: see there."""

_STATUSES: Final = frozenset(
    {"ok", "tool_error", "invalid_args", "timeout", "cancelled", "denied", "overloaded", "lost"}
)
_KINDS: Final = frozenset(typing.get_args(EventKind))
_NOTHING: Final[Mapping[str, Any]] = types.MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnvelope:
    """One call of a tool, with all that a worker has to know of it.

    Attributes:
        call_id: What tells the call from every other one, for good: a backend that meets the same
            call, attempt and arguments twice runs the body once and gives the same answer.
        attempt: 1 for the first try, one more for each that was made on purpose.
        tool: The name of the tool at the worker.
        definition: What `pin_of` gives for the tool that the caller knows; a worker whose tool
            differs refuses the call. Empty: not checked.
        arguments: The arguments as JSON text.
        deadline: When the call has to be over, in seconds since 1970; `None` for no such time.
        idempotency_key: What an outside service is given so that it does a thing once; the same
            for all attempts.
        idempotent: Whether trusted code says that a second run does no harm. Only then may a
            backend run the body again after its worker was lost.
        principal: For whom the call is made. A worker that serves strangers takes its own word.
        trace: The trace that the call belongs to, as W3C headers: `traceparent`, `tracestate`.
        limits: What the worker is to hold the call to, such as `{"memory": 536870912}`.
        bare: Whether the policies of the worker's own tool are left out, since the caller has
            applied them. For workers of the same program alone: one that serves strangers
            ignores it.
    """

    call_id: str
    attempt: int = 1
    tool: str
    definition: str = ""
    arguments: str = "{}"
    deadline: float | None = None
    idempotency_key: str | None = None
    idempotent: bool = False
    principal: str | None = None
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Mapping[str, Any] = field(default_factory=dict[str, Any])
    bare: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Give the envelope as plain JSON."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read an envelope; keys of later releases are passed over.

        Raises:
            UserValueError: It is none, or of another version.
        """
        return cls(**_checked("CallEnvelope", data, _ENVELOPE))

    def again(self, attempt: int) -> Self:
        """Give the same call for one more attempt.

        Args:
            attempt: Its number.
        """
        return replace(self, attempt=attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """One thing that a worker says about a call.

    `accepted` comes first, then `started` when the body begins, then `event` for each event of
    the tool (the payload is its `to_dict()`) and `heartbeat` in long silences. Exactly one
    `result` is the last. `restarted` is the first of a new attempt: the worker of the one before
    was lost, and the body runs again from its beginning.

    The payload of a `result` has `status` (one of the eight of `CallStatus`), `output` (text, or
    content blocks as JSON), `structured` (the value as JSON; absent for plain text and blocks),
    `error` (`{"type": …, "message": …}` or `None`), `metadata` (an object or `None`), and `failed`
    where the tool itself said with a `ToolResult` that it failed.

    Attributes:
        call_id: The call.
        attempt: The attempt.
        seq: Its place among the events of this attempt, from 0 without gaps. Whoever sees an
            event of a call and attempt a second time passes over it.
        kind: What it says.
        time: When, in seconds since 1970, on the clock of whoever said it.
        payload: The rest, as JSON.
    """

    call_id: str
    attempt: int
    seq: int
    kind: EventKind
    time: float
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Give the event as plain JSON."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Read an event; keys of later releases are passed over.

        Raises:
            UserValueError: It is none, or of another version.
        """
        values = _checked("CallEvent", data, _EVENT)
        if values["kind"] not in _KINDS:
            raise UserValueError(f"CallEvent.kind: there is no kind {values['kind']!r:.80}.")
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendCapabilities:
    """What a backend can do.

    Attributes:
        streaming: Whether events arrive while the body runs.
        cancel: Whether a call that runs can be stopped.
        delivery: `at_most_once` if the body is never run twice for one attempt, `at_least_once`
            if the loss of a worker may lead to that.
        heartbeat: Whether a long silence is filled with signs of life.
        restarts: Whether an idempotent call is run again when its worker is lost.
    """

    streaming: bool = True
    cancel: bool = True
    delivery: Literal["at_most_once", "at_least_once"] = "at_most_once"
    heartbeat: bool = False
    restarts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendHealth:
    """How a backend is.

    Attributes:
        ok: Whether it takes calls.
        workers: How many workers it has.
        busy: How many calls run.
        waiting: How many calls wait for a worker.
        detail: More, for people.
    """

    ok: bool
    workers: int = 0
    busy: int = 0
    waiting: int = 0
    detail: str = ""


@runtime_checkable
class ToolBackend(Protocol):
    """Something that runs the bodies of tools.

    A call that fails ends with a `result` that says how; `submit` raises for what is no call's
    fault, such as a backend that was closed.
    """

    @property
    def name(self) -> str:
        """What it is called, in errors and in the names of policies."""
        ...

    @property
    def capabilities(self) -> BackendCapabilities:
        """What it can do."""
        ...

    def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call. The generator gives what is said about it; closing it cancels the call."""
        ...

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; who iterates over it gets a `result` with the status `cancelled`.

        Returns:
            Whether there was such a call.
        """
        ...

    async def health(self) -> BackendHealth:
        """Say how it is."""
        ...

    async def aclose(self) -> None:
        """End what runs, and let go of everything. May be called again."""
        ...


class CallLog:
    """Numbers what is said about one attempt of a call.

    Args:
        call_id: The call.
        attempt: The attempt.
        first: The number of the first event.
    """

    __slots__ = ("attempt", "call_id", "next")

    def __init__(self, call_id: str, attempt: int, *, first: int = 0) -> None:
        self.call_id = call_id
        self.attempt = attempt
        self.next = first

    def say(self, kind: EventKind, payload: Mapping[str, Any] = _NOTHING) -> CallEvent:
        """Make the next event."""
        import time

        seq, self.next = self.next, self.next + 1
        return CallEvent(
            call_id=self.call_id,
            attempt=self.attempt,
            seq=seq,
            kind=kind,
            time=time.time(),
            payload=payload,
        )


def ended(
    status: CallStatus, message: str, *, kind: str | None = None, output: str = ""
) -> dict[str, Any]:
    """Give the payload of a `result` of a call that a backend ended itself.

    Args:
        status: How it ended.
        message: Why, for the model.
        kind: The name of the class of the error; that of the status by default.
        output: What a model gets, where the worker said so already.
    """
    return {
        "status": status,
        "output": output or message,
        "error": {"type": kind or ERRORS.get(status, "ToolError"), "message": message},
        "metadata": None,
    }


def is_result(payload: object) -> TypeGuard[Mapping[str, Any]]:
    """Look whether something can be the payload of a `result`: a worker may say anything."""
    if not isinstance(payload, Mapping):
        return False
    given = typing.cast("Mapping[str, Any]", payload)
    output = given.get("output")
    if isinstance(output, list):
        blocks = typing.cast("list[object]", output)
        if not all(isinstance(block, Mapping) for block in blocks):
            return False
    elif not isinstance(output, str):
        return False
    return str(given.get("status")) in _STATUSES and all(
        isinstance(given.get(key), (Mapping, type(None))) for key in ("error", "metadata")
    )


ERRORS: Final[Mapping[str, str]] = types.MappingProxyType(
    {
        "invalid_args": "ModelBehaviorError",
        "timeout": "ToolTimeoutError",
        "cancelled": "ToolCancelledError",
        "denied": "ToolDeniedError",
        "overloaded": "ToolOverloadedError",
        "lost": "ToolLostError",
    }
)
"""The error of each status that has one of its own."""


# --- to the wire and back

_TEXT: Final = (str,)
_WHOLE: Final = (int,)
_NUMBER: Final = (int, float)
_OPTIONAL_TEXT: Final = (str, type(None))
_SCALARS: Final = (str, int, float, type(None))
_OBJECT: Final = (Mapping,)

_ENVELOPE: Final[Mapping[str, tuple[tuple[type, ...], bool]]] = {
    "call_id": (_TEXT, True),
    "attempt": (_WHOLE, False),
    "tool": (_TEXT, True),
    "definition": (_TEXT, False),
    "arguments": (_TEXT, False),
    "deadline": ((int, float, type(None)), False),
    "idempotency_key": (_OPTIONAL_TEXT, False),
    "idempotent": ((bool,), False),
    "principal": (_OPTIONAL_TEXT, False),
    "trace": (_OBJECT, False),
    "limits": (_OBJECT, False),
    "bare": ((bool,), False),
}
_EVENT: Final[Mapping[str, tuple[tuple[type, ...], bool]]] = {
    "call_id": (_TEXT, True),
    "attempt": (_WHOLE, True),
    "seq": (_WHOLE, True),
    "kind": (_TEXT, True),
    "time": (_NUMBER, True),
    "payload": (_OBJECT, False),
}
"""The types of each field, and whether it has to be there."""


def _to_dict(record: Any) -> dict[str, Any]:
    values = {one.name: getattr(record, one.name) for one in fields(record)}
    for name, value in values.items():
        if not isinstance(value, _SCALARS) and isinstance(value, Mapping):
            values[name] = dict(typing.cast("Mapping[str, Any]", value))
    return {"v": VERSION, **values}


def _checked(
    name: str, data: object, known: Mapping[str, tuple[tuple[type, ...], bool]]
) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise UserValueError(f"{name}: expected an object, got a {type(data).__name__}.")
    given = typing.cast("Mapping[str, Any]", data)
    if given.get("v") != VERSION:
        raise UserValueError(
            f"{name}.v: this release reads version {VERSION}, got {given.get('v')!r:.40}."
        )
    values: dict[str, Any] = {}
    for key, (kinds, required) in known.items():
        if key not in given:
            if required:
                raise UserValueError(f"{name}.{key}: it is missing.")
            continue
        value = given[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise UserValueError(f"{name}.{key}: expected {expected}, got {value!r:.40}.")
        values[key] = value
    return values
