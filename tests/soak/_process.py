"""Run a campaign in a process group of its own, and leave nothing of it behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
import uuid
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.soak._child import HANGS_AFTER
from tests.soak.campaign import Budget, Campaign, Finding, Outcome

__all__ = ["Ran", "run"]

_ROOT = Path(__file__).parents[2]
_MARK = "AGENTS_TOOLS_SOAK"
_GRACE = 5.0
_LINGER = 3.0
_TOLD = 20_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A campaign that was run: what it saw, and how long it took in seconds."""

    campaign: Campaign
    outcome: Outcome
    seconds: float


def run(campaign: Campaign, budget: Budget) -> Ran:
    """Run a campaign to its end, or until it hangs."""
    mark = uuid.uuid4().hex
    begun = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="agents-tools-soak-") as scratch:
        answer, said = Path(scratch, "answer.json"), Path(scratch, "stderr")
        args = (campaign.name, f"{budget.seconds:g}", str(budget.seed), str(answer))
        with said.open("wb") as stderr:
            child = subprocess.Popen(  # noqa: S603 - the program is this package
                [sys.executable, "-m", "tests.soak._child", *args],
                cwd=_ROOT,
                env=os.environ | {_MARK: mark, "TMPDIR": scratch},
                stdin=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
            try:
                hangs = _outlasts(child, HANGS_AFTER * budget.seconds + _GRACE)
                took = time.monotonic() - begun
                left = _left(child.pid, mark)
            finally:
                _end(child, mark)
        reproduce = (
            f"python -m tests.soak --only {campaign.name} --seconds {budget.seconds:g} "
            f"--seed {budget.seed}"
        )
        text = said.read_text("utf-8", "replace")[-_TOLD:]
        outcome = _answered(answer)
    further = [] if hangs else [f"process {pid} was left: {line}" for pid, line in left.items()]
    if outcome is None:
        ended = "it hangs" if hangs else f"its process ended with {child.returncode}"
        outcome = Outcome(cases=0)
        further.insert(0, f"{ended}, and gave no answer\n{text}")
    found = [Finding(what=what, where=campaign.name, reproduce=reproduce) for what in further]
    return Ran(
        campaign=campaign,
        outcome=Outcome(
            cases=outcome.cases, findings=[*outcome.findings, *found], figures=outcome.figures
        ),
        seconds=took,
    )


def _outlasts(child: subprocess.Popen[bytes], bound: float) -> bool:
    """Wait for a process; ask one that does not end for its stacks."""
    try:
        child.wait(bound)
    except subprocess.TimeoutExpired:
        if hasattr(signal, "SIGUSR1"):
            child.send_signal(signal.SIGUSR1)
            with suppress(subprocess.TimeoutExpired):
                child.wait(1)
        return True
    return False


def _answered(answer: Path) -> Outcome | None:
    if not answer.exists():
        return None
    told: dict[str, Any] = json.loads(answer.read_text(encoding="utf-8"))
    findings = [Finding(**finding) for finding in told["findings"]]
    return Outcome(cases=told["cases"], findings=findings, figures=told["figures"])


def _left(group: int, mark: str) -> dict[int, str]:
    """Give what still runs of a campaign's processes, after a while to end by themselves."""
    until = time.monotonic() + _LINGER
    while (left := _marked(group, mark)) and time.monotonic() < until:
        time.sleep(0.05)
    return left


def _marked(group: int, mark: str) -> dict[int, str]:
    """Give the processes of a group, and those that carry its mark in a group of their own."""
    sign = f"{_MARK}={mark}".encode()
    found: dict[int, str] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, of_group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            marked = int(of_group) == group or sign in (entry / "environ").read_bytes()
            if marked and state != "Z" and int(entry.name) != os.getpid():
                line = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                found[int(entry.name)] = line.strip()
    return found


def _end(child: subprocess.Popen[bytes], mark: str) -> None:
    """End what is left of a campaign: its group, and what carries its mark."""
    for pid in _marked(child.pid, mark):
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
    if child.poll() is None:
        if hasattr(os, "killpg"):
            with suppress(OSError):  # it has ended just now
                os.killpg(child.pid, signal.SIGKILL)
        child.kill()
    child.wait()
