"""The functions of the standard library, written by hundreds of people, as tools.

`python -m tests.corpus.run` does the same with the packages of `requirements.txt`.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from itertools import islice
from typing import Any

import pytest

from tests.corpus import run
from tests.corpus.functions import GROUPS, functions
from tests.corpus.oracle import documented
from tests.corpus.run import MINIMUM_SHARE, Report, measure


@pytest.fixture(scope="module")
def report() -> Report:
    """Make a tool of every function of the standard library, once."""
    return measure(functions("stdlib"))["stdlib"]


def test_the_corpus_is_large_enough_to_mean_something(report: Report) -> None:
    """A few well-kept functions would prove nothing about other people's code."""
    assert report.functions > 2_500
    assert report.built > 0.9 * report.functions
    assert report.documented > 150
    assert report.unannotated > 2_500
    assert report.functions == report.built + report.refused.total() + len(report.foreign)


def test_no_function_lets_a_foreign_exception_out(report: Report) -> None:
    """What cannot be a tool is refused with a `UserError` that says why."""
    assert report.foreign == []


def test_no_function_makes_anything_warn(report: Report) -> None:
    """Making a tool is silent; programs turn warnings into errors."""
    assert report.warned == []


def test_what_is_documented_is_described(report: Report) -> None:
    """A description that is lost is a model that guesses."""
    assert report.share >= MINIMUM_SHARE, report.silent


def test_the_corpus_is_the_same_each_time() -> None:
    """Figures of different days can be compared."""
    first = [name for _, name, _ in functions("stdlib")]
    assert first == [name for _, name, _ in functions("stdlib")]
    assert len(first) == len(set(first))
    assert len({group.name for group in GROUPS}) == len(GROUPS)


def test_every_function_of_the_corpus_has_a_signature() -> None:
    """Callables of C say nothing about their parameters and are no part of it."""
    for _, _, function in functions("stdlib"):
        inspect.signature(function)


@pytest.mark.parametrize(
    ("doc", "names"),
    [
        ("Do.\n\nArgs:\n    x: One.\n    y (int): Two.", {"x", "y"}),
        ("Do.\n\nParameters\n---\nx, y : int\n    Both.", {"x", "y"}),
        ("Do.\n\n:param x: One.\n:param int y: Two.\n", {"x", "y"}),
        ("Do.\n\n@param x: One.\n", {"x"}),
        ("Do.\n\nx -- One.\n- `y`: Two.\n", {"x", "y"}),
        ("Do.\n\nArgs:\n    x:\n        One.\n    y:\n", {"x"}),
        ("Take x and y: both.", set[str]()),
        (None, set[str]()),
    ],
)
def test_the_oracle_finds_what_a_reader_would(doc: str | None, names: set[str]) -> None:
    """The share of described parameters is worth as much as what it is a share of."""
    assert documented(doc, ["x", "y"]) == names


def test_the_command_prints_its_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python -m tests.corpus.run` is what a maintainer runs and a program reads."""
    _instead(list(islice(functions("stdlib"), 40)), monkeypatch)
    assert run.main(["--json", "stdlib"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["total"] == figures["stdlib"]
    assert figures["total"]["functions"] == 40
    assert run.main([]) == 0
    shown = capsys.readouterr().out
    assert f"built                    {figures['total']['built']} of 40" in shown


def test_the_command_fails_when_a_promise_is_broken(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The exit status alone tells whether a release is safe."""

    def odd(x: int) -> None:
        """Do.

        Returns:
            x: Nothing.
        """

    _instead([("odd", "odd", odd)], monkeypatch)
    assert run.main([]) == 1
    assert "odd: x" in capsys.readouterr().out
    broken = Report(foreign=["f: IndexError"]), Report(warned=["f: old"]), Report(documented=1)
    assert not any(report.passed for report in broken)


def _instead(
    rows: list[tuple[str, str, Callable[..., Any]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Let the command see these functions alone."""

    def corpus(*_: str) -> list[tuple[str, str, Callable[..., Any]]]:
        return rows

    monkeypatch.setattr(run, "functions", corpus)
