"""Many calls of one tool, shown as one line."""

from __future__ import annotations

import itertools

from agents_tools.ui.console.run_tree import Node

__all__ = ["CallGroup", "folded"]

_FOLDED = 8
"""The number of consecutive calls of one tool from which they are shown as a group."""
_SHOWN = 5
"""The number of calls of a group that have a line of their own."""


class CallGroup:
    """Calls of the same tool that are shown as one line.

    Args:
        calls: The calls.
    """

    def __init__(self, calls: list[Node]) -> None:
        self.calls = calls
        self.name = calls[0].name

    @property
    def is_open(self) -> bool:
        """Whether a call has not ended."""
        return any(call.is_open for call in self.calls)

    @property
    def ended(self) -> int:
        """The number of calls that have ended."""
        return sum(not call.is_open for call in self.calls)

    @property
    def failed(self) -> int:
        """The number of calls that have ended without success."""
        return sum(not call.is_open and call.status != "ok" for call in self.calls)

    @property
    def took(self) -> float:
        """The seconds from the first start to the last end, or until now."""
        started = min(call.started for call in self.calls)
        return max(call.started + call.took for call in self.calls) - started

    @property
    def shown(self) -> list[Node]:
        """The calls that have a line of their own: those that wait, failed, or began first."""
        calls = [one for one in self.calls if one.is_open or one.status != "ok"]
        return sorted(
            sorted(calls, key=lambda one: (one.status != "waiting", one.is_open))[:_SHOWN],
            key=self.calls.index,
        )


def folded(parts: list[Node | str]) -> list[Node | str | CallGroup]:
    """Join many consecutive calls of one tool to a group."""
    folded: list[Node | str | CallGroup] = []
    for key, run in itertools.groupby(
        parts, key=lambda part: part.name if isinstance(part, Node) else None
    ):
        members = list(run)
        if key is not None and len(members) >= _FOLDED:
            folded.append(CallGroup([one for one in members if isinstance(one, Node)]))
        else:
            folded += members
    return folded
