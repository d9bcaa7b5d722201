"""How long the page of the playground blocks its browser: `python -m tests.benchmarks.playground`.

For each row, in milliseconds: the longest task of the main thread by its processor time and by the
clock, from a trace of Chromium. On a busy machine, the clock includes the time of other programs. The
tasks in which the test asks the page are left out. A page feels quick below 100 ms.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from playwright.sync_api import expect, sync_playwright

from tests.benchmarks.tables import markdown
from tests.playground.real_page import choose, dev
from tests.programs import CHROMIUM

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

PATIENCE = 120_000
TARGET = '''
from agents_tools import Agent, NotifyStreamEvent, ToolProgressEvent, function_tool, streaming_tool
from agents_tools.testing import ScriptedModel, tool_call


@streaming_tool
async def output():
    """Write 10 MB in pieces."""
    for _ in range(1_280):
        yield NotifyStreamEvent("0123456789abcde\\n" * 512, is_delta=True)
    yield "written"


@function_tool
def text() -> str:
    """Return 10 MB."""
    return "0123456789abcde\\n" * 655_360


@function_tool
def rows() -> list[dict[str, int]]:
    """Return 5,000 rows."""
    return [{"number": number, "square": number * number} for number in range(5_000)]


@streaming_tool
async def notes():
    """Write 5,000 notes."""
    for number in range(5_000):
        yield NotifyStreamEvent(f"note {number}")
        if number % 10 == 0:
            yield ToolProgressEvent(number, total=5_000)
    yield "noted"


@function_tool
def leaf(number: int) -> str:
    """Return a number."""
    return str(number)


def agent(depth):
    if depth == 0:
        calls = [[tool_call("leaf", number=n) for n in range(20)] for _ in range(3)]
        return Agent(name="deep4", tools=[leaf], model=ScriptedModel([*calls, "**done**"]))
    below = agent(depth - 1).as_tool(tool_name="ask", tool_description="Ask.", streaming=True)
    calls = [tool_call("ask", input="go") for _ in range(1 if depth > 1 else 2)]
    return Agent(name=f"deep{4 - depth}", tools=[below], model=ScriptedModel([*calls, "done"]))


four_deep = agent(3)
writer = Agent(name="writer", model=ScriptedModel(["# Title\\n\\n" + "- *one* `item`\\n" * 1_500] * 99))


def numbered(number):
    @function_tool(name_override=f"tool_{number}")
    def tool(first: str, second: int = 1, third: list[str] | None = None) -> str:
        """Do something with three arguments."""
        return first

    return tool


many = [numbered(number) for number in range(300)]
'''


def longest_task(trace: bytes) -> tuple[float, float]:
    """Return the longest task of the main thread of a page, by its processor time and by the clock.

    The tasks in which the test itself asks the page, and in which Chromium replaces the document, are
    left out.
    """
    events = json.loads(trace)["traceEvents"]
    main = {
        (event["pid"], event["tid"])
        for event in events
        if event["name"] == "thread_name" and event["args"].get("name") == "CrRendererMain"
    }
    here = [event for event in events if (event["pid"], event["tid"]) in main]
    foreign = re.compile("DevToolsSession|NavigationClient")
    asked = [event["ts"] for event in here if foreign.search(json.dumps(event.get("args")))]
    tasks = [
        event
        for event in here
        if event["name"].endswith("RunTask")
        and not any(event["ts"] <= at <= event["ts"] + event.get("dur", 0) for at in asked)
    ]
    return (
        max((task.get("tdur", 0) / 1_000 for task in tasks), default=0.0),
        max((task.get("dur", 0) / 1_000 for task in tasks), default=0.0),
    )


def run(page: Page, name: str) -> None:
    """Run a tool, and wait for its result."""
    choose(page, name)
    page.keyboard.press("Control+Enter")
    done = page.locator("#side-panel .bar-line", has_text=name).locator(".status.good")
    expect(done).to_be_visible(timeout=PATIENCE)
    run_is_shown(page)


def ask(page: Page, name: str) -> None:
    """Send a message to an agent, and wait for the answer."""
    choose(page, name)
    before = page.locator(".turn").count()
    page.locator("#agent-input").fill("go")
    page.locator("#agent-input").press("Enter")
    turn = page.locator(".turn").nth(before)
    expect(turn.locator(".turn-end .status")).to_have_text("done", timeout=PATIENCE)


def shown(page: Page, tab: str) -> None:
    page.locator("[role=tab]", has_text=re.compile(f"^{tab}$")).click()


def searched(page: Page) -> None:
    search = page.locator("#search")
    for text in ("t", "tool_", "tool_29", ""):
        search.fill(text)
    expect(page.locator(".entry").nth(299)).to_be_attached(timeout=PATIENCE)


def loaded(page: Page, url: str) -> None:
    page.goto(url)
    expect(page.locator(".entry").nth(299)).to_be_attached(timeout=PATIENCE)


def reloaded(page: Page) -> None:
    page.reload()
    expect(page.locator(".turn")).to_have_count(5, timeout=PATIENCE)
    expect(page.locator(".turn-end .status").last).to_have_text("done", timeout=PATIENCE)


def conversed(page: Page) -> None:
    for _ in range(5):
        ask(page, "writer")


STEPS: dict[str, Callable[[Page], Any]] = {
    "300 tools: search": searched,
    "10 MB of output in pieces": lambda page: run(page, "output"),
    "10 MB as the result": lambda page: run(page, "text"),
    "5,000 notes": lambda page: run(page, "notes"),
    "5,000 notes: reload": lambda page: (page.reload(), run_is_shown(page)),
    "5,000 rows: table": lambda page: (run(page, "rows"), shown(page, "Table")),
    "5,000 rows: tree": lambda page: shown(page, "Tree"),
    "agents four deep, 120 calls": lambda page: ask(page, "deep1"),
    "agents four deep: timeline": lambda page: shown(page, "Timeline"),
    "five answers of 1,500 items": conversed,
    "five answers: reload": reloaded,
}


def run_is_shown(page: Page) -> None:
    """Wait for the result. A query by role would compute the roles of all elements."""
    expect(page.locator(".result")).to_be_visible(timeout=PATIENCE)


def main() -> int:
    """Print the table."""
    found: list[list[str]] = []
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        place = Path(folder)
        (place / "large.py").write_text(TARGET)
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        with dev(place, "large.py") as url:
            page = browser.new_page(viewport={"width": 1280, "height": 860})
            for title, step in {"300 tools: load": lambda page: loaded(page, url), **STEPS}.items():
                browser.start_tracing(page=page, categories=["toplevel"])
                step(page)
                page.wait_for_timeout(500)  # what the page does after the result counts, too
                found.append(
                    [title, *(f"{time:.0f}" for time in longest_task(browser.stop_tracing()))]
                )
                print(*found[-1], sep="\t", file=sys.stderr)
        browser.close()
    print(markdown(["", "longest task, processor", "by the clock"], found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
