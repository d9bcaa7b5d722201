"""How large the tests are: reduced in `make test`, full in the long part of `make test-all`."""

from __future__ import annotations

import os
from typing import Any

import pytest

__all__ = ["IS_FULL", "LARGE", "slow_case"]

IS_FULL = os.environ.get("AGENTS_TOOLS_TESTS") == "full"
"""Whether tests marked `scaled` run every case, and property tests many examples."""
LARGE = 1 << (20 if IS_FULL else 17)
"""The characters of a text whose processing has to take linear time."""


def slow_case(*values: Any, id: str | None = None) -> Any:
    """Return a row of `parametrize` that only `make test-all` runs."""
    return pytest.param(*values, id=id, marks=pytest.mark.slow)
