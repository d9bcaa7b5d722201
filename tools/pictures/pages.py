"""Screenshots of web pages, taken with a headless browser."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any, Literal

from playwright.sync_api import Error, expect, sync_playwright

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from pathlib import Path

    from playwright.sync_api import Browser, Locator, Page

__all__ = ["browser", "playground", "timeline", "web", "web_tree"]

_SCHEMES: tuple[Literal["light", "dark"], ...] = ("light", "dark")
_PATIENCE = 20_000
_HELD = """

class _Paced:
    \"\"\"Replace asyncio and pause at the ninth cake, for the picture.\"\"\"

    slept = 0

    @classmethod
    async def sleep(cls, seconds: float) -> None:
        cls.slept += 1
        await asyncio_itself.sleep(60 if cls.slept == 10 else seconds)


asyncio_itself, asyncio = asyncio, _Paced
"""
# Durations are replaced or rounded, and clocks stop, so that the picture is the same the next time.
_SETTLE = """(times) => {
  for (let clock = setInterval(() => {}, 1e9); clock > 0; clock--) clearInterval(clock);
  const places = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let place = places.nextNode(); place; place = places.nextNode())
    place.data = place.data.replace(/^(\\d+\\.\\d+) s$/, (_, number) =>
      times.shift() ?? `${Number(number).toFixed(1)} s`);
}"""


@contextlib.contextmanager
def browser() -> Generator[Browser]:
    """Start the installed Chromium.

    Raises:
        FileNotFoundError: Chromium is not installed.
    """
    found = shutil.which("chromium") or shutil.which("chromium-browser")
    if found is None:
        raise FileNotFoundError("Chromium is not installed. Install it: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


def playground(with_: Browser, stage: Path, folder: Path) -> dict[str, bytes]:
    """Take a picture of the playground during a run.

    Args:
        with_: The browser.
        stage: The file of the bakery.
        folder: The folder for a copy of it that pauses in the middle.
    """
    source = stage.read_text(encoding="utf-8")
    (folder / "bakery.py").write_text(source + _HELD, encoding="utf-8")
    with _playing(folder, "bakery.py") as url, _page(with_, 1360, 700) as page:
        _send(page, url, "Baker", "bake 12 cake")
        expect(page.get_by_text("9 of 12")).to_be_visible(timeout=_PATIENCE)
        page.evaluate("document.activeElement.blur()")
        return _pictures(page, page, "playground", times=("1.9 s", "1.8 s"))


def timeline(with_: Browser, stage: Path) -> dict[str, bytes]:
    """Take a picture of the timeline of a finished run."""
    with _playing(stage.parent, stage.name) as url, _page(with_, 1360, 410) as page:
        _send(page, url, "Planner", "Plan three nights in Rome for two.")
        expect(page.get_by_text("Take the 08:12").first).to_be_visible(timeout=_PATIENCE)
        page.get_by_role("tab", name="Timeline").click()
        page.locator(".timeline button", has_text="search_hotels").hover()
        return _pictures(page, page.get_by_role("region", name="Runs"), "timeline")


def web(with_: Browser, stage: Path, folder: Path) -> dict[str, bytes]:
    """Take a picture of the page of an example during a call.

    Args:
        with_: The browser.
        stage: The file of the example.
        folder: The folder for a copy of it that pauses in the middle.
    """
    source = stage.read_text(encoding="utf-8")
    held = source.replace("asyncio.sleep(0.3)", "asyncio.sleep(60 if done == 5 else 0.01)")
    if held == source:
        raise ValueError(
            f"{stage.name} has no 'asyncio.sleep(0.3)' to pause at. Update this function."
        )
    (folder / stage.name).write_text(held, encoding="utf-8")
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, stage.name, str(port)]
    with _serving(command, folder), _page(with_, 400, 110) as page:
        _reach(page, f"http://127.0.0.1:{port}/")
        page.get_by_role("button").click()
        expect(page.locator("progress")).to_have_js_property("value", 4, timeout=_PATIENCE)
        expect(page.locator("li")).to_have_count(1, timeout=_PATIENCE)
        return {"web-page.png": page.screenshot(animations="disabled", caret="hide")}


def web_tree(with_: Browser, stage: Path) -> dict[str, bytes]:
    """Take a picture of the page of an example that waits for an approval.

    Args:
        with_: The browser.
        stage: The file of the example.
    """
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    command = [sys.executable, stage.name, str(port)]
    with _serving(command, stage.parent), _page(with_, 620, 480) as page:
        _reach(page, f"http://127.0.0.1:{port}/")
        page.get_by_role("button").click()
        expect(page.get_by_role("button", name="Approve")).to_be_visible(timeout=_PATIENCE)
        page.evaluate("document.activeElement.blur()")
        return _pictures(page, page, "web-tree", times=("3.1 s", "3.1 s", "3.0 s"))


def _reach(page: Page, url: str) -> None:
    """Open a page, and try again while its server is starting."""
    for _ in range(100):
        with contextlib.suppress(Error):
            page.goto(url)
            return
        page.wait_for_timeout(100)
    raise TimeoutError(f"{url} does not respond.")


@contextlib.contextmanager
def _page(with_: Browser, width: int, height: int) -> Generator[Page]:
    context = with_.new_context(
        viewport={"width": width, "height": height},
        reduced_motion="reduce",
    )
    try:
        yield context.new_page()
    finally:
        context.close()


def _send(page: Page, url: str, agent: str, message: str) -> None:
    """Send a message to an agent of the playground."""
    page.goto(url)
    page.locator(".entry", has=page.get_by_text(agent, exact=True)).click()
    page.get_by_role("textbox", name="Message").fill(message)
    page.keyboard.press("Control+Enter")


def _pictures(
    page: Page, of: Page | Locator, name: str, times: Sequence[str] = ()
) -> dict[str, bytes]:
    """Take pictures of a page, or a part of it, in light and dark colors.

    Args:
        page: The page.
        of: The part of the page.
        name: The first part of the file names.
        times: Durations that replace the first measured ones.
    """
    taken: dict[str, bytes] = {}
    for scheme in _SCHEMES:
        page.emulate_media(color_scheme=scheme)
        page.evaluate(_SETTLE, list(times))
        taken[f"{name}-{scheme}.png"] = of.screenshot(animations="disabled", caret="hide")
    return taken


@contextlib.contextmanager
def _playing(folder: Path, target: str) -> Generator[str]:
    command = [sys.executable, "-m", "agents_tools.cli", "dev", target]
    options = ["--no-open", "--no-history", "--json", "--port", "0"]
    with _serving([*command, *options], folder) as line:
        started: Any = json.loads(line)
        yield started["url"]


@contextlib.contextmanager
def _serving(command: Sequence[str], folder: Path) -> Generator[str]:
    """Start a server and return the first line of its output, which has the address."""
    with subprocess.Popen(
        command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        try:
            assert process.stdout is not None  # noqa: S101 - asked for above
            yield process.stdout.readline().strip()
        finally:
            process.terminate()
