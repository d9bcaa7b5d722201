"""The process that clears up after this one, and processes that are forked off."""

from __future__ import annotations

import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="there is no guardian")

PROGRAM = """
import os, subprocess, sys
from agents_tools.concurrency import process_reaper as _guardian

child = subprocess.Popen(["sleep", "600"], start_new_session=True)
_guardian.watch(child.pid)
if os.fork() == 0:
    child.returncode = 0  # it is the other one's
    sys.exit(0)  # with all that an interpreter does at its end
os.wait()
child.kill()
child.wait()
_guardian.forget(child.pid)
"""


def test_a_forked_process_closes_its_guardian_pipe_without_output() -> None:
    """It closes the pipe once, as a file object."""
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-X", "dev", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
