"""The page of `agents-tools dev` in a process, and what its tests do with it."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Generator

    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
BAKERY = ROOT / "examples" / "playground" / "bakery.py"
SHOTS = os.environ.get("AGENTS_TOOLS_SHOTS")
"""A folder for pictures of what is tested; none by default."""
DESKTOP, PHONE = {"width": 1400, "height": 900}, {"width": 390, "height": 844}
PATIENCE = 30_000
RULES = {
    "runOnly": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
    "resultTypes": ["violations"],
}


def _expect(locator: Any) -> Any:
    from playwright.sync_api import expect

    return expect(locator)


@contextlib.contextmanager
def dev(folder: Path, *words: str) -> Generator[str]:
    """Run `dev` in a folder, with `bakery.py` by default; yield the address of the page."""
    env = {
        **os.environ,
        "XDG_STATE_HOME": str(folder / "state"),
        "PYTHONPATH": os.pathsep.join([str(ROOT), *sys.path]),
    }
    command = [
        sys.executable,
        "-m",
        "agents_tools",
        "dev",
        *(words or ("bakery.py",)),
        "--port",
        "0",
        "--json",
    ]
    with subprocess.Popen(  # noqa: S603 - our own
        command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
            assert line, process.communicate()
            yield json.loads(line)["url"]
            process.send_signal(signal.SIGINT)
            _, err = process.communicate(timeout=30)
            assert (process.returncode, "Traceback" in err) == (0, False), err
        finally:
            if process.poll() is None:
                process.kill()


@contextlib.contextmanager
def opened(browser: Browser, url: str, size: dict[str, int] = DESKTOP) -> Generator[Page]:
    """Open the page; any message in the console of the browser fails the test."""
    viewport: Any = size
    context = browser.new_context(viewport=viewport, reduced_motion="reduce")
    context.set_default_timeout(PATIENCE)
    told: list[str] = []
    try:
        page = context.new_page()
        page.on("console", lambda message: told.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: told.append(str(error)))
        page.goto(url)
        _expect(page.get_by_role("heading", level=1)).to_be_visible(timeout=PATIENCE)
        yield page
        for word in ("NaN", "undefined", "[object Object]"):
            _expect(page.locator("body")).not_to_contain_text(word)
        told = [line for line in told if not line.startswith("info: ")]
        assert [line for line in told if "(Unprocessable Entity)" not in line] == []
    finally:
        context.close()


def save_screenshot(page: Page, name: str) -> None:
    if SHOTS:
        page.screenshot(path=f"{SHOTS}/{name}.png")


def choose(page: Page, name: str) -> None:
    """Choose a tool or an agent."""
    page.locator(".entry", has=page.get_by_text(name, exact=True)).click()


def message(page: Page) -> Any:
    """Return the field for a message to an agent."""
    return page.get_by_role("textbox", name="Message", exact=True)


def result(page: Page) -> Any:
    return page.get_by_role("region", name="Result")


def seen(locator: Any, text: str | re.Pattern[str]) -> None:
    _expect(locator).to_contain_text(text, timeout=PATIENCE)


def violations(page: Page, rules: Any = RULES) -> list[str]:
    """Return the violations that axe finds in the current page."""
    import pytest

    axe: Any = pytest.importorskip("axe_playwright_python.base")
    if page.evaluate("typeof axe") == "undefined":
        page.evaluate(axe.AXE_SCRIPT)
    found = page.evaluate("async (options) => (await axe.run(options)).violations", rules)
    return [f"{one['id']}: {node['html'][:160]}" for one in found for node in one["nodes"]]
