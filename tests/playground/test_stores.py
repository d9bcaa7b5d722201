"""The playground on the run store of another program, which is running."""

from __future__ import annotations

import asyncio
import contextlib
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.persistence import open_run_store
from tests.durable.postgres import postgres, why_not
from tests.playground.client import playing
from tests.redis_server import RedisServer

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator

pytestmark = pytest.mark.timeout(90)
PROGRAM = """
import asyncio, sys
from pathlib import Path
from agents_tools import Agent, RunConfig, Runner, ToolProgressEvent, streaming_tool
from agents_tools.persistence import open_run_store
from agents_tools.testing import ScriptedModel, tool_call

GATE = Path(sys.argv[2])


@streaming_tool
async def work(number: int):
    \"\"\"Work.\"\"\"
    yield ToolProgressEvent(1, total=number, message="begun")
    while not GATE.exists():
        await asyncio.sleep(0.01)
    yield "finished"


async def main():
    agent = Agent(
        name="worker", tools=[work], model=ScriptedModel([tool_call("work", number=3), "done"])
    )
    async with open_run_store(sys.argv[1]) as store:
        config = RunConfig(store=store)
        result = await Runner.run(agent, "go on", run_config=config, run_id="theirs", session="s")
        assert result.final_output == "done"


asyncio.run(main())
"""


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.external("postgres")),
        pytest.param("redis", marks=pytest.mark.external("redis-server")),
    ]
)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[str]:
    """Return the path or address of a store that is available."""
    with contextlib.ExitStack() as stack:
        if request.param == "postgres":
            if reason := why_not():
                pytest.skip(reason)
            yield stack.enter_context(postgres())
        elif request.param == "redis":
            server = RedisServer()
            stack.callback(server.remove)
            yield server.url
        else:
            yield str(tmp_path / "runs.db")


@contextlib.contextmanager
def program(place: str, gate: Path) -> Generator[subprocess.Popen[bytes]]:
    """Run the program that owns the store."""
    words = [sys.executable, "-c", PROGRAM, place, str(gate)]
    root = Path(__file__).parents[2]
    with subprocess.Popen(words, cwd=root) as process:  # noqa: S603 - our own
        try:
            yield process
        finally:
            gate.touch()


async def listed(client: Any, status: str) -> dict[str, Any]:
    """Wait until the list of runs has the run with a status."""
    async with asyncio.timeout(30):
        while True:
            found = (await client.get("/api/runs"))["runs"]
            if found and found[0]["status"] == status:
                return found[0]
            await asyncio.sleep(0.05)


async def test_the_runs_of_a_running_program_are_followed(place: str, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with program(place, gate) as process:
        async with playing(store=open_run_store(place), keep_runs=None, watch=False) as client:
            run = await listed(client, "running")
            assert (run["id"], run["name"], run["input"]) == ("theirs", "worker", "go on")
            assert run["session"] == "s"
            seen: list[dict[str, Any]] = []
            async with client.stream("/api/runs/theirs/events?after=-1") as frames:
                async for frame in frames:
                    seen.append(frame["data"])
                    if frame["data"]["type"] == "tool_progress_event":
                        gate.touch()
            kinds = [event["type"] for event in seen]
            assert "tool_progress_event" in kinds
            assert kinds[-1] == "run_finished_event"
            run = await listed(client, "ok")
            assert run["summary"] == "done"
            requests = (await client.get("/api/runs/theirs/requests"))["requests"]
            assert [(one["turn"], one["prompt"]) for one in requests] == [(1, None), (2, None)]
            info = await client.get("/api/info")
            assert info["store"]
            assert (await client.ask("DELETE", "/api/runs")).status == 409
        assert process.wait(30) == 0


async def test_a_run_of_another_program_is_cancelled(tmp_path: Path) -> None:
    place, gate = str(tmp_path / "runs.db"), tmp_path / "gate"
    with program(place, gate) as process:
        async with playing(store=open_run_store(place), keep_runs=None, watch=False) as client:
            await listed(client, "running")
            await client.post("/api/runs/theirs/cancel", {})
            await listed(client, "cancelled")
        assert process.wait(30) != 0


async def test_a_page_of_many_runs_reads_only_its_own(tmp_path: Path) -> None:
    """A store of another program can have thousands of runs."""
    from agents_tools import Agent, RunConfig, Runner
    from agents_tools.testing import ScriptedModel

    store = open_run_store(tmp_path / "runs.db")
    config = RunConfig(store=store)
    for number in range(30):
        agent = Agent(name="one", model=ScriptedModel(["done"]))
        await Runner.run(agent, "go", run_config=config, run_id=f"run-{number}")
    async with playing(store=store, keep_runs=None, watch=False) as client:
        read: list[str] = []
        original = store.log

        def log(run_id: str, /) -> Any:
            read.append(run_id)
            return original(run_id)

        store.log = log  # type: ignore[method-assign]
        first = await client.get("/api/runs?limit=10")
        assert [run["id"] for run in first["runs"]] == [f"run-{n}" for n in range(29, 19, -1)]
        assert set(read) <= {f"run-{number}" for number in range(19, 30)}
        second = await client.get("/api/runs?limit=10&before=run-20")
        assert [run["id"] for run in second["runs"]] == [f"run-{n}" for n in range(19, 9, -1)]
        assert second["more"] is True
        read.clear()
        await client.get("/api/runs?limit=10")
        assert read == []
