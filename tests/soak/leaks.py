"""Leaks: after very many calls of every kind, all that was taken has been given back."""

from __future__ import annotations

import asyncio
import gc
import time
import traceback
import tracemalloc
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic_core import from_json

from tests.soak._calls import CALLS, Kind
from tests.soak._expensive_calls import EXPENSIVE_CALLS
from tests.soak._leftovers import Held, held, resident, settled
from tests.soak.campaign import Budget, Figures, Finding, Outcome

__all__ = ["KINDS", "measure"]

KINDS: tuple[Kind, ...] = (*CALLS, *EXPENSIVE_CALLS)

_BATCHES = 4
_WARM_UPS = 2
_ROUNDS = 2
_NOISE = 4_096
"""Bytes by which a batch may differ from the one before without telling anything."""
_SHOWN = 6
_TIMERS = 500
_STRINGS = 50_000
_LARGEST = 20_000
_RESIDENT = 64 << 20
"""Bytes of memory that all kinds together may add to the process, what Python itself keeps."""


@dataclass(slots=True, kw_only=True)
class _Seen:
    """What is seen of one kind."""

    kind: Kind
    calls: int = 0
    per_call: float = 0.0
    left: Held | None = None
    told: str = ""

    @property
    def is_leak(self) -> bool:
        return bool(self.told or self.left)

    def finding(self, budget: Budget) -> Finding:
        lost = "".join(
            f"\n{len(things)} {kind} left: {', '.join(sorted(things)[:_SHOWN])}"
            for kind, things in (self.left or {}).items()
        )
        return Finding(
            what=f"calls of the kind {self.kind.name!r} leave something behind.{lost}\n{self.told}",
            where=f"leaks: {self.kind.name}",
            reproduce=f"tests.soak.leaks.measure({budget})",
        )


def measure(budget: Budget, kinds: Sequence[Kind] = KINDS) -> Outcome:
    """Make calls of these kinds within the budget, and weigh what stays."""
    gc.collect()
    gc.freeze()  # what is there already is no concern of ours, and slow to look through
    tracemalloc.start()
    _fill_caches()
    begun = time.monotonic()
    before = resident()
    seen: list[_Seen] = []
    left_out: list[str] = []
    for place, kind in enumerate(kinds):
        share = (budget.seconds - (time.monotonic() - begun)) / (len(kinds) - place)
        if share < kind.max_seconds:
            left_out.append(kind.name)
            continue
        seen.append(asyncio.run(_measured(kind, share)))
    tracemalloc.stop()
    gc.collect()
    findings = [one.finding(budget) for one in seen if one.is_leak]
    grown = resident() - before
    if grown > _RESIDENT and not findings:
        findings.append(_grown(grown, budget))
    return Outcome(
        cases=sum(one.calls for one in seen),
        findings=findings,
        figures=_figures(seen, left_out, grown),
    )


def _fill_caches() -> None:
    """Fill the cache of strings of pydantic's JSON reader: bounded, but it looks like a leak."""
    for number in range(_STRINGS):
        from_json(f'"a text as long as those of an id, {number:020}"')


async def _measured(kind: Kind, seconds: float) -> _Seen:
    seen = _Seen(kind=kind)
    at_first = held()
    try:
        begun = time.monotonic()
        for _ in range(_WARM_UPS):
            await kind.run(kind.least)
        await settled(at_first)
        each = (time.monotonic() - begun) / (_WARM_UPS * kind.least)
        size = max(kind.least, min(_LARGEST, int(seconds * 0.8 / each / _BATCHES)))
        seen.calls = _WARM_UPS * kind.least
        before = held()
        weights = [await _weight()]
        for _ in range(_BATCHES):
            await kind.run(size)
            seen.calls += size
            seen.left = await settled(before)
            weights.append(await _weight())
            if seen.left:
                break
        growths = [after - earlier for earlier, after in pairwise(weights)]
        seen.per_call = max(0.0, min(growths) / size)
        if not seen.left and min(growths) > kind.most * size + _NOISE:
            seen.told = await _explained(kind, size)
    except Exception:  # noqa: BLE001 - a call that does not end as it has to is a finding
        seen.told = traceback.format_exc()
    return seen


async def _weight() -> int:
    """Weigh all objects, once the loop has let go of timers that were cancelled.

    It does so when they are many, and more than the others.
    """
    loop = asyncio.get_running_loop()
    for timer in [loop.call_later(3_600, int) for _ in range(_TIMERS)]:
        timer.cancel()
    await asyncio.sleep(0)
    for _ in range(_ROUNDS):
        gc.collect()
    return tracemalloc.get_traced_memory()[0]


async def _explained(kind: Kind, size: int) -> str:
    """Make one batch more, and say where what it leaves was made."""
    await _weight()
    earlier = tracemalloc.take_snapshot()
    await kind.run(size)
    await _weight()
    later = tracemalloc.take_snapshot()
    grown = [one for one in later.compare_to(earlier, "lineno") if one.size_diff > 0]
    return f"{size} calls leave:\n" + "\n".join(str(one) for one in grown[:_SHOWN])


def _grown(grown: int, budget: Budget) -> Finding:
    return Finding(
        what=f"the process has grown by {grown >> 20} MiB, of which Python knows nothing",
        where="leaks: memory of the process",
        reproduce=f"tests.soak.leaks.measure({budget})",
    )


def _figures(seen: Sequence[_Seen], left_out: Sequence[str], grown: int) -> Figures:
    figures: Figures = {}
    for one in seen:
        things = sum(len(things) for things in (one.left or {}).values())
        figures[one.kind.name] = (
            f"{one.calls:,} calls, {one.per_call:.1f} bytes each, {things} objects left"
        )
    figures["growth of process memory, MiB"] = round(grown / (1 << 20), 1)
    if left_out:
        figures["skipped for lack of time"] = ", ".join(left_out)
    return figures
