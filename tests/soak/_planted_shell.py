"""`python -m tests.soak._planted_shell FOLDER MARK`: the program with a shell, unguarded."""

from __future__ import annotations

import sys

from agents_tools.concurrency import processes
from tests.soak import _kill_shell

if __name__ == "__main__":
    processes.watch = lambda group: None
    _kill_shell.main(*sys.argv[1:])
