"""`python -m tests.soak._child NAME SECONDS SEED ANSWER`: run one campaign, alone in a process."""

from __future__ import annotations

import faulthandler
import json
import signal
import sys
import threading
import traceback
from dataclasses import asdict
from pathlib import Path

from tests.soak._watch import Watch, tasks_shown
from tests.soak.campaign import Budget, Finding, Outcome, find

HANGS_AFTER = 3.0
"""A campaign that takes so many times its budget hangs."""


def main(name: str, seconds: str, seed: str, answer: str) -> None:
    """Run the campaign, and write what it saw into the file `answer`."""
    budget = Budget(seconds=float(seconds), seed=int(seed))
    reproduce = f"python -m tests.soak --only {name} --seconds {seconds} --seed {seed}"
    if hasattr(faulthandler, "register"):
        faulthandler.register(signal.SIGUSR1, all_threads=True)
    watch = Watch(name, reproduce)
    # A shell starts what it puts into the background deaf to Ctrl-C, and so would be our victims.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    late = threading.Timer(HANGS_AFTER * budget.seconds, _tell_of_tasks)
    late.daemon = True
    late.start()
    outcome = _ran(name, budget, reproduce)
    late.cancel()
    late.join()
    findings = [*outcome.findings, *watch.findings()]
    told = {**asdict(outcome), "findings": [asdict(finding) for finding in findings]}
    Path(answer).write_text(json.dumps(told), encoding="utf-8")


def _ran(name: str, budget: Budget, reproduce: str) -> Outcome:
    try:
        return find([name])[0].run(budget)
    except Exception:  # noqa: BLE001 - whatever it is belongs into the report
        shown = traceback.format_exc()
        return Outcome(
            cases=0,
            findings=[
                Finding(what=f"the campaign failed\n{shown}", where=name, reproduce=reproduce)
            ],
        )


def _tell_of_tasks() -> None:
    sys.stderr.write(f"tasks that have not ended:\n{tasks_shown()}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
