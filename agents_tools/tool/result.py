"""The result of a call: from the value that a tool returned to the output for the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.json_value import UnserializableOutput
from agents_tools.content.outputs import (
    NO_OUTPUT,
    ToolResult,
    as_tool_result,
    to_model_output,
    truncate_output,
)
from agents_tools.text.characters import is_plain
from agents_tools.text.output import release_ends, release_text
from agents_tools.text.secrets import has_secrets, library_logger
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.content.outputs import ContentBlock, ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.call import Call

__all__ = ["add_metadata", "convert_value", "filter_output"]


def convert_value(call: Call, value: Any) -> CallOutcome:
    """Return the outcome of a call that returned a value, with the output for the model.

    The output is cleaned, secrets in it are masked, policies change it, and it is bounded. The
    omitted text and the tables that are not shown as a whole are emitted as artifacts. An empty
    output becomes `NO_OUTPUT`.

    Args:
        call: The call.
        value: The value.
    """
    tool = call.tool
    max_output: int = tool.max_output
    filters = tool.stack.outputs
    text = value.content if value.__class__ is ToolResult else value
    is_text = text.__class__ is str and 0 < len(text) <= max_output
    if is_text and not filters and is_plain(text) and not has_secrets():
        # Most results, also those of MCP servers: nothing in them has to change.
        return CallOutcome("ok", value, text) if text is value else _outcome_of(value, value, text)
    # Without a reader of the whole output, the middle of a text that is not JSON is dropped unread.
    is_plain_text = isinstance(value, str) and value[:1] not in {"[", "{"}
    size = max_output if is_plain_text and not (call.sinks or filters) else None
    result = None
    if isinstance(value, str):
        output = filter_output(call, _release(value, size) or NO_OUTPUT)
    else:
        result = as_tool_result(value)
        content = value if result is None else result
        output = filter_output(call, _release_output(_convert(call, content), size))
    shortened, omitted = truncate_output(output, max_output)
    if omitted is not None:
        is_whole_json = omitted is output
        kind = "application/json" if is_whole_json else "text/plain"
        call.artifact(f"{tool.name}-output", omitted, mime_type=kind)
    if result is None:
        return CallOutcome("ok", value, shortened)
    return _outcome_of(value, result, shortened)


def _outcome_of(value: Any, result: ToolResult, output: ToolOutput) -> CallOutcome:
    """Return the outcome of a call whose value represents a result."""
    status: CallStatus = "tool_error" if result.is_error else "ok"
    return CallOutcome(status, value, output, metadata=result.metadata)


def _convert(call: Call, value: Any) -> ToolOutput:
    name: str = call.tool.name

    def keep_table(text: str) -> str:
        artifact = f"{name}-table.csv"
        call.artifact(artifact, text, mime_type="text/csv")
        return artifact

    serializer = call.tool.source.describe_output().serializer
    try:
        return to_model_output(value, serializer, keep_table if call.sinks else None)
    except UnserializableOutput as error:
        library_logger().error("Tool %r returned a value that cannot be converted: %s", name, error)
        raise


def filter_output(call: Call, output: ToolOutput) -> ToolOutput:
    """Return the output for the model after every policy that changes it."""
    for policy in call.tool.stack.outputs:
        output = policy.filter_output(call, output)
    return output


def _release_output(output: ToolOutput, size: int | None) -> ToolOutput:
    """Clean and mask a text, or the texts, addresses and file names of blocks."""
    if isinstance(output, str):
        return _release(output, size)
    return [_release_block(block) for block in output]


def _release(text: str, size: int | None) -> str:
    return release_text(text, to="model") if size is None else release_ends(text, size)


def _release_block(block: ContentBlock) -> ContentBlock:
    changes: dict[str, str] = {}
    for name in ("text", "filename", "url"):
        value = getattr(block, name, None)
        if isinstance(value, str):
            changes[name] = release_text(value, to="model")
    copy_with: Any = replace  # all classes of blocks have some of these fields
    return cast("ContentBlock", copy_with(block, **changes))


def add_metadata(outcome: CallOutcome, notes: Mapping[str, Any]) -> CallOutcome:
    """Return an outcome with facts from policies, under the key `agents_tools` of its metadata."""
    metadata = outcome.metadata or {}
    existing: Any = metadata.get("agents_tools")
    merged: dict[str, Any] = {**(existing if isinstance(existing, dict) else {}), **notes}
    return replace(outcome, metadata={**metadata, "agents_tools": merged})
