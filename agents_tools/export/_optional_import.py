"""The error for a framework that is not installed or has an unsupported version."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agents_tools._package import missing_extra as explain_missing_extra

if TYPE_CHECKING:
    from agents_tools.errors import MissingExtraError

__all__ = ["missing_extra"]


def missing_extra(name: str, extra: str, error: ImportError) -> MissingExtraError:
    """Return the error for a failed import of a framework.

    Args:
        name: The module that requires the framework.
        extra: The extra of this library that installs the framework.
        error: The error of the import.
    """
    command = f"pip install -U 'agents-tools[{extra}]'"
    return explain_missing_extra(name, command, error)
