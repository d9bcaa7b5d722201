"""Rules about annotations: hints that contradict what a tool does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from agents_tools.toolset.lint.names import name_parts

if TYPE_CHECKING:
    from collections.abc import Iterator

    from agents_tools.toolset.lint.finding import Subject

__all__ = ["check_annotations"]

_DESTROYS = frozenset(
    re.findall(
        r"\w+",
        "cancel clear delete destroy drop erase kill overwrite purge remove reset revoke "
        "terminate truncate uninstall wipe",
    )
)
_WRITES = _DESTROYS | frozenset(
    re.findall(
        r"\w+",
        "add append approve archive assign book buy close commit create deploy disable edit enable "
        "insert install merge modify move patch pay post publish push put rename replace restart "
        "save schedule send set submit transfer update upload upsert write",
    )
)
_COMPUTES = {("add",), ("add", "up"), ("add", "numbers")}
"""The beginnings of names that say that something is computed."""


def check_annotations(subject: Subject) -> Iterator[tuple[str, str]]:
    """Report annotations that contradict the name of the tool.

    Args:
        subject: The tool.
    """
    hints = subject.tool.annotations
    parts = name_parts(subject.name)
    if hints is None or not parts:
        return
    verb = parts[0]
    if hints.readOnlyHint and verb in _WRITES and tuple(parts[:2]) not in _COMPUTES:
        message = f"is marked read-only, but its name says that it changes something ({verb})"
        yield "unsafe-annotation", f"{message}: clients run read-only tools without asking"
    elif not hints.destructiveHint and verb in _DESTROYS:
        message = f"is marked as not destructive, but its name says that it is ({verb})"
        yield "unsafe-annotation", f"{message}: clients ask before destructive calls only"
