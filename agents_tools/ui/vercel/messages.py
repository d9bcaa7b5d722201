"""Parse the requests of `useChat`: messages as items for a model, and approval decisions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NoReturn, cast
from urllib.parse import unquote

from agents_tools.content.items import (
    Item,
    MessageInputItem,
    MessageOutputItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    block_from_dict,
)
from agents_tools.errors import UserError
from agents_tools.server.approvals import CallReference, read_decision
from agents_tools.server.http_errors import HttpError, json_kind, shown
from agents_tools.server.safe_json import written

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agents_tools.tool.records import Decision

__all__ = ["ApprovalDecision", "ChatRequest", "items_of", "parse_request"]

_TRIGGERS: Final = ("submit-message", "regenerate-message")
_UNFINISHED: Final = "The call was not finished; it has no result."
_DENIED: Final = "A person refused this call."


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalDecision:
    """The decision of a user about one call.

    Attributes:
        approval_id: The id of the approval request.
        call: The call.
        decision: The decision.
    """

    approval_id: str
    call: CallReference
    decision: Decision

    @property
    def run_id(self) -> str:
        """The id of the run of the call."""
        return self.approval_id.partition("/")[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """One request of `useChat`.

    Attributes:
        chat_id: The id of the chat.
        messages: The messages of the chat.
        decisions: The decisions in the request.
        message_id: The id of the assistant message that the response continues, if there is one.
        is_new: Whether the page asks for another answer to the same messages.
    """

    chat_id: str
    messages: list[Mapping[str, Any]]
    decisions: list[ApprovalDecision]
    message_id: str | None
    is_new: bool


def parse_request(body: Mapping[str, Any]) -> ChatRequest:
    """Parse the body of a request.

    Raises:
        HttpError: The body is not a request of `useChat`. The message names the location.
    """
    chat_id = body.get("id")
    if not isinstance(chat_id, str) or not chat_id:
        _refuse("id", f"expected the id of the chat, got {shown(chat_id)}")
    trigger = body.get("trigger", _TRIGGERS[0])
    if trigger not in _TRIGGERS:
        _refuse("trigger", f"expected {' or '.join(_TRIGGERS)}, got {shown(trigger)}")
    messages = [
        _object(one, f"messages[{n}]") for n, one in enumerate(_list(body, "messages", "messages"))
    ]
    if not messages:
        _refuse("messages", "expected at least one message, got none")
    target = _target(messages, body.get("messageId")) if trigger == _TRIGGERS[0] else None
    decisions = [] if target is None else list(_decisions_in_message(messages[target], target))
    decisions += _decisions_in_body(body)
    message_id = None if target is None else messages[target].get("id")
    return ChatRequest(
        chat_id=chat_id,
        messages=messages,
        decisions=decisions,
        message_id=message_id if isinstance(message_id, str) else None,
        is_new=trigger != _TRIGGERS[0],
    )


def _target(messages: list[Mapping[str, Any]], message_id: object) -> int | None:
    """Return the index of the assistant message that the response continues."""
    for index, message in enumerate(messages):
        if message_id is not None and message.get("id") == message_id:
            return index if message.get("role") == "assistant" else None
    return len(messages) - 1 if messages[-1].get("role") == "assistant" else None


def _decisions_in_message(message: Mapping[str, Any], index: int) -> Iterator[ApprovalDecision]:
    """Yield the decisions in the parts of a message, set by `addToolApprovalResponse`."""
    for number, one in enumerate(_list(message, "parts", f"messages[{index}].parts")):
        at = f"messages[{index}].parts[{number}]"
        part = _object(one, at)
        if part.get("state") == "approval-responded":
            yield _parse_decision(_object(part.get("approval"), f"{at}.approval"), f"{at}.approval")


def _decisions_in_body(body: Mapping[str, Any]) -> Iterator[ApprovalDecision]:
    """Yield the decisions in `approvals`. Version 5 cannot send them in the parts."""
    if body.get("approvals") is None:
        return
    for number, one in enumerate(_list(body, "approvals", "approvals")):
        yield _parse_decision(_object(one, f"approvals[{number}]"), f"approvals[{number}]")


def _parse_decision(approval: Mapping[str, Any], at: str) -> ApprovalDecision:
    approval_id, approved = approval.get("id"), approval.get("approved")
    reason = approval.get("reason")
    if not isinstance(approval_id, str):
        _refuse(f"{at}.id", f"expected the id of an approval, got {json_kind(approval_id)}")
    if not isinstance(approved, bool):
        _refuse(f"{at}.approved", f"expected true or false, got {json_kind(approved)}")
    if reason is not None and not isinstance(reason, str):
        _refuse(f"{at}.reason", f"expected a text, got {json_kind(reason)}")
    path = tuple(unquote(part) for part in approval_id.split("/")[1:])
    answer = {
        "call_id": path[-1] if path else "",
        "path": path,
        "approve": approved,
        "message": reason,
        "arguments": approval.get("arguments"),
    }
    call, decision = read_decision(answer, at)
    return ApprovalDecision(approval_id=approval_id, call=call, decision=decision)


# --- messages as items


def items_of(messages: list[Mapping[str, Any]]) -> list[Item]:
    """Convert messages to items.

    Parts that a model does not get are omitted: reasoning, sources, files of the assistant, and
    data parts with nested calls.

    Raises:
        HttpError: A message is malformed. The error names the location.
    """
    reader = _MessageReader()
    for index, message in enumerate(messages):
        reader.read(message, f"messages[{index}]")
    return reader.items


class _MessageReader:
    """Converts the messages of one chat, in order.

    Attributes:
        items: The items so far.
    """

    def __init__(self) -> None:
        self.items: list[Item] = []
        self._outputs: list[Item] = []
        self._ids: set[str] = set()

    def read(self, message: Mapping[str, Any], at: str) -> None:
        """Read the next message."""
        role = message.get("role")
        parts = [
            (_object(part, f"{at}.parts[{number}]"), f"{at}.parts[{number}]")
            for number, part in enumerate(_list(message, "parts", f"{at}.parts"))
        ]
        if role == "user":
            self.items.append(MessageInputItem(content=_content(parts, at)))
        elif role == "assistant":
            for part, place in parts:
                self._assistant(part, place)
            self._answer_calls()
        elif role == "system":
            _refuse(
                f"{at}.role",
                "expected user or assistant, got system. Set instructions on the agent",
            )
        else:
            _refuse(f"{at}.role", f"expected user or assistant, got {shown(role)}")

    def _assistant(self, part: Mapping[str, Any], at: str) -> None:
        kind = part.get("type")
        if kind == "step-start":
            self._answer_calls()
        elif kind == "text":
            self._answer_calls()
            if text := _text(part, "text", at):
                self.items.append(MessageOutputItem(text=text))
        elif kind == "dynamic-tool" or (isinstance(kind, str) and kind.startswith("tool-")):
            self._call(part, at)

    def _call(self, part: Mapping[str, Any], at: str) -> None:
        wire = _text(part, "toolCallId", at)
        if "/" in wire or part.get("state") == "input-streaming":
            return  # the call of a sub-agent, or a call that was not made
        kind = _text(part, "type", at)
        is_dynamic = kind == "dynamic-tool"
        name = _text(part, "toolName", at) if is_dynamic else kind.removeprefix("tool-")
        call_id = self._new_id(unquote(wire))
        value = part.get("input", part.get("rawInput"))
        arguments = value if isinstance(value, str) else written(value or {}).decode()
        self.items.append(ToolCallItem(call_id=call_id, name=name, arguments=arguments))
        self._outputs.append(_output(part, call_id, name))

    def _answer_calls(self) -> None:
        """Add the outputs of a step after its calls, in the order that models expect."""
        self.items += self._outputs
        self._outputs = []

    def _new_id(self, call_id: str) -> str:
        """Return a unique call id, because runs of one chat can have equal call ids."""
        new, number = call_id, 1
        while new in self._ids:
            number += 1
            new = f"{call_id}-{number}"
        self._ids.add(new)
        return new


def _output(part: Mapping[str, Any], call_id: str, name: str) -> ToolCallOutputItem:
    match part.get("state"):
        case "output-available" if not part.get("preliminary"):
            output = _tool_output(part.get("output"))
            return ToolCallOutputItem(call_id=call_id, name=name, output=output)
        case "output-error":
            error = part.get("errorText")
            text = error if isinstance(error, str) else "The call failed."
            return ToolCallOutputItem(call_id=call_id, name=name, output=text, status="tool_error")
        case "output-denied":
            approval = part.get("approval")
            reason: object = None
            if isinstance(approval, dict):
                reason = cast("dict[str, Any]", approval).get("reason")
            text = reason if isinstance(reason, str) and reason else _DENIED
            return ToolCallOutputItem(call_id=call_id, name=name, output=text, status="denied")
        case _:
            return ToolCallOutputItem(
                call_id=call_id, name=name, output=_UNFINISHED, status="cancelled"
            )


def _tool_output(value: object) -> ToolOutput:
    """Parse an output that was sent to the page: text, content blocks or other JSON."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        try:
            return [block_from_dict(block) for block in cast("list[Mapping[str, Any]]", value)]
        except (UserError, TypeError, ValueError):
            pass
    return written(value).decode()


def _content(parts: list[tuple[Mapping[str, Any], str]], at: str) -> str | list[ContentBlock]:
    blocks: list[ContentBlock] = []
    for part, place in parts:
        kind = part.get("type")
        if kind == "text":
            blocks.append(ToolOutputText(_text(part, "text", place)))
        elif kind == "file":
            blocks.append(_file(part, place))
        elif not (isinstance(kind, str) and kind.startswith("data-")):
            _refuse(f"{place}.type", f"expected text, file or data-…, got {shown(kind)}")
    if not blocks:
        _refuse(f"{at}.parts", "expected at least one text or file, got none")
    if all(isinstance(block, ToolOutputText) for block in blocks):
        return "\n\n".join(cast("ToolOutputText", block).text for block in blocks)
    return blocks


def _file(part: Mapping[str, Any], at: str) -> ContentBlock:
    url, kind = _text(part, "url", at), _text(part, "mediaType", at)
    if not url.lower().startswith(("data:", "https://", "http://")):
        _refuse(f"{at}.url", f"expected a data:, https: or http: URL, got {shown(url)}")
    try:
        name = part.get("filename")
        name = name if isinstance(name, str) else None
        if kind.startswith("image/"):
            return ToolOutputImage(url=url, mime_type=kind, filename=name)
        if kind.startswith("audio/"):
            return ToolOutputAudio(url=url, mime_type=kind, filename=name)
        return ToolOutputFileContent(url=url, mime_type=kind, filename=name)
    except UserError as error:
        raise HttpError(422, f"{at}.url: {error}") from None


# --- parse JSON


def _text(data: Mapping[str, Any], name: str, at: str) -> str:
    value = data.get(name)
    if not isinstance(value, str):
        _refuse(f"{at}.{name}", f"expected a text, got {json_kind(value)}")
    return value


def _object(value: object, at: str) -> Mapping[str, Any]:
    if not isinstance(value, dict):
        _refuse(at, f"expected an object, got {json_kind(value)}")
    return cast("dict[str, Any]", value)


def _list(data: Mapping[str, Any], name: str, at: str) -> list[object]:
    value = data.get(name)
    if not isinstance(value, list):
        _refuse(at, f"expected a list, got {json_kind(value)}")
    return cast("list[object]", value)


def _refuse(at: str, why: str) -> NoReturn:
    raise HttpError(422, f"{at}: {why}.")
