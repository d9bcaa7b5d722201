"""The `grep` tool: finds lines by a regular expression."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Literal, Self

from pydantic import BaseModel, ConfigDict, Field

from agents_tools.builtin._search.executor import (
    Engine,
    Scope,
    SearchExecutor,
    as_line,
    page_note,
)
from agents_tools.builtin._search.line_reader import Matcher, search_file
from agents_tools.builtin._search.ripgrep import SEARCH, RipgrepRefused
from agents_tools.classes.definition import Action, Observation, ToolDefinition, working_dir_of
from agents_tools.errors import ToolError
from agents_tools.tool.declaration import ToolAnnotations

if TYPE_CHECKING:
    import os
    from collections.abc import Sequence

    from agents_tools.builtin._paths import ConfinedWorkspace
    from agents_tools.builtin._search.line_reader import FileLines, Hit
    from agents_tools.builtin._search.search_context import SearchContext

__all__ = ["GrepAction", "GrepExecutor", "GrepMatch", "GrepObservation", "GrepTool"]

DESCRIPTION = """\
Find lines by a regular expression (the syntax of Rust and ripgrep: no look-around, no \
back-references), ordered by path.

* Lines are searched one by one: a pattern never matches across lines.
* `include` says which files, by a glob: `*.py`, `src/**/*.{ts,tsx}`, `!*.md`.
* `output`: `content` gives the lines, `files` the paths, `count` how many lines match in each.
* Binary files and links are passed over; hidden files and what .gitignore leaves out as well, \
unless asked for."""


class GrepAction(Action):
    """What to search for, and where."""

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
        description="Only files that match this glob, which starts at `path`.",
    )
    output: Literal["content", "files", "count"] = Field(
        default="content",
        description="What to give: lines, paths of files, or numbers of lines for each file.",
    )
    ignore_case: bool = Field(default=False, description="Whether 'a' also matches 'A'.")
    context: int = Field(default=0, ge=0, le=50, description="Lines to show around each match.")
    before: int | None = Field(
        default=None, ge=0, le=50, description="Lines to show in front, instead of `context`."
    )
    after: int | None = Field(
        default=None, ge=0, le=50, description="Lines to show behind, instead of `context`."
    )
    literal: bool = Field(default=False, description="Whether `pattern` is just a text.")
    hidden: bool = Field(default=False, description="Also files and directories named '.…'.")
    no_ignore: bool = Field(default=False, description="Also what .gitignore leaves out.")
    limit: int = Field(default=100, ge=1, le=1_000, description="How many results at most.")
    offset: int = Field(default=0, ge=0, description="How many results to pass over.")


class GrepMatch(BaseModel):
    """One line that matches.

    Attributes:
        path: The file, relative to the working directory.
        line_number: Which line it is, counted from 1.
        line: The line; one of more than 400 characters is cut around what matches.
        before: The lines in front that were asked for.
        after: The lines behind that were asked for.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str
    line_number: int
    line: str
    before: list[str] = Field(default_factory=list[str])
    after: list[str] = Field(default_factory=list[str])


class GrepObservation(Observation):
    """What was found.

    Attributes:
        matches: The lines, ordered by path and number, if the output is `content`.
        files: The files that are shown, ordered by path.
        counts: How many lines match in each file, if the output is `count`.
        count: How many results there are in all: lines for `content`, otherwise files.
        truncated: Whether there are more behind these.
    """

    matches: list[GrepMatch] = Field(default_factory=list[GrepMatch])
    files: list[str] = Field(default_factory=list[str])
    counts: dict[str, int] = Field(default_factory=dict[str, int])
    count: int = 0
    truncated: bool = False


class GrepExecutor(SearchExecutor[GrepAction, GrepObservation]):
    """Searches files; the arguments are those of `SearchExecutor`."""

    def __call__(self, action: GrepAction, conversation: object = None) -> GrepObservation:
        """Search.

        Args:
            action: For what, and where.
            conversation: Not used.

        Raises:
            ToolError: The path or a pattern is none, or it took too long.
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
        """Return the files that may match, and how many lines do where ripgrep has counted."""
        if self.program is not None:
            options = [*SEARCH, *["--ignore-case"] * action.ignore_case]
            options += ["--fixed-strings"] * action.literal
            options += ["-e", action.pattern]
            try:
                found = scope.ripgrep(self.program, options, running)
                return {path: int(count) for path, count in found}
            except RipgrepRefused:
                pass  # the pattern is valid: what ripgrep does not know is searched without it
        return {path: None for path, _ in scope.walk(running)}


class _ResultPage:
    """Collects the results that one answer shows, and counts the others.

    What is shown was read here, beneath the workspace, whoever found it; what is only counted may
    have been counted by ripgrep.
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
        """Take a file, which is opened only if its content is needed."""
        self._running.check()
        if count is not None:
            results = count if self._action.output == "content" else 1
            if self._is_full or self._seen + results <= self._action.offset:
                self._seen += results
                return
        self.take(path)

    def take(self, path: str) -> FileLines:
        """Search a file, and show what of it belongs on the page."""
        from agents_tools.builtin._search.line_reader import FileLines

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
        """Return the page."""
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
"""How many characters of lines one answer holds, beside those of its last result."""


def _value_or(value: int | None, otherwise: int) -> int:
    return otherwise if value is None else value


def _numbered_lines(hits: list[Hit]) -> list[str]:
    """Write lines with their numbers: `:` behind that of a match, `-` behind that of another."""
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
    """Finds lines by a regular expression."""

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
