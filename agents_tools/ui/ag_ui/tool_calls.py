"""Tells what calls of tools do: their arguments, how far they are, what they give."""

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
"""The `activityType` of what a call does."""

ARTIFACT: Final = "AGENTS_ARTIFACT"
"""The `activityType` of what a call hands over."""

NAMED: Final = 50
"""How many artifacts the activity of a call names: the last ones."""

_NAMES = ("name", "mimeType", "uri")

INLINE: Final = 64 << 10
"""The most characters of an artifact that are sent along."""


class AgUiCall:
    """A call of a tool, as far as it was told.

    Attributes:
        path: Where it is.
        wire: Its id on the wire.
        owner: The sub-agent that makes it.
        tool: The tool.
        sent: What was told of its arguments.
        facts: The metadata that it was told with.
        began: Whether it was told as a call, and not as an activity alone.
        open: Whether its arguments still come.
        status: How it ended.
        duration: How long it took, in milliseconds.
        activity: What is told of it beside its arguments and its answer.
        shown: When that was last told, in milliseconds; `None` for never.
        answered: Whether its answer was told.
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
        writer: Takes the frames.
        run_id: The id of the run, which makes ids of messages unique in a thread.
        interval: The least milliseconds between two snapshots of one call's activity.
    """

    def __init__(self, writer: FrameWriter, run_id: str, interval: int) -> None:
        self._writer = writer
        self.run_id = run_id
        self._interval = interval
        self._all: dict[Path, AgUiCall] = {}
        self._held: dict[Path, AgUiCall] = {}

    @property
    def held(self) -> bool:
        """Return whether a snapshot waits for its time."""
        return bool(self._held)

    def __iter__(self) -> Iterator[AgUiCall]:
        """Return the calls, in the order in which they were first heard of."""
        return iter(self._all.values())

    def get(self, path: Path) -> AgUiCall | None:
        """Return a call, if it is known."""
        return self._all.get(path)

    def at(self, path: Path, tool: str | None, owner: str | None) -> AgUiCall:
        """Return a call; a new one where it is not known yet."""
        call = self._all.get(path)
        if call is None:
            call = self._all[path] = AgUiCall(path, tool, owner)
        call.tool = call.tool or tool or ""
        return call

    # --- the call itself

    def begin(self, call: AgUiCall, parent: str) -> None:
        """Tell that a model calls a tool."""
        call.began = call.open = True
        call.facts = self._writer.facts(call.path)
        self._start(call, parent)

    def arguments(self, call: AgUiCall, delta: str) -> None:
        """Tell the next piece of the arguments."""
        if call.open and delta:
            call.sent.append(delta)
            self._writer.put("TOOL_CALL_ARGS", call.owner, toolCallId=call.wire, delta=delta)

    def complete(self, call: AgUiCall, arguments: str) -> None:
        """Tell the rest of the arguments, and that they are complete."""
        sent = "".join(call.sent)
        if arguments.startswith(sent):
            self.arguments(call, arguments[len(sent) :])
        self.end_arguments(call)

    def end_arguments(self, call: AgUiCall) -> None:
        """Tell that the arguments are complete."""
        if call.open:
            call.open = False
            self._writer.put("TOOL_CALL_END", call.owner, toolCallId=call.wire)

    def answer(self, call: AgUiCall, output: object, status: str) -> None:
        """Return what a call answered."""
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
        """Tell again of a call that is open, to somebody who comes late."""
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

    # --- what it does

    def tell(self, call: AgUiCall, *, at_once: bool = False, **news: Any) -> None:
        """Return what is new of a call: at once, or together with what follows soon."""
        call.activity.update(news)
        now, shown = self._writer.now, call.shown
        if at_once or now is None or shown is None or now - shown >= self._interval:
            self._show(call)
        else:
            self._held[call.path] = call

    def artifact(self, call: AgUiCall, event: ToolArtifactEvent) -> None:
        """Return what a call hands over: once in full, and by its name in the call's activity."""
        told: list[dict[str, Any]] = call.activity.setdefault("artifacts", [])
        count = call.activity["artifactCount"] = call.activity.get("artifactCount", 0) + 1
        message_id = f"{self._activity_id(call)}-{count}"
        content = _artifact(event)
        brief: dict[str, Any] = {key: content[key] for key in _NAMES if key in content}
        told.append({**brief, "messageId": message_id})
        del told[:-NAMED]
        self._writer.put(
            "ACTIVITY_SNAPSHOT",
            call.owner,
            messageId=message_id,
            activityType=ARTIFACT,
            content={"call": call.wire, "tool": call.tool, **content},
        )
        self.tell(call)

    def ended(self, call: AgUiCall, status: str, duration: float) -> None:
        """Know how a call ended; say so where it has been followed."""
        call.status = status
        call.duration = round(duration * 1000)
        if call.shown is not None:
            self._show(call)

    def flush(self) -> None:
        """Return what was held back."""
        for call in list(self._held.values()):
            self._show(call)

    def show_open(self) -> None:
        """Tell again what the calls that still run do, to somebody who comes late."""
        for call in self:
            if call.shown is not None and call.status is None:
                self._show(call)

    def close(self, status: str) -> None:
        """End what is told of every call that is still told of."""
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
    """Return an artifact as JSON; one that is too long only by its name and its size."""
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
