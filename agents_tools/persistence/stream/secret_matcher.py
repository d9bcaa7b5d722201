"""Find secrets in texts, also incomplete ones at the end of a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final

from agents_tools.text.secrets import MASK, find_form, views

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.text.secrets import Form, Span

__all__ = ["SecretMatcher"]

_UNFINISHED_ESCAPE: Final = re.compile(
    r"""(?:%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2})?%[0-9A-Fa-f]?\Z
    |%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2}\Z
    |\\(?:u[0-9A-Fa-f]{0,3}|x[0-9A-Fa-f]?)?\Z""",
    re.VERBOSE,
)
"""An incomplete escape sequence or percent-encoded character at the end of a text."""


_PREFIX_LENGTH: Final = 4
"""The number of first characters of a secret that short texts are searched for first."""


class SecretMatcher:
    """Finds and masks the forms of secrets in texts.

    Args:
        forms: The forms: texts, each with the number of characters around it to mask as well.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self._forms = forms
        self._sorted = sorted({text for text, _, _ in forms})
        self._heads = {text[:size] for text in self._sorted for size in (1, 2)}
        self._longest = max(map(len, self._sorted), default=0)
        self._prefix_length = min((_PREFIX_LENGTH, *map(len, self._sorted)))
        self._prefixes = {text[: self._prefix_length] for text in self._sorted}

    def mask(self, text: str) -> str:
        """Replace every secret by `***`; return the same object if there is none."""
        spans = self._spans(text)
        if not spans:
            return text
        return _masked_part(text, spans, 0, len(text))

    def mask_beginning(self, text: str, shown: int) -> tuple[str, int, int]:
        """Mask the beginning of an unfinished text.

        Args:
            text: The text.
            shown: The number of its characters that were sent before.

        Returns:
            The masked text to send; the index from which the text must be searched again; and the
            index up to which the text is sent, which is larger if a secret ends there.
        """
        spans = self._spans(text)
        hold = self._hold_start(text, spans)
        end = max([shown, hold, *(last for start, last in spans if start < hold)])
        return _masked_part(text, spans, shown, end), hold, end

    def mask_end(self, text: str, shown: int) -> str:
        """Mask the rest of a text that does not continue for now.

        An incomplete secret at its end is masked if at least half of it is there.
        """
        size = len(text)
        spans = self._spans(text)
        for view, positions in ((text, range(size + 1)), *views(text)):
            if positions and (start := self._half_secret_start(view)) is not None:
                spans.append((positions[start], size))
        return _masked_part(text, sorted(spans), shown, size)

    def _half_secret_start(self, text: str) -> int | None:
        """Return the index of an incomplete secret of at least half its length at the end."""
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
                positions = view[1]
                spans += [
                    (positions[start], positions[end]) for start, end in self._spans_in(view[0])
                ]
        return sorted(spans)

    def _spans_in(self, text: str) -> Iterator[Span]:
        if len(text) < len(self._forms):  # faster than a search for each form
            size = self._prefix_length
            if self._prefixes.isdisjoint({text[n : n + size] for n in range(len(text) - size + 1)}):
                return
        for form in self._forms:
            if form[0] in text:
                yield from find_form(text, form)

    def _hold_start(self, text: str, spans: list[Span]) -> int:
        """Return the index from which the text could become a secret."""
        unfinished = _UNFINISHED_ESCAPE.search(text)
        complete = text[: unfinished.start()] if unfinished else text
        hold = min(len(complete), self._prefix_start(complete))
        for decoded, positions in views(complete):
            if positions:
                hold = min(hold, positions[self._prefix_start(decoded)])
        # In base64, the next character can still belong to a secret that ends here.
        return min([hold, *(start for start, end in spans if end == len(text))])

    def _prefix_start(self, text: str) -> int:
        """Return the first index from which the text is the beginning of a form."""
        size = len(text)
        for start in range(max(0, size - self._longest + 1), size):
            if text[start : start + 2] in self._heads and self._candidates(text[start:]):
                return max(0, start - 1)  # in base64, the previous character can belong to it
        return size

    def _candidates(self, beginning: str) -> list[str]:
        """Return the first form with this beginning, if there is one."""
        at = bisect_left(self._sorted, beginning)
        candidates = self._sorted[at : at + 1]
        return candidates if candidates and candidates[0].startswith(beginning) else []


def _masked_part(text: str, spans: list[Span], start: int, end: int) -> str:
    """Return a part of a text with a mask for each secret in it."""
    pieces: list[str] = []
    for first, last in spans:
        if last <= start or first >= end:
            continue
        pieces += text[start:first], MASK
        start = max(start, last)
    pieces.append(text[start:end])
    return "".join(pieces)
