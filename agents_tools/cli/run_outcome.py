"""How a run of a command ended, what is printed of it, and the exit code."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from agents_tools.cli.errors import CANCELLED, OK
from agents_tools.cli.output import (
    console_errors,
    is_terminal,
    print_answer,
    print_json,
    print_result,
    say,
)
from agents_tools.errors import (
    AgentsToolsError,
    BudgetExceeded,
    MaxTurnsExceeded,
    RunTimeoutError,
    ToolDeniedError,
    UserError,
)
from agents_tools.ui.console.run_tree import arguments_shown

if TYPE_CHECKING:
    from pathlib import Path

    from agents_tools.agents.config import RunResult

__all__ = ["RunOutcome", "as_json", "exit_code", "report_outcome"]

_FAILED, _USAGE, _TIMEOUT, _WAITING = 1, 2, 4, 5


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
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


def exit_code(ended: RunOutcome) -> int:
    """Return the exit code of a command that has run an agent."""
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


def report_outcome(
    ended: RunOutcome, target: str, state: Path | None, *, answer: bool, debug: bool
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
        written = as_json(value)
        if isinstance(written, str):
            print_result(written)
        else:
            print_json(written, compact=not is_terminal(sys.stdout))


def as_json(value: Any) -> Any:
    """Return an answer as JSON, or as text if it has no JSON form."""
    if value is None or isinstance(value, str):
        return value
    from pydantic_core import from_json

    from agents_tools.content.json_value import to_json

    try:
        return from_json(to_json(value))
    except UserError:
        return str(value)
