"""The command group, and the conversion of errors to messages and exit codes."""

from __future__ import annotations

import contextlib
import difflib
import errno
import importlib
import os
import sys
import threading
import warnings
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

from agents_tools._package import __version__
from agents_tools.cli.errors import BROKEN_PIPE, CANCELLED, FAILED, OK, USAGE, CommandError
from agents_tools.cli.output import (
    console_errors,
    forgiving_streams,
    print_json,
    say,
    say_traceback,
)
from agents_tools.errors import MCPError, UserError
from agents_tools.text.output import release_text

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence
    from typing import TextIO

__all__ = ["cli", "run"]

_COMMANDS = {
    "list": ("list_", "List the tools and agents of a file or module."),
    "show": ("show", "Show one tool or agent: description, parameters and location."),
    "call": ("call", "Call a tool and show its events."),
    "run": ("run", "Run an agent and show its events."),
    "chat": ("chat", "Talk to an agent."),
    "schema": ("schema", "Print tools in the format of a model provider, or compare them."),
    "dev": ("dev", "Try tools and agents on a local web page."),
    "serve": ("serve", "Serve tools and agents over MCP."),
    "mcp": ("mcp", "Inspect MCP servers, and try their tools, resources and prompts."),
    "events": ("events", "List, show, replay and export recorded events."),
    "check": ("check", "Find problems that tools will have with models and providers."),
    "doctor": ("doctor", "Show versions, extras and the state of this installation."),
    "version": ("version", "Print the version."),
}
"""The module of each command, which is loaded on demand, and its line in the help."""

_HELP_ERRORS: Any = getattr(click.exceptions, "NoArgsIsHelpError", ())
"""The error of a group without a command, whose message is the help; since click 8.2."""


class OutputClosedError(Exception):
    """Standard output was closed by its reader."""


class LazyGroup(click.Group):
    """A command group that imports each command on first use."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of use."""
        del ctx
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        del ctx
        if cmd_name not in _COMMANDS:
            return None
        module = importlib.import_module(f"agents_tools.cli.{_COMMANDS[cmd_name][0]}")
        return cast("click.Command", module.command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return a command, or suggest the most similar one."""
        name = args[0]
        if name not in _COMMANDS and not name.startswith("-"):
            near = difflib.get_close_matches(name, _COMMANDS, n=1)
            if near:
                hint = f"Did you mean `agents-tools {near[0]}`?"
            elif name.endswith(".py") or ":" in name:
                hint = f"To see its tools: agents-tools list {name}"
            else:
                hint = f"Commands: {', '.join(_COMMANDS)}."
            raise CommandError(f"unknown command {name!r}.", hint=hint)
        return super().resolve_command(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; convert a broken pipe before click would exit."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands without importing them."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in _COMMANDS.items()])


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog="\b\n"
    "TARGET is file.py, package.module, or either with :attribute; or MCP servers:\n"
    "http://address/mcp, or an mcpServers file (mcp.json, mcp.json:server).\n"
    "  agents-tools list tools.py\n"
    "  agents-tools call tools.py add --help\n"
    "  agents-tools call tools.py add a=1 b=2\n"
    "  agents-tools run agent.py 'What is 1 + 2?' --model local/rules",
)
@click.version_option(__version__, prog_name="agents-tools", message="%(prog)s %(version)s")
def cli() -> None:
    """Try out, inspect and check tools, and run the agents that call them."""


def run(args: Sequence[str] | None = None) -> int:
    """Run a command, and exit the process if threads of the user's code would keep it alive.

    Args:
        args: The command line; `sys.argv` by default.
    """
    forgiving_streams((sys.stdout, sys.stderr))
    typed = list(sys.argv[1:] if args is None else args)
    try:
        with _short_warnings():
            code = _code_of(typed)
        _flush()
    except (OutputClosedError, BrokenPipeError):
        _leave_no_output()
        code = BROKEN_PIPE
    except OSError as error:
        if error.errno not in _NO_SPACE:
            raise
        _leave_no_output()
        with contextlib.suppress(OSError):  # standard error can be a file on the same disk
            say(f"error: the output cannot be written: {error.strerror}.")
        code = FAILED
    if args is None and _held_up():
        with contextlib.suppress(OSError):
            _flush()
        os._exit(code)  # Python would wait for threads that the user's code left running
    return code


@contextlib.contextmanager
def _short_warnings() -> Generator[None]:
    """Print the warnings of this library without the line of its source that they come from."""
    with warnings.catch_warnings():
        show = warnings.showwarning

        def show_short(
            message: Warning | str,
            category: type[Warning],
            filename: str,
            lineno: int,
            file: TextIO | None = None,
            line: str | None = None,
        ) -> None:
            if category.__module__.startswith("agents_tools."):
                say(f"warning: {message}", fg="yellow")
            else:
                show(message, category, filename, lineno, file, line)

        warnings.showwarning = show_short
        yield


_NO_SPACE = {errno.ENOSPC, errno.EDQUOT}


def _code_of(typed: list[str]) -> int:
    """Run a command, report its errors and return the exit code.

    Raises:
        OutputClosedError: Standard output was closed.
    """
    try:
        returned: Any = cli.main(typed, prog_name="agents-tools", standalone_mode=False)
    except CommandError as error:
        _report(typed, str(error), error.hint, error)
    except click.UsageError as error:
        if isinstance(error, _HELP_ERRORS):
            click.echo(error.format_message(), err=True)
            return USAGE
        hint = f"Help: {error.ctx.command_path} --help" if error.ctx else None
        _report(typed, _lowered(error.format_message()), hint, error)
    except click.ClickException as error:
        _report(typed, error.format_message(), None, error)
    except UserError as error:
        _report(typed, str(error), None, error)
    except (KeyboardInterrupt, click.Abort):
        say("cancelled")
        return CANCELLED
    else:
        return returned if isinstance(returned, int) else OK
    return USAGE


def _report(typed: list[str], message: str, hint: str | None, error: Exception) -> None:
    message = release_text(message, patterns=True)
    words = typed[: typed.index("--")] if "--" in typed else typed
    if "--debug" in words:
        cause = error if error.__cause__ is None else error.__cause__
        say_traceback(cause)
    if "--json" in words:
        record = {"type": _public_name(error), "message": message}
        print_json(
            {"status": "usage_error", "error": record | ({"hint": hint} if hint else {})},
            compact=True,
        )
    else:
        console_errors("error:", message, hint)


def _public_name(error: Exception) -> str:
    if isinstance(error.__cause__, MCPError):
        return type(error.__cause__).__name__
    return "UserError" if isinstance(error, UserError) else "UsageError"


def _lowered(message: str) -> str:
    return message[:1].lower() + message[1:]


def _held_up() -> bool:
    main = threading.main_thread()
    return any(t is not main and not t.daemon and t.is_alive() for t in threading.enumerate())


def _flush() -> None:
    """Flush standard output and standard error, if they exist."""
    streams: tuple[TextIO | None, ...] = (sys.stdout, sys.stderr)
    for stream in streams:
        if stream is not None:
            stream.flush()


def _leave_no_output() -> None:
    """Redirect standard output to the null device, so that Python can close it at exit."""
    try:
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, sys.stdout.fileno())
        os.close(nothing)
    except (OSError, ValueError):
        pass
