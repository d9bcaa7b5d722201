"""Tools in the Microsoft Agent Framework, its tools as ours, and its agents as tools."""

from __future__ import annotations

import asyncio
import base64
import binascii
import contextlib
from collections.abc import Mapping
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

try:
    from agent_framework import (
        ChatMiddleware,
        Content,
        FunctionInvocationContext,
        FunctionMiddleware,
        FunctionTool as ForeignTool,
    )
except ImportError as error:
    raise missing("agents_tools.export.agent_framework", "agent-framework", error) from error

from agents_tools._supervisor import finish
from agents_tools._text import shorten
from agents_tools.errors import MaxTurnsExceeded, ToolError, UserTypeError
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    foreign_tool,
)
from agents_tools.export._incoming import imported, incoming
from agents_tools.export._outgoing import (
    Tools,
    application_context,
    blocks_of,
    called,
    exported,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    to_json,
)
from agents_tools.policies import needs_approval
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool", "from_agent_framework", "to_agent_framework"]


@overload
def to_agent_framework(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_agent_framework(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_agent_framework(tools: Any, *, context: Any = None) -> Any:
    """Make tools of the Agent Framework: `Agent(client, tools=to_agent_framework([...]))`.

    The schema is handed over as it is, and the arguments are validated by the tool itself.
    Images, sounds and files become its content items. A failure is answered with our text, for the
    framework's own way would hide it from the model; where `failure_error_function` is `None`, the
    exception reaches the framework. A call that needs a person's approval is denied.

    Args:
        tools: A tool, or several of them.
        context: The application's object, which tools see as `ctx.context`; that of a run of ours
            around, or else the framework's `FunctionInvocationContext`, by default.

    Returns:
        One tool for one, a list for several.

    Raises:
        UserError: It is no tool, or two have one name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _Ours(tool, context)

    return exported(tools, make, "to_agent_framework")


@overload
def from_agent_framework(
    tool: list[ForeignTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_agent_framework(
    tool: ForeignTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_agent_framework(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Make tools of ours of tools of the Agent Framework.

    Arguments are validated by their whole schema before the framework sees them. A tool that asks
    for approval there asks here: it comes with `policies.needs_approval`.

    Args:
        tool: A `FunctionTool` of the framework, or a list of them.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: It is no such tool, or one without a function.
    """

    def make(one: Any) -> FunctionTool[..., Any]:
        return _incoming(one, failure_error_function)

    return imported(tool, ForeignTool, make, "from_agent_framework")


def as_tool(
    agent: Any,
    *,
    tool_name: str | None = None,
    tool_description: str | None = None,
    streaming: bool = False,
    enable_bracketing: bool = True,
    custom_output_extractor: Callable[[Any], Any] | None = None,
    is_enabled: Any = True,
    max_turns: int | None = None,
    parameters: Any = None,
    on_stream: Callable[[Event], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of the Agent Framework. It forgets earlier calls.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; the framework's default if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        inside = _Run(agent, usage, max_turns)
        async with contextlib.aclosing(inside.said(task, context)) as items:
            async for said in items:
                yield said

    return foreign_tool(
        agent.name or "agent",
        run,
        tool_name=tool_name,
        tool_description=tool_description or agent.description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- our tools there

_call_id: ContextVar[str | None] = ContextVar("agent_framework_call_id", default=None)
_SELF = "agents_tools_self"


class _Ours(ForeignTool):
    """A tool of the framework that calls one of ours."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        async def call(agents_tools_invocation: FunctionInvocationContext, **given: Any) -> Any:
            if _SELF in given:
                given["self"] = given.pop(_SELF)
            own = application_context(context, agents_tools_invocation)
            outcome = await called(tool, given, call_id=_call_id.get(), context=own)
            return [_foreign_block(block) for block in blocks_of(outcome.output)]

        super().__init__(
            name=tool.name,
            description=tool.description,
            func=call,
            input_model={"properties": {}, **tool.params_json_schema},
        )

    def __call__(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the function: a parameter of it may be called `self`, too."""
        if "self" in arguments:
            arguments[_SELF] = arguments.pop("self")
        return super().__call__(*args, **arguments)

    async def invoke(self, *, tool_call_id: str | None = None, **options: Any) -> Any:
        """Remember which call it is: functions are not told."""
        token = _call_id.set(tool_call_id)
        try:
            return await super().invoke(tool_call_id=tool_call_id, **options)
        finally:
            _call_id.reset(token)

    def _prepare_arguments(self, arguments: Any) -> dict[str, Any]:
        """Leave validation to our tool, which checks all of the schema and tells what is wrong."""
        if isinstance(arguments, Mapping):
            return dict(cast("Mapping[str, Any]", arguments))
        return {} if arguments is None else arguments.model_dump(exclude_unset=True)


_KINDS = {"image": "image/png", "audio": "audio/wav", "file": "application/octet-stream"}


def _foreign_block(block: ContentBlock) -> Any:
    """Give a block as an item of theirs."""
    if isinstance(block, ToolOutputText):
        return Content.from_text(block.text)
    name = getattr(block, "filename", None)
    kind = block.mime_type or _KINDS[block.type]
    if block.data is not None:
        return Content.from_data(block.data, kind, name=name)
    if block.url is not None:
        inline = block.url.startswith("data:")
        return Content.from_uri(
            block.url, media_type=block.mime_type if inline else kind, name=name
        )
    return Content.from_hosted_file(block.file_id or "", media_type=block.mime_type, name=name)


# --- their tools here


def _incoming(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    if tool.declaration_only:
        raise UserTypeError(
            f"The tool {tool.name!r} of the Agent Framework has no function: it only tells what "
            "somebody else runs. Nothing here could run it."
        )

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        found: Any = await tool.invoke(arguments=arguments, tool_call_id=context.tool_call_id)
        if not isinstance(found, list) or not all(isinstance(item, Content) for item in found):
            return found  # of a tool whose results are not parsed
        items = cast("list[Any]", found)
        return items[0].text if [item.type for item in items] == ["text"] else _own_output(items)

    ours = incoming(
        framework="Agent Framework",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool),
        call=call,
        failure_error_function=failure_error_function,
    )
    return needs_approval()(ours) if tool.approval_mode == "always_require" else ours


def _schema(tool: Any) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", tool.parameters())
    except Exception as error:
        raise UserTypeError(
            f"The Agent Framework cannot make the schema of its tool {tool.name!r}: "
            f"{shorten(str(error), 300)} Give it one with `input_model`."
        ) from error


def _own_output(items: list[Any]) -> list[ContentBlock]:
    return [_own_block(item) for item in items]


def _own_block(item: Any) -> ContentBlock:
    """Give an item of theirs as a block; what we have no block for, as its JSON."""
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
        raise ToolError(f"The tool answered with data that is no base64: {error}.") from error


# --- their agents here


class _Run:
    """One run of an agent: it tells of its calls from inside them, and of its text between them."""

    def __init__(self, agent: Any, usage: Usage, max_turns: int | None) -> None:
        self._agent = agent
        self._usage = usage
        self._max_turns = max_turns
        self._turns = 0
        self._used = Usage()
        self._said: asyncio.Queue[Said | None] = asyncio.Queue()

    async def said(self, task: str, context: ToolContext[Any]) -> AsyncGenerator[Said]:
        """Run the agent and give what it says, an `Answer` or `Waits` last."""
        running = asyncio.create_task(self._follow(task, context.context))
        running.add_done_callback(lambda _: self._said.put_nowait(None))
        try:
            while (said := await self._said.get()) is not None:
                yield said
            yield await running
        finally:
            running.cancel()
            if await finish(running, name=str(self._agent.name)) and not running.cancelled():
                running.exception()  # it has been raised where somebody was there to see it

    async def _follow(self, task: str, context: Any) -> Answer | Waits:
        given = {} if context is None else {"function_invocation_kwargs": {"context": context}}
        middleware = [_Calls(self._said.put_nowait), _Turns(self._turn)]
        stream = self._agent.run(task, stream=True, middleware=middleware, **given)
        try:
            async for update in stream:
                for item in update.contents:
                    self._tell(item)
            response = await stream.get_final_response()
            # The last of the updates tells of all answers again.
            self._used = _usage(response.usage_details or {})
        finally:
            self._usage.add(self._used)
            await stream.close()
        asked = [item for item in response.user_input_requests if item.user_input_request]
        if asked:
            return Waits(", ".join(map(_request, asked)))
        return Answer(response.text if response.value is None else response.value, response)

    def _tell(self, item: Any) -> None:
        if item.type == "text" and item.text:
            self._said.put_nowait(Told(item.text))
        elif item.type == "usage":
            self._used.add(_usage(item.usage_details or {}))

    def _turn(self) -> None:
        """Count that the model is asked."""
        if self._max_turns is not None and self._turns >= self._max_turns:
            raise MaxTurnsExceeded(
                f"Agent {self._agent.name!r} had no answer after {self._max_turns} turns."
            )
        self._turns += 1
        self._usage.add(Usage(requests=1))


class _Calls(FunctionMiddleware):
    """Tells of the calls of an agent; our own tools speak for themselves."""

    def __init__(self, tell: Callable[[Said], None]) -> None:
        self._tell = tell

    async def process(self, context: Any, call_next: Any) -> None:
        """Make the call, and tell of it."""
        if isinstance(context.function, _Ours):
            await call_next()
            return
        call_id = str(context.metadata.get("call_id") or id(context))
        arguments = context.arguments
        given = arguments if isinstance(arguments, Mapping) else arguments.model_dump()
        self._tell(CallBegan(call_id, context.function.name, dict(given)))
        failed = True
        try:
            await call_next()
            failed = False
        finally:
            self._tell(CallEnded(call_id, failed))


class _Turns(ChatMiddleware):
    """Counts how often the model is asked."""

    def __init__(self, count: Callable[[], None]) -> None:
        self._count = count

    async def process(self, context: Any, call_next: Any) -> None:
        """Count, then ask."""
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
