"""One run of an event-driven agent, from a message of the user to the answer.

`Run.step` asks the model and answers its calls, as in every run. A controller changes three things
of it, each in one place:

- **Steps.** `Run.execute` calls `ControlledRun._step` in place of `Run.step`. It waits until the
  controller allows a step, replaces the conversation by that of the stream, and repeats a request
  that was cancelled for a pause.
- **Calls.** `TurnCalls.perform` is `ControlledRun._perform`. A call that passed its checks is
  published as an action, and its outcome is the observation of that action: from a `ToolRuntime` on
  the same stream, or from the controller for `think`, `finish` and `delegate`.
- **Events.** The events of the run are published on the stream. The output of a call that did not
  become an action, for example because its arguments are invalid, is published as an observation.

Approvals, budgets, hooks, retries and durable steps are those of `Run`.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.agents.config import RunConfig, last_text
from agents_tools.agents.final_output import final_output_as_json
from agents_tools.agents.run import Run
from agents_tools.classes.event_types import (
    AgentErrorObservation,
    ErrorObservation,
    ToolObservation,
)
from agents_tools.content.items import ToolCallItem, ToolCallOutputItem, item_from_dict
from agents_tools.errors import UserError
from agents_tools.event_driven.controller.history import observation_outcome
from agents_tools.event_driven.runtime.dispatch import content_of
from agents_tools.events.envelope import EventSource
from agents_tools.events.kinds import MessageEvent, RunFinishedEvent, RunItemStreamEvent
from agents_tools.text.output import release_json
from agents_tools.tool.invocation import execute
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence

    from agents_tools.agents.agent import Agent
    from agents_tools.agents.config import RunHooks, RunResult
    from agents_tools.classes.action import Observation
    from agents_tools.content.items import Item
    from agents_tools.content.usage import Usage
    from agents_tools.event_driven.controller.actions import ActionReader
    from agents_tools.event_driven.controller.agent_stream import AgentStream
    from agents_tools.events.base import Event
    from agents_tools.tool.call import Call
    from agents_tools.tool.records import Decision

__all__ = ["ControlledRun"]

_STOPPED = "The agent was stopped before the call had a result."
_CORRECTABLE = {"invalid_args": "invalid_action", "denied": "denied"}
"""The error ids of the observations of calls that the agent can correct, by status."""


class ControlledRun:
    """Drives one run over a stream.

    Args:
        stream: The stream of the agent.
        agent: The agent.
        actions: Converts its calls to actions.
        history: Returns the conversation.
        before_step: Waits until a step can start, and returns the event to which the step reacts.
            It takes whether the step only answers calls that a person has decided about.
        on_waiting: Is awaited when calls wait for the decision of a person.
        config: The configuration.
        context: The application's object.
        hooks: The hooks of the run.
        parent: The call in which the agent works; `None` for the outermost agent.
        usages: The usage records that each response is added to.
        run_id: The id of the run; a new one by default.
        resume: Whether the store has the run.

    Attributes:
        final_message: The message with which a call ended the run; `None` if none did.
    """

    def __init__(
        self,
        stream: AgentStream,
        agent: Agent[Any, Any],
        actions: ActionReader,
        history: Callable[[], list[Item]],
        *,
        before_step: Callable[[bool], Awaitable[Event]],
        on_waiting: Callable[[], Awaitable[None]],
        config: RunConfig | None,
        context: object,
        hooks: RunHooks[Any] | None,
        parent: Call | None,
        usages: Sequence[Usage],
        run_id: str | None,
        resume: bool,
    ) -> None:
        self.final_message: str | None = None
        self._stream = stream
        self._actions = actions
        self._history = history
        self._before_step = before_step
        self._on_waiting = on_waiting
        self._is_dropped = self._is_closed = False
        self._is_paused = False
        self._task: asyncio.Task[None] | None = None
        self._trigger: Event | None = None
        self._calls: dict[str, Event] = {}
        self._published = set[str]()
        items = [] if resume else history()
        self._run = run = Run(
            agent,
            items,
            config=replace(config or RunConfig(), start_calls_early=False),
            context=context,
            max_turns=None,
            hooks=hooks,
            sinks=(self._publish,),
            quiet=True,
            parent=parent,
            run_id=run_id,
            resume=resume,
        )
        run.new_input = len(items)  # the stream has the conversation already
        if resume:
            self._missing = Counter(map(_form_of, history()))
            run.on_replayed = self._publish_missing
        run.usages += [usage for usage in usages if all(usage is not one for one in run.usages)]
        run.calls.perform = self._perform
        run.calls.has_background = False

    async def execute(self) -> RunResult[Any]:
        """Run to the end.

        Raises:
            Exception: The errors of `Run.execute`.
        """
        return await self._run.execute(self._step)

    def answer_of(self, result: RunResult[Any]) -> str:
        """Return the message to the user with the final output."""
        if result.raw_responses and not any(
            isinstance(item, ToolCallOutputItem) for item in self._run.history[-1:]
        ):
            return last_text(result.raw_responses[-1].items)
        output = final_output_as_json(result.final_output)
        return output if isinstance(output, str) else json.dumps(output, ensure_ascii=False)

    @property
    def cause(self) -> int | None:
        """The id of the event to which the last step reacted."""
        return None if self._trigger is None else self._trigger.id

    def pause(self) -> None:
        """Cancel the request to the model, if there is one; the step is repeated."""
        if self._run.is_asking and self._task is not None:
            self._is_paused = True
            self._task.cancel()

    def drop(self, *, is_closed: bool = False) -> None:
        """Publish nothing more except for the end of the run.

        Args:
            is_closed: Whether the end is not published either, so that the run can be resumed.
        """
        self._is_dropped = True
        self._is_closed = is_closed

    def decide(self, decision: Decision) -> bool:
        """Decide about all calls that wait; return whether there was one.

        A decision can follow the request at once, while other calls of the step still run.
        """
        needs_decision = self._run.needs_decision
        self._run.decide(decision)
        return needs_decision

    # --- steps

    async def _step(self) -> None:
        """Take one step, and the steps that answer calls after a decision about them."""
        run = self._run
        while True:
            self._trigger = await self._before_step(run.is_waiting)
            if not run.is_waiting and not run.is_replaying:
                run.replace_history(self._history())
            self._is_paused = False
            self._task = asyncio.create_task(run.step())
            try:
                await self._task
            except asyncio.CancelledError:
                if not self._is_paused or is_cancelled():
                    raise
                continue
            if self._is_dropped:  # the model ignored the cancellation
                raise asyncio.CancelledError
            if self.final_message is not None:
                run.end_with(self.final_message)
            if not run.is_waiting:
                return
            if run.needs_decision:
                await self._on_waiting()

    # --- calls

    async def _perform(self, call: Call) -> CallOutcome:
        """Publish a call as an action, and return the outcome that its observation reports."""
        if call.failure is not None:
            return await execute(call)
        try:
            action = self._actions.action_of(call)
        except UserError as error:
            return CallOutcome("invalid_args", None, str(error))
        pending = self._stream.publish_action(action, call, cast("Event", self._trigger).id)
        self._published.add(call.tool_call_id)
        seconds = self._run.calls.time_limit(call.tool)
        observation: Event | None = None
        try:
            async with asyncio.timeout(seconds):
                observation = await pending.observation
        except TimeoutError:
            text = f"Tool {call.tool_name!r} timed out after {seconds:g} s. It was stopped."
            self._stream.answer(pending.event, ErrorObservation(text, "timeout"))
            return CallOutcome("timeout", None, text)
        finally:
            self._stream.pending.pop(pending.event.id, None)
            if observation is None and not self._is_closed:
                self._stream.kill(pending.event)
        if observation is None:
            return CallOutcome("cancelled", None, _STOPPED)
        return observation_outcome(cast("Any", observation))

    # --- events

    def _publish_missing(self, event: Event) -> None:
        """Publish an item that an earlier process has recorded, but not published."""
        _, item = _item_of(event)
        form = _form_of(cast("Item", item_from_dict(item)))
        self._missing[form] -= 1
        if self._missing[form] < 0:
            self._publish(event)

    def _publish(self, event: Event) -> None:
        """Publish an event of the run."""
        is_end = isinstance(event, RunFinishedEvent)
        if self._is_closed or (self._is_dropped and not is_end):
            return
        name, item = _item_of(event)
        if name == "tool_output":
            self._publish_output(cast("ToolCallOutputItem", item_from_dict(item)))
        elif event.type != MessageEvent.type:  # the stream has the messages of the user already
            published = self._stream.publish_from(event, EventSource.AGENT, self.cause)
            if name == "tool_called":
                self._calls[item["call_id"]] = published

    def _publish_output(self, output: ToolCallOutputItem) -> None:
        """Publish the output of a call, unless it is the observation of an action."""
        if output.call_id in self._published:
            return
        content = content_of(output.output)
        observation: Observation = ErrorObservation(content, output.status)
        if output.status == "ok":  # a call that the model repeated has the output of the first one
            observation = ToolObservation(content, output.name)
        elif output.status in _CORRECTABLE:
            observation = AgentErrorObservation(content, _CORRECTABLE[output.status])
        event = self._calls.get(output.call_id) or cast("Event", self._trigger)
        call = (output.name, output.call_id)
        self._stream.answer(event, observation, source=EventSource.AGENT, call=call)


def _item_of(event: Any) -> tuple[str, dict[str, Any]]:
    """Return the name and the JSON form of the item of an event; empty for other events."""
    return (event.name, event.item) if event.type == RunItemStreamEvent.type else ("", {})


def _form_of(item: Item) -> str:
    """Return the form of an item on a stream, without secrets, to compare it."""
    if isinstance(item, ToolCallItem):  # its texts can have changed
        return f"{item.type} {item.call_id}"
    if isinstance(item, ToolCallOutputItem):  # a lost output does not stand for a real one
        return f"{item.type} {item.call_id} {item.status == 'lost'}"
    return json.dumps(release_json(item.to_dict(), to="program", patterns=True), sort_keys=True)


def is_cancelled() -> bool:
    """Return whether the current task is being cancelled."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
