"""Drawings of the architecture and of a run over time, as SVG for light and dark pages."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["LAYERS", "SCHEMES", "call", "layers", "trace"]

_FONT = "system-ui, -apple-system, 'Segoe UI', Roboto, 'DejaVu Sans', sans-serif"
_MONO = "ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Scheme:
    """The colors of a drawing; the background is transparent."""

    ink: str
    soft: str
    line: str
    frame: str
    box: str
    call: str
    event: str
    result: str
    bars: tuple[str, str, str]


SCHEMES = {
    "light": _Scheme(
        ink="#1f2430",
        soft="#5a6272",
        line="#b8bfcc",
        frame="#f5f6fa",
        box="#ffffff",
        call="#3f51b5",
        event="#00796b",
        result="#a85b00",
        bars=("#c5cdf3", "#b5e0d9", "#f6d9ae"),
    ),
    "dark": _Scheme(
        ink="#e6e9f0",
        soft="#a3abbd",
        line="#596074",
        frame="#262b38",
        box="#323848",
        call="#9fa8ff",
        event="#5fd0bf",
        result="#ffb95e",
        bars=("#46519c", "#23695f", "#7d5318"),
    ),
}
"""The colors for a light page and for a dark page."""

LAYERS: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = (
    ("applications", (("cli", "playground"),)),
    (
        "integrations",
        (
            ("ui", "mcp", "server"),
            ("conversation", "event_driven", "export", "telemetry", "testing", "models"),
        ),
    ),
    ("agents", (("agents",),)),
    ("storage, built-ins", (("persistence", "builtin", "registry"),)),
    ("around tools", (("classes", "toolset", "policies"),)),
    ("export, execution", (("wire", "execution"),)),
    ("tools", (("tool",), ("schema", "content"))),
    ("foundation", (("text", "concurrency", "events", "errors"),)),
)
"""The packages in the picture from high to low; those of a row import nothing above it."""


class _Drawing:
    """Collects the parts of an SVG."""

    def __init__(self, width: int, height: int, title: str, scheme: _Scheme) -> None:
        self._parts = [
            (
                f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
                f'role="img" font-family="{_FONT}" font-size="14">'
            ),
            f"<title>{escape(title)}</title>",
        ]
        self.scheme = scheme

    def box(self, place: tuple[float, float, float, float], **more: Any) -> None:
        """Draw a rectangle with rounded corners."""
        x, y, width, height = place
        shown = {"rx": 8, "fill": self.scheme.box, "stroke": self.scheme.line, **more}
        self._add("rect", x=x, y=y, width=width, height=height, **shown)

    def text(self, x: float, y: float, text: str, **more: Any) -> None:
        """Write a line of text, centered by default."""
        shown = {"fill": self.scheme.ink, "text-anchor": "middle", **_dashed(more)}
        self._parts.append(f'<text x="{x:g}" y="{y:g}"{_attributes(shown)}>{escape(text)}</text>')

    def arrow(self, points: Sequence[tuple[float, float]], colour: str, **more: Any) -> None:
        """Draw a line with an arrowhead at its end."""
        path = "M" + " L".join(f"{x:g} {y:g}" for x, y in points)
        self._add("path", d=path, fill="none", stroke=colour, **{"stroke-width": 2, **more})
        (x0, y0), (x1, y1) = points[-2:]
        away = 1 if x1 > x0 or y1 > y0 else -1
        if y0 == y1:
            head = f"M{x1 - 8 * away:g} {y1 - 5:g} L{x1:g} {y1:g} L{x1 - 8 * away:g} {y1 + 5:g}"
        else:
            head = f"M{x1 - 5:g} {y1 - 8 * away:g} L{x1:g} {y1:g} L{x1 + 5:g} {y1 - 8 * away:g}"
        self._add("path", d=head, fill="none", stroke=colour, **{"stroke-width": 2})

    def line(self, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
        """Draw a thin line."""
        self._add("line", x1=start[0], y1=start[1], x2=end[0], y2=end[1], stroke=colour)

    def mark(self, x: float, y: float, colour: str) -> None:
        """Draw a mark at a point in time."""
        self._add("path", d=f"M{x:g} {y:g} l4 5 l-4 5 l-4 -5 z", fill=colour)

    def done(self) -> str:
        """Return the SVG."""
        return "\n".join([*self._parts, "</svg>"]) + "\n"

    def _add(self, tag: str, /, **attributes: Any) -> None:
        self._parts.append(f"<{tag}{_attributes(_dashed(attributes))}/>")


def call(scheme: str) -> str:
    """Draw the path of a call: from a function to a tool, and from a call to its result."""
    colours = SCHEMES[scheme]
    title = "The path of a call: arguments in, events to subscribers, the result to the model"
    draw = _Drawing(900, 470, title, colours)
    draw.box((20, 14, 250, 58))
    draw.text(145, 38, "def forecast(city: str)", font_family=_MONO, font_size=13)
    draw.text(145, 58, "your function", fill=colours.soft, font_size=12)
    draw.arrow([(270, 43), (480, 43), (480, 104)], colours.call)
    draw.text(375, 34, "@function_tool", font_family=_MONO, font_size=12, fill=colours.call)
    draw.text(496, 74, "signature and docstring become the schema", fill=colours.soft,
              font_size=12, text_anchor="start")  # fmt: skip

    draw.box((20, 142, 170, 160))
    draw.text(105, 168, "callers", font_weight=600)
    for number, line in enumerate(("model in a run", "invoke, call, stream", "command line",
                                   "MCP client", "other framework")):  # fmt: skip
        draw.text(105, 192 + 21 * number, line, fill=colours.soft, font_size=13)

    draw.box((270, 110, 610, 220), fill=colours.frame, stroke=colours.call)
    draw.text(290, 134, "FunctionTool", font_weight=600, text_anchor="start")
    draw.text(860, 134, "one call: one start, one end, one outcome", fill=colours.soft,
              text_anchor="end", font_size=13)  # fmt: skip
    stages = (
        ("policies", ("timeout, retry,", "limit, approval")),
        ("validation", ("JSON text against", "the schema")),
        ("body", ("awaited, in a thread", "or in a process")),
    )
    for number, (name, lines) in enumerate(stages):
        x = 300 + 195 * number
        draw.box((x, 158, 160, 84))
        draw.text(x + 80, 184, name, font_weight=600)
        for below, line in enumerate(lines):
            draw.text(x + 80, 206 + 18 * below, line, fill=colours.soft, font_size=13)
        if number:
            draw.arrow([(x - 35, 200), (x - 4, 200)], colours.call)
    draw.arrow([(190, 200), (296, 200)], colours.call)
    draw.text(232, 190, "arguments", fill=colours.call, font_size=12)
    draw.arrow([(770, 242), (770, 290), (194, 290)], colours.result)
    draw.text(580, 282, "value or error becomes the text for the model", fill=colours.result,
              font_size=13)  # fmt: skip
    draw.text(232, 280, "result", fill=colours.result, font_size=12)

    draw.arrow([(480, 330), (480, 376)], colours.event)
    draw.text(494, 358, "events during the call: never added to the conversation",
              fill=colours.event, text_anchor="start", font_size=13)  # fmt: skip
    sinks = (
        ("listeners", "listen(), tool.stream()"),
        ("EventStream", "ids, order, stores"),
        ("user interfaces", "terminal, SSE, AG-UI, AI SDK"),
        ("operations", "traces, metrics, logs"),
    )
    for number, (name, line) in enumerate(sinks):
        x = 20 + 218 * number
        draw.box((x, 388, 206, 64), stroke=colours.event)
        draw.text(x + 103, 415, name, font_weight=600)
        draw.text(x + 103, 436, line, fill=colours.soft, font_size=13)
    return draw.done()


def layers(scheme: str) -> str:
    """Draw the packages from high to low."""
    colours = SCHEMES[scheme]
    rows = [(name, row) for name, group in LAYERS for row in group]
    draw = _Drawing(
        900, 24 + 52 * len(rows), "The layers of the library: imports point down", colours
    )
    previous = ""
    for number, (name, row) in enumerate(rows):
        y = 12 + 52 * number
        if name != previous:
            draw.text(146, y + 25, name, text_anchor="end", font_weight=600, font_size=13)
        previous = name
        draw.box((160, y, 690, 40), fill=colours.frame)
        width = (690 - 8 * (len(row) + 1)) / len(row)
        for place, module in enumerate(row):
            x = 168 + place * (width + 8)
            draw.box((round(x, 1), y + 6, round(width, 1), 28), rx=5)
            draw.text(round(x + width / 2, 1), y + 25, module, font_family=_MONO, font_size=13)
    draw.arrow([(876, 16), (876, 12 + 52 * len(rows) - 12)], colours.call)
    middle = 26 * len(rows) + 12
    draw.text(868, middle, "imports", font_size=12, fill=colours.soft,
              transform=f"rotate(-90 868 {middle})")  # fmt: skip
    return draw.done()


def trace(scheme: str, events: Sequence[Mapping[str, Any]]) -> str:
    """Draw a timeline as trace viewers do: lanes with nested bars and marks on them.

    Args:
        scheme: `light` or `dark`.
        events: The events of `chrome_trace`, with times in microseconds.
    """
    colours = SCHEMES[scheme]
    bars = [one for one in events if one["ph"] == "X"]
    end = max(_tenths(one["ts"] + one["dur"]) for one in bars)
    scale = 740 / end
    rows = _rows(bars)
    draw = _Drawing(900, 50 + 28 * (max(rows.values()) + 1), "A run over time", colours)
    for second in range(int(end / 10) + 1):
        x = round(140 + 10 * second * scale, 1)
        draw.line((x, 24), (x, 40 + 28 * (max(rows.values()) + 1)), colours.line)
        draw.text(x, 17, f"{second} s", fill=colours.soft, font_size=12)
    kinds = {"run": 0, "call": 1, "model": 2}
    for number, one in enumerate(bars):
        x = round(140 + _tenths(one["ts"]) * scale, 1)
        width = round((_tenths(one["ts"] + one["dur"]) - _tenths(one["ts"])) * scale, 1)
        y = 30 + 28 * rows[number]
        draw.box((x, y, width, 24), rx=3, fill=colours.bars[kinds[one["cat"]]], stroke="none")
        if width > 8 * len(one["name"]):
            draw.text(x + 7, y + 17, one["name"], text_anchor="start", font_size=13)
    lanes = {one["tid"]: one["args"]["name"] for one in events if one["name"] == "thread_name"}
    for lane, name in lanes.items():
        first = min(rows[number] for number, one in enumerate(bars) if one["tid"] == lane)
        draw.text(128, 47 + 28 * first, name, text_anchor="end", font_size=13, font_weight=600)
    for one in events:
        if one["ph"] == "i":
            depth = max(
                rows[number]
                for number, bar in enumerate(bars)
                if bar["tid"] == one["tid"] and bar["ts"] <= one["ts"] <= bar["ts"] + bar["dur"]
            )
            x = round(140 + _tenths(one["ts"]) * scale, 1)
            draw.mark(x, 37 + 28 * depth, colours.result)
    return draw.done()


def _rows(bars: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return the row of each bar: below the bars around it, and lane below lane."""
    rows: dict[int, int] = {}
    first = 0
    for lane in sorted({one["tid"] for one in bars}):
        here = [number for number, one in enumerate(bars) if one["tid"] == lane]
        for number in here:
            around = [
                other for other in here if other != number and _within(bars[number], bars[other])
            ]
            rows[number] = first + len(around)
        first = 1 + max(rows[number] for number in here)
    return rows


def _within(bar: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    inside = other["ts"] <= bar["ts"] and bar["ts"] + bar["dur"] <= other["ts"] + other["dur"]
    return inside and bar["dur"] < other["dur"]


def _tenths(microseconds: float) -> float:
    """Return whole tenths of a second, so that the picture does not change from run to run."""
    return round(microseconds / 100_000)


def _dashed(attributes: Mapping[str, Any]) -> dict[str, Any]:
    return {name.replace("_", "-"): value for name, value in attributes.items()}


def _attributes(attributes: Mapping[str, Any]) -> str:
    return "".join(f' {name}="{escape(_number(value))}"' for name, value in attributes.items())


def _number(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
