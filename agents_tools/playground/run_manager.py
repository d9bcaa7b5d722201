"""Manage the runs of the playground."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools.agents.config import RunConfig
from agents_tools.errors import EventStoreError
from agents_tools.events.kinds import MessageEvent, RunFinishedEvent
from agents_tools.playground.attachments import files_of, input_of, without_data
from agents_tools.playground.history import RunHistory, facts_of_run, new_id
from agents_tools.playground.model_requests import ModelRequests
from agents_tools.playground.tracebacks import Tracebacks
from agents_tools.playground.validation import arguments_text
from agents_tools.server.http_errors import HttpError
from agents_tools.server.run_manager import RunManager
from agents_tools.tool.state import ToolState
from agents_tools.ui._frames import frame_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable, Mapping, Sequence

    from agents_tools.content.outputs import ContentBlock
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.playground.history import HistoryRecord
    from agents_tools.playground.reload import ReloadingTarget
    from agents_tools.playground.target_state import AnyAgent, Tool
    from agents_tools.server.run_manager import ActiveRun

__all__ = ["PlaygroundRuns"]

logger = logging.getLogger("agents_tools.playground")

_CLEANUP_TIME = 1.5
"""The seconds that runs have for their cleanup when the server stops."""
_IN_MEMORY = 200
"""The number of ended runs whose objects are kept; the store has all."""


class PlaygroundRuns:
    """Starts runs, and deletes the oldest ones.

    Args:
        store: The store of the runs.
        bench: The target.
        keep: The number of runs to keep; `None` for all.
        keep_bytes: The largest total size of the runs in bytes.
        watch: Whether to watch the files of the target for changes.
        run_config: The settings of the runs.
        on_error: Called with each error of a call or a run.
        shows_all: Whether the runs of all owners are shown, also those of other programs.

    Attributes:
        history: The runs of the store.
        tracebacks: The tracebacks of the runs of this process.
        requests: The requests to models.
    """

    def __init__(
        self,
        store: RunStore,
        bench: ReloadingTarget,
        *,
        keep: int | None,
        keep_bytes: int,
        watch: bool,
        run_config: RunConfig | None = None,
        on_error: Callable[[BaseException], object] | None = None,
        shows_all: bool = False,
    ) -> None:
        self._store = store
        self._bench = bench
        self._watch = watch
        # One developer works here, as in one terminal: the shell lasts until the server ends.
        self._tool_state = ToolState()
        config = run_config or RunConfig()
        if config.tool_state is None:
            config = replace(config, tool_state=self._tool_state)
        self.tracebacks = Tracebacks(on_error)
        self.requests = ModelRequests(store)
        self._runs = RunManager(
            store=store,
            on_disconnect="detach",
            errors="show",
            keep_runs=_IN_MEMORY,
            run_config=config,
            on_failure=lambda run_id, error: self.tracebacks.add(run_id, (), error),
            shows_all=shows_all,
        )
        self.history = RunHistory(self._runs, keep=keep, keep_bytes=keep_bytes)
        self._given: dict[str, Any] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._ends: dict[str, asyncio.Task[None]] = {}

    async def start(self) -> None:
        """Register the tools and agents, and start to watch the files."""
        self.tracebacks.start()
        self.requests.start()
        self._offer()
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
        """Cancel all runs, and close the target and the store."""
        self._bench.end_streams()
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(_CLEANUP_TIME):
                    await self._runs.aclose()
                    await self.settle()
        finally:
            self.tracebacks.close()
            self.requests.close()
            await self._end_tasks()
            await self._store.aclose()
            await self._tool_state.aclose()
            self._bench.close()

    async def _end_tasks(self) -> None:
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=_CLEANUP_TIME)

    # --- start of runs

    async def start_tool(self, tool: Tool, arguments: Mapping[str, Any]) -> str:
        """Call a tool, and return the id of the run."""
        meta, is_masked = facts_of_run(dict(arguments), self._bench.generation)
        text = arguments_text(arguments)
        active = self._runs.start_tool(tool, text, run_id=new_id(), meta=meta)
        return await self._attend(active, dict(arguments), is_masked=is_masked)

    async def start_agent(
        self,
        agent: AnyAgent,
        text: str,
        *,
        files: Sequence[ContentBlock] = (),
        session: str | None = None,
        changes: Mapping[str, str] | None = None,
    ) -> str:
        """Run an agent, and return the id of the run.

        Args:
            agent: The agent.
            text: The message to it.
            files: The files of the message.
            session: The conversation that the run continues; `None` for a run without one.
            changes: The attributes of the agent that are replaced for this run, by their names. A
                later server that resumes the run uses the agent as it is.

        Raises:
            HttpError: A run of the session is active.
        """
        if session is not None:
            await self._check_idle(session)
        facts = files_of([block.to_dict() for block in files])
        meta, is_masked = facts_of_run(text, self._bench.generation, changes, facts)
        active = self._runs.start(
            agent.clone(**changes) if changes else agent,
            input_of(text, files),
            run_id=new_id(),
            meta=meta,
            thread_id=session,
            reads_thread=session is not None,
        )
        return await self._attend(active, text, is_masked=is_masked)

    async def _check_idle(self, session: str) -> None:
        newest = await self._runs.find_newest(session)
        if newest is not None and newest.status in {"running", "interrupted"}:
            does = "is running" if newest.is_running else "waits for a decision"
            raise HttpError(
                409,
                f"The last run of this conversation {does}. Wait for its end, or cancel it.",
                code="busy",
            )

    async def _attend(self, active: ActiveRun, given: Any, *, is_masked: bool) -> str:
        if is_masked:
            self._given[active.id] = given
        self._watch_end(active)
        await active.wait_until_stored()
        return active.id

    def _watch_end(self, active: ActiveRun) -> None:
        self._ends[active.id] = self._spawn(self._see_to_end(active), f"end of {active.id}")

    async def _see_to_end(self, active: ActiveRun) -> None:
        try:
            await active.wait()
            if active.status != "interrupted":
                active.result = None  # the store has it
                await self._trim()
                await self._let_go()
        finally:
            if self._ends.get(active.id) is asyncio.current_task():
                del self._ends[active.id]

    async def _trim(self) -> None:
        try:
            await self.forget(await self.history.surplus())
        except EventStoreError as error:
            logger.warning("Old runs cannot be deleted: %s", error)

    async def settle(self) -> None:
        """Wait until all runs that have ended are stored."""
        ending = [
            task
            for run_id, task in list(self._ends.items())
            if not (active := await self._runs.find(run_id)) or not active.is_driven_here
        ]
        if ending:
            await asyncio.wait(ending)

    async def _let_go(self) -> None:
        """Close the resources of earlier generations of the target, once nothing is running."""
        if not any(run.is_driven_here for run in await self._runs.list()):
            await asyncio.to_thread(self._bench.close_retired)

    # --- state of runs

    def given(self, record: HistoryRecord) -> Any:
        """Return the input of a run; `None` if it has a secret and is not in memory."""
        return self._given.get(record.id) if record.is_masked else record.given

    async def approvals(self, record: HistoryRecord) -> list[dict[str, Any]]:
        """Return the calls of a run that wait for approval."""
        active = await self._runs.find(record.id)
        return [
            {
                "call_id": item.call_id,
                "path": list(item.path),
                "name": item.name,
                "arguments": item.arguments,
            }
            for item in ([] if active is None else active.interruptions)
        ]

    async def results(self, run_id: str) -> list[Event]:
        """Return the events of a run with its result."""
        try:
            return await self.history.events(run_id)
        except EventStoreError as error:
            logger.warning("The events of %s cannot be read: %s", run_id, error)
            return []

    async def frames(self, run_id: str, after: int) -> AsyncIterator[bytes] | None:
        """Return the events of a run as frames of a stream; `None` if there are no more.

        Args:
            run_id: The run.
            after: Only events with greater ids.
        """
        active = await self._runs.find(run_id)
        return None if active is None or active.is_over(after) else _frames(active, after)

    # --- cancellation and decisions

    async def cancel(self, record: HistoryRecord) -> bool:
        """Cancel a run, and return whether it was running."""
        active = await self._runs.find(record.id)
        return active is not None and await active.cancel("cancelled on the page")

    async def cancel_call(self, record: HistoryRecord, call_id: str) -> bool:
        """Cancel one call of a run, and return whether it was running."""
        active = await self._runs.find(record.id)
        return active is not None and await active.cancel_call(call_id)

    async def decide(self, record: HistoryRecord, decisions: Sequence[Any]) -> None:
        """Decide about waiting calls.

        Raises:
            HttpError: The run does not wait for decisions about these calls.
        """
        active = await self._runs.find(record.id)
        if active is None:
            raise HttpError(409, "This run is not waiting any more. Run it again.")
        await active.decide(decisions)
        if active.is_driven_here:
            self._watch_end(active)

    async def resume(self, record: HistoryRecord) -> None:
        """Continue a run whose server has ended, or whose calls are decided.

        Raises:
            HttpError: It cannot be continued here.
        """
        active = await self._runs.find(record.id)
        if active is None:
            raise HttpError(409, "This run was deleted. Run it again.")
        await self._runs.resume_by_request(active)
        self._watch_end(active)

    async def forget(self, run_ids: Iterable[str]) -> None:
        """Delete runs that have ended, and all their events."""
        for run_id in run_ids:
            await self.history.forget([run_id])
            self._given.pop(run_id, None)
            self.tracebacks.forget(run_id)
            self.requests.forget(run_id)

    def _spawn(self, job: Any, name: str) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(job, name=f"playground: {name}")
        self._tasks.add(task)
        task.add_done_callback(self._over)
        return task

    def _over(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("The playground has failed (%s).", task.get_name(), exc_info=error)


async def _frames(active: ActiveRun, after: int) -> AsyncGenerator[bytes]:
    with active.watching():
        async with contextlib.aclosing(active.events(after)) as events:
            async for event in events:
                yield frame_of(_without_large_parts(event), active.id)


def _without_large_parts(event: Event) -> Event:
    """Return an event without the parts that the page requests only when it needs them."""
    match event:
        case RunFinishedEvent():
            return event.replace(output=None)
        case MessageEvent():
            return event.replace(content=without_data(event.content))
        case _:
            return event
