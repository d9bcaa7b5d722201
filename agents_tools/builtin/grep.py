"""The `grep` tool: find lines by a regular expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agents_tools.builtin.search.executor import Scope, SearchExecutor, as_line, page_note
from agents_tools.builtin.search.line_reader import Matcher, search_file
from agents_tools.builtin.search.ripgrep import SEARCH, RipgrepRefused, find_ripgrep
from agents_tools.classes.definition import Action, Observation, ToolDefinition, working_dir_of
from agents_tools.errors import ToolError, UserValueError
from agents_tools.tool.records import ToolAnnotations

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from agents_tools.builtin.paths import ConfinedWorkspace
    from agents_tools.builtin.search.line_reader import FileLines, Hit
    from agents_tools.builtin.search.search_context import SearchContext

__all__ = ["GrepAction", "GrepExecutor", "GrepMatch", "GrepObservation", "GrepTool"]

Engine = Literal["auto", "ripgrep", "python"]

DESCRIPTION = """\
Find lines by a regular expression (Rust syntax: no look-around, no \
back-references), sorted by path.

* Lines are searched one by one: a pattern never matches across lines.
* `include` selects files by a glob: `*.py`, `src/**/*.{ts,tsx}`, `!*.md`.
* `output`: `content` returns the lines, `files` the paths, `count` the number of matching lines \
for each file.
* Binary files and links are skipped. Hidden and ignored files are skipped unless `hidden` or \
`no_ignore` is set."""


class GrepAction(Action):
    """The search to perform."""

    pattern: str = Field(
        min_length=1,
        max_length=10_000,
        description="The regular expression, for example 'def \\w+_id\\('.",
    )
    path: str = Field(default=".", description="The directory or the file to search.")
    include: str | None = Field(
        default=None,
        min_length=1,
        max_length=4_096,
        description="Only files that match this glob, relative to `path`.",
    )
    output: Literal["content", "files", "count"] = Field(
        default="content",
        description="The result: lines, file paths, or the number of lines for each file.",
    )
    ignore_case: bool = Field(default=False, description="Whether 'a' also matches 'A'.")
    context: int = Field(default=0, ge=0, le=50, description="Lines to show around each match.")
    before: int | None = Field(
        default=None, ge=0, le=50, description="Lines to show before, instead of `context`."
    )
    after: int | None = Field(
        default=None, ge=0, le=50, description="Lines to show after, instead of `context`."
    )
    literal: bool = Field(default=False, description="Whether `pattern` is literal text.")
    hidden: bool = Field(default=False, description="Include hidden files ('.…').")
    no_ignore: bool = Field(default=False, description="Include files that .gitignore excludes.")
    limit: int = Field(default=100, ge=1, le=1_000, description="The maximum number of results.")
    offset: int = Field(default=0, ge=0, description="The number of results to skip.")


class GrepMatch(BaseModel):
    """One matching line.

    Attributes:
        path: The file, relative to the working directory.
        line_number: The line number, from 1.
        line: The line; above 400 characters, truncated around the match.
        before: The requested lines before it.
        after: The requested lines after it.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    line_number: int
    line: str
    before: list[str] = Field(default_factory=list[str])
    after: list[str] = Field(default_factory=list[str])


class GrepObservation(Observation):
    """The results of a search.

    Attributes:
        matches: The lines, ordered by path and number, if the output is `content`.
        files: The shown files, ordered by path.
        counts: The number of matching lines for each file, if the output is `count`.
        count: The total number of results: lines for `content`, otherwise files.
        truncated: Whether more follow after these.
    """

    matches: list[GrepMatch] = Field(default_factory=list[GrepMatch])
    files: list[str] = Field(default_factory=list[str])
    counts: dict[str, int] = Field(default_factory=dict[str, int])
    count: int = 0
    truncated: bool = False


class GrepExecutor(SearchExecutor[GrepAction, GrepObservation]):
    """Executor that searches files, with or without ripgrep.

    Args:
        working_dir: Where to search; the current directory by default.
        workspace: The directories to search, instead of `working_dir`; not closed by the executor.
        engine: `python` never runs a program, `ripgrep` requires its installation, and `auto`
            uses it if it is installed. The results are the same.
        timeout: The maximum number of seconds of a search.

    Raises:
        UserError: The directory does not exist, the engine is unknown, or ripgrep is not
            installed.
    """

    def __init__(
        self,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        workspace: ConfinedWorkspace | None = None,
        engine: Engine = "auto",
        timeout: float = 30.0,
    ) -> None:
        if engine not in {"auto", "ripgrep", "python"}:
            raise UserValueError(
                f"The engine {engine!r} is unknown: expected 'auto', 'ripgrep' or 'python'."
            )
        super().__init__(working_dir, workspace=workspace, timeout=timeout)
        self.program = None if engine == "python" else find_ripgrep(self.workspace.roots)
        if engine == "ripgrep" and self.program is None:
            self.close()
            raise UserValueError(
                "ripgrep is not installed outside the workspace. "
                "Install it so that `rg` is on the PATH, or use engine='auto'."
            )

    def __call__(self, action: GrepAction, conversation: object = None) -> GrepObservation:
        """Search files.

        Args:
            action: The search.
            conversation: Not used.

        Raises:
            ToolError: The path or a pattern is invalid, or the search took too long.
        """
        del conversation
        with self._call() as running:
            scope = Scope(
                self.workspace, action.path, hidden=action.hidden, no_ignore=action.no_ignore
            )
            meant = scope.filter(action.include)
            matcher = Matcher(
                action.pattern, running, literal=action.literal, ignore_case=action.ignore_case
            )
            page = _ResultPage(action, scope, matcher, running)
            if scope.is_file:
                if page.take(scope.base).binary:
                    raise ToolError(
                        f"{scope.shown} is a binary file (it holds NUL bytes); its lines are not "
                        "searched."
                    )
                return page.observation()
            files = self._candidates(action, scope, running)
            wanted = sorted(item for item in files.items() if meant(item[0]))
            for done, (path, count) in enumerate(wanted):
                running.tell(done, len(wanted), "files searched")
                page.add(path, count)
            return page.observation()

    def _candidates(
        self, action: GrepAction, scope: Scope, running: SearchContext
    ) -> dict[str, int | None]:
        """Return the candidate files, with their numbers of matching lines if ripgrep counted."""
        if self.program is not None:
            options = [*SEARCH, *["--ignore-case"] * action.ignore_case]
            options += ["--fixed-strings"] * action.literal
            options += ["-e", action.pattern]
            try:
                return dict(scope.ripgrep(self.program, options, running))
            except RipgrepRefused:
                pass  # the pattern is valid: search without a ripgrep that rejects it
        return {path: None for path, _ in scope.walk(running)}


class _ResultPage:
    """Collects the results to show, and counts the others.

    All shown lines are read here, beneath the workspace; ripgrep provides only paths and counts.
    """

    def __init__(
        self, action: GrepAction, scope: Scope, matcher: Matcher, running: SearchContext
    ) -> None:
        self._action = action
        self._scope = scope
        self._matcher = matcher
        self._running = running
        self._seen = 0
        self._shown = 0
        self._room = _MAX_CHARACTERS
        self._files: dict[str, int] = {}
        self._matches: list[GrepMatch] = []
        self._lines: list[str] = []

    def add(self, path: str, count: int | None) -> None:
        """Add a file, which is opened only if its content is needed."""
        self._running.check()
        if count is not None:
            results = count if self._action.output == "content" else 1
            if self._is_full or self._seen + results <= self._action.offset:
                self._seen += results
                return
        self.take(path)

    def take(self, path: str) -> FileLines:
        """Search a file, and add its results on this page."""
        from agents_tools.builtin.search.line_reader import FileLines

        action = self._action
        content = action.output == "content"
        start = max(0, action.offset - self._seen)
        stop = start if self._is_full else start + action.limit - self._shown
        found = (
            search_file(
                self._scope.root,
                path,
                self._matcher,
                self._running,
                keep=range(start, stop) if content else range(0),
                before=_value_or(action.before, action.context) if content else 0,
                after=_value_or(action.after, action.context) if content else 0,
            )
            or FileLines()
        )
        name = self._scope.name(path)
        if content:
            self._show_lines(name, found.hits)
            self._seen += found.count
        elif found.count:
            if self._seen >= action.offset and not self._is_full:
                self._show_file(name, found.count)
            self._seen += 1
        return found

    @property
    def _is_full(self) -> bool:
        return self._shown >= self._action.limit or self._room <= 0

    def _show_file(self, name: str, count: int) -> None:
        line = as_line(name)
        self._lines.append(f"{count}\t{line}" if self._action.output == "count" else line)
        self._files[name] = count
        self._shown += 1
        self._room -= len(line) + 8

    def _show_lines(self, name: str, hits: list[Hit]) -> None:
        fitting = 0
        for hit in hits:
            if self._is_full:
                break
            self._room -= sum(len(line) + 8 for line in (hit.line, *hit.before, *hit.after))
            self._shown += 1
            fitting += 1
        if not fitting:
            return
        shown = hits[:fitting]
        self._files[name] = fitting
        self._matches += [
            GrepMatch(
                path=name,
                line_number=hit.number,
                line=hit.line,
                before=hit.before,
                after=hit.after,
            )
            for hit in shown
        ]
        self._lines += ["", as_line(name), *_numbered_lines(shown)]

    def observation(self) -> GrepObservation:
        """Return the observation."""
        action = self._action
        files = list(self._files)
        what = "matching lines" if action.output == "content" else "files with matching lines"
        if self._seen:
            note = page_note(what, action.offset, self._shown, self._seen)
            text = "\n".join([note, *self._lines])
        else:
            only = f" in files '{as_line(action.include)}'" if action.include else ""
            text = f"No line of {as_line(action.path)} matches{only}: {as_line(action.pattern)}"
        return GrepObservation.from_text(
            text,
            matches=self._matches,
            files=files,
            counts=dict(self._files) if action.output == "count" else {},
            count=self._seen,
            truncated=bool(self._shown) and action.offset + self._shown < self._seen,
        )


_MAX_CHARACTERS = 60_000
"""The maximum number of characters of lines in one result, without its last match."""


def _value_or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _numbered_lines(hits: list[Hit]) -> list[str]:
    """Return lines with their numbers, followed by `:` for a match and `-` for context."""
    lines: dict[int, str] = {}
    for hit in hits:
        start = hit.number - len(hit.before)
        around = [(start + n, line) for n, line in enumerate(hit.before)]
        around += [(hit.number + 1 + n, line) for n, line in enumerate(hit.after)]
        for number, line in around:
            lines.setdefault(number, f"{number}-{as_line(line)}")
    for hit in hits:
        lines[hit.number] = f"{hit.number}:{as_line(hit.line)}"
    written: list[str] = []
    apart = any(hit.before or hit.after for hit in hits)
    for number in sorted(lines):
        if apart and written and number - 1 not in lines:
            written.append("--")
        written.append(lines[number])
    return written


class GrepTool(ToolDefinition[GrepAction, GrepObservation]):
    """Tool that finds lines by a regular expression."""

    name: ClassVar[str] = "grep"

    @classmethod
    def create(
        cls,
        conv_state: object = None,
        *,
        working_dir: str | os.PathLike[str] | None = None,
        executor: GrepExecutor | None = None,
        workspace: ConfinedWorkspace | None = None,
        engine: Engine = "auto",
        description: str | None = None,
    ) -> Sequence[Self]:
        """Create the tool.

        Args:
            conv_state: The conversation, whose working directory is the default.
            working_dir: The directory to search.
            executor: The executor; a new one by default.
            workspace: The directories to search, instead of `working_dir`.
            engine: As for `GrepExecutor`.
            description: A description for models that replaces the default.
        """
        own = executor or GrepExecutor(
            working_dir_of(conv_state, working_dir), workspace=workspace, engine=engine
        )
        return [
            cls(
                description=description or DESCRIPTION,
                action_type=GrepAction,
                observation_type=GrepObservation,
                executor=own,
                annotations=ToolAnnotations(
                    title="Search files",
                    readOnlyHint=True,
                    destructiveHint=False,
                    idempotentHint=True,
                    openWorldHint=False,
                ),
            )
        ]
