"""Recorded events for people to read: as a tree, as a timeline, or as a page of Markdown."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, cast

from agents_tools.content.items import ToolApprovalItem, ToolCallItem, ToolCallOutputItem
from agents_tools.errors import AgentsToolsError
from agents_tools.events.kinds import (
    ErrorEvent,
    MessageEvent,
    NotifyStreamEvent,
    RawResponseStreamEvent,
    RunFinishedEvent,
    RunItemStreamEvent,
    RunStartedEvent,
    ToolProgressEvent,
    ToolStreamEndEvent,
    ToolStreamStartEvent,
)
from agents_tools.text.escape import safe_text, shorten
from agents_tools.ui._format import described, progressed, seconds
from agents_tools.ui.console.run_tree import (
    Node,
    RunTree,
    arguments_shown,
    ended_in_words,
    in_words,
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
"""What reading an item of another release, or of a damaged file, may raise."""


def tree(events: Sequence[Event], *, plain: bool = False) -> Iterator[str]:
    """Draw the runs of events: what was said, and the calls with what came of them.

    Args:
        events: The events.
        plain: Whether to draw with ASCII only.
    """
    drawn = RunTree("")
    said = False
    for event in events:
        if not event.path and isinstance(event, RunStartedEvent):
            if said:
                yield from _drawn(drawn, plain=plain)
            drawn, said = RunTree(event.agent or "agent"), False
        said = True
        _hear(drawn, event)
    if said:
        yield from _drawn(drawn, plain=plain)


def timeline(events: Sequence[Event]) -> Iterator[str]:
    """Yield a line for each event: its id, when it was, where, and what it says."""
    start = next((event.timestamp for event in events if event.timestamp), 0.0)
    heard = RunTree("")
    for event in events:
        if not event.path and isinstance(event, RunStartedEvent):
            heard = RunTree(event.agent or "agent")
        node = _hear(heard, event)
        place = " > ".join(name for name in heard.names(node) if name) or event.type
        after = f"{event.timestamp - start:+.3f}" if event.timestamp else ""
        yield f"{event.id:>6} {after:>9} {place}: {_line_of(event)}"


def markdown(events: Sequence[Event], title: str) -> Iterator[str]:
    """Write events as a page: runs as sections, messages as text, calls with their answers."""
    yield f"# {_inline(title)}\n"
    for event in events:
        if event.path:
            continue
        match event:
            case RunStartedEvent():
                yield f"\n## {_inline(event.agent or 'run')}\n"
            case RunFinishedEvent() if event.status != "ok":
                why = f": {_inline(event.error)}" if event.error else ""
                yield f"\n*The run ended: {_inline(event.status)}{why}*\n"
            case MessageEvent():
                yield f"\n**{event.role}**\n\n{_quoted(_content(event.content))}\n"
            case ErrorEvent():
                yield f"\n*Error: {_inline(event.message)}*\n"
            case RunItemStreamEvent():
                yield from _item_in_markdown(cast("RunItemStreamEvent[Any]", event))
            case _:
                pass


# --- a tree

_GUIDES = ("├─ ", "└─ ", "│  ")
_ASCII = ("|- ", "`- ", "|  ")


def _hear(tree: RunTree, event: Event) -> Node:
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


def _drawn(drawn: RunTree, *, plain: bool) -> Iterator[str]:
    root = drawn.root
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
            lines = safe_text(part).rstrip("\n").split("\n")
            yield f"{before}{here}{lines[0]}"
            yield from (f"{before}{further}{line}" for line in lines[1:])


def _call_in_words(node: Node) -> str:
    told = f"{node.name} {arguments_shown(node.arguments)}"
    if node.agent and node.agent != node.name:
        told += f" -> {node.agent}"
    waits = "waits for approval" if node.status == "waiting" else "not finished"
    status = waits if node.is_open else node.status
    if node.duration is not None:
        status = f"{ended_in_words(node.status)} {seconds(node.duration)}"
    result = " ".join(node.result.split())
    return f"{told}, {status}" + (f": {shorten(result, 200)}" if result else "")


# --- a line


def _line_of(event: Event) -> str:
    """Say in a line what an event says."""
    match event:
        case RunStartedEvent():
            told = f"run {event.run_id or ''} begins"
        case RunFinishedEvent():
            told = f"run ended: {event.status}" + (f": {event.error}" if event.error else "")
        case MessageEvent():
            told = f"{event.role}: {_content(event.content)}"
        case NotifyStreamEvent():
            told = event.data
        case ToolProgressEvent():
            told = progressed(event)
        case ToolStreamStartEvent():
            told = f"begins with {arguments_shown(json.dumps(dict(event.input_args)))}"
        case ToolStreamEndEvent():
            told = f"{ended_in_words(event.status)} {seconds(event.duration)}"
        case RawResponseStreamEvent():
            told = f"({cast('dict[str, Any]', event.data).get('type')})" if event.data else "()"
        case RunItemStreamEvent():
            told = _item_in_words(cast("RunItemStreamEvent[Any]", event))
        case _:
            told = described(event)
    return shorten(" ".join(safe_text(told).split()), _WIDEST)


def _item_in_words(event: RunItemStreamEvent[Any]) -> str:
    try:
        item = item_of(event)
    except UNREADABLE:
        return f"{event.name} {json.dumps(dict(event.item))}"
    if isinstance(item, ToolCallItem):
        return f"calls {item.name} with {arguments_shown(item.arguments)}"
    if isinstance(item, ToolApprovalItem):
        return f"waits for approval of {item.name}: {arguments_shown(item.arguments)}"
    if isinstance(item, ToolCallOutputItem):
        return f"{item.name} gave ({item.status}) {in_words(item.output)}"
    return f"{event.name.replace('_', ' ')}: {getattr(item, 'text', '')}"


# --- Markdown


def _item_in_markdown(event: RunItemStreamEvent[Any]) -> Iterator[str]:
    try:
        item = item_of(event)
    except UNREADABLE:
        yield f"\n{_fenced(json.dumps(dict(event.item), indent=2), 'json')}\n"
        return
    if isinstance(item, ToolApprovalItem):
        yield f"\n*Waits for approval of {_code(item.name)}.*\n"
    elif isinstance(item, ToolCallItem):
        yield f"\n**calls {_code(item.name)}**\n\n{_fenced(item.arguments, 'json')}\n"
    elif isinstance(item, ToolCallOutputItem):
        status = "" if item.status == "ok" else f" ({_inline(item.status)})"
        yield f"\n**{_code(item.name)} gave{status}**\n\n{_fenced(in_words(item.output), '')}\n"
    elif text := getattr(item, "text", ""):
        yield f"\n**assistant**\n\n{_quoted(text)}\n"


def _content(content: Any) -> str:
    """Return the text of a message; of other parts what they are."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return json.dumps(content)
    told: list[str] = []
    for block in cast("list[Any]", content):
        fields = cast("dict[str, Any]", block) if isinstance(block, dict) else {}
        text = fields.get("text")
        told.append(text if isinstance(text, str) else f"[{fields.get('type', 'content')}]")
    return "\n".join(told)


def _inline(text: str) -> str:
    """Write a text on one line of Markdown, so that nothing in it is markup."""
    plain = " ".join(safe_text(text).split())
    return re.sub(r"([\\`*_\[\]<>#|!])", r"\\\1", plain)


def _code(text: str) -> str:
    return f"`{' '.join(safe_text(text).split()).replace('`', chr(39))}`"


def _quoted(text: str) -> str:
    return "\n".join(f"> {line}" for line in safe_text(text).rstrip("\n").split("\n"))


def _fenced(text: str, language: str) -> str:
    """Put a text between fences that are longer than any in it."""
    shown = safe_text(text)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"
