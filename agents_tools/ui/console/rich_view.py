"""A live view of a run on a terminal: the tree of its agents and calls."""

from __future__ import annotations

import contextlib
import sys
import threading
import time
from typing import TYPE_CHECKING

from rich.console import Console, ConsoleOptions, Group, RenderResult
from rich.live import Live
from rich.text import Text

from agents_tools.content.usage import Usage
from agents_tools.events.kinds import NotifyStreamEvent, RawResponseStreamEvent, ToolArtifactEvent
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text
from agents_tools.ui._format import described, progressed, seconds
from agents_tools.ui._terminal import can_show, is_terminal, marks
from agents_tools.ui.console.call_groups import CallGroup, folded
from agents_tools.ui.console.run_tree import (
    Node,
    RunTree,
    arguments_shown,
    costs,
    ended_in_words,
    is_retry,
    retried,
)

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator
    from typing import TextIO

    from agents_tools.events.base import Event

__all__ = ["RichRun"]

_STYLES = {"debug": "dim", "success": "green", "warning": "yellow", "error": "red"}
_BAR_WIDTH = 24
_TEXT_LINES, _INNER_TEXT_LINES = 8, 3
"""The number of lines shown of the main agent's message, and of those of other agents."""
_RENDERED_LENGTH = 3_000
"""The number of characters at the end of an answer that are rendered, twelve times a second."""
_MIN_WIDTH = 20
_MINUTE = 60
_TAIL_LENGTH = 10_000
"""The number of characters at the end of a long text in which its last lines are searched."""
_MIN_DURATION = 0.05
"""Shorter durations are not shown, in seconds."""


_screens: dict[int, RichRun] = {}
"""The tree that is drawn on each stream, by the id of the stream."""


class _TreeDrawing(Live):
    def refresh(self) -> None:
        """Draw again, and ignore a closed terminal."""
        with contextlib.suppress(OSError, ValueError):
            super().refresh()


class RichRun:
    """Shows a run as a growing tree. The final tree stays on the terminal.

    Args:
        agent: The name of the agent, if it is known.
        stream: The output stream; standard error by default.
    """

    def __init__(self, agent: str = "", stream: TextIO | None = None) -> None:
        self._console = Console(
            file=stream, stderr=stream is None, highlight=False, emoji=False, markup=False
        )
        self._tree = RunTree(agent)
        # Checked now: while Rich draws, it replaces standard error.
        output = sys.stderr if stream is None else stream
        self._good, self._bad = marks(output)
        has_unicode = can_show("⠋├─└│━╸→·…⏸", output)
        self._spinner = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏" if has_unicode else "|/-\\"
        self._guides = ("├─ ", "└─ ", "│  ") if has_unicode else ("|- ", "`- ", "|  ")
        self._full, self._half, self._empty = ("━", "╸", "─") if has_unicode else ("#", "#", "-")
        self._arrow, self._dot, self._pause = (
            ("→", " · ", "⏸") if has_unicode else ("->", ", ", "?")
        )
        self._lock = threading.RLock()  # guards the tree; never held while the console is used
        self._live: Live | None = None
        self._is_aside = False

    def open(self) -> None:
        """Start to draw."""
        if self._live is None and not self._is_aside and self._has_screen():
            self._live = _TreeDrawing(
                self,
                console=self._console,
                transient=True,
                refresh_per_second=12,
                vertical_overflow="crop",
            )
            with contextlib.suppress(OSError, ValueError):
                self._live.start()

    def _has_screen(self) -> bool:
        """Claim the screen and return whether this succeeded.

        If another tree is drawn there, this one is shown only at its end.
        """
        return _screens.setdefault(id(self._console.file), self) is self

    def _leave_screen(self) -> None:
        for key in [key for key, owner in _screens.items() if owner is self]:
            del _screens[key]

    def show(self, event: Event) -> None:
        """Add an event to the tree; the next drawing shows it."""
        with self._lock:
            node = self._tree.update(event)
            match event:
                case NotifyStreamEvent():
                    self._tree.add_lines(node, event, node.lines_of(event))
                case ToolArtifactEvent():
                    node.notices.append(("success", described(event)))
                case RawResponseStreamEvent():
                    if is_retry(event):
                        node.notices.append(("warning", retried(event.data)))
                case _:
                    pass

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage of one model response."""
        with self._lock:
            self._tree.count(path, usage)

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Stop drawing while the block asks a question; the tree stays above the question."""
        live, self._live = self._live, None
        self._is_aside = True
        if live is not None:
            live.stop()
        if self._has_screen():
            with contextlib.suppress(OSError, ValueError):
                self._console.print(self)
        try:
            yield
        finally:
            self._is_aside = False
            self.open()

    def close(self, status: str, duration: float) -> None:
        """Print the final tree, and ignore a closed terminal."""
        live, self._live = self._live, None
        if live is not None:
            with contextlib.suppress(OSError, ValueError):
                live.stop()
        self._leave_screen()
        with contextlib.suppress(OSError, ValueError):
            with self._lock:
                self._tree.close(status, duration)
                lines = list(self._lines(self._console.width))
            for line in lines:
                self._console.print(line, soft_wrap=True)
            if is_terminal(sys.stdout):
                self._console.print()  # an empty line before the answer

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Draw the tree. Rich calls this twelve times a second."""
        del console
        width, height = options.max_width, max(4, options.size.height - 1)
        with self._lock:
            lines = list(self._lines(width))
            if len(lines) > height:
                lines = list(self._lines(width, brief=True))
        if len(lines) > height:
            first, rest = lines[0], lines[2 - height :]
            above = len(lines) - len(rest) - 1
            lines = [first, Text(f"   … {above} lines above", "dim"), *rest]
        yield Group(*lines)

    # --- lines

    def _lines(self, width: int, *, brief: bool = False) -> Iterator[Text]:
        """Yield the lines of the tree; `brief` omits the content of calls that have ended."""
        root = self._tree.root
        if root.name:
            yield self._row(root, "", width)
            yield from self._below(root, "", width, brief=brief)
            return
        if root.left_out:
            yield _left_out(root, "", width)
        for call in root.parts:  # a tool was called without an agent
            if isinstance(call, Node):
                yield self._row(call, "", width)
                yield from self._below(call, "", width, brief=brief)

    def _below(self, node: Node, guides: str, width: int, *, brief: bool) -> Iterator[Text]:
        if brief and not node.is_open:
            return
        branch, corner, trunk = self._guides
        room = max(_MIN_WIDTH, width - len(guides) - len(trunk))
        leaves = self._leaves(node, room, brief=brief)
        if node.left_out:
            yield _left_out(node, guides + branch, width)
        parts = folded(node.parts)
        count = len(parts) + bool(leaves)
        for number, part in enumerate(parts, start=1):
            here, further = (corner, " " * len(trunk)) if number == count else (branch, trunk)
            if isinstance(part, CallGroup):
                yield self._sum(part, guides + here, width)
                shown = part.shown
                for position, call in enumerate(shown, start=1):
                    at = corner if position == len(shown) else branch
                    yield self._row(call, guides + further + at, width)
                    below = " " * len(trunk) if position == len(shown) else trunk
                    yield from self._below(call, guides + further + below, width, brief=brief)
            elif isinstance(part, Node):
                yield self._row(part, guides + here, width)
                yield from self._below(part, guides + further, width, brief=brief)
            else:
                text = " ".join(part.split())
                yield _cut(Text.assemble((guides + here, "dim"), (text, "italic")), width)
        for number, leaf in enumerate(leaves):
            before = guides + (corner if node.parts and number == 0 else " " * len(trunk))
            yield _cut(Text.assemble((before, "dim"), leaf), width)

    def _leaves(self, node: Node, width: int, *, brief: bool) -> list[Text]:
        """Return the lines below the calls of a node: its notices, output, progress and text."""
        leaves = [
            Text(f"! {line}" if level != "success" else line, _STYLES.get(level, ""))
            for level, line in node.notices
        ]
        if not node.is_open:
            return leaves
        leaves += [
            Text(line, _STYLES.get(level, "dim"))
            for level, line in list(node.output_lines)[-1 if brief else 0 :]
            if level not in {"warning", "error"}
        ]
        if node.tail:
            leaves.append(Text(release_text(node.tail[-_TAIL_LENGTH:])[-width:], "dim"))
        if node.progress is not None:
            leaves.append(self._bar(node, min(_BAR_WIDTH, width // 2)))
        if node.reasoning:
            reasoning = " ".join(release_text(node.reasoning[-_TAIL_LENGTH:]).split())
            leaves.append(Text(reasoning[-width:], "dim italic"))
        if text := node.text or ("" if node.held_in_parts else node.held):
            leaves += self._message(text, width, is_answer=not node.path)
        return leaves

    def _message(self, text: str, width: int, *, is_answer: bool) -> list[Text]:
        """Return the last lines of a message; the Markdown of an answer is rendered."""
        if is_answer:
            return self._rendered(text, width)[-_TEXT_LINES:]
        text_lines = release_text(text[-_TAIL_LENGTH:]).expandtabs(4).split("\n")
        lines = [line for line in text_lines if line.strip()][-_INNER_TEXT_LINES:]
        wrapped = [part for line in lines for part in self._wrapped(line, width)]
        return wrapped[-_INNER_TEXT_LINES:]

    def _rendered(self, text: str, width: int) -> list[Text]:
        """Return the lines of the end of a Markdown text, without empty ones."""
        from rich.markdown import Markdown

        end = text[-_RENDERED_LENGTH:]
        if len(end) < len(text):  # from the next line on: a part of a line can look like a heading
            end = end.partition("\n")[2] or end
        markdown = Markdown(release_text(end), code_theme="ansi_dark", hyperlinks=False)
        options = self._console.options.update(width=width, height=None)
        rows = self._console.render_lines(markdown, options, pad=False)
        lines = [
            Text.assemble(*((piece.text, piece.style or "") for piece in row if not piece.control))
            for row in rows
        ]
        return [line for line in lines if line.plain.strip()]

    def _wrapped(self, line: str, width: int) -> list[Text]:
        return list(Text(line[-width * _TEXT_LINES :]).wrap(self._console, width))

    def _row(self, node: Node, guides: str, width: int) -> Text:
        """Return the line of a node: mark, name, arguments, result, duration and usage."""
        row = Text.assemble((guides, "dim"), self._mark(node), " ", (node.name, "bold"))
        if node.agent is not None and node.path and node.agent != node.name:
            row.append(f" {self._arrow} {node.agent}", "cyan")
        facts = self._dot.join(self._facts(node))
        room = max(_MIN_WIDTH, width - len(facts) - 2)
        if node.path and node.arguments.strip(" {}"):
            left = max(10, (room - row.cell_len) // (2 if node.result else 1) - 2)
            row.append(f" {shorten(arguments_shown(node.arguments), left)}", "dim")
        if node.result and not node.is_open and node.status != "cancelled":
            style = "" if node.status == "ok" else "red"
            row.append(f" {self._arrow} ", "dim")
            row.append(" ".join(node.result.split()), style)
        row = _cut(row, room)
        return row.append(f"  {facts}", "dim") if facts else row

    def _sum(self, group: CallGroup, guides: str, width: int) -> Text:
        """Return the line that sums up the calls of a group."""
        calls, ended = group.calls, group.ended
        if group.is_open:
            mark = Text(self._spinner[int(time.monotonic() * 10) % len(self._spinner)], "cyan")
        else:
            mark = Text(self._bad, "red") if group.failed else Text(self._good, "green")
        row = Text.assemble((guides, "dim"), mark, " ", (group.name, "bold"))
        row.append(f" {ended} of {len(calls)}" if group.is_open else f" {len(calls)} calls")
        if group.failed:
            row.append(f"{self._dot}{group.failed} failed", "red")
        facts = [seconds(group.took)]
        usage = Usage()
        for call in calls:
            usage.add(self._tree.usage(call))
        row.append(f"  {self._dot.join(facts + costs(usage, requests=False))}", "dim")
        return _cut(row, width)

    def _mark(self, node: Node) -> Text:
        if node.status in {"waiting", "interrupted"}:
            return Text(self._pause, "yellow")
        if node.status == "written":
            return Text("…" if self._pause == "⏸" else ".", "cyan")
        if node.is_open:
            return Text(self._spinner[int(time.monotonic() * 10) % len(self._spinner)], "cyan")
        return Text(self._good, "green") if node.status == "ok" else Text(self._bad, "red")

    def _facts(self, node: Node) -> list[str]:
        if node.status == "written":
            return []
        took = seconds(node.took)
        if node.status == "waiting":
            facts = ["waits for approval"]
        elif node.is_open:
            facts = [f"{node.took:.1f} s" if node.took < _MINUTE else took]
        elif node.status == "ok":
            facts = [took] if node.took >= _MIN_DURATION or not node.path else []
        else:
            facts = [f"{ended_in_words(node.status)} {took}"]
        return facts + costs(self._tree.usage(node), requests=not node.path)

    def _bar(self, node: Node, columns: int) -> Text:
        progress = node.progress
        if progress is None or not progress.total:
            return Text("" if progress is None else progressed(progress))
        part = min(1.0, max(0.0, progress.current / progress.total))
        halves = round(2 * columns * part)
        bar = self._full * (halves // 2) + self._half * (halves % 2)
        return Text.assemble(
            (bar, "green" if part == 1 else "cyan"),
            (self._empty * (columns - len(bar)), "dim"),
            f" {progressed(progress)}",
        )


def _left_out(node: Node, guides: str, width: int) -> Text:
    text = f"{node.left_out:,} earlier call{'' if node.left_out == 1 else 's'}"
    return _cut(Text(f"{guides}{text}", "dim"), width)


def _cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    line.no_wrap = True
    return line
