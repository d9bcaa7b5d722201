"""The run loop: it calls the model, runs the requested tools, and repeats.

`Run.step` is the only code that asks a model: it asks once and answers the calls of the response.
`Run.execute` repeats it, or lets a controller drive the steps. A call that passed its checks is
answered by `calls.perform`: it executes the tool here, and a controller can send it elsewhere.

Streamed and plain runs execute the same code. Events are pushed into the scope of the run, and only
`Runner.run_streamed` turns them into iteration. The conversation is one list that only grows.
"""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections import deque
from contextlib import nullcontext
from dataclasses import replace
from threading import Lock
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.config import DEFAULT_CONFIG, RunResult, hooks_of_all_runs
from agents_tools.agents.final_output import (
    final_output_as_json,
    final_output_of_tools,
    final_text,
)
from agents_tools.agents.guardrail import Guardrails
from agents_tools.agents.handoff import change_agent, find_agent
from agents_tools.agents.hidden_events import HiddenEvents
from agents_tools.agents.model_caller import ModelCaller, choose_model
from agents_tools.agents.state import RunState
from agents_tools.agents.tool_calls import TurnCalls
from agents_tools.content.items import (
    Item,
    MessageInputItem,
    MessageOutputItem,
    ReasoningItem,
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    input_messages,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    MaxTurnsExceeded,
    ModelBehaviorError,
    RunTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.events.kinds import (
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
)
from agents_tools.events.listener import current_listeners
from agents_tools.persistence.conversation import (
    conversation,
    message_event,
    open_calls,
    waiting_calls,
)
from agents_tools.text.nouns import type_with_article
from agents_tools.text.secrets import guard_logs
from agents_tools.tool.call import Call, RunScope, current_call
from agents_tools.tool.failure import describe_error

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.agents.model import Model, ModelResponse
    from agents_tools.agents.pending_tool_call import PendingToolCall
    from agents_tools.agents.run_recorder import RunRecorder
    from agents_tools.agents.state import FilteredInput
    from agents_tools.agents.toolbox import RunnableAgent, Toolbox
    from agents_tools.events.base import Emit, Event
    from agents_tools.events.channel import Channel
    from agents_tools.tool.records import Decision

    ModelItem = MessageOutputItem | ReasoningItem | ToolCallItem

__all__ = ["Run"]

_log = logging.getLogger("agents_tools")
_CUT_OFF = (
    "The answer was cut off at the limit of output tokens. Answer again, shorter, and only with "
    "JSON that matches the schema."
)
guard_logs()


class Run:
    """One run of an agent, from its input to its result.

    Args:
        agent: The agent.
        history: The conversation so far; the run appends to it.
        config: The configuration; that of the run around it by default.
        context: The application's object; that of the parent call by default.
        max_turns: The maximum number of model responses; `None` for no limit.
        hooks: Hooks for this run and the runs inside it, in addition to the hooks of the agent.
        sinks: Functions that receive the events, in addition to those of the parent call.
        channel: The channel that tools with streamed events wait for.
        quiet: Whether the events stay hidden from the parent call.
        state: A state to continue from.
        session: The id of the session that the run is part of.
        parent: The call that the run is part of; the current call by default.
        run_id: The id of the run; a new one by default.
        resume: Whether the run has to exist in its store.
        facts: More data for the record of the start of the run.

    Attributes:
        agent: The current agent; that of the last handoff.
        first_agent: The agent that the run was started with.
        guardrails: The guardrails of the run.
        filtered: The result of the input filter of the last handoff, if it had one.
        usages: The usage records that each model response is added to: of this run and of the
            runs around it.
        new_input: The index of the first item of the history that is new in this run.
        initial_state: The state that the run continues from.
        resumed: Whether the run continues from a state.
        on_replayed: Receives the items that an earlier process has emitted.
        is_asking: Whether the current step waits for the model; it can be cancelled and repeated.
    """

    is_asking = False
    _is_replayed = False  # whether the current response comes from the log of the run
    on_replayed: Emit | None = None
    _was_cancelled = False
    _corrections = 0
    _had_empty_response = False
    _has_open_calls = True  # possibly, in the earlier conversation, until the first step
    _final: tuple[Any] | None = None  # in a tuple, because the final output can be `None`
    _tools: Toolbox | None = None

    def __init__(
        self,
        agent: RunnableAgent,
        history: list[Item],
        *,
        config: RunConfig | None = None,
        context: Any = None,
        max_turns: int | None = 10,
        hooks: RunHooks[Any] | None = None,
        sinks: tuple[Emit, ...] = (),
        channel: Channel | None = None,
        quiet: bool = False,
        state: RunState | None = None,
        session: str | None = None,
        parent: Call | None = None,
        run_id: str | None = None,
        resume: bool = False,
        facts: Mapping[str, Any] | None = None,
    ) -> None:
        parent = parent or current_call()
        outer = None if parent is None or parent.scope is None else parent.scope.run
        self.agent = self.first_agent = agent
        self.guardrails = Guardrails(agent, is_pending=bool(agent.input_guardrails))
        self.filtered: FilteredInput | None = None
        self.outer: Run | None = outer
        self.inner: set[Run] = set()  # the runs inside this one that have not ended
        self.config = _inherit(config, None if outer is None else outer.config)
        self.history = history
        self.input_count = len(history)
        self.responses: list[ModelResponse] = []
        self.turns = 0
        self.max_turns = max_turns
        self.usage = Usage()
        self.usages = [self.usage]
        self.run_hooks: tuple[RunHooks[Any], ...] = (
            hooks_of_all_runs() if outer is None else outer.run_hooks
        )
        if hooks is not None:
            self.run_hooks += (hooks,)
        self.hooks = self.run_hooks + (() if agent.hooks is None else (agent.hooks,))
        self.new_input = 0
        self.resumed = False
        self._message_queue = _MessageQueue()
        self._inbox_numbers: dict[int, int] = {}  # of posted messages, by `id()`
        self._task: asyncio.Task[Any] | None = None
        self._cancel_reason: str | None = None
        self._later_messages: list[Item] = []
        self._loop: asyncio.AbstractEventLoop | None = None
        self._model: Model | None = None
        self.initial_state = state
        self._session = session
        self.recorder = self._create_recorder(run_id, parent, resume=resume, facts=facts)
        if self.recorder is not None:
            run_id = self.recorder.run_id
            self.usages += self.recorder.usages
        elif state is not None:
            run_id = state.run_id
        if outer is not None:
            self.usages += outer.usages
        self.scope = self._create_scope(
            run_id or f"run_{uuid.uuid4().hex}",
            parent,
            context=parent.app_context if context is None and parent is not None else context,
            sinks=self._event_sinks(sinks, parent, quiet=quiet),
            channel=channel or (None if quiet or parent is None else parent.channel),
        )
        self.calls = TurnCalls(
            agent, self.config, self.scope, self.hooks, self._emit_item, self.recorder
        )
        self._caller = ModelCaller(
            agent, self.config, self.scope, self.hooks, self.calls, self._emit
        )
        if state is None:
            self.calls.load_history(history)
        elif self.recorder is None or not self.recorder.is_outermost:
            self.restore(state)

    def _create_recorder(
        self,
        run_id: str | None,
        parent: Call | None,
        *,
        resume: bool,
        facts: Mapping[str, Any] | None,
    ) -> RunRecorder | None:
        """Return the recorder of a run with a store; `None` for other runs."""
        if self.config.store is None:
            return None
        from agents_tools.agents.run_recorder import recorder_of

        return recorder_of(
            self,
            run_id=run_id,
            session=self._session,
            parent=parent,
            outer=None if self.outer is None else self.outer.recorder,
            resume=resume,
            facts=facts,
        )

    def _event_sinks(
        self, sinks: tuple[Emit, ...], parent: Call | None, *, quiet: bool
    ) -> tuple[Emit, ...]:
        """Return all receivers of the events of this run, each of them once."""
        receivers = sinks + current_listeners()
        if parent is not None and not quiet:
            receivers = parent.sinks + tuple(sink for sink in receivers if sink not in parent.sinks)
        config, outer, recorder = self.config, self.outer, self.recorder
        # A run that inherits the whole configuration publishes through the run around it.
        has_own_stream = outer is None or config is not outer.config
        if config.event_stream is not None and has_own_stream:
            publish = config.event_stream.publish
            receivers += () if publish in receivers else (publish,)
        if recorder is not None and recorder.is_outermost:
            receivers += (recorder.log.publish,)
        if parent is not None and quiet:
            readers = [sink for sink in parent.sinks if sink not in receivers]
            store = None if recorder is None else recorder.log.publish_hidden
            receivers += (HiddenEvents(readers, store),) if readers or store else ()
        return receivers

    def _create_scope(
        self,
        run_id: str,
        parent: Call | None,
        *,
        context: Any,
        sinks: tuple[Emit, ...],
        channel: Channel | None,
    ) -> RunScope:
        config = self.config
        outer = None if parent is None else parent.scope
        sampler: object = config.sample
        if isinstance(sampler, str):
            sampler = choose_model(self.agent, config, sampler)
        return RunScope(
            context,
            agent=self.agent,
            run_id=run_id,
            usage=self.usage,
            sinks=sinks,
            channel=channel,
            parent=parent,
            deadline=None if config.timeout is None else time.monotonic() + config.timeout,
            asker=config.ask or (None if outer is None else outer.asker),
            approver=None if config.approve is None else self._decide_inside,
            sampler=sampler or (None if outer is None else outer.sampler),
            tool_state=None if self.outer and config is self.outer.config else config.tool_state,
            run=self,
        )

    async def _decide_inside(self, call: Call) -> Decision:
        """Return the decision of a person about a call inside a call of this run."""
        return await self.calls.approvals.decide_inside(call)

    @property
    def provider(self) -> str | None:
        """The provider whose schema format the model needs; `None` if unknown."""
        return self.calls.provider

    async def is_handed_over(self) -> bool:
        """Return whether another process continues this run."""
        return self.recorder is not None and await self.recorder.log.is_handed_over()

    async def record_remote(self, call_id: str, reference: Mapping[str, Any]) -> bool:
        """Record where a call continues if this process ends; return whether there is a log."""
        if self.recorder is not None:
            await self.recorder.record_remote(call_id, reference)
        return self.recorder is not None

    @property
    def remote_calls(self) -> dict[str, Mapping[str, Any]]:
        """Where calls of an earlier process continue, by call id; a call removes its own."""
        return {} if self.recorder is None else self.recorder.remote_calls

    def cancel_call(self, call_id: str) -> bool:
        """Cancel one call of this run or of a run inside it; return whether it was running."""
        return self.calls.cancel(call_id) or any(
            inner.cancel_call(call_id) for inner in list(self.inner)
        )

    def send(self, message: str | Sequence[Any]) -> None:
        """Send a message to the model while the run works, from any thread.

        The message becomes part of the conversation before the next request to the model, after
        the outputs of the calls that run now. If the model has just given its final answer, the run
        takes another turn. A run that stops first keeps the message in its conversation.

        Args:
            message: Text, or a list of messages.

        Raises:
            UserError: The run has ended, or the value is not a message.
        """
        if not self._message_queue.put(input_messages(message, "send()")):
            raise UserError(
                f"The message was not sent: run {self.scope.run_id!r} of agent "
                f"{self.agent.name!r} has ended. Start another run with it: "
                "Runner.run(agent, [*result.to_input_list(), message]), or Runner.run(agent, "
                "result.to_state()) first if calls wait for approval."
            )
        self.calls.wake()

    def post(self, text: str, number: int) -> None:
        """Add a message of the run's inbox to the conversation, like `send`."""
        messages = input_messages(text, "send()")
        for message in messages:
            self._inbox_numbers[id(message)] = number
        self._message_queue.put(messages)
        self.calls.wake()

    def add_result(self, output: ToolCallOutputItem) -> None:
        """Send the result of a call in the background to the model, also at the end of the run."""
        self._message_queue.messages.append(self.calls.add_result(output))

    def cancel(self, reason: str | None = None) -> None:
        """Cancel the run, also before `execute` has begun.

        Args:
            reason: The reason, for people.
        """
        self._cancel_reason = reason or None
        self._was_cancelled = True
        if self._task is not None:
            self._task.cancel()

    def set_decision(self, path: tuple[str, ...], call_id: str, decision: Decision) -> None:
        """Decide about a call that waits.

        Args:
            path: The ids of the calls around the run that made the call.
            call_id: The call.
            decision: The decision.
        """
        depth = len(self.scope.path)
        if len(path) == depth:
            pending = self.calls.approvals.pending.get(call_id)
            if pending is not None:
                pending.decision = decision
                self.calls.wake()
            return
        nested = self.calls.nested.get(path[depth])
        if nested is not None:
            nested.set_decision(path[depth + 1 :], call_id, decision)
        for inner in list(self.inner):
            if inner.scope.path == path[: len(inner.scope.path)]:
                inner.set_decision(path, call_id, decision)

    # --- start and end

    async def execute(self, step: Callable[[], Awaitable[None]] | None = None) -> RunResult[Any]:
        """Run to the end.

        Args:
            step: Takes one step in place of `Run.step`, which it calls. A controller pauses the run
                there, and waits for decisions about calls.

        Raises:
            MaxTurnsExceeded: The model did not finish within `max_turns`.
            BudgetExceeded: The run has reached its limit of calls, tokens or dollars.
            RunTimeoutError: The run has reached its time limit.
            ModelError: The request to the model failed.
            ModelBehaviorError: The model repeatedly sent invalid output.
        """
        status, error_text = "cancelled", None
        output: Any = None
        if self.outer is not None:
            self.outer.inner.add(self)
        self._task = asyncio.current_task()
        if self._was_cancelled and self._task is not None:
            self._task.cancel()
        try:
            try:
                result = await self._run_until_deadline(step or self.step)
            finally:
                await self.scope.release()
            status = "interrupted" if result.interruptions else "ok"
            output = result.final_output
            return result
        except Exception as error:
            status, error_text = "error", describe_error(error)
            _attach_result(error, self.result())
            raise
        finally:
            if self.outer is not None:
                self.outer.inner.discard(self)
            try:
                if self.calls.early or self.calls.background is not None:
                    await self.calls.close(is_complete=status in {"ok", "interrupted"})
            finally:
                try:
                    self._add_messages(self._message_queue.close())
                    if status == "cancelled":
                        error_text = self._cancel_reason
                    self._emit_end(status, output, error_text)
                finally:
                    if self.recorder is not None:
                        await self.recorder.close(status)

    def _emit_end(self, status: str, output: Any, error: str | None) -> None:
        if self.scope.sinks:
            usage = self.usage.to_dict()
            last = RunFinishedEvent(
                status=status, output=final_output_as_json(output), usage=usage, error=error
            )
            with nullcontext() if self.recorder is None else self.recorder.ending_run(status):
                self.scope.close(last)

    async def _run_until_deadline(self, step: Callable[[], Awaitable[None]]) -> RunResult[Any]:
        deadline = self.scope.deadline
        loop = self._loop = asyncio.get_running_loop()
        if deadline is None or self.config.timeout is None or self._ends_with_parent(deadline):
            return await self._run(step)
        timer = asyncio.timeout_at(loop.time() + deadline - time.monotonic())
        try:
            async with timer:
                return await self._run(step)
        except TimeoutError as error:
            if not timer.expired():
                raise
            raise RunTimeoutError(
                f"The run of agent {self.agent.name!r} took longer than "
                f"{self.config.timeout:g} s and was stopped."
            ) from error

    def _ends_with_parent(self, deadline: float) -> bool:
        """Return whether the run around this one has a timer for the same deadline.

        Two timers that expire at once would both cancel the task, and one of the cancellations
        would look like one from outside.
        """
        parent, outer = self.scope.parent, self.outer
        return (
            parent is not None
            and outer is not None
            and parent.deadline == deadline
            and outer._loop is self._loop  # noqa: SLF001 - its own class
        )

    def result(
        self, final_output: Any = None, interruptions: Sequence[ToolApprovalItem] = ()
    ) -> RunResult[Any]:
        """Return the result, or the progress so far."""
        return RunResult(
            final_output=final_output,
            last_agent=self.agent,
            history=self.history,
            input_count=self.input_count,
            raw_responses=self.responses,
            usage=self.usage,
            run_id=self.scope.run_id or "",
            context=self.scope.app_context,
            state=self.state,
            interruptions=interruptions,
            guardrails=self.guardrails,
        )

    def state(self) -> RunState:
        """Return a state from which the run can continue."""
        calls = self.calls
        # Outputs are added to the history in the order of the calls, when all of them are there.
        # A state that is taken earlier has to contain those that exist already.
        outputs = calls.outputs_of(open_calls(self.history))
        return RunState(
            agent=self.first_agent.name,
            current_agent=None if self.agent is self.first_agent else self.agent.name,
            filtered=self.filtered,
            run_id=self.scope.run_id or "",
            history=[*self.history, *outputs, *self._later_messages],
            input_count=self.input_count,
            turns=self.turns,
            usage=self.usage.copy(),
            started=list(calls.started),
            pending={one.item.call_id: replace(one) for one in calls.waiting_approvals},
            nested={call_id: inner.copy() for call_id, inner in calls.nested.items()},
            standing=dict(calls.approvals.always_approved),
            summaries=self._caller.summaries[-1:],
        )

    # --- turns

    async def _run(self, step: Callable[[], Awaitable[None]]) -> RunResult[Any]:
        await self._open()
        recorder = self.recorder
        if recorder is None or not recorder.receives_messages:
            return await self._take_steps(step)
        messages = asyncio.ensure_future(recorder.handle_messages())
        try:
            return await self._take_steps(step)
        finally:
            messages.cancel()
            await asyncio.wait({messages})

    async def _take_steps(self, step: Callable[[], Awaitable[None]]) -> RunResult[Any]:
        await step()  # also if the calls of a state wait: a person has decided about them
        while self._final is None and await self._has_all_decisions():
            await step()
        if self._final is not None:
            if self.agent.output_guardrails:
                await self.guardrails.check_output(self.agent, self._final[0], self.scope.context)
            for hook in self.hooks:
                await hook.on_agent_end(self.scope.context, self.agent, self._final[0])
            return self.result(self._final[0])
        self._add_messages(self._message_queue.close())
        return self.result(interruptions=self.state().interruptions)

    async def _has_all_decisions(self) -> bool:
        """Return whether no decision is missing, also after reading the inbox of the run."""
        if not (self._has_open_calls and self.needs_decision):
            return True
        if self.calls.background is not None:
            await self.calls.background.wait(lambda: not self.needs_decision)
        if self.recorder is not None and self.recorder.receives_messages:
            await self.recorder.receive()
        return not self.needs_decision

    async def step(self) -> None:
        """Ask the model once and answer its calls.

        If calls are open, because they waited for the decision of a person, they are answered
        instead. Afterwards the run has its final output, waits for a decision, or needs another
        step. A message that was sent before the final output is known gets another step, too.

        Raises:
            Exception: The errors of `execute`, except for the time limit of the run.
        """
        self.is_asking = True
        toolbox = self._tools or await self._load_tools()
        waiting = self.calls.unfinished_calls(toolbox) if self._has_open_calls else []
        if waiting:
            self.is_asking = False
            final = await self._finish_open_calls(waiting, toolbox)
        else:
            final = await self._take_turn(toolbox)
        self._has_open_calls = self.calls.is_waiting
        if final is not None and not await self._has_new_message():
            self._final = final

    @property
    def is_waiting(self) -> bool:
        """Whether the next step answers calls that waited for a decision."""
        return self._final is None and self.calls.is_waiting

    @property
    def is_replaying(self) -> bool:
        """Whether the next step repeats a recorded turn."""
        return self.recorder is not None and self.recorder.has_response(self.turns + 1)

    @property
    def needs_decision(self) -> bool:
        """Whether a call waits for a decision that is missing."""
        nested = self.calls.nested.values()
        return any(one.decision is None for one in self.calls.waiting_approvals) or any(
            inner.interruptions for inner in nested
        )

    def decide(self, decision: Decision) -> None:
        """Decide about all calls that wait for a decision; the next step answers them."""
        for call in self.calls.waiting_approvals:
            call.decision = call.decision or decision
        for inner in self.calls.nested.values():
            for item in inner.interruptions:
                inner.decide(item, decision)

    def end_with(self, output: object) -> None:
        """End the run with a final output, after the current step."""
        self._final = (output,)

    def replace_history(self, items: list[Item]) -> None:
        """Replace the conversation between two steps by one that was stored elsewhere."""
        self.history[:] = items
        self.input_count = min(self.input_count, len(items))

    async def _has_new_message(self) -> bool:
        """Return whether a message needs an answer; otherwise, accept no more messages."""
        if self.is_replaying:
            return True
        if self.recorder is not None and self.recorder.messages_before(self.turns + 1):
            return True  # a message is recorded whose answer is not
        if self.calls.background is not None:
            await self.calls.background.wait(self._message_queue.has_request)
        if self.recorder is not None and self.recorder.receives_messages:
            await self.recorder.receive()
        return not self._message_queue.close_if_empty()

    async def _take_turn(self, toolbox: Toolbox) -> tuple[Any] | None:
        """Ask the model, and answer its calls.

        Returns:
            The final output in a tuple, if the run ends with this turn.
        """
        if self._message_queue.messages or self.recorder is not None:
            self._add_messages_before_request()
        response = await self._request(toolbox)
        self.is_asking = False
        self._tools = None
        if self._caller.refused:
            toolbox = toolbox.without(self._caller.refused)
        calls = self._record_response(response, toolbox)
        if not calls:
            if self.calls.early:
                await self.calls.cancel_early()
            return self._output_of_response(response)
        await self._execute_calls(calls, toolbox, truncation=response.truncation)
        return await self._output_of_tools(calls)

    async def _open(self) -> None:
        """Start the run: load what was stored, and the tools of the first turn."""
        scope, recorder = self.scope, self.recorder
        if recorder is not None:
            await recorder.open()
        for sink in scope.sinks:
            if isinstance(sink, HiddenEvents):
                sink.restore([(*scope.path, one) for one in self.calls.approvals.pending])
        if scope.sinks:
            scope.emit(RunStartedEvent(run_id=scope.run_id, agent=self.agent.name))
        if scope.depth > self.config.max_depth:
            raise UserValueError(
                f"Agent {self.agent.name!r} would run inside {scope.depth} other agents: expected "
                f"at most {self.config.max_depth} (RunConfig(max_depth=...)). Check whether an "
                "agent calls itself."
            )
        self.load_model()
        for hook in self.hooks:
            await hook.on_agent_start(scope.context, self.agent)
        await self._load_session()
        if recorder is None:
            self._emit_input()
            await self._load_tools()
        else:
            recorder.begin(await self._load_tools(), self._emit_input)
        if self.calls.unanswered:
            self.calls.report_lost_results()

    def choose_model(self) -> Model:
        """Return the model of the run."""
        return choose_model(self.agent, self.config)

    def load_model(self) -> None:
        """Load the model of the current agent."""
        self._model = self.choose_model()
        self.calls.provider = getattr(self._model, "provider", None)

    @property
    def offered_tools(self) -> tuple[Any, ...]:
        """The tools that the model receives; empty before the first turn."""
        return () if self._tools is None else self._tools.offered

    def add_hooks(self, *hooks: RunHooks[Any]) -> None:
        """Add hooks before the run begins."""
        self.run_hooks += hooks
        self.hooks += hooks

    def set_agent(self, agent: RunnableAgent, filtered: FilteredInput | None = None) -> None:
        """Let another agent continue the run, between two steps."""
        self.agent = self.scope.agent = agent
        self.filtered = filtered
        self.hooks = self.run_hooks + (() if agent.hooks is None else (agent.hooks,))
        self.calls.set_agent(agent, self.hooks)
        summaries = self._caller.summaries
        self._caller = ModelCaller(
            agent, self.config, self.scope, self.hooks, self.calls, self._emit
        )
        self._caller.summaries[:] = summaries
        self._tools = None

    async def _load_tools(self) -> Toolbox:
        """Load the tools of a turn."""
        tools = await self.agent.toolbox(self.scope.context)
        self._tools = tools.without(self._caller.refused) if self._caller.refused else tools
        return self._tools

    # --- messages that were sent to the run

    def _add_messages_before_request(self) -> None:
        """Add the messages that were sent, unless the next turn was recorded without them."""
        recorder, turn = self.recorder, self.turns + 1
        if recorder is not None:
            self.history.extend(recorder.messages_before(turn))
            if recorder.has_response(turn):
                return
        self._add_messages(self._message_queue.take())

    def _add_messages(self, messages: Sequence[MessageInputItem]) -> None:
        """Add messages to the conversation."""
        self.history.extend(messages)
        for message in messages:
            if self.recorder is not None:
                with self.recorder.consuming(self._inbox_numbers.pop(id(message), None)):
                    self._emit_message(message)
            elif self.scope.sinks:
                self._emit_message(message)

    # --- the earlier conversation

    def restore(self, state: RunState) -> None:
        """Continue from a state."""
        self.history[:] = state.history
        self.input_count = state.input_count
        self.turns = state.turns
        self.usage.add(state.usage)
        self.new_input = len(self.history)
        self.resumed = True
        self._caller.summaries[:] = state.summaries
        self.guardrails.is_pending = False
        if state.current_agent is not None:
            self.set_agent(find_agent(self.first_agent, state.current_agent), state.filtered)
        self.calls.restore(state)

    async def _load_session(self) -> None:
        """Insert the conversation of the session before the input of the run."""
        recorder = self.recorder
        if recorder is None or recorder.log.session is None or self.resumed:
            return
        if not recorder.is_outermost:
            return
        events = await recorder.log.conversation()
        items = conversation(events)
        self.insert_earlier(items, waiting_calls(events))

    def insert_earlier(self, items: list[Item], waiting: Collection[str] = ()) -> None:
        """Insert an earlier conversation before the input of the run.

        Args:
            items: The conversation.
            waiting: The ids of its open calls that wait for a person; the others are lost.
        """
        self.calls.load_history(items)
        self.calls.mark_lost(call for call in open_calls(items) if call.call_id not in waiting)
        self.history[:0] = items
        self.input_count += len(items)
        self.new_input = len(items)

    async def _finish_open_calls(
        self, calls: list[PendingToolCall], toolbox: Toolbox
    ) -> tuple[Any] | None:
        """Execute the calls of the earlier conversation that have no output.

        Returns:
            The final output in a tuple, if the run ends with these calls.
        """
        later = self._later_messages = self._remove_later_messages()
        try:
            await self._execute_calls(calls, toolbox)
            final = await self._output_of_tools(self._turn_calls(calls, toolbox))
        finally:
            self._later_messages = []
            self.history.extend(later)
        return None if later else final

    def _remove_later_messages(self) -> list[Item]:
        """Remove the messages after the open calls from the history, and return them.

        Models require that the outputs directly follow their calls.
        """
        index = len(self.history)
        while isinstance(self.history[index - 1], MessageInputItem):
            index -= 1
        later = self.history[index:]
        del self.history[index:]
        self.input_count = min(self.input_count, index)
        return later

    def _turn_calls(self, calls: list[PendingToolCall], toolbox: Toolbox) -> list[PendingToolCall]:
        """Return all calls of the turn that the given calls are a part of."""
        index = len(self.history)
        while isinstance(self.history[index - 1], ToolCallOutputItem):
            index -= 1
        return self.calls.calls_of_turn(calls, self.history[index:], toolbox)

    # --- responses of the model

    async def _request(self, toolbox: Toolbox) -> ModelResponse:
        """Return the next response of the model."""
        self._check_limits()
        self.turns += 1

        async def request() -> ModelResponse:
            model = cast("Model", self._model)
            return await self._caller.request(model, toolbox, self.history)

        async def guarded_request() -> ModelResponse:
            items = self.history[self.new_input :]
            return await self.guardrails.request(request, items, self.scope.context)

        ask = guarded_request if self.guardrails.is_pending else request
        recorder = self.recorder
        try:
            response = await (ask() if recorder is None else recorder.response(self.turns, ask))
        except BaseException:
            self.turns -= 1  # a step that is repeated has the same number
            raise
        self.guardrails.is_pending = False
        self._is_replayed = recorder is not None and recorder.is_replayed
        self.responses.append(response)
        for usage in self.usages:
            usage.add(response.usage)
        if not self._is_replayed:
            for hook in self.hooks:
                await hook.on_llm_end(self.scope.context, self.agent, response)
        return response

    def _check_limits(self) -> None:
        if self.max_turns is not None and self.turns >= self.max_turns:
            raise MaxTurnsExceeded(
                f"Agent {self.agent.name!r} did not finish within {self.max_turns} turns. "
                "To allow more, raise max_turns."
            )

    def _record_response(self, response: ModelResponse, toolbox: Toolbox) -> list[PendingToolCall]:
        """Add a response to the history, and return the calls that need an output."""
        for item in response.items:
            if not isinstance(item, (MessageOutputItem, ReasoningItem, ToolCallItem)):
                raise UserTypeError(
                    f"{type(self._model).__name__} returned a wrong item: expected messages, "
                    f"reasoning and tool calls, got {type_with_article(item)}."
                )
        recorder = self.recorder
        if recorder is None or recorder.is_replayed:
            return self._add_response(response, toolbox)
        with recorder.log.group():
            calls = self._add_response(response, toolbox)
            recorder.record_response(self.turns, response)
        return calls

    def _add_response(self, response: ModelResponse, toolbox: Toolbox) -> list[PendingToolCall]:
        calls: list[PendingToolCall] = []
        self.calls.begin_response()
        for item in cast("Sequence[ModelItem]", response.items):
            if isinstance(item, ToolCallItem):
                call = self.calls.register(item, toolbox, is_replayed=self._is_replayed)
                if call is None:
                    continue
                self.history.append(call.item)
                if item.needs_answer:
                    calls.append(call)
            else:
                output = replace(item, agent=self.agent.name)
                self.history.append(output)
                is_message = isinstance(output, MessageOutputItem)
                kind = "message_output" if is_message else "reasoning_item"
                self._emit_item(f"{kind}_created", output, self._is_replayed)
        return calls

    def _output_of_response(self, response: ModelResponse) -> tuple[Any] | None:
        """Return the final output from a response without calls.

        Returns:
            The final output in a tuple; `None` if the model gets another turn, because the response
            is empty or does not match the output type.
        """
        is_empty = not any(
            isinstance(item, (MessageOutputItem, ToolCallItem)) for item in response.items
        )
        if is_empty and not self._had_empty_response:
            self._had_empty_response = True  # mostly a temporary fault of the provider
            return None
        text, output = final_text(self.agent, response), self.agent.output
        if output is None:
            return (text,)
        try:
            return (output.read(text),)
        except ModelBehaviorError as error:
            problem = _CUT_OFF if response.finish_reason == "length" else str(error)
            self._corrections += 1
            if self._corrections > self.config.output_retries:
                raise ModelBehaviorError(
                    f"Agent {self.agent.name!r} sent {self._corrections} answers that do not match "
                    f"its output_type. The last error was: {problem}"
                ) from error
            feedback = MessageInputItem(content=problem)
            self.history.append(feedback)
            self._emit_item("output_refused", feedback, self._is_replayed)
            return None

    # --- tool calls

    async def _execute_calls(
        self, calls: list[PendingToolCall], toolbox: Toolbox, *, truncation: str | None = None
    ) -> None:
        """Execute calls, and add their outputs to the history in the order of the calls."""
        try:
            await self.calls.execute(calls, toolbox, truncation=truncation)
        finally:
            outputs = [call.output_item for call in calls if call.output_item is not None]
            count = len(outputs)
            while isinstance(last := self.history[-1], ToolCallOutputItem):
                outputs.append(last)  # from before the run waited; it belongs between the others
                self.history.pop()
            self.history.extend(
                outputs if len(outputs) == count else self.calls.sort_outputs(outputs)
            )

    async def _output_of_tools(self, calls: list[PendingToolCall]) -> tuple[Any] | None:
        if self.calls.is_waiting:
            return None
        for call in calls:
            if call.is_handoff and await change_agent(self, call):
                return None
        return await final_output_of_tools(self.agent, self.scope, calls)

    # --- events

    def _emit_input(self) -> None:
        """Emit the input of the run, because it is part of the conversation."""
        if not self.scope.sinks:
            return
        for item in self.history[self.new_input :]:
            if isinstance(item, MessageInputItem):
                self._emit_message(item)
            else:
                self._emit_item("input", item)

    def _emit_message(self, message: MessageInputItem) -> None:
        """Emit a message to the model: from the user, if the run is the outermost one."""
        if message.call_id is not None:
            self._emit_item(*self.calls.take_result(message))
            return
        self._emit(message_event(message, is_outermost=not self.scope.path))

    def _emit_item(self, name: str, item: Any, is_replayed: bool = False) -> None:
        """Emit a new item; a replayed one was emitted by an earlier process."""
        if is_replayed and self.on_replayed is not None:
            self.on_replayed(_item_event(name, item))
        elif self.scope.sinks and not is_replayed:
            self._emit(_item_event(name, item))

    def _emit(self, event: Event) -> None:
        """Emit an event of the conversation, which the log stores with its secrets."""
        if self.recorder is None:
            self.scope.emit(event)
            return
        with self.recorder.log.restoring(event):
            self.scope.emit(event)


def _item_event(name: str, item: Any) -> RunItemStreamEvent[Any]:
    """Return the event of an item."""
    data = item.to_dict()
    public = item.public_message if isinstance(item, ToolCallOutputItem) else None
    if public is not None and public != item.output:
        data["public_message"] = public
    return RunItemStreamEvent(name, data).attach(item)


class _MessageQueue:
    """Messages in the order in which any thread sent them, until the run takes them.

    A message is either taken or refused: `close_if_empty` and `put` exclude each other, so a run
    never ends with a message that `put` has accepted.

    Attributes:
        messages: The messages; only for checks whether there are any.
    """

    __slots__ = ("_is_closed", "_lock", "messages")

    def __init__(self) -> None:
        self.messages = deque[MessageInputItem]()
        self._is_closed = False
        self._lock = Lock()

    def put(self, messages: Sequence[MessageInputItem]) -> bool:
        """Add messages; return `False` if the queue is closed."""
        with self._lock:
            if not self._is_closed:
                self.messages.extend(messages)
            return not self._is_closed

    def has_request(self) -> bool:
        """Return whether there is a message that is not the result of a call."""
        return any(message.call_id is None for message in tuple(self.messages))

    def take(self) -> list[MessageInputItem]:
        """Remove all messages, and return them."""
        with self._lock:
            messages = list(self.messages)
            self.messages.clear()
            return messages

    def close_if_empty(self) -> bool:
        """Close the queue unless it contains messages; return whether it is closed."""
        with self._lock:
            self._is_closed = self._is_closed or not self.messages
            return self._is_closed

    def close(self) -> list[MessageInputItem]:
        """Close the queue, and return the messages that were not taken."""
        with self._lock:
            self._is_closed = True
        return self.take()


def _inherit(config: RunConfig | None, inherited: RunConfig | None) -> RunConfig:
    """Return the configuration of a run inside another one.

    Without a configuration of its own, it is that of the outer run. Otherwise only `approve` and
    `store` are inherited.
    """
    inherited = inherited or DEFAULT_CONFIG
    config = config or inherited
    if config.approve is None and inherited.approve is not None:
        config = replace(config, approve=inherited.approve)
    if config.store is None and inherited.store is not None:
        config = replace(config, store=inherited.store)
    return config


def _attach_result(error: Exception, result: RunResult[Any]) -> None:
    try:
        cast("Any", error).run_result = result
    except AttributeError:
        _log.debug("%s cannot store the result of the run.", type(error).__name__)
