"""Stream the text and reasoning of a model as parts of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from agents_tools.ui.vercel.text import SafeDeltas

if TYPE_CHECKING:
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["Kind", "TextParts"]

Kind: TypeAlias = Literal["text", "reasoning"]


class TextParts:
    """The text and reasoning of one answer.

    A model sends deltas and then complete items, or only items. An item repeats the text of its
    deltas; if deltas were dropped, the item adds the missing text.
    """

    def __init__(self) -> None:
        self._count = 0
        self._open: tuple[Kind, str, SafeDeltas] | None = None
        self._sent: dict[Kind, list[str]] = {"text": [], "reasoning": []}
        self._taken: dict[Kind, int] = {"text": 0, "reasoning": 0}
        self._gap = False

    @property
    def has_gap(self) -> bool:
        """Return whether deltas are ignored until the complete text arrives."""
        return self._gap

    def note_gap(self) -> None:
        """Ignore deltas until the complete text arrives, because some were dropped."""
        self._gap = True

    def delta(self, kind: Kind, text: str) -> list[Chunk]:
        """Return the chunks of a delta."""
        if self._gap or not text:
            return []
        self._sent[kind].append(text)
        return self._send(kind, text)

    def complete(self, kind: Kind, text: str) -> list[Chunk]:
        """Return the chunks for the part of a complete text that no delta has sent."""
        sent = "".join(self._sent[kind])
        rest = sent[self._taken[kind] :]
        chunks: list[Chunk] = []
        if rest and rest.startswith(text):
            self._taken[kind] += len(text)
        elif text.startswith(rest):
            chunks = self._send(kind, text[len(rest) :])
            self._sent[kind].append(text[len(rest) :])
            self._taken[kind] = len(sent) + len(text) - len(rest)
        else:
            self._taken[kind] = len(sent)
            if self._gap:  # better repeat text than lose it
                chunks = self.close() + self._send(kind, text)
                self._sent[kind].append(text)
                self._taken[kind] += len(text)
        if len("".join(self._sent[kind])) == self._taken[kind]:
            chunks += self._close_if(kind)
        self._gap = False
        return chunks

    def close(self) -> list[Chunk]:
        """End the open part."""
        if self._open is None:
            return []
        kind, part, safe = self._open
        self._open = None
        rest = safe.rest()
        last: list[Chunk] = [{"type": f"{kind}-delta", "id": part, "delta": rest}] if rest else []
        return [*last, {"type": f"{kind}-end", "id": part}]

    def end_answer(self) -> list[Chunk]:
        """End the answer, so that later text belongs to a new one."""
        chunks = self.close()
        self._sent = {"text": [], "reasoning": []}
        self._taken = {"text": 0, "reasoning": 0}
        return chunks

    def _send(self, kind: Kind, text: str) -> list[Chunk]:
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
