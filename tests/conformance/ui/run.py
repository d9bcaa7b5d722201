"""Every scenario, read by the clients of others: `python -m tests.conformance.ui.run [NAME …]`.

Our own ASGI apps are served by uvicorn on loopback; Node runs the real clients. A table of all
clients and jobs is printed, and what went wrong; the exit code is 1 if something did. Clients that
are not installed are passed over, with a word about it: `python -m tests.conformance.ui.install`.

What a client module (`tests.conformance.ui.ag_ui`, `tests.conformance.ui.vercel`) has:

- `clients() -> Sequence[str]`: its clients, with their versions
- `missing(client) -> str | None`: why a client cannot run here, if it cannot
- `await check(client, only) -> Mapping[str, str]`: what is wrong by the name of the job, an empty
  text where nothing is; `only` names the jobs to do, all where it is empty
"""

from __future__ import annotations

import asyncio
import importlib
import sys
import time
from collections.abc import Mapping, Sequence
from typing import Protocol, cast

MODULES = ("ag_ui", "vercel")


class ClientModule(Protocol):
    """A module that knows how to run some clients."""

    def clients(self) -> Sequence[str]:
        """Return the names of its clients."""
        ...

    def missing(self, client: str) -> str | None:
        """Return why a client cannot run here."""
        ...

    async def check(self, client: str, only: Sequence[str]) -> Mapping[str, str]:
        """Let a client do its jobs."""
        ...


def main(*only: str) -> int:
    """Run all clients that are there, one after the other; give 2 for a job that none has."""
    results: dict[str, Mapping[str, str]] = {}
    for name in MODULES:
        module = cast("ClientModule", importlib.import_module(f"tests.conformance.ui.{name}"))
        for client in module.clients():
            reason = module.missing(client)
            if reason is not None:
                _say(f"{client}: passed over; {reason}")
                continue
            began = time.monotonic()
            results[client] = asyncio.run(module.check(client, only))
            _say(f"{client}: {len(results[client])} jobs in {time.monotonic() - began:.1f} s")
    unknown = sorted(set(only) - {job for problems in results.values() for job in problems})
    if unknown and results:
        _say(f"No client has a job {unknown[0]!r}.")
        return 2
    _say(table(results))
    wrong = [
        f"{client}, {job}: {problem}"
        for client, problems in results.items()
        for job, problem in problems.items()
        if problem
    ]
    for line in wrong:
        _say(line)
    return 1 if wrong else 0


def table(results: Mapping[str, Mapping[str, str]]) -> str:
    """Return the results as a table: a row for each job, a column for each client."""
    jobs = list(dict.fromkeys(job for problems in results.values() for job in problems))
    marks = {"": "ok", None: "-"}
    width = max((len(job) for job in jobs), default=0)
    lines = [" " * width + "".join(f"  {client}" for client in results)]
    for job in jobs:
        cells = [
            f"  {marks.get(problems.get(job), 'WRONG'):<{len(client)}}"
            for client, problems in results.items()
        ]
        lines.append(f"{job:<{width}}{''.join(cells)}".rstrip())
    return "\n".join(lines)


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - what the program is for


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
