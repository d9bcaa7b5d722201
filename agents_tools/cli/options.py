"""Options that commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "PROVIDERS",
    "SecondsParam",
    "approve_option",
    "json_option",
    "run_options",
    "target_argument",
]

CommandT = TypeVar("CommandT", bound="Callable[..., Any]")

PROVIDERS = ("openai_responses", "openai_chat", "anthropic", "gemini", "bedrock", "mcp")
"""The providers of `agents_tools.wire`, repeated here because its import would slow `--help`."""


def json_option(command: CommandT) -> CommandT:
    """Add `--json` and `--debug` to a command."""
    debug = click.option("--debug", is_flag=True, help="Show the traceback of an error.")
    as_json = click.option(
        "--json", "as_json", is_flag=True, help="Print one line of JSON, also for an error."
    )
    return as_json(debug(command))


def approve_option(without_terminal: str) -> Callable[[CommandT], CommandT]:
    """Return the decorator that adds `--approve`.

    Args:
        without_terminal: What `ask` does without a terminal.
    """
    return click.option(
        "--approve",
        type=click.Choice(["ask", "yes", "no"]),
        default="ask",
        show_default=True,
        metavar="ask|yes|no",
        help=f"What to do with calls that need approval. Without a terminal, {without_terminal}",
    )


def target_argument(command: CommandT) -> CommandT:
    """Add the argument `TARGET`: the place of the tools."""
    return click.argument("target")(command)


class SecondsParam(click.ParamType[float]):
    """A positive number of seconds."""

    name = "seconds"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert the text of the option."""
        try:
            found = float(value)
        except ValueError:
            found = 0.0
        if not 0 < found < float("inf"):
            self.fail(f"{value!r} is not a number of seconds above 0.", param, ctx)
        return found


def run_options(command: CommandT) -> CommandT:
    """Add the options of a command that runs an agent: its model and its limits."""
    max_cost = click.option(
        "--max-cost",
        type=click.FloatRange(min=0, min_open=True),
        metavar="DOLLARS",
        help="Stop the run before the next model call once it has cost this much.",
    )
    timeout = click.option(
        "--timeout",
        type=SecondsParam(),
        metavar="SECONDS",
        help="Stop the run after this time.",
    )
    max_turns = click.option(
        "--max-turns",
        type=click.IntRange(min=1),
        default=10,
        show_default=True,
        metavar="N",
        help="The largest number of model calls.",
    )
    model = click.option(
        "--model", metavar="NAME", help="The model of all agents, instead of their own."
    )
    return model(max_turns(timeout(max_cost(command))))
