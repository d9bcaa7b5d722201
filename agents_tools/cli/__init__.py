"""The command line, `agents-tools`; needs the extra `cli`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(args: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        args: The words after the name of the program; from `sys.argv` by default.
    """
    try:
        import click as click
    except ModuleNotFoundError as error:
        if error.name != "click":
            raise
        sys.stderr.write(
            'agents-tools: the command line needs the extra "cli": '
            'pip install "agents-tools[cli]"\n'
        )
        return 2
    try:
        from agents_tools.cli.app import run

        return run(args)
    except KeyboardInterrupt:  # while modules are imported
        sys.stderr.write("cancelled\n")
        return 130
