"""Test that the performance page has all figures, and that every gated figure has a baseline."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.benchmarks.gate import ACCEPTED, HELD, SLACK, too_slow
from tests.benchmarks.page import DIGESTS, PAGE, PAGES, SECTIONS, digest, put


@pytest.mark.parametrize("name", SECTIONS)
def test_every_section_has_its_figures_on_the_page(name: str) -> None:
    """A section without figures would be empty, and figures without a section would be lost."""
    page = PAGES.get(name, PAGE).read_text()
    section = page.partition(f"<!-- figures: {name} -->")[2].partition("<!-- end -->")[0]
    rows = [line for line in section.splitlines() if line.startswith("|")]
    assert len(rows) > 2, f"python -m tests.benchmarks.page --only {name}"
    assert SECTIONS[name] in section, "the command that made the figures stands below them"


@pytest.mark.parametrize("page", DIGESTS, ids=lambda page: page.name)
def test_other_pages_show_the_same_figures(page: Path) -> None:
    """Figures that are copied by hand become outdated."""
    assert digest(PAGE.read_text()) in page.read_text()


def test_figures_replace_only_the_text_between_their_comments() -> None:
    page = "a\n<!-- figures: x -->\nold\n<!-- end -->\nb <!-- end -->"
    assert put(page, "x", "new\\1") == (
        "a\n<!-- figures: x -->\n\nnew\\1\n\n<!-- end -->\nb <!-- end -->"
    )
    with pytest.raises(ValueError, match="not exactly one place for the figures of 'y'"):
        put(page, "y", "new")


def test_every_gated_benchmark_has_an_accepted_figure() -> None:
    assert set(json.loads(ACCEPTED.read_text())) == set(HELD)


def test_a_benchmark_slower_than_the_accepted_figure_plus_slack_is_reported() -> None:
    accepted = {"a": 2.0, "b": 1.0}
    assert too_slow({"a": 2.0 * SLACK, "b": 1.0}, accepted) == {}
    assert too_slow({"a": 10.0, "b": 0.5}, accepted) == {"a": 5.0}
