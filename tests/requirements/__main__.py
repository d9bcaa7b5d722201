"""`python -m tests.requirements`: say whether every row has its test; `--write` writes the page."""

from __future__ import annotations

import argparse
import sys

from tests.requirements import page
from tests.requirements.markers import read


def main(arguments: list[str] | None = None) -> int:
    """Look at the marks, and write the page if asked to; 1 when something is not as it should be.

    Args:
        arguments: Of the command line; those of the process if not given.
    """
    parser = argparse.ArgumentParser(prog="python -m tests.requirements", description=__doc__)
    parser.add_argument("--write", action="store_true", help="write docs/reference/requirements.md")
    parser.add_argument("--row", metavar="ROW", help="name all tests of one row, and no more")
    given = parser.parse_args(arguments)
    found = read(page.ROOT, page.ROOT / "tests")
    try:
        areas = page.areas()
    except ValueError as error:
        _say(str(error))
        return 1
    if given.row is not None:
        _say(*(mark.test for mark in found.marks if given.row in mark.rows))
        return 0
    faults = page.faults(areas, found)
    text = page.page(areas, found)
    if given.write:
        page.PAGE.write_text(text, encoding="utf-8")
    elif not page.PAGE.exists() or page.PAGE.read_text(encoding="utf-8") != text:
        faults.append(STALE)
    _say(*faults)
    _say(f"{sum(len(area.rows) for area in areas)} rows, {len(faults)} faults")
    return 1 if faults else 0


STALE = (
    "docs/reference/requirements.md is not what the marks say: "
    "run `python -m tests.requirements --write`"
)
"""What to do after marking a test."""


def _say(*lines: str) -> None:
    sys.stdout.writelines(f"{line}\n" for line in lines)


if __name__ == "__main__":
    sys.exit(main())
