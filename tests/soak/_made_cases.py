"""Runs made-up cases until the time is over, and keeps one finding of each kind."""

from __future__ import annotations

import time
from random import Random
from typing import TYPE_CHECKING

from tests.soak.campaign import Budget, Finding, Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Cases"]


class Cases:
    """The cases of one campaign.

    Args:
        name: The campaign's name.
        budget: What it may take.

    Attributes:
        count: How many texts, requests or messages were tried.
        counted: How many of each kind there were.
        most: How many kinds of findings are told; more say nothing new.
    """

    most = 25

    def __init__(self, name: str, budget: Budget) -> None:
        self.count = 0
        self.counted: dict[str, int | float | str] = {}
        self._name = name
        self._budget = budget
        self._end = time.monotonic() + budget.seconds
        self._found: dict[str, Finding] = {}

    def __iter__(self) -> Iterator[tuple[int, Random]]:
        """Yield the number of each case with the source of its choices, while there is time."""
        number = 0
        while self.left > 0:
            yield number, Random(f"{self._budget.seed}:{number}")  # noqa: S311 - not for secrets
            number += 1

    @property
    def left(self) -> float:
        """How many seconds are left; none once enough has been found."""
        return self._end - time.monotonic() if len(self._found) < self.most else -1.0

    def add(self, kind: str) -> None:
        """Count one of a kind."""
        before = self.counted.get(kind, 0)
        self.counted[kind] = before + 1 if isinstance(before, int) else 1

    def known(self, kind: str) -> bool:
        """Whether a finding of this kind is kept already."""
        return kind in self._found

    def found(self, kind: str, what: str, where: str, program: str = "") -> None:
        """Keep a finding, unless there is one of its kind."""
        again = f"tests.soak.{self._name}.run({self._budget})"
        finding = Finding(what=what, where=where, reproduce=program or again)
        self._found.setdefault(kind, finding)

    def outcome(self) -> Outcome:
        """Return the outcome."""
        return Outcome(
            cases=self.count, findings=list(self._found.values()), figures=dict(self.counted)
        )
