"""Tools of Agno as function tools."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterator
from dataclasses import fields
from inspect import isasyncgenfunction, iscoroutinefunction
from typing import TYPE_CHECKING, Any, cast

from agno.exceptions import AgentRunException
from agno.run import RunContext
from agno.run.agent import CustomEvent, RunContentEvent
from agno.run.base import BaseRunOutputEvent
from agno.tools import Function, FunctionCall
from agno.tools.function import ToolResult

from agents_tools.errors import ToolError, UserValueError
from agents_tools.export._agent_adapter import display_text
from agents_tools.export._agno_export import AgnoToolEvent
from agents_tools.export._import_tool import call_in_thread, forward_event, import_tool, media_block
from agents_tools.policies import needs_approval
from agents_tools.tool.records import ToolAnnotations
from agents_tools.tool.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.tool.context import ToolContext

__all__ = ["event_kind", "from_foreign_tool", "payload"]


def from_foreign_tool(tool: Function, run_context: Any) -> FunctionTool[..., Any]:
    """Convert a tool of Agno to a function tool."""
    original: Any = getattr(tool.entrypoint, "function_tool", None)
    if isinstance(original, FunctionTool):
        return cast("FunctionTool[..., Any]", original)
    function = tool.model_copy(deep=True)
    function.process_entrypoint()
    for option in ("external_execution", "requires_user_input"):
        if getattr(function, option):
            raise UserValueError(
                f"The Agno tool {tool.name!r} cannot be converted: it has {option}=True, so it "
                "needs a person or another program during the call. Leave it in its agent."
            )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        given = context.context if isinstance(context.context, RunContext) else run_context
        copy = function.model_copy()
        copy._run_context = given or RunContext(  # noqa: SLF001 - Agno itself sets this attribute
            run_id=context.tool_call_id, session_id=context.tool_call_id, session_state={}
        )
        request = FunctionCall(function=copy, arguments=arguments, call_id=context.tool_call_id)
        try:
            execution = await _execute(request)
            if execution.status == "failure":
                raise ToolError(execution.error or request.error or "The tool failed.")
            return await _output(context, execution.result)
        except AgentRunException as error:  # asks an agent of Agno to stop or to retry
            raise ToolError(str(error)) from error

    converted = import_tool(
        framework="Agno",
        name=function.name,
        description=function.description,
        schema=function.parameters,
        call=call,
        annotations=_hints(getattr(function, "annotations", None)),  # missing in older versions
    )
    return needs_approval()(converted) if function.requires_confirmation else converted


async def _execute(request: FunctionCall) -> Any:
    function = request.function
    hooks = [*(function.tool_hooks or []), function.pre_hook, function.post_hook]
    if (
        iscoroutinefunction(function.entrypoint)
        or isasyncgenfunction(function.entrypoint)
        or any(iscoroutinefunction(hook) for hook in hooks)
    ):
        return await request.aexecute()
    return await call_in_thread(request.execute)


async def _output(context: ToolContext[Any], result: Any) -> Any:
    """Return the output for the model, and emit the events of a generator."""
    if isinstance(result, ToolResult):
        return _from_foreign_output(result)
    if not isinstance(result, (AsyncIterator, Iterator)):
        return result
    text = ""
    async with contextlib.aclosing(_items(result)) as items:
        async for item in items:
            if isinstance(item, RunContentEvent):
                item = display_text(item.content)  # noqa: PLW2901 - Agno uses this text, too
            elif (kind := event_kind(item)) is not None:
                forward_event(context, payload(item), kind)
                continue
            context.notify(str(item), is_delta=True)
            text += str(item)
    return text


async def _items(result: Any) -> AsyncGenerator[Any]:
    """Yield the items of a generator; a sync generator runs in a thread."""
    try:
        if isinstance(result, AsyncIterator):
            async for item in result:
                yield item
            return
        while (item := await call_in_thread(next, result, _END)) is not _END:
            yield item
    finally:
        if hasattr(result, "aclose"):
            await result.aclose()
        elif hasattr(result, "close"):
            await call_in_thread(result.close)


_END: Any = object()


def payload(event: Any) -> Any:
    """Return the data of a custom event, without the fields that identify its run."""
    if isinstance(event, AgnoToolEvent):
        return event.data
    standard = {field.name for field in fields(CustomEvent)} | {"event_index"}
    return {name: value for name, value in vars(event).items() if name not in standard}


def _from_foreign_output(result: ToolResult) -> Any:
    attachments = {"image": result.images, "audio": result.audios, "file": result.files}
    blocks = [
        _from_foreign_block(kind, item)
        for kind, items in attachments.items()
        for item in items or ()
    ]
    return [result.content, *blocks] if blocks else result.content


def _from_foreign_block(kind: str, item: Any) -> Any:
    """Convert an image, audio or a file of Agno to a content block."""
    if item.url is None and item.content is None:
        return f"[{kind}: {item.filepath or item.id}]"
    return media_block(
        kind,
        data=item.content if item.url is None else None,
        url=item.url,
        mime_type=item.mime_type,
        filename=getattr(item, "filename", None),
    )


def _hints(annotations: Any) -> ToolAnnotations | None:
    hints = {name: value for name, value in (annotations or {}).items() if value is not None}
    return ToolAnnotations(**hints) if hints else None


def event_kind(event: Any) -> str | None:
    """Return the kind of an event of an agent or a team; `None` if it is not an event."""
    return str(event.event).removeprefix("Team") if isinstance(event, BaseRunOutputEvent) else None
