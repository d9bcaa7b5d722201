"""Run a part of the suite where the environment is hostile: `python -m tests.hostile_environment`.

No variables but PATH and HOME, a private temporary directory, a umask that hides every new file from
other users, SIGINT ignored as under `nohup`, and as many busy processes as there are cores.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[1]
PART = (
    "tests/builtin/test_terminal.py",
    "tests/builtin/test_terminal_faults.py",
    "tests/cli/test_cli_process.py",
    "tests/cli/test_cli_run.py",
    "tests/cli/test_mcp.py",
    "tests/cli/test_serve.py",
    "tests/durable/test_kills.py",
    "tests/durable/test_runs.py",
    "tests/mcp/test_signals.py",
    "tests/test_backend_faults.py",
    "tests/test_bridge.py",
    "tests/test_isolate.py",
    "tests/test_store_faults.py",
    "tests/test_threads.py",
)
"""The tests that depend most on processes, signals, files and time."""
_BUSY = "while True: pass"


def main(arguments: Sequence[str]) -> int:
    """Run the tests, and return the exit code of pytest."""
    with ExitStack() as stack:
        home, temporary = (Path(stack.enter_context(tempfile.TemporaryDirectory())) for _ in "ab")
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "TMPDIR": str(temporary)}
        if absent := os.environ.get("AGENTS_TOOLS_MISSING"):
            environment["AGENTS_TOOLS_MISSING"] = absent
        stack.enter_context(_busy())
        command = [sys.executable, "-m", "pytest", "-n", "2", "-m", "not slow"]
        command += ["--timeout=180", "-p", "no:cacheprovider"]
        return subprocess.run(  # noqa: S603 - this interpreter
            [*command, *(arguments or PART)],
            cwd=ROOT,
            env=environment,
            umask=0o077,
            preexec_fn=_ignore_interrupts,
            check=False,
        ).returncode


def _ignore_interrupts() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)


@contextmanager
def _busy() -> Generator[None]:
    command = [sys.executable, "-c", _BUSY]
    hogs = [subprocess.Popen(command) for _ in range(os.cpu_count() or 1)]  # noqa: S603 - as above
    try:
        yield
    finally:
        for hog in hogs:
            hog.kill()
            hog.wait()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
