"""Process trees, and the guardian that ends them after this process."""

from __future__ import annotations

import io
import os
import signal
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from agents_tools.concurrency import guardian, processes
from tests.waiting import until

pytestmark = pytest.mark.skipif(
    sys.platform == "win32", reason="the guardian needs POSIX process groups"
)

PROGRAM = """
import os, subprocess, sys
from agents_tools.concurrency import processes

child = subprocess.Popen(["sleep", "600"], start_new_session=True)
processes.watch(child.pid)
if os.fork() == 0:
    child.returncode = 0  # it is the other one's
    sys.exit(0)  # with all that an interpreter does at its end
os.wait()
child.kill()
child.wait()
processes.forget(child.pid)
"""


def test_a_forked_process_closes_its_pipe_to_the_guardian_without_output() -> None:
    """It closes the pipe once, as a file object."""
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-X", "dev", "-c", PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")


NESTED = """
import os, subprocess, sys
from agents_tools.concurrency import processes

marker = processes.new_marker("inner")
daemon = "import os, sys; os.setsid(); print(os.getpid(), flush=True); sys.stdin.read()"
child = subprocess.Popen(
    [sys.executable, "-c", daemon],
    stdout=subprocess.PIPE,
    env={**os.environ, processes.MARKER: marker},
)
print(child.stdout.readline().decode(), end="", flush=True)
os._exit(0)
"""


def test_daemons_of_a_program_inside_another_end_with_the_outer_one() -> None:
    """A worker process can start a shell, which has a marker of its own."""
    marker = processes.new_marker("outer")
    read, write = os.pipe()  # the daemon ends only if it is killed
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", NESTED],
        stdin=read,
        stdout=subprocess.PIPE,
        start_new_session=True,
        env={**os.environ, processes.MARKER: marker},
    ) as process:
        os.close(read)
        tree = processes.ProcessTree(process, marker)
        assert process.stdout is not None
        daemon = psutil.Process(int(process.stdout.readline()))
        process.wait(30)
        assert tree.descendants() == [daemon.pid]
        assert tree.end(5) == 0
        assert not daemon.is_running() or daemon.status() == psutil.STATUS_ZOMBIE
    os.close(write)


def test_an_ended_tree_is_reaped_and_can_be_ended_again() -> None:
    """A signal of another thread can have ended it a moment before."""
    for kind in (["true"], ["sleep", "600"]):
        process = subprocess.Popen(kind, start_new_session=True)  # noqa: S603
        tree = processes.ProcessTree(process, "unknown")
        process.send_signal(signal.SIGKILL)
        assert tree.end(0.1) == 0
        assert process.returncode is not None
        assert tree.end(0.1) == 0
        processes.end_now(process)


GUARDED = """
import os, signal, sys
from agents_tools.concurrency import processes
processes.remove_at_exit(sys.argv[1])
guardian = processes._guardian.process
if sys.argv[2] == "killed":
    guardian.kill(); guardian.wait()
    processes.remove_at_exit(sys.argv[1] + "-2")
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("kind", ["running", "killed"])
def test_a_workspace_cannot_change_the_guardian(tmp_path: Path, kind: str) -> None:
    """It runs outside of the sandbox, with modules that commands could have written."""
    (tmp_path / "agents-tools-x").mkdir()
    for name in ("psutil", "contextlib", "sitecustomize", "shutil"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'escaped')!r}, 'w')\nraise\n")
    subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-P", "-c", GUARDED, str(tmp_path / "agents-tools-x"), kind],
        cwd=tmp_path,
        check=False,
        timeout=50,
        env={**os.environ, "PYTHONSTARTUP": str(tmp_path / "psutil.py")},
    )
    until(lambda: not (tmp_path / "agents-tools-x").exists())
    assert not (tmp_path / "escaped").exists()


def test_the_guardian_follows_its_commands(tmp_path: Path) -> None:
    """It forgets what has ended, and removes nothing that could be of a user."""
    names = ("agents-tools-a", "agents-tools-b", "own", "empty", "dot", "text")
    paths = {name: tmp_path / name for name in names}
    for name in ("agents-tools-a", "agents-tools-b", "own", "empty"):
        paths[name].mkdir()
    (paths["agents-tools-a"] / "inside").mkdir(mode=0)
    paths["dot"].write_text(".\n")
    paths["text"].write_text(".\ntext")
    with subprocess.Popen(["sleep", "600"], start_new_session=True) as process:  # noqa: S607
        commands = [f"watch {process.pid}", f"forget {process.pid}"]
        commands += [f"all {paths[name]}" for name in names[:3]]
        commands += [f"empty {paths[name]}" for name in names[3:]]
        commands += [f"keep {paths['agents-tools-b']}", f"all {tmp_path / 'agents-tools-none'}"]
        guardian.guard(io.BytesIO("".join(f"{one}\n" for one in commands).encode()))
        assert process.poll() is None
        guardian.signal_session(process.pid, signal.SIGTERM)
        process.wait(30)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["agents-tools-b", "own", "text"]
    guardian.signal_session(os.getpgrp(), signal.SIGKILL)  # never its own group


EXITING = """
import sys
from pathlib import Path
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor

shell = TerminalExecutor(sys.argv[1])
shell(TerminalAction(command="trap 'sleep 0.2; echo bye >bye' EXIT; trap '' TERM; export A=1"))
"""


@pytest.mark.slow
def test_shells_end_gracefully_at_the_end_of_the_program(tmp_path: Path) -> None:
    """The guardian waits until the program has closed its tools itself."""
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-X", "dev", "-c", EXITING, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "bye").exists()
