"""`run`: run an agent, show its events and print its answer."""

from __future__ import annotations

import asyncio
import os
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from agents_tools.agents.config import RunConfig, RunHooks
from agents_tools.agents.runner import Runner
from agents_tools.agents.state import RunState
from agents_tools.cli import options
from agents_tools.cli.agents import load_agent
from agents_tools.cli.approvals import TerminalApprover, can_ask, decide_all, decider
from agents_tools.cli.arguments import read_input
from agents_tools.cli.errors import CANCELLED, OK, CommandError
from agents_tools.cli.execution import attend, say_stopping
from agents_tools.cli.output import (
    console_errors,
    is_terminal,
    print_answer,
    print_json,
    print_result,
    prints_on_stderr,
    say,
    say_traceback,
)
from agents_tools.cli.target import parted
from agents_tools.content.items import item_of_event
from agents_tools.content.usage import Usage
from agents_tools.errors import (
    AgentsToolsError,
    BudgetExceeded,
    MaxTurnsExceeded,
    RunTimeoutError,
    ToolDeniedError,
    UserError,
)
from agents_tools.events.kinds import RunItemStreamEvent, RunStartedEvent
from agents_tools.text.output import release_text
from agents_tools.ui.console.run_tree import arguments_shown
from agents_tools.ui.console.text_views import NdjsonRun, choose_run_view

if TYPE_CHECKING:
    from agents_tools.agents.config import RunResult
    from agents_tools.agents.model import ModelResponse
    from agents_tools.cli.agents import AnyAgent
    from agents_tools.events.base import Event
    from agents_tools.ui.console.text_views import RunView

__all__ = ["command"]

_FAILED, _USAGE, _TIMEOUT, _WAITING = 1, 2, 4, 5


@click.command(
    "run",
    epilog="\b\n"
    "Exit codes: 0 ok, 1 the run failed, 2 usage, 4 timeout,\n"
    "5 a call waits for approval or was denied, 130 cancelled.",
)
@click.argument("target", metavar="TARGET[:AGENT]")
@click.argument("text", metavar="INPUT|@FILE|-", required=False)
@click.option("--model", metavar="NAME", help="The model of all agents, instead of their own.")
@click.option(
    "--max-turns",
    type=click.IntRange(min=1),
    default=10,
    show_default=True,
    metavar="N",
    help="The largest number of model calls.",
)
@click.option(
    "--timeout",
    type=options.SecondsParam(),
    metavar="SECONDS",
    help="Stop the run after this time.",
)
@click.option(
    "--max-cost",
    type=click.FloatRange(min=0, min_open=True),
    metavar="DOLLARS",
    help="Stop the run before the next model call once it has cost this much.",
)
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
    type=click.Choice(["auto", "live", "plain", "ndjson", "none"]),
    default="auto",
    metavar="VIEW",
    help="How to show events on standard error: auto (live on a terminal, else plain), live, "
    "plain or none; or ndjson, which writes them as lines of JSON to standard output instead of "
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
    _check_model(agent, model)
    view: RunView
    if events == "ndjson":
        view = NdjsonRun()
    else:
        view = choose_run_view("none" if quiet else events, agent.name)
    job = _RunJob(
        agent=agent,
        source=source,
        view=view,
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
        _report(ended, target, state, answer=events != "ndjson", debug=debug)
    ctx.exit(_exit_code(ended))


# --- the input and the run


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


def _check_model(agent: AnyAgent, name: str | None) -> None:
    """Report a missing model before the run starts."""
    if name is None and agent.model is None and not os.environ.get("AGENTS_TOOLS_MODEL"):
        raise CommandError(
            f"agent {agent.name!r} has no model.",
            hint="Pass --model local/rules (offline, a few rules), --model openai/gpt-5, …; or set "
            "Agent(model=...) or AGENTS_TOOLS_MODEL.",
        )
    from agents_tools.agents.model import load_model

    if name is not None:
        with prints_on_stderr():
            load_model(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class _RunOutcome:
    """How a run ended.

    Attributes:
        status: `ok`, `interrupted`, `error`, `timeout` or `cancelled`.
        duration: The duration in seconds.
        result: The result, partial after an error; `None` if the run was cancelled.
        error: The error that ended the run.
        left_behind: Whether a part of the run continues after its grace period.
    """

    status: str
    duration: float
    result: RunResult[Any] | None = None
    error: Exception | None = None
    left_behind: bool = False


@dataclass(slots=True, kw_only=True)
class _RunJob:
    """One run from the command line.

    Attributes:
        agent: The agent.
        source: The input, or the state to resume.
        view: The view that shows the run.
        model: The model instead of the agents' own.
        max_turns: The largest number of model calls.
        timeout: The largest duration of the run in seconds.
        max_cost: The largest cost of the run in US dollars.
        approve: `ask`, `yes` or `no`.
        run_id: The id of the run, once it has started.
        items: The items that the run has added to the conversation, as JSON.
        usage: The usage so far.
    """

    agent: AnyAgent
    source: str | RunState
    view: RunView
    model: str | None
    max_turns: int
    timeout: float | None
    max_cost: float | None
    approve: str
    run_id: str | None = None
    items: list[Any] = field(default_factory=list[Any])
    usage: Usage = field(default_factory=Usage)
    _task: asyncio.Task[Any] | None = None

    def run(self) -> _RunOutcome:
        """Run the agent to its end, its timeout or a Ctrl-C."""
        quiet = isinstance(self.view, NdjsonRun)
        done = attend(
            self._run, slow=self.view.open, stopping=(lambda: None) if quiet else say_stopping
        )
        result = done.value
        if result is None:
            return _RunOutcome(
                status="cancelled", duration=done.duration, left_behind=done.left_behind
            )
        if isinstance(result, Exception):
            return _RunOutcome(
                status="timeout" if isinstance(result, RunTimeoutError) else "error",
                duration=done.duration,
                result=getattr(result, "run_result", None),
                error=result,
            )
        status = "interrupted" if result.interruptions else "ok"
        return _RunOutcome(status=status, duration=done.duration, result=result)

    def publish(self, event: Event, /) -> None:
        """Show and record an event of the run."""
        if not event.path and isinstance(event, RunStartedEvent):
            self.run_id = event.run_id
        elif not event.path and isinstance(event, RunItemStreamEvent) and event.name != "input":
            item = item_of_event(cast("RunItemStreamEvent[Any]", event))
            self.items.append(dict(event.item) if item is None else item.to_dict())
        self.view.show(cast("Event", event))
        if isinstance(self.view, NdjsonRun) and self.view.gone and self._task is not None:
            self._task.get_loop().call_soon_threadsafe(self._task.cancel)

    async def _run(self) -> RunResult[Any] | Exception:
        """Return the result, or the exception that the run raised."""
        self._task = asyncio.current_task()
        try:
            return await self._result()
        except Exception as error:  # noqa: BLE001 - the caller shows every failure
            return error

    async def _result(self) -> RunResult[Any]:
        person = TerminalApprover(self.view) if can_ask() else None
        decide = decider(self.approve, person)
        config = RunConfig(
            model=self.model,
            timeout=self.timeout,
            max_cost=self.max_cost,
            approve=decide,
            ask=None if person is None else person.answer,
            event_stream=self,
        )
        if isinstance(self.source, RunState) and decide is not None:
            await decide_all(self.source, decide)
        result = await self._step(self.source, config)
        while (
            result.interruptions and decide is not None
        ):  # from agents with a RunConfig of their own
            state = result.to_state()
            await decide_all(state, decide)
            result = await self._step(state, config)
        return result

    async def _step(self, source: str | RunState, config: RunConfig) -> RunResult[Any]:
        return await Runner.run(
            self.agent,
            source,
            max_turns=self.max_turns,
            run_config=config,
            hooks=_UsageMeter(self),
        )

    def count(self, path: tuple[str, ...], usage: Usage) -> None:
        """Add the usage of one model response."""
        self.usage.add(usage)
        self.view.count(path, usage)


class _UsageMeter(RunHooks[Any]):
    """Counts the usage of the models of a run, for each agent.

    Args:
        job: The run whose usage is counted.
    """

    def __init__(self, job: _RunJob) -> None:
        self._job = job

    async def on_llm_end(self, context: Any, agent: Any, response: ModelResponse) -> None:
        """Count a model response."""
        del agent
        self._job.count(context.path, response.usage)


# --- the outcome


def _exit_code(ended: _RunOutcome) -> int:
    if isinstance(ended.error, ToolDeniedError):
        return _WAITING
    if isinstance(ended.error, UserError):
        return _USAGE
    return {
        "ok": OK,
        "interrupted": _WAITING,
        "timeout": _TIMEOUT,
        "cancelled": CANCELLED,
    }.get(ended.status, _FAILED)


def _report(
    ended: _RunOutcome, target: str, state: Path | None, *, answer: bool, debug: bool
) -> None:
    """Print the answer, or the reason why there is none and a hint."""
    if ended.error is not None:
        error = ended.error
        known = isinstance(error, AgentsToolsError)
        message = str(error) if known else f"{type(error).__name__}: {error}"
        console_errors("error:", message, _hint(error, debug=debug))
    elif ended.status == "cancelled":
        more = "; a part did not stop in time and was abandoned" if ended.left_behind else ""
        say(f"cancelled{more}")
    elif ended.result is not None and ended.status == "interrupted":
        _report_waiting(ended.result, target, state)
    elif ended.result is not None and answer:
        _print_answer(ended.result.final_output)


def _hint(error: Exception, *, debug: bool) -> str | None:
    if isinstance(error, MaxTurnsExceeded):
        return "--max-turns N allows more."
    if isinstance(error, RunTimeoutError):
        return "--timeout SECONDS allows more."
    if isinstance(error, BudgetExceeded):
        return "--max-cost DOLLARS allows more."
    if debug or isinstance(error, AgentsToolsError):
        return None
    return "--debug shows the traceback."


def _report_waiting(result: RunResult[Any], target: str, state: Path | None) -> None:
    for item in result.interruptions:
        console_errors(
            "waits for approval:",
            f"{item.name} {arguments_shown(item.arguments, 400)}",
        )
    if state is None:
        say(
            "To resume: run again with --approve yes (or no); or save it with --state FILE, then "
            f"agents-tools run {target} --resume FILE --approve yes",
            dim=True,
        )
    else:
        say(
            f"Saved. To resume: agents-tools run {target} --resume {state} --approve yes (or no)",
            dim=True,
        )


def _print_answer(value: Any) -> None:
    if value is None or value == "":
        say("(the answer is empty)", dim=True)
    elif isinstance(value, str):
        print_answer(value)
    else:
        written = _as_json(value)
        if isinstance(written, str):
            print_result(written)
        else:
            print_json(written, compact=not is_terminal(sys.stdout))


def _as_json(value: Any) -> Any:
    """Return an answer as JSON, or as text if it has no JSON form."""
    if value is None or isinstance(value, str):
        return value
    from pydantic_core import from_json

    from agents_tools.content.json_value import to_json

    try:
        return from_json(to_json(value))
    except UserError:
        return str(value)


def _record(ended: _RunOutcome, job: _RunJob) -> dict[str, Any]:
    """Return a run as one JSON object."""
    result = ended.result
    record: dict[str, Any] = {
        "status": ended.status,
        "output": None if result is None else _as_json(result.final_output),
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
