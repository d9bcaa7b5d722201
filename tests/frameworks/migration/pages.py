"""The differences between two programs that do the same, as the pages about migration show them.

`python -m tests.frameworks.migration.pages` writes them into the pages.
"""

from __future__ import annotations

import ast
import difflib
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

__all__ = ["EXERCISES", "Exercise"]

_FOLDER = Path(__file__).parent
_DOCS = Path(__file__).resolve().parents[3] / "docs"
_BEGIN, _END = "<!-- the differences: begin -->\n", "<!-- the differences: end -->\n"
_LIMIT = 100
"""Seconds that one program may take."""


@dataclass(frozen=True)
class Exercise:
    """A program of a framework, and the same program after the migration.

    Attributes:
        name: The module name of the framework.
        page: The page that shows the differences.
    """

    name: str
    page: str

    @property
    def path(self) -> Path:
        """The path of the page."""
        return _DOCS / self.page

    def program(self, when: str) -> Path:
        """Return the path of the program `before` or `after` the migration."""
        return _FOLDER / f"{self.name}_{when}.py"

    def output(self, when: str, folder: Path) -> list[str]:
        """Run a program with a file in a folder, and return the lines that it prints.

        Args:
            when: `before` or `after`.
            folder: The folder.

        Raises:
            CalledProcessError: The program failed.
        """
        command = [sys.executable, str(self.program(when)), str(folder / f"{when}.db")]
        done = subprocess.run(  # noqa: S603 - a program of this folder
            command, check=True, capture_output=True, text=True, timeout=_LIMIT
        )
        return done.stdout.splitlines()

    def changed_lines(self) -> int:
        """Count the lines that differ, without import statements."""
        before, after = (_without_imports(self.program(when)) for when in ("before", "after"))
        matcher = difflib.SequenceMatcher(None, before, after, autojunk=False)
        return sum(
            max(i2 - i1, j2 - j1) for tag, i1, i2, j1, j2 in matcher.get_opcodes() if tag != "equal"
        )

    def section(self, folder: Path) -> str:
        """Return the differences of the programs and of their output, as Markdown."""
        before, after = (
            self.program(when).read_text(encoding="utf-8").splitlines()
            for when in ("before", "after")
        )
        text = f"\n{_difference(before, after)}\n"
        output = _difference(self.output("before", folder), self.output("after", folder))
        if output:
            return f"{text}The output differs in these lines:\n\n{output}\n"
        return f"{text}Both programs print the same.\n\n"

    def written(self, folder: Path) -> str:
        """Return the page with the current differences."""
        page = self.path.read_text(encoding="utf-8")
        head, _, rest = page.partition(_BEGIN)
        return f"{head}{_BEGIN}{self.section(folder)}{_END}{rest.partition(_END)[2]}"


EXERCISES = (
    Exercise("openai_agents", "migrate-from-openai-agents.md"),
    Exercise("pydantic_ai", "migrate-from-pydantic-ai.md"),
    Exercise("langchain", "migrate-from-langchain.md"),
)


def _difference(before: list[str], after: list[str]) -> str:
    """Return a block with the lines that differ; empty if none does."""
    lines = list(difflib.unified_diff(before, after, n=0, lineterm=""))[2:]
    shown = ["@@" if line.startswith("@@") else line for line in lines]
    return "\n".join(["```diff", *shown, "```", ""]) if shown else ""


def _without_imports(program: Path) -> list[str]:
    text = program.read_text(encoding="utf-8")
    imports = {
        number
        for node in ast.parse(text).body
        if isinstance(node, (ast.Import, ast.ImportFrom))
        for number in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
    numbered = enumerate(text.splitlines(), start=1)
    return [line for number, line in numbered if number not in imports and line.strip()]


if __name__ == "__main__":
    import tempfile

    for exercise in EXERCISES:
        with tempfile.TemporaryDirectory() as folder:
            exercise.path.write_text(exercise.written(Path(folder)), encoding="utf-8")
        sys.stdout.write(f"{exercise.page}: {exercise.changed_lines()} lines changed\n")
