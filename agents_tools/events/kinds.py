"""The events of tools, runs and conversations: one class for each."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - read at run time by `payload_fields`
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypeVar

from agents_tools.events.base import Event, RichEvent, event_class
from agents_tools.events.field_types import Count  # noqa: TC001 - read at run time, as `Mapping`

if TYPE_CHECKING:
    from typing_extensions import TypeVar as TypeVarWithDefault

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
    "RecordName",
    "RunFinishedEvent",
    "RunItemStreamEvent",
    "RunRecordEvent",
    "RunStartedEvent",
    "StreamingToolEndEvent",
    "StreamingToolStartEvent",
    "SummaryEvent",
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


@event_class
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

    data: str
    is_delta: bool = False
    tag: str | None = None
    level: Level = "info"


@event_class
class ToolProgressEvent(Event):
    """The progress of a tool. The latest event of a call replaces the earlier ones.

    Args:
        current: The amount of work done.
        total: The total amount of work, if it is known.
        message: A description of the current step.
    """

    type = "tool_progress_event"
    droppable = True

    current: float
    total: float | None = None
    message: str | None = None


@event_class
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

    name: str
    data: str | bytes | None = None
    uri: str | None = None
    mime_type: str | None = None


@event_class
class ToolStreamStartEvent(Event):
    """The start of a tool call.

    Args:
        input_args: The arguments of the call as JSON values, without the context.
    """

    type = "tool_stream_start_event"

    input_args: Mapping[str, Any]


@event_class
class ToolStreamEndEvent(Event):
    """The end of a tool call; the call emits no events after it.

    Args:
        status: The status of the call.
        duration: The duration of the call in seconds.
    """

    type = "tool_stream_end_event"

    status: CallStatus
    duration: float = 0.0


StreamingToolStartEvent = ToolStreamStartEvent
StreamingToolEndEvent = ToolStreamEndEvent


@event_class
class ToolAttemptEvent(Event):
    """A failed attempt of a call that is retried.

    Args:
        attempt: The number of the failed attempt, starting at 1.
        error: The error of the attempt.
        delay: The delay before the next attempt, in seconds.
    """

    type = "tool_attempt_event"

    attempt: Count
    error: str | None = None
    delay: float = 0.0


@event_class
class GapEvent(Event):
    """The place where display events were dropped because the consumer was too slow.

    Args:
        dropped: The number of dropped events.
    """

    type = "gap_event"

    dropped: Count


@event_class
class RunItemStreamEvent(RichEvent[RichT]):
    """A new item of a run: a message, a tool call or a tool output.

    Args:
        name: The name of the change, for example `tool_called`.
        item: The item as JSON.
    """

    type = "run_item_stream_event"
    durable = True

    name: str
    item: Mapping[str, Any]


@event_class
class RawResponseStreamEvent(Event):
    """A part of a streamed model response, as the provider sent it.

    Args:
        data: The part as JSON.
    """

    type = "raw_response_event"
    droppable = True

    data: Any


@event_class
class AgentUpdatedStreamEvent(RichEvent[RichT]):
    """Another agent continues the run after a handoff.

    `value` is the agent itself, if the event comes from a run of this process.

    Args:
        agent: The name of the new agent.
    """

    type = "agent_updated_stream_event"
    durable = True

    agent: str

    @property
    def new_agent(self) -> Any:
        """The new agent; an object with its `name` if the event was read from a log or a stream."""
        return SimpleNamespace(name=self.agent) if self.attached is None else self.attached


RecordName: TypeAlias = Literal[
    "run_created",
    "model_response",
    "call_begun",
    "call_remote",
    "call_result",
    "approval_requested",
    "approval_decided",
    "input_requested",
    "hidden_event",
]
"""The name of a record of the run log, as described in the page about the run log."""


@event_class
class RunRecordEvent(Event):
    """A record of the run log that only the library reads. No reader of a run receives it.

    Args:
        name: The name of the record.
        data: The content of the record.
    """

    type = "run_record_event"

    name: RecordName
    data: Mapping[str, Any]


@event_class
class RunStartedEvent(Event):
    """The start of a run.

    Args:
        run_id: The id of the run.
        agent: The name of the agent.
    """

    type = "run_started_event"

    run_id: str | None = None
    agent: str | None = None


@event_class
class RunFinishedEvent(Event):
    """The end of a run.

    Args:
        status: The status of the run.
        output: The final output as JSON.
        usage: The token usage of the run.
        error: The error message of a failed run.
    """

    type = "run_finished_event"

    status: str = "ok"
    output: Any = None
    usage: Mapping[str, Any] | None = None
    error: str | None = None


@event_class
class MessageEvent(Event):
    """A message in a conversation.

    Args:
        content: A text, or a list of content blocks as JSON.
        role: The author of the message.
    """

    type = "message_event"
    durable = True

    content: Any
    role: Role = "user"


@event_class
class SummaryEvent(Event):
    """A summary that a model reads in place of the beginning of its conversation.

    The conversation itself stays in the log.

    Args:
        summary: The summary.
        items: The number of items at the beginning of the conversation that it stands for.
        digest: A fingerprint of these items.
        usage: The token usage of the requests for the summary.
    """

    type = "summary_event"
    durable = True

    summary: str
    items: Count
    digest: str
    usage: Mapping[str, Any] | None = None


@event_class
class ActionEvent(RichEvent[RichT]):
    """A requested action.

    Args:
        kind: The class name of the action.
        action: The action as JSON.
        hidden: Whether user interfaces hide the event.
    """

    type = "action_event"
    durable = True

    kind: str
    action: Mapping[str, Any]
    hidden: bool = False


@event_class
class ObservationEvent(RichEvent[RichT]):
    """The observation of an action; `cause` is the id of the action event.

    Args:
        kind: The class name of the observation.
        observation: The observation as JSON.
        hidden: Whether user interfaces hide the event.
    """

    type = "observation_event"
    durable = True

    kind: str
    observation: Mapping[str, Any]
    hidden: bool = False


@event_class
class AgentStateChangedEvent(Event):
    """A change of the state of an agent.

    Args:
        state: The new state.
        reason: The reason for the change.
    """

    type = "agent_state_changed_event"
    durable = True

    state: str
    reason: str = ""


@event_class
class ErrorEvent(Event):
    """An error that does not end the conversation.

    Args:
        message: The error message.
        kind: The class name of the error.
    """

    type = "error_event"
    durable = True

    message: str
    kind: str | None = None


@event_class
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
    | RunRecordEvent
    | MessageEvent
    | SummaryEvent
    | ActionEvent[Any]
    | ObservationEvent[Any]
    | AgentStateChangedEvent
    | ErrorEvent
    | NullEvent
)
"""Every event of this module, for `match` statements that type checkers verify as exhaustive."""
