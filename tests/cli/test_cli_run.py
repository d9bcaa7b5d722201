"""`run`: an agent from the command line, for scripts, logs and people."""

from __future__ import annotations

import io
import json
import os
import re
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from inline_snapshot import snapshot
from rich.console import Console

from agents_tools.agents import call_delta, call_started, text_delta
from agents_tools.cli import main
from agents_tools.content import ToolCallItem, ToolCallOutputItem, Usage
from agents_tools.events import (
    EventSource,
    Origin,
    RawResponseStreamEvent,
    RunItemStreamEvent,
    ToolProgressEvent,
    event_from_dict,
)
from agents_tools.events.kinds import CallStatus
from agents_tools.ui.console.rich_view import RichRun
from agents_tools.ui.console.run_tree import costs
from tests.cli.conftest import Run
from tests.scale import slow_case
from tests.waiting import BOUND, until

AGENTS = str(Path(__file__).parent / "agents_fixture.py")
ROOT = Path(__file__).parents[2]
COMMAND = [sys.executable, "-m", "agents_tools.cli", "run"]


@pytest.fixture(autouse=True)
def _no_model_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AGENTS_TOOLS_MODEL", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def without_times(text: str) -> str:
    """Remove the fields that differ from run to run: times, and the path of the fixture."""
    return re.sub(r"[\d.]+ s\b", "… s", text).replace(AGENTS, "AGENTS")


# --- scripts


def test_only_the_answer_is_on_standard_output(run: Run) -> None:
    """Other programs read the answer as the model wrote it; progress is on standard error."""
    result = run("run", f"{AGENTS}:plain", "hi")
    assert (result.code, result.out) == (0, "# Hello\n\nI am **plain**.\x1b]0;title\x07\n")
    assert without_times(result.err) == "Plain: done in … s, 1 request, 1,050 tokens\n"
    assert run("run", f"{AGENTS}:plain", "hi", "-q").err == ""


def test_a_structured_answer_is_json(run: Run) -> None:
    """Other programs read an object."""
    assert run("run", f"{AGENTS}:typed", "hi").json == {"text": "é", "pages": [1, 2]}


def test_an_empty_answer_is_reported(run: Run) -> None:
    """Empty output would look like an error of the library."""
    result = run("run", f"{AGENTS}:silent", "hi", "-q")
    assert (result.code, result.out, result.err) == (0, "", "(the answer is empty)\n")


def test_a_log_has_a_line_for_each_change(run: Run) -> None:
    """Each line names the path of its call; two of 40 steps within a second are logged."""
    result = run("run", f"{AGENTS}:boss", "go")
    assert result.out == "Page 7.\n"
    assert without_times(result.err) == snapshot("""\
Boss: A colleague knows.
Boss > ask_digger: called with input="dig!"
Boss > ask_digger: I dig.
Boss > ask_digger > dig: called with no arguments
Boss > ask_digger > dig: opening the archive
Boss > ask_digger > dig: 1/40 (2%) pages
Boss > ask_digger > dig: 40/40 (100%) pages
Boss > ask_digger > dig: warning: two pages are torn
Boss > ask_digger > dig: done in … s: found \\x1b[31mit\\x1b[0m
Boss > ask_digger: done in … s, 2,100 tokens: It is on page 7.
Boss: done in … s, 4 requests, 4,200 tokens
""")


def test_json_prints_all_of_a_run_on_one_line(run: Run) -> None:
    """Scripts get status, answer, usage, items and pending approvals."""
    result = run("run", f"{AGENTS}:digger", "go", "--json").json
    assert result.pop("duration") >= 0
    assert result.pop("run_id").startswith("run_")
    assert [item["type"] for item in result.pop("items")] == [
        "message",
        "function_call",
        "function_call_output",
        "message",
    ]
    breakdown = result["usage"].pop("breakdown")
    assert [(one["agent"], one["model"], one["requests"]) for one in breakdown] == [
        ("Digger", "scripted", 2)
    ]
    assert result == snapshot(
        {
            "status": "ok",
            "output": "It is on page 7.",
            "usage": {
                "requests": 2,
                "input_tokens": 2000,
                "output_tokens": 100,
                "cached_input_tokens": 0,
                "cache_write_tokens": 0,
                "cache_write_1h_tokens": 0,
                "reasoning_tokens": 0,
                "tool_calls": 1,
                "cost": None,
            },
            "interruptions": [],
        }
    )


def test_ndjson_prints_every_event_and_nothing_else(run: Run) -> None:
    """These are the events that a user interface gets."""
    result = run("run", f"{AGENTS}:boss", "go", "--events", "ndjson")
    events = [event_from_dict(json.loads(line)) for line in result.out.splitlines()]
    assert (result.code, result.err) == (0, "")
    assert (events[0].type, events[-1].type) == ("run_started_event", "run_finished_event")
    assert max(len(event.path) for event in events) == 2
    assert [event.seq for event in events] == list(range(len(events)))


@pytest.mark.parametrize("given", ["-", "@FILE"])
def test_the_input_can_come_from_a_file_or_a_pipe(given: str, run: Run, tmp_path: Path) -> None:
    """Long inputs are in files, and pipes are common."""
    (tmp_path / "in.txt").write_text("go ahead")
    given = given.replace("FILE", str(tmp_path / "in.txt"))
    result = run("run", f"{AGENTS}:plain", given, "--events", "ndjson", stdin="go ahead")
    assert json.loads(result.out.splitlines()[1])["content"] == "go ahead"


@pytest.mark.parametrize(
    ("words", "code", "status", "message"),
    [
        (["offline", "x"], 1, "error", "no connection"),
        (["broken", "x"], 1, "error", "a bad value"),
        (["denied", "x"], 5, "error", "not today"),
        (["endless", "x", "--max-turns", "3"], 1, "error", "within 3 turns"),
        (["hanger", "hang, marker=MARKER", "--timeout", "0.1"], 4, "timeout", "longer than 0.1 s"),
        (["burner", "x"], 5, "interrupted", "waits for approval: burn"),
        (["plain"], 2, "usage_error", "INPUT is missing."),
        (["plain", " "], 2, "usage_error", "the input is empty."),
        (["plain", "@nowhere"], 2, "usage_error", "INPUT @nowhere cannot be read"),
        (["plain", "x", "--model", "nobody/x"], 2, "usage_error", "has no known provider"),
        (["plain", "x", "--max-cost", "0"], 2, "usage_error", "0.0 is not in the range"),
        (["plain", "x", "--max-cost", "1"], 2, "error", "the price of 'scripted' is not known"),
        (["plain", "x", "--max-turns", "0"], 2, "usage_error", "0 is not in the range"),
        (["plain", "x", "--resume", "y"], 2, "usage_error", "--resume continues a saved run"),
        (["plain", "--resume", "nowhere"], 2, "usage_error", "--resume nowhere cannot be read"),
        (["plain", "--resume", AGENTS], 2, "usage_error", "is not a saved run"),
        (["plain", "x", "--events", "ndjson"], 2, "usage_error", "both write to standard output"),
        (["modelless", "x"], 2, "usage_error", "agent 'Modelless' has no model."),
        (["nobody", "x"], 2, "usage_error", "has no agent 'nobody'."),
        (["dig", "x"], 2, "usage_error", "is not an agent but a tool."),
        (["Answer", "x"], 2, "usage_error", "is not an agent but a"),
    ],
)
def test_exit_codes_and_json_report_the_outcome_of_a_run(
    words: list[str], code: int, status: str, message: str, run: Run, tmp_path: Path
) -> None:
    """Scripts rely on the codes; `--json` applies to errors too."""
    marker = str(tmp_path / "marker")
    words = [f"{AGENTS}:{words[0]}", *(word.replace("MARKER", marker) for word in words[1:])]
    as_json = run("run", *words, "--json")
    assert (as_json.code, as_json.json["status"]) == (code, status)
    if "ndjson" not in words:
        result = run("run", *words)
        assert (result.code, result.out) == (code, "")
        assert message in result.err
        assert "Traceback" not in result.err
        assert "\x1b" not in result.err


def test_an_exception_has_its_traceback_with_debug(run: Run) -> None:
    """The author of a tool needs it."""
    assert "--debug shows the traceback." in run("run", f"{AGENTS}:broken", "x").err
    assert "in explode" in run("run", f"{AGENTS}:broken", "x", "--debug").err


# --- agent selection


def test_the_agent_that_calls_the_others_is_selected(run: Run, tmp_path: Path) -> None:
    """A file with an orchestrator has one entry point."""
    path = tmp_path / "sample.py"
    path.write_text(
        "from agents_tools import Agent\n"
        "from agents_tools.testing import ScriptedModel\n"
        "inner = Agent('Inner')\n"
        "outer = Agent('Outer', tools=[inner.as_tool()], model=ScriptedModel(['outer']))\n"
    )
    assert run("run", str(path), "x").out == "outer\n"
    assert run("run", f"{path}:Outer", "x").out == "outer\n"
    path.write_text("from agents_tools import Agent\na = Agent('A')\nb = Agent('Bee')\n")
    result = run("run", str(path), "x")
    assert result.code == 2
    assert "has 2 agents: a (A), b (Bee)." in result.err
    assert f"agents-tools run {path}:a INPUT" in result.err
    path.write_text("x = 1\n")
    assert "has no agent." in run("run", str(path), "x").err


def test_agents_are_listed_and_shown(run: Run) -> None:
    """The same commands as for tools show a file of agents."""
    listed = run("list", AGENTS)
    assert (listed.code, listed.err) == (0, "")
    assert "Agents:" in listed.out
    assert "Boss (tools: ask_digger; model: scripted)" in listed.out
    records = {one["name"]: one for one in run("list", AGENTS, "--json").json}
    assert "parameters" in records["dig"]
    assert records["Hanger"] == snapshot(
        {
            "name": "Hanger",
            "kind": "agent",
            "attribute": "hanger",
            "model": "local/rules",
            "tools": ["hang"],
        }
    )
    assert run("list", f"{AGENTS}:digger").out.startswith("dig  Dig through")
    assert without_times(run("show", f"{AGENTS}:hanger").out) == snapshot("""\
Hanger

Facts:
  kind   agent
  model  local/rules
  tools  hang

To run it: agents-tools run AGENTS:hanger INPUT
""")
    assert run("show", AGENTS, "boss", "--json").json["tools"] == ["ask_digger"]
    assert run("call", f"{AGENTS}:digger", "dig", "pages=1", "-q").code == 0
    assert "which has no function tools" in run("list", f"{AGENTS}:plain").err


# --- models


def test_the_model_can_be_replaced(run: Run) -> None:
    """`local/rules` needs no key, and runs any agent whose tools it understands."""
    result = run("run", f"{AGENTS}:boss", "ask the digger to dig", "--model", "local/rules")
    assert result.code == 0
    assert "Boss > ask_digger > dig: called" in result.err
    assert "found" in result.out


def test_a_missing_key_is_named(run: Run) -> None:
    """This is the most common first error."""
    pytest.importorskip("openai")
    result = run("run", f"{AGENTS}:plain", "hi", "--model", "openai/gpt-5")
    assert result.code == 2
    assert "OPENAI_API_KEY" in result.err


# --- approval


def test_calls_that_need_approval_are_decided_or_wait(run: Run, tmp_path: Path) -> None:
    """Without a terminal the run ends, is saved for its owner only, and can be resumed."""
    assert "burn: done in" in run("run", f"{AGENTS}:burner", "x", "--approve", "yes").err
    refused = run("run", f"{AGENTS}:burner", "x", "--approve", "no")
    assert refused.code == 0
    assert "A person refused this call of 'burn'." in refused.err

    file = tmp_path / "run.json"
    waiting = run("run", f"{AGENTS}:burner", "x", "--state", str(file), "--json")
    assert waiting.code == 5
    assert [one["name"] for one in waiting.json["interruptions"]] == ["burn"]
    assert os.name == "nt" or file.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [file]

    again = run("run", f"{AGENTS}:finisher", "--resume", str(file))
    assert again.code == 5, "undecided as before"
    assert f"--resume {file} --approve yes" in again.err
    resumed = run("run", f"{AGENTS}:finisher", "--resume", str(file), "--approve", "yes")
    assert (resumed.code, resumed.out) == (0, "Done, later.\n")
    assert "Burner > burn: done in" in resumed.err
    assert "dig" not in resumed.err, "what has an answer does not run again"


def test_approval_applies_to_agents_with_their_own_configuration(run: Run) -> None:
    """`--approve yes` approves all calls of the run."""
    assert run("run", f"{AGENTS}:deep", "x").code == 5
    assert run("run", f"{AGENTS}:deep", "x", "--approve", "yes").out == "Deep is done.\n"


# --- separate processes


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    """Start a run."""
    given: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "stdin": subprocess.DEVNULL,
        "encoding": "utf-8",
        "cwd": ROOT,
    }
    return subprocess.Popen([*COMMAND, *args], **{**given, **options})  # noqa: S603 - our own


def wait_until_started(marker: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the tool reports its start."""
    until = time.monotonic() + 30
    while not (marker.exists() and marker.read_text()):
        assert process.poll() is None, process.communicate()
        assert time.monotonic() < until
        time.sleep(0.01)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("options", [slow_case(["--json"]), slow_case(["--events", "ndjson"]), []])
def test_ctrl_c_cancels_and_lets_tools_clean_up(options: list[str], tmp_path: Path) -> None:
    """A tool must be able to release its resources, and a script must see the cancellation."""
    marker = tmp_path / "marker"
    with start(f"{AGENTS}:hanger", f"hang, marker={marker}", *options) as process:
        wait_until_started(marker, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=30)
    assert (process.returncode, marker.read_text()) == (130, "cleaned up")
    assert "Traceback" not in err
    if options:
        last = json.loads(out.splitlines()[-1])
        assert last["status"] == "cancelled"
        assert "items" not in last or last["items"][0]["name"] == "hang"
    else:
        assert err.endswith("cancelled\n")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """A second signal means that the user does not want to wait for the tool."""
    marker = tmp_path / "marker"
    words = f"hang, marker={marker} stubborn=true"
    with start(f"{AGENTS}:hanger", words) as process:
        wait_until_started(marker, process)
        for _ in range(40):  # signals that arrive together count once
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
            time.sleep(0.05)
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert "left behind" not in err
    assert marker.read_text() == "started"


@pytest.mark.slow
def test_a_closed_pipe_ends_the_run() -> None:
    """`… --events ndjson | head -1` must not continue to use the model."""
    with start(f"{AGENTS}:boss", "x", "--events", "ndjson") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=30) == 141


@pytest.mark.slow
def test_without_rich_a_run_is_plain_lines() -> None:
    """Rich is optional."""
    code = (
        "import sys; sys.modules['rich'] = None\n"
        "from agents_tools.cli import main\n"
        f"sys.exit(main(['run', {AGENTS + ':boss'!r}, 'x', '--events', 'live']))"
    )
    done = subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT, check=True
    )
    assert "Boss > ask_digger > dig: opening the archive" in done.stderr


# --- interactive terminal


class Terminal:
    """A program in a terminal of 90 columns, and its output."""

    command = COMMAND

    def __init__(self, *args: str, **variables: str) -> None:
        self._ours, theirs = os.openpty()
        env = {**os.environ, "TERM": "xterm-256color", "COLUMNS": "90", "LINES": "24"}
        env.pop("NO_COLOR", None)
        self.process = subprocess.Popen(  # noqa: S603 - our own
            [*self.command, *args],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            cwd=ROOT,
            env={**env, **variables},
            start_new_session=True,
        )
        os.close(theirs)
        self.shown = ""

    def until(self, text: str, then: str = "") -> None:
        """Read until the program has written a text, and another one after it."""
        end = time.monotonic() + 15
        while text not in self.shown or then not in self.shown.rpartition(text)[2]:
            rest = end - time.monotonic()
            assert rest > 0 and select.select([self._ours], [], [], rest)[0], self.shown  # noqa: PT018
            self.shown += os.read(self._ours, 65536).decode(errors="replace")

    def type(self, line: str) -> None:
        """Type a line."""
        os.write(self._ours, line.encode() + b"\n")

    def press(self, keys: str) -> None:
        """Press keys."""
        os.write(self._ours, keys.encode())

    def end(self) -> int:
        """Read the remaining output and return the exit code."""
        try:
            while chunk := os.read(self._ours, 65536):
                self.shown += chunk.decode(errors="replace")
        except OSError:  # Linux reports the end of the terminal in this way
            pass
        os.close(self._ours)
        return self.process.wait(timeout=30)


needs_terminal = pytest.mark.skipif(os.name == "nt", reason="needs a pseudo-terminal")


def without_style(shown: str) -> str:
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)


def final_screen(shown: str) -> str:
    """Return the final screen: the output since it was last cleared, without colour."""
    last = re.split(r"\x1b\[2K|\x1b\[\?25h", shown)[-1]
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", last).replace("\r", "")


@needs_terminal
def test_a_person_sees_a_tree_and_then_the_answer() -> None:
    """The tree shows callers, outcomes and costs; output of the model is escaped."""
    terminal = Terminal(f"{AGENTS}:boss", "go")
    assert terminal.end() == 0
    tree = without_times(final_screen(terminal.shown)).replace("  … s · 2", "  2")
    assert re.sub("(?m)  … s$", "", tree) == snapshot("""\
✓ Boss  … s · 4 requests · 4,200 tokens
├─ A colleague knows.
└─ ✓ ask_digger → Digger input="dig!" → It is on page 7.  2,100 tokens
   ├─ I dig.
   └─ ✓ dig → found \\x1b[31mit\\x1b[0m
         ! two pages are torn

Page 7.
""")
    assert "\x1b[31mit" not in terminal.shown
    terminal = Terminal(f"{AGENTS}:plain", "go", "-q")
    assert terminal.end() == 0
    rows = [row.strip() for row in final_screen(terminal.shown).splitlines()]
    assert rows == ["Hello", "", "I am plain."]
    assert "title" not in terminal.shown


@needs_terminal
def test_a_person_is_asked_and_sees_the_whole_call() -> None:
    """The call to approve is shown completely, with invisible characters escaped."""
    terminal = Terminal(f"{AGENTS}:burner", "x")
    terminal.until("[a]lways in this run: ")
    assert "called by Burner, wants to run" in terminal.shown
    assert re.search(r"Burner.*burn book=", final_screen(terminal.shown), re.DOTALL), (
        "the tree stays"
    )
    assert r"A\u202eB" in terminal.shown
    terminal.type("perhaps")
    terminal.until("perhaps")
    terminal.type("n")
    terminal.until("Enter for none): ")
    terminal.type("I like it")
    assert terminal.end() == 0
    assert "I like it" in final_screen(terminal.shown)
    assert terminal.shown.rindex("\x1b[?25h") > terminal.shown.rindex("\x1b[?25l")


@pytest.mark.slow
@needs_terminal
def test_a_person_can_allow_a_tool_for_the_rest_of_the_run() -> None:
    """There are three calls and one question."""
    terminal = Terminal(f"{AGENTS}:librarian", "x")
    terminal.until("[a]lways in this run: ")
    terminal.type("a")
    assert terminal.end() == 0
    assert terminal.shown.count("[a]lways in this run: ") == 1
    assert "C is gone" in final_screen(terminal.shown)


@pytest.mark.slow
@needs_terminal
def test_a_person_can_edit_the_arguments_of_a_call(tmp_path: Path) -> None:
    """They are shown again before they are approved; a broken edit changes nothing."""
    editor = tmp_path / "editor.py"
    editor.write_text(
        "import sys, pathlib\n"
        "path = pathlib.Path(sys.argv[1])\n"
        "text = path.read_text()\n"
        "path.write_text('no JSON' if 'Emma' in text else '{\"book\": \"Emma\"}')\n"
    )
    variables = {"EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    terminal = Terminal(f"{AGENTS}:burner", "x", **variables)
    terminal.until("[e]dit, [a]lways in this run: ")
    terminal.type("e")
    terminal.until('"book": "Emma"')
    terminal.until("[e]dit, [a]lways in this run: ")
    terminal.type("edit")
    terminal.until("The arguments have not changed: not JSON")
    terminal.type("y")
    assert terminal.end() == 0
    assert 'burn book="Emma"' in final_screen(terminal.shown)


@pytest.mark.slow
@needs_terminal
def test_the_whole_terminal_shows_a_run() -> None:
    """Calls have details; questions are asked aside; the tree and the answer are printed."""
    terminal = Terminal(f"{AGENTS}:burner", "x", "--events", "screen")
    terminal.until("[a]lways in this run: ")
    terminal.type("n")
    terminal.until("Enter for none): ")
    terminal.type("I like it")
    terminal.until("Cancel the call")
    terminal.until("Burner")
    terminal.until("Done as told")  # the details of the agent
    terminal.press("q")
    assert terminal.end() == 0
    assert "✗ burn" in without_style(terminal.shown)
    assert terminal.shown.rstrip().endswith("Done as told.")


@pytest.mark.slow
@needs_terminal
def test_a_call_is_cancelled_on_the_whole_terminal(tmp_path: Path) -> None:
    """The run continues after it; Ctrl-C ends the run."""
    marker = tmp_path / "marker"
    words = [f"{AGENTS}:hanger", f"hang marker='{marker}'", "--events", "screen"]
    terminal = Terminal(*words)
    until(marker.exists)
    terminal.until("hang")
    terminal.press("\x1b[B")
    terminal.until("Arguments")
    terminal.press("c")
    until(lambda: marker.read_text() == "cleaned up")
    terminal.until("cancelled after")
    terminal.press("q")
    terminal.end()
    assert "✗ hang" in without_style(terminal.shown)
    marker.unlink()
    terminal = Terminal(*words)
    until(marker.exists)
    terminal.press("\x03")
    assert terminal.end() == 130
    assert "cancelled" in terminal.shown


def test_texts_of_a_model_cannot_control_the_whole_terminal() -> None:
    """JSON can hide characters as escapes, which are shown, not obeyed."""
    from agents_tools.ui.console.screen import ScreenRun

    view = ScreenRun("Boss")
    evil = '{"a": "\\u202e\\u009b31m"}'
    item = ToolCallItem(call_id="c1", name="ask", arguments=evil)
    view.show(with_origin(RunItemStreamEvent("tool_called", item.to_dict())))
    output = ToolCallOutputItem(call_id="c1", name="ask", output=evil, status="ok")
    view.show(with_origin(RunItemStreamEvent("tool_output", output.to_dict())))
    console = Console(file=io.StringIO(), width=60)
    console.print(view.details(("c1",)))
    assert isinstance(console.file, io.StringIO)
    shown = console.file.getvalue()
    assert shown.count("\\u202e") == 2
    assert not {"\u202e", "\x9b"} & set(shown)


@pytest.mark.slow
@needs_terminal
def test_an_editor_that_fails_changes_nothing(tmp_path: Path) -> None:
    """Also if it writes what is not text; the question is asked again."""
    editor = tmp_path / "editor.py"
    editor.write_text("import sys; open(sys.argv[1], 'wb').write(b'\\xff')")
    variables = {"EDITOR": f"{sys.executable} {editor}", "VISUAL": ""}
    terminal = Terminal(f"{AGENTS}:burner", "x", **variables)
    terminal.until("[e]dit, [a]lways in this run: ")
    terminal.type("e")
    terminal.until("The arguments have not changed: ", "[e]dit, [a]lways in this run: ")
    terminal.type("y")
    assert terminal.end() == 0


def test_the_whole_terminal_requires_a_terminal(run: Run) -> None:
    result = run("run", f"{AGENTS}:plain", "x", "--events", "screen")
    assert result.code == 2
    assert "--events screen requires a terminal" in result.err


@needs_terminal
def test_a_tool_can_ask_the_person() -> None:
    """`ToolContext.ask` is answered at the terminal."""
    terminal = Terminal(f"{AGENTS}:asker", "x")
    terminal.until("Enter for none): ")
    assert "asks: Who are you?" in terminal.shown
    terminal.type("Ada")
    assert terminal.end() == 0
    assert "the name is Ada" in final_screen(terminal.shown)


@pytest.mark.slow
@needs_terminal
def test_ctrl_c_at_a_question_restores_the_terminal() -> None:
    """Ctrl-C must work at a question too."""
    terminal = Terminal(f"{AGENTS}:burner", "x")
    terminal.until("[a]lways in this run: ")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "cancelled" in final_screen(terminal.shown)
    assert "Fatal" not in terminal.shown


@pytest.mark.slow
@needs_terminal
def test_ctrl_c_leaves_the_current_tree_on_the_screen(tmp_path: Path) -> None:
    """The user needs the state at the interruption."""
    terminal = Terminal(f"{AGENTS}:hanger", f"hang, marker={tmp_path / 'm'}")
    terminal.until("\x1b[?25l")
    terminal.until("hang")
    terminal.process.send_signal(signal.SIGINT)
    assert terminal.end() == 130
    assert "✗ hang" in final_screen(terminal.shown)
    assert "cancelled after" in final_screen(terminal.shown)


# --- live view

BELOW = Origin("ask", "c1", ("c1",), EventSource.AGENT)
ROOT_ORIGIN = Origin(source=EventSource.AGENT)


def drawn(*events: Any, height: int = 24) -> list[str]:
    """Return the lines of the live view after these events."""
    view = RichRun("Boss")
    for event in events:
        view.show(event)
    view.count((), Usage(requests=1, input_tokens=5))
    console = Console(file=io.StringIO(), width=60, height=height, force_terminal=False)
    console.print(view)
    view.close("ok", 1.0)
    assert isinstance(console.file, io.StringIO)
    shown = re.sub("[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]", "*", without_times(console.file.getvalue()))
    return [line.rstrip() for line in shown.splitlines()]


def with_origin(event: Any, origin: Origin = ROOT_ORIGIN) -> Any:
    return event.stamped(origin, 0)


def called(name: str, call_id: str, origin: Origin = ROOT_ORIGIN) -> Any:
    item = ToolCallItem(call_id=call_id, name=name, arguments='{"a": 1}')
    return with_origin(RunItemStreamEvent("tool_called", item.to_dict()), origin)


def test_text_and_calls_are_shown_while_they_are_streamed() -> None:
    """Streamed output makes a slow model easier to wait for."""
    assert drawn(
        with_origin(text_delta("I will ")),
        with_origin(text_delta("look.\x1b[3")),
        with_origin(text_delta("1m Now.")),
        with_origin(call_started("c1", "ask")),
        with_origin(call_delta("c1", '{"input": "wh')),
    ) == snapshot(
        ["* Boss  … s · 1 request · 5 tokens", "├─ I will look. Now.", '└─ … ask {"input": "wh']
    )


def test_a_repeated_request_starts_with_empty_output() -> None:
    """Parts of a broken answer are not part of the model's output."""
    retry = RawResponseStreamEvent({"type": "agents_tools.retry", "attempt": 1, "delay": 2})
    assert drawn(
        with_origin(text_delta("I will")),
        with_origin(call_started("c1", "ask")),
        with_origin(retry),
    ) == snapshot(
        [
            "* Boss  … s · 1 request · 5 tokens",
            "   ! the model failed (attempt 1); trying again in … s",
        ]
    )


def test_the_next_model_of_a_fallback_is_named() -> None:
    """A person sees why the style of the answer changes."""
    data = {"type": "agents_tools.retry", "attempt": 1, "delay": 0.0, "model": "gpt-5"}
    assert drawn(with_origin(text_delta("I w")), with_origin(RawResponseStreamEvent(data))) == (
        snapshot(
            [
                "* Boss  … s · 1 request · 5 tokens",
                "   ! the model failed; gpt-5 is used instead",
            ]
        )
    )


@pytest.mark.parametrize(
    ("costs_of_models", "shown"),
    [
        ([0.00123], ["2 tokens", "$0.0012"]),
        ([0.000001], ["2 tokens", "$0.0001"]),
        ([1.5, 1_000], ["4 tokens", "$1,001.50"]),
        ([0.5, None], ["4 tokens", "at least $0.5000"]),
        ([None], ["2 tokens"]),
        ([0.0], ["2 tokens"]),
    ],
)
def test_the_cost_of_a_run_is_shown_if_it_is_known(
    costs_of_models: list[float | None], shown: list[str]
) -> None:
    """A cost without one of its parts is marked as such."""
    total = Usage()
    for number, cost in enumerate(costs_of_models):
        part = Usage(requests=1, input_tokens=2, cost=cost)
        one = part.copy()
        one.breakdown["Boss", f"model {number}"] = part
        total.add(one)
    assert costs(total, requests=False) == shown


def test_progress_is_a_bar_below_its_call() -> None:
    """The bar shows the position, the total and the message."""
    progress = with_origin(ToolProgressEvent(3, total=4, message="reading"), BELOW)
    assert drawn(called("ask", "c1"), progress) == snapshot(
        [
            "* Boss  … s · 1 request · 5 tokens",
            "└─ * ask a=1  … s",
            "      ━━━━━━━━━━━━━━━━━━────── 3/4 (75%) reading",
        ]
    )


def test_a_tree_that_is_too_high_keeps_its_top_and_its_newest_lines() -> None:
    """The current activity must be on the screen."""
    calls = [called(("ask", "tell")[number % 2], f"c{number}") for number in range(50)]
    lines = drawn(*calls, height=8)
    assert len(lines) <= 7
    assert "Boss" in lines[0]
    assert "lines above" in lines[1]
    assert lines[-1].startswith("└─ * tell")


def answered(call_id: str, status: CallStatus = "ok") -> Any:
    item = ToolCallOutputItem(call_id=call_id, name="research", output="x", status=status)
    return with_origin(RunItemStreamEvent("tool_output", item.to_dict()))


def test_many_calls_of_one_tool_are_one_line() -> None:
    """It sums them up; those that run, wait or have failed are still shown."""
    calls = [called("research", f"c{number}") for number in range(20)]
    ended = [answered(f"c{number}") for number in range(13)]
    assert drawn(*calls, *ended, answered("c13", "tool_error")) == snapshot(
        [
            "* Boss  … s · 1 request · 5 tokens",
            "└─ * research 14 of 20 · 1 failed  … s",
            "   ├─ ✗ research a=1 → x  failed after … s",
            "   ├─ * research a=1  … s",
            "   ├─ * research a=1  … s",
            "   ├─ * research a=1  … s",
            "   └─ * research a=1  … s",
        ]
    )
    done = drawn(*calls, *(answered(f"c{number}") for number in range(20)))
    assert done[1:] == snapshot(["└─ ✓ research 20 calls  … s"])


def test_the_markdown_of_an_answer_is_rendered_while_it_is_written() -> None:
    """The end of a long answer is shown."""
    rows = "\n".join(f"- point **{number}**" for number in range(500))
    assert drawn(with_origin(text_delta(f"# Title\n\n{rows}")))[-2:] == snapshot(
        ["    • point 498", "    • point 499"]
    )


def test_help_names_the_exit_codes(run: Run) -> None:
    """Scripts are written with them."""
    assert main(["run", "--help"]) == 0
    assert "5 a call waits for approval or was denied" in run("run", "--help").out
