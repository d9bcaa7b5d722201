"""Nouns with their articles, for error messages."""

from __future__ import annotations

__all__ = ["type_with_article", "with_article"]

_VOWELS = tuple("aeiouAEIOU")


def with_article(noun: str) -> str:
    """Return a noun with `a`, or with `an` before a vowel."""
    return f"an {noun}" if noun.startswith(_VOWELS) else f"a {noun}"


def type_with_article(value: object) -> str:
    """Return the name of the type of a value with its article: `an int`, `a str`."""
    return with_article(type(value).__name__)
