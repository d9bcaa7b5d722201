"""Start, find, watch, resume and cancel the runs of a server.

The runs are in a run store. Any server with the same store shows them, records decisions about
them, and can resume those whose server has ended.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import inspect
import logging
import re
import time
import uuid
from collections import OrderedDict
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.agents.agent import Agent
from agents_tools.agents.config import UNCHANGED, RunConfig
from agents_tools.agents.run import Run
from agents_tools.agents.state import RunState
from agents_tools.content.items import input_items
from agents_tools.errors import (
    EventStoreCorruptError,
    EventStoreError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.kinds import RunRecordEvent
from agents_tools.persistence import MemoryRunStore
from agents_tools.persistence.stream.subscription import is_async
from agents_tools.server.active_run import DETAILS, ActiveRun, Status
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.server.http_security import current_principal, owner_of
from agents_tools.server.public_errors import ErrorMasker
from agents_tools.server.request_slots import ALL_CALLERS
from agents_tools.server.single_call_agent import SingleCallRun, one_call_agent
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import register_secret
from agents_tools.tool.call import enter_scope
from agents_tools.tool.flatten import function_tools

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Mapping, Sequence

    from agents_tools.content.items import Item
    from agents_tools.persistence import RunStore
    from agents_tools.persistence.storage import RunInfo
    from agents_tools.server.application import HttpRequest
    from agents_tools.tool.tool import FunctionTool

__all__ = ["ActiveRun", "OnDisconnect", "RunManager", "Status", "Target", "runs_for"]

logger = logging.getLogger("agents_tools.ui")

Target: TypeAlias = "Agent[Any, Any] | Sequence[FunctionTool[..., Any]]"
"""The agent or the tools that a server offers."""

OnDisconnect: TypeAlias = Literal["cancel", "detach"]
Kind: TypeAlias = Literal["agent", "tool"]
RunFactory: TypeAlias = "Callable[..., Run]"

_RUN_ID = re.compile(r"[A-Za-z0-9_.:@~+-]{1,220}")
_LONGEST_RUN_ID = 200
"""Of a client. With the tag of the caller, it is longer."""
_LONGEST_THREAD = 256
_KEPT_EVENTS = 1_000_000
"""The number of events of ended runs that stay in memory, all runs together."""
_KEPT_BYTES = 256 << 20
"""The size of the events of ended runs that stay in memory, all runs together."""
_SHUTDOWN_TIMEOUT = 5.0
"""The seconds that runs have to end when the server stops."""
_ORPHAN_INTERVAL = 5.0
"""The seconds between two searches for runs whose server has ended."""


class RunManager:
    """The runs of a server. Use it in one event loop.

    If `auth` is a verifier, a run belongs to the caller that started it. Other callers cannot
    find it, and the id that a client chooses gets the tag of the caller in front, so that callers
    cannot probe the ids of others. Requests can use the id with or without the tag.

    Args:
        store: Stores the runs. Servers with the same store show the same runs. By default, runs are
            in memory, and old ones are dropped.
        on_disconnect: What happens to a run when its last client disconnects: `cancel`, or
            `detach` to continue. The default is `detach` with a store, `cancel` otherwise.
        run_config: The settings of the runs. With `resume_orphans`, the server resumes runs whose
            server has ended.
        context: Returns the application's object for tools (`ctx.context`), from the `HttpRequest`;
            sync or async. By default there is none.
        keep_runs: The number of ended runs that are kept in memory.
        keep_for: How long ended runs are kept in memory, in seconds.
        max_running: The largest number of runs of one caller at the same time. All callers together
            can have ten times as many.
        errors: How clients see exceptions that are not the library's: `hide` sends the type and an
            id to search for in the log, `show` also sends the message.
        secrets: Values that are masked in events, by name. They are registered for the process (see
            `register_secret`), so the store has marks in their place.
        on_failure: A sync function, called with the id of a run of this process and the exception
            that ended it.
        shows_all: Whether every caller can find the runs of all callers.

    Raises:
        UserError: An argument is invalid.
    """

    def __init__(
        self,
        *,
        store: RunStore | None = None,
        on_disconnect: OnDisconnect | None = None,
        run_config: RunConfig | None = None,
        context: Callable[[HttpRequest], Any] | None = None,
        keep_runs: int = 1_000,
        keep_for: float = 3_600.0,
        max_running: int = 100,
        errors: Literal["hide", "show"] = "hide",
        secrets: Mapping[str, str] | None = None,
        on_failure: Callable[[str, Exception], object] | None = None,
        shows_all: bool = False,
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
        if on_failure is not None and is_async(on_failure):
            raise UserTypeError("on_failure=: expected a sync function, got an async one.")
        if store is not None and not hasattr(store, "approvals"):
            raise UserTypeError(
                "store= is not a run store: expected for example SQLiteRunStore(path), got "
                f"{type_with_article(store)}."
            )
        config = run_config or RunConfig()
        store = store or config.store
        self.is_shared = store is not None
        self.store: RunStore = store or MemoryRunStore()
        self.on_disconnect: OnDisconnect = on_disconnect or (
            "detach" if self.is_shared else "cancel"
        )
        for value in filter(None, (secrets or {}).values()):
            register_secret(value)
        self.masker = ErrorMasker(errors)
        self.on_failure = on_failure
        self._shows_all = shows_all
        self._config = replace(config, store=self.store)
        self._context = context
        self._keep_runs = keep_runs
        self._keep_for = keep_for
        self._max_running = max_running
        self._errors: Literal["hide", "show"] = errors
        self._runs: OrderedDict[str, ActiveRun] = OrderedDict()
        self._factories: dict[tuple[str, str], RunFactory] = {}
        self._closing = False
        self._next_tidy = 0.0
        self._search: asyncio.Task[None] | None = None

    # --- starting runs

    def offer(self, target: Target, *, max_turns: int | None = 10) -> None:
        """Register what the server offers, so that it can resume runs of other processes.

        Args:
            target: An agent, or tools.
            max_turns: The largest number of model calls.
        """
        if isinstance(target, Agent):
            self._factories["agent", target.name] = self._factory(Run, target, max_turns)
            return
        for tool in function_tools(target):
            agent = one_call_agent(tool, "{}", errors=self._errors)
            self._factories["tool", agent.name] = self._factory(SingleCallRun, agent, 2)

    def _factory(
        self, kind: type[Run], agent: Agent[Any, Any], max_turns: int | None
    ) -> RunFactory:
        """Return a function that creates a run of an agent."""

        def create(active: ActiveRun, given: list[Item] | RunState | None, **options: Any) -> Run:
            state = replace(given, run_id=active.id) if isinstance(given, RunState) else None
            enter_scope(None)  # a run that starts inside a call is not a part of that call
            run = kind(
                agent,
                given if isinstance(given, list) else [],
                config=self._config,
                context=active.context,
                max_turns=UNCHANGED if given is None else max_turns,
                sinks=(self.masker.log_item,),
                state=state,
                run_id=active.id,
                resume=given is None,
                **options,
            )
            recorder = cast("Any", run.recorder)
            recorder.must_be_new = given is not None
            return run

        return lambda *args, **options: copy_context().run(create, *args, **options)

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
        details: Mapping[str, Any] | None = None,
        reads_thread: bool = False,
    ) -> ActiveRun:
        """Start a run of an agent; it continues by itself. Needs a running loop.

        Args:
            agent: The agent.
            input: The input, as for `Runner.run`.
            run_id: The id of the run; a new one by default. See also `check_new`.
            thread_id: The conversation that it belongs to.
            context: The application's object for tools.
            max_turns: The largest number of model calls.
            meta: Data of the application that is stored with the run, as JSON.
            details: Larger data of the application, which only `ActiveRun.details` reads.
            reads_thread: Whether the model reads the earlier runs of the conversation. By default
                the input has everything that the model needs.

        Raises:
            HttpError: The id is in use or invalid, or there are too many runs.
            UserError: An argument is invalid.
        """
        return self._start(
            agent.name,
            self._factory(Run, agent, max_turns),
            _checked_input(agent, input),
            run_id=run_id,
            thread_id=thread_id,
            context=context,
            meta=meta,
            details=details,
            session=thread_id if reads_thread else None,
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
            run_id: The id of the run; a new one by default. See also `check_new`.
            thread_id: The conversation that it belongs to.
            context: The application's object for tools.
            meta: Data of the application that is stored with the run, as JSON.

        Raises:
            HttpError: The id is in use or invalid, or there are too many runs.
        """
        agent = one_call_agent(tool, arguments, errors=self._errors)
        return self._start(
            agent.name,
            self._factory(SingleCallRun, agent, 2),
            [],
            run_id=run_id,
            thread_id=thread_id,
            context=context,
            meta=meta,
            kind="tool",
        )

    def _start(
        self,
        agent: str,
        factory: RunFactory,
        given: list[Item] | RunState,
        *,
        run_id: str | None,
        thread_id: str | None,
        context: Any,
        meta: Mapping[str, Any] | None,
        details: Mapping[str, Any] | None = None,
        kind: Kind = "agent",
        session: str | None = None,
    ) -> ActiveRun:
        asyncio.get_running_loop()
        self._tidy()
        run_id = self._checked_id(run_id)
        _check_thread(thread_id)
        owner = owner_of(current_principal())
        self.claim(owner)
        facts = {"thread_id": thread_id, "meta": dict(meta or {})}
        active = ActiveRun(
            self, run_id, agent_name=agent, kind=kind, owner=owner, facts=facts, context=context
        )
        created = {
            "session": thread_id,
            "kind": kind,
            "owner": owner,
            "facts": facts,
            **({DETAILS: dict(details)} if details else {}),
        }
        RunRecordEvent("run_created", created).to_dict()  # raises if it has no JSON form
        active.factory = factory
        run = factory(active, given, facts=created, session=session)
        self._runs[run_id] = active
        active.begin(run)
        return active

    async def check_new(self, run_id: object) -> None:
        """Check that no run of the caller in the store has an id that a client has chosen.

        Raises:
            HttpError: There is one, or the id is invalid.
        """
        if run_id is not None:
            known = self._checked_id(run_id)
            if await self.store.run(known) is not None:
                raise _taken(known)

    def _checked_id(self, run_id: object) -> str:
        if run_id is None:
            return f"run_{uuid.uuid4().hex}"
        if (
            not isinstance(run_id, str)
            or len(run_id) > _LONGEST_RUN_ID
            or _RUN_ID.fullmatch(run_id) is None
        ):
            raise HttpError(
                422,
                f"run_id is a text of 1 to 200 letters, digits and ._:@~+-, not {shown(run_id)}.",
            )
        run_id = _qualified(run_id)
        if run_id in self._runs:
            raise _taken(run_id)
        return run_id

    def claim(self, owner: str | None) -> None:
        """Refuse one run more than the owner, or all owners together, can have at once.

        Raises:
            HttpError: The limit is reached, or the server is stopping.
        """
        if self._closing:
            raise HttpError(503, "The server is stopping.", {"Retry-After": "5"})
        running = [run for run in self._runs.values() if run.is_driven_here]
        own = sum(1 for run in running if run.owner == owner)
        if own >= self._max_running or len(running) >= self._max_running * ALL_CALLERS:
            count = own if own >= self._max_running else len(running)
            raise HttpError(
                503,
                f"{count} runs are active, which is the limit (max_running=). Try again in a "
                "second.",
                {"Retry-After": "1"},
            )

    def resume(self, active: ActiveRun) -> bool:
        """Continue a run that waits or whose process has ended; return whether this server can.

        A server that does not offer the agent of the run leaves it to the others.
        """
        factory = active.factory or self._factories.get((active.kind, active.agent_name))
        if factory is None or active.is_driven_here:
            return False
        active.begin(factory(active, None))
        return True

    async def resume_by_request(self, active: ActiveRun) -> None:
        """Continue an orphaned run, or a run whose waiting calls are all decided.

        Raises:
            HttpError: It has ended, is running or waits, or this server does not offer its agent.
            EventStoreError: The store cannot be read.
        """
        await active.refresh()
        if active.is_driven_here or active.status not in {"orphaned", "interrupted"}:
            raise HttpError(
                409,
                f"Run {shown(active.id)} cannot be resumed: it is {active.status!r}. Only orphaned "
                "runs, and interrupted runs with a decision about each call, can be resumed.",
            )
        if active.status == "interrupted" and active.interruptions:
            waiting = ", ".join(item.name for item in active.interruptions)
            raise HttpError(
                409,
                f"Run {shown(active.id)} cannot be resumed: {len(active.interruptions)} calls wait "
                f"for approval ({shown(waiting)}). Decide about them.",
            )
        self.claim(active.owner)
        if self.resume(active):
            await active.wait_until_opened()
        else:
            raise HttpError(
                409,
                f"Run {shown(active.id)} cannot be resumed: this server does not offer "
                f"{shown(active.agent_name)}. Send the request to a server that does.",
            )

    # --- finding runs

    async def find(self, run_id: str) -> ActiveRun | None:
        """Return a run in its current state; `None` if no run of the caller has this id.

        Raises:
            EventStoreError: The store cannot be read.
        """
        for known in dict.fromkeys((_qualified(run_id), run_id)):
            if _RUN_ID.fullmatch(known) is None:
                continue
            active = self._runs.get(known)
            if active is not None:
                if not await active.refresh():
                    self.forget(active)
                    active = None
            else:
                info = await self.store.run(known)
                active = None if info is None else await self._adopt(info)
            if active is not None and self._may_see(active.owner):
                return active
        return None

    async def find_newest(self, thread_id: str) -> ActiveRun | None:
        """Return the run of a conversation that was started last, in its current state."""
        for active in reversed(self._runs.values()):  # those that are not stored yet
            if (
                active.thread_id == thread_id
                and active.is_driven_here
                and self._may_see(active.owner)
            ):
                return await self.find(active.id)
        for info in reversed(await self.store.runs(session=thread_id)):
            if self._may_see(info.owner):
                return await self._adopt(info)
        return None

    async def list(
        self, limit: int = 100, *, before: str | None = None, thread_id: str | None = None
    ) -> list[ActiveRun]:
        """Return the newest runs of the caller, oldest first.

        Args:
            limit: The largest number of runs.
            before: Only runs that are older than this one; no runs if it does not exist.
            thread_id: Only the runs of this conversation.
        """
        is_bounded = before is None and (self._shows_all or current_principal() is None)
        infos = await self.store.runs(session=thread_id, limit=limit if is_bounded else None)
        if before is not None:
            ids = [info.run_id for info in infos]
            infos = infos[: ids.index(before)] if before in ids else []
        found: list[ActiveRun] = []
        for info in [info for info in infos if self._may_see(info.owner)][-limit:]:
            with _skipping_damaged(info.run_id):
                found.append(await self._adopt(info))
        known = {run.id for run in found}
        if before is None:
            found += [
                run
                for run in self._runs.values()
                if run.id not in known
                and run.is_only_here
                and self._may_see(run.owner)
                and thread_id in (None, run.thread_id)
            ]
        return found[-limit:]

    def _may_see(self, owner: str | None) -> bool:
        return self._shows_all or _may_see(owner)

    async def _adopt(self, info: RunInfo) -> ActiveRun:
        """Return the object for a run of the store, in its current state."""
        active = self._runs.get(info.run_id)
        if active is None:
            self._tidy()
            kind: Kind = "tool" if info.kind == "tool" else "agent"
            active = self._runs[info.run_id] = ActiveRun(
                self,
                info.run_id,
                agent_name=info.agent or "",
                kind=kind,
                owner=info.owner,
                facts={"thread_id": info.session, **info.facts},
            )
        if active.is_driven_here:
            await active.refresh()
        elif not active.is_current(info):
            await active.apply(info)
        return active

    async def context_of(self, request: HttpRequest) -> Any:
        """Return the application's object for a request."""
        if self._context is None:
            return None
        given = self._context(request)
        return await given if inspect.isawaitable(given) else given

    async def lend_context(self, run: ActiveRun, request: HttpRequest) -> None:
        """Set the object of the application for a waiting run that has none in this process."""
        if run.lacks_context:
            run.context = await self.context_of(request)

    def lend_agent(
        self, run: ActiveRun, agent: Agent[Any, Any], *, max_turns: int | None = 10
    ) -> None:
        """Set the agent that continues a run, if this process has not started the run.

        Args:
            run: The run. Nothing happens if it belongs to an agent with another name.
            agent: The agent.
            max_turns: The largest number of model calls.
        """
        if run.factory is None and (run.kind, run.agent_name) == ("agent", agent.name):
            run.factory = self._factory(Run, agent, max_turns)

    @contextlib.asynccontextmanager
    async def lifespan(self, app: Any = None) -> AsyncGenerator[None]:
        """Start and end with an application: `FastAPI(lifespan=runs.lifespan)`.

        Args:
            app: The application.
        """
        del app
        await self.restore()
        try:
            yield
        finally:
            await self.aclose()

    # --- resuming runs whose server has ended

    async def restore(self) -> None:
        """Begin to resume runs whose server has ended, if `RunConfig(resume_orphans=True)`."""
        if self._config.resume_orphans and self._search is None:
            self._search = asyncio.get_running_loop().create_task(
                self._resume_orphans(), name="resume orphaned runs"
            )

    async def _resume_orphans(self) -> None:
        while True:
            try:
                for info in await self._resumable():
                    with _skipping_damaged(info.run_id):
                        active = await self._adopt(info)
                        if not self._closing:
                            self.resume(active)
            except EventStoreError as error:
                logger.warning("Orphaned runs cannot be found: %s", error)
            await asyncio.sleep(_ORPHAN_INTERVAL)

    async def _resumable(self) -> Sequence[RunInfo]:
        """Return the runs whose server has ended, and those whose calls are decided."""
        running = await self.store.runs(status="running")
        found = [info for info in running if info.is_orphaned]
        for info in await self.store.runs(status="interrupted"):
            run = self._runs.get(info.run_id)
            if run is not None and run.is_driven_here:
                continue
            with _skipping_damaged(info.run_id):
                if await self.store.messages(info.run_id) and not await self.store.approvals(
                    info.run_id
                ):
                    found.append(info)
        return found

    # --- forgetting runs

    def _tidy(self) -> None:
        """Forget the objects of idle runs, and delete old runs of a store in memory."""
        if time.monotonic() < self._next_tidy and len(self._runs) <= self._keep_runs:
            return
        self._next_tidy = time.monotonic() + 1.0
        idle = [run for run in self._runs.values() if run.is_idle]
        idle.sort(key=lambda run: run.idle_since)
        oldest = time.time() - self._keep_for
        surplus = len(idle) - self._keep_runs
        for number, run in enumerate(idle):
            if number >= surplus and run.idle_since >= oldest:
                break
            self.forget(run)
            if not self.is_shared:
                self.store.delete(run.id)
        if not self.is_shared:
            self.store.retain(
                max_age=self._keep_for, max_events=_KEPT_EVENTS, max_bytes=_KEPT_BYTES
            )

    def forget(self, run: ActiveRun) -> None:
        """Drop the object of an idle run; a shared store keeps the run."""
        if self._runs.get(run.id) is run and run.is_idle:
            del self._runs[run.id]
            run.close()

    async def delete(self, run: ActiveRun) -> None:
        """Delete a run that has ended, with all its events.

        Raises:
            HttpError: It is running.
            EventStoreError: The store cannot delete it.
        """
        if run.is_driven_here or run.is_running:
            raise HttpError(409, f"Run {shown(run.id)} is running; cancel it first.")
        run.close()
        self._runs.pop(run.id, None)
        await self.store.delete(run.id)

    async def aclose(self) -> None:
        """End the runs of this process; afterwards runs can be started again.

        With `RunConfig(resume_orphans=True)` and a shared store, they are left to other servers.
        Otherwise they are cancelled.
        """
        self._closing = True
        search, self._search = self._search, None
        try:
            if search is not None:
                search.cancel()
                await asyncio.wait({search})
            running = [run for run in self._runs.values() if run.is_driven_here]
            for run in running:
                if self.is_shared and self._config.resume_orphans:
                    run.abandon()
                else:
                    await run.cancel("The server is stopping.")
            await _all_in_time([run.wait() for run in running])
        finally:
            for run in self._runs.values():
                run.close()
            self._runs.clear()
            if not self.is_shared:
                self.store.close()
                self.store = MemoryRunStore()
                self._config = replace(self._config, store=self.store)
            self._closing = False


@contextlib.contextmanager
def _skipping_damaged(run_id: str) -> Generator[None]:
    """Log that a run cannot be read, and continue with the others."""
    try:
        yield
    except EventStoreCorruptError as error:
        logger.warning("Run %r is skipped: %s", run_id, error)


def _taken(run_id: str) -> HttpError:
    return HttpError(409, f"There is a run {shown(run_id)} already; use another run_id.")


def runs_for(runs: RunManager | None, **options: Any) -> RunManager:
    """Return the manager of the runs of an app: the given one, or a new one.

    Args:
        runs: The manager that several apps share.
        **options: The options of `RunManager`.

    Raises:
        UserError: There is both, or an option that `RunManager` does not have.
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
        raise UserValueError(
            f"{name}= is an option of the RunManager that runs= passes. Set it there."
        )
    return runs


async def _all_in_time(jobs: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for several things at once, for a limited time."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_SHUTDOWN_TIMEOUT), asyncio.TaskGroup() as group:
            for job in jobs:
                group.create_task(job)


def _qualified(run_id: str) -> str:
    """Return the id of the current caller's run with an id that a client has chosen.

    Where callers are told apart, it begins with a tag of the caller. So two callers can choose the
    same id, and neither learns whether the other has used it.
    """
    principal = current_principal()
    if principal is None or principal.claims is None:  # one token, which all callers share
        return run_id
    owner = owner_of(principal) or ""
    tag = f"{hashlib.sha256(owner.encode()).hexdigest()[:12]}~"
    return run_id if run_id.startswith(tag) else tag + run_id


def _may_see(owner: str | None) -> bool:
    """Return whether the caller of the current request can see a run of an owner."""
    caller = owner_of(current_principal())
    return caller is None or owner == caller


def _check_thread(thread_id: object) -> None:
    fits = isinstance(thread_id, str) and thread_id.isprintable()
    if thread_id is not None and not (fits and 0 < len(str(thread_id)) <= _LONGEST_THREAD):
        raise HttpError(
            422,
            f"thread_id is a text of 1 to {_LONGEST_THREAD} visible characters, not "
            f"{shown(thread_id)}.",
        )


def _checked_input(agent: object, given: object) -> list[Item] | RunState:
    if not isinstance(agent, Agent):
        raise UserTypeError(
            f"A run needs an agent: expected an Agent, got {type_with_article(agent)}."
        )
    if not isinstance(given, RunState):
        return input_items(given)
    if given.agent != agent.name:
        raise UserValueError(
            f"The state belongs to another agent: expected {agent.name!r}, got {given.agent!r}."
        )
    return given
