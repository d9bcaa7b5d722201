"""Search for secrets in texts, also for incomplete ones at the end of a text."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, TypeAlias

from agents_tools.text.characters import is_plain, unfinished_start
from agents_tools.text.forms import MASK
from agents_tools.text.views import views

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from agents_tools.text.forms import Form
    from agents_tools.text.views import View

__all__ = ["SecretMatcher", "Span", "mask_spans", "spans_in_view"]

Span: TypeAlias = tuple[int, int]
"""The start and the end of a part of a text."""

_UNFINISHED_ESCAPE: Final = re.compile(
    r"""(?:%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2})?%[0-9A-Fa-f]?\Z
    |%[C-Fc-f][0-9A-Fa-f](?:%[89ABab][0-9A-Fa-f]){0,2}\Z
    |\\(?:u[0-9A-Fa-f]{0,3}|U[0-9A-Fa-f]{0,7}|x[0-9A-Fa-f]?)?\Z""",
    re.VERBOSE,
)
"""An incomplete escape sequence or percent-encoded character at the end of a text."""

_ENCODED: Final = (
    re.compile(
        r"""%(?:3[0-9]|[46][1-9a-f]|[57][0-9a]                           # letters and digits
        |[019]|7f|C2%|D8%9C|E1%A0|E2%8[01]|EF%B[BF]|F3%A0)        # hidden characters""",
        re.VERBOSE | re.IGNORECASE,
    ),
    re.compile(
        r"""\\(?:[xXbBfFU]
        |u(?:00[0-9]|061|180[eE]|20[0-6]|[fF][eE][fF][fF]|[fF]{3}|[dD][bB]40))""",
        re.VERBOSE,
    ),
)
"""An encoded character that is a letter, a digit or hidden.

Without it, decoding a text changes none of the letters and digits of a secret in it. Two patterns
that begin with a literal are three times as fast as one.
"""

_RUN: Final = re.compile("[A-Za-z0-9]{4,}")


_SMALL: Final = 1 << 12
"""The number of characters up to which decoding a text is fast."""

_BASE64_LINE: Final = re.compile(r"\n(?<=[A-Za-z0-9+/_-]{40}\n)")

_PREFIX_LENGTH: Final = 4
"""The number of first characters of a secret that short texts are searched for first."""


class SecretMatcher:
    """Finds and masks the forms of secrets in texts.

    Args:
        forms: The forms: texts, each with the number of characters around it to mask as well.
    """

    def __init__(self, forms: Sequence[Form]) -> None:
        self.forms: Final = forms
        self._sorted = sorted({text for text, _, _ in forms})
        self._heads = {text[:size] for text in self._sorted for size in (1, 2)}
        self.longest: Final = max(map(len, self._sorted), default=0)
        self._prefix_length = min((_PREFIX_LENGTH, *map(len, self._sorted)))
        self._prefixes = {text[: self._prefix_length] for text in self._sorted}
        runs = {max(_RUN.findall(text), key=len, default="") for text in self._sorted}
        # A part of each form that encodings leave as it is; `None` if a form has no such part.
        self._runs: tuple[str, ...] | None = None if "" in runs else tuple(runs)

    def mask(self, text: str) -> str:
        """Replace every secret by `***`; return the same object if there is none."""
        return mask_spans(text, self.spans(text))

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
            if (start := self._half_secret_start(view)) is not None:
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
        return sorted(self.spans(text))

    def spans(self, text: str) -> list[Span]:
        """Return the spans of all secrets in a text, and in its decoded views, in any order."""
        spans = list(self.direct_spans(text))
        if self._may_be_encoded(text):
            for view in views(text):
                spans += spans_in_view(view, self.direct_spans(view[0]))
        return spans

    def direct_spans(self, text: str) -> Iterator[Span]:
        """Yield the spans of all secrets in a text as it is."""
        if len(text) < len(self.forms):  # faster than a search for each form
            size = self._prefix_length
            if self._prefixes.isdisjoint({text[n : n + size] for n in range(len(text) - size + 1)}):
                return
        for form in self.forms:
            if form[0] in text:
                yield from _find_form(text, form)

    def _may_be_encoded(self, text: str) -> bool:
        """Return whether a decoded view can contain a secret; the check is fast for large texts.

        Decoding takes a hundred times as long as a search.
        """
        if not self.forms:
            return False
        if len(text) < _SMALL or self._runs is None or not is_plain(text):
            return True
        has_escapes = "\\" in text
        if any(pattern.search(text) is not None for pattern in _ENCODED):
            return True
        if "\n" in text and _BASE64_LINE.search(text) is not None:
            return True
        if not has_escapes and "%" not in text:
            return False
        bare = text.replace("\\", "") if has_escapes else text
        return any(run in bare for run in self._runs)

    def _hold_start(self, text: str, spans: list[Span]) -> int:
        """Return the index from which the text could become a secret."""
        unfinished = _UNFINISHED_ESCAPE.search(text)
        complete = text[: unfinished.start()] if unfinished else text
        complete = complete[: unfinished_start(complete)]
        hold = min(len(complete), self._prefix_start(complete))
        for decoded, positions in views(complete):
            hold = min(hold, positions[self._prefix_start(decoded)])
        # In base64, the next character can still belong to a secret that ends here.
        return min([hold, *(start for start, end in spans if end == len(text))])

    def _prefix_start(self, text: str) -> int:
        """Return the first index from which the text is the beginning of a form."""
        size = len(text)
        for start in range(max(0, size - self.longest + 1), size):
            if text[start : start + 2] in self._heads and self._candidates(text[start:]):
                return max(0, start - 1)  # in base64, the previous character can belong to it
        return size

    def _candidates(self, beginning: str) -> list[str]:
        """Return the first form with this beginning, if there is one."""
        at = bisect_left(self._sorted, beginning)
        candidates = self._sorted[at : at + 1]
        return candidates if candidates and candidates[0].startswith(beginning) else []


def spans_in_view(view: View, spans: Iterable[Span]) -> list[Span]:
    """Return the spans of the text for spans of a view of it."""
    positions = view[1]
    return [(positions[start], positions[end]) for start, end in spans]


def mask_spans(text: str, spans: list[Span]) -> str:
    """Return a text with a mask in the place of each span; the same object for no spans."""
    return _masked_part(text, sorted(spans), 0, len(text)) if spans else text


def _find_form(text: str, form: Form) -> Iterator[Span]:
    """Yield the span of each occurrence of a form, with the characters to mask around it."""
    secret, before, after = form
    size = len(secret)
    start = text.find(secret)
    while start >= 0:
        yield max(0, start - before), min(len(text), start + size + after)
        start = text.find(secret, start + size)


def _masked_part(text: str, spans: list[Span], start: int, end: int) -> str:
    """Return a part of a text with a mask for each secret in it."""
    pieces: list[str] = []
    masked = -1  # the end of the last masked span
    for first, last in spans:
        if last <= start or first >= end:
            continue
        if first >= masked:
            pieces += text[start:first], MASK
        start = masked = max(start, last)
    pieces.append(text[start:end])
    return "".join(pieces)
