"""`chat`: talk to an agent in the terminal; the conversation can be stored and continued."""

from __future__ import annotations

import contextlib
import secrets
import sys
from importlib import import_module
from typing import TYPE_CHECKING, Any, cast

import click

from agents_tools.cli import options
from agents_tools.cli.agents import load_agent
from agents_tools.cli.approvals import can_ask
from agents_tools.cli.errors import OK, CommandError
from agents_tools.cli.output import is_terminal, print_answer, say, say_traceback
from agents_tools.cli.run_job import RunJob, check_model
from agents_tools.cli.run_outcome import exit_code, report_outcome
from agents_tools.content.items import MessageInputItem, MessageOutputItem
from agents_tools.content.outputs import output_text
from agents_tools.errors import EventStoreError
from agents_tools.persistence import MemoryRunStore, open_run_store
from agents_tools.persistence.conversation import conversation
from agents_tools.text.escape import shorten
from agents_tools.ui.console.text_views import choose_run_view

if TYPE_CHECKING:
    from agents_tools.cli.agents import AnyAgent
    from agents_tools.persistence import RunStore

__all__ = ["command"]

_PROMPT = "> "
_HELP = """/new   begin a new conversation
/exit  end the chat, like Ctrl-D
/help  show this help
Ctrl-C cancels an answer. A line that ends with \\ continues on the next line."""


@click.command(
    "chat",
    epilog="\b\n"
    "Without --store, the conversation ends with the program.\n"
    "  agents-tools chat agent.py --model local/rules\n"
    "  agents-tools chat agent.py:support --store runs.db --session ada",
)
@click.argument("target", metavar="TARGET[:AGENT]")
@click.option(
    "--store",
    "place",
    metavar="STORE",
    help="Store the conversation here: runs.db, postgresql://... or redis://...",
)
@click.option(
    "--session",
    metavar="ID",
    help="The id of the conversation in --store, which is continued if it exists.",
)
@options.run_options
@options.approve_option("`ask` denies them.")
@click.option(
    "--events",
    type=click.Choice(["auto", "live", "plain", "none"]),
    default="auto",
    metavar="VIEW",
    help="How to show events on standard error: auto (live on a terminal, else plain), live, "
    "plain or none.",
)
@click.option("-q", "--quiet", is_flag=True, help="Show no events.")
@click.option("--debug", is_flag=True, help="Show the traceback of an error.")
@click.pass_context
def command(
    ctx: click.Context,
    target: str,
    *,
    place: str | None,
    session: str | None,
    model: str | None,
    max_turns: int,
    timeout: float | None,
    max_cost: float | None,
    approve: str,
    events: str,
    quiet: bool,
    debug: bool,
) -> None:
    """Talk to an agent. Answers go to standard output, the events to standard error.

    Without a terminal, each line of standard input is a message.

    TARGET is a file or module; :AGENT names the agent if it has several.
    """
    if session is not None and place is None:
        raise CommandError("--session requires --store.", hint="--store runs.db --session ID")
    agent = load_agent(target)
    check_model(agent, model)
    if approve == "ask" and not can_ask():
        approve = "no"
    settings: dict[str, Any] = {
        "model": model,
        "max_turns": max_turns,
        "timeout": timeout,
        "max_cost": max_cost,
        "approve": approve,
    }
    try:
        with MemoryRunStore() if place is None else open_run_store(place) as store:
            chat = _Chat(agent, store, session, "none" if quiet else events, settings)
            chat.show_beginning(is_stored=place is not None)
            while chat.exchange(target, debug=debug):
                pass
            chat.show_end(place)
    except EventStoreError as error:
        raise CommandError(str(error)) from error
    ctx.exit(chat.code)


class _Chat:
    """A conversation with an agent.

    Args:
        agent: The agent. After a handoff, the conversation continues with the new agent.
        store: The store of the conversation.
        session: The id of the conversation; a new one by default.
        events: The name of the view.
        settings: The options of each run.

    Attributes:
        code: The exit code: that of the last run without a terminal, otherwise 0.
    """

    def __init__(
        self,
        agent: AnyAgent,
        store: RunStore,
        session: str | None,
        events: str,
        settings: dict[str, Any],
    ) -> None:
        self.code = OK
        self._first_agent = self._agent = agent
        self._store = store
        self._session = session or _new_session()
        self._events = events
        self._settings = settings
        self._is_person = is_terminal(sys.stdin)
        if self._is_person:
            with contextlib.suppress(ImportError):
                import_module("readline")  # `input` then edits lines and has a history

    def show_beginning(self, *, is_stored: bool) -> None:
        """Show how to end the chat, and the last exchange of a conversation that continues."""
        if not self._is_person:
            return
        say(f"{self._agent.name}: /help shows the commands, Ctrl-D ends the chat.", dim=True)
        items = conversation(self._store.session(self._session).events().result())
        if not items or not is_stored:
            return
        asked = [
            output_text(one.content)
            for one in items
            if isinstance(one, MessageInputItem) and one.role == "user" and one.call_id is None
        ]
        answers = [one.text for one in items if isinstance(one, MessageOutputItem) and one.text]
        count = "1 message" if len(asked) == 1 else f"{len(asked):,} messages"
        say(f"Continues {self._session!r} with {count} of yours; the last one:", dim=True)
        if asked:
            say(_PROMPT + shorten(" ".join(asked[-1].split()), 200), dim=True)
        if answers:
            print_answer(answers[-1])

    def exchange(self, target: str, *, debug: bool) -> bool:
        """Read a message and answer it; return false at the end of the chat."""
        try:
            text = self._read_message()
            if text is not None:
                self._answer(text, target, debug=debug)
        except KeyboardInterrupt:  # a Ctrl-C during an answer cancels it; this one came later
            if not self._is_person:
                raise
            say("\n(Ctrl-D or /exit ends the chat)", dim=True)
            return True
        return text is not None

    def show_end(self, place: str | None) -> None:
        """Show how to continue a stored conversation."""
        if self._is_person and place is not None:
            say(f"To continue: --store {place} --session {self._session}", dim=True)

    def _read_message(self) -> str | None:
        """Return the next message, after running the commands before it; `None` at the end."""
        while (text := self._read()) is not None:
            match text.strip():
                case "":
                    pass
                case "/exit" | "/quit":
                    return None
                case "/help":
                    say(_HELP)
                case "/new":
                    self._agent, self._session = self._first_agent, _new_session()
                    say("A new conversation.", dim=True)
                case word if word.startswith("/") and " " not in word and self._is_person:
                    say(f"{word} is not a command. /help shows the commands.")
                case _:
                    return text
        return None

    def _answer(self, text: str, target: str, *, debug: bool) -> None:
        """Run the agent with a message, and print its answer."""
        view = choose_run_view(self._events, self._agent.name)
        job = RunJob(
            agent=self._agent,
            source=text,
            view=view,
            store=self._store,
            session=self._session,
            **self._settings,
        )
        ended = job.run()
        view.close(ended.status, ended.duration)
        if ended.error is not None and debug:
            say_traceback(ended.error)
        report_outcome(ended, target, None, answer=True, debug=debug)
        if ended.result is not None and ended.result.last_agent is not None:
            self._agent = cast("AnyAgent", ended.result.last_agent)
        if not self._is_person:
            self.code = exit_code(ended)

    def _read(self) -> str | None:
        """Read a line, and those that continue it; `None` at the end of the input."""
        lines: list[str] = []
        while True:
            line = self._read_line(". " if lines else _PROMPT)
            if line is None:
                return "\n".join(lines) or None
            if not line.endswith("\\"):
                return "\n".join([*lines, line])
            lines.append(line[:-1])

    def _read_line(self, prompt: str) -> str | None:
        if not self._is_person:
            line = sys.stdin.readline()
            return line.rstrip("\r\n") if line else None
        try:
            if is_terminal(sys.stdout):
                return input(prompt)
            click.echo(prompt, nl=False, err=True)
            return input()
        except EOFError:
            say("")
            return None


def _new_session() -> str:
    return f"chat-{secrets.token_hex(4)}"
