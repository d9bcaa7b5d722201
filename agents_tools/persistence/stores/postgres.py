"""A run store in a PostgreSQL database, which many machines can share."""

from __future__ import annotations

import contextlib
import threading
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal
from urllib.parse import urlsplit, urlunsplit

import psycopg

from agents_tools.errors import (
    EventStoreError,
    EventStoreFullError,
    UserValueError,
)
from agents_tools.persistence.run_store import RunStore
from agents_tools.persistence.stores.sql import TABLES, SQLStorage

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["PostgresRunStore", "PostgresStorage"]

_SCHEMA: Final = "agents_tools_runs"
_CHANNEL: Final = "agents_tools_runs"
_VERSION: Final = 1
_SETUP_LOCK: Final = 0x6174524C
_APPLICATION: Final = "agents-tools"
_END_SUSPENDED: Final = """
SELECT pg_terminate_backend(pid) FROM pg_stat_activity
WHERE application_name = %s AND usename = current_user AND datname = current_database()
AND xact_start IS NOT NULL AND wait_event = 'ClientRead'
AND query_start < clock_timestamp() - make_interval(secs => %s)
"""
"""Ends the sessions that have waited in a transaction for their client for longer than a lease."""


class PostgresRunStore(RunStore):
    """Stores runs in a PostgreSQL database, for several web servers and workers.

    The tables are created in the schema `agents_tools_runs` of the database. Requires
    `pip install 'agents-tools[postgres]'`.

    Args:
        url: The address, such as `postgresql://user:password@host/database`.
        keep_display: Whether text deltas, progress and notifications stay in the log when a run
            ends.
        timeout: How long to try a request while the server cannot be reached, in seconds.
        lease_ttl: The time after which another process can continue a run whose process has ended
            or hangs, in seconds.

    Raises:
        EventStoreError: The database cannot be used, or another release has written its tables.
        UserError: The address is not valid.
    """

    def __init__(
        self,
        url: str,
        *,
        keep_display: bool = False,
        timeout: float = 10.0,
        lease_ttl: float = 15.0,
    ) -> None:
        super().__init__(PostgresStorage(url, timeout, lease_ttl), keep_display=keep_display)


class PostgresStorage(SQLStorage):
    """The storage of a `PostgresRunStore`.

    Args:
        url: The address.
        timeout: How long to try a request, in seconds.
        lease_ttl: The time after which a lease expires, in seconds.
    """

    passing_errors = (psycopg.OperationalError,)
    value_errors = (psycopg.DataError, ValueError, OverflowError)
    for_update = " FOR UPDATE"

    def __init__(self, url: str, timeout: float, lease_ttl: float) -> None:
        super().__init__(_without_password(url), lease_ttl)
        self._url = url
        self._timeout = timeout
        self._listener: Any = None
        self._committing: str | None = None
        self.patience = timeout
        self._wake = threading.Event()
        with self._translated():
            connection = self.connect("write")
            try:
                self._create_tables(connection)
            finally:
                self.discard(connection)

    # --- the database

    def connect(self, use: Literal["write", "read"]) -> Any:
        """Open a connection; see `SQLStorage.connect`."""
        connection = psycopg.connect(
            self._url,
            autocommit=True,
            connect_timeout=max(1, round(self._timeout)),
            application_name=_APPLICATION,
        )
        connection.execute(f"SET search_path TO {_SCHEMA}")
        if use == "read":
            connection.execute("SET default_transaction_read_only = on")
        else:
            # A process that is suspended in a transaction must not block the others. The server
            # ends its session, except while a statement is only half sent: then the next one
            # does that connects, after its own wait for the locks has ended.
            for setting, seconds in (
                ("idle_in_transaction_session_timeout", self.lease_ttl),
                ("lock_timeout", min(self.lease_ttl, self._timeout / 2)),
            ):
                value = f"{round(1_000 * seconds)}ms"
                connection.execute("SELECT set_config(%s, %s, false)", (setting, value))
            connection.execute(_END_SUSPENDED, (_APPLICATION, self.lease_ttl))
        return connection

    def _create_tables(self, connection: Any) -> None:
        with connection.transaction():
            connection.execute("SELECT pg_advisory_xact_lock(%s)", (_SETUP_LOCK,))
            connection.execute(f"CREATE SCHEMA IF NOT EXISTS {_SCHEMA}")
            known = connection.execute(
                "SELECT to_regclass(%s), to_regclass(%s)",
                (f"{_SCHEMA}.version", f"{_SCHEMA}.log"),
            ).fetchone()
            if known[0] is not None:
                version = connection.execute("SELECT version FROM version").fetchone()[0]
                if version != _VERSION:
                    raise EventStoreError(
                        f"The tables in {self.place} were written by another release of "
                        f"agents-tools: expected version {_VERSION}, got {version}. Nothing was "
                        "changed. Use one release with the database.",
                        store=self.place,
                    )
                return
            connection.execute("CREATE TABLE version (version INTEGER NOT NULL)")
            connection.execute("INSERT INTO version VALUES (%s)", (_VERSION,))
            key = "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
            for statement in TABLES:
                connection.execute(statement.format(key=key, bytes="BYTEA"))

    def execute(self, connection: Any, statement: str, values: Sequence[Any] = ()) -> Any:
        """Execute a statement."""
        return connection.execute(_with_markers(statement), values)

    def execute_many(self, connection: Any, statement: str, rows: Sequence[Sequence[Any]]) -> None:
        """Execute a statement for each row of values, in one round trip."""
        with connection.cursor() as cursor:
            cursor.executemany(_with_markers(statement), rows)

    def begin(self, connection: Any, *, sync: bool) -> None:
        """Begin a transaction. The server syncs each one to its disk."""
        del sync
        connection.execute("BEGIN")

    def commit(self, connection: Any) -> None:
        """Commit the transaction, and notify the processes that wait for a change."""
        statement = "SELECT pg_current_xact_id()::text, pg_notify(%s, '')"
        self._committing = connection.execute(statement, (_CHANNEL,)).fetchone()[0]
        connection.execute("COMMIT")
        self._committing = None

    def has_committed(self, error: Exception) -> bool:
        """Ask the server whether a transaction was committed whose connection broke."""
        transaction, self._committing = self._committing, None
        if transaction is None or not isinstance(error, psycopg.OperationalError):
            return False

        def ask() -> str:
            with self.reading() as connection:
                statement = "SELECT pg_xact_status(%s::xid8)"
                status = connection.execute(statement, (transaction,)).fetchone()[0]
            if status == "in progress":  # the server has not noticed the end of the connection
                raise EventStoreError(f"{self.place} was interrupted.", store=self.place) from error
            return str(status)

        return self.retry(ask) == "committed"

    def discard(self, connection: Any) -> None:
        """Close a connection."""
        with contextlib.suppress(psycopg.Error):
            connection.close()

    def now(self, connection: Any) -> float:
        """Return the time of the server."""
        row = connection.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
        return float(row[0])

    def lock_text(self, connection: Any, text: str) -> None:
        """Lock a text until the end of the transaction."""
        connection.execute("SELECT pg_advisory_xact_lock(hashtextextended(%s, 0))", (text,))

    def translate(self, error: Exception) -> Exception:
        """Return the error of the store for an error of the driver."""
        if not isinstance(error, psycopg.Error):
            return error
        reason = str(error).strip().partition("\n")[0]
        if isinstance(error, psycopg.errors.InsufficientResources):
            return EventStoreFullError(
                f"{self.place} has no resources left ({reason}). Nothing was stored. Free them and "
                "try again.",
                store=self.place,
            )
        if isinstance(error, psycopg.errors.InsufficientPrivilege):
            return EventStoreFullError(
                f"{self.place} refuses access ({reason}). Allow the user to create and use the "
                f"schema {_SCHEMA}.",
                store=self.place,
            )
        if isinstance(error, psycopg.errors.LockNotAvailable):
            return EventStoreError(
                f"{self.place} is locked by another session ({reason}). Nothing was stored. End "
                "that session, or try again.",
                store=self.place,
            )
        if isinstance(error, psycopg.OperationalError):
            return EventStoreError(
                f"{self.place} cannot be reached ({reason}). Check the address and that the server "
                "is running.",
                store=self.place,
            )
        return EventStoreError(
            f"{self.place} could not be read or written ({reason}). No event was stored in part.",
            store=self.place,
        )

    def wait_for_change(self, seconds: float, /) -> bool:
        """Wait for a notification of another process."""
        with self._translated():
            try:
                if self._listener is None:
                    self._listener = self.connect("read")
                    self._listener.execute(f"LISTEN {_CHANNEL}")
                    return True  # changes before the LISTEN are not notified
                for _ in self._listener.notifies(timeout=seconds, stop_after=1):
                    return True
            except BaseException:
                listener, self._listener = self._listener, None
                if listener is not None:
                    self.discard(listener)
                raise
        return False

    def wake(self) -> None:
        """Do nothing: `wait_for_change` returns after a short time."""

    def close(self) -> None:
        """Close all connections."""
        super().close()
        listener, self._listener = self._listener, None
        if listener is not None:
            self.discard(listener)

    def after_fork(self) -> None:
        """Forget the connections of the parent."""
        super().after_fork()
        if self._listener is not None:
            _parent_listeners.append(self._listener)
            self._listener = None


_parent_listeners: Final[list[Any]] = []
"""Connections of a parent process. They are referenced here so that they are never closed."""


@lru_cache(maxsize=512)
def _with_markers(statement: str) -> Any:
    """Return a statement with the parameter markers of the driver."""
    return statement.replace("?", "%s")


def _without_password(url: object) -> str:
    """Return an address without its password.

    Raises:
        UserValueError: It is not the address of a PostgreSQL database.
    """
    parts = urlsplit(url) if isinstance(url, str) else None
    if parts is None or parts.scheme not in {"postgresql", "postgres"}:
        raise UserValueError(
            "PostgresRunStore(url) is not an address: expected for example "
            f"'postgresql://user:password@host/database', got {type(url).__name__}."
        )
    host = parts.hostname or ""
    user = f"{parts.username}@" if parts.username else ""
    port = f":{parts.port}" if parts.port else ""
    return urlunsplit((parts.scheme, f"{user}{host}{port}", parts.path, "", ""))
