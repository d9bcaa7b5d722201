"""Test the helpers for authors of tools."""

from __future__ import annotations

from agents_tools import NotifyStreamEvent, function_tool, streaming_tool
from agents_tools.testing import call_tool, call_tool_sync


@streaming_tool
async def counting(n: int):  # type: ignore[no-untyped-def]
    for i in range(n):
        yield NotifyStreamEvent(str(i))
    yield n


async def test_call_tool_records_the_outcome_of_a_call() -> None:
    """The record has the result, the output, the status and the events."""
    call = await call_tool(counting, n=2)
    assert (call.status, call.value, call.output) == ("ok", 2, "2")
    assert call.texts == ["0", "1"]
    assert call.events[0].type == "tool_stream_start_event"


def test_a_failure_is_returned_as_for_an_agent() -> None:
    """No exception is raised, because tests check the output for the model."""

    @function_tool
    def tool() -> str:
        raise ValueError("broken")

    call = call_tool_sync(tool)
    assert (call.status, call.value) == ("tool_error", None)
    assert "broken" in str(call.output)
    assert call_tool_sync(tool, '{"x": 1}').status == "invalid_args"


def test_hidden_start_and_end_events_are_allowed() -> None:
    """A tool can omit them."""

    @streaming_tool(enable_bracketing=False)
    async def tool():  # type: ignore[no-untyped-def]
        yield NotifyStreamEvent("x")
        yield "done"

    assert call_tool_sync(tool).texts == ["x"]
