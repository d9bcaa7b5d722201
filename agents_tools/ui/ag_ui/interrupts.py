"""Collect the approvals and client tool results that an interrupted run waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.text.output import release_text
from agents_tools.ui.ag_ui.frames import wire_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agents_tools.ui.ag_ui.frames import FrameWriter, Path
    from agents_tools.ui.ag_ui.messages import Frame

__all__ = ["RESPONSE_SCHEMA", "Interrupts"]

RESPONSE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the call can run."},
        "message": {
            "type": "string",
            "description": "The reason for a rejection. The model gets it.",
        },
        "arguments": {"type": "object", "description": "Arguments that replace those of the call."},
    },
    "required": ["approved"],
}
"""The JSON Schema of the answer to an approval interrupt."""


class Interrupts:
    """The interrupts and client tool calls of a run.

    Args:
        writer: The writer of the frames.
        client_tools: The names of tools that the client runs itself.
    """

    def __init__(self, writer: FrameWriter, client_tools: Collection[str]) -> None:
        self._writer = writer
        self._client_tools = frozenset(client_tools)
        self._interrupts: dict[Path, Frame] = {}
        self._pending: list[str] = []

    @property
    def open(self) -> bool:
        """Return whether a call waits for approval."""
        return bool(self._interrupts)

    def clear(self) -> None:
        """Remove all interrupts, because the run continues."""
        self._interrupts.clear()
        self._pending.clear()

    def add_call(self, path: Path, item: Mapping[str, Any], owner: str | None) -> str | None:
        """Add an interrupt for a call, or a pending call if the tool runs on the client.

        Args:
            path: The path of the call.
            item: The approval item of the call.
            owner: The id of the sub-agent that makes the call.

        Returns:
            The id of the interrupt; `None` if the tool runs on the client.
        """
        name, wire = str(item.get("name", "")), wire_id(path)
        if len(path) == 1 and name in self._client_tools:
            self._pending.append(wire)
            return None
        tool, error = release_text(name), item.get("error")
        interrupt: Frame = {
            "id": wire,
            "reason": "tool_call",
            "toolCallId": wire,
            "message": f"Approve this call of {tool}?",
            "responseSchema": dict(RESPONSE_SCHEMA),
            "metadata": self._writer.metadata(
                path,
                tool=tool,
                arguments=str(item.get("arguments", "")),
                approval=True,
                error=None if error is None else release_text(str(error)),
            ),
        }
        if owner is not None and self._writer.version == "1.0":
            interrupt["subagentRunId"] = owner
        self._interrupts[path] = interrupt
        return wire

    def outcome(self, status: str) -> Frame:
        """Return the outcome of a run with this status."""
        if status == "cancelled":
            return {"type": "cancelled"}
        if self._interrupts:
            return {"type": "interrupt", "interrupts": list(self._interrupts.values())}
        pending = {"pendingToolCallIds": list(self._pending)} if self._pending else {}
        return {"type": "success", **pending}
