"""Events: their classes, their envelope and their form on the wire."""

from __future__ import annotations

import copy
import dataclasses
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from inspect import signature
from typing import Any, Literal, assert_never, cast, get_args

import pytest
from hypothesis import given, strategies as st
from inline_snapshot import snapshot
from jsonschema import Draft202012Validator

from agents_tools.errors import UserError, UserKeyError, UserTypeError, UserValueError
from agents_tools.events import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    AnyEvent,
    CallStatus,
    ErrorEvent,
    Event,
    EventSource,
    GapEvent,
    Level,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    Origin,
    RawResponseStreamEvent,
    RichEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    StreamingToolEndEvent,
    StreamingToolStartEvent,
    SummaryEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
    event_from_dict,
    event_json_schema,
    event_to_dict,
    register_decoder,
    register_event,
)
from agents_tools.events.base import event_class
from agents_tools.events.envelope import INVALID_ID
from agents_tools.events.kinds import RunRecordEvent

CALL = Origin("fetch", "call_2", ("call_1", "call_2"), EventSource.ENVIRONMENT)
EPOCH_2026 = 1_790_000_000.25

# --- strategies -----------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=30)
numbers = st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False, allow_infinity=False))
json_values: st.SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=8,
)
json_objects = st.dictionaries(texts, json_values, max_size=3)
counts = st.integers(0, 2**63 - 1)


def maybe(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    """Sometimes return `None`."""
    return st.one_of(st.none(), strategy)


payloads: dict[type[Event], dict[str, st.SearchStrategy[Any]]] = {
    NotifyStreamEvent: {
        "data": texts,
        "is_delta": st.booleans(),
        "tag": maybe(texts),
        "level": st.sampled_from(get_args(Level)),
    },
    ToolProgressEvent: {"current": numbers, "total": maybe(numbers), "message": maybe(texts)},
    ToolArtifactEvent: {
        "name": texts,
        "data": maybe(st.one_of(texts, st.binary(max_size=50))),
        "uri": maybe(texts),
        "mime_type": maybe(texts),
    },
    ToolStreamStartEvent: {"input_args": json_objects},
    ToolStreamEndEvent: {"status": st.sampled_from(get_args(CallStatus)), "duration": numbers},
    ToolAttemptEvent: {"attempt": counts, "error": maybe(texts), "delay": numbers},
    GapEvent: {"dropped": counts},
    RunItemStreamEvent: {"name": texts, "item": json_objects},
    RawResponseStreamEvent: {"data": json_values},
    AgentUpdatedStreamEvent: {"agent": texts},
    RunStartedEvent: {"run_id": maybe(texts), "agent": maybe(texts)},
    RunRecordEvent: {
        "name": st.sampled_from(["run_created", "call_begun"]),
        "data": json_objects,
    },
    RunFinishedEvent: {
        "status": texts,
        "output": json_values,
        "usage": maybe(json_objects),
        "error": maybe(texts),
    },
    MessageEvent: {
        "content": json_values,
        "role": st.sampled_from(["user", "assistant", "system"]),
    },
    SummaryEvent: {
        "summary": texts,
        "items": counts,
        "digest": texts,
        "usage": maybe(json_objects),
    },
    ActionEvent: {"kind": texts, "action": json_objects, "hidden": st.booleans()},
    ObservationEvent: {"kind": texts, "observation": json_objects, "hidden": st.booleans()},
    AgentStateChangedEvent: {"state": texts, "reason": texts},
    ErrorEvent: {"message": texts, "kind": maybe(texts)},
    NullEvent: {},
}

origins = st.builds(
    Origin,
    maybe(texts),
    maybe(texts),
    st.lists(texts, max_size=3).map(tuple),
    st.sampled_from(EventSource),
)
stream_numbers = st.integers(-1, 2**63 - 1)


@st.composite
def events(draw: st.DrawFn) -> Event:
    """Return any event, with any envelope."""
    cls = draw(st.sampled_from(list(payloads)))
    event = cls(**draw(st.fixed_dictionaries(payloads[cls])))
    return event.replace(
        id=draw(stream_numbers),
        seq=draw(stream_numbers),
        cause=draw(maybe(stream_numbers)),
        timestamp=draw(st.floats(0, 4e9)),
        origin=draw(maybe(origins)),
    )


@cache
def validator() -> Any:
    """Return a validator for the published schema."""
    schema = event_json_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def fits_the_schema(wire: Any) -> bool:
    """Return whether the published schema accepts a wire form."""
    return validator().is_valid(wire)


def can_be_read(wire: Any) -> bool:
    """Return whether the reader accepts a wire form."""
    try:
        event_from_dict(wire)
    except UserValueError:
        return False
    return True


# --- classes --------------------------------------------------------------------------------------


@pytest.mark.requirement("A40")
def test_a_notification_needs_only_its_text() -> None:
    """It is the most common event of tools; everything but the text has a default."""
    event = NotifyStreamEvent("working")
    assert (event.data, event.is_delta, event.tag, event.level) == ("working", False, None, "info")
    assert event == NotifyStreamEvent(data="working")
    assert event.type == "notify_stream_event"
    with pytest.raises(TypeError, match="data"):
        NotifyStreamEvent()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]


def test_an_event_that_was_not_emitted_has_an_empty_envelope() -> None:
    """Code that handles events need not check whether they were emitted."""
    for event in (NotifyStreamEvent("x"), NullEvent(), RunItemStreamEvent("tool_called", {})):
        assert (event.id, event.seq, event.timestamp, event.cause) == (INVALID_ID, -1, 0.0, None)
        assert (event.source, event.path, event.tool_name, event.tool_call_id) == (
            None,
            (),
            None,
            None,
        )


def test_every_class_of_the_union_has_its_own_wire_type() -> None:
    """A reader finds the class by its wire type."""
    classes = [getattr(arm, "__origin__", arm) for arm in get_args(AnyEvent)]
    assert {cls.type for cls in classes} == snapshot(
        {
            "notify_stream_event",
            "tool_progress_event",
            "tool_artifact_event",
            "tool_stream_start_event",
            "tool_stream_end_event",
            "tool_attempt_event",
            "gap_event",
            "run_item_stream_event",
            "raw_response_event",
            "agent_updated_stream_event",
            "run_started_event",
            "run_finished_event",
            "run_record_event",
            "message_event",
            "summary_event",
            "action_event",
            "observation_event",
            "agent_state_changed_event",
            "error_event",
            "null_event",
        }
    )
    assert set(classes) == set(payloads)


def test_only_conversation_events_are_durable_and_only_display_events_can_be_dropped() -> None:
    """No event can be both."""
    assert {cls.__name__ for cls in payloads if cls.durable} == {
        "AgentUpdatedStreamEvent",
        "RunItemStreamEvent",
        "MessageEvent",
        "SummaryEvent",
        "ActionEvent",
        "ObservationEvent",
        "AgentStateChangedEvent",
        "ErrorEvent",
    }
    assert {cls.__name__ for cls in payloads if cls.droppable} == {
        "NotifyStreamEvent",
        "ToolProgressEvent",
        "ToolArtifactEvent",
        "RawResponseStreamEvent",
    }


def test_bracket_events_have_their_older_names_too() -> None:
    """Programs can use either name of these classes."""
    assert StreamingToolStartEvent is ToolStreamStartEvent
    assert StreamingToolEndEvent is ToolStreamEndEvent


def test_events_match_by_position() -> None:
    """Consumers use `match` to distinguish events; a type checker verifies that it is complete."""

    def read(event: AnyEvent) -> str:
        match event:
            case NotifyStreamEvent(data, tag="ok"):
                return f"ok {data}"
            case NotifyStreamEvent(data) | MessageEvent(data):
                return f"text {data}"
            case ToolProgressEvent(current, total):
                return f"{current}/{total}"
            case ToolArtifactEvent() | ToolStreamStartEvent() | ToolStreamEndEvent():
                return "tool"
            case ToolAttemptEvent() | GapEvent() | RawResponseStreamEvent():
                return "tool"
            case RunItemStreamEvent() | RunStartedEvent() | RunFinishedEvent() | RunRecordEvent():
                return "run"
            case AgentUpdatedStreamEvent() | AgentStateChangedEvent() | NullEvent():
                return "agent"
            case ActionEvent() | ObservationEvent() | ErrorEvent() | SummaryEvent():
                return "conversation"
            case _:
                assert_never(event)

    assert read(NotifyStreamEvent("done", tag="ok")) == "ok done"
    assert read(NotifyStreamEvent("hm")) == "text hm"
    assert read(ToolProgressEvent(1, 3)) == "1/3"


@given(events(), events())
def test_events_are_equal_by_value(one: Event, other: Event) -> None:
    """Tests and stores compare events; equal content in an equal envelope is equal."""
    assert one == one.replace()
    assert hash(one) == hash(one.replace())
    assert (one == other) == (one.to_dict() == other.to_dict())
    assert one != one.replace(seq=one.seq - 1)
    assert one != "something else"


def test_events_of_different_classes_are_never_equal() -> None:
    """An action and an observation with the same fields differ."""
    assert RunStartedEvent("a", "b") != ErrorEvent("a", "b")


def test_the_repr_is_short_and_shows_the_payload() -> None:
    """Failing tests and logs print many events."""
    event = NotifyStreamEvent("x" * 500, tag="ok").stamped(CALL, 7)
    assert repr(event) == snapshot(
        "NotifyStreamEvent(data='xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx…,"
        " tag='ok', seq=7, path='call_1/call_2')"
    )
    assert repr(GapEvent(3).replace(id=4)) == "GapEvent(dropped=3, id=4)"
    assert repr(NullEvent()) == "NullEvent()"


def test_constructors_refuse_wrong_arguments_like_functions() -> None:
    """Every class accepts its fields by position and by name, once each."""
    with pytest.raises(
        TypeError, match=r"ErrorEvent.__init__\(\) missing 1 .* argument: 'message'"
    ):
        ErrorEvent()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"takes from 2 to 3 positional arguments but 4 were given"):
        ErrorEvent("a", "b", "c")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'text'"):
        ErrorEvent("a", text="b")  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    with pytest.raises(TypeError, match=r"multiple values for argument 'message'"):
        ErrorEvent("a", message="b")  # type: ignore[misc] # pyright: ignore[reportCallIssue]
    assert ErrorEvent("a", kind="b") == ErrorEvent(kind="b", message="a")


def test_event_classes_have_signatures() -> None:
    """Programs construct events by position and by name; `help` shows the parameters."""

    def parameters(cls: type[Event]) -> str:
        return ", ".join(
            name if one.default is one.empty else f"{name}={one.default!r}"
            for name, one in signature(cls).parameters.items()
        )

    assert {cls.__name__: parameters(cls) for cls in payloads} == snapshot(
        {
            "NotifyStreamEvent": "data, is_delta=False, tag=None, level='info'",
            "ToolProgressEvent": "current, total=None, message=None",
            "ToolArtifactEvent": "name, data=None, uri=None, mime_type=None",
            "ToolStreamStartEvent": "input_args",
            "ToolStreamEndEvent": "status, duration=0.0",
            "ToolAttemptEvent": "attempt, error=None, delay=0.0",
            "GapEvent": "dropped",
            "RunItemStreamEvent": "name, item",
            "RawResponseStreamEvent": "data",
            "AgentUpdatedStreamEvent": "agent",
            "RunStartedEvent": "run_id=None, agent=None",
            "RunFinishedEvent": "status='ok', output=None, usage=None, error=None",
            "RunRecordEvent": "name, data",
            "MessageEvent": "content, role='user'",
            "SummaryEvent": "summary, items, digest, usage=None",
            "ActionEvent": "kind, action, hidden=False",
            "ObservationEvent": "kind, observation, hidden=False",
            "AgentStateChangedEvent": "state, reason=''",
            "ErrorEvent": "message, kind=None",
            "NullEvent": "",
        }
    )


@pytest.mark.parametrize(
    ("cls", "payload", "message"),
    [
        (NotifyStreamEvent, {"data": 3}, "data: expected a string, got 3."),
        (
            NotifyStreamEvent,
            {"data": "x", "is_delta": 1},
            "is_delta: expected true or false, got 1.",
        ),
        (
            NotifyStreamEvent,
            {"data": "x", "tag": b"t"},
            "tag: expected a string or null, got b't'.",
        ),
        (
            NotifyStreamEvent,
            {"data": "x", "level": "loud"},
            "level: expected one of debug, info, success, warning, error, got 'loud'.",
        ),
        (ToolProgressEvent, {"current": math.nan}, "current: expected a finite number, got nan."),
        (ToolProgressEvent, {"current": True}, "current: expected a finite number, got True."),
        (
            ToolProgressEvent,
            {"current": 1, "total": math.inf},
            "total: expected a finite number or null, got inf.",
        ),
        (
            ToolProgressEvent,
            {"current": 1, "message": 2},
            "message: expected a string or null, got 2.",
        ),
        (
            GapEvent,
            {"dropped": -1},
            "dropped: expected a whole number from 0 to 2**63 - 1, got -1.",
        ),
        (ToolStreamStartEvent, {"input_args": []}, "input_args: expected an object, got a list."),
        (
            ToolStreamEndEvent,
            {"status": "error"},
            (
                "status: expected one of ok, invalid_args, tool_error, timeout, cancelled, denied, "
                "overloaded, lost, got 'error'."
            ),
        ),
        (
            ToolStreamEndEvent,
            {"status": "ok", "duration": "1 s"},
            "duration: expected a finite number, got '1 s'.",
        ),
        (
            ToolArtifactEvent,
            {"name": "a", "data": object()},
            "data: expected a string or bytes or null, got a Python object of type object.",
        ),
        (
            MessageEvent,
            {"content": "x", "role": "god"},
            "role: expected one of user, assistant, system, got 'god'.",
        ),
    ],
)
def test_an_invalid_payload_is_refused_at_construction(
    cls: type[Any], payload: dict[str, Any], message: str
) -> None:
    """The error appears at its origin, and not at a remote consumer."""
    with pytest.raises(UserValueError) as caught:
        cls(**payload)
    assert str(caught.value) == f"{cls.__name__}.{message}"


def test_replace_changes_payload_and_envelope_on_a_copy() -> None:
    """A stream assigns ids with it, and the event object of the tool is unchanged."""
    event = ObservationEvent("K", {"a": 1}).stamped(CALL, 3)
    stored = event.replace(id=9, cause=4, hidden=True)
    assert (stored.id, stored.cause, stored.hidden, stored.seq) == (9, 4, True, 3)
    assert (event.id, event.cause, event.hidden) == (-1, None, False)
    with pytest.raises(TypeError, match="has no field 'colour'"):
        event.replace(colour="red")
    with pytest.raises(UserValueError, match=r"ObservationEvent\.hidden"):
        event.replace(hidden="yes")


@given(events())
def test_events_survive_copy_and_pickle(event: Event) -> None:
    """Events are sent between processes, and users copy them."""
    assert copy.copy(event) == event
    assert copy.deepcopy(event) == event
    assert pickle.loads(pickle.dumps(event)) == event  # noqa: S301 - made right here


# --- the envelope ---------------------------------------------------------------------------------


def test_stamping_fills_in_the_envelope_on_a_copy() -> None:
    """A tool can emit one event object twice; each time it is another event."""
    for event in (
        NotifyStreamEvent("x", is_delta=True, tag="t", level="debug"),
        ToolProgressEvent(1, 2, "m"),
        ToolStreamStartEvent({"a": 1}),
        ToolStreamEndEvent("lost", 1.5),
        ToolArtifactEvent("a", b"x"),
        NullEvent(),
    ):
        caused = event.replace(cause=5)
        one, two = caused.stamped(CALL, 0), caused.stamped(CALL, 1)
        assert (one.seq, two.seq, caused.seq) == (0, 1, -1)
        assert one.timestamp > EPOCH_2026 > caused.timestamp
        assert one.origin is CALL
        assert (one.source, one.path) == (EventSource.ENVIRONMENT, ("call_1", "call_2"))
        assert (one.tool_name, one.tool_call_id) == ("fetch", "call_2")
        assert one.replace(seq=-1, timestamp=0.0, origin=None) == caused


def test_origins_are_equal_by_value() -> None:
    """A received event has its own origin object, equal to the one sent."""
    assert Origin("a", "b", ("b",)) == Origin("a", "b", ("b",))
    assert hash(Origin("a", "b", ("b",))) == hash(Origin("a", "b", ("b",)))
    assert Origin("a", "b", ("b",)) == Origin("a", "b", ("b",), sinks=(print,))
    assert Origin("a", "b", ("b",)) != Origin("a", "b", ("c",))
    assert Origin("a") != "a"
    assert repr(CALL) == "Origin('fetch', 'call_2', ('call_1', 'call_2'), environment)"


# --- the wire -------------------------------------------------------------------------------------


def test_the_wire_form_is_flat_and_versioned() -> None:
    """User interfaces and stores depend on it."""
    event = (
        NotifyStreamEvent("héllo", tag="ok")
        .stamped(CALL, 7)
        .replace(id=12, cause=11, timestamp=EPOCH_2026)
    )
    assert event.to_dict() == snapshot(
        {
            "v": 1,
            "type": "notify_stream_event",
            "id": 12,
            "seq": 7,
            "timestamp": "2026-09-21T14:13:20.250000+00:00",
            "source": "environment",
            "cause": 11,
            "path": ["call_1", "call_2"],
            "tool_name": "fetch",
            "tool_call_id": "call_2",
            "data": "héllo",
            "is_delta": False,
            "tag": "ok",
            "level": "info",
        }
    )
    assert event_to_dict(event) == event.to_dict()


def test_user_data_never_collides_with_wire_keys() -> None:
    """Arguments can be called `type` or `v`; they stay inside their field."""
    event = ToolStreamStartEvent({"type": "gap_event", "v": 9, "path": "/"})
    wire = event.to_dict()
    assert (wire["type"], wire["v"]) == ("tool_stream_start_event", 1)
    assert wire["input_args"] == {"type": "gap_event", "v": 9, "path": "/"}
    assert event_from_dict(wire) == event


@given(events())
def test_every_event_survives_the_wire(event: Event) -> None:
    """A reopened store returns equal events."""
    wire = json.loads(json.dumps(event.to_dict(), allow_nan=False))
    assert event_from_dict(wire) == event
    assert event.__class__.from_dict(wire) == event
    assert event_from_dict(wire).to_dict() == event.to_dict()


@given(events())
def test_every_wire_form_fits_the_published_schema(event: Event) -> None:
    """Readers in other languages are generated from it."""
    assert fits_the_schema(json.loads(json.dumps(event.to_dict())))


def test_binary_artifacts_are_encoded_as_marked_base64() -> None:
    """JSON has no bytes, and text that looks like base64 is still text."""
    binary = ToolArtifactEvent("a", b"\x00\xff").to_dict()
    assert binary["data"] == {"encoding": "base64", "data": "AP8="}
    assert ToolArtifactEvent("a", "AP8=").to_dict()["data"] == "AP8="


def test_lone_surrogates_are_replaced_and_pairs_are_joined() -> None:
    """Undecodable output of a program contains them, and a UTF-8 encoder would fail."""
    event = RunFinishedEvent("\udc80é", {"k\ud800": ["\ud83d\ude00"]})
    assert event.to_dict()["status"] == "\ufffdé"
    assert event.to_dict()["output"] == {"k\ufffd": ["😀"]}
    json.dumps(event.to_dict(), ensure_ascii=False).encode()


def test_a_wire_form_is_independent_of_its_event() -> None:
    """Masking secrets in it must not change the event for other consumers."""
    arguments: dict[str, Any] = {"list": [1]}
    event = ToolStreamStartEvent(arguments)
    wire = event.to_dict()
    wire["input_args"]["list"].append(2)
    assert event.input_args == {"list": [1]}
    again = event_from_dict(wire)
    wire["input_args"]["list"].append(3)
    assert again == ToolStreamStartEvent({"list": [1, 2]})


CYCLE: list[Any] = []
CYCLE.append(CYCLE)


@pytest.mark.parametrize(
    ("event", "message"),
    [
        (
            ToolStreamStartEvent({"a": {"b": [1, {2, 3}]}}),
            (
                "tool_stream_start_event.input_args.a.b[1]: expected a JSON value, "
                "got a Python object of type set."
            ),
        ),
        (
            RawResponseStreamEvent({"a": math.nan}),
            "raw_response_event.data.a: expected a finite number, got nan.",
        ),
        (
            RawResponseStreamEvent({1: 2}),
            "raw_response_event.data: expected an object whose keys are strings, got 1.",
        ),
        (
            RawResponseStreamEvent(10**5000),
            (
                "raw_response_event.data: expected a whole number of at most 4,300 digits, "
                "got a longer number."
            ),
        ),
        (
            RawResponseStreamEvent(CYCLE),
            "raw_response_event.data"
            + "[0]" * 100
            + ": expected at most 100 levels of nesting, got a list.",
        ),
        (
            NullEvent().replace(timestamp=1e300),
            "null_event.timestamp: expected seconds since 1970, got 1e+300.",
        ),
        (
            NullEvent().replace(timestamp=math.nan),
            "null_event.timestamp: expected seconds since 1970, got nan.",
        ),
    ],
)
def test_values_without_a_json_form_are_refused_with_their_path(event: Event, message: str) -> None:
    """NaN is not JSON, and a Python repr instead would be read as data."""
    with pytest.raises(UserValueError) as caught:
        event.to_dict()
    assert str(caught.value) == message


def test_tuples_and_special_strings_and_numbers_become_plain_json() -> None:
    """Payloads often hold enum members and tuples."""
    data = {"source": EventSource.USER, "pair": (1, 2.5), "flag": True, "none": None}
    wire = RawResponseStreamEvent(data).to_dict()
    assert wire["data"] == {"source": "user", "pair": [1, 2.5], "flag": True, "none": None}
    assert type(wire["data"]["source"]) is str


WIRE = ToolProgressEvent(1, 2).stamped(CALL, 7).replace(timestamp=EPOCH_2026).to_dict()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"type": "tool_progres_event"},
            (
                "event.type: unknown event type 'tool_progres_event'. Did you mean "
                "'tool_progress_event'? Register your own classes with register_event."
            ),
        ),
        (
            {"type": None},
            "event.type: unknown event type None. Register your own classes with register_event.",
        ),
        (
            {"v": 2},
            "event.v: expected version 1 of the wire form, got 2. Read the event with a release that supports it.",
        ),
        (
            {"v": True},
            "event.v: expected version 1 of the wire form, got True. Read the event with a release that supports it.",
        ),
        (
            {"v": 1.0},
            "event.v: expected version 1 of the wire form, got 1.0. Read the event with a release that supports it.",
        ),
        (
            {"curent": 1},
            "tool_progress_event: unknown field 'curent'. Did you mean 'current'?",
        ),
        ({"current": "1"}, "tool_progress_event.current: expected a finite number, got '1'."),
        ({"current": math.nan}, "tool_progress_event.current: expected a finite number, got nan."),
        ({"current": False}, "tool_progress_event.current: expected a finite number, got False."),
        ({"message": ["a"]}, "tool_progress_event.message: expected a string or null, got a list."),
        (
            {"id": -2},
            "tool_progress_event.id: expected a whole number from -1 to 2**63 - 1, got -2.",
        ),
        (
            {"seq": True},
            "tool_progress_event.seq: expected a whole number from -1 to 2**63 - 1, got True.",
        ),
        (
            {"cause": "3"},
            (
                "tool_progress_event.cause: expected a whole number from -1 to 2**63 - 1 or null, "
                "got '3'."
            ),
        ),
        (
            {"timestamp": "2026-09-21T14:13:20"},
            (
                "tool_progress_event.timestamp: expected an ISO 8601 time from 1970 to 9999 with its "
                "offset from UTC, got '2026-09-21T14:13:20'."
            ),
        ),
        (
            {"timestamp": 12},
            (
                "tool_progress_event.timestamp: expected an ISO 8601 time from 1970 to 9999 with its "
                "offset from UTC, got 12."
            ),
        ),
        (
            {"timestamp": "1969-12-31T23:59:59Z"},
            (
                "tool_progress_event.timestamp: expected an ISO 8601 time from 1970 to 9999 with its "
                "offset from UTC, got '1969-12-31T23:59:59Z'."
            ),
        ),
        ({"path": "call"}, "tool_progress_event.path: expected a list of strings, got 'call'."),
        ({"path": [1]}, "tool_progress_event.path: expected a list of strings, got a list."),
        (
            {"source": "robot"},
            (
                "tool_progress_event.source: expected one of agent, user, environment or null, "
                "got 'robot'."
            ),
        ),
        (
            {"source": None},
            (
                "tool_progress_event.source: expected one of agent, user, environment with a path, "
                "got None."
            ),
        ),
        ({"tool_name": 3}, "tool_progress_event.tool_name: expected a string or null, got 3."),
    ],
)
def test_an_invalid_wire_form_is_refused_with_its_path(
    changes: dict[str, Any], message: str
) -> None:
    """Data of a store or a peer can be anything; it becomes an error, not a malformed event."""
    with pytest.raises(UserValueError) as caught:
        event_from_dict(WIRE | changes)
    assert str(caught.value) == message


def test_a_missing_field_is_named() -> None:
    """Fields without a default are required."""
    with pytest.raises(
        UserValueError,
        match=r"^tool_progress_event\.current is missing: expected a finite number\. Add the field\.$",
    ):
        event_from_dict({"v": 1, "type": "tool_progress_event"})
    assert event_from_dict({"v": 1, "type": "tool_progress_event", "current": 1}) == (
        ToolProgressEvent(1)
    )


@pytest.mark.parametrize("data", [None, [], "x", 3])
def test_a_wire_form_that_is_not_an_object_is_refused(data: Any) -> None:
    """The line of a log can hold any JSON."""
    with pytest.raises(UserValueError, match="event: expected an object, got"):
        event_from_dict(data)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ({"encoding": "hex", "data": "00"}, "tool_artifact_event.data: expected a string or {"),
        ({"encoding": "base64"}, "tool_artifact_event.data: expected a string or {"),
        ({"encoding": "base64", "data": 3}, "tool_artifact_event.data.data: expected base64 text"),
        ({"encoding": "base64", "data": "A"}, "tool_artifact_event.data.data: expected base64"),
        ({"encoding": "base64", "data": "é==="}, "tool_artifact_event.data.data: expected base64"),
        (["x"], "tool_artifact_event.data: expected a string or bytes or null, got a list."),
    ],
)
def test_binary_content_is_checked(content: Any, message: str) -> None:
    """Partially decoded base64 would be a corrupt file without an error."""
    with pytest.raises(UserValueError) as caught:
        event_from_dict({"v": 1, "type": "tool_artifact_event", "name": "a", "data": content})
    assert str(caught.value).startswith(message)


def test_a_class_reads_only_its_own_wire_form() -> None:
    """`ToolProgressEvent.from_dict` must return a `ToolProgressEvent`."""
    with pytest.raises(UserValueError, match=r"gap_event\.type: expected 'gap_event', got 'tool_"):
        GapEvent.from_dict(WIRE)


@given(events(), st.data())
def test_schema_and_reader_accept_the_same_wire_forms(event: Event, data: st.DataObject) -> None:
    wire = json.loads(json.dumps(event.to_dict()))
    key = data.draw(st.sampled_from(sorted(wire)))
    if data.draw(st.booleans()):
        del wire[key]
    else:
        # no whole floats: JSON has one kind of number, and Python's reader tells 1.0 from 1
        wire[key] = data.draw(
            st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=3), json_objects)
        )
    if isinstance(wire.get("timestamp"), str) and wire["timestamp"] != event.to_dict()["timestamp"]:
        return  # `format` is an annotation: the schema does not look into times
    assert can_be_read(wire) == fits_the_schema(wire)


def test_the_schema_describes_each_class_once() -> None:
    """The schema is sufficient to write a reader for an event."""
    schema = event_json_schema()
    assert {arm["$ref"].rpartition("/")[2] for arm in schema["oneOf"]} >= {
        cls.__name__ for cls in payloads
    }
    assert schema["$defs"]["GapEvent"] == snapshot(
        {
            "type": "object",
            "title": "GapEvent",
            "description": "The place where display events were dropped because the consumer was too slow.",
            "properties": {
                "v": {"const": 1},
                "type": {"const": "gap_event"},
                "id": {
                    "type": "integer",
                    "minimum": -1,
                    "maximum": 9223372036854775807,
                    "default": -1,
                },
                "seq": {
                    "type": "integer",
                    "minimum": -1,
                    "maximum": 9223372036854775807,
                    "default": -1,
                },
                "timestamp": {"type": ["string", "null"], "default": None, "format": "date-time"},
                "source": {"enum": ["agent", "user", "environment", None], "default": None},
                "cause": {
                    "type": ["integer", "null"],
                    "minimum": -1,
                    "maximum": 9223372036854775807,
                    "default": None,
                },
                "path": {"type": "array", "items": {"type": "string"}, "default": []},
                "tool_name": {"type": ["string", "null"], "default": None},
                "tool_call_id": {"type": ["string", "null"], "default": None},
                "dropped": {"type": "integer", "minimum": 0, "maximum": 9223372036854775807},
            },
            "required": ["v", "type", "dropped"],
            "additionalProperties": False,
            "anyOf": [
                {"required": ["source"], "properties": {"source": {"type": "string"}}},
                {
                    "properties": {
                        "source": {"type": "null"},
                        "path": {"maxItems": 0},
                        "tool_name": {"type": "null"},
                        "tool_call_id": {"type": "null"},
                    }
                },
            ],
        }
    )
    schema["$defs"].clear()
    assert event_json_schema()["$defs"]


# --- registered classes --------------------------------------------------------------------------


@register_event
class ThoughtEvent(Event):
    """A thought of an agent."""

    type = "test_thought_event"

    text: str
    depth: int = 1
    notes: dict[str, Any] | None = None


@register_event
@dataclass(slots=True, eq=False, repr=False)  # pyright: ignore[reportGeneralTypeIssues]
class PlainEvent(Event):
    """An event with a field of each type."""

    type = "test_plain_event"

    level: Literal["low", "high"]
    ratio: float
    rows: list[int] = dataclasses.field(default_factory=list[int])
    names: Mapping[str, str] | None = None
    content: str | bytes = b""
    extra: Any = None


@event_class
class LoudNote(NotifyStreamEvent):
    """A notification with a volume."""

    type = "test_loud_note"

    volume: int = 11


def test_a_registered_class_is_serialized_like_the_others() -> None:
    """Higher layers register their own events."""
    event = ThoughtEvent("hm", notes={"a": 1}).stamped(CALL, 3)
    assert event_from_dict(event.to_dict()) == event
    assert event != event.replace(depth=2)
    assert "ThoughtEvent" in event_json_schema()["$defs"]
    assert fits_the_schema(event.to_dict())
    assert register_event(ThoughtEvent) is ThoughtEvent


def test_a_subclass_inherits_fields_and_keeps_its_own_in_copies() -> None:
    """The constructor of the base class would silently drop the new field."""
    note = LoudNote("hey", volume=3).stamped(CALL, 1)
    assert (note.data, note.volume, note.seq) == ("hey", 3, 1)
    assert LoudNote.from_dict(note.to_dict()) == note
    assert note.droppable
    with pytest.raises(UserValueError, match=r"LoudNote\.data"):
        LoudNote(3)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def test_two_classes_of_one_wire_type_are_refused() -> None:
    """A reader could not choose between them."""

    class Other(Event):
        type = "gap_event"

    @event_class
    class Nameless(Event):
        text: str

    with pytest.raises(UserValueError, match="GapEvent has the same type 'gap_event'"):
        register_event(Other)
    with pytest.raises(UserValueError, match="Nameless cannot be registered: it has no `type`"):
        register_event(Nameless)
    with pytest.raises(UserTypeError, match="Nameless has no wire form: it does not define `type`"):
        Nameless("x").to_dict()


@pytest.mark.parametrize("name", ["v", "type", "seq", "source", "to_dict", "replace"])
def test_a_field_cannot_use_a_name_of_the_envelope(name: str) -> None:
    """The flat wire form would have two values for one key."""
    with pytest.raises(UserValueError, match=rf"Field Bad\.{name} is not allowed"):
        register_event(type("Bad", (Event,), {"type": "bad_event", "__annotations__": {name: str}}))


def test_the_fields_of_a_class_are_read_from_their_annotations() -> None:
    """A class of events is written like a dataclass."""
    event = PlainEvent("low", 0.5, content=b"\xff").stamped(CALL, 1)
    assert event_from_dict(json.loads(json.dumps(event.to_dict()))) == event
    assert fits_the_schema(event.to_dict())
    assert event_json_schema()["$defs"]["PlainEvent"]["properties"]["rows"] == {
        "type": "array",
        "default": [],
    }
    whole = json.loads(json.dumps(event_json_schema()))  # also a default has its wire form
    default = whole["$defs"]["PlainEvent"]["properties"]["content"]["default"]
    assert default == PlainEvent("low", 1).to_dict()["content"]
    assert PlainEvent("low", 1).rows is not PlainEvent("low", 1).rows
    for wrong in ({"rows": ()}, {"level": "mid"}, {"level": []}, {"names": "a"}, {"content": 1}):
        with pytest.raises(UserValueError, match=rf"PlainEvent\.{next(iter(wrong))}: expected"):
            cast("Any", PlainEvent)(**{"level": "low", "ratio": 1, **wrong})


def test_a_field_without_a_wire_form_is_refused_where_the_class_is_written() -> None:
    """The error would otherwise appear in a store or at a remote reader."""
    with pytest.raises(
        UserTypeError, match=r"Bad\.when has an unsupported type: .* got <class 'co"
    ):
        register_event(type("Bad", (Event,), {"type": "bad", "__annotations__": {"when": complex}}))
    with pytest.raises(UserTypeError, match=r"Bad\.n has an unsupported type: .* got .*Literal\[1"):
        register_event(
            type("Bad", (Event,), {"type": "bad", "__annotations__": {"n": Literal[1, 2]}})
        )
    with pytest.raises(UserTypeError, match=r"Bad has an unknown type in its fields: .*Nowhere"):
        register_event(
            type("Bad", (Event,), {"type": "bad", "__annotations__": {"when": "Nowhere"}})
        )


class Task:
    """An application object that events can carry."""

    def __init__(self, goal: str) -> None:
        self.goal = goal


def test_a_rich_event_carries_its_object_in_the_process() -> None:
    """Consumers in the process get the object, others its JSON form."""
    task = Task("win")
    event = ActionEvent[Task]("Task", {"goal": "win"}).attach(task)
    assert event.value is task
    assert event.stamped(CALL, 1).attached is task
    assert event.to_dict()["action"] == {"goal": "win"}
    assert event == ActionEvent("Task", {"goal": "win"})


def test_a_rich_event_from_the_wire_is_decoded_once_by_the_registered_decoder() -> None:
    """With registered classes, replayed events are as rich as live ones."""

    @register_event
    class TaskEvent(RichEvent[Task]):
        type = "test_task_event"

        goal: str

    event = event_from_dict(TaskEvent("win").to_dict())
    assert isinstance(event, TaskEvent)
    with pytest.raises(UserKeyError, match=r"Call register_decoder\(TaskEvent, …\)"):
        _ = event.value

    def decode(event: TaskEvent) -> Task:
        return Task(event.goal)

    register_decoder(TaskEvent, decode)
    register_decoder(TaskEvent, decode)
    assert event.value.goal == "win"
    assert event.value is event.value
    with pytest.raises(UserError, match="TaskEvent already has a decoder"):
        register_decoder(TaskEvent, lambda event: Task(event.goal * 2))


# --- weight ---------------------------------------------------------------------------------------


def test_events_and_channel_load_nothing_heavy() -> None:
    """Importing the package imports these modules, whether or not anything is streamed."""
    code = (
        "import sys; import agents_tools.events.channel; heavy = {'asyncio', 'anyio', 'pydantic', "
        "'griffe', 'json', 'datetime', 'base64', 'uuid', 'difflib'}; print(heavy & set(sys.modules))"
    )
    found = subprocess.run(  # noqa: S603 - the command is written above
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=20
    )
    assert found.stdout.strip() == "set()"
