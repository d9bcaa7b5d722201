"""Whether DBOS works with the SQLite of this Python."""

from __future__ import annotations

import sqlite3
import sys

import pytest

__all__ = ["needs_dbos_on_sqlite"]

WORKS = sys.version_info < (3, 12) or sqlite3.sqlite_version_info >= (3, 42)
needs_dbos_on_sqlite = pytest.mark.skipif(
    not WORKS, reason="from Python 3.12 on DBOS needs an SQLite of 3.42"
)
