"""The folders of the user for files that the library keeps between programs."""

from __future__ import annotations

import os
import sys
from pathlib import Path

__all__ = ["state_folder"]


def state_folder() -> Path:
    """Return the folder for the state of the library, by the conventions of the system."""
    state_home = Path(os.environ.get("XDG_STATE_HOME") or ".")
    if state_home.is_absolute():  # the specification says to ignore a relative path
        base = state_home
    elif sys.platform == "win32":
        base = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    elif sys.platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path.home() / ".local" / "state"
    return base / "agents-tools"
