"""The campaign of kills: it finds nothing, and finds what is planted; and what it has found."""

from __future__ import annotations

import signal
import sys
from random import Random
from typing import Any

import pytest

from agents_tools.tool import invocation
from tests.soak import _kill_kinds, kills
from tests.soak._kill_kinds import KILLS
from tests.soak.campaign import Budget

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it looks into /proc")


@pytest.mark.timeout(120)
@pytest.mark.parametrize("name", KILLS)
def test_nothing_is_found(name: str) -> None:
    """Each kind of program is killed, and what has to hold after it holds."""
    outcome = kills.run(Budget(seconds=0, seed=7), {name: KILLS[name]})

    assert outcome.findings == []
    assert outcome.cases > 0


def _found(name: str) -> list[str]:
    return [
        found.what for found in kills.run(Budget(seconds=1, seed=7), {name: KILLS[name]}).findings
    ]


@pytest.mark.slow
def test_an_acknowledged_event_that_is_not_there_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the killed program was told to be stored, the one after it has to read."""
    read = _kill_kinds.SQLiteEventStore.read
    monkeypatch.setattr(
        _kill_kinds.SQLiteEventStore, "read", lambda self, **given: read(self, limit=1, **given)
    )

    [what] = _found("writer of events")

    assert "AssertionError" in what


@pytest.mark.slow
def test_a_call_that_is_told_to_have_failed_though_nobody_knows_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A call whose server was killed is lost: nobody may say that it was not done."""
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
    """A shell whose jobs run on would hold ports and files for nobody."""
    monkeypatch.setattr(_kill_kinds, "_SHELL", "tests.soak._planted_shell")
    monkeypatch.setattr(_kill_kinds, "_WITHIN", 1.0)
    monkeypatch.setattr(_kill_kinds, "_SIGNALS", (signal.SIGKILL,))

    [what] = _found("program with a shell")

    assert "processes of a shell are left" in what


# --- what it has found


@pytest.mark.requirement("F16")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_jobs_of_a_shell_and_its_outputs_do_not_outlive_a_program_that_is_killed(
    monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    """A shell gives each job a process group of its own, which was not ended with the shell's."""
    monkeypatch.setattr(_kill_kinds, "_SIGNALS", (number,))

    assert KILLS["program with a shell"](Random(6)) == 1  # noqa: S311 - no secret
