"""The events of tools, runs and conversations: one class for each."""

from __future__ import annotations

from time import time
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar, get_args

from agents_tools.events.base import Event, RichEvent, check_payload, field, new_event
from agents_tools.events.field_types import (
    CONTENT,
    COUNT,
    FLAG,
    JSON,
    NUMBER,
    OBJECT,
    TEXT,
    one_of,
    optional,
)

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Self

    from typing_extensions import TypeVar as TypeVarWithDefault

    from agents_tools.events.envelope import Origin

    RichT = TypeVarWithDefault("RichT", default=Any)
else:
    RichT = TypeVar("RichT")

__all__ = [
    "ActionEvent",
    "AgentStateChangedEvent",
    "AgentUpdatedStreamEvent",
    "AnyEvent",
    "CallStatus",
    "ErrorEvent",
    "GapEvent",
    "Level",
    "MessageEvent",
    "NotifyStreamEvent",
    "NullEvent",
    "ObservationEvent",
    "RawResponseStreamEvent",
    "RunFinishedEvent",
    "RunItemStreamEvent",
    "RunStartedEvent",
    "StreamingToolEndEvent",
    "StreamingToolStartEvent",
    "ToolArtifactEvent",
    "ToolAttemptEvent",
    "ToolProgressEvent",
    "ToolStreamEndEvent",
    "ToolStreamStartEvent",
]

CallStatus: TypeAlias = Literal[
    "ok",
    "invalid_args",
    "tool_error",
    "timeout",
    "cancelled",
    "denied",
    "overloaded",
    "lost",
]
"""The status of a finished call. `lost` means that the outcome is unknown."""

Level: TypeAlias = Literal["debug", "info", "success", "warning", "error"]
"""The severity of a notification."""

Role: TypeAlias = Literal["user", "assistant", "system"]
"""The author of a message."""


class NotifyStreamEvent(Event):
    """A progress message of a tool for the user, never for the model.

    Args:
        data: The text.
        is_delta: Whether the text continues the last delta of the call.
        tag: A free label for the display.
        level: The severity.
    """

    type = "notify_stream_event"
    droppable = True

    data: str = field(TEXT)
    is_delta: bool = field(FLAG, default=False)
    tag: str | None = field(optional(TEXT), default=None)
    level: Level = field(one_of(*get_args(Level)), default="info")

    if not TYPE_CHECKING:  # written by hand, because calls emit these events by the thousand

        def __init__(
            self,
            data: str,
            is_delta: bool = False,
            tag: str | None = None,
            level: Level = "info",
        ) -> None:
            self.data = data
            self.is_delta = is_delta
            self.tag = tag
            self.level = level
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if (
                data.__class__ is not str
                or is_delta.__class__ is not bool
                or tag is not None
                or level != "info"
            ):
                check_payload(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Return a stamped copy, faster than the inherited method."""
            copy = new_event(self.__class__)
            copy.data = self.data
            copy.is_delta = self.is_delta
            copy.tag = self.tag
            copy.level = self.level
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolProgressEvent(Event):
    """The progress of a tool. The latest event of a call replaces the earlier ones.

    Args:
        current: The amount of work done.
        total: The total amount of work, if it is known.
        message: A description of the current step.
    """

    type = "tool_progress_event"
    droppable = True

    current: float = field(NUMBER)
    total: float | None = field(optional(NUMBER), default=None)
    message: str | None = field(optional(TEXT), default=None)

    if not TYPE_CHECKING:

        def __init__(
            self,
            current: float,
            total: float | None = None,
            message: str | None = None,
        ) -> None:
            self.current = current
            self.total = total
            self.message = message
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if (
                current.__class__ is not int
                or (total is not None and total.__class__ is not int)
                or (message is not None and message.__class__ is not str)
            ):
                check_payload(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Return a stamped copy, faster than the inherited method."""
            copy = new_event(self.__class__)
            copy.current = self.current
            copy.total = self.total
            copy.message = self.message
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolArtifactEvent(Event):
    """A file or text that a tool produces in addition to its result.

    Args:
        name: The name of the artifact.
        data: The content; or pass `uri`.
        uri: The address of the content.
        mime_type: The media type of the content.
    """

    type = "tool_artifact_event"
    droppable = True

    name: str = field(TEXT)
    data: str | bytes | None = field(optional(CONTENT), default=None)
    uri: str | None = field(optional(TEXT), default=None)
    mime_type: str | None = field(optional(TEXT), default=None)


class ToolStreamStartEvent(Event):
    """The start of a tool call.

    Args:
        input_args: The arguments of the call as JSON values, without the context.
    """

    type = "tool_stream_start_event"

    input_args: Mapping[str, Any] = field(OBJECT)

    if not TYPE_CHECKING:

        def __init__(self, input_args: Mapping[str, Any]) -> None:
            self.input_args = input_args
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if input_args.__class__ is not dict:
                check_payload(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Return a stamped copy, faster than the inherited method."""
            copy = new_event(self.__class__)
            copy.input_args = self.input_args
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


class ToolStreamEndEvent(Event):
    """The end of a tool call; the call emits no events after it.

    Args:
        status: The status of the call.
        duration: The duration of the call in seconds.
    """

    type = "tool_stream_end_event"

    status: CallStatus = field(one_of(*get_args(CallStatus)))
    duration: float = field(NUMBER, default=0.0)

    if not TYPE_CHECKING:

        def __init__(self, status: CallStatus, duration: float = 0.0) -> None:
            self.status = status
            self.duration = duration
            self.id = -1
            self.seq = -1
            self.timestamp = 0.0
            self.cause = None
            self.origin = None
            if status != "ok" or duration.__class__ is not float:
                check_payload(self)

        def stamped(self, origin: Origin, seq: int) -> Self:
            """Return a stamped copy, faster than the inherited method."""
            copy = new_event(self.__class__)
            copy.status = self.status
            copy.duration = self.duration
            copy.id = self.id
            copy.seq = seq
            copy.timestamp = time()
            copy.cause = self.cause
            copy.origin = origin
            return copy


StreamingToolStartEvent = ToolStreamStartEvent
StreamingToolEndEvent = ToolStreamEndEvent


class ToolAttemptEvent(Event):
    """A failed attempt of a call that is retried.

    Args:
        attempt: The number of the failed attempt, starting at 1.
        error: The error of the attempt.
        delay: The delay before the next attempt, in seconds.
    """

    type = "tool_attempt_event"

    attempt: int = field(COUNT)
    error: str | None = field(optional(TEXT), default=None)
    delay: float = field(NUMBER, default=0.0)


class GapEvent(Event):
    """The place where display events were dropped because the consumer was too slow.

    Args:
        dropped: The number of dropped events.
    """

    type = "gap_event"

    dropped: int = field(COUNT)


class RunItemStreamEvent(RichEvent[RichT]):
    """A new item of a run: a message, a tool call or a tool output.

    Args:
        name: The name of the change, for example `tool_called`.
        item: The item as JSON.
    """

    type = "run_item_stream_event"
    durable = True

    name: str = field(TEXT)
    item: Mapping[str, Any] = field(OBJECT)


class RawResponseStreamEvent(Event):
    """A part of a streamed model response, as the provider sent it.

    Args:
        data: The part as JSON.
    """

    type = "raw_response_stream_event"
    droppable = True

    data: Any = field(JSON)


class AgentUpdatedStreamEvent(Event):
    """A change of the current agent of a run.

    Args:
        agent: The name of the new agent.
    """

    type = "agent_updated_stream_event"

    agent: str = field(TEXT)


class RunStartedEvent(Event):
    """The start of a run.

    Args:
        run_id: The id of the run.
        agent: The name of the agent.
    """

    type = "run_started_event"

    run_id: str | None = field(optional(TEXT), default=None)
    agent: str | None = field(optional(TEXT), default=None)


class RunFinishedEvent(Event):
    """The end of a run.

    Args:
        status: The status of the run.
        output: The final output as JSON.
        usage: The token usage of the run.
        error: The error message of a failed run.
    """

    type = "run_finished_event"

    status: str = field(TEXT, default="ok")
    output: Any = field(JSON, default=None)
    usage: Mapping[str, Any] | None = field(optional(OBJECT), default=None)
    error: str | None = field(optional(TEXT), default=None)


class MessageEvent(Event):
    """A message in a conversation.

    Args:
        content: A text, or a list of content blocks as JSON.
        role: The author of the message.
    """

    type = "message_event"
    durable = True

    content: Any = field(JSON)
    role: Role = field(one_of(*get_args(Role)), default="user")


class ActionEvent(RichEvent[RichT]):
    """A requested action.

    Args:
        kind: The class name of the action.
        action: The action as JSON.
        hidden: Whether user interfaces hide the event.
    """

    type = "action_event"
    durable = True

    kind: str = field(TEXT)
    action: Mapping[str, Any] = field(OBJECT)
    hidden: bool = field(FLAG, default=False)


class ObservationEvent(RichEvent[RichT]):
    """The observation of an action; `cause` is the id of the action event.

    Args:
        kind: The class name of the observation.
        observation: The observation as JSON.
        hidden: Whether user interfaces hide the event.
    """

    type = "observation_event"
    durable = True

    kind: str = field(TEXT)
    observation: Mapping[str, Any] = field(OBJECT)
    hidden: bool = field(FLAG, default=False)


class AgentStateChangedEvent(Event):
    """A change of the state of an agent.

    Args:
        state: The new state.
        reason: The reason for the change.
    """

    type = "agent_state_changed_event"
    durable = True

    state: str = field(TEXT)
    reason: str = field(TEXT, default="")


class ErrorEvent(Event):
    """An error that does not end the conversation.

    Args:
        message: The error message.
        kind: The class name of the error.
    """

    type = "error_event"
    durable = True

    message: str = field(TEXT)
    kind: str | None = field(optional(TEXT), default=None)


class NullEvent(Event):
    """An event without a meaning; consumers ignore it."""

    type = "null_event"


AnyEvent: TypeAlias = (
    NotifyStreamEvent
    | ToolProgressEvent
    | ToolArtifactEvent
    | ToolStreamStartEvent
    | ToolStreamEndEvent
    | ToolAttemptEvent
    | GapEvent
    | RunItemStreamEvent[Any]
    | RawResponseStreamEvent
    | AgentUpdatedStreamEvent
    | RunStartedEvent
    | RunFinishedEvent
    | MessageEvent
    | ActionEvent[Any]
    | ObservationEvent[Any]
    | AgentStateChangedEvent
    | ErrorEvent
    | NullEvent
)
"""Every event of this module, for `match` statements that type checkers verify as exhaustive."""
