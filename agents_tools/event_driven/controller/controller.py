"""Steps an agent when an event asks for it, and keeps its state."""

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
_HEARD = EventFilter(
    types=(ActionEvent.type, ObservationEvent.type, MessageEvent.type, RunItemStreamEvent.type)
)
LOGGED = "Your thought has been logged."


class AgentController:
    """Drives an agent by the events of a stream, in a conversation that others may join.

    A message of the user lets the agent take a step: its model is asked once, and what it wants to
    do is published as actions. A `ToolRuntime` on the same stream carries them out; when all of
    them have been observed, the agent takes the next step. `ChangeAgentStateAction` stops or pauses
    it at once, also in the middle of a step.

    Args:
        stream: The stream.
        agent: The agent. Its tools are carried out by a runtime; `think` and `finish` mean what
            their names say.
        delegates: The agents that it may give tasks to, by name.
        context: What instructions see as `ctx.context`.
        max_iterations: How many steps it may take without a new message of the user.
        recall: Whether what the user says is first recalled; a `MemorySubscriber` has to be there.
        condense: Makes a `CondensationAction` of the state, when that is asked for.

    Attributes:
        state: What it knows.
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
        _above: AgentController | None = None,
        _path: tuple[str, ...] = (),
    ) -> None:
        if max_iterations < 1:
            raise UserValueError(f"max_iterations is at least 1, not {max_iterations}.")
        self.agent = agent
        self.state = State()
        self.delegate: AgentController | None = None
        self._stream = stream
        self._delegates = dict(delegates or {})
        self._context: RunContextWrapper[Any] = RunContextWrapper(context, self.state.usage)
        self._max_iterations = max_iterations
        self._recall = recall
        self._condense = condense
        self._above = _above
        self._path = _path
        self._pending: dict[int, str] = {}
        self._given_up: set[int] = set()
        self._delegated: Event | None = None
        self._wanted: Event | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._stepping: tuple[asyncio.Task[None], Event] | None = None
        self._steps = 0
        self._taken = self._said = -1  # the last events of its own that came, and that it published
        self._closed = False
        self._ready: PendingFuture[None] = PendingFuture()
        self._own = copy_context()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._wishes = Wishes(agent, self._delegates)
        self._subscription = stream.subscribe(
            EventStreamSubscriber.AGENT_CONTROLLER,
            self._take,
            f"controller-{id(self):x}",
            where=_HEARD,
        )
        self._say(AgentStateChangedObservation("", AgentState.LOADING), EventSource.ENVIRONMENT)

    async def __aenter__(self) -> Self:
        """Return itself, ready."""
        await self._ready
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close it."""
        await self.aclose()

    def should_step(self, event: Event) -> bool:
        """Return whether the agent takes a step because of an event, as things are.

        Args:
            event: The event.
        """
        return (
            asks_for_step(event)
            and event.path == self._path
            and self.state.agent_state is AgentState.RUNNING
            and not self._pending
            and self.delegate is None
            and self._stepping is None
        )

    async def set_agent_state_to(self, state: AgentState, reason: str = "") -> None:
        """Bring the agent into another state, and say so on the stream.

        Args:
            state: The state.
            reason: Why.
        """
        if state is self.state.agent_state:
            return
        self.state.agent_state = state
        if state is not AgentState.RUNNING and self._stepping is not None:
            step, self._wanted = self._stepping  # to be taken again, if the agent goes on
            self._stepping = None
            step.cancel()
        if state in OVER:
            self._stop_pending()
        if self.delegate is not None:
            await self.delegate.follow_above(state, reason)
        self._say(AgentStateChangedObservation("", state, reason), EventSource.ENVIRONMENT)
        if self._above is not None and state not in {AgentState.RUNNING, AgentState.PAUSED}:
            await self._above.end_delegate(self)
        elif state is AgentState.RUNNING and self._wanted is not None:
            self._consider(self._wanted)

    async def follow_above(self, above: AgentState, reason: str) -> None:
        """Be in the state that fits the one of the agent that has given the task.

        Args:
            above: The state of that agent.
            reason: Why it is in it.
        """
        if above in OVER:
            await self.set_agent_state_to(AgentState.STOPPED, reason)
        elif above is AgentState.PAUSED:
            await self.set_agent_state_to(AgentState.PAUSED, reason)
        elif above is AgentState.RUNNING and self.state.agent_state is AgentState.PAUSED:
            await self.set_agent_state_to(AgentState.RUNNING, reason)

    def _stop_pending(self) -> None:
        """Stop what others do for the agent; their observations are for the history only."""
        for action_id in self._pending.keys() - {getattr(self._delegated, "id", None)}:
            self._say(CmdKillAction(action_id), EventSource.ENVIRONMENT, hidden=True)
        self._given_up |= self._pending.keys()
        self._pending.clear()
        self._wanted = None

    def __enter__(self) -> Self:
        """Return itself, ready."""
        self._ready.result()
        return self

    def __exit__(self, *_: object) -> None:
        """Close it."""
        self.close()

    def close(self) -> None:
        """Do what `aclose` does, from a thread that runs no event loop."""
        run_sync(self.aclose)

    async def aclose(self) -> None:
        """Stop stepping, and listen no more; the state stays."""
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

    async def _take(self, event: Event) -> None:
        if event.path != self._path or self._closed:
            return
        self._loop = asyncio.get_running_loop()
        if self.state.agent_state is AgentState.LOADING and not self.state.history:
            await self._begin(event)
        self.state.history.append(event)
        self._taken = event.id
        if event.type == ActionEvent.type:
            await self._take_action(cast("ActionEvent[Any]", event))
        if asks_for_step(event) and self._is_awaited(event):
            self._wanted = event
            if event.source is EventSource.USER and not self._is_held():
                await self._go_on()
        elif event.cause is not None:
            self._pending.pop(event.cause, None)
        if self._wanted is not None:
            self._consider(self._wanted)

    def _is_awaited(self, event: Event) -> bool:
        """Return whether somebody waits for an observation.

        The agent, or the user who has acted.
        """
        cause = event.cause
        if event.type != ObservationEvent.type or cause is None:
            return True
        if self._pending.pop(cause, None) is not None:
            return True
        if cause in self._given_up:
            self._given_up.discard(cause)
            return False
        said = (one.source for one in reversed(self.state.history) if one.id == cause)
        return next(said, None) is not EventSource.ENVIRONMENT

    def _is_held(self) -> bool:
        """Return whether the agent that has given the task is paused."""
        return self._above is not None and self._above.state.agent_state is AgentState.PAUSED

    async def _go_on(self) -> None:
        self._steps = 0
        await self.set_agent_state_to(AgentState.RUNNING, "the user has said something")

    async def _begin(self, first: Event) -> None:
        """Take over what the stream already holds, and be ready."""
        if not self._path:
            try:
                before = await self._stream.read()
            except Exception as error:
                self._ready.fail(error)
                raise
            self.state.history += [event for event in before if event.id < first.id]
        await self.set_agent_state_to(AgentState.AWAITING_USER_INPUT, "ready")
        self._ready.resolve(None)

    def _consider(self, event: Event) -> None:
        """Take a step if the event asks for one; if it cannot be taken yet, later."""
        if not self.should_step(event) or self._taken < self._said:
            self._wanted = None if self.state.agent_state in OVER else event
            return
        self._wanted = None
        self._stepping = (self._begun(self._step(event)), event)

    def _begun(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.get_running_loop().create_task(
            work, name=f"step of {self.agent.name}", context=self._own.copy()
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _take_action(self, event: ActionEvent[Any]) -> None:
        try:
            value = event.value if not is_runnable(event) else None
        except UserError as error:  # somebody has published what is no action
            self._say(ErrorObservation(str(error), "invalid_event"), EventSource.ENVIRONMENT)
            return
        match value:
            case ChangeAgentStateAction() as action:
                await self.set_agent_state_to(action.agent_state, action.reason)
            case MessageAction() as action if event.source is EventSource.USER:
                if self._recall:
                    self._ask_memory(event, action)
            case MessageAction() as action if action.wait_for_response:
                if self._user_said_since(event) is not None:
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
                made = self._condense(self.state) if self._condense is not None else None
                if made is not None:
                    self._say(made, EventSource.AGENT, cause=event.id)
            case _:
                pass

    async def _finish(self, event: Event, action: AgentFinishAction) -> None:
        self._answer(event, NullObservation(action.message))
        self._pending.pop(event.id, None)
        self.state.outputs = dict(action.outputs)
        more = self._user_said_since(event)
        await self.set_agent_state_to(AgentState.FINISHED, action.final_thought)
        if more is not None and not self._path:
            self._wanted = more
            await self._go_on()

    def _user_said_since(self, answer: Event) -> Event | None:
        """Return what the user said while the agent came to an answer that does not regard it."""
        newest = self._wanted or (self._stepping[1] if self._stepping is not None else None)
        if newest is None or answer.cause is None or newest.source is not EventSource.USER:
            return None
        return newest if newest.id > answer.cause else None

    def _ask_memory(self, event: Event, action: MessageAction) -> None:
        name = RecallAction.__name__
        known = any(getattr(one, "kind", None) == name for one in self.state.history)
        kind: Literal["knowledge", "workspace_context"] = (
            "knowledge" if known else "workspace_context"
        )
        asked = self._say(RecallAction(action.content, kind), EventSource.USER, cause=event.id)
        self._pending[asked.id] = ""

    # --- other agents

    async def _start_delegate(self, event: Event, action: AgentDelegateAction) -> None:
        agent = self._delegates.get(action.agent)
        if agent is None or len(self._path) >= _MAX_DEPTH or self.delegate is not None:
            known = ", ".join(self._delegates) or "none"
            text = f"There is no agent {action.agent!r} to give tasks to. There are: {known}."
            if agent is not None:
                text = "One task is given away at a time, and not from agent to agent for ever."
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
            _above=self,
            _path=(*self._path, call_id),
        )
        inputs = action.inputs
        task = str(inputs["task"]) if set(inputs) == {"task"} else json.dumps(inputs)
        self.delegate._say(MessageAction(task), EventSource.USER, cause=event.id)  # noqa: SLF001 - its own class

    async def end_delegate(self, delegate: AgentController) -> None:
        """Take what a delegate has made of its task; called by the delegate when it has ended.

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
        self._begun(delegate.aclose())
        self._answer(event, observation)

    # --- a step

    async def _step(self, event: Event) -> None:
        """Ask the model once, and publish what it wants."""
        try:
            self._count()
            items = items_of(self.state.history, self._path)
            box = await self.agent.toolbox(self._context)
            response, provider = await ask(
                self.agent, items, self._context, box, self._delegates, self._emit
            )
            self.state.usage.add(response.usage)
            if not self._is_current():  # a model that did not let itself be stopped
                return
            self._publish(response, box, event, provider)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            await self._fail(error)
        except Exception as error:  # noqa: BLE001 - the agent is told to go on, or not
            await self._fail(error)
        else:
            self._stepping = None

    def _is_current(self) -> bool:
        return self._stepping is not None and self._stepping[0] is asyncio.current_task()

    async def _fail(self, error: BaseException) -> None:
        """Be in state `error`, which a message of the user ends."""
        logger.info("Agent %r failed.", self.agent.name, exc_info=error)
        if not self._is_current():
            return
        self._stepping = None
        self.state.last_error = f"{type(error).__name__}: {error}"
        self._say(ErrorObservation(self.state.last_error, type(error).__name__), EventSource.AGENT)
        await self.set_agent_state_to(AgentState.ERROR, self.state.last_error)

    def _count(self) -> None:
        if self._steps >= self._max_iterations:
            raise MaxTurnsExceeded(
                f"Agent {self.agent.name!r} did not come to an end within {self._steps} steps "
                "(max_iterations)."
            )
        self._steps += 1
        self.state.iteration += 1

    def _publish(
        self, response: ModelResponse, box: Toolbox, event: Event, provider: str | None
    ) -> None:
        """Publish an answer: first as it is, for the history; then as actions."""
        calls: list[tuple[ToolCallItem, Event]] = []
        for given in response.items:
            item: Any = replace(cast("Any", given), agent=self.agent.name)
            name = _NAMES.get(item.type, "reasoning_item_created")
            said = RunItemStreamEvent[Any](name, item.to_dict())
            published = self._put(said.attach(item), EventSource.AGENT, event.id)
            if isinstance(item, ToolCallItem) and item.needs_answer:
                calls.append((item, published))
        for item, published in calls:
            self._act(item, published, box, provider)
        if not calls:
            action = MessageAction(
                last_text(response.items), wait_for_response=self._wanted is None
            )
            self._say(action, EventSource.AGENT, cause=event.id)

    def _act(self, call: ToolCallItem, said: Event, box: Toolbox, provider: str | None) -> None:
        """Publish a call as an action, and wait for what is observed."""
        origin = Origin(call.name, call.call_id, self._path, EventSource.AGENT)
        try:
            action = self._wishes.action_of(call, box, provider)
        except (ValueError, UserError) as error:
            self._pending[said.id] = call.call_id
            observation = AgentErrorObservation(str(error), "invalid_action")
            self._note(event_of(observation).replace(cause=said.id, origin=origin))
            return
        published = self._note(action.replace(cause=said.cause, origin=origin))
        self._pending[published.id] = call.call_id

    # --- the stream

    def _answer(self, event: Event, observation: Observation) -> None:
        origin = Origin(event.tool_name, event.tool_call_id, self._path, EventSource.ENVIRONMENT)
        self._note(event_of(observation).replace(cause=event.id, origin=origin))

    def _say(
        self,
        value: Action | Observation,
        source: EventSource,
        *,
        cause: int | None = None,
        hidden: bool | None = None,
    ) -> Event:
        return self._put(event_of(value, hidden=hidden), source, cause)

    def _put(self, event: Event, source: EventSource, cause: int | None) -> Event:
        origin = Origin(path=self._path, source=source)
        return self._note(event.replace(cause=cause, origin=origin))

    def _note(self, event: Event) -> Event:
        """Publish an event; no step is taken before it has come back and is part of the history."""
        published = self._stream.publish(event)
        if _HEARD.accepts(event):
            self._said = max(self._said, published.id)
        return published

    def _emit(self, event: Event) -> None:
        origin = Origin(path=self._path, source=EventSource.AGENT)
        self._stream.publish(event.replace(origin=origin))


_NAMES = {MessageOutputItem.type: "message_output_created", ToolCallItem.type: "tool_called"}


def _is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
