"""A run in a notebook: its tree in the output of the cell, drawn again while it works."""

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
        "The view 'notebook' needs IPython and Rich: pip install 'agents-tools[cli]' ipython"
    ) from error

if TYPE_CHECKING:
    from collections.abc import Generator

    from agents_tools.events.base import Event

__all__ = ["NotebookRun"]

_shown: Final[Any] = display
_EVERY: Final = 0.1
"""Seconds between two drawings."""
_WIDTH: Final = 110
_PAGE: Final = (
    '<pre style="white-space:pre;overflow-x:auto;line-height:1.35;'
    'font-family:ui-monospace,Menlo,Consolas,monospace">{code}</pre>'
)


class NotebookRun(RichRun):
    """Shows a run as a tree in the output of the cell that made this.

    Args:
        agent: The agent that runs, where that is known.
    """

    def __init__(self, agent: str = "") -> None:
        super().__init__(agent, _NotebookPage())
        self._handle: Any = None
        self._drawn = 0.0
        self._drawing = threading.Lock()

    def open(self) -> None:
        """Show the tree."""
        if self._handle is None:
            self._handle = _shown.display(self._page(), display_id=True)

    def show(self, event: Event) -> None:
        """Take an event, and draw the tree if it was not drawn just now."""
        super().show(event)
        now = time.monotonic()
        if now - self._drawn >= _EVERY and self._drawing.acquire(blocking=False):
            try:
                self._drawn = now
                self._draw()
            finally:
                self._drawing.release()

    @contextlib.contextmanager
    def aside(self) -> Generator[None]:
        """Leave the output as it is: a question has a place of its own there."""
        yield

    def close(self, status: str, duration: float) -> None:
        """Leave the tree as it is in the end."""
        with self._lock:
            self._tree.close(status, duration)
        self.open()
        with self._drawing:
            self._draw()

    def _draw(self) -> None:
        if self._handle is not None:
            self._handle.update(self._page())

    def _page(self) -> Any:
        with self._lock:
            lines = list(self._lines(_WIDTH))
        page = Console(
            file=io.StringIO(), record=True, width=_WIDTH, highlight=False, emoji=False,
            markup=False, force_terminal=True, color_system="truecolor",
        )  # fmt: skip
        for line in lines:
            page.print(line, soft_wrap=True)
        return _shown.HTML(page.export_html(inline_styles=True, code_format=_PAGE))


class _NotebookPage(io.StringIO):
    """What a notebook's page can show: everything."""

    encoding = "utf-8"  # pyright: ignore[reportAssignmentType, reportIncompatibleVariableOverride]
