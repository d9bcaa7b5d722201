"""The official MCP conformance suite: `python -m tests.conformance.mcp.run [server] [client]`.

With `--peers`, servers made with FastMCP and with the Python SDK run in the same way, and with
`--write` the figures of all runs go to a page of the documentation.

Our server and our client go through what both revisions of the protocol require. What they are
known not to pass stands in `baseline-server.yml` and `baseline-client.yml`, with the reason; all
else that fails, and all there that passes again, makes this fail. Needs what
`python -m tests.conformance.mcp.install` installs; without it, says so and is done.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import socket
import sys
import time
import urllib.parse
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import yaml

from tests.benchmarks.tables import markdown
from tests.conformance.mcp.install import NODE, PACKAGES, RUNNER
from tests.mcp.peers import FASTMCP, LINE_2

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RESULTS = ROOT / ".mcp-results"
"""Where the runner writes what it has seen: a folder for each run, its log in it."""

PAGE = ROOT / "docs" / "reference" / "mcp-conformance-table.md"

LONGEST = 300
"""Seconds that one run may take; the longest takes 40 on two cores."""
PATIENCE = 60
"""Seconds until our server has to answer."""
SCENARIO_MS = 90_000
"""Milliseconds for one scenario: those of the client all run at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """What is run in one go.

    Attributes:
        side: Which of our sides is looked at.
        revision: The revision of the protocol whose requirements are checked.
        mode: server: whether it keeps sessions.
        also: The failures that are expected in this run only, in addition to the baseline.
        promised: Scenarios that the revision does not count, and that have to pass all the same.
        library: The library that the server is made with, if it is not ours: `fastmcp` or `mcp`.
    """

    side: Literal["server", "client"]
    revision: str
    mode: Literal["stateless", "sessions", ""] = ""
    also: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()
    library: str = ""

    @property
    def name(self) -> str:
        """What it is called."""
        return "-".join(filter(None, (self.library, self.side, self.revision, self.mode)))


CLIENT_EXTENSIONS = (
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/enterprise-managed-authorization",
    "json-schema-2020-12-preservation",
)
TASKS = (
    "tasks-lifecycle",
    "tasks-capability-negotiation",
    "tasks-wire-fields",
    "tasks-request-state-removal",
    "tasks-mrtr-input",
    "tasks-request-headers",
    "tasks-dispatch-and-envelope",
    "tasks-required-task-error",
)
"""All scenarios of tasks but two: `tasks-status-notifications` has no checks yet, and in
`tasks-mrtr-composition` a tool asks before its task is created; our tools ask in the task."""
RUNS = (
    Run(
        side="server",
        revision="2025-11-25",
        mode="sessions",
        promised=("server-session-lifecycle",),
    ),
    Run(
        side="server",
        revision="2025-11-25",
        mode="stateless",
        also=(  # want a session, and there is none
            "server-sse-multiple-streams",
            "tools-call-elicitation",
            "tools-call-sampling",
            "tools-call-with-logging",
            "elicitation-sep1034-defaults",
            "elicitation-sep1330-enums",
        ),
    ),
    Run(
        side="server",
        revision="2026-07-28",
        mode="stateless",
        promised=(
            "http-header-validation",
            "http-custom-header-server-validation",
            "json-schema-2020-12",
            *TASKS,
        ),
    ),
    Run(side="client", revision="2025-11-25", promised=CLIENT_EXTENSIONS),
    Run(side="client", revision="2026-07-28", promised=CLIENT_EXTENSIONS),
)

PEERS = {"fastmcp": FASTMCP, "mcp": LINE_2}
"""Other libraries for servers: a fixture in `peer_fixture.py` has the features of the suite."""
PEER_RUNS = tuple(
    Run(side="server", revision=run.revision, mode=run.mode, library=library)
    for library in PEERS
    for run in RUNS
    if run.side == "server"
)


@dataclass(slots=True)
class Verdict:
    """How a run ended.

    Attributes:
        problems: What is wrong; nothing where all is as expected.
        passed: How many checks passed.
        failed: How many did not.
        expected: How many scenarios or checks failed as the baseline says.
        seconds: How long it took.
        scenarios: The scenarios with failed checks.
    """

    problems: list[str] = field(default_factory=list[str])
    passed: int = 0
    failed: int = 0
    expected: int = 0
    seconds: float = 0.0
    scenarios: tuple[str, ...] = ()


async def main(*sides: str, peers: bool = False, write: bool = False) -> int:
    """Run the suite for these sides, by default for both; return 1 for an unexpected result."""
    if not RUNNER.exists() or not NODE.exists():
        say("The conformance runner is not installed: python -m tests.conformance.mcp.install")
        return 0
    verdicts: list[Verdict] = []
    rows: list[list[str]] = []
    say(f"{'run':31}  {'checks':>6}  {'passed':>6}  {'failed':>6}  {'known':>5}  {'s':>4}")
    for run in RUNS + (PEER_RUNS if peers else ()):
        if sides and run.side not in sides:
            continue
        if run.library and (missing := PEERS[run.library].missing):
            say(f"{run.name:31}  left out: {missing}")
            continue
        verdict = await perform(run)
        verdicts.append(verdict)
        rows.append(cells(run, verdict))
        say(row(run, verdict))
        for problem in verdict.problems:
            say(f"    {problem}")
    if write:
        PAGE.write_text(page(rows), encoding="utf-8")
    return int(any(verdict.problems for verdict in verdicts))


def row(run: Run, verdict: Verdict) -> str:
    """Return the row of the table for a run."""
    checks = verdict.passed + verdict.failed
    return (
        f"{run.name:31}  {checks:6}  {verdict.passed:6}  {verdict.failed:6}  "
        f"{verdict.expected:5}  {verdict.seconds:4.0f}  "
        + ("NOT AS EXPECTED" if verdict.problems else "as expected")
    )


def cells(run: Run, verdict: Verdict) -> list[str]:
    """Return the row of the documentation for a run."""
    library = PEERS[run.library].title if run.library else "agents-tools"
    return [
        f"{library}, {run.side}",
        " ".join(filter(None, (run.revision, {"sessions": "with sessions"}.get(run.mode, "")))),
        f"{verdict.passed} of {verdict.passed + verdict.failed}",
        ", ".join(f"`{name}`" for name in verdict.scenarios) or "none",
    ]


def page(rows: list[list[str]]) -> str:
    """Return the page of the documentation."""
    runner = next(one for one in PACKAGES if one.startswith("@modelcontextprotocol/conformance"))
    return _PAGE.format(
        runner=runner,
        table=markdown(["", "revision", "passed checks", "scenarios with failed checks"], rows),
    )


_PAGE = """# MCP conformance, measured

<!-- Written by `python -m tests.conformance.mcp.run --peers --write`; change it there. -->

The official conformance suite (`{runner}`) checks this library's server and
client against what a revision of the protocol requires. Servers with the same features, written with FastMCP and with the
`MCPServer` of the Python SDK, run in the same way. All runs are over HTTP; the server of revision
2026-07-28 has no sessions.

{table}

- agents-tools, server, 2025-11-25 without sessions: a server cannot send requests or notifications of a
  session to a client that has none. With sessions, all checks pass.
- agents-tools, server, 2026-07-28: the suite does not count `tasks-mrtr-composition`. It expects a tool to
  ask before its task is created; tools of this library ask inside the task.
- agents-tools, client: the suite does not count the scenarios `auth/dpop`, `auth/dpop-nonce` and
  `auth/wif-jwt-bearer`, for which the SDK has no provider.
- fastmcp and mcp: every feature is written as the documentation of the library shows it. The decorators
  have no parameter for a JSON Schema (`json-schema-2020-12`), these versions have no tasks, and neither
  fixture has the tool of `server-sse-polling`.
"""


async def perform(run: Run) -> Verdict:
    """Do one run and judge it."""
    results = RESULTS / run.name
    shutil.rmtree(results, ignore_errors=True)
    results.mkdir(parents=True)
    started = time.monotonic()
    try:
        async with asyncio.timeout(LONGEST + PATIENCE):
            code, log = await with_runner(run, results)
    except OSError as error:  # it ran out of time, or something could not be started
        what = f"it took more than {LONGEST} s" if isinstance(error, TimeoutError) else str(error)
        verdict = Verdict([f"{what}; see {results.relative_to(ROOT)}"])
    else:
        verdict = judge(run, code, log, results)
    verdict.seconds = time.monotonic() - started
    return verdict


async def with_runner(run: Run, results: Path) -> tuple[int, str]:
    """Start the runner, with our server where it is about that; give its exit code and log."""
    baseline = results / "baseline.yml"
    known: dict[str, list[str] | None] = yaml.safe_load(
        (HERE / f"baseline-{run.side}.yml").read_text()
    )
    entries = [] if run.library else [*(known[run.side] or ()), *run.also]
    baseline.write_text(yaml.safe_dump({run.side: entries}))
    arguments = ["--requirements", run.revision, "--expected-failures", str(baseline)]
    arguments += ["--output-dir", str(results / "scenarios"), "--timeout", str(SCENARIO_MS)]
    if run.side == "client":
        command = f"{shlex.quote(sys.executable)} -m tests.conformance.mcp.client_fixture"
        return await runner(results, "client", "--command", command, *arguments)
    async with server(run, results) as url:
        return await runner(results, "server", "--url", url, *arguments)


async def runner(results: Path, *arguments: str) -> tuple[int, str]:
    """Let the runner run; give its exit code, and what it wrote."""
    log = results / "runner.log"
    environment = {**os.environ, "PATH": f"{NODE.parent}{os.pathsep}{os.environ['PATH']}"}
    with log.open("wb") as file:
        process = await asyncio.create_subprocess_exec(
            str(NODE),
            str(RUNNER),
            *arguments,
            cwd=ROOT,
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=file,
            stderr=file,
            start_new_session=True,
        )
        try:
            async with asyncio.timeout(LONGEST):
                code = await process.wait()
        finally:
            await end(process)
    return code, re.sub(r"\x1b\[\d*m", "", log.read_text(errors="replace"))


@contextlib.asynccontextmanager
async def server(run: Run, results: Path) -> AsyncGenerator[str]:
    """Start the server, and yield its address once it answers there."""
    fixture = ["peer_fixture", run.library] if run.library else ["server_fixture"]
    python = PEERS[run.library].command[0] if run.library else sys.executable
    module, *more = fixture
    with (results / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            f"tests.conformance.mcp.{module}",
            *more,
            run.mode,
            cwd=ROOT,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=log,
            start_new_session=True,
        )
        try:
            assert process.stdout is not None
            async with asyncio.timeout(PATIENCE):
                url = (await process.stdout.readline()).decode().strip()
                await asyncio.to_thread(probe, url)
            yield url
        finally:
            await end(process)


def probe(url: str) -> None:
    """Connect to the server: some scenarios pass without one.

    Raises:
        OSError: It does not listen.
    """
    if not url:
        raise OSError("the server has not started")
    port = urllib.parse.urlsplit(url).port
    socket.create_connection(("127.0.0.1", port or 0), timeout=PATIENCE).close()


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def judge(run: Run, code: int, log: str, results: Path) -> Verdict:
    """Return the verdict on the output of the runner."""
    total = re.search(r"^Total: (\d+) passed, (\d+) failed", log, re.MULTILINE)
    if total is None:
        log_file = (results / "runner.log").relative_to(ROOT)
        return Verdict([f"the runner gave {code} and no result; see {log_file}"])
    passed, failed = map(int, total.groups())
    failing = tuple(name for name, mark in outcomes(log).items() if mark == "✗")
    if run.library:  # it is compared, not judged
        return Verdict([], passed, failed, scenarios=failing)
    unexpected, stale = listed(log, "Unexpected failures", "✗"), listed(log, "Stale", "✓")
    problems = [f"fails, and is not in the baseline: {one}" for one in unexpected]
    problems += [f"passes, and stands in the baseline: {one}" for one in stale]
    marks = outcomes(log)
    problems += [
        f"is promised, and does not pass: {one}" for one in run.promised if marks.get(one) != "✓"
    ]
    if code != 0 and not problems:
        problems.append(f"the runner gave {code}")
    expected = len(listed(log, "Expected failures", "~"))
    return Verdict(problems, passed, failed, expected, scenarios=failing)


def listed(log: str, heading: str, mark: str) -> list[str]:
    """Return the entries below a heading of the runner's summary."""
    below = log.partition(f"\n{heading}")[2].splitlines()[1:]
    entries: list[str] = []
    for line in below:
        if not line.startswith(f"  {mark} "):
            break
        entries.append(line[4:])
    return entries


def outcomes(log: str) -> dict[str, str]:
    """Return the mark of each scenario in the runner's summary."""
    return {name: mark for mark, name in re.findall(r"^([✓✗]) (\S+): \d", log, re.MULTILINE)}


def say(line: str) -> None:
    """Write a line."""
    print(line, flush=True)  # noqa: T201


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("sides", nargs="*", choices=["server", "client", []], default=[])
    parser.add_argument("--peers", action="store_true", help="run servers of other libraries, too")
    parser.add_argument("--write", action="store_true", help="write the page of the documentation")
    return parser.parse_args()


if __name__ == "__main__":
    options = parsed()
    sys.exit(asyncio.run(main(*options.sides, peers=options.peers, write=options.write)))
