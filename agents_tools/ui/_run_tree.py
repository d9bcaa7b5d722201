"""The tree of a run: its agents and calls, as its events tell of them."""

from __future__ import annotations

import json
import time
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from agents_tools._text import describe_value, safe_text, shorten
from agents_tools.events import (
    Event,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.items import (
    ToolApprovalItem,
    ToolCallItem,
    ToolCallOutputItem,
    item_from_dict,
)
from agents_tools.ui._words import seconds
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.items import RunItem
    from agents_tools.outputs import ToolOutput

__all__ = [
    "Node",
    "RunTree",
    "arguments_shown",
    "costs",
    "ended_in_words",
    "in_words",
    "is_retry",
    "retried",
]


_MANY = 100
"""Of how many parts of a node the oldest are forgotten, when there are twice as many."""
_FEW = 20
"""How many parts of a call are kept when it has ended."""
_LINE = 1_000
"""How much is kept of what a call gave."""


class Node:
    """One agent or call of a run, with what is known of it.

    Attributes:
        path: The ids of the calls down to it; empty for the run itself.
        name: The tool; for the run itself the agent.
        agent: The agent that runs there, if one does.
        status: `written` while the model still writes the call, `running`, `waiting` for a
            person, or how it ended.
        arguments: What it was called with, as JSON text.
        progress: How far it is.
        tail: The text of deltas whose line has not ended, as it came.
        said: The last lines that it said.
        noted: Its last warnings and errors.
        text: What its model has written of the message that is being written, as it came.
        thought: Likewise of its reasoning.
        held: Its model's last message, which may be its answer.
        moved: Whether that message stands among the parts already: its calls follow.
        result: What it gave, as far as it fits into a line.
        parts: Its calls, and what its model said between them, in order; the last ones, if there
            are many.
        left_out: How many calls came before them.
        is_answered: Whether the one who called has its result.
        is_told: Whether people were told in a line how it ended.
        duration: How long it took, in seconds; `None` until it has ended.
        by_model: Whether a model called it, and not a tool.
        spent: What its run used in all, once that has ended.
    """

    def __init__(self, path: tuple[str, ...], name: str) -> None:
        self.path = path
        self.name = safe_text(name)
        self.agent: str | None = None
        self.status = "running"
        self.arguments = ""
        self.progress: ToolProgressEvent | None = None
        self.tail = ""
        self.said: deque[tuple[str, str]] = deque(maxlen=3)
        self.noted: deque[tuple[str, str]] = deque(maxlen=3)
        self.text = ""
        self.thought = ""
        self.held = ""
        self.moved = False
        self.result = ""
        self.parts: list[Node | str] = []
        self.left_out = 0
        self.is_answered = False
        self.is_told = False
        self.started = time.monotonic()
        self.duration: float | None = None
        self.by_model = False
        self.spent: Usage | None = None

    @property
    def is_open(self) -> bool:
        """Whether it has not ended."""
        return self.status in {"written", "running", "waiting"}

    @property
    def is_over(self) -> bool:
        """Whether nothing more is heard of it."""
        return not self.is_open and (self.is_answered or not self.by_model)

    @property
    def took(self) -> float:
        """How long it took so far, in seconds."""
        return time.monotonic() - self.started if self.duration is None else self.duration

    def lines_of(self, event: NotifyStreamEvent) -> list[str]:
        """Give the lines that are complete with an event."""
        if not event.is_delta:
            return [*self.rest(), *safe_text(event.data).rstrip("\n").split("\n")]
        # What acts on a terminal may come in two pieces: it is taken out when they are together.
        *lines, self.tail = (self.tail + event.data).split("\n")
        return [safe_text(line) for line in lines]

    def rest(self) -> list[str]:
        """Give the line that has not ended, if there is one."""
        tail, self.tail = safe_text(self.tail), ""
        return [tail] if tail else []

    def take_held(self) -> str:
        """Give the message that was held back: the model goes on, so it was not its answer."""
        held, self.held = self.held, ""
        if held and not self.moved:
            self.parts.append(held)
        self.moved = False
        return held


class RunTree:
    """The agents and calls of a run, as its events tell of them.

    Args:
        agent: The agent that runs; empty as long as that is not known. What is no run of an agent,
            such as the call of a tool, never has one.
    """

    def __init__(self, agent: str = "") -> None:
        self.root = Node((), agent)
        self.root.agent = self.root.name
        self.by_path: dict[tuple[str, ...], Node] = {(): self.root}
        self._usage: dict[tuple[str, ...], Usage] = {}

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Take what one answer of a model has used."""
        self._usage.setdefault(path, Usage()).add(usage)

    def usage(self, node: Node) -> Usage:
        """Give what was used there and below."""
        if node.spent is not None:
            return node.spent
        total, depth = Usage(), len(node.path)
        for path, usage in list(self._usage.items()):
            if path[:depth] == node.path:
                total.add(usage)
        return total

    def names(self, node: Node) -> list[str]:
        """Give the names down to a node."""
        above = [self.by_path.get(node.path[:depth]) for depth in range(len(node.path))]
        return [one.name for one in above if one is not None and one.name] + [node.name]

    def at(self, path: tuple[str, ...], name: str | None = None) -> Node:
        """Give the node of a place, a new one if there is none."""
        node = self.by_path.get(path)
        if node is None:
            node = self.by_path[path] = Node(path, name or "?")
            above = path[:-1]
            while above not in self.by_path:
                above = above[:-1]
            self.by_path[above].parts.append(node)
            if len(self.by_path[above].parts) > 2 * _MANY:
                self._leave_out(self.by_path[above], _MANY)
        return node

    def _leave_out(self, node: Node, most: int) -> None:
        """Forget the oldest parts of a node, so that the tree of a long run stays small."""
        excess = len(node.parts) - most
        kept: list[Node | str] = []
        for part in node.parts:
            if excess > 0 and (isinstance(part, str) or part.is_over):
                excess -= 1
                if isinstance(part, Node):
                    node.left_out += 1
                    self._forget(node, part)
            else:
                kept.append(part)
        node.parts = kept

    def _forget(self, above: Node, node: Node) -> None:
        """Forget a call; what was used there is the use of the one above."""
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

    def hear(self, event: Event) -> Node:
        """Take an event and give the node that it is about."""
        node = self.at(event.path, event.tool_name)
        match event:
            case RunStartedEvent():
                node.agent = safe_text(event.agent or "")
                node.name = node.name or node.agent
                node.status = "running"
            case RunFinishedEvent():
                self._finish_run(node, event)
            case ToolStreamStartEvent():
                node.status = "running"
                node.started = time.monotonic()
                node.arguments = node.arguments or json.dumps(dict(event.input_args))
            case ToolStreamEndEvent():
                self._end(node, event.status, event.duration)
            case ToolProgressEvent():
                node.progress = event
            case RawResponseStreamEvent():
                return self._write(node, event.data)
            case RunItemStreamEvent():
                return self._take(node, event.name, item_of(cast("Event", event)))
            case _:
                pass
        return node

    def say(self, node: Node, event: NotifyStreamEvent, lines: Sequence[str]) -> None:
        """Keep lines that a tool said."""
        level = event.level if event.level != "info" else event.tag or "info"
        for line in lines:
            node.said.append((level, line))
            if event.level in {"warning", "error"}:
                node.noted.append((level, line))

    def close(self, status: str, duration: float) -> None:
        """End what is still open: nothing more is heard of it."""
        self._drop_written(self.root)
        for node in list(self.by_path.values()):
            if node.status == "running" and node is not self.root:
                self._end(node, "cancelled" if status == "cancelled" else "lost", node.took)
        self.root.status = status
        self.root.duration = duration

    def _write(self, node: Node, data: Any) -> Node:
        """Take a piece of a model's answer."""
        piece = _object(data)
        match piece.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                node.thought = ""
                node.text += str(piece.get("delta", ""))
            case "response.reasoning_summary_text.delta":
                node.thought += str(piece.get("delta", ""))
            case "response.output_item.added":
                self._begin(node, piece.get("item"))
            case "response.function_call_arguments.delta":
                call = self.by_path.get((*node.path, str(piece.get("call_id"))))
                if call is not None and call.status == "written":
                    call.arguments += str(piece.get("delta", ""))
            case "agents_tools.retry":
                node.text = node.thought = ""
                self._drop_written(node)
                if node.moved:
                    node.parts.pop()
                    node.moved = False
            case _:
                pass
        return node

    def _begin(self, node: Node, item: Any) -> None:
        """Take it that a model begins to write an item; of interest are calls."""
        call = _object(item)
        path = (*node.path, str(call.get("call_id")))
        if not call.get("call_id") or path in self.by_path:
            return
        if node.text:  # what the model said stands before what it calls
            node.parts.append(safe_text(node.text))
            node.text, node.moved = "", True
        self.at(path, str(call.get("name") or "?")).status = "written"

    def _take(self, node: Node, name: str, item: RunItem) -> Node:
        """Take an item of the conversation."""
        if name == "message_output_created":
            if not node.moved:
                node.take_held()
            said = getattr(item, "text", "") or getattr(item, "refusal", None) or ""
            node.held, node.text = safe_text(said), ""
        elif name == "reasoning_item_created":
            node.thought = ""
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
            call.result, call.is_answered = in_words(item.output)[:_LINE], True
            if call.is_open:
                self._end(call, item.status, call.took)
            return call
        return node

    def _called(self, node: Node, item: ToolCallItem) -> Node:
        call = self.at((*node.path, item.call_id), item.name)
        call.name, call.arguments = safe_text(item.name), item.arguments
        call.status = "running"
        call.by_model = True
        if not item.needs_answer:  # its provider has run it
            call.is_answered = True
            self._end(call, "ok", 0.0)
        return call

    def _end(self, node: Node, status: str, duration: float) -> None:
        node.status = status
        node.duration = duration
        node.text = node.thought = ""
        if len(node.parts) > _FEW:
            self._leave_out(node, _FEW)

    def _finish_run(self, node: Node, event: RunFinishedEvent) -> None:
        node.text = node.thought = ""
        node.spent = Usage.from_dict(event.usage) if event.usage else None
        self._drop_written(node)
        if node.path and event.status == "error" and event.error:
            node.noted.append(("error", safe_text(event.error)))
        if node.path and event.status == "interrupted":
            node.status = "waiting"

    def _drop_written(self, node: Node) -> None:
        """Forget calls that the model began to write and never made."""
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
    """Give the item of an event: the one that came with it, or one made of its JSON."""
    return item_from_dict(event.item) if event.attached is None else event.attached


# --- words


def ended_in_words(status: str) -> str:
    """Say how a call or a run ended, before the time it took."""
    return _ENDED.get(status, f"{status.replace('_', ' ')} after")


def arguments_shown(text: str, limit: int = 120) -> str:
    """Write the arguments of a call for a person, shortly."""
    try:
        values: object = json.loads(text or "{}")
    except ValueError:
        return shorten(safe_text(" ".join(text.split())), limit)  # not whole yet
    if not isinstance(values, dict):
        return describe_value(values)
    named = cast("dict[str, Any]", values)
    shown = " ".join(f"{safe_text(key)}={describe_value(value)}" for key, value in named.items())
    return shorten(shown, limit) if shown else "no arguments"


def in_words(output: ToolOutput) -> str:
    """Give the text of what a call answered, and what else is in it by its kind."""
    if isinstance(output, str):
        return safe_text(output)
    told = [block.text if block.type == "text" else f"[{block.type}]" for block in output]
    return safe_text("\n".join(told))


def costs(usage: Usage, *, requests: bool) -> list[str]:
    """Say what was used, leaving out what is not known."""
    told: list[str] = []
    if requests and usage.requests:
        told.append(f"{usage.requests:,} request{'' if usage.requests == 1 else 's'}")
    if usage.total_tokens:
        told.append(f"{usage.total_tokens:,} tokens")
    return told


def is_retry(event: RawResponseStreamEvent) -> bool:
    """Whether a model is asked again."""
    return _object(event.data).get("type") == "agents_tools.retry"


def retried(data: Mapping[str, Any]) -> str:
    """Say that a model is asked again."""
    delay = data.get("delay")
    when = f" in {seconds(delay)}" if isinstance(delay, (int, float)) else ""
    return f"the model failed (attempt {data.get('attempt', 1)}); asking again{when}"


def _object(value: object) -> dict[str, Any]:
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
