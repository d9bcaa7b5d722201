"""A server with a network of its own: real addresses, and a link that can be taken down."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import NotifyStreamEvent
from agents_tools.errors import MCPConnectionError
from tests.remote.running import TOKEN, ServerProcess, outcome_of, status_of, tools_of
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
    """Take the link down, or bring it up."""
    ip("link", "set", f"{_NAME}a", state)


@pytest.fixture(scope="module")
def far() -> Iterator[ServerProcess]:
    """Return a server in a network namespace of its own, at the other end of a link."""
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
        server = ServerProcess(
            prefix=(program, "netns", "exec", _NAME),
            host=_THERE,
            auth=TOKEN,
            allowed_hosts=[_THERE],
        )
        with server:
            yield server
    finally:
        ip("netns", "del", _NAME)


async def test_a_tool_runs_in_another_network(far: ServerProcess, tmp_path: Path) -> None:
    """The address is a real one, the token is required, and events arrive."""
    (tmp_path / "go").touch()
    events: list[Any] = []
    async with tools_of(far.url, token=TOKEN) as tools:
        await outcome_of(tools["recite"], emit=events.append, folder=str(tmp_path))
    lines = [event.data for event in events if isinstance(event, NotifyStreamEvent)]
    assert lines == ["line 0", "line 1", "line 2"]
    with pytest.raises(MCPConnectionError):
        async with tools_of(far.url):
            pass


async def test_a_link_that_goes_down_is_noticed(far: ServerProcess, tmp_path: Path) -> None:
    """Neither end receives an error: only the silence shows it."""
    async with tools_of(far.url, token=TOKEN, timeout=3.0, connect_timeout=5) as tools:
        task = asyncio.create_task(status_of(tools["wait"], folder=str(tmp_path)))
        await comes((tmp_path / "began").exists)
        plug("down")
        try:
            assert await task == "timeout"
        finally:
            plug("up")
        assert await status_of(tools["add"], a=1, b=2) == "ok"
