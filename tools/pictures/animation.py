"""A recorded terminal session as an animated SVG: CSS keyframes show and hide lines of text.

The picture contains no script. Without animation (reduced motion, a print, a simple viewer) it
shows the last frame.
"""

from __future__ import annotations

from html import escape
from io import StringIO
from typing import TYPE_CHECKING

from rich.color import blend_rgb
from rich.console import Console
from rich.text import Text

from tools.pictures.terminal import THEME

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.style import Style

__all__ = ["animate"]

_CELL = 8.4  # the width of a character at 14 px
_ROW = 20
_MARGIN = 18
_TOP = 44
_FONT = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"
_SVG = """\
<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{label}"
  viewBox="0 0 {width} {height}">
<style>
{styles}
</style>
<rect width="{width}" height="{height}" rx="8" fill="{background}"/>
<text class="title" x="{middle}" y="25" text-anchor="middle">{label}</text>
{body}
</svg>
"""

_Times = list[tuple[float, float]]
_Line = tuple[int, str]


def animate(
    command: str,
    frames: Sequence[tuple[float, str]],
    *,
    title: str,
    columns: int = 96,
    hold: float = 4.0,
) -> str:
    """Return a terminal session as an animated SVG.

    Args:
        command: The command in the first line, without the prompt.
        frames: The seconds since the start and the text of the screen, with its color codes. The
            last one is the frame of the picture at rest.
        title: The text in the title bar.
        columns: The width of the terminal.
        hold: How long the last frame is shown before the animation starts again, in seconds.
    """
    total = frames[-1][0] + hold
    times = _visible_times(frames, total)
    rows = 1 + max(row for row, _ in times) + 1
    width, height = 2 * _MARGIN + columns * _CELL, _TOP + rows * _ROW + _MARGIN
    drawing = _Drawing(total)
    drawing.line(0, f"\x1b[2m$ \x1b[0m\x1b[1m{command}", None, at_rest=True)
    for (row, text), shown in times.items():
        drawing.line(row + 1, text, shown, at_rest=shown[-1][1] == total)
    dots = [
        f'<circle cx="{_MARGIN + 4 + 18 * number}" cy="20" r="6" fill="{color}"/>'
        for number, color in enumerate(("#ff5f57", "#febc2e", "#28c840"))
    ]
    return _SVG.format(
        label=escape(title),
        width=round(width),
        height=height,
        middle=round(width / 2),
        background=THEME.background_color.hex,
        styles="\n".join(drawing.styles()),
        body="\n".join([*dots, *drawing.lines]),
    )


def _visible_times(frames: Sequence[tuple[float, str]], total: float) -> dict[_Line, _Times]:
    """Return the times at which each distinct line of each row is visible."""
    times: dict[_Line, _Times] = {}
    ends = [start for start, _ in frames[1:]] + [total]
    for (start, screen), end in zip(frames, ends, strict=True):
        for row, text in enumerate(screen.split("\n")):
            if not Text.from_ansi(text).plain.strip():
                continue
            shown = times.setdefault((row, text), [])
            if shown and shown[-1][1] == start:
                shown[-1] = (shown[-1][0], end)
            else:
                shown.append((start, end))
    return times


class _Drawing:
    """Collects the lines of the picture, their colors and their keyframes."""

    def __init__(self, total: float) -> None:
        self.lines: list[str] = []
        self._total = total
        self._colors: dict[str, str] = {}
        self._keyframes: dict[str, str] = {}
        self._console = Console(
            file=StringIO(), force_terminal=True, color_system="truecolor", legacy_windows=False
        )

    def line(self, row: int, text: str, shown: _Times | None, *, at_rest: bool) -> None:
        """Add a line that is always visible, or only at the given times."""
        names = [] if at_rest else ["off"]
        if shown is not None:
            names.append(self._keyframes.setdefault(self._steps(shown), f"k{len(self._keyframes)}"))
        kind = f' class="{" ".join(names)}"' if names else ""
        y = _TOP + (row + 1) * _ROW
        self.lines.append(f"<g{kind}>{''.join(self._segments(text, y))}</g>")

    def styles(self) -> Iterator[str]:
        """Return the style sheet. Only it animates, and only where motion is welcome."""
        yield f"text {{ font: 14px {_FONT}; }}"
        yield "text.title { font: bold 13px system-ui, sans-serif; fill: #a3abbd; }"
        for color, name in self._colors.items():
            yield f".{name} {{ {color} }}"
        yield ".off { opacity: 0; }"
        yield "@media (prefers-reduced-motion: no-preference) {"
        for steps, name in self._keyframes.items():
            yield f"@keyframes {name} {{ {steps} }}"
            yield f".{name} {{ animation: {name} {self._total:.1f}s step-end infinite; }}"
        yield "}"

    def _steps(self, shown: _Times) -> str:
        steps = ["0% { opacity: 0 }"] if shown[0][0] > 0 else []
        for start, end in shown:
            steps += [f"{self._percent(start)} {{ opacity: 1 }}"]
            steps += [f"{self._percent(end)} {{ opacity: {int(end == self._total)} }}"]
        if shown[-1][1] < self._total:
            steps.append("100% { opacity: 0 }")
        return " ".join(steps)

    def _percent(self, seconds: float) -> str:
        return f"{100 * seconds / self._total:.2f}".rstrip("0").rstrip(".") + "%"

    def _segments(self, line: str, y: int) -> Iterator[str]:
        column = 0
        for text, style, _ in Text.from_ansi(line).render(self._console):
            length = len(text)
            if text.strip():
                shown = escape(text).replace(" ", "\N{NO-BREAK SPACE}")
                x = _MARGIN + column * _CELL
                yield (
                    f'<text class="{self._color(style)}" x="{x:.1f}" y="{y}" '
                    f'textLength="{length * _CELL:.1f}">{shown}</text>'
                )
            column += length

    def _color(self, style: Style | None) -> str:
        color = THEME.foreground_color
        if style is not None and style.color is not None:
            color = style.color.get_truecolor(THEME)
        if style is not None and style.dim:
            color = blend_rgb(color, THEME.background_color, 0.4)
        weight = " font-weight: bold;" if style is not None and style.bold else ""
        return self._colors.setdefault(f"fill: {color.hex};{weight}", f"c{len(self._colors)}")
