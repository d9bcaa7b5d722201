"""The controller, which runs the steps of an event-driven agent and stores its state.

The controller decides when the agent works: a message of the user starts a `ControlledRun`, which
drives the steps of a `Run` over the stream. The controller forwards observations to it, pauses and
stops it, asks for decisions about its calls, and publishes its answer.
"""

from __future__ import annotations

import asyncio
import json
import logging
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from agents_tools.classes.event_types import (
    AgentDelegateAction,
    AgentDelegateObservation,
    AgentErrorObservation,
    AgentFinishAction,
    AgentRejectAction,
    AgentState,
    AgentStateChangedObservation,
    AgentThinkAction,
    AgentThinkObservation,
    ChangeAgentStateAction,
    CondensationRequestAction,
    ErrorObservation,
    MessageAction,
    NullObservation,
    RecallAction,
    is_runnable,
)
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.future import call_on_loop
from agents_tools.concurrency.supervisor import finish
from agents_tools.errors import MaxTurnsExceeded, UserError, UserValueError
from agents_tools.event_driven.controller.actions import ActionReader, delegate_tool
from agents_tools.event_driven.controller.agent_stream import SUBSCRIBED, AgentStream
from agents_tools.event_driven.controller.controlled_run import ControlledRun, is_cancelled
from agents_tools.event_driven.controller.history import items_of
from agents_tools.event_driven.controller.state import (
    OVER,
    State,
    asks_for_step,
    has_not_begun,
    last_words,
)
from agents_tools.events.envelope import EventSource
from agents_tools.events.kinds import ActionEvent, ObservationEvent
from agents_tools.persistence import PendingFuture
from agents_tools.persistence.stream import EventStream, EventStreamSubscriber
from agents_tools.tool.call import enter_scope
from agents_tools.tool.context import ToolContext, call_of
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from agents_tools.agents.agent import Agent
    from agents_tools.agents.config import RunConfig, RunHooks
    from agents_tools.classes.action import Action
    from agents_tools.content.items import Item
    from agents_tools.content.usage import Usage
    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call

__all__ = ["AgentController"]

logger = logging.getLogger("agents_tools")

_MAX_DEPTH = 5
LOGGED = "Your thought has been logged."
_WORKING = {
    AgentState.RUNNING,
    AgentState.PAUSED,
    AgentState.AWAITING_USER_CONFIRMATION,
    AgentState.USER_CONFIRMED,
    AgentState.USER_REJECTED,
}
"""The states in which an agent has not ended its task."""


class AgentController:
    """Runs an agent with the events of a stream.

    A message of the user starts a run: each of its steps sends one request to the model, and
    publishes its tool calls as actions. A `ToolRuntime` on the same stream executes them. When all
    actions have an observation, the next step starts. `ChangeAgentStateAction` stops or pauses the
    agent at once, even during a step.

    Calls that need approval make the agent wait in the state `awaiting_user_confirmation`; a
    `ChangeAgentStateAction` with `user_confirmed` or `user_rejected` decides about them.

    Args:
        stream: The stream.
        agent: The agent. A runtime executes its tools; the controller handles `think` and `finish`.
        delegates: The agents to which it can delegate tasks, by name.
        context: The `ctx.context` of instructions and hooks.
        max_iterations: The maximum number of steps without a new message of the user.
        recall: Whether the memory is queried for each message of the user. This needs a
            `MemorySubscriber` on the stream.
        condense: Returns a `CondensationAction` for the state when a condensation is requested.
        run_config: The configuration of the runs, with their budgets, time limits and durable
            store. Its limits apply to each run; calls always start after the complete response.
        hooks: Callbacks for the runs of the agent and its delegates.

    Attributes:
        state: The state of the agent.
    """

    def __init__(
        self,
        stream: EventStream,
        agent: Agent[Any, Any],
        *,
        delegates: Mapping[str, Agent[Any, Any]] | None = None,
        context: object = None,
        max_iterations: int = 100,
        recall: bool = False,
        condense: Callable[[State], Action | None] | None = None,
        run_config: RunConfig | None = None,
        hooks: RunHooks[Any] | None = None,
        _parent: AgentController | None = None,
        _path: tuple[str, ...] = (),
        _call: Call | None = None,
    ) -> None:
        if max_iterations < 1:
            raise UserValueError(
                f"max_iterations= is invalid: expected a positive integer, got {max_iterations}."
            )
        self.agent = agent
        self.state = State()
        self.delegate: AgentController | None = None
        self._stream = stream
        self._events = AgentStream(stream, _path)
        self._delegates = dict(delegates or {})
        self._context = context
        self._max_iterations = max_iterations
        self._recall = recall
        self._condense = condense
        self._config = run_config
        self._hooks = hooks
        self._parent = _parent
        self._path = _path
        self._call = _call
        self._recalls: set[int] = set()
        self._delegated: Event | None = None
        self._requested: Event | None = None  # asks for a step that has not started
        self._newest: Event | None = None  # the last event that asked for a step
        self._newest_message = -1
        self._tasks: set[asyncio.Task[None]] = set()
        self._work: asyncio.Task[None] | None = None
        self._run: ControlledRun | None = None
        self._finishing: AgentFinishAction | None = None
        self._steps = 0
        self._closed = False
        self._ready: PendingFuture[None] = PendingFuture()
        self._changed = asyncio.Event()
        self._variables = copy_context()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._actions = ActionReader(agent, self._delegates)
        self._subscription = stream.subscribe(
            EventStreamSubscriber.AGENT_CONTROLLER,
            self._handle,
            f"controller-{id(self):x}",
            where=SUBSCRIBED,
        )
        self._publish_state(AgentState.LOADING)

    async def __aenter__(self) -> Self:
        """Wait until the controller is ready, and return it."""
        await self._ready
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the controller."""
        await self.aclose()

    def should_step(self, event: Event) -> bool:
        """Return whether an event starts a step in the current state.

        Args:
            event: The event.
        """
        return (
            asks_for_step(event)
            and event.path == self._path
            and self.state.agent_state is AgentState.RUNNING
            and not self._recalls
            and self.delegate is None
            and self._work is None
        )

    async def set_agent_state_to(self, state: AgentState, reason: str = "") -> None:
        """Change the state of the agent, and publish the change.

        Args:
            state: The new state.
            reason: The reason.
        """
        if state is self.state.agent_state:
            return
        self.state.agent_state = state
        if state in OVER:
            self._stop_run()
        elif state is not AgentState.RUNNING and self._run is not None:
            self._run.pause()
        if self.delegate is not None:
            await self.delegate.follow_parent(state, reason)
        self._publish_state(state, reason)
        self._notify()
        if self._parent is not None and state not in _WORKING:
            await self._parent.end_delegate(self)
        elif state is AgentState.RUNNING and self._requested is not None:
            self._start_if_possible(self._requested)

    async def follow_parent(self, parent_state: AgentState, reason: str) -> None:
        """Change the state of a delegate to match that of the delegating agent.

        Args:
            parent_state: The state of the delegating agent.
            reason: The reason for that state.
        """
        if parent_state in OVER:
            await self.set_agent_state_to(AgentState.STOPPED, reason)
        elif parent_state is AgentState.PAUSED:
            await self.set_agent_state_to(AgentState.PAUSED, reason)
        elif parent_state is AgentState.RUNNING and self.state.agent_state is AgentState.PAUSED:
            await self.set_agent_state_to(AgentState.RUNNING, reason)

    async def decide(self, decision: Decision) -> None:
        """Decide about the calls of the agent, or of its delegate, that wait for approval.

        Args:
            decision: The decision about all of them.
        """
        state = self.state.agent_state
        if self._run is not None and self._run.decide(decision):
            if state is AgentState.PAUSED:  # the calls are answered when the agent continues
                return
            decided = AgentState.USER_CONFIRMED if decision.approved else AgentState.USER_REJECTED
            await self.set_agent_state_to(decided, decision.message or "")
            await self.set_agent_state_to(AgentState.RUNNING, "the user has decided")
        elif self.delegate is not None:
            await self.delegate.decide(decision)
        else:
            text = f"No call waits for a decision; the state of the agent is {state.value}."
            self._events.publish_record(
                ErrorObservation(text, "invalid_event"), EventSource.ENVIRONMENT
            )

    def _stop_run(self) -> None:
        """Stop the run and its actions; their observations are only added to the history."""
        self._requested = None
        self._events.stop()
        work, run = self._work, self._run
        self._work = self._run = self._finishing = None
        if run is not None:
            run.drop()
        if work is not None:
            work.cancel()

    def __enter__(self) -> Self:
        """Wait until the controller is ready, and return it."""
        self._ready.result()
        return self

    def __exit__(self, *_: object) -> None:
        """Close the controller."""
        self.close()

    def close(self) -> None:
        """Close the controller from a thread without an event loop."""
        run_sync(self.aclose)

    async def aclose(self) -> None:
        """Stop all steps and unsubscribe. The state remains available."""
        if not self._closed:
            self._closed = True
            self._ready.resolve(None)
            known = self._subscription
            self._stream.unsubscribe(known.subscriber_id, known.callback_id)
        loop = self._loop
        if self.delegate is not None:
            await self.delegate.aclose()
        if loop is None or loop.is_closed():
            return
        if loop is asyncio.get_running_loop():
            await self._end_tasks()
        else:
            await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._end_tasks(), loop))

    async def _end_tasks(self) -> None:
        if self._run is not None:
            self._run.drop(is_closed=True)
        tasks = self._tasks - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        for task in tasks:
            await finish(task, name=self.agent.name)

    # --- events

    async def _handle(self, event: Event) -> None:
        if event.path != self._path or self._closed:
            return
        self._loop = asyncio.get_running_loop()
        if self.state.agent_state is AgentState.LOADING and not self.state.history:
            await self._load(event)
        self.state.history.append(event)
        is_answer = self._events.received(event)
        if asks_for_step(event):
            self._newest = event
        if event.type == ActionEvent.type:
            await self._handle_action(cast("ActionEvent[Any]", event))
        if asks_for_step(event) and not is_answer and self._is_awaited(event):
            self._requested = event
            if event.source is EventSource.USER:
                self._newest_message = event.id
                if self._resumes_for_messages():
                    await self._resume()
        elif event.cause is not None:
            self._recalls.discard(event.cause)
        if self._requested is not None:
            self._start_if_possible(self._requested)
        self._notify()

    def _is_awaited(self, event: Event) -> bool:
        """Return whether the agent waits for an observation, or the user caused it."""
        cause = event.cause
        if event.type != ObservationEvent.type or cause is None:
            return True
        if cause in self._recalls:
            self._recalls.discard(cause)
            return True
        sources = (past.source for past in reversed(self.state.history) if past.id == cause)
        return next(sources, None) is not EventSource.ENVIRONMENT

    def _resumes_for_messages(self) -> bool:
        """Return whether a message of the user starts or resumes the agent.

        A message does not decide about calls that wait for approval. The model gets it with the
        next request.
        """
        parent = self._parent
        is_paused = parent is not None and parent.state.agent_state is AgentState.PAUSED
        is_waiting = self.state.agent_state is AgentState.AWAITING_USER_CONFIRMATION
        return not is_paused and not is_waiting

    async def _resume(self) -> None:
        self._steps = 0
        await self.set_agent_state_to(AgentState.RUNNING, "the user sent a message")

    async def _load(self, first: Event) -> None:
        """Load the existing events of the stream, and become ready."""
        run_id: str | None = None
        if not self._path:
            try:
                before = await self._stream.read()
                if self._is_stored():
                    run_id = await self._events.unfinished_run()
            except Exception as error:
                self._ready.fail(error)
                raise
            self.state.history += [event for event in before if event.id < first.id]
        if run_id is None:
            await self.set_agent_state_to(AgentState.AWAITING_USER_INPUT, "ready")
        else:
            self._newest = next(filter(asks_for_step, reversed(self.state.history)), first)
            await self.set_agent_state_to(AgentState.RUNNING, "the run continues")
            self._start(run_id, resume=True)
        self._ready.resolve(None)

    async def _handle_action(self, event: ActionEvent[Any]) -> None:
        try:
            value = event.value if not is_runnable(event) else None
        except UserError as error:  # the published action is invalid
            self._events.publish_record(
                ErrorObservation(str(error), "invalid_event"), EventSource.ENVIRONMENT
            )
            return
        match value:
            case ChangeAgentStateAction(agent_state=AgentState.USER_CONFIRMED) as action:
                await self.decide(Decision(approved=True, message=action.reason or None))
            case ChangeAgentStateAction(agent_state=AgentState.USER_REJECTED) as action:
                await self.decide(Decision(approved=False, message=action.reason or None))
            case ChangeAgentStateAction() as action:
                await self.set_agent_state_to(action.agent_state, action.reason)
            case MessageAction() as action if event.source is EventSource.USER:
                if self._recall:
                    self._ask_memory(event, action)
            case MessageAction() as action if action.wait_for_response:
                if not self._is_older_than_message(event):
                    await self.set_agent_state_to(AgentState.AWAITING_USER_INPUT)
            case AgentThinkAction():
                self._events.answer(event, AgentThinkObservation(LOGGED))
            case AgentFinishAction() as action:
                await self._finish(event, action)
            case AgentRejectAction() as action:
                self.state.outputs = dict(action.outputs)
                await self.set_agent_state_to(AgentState.REJECTED, action.message)
            case AgentDelegateAction() as action:
                await self._start_delegate(event, action)
            case CondensationRequestAction():
                self._condense_history(event)
            case _:
                pass

    def _condense_history(self, event: Event) -> None:
        try:
            condensed = self._condense(self.state) if self._condense is not None else None
            if condensed is not None:
                self._events.publish_record(condensed, EventSource.AGENT, cause=event.id)
        except Exception as error:  # the agent continues with its whole history
            logger.exception("The history of agent %r was not condensed.", self.agent.name)
            text = f"The history was not condensed: {type(error).__name__}: {error}"
            failure = ErrorObservation(text, "condense")
            self._events.publish_record(failure, EventSource.ENVIRONMENT)

    def _is_older_than_message(self, answer: Event) -> bool:
        """Return whether the user sent a message after the request for an answer."""
        return answer.cause is not None and self._newest_message > answer.cause

    def _ask_memory(self, event: Event, action: MessageAction) -> None:
        name = RecallAction.__name__
        known = any(getattr(one, "kind", None) == name for one in self.state.history)
        kind: Literal["knowledge", "workspace_context"] = (
            "knowledge" if known else "workspace_context"
        )
        asked = self._events.publish_record(
            RecallAction(action.content, kind), EventSource.USER, cause=event.id
        )
        self._recalls.add(asked.id)

    # --- other agents

    async def _start_delegate(self, event: Event, action: AgentDelegateAction) -> None:
        agent = self._delegates.get(action.agent)
        if agent is None or len(self._path) >= _MAX_DEPTH or self.delegate is not None:
            known = ", ".join(self._delegates) or "none"
            text = f"There is no agent {action.agent!r}. Agents for delegation: {known}."
            if agent is not None:
                text = (
                    f"Delegate one task at a time, through at most {_MAX_DEPTH} levels of agents."
                )
            self._events.answer(event, AgentErrorObservation(text, "delegate"))
            return
        call_id = event.tool_call_id or f"action_{event.id}"
        pending = self._events.pending.get(event.id)
        self._delegated = event
        self.delegate = AgentController(
            self._stream,
            agent,
            delegates=self._delegates,
            context=self._context,
            max_iterations=self._max_iterations,
            run_config=self._config,
            hooks=self._hooks if pending is None else None,  # those of the run around it apply
            _parent=self,
            _path=(*self._path, call_id),
            _call=self._call_around(call_id) if pending is None else pending.record,
        )
        inputs = action.inputs
        task = str(inputs["task"]) if set(inputs) == {"task"} else json.dumps(inputs)
        self.delegate._events.publish_record(MessageAction(task), EventSource.USER, cause=event.id)  # noqa: SLF001 - its own class

    def _call_around(self, call_id: str) -> Call:
        """Return a record for the call of a delegate that no run has made."""
        around: ToolContext[Any] | None = None
        for one in (*self._path, call_id):
            around = ToolContext(tool_call_id=one, parent=around)
        return call_of(cast("ToolContext[Any]", around))

    async def end_delegate(self, delegate: AgentController) -> None:
        """Publish the result of a delegate; called by the delegate when it has ended.

        Args:
            delegate: The delegate.
        """
        state, event = delegate.state, self._delegated
        if delegate is not self.delegate or event is None or has_not_begun(state):
            return
        self.delegate, self._delegated = None, None
        text = last_words(state)
        failed = state.agent_state in {AgentState.ERROR, AgentState.STOPPED, AgentState.REJECTED}
        observation = AgentDelegateObservation(
            text, state.outputs, delegate.agent.name, is_error=failed
        )
        self._start_task(delegate.aclose())
        self._events.answer(event, observation)

    # --- the run

    def _start_if_possible(self, event: Event) -> None:
        """Start a run for an event, or remember the event if a step cannot start yet."""
        if self.should_step(event) and self._events.is_current:
            self._start(f"{self._events.run_prefix}{event.id}" if self._is_stored() else None)
        else:
            self._requested = None if self.state.agent_state in OVER else event

    def _is_stored(self) -> bool:
        return self._config is not None and self._config.store is not None and not self._path

    def _start(self, run_id: str | None, *, resume: bool = False) -> None:
        self._work = self._start_task(self._work_on(run_id, resume=resume))

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(
            work, name=f"work of {self.agent.name}", context=self._variables.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _work_on(self, run_id: str | None, *, resume: bool) -> None:
        """Run the agent until it has an answer, and publish the answer."""
        enter_scope(None)  # a controller that a tool has created is not a part of its call
        try:
            run = self._run = self._create_run(run_id, resume=resume)
            result = await run.execute()
        except asyncio.CancelledError as error:
            if is_cancelled():
                raise
            await self._fail(error)
        except Exception as error:  # noqa: BLE001 - the user decides how to continue
            await self._fail(error)
        else:
            if self._is_current():
                await self._conclude(run, run.answer_of(result))

    def _create_run(self, run_id: str | None, *, resume: bool) -> ControlledRun:
        agent = self.agent
        if self._delegates:
            agent = agent.clone(tools=[*agent.tools, delegate_tool(self._delegates)])
        config = self._config
        if config is not None and config.event_stream is self._stream:
            config = replace(config, event_stream=None)  # the run publishes its events itself
        return ControlledRun(
            self._events,
            agent,
            self._actions,
            self._items,
            before_step=self._before_step,
            on_waiting=self._await_confirmation,
            config=config,
            context=self._context,
            hooks=self._hooks,
            parent=self._call,
            usages=self._usages,
            run_id=run_id,
            resume=resume,
        )

    @property
    def _usages(self) -> list[Usage]:
        """The usage records of the agent and of those that delegate to it."""
        around = [] if self._parent is None else self._parent._usages  # noqa: SLF001 - its own class
        return [self.state.usage, *around]

    def _items(self) -> list[Item]:
        return items_of(self.state.history, self._path)

    async def _before_step(self, is_deciding: bool) -> Event:
        """Wait until a step can start, and return the event to which it reacts.

        Raises:
            MaxTurnsExceeded: The agent has used up its iterations.
        """
        while (
            self.state.agent_state is not AgentState.RUNNING
            or self._recalls
            or self.delegate is not None
            or not self._events.is_current
        ):
            self._changed.clear()
            await self._changed.wait()
        if not is_deciding:
            self._requested = None
            if self._steps >= self._max_iterations:
                raise MaxTurnsExceeded(
                    f"Agent {self.agent.name!r} exceeded its limit of {self._steps} steps. To "
                    "allow more, raise max_iterations."
                )
            self._steps += 1
            self.state.iteration += 1
        return cast("Event", self._newest)

    async def _await_confirmation(self) -> None:
        await self.set_agent_state_to(AgentState.AWAITING_USER_CONFIRMATION)

    async def _finish(self, event: Event, action: AgentFinishAction) -> None:
        """End the task: after the step, if a call of the agent does it."""
        answer = self._events.answer(event, NullObservation(action.message))
        pending = self._events.pending.get(event.id)
        if self._run is None or pending is None:
            self.state.outputs = dict(action.outputs)
            await self.set_agent_state_to(AgentState.FINISHED, action.final_thought)
            return
        pending.observation.set_result(answer)
        self._finishing, self._run.final_message = action, action.message
        self._events.stop()

    async def _conclude(self, run: ControlledRun, answer: str) -> None:
        """Publish the answer of a run that has ended."""
        action, newer = self._finishing, self._requested
        self._work = self._run = self._finishing = None
        if action is None:
            message = MessageAction(answer, wait_for_response=newer is None)
            self._events.publish_record(message, EventSource.AGENT, cause=run.cause)
            if newer is not None:
                self._start_if_possible(newer)
            return
        self.state.outputs = dict(action.outputs)
        await self.set_agent_state_to(AgentState.FINISHED, action.final_thought)
        if newer is not None and not self._path:
            self._requested = newer
            await self._resume()

    def _is_current(self) -> bool:
        return self._work is asyncio.current_task()

    async def _fail(self, error: BaseException) -> None:
        """Change to the state `error`, which the next message of the user ends."""
        logger.info("Agent %r failed.", self.agent.name, exc_info=error)
        if not self._is_current():
            return
        self._work = None
        self.state.last_error = f"{type(error).__name__}: {error}"
        self._events.publish_record(
            ErrorObservation(self.state.last_error, type(error).__name__), EventSource.AGENT
        )
        await self.set_agent_state_to(AgentState.ERROR, self.state.last_error)

    def _publish_state(self, state: AgentState, reason: str = "") -> None:
        observation = AgentStateChangedObservation("", state, reason)
        self._events.publish_record(observation, EventSource.ENVIRONMENT)

    def _notify(self) -> None:
        """Let a waiting run check whether a step can start."""
        loop = self._loop
        if loop is not None:
            call_on_loop(loop, self._changed.set)
