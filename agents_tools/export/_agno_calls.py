"""Our tools as agents of Agno call them."""

from __future__ import annotations

import contextlib
import json
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from agno.exceptions import RunCancelledException
from agno.run.agent import CustomEvent
from agno.run.cancel import get_cancellation_manager
from agno.run.cancellation_management import InMemoryRunCancellationManager
from agno.tools import Function, FunctionCall

from agents_tools._bridge import run_sync
from agents_tools._records import CallOutcome, ToolAnnotations
from agents_tools.export._approval import decided
from agents_tools.export._incoming import in_thread
from agents_tools.export._outgoing import (
    application_context,
    arguments_json,
    followed,
    has_failed,
    text_of,
)
from agents_tools.export._until import LOOK, OverError, until

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Self

    from agno.run import RunContext

    from agents_tools.tool import FunctionTool

__all__ = ["ToolEvent", "function_of"]


@dataclass
class ToolEvent(CustomEvent):
    """What one of our tools says while it works, among the events of an agent of Agno.

    Attributes:
        data: The event, as JSON.
    """

    data: dict[str, Any] | None = None

    def __str__(self) -> str:
        """Give nothing: Agno writes the text of each event into the result of the tool."""
        return ""


def function_of(tool: FunctionTool[..., Any], context: Any) -> Function:
    """Make what Agno takes of a tool of ours."""

    def begin(fc: FunctionCall | None, run_context: RunContext | None, given: Any) -> _Call:
        asked = tool
        if fc is not None and fc.function.requires_confirmation:
            asked = decided(tool, True)  # Agno runs it only once somebody has agreed
        return _Call(
            asked,
            _written(fc, run_context, given),
            call_id=None if fc is None else fc.call_id,
            context=application_context(context, run_context),
            run_id=None if run_context is None else run_context.run_id,
        )

    def entrypoint(fc: Any = None, _agno_run_context: Any = None, **arguments: Any) -> _Call:
        return begin(fc, _agno_run_context, arguments)

    def entrypoint_without_call(_agno_run_context: Any = None, **arguments: Any) -> _Call:
        return begin(None, _agno_run_context, arguments)

    # Agno hands over its call by that name, which a parameter of the tool may have.
    has_fc = "fc" in tool.json_schema.get("properties", {})
    chosen: Any = entrypoint_without_call if has_fc else entrypoint
    chosen.function_tool = tool
    hints = tool.annotations
    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.params_json_schema,
        strict=False,
        entrypoint=chosen,
        skip_entrypoint_processing=True,
        annotations=None if hints is None else _wire_hints(hints),
    )


def _wire_hints(hints: ToolAnnotations) -> dict[str, Any]:
    return {name: getattr(hints, name) for name in _HINTS}


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _written(fc: FunctionCall | None, run_context: RunContext | None, given: Any) -> str:
    """Give the arguments as the model wrote them, where nobody has changed them on purpose."""
    if fc is not None and fc.call_id is not None and run_context is not None:
        for message in reversed(run_context.messages or []):
            for call in message.tool_calls or ():
                if call.get("id") == fc.call_id:
                    text = call.get("function", {}).get("arguments")
                    return text if _is_rewritten(text, given) else arguments_json(given)
    return arguments_json(given)


def _is_rewritten(text: Any, given: Any) -> bool:
    """Whether arguments are just what Agno makes of a text."""
    try:
        sent = json.loads(text)
    except (TypeError, ValueError):
        return False
    words = {"none": None, "null": None, "true": True, "false": False}
    return isinstance(sent, dict) and given == {
        name: words.get(value.strip().lower(), value) if isinstance(value, str) else value
        for name, value in cast("dict[str, Any]", sent).items()
    }


class _Failed(Exception):  # noqa: N818 - the text of it is all that Agno tells the model
    pass


class _Call(Iterator[Any], AsyncIterator[Any]):
    """A call that Agno reads: `arun` one way, `run` the other. It begins when it is read."""

    def __init__(
        self,
        tool: FunctionTool[..., Any],
        args_json: str,
        *,
        call_id: str | None,
        context: Any,
        run_id: str | None,
    ) -> None:
        self._name = tool.name
        self._made = followed(tool, args_json, call_id=call_id, context=context)
        self._run_id = run_id
        self._items: AsyncGenerator[Any] | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Any:
        item = await self._next()
        if item is None:
            raise StopAsyncIteration
        return item

    def __iter__(self) -> Self:
        return self

    def __next__(self) -> Any:
        item = run_sync(self._next)
        if item is None:
            raise StopIteration
        return item

    async def _next(self) -> Any:
        if self._items is None:
            self._items = self._read()
        return await anext(self._items, None)

    async def _read(self) -> AsyncGenerator[Any]:
        run = _Run(self._run_id)
        try:
            async with contextlib.aclosing(until(run.is_over, self._made, look=run.look)) as items:
                async for item in items:
                    if not isinstance(item, CallOutcome):
                        yield ToolEvent(data=item)
                    elif has_failed(item):
                        raise _Failed(text_of(item.output) or f"Tool {self._name!r} failed.")
                    else:
                        yield text_of(item.output)
        except OverError:
            raise RunCancelledException("The run is over.") from None


class _Run:
    """A run of Agno, as its cancellation manager knows it.

    Agno leaves tools behind when the task of a run is cancelled, and tells none that its run is.
    """

    def __init__(self, run_id: str | None) -> None:
        self._id = run_id
        self._manager: Any = get_cancellation_manager()
        self._is_near = isinstance(self._manager, InMemoryRunCancellationManager)
        self._known = self._is_near and run_id in self._manager.get_active_runs()

    @property
    def look(self) -> float:
        """How long to wait before the next look; there may be a server between."""
        return LOOK if self._is_near else 10 * LOOK

    async def is_over(self) -> bool:
        """Whether it was cancelled, or has ended in any other way."""
        if self._id is None:
            return False
        if not self._is_near:
            return await in_thread(self._manager.is_cancelled, self._id)
        active: dict[str, bool] = self._manager.get_active_runs()
        return active.get(self._id, self._known)
