"""The page of figures has a place for each, filled; and what is held has been accepted."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.gate import ACCEPTED, HELD, SLACK, too_slow
from tests.benchmarks.page import DIGESTS, PAGE, SECTIONS, digest, put


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_its_figures_on_the_page(name: str) -> None:
    """A section that nothing fills would show nothing; one without a place would be lost."""
    page = PAGE.read_text()
    told = page.partition(f"<!-- figures: {name} -->")[2].partition("<!-- end -->")[0]
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert len(rows) > 2, f"python -m tests.benchmarks.page --only {name}"
    assert SECTIONS[name] in told, "the command that made the figures stands below them"


@pytest.mark.parametrize("page", DIGESTS, ids=lambda page: page.name)
def test_other_pages_show_the_same_figures(page: Path) -> None:
    """Figures that are copied by hand grow stale."""
    assert digest(PAGE.read_text()) in page.read_text()


def test_figures_are_put_between_their_comments_and_nowhere_else() -> None:
    page = "a\n<!-- figures: x -->\nold\n<!-- end -->\nb <!-- end -->"
    assert put(page, "x", "new\\1") == (
        "a\n<!-- figures: x -->\n\nnew\\1\n\n<!-- end -->\nb <!-- end -->"
    )
    with pytest.raises(ValueError, match="not exactly one place for the figures of 'y'"):
        put(page, "y", "new")


def test_all_that_is_held_has_been_accepted() -> None:
    assert set(json.loads(ACCEPTED.read_text())) == set(HELD)


def test_what_is_slower_than_accepted_with_slack_is_told() -> None:
    accepted = {"a": 2.0, "b": 1.0}
    assert too_slow({"a": 2.0 * SLACK, "b": 1.0}, accepted) == {}
    assert too_slow({"a": 10.0, "b": 0.5}, accepted) == {"a": 5.0}
