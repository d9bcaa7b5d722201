"""Keeps the imports of targets out of the other tests, and starts a browser."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from tests.programs import CHROMIUM

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser


@pytest.fixture(autouse=True)
def _leave_imports_alone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("agents_tools_target_", "sample")):
            del sys.modules[name]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Start one browser without a profile for the tests of a module.

    It owns an event loop, so it is closed with the module.
    """
    sync_api = pytest.importorskip("playwright.sync_api")
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()
