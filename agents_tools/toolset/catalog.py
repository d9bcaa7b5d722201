"""The tools behind a search, and the description of the matching ones."""

from __future__ import annotations

import json
import threading
from typing import TYPE_CHECKING, Any, cast

from agents_tools.errors import UserError
from agents_tools.text.output import release_json, release_text
from agents_tools.tool.enabled import is_enabled
from agents_tools.tool.tool import FunctionTool
from agents_tools.toolset.search import SearchIndex, ToolText
from agents_tools.wire.project import project

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Sequence

    from agents_tools.tool.call import Call
    from agents_tools.tool.policy import Policy
    from agents_tools.toolset.strategies import SearchStrategy, ToolIndex

__all__ = ["AnyTool", "ToolCatalog", "describe_matches", "shown_names", "text_of"]

AnyTool = FunctionTool[..., Any]

_MAX_DESCRIPTION = 4_096
_MAX_RESULT = 64_000
"""The maximum characters of a description in a result, and of a whole result."""
_BUILT_AT_ONCE = 500
"""With more tools, the index is built in a thread, so that the event loop is not blocked."""


class ToolCatalog:
    """The tools behind a search.

    Args:
        tools: The tools.
        strategy: How they are ranked; by words if `None`.

    Attributes:
        tools: The tools.
        by_name: The tools by name.
        conditional: The tools whose `is_enabled` is not simply true.
    """

    def __init__(self, tools: Iterable[AnyTool], strategy: SearchStrategy | None = None) -> None:
        self.tools = tuple(tools)
        self.by_name: dict[str, AnyTool] = {tool.name: tool for tool in self.tools}
        self.conditional = [tool for tool in self.tools if tool.is_enabled is not True]
        self._strategy = strategy
        self._index: ToolIndex | None = None
        self._lock = threading.Lock()

    def changed(self, change: Callable[[AnyTool], AnyTool]) -> ToolCatalog:
        """Return a catalog with a change applied to each tool."""
        return ToolCatalog(map(change, self.tools), self._strategy)

    @property
    def repair_policies(self) -> list[Policy]:
        """The policies that repair invalid JSON, if all tools have one."""
        own = [tool.stack.repairs for tool in self.tools]
        return list(own[0]) if own and all(own) else []

    async def find(self, query: str, limit: int, call: Call) -> list[AnyTool]:
        """Return the enabled tools that match best, the best one first.

        Args:
            query: The words to search for.
            limit: The maximum number of tools.
            call: The call of the search tool.
        """
        places = await self._places(query, limit + len(self.conditional))
        found: list[AnyTool] = []
        for place in places:
            tool = self.tools[place]
            if await is_enabled(tool, call.context, call.agent):
                found.append(tool)
                if len(found) == limit:
                    break
        return found

    async def _places(self, query: str, limit: int) -> Sequence[int]:
        is_fast = self._strategy is None  # another strategy can ask a server
        if is_fast and (self._index is not None or len(self.tools) <= _BUILT_AT_ONCE):
            return self._built().find(query, limit)
        from agents_tools.concurrency.threads import run_in_thread

        return await run_in_thread(lambda: self._built().find(query, limit))

    def _built(self) -> ToolIndex:
        with self._lock:
            if self._index is None:
                self._index = (self._strategy or SearchIndex)(list(map(text_of, self.tools)))
            return self._index


def text_of(tool: AnyTool) -> ToolText:
    """Return the text of a tool that is searched.

    Args:
        tool: The tool.
    """
    title = None if tool.annotations is None else tool.annotations.title
    group = " ".join(filter(None, (tool.origin.server, title)))
    try:
        return ToolText.of(tool.name, tool.description, tool.json_schema, group)
    except UserError:  # a call reports the error; other tools must still be found
        return ToolText(tool.name, group=group)


# --- the result of a search


def describe_matches(
    found: Sequence[AnyTool], number: int, *, shown: Collection[str], caller: str
) -> str:
    """Return the result of a search as JSON text for the model.

    Args:
        found: The matching tools, the best one first.
        number: The number of tools that were searched.
        shown: The names of tools whose parameters the model sees elsewhere.
        caller: The name of the tool that calls the others.
    """
    entries: list[str] = []
    for tool in found:
        text = _as_json(_described(tool, in_full=tool.name not in shown))
        if entries and sum(map(len, entries)) + len(text) > _MAX_RESULT:
            break
        entries.append(text)
    note = ""
    if not found:
        note = f"None of the {number} tools fits. Try other words."
    elif len(entries) < len(found):
        note = "More tools fit, with long definitions. Ask for just what you need."
    elif shown and any(tool.name not in shown for tool in found):
        note = f"Call tools that are given here with their parameters by {caller}."
    more = f',"note":{_as_json(note)}' if note else ""
    return f"{_BEGINNING}{','.join(entries)}]{more}}}"


def _described(tool: AnyTool, *, in_full: bool) -> dict[str, Any]:
    text = tool.description
    if len(text) > _MAX_DESCRIPTION:
        text = f"{text[: _MAX_DESCRIPTION - 1]}…"
    entry: dict[str, Any] = {"name": tool.name, "description": text}
    if in_full:
        try:
            entry["parameters"] = project(tool, "mcp").wire["inputSchema"]
        except UserError:
            entry["parameters"] = tool.json_schema
    return entry


def _as_json(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    if release_text(text, to="model") == text:
        return text
    released = release_json(value, to="program")
    return json.dumps(released, separators=(",", ":"))  # has all invisible characters as escapes


_BEGINNING = '{"tools":['
_DECODER = json.JSONDecoder()


def shown_names(text: str) -> list[str]:
    """Return the names of the tools in the result of a search, up to where the text was cut.

    Args:
        text: The result.
    """
    names: list[str] = []
    at, mark = len(_BEGINNING), "," if text.startswith(_BEGINNING) else ""
    while mark == ",":
        try:
            entry, at = _DECODER.raw_decode(text, at)
        except (ValueError, RecursionError):
            break
        if not isinstance(entry, dict):
            break
        names.append(str(cast("dict[str, Any]", entry).get("name")))
        mark, at = text[at : at + 1], at + 1
    return names
