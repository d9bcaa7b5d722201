"""The result of a call: from the value that a tool returned to the output for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from agents_tools.text.secrets import guard_logs, mask_registered

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.content.outputs import ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import CallOutcome, Declaration, Policy

__all__ = ["add_metadata", "apply_reply_policies", "convert_value", "is_plain"]


def convert_value(
    context: ToolContext[Any],
    value: Any,
    declaration: Declaration,
    policies: tuple[Policy, ...],
    *,
    name: str,
    max_output: int,
) -> CallOutcome:
    """Return the outcome of a call that returned a value, with the output for the model.

    The output is escaped, secrets in it are masked, policies change it, and it is truncated. The
    omitted text and the tables that are not shown as a whole are emitted as artifacts. An empty
    output becomes `NO_OUTPUT`.

    Args:
        context: The context of the call.
        value: The value that the tool returned.
        declaration: The declaration of the tool, whose serializer writes the value.
        policies: The policies of the tool, innermost first.
        name: The name of the tool.
        max_output: How many characters of the output the model gets.
    """
    from agents_tools.content.outputs import NO_OUTPUT, as_tool_result, truncate_output
    from agents_tools.text.escape import escape_for_model
    from agents_tools.tool.declaration import CallOutcome

    if isinstance(value, str):
        text = value if is_plain(value) else escape_for_model(value) or NO_OUTPUT
        output: ToolOutput = apply_reply_policies(policies, context, mask_registered(text))
        if type(value) is str and len(output) <= max_output and isinstance(output, str):
            return CallOutcome(status="ok", value=value, output=output)
        result = None
    else:
        result = as_tool_result(value)
        content = value if result is None else result
        output = _convert(context, content, declaration, name)
        output = apply_reply_policies(policies, context, _escape_output(output))
    shortened, omitted = truncate_output(output, max_output)
    if omitted is not None:
        context.artifact(f"{name}-output", omitted, mime_type="text/plain")
    if result is None:
        return CallOutcome(status="ok", value=value, output=shortened)
    status: CallStatus = "tool_error" if result.is_error else "ok"
    return CallOutcome(status=status, value=value, output=shortened, metadata=result.metadata)


def _convert(
    context: ToolContext[Any], value: Any, declaration: Declaration, name: str
) -> ToolOutput:
    from agents_tools.content.json_value import UnserializableOutput
    from agents_tools.content.outputs import to_model_output

    def keep_table(text: str) -> str:
        artifact = f"{name}-table.csv"
        context.artifact(artifact, text, mime_type="text/csv")
        return artifact

    try:
        return to_model_output(
            value, declaration.serializer(), keep_table=keep_table if context.sinks else None
        )
    except UnserializableOutput as error:
        _log().error("Tool %r returned a value that cannot be converted: %s", name, error)
        raise


def apply_reply_policies(
    policies: tuple[Policy, ...], context: ToolContext[Any], output: ToolOutput
) -> ToolOutput:
    """Return the output for the model after every policy that changes it."""
    for policy in policies:
        if policy.reply is not None:
            output = policy.reply(context, output)
    return output


def is_plain(text: str) -> bool:
    """Return whether a text is certainly sent to the model as it is.

    The check is fast and can return `False` for a text that needs no change.
    """
    return text.isascii() and "\x1b" not in text and "\0" not in text and text != ""


def _escape_output(output: ToolOutput) -> ToolOutput:
    """Escape control characters and mask secrets, in a text and in blocks of text."""
    from agents_tools.content.outputs import ToolOutputText
    from agents_tools.text.escape import escape_for_model

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
    from dataclasses import replace

    metadata = outcome.metadata or {}
    existing: Any = metadata.get("agents_tools")
    merged: dict[str, Any] = {**(existing if isinstance(existing, dict) else {}), **notes}
    return replace(outcome, metadata={**metadata, "agents_tools": merged})


def _log() -> Any:
    import logging

    guard_logs()
    return logging.getLogger("agents_tools")
