"""One run that a server holds: it continues by itself, and people come and go to watch it."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.concurrency.supervisor import GRACE, supervise
from agents_tools.errors import EventStoreError, ToolError, UserError
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import RunFinishedEvent, RunItemStreamEvent, ToolStreamStartEvent
from agents_tools.server.approvals import CallReference, read_decision, waiting_call
from agents_tools.server.http_errors import HttpError, shown
from agents_tools.server.run_records import is_record, state_record
from agents_tools.text.forms import MASK
from agents_tools.tool.call import enter_scope

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence

    from agents_tools.agents.config import RunResult
    from agents_tools.agents.run import Run
    from agents_tools.agents.state import RunState
    from agents_tools.content.items import Item, ToolApprovalItem
    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore
    from agents_tools.persistence.stream import EventStream
    from agents_tools.server.public_errors import ErrorMasker
    from agents_tools.tool.records import Decision

__all__ = ["ActiveRun", "RunFactory", "Status"]

logger = logging.getLogger("agents_tools.ui")

Status: TypeAlias = Literal["running", "ok", "interrupted", "cancelled", "error", "lost"]
"""Where a run is. `lost`: the process that ran it has ended, so that nobody knows."""

Policy: TypeAlias = Literal["block", "coalesce", "drop_oldest"]

_PATIENCE = 2 * GRACE
"""Seconds that a cancelled run has for its end, before it is told without waiting for it."""


class _ContinuesElsewhereError(Exception):
    """Another process was quicker to continue with a run."""


@dataclass(slots=True, kw_only=True)
class RunFactory:
    """How a run is made.

    Attributes:
        make: Makes the run of an input or a state; `None` where its agent is not here.
        open: Opens its stream.
        follow: Opens it for a run that another process runs.
        teller: Decides what is told of errors.
        claim: Takes one of the places for running runs, or refuses.
        cancel_unwatched: Whether the run is cancelled when the last one who watches has gone.
        mark: Makes what tells other processes that a run of theirs continues here.
        keeps_state: Whether what a waiting run continues from is kept in its stream.
    """

    make: Callable[[ActiveRun, list[Item] | RunState], Run] | None
    open: Callable[[], EventStream]
    follow: Callable[[], EventStream]
    teller: ErrorMasker
    claim: Callable[[], None]
    cancel_unwatched: bool
    mark: Callable[[], Event]
    keeps_state: bool = False


@dataclass(eq=False, kw_only=True)
class ActiveRun:
    """A run, its events and those who watch it.

    Attributes:
        id: Its id, which is the name of its stream as well.
        thread_id: The conversation it belongs to, where there is one.
        agent_name: The agent; of a single call, the tool.
        kind: `agent`, or `tool` for a single call.
        owner: Whose it is: no one else sees it; `None` where callers are not told apart.
        meta: What the application keeps with it, as JSON.
        notes: What apps keep with it as long as this process has it.
        weight: How many bytes of what clients sent are kept with it, more or less.
        context: The application's object for tools.
        started: When it began, in seconds since 1970.
        ended: When it came to its end.
        idle_since: When this process learned of its end.
        status: Where it is.
        result: What it gave.
        output: Its final output, as JSON.
        usage: What it used, as JSON.
        error: Why it failed, as told outside.
        interruptions: The calls that wait for approval.
        detached: Whether it continues however many watch it.
        restored: Whether it was found in the store, and not begun here.
        remote: Whether another process runs it: it can be watched here, and nothing else.
    """

    id: str
    agent_name: str
    plan: RunFactory = field(repr=False)
    thread_id: str | None = None
    kind: Literal["agent", "tool"] = "agent"
    owner: str | None = None
    meta: Mapping[str, Any] = field(default_factory=dict[str, Any])
    notes: dict[str, Any] = field(default_factory=dict[str, Any], repr=False)
    weight: int = 0
    context: Any = field(default=None, repr=False)
    started: float = field(default_factory=time.time)
    ended: float | None = None
    idle_since: float = field(default_factory=time.time)
    status: Status = "running"
    result: RunResult[Any] | None = field(default=None, repr=False)
    output: Any = None
    usage: Mapping[str, Any] | None = None
    error: str | None = None
    interruptions: list[ToolApprovalItem] = field(default_factory=list["ToolApprovalItem"])
    detached: bool = False
    restored: bool = False
    remote: bool = False
    _stream: EventStream | None = field(default=None, init=False, repr=False)
    _task: asyncio.Task[None] | None = field(default=None, init=False, repr=False)
    _settled: asyncio.Event = field(default_factory=asyncio.Event, init=False, repr=False)
    _state: RunState | None = field(default=None, init=False, repr=False)
    _last: RunFinishedEvent | None = field(default=None, init=False, repr=False)
    _said: str | None = field(default=None, init=False, repr=False)
    _asked: dict[tuple[str, ...], str] = field(
        default_factory=dict[tuple[str, ...], str], init=False, repr=False
    )
    _reason: str | None = field(default=None, init=False, repr=False)
    _end: int | None = field(default=None, init=False, repr=False)
    _seq: int = field(default=-1, init=False, repr=False)
    _seq_before: int = field(default=0, init=False, repr=False)
    _watchers: int = field(default=0, init=False, repr=False)
    _patience: asyncio.TimerHandle | None = field(default=None, init=False, repr=False)
    _retired: bool = field(default=False, init=False, repr=False)

    @property
    def running(self) -> bool:
        """Return whether it continues at the moment."""
        return self.status == "running"

    @property
    def stream(self) -> EventStream:
        """Its events; of a run of an earlier process, opened when they are asked for."""
        if self._stream is None:
            self._stream = self.plan.follow() if self.remote else self.plan.open()
        return self._stream

    @property
    def log(self) -> EventStore | None:
        """Where its events are kept, once its stream is open."""
        return None if self._stream is None else self._stream.store

    @property
    def last_id(self) -> int:
        """The id of its newest event."""
        if self._stream is None:
            return -1 if self._end is None else self._end
        return self._stream.last_id

    @property
    def watchers(self) -> int:
        """How many watch it."""
        return self._watchers

    # --- for those who watch

    async def events(
        self, after: int = -1, *, policy: Policy = "coalesce"
    ) -> AsyncGenerator[Event]:
        """Yield the events so far, and then those that come, up to the end of the run.

        For a run that waits for approvals that is the end as well; when it continues, its events
        follow in the same stream, with greater ids.

        Args:
            after: Only events with greater ids.
            policy: What happens to display events where the reader is too slow.
        """
        stream: EventStream | None = None
        while not self.is_over(after) and stream is not self.stream:
            stream = self.stream  # another one, where the run turns out to go on elsewhere
            followed: Any = stream.follow(after, policy=policy)
            async with aclosing(followed):
                async for event in followed:
                    after = event.id
                    if is_record(event):
                        continue
                    yield event
                    if self.remote and event.id >= self.stream.last_id:
                        self._learn(event)
                    if self.is_over(event.id):
                        return

    def is_over(self, after: int) -> bool:
        """Return whether no event follows the one with this id, as far as is known now."""
        return self._end is not None and after >= self._end

    def _learn(self, event: Event) -> None:
        """Take the newest event of a run that another process runs."""
        if isinstance(event, RunFinishedEvent) and not event.path:
            self.settle(event, event.id, event.timestamp)

    def settle(self, end: RunFinishedEvent, last_id: int, moment: float) -> None:
        """Take over how the run has ended, as its log tells.

        Args:
            end: The event that tells.
            last_id: The id of the last event.
            moment: When that was.
        """
        known = {"ok", "interrupted", "cancelled", "error", "lost"}
        self.status = cast("Status", end.status) if end.status in known else "error"
        self.output, self.usage, self.error = end.output, end.usage, end.error
        self.ended, self._end, self.idle_since = moment, last_id, time.time()
        self._seq = end.seq
        self._settled.set()

    def waits_with(self, state: RunState) -> None:
        """Take over what the run continues from."""
        self._state, self.interruptions = state, state.interruptions

    @contextmanager
    def watching(self) -> Generator[ActiveRun]:
        """Count as one who watches; when the last one goes before the end, see `on_disconnect`."""
        self._watchers += 1
        try:
            yield self
        finally:
            self._watchers -= 1
            unwatched = not self._watchers and self.running and not self.detached
            if unwatched and self.plan.cancel_unwatched:
                self.cancel("the last one who watched has gone")
            if self._retired and not self._watchers:
                self.close()

    async def wait(self) -> None:
        """Wait until the run has come to an end, or waits for approvals."""
        if self.remote and self.running:
            async with aclosing(self.events()) as events:
                async for _ in events:
                    pass
            return
        await self._settled.wait()

    # --- for those who decide

    def cancel(self, reason: str = "") -> bool:
        """Stop the run; tools are cancelled, and open calls get an answer that says so.

        Args:
            reason: Why; told with the end.

        Returns:
            Whether there was something to stop.
        """
        if self.status == "interrupted" and not self.remote:
            self._reason = reason or None
            self._state = None
            self.interruptions = []
            self._finish("cancelled")
            return True
        if not self.running or self._task is None or self._task.done():
            return False
        if self._patience is None:
            self._reason = reason or None
            loop = self._task.get_loop()
            self._patience = loop.call_later(_PATIENCE, self._give_up, self._task)
            self._task.cancel()
        return True

    def decide(
        self, decisions: Sequence[Mapping[str, Any] | tuple[CallReference, Decision]]
    ) -> None:
        """Decide about calls that wait; the run continues when all of them are decided.

        Args:
            decisions: JSON objects (see `read_decision`), or decisions with their calls.

        Raises:
            HttpError: The run waits for nothing, or not for this. Nothing is decided then.
        """
        state = self._waiting_state().copy()
        if self.restored:
            _check_whole(state.interruptions)
        for number, given in enumerate(decisions):
            place = f"decisions[{number}]"
            reference, decision = given if isinstance(given, tuple) else read_decision(given, place)
            item = waiting_call(reference, state.interruptions, place)
            try:
                state.decide(item, decision)
            except UserError as error:
                raise HttpError(422, f"{place}: {error}") from None
        if state.interruptions:
            self._state, self.interruptions = state, state.interruptions
            return
        self.plan.claim()
        self._state, self.interruptions = None, []
        self.begin(state)

    def _waiting_state(self) -> RunState:
        if self._state is None:
            raise HttpError(
                409, f"Run {shown(self.id)} waits for no approvals; its status is {self.status!r}."
            )
        if self.plan.make is None:
            raise HttpError(
                409, f"Run {shown(self.id)} is of an earlier process, and its agent is not here."
            )
        return self._state

    # --- the run itself

    def begin(self, given: list[Item] | RunState) -> None:
        """Start, or continue; needs a running loop."""
        self.status = "running"
        before = self._end
        self.ended = self.error = self._end = self._last = self._said = self._reason = None
        self._seq_before = self._seq + 1
        self._settled.clear()
        loop = asyncio.get_running_loop()
        self._task = loop.create_task(self._drive(given, before), name=f"run {self.id}")
        self._task.add_done_callback(self._after_task)

    async def _drive(self, given: list[Item] | RunState, before: int | None) -> None:
        enter_scope(None)  # whoever starts a run may do it from within a call; it is its own
        try:
            if self.restored:
                await self._take_over(before)
            make = cast("Callable[[ActiveRun, list[Item] | RunState], Run]", self.plan.make)
            self.result = await make(self, given).execute()
        except asyncio.CancelledError:
            self._finish("cancelled")
        except _ContinuesElsewhereError:
            self._leave()
            return
        except Exception as error:  # noqa: BLE001 - told to those who watch
            self.result = getattr(error, "run_result", None)
            self._finish("error", self._error_text(error))
        else:
            if self.result.interruptions:
                self.waits_with(self.result.to_state())
            self._finish("interrupted" if self.interruptions else "ok")
        try:
            await self.stream.flush()
        except EventStoreError as error:
            logger.error("The store has not kept all of run %s: %s", self.id, error)  # noqa: TRY400

    async def _take_over(self, before: int | None) -> None:
        """Tell other processes that the run continues here; of several, one gets the next id.

        Args:
            before: The id of the event with which it has waited.

        Raises:
            _GoesOnElsewhereError: Another one continues with it, or nothing can be kept.
        """
        taken = self.stream.last_id != before
        if not taken:
            self.stream.publish(self.plan.mark())
            try:
                await self.stream.flush()
            except EventStoreError as error:
                logger.warning("Run %s does not go on here: %s", self.id, error)
                taken = True
        if taken:
            raise _ContinuesElsewhereError

    def _leave(self) -> None:
        """Be one that another process runs."""
        self.close()
        self._stream, self.remote = None, True

    def _after_task(self, task: asyncio.Task[None]) -> None:
        """Tell the end of a run that was cancelled before it began, or that broke off."""
        if self._task is task and self.running and not self.remote:
            self._finish("cancelled")
        if not task.cancelled() and task.exception() is not None:
            logger.error("Run %s has broken off.", self.id, exc_info=task.exception())

    def _give_up(self, task: asyncio.Task[None]) -> None:
        """Tell the end of a cancelled run that does not end."""
        if self._task is task and not task.done():
            self._finish("cancelled")
            supervise(task, name=self.agent_name)

    def hear(self, event: Event) -> None:
        """Take an event of the run; in any thread."""
        if not self.running:
            return  # its end was told
        if event.__class__ is ToolStreamStartEvent:
            event = _writable(event)
        if self._seq_before and event.seq >= 0:
            event = event.__copy__()
            cast("Any", event).seq = event.seq + self._seq_before
        self._seq = max(self._seq, event.seq)
        if not event.path:
            if isinstance(event, RunFinishedEvent):
                self._last = event  # told when the run has really ended
                return
            event = self.plan.teller.event(event)
            told: Any = event
            if isinstance(told, RunItemStreamEvent) and told.name == "tool_output":
                self._said = _text_of(told.item.get("output"))
        else:
            event = self.plan.teller.event(event)
        said: Any = self.stream.publish(event)
        if isinstance(said, RunItemStreamEvent) and said.name == "tool_approval_requested":
            self._asked[(*said.path, said.item["call_id"])] = said.item["arguments"]

    def _error_text(self, error: Exception) -> str:
        if self.kind == "tool" and isinstance(error, ToolError) and self._said is not None:
            return self._said
        return self.plan.teller.error(error, where=f"Run {self.id} of {self.agent_name!r}")

    def _finish(self, status: Status, error: str | None = None) -> None:
        """Tell the end, once."""
        if self.status not in {"running", "interrupted"}:
            return
        if self._patience is not None:
            self._patience.cancel()
            self._patience = None
        told = error or self._reason if status in {"error", "cancelled"} else None
        last = self._last
        if last is None:
            last = RunFinishedEvent(usage=self.usage).stamped(
                Origin(source=EventSource.AGENT), self._seq + 1
            )
        self._seq = max(self._seq, last.seq)
        last = last.replace(status=status, error=told)
        self.status = status
        self.ended = self.idle_since = time.time()
        try:
            if self._state is not None and self.plan.keeps_state:
                self.stream.publish(state_record(self._state.to_dict()))
            last = cast("RunFinishedEvent", self.stream.publish(last))  # without secrets
            self._end = last.id
        except UserError:  # the server has stopped, and its streams are closed
            self._end = self.stream.last_id
        finally:
            self.output, self.usage, self.error = last.output, last.usage, last.error
            if status != "interrupted":
                self.context = None  # of a request, which is over
            self._settled.set()

    @property
    def idle(self) -> bool:
        """Return whether it has ended, and all of it is kept."""
        return not self.running and (self._task is None or self._task.done())

    @property
    def forgettable(self) -> bool:
        """Return whether nothing here needs it.

        It is idle, or of another process and no one watches.
        """
        return self.idle or (self.remote and not self._watchers)

    def retire(self) -> None:
        """Make room for another object that stands for the run; those who watch stay with it."""
        self._retired = True
        if not self._watchers:
            self.close()

    def close(self) -> None:
        """Close its stream; to be called when it is idle."""
        if self._stream is not None:
            self._stream.close(drain=False)
            self._close_log()

    async def aclose(self) -> None:
        """Close its stream, when all of it is kept."""
        if self._stream is not None:
            try:
                await self._stream.aclose(timeout=_PATIENCE)
            except (EventStoreError, TimeoutError) as error:
                logger.error("The store has not kept all of run %s: %s", self.id, error)  # noqa: TRY400
            self._close_log()

    def _close_log(self) -> None:
        if self.log is not None:
            self.log.close()

    # --- as JSON

    def to_dict(self) -> dict[str, Any]:
        """Return what is known of it, as JSON."""
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
                    "arguments": self._asked.get((*item.path, item.call_id), item.arguments),
                }
                for item in self.interruptions
            ],
        }


def _check_whole(waiting: Sequence[ToolApprovalItem]) -> None:
    """Refuse to go on from a state with what stands for a secret in the store.

    Raises:
        HttpError: So it would be.
    """
    for item in waiting:
        if MASK in item.arguments:
            raise HttpError(
                409,
                f"The arguments of {item.name!r} held something secret, which was not stored. "
                "Cancel the run, and start it again.",
                code="masked",
            )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, UTC).isoformat()


def _writable(event: Event) -> Event:
    """Return an event that has a JSON form: models may nest arguments deeper than events may."""
    try:
        event.to_dict()
    except UserError:
        return cast("ToolStreamStartEvent", event).replace(input_args={})
    return event


def _text_of(output: object) -> str | None:
    """Return the text of a call's output."""
    if isinstance(output, str):
        return output
    if not isinstance(output, list):
        return None
    texts = [getattr(block, "get", _nothing)("text") for block in cast("list[Any]", output)]
    return "\n".join(text for text in texts if isinstance(text, str))


def _nothing(_: str) -> None:
    """Stand for what a block does not have."""
