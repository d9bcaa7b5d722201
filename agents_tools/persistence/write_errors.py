"""The errors with which all kinds of storage refuse a request."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.errors import EventConflictError, LeaseLostError, RunInUseError

if TYPE_CHECKING:
    from agents_tools.persistence.lease import LeaseHolder

__all__ = [
    "already_posted_error",
    "append_conflict_error",
    "id_conflict_error",
    "run_in_use_error",
    "session_in_use_error",
    "stale_lease_error",
]


def run_in_use_error(name: str, place: str, holder: LeaseHolder | None) -> RunInUseError:
    """Return the error for a log whose lease another process holds."""
    who = "another process" if holder is None else str(holder)
    return RunInUseError(
        f"{name!r} in {place} is in use by {who}. Wait for its end, use another id, or read it "
        "without writing.",
        store=place,
    )


def session_in_use_error(
    session: str, name: str, place: str, holder: LeaseHolder | None
) -> RunInUseError:
    """Return the error for a session in which another run is active."""
    who = "another process" if holder is None else str(holder)
    return RunInUseError(
        f"Session {session!r} in {place} is in use by run {name!r} of {who}. Wait for the end of "
        "that run, send the message to it, or cancel it.",
        store=place,
    )


def stale_lease_error(name: str, place: str) -> LeaseLostError:
    """Return the error for an append under a lease that another process has taken."""
    return LeaseLostError(
        f"Another process has taken the lease of {name!r} in {place}. These events were not "
        "stored. Resume the run to read its state.",
        store=place,
    )


def append_conflict_error(
    name: str, place: str, expected: int | None, actual: int
) -> EventConflictError:
    """Return the error for a log with another number of events than expected."""
    return EventConflictError(
        f"{name!r} in {place} has another writer: expected {expected or 0:,} events, got "
        f"{actual:,}. Read the new events and try again.",
        store=place,
    )


def id_conflict_error(name: str, place: str, number: int, next_id: int) -> EventConflictError:
    """Return the error for an event whose id is not larger than that of the last event."""
    return EventConflictError(
        f"{name!r} in {place} is already beyond the id {number}: expected at least {next_id}. "
        "Append only new events.",
        store=place,
    )


def already_posted_error(name: str, place: str) -> EventConflictError:
    """Return the error for a second decision about one call."""
    return EventConflictError(
        f"Another decision about this call of run {name!r} in {place} was recorded before. "
        "Read the approvals of the run again.",
        store=place,
    )
