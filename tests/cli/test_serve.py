"""`serve`: the command as protocol clients, users and process supervisors see it."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.conftest import FIXTURE
from tests.cli.test_cli_process import COMMAND, start
from tests.cli.test_mcp import ECHO, has_ended
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator

    from tests.cli.conftest import Run

NOISY = '''
import os

from agents_tools import Agent, function_tool

print("print of the module")
os.system("echo print of a child")
os.write(1, b"print of the system\\n")


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    print("print of the tool")
    os.system("echo print of its child")
    return a + b


@function_tool
def crash() -> int:
    """Crash."""
    raise RuntimeError("the password is hunter2")


helper = Agent(name="helper", instructions="Help.", tools=[add])
other = Agent(name="other", instructions="Help.", tools=[helper.as_tool()])
'''
STUCK = '''
import asyncio
import time
from pathlib import Path

from agents_tools import function_tool


@function_tool
async def wait(marker: str) -> str:
    """Wait in a thread that cannot be stopped."""
    Path(marker).write_text("started")
    await asyncio.to_thread(time.sleep, 60)
    return "over"
'''
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "a test", "version": "1"},
    },
}
HTTP = ["--transport", "http", "--port", "0"]
INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


@contextlib.contextmanager
def serving(*words: str, **options: Any) -> Generator[subprocess.Popen[str]]:
    """Run `serve`, and stop it after the test."""
    with start("serve", *words, **options) as process:
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()


def message(number: int, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": method, "params": params}


def calling(number: int, name: str, **arguments: Any) -> dict[str, Any]:
    return message(number, "tools/call", name=name, arguments=arguments)


def send_messages(process: subprocess.Popen[str], *messages: dict[str, Any]) -> None:
    """Write messages to a server."""
    assert process.stdin is not None
    process.stdin.write("".join(json.dumps(one) + "\n" for one in messages))
    process.stdin.flush()


def read_message(process: subprocess.Popen[str]) -> dict[str, Any]:
    """Read the next message of a server."""
    assert process.stdout is not None
    return json.loads(process.stdout.readline())


def wait_for(marker: Path) -> None:
    until(marker.exists)


@pytest.fixture
def noisy(tmp_path: Path) -> str:
    """Return a module that prints in every possible way."""
    path = tmp_path / "sample.py"
    path.write_text(NOISY)
    return str(path)


# --- stdio


@pytest.mark.slow
def test_only_protocol_messages_are_on_standard_output(noisy: str) -> None:
    """Clients fail on anything else, so there is no banner."""
    with serving(noisy, stdin=subprocess.PIPE) as process:
        send_messages(process, INITIALIZE, INITIALIZED, calling(2, "add", a=2))
        answers = [read_message(process), read_message(process)]
        rest, err = process.communicate(timeout=15)
    assert (process.returncode, rest) == (0, "")
    assert answers[0]["result"]["serverInfo"]["name"] == "agents-tools"
    assert answers[1]["result"]["content"][0]["text"] == "3"
    for what in ("the module", "a child", "the system", "the tool", "its child"):
        assert f"print of {what}" in err
    assert "Serving" not in err


def test_tools_and_agents_are_served(noisy: str, run: Run) -> None:
    """An agent is a tool with a task; an agent that is a tool of another is served too."""
    server = shlex.join([*COMMAND, "serve", noisy])
    listed = run("mcp", "list", server, "--json")
    assert [tool["name"] for tool in listed.json[0]["tools"]] == ["add", "crash", "helper", "other"]
    assert run("mcp", "call", server, "add", "a=2").out == "3\n"
    one = run("mcp", "list", f"{shlex.join([*COMMAND, 'serve', noisy])}:helper", "--json")
    assert [tool["name"] for tool in one.json[0]["tools"]] == ["helper"]


@pytest.mark.slow
def test_internal_errors_are_shown_only_on_request(noisy: str, run: Run) -> None:
    """The text of an exception can contain secrets."""
    server = [*COMMAND, "serve", noisy]
    hidden = run("mcp", "call", shlex.join(server), "crash", "--json")
    assert hidden.code == 1
    assert "hunter2" not in hidden.out
    shown = run("mcp", "call", shlex.join([*server, "--show-errors"]), "crash", "--json")
    assert "hunter2" in shown.out


@pytest.mark.slow
def test_only_some_tools_are_served(run: Run) -> None:
    """The option is a pattern of names; a pattern without a match is an error."""
    server = shlex.join([*COMMAND, "serve", FIXTURE, "--only", "ad*", "--only", "echo"])
    listed = run("mcp", "list", server, "--json")
    assert {tool["name"] for tool in listed.json[0]["tools"]} == {"add", "echo"}
    with serving(FIXTURE, "--only", "nothing*", stdin=subprocess.DEVNULL) as process:
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out) == (2, "")
    assert "No tool matches" in err
    assert "add" in err


@pytest.mark.slow
def test_several_targets_are_served_as_one(run: Run, tmp_path: Path) -> None:
    """Tools of a file and of servers, with other names, without some, and behind a search."""
    path = tmp_path / "mcp.json"
    entry = {"command": sys.executable, "args": [ECHO, "features"]}
    path.write_text(json.dumps({"mcpServers": {"far": entry, "gone": {"command": "false"}}}))
    words = ["serve", str(path), FIXTURE, "--allow", "far_*", "--allow", "add", "--deny", "*_die"]
    server = shlex.join([*COMMAND, *words, "--rename", "far_echo=say"])
    record = run("mcp", "list", server, "--prompts", "--json").json[0]
    names = {tool["name"] for tool in record["tools"]}
    assert {"add", "say", "far_wipe"} <= names
    assert not names & {"far_die", "far_echo", "picture"}
    assert [one["name"] for one in record["prompts"]] == ["far_greet"]
    told = "The MCP server 'far' describes how to use its tools:\n> Ask for echoes."
    assert record["instructions"] == told
    assert run("mcp", "call", server, "say", "text=a").out == "a\n"
    assert run("mcp", "read", server, "note:///x").out == "the note x\n"
    searched = shlex.join([*COMMAND, *words, "--max-tokens", "100"])
    listed = run("mcp", "list", searched, "--json").json[0]["tools"]
    assert [tool["name"] for tool in listed] == ["call_tool", "tool_search"]
    wrong = run("serve", FIXTURE, "--rename", "add")
    assert (wrong.code, "expected NAME=NEW" in wrong.err) == (2, True)


@pytest.mark.slow
def test_mcp_servers_are_served_as_a_proxy(run: Run, tmp_path: Path) -> None:
    """Many servers are served as one, which closes them when it ends."""
    path = tmp_path / "mcp.json"
    args = [ECHO, "good", str(tmp_path)]
    path.write_text(json.dumps({"mcpServers": {"far": {"command": sys.executable, "args": args}}}))
    server = [*COMMAND, "serve", str(path)]
    listed = run("mcp", "list", shlex.join(server), "--json").json[0]["tools"]
    hints = {tool["name"]: tool["hints"] for tool in listed}
    assert hints["far_echo"] == ["read-only", "idempotent"]
    assert "far_later" not in hints
    some = shlex.join([*server, "--only", "*_echo"])
    assert run("mcp", "call", some, "far_echo", "text=a").out == "a\n"
    assert len(run("mcp", "list", some, "--json").json[0]["tools"]) == 1
    assert has_ended(tmp_path)


@pytest.mark.slow
def test_a_client_that_disconnects_ends_the_server() -> None:
    """The client can crash before it sends anything."""
    with serving(FIXTURE, stdin=subprocess.DEVNULL) as process:
        out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (0, "", "")


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_ends_the_server_even_during_a_call(
    number: signal.Signals, tmp_path: Path
) -> None:
    """A thread that cannot be stopped does not block it either."""
    path, marker = tmp_path / "sample.py", tmp_path / "marker"
    path.write_text(STUCK)
    with serving(str(path), stdin=subprocess.PIPE) as process:
        send_messages(process, INITIALIZE, INITIALIZED, calling(2, "wait", marker=str(marker)))
        wait_for(marker)
        process.send_signal(number)
        process.wait(timeout=15)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    assert process.returncode == 0


# --- http


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
@pytest.mark.parametrize("stateful", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_over_http_it_prints_its_address_and_ends_at_a_signal(
    stateful: bool, number: signal.Signals, run: Run
) -> None:
    """Standard error has the address for people and a warning if there is no token.

    Programs get JSON. The exit code is 0, because a supervisor requested the end.
    """
    more = ["--stateful"] if stateful else ["--json-response"]
    with serving(FIXTURE, *HTTP, "--json", "--no-auth", *more) as process:
        started = read_message(process)
        assert started["token"] is False
        assert started["url"].startswith("http://127.0.0.1:")
        called = run("mcp", "call", started["url"], "add", "a=1")
        assert (called.code, called.out) == (0, "3\n")
        process.send_signal(number)
        out, err = process.communicate(timeout=15)
    assert (process.returncode, out) == (0, "")
    assert f"at {started['url']}, without a token: to every program on this machine" in err
    assert "Traceback" not in err


@pytest.mark.slow
def test_output_of_tools_is_not_on_standard_output(noisy: str, run: Run) -> None:
    """It has only the address for programs."""
    with serving(noisy, *HTTP, "--json", "--no-auth") as process:
        assert process.stdout is not None
        lines = [process.stdout.readline() for _ in range(2)]  # a child, and the C library
        url = read_message(process)["url"]
        assert run("mcp", "call", url, "add", "a=1").code == 0
        process.terminate()
        out, err = process.communicate(timeout=15)
    assert "".join(lines) == "print of a child\nprint of the system\n"
    assert out == "print of its child\n"
    assert "print of the module" in err
    assert "print of the tool" in err


@pytest.mark.slow
def test_other_host_names_must_be_allowed() -> None:
    """A web page can make a browser send requests under its own host name (DNS rebinding)."""
    import httpx

    words = [*HTTP, "--json", "--no-auth", "--allow-host", "tools.example"]
    words += ["--allow-origin", "https://good.example", "--path", "/here"]
    with serving(FIXTURE, *words) as process:
        url = read_message(process)["url"]
        assert url.endswith("/here")

        def status(**headers: str) -> int:
            accept = {"Accept": "application/json, text/event-stream"}
            return httpx.post(url, json=INITIALIZE, headers={**accept, **headers}).status_code

        assert status(Host="tools.example") == status() == 200
        assert status(Host="evil.example") in {403, 421}
        assert status(Origin="https://good.example") == 200
        assert status(Origin="https://evil.example") == 403
        process.terminate()
        process.communicate(timeout=15)


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([*HTTP, "--host", "0.0.0.0"], "--auth-token-env NAME"),  # noqa: S104 - it is refused
        ([*HTTP, "--no-auth", "--auth-token-env", "SHORT_TOKEN"], "exclude each other"),
        (["--no-auth"], "--no-auth requires --transport http"),
        ([*HTTP, "--auth-token-env", "NOT_SET_AT_ALL"], "NOT_SET_AT_ALL is not set"),
        ([*HTTP, "--auth-token-env", "s3cret-itself"], "not the token itself"),
        ([*HTTP, "--auth-token-env", "SHORT_TOKEN"], "16"),
        ([*HTTP, "--path", "here"], "path= expects a path that starts with '/'"),
        ([*HTTP, "--no-auth", "--jwt-issuer", "https://a.example"], "exclude each other"),
        ([*HTTP, "--jwt-issuer", "https://a.example"], "requires --jwt-audience"),
        ([*HTTP, "--jwt-audience", "https://a.example"], "requires --jwt-issuer"),
        ([*HTTP, "--jwt-scope", "read"], "--jwt-scope requires --jwt-issuer"),
        ([*HTTP, "--jwt-issuer", "ftp://a", "--jwt-audience", "x"], "expects an https URL"),
        (["--jwt-issuer", "https://a", "--jwt-audience", "x"], "requires --transport http"),
        (["--store", "tasks.db"], "--store requires --tasks"),
        (["--port", "8000"], "--port requires --transport http"),
        (["--auth-token-env", "SHORT_TOKEN"], "--auth-token-env requires --transport http"),
        (["--allow-host", "a"], "--allow-host requires --transport http"),
    ],
)
def test_invalid_serve_options_are_rejected(
    words: list[str], expected: str, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error comes before the server listens, and never shows a token."""
    monkeypatch.setenv("SHORT_TOKEN", "tiny-token")
    result = run("serve", FIXTURE, *words)
    assert (result.code, result.out) == (2, "")
    assert expected in result.err
    assert "tiny-token" not in result.err
    assert "s3cret" not in result.err
