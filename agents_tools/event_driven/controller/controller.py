"""The controller, which runs the steps of an event-driven agent and stores its state."""

from __future__ import annotations

import asyncio
import json
import logging
from contextvars import copy_context
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Literal, Self, cast

from agents_tools.agents.config import last_text
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
    CmdKillAction,
    CondensationRequestAction,
    ErrorObservation,
    MessageAction,
    NullObservation,
    RecallAction,
    event_of,
    is_runnable,
)
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.supervisor import finish
from agents_tools.content.items import MessageOutputItem, ToolCallItem
from agents_tools.errors import MaxTurnsExceeded, UserError, UserValueError
from agents_tools.event_driven.controller.history import items_of
from agents_tools.event_driven.controller.model_step import Wishes, ask
from agents_tools.event_driven.controller.state import (
    OVER,
    State,
    asks_for_step,
    has_not_begun,
    last_words,
)
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import (
    ActionEvent,
    MessageEvent,
    ObservationEvent,
    RunItemStreamEvent,
)
from agents_tools.persistence import EventFilter, PendingFuture
from agents_tools.persistence.stream import EventStream, EventStreamSubscriber
from agents_tools.tool.run_context import RunContextWrapper

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping

    from agents_tools.agents.agent import Agent
    from agents_tools.agents.model import ModelResponse
    from agents_tools.agents.toolbox import Toolbox
    from agents_tools.classes.action import Action, Observation
    from agents_tools.events.base import Event

__all__ = ["AgentController"]

logger = logging.getLogger("agents_tools")

_MAX_DEPTH = 5
_SUBSCRIBED = EventFilter(
    types=(ActionEvent.type, ObservationEvent.type, MessageEvent.type, RunItemStreamEvent.type)
)
LOGGED = "Your thought has been logged."


class AgentController:
    """Runs an agent with the events of a stream.

    A message of the user starts a step: the controller sends one request to the model, and
    publishes its tool calls as actions. A `ToolRuntime` on the same stream executes them. When all
    actions have an observation, the next step starts. `ChangeAgentStateAction` stops or pauses the
    agent at once, even during a step.

    Args:
        stream: The stream.
        agent: The agent. A runtime executes its tools; the controller handles `think` and `finish`.
        delegates: The agents to which it can delegate tasks, by name.
        context: The `ctx.context` of instructions.
        max_iterations: The maximum number of steps without a new message of the user.
        recall: Whether the memory is queried for each message of the user. This needs a
            `MemorySubscriber` on the stream.
        condense: Returns a `CondensationAction` for the state when a condensation is requested.

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
        _parent: AgentController | None = None,
        _path: tuple[str, ...] = (),
    ) -> None:
        if max_iterations < 1:
            raise UserValueError(
                f"max_iterations= is invalid: expected a positive integer, got {max_iterations}."
            )
        self.agent = agent
        self.state = State()
        self.delegate: AgentController | None = None
        self._stream = stream
        self._delegates = dict(delegates or {})
        self._context: RunContextWrapper[Any] = RunContextWrapper(context, self.state.usage)
        self._max_iterations = max_iterations
        self._recall = recall
        self._condense = condense
        self._parent = _parent
        self._path = _path
        self._pending: dict[int, str] = {}
        self._abandoned: set[int] = set()
        self._delegated: Event | None = None
        self._requested: Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._current_step: tuple[asyncio.Task[None], Event] | None = None
        self._steps = 0
        self._last_received = (
            self._last_published
        ) = -1  # the ids of the last own events received and published
        self._closed = False
        self._ready: PendingFuture[None] = PendingFuture()
        self._variables = copy_context()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._actions = Wishes(agent, self._delegates)
        self._subscription = stream.subscribe(
            EventStreamSubscriber.AGENT_CONTROLLER,
            self._handle,
            f"controller-{id(self):x}",
            where=_SUBSCRIBED,
        )
        self._publish_record(
            AgentStateChangedObservation("", AgentState.LOADING), EventSource.ENVIRONMENT
        )

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
            and not self._pending
            and self.delegate is None
            and self._current_step is None
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
        if state is not AgentState.RUNNING and self._current_step is not None:
            step, self._requested = self._current_step  # repeated if the agent continues
            self._current_step = None
            step.cancel()
        if state in OVER:
            self._stop_pending()
        if self.delegate is not None:
            await self.delegate.follow_parent(state, reason)
        self._publish_record(
            AgentStateChangedObservation("", state, reason), EventSource.ENVIRONMENT
        )
        if self._parent is not None and state not in {AgentState.RUNNING, AgentState.PAUSED}:
            await self._parent.end_delegate(self)
        elif state is AgentState.RUNNING and self._requested is not None:
            self._step_if_possible(self._requested)

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

    def _stop_pending(self) -> None:
        """Stop the pending actions; their observations are only added to the history."""
        for action_id in self._pending.keys() - {getattr(self._delegated, "id", None)}:
            self._publish_record(CmdKillAction(action_id), EventSource.ENVIRONMENT, hidden=True)
        self._abandoned |= self._pending.keys()
        self._pending.clear()
        self._requested = None

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
        self._last_received = event.id
        if event.type == ActionEvent.type:
            await self._handle_action(cast("ActionEvent[Any]", event))
        if asks_for_step(event) and self._is_awaited(event):
            self._requested = event
            if event.source is EventSource.USER and not self._is_parent_paused():
                await self._resume()
        elif event.cause is not None:
            self._pending.pop(event.cause, None)
        if self._requested is not None:
            self._step_if_possible(self._requested)

    def _is_awaited(self, event: Event) -> bool:
        """Return whether the agent waits for an observation, or the user caused it."""
        cause = event.cause
        if event.type != ObservationEvent.type or cause is None:
            return True
        if self._pending.pop(cause, None) is not None:
            return True
        if cause in self._abandoned:
            self._abandoned.discard(cause)
            return False
        sources = (past.source for past in reversed(self.state.history) if past.id == cause)
        return next(sources, None) is not EventSource.ENVIRONMENT

    def _is_parent_paused(self) -> bool:
        """Return whether the delegating agent is paused."""
        return self._parent is not None and self._parent.state.agent_state is AgentState.PAUSED

    async def _resume(self) -> None:
        self._steps = 0
        await self.set_agent_state_to(AgentState.RUNNING, "the user sent a message")

    async def _load(self, first: Event) -> None:
        """Load the existing events of the stream, and become ready."""
        if not self._path:
            try:
                before = await self._stream.read()
            except Exception as error:
                self._ready.fail(error)
                raise
            self.state.history += [event for event in before if event.id < first.id]
        await self.set_agent_state_to(AgentState.AWAITING_USER_INPUT, "ready")
        self._ready.resolve(None)

    def _step_if_possible(self, event: Event) -> None:
        """Start a step for an event, or remember the event if the step cannot start yet."""
        if not self.should_step(event) or self._last_received < self._last_published:
            self._requested = None if self.state.agent_state in OVER else event
            return
        self._requested = None
        self._current_step = (self._start_task(self._step(event)), event)

    def _start_task(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(
            work, name=f"step of {self.agent.name}", context=self._variables.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _handle_action(self, event: ActionEvent[Any]) -> None:
        try:
            value = event.value if not is_runnable(event) else None
        except UserError as error:  # the published action is invalid
            self._publish_record(
                ErrorObservation(str(error), "invalid_event"), EventSource.ENVIRONMENT
            )
            return
        match value:
            case ChangeAgentStateAction() as action:
                await self.set_agent_state_to(action.agent_state, action.reason)
            case MessageAction() as action if event.source is EventSource.USER:
                if self._recall:
                    self._ask_memory(event, action)
            case MessageAction() as action if action.wait_for_response:
                if self._newer_user_message(event) is not None:
                    return
                await self.set_agent_state_to(AgentState.AWAITING_USER_INPUT)
            case AgentThinkAction():
                self._answer(event, AgentThinkObservation(LOGGED))
            case AgentFinishAction() as action:
                await self._finish(event, action)
            case AgentRejectAction() as action:
                self.state.outputs = dict(action.outputs)
                await self.set_agent_state_to(AgentState.REJECTED, action.message)
            case AgentDelegateAction() as action:
                await self._start_delegate(event, action)
            case CondensationRequestAction():
                condensed = self._condense(self.state) if self._condense is not None else None
                if condensed is not None:
                    self._publish_record(condensed, EventSource.AGENT, cause=event.id)
            case _:
                pass

    async def _finish(self, event: Event, action: AgentFinishAction) -> None:
        self._answer(event, NullObservation(action.message))
        self._pending.pop(event.id, None)
        self.state.outputs = dict(action.outputs)
        newer = self._newer_user_message(event)
        await self.set_agent_state_to(AgentState.FINISHED, action.final_thought)
        if newer is not None and not self._path:
            self._requested = newer
            await self._resume()

    def _newer_user_message(self, answer: Event) -> Event | None:
        """Return a message that the user sent after the request for an answer, if any."""
        newest = self._requested or (
            self._current_step[1] if self._current_step is not None else None
        )
        if newest is None or answer.cause is None or newest.source is not EventSource.USER:
            return None
        return newest if newest.id > answer.cause else None

    def _ask_memory(self, event: Event, action: MessageAction) -> None:
        name = RecallAction.__name__
        known = any(getattr(one, "kind", None) == name for one in self.state.history)
        kind: Literal["knowledge", "workspace_context"] = (
            "knowledge" if known else "workspace_context"
        )
        asked = self._publish_record(
            RecallAction(action.content, kind), EventSource.USER, cause=event.id
        )
        self._pending[asked.id] = ""

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
            self._answer(event, AgentErrorObservation(text, "delegate"))
            return
        call_id = event.tool_call_id or f"action_{event.id}"
        self._delegated = event
        self.delegate = AgentController(
            self._stream,
            agent,
            delegates=self._delegates,
            context=self._context.context,
            max_iterations=self._max_iterations,
            _parent=self,
            _path=(*self._path, call_id),
        )
        inputs = action.inputs
        task = str(inputs["task"]) if set(inputs) == {"task"} else json.dumps(inputs)
        self.delegate._publish_record(MessageAction(task), EventSource.USER, cause=event.id)  # noqa: SLF001 - its own class

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
        self.state.usage.add(state.usage)
        self._start_task(delegate.aclose())
        self._answer(event, observation)

    # --- a step

    async def _step(self, event: Event) -> None:
        """Send one request to the model, and publish the response."""
        try:
            self._count()
            items = items_of(self.state.history, self._path)
            box = await self.agent.toolbox(self._context)
            response, provider = await ask(
                self.agent, items, self._context, box, self._delegates, self._emit
            )
            self.state.usage.add(response.usage)
            if not self._is_current():  # the model ignored the cancellation
                return
            self._publish(response, box, event, provider)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            await self._fail(error)
        except Exception as error:  # noqa: BLE001 - the user decides how to continue
            await self._fail(error)
        else:
            self._current_step = None

    def _is_current(self) -> bool:
        return self._current_step is not None and self._current_step[0] is asyncio.current_task()

    async def _fail(self, error: BaseException) -> None:
        """Change to the state `error`, which the next message of the user ends."""
        logger.info("Agent %r failed.", self.agent.name, exc_info=error)
        if not self._is_current():
            return
        self._current_step = None
        self.state.last_error = f"{type(error).__name__}: {error}"
        self._publish_record(
            ErrorObservation(self.state.last_error, type(error).__name__), EventSource.AGENT
        )
        await self.set_agent_state_to(AgentState.ERROR, self.state.last_error)

    def _count(self) -> None:
        if self._steps >= self._max_iterations:
            raise MaxTurnsExceeded(
                f"Agent {self.agent.name!r} exceeded its limit of {self._steps} steps. To allow "
                "more, raise max_iterations."
            )
        self._steps += 1
        self.state.iteration += 1

    def _publish(
        self, response: ModelResponse, box: Toolbox, event: Event, provider: str | None
    ) -> None:
        """Publish the items of a response for the history, then its calls as actions."""
        calls: list[tuple[ToolCallItem, Event]] = []
        for response_item in response.items:
            item: Any = replace(cast("Any", response_item), agent=self.agent.name)
            name = _NAMES.get(item.type, "reasoning_item_created")
            item_event = RunItemStreamEvent[Any](name, item.to_dict())
            published = self._publish_event(item_event.attach(item), EventSource.AGENT, event.id)
            if isinstance(item, ToolCallItem) and item.needs_answer:
                calls.append((item, published))
        for item, published in calls:
            if response.truncation is not None:
                self._refuse(item, published, response.truncation)
            else:
                self._act(item, published, box, provider)
        if not calls:
            action = MessageAction(
                last_text(response.items), wait_for_response=self._requested is None
            )
            self._publish_record(action, EventSource.AGENT, cause=event.id)

    def _act(
        self, call: ToolCallItem, item_event: Event, box: Toolbox, provider: str | None
    ) -> None:
        """Publish a call as an action, and mark it as pending."""
        origin = Origin(call.name, call.call_id, self._path, EventSource.AGENT)
        try:
            action = self._actions.action_of(call, box, provider)
        except (ValueError, UserError) as error:
            self._refuse(call, item_event, str(error))
            return
        published = self._publish_tracked(action.replace(cause=item_event.cause, origin=origin))
        self._pending[published.id] = call.call_id

    def _refuse(self, call: ToolCallItem, item_event: Event, reason: str) -> None:
        """Answer a call that does not become an action."""
        self._pending[item_event.id] = call.call_id
        origin = Origin(call.name, call.call_id, self._path, EventSource.AGENT)
        observation = event_of(AgentErrorObservation(reason, "invalid_action"))
        self._publish_tracked(observation.replace(cause=item_event.id, origin=origin))

    # --- the stream

    def _answer(self, event: Event, observation: Observation) -> None:
        origin = Origin(event.tool_name, event.tool_call_id, self._path, EventSource.ENVIRONMENT)
        self._publish_tracked(event_of(observation).replace(cause=event.id, origin=origin))

    def _publish_record(
        self,
        value: Action | Observation,
        source: EventSource,
        *,
        cause: int | None = None,
        hidden: bool | None = None,
    ) -> Event:
        return self._publish_event(event_of(value, hidden=hidden), source, cause)

    def _publish_event(self, event: Event, source: EventSource, cause: int | None) -> Event:
        origin = Origin(path=self._path, source=source)
        return self._publish_tracked(event.replace(cause=cause, origin=origin))

    def _publish_tracked(self, event: Event) -> Event:
        """Publish an event. No step starts before the event is received and in the history."""
        published = self._stream.publish(event)
        if _SUBSCRIBED.accepts(event):
            self._last_published = max(self._last_published, published.id)
        return published

    def _emit(self, event: Event) -> None:
        origin = Origin(path=self._path, source=EventSource.AGENT)
        self._stream.publish(event.replace(origin=origin))


_NAMES = {MessageOutputItem.type: "message_output_created", ToolCallItem.type: "tool_called"}


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
