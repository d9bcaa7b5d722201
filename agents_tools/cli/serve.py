"""`serve`: serve the tools of a target over MCP."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from agents_tools.cli.agents import agents_in
from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.execution import attend, cancelled_by_sigterm
from agents_tools.cli.listening import check_host, token_in
from agents_tools.cli.mcp_target import is_mcp, require_mcp
from agents_tools.cli.output import print_json, say
from agents_tools.cli.target import is_agent, load_target, tools_in

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Generator

    from agents_tools.cli.target import Tool
    from agents_tools.mcp import MCPToolManager

__all__ = ["command"]

_EXAMPLE = "export MCP_TOKEN=...; agents-tools serve TARGET --auth-token-env MCP_TOKEN"


@click.command("serve")
@click.argument("target")
@click.option(
    "--transport",
    type=click.Choice(["stdio", "http"]),
    default="stdio",
    show_default=True,
    help="stdio: for a client that starts this command. http: for clients that connect to a URL.",
)
@click.option(
    "--host", default="127.0.0.1", show_default=True, help="http: the address to listen on."
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8000,
    show_default=True,
    help="http: the port; 0 for a free one.",
)
@click.option("--path", default="/mcp", show_default=True, help="http: the path of the server.")
@click.option(
    "--auth-token-env",
    metavar="NAME",
    help="http: the variable with the bearer token that clients must send; by default a random "
    "token for each start.",
)
@click.option(
    "--no-auth", is_flag=True, help="http: accept calls from every program on this machine."
)
@click.option(
    "--allow-host",
    "hosts",
    multiple=True,
    metavar="HOST",
    help="http: an accepted Host header, besides loopback; can be repeated.",
)
@click.option(
    "--allow-origin",
    "origins",
    multiple=True,
    metavar="ORIGIN",
    help="http: the origin of web pages that can call the server; can be repeated.",
)
@click.option(
    "--stateful", is_flag=True, help="http: keep sessions, for clients older than protocol 2026."
)
@click.option("--json-response", is_flag=True, help="http: plain JSON answers, without progress.")
@click.option("--show-errors", is_flag=True, help="Send the messages of all exceptions to clients.")
@click.option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Serve only tools whose names match; can be repeated.",
)
@click.option("--name", default="agents-tools", show_default=True, help="The name of the server.")
@click.option(
    "--json", "as_json", is_flag=True, help="http: print the address as one line of JSON."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    *,
    transport: Literal["stdio", "http"],
    host: str,
    port: int,
    path: str,
    auth_token_env: str | None,
    no_auth: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    stateful: bool,
    json_response: bool,
    show_errors: bool,
    only: tuple[str, ...],
    name: str,
    as_json: bool,
    debug: bool,
) -> None:
    """Serve the tools of TARGET over MCP, until the client disconnects or Ctrl-C.

    Agents of TARGET are served as tools. TARGET can also be MCP servers: a URL, or an mcpServers
    file.
    """
    del debug
    require_mcp()
    if no_auth and auth_token_env is not None:
        raise click.UsageError("--no-auth and --auth-token-env exclude each other.", ctx)
    token = token_in(auth_token_env, example=_EXAMPLE)
    made = None
    if transport == "http":
        check_host(host, token, risk="every machine that can connect could call the tools")
        if token is None and not no_auth:
            token = made = secrets.token_urlsafe(32)
        tools = _tools(target, only)
    else:
        _refuse_http_options(ctx)
        with _redirect_stdio():
            tools = _tools(target, only)
        if sys.stdin.isatty() and sys.stderr.isatty():
            say(f"Serving {_counted(tools)} on standard input and output; Ctrl-D to stop.")
    options: dict[str, Any] = {
        "name": name,
        "auth": token or False,
        "allowed_hosts": hosts,
        "allowed_origins": origins,
        "stateless": not stateful,
        "json_response": json_response,
        "errors": "show" if show_errors else "hide",
        "path": path,
    }
    ready = _announcement(tools, safe=token is not None, made=made, as_json=as_json)

    def work() -> Coroutine[Any, Any, None]:
        return _served(tools, transport, host=host, port=port, on_ready=ready, **options)

    attend(work, slow=_nothing, stopping=_nothing)
    ctx.exit(OK)


async def _served(tools: Any, transport: Literal["stdio", "http"], **options: Any) -> None:
    """Serve until the client disconnects or SIGTERM. The caller handles Ctrl-C.

    Over HTTP, the listener installs its own signal handlers, lets active requests finish, and
    then raises the signal again.
    """
    from agents_tools.mcp import serve_async

    with cancelled_by_sigterm():
        await serve_async(tools, transport, **options)


def _announcement(
    tools: Any, *, safe: bool, made: str | None, as_json: bool
) -> Callable[[str], None]:
    """Return a function that announces the address of the server and its token."""
    out = sys.stdout
    header = {} if made is None else {"authorization": f"Bearer {made}"}

    def ready(address: str) -> None:
        open_to = "" if safe else ", without a token: to every program on this machine"
        say(f"Serving {_counted(tools)} at {address}{open_to}; Ctrl-C to stop.")
        if made is not None:
            say(f"Clients must send: Authorization: Bearer {made}")
        if as_json:
            with contextlib.redirect_stdout(out):  # output of tools goes to standard error
                print_json({"url": address, "token": safe, **header}, compact=True)

    return ready


def _nothing() -> None:
    """Print nothing: the announcement explains how to stop."""


def _refuse_http_options(ctx: click.Context) -> None:
    """Reject options that need HTTP, so that a missing `--transport http` is noticed."""
    for param in ctx.command.params:
        is_set = ctx.get_parameter_source(param.name or "") is ParameterSource.COMMANDLINE
        if is_set and str(getattr(param, "help", "")).startswith("http:"):
            raise click.UsageError(f"{param.opts[0]} requires --transport http.", ctx)


@contextlib.contextmanager
def _redirect_stdio() -> Generator[None]:
    """Keep input and output of a module's import, and of its child processes, off the protocol."""
    sys.stdout.flush()
    originals = os.dup(0), os.dup(1)
    nothing = os.open(os.devnull, os.O_RDONLY)
    try:
        os.dup2(nothing, 0)
        os.dup2(2, 1)
        yield
    finally:
        sys.stdout.flush()
        for number, descriptor in enumerate(originals):
            os.dup2(descriptor, number)
            os.close(descriptor)
        os.close(nothing)


class _SelectedTools:
    """The current tools of MCP servers whose names match the patterns."""

    def __init__(self, manager: MCPToolManager, patterns: tuple[str, ...]) -> None:
        self._manager = manager
        self._patterns = patterns

    def get_tools(self) -> list[Tool]:
        """Return the tools."""
        return _matching(self._manager.get_tools(), self._patterns)


def _tools(target: str, only: tuple[str, ...]) -> Any:
    value = load_target(target)
    if is_mcp(target):
        offered: Any = _SelectedTools(value.manager, only) if only else value.manager
        tools = value.manager.get_tools()
    else:
        offered = tools = _tools_and_agents(value, target)
        offered = _matching(tools, only)
    if only and not _matching(tools, only):
        names = ", ".join(tool.name for tool in tools)
        raise CommandError(
            f"no tool of {target} matches {' or '.join(only)}.", hint=f"Tools: {names}."
        )
    return offered


def _matching(tools: list[Tool], patterns: tuple[str, ...]) -> list[Tool]:
    return [
        tool
        for tool in tools
        if not patterns or any(fnmatchcase(tool.name, pattern) for pattern in patterns)
    ]


def _tools_and_agents(value: Any, target: str) -> list[Tool]:
    if is_agent(value):
        return [value.as_tool()]
    agents = agents_in(value)
    try:
        tools = tools_in(value, target)
    except CommandError:
        if not agents:
            raise
        tools = []
    # An agent that its module already offers as a tool is not served twice.
    known = {tool.origin.agent for tool in tools} | {tool.name for tool in tools}
    made = [agent.as_tool() for agent in agents.values() if agent.name not in known]
    return [*tools, *(tool for tool in made if tool.name not in known)]


def _counted(tools: Any) -> str:
    count = len(tools.get_tools() if hasattr(tools, "get_tools") else tools)
    return "1 tool" if count == 1 else f"{count} tools"
