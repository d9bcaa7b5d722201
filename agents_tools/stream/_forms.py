"""Finds the forms of secrets in texts, whole and begun."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from agents_tools._secrets import MASK, places_of, views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools._secrets import Form, Span

__all__ = ["Forms"]

_BEGUN: Final = re.compile(
    r"""(?:%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2})?%[0-9A-Fa-f]?\Z
    |%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2}\Z
    |\\(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?)?\Z""",
    re.VERBOSE,
)
"""An escape, or a percent-encoded letter of several bytes, whose end may still be to come."""


_START: Final = 4
"""By how many characters a short text is looked through first."""


class Forms:
    """The texts that give secrets away.

    Args:
        forms: The texts, each with how many characters around it go as well.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._sorted = sorted({text for text, _, _ in forms})
        self._heads = {text[:size] for text in self._sorted for size in (1, 2)}
        self._longest = max(map(len, self._sorted), default=0)
        self._start = min((_START, *map(len, self._sorted)))
        self._starts = {text[: self._start] for text in self._sorted}

    def mask(self, text: str) -> str:
        """Put `***` in the place of every secret; the text itself where there is none."""
        spans = self._spans(text)
        if not spans:
            return text
        return _said(text, spans, 0, len(text))

    def mask_beginning(self, text: str, shown: int) -> tuple[str, int, int]:
        """Mask the part of a text that is sure, where the rest of it is still to come.

        Args:
            text: The text.
            shown: How much of it was handed on before.

        Returns:
            What to hand on; where the part begins that has to be looked at again; and up to where
            the text is handed on now, which is behind that where a secret ends there.
        """
        spans = self._spans(text)
        hold = self._hold(text, spans)
        end = max([shown, hold, *(last for start, last in spans if start < hold)])
        return _said(text, spans, shown, end), hold, end

    def mask_end(self, text: str, shown: int) -> str:
        """Mask the rest of a text of which nothing more comes for now.

        What is at least half of a secret is masked as well.
        """
        size = len(text)
        spans = self._spans(text)
        for view, places in ((text, range(size + 1)), *views(text)):
            if places and (start := self._most_of_one(view)) is not None:
                spans.append((places[start], size))
        return _said(text, sorted(spans), shown, size)

    def _most_of_one(self, text: str) -> int | None:
        """Find where a text ends with at least half of a secret."""
        size = len(text)
        for start in range(size):
            for one in self._candidates(text[start:]):
                if 2 * (size - start) >= len(one):
                    return start
        return None

    def _spans(self, text: str) -> list[Span]:
        spans = list(self._spans_in(text))
        for view in views(text):
            if view[1]:
                places = view[1]
                spans += [(places[start], places[end]) for start, end in self._spans_in(view[0])]
        return sorted(spans)

    def _spans_in(self, text: str) -> Iterator[Span]:
        if len(text) < len(self._forms):  # looking for each form takes longer than this
            size = self._start
            if self._starts.isdisjoint({text[n : n + size] for n in range(len(text) - size + 1)}):
                return
        for form in self._forms:
            if form[0] in text:
                yield from places_of(text, form)

    def _hold(self, text: str, spans: list[Span]) -> int:
        """Find where the rest of a text begins that could become a secret."""
        begun = _BEGUN.search(text)
        sure = text[: begun.start()] if begun else text
        hold = min(len(sure), self._begin(sure))
        for decoded, places in views(sure):
            if places:
                hold = min(hold, places[self._begin(decoded)])
        # In base64 one more character may belong to what ends here.
        return min([hold, *(start for start, end in spans if end == len(text))])

    def _begin(self, text: str) -> int:
        """Find the first place from which on the text is the beginning of a form."""
        size = len(text)
        for start in range(max(0, size - self._longest + 1), size):
            if text[start : start + 2] in self._heads and self._candidates(text[start:]):
                return max(0, start - 1)  # in base64 the character before may belong to it
        return size

    def _candidates(self, beginning: str) -> list[str]:
        """Give a form that begins so, if there is one."""
        at = bisect_left(self._sorted, beginning)
        found = self._sorted[at : at + 1]
        return found if found and found[0].startswith(beginning) else []


def _said(text: str, spans: list[Span], start: int, end: int) -> str:
    """Give a part of a text with a mask for each secret that is not over before it."""
    pieces: list[str] = []
    for first, last in spans:
        if last <= start or first >= end:
            continue
        pieces += text[start:first], MASK
        start = max(start, last)
    pieces.append(text[start:end])
    return "".join(pieces)
