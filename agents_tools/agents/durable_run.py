"""What a run keeps in its durable store: where it begins, and each answer of its model."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import uuid
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol, cast

from agents_tools.agents.config import KEPT
from agents_tools.agents.model import ModelResponse
from agents_tools.agents.state import RunState, conversation, pin_of
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.items import ToolCallItem, input_messages
from agents_tools.errors import UserKeyError, UserValueError
from agents_tools.events.kinds import NotifyStreamEvent
from agents_tools.persistence.durable.journal import Journal, RecordedItems, readable

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from agents_tools.agents.tool_calls import TurnCalls
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item, MessageInputItem
    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event
    from agents_tools.persistence.durable import DurableStore, RunStatus
    from agents_tools.tool.call import Call, RunScope

__all__ = ["DurableRunRecorder", "journal_of"]


class _DurableSubRun(Protocol):
    """What a run has that is kept."""

    agent: RunnableAgent
    history: list[Item]
    max_turns: int | None
    turns: int
    new_input: int
    resumed: bool

    @property
    def calls(self) -> TurnCalls: ...
    @property
    def scope(self) -> RunScope: ...
    def state(self) -> RunState: ...
    def restore(self, state: RunState) -> None: ...
    async def session_events(self) -> Sequence[Event] | None: ...


class DurableRunRecorder:
    """Keeps one run, and knows what was kept of it before.

    Args:
        run: The run.
        journal: What the store has of it.
        resume: Whether it has to be there.

    Attributes:
        journal: What the store has of it.
        replayed: Whether the answer of the model at hand is one of before.
    """

    def __init__(self, run: _DurableSubRun, journal: Journal, *, resume: bool) -> None:
        self.journal = journal
        self.replayed = False
        self._run = run
        self._resume = resume
        self._start: Mapping[str, Any] | None = None
        self._input: str | None = None
        self._carried = False
        self._before = 0  # how many events the session had
        self._said: RecordedItems | None = None
        self._sent: list[Item] = []  # since the last answer

    @property
    def run_id(self) -> str:
        """The id of the run."""
        return self.journal.run_id

    @property
    def usages(self) -> list[Usage]:
        """What the tokens of the run count for, besides the runs around it."""
        return [] if self.journal.usage is None else [self.journal.usage]

    # --- where it begins

    async def open(self) -> None:
        """Become the one who carries the run on, from where it begins if it is not new.

        Raises:
            UserError: It is no run of this agent, or was begun with another input.
        """
        if self.journal.is_inner:
            return
        run = self._run
        start = await self.journal.open()
        events = await run.session_events()
        self._before = len(events or ())
        self._input = None if run.resumed else _input_of(run.history)
        if start is None:
            self._carried = not self._resume
            if self._resume:
                raise UserKeyError(
                    f"There is no run {self.run_id!r} in the durable store. "
                    "Runner.run(..., run_id=...) begins one."
                )
            return
        with readable(self.run_id):
            self._go_on(start, events)

    def _go_on(self, start: Mapping[str, Any], events: Sequence[Event] | None) -> None:
        run = self._run
        is_other = run.resumed and start["state"] != self._state().to_dict()
        if not run.resumed:
            self._adopt(start)
        self._input, self._carried = start["input"], True
        if is_other:  # a person has decided since, for example
            return
        self._start = start
        if events is not None:
            self._said = RecordedItems(conversation(events[start["said"] :]))
            run.new_input = start["new_input"]

    def _adopt(self, start: Mapping[str, Any]) -> None:
        state = RunState.from_dict(start["state"])
        if state.agent != self._run.agent.name:
            raise UserValueError(
                f"Run {state.run_id!r} is of agent {state.agent!r}, "
                f"not of {self._run.agent.name!r}."
            )
        if not self._resume and start["input"] != self._input:
            raise UserValueError(
                f"Run {state.run_id!r} was begun with another input. Give a new run another "
                "run_id, or go on with this one: Runner.resume(agent, run_id, durable=...)."
            )
        if self._run.max_turns is KEPT:
            self._run.max_turns = start["max_turns"]
        self._run.restore(state)

    async def begin(self, box: Toolbox) -> None:
        """Keep where the run begins, with its tools as they are."""
        if self.journal.is_inner:
            return
        tools = {name: pin_of(tool) for name, tool in box.by_name.items()}
        if self._start is not None:
            self._tell_of_changes(self._start["tools"], tools)
            return
        await self.journal.begin(
            {
                "agent": self._run.agent.name,
                "input": self._input,
                "state": self._state().to_dict(),
                "max_turns": self._run.max_turns,
                "tools": tools,
                "said": self._before,
                "new_input": self._run.new_input,
            }
        )

    async def wait(self, box: Toolbox) -> None:
        """Keep that the run continues from here, once the calls that wait are decided."""
        if not self.journal.is_inner:
            self._before = len(await self._run.session_events() or ())
        self._run.new_input = len(self._run.history)
        self._start = None
        await self.begin(box)

    async def leave(self, status: str) -> None:
        """Let others carry the run on, whatever happens."""
        left = asyncio.ensure_future(self.journal.leave(_LEFT[status] if self._carried else None))
        name = f"{self._run.agent.name} durable store"
        try:
            await finish(left, name=name)
        except asyncio.CancelledError:  # once more: or nobody could go on with it right away
            await finish(left, name=name)
            raise
        if left.done() and (left.cancelled() or left.exception() is not None):
            _log.error("How run %r ended could not be kept.", self.run_id)

    def _state(self) -> RunState:
        return replace(self._run.state(), started=self._run.calls.lost_ids)

    def _tell_of_changes(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        changed = [name for name, pin in now.items() if before.get(name, pin) != pin]
        gone = [name for name in before if name not in now]
        parts = [
            f"{what}: {', '.join(names)}"
            for what, names in (("changed", changed), ("gone", gone))
            if names
        ]
        if parts:
            text = (
                f"The tools of agent {self._run.agent.name!r} are not those that run "
                f"{self.run_id!r} was begun with ({'; '.join(parts)}). What they did before "
                "stays; calls from now on are made of the tools as they are."
            )
            _log.warning(text)
            self._run.scope.emit(NotifyStreamEvent(text, level="warning"))

    # --- what is said

    async def answer(self, ask: Callable[[], Awaitable[ModelResponse]]) -> ModelResponse:
        """Return the answer of the model in this turn, which is asked for it once."""
        calls, turn = self._run.calls, self._run.turns
        self.replayed = self.journal.has_answer(turn)
        made: list[ModelResponse] = []

        async def asked() -> dict[str, Any]:
            made.append(_with_ids(await ask()))
            sent, self._sent = [item.to_dict() for item in self._sent], []
            return {"answer": made[0].to_dict(), "spent": calls.reserved_ids, "sent": sent}

        record = await self.journal.answer(turn, asked)
        if made:
            return made[0]
        with readable(self.run_id):
            calls.reserve_ids(record["spent"])
            return ModelResponse.from_dict(record["answer"])

    def has_answer(self, turn: int) -> bool:
        """Return whether the model answered in a turn before."""
        return self.journal.has_answer(turn)

    def note_sent(self, messages: Sequence[Item]) -> None:
        """Keep messages that were sent to the run with the next answer of the model."""
        self._sent += messages

    def sent_before(self, turn: int) -> list[MessageInputItem]:
        """Return the messages that were sent to the run before a recorded answer."""
        record = self.journal.recorded_answer(turn)
        with readable(self.run_id):
            return input_messages(record.get("sent", []))

    def was_said(self, item: Item, *, again: bool = False) -> bool:
        """Return whether an item is not to be said any more; asked once for each.

        Args:
            item: The item.
            again: Whether it is of a step of before: no one but a session waits for those.
        """
        return again if self._said is None else self._said.take(item)


_LEFT: dict[str, RunStatus] = {
    "ok": "finished",
    "interrupted": "waiting",
    "error": "failed",
    "cancelled": "cancelled",
}
_log = logging.getLogger("agents_tools")


def journal_of(
    store: DurableStore,
    run_id: str | None,
    state: RunState | None,
    parent: Call | None,
    outer: DurableRunRecorder | None,
) -> Journal | None:
    """Return what a run is kept in; `None` for one that is part of a step of another.

    Args:
        store: Where runs are kept.
        run_id: Its id, if it was given one.
        state: The state that it continues from.
        parent: The call that it is made in.
        outer: What keeps the run that this call is of.
    """
    scope = None if parent is None else parent.scope
    if scope is not None and run_id is None and scope.run.config.durable is not None:
        path = cast("Call", parent).path
        return None if outer is None else outer.journal.below(path)
    if run_id is None and state is not None:
        run_id = state.run_id
    return Journal(store, run_id or f"run_{uuid.uuid4().hex}")


def _input_of(history: Sequence[Item]) -> str:
    """Return the fingerprint of what a run was given."""
    text = json.dumps([item.to_dict() for item in history], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _with_ids(response: ModelResponse) -> ModelResponse:
    """Name the calls of a model that gives no ids, before the answer is kept."""
    items = [
        replace(item, call_id=f"call_{uuid.uuid4().hex[:16]}")
        if isinstance(item, ToolCallItem) and not item.call_id
        else item
        for item in response.items
    ]
    return replace(response, items=items)
