"""The content of a conversation with a model: messages, calls, outputs and token usage."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import lazy_exports

if TYPE_CHECKING:
    from agents_tools.content.items import (
        CallKind as CallKind,
        Item as Item,
        ItemHelpers as ItemHelpers,
        MessageInputItem as MessageInputItem,
        MessageOutputItem as MessageOutputItem,
        ReasoningItem as ReasoningItem,
        Role as Role,
        RunItem as RunItem,
        ToolApprovalItem as ToolApprovalItem,
        ToolCallItem as ToolCallItem,
        ToolCallOutputItem as ToolCallOutputItem,
        input_items as input_items,
        item_from_dict as item_from_dict,
    )
    from agents_tools.content.json_value import (
        UnserializableOutput as UnserializableOutput,
    )
    from agents_tools.content.outputs import (
        ContentBlock as ContentBlock,
        ToolOutput as ToolOutput,
        ToolOutputAudio as ToolOutputAudio,
        ToolOutputFileContent as ToolOutputFileContent,
        ToolOutputImage as ToolOutputImage,
        ToolOutputText as ToolOutputText,
        ToolResult as ToolResult,
        to_output as to_output,
    )
    from agents_tools.content.usage import (
        Usage as Usage,
    )

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "json_value": ("UnserializableOutput",),
        "outputs": (
            "ContentBlock",
            "ToolOutput",
            "ToolOutputAudio",
            "ToolOutputFileContent",
            "ToolOutputImage",
            "ToolOutputText",
            "ToolResult",
            "to_output",
        ),
        "items": (
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
        ),
        "usage": ("Usage",),
    },
)
