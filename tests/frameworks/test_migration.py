"""Programs of other frameworks after a migration: what changes is what the pages show."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.frameworks.migration.pages import EXERCISES, Exercise

MOST = {"openai_agents": 5}
"""The largest number of lines besides the imports that a migration changes."""


@pytest.mark.slow
@pytest.mark.timeout(120)  # starts two programs that import a framework
@pytest.mark.parametrize("exercise", EXERCISES, ids=lambda one: one.name)
def test_a_page_shows_the_differences_of_two_programs_that_work(
    exercise: Exercise, tmp_path: Path
) -> None:
    """Both programs run offline with the same answers of the model."""
    pytest.importorskip({"openai_agents": "agents"}.get(exercise.name, exercise.name))
    assert exercise.path.read_text(encoding="utf-8") == exercise.written(tmp_path), (
        "Run `python -m tests.frameworks.migration.pages` to write the page."
    )
    most = MOST.get(exercise.name)
    assert most is None or exercise.changed_lines() <= most
