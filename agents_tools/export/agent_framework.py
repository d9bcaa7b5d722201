"""Adapter for the Microsoft Agent Framework: function tools, its tools, and its agents as tools."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Unpack, cast, overload

from agents_tools._package import missing_extra

try:
    from agent_framework import (
        ChatMiddleware,
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool as ForeignTool,
    )
except ImportError as error:
    raise missing_extra("agents_tools.export.agent_framework", "agent-framework", error) from error

from agents_tools.concurrency.supervisor import finish
from agents_tools.content.json_value import to_json
from agents_tools.content.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.content.usage import Usage
from agents_tools.errors import MaxTurnsExceeded, ToolError, UserTypeError
from agents_tools.export._agent_adapter import (
    AgentEvent,
    AgentPaused,
    AgentToolOptions,
    CallEnded,
    CallStarted,
    FinalAnswer,
    TextDelta,
    make_agent_tool,
)
from agents_tools.export._export_tool import (
    Tools,
    application_context,
    as_blocks,
    call_tool,
    export_tools,
)
from agents_tools.export._import_tool import import_tool, import_tools
from agents_tools.policies import needs_approval
from agents_tools.text.escape import shorten
from agents_tools.tool.failure import DEFAULT

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.classes.base_tool import BaseTool
    from agents_tools.tool.context import ToolContext
    from agents_tools.tool.tool import FunctionTool

__all__ = ["as_tool", "from_agent_framework", "to_agent_framework"]


@overload
def to_agent_framework(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_agent_framework(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_agent_framework(tools: Any, *, context: Any = None) -> Any:
    """Convert tools for the Agent Framework: `Agent(client, tools=to_agent_framework([...]))`.

    The schema is passed unchanged, and the arguments are validated by the tool itself. Images,
    audio and files become content items of the framework. A failure returns the tool's error
    message, which the framework itself would hide from the model. If `failure_error_function` is
    `None`, the exception is raised into the framework. A call that needs approval is denied.

    Args:
        tools: One tool, or several.
        context: The application's object, which tools get as `ctx.context`. Defaults to the
            object of the enclosing run, or else to the framework's `FunctionInvocationContext`.

    Returns:
        One tool for one tool, a list for several.

    Raises:
        UserError: A value is not a tool, or two tools have the same name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _FrameworkFunctionTool(tool, context)

    return export_tools(tools, make, "to_agent_framework")


@overload
def from_agent_framework(
    tool: list[ForeignTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_agent_framework(
    tool: ForeignTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_agent_framework(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Convert tools of the Agent Framework to function tools.

    Arguments are validated against the whole schema before the framework gets them. A tool that
    always requires approval gets the policy `policies.needs_approval`.

    Args:
        tool: A `FunctionTool` of the framework, or a list of them.
        failure_error_function: Creates the error message for the model; `None` raises the error.

    Raises:
        UserError: The value is not a tool of the framework, or a tool without a function.
    """

    def make(item: Any) -> FunctionTool[..., Any]:
        return _from_foreign_tool(item, failure_error_function)

    return import_tools(tool, ForeignTool, make, "from_agent_framework")


def as_tool(
    agent: Any,
    *,
    max_turns: int | None = None,
    **options: Unpack[AgentToolOptions[Any]],
) -> FunctionTool[..., Any]:
    """Create a tool that runs an agent of the Agent Framework. It forgets earlier calls.

    Args:
        agent: The agent.
        max_turns: The maximum number of model requests; the framework's default if not given.
        **options: See `agents_tools.export.AgentToolOptions`.

    Raises:
        UserError: An option is unknown or invalid, or `parameters` has no JSON Schema.
    """

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[AgentEvent]:
        agent_run = _FrameworkRun(agent, usage, max_turns)
        async with contextlib.aclosing(agent_run.events(task, context)) as events:
            async for event in events:
                yield event

    return make_agent_tool(
        agent.name or "agent", run, as_tool, options, description=agent.description
    )


# --- function tools as tools of the framework

_call_id: ContextVar[str | None] = ContextVar("agent_framework_call_id", default=None)
_SELF = "agents_tools_self"


class _FrameworkFunctionTool(ForeignTool):
    """A tool of the framework that calls a function tool."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        async def call(agents_tools_invocation: FunctionInvocationContext, **values: Any) -> Any:
            if _SELF in values:
                values["self"] = values.pop(_SELF)
            call_context = application_context(context, agents_tools_invocation)
            outcome = await call_tool(tool, values, call_id=_call_id.get(), context=call_context)
            return [_to_foreign_block(block) for block in as_blocks(outcome.output)]

        super().__init__(
            name=tool.name,
            description=tool.description,
            func=call,
            input_model={"properties": {}, **tool.params_json_schema},
        )

    def __call__(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the function, which may have a parameter named `self`."""
        if "self" in arguments:
            arguments[_SELF] = arguments.pop("self")
        return super().__call__(*args, **arguments)

    async def invoke(self, *, tool_call_id: str | None = None, **options: Any) -> Any:
        """Store the id of the call, since the framework does not pass it to functions."""
        token = _call_id.set(tool_call_id)
        try:
            return await super().invoke(tool_call_id=tool_call_id, **options)
        finally:
            _call_id.reset(token)

    def _prepare_arguments(self, arguments: Any) -> dict[str, Any]:
        """Return the arguments unvalidated: the function tool validates against the schema."""
        if isinstance(arguments, Mapping):
            return dict(cast("Mapping[str, Any]", arguments))
        return {} if arguments is None else arguments.model_dump(exclude_unset=True)


_KINDS = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}


def _to_foreign_block(block: ContentBlock) -> Any:
    """Convert a block to a content item of the framework."""
    if isinstance(block, ToolOutputText):
        return Content.from_text(block.text)
    name = getattr(block, "filename", None)
    kind = block.mime_type or _KINDS[block.type]
    if block.data is not None:
        return Content.from_data(block.data, kind, name=name)
    if block.url is not None:
        return Content.from_uri(block.url, media_type=kind, name=name)
    return Content.from_hosted_file(block.file_id or "", media_type=block.mime_type, name=name)


# --- tools of the framework as function tools


def _from_foreign_tool(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    if tool.declaration_only:
        raise UserTypeError(
            f"The Agent Framework tool {tool.name!r} cannot be converted: expected a tool with a "
            "function, got a declaration. Leave it in its agent."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        result: Any = await tool.invoke(arguments=arguments, tool_call_id=context.tool_call_id)
        if not isinstance(result, list) or not all(isinstance(item, Content) for item in result):
            return result  # from a tool that does not parse its results
        items = cast("list[Any]", result)
        return (
            items[0].text
            if [item.type for item in items] == ["text"]
            else _from_foreign_output(items)
        )

    converted = import_tool(
        framework="Agent Framework",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool),
        call=call,
        failure_error_function=failure_error_function,
    )
    return needs_approval()(converted) if tool.approval_mode == "always_require" else converted


def _schema(tool: Any) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", tool.parameters())
    except Exception as error:
        raise UserTypeError(
            f"The Agent Framework cannot create the schema of its tool {tool.name!r}: "
            f"{shorten(str(error), 300)} Pass a schema as `input_model`."
        ) from error


def _from_foreign_output(items: list[Any]) -> list[ContentBlock]:
    return [_from_foreign_block(item) for item in items]


def _from_foreign_block(item: Any) -> ContentBlock:
    """Convert a content item to a block; an item of another type to its JSON text."""
    match item.type:
        case "text":
            return ToolOutputText(item.text or "")
        case "data":
            return _media(item.media_type, item.name, data=_decoded(item.uri))
        case "uri":
            return _media(item.media_type, item.name, url=item.uri)
        case "hosted_file":
            return _media(item.media_type, item.name, file_id=item.file_id)
        case "error":
            raise ToolError(item.message or item.error_details or "The tool failed.")
        case _:
            return ToolOutputText(to_json(item.to_dict()))


def _media(media_type: str | None, name: str | None, **source: Any) -> ContentBlock:
    kind = (media_type or "").partition("/")[0]
    if kind == "image":
        return ToolOutputImage(mime_type=media_type, **source)
    if kind == "audio":
        return ToolOutputAudio(mime_type=media_type, **source)
    return ToolOutputFileContent(mime_type=media_type, filename=name, **source)


def _decoded(uri: str) -> bytes:
    head, _, data = uri.partition(",")
    try:
        return base64.b64decode(data, validate=True) if ";base64" in head else data.encode()
    except binascii.Error as error:
        raise ToolError(f"The tool returned data that is not valid base64: {error}.") from error


# --- agents of the framework as tools


class _FrameworkRun:
    """One run of an agent. Middleware reports its calls, and its updates contain the text."""

    def __init__(self, agent: Any, usage: Usage, max_turns: int | None) -> None:
        self._agent = agent
        self._usage = usage
        self._max_turns = max_turns
        self._turns = 0
        self._used = Usage()
        self._events: asyncio.Queue[AgentEvent | None] = asyncio.Queue()

    async def events(self, task: str, context: ToolContext[Any]) -> AsyncGenerator[AgentEvent]:
        """Run the agent and yield its events, a `FinalAnswer` or `AgentPaused` last."""
        running = asyncio.create_task(self._run(task, context.context))
        running.add_done_callback(lambda _: self._events.put_nowait(None))
        try:
            while (event := await self._events.get()) is not None:
                yield event
            yield await running
        finally:
            running.cancel()
            if await finish(running, name=str(self._agent.name)) and not running.cancelled():
                running.exception()  # marks it as retrieved: it was raised above, if any

    async def _run(self, task: str, context: Any) -> FinalAnswer | AgentPaused:
        options = {} if context is None else {"function_invocation_kwargs": {"context": context}}
        middleware = [_FrameworkCalls(self._events.put_nowait), _FrameworkTurns(self._count_turn)]
        stream = self._agent.run(task, stream=True, middleware=middleware, **options)
        try:
            async for update in stream:
                for item in update.contents:
                    self._read(item)
            response = await stream.get_final_response()
            # The final response has the total usage, which the updates only have in parts.
            self._used = _usage(response.usage_details or {})
        finally:
            self._usage.add(self._used)
            await stream.close()
        requests = [item for item in response.user_input_requests if item.user_input_request]
        if requests:
            return AgentPaused(", ".join(map(_request, requests)))
        return FinalAnswer(response.text if response.value is None else response.value, response)

    def _read(self, item: Any) -> None:
        if item.type == "text" and item.text:
            self._events.put_nowait(TextDelta(item.text))
        elif item.type == "usage":
            self._used.add(_usage(item.usage_details or {}))

    def _count_turn(self) -> None:
        """Count a model request."""
        if self._max_turns is not None and self._turns >= self._max_turns:
            raise MaxTurnsExceeded(
                f"Agent {self._agent.name!r} did not finish within {self._max_turns} turns. "
                "Raise max_turns if the task needs more."
            )
        self._turns += 1
        self._usage.add(Usage(requests=1))


class _FrameworkCalls(FunctionMiddleware):
    """Middleware that reports the calls of an agent, except those of function tools."""

    def __init__(self, report: Callable[[AgentEvent], None]) -> None:
        self._report = report

    async def process(self, context: Any, call_next: Any) -> None:
        """Report the start and the end of a call."""
        if isinstance(context.function, _FrameworkFunctionTool):
            await call_next()
            return
        call_id = str(context.metadata.get("call_id") or id(context))
        arguments = context.arguments
        if not isinstance(arguments, Mapping):
            arguments = arguments.model_dump()
        self._report(CallStarted(call_id, context.function.name, dict(arguments)))
        failed = True
        try:
            await call_next()
            failed = False
        finally:
            self._report(CallEnded(call_id, failed))


class _FrameworkTurns(ChatMiddleware):
    """Middleware that counts model requests."""

    def __init__(self, count: Callable[[], None]) -> None:
        self._count = count

    async def process(self, context: Any, call_next: Any) -> None:
        """Count the request, then send it."""
        del context
        self._count()
        await call_next()


def _request(item: Any) -> str:
    if item.type == "function_approval_request":
        return f"the approval of {item.function_call.name!r}"
    return f"an answer to {shorten(to_json(item.to_dict()), 300)}"


def _usage(used: Any) -> Usage:
    return Usage(
        input_tokens=used.get("input_token_count") or 0,
        output_tokens=used.get("output_token_count") or 0,
        cached_input_tokens=used.get("cache_read_input_token_count") or 0,
        reasoning_tokens=used.get("reasoning_output_token_count") or 0,
    )
