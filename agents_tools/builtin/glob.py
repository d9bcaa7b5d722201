"""The `glob` tool: find files by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Self

from pydantic import Field

from agents_tools.builtin.search.executor import Scope, SearchExecutor, as_line, page_note
from agents_tools.classes.definition import Action, Observation, ToolDefinition, working_dir_of
from agents_tools.errors import ToolError
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterator, Sequence

    from agents_tools.builtin.paths import ConfinedWorkspace
    from agents_tools.builtin.search.search_context import SearchContext

__all__ = ["GlobAction", "GlobExecutor", "GlobObservation", "GlobTool"]

DESCRIPTION = """\
Find files by a glob, newest first.

* Supports `*`, `?`, `**` (crosses directories), `[a-z]`, `[!a-z]` and `{a,b}`.
* Without a slash, the pattern matches names at any depth: `*.py`. With a slash, it matches the \
path relative to `path`: `src/**/*.ts`, `./*.md`.
* Links are not followed. Hidden and ignored files are omitted unless `hidden` or `no_ignore` is \
set."""


class GlobAction(Action):
    """The files to find."""

    pattern: str = Field(
        min_length=1,
        max_length=4_096,
        description="The glob, for example '**/*.py' or '*.{ts,tsx}'.",
    )
    path: str = Field(default=".", description="The directory to search.")
    hidden: bool = Field(default=False, description="Include hidden files ('.…').")
    no_ignore: bool = Field(default=False, description="Include files that .gitignore excludes.")
    limit: int = Field(default=100, ge=1, le=1_000, description="The maximum number of files.")
    offset: int = Field(default=0, ge=0, description="The number of files to skip.")


class GlobObservation(Observation):
    """The matching files.

    Attributes:
        files: Their paths, relative to the working directory, newest first.
        count: The total number of matches.
        truncated: Whether more follow after these.
    """

    files: list[str] = Field(default_factory=list[str])
    count: int = 0
    truncated: bool = False


class GlobExecutor(SearchExecutor[GlobAction, GlobObservation]):
    """Executor that finds files; the arguments are those of `SearchExecutor`.

    It does not run ripgrep: the walk reads the file times anyway, and reading them separately takes
    longer than the list itself.
    """

    def __call__(self, action: GlobAction, conversation: object = None) -> GlobObservation:
        """Find files.

        Args:
            action: The files to find.
            conversation: Not used.

        Raises:
            ToolError: The path or the pattern is invalid, or the search took too long.
        """
        del conversation
        with self._call() as running:
            path, pattern = self._split(action)
            scope = Scope(self.workspace, path, hidden=action.hidden, no_ignore=action.no_ignore)
            if scope.is_file:
                raise ToolError(f"{scope.shown} is a file. Pass its directory as path.")
            meant = scope.filter(pattern)
            found = [(-time, scope.name(path)) for path, time in _walk_files(scope, meant, running)]
        found.sort()
        page = found[action.offset : action.offset + action.limit]
        return _observation([name for _, name in page], len(found), action)

    def _split(self, action: GlobAction) -> tuple[str, str]:
        """Return the directory and the pattern, which may be absolute."""
        pattern = action.pattern
        if ".." in pattern.split("/"):
            raise ToolError(
                f"The pattern {as_line(pattern)!r} contains '..'. Pass the directory to search as "
                "path, and a pattern without '..'."
            )
        if not pattern.startswith("/"):
            return action.path, pattern
        parts = pattern.split("/")
        plain = next(
            (n for n, part in enumerate(parts) if set(part) & set("*?[{\\")), len(parts) - 1
        )
        return "/".join(parts[:plain]) or "/", "/" + "/".join(parts[plain:])


def _walk_files(
    scope: Scope, meant: Callable[[str], bool], running: SearchContext
) -> Iterator[tuple[str, int]]:
    """Walk the directory, and yield the matching files with their times."""
    found = 0
    for path, entry in scope.walk(running):
        if not meant(path):
            continue
        try:
            time = entry.stat(follow_symlinks=False).st_mtime_ns
        except OSError:
            continue  # removed in the meantime
        found += 1
        running.tell(found, None, "files found")
        yield path, time


def _observation(files: list[str], count: int, action: GlobAction) -> GlobObservation:
    shown: list[str] = []
    room = _MAX_CHARACTERS
    for name in files:
        line = as_line(name)
        room -= len(line) + 1
        if room < 0 and shown:
            break
        shown.append(line)
    end = action.offset + len(shown)
    if not count:
        text = f"No file in {as_line(action.path)} matches '{as_line(action.pattern)}'."
    else:
        text = "\n".join([page_note("files", action.offset, len(shown), count), *shown])
    return GlobObservation.from_text(
        text, files=files[: len(shown)], count=count, truncated=bool(shown) and end < count
    )


_MAX_CHARACTERS = 60_000
"""The maximum number of characters of names in one result."""


class GlobTool(ToolDefinition[GlobAction, GlobObservation]):
    """Tool that finds files by name."""

    name: ClassVar[str] = "glob"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        working_dir: str | os.PathLike[str] | None = None,
        executor: GlobExecutor | None = None,
        workspace: ConfinedWorkspace | None = None,
        description: str | None = None,
    ) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: The conversation, whose working directory is the default.
            working_dir: The directory to search.
            executor: The executor; a new one by default.
            workspace: The directories to search, instead of `working_dir`.
            description: A description for models that replaces the default.
        """
        own = executor or GlobExecutor(working_dir_of(conv_state, working_dir), workspace=workspace)
        return [
            cls(
                description=description or DESCRIPTION,
                action_type=GlobAction,
                observation_type=GlobObservation,
                executor=own,
                annotations=ToolAnnotations(
                    title="Find files",
                    readOnlyHint=True,
                    destructiveHint=False,
                    idempotentHint=True,
                    openWorldHint=False,
                ),
            )
        ]
