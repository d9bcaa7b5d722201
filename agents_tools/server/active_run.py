"""One run as a server shows it: driven by this process or by another one, or ended.

The log of the run in the store is the truth. This object adds the task that drives the run here,
and the clients that watch it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing, contextmanager, suppress
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, TypeAlias, cast

from agents_tools.concurrency.supervisor import GRACE, supervise
from agents_tools.errors import (
    EventConflictError,
    EventStoreError,
    RunInUseError,
    UserError,
    UserKeyError,
)
from agents_tools.events.envelope import INVALID_ID, EventSource, Origin
from agents_tools.events.kinds import RunFinishedEvent, RunRecordEvent
from agents_tools.persistence.filter import EventFilter
from agents_tools.persistence.run_store import undecided_calls
from agents_tools.persistence.stream import EventStream
from agents_tools.server.approvals import CallReference, read_decision, waiting_call
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.text.forms import MASK
from agents_tools.tool.call import enter_scope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from agents_tools.agents.config import RunResult
    from agents_tools.agents.run import Run
    from agents_tools.content.items import ToolApprovalItem
    from agents_tools.events.base import Event
    from agents_tools.persistence import RunStore
    from agents_tools.persistence.storage import RunInfo
    from agents_tools.server.public_errors import ErrorMasker
    from agents_tools.tool.records import Decision

__all__ = ["DETAILS", "ActiveRun", "Status"]

logger = logging.getLogger("agents_tools.ui")

Status: TypeAlias = Literal["running", "orphaned", "interrupted", "ok", "cancelled", "error"]
"""The status of a run. An `orphaned` run has lost its process and waits until one resumes it."""

DETAILS: Final = "details"
"""The key of the larger data of an app in the record of the start of a run."""

Policy: TypeAlias = Literal["block", "coalesce", "drop_oldest"]

_PATIENCE = 2 * GRACE
"""The seconds that a cancelled run has until clients are informed of its end."""
_ORIGIN = Origin(source=EventSource.ENVIRONMENT)
_LAST_EVENT = EventFilter(types=(RunFinishedEvent.type,))
_RECORDS = EventFilter(types=(RunRecordEvent.type,))
_APPROVALS = EventFilter(types=("run_item_stream_event", RunRecordEvent.type))


class _Manager(Protocol):
    """The parts of the manager of runs that a run uses."""

    @property
    def store(self) -> RunStore: ...
    @property
    def masker(self) -> ErrorMasker: ...
    @property
    def on_disconnect(self) -> str: ...
    @property
    def on_failure(self) -> Callable[[str, Exception], object] | None: ...
    def claim(self, owner: str | None) -> None: ...
    def resume(self, active: ActiveRun) -> bool: ...


class ActiveRun:
    """A run, its events and the clients that watch it.

    Args:
        manager: The manager of the run.
        id: The id of the run, which is the name of its log.
        agent_name: The name of the agent, or of the tool of a single call.
        kind: `agent`, or `tool` for a single call.
        owner: The caller that started the run; other callers do not see it.
        facts: The data that is stored with the run: `thread_id` and `meta` of the application.
        context: The application's object for tools.

    Attributes:
        notes: Data of the apps for as long as this process has the run.
        started: The time of the start, in seconds since 1970.
        ended: The time of the end, in seconds since 1970; `None` while it runs.
        idle_since: The time when this process last learned of the run.
        status: The status.
        result: The result, if this process has driven the run.
        output: The final output, as JSON.
        usage: The usage, as JSON.
        error: The error for clients.
        interruptions: The calls that wait for approval; secrets are masked.
        is_detached: Whether the run continues when its last client has left.
        factory: Creates the run again to continue it, if this process has started it.
    """

    def __init__(
        self,
        manager: _Manager,
        id: str,
        *,
        agent_name: str,
        kind: Literal["agent", "tool"] = "agent",
        owner: str | None = None,
        facts: Mapping[str, Any] | None = None,
        context: Any = None,
    ) -> None:
        self.id = id
        self.agent_name = agent_name
        self.kind: Literal["agent", "tool"] = kind
        self.owner = owner
        self.facts: Mapping[str, Any] = facts or {}
        self.context = context
        self.notes: dict[str, Any] = {}
        self.started = self.idle_since = time.time()
        self.ended: float | None = None
        self.status: Status = "running"
        self.result: RunResult[Any] | None = None
        self.output: Any = None
        self.usage: Mapping[str, Any] | None = None
        self.error: str | None = None
        self.interruptions: list[ToolApprovalItem] = []
        self.is_detached = False
        self.factory: Callable[..., Run] | None = None
        self._manager = manager
        self._run: Run | None = None
        self._task: asyncio.Task[None] | None = None
        self._opened = asyncio.Event()
        self._settled = asyncio.Event()
        self._reader: EventStream | None = None
        self._last_id = INVALID_ID
        self._info: RunInfo | None = None  # what was last read from the store
        self._end: int | None = None
        self._unstored_end: Event | None = None
        self._watchers = 0
        self._patience: asyncio.TimerHandle | None = None
        self._cancel_reason: str | None = None
        self._was_given_up = False

    @property
    def thread_id(self) -> str | None:
        """The conversation that the run belongs to."""
        return cast("str | None", self.facts.get("thread_id"))

    @property
    def meta(self) -> Mapping[str, Any]:
        """The data that an app has stored with the run."""
        return cast("Mapping[str, Any]", self.facts.get("meta") or {})

    @property
    def is_running(self) -> bool:
        """Whether the run has neither ended nor stopped for a decision."""
        return self.status in {"running", "orphaned"}

    @property
    def is_driven_here(self) -> bool:
        """Whether this process drives the run."""
        return self._task is not None and not self._task.done()

    @property
    def is_idle(self) -> bool:
        """Whether this process neither drives the run nor serves a client of it."""
        return not self.is_driven_here and not self._watchers

    @property
    def lacks_context(self) -> bool:
        """Whether the run can be continued, and this process has no object of the application."""
        return self.context is None and self.status in {"interrupted", "orphaned"}

    @property
    def is_only_here(self) -> bool:
        """Whether the store does not have the run yet, or could not store its end."""
        return self.is_driven_here or self._unstored_end is not None

    @property
    def watchers(self) -> int:
        """The number of clients that watch the run."""
        return self._watchers

    @property
    def last_id(self) -> int:
        """The id of the newest event that this process knows."""
        stream = self._live_stream()
        return max(self._last_id, INVALID_ID if stream is None else stream.last_id)

    # --- reading

    async def refresh(self) -> bool:
        """Read the state of the run from its store, unless this process drives it.

        Returns:
            Whether the run exists. Another server can have deleted it.

        Raises:
            EventStoreError: The store cannot be read.
        """
        if self.is_driven_here:
            if self._opened.is_set():
                self.interruptions = await self._manager.store.approvals(self.id)
            return True
        info = await self._manager.store.run(self.id)
        if info is not None:
            await self.apply(info)
        return info is not None or self._unstored_end is not None

    async def details(self) -> Mapping[str, Any]:
        """Return the larger data that an app has stored with the run.

        Raises:
            EventStoreError: The store cannot be read.
        """
        await self.wait_until_stored()
        log = self._manager.store.log(self.id)
        try:
            created = await log.read(limit=1, where=_RECORDS)
        finally:
            log.close()
        data: Mapping[str, Any] = cast("RunRecordEvent", created[0]).data if created else {}
        return data.get(DETAILS) or {}

    def is_current(self, info: RunInfo) -> bool:
        """Return whether this object already has the end of a run that has ended in the store."""
        has_ended = info.status in {"ok", "error", "cancelled"} and self.status == info.status
        if not has_ended or self._last_id != info.last_id or self._end is None:
            return False
        self.idle_since = time.time()
        return True

    async def apply(self, info: RunInfo) -> None:
        """Take over the state that was read from the store, unless a newer one is known."""
        self.idle_since = time.time()
        if self._is_outdated(info):
            return
        self.started = info.started or self.started
        self._info, self._last_id = info, info.last_id
        status: Any = info.status
        self.status = "orphaned" if info.is_orphaned else status
        if self.is_running:
            self.ended, self._end = None, None
            self.interruptions = await self._manager.store.approvals(self.id)
            return
        log = self._manager.store.log(self.id)
        try:
            ends = await log.read(reverse=True, limit=1, where=_LAST_EVENT)
        finally:
            log.close()
        if self._info is not info:
            return  # another request has read a newer state meanwhile
        if ends and isinstance(ends[0], RunFinishedEvent):
            self._finish(ends[0])
        self.ended = info.updated
        is_waiting = self.status == "interrupted"
        self.interruptions = await self._manager.store.approvals(self.id) if is_waiting else []

    def _is_outdated(self, info: RunInfo) -> bool:
        """Return whether a newer state of the run is known than the one that was read."""
        known = self._info
        if known is None or known.started != info.started:
            return False
        if info.last_id != known.last_id:
            return info.last_id < known.last_id
        # A run continues with a lease, before its first event.
        return known.status == "running" and info.status == "interrupted"

    def _finish(self, end: RunFinishedEvent) -> None:
        """Take over the end of the run, or its stop."""
        self._end = end.id
        end = cast("RunFinishedEvent", self._manager.masker.event(end, self.id))
        self.status = cast("Status", end.status)
        self.output, self.usage, self.error = end.output, end.usage, end.error
        self.ended = end.timestamp or time.time()
        self.idle_since = time.time()

    async def events(
        self, after: int = INVALID_ID, *, policy: Policy = "coalesce"
    ) -> AsyncGenerator[Event]:
        """Yield the events so far, and then the new ones, up to the end of the run.

        A run that waits for approvals ends its events as well. When it continues, more events
        follow, with greater ids.

        Args:
            after: Only events with greater ids.
            policy: What happens to display events if the reader is too slow.
        """
        while not self.is_over(after):
            if self._unstored_end is not None:
                async for event in self._events_before_failure(after):
                    yield event
                return
            stream = await self._stream()
            if stream is None:
                continue
            followed: Any = stream.follow(after, policy=policy)
            async with aclosing(followed):
                async for event in followed:
                    after = max(after, event.id)
                    if isinstance(event, RunRecordEvent):
                        continue
                    is_end = isinstance(event, RunFinishedEvent) and not event.path
                    if is_end and event.id >= stream.last_id and await self._is_end(stream, event):
                        self._finish(cast("RunFinishedEvent", event))
                    yield self._manager.masker.event(event, self.id)
                    if self.is_over(after):
                        await self._until_settled()
                        return
            if stream is self._reader:
                self._reader = None  # the store was closed, or cannot be read
                return
            await self._until_settled()

    async def _until_settled(self) -> None:
        """Wait until the end of a run that this process drives is stored."""
        if self._task is not None and not self._was_given_up:
            await asyncio.wait({self._task})

    async def _is_end(self, stream: EventStream, end: Event) -> bool:
        """Return whether the run does not continue after the last event of a stream."""
        if stream is not self._reader:
            return end.id >= stream.first_id  # otherwise this process has only begun to continue it
        info = await self._manager.store.run(self.id)
        return info is None or info.status != "running"

    async def _events_before_failure(self, after: int) -> AsyncGenerator[Event]:
        """Yield the events that were stored before the store failed, and then the error."""
        end = self._unstored_end
        with suppress(EventStoreError):
            for event in await self.stored_events(after):
                yield event
        if end is not None:
            yield end

    async def stored_events(
        self, after: int = INVALID_ID, *, where: EventFilter | None = None
    ) -> list[Event]:
        """Return the events so far, as clients see them, without waiting for new ones.

        Args:
            after: Only events with greater ids.
            where: The filter for events.

        Raises:
            EventStoreError: The store cannot be read.
        """
        log = self._manager.store.log(self.id)
        try:
            events = await log.read(after, where=where)
        finally:
            log.close()
        masker = self._manager.masker
        return [masker.event(one, self.id) for one in events if not isinstance(one, RunRecordEvent)]

    def is_over(self, after: int) -> bool:
        """Return whether no event follows the one with this id, as far as this process knows."""
        return self._end is not None and after >= self._end

    def _live_stream(self) -> EventStream | None:
        run = self._run
        recorder = None if run is None else run.recorder
        return None if recorder is None else recorder.log.stream

    async def _stream(self) -> EventStream | None:
        """Return the stream of the run: that of this process, or one that reads the store.

        Return `None` if this process has driven the run meanwhile, up to its end.
        """
        if self.is_driven_here and self._live_stream() is None:
            await self.wait_until_opened()
        live = self._live_stream()
        if live is not None:
            return live
        if self._task is not None and not self._task.done():
            await asyncio.wait({self._task})
            return None
        if self._reader is None or self._reader.closed:
            reader = await asyncio.to_thread(self._open_reader)
            if self._reader is None or self._reader.closed:
                self._reader = reader
            else:
                _close(reader)  # another client was quicker
        return self._reader

    def _open_reader(self) -> EventStream:
        log = self._manager.store.log(self.id)
        return EventStream(log, sid=self.id, keep="run", read_only=True)

    @contextmanager
    def watching(self) -> Generator[ActiveRun]:
        """Count a client. When the last one leaves before the end, `on_disconnect` applies."""
        self._watchers += 1
        try:
            yield self
        finally:
            self._watchers -= 1
            is_unwatched = not self._watchers and self.is_driven_here and not self.is_detached
            if is_unwatched and self._manager.on_disconnect == "cancel":
                self._cancel_here("The last client has disconnected.")
            if not self._watchers:
                self._close_reader()

    async def wait_until_opened(self) -> None:
        """Wait until this process has the lease of the run, or cannot get it."""
        if self._task is None:
            return
        opened = asyncio.ensure_future(self._opened.wait())
        try:
            await asyncio.wait({opened, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            opened.cancel()

    async def wait_until_stored(self) -> None:
        """Wait until the store has the run, so that other servers know it."""
        if self._task is None:
            return
        stored = asyncio.ensure_future(self._is_stored())
        try:
            await asyncio.wait({stored, self._task}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stored.cancel()

    async def _is_stored(self) -> None:
        store, last = self._manager.store, INVALID_ID
        log = store.log(self.id)
        try:
            with suppress(EventStoreError):
                while await store.run(self.id) is None:
                    last = await log.wait(last)
        finally:
            log.close()

    async def wait(self) -> None:
        """Wait until the run has ended, or waits for approvals."""
        if self._task is not None:
            await asyncio.wait({self._task})
            return
        async with aclosing(self.events()) as events:
            async for _ in events:
                pass

    # --- control

    async def cancel(self, reason: str = "") -> bool:
        """Cancel the run, in whichever process it is. Open calls get an output that reports it.

        Args:
            reason: The reason, for people.

        Returns:
            Whether the run had not ended before.
        """
        if self.is_driven_here:
            return self._cancel_here(reason)
        await self.refresh()
        if not self.is_running and self.status != "interrupted":
            return False
        await self._cancel_stored(reason)
        return True

    async def _cancel_stored(self, reason: str) -> None:
        await self._manager.store.cancel(self.id, reason=reason)
        info = await self._manager.store.run(self.id)
        if info is not None:
            await self.apply(info)

    def _cancel_here(self, reason: str) -> bool:
        task, run = self._task, self._run
        if task is None or task.done():
            return False
        if self._patience is None:
            self._patience = asyncio.get_running_loop().call_later(_PATIENCE, self._give_up, task)
            self._cancel_reason = reason
            if run is None:
                task.cancel()
            else:
                run.cancel(reason or None)
        return True

    async def cancel_call(self, call_id: str) -> bool:
        """Cancel one call of the run, also inside a sub-agent; the run continues.

        Returns:
            Whether the call was running. For a run of another process, whether the run is running.
        """
        if self.is_driven_here:
            return self._run is not None and self._run.cancel_call(call_id)
        await self.refresh()
        if self.status != "running":
            return False
        await self._manager.store.cancel(self.id, call_id)
        return True

    async def decide(
        self, decisions: Sequence[Mapping[str, Any] | tuple[CallReference, Decision]]
    ) -> None:
        """Decide about calls that wait. The run continues when all of them are decided.

        Args:
            decisions: JSON objects (see `read_decision`), or decisions with their calls.

        Raises:
            HttpError: The run does not wait for these calls. Nothing is decided then.
        """
        if self.status == "interrupted":
            await self._until_settled()
        await self.refresh()
        if not self.interruptions:
            raise HttpError(
                409,
                f"Run {shown(self.id)} does not wait for approvals: it is {self.status!r}.",
                code="decided",
            )
        found: dict[tuple[str, ...], tuple[ToolApprovalItem, Decision]] = {}
        for number, given in enumerate(decisions):
            place = f"decisions[{number}]"
            reference, decision = given if isinstance(given, tuple) else read_decision(given, place)
            item = waiting_call(reference, self.interruptions, place)
            found[*item.path, item.call_id] = item, decision
        await self._check_secrets([item for item, _ in found.values()])
        continues = len(found) == len(self.interruptions) and self.status == "interrupted"
        if continues:
            self._manager.claim(self.owner)
        for item, decision in found.values():
            await self._record(item, decision)
        await self.refresh()
        if not self.interruptions and self.status == "interrupted":
            self._manager.resume(self)
            await self.wait_until_opened()

    async def _record(self, item: ToolApprovalItem, decision: Decision) -> None:
        try:
            await self._manager.store.decide(
                self.id,
                item.call_id,
                decision.approved,
                path=item.path,
                message=decision.message,
                arguments=decision.arguments,
                always=decision.always,
            )
        except (UserKeyError, EventConflictError) as error:
            raise HttpError(
                409, f"The call {shown(item.call_id)} was decided before. {error}", code="decided"
            ) from None
        except UserError as error:
            raise HttpError(422, str(error)) from None

    async def _check_secrets(self, items: Sequence[ToolApprovalItem]) -> None:
        """Refuse calls whose arguments have a secret that is not registered in this process.

        Raises:
            HttpError: There is one.
        """
        if not any(MASK in item.arguments for item in items):
            return
        log = self._manager.store.log(self.id)
        try:
            known = undecided_calls(await log.read_all(where=_APPROVALS))
        finally:
            log.close()
        for item in items:
            stored = known.get((*item.path, item.call_id))
            if stored is not None and MASK in stored.arguments:
                raise HttpError(
                    409,
                    f"The arguments of {item.name!r} held a secret, which was not stored. Cancel "
                    "the run, and start it again.",
                    code="masked",
                )

    # --- driving the run

    def begin(self, run: Run) -> None:
        """Drive the run in a task of its own; needs a running loop."""
        self.status, self.ended, self.error = "running", None, None
        self._end = self._unstored_end = self._patience = self._cancel_reason = None
        self._was_given_up = False
        self._run = run
        self._opened.clear()
        self._settled.clear()
        self._close_reader()
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._drive(run), name=f"run {self.id}")

    async def _drive(self, run: Run) -> None:
        enter_scope(None)  # a run that starts inside a call is not a part of that call
        log = cast("Any", run.recorder).log
        log.on_open = self._opened.set
        status, error = "cancelled", None
        try:
            self.result = await run.execute()
            status = "interrupted" if self.result.interruptions else "ok"
        except asyncio.CancelledError:
            pass
        except RunInUseError as in_use:
            status = "elsewhere"
            logger.info("Run %s is not driven here: %s", self.id, in_use)
        except Exception as failure:  # noqa: BLE001 - the log has it for the clients
            self.result = getattr(failure, "run_result", None)
            status, error = "error", failure
            self._report(failure)
        finally:
            self._last_id = max(self._last_id, log.last_id)
            self._end_driving(status)
        if status == "elsewhere":
            return
        await self._read_end(log.last_end, status, error, has_failed=log.has_failed)
        if self.status == "interrupted" and self._cancel_reason is not None:
            await self._cancel_stored(self._cancel_reason)  # it stopped before it was cancelled

    def _report(self, failure: Exception) -> None:
        """Call the function of the application; the run has its end even if that fails."""
        if self._manager.on_failure is not None:
            try:
                self._manager.on_failure(self.id, failure)
            except Exception:
                logger.exception("on_failure= of run %s failed", self.id)

    def _end_driving(self, status: str) -> None:
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        self._run = None
        self._settled.set()
        if status not in {"interrupted", "elsewhere"}:
            self.context = None  # of a request, which has ended

    async def _read_end(
        self,
        end: RunFinishedEvent | None,
        status: str,
        error: Exception | None,
        *,
        has_failed: bool,
    ) -> None:
        """Take over the end of the run from its last event."""
        if end is not None:
            if error is not None:
                self._manager.masker.log_error(error, self.id, end.id)
            self._finish(end)
            if has_failed:
                self._unstored_end = self._manager.masker.event(end, self.id)
        else:  # it was cancelled before it began, or the store has failed
            self.status, self.ended = cast("Status", status), time.time()
            if error is not None:
                self.error = self._manager.masker.text_of(error, self.id)
            self._end = self._last_id + 1
            last: Any = RunFinishedEvent(status, error=self.error).stamped(_ORIGIN, -1)
            last.id = self._end
            self._unstored_end = last
        if self.status == "interrupted":
            try:
                self.interruptions = await self._manager.store.approvals(self.id)
            except EventStoreError as unreadable:
                logger.warning("The approvals of %s cannot be read: %s", self.id, unreadable)
        else:
            self.interruptions = []

    def _give_up(self, task: asyncio.Task[None]) -> None:
        """Inform the clients of the end of a cancelled run that does not end."""
        if self._task is task and not task.done():
            run = self._run
            recorder = None if run is None else run.recorder
            if recorder is not None:
                end = RunFinishedEvent("cancelled", error="The run did not end when cancelled.")
                recorder.log.publish(end.stamped(Origin(), -1))
                recorder.log.abandon()
            self._was_given_up = True
            supervise(task, name=self.agent_name)

    def abandon(self) -> None:
        """Stop driving the run without ending it, so that another process resumes it."""
        if self._run is not None and self._run.recorder is not None:
            self._run.recorder.log.abandon()
        if self._task is not None:
            self._task.cancel()

    def close(self) -> None:
        """Release the resources of a run that is idle."""
        self._close_reader()

    def _close_reader(self) -> None:
        reader, self._reader = self._reader, None
        if reader is not None:
            _close(reader)

    # --- as JSON

    def to_dict(self) -> dict[str, Any]:
        """Return the run as JSON."""
        return {
            "run_id": self.id,
            "thread_id": self.thread_id,
            "kind": self.kind,
            "agent": self.agent_name,
            "status": self.status,
            "started": _iso(self.started),
            "ended": None if self.ended is None else _iso(self.ended),
            "last_event_id": self.last_id,
            "output": self.output,
            "usage": None if self.usage is None else dict(self.usage),
            "error": self.error,
            "approvals": [
                {
                    "call_id": item.call_id,
                    "path": [*item.path, item.call_id],
                    "name": item.name,
                    "arguments": item.arguments,
                }
                for item in self.interruptions
            ],
        }


def _close(reader: EventStream) -> None:
    reader.close(drain=False)
    if reader.store is not None:
        reader.store.close()


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()
