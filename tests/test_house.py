"""The numbers that are published of the package itself are true."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools import house

PUBLISHED = {
    what: int(number)
    for what, number in re.findall(
        r"^\| (.+?) \| (\d+) \|$", Path("CONTRIBUTING.md").read_text(), re.MULTILINE
    )
}


def test_no_number_is_larger_than_what_is_published() -> None:
    """A change that makes one larger says so in the table; `python -m tools.house` counts them."""
    counted = house.figures()
    assert set(counted) == set(PUBLISHED)
    larger = {what: number for what, number in counted.items() if number > PUBLISHED[what]}
    assert larger == {}, house.lengths()[-3:]


def test_a_body_is_counted_without_its_signature_and_docstring(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "one.py").write_text(
        'def one(\n    a: int,\n) -> int:\n    """Count."""\n    a += 1\n    return a\n'
    )
    monkeypatch.setattr(house, "PACKAGE", tmp_path / "package")
    assert house.lengths() == [(2, "package/one.py one")]
