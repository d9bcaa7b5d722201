"""The one instance of DBOS in this process: its first user launches it, its last one ends it."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import math
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
from agents_tools.persistence.queue.errors import QueueError
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

__all__ = ["Engine", "checked_url", "explaining", "started"]

T = TypeVar("T")

VERSION: Final = "agents-tools-1"
"""The application version in DBOS; processes with the same version take each other's work."""


_SUBSECONDS: Final = (3, 42)
"""The first version of SQLite with fractions of seconds."""

_GRACE: Final = 2.0


class Engine:
    """A user of the DBOS instance of this process.

    Args:
        url: The address of the database.
        launched: Whether the application launches DBOS itself.
        queues: The queues whose work this process takes.
        error: Creates the errors from a message and `store`, the address without its password.
    """

    def __init__(
        self,
        url: str,
        *,
        launched: bool,
        queues: tuple[str, ...] = (),
        error: Callable[..., Exception] = QueueError,
    ) -> None:
        self._own_url = url
        self._launched = launched
        self._queues = queues
        self._error = error
        self._has_share = False

    async def ready(self) -> None:
        """Launch DBOS unless it is running.

        Raises:
            QueueError: DBOS cannot be launched.
        """
        if not self._has_share:
            with explaining(self._own_url, self._error):
                await asyncio.shield(asyncio.to_thread(self._take_share))

    async def stop(self, seconds: float) -> None:
        """Take no more work from the queues, and wait for the workflows that run here.

        Args:
            seconds: The maximum time to wait.
        """
        await asyncio.shield(asyncio.to_thread(self._stop, math.ceil(seconds)))

    async def aclose(self) -> None:
        """End DBOS if it has no other user."""
        if self._has_share:
            await asyncio.shield(asyncio.to_thread(self._give_share_back))

    def begin(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Start a coroutine that uses DBOS, and return its future, which can be cancelled.

        DBOS changes the settings of the event loop and reads the workflow from the context, so
        the coroutine runs in a loop of its own and in an empty context.

        Raises:
            QueueError: DBOS is closed.
        """
        loop = _shared.loop
        if loop is None or not self._has_share:
            work.close()
            raise self._closed()
        begin = asyncio.run_coroutine_threadsafe
        return contextvars.Context().run(begin, work, loop)

    async def do(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine that uses DBOS to its end, even if the caller is cancelled.

        Raises:
            QueueError: The database cannot be used, or DBOS is closed.
        """
        future = asyncio.wrap_future(self.begin(work))
        future.add_done_callback(lambda done: done.cancelled() or done.exception())
        with explaining(self._own_url, self._error):
            try:
                return await asyncio.shield(future)
            except asyncio.CancelledError:
                task = asyncio.current_task()
                if future.cancelled() and not (task and task.cancelling()):
                    raise self._closed() from None
                raise

    def _closed(self) -> Exception:
        shown = _shown(self._own_url)
        return self._error(f"The connection to {shown} was closed. Create a new one.", store=shown)

    def _take_share(self) -> None:
        with _shared.lock:
            if self._has_share:
                return
            if _shared.users and _shared.url != self._own_url:
                raise self._error(
                    f"DBOS already uses {_shown(_shared.url)} in this process, and can use one "
                    "database only. Use the same database, or close its other users first.",
                    store=_shown(self._own_url),
                )
            if _shared.users and self._queues:
                raise self._error(
                    "A worker needs a process of its own: DBOS is in use here already.",
                    store=_shown(self._own_url),
                )
            if not _shared.users:
                if not self._launched:
                    self._launch()
                elif not _is_made():
                    raise self._error(
                        "DBOS is not running, although launched=True declares that the "
                        "application launches it. Call DBOS.launch() first, or omit launched=.",
                        store=_shown(self._own_url),
                    )
                _begin_loop()
            _shared.url = self._own_url
            _shared.users += 1
            self._has_share = True

    def _launch(self) -> None:
        if _is_made():
            raise self._error(
                "The application uses DBOS itself in this process, which has one instance. Pass "
                "launched=True and the address of the application's database.",
                store=_shown(self._own_url),
            )
        logging.getLogger("dbos").setLevel(logging.CRITICAL)
        DBOS(
            config={
                "name": "agents-tools",
                "system_database_url": self._own_url,
                "executor_id": f"agents-tools-{uuid.uuid4().hex}",
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

    def _stop(self, seconds: int) -> None:
        with _shared.lock:
            if self._has_share and not self._launched:
                DBOS.destroy(workflow_completion_timeout_sec=seconds)

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
    """The state that all users have in common."""

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
    """Cancel the tasks that still wait."""
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    if tasks:
        await asyncio.wait(tasks)


def _is_made() -> bool:
    """Return whether DBOS was created; its public functions raise an error if it was not."""
    return vars(import_module("dbos._dbos")).get("_dbos_global_instance") is not None


def checked_url(owner: str, url: object) -> str:
    """Return the address of a database.

    Raises:
        UserError: DBOS cannot use the address.
    """
    if not isinstance(url, str):
        raise UserTypeError(
            f"{owner} expects the address of a database as text, got {type_with_article(url)}."
        )
    if not url.startswith(("sqlite:///", "postgresql://", "postgresql+psycopg://")):
        raise UserValueError(
            f"{owner} expects an address such as 'sqlite:///runs.db' or "
            f"'postgresql://user@host/name', got {_shown(url)!r}."
        )
    if url.startswith("sqlite") and url[len("sqlite:///") :].partition("?")[0] in {"", ":memory:"}:
        raise UserValueError(
            f"{owner} expects the path of a file, such as 'sqlite:///runs.db', got {url!r}: a "
            "database in memory does not survive its process."
        )
    return url


@contextmanager
def explaining(url: str, error_class: Callable[..., Exception]) -> Generator[None]:
    """Convert errors of DBOS and its database to errors that contain the address."""
    try:
        yield
    except (dbos_errors.DBOSException, SQLAlchemyError, OSError) as error:
        reason = str(error).strip().partition("\n")[0]
        raise error_class(
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
                "or Python 3.11."
            )
    return "Check that the database is running and writable."


async def started(workflow: Callable[..., Any], workflow_id: str, *given: Any) -> Any:
    """Start a workflow with an id, unless there is one with the same id."""
    with SetWorkflowID(workflow_id):
        return await DBOS.start_workflow_async(workflow, *given)


def _shown(url: str) -> str:
    """Return an address without its password."""
    scheme, slashes, rest = url.partition("://")
    user, at, place = rest.rpartition("@")
    return f"{scheme}{slashes}{user.partition(':')[0]}{at}{place}"
