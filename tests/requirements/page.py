"""Writes the page of all requirements: what holds, and which tests show it."""

from __future__ import annotations

import functools
import re
import tomllib
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.requirements.markers import Found, Mark

__all__ = ["PAGE", "ROOT", "ROWS", "Area", "areas", "faults", "page"]

ROOT = Path(__file__).parents[2]
ROWS = Path(__file__).with_name("rows.toml")
PAGE = ROOT / "docs" / "reference" / "requirements.md"

_NAMED = 4
"""So many tests are named for one row; of more, it is said how many there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Area:
    """Rows that belong together."""

    letter: str
    title: str
    about: str
    rows: dict[str, str]
    """What holds, by the name of the row."""
    first: dict[str, str] = field(default_factory=dict[str, str])
    """The test to name first where it is not the one that would be, by the name of the row."""


def areas(path: Path = ROWS) -> list[Area]:
    """Read the list of rows.

    Raises:
        ValueError: A row does not belong where it stands, or comes out of turn.
    """
    read: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
    given = [Area(letter=letter, **fields) for letter, fields in read.items()]
    for area in given:
        for number, row in enumerate(area.rows, 1):
            if row != f"{area.letter}{number}":
                raise ValueError(f"{path.name}: {area.letter}{number} should stand where {row} is")
    return given


def faults(given: list[Area], found: Found) -> list[str]:
    """Return the wrong marks and the rows without a test, one line each."""
    shown = _shown(given, found.marks)
    known = {row for area in given for row in area.rows}
    unknown = [
        f"{mark.test}: there is no row {row}; the rows are in {ROWS.relative_to(ROOT)}"
        for mark in found.marks
        for row in mark.rows
        if row not in known
    ]
    empty = [
        f"{row}: no test shows it ({says}); mark one: @pytest.mark.requirement({row!r})"
        for area in given
        for row, says in area.rows.items()
        if row not in shown
    ]
    gone = [
        f"{row}: {test} is to be named first in {ROWS.relative_to(ROOT)}, and does not name the row"
        for area in given
        for row, test in area.first.items()
        if all(mark.test != test for mark in shown.get(row, []))
    ]
    return [*found.faults, *unknown, *empty, *gone]


def page(given: list[Area], found: Found) -> str:
    """Return the text of the page."""
    shown = _shown(given, found.marks)
    count = sum(len(area.rows) for area in given)
    tests = sum(bool(mark.rows) for mark in found.marks)
    parts = [_HEAD.format(count=count, tests=tests, areas=_contents(given))]
    parts += [_section(area, shown) for area in given]
    return "\n".join(parts)


def _shown(given: list[Area], marks: list[Mark]) -> dict[str, list[Mark]]:
    """Return the tests of each row, the most informative ones first.

    That is the one that the list of rows names, then those that are named after the row, then those
    of the file that has most of them, in the order in which they stand there.
    """
    shown: defaultdict[str, list[Mark]] = defaultdict(list)
    for mark in marks:
        for row in mark.rows:
            shown[row].append(mark)
    first = {row: test for area in given for row, test in area.first.items()}
    for row, tests in shown.items():
        home = Counter(mark.file for mark in tests)
        tests.sort(key=functools.partial(_rank, row, first.get(row), home))
    return shown


def _rank(row: str, first: str | None, home: Counter[str], mark: Mark) -> tuple[Any, ...]:
    names = f"_{row[0]}{row[1:].zfill(2)}_".lower(), f"_{row}_".lower()
    is_named = any(name in mark.test for name in names)
    return mark.test != first, not is_named, -home[mark.file], mark.file, mark.line


_HEAD = """\
# Requirements and the tests that show them

<!-- Written by `python -m tests.requirements --write` from the marks in the tests; do not edit. -->

This page lists every guarantee of the library with the tests that fail when it is violated: {count}
rows, named by {tests} tests. A test names its rows in a mark:

```text
@pytest.mark.requirement("F35", "D11")
```

The tables are generated from these marks. The suite fails if a row has no test, if a mark names an
unknown row, or if this page is out of date.

{areas}
"""

_TABLE = """\
## {title}

{about}

| row | guarantee | tests |
| --- | --- | --- |
{rows}
"""


def _contents(given: list[Area]) -> str:
    return "\n".join(
        f"- [{area.title}](#{_anchor(area.title)}): {area.letter}1 to {area.letter}{len(area.rows)}"
        for area in given
    )


def _anchor(title: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-")


def _section(area: Area, shown: dict[str, list[Mark]]) -> str:
    rows = (
        f"| {row} | {_cell(says)} | {_tests(shown.get(row, []))} |"
        for row, says in area.rows.items()
    )
    return _TABLE.format(title=area.title, about=area.about, rows="\n".join(rows))


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _tests(marks: list[Mark]) -> str:
    named = [f"`{mark.test}`" for mark in marks[:_NAMED]]
    if len(marks) > _NAMED:
        named.append(f"and {len(marks) - _NAMED} more")
    return "<br>".join(named)
