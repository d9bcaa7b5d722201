"""A live view of a run in the output of a notebook cell."""

from __future__ import annotations

import contextlib
import io
import threading
import time
from typing import TYPE_CHECKING, Any, Final

from agents_tools.errors import UserError

try:
    from IPython import display
    from rich.console import Console

    from agents_tools.ui.console.rich_view import RichRun
except ModuleNotFoundError as error:
    raise UserError(
        "The view 'notebook' requires IPython and Rich: pip install 'agents-tools[cli]' ipython"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.events.base import Event

__all__ = ["NotebookRun"]

_display: Final[Any] = display
_INTERVAL: Final = 0.1
"""The shortest time between two drawings, in seconds."""
_WIDTH: Final = 110
_PAGE: Final = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.35;'
    'font-family:ui-monospace,Menlo,Consolas,monospace">{code}</pre>'
)


class NotebookRun(RichRun):
    """Shows a run as a tree in the output of the cell that created the view.

    Args:
        agent: The name of the agent, if it is known.
    """

    def __init__(self, agent: str = "") -> None:
        super().__init__(agent, _NotebookPage())
        self._handle: Any = None
        self._drawn = 0.0
        self._drawing = threading.Lock()

    def open(self) -> None:
        """Show the tree."""
        if self._handle is None:
            self._handle = _display.display(self._page(), display_id=True)

    def show(self, event: Event) -> None:
        """Add an event, and draw the tree if the last drawing is old enough."""
        super().show(event)
        now = time.monotonic()
        if now - self._drawn >= _INTERVAL and self._drawing.acquire(blocking=False):
            try:
                self._drawn = now
                self._draw()
            finally:
                self._drawing.release()

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Keep the output: a notebook shows questions in a separate place."""
        yield

    def close(self, status: str, duration: float) -> None:
        """Draw the final tree."""
        with self._lock:
            self._tree.close(status, duration)
        self.open()
        with self._drawing:
            self._draw()

    def _draw(self) -> None:
        if self._handle is not None:
            self._handle.update(self._page())

    def _page(self) -> _Page:
        with self._lock:
            lines = list(self._lines(_WIDTH))
        page = Console(
            file=io.StringIO(), record=True, width=_WIDTH, highlight=False, emoji=False,
            markup=False, force_terminal=True, color_system="truecolor",
            force_jupyter=False,  # otherwise each line becomes an output of the cell
        )  # fmt: skip
        for line in lines:
            page.print(line, soft_wrap=True)
        return _Page(
            page.export_html(inline_styles=True, code_format=_PAGE, clear=False),
            page.export_text(),
        )


class _Page:
    """The tree as HTML, and as text for readers that show no HTML."""

    def __init__(self, html: str, text: str) -> None:
        self._bundle = {"text/html": html, "text/plain": text}

    def _repr_mimebundle_(self, **_options: object) -> dict[str, str]:
        return self._bundle


class _NotebookPage(io.StringIO):
    """A stream whose encoding can show every character, like the page of a notebook."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]
