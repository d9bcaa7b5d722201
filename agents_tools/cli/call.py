"""`call`: call a tool and show its events."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agents_tools.cli import options
from agents_tools.cli.approvals import TerminalApprover, can_ask, decider
from agents_tools.cli.arguments import arguments_json
from agents_tools.cli.errors import CANCELLED, EXIT_CODES, CommandError
from agents_tools.cli.execution import run_call, say_stopping
from agents_tools.cli.output import console_errors, print_json, say, say_traceback
from agents_tools.cli.render import CallView, choose_view
from agents_tools.cli.results import ArtifactFolder, as_json, print_output, problem_of
from agents_tools.cli.target import Tool, load_tools, pick
from agents_tools.errors import AgentsToolsError
from agents_tools.events.kinds import ToolArtifactEvent
from agents_tools.text.output import release_text
from agents_tools.tool.records import Decision

if TYPE_CHECKING:
    from agents_tools.cli.execution import FinishedCall
    from agents_tools.content.items import ToolApprovalItem
    from agents_tools.events.base import Emit, Event
    from agents_tools.tool.records import CallOutcome

__all__ = ["call", "command"]


@click.command(
    "call",
    context_settings={"ignore_unknown_options": True},
    add_help_option=False,
    options_metavar="[OPTIONS]",
    epilog="\b\n"
    "  name=value     parsed according to the schema; strings stay strings\n"
    "  name:=JSON     raw JSON, for any other value\n"
    "  name=a name=b  an array;  point.x=1  a member of an object\n"
    "\b\n"
    "Exit codes: 0 ok, 1 tool error, 2 usage, 3 invalid arguments, 4 timeout,\n"
    "5 denied, overloaded or lost, 130 cancelled.",
)
@click.argument("target", required=False, metavar="TARGET")
@click.argument("words", nargs=-1, type=click.UNPROCESSED, metavar="TOOL [NAME=VALUE]...")
@click.option("--input-json", metavar="TEXT|@FILE|-", help="All arguments as one JSON object.")
@click.option(
    "--timeout",
    type=options.SecondsParam(),
    metavar="SECONDS",
    help="Stop the call after this time.",
)
@options.approve_option("`ask` denies them.")
@click.option(
    "--events",
    type=click.Choice(["auto", "live", "plain", "ndjson", "none"]),
    default="auto",
    metavar="VIEW",
    help="How events appear on standard error: auto (live on a terminal, else plain), live, "
    "plain, ndjson, none.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no events.")
@click.option(
    "--output",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Save images, files and artifacts in this folder.",
)
@options.json_option
@click.option(
    "-h", "--help", "wants_help", is_flag=True, help="Show this help, or the help of a tool."
)
@click.pass_context
def command(
    ctx: click.Context,
    target: str | None,
    words: tuple[str, ...],
    *,
    input_json: str | None,
    timeout: float | None,
    approve: str,
    events: str,
    quiet: bool,
    output: Path | None,
    as_json: bool,
    debug: bool,
    wants_help: bool,
) -> None:
    """Call a tool. The result goes to standard output, its events to standard error."""
    call(
        ctx,
        target=target,
        words=words,
        input_json=input_json,
        timeout=timeout,
        approve=approve,
        events=events,
        quiet=quiet,
        output=output,
        as_json=as_json,
        debug=debug,
        wants_help=wants_help,
    )


def call(
    ctx: click.Context,
    *,
    target: str | None,
    words: tuple[str, ...],
    input_json: str | None,
    timeout: float | None,
    approve: str,
    events: str,
    quiet: bool,
    output: Path | None,
    as_json: bool,
    debug: bool,
    wants_help: bool,
    tools: list[Tool] | None = None,
) -> None:
    """Run the command; `tools` are the tools of the target if they are already loaded."""
    if target is None:
        if wants_help:
            click.echo(ctx.get_help())
            return
        raise click.UsageError("Missing argument 'TARGET'.", ctx)
    if tools is None:
        tools = load_tools(target)
    tool, rest = _chosen(tools, list(words), target, wants_help=wants_help)
    if tool is None:
        _print_choice(tools, f"{ctx.command_path} {shlex.quote(target)}")
        return
    tool.build()
    if wants_help:
        from agents_tools.cli.tool_help import print_tool_help

        print_tool_help(tool, target, ctx)
        return
    args_json = arguments_json(tool.json_schema, rest, input_json)
    view = choose_view("none" if quiet else events, tool.name)
    folder = None if output is None else ArtifactFolder(output)
    person = TerminalApprover(view) if can_ask() else None
    finished = run_call(
        tool,
        args_json,
        emit=_emit(view, folder),
        timeout=timeout,
        ask=None if person is None else person.answer,
        approve=decider(approve, person) or _no_person,
        slow=view.open,
        stopping=lambda: None if quiet or events in {"ndjson", "none"} else say_stopping(),
    )
    typed = f"{ctx.command_path} {shlex.quote(target)} {tool.name}"
    ctx.exit(_finish(finished, view, folder, compact=as_json, debug=debug, typed=typed))


async def _no_person(item: ToolApprovalItem) -> Decision:
    text = f"A call of {item.name!r} needs approval, and there is no terminal to ask at."
    return Decision(approved=False, message=f"{text} Pass --approve yes to allow it.")


def _chosen(
    tools: list[Tool], words: list[str], target: str, *, wants_help: bool
) -> tuple[Tool | None, list[str]]:
    """Split the words into a tool and its arguments; a single tool needs no name."""
    if words and not words[0].startswith("-") and "=" not in words[0]:
        return pick(tools, words[0], target), words[1:]
    if len(tools) == 1:
        return tools[0], words
    if wants_help:
        return None, words
    names = ", ".join(tool.name for tool in tools)
    raise CommandError(f"{target} has several tools; name one.", hint=f"Tools: {names}.")


def _print_choice(tools: list[Tool], typed: str) -> None:
    click.echo(release_text(f"Usage: {typed} TOOL [NAME=VALUE]...\n\nTools:"))
    from agents_tools.cli.list_ import summary_of
    from agents_tools.cli.output import print_table

    print_table(((tool.name, summary_of(tool)) for tool in tools), indent=2)
    click.echo(release_text(f"\nHelp of a tool: {typed} {tools[0].name} --help"))


def _emit(view: CallView, folder: ArtifactFolder | None) -> Emit:
    if folder is None:
        return view.show

    def emit(event: Event) -> None:
        view.show(event)
        if isinstance(event, ToolArtifactEvent):
            try:
                folder.save_artifact(event)
            except CommandError as error:
                say(str(error), fg="yellow")

    return emit


def _finish(
    finished: FinishedCall,
    view: CallView,
    folder: ArtifactFolder | None,
    *,
    compact: bool,
    debug: bool,
    typed: str,
) -> int:
    """Show how the call ended and return the exit code."""
    outcome = finished.outcome
    if outcome is None:
        told_already = view.close("cancelled", finished.duration, "cancelled")
        if compact:
            record = {"type": "ToolCancelledError", "message": "cancelled"}
            duration = round(finished.duration, 6)
            print_json({"status": "cancelled", "error": record, "duration": duration}, compact=True)
        elif finished.left_behind and not view.for_programs:
            say("cancelled; the call did not stop in time and was abandoned")
        elif not told_already:
            say("cancelled")
        return CANCELLED
    failed = outcome.status != "ok"
    view.close(outcome.status, finished.duration, problem_of(outcome) if failed else None)
    if outcome.error is not None and debug:
        say_traceback(outcome.error)
    if compact:
        print_json(as_json(outcome, finished.duration, folder), compact=True)
    elif outcome.error is None:
        print_output(outcome, folder)
    elif not view.for_programs:
        _print_error(outcome, typed, debug=debug)
    return EXIT_CODES[outcome.status]


def _print_error(outcome: CallOutcome, typed: str, *, debug: bool) -> None:
    hint: str | None = None
    if outcome.status == "invalid_args":
        hint = f"Show the parameters: {typed} --help"
    elif outcome.error is not None and not debug and _is_unexpected(outcome.error):
        hint = "--debug shows the traceback."
    plain = outcome.status in {"tool_error", "invalid_args"}
    console_errors("error:" if plain else f"{outcome.status}:", problem_of(outcome), hint)


def _is_unexpected(error: Exception) -> bool:
    return not isinstance(error, AgentsToolsError) or error.__cause__ is not None
