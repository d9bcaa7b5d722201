"""Start, find, watch and cancel the runs of a server."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import logging
import re
import time
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from agents_tools.agents.agent import Agent
from agents_tools.agents.run import Run
from agents_tools.agents.state import RunState
from agents_tools.content.items import input_items
from agents_tools.errors import (
    EventConflictError,
    EventStoreError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.persistence.stream import EventStream
from agents_tools.server.active_run import ActiveRun, RunFactory, Status
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.server.http_security import Principal, current_principal
from agents_tools.server.public_errors import ErrorMasker
from agents_tools.server.run_records import (
    ProcessIdentity,
    claim_record,
    kept_run,
    record_of,
    the_end,
)
from agents_tools.server.single_call_agent import SingleCallRun, one_call_agent
from agents_tools.text.nouns import type_with_article
from agents_tools.tool.flatten import function_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping, Sequence

    from agents_tools.agents.config import RunConfig
    from agents_tools.content.items import Item
    from agents_tools.persistence import EventStore
    from agents_tools.server.application import HttpRequest
    from agents_tools.server.run_records import RunRecord
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ActiveRun", "OnDisconnect", "RunManager", "Status", "Target", "runs_for"]

logger = logging.getLogger("agents_tools.ui")

Target: TypeAlias = "Agent[Any, Any] | Sequence[FunctionTool[..., Any]]"
"""The agent or the tools that a server offers."""

OnDisconnect: TypeAlias = Literal["cancel", "detach"]
Given: TypeAlias = "list[Item] | RunState"
LiveRuns: TypeAlias = "list[ActiveRun]"

_RUN_ID = re.compile(r"[A-Za-z0-9_.:@~+-]{1,200}")
_LONGEST_THREAD = 256
_WINDOW = 10_000
_KEPT_EVENTS = 1_000_000
"""The number of events of ended runs that stay in memory, all runs together."""
_KEPT_BYTES = 256 << 20
"""The size of requests of ended runs that stay in memory, in bytes, all runs together."""
_SHUTDOWN_TIMEOUT = 5.0
"""The seconds that runs have to end when the server stops."""


class RunManager:
    """The runs of a server. Use it in one event loop.

    If `auth` is a verifier, a run belongs to the caller that started it. Other callers cannot
    find it.

    Args:
        store: Stores the events of all runs, each in a log named after its run. Without a store
            they are in memory, and old runs are dropped.
        on_disconnect: What happens to a run when its last client disconnects: `cancel`, or
            `detach` to continue. The default is `detach` with a store, `cancel` otherwise.
        run_config: The settings of the runs.
        context: Returns the application's object for tools (`ctx.context`), from the `HttpRequest`;
            sync or async. By default there is none.
        keep_runs: The number of ended runs that are kept in memory.
        keep_for: How long ended runs are kept, in seconds.
        max_running: The largest number of runs at the same time.
        errors: How clients see exceptions that are not the library's: `hide` sends the type and an
            id to search for in the log, `show` also sends the message.
        secrets: Values that are masked in events, by name.

    Raises:
        UserError: An argument is invalid.
    """

    def __init__(
        self,
        *,
        store: EventStore | None = None,
        on_disconnect: OnDisconnect | None = None,
        run_config: RunConfig | None = None,
        context: Callable[[HttpRequest], Any] | None = None,
        keep_runs: int = 1_000,
        keep_for: float = 3_600.0,
        max_running: int = 100,
        errors: Literal["hide", "show"] = "hide",
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        if on_disconnect not in {None, "cancel", "detach"}:
            raise UserValueError(
                "on_disconnect= is invalid: expected 'cancel' or 'detach', got "
                f"{on_disconnect!r:.60}."
            )
        for name, number in (
            ("keep_runs", keep_runs),
            ("keep_for", keep_for),
            ("max_running", max_running),
        ):
            if isinstance(number, bool) or not number > 0:
                raise UserValueError(f"{name}= is a number above 0, not {number!r:.60}.")
        if context is not None and not callable(context):
            raise UserTypeError("context= is a function of the request.")
        self.store = store
        self.on_disconnect: OnDisconnect = on_disconnect or (
            "cancel" if store is None else "detach"
        )
        self._config = run_config
        self._context = context
        self._keep_runs = keep_runs
        self._keep_for = keep_for
        self._max_running = max_running
        self._secrets = dict(secrets or {})
        self._teller = ErrorMasker(errors, self._secrets)
        self._runs: dict[str, ActiveRun] = {}
        self._closing = False
        self._next_look = 0.0
        self._process = ProcessIdentity()
        self._restored = False
        self._restoring = asyncio.Lock()
        self._makers: dict[tuple[str, str], Callable[[ActiveRun, Given], Run]] = {}

    # --- runs begin

    def offer(self, target: Target, *, max_turns: int | None = 10) -> None:
        """Return what the server offers, so that runs of earlier processes can continue.

        Args:
            target: An agent, or tools.
            max_turns: How often the model is asked at most.
        """
        if isinstance(target, Agent):
            self._makers["agent", target.name] = self._maker(Run, target, max_turns)
            return
        for tool in function_tools(target):
            agent = one_call_agent(tool, "{}")
            self._makers["tool", agent.name] = self._maker(SingleCallRun, agent, 2)

    def _maker(
        self, kind: type[Run], agent: Agent[Any, Any], max_turns: int | None
    ) -> Callable[[ActiveRun, Given], Run]:
        def make(live: ActiveRun, given: Given) -> Run:
            return _made(kind, agent, live, given, self._config, max_turns)

        return make

    def start(
        self,
        agent: Agent[Any, Any],
        input: str | Sequence[Any] | RunState,
        *,
        run_id: str | None = None,
        thread_id: str | None = None,
        context: Any = None,
        max_turns: int | None = 10,
        meta: Mapping[str, Any] | None = None,
        weight: int = 0,
    ) -> ActiveRun:
        """Start a run of an agent; it continues by itself. Needs a running loop.

        Args:
            agent: The agent.
            input: What `Runner.run` takes.
            run_id: The id of the run; a new one by default.
            thread_id: The conversation that it belongs to.
            context: The application's object for tools.
            max_turns: How often the model is asked at most.
            meta: What the application wants to keep with the run, as JSON.
            weight: How many bytes the client has sent; of ended runs, 256 MiB stay in memory.

        Raises:
            HttpError: The id is taken or none, or there are too many runs.
            UserError: An argument is invalid.
        """
        given = _given(agent, input)
        return self._begin(
            agent.name,
            self._maker(Run, agent, max_turns),
            given,
            run_id=run_id,
            thread_id=thread_id,
            context=context,
            meta=meta,
            weight=weight,
        )

    def start_tool(
        self,
        tool: FunctionTool[..., Any],
        arguments: str,
        *,
        run_id: str | None = None,
        thread_id: str | None = None,
        context: Any = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ActiveRun:
        """Call a tool, as a run of its own. Needs a running loop.

        Args:
            tool: The tool.
            arguments: The arguments, as JSON text.
            run_id: The id of the run; a new one by default.
            thread_id: The conversation that it belongs to.
            context: The application's object for tools.
            meta: What the application wants to keep with the run, as JSON.

        Raises:
            HttpError: The id is taken or none, or there are too many runs.
        """
        agent = one_call_agent(tool, arguments)
        return self._begin(
            agent.name,
            self._maker(SingleCallRun, agent, 2),
            [],
            run_id=run_id,
            thread_id=thread_id,
            context=context,
            meta=meta,
            kind="tool",
        )

    def _begin(
        self,
        agent: str,
        make: Callable[[ActiveRun, Given], Run],
        given: Given,
        *,
        run_id: str | None,
        thread_id: str | None,
        context: Any,
        meta: Mapping[str, Any] | None,
        kind: Literal["agent", "tool"] = "agent",
        weight: int = 0,
    ) -> ActiveRun:
        asyncio.get_running_loop()
        self._tidy(now=len(self._runs) > self._keep_runs)
        run_id = self._checked_id(run_id)
        _check_thread(thread_id)
        self._claim()
        live = ActiveRun(
            id=run_id,
            agent_name=agent,
            plan=self._plan(run_id, make),
            thread_id=thread_id,
            kind=kind,
            owner=owner_of(current_principal()),
            meta=dict(meta or {}),
            context=context,
            weight=weight,
        )
        if self.store is not None:
            self._note(live)
        self._runs[run_id] = live
        live.begin(given)
        return live

    def _note(self, live: ActiveRun) -> None:
        """Keep whose the run is, before anything else of it."""
        record = record_of(
            thread_id=live.thread_id,
            kind=live.kind,
            agent=live.agent_name,
            owner=live.owner,
            meta=live.meta,
            process=self._process,
        )
        record.to_dict()  # raises where `meta` is no JSON: nothing of the run could be kept
        if live.stream.last_id >= 0:
            live.close()
            raise _taken(live.id)
        live.stream.publish(record)

    def _plan(self, run_id: str, make: Callable[[ActiveRun, Given], Run] | None) -> RunFactory:
        return RunFactory(
            make=make,
            open=lambda: self._stream(run_id),
            follow=lambda: self._stream(run_id, read_only=True),
            teller=self._teller,
            claim=self._claim,
            cancel_unwatched=self.on_disconnect == "cancel",
            keeps_state=self.store is not None,
            mark=lambda: claim_record(self._process),
        )

    def _stream(self, run_id: str, *, read_only: bool = False) -> EventStream:
        if self.store is None:
            return EventStream(None, sid=run_id, window=_WINDOW, secrets=self._secrets)
        return EventStream(
            self.store.session(run_id),
            sid=run_id,
            keep="all",
            window=_WINDOW,
            secrets=self._secrets,
            read_only=read_only,
        )

    def _checked_id(self, run_id: object) -> str:
        if run_id is None:
            return f"run_{uuid.uuid4().hex}"
        if not isinstance(run_id, str) or _RUN_ID.fullmatch(run_id) is None:
            raise HttpError(
                422,
                f"run_id is a text of 1 to 200 letters, digits and ._:@~+-, not {shown(run_id)}.",
            )
        if run_id in self._runs:
            raise _taken(run_id)
        return run_id

    def _claim(self) -> None:
        """Refuse one run more than there may be at once."""
        if self._closing:
            raise HttpError(503, "The server is stopping.", {"Retry-After": "5"})
        running = sum(1 for run in self._runs.values() if run.running and not run.remote)
        if running >= self._max_running:
            raise HttpError(
                503,
                f"{running} runs are going on, which is the most at once (max_running=). Try again "
                "in a second.",
                {"Retry-After": "1"},
            )

    # --- runs are found

    def get(self, run_id: str) -> ActiveRun | None:
        """Return a run; `None` where there is none of that id, or it is somebody else's."""
        self._tidy()
        run = self._runs.get(run_id)
        return run if run is not None and _may_see(run) else None

    def newest(self, thread_id: str) -> ActiveRun | None:
        """Return the run of a conversation that was started last."""
        self._tidy()
        for run in reversed(self._runs.values()):
            if run.thread_id == thread_id and _may_see(run):
                return run
        return None

    def list(self) -> LiveRuns:
        """Return all runs, the newest last."""
        self._tidy()
        return [run for run in self._runs.values() if _may_see(run)]

    async def find(self, run_id: str) -> ActiveRun | None:
        """Return a run as `get` does; one of another process from the store."""
        await self.restore()
        run = self._runs.get(run_id)
        if self.store is not None and _RUN_ID.fullmatch(run_id) and (run is None or run.remote):
            await self._look(self.store, run_id)
        return self.get(run_id)

    async def find_newest(self, thread_id: str) -> ActiveRun | None:
        """Return a run as `newest` does; where another process has it, as it is now."""
        await self.restore()
        run = self.newest(thread_id)
        return await self.find(run.id) if run is not None and run.remote else run

    async def restore(self) -> None:
        """Take note of the runs of earlier processes that the store has; only the first time.

        Those that were cut off get their end: they are `lost`.
        """
        if self.store is not None:
            async with self._restoring:
                if not self._restored:
                    await self._restore(self.store)

    async def _restore(self, store: EventStore) -> None:
        infos = await store.sessions()
        infos.sort(key=lambda info: info.last or 0.0)
        for info in infos[-self._keep_runs :]:
            if info.sid not in self._runs:
                try:
                    await self._look(store, info.sid)
                except (EventStoreError, UserError) as error:  # one bad log costs itself only
                    logger.warning("The run %r cannot be read: %s", info.sid, error)
        self._runs = dict(sorted(self._runs.items(), key=lambda pair: pair[1].started))
        self._restored = True

    async def _look(self, store: EventStore, run_id: str) -> None:
        """Take note of what the store knows of a run."""
        log = store.session(run_id)
        try:
            kept = await kept_run(log)
            if kept is not None and kept.is_lost:
                await _end_it(log)
                kept = await kept_run(log)
        finally:
            known = self._runs.get(run_id)
            if known is None or log is not known.log:
                log.close()
        if kept is not None and (known is None or known.remote):
            self._runs[run_id] = self._found(kept, known)

    def _found(self, kept: RunRecord, known: ActiveRun | None) -> ActiveRun:
        waits = kept.end is None or kept.end.status == "interrupted"
        remote = waits and self._process.is_other(kept.process)
        run = known if known is not None and known.remote is remote else self._restored_run(kept)
        if known is not None and run is not known:
            known.retire()
        run.remote = remote
        if kept.end is not None:
            run.settle(kept.end, kept.last_id, kept.end.timestamp)
            if kept.state is not None and not remote:
                run.waits_with(RunState.from_dict(kept.state))
        return run

    def _restored_run(self, kept: RunRecord) -> ActiveRun:
        facts = kept.facts
        kind: Literal["agent", "tool"] = "tool" if facts.get("kind") == "tool" else "agent"
        agent = str(facts.get("agent") or "")
        return ActiveRun(
            id=kept.id,
            agent_name=agent,
            plan=self._plan(kept.id, self._makers.get((kind, agent))),
            thread_id=facts.get("thread_id"),
            kind=kind,
            owner=facts.get("owner"),
            meta=facts.get("meta") or {},
            started=kept.started,
            restored=True,
        )

    async def context_of(self, request: HttpRequest) -> Any:
        """Return the application's object for a request."""
        if self._context is None:
            return None
        given = self._context(request)
        return await given if inspect.isawaitable(given) else given

    async def lend_context(self, run: ActiveRun, request: HttpRequest) -> None:
        """Return a run of an earlier process, which continues, the application's object again."""
        if run.restored and run.status == "interrupted":
            run.context = await self.context_of(request)

    # --- runs end

    def _tidy(self, *, now: bool = False) -> None:
        """Forget runs that ended long ago, and the oldest of those that are too many."""
        if not now and time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + 1.0
        ended = [run for run in self._runs.values() if run.forgettable]
        ended.sort(key=lambda run: run.idle_since)
        oldest = time.time() - self._keep_for
        events = sum(min(run.last_id + 1, _WINDOW) for run in ended)
        many, size = len(ended), sum(run.weight for run in ended)
        for run in ended:
            few = many <= self._keep_runs and events <= _KEPT_EVENTS and size <= _KEPT_BYTES
            if few and run.idle_since >= oldest:
                return
            many -= 1
            size -= run.weight
            events -= min(run.last_id + 1, _WINDOW)
            self.forget(run)

    def forget(self, run: ActiveRun) -> None:
        """Drop a run that is idle from memory, and close its stream."""
        if self._runs.get(run.id) is run and run.forgettable:
            del self._runs[run.id]
            run.close()

    async def delete(self, run: ActiveRun) -> None:
        """Forget a run that has ended, and what the store has of it.

        Raises:
            HttpError: It continues.
            EventStoreError: The store cannot forget it.
        """
        if not run.idle:
            raise HttpError(409, f"Run {shown(run.id)} goes on; cancel it first.")
        await run.aclose()
        self._runs.pop(run.id, None)
        if self.store is not None:
            await self.store.delete(run.id)

    async def aclose(self) -> None:
        """Cancel what runs, and close all streams; afterwards runs can be started again."""
        self._closing = True
        try:
            running = [run for run in self._runs.values() if run.running and not run.remote]
            for run in running:
                run.cancel("the server is stopping")
            await _all_in_time([run.wait() for run in running])
            await _all_in_time([run.aclose() for run in self._runs.values()])
        finally:
            self._process.retire()
            self._process = ProcessIdentity()
            self._runs.clear()
            self._closing = self._restored = False


def _taken(run_id: str) -> HttpError:
    return HttpError(409, f"There is a run {shown(run_id)} already; give another run_id.")


def runs_for(runs: RunManager | None, **options: Any) -> RunManager:
    """Return what holds the runs of an app: what it was given, or a new one.

    Args:
        runs: What several apps share.
        **options: What `RunManager` takes.

    Raises:
        UserError: There is both, or an option that `RunManager` does not take.
    """
    given = {name: value for name, value in options.items() if value is not None}
    given = {name: value for name, value in given.items() if (name, value) != ("errors", "hide")}
    if runs is None:
        unknown = options.keys() - inspect.signature(RunManager).parameters.keys()
        if unknown:
            raise UserTypeError(f"Unknown option {min(unknown)!r}. Remove it.")
        return RunManager(**given)
    if given:
        name = min(given)
        raise UserValueError(f"{name}= is an option of the Runs that runs= gives; set it there.")
    return runs


async def _all_in_time(jobs: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Do several things at once, as far as there is time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SHUTDOWN_TIMEOUT), asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job)


async def _end_it(log: EventStore) -> None:
    """Write the end of a run that was lost, unless somebody else is as quick."""
    count = sum(info.events for info in await log.sessions() if info.sid == log.sid)
    with contextlib.suppress(EventConflictError):
        await log.append(await the_end(log), expect_seq=count)


def owner_of(principal: Principal | None) -> str | None:
    """Return what tells principals apart; `None` where callers are not told apart."""
    if principal is None:
        return None
    return json.dumps([principal.client_id, principal.subject])


def _may_see(run: ActiveRun) -> bool:
    """Return whether the caller of the request that is handled may know of a run."""
    caller = owner_of(current_principal())
    return caller is None or run.owner == caller


def _check_thread(thread_id: object) -> None:
    fits = isinstance(thread_id, str) and thread_id.isprintable()
    if thread_id is not None and not (fits and 0 < len(str(thread_id)) <= _LONGEST_THREAD):
        raise HttpError(
            422,
            f"thread_id is a text of 1 to {_LONGEST_THREAD} visible characters, not "
            f"{shown(thread_id)}.",
        )


def _given(agent: object, given: object) -> Given:
    if not isinstance(agent, Agent):
        raise UserTypeError(f"A run is of an Agent, not of {type_with_article(agent)}.")
    if not isinstance(given, RunState):
        return input_items(given)
    if given.agent != agent.name:
        raise UserValueError(
            f"This state is of a run of agent {given.agent!r}, not of {agent.name!r}."
        )
    return given


def _made(
    kind: type[Run],
    agent: Agent[Any, Any],
    live: ActiveRun,
    given: Given,
    config: RunConfig | None,
    max_turns: int | None,
) -> Run:
    state = replace(given, run_id=live.id) if isinstance(given, RunState) else None
    run = kind(
        agent,
        [] if isinstance(given, RunState) else given,
        config=config,
        context=live.context,
        max_turns=max_turns,
        sinks=(live.hear,),
        state=state,
    )
    run.scope.run_id = live.id
    return run
