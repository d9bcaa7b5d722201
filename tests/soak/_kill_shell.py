"""`python -m tests.soak._kill_shell FOLDER MARK`: a program with a shell in it, to be killed.

Its commands leave processes behind, which are identified by the mark in their command lines.
"""

from __future__ import annotations

import itertools
import os
import sys

from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor

_COMMANDS = (
    "(sleep {mark} &)",
    "sleep {mark} & disown",
    "sleep {mark} | cat & sleep 0.02",
    "for n in 1 2 3; do sleep {mark} & done; sleep 0.05",
    "trap '' TERM INT; (trap '' TERM INT; sleep {mark}) & sleep 0.05",
)


def main(folder: str, mark: str) -> None:
    """Run commands for ever."""
    shell = TerminalExecutor(folder, soft_timeout=20)
    for command in itertools.cycle(_COMMANDS):
        seen = shell(TerminalAction(command=command.format(mark=mark) + "; echo done"))
        os.write(1, f"{seen.exit_code}\n".encode())


if __name__ == "__main__":
    main(*sys.argv[1:])
