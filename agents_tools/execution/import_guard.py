"""Prevents a worker process from starting workers while it imports its tools."""

from __future__ import annotations

from agents_tools.errors import UserError

__all__ = ["check", "importing"]

importing = False
"""Whether this process is a worker that is importing its tools."""


def check() -> None:
    """Raise an error if this process is a worker that is importing its tools.

    Raises:
        UserError: The program calls its own tools when it is imported.
    """
    if importing:
        raise UserError(
            "A worker imported this program, and the program calls tools during its import. "
            'Move the calls below `if __name__ == "__main__":`.'
        )
