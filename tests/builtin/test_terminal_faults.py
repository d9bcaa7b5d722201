"""The terminal under faults: fork bombs, floods, crashes, many sessions at once."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents_tools.builtin import Limits, Sandbox, sandbox_report
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor, TerminalObservation
from agents_tools.errors import UserError
from tests.scale import IS_FULL
from tests.waiting import until

BWRAP = pytest.param("required:bwrap", marks=pytest.mark.external("bwrap"))
LEVELS = ("process", "required:landlock", BWRAP)
pytestmark = pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="needs /proc")

Run = Callable[..., TerminalObservation]


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    executor = TerminalExecutor(tmp_path)
    yield lambda command, **fields: executor(TerminalAction(command=command, **fields))
    executor.close()


def available(level: str) -> bool:
    try:
        sandbox_report(Sandbox(level=level))
    except UserError:
        return False
    return True


def processes(marker: str) -> list[int]:
    """The processes with a word in their command lines, zombies left out."""
    found: list[int] = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdecimal() and int(entry.name) != os.getpid():
            try:
                line = (entry / "cmdline").read_bytes().decode(errors="replace")
            except OSError:
                continue
            if marker in line:
                found.append(int(entry.name))
    return found


# --- floods


def in_subprocess(code: str, *arguments: str) -> list[str]:
    """Run code in an interpreter of its own, for which memory can be measured."""
    done = subprocess.run(  # noqa: S603 - this interpreter, with code written here
        [sys.executable, "-c", code, *arguments],
        check=True,
        capture_output=True,
        text=True,
        timeout=18,
    )
    return done.stdout.splitlines()


MEASURED = """
import os, resource, sys, threading
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor

def resident():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()

shell = TerminalExecutor(sys.argv[2])
shell(TerminalAction(command="seq 1 400000"))
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")
before = resident()
seen = shell(TerminalAction(command=sys.argv[1]))
with open("/proc/self/status") as file:
    peak = next(int(line.split()[1]) * 1024 for line in file if line.startswith("VmHWM"))
print(peak - before)
print(len(seen.text))
print(os.stat(seen.output_file).st_size)
print(seen.exit_code)
shell.close()
"""


@pytest.mark.requirement("F17", "S29")
@pytest.mark.parametrize(
    ("command", "size"),
    [
        ("yes 0123456789 | head -c 100000000", 100_000_000),
        ("head -c 300000000 /dev/zero | tr '\\0' a", 300_000_000),
        ("head -c 50000000 /dev/urandom", 50_000_000),
    ],
)
def test_a_flood_uses_little_memory(tmp_path: Path, command: str, size: int) -> None:
    """100 MB, a line of 300 MB and noise; head and tail are shown, all is in a file."""
    grown, shown, kept, code = map(int, in_subprocess(MEASURED, command, str(tmp_path)))
    assert grown <= 32 << 20
    assert shown <= 31_000
    assert kept == size
    assert code == 0


@pytest.mark.requirement("S29")
def test_an_output_over_the_file_limit(tmp_path: Path) -> None:
    """A command that never stops writing does not block the call."""
    executor = TerminalExecutor(tmp_path, max_file=5_000_000)
    seen = executor(TerminalAction(command="yes"))
    assert seen.running
    assert "its output exceeds the limit" in seen.notes[0]
    assert seen.text.startswith("y\ny\n")
    seen = executor(TerminalAction(command="C-c", is_input=True))
    while seen.running:  # a busy machine needs more time to end it
        seen = executor(TerminalAction(command=""))
    assert executor(TerminalAction(command="echo fine")).text.endswith("fine\n")
    executor.close()


# --- processes


@pytest.mark.requirement("F15")
def test_a_command_that_ignores_signals_is_killed(run: Run, tmp_path: Path) -> None:
    """SIGINT and SIGTERM are ignored, and a child keeps the pipe: ended after the grace."""
    code = (
        "import signal, subprocess, time; "
        "[signal.signal(n, signal.SIG_IGN) for n in (signal.SIGINT, signal.SIGTERM)]; "
        "subprocess.Popen(['sleep', '4711'], start_new_session=True); time.sleep(600)"
    )
    seen = run(f'python3 -c "{code}"', timeout=0.5)
    assert seen.timed_out
    assert run("echo fine").text == "fine\n"


@pytest.mark.requirement("F15")
def test_a_child_that_holds_the_pipe_does_not_block_the_call(run: Run) -> None:
    """The call ends with the command, not with the last writer."""
    seen = run("(setsid sleep 4712 &); echo done")
    assert (seen.text, seen.running) == ("done\n", False)


@pytest.mark.requirement("F14")
@pytest.mark.parametrize("level", LEVELS)
def test_a_thousand_children_and_daemons_are_ended(tmp_path: Path, level: str) -> None:
    """They try to detach in several ways."""
    if not available(level):
        pytest.skip(f"{level} is not available")
    executor = TerminalExecutor(tmp_path, sandbox=Sandbox(level=level))
    marker = f"47{os.getpid()}"
    command = (
        f"for i in $(seq 1 200); do sleep {marker} & done 2>/dev/null; "
        f"setsid sh -c 'sleep {marker} & sleep {marker}' & "
        f'python3 -c "import os; os.fork() or (os.setsid(), os.fork() or '
        f"os.execvp('sleep', ['sleep', '{marker}']))\"; echo ok"
    )
    seen = executor(TerminalAction(command=command))
    assert seen.text.endswith("ok\n")
    assert len(seen.background) >= 200
    executor.close()
    until(lambda: not processes(f"sleep\0{marker}"))


@pytest.mark.requirement("F14")
def test_a_process_limit_stops_a_fork_bomb(tmp_path: Path) -> None:
    """With limits, a bomb ends with itself."""
    if os.geteuid() == 0:
        pytest.skip("root is not held to a number of processes")
    executor = TerminalExecutor(tmp_path, limits=Limits(processes=200))
    executor(TerminalAction(command="bomb() { bomb | bomb & }; bomb; sleep 1", timeout=5))
    executor.close()


@pytest.mark.requirement("S29")
def test_limits_apply_to_commands(tmp_path: Path) -> None:
    """Limits of the executor replace those of the sandbox."""
    executor = TerminalExecutor(tmp_path, limits=Limits(open_files=77, file_size=1 << 20))
    assert executor(TerminalAction(command="ulimit -n")).text == "77\n"
    seen = executor(TerminalAction(command="head -c 3000000 /dev/zero > big; wc -c < big"))
    assert "1048576" in seen.text
    executor.close()


DIES = """
import os, sys, threading, time
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor
shell = TerminalExecutor(sys.argv[1])
shell(TerminalAction(command=f"sleep {sys.argv[2]} &"))
print("begun", flush=True)
shell(TerminalAction(command=f"sleep {sys.argv[2]}"))
"""


@pytest.mark.requirement("F16")
def test_nothing_is_left_when_this_program_is_killed(tmp_path: Path) -> None:
    """`kill -9` in the middle of a command, and of a background job."""
    marker = f"48{os.getpid()}"
    with subprocess.Popen(  # noqa: S603 - as above
        [sys.executable, "-c", DIES, str(tmp_path), marker], stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"begun\n"
        until(lambda: len(processes(f"sleep\0{marker}")) == 2)
        program.kill()
    until(lambda: not processes(f"sleep\0{marker}"))


# --- what commands get


@pytest.mark.requirement("S21")
@pytest.mark.parametrize("level", LEVELS)
def test_the_environment_of_commands(
    tmp_path: Path, level: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is on the list, what the session needs, and nothing else."""
    if not available(level):
        pytest.skip(f"{level} is not available")
    monkeypatch.setenv("SOME_API_KEY", "hidden")
    monkeypatch.setenv("SHOWN", "yes")
    executor = TerminalExecutor(
        tmp_path, sandbox=Sandbox(level=level, inherit_env=("SHOWN",)), env={"OWN": "1"}
    )
    seen = executor(TerminalAction(command="env -0 | cut -z -d= -f1 | tr '\\0' '\\n'"))
    names = {name for name in seen.text.split() if not name.startswith("LC_")}
    allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "TMPDIR"}
    session = {"PAGER", "GIT_PAGER", "MANPAGER", "SYSTEMD_PAGER", "PYTHONUNBUFFERED"}
    bash = {"PWD", "OLDPWD", "SHLVL", "_", "AGENTS_TOOLS_PROCESS"}
    assert names <= allowed | session | bash | {"SHOWN", "OWN"}
    assert {"SHOWN", "OWN", "TERM"} <= names
    assert seen.sandbox == level.removeprefix("required:")
    executor.close()


@pytest.mark.requirement("S22")
@pytest.mark.parametrize("level", LEVELS)
def test_the_descriptors_of_commands(tmp_path: Path, level: str) -> None:
    """Three, and none of this program's or of the session's."""
    if not available(level):
        pytest.skip(f"{level} is not available")
    executor = TerminalExecutor(tmp_path, sandbox=Sandbox(level=level))
    code = "import os; print([fd for fd in range(1024) if os.path.exists(f'/proc/self/fd/{fd}')])"
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        seen = executor(TerminalAction(command=f'python3 -c "{code}"'))
    assert seen.text == "[0, 1, 2]\n"
    executor.close()


IGNORES = """
import signal
import sys
from agents_tools.builtin import Sandbox
from agents_tools.builtin.terminal import TerminalAction, TerminalExecutor
shell = TerminalExecutor(sys.argv[1], sandbox=Sandbox(level=sys.argv[2]), soft_timeout=0.2)
mask = int(shell(TerminalAction(command="grep SigIgn /proc/self/status")).text.split()[1], 16)
# Only signals of programs: those that the C library reserves are ignored in what `make` starts.
print([number for number in signal.valid_signals() if mask >> (number - 1) & 1])
assert shell(TerminalAction(command="sleep 600")).running
print(shell(TerminalAction(command="C-c", is_input=True)).exit_code)
print(shell(TerminalAction(command="sleep 600", timeout=0.1)).text.strip())
shell.close()
"""


@pytest.mark.slow
@pytest.mark.parametrize("level", LEVELS)
def test_commands_receive_signals_that_this_program_ignores(tmp_path: Path, level: str) -> None:
    """As if started by `nohup`, or by a script in the background: C-c would end no command."""
    if not available(level):
        pytest.skip(f"{level} is not available")
    program = [sys.executable, "-c", IGNORES, str(tmp_path), level]
    done = subprocess.run(  # noqa: S603 - as above
        ["/bin/sh", "-c", "trap '' HUP INT QUIT PIPE TERM; exec \"$@\"", "sh", *program],
        check=False,
        capture_output=True,
        text=True,
        timeout=18,
    )
    assert done.stdout.splitlines() == ["[]", "130", ""], done.stderr


@pytest.mark.parametrize("level", LEVELS)
def test_every_level_has_the_same_session(tmp_path: Path, level: str) -> None:
    """Job control, timeouts, input, ends and files of outputs are there at each level."""
    if not available(level):
        pytest.skip(f"{level} is not available")
    executor = TerminalExecutor(tmp_path, sandbox=Sandbox(level=level), soft_timeout=10)

    def run(command: str, **fields: object) -> TerminalObservation:
        return executor(TerminalAction.model_validate({"command": command, **fields}))

    assert run("sleep 60", timeout=0.1).timed_out
    assert run("while :; do :; done", timeout=0.1).exit_code == 124
    assert run("cat").running
    assert run("typed", is_input=True).text == "typed\n"
    assert run("C-c", is_input=True).exit_code == 130
    cut = run("seq 1 20000")
    assert cut.output_file is not None
    assert run(f"tail -n 1 {cut.output_file}").text == "20000\n"
    assert run("export kept=1; mkdir -p inner; cd inner; exit 3").exit_code == 3
    assert run("echo $kept; pwd").text == f"1\n{tmp_path / 'inner'}\n"
    assert run("sleep 300 &").background
    executor.close()


def test_created_files_have_the_usual_permissions(run: Run, tmp_path: Path) -> None:
    """The umask is that of this program."""
    run("touch file; mkdir directory")
    before = os.umask(0)
    os.umask(before)
    assert (tmp_path / "file").stat().st_mode & 0o777 == 0o666 & ~before
    assert (tmp_path / "directory").stat().st_mode & 0o777 == 0o777 & ~before


# --- many sessions, and what is left


def counts() -> tuple[int, int, int]:
    """Descriptors, threads, and children of this process that are no zombies."""
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(list(Path("/proc/self/fd").iterdir())), threading.active_count(), len(children)


SESSIONS = 100 if IS_FULL else 10


@pytest.mark.scaled
@pytest.mark.requirement("F17", "S22")
def test_many_sessions_at_once(tmp_path: Path) -> None:
    """None gets what belongs to another, all end, and nothing is left."""
    before = counts()
    with ThreadPoolExecutor(20) as pool:
        executors = [TerminalExecutor(tmp_path) for _ in range(SESSIONS)]

        def work(number: int) -> list[str]:
            def run(command: str) -> str:
                return executors[number](TerminalAction(command=command)).text

            run(f"n={number}; seq 1 2000 > out.{number}; sleep 300 &")
            return [run(f"echo $n; wc -l < out.{number}"), run("for i in 1 2 3; do echo $n; done")]

        for number, seen in enumerate(pool.map(work, range(SESSIONS))):
            assert seen == [f"{number}\n2000\n", f"{number}\n" * 3]
        list(pool.map(TerminalExecutor.close, executors))
    until(lambda: counts() == before)


@pytest.mark.requirement("S22")
def test_high_descriptor_numbers_work(tmp_path: Path) -> None:
    """In a program with many open files, new descriptors get the numbers that bash uses."""
    held = [os.dup(0) for _ in range(300)]
    try:
        for first in range(244, 258):
            free = [fd for fd in range(first, first + 14) if fd in held]
            for fd in free:
                os.close(fd)
                held.remove(fd)
            executor = TerminalExecutor(tmp_path)
            seen = executor(TerminalAction(command="[ -t 0 ] && ls /proc/self/fd | wc -l"))
            assert (seen.text, seen.exit_code) == ("4\n", 0)
            executor.close()
            while max(held) < 320 and len(held) < 320:
                held.append(os.dup(0))
            held += [os.dup(0) for _ in free]
    finally:
        for fd in held:
            os.close(fd)


def test_nothing_is_left_after_ends_of_all_kinds(tmp_path: Path) -> None:
    """Descriptors, threads and processes are the same as before."""
    warm = TerminalExecutor(tmp_path)
    warm(TerminalAction(command="true"))
    warm.close()
    before = counts()
    commands = ["exit 3", "kill -9 $$", "sleep 300 &", "exec true", "seq 1 100000", "set -e; false"]
    for command in commands:
        executor = TerminalExecutor(tmp_path)
        executor(TerminalAction(command=command))
        executor(TerminalAction(command="sleep 60", timeout=0.05))
        executor.close()
        executor.close()
    until(lambda: counts() == before)
    leftover = TerminalExecutor(tmp_path)
    leftover(TerminalAction(command="true"))
    del leftover
    until(lambda: counts() == before)


@pytest.mark.requirement("F16")
def test_a_repeatedly_killed_session_recovers(run: Run) -> None:
    """Every crash is reported, and every next command works."""
    for turn in range(5):
        pid = int(run("echo $$").text)
        threading.Timer(0.05, os.kill, (pid, signal.SIGKILL)).start()
        seen = run("sleep 60")
        assert seen.is_error
        assert seen.exit_code == 137
        assert run(f"echo {turn}").text == f"{turn}\n"
