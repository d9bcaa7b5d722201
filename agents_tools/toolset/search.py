"""Ranked search in short texts, such as the names and descriptions of tools."""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import Counter
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self, cast

from agents_tools.toolset.query import synonyms, weighted_words
from agents_tools.toolset.words import (
    MAX_TYPO_LENGTH,
    MIN_TYPO_LENGTH,
    RUN,
    deletions,
    is_typo,
    shortened,
    words_of,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["SearchIndex", "ToolText"]

_K1 = 1.6
_B = 0.6
_WHOLE_NAME = 4.0
"""The bonus for a document whose name equals the query, as a multiple of the best score."""
_NEAR = 0.5
"""The weight of a word that is similar to a word of the query, in form or in meaning."""
_COVERAGE = 0.3
"""The exponent of the part of the query that a document matches."""
_COMMON = 200
"""A word in more documents than this only ranks the matches of rarer words, if there are any."""
_MAX_CANDIDATES = 400
"""If more documents match, the remaining words only rank them."""
_RERANKED = 50
"""The number of documents whose coverage is compared."""
_MAX_REPEATED = 2
"""The maximum count of a word in one part of a document, so that repetition does not help."""
_MAX_NEAR = 3
"""The maximum number of known words that match an unknown word."""


_MAX_TEXT = 2_000
_MAX_PARAMETERS = 200
_MAX_DEPTH = 8
"""The maximum characters of one description in the index, and the bounds on parameters."""


class ToolText(NamedTuple):
    """The text of a tool that is searched.

    Attributes:
        name: The name.
        description: The description.
        parameters: The names of its parameters.
        details: The descriptions of its parameters, and the values that they allow.
        group: Where it belongs: the names of its server and of its toolset, and its title.
    """

    name: str
    description: str = ""
    parameters: str = ""
    details: str = ""
    group: str = ""

    @classmethod
    def of(cls, name: str, description: str, schema: Mapping[str, Any], group: str = "") -> Self:
        """Return the text of a tool with a JSON Schema.

        Args:
            name: The name.
            description: The description.
            schema: The JSON Schema of the parameters.
            group: Where it belongs.
        """
        names: list[str] = []
        details: list[str] = []
        _collect(schema, names, details)
        shown = description[:_MAX_TEXT]
        return cls(name, shown, " ".join(names), " ".join(details), group)


_WEIGHTS = (3.0, 1.0, 0.8, 0.6, 1.5)
"""The weight of a word in each part."""

_Postings = dict[int, float]
"""The score of a word in each document that has it."""


class SearchIndex:
    """Finds tools by their words, with BM25 over all parts of their text.

    Words are compared without case, accents and English endings. Names are split at underscores and
    at capital letters in camel case. A word also matches its synonyms, with half the weight. A word
    that is in no document matches the words that start with it, or that differ by one typing error.

    Args:
        documents: The texts of the tools; results are their indexes.
    """

    def __init__(self, documents: Sequence[ToolText]) -> None:
        self._names = [document.name for document in documents]
        self._by_name: dict[str, list[int]] = {}
        for place, name in enumerate(self._names):
            self._by_name.setdefault(_key(name), []).append(place)
        counted = [_counted(document) for document in documents]
        mean = (sum(length for _, length in counted) / len(counted) if counted else 0.0) or 1.0
        postings: dict[str, _Postings] = {}
        for place, (words, length) in enumerate(counted):
            norm = _K1 * (1 - _B + _B * length / mean)
            for word, count in words.items():
                postings.setdefault(word, {})[place] = count * (_K1 + 1) / (count + norm)
        self._rarity: dict[str, float] = {}
        for word, found in postings.items():
            rare = math.log(1 + (len(counted) - len(found) + 0.5) / (len(found) + 0.5))
            self._rarity[word] = rare
            for place in found:
                found[place] *= rare
        self._postings = postings
        self._words = sorted(postings)
        self._deletions = deletions(self._words)
        self._merged: dict[str, tuple[_Postings, float]] = {}

    def find(self, query: str, limit: int) -> list[int]:
        """Return the indexes of the tools that match best, the best one first.

        A model calls a tool by its name, so tools with the same name count as one result.

        Args:
            query: The words to search for, or a whole request of a user.
            limit: The maximum number of tools.
        """
        asked = [(*self._matches(word), weight) for word, weight in weighted_words(query).items()]
        asked = [one for one in asked if one[0]]
        asked.sort(key=lambda one: len(one[0]))
        scores: _Postings = {}
        for found, _, part in asked:
            known = len(scores)
            if known > _MAX_CANDIDATES or (len(found) > _COMMON and known >= max(limit, _RERANKED)):
                for place in scores.keys() & found.keys():
                    scores[place] += part * found[place]
            else:
                for place, weight in found.items():
                    scores[place] = scores.get(place, 0.0) + part * weight
        gain = _WHOLE_NAME * max(scores.values(), default=1.0)
        for place in self._by_name.get(_key(query), ()):
            scores[place] = scores.get(place, 0.0) + gain
        return self._best(scores, [(found, rare * part) for found, rare, part in asked], limit)

    def _best(
        self, scores: _Postings, asked: Sequence[tuple[_Postings, float]], limit: int
    ) -> list[int]:
        """Return the best documents, ranked by how much of the query they match as well."""
        most = max(_RERANKED, 4 * limit)
        best = sorted(scores, key=scores.__getitem__, reverse=True)[:most]
        whole = sum(rare for _, rare in asked) or 1.0
        ranked: list[tuple[float, int]] = []
        for place in best:
            matched = sum(rare for found, rare in asked if place in found)
            ranked.append((-scores[place] * max(matched, whole / 100) ** _COVERAGE, place))
        found: dict[str, int] = {}
        for _, place in sorted(ranked):
            found.setdefault(self._names[place], place)
        return list(found.values())[:limit]

    def _matches(self, word: str) -> tuple[_Postings, float]:
        """Return the documents that match a word of a query, and the rarity of the word."""
        merged = self._merged.get(word)
        if merged is not None:
            return merged
        own = self._postings.get(word)
        near = [other for other in synonyms().get(word, ()) if other in self._postings]
        if own is not None and not near:
            return own, self._rarity[word]
        scores = dict(own) if own is not None else {}
        rarity = self._rarity.get(word, 0.0)
        for other in near if own is not None else [*self._similar(word), *near]:
            rarity = max(rarity, _NEAR * self._rarity[other])
            for place, score in self._postings[other].items():
                if _NEAR * score > scores.get(place, 0.0):
                    scores[place] = _NEAR * score
        if word in synonyms():  # words of queries are without number, those with synonyms are few
            self._merged[word] = scores, rarity
        return scores, rarity

    def _similar(self, word: str) -> list[str]:
        """Return the words of documents that start with a word, or differ by a typing error."""
        is_prefix = len(word) > 2 or not word.isascii()  # noqa: PLR2004 - "id" is too short
        near = (self._with_prefix(word) if is_prefix else []) or self._with_typo(word)
        near.sort(key=lambda one: (-len(self._postings[one]), one))
        return near[:_MAX_NEAR]

    def _with_prefix(self, word: str) -> list[str]:
        first = bisect_left(self._words, word)
        last = bisect_left(self._words, word + "\U0010ffff", lo=first)
        return self._words[first : min(last, first + _COMMON)]

    def _with_typo(self, word: str) -> list[str]:
        if not MIN_TYPO_LENGTH <= len(word) <= MAX_TYPO_LENGTH:
            return []
        found = {other for short in shortened(word) for other in self._deletions.get(short, ())}
        return [other for other in found if is_typo(word, other)]


def _counted(document: ToolText) -> tuple[dict[str, float], float]:
    """Return the weighted counts of the words of a document, and its weighted length."""
    counted: dict[str, float] = {}
    length = 0.0
    for weight, part in zip(_WEIGHTS, document, strict=True):
        for word, times in Counter(words_of(part)).items():
            counted[word] = counted.get(word, 0.0) + weight * min(times, _MAX_REPEATED)
            length += weight * times
    return counted, length


def _collect(schema: object, names: list[str], details: list[str], depth: int = 0) -> None:
    """Collect the names, the descriptions and the allowed values of all parameters."""
    if isinstance(schema, list):
        for member in cast("list[object]", schema):
            _collect(member, names, details, depth)
        return
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or len(names) >= _MAX_PARAMETERS:
        return
    found = cast("Mapping[str, object]", schema)
    for name, inner in _mapping(found.get("properties")).items():
        names.append(name)
        text = _mapping(inner).get("description")
        details += [text[:_MAX_TEXT]] if isinstance(text, str) else []
        values = _mapping(inner).get("enum")
        if isinstance(values, list):
            details += [one for one in cast("list[object]", values) if isinstance(one, str)]
        _collect(inner, names, details, depth + 1)
    for key in ("items", "anyOf", "oneOf", "allOf"):
        _collect(found.get(key), names, details, depth + 1)
    _collect(list(_mapping(found.get("$defs")).values()), names, details, depth + 1)


def _mapping(value: object) -> Mapping[str, object]:
    return cast("Mapping[str, object]", value) if isinstance(value, Mapping) else {}


def _key(name: str) -> str:
    """Return a name in the form in which whole names are compared."""
    return "".join(RUN.findall(name)).casefold()
