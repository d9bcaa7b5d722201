"""Encode the calls of the agent itself, and their approvals, as tool parts of the message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, cast

from agents_tools.text.output import TextStream, release_json, release_text
from agents_tools.ui.vercel.text import (
    LATEST,
    SERVED,
    WITH_APPROVALS,
    drop_none,
    parse_arguments,
    wire_id,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from agents_tools.ui.vercel.text import Chunk

__all__ = ["ToolPart", "ToolParts", "approval_id", "text_of"]


class ToolPart:
    """A tool part of the message, as the client has it.

    Attributes:
        id: The id of the call on the wire.
        name: The name of the tool.
        state: `writing` while the model writes the input, `input` when it is complete, `approval`
            while the call waits for approval, `done` when it has its output.
        input: The arguments of the call.
        deltas: The deltas of the input so far.
        stream: Cleans and masks the deltas.
        unsent: The text of the deltas that was not sent.
        sent_at: The time of the last sent delta.
        approval: The id of the approval request, if there is one.
        is_decided: Whether the approval was decided.
        step: The number of its step in the message.
    """

    def __init__(self, path: tuple[str, ...], name: str, step: int) -> None:
        self.step: Final = step
        self.id: Final = wire_id(path)
        self.name = release_text(name)
        self.state: Literal["writing", "input", "approval", "done"] = "writing"
        self.input: Any = None
        self.deltas: list[str] = []
        self.stream = TextStream()
        self.unsent = ""
        self.sent_at = 0.0
        self.approval: str | None = None
        self.is_decided = False


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
        """Return the part of a call, if there is one."""
        return self._parts.get(path)

    def open(self) -> Iterator[ToolPart]:
        """Return the parts of calls without output."""
        return (part for part in self._parts.values() if part.state != "done")

    def begin(self, path: tuple[str, ...], name: str) -> list[Chunk]:
        """Start the part of a call that the model begins to write."""
        part = self._parts[path] = ToolPart(path, name, self.step)
        head = {"type": "tool-input-start", "toolCallId": part.id, "toolName": part.name}
        return [{**head, **SERVED}]

    def add_input(self, path: tuple[str, ...], delta: str, now: float) -> list[Chunk]:
        """Send a delta of the input, or hold it back if the last one is too recent."""
        part = self._parts.get(path)
        if part is None or part.state != "writing":
            return []
        part.deltas.append(delta)
        part.unsent += part.stream.push(delta)
        if not part.unsent or (part.sent_at and now - part.sent_at < self._interval):
            return []
        text, part.unsent, part.sent_at = part.unsent, "", now
        return [{"type": "tool-input-delta", "toolCallId": part.id, "inputTextDelta": text}]

    def set_input(self, path: tuple[str, ...], name: str, value: Any) -> list[Chunk]:
        """Send the complete input of a call, once."""
        part = self._parts.get(path)
        if part is None:
            part = self._parts[path] = ToolPart(path, name, self.step)
        if part.state != "writing":
            return []
        part.state, part.input = "input", value
        return [self._input(part)]

    def request_approval(
        self, path: tuple[str, ...], approval: str, details: Mapping[str, Any]
    ) -> list[Chunk]:
        """Request approval of a call.

        Args:
            path: The path of the call.
            approval: The id of the approval request.
            details: Further fields of the call for version 5. Later versions omit them, because the
                first releases of all versions refuse unknown fields in a request.
        """
        part = self._parts[path]
        part.state, part.approval, part.is_decided = "approval", approval, False
        if self._version < WITH_APPROVALS:
            return [self._data_approval(part, "requested", details)]
        head = {"type": "tool-approval-request", "approvalId": approval, "toolCallId": part.id}
        return [head]

    def set_decision(
        self, path: tuple[str, ...], *, approved: bool, reason: str = ""
    ) -> list[Chunk]:
        """Send the decision about an approval request, once."""
        part = self._parts.get(path)
        if part is None or part.approval is None or part.is_decided:
            return []
        part.is_decided = True
        if self._version < WITH_APPROVALS:
            return [self._data_approval(part, "approved" if approved else "denied", {})]
        if self._version < LATEST:  # there is no chunk for it; the output shows the decision
            return []
        detail = drop_none(reason=release_text(reason, patterns=True) or None)
        kind = "tool-approval-response"
        return [{"type": kind, "approvalId": part.approval, "approved": approved, **detail}]

    def set_output(self, path: tuple[str, ...], status: str, output: Any) -> list[Chunk]:
        """Send the output of a call, or its error, once."""
        part = self._parts[path]
        if part.state == "done":
            return []
        denied = status == "denied" and part.approval is not None
        reason = text_of(output) if denied else ""
        chunks = self.set_decision(path, approved=not denied, reason=reason)
        part.state = "done"
        if status == "ok":
            shape = {"type": "tool-output-available", "toolCallId": part.id}
            return [*chunks, {**shape, "output": release_json(output), **SERVED}]
        if denied and self._version >= WITH_APPROVALS:
            return [*chunks, {"type": "tool-output-denied", "toolCallId": part.id}]
        return [*chunks, self._error(part, status, text_of(output))]

    def acknowledge(self, path: tuple[str, ...], output: Any) -> list[Chunk]:
        """Send the acknowledgement of a call in the background, which its output replaces."""
        part = self._parts[path]
        chunks = self.set_decision(path, approved=True)
        part.state = "input"
        shape = {"type": "tool-output-available", "toolCallId": part.id}
        shown = {**shape, "output": release_json(output), **SERVED, "preliminary": True}
        return [*chunks, shown]

    def end(self, part: ToolPart, reason: str) -> list[Chunk]:
        """End a part whose call will have no output."""
        chunks: list[Chunk] = []
        status = "cancelled"
        if part.state == "writing":
            part.input, status = parse_arguments("".join(part.deltas)), "invalid_args"
            if self._version < WITH_APPROVALS:
                chunks = [self._input(part)]
        part.state = "done"
        return [*chunks, self._error(part, status, reason)]

    def remove_unfinished(self) -> list[ToolPart]:
        """Remove the parts of calls that the model was writing, and return them."""
        unfinished = {path: part for path, part in self._parts.items() if part.state == "writing"}
        for path in unfinished:
            del self._parts[path]
        return list(unfinished.values())

    def _input(self, part: ToolPart) -> Chunk:
        head = {"type": "tool-input-available", "toolCallId": part.id, "toolName": part.name}
        return {**head, "input": part.input, **SERVED}

    def _error(self, part: ToolPart, status: str, reason: str) -> Chunk:
        text = release_text(reason, patterns=True) or status
        # `tool-input-error` would create a second part if the part is in an earlier step, and the
        # first releases of version 5 refuse it.
        is_supported = self._version >= WITH_APPROVALS
        if status == "invalid_args" and is_supported and part.step == self.step:
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

    def _data_approval(self, part: ToolPart, state: str, details: Mapping[str, Any]) -> Chunk:
        data = {
            "approvalId": part.approval,
            "callId": part.id,
            "toolName": part.name,
            "input": part.input,
            "state": state,
            **details,
        }
        return {"type": "data-agents-tool-approval", "id": part.approval, "data": data}


def approval_id(run_id: str, path: Sequence[str]) -> str:
    """Return the id of the approval request of a call, unique among the runs of a chat."""
    return f"{run_id}/{wire_id(path)}"


def text_of(output: Any) -> str:
    """Return the text of an output, which can be content blocks."""
    if isinstance(output, str):
        return output
    blocks = cast("list[Any]", output) if isinstance(output, list) else []
    return "\n".join(block["text"] for block in blocks if block.get("type") == "text")
