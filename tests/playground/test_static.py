"""The files of the page: small, self-contained, and compatible with a strict content policy."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path
from urllib.parse import unquote

import pytest

import agents_tools.playground

STATIC = Path(agents_tools.playground.__file__).parent / "static"
SOURCES = Path(__file__).parents[2] / "tools" / "playground" / "src"
LOGOS = Path(__file__).parents[2] / "docs" / "images"
SCRIPTS = sorted(STATIC.glob("*.js"))
TEXTS = [path for path in sorted(STATIC.iterdir()) if path.suffix in {".html", ".css", ".js"}]
NAMESPACE = "http://www.w3.org/2000/svg"
MOST = 60_000
"""How many bytes all scripts of the page may have, as gzip sends them."""


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_script_matches_its_recorded_hash() -> None:
    """Minified code is not reviewed, so changes must be noticed; it also has a licence."""
    facts = json.loads((STATIC / "app.json").read_text())

    assert [path.name for path in SCRIPTS] == [facts["file"]]
    assert _sha256(STATIC / facts["file"]) == facts["sha256"]
    first = (STATIC / facts["file"]).read_text().partition("\n")[0]
    assert re.fullmatch(rf"/\*! .*\({facts['license']}\)\. .*\*/", first)
    assert facts["others_code"] == []


@pytest.mark.skipif(not SOURCES.is_dir(), reason="the sources of the page are not here")
def test_script_was_built_from_these_sources() -> None:
    """After changing a source, run `npm run build` in tools/playground."""
    facts = json.loads((STATIC / "app.json").read_text())

    assert {path.name: _sha256(path) for path in SOURCES.glob("*.js")} == facts["sources"]
    root = SOURCES.parents[2]
    assert {name: _sha256(root / name) for name in facts["shared"]} == facts["shared"]


def test_scripts_stay_small() -> None:
    """The whole page is smaller than any form library; raise the limit deliberately."""
    assert sum(len(gzip.compress(path.read_bytes(), 9)) for path in SCRIPTS) < MOST


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_is_fetched_from_other_hosts(path: Path) -> None:
    """The page works offline and does not reveal its use."""
    text = path.read_text().replace(NAMESPACE, "")

    assert re.findall(r"""(?:https?:)?//[\w-]+\.\w[^\s"']*""", text) == []
    assert re.findall(r"@import|sourceMappingURL|\bimport\b", text) == []


@pytest.mark.parametrize(
    "word",
    [
        r"innerHTML",
        r"outerHTML",
        r"insertAdjacentHTML",
        r"createContextualFragment",
        r"DOMParser",
        r"document\.write",
        r"\beval\(",
        r"\bFunction\(",
        r"set(?:Timeout|Interval)\(\s*[\"'`]",
    ],
)
def test_scripts_set_text_as_text(word: str) -> None:
    """Text of tools and models is never executed."""
    for path in SCRIPTS:
        assert re.search(word, path.read_text(), re.IGNORECASE) is None, path.name


def test_page_complies_with_its_content_policy() -> None:
    """The browser would block inline scripts, styles and handlers."""
    text = (STATIC / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", text) == []
    for name in re.findall(r"""(?:src|href)="static/([^"]+)\"""", text):
        assert (STATIC / name).is_file()


@pytest.mark.skipif(not LOGOS.is_dir(), reason="the pictures of the docs are not here")
def test_the_mark_is_drawn_alike_everywhere() -> None:
    """It is in the page twice, because an icon that is a file would be one more request."""
    logo = (LOGOS / "logo.svg").read_text()
    shapes = re.findall(r' d="([^"]+)"', logo)
    assert len(shapes) == 2
    white = (LOGOS / "logo-white.svg").read_text()
    icon = unquote((STATIC / "index.html").read_text())
    script = (STATIC / "app.js").read_text()
    for shape in shapes:
        assert shape in white
        assert f"d='{shape}'" in icon
        assert shape in script
