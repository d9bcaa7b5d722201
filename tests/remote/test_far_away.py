"""A worker with a network of its own: real addresses, and a cable that can be pulled out."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from agents_tools.mcp import MCPBackend
from tests.remote.running import TOKEN, WorkerProcess, all_of, envelope, status_of
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.external("ip"), pytest.mark.timeout(120)]

_NAME = f"at{os.getpid() % 100_000}"
_HERE, _THERE = "10.213.77.1", "10.213.77.2"


def ip(*words: str) -> None:
    """Run the program that sets up networks."""
    program = shutil.which("ip") or "/usr/sbin/ip"
    subprocess.run([program, *words], check=True, capture_output=True, text=True)  # noqa: S603


def plug(state: str) -> None:
    """Pull the cable out, or put it back."""
    ip("link", "set", f"{_NAME}a", state)


@pytest.fixture(scope="module")
def far() -> Iterator[WorkerProcess]:
    """Give a worker in a network namespace of its own, at the other end of a cable."""
    if sys.platform != "linux":
        pytest.skip("needs Linux network namespaces")
    try:
        ip("netns", "add", _NAME)
    except (OSError, subprocess.CalledProcessError) as error:
        pytest.skip(
            f"needs permission to create network namespaces: {getattr(error, 'stderr', error)}"
        )
    try:
        try:
            ip("link", "add", f"{_NAME}a", "type", "veth", "peer", "name", "far0", "netns", _NAME)
            ip("addr", "add", f"{_HERE}/30", "dev", f"{_NAME}a")
            plug("up")
            ip("-n", _NAME, "addr", "add", f"{_THERE}/30", "dev", "far0")
            ip("-n", _NAME, "link", "set", "far0", "up")
            ip("-n", _NAME, "link", "set", "lo", "up")
        except subprocess.CalledProcessError as error:
            pytest.skip(f"needs permission to create network namespaces: {error.stderr}")
        program = shutil.which("ip") or "/usr/sbin/ip"
        worker = WorkerProcess(
            prefix=(program, "netns", "exec", _NAME),
            host=_THERE,
            auth=TOKEN,
            allowed_hosts=[_THERE],
        )
        with worker:
            yield worker
    finally:
        ip("netns", "del", _NAME)


async def test_a_tool_runs_in_another_network(far: WorkerProcess, tmp_path: Path) -> None:
    """The address is a real one, the token is asked for, and events come back."""
    (tmp_path / "go").touch()
    async with MCPBackend(far.url, token=TOKEN) as backend:
        assert (await backend.health()).ok
        events = await all_of(backend, envelope("recite", {"folder": str(tmp_path)}))
    said = [event.payload["data"] for event in events if "data" in event.payload]
    assert said == ["line 0", "line 1", "line 2"]
    async with MCPBackend(far.url) as stranger:
        assert await status_of(stranger, envelope("add", {"a": 1, "b": 2})) == "denied"


async def test_a_cable_that_is_pulled_out_is_noticed(far: WorkerProcess, tmp_path: Path) -> None:
    """No end hears of it: only the silence tells, and the call is lost."""
    async with MCPBackend(far.url, token=TOKEN, heartbeat=1.0, connect_timeout=5) as backend:
        call = envelope("wait", {"folder": str(tmp_path)})
        task = asyncio.create_task(status_of(backend, call))
        await comes((tmp_path / "began").exists)
        plug("down")
        try:
            assert await task == "lost"
        finally:
            plug("up")
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"
