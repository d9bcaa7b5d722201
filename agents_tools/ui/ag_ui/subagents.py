"""Encode the runs of sub-agents: agents that other agents call as tools."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents_tools.text.output import release_text
from agents_tools.ui.ag_ui.frames import error_of, wire_id

if TYPE_CHECKING:
    from agents_tools.ui.ag_ui.frames import FrameWriter, Path
    from agents_tools.ui.ag_ui.tool_calls import AgUiCalls

__all__ = ["SubAgent", "SubAgents"]


class SubAgent:
    """A run inside a call.

    Attributes:
        id: Its id on the wire.
        name: The name of the agent.
        runs: The number of active runs with the same path. The client sees them as one.
        interrupts: The ids of the interrupts that the run waits for.
    """

    __slots__ = ("id", "interrupts", "name", "runs")

    def __init__(self, wire: str, name: str) -> None:
        self.id: Final = wire
        self.name: Final = name
        self.runs = 1
        self.interrupts: list[str] = []

    @property
    def open(self) -> bool:
        """Return whether a run is active."""
        return self.runs > 0


class SubAgents:
    """The sub-agents of a run.

    Args:
        writer: The writer of the frames. A client before 1.0 gets no frames about sub-agents.
        calls: The calls of the run.
        show_errors: Whether the client gets the messages of exceptions.
    """

    def __init__(self, writer: FrameWriter, calls: AgUiCalls, *, show_errors: bool) -> None:
        self._writer = writer
        self._calls = calls
        self._show_errors = show_errors
        self._all: dict[Path, SubAgent] = {}
        self._counts: dict[Path, int] = {}

    def get(self, path: Path) -> SubAgent | None:
        """Return the sub-agent with this path."""
        return self._all.get(path)

    def clear(self) -> None:
        """Remove all sub-agents, because a new run starts on the wire."""
        self._all.clear()
        self._counts.clear()

    def owner(self, path: Path) -> str | None:
        """Return the id of the innermost sub-agent of a path; `None` for the run itself."""
        while path:
            sub = self._all.get(path)
            if sub is not None:
                return sub.id
            path = path[:-1]
        return None

    def begin(self, path: Path, name: str) -> None:
        """Send the start of a run. Each run gets its own id, also if a path is used again."""
        count = self._counts[path] = self._counts.get(path, 0) + 1
        wire = wire_id(path) if count == 1 else f"{wire_id(path)}#{count}"
        self._all.pop(path, None)  # the newest is last, so that it ends first
        sub = self._all[path] = SubAgent(wire, release_text(name))
        self._send_start(path, sub)

    def end(self, sub: SubAgent, status: str, error: str | None) -> None:
        """Send the end of a run."""
        if not sub.open:
            return
        sub.runs = 0
        if self._writer.version != "1.0":
            return
        if status == "ok":
            self._writer.put("SUBAGENT_FINISHED", sub.id, outcome={"type": "success"})
        elif status == "interrupted" or sub.interrupts:
            outcome = {"type": "suspended", "interruptIds": list(sub.interrupts)}
            self._writer.put("SUBAGENT_FINISHED", sub.id, outcome=outcome)
        elif status == "cancelled":
            self._writer.put("SUBAGENT_ERROR", sub.id, message="Cancelled.", code="cancelled")
        else:
            message, code = error_of(error, show=self._show_errors)
            self._writer.put("SUBAGENT_ERROR", sub.id, message=message, code=code)

    def close(self, status: str, error: str | None) -> None:
        """End all active sub-agents, the innermost first."""
        for sub in reversed(self._all.values()):
            self.end(sub, status, error)

    def add_interrupt(self, path: Path, wire: str) -> None:
        """Mark the sub-agents around a call as waiting for the interrupt of the call."""
        for depth in range(1, len(path)):
            sub = self._all.get(path[:depth])
            if sub is not None and wire not in sub.interrupts:
                sub.interrupts.append(wire)

    def resume(self) -> None:
        """Send the starts of the active sub-agents again, for a late client."""
        for path, sub in self._all.items():
            if sub.open:
                self._send_start(path, sub)

    def _send_start(self, path: Path, sub: SubAgent) -> None:
        if self._writer.version == "1.0":
            call = self._calls.get(path)
            self._writer.put(
                "SUBAGENT_STARTED",
                sub.id,
                name=sub.name,
                parentSubagentRunId=self.owner(path[:-1]),
                parentToolCallId=call.wire if call is not None and call.has_start else None,
            )
