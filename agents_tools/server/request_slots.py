"""Count the requests that a listener handles at the same time, of each caller and in total."""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["ALL_CALLERS", "RequestSlots", "SlotsFullError"]

ALL_CALLERS = 10
"""How many times the limit of one caller all callers together can have."""


class SlotsFullError(Exception):
    """The limit of a caller, or of all callers, is reached."""


class RequestSlots:
    """The slots for one kind of request. A caller that fills its own leaves those of others free.

    Args:
        limit: The number of requests of one caller at the same time.
        total: The number of requests of all callers.
        described: The requests in the error message, such as `requests are being handled`.
        setting: The name of the setting for the limit.
    """

    def __init__(self, limit: int, total: int, described: str, setting: str) -> None:
        self._limit = limit
        self._total = total
        self._described = described
        self._setting = setting
        self._used: Counter[str | None] = Counter()

    @contextmanager
    def taken(self, owner: str | None) -> Generator[None]:
        """Take a slot while the block runs.

        Args:
            owner: The caller; `None` where callers are not told apart.

        Raises:
            SlotsFullError: No slot is free.
        """
        if self._used[owner] >= self._limit:
            raise self._full(self._limit, "" if owner is None else "of your ")
        if self._used.total() >= self._total:
            raise self._full(self._total, "")
        self._used[owner] += 1
        try:
            yield
        finally:
            self._used[owner] -= 1
            if not self._used[owner]:
                del self._used[owner]

    def _full(self, limit: int, whose: str) -> SlotsFullError:
        return SlotsFullError(
            f"The server is busy: {limit} {whose}{self._described}, which is the limit "
            f"({self._setting}=). Try again in a second."
        )
