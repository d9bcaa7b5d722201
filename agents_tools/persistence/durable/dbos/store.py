"""Durable runs as workflows of DBOS."""

from __future__ import annotations

import asyncio
import time
from concurrent.futures import Future
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import quote

from dbos import DBOS, WorkflowSerializationFormat

from agents_tools.concurrency.supervisor import finish
from agents_tools.persistence.durable.codec import read, written
from agents_tools.persistence.durable.dbos.lease import leases_of
from agents_tools.persistence.durable.store import (
    DurableRun,
    DurableStep,
    DurableStoreError,
    RunInUseError,
    StepLostError,
    StoredRun,
)
from agents_tools.persistence.queue.engine import Engine, checked_url, explaining, started

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Self

    from agents_tools.persistence.durable.store import RunStatus

__all__ = ["DBOSDurableStore"]

_PREFIX: Final = "agents_tools.run"
_NO_END: Final = ""
"""What the workflow of a step gives that did not come to its end."""
_LONGEST: Final = 400
_STORE: Final = "the database of DBOS"
_PATIENCE: Final = 2.0
"""Seconds in which a server notices that the process is gone that had a lock."""

_waiting: dict[str, tuple[Future[None], Future[str]]] = {}
"""The steps that begin in this process: what to tell when one has, and what it gives."""


@DBOS.workflow(name="agents_tools.step", serialization_type=WorkflowSerializationFormat.PORTABLE)
async def _step(_run_id: str, _key: str, _attempt: int) -> str:
    begun, end = _waiting.pop(DBOS.workflow_id or "", (None, None))
    if begun is None or end is None:
        return _NO_END  # left behind by a process that is gone
    begun.set_result(None)
    return await asyncio.wrap_future(end)


@DBOS.workflow(name="agents_tools.mark", serialization_type=WorkflowSerializationFormat.PORTABLE)
async def _mark(run_id: str, number: int, status: str, agent: str, start: str | None) -> None:
    """Note how a run stands."""


class DBOSDurableStore:
    """Keeps runs in the database of DBOS: an SQLite file, or PostgreSQL for many machines.

    ```python
    store = DBOSDurableStore("postgresql://agents@db.internal/runs")
    config = RunConfig(durable=store)
    ```

    Each step is a workflow of DBOS with an id of its own, which DBOS runs once. Its input says
    which step of which run it is, so that DBOS's own tools show them. A run belongs to one process
    at a time, by a lock in the database.

    Args:
        database_url: The database: `sqlite:///path` or `postgresql://…`.
        launched: Whether the application launches DBOS itself, on the same database. Its processes
            then need an `executor_id` each, as DBOS asks for anyway. Otherwise the store launches
            DBOS when it is first used, and ends it when it is closed.

    Raises:
        UserError: The address is none of a database that DBOS has a use for.
    """

    def __init__(self, database_url: str, *, launched: bool = False) -> None:
        self._url = checked_url("DBOSDurableStore", database_url)
        self._engine = Engine(self._url, launched=launched, error=DurableStoreError)
        self._leases = leases_of(self._url)
        self._runs: dict[str, _DbosRun] = {}
        self._steps: dict[Future[str], Any] = {}  # what ends those that run, and their workflows
        self._name = f"DBOSDurableStore({self._url.partition('://')[0]})"

    def __repr__(self) -> str:
        """Show what kind of database it has."""
        return self._name

    async def __aenter__(self) -> Self:
        """Return itself."""
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    async def claim(self, run_id: str, /) -> StoredRun:
        """Become the one who carries a run on; see `DurableStore.claim`."""
        await self._engine.ready()
        await self._take(run_id)
        try:
            run = self._runs[run_id] = await self._read(run_id)
        except BaseException:
            await self._give_back(run_id)
            raise
        return StoredRun(start=run.start, steps=dict(run.steps))

    async def begin(self, run_id: str, start: Mapping[str, Any], /) -> None:
        """Keep where a claimed run begins; see `DurableStore.begin`."""
        text = written("start", start)
        run = self._claimed(run_id)
        run.agent = str(start["agent"])
        await self._note(run_id, run, "running", text)

    async def step(
        self,
        run_id: str,
        key: str,
        fn: Callable[[], Awaitable[Any]],
        /,
        *,
        again: bool = False,
    ) -> Any:
        """Return what a step gave, or perform it; see `DurableStore.step`."""
        run = self._claimed(run_id)
        known = run.steps.get(key)
        if known is not None and known.done:
            return known.value
        if known is not None and not again:
            raise StepLostError(
                f"Step {key!r} of run {run_id!r} was begun before, and nothing is known of its "
                "end.",
                store=self._name,
            )
        attempt = 1 if known is None else known.attempts + 1
        run.steps[key] = DurableStep(done=False, attempts=attempt)
        value = await self._perform(run_id, key, attempt, fn)
        run.steps[key] = DurableStep(done=True, value=value, attempts=attempt)
        return value

    async def leave(self, run_id: str, status: RunStatus | None, /) -> None:
        """Let others carry a claimed run on; see `DurableStore.leave`."""
        run = self._runs.pop(run_id, None)
        try:
            if run is not None and run.marks and status is not None:
                await self._note(run_id, run, status, None)
        finally:
            await self._give_back(run_id)

    async def runs(self) -> list[DurableRun]:
        """List the runs, those first that were begun first."""
        await self._engine.ready()
        marks = await self._engine.do(DBOS.list_workflows_async(name="agents_tools.mark"))
        found: dict[str, list[tuple[int, str, str, float]]] = {}
        for mark in marks:
            run_id, number, status, agent, _ = _given_to(mark)
            at = (mark.created_at or 0) / 1000
            found.setdefault(run_id, []).append((number, status, agent, at))
        runs = [_listed(run_id, sorted(lines)) for run_id, lines in found.items()]
        return sorted(runs, key=lambda run: run.begun)

    async def delete(self, run_id: str, /) -> None:
        """Forget a run; see `DurableStore.delete`."""
        await self._engine.ready()
        await self._take(run_id)
        try:
            kept = await self._engine.do(_workflows_of(run_id, bare=True))
            if kept:
                ids = [one.workflow_id for one in kept]
                await self._engine.do(DBOS.delete_workflows_async(ids))
        finally:
            await self._give_back(run_id)

    async def aclose(self) -> None:
        """Let go of the database; runs that still continue fail at the end of their step."""
        self._runs.clear()
        steps, self._steps = self._steps, {}
        for end in steps:
            if not end.done():
                end.set_result(_NO_END)
        if steps:
            ended = [
                asyncio.ensure_future(self._engine.do(one.get_result())) for one in steps.values()
            ]
            await finish(asyncio.ensure_future(asyncio.wait(ended)), name="the steps of a store")
        await asyncio.to_thread(self._leases.close)
        await self._engine.aclose()

    # --- who carries a run on

    def _claimed(self, run_id: str) -> _DbosRun:
        run = self._runs.get(run_id)
        if run is None:
            raise DurableStoreError(
                f"Run {run_id!r} was not claimed, or {self._name} was closed.", store=self._name
            )
        return run

    async def _take(self, run_id: str) -> None:
        latest = time.monotonic() + _PATIENCE
        while not (taken := await self._lease(run_id)):
            if run_id in self._runs or time.monotonic() > latest:
                break
            await asyncio.sleep(0.05)
        if not taken:
            raise RunInUseError(
                f"Run {run_id!r} of {self._name} is being carried on elsewhere. Wait for its end, "
                "or for the end of the process that has it.",
                store=self._name,
            )

    async def _lease(self, run_id: str) -> bool:
        work = asyncio.ensure_future(asyncio.to_thread(self._leases.take, run_id))
        try:
            with explaining(self._url, DurableStoreError):
                return await asyncio.shield(work)
        except asyncio.CancelledError:  # nobody would give it back
            if await finish(work, name="the lease of a run") and not work.exception():
                await self._give_back(run_id)
            raise

    async def _give_back(self, run_id: str) -> None:
        await asyncio.shield(asyncio.to_thread(self._leases.give_back, run_id))

    # --- workflows

    async def _read(self, run_id: str) -> _DbosRun:
        kept = await self._engine.do(_workflows_of(run_id))
        run = _DbosRun()
        for one in kept:
            _, *given = _given_to(one)
            if one.name == "agents_tools.mark":
                run.take_mark(*given)
            else:
                run.take_step(given[0], given[1], one.output)
        return run

    async def _note(self, run_id: str, run: _DbosRun, status: str, start: str | None) -> None:
        run.marks += 1
        given = (run_id, run.marks, status, run.agent, start)
        await self._engine.do(_done(_mark, f"{_base(run_id)}/mark/{run.marks}", *given))

    async def _perform(
        self, run_id: str, key: str, attempt: int, fn: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Perform a step here, while its workflow waits for what it gives."""
        begun, end = Future[None](), Future[str]()
        name = key if len(key) <= _LONGEST else sha256(key.encode()).hexdigest()
        workflow_id = f"{_base(run_id)}/step/{attempt}/{name}"
        _waiting[workflow_id] = begun, end
        text = _NO_END
        workflow: asyncio.Task[str] | None = None
        try:
            handle = await self._engine.do(started(_step, workflow_id, run_id, key, attempt))
            self._steps[end] = handle
            workflow = asyncio.ensure_future(self._engine.do(handle.get_result()))
            began: asyncio.Future[Any] = asyncio.wrap_future(begun)
            first: set[asyncio.Future[Any]] = {began, workflow}
            await asyncio.wait(first, return_when=asyncio.FIRST_COMPLETED)
            if not began.done():
                raise RunInUseError(
                    f"Step {key!r} of run {run_id!r} was begun elsewhere at the same time.",
                    store=self._name,
                )
            value = await fn()
            text = written(key, value)
        finally:
            _waiting.pop(workflow_id, None)
            self._steps.pop(end, None)
            was_closed = end.done()
            if not was_closed:
                end.set_result(text)
            if workflow is not None and text == _NO_END:
                await finish(workflow, name=f"step {key}")
        await asyncio.shield(cast("asyncio.Task[str]", workflow))
        if was_closed:
            raise DurableStoreError(
                f"{self._name} was closed while step {key!r} of run {run_id!r} was performed: "
                "what it gave is not kept.",
                store=self._name,
            )
        return value


class _DbosRun:
    """What this process knows of a run that it carries on."""

    def __init__(self) -> None:
        self.start: Any = None
        self.agent = ""
        self.marks = 0
        self.steps: dict[str, DurableStep] = {}
        self._start_of = 0

    def take_mark(self, number: int, _status: str, agent: str, start: str | None) -> None:
        """Learn of a mark; they come in any order."""
        self.marks = max(self.marks, number)
        if start is not None and number > self._start_of:
            self._start_of, self.agent = number, agent
            self.start = read(start, store=_STORE)

    def take_step(self, key: str, attempt: int, text: str | None) -> None:
        """Learn of an attempt at a step; they come in any order."""
        known = self.steps.get(key, _NEVER)
        attempts = max(known.attempts, attempt)
        if text:
            self.steps[key] = DurableStep(
                done=True, value=read(text, store=_STORE), attempts=attempts
            )
        else:
            self.steps[key] = DurableStep(done=known.done, value=known.value, attempts=attempts)


_NEVER: Final = DurableStep(done=False, attempts=0)


def _base(run_id: str) -> str:
    name = quote(run_id, safe="", errors="surrogatepass")
    if len(name) > _LONGEST:
        name = f"{name[:40]}~{sha256(name.encode()).hexdigest()}"
    return f"{_PREFIX}/{name}"


async def _workflows_of(run_id: str, *, bare: bool = False) -> list[Any]:
    prefix = f"{_base(run_id)}/"
    found = await DBOS.list_workflows_async(
        workflow_id_prefix=prefix, load_input=not bare, load_output=not bare
    )
    return [one for one in found if one.workflow_id.startswith(prefix)]  # SQLite: or in capitals


async def _done(workflow: Callable[..., Any], workflow_id: str, *given: Any) -> Any:
    return await (await started(workflow, workflow_id, *given)).get_result()


def _given_to(workflow: Any) -> tuple[Any, ...]:
    """Return the arguments that a workflow was started with."""
    return tuple(workflow.input["args"])


def _listed(run_id: str, lines: list[tuple[int, Any, str, float]]) -> DurableRun:
    _, status, agent, changed = lines[-1]
    return DurableRun(run_id=run_id, status=status, agent=agent, begun=lines[0][3], changed=changed)
