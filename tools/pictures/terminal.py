"""Terminals as drawings: a program runs on one, and what stands there becomes an SVG."""

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
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = ["drawn", "shown_by"]

_LIMIT = 60.0
_ESCAPE = re.compile(r"\x1b\[\??([\d;]*)([A-Za-z])")
_SPINNER = re.compile("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]")
_THEME = TerminalTheme(
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
# Rich's own drawing, with the fonts of the reader: nothing is fetched from anywhere.
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
    """What stands on a terminal: lines with their colours, and the line that is written to."""

    def __init__(self) -> None:
        self.lines = [""]
        self._at = 0
        self._rest = ""

    def feed(self, text: str) -> None:
        """Take what a program wrote."""
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
        """The lines, with the codes of their colours."""
        return "\n".join(line.rstrip() for line in self.lines).strip("\n")


def shown_by(
    command: Sequence[str],
    folder: Path,
    *,
    columns: int = 96,
    until: Callable[[str], bool] | None = None,
) -> str:
    """Run a program on a terminal, and give what stands there.

    Args:
        command: The program.
        folder: Where it runs.
        columns: How wide the terminal is.
        until: Whether it is time for the picture; by default that is when the program has ended.

    Returns:
        The lines, with the codes of their colours.

    Raises:
        TimeoutError: The time for the picture did not come.
    """
    child, terminal = pty.fork()
    if child == 0:  # pragma: no cover - in the child
        os.chdir(folder)
        kept = {key: value for key, value in os.environ.items() if key not in {"NO_COLOR", "CI"}}
        os.execvpe(command[0], list(command), {**kept, "TERM": "xterm-256color"})  # noqa: S606 - ours
    ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 40, columns, 0, 0))
    screen, over = _Screen(), time.monotonic() + _LIMIT
    try:
        while time.monotonic() < over:
            if not select.select([terminal], [], [], 0.05)[0]:
                continue
            try:
                said = os.read(terminal, 65_536)
            except OSError:  # the program has ended
                said = b""
            screen.feed(said.decode(errors="replace"))
            if until is not None and until(Text.from_ansi(screen.text).plain):
                return screen.text
            if not said and until is None:
                return screen.text
            if not said:
                break
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        os.close(terminal)
    raise TimeoutError(f"{command} did not show what was waited for:\n{screen.text}")


def drawn(
    scenes: Sequence[tuple[str, str]], *, title: str, columns: int = 96, times: str = ""
) -> str:
    """Draw commands and what they showed, as an SVG.

    Args:
        scenes: Each command with what stood on the terminal.
        title: What stands above.
        columns: How wide the terminal is.
        times: Durations in place of those that were measured, so that the picture stays the same.
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
        for line in _settled(shown, times).split("\n"):
            console.print(Text.from_ansi(line), soft_wrap=True)
    told = console.export_svg(
        title=title, theme=_THEME, code_format=_SVG, font_aspect_ratio=0.61, unique_id="terminal"
    )
    return "\n".join(line.rstrip() for line in told.splitlines() if line.strip()) + "\n"


def _settled(shown: str, times: str) -> str:
    """Give what was shown without what is another each time."""
    shown = _SPINNER.sub("⠹", shown)
    wanted = iter(times.split())
    return re.sub(r"(?<![\d.])\d+(\.\d+)?(?= s\b)", lambda found: next(wanted, found[0]), shown)
