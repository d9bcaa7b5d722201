"""A limit for the length of results."""

from __future__ import annotations

from agents_tools.errors import UserValueError
from agents_tools.policies._policy import PolicyDecorator, with_parentheses

__all__ = ["truncate"]


@with_parentheses
def truncate(max_chars: int) -> PolicyDecorator:
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
    return PolicyDecorator(f"truncate({max_chars})", lambda tool: tool.with_(max_output=max_chars))
