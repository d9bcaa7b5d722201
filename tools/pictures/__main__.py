"""`python -m tools.pictures`: makes all pictures of the documentation anew, in about a minute."""

from __future__ import annotations

import argparse
import asyncio
import shlex
import sys
from pathlib import Path
from runpy import run_path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from agents_tools import Runner
from agents_tools.telemetry.timeline import chrome_trace
from tools.pictures import drawings, pages, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
STAGE = Path(__file__).with_name("stage")
BAKERY = ROOT / "examples" / "playground" / "bakery.py"
WEB_PAGE = ROOT / "examples" / "web_page.py"
REQUEST = "Plan three nights in Rome for two."


def main(words: Sequence[str] | None = None) -> int:
    """Make the pictures, or those that are named."""
    asked = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    asked.add_argument("names", nargs="*", help=f"which ones: {', '.join([*DRAWN, *SHOT])}")
    asked.add_argument("--to", type=Path, default=IMAGES, help="the folder; docs/images by default")
    options = asked.parse_args(words)
    unknown = set(options.names) - {*DRAWN, *SHOT}
    if unknown:
        asked.error(f"there is no picture {', '.join(sorted(unknown))}")
    wanted = options.names or [*DRAWN, *SHOT]
    options.to.mkdir(parents=True, exist_ok=True)
    for name, made in _made(wanted):
        (options.to / name).write_bytes(made)
        print(f"{len(made):>7,}  {name}")
    return 0


def _made(wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in wanted:
        if name in DRAWN:
            for file, text in DRAWN[name]().items():
                yield file, text.encode()
    shots = [SHOT[name] for name in wanted if name in SHOT]
    if shots:
        with pages.browser() as browser:
            for shot in shots:
                yield from shot(browser).items()


# --- drawn


def call() -> dict[str, str]:
    """Draw the way of a call."""
    return {f"call-{scheme}.svg": drawings.call(scheme) for scheme in drawings.SCHEMES}


def layers() -> dict[str, str]:
    """Draw the layers."""
    return {f"layers-{scheme}.svg": drawings.layers(scheme) for scheme in drawings.SCHEMES}


def trace() -> dict[str, str]:
    """Draw a run as a viewer of traces does."""
    planner: Any = run_path(str(STAGE / "travel.py"))["planner"]

    async def events() -> list[Any]:
        return [event async for event in Runner.run_streamed(planner, REQUEST).stream_events()]

    made = chrome_trace(asyncio.run(events()))["traceEvents"]
    return {f"trace-{scheme}.svg": drawings.trace(scheme, made) for scheme in drawings.SCHEMES}


def run() -> dict[str, str]:
    """Draw the terminal while agents work."""
    words = ["run", "travel.py:planner", REQUEST]
    shown = terminal.shown_by(_cli(words), STAGE, until=lambda text: "asking ÖBB" in text)
    times = "2.0 1.5 1.5 0.4 1.0"
    return {
        "terminal-run.svg": terminal.drawn(
            [(_typed(words), shown)], title="an agent, while it works", times=times
        )
    }


def bad_call() -> dict[str, str]:
    """Draw what a bad call is answered with, and then a good one."""
    scenes: list[tuple[str, str]] = []
    for arguments in (["city=Rome", "nights=three", "nigth=3"], ["city=Rome", "nights=3"]):
        words = ["call", "travel.py", "search_hotels", *arguments]
        scenes.append((_typed(words), terminal.shown_by(_cli(words), STAGE)))
    return {
        "terminal-call.svg": terminal.drawn(scenes, title="a call, and what is wrong with it",
                                            times="2.4")
    }  # fmt: skip


def _cli(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "agents_tools.cli", *words]


def _typed(words: Sequence[str]) -> str:
    return shlex.join(["agents-tools", *words])


# --- photographed


def playground(browser: Browser) -> dict[str, bytes]:
    """Look at the playground."""
    with TemporaryDirectory() as folder:
        return pages.playground(browser, BAKERY, Path(folder))


def timeline(browser: Browser) -> dict[str, bytes]:
    """Look at the playground's timeline."""
    return pages.timeline(browser, STAGE / "travel.py")


def web(browser: Browser) -> dict[str, bytes]:
    """Look at a page that shows a tool."""
    with TemporaryDirectory() as folder:
        return pages.web(browser, WEB_PAGE, Path(folder))


DRAWN: dict[str, Callable[[], dict[str, str]]] = {
    "call": call,
    "layers": layers,
    "trace": trace,
    "run": run,
    "bad-call": bad_call,
}
"""The pictures that are drawn; those of programs are drawn of what they have said."""

SHOT: dict[str, Callable[[Browser], dict[str, bytes]]] = {
    "playground": playground,
    "timeline": timeline,
    "web": web,
}
"""The pictures that a browser takes."""

if __name__ == "__main__":
    sys.exit(main())
