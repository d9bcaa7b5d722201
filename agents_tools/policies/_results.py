"""Bounds on the results that a model gets."""

from __future__ import annotations

from agents_tools.errors import UserValueError
from agents_tools.policies._change import Change

__all__ = ["truncate"]


def truncate(max_chars: int) -> Change:
    """Bound how much of a result the model gets; the rest is kept as an artifact event.

    Args:
        max_chars: Characters; 256 Ki by default for every tool.

    Raises:
        UserError: `max_chars` is no positive whole number.
    """
    if not isinstance(max_chars, int) or max_chars < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"truncate(...) takes a positive number of characters, not {max_chars!r}."
        )
    return Change(f"truncate({max_chars})", lambda tool: tool.with_(max_output=max_chars))
