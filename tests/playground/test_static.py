"""The files of the page: small, from nowhere else, and fit for a strict content policy."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
from pathlib import Path

import pytest

import agents_tools.playground

STATIC = Path(agents_tools.playground.__file__).parent / "static"
SCRIPTS = sorted(STATIC.glob("*.js"))
TEXTS = [path for path in sorted(STATIC.iterdir()) if path.suffix in {".html", ".css", ".js"}]
NAMESPACE = re.compile(r"http://www\.w3\.org/(?:2000/svg|1998/Math/MathML|1999/xhtml)")


def test_vendored_module_is_the_one_that_was_built() -> None:
    """What nobody reads must not change unnoticed: its hash, versions and licences are on file."""
    facts = json.loads((STATIC / "vendor.json").read_text())
    code = (STATIC / "vendor.js").read_bytes()
    licences = (STATIC / "LICENSES.txt").read_text()

    assert hashlib.sha256(code).hexdigest() == facts["sha256"]
    for package in facts["packages"]:
        named = f"{package['name']} {package['version']}"
        assert f"{named} ({package['license']})" in code.splitlines()[0].decode()
        assert named in licences


def test_scripts_stay_small() -> None:
    """The whole page is smaller than any form library; each kilobyte more is a decision."""
    vendor = len(gzip.compress((STATIC / "vendor.js").read_bytes(), 9))
    own = b"".join(path.read_bytes() for path in SCRIPTS if path.name != "vendor.js")

    assert vendor < 10_000
    assert len(gzip.compress(own, 9)) < 36_000


@pytest.mark.parametrize("path", TEXTS, ids=lambda path: path.name)
def test_nothing_is_fetched_from_elsewhere(path: Path) -> None:
    """The page works offline and tells nobody that it is used."""
    text = NAMESPACE.sub("", path.read_text())

    assert re.findall(r"""(?:https?:)?//[\w-]+\.\w[^\s"']*""", text) == []
    assert "@import" not in text


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_scripts_set_text_as_text(path: Path) -> None:
    """What tools and models say is shown and never run, whatever is in it."""
    text = path.read_text()
    if path.name == "vendor.js":  # the library sets what its `dangerouslySetInnerHTML` is given
        text = text.replace("innerHTML", "", text.count("innerHTML"))

    for word in (
        r"innerHTML",
        r"insertAdjacentHTML",
        r"document\.write",
        r"\beval\(",
        r"new Function",
    ):
        assert re.search(word, text, re.IGNORECASE) is None or path.name == "vendor.js"


def test_page_keeps_to_its_content_policy() -> None:
    """Inline scripts, styles and handlers would be refused by the browser."""
    text = (STATIC / "index.html").read_text()

    assert re.findall(r"<script(?![^>]*\ssrc=)", text) == []
    assert re.findall(r"<style|\sstyle=|\son\w+=|javascript:", text) == []


def test_modules_import_only_each_other() -> None:
    """Each import is a file that is there; there is nothing to install and nothing to build."""
    for path in SCRIPTS:
        for name in re.findall(r"""(?:^|\n)import [^;]*?from ["']([^"']+)["']""", path.read_text()):
            assert name.startswith("./"), f"{path.name}: {name}"
            assert (STATIC / name).is_file(), f"{path.name}: {name}"
