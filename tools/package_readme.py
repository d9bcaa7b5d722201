"""Make the description of the package from README.md, when the package is built.

A package index shows the text away from its repository, so relative links lead nowhere there. They
become links to `Source` of `[project.urls]`, at the tag of the version. Without that address, the
text keeps the words of the links and has no pictures.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_CODE = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?P<mark>!?)\[(?P<text>[^\]]*)\]\((?!\w+:|#)(?P<path>[^)]+)\)")


class PackageReadme(MetadataHookInterface):
    """Fills in the dynamic field `readme`; see `[tool.hatch.metadata.hooks.custom]`."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the description of the package."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        source = metadata.get("urls", {}).get("Source")
        metadata["readme"] = {
            "content-type": "text/markdown",
            "text": package_readme(text, source, metadata["version"]),
        }


def package_readme(text: str, source: str | None, version: str) -> str:
    """Return the text of README.md without relative links.

    Args:
        text: The text of README.md.
        source: The address of the repository; `None` if there is none.
        version: The version of the package.
    """

    def replace(link: re.Match[str]) -> str:
        mark, words, path = link["mark"], link["text"], link["path"]
        if source is None:
            return "" if mark else words
        kind = "raw" if mark else "blob"
        return f"{mark}[{words}]({source.rstrip('/')}/{kind}/v{version}/{path})"

    parts = _CODE.split(text)
    parts[::2] = [_LINK.sub(replace, part) for part in parts[::2]]
    return "".join(parts)
