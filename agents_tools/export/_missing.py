"""Says what to install where a framework is not there, or is one that does not fit."""

from __future__ import annotations

from agents_tools.errors import UserError

__all__ = ["MissingExtraError", "missing"]


class MissingExtraError(UserError, ImportError):
    """A `UserError` about an import: who tries one, and goes on without, expects `ImportError`."""


def missing(what: str, extra: str, error: ImportError) -> MissingExtraError:
    """Make the error for an import that has failed.

    Args:
        what: What was asked for.
        extra: The extra of this library that brings the framework.
        error: Why it cannot be imported.
    """
    if isinstance(error, ModuleNotFoundError):
        trouble = f"and there is no module {error.name!r}"
    else:
        trouble = f"and what is installed does not fit ({error})"
    return MissingExtraError(
        f"{what} needs a framework that is not part of this library, {trouble}. "
        f"Install it: pip install -U 'agents-tools[{extra}]'"
    )
