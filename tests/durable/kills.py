"""Kills processes that run agents, and checks what the runs have done and what their store holds."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Generator, Iterable
from contextlib import contextmanager, suppress
from pathlib import Path
from random import Random
from typing import Any

from agents_tools.persistence.run_store import RunStore

__all__ = [
    "CALLS",
    "REPEATABLE",
    "Victims",
    "check",
    "check_many",
    "chosen",
    "effects_of",
    "kill_many",
    "lines_of",
    "victims",
    "was_open",
]

REPEATABLE = {"look", "stamp"}
_MOST = {"look": 1_000, "stamp": 2}
"""How often a repeatable call runs at most. The start of a read-only call is not always stored."""
CALLS = {"c_pay": "pay", "c_look": "look", "c_pay2": "pay", "c_stamp": "stamp", "h_post": "post"}


class Victims:
    """Starts processes that run agents.

    Args:
        program: The program that forks them.
    """

    def __init__(self, program: subprocess.Popen[bytes]) -> None:
        self._program = program

    def begin(self, *command: Any) -> int:
        """Start a process, and return its pid."""
        assert self._program.stdin is not None
        self._program.stdin.write(json.dumps(command).encode() + b"\n")
        self._program.stdin.flush()
        return int(self.line()["pid"])

    def line(self) -> Any:
        """Return the next report."""
        assert self._program.stdout is not None
        return json.loads(self._program.stdout.readline())

    def rest(self) -> list[Any]:
        """Return the reports until the end of the process."""
        return list(iter(self.line, "dead"))

    def run_once(
        self, spec: str, folder: Path, fatal: int = 0, at_once: int | None = None
    ) -> dict[str, Any] | None:
        """Begin or continue the run of a folder.

        Args:
            spec: The store.
            folder: The folder.
            fatal: The number of the moment at which the process ends; 0 for none.
            at_once: The largest number of parallel calls.

        Returns:
            The end of the run; `None` if the process was killed.
        """
        self.begin("run_once", spec, str(folder), fatal, at_once)
        reports = self.rest()
        return reports[0] if reports else None


@contextmanager
def victims() -> Generator[Victims]:
    """Start the program that forks processes, and end it."""
    with subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, str(Path(__file__).with_name("victim.py"))],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as program:
        try:
            yield Victims(program)
        finally:
            assert program.stdin is not None
            program.stdin.close()
            program.wait(10)


def check(folder: Path, ended: dict[str, Any], store: RunStore) -> None:
    """Check the end of a run against its effects and the moments at which it was killed."""
    effects = effects_of(folder)
    lives = lines_of(folder, "killed")
    assert ended["output"] == "All done."
    assert (ended["usage"]["requests"], ended["usage"]["input_tokens"]) == (5, 35)
    for call_id, tool in CALLS.items():
        cut = sum(was_open(life, call_id) for life in lives)
        status = ended["statuses"].get(call_id, "ok")  # the calls of the helper are not listed
        if tool in REPEATABLE:
            assert status == "ok" or cut > 1, (call_id, lives)  # it is run again once
            assert effects[call_id] <= _MOST[tool], call_id
            assert effects[call_id] or cut > 1, call_id
            continue
        assert effects[call_id] <= 1, (call_id, lives)
        assert status == "ok" or cut, (call_id, lives)
        assert effects[call_id] == 1 or cut, call_id
    requests = Counter(
        (line["model"], line["after"]) for line in lines_of(folder, "effects") if "model" in line
    )
    assert set(requests) == {("Boss", 0), ("Boss", 3), ("Boss", 5), ("Helper", 0), ("Helper", 1)}
    assert sum(requests.values()) <= 5 + 2 * len(lives)  # the boss and its helper
    _check_acknowledged(folder, store)


def check_many(folder: Path, ended: dict[str, str], store: RunStore, cancelled: set[str]) -> None:
    """Check the ends of many runs against their effects and the events that were acknowledged."""
    for name, status in ended.items():
        assert status == "ok" or (status == "cancelled" and name in cancelled), (name, status)
    for key, count in _keys_of(folder).items():
        tool = CALLS[key.replace("/", ":").rpartition(":")[2]]
        assert count <= _MOST.get(tool, 1), key
    _check_acknowledged(folder, store)
    assert not any(run.is_orphaned for run in store.runs().result())


def kill_many(
    program: Victims,
    spec: str,
    folder: Path,
    store: RunStore,
    chance: Random,
    *,
    rounds: int,
    runs: int,
    machines: bool = False,
) -> int:
    """Kill a process with many runs at random moments, until all of them have ended.

    Args:
        program: Starts the processes.
        spec: The store of the processes.
        folder: The folder of the effects.
        store: The same store, for this process.
        chance: Chooses the moments.
        rounds: The number of kills.
        runs: The number of runs.
        machines: Whether each process pretends to be on another machine.

    Returns:
        The number of kills that hit running runs.
    """
    hits, number = 0, 0
    while rounds > 0:
        number += 1
        names = [f"{folder.name} {number} {one}" for one in range(runs)]
        cancelled = set(names[:: max(runs // 2, 1)][:1]) if chance.random() < 0.5 else set[str]()
        ended: dict[str, str] = {}
        while not ended:
            machine = f"machine {rounds}" if machines else None
            pid = program.begin("run_many", spec, str(folder), names, machine)
            assert program.line() == "begun"
            if rounds > 0:
                rounds -= 1
                time.sleep(chance.random() * 0.25)
                for name in cancelled if rounds % 2 else ():
                    if store.run(name).result() is not None:
                        store.cancel(name).result()
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            ended = next((one for one in program.rest() if isinstance(one, dict)), {})
            hits += not ended
        check_many(folder, {name: ended[name] for name in names}, store, cancelled)
    return hits


def chosen(moments: list[str], *, every: int = 1) -> list[int]:
    """Return the numbers of the first moments of each kind.

    Args:
        moments: The moments of a process.
        every: How many kinds to skip.
    """
    kinds: dict[str, int] = {}
    for number, moment in enumerate(moments, 1):
        kinds.setdefault(re.sub(r"\d+", "", moment), number)
    return sorted(kinds.values())[::every]


def lines_of(folder: Path, name: str) -> list[Any]:
    """Return the lines of a file that the processes have written."""
    path = folder / name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def _keys_of(folder: Path) -> Counter[str]:
    return Counter(line["key"] for line in lines_of(folder, "effects") if "key" in line)


def effects_of(folder: Path) -> Counter[str]:
    """Return the number of effects of each call."""
    effects = Counter[str]()
    for key, count in _keys_of(folder).items():
        effects[key.replace("/", ":").rpartition(":")[2]] += count
    return effects


def was_open(life: list[str], call_id: str, result: str = "tool_output") -> bool:
    """Return whether a process has ended between the start of a call and its stored result.

    Args:
        life: The moments of the process.
        call_id: The call.
        result: The name of the event with the result.
    """
    last = {name: number for number, moment in enumerate(life) for name in _names(moment)}
    begun = max(last.get(f"call_begun:{call_id} before", -1), last.get(f"{call_id} next", -1))
    return begun > last.get(f"{result}:{call_id} after", -1)


def _names(moment: str) -> Iterable[str]:
    *labels, phase = moment.split(" ")
    return [f"{label} {phase}" for label in labels]


def _check_acknowledged(folder: Path, store: RunStore) -> None:
    """Check that the store has each event whose write it has confirmed."""
    stored: dict[str, set[int]] = {}
    for name, ids in lines_of(folder, "acknowledged"):
        if name not in stored:
            stored[name] = {event.id for event in store.log(name).read().result()}
        assert set(ids) <= stored[name], name
