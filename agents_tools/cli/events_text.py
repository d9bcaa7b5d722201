"""Format recorded events as a tree, as a timeline or as Markdown."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from agents_tools.content.outputs import output_text
from agents_tools.errors import AgentsToolsError
from agents_tools.events.kinds import (
    AgentUpdatedStreamEvent,
    ErrorEvent,
    MessageEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    SummaryEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.escape import shorten
from agents_tools.text.output import release_text
from agents_tools.ui._format import described, progressed, seconds
from agents_tools.ui.console.run_tree import (
    Node,
    RunTree,
    arguments_shown,
    ended_in_words,
    item_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from agents_tools.events.base import Event

__all__ = ["UNREADABLE", "markdown", "timeline", "tree"]

_WIDEST = 400
UNREADABLE = (
    AgentsToolsError,
    ArithmeticError,
    AttributeError,
    LookupError,
    TypeError,
    ValueError,
)
"""Exceptions raised by items of another release or of a damaged file."""


def tree(events: Sequence[Event], *, plain: bool = False) -> Iterator[str]:
    """Draw runs as trees of messages and calls with their results.

    Args:
        events: The events.
        plain: Whether to draw with ASCII only.
    """
    current = RunTree("")
    has_events = False
    for event in events:
        if not event.path and isinstance(event, RunStartedEvent):
            if has_events:
                yield from _drawn(current, plain=plain)
            current = RunTree(event.agent or "agent")
        has_events = True
        _update(current, event)
    if has_events:
        yield from _drawn(current, plain=plain)


def timeline(events: Sequence[Event]) -> Iterator[str]:
    """Yield a line for each event: its id, time, place and content."""
    start = next((event.timestamp for event in events if event.timestamp), 0.0)
    current = RunTree("")
    for event in events:
        if not event.path and isinstance(event, RunStartedEvent):
            current = RunTree(event.agent or "agent")
        node = _update(current, event)
        place = " > ".join(name for name in current.names(node) if name) or event.type
        after = f"{event.timestamp - start:+.3f}" if event.timestamp else ""
        yield f"{event.id:>6} {after:>9} {place}: {_line_of(event)}"


def markdown(events: Sequence[Event], title: str) -> Iterator[str]:
    """Yield a Markdown page: runs as sections, messages as text, calls with their results."""
    yield f"# {_inline(title)}\n"
    listed = set(_listed_calls(events))
    for event in events:
        match event:
            case ToolStreamStartEvent() if event.path not in listed and len(event.path) == 1:
                yield _call_in_markdown(event.tool_name or "", json.dumps(dict(event.input_args)))
            case ToolStreamEndEvent() if event.path not in listed and len(event.path) == 1:
                yield f"\n*{_code(event.tool_name or '')} ended: {_inline(event.status)}*\n"
            case _ if event.path:
                pass
            case RunStartedEvent():
                yield f"\n## {_inline(event.agent or 'run')}\n"
            case AgentUpdatedStreamEvent():
                yield f"\n## {_inline(event.agent)}\n"
            case RunFinishedEvent() if event.status != "ok":
                why = f": {_inline(event.error)}" if event.error else ""
                yield f"\n*The run ended: {_inline(event.status)}{why}*\n"
            case MessageEvent():
                yield f"\n**{event.role}**\n\n{_quoted(_content(event.content))}\n"
            case ErrorEvent():
                yield f"\n*Error: {_inline(event.message)}*\n"
            case SummaryEvent():
                yield f"\n*Summary of the {event.items} items so far*\n\n{_quoted(event.summary)}\n"
            case RunItemStreamEvent():
                yield from _item_in_markdown(cast("RunItemStreamEvent[Any]", event))
            case _:
                pass


# --- a tree

_GUIDES = ("├─ ", "└─ ", "│  ")
_ASCII = ("|- ", "`- ", "|  ")


def _update(tree: RunTree, event: Event) -> Node:
    try:
        node = tree.update(event)
    except UNREADABLE:  # an item of another release
        return tree.at(event.path, event.tool_name)
    if isinstance(event, NotifyStreamEvent):
        tree.add_lines(node, event, node.lines_of(event))
    elif isinstance(event, RunFinishedEvent) and not event.path:
        node.status = event.status
    elif isinstance(event, MessageEvent) and not event.path:
        node.parts.append(f"{event.role}: {_content(event.content)}")
    return node


def _drawn(tree: RunTree, *, plain: bool) -> Iterator[str]:
    root = tree.root
    root.take_held()
    yield f"{root.name or 'events'} ({root.status.replace('_', ' ')})"
    yield from _below(root, "", _ASCII if plain else _GUIDES)


def _below(node: Node, before: str, guides: tuple[str, str, str]) -> Iterator[str]:
    branch, corner, trunk = guides
    for number, part in enumerate(node.parts, start=1):
        last = number == len(node.parts)
        here, further = (corner, " " * len(trunk)) if last else (branch, trunk)
        if isinstance(part, Node):
            part.take_held()
            yield f"{before}{here}{_call_in_words(part)}"
            yield from _below(part, before + further, guides)
        else:
            lines = release_text(part).rstrip("\n").split("\n")
            yield f"{before}{here}{lines[0]}"
            yield from (f"{before}{further}{line}" for line in lines[1:])


def _call_in_words(node: Node) -> str:
    text = f"{node.name} {arguments_shown(node.arguments)}"
    if node.agent and node.agent != node.name:
        text += f" -> {node.agent}"
    waits = "waits for approval" if node.status == "waiting" else "not finished"
    status = waits if node.is_open else node.status
    if node.duration is not None:
        status = f"{ended_in_words(node.status)} {seconds(node.duration)}"
    result = " ".join(node.result.split())
    return f"{text}, {status}" + (f": {shorten(result, 200)}" if result else "")


# --- a line


def _line_of(event: Event) -> str:
    """Return the content of an event as one line."""
    match event:
        case RunStartedEvent():
            text = f"run {event.run_id or ''} starts"
        case RunFinishedEvent():
            text = f"run ended: {event.status}" + (f": {event.error}" if event.error else "")
        case MessageEvent():
            text = f"{event.role}: {_content(event.content)}"
        case SummaryEvent():
            text = f"summary of {event.items} items: {event.summary}"
        case NotifyStreamEvent():
            text = event.data
        case ToolProgressEvent():
            text = progressed(event)
        case ToolStreamStartEvent():
            text = f"starts with {arguments_shown(json.dumps(dict(event.input_args)))}"
        case ToolStreamEndEvent():
            text = f"{ended_in_words(event.status)} {seconds(event.duration)}"
        case RawResponseStreamEvent():
            text = f"({cast('dict[str, Any]', event.data).get('type')})" if event.data else "()"
        case RunItemStreamEvent():
            text = _item_in_words(cast("RunItemStreamEvent[Any]", event))
        case _:
            text = described(event)
    return shorten(" ".join(release_text(text).split()), _WIDEST)


def _output_of(item: ToolCallOutputItem) -> str:
    return release_text(output_text(item.output))


def _item_in_words(event: RunItemStreamEvent[Any]) -> str:
    try:
        item = item_of(event)
    except UNREADABLE:
        return f"{event.name} {json.dumps(dict(event.item))}"
    if isinstance(item, ToolCallItem):
        return f"calls {item.name} with {arguments_shown(item.arguments)}"
    if isinstance(item, ToolApprovalItem):
        return f"waits for approval of {item.name}: {arguments_shown(item.arguments)}"
    if isinstance(item, ToolCallOutputItem) and item.in_background:
        return f"{item.name} continues in the background"
    if isinstance(item, ToolCallOutputItem):
        return f"{item.name} returned ({item.status}) {_output_of(item)}"
    return f"{event.name.replace('_', ' ')}: {getattr(item, 'text', '')}"


# --- Markdown


def _call_in_markdown(name: str, arguments: str) -> str:
    return f"\n**calls {_code(name)}**\n\n{_fenced(arguments, 'json')}\n"


def _listed_calls(events: Sequence[Event]) -> Iterator[tuple[str, ...]]:
    """Yield the paths of the calls that a run has recorded as items."""
    for event in events:
        if isinstance(event, RunItemStreamEvent) and not event.path:
            call_id = cast("RunItemStreamEvent[Any]", event).item.get("call_id")
            if isinstance(call_id, str):
                yield (call_id,)


def _item_in_markdown(event: RunItemStreamEvent[Any]) -> Iterator[str]:
    try:
        item = item_of(event)
    except UNREADABLE:
        yield f"\n{_fenced(json.dumps(dict(event.item), indent=2), 'json')}\n"
        return
    if isinstance(item, ToolApprovalItem):
        yield f"\n*Waits for approval of {_code(item.name)}.*\n"
    elif isinstance(item, ToolCallItem):
        yield _call_in_markdown(item.name, item.arguments)
    elif isinstance(item, ToolCallOutputItem) and item.in_background:
        yield f"\n*{_code(item.name)} continues in the background.*\n"
    elif isinstance(item, ToolCallOutputItem):
        status = "" if item.status == "ok" else f" ({_inline(item.status)})"
        yield f"\n**{_code(item.name)} returned{status}**\n\n{_fenced(_output_of(item), '')}\n"
    elif text := getattr(item, "text", ""):
        yield f"\n**assistant**\n\n{_quoted(text)}\n"


def _content(content: Any) -> str:
    """Return the text of a message, with the type of each part that is not text."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content)
    parts: list[str] = []
    for block in cast("list[Any]", content):
        fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        text = fields.get("text")
        parts.append(text if isinstance(text, str) else f"[{fields.get('type', 'content')}]")
    return "\n".join(parts)


def _inline(text: str) -> str:
    """Return a text on one line, with Markdown characters escaped."""
    plain = " ".join(release_text(text).split())
    return re.sub(r"([\\`*_\[\]<>#|!])", r"\\\1", plain)


def _code(text: str) -> str:
    return f"`{' '.join(release_text(text).split()).replace('`', chr(39))}`"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in release_text(text).rstrip("\n").split("\n"))


def _fenced(text: str, language: str) -> str:
    """Return a code block whose fences are longer than any in the text."""
    shown = release_text(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"
