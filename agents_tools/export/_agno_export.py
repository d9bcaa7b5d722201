"""Function tools as tools of Agno."""

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

from agents_tools.concurrency.bridge import run_sync
from agents_tools.export._approval import with_decision
from agents_tools.export._export_tool import (
    application_context,
    arguments_json,
    as_text,
    has_failed,
    stream_call,
)
from agents_tools.export._import_tool import call_in_thread
from agents_tools.export._poll_cancellation import (
    POLL_INTERVAL,
    CallCancelledError,
    poll_until_cancelled,
)
from agents_tools.tool.records import CallOutcome, ToolAnnotations

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator
    from typing import Self

    from agno.run import RunContext

    from agents_tools.tool.tool import FunctionTool

__all__ = ["AgnoToolEvent", "to_foreign_tool"]


@dataclass
class AgnoToolEvent(CustomEvent):
    """An event of a function tool in the event stream of an agent of Agno.

    Attributes:
        data: The event, as JSON.
    """

    data: dict[str, Any] | None = None

    def __str__(self) -> str:
        """Return an empty string, because Agno adds the text of each event to the result."""
        return ""


def to_foreign_tool(tool: FunctionTool[..., Any], context: Any) -> Function:
    """Convert a function tool to a function of Agno."""

    def begin(fc: FunctionCall | None, run_context: RunContext | None, values: Any) -> _AgnoCall:
        called_tool = tool
        if fc is not None and fc.function.requires_confirmation:
            called_tool = with_decision(tool, True)  # Agno runs it only after a confirmation
        return _AgnoCall(
            called_tool,
            _arguments_as_written(fc, run_context, values),
            call_id=None if fc is None else fc.call_id,
            context=application_context(context, run_context),
            run_id=None if run_context is None else run_context.run_id,
        )

    def entrypoint(fc: Any = None, _agno_run_context: Any = None, **arguments: Any) -> _AgnoCall:
        return begin(fc, _agno_run_context, arguments)

    def entrypoint_without_call(_agno_run_context: Any = None, **arguments: Any) -> _AgnoCall:
        return begin(None, _agno_run_context, arguments)

    # Agno passes its call as `fc`, which would collide with a parameter of the tool of that name.
    has_fc = "fc" in tool.json_schema.get("properties", {})
    function: Any = entrypoint_without_call if has_fc else entrypoint
    function.function_tool = tool
    hints = tool.annotations
    return Function(
        name=tool.name,
        description=tool.description,
        parameters=tool.params_json_schema,
        strict=False,
        entrypoint=function,
        skip_entrypoint_processing=True,
        annotations=None if hints is None else _hints_as_dict(hints),
    )


def _hints_as_dict(hints: ToolAnnotations) -> dict[str, Any]:
    return {name: getattr(hints, name) for name in _HINTS}


_HINTS = ("readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint")


def _arguments_as_written(
    fc: FunctionCall | None, run_context: RunContext | None, values: Any
) -> str:
    """Return the arguments as the model wrote them, unless a hook has changed them."""
    if fc is not None and fc.call_id is not None and run_context is not None:
        for message in reversed(run_context.messages or []):
            for call in message.tool_calls or ():
                if call.get("id") == fc.call_id:
                    text = call.get("function", {}).get("arguments")
                    return text if _is_agno_form_of(text, values) else arguments_json(values)
    return arguments_json(values)


def _is_agno_form_of(text: Any, values: Any) -> bool:
    """Return whether values are the arguments that Agno parses from a text."""
    try:
        arguments = json.loads(text)
    except (TypeError, ValueError):
        return False
    words = {"none": None, "null": None, "true": True, "false": False}
    return isinstance(arguments, dict) and values == {
        name: words.get(value.strip().lower(), value) if isinstance(value, str) else value
        for name, value in cast("dict[str, Any]", arguments).items()
    }


class _AgnoFailure(Exception):  # noqa: N818 - Agno shows only its text to the model
    pass


class _AgnoCall(Iterator[Any], AsyncIterator[Any]):
    """A call as an iterator, async for `arun` and sync for `run`; iteration starts the call."""

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
        self._stream = stream_call(tool, args_json, call_id=call_id, context=context)
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
        run = _AgnoRun(self._run_id)
        try:
            polled = poll_until_cancelled(run.is_cancelled, self._stream, interval=run.interval)
            async with contextlib.aclosing(polled) as items:
                async for item in items:
                    if not isinstance(item, CallOutcome):
                        yield AgnoToolEvent(data=item)
                    elif has_failed(item):
                        raise _AgnoFailure(as_text(item.output) or f"Tool {self._name!r} failed.")
                    else:
                        yield as_text(item.output)
        except CallCancelledError:
            raise RunCancelledException("The run was cancelled or has ended.") from None


class _AgnoRun:
    """The state of a run in Agno's cancellation manager.

    Agno does not cancel the tools of a run when the run is cancelled, so calls poll this state.
    """

    def __init__(self, run_id: str | None) -> None:
        self._id = run_id
        self._manager: Any = get_cancellation_manager()
        self._is_in_memory = isinstance(self._manager, InMemoryRunCancellationManager)
        self._was_active = self._is_in_memory and run_id in self._manager.get_active_runs()

    @property
    def interval(self) -> float:
        """Seconds between two checks; longer if the manager may query a server."""
        return POLL_INTERVAL if self._is_in_memory else 10 * POLL_INTERVAL

    async def is_cancelled(self) -> bool:
        """Return whether the run was cancelled or has ended in another way."""
        if self._id is None:
            return False
        if not self._is_in_memory:
            return await call_in_thread(self._manager.is_cancelled, self._id)
        active: dict[str, bool] = self._manager.get_active_runs()
        return active.get(self._id, self._was_active)  # a run that has ended is not listed
