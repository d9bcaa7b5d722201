"""The programs that tests marked `external` need and pip does not install."""

from __future__ import annotations

import os
import shutil
from functools import cache
from pathlib import Path

__all__ = ["CHROMIUM", "find", "missing"]

_NAMES = {"chromium": ("chromium", "chromium-browser", "google-chrome")}
_ALSO_IN = os.pathsep.join(("/usr/local/sbin", "/usr/sbin", "/sbin"))


@cache
def find(program: str) -> str | None:
    """Return the path of a program, or None where it is not installed."""
    if program == "postgres":
        return next(map(str, sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))), None)
    for name in _NAMES.get(program, (program,)):
        if found := shutil.which(name) or shutil.which(name, path=_ALSO_IN):
            return found
    return None


def missing(program: str) -> str | None:
    """Return the reason to skip a test that needs a program; None if the program is there."""
    return None if find(program) else f"{program} is not installed"


CHROMIUM = find("chromium")
