"""`python -m tests.benchmarks.gate`: fail when a hot path became much slower than it was.

What is held are ratios to the limit, measured beside it in the same process, with slack: a busy
machine moves a ratio by a half and, now and then, doubles it. What is too slow is measured again, up to
four times in all, and its best ratio counts. `accepted.json` has what was measured on a quiet
machine; `--write` measures it anew, for a change that is meant to cost or to save.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.benchmarks.__main__ import GROUPS, TITLES, WEIGHT, measure
from tests.benchmarks.tables import markdown

__all__ = ["too_slow"]

ACCEPTED = Path(__file__).with_name("accepted.json")
SLACK = 2.5
ATTEMPTS = 4
NOISY = frozenset({"call_threaded", "concurrent", "cancelled", "event_heard", "event_stored"})
"""What depends on the scheduler or the disk more than on the library."""
SUBJECT = "agents-tools"
HELD = tuple(
    name
    for group in ("tools", "runs", "events")
    for name in GROUPS[group]
    if name != WEIGHT and name not in NOISY
)


def too_slow(ratios: Mapping[str, float], accepted: Mapping[str, float]) -> dict[str, float]:
    """Return the figures that are slower than accepted, with their factor."""
    return {
        name: ratio / accepted[name]
        for name, ratio in ratios.items()
        if ratio > accepted[name] * SLACK
    }


def _ratios(names: list[str]) -> dict[str, float]:
    workloads: dict[str, Any] = measure([SUBJECT], names, quick=True)[SUBJECT]["workloads"]
    return {name: workloads[name]["ratio"] for name in names}


def _best(names: list[str], accepted: Mapping[str, float]) -> dict[str, float]:
    best = _ratios(names)
    for _ in range(ATTEMPTS - 1):
        again = list(too_slow(best, accepted))
        if not again:
            break
        print(f"Once more: {', '.join(again)}", file=sys.stderr)
        best |= {name: min(best[name], ratio) for name, ratio in _ratios(again).items()}
    return best


def main() -> None:
    """Measure, and compare or write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="accept what is measured now")
    parser.add_argument("--only", nargs="+", choices=HELD, default=list(HELD))
    options = parser.parse_args()
    accepted: dict[str, float] = json.loads(ACCEPTED.read_text()) if ACCEPTED.exists() else {}
    if options.write:
        accepted |= {name: round(ratio, 3) for name, ratio in _ratios(options.only).items()}
        ACCEPTED.write_text(json.dumps(accepted, indent=2) + "\n")
        return
    unknown = [name for name in options.only if name not in accepted]
    if unknown:
        sys.exit(f"Nothing is accepted for {', '.join(unknown)}: add --write on a quiet machine.")
    best = _best(options.only, accepted)
    slow = too_slow(best, accepted)
    rows = [
        (
            TITLES[name],
            f"{ratio:.3g}x",
            f"{accepted[name]:.3g}x",
            "too slow" if name in slow else "",
        )
        for name, ratio in best.items()
    ]
    print(markdown(("ratio to the limit", "now", "accepted", ""), rows))
    if slow:
        told = ", ".join(f"{name} {times:.1f} times" for name, times in slow.items())
        sys.exit(
            f"Slower than accepted: {told}. Find it with python -m tests.benchmarks.profiles; if it "
            "is meant, accept it with python -m tests.benchmarks.gate --write."
        )


if __name__ == "__main__":
    main()
