"""The published figures about the size of the package are correct."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import code_size

_, _, _TABLE = Path("CONTRIBUTING.md").read_text().partition("\n| figure | value |\n")
PUBLISHED = {
    what: int(number)
    for what, number in re.findall(r"^\| (.+?) \| (\d+) \|$", _TABLE, re.MULTILINE)
}


@pytest.mark.slow
def test_no_figure_exceeds_the_published_one() -> None:
    """A change that increases one updates the table; `python -m tools.code_size` counts them."""
    counted = code_size.figures()
    assert set(counted) == set(PUBLISHED)
    larger = {what: number for what, number in counted.items() if number > PUBLISHED[what]}
    assert larger == {}, code_size.function_lengths()[-3:]


def test_a_body_is_counted_without_its_signature_and_docstring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(
        'def one(\n    a: int,\n) -> int:\n    """Count."""\n    a += 1\n    return a\n'
    )
    monkeypatch.setattr(code_size, "PACKAGE", tmp_path / "package")
    assert code_size.function_lengths() == [(2, "package/one.py one")]
