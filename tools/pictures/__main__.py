"""`python -m tools.pictures`: create all pictures of the documentation, in about a minute."""

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
from tools.pictures import animation, drawings, pages, terminal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from playwright.sync_api import Browser

ROOT = Path(__file__).parents[2]
IMAGES = ROOT / "docs" / "images"
STAGE = Path(__file__).with_name("stage")
BAKERY = ROOT / "examples" / "playground" / "bakery.py"
WEB_PAGE = ROOT / "examples" / "web_page.py"
WEB_TREE = ROOT / "examples" / "web_tree.py"
REQUEST = "Plan three nights in Rome for two."


def main(words: Sequence[str] | None = None) -> int:
    """Create all pictures, or the named ones."""
    parser = argparse.ArgumentParser(prog="python -m tools.pictures", description=__doc__)
    parser.add_argument("names", nargs="*", help=f"which ones: {', '.join([*DRAWN, *SHOT])}")
    parser.add_argument(
        "--to", type=Path, default=IMAGES, help="the folder; docs/images by default"
    )
    options = parser.parse_args(words)
    unknown = set(options.names) - {*DRAWN, *SHOT}
    if unknown:
        parser.error(
            f"unknown pictures: {', '.join(sorted(unknown))}. "
            f"Choose from {', '.join([*DRAWN, *SHOT])}."
        )
    wanted = options.names or [*DRAWN, *SHOT]
    options.to.mkdir(parents=True, exist_ok=True)
    for name, content in _pictures(wanted):
        (options.to / name).write_bytes(content)
        print(f"{len(content):>7,}  {name}")
    return 0


def _pictures(wanted: Sequence[str]) -> Iterator[tuple[str, bytes]]:
    for name in wanted:
        if name in DRAWN:
            for file, text in DRAWN[name]().items():
                yield file, text.encode()
    shots = [SHOT[name] for name in wanted if name in SHOT]
    if shots:
        with pages.browser() as browser:
            for shot in shots:
                yield from shot(browser).items()


# --- drawings


def call() -> dict[str, str]:
    """Draw the path of a call."""
    return {f"call-{scheme}.svg": drawings.call(scheme) for scheme in drawings.SCHEMES}


def layers() -> dict[str, str]:
    """Draw the layers of the package."""
    return {f"layers-{scheme}.svg": drawings.layers(scheme) for scheme in drawings.SCHEMES}


def trace() -> dict[str, str]:
    """Draw a run as a trace viewer does."""
    planner: Any = run_path(str(STAGE / "travel.py"))["planner"]

    async def events() -> list[Any]:
        return [event async for event in Runner.run_streamed(planner, REQUEST).stream_events()]

    spans = chrome_trace(asyncio.run(events()))["traceEvents"]
    return {f"trace-{scheme}.svg": drawings.trace(scheme, spans) for scheme in drawings.SCHEMES}


def run() -> dict[str, str]:
    """Draw a terminal during a run."""
    words = ["run", "travel.py:planner", REQUEST]
    shown = terminal.shown_by(_cli(words), STAGE, until=lambda text: "asking ÖBB" in text)
    times = "2.0 1.5 1.5 0.4 1.0"
    return {
        "terminal-run.svg": terminal.drawn(
            [(_command_line(words), shown)], title="A run of an agent", times=times
        )
    }


def live() -> dict[str, str]:
    """Draw a terminal during a run, from the first event to the result, as an animation."""
    words = ["run", "travel.py:planner", REQUEST]
    frames = terminal.recorded(_cli(words), STAGE)
    title = "live progress of an agent, its tools and a second agent"
    return {"live.svg": animation.animate(_command_line(words), frames, title=title)}


def bad_call() -> dict[str, str]:
    """Draw a call with invalid arguments, then a valid one."""
    scenes: list[tuple[str, str]] = []
    for arguments in (["city=Rome", "nights=three", "nigth=3"], ["city=Rome", "nights=3"]):
        words = ["call", "travel.py", "search_hotels", *arguments]
        scenes.append((_command_line(words), terminal.shown_by(_cli(words), STAGE)))
    return {
        "terminal-call.svg": terminal.drawn(scenes, title="Two calls from the command line",
                                            times="2.4")
    }  # fmt: skip


def _cli(words: Sequence[str]) -> list[str]:
    return [sys.executable, "-m", "agents_tools.cli", *words]


def _command_line(words: Sequence[str]) -> str:
    return shlex.join(["agents-tools", *words])


# --- screenshots


def playground(browser: Browser) -> dict[str, bytes]:
    """Take a picture of the playground."""
    with TemporaryDirectory() as folder:
        return pages.playground(browser, BAKERY, Path(folder))


def timeline(browser: Browser) -> dict[str, bytes]:
    """Take a picture of the timeline in the playground."""
    return pages.timeline(browser, STAGE / "travel.py")


def web(browser: Browser) -> dict[str, bytes]:
    """Take a picture of the page of an example."""
    with TemporaryDirectory() as folder:
        return pages.web(browser, WEB_PAGE, Path(folder))


def web_tree(browser: Browser) -> dict[str, bytes]:
    """Take a picture of the tree of a run in the page of an example."""
    return pages.web_tree(browser, WEB_TREE)


DRAWN: dict[str, Callable[[], dict[str, str]]] = {
    "call": call,
    "layers": layers,
    "trace": trace,
    "run": run,
    "live": live,
    "bad-call": bad_call,
}
"""The drawings by name, each of one or more files."""

SHOT: dict[str, Callable[[Browser], dict[str, bytes]]] = {
    "playground": playground,
    "timeline": timeline,
    "web": web,
    "web-tree": web_tree,
}
"""The screenshots by name."""

if __name__ == "__main__":
    sys.exit(main())
