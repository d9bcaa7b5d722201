"""`mcp install` and `mcp uninstall`: add tools to the configuration of an editor or agent."""

from __future__ import annotations

import difflib
import os
import re
import stat
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.jsonc import remove_member, set_member
from agents_tools.cli.mcp_clients import client_files, titles
from agents_tools.cli.mcp_target import configs_of, is_mcp, require_mcp
from agents_tools.cli.output import is_terminal, paint, say
from agents_tools.cli.target import BUILTIN, load_target, parted
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

__all__ = ["install_command", "uninstall_command"]

_CLIENTS = ("claude-desktop", "claude-code", "cursor", "vscode")
_SECTIONS = {"vscode": "servers"}
_VARIABLES = {"claude-code": "${%s}", "cursor": "${env:%s}", "vscode": "${env:%s}"}
"""The form of an environment variable in the files of a program, if it replaces them."""


def _shared_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options of both commands."""
    for option in (
        click.option("--debug", is_flag=True, help="Show the traceback of an error."),
        click.option("--yes", is_flag=True, help="Write the change without asking."),
        click.option("--dry-run", is_flag=True, help="Show the change and write nothing."),
        click.option(
            "--project", is_flag=True, help="Use the file of this folder, not that of the user."
        ),
        click.option(
            "--client",
            type=click.Choice(_CLIENTS),
            required=True,
            help="The program whose configuration is changed.",
        ),
    ):
        command = option(command)
    return command


@click.command(
    "install",
    epilog="\b\n"
    "  agents-tools mcp install tools.py --client cursor\n"
    "  agents-tools mcp install mcp.json --client claude-desktop --name gateway\n"
    "  agents-tools mcp install tools.py --client vscode --project --env API_KEY",
)
@click.argument("target")
@_shared_options
@click.option("--name", help="The name of the server; that of TARGET by default.")
@click.option(
    "--env",
    multiple=True,
    metavar="NAME[=VALUE]",
    help="A variable for the server; can be repeated. Without a value, the file refers to the "
    "variable of the program, which Claude Desktop does not support.",
)
@click.pass_context
def install_command(
    ctx: click.Context,
    target: str,
    *,
    client: str,
    project: bool,
    dry_run: bool,
    yes: bool,
    debug: bool,
    name: str | None,
    env: tuple[str, ...],
) -> None:
    """Add a server with the tools of TARGET to the configuration of a program.

    The program then starts `agents-tools serve TARGET` with this Python. The change is shown
    before it is written; the previous file is kept with the suffix .bak.
    """
    del debug
    require_mcp()
    name = name or _name_of(target)
    if not re.fullmatch(r"[\w.-]{1,64}", name):
        raise click.UsageError(
            f"the name {name!r} expects up to 64 letters, digits, '_', '-' and '.'.", ctx
        )
    entry = _entry(target, client, env)
    place = _ConfigFile.of(client, project=project)
    text = place.text
    changed = place.edited(lambda: set_member(text, (place.section, name), entry))
    done = f"{name} is in {place.path}. Restart {titles[client]} to use it."
    _change(place, changed, dry_run=dry_run, yes=yes, done=done)
    ctx.exit(OK)


@click.command("uninstall", epilog="\b\n  agents-tools mcp uninstall tools --client cursor")
@click.argument("name")
@_shared_options
@click.pass_context
def uninstall_command(
    ctx: click.Context,
    name: str,
    *,
    client: str,
    project: bool,
    dry_run: bool,
    yes: bool,
    debug: bool,
) -> None:
    """Remove the server NAME from the configuration of a program."""
    del debug
    place = _ConfigFile.of(client, project=project)
    text = place.text
    changed = place.edited(lambda: remove_member(text, (place.section, name)))
    if changed == text:
        say(f"{place.path} has no server {name!r}.")
        ctx.exit(OK)
    _change(place, changed, dry_run=dry_run, yes=yes, done=f"{name} is removed from {place.path}.")
    ctx.exit(OK)


# --- the entry


def _name_of(target: str) -> str:
    """Return a name for a target: that of its attribute, its server or its file."""
    if target.startswith(("http://", "https://")):
        return re.sub(r"[^\w.-]+", "-", target.partition("://")[2].partition("/")[0])
    place, attribute = parted(target)
    path = Path(place)
    stem = path.stem if path.suffix in {".py", ".json", ".jsonc", ".toml"} else path.name
    return re.sub(r"[^\w.-]+", "-", attribute or stem.rpartition(".")[2])


def _entry(target: str, client: str, env: Sequence[str]) -> dict[str, Any]:
    """Return the entry of a server, after checking that its target can be loaded."""
    variables = dict(_variable(one, client) for one in env)
    if is_mcp(target):
        configs_of(target)
    else:
        load_target(target)
    if not target.startswith(("http://", "https://")) and target != BUILTIN:
        place, attribute = parted(target)
        if Path(place).exists():
            target = str(Path(place).resolve()) + (f":{attribute}" if attribute else "")
        else:  # a module, which is searched for in this folder as well
            variables = {"PYTHONPATH": str(Path.cwd()), **variables}
    entry: dict[str, Any] = {"type": "stdio"} if client == "vscode" else {}
    entry |= {"command": sys.executable, "args": ["-m", "agents_tools.cli", "serve", target]}
    return {**entry, "env": variables} if variables else entry


def _variable(option: str, client: str) -> tuple[str, str]:
    """Return the name and the value of a variable in the file of a program."""
    name, equals, value = option.partition("=")
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
        raise click.UsageError(f"--env expects NAME or NAME=VALUE, got {name!r}.")
    if equals:
        return name, value
    if client not in _VARIABLES:
        raise CommandError(
            f"{titles[client]} does not replace variables in its configuration.",
            hint=f"Write the value into the file: --env {name}=VALUE",
        )
    return name, _VARIABLES[client] % name


# --- the file


@dataclass(frozen=True, slots=True, kw_only=True)
class _ConfigFile:
    """The configuration file of a program.

    Attributes:
        path: The path, with symbolic links resolved.
        section: The key of the servers.
        text: The content; empty if the file does not exist.
    """

    path: Path
    section: str
    text: str

    @classmethod
    def of(cls, client: str, *, project: bool) -> _ConfigFile:
        """Read the file of a program.

        Raises:
            CommandError: The program has no such file, or it cannot be read.
        """
        scope = "project" if project else "user"
        files = [file for file in client_files(Path.cwd()) if file.client == client]
        paths = [file.path for file in files if file.scope == scope]
        if not paths:
            raise CommandError(
                f"{titles[client]} has no configuration for one project.",
                hint="Leave out --project.",
            )
        path = paths[0].resolve()
        return cls(path=path, section=_SECTIONS.get(client, "mcpServers"), text=_read(path))

    def edited(self, edit: Callable[[], str]) -> str:
        """Return the content after a change.

        Raises:
            CommandError: The content is not valid JSON, or has another layout.
        """
        from agents_tools.mcp.config import parse_json

        try:
            if self.text.strip():
                parse_json(self.text)
            changed = edit()
            parse_json(changed or "{}")
        except (ValueError, RecursionError, IndexError) as error:
            raise CommandError(
                f"{self.path} cannot be changed: {error}.", hint="Correct the file first."
            ) from error
        return changed.replace("\r\n", "\n").replace("\n", "\r\n") if self._has_crlf else changed

    def write(self, text: str) -> None:
        """Write the content, and keep the previous one in a file with the suffix .bak.

        Raises:
            CommandError: The file has changed since it was read, or cannot be written.
        """
        from agents_tools.mcp.pins import write_atomically

        try:
            if _read(self.path) != self.text:
                raise CommandError(
                    f"{self.path} was changed by another program; nothing was written.",
                    hint="Run the command again.",
                )
            mode = 0o600
            if self.path.exists():
                mode = stat.S_IMODE(self.path.stat().st_mode)
                backup = self.path.with_name(f"{self.path.name}.bak")
                write_atomically(backup, self.text, mode=mode)
            write_atomically(self.path, text, mode=mode)
        except OSError as error:
            raise CommandError(f"{self.path} cannot be written: {error.strerror}.") from error

    @property
    def _has_crlf(self) -> bool:
        return "\r\n" in self.text


def _read(path: Path) -> str:
    try:
        return path.read_bytes().decode("utf-8-sig")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
        raise CommandError(f"{path} cannot be read: {why}.") from error


def _change(place: _ConfigFile, text: str, *, dry_run: bool, yes: bool, done: str) -> None:
    """Show a change, ask, and write it."""
    if text == place.text:
        say(f"Nothing to change: {done}")
        return
    _print_diff(place, text)
    if dry_run:
        return
    if not yes:
        if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
            raise CommandError(
                f"{place.path} was not changed: the change cannot be confirmed without a terminal.",
                hint="--yes writes the change.",
            )
        if not click.confirm("Write this change?", err=True):
            say("Nothing was written.")
            return
    place.write(text)
    say(done)


def _print_diff(place: _ConfigFile, text: str) -> None:
    """Print the changed lines alone: the other lines can contain secrets."""
    name = os.fspath(place.path)
    lines = difflib.unified_diff(
        place.text.splitlines(), text.splitlines(), name, name, n=0, lineterm=""
    )
    for line in lines:
        colour = {"+": "green", "-": "red"}.get(line[:1])
        click.echo(paint(release_text(line, patterns=True), fg=colour))
