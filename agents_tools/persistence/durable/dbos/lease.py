"""Who carries a run on: a lock that the kernel, or the server, frees when its holder ends."""

from __future__ import annotations

import threading
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, Protocol

import psycopg

from agents_tools.persistence.durable.lock import LogLocks
from agents_tools.persistence.durable.store import DurableStoreError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = ["RunLeases", "leases_of"]

_SETTINGS: Final = "tcp_keepalives_idle=20 tcp_keepalives_interval=10 tcp_keepalives_count=3"
"""A server that lost sight of a machine frees its locks within a minute."""


class RunLeases(Protocol):
    """The leases that one store holds; called in threads."""

    def take(self, sid: str, /) -> bool:
        """Take the lease of a run; `False` if somebody else has it."""
        ...

    def give_back(self, sid: str, /) -> None:
        """Let others carry a run on."""
        ...

    def close(self) -> None:
        """Return all."""
        ...


def leases_of(url: str) -> RunLeases:
    """Return what holds leases for a database."""
    if url.startswith("sqlite"):
        return _FileLease(url.partition("///")[2].partition("?")[0])
    return _ServerLease(url.replace("postgresql+psycopg://", "postgresql://", 1))


class _FileLease:
    def __init__(self, path: str) -> None:
        self._leases = LogLocks(path)
        self._held: set[str] = set()

    def take(self, sid: str, /) -> bool:
        if sid in self._held or not self._leases.take(sid):
            return False
        self._held.add(sid)
        return True

    def give_back(self, sid: str, /) -> None:
        self._held.discard(sid)
        self._leases.give_back(sid)

    def close(self) -> None:
        for sid in list(self._held):
            self.give_back(sid)


class _ServerLease:
    def __init__(self, url: str) -> None:
        self._url = url
        self._lock = threading.Lock()
        self._connection: psycopg.Connection[Any] | None = None
        self._held: set[str] = set()

    def take(self, sid: str, /) -> bool:
        with self._lock:
            if sid in self._held or not self._with_connection(lambda it: _locked(it, sid)):
                return False
            self._held.add(sid)
            return True

    def give_back(self, sid: str, /) -> None:
        with self._lock:
            if sid in self._held:
                self._held.remove(sid)
                self._with_connection(
                    lambda it: it.execute("SELECT pg_advisory_unlock(%s)", [_number(sid)])
                )

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._held.clear()

    def _with_connection(self, work: Callable[[psycopg.Connection[Any]], Any]) -> Any:
        try:
            try:
                return work(self._open())
            except psycopg.OperationalError:  # the server went away, and the locks with it
                self._connection = None
                return work(self._open())
        except psycopg.Error as error:
            raise DurableStoreError(
                f"The lock of a run could not be asked for ({error}). Look whether the database "
                "runs.",
                store="postgresql",
            ) from error

    def _open(self) -> psycopg.Connection[Any]:
        if self._connection is None:
            options = " ".join(f"-c {setting}" for setting in _SETTINGS.split())
            self._connection = psycopg.connect(self._url, autocommit=True, options=options)
            for sid in self._held:
                _locked(self._connection, sid)
        return self._connection


def _locked(connection: psycopg.Connection[Any], sid: str) -> bool:
    row = connection.execute("SELECT pg_try_advisory_lock(%s)", [_number(sid)]).fetchone()
    return bool(row and row[0])


def _number(sid: str) -> int:
    digest = sha256(f"agents_tools/{sid}".encode("utf-8", "surrogatepass")).digest()
    return int.from_bytes(digest[:8], "big", signed=True)
