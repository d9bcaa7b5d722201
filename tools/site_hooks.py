"""Add the client for web pages to the site of the docs, for the page that shows a recorded run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from mkdocs.structure.files import File, Files

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig

_CLIENT = Path(__file__).parents[1] / "agents_tools" / "ui" / "client"


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add `client/standalone.js` and its styles."""
    for name in ("standalone.js", "style.css"):
        content = (_CLIENT / name).read_text(encoding="utf-8")
        files.append(File.generated(config, f"client/{name}", content=content))
    return files
