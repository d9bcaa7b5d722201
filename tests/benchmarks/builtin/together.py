"""Time several subjects together: each in a process of its own, a workload at a time by turns.

So they meet the same machine, within seconds, and their times can be compared with each other.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack, contextmanager
from time import perf_counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

    from tests.benchmarks.subjects import Subject

_WORKER = "tests.benchmarks.builtin.worker"


def measure(
    subjects: Sequence[Subject], workloads: Sequence[str], *, batches: int
) -> dict[str, dict[str, Any]]:
    """Time the workloads and give the reports of the subjects, by name.

    Args:
        subjects: What is timed.
        workloads: Which, in the order of `BUILTIN_TIMED`.
        batches: The number of turns of each, alternating with its limit.
    """
    with ExitStack() as stack:
        workers = {
            subject.distribution: stack.enter_context(_started(subject, batches))
            for subject in subjects
        }
        reports = {name: ask("") | {"workloads": {}} for name, ask in workers.items()}
        for workload in workloads:
            start = perf_counter()
            for name, ask in workers.items():
                reports[name]["workloads"][workload] = ask(workload)
            print(f"  {workload} ({perf_counter() - start:.1f} s)", file=sys.stderr, flush=True)
    return reports


@contextmanager
def _started(subject: Subject, batches: int) -> Generator[Callable[[str], Any]]:
    """Start the worker of a subject, and give what asks it for the figure of a workload."""
    with subprocess.Popen(
        [str(subject.python), "-m", _WORKER, subject.distribution, "--batches", str(batches)],
        env={**os.environ, **subject.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        lines, answers = process.stdin, process.stdout

        def ask(workload: str) -> Any:
            lines.write(f"{workload}\n")
            lines.flush()
            answer = answers.readline()
            if not answer:
                sys.exit(f"{subject.distribution} failed at {workload or 'its start'}.")
            return json.loads(answer)

        yield ask
