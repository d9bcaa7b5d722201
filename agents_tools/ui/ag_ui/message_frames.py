"""Tells what models write, as it is written, and makes whole what was not streamed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.text.escape import safe_text

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.ui.ag_ui.frames import FrameWriter

__all__ = ["MessageFrames", "MessagePiece", "message_text", "reasoning_text"]

Kind: TypeAlias = Literal["text", "reasoning"]


class MessagePiece:
    """A message or a thought of which at least something was told.

    Attributes:
        kind: Which of the two.
        id: Its id on the wire.
        sent: What was told of it, as the model wrote it.
        open: Whether more may follow.
    """

    __slots__ = ("id", "kind", "open", "sent")

    def __init__(self, kind: Kind, wire: str) -> None:
        self.kind: Kind = kind
        self.id = wire
        self.sent: list[str] = []
        self.open = True


class MessageFrames:
    """What one agent's model says, answer by answer.

    Deltas are told as they come. The whole item that follows fills in what is missing, which is
    all of it where the model does not stream and the rest where deltas were left out.

    Args:
        writer: Takes the frames.
        owner: The sub-agent that speaks; `None` for the agent of the run itself.
        new_id: Makes ids of messages.

    Attributes:
        complete: Whether its items have come: what is streamed next is of a new answer.
        message: The id of the message that calls belong to.
        calls: The ids of the calls that are being streamed.
    """

    def __init__(self, writer: FrameWriter, owner: str | None, new_id: Callable[[], str]) -> None:
        self._writer = writer
        self._owner = owner
        self._new_id = new_id
        self._waiting: list[MessagePiece] = []  # told, without their items yet
        self._current: MessagePiece | None = None
        self._gap = False
        self.complete = False
        self.message: str | None = None
        self.calls: set[str] = set()

    @property
    def open_piece(self) -> MessagePiece | None:
        """What is being written."""
        return self._current

    def begin(self) -> bool:
        """Get ready for what is streamed; false where it cannot be told, after a gap."""
        if self.complete:
            self.end()
            self.complete = False
            self._gap = False
            self.message = None
            self._waiting.clear()
        return not self._gap

    def skip(self) -> None:
        """Know that something was left out: what is written now is told once it is whole."""
        self.begin()
        self._gap = True

    def say(self, kind: Kind, delta: str) -> None:
        """Tell the next piece of a text or of a thought."""
        if not self.begin() or not delta:
            return
        piece = self._current
        if piece is None or piece.kind != kind:
            piece = self._start(kind)
        self._add(piece, delta)

    def next_message(self) -> None:
        """Know that a new message begins."""
        if self.begin():
            self._end_current()

    def call_parent(self) -> str:
        """Return the message that a call belongs to; texts before it end."""
        if not self._gap:
            self._end_current()
        if self.message is None:
            self.message = self._new_id()
        return self.message

    def whole(self, kind: Kind, text: str) -> list[str]:
        """Return what is missing of a text or thought that is complete.

        Returns:
            The ids of what was told before and is not so.
        """
        self.complete = True
        piece = next((one for one in self._waiting if one.kind == kind), None)
        if piece is None:
            if text:
                self._add(self._start(kind), text)
                self._end_current()
            return []
        self._waiting.remove(piece)
        sent = "".join(piece.sent)
        if piece.open and text.startswith(sent):
            self._add(piece, text[len(sent) :])
            self._end(piece)
            return []
        self._end(piece)
        if sent.strip() == text.strip():
            return []
        self._add(self._start(kind), text)
        self._end_current()
        return [piece.id]

    def forget(self) -> list[str]:
        """Take back what was told of an answer that broke off; give the ids."""
        self.end()
        forgotten = [piece.id for piece in self._waiting]
        self._waiting.clear()
        self._gap = False
        self.message = None
        return forgotten

    def end(self) -> None:
        """End what is open."""
        for piece in self._waiting:
            self._end(piece)

    def resume(self) -> None:
        """Tell again what is open, to somebody who comes late."""
        piece = self._current
        if piece is not None and piece.open:
            self._open(piece)
            self._content(piece, self._writer.messages.text_of(piece.id))

    def answered(self) -> None:
        """Know that tools have answered: what follows belongs to a new answer."""
        self.complete = True
        self.message = None

    def _start(self, kind: Kind) -> MessagePiece:
        self._end_current()
        piece = self._current = MessagePiece(kind, self._new_id())
        if kind == "text":
            self.message = piece.id
        if not self.complete:
            self._waiting.append(piece)
        self._open(piece)
        return piece

    def _open(self, piece: MessagePiece) -> None:
        put, owner = self._writer.put, self._owner
        if piece.kind == "text":
            put("TEXT_MESSAGE_START", owner, messageId=piece.id, role="assistant")
            return
        put("REASONING_START", owner, messageId=piece.id)
        put("REASONING_MESSAGE_START", owner, messageId=piece.id, role="reasoning")

    def _add(self, piece: MessagePiece, delta: str) -> None:
        piece.sent.append(delta)
        self._content(piece, safe_text(delta))

    def _content(self, piece: MessagePiece, text: str) -> None:
        if text:
            kind = "TEXT_MESSAGE" if piece.kind == "text" else "REASONING_MESSAGE"
            self._writer.put(f"{kind}_CONTENT", self._owner, messageId=piece.id, delta=text)

    def _end_current(self) -> None:
        if self._current is not None:
            self._end(self._current)

    def _end(self, piece: MessagePiece) -> None:
        if self._current is piece:
            self._current = None
        if not piece.open:
            return
        piece.open = False
        put, owner = self._writer.put, self._owner
        if piece.kind == "text":
            put("TEXT_MESSAGE_END", owner, messageId=piece.id)
            return
        put("REASONING_MESSAGE_END", owner, messageId=piece.id)
        put("REASONING_END", owner, messageId=piece.id)


def message_text(item: Mapping[str, Any]) -> str:
    """Return what a message says, a refusal included."""
    parts = cast("list[Mapping[str, Any]]", item.get("content") or [])
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def reasoning_text(item: Mapping[str, Any]) -> str:
    """Return what a thought says."""
    parts = cast("list[Mapping[str, Any]]", item.get("summary") or [])
    return "\n\n".join(str(part.get("text", "")) for part in parts)
