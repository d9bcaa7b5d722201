"""Tools in the Claude Agent SDK, its tools as ours, and Claude with its options as a tool."""

from __future__ import annotations

import base64
import binascii
import contextlib
import importlib
from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import (
    TYPE_CHECKING,
    Annotated,
    Any,
    NotRequired,
    Required,
    cast,
    get_args,
    get_origin,
    overload,
)
from weakref import WeakKeyDictionary

from anyio.lowlevel import checkpoint_if_cancelled
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ResultMessage,
    SdkMcpTool,
    StreamEvent,
    TextBlock,
    ToolAnnotations as TheirAnnotations,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    create_sdk_mcp_server,
    query,
)
from pydantic import Field
from typing_extensions import TypedDict, get_type_hints, is_typeddict

from agents_tools._records import CallOutcome, ToolAnnotations
from agents_tools._text import shorten
from agents_tools.errors import MaxTurnsExceeded, ToolError
from agents_tools.export._foreign import (
    Answer,
    CallBegan,
    CallEnded,
    Said,
    Told,
    arguments_of,
    foreign_tool,
)
from agents_tools.export._incoming import imported, incoming
from agents_tools.export._outgoing import (
    Tools,
    blocks_of,
    called,
    described,
    exported,
    followed,
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
from agents_tools.tool import DEFAULT, FunctionTool
from agents_tools.usage import Usage

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from claude_agent_sdk import McpSdkServerConfig, Transport

    from agents_tools.base_tool import BaseTool
    from agents_tools.context import ToolContext
    from agents_tools.events import Event

__all__ = ["as_tool", "from_claude_agent_sdk", "sdk_mcp_server", "to_claude_agent_sdk"]


@overload
def to_claude_agent_sdk(
    tools: FunctionTool[..., Any] | BaseTool, *, context: Any = ...
) -> SdkMcpTool[Any]: ...
@overload
def to_claude_agent_sdk(tools: Tools, *, context: Any = ...) -> list[SdkMcpTool[Any]]: ...
def to_claude_agent_sdk(tools: Any, *, context: Any = None) -> Any:
    """Make tools of the Claude Agent SDK, for `create_sdk_mcp_server(name, tools=[...])`.

    The schema and the annotations are handed over as they are. Text and images reach the model as
    they are, other blocks as a description. A failure is an `is_error` result with our text. In a
    server of the SDK's making, the SDK validates arguments before the tool does, and tells neither
    where they are wrong nor which call it is: where all tools of a server are yours, take
    `sdk_mcp_server`.

    Args:
        tools: A tool, or several of them.
        context: The application's object, which tools see as `ctx.context`.

    Returns:
        One tool for one, a list for several.

    Raises:
        UserError: It is no tool, or two have one name.
    """

    def make(tool: FunctionTool[..., Any]) -> Any:
        return _theirs(tool, context)

    return exported(tools, make, "to_claude_agent_sdk")


def sdk_mcp_server(
    tools: Any, *, name: str = "tools", version: str = "1.0.0", context: Any = None
) -> McpSdkServerConfig:
    """Make an in-process server of tools, for `ClaudeAgentOptions(mcp_servers={"tools": …})`.

    It is the server that `create_sdk_mcp_server` makes, with calls answered here: arguments are
    validated by the tool, calls have the ids that the model gave them, and progress is reported to
    clients that want it (the program behind the SDK does not yet).

    Args:
        tools: A tool, or several of them.
        name: What the server is called.
        version: Its version.
        context: The application's object, which tools see as `ctx.context`.

    Raises:
        UserError: It is no tool, or two have one name.
    """
    found = exported(tools, lambda tool: tool, "sdk_mcp_server")
    given = found if isinstance(found, list) else [found]
    config = create_sdk_mcp_server(name, version, [_theirs(tool, context) for tool in given])
    server = config["instance"]
    _Calls({tool.name: tool for tool in given}, context).answer_in(server)
    _servers[server] = frozenset(tool.name for tool in given)
    return config


@overload
def from_claude_agent_sdk(
    tool: list[SdkMcpTool[Any]], *, failure_error_function: Any = ...
) -> list[FunctionTool[..., Any]]: ...
@overload
def from_claude_agent_sdk(
    tool: SdkMcpTool[Any], *, failure_error_function: Any = ...
) -> FunctionTool[..., Any]: ...
def from_claude_agent_sdk(tool: Any, *, failure_error_function: Any = DEFAULT) -> Any:
    """Make tools of ours of what the `@tool` of the Claude Agent SDK gives.

    Args:
        tool: A `SdkMcpTool`, or a list of them.
        failure_error_function: What the model is told when a call fails; `None` raises.

    Raises:
        UserError: It is no such tool, or its schema cannot be enforced.
    """

    def make(one: Any) -> FunctionTool[..., Any]:
        return _ours(one, failure_error_function)

    return imported(tool, SdkMcpTool, make, "from_claude_agent_sdk")


def as_tool(
    options: ClaudeAgentOptions,
    *,
    name: str = "Claude",
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
    transport: Callable[[], Transport] | None = None,
) -> FunctionTool[..., Any]:
    """Make a tool of the agent that the Claude Agent SDK runs. It forgets earlier calls.

    Args:
        options: What it runs with: its prompt, its tools, what it may do.
        name: What the agent is called.
        tool_name: What models call the tool; made from the agent's name by default.
        tool_description: What models are told about it.
        streaming: Whether what happens inside appears in the caller's stream.
        enable_bracketing: Whether start and end of a call appear there.
        custom_output_extractor: Makes the output from the `ResultMessage`; sync or async.
        is_enabled: Whether agents offer it.
        max_turns: How often its model is asked at most; that of the options if not given.
        parameters: The type of its input; one text `input` by default.
        on_stream: Called with each event from inside; sync or async.
        failure_error_function: What the model is told when the agent fails; `None` raises.
        transport: Makes what a call talks to instead of the program on this machine.

    Raises:
        UserError: The name is not acceptable, or the parameters have no JSON form.
    """
    changes = {} if max_turns is None else {"max_turns": max_turns}
    own = _names_of_ours(options)

    async def run(task: str, context: ToolContext[Any], usage: Usage) -> AsyncGenerator[Said]:
        del context  # the SDK has none
        reader = _Reader(name, own, usage)
        stream: Any = query(
            prompt=task,
            options=replace(options, include_partial_messages=True, **changes),
            transport=None if transport is None else transport(),
        )
        async with contextlib.aclosing(stream) as messages:
            async for message in messages:
                for said in reader.said(message):
                    yield said

    return foreign_tool(
        name,
        run,
        tool_name=tool_name,
        tool_description=tool_description,
        streaming=streaming,
        enable_bracketing=enable_bracketing,
        custom_output_extractor=custom_output_extractor,
        is_enabled=is_enabled,
        parameters=parameters,
        on_stream=on_stream,
        failure_error_function=failure_error_function,
    )


# --- ours to theirs

_mcp: Any = importlib.import_module("mcp.types")  # of either line, as the SDK takes both
_servers: WeakKeyDictionary[Any, frozenset[str]] = WeakKeyDictionary()
"""The names of the tools of ours in servers that answer their calls here."""


def _theirs(tool: FunctionTool[..., Any], context: Any) -> Any:
    async def handler(arguments: dict[str, Any]) -> dict[str, Any]:
        outcome = await called(tool, arguments, context=context)
        return {"content": _content(outcome), "is_error": has_failed(outcome)}

    hints = tool.annotations
    return SdkMcpTool(
        name=tool.name,
        description=tool.description,
        input_schema={"properties": {}, **tool.params_json_schema},
        handler=handler,
        annotations=None if hints is None else TheirAnnotations(**asdict(hints)),
    )


class _Calls:
    """Answers the calls of a server, whichever line of MCP's SDK it is of."""

    def __init__(self, tools: dict[str, FunctionTool[..., Any]], context: Any) -> None:
        self._tools = tools
        self._context = context

    def answer_in(self, server: Any) -> None:
        """Answer the calls of this server."""
        if hasattr(server, "add_request_handler"):
            server.add_request_handler("tools/call", _mcp.CallToolRequestParams, self._second)
            return

        async def first(name: str, arguments: dict[str, Any] | None) -> Any:
            request = server.request_context
            meta: dict[str, Any] = {} if request.meta is None else request.meta.model_dump()
            token = meta.get("progressToken")

            async def report(*progress: Any) -> None:
                await request.session.send_progress_notification(token, *progress)

            result = await self._answer(name, arguments, meta, None if token is None else report)
            await checkpoint_if_cancelled()  # or it would be a second answer to a cancelled call
            return result

        server.call_tool(validate_input=False)(first)

    async def _second(self, request: Any, params: Any) -> Any:
        report = request.session.report_progress
        return await self._answer(params.name, params.arguments, dict(request.meta or {}), report)

    async def _answer(
        self, name: str, arguments: dict[str, Any] | None, meta: dict[str, Any], report: Any
    ) -> Any:
        tool = self._tools.get(name)
        if tool is None:
            return _their_result([_text(f"There is no tool {name!r}.")], failed=True)
        call_id = meta.get("claudecode/toolUseId")
        outcome: Any = None
        try:
            said = followed(tool, arguments or {}, call_id=call_id, context=self._context)
            async with contextlib.aclosing(said) as items:
                async for item in items:
                    if isinstance(item, CallOutcome):
                        outcome = item
                    elif report is not None and item["type"] == "tool_progress_event":
                        await report(item["current"], item["total"], item["message"])
        except Exception as error:  # noqa: BLE001 - what a tool raises that answers for nothing
            return _their_result([_text(str(error))], failed=True)
        return _their_result(_content(outcome), failed=has_failed(outcome))


def _their_result(content: list[dict[str, Any]], *, failed: bool) -> Any:
    return _mcp.CallToolResult.model_validate({"content": content, "isError": failed})


def _content(outcome: CallOutcome) -> list[dict[str, Any]]:
    return [_their_block(block) for block in blocks_of(outcome.output)]


def _text(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def _their_block(block: ContentBlock) -> dict[str, Any]:
    """Give a block as the SDK passes it on: text and images, and nothing else."""
    if isinstance(block, ToolOutputImage) and block.data is not None:
        data = base64.b64encode(block.data).decode()
        return {"type": "image", "data": data, "mimeType": block.mime_type or "image/png"}
    if isinstance(block, ToolOutputText):
        return _text(block.text)
    text = _text_in(block)
    return _text(described(block) + (f"\n{text}" if text else ""))


def _text_in(block: ContentBlock) -> str:
    """Give the text of a file that is one."""
    if not isinstance(block, ToolOutputFileContent) or block.data is None:
        return ""
    try:
        text = block.data.decode()
    except UnicodeDecodeError:
        return ""
    return "" if "\0" in text else text


# --- theirs to ours


def _ours(tool: Any, failure_error_function: Any) -> FunctionTool[..., Any]:
    async def call(context: ToolContext[Any], arguments: dict[str, Any]) -> Any:
        del context  # they take no more than their arguments
        return _result(await tool.handler(arguments))

    return incoming(
        framework="Claude Agent SDK",
        name=tool.name,
        description=tool.description,
        schema=_schema(tool.name, tool.input_schema),
        call=call,
        annotations=_annotations(tool.annotations),
        failure_error_function=failure_error_function,
    )


def _schema(name: str, given: Any) -> Any:
    """Give what they take for a schema: JSON Schema, a typed dict, or types by name."""
    if isinstance(given, dict):
        if isinstance(given.get("type"), str) and "properties" in given:
            return given
        return _typed(name, given) if given else None
    if not is_typeddict(given):
        return None
    hints = get_type_hints(given, include_extras=True)
    return _typed(name, {key: _marked(given, key, hint) for key, hint in hints.items()})


def _typed(name: str, fields: dict[str, Any]) -> Any:
    make: Any = TypedDict  # what pydantic takes on every Python, unlike the one of `typing`
    return make(f"{name}_args", {key: _described(hint) for key, hint in fields.items()})


def _described(hint: Any) -> Any:
    """Make the text that describes a field what pydantic knows as its description."""
    origin = get_origin(hint)
    if origin in {Required, NotRequired}:
        return cast("Any", origin)[_described(get_args(hint)[0])]
    texts = [note for note in get_args(hint)[1:] if isinstance(note, str)]
    if origin is not Annotated or not texts:
        return hint
    return Annotated[hint, Field(description=texts[0])]


def _marked(given: Any, key: str, hint: Any) -> Any:
    """Say of a field whether it may be missing, as its class does."""
    if get_origin(hint) in {Required, NotRequired}:
        return hint
    return Required[hint] if key in given.__required_keys__ else NotRequired[hint]


def _annotations(given: Any) -> ToolAnnotations | None:
    if given is None:
        return None
    known = given.model_dump(by_alias=True, exclude_none=True)
    return ToolAnnotations(
        **{key: known[key] for key in ToolAnnotations.__dataclass_fields__ if key in known}
    )


def _result(given: Any) -> Any:
    if not isinstance(given, Mapping):
        raise ToolError(f"The tool answered {type(given).__name__}, not a result with `content`.")
    result = cast("Mapping[str, Any]", given)
    content = result.get("content", [])
    if not isinstance(content, list):
        raise ToolError(f"The tool answered a `content` that is a {type(content).__name__}.")
    blocks = [_block(item) for item in cast("list[Any]", content)]
    only = blocks[0] if len(blocks) == 1 else None
    seen: Any = only.text if isinstance(only, ToolOutputText) else blocks or ""
    return ToolResult(content=seen, is_error=True) if result.get("is_error") else seen


def _block(item: Any) -> ContentBlock:
    """Give a block of MCP as ours."""
    match item:
        case {"type": "text", "text": str(text)}:
            return ToolOutputText(text)
        case {"type": "image", "data": str(data)}:
            return ToolOutputImage(data=_decoded(data), mime_type=item.get("mimeType"))
        case {"type": "audio", "data": str(data)}:
            return ToolOutputAudio(data=_decoded(data), mime_type=item.get("mimeType"))
        case {"type": "resource", "resource": {"text": str(text)}}:
            return ToolOutputText(text)
        case {"type": "resource", "resource": {"blob": str(data)} as resource}:
            return ToolOutputFileContent(
                data=_decoded(data),
                filename=resource.get("uri"),
                mime_type=resource.get("mimeType"),
            )
        case {"type": "resource_link"}:
            told = (item.get(key) for key in ("name", "uri", "description"))
            return ToolOutputText("\n".join(str(part) for part in told if part))
        case _:
            kind = item.get("type") if isinstance(item, Mapping) else type(item).__name__
            raise ToolError(f"The tool answered a content block that is none of MCP: {kind!r:.60}.")


def _decoded(data: str) -> bytes:
    try:
        return base64.b64decode(data, validate=True)
    except binascii.Error as error:
        raise ToolError(f"The tool answered with data that is no base64: {error}.") from error


# --- Claude as a tool


def _names_of_ours(options: ClaudeAgentOptions) -> frozenset[str]:
    """Give what the model calls those of its tools that are ours: they speak for themselves."""
    servers: Any = options.mcp_servers
    if not isinstance(servers, dict):
        return frozenset()
    found: set[str] = set()
    for name, config in cast("dict[str, Any]", servers).items():
        server = config.get("instance") if config.get("type") == "sdk" else None
        tools = frozenset[str]() if server is None else _servers.get(server, frozenset())
        found |= {f"mcp__{name}__{tool}" for tool in tools}
    return frozenset(found)


class _Reader:
    """Reads the messages of one run."""

    def __init__(self, name: str, own: frozenset[str], usage: Usage) -> None:
        self._name = name
        self._own = own
        self._usage = usage
        self._calls: set[str] = set()
        self._in_pieces = False

    def said(self, message: Any) -> list[Said]:
        """Give what a message says."""
        match message:
            case StreamEvent(event={"delta": {"type": "text_delta", "text": str(text)}}):
                self._in_pieces = True
                return [Told(text, call_id=message.parent_tool_use_id)]
            case AssistantMessage():
                said = [one for block in message.content for one in self._block(block, message)]
                self._in_pieces = False
                return said
            case UserMessage(content=list(blocks)):
                return [one for block in blocks for one in self._block(block, message)]
            case ResultMessage():
                return [self._last(message)]
            case _:
                return []

    def _block(self, block: Any, message: Any) -> list[Said]:
        if isinstance(block, TextBlock) and isinstance(message, AssistantMessage):
            # It has been told already where it came in pieces.
            told = Told(block.text, call_id=message.parent_tool_use_id)
            return [] if self._in_pieces or not block.text else [told]
        if isinstance(block, ToolUseBlock) and block.name not in self._own:
            self._calls.add(block.id)
            return [CallBegan(block.id, block.name, arguments_of(block.input))]
        if isinstance(block, ToolResultBlock) and block.tool_use_id in self._calls:
            return [CallEnded(block.tool_use_id, bool(block.is_error))]
        return []

    def _last(self, result: ResultMessage) -> Said:
        used = result.usage or {}
        read = used.get("cache_read_input_tokens") or 0
        written = used.get("cache_creation_input_tokens") or 0
        self._usage.add(
            Usage(
                requests=result.num_turns,
                input_tokens=(used.get("input_tokens") or 0) + read + written,
                output_tokens=used.get("output_tokens") or 0,
                cached_input_tokens=read,
            )
        )
        if result.subtype == "error_max_turns":
            raise MaxTurnsExceeded(
                f"Agent {self._name!r} had no answer after {result.num_turns} turns."
            )
        if result.is_error:
            why = result.result or "; ".join(result.errors or ()) or result.subtype
            raise ToolError(f"Agent {self._name!r} failed: {shorten(why, 500)}")
        if result.structured_output is not None:
            return Answer(result.structured_output, result)
        return Answer(result.result or "", result)
