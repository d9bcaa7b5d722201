"""A run on the whole terminal: a tree to walk through, with the details of each agent and call."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

from agents_tools._package import missing_extra
from agents_tools.content.items import ToolCallOutputItem
from agents_tools.content.outputs import output_text
from agents_tools.events.kinds import NotifyStreamEvent, RunItemStreamEvent
from agents_tools.text.output import release_text
from agents_tools.ui.console.run_tree import Node, indented_json, item_of

try:
    from rich.console import Group
    from rich.markdown import Markdown
    from rich.text import Text
    from textual.app import App, SuspendNotSupported
    from textual.binding import Binding
    from textual.containers import Horizontal, VerticalScroll
    from textual.widgets import Footer, Input, Static, Tree

    from agents_tools.ui.console.rich_view import RichRun
except ImportError as error:
    raise missing_extra("--events screen", "screen", error) from error

if TYPE_CHECKING:
    from collections.abc import Coroutine, Generator
    from typing import Protocol

    from rich.console import RenderableType
    from textual.app import ComposeResult
    from textual.widgets.tree import TreeNode

    from agents_tools.events.base import Event

    class RunControl(Protocol):
        """A running run, as `Runner.run_streamed` returns it."""

        def cancel(self, call_id: str | None = None) -> bool: ...
        def send(self, message: str) -> None: ...


__all__ = ["ScreenRun"]

T = TypeVar("T")

_MAX_LINES = 2_000
"""The number of output lines that are kept of each call."""
_MAX_RESULT = 100_000
"""The number of characters that are kept of each result."""
_REFRESH = 0.1
"""Seconds between two updates of the tree."""


class ScreenRun(RichRun):
    """A view on the whole terminal. At its end, the tree is printed as by `RichRun`.

    Args:
        agent: The name of the agent, if it is known.

    Attributes:
        control: The run, which a person can cancel and send messages to; `None` before its start.
    """

    def __init__(self, agent: str = "") -> None:
        super().__init__(agent)
        self.control: RunControl | None = None
        self._app = _RunApp(self)
        self._outputs: dict[tuple[str, ...], deque[str]] = {}
        self._results: dict[tuple[str, ...], str] = {}
        self._duration: float | None = None

    async def during(self, work: Coroutine[Any, Any, T]) -> T:
        """Show the screen while a coroutine runs, and then until the person leaves.

        Raises:
            CancelledError: The person cancelled the run.
            Exception: The exception of the coroutine.
        """

        async def begin() -> T:
            await self._app.is_shown.wait()  # before it, the screen cannot be left for a question
            started = time.monotonic()
            status = "error"
            try:
                result = await work
                status = "interrupted" if getattr(result, "interruptions", None) else "ok"
            except asyncio.CancelledError:
                status = "cancelled"
                raise
            finally:
                self._duration = time.monotonic() - started
                with self._lock:
                    self._tree.close(status, self._duration)
            return result

        task = self._app.run_task = asyncio.ensure_future(begin())
        try:
            await self._app.run_async(mouse=False)
        finally:
            task.cancel()
        return await task

    def open(self) -> None:
        """Draw nothing: the screen is drawn from its start."""

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Leave the screen while the block asks a question."""
        with contextlib.ExitStack() as stack:
            if self._app.is_running:
                with contextlib.suppress(SuspendNotSupported):
                    stack.enter_context(self._app.suspend())
            yield

    def close(self, status: str, duration: float) -> None:
        """Print the final tree. The time after the end of the run does not count."""
        super().close(status, duration if self._duration is None else self._duration)

    def show(self, event: Event) -> None:
        """Add an event to the tree and to the details of its call."""
        super().show(event)
        with self._lock:
            if isinstance(event, NotifyStreamEvent):
                self._add_output(event)
            elif isinstance(event, RunItemStreamEvent):
                item = item_of(event)
                if isinstance(item, ToolCallOutputItem):
                    text = release_text(output_text(item.output))
                    self._results[*event.path, item.call_id] = text[:_MAX_RESULT]

    def _add_output(self, event: NotifyStreamEvent) -> None:
        lines = self._outputs.setdefault(event.path, deque(maxlen=_MAX_LINES))
        first, *rest = event.data.rstrip("\n" if not event.is_delta else "").split("\n")
        if event.is_delta and lines:
            lines[-1] += first
        else:
            lines.append(first)
        lines.extend(rest)

    def nodes(self) -> list[Node]:
        """Return the agents and calls, each one after the one around it."""
        found, waiting = list[Node](), [self._tree.root]
        while waiting:
            node = waiting.pop(0)
            found.append(node)
            waiting += [part for part in node.parts if isinstance(part, Node)]
        return found

    def rows(self, width: int) -> dict[tuple[str, ...], Text]:
        """Return the line of each agent and call by its path; those around others come first."""
        with self._lock:
            return {node.path: self._row(node, "", width) for node in self.nodes()}

    def details(self, path: tuple[str, ...]) -> RenderableType:
        """Return all that is known of an agent or a call."""
        with self._lock:
            node = self._tree.by_path.get(path)
            if node is None:
                return Text("no longer kept", "dim")
            parts: list[RenderableType] = [Text(" → ".join(self._tree.names(node)), "bold")]
            if node.arguments.strip(" {}"):
                parts += [_heading("Arguments"), _json(node.arguments)]
            parts += [
                Text(f"! {line}" if level != "success" else line, "yellow")
                for level, line in node.notices
            ]
            if lines := self._outputs.get(path):
                parts += [_heading("Output"), Text(release_text("\n".join(lines)))]
            if reasoning := release_text(node.reasoning):
                parts += [_heading("Reasoning"), Text(reasoning, "italic")]
            if text := release_text(node.text or node.held):
                parts += [_heading("Answer"), Markdown(text, hyperlinks=False)]
            if result := self._results.get(path):
                parts += [_heading("Result"), _json(result)]
        return Group(*parts)


def _heading(text: str) -> Text:
    return Text(f"\n{text}", "cyan")


def _json(text: str) -> Text:
    """Return JSON with indentation. Its escapes can stand for characters that a terminal obeys."""
    return Text(release_text(indented_json(text), to="model"))


class _RunApp(App[None]):
    """The screen: the tree, the details of the selected node, and a line for a message.

    Args:
        view: The view whose tree it shows.
    """

    CSS = """
    #tree { width: 60%; }
    #side { width: 40%; border-left: solid $accent; padding: 0 1; }
    #message { dock: bottom; display: none; }
    #message.open { display: block; }
    """
    BINDINGS: ClassVar[list[Any]] = [
        Binding("c", "cancel_call", "Cancel the call"),
        Binding("m", "write", "Message"),
        Binding("ctrl+c", "stop", "Cancel the run", priority=True),
        Binding("q", "leave", "Leave"),
        Binding("escape", "close_message", show=False),
    ]
    ENABLE_COMMAND_PALETTE = False

    def __init__(self, view: ScreenRun) -> None:
        super().__init__(ansi_color=True)
        self._view = view
        self.run_task: asyncio.Task[Any] | None = None
        self.is_shown = asyncio.Event()
        self._rows: dict[tuple[str, ...], TreeNode[tuple[str, ...]]] = {}

    def compose(self) -> ComposeResult:
        """Return the widgets."""
        tree: Tree[tuple[str, ...]] = Tree("", data=(), id="tree")
        with Horizontal():
            yield tree
            with VerticalScroll(id="side"):
                yield Static(id="details")
        yield Input(placeholder="A message to the agent while it works", id="message")
        yield Footer()

    def on_mount(self) -> None:
        """Begin to draw."""
        # Textual makes all tasks of the loop eager, which changes the order of those of the run.
        asyncio.get_running_loop().set_task_factory(None)
        self.call_after_refresh(self.is_shown.set)
        tree = self._tree()
        tree.root.expand()
        tree.focus()
        self._rows[()] = tree.root
        self.set_interval(_REFRESH, self._draw)

    def _tree(self) -> Tree[tuple[str, ...]]:
        return cast("Tree[tuple[str, ...]]", self.query_one("#tree", Tree))

    def _draw(self) -> None:
        tree = self._tree()
        rows = self._view.rows(max(20, tree.size.width - 6))
        for path in [path for path in self._rows if path not in rows]:
            self._rows.pop(path).remove()
        for path, row in rows.items():
            node = self._rows.get(path)
            if node is None:
                above = path[:-1]
                while above not in self._rows:
                    above = above[:-1]
                parent = self._rows[above]
                parent.allow_expand = True
                self._rows[path] = parent.add(row, data=path, expand=True, allow_expand=False)
            elif node.label != row:
                node.set_label(row)
        selected = tree.cursor_node
        path = () if selected is None or selected.data is None else selected.data
        side = self.query_one("#side", VerticalScroll)
        is_at_end = side.scroll_y >= side.max_scroll_y
        self.query_one("#details", Static).update(self._view.details(path))
        if is_at_end:  # a growing output stays at its end
            side.scroll_end(animate=False)

    # --- actions

    def action_cancel_call(self) -> None:
        """Cancel the selected call."""
        selected, control = self._tree().cursor_node, self._view.control
        path = None if selected is None else selected.data
        if not path or control is None or not control.cancel(path[-1]):
            self.notify("No running call is selected.", severity="warning")

    def action_write(self) -> None:
        """Open the line for a message."""
        line = self.query_one("#message", Input)
        line.add_class("open")
        line.focus()

    def action_close_message(self) -> None:
        """Close the line for a message."""
        line = self.query_one("#message", Input)
        line.remove_class("open")
        line.clear()
        self._tree().focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Send a message to the running agent."""
        from agents_tools.errors import UserError

        control = self._view.control
        if event.value.strip() and control is not None:
            try:
                control.send(event.value)
            except UserError as error:
                self.notify(str(error), severity="warning")
        self.action_close_message()

    def action_stop(self) -> None:
        """Cancel the run; leave if it has ended."""
        if self.run_task is None or self.run_task.done():
            self.exit()
        else:
            self.run_task.cancel()
            self.run_task.add_done_callback(lambda _: self.exit())

    def action_leave(self) -> None:
        """Leave the screen after the end of the run."""
        if self.run_task is None or self.run_task.done():
            self.exit()
        else:
            self.notify("The run works. Ctrl-C cancels it.", severity="warning")
