"""Servers of tools that are killed, hang, come back or are cut off, and the outcome of calls."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import NotifyStreamEvent, policies
from agents_tools.errors import MCPConnectionError, ToolLostError
from agents_tools.mcp import create_mcp_tools
from tests.remote.running import (
    BOUND,
    TOKEN,
    Balancer,
    ServerProcess,
    nginx,
    outcome_of,
    status_of,
    tools_of,
)
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from agents_tools.tool import CallOutcome
    from tests.remote.running import Tool

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def server() -> Iterator[ServerProcess]:
    """Return a server."""
    with ServerProcess() as started:
        yield started


def runs(folder: Path) -> list[int]:
    """Return the processes in which the body has run."""
    ran = folder / "ran"
    return list(map(int, ran.read_text().splitlines())) if ran.exists() else []


class Recital:
    """A call of `recite` that has sent its first line."""

    def __init__(self, tool: Tool, folder: Path) -> None:
        self.lines: list[str] = []
        self._first = asyncio.Event()
        self.task = asyncio.create_task(
            outcome_of(tool, emit=self._receive, folder=str(folder)), name="recital"
        )
        self.task.add_done_callback(lambda _: self._first.set())

    def _receive(self, event: Any) -> None:
        if isinstance(event, NotifyStreamEvent):
            self.lines.append(event.data)
            self._first.set()

    async def begin(self) -> None:
        """Wait for the first line."""
        await asyncio.wait_for(self._first.wait(), BOUND)
        assert self.lines == ["line 0"]

    async def end(self) -> CallOutcome:
        """Wait for the outcome."""
        return await asyncio.wait_for(self.task, BOUND)


# --- killed


@pytest.mark.requirement("F45")
async def test_a_call_whose_server_is_killed_while_it_streams_is_lost(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Its first event is here, its outcome is unknown, and the body ran once."""
    async with tools_of(server.url) as tools:
        recital = Recital(tools["recite"], tmp_path)
        await recital.begin()
        server.kill()
        outcome = await recital.end()
        assert (outcome.status, recital.lines) == ("lost", ["line 0"])
        assert "unknown whether" in str(outcome.output)
        server.start()
        assert await status_of(tools["add"], a=1, b=2) == "ok"
    assert len(runs(tmp_path)) == 1


@pytest.mark.requirement("F25")
async def test_all_calls_of_a_server_that_is_killed_end(
    server: ServerProcess, tmp_path: Path
) -> None:
    """200 calls run at once; each of them is lost, and the next one works."""
    async with tools_of(server.url) as tools:
        folders = [tmp_path / str(number) for number in range(200)]
        for folder in folders:
            folder.mkdir()
        calls = [
            asyncio.create_task(status_of(tools["wait"], folder=str(folder))) for folder in folders
        ]
        for folder in folders:
            await comes((folder / "began").exists)
        server.kill()
        assert set(await asyncio.gather(*calls)) == {"lost"}
        server.start()
        assert await status_of(tools["add"], a=1, b=2) == "ok"


@pytest.mark.requirement("F45")
async def test_an_idempotent_call_is_made_again_by_a_retry(tmp_path: Path) -> None:
    """The consumer sees the new attempt announced, and all its events."""
    with ServerProcess() as one, ServerProcess() as two:
        servers = {one.pid: one, two.pid: two}
        async with Balancer(one.port, two.port) as line, tools_of(line.url) as tools:
            retry = policies.retry(5, on=(ToolLostError, MCPConnectionError), idempotent=True)
            events: list[Any] = []
            call = outcome_of(retry(tools["steady"]), emit=events.append, folder=str(tmp_path))
            task = asyncio.create_task(call)
            await comes(lambda: any(isinstance(event, NotifyStreamEvent) for event in events))
            servers[runs(tmp_path)[0]].kill()
            outcome = await asyncio.wait_for(task, BOUND)
    assert outcome.output == "done"
    said = [event.data for event in events if isinstance(event, NotifyStreamEvent)]
    assert said == ["first", "again"]
    assert "tool_attempt_event" in [event.type for event in events]
    assert set(runs(tmp_path)) == set(servers)


# --- not there


@pytest.mark.slow
async def test_a_server_that_is_away_fails_calls_and_is_found_again(server: ServerProcess) -> None:
    """A call that was certainly not run is distinguished from one that is lost."""
    async with tools_of(server.url) as tools:
        server.kill()
        for _ in range(3):
            outcome = await outcome_of(tools["add"], a=1, b=2)
            assert isinstance(outcome.error, MCPConnectionError)
            assert outcome.status != "lost"
        server.start()
        assert await status_of(tools["add"], a=1, b=2) == "ok"


# --- hung


@pytest.mark.slow
async def test_a_call_at_a_server_that_hangs_ends_at_its_deadline(
    server: ServerProcess, tmp_path: Path
) -> None:
    """A server whose event loop is blocked cannot report the deadline."""
    async with tools_of(server.url) as tools:
        hang = policies.timeout(1)(tools["hang"])
        assert await status_of(hang, folder=str(tmp_path), seconds=600) == "timeout"
        assert (tmp_path / "began").exists()


@pytest.mark.slow
async def test_a_call_whose_server_is_stopped_ends_after_its_silence(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Without a deadline, the client notices that the server sends nothing."""
    async with tools_of(server.url, timeout=1.0, max_time=60.0) as tools:
        call = asyncio.create_task(status_of(tools["wait"], folder=str(tmp_path)))
        await comes((tmp_path / "began").exists)
        server.send(signal.SIGSTOP)
        assert await call == "timeout"


# --- event loops


@pytest.mark.requirement("F44")
def test_tools_serve_several_event_loops(server: ServerProcess) -> None:
    """Programs call tools from `asyncio.run`, from threads and from synchronous code."""
    config = {"mcpServers": {"far": {"url": server.url, "type": "http"}}}
    with create_mcp_tools(config) as tools:
        add = next(tool for tool in tools if tool.name.endswith("add"))

        async def twice() -> list[Any]:
            there = await asyncio.to_thread(add.invoke_sync, a=1, b=2)
            return [one.structured for one in (there, await add.invoke(a=2, b=2))]

        assert asyncio.run(twice()) == [3, 4]
        assert add.invoke_sync(a=3, b=2).structured == 5
        assert asyncio.run(twice()) == [3, 4]


# --- cut off


@pytest.mark.slow
async def test_a_call_whose_connection_is_cut_is_lost_and_cancelled(
    server: ServerProcess, tmp_path: Path
) -> None:
    """Both ends notice: the outcome is unknown here, and there the call is cancelled."""
    async with Balancer(server.port) as line, tools_of(line.url) as tools:
        task = asyncio.create_task(status_of(tools["wait"], folder=str(tmp_path)))
        await comes((tmp_path / "began").exists)
        line.cut()
        assert await task == "lost"
        await comes((tmp_path / "cleaned").exists)
        assert await status_of(tools["add"], a=1, b=2) == "ok"


async def test_a_cancelled_call_is_cancelled_at_its_server(
    server: ServerProcess, tmp_path: Path
) -> None:
    """The cancellation passes through a proxy."""
    async with Balancer(server.port) as line, tools_of(line.url) as tools:
        task = asyncio.create_task(status_of(tools["wait"], folder=str(tmp_path)))
        await comes((tmp_path / "began").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await comes((tmp_path / "cleaned").exists)


# --- behind a load balancer


@pytest.fixture(params=["tcp", pytest.param("nginx", marks=pytest.mark.external("nginx"))])
async def balanced(
    request: pytest.FixtureRequest,
) -> AsyncGenerator[tuple[str, dict[int, ServerProcess]]]:
    """Return the address of two servers behind a load balancer, and both of them."""
    with ServerProcess() as one, ServerProcess() as two:
        servers = {one.pid: one, two.pid: two}
        if request.param == "nginx":
            with nginx(one.port, two.port) as url:
                yield url, servers
        else:
            async with Balancer(one.port, two.port) as line:
                yield line.url, servers


Balanced = tuple[str, dict[int, ServerProcess]]


@pytest.mark.slow
async def test_any_server_answers_behind_a_load_balancer(
    balanced: Balanced, tmp_path: Path
) -> None:
    """Servers store nothing between requests, so each request can go to any of them."""
    url, servers = balanced
    (tmp_path / "go").touch()
    async with tools_of(url) as tools:
        found = await asyncio.gather(*(tools["whoami"].invoke() for _ in range(20)))
        assert {one.structured["pid"] for one in found} == set(servers)
        recital = Recital(tools["recite"], tmp_path)
        assert (await recital.end()).status == "ok"
        assert recital.lines == ["line 0", "line 1", "line 2"]


@pytest.mark.requirement("F45")
async def test_a_server_that_is_killed_behind_a_load_balancer_loses_only_its_own_calls(
    balanced: Balanced, tmp_path: Path
) -> None:
    """Its call is lost and ran once; the others are answered, and so are later ones."""
    url, servers = balanced
    async with tools_of(url) as tools:
        recital = Recital(tools["recite"], tmp_path)
        await recital.begin()
        dead = servers[runs(tmp_path)[0]]
        (other,) = set(servers.values()) - {dead}
        dead.kill()
        assert (await recital.end()).status == "lost"
        assert len(runs(tmp_path)) == 1
        outcomes = [await outcome_of(tools["whoami"]) for _ in range(10)]
    answered = {outcome.value.structured["pid"] for outcome in outcomes if outcome.status == "ok"}
    assert answered == {other.pid}


@pytest.mark.slow
async def test_events_arrive_live_through_a_load_balancer(
    balanced: Balanced, tmp_path: Path
) -> None:
    """The body waits for a file that is created when its first line is here."""
    url, _ = balanced
    async with tools_of(url) as tools:
        recital = Recital(tools["recite"], tmp_path)
        await recital.begin()
        assert not recital.task.done()
        (tmp_path / "go").touch()
        await recital.end()
    assert recital.lines == ["line 0", "line 1", "line 2"]


# --- access and shutdown


@pytest.mark.slow
async def test_a_server_with_a_token_refuses_other_callers(tmp_path: Path) -> None:
    """A refused caller sees no tools, so nothing is run."""
    with ServerProcess(auth=TOKEN) as server:
        for token in (None, "another-token"):
            with pytest.raises(MCPConnectionError):
                async with tools_of(server.url, token=token):
                    pass
        async with tools_of(server.url, token=TOKEN) as tools:
            assert await status_of(tools["add"], a=1, b=2) == "ok"
    assert not (tmp_path / "began").exists()


@pytest.mark.slow
async def test_a_server_that_is_terminated_lets_calls_finish(
    server: ServerProcess, tmp_path: Path
) -> None:
    """A new release is rolled out without losing a call."""
    async with tools_of(server.url) as tools:
        recital = Recital(tools["recite"], tmp_path)
        await recital.begin()
        server.send(signal.SIGTERM)
        (tmp_path / "go").touch()
        assert (await recital.end()).status == "ok"
