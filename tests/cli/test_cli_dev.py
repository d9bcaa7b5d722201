"""`dev`: the command as users, browsers and process supervisors see it."""

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
async def cling(marker: str) -> str:
    """Take no notice of being cancelled."""
    import asyncio

    Path(marker).write_text("begun")
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
    """A playground in a separate process."""

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
        """Send a signal, and return the exit code and the output."""
        self.process.send_signal(number)
        out, err = self.process.communicate(timeout=30)
        return self.process.returncode, out, err


@contextlib.contextmanager
def dev(*words: str, folder: Path, port: str = "0", **variables: str) -> Generator[Server]:
    """Run `dev`, and stop it after the test."""
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
    """Return a folder with a target that prints in every possible way."""
    (tmp_path / "sample.py").write_text(TOOLS)
    return tmp_path


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_the_page_is_at_the_printed_address_and_ctrl_c_ends_it(folder: Path) -> None:
    """It prints one line for programs and one for people; prints of tools do not mix with them."""
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


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize(
    "number", [signal.SIGINT, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_shutdown_cancels_running_tools(folder: Path, number: int) -> None:
    """Tools can release their resources; open streams do not block the shutdown."""
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


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_tool_that_cannot_be_stopped_does_not_block_the_shutdown(folder: Path) -> None:
    """The process ends with the thread; a second Ctrl-C is not needed."""
    marker = folder / "marker"
    with dev("sample.py", folder=folder) as server:
        server.begin("stick", marker=str(marker))
        until(marker.exists)
        code, _, _ = server.end()
    assert code == 0


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_tools_that_ignore_cancellation_are_orphaned_without_output(folder: Path) -> None:
    """The next server reports that nothing runs them."""
    with dev("sample.py", folder=folder) as server:
        markers = [folder / "one", folder / "two"]
        begun = [server.begin("cling", marker=str(marker)) for marker in markers]
        for marker in markers:
            until(marker.exists)
        code, _, err = server.end()
    assert (code, "Traceback" in err) == (0, False), err
    with dev("sample.py", folder=folder) as server:
        runs = server.ask("GET", "runs")["runs"]
        assert [(run["id"], run["status"]) for run in runs] == [
            (one, "orphaned") for one in begun[::-1]
        ]
        server.end()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_second_ctrl_c_ends_it_at_once(folder: Path) -> None:
    """A second signal means that the user does not want to wait."""
    marker = folder / "marker"
    with dev("sample.py", folder=folder) as server:
        server.begin("stick", marker=str(marker))
        until(marker.exists)
        server.process.send_signal(signal.SIGINT)
        code, _, _ = server.end()
    assert code in {0, 130}


@pytest.mark.slow
def test_the_history_is_kept_for_each_target(folder: Path) -> None:
    """It is in the state folder, at the path of an option, or disabled."""
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


@pytest.mark.slow
def test_two_servers_share_a_history(folder: Path) -> None:
    """Neither has to stop."""
    with dev("sample.py", folder=folder) as one, dev("sample.py", folder=folder) as other:
        one.wait(one.begin("add", a=1))
        assert other.wait(other.begin("add", a=2))["summary"] == "3"
        assert other.end()[0] == 0
        assert one.end()[0] == 0
    with dev("sample.py", folder=folder) as server:
        assert [run["summary"] for run in server.ask("GET", "runs")["runs"]] == ["3", "2"]
        server.end()


@pytest.mark.slow
def test_an_unreadable_history_does_not_stop_the_server(folder: Path, run: Run) -> None:
    """The page is served; with an explicit path the command fails at once."""
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


@pytest.mark.slow
def test_mcp_servers_are_a_target(folder: Path) -> None:
    """They are closed at the end, reconnected when their file changes, and exported."""
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


def test_agents_can_run_with_another_model(folder: Path) -> None:
    """Many agents have no model of their own."""
    agent = "\nfrom agents_tools import Agent\nhelper = Agent('Helper', tools=[add])\n"
    (folder / "sample.py").write_text(TOOLS + agent)
    with dev("sample.py", "--model", "local/rules", folder=folder) as server:
        body = {"kind": "agent", "name": "Helper", "input": "add 2 and 3"}
        run = server.wait(server.ask("POST", "runs", body)["run_id"])
        assert (run["status"], run["summary"]) == ("ok", "5")
        server.end()


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
@pytest.mark.parametrize("debug", [False, True])
def test_tracebacks_are_printed_on_request(folder: Path, debug: bool) -> None:
    fail = '\n@function_tool\ndef fail() -> str:\n    raise ValueError("no bread")\n'
    (folder / "sample.py").write_text(TOOLS + fail)
    with dev("sample.py", *["--debug"] * debug, folder=folder) as server:
        assert server.wait(server.begin("fail"))["status"] == "error"
        _, _, err = server.end()
    assert ("ValueError: no bread" in err) is debug
    assert err.count("Traceback (most recent call last)") == debug


def test_a_broken_target_is_fixed_by_saving_it(folder: Path) -> None:
    """The server starts and reports the error."""
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


def test_an_explicit_port_in_use_is_reported(folder: Path) -> None:
    """The command must not choose another port."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = str(taken.getsockname()[1])
        words = ["dev", "sample.py", "--port", port, "--no-history"]
        with start(*words, cwd=folder) as process:
            _, err = process.communicate(timeout=30)
        assert process.returncode == 2
        assert f"The address 127.0.0.1:{port} cannot be listened on" in err


@pytest.mark.slow
def test_a_token_and_allowed_hosts_can_be_set(folder: Path) -> None:
    """Other machines also need the Host name as an option."""
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
        ([FIXTURE, "--history", "x", "--store", "y"], "exclude each other", None),
        ([], "missing argument 'TARGET', or the option --store", None),
        (["--store", "no-such.db"], "no-such.db does not exist", "pass a TARGET"),
        ([FIXTURE, "--auth-token-env", "a-token"], "the name of a variable", None),
        ([FIXTURE, "--auth-token-env", "NOT_SET_AT_ALL"], "is not set", None),
    ],
)
def test_invalid_options_are_reported_at_once(
    run: Run, words: list[str], message: str, hint: str | None
) -> None:
    """The message has a remedy, and no server starts."""
    result = run("dev", *words)
    assert result.code == 2
    assert message in result.err
    assert hint is None or hint in result.err


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs a POSIX shell")
def test_a_browser_is_not_started_with_the_token(folder: Path) -> None:
    """Other users can read its command line; the link in it works once."""
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
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX file modes")
def test_the_history_is_readable_by_its_owner_only(folder: Path) -> None:
    """This holds for the default file and for a named one."""
    own = folder / "own.sqlite"
    for words in ([], ["--history", str(own)]):
        with dev("sample.py", *words, folder=folder) as server:
            server.wait(server.begin("add", a=1))
            server.end()
    state = folder / "state" / "agents-tools" / "playground"
    assert state.stat().st_mode & 0o077 == 0
    for file in (*state.iterdir(), *folder.glob("own.sqlite*")):
        assert file.stat().st_mode & 0o077 == 0, file


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX file descriptors")
def test_closed_output_streams_are_handled(folder: Path) -> None:
    """Nothing is written to a file that reuses the descriptor of the output."""
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


def test_the_page_works_without_a_home_folder(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Users in containers can have no home folder."""

    def nowhere() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setattr("agents_tools.cli.dev.Path.home", nowhere)
    monkeypatch.setenv("XDG_STATE_HOME", "a/path/that/is/relative")
    monkeypatch.delenv("LOCALAPPDATA", raising=False)
    assert _store(None, "sample.py") is None
    assert "warning: runs are not stored: Could not determine home" in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs POSIX file names")
def test_a_file_name_that_is_not_utf8_is_a_target(folder: Path) -> None:
    """Linux accepts any bytes in a name."""
    name = os.fsdecode(b"odd\xff.py")
    (folder / name).write_text(TOOLS)
    with dev(name, folder=folder) as server:
        assert server.ask("GET", "info")["target"] == "odd\ufffd.py"
        assert server.wait(server.begin("add", a=1))["summary"] == "2"
        server.end()


def test_a_missing_extra_is_named(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """The message contains the install command."""
    monkeypatch.setitem(sys.modules, "uvicorn", None)
    result = run("dev", FIXTURE)
    assert result.code == 2
    assert 'pip install "agents-tools[ui]"' in result.err
