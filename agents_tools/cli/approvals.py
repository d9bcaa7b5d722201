"""Ask the person at the terminal for approvals, and for answers to questions of tools."""

from __future__ import annotations

import asyncio
import json
import os
import sys
import threading
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import click

from agents_tools.cli.output import is_terminal, paint
from agents_tools.cli.questions import answer_question
from agents_tools.concurrency.future import PendingFuture
from agents_tools.text.output import release_text
from agents_tools.tool.records import Decision
from agents_tools.ui.console.run_tree import indented_json

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractContextManager

    from agents_tools.agents.state import RunState
    from agents_tools.content.items import ToolApprovalItem
    from agents_tools.tool.question import Question

T = TypeVar("T")

__all__ = ["TerminalApprover", "can_ask", "decide_all", "decider"]


def can_ask() -> bool:
    """Return whether a person reads standard error and types on standard input."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


class View(Protocol):
    """Shows a run or a call on the screen."""

    def aside(self) -> AbstractContextManager[None]:
        """Free the screen for a question while the block runs."""
        ...


class TerminalApprover:
    """Asks the person at the terminal, one question at a time.

    Args:
        view: The view on the screen, which makes room for each question.
    """

    def __init__(self, view: View) -> None:
        self._view = view
        self._turn = asyncio.Lock()
        self._always: set[tuple[str | None, str]] = set()

    async def decide(self, item: ToolApprovalItem) -> Decision:
        """Ask the person to approve or reject a call."""
        async with self._turn:
            key = (item.agent, item.name)
            if key in self._always:
                return Decision(approved=True)
            with self._view.aside():
                return await self._decided(item, key)

    async def answer(self, question: Question) -> Any:
        """Ask the person a tool's question; return `None` if they do not answer."""
        async with self._turn:
            with self._view.aside():
                name = paint(release_text(question.tool_name), err=True, bold=True)
                click.echo(f"{name} asks: {release_text(question.message)}", err=True)
                return await answer_question(question, _typed)

    async def _decided(self, item: ToolApprovalItem, key: tuple[str | None, str]) -> Decision:
        name = paint(release_text(item.name), err=True, bold=True)
        caller = f", called by {release_text(item.agent)}," if item.agent else ""
        click.echo(f"{paint('?', err=True, fg='yellow')} {name}{caller} wants to run:", err=True)
        _show_arguments(item.arguments)
        edited: str | None = None
        while True:
            answer = await _typed("  Allow it? [y]es, [n]o, [e]dit, [a]lways in this run: ")
            match (answer or "").lower():
                case "y" | "yes":
                    return Decision(approved=True, arguments=edited)
                case "a" | "always":
                    self._always.add(key)
                    return Decision(approved=True, arguments=edited)
                case "e" | "edit":
                    edited = await _edit_arguments(edited or item.arguments) or edited
                case "n" | "no":
                    why = await _typed("  Why not? The model gets the reason (Enter for none): ")
                    return Decision(approved=False, message=why or None)
                case _ if answer is None:
                    return Decision(approved=False)  # the terminal was closed
                case _:
                    pass


async def _approved(item: ToolApprovalItem) -> Decision:
    del item
    return Decision(approved=True)


async def _refused(item: ToolApprovalItem) -> Decision:
    del item
    return Decision(approved=False)


def decider(wanted: str, person: TerminalApprover | None) -> Any:
    """Return the function that decides about a call; `None` if calls have to wait.

    Args:
        wanted: `ask`, `yes` or `no`.
        person: The approver at the terminal, if there is a terminal.
    """
    if wanted == "ask":
        return None if person is None else person.decide
    return _approved if wanted == "yes" else _refused


async def decide_all(state: RunState, decide: Any) -> None:
    """Decide about all waiting calls.

    Args:
        state: The waiting run.
        decide: The function that decides.
    """
    for item in state.interruptions:
        decision: Decision = await decide(item)
        if decision.approved:
            state.approve(item, decision.arguments)
        else:
            state.reject(item, decision.message)


def _show_arguments(arguments: str) -> None:
    for line in release_text(indented_json(arguments), to="model").split("\n"):
        click.echo(f"    {line}", err=True)


async def _edit_arguments(arguments: str) -> str | None:
    """Let the person change arguments in their editor (`VISUAL` or `EDITOR`), and show them.

    Returns:
        The new arguments; `None` if they did not change, or are not valid.
    """

    def edit() -> str | Exception | None:
        try:
            return click.edit(indented_json(arguments) + "\n", extension=".json")
        except (click.ClickException, OSError, UnicodeError) as error:
            return error

    text = await _in_thread(edit)
    if text is None:
        click.echo("  The arguments have not changed.", err=True)
        return None
    if isinstance(text, Exception):
        click.echo(f"  The arguments have not changed: {release_text(str(text))}", err=True)
        return None
    try:
        changed: object = json.loads(text)
    except ValueError as error:
        click.echo(
            f"  The arguments have not changed: not JSON: {release_text(str(error))}", err=True
        )
        return None
    if not isinstance(changed, dict):
        click.echo("  The arguments have not changed: expected a JSON object.", err=True)
        return None
    _show_arguments(text)
    return json.dumps(changed, ensure_ascii=False)


async def _typed(prompt: str) -> str | None:
    """Read a line without blocking the loop; `None` at the end of the input."""
    click.echo(paint(prompt, err=True, fg="yellow"), err=True, nl=False)

    def read() -> bytes:
        # Not through `sys.stdin`: its lock would block the exit of the process.
        try:
            return os.read(sys.stdin.fileno(), 65536)
        except OSError:
            return b""

    data = await _in_thread(read)
    return data.decode(errors="replace").strip() if data else None


async def _in_thread(work: Callable[[], T]) -> T:
    """Run a function that waits for the person, in a thread that does not hold up the exit."""
    done: PendingFuture[T] = PendingFuture()

    def run() -> None:
        done.resolve(work())

    threading.Thread(target=run, daemon=True, name="agents-tools-typed").start()
    return await done
