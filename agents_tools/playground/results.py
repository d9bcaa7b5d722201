"""Derive the result of a run from its events."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from agents_tools.events.kinds import RunFinishedEvent
from agents_tools.text.json_limits import parse_object
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from agents_tools.events.base import Event

__all__ = ["ResultView", "plain_blocks", "result_of", "summary_of"]

_LONGEST_SUMMARY = 120
_LONGEST_VALUE = 1 << 20
"""Bytes."""
_CHANGED = "[A person changed the arguments before this ran, to: "
"""The text before the result of such a call in the output for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResultView:
    """The result of a run.

    Attributes:
        blocks: The output for the model as content blocks.
        is_text: Whether the output was one text.
        value: The result as JSON.
        error: The error of the run.
        usage: The usage of the run.
        call_status: The status of the call, for a run of a tool.
        arguments: The arguments, if a person has changed them.
    """

    blocks: Sequence[Mapping[str, Any]] = field(default_factory=list[dict[str, Any]])
    is_text: bool = True
    value: Any = None
    error: str | None = None
    usage: Mapping[str, Any] | None = None
    call_status: str = "ok"
    arguments: Mapping[str, Any] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the result as JSON, without a value that is too long for a page."""
        return {
            "model": [dict(block) for block in self.blocks],
            "value": self.value if _is_short(self.value) else None,
            "error": self.error,
            "usage": None if self.usage is None else dict(self.usage),
        }


def plain_blocks(result: ResultView) -> list[dict[str, Any]]:
    """Return the output of the tool, without the note about changed arguments."""
    first, *rest = [dict(block) for block in result.blocks] or [{}]
    if result.arguments is None:
        return [first, *rest] if result.blocks else []
    text = str(first["text"])
    try:
        _, end = json.JSONDecoder().raw_decode(text, len(_CHANGED))
    except ValueError:  # shortened
        return [first, *rest]
    if not result.is_text:
        return rest
    return [{**first, "text": text[end:].removeprefix("]\n")}, *rest]


def result_of(kind: Literal["tool", "agent"], events: Iterable[Event]) -> ResultView:
    """Return the result of a run.

    Args:
        kind: Whether a tool or an agent ran.
        events: The events of the run, at least those with results.
    """
    result = ResultView()
    called: Mapping[str, Any] | None = None
    for event in events:
        if event.path:
            continue
        if isinstance(event, RunFinishedEvent):
            result = replace(
                result, value=event.output, error=event.error, usage=cast("Any", event.usage)
            )
            if kind == "agent" and event.output is not None:
                text = event.output
                blocks = [{"type": "text", "text": text if isinstance(text, str) else str(text)}]
                result = replace(result, blocks=blocks)
        elif kind == "tool" and getattr(event, "name", "") == "tool_approval_granted":
            called = parse_object(cast("Any", event).item["arguments"])
        elif kind == "tool" and getattr(event, "name", "") == "tool_output":
            result = _with_output(result, cast("Any", event).item)
    if result.blocks and str(result.blocks[0].get("text")).startswith(_CHANGED):
        result = replace(result, arguments=called)
    return result


def _with_output(result: ResultView, item: Mapping[str, Any]) -> ResultView:
    output: Any = item.get("output")
    is_text = isinstance(output, str)
    blocks = [{"type": "text", "text": output}] if is_text else list(output or ())
    status = str(item.get("status") or "ok")
    return replace(result, blocks=blocks, is_text=is_text, call_status=status)


def _is_short(value: Any) -> bool:
    from pydantic_core import to_json

    return len(to_json(value)) <= _LONGEST_VALUE


def summary_of(result: ResultView) -> str:
    """Return the beginning of a result, on one line."""
    texts = [str(block["text"]) for block in result.blocks if "text" in block]
    text = " ".join(texts) if texts else (result.error or "")
    if not text and result.blocks:
        text = ", ".join(str(block.get("type")) for block in result.blocks)
    return release_text(" ".join(text.split()), limit=_LONGEST_SUMMARY)
