"""The one DBOS of this process: who uses it first launches it, who uses it last ends it."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import sys
import threading
import uuid
from concurrent.futures import Future  # noqa: TC003 - the class of what is given
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeVar

from dbos import DBOS, SetWorkflowID, error as dbos_errors
from sqlalchemy.exc import SQLAlchemyError

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.persistence.durable.store import DurableStoreError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["Engine", "checked_url", "explaining", "started"]

T = TypeVar("T")

VERSION: Final = "agents-tools-1"
"""The application version that DBOS is told: all that share it take each other's work."""


_SUBSECONDS: Final = (3, 42)
"""The version of SQLite from which on it tells parts of seconds."""

_GRACE: Final = 2.0


class Engine:
    """A share in the DBOS of this process.

    Args:
        url: The database.
        launched: Whether the application launches DBOS itself.
        executor: What DBOS calls this process; work that a process leaves behind is gone on with
            by the next one of the same name.
        queues: The queues whose work this process takes.
    """

    def __init__(
        self,
        url: str,
        *,
        launched: bool,
        executor: str | None = None,
        queues: tuple[str, ...] = (),
    ) -> None:
        self._own_url = url
        self._launched = launched
        self._executor = executor or f"agents-tools-{uuid.uuid4().hex}"
        self._queues = queues
        self._has_share = False

    async def ready(self) -> None:
        """Launch DBOS if no one did.

        Raises:
            DurableStoreError: It cannot be launched.
        """
        if not self._has_share:
            with explaining(self._own_url):
                await asyncio.shield(asyncio.to_thread(self._take_share))

    async def aclose(self) -> None:
        """Return the share back; the last one ends DBOS."""
        if self._has_share:
            await asyncio.shield(asyncio.to_thread(self._give_share_back))

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Begin something with DBOS, which may be cancelled.

        DBOS changes the event loop that it is used in, and the context tells it of the workflow
        that it is used in; here are a loop and a context in which neither matters.

        Raises:
            DurableStoreError: DBOS is closed.
        """
        loop = _shared.loop
        if loop is None or not self._has_share:
            work.close()
            raise self._closed()
        begin = asyncio.run_coroutine_threadsafe
        return contextvars.Context().run(begin, work, loop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Do something with DBOS; it comes to its end even if no one waits for it any more.

        Raises:
            DurableStoreError: DBOS could not, or is closed.
        """
        future = asyncio.wrap_future(self.begin(work))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        with explaining(self._own_url):
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if future.cancelled() and not (task and task.cancelling()):
                    raise self._closed() from None
                raise

    def _closed(self) -> DurableStoreError:
        shown = _shown(self._own_url)
        return DurableStoreError(f"What uses {shown} was closed. Open it again.", store=shown)

    def _take_share(self) -> None:
        with _shared.lock:
            if self._has_share:
                return
            if _shared.users and _shared.url != self._own_url:
                raise DurableStoreError(
                    f"DBOS has one database in a process, and here that is {_shown(_shared.url)}. "
                    "Close what uses it first, or give both the same one.",
                    store=_shown(self._own_url),
                )
            if _shared.users and self._queues:
                raise DurableStoreError(
                    "A worker needs a process of its own: DBOS is in use here already.",
                    store=_shown(self._own_url),
                )
            if not _shared.users:
                if not self._launched:
                    self._launch()
                elif not _is_made():
                    raise DurableStoreError(
                        "launched=True says that the application launches DBOS itself, and it did "
                        "not yet. Call DBOS.launch() first, or leave launched= out.",
                        store=_shown(self._own_url),
                    )
                _begin_loop()
            _shared.url = self._own_url
            _shared.users += 1
            self._has_share = True

    def _launch(self) -> None:
        if _is_made():
            raise DurableStoreError(
                "The application uses DBOS itself in this process, which has one. Say "
                "launched=True, and give the database that it launches DBOS on.",
                store=_shown(self._own_url),
            )
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        DBOS(
            config={
                "name": "agents-tools",
                "system_database_url": self._own_url,
                "executor_id": self._executor,
                "application_version": VERSION,
                "log_level": "CRITICAL",
            }
        )
        try:
            DBOS.listen_queues(self._queues)
            DBOS.launch()
        except BaseException:
            DBOS.destroy()
            raise

    def _give_share_back(self) -> None:
        with _shared.lock:
            if not self._has_share:
                return
            self._has_share = False
            _shared.users -= 1
            if not _shared.users:
                if not self._launched:
                    DBOS.destroy()
                _end_loop()


class _SharedEngine:
    """What all shares have in common."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.users = 0
        self.url = ""
        self.loop: asyncio.AbstractEventLoop | None = None
        self.thread: threading.Thread | None = None


_shared = _SharedEngine()


def _begin_loop() -> None:
    loop = _shared.loop = asyncio.new_event_loop()
    _shared.thread = threading.Thread(
        target=loop.run_forever, name="agents-tools-dbos", daemon=True
    )
    _shared.thread.start()


def _end_loop() -> None:
    loop, thread = _shared.loop, _shared.thread
    _shared.loop = _shared.thread = None
    if loop is not None and thread is not None:
        with suppress(TimeoutError):
            asyncio.run_coroutine_threadsafe(_end_tasks(), loop).result(_GRACE)
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


async def _end_tasks() -> None:
    """Let go of those who wait for what will not come."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _is_made() -> bool:
    """Return whether this process has its DBOS; what is public does not tell without an error."""
    return vars(import_module("dbos._dbos")).get("_dbos_global_instance") is not None


def checked_url(owner: str, url: object) -> str:
    """Return the address of a database if it is one that DBOS has a use for.

    Raises:
        UserError: It is not.
    """
    if not isinstance(url, str):
        raise UserTypeError(
            f"{owner} takes the address of a database as text, not {type_with_article(url)}."
        )
    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise UserValueError(
            f"{owner} takes an address such as 'sqlite:///runs.db' or "
            f"'postgresql://user@host/name', not {_shown(url)!r}."
        )
    if url.startswith("sqlite") and url[len("sqlite:///") :].partition("?")[0] in {"", ":memory:"}:
        raise UserValueError(
            f"{owner} takes the path of a file, such as 'sqlite:///runs.db': what is in memory "
            "alone does not survive."
        )
    return url


@contextmanager
def explaining(url: str) -> Generator[None]:
    """Raise what DBOS and its database raise in the block as an error that says where."""
    try:
        yield
    except (dbos_errors.DBOSException, SQLAlchemyError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise DurableStoreError(
            f"DBOS could not use {_shown(url)} ({type(error).__name__}: {reason}). {_remedy(url)}",
            store=_shown(url),
        ) from error


def _remedy(url: str) -> str:
    if url.startswith("sqlite") and sys.version_info >= (3, 12):
        import sqlite3

        if sqlite3.sqlite_version_info < _SUBSECONDS:
            return (
                "From Python 3.12 on DBOS asks SQLite for parts of seconds, which SQLite 3.42 was "
                f"the first to give, and this Python has {sqlite3.sqlite_version}. Use PostgreSQL, "
                "Python 3.11, or LocalDurableStore, which needs neither."
            )
    return "Look whether the database runs and may be written to."


async def started(workflow: Callable[..., Any], workflow_id: str, *given: Any) -> Any:
    """Start a workflow under an id; one that has it already is not started again."""
    with SetWorkflowID(workflow_id):
        return await DBOS.start_workflow_async(workflow, *given)


def _shown(url: str) -> str:
    """Return an address without its password."""
    scheme, slashes, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{place}"
