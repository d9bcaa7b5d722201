"""Workers that are killed, hang, come back or are cut off, and what is told of it."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import NotifyStreamEvent, ToolContext
from agents_tools.execution import run_on
from agents_tools.mcp import MCPBackend
from tests.remote.running import (
    BOUND,
    TOKEN,
    Balancer,
    WorkerProcess,
    all_of,
    envelope,
    nginx,
    status_of,
)
from tests.remote.worker import add, recite
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator
    from pathlib import Path

    from agents_tools.execution import CallEvent

pytestmark = pytest.mark.timeout(120)


@pytest.fixture
def worker() -> Iterator[WorkerProcess]:
    """Give a worker."""
    with WorkerProcess() as started:
        yield started


def lines(events: list[CallEvent]) -> list[str]:
    """Give what was said."""
    return [str(one.payload["data"]) for one in events if "data" in one.payload]


def runs(folder: Path) -> int:
    """Give how often the body has begun."""
    ran = folder / "ran"
    return len(ran.read_text().splitlines()) if ran.exists() else 0


async def begun(backend: MCPBackend, call: Any) -> tuple[list[CallEvent], asyncio.Task[None]]:
    """Make a call, and wait until it has said its first line."""
    events: list[CallEvent] = []
    first = asyncio.Event()

    async def listen() -> None:
        async for event in backend.submit(call):
            events.append(event)
            if event.kind in {"event", "result"} and lines(events):
                first.set()

    task = asyncio.create_task(listen())
    # A test that fails here leaves it behind; without a look at its exception the log of that is
    # written while pytest reads the source, which Python 3.11 does not survive.
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    async with asyncio.timeout(BOUND):
        await first.wait()
    return events, task


# --- killed


@pytest.mark.requirement("F45")
async def test_a_call_whose_worker_is_killed_while_it_streams_is_lost(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """What was said is here, the outcome is unknown, and the body runs once."""
    async with MCPBackend(worker.url) as backend:
        call = envelope("recite", {"folder": str(tmp_path)})
        events, task = await begun(backend, call)
        worker.kill()
        await asyncio.wait_for(task, BOUND)
        assert lines(events) == ["line 0"]
        assert events[-1].payload["status"] == "lost"
        assert "unknown whether" in events[-1].payload["error"]["message"]
        assert [one.seq for one in events] == list(range(len(events)))
        worker.start()
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"
    assert runs(tmp_path) == 1


@pytest.mark.requirement("F45")
async def test_the_model_is_told_that_nobody_knows(worker: WorkerProcess, tmp_path: Path) -> None:
    """Through `run_on` the tool ends as `lost`, with what it said before."""
    heard: list[str] = []

    def hear(event: Any) -> None:
        if isinstance(event, NotifyStreamEvent):
            heard.append(event.data)
            worker.kill()

    async with MCPBackend(worker.url) as backend:
        context: ToolContext[Any] = ToolContext(tool_call_id="call-1", emit=hear)
        arguments = json.dumps({"folder": str(tmp_path)})
        outcome = await run_on(backend)(recite).call(context, arguments)
    assert (outcome.status, heard, runs(tmp_path)) == ("lost", ["line 0"], 1)


@pytest.mark.requirement("F25")
async def test_all_calls_of_a_worker_that_is_killed_end(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """200 calls at once, each of them is told to be lost, and the next one works."""
    async with MCPBackend(worker.url) as backend:
        folders = [tmp_path / str(number) for number in range(200)]
        for folder in folders:
            folder.mkdir()
        calls = [
            asyncio.create_task(status_of(backend, envelope("wait", {"folder": str(folder)})))
            for folder in folders
        ]
        for folder in folders:
            await comes((folder / "began").exists)
        worker.kill()
        assert set(await asyncio.gather(*calls)) == {"lost"}
        worker.start()
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"


@pytest.mark.requirement("F45")
async def test_an_idempotent_call_goes_to_the_next_worker(tmp_path: Path) -> None:
    """The consumer sees `restarted`, and all of the new attempt from its first event on."""
    with WorkerProcess() as one, WorkerProcess() as two:
        workers = {one.pid: one, two.pid: two}
        async with MCPBackend([one.url, two.url]) as backend:
            call = envelope("steady", {"folder": str(tmp_path)}, idempotent=True)
            events, task = await begun(backend, call)
            workers[int((tmp_path / "ran").read_text())].kill()
            await asyncio.wait_for(task, BOUND)
    assert lines(events) == ["attempt 1", "attempt 2"]
    second = [event for event in events if event.attempt == 2]
    assert second[0].kind == "restarted"
    assert [event.seq for event in second] == list(range(len(second)))
    assert events[-1].payload["output"] == "attempt 2"
    assert runs(tmp_path) == 2


@pytest.mark.requirement("F41")
async def test_a_call_that_is_sent_again_is_answered_and_not_run(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """Also when another backend, in another process for all it knows, sends it again."""
    (tmp_path / "go").touch()
    call = envelope("recite", {"folder": str(tmp_path)})
    async with MCPBackend(worker.url) as one, MCPBackend(worker.url) as two:
        first, again = await all_of(one, call), await all_of(two, call)
    assert again[-1].payload == first[-1].payload
    assert lines(again) == lines(first)
    assert runs(tmp_path) == 1


# --- there is none


async def test_where_no_worker_is_there_nothing_was_run(worker: WorkerProcess) -> None:
    """What was surely not run is told apart from what is lost."""
    async with MCPBackend(worker.url) as backend:
        assert (await backend.health()).ok
        worker.kill()
        health = await backend.health()
        assert (health.ok, health.workers) == (False, 0)
        assert "cannot be reached" in health.detail
        events = await all_of(backend, envelope("add", {"a": 1, "b": 2}))
        assert events[-1].payload["status"] == "overloaded"
        assert "Nothing was run" in events[-1].payload["error"]["message"]
        for _ in range(8):
            assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "overloaded"
        worker.start()
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"


async def test_a_worker_that_is_away_when_it_is_first_needed_is_tried_again(
    worker: WorkerProcess,
) -> None:
    """A supervisor may start the workers after what calls them."""
    worker.kill()
    async with MCPBackend(worker.url) as backend:
        for _ in range(8):
            assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "overloaded"
        worker.start()
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"


async def test_calls_go_to_the_workers_that_are_there(worker: WorkerProcess) -> None:
    """One address that is dead costs nothing but the look."""
    with WorkerProcess() as dead:
        url = dead.url
    async with MCPBackend([url, worker.url]) as backend:
        for _ in range(4):
            assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"
        assert (await backend.health()).workers == 1


# --- hung


async def test_a_call_at_a_worker_that_hangs_is_over_at_its_deadline(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """A worker whose event loop is blocked cannot even say that the time is over."""
    async with MCPBackend(worker.url) as backend:
        await backend.health()
        call = envelope("hang", {"folder": str(tmp_path), "seconds": 600}, deadline=time.time() + 1)
        events = await all_of(backend, call)
        assert events[-1].payload["status"] == "timeout"
        assert (tmp_path / "began").exists()


async def test_a_worker_that_gives_no_sign_of_life_is_lost(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """Without a deadline a stopped process is found by its silence."""
    async with MCPBackend(worker.url, heartbeat=0.5) as backend:
        call = envelope("wait", {"folder": str(tmp_path)})
        beats, status = 0, None
        async for event in backend.submit(call):
            status = event.payload.get("status")
            if event.kind == "heartbeat" and (beats := beats + 1) == 2:
                worker.send(signal.SIGSTOP)
    assert (beats, status) == (2, "lost")


# --- event loops


@pytest.mark.requirement("F44")
def test_a_backend_outlives_event_loops_and_serves_several(worker: WorkerProcess) -> None:
    """Programs call tools from `asyncio.run`, from threads and from synchronous code."""
    backend = MCPBackend(worker.url)
    tool = run_on(backend)(add)

    async def twice() -> list[int]:
        there = await asyncio.to_thread(tool.invoke_sync, a=1, b=2)
        return [there, await tool.invoke(a=2, b=2)]

    assert asyncio.run(twice()) == [3, 4]
    assert tool.invoke_sync(a=3, b=2) == 5
    assert asyncio.run(twice()) == [3, 4]
    asyncio.run(backend.aclose())


# --- cut off


async def test_a_call_whose_connection_is_cut_is_lost_and_cancelled(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """Both ends notice: here the outcome is unknown, there nobody waits any more."""
    async with Balancer(worker.port) as line, MCPBackend(line.url) as backend:
        call = envelope("wait", {"folder": str(tmp_path)})
        task = asyncio.create_task(status_of(backend, call))
        await comes((tmp_path / "began").exists)
        line.cut()
        assert await task == "lost"
        await comes((tmp_path / "cleaned").exists)
        assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"


async def test_a_cancelled_call_is_cancelled_at_its_worker(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """The end of the connection is the word for it, through whatever stands between."""
    async with Balancer(worker.port) as line, MCPBackend(line.url) as backend:
        call = envelope("wait", {"folder": str(tmp_path)})
        task = asyncio.create_task(status_of(backend, call))
        await comes((tmp_path / "began").exists)
        assert await backend.cancel(call.call_id, "enough")
        assert await task == "cancelled"
        await comes((tmp_path / "cleaned").exists)


# --- behind a load balancer


@pytest.fixture(params=["tcp", pytest.param("nginx", marks=pytest.mark.external("nginx"))])
async def balanced(
    request: pytest.FixtureRequest,
) -> AsyncGenerator[tuple[str, dict[int, WorkerProcess]]]:
    """Give the address of two workers behind one balancer or the other, and both of them."""
    with WorkerProcess() as one, WorkerProcess() as two:
        workers = {one.pid: one, two.pid: two}
        if request.param == "nginx":
            with nginx(one.port, two.port) as url:
                yield url, workers
        else:
            async with Balancer(one.port, two.port) as line:
                yield line.url, workers


Balanced = tuple[str, dict[int, WorkerProcess]]


async def test_any_worker_answers_behind_a_load_balancer(
    balanced: Balanced, tmp_path: Path
) -> None:
    """Workers keep nothing between requests, so none of them has to be met twice."""
    url, workers = balanced
    (tmp_path / "go").touch()
    async with MCPBackend(url) as backend:
        calls = [all_of(backend, envelope("whoami")) for _ in range(20)]
        found = await asyncio.gather(*calls)
        assert {one[-1].payload["structured"]["pid"] for one in found} == set(workers)
        events = await all_of(backend, envelope("recite", {"folder": str(tmp_path)}))
        assert lines(events) == ["line 0", "line 1", "line 2"]


@pytest.mark.requirement("F45")
async def test_a_worker_that_is_killed_behind_a_load_balancer_costs_its_own_calls(
    balanced: Balanced, tmp_path: Path
) -> None:
    """Its call is lost and run once; the others are answered, and so are those to come."""
    url, workers = balanced
    async with MCPBackend(url) as backend:
        events, task = await begun(backend, envelope("recite", {"folder": str(tmp_path)}))
        dead = workers[int((tmp_path / "ran").read_text())]
        (other,) = set(workers.values()) - {dead}
        dead.kill()
        await asyncio.wait_for(task, BOUND)
        assert (events[-1].payload["status"], runs(tmp_path)) == ("lost", 1)
        answered: list[int] = []
        for _ in range(10):
            found = await all_of(backend, envelope("whoami"))
            if found[-1].payload["status"] == "ok":
                answered.append(found[-1].payload["structured"]["pid"])
        assert set(answered) == {other.pid}


async def test_events_come_live_through_a_load_balancer(balanced: Balanced, tmp_path: Path) -> None:
    """The body waits for a file that is made when its first line is here."""
    url, _ = balanced
    async with MCPBackend(url) as backend:
        events, task = await begun(backend, envelope("recite", {"folder": str(tmp_path)}))
        assert not task.done()
        (tmp_path / "go").touch()
        await asyncio.wait_for(task, BOUND)
    assert lines(events) == ["line 0", "line 1", "line 2"]


# --- who may call


async def test_a_worker_with_a_token_refuses_strangers(tmp_path: Path) -> None:
    """What is refused was not run, and says so."""
    with WorkerProcess(auth=TOKEN) as worker:
        for token in (None, "the-token-of-somebody-else"):
            async with MCPBackend(worker.url, token=token) as backend:
                call = envelope("wait", {"folder": str(tmp_path)})
                assert await status_of(backend, call) == "denied"
        async with MCPBackend(worker.url, token=TOKEN) as backend:
            assert await status_of(backend, envelope("add", {"a": 1, "b": 2})) == "ok"
    assert not (tmp_path / "began").exists()


async def test_a_worker_that_ends_in_peace_lets_calls_finish(
    worker: WorkerProcess, tmp_path: Path
) -> None:
    """A new release is rolled out without losing what is nearly done."""
    async with MCPBackend(worker.url) as backend:
        events, task = await begun(backend, envelope("recite", {"folder": str(tmp_path)}))
        worker.send(signal.SIGTERM)
        (tmp_path / "go").touch()
        await asyncio.wait_for(task, BOUND)
    assert events[-1].payload["status"] == "ok"
