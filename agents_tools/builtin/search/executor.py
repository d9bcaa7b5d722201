"""The base of the executors of `grep` and `glob`."""

from __future__ import annotations

import contextlib
import os
import stat
from typing import TYPE_CHECKING, Any, Generic

from typing_extensions import TypeVar

from agents_tools.builtin.paths import ConfinedWorkspace
from agents_tools.builtin.search.patterns import as_line, path_filter
from agents_tools.builtin.search.ripgrep import RipgrepRefused, run_ripgrep
from agents_tools.builtin.search.search_context import SearchContext
from agents_tools.builtin.search.walk import WalkFilter, shown_path, walk
from agents_tools.classes.action import Action, ToolExecutor
from agents_tools.errors import ToolError, UserValueError
from agents_tools.tool.context import current_context

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Iterator, Sequence
    from pathlib import Path

    from agents_tools.builtin.paths import Root

__all__ = ["Scope", "SearchExecutor", "as_line", "page_note"]

ActionT = TypeVar("ActionT", bound=Action, default=Any)
ObservationT = TypeVar("ObservationT", default=Any)


class Scope:
    """The files of one search.

    Attributes:
        root: The directory of the workspace that contains them.
        base: The path to search, relative to the root and without links.
        is_file: Whether the path is a single file.
    """

    def __init__(
        self, workspace: ConfinedWorkspace, path: str, *, hidden: bool, no_ignore: bool
    ) -> None:
        place = workspace.locate(path)
        self.root: Root = place.root
        self.shown = as_line(place.shown)
        try:
            self.base = place.root.resolve(place.path)
            mode = place.root.stat(self.base).st_mode
        except OSError as error:
            why = error.strerror or "it cannot be read"
            raise ToolError(f"{self.shown} cannot be searched: {why}.") from None
        self.is_file = stat.S_ISREG(mode)
        if not (self.is_file or stat.S_ISDIR(mode)):
            raise ToolError(f"{self.shown} is neither a file nor a directory.")
        self.hidden = hidden
        self.no_ignore = no_ignore
        self._prefix = "" if place.root is workspace.roots[0] else f"{place.root.path}/"
        self._start = "" if self.base == "." else f"{self.base}/"

    def name(self, path: str) -> str:
        """Return a path that the model can use in other calls."""
        return shown_path(f"{self._prefix}{path}")

    def filter(self, glob: str | None) -> Callable[[str], bool]:
        """Return a function that matches paths against a glob relative to the base."""
        if glob is None:
            return lambda _: True
        meant = path_filter(glob)
        start = len(self._start)
        return lambda path: meant(shown_path(path[start:]))

    def walk(self, running: SearchContext) -> Iterator[tuple[str, os.DirEntry[str]]]:
        """List the files."""
        return walk(
            self.root,
            self.base,
            hidden=self.hidden,
            no_ignore=self.no_ignore,
            check=running.check,
        )

    def ripgrep(
        self, program: str, options: Sequence[str], running: SearchContext
    ) -> Iterator[tuple[str, int]]:
        """Run ripgrep and return the files with their numbers of matching lines.

        Ripgrep starts in the opened directory but follows the paths below by itself, so a race can
        lead it outside. Open each path beneath the root before you report anything about it.

        Raises:
            RipgrepRefused: It rejected the options, or there are too many ignore rules.
        """
        admits = WalkFilter(
            self.root,
            self.base,
            hidden=self.hidden,
            no_ignore=self.no_ignore,
            check=running.check,
        )
        if admits.cut:
            raise RipgrepRefused("There are too many ignore rules.")
        more = ["--no-ignore"] * (self.no_ignore or admits.overrides)
        more += ["--hidden"] * (self.hidden or admits.rescues)
        directory = _opened(self.root, self.base)
        try:
            written = run_ripgrep(program, [*more, *options], directory=directory, running=running)
        finally:
            os.close(directory)
        for name, count in _records(written):
            path = f"{self._start}{os.fsdecode(name).removeprefix('./')}"
            if admits(path):
                yield path, count
        if admits.cut:
            raise RipgrepRefused("There are too many ignore rules.")


def _opened(root: Root, directory: str) -> int:
    """Open the directory in which ripgrep starts."""
    try:
        return root.open(directory, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))
    except (OSError, ValueError):
        raise RipgrepRefused("The directory does not exist anymore.") from None


def _records(written: bytes) -> Iterator[tuple[bytes, int]]:
    """Split the output of ripgrep: names that end with NUL, each followed by a number."""
    start = 0
    while (end := written.find(b"\0", start)) >= 0 and (line_end := written.find(b"\n", end)) >= 0:
        yield written[start:end], int(written[end + 1 : line_end])
        start = line_end + 1


class SearchExecutor(ToolExecutor[ActionT, ObservationT], Generic[ActionT, ObservationT]):
    """Executor that searches a workspace.

    Args:
        working_dir: Where to search; the current directory by default.
        workspace: The directories to search, instead of `working_dir`; not closed by the executor.
        timeout: The maximum number of seconds of a search.

    Raises:
        UserError: The directory does not exist.
    """

    def __init__(
        self,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        workspace: ConfinedWorkspace | None = None,
        timeout: float = 30.0,
    ) -> None:
        if timeout <= 0:
            raise UserValueError(
                f"timeout is invalid: expected more than 0 seconds, got {timeout!r}."
            )
        self.workspace = workspace or ConfinedWorkspace(working_dir)
        self._owned = workspace is None
        self._timeout = timeout
        self._running: list[SearchContext] = []

    @property
    def working_dir(self) -> Path:
        """The directory to search."""
        return self.workspace.working_dir

    def close(self) -> None:
        """Stop running searches, and close the workspace if the executor opened it."""
        for running in list(self._running):
            running.stop()
        if self._owned:
            self.workspace.close()

    def interrupt(self) -> None:
        """Stop the search of the cancelled call; outside of a call, all running searches."""
        context = current_context()
        for running in list(self._running):
            if context is None or running.context is context or running.left_alone:
                running.stop()

    @contextlib.contextmanager
    def _call(self) -> Generator[SearchContext]:
        running = SearchContext(self._timeout)
        self._running.append(running)
        try:
            running.check()
            yield running
        finally:
            self._running.remove(running)


def page_note(what: str, offset: int, shown: int, total: int) -> str:
    """Return a note on the shown part of the results and how to get the next.

    Args:
        what: The noun for the results, in the plural.
        offset: The number of skipped results.
        shown: The number of shown results.
        total: The number of all results.
    """
    if not shown:
        return f"offset={offset} is after the last result: there are {total:,} {what} in all."
    end = offset + shown
    note = f"Showing {offset + 1:,}-{end:,} of {total:,} {what}."
    return f"{note[:-1]}; offset={end} for more." if end < total else note
