"""Recording a run in the run log, and repeating it from the log after its process has ended."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import math
import uuid
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Protocol, cast, get_type_hints

from agents_tools.agents.config import UNCHANGED
from agents_tools.agents.model import ModelResponse
from agents_tools.agents.state import PendingCall, RunState, pin_of
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.items import (
    ToolCallItem,
    ToolCallOutputItem,
    input_items,
    item_from_dict,
)
from agents_tools.content.json_value import to_json
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    AgentsToolsError,
    EventStoreError,
    ModelBehaviorError,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    ToolLostError,
    ToolOverloadedError,
    ToolStreamError,
    ToolTimeoutError,
    UserError,
    UserKeyError,
    UserValueError,
)
from agents_tools.events.kinds import NotifyStreamEvent
from agents_tools.persistence.run_log import RunLog, RunReplay
from agents_tools.tool.records import CallOutcome, Decision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Iterable, Mapping, Sequence
    from contextlib import AbstractContextManager

    from agents_tools.agents.config import RunConfig
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item
    from agents_tools.events.kinds import SummaryEvent
    from agents_tools.persistence.storage import RunMessage
    from agents_tools.tool.call import Call, RunScope
    from agents_tools.tool.tool import FunctionTool

__all__ = ["RunRecorder", "recorder_of"]

_log = logging.getLogger("agents_tools")

_MAX_BITS = 8_192
"""The size of the largest integer that is recorded; other programs read smaller ones."""
_MAX_ATTEMPTS = 2
"""How often a repeatable call is begun. One that ends its process each time must not continue."""


class _RecordedCalls(Protocol):
    """The parts of the calls of a run that its recorder uses."""

    approvals: Any

    @property
    def copies(self) -> Mapping[str, str]: ...
    @property
    def reserved_ids(self) -> list[str]: ...
    def restore_copies(self, copies: Mapping[str, str]) -> None: ...
    def reserve_ids(self, ids: Iterable[str]) -> None: ...


class _RecordedRun(Protocol):
    """The parts of a run that its recorder uses."""

    agent: RunnableAgent
    first_agent: RunnableAgent
    config: RunConfig
    history: list[Item]
    input_count: int
    max_turns: int | None
    turns: int
    new_input: int
    initial_state: RunState | None
    usages: list[Usage]

    @property
    def calls(self) -> _RecordedCalls: ...
    @property
    def scope(self) -> RunScope: ...
    def restore(self, state: RunState) -> None: ...
    def cancel(self, reason: str | None = None) -> None: ...
    def cancel_call(self, call_id: str) -> bool: ...
    def post(self, text: str, number: int) -> None: ...
    def set_decision(self, path: tuple[str, ...], call_id: str, decision: Decision) -> None: ...


class RunRecorder:
    """Records one run in a log, and finds what an earlier process has recorded of it.

    Args:
        run: The run.
        log: The log of the outermost run.
        place: The place of the run among those of the log; empty for the outermost one.
        resume: Whether the run has to exist in the log.
        usage: The usage of the call that the run is part of.

    Attributes:
        log: The log.
        is_replayed: Whether the current response of the model comes from the log.
        must_be_new: Whether a run that the log has already is refused.
    """

    must_be_new = False

    def __init__(
        self,
        run: _RecordedRun,
        log: RunLog,
        *,
        place: str = "",
        resume: bool = False,
        usage: Usage | None = None,
    ) -> None:
        self.log = log
        self.is_replayed = False
        self.usages: list[Usage] = [] if usage is None else [usage]
        self._run = run
        self._place = place
        self._resume = resume
        self._replay = RunReplay()
        self._is_new = True
        self._last_number = 0  # of the last message that was handled
        self._inner: dict[tuple[str, ...], _InnerRuns] = {}
        self._summaries: list[SummaryEvent] = []  # of the turns so far
        self._background_results: dict[str, dict[str, Any]] = {}  # not sent to the model yet

    @property
    def run_id(self) -> str:
        """The id of the run; a run inside a call has the same id each time it is repeated."""
        if not self._place:
            return self.log.run_id
        return f"run_{_digest(self.log.run_id, self._place)[:32]}"

    @property
    def is_outermost(self) -> bool:
        """Whether the run has the lease of the log."""
        return not self._place

    def inner_recorder(self, run: _RecordedRun, path: tuple[str, ...]) -> RunRecorder | None:
        """Return the recorder of a run inside a call; `None` if the call is recorded as a whole."""
        inner = self._inner.get(path)
        if inner is None:
            return None
        inner.count += 1
        return RunRecorder(run, self.log, place=f"{inner.place}{inner.count}/", usage=inner.usage)

    # --- begin and end

    async def open(self) -> None:
        """Read what an earlier process has recorded, and set the run to its beginning.

        Raises:
            UserError: The run does not exist, belongs to another agent, or began with other input.
            RunInUseError: Another process drives the run, or a run of the session.
        """
        run = self._run
        if not self.is_outermost:
            self._replay = self.log.replay.of(self._place)
            self._is_new = self._replay.created is None
            self._restore_approvals()
            return
        if self._resume and await self.log.store.run(self.run_id) is None:
            raise self._missing_error()  # opening would create its log
        with _readable(self.run_id, self.log.store.place):
            replay = await self.log.open()
        if self.must_be_new and replay.created is not None:
            raise UserValueError(
                f"Run {self.run_id!r} exists already in {self.log.store.place}. Use another run_id."
            )
        self._is_new = replay.created is None
        if replay.created is None and self.log.session is not None:
            await self.log.end_interrupted_runs()
        if replay.created is None:
            if self._resume:
                raise self._missing_error()
            if run.initial_state is not None:
                run.restore(run.initial_state)
            return
        with _readable(self.run_id, self.log.store.place):
            self._replay = replay.of("")
            self._adopt(replay.created)
        if run.initial_state is not None:
            self._record_decisions(run.initial_state)
        if self.receives_messages:
            await self.receive()
        self._restore_approvals()

    def _missing_error(self) -> UserKeyError:
        return UserKeyError(
            f"Run {self.run_id!r} does not exist in {self.log.store.place}. "
            "Runner.run(..., run_id=...) begins one."
        )

    def _adopt(self, created: Mapping[str, Any]) -> None:
        """Set the run to its recorded beginning."""
        run = self._run
        if created["agent"] != run.first_agent.name:
            raise UserValueError(
                f"Run {self.run_id!r} belongs to another agent: expected {created['agent']!r}, "
                f"got {run.first_agent.name!r}."
            )
        has_input = run.initial_state is None and not self._resume
        if has_input and created["fingerprint"] != _fingerprint(run.history):
            raise UserValueError(
                f"Run {self.run_id!r} began with another input. Use another run_id for a new run, "
                "or continue this one with Runner.resume(agent, run_id, store=...)."
            )
        if run.max_turns is UNCHANGED:
            run.max_turns = created["max_turns"]
        if "state" in created:
            run.restore(RunState.from_dict(created["state"]))
        else:
            run.history[:] = input_items(created["input"])
            run.input_count = len(run.history)

    def _restore_approvals(self) -> None:
        """Restore the requests for approval that have no output, and their decisions."""
        approvals = self._run.calls.approvals
        for call_id, request in self._replay.requests.items():
            decision = self._replay.decisions.get(call_id)
            if decision is not None and decision["approved"] and decision["always"]:
                approvals.always_approved[str(request["tool"])] = str(request["definition"])
            if call_id not in self._replay.outputs:
                self.restore_approval(call_id)

    def restore_approval(self, call_id: str) -> None:
        """Restore the request for approval of a call that will run, if there was one."""
        item = self._replay.requested.get(call_id)
        decision = self._replay.decisions.get(call_id)
        if item is not None:
            self._run.calls.approvals.pending[call_id] = PendingCall(
                item=item,
                pin=str(self._replay.requests[call_id]["pin"]),
                decision=None if decision is None else _decision(decision),
            )

    def begin(
        self,
        toolbox: Toolbox,
        emit_input: Callable[[], None],
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        """Record where the run begins.

        Args:
            toolbox: The tools of the first turn.
            emit_input: Emits the input of the run.
            facts: More data for the record.
        """
        run = self._run
        pins = {name: pin_of(tool) for name, tool in toolbox.by_name.items()}
        if not self._is_new:
            if self.is_outermost:
                created = cast("Mapping[str, Any]", self.log.replay.created)
                self._warn_of_changes(created["tools"], pins)
            return
        data: dict[str, Any] = {
            "run": self._place,
            "input_events": len(run.history) - run.new_input,
            **(facts or {}),
        }
        if self.is_outermost:
            data |= {
                "agent": run.first_agent.name,
                "session": self.log.session,
                "reads_session": self.log.session is not None,
                "fingerprint": _fingerprint(run.history[run.new_input :]),
                "max_turns": run.max_turns,
                "tools": pins,
                **self.log.facts,
            }
            if run.initial_state is None:
                data["input"] = [item.to_dict() for item in run.history[run.new_input :]]
            else:
                data["state"] = run.initial_state.to_dict()
        with self.log.group():
            self.log.record("run_created", data, self._path)
            emit_input()

    async def close(self, status: str) -> None:
        """Write what is pending, and release the lease of the outermost run."""
        if not self.is_outermost:
            return
        closing = asyncio.ensure_future(self.log.close())
        name = f"log of run {self.run_id}"
        try:
            await finish(closing, name=name)
        except asyncio.CancelledError:  # once more, so that the run can be resumed at once
            await finish(closing, name=name)
            raise
        if closing.done() and not closing.cancelled() and closing.exception() is not None:
            error = closing.exception()
            _log.error("The end of run %r (%s) was not stored: %s", self.run_id, status, error)

    @property
    def _path(self) -> tuple[str, ...]:
        path = self._run.scope.path
        return path[self.log.depth :]

    def _warn_of_changes(self, before: Mapping[str, str], now: Mapping[str, str]) -> None:
        changed = [name for name, pin in now.items() if before.get(name, pin) != pin]
        gone = [name for name in before if name not in now]
        parts = [
            f"{kind}: {', '.join(names)}"
            for kind, names in (("changed", changed), ("gone", gone))
            if names
        ]
        if parts:
            text = (
                f"The tools of agent {self._run.agent.name!r} differ from those at the start of "
                f"run {self.run_id!r} ({'; '.join(parts)}). Recorded results stay; new calls use "
                "the current tools."
            )
            _log.warning(text)
            self._run.scope.emit(NotifyStreamEvent(text, level="warning"))

    # --- the model

    def has_response(self, turn: int) -> bool:
        """Return whether the response of a turn is recorded."""
        return turn in self._replay.responses

    async def response(
        self, turn: int, request: Callable[[], Awaitable[ModelResponse]]
    ) -> ModelResponse:
        """Return the recorded response of a turn; otherwise request it from the model.

        If a response was lost whose calls had begun, it is a response with these calls: they are
        answered as lost, so that the model does not repeat them unknowingly.
        """
        record = self._replay.responses.get(turn)
        self.is_replayed = record is not None
        for summary in self._replay.summaries.pop(turn, ()):
            self._summaries.append(summary)
            for usage in self._run.usages:
                usage.add(Usage.from_dict(summary.usage or {}))
        if record is None and self._replay.incomplete:
            calls, self._replay.incomplete = self._replay.incomplete, {}
            return ModelResponse(items=input_items([*calls.values()]))
        if record is None:
            await self.log.flush()  # what the model reads now survives the end of the process
            return await request()
        with _readable(self.run_id, self.log.store.place):
            self._run.calls.reserve_ids(record["reserved"])
            self._run.calls.restore_copies(record["copies"])
            return ModelResponse.from_dict({**record["response"], "items": record["items"]})

    @property
    def summaries(self) -> list[SummaryEvent]:
        """The recorded summaries of the conversation so far, oldest first."""
        earlier = self.log.summaries if self.is_outermost else []
        return [*earlier, *self._summaries]

    def record_response(self, turn: int, response: ModelResponse) -> None:
        """Record a response whose items were emitted in the same group."""
        calls = self._run.calls
        data = response.to_dict()
        del data["items"]
        record = {
            "turn": turn,
            "response": data,
            "reserved": calls.reserved_ids,
            "copies": calls.copies,
        }
        self.log.record("model_response", record, self._path)

    def messages_before(self, turn: int) -> Sequence[Item]:
        """Return the recorded messages that were sent to the run before a turn."""
        return self._replay.sent.get(turn, ())

    # --- calls

    @property
    def created(self) -> Mapping[str, Any] | None:
        """The data of the record with which an earlier process has begun the run."""
        return self._replay.created

    def recorded_calls(self) -> list[ToolCallItem]:
        """Return the calls that an earlier process has recorded, of a run without a model."""
        with _readable(self.run_id, self.log.store.place):
            items = map(item_from_dict, self._replay.items)
            return [item for item in items if isinstance(item, ToolCallItem)]

    def recorded_outputs(self) -> list[str]:
        """Return the ids of the calls with a recorded output, in the order of the outputs."""
        return [*self._replay.outputs]

    def outcome(self, call: ToolCallItem, tool: FunctionTool[..., Any] | None) -> Any:
        """Return the `ReplayedCall` of a call that has ended; `None` if it has not."""
        output = self._replay.outputs.get(call.call_id)
        if output is None:
            return None
        with _readable(self.run_id, self.log.store.place):
            return ReplayedCall(output, self._replay.results.get(call.call_id, {}), tool)

    def is_lost(
        self, call: ToolCallItem, tool: FunctionTool[..., Any], *, is_repeatable: bool
    ) -> bool:
        """Return whether a call may have taken effect and must not run again.

        Args:
            call: The call.
            tool: Its tool; an agent is continued where it stopped.
            is_repeatable: Whether trusted code declares that a repeated call does no harm.
        """
        attempts = self._replay.begun.get(call.call_id, 0)
        return attempts >= (_MAX_ATTEMPTS if is_repeatable else 1) and not _can_resume(tool)

    async def call(
        self,
        call: ToolCallItem,
        tool: FunctionTool[..., Any],
        path: tuple[str, ...],
        perform: Callable[[], Awaitable[CallOutcome]],
        *,
        is_read_only: bool,
        is_incomplete: bool,
        in_background: bool = False,
    ) -> CallOutcome:
        """Run a call between its records.

        Args:
            call: The call.
            tool: Its tool.
            path: The ids of the calls around it, and its own.
            perform: Runs the call.
            is_read_only: Whether the beginning need not be stored before the body runs.
            is_incomplete: Whether the model still writes the call. If its response is lost, a run
                that is resumed reports the call as lost.
            in_background: Whether `record_background_result` records the result.
        """
        data: dict[str, Any] = {"call_id": call.call_id}
        if is_incomplete:
            data["item"] = call.to_dict()
        self.log.record("call_begun", data, self._path)
        if not is_read_only:
            await self.log.flush()
        inner = _InnerRuns(f"{self._place}{call.call_id}/")
        if _can_resume(tool):
            self._inner[path] = inner
        try:
            outcome = await perform()
        finally:
            self._inner.pop(path, None)
        result = _result_data(tool, outcome, inner.usage)
        if in_background:
            self._background_results[call.call_id] = result
        elif result:
            self.log.record("call_result", {"call_id": call.call_id, **result}, self._path)
        return outcome

    async def record_remote(self, call_id: str, reference: Mapping[str, Any]) -> None:
        """Record where a call continues outside of this process, before it waits for it."""
        data = {"call_id": call_id, "reference": dict(reference)}
        self.log.record("call_remote", data, self._path)
        await self.log.flush()

    @property
    def remote_calls(self) -> dict[str, Mapping[str, Any]]:
        """Where calls of an earlier process continue, by call id."""
        return self._replay.remote

    def record_dropped(self, call_id: str) -> None:
        """Record that a call of a lost response has ended, so that it is not reported as lost."""
        self.log.record("call_result", {"call_id": call_id, "is_dropped": True}, self._path)

    def record_background_result(self, output: ToolCallOutputItem) -> None:
        """Record the result of a call in the background before it is sent to the model."""
        call_id = output.call_id
        result = self._background_results.pop(call_id, {})
        data = {**output.to_dict(), "public_message": output.public_message}
        record: dict[str, Any] = {"call_id": call_id, "output": data}
        record |= {name: result[name] for name in ("usage", "raises") if name in result}
        with self.ending_call(call_id):
            self.log.record("call_result", record, self._path)

    def background_output(self, call_id: str) -> ToolCallOutputItem | None:
        """Return the recorded result of a call in the background; `None` if it has not ended."""
        output = self._replay.results.get(call_id, {}).get("output")
        if output is None:
            return None
        with _readable(self.run_id, self.log.store.place):
            return cast("ToolCallOutputItem", item_from_dict(output))

    def has_sent_result(self, call_id: str) -> bool:
        """Return whether an earlier process has sent the result of a call in the background."""
        return call_id in self._replay.answered

    def leave_open(self, call_id: str) -> None:
        """Record that the next output of a call is not final: the run ends early.

        If the run is resumed, the call is repeated or lost, as after the end of its process.
        """
        self.log.record("call_result", {"call_id": call_id, "is_open": True}, self._path)

    def record_approval_request(self, call_id: str, pin: str, tool: str, definition: str) -> None:
        """Record that a call waits for the decision of a person."""
        data = {"call_id": call_id, "pin": pin, "tool": tool, "definition": definition}
        self.log.record("approval_requested", data, self._path)
        self.log.replay.at(self._path).read_record("approval_requested", data)

    # --- messages to the run

    @property
    def receives_messages(self) -> bool:
        """Whether the run has an inbox: it is the outermost one and has not ended before."""
        return self.is_outermost and not self.log.is_complete

    @contextmanager
    def consuming(self, *numbers: int | None) -> Generator[None]:
        """Delete messages of the inbox together with the events that the block emits."""
        with self.log.group():
            for number in numbers:
                if number is not None:
                    self.log.consume(number)
            yield

    def ending_call(self, call_id: str) -> AbstractContextManager[None]:
        """Delete the request to cancel a call with the output that the block emits."""
        return self.consuming(self.log.cancelled_calls.pop(call_id, None))

    def ending_run(self, status: str) -> AbstractContextManager[None]:
        """Delete the requests to cancel with the end of the run that the block emits.

        Those for calls stay in the inbox of a run that will be continued, for calls that wait.
        """
        numbers, calls = self.log.cancellations, self.log.cancelled_calls
        if not self.is_outermost:
            numbers = []
        elif status != "interrupted":
            numbers = [*numbers, *calls.values()]
        return self.consuming(*numbers)

    def is_cancelled(self, call_id: str) -> bool:
        """Return whether a call was cancelled that has no output yet."""
        return call_id in self.log.cancelled_calls

    async def handle_messages(self) -> None:
        """Execute the messages to the run until this is cancelled or the log is closed."""
        while True:
            try:
                messages = await self.log.next_messages(self._last_number)
            except EventStoreError as error:
                _log.warning("Messages to run %s cannot be received: %s", self.run_id, error)
                return
            if not messages:
                return
            self._handle(messages)

    async def receive(self) -> None:
        """Execute the messages that are in the inbox now.

        Raises:
            EventStoreError: The inbox cannot be read.
        """
        self._handle(await self.log.pending_messages())

    def _handle(self, messages: Sequence[RunMessage]) -> None:
        for message in messages:
            if message.number <= self._last_number:
                continue  # its deletion was not written yet
            self._last_number = message.number
            kind, call_id = message.body.get("type"), message.body.get("call_id")
            if kind == "decision":
                self._take_decision(message)
            elif kind == "cancel" and call_id is None:
                self.log.cancellations.append(message.number)
                self._run.cancel(str(message.body.get("reason") or "") or None)
            elif kind == "cancel":
                self.log.cancelled_calls[str(call_id)] = message.number
                self._run.cancel_call(str(call_id))
            elif kind == "message":
                self._run.post(str(message.body.get("text")), message.number)
            else:
                _log.warning("Run %s ignores a message of type %r.", self.run_id, kind)
                self.log.consume(message.number)

    # --- decisions

    def _take_decision(self, message: RunMessage) -> None:
        """Move a decision from the inbox to the log, and apply it; only the first one counts."""
        body = message.body
        path, call_id = tuple(map(str, body["path"])), str(body["call_id"])
        known = self.log.replay.at(path)
        if call_id in known.decisions:
            self.log.consume(message.number)
            return
        names = ("call_id", "approved", "message", "arguments", "always")
        data = {name: body[name] for name in names} | {"number": message.number}
        with self.consuming(message.number):
            self.log.record("approval_decided", data, path)
        known.read_record("approval_decided", data)
        self._run.set_decision((*self._run.scope.path, *path), call_id, _decision(data))

    def _record_decisions(self, state: RunState, path: tuple[str, ...] = ()) -> None:
        """Record the decisions in a state that the log does not have."""
        known = self.log.replay.at(path)
        for call_id, pending in state.pending.items():
            decision = pending.decision
            if decision is None or call_id in known.decisions:
                continue
            data: dict[str, Any] = {
                "call_id": call_id,
                "approved": decision.approved,
                "message": decision.message,
                "arguments": decision.arguments,
                "always": decision.always,
            }
            self.log.record("approval_decided", data, path)
            known.read_record("approval_decided", data)
        for call_id, inner in state.nested.items():
            self._record_decisions(inner, (*path, call_id))


class _InnerRuns:
    """The runs inside one call."""

    __slots__ = ("count", "place", "usage")

    def __init__(self, place: str) -> None:
        self.place = place
        self.count = 0
        self.usage = Usage()


def recorder_of(
    run: _RecordedRun,
    *,
    run_id: str | None,
    session: str | None,
    parent: Call | None,
    outer: RunRecorder | None,
    resume: bool,
    facts: Mapping[str, Any] | None = None,
) -> RunRecorder | None:
    """Return the recorder of a run; `None` for a run that is recorded as a part of a call.

    Args:
        run: The run.
        run_id: The id of the run, if it was given one.
        session: The session of the run.
        parent: The call that the run is part of.
        outer: The recorder of the run around it.
        resume: Whether the run has to exist in the log.
        facts: More data for the record of the start of the run.
    """
    store = run.config.store
    if store is None:
        return None
    scope = None if parent is None else parent.scope
    has_own_log = run_id is not None or session is not None
    is_inside = scope is not None and not has_own_log and scope.run.config.store is store
    if parent is not None and is_inside:
        return None if outer is None else outer.inner_recorder(run, parent.path)
    if run_id is None and run.initial_state is not None:
        run_id = run.initial_state.run_id
    path = () if parent is None else parent.path
    run_id = run_id or f"run_{uuid.uuid4().hex}"
    log = RunLog(store, run_id, session=session, facts=facts, path=path)
    return RunRecorder(run, log, resume=resume)


class ReplayedCall:
    """The outcome of a call that an earlier process has recorded.

    Args:
        output: The output item, as JSON.
        result: The data of the `call_result` record; empty if there is none.
        tool: The tool; `None` if it does not exist any more.

    Attributes:
        output: The output for the model.
        outcome: The outcome; its value is `None` if it has no JSON form.
        usage: The usage of the runs inside the call.
    """

    __slots__ = ("outcome", "output", "usage")

    def __init__(
        self,
        output: Mapping[str, Any],
        result: Mapping[str, Any],
        tool: FunctionTool[..., Any] | None,
    ) -> None:
        self.output = cast("ToolCallOutputItem", item_from_dict(output))
        error = result.get("raises")
        self.outcome = CallOutcome(
            status=self.output.status,
            value=_restore_value(result, tool),
            output=self.output.output,
            error=None if error is None else _restore_error(error),
            public_message=self.output.public_message,
            metadata=result.get("metadata"),
        )
        self.usage = Usage.from_dict(result.get("usage", {}))


@contextmanager
def _readable(run_id: str, place: str) -> Generator[None]:
    """Raise an error that names the run if a record cannot be read.

    Raises:
        EventStoreError: A record has another form.
    """
    try:
        yield
    except UserError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise EventStoreError(
            f"The log of run {run_id!r} in {place} cannot be read ({error!r:.200}): it is damaged, "
            "or another release has written it. Start a new run.",
            store=place,
        ) from error


def _can_resume(tool: FunctionTool[..., Any]) -> bool:
    """Return whether a call continues where it stopped, because its tool is an agent."""
    own: Any = tool.metadata.get("agents_tools")
    return bool(own and own.get("resumes"))


def _decision(data: Mapping[str, Any]) -> Decision:
    return Decision(
        approved=bool(data["approved"]),
        message=data.get("message"),
        arguments=data.get("arguments"),
        always=bool(data["always"]),
    )


def _digest(*parts: str) -> str:
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def _fingerprint(items: Sequence[Item]) -> str:
    text = json.dumps([item.to_dict() for item in items], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


# --- outcomes as JSON


def _result_data(
    tool: FunctionTool[..., Any], outcome: CallOutcome, usage: Usage
) -> dict[str, Any]:
    """Return the parts of an outcome that the output item does not have."""
    data: dict[str, Any] = {}
    if usage.requests:
        data["usage"] = usage.to_dict()
    if outcome.error is not None and tool.failure_error_function is None:
        error = outcome.error
        data["raises"] = {"type": type(error).__name__, "message": str(error)}
    if outcome.metadata and _is_plain(outcome.metadata):
        data["metadata"] = outcome.metadata
    value = outcome.value
    is_output = value is outcome.output or (isinstance(value, str) and value == outcome.output)
    if value is None or is_output:
        return data
    if _is_plain(value):
        data["value"] = value
    else:
        with suppress(UserError, ValueError):  # it has no JSON form
            data["typed"] = json.loads(to_json(value))
    return data


def _is_plain(value: Any) -> bool:
    """Return whether a value is equal after a round trip through JSON."""
    if type(value) is dict:
        members = cast("dict[Any, Any]", value).items()
        return all(type(key) is str and _is_plain(member) for key, member in members)
    if type(value) is list:
        return all(map(_is_plain, cast("list[Any]", value)))
    if type(value) is float:
        return math.isfinite(value)
    if type(value) is int:
        return value.bit_length() <= _MAX_BITS
    return type(value) in {str, bool, type(None)}


def _restore_value(result: Mapping[str, Any], tool: FunctionTool[..., Any] | None) -> Any:
    """Return the value of a call; `None` if it cannot be created from its JSON form."""
    if "typed" not in result:
        return result.get("value")
    function = getattr(tool, "__wrapped__", None)
    if function is None:
        return None
    from pydantic import TypeAdapter, ValidationError

    try:
        adapter: TypeAdapter[Any] = TypeAdapter(get_type_hints(function)["return"])
        return adapter.validate_json(json.dumps(result["typed"]))
    except (KeyError, NameError, TypeError, ValidationError, UserError):
        return None
    except Exception as error:  # pydantic raises errors of many kinds for types it cannot describe
        if type(error).__module__.partition(".")[0] != "pydantic":
            raise
        return None


def _restore_error(raised: Mapping[str, Any]) -> Exception:
    """Return the error that ended the run of a call; a `ToolError` for other classes."""
    kind = _ERRORS.get(raised["type"])
    if kind is None:
        return ToolError(f"{raised['type']}: {raised['message']}")
    return kind(raised["message"])


_KINDS: tuple[type[AgentsToolsError], ...] = (
    ToolError,
    ToolTimeoutError,
    ToolCancelledError,
    ToolDeniedError,
    ToolOverloadedError,
    ToolLostError,
    ToolStreamError,
    ModelBehaviorError,
)
_ERRORS = {kind.__name__: kind for kind in _KINDS}
