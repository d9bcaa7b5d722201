"""Time the class-based and built-in tools of one subject, in its own environment.

Run as `python -m tests.benchmarks.builtin.worker NAME [--batches N]`: reads the name of a workload
a line, and answers each with its figure as a line of JSON; an empty line, with the versions.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import importlib
import json
import logging
import os
import platform
import shutil
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

from tests.benchmarks.builtin import BUILTIN_TIMED, limit, sample
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.timing import BUDGET_SECONDS, LEAST_BATCHES, Measure, by_turns, calls

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator

    from tests.benchmarks.subjects import Subject

SHORT = 100
"""Operations for each batch of other workloads, where one may take less than a millisecond; one is
timed at a time."""
SHORT_SECONDS = 2.0
"""What these may take in all; slow subjects get fewer."""
NUMBERS = 200_000


class Worker:
    """Times the workloads of one subject, each a method of its own."""

    def __init__(self, tools: Any, classes: str, *, batches: int, place: Path) -> None:
        self.tools = tools
        self.batches = batches
        self.place = place
        self._prepare = sample.tool_source(classes)
        self._tree = place / "tree"

    # --- class-based tools

    async def class_define(self) -> Measure:
        """Define three classes, and make the schema of the first."""

        def subject() -> float:
            define = self._prepare()
            start = perf_counter()
            (tool,) = define().create()
            self.tools.openai(tool)()
            return perf_counter() - start

        def least() -> float:
            define = sample.models_source()
            start = perf_counter()
            limit.openai(define())()
            return perf_counter() - start

        return await self._singly(subject, least)

    async def class_resolve(self) -> Measure:
        """Make a tool of its specification."""
        return await self._often(
            self.tools.resolver(self._prepare()()), limit.resolver(sample.models_source()())
        )

    async def class_call(self) -> Measure:
        """Call a tool with JSON, up to the text that a model reads."""
        own, least = self.tools.caller(self._tool()), limit.caller(sample.models_source()())
        for call in (own, least):
            _check("answer", call(sample.ARGUMENTS), sample.SAID)
        return await self._often(lambda: own(sample.ARGUMENTS), lambda: least(sample.ARGUMENTS))

    async def class_invoke(self) -> Measure | None:
        """Call a tool as agents do, where that is another way."""
        if not hasattr(self.tools, "invoker"):
            return None
        least = limit.caller(sample.models_source()())

        async def by_hand(arguments: str) -> str:
            return await asyncio.to_thread(least, arguments)

        return await by_turns(
            calls(self.tools.invoker(self._tool()), sample.ARGUMENTS),
            calls(by_hand, sample.ARGUMENTS),
            batches=4 * self.batches,
        )

    async def class_openai(self) -> Measure:
        """Describe a tool, again and again, as for each request to a model."""
        return await self._often(
            self.tools.openai(self._tool()), limit.openai(sample.models_source()())
        )

    async def class_mcp(self) -> Measure:
        """Describe a tool as a server lists it."""
        return await self._often(self.tools.mcp(self._tool()), limit.mcp(sample.models_source()()))

    def _tool(self) -> Any:
        (tool,) = self._prepare()().create()
        return tool

    # --- the terminal

    async def terminal_start(self) -> Measure:
        """Start a terminal, and wait for its first answer; closing it does not count."""
        return await self._starting(self.tools.terminal)

    async def terminal_true(self) -> Measure:
        """Run a command that does nothing."""
        return await self._running(self.tools.terminal, "true", "", short=True)

    async def terminal_echo(self) -> Measure:
        """Run a command that says a word."""
        return await self._running(self.tools.terminal, "echo hello", "hello", short=True)

    async def terminal_seq(self) -> Measure:
        """Run a command that writes 200,000 lines; how much of it is shown is the tool's choice."""
        return await self._running(self.tools.terminal, f"seq 1 {NUMBERS}", f"{NUMBERS}")

    async def tmux_start(self) -> Measure | None:
        """Start a terminal in tmux, where the subject has such.

        The output of a first command is lost there now and then: only its exit code is looked at.
        """
        tmux = self._tmux()
        return tmux and await self._starting(tmux, "")

    async def tmux_echo(self) -> Measure | None:
        """Run a command in tmux, where the subject does such."""
        tmux = self._tmux()
        return tmux and await self._running(tmux, "echo hello", "")

    def _tmux(self) -> Callable[[Path], Any] | None:
        return getattr(self.tools, "tmux", None) if shutil.which("tmux") else None

    async def _starting(self, terminal: Callable[[Path], Any], expected: str = "hello") -> Measure:
        def starting(one: Callable[[Path], Any]) -> float:
            start = perf_counter()
            with one(self.place) as run:
                text, code = run("echo hello")
                taken = perf_counter() - start
                _check_run(text, code, expected)
            return taken

        return await self._singly(
            lambda: starting(terminal),
            lambda: starting(limit.terminal),
            batches=max(LEAST_BATCHES, self.batches // 2),
        )

    async def _running(
        self,
        terminal: Callable[[Path], Any],
        command: str,
        expected: str,
        *,
        short: bool = False,
    ) -> Measure:
        def running(run: Callable[[str], tuple[str, int | None]]) -> float:
            start = perf_counter()
            text, code = run(command)
            taken = perf_counter() - start
            _check_run(text, code, expected)
            return taken

        with terminal(self.place) as own, limit.terminal(self.place) as least:
            for run in (own, least):
                running(run)
            return await self._singly(lambda: running(own), lambda: running(least), short=short)

    # --- the file editor

    async def editor_view(self) -> Measure:
        """View a file of 10 MB; how much of it is shown is the tool's choice."""
        return await self._editing(sample.BIG_LINES, lambda edit, path: edit("view", path))

    async def editor_range(self) -> Measure:
        """View some of its lines again."""
        return await self._editing(sample.BIG_LINES, _view_range)

    async def editor_range_changed(self) -> Measure:
        """View some of its lines when another program has just written it."""

        def before(edit: Callable[..., str], path: Path) -> None:
            del edit
            path.write_bytes(path.read_bytes())

        return await self._editing(sample.BIG_LINES, _view_range, before=before)

    async def editor_replace(self) -> Measure:
        """Replace one text in it."""
        return await self._editing(sample.BIG_LINES, _replacing())

    async def editor_insert(self) -> Measure:
        """Insert a line in it."""
        return await self._editing(sample.BIG_LINES, _insert)

    async def editor_undo(self) -> Measure:
        """Take an insertion back."""
        return await self._editing(
            sample.BIG_LINES, lambda edit, path: edit("undo_edit", path), before=_insert
        )

    async def editor_small_view(self) -> Measure:
        """View a file of 200 lines."""
        return await self._editing(
            sample.SMALL_LINES, lambda edit, path: edit("view", path), short=True
        )

    async def editor_small_replace(self) -> Measure:
        """Replace one text in it."""
        return await self._editing(sample.SMALL_LINES, _replacing(), short=True)

    async def _editing(
        self,
        lines: int,
        operation: Callable[[Callable[..., str], Path], str],
        *,
        before: Callable[[Callable[..., str], Path], object] | None = None,
        short: bool = False,
    ) -> Measure:
        """Time an operation of two editors, each on a file of its own."""

        def editing(edit: Callable[..., str], path: Path) -> float:
            if before is not None:
                before(edit, path)
            start = perf_counter()
            operation(edit, path)
            return perf_counter() - start

        with contextlib.ExitStack() as stack:
            pairs: list[tuple[Callable[..., str], Path]] = []
            for name, tools in (("own", self.tools), ("limit", limit)):
                directory = stack.enter_context(_directory(self.place / name))
                sample.write_lines(directory / "file.txt", lines)
                os.utime(directory / "file.txt", (1, 1))  # not changed just now
                edit = stack.enter_context(tools.editor(directory))
                pairs.append((edit, directory / "file.txt"))
            for edit, path in pairs:
                editing(edit, path)
            own, least = pairs
            return await self._singly(lambda: editing(*own), lambda: editing(*least), short=short)

    # --- searching

    async def grep(self) -> Measure | None:
        """Find files by their content, with ripgrep."""
        return await self._searching("grep", sample.NEEDLE, sample.FOUND, python=False)

    async def grep_lines(self) -> Measure | None:
        """Find lines, where the subject does."""
        return await self._searching("lines", sample.NEEDLE, sample.FOUND)

    async def grep_python(self) -> Measure | None:
        """Find files by their content, without any program."""
        return await self._searching("grep", sample.NEEDLE, sample.FOUND, python=True)

    async def glob(self) -> Measure | None:
        """Find files by their names, in the way that is the default where there is ripgrep."""
        return await self._searching("glob", sample.GLOB, sample.GLOBBED, python=False)

    async def glob_python(self) -> Measure | None:
        """Find files by their names, without any program."""
        return await self._searching("glob", sample.GLOB, sample.GLOBBED, python=True)

    async def _searching(
        self, name: str, pattern: str, expected: int, **how: bool
    ) -> Measure | None:
        if not hasattr(self.tools, name) or not (how.get("python") or shutil.which("rg")):
            return None
        if not self._tree.exists():
            sample.make_tree(self._tree)

        def searching(search: Callable[[], int]) -> float:
            start = perf_counter()
            found = search()
            taken = perf_counter() - start
            _check(f"what {name} found", found, expected)
            return taken

        with (
            getattr(self.tools, name)(self._tree, pattern, **how) as own,
            getattr(limit, name)(self._tree, pattern, **how) as least,
        ):
            for search in (own, least):
                searching(search)
            return await self._singly(lambda: searching(own), lambda: searching(least))

    # --- timing

    async def _singly(
        self,
        own: Callable[[], float],
        least: Callable[[], float],
        *,
        batches: int | None = None,
        short: bool = False,
    ) -> Measure:
        """Time operations one at a time; each says itself how long it took."""

        async def subject(_: int) -> float:
            return own()

        async def by_hand(_: int) -> float:
            return least()

        return await by_turns(
            subject,
            by_hand,
            batches=SHORT * self.batches if short else batches or self.batches,
            single=True,
            budget=SHORT_SECONDS if short else BUDGET_SECONDS,
        )

    async def _often(self, own: Callable[[], object], least: Callable[[], object]) -> Measure:
        """Time operations of microseconds, many at once."""
        return await by_turns(_batch(own), _batch(least), batches=4 * self.batches)


def _batch(operation: Callable[[], object]) -> Callable[[int], Awaitable[float]]:
    async def batch(size: int) -> float:
        start = perf_counter()
        for _ in range(size):
            operation()
        return perf_counter() - start

    return batch


def _view_range(edit: Callable[..., str], path: Path) -> str:
    first = sample.BIG_LINES // 2
    text = edit("view", path, view_range=[first, first + 49])
    if sample.MARK.format(0) not in text:
        sys.exit(f"The mark is not in what is shown: {text[:200]!r}")
    return text


def _insert(edit: Callable[..., str], path: Path) -> str:
    return edit("insert", path, insert_line=1_000, new_str="one more line")


def _replacing() -> Callable[[Callable[..., str], Path], str]:
    """Make what replaces a mark by the next."""
    marks: dict[Path, int] = {}

    def replace(edit: Callable[..., str], path: Path) -> str:
        mark = marks.get(path, 0)
        marks[path] = mark + 1
        old, new = sample.MARK.format(mark), sample.MARK.format(mark + 1)
        return edit("str_replace", path, old_str=old, new_str=new)

    return replace


def _check(what: str, came: object, expected: object) -> None:
    if came != expected:
        sys.exit(f"{what}: {came!r:.200} instead of {expected!r}")


def _check_run(text: str, code: int | None, expected: str) -> None:
    _check("exit code", code, 0)
    if expected not in text:
        sys.exit(f"{expected!r} was not written, but {text[:200]!r}")


@contextlib.contextmanager
def _directory(path: Path) -> Generator[Path]:
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def report(subject: Subject) -> dict[str, Any]:
    """Return the name of the timed work."""
    names = (subject.distribution, "pydantic", "pydantic_core")
    return {
        "python": platform.python_version(),
        "versions": {name: version(name) for name in names},
    }


def main() -> None:
    """Time what is asked for, line by line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=[name for name, one in SUBJECTS.items() if one.builtin])
    parser.add_argument("--batches", type=int, default=50)
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # some of what is timed writes a line for each step
    subject: Subject = SUBJECTS[options.subject]
    tools = importlib.import_module(str(subject.builtin))
    with tempfile.TemporaryDirectory() as directory:
        tempfile.tempdir = directory  # not all that is timed takes away what it leaves there
        worker = Worker(
            tools,
            subject.classes_statement,
            batches=options.batches,
            place=Path(directory).resolve(),
        )
        for line in sys.stdin:
            answer = _figure(worker, line.strip()) if line.strip() else report(subject)
            print(json.dumps(answer), flush=True)


def _figure(worker: Worker, workload: str) -> dict[str, float] | None:
    if workload not in BUILTIN_TIMED:
        sys.exit(f"There is no workload {workload!r}. There are: {', '.join(BUILTIN_TIMED)}.")
    figure: Measure | None = asyncio.run(getattr(worker, workload)())
    return figure and figure.to_dict()


if __name__ == "__main__":
    main()
