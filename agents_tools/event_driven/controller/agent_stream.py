"""The stream as one agent sees it: events under its path, and the observations it waits for."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, cast

from agents_tools.classes.event_types import CmdKillAction, event_of, is_runnable
from agents_tools.events.envelope import EventSource, Origin
from agents_tools.events.kinds import (
    ActionEvent,
    MessageEvent,
    ObservationEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
)
from agents_tools.persistence import EventFilter

if TYPE_CHECKING:
    from agents_tools.classes.action import Action, Observation
    from agents_tools.events.base import Event
    from agents_tools.persistence.stream import EventStream
    from agents_tools.tool.call import Call

__all__ = ["SUBSCRIBED", "AgentStream", "PendingAction"]

SUBSCRIBED: Final = EventFilter(
    types=(ActionEvent.type, ObservationEvent.type, MessageEvent.type, RunItemStreamEvent.type)
)
"""The events that a controller receives."""
_RUNS: Final = EventFilter(types=(RunStartedEvent.type, RunFinishedEvent.type))


@dataclass(slots=True, kw_only=True)
class PendingAction:
    """A call that was published as an action.

    Attributes:
        event: The event of the action.
        record: The record of the call.
        observation: The observation; `None` if the agent was stopped first.
    """

    event: Event
    record: Call
    observation: asyncio.Future[Event | None] = field(
        default_factory=lambda: asyncio.get_running_loop().create_future()
    )


class AgentStream:
    """Publishes the events of one agent, and receives the observations of its actions.

    Args:
        stream: The stream.
        path: The ids of the calls that lead to the agent.

    Attributes:
        pending: The actions that wait for their observations, by event id.
    """

    def __init__(self, stream: EventStream, path: tuple[str, ...]) -> None:
        self.path = path
        self.pending: dict[int, PendingAction] = {}
        self._stream = stream
        self._answered: set[int] = set()
        self._last_received = self._last_published = -1

    @property
    def run_prefix(self) -> str:
        """The start of the ids of runs with a store on the stream."""
        return f"run_{self._stream.sid}_"

    async def unfinished_run(self) -> str | None:
        """Return the id of the last run if it is durable and has not ended; `None` otherwise.

        The run of a process that was killed, or of a controller that was closed, has not ended.
        """
        store = self._stream.store
        if store is None:
            found = list(self._stream.get_events(reverse=True, filter=_RUNS, limit=1))
        else:
            await self._stream.flush()
            found = await store.read(where=_RUNS, reverse=True, limit=1)
        run_id = found[0].run_id if found and isinstance(found[0], RunStartedEvent) else None
        return run_id if run_id is not None and run_id.startswith(self.run_prefix) else None

    @property
    def is_current(self) -> bool:
        """Whether all published events were received, so that the history contains them."""
        return self._last_received >= self._last_published

    def received(self, event: Event) -> bool:
        """Note an event, and resolve the action that it observes.

        Returns:
            Whether it is the observation of a call of the agent.
        """
        self._last_received = event.id
        cause = event.cause
        if event.type != ObservationEvent.type or cause not in self._answered:
            return False
        pending = self.pending.get(cause)
        if pending is not None and not pending.observation.done():
            pending.observation.set_result(event)
        return True

    def publish(self, event: Event) -> Event:
        """Publish an event as it is."""
        published = self._stream.publish(event)
        if SUBSCRIBED.accepts(event):
            self._last_published = max(self._last_published, published.id)
        return published

    def publish_from(self, event: Event, source: EventSource, cause: int | None) -> Event:
        """Publish an event of the agent with its source and cause."""
        origin = Origin(path=self.path, source=source)
        return self.publish(event.replace(cause=cause, origin=origin))

    def publish_record(
        self,
        value: Action | Observation,
        source: EventSource,
        *,
        cause: int | None = None,
        hidden: bool | None = None,
    ) -> Event:
        """Publish an action or an observation."""
        return self.publish_from(event_of(value, hidden=hidden), source, cause)

    def publish_action(self, action: Event, record: Call, cause: int) -> PendingAction:
        """Publish the action of a call."""
        origin = Origin(record.tool_name, record.tool_call_id, self.path, EventSource.AGENT)
        published = self.publish(action.replace(cause=cause, origin=origin))
        self._answered.add(published.id)
        pending = self.pending[published.id] = PendingAction(event=published, record=record)
        return pending

    def answer(
        self,
        event: Event,
        observation: Observation,
        *,
        source: EventSource = EventSource.ENVIRONMENT,
        call: tuple[str | None, str | None] | None = None,
    ) -> Event:
        """Publish the observation of an event.

        Args:
            event: An action, or the item of a call that does not become one.
            observation: The observation.
            source: Its source.
            call: The name and the id of the call; by default those of the event.
        """
        name, call_id = call or (event.tool_name, event.tool_call_id)
        if call is not None:
            self._answered.add(event.id)
        origin = Origin(name, call_id, self.path, source)
        return self.publish(event_of(observation).replace(cause=event.id, origin=origin))

    def kill(self, action: Event) -> None:
        """Ask the runtime to stop an action; its observation is only added to the history."""
        if is_runnable(cast("ActionEvent[Any]", action)):
            kill = CmdKillAction(action.id)
            self.publish_record(kill, EventSource.ENVIRONMENT, hidden=True)

    def stop(self) -> None:
        """End the waiting for the pending actions."""
        for pending in self.pending.values():
            if not pending.observation.done():
                pending.observation.set_result(None)
