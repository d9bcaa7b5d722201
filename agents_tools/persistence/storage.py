"""The seam of a run store: where the rows of logs are written and read."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from agents_tools.events.envelope import INVALID_ID

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence.filter import EventFilter
    from agents_tools.persistence.lease import LeaseHolder
    from agents_tools.persistence.protocol import RunStatus
    from agents_tools.persistence.rows import EventRow, RunSummary

__all__ = [
    "AppendRows",
    "DeleteLog",
    "LogPosition",
    "LogStorage",
    "PostMessage",
    "ReadSpan",
    "ReleaseLease",
    "RenewLeases",
    "RetainLogs",
    "RunInfo",
    "RunMessage",
    "TakeLease",
    "WriteRequest",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInfo:
    """A summary of one log. The fields from `session` to `status` are `None` if it is no run.

    Attributes:
        run_id: The id of the run, which is the name of its log.
        session: The session that the run is part of.
        agent: The name of the agent, or of the tool of a single call.
        kind: Whether an agent or a single tool call runs.
        owner: The principal that started the run.
        facts: JSON data of the application, with `***` in place of secrets.
        status: The status of the run.
        is_orphaned: Whether the run has not ended and no process holds its lease.
        started: The time of the first event, in seconds since 1970.
        updated: The time of the last event, in seconds since 1970.
        last_id: The id of the last event; -1 if there is none.
        events: The number of stored events.
        size: The size of the events in bytes.
    """

    run_id: str
    session: str | None = None
    agent: str | None = None
    kind: str | None = None
    owner: str | None = None
    facts: Mapping[str, Any] = field(default_factory=dict[str, Any])
    status: RunStatus | None = None
    is_orphaned: bool = False
    started: float | None = None
    updated: float | None = None
    last_id: int = INVALID_ID
    events: int = 0
    size: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMessage:
    """A message to the holder of a run.

    Attributes:
        number: The number of the message, which increases in the run.
        body: The message as JSON.
    """

    number: int
    body: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class LogPosition:
    """The end of a log, as the holder of its lease has to know it.

    Attributes:
        epoch: The epoch of the lease; 0 if it was never taken.
        last_id: The id of the last event; -1 if there is none.
        reserved: The largest id that is reserved for events that are not stored.
        message: The number of the last message; 0 if there was none.
        is_run: Whether the log is the log of a run.
    """

    epoch: int = 0
    last_id: int = INVALID_ID
    reserved: int = INVALID_ID
    message: int = 0
    is_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TakeLease:
    """Take the lease of a log, and create the log if it does not exist. Returns a `LogPosition`.

    It is refused with a `RunInUseError` if another holder has the lease of the log, or of another
    log of the session. A lease is free if it has expired or its process has ended. The status of an
    interrupted run becomes `running`.

    Attributes:
        name: The log.
        holder: The new holder.
        ttl: The time after which the lease expires, in seconds.
        session: The session that the run becomes a part of.
    """

    name: str
    holder: LeaseHolder
    ttl: float
    session: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ReleaseLease:
    """Release a lease. A log without any event is deleted. Returns `None`.

    Attributes:
        name: The log.
        epoch: The epoch of the lease; a lease with another epoch stays.
        reserved: The largest id that is used. It replaces the reserved id.
    """

    name: str
    epoch: int
    reserved: int = INVALID_ID


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RenewLeases:
    """Extend leases. Returns the names of those that were lost.

    Attributes:
        leases: The epochs of the leases, by log.
        ttl: The time after which they expire, in seconds.
    """

    leases: Mapping[str, int]
    ttl: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class AppendRows:
    """Append events, all or none. Returns the id of the last event of the log.

    Rows without an id get the next ids. The others must have larger ids than the log, except that
    rows beyond `known_id` that the log already has are skipped: an earlier request stored them, and
    its confirmation was lost.

    Attributes:
        name: The log.
        epoch: The epoch of the lease. Another epoch is refused with an `EventConflictError`.
        rows: The events.
        known_id: The id of the last event that the holder knows to be stored, or to be in an
            earlier request.
        expected: The number of events that were ever appended before; any by default.
        used: The largest id that events that are not stored use.
        reserved: The largest id to reserve for events that are not stored.
        sync: Whether the events have to survive a power failure.
        consumed: The numbers of messages to delete with the append.
        created: The summary of the run that begins with these rows.
        status: The status with which these rows end the run. The lease is released with it.
        drop_display: Whether the display events of the log are deleted.
    """

    name: str
    epoch: int
    rows: Sequence[EventRow] = ()
    known_id: int = INVALID_ID
    expected: int | None = None
    used: int = INVALID_ID
    reserved: int = INVALID_ID
    sync: bool = False
    consumed: Sequence[int] = ()
    created: RunSummary | None = None
    status: RunStatus | None = None
    drop_display: bool = False


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PostMessage:
    """Add a message to the inbox of a run. Returns its number; 0 if there is no such log.

    Attributes:
        name: The log.
        key: A key that only one message of the run can have; others with it are refused with an
            `EventConflictError`.
        body: The message, as JSON text.
    """

    name: str
    body: str
    key: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DeleteLog:
    """Delete a log that no holder has. Returns `None`; a missing log is not an error.

    Attributes:
        name: The log.
        holder: The store that deletes; its own lease does not count.
    """

    name: str
    holder: LeaseHolder


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class RetainLogs:
    """Delete the oldest logs that no holder has and that wait for nothing, until the limits hold.

    Returns the number of deleted events.

    Attributes:
        max_events: The number of events in all logs together.
        max_age: The age of the last event of a log, in seconds.
        max_bytes: The size of all events together.
    """

    max_events: int | None = None
    max_age: float | None = None
    max_bytes: int | None = None


WriteRequest: TypeAlias = (
    TakeLease | ReleaseLease | RenewLeases | AppendRows | PostMessage | DeleteLog | RetainLogs
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadSpan:
    """The part of a log to read.

    Attributes:
        after: Only events with larger ids.
        before: Only events with smaller ids.
        limit: The largest number of events.
        reverse: Whether the newest events come first.
        where: The filter for events.
        restore: Whether the registered secrets are restored. By default they are read as `***`.
    """

    after: int = INVALID_ID
    before: int | None = None
    limit: int | None = None
    reverse: bool = False
    where: EventFilter | None = None
    restore: bool = False


class LogStorage(Protocol):
    """Where the logs of a `RunStore` are stored.

    Its methods block, so the store calls them in threads.
    `write` is called in one thread at a time, the other methods in any thread, at the same time.
    Failures are `EventStoreError`s, which name `place`.

    Attributes:
        place: The path or address, without secrets.
        is_immediate: Whether no method waits for a disk or a network, so that no threads are
            needed.
        lease_ttl: The time after which a lease that is not renewed expires, in seconds.
    """

    place: str
    is_immediate: bool
    lease_ttl: float

    def write(self, requests: Sequence[WriteRequest], /) -> Sequence[Any]:
        """Apply requests in order, each one completely or not at all.

        What is written has to survive the end of the process when this method returns.

        Returns:
            The result of each request, or the `EventStoreError` that refused it.
        """
        ...

    def read(self, name: str, span: ReadSpan, /) -> list[Event]:
        """Return events of a log in the order of their ids; none if there is no such log."""
        ...

    def conversation(self, session: str, /, *, before: str | None = None) -> list[Event]:
        """Return the durable events with an empty path of the runs of a session, oldest run first.

        Registered secrets are restored.

        Args:
            session: The session.
            before: Only the runs whose log was created before the log of this run.
        """
        ...

    def position(self, name: str, /) -> LogPosition:
        """Return the end of a log."""
        ...

    def positions(self, names: Iterable[str], /) -> Mapping[str, LogPosition]:
        """Return the ends of the logs that exist among these names."""
        ...

    def messages(self, name: str, after: int, /) -> list[RunMessage]:
        """Return the messages to a run with larger numbers, in order."""
        ...

    def logs(
        self,
        *,
        names: Sequence[str] | None = None,
        session: str | None = None,
        status: str | None = None,
        limit: int | None = None,
    ) -> list[RunInfo]:
        """Return the logs that hold events, oldest first. `limit` keeps the newest ones."""
        ...

    def wait_for_change(self, seconds: float, /) -> bool:
        """Wait until another process has written, or for this time; return whether it has.

        Changes since the last call count.
        """
        ...

    def wake(self) -> None:
        """End the current or next `wait_for_change` if possible, because the store is closed."""
        ...

    def close(self) -> None:
        """Release all resources. No other method is called afterwards."""
        ...

    def after_fork(self) -> None:
        """Reset in a forked child, which must not use connections of its parent."""
        ...
