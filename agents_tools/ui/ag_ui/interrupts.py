"""What a run asks for when it ends before its end: approvals, and results of the client's tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.text.escape import safe_text
from agents_tools.ui.ag_ui.frames import wire_id

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from agents_tools.ui.ag_ui.frames import FrameWriter, Path
    from agents_tools.ui.ag_ui.messages import Frame

__all__ = ["RESPONSE_SCHEMA", "Interrupts"]

RESPONSE_SCHEMA: Final[Mapping[str, Any]] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the call may run."},
        "message": {"type": "string", "description": "Why not; the model is told."},
        "arguments": {"type": "object", "description": "Other arguments to run it with."},
    },
    "required": ["approved"],
}
"""What answers an interrupt that asks for approval."""


class Interrupts:
    """What is asked of those who watch.

    Args:
        writer: Knows the version that the client understands.
        client_tools: The names of tools that the client runs itself.
    """

    def __init__(self, writer: FrameWriter, client_tools: Collection[str]) -> None:
        self._writer = writer
        self._client_tools = frozenset(client_tools)
        self._interrupts: dict[Path, Frame] = {}
        self._pending: list[str] = []

    @property
    def open(self) -> bool:
        """Return whether a person is asked."""
        return bool(self._interrupts)

    def clear(self) -> None:
        """Forget all, for a run that continues."""
        self._interrupts.clear()
        self._pending.clear()

    def ask(self, path: Path, item: Mapping[str, Any], owner: str | None) -> str | None:
        """Return whether a call may run, or leave it to the client whose tool it is.

        Args:
            path: Where the call is.
            item: The call, as it waits.
            owner: The sub-agent that makes it.

        Returns:
            The id of the question, where one is asked.
        """
        name, wire = str(item.get("name", "")), wire_id(path)
        if len(path) == 1 and name in self._client_tools:
            self._pending.append(wire)
            return None
        shown = safe_text(name)
        interrupt: Frame = {
            "id": wire,
            "reason": "tool_call",
            "toolCallId": wire,
            "message": f"May {shown} run?",
            "responseSchema": dict(RESPONSE_SCHEMA),
            "metadata": self._writer.facts(
                path, tool=shown, arguments=str(item.get("arguments", "")), approval=True
            ),
        }
        if owner is not None and self._writer.version == "1.0":
            interrupt["subagentRunId"] = owner
        self._interrupts[path] = interrupt
        return wire

    def outcome(self, status: str) -> Frame:
        """Return how a run of a status ended."""
        if status == "cancelled":
            return {"type": "cancelled"}
        if self._interrupts:
            return {"type": "interrupt", "interrupts": list(self._interrupts.values())}
        pending = {"pendingToolCallIds": list(self._pending)} if self._pending else {}
        return {"type": "success", **pending}
