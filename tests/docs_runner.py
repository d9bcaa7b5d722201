"""Runs the snippets of a Markdown page: programs as one, commands in a folder with its files."""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import types
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]

_FENCE = re.compile(
    r"^(?P<indent> *)```(?P<language>python|py|console)(?P<options>[^\n]*)\n(?P<text>.*?)\n(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_SHOWN = re.compile(r"^\s*# ?> ?(.*)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Snippet:
    """One fenced block of a page."""

    page: Path
    line: int
    language: str
    title: str | None
    text: str


def snippets_of(page: Path) -> list[Snippet]:
    """Return the programs and the commands of a page, in order."""
    source = page.read_text(encoding="utf-8")
    found: list[Snippet] = []
    for match in _FENCE.finditer(source):
        title = re.search(r'title="([^"]+)"', match["options"])
        indent = match["indent"]
        text = "\n".join(line.removeprefix(indent) for line in match["text"].split("\n"))
        found.append(
            Snippet(
                page=page,
                line=source.count("\n", 0, match.start()) + 2,
                language=match["language"],
                title=None if title is None else title[1],
                text=text,
            )
        )
    return found


class PageRun:
    """A reader who types what a page says, in a folder of their own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._module = types.ModuleType("docs_page")
        (folder / "examples").symlink_to(ROOT / "examples")

    def run(self, snippet: Snippet) -> None:
        """Run a snippet and compare what it prints with what the page shows.

        A `py` block with a title is only written to its file: a command of the page runs it.
        """
        if snippet.title is not None:
            with (self._folder / snippet.title).open("a", encoding="utf-8") as file:
                file.write(snippet.text + "\n")
        if snippet.language == "python":
            self._run_program(snippet)
        elif snippet.language == "console":
            for command, shown in _commands(snippet.text):
                self._run_command(command, shown)

    def _run_program(self, snippet: Snippet) -> None:
        blank_lines = "\n" * (snippet.line - 1)  # tracebacks then point into the page
        code = compile(blank_lines + snippet.text, str(snippet.page), "exec", dont_inherit=True)
        output = io.StringIO()
        sys.modules["docs_page"] = self._module
        try:
            with contextlib.redirect_stdout(output):
                exec(code, vars(self._module))  # noqa: S102 - this is what the page is for
        finally:
            del sys.modules["docs_page"]
        shown = [line.rstrip() for line in _SHOWN.findall(snippet.text)]
        printed = [line.rstrip() for line in output.getvalue().splitlines()]
        assert printed == shown, "\n".join([f"{snippet.page}:{snippet.line} prints", *printed])

    def _run_command(self, command: str, shown: str) -> None:
        if command.startswith(("make ", "pip ")):
            return  # what sets up is tried out elsewhere
        environment = {
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "COLUMNS": "80",
            "PYTHONPATH": str(ROOT),
        }
        done = subprocess.run(  # noqa: S602 - the page's own command, as a shell would run it
            command,
            shell=True,
            cwd=self._folder,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=15,
            check=False,
        )
        pattern = re.escape(_timeless(shown.rstrip())).replace(r"\.\.\.", ".*")
        output = _timeless("\n".join(line.rstrip() for line in done.stdout.rstrip().splitlines()))
        assert re.fullmatch(pattern, output, re.DOTALL), f"{command}\n{output}\n--- shown:\n{shown}"


def _timeless(text: str) -> str:
    """Take out how long things took: that differs each time."""
    text = re.sub(r"(?<=in )[\d.]+ m?s\b", "0 s", text)
    return re.sub(r'(?<="duration":)[\d.e-]+', "0", text)


def _commands(text: str) -> list[tuple[str, str]]:
    """Return each command of a console block with the output that is shown below it."""
    found: list[tuple[str, str]] = []
    for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
        lines = part.split("\n")
        count = 1
        while lines[count - 1].endswith("\\"):
            count += 1
        found.append(("\n".join(lines[:count]), "\n".join(lines[count:])))
    return found
