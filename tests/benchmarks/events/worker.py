"""Time the events of one subject and the limit, in the environment of the subject; prints JSON.

Run as `python -m tests.benchmarks.events.worker NAME [--batches N] [--only WORKLOAD ...]`.
"""

from __future__ import annotations

import argparse
import asyncio
import importlib
import json
import logging
import platform
from importlib.metadata import version
from typing import Any

from tests.benchmarks.events import EVENT_TIMED, limit
from tests.benchmarks.subjects import SUBJECTS
from tests.benchmarks.timing import by_turns


async def measure(subject: Any, names: list[str], batches: int) -> dict[str, Any]:
    """Time what the subject has of these workloads."""
    figures: dict[str, Any] = {}
    for name in names:
        own = getattr(subject, EVENT_TIMED[name], None)
        if own is not None:
            least = getattr(limit, EVENT_TIMED[name])
            figures[name] = (await by_turns(own, least, batches=batches)).to_dict()
    return figures


def main() -> None:
    """Time the events of one subject and print the report as JSON."""
    parser = argparse.ArgumentParser()
    parser.add_argument("subject", choices=SUBJECTS)
    parser.add_argument("--batches", type=int, default=50)
    parser.add_argument("--only", nargs="+", choices=EVENT_TIMED, default=list(EVENT_TIMED))
    options = parser.parse_args()
    subject = SUBJECTS[options.subject]
    if subject.events is None:
        raise SystemExit(f"{subject.distribution} has no events that are timed.")
    logging.disable(logging.WARNING)
    report = {
        "python": platform.python_version(),
        "versions": {subject.distribution: version(subject.distribution)},
        "workloads": asyncio.run(
            measure(importlib.import_module(subject.events), options.only, options.batches)
        ),
    }
    print(json.dumps(report))


if __name__ == "__main__":
    main()
