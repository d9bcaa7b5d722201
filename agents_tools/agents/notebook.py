"""The display of a run in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools.content.items import ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from agents_tools.content.outputs import output_text
from agents_tools.text.html import html_block, html_table, html_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.content.items import RunItem
    from agents_tools.content.usage import Usage

__all__ = ["run_html"]


def run_html(
    agent: object, *, items: Sequence[RunItem], turns: int, usage: Usage, output: object
) -> str:
    """Return the calls, cost and output of a run as HTML.

    Args:
        agent: The agent, whose name is the title.
        items: The items that the run added to the conversation.
        turns: The number of model responses.
        usage: The usage.
        output: The final output; `None` before the end.
    """
    facts = [f"{turns} turn{'' if turns == 1 else 's'}", f"{usage.total_tokens:,} tokens"]
    return html_block(
        str(getattr(agent, "name", "Run")),
        facts if output is not None else ["no output yet", *facts],
        html_table(("call", "arguments", "status", "output"), _calls(items)),
        html_text("" if output is None else str(output), "pre"),
    )


def _calls(items: Sequence[RunItem]) -> Iterator[tuple[str, str, str, str]]:
    outputs = {one.call_id: one for one in items if isinstance(one, ToolCallOutputItem)}
    waiting = {one.call_id for one in items if isinstance(one, ToolApprovalItem)}
    for item in items:
        if isinstance(item, ToolCallItem):
            output = outputs.get(item.call_id)
            if output is not None:
                yield item.name, item.arguments, output.status, output_text(output.output)
            else:
                status = "waiting for approval" if item.call_id in waiting else "running"
                yield item.name, item.arguments, status, ""
