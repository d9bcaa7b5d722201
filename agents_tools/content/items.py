"""The items of a conversation with a model: messages, reasoning, tool calls and tool outputs.

Items are immutable. Their JSON form follows the input items of the Responses API where one exists:
`{"role": "user", "content": "…"}`, `{"type": "function_call", …}`,
`{"type": "function_call_output", …}`. Data that only one provider understands is in
`provider_data` and is sent back to that provider only.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from operator import attrgetter, is_
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from agents_tools._package import ForeignAttributes
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.content.parts import block_of_part
from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.text.characters import replace_surrogates
from agents_tools.text.nouns import type_with_article

if TYPE_CHECKING:
    from agents_tools.events.kinds import CallStatus, RunItemStreamEvent

__all__ = [
    "CallKind",
    "Item",
    "ItemHelpers",
    "MessageInputItem",
    "MessageOutputItem",
    "ReasoningItem",
    "Role",
    "RunItem",
    "ToolApprovalItem",
    "ToolCallItem",
    "ToolCallOutputItem",
    "encodable_items",
    "input_items",
    "input_messages",
    "item_from_dict",
    "item_of_event",
    "result_message",
]

Role: TypeAlias = Literal["user", "system", "developer"]
"""The author of a message to a model."""

CallKind: TypeAlias = Literal["function", "local_shell", "computer", "mcp_approval", "hosted"]
"""The form of a call on the wire. The provider runs `hosted` calls; they need no output."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageInputItem:
    """A message to the model.

    Attributes:
        content: Text, or content blocks.
        role: The author.
        call_id: The call in the background whose result the message is; `None` for the messages of
            people and applications.
    """

    type: ClassVar[str] = "message_input_item"

    content: str | list[ContentBlock]
    role: Role = "user"
    call_id: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        return {
            "role": self.role,
            "content": _content_to_json(self.content),
            **_without_none(call_id=self.call_id),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOutputItem(ForeignAttributes):
    """A message from the model.

    Attributes:
        text: The text.
        refusal: The reason for a refusal; `text` is then empty.
        id: The id of the provider.
        agent: The name of the agent that wrote the message.
        provider_data: Data that only the provider understands, under the name of the provider.
    """

    type: ClassVar[str] = "message_output_item"

    text: str = ""
    refusal: str | None = None
    id: str | None = None
    agent: str | None = None
    provider_data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        part = (
            {"type": "output_text", "text": self.text}
            if self.refusal is None
            else {"type": "refusal", "refusal": self.refusal}
        )
        return {
            "type": "message",
            "role": "assistant",
            "content": [part],
            **_without_none(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningItem(ForeignAttributes):
    """The reasoning of a model, as far as the provider returns it.

    Attributes:
        text: The reasoning or a summary of it; can be empty.
        id: The id of the provider.
        agent: The name of the agent.
        provider_data: Data that only the provider understands, under the name of the provider:
            signatures, encrypted content.
    """

    type: ClassVar[str] = "reasoning_item"

    text: str = ""
    id: str | None = None
    agent: str | None = None
    provider_data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        summary = [{"type": "summary_text", "text": self.text}] if self.text else []
        return {
            "type": "reasoning",
            "summary": summary,
            **_without_none(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallItem(ForeignAttributes):
    """A tool call of the model.

    Attributes:
        call_id: The id that the output refers to.
        name: The name of the tool.
        arguments: The arguments as JSON text, as the model wrote them.
        kind: The form of the call on the wire.
        id: The id of the item at the provider, if it differs from `call_id`.
        agent: The name of the agent.
        provider_data: Data that only the provider understands, under the name of the provider.
    """

    type: ClassVar[str] = "tool_call_item"

    call_id: str
    name: str
    arguments: str = "{}"
    kind: CallKind = "function"
    id: str | None = None
    agent: str | None = None
    provider_data: Mapping[str, Any] | None = None

    @property
    def needs_answer(self) -> bool:
        """Return whether the call requires an output."""
        return self.kind != "hosted"

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        return {
            "type": "function_call" if self.kind == "function" else "tool_call",
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
            **({} if self.kind == "function" else {"kind": self.kind}),
            **_without_none(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutputItem(ForeignAttributes):
    """The output of a tool call.

    Attributes:
        call_id: The id of the call.
        name: The name of the tool.
        output: The output for the model: text or content blocks.
        status: The status of the call.
        kind: The form of the call on the wire.
        agent: The name of the agent that made the call.
        server: The MCP server that returned the output, for remote tools. Trust the output only
            as far as you trust the server.
        in_background: Whether the output only acknowledges a call that continues in the background.
            Its result is a later message with the same `call_id`.
        value: The return value of the tool as a Python object; not part of the JSON form.
        metadata: The metadata of a `ToolResult`; not part of the JSON form.
        public_message: The text about a failed call for callers outside the application; part of
            the JSON form in events only. `None` if they can read the output.
    """

    type: ClassVar[str] = "tool_call_output_item"

    call_id: str
    name: str = ""
    output: ToolOutput
    status: CallStatus = "ok"
    kind: CallKind = "function"
    agent: str | None = None
    server: str | None = None
    in_background: bool = False
    value: Any = field(default=None, compare=False, repr=False)
    metadata: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)
    public_message: str | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        return {
            "type": "function_call_output" if self.kind == "function" else "tool_call_output",
            "call_id": self.call_id,
            "output": _content_to_json(self.output),
            "name": self.name,
            "status": self.status,
            **({} if self.kind == "function" else {"kind": self.kind}),
            **_without_none(agent=self.agent, server=self.server),
            **({"in_background": True} if self.in_background else {}),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalItem(ForeignAttributes):
    """A tool call that waits for approval.

    Attributes:
        call_id: The id of the call.
        name: The name of the tool.
        arguments: The arguments as JSON text; an approval applies to exactly these arguments.
        path: The ids of the calls that contain the call, outermost first. It is not empty for
            calls of an agent that runs as a tool.
        agent: The name of the agent that made the call.
        error: The fault of the arguments that a person edited; `None` if there is none.
    """

    type: ClassVar[str] = "tool_approval_item"

    call_id: str
    name: str
    arguments: str
    path: tuple[str, ...] = ()
    agent: str | None = None
    error: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the item as JSON."""
        return {
            "type": "tool_approval",
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
            "path": list(self.path),
            **_without_none(agent=self.agent, error=self.error),
        }


Item: TypeAlias = (
    MessageInputItem | MessageOutputItem | ReasoningItem | ToolCallItem | ToolCallOutputItem
)
"""An element of the history that a model reads."""

RunItem: TypeAlias = Item | ToolApprovalItem
"""An item that a run creates."""


class ItemHelpers:
    """Functions that read items."""

    @staticmethod
    def text_message_output(item: MessageOutputItem) -> str:
        """Return the text of a message."""
        return item.text

    @staticmethod
    def text_message_outputs(items: Iterable[RunItem]) -> str:
        """Return the joined texts of all messages of the model."""
        return "".join(item.text for item in items if isinstance(item, MessageOutputItem))

    @staticmethod
    def input_to_new_input_list(input: str | Iterable[Any]) -> list[dict[str, Any]]:
        """Return the input of a run as a list of JSON items."""
        return [item.to_dict() for item in input_items(input)]


def input_items(value: object, at: str = "input") -> list[Item]:
    """Return the input of a run as items.

    Args:
        value: Text, or a list of items, of their JSON forms, or of messages such as
            `{"role": "user", "content": "…"}`.
        at: The name of the input in error messages.

    Raises:
        UserError: An element is not an item; the message names its index and the reason.
    """
    if isinstance(value, str):
        return [MessageInputItem(content=value)]
    if isinstance(value, Mapping) or not isinstance(value, Iterable):
        raise UserTypeError(
            f"{at}: expected text or a list of items such as "
            f'{{"role": "user", "content": "…"}}, got {_describe_type(value)}.'
        )
    items: list[Item] = []
    for index, element in enumerate(cast("Iterable[object]", value)):
        if isinstance(element, _ITEMS):
            items.append(element)
        elif isinstance(element, Mapping):
            items.append(_parse_item(cast("Mapping[str, Any]", element), f"{at}[{index}]"))
        else:
            raise UserTypeError(
                f"{at}[{index}]: expected an item or its JSON object, "
                f"got {_describe_type(element)}."
            )
    return items


def input_messages(value: object, at: str = "input") -> list[MessageInputItem]:
    """Return messages to a model as items.

    Args:
        value: Text, or a list of messages such as `{"role": "user", "content": "…"}`.
        at: The name of the input in error messages.

    Raises:
        UserError: An element is not such a message.
    """
    messages: list[MessageInputItem] = []
    for index, item in enumerate(input_items(value, at)):
        if not isinstance(item, MessageInputItem):
            raise UserTypeError(
                f"{at}[{index}]: expected a message such as "
                f'{{"role": "user", "content": "…"}}, got {_describe_type(item)}.'
            )
        messages.append(item)
    return messages


def item_of_event(event: RunItemStreamEvent[Any]) -> Item | None:
    """Return the item that an event adds to a conversation; `None` if it adds none.

    Args:
        event: The event of an item.

    Raises:
        UserError: The item of the event is not valid.
    """
    item = item_from_dict(event.item)
    if isinstance(item, ToolApprovalItem):
        return None
    if event.name == "background_result" and isinstance(item, ToolCallOutputItem):
        return result_message(item)
    return item


def result_message(output: ToolCallOutputItem) -> MessageInputItem:
    """Return the message to the model with the result of a call in the background.

    The protocols of the providers allow one output for each call, which was the acknowledgement.
    So the result is a message of the role `user`, in a tag that names the call and its status. Text
    of the tool cannot end the tag or begin another one.
    """
    head = (
        f'<background_result call_id="{_attribute(output.call_id)}" '
        f'tool="{_attribute(output.name)}" status="{output.status}">'
    )
    end = "</background_result>"
    content: str | list[ContentBlock]
    if isinstance(output.output, str):
        content = f"{head}\n{_inside_tag(output.output)}\n{end}"
    else:
        blocks = [
            ToolOutputText(_inside_tag(block.text)) if isinstance(block, ToolOutputText) else block
            for block in output.output
        ]
        content = [ToolOutputText(head), *blocks, ToolOutputText(end)]
    return MessageInputItem(content=content, call_id=output.call_id)


def _attribute(text: str) -> str:
    return text.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")


def _inside_tag(text: str) -> str:
    return re.sub(r"<(?=/?\s*background_result)", "&lt;", text, flags=re.IGNORECASE)


def item_from_dict(data: Mapping[str, Any]) -> RunItem:
    """Return an item from its JSON form.

    Raises:
        UserError: The data is not an item; the message names the reason.
    """
    if data.get("type") == "tool_approval":
        at = "item"
        _check_fields(data, at, "type", "call_id", "name", "arguments", "path", "agent", "error")
        path: object = data.get("path", ())
        if not isinstance(path, (list, tuple)):
            raise UserValueError(
                f"{at}.path: expected a list of strings, got {_describe_type(path)}."
            )
        return ToolApprovalItem(
            call_id=_text(data, "call_id", at),
            name=_text(data, "name", at),
            arguments=_text(data, "arguments", at),
            path=tuple(str(part) for part in cast("list[object]", path)),
            agent=_text_or_none(data, "agent", at),
            error=_text_or_none(data, "error", at),
        )
    return _parse_item(data, "item")


def encodable_items(items: Sequence[Item]) -> Sequence[Item]:
    """Return the items without lone surrogates, which a request cannot contain.

    JSON and Python can represent half of a surrogate pair, but UTF-8 cannot.

    Args:
        items: The items; the same sequence is returned if there is nothing to replace.
    """
    for item in items:
        read: Callable[[Any], tuple[Any, ...]] = _TEXTS.get(type(item), _no_texts)
        for value in read(item):
            if value is not None and not (value.__class__ is str and value.isascii()):
                return _without_surrogates(items)
    return items


_TEXTS: dict[type, Callable[[Any], tuple[Any, ...]]] = {
    MessageInputItem: attrgetter("content", "role"),
    MessageOutputItem: attrgetter("text", "refusal", "provider_data"),
    ReasoningItem: attrgetter("text", "provider_data"),
    ToolCallItem: attrgetter("call_id", "name", "arguments", "provider_data"),
    ToolCallOutputItem: attrgetter("call_id", "output"),
}
"""Readers of the fields of items that requests contain."""


def _no_texts(_: object) -> tuple[Any, ...]:
    return ()


def _without_surrogates(items: Sequence[Item]) -> Sequence[Item]:
    clean = [cast("Item", _encodable(item)) for item in items]
    return items if all(map(is_, clean, items)) else clean


def _encodable(value: Any) -> Any:
    """Return an item, a block or JSON without lone surrogates; the same object if it has none."""
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_dataclass(value):
        compared = [one.name for one in fields(value) if one.compare]
        members = {name: getattr(value, name) for name in compared}
        changes = {name: _encodable(member) for name, member in members.items()}
        changes = {name: one for name, one in changes.items() if one is not members[name]}
        copy_with: Any = replace
        return copy_with(value, **changes) if changes else value
    if isinstance(value, dict):
        mapping = cast("dict[str, Any]", value)
        copy = {replace_surrogates(key): _encodable(member) for key, member in mapping.items()}
        pairs = ((copy, mapping), (copy.values(), mapping.values()))
        return mapping if all(all(map(is_, *pair)) for pair in pairs) else copy
    if isinstance(value, list):
        items = cast("list[Any]", value)
        copies = [_encodable(member) for member in items]
        return items if all(map(is_, copies, items)) else copies
    return value


_ITEMS = (MessageInputItem, MessageOutputItem, ReasoningItem, ToolCallItem, ToolCallOutputItem)
_ROLES = ("user", "system", "developer")
_KINDS = ("function", "local_shell", "computer", "mcp_approval", "hosted")
_STATUSES = (
    "ok",
    "invalid_args",
    "tool_error",
    "timeout",
    "cancelled",
    "denied",
    "overloaded",
    "lost",
)


def _parse_item(data: Mapping[str, Any], at: str) -> Item:
    kind: object = data.get("type", "message")
    match kind:
        case "message" if data.get("role") == "assistant":
            return _parse_message_output(data, at)
        case "message":
            return _parse_message_input(data, at)
        case "reasoning":
            return _parse_reasoning(data, at)
        case "function_call" | "tool_call":
            return _parse_tool_call(data, at)
        case "function_call_output" | "tool_call_output":
            return _parse_tool_call_output(data, at)
        case _:
            known = "message, reasoning, function_call, function_call_output"
            raise UserValueError(f"{at}.type: expected one of {known}, got {kind!r:.60}.")


def _parse_message_input(data: Mapping[str, Any], at: str) -> MessageInputItem:
    _check_fields(data, at, "type", "role", "content", "call_id")
    role = data.get("role")
    if role not in _ROLES:
        raise UserValueError(
            f"{at}.role: expected one of {', '.join(_ROLES)}, assistant; got {role!r:.60}."
        )
    if "content" not in data:
        raise UserValueError(f"{at}.content is missing: expected text or a list of content blocks.")
    return MessageInputItem(
        content=_content(data["content"], f"{at}.content"),
        role=role,
        call_id=_text_or_none(data, "call_id", at),
    )


def _parse_message_output(data: Mapping[str, Any], at: str) -> MessageOutputItem:
    content: object = data.get("content")
    texts: list[str] = []
    refusal: str | None = None
    parts: list[Any] = cast("list[Any]", content) if isinstance(content, list) else [content]
    for index, part in enumerate(parts):
        if isinstance(part, str):
            texts.append(part)
            continue
        block = cast("Mapping[str, Any]", part if isinstance(part, Mapping) else {})
        if block.get("type") == "refusal":
            refusal = _text(block, "refusal", f"{at}.content[{index}]")
        elif block.get("type") in ("output_text", "text"):  # not a set: the value can be a list
            texts.append(_text(block, "text", f"{at}.content[{index}]"))
        else:
            raise UserValueError(
                f"{at}.content[{index}]: expected text or a refusal, got {_describe_type(part)}."
            )
    return MessageOutputItem(
        text="".join(texts),
        refusal=refusal,
        id=_text_or_none(data, "id", at),
        agent=_text_or_none(data, "agent", at),
        provider_data=_mapping_or_none(data, "provider_data", at),
    )


def _parse_reasoning(data: Mapping[str, Any], at: str) -> ReasoningItem:
    summary: object = data.get("summary", ())
    parts = cast("list[object]", summary) if isinstance(summary, list) else []
    texts = [
        _text(cast("Mapping[str, Any]", part), "text", f"{at}.summary[{index}]")
        for index, part in enumerate(parts)
        if isinstance(part, Mapping)
    ]
    return ReasoningItem(
        text="\n\n".join(texts),
        id=_text_or_none(data, "id", at),
        agent=_text_or_none(data, "agent", at),
        provider_data=_mapping_or_none(data, "provider_data", at),
    )


def _parse_tool_call(data: Mapping[str, Any], at: str) -> ToolCallItem:
    return ToolCallItem(
        call_id=_text(data, "call_id", at),
        name=_text(data, "name", at),
        arguments=_text(data, "arguments", at),
        kind=_kind(data, at),
        id=_text_or_none(data, "id", at),
        agent=_text_or_none(data, "agent", at),
        provider_data=_mapping_or_none(data, "provider_data", at),
    )


def _parse_tool_call_output(data: Mapping[str, Any], at: str) -> ToolCallOutputItem:
    status: Any = data.get("status", "ok")
    if status not in _STATUSES:
        status = "ok"  # the Responses API has the state of the item here, such as `completed`
    if "output" not in data:
        raise UserValueError(f"{at}.output is missing: expected text or a list of content blocks.")
    return ToolCallOutputItem(
        call_id=_text(data, "call_id", at),
        name=_text_or_none(data, "name", at) or "",
        output=_content(data["output"], f"{at}.output"),
        status=status,
        kind=_kind(data, at),
        agent=_text_or_none(data, "agent", at),
        server=_text_or_none(data, "server", at),
        in_background=data.get("in_background") is True,
        public_message=_text_or_none(data, "public_message", at),
    )


def _kind(data: Mapping[str, Any], at: str) -> Any:
    kind = data.get("kind", "function")
    if kind not in _KINDS:
        raise UserValueError(f"{at}.kind: expected one of {', '.join(_KINDS)}, got {kind!r:.60}.")
    return kind


def _content_to_json(content: str | list[ContentBlock]) -> Any:
    return content if isinstance(content, str) else [block.to_dict() for block in content]


def _content(value: object, at: str) -> str | list[ContentBlock]:
    if isinstance(value, str):
        return value
    if not isinstance(value, (list, tuple)):
        raise UserTypeError(
            f"{at}: expected text or a list of content blocks, got {_describe_type(value)}."
        )
    blocks = cast("list[object]", value)
    return [_block(block, f"{at}[{index}]") for index, block in enumerate(blocks)]


def _block(value: object, at: str) -> ContentBlock:
    if isinstance(value, (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)):
        return value
    if isinstance(value, str):
        return ToolOutputText(value)
    if not isinstance(value, Mapping):
        raise UserTypeError(f"{at}: expected a content block, got {_describe_type(value)}.")
    try:
        return block_of_part(cast("Mapping[str, Any]", value))
    except UserError as error:
        raise UserValueError(f"{at}: {error}") from error


def _without_none(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _check_fields(data: Mapping[str, Any], at: str, *known: str) -> None:
    for key in data:
        if key not in known:
            raise UserValueError(
                f"{at}: unknown field {key!r:.60}. The fields are {', '.join(known)}."
            )


def _text(data: Mapping[str, Any], key: str, at: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        got = "nothing" if value is None else _describe_type(value)
        raise UserValueError(f"{at}.{key}: expected text, got {got}.")
    return value


def _text_or_none(data: Mapping[str, Any], key: str, at: str) -> str | None:
    return None if data.get(key) is None else _text(data, key, at)


def _mapping_or_none(data: Mapping[str, Any], key: str, at: str) -> Mapping[str, Any] | None:
    value: object = data.get(key)
    if value is None or isinstance(value, Mapping):
        return cast("Mapping[str, Any] | None", value)
    raise UserValueError(f"{at}.{key}: expected an object, got {_describe_type(value)}.")


def _describe_type(value: Any) -> str:
    return "null" if value is None else type_with_article(value)
