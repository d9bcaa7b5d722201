"""Tools in agents of Strands, its tools as ours, and its agents as tools."""

from __future__ import annotations

import asyncio
import contextlib
import re
import threading
from contextvars import ContextVar
from dataclasses import asdict, fields
from typing import TYPE_CHECKING, Any, cast, overload

from strands import ToolContext as ForeignContext
from strands.interrupt import InterruptException
from strands.tools.decorator import DecoratedFunctionTool
from strands.types.tools import AgentTool

from agents_tools._records import CallOutcome, ToolAnnotations
from agents_tools._supervisor import supervise
from agents_tools._text import shorten
from agents_tools.errors import (
    MaxTurnsExceeded,
    ToolCancelledError,
    ToolDeniedError,
    ToolError,
    UserValueError,
)
from agents_tools.export._approval import decided, is_undecided, says_yes
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
from agents_tools.export._incoming import imported, incoming, say
from agents_tools.export._outgoing import (
    Tools,
    application_context,
    arguments_json,
    blocks_of,
    described,
    exported,
    followed,
    has_failed,
)
from agents_tools.export._until import LOOK, OverError, until
from agents_tools.outputs import (
    ContentBlock,
    ToolOutputFileContent,
    ToolOutputImage,
    ToolOutputText,
)
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

try:
    from strands.types.events import ToolResultEvent
except ImportError:  # before Strands 1.62
    from strands.types._events import ToolResultEvent

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Generator, Mapping

    from strands import Agent

    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool", "from_strands", "to_strands"]


@overload
def to_strands(tools: FunctionTool[..., Any], *, context: Any = None) -> AgentTool: ...
@overload
def to_strands(tools: Tools, *, context: Any = None) -> list[AgentTool]: ...
def to_strands(tools: Any, *, context: Any = None) -> AgentTool | list[AgentTool]:
    """Make tools for agents of Strands.

    What a tool says while it works appears in the agent's stream as `tool_stream_event`, each
    event as JSON. A failed call is a result with the status `error`. A call that needs a person's
    approval interrupts the agent; it runs if the response to the interrupt is `True` or `"yes"`.
    `agent.cancel()` cancels the calls that are going on.

    Args:
        tools: One tool, or several.
        context: The application's object, for tools that ask for it; by default that of the run
            around, or else the agent's `invocation_state`.

    Returns:
        One tool of Strands for one tool, a list for several.

    Raises:
        UserError: It is no tool, or two have the same name.
    """
    return exported(tools, lambda tool: _Tool(tool, context), "to_strands")


def from_strands(tool: Any, *, invocation_state: Mapping[str, Any] | None = None) -> Any:
    """Make our tools of tools of Strands.

    What one yields while it works is said in our events, and a result with the status `error` is
    a failure. Arguments are validated here, before it is called.

    Args:
        tool: An `AgentTool`, such as what `@tool` and its MCP client give; or a list of them.
        invocation_state: What tools find in the state of the agent that calls them; an `agent`
            is part of it for tools with `context=True`.

    Returns:
        One tool for one, a list for a list.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """
    state = dict(invocation_state or {})
    return imported(tool, AgentTool, lambda one: _incoming(one, state), "from_strands")


def as_tool(
    agent: Agent,
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
    preserve_context: bool = False,
    invocation_state: Mapping[str, Any] | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of an agent of Strands. Its calls run one after the other.

    Args:
        agent: The agent.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it; the agent's own description by default.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the framework's result; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; without limit if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        preserve_context: Whether it remembers earlier calls. Otherwise each call starts from what
            the agent has seen by now.
        invocation_state: What its own tools find in their state.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form; or an agent
            with a session manager is to forget.
    """
    if not preserve_context and getattr(agent, "_session_manager", None) is not None:
        raise UserValueError(
            f"Agent {agent.name!r} keeps its conversation with a session manager, so each call "
            "finds the earlier ones. Say so: as_tool(agent, preserve_context=True)."
        )
    turns = _Turns(agent, None if preserve_context else agent.take_snapshot(preset="session"))
    limits: dict[str, Any] = {} if max_turns is None else {"limits": {"turns": max_turns}}

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        async with turns.next():
            before = len(agent.event_loop_metrics.agent_invocations)
            stream: Any = agent.stream_async(
                task,
                invocation_state={"context": context.context, **(invocation_state or {})},
                **limits,
            )
            last: Any = None
            try:
                async for event in stream:
                    last = event.get("result", last)
                    for said in _said(event, agent):
                        yield said
            finally:
                await stream.aclose()
                for invocation in agent.event_loop_metrics.agent_invocations[before:]:
                    usage.add(_usage(invocation))
        yield _last(last, agent.name, max_turns)

    return foreign_tool(
        agent.name,
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


class _Tool(AgentTool):
    """A tool of ours as an agent of Strands calls it."""

    def __init__(self, tool: FunctionTool[..., Any], context: Any) -> None:
        super().__init__()
        self.function_tool = tool
        self._context = context

    @property
    def tool_name(self) -> str:
        return self.function_tool.name

    @property
    def tool_spec(self) -> Any:
        tool = self.function_tool
        spec: dict[str, Any] = {
            "name": tool.name,
            # Their description and that of a span may not be empty.
            "description": tool.description or tool.name,
            "inputSchema": {"json": tool.params_json_schema},
        }
        if tool.annotations is not None:
            hints = asdict(tool.annotations)
            spec["annotations"] = {name: hint for name, hint in hints.items() if hint is not None}
        return spec

    @property
    def tool_type(self) -> str:
        return "function"

    async def stream(
        self, tool_use: Any, invocation_state: dict[str, Any], **kwargs: Any
    ) -> AsyncGenerator[Any]:
        call_id = str(tool_use["toolUseId"])
        args_json = _written(tool_use["input"])
        context = application_context(self._context, invocation_state)
        asker = kwargs.get("_tool_context") or _asker(tool_use, invocation_state)
        tool = await self._admitted(args_json, call_id, context, asker)
        outcome: CallOutcome | None = None
        calls = followed(tool, args_json, call_id=call_id, context=context)
        signal: Any = getattr(asker, "cancel_signal", None) or threading.Event()

        async def is_over() -> bool:
            return signal.is_set()

        try:
            async with contextlib.aclosing(until(is_over, calls)) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                        continue
                    with _closed_with_its_reader(calls, self.tool_name):
                        yield item
        except OverError:
            text = f"The call of {self.tool_name!r} was cancelled."
            error = ToolCancelledError(text)
            outcome = CallOutcome(status="cancelled", value=None, output=text, error=error)
        if outcome is not None:
            yield _result(outcome, call_id)

    async def _admitted(self, args_json: str, call_id: str, context: Any, asker: Any) -> Any:
        """Give the tool with what a person has decided; the agent is interrupted until then."""
        tool = self.function_tool
        if asker is None or not await is_undecided(
            tool, args_json, call_id=call_id, context=context
        ):
            return tool
        reason = {"tool": tool.name, "arguments": args_json}
        response = asker.interrupt(f"approve {tool.name}", reason=reason)
        return decided(tool, says_yes(response))


def _asker(tool_use: Any, invocation_state: dict[str, Any]) -> Any:
    """Give what can interrupt the agent that calls; `None` where no agent does."""
    agent = invocation_state.get("agent")
    if agent is None:
        return None
    signal = getattr(agent, "cancel_signal", None) or threading.Event()
    return ForeignContext(
        tool_use=tool_use, agent=agent, invocation_state=invocation_state, cancel_signal=signal
    )


@contextlib.contextmanager
def _closed_with_its_reader(items: AsyncGenerator[Any], name: str) -> Generator[None]:
    """End a call whose reader is cancelled while it has something to read.

    The executors of Strands then drop what they read from, and do not close it.
    """

    def left(reader: asyncio.Task[Any]) -> None:
        if reader.cancelled():
            supervise(asyncio.ensure_future(_closed(items)), name=name)

    reader = asyncio.current_task()
    if reader is not None:
        reader.add_done_callback(left)
    try:
        yield
    finally:
        if reader is not None:
            reader.remove_done_callback(left)


async def _closed(items: AsyncGenerator[Any]) -> None:
    with contextlib.suppress(RuntimeError):  # it is being closed already
        await items.aclose()


def _written(given: Any) -> str:
    """Give arguments as JSON text, whatever the agent has read from what the model wrote."""
    if isinstance(given, str):
        return given
    return arguments_json({} if given is None else given)


def _result(outcome: CallOutcome, call_id: str) -> ToolResultEvent:
    content = [_content(block) for block in blocks_of(outcome.output)]
    result: Any = {
        "toolUseId": call_id,
        "status": "error" if has_failed(outcome) else "success",
        "content": content or [{"text": ""}],
    }
    return ToolResultEvent(result, exception=outcome.error)


_IMAGES = {"image/png": "png", "image/jpeg": "jpeg", "image/gif": "gif", "image/webp": "webp"}
_DOCUMENTS = {
    "application/pdf": "pdf",
    "text/csv": "csv",
    "application/msword": "doc",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": "docx",
    "application/vnd.ms-excel": "xls",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet": "xlsx",
    "text/html": "html",
    "text/plain": "txt",
    "text/markdown": "md",
}


def _content(block: ContentBlock) -> dict[str, Any]:
    mime_type = getattr(block, "mime_type", None) or ""
    if isinstance(block, ToolOutputImage) and block.data is not None and mime_type in _IMAGES:
        return {"image": {"format": _IMAGES[mime_type], "source": {"bytes": block.data}}}
    if (
        isinstance(block, ToolOutputFileContent)
        and block.data is not None
        and mime_type in _DOCUMENTS
    ):
        # Names are for letters, digits, spaces, hyphens and brackets.
        name = re.sub(r"[^A-Za-z0-9 ()\[\]-]+", "-", block.filename or "document")
        source = {"bytes": block.data}
        return {"document": {"format": _DOCUMENTS[mime_type], "name": name, "source": source}}
    return {"text": described(block)}


# --- their tools here


def _incoming(tool: AgentTool, state: dict[str, Any]) -> FunctionTool[..., Any]:
    if isinstance(tool, _Tool):
        return tool.function_tool
    spec: Any = tool.tool_spec
    schema: Any = spec["inputSchema"]

    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        tool_use: Any = {
            "toolUseId": context.tool_call_id,
            "name": tool.tool_name,
            "input": arguments,
        }
        events: Any = tool.stream(tool_use, {"context": context.context, **state})
        try:
            return await _answer(tool, events, context)
        except InterruptException as waiting:
            raise _waiting(tool.tool_name, [waiting.interrupt]) from None
        finally:
            await events.aclose()

    return incoming(
        framework="Strands",
        name=tool.tool_name,
        description=spec.get("description"),
        schema=schema.get("json", schema),
        call=call,
        annotations=_hints(spec.get("annotations")),
    )


async def _answer(tool: AgentTool, events: Any, context: ToolContext[Any]) -> Any:
    """Say what a tool yields, and give its result: a result event, or else the last of it."""
    last: Any = None
    async for event in events:
        if isinstance(event, dict) and "tool_interrupt_event" in event:
            told = cast("Any", event)["tool_interrupt_event"]
            raise _waiting(tool.tool_name, told["interrupts"])
        if isinstance(event, ToolResultEvent):
            # The last that a decorated generator yields is its result, which comes once more.
            failed = cast("Any", event.tool_result)["status"] == "error"
            if failed or not isinstance(tool, DecoratedFunctionTool):
                say(context, _payload(last))
            return _read(event)
        say(context, _payload(last))
        last = event
    return _payload(last)


def _payload(event: Any) -> Any:
    known: Any = event
    if isinstance(event, dict) and "tool_stream_event" in event:
        return known["tool_stream_event"]["data"]
    return known


def _read(event: ToolResultEvent) -> Any:
    result: Any = event.tool_result
    blocks = [_block(item) for item in result["content"]]
    texts = [block.text for block in blocks if isinstance(block, ToolOutputText)]
    if result["status"] == "error":
        raise ToolError("\n".join(texts) or "The tool failed.") from event.exception
    return "\n".join(texts) if len(texts) == len(blocks) else blocks


def _block(item: dict[str, Any]) -> ContentBlock:
    """Give a piece of a result as one of ours."""
    for kind, types in (("image", _IMAGES), ("document", _DOCUMENTS)):
        data = item.get(kind, {}).get("source", {}).get("bytes")
        if data is not None:
            form = item[kind]["format"]
            mime_type = next((mime for mime, known in types.items() if known == form), None)
            if kind == "image":
                return ToolOutputImage(data=data, mime_type=mime_type)
            name = item[kind].get("name")
            return ToolOutputFileContent(data=data, filename=name, mime_type=mime_type)
    return ToolOutputText(item["text"] if "text" in item else shown(item.get("json", item)))


def _hints(given: Any) -> ToolAnnotations | None:
    names = {field.name for field in fields(ToolAnnotations)}
    known = {name: value for name, value in (given or {}).items() if name in names}
    return ToolAnnotations(**known) if known else None


def _waiting(name: str, interrupts: Any) -> ToolDeniedError:
    return ToolDeniedError(
        f"Tool {name!r} waits for {_asked(interrupts)}, and nobody can be asked where it was "
        "called."
    )


def _asked(interrupts: Any) -> str:
    """Say what people are asked for."""
    told = "; ".join(
        one.name if one.reason is None else f"{one.name}: {shown(one.reason)}" for one in interrupts
    )
    return f"an answer to {shorten(told, _MAX_ASKED)}"


_MAX_ASKED = 300
"""Characters that are told of what an agent was interrupted for."""


# --- their agents here


class _Turns:
    """Lets one call after the other use an agent, and gives each the same beginning.

    An agent takes one call at a time, and refuses any other.
    """

    def __init__(self, agent: Agent, beginning: Any) -> None:
        self._agent = agent
        self._beginning = beginning
        self._taken = threading.Lock()  # calls may come from several event loops

    @contextlib.asynccontextmanager
    async def next(self) -> AsyncGenerator[None]:
        """Wait for a turn, and give it up afterwards."""
        inside = _inside.get()
        if id(self) in inside:
            raise ToolError(f"Agent {self._agent.name!r} cannot be called by itself.")
        while not self._taken.acquire(blocking=False):  # noqa: ASYNC110 - by another loop, maybe
            await asyncio.sleep(LOOK)
        token = _inside.set(inside | {id(self)})
        try:
            if self._beginning is not None:
                self._agent.load_snapshot(self._beginning)
            yield
        finally:
            with contextlib.suppress(ValueError):  # closed from elsewhere
                _inside.reset(token)
            self._taken.release()


_inside: ContextVar[frozenset[int]] = ContextVar("agents_tools_strands", default=frozenset())
"""Whose turns those are that the code here runs in."""


def _said(event: dict[str, Any], agent: Agent) -> list[Said]:
    if isinstance(event.get("data"), str):
        return [Told(event["data"])]
    if "tool_stream_event" in event:
        told = event["tool_stream_event"]
        if _is_ours(agent, told["tool_use"]["name"]):
            return []  # it says so itself
        return [custom(told["data"], call_id=str(told["tool_use"]["toolUseId"]))]
    said: list[Said] = []
    message: Any = event.get("message")
    for block in message["content"] if isinstance(message, dict) else ():
        if "toolUse" in block and not _is_ours(agent, block["toolUse"]["name"]):
            use = block["toolUse"]
            said.append(CallBegan(str(use["toolUseId"]), use["name"], arguments_of(use["input"])))
        elif "toolResult" in block:
            result = block["toolResult"]
            said.append(CallEnded(str(result["toolUseId"]), result["status"] == "error"))
    return said


def _is_ours(agent: Agent, name: str) -> bool:
    return isinstance(agent.tool_registry.registry.get(name), _Tool)


def _last(result: Any, name: str, max_turns: int | None) -> Answer | Waits:
    if result is None:
        raise ToolError(f"Agent {name!r} ended without an answer.")
    match result.stop_reason:
        case "interrupt":
            return Waits(_asked(result.interrupts))
        case "cancelled":
            raise ToolCancelledError(f"Agent {name!r} was cancelled.")
        case "limit_turns":
            raise MaxTurnsExceeded(f"Agent {name!r} did not finish within {max_turns} turns.")
        case _:
            if result.structured_output is not None:
                return Answer(result.structured_output, result)
            return Answer(str(result).removesuffix("\n"), result)


def _usage(invocation: Any) -> Usage:
    used: dict[str, int] = invocation.usage
    read, written = used.get("inputTokens", 0), used.get("outputTokens", 0)
    cached = used.get("cacheReadInputTokens", 0)
    if read + written != used.get("totalTokens", 0):  # the cache is not counted in
        read += cached + used.get("cacheWriteInputTokens", 0)
    return Usage(
        requests=len(invocation.cycles),
        input_tokens=read,
        output_tokens=written,
        cached_input_tokens=cached,
    )
