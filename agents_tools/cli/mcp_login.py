"""Log in to MCP servers and out of them: `mcp login` and `mcp logout`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.errors import CommandError
from agents_tools.cli.mcp_target import configs_of, require_mcp, suppress_mcp_logs
from agents_tools.cli.options import SecondsParam, json_option
from agents_tools.cli.output import print_json, say
from agents_tools.errors import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from agents_tools.mcp import MCPServerConfig

__all__ = ["login_command", "logout_command"]

_EPILOG = (
    "\b\n"
    "SERVER is a URL or an mcpServers file (file.json or file.json:name).\n"
    'Without a name, the command is for the servers of the file with "auth": "oauth".'
)


@click.command("login", epilog=_EPILOG)
@click.argument("server")
@click.option(
    "--timeout",
    type=SecondsParam(),
    metavar="SECONDS",
    help="The time to log in; 300 by default.",
)
@json_option
def login_command(server: str, *, timeout: float | None, as_json: bool, debug: bool) -> None:
    """Log in to SERVER with OAuth, in the browser. The login is stored for all programs."""
    del debug
    from agents_tools.mcp.logins import log_in

    done = _each(server, log_in, timeout)
    if as_json:
        print_json({name: {"login_required": asked} for name, asked in done.items()}, compact=True)
        return
    for name, asked in done.items():
        say(f"Logged in to {name}." if asked else f"{name} does not require a login.")


@click.command("logout", epilog=_EPILOG)
@click.argument("server")
@json_option
def logout_command(server: str, *, as_json: bool, debug: bool) -> None:
    """Delete the stored login to SERVER, and revoke its tokens."""
    del debug
    from agents_tools.mcp.logins import log_out

    done = _each(server, log_out)
    if as_json:
        print_json({name: {"deleted": was_there} for name, was_there in done.items()}, compact=True)
        return
    for name, was_there in done.items():
        say(f"Logged out of {name}." if was_there else f"There is no stored login to {name}.")


def _each(
    server: str,
    action: Callable[[MCPServerConfig], Awaitable[bool]],
    timeout: float | None = None,
) -> dict[str, bool]:
    """Return the results of an action for the servers that a target names.

    Raises:
        CommandError: The target has no server with OAuth, or the action fails.
    """
    from agents_tools.concurrency.bridge import call_async_from_sync

    require_mcp()
    done: dict[str, bool] = {}
    for config in _with_login(server, timeout):
        try:
            with suppress_mcp_logs():
                done[config.name] = call_async_from_sync(action, config)
        except MCPError as error:
            raise CommandError(str(error)) from error
    return done


def _with_login(server: str, timeout: float | None) -> list[MCPServerConfig]:
    from agents_tools.mcp import OAuth

    configs = configs_of(server)
    if len(configs) > 1:
        configs = [config for config in configs if isinstance(config.auth, OAuth)]
    if not configs:
        raise CommandError(
            f'{server} has no server with "auth": "oauth".',
            hint=f"Name the server: {server}:NAME",
        )
    chosen: list[MCPServerConfig] = []
    for config in configs:
        options: Any = config.auth if isinstance(config.auth, OAuth) else OAuth()
        # The person who runs the command is there, and may open the page on another machine.
        options = replace(options, interactive=True)
        if timeout is not None:
            options = replace(options, timeout=timeout)
        chosen.append(replace(config, auth=options))
    return chosen
