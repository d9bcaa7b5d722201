"""The state of an event-driven agent, and the events that start a step."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Final, cast

from agents_tools.classes.event_types import (
    AgentFinishAction,
    AgentRejectAction,
    AgentState,
    AgentStateChangedObservation,
    MessageAction,
    NullObservation,
)
from agents_tools.content.usage import Usage
from agents_tools.events.base import Event
from agents_tools.events.envelope import EventSource
from agents_tools.events.kinds import ActionEvent, MessageEvent, ObservationEvent

__all__ = ["OVER", "State", "asks_for_step", "has_not_begun", "last_words"]

OVER: Final = {AgentState.STOPPED, AgentState.FINISHED, AgentState.REJECTED, AgentState.ERROR}
"""The final states of an agent."""
_SILENT = {NullObservation.__name__, AgentStateChangedObservation.__name__}


@dataclass(slots=True, kw_only=True)
class State:
    """The state of an event-driven agent.

    Attributes:
        agent_state: The current phase.
        history: All events of its conversation, in order.
        iteration: The number of requests to the model.
        outputs: The final results for programs.
        last_error: The reason for the state `error`.
        usage: The tokens that were used.
    """

    agent_state: AgentState = AgentState.LOADING
    history: list[Event] = field(default_factory=list[Event])
    iteration: int = 0
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    last_error: str = ""
    usage: Usage = field(default_factory=Usage)


def asks_for_step(event: Event) -> bool:
    """Return whether an agent must react to an event.

    It reacts to messages of the user and to observations of actions, but not to its own messages,
    changes of its state, and observations without an action.
    """
    match event:
        case MessageEvent():
            return event.role == "user"
        case ActionEvent():
            return event.kind == MessageAction.__name__ and event.source is EventSource.USER
        case ObservationEvent():
            return event.cause is not None and event.kind not in _SILENT
        case _:
            return False


def has_not_begun(state: State) -> bool:
    """Return whether an agent waits for its first task."""
    return state.agent_state is AgentState.AWAITING_USER_INPUT and not any(
        map(asks_for_step, state.history)
    )


def last_words(state: State) -> str:
    """Return the last message of an agent that has ended."""
    for event in reversed(state.history):
        if isinstance(event, ActionEvent) and event.source is EventSource.AGENT:
            value = cast("Any", event).value
            if isinstance(value, (MessageAction, AgentFinishAction, AgentRejectAction)):
                return value.message
    return state.last_error or "The agent was stopped."
