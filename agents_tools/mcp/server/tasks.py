"""Tasks: calls whose result the client fetches later, also from another process."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import math
import os
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.errors import EventStoreError, RunInUseError, UserValueError
from agents_tools.mcp._coerce import an_object
from agents_tools.mcp._progress_meta import EVENTS_KEY
from agents_tools.mcp.server.elicitation import ask_client
from agents_tools.mcp.server.input_required import WaitingCall
from agents_tools.mcp.server.requests import INTERNAL_ERROR, RequestError
from agents_tools.mcp.server.served_client import current_client
from agents_tools.mcp.server.task_records import ENDED, TaskRecord, TaskRecords
from agents_tools.persistence import MemoryRunStore, open_run_store

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.mcp.server.handlers import AnyTool, ToolHandlers
    from agents_tools.mcp.server.progress import Notification, Report
    from agents_tools.mcp.server.requests import MCPRequest
    from agents_tools.mcp.server.served_client import ServedClient
    from agents_tools.mcp.server.task_records import TaskLog
    from agents_tools.persistence.run_store import RunStore

__all__ = ["RunningTask", "TaskMode", "TaskOption", "Tasks", "create_tasks"]

logger = logging.getLogger("agents_tools.mcp")

TaskMode: TypeAlias = Literal["forbidden", "optional", "required"]
TaskOption: TypeAlias = "bool | Literal['required'] | Sequence[str]"
"""Which tools can be called as tasks."""

_ALL_CALLERS = 10
"""All callers together can have this many times the open tasks of one."""
_KEPT = 10
"""Tasks that are kept, with those that have ended, in multiples of the open tasks."""


class RunningTask:
    """A task whose call runs in this process.

    Args:
        log: The log of the task.
        owner: The principal that created it.
        call: The call, which can make requests to the client.

    Attributes:
        result: The result of the call; `None` until it has ended with one.
        failure: The error of the protocol with which it has failed.
        driver: The task of the event loop that stores the changes, until the call has ended.
    """

    def __init__(self, log: TaskLog, owner: str | None, call: WaitingCall) -> None:
        self.owner = owner
        self.result: dict[str, Any] | None = None
        self.failure: RequestError | None = None
        self.driver: asyncio.Task[None]
        self._log = log
        self._call = call
        self._message: str | None = None
        self._stored: tuple[str | None, dict[str, Any]] = None, {}
        self._is_abandoned = False
        self._changes = asyncio.Condition()

    @property
    def id(self) -> str:
        """The id of the task."""
        return self._log.id

    def start(self, perform: Any) -> None:
        """Start the call."""
        self._call.start(perform, has_progress=False)
        self.driver = asyncio.create_task(self._drive(), name=f"mcp {self.id}")

    async def report(self, notification: Notification) -> None:
        """Use progress of the call as its status message."""
        params = notification.params
        message, total = params.get("message"), params.get("total")
        count = f"{params['progress']:g}" + ("" if total is None else f"/{total:g}")
        self._message = str(message or count)
        self._call.changed.set()

    def open_requests(self) -> dict[str, dict[str, Any]]:
        """Return the requests that wait for a response, by their names."""
        return self._call.open_requests()

    async def answer(self, responses: Mapping[str, Any]) -> None:
        """Pass responses of the client to the call; those that it does not wait for are ignored."""
        self._call.answer(dict(responses))
        await self._store_changes()

    async def wait_for_change(self) -> None:
        """Wait until the state of the task has changed, or the task has ended."""
        async with self._changes:
            if not self.driver.done():
                await self._changes.wait()

    async def cancel(self) -> None:
        """Cancel the call, and wait until the task has ended."""
        self._call.task.cancel()
        await asyncio.wait({self.driver})

    async def abandon(self) -> None:
        """Cancel the call without an end of the task, which another process can continue."""
        self._is_abandoned = True
        await self.cancel()

    async def _drive(self) -> None:
        watcher = asyncio.create_task(self._watch_messages())
        try:
            while not self._call.task.done():
                await self._call.changed.wait()
                self._call.changed.clear()
                await self._store_changes()
            await self._store_end()
        except EventStoreError as error:
            logger.warning("Task %s ends, because its state cannot be stored: %s", self.id, error)
            self._call.task.cancel()
        finally:
            watcher.cancel()
            await asyncio.wait({watcher})
            with contextlib.suppress(EventStoreError):
                await self._log.close()
            await self._notify()

    async def _store_changes(self) -> None:
        """Store a new status message, and new requests for input."""
        await asyncio.sleep(0)  # concurrent parts of the call make their requests, too
        message, requests = self._message, self._call.open_requests()
        stored, self._stored = self._stored, (message, requests)
        if requests != stored[1]:
            await self._log.store_requests(requests)
        if message is not None and message != stored[0]:
            await self._log.store_message(message)
        await self._notify()

    async def _notify(self) -> None:
        async with self._changes:
            self._changes.notify_all()

    async def _store_end(self) -> None:
        status = "completed"
        error: dict[str, Any] | None = None
        try:
            self.result = self._call.task.result()
        except asyncio.CancelledError:
            status = "cancelled"
        except RequestError as failure:
            status, self.failure = "failed", failure
        except Exception:
            logger.exception("The call of task %s has failed.", self.id)
            status, self.failure = "failed", RequestError("Internal error", INTERNAL_ERROR)
        if self._is_abandoned:
            return
        if self.failure is not None:
            error = {"code": self.failure.code, "message": str(self.failure)}
            if self.failure.data is not None:
                error["data"] = self.failure.data
        await self._log.store_end(status, self.result, error)

    async def _watch_messages(self) -> None:
        """Handle the messages of other processes: responses of the client, and cancellations."""
        with contextlib.suppress(EventStoreError):
            while True:
                for body in await self._log.next_messages():
                    if body.get("type") == "cancel":
                        self._call.task.cancel()
                    elif body.get("type") == "input_responses":
                        await self.answer(an_object(body.get("responses")))


class Tasks:
    """The tasks of a server.

    Args:
        handlers: Perform the calls.
        store: Where the tasks are stored.
        option: Which tools can be called as tasks; see `mcp_server`.
        max_tasks: The number of open tasks of one principal.
        ttl: How long a task is kept from its creation, in seconds.
    """

    def __init__(
        self,
        handlers: ToolHandlers,
        store: RunStore,
        option: TaskOption,
        *,
        max_tasks: int,
        ttl: float,
    ) -> None:
        self._handlers = handlers
        self._option = option
        self._max_tasks = max_tasks
        self._ttl = ttl
        self._running: dict[str, RunningTask] = {}
        self._kept: dict[str, tuple[float, str | None]] | None = None
        self._lock = asyncio.Lock()
        self.records = TaskRecords(store)

    def mode_of(self, tool: AnyTool) -> TaskMode:
        """Return whether a tool can or must be called as a task."""
        declared = an_object(an_object(tool.metadata.get("mcp")).get("execution"))
        mode = declared.get("taskSupport")
        if mode in {"forbidden", "optional", "required"}:
            return cast("TaskMode", mode)
        if self._option == "required":
            return "required"
        if isinstance(self._option, bool):
            return "optional" if self._option else "forbidden"
        is_chosen = any(fnmatchcase(tool.name, pattern) for pattern in self._option)
        return "optional" if is_chosen else "forbidden"

    async def mode_by_name(self, name: object) -> TaskMode:
        """Return whether a tool can or must be called as a task, by its name."""
        tool = (await self._handlers.tools()).get(str(name))
        return "forbidden" if tool is None else self.mode_of(tool)

    async def create(
        self,
        name: str,
        arguments: Mapping[str, Any],
        request: MCPRequest,
        owner: str | None,
        capabilities: dict[str, Any],
        ttl: float | None = None,
    ) -> RunningTask:
        """Create a task, and start its call.

        Args:
            name: The name of the tool.
            arguments: The arguments.
            request: The request.
            owner: The identity of the caller.
            capabilities: The capabilities that the client declared.
            ttl: How long the client wants it to be kept, in seconds.

        Raises:
            RequestError: There is no such tool, or there are too many tasks.
        """
        await self._handlers.enabled_tool(name)
        async with self._lock:
            kept = await self._tidy()
            self._check_limits(kept, owner)
            seconds = self._ttl if ttl is None else min(max(ttl, 1.0), self._ttl)
            log = await self.records.create(name, arguments, owner, seconds)
            kept[log.id] = time.time() + seconds, owner
            return self._start(log, name, arguments, request, owner, capabilities)

    def _start(
        self,
        log: TaskLog,
        name: str,
        arguments: Mapping[str, Any],
        request: MCPRequest,
        owner: str | None,
        capabilities: dict[str, Any],
    ) -> RunningTask:
        call = WaitingCall(owner, {}, frozenset(), {})
        call.capabilities = capabilities
        running = self._running[log.id] = RunningTask(log, owner, call)
        meta = {key: value for key, value in request.meta.items() if key != EVENTS_KEY}

        async def perform(client: ServedClient, _: Report | None) -> dict[str, Any]:
            token = current_client.set(client)
            try:
                return await self._handlers.call_tool(
                    name,
                    arguments,
                    replace(request, meta=meta, has_progress=True, log_level=None),
                    running.report,
                    partial(ask_client, client),
                )
            finally:
                current_client.reset(token)

        running.start(perform)
        running.driver.add_done_callback(lambda _: self._running.pop(log.id, None))
        return running

    def _check_limits(self, kept: Mapping[str, tuple[float, str | None]], owner: Any) -> None:
        """Refuse one task more than a caller, or all callers together, can have.

        Raises:
            RequestError: There are too many tasks.
        """
        running = Counter(task.owner for task in self._running.values())
        stored = Counter(owner for _, owner in kept.values())
        limit = self._max_tasks
        if (
            running[owner] >= limit
            or running.total() >= limit * _ALL_CALLERS
            or stored[owner] >= limit * _KEPT
            or stored.total() >= limit * _KEPT * _ALL_CALLERS
        ):
            raise RequestError(
                f"Too many tasks: a caller can have {limit} open tasks. Try again later.",
                INTERNAL_ERROR,
            )

    async def _tidy(self) -> dict[str, tuple[float, str | None]]:
        """Delete the tasks that are no longer kept; return the others."""
        if self._kept is None:
            tasks = await self.records.all()
            self._kept = {task.id: (task.created + task.ttl, task.owner) for task in tasks}
        for task_id, (expires, _) in list(self._kept.items()):
            if expires < time.time():
                await self._delete(task_id)
        return self._kept

    async def _delete(self, task_id: str) -> None:
        running = self._running.get(task_id)
        if running is not None:
            await running.cancel()
        with contextlib.suppress(RunInUseError):  # another process runs it
            await self.records.store.delete(task_id)
        if self._kept is not None:
            self._kept.pop(task_id, None)

    async def discard(self, task: RunningTask) -> None:
        """Delete a task whose result was returned with the call."""
        await self._delete(task.id)

    def running(self, task_id: str) -> RunningTask | None:
        """Return a task whose call runs in this process."""
        return self._running.get(task_id)

    async def find(
        self, task_id: str, request: MCPRequest, owner: str | None, capabilities: dict[str, Any]
    ) -> TaskRecord:
        """Return the state of a task of the caller.

        A task whose process has ended runs again if its tool is read-only or idempotent, and fails
        otherwise.

        Raises:
            RequestError: The caller has no such task.
        """
        record = await self.records.find(task_id)
        if record is None or record.owner != owner or record.is_expired:
            if record is not None and record.is_expired:
                await self._delete(task_id)
            raise RequestError("Unknown task: expected the id of a task of this caller.")
        if not record.is_orphaned or task_id in self._running:
            return record
        await self._recover(record, request, capabilities)
        return await self.records.find(task_id) or record

    async def _recover(
        self, record: TaskRecord, request: MCPRequest, capabilities: dict[str, Any]
    ) -> None:
        """Run a task again whose process has ended, or end it."""
        tool = (await self._handlers.tools()).get(record.tool)
        arguments = await self.records.arguments(record.id)
        try:
            log = await self.records.take(record.id)
        except RunInUseError:
            return  # another process recovers it
        hints: Any = None if tool is None else tool.annotations
        if hints is not None and (hints.readOnlyHint is True or hints.idempotentHint is True):
            self._start(log, record.tool, arguments, request, record.owner, capabilities)
            return
        text = (
            f"The process of the server ended during the call of {record.tool!r}; it is unknown "
            "whether the call took effect. Check before you call it again."
        )
        try:
            await log.store_end("failed", None, {"code": INTERNAL_ERROR, "message": text})
        finally:
            await log.close()

    async def update(self, task_id: str, responses: Mapping[str, Any]) -> None:
        """Pass responses of the client to a task, in any process."""
        running = self._running.get(task_id)
        if running is not None:
            await running.answer(responses)
        else:
            await self.records.send(task_id, responses)

    async def cancel(self, record: TaskRecord) -> None:
        """Cancel a task, in any process; a task that has ended stays as it is."""
        running = self._running.get(record.id)
        if running is not None:
            await running.cancel()
        elif record.status not in ENDED:
            await self.records.store.cancel(record.id)

    async def list(self, owner: str | None) -> list[TaskRecord]:
        """Return the tasks of a caller, oldest first."""
        tasks = await self.records.all()
        return [task for task in tasks if task.owner == owner and not task.is_expired]

    async def close(self) -> None:
        """End the calls; their tasks stay in the store as those of a process that has ended."""
        running = list(self._running.values())
        await asyncio.gather(*(task.abandon() for task in running))


def create_tasks(
    handlers: ToolHandlers,
    option: object,
    store: RunStore | str | os.PathLike[str] | None,
    *,
    max_tasks: object,
    ttl: object,
) -> Tasks | None:
    """Create the tasks of a server from its options; `None` if it has none.

    Raises:
        UserValueError: An option is invalid.
    """
    _check_option(option)
    if not isinstance(max_tasks, int) or isinstance(max_tasks, bool) or max_tasks < 1:
        raise UserValueError(f"max_tasks= expects a positive integer, got {max_tasks!r:.60}.")
    if isinstance(ttl, bool) or not isinstance(ttl, (int, float)) or not 1 <= ttl < math.inf:
        raise UserValueError(f"task_ttl= expects seconds, at least 1, got {ttl!r:.60}.")
    if option is False:
        if store is not None:
            raise UserValueError("store= needs tasks=. Pass tasks=True, or remove store=.")
        return None
    if store is None:
        opened: RunStore = MemoryRunStore()
    else:
        opened = open_run_store(store) if isinstance(store, (str, os.PathLike)) else store
    return Tasks(handlers, opened, cast("TaskOption", option), max_tasks=max_tasks, ttl=ttl)


def _check_option(option: object) -> None:
    if isinstance(option, bool) or option == "required":
        return
    is_list = isinstance(option, Sequence) and not isinstance(option, (str, bytes))
    if not is_list or not all(isinstance(one, str) for one in cast("Sequence[Any]", option)):
        raise UserValueError(
            f"tasks= expects True, False, 'required' or a list of tool names, got {option!r:.60}."
        )
