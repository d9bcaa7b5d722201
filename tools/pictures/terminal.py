"""Terminal pictures: run a program on a pseudo-terminal and draw its screen as an SVG."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import struct
import termios
import time
from fcntl import ioctl
from io import StringIO
from typing import TYPE_CHECKING

from rich.console import Console
from rich.terminal_theme import TerminalTheme
from rich.text import Text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

__all__ = ["THEME", "drawn", "recorded", "shown_by"]

_LIMIT = 60.0
_ESCAPE = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])")
_SPINNER = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
THEME = TerminalTheme(
    (30, 34, 42),
    (215, 218, 224),
    [
        (63, 68, 81),
        (240, 113, 120),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 146, 233),
        (86, 200, 216),
        (215, 218, 224),
    ],
    [
        (127, 132, 142),
        (240, 113, 120),
        (152, 195, 121),
        (229, 192, 123),
        (97, 175, 239),
        (198, 146, 233),
        (86, 200, 216),
        (255, 255, 255),
    ],
)
# The template of Rich with fonts of the reader's system: the picture fetches nothing.
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" class="rich-terminal" viewBox="0 0 {width} {height}">
<style>
.{unique_id}-matrix {{
  font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace;
  font-size: {char_height}px; line-height: {line_height}px; font-variant-east-asian: full-width;
}}
.{unique_id}-title {{ font-size: 18px; font-weight: bold; font-family: sans-serif; }}
{styles}
</style>
<defs>
<clipPath id="{unique_id}-clip-terminal">
<rect x="0" y="0" width="{terminal_width}" height="{terminal_height}"/>
</clipPath>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})" clip-path="url(#{unique_id}-clip-terminal)">
{backgrounds}
<g class="{unique_id}-matrix">
{matrix}
</g>
</g>
</svg>
"""


class _Screen:
    """The lines on a terminal with their color codes, and the position of the cursor."""

    def __init__(self) -> None:
        self.lines = [""]
        self._at = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        """Apply the output of a program."""
        text, self._rest = self._rest + text, ""
        cut = text.rfind("\x1b")
        if cut >= 0 and not _ESCAPE.match(text, cut):
            text, self._rest = text[:cut], text[cut:]
        place = 0
        while place < len(text):
            found = _ESCAPE.match(text, place)
            if found is None:
                self._put(text[place])
                place += 1
            else:
                self._control(found[0], found[1], found[2])
                place = found.end()

    def _put(self, character: str) -> None:
        if character == "\n":
            self._at += 1
            if self._at == len(self.lines):
                self.lines.append("")
        elif character != "\r":
            self.lines[self._at] += character

    def _control(self, whole: str, number: str, kind: str) -> None:
        if kind == "m":
            self.lines[self._at] += whole
        elif kind == "A":
            self._at = max(0, self._at - int(number or 1))
        elif kind == "K":
            self.lines[self._at] = ""

    @property
    def text(self) -> str:
        """The lines with their color codes."""
        return "\n".join(line.rstrip() for line in self.lines).strip("\n")


def shown_by(
    command: Sequence[str],
    folder: Path,
    *,
    columns: int = 96,
    until: Callable[[str], bool] | None = None,
) -> str:
    """Run a program on a terminal and return the text on its screen.

    Args:
        command: The program and its arguments.
        folder: The working directory.
        columns: The width of the terminal.
        until: Returns whether a screen is the one to return; by default, the screen at the end of
            the program is returned.

    Returns:
        The lines with their color codes.

    Raises:
        TimeoutError: The expected screen did not appear in time.
    """
    screen = ""
    for _, screen in _screens(command, folder, columns):
        if until is not None and until(Text.from_ansi(screen).plain):
            return screen
    if until is not None:
        raise TimeoutError(f"{command} did not show the expected screen:\n{screen}")
    return screen


def recorded(
    command: Sequence[str], folder: Path, *, columns: int = 96, step: float = 0.15
) -> list[tuple[float, str]]:
    """Run a program on a terminal and return its screens over time.

    Args:
        command: The program and its arguments.
        folder: The working directory.
        columns: The width of the terminal.
        step: The shortest time between two screens, in seconds.

    Returns:
        Pairs of the seconds since the first output and the lines with their color codes.
    """
    frames: list[tuple[float, str]] = []
    first: float | None = None
    for now, screen in _screens(command, folder, columns):
        first = now if first is None else first
        at = round((now - first) / step) * step
        if frames and frames[-1][0] >= at:
            frames[-1] = (frames[-1][0], screen)
        elif not frames or frames[-1][1] != screen:
            frames.append((at, screen))
    return frames


def _screens(command: Sequence[str], folder: Path, columns: int) -> Iterator[tuple[float, str]]:
    """Run a program and return each screen that stands still, with the time, and the last one."""
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - in the child
        os.chdir(folder)
        kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "CI"}}
        os.execvpe(command[0], list(command), {**kept, "TERM": "xterm-256color"})  # noqa: S606 - ours
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    screen, deadline, is_new = _Screen(), time.monotonic() + _LIMIT, False
    try:
        while time.monotonic() < deadline:
            # A program redraws its lines one by one: a pause means that the screen is complete.
            if not select.select([terminal], [], [], 0.03)[0]:
                if is_new:
                    is_new = False
                    yield time.monotonic(), screen.text
                continue
            try:
                output = os.read(terminal, 65_536)
            except OSError:  # the program has ended
                output = b""
            if not output:
                yield time.monotonic(), screen.text
                return
            screen.feed(output.decode(errors="replace"))
            is_new = True
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    raise TimeoutError(f"{command} did not end within {_LIMIT:.0f} s:\n{screen.text}")


def drawn(
    scenes: Sequence[tuple[str, str]], *, title: str, columns: int = 96, times: str = ""
) -> str:
    """Draw commands with their output as an SVG.

    Args:
        scenes: Each command with the text of its screen.
        title: The text in the title bar.
        columns: The width of the terminal.
        times: Durations that replace the measured ones, so that the picture does not change.
    """
    console = Console(
        record=True, file=StringIO(), width=columns, force_terminal=True, color_system="truecolor",
        legacy_windows=False,
    )  # fmt: skip
    for number, (command, shown) in enumerate(scenes):
        if number:
            console.print()
        if command:
            console.print(Text.assemble(("$ ", "dim"), (command, "bold")), soft_wrap=True)
        for line in _without_timing(shown, times).split("\n"):
            console.print(Text.from_ansi(line), soft_wrap=True)
    svg = console.export_svg(
        title=title, theme=THEME, code_format=_SVG, font_aspect_ratio=0.61, unique_id="terminal"
    )
    return "\n".join(line.rstrip() for line in svg.splitlines() if line.strip()) + "\n"


def _without_timing(shown: str, times: str) -> str:
    """Return a screen with a fixed spinner and fixed durations."""
    shown = _SPINNER.sub("⠹", shown)
    wanted = iter(times.split())
    return re.sub(r"(?<![\d.])\d+(\.\d+)?(?= s\b)", lambda found: next(wanted, found[0]), shown)
