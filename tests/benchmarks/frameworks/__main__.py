"""`python -m tests.benchmarks.frameworks [NAMES]`: time the frameworks that are there."""

from __future__ import annotations

import json
import os
import subprocess
import sys

from tests.benchmarks.frameworks import Cost
from tests.frameworks.run import FRAMEWORKS, QUIET, ROOT


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
    """Print a table, in microseconds."""
    print("microseconds       bare   handed over   in a turn: ours      own     ours/own")
    for name in sys.argv[1:] or FRAMEWORKS:
        if (reason := FRAMEWORKS[name].missing) is not None:
            print(f"{name}: left out ({reason})")
            continue
        cost = _cost(name)
        handed = "-" if cost.object is None else f"{cost.object:.0f}"
        own, ratio = "-", "-"
        if cost.own is not None:
            own, ratio = f"{cost.own:.0f}", f"{cost.ours / cost.own:.2f}"
        print(f"{name:18}{cost.bare:5.0f}{handed:>14}{cost.ours:18.0f}{own:>9}{ratio:>13}")


if __name__ == "__main__":
    main()
