"""`run`: run an agent, show its events and print its answer."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from agents_tools.agents.state import RunState
from agents_tools.cli import options
from agents_tools.cli.agents import load_agent
from agents_tools.cli.approvals import can_ask
from agents_tools.cli.arguments import read_input
from agents_tools.cli.errors import CommandError
from agents_tools.cli.output import (
    print_json,
    say_traceback,
)
from agents_tools.cli.run_job import RunJob, check_model
from agents_tools.cli.run_outcome import RunOutcome, as_json, exit_code, report_outcome
from agents_tools.cli.target import parted
from agents_tools.errors import (
    UserError,
)
from agents_tools.text.output import release_text
from agents_tools.ui.console.text_views import NdjsonRun, choose_run_view

if TYPE_CHECKING:
    from agents_tools.ui.console.screen import ScreenRun
    from agents_tools.ui.console.text_views import RunView

__all__ = ["command"]


@click.command(
    "run",
    epilog="\b\n"
    "Exit codes: 0 ok, 1 the run failed, 2 usage, 4 timeout,\n"
    "5 a call waits for approval or was denied, 130 cancelled.",
)
@click.argument("target", metavar="TARGET[:AGENT]")
@click.argument("text", metavar="INPUT|@FILE|-", required=False)
@options.run_options
@options.approve_option("`ask` leaves them waiting and the run ends with exit code 5.")
@click.option(
    "--state",
    "save_to",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The file in which to save a run that waits for approval.",
)
@click.option(
    "--resume",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Resume a saved run, instead of INPUT.",
)
@click.option(
    "--events",
    type=click.Choice(["auto", "live", "screen", "plain", "ndjson", "none"]),
    default="auto",
    metavar="VIEW",
    help="How to show events on standard error: auto (live on a terminal, else plain), live, "
    "screen (the whole terminal, to walk through the calls and cancel them), plain or none; or "
    "ndjson, which writes them as lines of JSON to standard output instead of "
    "the answer.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no events.")
@options.json_option
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    text: str | None,
    *,
    model: str | None,
    max_turns: int,
    timeout: float | None,
    max_cost: float | None,
    approve: str,
    save_to: Path | None,
    resume: Path | None,
    events: str,
    quiet: bool,
    as_json: bool,
    debug: bool,
) -> None:
    """Run an agent. The answer goes to standard output, the events to standard error.

    TARGET is a file or module; :AGENT names the agent if it has several.
    """
    if as_json and events == "ndjson":
        raise CommandError("--json and --events ndjson both write to standard output.")
    source = _input(target, text, resume)
    if isinstance(source, RunState) and not parted(target)[1]:
        target = f"{target}:{source.agent}"
    agent = load_agent(target)
    check_model(agent, model)
    view: RunView
    screen: ScreenRun | None = None
    if events == "ndjson":
        view = NdjsonRun()
    elif events == "screen" and not quiet:
        view = screen = _screen(agent.name)
    else:
        view = choose_run_view("none" if quiet else events, agent.name)
    job = RunJob(
        agent=agent,
        source=source,
        view=view,
        screen=screen,
        model=model,
        max_turns=max_turns,
        timeout=timeout,
        max_cost=max_cost,
        approve=approve,
    )
    ended = job.run()
    if isinstance(view, NdjsonRun) and view.gone:
        raise BrokenPipeError
    view.close(ended.status, ended.duration)
    state = save_to or resume
    if ended.status == "interrupted" and state is not None and ended.result is not None:
        _save(ended.result.to_state(), state)
    if ended.error is not None and debug:
        say_traceback(ended.error)
    if as_json:
        print_json(_record(ended, job), compact=True)
    else:
        report_outcome(ended, target, state, answer=events != "ndjson", debug=debug)
    ctx.exit(exit_code(ended))


# --- the input, the view and the run


def _screen(agent: str) -> ScreenRun:
    """Return the view on the whole terminal."""
    if not can_ask():
        raise CommandError("--events screen requires a terminal.", hint="Use --events plain.")
    from agents_tools.ui.console.screen import ScreenRun

    return ScreenRun(agent)


def _input(target: str, text: str | None, resume: Path | None) -> str | RunState:
    if resume is not None:
        if text is not None:
            raise CommandError("--resume continues a saved run and accepts no INPUT.")
        try:
            return RunState.from_json(resume.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError) as error:
            why = error.strerror if isinstance(error, OSError) else "it is not UTF-8"
            raise CommandError(f"--resume {resume} cannot be read: {why}.") from error
        except UserError as error:
            raise CommandError(f"{resume} is not a saved run: {error}") from error
    if text is None:
        raise CommandError(
            "INPUT is missing.",
            hint=f"agents-tools run {target} 'Your input', or - to read it from standard input.",
        )
    content = read_input(text, "INPUT")
    if not content.strip():
        raise CommandError("the input is empty.")
    return content


# --- the outcome


def _record(ended: RunOutcome, job: RunJob) -> dict[str, Any]:
    """Return a run as one JSON object."""
    result = ended.result
    record: dict[str, Any] = {
        "status": ended.status,
        "output": None if result is None else as_json(result.final_output),
        "usage": (job.usage if result is None else result.usage).to_dict(),
        "items": job.items if result is None else [one.to_dict() for one in result.new_items],
        "interruptions": [] if result is None else [i.to_dict() for i in result.interruptions],
        "run_id": job.run_id if result is None else result.run_id,
        "duration": round(ended.duration, 6),
    }
    if ended.error is not None:
        message = release_text(str(ended.error))
        record["error"] = {"type": type(ended.error).__name__, "message": message}
    return record


def _save(state: RunState, path: Path) -> None:
    """Write a state atomically, readable by its owner only."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        with os.fdopen(
            os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "w"
        ) as file:
            file.write(state.to_json())
        temporary.replace(path)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        raise CommandError(f"--state {path} cannot be written: {error.strerror}.") from error
