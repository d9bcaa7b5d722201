"""How large the tests are: reduced in `make test`, full in the long part of `make test-all`."""

from __future__ import annotations

import os

__all__ = ["IS_FULL", "LARGE"]

IS_FULL = os.environ.get("AGENTS_TOOLS_TESTS") == "full"
"""Whether tests marked `scaled` run every case, and property tests many examples."""
LARGE = 1 << (20 if IS_FULL else 17)
"""The characters of a text whose processing has to take linear time."""
