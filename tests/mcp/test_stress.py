"""MCP servers that die, lose sessions or have many clients, with the sizes of the benchmark."""

from __future__ import annotations

import sys

import pytest

from tests.mcp.small import LINE

if sys.platform == "win32":
    pytest.skip("needs limits of open files", allow_module_level=True)

from tests.benchmarks.mcp import stress

pytestmark = [pytest.mark.slow, pytest.mark.timeout(180)]


@pytest.mark.requirement("F25")
async def test_a_call_after_a_kill_succeeds_and_a_killed_call_is_lost() -> None:
    between, within = await stress.killed_between_calls(), await stress.killed_in_calls()
    assert between[1] == f"{stress.KILLS} of {stress.KILLS} succeed"
    assert within[1] == f"{stress.KILLS} of {stress.KILLS}"


@pytest.mark.requirement("F33")
@pytest.mark.parametrize("unknown", [(404, b""), (400, b"Unknown session.")])
async def test_every_lost_session_is_replaced(unknown: tuple[int, bytes]) -> None:
    row = await stress.session_lost("", unknown)
    assert row[1] == f"{stress.LOSSES} of {stress.LOSSES} succeed"


@pytest.mark.skipif(LINE == 1, reason="clients listen in version 2 of the SDK")
async def test_a_thousand_idle_clients_do_not_stop_a_server() -> None:
    """All calls of another client succeed while the streams are open."""
    rows = await stress.many_clients()
    assert [row[1] for row in rows[:2]] == [f"{stress.CALLS} of {stress.CALLS} succeed"] * 2
