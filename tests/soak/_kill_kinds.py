"""Programs that are killed at random moments, and what has to hold after it."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Generator
from pathlib import Path
from random import Random
from typing import Any

from agents_tools.execution import ProcessBackend, run_on
from agents_tools.mcp import MCPToolManager
from agents_tools.persistence import SQLiteEventStore
from tests import isolated_tools, test_store_faults as stores
from tests.durable import kills
from tests.durable.victim import store_of
from tests.remote.running import ServerProcess, status_of, tools_of
from tests.waiting import comes

__all__ = ["KILLS", "Kill", "KilledError"]

Kill = Callable[[Random], int]
"""Kills some programs, and gives how many."""

_ROOT = Path(__file__).parents[2]
_WITHIN = 30.0
_SHELL = "tests.soak._kill_shell"
_SIGNALS = (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
_SERVER: dict[str, Any] = {
    "command": sys.executable,
    "args": [str(_ROOT / "tests" / "mcp" / "served.py"), "stdio"],
    "cwd": str(_ROOT),
}


class KilledError(AssertionError):
    """Something does not hold after a program was killed."""


def _hold(holds: object, what: str) -> None:
    if not holds:
        raise KilledError(what)


def _until(condition: Callable[[], object], what: str) -> None:
    """Wait, within a bound, until something is so in another process."""
    latest = time.monotonic() + _WITHIN
    while not condition():
        _hold(time.monotonic() < latest, what)
        time.sleep(0.005)


@contextlib.contextmanager
def _folder() -> Generator[Path]:
    with tempfile.TemporaryDirectory(prefix="agents-tools-kills-") as folder:
        yield Path(folder)


def _is_there(pid: int) -> bool:
    try:
        text = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] not in {"Z", "X"}


# --- writers of events


def writer_of_events(chance: Random) -> int:
    """Kill the writer of a store; each acknowledged event is stored, and none twice."""
    writers = stores.KilledWriters()
    try:
        with _folder() as folder:
            for turn in range(3):
                path = str(folder / "events.db")
                pid = writers.start("write", path, f"{chance.random()}")
                acks = [writers.output.readline() for _ in range(chance.randrange(1, 15))]
                time.sleep(chance.random() * 0.01)
                os.kill(pid, chance.choice(_SIGNALS[:2]))
                acks += list(iter(writers.output.readline, "dead\n"))
                with contextlib.closing(SQLiteEventStore(path)) as store:
                    for sid in ("one", "two"):
                        log = store.session(sid)
                        if turn == 0 or log.read(limit=1).result(_WITHIN):
                            stores._check_after_kill(log, acks)
    finally:
        writers.end()
    return 3


# --- runs in a store


def process_with_runs(chance: Random) -> int:
    """Kill processes with runs at moments around a write and at any other: nothing runs twice."""
    with kills.victims() as program, _folder() as folder:
        spec = f"sqlite:{folder / 'runs.db'}"
        with store_of(spec) as store:
            for number in range(3):
                own = folder / f"moment {number}"
                own.mkdir()
                ended = program.run_once(spec, own, chance.randrange(1, 40))
                ended = ended or program.run_once(spec, own)
                _hold(ended, "a run that was killed does not end")
                kills.check(own, ended or {}, store)
            own = folder / "any time"
            own.mkdir()
            kills.kill_many(program, spec, own, store, chance, rounds=3, runs=8)
    return 6


# --- MCP servers


def server_in_mid_call(chance: Random) -> int:
    """Kill an MCP server while calls run there: they end, and the next one finds a new server."""
    return asyncio.run(_server_in_mid_call(chance))


async def _server_in_mid_call(chance: Random) -> int:
    pids: list[int] = []
    with _folder() as folder:
        async with asyncio.timeout(_WITHIN), MCPToolManager() as manager:
            await manager.add_server("tea", **_SERVER)
            tools = {str(tool.origin.wire_name): tool for tool in manager.get_tools()}
            for number in range(1 + chance.randrange(2)):
                own = folder / f"{number}"
                own.mkdir()
                text = json.dumps({"folder": str(own)})
                calls = [asyncio.ensure_future(tools["wait"].call(None, text)) for _ in range(3)]
                await comes((own / "began").exists)
                await asyncio.sleep(chance.random() * 0.02)
                pid = int(manager.get_server_info("tea")["pid"])
                pids.append(pid)
                how = chance.choice(_SIGNALS)
                os.kill(pid, how)
                ends = {(await call).status for call in calls}
                allowed = {"lost"} if how == signal.SIGKILL else {"lost", "cancelled", "tool_error"}
                _hold(ends <= allowed, f"calls of a server with {how.name} ended as {ends}")
                await comes(lambda pid=pid: not _is_there(pid), within=_WITHIN)
                after = {(await tools["add"].call(None, '{"a": 1, "b": 2}')).status for _ in "123"}
                _hold("ok" in after <= {"ok", "lost"}, f"the calls after it ended as {after}")
            pids.append(int(manager.get_server_info("tea")["pid"]))
    _until(lambda: not any(map(_is_there, pids)), f"a server of {pids} is left")
    return len(pids) - 1


# --- workers


def worker_process(chance: Random) -> int:
    """Kill processes that isolate tools, while many calls run in them."""
    return asyncio.run(_worker_process(chance))


async def _worker_process(chance: Random) -> int:
    backend = ProcessBackend("tests.isolated_tools", workers=2)
    add, whoami = run_on(backend)(isolated_tools.add), run_on(backend)(isolated_tools.whoami)
    pids: set[int] = set()
    try:
        async with asyncio.timeout(_WITHIN):
            for _ in range(3):
                pid = (await whoami.invoke())["pid"]
                pids.add(pid)
                calls = [
                    asyncio.ensure_future(add.call(None, f'{{"a": {n}, "b": 1}}'))
                    for n in range(30)
                ]
                await asyncio.sleep(chance.random() * 0.02)
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, chance.choice(_SIGNALS[:3]))
                for number, call in enumerate(calls):
                    outcome = await call
                    _hold(outcome.status in {"ok", "lost"}, f"a call ended as {outcome.status}")
                    own = outcome.status == "lost" or outcome.value == number + 1
                    _hold(own, f"call {number} gave {outcome.value!r}")
                _hold(await add.invoke(a=1, b=1) == 2, "the call after it does not work")
    finally:
        await backend.aclose()
    await asyncio.to_thread(_until, lambda: not any(map(_is_there, pids)), f"one of {pids} is left")
    return 3


def server_over_http(chance: Random) -> int:
    """Kill a server of tools: the calls that have begun are lost, the next one works."""
    return asyncio.run(_server_over_http(chance))


async def _server_over_http(chance: Random) -> int:
    with _folder() as folder, ServerProcess() as server:
        async with tools_of(server.url) as tools:
            folders = [folder / f"{number}" for number in range(10)]
            for own in folders:
                own.mkdir()
            calls = [
                asyncio.ensure_future(status_of(tools["wait"], folder=str(own))) for own in folders
            ]
            for own in folders[: chance.randrange(11)]:
                await comes((own / "began").exists)
            await asyncio.sleep(chance.random() * 0.02)
            await asyncio.to_thread(server.kill)
            ends = Counter(await asyncio.gather(*calls))
            begun = sum((own / "began").exists() for own in folders)
            # A call whose request was not sent failed to connect: nothing was run.
            _hold(set(ends) <= {"lost", "tool_error"}, f"calls ended as {ends}")
            _hold(ends["lost"] >= begun, f"{begun} calls had begun, and ended as {ends}")
            await asyncio.to_thread(server.start)
            after = await status_of(tools["add"], a=1, b=2)
            _hold(after == "ok", f"the call after it ended as {after}")
    return 1


# --- shells


def program_with_a_shell(chance: Random) -> int:
    """Kill a program whose shell has started processes: none of them is left, nor a directory."""
    with _folder() as folder:
        work, temporary = folder / "work", folder / "temporary"
        work.mkdir()
        temporary.mkdir()
        mark = f"{time.time_ns() % 10**12 + 10**12}"
        command = [sys.executable, "-m", _SHELL, str(work), mark]
        with subprocess.Popen(  # noqa: S603 - our own program
            command,
            cwd=_ROOT,
            env=os.environ | {"TMPDIR": str(temporary)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        ) as program:
            assert program.stdout is not None
            for _ in range(chance.randrange(1, 12)):
                program.stdout.readline()
            time.sleep(chance.random() * 0.05)
            program.send_signal(chance.choice(_SIGNALS))
            program.stdout.read()
        try:
            _until(lambda: not _with_mark(mark), "processes of a shell are left")
        finally:
            for pid in _with_mark(mark):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
        _until(lambda: not list(temporary.iterdir()), "temporary directories are left")
    return 1


def _with_mark(mark: str) -> list[int]:
    found: list[int] = []
    for entry in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            line = (entry / "cmdline").read_bytes()
            if mark.encode() in line and b"sleep" in line and _is_there(int(entry.name)):
                found.append(int(entry.name))
    return found


KILLS: dict[str, Kill] = {
    "writer of events": writer_of_events,
    "process with runs": process_with_runs,
    "MCP server during a call": server_in_mid_call,
    "worker process": worker_process,
    "worker over HTTP": server_over_http,
    "program with a shell": program_with_a_shell,
}
