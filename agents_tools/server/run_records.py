"""What a store knows of runs: whose each is, which process runs it, and how it has ended."""

from __future__ import annotations

import os
import platform
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, cast
from weakref import WeakSet

from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import (
    ActionEvent,
    RunFinishedEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.events.base import Event
    from agents_tools.persistence import EventStore

__all__ = [
    "ProcessIdentity",
    "RunRecord",
    "claim_record",
    "is_record",
    "kept_run",
    "record_of",
    "state_record",
    "the_end",
]

_RUN = "agents_tools.run"
_STATE = "agents_tools.run_state"
_CLAIM = "agents_tools.run_claim"
LOST = "The run was lost: the process that ran it has ended, so nobody knows how far it came."
_ASK_ONLY, _RUNS = 0x1000, 259
"""Of Windows: the right to ask about a process, and what it answers while one runs."""
_RECORDS = frozenset({_RUN, _STATE, _CLAIM})
_BRACKETS = ("tool_stream_start_event", "tool_stream_end_event")


class ProcessIdentity:
    """Whoever runs runs: told apart from others, also from those that had the same number."""

    _here: ClassVar[WeakSet[ProcessIdentity]] = WeakSet()

    def __init__(self) -> None:
        self._token = uuid.uuid4().hex
        ProcessIdentity._here.add(self)

    def to_dict(self) -> dict[str, Any]:
        """Return what another process can recognize this one by."""
        pid = os.getpid()
        place = {"host": platform.node(), "pid": pid, "began": _began(pid)}
        return {**place, "token": self._token}

    def retire(self) -> None:
        """Be no more: all that was run here has ended."""
        ProcessIdentity._here.discard(self)

    def is_other(self, told: Mapping[str, Any]) -> bool:
        """Return whether somebody else told this of itself, and may still be there."""
        return told.get("token") != self._token and self.is_alive(told)

    @classmethod
    def is_alive(cls, told: Mapping[str, Any]) -> bool:
        """Return whether one that told this of itself may still be there."""
        pid = told.get("pid")
        if told.get("host") != platform.node() or not isinstance(pid, int):
            return True  # on another machine: nobody here knows
        if pid == os.getpid() and told.get("began") == _began(pid):
            return any(one._token == told.get("token") for one in cls._here)  # noqa: SLF001
        return _is_there(pid) and told.get("began") == _began(pid)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRecord:
    """A run, as its log tells of it.

    Attributes:
        id: Its id.
        facts: What was noted when it began: thread, kind, agent, owner and meta; and the process
            that continued with it last.
        started: When it began.
        last_id: The id of the last one.
        end: How it ended, or why it waits; `None` for one that was not seen to end.
        state: What it continues from, where it waits for approvals.
    """

    id: str
    facts: Mapping[str, Any]
    started: float
    last_id: int
    end: RunFinishedEvent | None = None
    state: Mapping[str, Any] | None = field(default=None, repr=False)

    @property
    def is_lost(self) -> bool:
        """Return whether the process that ran it has ended without having told its end."""
        return self.end is None and not ProcessIdentity.is_alive(self.process)

    @property
    def process(self) -> Mapping[str, Any]:
        """What the process that runs it, or ran it, has told of itself."""
        told = self.facts.get("process")
        return cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else {}


def record_of(
    *,
    thread_id: str | None,
    kind: Literal["agent", "tool"],
    agent: str,
    owner: str | None,
    meta: Mapping[str, Any],
    process: ProcessIdentity,
) -> Event:
    """Make the event that opens the log of a run; people are not shown it."""
    facts = {
        "thread_id": thread_id,
        "kind": kind,
        "agent": agent,
        "owner": owner,
        "meta": dict(meta),
        "process": process.to_dict(),
    }
    return _hidden(_RUN, facts)


def state_record(state: Mapping[str, Any]) -> Event:
    """Make the event that keeps what a waiting run continues from; people are not shown it."""
    return _hidden(_STATE, state)


def claim_record(process: ProcessIdentity) -> Event:
    """Make the event that tells which process continues with a run; people are not shown it."""
    return _hidden(_CLAIM, {"process": process.to_dict()})


def is_record(event: Event) -> bool:
    """Return whether an event is there for the server alone."""
    return event.__class__ is ActionEvent and cast("ActionEvent[Any]", event).kind in _RECORDS


async def kept_run(log: EventStore) -> RunRecord | None:
    """Read what a log tells of its run; `None` where it is no log of one.

    Args:
        log: The log.

    Raises:
        EventStoreError: It cannot be read.
    """
    first = await log.read(limit=1)
    if not first or not is_record(first[0]):
        return None
    last = (await log.read(reverse=True, limit=1))[0]
    end = last if isinstance(last, RunFinishedEvent) and not last.path else None
    state: Mapping[str, Any] | None = None
    facts = {**cast("ActionEvent[Any]", first[0]).action}
    if end is None or end.status == "interrupted":
        from agents_tools.persistence import EventFilter

        actions = EventFilter(types=(ActionEvent.type,))
        newest = await log.read(reverse=True, limit=2, where=actions)
        told = {one.kind: one.action for one in newest if isinstance(one, ActionEvent)}
        facts.update(told.get(_CLAIM, {}))
        state = None if end is None else told.get(_STATE)
    return RunRecord(
        id=log.sid,
        facts=facts,
        started=first[0].timestamp,
        last_id=last.id,
        end=end,
        state=state,
    )


async def the_end(log: EventStore) -> list[Event]:
    """Return the events that end the log of a run that was lost: open calls first, then the run."""
    from agents_tools.persistence import EventFilter

    brackets = await log.read(where=EventFilter(types=_BRACKETS))
    last = (await log.read(reverse=True, limit=1))[0]
    ended: list[Event] = [ToolStreamEndEvent("lost") for _ in _open(brackets)]
    ended = [
        end.stamped(cast("Origin", start.origin), last.seq + number)
        for number, (end, start) in enumerate(zip(ended, _open(brackets), strict=True), start=1)
    ]
    run = RunFinishedEvent(status="lost", error=LOST)
    seq = (ended[-1].seq if ended else last.seq) + 1
    return [*ended, run.stamped(Origin(source=EventSource.AGENT), seq)]


def _open(brackets: Sequence[Event]) -> list[Event]:
    """Return the calls that were begun and not ended, the innermost first."""
    waiting: dict[tuple[str, ...], Event] = {}
    for event in brackets:
        if isinstance(event, ToolStreamStartEvent):
            waiting[event.path] = event
        else:
            waiting.pop(event.path, None)
    return sorted(waiting.values(), key=lambda event: -len(event.path))


def _hidden(kind: str, facts: Mapping[str, Any]) -> Event:
    event: ActionEvent[Any] = ActionEvent(kind=kind, action=facts, hidden=True)
    return event.replace(origin=Origin(source=EventSource.ENVIRONMENT))


def _is_there(pid: int) -> bool:
    if os.name == "nt":  # there, os.kill ends a process
        return _is_there_on_windows(pid)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _is_there_on_windows(pid: int) -> bool:
    import ctypes

    kernel: Any = getattr(ctypes, "windll").kernel32  # noqa: B009 - only there on Windows
    handle = kernel.OpenProcess(_ASK_ONLY, 0, pid)
    if not handle:
        return False
    try:
        code = ctypes.c_ulong()
        return not kernel.GetExitCodeProcess(handle, ctypes.byref(code)) or code.value == _RUNS
    finally:
        kernel.CloseHandle(handle)


def _began(pid: int) -> str | None:
    """Return when a process began, on the clock of a Linux kernel; `None` elsewhere."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
