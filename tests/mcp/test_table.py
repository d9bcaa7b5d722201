"""The pages of the documentation that `tests.mcp.table` and the conformance suite write."""

from __future__ import annotations

import pytest

from tests.conformance.mcp import run
from tests.mcp import test_catalogue, test_real_clients, test_real_servers
from tests.mcp.table import PAGE, cell


@pytest.mark.parametrize(
    ("outcomes", "text", "is_shown"),
    [
        ([("passed", "stdio"), ("passed", "http"), ("passed", "stdio")], "stdio, HTTP", True),
        ([("passed", "")], "yes", True),
        ([("passed", "stdio"), ("failed", "http")], "**failed** HTTP", False),
        ([("skipped", ""), ("passed", "")], "**skipped**", False),
        ([], "**no test**", False),
    ],
)
def test_a_cell_shows_the_outcome_of_its_tests(
    outcomes: list[tuple[str, str]], text: str, is_shown: bool
) -> None:
    assert cell(outcomes) == (text, is_shown)


def test_the_page_has_the_tables_of_the_tests_and_no_failure() -> None:
    """A changed table has to be written again: `python -m tests.mcp.table --write`."""
    page = PAGE.read_text(encoding="utf-8")
    for head in (
        ["client", *test_real_clients.FEATURES],
        ["server", *test_real_servers.FEATURES],
    ):
        assert f"| {' | '.join(head)} |" in page
    for client in test_real_clients.BY_NAME.values():
        assert f"| {client.title} " in page
        for feature in client.lacks.keys() & set(test_real_clients.FEATURES):
            assert f"- {client.title}, {feature}: {client.lacks[feature]}." in page
    for claim in test_catalogue.CLAIMS:
        assert f"| {claim} | yes |" in page
    assert "**failed**" not in page
    assert "**skipped**" not in page
    assert "**no test**" not in page


def test_the_page_of_the_conformance_suite_has_every_run() -> None:
    """It is written again with `python -m tests.conformance.mcp.run --peers --write`."""
    page = run.PAGE.read_text(encoding="utf-8")
    runs = run.RUNS + run.PEER_RUNS
    rows = [
        line.split(" | ")
        for line in page.splitlines()
        if ", server |" in line or ", client |" in line
    ]
    assert [cells[0].rpartition(", ")[2] for cells in rows] == [one.side for one in runs]
    assert [cells[1].partition(" ")[0] for cells in rows] == [one.revision for one in runs]
    passed = [tuple(map(int, cells[2].split(" of "))) for cells in rows]
    assert passed[0][0] == passed[0][1] > 0
