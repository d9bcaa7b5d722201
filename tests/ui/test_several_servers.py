"""Servers in processes of their own that share a store: kills, decisions, late readers, a proxy."""

from __future__ import annotations

import asyncio
import itertools
import signal
import socket
import subprocess
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Generator, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from agents_tools import NotifyStreamEvent
from agents_tools.events import GapEvent
from agents_tools.ui import sse
from tests.durable.postgres import postgres, why_not
from tests.programs import find
from tests.waiting import BOUND, comes

Start = Any


class Shop:
    """A server of `tests.ui.shop` in a process of its own.

    Args:
        process: The process.
        port: Its port.
    """

    def __init__(self, process: subprocess.Popen[str], port: int) -> None:
        self.process = process
        self.url = f"http://127.0.0.1:{port}"
        self.web = httpx.AsyncClient(base_url=self.url, timeout=BOUND)

    async def kill(self) -> None:
        """End the process as the kernel does when memory is short."""
        self.process.send_signal(signal.SIGKILL)
        await asyncio.to_thread(self.process.wait, BOUND)
        await self.web.aclose()

    async def start(self, input: str, run_id: str) -> None:
        """Start a run that continues by itself."""
        headers = {"prefer": "respond-async"}
        answer = await self.web.post(
            "/runs", json={"input": input, "run_id": run_id}, headers=headers
        )
        assert answer.status_code == 202, answer.text

    async def run(self, run_id: str) -> Any:
        """Return the state of a run."""
        answer = await self.web.get(f"/runs/{run_id}")
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def until(self, run_id: str, *statuses: str) -> Any:
        """Wait for a status of a run, and return its state."""
        async with asyncio.timeout(BOUND):
            state = await self.run(run_id)
            while state["status"] not in statuses:  # another process has no event to wait for
                await asyncio.sleep(0.02)
                state = await self.run(run_id)
        return state

    async def decide(self, run_id: str, call_id: str) -> httpx.Response:
        """Approve a call."""
        decision = {"call_id": call_id, "approve": True}
        return await self.web.post(f"/runs/{run_id}/approvals", json={"decisions": [decision]})


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.external("postgres"))])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the path or address of a store for all servers."""
    if request.param == "sqlite":
        yield str(tmp_path / "runs.db")
        return
    if reason := why_not():
        pytest.skip(reason)
    with postgres() as url:
        yield url


@asynccontextmanager
async def shops(place: str, folder: Path, count: int = 2) -> AsyncGenerator[list[Shop]]:
    """Start servers, and end those that run at the end."""
    with ExitStack() as stack:
        servers = [await asyncio.to_thread(_started, stack, place, folder) for _ in range(count)]
        try:
            yield servers
        finally:
            for server in servers:
                await server.web.aclose()
                server.process.terminate()


def _started(stack: ExitStack, place: str, folder: Path) -> Shop:
    process = stack.enter_context(
        subprocess.Popen(  # noqa: S603 - our own program
            [sys.executable, "-m", "tests.ui.shop", place, str(folder)],
            stdout=subprocess.PIPE,
            text=True,
        )
    )
    assert process.stdout is not None
    return Shop(process, int(process.stdout.readline()))


def lines(file: Path) -> Counter[str]:
    """Return how often each line is in a file of the tools."""
    return Counter(file.read_text().split()) if file.exists() else Counter()


@pytest.mark.requirement("F42", "F41")
@pytest.mark.timeout(90)
async def test_the_runs_of_a_killed_server_continue_on_another_one(
    place: str, tmp_path: Path
) -> None:
    """They have the same ids, no call that ended runs again, and waiting calls can be decided."""
    async with shops(place, tmp_path) as (one, other):
        for number in range(3):
            await one.start("wait", f"w{number}")
            await one.start("pay", f"p{number}")
        await comes(lambda: lines(tmp_path / "held").total() == 3)
        for number in range(3):
            await one.until(f"p{number}", "interrupted")
        await one.kill()
        listed = {run["run_id"]: run for run in (await other.web.get("/runs")).json()["runs"]}
        assert set(listed) == {f"{kind}{number}" for kind in "wp" for number in range(3)}
        for number in range(3):
            assert listed[f"w{number}"]["status"] in {"orphaned", "running"}
            (item,) = listed[f"p{number}"]["approvals"]
            assert item["name"] == "pay"
            assert (await other.decide(f"p{number}", item["call_id"])).status_code == 200
            assert (await other.until(f"p{number}", "ok"))["output"] == "Done."
        await comes(lambda: lines(tmp_path / "held").total() == 6)
        (tmp_path / "open").touch()
        for number in range(3):
            assert (await other.until(f"w{number}", "ok"))["output"] == "Done."
    assert set(lines(tmp_path / "noted").values()) == {1}
    assert lines(tmp_path / "paid") == {f"p{number}": 1 for number in range(3)}


@pytest.mark.requirement("F42")
async def test_an_orphaned_run_is_resumed_by_a_request(tmp_path: Path) -> None:
    """The answer is 409 for a run that another server drives or that has ended."""
    place = str(tmp_path / "runs.db")
    async with shops(place, tmp_path) as (one, other):
        await one.start("wait", "r1")
        await comes(lambda: lines(tmp_path / "held").total() == 1)
        refused = await other.web.post("/runs/r1/resume", json={})
        assert refused.status_code == 409
        assert "it is 'running'" in refused.json()["error"]["message"]
        await one.kill()
        answer = await other.web.post("/runs/r1/resume", json={})
        if answer.status_code == 409:  # the server has found it by itself meanwhile
            assert "it is 'running'" in answer.text
        else:
            assert answer.json() == {"ok": True, "status": "running"}
        (tmp_path / "open").touch()
        await other.until("r1", "ok")
        refused = await other.web.post("/runs/r1/resume", json={})
        assert "it is 'ok'" in refused.json()["error"]["message"]
        assert (await other.web.post("/runs/r2/resume", json={})).status_code == 404


@pytest.mark.requirement("F41")
@pytest.mark.timeout(60)
async def test_any_of_two_servers_answers_each_request(place: str, tmp_path: Path) -> None:
    """Each request goes to the next server. A late reader sees the text so far."""
    async with shops(place, tmp_path) as servers:
        turns = itertools.cycle(servers)
        await decided_through(lambda: next(turns).web, 10)
        await one_late_reader(lambda: next(turns).web, tmp_path)
    assert set(lines(tmp_path / "paid").values()) == {1}
    assert lines(tmp_path / "paid").total() == 10


async def decided_through(web: Any, count: int) -> None:
    """Start runs, and approve their calls, each through the server that answers."""

    async def order(run_id: str) -> None:
        started = await web().post("/runs", json={"input": "pay", "run_id": run_id})
        assert started.status_code == 200, started.text
        (item,) = (await web().get(f"/runs/{run_id}")).json()["approvals"]
        decision = {"call_id": item["call_id"], "approve": True}
        decided = await web().post(f"/runs/{run_id}/approvals", json={"decisions": [decision]})
        assert decided.status_code == 200, decided.text
        last = list(sse.decode(started.text))[-1].id
        rest = await web().get(f"/runs/{run_id}/events", headers={"last-event-id": str(last)})
        events = [event.to_dict() for event in sse.decode(rest.text)]
        assert events[-1].get("output") == "Done.", (last, events)

    for first in range(0, count, 5):
        async with asyncio.TaskGroup() as group:
            for number in range(first, first + 5):
                group.create_task(order(f"o{number}"))


async def one_late_reader(web: Any, folder: Path) -> None:
    """Read the text of a run through the servers before and after it ends."""
    headers = {"prefer": "respond-async"}
    body = {"input": "tell", "run_id": "story"}
    assert (await web().post("/runs", json=body, headers=headers)).status_code == 202
    await comes((folder / "told").exists)
    whole = "".join(f"{number}," for number in range(50))

    async def read() -> str:
        text, frames = "", ""
        async with web().stream("GET", "/runs/story/events") as answer:
            async for part in answer.aiter_text():
                frames += part
                complete = frames[: frames.rfind("\n\n") + 2]
                events = list(sse.decode(complete)) if complete else []
                assert not any(isinstance(event, GapEvent) for event in events)
                told = [event for event in events if isinstance(event, NotifyStreamEvent)]
                text = "".join(event.data for event in told)
                if text == whole:
                    (folder / "open").touch()
        return text

    assert await asyncio.wait_for(asyncio.gather(read(), read()), BOUND) == [whole, whole]


@contextmanager
def proxy(servers: list[Shop], folder: Path) -> Generator[str]:
    """Start nginx in front of servers, which takes the next one for each request."""
    with socket.socket() as sock:
        sock.bind(("127.0.0.1", 0))
        port = sock.getsockname()[1]
    upstream = "\n".join(f"server {server.url.removeprefix('http://')};" for server in servers)
    config = folder / "nginx.conf"
    config.write_text(f"""
        daemon off;
        master_process off;
        pid {folder}/nginx.pid;
        error_log {folder}/error.log;
        events {{ worker_connections 1024; }}
        http {{
            access_log off;
            client_body_temp_path {folder}/body;
            proxy_temp_path {folder}/proxy;
            fastcgi_temp_path {folder}/fastcgi;
            uwsgi_temp_path {folder}/uwsgi;
            scgi_temp_path {folder}/scgi;
            upstream shop {{ {upstream} }}
            server {{
                listen 127.0.0.1:{port};
                location / {{
                    proxy_pass http://shop;
                    proxy_http_version 1.1;
                    proxy_set_header Connection "";
                    proxy_set_header Host "localhost";
                    proxy_buffering off;
                    proxy_read_timeout 60s;
                    proxy_next_upstream off;
                }}
            }}
        }}
    """)
    nginx = find("nginx")
    assert nginx is not None
    with subprocess.Popen([nginx, "-c", str(config), "-p", str(folder)]) as process:  # noqa: S603
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()


@pytest.mark.slow
@pytest.mark.external("nginx")
@pytest.mark.requirement("F41")
@pytest.mark.timeout(180)
async def test_a_proxy_without_sticky_sessions_needs_no_rules(place: str, tmp_path: Path) -> None:
    """A hundred runs are decided through the server that the proxy takes."""
    async with shops(place, tmp_path) as servers:
        with proxy(servers, tmp_path) as url:
            async with httpx.AsyncClient(base_url=url, timeout=BOUND) as web:

                async def answers() -> bool:
                    try:
                        return (await web.get("/")).status_code == 200
                    except httpx.TransportError:
                        return False

                async with asyncio.timeout(BOUND):
                    while not await answers():  # noqa: ASYNC110 - nginx does not report it
                        await asyncio.sleep(0.02)
                await decided_through(lambda: web, 100)
                await one_late_reader(lambda: web, tmp_path)
    assert set(lines(tmp_path / "paid").values()) == {1}
    assert lines(tmp_path / "paid").total() == 100
