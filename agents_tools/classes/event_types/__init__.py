"""The actions and observations of an event-driven agent: small records on an event stream.

```python
event = stream.add_event(CmdRunAction("make test", timeout=600), EventSource.AGENT)
```

On the stream they are the payload of an `ActionEvent` or an `ObservationEvent`. `event.value`
returns the record, even for stored events. Fields can be passed by position or by name.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from pydantic import ValidationError

from agents_tools.classes.action import Action, Observation, kinds_of, resolved_kind
from agents_tools.classes.event_types.actions import (
    AddTaskAction,
    AgentDelegateAction,
    AgentFinishAction,
    AgentRecallAction,
    AgentRejectAction,
    AgentState,
    AgentThinkAction,
    BrowseInteractiveAction,
    ChangeAgentStateAction,
    CmdKillAction,
    CmdRunAction,
    CondensationAction,
    CondensationRequestAction,
    EventAction,
    FileEditAction,
    FileReadAction,
    IPythonRunCellAction,
    MCPAction,
    MessageAction,
    ModifyTaskAction,
    NullAction,
    RecallAction,
    SystemMessageAction,
    ToolAction,
    setup_script_action,
)
from agents_tools.classes.event_types.observations import (
    AgentDelegateObservation,
    AgentErrorObservation,
    AgentRecallObservation,
    AgentStateChangedObservation,
    AgentThinkObservation,
    BrowserOutputObservation,
    CmdOutputObservation,
    CmdRunObservation,
    ErrorObservation,
    EventObservation,
    FileEditObservation,
    FileReadObservation,
    IPythonRunCellObservation,
    MCPObservation,
    NullObservation,
    RecallObservation,
    ToolObservation,
)
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events.base import register_decoder
from agents_tools.events.kinds import ActionEvent, ObservationEvent

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "AddTaskAction",
    "AgentDelegateAction",
    "AgentDelegateObservation",
    "AgentErrorObservation",
    "AgentFinishAction",
    "AgentRecallAction",
    "AgentRecallObservation",
    "AgentRejectAction",
    "AgentState",
    "AgentStateChangedObservation",
    "AgentThinkAction",
    "AgentThinkObservation",
    "BrowseInteractiveAction",
    "BrowserOutputObservation",
    "ChangeAgentStateAction",
    "CmdKillAction",
    "CmdOutputObservation",
    "CmdRunAction",
    "CmdRunObservation",
    "CondensationAction",
    "CondensationRequestAction",
    "ErrorObservation",
    "EventAction",
    "EventObservation",
    "FileEditAction",
    "FileEditObservation",
    "FileReadAction",
    "FileReadObservation",
    "IPythonRunCellAction",
    "IPythonRunCellObservation",
    "MCPAction",
    "MCPObservation",
    "MessageAction",
    "ModifyTaskAction",
    "NullAction",
    "NullObservation",
    "RecallAction",
    "RecallObservation",
    "SystemMessageAction",
    "ToolAction",
    "ToolObservation",
    "event_of",
    "is_runnable",
    "setup_script_action",
]


def event_of(value: Action | Observation, *, hidden: bool | None = None) -> Any:
    """Return the event that carries an action or an observation, with the record attached.

    Args:
        value: The record.
        hidden: Whether the event is hidden from people; by default as in the record.

    Raises:
        UserError: The value is neither, or its class has the name of a class of this module.
    """
    candidate = cast("object", value)
    if not isinstance(candidate, (Action, Observation)):
        raise UserTypeError(
            "The value cannot be added to a stream: expected an event, an action or an "
            f"observation, got a value of type {type(candidate).__name__}."
        )
    tool = value.tool if isinstance(value, ToolAction) else None
    kind = tool or type(value).__name__
    if kind in _KINDS and (tool is not None or _KINDS[kind] is not type(value)):
        raise UserValueError(
            f"{type(value).__module__ if tool is None else 'The tool'} {kind!r} has the name of a "
            f"class of {__name__}, and would be decoded as that class. Rename it."
        )
    payload = value.model_dump(mode="json")
    if hidden is None:
        hidden = getattr(value, "hidden", None) is True
    if isinstance(value, Action):
        action = payload if tool is None else payload["arguments"]
        return ActionEvent(kind=kind, action=action, hidden=hidden).attach(value)
    return ObservationEvent(kind=kind, observation=payload, hidden=hidden).attach(value)


def is_runnable(event: ActionEvent[Any]) -> bool:
    """Return whether a runtime executes an action.

    It executes all actions except those of this module that are not `runnable`.
    """
    own = _KINDS.get(event.kind)
    return own is None or getattr(own, "runnable", False)


_KINDS: dict[str, type[Any]] = {
    name: kind
    for name in __all__
    if isinstance(kind := globals()[name], type)
    and issubclass(kind, (EventAction, EventObservation))
    and kind.__name__ == name
}
"""The classes of this module by name; other classes cannot use these names."""


def _read(base: type[Any], path: str, kind: str, payload: Mapping[str, Any]) -> Any:
    record_class = _KINDS.get(kind) or resolved_kind(base, kind)
    if not issubclass(record_class, base):
        raise UserValueError(f"{path} has the wrong kind: expected {base.__name__}, got {kind}.")
    try:
        return record_class.model_validate(dict(payload))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (path, *first["loc"])))
        raise UserValueError(f"{place} is not valid in {kind}: {first['msg']}.") from None


def _action(event: ActionEvent[Any]) -> Action:
    if event.kind not in _KINDS and event.kind not in kinds_of(Action):
        return ToolAction(event.kind, dict(event.action))
    return cast("Action", _read(Action, "action_event.action", event.kind, event.action))


def _observation(event: ObservationEvent[Any]) -> Observation:
    path = "observation_event.observation"
    return cast("Observation", _read(Observation, path, event.kind, event.observation))


register_decoder(ActionEvent, _action)
register_decoder(ObservationEvent, _observation)
