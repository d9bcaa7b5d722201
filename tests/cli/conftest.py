"""Run the command line inside the test process, and remove the modules that it imports."""

from __future__ import annotations

import io
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

from agents_tools.cli import main

if TYPE_CHECKING:
    from collections.abc import Iterator

FIXTURE = str(Path(__file__).parent / "tools_fixture.py")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """The result of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Return standard output parsed as JSON."""
        return json.loads(self.out)


class Run(Protocol):
    def __call__(self, *args: str, stdin: str = "") -> Result: ...


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Return a function that runs a command."""

    def run(*args: str, stdin: str = "") -> Result:
        monkeypatch.setattr(sys, "stdin", io.StringIO(stdin))
        code = main([arg.replace("TOOLS", FIXTURE) for arg in args])
        captured = capsys.readouterr()
        return Result(code=code, out=captured.out, err=captured.err)

    return run


@pytest.fixture(autouse=True)
def _leave_imports_alone() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if name.startswith(("agents_tools_target_", "sample")):
            del sys.modules[name]
