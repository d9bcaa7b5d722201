"""What an agent that is driven by events knows, and what lets it act."""

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
"""The states in which nothing of an agent's goes on."""
_SILENT = {NullObservation.__name__, AgentStateChangedObservation.__name__}


@dataclass(slots=True, kw_only=True)
class State:
    """What an agent that is driven by events has to know.

    Attributes:
        agent_state: What it is doing.
        history: All events of its conversation, in order; what it decides by.
        iteration: How often its model was asked.
        outputs: What it ended with, for programs.
        last_error: Why it is in state `error`.
        usage: What its model took.
    """

    agent_state: AgentState = AgentState.LOADING
    history: list[Event] = field(default_factory=list[Event])
    iteration: int = 0
    outputs: dict[str, Any] = field(default_factory=dict[str, Any])
    last_error: str = ""
    usage: Usage = field(default_factory=Usage)


def asks_for_step(event: Event) -> bool:
    """Return whether an event is something that an agent has to react to.

    What the user says is, and what was observed after an action. What the agent itself says,
    changes of its state, and what was observed without anybody having asked are not.
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
    """Return whether an agent only waits for its first task."""
    return state.agent_state is AgentState.AWAITING_USER_INPUT and not any(
        map(asks_for_step, state.history)
    )


def last_words(state: State) -> str:
    """Return what an agent that has ended said last."""
    for event in reversed(state.history):
        if isinstance(event, ActionEvent) and event.source is EventSource.AGENT:
            value = cast("Any", event).value
            if isinstance(value, (MessageAction, AgentFinishAction, AgentRejectAction)):
                return value.message
    return state.last_error or "The agent was stopped."
