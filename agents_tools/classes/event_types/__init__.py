"""The actions and observations of an event-driven agent: small records that travel on a stream.

```python
event = stream.add_event(CmdRunAction("make test", timeout=600), EventSource.AGENT)
```

On the stream they are the payload of an `ActionEvent` or an `ObservationEvent`; `event.value` is
the record again, wherever the event comes from. Fields may be given in their order or by name.
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
from agents_tools.events.codec import register_decoder
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
        hidden: Whether people are not shown it; by default what its field `hidden` says.

    Raises:
        UserError: It is neither, or its class has the name of one of this module.
    """
    given = cast("object", value)
    if not isinstance(given, (Action, Observation)):
        raise UserTypeError(
            "A stream takes events, actions and observations, not a value of type "
            f"{type(given).__name__}."
        )
    tool = value.tool if isinstance(value, ToolAction) else None
    kind = tool or type(value).__name__
    if kind in _OWN and (tool is not None or _OWN[kind] is not type(value)):
        raise UserValueError(
            f"{type(value).__module__ if tool is None else 'The tool'} {kind!r} has the name of a "
            f"class of {__name__}, and would be read back as that one. Give it another name."
        )
    payload = value.model_dump(mode="json")
    if hidden is None:
        hidden = getattr(value, "hidden", None) is True
    if isinstance(value, Action):
        action = payload if tool is None else payload["arguments"]
        return ActionEvent(kind=kind, action=action, hidden=hidden).attach(value)
    return ObservationEvent(kind=kind, observation=payload, hidden=hidden).attach(value)


def is_runnable(event: ActionEvent[Any]) -> bool:
    """Return whether a runtime is to carry an action out.

    All are but those of this module that say otherwise: actions of tools, and calls by the name of
    a tool.
    """
    own = _OWN.get(event.kind)
    return own is None or getattr(own, "runnable", False)


_OWN: dict[str, type[Any]] = {
    name: found
    for name in __all__
    if isinstance(found := globals()[name], type)
    and issubclass(found, (EventAction, EventObservation))
    and found.__name__ == name
}
"""The classes of this module by name: what is stored under such a name is always one of them."""


def _read(base: type[Any], at: str, kind: str, payload: Mapping[str, Any]) -> Any:
    found = _OWN.get(kind) or resolved_kind(base, kind)
    if not issubclass(found, base):
        raise UserValueError(f"{at}: {kind} is no {base.__name__}.")
    try:
        return found.model_validate(dict(payload))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        place = ".".join(map(str, (at, *first["loc"])))
        raise UserValueError(f"{place}: this is no {kind}: {first['msg']}.") from None


def _action(event: ActionEvent[Any]) -> Action:
    if event.kind not in _OWN and event.kind not in kinds_of(Action):
        return ToolAction(event.kind, dict(event.action))
    return cast("Action", _read(Action, "action_event.action", event.kind, event.action))


def _observation(event: ObservationEvent[Any]) -> Observation:
    at = "observation_event.observation"
    return cast("Observation", _read(Observation, at, event.kind, event.observation))


register_decoder(ActionEvent, _action)
register_decoder(ObservationEvent, _observation)
