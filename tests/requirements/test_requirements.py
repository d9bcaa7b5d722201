"""Every row of the requirements has a test, and a missing one is reported."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.requirements import __main__ as program, page
from tests.requirements.__main__ import STALE, main
from tests.requirements.markers import Found, Mark, read

HEAD = "import pytest\n\n"
ONE = 'pytest.mark.requirement("A1")'

ROWS = """
[A]
title = "Of tools"
about = "What tools do."
[A.rows]
A1 = "They are called."
A2 = "They say a | b."
"""


def marks(folder: Path, source: str, file: str = "test_it.py") -> Found:
    (folder / file).write_text(HEAD + source)
    return read(folder, folder)


def shown(found: Found) -> dict[str, tuple[str, ...]]:
    assert found.faults == []
    return {mark.test.removeprefix("test_it.py::"): mark.rows for mark in found.marks}


def test_every_row_has_its_test_and_the_page_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    """Mark the test, run `python -m tests.requirements --write`, and this passes."""
    code = main([])
    assert code == 0, capsys.readouterr().out


def test_functions_classes_modules_and_parameters_are_marked(tmp_path: Path) -> None:
    """Every place where pytest accepts a mark is supported, including inherited test classes."""
    found = marks(
        tmp_path,
        f"""
pytestmark = [pytest.mark.timeout(5), pytest.mark.requirement("A9")]

@{ONE}
def test_function(): ...

@pytest.mark.requirement("A2", "A3")
async def test_several(): ...

@pytest.mark.parametrize("n", [1, pytest.param(2, marks=[{ONE}, pytest.mark.slow])])
def test_parameter(n): ...

@pytest.mark.requirement("A4")
class TestInherited(Contract):
    pass

@pytest.mark.requirement("A5")
class TestOwn:
    pytestmark = pytest.mark.requirement("A6")

    @{ONE}
    def test_method(self): ...

    def helper(self): ...

class TestNested:
    class TestInside:
        @{ONE}
        def test_deep(self): ...

def helper(): ...
""",
    )
    assert shown(found) == {
        "test_function": ("A1", "A9"),
        "test_several": ("A2", "A3", "A9"),
        "test_parameter": ("A1", "A9"),
        "TestInherited": ("A9", "A4"),
        "TestOwn::test_method": ("A1", "A9", "A5", "A6"),
        "TestNested::TestInside::test_deep": ("A1", "A9"),
    }


@pytest.mark.parametrize(
    ("source", "message"),
    [
        (f"@{ONE}\ndef helper(): ...", "test_it.py:3: the mark belongs to no test"),
        (f"@{ONE}\nclass Contract:\n    def test_x(self): ...", "belongs to no test"),
        (
            f"class TestX:\n    def __init__(self): ...\n    @{ONE}\n    def test_x(self): ...",
            "no test",
        ),
        (f"def test_x():\n    @{ONE}\n    def test_inner(): ...", "belongs to no test"),
        (f"@{ONE}\n@pytest.mark.skip\ndef test_x(): ...", "`test_x` is never run"),
        (f'@pytest.mark.xfail(reason="later")\n@{ONE}\ndef test_x(): ...', "`test_x` is never run"),
        ("@pytest.mark.requirement(*ROWS)\ndef test_x(): ...", "name the rows as plain texts"),
        ("@pytest.mark.requirement()\ndef test_x(): ...", "name the rows as plain arguments"),
        (f"@{ONE}\ndef test_x(: ...", "test_it.py:4: this is no Python"),
    ],
)
def test_a_mark_without_a_test_is_reported_with_its_place(
    tmp_path: Path, source: str, message: str
) -> None:
    """A row must not look covered by code that never runs."""
    assert any(message in fault for fault in marks(tmp_path, source).faults)


def test_a_mark_in_a_file_that_pytest_does_not_collect_is_reported(tmp_path: Path) -> None:
    """A helper's file is imported, not collected."""
    found = marks(tmp_path, f"@{ONE}\ndef test_x(): ...", "helpers.py")
    assert found.marks == []
    assert found.faults == ["helpers.py:3: pytest finds no tests in such a file"]


@pytest.fixture
def areas(tmp_path: Path) -> list[page.Area]:
    path = tmp_path / "rows.toml"
    path.write_text(ROWS)
    return page.areas(path)


def test_an_unknown_row_and_a_row_without_a_test_are_reported(areas: list[page.Area]) -> None:
    """The message states what to write, and where."""
    found = Found([Mark(test="tests/test_x.py::test_y", line=1, rows=("A1", "Z9"))])
    assert page.faults(areas, found) == [
        "tests/test_x.py::test_y: there is no row Z9; the rows are in tests/requirements/rows.toml",
        "A2: no test shows it (They say a | b.); mark one: @pytest.mark.requirement('A2')",
    ]


def test_the_test_to_be_named_first_must_have_the_mark_of_its_row(areas: list[page.Area]) -> None:
    """A test that was renamed no longer has the mark; `rows.toml` must be updated."""
    one, two = (Mark(test=f"tests/test_x.py::test_{n}", line=n, rows=("A1", "A2")) for n in (1, 2))
    (area,) = areas
    first = replace(area, first={"A1": two.test})
    assert page.faults([first], Found([one, two])) == []
    assert f"| `{two.test}`<br>`{one.test}` |" in page.page([first], Found([one, two]))
    (fault,) = page.faults([replace(area, first={"A1": "gone"})], Found([one, two]))
    assert fault == (
        "A1: gone is to be named first in tests/requirements/rows.toml, and does not name the row"
    )


def test_the_page_names_four_tests_of_a_row_and_counts_the_rest(areas: list[page.Area]) -> None:
    """Tests of the file with the most of them come first."""
    found = Found(
        [
            Mark(test="tests/test_a.py::test_other", line=1, rows=("A1", "A2")),
            *(Mark(test=f"tests/test_b.py::test_{n}", line=9 - n, rows=("A1",)) for n in range(5)),
        ]
    )
    text = page.page(areas, found)
    assert "2\nrows, named by 6 tests" in text
    assert "- [Of tools](#of-tools): A1 to A2" in text
    names = "<br>".join(f"`tests/test_b.py::test_{n}`" for n in (4, 3, 2, 1))
    assert f"| A1 | They are called. | {names}<br>and 2 more |" in text
    assert "| A2 | They say a \\| b. | `tests/test_a.py::test_other` |" in text


def test_row_numbers_have_no_gaps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The marks of a removed row would later refer to another one."""
    path = tmp_path / "rows.toml"
    path.write_text(ROWS.replace("A2", "A3"))
    with pytest.raises(ValueError, match="A2 should stand where A3 is"):
        page.areas(path)
    areas = page.areas
    monkeypatch.setattr(program, "read", lambda *_: Found())
    monkeypatch.setattr(page, "areas", lambda: areas(path))
    assert main([]) == 1
    assert capsys.readouterr().out == "rows.toml: A2 should stand where A3 is\n"


def test_an_outdated_page_is_reported_and_can_be_rewritten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The message contains the command that writes it."""
    firsts = {test for area in page.areas() for test in area.first.values()}
    rows = tuple(row for area in page.areas() for row in area.rows)
    marked = Found([Mark(test=test, line=1, rows=rows) for test in firsts])
    monkeypatch.setattr(program, "read", lambda *_: marked)
    monkeypatch.setattr(page, "PAGE", tmp_path / "requirements.md")
    assert main([]) == 1
    assert STALE in capsys.readouterr().out
    assert main(["--write"]) == 0
    assert main([]) == 0


def test_all_tests_of_a_row_can_be_listed(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The page has no room for all of them."""
    marked = [Mark(test=f"t.py::test_{row}", line=1, rows=(row, "A1")) for row in ("F36", "F37")]
    monkeypatch.setattr(program, "read", lambda *_: Found(marked))
    assert main(["--row", "F36"]) == 0
    assert capsys.readouterr().out == "t.py::test_F36\n"
