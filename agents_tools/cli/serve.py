"""`serve`: serve the tools of a target over MCP."""

from __future__ import annotations

import contextlib
import os
import secrets
import sys
from typing import TYPE_CHECKING, Any, Literal

import click
from click.core import ParameterSource

from agents_tools.cli.agents import agents_in
from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.execution import attend, cancelled_by_sigterm
from agents_tools.cli.listening import check_host, token_in
from agents_tools.cli.mcp_target import configs_of, is_mcp, require_mcp, suppress_mcp_logs
from agents_tools.cli.output import console_errors, print_json, say
from agents_tools.cli.target import is_agent, load_target, tools_in
from agents_tools.errors import MCPError, UserError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Coroutine, Generator, Sequence

    from agents_tools.cli.target import Tool
    from agents_tools.mcp import MCPGateway, MCPServerConfig

__all__ = ["command"]

_EXAMPLE = "export MCP_TOKEN=...; agents-tools serve TARGET --auth-token-env MCP_TOKEN"


def _read_names(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, str]:
    names: dict[str, str] = {}
    for value in values:
        old, equals, new = value.partition("=")
        if not (old and equals and new):
            raise click.BadParameter(f"expected NAME=NEW, got {value!r}.", ctx, param)
        names[old] = new
    return names


@click.command("serve")
@click.argument("targets", nargs=-1, required=True, metavar="TARGET...")
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
    "--jwt-issuer",
    metavar="URL",
    help="http: accept the JSON Web Tokens of this authorization server instead, where clients "
    "log in (OAuth). Requires --jwt-audience.",
)
@click.option(
    "--jwt-audience",
    metavar="URL",
    help="http: the audience that the tokens must have: the URL of this server for clients.",
)
@click.option(
    "--jwt-scope",
    "scopes",
    multiple=True,
    metavar="SCOPE",
    help="http: a scope that the tokens must have; can be repeated.",
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
    "--allow",
    "only",
    multiple=True,
    metavar="PATTERN",
    help="Serve only tools whose names match; can be repeated.",
)
@click.option(
    "--deny",
    multiple=True,
    metavar="PATTERN",
    help="Leave out tools whose names match; can be repeated.",
)
@click.option(
    "--rename",
    multiple=True,
    metavar="NAME=NEW",
    callback=_read_names,
    help="Serve a tool under another name; can be repeated.",
)
@click.option(
    "--require-approval",
    "approval",
    multiple=True,
    metavar="PATTERN",
    help="Ask the user of the client before calls of tools whose names match; can be repeated.",
)
@click.option(
    "--tool-search",
    is_flag=True,
    help="Serve one tool that searches and one that calls, instead of all definitions.",
)
@click.option(
    "--max-tokens",
    type=click.IntRange(min=1),
    metavar="N",
    help="Search tools as with --tool-search if their definitions have more than N tokens.",
)
@click.option(
    "--tasks",
    multiple=True,
    metavar="PATTERN",
    help="Let clients call tools whose names match as tasks; can be repeated.",
)
@click.option(
    "--store",
    metavar="STORE",
    help="The run store of the tasks (runs.db, postgresql://..., redis://...); memory by default.",
)
@click.option("--name", default="agents-tools", show_default=True, help="The name of the server.")
@click.option(
    "--json", "as_json", is_flag=True, help="http: print the address as one line of JSON."
)
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command(
    ctx: click.Context,
    targets: tuple[str, ...],
    *,
    transport: Literal["stdio", "http"],
    host: str,
    port: int,
    path: str,
    auth_token_env: str | None,
    jwt_issuer: str | None,
    jwt_audience: str | None,
    scopes: tuple[str, ...],
    no_auth: bool,
    hosts: tuple[str, ...],
    origins: tuple[str, ...],
    stateful: bool,
    json_response: bool,
    show_errors: bool,
    only: tuple[str, ...],
    deny: tuple[str, ...],
    rename: dict[str, str],
    approval: tuple[str, ...],
    tool_search: bool,
    max_tokens: int | None,
    tasks: tuple[str, ...],
    store: str | None,
    name: str,
    as_json: bool,
    debug: bool,
) -> None:
    """Serve the tools of one or more TARGETs over MCP, until the client disconnects or Ctrl-C.

    Agents of TARGET are served as tools. TARGET can also be MCP servers: a URL, or an mcpServers
    file. Their tools are then passed on through this server (a gateway).
    """
    del debug
    require_mcp()
    given = {
        "--no-auth": no_auth,
        "--auth-token-env": auth_token_env is not None,
        "--jwt-issuer": jwt_issuer is not None,
    }
    if len(chosen := [option for option, is_given in given.items() if is_given]) > 1:
        raise click.UsageError(f"{' and '.join(chosen)} exclude each other.", ctx)
    if store is not None and not tasks:
        raise click.UsageError("--store requires --tasks.", ctx)
    auth: Any = token_in(auth_token_env, example=_EXAMPLE)
    login = _login(ctx, jwt_issuer, jwt_audience, scopes)
    made = None
    if transport == "http":
        auth = login.pop("auth", auth)
        check_host(host, auth, risk="every machine that can connect could call the tools")
        if auth is None and not no_auth:
            auth = made = secrets.token_urlsafe(32)
    else:
        _refuse_http_options(ctx)
    with contextlib.nullcontext() if transport == "http" else _redirect_stdio():
        gateway = _gateway(
            targets,
            allow=only,
            deny=deny,
            rename=rename,
            require_approval=approval,
            tool_search=tool_search,
            max_tokens=max_tokens,
        )
    options: dict[str, Any] = {
        "name": name,
        "auth": auth or False,
        **login,
        "allowed_hosts": hosts,
        "allowed_origins": origins,
        "stateless": not stateful,
        "json_response": json_response,
        "errors": "show" if show_errors else "hide",
        "path": path,
        "tasks": list(tasks) or False,
        "store": store,
    }
    announce = _announcement(safe=auth is not None, made=made, as_json=as_json)

    def work() -> Coroutine[Any, Any, None]:
        return _served(gateway, transport, announce, host=host, port=port, **options)

    attend(work, slow=_nothing, stopping=_nothing)
    ctx.exit(OK)


def _login(
    ctx: click.Context, issuer: str | None, audience: str | None, scopes: tuple[str, ...]
) -> dict[str, Any]:
    """Return the options of a server whose clients log in at an authorization server."""
    if issuer is None:
        if audience is not None or scopes:
            option = "--jwt-scope" if audience is None else "--jwt-audience"
            raise click.UsageError(f"{option} requires --jwt-issuer.", ctx)
        return {}
    if audience is None:
        raise click.UsageError(
            "--jwt-issuer requires --jwt-audience: tokens for other services would be accepted "
            "otherwise.",
            ctx,
        )
    from agents_tools.mcp import JWTVerifier

    try:
        verifier = JWTVerifier(issuer=issuer, audience=audience, required_scopes=scopes)
    except UserError as error:
        raise CommandError(str(error)) from error
    return {"auth": verifier, "authorization_servers": [issuer], "resource_url": audience}


async def _served(
    gateway: MCPGateway,
    transport: Literal["stdio", "http"],
    announce: Callable[[int, str | None], None],
    **options: Any,
) -> None:
    """Serve until the client disconnects or SIGTERM. The caller handles Ctrl-C.

    Over HTTP, the listener installs its own signal handlers, lets active requests finish, and
    then raises the signal again.
    """
    from agents_tools.mcp import serve_async

    async with _entered(gateway):
        count = len(await gateway.get_tools())
        if transport == "stdio" and sys.stdin.isatty() and sys.stderr.isatty():
            announce(count, None)
        with cancelled_by_sigterm():
            await serve_async(
                gateway,
                transport,
                resources=gateway if gateway.manager.get_server_names() else (),
                prompts=gateway if gateway.manager.get_server_names() else (),
                instructions=gateway.instructions,
                on_ready=lambda address: announce(count, address),
                **options,
            )


@contextlib.asynccontextmanager
async def _entered(gateway: MCPGateway) -> AsyncGenerator[None]:
    """Connect the servers, and report those that fail.

    Raises:
        CommandError: None of the servers can be connected.
    """
    with suppress_mcp_logs():
        try:
            await gateway.__aenter__()
        except MCPError as error:
            raise CommandError(str(error)) from error
    for failure in gateway.manager.failures.values():
        console_errors("warning:", str(failure))
    try:
        yield
    finally:
        await gateway.__aexit__(None, None, None)


def _announcement(
    *, safe: bool, made: str | None, as_json: bool
) -> Callable[[int, str | None], None]:
    """Return a function that announces the number of tools, the address and its token."""
    out = sys.stdout
    header = {} if made is None else {"authorization": f"Bearer {made}"}

    def ready(count: int, address: str | None) -> None:
        tools = "1 tool" if count == 1 else f"{count} tools"
        if address is None:
            say(f"Serving {tools} on standard input and output; Ctrl-D to stop.")
            return
        open_to = "" if safe else ", without a token: to every program on this machine"
        say(f"Serving {tools} at {address}{open_to}; Ctrl-C to stop.")
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


def _gateway(targets: Sequence[str], **options: Any) -> MCPGateway:
    """Return a gateway to the MCP servers of the targets, with the tools of the other ones.

    Raises:
        CommandError: A target cannot be loaded, or two servers have the same name.
    """
    from agents_tools.mcp import MCPGateway

    configs: list[MCPServerConfig] = []
    tools: list[Tool] = []
    for target in targets:
        if is_mcp(target):
            configs += configs_of(target)
        else:
            tools += _tools_and_agents(load_target(target), target)
    return MCPGateway(configs, tools=tools, **options)


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
