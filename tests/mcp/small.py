"""A small server of the SDK, in both of its lines; as a program it is served on stdin and stdout.

In the process of a test it is an object whose attributes say what has happened, and whose tools
can be changed.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import sys
import warnings
from collections.abc import AsyncGenerator, Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import mcp.types as types_of_any_line
from mcp.server.lowlevel import NotificationOptions, Server as AnyServer

from tests.quick_server import running

types: Any = types_of_any_line
Server: Any = AnyServer
LINE = int(metadata.version("mcp").partition(".")[0])
"""The line of the SDK that is installed."""

NOTHING: dict[str, Any] = {"type": "object", "properties": {}}
TEXT: dict[str, Any] = {
    "type": "object",
    "properties": {"text": {"type": "string"}},
    "required": ["text"],
}
SUM: dict[str, Any] = {
    "type": "object",
    "properties": {"sum": {"type": "integer"}},
    "required": ["sum"],
}
NUMBERS: dict[str, Any] = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
FORM: dict[str, Any] = {
    "type": "object",
    "properties": {"size": {"type": "integer"}},
    "required": ["size"],
}
QUESTION = {"mode": "form", "message": "How big?", "requestedSchema": FORM}
PROMPT: dict[str, Any] = {
    "messages": [{"role": "user", "content": {"type": "text", "text": "a line, please"}}],
    "maxTokens": 9,
}


def tool(name: str, description: str = "", schema: dict[str, Any] = NOTHING, **more: Any) -> Any:
    """Return a tool in the form of the list."""
    about = description or f"The tool {name}."
    return {"name": name, "description": about, "inputSchema": schema, **more}


TOOLS = (
    tool("echo", "Give back a text.", TEXT),
    tool("add", "Add.", NUMBERS, outputSchema=SUM),
    tool("wrong", "Break a promise.", outputSchema=SUM),
    tool("fail", "Fail."),
    tool("steps", "Report progress.", {"type": "object", "properties": {"n": {"type": "integer"}}}),
    tool("hang", "Never answer."),
    tool("ask", "Ask a person."),
    tool("infer", "Ask a model."),
    tool("headers", "Show headers.", TEXT),
    tool("session", "Say which session this is."),
    tool("pid", "Say which process this is."),
    tool("once", "Lose the first call.", annotations={"idempotentHint": True}),
)


def said(text: str, **more: Any) -> dict[str, Any]:
    """Return a result with one text."""
    return {"content": [{"type": "text", "text": text}], **more}


class Small:
    """The server.

    Args:
        *tools: What it lists; `TOOLS` by default.
        name: Its name.
        legacy: Whether it knows sessions only.

    Attributes:
        tools: What it lists, by name.
        calls: The tools that were called, with their arguments, in order.
        connections: The connections that it has had.
        sessions: The first session on each of them.
        began: Set by `hang`.
        cancelled: Set when `hang` is cancelled.
        server: The server of the SDK.
    """

    def __init__(self, *tools: Any, name: str = "small", legacy: bool = False) -> None:
        self.tools: dict[str, Any] = {one["name"]: one for one in tools or TOOLS}
        self.calls: list[tuple[str, dict[str, Any]]] = []
        self.connections: list[Any] = []
        self.sessions: list[Any] = []
        self.began = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.bus: Any = None
        self.server: Any = self._one(name) if LINE == 1 else self._two(name, legacy=legacy)

    @property
    def called(self) -> list[str]:
        """Return the names of the called tools."""
        return [name for name, _ in self.calls]

    async def changed(self, *tools: Any, without: tuple[str, ...] = ()) -> None:
        """Change the list of tools, and notify clients."""
        self.tools |= {one["name"]: one for one in tools}
        for name in without:
            del self.tools[name]
        if self.bus is not None:
            from mcp.shared.subscriptions import ToolsListChanged

            await self.bus.publish(ToolsListChanged())
        for session in self.sessions:
            with contextlib.suppress(Exception):
                await session.send_tool_list_changed()

    # --- SDK versions

    def _two(self, name: str, *, legacy: bool) -> Any:
        from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler

        self.bus = InMemorySubscriptionBus()

        async def list_tools(ctx: Any, _params: Any) -> Any:
            self._met(ctx.session)
            return types.ListToolsResult.model_validate({"tools": list(self.tools.values())})

        async def call_tool(ctx: Any, params: Any) -> Any:
            self._met(ctx.session)
            raw = dict(ctx.params or {})
            modern = ctx.protocol_version >= "2026"
            result = await self._call(ctx, params.name, params.arguments or {}, raw, modern=modern)
            if result.get("resultType") == "input_required":
                return types.InputRequiredResult.model_validate(result)
            return types.CallToolResult.model_validate(result)

        def gives(kind: str, made: Any) -> Any:
            async def handle(_ctx: Any, params: Any) -> Any:
                return getattr(types, kind).model_validate(made(params))

            return handle

        server = Server(
            name,
            version="1",
            instructions="Small.",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
            on_list_resources=gives("ListResourcesResult", resources),
            on_list_resource_templates=gives("ListResourceTemplatesResult", templates),
            on_read_resource=gives("ReadResourceResult", contents),
            on_list_prompts=gives("ListPromptsResult", prompts),
            on_get_prompt=gives("GetPromptResult", messages),
            on_subscriptions_listen=ListenHandler(self.bus),
        )
        if legacy:
            del server._request_handlers["server/discover"]
        return server

    def _one(self, name: str) -> Any:
        server = Server(name, version="1", instructions="Small.")

        async def list_tools(_request: Any) -> Any:
            self._met(server.request_context.session)
            listed = types.ListToolsResult.model_validate({"tools": list(self.tools.values())})
            return types.ServerResult(listed)

        async def call_tool(request: Any) -> Any:
            ctx, params = server.request_context, request.params
            self._met(ctx.session)
            result = await self._call(ctx, params.name, params.arguments or {}, {}, modern=False)
            return types.ServerResult(types.CallToolResult.model_validate(result))

        def gives(kind: str, made: Any) -> Any:
            async def handle(request: Any) -> Any:
                return types.ServerResult(getattr(types, kind).model_validate(made(request.params)))

            return handle

        server.request_handlers |= {
            types.ListToolsRequest: list_tools,
            types.CallToolRequest: call_tool,
            types.ListResourcesRequest: gives("ListResourcesResult", resources),
            types.ListResourceTemplatesRequest: gives("ListResourceTemplatesResult", templates),
            types.ReadResourceRequest: gives("ReadResourceResult", contents),
            types.ListPromptsRequest: gives("ListPromptsResult", prompts),
            types.GetPromptRequest: gives("GetPromptResult", messages),
        }
        return server

    def _met(self, session: Any) -> None:
        connection = getattr(session, "_connection", session)
        if connection not in self.connections:
            self.connections.append(connection)
            self.sessions.append(session)

    # --- calls

    async def _call(
        self,
        ctx: Any,
        name: str,
        arguments: dict[str, Any],
        raw: Mapping[str, Any],
        *,
        modern: bool,
    ) -> dict[str, Any]:
        self.calls.append((name, arguments))
        handle = getattr(self, f"_{name}", None)
        if handle is None:
            return said(f"{name} was called")
        if name in {"ask", "infer"}:
            return await handle(ctx, an_object(raw.get("inputResponses")), modern=modern)
        return await handle(ctx, **arguments)

    async def _echo(self, _ctx: Any, text: str = "") -> dict[str, Any]:
        return said(text)

    async def _add(self, _ctx: Any, a: int, b: int) -> dict[str, Any]:
        return said(str(a + b), structuredContent={"sum": a + b})

    async def _wrong(self, _ctx: Any) -> dict[str, Any]:
        return said("a lot", structuredContent={"sum": "a lot"})

    async def _fail(self, _ctx: Any) -> dict[str, Any]:
        return said("The shelf is empty.", isError=True)

    async def _session(self, ctx: Any) -> dict[str, Any]:
        return said(str(len(self.connections)))

    async def _pid(self, _ctx: Any) -> dict[str, Any]:
        return said(str(os.getpid()))

    async def _headers(self, ctx: Any, text: str = "") -> dict[str, Any]:
        request = ctx.request
        return said(f"{text} {request.headers.get('x-user')}")

    async def _once(self, _ctx: Any) -> dict[str, Any]:
        """Exit in the first call; the file records it."""
        if is_new(sys.argv[-1]):
            os._exit(3)
        return said("the second time")

    async def _steps(self, ctx: Any, n: int = 3) -> dict[str, Any]:
        for number in range(1, n + 1):
            if LINE > 1:
                await ctx.session.report_progress(number, n, f"step {number}")
            else:
                await ctx.session.send_progress_notification(
                    ctx.meta.progressToken, number, n, f"step {number}", ctx.request_id
                )
        return said(f"{n} steps")

    async def _hang(self, _ctx: Any) -> dict[str, Any]:
        self.began.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.cancelled.set()
        return said("never")

    async def _ask(self, ctx: Any, answers: dict[str, Any], *, modern: bool) -> dict[str, Any]:
        if not modern:
            answer = (await ctx.session.elicit("How big?", FORM, ctx.request_id)).model_dump()
        elif not answers:
            asked = {"q": {"method": "elicitation/create", "params": QUESTION}}
            return {"resultType": "input_required", "inputRequests": asked, "requestState": "s1"}
        else:
            answer = answers["q"]
        return said(f"{answer['action']} {answer.get('content')}")

    async def _infer(self, ctx: Any, answers: dict[str, Any], *, modern: bool) -> dict[str, Any]:
        if not modern:
            messages = [types.SamplingMessage.model_validate(one) for one in PROMPT["messages"]]
            with warnings.catch_warnings():  # SDK version 2 would do it differently
                warnings.simplefilter("ignore")
                asked = ctx.session.create_message(messages, max_tokens=9)
            answer = (await asked).model_dump()
        elif not answers:
            request = {"q": {"method": "sampling/createMessage", "params": PROMPT}}
            return {"resultType": "input_required", "inputRequests": request}
        else:
            answer = answers["q"]
        return said(answer["content"]["text"])


def is_new(path: str) -> bool:
    """Create a file, and return whether it is new."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def an_object(value: Any) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def resources(_params: Any) -> dict[str, Any]:
    return {"resources": [{"uri": "shelf:///tea", "name": "tea", "mimeType": "text/plain"}]}


def templates(_params: Any) -> dict[str, Any]:
    return {"resourceTemplates": [{"uriTemplate": "shelf:///{what}", "name": "any"}]}


def contents(params: Any) -> dict[str, Any]:
    return {"contents": [{"uri": str(params.uri), "text": f"on the shelf: {params.uri}"}]}


def prompts(_params: Any) -> dict[str, Any]:
    return {"prompts": [{"name": "greet", "arguments": [{"name": "who", "required": True}]}]}


def messages(params: Any) -> dict[str, Any]:
    text = f"Greet {(params.arguments or {}).get('who')}."
    return {"messages": [{"role": "user", "content": {"type": "text", "text": text}}]}


@contextlib.asynccontextmanager
async def listening(app: Any, **tls: Any) -> AsyncGenerator[str]:
    """Serve an ASGI app on a free port of this machine, and yield its address without a path.

    Args:
        app: The app.
        **tls: The options of uvicorn for TLS.
    """
    sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    sock.bind(("127.0.0.1", 0))
    sock.listen(2048)
    port = sock.getsockname()[1]
    try:
        async with running(app, sock, log_level="critical", timeout_keep_alive=60, **tls):
            yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        for left in asyncio.all_tasks():  # the SDK's streams leave one on each loop
            if getattr(left.get_coro(), "__name__", "") == "_shutdown_watcher":
                left.cancel()


@contextlib.asynccontextmanager
async def over_http(small: Small, *, stateless: bool = False, **tls: Any) -> AsyncGenerator[str]:
    """Serve it over HTTP, and yield its address."""
    from mcp.server.streamable_http_manager import StreamableHTTPSessionManager

    made: Any = StreamableHTTPSessionManager
    manager = made(app=small.server, stateless=stateless)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            handle = getattr(manager, "asgi_app", None) or manager.handle_request
            await handle(scope, receive, send)

    async with manager.run(), listening(app, **tls) as address:
        yield f"{address}/mcp"


@contextlib.asynccontextmanager
async def over_sse(small: Small) -> AsyncGenerator[str]:
    """Serve it over the older HTTP transport, and yield its address."""
    from mcp.server.sse import SseServerTransport

    transport = SseServerTransport("/messages")

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            return
        if scope["path"] == "/messages":
            await transport.handle_post_message(scope, receive, send)
            return
        async with transport.connect_sse(scope, receive, send) as (read, write):
            await small.server.run(read, write, options(small))

    async with listening(app) as address:
        yield f"{address}/sse"


def options(small: Small) -> Any:
    """Return the initialization options of a session over streams."""
    return small.server.create_initialization_options(NotificationOptions(tools_changed=True))


def program(*args: str) -> dict[str, Any]:
    """Return the settings with which a manager starts it as a program."""
    return {"command": sys.executable, "args": [str(Path(__file__)), *args]}


async def serve(small: Small) -> None:
    """Serve it on stdin and stdout."""
    from mcp.server.stdio import stdio_server

    async with stdio_server() as (read, write):
        await small.server.run(read, write, options(small))


if __name__ == "__main__":
    asyncio.run(serve(Small()))
