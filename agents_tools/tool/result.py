"""The result of a call: from the value that a tool returned to the output for the model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from agents_tools.text.output import release_ends, release_text
from agents_tools.text.secrets import has_secrets

if TYPE_CHECKING:
    from collections.abc import Mapping

    from agents_tools.content.outputs import ContentBlock, ToolOutput
    from agents_tools.events.kinds import CallStatus
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.declaration import CallOutcome, Declaration, Policy

__all__ = ["add_metadata", "apply_reply_policies", "convert_value"]


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

    The output is cleaned, secrets in it are masked, policies change it, and it is bounded. The
    omitted text is emitted as an artifact.

    Args:
        context: The context of the call.
        value: The value that the tool returned.
        declaration: The declaration of the tool, whose serializer writes the value.
        policies: The policies of the tool, innermost first.
        name: The name of the tool.
        max_output: How many characters of the output the model gets.
    """
    from agents_tools.content.outputs import as_tool_result, to_output, truncate_output
    from agents_tools.tool.declaration import CallOutcome

    # Without a subscriber and a policy that reads the output, its middle is dropped unread.
    has_readers = bool(context.sinks) or any(policy.reply for policy in policies)
    size = None if has_readers else max_output
    if isinstance(value, str):
        is_clean = value.isprintable() and not has_secrets()
        text = value if is_clean else _release(value, size)
        output = apply_reply_policies(policies, context, text)
        if type(value) is str and len(output) <= max_output and isinstance(output, str):
            return CallOutcome(status="ok", value=value, output=output)
        result = None
    else:
        result = as_tool_result(value)
        content = value if result is None else result
        output = to_output(content, declaration.serializer())
        output = apply_reply_policies(policies, context, _release_output(output, size))
    shortened, omitted = truncate_output(output, max_output)
    if omitted is not None:
        context.artifact(f"{name}-output", omitted, mime_type="text/plain")
    if result is None:
        return CallOutcome(status="ok", value=value, output=shortened)
    status: CallStatus = "tool_error" if result.is_error else "ok"
    return CallOutcome(status=status, value=value, output=shortened, metadata=result.metadata)


def apply_reply_policies(
    policies: tuple[Policy, ...], context: ToolContext[Any], output: ToolOutput
) -> ToolOutput:
    """Return the output for the model after every policy that changes it."""
    for policy in policies:
        if policy.reply is not None:
            output = policy.reply(context, output)
    return output


def _release_output(output: ToolOutput, size: int | None) -> ToolOutput:
    """Clean and mask a text, or the texts, addresses and file names of blocks."""
    if isinstance(output, str):
        return _release(output, size)
    return [_release_block(block) for block in output]


def _release(text: str, size: int | None) -> str:
    return release_text(text, to="model") if size is None else release_ends(text, size)


def _release_block(block: ContentBlock) -> ContentBlock:
    from dataclasses import replace

    changes: dict[str, str] = {}
    for name in ("text", "filename", "url"):
        value = getattr(block, name, None)
        if isinstance(value, str):
            changes[name] = release_text(value, to="model")
    copy_with: Any = replace  # all classes of blocks have some of these fields
    return cast("ContentBlock", copy_with(block, **changes))


def add_metadata(outcome: CallOutcome, notes: Mapping[str, Any]) -> CallOutcome:
    """Return an outcome with facts from policies, under the key `agents_tools` of its metadata."""
    from dataclasses import replace

    metadata = outcome.metadata or {}
    existing: Any = metadata.get("agents_tools")
    merged: dict[str, Any] = {**(existing if isinstance(existing, dict) else {}), **notes}
    return replace(outcome, metadata={**metadata, "agents_tools": merged})
