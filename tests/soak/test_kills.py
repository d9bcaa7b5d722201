"""The kill campaign: it has no findings, finds planted bugs, and regressions are tested."""

from __future__ import annotations

import signal
import sys
from random import Random
from typing import Any

import pytest

from agents_tools.persistence.stored_log import StoredLog
from agents_tools.tool import invocation
from tests.scale import slow_case
from tests.soak import _kill_kinds, kills
from tests.soak._kill_kinds import KILLS
from tests.soak.campaign import Budget

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


QUICK = ("writer of events", "process with runs")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", [name if name in QUICK else slow_case(name) for name in KILLS])
def test_the_campaign_has_no_findings(name: str) -> None:
    """Each kind of program is killed, and its guarantees are checked afterwards."""
    outcome = kills.run(Budget(seconds=0, seed=7), {name: KILLS[name]})

    assert outcome.findings == []
    assert outcome.cases > 0


def _found(name: str) -> list[str]:
    return [
        found.what for found in kills.run(Budget(seconds=1, seed=7), {name: KILLS[name]}).findings
    ]


@pytest.mark.slow
def test_a_missing_acknowledged_event_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The next program must read each event that was acknowledged to the killed one."""
    read = StoredLog.read
    monkeypatch.setattr(StoredLog, "read", lambda log, **_: read(log, limit=1))

    [what] = _found("writer of events")

    assert "AssertionError" in what


@pytest.mark.slow
def test_a_lost_call_that_is_reported_as_failed_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """After a kill of the server the outcome is unknown, so a report must not claim failure."""
    status_of = invocation.status_of

    def sure(error: Exception, context: Any) -> Any:
        status = status_of(error, context)
        return "tool_error" if status == "lost" else status

    monkeypatch.setattr(invocation, "status_of", sure)
    monkeypatch.setattr(_kill_kinds, "_SIGNALS", (signal.SIGKILL,))

    [what] = _found("MCP server during a call")

    assert "calls of a server with SIGKILL ended as {'tool_error'}" in what


@pytest.mark.slow
def test_processes_that_outlive_their_program_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """Background jobs of a shell would keep ports and files open."""
    monkeypatch.setattr(_kill_kinds, "_SHELL", "tests.soak._planted_shell")
    monkeypatch.setattr(_kill_kinds, "_WITHIN", 1.0)
    monkeypatch.setattr(_kill_kinds, "_SIGNALS", (signal.SIGKILL,))

    [what] = _found("program with a shell")

    assert "processes of a shell are left" in what


# --- bugs that the campaign has found


@pytest.mark.requirement("F16")
@pytest.mark.parametrize(
    "number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_jobs_of_a_killed_program_are_ended(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A shell gives each job its own process group, which did not end with that of the shell."""
    monkeypatch.setattr(_kill_kinds, "_SIGNALS", (number,))

    assert KILLS["program with a shell"](Random(6)) == 1  # noqa: S311 - no secret
