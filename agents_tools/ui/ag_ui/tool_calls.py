"""Report tool calls: their arguments, activity, artifacts and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.text.escape import safe_text
from agents_tools.ui.ag_ui.frames import result_content, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agents_tools.events.kinds import ToolArtifactEvent
    from agents_tools.ui.ag_ui.frames import FrameWriter, Path

__all__ = ["ARTIFACT", "TOOL", "AgUiCall", "AgUiCalls"]

TOOL: Final = "AGENTS_TOOL"
"""The `activityType` for the progress of a call."""

ARTIFACT: Final = "AGENTS_ARTIFACT"
"""The `activityType` for an artifact of a call."""

NAMED: Final = 50
"""The number of latest artifacts that the activity of a call lists."""

_NAMES = ("name", "mimeType", "uri")

INLINE: Final = 64 << 10
"""The largest size of an artifact that is sent inline, in characters."""


class AgUiCall:
    """A tool call, as the client knows it.

    Attributes:
        path: The path of the call.
        wire: The id for the client.
        owner: The id of the sub-agent that makes the call.
        tool: The name of the tool.
        sent: The deltas of the arguments sent so far.
        facts: The metadata of the start frame.
        began: Whether a start frame was sent. Other calls are reported as activity only.
        open: Whether more arguments can follow.
        status: The final status; `None` while the call is running.
        duration: The duration in milliseconds.
        activity: The content of the activity, such as progress.
        shown: The time of the last activity frame in milliseconds; `None` before the first.
        answered: Whether the result was sent.
    """

    __slots__ = (
        "activity",
        "answered",
        "began",
        "duration",
        "facts",
        "open",
        "owner",
        "path",
        "sent",
        "shown",
        "status",
        "tool",
        "wire",
    )

    def __init__(self, path: Path, tool: str | None, owner: str | None) -> None:
        self.path: Final = path
        self.wire: Final = wire_id(path)
        self.owner: Final = owner
        self.tool = tool or ""
        self.sent: list[str] = []
        self.facts: dict[str, Any] | None = None
        self.began = False
        self.open = False
        self.status: str | None = None
        self.duration: int | None = None
        self.activity: dict[str, Any] = {}
        self.shown: int | None = None
        self.answered = False


class AgUiCalls:
    """All calls of a run.

    Args:
        writer: Writes the frames.
        run_id: The id of the run, which makes the ids of result messages unique in a thread.
        interval: The shortest time between two activity frames of a call, in milliseconds.
    """

    def __init__(self, writer: FrameWriter, run_id: str, interval: int) -> None:
        self._writer = writer
        self.run_id = run_id
        self._interval = interval
        self._all: dict[Path, AgUiCall] = {}
        self._held: dict[Path, AgUiCall] = {}

    @property
    def held(self) -> bool:
        """Return whether an activity frame is held back."""
        return bool(self._held)

    def __iter__(self) -> Iterator[AgUiCall]:
        """Return the calls in the order of their first events."""
        return iter(self._all.values())

    def get(self, path: Path) -> AgUiCall | None:
        """Return a call, if it is known."""
        return self._all.get(path)

    def at(self, path: Path, tool: str | None, owner: str | None) -> AgUiCall:
        """Return a call, a new one if it is not known."""
        call = self._all.get(path)
        if call is None:
            call = self._all[path] = AgUiCall(path, tool, owner)
        call.tool = call.tool or tool or ""
        return call

    # --- the call itself

    def begin(self, call: AgUiCall, parent: str) -> None:
        """Send the start of a call."""
        call.began = call.open = True
        call.facts = self._writer.facts(call.path)
        self._start(call, parent)

    def arguments(self, call: AgUiCall, delta: str) -> None:
        """Send a delta of the arguments."""
        if call.open and delta:
            call.sent.append(delta)
            self._writer.put("TOOL_CALL_ARGS", call.owner, toolCallId=call.wire, delta=delta)

    def complete(self, call: AgUiCall, arguments: str) -> None:
        """Send the rest of the arguments and their end."""
        sent = "".join(call.sent)
        if arguments.startswith(sent):
            self.arguments(call, arguments[len(sent) :])
        self.end_arguments(call)

    def end_arguments(self, call: AgUiCall) -> None:
        """Send the end of the arguments."""
        if call.open:
            call.open = False
            self._writer.put("TOOL_CALL_END", call.owner, toolCallId=call.wire)

    def answer(self, call: AgUiCall, output: object, status: str) -> None:
        """Send the result of a call, once."""
        self.end_arguments(call)
        call.status = status
        if call.answered or not call.began:
            return
        call.answered = True
        self._writer.put(
            "TOOL_CALL_RESULT",
            call.owner,
            messageId=f"{self.run_id}-result-{call.wire}",
            toolCallId=call.wire,
            content=result_content(output, self._writer.version),
            role="tool",
            metadata=self._writer.facts(
                call.path, status=status, isError=status != "ok", duration=call.duration
            ),
        )

    def resume(self, call: AgUiCall, parent: str | None) -> None:
        """Send an open call again, for a late client."""
        self._start(call, parent)
        if call.sent:
            delta = "".join(call.sent)
            self._writer.put("TOOL_CALL_ARGS", call.owner, toolCallId=call.wire, delta=delta)

    def _start(self, call: AgUiCall, parent: str | None) -> None:
        self._writer.put(
            "TOOL_CALL_START",
            call.owner,
            toolCallId=call.wire,
            toolCallName=call.tool,
            parentMessageId=parent,
            metadata=call.facts,
        )

    # --- activity

    def update(self, call: AgUiCall, *, at_once: bool = False, **changes: Any) -> None:
        """Update the activity of a call, and send it unless the rate limit holds it back."""
        call.activity.update(changes)
        now, shown = self._writer.now, call.shown
        if at_once or now is None or shown is None or now - shown >= self._interval:
            self._show(call)
        else:
            self._held[call.path] = call

    def artifact(self, call: AgUiCall, event: ToolArtifactEvent) -> None:
        """Send an artifact in full, and list it in the activity of its call."""
        listed: list[dict[str, Any]] = call.activity.setdefault("artifacts", [])
        count = call.activity["artifactCount"] = call.activity.get("artifactCount", 0) + 1
        message_id = f"{self._activity_id(call)}-{count}"
        content = _artifact(event)
        brief: dict[str, Any] = {key: content[key] for key in _NAMES if key in content}
        listed.append({**brief, "messageId": message_id})
        del listed[:-NAMED]
        self._writer.put(
            "ACTIVITY_SNAPSHOT",
            call.owner,
            messageId=message_id,
            activityType=ARTIFACT,
            content={"call": call.wire, "tool": call.tool, **content},
        )
        self.update(call)

    def ended(self, call: AgUiCall, status: str, duration: float) -> None:
        """Record the end of a call, and send it if the call has an activity."""
        call.status = status
        call.duration = round(duration * 1000)
        if call.shown is not None:
            self._show(call)

    def flush(self) -> None:
        """Send the activities that are held back."""
        for call in list(self._held.values()):
            self._show(call)

    def show_open(self) -> None:
        """Send the activities of running calls again, for a late client."""
        for call in self:
            if call.shown is not None and call.status is None:
                self._show(call)

    def close(self, status: str) -> None:
        """End the arguments and activities of all calls."""
        for call in self:
            self.end_arguments(call)
            if call.status is None and call.shown is not None:
                call.status = status
                self._show(call)
        self.flush()

    def _activity_id(self, call: AgUiCall) -> str:
        return f"act-{call.wire}"

    def _show(self, call: AgUiCall) -> None:
        self._held.pop(call.path, None)
        call.shown = self._writer.now or 0
        parent = wire_id(call.path[:-1]) if len(call.path) > 1 else None
        facts: Mapping[str, Any] = {
            "call": call.wire,
            "parent": parent,
            "tool": call.tool,
            "status": call.status or "running",
            "duration": call.duration,
            **call.activity,
            "artifacts": list(call.activity["artifacts"]) if "artifacts" in call.activity else None,
        }
        self._writer.put(
            "ACTIVITY_SNAPSHOT",
            call.owner,
            messageId=self._activity_id(call),
            activityType=TOOL,
            content={name: value for name, value in facts.items() if value is not None},
        )


def _artifact(event: ToolArtifactEvent) -> dict[str, Any]:
    """Return an artifact as JSON; without its content if it is too large."""
    content: dict[str, Any] = {"name": safe_text(event.name)}
    if event.mime_type is not None:
        content["mimeType"] = event.mime_type
    if event.uri is not None:
        content["uri"] = safe_text(event.uri)
    if isinstance(event.data, bytes):
        from binascii import b2a_base64

        content["size"] = len(event.data)
        if len(event.data) <= INLINE * 3 // 4:
            content["base64"] = b2a_base64(event.data, newline=False).decode()
    elif event.data is not None:
        content["size"] = len(event.data)
        if len(event.data) <= INLINE:
            content["text"] = safe_text(event.data)
    return content
