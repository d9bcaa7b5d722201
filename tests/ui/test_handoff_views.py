"""Views of a run whose agent changes."""

from __future__ import annotations

import io

from agents_tools import Agent, Runner
from agents_tools.testing import ScriptedModel, tool_call
from agents_tools.ui.console.run_tree import RunTree
from agents_tools.ui.console.text_views import choose_run_view


async def test_the_terminal_shows_the_agent_that_continues() -> None:
    """The tree has its name, and the lines say when it changes."""
    model = ScriptedModel([tool_call("transfer_to_refunds"), "Done."])
    desk = Agent("Desk", handoffs=[Agent("Refunds", model=model)], model=model)
    run = Runner.run_streamed(desk, "x")
    stream, tree = io.StringIO(), RunTree("Desk")
    lines = choose_run_view("plain", "Desk", stream)
    lines.open()
    async for event in run.stream_events():
        tree.update(event)
        lines.show(event)
    lines.close("ok", 1.0)
    assert (tree.root.name, tree.root.agent) == ("Refunds", "Refunds")
    shown = stream.getvalue().splitlines()
    assert shown[0] == "Desk > transfer_to_refunds: called with no arguments"
    assert shown[2] == "Refunds: continues with agent Refunds"
    assert shown[-1].startswith("Refunds: done")
