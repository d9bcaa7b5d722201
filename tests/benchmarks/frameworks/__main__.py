"""`python -m tests.benchmarks.frameworks [NAMES]`: time the frameworks that are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.benchmarks.frameworks import Cost
from tests.benchmarks.tables import markdown
from tests.frameworks.run import FRAMEWORKS, QUIET, ROOT

HEAD = (
    "",
    "bare call",
    "exported tool",
    "in a turn: agents-tools",
    "own tool",
    "agents-tools / own",
)


def _cost(name: str) -> Cost:
    program = [str(FRAMEWORKS[name].python), "-m", "tests.benchmarks.frameworks.worker", name]
    done = subprocess.run(
        program,
        cwd=ROOT,
        env={**os.environ, **QUIET},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(done.stderr[-2_000:])
    return Cost(**json.loads(done.stdout.splitlines()[-1]))


def main() -> None:
    """Print a table."""
    rows: list[tuple[str, ...]] = []
    for name in sys.argv[1:] or FRAMEWORKS:
        if (reason := FRAMEWORKS[name].missing) is not None:
            print(f"{name} is left out: {reason}", file=sys.stderr)
            continue
        cost = _cost(name)
        own = cost.own
        beside = ("", "") if own is None else (f"{own:.0f} µs", f"{cost.ours / own:.2f}x")
        handed = "" if cost.object is None else f"{cost.object:.0f} µs"
        rows.append((name, f"{cost.bare:.0f} µs", handed, f"{cost.ours:.0f} µs", *beside))
    print(markdown(HEAD, rows))


if __name__ == "__main__":
    main()
