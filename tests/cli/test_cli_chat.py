"""`chat`: a conversation with an agent in the terminal."""

from __future__ import annotations

import os
import select
import signal
import time
from pathlib import Path
from typing import ClassVar

import pytest

from agents_tools.persistence import SQLiteRunStore
from agents_tools.persistence.conversation import conversation
from tests.cli.conftest import Run
from tests.cli.test_cli_run import AGENTS, Terminal, final_screen, needs_terminal

CHAT = """
from pathlib import Path

from agents_tools import Agent, ToolContext, function_tool
from agents_tools.policies import needs_approval
from agents_tools.testing import ScriptedModel, tool_call


def replies(request):
    asked = [one for one in request.input if getattr(one, "role", None) == "user"]
    last = str(asked[-1].content)
    if last == "hang":
        return [tool_call("hang")]
    if last == "burn" and request.input[-1] is asked[-1]:
        return [tool_call("burn", book="Emma")]
    if last == "fail":
        raise RuntimeError("no answer")
    return f"**{len(asked)}** {last}"


@needs_approval
@function_tool
def burn(book: str) -> str:
    return f"{book} is gone"


@function_tool
async def hang() -> str:
    import asyncio
    print("it hangs", flush=True)
    await asyncio.Event().wait()


friend = Agent("Friend", tools=[burn, hang], model=ScriptedModel([replies] * 20))
"""


class ChatTerminal(Terminal):
    """`chat` in a terminal."""

    command: ClassVar[list[str]] = [*Terminal.command[:-1], "chat"]

    def interrupt_prompt(self) -> None:
        """Send SIGINT until the chat answers: readline misses one between its prompt and its read."""
        end = time.monotonic() + 15
        while "/exit ends the chat" not in self.shown:
            assert time.monotonic() < end, self.shown
            self.process.send_signal(signal.SIGINT)
            while select.select([self._ours], [], [], 0.5)[0]:
                self.shown += os.read(self._ours, 65536).decode(errors="replace")


@pytest.fixture
def friend(tmp_path: Path) -> str:
    """Return an agent that says how many messages it has got, and repeats the last one."""
    path = tmp_path / "chat_friend.py"
    path.write_text(CHAT)
    return str(path)


# --- scripts


def test_each_line_is_a_message(friend: str, run: Run) -> None:
    """A line that ends with a backslash continues; commands are not messages."""
    result = run("chat", friend, "-q", stdin="a\n\nb \\\nc\n/new\nd\n/exit\ne\n")
    assert (result.code, result.out) == (0, "**1** a\n**2** b \nc\n**1** d\n")


def test_an_error_does_not_end_the_chat(friend: str, run: Run) -> None:
    """The exit code is that of the last run."""
    result = run("chat", friend, "-q", stdin="fail\nb\n")
    assert (result.code, result.out) == (0, "**2** b\n")
    assert "no answer" in result.err
    assert run("chat", friend, "-q", stdin="a\nfail").code == 1


def test_a_stored_conversation_is_continued(friend: str, run: Run, tmp_path: Path) -> None:
    """Another process reads the earlier messages."""
    place = str(tmp_path / "runs.db")
    words = ("chat", friend, "-q", "--store", place, "--session", "ada")
    assert run(*words, stdin="a\n").out == "**1** a\n"
    assert run(*words, stdin="b\n/new\nc\n").out == "**2** b\n**1** c\n"
    with SQLiteRunStore(place) as store:
        assert len(conversation(store.session("ada").events().result())) == 4
    assert "ada" in run("events", "list", place).out


def test_calls_that_need_approval_are_denied_without_a_terminal(friend: str, run: Run) -> None:
    result = run("chat", friend, stdin="burn\n")
    assert result.code == 0
    assert "Emma is gone" not in result.err
    assert "Emma is gone" in run("chat", friend, "--approve", "yes", stdin="burn\n").err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["--session", "a"], "--session requires --store"),
        (["--store", "nowhere/at/all/runs.db"], "nowhere/at/all"),
    ],
)
def test_invalid_options_are_rejected(
    friend: str, run: Run, words: list[str], expected: str
) -> None:
    result = run("chat", friend, *words, stdin="a\n")
    assert (result.code, result.out) == (2, "")
    assert expected in result.err


def test_a_missing_model_is_reported_at_once(run: Run) -> None:
    result = run("chat", f"{AGENTS}:modelless")
    assert result.code == 2
    assert "has no model" in result.err


# --- interactive terminal


@needs_terminal
def test_a_person_talks_to_an_agent(friend: str, tmp_path: Path) -> None:
    """Answers are rendered; calls are approved; Ctrl-C ends an answer, Ctrl-D the chat."""
    place = str(tmp_path / "runs.db")
    terminal = ChatTerminal(friend, "--store", place, "--session", "ada")
    terminal.until("Ctrl-D ends the chat.")
    terminal.type("hello")
    terminal.until("\x1b[0m hello", "> ")  # the number is bold
    terminal.type("/help")
    terminal.until("begin a new conversation")
    terminal.type("/nonsense")
    terminal.until("/nonsense is not a command")
    terminal.type("burn")
    terminal.until("[a]lways in this run: ")
    terminal.type("y")
    terminal.until("\x1b[0m burn", "> ")
    terminal.type("hang")
    terminal.until("it hangs")
    terminal.process.send_signal(signal.SIGINT)
    terminal.until("cancelled\x1b[0m", "> ")
    terminal.type("there?")
    terminal.until("\x1b[0m there?", "> ")
    terminal.interrupt_prompt()
    terminal.type("/exit")
    assert terminal.end() == 0
    assert f"To continue: --store {place} --session ada" in terminal.shown
    terminal = ChatTerminal(friend, "--store", place, "--session", "ada")
    terminal.until("Continues 'ada' with 4 messages of yours")
    terminal.until("\x1b[0m there?", "> ")
    terminal.type("\x04")
    assert terminal.end() == 0
    assert "4 there?" in final_screen(terminal.shown)
