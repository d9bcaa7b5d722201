"""Timing two coroutines by turns, so that both meet the same machine."""

from __future__ import annotations

import statistics
from dataclasses import dataclass
from time import perf_counter
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

BATCH_SECONDS = 0.0035
BUDGET_SECONDS = 10.0
LEAST_BATCHES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """What one workload took.

    Attributes:
        seconds: One operation of the subject, in its fastest batch.
        limit: One operation of the limit, in its fastest batch.
        paired: The median over the turns of subject to limit.
        median: One operation of the subject, in the batch in the middle.
        limit_median: The same for the limit.
        batches: How many turns there were.
    """

    seconds: float
    limit: float
    paired: float
    median: float
    limit_median: float
    batches: int

    @property
    def ratio(self) -> float:
        """How many times the limit the subject takes."""
        return self.seconds / self.limit

    def to_dict(self) -> dict[str, float]:
        """Return the figures as JSON."""
        return {
            "seconds": self.seconds,
            "limit": self.limit,
            "ratio": self.ratio,
            "paired": self.paired,
            "median": self.median,
            "limit_median": self.limit_median,
            "batches": self.batches,
        }


async def by_turns(
    subject: Callable[[int], Awaitable[float]],
    limit: Callable[[int], Awaitable[float]],
    *,
    batches: int,
    single: bool = False,
    budget: float = BUDGET_SECONDS,
) -> Measure:
    """Run both by turns and compare their fastest batches.

    Args:
        subject: Runs an operation n times and gives the seconds it took.
        limit: The same for the limit.
        batches: How many turns; fewer when they take longer than the budget.
        single: Whether one operation is a batch, for operations of milliseconds.
        budget: Seconds.
    """
    size, limit_size = (1, 1) if single else (await _fit(subject), await _fit(limit))
    taken: list[float] = []
    least: list[float] = []
    stop = perf_counter() + budget
    for _ in range(batches):
        if len(taken) >= LEAST_BATCHES and perf_counter() > stop:
            break
        least.append(await limit(limit_size) / limit_size)
        taken.append(await subject(size) / size)
    return Measure(
        seconds=min(taken),
        limit=min(least),
        paired=statistics.median(a / b for a, b in zip(taken, least, strict=True)),
        median=statistics.median(taken),
        limit_median=statistics.median(least),
        batches=len(taken),
    )


async def _fit(batch: Callable[[int], Awaitable[float]]) -> int:
    """Find how many operations make a batch of the usual length."""
    size = 1
    while await batch(size) < BATCH_SECONDS / 2:
        size *= 2
    seconds = min([await batch(size) for _ in range(3)])
    return max(1, round(size * BATCH_SECONDS / seconds))


def calls(
    operation: Callable[[str], Awaitable[object]], arguments: str
) -> Callable[[int], Awaitable[float]]:
    """Make a batch of calls with the same arguments."""

    async def batch(size: int) -> float:
        start = perf_counter()
        for _ in range(size):
            await operation(arguments)
        return perf_counter() - start

    return batch
