"""The tool calls of one run: each one runs at most once and gets exactly one output."""

from __future__ import annotations

import asyncio
import difflib
import uuid
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.approvals import CallApprovals, arguments_of
from agents_tools.agents.background import (
    BackgroundCall,
    BackgroundCalls,
    acknowledgement,
)
from agents_tools.agents.budgets import calls_left, count_calls
from agents_tools.agents.pending_tool_call import (
    PendingToolCall,
    can_start_early,
    group_calls,
    runs_alone,
)
from agents_tools.agents.streamed_calls import CallWatcher, StreamedCall
from agents_tools.concurrency.supervisor import GRACE, cancel_tasks
from agents_tools.content.items import (
    MessageInputItem,
    ToolCallItem,
    ToolCallOutputItem,
    result_message,
)
from agents_tools.content.outputs import ToolOutputText
from agents_tools.errors import BudgetExceeded, Interruption, ModelBehaviorError, UserError
from agents_tools.policies._timeout import has_deadline, timeout
from agents_tools.tool.call import Call
from agents_tools.tool.invocation import execute, prepare
from agents_tools.tool.records import is_idempotent, is_read_only
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.agents.run_recorder import RunRecorder
    from agents_tools.agents.state import PendingCall, RunState
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item
    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.base import Emit
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.call import RunScope
    from agents_tools.tool.policy import AtEnd
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

    Perform = Callable[[Call], Awaitable[CallOutcome]]
    """Executes a prepared call, and returns its outcome."""

__all__ = ["TurnCalls", "with_wire"]

_CANCELLED = "The call was cancelled before it had a result."
_CANCELLED_ALONE = (
    "The user cancelled this call before it had a result. If it had started, it may have taken "
    "effect in part."
)
_CANNOT_WAIT = (
    "The call needs the approval of a person and was stopped: a call in the background cannot wait "
    "for one."
)
_USED_UP = "Not run: the run has used up its tool calls."
_LOST = (
    "Outcome unknown: the program was interrupted while this call ran, so it may or may not have "
    "taken effect. Check before you call it again."
)
_METADATA_KEY = "agents_tools"
_MAX_LISTED_NAMES = 20
_UNIQUE_ID_LENGTH = 16
"""An id of this length or more that appears twice names the same call.

Shorter ids can be reused for other calls, because some servers number the calls of each response.
"""


class TurnCalls:
    """Runs the calls of one run, turn by turn.

    Args:
        agent: The agent.
        config: The configuration of the run.
        scope: The scope of the run.
        hooks: The hooks of the run and the agent.
        emit_item: Emits the event of a new item.
        recorder: The recorder of a run with a store; `None` for other runs.

    Attributes:
        approvals: The approvals of the run.
        background: The calls that run in the background; `None` before the first one.
        unanswered: The loaded calls in the background that have no result.
        perform: Executes a call after its checks. A controller that sends calls elsewhere replaces
            it, and passes calls with a failure to `execute`.
        has_background: Whether the policy `background` has an effect. A controller whose stream
            answers each call once sets it to `False`.
        provider: The provider whose schema format the tools were converted to; `None` if unknown.
        has_run_tools: Whether any call was executed.
        early: The calls that started while the model streams, by call id.
        started: The ids of the calls that run now.
        nested: The states of interrupted runs inside calls, by call id.
    """

    def __init__(
        self,
        agent: RunnableAgent,
        config: RunConfig,
        scope: RunScope,
        hooks: Sequence[RunHooks[Any]],
        emit_item: Callable[..., None],
        recorder: RunRecorder | None,
    ) -> None:
        self._agent = agent
        self._config = config
        self._scope = scope
        self._hooks = hooks
        self._emit_item = emit_item
        self._recorder = recorder
        self.approvals = CallApprovals(agent.name, config, scope, emit_item, recorder)
        self.background: BackgroundCalls | None = None
        self.perform: Perform = execute
        self.has_background = True
        self.provider: str | None = None
        self.has_run_tools = False
        self.started: dict[str, None] = {}
        self.nested: dict[str, RunState] = {}
        self._lost_ids = set[str]()
        self.unanswered: dict[str, None] = {}
        self._unsent_results: dict[str, ToolCallOutputItem] = {}
        self._counted_ids = set[str]()
        self._reserved_ids = set[str]()
        self._calls: dict[str, ToolCallItem] = {}
        self._outputs: dict[str, ToolCallOutputItem] = {}
        # The id of a repeated call -> the id of the first one.
        self._original_ids: dict[str, str] = {}
        self._response_calls: dict[str, ToolCallItem] = {}
        self.early: dict[str, PendingToolCall] = {}
        self._has_started_early = False
        self._slots: asyncio.Semaphore | None = None
        self._running_tasks: dict[str, asyncio.Task[Any]] = {}
        self._ids_to_cancel = set[str]()
        self._limited_tools: dict[FunctionTool[..., Any], FunctionTool[..., Any]] = {}

    def set_agent(self, agent: RunnableAgent, hooks: Sequence[RunHooks[Any]]) -> None:
        """Run the calls of another agent from now on."""
        self._agent = agent
        self._hooks = hooks
        self.approvals.agent_name = agent.name
        self.has_run_tools = False

    def restore(self, state: RunState) -> None:
        """Load a state that was taken earlier, in this process or another one."""
        self.approvals.pending.update(state.pending)
        self.nested.update(state.nested)
        self.approvals.always_approved.update(state.standing)
        self._lost_ids.update(state.started)
        self._calls.clear()
        self._outputs.clear()
        self.load_history(state.history)

    def load_history(self, history: Sequence[Item]) -> None:
        """Load the calls and outputs of an earlier conversation.

        Some providers number the calls of each turn, so that ids repeat. An id then stands for the
        last call that has it, and only an output after that call is its output.
        """
        for item in history:
            if isinstance(item, ToolCallItem):
                self._outputs.pop(item.call_id, None)
                self.unanswered.pop(item.call_id, None)
                self._calls.pop(item.call_id, None)  # the order is that of the last calls
                self._calls[item.call_id] = item
            elif isinstance(item, ToolCallOutputItem):
                self._outputs[item.call_id] = item
                if item.in_background:
                    self.unanswered[item.call_id] = None
            elif isinstance(item, MessageInputItem) and item.call_id is not None:
                self.unanswered.pop(item.call_id, None)

    def report_lost_results(self) -> None:
        """Tell the model which calls of the loaded history will never send a result.

        They ran in the background of another run, which has ended without their results.
        """
        for call_id in self.unanswered:
            if self._recorder is None or not self._recorder.has_sent_result(call_id):
                self._send_result(replace(self._outputs[call_id], output=_LOST, status="lost"))
        self.unanswered.clear()

    def unfinished_calls(self, toolbox: Toolbox) -> list[PendingToolCall]:
        """Return the calls of the loaded history that have no output."""
        if not self._calls:
            return []
        calls = [
            PendingToolCall(item, toolbox)
            for call_id, item in self._calls.items()
            if call_id not in self._outputs and item.needs_answer
        ]
        self._counted_ids = {call.item.call_id for call in calls}
        return calls

    def cancel(self, call_id: str) -> bool:
        """Cancel a call, so that it ends as `cancelled`; return whether it was running."""
        task = self._running_tasks.get(call_id)
        background = None if self.background is None else self.background.get(call_id)
        if task is None and background is not None:
            task = background.task
        if task is None or task.done():
            return False
        self._ids_to_cancel.add(call_id)
        return task.cancel()

    def mark_lost(self, calls: Iterable[ToolCallItem]) -> None:
        """Mark calls that were possibly executed, although their output was not recorded."""
        self._lost_ids.update(call.call_id for call in calls)

    @property
    def reserved_ids(self) -> list[str]:
        """The ids of early calls whose response never arrived. No other call gets such an id."""
        return sorted(self._reserved_ids)

    def reserve_ids(self, ids: Iterable[str]) -> None:
        """Never use these ids for new calls."""
        self._reserved_ids.update(ids)

    @property
    def copies(self) -> Mapping[str, str]:
        """The ids of repeated calls, with the ids of the calls whose output they get."""
        return dict(self._original_ids)

    def restore_copies(self, copies: Mapping[str, str]) -> None:
        """Restore the recorded `copies` of an earlier process."""
        self._original_ids.update(copies)

    @property
    def is_waiting(self) -> bool:
        """Whether a call waits for the decision of a person."""
        return bool((self.approvals.pending and self.waiting_approvals) or self.nested)

    @property
    def waiting_approvals(self) -> list[PendingCall]:
        """The calls that wait for approval, without those of turns that are still to be repeated.

        A resumed run has all recorded requests for approval from its start.
        """
        pending = self.approvals.pending
        return [one for call_id, one in pending.items() if call_id in self._calls]

    # --- calls from the model

    def begin_response(self) -> None:
        """Prepare for the calls of the next response of the model."""
        self._response_calls = {}

    def register(
        self, item: ToolCallItem, toolbox: Toolbox, *, is_replayed: bool = False
    ) -> PendingToolCall | None:
        """Record a call of a complete response; return `None` for a duplicate in the response.

        Args:
            item: The call.
            toolbox: The tools of the turn.
            is_replayed: Whether the response comes from the log of the run.
        """
        duplicate = self._response_calls.get(item.call_id)
        if duplicate is not None and (duplicate.name, duplicate.arguments) == (
            item.name,
            item.arguments,
        ):
            return None
        if item.call_id:
            self._response_calls.setdefault(item.call_id, item)
        call = self._take_early(item) if self.early else None
        if call is None:
            call = PendingToolCall(self._with_unique_id(item), toolbox)
        call.is_recorded = True
        # Early calls can start in another order than the response has.
        self._calls.pop(call.item.call_id)
        self._calls[call.item.call_id] = call.item
        self._emit_item("tool_called", call.item, is_replayed)
        if call.output_item is not None:
            self._emit_item("tool_output", call.output_item)
        return call

    def _take_early(self, item: ToolCallItem) -> PendingToolCall | None:
        """Return the early call that an item of the complete response is, if it is one."""
        call = self.early.get(item.call_id)
        if call is not None and call.streamed is not None:
            if call.streamed.incoming.is_over or call.item.name != item.name:
                return None  # the model has repeated its response
            complete = replace(item, call_id=call.item.call_id, agent=self._agent.name)
            call.item = call.target = complete
        return self.early.pop(item.call_id, None)

    def start_watching(self, toolbox: Toolbox, emit: Emit, wire: str | None) -> Emit:
        """Return a function that emits the events of the next response of a model.

        It starts the calls of tools with an `ArgumentStream` while the model writes them.

        Args:
            toolbox: The tools that are offered.
            emit: Receives the events.
            wire: The schema format of the model.
        """
        is_blocked = False

        def open_call(item: ToolCallItem) -> StreamedCall | None:
            nonlocal is_blocked
            tool = toolbox.by_name.get(item.name)
            is_blocked = is_blocked or runs_alone(tool)  # later calls wait for an exclusive one
            if is_blocked or tool is None or not self._can_stream(item, tool):
                return None
            if wire != self.provider:
                item = cast("ToolCallItem", with_wire([item], wire)[0])
            return StreamedCall(item, tool, lambda one: self._decode_arguments(one, tool), start)

        def start(streamed: StreamedCall) -> None:
            self._start_early(streamed.item, toolbox, streamed)

        return CallWatcher(emit, open_call)

    def _can_stream(self, item: ToolCallItem, tool: FunctionTool[..., Any]) -> bool:
        return (
            tool.streamed_parameters is not None
            and tool.stack.at_end is None
            and self.perform is execute
            and item.call_id not in self._calls
            and item.call_id not in self._reserved_ids
            and len(self.early) < calls_left(self._scope.run)
        )

    def _start_early(
        self, item: ToolCallItem, toolbox: Toolbox, streamed: StreamedCall | None = None
    ) -> None:
        call = PendingToolCall(self._with_unique_id(item), toolbox)
        call.streamed = streamed
        self.early[item.call_id] = call
        self._has_started_early = True
        call.is_recorded = False
        call.task = asyncio.ensure_future(self._run_in_slot(call))

    def early_starter(self, toolbox: Toolbox) -> Callable[[ToolCallItem], None]:
        """Return a function that starts read-only calls while the model still streams."""
        is_blocked = False

        def start(item: ToolCallItem) -> None:
            nonlocal is_blocked
            tool, _ = toolbox.resolve(item)
            is_blocked = is_blocked or runs_alone(tool)  # later calls wait for an exclusive one
            if is_blocked or item.call_id in self._calls or not can_start_early(item, tool):
                return
            self._start_early(item, toolbox)

        return start

    async def cancel_early(self) -> None:
        """Cancel the early calls that the response does not contain, or whose response failed."""
        if self.early:
            calls, self.early = list(self.early.values()), {}
            ids = [call.item.call_id for call in calls]
            self._reserved_ids.update(ids)
            try:
                await self._abandon_streams([call for call in calls if call.streamed])
                await cancel_tasks(
                    [call.task for call in calls if call.task], name=self._agent.name
                )
            finally:
                for call_id in ids:
                    for records in (self._calls, self._outputs, self.nested):
                        records.pop(call_id, None)

    async def _abandon_streams(self, calls: Sequence[PendingToolCall]) -> None:
        """End the streams of early calls, and wait for their cleanup up to the grace period."""
        tasks = {call.task for call in calls if call.task}
        for call in calls:
            cast("StreamedCall", call.streamed).abandon()
        is_cancelled = cast("asyncio.Task[Any]", asyncio.current_task()).cancelling() > 0
        if tasks and not is_cancelled:  # otherwise the tasks are cancelled at once
            await asyncio.wait(tasks, timeout=GRACE)
        for call in calls:
            if self._recorder is not None and call.task is not None and call.task.done():
                self._recorder.record_dropped(call.item.call_id)

    async def close(self, *, is_complete: bool) -> None:
        """Cancel the calls that still run: early ones, and those in the background.

        Args:
            is_complete: Whether the run has ended or stopped by itself. Otherwise, the calls in the
                background are repeated or lost if it is resumed, as after the end of its process.

        Raises:
            asyncio.CancelledError: The caller was cancelled while it waited for their cleanup.
        """
        try:
            await self.cancel_early()
        finally:
            if self.background is not None:
                await self._cancel_in_background(self.background, is_open=not is_complete)

    async def _cancel_in_background(self, background: BackgroundCalls, *, is_open: bool) -> None:
        running = background.running
        for one in running:
            one.record.cancel()
        try:
            await cancel_tasks([one.task for one in running], name=self._agent.name)
        finally:
            for one in running:
                if one.status != "running":
                    continue
                if self._recorder is not None and is_open:
                    self._recorder.leave_open(one.call.item.call_id)
                self._finish(one.call, "cancelled", _CANCELLED, is_open=is_open)

    def _with_unique_id(self, item: ToolCallItem) -> ToolCallItem:
        """Return a call with an id of its own; some models send no id, or send one twice.

        Calls of the loaded history keep their ids.
        """
        base_id = item.call_id or f"call_{uuid.uuid4().hex[:16]}"
        call_id, number = base_id, 2
        while call_id in self._calls or call_id in self._reserved_ids:
            call_id, number = f"{base_id}-{number}", number + 1
        first = self._calls.get(base_id) if len(base_id) >= _UNIQUE_ID_LENGTH else None
        if first is not None and (first.name, first.arguments) == (item.name, item.arguments):
            self._original_ids[call_id] = (
                base_id  # the model repeats a call: it gets the same output
            )
        call = replace(item, call_id=call_id, agent=self._agent.name)
        self._calls[call_id] = call
        return call

    # --- outputs

    async def execute(
        self,
        calls: Sequence[PendingToolCall],
        toolbox: Toolbox,
        *,
        truncation: str | None = None,
    ) -> None:
        """Run calls and set the output of each one, also after an error or a cancellation.

        The only exception is a call that waits for the decision of a person: it stays open.

        Args:
            calls: The calls, in order.
            toolbox: The tools of the turn.
            truncation: The output for the calls of a truncated response, which do not run.

        Raises:
            BudgetExceeded: The run has reached its limit of calls.
            Exception: The exception of a tool without a failure function.
        """
        self.has_run_tools = True
        try:
            if self.background is not None:
                self.background.raise_error()
            if self.early:
                await self.cancel_early()
            self._count_calls(calls)
            for call in calls:
                if call.streamed is not None:
                    call.streamed.complete(call.item, truncation)
            to_run = list(self._calls_to_run(calls, toolbox, truncation))
            for group in [to_run] if len(to_run) == 1 else group_calls(to_run):
                await self._run_group(group)
            if self._original_ids:
                for call in calls:
                    self._copy_output(call)
        finally:
            try:
                if self._has_started_early:
                    await cancel_tasks(
                        [one.task for one in calls if one.task], name=self._agent.name
                    )
            finally:
                for call in calls:
                    if call.output_item is None and not self._is_waiting(call):
                        if self._recorder is not None:
                            self._recorder.leave_open(call.item.call_id)
                        self._finish(call, "cancelled", _CANCELLED)

    def outputs_of(self, calls: Iterable[ToolCallItem]) -> list[ToolCallOutputItem]:
        """Return the outputs of those calls that have one."""
        return [self._outputs[call.call_id] for call in calls if call.call_id in self._outputs]

    def calls_of_turn(
        self, calls: Sequence[PendingToolCall], outputs: Iterable[Item], toolbox: Toolbox
    ) -> list[PendingToolCall]:
        """Return all calls of a turn in order.

        Args:
            calls: The calls that ran after the run was resumed.
            outputs: The outputs of the turn, including those from before the run stopped.
            toolbox: The tools of the turn.
        """
        by_id = {call.item.call_id: call for call in calls}
        for output in outputs:
            if not isinstance(output, ToolCallOutputItem) or output.call_id in by_id:
                continue
            item = self._calls.get(output.call_id)
            if item is not None:
                call = by_id[output.call_id] = PendingToolCall(item, toolbox)
                call.output_item = output
                call.value = output.output if output.value is None else output.value
        return [by_id[call_id] for call_id in self._calls if call_id in by_id]

    def sort_outputs(self, outputs: list[ToolCallOutputItem]) -> list[ToolCallOutputItem]:
        """Return outputs in the order of their calls."""
        order = {call_id: index for index, call_id in enumerate(self._calls)}
        return sorted(outputs, key=lambda output: order[output.call_id])

    def _count_calls(self, calls: Sequence[PendingToolCall]) -> None:
        known = self._counted_ids  # of the loaded history
        new = [one for one in calls if one.item.call_id not in known] if known else calls
        try:
            count_calls(self._scope.run, len(new))
        except BudgetExceeded:
            for call in calls:
                if call.task is None:
                    self._finish(call, "denied", _USED_UP)
            raise

    def _calls_to_run(
        self, calls: Sequence[PendingToolCall], toolbox: Toolbox, truncation: str | None
    ) -> Iterator[PendingToolCall]:
        """Set the outputs that need no execution, and yield the other calls."""
        for call in calls:
            item, tool = call.item, call.tool
            if self._recorder is not None and self._finish_recorded(self._recorder, call):
                continue
            if item.call_id in self._lost_ids and tool is None:
                self._finish(call, "lost", _LOST)
            elif truncation is not None and call.task is None:
                self._finish(call, "invalid_args", truncation)
            elif tool is None:
                message = self._unknown_tool_message(item.name, toolbox)
                self._finish(call, "invalid_args", message)
            elif item.call_id not in self._original_ids:
                yield call

    def _finish_recorded(self, recorder: RunRecorder, call: PendingToolCall) -> bool:
        """Set the recorded output of a call that already ran; return whether there is one.

        Raises:
            Exception: The exception with which the call ended the run.
        """
        record = recorder.outcome(call.item, call.tool)
        if record is None:
            return False
        for usage in self._scope.run.usages:
            usage.add(record.usage)
        in_background = record.output.in_background
        server = record.output.server
        self._finish_with(
            call, record.outcome, server, is_replayed=True, in_background=in_background
        )
        if record.outcome.error is not None:
            raise record.outcome.error
        return not call.is_acknowledged or self._finish_in_background(recorder, call)

    def _finish_in_background(self, recorder: RunRecorder, call: PendingToolCall) -> bool:
        """Send the recorded result of an acknowledged call; return `False` if it has to run."""
        call_id = call.item.call_id
        if recorder.has_sent_result(call_id):
            return True
        output = recorder.background_output(call_id)
        if output is None:
            recorder.restore_approval(call_id)
            return False
        self._scope.run.add_result(output)
        return True

    def _unknown_tool_message(self, name: str, toolbox: Toolbox) -> str:
        names = list(toolbox.by_name)
        # A tool that is enabled for some users only must not become known to the others.
        searched = [tool.name for tool in toolbox.hidden if tool.is_enabled is True]
        matches = difflib.get_close_matches(name, [*names, *searched], n=3, cutoff=0.5)
        listed = ", ".join(names[:_MAX_LISTED_NAMES]) or "none"
        hidden = len(names) - _MAX_LISTED_NAMES
        more = f" and {hidden} more" if hidden > 0 else ""
        hint = f" Did you mean {' or '.join(map(repr, matches))}?" if matches else ""
        text = f"There is no tool {name!r:.100}.{hint} Tools: {listed}{more}."
        if self._config.unknown_tool == "raise":
            raise ModelBehaviorError(f"Agent {self._agent.name!r}: {text}")
        return text

    # --- execution

    async def _run_group(self, group: list[PendingToolCall]) -> None:
        """Run calls in parallel; if one ends the run or the run is cancelled, cancel the others."""
        tasks = [call.task or asyncio.ensure_future(self._run_in_slot(call)) for call in group]
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_EXCEPTION)
        except asyncio.CancelledError:
            self._scope.cancel()
            raise
        finally:
            if any(not one.done() or one.cancelled() or one.exception() for one in tasks):
                await cancel_tasks(tasks, name=self._agent.name)
        # In the order of the calls, so that the same one of two errors is raised every time.
        for task in tasks:
            if task in done and not task.cancelled():  # a tool can cancel its own task
                task.result()

    async def _run_in_slot(self, call: PendingToolCall) -> None:
        """Run one call within the limit of parallel calls.

        Raises:
            Exception: An error that ends the run.
        """
        call_id = call.item.call_id
        task = self._running_tasks[call_id] = cast("asyncio.Task[Any]", asyncio.current_task())
        limit = self._config.max_parallel_tools
        try:
            if self._recorder is not None and self._recorder.is_cancelled(call_id):
                self._finish(call, "cancelled", _CANCELLED_ALONE)
                return
            if limit is None:
                await self._run(call)
                return
            if self._slots is None:
                self._slots = asyncio.Semaphore(limit)
            async with self._slots:
                await self._run(call)
        except asyncio.CancelledError:
            if call_id not in self._ids_to_cancel or task.uncancel() > 0:
                raise  # the run is cancelled
            self._finish(call, "cancelled", _CANCELLED_ALONE)
        finally:
            self._running_tasks.pop(call_id, None)
            self._ids_to_cancel.discard(call_id)

    async def _run(self, call: PendingToolCall) -> None:
        tool = cast("FunctionTool[..., Any]", call.tool)
        record = await self._prepare(call, tool)
        is_resumed = self._recorder is not None or bool(self._lost_ids)
        if is_resumed and await self._finish_if_lost(call, record):
            return
        stack = record.tool.stack
        if stack.has_checks and not await self.approvals.check(call, tool, record):
            if call.is_acknowledged:  # its tool has changed after it was approved
                self._finish(call, "lost", _LOST)
            return
        if record.decision is not None and record.failure is None:
            # If the process ends during the call, the log shows that it was approved and possibly
            # took effect.
            item_of_approval = self.approvals.approval_item(call.target, arguments_of(record))
            self._emit_item("tool_approval_granted", item_of_approval)
        for hook in self._hooks_of(call):
            await hook.on_tool_start(record.context, self._agent, tool)
        can_continue = self.has_background and record.failure is None
        if call.is_acknowledged or (stack.at_end is not None and can_continue):
            self._start_in_background(call, tool, record, stack.at_end or "wait")
            return
        await self._call(call, tool, record)

    def _hooks_of(self, call: PendingToolCall) -> Sequence[RunHooks[Any]]:
        return () if call.is_handoff else self._hooks  # handoffs have `on_handoff`

    async def _call(
        self, call: PendingToolCall, tool: FunctionTool[..., Any], record: Call
    ) -> None:
        """Run a call after its checks, and set its output.

        Raises:
            Exception: An error that ends the run.
        """
        call_id, recorder = call.item.call_id, self._recorder
        agent, hooks = self._agent, self._hooks_of(call)  # a handoff can change them meanwhile
        # From here on, the call can take effect. The approval is consumed, so that it can never
        # let the call run a second time.
        self.started[call_id] = None
        approval = self.approvals.pending.pop(call_id, None)
        record.resumed = self.nested.pop(call_id, None)
        try:
            if recorder is None:
                outcome = self._for_model(call, tool, await self.perform(record))
            else:
                outcome = await self._call_recorded(recorder, call, tool, record)
        except Interruption as interruption:
            if call.is_acknowledged:
                self._finish(call, "denied", _CANNOT_WAIT)
                return
            self.nested[call_id] = interruption.state
            if approval is not None:
                self.approvals.pending[call_id] = approval
            return
        finally:
            self.started.pop(call_id, None)
        output_item = self._finish_with(call, outcome, tool.origin.server)
        for hook in hooks:
            await hook.on_tool_end(record.context, agent, tool, output_item)
        if outcome.error is not None and tool.failure_error_function is None:
            raise outcome.error

    def _start_in_background(
        self, call: PendingToolCall, tool: FunctionTool[..., Any], record: Call, at_end: AtEnd
    ) -> None:
        """Acknowledge a call, unless an earlier process has done so, and let it continue."""
        if not call.is_acknowledged:
            self._finish(call, "ok", acknowledgement(call.item), in_background=True)
        task = asyncio.ensure_future(self._call(call, tool, record))
        # A callback, because a task that is cancelled before its first step runs no code at all.
        task.add_done_callback(partial(self._end_if_cancelled, call))
        if self.background is None:
            self.background = BackgroundCalls()
        self.background.add(BackgroundCall(call, record, at_end, task))

    def _end_if_cancelled(self, call: PendingToolCall, task: asyncio.Task[None]) -> None:
        """Send the result of a call in the background that was cancelled alone."""
        call_id = call.item.call_id
        if call_id in self._ids_to_cancel and task.cancelled():
            self._finish(call, "cancelled", _CANCELLED_ALONE)
        self._ids_to_cancel.discard(call_id)

    async def _prepare(self, call: PendingToolCall, tool: FunctionTool[..., Any]) -> Call:
        """Return the record of a call, with validated arguments or a failure."""
        scope = self._scope
        fresh = Call.fresh(
            scope.app_context,
            tool_call_id=call.item.call_id,
            agent=self._agent,
            run_id=scope.run_id,
            usage=scope.usage,
            parent=scope,
        )
        arguments = call.target.arguments
        if call.target is call.item:  # otherwise the provider never saw the schema of the tool
            arguments = self._decode_arguments(call.item, tool)
        record = Call.running(fresh, tool.name, arguments)
        incoming = None if call.streamed is None else call.streamed.incoming
        if incoming is not None:
            incoming.join(record)
        limited = tool if self._config.tool_timeout is None else self._with_limit(tool)
        await prepare(record, limited, arguments)
        return record

    def _with_limit(self, tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        """Return the tool with the time limit of the run, if it has none of its own.

        Agents and programs have none: the limit applies to each of their calls.
        """
        seconds = self._config.tool_timeout
        if seconds is None or tool.origin.kind in {"agent", "code"} or has_deadline(tool):
            return tool
        limited = self._limited_tools.get(tool)
        if limited is None:
            limited = self._limited_tools[tool] = timeout(seconds)(tool)
        return limited

    def time_limit(self, tool: FunctionTool[..., Any]) -> float | None:
        """Return the time limit that the run has set for a tool, in seconds."""
        return self._config.tool_timeout if tool in self._limited_tools.values() else None

    def _decode_arguments(self, item: ToolCallItem, tool: FunctionTool[..., Any]) -> str:
        """Convert arguments from the schema of the provider to the schema of the tool."""
        marks = (item.provider_data or {}).get(_METADATA_KEY)
        wire = self.provider if marks is None else marks.get("wire")
        if wire is None or item.kind != "function":
            return item.arguments
        try:
            return project(tool, wire).decode(item.arguments)
        except UserError:  # the tool cannot be converted, so the provider never saw it
            return item.arguments

    def mark_converted(self, items: Sequence[Item], toolbox: Toolbox) -> list[Item]:
        """Mark the calls of a response whose arguments differ in the schema of the tool.

        A run that waits can continue with a model of another format.
        """

        def is_converted(item: Item) -> bool:
            if not isinstance(item, ToolCallItem):
                return False
            tool, _ = toolbox.resolve(item)
            return tool is not None and self._decode_arguments(item, tool) != item.arguments

        return [with_wire([one], self.provider)[0] if is_converted(one) else one for one in items]

    async def _call_recorded(
        self,
        recorder: RunRecorder,
        call: PendingToolCall,
        tool: FunctionTool[..., Any],
        record: Call,
    ) -> CallOutcome:
        """Call a tool between its records."""

        async def perform() -> CallOutcome:
            return self._for_model(call, tool, await self.perform(record))

        return await recorder.call(
            call.item,
            tool,
            record.path,
            perform,
            is_read_only=is_read_only(tool),
            is_incomplete=record.incoming is not None and not is_idempotent(tool),
            in_background=call.is_acknowledged,
        )

    def _for_model(
        self, call: PendingToolCall, tool: FunctionTool[..., Any], outcome: CallOutcome
    ) -> CallOutcome:
        """Return an outcome with the output for the model."""
        output = outcome.output
        if outcome.error is not None and tool.failure_error_function is None:
            output = f"The call failed: {type(outcome.error).__name__}."
        if call.edited_arguments is not None:
            output = _with_edit_note(output, call.edited_arguments)
        return outcome if output is outcome.output else replace(outcome, output=output)

    async def _finish_if_lost(self, call: PendingToolCall, record: Call) -> bool:
        """Finish a call that ran when an earlier process ended.

        Other calls are run again: those that are repeatable, and those that a backend knows, whose
        bodies do not run again.
        """
        tool, recorder = cast("FunctionTool[..., Any]", call.tool), self._recorder
        can_repeat = is_idempotent(tool)
        is_lost = call.item.call_id in self._lost_ids and not can_repeat
        if recorder is not None:
            is_lost = is_lost or recorder.is_lost(call.item, tool, is_repeatable=can_repeat)
        if not is_lost or (record.failure is None and await record.tool.source.has_call(record)):
            return False
        self._finish(call, "lost", _LOST)
        return True

    def _finish_with(
        self,
        call: PendingToolCall,
        outcome: CallOutcome,
        server: str | None,
        *,
        is_replayed: bool = False,
        in_background: bool = False,
    ) -> ToolCallOutputItem:
        """Set the output of a call from its outcome."""
        # The log has no Python value of some results; then the text is used.
        has_value = outcome.status == "ok" and not (is_replayed and outcome.value is None)
        call.value = outcome.value if has_value else outcome.output
        return self._finish(
            call,
            outcome.status,
            outcome.output,
            is_replayed=is_replayed,
            in_background=in_background,
            server=server,
            value=outcome.value,
            metadata=outcome.metadata,
            public_message=outcome.public_message,
        )

    def _finish(
        self,
        call: PendingToolCall,
        status: CallStatus,
        output: ToolOutput,
        *,
        is_replayed: bool = False,
        is_open: bool = False,
        **details: Any,
    ) -> ToolCallOutputItem:
        """Set the output of a call and emit it; an output that is already set stays.

        If that is an acknowledgement, the output is sent to the model as a message instead.
        """
        if call.output_item is not None and not call.is_acknowledged:
            return call.output_item
        item = call.item
        self.approvals.pending.pop(item.call_id, None)
        self.nested.pop(item.call_id, None)
        output_item = ToolCallOutputItem(
            call_id=item.call_id,
            name=item.name,
            output=output,
            status=status,
            kind=item.kind,
            agent=self._agent.name,
            **details,
        )
        if call.is_acknowledged:
            self._send_result(output_item, is_open=is_open)
            return output_item
        if "value" not in details:
            call.value = output
        call.output_item = self._outputs[item.call_id] = output_item
        call.is_acknowledged = output_item.in_background
        if call.is_recorded:
            recorder = self._recorder
            with nullcontext() if recorder is None else recorder.ending_call(item.call_id):
                self._emit_item("tool_output", output_item, is_replayed)
        return output_item

    def _send_result(self, output: ToolCallOutputItem, *, is_open: bool = False) -> None:
        """Send the result of a call in the background to the model, once.

        Args:
            output: The result.
            is_open: Whether the call is repeated if the run is resumed.
        """
        call_id, recorder = output.call_id, self._recorder
        call = None if self.background is None else self.background.get(call_id)
        if call is not None:
            if call.status != "running":
                return
            call.end(output.status)
        if recorder is not None and not is_open:
            recorder.record_background_result(output)
        self._scope.run.add_result(output)

    def add_result(self, output: ToolCallOutputItem) -> MessageInputItem:
        """Add the result of a call in the background, and return its message to the model."""
        self._unsent_results[output.call_id] = output
        return result_message(output)

    def take_result(self, message: MessageInputItem) -> tuple[str, Any]:
        """Return the name and the item of the event for the message with the result of a call.

        Messages of an earlier conversation are part of the input.
        """
        output = self._unsent_results.pop(message.call_id or "", None)
        return ("input", message) if output is None else ("background_result", output)

    def wake(self) -> None:
        """Let a run that waits for its calls check again whether it can continue."""
        if self.background is not None:
            self.background.wake()

    def _copy_output(self, call: PendingToolCall) -> None:
        """Set the output of a repeated call to that of the first one."""
        first = self._outputs.get(self._original_ids.get(call.item.call_id, ""))
        if call.output_item is None and first is not None:
            call.output_item = replace(first, call_id=call.item.call_id, in_background=False)
            call.value = first.output if first.value is None else first.value
            self._outputs[call.item.call_id] = call.output_item
            self._emit_item("tool_output", call.output_item)

    def _is_waiting(self, call: PendingToolCall) -> bool:
        return call.item.call_id in self.approvals.pending or call.item.call_id in self.nested


def with_wire(items: Sequence[Item], wire: str | None) -> list[Item]:
    """Return items whose calls are marked with the schema format of the model that made them.

    Args:
        items: The items of a model whose format differs from that of the model of the run.
        wire: The format; `None` for the schemas of the tools. A mark of a call stays.
    """
    mark = {_METADATA_KEY: {"wire": wire}}
    return [
        replace(item, provider_data={**mark, **(item.provider_data or {})})
        if isinstance(item, ToolCallItem)
        else item
        for item in items
    ]


def _with_edit_note(output: ToolOutput, arguments: str) -> ToolOutput:
    """Add a note for the model that a person changed the arguments."""
    note = f"[A person changed the arguments before this ran, to: {arguments}]"
    return f"{note}\n{output}" if isinstance(output, str) else [ToolOutputText(note), *output]
