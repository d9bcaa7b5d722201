"""Several servers in one process, and the signals that end them."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import pytest

from agents_tools import function_tool
from agents_tools.mcp import MCPToolManager, mcp_server, serve_async
from tests.mcp.small import listening
from tests.mcp.test_server import LEGACY, client

BOUND = 45.0


@function_tool
async def add(a: int, b: int) -> int:
    """Add."""
    return a + b


@function_tool
async def slow() -> str:
    """Answer after the stream of the answer has begun."""
    for _ in range(100):
        await asyncio.sleep(0)
    return "done"


async def started(group: asyncio.TaskGroup) -> tuple[asyncio.Task[Any], str]:
    ready: asyncio.Future[str] = asyncio.get_running_loop().create_future()
    serving = serve_async([add], "http", port=0, auth=False, on_ready=ready.set_result)
    task = group.create_task(serving)
    return task, await ready


async def answers(address: str) -> bool:
    async with MCPToolManager() as manager:
        [tool] = await manager.add_server("far", url=address)
        outcome = await tool.call(None, '{"a": 1, "b": 2}')
        return outcome.status == "ok"


@pytest.mark.parametrize("first", [0, 1])
async def test_servers_that_end_in_any_order_leave_the_signals_as_they_were(first: int) -> None:
    """A leftover handler would make the process ignore SIGTERM."""
    before = [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)]
    async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
        servers = [await started(group), await started(group)]
        assert all([await answers(address) for _, address in servers])
        for which in (first, 1 - first):
            servers[which][0].cancel()
            await asyncio.wait([servers[which][0]])
            if which == first:
                assert await answers(servers[1 - first][1])
    assert [signal.getsignal(one) for one in (signal.SIGINT, signal.SIGTERM)] == before


async def test_one_signal_ends_all_servers_and_reaches_the_program_once() -> None:
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
            servers = [await started(group), await started(group)]
            for _, address in servers:
                assert await answers(address)
            signal.raise_signal(signal.SIGTERM)
            await asyncio.wait([task for task, _ in servers])
        assert heard == [signal.SIGTERM]
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_a_server_started_after_a_signal_can_stream() -> None:
    """A program can serve again after an interrupt."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        for _ in range(2):
            async with asyncio.timeout(BOUND), asyncio.TaskGroup() as group:
                task, address = await started(group)
                assert await answers(address)
                signal.raise_signal(signal.SIGTERM)
                await asyncio.wait([task])
        assert heard == [signal.SIGTERM] * 2
    finally:
        signal.signal(signal.SIGTERM, before)


async def test_a_signal_does_not_end_the_streams_of_a_later_app() -> None:
    """Otherwise the SDK's stream library would keep ending every stream of the process."""
    heard: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, _frame: heard.append(number))
    try:
        async with asyncio.timeout(BOUND):
            async with asyncio.TaskGroup() as group:
                task, address = await started(group)
                assert await answers(address)
                signal.raise_signal(signal.SIGTERM)
                await asyncio.wait([task])
            async with (
                listening(mcp_server([slow])) as address,
                client(f"{address}/mcp", LEGACY) as one,
            ):
                assert await one.text("slow") == "done"
    finally:
        signal.signal(signal.SIGTERM, before)
