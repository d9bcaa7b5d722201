"""What is on its way into a Redis server, and what the server has answered."""

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
    """What this program knows of one log."""

    def __init__(self, sid: str, prefix: str) -> None:
        self.sid = sid
        self.keys = [f"{prefix}:{part}:{sid}" for part in ("log", "state", "lease")]
        self.refused = False  # whether it was taken over, or has lost something
        self.stolen = ""  # the writer whose lease may be taken
        self.renew()
        self.forget()

    def renew(self) -> None:
        """Be another writer: what this one has written counts no more."""
        self.token = f"{uuid.uuid4().hex}@{socket.gethostname()}:{os.getpid()}"
        self.reserved = INVALID_ID
        self.acked = 0  # how many batches of this writer the server has, as far as is known
        self.given_up = 0  # how many more it may have, for which nobody waits any more

    def forget(self) -> None:
        """Begin again."""
        self.last = INVALID_ID
        self.given = INVALID_ID
        self.reserved = INVALID_ID
        self.acked = self.given_up = 0


class WriteJob(Generic[T]):
    """Something to do for which somebody waits."""

    def __init__(self, work: Callable[[], T], until: float) -> None:
        self.work = work
        self.until = until
        self.pending: PendingFuture[T] = PendingFuture()


class RedisAppend(NamedTuple):
    """Events on their way into a log."""

    log: RedisLog
    written: list[Any]
    expect_seq: int | None
    sync: bool
    pending: PendingFuture[int]
    until: float


def conflict(log: RedisLog, address: str, code: str, facts: list[str]) -> EventStoreError:
    """Return why a batch was refused."""
    where = f"The log {log.sid!r} at {address}"
    store = f"{address} {log.sid}"
    if code == "lost":
        return EventStoreError(
            f"{where} has lost what it had acknowledged ({facts[0]} batches): the server was "
            "restarted without its last events, or somebody deleted the log. Nothing more is "
            "written to it; open it anew to go on with what is there.",
            store=store,
        )
    told = {
        "held": f"is being written by {facts[0].partition('@')[2]}, which has it for another "
        f"{facts[-1]} ms after its last event. Read it, or write under another sid.",
        "taken": f"was taken over by {facts[0].partition('@')[2]}. Open it anew to go on.",
        "count": f"holds {facts[0]} events, which is not what was expected: somebody else has "
        "written to it. Read what is new and try again.",
        "id": f"already has the id {facts[0]}: expected at least {facts[-1]}. Append new events.",
    }
    return EventConflictError(f"{where} {told[code]}", store=store)


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
    """Return the answer that a batch was stored, but perhaps not for ever."""
    if isinstance(answer, Exception) or not job.sync or answer[0] != b"ok":
        return answer
    return ["unsafe", answer[1], repr(reply)]


def has_died(holder: str) -> bool:
    """Return whether a writer was a process of this machine that is no more."""
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
