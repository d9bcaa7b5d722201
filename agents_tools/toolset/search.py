"""Ranked search in short texts, such as the names and descriptions of tools."""

from __future__ import annotations

import heapq
import math
import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["Document", "SearchIndex", "words_of"]

Document = tuple[str, str, "Iterable[str]"]
"""A name, a description, and other names such as those of parameters."""

_K1 = 1.2
_B = 0.6
_NAME, _TEXT, _FURTHER = 3.0, 1.0, 1.0
"""The weights of a word in the name, the description and the other names."""
_WHOLE_NAME = 4.0
"""The bonus for a document whose name equals the query, as a multiple of the best score."""
_NEAR = 0.5
"""The weight of a word that is similar to a word of the query."""
_COMMON = 500
"""A word in more documents than this only ranks the matches of rarer words, if there are any."""
_MOST_CANDIDATES = 1_500
"""If more documents match, the remaining words only rank them."""
_MOST_REPEATED = 2
"""The maximum count of a word in one part of a document, so that repetition does not help."""
_MOST_WORDS = 16
"""The maximum number of words of a query."""
_LONGEST_QUERY = 1_000
_MIN_TYPO_LENGTH = 4
"""The length of the shortest word in which typing errors are considered."""
_MAX_TYPO_LENGTH = 24
_MOST_NEAR = 3
"""The maximum number of known words that match an unknown word."""


class SearchIndex:
    """Finds documents by their words, with BM25 over names, descriptions and other names.

    Words are compared without case, accents and English endings. Names are split at underscores and
    at capital letters in camel case. A word that is in no document matches the words that start
    with it, or that differ by one typing error.

    Args:
        documents: The documents; results are their indexes.
    """

    def __init__(self, documents: Sequence[Document]) -> None:
        self._names: dict[str, list[int]] = {}
        for place, (name, _, _) in enumerate(documents):
            self._names.setdefault(_key(name), []).append(place)
        counted = [_counted(*document) for document in documents]
        mean = (sum(length for _, length in counted) / len(counted) if counted else 0.0) or 1.0
        postings: dict[str, dict[int, float]] = {}
        for place, (words, length) in enumerate(counted):
            norm = _K1 * (1 - _B + _B * length / mean)
            for word, count in words.items():
                postings.setdefault(word, {})[place] = count * (_K1 + 1) / (count + norm)
        for found in postings.values():
            rare = math.log(1 + (len(counted) - len(found) + 0.5) / (len(found) + 0.5))
            for place in found:
                found[place] *= rare
        self._postings = postings
        self._words = sorted(postings)
        self._deletions = _deletions(self._words)

    def find(self, query: str, limit: int) -> list[int]:
        """Return the indexes of the documents that match best, the best one first.

        Args:
            query: The words to search for.
            limit: The maximum number of documents.
        """
        query = query[:_LONGEST_QUERY]
        words = list(dict.fromkeys(words_of(query)))[:_MOST_WORDS]
        asked = [(self._postings[one], part) for word in words for one, part in self._known(word)]
        asked.sort(key=lambda found: len(found[0]))
        scores: dict[int, float] = {}
        for found, part in asked:
            known = len(scores)
            if known > _MOST_CANDIDATES or (len(found) > _COMMON and known >= limit):
                for place in scores:
                    scores[place] += part * found.get(place, 0.0)
            else:
                for place, weight in found.items():
                    scores[place] = scores.get(place, 0.0) + part * weight
        gain = _WHOLE_NAME * max(scores.values(), default=1.0)
        for place in self._names.get(_key(query), ()):
            scores[place] = scores.get(place, 0.0) + gain
        return heapq.nsmallest(limit, scores, key=lambda place: (-scores[place], place))

    def _known(self, word: str) -> list[tuple[str, float]]:
        """Return the words of documents that match a word of a query, with their weights."""
        if word in self._postings:
            return [(word, 1.0)]
        is_prefix = len(word) > 2 or not word.isascii()  # noqa: PLR2004 - "id" is too short
        longer = self._with_prefix(word) if is_prefix else []
        near = longer or self._with_typo(word)
        near.sort(key=lambda one: (-len(self._postings[one]), one))
        return [(one, _NEAR) for one in near[:_MOST_NEAR]]

    def _with_prefix(self, word: str) -> list[str]:
        first = bisect_left(self._words, word)
        last = bisect_left(self._words, word + "\U0010ffff", lo=first)
        return self._words[first : min(last, first + _COMMON)]

    def _with_typo(self, word: str) -> list[str]:
        if not _MIN_TYPO_LENGTH <= len(word) <= _MAX_TYPO_LENGTH:
            return []
        found = {other for short in _shortened(word) for other in self._deletions.get(short, ())}
        return [other for other in found if _is_typo(word, other)]


def words_of(text: str) -> list[str]:
    """Return the words of a text in the form in which they are compared."""
    plain = text
    if not text.isascii():
        decomposed = unicodedata.normalize("NFKD", text)
        plain = "".join(char for char in decomposed if not unicodedata.combining(char))
    found: list[str] = []
    for run in _RUN.findall(plain):
        parts = [run] if run.islower() or run.isupper() else _split_camel_case(run)
        for part in parts:
            found.extend(_stems(part))
        if len(parts) > 1:
            found.extend(_stems(run))
    return found


_RUN = re.compile(r"[^\W_]+")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Scripts without spaces between words."""
_ENDING = re.compile(r"(?:ies|ing|ed|es|s)$")
_VOWEL = re.compile(r"[aeiouy]")
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can do for from how i if in into is it its me my need of on "
        "or our please some that the their them this to tool tools use used using want we what "
        "when which will with you your",
    )
)


def _split_camel_case(run: str) -> list[str]:
    if run.isascii():
        return _CAMEL_PART.findall(run)
    starts = [at for at in range(1, len(run)) if run[at].isupper() and run[at - 1].islower()]
    return [run[a:b] for a, b in zip([0, *starts], [*starts, len(run)], strict=True)]


def _stems(run: str) -> list[str]:
    word = run.casefold()
    if word in _STOP:
        return []
    if word.isascii():
        return [_stem(word)]
    found: list[str] = []
    rest = word
    for match in _UNSPACED.finditer(word):
        signs = match[0]
        found += [signs[at : at + 2] for at in range(max(1, len(signs) - 1))]
        rest = rest.replace(signs, " ")
    return found + rest.split()


@lru_cache(maxsize=4096)
def _stem(word: str) -> str:
    """Remove English endings, so that `issues`, `issue` and `issued` match."""
    if len(word) < _MIN_TYPO_LENGTH or not word.isalpha() or word.endswith("ss"):
        return word
    ending = _ENDING.search(word)
    if ending is not None:
        short = word[: ending.start()]
        if ending[0] == "ies":
            short += "y"
        if len(short) > 2 and _VOWEL.search(short):  # noqa: PLR2004 - "string" is no form of "str"
            word = short
    if len(word) > 3 and word[-1] == "e":  # noqa: PLR2004
        word = word[:-1]
    return word


def _counted(name: str, text: str, further: Iterable[str]) -> tuple[dict[str, float], float]:
    """Return the weighted counts of the words of a document, and its weighted length."""
    counted: dict[str, float] = {}
    length = 0.0
    for weight, part in ((_NAME, name), (_TEXT, text), (_FURTHER, " ".join(further))):
        for word, times in Counter(words_of(part)).items():
            counted[word] = counted.get(word, 0.0) + weight * min(times, _MOST_REPEATED)
            length += weight * times
    return counted, length


def _key(name: str) -> str:
    """Return a name in the form in which whole names are compared."""
    return "".join(_RUN.findall(name)).casefold()


# --- typing errors


def _deletions(words: Iterable[str]) -> dict[str, list[str]]:
    """Return the words by the forms that result from deleting one letter."""
    slips: dict[str, list[str]] = {}
    for word in words:
        if _MIN_TYPO_LENGTH <= len(word) <= _MAX_TYPO_LENGTH:
            for short in _shortened(word):
                slips.setdefault(short, []).append(word)
    return slips


def _shortened(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _is_typo(one: str, other: str) -> bool:
    """Return whether two words differ by one changed, missing, extra or swapped letter."""
    if len(one) > len(other):
        one, other = other, one
    start = next((at for at, sign in enumerate(one) if sign != other[at]), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    rest = one[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return rest == other[start + 1 :] or (swapped and one[start + 2 :] == other[start + 2 :])
