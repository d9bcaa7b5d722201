"""The description of the package is what a package index can show."""

from __future__ import annotations

import io
import re

import pytest

from tests.release.venvs import ROOT

pytest.importorskip("hatchling")
markdown = pytest.importorskip("readme_renderer.markdown")


@pytest.mark.external
@pytest.mark.parametrize("source", [None, "https://code.example/agents-tools/"])
def test_a_package_index_shows_the_readme_with_links_that_work(source: str | None) -> None:
    """The index renders Markdown itself, and resolves no relative link."""
    from tools.package_readme import package_readme

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    errors = io.StringIO()
    html = markdown.render(package_readme(readme, source, "1.2.3"), stream=errors)
    assert html is not None, errors.getvalue()
    links = re.findall(r'(?:href|src)="([^"]+)"', html)
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    expected = {
        "https://code.example/agents-tools/raw/v1.2.3/docs/images/live.svg",
        "https://code.example/agents-tools/blob/v1.2.3/docs/how-to/command-line.md#talk-to-an-agent",
    }
    assert expected.issubset(links) == (source is not None)
    assert html.count("<pre") == readme.count("\n```\n")
    assert html.count("<table>") == len(re.findall(r"^\|[-: |]+\|$", readme, re.MULTILINE))
    assert "](" not in re.sub(r"<pre.*?</pre>", "", html, flags=re.DOTALL)
