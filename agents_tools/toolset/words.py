"""Split texts into words in the form in which tool search compares them."""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache
from typing import TYPE_CHECKING

from agents_tools.toolset.chinese import translations

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["RUN", "deletions", "is_typo", "shortened", "stem", "without_accents", "words_of"]

MIN_TYPO_LENGTH = 4
"""The length of the shortest word in which typing errors are considered."""
MAX_TYPO_LENGTH = 24

RUN = re.compile(r"[^\W_]+")
_CAMEL_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")
"""Scripts without spaces between words."""
_STOP = frozenset(
    re.findall(
        r"\w+",
        "a an and are as at be by can do for from how i if in into is it its me my need of on "
        "or our please some that the their them this to tool tools use used using want we what "
        "when which will with you your",
    )
)


def words_of(text: str) -> list[str]:
    """Return the words of a text in the form in which they are compared."""
    found: list[str] = []
    for run in RUN.findall(without_accents(text)):
        parts = [run] if run.islower() or run.isupper() else _split_camel_case(run)
        for part in parts:
            found.extend(_stems(part))
        if len(parts) > 1:
            found.extend(_stems(run))
    return found


def without_accents(text: str) -> str:
    """Return a text without its accents and other marks on letters."""
    if text.isascii():
        return text
    decomposed = unicodedata.normalize("NFKD", text)
    return "".join(char for char in decomposed if not unicodedata.combining(char))


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
        return [stem(word)]
    found: list[str] = []
    rest = word
    for match in _UNSPACED.finditer(word):
        signs = match[0]
        for at in range(max(1, len(signs) - 1)):
            pair = signs[at : at + 2]
            english = translations().get(pair)
            found.append(pair if english is None else stem(english))
        rest = rest.replace(signs, " ")
    return found + rest.split()


# --- English endings

_SHORTEST_STEM = 3
_VOWEL = re.compile(r"[aeiouy]")
_VERB_NOUN = re.compile(r"at(?:e[ds]?|ing|ions?|ors?)$")
_ENDING = re.compile(r"(?:ies|ings?|ed|es|s)$")
_AGENT = re.compile(r"(?<=t)(?:ion|or)$")


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """Remove English endings, so that `issues`, `issue` and `issued` match.

    The stem of `calculate`, `calculation` and `calculator` is the same as well. A full Porter
    stemmer finds no more tools than these rules do (`tests/benchmarks/search`).

    Args:
        word: An ASCII word in lower case.
    """
    if len(word) <= _SHORTEST_STEM or not word.isalpha() or word.endswith("ss"):
        return word
    short = _VERB_NOUN.sub("", word)
    if short != word and _is_stem(short):
        return short
    ending = _ENDING.search(word)
    if ending is not None:
        short = word[: ending.start()]
        if ending[0] == "ies":
            short += "y"
        if ending[0] in {"ing", "ings", "ed"} and short[-2:-1] == short[-1:] not in {*"lsz"}:
            short = short[:-1]  # "running" is a form of "run"
        if _is_stem(short):
            word = short
    short = _AGENT.sub("", word)
    if len(short) > _SHORTEST_STEM:
        word = short
    if len(word) > _SHORTEST_STEM and word[-1] == "e":
        word = word[:-1]
    return word


def _is_stem(short: str) -> bool:
    return len(short) >= _SHORTEST_STEM and _VOWEL.search(short) is not None


# --- typing errors


def deletions(words: Iterable[str]) -> dict[str, list[str]]:
    """Return the words by the forms that result from deleting one letter."""
    slips: dict[str, list[str]] = {}
    for word in words:
        if MIN_TYPO_LENGTH <= len(word) <= MAX_TYPO_LENGTH:
            for short in shortened(word):
                slips.setdefault(short, []).append(word)
    return slips


def shortened(word: str) -> set[str]:
    """Return a word and its forms without one letter."""
    return {word, *(word[:at] + word[at + 1 :] for at in range(len(word)))}


def is_typo(one: str, other: str) -> bool:
    """Return whether two words differ by one changed, missing, extra or swapped letter."""
    if len(one) > len(other):
        one, other = other, one
    start = next((at for at, sign in enumerate(one) if sign != other[at]), len(one))
    if len(one) < len(other):
        return one[start:] == other[start + 1 :]
    rest = one[start + 1 :]
    swapped = one[start : start + 2] == other[start : start + 2][::-1]
    return rest == other[start + 1 :] or (swapped and one[start + 2 :] == other[start + 2 :])
