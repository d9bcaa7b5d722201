"""Tools in agents of LlamaIndex, its tools as ours, and its agents as tools."""

from __future__ import annotations

import base64
import contextlib
import json
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, cast, overload

from agents_tools.export._missing import missing

try:
    from llama_index.core.agent.workflow import AgentOutput, AgentStream, ToolCall, ToolCallResult
    from llama_index.core.base.llms.types import AudioBlock, DocumentBlock, ImageBlock, TextBlock
    from llama_index.core.tools import (
        BaseTool,
        FunctionTool as ForeignTool,
        ToolMetadata,
        ToolOutput as ForeignOutput,
        adapt_to_async_tool,
    )
    from llama_index.core.workflow import Context, Event, InputRequiredEvent
except ImportError as error:
    raise missing("agents_tools.export.llama_index", "llama-index", error) from error

from agents_tools._bridge import run_sync
from agents_tools._text import shorten
from agents_tools.errors import MaxTurnsExceeded, UserTypeError
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    Waits,
    arguments_of,
    custom,
    foreign_tool,
    shown,
)
from agents_tools.export._incoming import imported, incoming
from agents_tools.export._outgoing import (
    Tools,
    application_context,
    blocks_of,
    called,
    described,
    exported,
    has_failed,
)
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputAudio,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
    ToolResult,
)
from agents_tools.tool import DEFAULT, FunctionTool, copy_json
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools._records import CallOutcome
    from agents_tools.base_tool import BaseTool as ClassTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event as Heard

__all__ = ["ToolEvent", "as_tool", "from_llama_index", "to_llama_index"]


class ToolEvent(Event):
    """What a tool of ours says while it works, in the stream of a workflow.

    Attributes:
        event: The event as JSON, with its `type` and its `tool_call_id`.
    """

    event: dict[str, Any]


@overload
def to_llama_index(
    tools: FunctionTool[..., Any] | ClassTool, *, context: Any = ...
) -> ForeignTool: ...
@overload
def to_llama_index(tools: Tools, *, context: Any = ...) -> list[ForeignTool]: ...
def to_llama_index(tools: Any, *, context: Any = None) -> Any:
    """Make tools of LlamaIndex: `FunctionAgent(tools=to_llama_index([...]), llm=llm)`.

    The schema is handed over as it is, and the arguments are validated by the tool itself. In a
    workflow its events appear in the stream as `ToolEvent`. Blocks of content stay blocks. A
    failure is a `ToolOutput` with `is_error` and our text.

    Args:
        tools: A tool, or several of them.
        context: The application's object, which tools see as `ctx.context`; that of a run of ours
            around, or else the `Context` of the workflow, by default.

    Returns:
        One tool for one, a list for several.

    Raises:
        UserError: It is no tool, or two have one name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _Ours(tool, context)

    return exported(tools, make, "to_llama_index")


@overload
def from_llama_index(
    tool: list[BaseTool], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_llama_index(
    tool: BaseTool, *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_llama_index(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Make tools of ours of tools of LlamaIndex: functions, query engines, retrievers.

    Arguments are validated by the schema, which LlamaIndex does not do.

    Args:
        tool: A tool of LlamaIndex, or a list of them.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: It is no such tool, or it needs the `Context` of a workflow.
    """

    def make(one: Any) -> FunctionTool[..., Any]:
        return _incoming(one, failure_error_function)

    # Their base class is abstract, which makes it no type to a type checker.
    return imported(tool, cast("type[Any]", BaseTool), make, "from_llama_index")


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
    on_stream: Callable[[Heard], Any] | None = None,
    failure_error_function: Any = DEFAULT,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of LlamaIndex, or of an `AgentWorkflow`. It forgets earlier calls.

    Args:
        agent: The agent: what has `run(user_msg=...)`.
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
    name = getattr(agent, "name", None) or "agent"
    limits: dict[str, Any] = {} if max_turns is None else {"max_iterations": max_turns}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        del context  # a workflow has a state of its own
        handler = agent.run(user_msg=task, **limits)
        own = _names_of_ours(agent)
        try:
            async with contextlib.aclosing(handler.stream_events()) as events:
                async for event in events:
                    _count(event, usage)
                    for said in _said(event, own):
                        yield said
                        if isinstance(said, Waits):
                            return
            result = await handler
        except Exception as error:
            if usage.requests == max_turns:  # their error is one of many things
                raise MaxTurnsExceeded(
                    f"Agent {name!r} did not finish within {max_turns} turns."
                ) from error
            raise
        finally:
            if not handler.is_done():
                await handler.cancel_run()
        yield Answer(result.structured_response or str(result.response.content or ""), result)

    return foreign_tool(
        name,
        run,
        tool_name=tool_name,
        tool_description=tool_description or getattr(agent, "description", None),
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- our tools there


@dataclass
class _Metadata(ToolMetadata):
    """What LlamaIndex tells models of a tool of ours: its own schema."""

    fn_schema: Any = None
    parameters: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def fn_schema_str(self) -> str:
        """Give the schema as text, for agents that put it into their prompt."""
        return json.dumps(self.parameters, ensure_ascii=False)

    def get_parameters_dict(self) -> dict[str, Any]:
        """Give the schema; a copy, which may be changed."""
        return cast("dict[str, Any]", copy_json(self.parameters))


class _Ours(ForeignTool):
    """A tool of LlamaIndex that calls one of ours."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        self._tool = tool
        self._context = context

        async def call(**arguments: Any) -> Any:
            return await self.acall(**arguments)

        schema = {"properties": {}, **tool.params_json_schema}
        metadata = _Metadata(name=tool.name, description=tool.description, parameters=schema)
        super().__init__(async_fn=call, metadata=metadata)
        # Workflows put their context there; the name must be none of the tool's own.
        self.requires_context = True
        self.ctx_param_name = "workflow_context"
        while self.ctx_param_name in schema["properties"]:
            self.ctx_param_name += "_"

    def call(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool from sync code."""
        return run_sync(self.acall, *args, **arguments)

    async def acall(self, /, *args: Any, **arguments: Any) -> Any:
        """Call the tool."""
        workflow = arguments.pop(self.ctx_param_name, None)
        names = self._tool.json_schema.get("properties", ())
        # A tool with one argument may be given it alone.
        given = {**dict(zip(names, args, strict=False)), **arguments}
        outcome = await called(
            self._tool,
            given,
            context=application_context(self._context, workflow),
            emit=None if workflow is None else _emitter(workflow),
        )
        if type(outcome.error).__name__ == "WaitingForEvent" and outcome.error is not None:
            raise outcome.error  # no failure: how a workflow waits for what a person says
        return _foreign_output(self._tool.name, given, outcome)


def _emitter(context: Context[Any]) -> Callable[[dict[str, Any]], None]:
    def emit(event: dict[str, Any]) -> None:
        context.write_event_to_stream(ToolEvent(event=event))

    return emit


def _foreign_output(name: str, given: dict[str, Any], outcome: CallOutcome) -> Any:
    error = outcome.error
    return ForeignOutput(
        tool_name=name,
        blocks=[_foreign_block(block) for block in blocks_of(outcome.output)],
        raw_input={"args": (), "kwargs": given},
        raw_output=outcome.value if error is None else str(error),
        is_error=has_failed(outcome),
        exception=error,
    )


def _foreign_block(block: ContentBlock) -> Any:
    """Give a block as one of theirs; what they have none for is described."""
    if isinstance(block, ToolOutputText):
        return TextBlock(text=block.text)
    if block.file_id is not None:
        return TextBlock(text=described(block))
    # They take what looks like base64 for base64, so it always is.
    data = None if block.data is None else base64.b64encode(block.data)
    if isinstance(block, ToolOutputImage):
        return ImageBlock(
            image=data, url=block.url, image_mimetype=block.mime_type, detail=block.detail
        )
    if isinstance(block, ToolOutputAudio):
        kind = (block.mime_type or "").rpartition("/")[2]
        return AudioBlock(audio=data, url=block.url, format=_FORMATS.get(kind, kind) or None)
    kind = block.mime_type or "application/octet-stream"
    return DocumentBlock(data=data, url=block.url, title=block.filename, document_mimetype=kind)


_FORMATS = {"mpeg": "mp3", "x-wav": "wav"}


# --- their tools here


def _incoming(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    name = tool.metadata.get_name()
    if getattr(tool, "requires_context", False):
        raise UserTypeError(
            f"The LlamaIndex tool {name!r} takes the Context of a workflow, and there is none "
            "here. Give it what it needs with `partial_params`, or leave it in its workflow."
        )
    runner = adapt_to_async_tool(tool)

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # they take no more than their arguments
        return _own_output(await runner.acall(**arguments))

    return incoming(
        framework="LlamaIndex",
        name=name,
        description=tool.metadata.description,
        schema=_schema(name, tool),
        call=call,
        failure_error_function=failure_error_function,
    )


def _schema(name: str, tool: Any) -> dict[str, Any]:
    try:
        return cast("dict[str, Any]", tool.metadata.get_parameters_dict())
    except Exception as error:
        raise UserTypeError(
            f"LlamaIndex cannot make the schema of its tool {name!r}: {shorten(str(error), 300)} "
            "Give it one with `fn_schema`, a pydantic model."
        ) from error


def _own_output(given: Any) -> Any:
    if not isinstance(given, ForeignOutput):
        return given
    answer = cast("Any", given)
    if answer.exception is not None:
        raise answer.exception
    blocks = [_own_block(block) for block in answer.blocks]
    seen: Any = blocks
    if all(isinstance(block, ToolOutputText) for block in blocks):
        # Their text of a value is its repr; the value itself has a better one.
        raw = answer.raw_output
        plain = isinstance(raw, (dict, list, tuple, int, float)) and answer.content == str(raw)
        seen = raw if plain else answer.content
    return ToolResult(content=seen, is_error=True) if answer.is_error else seen


def _own_block(block: Any) -> ContentBlock:
    if isinstance(block, TextBlock):
        return ToolOutputText(block.text)
    if isinstance(block, ImageBlock):
        source = _source(block.image, block, block.resolve_image)
        return ToolOutputImage(mime_type=block.image_mimetype, **source)
    if isinstance(block, AudioBlock):
        kind = None if block.format is None else f"audio/{block.format}"
        return ToolOutputAudio(mime_type=kind, **_source(block.audio, block, block.resolve_audio))
    if isinstance(block, DocumentBlock):
        source = _source(block.data, block, block.resolve_document)
        return ToolOutputFileContent(
            filename=block.title or PurePath(str(block.path or "")).name or None,
            mime_type=block.document_mimetype,
            **source,
        )
    return ToolOutputText(block.model_dump_json())


def _source(data: Any, block: Any, resolve: Callable[[], Any]) -> dict[str, Any]:
    """Give what a block holds, or where it is: an address is not loaded here."""
    if data is None and block.path is None and block.url is not None:
        return {"url": str(block.url)}
    return {"data": resolve().read()}


# --- their agents here


def _names_of_ours(agent: Any) -> set[str]:
    """Give the names of our tools in an agent: they speak for themselves."""
    agents = getattr(agent, "agents", None)
    several = list(agents.values()) if isinstance(agents, dict) else [agent]
    tools = [tool for one in several for tool in getattr(one, "tools", None) or ()]
    return {tool.metadata.get_name() for tool in tools if isinstance(tool, _Ours)}


def _said(event: Any, own: set[str]) -> list[Said]:
    match event:
        case AgentStream():
            return [Told(event.delta)] if event.delta else []
        case ToolCallResult():
            failed = event.tool_output.is_error
            return [] if event.tool_name in own else [CallEnded(event.tool_id, failed)]
        case ToolCall():
            begun = CallBegan(event.tool_id, event.tool_name, arguments_of(event.tool_kwargs))
            return [] if event.tool_name in own else [begun]
        case InputRequiredEvent():
            return [Waits(f"an answer to {shorten(shown(event.model_dump(mode='json')), 300)}")]
        case _ if type(event).__module__.startswith(_INTERNAL):
            return []
        case _:
            return [custom(event.model_dump(), type(event).__name__)]


_INTERNAL = ("agents_tools.", "llama_index.", "workflows.")
"""Where events come from that are none of the application's."""


def _count(event: Any, usage: Usage) -> None:
    """Count what an answer of a model used, as far as its provider says so."""
    if not isinstance(event, AgentOutput):
        return
    raw = cast("Any", event).raw
    used: Any = raw.get("usage") if isinstance(raw, dict) else getattr(raw, "usage", None)
    told = used if isinstance(used, dict) else getattr(used, "__dict__", {})

    def number(*names: str) -> int:
        return next((int(told[name]) for name in names if told.get(name) is not None), 0)

    usage.add(
        Usage(
            requests=1,
            input_tokens=number("input_tokens", "prompt_tokens"),
            output_tokens=number("output_tokens", "completion_tokens"),
        )
    )
