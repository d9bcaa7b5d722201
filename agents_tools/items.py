"""What a conversation with a model consists of: messages, reasoning, tool calls and their outputs.

Items never change. Their JSON form is that of the Responses API's input items, as far as it
reaches: `{"role": "user", "content": "…"}`, `{"type": "function_call", …}`,
`{"type": "function_call_output", …}`. What only one provider understands travels in
`provider_data` and is given back to that provider alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypeAlias, cast

from agents_tools.errors import UserError, UserTypeError, UserValueError
from agents_tools.outputs import (
    ContentBlock,
    ToolOutput,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    block_from_dict,
)

if TYPE_CHECKING:
    from agents_tools.events import CallStatus

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
    "input_items",
    "item_from_dict",
]

Role: TypeAlias = Literal["user", "system", "developer"]
"""Who wrote a message that is given to a model."""

CallKind: TypeAlias = Literal["function", "local_shell", "computer", "mcp_approval", "hosted"]
"""How a call is made on the wire. `hosted` ones were run by the provider and need no answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageInputItem:
    """A message to the model.

    Attributes:
        content: Text, or content blocks.
        role: Who wrote it.
    """

    type: ClassVar[str] = "message_input_item"

    content: str | list[ContentBlock]
    role: Role = "user"

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        return {"role": self.role, "content": _content_to_json(self.content)}


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageOutputItem:
    """A message from the model.

    Attributes:
        text: What it says.
        refusal: Why it refuses, where it does; `text` is then empty.
        id: The provider's id of it.
        agent: The name of the agent it comes from.
        provider_data: What only its provider understands, under the provider's name.
    """

    type: ClassVar[str] = "message_output_item"

    text: str = ""
    refusal: str | None = None
    id: str | None = None
    agent: str | None = None
    provider_data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        part = (
            {"type": "output_text", "text": self.text}
            if self.refusal is None
            else {"type": "refusal", "refusal": self.refusal}
        )
        return {
            "type": "message",
            "role": "assistant",
            "content": [part],
            **_given(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReasoningItem:
    """What the model thought, as far as it tells.

    Attributes:
        text: The thought, or a summary of it; may be empty.
        id: The provider's id of it.
        agent: The name of the agent it comes from.
        provider_data: What only its provider understands, under the provider's name: signatures,
            encrypted content.
    """

    type: ClassVar[str] = "reasoning_item"

    text: str = ""
    id: str | None = None
    agent: str | None = None
    provider_data: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        summary = [{"type": "summary_text", "text": self.text}] if self.text else []
        return {
            "type": "reasoning",
            "summary": summary,
            **_given(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallItem:
    """The model calls a tool.

    Attributes:
        call_id: What the answer refers to.
        name: The tool.
        arguments: The arguments as JSON text, as the model wrote them.
        kind: How the call is made on the wire.
        id: The provider's id of the item, where that is another than `call_id`.
        agent: The name of the agent it comes from.
        provider_data: What only its provider understands, under the provider's name.
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
        """Whether the model waits for an output."""
        return self.kind != "hosted"

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        return {
            "type": "function_call" if self.kind == "function" else "tool_call",
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
            **({} if self.kind == "function" else {"kind": self.kind}),
            **_given(id=self.id, agent=self.agent, provider_data=self.provider_data),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCallOutputItem:
    """What a call of a tool answered.

    Attributes:
        call_id: The call.
        name: The tool.
        output: What the model gets: text or content blocks.
        status: How the call ended.
        kind: As of the call.
        agent: The name of the agent whose call it was.
        server: The server that the answer comes from, where the tool is a remote one; what it
            says is to be trusted as far as that server is.
        value: What the tool returned, as the Python object; not part of the JSON form.
        metadata: What a `ToolResult` carries for the application alone; neither.
    """

    type: ClassVar[str] = "tool_call_output_item"

    call_id: str
    name: str = ""
    output: ToolOutput
    status: CallStatus = "ok"
    kind: CallKind = "function"
    agent: str | None = None
    server: str | None = None
    value: Any = field(default=None, compare=False, repr=False)
    metadata: Mapping[str, Any] | None = field(default=None, compare=False, repr=False)

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        return {
            "type": "function_call_output" if self.kind == "function" else "tool_call_output",
            "call_id": self.call_id,
            "output": _content_to_json(self.output),
            "name": self.name,
            "status": self.status,
            **({} if self.kind == "function" else {"kind": self.kind}),
            **_given(agent=self.agent, server=self.server),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolApprovalItem:
    """A call that waits for somebody's approval.

    Attributes:
        call_id: The call.
        name: The tool.
        arguments: Its arguments as JSON text: what is approved is the call with just these.
        path: The ids of the calls around it, outermost first; not empty for a call of an agent
            that runs as a tool.
        agent: The name of the agent that calls.
    """

    type: ClassVar[str] = "tool_approval_item"

    call_id: str
    name: str
    arguments: str
    path: tuple[str, ...] = ()
    agent: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Give the item as JSON."""
        return {
            "type": "tool_approval",
            "call_id": self.call_id,
            "name": self.name,
            "arguments": self.arguments,
            "path": list(self.path),
            **_given(agent=self.agent),
        }


Item: TypeAlias = (
    MessageInputItem | MessageOutputItem | ReasoningItem | ToolCallItem | ToolCallOutputItem
)
"""What a model reads: one element of the history."""

RunItem: TypeAlias = Item | ToolApprovalItem
"""What a run makes."""


class ItemHelpers:
    """Readers of items."""

    @staticmethod
    def text_message_output(item: MessageOutputItem) -> str:
        """Give the text of a message."""
        return item.text

    @staticmethod
    def text_message_outputs(items: Iterable[RunItem]) -> str:
        """Give the texts of all messages among the items, one after the other."""
        return "".join(item.text for item in items if isinstance(item, MessageOutputItem))

    @staticmethod
    def input_to_new_input_list(input: str | Iterable[Any]) -> list[dict[str, Any]]:
        """Give an input as the list of JSON items that it stands for."""
        return [item.to_dict() for item in input_items(input)]


def input_items(given: object, at: str = "input") -> list[Item]:
    """Read what a run is given.

    Args:
        given: Text, or a list of items, of their JSON forms, or of messages such as
            `{"role": "user", "content": "…"}`.
        at: What it is called in errors.

    Raises:
        UserError: Something in it is no item; the message says which and why.
    """
    if isinstance(given, str):
        return [MessageInputItem(content=given)]
    if isinstance(given, Mapping) or not isinstance(given, Iterable):
        raise UserTypeError(
            "The input of a run is text or a list of items such as "
            f'{{"role": "user", "content": "…"}}, not {_kind_of(given)}.'
        )
    items: list[Item] = []
    for index, one in enumerate(cast("Iterable[object]", given)):
        if isinstance(one, _ITEMS):
            items.append(one)
        elif isinstance(one, Mapping):
            items.append(_item_at(cast("Mapping[str, Any]", one), f"{at}[{index}]"))
        else:
            raise UserTypeError(
                f"{at}[{index}]: expected an item or its JSON object, got {_kind_of(one)}."
            )
    return items


def item_from_dict(data: Mapping[str, Any]) -> RunItem:
    """Read an item from its JSON form.

    Raises:
        UserError: It is none; the message says why.
    """
    if data.get("type") == "tool_approval":
        at = "item"
        _only(data, at, "type", "call_id", "name", "arguments", "path", "agent")
        path: object = data.get("path", ())
        if not isinstance(path, (list, tuple)):
            raise UserValueError(f"{at}.path: expected a list of strings, got {_kind_of(path)}.")
        return ToolApprovalItem(
            call_id=_text(data, "call_id", at),
            name=_text(data, "name", at),
            arguments=_text(data, "arguments", at),
            path=tuple(str(part) for part in cast("list[object]", path)),
            agent=_text_or_none(data, "agent", at),
        )
    return _item_at(data, "item")


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


def _item_at(data: Mapping[str, Any], at: str) -> Item:
    kind: object = data.get("type", "message")
    match kind:
        case "message" if data.get("role") == "assistant":
            return _message_output(data, at)
        case "message":
            return _message_input(data, at)
        case "reasoning":
            return _reasoning(data, at)
        case "function_call" | "tool_call":
            return _tool_call(data, at)
        case "function_call_output" | "tool_call_output":
            return _tool_call_output(data, at)
        case _:
            known = "message, reasoning, function_call, function_call_output"
            raise UserValueError(f"{at}.type: expected one of {known}, got {kind!r:.60}.")


def _message_input(data: Mapping[str, Any], at: str) -> MessageInputItem:
    _only(data, at, "type", "role", "content")
    role = data.get("role")
    if role not in _ROLES:
        raise UserValueError(
            f"{at}.role: expected one of {', '.join(_ROLES)}, assistant; got {role!r:.60}."
        )
    if "content" not in data:
        raise UserValueError(f"{at}.content is missing.")
    return MessageInputItem(content=_content(data["content"], f"{at}.content"), role=role)


def _message_output(data: Mapping[str, Any], at: str) -> MessageOutputItem:
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
        elif block.get("type") in {"output_text", "text"}:
            texts.append(_text(block, "text", f"{at}.content[{index}]"))
        else:
            raise UserValueError(
                f"{at}.content[{index}]: expected text or a refusal, got {_kind_of(part)}."
            )
    return MessageOutputItem(
        text="".join(texts),
        refusal=refusal,
        id=_text_or_none(data, "id", at),
        agent=_text_or_none(data, "agent", at),
        provider_data=_mapping_or_none(data, "provider_data", at),
    )


def _reasoning(data: Mapping[str, Any], at: str) -> ReasoningItem:
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


def _tool_call(data: Mapping[str, Any], at: str) -> ToolCallItem:
    return ToolCallItem(
        call_id=_text(data, "call_id", at),
        name=_text(data, "name", at),
        arguments=_text(data, "arguments", at),
        kind=_kind(data, at),
        id=_text_or_none(data, "id", at),
        agent=_text_or_none(data, "agent", at),
        provider_data=_mapping_or_none(data, "provider_data", at),
    )


def _tool_call_output(data: Mapping[str, Any], at: str) -> ToolCallOutputItem:
    status: Any = data.get("status", "ok")
    if status not in _STATUSES:
        status = "ok"  # the Responses API tells the state of the item there: `completed`
    if "output" not in data:
        raise UserValueError(f"{at}.output is missing.")
    return ToolCallOutputItem(
        call_id=_text(data, "call_id", at),
        name=_text_or_none(data, "name", at) or "",
        output=_content(data["output"], f"{at}.output"),
        status=status,
        kind=_kind(data, at),
        agent=_text_or_none(data, "agent", at),
        server=_text_or_none(data, "server", at),
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
            f"{at}: expected text or a list of content blocks, got {_kind_of(value)}."
        )
    blocks = cast("list[object]", value)
    return [_block(block, f"{at}[{index}]") for index, block in enumerate(blocks)]


def _block(value: object, at: str) -> ContentBlock:
    if isinstance(value, (ToolOutputText, ToolOutputImage, ToolOutputAudio, ToolOutputFileContent)):
        return value
    if isinstance(value, str):
        return ToolOutputText(value)
    if not isinstance(value, Mapping):
        raise UserTypeError(f"{at}: expected a content block, got {_kind_of(value)}.")
    data = dict(cast("Mapping[str, Any]", value))
    try:
        match data.get("type"):
            case "input_text" | "output_text":
                return ToolOutputText(_text(data, "text", at))
            case "input_image":
                return ToolOutputImage(
                    url=data.get("image_url"),
                    file_id=data.get("file_id"),
                    detail=data.get("detail"),
                )
            case "input_file":
                return _input_file(data)
            case _:
                return block_from_dict(data)
    except UserError as error:
        raise UserValueError(f"{at}: {error}") from error


def _input_file(data: Mapping[str, Any]) -> ToolOutputFileContent:
    from binascii import Error, a2b_base64

    encoded = data.get("file_data")
    content: bytes | None = None
    if encoded is not None:
        try:
            content = a2b_base64(str(encoded).rpartition(",")[2])
        except Error as error:
            raise UserValueError(f"its file_data is no base64: {error}") from error
    return ToolOutputFileContent(
        data=content,
        url=data.get("file_url"),
        file_id=data.get("file_id"),
        filename=data.get("filename"),
    )


def _given(**values: Any) -> dict[str, Any]:
    return {name: value for name, value in values.items() if value is not None}


def _only(data: Mapping[str, Any], at: str, *known: str) -> None:
    for key in data:
        if key not in known:
            raise UserValueError(f"{at}: there is no field {key!r:.60}; known: {', '.join(known)}.")


def _text(data: Mapping[str, Any], key: str, at: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        why = "is missing" if value is None else f"must be text, not {_kind_of(value)}"
        raise UserValueError(f"{at}.{key} {why}.")
    return value


def _text_or_none(data: Mapping[str, Any], key: str, at: str) -> str | None:
    return None if data.get(key) is None else _text(data, key, at)


def _mapping_or_none(data: Mapping[str, Any], key: str, at: str) -> Mapping[str, Any] | None:
    value: object = data.get(key)
    if value is None or isinstance(value, Mapping):
        return cast("Mapping[str, Any] | None", value)
    raise UserValueError(f"{at}.{key}: expected an object, got {_kind_of(value)}.")


def _kind_of(value: Any) -> str:
    return "null" if value is None else f"a {type(value).__name__}"
