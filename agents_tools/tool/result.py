"""The result of a call: from the value that a tool returned to the output for the model."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from agents_tools.content.json_value import UnserializableOutput
from agents_tools.content.outputs import (
    NO_OUTPUT,
    ToolOutputText,
    as_tool_result,
    to_model_output,
    truncate_output,
)
from agents_tools.text.escape import escape_for_model
from agents_tools.text.secrets import guard_logs, mask_registered
from agents_tools.tool.records import CallOutcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.call import Call

__all__ = ["add_metadata", "convert_value", "filter_output", "is_plain"]


def convert_value(call: Call, value: Any) -> CallOutcome:
    """Return the outcome of a call that returned a value, with the output for the model.

    The output is escaped, secrets in it are masked, policies change it, and it is truncated. The
    omitted text and the tables that are not shown as a whole are emitted as artifacts. An empty
    output becomes `NO_OUTPUT`.

    Args:
        call: The call.
        value: The value.
    """
    tool = call.tool
    max_output: int = tool.max_output
    if isinstance(value, str):
        text = value if is_plain(value) else escape_for_model(value) or NO_OUTPUT
        output: ToolOutput = filter_output(call, mask_registered(text))
        if type(value) is str and len(output) <= max_output and isinstance(output, str):
            return CallOutcome(status="ok", value=value, output=output)
        result = None
    else:
        result = as_tool_result(value)
        content = value if result is None else result
        output = filter_output(call, _escape_output(_convert(call, content)))
    shortened, omitted = truncate_output(output, max_output)
    if omitted is not None:
        call.artifact(f"{tool.name}-output", omitted, mime_type="text/plain")
    if result is None:
        return CallOutcome(status="ok", value=value, output=shortened)
    status: CallStatus = "tool_error" if result.is_error else "ok"
    return CallOutcome(status=status, value=value, output=shortened, metadata=result.metadata)


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
        _log().error("Tool %r returned a value that cannot be converted: %s", name, error)
        raise


def filter_output(call: Call, output: ToolOutput) -> ToolOutput:
    """Return the output for the model after every policy that changes it."""
    for policy in call.tool.stack.outputs:
        output = policy.filter_output(call, output)
    return output


def is_plain(text: str) -> bool:
    """Return whether a text is certainly sent to the model as it is.

    The check is fast and can return `False` for a text that needs no change.
    """
    return text.isascii() and "\x1b" not in text and "\0" not in text and text != ""


def _escape_output(output: ToolOutput) -> ToolOutput:
    """Escape control characters and mask secrets, in a text and in blocks of text."""
    if isinstance(output, str):
        return mask_registered(output if is_plain(output) else escape_for_model(output))
    return [
        ToolOutputText(mask_registered(escape_for_model(block.text)))
        if isinstance(block, ToolOutputText)
        else block
        for block in output
    ]


def add_metadata(outcome: CallOutcome, notes: Mapping[str, Any]) -> CallOutcome:
    """Return an outcome with facts from policies, under the key `agents_tools` of its metadata."""
    metadata = outcome.metadata or {}
    existing: Any = metadata.get("agents_tools")
    merged: dict[str, Any] = {**(existing if isinstance(existing, dict) else {}), **notes}
    return replace(outcome, metadata={**metadata, "agents_tools": merged})


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
