"""`serve`: the tools of a target as an MCP server."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from fnmatch import fnmatchcase
from typing import Any

import click

from agents_tools.cli.agents import agents_in
from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.mcp_target import is_mcp
from agents_tools.cli.screen import say
from agents_tools.cli.target import is_agent, load_target, tools_in

__all__ = ["command"]


@click.command("serve")
@click.argument("target")
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="stdio: for a client that starts this command. http: on an address.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="http: the address.")
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="http: the port; 0 for a free one.",
)
@click.option("--path", default="/mcp", show_default=True, help="http: where the server is.")
@click.option(
    "--auth-token-env",
    metavar="NAME",
    help="http: the variable with the bearer token that clients have to send.",
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="http: a value of the Host header beside loopback; may be given again.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="http: an origin of web pages that may call; may be given again.",
)
@click.option("--stateful", is_flag=True, help="http: keep sessions, for clients of before 2026.")
@click.option("--json-response", is_flag=True, help="http: plain JSON answers, without progress.")
@click.option("--show-errors", is_flag=True, help="Tell clients the messages of all exceptions.")
@click.option(
    "--only", multiple=True, metavar="PATTERN", help="Serve only tools of such names; may repeat."
)
@click.option(
    "--name", default="agents-tools", show_default=True, help="What the server is called."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    *,
    transport: str,
    host: str,
    port: int,
    path: str,
    auth_token_env: str | None,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    stateful: bool,
    json_response: bool,
    show_errors: bool,
    only: tuple[str, ...],
    name: str,
    debug: bool,
) -> None:
    """Serve the tools of TARGET over MCP, until the client or Ctrl-C ends it.

    Agents of TARGET are served as tools. TARGET may be MCP servers itself.
    """
    del debug
    from agents_tools.mcp import serve_async

    tools = _tools(target, only)
    options: dict[str, Any] = {
        "name": name,
        "auth": _token(auth_token_env),
        "allowed_hosts": hosts,
        "allowed_origins": origins,
        "stateless": not stateful,
        "json_response": json_response,
        "errors": "show" if show_errors else "hide",
        "path": path,
    }
    if transport == "stdio":
        if sys.stdin.isatty():
            say(f"Serving {_counted(tools)} on standard input and output; Ctrl-D ends.")
        served = serve_async(tools, "stdio", **options)
    else:

        def ready(address: str) -> None:
            open_to = "" if options["auth"] else ", to every program on this machine"
            say(f"Serving {_counted(tools)} at {address}{open_to}; Ctrl-C ends.")

        served = serve_async(tools, "http", host=host, port=port, on_ready=ready, **options)
    asyncio.run(_until_ended(served))
    ctx.exit(OK)


async def _until_ended(served: Any) -> None:
    """Serve until it ends by itself, or by SIGTERM or Ctrl-C."""
    task = asyncio.ensure_future(served)
    loop = asyncio.get_running_loop()
    ended = [False]

    def end() -> None:
        ended[0] = True
        task.cancel()

    if os.name == "posix":
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, end)
    try:
        await task
    except asyncio.CancelledError:
        if not ended[0]:
            raise


def _tools(target: str, only: tuple[str, ...]) -> Any:
    value = load_target(target)
    if is_mcp(target) and not only:
        return value.manager  # whose tools are served as they are at the moment
    if is_agent(value):
        tools = [value.as_tool()]
    else:
        agents = agents_in(value)
        try:
            tools = tools_in(value, target)
        except CommandError:
            if not agents:
                raise
            tools = []
        known = {tool.name for tool in tools}
        made = [agent.as_tool() for agent in agents.values()]
        tools = [*tools, *(tool for tool in made if tool.name not in known)]
    if not only:
        return tools
    kept = [tool for tool in tools if any(fnmatchcase(tool.name, one) for one in only)]
    if not kept:
        names = ", ".join(tool.name for tool in tools)
        raise CommandError(f"no tool of {target} is called so.", hint=f"It has: {names}.")
    return kept


def _token(variable: str | None) -> str | None:
    if variable is None:
        return None
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", variable):
        raise CommandError(
            "--auth-token-env takes the name of a variable, not the token itself.",
            hint="export MCP_TOKEN=...; agents-tools serve TARGET --auth-token-env MCP_TOKEN",
        )
    token = os.environ.get(variable)
    if not token:
        raise CommandError(f"the variable {variable} is not set.")
    return token


def _counted(tools: Any) -> str:
    count = len(tools.get_tools() if hasattr(tools, "get_tools") else tools)
    return "1 tool" if count == 1 else f"{count} tools"
