"""Batches sent to a Redis server, and its replies."""

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
    "conflict",
    "has_died",
    "is_confirmed",
    "text_of",
    "unsafe",
]

T = TypeVar("T")


class RedisLog:
    """The state of one log in this process."""

    def __init__(self, sid: str, prefix: str) -> None:
        self.sid = sid
        self.keys = [f"{prefix}:{part}:{sid}" for part in ("log", "state", "lease")]
        self.refused = False  # whether another writer took over, or the log lost events
        self.stolen = ""  # the writer whose lease may be taken
        self.renew()
        self.forget()

    def renew(self) -> None:
        """Become a new writer with its own token and counters."""
        self.token = f"{uuid.uuid4().hex}@{socket.gethostname()}:{os.getpid()}"
        self.reserved = INVALID_ID
        self.acked = 0  # the known number of batches of this writer on the server
        self.given_up = 0  # the number of abandoned batches that the server can also have

    def forget(self) -> None:
        """Reset the state."""
        self.last = INVALID_ID
        self.given = INVALID_ID
        self.reserved = INVALID_ID
        self.acked = self.given_up = 0


class WriteJob(Generic[T]):
    """An operation with a waiting caller."""

    def __init__(self, work: Callable[[], T], until: float) -> None:
        self.work = work
        self.until = until
        self.pending: PendingFuture[T] = PendingFuture()


class RedisAppend(NamedTuple):
    """Events to append to a log."""

    log: RedisLog
    written: list[Any]
    expect_seq: int | None
    sync: bool
    pending: PendingFuture[int]
    until: float


def conflict(log: RedisLog, address: str, code: str, facts: list[str]) -> EventStoreError:
    """Return the error for a rejected batch."""
    where = f"The log {log.sid!r} at {address}"
    store = f"{address} {log.sid}"
    if code == "lost":
        return EventStoreError(
            f"{where} has lost what it had acknowledged ({facts[0]} batches): the server was "
            "restarted without its last events, or the log was deleted. Open the log again to "
            "continue with the events that remain.",
            store=store,
        )
    problems = {
        "held": f"has another writer: {facts[0].partition('@')[2]}, whose lease ends in "
        f"{facts[-1]} ms without a new event. Read the log, or write to another sid.",
        "taken": f"was taken over by {facts[0].partition('@')[2]}. Open the log again to continue.",
        "count": f"has {facts[0]} events, not the expected number: another writer has "
        "appended to it. Read the new events and try again.",
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
    had: int = reply[0] if command[0] == "WAITAOF" else reply
    return had >= command[1]


def unsafe(job: RedisAppend, answer: Any, reply: Any) -> Any:
    """Return the answer for a batch that was stored without a confirmation of durability."""
    if isinstance(answer, Exception) or not job.sync or answer[0] != b"ok":
        return answer
    return ["unsafe", answer[1], repr(reply)]


def has_died(holder: str) -> bool:
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
