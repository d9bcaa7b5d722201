"""Parse the requests of AG-UI clients: messages as items, tool results and decisions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import (
    Item,
    MessageInputItem,
    MessageOutputItem,
    ToolCallItem,
    ToolCallOutputItem,
)
from agents_tools.content.outputs import ContentBlock, ToolOutput, block_from_dict
from agents_tools.errors import UserError
from agents_tools.server.approvals import CallReference, read_decision
from agents_tools.server.http_errors import HttpError, json_kind, shown
from agents_tools.ui.ag_ui.frames import path_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.tool.records import Decision
    from agents_tools.ui.ag_ui.frames import Version

__all__ = ["NO_RESULT", "RunInput", "answers_of", "decisions_of", "items_of", "read_input"]

Json = Mapping[str, Any]

NO_RESULT = "The user interface sent no result for this call."
NO_ANSWER = "The user made no decision about this call."
_ROLES = ("user", "assistant", "tool", "system", "developer", "activity", "reasoning")
_BLOCK_TYPES = {"image": "image", "audio": "audio", "document": "file", "video": "file"}
_SOURCE_FIELDS = {"data": "data", "url": "url", "file": "file_id"}
_MAX_TOOLS = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class RunInput:
    """The request of an AG-UI client for a run.

    Attributes:
        thread_id: The id of the conversation.
        run_id: The id of the run, set by the client.
        messages: The messages of the conversation.
        version: The protocol version of the client.
        tools: The tools that the client runs itself.
        context: The context of the client as pairs of a description and a value.
        resume: The answers to the interrupts of the previous run.
    """

    thread_id: str
    run_id: str
    messages: list[Json]
    version: Version
    tools: list[Json] = field(default_factory=list[Json])
    context: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])
    resume: list[Json] = field(default_factory=list[Json])


def read_input(body: Json) -> RunInput:
    """Parse a `RunAgentInput`.

    Raises:
        HttpError: A field is invalid. The message names the field.
    """
    messages = _objects(body, "messages", "messages", required=True)
    for index, message in enumerate(messages):
        _check_message(message, f"messages[{index}]")
    tools = _objects(body, "tools", "tools")
    if len(tools) > _MAX_TOOLS:
        raise HttpError(422, f"tools: expected at most {_MAX_TOOLS}, got {len(tools)}.")
    props: object = body.get("forwardedProps")  # clients before 1.0 can have `resume` here
    in_props = body.get("resume") is None and isinstance(props, Mapping)
    context = _objects(body, "context", "context")
    return RunInput(
        thread_id=_text(body, "threadId", "threadId"),
        run_id=_text(body, "runId", "runId"),
        messages=messages,
        version=_version(body.get("protocolVersion")),
        tools=tools,
        context=[
            (_text(one, "description", f"context[{at}]"), _text(one, "value", f"context[{at}]"))
            for at, one in enumerate(context)
        ],
        resume=_objects(cast("Json", props) if in_props else body, "resume", "resume"),
    )


def items_of(run_input: RunInput, *, instructions: bool = False) -> list[Item]:
    """Convert the messages of a request to items.

    Messages of sub-agents and messages for display are omitted. A call without a result gets one,
    so that a client cannot start calls by omitting their results.

    Args:
        run_input: The request.
        instructions: Whether messages of the roles system and developer are accepted.

    Raises:
        HttpError: A part of a message is invalid.
    """
    items: list[Item] = []
    if run_input.context:
        lines = [f"- {description}: {value}" for description, value in run_input.context]
        text = "Context from the user interface:\n" + "\n".join(lines)
        items.append(MessageInputItem(content=text))
    answers: dict[str, tuple[str, Json]] = {}
    for index, message in enumerate(run_input.messages):
        if message["role"] == "tool":
            answers.setdefault(message["toolCallId"], (f"messages[{index}]", message))
    call_ids: set[str] = set()
    for index, message in enumerate(run_input.messages):
        role, place = message["role"], f"messages[{index}]"
        if "subagentRunId" in message:
            continue
        if role == "user" or (instructions and role in {"system", "developer"}):
            content = _content(message["content"], f"{place}.content")
            items.append(MessageInputItem(content=content, role=role))
        elif role == "assistant":
            items.extend(_assistant_items(message, answers, call_ids))
    return items


def answers_of(run_input: RunInput) -> dict[str, ToolOutput]:
    """Return the results of client tools by the ids of their calls.

    Raises:
        HttpError: A part of a result is invalid.
    """
    answers: dict[str, ToolOutput] = {}
    for index, message in enumerate(run_input.messages):
        if message["role"] == "tool":
            call_id = message["toolCallId"]
            output = _output(call_id, "", (f"messages[{index}]", message)).output
            path = path_of(call_id)
            if len(path) == 1:  # the calls inside a call are not the client's
                answers[path[0]] = output
    return answers


def decisions_of(run_input: RunInput) -> list[tuple[CallReference, Decision]]:
    """Return the decisions about the calls that wait for approval.

    Raises:
        HttpError: A decision is invalid.
    """
    decisions: list[tuple[CallReference, Decision]] = []
    for index, entry in enumerate(run_input.resume):
        place = f"resume[{index}]"
        path = path_of(_text(entry, "interruptId", place))
        payload: object = entry.get("payload")
        status = entry.get("status")
        if status not in {"resolved", "cancelled"}:
            raise HttpError(422, f"{place}.status: expected resolved or cancelled.")
        if isinstance(payload, bool):
            payload = {"approved": payload}
        if status == "cancelled":
            payload = {"approved": False, "message": NO_ANSWER}
        if not isinstance(payload, Mapping):
            raise HttpError(
                422,
                f'{place}.payload: expected {{"approved": true or false}}, got '
                f"{json_kind(payload)}.",
            )
        answer = cast("Json", payload)
        read = {
            "call_id": path[-1],
            "path": path,
            "approve": answer.get("approved"),
            "message": answer.get("message"),
            "arguments": answer.get("arguments"),
        }
        decisions.append(read_decision(read, place))
    return decisions


def _assistant_items(
    message: Json, answers: Mapping[str, tuple[str, Json]], call_ids: set[str]
) -> Sequence[Item]:
    """Return the text of an assistant message, its calls and their results.

    Calls in `call_ids` are omitted, and the others are added to it.
    """
    items: list[Item] = []
    if message.get("content"):
        items.append(MessageOutputItem(text=message["content"]))
    outputs: list[Item] = []
    for call in message.get("toolCalls") or ():
        path = path_of(call["id"])
        if len(path) > 1 or call["id"] in call_ids:
            continue
        call_ids.add(call["id"])
        name = call["function"]["name"]
        call_id = "".join(path)
        items.append(
            ToolCallItem(call_id=call_id, name=name, arguments=call["function"]["arguments"])
        )
        outputs.append(_output(call_id, name, answers.get(call["id"])))
    return items + outputs


def _output(call_id: str, name: str, answer: tuple[str, Json] | None) -> ToolCallOutputItem:
    if answer is None:
        return ToolCallOutputItem(call_id=call_id, name=name, output=NO_RESULT, status="cancelled")
    place, message = answer
    failed = message.get("error") is not None
    output = _content(message["content"], f"{place}.content") or str(message.get("error") or "")
    return ToolCallOutputItem(
        call_id=call_id, name=name, output=output, status="tool_error" if failed else "ok"
    )


def _version(declared: object) -> Version:
    """Parse `protocolVersion`, which clients before 1.0 do not send."""
    major = declared.partition(".")[0] if isinstance(declared, str) else ""
    return "1.0" if major.isascii() and major.isdigit() and major.strip("0") else "0.x"


# --- single fields


def _check_message(message: Json, place: str) -> None:
    role = message.get("role")
    if role not in _ROLES:
        raise HttpError(
            422, f"{place}.role: expected one of {', '.join(_ROLES)}; got {shown(role)}."
        )
    _text(message, "id", place)
    if role == "tool":
        _text(message, "toolCallId", place)
    if role == "assistant":
        if message.get("content") is not None:
            _text(message, "content", place)
        for index, call in enumerate(_objects(message, "toolCalls", f"{place}.toolCalls")):
            at = f"{place}.toolCalls[{index}]"
            _text(call, "id", at)
            function = call.get("function")
            if not isinstance(function, Mapping):
                raise HttpError(422, f"{at}.function: expected an object.")
            for name in ("name", "arguments"):
                _text(cast("Json", function), name, f"{at}.function")
    elif role in {"system", "developer", "reasoning"}:
        _text(message, "content", place)
    elif role in {"user", "tool"} and not isinstance(message.get("content"), (str, list)):
        raise HttpError(
            422,
            f"{place}.content: expected a text or a list of parts, got "
            f"{json_kind(message.get('content'))}.",
        )


def _content(content: str | list[Any], place: str) -> str | list[ContentBlock]:
    if isinstance(content, str):
        return content
    return [_block(part, f"{place}[{index}]") for index, part in enumerate(content)]


def _block(part: object, place: str) -> ContentBlock:
    data = cast("Json", part if isinstance(part, Mapping) else {})
    kind = data.get("type")
    block: dict[str, Any]
    if kind == "text":
        block = {"type": "text", "text": _text(data, "text", place)}
    elif kind == "binary":  # from clients before 1.0
        mime = str(data.get("mimeType", ""))
        major = mime.partition("/")[0]
        block = {
            "type": major if major in {"image", "audio"} else "file",
            "mime_type": mime,
            **{key: data[name] for name, key in _BINARY_FIELDS if data.get(name) is not None},
        }
    elif kind in _BLOCK_TYPES and isinstance(data.get("source"), Mapping):
        source = cast("Json", data["source"])
        key = _SOURCE_FIELDS.get(str(source.get("type")))
        if key is None:
            raise HttpError(422, f"{place}.source.type: expected data, url or file.")
        block = {"type": _BLOCK_TYPES[kind], key: _text(source, "value", f"{place}.source")}
        if source.get("mimeType") is not None:
            block["mime_type"] = _text(source, "mimeType", f"{place}.source")
    else:
        raise HttpError(422, f"{place}: expected a part of type text, image, audio or document.")
    try:
        return block_from_dict(block)
    except UserError as error:
        raise HttpError(422, f"{place}: {error}") from None


_BINARY_FIELDS = (("data", "data"), ("url", "url"), ("id", "file_id"), ("filename", "filename"))


def _text(data: Json, name: str, place: str) -> str:
    value: object = data.get(name)
    if not isinstance(value, str):
        where = place if place == name else f"{place}.{name}"
        raise HttpError(422, f"{where}: expected a text, got {json_kind(value)}.")
    return value


def _objects(data: Json, name: str, place: str, *, required: bool = False) -> list[Json]:
    value: object = data.get(name)
    if value is None and not required:
        return []
    if not isinstance(value, list):
        raise HttpError(422, f"{place}: expected a list, got {json_kind(value)}.")
    for index, one in enumerate(cast("list[object]", value)):
        if not isinstance(one, Mapping):
            raise HttpError(422, f"{place}[{index}]: expected an object, got {json_kind(one)}.")
    return cast("list[Json]", value)
