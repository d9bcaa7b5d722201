"""The site of the docs: a recorded run, the buttons that copy commands, and the reference."""

from __future__ import annotations

import functools
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

sync_api = pytest.importorskip("playwright.sync_api")
ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.external("chromium"), pytest.mark.timeout(300)]


class _Handler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Print nothing."""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Build the site, serve it, and return its address."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--site-dir", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True)  # noqa: S603 - our own words
    handler = functools.partial(_Handler, directory=str(folder))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("decision", "output"),
    [("Approve", "40 kg of flour come on Friday"), ("Reject", "A person refused this call")],
)
def test_a_recorded_run_is_shown_at_its_own_pace(site: str, decision: str, output: str) -> None:
    """The tree grows, waits for a decision, and continues with the recording of that decision."""
    from tools.pictures.pages import browser

    with browser() as chromium:
        page = chromium.new_page()
        errors: list[object] = []
        page.on("pageerror", lambda error: errors.append(error))  # noqa: PLW0108 - it needs a function
        page.goto(f"{site}/try-it/")
        expect = sync_api.expect
        for _ in range(2):  # also a second time
            page.get_by_role("button", name="Plan the weekend").click()
            run = page.locator("#run")
            expect(run.get_by_text("of 30")).to_be_visible()
            expect(run.get_by_role("button", name=decision)).to_be_visible(timeout=20_000)
            run.get_by_role("button", name=decision).click()
            expect(run.get_by_text("The flour comes on Friday").first).to_be_visible()
            expect(run.get_by_text(output).first).to_be_attached()  # in a folded call
        assert errors == []


def test_the_copy_button_copies_commands_without_prompts_and_output(site: str) -> None:
    """A reader pastes what the button copies into a shell."""
    from tools.pictures.pages import browser

    with browser() as chromium:
        context = chromium.new_context(permissions=["clipboard-read", "clipboard-write"])
        page = context.new_page()
        page.goto(f"{site}/tutorial/")
        block = page.locator(".language-console", has_text="error:").first
        shown = block.locator("code").inner_text().splitlines()
        commands = [line.removeprefix("$ ") for line in shown if line.startswith("$ ")]
        assert 0 < len(commands) < len(shown)
        block.hover()
        block.locator("[data-clipboard-target]").click()
        page.wait_for_function("navigator.clipboard.readText().then(text => text.length > 0)")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.splitlines() == commands


def test_the_example_in_the_reference_is_one_block_of_code(site: str) -> None:
    """The docstring in the example has a section, which is not one of the function."""
    from tools.pictures.pages import browser

    with browser() as chromium:
        page = chromium.new_page()
        page.goto(f"{site}/reference/tools/")
        example = page.locator("pre", has_text="async def fetch_weather").first
        sync_api.expect(example).to_contain_text("location: The location to fetch the weather for.")
        assert page.get_by_text("```").count() == 0
        table = page.locator("table", has_text="name_override").first
        assert table.get_by_text("location", exact=True).count() == 0


WORDS = {
    "abort": "explanation/timeouts-and-cancellation",
    "human in the loop": "how-to/approvals",
    "websocket": "how-to/stream-to-the-web",
    "flask": "how-to/stream-to-the-web",
    "cors": "how-to/web-routes",
    "jwt": "how-to/stream-to-the-web",
    "memory": "how-to/sessions",
    "upload file": "how-to/media-input",
    "breakpoint": "how-to/test-tools",
    "jupyter": "how-to/watch-on-a-console",
    "langfuse": "how-to/trace-and-log",
    "dataclass": "how-to/describe-parameters",
    "gemini": "how-to/choose-a-model",
    "web search": "how-to/hosted-tools",
    "json mode": "how-to/structured-output",
    "cron": "how-to/command-line",
}
"""What visitors type, and the page that helps them."""


def test_the_search_finds_the_words_of_visitors(site: str) -> None:
    """The page is one of the first five; guides rank before lists of names."""
    from tools.pictures.pages import browser

    with browser() as chromium:
        page = chromium.new_page()
        page.goto(site)
        box = page.locator(".md-search__input")
        box.click()
        for words, wanted in WORDS.items():
            box.fill(words)
            box.press("End")  # the search listens to keys
            page.wait_for_function(
                """wanted => [...document.querySelectorAll(".md-search-result__item")].slice(0, 5)
                  .some(item => item.querySelector("a").pathname.includes(wanted))""",
                arg=wanted,
                timeout=20_000,
            )
