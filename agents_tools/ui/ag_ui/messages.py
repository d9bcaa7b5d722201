"""The messages of an AG-UI client, derived from the frames as the client does it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = ["Frame", "MessageHistory"]

Frame: TypeAlias = dict[str, Any]
"""One AG-UI event as a JSON object."""


class MessageHistory:
    """Builds the conversation of a client from the frames of a run.

    Args:
        before: The messages that the client sent with the run.
    """

    def __init__(self, before: Iterable[Mapping[str, Any]] = ()) -> None:
        self._pieces: dict[Any, list[str]] = {}  # the deltas of each message or call
        self._set([_copied(message) for message in before])

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
        """Apply a frame as a client does."""
        kind = frame["type"]
        if kind in {"TEXT_MESSAGE_CONTENT", "REASONING_MESSAGE_CONTENT"}:
            self._pieces[frame["messageId"]].append(frame["delta"])
        elif kind == "TOOL_CALL_ARGS":
            self._pieces[frame["toolCallId"]].append(frame["delta"])
        elif kind in {"TEXT_MESSAGE_START", "REASONING_MESSAGE_START"}:
            self._open(frame, frame.get("role", "assistant"))
        elif kind == "TOOL_CALL_START":
            self._call(frame)
        elif kind == "TOOL_CALL_RESULT":
            self._result(frame)
        elif kind == "ACTIVITY_SNAPSHOT":
            self._activity(frame)

    def list(self, *, without: Collection[str] = ()) -> list[Frame]:
        """Return the messages.

        Args:
            without: Ids of messages and tool calls to leave out.
        """
        return [
            message
            for one in self._all
            if one.get("id") not in without
            for message in self._whole(one, without)
        ]

    def text_of(self, message_or_call: str) -> str:
        """Return the text of a message, of reasoning or of a call's arguments so far."""
        return "".join(self._pieces.get(message_or_call, ()))

    def forget(self, ids: Collection[str]) -> None:
        """Remove wrong messages and tool calls."""
        self._set(self.list(without=ids))
        self._pieces = {key: value for key, value in self._pieces.items() if key not in ids}

    def _add(self, message: Frame, frame: Frame, place: int | None = None) -> None:
        for key in ("subagentRunId", "metadata"):
            if key in frame:
                message[key] = frame[key]
        self._by_id[message["id"]] = message
        self._all.insert(len(self._all) if place is None else place, message)

    def _open(self, frame: Frame, role: str) -> None:
        if frame["messageId"] not in self._by_id:
            self._add({"id": frame["messageId"], "role": role, "content": ""}, frame)
        self._pieces.setdefault(frame["messageId"], [])

    def _call(self, frame: Frame) -> None:
        call_id = frame["toolCallId"]
        found = self._by_id.get(frame.get("parentMessageId"))
        owner: Frame
        if found is not None and found.get("role") == "assistant":
            owner = found
        else:
            owner = {"id": frame.get("parentMessageId", call_id), "role": "assistant"}
            tagged = {key: frame[key] for key in ("subagentRunId",) if key in frame}
            self._add(owner, tagged)
        call: Frame = {
            "id": call_id,
            "type": "function",
            "function": {"name": frame["toolCallName"], "arguments": ""},
        }
        if "metadata" in frame:
            call["metadata"] = frame["metadata"]
        owner.setdefault("toolCalls", []).append(call)
        self._owners[call_id] = owner
        self._pieces[call_id] = []

    def _result(self, frame: Frame) -> None:
        message = {
            "id": frame["messageId"],
            "role": "tool",
            "toolCallId": frame["toolCallId"],
            "content": frame["content"],
        }
        owner = self._owners.get(frame["toolCallId"])
        if owner is None:
            self._add(message, frame)
            return
        place = len(self._all)
        while self._all[place - 1] is not owner:  # usually near the end
            place -= 1
        while place < len(self._all) and self._all[place].get("role") == "tool":
            place += 1
        self._add(message, frame, place)

    def _activity(self, frame: Frame) -> None:
        message = self._by_id.get(frame["messageId"])
        if message is None:
            message = {"id": frame["messageId"], "role": "activity"}
            self._add(message, frame)
        message["activityType"] = frame["activityType"]
        message["content"] = frame["content"]

    def _whole(self, message: Frame, without: Collection[str]) -> Iterable[Frame]:
        """Yield a message with its complete text, unless it is empty."""
        whole = dict(message)
        if message.get("id") in self._pieces:
            whole["content"] = self.text_of(message["id"])
        calls = [
            self._whole_call(call)
            for call in message.get("toolCalls") or ()
            if call["id"] not in without
        ]
        if calls:
            whole["toolCalls"] = calls
        elif whole.pop("toolCalls", None) and not whole.get("content"):
            return
        yield whole

    def _whole_call(self, call: Frame) -> Frame:
        if call["id"] not in self._pieces:
            return dict(call)
        function = {**call["function"], "arguments": self.text_of(call["id"])}
        return {**call, "function": function}


def _copied(message: Mapping[str, Any]) -> Frame:
    """Return a copy of a message, deep enough for later changes."""
    copy = dict(message)
    calls = copy.pop("toolCalls", None)
    if calls and copy.get("role") == "assistant":  # only assistants make calls
        copy["toolCalls"] = list(calls)
    return copy
