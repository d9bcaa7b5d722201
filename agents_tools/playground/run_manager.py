"""Manage the active runs and record them in the history."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from typing import TYPE_CHECKING, Any

from agents_tools.errors import EventStoreError
from agents_tools.playground.history import new_id
from agents_tools.playground.results import result_of
from agents_tools.playground.validation import arguments_text
from agents_tools.server.http_errors import HttpError
from agents_tools.server.run_manager import RunManager
from agents_tools.server.run_records import is_record
from agents_tools.ui._frames import frame_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Mapping, Sequence

    from agents_tools.agents.config import RunConfig
    from agents_tools.events.base import Event
    from agents_tools.playground.history import HistoryRecord, RunHistory
    from agents_tools.playground.reload import ReloadingTarget
    from agents_tools.playground.target_state import AnyAgent, Tool
    from agents_tools.server.run_manager import ActiveRun

__all__ = ["PlaygroundRuns"]

logger = logging.getLogger("agents_tools.playground")

_CLEANUP_TIME = 1.5
"""The seconds that runs have for their cleanup when the server stops."""
_IN_MEMORY = 50
"""The number of ended runs kept in memory; the events of others are read from the store."""
_AT_ONCE = 500
"""The number of stored events that are read at a time."""
_OPEN = frozenset({"running", "interrupted"})
"""The statuses of runs that another server can still change."""


class PlaygroundRuns:
    """Starts runs and records their ends.

    Args:
        history: The history of the runs.
        bench: The target.
        watch: Whether to watch the files of the target for changes.
        run_config: The settings of the runs.
    """

    def __init__(
        self,
        history: RunHistory,
        bench: ReloadingTarget,
        *,
        watch: bool,
        run_config: RunConfig | None = None,
    ) -> None:
        self._history = history
        self._bench = bench
        self._watch = watch
        self._runs = RunManager(
            store=history.store,
            on_disconnect="detach",
            errors="show",
            keep_runs=_IN_MEMORY,
            run_config=run_config,
        )
        self._given: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Task[None]] = {}
        self._began: dict[str, float] = {}

    async def start(self) -> None:
        """Read the history, and start to watch the files."""
        await self._history.open()
        self._offer()
        await self.look(self._history.page(1 << 30, None)[0])
        if self._watch:
            self._spawn(self._bench.watch(self._reloaded), "watch files")

    async def _reloaded(self) -> None:
        self._offer()
        await self._let_go()

    def _offer(self) -> None:
        """Register the tools and agents, so that runs of earlier servers can continue."""
        catalog = self._bench.catalog
        self._runs.offer(list(catalog.tools.values()))
        for name, agent in catalog.agents.items():
            if name == agent.name:  # otherwise the name is not unique
                self._runs.offer(agent)

    async def aclose(self) -> None:
        """Cancel all runs, and close the target and the history."""
        self._bench.end_streams()
        runs = self._runs.list()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLEANUP_TIME):
                    await self._runs.aclose()
                    await self.settle()
        finally:
            await self._end_tasks()
            for run in runs:
                if run.running:
                    run.close()  # its further events have no subscriber
            self._history.store.close()
            self._bench.close()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLEANUP_TIME)

    # --- start of runs

    def start_tool(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Call a tool, and return the id of the run."""
        run_id = new_id()
        live = self._runs.start_tool(tool, arguments_text(arguments), run_id=run_id)
        self._note(live, "tool", tool.name, dict(arguments))
        return run_id

    def start_agent(self, name: str, agent: AnyAgent, text: str) -> str:
        """Run an agent, and return the id of the run."""
        run_id = new_id()
        live = self._runs.start(agent, text, run_id=run_id)
        self._note(live, "agent", name, text)
        return run_id

    def _note(self, live: ActiveRun, kind: Any, name: str, given: Any) -> None:
        record = self._history.begin(live.id, kind, name, given, self._bench.generation)
        if record.is_masked:
            self._given[live.id] = given
        self._attend(live)

    def _attend(self, live: ActiveRun) -> None:
        self._began.setdefault(live.id, time.monotonic())
        self._ends[live.id] = self._spawn(self._see_to_end(live), f"end of {live.id}")

    async def _see_to_end(self, live: ActiveRun) -> None:
        try:
            await live.wait()
            await self._ended(live)
        finally:
            if self._ends.get(live.id) is asyncio.current_task():
                del self._ends[live.id]

    async def settle(self) -> None:
        """Wait until all ended runs are recorded."""
        noted = [task for run_id, task in self._ends.items() if not self._is_running(run_id)]
        if noted:
            await asyncio.wait(noted)

    def _is_running(self, run_id: str) -> bool:
        live = self._runs.get(run_id)
        return live is not None and live.running

    async def _ended(self, live: ActiveRun) -> None:
        duration = round(time.monotonic() - self._began.get(live.id, time.monotonic()), 6)
        record = self._history.get(live.id)
        if record is None:
            return
        result = result_of(record.kind, await self.results(live.id))
        waits = live.status == "interrupted"
        status = live.status
        if status == "ok" and record.kind == "tool" and result.call_status != "ok":
            status = "error"
        self._history.end(live.id, status, None if waits else duration, result)
        if waits:
            return
        self._began.pop(live.id, None)
        live.result = None  # the history has it, unless the run was deleted
        try:
            await self.forget(await self._history.superfluous())
        except EventStoreError as error:
            logger.warning("Old runs cannot be deleted: %s", error)
        await self._let_go()

    async def _let_go(self) -> None:
        """Close the resources of earlier generations of the target, once nothing is running."""
        if not any(run.running and not run.remote for run in self._runs.list()):
            await asyncio.to_thread(self._bench.close_retired)

    # --- state of runs

    async def look(self, records: Iterable[HistoryRecord]) -> list[HistoryRecord]:
        """Return the current records of runs, including those of other servers."""
        return [await self._as_it_is(record) for record in records]

    async def _as_it_is(self, record: HistoryRecord) -> HistoryRecord:
        if record.status not in _OPEN or record.id in self._began:
            return record
        try:
            live = await self._runs.find(record.id)
            status = "lost" if live is None else live.status
            return await self._history.look(record.id, status) or record
        except EventStoreError as error:
            logger.warning("The events of %s cannot be read: %s", record.id, error)
            return record

    def given(self, record: HistoryRecord) -> Any:
        """Return the input of a run; `None` if it has a secret and is not in memory."""
        return self._given.get(record.id) if record.is_masked else record.given

    async def approvals(self, record: HistoryRecord) -> list[dict[str, Any]]:
        """Return the calls of a run that wait for approval."""
        live = await self._waiting(record)
        waiting = [] if live is None else live.interruptions
        return [
            {
                "call_id": item.call_id,
                "path": list(item.path),
                "name": item.name,
                "arguments": item.arguments,
            }
            for item in waiting
        ]

    async def results(self, run_id: str) -> list[Event]:
        """Return the events of a run with its result."""
        live = self._runs.get(run_id)
        try:
            if live is not None and live.id in self._began:
                await live.stream.flush()
            return await self._history.events(run_id, results=True)
        except EventStoreError as error:
            logger.warning("The events of %s cannot be read: %s", run_id, error)
            return []

    async def frames(self, run_id: str, after: int) -> AsyncIterator[bytes] | None:
        """Return the events of a run as frames of a stream; `None` if there are no more.

        Args:
            run_id: The run.
            after: Only events with greater ids.
        """
        live = self._runs.get(run_id)
        if live is not None:
            return None if live.is_over(after) else _live_frames(live, after)
        if not await self._history.events(run_id, after, limit=1):
            return None
        return self._stored_frames(run_id, after)

    async def _stored_frames(self, run_id: str, after: int) -> AsyncGenerator[bytes]:
        while events := await self._history.events(run_id, after, limit=_AT_ONCE):
            for event in events:
                if not is_record(event):
                    yield frame_of(event, run_id)
            after = events[-1].id

    # --- cancellation and decisions

    async def cancel(self, record: HistoryRecord) -> bool:
        """Cancel a run, and return whether it was running."""
        live = await self._waiting(record) or self._runs.get(record.id)
        if live is None or live.remote:
            return False
        waited = live.status == "interrupted"
        done = live.cancel("cancelled on the page")
        if waited and done:
            self._attend(live)
        return done

    async def decide(self, record: HistoryRecord, decisions: Sequence[Any]) -> None:
        """Decide about waiting calls.

        Raises:
            HttpError: The run does not wait for decisions about these calls.
        """
        live = await self._waiting(record) or self._runs.get(record.id)
        if live is None:
            raise HttpError(409, "This run is not waiting any more. Run it again.")
        if live.remote:
            raise HttpError(
                409, "Another server has this run. Decide about it on the page of that server."
            )
        if live.restored:
            _check_restored(record, live)
        live.decide(decisions)
        if live.running:
            self._history.resume(live.id)
            self._attend(live)

    async def _waiting(self, record: HistoryRecord) -> ActiveRun | None:
        """Return a run that waits for approvals; it can be from an earlier server."""
        live = self._runs.get(record.id)
        if record.status != "interrupted":
            return None
        if live is not None and live.plan.make is None:
            self._runs.forget(live)  # its tools can have been loaded since
        return await self._runs.find(record.id)

    async def forget(self, run_ids: Iterable[str]) -> None:
        """Delete runs that have ended, and all their events."""
        doomed = list(run_ids)
        for run_id in doomed:
            self._given.pop(run_id, None)
            self._began.pop(run_id, None)
            live = self._runs.get(run_id)
            if live is not None:
                self._runs.forget(live)
        await self._history.forget(doomed)

    def _spawn(self, job: Any, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(job, name=f"playground: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("The playground has failed (%s).", task.get_name(), exc_info=error)


async def _live_frames(live: ActiveRun, after: int) -> AsyncGenerator[bytes]:
    with live.watching():
        async with contextlib.aclosing(live.events(after)) as events:
            async for event in events:
                if not is_record(event):
                    yield frame_of(event, live.id)


def _check_restored(record: HistoryRecord, live: ActiveRun) -> None:
    """Check that a run of an earlier server can continue with the same tool or agent.

    Raises:
        HttpError: It cannot.
    """
    if live.agent_name != record.name:
        raise HttpError(409, "This run is from an earlier server. Run it again.")
