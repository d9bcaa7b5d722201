"""Tables in Markdown, as programs of this package print them and the docs show them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["duration", "markdown", "times"]

_UNITS = (("s", 1.0), ("ms", 1e-3))


def markdown(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Lay out a table whose first column is text and whose others are figures."""
    lines = [list(head), ["---", *["---:"] * (len(head) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def duration(seconds: float) -> str:
    """Format a time in the unit in which people read it."""
    for unit, size in _UNITS:
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs"


def times(ratio: float) -> str:
    """Format a ratio with three digits."""
    if ratio >= _THOUSAND:
        return f"{round(ratio, -1):,.0f}x"
    return f"{ratio:.3g}x"


_THOUSAND = 1_000
