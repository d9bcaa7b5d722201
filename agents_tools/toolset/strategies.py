"""How tool search ranks tools: by words, or by embeddings as well."""

from __future__ import annotations

import heapq
import inspect
import math
from operator import mul
from typing import TYPE_CHECKING, Protocol

from agents_tools.errors import UserTypeError, UserValueError
from agents_tools.text.nouns import type_with_article
from agents_tools.toolset.search import SearchIndex

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import TypeAlias

    from agents_tools.toolset.search import ToolText

    Embed: TypeAlias = Callable[[list[str]], Sequence[Sequence[float]]]

__all__ = ["SearchStrategy", "ToolIndex", "embedding_search"]

_RANK_OFFSET = 60
"""The constant of reciprocal rank fusion (Cormack, Clarke and Büttcher 2009)."""
_FUSED = 50
"""The number of tools of each ranking that are merged."""
_EMBEDDING_WEIGHT = 0.5
"""The weight of the ranking by embeddings; that of the ranking by words is 1."""


class ToolIndex(Protocol):
    """Finds tools by a query."""

    def find(self, query: str, limit: int) -> Sequence[int]:
        """Return the indexes of the tools that match best, the best one first.

        Args:
            query: The words to search for, or a whole request of a user.
            limit: The maximum number of tools.
        """
        ...


class SearchStrategy(Protocol):
    """Creates the index of tools, such as `SearchIndex`."""

    def __call__(self, tools: Sequence[ToolText], /) -> ToolIndex:
        """Return the index.

        Args:
            tools: The texts of the tools; results of the index are their indexes.
        """
        ...


def embedding_search(embed: Embed, *, batch_size: int = 256) -> SearchStrategy:
    """Return a strategy that merges the ranking by words with one by embeddings.

    The texts of all tools are embedded before the first search, and each query once. The two
    rankings are merged by reciprocal rank fusion, so names and rare words still count. A text with
    a zero vector is found by its words only.

    Args:
        embed: A function from texts to their vectors, all of one length. It runs in a thread, so it
            can send requests.
        batch_size: The maximum number of texts of one call of the function.

    Raises:
        UserError: `batch_size` is not a positive integer, or `embed` is not a sync function.
    """
    if not callable(embed) or inspect.iscoroutinefunction(embed):
        got = "an async one" if callable(embed) else type_with_article(embed)
        raise UserTypeError(
            f"embedding_search(...) is not valid: expected a sync function, got {got}: "
            f"{embed!r:.80}. Write a sync function; it runs in a thread."
        )
    if type(batch_size) is not int or batch_size < 1:
        raise UserValueError(
            "embedding_search(batch_size=...) is not valid: expected a positive integer, got "
            f"{batch_size!r:.60}."
        )
    return lambda tools: _EmbeddingIndex(tools, embed, batch_size)


class _EmbeddingIndex:
    """Ranks tools by words and by the cosine of embeddings."""

    def __init__(self, tools: Sequence[ToolText], embed: Embed, batch_size: int) -> None:
        self._words = SearchIndex(tools)
        self._embed = embed
        self._vectors: list[list[float]] = []
        texts = [". ".join(part for part in tool if part) for tool in tools]
        for start in range(0, len(texts), batch_size):
            self._vectors += self._vectors_of(texts[start : start + batch_size])

    def find(self, query: str, limit: int) -> Sequence[int]:
        """Return the indexes of the tools that match best, the best one first."""
        if not self._vectors:
            return []
        (asked,) = self._vectors_of([query])
        most = max(_FUSED, limit)
        # A zero vector has no direction, so it is near to nothing.
        known = [place for place, vector in enumerate(self._vectors) if any(vector) and any(asked)]
        near = {place: sum(map(mul, asked, self._vectors[place])) for place in known}
        by_vector = heapq.nlargest(most, known, key=near.__getitem__)
        fused: dict[int, float] = {}
        for weight, ranking in (
            (1.0, self._words.find(query, most)),
            (_EMBEDDING_WEIGHT, by_vector),
        ):
            for rank, place in enumerate(ranking):
                fused[place] = fused.get(place, 0.0) + weight / (_RANK_OFFSET + rank)
        return heapq.nsmallest(limit, fused, key=lambda place: (-fused[place], place))

    def _vectors_of(self, texts: list[str]) -> list[list[float]]:
        """Return the vectors of texts, scaled to length 1."""
        vectors = [list(map(float, vector)) for vector in self._embed(texts)]
        dimensions = sorted({*map(len, [*self._vectors[:1], *vectors])})
        if len(dimensions) > 1:
            raise UserValueError(
                "embedding_search(...): the function returned vectors of different lengths: "
                f"expected one length, got {dimensions}. "
                "Use one model for all texts."
            )
        if len(vectors) != len(texts):
            raise UserValueError(
                f"embedding_search(...): the function returned a wrong number of vectors: expected "
                f"{len(texts)}, got {len(vectors)}. Return one vector for each text."
            )
        lengths = [math.sqrt(sum(map(mul, vector, vector))) or 1.0 for vector in vectors]
        return [
            [value / length for value in vector]
            for vector, length in zip(vectors, lengths, strict=True)
        ]
