"""Turn Python functions into tools that any AI agent can call and anybody can watch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from agents_tools import policies as policies
    from agents_tools._channel import bind as bind
    from agents_tools._channel import listen as listen
    from agents_tools._docstring import FuncDocumentation as FuncDocumentation
    from agents_tools._docstring import generate_func_documentation as generate_func_documentation
    from agents_tools._json import JsonLimits as JsonLimits
    from agents_tools._json import configure_json_limits as configure_json_limits
    from agents_tools._secrets import register_secret as register_secret
    from agents_tools._strict import ensure_strict_json_schema as ensure_strict_json_schema
    from agents_tools._threads import configure_threads as configure_threads
    from agents_tools._watchdog import BlockedLoop as BlockedLoop
    from agents_tools._watchdog import watch_loop as watch_loop
    from agents_tools.context import RunContextWrapper as RunContextWrapper
    from agents_tools.context import ToolContext as ToolContext
    from agents_tools.context import artifact as artifact
    from agents_tools.context import current_context as current_context
    from agents_tools.context import notify as notify
    from agents_tools.context import progress as progress
    from agents_tools.context import track as track
    from agents_tools.decorators import function_tool as function_tool
    from agents_tools.decorators import streaming_tool as streaming_tool
    from agents_tools.errors import AgentsToolsError as AgentsToolsError
    from agents_tools.errors import ArgumentProblem as ArgumentProblem
    from agents_tools.errors import ModelBehaviorError as ModelBehaviorError
    from agents_tools.errors import ToolCancelledError as ToolCancelledError
    from agents_tools.errors import ToolDeniedError as ToolDeniedError
    from agents_tools.errors import ToolError as ToolError
    from agents_tools.errors import ToolLostError as ToolLostError
    from agents_tools.errors import ToolOverloadedError as ToolOverloadedError
    from agents_tools.errors import ToolStreamError as ToolStreamError
    from agents_tools.errors import ToolTimeoutError as ToolTimeoutError
    from agents_tools.errors import UserError as UserError
    from agents_tools.events import ActionEvent as ActionEvent
    from agents_tools.events import AgentStateChangedEvent as AgentStateChangedEvent
    from agents_tools.events import AgentUpdatedStreamEvent as AgentUpdatedStreamEvent
    from agents_tools.events import Emit as Emit
    from agents_tools.events import ErrorEvent as ErrorEvent
    from agents_tools.events import Event as Event
    from agents_tools.events import EventSource as EventSource
    from agents_tools.events import GapEvent as GapEvent
    from agents_tools.events import MessageEvent as MessageEvent
    from agents_tools.events import NotifyStreamEvent as NotifyStreamEvent
    from agents_tools.events import NullEvent as NullEvent
    from agents_tools.events import ObservationEvent as ObservationEvent
    from agents_tools.events import RawResponseStreamEvent as RawResponseStreamEvent
    from agents_tools.events import RunFinishedEvent as RunFinishedEvent
    from agents_tools.events import RunItemStreamEvent as RunItemStreamEvent
    from agents_tools.events import RunStartedEvent as RunStartedEvent
    from agents_tools.events import StreamingToolEndEvent as StreamingToolEndEvent
    from agents_tools.events import StreamingToolStartEvent as StreamingToolStartEvent
    from agents_tools.events import ToolArtifactEvent as ToolArtifactEvent
    from agents_tools.events import ToolAttemptEvent as ToolAttemptEvent
    from agents_tools.events import ToolProgressEvent as ToolProgressEvent
    from agents_tools.events import ToolStreamEndEvent as ToolStreamEndEvent
    from agents_tools.events import ToolStreamStartEvent as ToolStreamStartEvent
    from agents_tools.events import event_from_dict as event_from_dict
    from agents_tools.events import event_json_schema as event_json_schema
    from agents_tools.outputs import ToolOutput as ToolOutput
    from agents_tools.outputs import ToolOutputAudio as ToolOutputAudio
    from agents_tools.outputs import ToolOutputFileContent as ToolOutputFileContent
    from agents_tools.outputs import ToolOutputImage as ToolOutputImage
    from agents_tools.outputs import ToolOutputText as ToolOutputText
    from agents_tools.outputs import ToolResult as ToolResult
    from agents_tools.outputs import to_output as to_output
    from agents_tools.schema import FuncSchema as FuncSchema
    from agents_tools.schema import function_schema as function_schema
    from agents_tools.tool import CallOutcome as CallOutcome
    from agents_tools.tool import FunctionTool as FunctionTool
    from agents_tools.tool import ToolAnnotations as ToolAnnotations
    from agents_tools.tool import ToolOrigin as ToolOrigin
    from agents_tools.tool import default_tool_error_function as default_tool_error_function
    from agents_tools.tool import set_default_tool_error_function as set_default_tool_error_function

__version__ = "0.1.0.dev0"

_PLACES = {
    "_channel": ("bind", "listen"),
    "_docstring": ("FuncDocumentation", "generate_func_documentation"),
    "_json": ("JsonLimits", "configure_json_limits"),
    "_secrets": ("register_secret",),
    "_strict": ("ensure_strict_json_schema",),
    "_threads": ("configure_threads",),
    "_watchdog": ("BlockedLoop", "watch_loop"),
    "context": (
        "RunContextWrapper",
        "ToolContext",
        "artifact",
        "current_context",
        "notify",
        "progress",
        "track",
    ),
    "decorators": ("function_tool", "streaming_tool"),
    "errors": (
        "AgentsToolsError",
        "ArgumentProblem",
        "ModelBehaviorError",
        "ToolCancelledError",
        "ToolDeniedError",
        "ToolError",
        "ToolLostError",
        "ToolOverloadedError",
        "ToolStreamError",
        "ToolTimeoutError",
        "UserError",
    ),
    "events": (
        "ActionEvent",
        "AgentStateChangedEvent",
        "AgentUpdatedStreamEvent",
        "Emit",
        "ErrorEvent",
        "Event",
        "EventSource",
        "GapEvent",
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
        "event_from_dict",
        "event_json_schema",
    ),
    "outputs": (
        "ToolOutput",
        "ToolOutputAudio",
        "ToolOutputFileContent",
        "ToolOutputImage",
        "ToolOutputText",
        "ToolResult",
        "to_output",
    ),
    "schema": ("FuncSchema", "function_schema"),
    "tool": (
        "CallOutcome",
        "FunctionTool",
        "ToolAnnotations",
        "ToolOrigin",
        "default_tool_error_function",
        "set_default_tool_error_function",
    ),
}
"""Where each public name lives; a module is loaded when a name of its is first asked for."""

_MODULES = {name: module for module, names in _PLACES.items() for name in names}

__all__ = ["__version__", "policies", *sorted(_MODULES)]  # pyright: ignore[reportUnsupportedDunderAll]


def __getattr__(name: str) -> Any:
    from importlib import import_module  # noqa: PLC0415 - nothing else here needs it

    if name in _MODULES:
        value = getattr(import_module(f"agents_tools.{_MODULES[name]}"), name)
    elif name == "policies":
        value = import_module("agents_tools.policies")
    else:
        raise AttributeError(f"module 'agents_tools' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
