"""Failures of tools and workers, and the results of their calls."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import Agent, Runner, ToolContext, policies
from agents_tools.concurrency.fair_lock import FairLock, LockTicket
from agents_tools.execution import CallEnvelope, LocalBackend, ProcessBackend, ToolBackend, run_on
from agents_tools.execution.framing import MAX_FRAME, FrameReader, encode
from agents_tools.policies import Call, Policy
from agents_tools.testing import ScriptedModel, tool_call
from tests import hostile_tools as hostile, isolated_tools as tools
from tests.test_backend import call_with_events, result_event
from tests.test_isolate import is_gone, pid_in
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.events import Event
    from agents_tools.execution import CallEvent

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX worker processes")

HOSTILE = "tests.hostile_tools"
ADD = '{"a": 1, "b": 2}'


@pytest.fixture(scope="module")
def backend() -> Iterator[ProcessBackend]:
    """One worker for all tests; each test must leave a working backend."""
    made = ProcessBackend([HOSTILE, tools.ALL], workers=1)
    yield made
    asyncio.run(made.aclose())


async def submitted(backend: ToolBackend, envelope: CallEnvelope) -> list[CallEvent]:
    async with asyncio.timeout(30), aclosing(backend.submit(envelope)) as events:
        return [event async for event in events]


def waiting(folder: Path, **more: Any) -> CallEnvelope:
    arguments = json.dumps({"folder": str(folder)})
    return CallEnvelope(call_id="w", tool="wait", arguments=arguments, **more)


# --- what a tool does


@pytest.mark.requirement("F12")
@pytest.mark.parametrize(
    ("name", "status", "text"),
    [
        ("cancel_itself", "tool_error", "the tool cancelled itself"),
        ("cancel_everything", "lost", "died"),
        ("leave_politely", "tool_error", "SystemExit"),
        ("close_all_descriptors", "lost", "died"),
    ],
)
async def test_a_call_gets_a_result_whatever_its_tool_does_to_the_process(
    name: str, status: str, text: str, backend: ProcessBackend
) -> None:
    """The caller does not wait forever, and the next call has a worker."""
    async with asyncio.timeout(30):
        outcome = await run_on(backend)(getattr(hostile, name)).call(None, "{}")
        assert (outcome.status, text in str(outcome.output)) == (status, True), outcome.output
        assert await run_on(backend)(tools.add).invoke(a=1, b=2) == 3


async def test_a_result_that_cannot_be_serialized_is_reported_as_a_failure() -> None:
    """Masking secrets in numbers or the code of the values themselves can fail."""
    for backend in (LocalBackend([hostile.secret_number]), ProcessBackend(HOSTILE, workers=1)):
        try:
            outcome = await run_on(backend)(hostile.secret_number).call(None, "{}")
            assert outcome.value == {"number": "***", "list": ["a ***", 7]}
        finally:
            await backend.aclose()
    local = run_on(LocalBackend([hostile.broken_value]))(hostile.broken_value)
    outcome = await local.call(None, "{}")
    assert outcome.status in {"ok", "tool_error"}


@pytest.mark.requirement("F12")
async def test_a_fork_of_a_worker_does_not_keep_its_connection_open(
    backend: ProcessBackend, tmp_path: Path
) -> None:
    """A crash is noticed at once although a fork of the process survives; the fork ends as well."""
    tool = run_on(backend)(hostile.fork_and_crash)
    async with asyncio.timeout(30):
        outcome = await tool.call(None, json.dumps({"folder": str(tmp_path)}))
    assert (outcome.status, "exit code 3" in str(outcome.output)) == ("lost", True)
    child = await pid_in(tmp_path, "child")
    await comes(lambda: is_gone(child))


@pytest.mark.requirement("S31")
async def test_a_worker_that_sends_an_invalid_message_is_replaced(backend: ProcessBackend) -> None:
    """Messages of a worker are validated; none can break its owner."""
    tool = run_on(backend)(hostile.say_to_owner)
    async with asyncio.timeout(50):
        for what in hostile.MESSAGES:
            outcome = await tool.call(None, json.dumps({"what": what}))
            assert outcome.status == "lost", (what, outcome.output)
        assert await run_on(backend)(tools.add).invoke(a=1, b=2) == 3


async def test_arguments_that_are_too_large_to_send_are_refused(
    backend: ProcessBackend,
) -> None:
    """Nothing is run, and the worker survives."""
    before = (await run_on(backend)(tools.whoami).invoke())["pid"]
    large = CallEnvelope(call_id="c", tool="add", arguments=" " * (MAX_FRAME + 1))
    result = (await submitted(backend, large))[-1].payload
    assert (result["status"], "too large" in result["output"]) == ("invalid_args", True)
    assert (await run_on(backend)(tools.whoami).invoke())["pid"] == before


@pytest.mark.requirement("F5")
async def test_a_worker_that_does_not_read_cannot_block_a_call(backend: ProcessBackend) -> None:
    """A large call to a stopped process ends at its deadline or when cancelled."""
    pid = (await run_on(backend)(tools.whoami).invoke())["pid"]
    os.kill(pid, signal.SIGSTOP)
    large = CallEnvelope(
        call_id="c", tool="add", arguments=" " * (8 << 20), deadline=time.time() + 0.2
    )
    assert (await submitted(backend, large))[-1].payload["status"] == "timeout"
    assert await run_on(backend)(tools.add).invoke(a=1, b=2) == 3


# --- ids, event loops and queues


@pytest.mark.requirement("F41")
@pytest.mark.parametrize("kind", ["local", "processes"])
async def test_calls_with_the_same_id_do_not_interfere(kind: str) -> None:
    """Attempts can run at once; a cancel by id applies to all of them."""
    made: ToolBackend = LocalBackend(tools.ALL) if kind == "local" else ProcessBackend(tools.ALL)
    try:
        call = CallEnvelope(call_id="c", tool="add", arguments=ADD)
        calls = [call, call.again(2), replace(call, arguments='{"a": 3, "b": 4}')]
        ended = await asyncio.gather(*(submitted(made, call) for call in calls))
        assert [events[-1].payload["status"] for events in ended] == ["ok"] * 3
        assert (await made.health()).busy == 0
        assert await made.cancel("c") is False
    finally:
        await made.aclose()


@pytest.mark.requirement("F8")
async def test_closing_an_event_loop_releases_its_worker(tmp_path: Path) -> None:
    """A loop closed during a call must not keep a worker, and the shutdown is clean."""
    async with ProcessBackend(tools.ALL, workers=1) as backend:

        def leave() -> None:
            loop = asyncio.new_event_loop()
            events = backend.submit(waiting(tmp_path))

            async def watch() -> None:
                async for said in events:
                    if said.kind == "started":
                        break
                await pid_in(tmp_path)

            loop.run_until_complete(watch())
            loop.close()
            open_streams.append(events)

        open_streams: list[Any] = []
        await asyncio.to_thread(leave)
        async with asyncio.timeout(30):
            assert await run_on(backend)(tools.add).invoke(a=1, b=2) == 3
            assert await backend.cancel("w") is True


async def test_a_queue_ticket_can_be_reused() -> None:
    """Neither its previous result nor its previous wake-up counts."""
    line: FairLock[str] = FairLock()
    ticket: LockTicket[str] = LockTicket()
    for thing in ("first", "second"):
        taken = asyncio.create_task(line.take(ticket))
        await comes(lambda: line.waiting)
        assert not taken.done()
        line.put(thing)
        assert await taken == thing


@pytest.mark.requirement("F12")
async def test_all_waiting_calls_fail_if_no_worker_starts() -> None:
    """Not only the call that noticed it."""
    async with asyncio.timeout(30), ProcessBackend("tests.no_such_module", workers=2) as backend:
        tool = run_on(backend)(tools.add)
        outcomes = await asyncio.gather(*(tool.call(None, ADD) for _ in range(7)))
    assert {outcome.status for outcome in outcomes} == {"tool_error"}
    assert all("No module named" in str(outcome.output) for outcome in outcomes)


@pytest.mark.slow
async def test_a_process_that_cannot_be_started_fails_all_waiting_calls(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys, "executable", "/no/such/python")
    async with asyncio.timeout(30), ProcessBackend(tools.ALL, workers=2) as backend:
        tool = run_on(backend)(tools.add)
        outcomes = await asyncio.gather(*(tool.call(None, ADD) for _ in range(5)))
        assert all("could not be started" in str(one.output) for one in outcomes)
        monkeypatch.undo()
        assert await tool.invoke(a=1, b=2) == 3


async def test_without_a_new_thread_the_work_is_done_synchronously(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    backend = ProcessBackend(tools.ALL, workers=1)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        backend.start()
        assert (await backend.health()).workers == 1
    async with asyncio.timeout(30):
        await backend.aclose()


@pytest.mark.requirement("F5")
async def test_calls_in_a_long_queue_end_at_their_deadlines(tmp_path: Path) -> None:
    """1,000 calls for two busy workers; those with time left run afterwards."""
    async with ProcessBackend(tools.ALL, workers=2, max_waiting=2_000) as backend:
        holds = [
            asyncio.create_task(submitted(backend, waiting(tmp_path, attempt=number)))
            for number in (1, 2)
        ]
        await pid_in(tmp_path)
        await comes(lambda: backend._pool.waiting == 0)
        late, soon = time.time() + 60, time.time() + 0.5
        calls = [
            CallEnvelope(
                call_id=str(n), tool="add", arguments=ADD, deadline=soon if n % 2 else late
            )
            for n in range(1_000)
        ]
        running = [asyncio.create_task(submitted(backend, call)) for call in calls]
        cancelled = running[::4]
        await comes(lambda: backend._pool.waiting > 0)
        for task in cancelled:
            task.cancel()
        await asyncio.gather(*running[1::2])
        assert await backend.cancel("w")
        done = await asyncio.gather(*running, *holds, return_exceptions=True)
        health = await backend.health()
    ends = [one if isinstance(one, BaseException) else one[-1].payload["status"] for one in done]
    assert ends[1:1000:2] == ["timeout"] * 500
    assert ends[2:1000:4] == ["ok"] * 250
    assert all(isinstance(one, asyncio.CancelledError) for one in ends[0:1000:4])
    assert ends[1000:] == ["cancelled"] * 2
    assert (health.busy, health.waiting) == (0, 0)


# --- with other policies


async def test_isolate_works_with_all_other_policies(
    backend: ProcessBackend, tmp_path: Path
) -> None:
    """They run in this process: each attempt, cached result and approval belongs to it."""
    log = tmp_path / "log"
    arguments = json.dumps({"log": str(log)})
    moved = run_on(backend)(hostile.try_again)
    emitted: list[Event] = []
    tool = policies.retry(5, backoff=0, on=ConnectionError)(policies.timeout(20)(moved))
    outcome = await tool.call(ToolContext(tool_call_id="c", emit=emitted.append), arguments)
    assert outcome.value == "attempt 3"
    said = [one for one in emitted if one.type == "notify_stream_event" and len(one.path) == 1]
    assert [getattr(one, "data", "") for one in said] == ["attempt 1", "attempt 2", "attempt 3"]
    log.unlink()
    cached = policies.limit(concurrent=1)(
        policies.cache(shared=True)(run_on(backend)(hostile.note))
    )
    assert [await cached.invoke(log=str(log)) for _ in range(2)] == [1, 1]
    asked = policies.needs_approval()(run_on(backend)(hostile.note))
    assert (await asked.call(None, arguments)).status == "denied"
    assert await asyncio.to_thread(log.read_text) == "ran\n"


@pytest.mark.requirement("F41")
async def test_a_custom_policy_can_run_the_body_again(tmp_path: Path) -> None:
    """That is another attempt, not a duplicate to answer from the ledger."""

    class Persistent(Policy):
        async def around(self, call: Call, call_next: Any) -> Any:
            for _ in range(2):
                with contextlib.suppress(ConnectionError):
                    return await call_next(call)
            return await call_next(call)

    tool = Persistent()(run_on(LocalBackend([tools.fail]))(tools.fail))
    for again in (tool, policies.retry(2, backoff=0, on=ConnectionError)(tool)):
        log = tmp_path / again.name / str(id(again))
        log.parent.mkdir(exist_ok=True)
        emitted: list[Event] = []
        arguments = json.dumps({"message": "no", "log": str(log)})
        outcome = await again.call(ToolContext(emit=emitted.append), arguments)
        assert outcome.value == "third time lucky"
        assert [one.type for one in emitted] == ["tool_stream_start_event", "tool_stream_end_event"]


async def test_agents_and_nested_tools_use_workers(backend: ProcessBackend) -> None:
    """A worker can have a worker of its own."""
    model = ScriptedModel([tool_call("add", a=1, b=2), "3"])
    agent = Agent("a", tools=[run_on(backend)(tools.add)], model=model)
    assert (await Runner.run(agent, "go")).final_output == "3"
    inner = await run_on(backend)(hostile.nested_isolation).invoke()
    outer = await run_on(backend)(tools.whoami).invoke()
    assert inner["parent"] == outer["pid"]


@pytest.mark.requirement("F7")
async def test_a_nested_worker_ends_with_its_parent(
    backend: ProcessBackend, tmp_path: Path
) -> None:
    """Even if a blocked interpreter prevents it from noticing the closed connection."""
    tool = policies.timeout(3.0)(run_on(backend)(hostile.nested_hang))
    call = asyncio.create_task(tool.call(None, json.dumps({"folder": str(tmp_path)})))
    inner = await pid_in(tmp_path)
    outer = int(_stat_of(inner)[1])
    os.kill(outer, signal.SIGKILL)
    assert (await call).status == "lost"
    await comes(lambda: is_gone(inner))


def _stat_of(pid: int) -> list[str]:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


NESTED = """
import os
from agents_tools import function_tool
from agents_tools.policies import isolate

@isolate()
@function_tool
def inner() -> int:
    return os.getppid()

@isolate()
@function_tool
async def outer() -> bool:
    return await inner.invoke() == os.getpid()

if __name__ == "__main__":
    print(outer.invoke_sync())
"""


@pytest.mark.slow
def test_a_program_can_isolate_tools_that_isolated_tools_call(tmp_path: Path) -> None:
    path = tmp_path / "program.py"
    path.write_text(NESTED)
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-W", "always", path],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
        cwd=Path.cwd(),
    )
    assert (done.stdout, done.stderr) == ("True\n", "")


# --- messages


def test_frames_yield_only_objects() -> None:
    for bad in (b"[1, 2]", b"7", b"null", b"no JSON", b"\xff", b"[" * 100_000):
        frames = FrameReader()
        frames.feed(encode({"a": 1})[:3])
        assert frames.next() is None
        frames.feed(encode({"a": 1})[3:] + len(bad).to_bytes(4, "big") + bad)
        assert frames.next() == {"a": 1}
        for _ in range(2):
            with pytest.raises(ValueError, match=r"."):
                frames.next()


@pytest.mark.requirement("S31")
@pytest.mark.parametrize("what", hostile.RESULTS)
async def test_an_invalid_result_is_a_lost_call(what: str) -> None:
    """With any backend."""
    outcome, _ = await call_with_events(result_event(0, **hostile.RESULTS[what]))
    assert outcome.status == "lost"


# --- modules that do something when they are imported


@pytest.mark.requirement("F12")
@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("raises", "UnreadableError"),
        ("leaves", "SystemExit: bye"),
        ("dies", "exit code 7"),
        ("interrupts", "KeyboardInterrupt"),
        ("closes", "it died while it imported its tools"),
        ("prints", "3"),
        ("reads", "3"),
        ("moves", "3"),
        ("goes on", "3"),
    ],
)
async def test_a_module_with_import_side_effects_is_handled(what: str, text: str) -> None:
    """A failure that prevents the worker from starting is reported; other effects do no harm."""
    options: dict[str, Any] = {"workers": 1, "environment": {"IMPORT_FAULT": what}}
    async with asyncio.timeout(30), ProcessBackend("tests.import_faults", **options) as backend:
        outcome = await run_on(backend)(tools.add).call(None, ADD)
    assert outcome.status == ("ok" if text == "3" else "tool_error")
    assert text in str(outcome.output)


HELD = """
import os, sys, time
from pathlib import Path
from agents_tools.execution import ProcessBackend

folder = Path(sys.argv[1])
if __name__ == "__main__":
    backend = ProcessBackend("held", environment={"FOLDER": str(folder)}, workers=1)
    backend.start()
    sys.stdin.readline()
else:
    (Path(os.environ["FOLDER"]) / "pid").write_text(str(os.getpid()))
    time.sleep(600)
"""


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("how", ["it ends", "kill -9"])
async def test_a_worker_that_never_starts_ends_with_its_program(how: str, tmp_path: Path) -> None:
    """It does not read the connection whose end would tell it to exit."""
    held = HELD.replace("sys.argv[1]", repr(str(tmp_path)))
    (tmp_path / "held.py").write_text(held)
    with subprocess.Popen(  # noqa: ASYNC220, S603 - this interpreter
        [sys.executable, tmp_path / "held.py"], stdin=-1, cwd=Path.cwd()
    ) as program:
        worker = await pid_in(tmp_path)
        if how == "it ends":
            program.communicate(b"\n", timeout=50)
        else:
            program.kill()
    await comes(lambda: is_gone(worker))
