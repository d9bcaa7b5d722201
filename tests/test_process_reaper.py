"""The process reaper in a forked process."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the reaper needs POSIX process groups"
)

PROGRAM = """
import os, subprocess, sys
from agents_tools.concurrency import process_reaper

child = subprocess.Popen(["sleep", "600"], start_new_session=True)
process_reaper.watch(child.pid)
if os.fork() == 0:
    child.returncode = 0  # it is the other one's
    sys.exit(0)  # with all that an interpreter does at its end
os.wait()
child.kill()
child.wait()
process_reaper.forget(child.pid)
"""


def test_a_forked_process_closes_its_pipe_to_the_reaper_without_output() -> None:
    """It closes the pipe once, as a file object."""
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-X", "dev", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
