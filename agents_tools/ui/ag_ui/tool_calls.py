"""Encode tool calls: their arguments, progress, artifacts and results."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from agents_tools.text.output import TextStream, release_text
from agents_tools.ui._format import byte_count
from agents_tools.ui.ag_ui.frames import result_content, wire_id

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agents_tools.events.kinds import ToolArtifactEvent
    from agents_tools.ui.ag_ui.frames import FrameWriter, Path

__all__ = ["ARTIFACT", "TOOL", "AgUiCall", "AgUiCalls"]

TOOL: Final = "AGENTS_TOOL"
"""The `activityType` of the state of a call."""

ARTIFACT: Final = "AGENTS_ARTIFACT"
"""The `activityType` of an artifact of a call."""

MAX_ARTIFACTS: Final = 50
"""The number of artifacts in the activity of a call: the newest ones."""

_ARTIFACT_FIELDS = ("name", "mimeType", "uri")

MAX_INLINE: Final = 64 << 10
"""The largest number of characters of an artifact that is sent with its content."""


class AgUiCall:
    """A tool call and the state of its frames.

    Attributes:
        path: The path of the call.
        wire: Its id on the wire.
        owner: The id of the sub-agent that makes the call.
        tool: The name of the tool.
        sent: The argument deltas that were received.
        shown: The argument deltas that were sent, cleaned and masked.
        arguments: Cleans and masks the argument deltas.
        lines: Cleans and masks the text that the tool emits in deltas.
        metadata: The metadata of its TOOL_CALL_START.
        has_start: Whether TOOL_CALL_START was sent. Otherwise, the client sees only an activity.
        open: Whether more arguments can follow.
        status: The final status; `None` while the call runs.
        duration: The duration in seconds.
        activity: The fields of its activity: progress, artifacts and similar.
        activity_at: The timestamp of the last activity frame in milliseconds; `None` before that.
        has_result: Whether TOOL_CALL_RESULT was sent.
    """

    __slots__ = (
        "activity",
        "activity_at",
        "arguments",
        "duration",
        "has_result",
        "has_start",
        "lines",
        "metadata",
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
        self.shown: list[str] = []
        self.arguments = TextStream()
        self.lines = TextStream()
        self.metadata: dict[str, Any] | None = None
        self.has_start = False
        self.open = False
        self.status: str | None = None
        self.duration: float | None = None
        self.activity: dict[str, Any] = {}
        self.activity_at: int | None = None
        self.has_result = False


class AgUiCalls:
    """The tool calls of a run.

    Args:
        writer: The writer of the frames.
        run_id: The id of the run. It is part of message ids, so that they are unique in a thread.
        interval: The shortest time between two activity frames of a call, in milliseconds.
    """

    def __init__(self, writer: FrameWriter, run_id: str, interval: int) -> None:
        self._writer = writer
        self.run_id = run_id
        self._interval = interval
        self._all: dict[Path, AgUiCall] = {}
        self._pending: dict[Path, AgUiCall] = {}

    @property
    def has_pending(self) -> bool:
        """Return whether activity frames are held back; see `flush`."""
        return bool(self._pending)

    def __iter__(self) -> Iterator[AgUiCall]:
        """Return the calls in the order of their first events."""
        return iter(self._all.values())

    def get(self, path: Path) -> AgUiCall | None:
        """Return the call with this path, if there is one."""
        return self._all.get(path)

    def at(self, path: Path, tool: str | None, owner: str | None) -> AgUiCall:
        """Return the call with this path; create it if it is missing."""
        call = self._all.get(path)
        if call is None:
            call = self._all[path] = AgUiCall(path, tool, owner)
        call.tool = call.tool or tool or ""
        return call

    # --- the call itself

    def begin(self, call: AgUiCall, parent: str) -> None:
        """Send the start of a call."""
        call.has_start = call.open = True
        call.metadata = self._writer.metadata(call.path)
        self._send_start(call, parent)

    def add_arguments(self, call: AgUiCall, delta: str) -> None:
        """Send the next delta of the arguments."""
        if call.open and delta:
            call.sent.append(delta)
            self._send_arguments(call, call.arguments.push(delta))

    def complete(self, call: AgUiCall, arguments: str) -> None:
        """Send the rest of the arguments and their end."""
        sent = "".join(call.sent)
        if arguments.startswith(sent):
            self.add_arguments(call, arguments[len(sent) :])
        self.end_arguments(call)

    def end_arguments(self, call: AgUiCall) -> None:
        """Send the end of the arguments, if they are open."""
        if call.open:
            self._send_arguments(call, call.arguments.finish())
            call.open = False
            self._writer.put("TOOL_CALL_END", call.owner, toolCallId=call.wire)

    def _send_arguments(self, call: AgUiCall, delta: str) -> None:
        if delta:
            call.shown.append(delta)
            self._writer.put("TOOL_CALL_ARGS", call.owner, toolCallId=call.wire, delta=delta)

    def send_result(self, call: AgUiCall, output: object, status: str) -> None:
        """Send the result of a call, once."""
        self.end_arguments(call)
        call.status = status
        if call.has_result or not call.has_start:
            return
        call.has_result = True
        self._writer.put(
            "TOOL_CALL_RESULT",
            call.owner,
            messageId=f"{self.run_id}-result-{call.wire}",
            toolCallId=call.wire,
            content=result_content(output, self._writer.version),
            role="tool",
            metadata=self._writer.metadata(
                call.path, status=status, isError=status != "ok", duration=call.duration
            ),
        )

    def resume(self, call: AgUiCall, parent: str | None) -> None:
        """Send the start and the arguments of an open call again, for a late client."""
        self._send_start(call, parent)
        if call.shown:
            delta = "".join(call.shown)
            self._writer.put("TOOL_CALL_ARGS", call.owner, toolCallId=call.wire, delta=delta)

    def _send_start(self, call: AgUiCall, parent: str | None) -> None:
        self._writer.put(
            "TOOL_CALL_START",
            call.owner,
            toolCallId=call.wire,
            toolCallName=call.tool,
            parentMessageId=parent,
            metadata=call.metadata,
        )

    # --- activity

    def update(self, call: AgUiCall, **fields: Any) -> None:
        """Update the activity of a call. Send it, or hold it back if the last one is too recent."""
        call.activity.update(fields)
        now, last = self._writer.now, call.activity_at
        if now is None or last is None or now - last >= self._interval:
            self._send_activity(call)
        else:
            self._pending[call.path] = call

    def add_artifact(self, call: AgUiCall, event: ToolArtifactEvent) -> None:
        """Send an artifact, and add its name to the activity of the call."""
        artifacts: list[dict[str, Any]] = call.activity.setdefault("artifacts", [])
        count = call.activity["artifactCount"] = call.activity.get("artifactCount", 0) + 1
        message_id = f"{self._activity_id(call)}-{count}"
        content = _artifact(event)
        brief = {key: content[key] for key in _ARTIFACT_FIELDS if key in content}
        artifacts.append({**brief, "messageId": message_id})
        del artifacts[:-MAX_ARTIFACTS]
        self._writer.put(
            "ACTIVITY_SNAPSHOT",
            call.owner,
            messageId=message_id,
            activityType=ARTIFACT,
            content={"call": call.wire, "tool": call.tool, **content},
        )
        self.update(call)

    def end(self, call: AgUiCall, status: str, duration: float) -> None:
        """Set the status of a call, and send its activity if the client has seen it."""
        call.status = status
        call.duration = round(duration, 6)
        if call.activity_at is not None:
            self._send_activity(call)

    def flush(self) -> None:
        """Send the activity frames that are held back."""
        for call in list(self._pending.values()):
            self._send_activity(call)

    def resend_activities(self) -> None:
        """Send the activities of the running calls again, for a late client."""
        for call in self:
            if call.activity_at is not None and call.status is None:
                self._send_activity(call)

    def close(self, status: str) -> None:
        """End the arguments and the activities of all open calls."""
        for call in self:
            self.end_arguments(call)
            if call.status is None and call.activity_at is not None:
                call.status = status
                self._send_activity(call)
        self.flush()

    def _activity_id(self, call: AgUiCall) -> str:
        return f"act-{call.wire}"

    def _send_activity(self, call: AgUiCall) -> None:
        self._pending.pop(call.path, None)
        call.activity_at = self._writer.now or 0
        parent = wire_id(call.path[:-1]) if len(call.path) > 1 else None
        content: Mapping[str, Any] = {
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
            content={name: value for name, value in content.items() if value is not None},
        )


def _artifact(event: ToolArtifactEvent) -> dict[str, Any]:
    """Return an artifact as JSON, without its content if that is too long."""
    content: dict[str, Any] = {"name": release_text(event.name)}
    if event.mime_type is not None:
        content["mimeType"] = event.mime_type
    if event.uri is not None:
        content["uri"] = release_text(event.uri)
    if event.data is not None:
        content["size"] = byte_count(event.data)
    if isinstance(event.data, bytes):
        from binascii import b2a_base64

        if len(event.data) <= MAX_INLINE * 3 // 4:
            content["base64"] = b2a_base64(event.data, newline=False).decode()
    elif event.data is not None and len(event.data) <= MAX_INLINE:
        content["text"] = release_text(event.data)
    return content
