"""MCP servers as a TARGET, and `mcp list|call|ping`, against real processes and listeners."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from inline_snapshot import snapshot

from tests.cli.conftest import FIXTURE
from tests.cli.test_cli_process import python, start
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.cli.conftest import Run

ECHO = str(Path(__file__).parent / "mcp_echo_server.py")
SERVER = shlex.join([sys.executable, ECHO])
TOKEN = "a token of more than 16 characters".replace(" ", "-")


def command_words(mode: str, folder: Path) -> list[str]:
    """Return the words of a command that starts the server."""
    return [sys.executable, ECHO, mode, str(folder)]


@pytest.fixture
def config(tmp_path: Path) -> Path:
    """Return a configuration file with a server that works and one that does not."""
    path = tmp_path / "mcp.json"
    entries = {
        "good": {"command": sys.executable, "args": [ECHO, "good", str(tmp_path)]},
        "bad": {"command": sys.executable, "args": [ECHO, "dead"]},
        "off": {"command": "nothing", "disabled": True},
    }
    path.write_text(json.dumps({"mcpServers": entries}))
    return path


@pytest.fixture
def good(config: Path) -> str:
    """Return the target of the server that works."""
    return f"{config}:good"


@pytest.fixture
def guarded() -> Iterator[str]:
    """Yield the address of a listener that requires a token."""
    env = {**os.environ, "LISTENER_TOKEN": TOKEN}
    words = ["--transport", "http", "--port", "0", "--json", "--auth-token-env", "LISTENER_TOKEN"]
    with start("serve", FIXTURE, *words, env=env) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"]
        process.terminate()
        process.communicate(timeout=15)


def is_alive(pid: int) -> bool:
    """Return whether the process exists."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def has_ended(folder: Path) -> bool:
    """Return whether the server that recorded its process id there ends within the time limit."""
    pid = int((folder / "pid").read_text())
    until(lambda: not is_alive(pid))
    return True


# --- commands with a TARGET


def test_the_tools_of_a_configuration_are_listed(run: Run, good: str) -> None:
    """Commands work the same for remote tools."""
    result = run("list", good)
    assert (result.code, result.err) == (0, "")
    assert [line.split()[0] for line in result.out.splitlines()] == [
        "good_echo",
        "good_wipe",
        "good_fail",
        "good_die",
        "good_hang",
        "good_variable",
    ]
    first = run("list", good, "--json").json[0]
    assert (first["kind"], first["server"], first["wire_name"]) == ("mcp", "good", "echo")


def test_servers_that_fail_are_reported_and_the_rest_works(run: Run, config: Path) -> None:
    """One broken server must not affect the others."""
    result = run("list", str(config))
    assert result.code == 0
    assert "good_echo" in result.out
    assert "warning: MCP server 'bad'" in result.err
    assert "exit code 7" in result.err
    assert "the key of the cellar is missing" in result.err


def test_a_server_that_cannot_be_reached_is_named_with_its_last_output(
    run: Run, config: Path
) -> None:
    """The exit code is that of a bad target; the output of the server explains the failure."""
    result = run("list", f"{config}:bad")
    assert (result.code, result.out) == (2, "")
    assert "MCP server 'bad' could not be connected" in result.err
    assert "the key of the cellar is missing" in result.err
    reported = run("list", f"{config}:bad", "--json").json
    assert reported["error"]["type"] == "MCPConnectionError"
    unreachable = run("list", "http://127.0.0.1:9/mcp")
    assert unreachable.code == 2
    assert "MCP server '127.0.0.1:9' could not be connected" in unreachable.err


@pytest.mark.parametrize(
    ("content", "target", "expected"),
    [
        (None, "mcp.json", "not found"),
        ("{", "mcp.json", "cannot be read"),
        ('{"mcpServers": {}}', "mcp.json", "has no enabled MCP servers"),
        ('{"mcpServers": {"a": {"command": "x"}}}', "mcp.json:b", "has no MCP server 'b'"),
        ('{"mcpServers": {"a": {}}}', "mcp.json", 'requires "command"'),
    ],
)
def test_errors_in_a_configuration_file_are_reported(
    content: str | None, target: str, expected: str, run: Run, tmp_path: Path
) -> None:
    """No server is started and no exception escapes."""
    if content is not None:
        (tmp_path / "mcp.json").write_text(content)
    result = run("list", str(tmp_path / target))
    assert (result.code, result.out) == (2, "")
    assert expected in result.err


def test_a_call_prints_the_result_alone(run: Run, good: str) -> None:
    """Arguments are parsed by the server's schema, and the server's own tool name is accepted.

    The connection is closed when the command ends (it once was before the call).
    """
    result = run("call", good, "good_echo", "text=5", "times=2")
    assert (result.code, result.out, result.err) == (0, "5 5\n", "")
    assert has_ended(Path(good).parent)
    assert run("call", good, "echo", "--text", "a").out == "a\n"


@pytest.mark.parametrize(
    ("words", "code", "status"),
    [
        (["fail"], 1, "tool_error"),
        (["echo", "times=0", "text=a"], 3, "invalid_args"),
        (["hang", "--timeout", "0.2"], 4, "timeout"),
        (["die"], 5, "lost"),
        (["nothing"], 2, "usage_error"),
    ],
)
def test_exit_codes_report_the_outcome_of_a_call(
    words: list[str], code: int, status: str, run: Run, good: str
) -> None:
    """Scripts rely on them, for remote tools too; the server ends each time."""
    reported = run("call", good, *words, "--json")
    assert (reported.code, reported.json["status"], reported.err) == (code, status, "")
    assert has_ended(Path(good).parent)
    assert run("call", good, *words).code == code


def test_the_help_of_a_tool_is_made_from_its_schema(run: Run, good: str) -> None:
    result = run("call", good, "good_echo", "--help")
    assert result.code == 0
    assert "--text STRING" in result.out
    assert "What to say.  [required]" in result.out
    choice = run("call", good, "--help")
    assert "good_variable" in choice.out


def test_show_schema_and_check_take_servers(run: Run, good: str) -> None:
    """Hidden tools and unusable tools are shown too."""
    shown = run("show", good, "echo")
    assert "good, which calls it echo" in shown.out
    assert "tool of an MCP server" in shown.out
    assert run("show", good, "echo", "--json").json["wire_name"] == "echo"
    written = run("schema", good, "echo", "--provider", "openai_chat", "--json").json
    assert written["function"]["name"] == "good_echo"
    checked = run("check", good, "--json").json
    assert checked["ok"] is True
    by_code = {found["code"]: found for found in checked["findings"]}
    assert by_code["left-out"]["tool"] == "later"
    assert by_code["hidden-text"]["tool"] == "wipe"
    assert "docstring" not in run("check", good).out


def test_a_server_without_tools_is_reported_with_a_hint(run: Run, tmp_path: Path) -> None:
    """The output says that there are none, and where to look."""
    path = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [ECHO, "empty"]}
    path.write_text(json.dumps({"mcpServers": {"empty": entry}}))
    result = run("list", str(path))
    assert (result.code, result.out) == (2, "")
    assert "has no tools" in result.err
    assert "agents-tools mcp list" in result.err
    assert "(no tools)" in run("mcp", "list", str(path)).out


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("mode", ["good", pytest.param("deaf", marks=pytest.mark.slow)])
def test_ctrl_c_ends_the_call_and_the_server(mode: str, tmp_path: Path) -> None:
    """This holds while connecting and during a call, which is cancelled at the server."""
    words = ["mcp", "call", shlex.join(command_words(mode, tmp_path)), "hang", "--json"]
    with start(*words) as process:
        marker = tmp_path / ("hanging" if mode == "good" else "pid")
        until(lambda: process.poll() is not None or (marker.exists() and marker.read_text()))
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=15)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert has_ended(tmp_path)
    assert mode == "deaf" or (tmp_path / "cancelled").exists()


# --- mcp list, call, ping


def test_mcp_list_shows_server_details_and_findings(run: Run, tmp_path: Path) -> None:
    """It shows annotations, unusable tools and hidden text, escaped for a terminal."""
    result = run("mcp", "list", "--", *command_words("good", tmp_path))
    assert (result.code, result.err) == (0, "")
    head, _, rest = result.out.partition("\n")
    name = Path(sys.executable).name
    assert head == f"{name}: echoes 1.2.3, protocol 2025-11-25, {sys.executable}"
    assert rest == snapshot("""\
  echo      Say it again. [read-only, idempotent]
  wipe      Wipe it. [destructive]
  fail      (no description)
  die       (no description)
  hang      (no description)
  variable  Give a variable of the environment.
  Left out:
    later  it can be called as a task only, and the server does not support tasks
  Removed:
    wipe  description: removed controls of the writing direction: 1 U+202E;
          description: removed invisible characters: 1 U+200B, 1 U+E0041
""")
    assert has_ended(tmp_path)


def test_mcp_list_as_json_is_complete(run: Run, config: Path) -> None:
    """Scripts get every server, including those that failed."""
    result = run("mcp", "list", str(config), "--json")
    good, bad = result.json
    assert (good["name"], good["connected"], good["protocol_version"]) == (
        "good",
        True,
        "2025-11-25",
    )
    assert good["server_info"]["version"] == "1.2.3"
    assert good["instructions"] == "Ask for echoes."
    assert good["tools"][0]["hints"] == ["read-only", "idempotent"]
    assert list(good["skipped"]) == ["later"]
    assert list(good["findings"]) == ["wipe"]
    assert (bad["name"], bad["connected"]) == ("bad", False)
    assert "exit code 7" in bad["error"]


def test_mcp_call_accepts_a_command_in_two_spellings(run: Run, tmp_path: Path) -> None:
    """The command is one quoted word, or the words between two `--`."""
    words = command_words("good", tmp_path)
    quoted = run("mcp", "call", shlex.join(words), "echo", "text=a")
    assert (quoted.code, quoted.out, quoted.err) == (0, "a\n", "")
    bare = run("mcp", "call", "--", *words, "--", "echo", "text=a")
    assert (bare.code, bare.out, bare.err) == (0, "a\n", "")
    wrong = run("mcp", "call", SERVER, "echo", "times=0")
    assert wrong.code == 3
    assert f"agents-tools mcp call '{SERVER}' echo --help" in wrong.err
    assert run("mcp", "call", SERVER, "echo", "--help").code == 0
    assert "TARGET TOOL" in run("mcp", "call", "--help").out
    assert run("mcp", "call").code == 2


ASKING = """
from agents_tools import function_tool
from agents_tools.mcp import sample


@function_tool
def weigh(thing: str) -> str:
    \"\"\"Return the weight of a thing.\"\"\"
    return f"5 g of {thing}"


@function_tool
async def consult(request: str) -> str:
    \"\"\"Ask the model of the client, which can weigh things.\"\"\"
    return (await sample(request, tools=[weigh])).text
"""


@pytest.mark.slow
def test_mcp_call_answers_requests_for_a_model(run: Run, tmp_path: Path) -> None:
    """The model can call the tools that the server offers; without a model it gets an error."""
    path = tmp_path / "asking.py"
    path.write_text(ASKING)
    server = shlex.join([sys.executable, "-m", "agents_tools", "serve", str(path)])
    words = ("mcp", "call", server, "consult", "request=weigh 'tea'")
    answered = run(*words, "--model", "local/rules")
    assert (answered.code, answered.err) == (0, "")
    assert "5 g of tea" in answered.out
    refused = run(*words)
    assert refused.code == 1
    assert "does not support sampling" in refused.err
    wrong = run(*words, "--model", "nowhere/1")
    assert wrong.code == 2
    assert "The model 'nowhere/1' has no known provider" in wrong.err
    assert "--model NAME" in run("mcp", "call", "--help").out


def test_mcp_ping_reports_the_response_time_of_each_server(run: Run, config: Path) -> None:
    """The exit code reports whether all of them answer."""
    well = run("mcp", "ping", f"{config}:good", "--json")
    assert well.code == 0
    assert well.json["good"]["ok"] is True
    assert well.json["good"]["seconds"] >= 0
    half = run("mcp", "ping", str(config))
    assert half.code == 1
    assert "no answer" in half.out
    assert " ms" in half.out
    assert run("mcp", "ping", f"{config}:bad").code == 2


def test_a_silent_server_is_abandoned_after_the_timeout(run: Run, tmp_path: Path) -> None:
    """The user sets the timeout."""
    result = run("mcp", "list", "--timeout", "0.5", "--", *command_words("deaf", tmp_path))
    assert result.code == 2
    assert "has not answered within 0.5 s" in result.err
    assert has_ended(tmp_path)


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        (FIXTURE, "is not a command but a Python file"),
        ("no-such-program-at-all", "program 'no-such-program-at-all' was not found"),
        ("'unclosed", "cannot be read"),
        (" ", "the command is empty"),
        ("http://[::1/mcp", "is not a valid URL"),
    ],
)
def test_an_invalid_server_is_reported_with_a_remedy(target: str, expected: str, run: Run) -> None:
    """The remedy follows the message."""
    result = run("mcp", "list", target)
    assert (result.code, result.out) == (2, "")
    assert expected in result.err


# --- the environment, and headers


def test_a_variable_is_passed_on_only_when_it_is_named(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Servers do not get the keys of the user's environment."""
    monkeypatch.setenv("CELLAR_KEY", "brass")
    words = ["variable", "name=CELLAR_KEY"]
    assert run("mcp", "call", SERVER, *words).out == "(not set)\n"
    assert run("mcp", "call", SERVER, *words, "--env", "CELLAR_KEY").out == "brass\n"
    missing = run("mcp", "call", SERVER, *words, "--env", "CELLAR_DOOR")
    assert missing.code == 2
    assert "CELLAR_DOOR is not set" in missing.err


@pytest.mark.slow
@pytest.mark.parametrize(
    "spelling", [pytest.param(f"Bearer {TOKEN}", marks=pytest.mark.slow), "Bearer ${MY_TOKEN}"]
)
def test_headers_reach_the_address_and_are_never_shown(
    spelling: str, run: Run, guarded: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They appear neither in results, nor in errors, nor with --debug."""
    monkeypatch.setenv("MY_TOKEN", TOKEN)
    header = ["--header", f"Authorization: {spelling}"]
    listed = run("mcp", "list", guarded, *header, "--json")
    assert listed.code == 0, listed.err
    called = run("mcp", "call", guarded, "add", "a=1", *header)
    assert (called.code, called.out) == (0, "3\n")
    failed = run("mcp", "call", guarded.replace("/mcp", "/nowhere"), "add", *header, "--debug")
    assert failed.code == 2
    for result in (listed, called, failed):
        assert TOKEN not in result.out + result.err


@pytest.mark.slow
def test_a_missing_token_is_reported_with_the_option(run: Run, guarded: str) -> None:
    """The remedy names an option of this program, not an argument of the library."""
    result = run("list", guarded)
    assert (result.code, result.out) == (2, "")
    assert "401" in result.err
    assert "--header 'Authorization: Bearer" in result.err
    unset = run("mcp", "list", guarded, "--header", "Authorization: Bearer ${NOT_SET_AT_ALL}")
    assert unset.code == 2
    assert "NOT_SET_AT_ALL of the header Authorization is not set" in unset.err
    other = run("mcp", "list", guarded, "--transport", "sse", "--timeout", "2")
    assert other.code == 2


@pytest.mark.parametrize("header", ["secret", ": secret", "a b: secret", "a: sec\nret: x"])
def test_an_invalid_header_is_rejected_without_showing_it(header: str, run: Run) -> None:
    """The mistyped text can be the secret itself."""
    result = run("mcp", "list", "http://127.0.0.1:9/mcp", "--header", header)
    assert result.code == 2
    assert "'Name: value'" in result.err
    assert "sec" not in result.err


def test_options_without_effect_on_a_server_are_rejected(run: Run, config: Path) -> None:
    """A header that is not sent, or is sent to the wrong server, would go unnoticed."""
    header = ["--header", "A: b"]
    assert "require a URL" in run("mcp", "list", SERVER, *header).err
    assert "requires a command" in run("mcp", "list", "http://127.0.0.1:9/mcp", "--env", "HOME").err
    several = run("mcp", "list", str(config), *header)
    assert several.code == 2
    assert f"Name the one: {config}:good" in several.err


# --- installation


@pytest.mark.slow
def test_without_the_extra_one_line_explains_how_to_install_it() -> None:
    """The command line can be installed without MCP."""
    for words in (["mcp", "list", "x"], ["list", "http://127.0.0.1:9/mcp"], ["serve", FIXTURE]):
        result = python(
            "import sys; sys.modules['mcp'] = None\n"
            f"from agents_tools.cli import main; sys.exit(main({words!r}))"
        )
        assert (result.returncode, result.stdout) == (2, "")
        assert 'pip install "agents-tools[mcp]"' in result.stderr
        assert "Traceback" not in result.stderr


def test_local_tools_do_not_load_mcp() -> None:
    """Users without servers must not wait for the import."""
    result = python(
        "import sys\n"
        "from agents_tools.cli import main\n"
        f"main(['list', {FIXTURE!r}]); main(['mcp', '--help'])\n"
        "print([name for name in sys.modules if name.partition('.')[0] in {'mcp', 'httpx'}])"
    )
    assert result.stdout.endswith("[]\n"), result.stdout + result.stderr


def test_doctor_reports_which_servers_can_be_started(run: Run) -> None:
    """Most configurations use npx or uvx."""
    reported: dict[str, Any] = run("doctor", "--json").json["mcp"]
    assert reported["sdk"]
    assert reported["validator"]
    assert {"node", "npx", "uvx"} <= reported["programs"].keys()
    assert "MCP:" in run("doctor").out
