"""`dev`: what a person, a browser and a supervisor of processes see of it."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from agents_tools.cli.dev import _store  # pyright: ignore[reportPrivateUsage]
from tests.cli.conftest import FIXTURE
from tests.cli.test_cli_process import start
from tests.cli.test_mcp import ECHO
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Generator
    from pathlib import Path

    from tests.cli.conftest import Run

pytestmark = pytest.mark.timeout(90)

TOOLS = '''
import os
from pathlib import Path

from agents_tools import function_tool

print("print of the module")
os.system("echo print of a child")


@function_tool
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    print("print of the tool")
    os.system("echo print of its child")
    return a + b


@function_tool
async def hold(marker: str) -> str:
    """Hold something until it is cancelled."""
    import asyncio

    Path(marker).write_text("begun")
    try:
        await asyncio.Event().wait()
    finally:
        Path(marker).write_text("let go")
    return ""


@function_tool
async def cling() -> str:
    """Take no notice of being cancelled."""
    import asyncio

    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass


@function_tool
def stick(marker: str) -> str:
    """Stick in a thread."""
    import time

    Path(marker).write_text("begun")
    time.sleep(60)
    return ""
'''


class Server:
    """A playground in a process of its own."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        line = process.stdout.readline()
        assert line, process.communicate()
        told = json.loads(line)
        self.url: str = told["url"]
        self.address: str = told["address"]
        self.token: str = told["token"]

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """Send a request, as the page does."""
        headers = {"authorization": f"Bearer {self.token}"}
        answer = httpx.request(
            method, f"{self.address}api/{path}", json=body, headers=headers, timeout=30
        )
        assert answer.is_success, answer.text
        return answer.json() if answer.content else None

    def begin(self, name: str, **arguments: Any) -> str:
        """Start a call."""
        body = {"kind": "tool", "name": name, "arguments": arguments}
        return str(self.ask("POST", "runs", body)["run_id"])

    def wait(self, run_id: str) -> Any:
        """Wait for the end of a run."""
        found: list[Any] = []

        def over() -> bool:
            found[:] = [self.ask("GET", f"runs/{run_id}")]
            return found[0]["status"] != "running"

        until(over, within=30)
        return found[0]

    def end(self, number: int = signal.SIGINT) -> tuple[int, str, str]:
        """Send a signal, and give the exit code and what was printed."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextlib.contextmanager
def dev(*words: str, folder: Path, port: str = "0", **variables: str) -> Generator[Server]:
    """Run `dev`, and end it whatever becomes of the test."""
    env = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), **variables}
    env["PYTHONPATH"] = os.pathsep.join(sys.path)
    ports = ["--port", port] if port else []
    with start("dev", *words, *ports, "--json", env=env, cwd=folder) as process:
        try:
            yield Server(process)
        finally:
            if process.poll() is None:
                process.kill()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Give a folder with a target that prints in every way there is."""
    (tmp_path / "sample.py").write_text(TOOLS)
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent to a process")
def test_the_page_is_where_it_says_and_ctrl_c_ends_it(folder: Path) -> None:
    """One line for programs, one for people, and nothing that tools print between them."""
    with dev("sample.py", folder=folder) as server:
        assert httpx.get(server.address).text.startswith("<!doctype html>")
        assert server.url == f"{server.address}#token={server.token}"
        assert httpx.get(f"{server.address}api/info").status_code == 401
        assert server.ask("GET", "info")["target"] == "sample.py"
        assert server.wait(server.begin("add", a=1, b=2))["summary"] == "3"
        code, out, err = server.end()
    assert (code, out) == (0, "")
    assert f"Playground of sample.py: {server.url} " in err
    for what in ("the module", "a child", "the tool", "its child"):
        assert f"print of {what}" in err
    assert "Traceback" not in err


@pytest.mark.skipif(os.name == "nt", reason="signals are sent to a process")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_its_end_cancels_what_runs(folder: Path, number: int) -> None:
    """A tool can let go of what it holds; open streams do not hold the end up."""
    marker = folder / "marker"
    with dev("sample.py", folder=folder) as server:
        run_id = server.begin("hold", marker=str(marker))
        until(lambda: marker.exists() and marker.read_text() == "begun")
        headers = {"authorization": f"Bearer {server.token}"}
        follow = [f"{server.address}api/{path}" for path in ("changes", f"runs/{run_id}/events")]
        with contextlib.ExitStack() as stack:
            for url in follow:
                stack.enter_context(httpx.stream("GET", url, headers=headers))
            code, _, err = server.end(number)
    assert code == 0
    assert "Traceback" not in err
    assert marker.read_text() == "let go"
    with dev("sample.py", folder=folder) as server:
        assert server.ask("GET", f"runs/{run_id}")["status"] == "cancelled"


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent to a process")
def test_a_tool_that_cannot_be_stopped_does_not_hold_the_end_up(folder: Path) -> None:
    """The process goes, and the thread with it; a second Ctrl-C is not even needed."""
    marker = folder / "marker"
    with dev("sample.py", folder=folder) as server:
        server.begin("stick", marker=str(marker))
        until(marker.exists)
        code, _, _ = server.end()
    assert code == 0


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent to a process")
def test_tools_that_take_no_cancel_are_lost_without_noise(folder: Path) -> None:
    """The next server says of each that nobody knows what came of it."""
    with dev("sample.py", folder=folder) as server:
        begun = [server.begin("cling"), server.begin("cling")]
        code, _, err = server.end()
    assert (code, "Traceback" in err) == (0, False), err
    with dev("sample.py", folder=folder) as server:
        runs = server.ask("GET", "runs")["runs"]
        assert [(run["id"], run["status"]) for run in runs] == [
            (one, "lost") for one in begun[::-1]
        ]
        server.end()


@pytest.mark.skipif(os.name == "nt", reason="SIGINT is sent to a process")
def test_a_second_ctrl_c_ends_it_at_once(folder: Path) -> None:
    """Somebody who insists does not wait."""
    marker = folder / "marker"
    with dev("sample.py", folder=folder) as server:
        server.begin("stick", marker=str(marker))
        until(marker.exists)
        server.process.send_signal(signal.SIGINT)
        code, _, _ = server.end()
    assert code in {0, 130}


def test_the_history_is_kept_for_each_target(folder: Path) -> None:
    """Below the state folder, or where it is said, or not at all."""
    with dev("sample.py", folder=folder) as server:
        run_id = server.begin("add", a=1)
        server.wait(run_id)
        server.end()
    (file,) = (folder / "state" / "agents-tools" / "playground").glob("*.sqlite")
    assert file.name.startswith("sample-")
    with dev(str(folder / "sample.py"), folder=folder) as server:
        (listed,) = server.ask("GET", "runs")["runs"]
        assert (listed["id"], listed["summary"]) == (run_id, "2")
        assert server.ask("GET", f"runs/{run_id}")["result"]["model"][0]["text"] == "2"
        server.end()
    with dev("sample.py", "--no-history", folder=folder) as server:
        assert server.ask("GET", "info")["history"] is False
        assert server.ask("GET", "runs")["runs"] == []
        server.end()
    own = folder / "own.sqlite"
    with dev("sample.py", "--history", str(own), folder=folder) as server:
        assert server.ask("GET", "runs")["runs"] == []
        server.end()
    assert own.exists()


def test_two_servers_share_a_history(folder: Path) -> None:
    """Nobody has to end one to start the other."""
    with dev("sample.py", folder=folder) as one, dev("sample.py", folder=folder) as other:
        one.wait(one.begin("add", a=1))
        assert other.wait(other.begin("add", a=2))["summary"] == "3"
        assert other.end()[0] == 0
        assert one.end()[0] == 0
    with dev("sample.py", folder=folder) as server:
        assert [run["summary"] for run in server.ask("GET", "runs")["runs"]] == ["3", "2"]
        server.end()


def test_a_history_that_cannot_be_read_costs_the_history_alone(folder: Path, run: Run) -> None:
    """The page is there all the same; who named the file is told at once."""
    with dev("sample.py", folder=folder) as server:
        server.end()
    (file,) = (folder / "state" / "agents-tools" / "playground").glob("*.sqlite")
    for name in file.parent.iterdir():
        name.write_bytes(b"this is no database, but a text of some length" * 100)
    with dev("sample.py", folder=folder) as server:
        assert server.ask("GET", "info")["history"] is False
        assert server.wait(server.begin("add", a=1))["summary"] == "2"
        _, _, err = server.end()
    assert "warning: runs are not stored" in err
    result = run("dev", FIXTURE, "--history", str(file))
    assert result.code == 2
    assert "cannot be opened" in result.err


def test_mcp_servers_are_a_target(folder: Path) -> None:
    """They are closed at the end, connected anew when their file changes, and exported."""
    path = folder / "mcp.json"
    entry = {"command": sys.executable, "args": [ECHO, "good", str(folder)]}
    path.write_text(json.dumps({"mcpServers": {"good": entry}}))
    with dev("mcp.json", folder=folder) as server:
        tools = {tool["name"]: tool for tool in server.ask("GET", "tools")["tools"]}
        assert tools["good_echo"]["kind"] == "mcp"
        run_id = server.begin("good_echo", text="hi")
        assert server.wait(run_id)["status"] == "ok"
        summary = server.wait(run_id)["summary"]
        source = server.ask("GET", f"runs/{run_id}/export?as=python")["text"]
        path.write_text(json.dumps({"mcpServers": {"fine": entry}}))
        until(lambda: server.ask("GET", "info")["generation"] > 1)
        names = [tool["name"] for tool in server.ask("GET", "tools")["tools"]]
        assert "fine_echo" in names
        assert server.end()[0] == 0
    path.write_text(json.dumps({"mcpServers": {"good": entry}}))
    done = subprocess.run(  # noqa: S603 - what was generated
        [sys.executable, "-c", source],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert summary in done.stdout, done.stderr


def test_agents_may_be_given_a_model(folder: Path) -> None:
    """Many have none of their own."""
    agent = "\nfrom agents_tools import Agent\nhelper = Agent('Helper', tools=[add])\n"
    (folder / "sample.py").write_text(TOOLS + agent)
    with dev("sample.py", "--model", "local/rules", folder=folder) as server:
        body = {"kind": "agent", "name": "Helper", "input": "add 2 and 3"}
        run = server.wait(server.ask("POST", "runs", body)["run_id"])
        assert (run["status"], run["summary"]) == ("ok", "5")
        server.end()


def test_a_target_that_is_broken_is_mended_by_saving_it(folder: Path) -> None:
    """The server starts all the same, and says what is wrong."""
    path = folder / "broken.py"
    path.write_text("def add(:\n")
    with dev("broken.py", folder=folder) as server:
        (problem,) = server.ask("GET", "info")["problems"]
        assert problem["place"] == "broken.py:1"
        assert "invalid syntax" in problem["message"]
        path.write_text(TOOLS)
        until(lambda: not server.ask("GET", "info")["problems"])
        assert server.wait(server.begin("add", a=4))["summary"] == "5"
        _, _, err = server.end()
    assert "warning: broken.py:1: cannot be imported" in err


def test_a_port_that_is_taken_is_told_or_passed_over(folder: Path) -> None:
    """Who names a port wants that one; who does not wants a page."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ["dev", "sample.py", "--port", port, "--no-history"]
        with start(*words, cwd=folder) as process:
            _, err = process.communicate(timeout=30)
        assert process.returncode == 2
        assert f"The address 127.0.0.1:{port} cannot be listened on" in err


def test_a_token_may_be_given_and_other_machines_may_be_let_in(folder: Path) -> None:
    """Then the name in the Host header has to be said as well."""
    words = ("sample.py", "--host", "0.0.0.0", "--auth-token-env", "PAGE_TOKEN")  # noqa: S104
    names = ("--allow-host", "box.example")
    token = "0123456789-abcdef"  # noqa: S105 - of this test
    with dev(*words, *names, folder=folder, PAGE_TOKEN=token) as server:
        assert server.token == token
        headers = {"authorization": f"Bearer {token}", "host": "box.example"}
        assert httpx.get(f"{server.address}api/info", headers=headers).status_code == 200
        headers["host"] = "evil.example"
        assert httpx.get(f"{server.address}api/info", headers=headers).status_code == 421
        server.end()


@pytest.mark.parametrize(
    ("words", "message", "hint"),
    [
        (["nothing.py"], "file nothing.py not found", None),
        (["no_such_module_here"], "module 'no_such_module_here' not found", None),
        (["nothing.json"], "file nothing.json not found", None),
        ([FIXTURE, "--host", "0.0.0.0"], "every machine that can connect", "--auth-token-env NAME"),  # noqa: S104
        ([FIXTURE, "--history", "x", "--no-history"], "exclude each other", None),
        ([FIXTURE, "--auth-token-env", "a-token"], "the name of a variable", None),
        ([FIXTURE, "--auth-token-env", "NOT_SET_AT_ALL"], "is not set", None),
    ],
)
def test_what_cannot_be_done_is_said_at_once(
    run: Run, words: list[str], message: str, hint: str | None
) -> None:
    """With what to do about it, and no server."""
    result = run("dev", *words)
    assert result.code == 2
    assert message in result.err
    assert hint is None or hint in result.err


@pytest.mark.skipif(os.name == "nt", reason="needs sh")
def test_a_browser_is_not_started_with_the_token(folder: Path) -> None:
    """Its command line is seen by everybody on the machine; the link in it is good once."""
    browser = folder / "browser"
    browser.write_text(
        f'#!/bin/sh\necho "$1" > {folder}/part && mv {folder}/part {folder}/opened\n'
    )
    browser.chmod(0o755)
    with dev("sample.py", "--open", folder=folder, BROWSER=f"{browser} %s") as server:
        until((folder / "opened").exists)
        link = (folder / "opened").read_text().strip()
        assert server.token not in link
        answer = httpx.get(link)
        assert (answer.status_code, answer.headers["location"]) == (303, f"/#token={server.token}")
        assert httpx.get(link).status_code == 410
        server.end()


@pytest.mark.requirement("S20")
@pytest.mark.skipif(os.name == "nt", reason="modes are of POSIX")
def test_nobody_else_may_read_the_history(folder: Path) -> None:
    """Neither the default file nor one that is named."""
    own = folder / "own.sqlite"
    for words in ([], ["--history", str(own)]):
        with dev("sample.py", *words, folder=folder) as server:
            server.wait(server.begin("add", a=1))
            server.end()
    state = folder / "state" / "agents-tools" / "playground"
    assert state.stat().st_mode & 0o077 == 0
    for file in (*state.iterdir(), *folder.glob("own.sqlite*")):
        assert file.stat().st_mode & 0o077 == 0, file


@pytest.mark.skipif(os.name == "nt", reason="file descriptors are of POSIX")
def test_output_that_is_closed_is_no_trouble(folder: Path) -> None:
    """What is printed goes to no file that took the place of the output."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path), "XDG_STATE_HOME": str(folder)}
    command = f"exec {sys.executable} -m agents_tools dev sample.py --port 0 >&- <&-"
    with subprocess.Popen(  # noqa: S603 - our own
        ["/bin/sh", "-c", command], cwd=folder, env=env, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        line = next((line for line in lines if line.startswith("Playground of")), "")
        try:
            url = line.split()[3]
            assert httpx.get(url.partition("#")[0]).status_code == 200
        finally:
            process.kill()
    for file in folder.rglob("*.sqlite"):
        assert file.read_bytes().startswith(b"SQLite format 3")


def test_somebody_without_a_home_gets_the_page_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users of containers have none."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("agents_tools.cli.dev.Path.home", nowhere)
    monkeypatch.setenv("XDG_STATE_HOME", "a/path/that/is/relative")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert _store(None, "sample.py") is None
    assert "warning: runs are not stored: Could not determine home" in capsys.readouterr().err


@pytest.mark.skipif(sys.platform != "linux", reason="others have other names of files")
def test_a_file_whose_name_is_no_text_is_a_target(folder: Path) -> None:
    """Linux takes any bytes as a name."""
    name = os.fsdecode(b"odd\xff.py")
    (folder / name).write_text(TOOLS)
    with dev(name, folder=folder) as server:
        assert server.ask("GET", "info")["target"] == "odd\ufffd.py"
        assert server.wait(server.begin("add", a=1))["summary"] == "2"
        server.end()


def test_a_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is one command away."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("dev", FIXTURE)
    assert result.code == 2
    assert 'pip install "agents-tools[ui]"' in result.err
