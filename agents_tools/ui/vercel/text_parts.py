"""Encode the text and reasoning of a model as parts of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, TypeAlias

from agents_tools.text.output import TextStream

if TYPE_CHECKING:
    from agents_tools.ui.vercel.text import Chunk

__all__ = ["Kind", "TextParts"]

Kind: TypeAlias = Literal["text", "reasoning"]


class TextParts:
    """The text and reasoning parts of one answer of a model.

    Deltas are sent at once. The complete item that follows repeats their text, so only the part
    that the deltas did not contain is sent.
    """

    def __init__(self) -> None:
        self._count = 0
        self._open: tuple[Kind, str, TextStream] | None = None
        self._sent: dict[Kind, list[str]] = {"text": [], "reasoning": []}
        self._matched: dict[Kind, int] = {"text": 0, "reasoning": 0}  # characters of complete items
        self._gap = False

    @property
    def has_gap(self) -> bool:
        """Return whether deltas are ignored until the complete text."""
        return self._gap

    def skip(self) -> None:
        """Ignore the deltas until the complete text, because events were dropped."""
        self._gap = True

    def add_delta(self, kind: Kind, text: str) -> list[Chunk]:
        """Return the chunks of a delta."""
        if self._gap or not text:
            return []
        self._sent[kind].append(text)
        return self._add(kind, text)

    def add_item(self, kind: Kind, text: str) -> list[Chunk]:
        """Return the chunks of the part of a complete text that the deltas did not contain."""
        sent = "".join(self._sent[kind])
        rest = sent[self._matched[kind] :]
        chunks: list[Chunk] = []
        if rest and rest.startswith(text):
            self._matched[kind] += len(text)
        elif text.startswith(rest):
            chunks = self._add(kind, text[len(rest) :])
            self._sent[kind].append(text[len(rest) :])
            self._matched[kind] = len(sent) + len(text) - len(rest)
        else:
            self._matched[kind] = len(sent)
            if self._gap:  # repeat text rather than lose it
                chunks = self.close() + self._add(kind, text)
                self._sent[kind].append(text)
                self._matched[kind] += len(text)
        if len("".join(self._sent[kind])) == self._matched[kind]:
            chunks += self._close_if(kind)
        self._gap = False
        return chunks

    def close(self) -> list[Chunk]:
        """End the open part."""
        if self._open is None:
            return []
        kind, part, safe = self._open
        self._open = None
        rest = safe.finish()
        last: list[Chunk] = [{"type": f"{kind}-delta", "id": part, "delta": rest}] if rest else []
        return [*last, {"type": f"{kind}-end", "id": part}]

    def reset(self) -> list[Chunk]:
        """End the answer, because the next text belongs to another one."""
        chunks = self.close()
        self._sent = {"text": [], "reasoning": []}
        self._matched = {"text": 0, "reasoning": 0}
        return chunks

    def _add(self, kind: Kind, text: str) -> list[Chunk]:
        if not text:
            return []
        chunks: list[Chunk] = []
        if self._open is None or self._open[0] != kind:
            chunks = self.close()
            self._count += 1
            self._open = (kind, f"{kind}-{self._count}", TextStream())
            chunks.append({"type": f"{kind}-start", "id": self._open[1]})
        _, part, safe = self._open
        delta = safe.push(text)
        if delta:
            chunks.append({"type": f"{kind}-delta", "id": part, "delta": delta})
        return chunks

    def _close_if(self, kind: Kind) -> list[Chunk]:
        return self.close() if self._open is not None and self._open[0] == kind else []
