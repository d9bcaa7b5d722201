"""The state of logs and pending writes, and the replies of a Redis server."""

from __future__ import annotations

import os
import socket
import uuid
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from agents_tools.concurrency.future import PendingFuture
from agents_tools.errors import EventConflictError, EventStoreError
from agents_tools.events.envelope import INVALID_ID

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "RedisAppend",
    "RedisLog",
    "WriteJob",
    "conflict_error",
    "is_confirmed",
    "is_dead_process",
    "mark_unconfirmed",
    "text_of",
]

T = TypeVar("T")


class RedisLog:
    """The state of one log in this process.

    Attributes:
        sid: The name.
        keys: The keys of the stream, the state and the lease.
        token: The id of this writer.
        last: The id of the last event.
        used_id: The largest id in use, also by events that are not stored.
        reserved: The largest id that is reserved in the server.
        acked: The number of batches of this writer that the server has acknowledged.
        abandoned: The number of later batches that the server can have, although their futures
            have failed.
        is_invalid: Whether another writer took the log over, or the server lost events.
        dead_holder: The token of a dead process whose lease can be taken.
    """

    def __init__(self, sid: str, prefix: str) -> None:
        self.sid = sid
        self.keys = [f"{prefix}:{part}:{sid}" for part in ("log", "state", "lease")]
        self.is_invalid = False
        self.dead_holder = ""
        self.reset_writer()
        self.reset()

    def reset_writer(self) -> None:
        """Become a new writer, which has not written any batch."""
        self.token = f"{uuid.uuid4().hex}@{socket.gethostname()}:{os.getpid()}"
        self.reserved = INVALID_ID
        self.acked = self.abandoned = 0

    def reset(self) -> None:
        """Reset the state, because the log is new or was deleted."""
        self.last = INVALID_ID
        self.used_id = INVALID_ID
        self.reserved = INVALID_ID
        self.acked = self.abandoned = 0


class WriteJob(Generic[T]):
    """An operation with its deadline and the future of its caller."""

    def __init__(self, work: Callable[[], T], until: float) -> None:
        self.work = work
        self.until = until
        self.pending: PendingFuture[T] = PendingFuture()


class RedisAppend(NamedTuple):
    """Events to append to a log. `arguments` has the id and the JSON of each event."""

    log: RedisLog
    arguments: list[Any]
    expect_seq: int | None
    sync: bool
    pending: PendingFuture[int]
    until: float


def conflict_error(log: RedisLog, address: str, code: str, facts: list[str]) -> EventStoreError:
    """Return the error for a batch that the script refused with a code."""
    where = f"The log {log.sid!r} at {address}"
    store = f"{address} {log.sid}"
    if code == "lost":
        return EventStoreError(
            f"{where} has lost {facts[0]} acknowledged batches: the server was restarted without "
            "its last events, or the log was deleted. No more events are written to it. Open the "
            "log again to continue with the remaining events.",
            store=store,
        )
    problems = {
        "held": f"is being written by {facts[0].partition('@')[2]}, whose lease ends in "
        f"{facts[-1]} ms if it stores no more events. Only read the log, or use another sid.",
        "taken": f"was taken over by {facts[0].partition('@')[2]}. Open it again to continue.",
        "count": f"has another writer: expect_seq does not match its {facts[0]} events. "
        "Read the new events and try again.",
        "id": f"already has the id {facts[0]}: expected at least {facts[-1]}. Append new events.",
    }
    return EventConflictError(f"{where} {problems[code]}", store=store)


def text_of(value: Any) -> str:
    """Return a reply of the server as text."""
    return value.decode() if isinstance(value, bytes) else str(value)


def is_confirmed(command: tuple[Any, ...], reply: Any) -> bool:
    """Return whether a reply confirms its command."""
    if isinstance(reply, Exception):
        return False
    confirmed: int = reply[0] if command[0] == "WAITAOF" else reply
    return confirmed >= command[1]


def mark_unconfirmed(job: RedisAppend, answer: Any, reply: Any) -> Any:
    """Return the answer for a stored batch that the disk or the replicas did not confirm."""
    if isinstance(answer, Exception) or not job.sync or answer[0] != b"ok":
        return answer
    return ["unsafe", answer[1], repr(reply)]


def is_dead_process(holder: str) -> bool:
    """Return whether a writer was a process of this machine that has ended."""
    host, _, number = holder.partition("@")[2].rpartition(":")
    if os.name != "posix" or host != socket.gethostname() or not number.isdecimal():
        return False
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return True
    except OSError:
        return False
    return False
