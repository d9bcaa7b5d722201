"""Questions of tools and servers at the terminal: values, forms, choices and addresses."""

from __future__ import annotations

import json
import os
import shlex
import signal
from pathlib import Path
from typing import Any

import pytest

from agents_tools.cli.questions import answer_question
from agents_tools.tool.question import Question, UnansweredError
from tests.cli.test_cli_process import COMMAND
from tests.cli.test_cli_run import Terminal, final_screen, needs_terminal

FORM: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "title": "Your name"},
        "count": {"type": "integer", "minimum": 1, "maximum": 10, "default": 4},
        "color": {"type": "string", "enum": ["r", "b"], "enumNames": ["red", "blue"]},
        "extras": {
            "type": "array",
            "items": {"anyOf": [{"const": "m", "title": "milk"}, {"const": "s", "title": "sugar"}]},
        },
        "gift": {"type": "boolean", "description": "Whether to wrap it."},
    },
    "required": ["name"],
}


class Person:
    """A person who types lines."""

    def __init__(self, *lines: str | None) -> None:
        self.lines = list(lines)
        self.prompts: list[str] = []

    async def read(self, prompt: str) -> str | None:
        self.prompts.append(prompt)
        return self.lines.pop(0)

    async def answer(
        self, schema: dict[str, Any], message: str = "How?", url: str | None = None
    ) -> Any:
        return await answer_question(Question(message, schema, "order", "c1", (), url), self.read)


async def test_a_form_is_asked_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    """The prompt has the title, the type, the bounds and the default of each field."""
    person = Person("Ada", "3", "blue", "1, sugar", "y")
    assert await person.answer(FORM) == {
        "name": "Ada",
        "count": 3,
        "color": "b",
        "extras": ["m", "s"],
        "gift": True,
    }
    assert person.prompts == [
        "  Your name (required): ",
        "  count (integer; 1 to 10; Enter for 4): ",
        "  color (a number; Enter to skip): ",
        "  extras (numbers, separated by commas; Enter to skip): ",
        "  gift (y or n; Enter to skip): ",
    ]
    shown = capsys.readouterr().err
    assert "1. red" in shown
    assert "2. sugar" in shown
    assert "Whether to wrap it." in shown


async def test_an_empty_line_is_the_default_or_no_value() -> None:
    """A required text without a minimal length can be empty."""
    assert await Person("", "", "", "", "").answer(FORM) == {"name": "", "count": 4}


async def test_a_wrong_value_is_asked_again(capsys: pytest.CaptureFixture[str]) -> None:
    """The reason is shown, as a model would get it."""
    person = Person("Ada", "many", "11", "3", "green", "1", "", "")
    answer = await person.answer(FORM)
    assert (answer["count"], answer["color"]) == (3, "r")
    shown = capsys.readouterr().err
    assert 'Expected an integer, got "many".' in shown
    assert "got 11" in shown
    assert "'green' is not a choice: expected 1 to 2." in shown


async def test_a_person_can_decline_or_close_a_form() -> None:
    """Ctrl-D, the end of the input, is not a refusal; earlier values are not sent."""
    assert await Person("Ada", "/decline").answer(FORM) is None
    with pytest.raises(UnansweredError) as raised:
        await Person("Ada", None).answer(FORM)
    assert raised.value.reason == "cancelled"


async def test_a_single_value_is_validated() -> None:
    """An empty line is no answer."""
    assert await Person("four", "4").answer({"type": "integer"}) == 4
    assert await Person("").answer({"type": "integer"}) is None
    assert await Person("2").answer({"enum": ["a", "b"]}) == "b"
    assert await Person("").answer({"type": "string", "default": "x"}) == "x"


async def test_a_form_without_fields_asks_for_consent() -> None:
    """A server can ask for nothing but a yes."""
    assert await Person("what", "y").answer({"type": "object", "properties": {}}) is True
    assert await Person("n").answer({"type": "object", "properties": {}}) is None


async def test_an_address_is_opened_after_consent(monkeypatch: pytest.MonkeyPatch) -> None:
    """A server cannot open a page without a person."""
    opened: list[str] = []
    monkeypatch.setattr("webbrowser.open", lambda url: bool(opened.append(url)) or True)
    url = "https://example.com/x"
    message = f"Sign in.\n{url}"
    assert await Person("n").answer({"type": "boolean"}, message, url) is None
    assert opened == []
    assert await Person("y").answer({"type": "boolean"}, message, url) is True
    assert opened == [url]
    assert await Person("y").answer({"type": "boolean"}, message) is True
    assert opened == [url], "a text of a question is not a page to open"


async def test_texts_of_a_server_cannot_control_the_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Titles, descriptions, choices and defaults are shown without control characters."""
    evil = "a\x1b[31m\u202eb"
    field = {"type": "string", "title": evil, "description": evil, "enum": [evil], "default": evil}
    person = Person("")
    await person.answer({"type": "object", "properties": {evil: field}})
    shown = capsys.readouterr().err + "".join(person.prompts)
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown


# --- on a terminal

TOOLS = '''
from agents_tools import ToolContext, function_tool


@function_tool
async def order(thing: str, ctx: ToolContext) -> str:
    """Order something."""
    count = await ctx.ask(f"How many {thing}?", answer=int)
    return f"ordered {count} {thing}"
'''


STOCK = """
from agents_tools import function_tool


@function_tool
def stock() -> list[dict]:
    return [{"name": "tea", "price": 2.5}, {"name": "c\u00e4ke", "price": None}]


@function_tool
def number() -> str:
    return '{"n":1.0000000000000000001}'
"""


class CallTerminal(Terminal):
    """The command line in a terminal."""

    command = COMMAND


@pytest.fixture
def tools(tmp_path: Path) -> str:
    """Return a module with a tool that asks."""
    path = tmp_path / "sample_order.py"
    path.write_text(TOOLS)
    return str(path)


@pytest.mark.slow
@needs_terminal
@pytest.mark.parametrize("remote", [False, True])
def test_call_asks_the_person_at_the_terminal(tools: str, *, remote: bool) -> None:
    """A tool of this process and a tool of a server are answered in the same way."""
    server = shlex.join([*COMMAND, "serve", tools])
    words = ["mcp", "call", server] if remote else ["call", tools]
    terminal = CallTerminal(*words, "order", "thing=cups")
    terminal.until("How many cups?")
    terminal.until(": ")
    terminal.type("4")
    assert terminal.end() == 0
    assert "ordered 4 cups" in final_screen(terminal.shown)


@pytest.mark.slow
@needs_terminal
def test_call_asks_the_person_for_the_approval_of_a_server_s_tool(tools: str) -> None:
    """The configuration of the server requires it; the whole call is shown."""
    server = {"command": COMMAND[0], "args": [*COMMAND[1:], "serve", tools]}
    config = Path(tools).with_name("mcp.json")
    config.write_text(json.dumps({"mcpServers": {"shop": {**server, "require_approval": True}}}))
    terminal = CallTerminal("mcp", "call", str(config), "shop_order", "thing=cups")
    terminal.until("[a]lways in this run: ")
    assert '"thing": "cups"' in terminal.shown
    terminal.type("y")
    terminal.until("How many cups?")
    terminal.until(": ")
    terminal.type("4")
    assert terminal.end() == 0
    assert "ordered 4 cups" in final_screen(terminal.shown)


@pytest.mark.slow
@needs_terminal
def test_a_structured_result_is_indented_on_a_terminal(tmp_path: Path) -> None:
    """Nothing in it changes; a text that is not compact JSON is printed as it is."""
    path = tmp_path / "sample_stock.py"
    path.write_text(STOCK)
    terminal = CallTerminal("call", str(path), "stock", "-q")
    assert terminal.end() == 0
    rows = [{"name": "tea", "price": 2.5}, {"name": "c\u00e4ke", "price": None}]
    assert final_screen(terminal.shown) == json.dumps(rows, indent=2, ensure_ascii=False) + "\n"
    assert "\x1b[" in terminal.shown
    terminal = CallTerminal("call", str(path), "number", "-q")
    assert terminal.end() == 0
    assert final_screen(terminal.shown) == '{"n":1.0000000000000000001}\n'


@needs_terminal
def test_ctrl_c_at_a_question_cancels_the_call(tools: str) -> None:
    """The exit code is that of a cancelled call."""
    terminal = CallTerminal("call", tools, "order", "thing=cups")
    terminal.until("Enter for none")
    os.kill(terminal.process.pid, signal.SIGINT)
    assert terminal.end() == 130
