"""Tools of Agno as ours."""

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

from agents_tools._records import ToolAnnotations
from agents_tools.errors import ToolError, UserValueError
from agents_tools.export._agno_calls import ToolEvent
from agents_tools.export._foreign import shown
from agents_tools.export._incoming import in_thread, incoming, media, say
from agents_tools.policies import needs_approval
from agents_tools.tool import FunctionTool

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from agents_tools.context import ToolContext

__all__ = ["kind_of", "payload", "tool_here"]


def tool_here(tool: Function, run_context: Any) -> FunctionTool[..., Any]:
    """Make ours of a tool of Agno."""
    made_of: Any = getattr(tool.entrypoint, "function_tool", None)
    if isinstance(made_of, FunctionTool):
        return cast("FunctionTool[..., Any]", made_of)
    function = tool.model_copy(deep=True)
    function.process_entrypoint()
    for by_a_person in ("external_execution", "requires_user_input"):
        if getattr(function, by_a_person):
            raise UserValueError(
                f"The Agno tool {tool.name!r} has {by_a_person}=True: somebody outside runs it or "
                "fills it in, so it cannot become a tool that runs here."
            )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        own = context.context if isinstance(context.context, RunContext) else run_context
        copy = function.model_copy()
        copy._run_context = own or RunContext(  # noqa: SLF001 - where Agno puts it itself
            run_id=context.tool_call_id, session_id=context.tool_call_id, session_state={}
        )
        asked = FunctionCall(function=copy, arguments=arguments, call_id=context.tool_call_id)
        try:
            done = await _executed(asked)
            if done.status == "failure":
                raise ToolError(done.error or asked.error or "The tool failed.")
            return await _output(context, done.result)
        except AgentRunException as error:  # tells the agent of Agno to stop or to try again
            raise ToolError(str(error)) from error

    made = incoming(
        framework="Agno",
        name=function.name,
        description=function.description,
        schema=function.parameters,
        call=call,
        annotations=_hints(getattr(function, "annotations", None)),  # earlier ones have none
    )
    return needs_approval()(made) if function.requires_confirmation else made


async def _executed(asked: FunctionCall) -> Any:
    function = asked.function
    hooks = [*(function.tool_hooks or []), function.pre_hook, function.post_hook]
    if (
        iscoroutinefunction(function.entrypoint)
        or isasyncgenfunction(function.entrypoint)
        or any(iscoroutinefunction(hook) for hook in hooks)
    ):
        return await asked.aexecute()
    return await in_thread(asked.execute)


async def _output(context: ToolContext[Any], result: Any) -> Any:
    """Say what a result has to say before it is one, and give what the model is to get."""
    if isinstance(result, ToolResult):
        return _own_output(result)
    if not isinstance(result, (AsyncIterator, Iterator)):
        return result
    text = ""
    async with contextlib.aclosing(_items(result)) as items:
        async for item in items:
            if isinstance(item, RunContentEvent):
                item = shown(item.content)  # noqa: PLW2901 - the text that Agno takes
            elif (kind := kind_of(item)) is not None:
                say(context, payload(item), kind)
                continue
            context.notify(str(item), is_delta=True)
            text += str(item)
    return text


async def _items(result: Any) -> AsyncGenerator[Any]:
    """Give what a generator gives; a sync one works in a thread."""
    try:
        if isinstance(result, AsyncIterator):
            async for item in result:
                yield item
            return
        while (item := await in_thread(next, result, _END)) is not _END:
            yield item
    finally:
        if hasattr(result, "aclose"):
            await result.aclose()
        elif hasattr(result, "close"):
            await in_thread(result.close)


_END: Any = object()


def payload(event: Any) -> Any:
    """Give what an event of a tool's says, without where it says it."""
    if isinstance(event, ToolEvent):
        return event.data
    known = {field.name for field in fields(CustomEvent)} | {"event_index"}
    return {name: value for name, value in vars(event).items() if name not in known}


def _own_output(result: ToolResult) -> Any:
    given = {"image": result.images, "audio": result.audios, "file": result.files}
    more = [_own_block(kind, one) for kind, several in given.items() for one in several or ()]
    return [result.content, *more] if more else result.content


def _own_block(kind: str, given: Any) -> Any:
    """Give media of Agno as a block of ours."""
    if given.url is None and given.content is None:
        return f"[{kind}: {given.filepath or given.id}]"
    return media(
        kind,
        data=given.content if given.url is None else None,
        url=given.url,
        mime_type=given.mime_type,
        filename=getattr(given, "filename", None),
    )


def _hints(given: Any) -> ToolAnnotations | None:
    known = {name: value for name, value in (given or {}).items() if value is not None}
    return ToolAnnotations(**known) if known else None


def kind_of(event: Any) -> str | None:
    """Give what an event is, of an agent's or a team's; `None` for what is none."""
    return str(event.event).removeprefix("Team") if isinstance(event, BaseRunOutputEvent) else None
