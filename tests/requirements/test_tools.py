"""Requirements of functions and agents that no other test covers."""

from __future__ import annotations

import asyncio
import collections
import inspect
import json
import threading
import time
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agents_tools import function_tool, streaming_tool
from agents_tools.policies import limit, timeout
from agents_tools.tool import StreamingToolOptions, ToolOptions

PATIENCE = 45.0
DAY = 86_400.0


@pytest.mark.requirement("A45")
def test_streaming_tools_accept_all_options_of_function_tools() -> None:
    """To turn one into the other, you change only the name of the decorator."""
    plain, streaming = ToolOptions.__optional_keys__, StreamingToolOptions.__optional_keys__
    # A sync generator has a thread anyway, and no annotation says what the last value is.
    assert plain - streaming == {"output_schema", "run_in_thread"}
    assert streaming - plain == {"enable_bracketing"}
    assert set(inspect.signature(function_tool).parameters) == {"func", "unknown", *plain}


@pytest.mark.requirement("A45")
def test_docstrings_of_streaming_tools_are_parsed_like_those_of_functions() -> None:
    """The configured style applies, or none."""

    async def result_text(a: int) -> AsyncIterator[str]:
        """Do it.

        :param a: a number
        """
        yield str(a)

    described: dict[str, Any] = streaming_tool(docstring_style="sphinx")(
        result_text
    ).params_json_schema
    assert described["properties"]["a"]["description"] == "a number"
    other = streaming_tool(docstring_style="google")(result_text)
    assert "description" not in other.params_json_schema["properties"]["a"]
    silent = streaming_tool(use_docstring_info=False)(result_text)
    assert not silent.description
    assert "description" not in json.dumps(silent.params_json_schema)


@pytest.mark.requirement("F39")
@pytest.mark.parametrize("jump", [DAY, -DAY])
async def test_a_clock_jump_does_not_change_a_deadline(
    monkeypatch: pytest.MonkeyPatch, jump: float
) -> None:
    """A call with time left keeps it, and one without still ends."""
    begun, go = asyncio.Event(), asyncio.Event()

    @function_tool
    async def waits() -> str:
        begun.set()
        await go.wait()
        return "in time"

    real = time.time
    call = asyncio.create_task(timeout(PATIENCE)(waits).call(None, "{}"))
    async with asyncio.timeout(PATIENCE):
        await begun.wait()
        monkeypatch.setattr(time, "time", lambda: real() + jump)
        late = await timeout(0.02)(waits).call(None, "{}")
        assert not call.done()
        go.set()
        assert (await call).output == "in time"
    assert late.status == "timeout"


@pytest.mark.requirement("F24")
async def test_sync_calls_over_the_queue_limit_are_rejected() -> None:
    """Eight run, a hundred wait, and the others are rejected at once."""
    gate, running = threading.Event(), threading.Semaphore(0)

    @limit(concurrent=8, queue=100)
    @function_tool
    def guarded() -> str:
        running.release()
        assert gate.wait(PATIENCE)
        return "done"

    calls = [asyncio.create_task(guarded.call(None, "{}")) for _ in range(1_000)]
    try:
        for _ in range(8):
            assert await asyncio.to_thread(running.acquire, timeout=PATIENCE)
        refused = [call for call in calls if call.done()]
        assert len(refused) == 892
        assert not running.acquire(blocking=False)  # no ninth one
    finally:
        gate.set()
    async with asyncio.timeout(2 * PATIENCE):
        outcomes = await asyncio.gather(*calls)
    counts = collections.Counter(outcome.status for outcome in outcomes)
    assert counts == {"ok": 108, "overloaded": 892}
