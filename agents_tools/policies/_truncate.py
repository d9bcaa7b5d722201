"""A limit for the length of results."""

from __future__ import annotations

from typing import Any

from agents_tools.errors import UserValueError
from agents_tools.policies._policy import with_parentheses
from agents_tools.tool.policy import Policy

__all__ = ["truncate"]


@with_parentheses
def truncate(max_chars: int) -> Policy:
    """Limit how much of a result the model receives; the whole is emitted as an artifact event.

    Args:
        max_chars: The maximum number of characters; 256 Ki for tools without this policy.

    Raises:
        UserError: `max_chars` is not a positive integer.
    """
    if not isinstance(max_chars, int) or max_chars < 1:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise UserValueError(
            f"truncate(...) is not valid: expected a positive integer, got {max_chars!r}."
        )
    return _Truncate(max_chars)


class _Truncate(Policy):
    def __init__(self, max_chars: int) -> None:
        self.name = f"truncate({max_chars})"
        self._max_chars = max_chars

    def apply(self, tool: Any) -> Any:
        return tool.with_(max_output=self._max_chars)
