"""The protocol of a backend, and the records that are sent to a worker and back."""

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
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable
    from typing import Self

    from agents_tools.events.kinds import CallStatus

__all__ = [
    "BackendCapabilities",
    "BackendHealth",
    "CallEnvelope",
    "CallEvent",
    "CallLog",
    "DetachableBackend",
    "EventKind",
    "ToolBackend",
    "is_result",
    "result_payload",
]

VERSION: Final = 1
"""The version of both records on the wire."""

EventKind: TypeAlias = Literal["accepted", "started", "event", "heartbeat", "restarted", "result"]
"""The kinds of a `CallEvent`."""

_STATUSES: Final = frozenset(
    {"ok", "tool_error", "invalid_args", "timeout", "cancelled", "denied", "overloaded", "lost"}
)
_KINDS: Final = frozenset(typing.get_args(EventKind))
_NOTHING: Final[Mapping[str, Any]] = types.MappingProxyType({})


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnvelope:
    """The request for one call, with all the data that a worker needs.

    Attributes:
        call_id: The unique id of the call. A backend that receives the same call, attempt and
            arguments twice runs the body once and sends the same result.
        attempt: 1 for the first attempt, and one more for each deliberate retry.
        tool: The name of the tool in the worker.
        definition: The result of `pin_of` for the caller's tool. A worker whose tool has another
            definition refuses the call. Empty: not checked.
        arguments: The arguments as JSON text.
        deadline: The time by which the call must end, in seconds since 1970; `None` for no limit.
        idempotency_key: A key for external services that execute a request only once; the same
            for all attempts.
        idempotent: Whether trusted code declares that running the call twice is harmless. Only
            then can a backend run the body again after its worker was lost.
        trace: The trace of the call as W3C headers: `traceparent`, `tracestate`.
        bare: Whether the worker skips the policies of its tool because the caller has applied
            them. Callers that can submit calls are trusted.
    """

    call_id: str
    attempt: int = 1
    tool: str
    definition: str = ""
    arguments: str = "{}"
    deadline: float | None = None
    idempotency_key: str | None = None
    idempotent: bool = False
    trace: Mapping[str, str] = field(default_factory=dict[str, str])
    bare: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return the envelope as JSON values."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the envelope for JSON values; keys of later releases are ignored.

        Raises:
            UserValueError: The data is not an envelope, or has another version.
        """
        return cls(**_read_fields("CallEnvelope", data, _ENVELOPE))

    def again(self, attempt: int) -> Self:
        """Return the envelope for another attempt of the call.

        Args:
            attempt: The number of the attempt.
        """
        return replace(self, attempt=attempt)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEvent:
    """A message from a worker about a call.

    `accepted` comes first, then `started` when the body starts, then `event` for each event of
    the tool (the payload is its `to_dict()`), and `heartbeat` if there is no event for long. The
    last message is always a single `result`. `restarted` is the first message of a new attempt:
    the previous worker was lost, and the body runs again from its beginning.

    The payload of a `result` has `status` (one of the eight of `CallStatus`), `output` (text, or
    content blocks as JSON), `structured` (the value as JSON; absent for plain text and blocks),
    `error` (`{"type": …, "message": …}` or `None`), `metadata` (an object or `None`), and `failed`
    if the tool returned a `ToolResult` that declares a failure.

    Attributes:
        call_id: The id of the call.
        attempt: The number of the attempt.
        seq: The sequence number within the attempt, from 0 without gaps. Receivers ignore a
            message whose call, attempt and number they have seen before.
        kind: The kind of the message.
        time: The time in seconds since 1970, on the clock of the sender.
        payload: Other data, as JSON values.
    """

    call_id: str
    attempt: int
    seq: int
    kind: EventKind
    time: float
    payload: Mapping[str, Any] = field(default_factory=dict[str, Any])

    def to_dict(self) -> dict[str, Any]:
        """Return the event as JSON values."""
        return _to_dict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Return the event for JSON values; keys of later releases are ignored.

        Raises:
            UserValueError: The data is not an event, or has another version.
        """
        values = _read_fields("CallEvent", data, _EVENT)
        if values["kind"] not in _KINDS:
            raise UserValueError(f"CallEvent.kind is unknown: got {values['kind']!r:.80}.")
        return cls(**values)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendCapabilities:
    """The features of a backend.

    Attributes:
        streaming: Whether events arrive while the body runs.
        cancel: Whether a running call can be stopped.
        delivery: `at_most_once` if the body is never run twice for one attempt, `at_least_once`
            if the loss of a worker can cause a second run.
        heartbeat: Whether heartbeats are sent when a call emits no events.
        restarts: Whether an idempotent call is run again when its worker is lost.
        detach: Whether calls can outlive their caller; see `DetachableBackend`.
    """

    streaming: bool = True
    cancel: bool = True
    delivery: Literal["at_most_once", "at_least_once"] = "at_most_once"
    heartbeat: bool = False
    restarts: bool = False
    detach: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendHealth:
    """The state of a backend.

    Attributes:
        ok: Whether the backend accepts calls.
        workers: The number of workers.
        busy: The number of running calls.
        waiting: The number of calls that wait for a worker.
        detail: A description of the state for people.
    """

    ok: bool
    workers: int = 0
    busy: int = 0
    waiting: int = 0
    detail: str = ""


@runtime_checkable
class ToolBackend(Protocol):
    """Runs the bodies of tools.

    A failed call ends with a `result` that describes the failure. `submit` raises an error only
    for problems of the backend, such as a backend that was closed.
    """

    @property
    def name(self) -> str:
        """The name of the backend, in error messages and names of policies."""
        ...

    @property
    def capabilities(self) -> BackendCapabilities:
        """The features of the backend."""
        ...

    def submit(self, envelope: CallEnvelope, /) -> AsyncGenerator[CallEvent]:
        """Run a call and yield the messages about it; closing the generator cancels the call."""
        ...

    async def has_call(self, envelope: CallEnvelope, /) -> bool:
        """Return whether the backend knows a call that was submitted before.

        If it does, submitting the same call again waits for it or returns its result, and does
        not run its body a second time. A run that continues after the end of its process asks for
        each call that it had begun; a call that its backend does not know is `lost`.
        """
        ...

    async def cancel(self, call_id: str, reason: str = "") -> bool:
        """Cancel a call; its generator yields a `result` with the status `cancelled`.

        Returns:
            Whether the call was running or waiting.
        """
        ...

    async def health(self) -> BackendHealth:
        """Return the state of the backend."""
        ...

    async def aclose(self) -> None:
        """Cancel the running calls and release all resources. Can be called again."""
        ...


class DetachableBackend(ToolBackend, Protocol):
    """A backend whose calls can outlive their caller: `capabilities.detach` is true."""

    def submit(
        self,
        envelope: CallEnvelope,
        /,
        *,
        is_detached: Callable[[], Awaitable[bool]] | None = None,
    ) -> AsyncGenerator[CallEvent]:
        """Run a call and yield the messages about it; see `ToolBackend.submit`.

        Args:
            envelope: The call.
            is_detached: Awaited when the generator is closed early. If the result is true, another
                process continues the run and submits the same call, so it must not be cancelled.
        """
        ...


class CallLog:
    """Creates the numbered messages about one attempt of a call.

    Args:
        call_id: The id of the call.
        attempt: The number of the attempt.
        first: The sequence number of the first message.
    """

    __slots__ = ("attempt", "call_id", "next")

    def __init__(self, call_id: str, attempt: int, *, first: int = 0) -> None:
        self.call_id = call_id
        self.attempt = attempt
        self.next = first

    def create(self, kind: EventKind, payload: Mapping[str, Any] = _NOTHING) -> CallEvent:
        """Return the next message."""
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


def result_payload(
    status: CallStatus, message: str, *, kind: str | None = None, output: str = ""
) -> dict[str, Any]:
    """Return the payload of the `result` of a call that did not end by itself.

    Args:
        status: The status of the call.
        message: The reason, for the model.
        kind: The class name of the error; by default that of the status.
        output: The output for the model; by default the message.
    """
    return {
        "status": status,
        "output": output or message,
        "error": {"type": kind or ERRORS.get(status, "ToolError"), "message": message},
        "metadata": None,
    }


def is_result(payload: object) -> TypeGuard[Mapping[str, Any]]:
    """Return whether a value from a worker is a valid payload of a `result`."""
    if not isinstance(payload, Mapping):
        return False
    result = typing.cast("Mapping[str, Any]", payload)
    output = result.get("output")
    if isinstance(output, list):
        blocks = typing.cast("list[object]", output)
        if not all(isinstance(block, Mapping) for block in blocks):
            return False
    elif not isinstance(output, str):
        return False
    return str(result.get("status")) in _STATUSES and all(
        isinstance(result.get(key), (Mapping, type(None))) for key in ("error", "metadata")
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
"""The error class of each status that has one."""


# --- conversion to and from JSON values

_TEXT: Final = (str,)
_INTEGER: Final = (int,)
_NUMBER: Final = (int, float)
_OPTIONAL_TEXT: Final = (str, type(None))
_SCALARS: Final = (str, int, float, type(None))
_OBJECT: Final = (Mapping,)

_ENVELOPE: Final[Mapping[str, tuple[tuple[type, ...], bool]]] = {
    "call_id": (_TEXT, True),
    "attempt": (_INTEGER, False),
    "tool": (_TEXT, True),
    "definition": (_TEXT, False),
    "arguments": (_TEXT, False),
    "deadline": ((int, float, type(None)), False),
    "idempotency_key": (_OPTIONAL_TEXT, False),
    "idempotent": ((bool,), False),
    "trace": (_OBJECT, False),
    "bare": ((bool,), False),
}
_EVENT: Final[Mapping[str, tuple[tuple[type, ...], bool]]] = {
    "call_id": (_TEXT, True),
    "attempt": (_INTEGER, True),
    "seq": (_INTEGER, True),
    "kind": (_TEXT, True),
    "time": (_NUMBER, True),
    "payload": (_OBJECT, False),
}
"""The accepted types of each field, and whether the field is required."""


def _to_dict(record: Any) -> dict[str, Any]:
    values = {item.name: getattr(record, item.name) for item in fields(record)}
    for name, value in values.items():
        if not isinstance(value, _SCALARS) and isinstance(value, Mapping):
            values[name] = dict(typing.cast("Mapping[str, Any]", value))
    return {"v": VERSION, **values}


def _read_fields(
    name: str, data: object, known: Mapping[str, tuple[tuple[type, ...], bool]]
) -> dict[str, Any]:
    if not isinstance(data, Mapping):
        raise UserValueError(f"{name}: expected an object, got {type_with_article(data)}.")
    items = typing.cast("Mapping[str, Any]", data)
    if items.get("v") != VERSION:
        raise UserValueError(
            f"{name}.v has the wrong version: expected {VERSION}, got {items.get('v')!r:.40}."
        )
    values: dict[str, Any] = {}
    for key, (kinds, required) in known.items():
        if key not in items:
            if required:
                raise UserValueError(f"{name}.{key} is missing.")
            continue
        value = items[key]
        if not isinstance(value, kinds) or (isinstance(value, bool) and bool not in kinds):
            expected = " or ".join(kind.__name__ for kind in kinds)
            raise UserValueError(f"{name}.{key}: expected {expected}, got {value!r:.40}.")
        values[key] = value
    return values
