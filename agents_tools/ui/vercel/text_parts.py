"""The text and the reasoning of a model, as parts of the message that the client shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from agents_tools.ui.vercel.text import SafeDeltas

if TYPE_CHECKING:
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["Kind", "TextParts"]

Kind: TypeAlias = Literal["text", "reasoning"]


class TextParts:
    """What a model writes in one answer, first in pieces and then as whole items, or only so.

    A whole item repeats what its pieces said. Where pieces were left out on the way, the whole
    says the rest.
    """

    def __init__(self) -> None:
        self._count = 0
        self._open: tuple[Kind, str, SafeDeltas] | None = None
        self._said: dict[Kind, list[str]] = {"text": [], "reasoning": []}
        self._taken: dict[Kind, int] = {"text": 0, "reasoning": 0}
        self._gap = False

    @property
    def holds(self) -> bool:
        """Return whether pieces are left out until the whole text comes."""
        return self._gap

    def lose(self) -> None:
        """Some pieces were left out: say no more until the whole text comes."""
        self._gap = True

    def delta(self, kind: Kind, text: str) -> list[Chunk]:
        """Say a piece."""
        if self._gap or not text:
            return []
        self._said[kind].append(text)
        return self._say(kind, text)

    def whole(self, kind: Kind, text: str) -> list[Chunk]:
        """Say a whole text, as far as its pieces did not."""
        said = "".join(self._said[kind])
        rest = said[self._taken[kind] :]
        chunks: list[Chunk] = []
        if rest and rest.startswith(text):
            self._taken[kind] += len(text)
        elif text.startswith(rest):
            chunks = self._say(kind, text[len(rest) :])
            self._said[kind].append(text[len(rest) :])
            self._taken[kind] = len(said) + len(text) - len(rest)
        else:
            self._taken[kind] = len(said)
            if self._gap:  # twice is better than never
                chunks = self.close() + self._say(kind, text)
                self._said[kind].append(text)
                self._taken[kind] += len(text)
        if len("".join(self._said[kind])) == self._taken[kind]:
            chunks += self._close_if(kind)
        self._gap = False
        return chunks

    def close(self) -> list[Chunk]:
        """End the part that is open."""
        if self._open is None:
            return []
        kind, part, safe = self._open
        self._open = None
        rest = safe.rest()
        last: list[Chunk] = [{"type": f"{kind}-delta", "id": part, "delta": rest}] if rest else []
        return [*last, {"type": f"{kind}-end", "id": part}]

    def forget(self) -> list[Chunk]:
        """End the answer: nothing that comes belongs to what was said."""
        chunks = self.close()
        self._said = {"text": [], "reasoning": []}
        self._taken = {"text": 0, "reasoning": 0}
        return chunks

    def _say(self, kind: Kind, text: str) -> list[Chunk]:
        if not text:
            return []
        chunks: list[Chunk] = []
        if self._open is None or self._open[0] != kind:
            chunks = self.close()
            self._count += 1
            self._open = (kind, f"{kind}-{self._count}", SafeDeltas())
            chunks.append({"type": f"{kind}-start", "id": self._open[1]})
        _, part, safe = self._open
        delta = safe.push(text)
        if delta:
            chunks.append({"type": f"{kind}-delta", "id": part, "delta": delta})
        return chunks

    def _close_if(self, kind: Kind) -> list[Chunk]:
        return self.close() if self._open is not None and self._open[0] == kind else []
