"""The calls of a program that a tool runs, as calls of a run inside the call of the tool.

A program takes the place of the model: it decides which tools are called. So its calls have
everything that the calls of an agent have, and a program that is repeated continues where it
stopped: the recorded results are given to it in the same order, and only further calls are made.
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeVar, cast

from agents_tools.agents.budgets import count_calls
from agents_tools.agents.pending_tool_call import PendingToolCall, runs_alone
from agents_tools.agents.run import Run
from agents_tools.agents.toolbox import Toolbox
from agents_tools.concurrency.supervisor import cancel_tasks
from agents_tools.content.items import ToolCallItem, ToolCallOutputItem
from agents_tools.content.outputs import output_text
from agents_tools.errors import Interruption, ToolDeniedError, ToolError
from agents_tools.tool.call import RunScope
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.invocation import execute
from agents_tools.toolset.code.calls import EndedCall, ProgramCalls, call_id_of
from agents_tools.toolset.code.values import result_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Sequence

    from agents_tools.agents.state import RunState
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import CallOutcome
    from agents_tools.tool.tool import FunctionTool

__all__ = ["run_program"]

ResultT = TypeVar("ResultT")


async def run_program(
    call: Call,
    tools: Sequence[FunctionTool[..., Any]],
    body: Callable[[ProgramCalls, datetime], Awaitable[ResultT]],
) -> ResultT:
    """Run a program, and return its result.

    Args:
        call: The call of the tool that runs it, which is part of a run.
        tools: The tools that it can call.
        body: Runs the program with its calls and the time that its clock shows.

    Raises:
        Interruption: A call of the program waits for the decision of a person.
        ToolDeniedError: It does, but the run around the program cannot be interrupted.
        BudgetExceeded: The run has reached its limit of calls.
    """
    run = _ProgramRun(call)
    results: list[ResultT] = []

    async def step() -> None:
        results.append(await body(run.program_calls, await run.begin(tools)))

    await run.execute(step)
    return results[0]


class _ProgramRun(Run):
    """The run inside the call of a tool that runs a program. It asks no model.

    Args:
        call: The call.

    Attributes:
        program_calls: The calls of the program.
    """

    def __init__(self, call: Call) -> None:
        outer = cast("RunScope", call.scope)
        self.program_calls = _RunCalls(self, call)
        self._clock: datetime | None = None
        super().__init__(outer.run.agent, [], max_turns=None, state=call.resumed, parent=call)
        self.scope.tool_state = outer.find_tool_state()  # a program continues the work of the run
        self.calls.perform = self.program_calls.perform
        self.calls.has_background = False

    async def begin(self, tools: Sequence[FunctionTool[..., Any]]) -> datetime:
        """Load what was recorded, and return the time that the clock of the program shows.

        Args:
            tools: The tools that the program can call.
        """
        recorder = self.recorder
        if recorder is not None:
            await recorder.open()
            if self._clock is None and recorder.created is not None:
                self._clock = datetime.fromisoformat(recorder.created["clock"])
        if self._clock is None:
            self._clock = datetime.now(UTC)
        if recorder is not None:
            recorder.begin(Toolbox((), ""), lambda: None, {"clock": self._clock.isoformat()})
        toolbox = Toolbox(tools, "")
        scope = self.scope
        disabled = [
            tool
            for tool in toolbox.conditional
            if not await is_enabled(tool, scope.context, self.agent)
        ]
        self.program_calls.open(toolbox.enabled(disabled, self.agent.name))
        return self._clock

    def state(self) -> RunState:
        """Return a state from which the program can continue."""
        clock = None if self._clock is None else self._clock.isoformat()
        return replace(super().state(), clock=clock)

    def restore(self, state: RunState) -> None:
        """Continue from a state."""
        super().restore(state)
        if state.clock is not None:
            self._clock = datetime.fromisoformat(state.clock)

    async def _run(self, step: Callable[[], Awaitable[None]]) -> Any:
        try:
            await step()
        finally:
            await self.program_calls.close()
        return self.result()

    def _emit_item(self, name: str, item: Any, is_replayed: bool = False) -> None:
        super()._emit_item(name, item, is_replayed)
        if name == "tool_output":
            self.program_calls.ended(item)

    def _emit_end(self, status: str, output: Any, error: str | None) -> None:
        """End the scope without an event: the end of the call is the end of the program."""
        del status, output, error
        self.scope.end("ok")


class _RunCalls(ProgramCalls):
    """The calls of a program in a run.

    Args:
        run: The run inside the call of the program.
        call: The call of the program.
    """

    def __init__(self, run: _ProgramRun, call: Call) -> None:
        self._run = run
        self._program = call
        self._toolbox = Toolbox((), "")
        self._loaded: set[str] = set()  # the ids of the calls of a state
        self._recorded: dict[str, ToolCallItem] = {}  # the calls of an earlier process
        self._outputs: dict[str, ToolCallOutputItem] = {}  # their outputs, in the order of the ends
        self._waiting: dict[str, PendingToolCall] = {}  # loaded calls that waited for a person
        self._calls: dict[str, PendingToolCall] = {}
        self._numbers: dict[str, int] = {}
        self._tasks: dict[int, asyncio.Task[None]] = {}
        self._ended: deque[ToolCallOutputItem] = deque()  # in the order in which they are recorded
        self._change = asyncio.Event()

    def open(self, toolbox: Toolbox) -> None:
        """Load the recorded calls.

        Args:
            toolbox: The tools.
        """
        run, recorder = self._run, self._run.recorder
        self._toolbox = toolbox
        self._loaded.update(item.call_id for item in run.history if isinstance(item, ToolCallItem))
        for item in [*run.history, *([] if recorder is None else recorder.recorded_calls())]:
            if isinstance(item, ToolCallItem):
                self._recorded.setdefault(item.call_id, item)
        if recorder is not None:
            for call_id in recorder.recorded_outputs():
                item = self._recorded[call_id]
                self._outputs[call_id] = recorder.outcome(item, None).output
        for item in run.history:
            if isinstance(item, ToolCallOutputItem):
                self._outputs.setdefault(item.call_id, item)
        for call in run.calls.unfinished_calls(toolbox):
            self._waiting[call.item.call_id] = call

    async def close(self) -> None:
        """Cancel the calls that still run, and wait for their cleanup up to the grace period."""
        await cancel_tasks([*self._tasks.values()], name=self._program.tool_name)

    @property
    def is_replaying(self) -> bool:
        """Whether the next result was recorded by an earlier process."""
        return bool(self._outputs) or len(self._numbers) < len(self._recorded)

    def start(self, number: int, tool: FunctionTool[..., Any], arguments: str) -> None:
        """Start a call, unless its output is recorded."""
        run = self._run
        call_id = call_id_of(self._program.tool_call_id, number)
        item = ToolCallItem(call_id=call_id, name=tool.name, arguments=arguments)
        known = self._recorded.get(call_id)
        if known is not None and (known.name, known.arguments) != (item.name, item.arguments):
            raise ToolError(
                f"The program cannot be continued: call {number} was {known.name}"
                f"({known.arguments:.200}), and is now {item.name}({item.arguments:.200}). Check "
                "the effects of its calls before you run it again."
            )
        self._numbers[call_id] = number
        if call_id in self._outputs:
            self._replay(item)
            return
        call = self._waiting.pop(call_id, None)
        if call is None:
            call = run.calls.register(item, self._toolbox, is_replayed=known is not None)
            call = cast("PendingToolCall", call)  # no two calls have one id
            run.history.append(call.item)
        self._calls[call_id] = call
        others = [
            self._tasks[self._numbers[other]]
            for other, earlier in self._calls.items()
            if other != call_id and (runs_alone(call.tool) or runs_alone(earlier.tool))
        ]
        task = self._tasks[number] = asyncio.ensure_future(self._make(call, others))
        task.add_done_callback(lambda _: self._change.set())

    def _replay(self, item: ToolCallItem) -> None:
        """Count a call whose output is recorded."""
        run, recorder = self._run, self._run.recorder
        if item.call_id in self._loaded:  # its usage is part of that of the state
            return
        run.history.append(item)
        count_calls(run, 1)
        record = None if recorder is None else recorder.outcome(item, None)
        if record is not None:
            for usage in run.usages:
                usage.add(record.usage)

    async def _make(self, call: PendingToolCall, others: list[asyncio.Task[None]]) -> None:
        if others:  # an exclusive tool runs alone
            await asyncio.wait(others)
        try:
            await self._run.calls.execute([call], self._toolbox)
        except Exception:
            tool = call.tool
            if tool is None or tool.failure_error_function is not None:
                raise
            # The tool reports errors by raising them: here, to the program.

    async def perform(self, record: Call) -> CallOutcome:
        """Execute a call, and return its outcome with the result for the program as output."""
        outcome = await execute(record)
        call = self._calls.get(record.tool_call_id)
        if call is not None:
            call.edited_arguments = None  # a note about them would not be a part of the value
        return replace(outcome, value=None, output=result_text(record, outcome))

    def ended(self, item: ToolCallOutputItem) -> None:
        """Receive the output of a call, in the order in which the outputs are recorded."""
        self._run.history.append(item)
        self._ended.append(item)
        self._change.set()

    async def next_finished(self, numbers: Collection[int]) -> EndedCall:
        """Wait for one of these calls, and return its end."""
        for call_id, output in self._outputs.items():
            if self._numbers.get(call_id) in numbers:
                del self._outputs[call_id]
                if call_id not in self._loaded:
                    self._run.history.append(output)
                return self._finished(output)
        while True:
            self._change.clear()
            for item in self._ended:
                if self._numbers.get(item.call_id) in numbers:
                    self._ended.remove(item)
                    return self._finished(item)
            for task in self._tasks.values():
                if task.done() and not task.cancelled():
                    task.result()
            if all(task.done() for task in self._tasks.values()):
                self._interrupt()
            await self._change.wait()

    def _finished(self, output: ToolCallOutputItem) -> EndedCall:
        text = output_text(output.output)
        return EndedCall(self._numbers[output.call_id], output.status, text)

    def _interrupt(self) -> None:
        """Interrupt the run, because all calls that have no output wait for a person.

        Raises:
            Interruption: In any case, if the run around the program can be interrupted.
            ToolDeniedError: Otherwise.
        """
        state = self._run.state()
        if isinstance(self._program.parent, RunScope):
            raise Interruption(state)
        waiting = ", ".join(repr(item.name) for item in state.interruptions)
        raise ToolDeniedError(
            f"The program waits for the approval of {waiting}, but was started by another tool, "
            "which cannot wait for one."
        )
