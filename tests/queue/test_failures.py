"""Workers and callers of a queue that are killed or stopped, and the outcome of their calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

pytest.importorskip("dbos")

from agents_tools import (
    Agent,
    NotifyStreamEvent,
    RunConfig,
    RunItemStreamEvent,
    Runner,
    SQLiteRunStore,
    ToolContext,
    UserError,
    function_tool,
)
from agents_tools.content import ToolCallOutputItem
from agents_tools.errors import EventStoreError
from agents_tools.execution import run_on
from agents_tools.persistence.queue import DBOSBackend, serve_worker
from agents_tools.server.run_manager import RunManager
from agents_tools.testing import ScriptedModel, tool_call
from tests.durable.lite import needs_dbos_on_sqlite
from tests.queue.running import (
    BOUND,
    ROOT,
    Workers,
    call_of,
    lines_in,
    messages_of,
    status_of,
    workers_of,
)
from tests.queue.worker import charge, double, steady
from tests.remote.running import Balancer
from tests.scale import IS_FULL
from tests.waiting import comes

pytestmark = [
    pytest.mark.leaves_behind,  # the threads of DBOS end in their own time
    pytest.mark.timeout(240),
]
SILENCE = 4.0


def queue_of(workers: Workers, **options: Any) -> DBOSBackend:
    """Return the caller's side of the queue."""
    return DBOSBackend(workers.url, silence=SILENCE, **options)


# --- a call that was not begun


@pytest.mark.requirement("F45")
async def test_a_call_whose_worker_dies_before_it_begins_is_taken_by_another_worker(
    workers: Workers, tmp_path: Path
) -> None:
    """Its body has not run, so any call can be given to another worker, idempotent or not."""
    (tmp_path / "go").touch()
    dead = workers.start(dies=True)
    async with queue_of(workers) as queue:
        call = call_of("charge", {"folder": str(tmp_path), "until": str(tmp_path / "go")})
        answer = asyncio.create_task(messages_of(queue, call))
        await asyncio.to_thread(dead.wait, BOUND)
        workers.start()
        found = await asyncio.wait_for(answer, BOUND)
    assert (found[-1].payload["status"], found[-1].payload["output"]) == ("ok", "charged")
    assert len(lines_in(tmp_path / "effects")) == 2  # begin and end, once


@pytest.mark.slow
async def test_the_silence_limit_does_not_count_the_time_in_the_queue(
    workers: Workers, tmp_path: Path
) -> None:
    """A call waits for a free worker longer than the silence limit, and is not given up."""
    worker = workers.start(concurrency=1)
    async with queue_of(workers) as queue:
        go = tmp_path / "go"
        first = call_of("charge", {"folder": str(tmp_path), "until": str(go)})
        answers = [asyncio.create_task(status_of(queue, first))]
        await comes(lambda: lines_in(tmp_path / "effects"))
        second = call_of("double", {"folder": str(tmp_path), "number": 1})
        answers.append(asyncio.create_task(status_of(queue, second)))
        done, _ = await asyncio.wait(answers, timeout=SILENCE + 1)
        assert not done
        go.touch()
        assert await asyncio.wait_for(asyncio.gather(*answers), BOUND) == ["ok", "ok"]
    assert worker.poll() is None


# --- a call that was begun


@pytest.mark.requirement("F45")
async def test_a_call_whose_worker_is_killed_is_lost(workers: Workers, tmp_path: Path) -> None:
    """The body ran once, its outcome is unknown, and the text says so."""
    worker = workers.start()
    workers.start()
    async with queue_of(workers) as queue:
        call = call_of("wait", {"folder": str(tmp_path)})
        answer = asyncio.create_task(messages_of(queue, call))
        await comes(lambda: lines_in(tmp_path / "effects"))
        workers.kill(int(lines_in(tmp_path / "effects")[0]))
        found = await asyncio.wait_for(answer, BOUND)
        assert found[-1].payload["status"] == "lost"
        assert "unknown whether" in found[-1].payload["error"]["message"]
        assert [message.seq for message in found] == list(range(len(found)))
        again = call_of("double", {"folder": str(tmp_path), "number": 2})
        assert await asyncio.wait_for(status_of(queue, again), BOUND) == "ok"
    assert len([line for line in lines_in(tmp_path / "effects") if line.isdigit()]) == 1
    del worker


@pytest.mark.slow
@pytest.mark.requirement("F45")
async def test_an_idempotent_call_is_run_again_by_another_worker(
    workers: Workers, tmp_path: Path
) -> None:
    """The caller sees the new attempt announced, and all its events from the first one on."""
    workers.start()
    workers.start()
    events: list[Any] = []
    async with queue_of(workers) as queue:
        context: ToolContext[Any] = ToolContext(tool_call_id="call-1", emit=events.append)
        tool = run_on(queue, idempotent=True)(steady)
        arguments = json.dumps({"folder": str(tmp_path)})
        answer = asyncio.create_task(tool.call(context, arguments))
        await comes(lambda: any(isinstance(event, NotifyStreamEvent) for event in events))
        workers.kill(int(lines_in(tmp_path / "effects")[0]))
        outcome = await asyncio.wait_for(answer, BOUND)
    assert (outcome.status, outcome.output) == ("ok", "attempt 2")
    found = [event.data for event in events if isinstance(event, NotifyStreamEvent)]
    assert found == ["attempt 1", "attempt 2"]
    assert [event.type for event in events].count("tool_attempt_event") == 1
    assert len(set(lines_in(tmp_path / "effects"))) == 2


@pytest.mark.slow
@pytest.mark.requirement("F45")
async def test_calls_survive_two_of_four_workers(workers: Workers, tmp_path: Path) -> None:
    """200 idempotent calls, two workers killed at random points: each call has one right answer."""
    count = 200 if IS_FULL or workers.url.startswith("postgres") else 60
    chance = random.Random(workers.url)  # noqa: S311 - for a test
    fleet = [workers.start_soon(concurrency=8) for _ in range(4)]
    for worker in fleet:
        workers.wait_until_ready(worker)
    async with queue_of(workers) as queue:

        async def answer(number: int) -> list[Any]:
            call = call_of("double", {"folder": str(tmp_path), "number": number}, idempotent=True)
            found = await messages_of(queue, call)
            return [one.payload.get("output") for one in found if one.kind == "result"]

        answers = [asyncio.create_task(answer(number)) for number in range(count)]
        for worker in fleet[:2]:
            after = len(lines_in(tmp_path / "effects")) + chance.randrange(1, count // 4)
            await comes(lambda after=after: len(lines_in(tmp_path / "effects")) >= after)
            workers.kill(worker.pid)
        found = await asyncio.wait_for(asyncio.gather(*answers), 2 * BOUND)
    assert found == [[str(2 * number)] for number in range(count)]
    runs = Counter(line.split()[0] for line in lines_in(tmp_path / "effects"))
    assert max(runs.values()) <= 3


@pytest.mark.slow
@pytest.mark.requirement("F45")
async def test_workers_are_killed_at_random_points(workers: Workers, tmp_path: Path) -> None:
    """Each killed worker is replaced; every call has one answer, and none that is not true."""
    chance = random.Random(workers.url)  # noqa: S311 - for a test
    count, kills = (200, 20) if IS_FULL else (60, 4)
    effects = tmp_path / "effects"
    fleet = [workers.start_soon(concurrency=4) for _ in range(3)]
    for worker in fleet:
        workers.wait_until_ready(worker)
    async with queue_of(workers, attempts=kills) as queue:

        async def answer(number: int) -> tuple[str, Any]:
            arguments = {"folder": str(tmp_path), "number": number, "seconds": 0.2}
            is_idempotent = number % 3 != 0
            call = call_of("double", arguments, idempotent=is_idempotent)
            results = [one for one in await messages_of(queue, call) if one.kind == "result"]
            assert len(results) == 1
            return results[0].payload["status"], results[0].payload["output"]

        answers = [asyncio.create_task(answer(number)) for number in range(count)]
        for _ in range(kills):
            after = len(lines_in(effects)) + chance.randrange(1, max(2, count // (2 * kills)))
            await comes(
                lambda after=after: (
                    len(lines_in(effects)) >= after or all(task.done() for task in answers)
                )
            )
            await asyncio.sleep(chance.random() * 0.1)  # anywhere in the life of a call
            workers.kill(fleet.pop(chance.randrange(len(fleet))).pid)
            fleet.append(workers.start_soon(concurrency=4))
        found = await asyncio.wait_for(asyncio.gather(*answers), 3 * BOUND)
    runs = Counter(int(line.split()[0]) for line in lines_in(effects))
    for number, (status, output) in enumerate(found):
        if number % 3:
            assert (status, output) == ("ok", str(2 * number))
        else:
            assert runs[number] <= 1
            assert status == "lost" or (status, output) == ("ok", str(2 * number))


# --- a worker that is stopped


@pytest.mark.slow
async def test_a_worker_finishes_its_calls_after_sigterm(workers: Workers, tmp_path: Path) -> None:
    """A new release is rolled out without losing a call, and the old worker takes no new one."""
    worker = workers.start(concurrency=1)
    async with queue_of(workers) as queue:
        go = tmp_path / "go"
        call = call_of("charge", {"folder": str(tmp_path), "until": str(go)})
        answer = asyncio.create_task(status_of(queue, call))
        await comes(lambda: lines_in(tmp_path / "effects"))
        worker.send_signal(signal.SIGTERM)
        later = call_of("double", {"folder": str(tmp_path), "number": 1})
        waiting = asyncio.create_task(status_of(queue, later))
        done, _ = await asyncio.wait([answer, waiting], timeout=1)
        assert not done
        go.touch()
        assert await asyncio.wait_for(answer, BOUND) == "ok"
        assert await asyncio.to_thread(worker.wait, BOUND) == 0
        workers.start()
        assert await asyncio.wait_for(waiting, BOUND) == "ok"


@pytest.mark.slow
async def test_a_call_that_outlasts_the_drain_is_handed_over(
    workers: Workers, tmp_path: Path
) -> None:
    """The other worker runs an idempotent call at once, and reports any other call as lost."""
    worker = workers.start(drain=0.5)
    async with queue_of(workers) as queue:
        folder = {"folder": str(tmp_path)}
        first = asyncio.create_task(messages_of(queue, call_of("steady", folder, idempotent=True)))
        other = asyncio.create_task(messages_of(queue, call_of("wait", folder)))
        await comes(lambda: len(lines_in(tmp_path / "effects")) == 2)
        workers.start()
        worker.send_signal(signal.SIGTERM)
        steady_messages = await asyncio.wait_for(first, BOUND)
        wait_messages = await asyncio.wait_for(other, BOUND)
        assert await asyncio.to_thread(worker.wait, BOUND) == 0
    assert steady_messages[-1].payload["output"] == "attempt 2"
    assert wait_messages[-1].payload["status"] == "lost"
    assert "cancelled" in lines_in(tmp_path / "effects")


# --- a caller that is killed


@pytest.mark.slow
@pytest.mark.parametrize("still_runs", [False, True])
async def test_a_run_that_continues_gets_the_result_of_the_call_that_it_began(
    workers: Workers, tmp_path: Path, *, still_runs: bool
) -> None:
    """The result is in the database, or will be: the call is not lost, and does not run again."""
    workers.start()
    command = [sys.executable, "-m", "tests.queue.agent", workers.url, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as agent:  # noqa: S603, ASYNC220 - our own program
        await comes(lambda: lines_in(tmp_path / "effects"))
        agent.kill()
    if not still_runs:
        (tmp_path / "go").touch()
        await comes(lambda: len(lines_in(tmp_path / "effects")) == 2)
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as again:  # noqa: S603, ASYNC220
        (tmp_path / "go").touch()
        output, _ = await asyncio.to_thread(again.communicate, timeout=BOUND)
    assert json.loads(output) == [["ok", "charged"]]
    assert len(lines_in(tmp_path / "effects")) == 2  # begin and end, once


@pytest.mark.slow
async def test_a_server_that_stops_leaves_its_queued_calls_to_the_next_one(
    workers: Workers, tmp_path: Path
) -> None:
    """The next server resumes the run and gets the result of the call, which runs once."""
    workers.start()
    folder = {"folder": str(tmp_path), "until": str(tmp_path / "go")}
    config = RunConfig(resume_orphans=True)
    async with SQLiteRunStore(tmp_path / "runs.db") as store, queue_of(workers) as queue:

        def agent(*answers: Any) -> Agent[Any, Any]:
            return Agent("Clerk", tools=[run_on(queue)(charge)], model=ScriptedModel([*answers]))

        first = RunManager(store=store, run_config=config)
        first.start(agent(tool_call("charge", **folder)), "Charge it.", run_id="order")
        await comes(lambda: lines_in(tmp_path / "effects"))
        await asyncio.wait_for(first.aclose(), BOUND)
        second = RunManager(store=store, run_config=config)
        second.offer(agent("Done."))
        await second.restore()
        (tmp_path / "go").touch()
        run = await second.find("order")
        assert run is not None
        await asyncio.wait_for(run.wait(), BOUND)
        outputs = [
            event.item
            async for event in run.events(-1)
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_output"
        ]
        await second.aclose()
    assert (run.status, run.output) == ("ok", "Done.")
    assert [item["output"] for item in outputs] == ["charged"]
    assert len(lines_in(tmp_path / "effects")) == 2  # begin and end, once


@pytest.mark.slow
async def test_a_run_whose_lease_was_taken_does_not_cancel_its_queued_calls(
    workers: Workers, tmp_path: Path
) -> None:
    """The process that has the lease now waits for the same calls."""
    workers.start()
    gate = asyncio.Event()

    @function_tool
    async def local() -> str:
        """Wait in this process."""
        await gate.wait()
        return "here"

    path = tmp_path / "runs.db"
    async with SQLiteRunStore(path) as store, queue_of(workers) as queue:
        tools = [run_on(queue)(charge), local]
        folder = {"folder": str(tmp_path), "until": str(tmp_path / "go")}
        requests = [tool_call("charge", **folder), tool_call("local")]
        agent = Agent("Clerk", tools=tools, model=ScriptedModel([requests]))
        config = RunConfig(store=store)
        run = Runner.run_streamed(agent, "Charge it.", run_id="order", run_config=config)
        await comes(lambda: lines_in(tmp_path / "effects"))
        with closing(sqlite3.connect(path)) as other:  # as after the end of the lease
            other.execute("UPDATE log SET epoch = epoch + 1, holder = NULL, expires = NULL")
            other.commit()
        gate.set()
        async for event in run.stream_events():
            if isinstance(event, RunItemStreamEvent) and event.name == "tool_output":
                run.cancel()
                break
        with contextlib.suppress(EventStoreError):
            async for _ in run.stream_events():
                pass
    async with SQLiteRunStore(path) as store, queue_of(workers) as queue:
        agent = Agent("Clerk", tools=[run_on(queue)(charge), local], model=ScriptedModel(["Done."]))
        (tmp_path / "go").touch()
        result = await asyncio.wait_for(Runner.resume(agent, "order", store=store), BOUND)
    outputs = [item.output for item in result.new_items if isinstance(item, ToolCallOutputItem)]
    assert outputs[0] == "charged"


@pytest.mark.slow
async def test_a_call_that_its_queue_does_not_know_is_lost(
    workers: Workers, tmp_path: Path
) -> None:
    """It may have run: the rows of the queue can have been deleted."""
    workers.start()
    command = [sys.executable, "-m", "tests.queue.agent", workers.url, str(tmp_path)]
    with subprocess.Popen(command, cwd=ROOT) as agent:  # noqa: S603, ASYNC220 - our own program
        await comes(lambda: lines_in(tmp_path / "effects"))
        agent.kill()
    command[-2] = f"sqlite:///{tmp_path / 'other.db'}"
    output = await asyncio.to_thread(subprocess.check_output, command, cwd=ROOT, timeout=BOUND)
    assert [status for status, _ in json.loads(output)] == ["lost"]


@pytest.mark.slow
async def test_a_queue_knows_the_calls_of_other_processes(workers: Workers, tmp_path: Path) -> None:
    """The answer of a call is stored under its id, attempt, tool and arguments."""
    workers.start()
    call = call_of("double", {"folder": str(tmp_path), "number": 4})
    async with queue_of(workers) as queue:
        assert not await queue.has_call(call)
        first = await asyncio.wait_for(messages_of(queue, call), BOUND)
    async with queue_of(workers) as queue:
        assert await queue.has_call(call)
        assert not await queue.has_call(call.again(2))
        assert await asyncio.wait_for(messages_of(queue, call), BOUND) == first
    assert len(lines_in(tmp_path / "effects")) == 1


# --- a worker that hangs, a connection that is cut


@pytest.mark.slow
async def test_a_worker_that_was_given_up_cannot_answer_any_more(
    workers: Workers, tmp_path: Path
) -> None:
    """It is stopped, not dead: when it continues, its messages must not mix with the new ones."""
    stopped = workers.start()
    async with queue_of(workers) as queue:
        go = tmp_path / "go"
        arguments = {"folder": str(tmp_path), "until": str(go)}
        call = call_of("charge", arguments, idempotent=True)
        answer = asyncio.create_task(messages_of(queue, call))
        await comes(lambda: lines_in(tmp_path / "effects"))
        stopped.send_signal(signal.SIGSTOP)
        workers.start()
        await comes(lambda: len(lines_in(tmp_path / "effects")) == 2)
        stopped.send_signal(signal.SIGCONT)
        done, _ = await asyncio.wait([answer], timeout=1)
        assert not done
        go.touch()
        found = await asyncio.wait_for(answer, BOUND)
        again = await asyncio.wait_for(messages_of(queue, call), BOUND)
    assert [message.payload["output"] for message in found if message.kind == "result"] == [
        "charged"
    ]
    assert next(message.seq for message in found if message.attempt == 2) == 0
    assert again == found


@needs_dbos_on_sqlite
@pytest.mark.slow
async def test_messages_that_are_stored_twice_are_received_once(tmp_path: Path) -> None:
    """DBOS repeats a write whose connection was lost before it was confirmed."""
    file, go = tmp_path / "queue.db", tmp_path / "go"
    with workers_of(f"sqlite:///{file}") as workers:
        await asyncio.to_thread(workers.start)
        async with queue_of(workers) as queue:
            call = call_of("charge", {"folder": str(tmp_path), "until": str(go)})
            answer = asyncio.create_task(messages_of(queue, call))
            await comes(lambda: lines_in(tmp_path / "effects"))
            with closing(sqlite3.connect(file, timeout=BOUND)) as database, database:
                copied = database.execute(
                    "insert into streams (workflow_uuid, key, value, offset, function_id,"
                    " serialization) select workflow_uuid, key, value, offset + 1, function_id,"
                    " serialization from streams order by offset desc limit 1"
                )
                assert copied.rowcount == 1
            go.touch()
            found = await asyncio.wait_for(answer, BOUND)
    assert found[-1].payload["output"] == "charged"
    assert [message.seq for message in found] == list(range(len(found)))


@pytest.mark.external("postgres")
async def test_calls_survive_a_cut_of_all_connections_to_the_database(
    server: str, tmp_path: Path
) -> None:
    """Both sides connect again, and no event is lost."""
    place = urlsplit(server)
    async with Balancer(place.port or 0) as line:
        port = urlsplit(line.url).port
        url = place._replace(netloc=f"{place.username}@127.0.0.1:{port}").geturl()
        with workers_of(url) as workers:
            await asyncio.to_thread(workers.start)
            async with DBOSBackend(url, silence=20.0) as queue:
                go = tmp_path / "go"
                call = call_of("charge", {"folder": str(tmp_path), "until": str(go)})
                answer = asyncio.create_task(messages_of(queue, call))
                await comes(lambda: lines_in(tmp_path / "effects"))
                line.cut()
                go.touch()
                found = await asyncio.wait_for(answer, BOUND)
    assert found[-1].payload["output"] == "charged"
    assert [message.seq for message in found] == list(range(len(found)))


# --- callers


@pytest.mark.requirement("F44")
def test_a_queue_serves_several_event_loops(workers: Workers, tmp_path: Path) -> None:
    """Programs call tools from `asyncio.run`, from threads and from synchronous code."""
    workers.start()
    queue = queue_of(workers)
    tool = run_on(queue)(double)
    folder = str(tmp_path)

    async def twice() -> list[Any]:
        there = await asyncio.to_thread(tool.invoke_sync, folder=folder, number=1)
        return [there, await tool.invoke(folder=folder, number=2)]

    assert asyncio.run(twice()) == [2, 4]
    assert tool.invoke_sync(folder=folder, number=3) == 6
    assert asyncio.run(twice()) == [2, 4]
    asyncio.run(queue.aclose())


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"silence": 1.0}, "silence= expects 4 seconds or more, got 1.0"),
        ({"attempts": 0}, "attempts= expects a whole number from 1 on, got 0"),
    ],
)
def test_invalid_options_are_rejected(options: dict[str, Any], text: str) -> None:
    """The limits cannot be checked later than here."""
    with pytest.raises(UserError, match=re.escape(text)):
        DBOSBackend("sqlite:///queue.db", **options)


@pytest.mark.parametrize("options", [{"concurrency": 0}, {"drain": -1.0}])
async def test_invalid_options_of_a_worker_are_rejected(options: dict[str, Any]) -> None:
    """A worker with such options could not run or not end."""
    with pytest.raises(UserError, match=f"{next(iter(options))}= is invalid"):
        await serve_worker([], "sqlite:///queue.db", **options)
