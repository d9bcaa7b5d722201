"""The tool calls of one run: each one runs at most once and gets exactly one output."""

from __future__ import annotations

import asyncio
import difflib
import uuid
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.approvals import CallApprovals, arguments_of
from agents_tools.agents.pending_tool_call import (
    PendingToolCall,
    can_start_early,
    group_calls,
    is_read_only,
    is_repeatable,
    runs_alone,
)
from agents_tools.concurrency.supervisor import GRACE, supervise
from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.content.outputs import ToolOutputText
from agents_tools.errors import BudgetExceeded, Interruption, ModelBehaviorError, UserError
from agents_tools.policies._timeout import has_deadline, timeout
from agents_tools.tool.call import Call
from agents_tools.tool.invocation import execute, prepare
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence

    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.agents.run_recorder import RunRecorder
    from agents_tools.agents.state import RunState
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.content.items import Item
    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.call import RunScope
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

    Perform = Callable[[Call], Awaitable[CallOutcome]]
    """Executes a prepared call, and returns its outcome."""

__all__ = ["TurnCalls"]

_CANCELLED = "The call was cancelled before it had a result."
_CANCELLED_ALONE = (
    "The user cancelled this call before it had a result. If it had started, it may have taken "
    "effect in part."
)
_USED_UP = "Not run: the run has used up its tool calls."
_LOST = (
    "Outcome unknown: the program was interrupted while this call ran, so it may or may not have "
    "taken effect. Check before you call it again."
)
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
        perform: Executes a call after its checks. A controller that sends calls elsewhere replaces
            it, and passes calls with a failure to `execute`.
        provider: The provider whose schema format the tools were converted to; `None` if unknown.
        has_run_tools: Whether any call was executed.
        count: The number of calls, checked against `max_tool_calls`.
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
        self.perform: Perform = execute
        self.provider: str | None = None
        self.has_run_tools = False
        self.count = 0
        self.started: dict[str, None] = {}
        self.nested: dict[str, RunState] = {}
        self._lost = set[str]()
        self._counted = set[str]()
        self._reserved = set[str]()
        self._calls: dict[str, ToolCallItem] = {}
        self._outputs: dict[str, ToolCallOutputItem] = {}
        self._originals: dict[str, str] = {}  # the id of a repeated call -> the id of the first one
        self._response_calls: dict[str, ToolCallItem] = {}
        self.early: dict[str, PendingToolCall] = {}
        self._has_started_early = False
        self._slots: asyncio.Semaphore | None = None
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._to_cancel = set[str]()
        self._limited: dict[FunctionTool[..., Any], FunctionTool[..., Any]] = {}

    def set_agent(self, agent: RunnableAgent, hooks: Sequence[RunHooks[Any]]) -> None:
        """Run the calls of another agent from now on."""
        self._agent = agent
        self._hooks = hooks
        self.approvals.agent_name = agent.name
        self.has_run_tools = False

    def restore(self, state: RunState) -> None:
        """Load a state that was taken earlier, in this process or another one."""
        self.count = state.tool_calls
        self.approvals.pending.update(state.pending)
        self.nested.update(state.nested)
        self.approvals.always_approved.update(state.standing)
        self._lost.update(state.started)
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
                self._calls.pop(item.call_id, None)  # the order is that of the last calls
                self._calls[item.call_id] = item
            elif isinstance(item, ToolCallOutputItem):
                self._outputs[item.call_id] = item

    def unfinished_calls(self, toolbox: Toolbox) -> list[PendingToolCall]:
        """Return the calls of the loaded history that have no output."""
        if not self._calls:
            return []
        calls = [
            PendingToolCall(item, toolbox)
            for call_id, item in self._calls.items()
            if call_id not in self._outputs and item.needs_answer
        ]
        self._counted = {call.item.call_id for call in calls}
        return calls

    def cancel(self, call_id: str) -> bool:
        """Cancel a call, so that it ends as `cancelled`; return whether it was running."""
        task = self._running.get(call_id)
        if task is None or task.done():
            return False
        self._to_cancel.add(call_id)
        return task.cancel()

    def mark_lost(self, calls: Iterable[ToolCallItem]) -> None:
        """Mark calls that were possibly executed, although their output was not recorded."""
        self._lost.update(call.call_id for call in calls)

    @property
    def lost_ids(self) -> list[str]:
        """The ids of the calls that were possibly executed."""
        return sorted(self._lost)

    @property
    def reserved_ids(self) -> list[str]:
        """The ids of early calls whose response never arrived. No other call gets such an id."""
        return sorted(self._reserved)

    def reserve_ids(self, ids: Iterable[str]) -> None:
        """Never use these ids for new calls."""
        self._reserved.update(ids)

    @property
    def copies(self) -> Mapping[str, str]:
        """The ids of repeated calls, with the ids of the calls whose output they get."""
        return dict(self._originals)

    def restore_copies(self, copies: Mapping[str, str]) -> None:
        """Restore the recorded `copies` of an earlier process."""
        self._originals.update(copies)

    @property
    def is_waiting(self) -> bool:
        """Return whether a call waits for the decision of a person."""
        return bool(self.approvals.pending or self.nested)

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
        twin = self._response_calls.get(item.call_id)
        if twin is not None and (twin.name, twin.arguments) == (item.name, item.arguments):
            return None
        if item.call_id:
            self._response_calls.setdefault(item.call_id, item)
        call = self.early.pop(item.call_id, None)
        if call is None:
            call = PendingToolCall(self._with_unique_id(item), toolbox)
        call.is_recorded = True
        # Early calls can start in another order than the response has.
        self._calls[call.item.call_id] = self._calls.pop(call.item.call_id)
        self._emit_item("tool_called", call.item, is_replayed)
        if call.output_item is not None:
            self._emit_item("tool_output", call.output_item)
        return call

    def early_starter(self, toolbox: Toolbox) -> Callable[[ToolCallItem], None]:
        """Return a function that starts read-only calls while the model still streams."""
        is_blocked = False

        def start(item: ToolCallItem) -> None:
            nonlocal is_blocked
            tool, _ = toolbox.resolve(item)
            is_blocked = is_blocked or runs_alone(tool)  # later calls wait for an exclusive one
            if is_blocked or item.call_id in self._calls or not can_start_early(item, tool):
                return
            call = PendingToolCall(self._with_unique_id(item), toolbox)
            self.early[item.call_id] = call
            self._has_started_early = True
            call.is_recorded = False
            call.task = asyncio.ensure_future(self._run_in_slot(call))

        return start

    async def cancel_early(self) -> None:
        """Cancel the early calls that the response does not contain, or whose response failed."""
        if self.early:
            calls, self.early = list(self.early.values()), {}
            ids = [call.item.call_id for call in calls]
            self._reserved.update(ids)
            try:
                await _cancel_tasks([call.task for call in calls if call.task], self._agent.name)
            finally:
                for call_id in ids:
                    for records in (self._calls, self._outputs, self.nested):
                        records.pop(call_id, None)

    def _with_unique_id(self, item: ToolCallItem) -> ToolCallItem:
        """Return a call with an id of its own; some models send no id, or send one twice.

        Calls of the loaded history keep their ids.
        """
        wanted = item.call_id or f"call_{uuid.uuid4().hex[:16]}"
        call_id, number = wanted, 2
        while call_id in self._calls or call_id in self._reserved:
            call_id, number = f"{wanted}-{number}", number + 1
        first = self._calls.get(wanted) if len(wanted) >= _UNIQUE_ID_LENGTH else None
        if first is not None and (first.name, first.arguments) == (item.name, item.arguments):
            self._originals[call_id] = wanted  # the model repeats a call: it gets the same output
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
            if self.early:
                await self.cancel_early()
            self._count_calls(calls)
            to_run = list(self._calls_to_run(calls, toolbox, truncation))
            for group in [to_run] if len(to_run) == 1 else group_calls(to_run):
                await self._run_group(group)
            if self._originals:
                for call in calls:
                    self._copy_output(call)
        finally:
            try:
                if self._has_started_early:
                    await _cancel_tasks([one.task for one in calls if one.task], self._agent.name)
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
        limit = self._config.max_tool_calls
        known = self._counted  # of the loaded history
        self.count += len(
            [one for one in calls if one.item.call_id not in known] if known else calls
        )
        if limit is None or self.count <= limit:
            return
        for call in calls:
            if call.task is None:
                self._finish(call, "denied", _USED_UP)
        raise BudgetExceeded(
            f"Agent {self._agent.name!r} exceeded its limit of {limit} tool calls. "
            "To allow more, raise RunConfig(max_tool_calls=...)."
        )

    def _calls_to_run(
        self, calls: Sequence[PendingToolCall], toolbox: Toolbox, truncation: str | None
    ) -> Iterator[PendingToolCall]:
        """Set the outputs that need no execution, and yield the other calls."""
        for call in calls:
            item, tool = call.item, call.tool
            if self._recorder is not None and self._finish_recorded(self._recorder, call):
                continue
            if item.call_id in self._lost and tool is None:
                self._finish(call, "lost", _LOST)
            elif truncation is not None and call.task is None:
                self._finish(call, "invalid_args", truncation)
            elif tool is None:
                message = self._unknown_tool_message(item.name, list(toolbox.by_name))
                self._finish(call, "invalid_args", message)
            elif item.call_id not in self._originals:
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
        self._finish_with(call, record.outcome, record.output.server, is_replayed=True)
        if record.outcome.error is not None:
            raise record.outcome.error
        return True

    def _unknown_tool_message(self, name: str, names: list[str]) -> str:
        matches = difflib.get_close_matches(name, names, n=3, cutoff=0.5)
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
            await _cancel_tasks(tasks, self._agent.name)
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
        task = self._running[call_id] = cast("asyncio.Task[Any]", asyncio.current_task())
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
            if call_id not in self._to_cancel or task.uncancel() > 0:
                raise  # the run is cancelled
            self._finish(call, "cancelled", _CANCELLED_ALONE)
        finally:
            self._running.pop(call_id, None)
            self._to_cancel.discard(call_id)

    async def _run(self, call: PendingToolCall) -> None:
        item, tool = call.item, cast("FunctionTool[..., Any]", call.tool)
        record = await self._prepare(call, tool)
        is_resumed = self._recorder is not None or bool(self._lost)
        if is_resumed and await self._finish_if_lost(call, record):
            return
        if record.tool.stack.has_checks and not await self.approvals.check(call, tool, record):
            return
        if record.decision is not None and record.failure is None:
            # If the process ends during the call, the log shows that it was approved and possibly
            # took effect.
            item_of_approval = self.approvals.approval_item(call.target, arguments_of(record))
            self._emit_item("tool_approval_granted", item_of_approval)
        hooks = () if call.is_handoff else self._hooks  # they have `on_handoff`
        for hook in hooks:
            await hook.on_tool_start(record.context, self._agent, tool)
        # From here on, the call can take effect. The approval is consumed, so that it can never
        # let the call run a second time.
        self.started[item.call_id] = None
        approval = self.approvals.pending.pop(item.call_id, None)
        record.resumed = self.nested.pop(item.call_id, None)
        try:
            outcome = await self._call_tool(call, tool, record)
        except Interruption as interruption:
            self.nested[item.call_id] = interruption.state
            if approval is not None:
                self.approvals.pending[item.call_id] = approval
            return
        finally:
            self.started.pop(item.call_id, None)
        output_item = self._finish_with(call, outcome, tool.origin.server)
        for hook in hooks:
            await hook.on_tool_end(record.context, self._agent, tool, output_item)
        if outcome.error is not None and tool.failure_error_function is None:
            raise outcome.error

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
        record = Call.begun(fresh, tool.name, arguments)
        limited = tool if self._config.tool_timeout is None else self._with_limit(tool)
        await prepare(record, limited, arguments)
        return record

    def _with_limit(self, tool: FunctionTool[..., Any]) -> FunctionTool[..., Any]:
        """Return the tool with the time limit of the run, if it has none of its own."""
        seconds = self._config.tool_timeout
        if seconds is None or tool.origin.kind == "agent" or has_deadline(tool):
            return tool
        limited = self._limited.get(tool)
        if limited is None:
            limited = self._limited[tool] = timeout(seconds)(tool)
        return limited

    def time_limit(self, tool: FunctionTool[..., Any]) -> float | None:
        """Return the time limit that the run has set for a tool, in seconds."""
        return self._config.tool_timeout if tool in self._limited.values() else None

    def _decode_arguments(self, item: ToolCallItem, tool: FunctionTool[..., Any]) -> str:
        """Convert arguments from the schema of the provider to the schema of the tool."""
        if self.provider is None or item.kind != "function":
            return item.arguments
        try:
            return project(tool, self.provider).decode(item.arguments)
        except UserError:  # the tool cannot be converted, so the provider never saw it
            return item.arguments

    async def _call_tool(
        self,
        call: PendingToolCall,
        tool: FunctionTool[..., Any],
        record: Call,
    ) -> CallOutcome:
        """Call a tool; between its records if the run has a store."""
        if self._recorder is None:
            return self._for_model(call, tool, await self.perform(record))

        async def perform() -> CallOutcome:
            return self._for_model(call, tool, await self.perform(record))

        return await self._recorder.call(
            call.item, tool, record.path, perform, is_read_only=is_read_only(tool)
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
        can_repeat = is_repeatable(tool)
        is_lost = call.item.call_id in self._lost and not can_repeat
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
        **details: Any,
    ) -> ToolCallOutputItem:
        """Set the output of a call and emit it; an output that is already set stays."""
        if call.output_item is not None:
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
        if not details:
            call.value = output
        call.output_item = self._outputs[item.call_id] = output_item
        if call.is_recorded:
            recorder = self._recorder
            with nullcontext() if recorder is None else recorder.ending_call(item.call_id):
                self._emit_item("tool_output", output_item, is_replayed)
        return output_item

    def _copy_output(self, call: PendingToolCall) -> None:
        """Set the output of a repeated call to that of the first one."""
        first = self._outputs.get(self._originals.get(call.item.call_id, ""))
        if call.output_item is None and first is not None:
            call.output_item = replace(first, call_id=call.item.call_id)
            call.value = first.output if first.value is None else first.value
            self._outputs[call.item.call_id] = call.output_item
            self._emit_item("tool_output", call.output_item)

    def _is_waiting(self, call: PendingToolCall) -> bool:
        return call.item.call_id in self.approvals.pending or call.item.call_id in self.nested


async def _cancel_tasks(tasks: Sequence[asyncio.Future[Any]], name: str) -> None:
    """Cancel the tasks that still run, and wait for their cleanup up to the grace period."""
    running = [task for task in tasks if not task.done()]
    for task in running:
        task.cancel()
    if running:
        try:
            await asyncio.wait(running, timeout=GRACE)
        finally:
            for task in running:
                supervise(cast("asyncio.Task[Any]", task), name=name)
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # marks the exception as retrieved


def _with_edit_note(output: ToolOutput, arguments: str) -> ToolOutput:
    """Add a note for the model that a person changed the arguments."""
    note = f"[A person changed the arguments before this ran, to: {arguments}]"
    return f"{note}\n{output}" if isinstance(output, str) else [ToolOutputText(note), *output]
