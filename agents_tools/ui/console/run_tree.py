"""The tree of the agents and calls of a run, built from its events."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import (
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    item_from_dict,
)
from agents_tools.content.outputs import output_text
from agents_tools.content.usage import Usage
from agents_tools.events.kinds import (
    ActionEvent,
    AgentStateChangedEvent,
    AgentUpdatedStreamEvent,
    ErrorEvent,
    GapEvent,
    MessageEvent,
    NotifyStreamEvent,
    NullEvent,
    ObservationEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunRecordEvent,
    RunStartedEvent,
    SummaryEvent,
    ToolArtifactEvent,
    ToolAttemptEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.escape import describe_value, shorten
from agents_tools.text.output import release_text
from agents_tools.ui._format import seconds

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.content.items import RunItem
    from agents_tools.events.base import Event
    from agents_tools.events.kinds import AnyEvent

__all__ = [
    "Node",
    "RunTree",
    "arguments_shown",
    "costs",
    "ended_in_words",
    "indented_json",
    "is_retry",
    "retried",
]


_MAX_PARTS = 100
"""The number of parts of a node after trimming, which starts at twice this number."""
_MAX_PARTS_ENDED = 20
"""The largest number of parts of a call after its end."""
_MAX_RESULT = 1_000
"""The largest number of characters of a result."""


class Node:
    """One agent or call of a run.

    Attributes:
        path: The ids of the enclosing calls and its own; empty for the run itself.
        name: The name of the tool; for the run itself the name of the agent.
        agent: The name of the agent that runs in the call, if there is one.
        status: `written` while the model writes the call, `running`, `waiting` for approval, or
            the final status.
        arguments: The arguments as JSON text.
        progress: The latest progress event.
        tail: The text of deltas whose line has not ended.
        output_lines: The last output lines.
        notices: The last artifacts, retries, warnings and errors.
        text: The text of the message that the model is writing.
        reasoning: The reasoning that the model is writing.
        held: The last message of the model, which can be its final answer.
        held_in_parts: Whether `held` is already in `parts`, because calls follow it.
        result: The beginning of the result.
        parts: The last calls, and the messages between them, in order.
        left_out: The number of earlier calls.
        is_answered: Whether the caller has the result.
        is_reported: Whether a line about the end was written.
        duration: The duration in seconds; `None` until the call has ended.
        by_model: Whether a model made the call, not a tool, and its arguments are complete.
        run_usage: The total usage of its run; `None` before the end.
    """

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path = path
        self.name = release_text(name)
        self.agent: str | None = None
        self.status = "running"
        self.arguments = ""
        self.progress: ToolProgressEvent | None = None
        self.tail = ""
        self.output_lines: deque[tuple[str, str]] = deque(maxlen=3)
        self.notices: deque[tuple[str, str]] = deque(maxlen=3)
        self.text = ""
        self.reasoning = ""
        self.held = ""
        self.held_in_parts = False
        self.result = ""
        self.parts: list[Node | str] = []
        self.left_out = 0
        self.is_answered = False
        self.is_reported = False
        self.started = time.monotonic()
        self.duration: float | None = None
        self.by_model = False
        self.run_usage: Usage | None = None

    @property
    def is_open(self) -> bool:
        """Return whether the call has not ended."""
        return self.status in {"written", "running", "waiting"}

    @property
    def is_over(self) -> bool:
        """Return whether no more events are expected."""
        return not self.is_open and (self.is_answered or not self.by_model)

    @property
    def took(self) -> float:
        """The duration so far, in seconds."""
        return time.monotonic() - self.started if self.duration is None else self.duration

    def lines_of(self, event: NotifyStreamEvent) -> list[str]:
        """Return the lines that an event completes."""
        if not event.is_delta:
            return [*self.rest(), *release_text(event.data).rstrip("\n").split("\n")]
        # An escape sequence can be split between two deltas, so only whole lines are cleaned.
        *lines, self.tail = (self.tail + event.data).split("\n")
        return [release_text(line) for line in lines]

    def rest(self) -> list[str]:
        """Return the unfinished line, if there is one."""
        tail, self.tail = release_text(self.tail), ""
        return [tail] if tail else []

    def take_held(self) -> str:
        """Return the held message and move it to `parts`: the model continues after it."""
        held, self.held = self.held, ""
        if held and not self.held_in_parts:
            self.parts.append(held)
        self.held_in_parts = False
        return held


class RunTree:
    """The agents and calls of a run, built from its events.

    Args:
        agent: The name of the agent; empty if it is not known, or if the run is a tool call.
    """

    def __init__(self, agent: str = "") -> None:
        self.root = Node((), agent)
        self.root.agent = self.root.name
        self.by_path: dict[tuple[str, ...], Node] = {(): self.root}
        self._usage: dict[tuple[str, ...], Usage] = {}

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage of one model response."""
        self._usage.setdefault(path, Usage()).add(usage)

    def usage(self, node: Node) -> Usage:
        """Return the usage of a node and of the nodes below it."""
        if node.run_usage is not None:
            return node.run_usage
        total, depth = Usage(), len(node.path)
        for path, usage in list(self._usage.items()):
            if path[:depth] == node.path:
                total.add(usage)
        return total

    def names(self, node: Node) -> list[str]:
        """Return the names down to a node."""
        above = [self.by_path.get(node.path[:depth]) for depth in range(len(node.path))]
        return [one.name for one in above if one is not None and one.name] + [node.name]

    def at(self, path: tuple[str, ...], name: str | None = None) -> Node:
        """Return the node with this path; create it if it is missing."""
        node = self.by_path.get(path)
        if node is None:
            node = self.by_path[path] = Node(path, name or "?")
            above = path[:-1]
            while above not in self.by_path:
                above = above[:-1]
            self.by_path[above].parts.append(node)
            if len(self.by_path[above].parts) > 2 * _MAX_PARTS:
                self._drop_parts(self.by_path[above], _MAX_PARTS)
        return node

    def _drop_parts(self, node: Node, limit: int) -> None:
        """Drop the oldest parts of a node, so that the tree of a long run stays small."""
        excess = len(node.parts) - limit
        remaining: list[Node | str] = []
        for part in node.parts:
            if excess > 0 and (isinstance(part, str) or part.is_over):
                excess -= 1
                if isinstance(part, Node):
                    node.left_out += 1
                    self._drop_call(node, part)
            else:
                remaining.append(part)
        node.parts = remaining

    def _drop_call(self, above: Node, node: Node) -> None:
        """Drop a call and add its usage to its parent."""
        depth, used = len(node.path), self.usage(node)
        for path in [path for path in self._usage if path[:depth] == node.path]:
            del self._usage[path]
        if used != Usage():
            self.count(above.path, used)
        below = [node]
        while below:
            one = below.pop()
            below += [part for part in one.parts if isinstance(part, Node)]
            self.by_path.pop(one.path, None)

    def update(self, event: Event) -> Node:
        """Apply an event and return the node that it changes."""
        node = self.at(event.path, event.tool_name)
        match known := cast("AnyEvent", event):
            case RunStartedEvent():
                node.agent = release_text(known.agent or "")
                node.name = node.name or node.agent
                node.status = "running"
            case RunFinishedEvent():
                self._finish_run(node, known)
            case ToolStreamStartEvent():
                node.status = "running"
                node.started = time.monotonic()
                node.arguments = node.arguments or json.dumps(dict(known.input_args))
            case ToolStreamEndEvent():
                self._end(node, known.status, known.duration)
            case ToolProgressEvent():
                node.progress = known
            case RawResponseStreamEvent():
                return self._apply_raw(node, known.data)
            case RunItemStreamEvent():
                return self._apply_item(node, known.name, item_of(event))
            case NotifyStreamEvent() | ToolArtifactEvent() | ToolAttemptEvent() | GapEvent():
                pass
            case MessageEvent() | ActionEvent() | ObservationEvent() | ErrorEvent():
                pass
            case AgentUpdatedStreamEvent():
                previous, node.agent = node.agent, release_text(known.agent)
                node.name = node.agent if node.name == previous else node.name
            case AgentStateChangedEvent() | NullEvent() | RunRecordEvent() | SummaryEvent():
                pass
        return node

    def add_lines(self, node: Node, event: NotifyStreamEvent, lines: Sequence[str]) -> None:
        """Add output lines of a tool to a node."""
        level = event.level if event.level != "info" else event.tag or "info"
        for line in lines:
            node.output_lines.append((level, line))
            if event.level in {"warning", "error"}:
                node.notices.append((level, line))

    def close(self, status: str, duration: float) -> None:
        """End all open nodes, because no more events come.

        Calls that wait for approval stay so if the run was interrupted for them: it can continue.
        """
        self._drop_written(self.root)
        ended = {"running"} if status == "interrupted" else {"running", "waiting"}
        for node in list(self.by_path.values()):
            if node.status in ended and node is not self.root:
                self._end(node, "cancelled" if status == "cancelled" else "lost", node.took)
        self.root.status = status
        self.root.duration = duration

    def _apply_raw(self, node: Node, data: Any) -> Node:
        """Apply a raw response event of a model."""
        piece = _object(data)
        match piece.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                node.reasoning = ""
                node.text += str(piece.get("delta", ""))
            case "response.reasoning_summary_text.delta":
                node.reasoning += str(piece.get("delta", ""))
            case "response.output_item.added":
                self._add_written_call(node, piece.get("item"))
            case "response.function_call_arguments.delta":
                call = self.by_path.get((*node.path, str(piece.get("call_id"))))
                if call is not None and call.is_open and not call.by_model:
                    call.arguments += str(piece.get("delta", ""))
            case "agents_tools.retry":
                node.text = node.reasoning = ""
                self._drop_written(node)
                if node.held_in_parts:
                    node.parts.pop()
                    node.held_in_parts = False
            case _:
                pass
        return node

    def _add_written_call(self, node: Node, item: Any) -> None:
        """Add a call that the model begins to write."""
        call = _object(item)
        path = (*node.path, str(call.get("call_id")))
        if not call.get("call_id") or path in self.by_path:
            return
        if node.text:  # the text of the model comes before its calls
            node.parts.append(release_text(node.text))
            node.text, node.held_in_parts = "", True
        self.at(path, str(call.get("name") or "?")).status = "written"

    def _apply_item(self, node: Node, name: str, item: RunItem) -> Node:
        """Apply an item of the conversation."""
        if name == "message_output_created":
            if not node.held_in_parts:
                node.take_held()
            text = getattr(item, "text", "") or getattr(item, "refusal", None) or ""
            node.held, node.text = release_text(text), ""
        elif name == "reasoning_item_created":
            node.reasoning = ""
        elif name == "output_refused":
            node.held = ""
        elif isinstance(item, ToolCallItem):
            node.take_held()
            return self._called(node, item)
        elif isinstance(item, ToolApprovalItem):
            call = self.at((*node.path, item.call_id), item.name)
            call.status, call.arguments = "waiting", item.arguments
            return call
        elif isinstance(item, ToolCallOutputItem):
            call = self.at((*node.path, item.call_id), item.name)
            if item.in_background:
                return call
            call.result, call.is_answered = (
                release_text(output_text(item.output))[:_MAX_RESULT],
                True,
            )
            if call.is_open:
                self._end(call, item.status, call.took)
            return call
        return node

    def _called(self, node: Node, item: ToolCallItem) -> Node:
        call = self.at((*node.path, item.call_id), item.name)
        call.name, call.arguments = release_text(item.name), item.arguments
        call.status = "running"
        call.by_model = True
        if not item.needs_answer:  # its provider has run it
            call.is_answered = True
            self._end(call, "ok", 0.0)
        return call

    def _end(self, node: Node, status: str, duration: float) -> None:
        node.status = status
        node.duration = duration
        node.text = node.reasoning = ""
        if len(node.parts) > _MAX_PARTS_ENDED:
            self._drop_parts(node, _MAX_PARTS_ENDED)

    def _finish_run(self, node: Node, event: RunFinishedEvent) -> None:
        node.text = node.reasoning = ""
        node.run_usage = Usage.from_dict(event.usage) if event.usage else None
        self._drop_written(node)
        if node.path and event.status == "error" and event.error:
            node.notices.append(("error", release_text(event.error)))
        if node.path and event.status == "interrupted":
            node.status = "waiting"

    def _drop_written(self, node: Node) -> None:
        """Remove calls that the model began to write but did not make."""
        for part in list(node.parts):
            if isinstance(part, Node) and part.status == "written":
                node.parts.remove(part)
                del self.by_path[part.path]


_ENDED = {
    "ok": "done in",
    "error": "failed after",
    "tool_error": "failed after",
    "invalid_args": "invalid arguments after",
    "interrupted": "waits for approval after",
    "cancelled": "cancelled after",
    "timeout": "timed out after",
}


def item_of(event: Any) -> RunItem:
    """Return the attached item of an event, or the item parsed from its JSON."""
    return item_from_dict(event.item) if event.attached is None else event.attached


# --- words


def ended_in_words(status: str) -> str:
    """Return the status of a call or run as text that precedes its duration."""
    return _ENDED.get(status, f"{status.replace('_', ' ')} after")


def arguments_shown(text: str, limit: int = 120) -> str:
    """Return the arguments of a call in short form."""
    try:
        values: object = json.loads(text or "{}")
    except (ValueError, RecursionError):  # incomplete JSON, or nested too deep
        return release_text(" ".join(text.split()), limit=limit)
    if not isinstance(values, dict):
        return describe_value(values)
    named = cast("dict[str, Any]", values)
    shown = " ".join(f"{release_text(key)}={describe_value(value)}" for key, value in named.items())
    return shorten(shown, limit) if shown else "no arguments"


def indented_json(text: str) -> str:
    """Return JSON text with indentation, and other text as it is. It still has to be released."""
    try:
        return json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    except (ValueError, RecursionError):
        return text


def costs(usage: Usage, *, requests: bool) -> list[str]:
    """Return the known usage as short texts."""
    parts: list[str] = []
    if requests and usage.requests:
        parts.append(f"{usage.requests:,} request{'' if usage.requests == 1 else 's'}")
    if usage.total_tokens:
        parts.append(f"{usage.total_tokens:,} tokens")
    spent = sum(used.cost or 0.0 for used in usage.breakdown.values())
    if usage.cost:
        parts.append(dollars(usage.cost))
    elif spent:  # the price of another model is not known
        parts.append(f"at least {dollars(spent)}")
    return parts


def dollars(amount: float) -> str:
    """Return an amount of US dollars as text, with four digits below one dollar."""
    return f"${amount:,.2f}" if amount >= 1 else f"${max(amount, 0.0001):.4f}"


def is_retry(event: RawResponseStreamEvent) -> bool:
    """Return whether a raw response event reports a retry of the model."""
    return _object(event.data).get("type") == "agents_tools.retry"


def retried(data: Mapping[str, Any]) -> str:
    """Return the retry of a model as text."""
    delay, model = data.get("delay"), data.get("model")
    if model is not None:
        return f"the model failed; {release_text(str(model))} is used instead"
    when = f" in {seconds(delay)}" if isinstance(delay, (int, float)) else ""
    return f"the model failed (attempt {data.get('attempt', 1)}); trying again{when}"


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
