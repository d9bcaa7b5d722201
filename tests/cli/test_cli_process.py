"""Tests that need a separate process: signals, pipes, encodings, a missing extra, start-up."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import FIXTURE
from tests.waiting import BOUND, until

COMMAND = [sys.executable, "-m", "agents_tools.cli"]
ROOT = Path(__file__).parents[2]


def start(*args: str, **options: Any) -> subprocess.Popen[str]:
    """Start a command."""
    given: dict[str, Any] = {
        "stdout": subprocess.PIPE,
        "stderr": subprocess.PIPE,
        "encoding": "utf-8",
        "cwd": ROOT,
    }
    return subprocess.Popen([*COMMAND, *args], **{**given, **options})  # noqa: S603 - our own


def python(code: str) -> subprocess.CompletedProcess[str]:
    """Run code in a separate interpreter."""
    return subprocess.run(  # noqa: S603 - our own
        [sys.executable, "-c", code], capture_output=True, encoding="utf-8", cwd=ROOT, check=False
    )


def wait_until_started(marker: Path, process: subprocess.Popen[str]) -> None:
    """Wait until the tool reports its start."""

    def started() -> bool:
        assert process.poll() is None, process.communicate()
        return marker.exists() and bool(marker.read_text())

    until(started)


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_ctrl_c_cancels_and_lets_the_tool_clean_up(tmp_path: Path) -> None:
    """A tool must be able to release its resources, and a script must see the cancellation."""
    marker = tmp_path / "marker"
    with start("call", FIXTURE, "sleep_long", f"marker={marker}", "--json") as process:
        wait_until_started(marker, process)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert marker.read_text() == "cleaned up"
    assert json.loads(out)["status"] == "cancelled"
    assert "Traceback" not in err


@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_second_ctrl_c_ends_at_once(tmp_path: Path) -> None:
    """A second signal means that the user does not want to wait for the tool."""
    marker = tmp_path / "marker"
    with start("call", FIXTURE, "sleep_long", f"marker={marker}", "--stubborn") as process:
        wait_until_started(marker, process)
        for _ in range(40):  # signals that arrive together count once
            if process.poll() is not None:
                break
            process.send_signal(signal.SIGINT)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(0.05)
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert "left behind" not in err
    assert marker.read_text() == "started"


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="needs POSIX signals")
def test_a_tool_that_ignores_cancellation_is_abandoned_after_the_grace_period(
    tmp_path: Path,
) -> None:
    """One Ctrl-C is enough to return to the prompt."""
    marker = tmp_path / "marker"
    with start("call", FIXTURE, "sleep_long", f"marker={marker}", "--stubborn") as process:
        wait_until_started(marker, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 130
    assert "abandoned" in err
    assert "Traceback" not in err


def test_a_closed_pipe_is_not_reported_as_an_error() -> None:
    """`agents-tools … | head -1` ends without a message."""
    with start("call", FIXTURE, "big", "lines=20000") as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == ""
        assert process.wait(timeout=30) == 141


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_full_disk_is_reported_in_one_line() -> None:
    """A traceback would suggest a fault of the command."""
    with Path("/dev/full").open("w") as full, start("version", stdout=full) as process:
        _, err = process.communicate(timeout=BOUND)
    assert process.returncode == 1
    assert err == "error: the output cannot be written: No space left on device.\n"


@pytest.mark.slow
def test_output_is_adapted_to_a_terminal_that_is_not_utf_8() -> None:
    """A character that the encoding lacks must not end the program."""
    env = {**os.environ, "PYTHONIOENCODING": "latin-1", "PYTHONUTF8": "0"}
    with start("call", FIXTURE, "echo", "text=é→", env=env, encoding="latin-1") as process:
        out, err = process.communicate(timeout=BOUND)
    assert (process.returncode, err) == (0, "")
    assert '"text":"é?"' in out
    with start("call", FIXTURE, "echo", "text=é→", "--json", env=env) as process:
        out, _ = process.communicate(timeout=BOUND)
    assert json.loads(out)["value"]["text"] == "é→"


def test_without_the_extra_one_line_explains_how_to_install_it() -> None:
    """The console script is installed with the core, click is not."""
    result = python(
        "import sys; sys.modules['click'] = None\n"
        "from agents_tools.cli import main; sys.exit(main(['list', 'x.py']))"
    )
    assert result.returncode == 2
    assert result.stdout == ""
    assert result.stderr == (
        'agents-tools: the command line needs the extra "cli": pip install "agents-tools[cli]"\n'
    )


def test_ctrl_c_while_modules_are_imported_prints_one_line() -> None:
    """A user presses it when the wrong command starts; a traceback would look like a fault."""
    code = (
        "import builtins, sys\n"
        "from agents_tools.cli import main\n"
        "original = builtins.__import__\n"
        "def importing(name, *rest):\n"
        "    if name == 'agents_tools.cli.app': raise KeyboardInterrupt\n"
        "    return original(name, *rest)\n"
        "builtins.__import__ = importing\n"
        "sys.exit(main(['version']))"
    )
    done = python(code)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "cancelled\n")


@pytest.mark.parametrize("group", [(), ("events",)], ids=["agents-tools", "events"])
def test_a_group_without_a_command_prints_its_help(group: tuple[str, ...]) -> None:
    """It is the first thing that many users type, and it is not an error of theirs."""
    process = start(*group)
    _, err = process.communicate(timeout=BOUND)
    assert err.startswith(f"Usage: {' '.join(['agents-tools', *group])} [OPTIONS] COMMAND")
    assert "error:" not in err
    assert process.returncode == 2


def test_without_rich_events_are_plain_lines() -> None:
    """Rich is optional."""
    result = python(
        "import sys; sys.modules['rich'] = None\n"
        "from agents_tools.cli import main\n"
        f"sys.exit(main(['call', {FIXTURE!r}, 'pipeline', 'source=x', '--events', 'live']))"
    )
    assert result.returncode == 0, result.stderr
    assert "pipeline: one line" in result.stderr


def test_a_warning_of_the_library_is_one_line(tmp_path: Path) -> None:
    """The line of its source that Python adds says nothing to a user."""
    (tmp_path / "agent.py").write_text(
        "from agents_tools import Agent, function_tool\n\n"
        "@function_tool\ndef count(limits: dict[str, int]) -> int: ...\n\n"
        "agent = Agent('A', tools=[count], model='openai/gpt')\n"
    )
    environment = {name: value for name, value in os.environ.items() if name != "OPENAI_API_KEY"}
    with start("run", str(tmp_path / "agent.py"), "hi", env=environment) as process:
        _, err = process.communicate(timeout=BOUND)
    assert err.startswith("warning: tool 'count' is exported without strict mode: ")
    assert "StrictFallbackWarning" not in err


def test_help_loads_no_heavy_module() -> None:
    """The help of a command must appear at once."""
    result = python(
        "import sys\n"
        "from agents_tools.cli import main\n"
        "main(['--help']); main(['version'])\n"
        "heavy = {'rich', 'pydantic', 'asyncio', 'griffe', 'anyio', 'agents_tools.tool.tool'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    assert result.stdout.endswith("[]\n"), result.stdout + result.stderr


def test_threads_that_the_tool_left_do_not_block_the_exit(tmp_path: Path) -> None:
    """`asyncio.to_thread` cannot be stopped, and Python would wait for it."""
    path = tmp_path / "sample.py"
    path.write_text(
        "import asyncio, time\n"
        "async def wait() -> str:\n"
        "    await asyncio.to_thread(time.sleep, 60)\n"
        "    return ''\n"
    )
    with start("call", f"{path}:wait", "--timeout", "0.2") as process:
        process.communicate(timeout=BOUND)
    assert process.returncode == 4


def test_a_closed_standard_output_is_not_reported_as_an_error() -> None:
    """Services start programs in this way; other requested output is still written."""
    done = subprocess.run(  # noqa: S602 - our own words
        f'"{sys.executable}" -m agents_tools version >&-',
        shell=True,
        stderr=subprocess.PIPE,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")
