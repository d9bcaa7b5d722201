"""Reads which tests name which rows, from the sources alone: nothing is imported, nothing is run."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

__all__ = ["Found", "Mark", "read"]

_MARK = "requirement"
_NEVER_RUN = ("skip", "xfail")
_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)


@dataclass(frozen=True, slots=True, kw_only=True)
class Mark:
    """One test that says which rows it shows."""

    test: str
    """As pytest names it: `tests/test_x.py::TestOf::test_y`."""
    line: int
    rows: tuple[str, ...]

    @property
    def file(self) -> str:
        """Where the test is."""
        return self.test.partition("::")[0]


@dataclass(frozen=True, slots=True)
class Found:
    """What stands in a folder of tests: the marks, and what is wrong with some of them."""

    marks: list[Mark] = field(default_factory=list[Mark])
    faults: list[str] = field(default_factory=list[str])


def read(root: Path, folder: Path) -> Found:
    """Read all marks in the files of `folder`; names of tests begin at `root`.

    Args:
        root: Where pytest runs.
        folder: The tests, with all folders below.
    """
    found = Found()
    for path in sorted(folder.rglob("*.py")):
        source = path.read_text(encoding="utf-8")
        if f"mark.{_MARK}" in source:
            name = path.relative_to(root).as_posix()
            try:
                module = ast.parse(source)
            except SyntaxError as error:
                found.faults.append(f"{name}:{error.lineno}: this is no Python: {error.msg}")
            else:
                _File(name, found, collected=_is_collected(path.name)).read(module)
    return found


def _is_collected(file: str) -> bool:
    """Return whether pytest looks for tests in a file of this name."""
    return file.startswith("test_") or file.endswith("_test.py")


class _File:
    """The marks of one file."""

    def __init__(self, name: str, found: Found, *, collected: bool) -> None:
        self._name = name
        self._found = found
        self._collected = collected
        self._seen: set[int] = set()
        """Marks that belong to a test, by the place of their call in the file."""

    def read(self, module: ast.Module) -> None:
        everywhere = {id(call): call for call in _marks_below(module)}
        if everywhere and not self._collected:
            self._fault(min(everywhere.values(), key=_line), "pytest finds no tests in such a file")
            return
        self._body(module.body, self._name, rows=self._pytestmark(module.body))
        for place, call in everywhere.items():
            if place not in self._seen:
                self._fault(call, "the mark belongs to no test that pytest would run")

    def _body(self, body: list[ast.stmt], prefix: str, rows: list[str]) -> None:
        for node in body:
            if isinstance(node, ast.ClassDef) and _is_test_class(node):
                name = f"{prefix}::{node.name}"
                own = self._decorators(node) + self._pytestmark(node.body)
                tests = [one for one in node.body if _is_test(one)]
                if own and not tests:  # a class of inherited tests speaks for all of them
                    self._mark(name, node, rows + own)
                self._body(node.body, name, rows + own)
            elif isinstance(node, _FUNCTIONS) and _is_test(node):
                own = self._decorators(node)
                if rows or own:
                    self._mark(f"{prefix}::{node.name}", node, own + rows)

    def _mark(self, test: str, node: ast.stmt, rows: list[str]) -> None:
        mark = Mark(test=test, line=node.lineno, rows=tuple(dict.fromkeys(rows)))
        self._found.marks.append(mark)

    def _decorators(self, node: ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
        """Return the rows that the marks of a test or of its parameters name."""
        rows = [row for one in node.decorator_list for row in self._rows_below(one)]
        if rows and any(_is_never_run(one) for one in node.decorator_list):
            self._fault(node, f"`{node.name}` is never run, so it shows nothing")
        return rows

    def _pytestmark(self, body: list[ast.stmt]) -> list[str]:
        """Return the rows named for all tests of a module or of a class."""
        return [
            row
            for node in body
            if isinstance(node, ast.Assign)
            and any(isinstance(to, ast.Name) and to.id == "pytestmark" for to in node.targets)
            for row in self._rows_below(node.value)
        ]

    def _rows_below(self, node: ast.AST) -> list[str]:
        return [row for call in _marks_below(node) for row in self._rows_of(call)]

    def _rows_of(self, call: ast.Call) -> Iterator[str]:
        self._seen.add(id(call))
        if not call.args or call.keywords:
            self._fault(call, "name the rows as plain arguments")
        for argument in call.args:
            if isinstance(argument, ast.Constant) and isinstance(argument.value, str):
                yield argument.value
            else:
                self._fault(argument, "name the rows as plain texts, so that they can be read")

    def _fault(self, node: ast.expr | ast.stmt, what: str) -> None:
        self._found.faults.append(f"{self._name}:{_line(node)}: {what}")


def _marks_below(node: ast.AST) -> Iterator[ast.Call]:
    """Yield each `pytest.mark.requirement(...)` in a piece of source."""
    for one in ast.walk(node):
        if not isinstance(one, ast.Call) or not isinstance(one.func, ast.Attribute):
            continue
        if one.func.attr == _MARK and ast.unparse(one.func.value) == "pytest.mark":
            yield one


def _line(node: ast.expr | ast.stmt) -> int:
    return node.lineno


def _is_test_class(node: ast.ClassDef) -> bool:
    """Return whether pytest looks for tests in a class: by its name, and it has no constructor."""
    return node.name.startswith("Test") and not any(
        isinstance(one, ast.FunctionDef) and one.name == "__init__" for one in node.body
    )


def _is_test(node: ast.stmt) -> bool:
    return isinstance(node, _FUNCTIONS) and node.name.startswith("test")


def _is_never_run(decorator: ast.expr) -> bool:
    """Return whether a mark skips a test, or hides its failure."""
    function = decorator.func if isinstance(decorator, ast.Call) else decorator
    return ast.unparse(function) in {f"pytest.mark.{name}" for name in _NEVER_RUN}
