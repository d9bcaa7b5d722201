"""Add the client for web pages to the site of the docs, and rank the results of its search."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.pages import Page

_CLIENT = Path(__file__).parents[1] / "agents_tools" / "ui" / "client"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the client, its components and their styles."""
    for name in ("client.js", "standalone.js", "style.css"):
        content = (_CLIENT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"client/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Page, **_: object) -> str:
    """Let the search show guides before lists of names, which contain most words more often."""
    folder = page.file.src_uri.partition("/")[0]
    boost = {"reference": 0.3, "how-to": 1.5}.get(folder, 1.0)
    page.meta.setdefault("search", {"boost": boost})
    return markdown
