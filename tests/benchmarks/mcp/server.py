"""The server that all clients are timed against: `server.py stdio|http [TOOLS]`.

Over HTTP it takes a free port and writes its address. The description of its first tool says when
the list was asked for, by the clock that the processes of one machine share.
"""

from __future__ import annotations

import socket
import sys
from time import perf_counter
from typing import TYPE_CHECKING, Any

import anyio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext

LINE = 'Wer früh aufsteht, der "fängt" den Wurm. \n'
ECHO = {
    "type": "object",
    "properties": {
        "text": {"type": "string", "description": "What is said."},
        "times": {"type": "integer", "minimum": 1, "default": 1},
    },
    "required": ["text"],
}
NUMBER = {"type": "object", "properties": {"count": {"type": "integer"}}, "required": ["count"]}
TOOLS = {"echo": ECHO, "lines": NUMBER, "steps": NUMBER}


def build(size: int = len(TOOLS)) -> Server[Any]:
    """Make a server with so many tools; those beyond three only fill its list."""
    schemas = TOOLS | {f"filler_{number}": ECHO for number in range(len(TOOLS), size)}

    async def list_tools(
        context: ServerRequestContext[Any], params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        del context, params
        asked = repr(perf_counter())
        return types.ListToolsResult(
            tools=[
                types.Tool(
                    name=name,
                    description=asked if name == "echo" else f"Does what {name} does, and no more.",
                    input_schema=schema,
                )
                for name, schema in schemas.items()
            ]
        )

    async def call_tool(
        context: ServerRequestContext[Any], params: types.CallToolRequestParams
    ) -> types.CallToolResult:
        arguments = params.arguments or {}
        if params.name == "steps":
            for number in range(arguments["count"]):
                await context.session.report_progress(number + 1, arguments["count"], "step")
            text = "done"
        elif params.name == "lines":
            text = LINE * arguments["count"]
        else:
            text = arguments["text"] * arguments.get("times", 1)
        return types.CallToolResult(content=[types.TextContent(type="text", text=text)])

    return Server("benchmark", on_list_tools=list_tools, on_call_tool=call_tool)


async def serve_stdio(server: Server[Any]) -> None:
    """Serve until the input ends."""
    async with stdio_server() as (reading, writing):
        await server.run(reading, writing, server.create_initialization_options())


async def serve_http(server: Server[Any]) -> None:
    """Serve until a signal ends it."""
    import uvicorn

    config = uvicorn.Config(
        server.streamable_http_app(), log_level="warning", timeout_graceful_shutdown=1
    )
    # Only where the protocol is named does asyncio send at once what is written.
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP) as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        print(f"http://127.0.0.1:{listener.getsockname()[1]}/mcp", flush=True)
        await uvicorn.Server(config).serve(sockets=[listener])


if __name__ == "__main__":
    server = build(*map(int, sys.argv[2:]))
    anyio.run({"stdio": serve_stdio, "http": serve_http}[sys.argv[1]], server)
