"""Knows whether a worker is importing what it is to run, and so must start no workers itself."""

from __future__ import annotations

from agents_tools.errors import UserError

__all__ = ["check", "importing"]

importing = False
"""Whether this process is a worker that imports its tools."""


def check() -> None:
    """Refuse to start workers while a worker imports its tools.

    Raises:
        UserError: It does: the program calls its own tools as it is imported.
    """
    if importing:
        raise UserError(
            "A worker imported this program, and the program calls tools during its import. "
            'Move the calls below `if __name__ == "__main__":`.'
        )
