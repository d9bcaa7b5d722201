"""The actions and observations on an event stream."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

import agents_tools.classes.event_types as kinds
from agents_tools.builtin.terminal import TerminalAction
from agents_tools.classes import Action, Observation
from agents_tools.classes.event_types import (
    AddTaskAction,
    AgentDelegateAction,
    AgentDelegateObservation,
    AgentErrorObservation,
    AgentFinishAction,
    AgentRecallAction,
    AgentRecallObservation,
    AgentRejectAction,
    AgentState,
    AgentStateChangedObservation,
    AgentThinkAction,
    AgentThinkObservation,
    BrowseInteractiveAction,
    BrowserOutputObservation,
    ChangeAgentStateAction,
    CmdKillAction,
    CmdOutputObservation,
    CmdRunAction,
    CmdRunObservation,
    CondensationAction,
    CondensationRequestAction,
    ErrorObservation,
    EventAction,
    EventObservation,
    FileEditAction,
    FileEditObservation,
    FileReadAction,
    FileReadObservation,
    IPythonRunCellAction,
    IPythonRunCellObservation,
    MCPAction,
    MCPObservation,
    MessageAction,
    ModifyTaskAction,
    NullAction,
    NullObservation,
    RecallAction,
    RecallObservation,
    SystemMessageAction,
    ToolAction,
    ToolObservation,
    event_of,
    is_runnable,
    setup_script_action,
)
from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.events import (
    ActionEvent,
    EventSource,
    ObservationEvent,
    Origin,
    event_from_dict,
    event_to_dict,
)
from agents_tools.events.envelope import INVALID_ID

ACTIONS: list[EventAction] = [
    CmdRunAction("make", blocking=True, hidden=True, timeout=600),
    CmdKillAction(7),
    FileReadAction("a.py", 2, 9),
    FileEditAction("a.py", "create", "x = 1\n"),
    IPythonRunCellAction("1 + 1"),
    BrowseInteractiveAction("goto('http://127.0.0.1/')"),
    MCPAction("add", {"a": 1, "b": [None, "é"]}, "numbers"),
    ToolAction("add", {"a": 1}),
    MessageAction("Hello"),
    SystemMessageAction("Be brief.", [{"name": "add"}], "worker"),
    NullAction(),
    AgentThinkAction("Hm."),
    AgentFinishAction("Done.", {"answer": 42}),
    AgentRejectAction({"reason": "too vague"}),
    AgentDelegateAction("helper", {"task": "count"}),
    RecallAction("owls", "workspace_context"),
    ChangeAgentStateAction(AgentState.STOPPED),
    AddTaskAction("write tests"),
    ModifyTaskAction("1", "completed"),
    CondensationAction([1, 2], "They greeted each other."),
    CondensationRequestAction(),
]

OBSERVATIONS: list[EventObservation] = [
    CmdOutputObservation("ok", "make", 0),
    FileReadObservation("x = 1", "a.py"),
    FileEditObservation("created", "a.py", False, "+x = 1"),
    IPythonRunCellObservation("2", "1 + 1"),
    BrowserOutputObservation("a page", "http://127.0.0.1/"),
    MCPObservation("3", "add", {"a": 1}, "numbers"),
    ToolObservation("3", "add"),
    RecallObservation("Owls fly.", "owls"),
    AgentErrorObservation("There is no such tool."),
    ErrorObservation("The disk is full.", "tool_error"),
    NullObservation(),
    AgentThinkObservation("noted"),
    AgentStateChangedObservation("", AgentState.RUNNING, "a message"),
    AgentDelegateObservation("counted", {"count": 3}, "helper"),
]


def class_name(value: object) -> str:
    """Return the class name of a row, as the id of the test."""
    return type(value).__name__


@pytest.mark.requirement(
    "D25", "D27", "D28", "D29", "D30", "D31", "D32", "D33", "D34", "D35", "D36", "D37", "D38"
)
@pytest.mark.parametrize("value", [*ACTIONS, *OBSERVATIONS], ids=class_name)
def test_every_type_survives_json(value: Action | Observation) -> None:
    """As a record of the same class."""
    wire = json.dumps(event_to_dict(event_of(value).replace(id=3, cause=1)))
    back: Any = event_from_dict(json.loads(wire))
    assert back.attached is None
    assert type(back.value) is type(value)
    assert back.value == value
    kind = value.tool if isinstance(value, ToolAction) else type(value).__name__
    assert (back.id, back.cause, back.kind) == (3, 1, kind)


@pytest.mark.requirement("D26")
@pytest.mark.parametrize("value", [*ACTIONS, *OBSERVATIONS], ids=class_name)
def test_actions_and_observations_are_distinct(value: Action | Observation) -> None:
    """No type is both, and each has its own kind of event."""
    action = isinstance(value, Action)
    assert action is not isinstance(value, Observation)
    assert isinstance(event_of(value), ActionEvent if action else ObservationEvent)
    assert isinstance(event_of(value).value, Action if action else Observation)


@pytest.mark.requirement("D22")
@pytest.mark.parametrize("value", [*ACTIONS, *OBSERVATIONS], ids=class_name)
def test_every_type_has_a_one_line_message(value: EventAction | EventObservation) -> None:
    """For people, whatever the event carries."""
    assert isinstance(value.message, str)


@pytest.mark.requirement("D25")
def test_every_type_is_in_the_tables_of_this_file() -> None:
    """A new type must get a round-trip test."""
    own = {
        found
        for name in kinds.__all__
        if isinstance(found := getattr(kinds, name), type)
        and issubclass(found, (EventAction, EventObservation))
    }
    tried = {type(value) for value in (*ACTIONS, *OBSERVATIONS)}
    assert own - tried == {EventAction, EventObservation}


@pytest.mark.requirement("D22", "D24")
def test_an_event_begins_without_an_id_a_cause_and_a_time() -> None:
    """The stream fills them in."""
    event = event_of(MessageAction("Hello"))
    assert (event.id, event.cause, event.timestamp, event.source) == (INVALID_ID, None, 0.0, None)
    assert INVALID_ID == -1


@pytest.mark.requirement("D23")
def test_the_sources_have_the_documented_values() -> None:
    """Programs compare with them."""
    assert [str(source) for source in EventSource] == ["agent", "user", "environment"]


@pytest.mark.requirement("D24")
def test_the_causal_chain_of_an_observation_can_be_followed() -> None:
    """A cause is the id of the event that led there."""
    log = [
        event_of(MessageAction("List the files")).replace(id=0),
        event_of(CmdRunAction("ls")).replace(id=1, cause=0),
        event_of(CmdOutputObservation("a.py", "ls", 0)).replace(id=2, cause=1),
    ]
    chain = [log[2]]
    while (cause := chain[-1].cause) is not None:
        chain.append(log[cause])
    assert [type(event.value) for event in chain] == [
        CmdOutputObservation,
        CmdRunAction,
        MessageAction,
    ]


@pytest.mark.requirement("D27", "D34", "D43")
def test_fields_can_be_passed_by_position_or_by_name() -> None:
    """Documented programs pass them by position."""
    assert CmdRunAction("ls") == CmdRunAction(command="ls")
    assert ChangeAgentStateAction(AgentState.STOPPED).agent_state == "stopped"
    seen = AgentStateChangedObservation("", AgentState.LOADING, "starting")
    assert (seen.text, seen.agent_state, seen.reason) == ("", "loading", "starting")
    command: Any = CmdRunAction
    nothing: Any = NullAction
    with pytest.raises(UserTypeError, match="CmdRunAction got 'command' twice"):
        command("ls", command="ls")
    with pytest.raises(
        UserTypeError, match=r"NullAction has too many values: expected at most 0 \(none\), got 1"
    ):
        nothing("x")
    with pytest.raises(ValidationError):
        CmdRunAction("ls", timeout=0)


@pytest.mark.requirement("D33", "D38")
def test_the_alias_names_are_the_same_types() -> None:
    """Both documented names work."""
    assert AgentRecallAction is RecallAction
    assert AgentRecallObservation is RecallObservation
    assert CmdRunObservation is CmdOutputObservation


@pytest.mark.requirement("D43")
def test_the_agent_states_have_the_documented_values() -> None:
    """LOADING, RUNNING, STOPPED and the others."""
    assert [state.name for state in AgentState] == [
        "LOADING", "RUNNING", "AWAITING_USER_INPUT", "PAUSED", "STOPPED", "FINISHED", "REJECTED",
        "ERROR", "AWAITING_USER_CONFIRMATION", "USER_CONFIRMED", "USER_REJECTED",
    ]  # fmt: skip


@pytest.mark.requirement("D40", "D48")
def test_only_actions_on_the_environment_are_runnable() -> None:
    """Thoughts, messages and decisions are not executed."""
    runnable = {type(value) for value in ACTIONS if is_runnable(event_of(value))}
    assert runnable == {
        CmdRunAction,
        CmdKillAction,
        FileReadAction,
        FileEditAction,
        IPythonRunCellAction,
        BrowseInteractiveAction,
        MCPAction,
        ToolAction,
    }
    assert is_runnable(event_of(TerminalAction(command="ls")))
    assert is_runnable(ActionEvent("some_tool", {"a": 1}))


@pytest.mark.requirement("D46")
def test_a_hidden_action_makes_a_hidden_event() -> None:
    """Views leave out hidden events of any kind."""
    assert event_of(CmdRunAction("ls", hidden=True)).hidden
    assert not event_of(CmdRunAction("ls")).hidden
    assert event_of(MessageAction("Hi"), hidden=True).hidden


@pytest.mark.requirement("D47")
def test_a_setup_script_is_blocking_hidden_and_times_out_in_ten_minutes() -> None:
    """The hard timeout is a field of the action."""
    action = setup_script_action("set up.sh")
    assert action == CmdRunAction(
        "chmod +x 'set up.sh' && source 'set up.sh'", blocking=True, hidden=True, timeout=600
    )


@pytest.mark.requirement("D25")
def test_the_action_of_a_built_in_tool_keeps_its_type() -> None:
    event = event_of(TerminalAction(command="ls"))
    back = event_from_dict(event.to_dict())
    assert isinstance(back, ActionEvent)
    assert back.value == TerminalAction(command="ls")


@pytest.mark.requirement("D25")
def test_an_invalid_record_is_refused_with_its_path() -> None:
    """The error locates the damage in a store."""
    with pytest.raises(
        UserValueError, match=r"action_event\.action\.command is not valid in CmdRunAction"
    ):
        _ = ActionEvent[Any]("CmdRunAction", {}).value
    with pytest.raises(UserValueError, match="expected Observation, got CmdRunAction"):
        _ = ObservationEvent[Any]("CmdRunAction", {"command": "ls"}).value
    with pytest.raises(UserValueError, match="Observation has no subclass 'Nothing'"):
        _ = ObservationEvent[Any]("Nothing", {}).value
    with pytest.raises(UserTypeError, match="got a value of type str"):
        event_of("ls")  # type: ignore[arg-type]


@pytest.mark.requirement("D25")
def test_a_class_with_the_name_of_a_built_in_type_is_refused() -> None:
    """It would be read back as the class of this module."""
    twin: type[Any] = type("NullAction", (Action,), {"__module__": __name__})
    with pytest.raises(
        UserValueError, match=r"has the name of a class of agents_tools\.classes\.event_types"
    ):
        event_of(twin())


@pytest.mark.requirement("D22", "D24")
def test_the_envelope_belongs_to_the_event_not_the_record() -> None:
    origin = Origin("ls", "call_1", ("call_1",), EventSource.ENVIRONMENT)
    event = event_of(CmdOutputObservation("a", "ls", 0)).replace(origin=origin)
    back = event_from_dict(event.to_dict())
    assert (back.source, back.tool_call_id, back.path) == (
        EventSource.ENVIRONMENT,
        "call_1",
        ("call_1",),
    )
