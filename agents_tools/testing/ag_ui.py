"""A check of the rules for a stream of AG-UI events.

Clients reject some invalid streams completely, and silently lose a part of others. This check
rejects both.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Literal, NoReturn, cast

from agents_tools.testing._ag_ui_schema import TYPES, wrong_shape
from agents_tools.text.nouns import type_with_article

__all__ = ["AgUiStreamError", "assert_agui", "check_ag_ui"]


class AgUiStreamError(AssertionError):
    """A stream of AG-UI events violates a rule.

    Attributes:
        rule: The description of the rule.
        index: The index of the event that violates it; `None` if an event is missing.
        event: The event.
    """

    def __init__(self, rule: str, why: str, index: int | None = None, event: object = None) -> None:
        where = "At the end" if index is None else f"At event {index}, {_short(event)}"
        super().__init__(f"Broken rule: {rule}. {where}: {why}.")
        self.rule: Final = rule
        self.index: Final = index
        self.event: Final = event


def check_ag_ui(
    events: Iterable[Mapping[str, Any] | str],
    version: Literal["1.0", "0.x"] = "1.0",
    *,
    earlier_calls: Iterable[str] = (),
) -> None:
    """Check that the events of one response to an AG-UI client follow the rules.

    - the stream begins with RUN_STARTED and ends with RUN_FINISHED or RUN_ERROR
    - every event is of a known type, with its required fields, no unknown ones and no nulls;
      times are integers
    - every message, call, step and sub-agent that is opened is closed before the run ends, by the
      same owner; only open ones are continued or closed
    - no id is used twice; a call has one result, after its end
    - an activity is changed only after its snapshot
    - a client before 1.0 gets no events or fields of later versions

    Args:
        events: The events, as JSON objects, as JSON text or as frames of an event stream.
        version: The protocol version of the client: `1.0` or `0.x`.
        earlier_calls: The ids of calls of earlier runs, whose results can come in this one.

    Raises:
        AgUiStreamError: A rule is violated; the message names the rule, the event and the reason.
    """
    book = _AgUiChecker(version, earlier_calls)
    for index, given in enumerate(events):
        for event in _read(given, index):
            book.enter(index, event)
    book.close()


assert_agui = check_ag_ui
"""An alias of `check_ag_ui`."""


# --- parsing


def _read(given: object, index: int) -> Iterable[Mapping[str, Any]]:
    if isinstance(given, Mapping):
        return [cast("Mapping[str, Any]", given)]
    if not isinstance(given, str):
        raise AgUiStreamError(
            _SHAPE, f"an event is an object, not {type_with_article(given)}", index
        )
    if "\r" in given:
        raise AgUiStreamError(_FRAMES, "lines end with a line feed alone", index, given)
    if not given.lstrip().startswith("{"):
        return [_parsed(text, index) for text in _data_of(given, index)]
    return [_parsed(given, index)]


def _data_of(frames: str, index: int) -> list[str]:
    if not frames.endswith("\n\n"):
        raise AgUiStreamError(_FRAMES, "a frame ends with an empty line", index, frames)
    found: list[str] = []
    for frame in frames[:-2].split("\n\n"):
        lines = [line for line in frame.split("\n") if not line.startswith(":")]
        data = [line.removeprefix("data:").lstrip(" ") for line in lines if line[:5] == "data:"]
        if data:
            found.append("\n".join(data))
        elif lines not in ([], [""]):
            raise AgUiStreamError(
                _FRAMES, "a frame has a line that begins with data:", index, frame
            )
    return found


def _parsed(text: str, index: int) -> Mapping[str, Any]:
    try:
        event: object = json.loads(text)
    except ValueError as error:
        raise AgUiStreamError(
            _FRAMES, f"the event is not valid JSON: {error}", index, text
        ) from None
    if not isinstance(event, dict):
        raise AgUiStreamError(_FRAMES, "an event is a JSON object", index, text)
    return cast("Mapping[str, Any]", event)


_FRAMES: Final = "a frame is one JSON object, between line feeds"
_SHAPE: Final = "an event has the fields of its type, and no others"
_TYPES: Final = "an event is of a type that the client knows"
_FIRST: Final = "a run begins with RUN_STARTED"
_LAST: Final = "a run ends with RUN_FINISHED or RUN_ERROR, and with nothing after it"
_OPEN: Final = "what is opened is closed before the run ends"
_CONTINUE: Final = "only what is open is continued and closed"
_REUSE: Final = "an id is used once"
_OWNER: Final = "what one agent opens, no other one continues or closes"
_RESULT: Final = "a result follows the end of its call, and comes once"
_ACTIVITY: Final = "an activity begins with a snapshot, and snapshots replace it"
_VERSION: Final = "a client before 1.0 gets nothing that it does not know"


_BRACKETS: Final = {  # type: (kind, action, the field of its id)
    "TEXT_MESSAGE_START": ("message", "open", "messageId"),
    "TEXT_MESSAGE_CONTENT": ("message", "continue", "messageId"),
    "TEXT_MESSAGE_END": ("message", "close", "messageId"),
    "TOOL_CALL_START": ("tool call", "open", "toolCallId"),
    "TOOL_CALL_ARGS": ("tool call", "continue", "toolCallId"),
    "TOOL_CALL_END": ("tool call", "close", "toolCallId"),
    "REASONING_START": ("reasoning", "open", "messageId"),
    "REASONING_END": ("reasoning", "close", "messageId"),
    "REASONING_MESSAGE_START": ("reasoning message", "open", "messageId"),
    "REASONING_MESSAGE_CONTENT": ("reasoning message", "continue", "messageId"),
    "REASONING_MESSAGE_END": ("reasoning message", "close", "messageId"),
}
_CHUNKS: Final = {
    "TEXT_MESSAGE_CHUNK": ("messageId",),
    "TOOL_CALL_CHUNK": ("toolCallId", "toolCallName"),
    "REASONING_MESSAGE_CHUNK": ("messageId",),
}


class _AgUiChecker:
    """The state of a stream up to an event."""

    def __init__(self, version: str, earlier_calls: Iterable[str]) -> None:
        if version not in {"1.0", "0.x"}:
            raise ValueError(f"version: expected 1.0 or 0.x, got {version!r}.")
        self._old = version == "0.x"
        self._earlier = set(earlier_calls)
        self._index = -1
        self._event: Mapping[str, Any] = {}
        self._run: Mapping[str, Any] | None = None
        self._ended = False
        self._new_run()
        self._checks: Final[Mapping[str, Callable[[], None]]] = {
            "RUN_STARTED": self._run_started,
            "RUN_FINISHED": self._run_finished,
            "RUN_ERROR": self._run_error,
            "STEP_STARTED": self._step,
            "STEP_FINISHED": self._step,
            "TOOL_CALL_RESULT": self._result,
            "ACTIVITY_SNAPSHOT": self._snapshot,
            "ACTIVITY_DELTA": self._delta,
            "MESSAGES_SNAPSHOT": self._messages,
            "SUBAGENT_STARTED": self._sub_started,
            "SUBAGENT_FINISHED": self._sub_ended,
            "SUBAGENT_ERROR": self._sub_ended,
        }

    def _new_run(self) -> None:
        self._open: dict[tuple[str, str], str | None] = {}  # kind, id -> owner
        self._used: set[tuple[str, str]] = set()
        self._owners: dict[tuple[str, str], str | None] = {}
        self._steps: set[tuple[str | None, str]] = set()
        self._subs: dict[str, bool] = {}
        self._results: set[str] = set()
        self._activities: set[str] = set()
        self._chunk: str | None = None

    def enter(self, index: int, event: Mapping[str, Any]) -> None:
        """Check the next event."""
        self._index, self._event = index, event
        kind: object = event.get("type")
        if not isinstance(kind, str) or kind not in TYPES:
            self._broken(_TYPES, f"there is no type {kind!r:.60}")
        wrong = wrong_shape(event)
        if wrong is not None:
            self._broken(_SHAPE, wrong)
        if self._old:
            self._check_version(kind)
        self._check_place(kind)
        self._check_owner()
        if kind in _BRACKETS:
            self._bracket(*_BRACKETS[kind])
        elif kind in _CHUNKS:
            self._check_chunk(kind)
        elif (check := self._checks.get(kind)) is not None:
            check()
        if kind not in _CHUNKS:
            self._chunk = None

    def close(self) -> None:
        """Check the rules for the end of the stream."""
        if self._run is None:
            raise AgUiStreamError(_FIRST, "the stream has no events")
        if not self._ended:
            raise AgUiStreamError(_LAST, "the run has no end")

    def _broken(self, rule: str, why: str) -> NoReturn:
        raise AgUiStreamError(rule, why, self._index, self._event)

    # --- any event

    def _check_version(self, kind: str) -> None:
        event = self._event
        if kind.startswith("SUBAGENT_"):
            self._broken(_VERSION, f"there is no {kind}")
        for name in ("subagentRunId", "protocolVersion"):
            if name in event:
                self._broken(_VERSION, f"there is no field {name}")
        if isinstance(event.get("content"), list):
            self._broken(_VERSION, "the content of a result is a string")
        if cast("Mapping[str, Any]", event.get("outcome") or {}).get("type") == "cancelled":
            self._broken(_VERSION, "no run ends as cancelled")

    def _check_place(self, kind: str) -> None:
        if kind == "RUN_STARTED":
            if self._run is not None and not self._ended:
                self._broken(_LAST, "the run before has not ended")
            return
        if self._run is None:
            if kind == "RUN_ERROR":  # a run may fail before it begins
                self._run = self._event
                return
            self._broken(_FIRST, "the run has not begun")
        if self._ended:
            self._broken(_LAST, "the run is over")

    def _check_owner(self) -> None:
        owner = self._event.get("subagentRunId")
        started = self._event["type"] == "SUBAGENT_STARTED"
        if owner is not None and self._subs and not started and owner not in self._subs:
            self._broken(_OWNER, f"no sub-agent {owner!r} was started")

    def _check_chunk(self, kind: str) -> None:
        names = _CHUNKS[kind]
        given = [name for name in names if name in self._event]
        if self._chunk != kind and len(given) < len(names):
            self._broken(_CONTINUE, f"the first chunk has {' and '.join(names)}")
        self._chunk = kind

    # --- start, content and end of messages, calls and steps

    def _bracket(self, kind: str, does: str, field: str) -> None:
        wire: str = self._event[field]
        if does == "open":
            self._open_one(kind, wire)
            return
        if (kind, wire) not in self._open:
            self._broken(_CONTINUE, f"no {kind} {wire!r} is open")
        self._same_owner(kind, wire)
        if does == "close":
            del self._open[kind, wire]

    def _open_one(self, kind: str, wire: str) -> None:
        owner = self._event.get("subagentRunId")
        if (kind, wire) in self._open:
            self._broken(_CONTINUE, f"the {kind} {wire!r} is open already")
        if (kind, wire) in self._used:
            self._broken(_REUSE, f"there was a {kind} {wire!r} before")
        if kind == "message" and wire in self._activities:
            self._broken(_REUSE, f"there is an activity {wire!r}")
        parent = ("message", self._event.get("parentMessageId", ""))
        if kind == "tool call" and parent in self._owners and self._owners[parent] != owner:
            self._broken(_OWNER, f"the message {parent[1]!r} is of {self._owners[parent]!r}")
        if (kind, wire) in self._owners:
            self._same_owner(kind, wire)
        self._open[kind, wire] = self._owners[kind, wire] = owner
        self._used.add((kind, wire))

    def _same_owner(self, kind: str, wire: str) -> None:
        owner, own = self._event.get("subagentRunId"), self._owners.get((kind, wire))
        if owner is not None and owner != own:
            self._broken(_OWNER, f"the {kind} {wire!r} was opened by {own or 'the run itself'}")

    # --- events of single types

    def _run_started(self) -> None:
        self._run, self._ended = self._event, False
        self._new_run()

    def _run_finished(self) -> None:
        run = self._run or {}
        for name in ("threadId", "runId"):
            if name in run and self._event[name] != run[name]:
                self._broken(_LAST, f"the {name} of the run is {run[name]!r}")
        left = [f"{kind} {wire!r}" for kind, wire in self._open]
        left += [f"step {name!r}" for _, name in self._steps]
        left += [f"sub-agent {wire!r}" for wire, running in self._subs.items() if running]
        if left:
            self._broken(_OPEN, f"still open: {', '.join(left)}")
        self._ended = True

    def _run_error(self) -> None:
        self._ended = True

    def _step(self) -> None:
        step = (self._event.get("subagentRunId"), self._event["stepName"])
        if self._event["type"] == "STEP_STARTED":
            if step in self._steps:
                self._broken(_CONTINUE, f"the step {step[1]!r} is open already")
            self._steps.add(step)
        elif step not in self._steps:
            self._broken(_CONTINUE, f"no step {step[1]!r} of this owner is open")
        else:
            self._steps.remove(step)

    def _result(self) -> None:
        call: str = self._event["toolCallId"]
        if ("tool call", call) in self._open:
            self._broken(_RESULT, f"the tool call {call!r} has not ended")
        if ("tool call", call) not in self._used and call not in self._earlier:
            self._broken(_RESULT, f"there was no tool call {call!r}")
        if call in self._results:
            self._broken(_RESULT, f"there was a result of {call!r} before")
        if ("tool call", call) in self._owners:
            owner = self._owners["tool call", call]
            if owner != self._event.get("subagentRunId"):
                self._broken(_OWNER, f"the tool call is of {owner or 'the run itself'}")
        message = ("message", self._event["messageId"])
        if message in self._used:
            self._broken(_REUSE, f"there was a message {message[1]!r} before")
        self._used.add(message)
        self._results.add(call)

    def _snapshot(self) -> None:
        wire: str = self._event["messageId"]
        if ("message", wire) in self._used:
            self._broken(_REUSE, f"there is a message {wire!r}")
        if wire in self._activities and self._event.get("replace") is False:
            self._broken(_ACTIVITY, f"the activity {wire!r} is there, so this one is ignored")
        self._activities.add(wire)
        self._owners["activity", wire] = self._event.get("subagentRunId")

    def _delta(self) -> None:
        wire: str = self._event["messageId"]
        if wire not in self._activities:
            self._broken(_ACTIVITY, f"there is no activity {wire!r}")
        self._same_owner("activity", wire)

    def _messages(self) -> None:
        for message in self._event["messages"]:
            role = message["role"]
            kind = role if role in {"activity", "reasoning"} else "message"
            owner = message.get("subagentRunId")
            self._owners[kind, message["id"]] = owner
            if role == "activity":
                self._activities.add(message["id"])
            elif (kind, message["id"]) not in self._open:
                self._used.add((kind, message["id"]))
            for call in message.get("toolCalls", ()):
                self._owners["tool call", call["id"]] = owner
                if ("tool call", call["id"]) not in self._open:
                    self._used.add(("tool call", call["id"]))

    def _sub_started(self) -> None:
        wire: str = self._event["subagentRunId"]
        parent = self._event.get("parentSubagentRunId")
        if wire in self._subs:
            self._broken(_REUSE, f"the sub-agent {wire!r} was started before")
        if parent is not None and parent not in self._subs:
            self._broken(_OWNER, f"no sub-agent {parent!r} was started")
        self._subs[wire] = True

    def _sub_ended(self) -> None:
        wire: str = self._event["subagentRunId"]
        if not self._subs.get(wire):
            self._broken(_CONTINUE, f"no sub-agent {wire!r} is running")
        left = [f"{kind} {one!r}" for (kind, one), owner in self._open.items() if owner == wire]
        if left:
            self._broken(_OPEN, f"the sub-agent ends with open: {', '.join(left)}")
        self._subs[wire] = False


def _short(event: object) -> str:
    text = event if isinstance(event, str) else json.dumps(event, default=repr)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"


_SHOWN = 200
