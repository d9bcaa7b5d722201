"""The terminal session: its state, its end, and its limits."""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agents_tools import ToolError
from agents_tools.builtin.terminal import (
    BashExecutor,
    BashTool,
    TerminalAction,
    TerminalExecutor,
    TerminalObservation,
    TerminalTool,
)
from agents_tools.errors import UserError
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs bash")


class Shell(TerminalExecutor):
    """An executor with a shorter way to call it."""

    def run(self, command: str, **fields: object) -> TerminalObservation:
        return self(TerminalAction.model_validate({"command": command, **fields}))

    def text(self, command: str, **fields: object) -> str:
        return self.run(command, **fields).text


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path, soft_timeout=15)
    yield shell
    shell.close()


def model_text(observation: TerminalObservation) -> str:
    return str(observation.__tool_result__().content)


# --- state and results


def test_a_session_keeps_its_state(shell: Shell, tmp_path: Path) -> None:
    """A session is one bash: directory, variables, functions, traps and options persist."""
    (tmp_path / "inner").mkdir()
    moved = shell.run("cd inner; one=1; export two=2; f() { echo f$1; }; trap 'echo usr' USR1")
    assert moved.working_dir == str(tmp_path / "inner")
    assert moved.notes == [f"now in {tmp_path / 'inner'}"]
    assert shell.text("echo $one $two; f 3; kill -USR1 $$; pwd") == (
        f"1 2\nf3\nusr\n{tmp_path / 'inner'}\n"
    )


@pytest.mark.requirement("B58")
@pytest.mark.parametrize("code", [0, 1, 42, 255])
def test_the_exit_code_is_returned(shell: Shell, code: int) -> None:
    """An exit code is a result, not an error of the tool."""
    seen = shell.run(f"(exit {code})")
    assert (seen.exit_code, seen.is_error, seen.text) == (code, False, "")
    assert shell.text("echo $?") == f"{code}\n"


def test_the_text_for_the_model_adds_details_to_the_output(shell: Shell) -> None:
    """Programs get the output unchanged; the model reads the details below it."""
    assert model_text(shell.run("echo hi")) == "hi\n"
    assert model_text(shell.run("true")) == "[no output]"
    failed = shell.run("echo hi; false")
    assert failed.text == "hi\n"
    assert model_text(failed) == "hi\n[exit code 1]"


def test_the_observation_has_level_duration_and_command(shell: Shell) -> None:
    """It is JSON-compatible."""
    seen = shell.run("echo hi")
    assert seen.sandbox == "process"
    assert seen.command == "echo hi"
    assert seen.duration > 0
    assert TerminalObservation.model_validate_json(seen.model_dump_json()) == seen


@pytest.mark.requirement("S19")
def test_output_has_no_escape_codes_and_keeps_tabs_and_long_lines(shell: Shell) -> None:
    """Other tools returned bracketed-paste codes, spaces for tabs, and lines wrapped at 256 columns."""
    line = "x" * 20_000
    assert shell.text(f"printf 'a\\tb\\n'; echo {line}") == f"a\tb\n{line}\n"
    assert shell.text(r"printf '\033[?2004h\033[1;31mred\033[0m\033]0;title\a\000\r\n'") == "red\n"


def test_a_progress_bar_shows_its_last_state(shell: Shell) -> None:
    """Carriage returns work as on a terminal."""
    assert shell.text(r"printf '10%%\r50%%\r100%%\nabc\bX\n'") == "100%\nabX\n"


def test_unicode(shell: Shell) -> None:
    """Any language can be sent and received; invalid UTF-8 is replaced."""
    assert shell.text("echo 'grüße 你好 🎉'") == "grüße 你好 🎉\n"
    assert shell.text(r"printf 'a\xff\xc3b\n'") == "a\ufffd\ufffdb\n"


# --- commands of all kinds


@pytest.mark.parametrize(
    ("command", "code", "text"),
    [
        ("cat <<END\none\n  'two' $((1+1))\nEND", 0, "one\n  'two' 2\n"),
        ("for i in 1 2; do\n  echo $i\ndone", 0, "1\n2\n"),
        ("echo one \\\n  two # and no more", 0, "one two\n"),
        ("# only a comment", 0, ""),
        ("echo \"it's\" 'a \"b\"' `echo c` $'d\\te'", 0, 'it\'s a "b" c d\te\n'),
        ("return 3; echo on", 0, None),
        ("break; echo on", 0, None),
        ("exec /no/such/program", 127, None),
        ("f() { echo ${nothing:?is missing}; }; f; echo no", 1, "bash: nothing: is missing\n"),
        ("(", 2, None),
        ("echo 'unbalanced", 2, None),
        ("if true; then", 2, None),
        ("no-such-command", 127, "bash: no-such-command: command not found\n"),
        ("echo !$ !! !x", 0, "!$ !! !x\n"),
    ],
)
def test_a_command_of_any_kind_leaves_the_session_usable(
    shell: Shell, command: str, code: int, text: str | None
) -> None:
    """Syntax errors, open quotes and stray jumps end with the command."""
    seen = shell.run(command)
    assert seen.exit_code == code
    assert text is None or seen.text == text
    assert shell.text("echo fine") == "fine\n"


@pytest.mark.parametrize("name", ["printf", "eval", "exec", "cd", "jobs", "set", "trap", "unset"])
def test_functions_can_hide_builtins(shell: Shell, name: str) -> None:
    """Commands of the session itself keep working."""
    shell.run(f"{name}() {{ echo mine; }}")
    assert shell.text(name) == "mine\n"
    assert shell.run(f"{name}; false").exit_code == 1


def test_a_function_named_builtin_is_refused(shell: Shell) -> None:
    """It would hide all others, and the message states this."""
    seen = shell.run("builtin() { :; }")
    assert seen.is_error
    assert "Rename it" in seen.text


def test_aliases_work_from_the_next_command_on(shell: Shell) -> None:
    """Bash expands aliases when it reads a command."""
    shell.run("alias greet='echo hello'")
    assert shell.text("greet you") == "hello you\n"


def test_shell_options_persist(shell: Shell) -> None:
    """Tracing shows the commands of the model and not those of the session."""
    assert shell.text("set -x; echo a") == "++ echo a\na\n"
    assert shell.text("echo b") == "++ echo b\nb\n"
    assert shell.text("set +x") == "++ set +x\n"
    shell.run("set -u")
    assert shell.run("echo $nothing; echo no").exit_code == 1
    assert shell.text("set +u; echo $nothing.") == ".\n"


def test_set_e_ends_the_session_at_the_first_failure(shell: Shell) -> None:
    """The call reports it, and the next command works."""
    seen = shell.run("export kept=1; set -e; false; echo not reached")
    assert (seen.exit_code, seen.text) == (1, "")
    assert "the session has ended" in seen.notes[0]
    assert shell.text("echo $kept") == "1\n"


def test_exec_can_redirect_and_replace(shell: Shell, tmp_path: Path) -> None:
    """The shell can redirect its own streams, or become another program."""
    shell.run("exec 5>&1 >out.txt")
    assert shell.text("echo to the file") == ""
    assert shell.text("exec >&5; cat out.txt") == "to the file\n"
    seen = shell.run("exec echo replaced")
    assert (seen.text, seen.exit_code) == ("replaced\n", 0)
    assert shell.text("echo fine") == "fine\n"


def test_the_current_directory_can_be_removed(shell: Shell, tmp_path: Path) -> None:
    """The session and a new one after it still work."""
    shell.run("mkdir gone; cd gone; rmdir ../gone")
    assert shell.text("echo here") == "here\n"
    shell.run("exit 1")
    seen = shell.run("pwd")
    assert seen.text == f"{tmp_path}\n"
    assert seen.notes[0].startswith(f"{tmp_path / 'gone'} does not exist anymore")


def test_a_command_of_a_megabyte(shell: Shell) -> None:
    """A long command arrives complete, while bash reads it."""
    assert shell.text(f": {'x' * 1_000_000}; echo whole") == "whole\n"


def test_a_command_with_a_nul_is_refused(shell: Shell) -> None:
    """It would cut the command in two."""
    seen = shell.run("echo a\0b")
    assert seen.is_error
    assert "NUL" in seen.text
    assert shell.text("echo fine") == "fine\n"


# --- the end of a session


def test_exit_is_reported_at_once_and_the_next_command_works(shell: Shell, tmp_path: Path) -> None:
    """Other tools hang for 30 s, and return -1 for every command after it."""
    seen = shell.run("cd /usr; export one='a b'; two=2; echo a; exit 3")
    assert (seen.exit_code, seen.text, seen.is_error) == (3, "a\n", False)
    assert "starts a new one in /usr, with the exported variables" in seen.notes[0]
    assert shell.text("echo $one$two; pwd") == "a b\n/usr\n"


def test_a_trap_at_exit_runs(shell: Shell, tmp_path: Path) -> None:
    """A trap of the user replaces that of the session, which then knows less."""
    seen = shell.run("trap 'echo bye' EXIT; exit 5")
    assert seen.exit_code == 5
    assert seen.text.endswith("bye\n")
    shell.run("trap 'touch closed.txt' EXIT")
    shell.close()
    assert (tmp_path / "closed.txt").exists()


@pytest.mark.requirement("F16")
def test_a_killed_session_is_detected_at_once(shell: Shell) -> None:
    """The kill comes during a command, or between two."""
    shell.run("cd /usr")
    killed = shell.run("kill -KILL $$; sleep 600")
    assert (killed.exit_code, killed.is_error) == (137, True)
    assert "by SIGKILL" in killed.notes[0]
    pid = int(shell.text("echo $$"))
    os.kill(pid, signal.SIGKILL)
    assert shell._session is not None
    process = shell._session.handle.process
    until(lambda: process.poll() is not None)
    after = shell.run("pwd")
    assert (after.text, after.exit_code) == ("/usr\n", 0)
    assert "killed by" in after.notes[0]


@pytest.mark.parametrize("limit", [10, 100])
def test_a_session_ends_if_a_limit_makes_it_unusable(shell: Shell, limit: int) -> None:
    """Bash loses the descriptor for its reports, and every later call had to wait for ever."""
    seen = shell.run(f"cd /usr; export one=1; ulimit -n {limit}")
    assert seen.exit_code == 0
    assert "starts a new one in /usr, with the exported variables" in seen.notes[0]
    assert shell.text("echo $one; pwd") == "1\n/usr\n"
    assert shell.text(f"(ulimit -n {limit}; echo fine)") == "fine\n"


def test_reset_starts_a_new_session(shell: Shell, tmp_path: Path) -> None:
    """No state persists, and running commands are ended."""
    shell.run("cd /usr; export one=1; sleep 300 & echo")
    seen = shell.run("echo $one; pwd; jobs", reset=True)
    assert seen.text == f"\n{tmp_path}\n"
    assert seen.notes[0] == "a new session"
    assert shell.run("", reset=True).exit_code == 0


# --- long commands


def test_a_timeout_ends_the_command_and_not_the_session(shell: Shell) -> None:
    """Other tools lost the next command after a timeout; here none of twenty is lost."""
    shell.run("kept=1")
    for turn in range(20):
        seen = shell.run("echo begun; sleep 60", timeout=0.05)
        assert (seen.exit_code, seen.timed_out, seen.is_error) == (124, True, True)
        assert seen.text.startswith("begun\n")
        assert "stopped after 0.05 s" in seen.notes[0]
        assert shell.text(f"echo {turn} $kept") == f"{turn} 1\n"


@pytest.mark.parametrize(
    "command",
    [
        "while :; do :; done",
        "while :; do sleep 0.01; done",
        "sleep 600 | cat",
        "f() { sleep 600; echo after; }; f; f",
        "python3 -c 'import time; time.sleep(600)'",
    ],
)
def test_a_timeout_stops_the_whole_command(shell: Shell, command: str) -> None:
    """Ctrl-C ends loops of the shell, pipelines and functions, as in an interactive shell."""
    shell.run("kept=1")
    seen = shell.run(command, timeout=0.2)
    assert seen.timed_out
    assert shell.text("echo $kept") == "1\n"


@pytest.mark.parametrize("command", ["cat", "read line", "python3 -q"])
def test_a_timeout_stops_a_command_that_waits_for_input(shell: Shell, command: str) -> None:
    """Otherwise it would block the next command."""
    shell.run("kept=1")
    seen = shell.run(command, timeout=1)
    assert (seen.exit_code, seen.timed_out, seen.running) == (124, True, False)
    if Path("/proc/self/syscall").exists():
        assert seen.notes == [
            "the command was stopped after 1 s while it waited for input",
            "to type into it, run it without timeout",
        ]
    assert shell.text("echo $kept") == "1\n"


@pytest.mark.requirement("F15")
def test_a_shell_that_cannot_be_interrupted_is_ended(shell: Shell) -> None:
    """The session ends with it, and the call reports that."""
    seen = shell.run("trap '' INT; while :; do :; done", timeout=0.1)
    assert (seen.exit_code, seen.timed_out) == (124, True)
    assert "so the session was" in seen.notes[0]
    assert shell.text("echo fine") == "fine\n"


def test_the_call_returns_while_the_command_continues(shell: Shell) -> None:
    """Without a timeout nothing is killed: the model waits, types, or stops it."""
    shell.soft_timeout = 0.2
    begun = shell.run("echo begun; read -t 60 line < <(sleep 60); echo done")
    assert begun.running
    assert begun.exit_code is None
    assert begun.text == "begun\n"
    assert "still running" in begun.notes[0]
    busy = shell.run("echo other")
    assert busy.is_error
    assert "still running" in busy.text
    assert shell.run("").running
    stopped = shell.run("C-c", is_input=True)
    assert stopped.exit_code == 130
    assert not stopped.running
    assert shell.text("echo fine") == "fine\n"


def test_an_empty_command_waits_for_more_output(shell: Shell, tmp_path: Path) -> None:
    """Each call returns only the new output."""
    shell.soft_timeout = 0.2
    shell.run("echo one; until [ -e go ]; do sleep 0.01; done; echo two")
    shell.soft_timeout = 15
    (tmp_path / "go").touch()
    seen = shell.run("")
    assert (seen.text, seen.exit_code, seen.running) == ("two\n", 0, False)


def test_a_command_runs_between_calls(shell: Shell, tmp_path: Path) -> None:
    """Its output is read between calls, so more than a pipe buffer does not block it."""
    shell.soft_timeout = 0.2
    assert shell.run("sleep 0.5; seq 1 200000; touch done; sleep 300").running
    until((tmp_path / "done").exists)
    seen = shell.run("")
    assert seen.truncated
    assert seen.text.endswith("199999\n200000\n")


def test_jobs_in_the_background_are_listed_and_ended(shell: Shell, tmp_path: Path) -> None:
    """They do not block a call, can write between calls, and end with the session."""
    seen = shell.run("(seq 1 200000; touch done; sleep 300) &")
    assert len(seen.background) == 1
    assert "Running" in seen.background[0]
    assert "background job: [1]" in model_text(seen)
    until((tmp_path / "done").exists)
    assert "200000" in shell.text("true")
    pid = int(shell.text("echo $!"))
    shell.close()
    until(lambda: not Path(f"/proc/{pid}").exists())


# --- input


def test_a_command_can_read_all_of_its_input(shell: Shell) -> None:
    """It cannot reach the control channel of the session."""
    assert shell.run("cat").running
    assert shell.text("one line", is_input=True) == "one line\n"
    ended = shell.run("C-d", is_input=True)
    assert (ended.exit_code, ended.running) == (0, False)
    assert shell.text("echo fine") == "fine\n"


@pytest.mark.skipif(not Path("/proc/self/syscall").exists(), reason="needs /proc/self/syscall")
def test_a_program_that_waits_for_input_is_detected(shell: Shell) -> None:
    """The call returns with the prompt before its timeout."""
    shell.soft_timeout = 60
    asked = shell.run("read -p 'name? ' name; echo hello $name")
    assert (asked.text, asked.waits_for_input, asked.running) == ("name? ", True, True)
    assert "call again with is_input=true and a line as command" in asked.notes[0]
    assert shell.run("Ada", is_input=True).text == "hello Ada\n"


def test_a_python_prompt(shell: Shell) -> None:
    """The input of programs is a terminal."""
    shell.soft_timeout = 5
    assert shell.text("python3 -q").endswith(">>> ")
    assert shell.text("6 * 7", is_input=True) == "42\n>>> "
    assert shell.run("exit()", is_input=True).exit_code == 0


def test_a_password_prompt_on_the_terminal_itself(shell: Shell) -> None:
    """Programs that open the terminal by its name receive the input."""
    code = "import getpass; print(len(getpass.getpass()))"
    asked = shell.run(f"python3 -c '{code}'")
    assert "Password:" in asked.text
    assert shell.run("secret", is_input=True).text.strip() == "6"


def test_long_and_multi_line_input(shell: Shell) -> None:
    """A terminal accepts lines of 4,095 bytes: longer ones are sent in parts."""
    shell.run("cat > got.txt")
    line = "y" * 30_000
    shell.run(f"first\n{line}\nlast", is_input=True)
    shell.run("C-d", is_input=True)
    assert shell.text("wc -lc < got.txt").split() == ["3", "30012"]


def test_unread_input_is_discarded_at_the_end_of_a_command(shell: Shell) -> None:
    """The next command would read it, and a shell would execute it."""
    shell.run("read -r line; echo got $line; read -r")
    typed = shell.run("one\ntwo\nthree\nfour", is_input=True)
    assert (typed.text, typed.exit_code) == ("got one\n", 0)
    waiting = shell.run("read -r line; echo next $line")
    assert "waits for input" in waiting.notes[0]
    assert shell.text("five", is_input=True) == "next five\n"


def test_control_z_stops_a_job_that_can_be_resumed(shell: Shell) -> None:
    """Job control works as in an interactive bash."""
    shell.soft_timeout = 0.2
    shell.run("sleep 300")
    stopped = shell.run("C-z", is_input=True)
    assert stopped.exit_code == 148
    assert "Stopped" in stopped.background[0]
    assert "Running" in shell.run("bg").background[0]
    assert shell.run("kill %1; wait; true").background == []


def test_input_without_a_running_program_is_refused(shell: Shell) -> None:
    """The next command would read it."""
    for action in ({"command": "yes", "is_input": True}, {"command": "C-c"}):
        seen = shell(TerminalAction.model_validate(action))
        assert seen.is_error
        assert "No command is running" in seen.text


@pytest.mark.parametrize(
    "command", ["less text", "more text", "man -P less true", "git log", "git diff --no-index a b"]
)
def test_pagers_do_not_hang(shell: Shell, tmp_path: Path, command: str) -> None:
    """In other tools a pager blocks the session."""
    (tmp_path / "text").write_text("line\n" * 500)
    seen = shell.run(command)
    assert not seen.running


# --- concurrent calls and cancellation


def test_concurrent_calls_run_one_after_the_other(shell: Shell) -> None:
    """One session runs one command at a time, in the order of the calls."""
    seen: list[str] = []
    threads = [
        threading.Thread(target=lambda i=i: seen.append(shell.text(f"sleep 0.01; echo {i}")))
        for i in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(seen) == [f"{i}\n" for i in range(8)]


def test_an_interrupt_ends_the_command_and_not_the_session(shell: Shell, tmp_path: Path) -> None:
    """`interrupt` is called from another thread, and the call returns soon."""
    shell.run("kept=1")
    seen: list[TerminalObservation] = []
    thread = threading.Thread(target=lambda: seen.append(shell.run("touch begun; sleep 60")))
    thread.start()
    until((tmp_path / "begun").exists)
    shell.interrupt()
    thread.join(10)
    assert (seen[0].exit_code, seen[0].is_error, seen[0].running) == (130, True, False)
    assert shell.text("echo $kept") == "1\n"
    shell.interrupt()
    assert shell.text("echo $kept") == "1\n"


def test_closing_ends_a_running_call(shell: Shell, tmp_path: Path) -> None:
    """No caller hangs, and further commands are refused."""
    seen: list[TerminalObservation] = []
    thread = threading.Thread(target=lambda: seen.append(shell.run("touch begun; sleep 60")))
    thread.start()
    until((tmp_path / "begun").exists)
    shell.close()
    thread.join(10)
    assert seen[0].exit_code == 130
    with pytest.raises(ToolError, match="closed"):
        shell.run("true")


# --- creation


@pytest.mark.requirement("B54")
def test_the_tool_can_be_created_without_arguments(tmp_path: Path) -> None:
    """No conversation is needed, and no process is started."""
    tool = BashTool.create()[0]
    assert BashTool is TerminalTool
    assert tool.name == "execute_bash"
    assert tool.executor.default._session is None
    assert BashExecutor is TerminalExecutor


@pytest.mark.requirement("B51")
def test_the_directory_comes_from_the_conversation(tmp_path: Path) -> None:
    """An explicit directory has priority."""

    class Workspace:
        working_dir = str(tmp_path)

    class State:
        workspace = Workspace()

    tool = TerminalTool.create(State())[0]
    assert tool(TerminalAction(command="pwd")).text == f"{tmp_path}\n"
    tool.close()


@pytest.mark.requirement("B61", "B58")
def test_tools_can_share_an_executor(shell: Shell) -> None:
    """They use the same session."""
    one, two = (TerminalTool.create(executor=shell)[0] for _ in range(2))
    one(TerminalAction(command="shared=1"))
    assert two(TerminalAction(command="echo $shared")).text == "1\n"


@pytest.mark.requirement("B19", "B20", "C19")
def test_annotations_and_schema(tmp_path: Path) -> None:
    """The tool is destructive and open-world, and has a risk argument."""
    tool = TerminalTool.create(working_dir=tmp_path)[0]
    hints = tool.annotations
    assert hints is not None
    assert (hints.read_only, hints.destructive, hints.idempotent, hints.open_world) == (
        False,
        True,
        False,
        True,
    )
    assert list(tool.to_mcp_tool()["inputSchema"]["properties"]) == [
        "command",
        "timeout",
        "is_input",
        "reset",
    ]
    described = tool.to_openai_tool(add_security_risk_prediction=True)["function"]
    assert "security_risk" in described["parameters"]["properties"]
    assert "not confined" in described["description"]
    assert json.dumps(described)


def test_limits_are_validated_at_creation() -> None:
    """The error is raised where the mistake is."""
    with pytest.raises(UserError, match="soft_timeout=0"):
        TerminalExecutor(soft_timeout=0)


def test_without_bash_the_first_command_reports_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The tool can be created anywhere, such as on Windows; only commands fail."""
    monkeypatch.setenv("PATH", str(tmp_path))
    shell = Shell(tmp_path)
    with pytest.raises(ToolError, match="bash was not found"):
        shell.run("true")
