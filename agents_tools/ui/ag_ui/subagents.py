"""Report the runs inside of calls: agents that are tools of other agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from agents_tools.text.escape import safe_text
from agents_tools.ui.ag_ui.frames import error_of, wire_id

if TYPE_CHECKING:
    from agents_tools.ui.ag_ui.frames import FrameWriter, Path
    from agents_tools.ui.ag_ui.tool_calls import AgUiCalls

__all__ = ["SubAgent", "SubAgents"]


class SubAgent:
    """A run inside of a call.

    Attributes:
        id: The id for the client.
        name: The name of the agent.
        runs: The number of current runs at the same path. The client sees them as one.
        interrupts: The ids of the interrupts it waits for.
    """

    __slots__ = ("id", "interrupts", "name", "runs")

    def __init__(self, wire: str, name: str) -> None:
        self.id: Final = wire
        self.name: Final = name
        self.runs = 1
        self.interrupts: list[str] = []

    @property
    def open(self) -> bool:
        """Return whether the sub-agent is running."""
        return self.runs > 0


class SubAgents:
    """All runs inside of the calls of a run.

    Args:
        writer: Writes the frames. Clients before 1.0 get none.
        calls: The calls of the run.
        shown: Whether the client gets error messages.
    """

    def __init__(self, writer: FrameWriter, calls: AgUiCalls, *, shown: bool) -> None:
        self._writer = writer
        self._calls = calls
        self._shown = shown
        self._all: dict[Path, SubAgent] = {}
        self._counts: dict[Path, int] = {}

    def get(self, path: Path) -> SubAgent | None:
        """Return the sub-agent at a path."""
        return self._all.get(path)

    def clear(self) -> None:
        """Remove all sub-agents, because a new run begins for the client."""
        self._all.clear()
        self._counts.clear()

    def owner(self, path: Path) -> str | None:
        """Return the id of the sub-agent that a path belongs to; `None` for the run itself."""
        while path:
            sub = self._all.get(path)
            if sub is not None:
                return sub.id
            path = path[:-1]
        return None

    def begin(self, path: Path, name: str) -> None:
        """Report the start of a run at a path. Every run gets a new id."""
        count = self._counts[path] = self._counts.get(path, 0) + 1
        wire = wire_id(path) if count == 1 else f"{wire_id(path)}#{count}"
        self._all.pop(path, None)  # move it to the end, because the newest are closed first
        sub = self._all[path] = SubAgent(wire, safe_text(name))
        self._started(path, sub)

    def end(self, sub: SubAgent, status: str, error: str | None) -> None:
        """Report the end of a run."""
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
            message, code = error_of(error, shown=self._shown)
            self._writer.put("SUBAGENT_ERROR", sub.id, message=message, code=code)

    def close(self, status: str, error: str | None) -> None:
        """End all running sub-agents, the innermost first."""
        for sub in reversed(self._all.values()):
            self.end(sub, status, error)

    def wait(self, path: Path, wire: str) -> None:
        """Record that a call waits for approval in all the runs around it."""
        for depth in range(1, len(path)):
            sub = self._all.get(path[:depth])
            if sub is not None and wire not in sub.interrupts:
                sub.interrupts.append(wire)

    def resume(self) -> None:
        """Report the running sub-agents again, for a late client."""
        for path, sub in self._all.items():
            if sub.open:
                self._started(path, sub)

    def _started(self, path: Path, sub: SubAgent) -> None:
        if self._writer.version == "1.0":
            call = self._calls.get(path)
            self._writer.put(
                "SUBAGENT_STARTED",
                sub.id,
                name=sub.name,
                parentSubagentRunId=self.owner(path[:-1]),
                parentToolCallId=call.wire if call is not None and call.began else None,
            )
