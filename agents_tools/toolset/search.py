"""Ranked search in short texts: which of many tools fit what somebody wants to do."""

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
"""A name, a description, and further names that say less."""

_K1 = 1.2
_B = 0.6
_NAME, _TEXT, _FURTHER = 3.0, 1.0, 1.0
"""How much one occurrence counts: in the name, the description, the further names."""
_WHOLE_NAME = 4.0
"""What a document gains whose name is just what was asked for, in units of its best word."""
_NEAR = 0.5
"""How much a word counts that is only like the one asked for."""
_COMMON = 500
"""A word in more documents than this only ranks what rarer words have found, if they have."""
_MOST_CANDIDATES = 1_500
"""With so many documents found, further words only rank them."""
_MOST_REPEATED = 2
"""How often a word counts in one part of a document: repeating it is no way to the top."""
_MOST_WORDS = 16
"""How many words of one query count."""
_LONGEST_QUERY = 1_000
_SHORTEST_SLIP = 4
"""The shortest word in which a slip is looked for."""
_LONGEST_SLIP = 24
_MOST_NEAR = 3
"""How many known words one unknown word may stand for."""


class SearchIndex:
    """Finds documents by their words: BM25 over names, descriptions and further names.

    Words are compared without case and accents, in a stem without English endings; names are
    parted at underscores and humps. A word that no document has stands for those that begin with
    it, or are one slip away.

    Args:
        documents: What is searched; they are known by their places.
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
        self._slips = _slips(self._words)

    def find(self, query: str, limit: int) -> list[int]:
        """Return the places of the documents that fit best, the best one first.

        Args:
            query: What is looked for, in words.
            limit: How many are given at most.
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
        """Return the words of documents that a word of a query stands for."""
        if word in self._postings:
            return [(word, 1.0)]
        may_go_on = len(word) > 2 or not word.isascii()  # noqa: PLR2004 - "id" is no start
        longer = self._beginning(word) if may_go_on else []
        near = longer or self._one_slip_away(word)
        near.sort(key=lambda one: (-len(self._postings[one]), one))
        return [(one, _NEAR) for one in near[:_MOST_NEAR]]

    def _beginning(self, word: str) -> list[str]:
        first = bisect_left(self._words, word)
        last = bisect_left(self._words, word + "\U0010ffff", lo=first)
        return self._words[first : min(last, first + _COMMON)]

    def _one_slip_away(self, word: str) -> list[str]:
        if not _SHORTEST_SLIP <= len(word) <= _LONGEST_SLIP:
            return []
        found = {other for short in _shortened(word) for other in self._slips.get(short, ())}
        return [other for other in found if _is_slip(word, other)]


def words_of(text: str) -> list[str]:
    """Return the words of a text as they are compared; names are parted at their humps."""
    plain = text
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        plain = "".join(char for char in parted if not unicodedata.combining(char))
    found: list[str] = []
    for run in _RUN.findall(plain):
        parts = [run] if run.islower() or run.isupper() else _humps(run)
        for part in parts:
            found.extend(_stems(part))
        if len(parts) > 1:
            found.extend(_stems(run))
    return found


_RUN = re.compile(r"[^\W_]+")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Scripts that put no blanks between words."""
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


def _humps(run: str) -> list[str]:
    if run.isascii():
        return _HUMP.findall(run)
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
    """Take English endings off: `issues`, `issue` and `issued` are one word."""
    if len(word) < _SHORTEST_SLIP or not word.isalpha() or word.endswith("ss"):
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
    """Return the words of a document, each with how much it counts, and the length of the whole."""
    counted: dict[str, float] = {}
    length = 0.0
    for weight, part in ((_NAME, name), (_TEXT, text), (_FURTHER, " ".join(further))):
        for word, times in Counter(words_of(part)).items():
            counted[word] = counted.get(word, 0.0) + weight * min(times, _MOST_REPEATED)
            length += weight * times
    return counted, length


def _key(name: str) -> str:
    """Return a name as it is compared as a whole."""
    return "".join(_RUN.findall(name)).casefold()


# --- slips


def _slips(words: Iterable[str]) -> dict[str, list[str]]:
    """Return the words by all that is left of them where one letter is missing."""
    slips: dict[str, list[str]] = {}
    for word in words:
        if _SHORTEST_SLIP <= len(word) <= _LONGEST_SLIP:
            for short in _shortened(word):
                slips.setdefault(short, []).append(word)
    return slips


def _shortened(word: str) -> set[str]:
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def _is_slip(one: str, other: str) -> bool:
    """Return whether a letter is wrong, missing, too many, or two have changed places."""
    if len(one) > len(other):
        one, other = other, one
    start = next((at for at, sign in enumerate(one) if sign != other[at]), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    rest = one[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return rest == other[start + 1 :] or (swapped and one[start + 2 :] == other[start + 2 :])
