"""The official MCP conformance suite: `python -m tests.conformance.mcp.run [server] [client]`.

Our server and our client go through what both revisions of the protocol require. What they are
known not to pass stands in `baseline-server.yml` and `baseline-client.yml`, with the reason; all
else that fails, and all there that passes again, makes this fail. Needs what
`python -m tests.conformance.mcp.install` installs; without it, says so and is done.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import shlex
import shutil
import signal
import sys
import time
import urllib.request
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from tests.conformance.mcp.install import HOME, NODE, RUNNER

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

HERE = Path(__file__).parent
ROOT = HERE.parents[2]
RESULTS = HOME / "results"
"""Where the runner writes what it has seen: a folder for each run, its log in it."""

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
        also: What fails in this run only, beside the baseline.
        promised: Scenarios that the revision does not count, and that have to pass all the same.
    """

    side: Literal["server", "client"]
    revision: str
    mode: Literal["stateless", "sessions", ""] = ""
    also: tuple[str, ...] = ()
    promised: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What it is called."""
        return "-".join(filter(None, (self.side, self.revision, self.mode)))


CLIENT_EXTENSIONS = (
    "auth/client-credentials-basic",
    "auth/client-credentials-jwt",
    "auth/enterprise-managed-authorization",
    "json-schema-2020-12-preservation",
)
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
        ),
    ),
    Run(side="client", revision="2025-11-25", promised=CLIENT_EXTENSIONS),
    Run(side="client", revision="2026-07-28", promised=CLIENT_EXTENSIONS),
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
    """

    problems: list[str] = field(default_factory=list[str])
    passed: int = 0
    failed: int = 0
    expected: int = 0
    seconds: float = 0.0


async def main(*sides: str) -> int:
    """Do the runs of these sides, of both by default; give 1 where something is unexpected."""
    if unknown := set(sides) - {"server", "client"}:
        say(f"There is no side {unknown.pop()!r}; there are: server, client.")
        return 2
    if not RUNNER.exists() or not NODE.exists():
        say("The conformance runner is not installed: python -m tests.conformance.mcp.install")
        return 0
    verdicts: list[Verdict] = []
    say(f"{'run':31}  {'checks':>6}  {'passed':>6}  {'failed':>6}  {'known':>5}  {'s':>4}")
    for run in RUNS:
        if sides and run.side not in sides:
            continue
        verdict = await perform(run)
        verdicts.append(verdict)
        say(row(run, verdict))
        for problem in verdict.problems:
            say(f"    {problem}")
    return int(any(verdict.problems for verdict in verdicts))


def row(run: Run, verdict: Verdict) -> str:
    """Give the line of the table for a run."""
    checks = verdict.passed + verdict.failed
    return (
        f"{run.name:31}  {checks:6}  {verdict.passed:6}  {verdict.failed:6}  "
        f"{verdict.expected:5}  {verdict.seconds:4.0f}  "
        + ("NOT AS EXPECTED" if verdict.problems else "as expected")
    )


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
    known = (HERE / f"baseline-{run.side}.yml").read_text()
    baseline.write_text(known + "".join(f"  - {entry}\n" for entry in run.also))
    arguments = ["--requirements", run.revision, "--expected-failures", str(baseline)]
    arguments += ["--output-dir", str(results / "scenarios"), "--timeout", str(SCENARIO_MS)]
    if run.side == "client":
        command = f"{shlex.quote(sys.executable)} -m tests.conformance.mcp.client_fixture"
        return await runner(results, "client", "--command", command, *arguments)
    async with server(run.mode, results) as url:
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
async def server(mode: str, results: Path) -> AsyncGenerator[str]:
    """Have our server run for a while; give its address, once it answers there."""
    with (results / "server.log").open("wb") as log:
        process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            "tests.conformance.mcp.server_fixture",
            mode,
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
    """See that our server is there: where it is not, some scenarios pass all the same.

    Raises:
        OSError: It is not.
    """
    if not url:
        raise OSError("our server has not started")
    with urllib.request.urlopen(url.removesuffix("/mcp") + "/healthz", timeout=PATIENCE) as answer:  # noqa: S310 - our own address
        answer.read()


async def end(process: asyncio.subprocess.Process) -> None:
    """End a process and all that it has started."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()


def judge(run: Run, code: int, log: str, results: Path) -> Verdict:
    """Tell from what the runner wrote whether all is as expected."""
    total = re.search(r"^Total: (\d+) passed, (\d+) failed", log, re.MULTILINE)
    if total is None:
        log_file = (results / "runner.log").relative_to(ROOT)
        return Verdict([f"the runner gave {code} and no result; see {log_file}"])
    unexpected, stale = listed(log, "Unexpected failures", "✗"), listed(log, "Stale", "✓")
    problems = [f"fails, and is not in the baseline: {one}" for one in unexpected]
    problems += [f"passes, and stands in the baseline: {one}" for one in stale]
    marks = outcomes(log)
    problems += [
        f"is promised, and does not pass: {one}" for one in run.promised if marks.get(one) != "✓"
    ]
    if code != 0 and not problems:
        problems.append(f"the runner gave {code}")
    passed, failed = map(int, total.groups())
    return Verdict(problems, passed, failed, len(listed(log, "Expected failures", "~")))


def listed(log: str, heading: str, mark: str) -> list[str]:
    """Give the entries below a heading of the runner's summary."""
    below = log.partition(f"\n{heading}")[2].splitlines()[1:]
    entries: list[str] = []
    for line in below:
        if not line.startswith(f"  {mark} "):
            break
        entries.append(line[4:])
    return entries


def outcomes(log: str) -> dict[str, str]:
    """Give the mark of each scenario in the runner's summary."""
    return {name: mark for mark, name in re.findall(r"^([✓✗]) (\S+): \d", log, re.MULTILINE)}


def say(line: str) -> None:
    """Write a line."""
    print(line, flush=True)  # noqa: T201


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*sys.argv[1:])))
