"""Report the agent's own calls as tool parts of the message, with their approvals."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agents_tools.text.escape import safe_text
from agents_tools.text.secrets import mask
from agents_tools.ui.vercel.text import (
    LATEST,
    SERVED,
    WITH_APPROVALS,
    given,
    parsed,
    shown,
    wire_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agents_tools.ui.vercel.text import Chunk

__all__ = ["ToolPart", "ToolParts", "approval_id", "text_of"]


class ToolPart:
    """A tool part of the message, as the client knows it.

    Attributes:
        id: The id of the call for the client.
        name: The name of the tool.
        state: `writing` while the model writes the input, `input` when it is complete, `approval`
            while the call waits for approval, `done` with an output.
        input: The arguments of the call.
        written: The deltas of the input so far.
        unsent: The text of deltas that were not sent yet.
        sent: The time of the last sent delta.
        approval: The id of the approval request, if there is one.
        answered: Whether the approval request was answered.
        step: The step of the message that the part belongs to.
    """

    def __init__(self, path: tuple[str, ...], name: str, step: int) -> None:
        self.step: Final = step
        self.id: Final = wire_id(path)
        self.name = safe_text(name)
        self.state: Literal["writing", "input", "approval", "done"] = "writing"
        self.input: Any = None
        self.written: list[str] = []
        self.unsent = ""
        self.sent = 0.0
        self.approval: str | None = None
        self.answered = False


class ToolParts:
    """The tool parts of one message.

    Args:
        version: The major version of the SDK in the page.
        interval: The shortest time between two deltas of one input, in seconds. The client parses
            the whole input again with each delta.

    Attributes:
        step: The number of the current step.
    """

    def __init__(self, version: int, interval: float) -> None:
        self._version = version
        self._interval = interval
        self._parts: dict[tuple[str, ...], ToolPart] = {}
        self.step = 0

    def get(self, path: tuple[str, ...]) -> ToolPart | None:
        """Return the part of a call."""
        return self._parts.get(path)

    def open(self) -> Iterator[ToolPart]:
        """Return the parts of calls that have no output."""
        return (part for part in self._parts.values() if part.state != "done")

    @property
    def waits(self) -> bool:
        """Return whether an approval request is open."""
        return any(part.state == "approval" and not part.answered for part in self._parts.values())

    def begin(self, path: tuple[str, ...], name: str) -> list[Chunk]:
        """Return the chunks for the start of a call."""
        part = self._parts[path] = ToolPart(path, name, self.step)
        head = {"type": "tool-input-start", "toolCallId": part.id, "toolName": part.name}
        return [{**head, **SERVED}]

    def write(self, path: tuple[str, ...], delta: str, now: float) -> list[Chunk]:
        """Return the chunks for a delta of the input, or hold it back."""
        part = self._parts.get(path)
        if part is None or part.state != "writing":
            return []
        part.written.append(delta)
        part.unsent += delta
        if part.sent and now - part.sent < self._interval:
            return []
        text, part.unsent, part.sent = safe_text(part.unsent), "", now
        return [{"type": "tool-input-delta", "toolCallId": part.id, "inputTextDelta": text}]

    def called(self, path: tuple[str, ...], name: str, value: Any) -> list[Chunk]:
        """Return the chunks for the complete input of a call, once."""
        part = self._parts.get(path)
        if part is None:
            part = self._parts[path] = ToolPart(path, name, self.step)
        if part.state != "writing":
            return []
        part.state, part.input = "input", value
        return [self._input(part)]

    def ask(self, path: tuple[str, ...], question: str, about: Mapping[str, Any]) -> list[Chunk]:
        """Return the chunks of an approval request.

        Args:
            path: The path of the call.
            question: The id of the approval request.
            about: Other facts about the call. Only version 5 gets them, in its data part: the first
                releases of later versions refuse unknown fields.
        """
        part = self._parts[path]
        part.state, part.approval, part.answered = "approval", question, False
        if self._version < WITH_APPROVALS:
            return [self._data_approval(part, "requested", about)]
        head = {"type": "tool-approval-request", "approvalId": question, "toolCallId": part.id}
        return [head]

    def answer(self, path: tuple[str, ...], *, approved: bool, reason: str = "") -> list[Chunk]:
        """Return the chunks for the answer to an approval request."""
        part = self._parts.get(path)
        if part is None or part.approval is None or part.answered:
            return []
        part.answered = True
        if self._version < WITH_APPROVALS:
            return [self._data_approval(part, "approved" if approved else "denied", {})]
        if self._version < LATEST:  # it has no chunk for answers; the output shows it
            return []
        extra = given(reason=mask(safe_text(reason)) or None)
        kind = "tool-approval-response"
        return [{"type": kind, "approvalId": part.approval, "approved": approved, **extra}]

    def done(self, path: tuple[str, ...], status: str, output: Any) -> list[Chunk]:
        """Return the chunks for the output of a call, or for the error instead."""
        part = self._parts[path]
        if part.state == "done":
            return []
        denied = status == "denied" and part.approval is not None
        reason = text_of(output) if denied else ""
        chunks = self.answer(path, approved=not denied, reason=reason)
        part.state = "done"
        if status == "ok":
            shape = {"type": "tool-output-available", "toolCallId": part.id}
            return [*chunks, {**shape, "output": shown(output), **SERVED}]
        if denied and self._version >= WITH_APPROVALS:
            return [*chunks, {"type": "tool-output-denied", "toolCallId": part.id}]
        return [*chunks, self._failed(part, status, text_of(output))]

    def end(self, part: ToolPart, why: str) -> list[Chunk]:
        """Return the chunks that end a part without an output."""
        chunks: list[Chunk] = []
        status = "cancelled"
        if part.state == "writing":
            part.input, status = parsed("".join(part.written)), "invalid_args"
            if self._version < WITH_APPROVALS:
                chunks = [self._input(part)]
        part.state = "done"
        return [*chunks, self._failed(part, status, why)]

    def discard_unfinished(self) -> list[ToolPart]:
        """Remove and return the parts of calls that the model has not finished writing."""
        written = {path: part for path, part in self._parts.items() if part.state == "writing"}
        for path in written:
            del self._parts[path]
        return list(written.values())

    def _input(self, part: ToolPart) -> Chunk:
        head = {"type": "tool-input-available", "toolCallId": part.id, "toolName": part.name}
        return {**head, "input": part.input, **SERVED}

    def _failed(self, part: ToolPart, status: str, why: str) -> Chunk:
        text = mask(safe_text(why)) or status
        # For a part in an earlier step, this chunk would create a second part. The first releases
        # of version 5 refuse the chunk.
        known = self._version >= WITH_APPROVALS
        if status == "invalid_args" and known and part.step == self.step:
            return {
                "type": "tool-input-error",
                "toolCallId": part.id,
                "toolName": part.name,
                "input": part.input if part.input is not None else {},
                "errorText": text,
                **SERVED,
            }
        head = {"type": "tool-output-error", "toolCallId": part.id}
        return {**head, "errorText": text, **SERVED}

    def _data_approval(self, part: ToolPart, state: str, about: Mapping[str, Any]) -> Chunk:
        data = {
            "approvalId": part.approval,
            "callId": part.id,
            "toolName": part.name,
            "input": part.input,
            "state": state,
            **about,
        }
        return {"type": "data-agents-tool-approval", "id": part.approval, "data": data}


def approval_id(run_id: str, path: Sequence[str]) -> str:
    """Return the id of the approval request of a call, unique in the chat."""
    return f"{run_id}/{wire_id(path)}"


def text_of(output: Any) -> str:
    """Return the text of an output, which can be content blocks."""
    if isinstance(output, str):
        return output
    blocks = cast("list[Any]", output) if isinstance(output, list) else []
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")
