"""Track the messages that an AG-UI client builds from the frames."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Frame", "MessageHistory"]

Frame: TypeAlias = dict[str, Any]
"""One AG-UI event, as the JSON object that is sent."""


class MessageHistory:
    """Applies the frames of a run as a client does, and returns the messages.

    Args:
        messages: The messages in the request of the client.
    """

    def __init__(self, messages: Iterable[Mapping[str, Any]] = ()) -> None:
        self._deltas: dict[Any, list[str]] = {}  # by the id of the message or call
        self._set([_copy(message) for message in messages])

    def _set(self, messages: list[Frame]) -> None:
        self._all = messages
        self._by_id: dict[Any, Frame] = {one.get("id"): one for one in messages}
        self._owners: dict[Any, Frame] = {  # the id of a tool call -> its message
            call["id"]: message for message in messages for call in message.get("toolCalls") or ()
        }

    @property
    def call_ids(self) -> Collection[str]:
        """The ids of all tool calls."""
        return self._owners.keys()

    def apply(self, frame: Frame) -> None:
        """Apply a frame to the messages."""
        kind = frame["type"]
        if kind in {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"}:
            self._deltas[frame["messageId"]].append(frame["delta"])
        elif kind == "TOOL_CALL_ARGS":
            self._deltas[frame["toolCallId"]].append(frame["delta"])
        elif kind in {"TEXT_MESSAGE_START", "REASONING_MESSAGE_START"}:
            self._start_message(frame, frame.get("role", "assistant"))
        elif kind == "TOOL_CALL_START":
            self._add_call(frame)
        elif kind == "TOOL_CALL_RESULT":
            self._add_result(frame)
        elif kind == "ACTIVITY_SNAPSHOT":
            self._set_activity(frame)

    def add_activities(self, messages: Iterable[Frame]) -> None:
        """Add the activities among the messages of an earlier run, in the order of that run.

        Activities of calls that the client has removed from the conversation are ignored.
        """
        place = 0
        for message in messages:
            if message["role"] != "activity" or message["id"] in self._by_id:
                same = (n for n in range(place, len(self._all)) if _is_same(self._all[n], message))
                place = next(same, place - 1) + 1
            elif self._has_call(message["content"]["call"]):
                self._add(dict(message), {}, place)
                place += 1

    def _has_call(self, call: str) -> bool:
        """Return whether there is this call, or the call that it is nested in."""
        return call in self._owners or call.partition("/")[0] in self._owners

    def list(self, *, without: Collection[str] = ()) -> list[Frame]:
        """Return the messages.

        Args:
            without: Ids of messages and tool calls to leave out.
        """
        return [
            message
            for one in self._all
            if one.get("id") not in without
            for message in self._complete(one, without)
        ]

    def text_of(self, message_or_call: str) -> str:
        """Return the text of a message, or the arguments of a call, received so far."""
        return "".join(self._deltas.get(message_or_call, ()))

    def forget(self, ids: Collection[str]) -> None:
        """Remove messages and tool calls that turned out to be wrong."""
        self._set(self.list(without=ids))
        self._deltas = {key: value for key, value in self._deltas.items() if key not in ids}

    def _add(self, message: Frame, frame: Frame, place: int | None = None) -> None:
        for key in ("subagentRunId", "metadata"):
            if key in frame:
                message[key] = frame[key]
        self._by_id[message["id"]] = message
        self._all.insert(len(self._all) if place is None else place, message)

    def _start_message(self, frame: Frame, role: str) -> None:
        if frame["messageId"] not in self._by_id:
            self._add({"id": frame["messageId"], "role": role, "content": ""}, frame)
        self._deltas.setdefault(frame["messageId"], [])

    def _add_call(self, frame: Frame) -> None:
        call_id = frame["toolCallId"]
        parent = self._by_id.get(frame.get("parentMessageId"))
        owner: Frame
        if parent is not None and parent.get("role") == "assistant":
            owner = parent
        else:
            owner = {"id": frame.get("parentMessageId", call_id), "role": "assistant"}
            subagent = {key: frame[key] for key in ("subagentRunId",) if key in frame}
            self._add(owner, subagent)
        call: Frame = {
            "id": call_id,
            "type": "function",
            "function": {"name": frame["toolCallName"], "arguments": ""},
        }
        if "metadata" in frame:
            call["metadata"] = frame["metadata"]
        owner.setdefault("toolCalls", []).append(call)
        self._owners[call_id] = owner
        self._deltas[call_id] = []

    def _add_result(self, frame: Frame) -> None:
        message = {
            "id": frame["messageId"],
            "role": "tool",
            "toolCallId": frame["toolCallId"],
            "content": frame["content"],
        }
        owner = self._owners.get(frame["toolCallId"])
        self._add(message, frame, self._place_after(owner, {"tool"}))

    def _set_activity(self, frame: Frame) -> None:
        message = self._by_id.get(frame["messageId"])
        if message is None:
            message = {"id": frame["messageId"], "role": "activity"}
            self._add(message, frame)
        message["activityType"] = frame["activityType"]
        message["content"] = frame["content"]

    def _place_after(self, owner: Frame | None, roles: Collection[str]) -> int:
        """Return the place after a message and those of these roles that follow it."""
        place = len(self._all)
        if owner is None:
            return place
        while self._all[place - 1] is not owner:  # usually near the end
            place -= 1
        while place < len(self._all) and self._all[place].get("role") in roles:
            place += 1
        return place

    def _complete(self, message: Frame, without: Collection[str]) -> Iterable[Frame]:
        """Yield a message with its text and calls, or nothing if it is empty without the calls."""
        complete = dict(message)
        if message.get("id") in self._deltas:
            complete["content"] = self.text_of(message["id"])
        calls = [
            self._complete_call(call)
            for call in message.get("toolCalls") or ()
            if call["id"] not in without
        ]
        if calls:
            complete["toolCalls"] = calls
        elif complete.pop("toolCalls", None) and not complete.get("content"):
            return
        yield complete

    def _complete_call(self, call: Frame) -> Frame:
        if call["id"] not in self._deltas:
            return dict(call)
        function = {**call["function"], "arguments": self.text_of(call["id"])}
        return {**call, "function": function}


def _is_same(message: Frame, other: Frame) -> bool:
    """Return whether two messages are the same: their ids depend on the request of the client."""
    if message.get("role") != other["role"]:
        return False
    if message["role"] == "activity":
        return message.get("id") == other["id"]
    if message["role"] == "tool":
        return message.get("toolCallId") == other["toolCallId"]
    calls, others = (
        {call["id"] for call in one.get("toolCalls") or ()} for one in (message, other)
    )
    return bool(calls & others) if others else message.get("content") == other.get("content")


def _copy(message: Mapping[str, Any]) -> Frame:
    """Copy a message and its list of calls, which `MessageHistory` changes."""
    copy = dict(message)
    calls = copy.pop("toolCalls", None)
    if calls and copy.get("role") == "assistant":  # other roles have no calls
        copy["toolCalls"] = list(calls)
    return copy
