"""Events of tools, runs and conversations: types, wire form and delivery."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.events.base import (
        Emit as Emit,
        Event as Event,
        RichEvent as RichEvent,
        register_decoder as register_decoder,
    )
    from agents_tools.events.envelope import (
        EventSource as EventSource,
        Origin as Origin,
    )
    from agents_tools.events.kinds import (
        ActionEvent as ActionEvent,
        AgentStateChangedEvent as AgentStateChangedEvent,
        AgentUpdatedStreamEvent as AgentUpdatedStreamEvent,
        AnyEvent as AnyEvent,
        CallStatus as CallStatus,
        ErrorEvent as ErrorEvent,
        GapEvent as GapEvent,
        Level as Level,
        MessageEvent as MessageEvent,
        NotifyStreamEvent as NotifyStreamEvent,
        NullEvent as NullEvent,
        ObservationEvent as ObservationEvent,
        RawResponseStreamEvent as RawResponseStreamEvent,
        RunFinishedEvent as RunFinishedEvent,
        RunItemStreamEvent as RunItemStreamEvent,
        RunStartedEvent as RunStartedEvent,
        StreamingToolEndEvent as StreamingToolEndEvent,
        StreamingToolStartEvent as StreamingToolStartEvent,
        SummaryEvent as SummaryEvent,
        ToolArtifactEvent as ToolArtifactEvent,
        ToolAttemptEvent as ToolAttemptEvent,
        ToolProgressEvent as ToolProgressEvent,
        ToolStreamEndEvent as ToolStreamEndEvent,
        ToolStreamStartEvent as ToolStreamStartEvent,
    )
    from agents_tools.events.listener import (
        bind as bind,
        listen as listen,
    )
    from agents_tools.events.registry import (
        event_from_dict as event_from_dict,
        event_json_schema as event_json_schema,
        event_to_dict as event_to_dict,
        register_event as register_event,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "base": (
            "Emit",
            "Event",
            "RichEvent",
            "register_decoder",
        ),
        "envelope": (
            "EventSource",
            "Origin",
        ),
        "listener": (
            "bind",
            "listen",
        ),
        "kinds": (
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
            "SummaryEvent",
            "ToolArtifactEvent",
            "ToolAttemptEvent",
            "ToolProgressEvent",
            "ToolStreamEndEvent",
            "ToolStreamStartEvent",
        ),
        "registry": (
            "event_from_dict",
            "event_json_schema",
            "event_to_dict",
            "register_event",
        ),
    },
)
