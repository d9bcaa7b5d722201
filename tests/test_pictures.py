"""The pictures of the documentation: there, told in words, small, and what the programs show."""

from __future__ import annotations

import re
import sys
import tomllib
import xml.etree.ElementTree as ET
from itertools import pairwise
from typing import TYPE_CHECKING

import pytest

from tests.docs_runner import ROOT
from tools.pictures import drawings

if TYPE_CHECKING:
    from pathlib import Path

IMAGES = ROOT / "docs" / "images"
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_MARKDOWN = re.compile(r"!\[(?P<alt>[^\]]*)\]\((?P<file>[^)#\s]+)(?:#[\w-]+)?\)")
_HTML = re.compile(r"<(?:img|source)\b[^>]*>", re.DOTALL)
_CODE = re.compile(r"^( *)```.*?^\1```", re.DOTALL | re.MULTILINE)
_FOREIGN = re.compile(r"""(?:href|src)\s*=\s*["'](?!\#)|url\((?!\s*["']?\#)|@import|<!ENTITY""")
_LARGEST = 300_000
_BADGES = re.compile(r"^https://")


def shown_on(page: Path) -> list[tuple[str, str | None]]:
    """Give each picture of a page with the words that stand for it; `None` for another source."""
    text = _CODE.sub("", page.read_text(encoding="utf-8"))
    shown: list[tuple[str, str | None]] = [
        (found["file"], found["alt"]) for found in _MARKDOWN.finditer(text)
    ]
    for tag in _HTML.findall(text):
        told = dict(re.findall(r'([a-z]+)="([^"]*)"', tag))
        file = told.get("src") or told["srcset"]
        shown.append((file, told.get("alt", "") if tag.startswith("<img") else None))
    return [(file, alt) for file, alt in shown if not _BADGES.match(file)]


SHOWN = [(page, file, alt) for page in PAGES for file, alt in shown_on(page)]


@pytest.mark.parametrize(
    ("page", "file", "alt"), SHOWN, ids=[f"{page.stem}-{file}" for page, file, _ in SHOWN]
)
def test_a_picture_is_there_is_small_and_told_in_words(
    page: Path, file: str, alt: str | None
) -> None:
    """Who cannot see it reads its words; who is on a train does not wait for it."""
    picture = page.parent / file
    assert picture.is_file()
    assert picture.stat().st_size < _LARGEST
    assert alt is None or len(alt.split()) >= 3


def test_every_picture_stands_on_a_page() -> None:
    """A picture that nobody shows is one that nobody looks at when it grows old."""
    shown = {(page.parent / file).resolve() for page, file, _ in SHOWN}
    assert {file for file in IMAGES.iterdir() if file.resolve() not in shown} == set()


def test_pictures_in_light_and_in_dark_come_together() -> None:
    """A page in dark colours has a picture in dark colours."""
    names = {file.name for file in IMAGES.iterdir()}
    assert {name for name in names if "-light." in name} == {
        name.replace("-dark.", "-light.") for name in names if "-dark." in name
    }


@pytest.mark.parametrize("file", sorted(IMAGES.glob("*.svg")), ids=lambda file: file.name)
def test_a_drawing_runs_nothing_and_asks_nobody(file: Path) -> None:
    """A drawing is looked at on other sites, too: it holds no program and no foreign address."""
    text = file.read_text(encoding="utf-8")
    tags = {element.tag.rpartition("}")[2] for element in ET.fromstring(text).iter()}  # noqa: S314 - ours
    assert tags.isdisjoint({"script", "foreignObject", "image", "use", "a", "set", "animate"})
    assert not re.search(r"\bon\w+=", text)
    assert _FOREIGN.findall(text) == []


@pytest.mark.parametrize("harm", ['<a href="https://x.example"/>', "url(https://x.example/f.woff)"])
def test_a_foreign_address_would_be_found(harm: str) -> None:
    """The law above finds what it looks for."""
    assert _FOREIGN.search(harm)


@pytest.mark.parametrize("scheme", list(drawings.SCHEMES))
def test_drawings_are_what_the_program_draws(scheme: str) -> None:
    """`python -m tools.pictures` was run after the last change to a drawing."""
    for name, draw in (("call", drawings.call), ("layers", drawings.layers)):
        kept = (IMAGES / f"{name}-{scheme}.svg").read_text(encoding="utf-8")
        assert kept == draw(scheme)


def _ranks() -> dict[str, int]:
    """Give the layer of each module, from high to low, as the linter of imports holds it."""
    told = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    contract = told["tool"]["importlinter"]["contracts"][0]
    return {
        module: rank
        for rank, layer in enumerate(contract["layers"])
        for module in re.findall(r"\w+", layer)
    }


def test_the_layers_in_the_drawing_are_those_that_the_linter_holds() -> None:
    """What the picture says about imports is what is enforced: no row imports one above it."""
    ranks = _ranks()
    rows = [row for _, group in drawings.LAYERS for row in group]
    for above, below in pairwise(rows):
        assert max(ranks[module] for module in above) <= min(ranks[module] for module in below)


def test_the_layers_in_the_table_are_those_that_the_linter_holds() -> None:
    """The page on architecture names every module that can be imported, from high to low."""
    ranks = _ranks()
    page = (ROOT / "docs" / "explanation" / "architecture.md").read_text(encoding="utf-8")
    table = page.partition("| layer | what is there |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", table, re.MULTILINE)
    rows = [[name.strip("/") for name in re.findall(r"`([^`]+)`", cell)] for cell in cells]
    assert [name for row in rows for name in row if name not in ranks] == []
    for above, below in pairwise(rows):
        assert max(ranks[name] for name in above) <= min(ranks[name] for name in below), below
    named = {name for row in rows for name in row}
    assert {name for name in ranks if not name.startswith("_")} - named == set()


@pytest.mark.skipif(sys.platform == "win32", reason="takes a terminal as Unix has it")
def test_the_picture_of_a_bad_call_is_what_the_command_line_shows() -> None:
    """The words in the picture are those that a reader will see."""
    pytest.importorskip("playwright")
    from tools.pictures.__main__ import bad_call

    (drawn,) = bad_call().values()
    kept = (IMAGES / "terminal-call.svg").read_text(encoding="utf-8")
    assert drawn == kept
