"""Encode the text and reasoning of models, from deltas and from complete items."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypeAlias, cast

from agents_tools.text.output import TextStream

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from agents_tools.ui.ag_ui.frames import FrameWriter

__all__ = ["MessageFrames", "MessagePiece", "message_text", "reasoning_text"]

Kind: TypeAlias = Literal["text", "reasoning"]


class MessagePiece:
    """A text or reasoning message that was started.

    Attributes:
        kind: Text or reasoning.
        id: Its id on the wire.
        sent: The deltas that were sent, as the model wrote them.
        stream: Cleans and masks the deltas.
        open: Whether more deltas can follow.
    """

    __slots__ = ("id", "kind", "open", "sent", "stream")

    def __init__(self, kind: Kind, wire: str) -> None:
        self.kind: Kind = kind
        self.id = wire
        self.sent: list[str] = []
        self.stream = TextStream()
        self.open = True


class MessageFrames:
    """The responses of the model of one agent, one after the other.

    Deltas are sent at once. The complete item that follows adds the missing text: all of it if the
    model does not stream, the rest if deltas were dropped.

    Args:
        writer: The writer of the frames.
        owner: The id of the sub-agent; `None` for the agent of the run itself.
        new_id: Creates ids of messages.

    Attributes:
        complete: Whether an item of the response was received, so that the next delta belongs to a
            new response.
        message: The id of the message that the calls belong to.
        calls: The ids of the calls that are being streamed.
    """

    def __init__(self, writer: FrameWriter, owner: str | None, new_id: Callable[[], str]) -> None:
        self._writer = writer
        self._owner = owner
        self._new_id = new_id
        self._waiting: list[MessagePiece] = []  # whose items were not received
        self._current: MessagePiece | None = None
        self._gap = False
        self.complete = False
        self.message: str | None = None
        self.calls: set[str] = set()

    @property
    def open_piece(self) -> MessagePiece | None:
        """The message that the model is writing."""
        return self._current

    def begin(self) -> bool:
        """Prepare for a delta. Return whether it can be sent: after a gap it cannot."""
        if self.complete:
            self.end()
            self.complete = False
            self._gap = False
            self.message = None
            self._waiting.clear()
        return not self._gap

    def skip(self) -> None:
        """Ignore the deltas until the complete item, because events were dropped."""
        self.begin()
        self._gap = True

    def add_delta(self, kind: Kind, delta: str) -> None:
        """Send the next delta of a text or of reasoning."""
        if not self.begin() or not delta:
            return
        piece = self._current
        if piece is None or piece.kind != kind:
            piece = self._start(kind)
        self._add(piece, delta)

    def next_message(self) -> None:
        """End the current message, because a new one begins."""
        if self.begin():
            self._end_current()

    def call_parent(self) -> str:
        """Return the id of the message that a call belongs to, and end the text before the call."""
        if not self._gap:
            self._end_current()
        if self.message is None:
            self.message = self._new_id()
        return self.message

    def add_item(self, kind: Kind, text: str) -> list[str]:
        """Send the missing part of a complete text or reasoning.

        Returns:
            The ids of messages that were sent with a different text.
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
        """End a response that broke off, and return the ids of its messages."""
        self.end()
        dropped = [piece.id for piece in self._waiting]
        self._waiting.clear()
        self._gap = False
        self.message = None
        return dropped

    def end(self) -> None:
        """End the open messages."""
        for piece in self._waiting:
            self._end(piece)

    def resume(self) -> None:
        """Send the open message again, for a late client."""
        piece = self._current
        if piece is not None and piece.open:
            self._send_start(piece)
            self._send_content(piece, self._writer.messages.text_of(piece.id))

    def begin_response(self) -> None:
        """Start a new response, because a tool result follows the previous one."""
        self.complete = True
        self.message = None

    def _start(self, kind: Kind) -> MessagePiece:
        self._end_current()
        piece = self._current = MessagePiece(kind, self._new_id())
        if kind == "text":
            self.message = piece.id
        if not self.complete:
            self._waiting.append(piece)
        self._send_start(piece)
        return piece

    def _send_start(self, piece: MessagePiece) -> None:
        put, owner = self._writer.put, self._owner
        if piece.kind == "text":
            put("TEXT_MESSAGE_START", owner, messageId=piece.id, role="assistant")
            return
        put("REASONING_START", owner, messageId=piece.id)
        put("REASONING_MESSAGE_START", owner, messageId=piece.id, role="reasoning")

    def _add(self, piece: MessagePiece, delta: str) -> None:
        piece.sent.append(delta)
        self._send_content(piece, piece.stream.push(delta))

    def _send_content(self, piece: MessagePiece, text: str) -> None:
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
        self._send_content(piece, piece.stream.finish())
        piece.open = False
        put, owner = self._writer.put, self._owner
        if piece.kind == "text":
            put("TEXT_MESSAGE_END", owner, messageId=piece.id)
            return
        put("REASONING_MESSAGE_END", owner, messageId=piece.id)
        put("REASONING_END", owner, messageId=piece.id)


def message_text(item: Mapping[str, Any]) -> str:
    """Return the text of a message item, or its refusal."""
    parts = cast("list[Mapping[str, Any]]", item.get("content") or [])
    return "".join(str(part.get("text") or part.get("refusal") or "") for part in parts)


def reasoning_text(item: Mapping[str, Any]) -> str:
    """Return the text of a reasoning item."""
    parts = cast("list[Mapping[str, Any]]", item.get("summary") or [])
    return "\n\n".join(str(part.get("text", "")) for part in parts)
