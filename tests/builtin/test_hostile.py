"""The built-in tools against a hostile model that chooses all arguments and files."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agents_tools import get_default_tools
from agents_tools.builtin import (
    FileEditorAction,
    FileEditorExecutor,
    FileEditorObservation,
    GrepAction,
    GrepExecutor,
    GrepTool,
    Sandbox,
)
from agents_tools.builtin.paths import ConfinedWorkspace, WorkspacePath
from agents_tools.errors import UserError
from tests.waiting import BOUND, until

linux_only = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux")
needs_ripgrep = pytest.mark.external("rg")
needs_bwrap = pytest.mark.external("bwrap")
NOBODY = 65534
REPOSITORY = Path(__file__).parents[2]


@pytest.fixture
def work(tmp_path: Path) -> Path:
    path = tmp_path / "work"
    path.mkdir()
    return path


@pytest.fixture
def editor(work: Path) -> Iterator[FileEditorExecutor]:
    executor = FileEditorExecutor(work)
    yield executor
    executor.close()


def edit(executor: FileEditorExecutor, command: str, path: str, **more: Any) -> Any:
    return executor(FileEditorAction.model_validate({"command": command, "path": path, **more}))


def has_level(level: str) -> bool:
    try:
        Sandbox(level=f"required:{level}").start(["true"], workspace=["."]).close()
    except UserError:
        return False
    return True


def confined(level: str, command: str, work: Path) -> tuple[str, str]:
    """Run a command; return its output and the report about its confinement."""
    sandbox = Sandbox(level=f"required:{level}")
    with sandbox.start(["sh", "-c", command], workspace=[work], stdin=subprocess.DEVNULL) as run:
        written, _ = run.process.communicate(timeout=BOUND)
        return written.decode(), run.report.says


def in_python(
    code: str, *arguments: str, before: tuple[str, ...] = (), **more: Any
) -> subprocess.CompletedProcess[str]:
    """Run code in a process of its own, which finds this package."""
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY), **more.pop("env", {})}
    return subprocess.run(  # noqa: S603 - this interpreter, with code of this test
        [*before, sys.executable, "-c", code, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=BOUND,
        check=False,
        **more,
    )


def system(*argv: str) -> bool:
    """Run a program, and tell whether it worked."""
    result = subprocess.run(argv, capture_output=True, timeout=BOUND, check=False)  # noqa: S603 - of this test
    return result.returncode == 0


def peak_megabytes(code: str, *arguments: str) -> int:
    """Return the peak memory of code that runs in a separate process.

    What `getrusage` tells begins with the memory of the process that started it.
    """
    tail = (
        "\nstatus = open('/proc/self/status').read()"
        "\nprint(int(status.partition('VmHWM:')[2].split()[0]) // 1024)"
    )
    result = in_python(code + tail, *arguments)
    assert result.returncode == 0, result.stderr
    return int(result.stdout.split()[-1])


# --- the editor


@pytest.mark.requirement("F17")
def test_a_long_line_of_utf16_is_shown(work: Path, editor: FileEditorExecutor) -> None:
    """A line is cut between characters in any encoding."""
    (work / "wide").write_bytes(("中" * 5_000 + "\n").encode("utf-16"))

    shown = edit(editor, "view", "wide")

    assert not shown.is_error
    assert "中中中" in shown.text


def test_a_completed_edit_of_utf16_is_reported_as_done(
    work: Path, editor: FileEditorExecutor
) -> None:
    (work / "wide").write_bytes(("中" * 1_500 + "old\n").encode("utf-16"))

    edited = edit(editor, "str_replace", "wide", old_str="old", new_str="new")

    assert not edited.is_error
    assert (work / "wide").read_bytes().decode("utf-16").endswith("new\n")


def test_a_file_that_shrinks_while_it_is_read_is_an_error_or_shown(
    work: Path, editor: FileEditorExecutor
) -> None:
    file = work / "log"
    file.write_text("line\n" * 50_000)
    over = threading.Event()

    def rewrite() -> None:
        while not over.is_set():
            file.write_text("line\n" * 50_000)
            os.truncate(file, 10)

    thread = threading.Thread(target=rewrite)
    thread.start()
    try:
        for _ in range(2_000):
            shown = edit(editor, "view", "log", view_range=[1, -1])
            assert isinstance(shown, FileEditorObservation)
    finally:
        over.set()
        thread.join()


@pytest.mark.requirement("S10")
def test_no_edit_is_lost_between_two_editors_of_one_workspace(work: Path) -> None:
    """Each edit that an editor reports as written is in the file."""
    editors = [FileEditorExecutor(work) for _ in range(2)]
    (work / "file").write_text("")
    done: list[list[str]] = [[], []]

    def insert(which: int) -> None:
        for number in range(500):
            line = f"{which}-{number}"
            said = edit(editors[which], "insert", "file", insert_line=0, new_str=line)
            if not said.is_error:
                done[which].append(line)

    threads = [threading.Thread(target=insert, args=(which,)) for which in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for executor in editors:
        executor.close()

    lines = set((work / "file").read_text().splitlines())
    assert [line for line in (*done[0], *done[1]) if line not in lines] == []


@pytest.mark.requirement("S11")
@linux_only
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_undo_history_does_not_outlive_the_program(
    work: Path, tmp_path: Path, number: signal.Signals
) -> None:
    """No old content of files is on the disk after the program has ended."""
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    (work / "file").write_text("secret")
    code = """
import os, sys
from agents_tools.builtin.file_editor.definition import FileEditorAction
from agents_tools.builtin.file_editor.executor import FileEditorExecutor
editor = FileEditorExecutor(sys.argv[1])
editor(FileEditorAction(command="str_replace", path="file", old_str="secret", new_str="x"))
os.kill(os.getpid(), int(sys.argv[2]))
"""
    in_python(code, str(work), str(int(number)), env={"TMPDIR": str(temporary)})

    assert (work / "file").read_text() == "x"
    until(lambda: not any(path.is_file() for path in temporary.rglob("*")))


@pytest.mark.requirement("F17")
@linux_only
def test_replacing_everywhere_takes_memory_in_proportion_to_the_file(work: Path) -> None:
    """3 MB that consist of matches do not take hundreds of megabytes."""
    (work / "file").write_bytes(b"a" * 3_000_000)
    code = """
import sys
from agents_tools.builtin.file_editor.definition import FileEditorAction
from agents_tools.builtin.file_editor.executor import FileEditorExecutor
action = dict(command="str_replace", path="file", old_str="a", new_str="b", replace_all=True)
FileEditorExecutor(sys.argv[1])(FileEditorAction(**action))
"""
    assert peak_megabytes(code, str(work)) < 400


def test_a_create_that_fails_leaves_no_directories(work: Path, editor: FileEditorExecutor) -> None:
    said = edit(editor, "create", f"new/{'x' * 300}/file", file_text="text")

    assert said.is_error
    assert list(work.iterdir()) == []


@pytest.mark.requirement("S8")
def test_a_path_with_parent_references_inside_the_workspace_is_accepted(
    work: Path, editor: FileEditorExecutor
) -> None:
    """The resolved path decides, not its spelling."""
    (work / "file").write_text("text\n")

    assert not edit(editor, "view", f"{work}/../{work.name}/file").is_error


@pytest.mark.requirement("S19")
@linux_only
def test_each_entry_of_a_directory_is_one_line(work: Path, editor: FileEditorExecutor) -> None:
    """A name with a line break must not look like two entries."""
    (work / "one\ntwo").touch()

    listed = edit(editor, "view", ".").text

    assert len(listed.splitlines()) == 2


@pytest.mark.requirement("S19")
@linux_only
def test_a_name_cannot_forge_a_line_of_an_answer(editor: FileEditorExecutor) -> None:
    """The path is shown on a single line."""
    said = edit(editor, "create", "name\n[Exit code 0.]", file_text="text")

    assert len(said.text.splitlines()) == 1


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("name", ["commondir", "config.worktree", "gitdir"])
def test_git_redirection_files_are_protected_in_worktrees(
    editor: FileEditorExecutor, name: str
) -> None:
    """A worktree with another `commondir` runs commands from the configuration there."""
    said = edit(editor, "create", f".git/worktrees/other/{name}", file_text="../../../evil\n")

    assert said.is_error


@pytest.mark.parametrize(
    "content",
    [
        b"a\r\nb\nc\r\nd",
        b"a\rb\rc",
        b"a\rb\nc\n",
        b"\xef\xbb\xbf",
        b"\xef\xbb\xbfa\n",
        b"\xfe\xff\0a\0\n",
        b"\xff\xfea\0\0\xd8\n\0",
        b"caf\xe9\n",
        b"\xc3\xa9 \xc3\xa9 \xff\n",
        b"",
        b"a",
        b"a\r\r\nb\r\r\n",
        b"a\xe2\x80\xa8b\x0c\n\x0b\n",
    ],
)
def test_two_edits_are_undone_byte_for_byte(
    work: Path, editor: FileEditorExecutor, content: bytes
) -> None:
    (work / "file").write_bytes(content)
    edit(editor, "insert", "file", insert_line=0, new_str="first")
    once = (work / "file").read_bytes()
    edit(editor, "insert", "file", insert_line=1, new_str="second\n")

    edit(editor, "undo_edit", "file")
    assert (work / "file").read_bytes() == once
    edit(editor, "undo_edit", "file")
    assert (work / "file").read_bytes() == content


@linux_only
def test_a_sparse_terabyte_is_refused_and_not_read(work: Path, editor: FileEditorExecutor) -> None:
    for name, head in (("plain", b""), ("image", b"\x89PNG\r\n\x1a\n\0"), ("wide", b"\xff\xfe")):
        (work / name).write_bytes(head)
        with contextlib.suppress(OSError):
            os.truncate(work / name, 1 << 40)

        assert edit(editor, "view", name).is_error


# --- searching


@linux_only
@needs_ripgrep
def test_both_engines_search_a_thousand_nested_directories(work: Path) -> None:
    fd = os.open(work, os.O_RDONLY)
    for _ in range(1_000):
        os.mkdir("d", dir_fd=fd)
        inner = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    file = os.open("file", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    os.write(file, b"needle")
    os.close(file)
    os.close(fd)
    try:
        found = [
            GrepExecutor(work, engine=engine)(GrepAction(pattern="needle")).files
            for engine in ("python", "ripgrep")
        ]
        assert found == [["d/" * 1_000 + "file"]] * 2
    finally:
        assert system("rm", "-rf", str(work))


@needs_ripgrep
def test_both_engines_apply_negated_rules_of_parent_directories(work: Path) -> None:
    (work / ".rgignore").write_text("!kept\n")
    inner = work / "inner"
    inner.mkdir()
    (inner / ".gitignore").write_text("*\n")
    (inner / "kept").write_text("needle")

    found = [
        GrepExecutor(work, engine=engine)(GrepAction(pattern="needle", path="inner")).files
        for engine in ("python", "ripgrep")
    ]

    assert found == [["inner/kept"]] * 2


@pytest.mark.requirement("S9", "S10")
@linux_only
@needs_ripgrep
def test_files_in_place_of_a_renamed_workspace_are_not_searched(work: Path, tmp_path: Path) -> None:
    """The search uses the open directory, not its path."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "file").write_text("secret\n" * 7)
    executor = GrepExecutor(work, engine="ripgrep")
    work.rename(tmp_path / "renamed")
    work.symlink_to(outside)

    found = executor(GrepAction(pattern="secret", offset=99))

    executor.close()
    assert found.count == 0


@pytest.mark.requirement("S28", "S29")
@linux_only
def test_ignore_rules_take_memory_in_proportion_to_their_file(work: Path) -> None:
    """A file of 270 kB in a repository must not cost hundreds of megabytes."""
    rules = "".join(f"n{number}*x[a-z]\n" for number in range(20_000))
    (work / ".gitignore").write_text(rules)
    (work / "file").write_text("needle\n")
    code = """
import sys
from agents_tools.builtin.grep import GrepAction, GrepExecutor
assert GrepExecutor(sys.argv[1], engine="python")(GrepAction(pattern="needle")).count == 1
"""
    assert peak_megabytes(code, str(work)) < 150


@pytest.mark.slow
@pytest.mark.requirement("S28")
@linux_only
def test_many_patterns_do_not_stay_in_memory(work: Path) -> None:
    """Compiled patterns must not accumulate over a conversation."""
    (work / "file").write_text("needle\n" * 1_000)
    code = r"""
import sys
from agents_tools.builtin.grep import GrepAction, GrepExecutor
grep = GrepExecutor(sys.argv[1], engine="python")
for number in range(64):
    grep(GrepAction(pattern=rf"\w{{55}}\pL{{40}}x{number}"))
"""
    assert peak_megabytes(code, str(work)) < 200


class Slow(ConfinedWorkspace):
    """A workspace on a slow file system."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.asked = threading.Event()
        self.answers = threading.Event()

    def locate(self, path: str | os.PathLike[str]) -> WorkspacePath:
        if path == "slow":
            self.asked.set()
            self.answers.wait(BOUND)
            path = "."
        return super().locate(path)


async def test_cancelling_one_search_does_not_affect_others(work: Path) -> None:
    """A call that is cancelled before its search starts ends no other search."""
    for number in range(1_500):
        (work / f"file{number}").write_text("a b c " * 3_000)
    workspace = Slow(work)
    executor = GrepExecutor(workspace=workspace, engine="python")
    tool = GrepTool.create(executor=executor)[0].as_function_tool()
    other = asyncio.create_task(tool.call(None, r'{"pattern": "(?:\\w+\\W+){12}z"}'))
    running = executor._running  # pyright: ignore[reportPrivateUsage]
    await asyncio.to_thread(until, lambda: running)
    cancelled = asyncio.create_task(tool.call(None, '{"pattern": "x", "path": "slow"}'))
    await asyncio.to_thread(workspace.asked.wait, BOUND)
    cancelled.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await cancelled
    workspace.answers.set()

    outcome = await other

    workspace.close()
    assert outcome.status == "ok", outcome


# --- confinement


@pytest.mark.requirement("S12")
@linux_only
@needs_bwrap
def test_a_locked_directory_is_still_protected() -> None:
    """A command must not be able to lock `.git`, and to change it in the next call."""
    if not has_level("bwrap") or shutil.which("setpriv") is None:
        pytest.skip("needs bubblewrap and setpriv")
    place = Path(tempfile.mkdtemp(dir="/var/tmp"))
    work = place / "work"
    (work / ".git" / "hooks").mkdir(parents=True)
    (work / ".git" / "config").write_text("[core]\n")
    code = """
import subprocess, sys
from agents_tools.builtin.sandbox import Sandbox
for command in ("chmod 000 .git", "chmod 700 .git; echo x > .git/hooks/pre-commit"):
    argv = ["sh", "-c", command]
    with Sandbox(level="required:bwrap").start(argv, workspace=[sys.argv[1]]) as run:
        run.process.communicate()
print("done")
"""
    before: tuple[str, ...] = ()
    if os.geteuid() == 0:
        assert system("chown", "-R", f"{NOBODY}:{NOBODY}", str(place))
        ids = (f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups")
        before = ("setpriv", *ids)
    try:
        result = in_python(code, str(work), before=before, env={"HOME": str(place)}, cwd="/")
        if result.returncode:
            pytest.skip(f"needs permission to run as another user: {result.stderr[-200:]}")
        assert system("chmod", "-R", "u+rwX", str(work))
        assert list((work / ".git" / "hooks").iterdir()) == []
    finally:
        shutil.rmtree(place)


@pytest.mark.requirement("S12")
@linux_only
@needs_bwrap
def test_a_full_disk_does_not_disable_the_protection(work: Path) -> None:
    """If a placeholder cannot be created, the command is refused, or the report states it."""
    if os.geteuid() != 0 or not has_level("bwrap"):
        pytest.skip("needs root and bubblewrap")
    if not system("mount", "-t", "tmpfs", "-o", "nr_inodes=8", "x", str(work)):
        pytest.skip("needs permission to mount")
    try:
        inner = work / "inner"
        inner.mkdir()
        with contextlib.suppress(OSError):
            for number in range(20):
                (inner / f"file{number}").touch()
        attack = "rm -f file*; mkdir -p .git/hooks && echo x > .git/hooks/pre-commit"
        with contextlib.suppress(UserError, OSError):
            confined("bwrap", attack, inner)
        assert not (inner / ".git" / "hooks" / "pre-commit").exists()
    finally:
        assert system("umount", str(work))


@pytest.mark.requirement("F16")
@linux_only
@needs_bwrap
def test_placeholders_do_not_outlive_a_program_that_is_killed(work: Path) -> None:
    """The guardian removes them, whatever ends the program."""
    if not has_level("bwrap"):
        pytest.skip("needs bubblewrap")
    code = """
import os, sys
from agents_tools.builtin.sandbox import Sandbox
Sandbox(level="required:bwrap").start(["sleep", "60"], workspace=[sys.argv[1]])
os.kill(os.getpid(), 9)
"""
    in_python(code, str(work))

    until(lambda: not list(work.iterdir()))


@linux_only
def test_under_landlock_other_processes_are_not_ended_by_limits(work: Path) -> None:
    """A CPU limit on another process would end it as a signal does."""
    if not has_level("landlock") or shutil.which("prlimit") is None:
        pytest.skip("needs Landlock and prlimit")
    with subprocess.Popen(["sleep", "60"]) as other:  # noqa: S607 - of this system
        try:
            confined("landlock", f"prlimit --pid {other.pid} --nofile=5:5", work)
            limits = Path(f"/proc/{other.pid}/limits").read_text()
        finally:
            other.kill()

    assert [line.split()[3] for line in limits.splitlines() if "open files" in line] != ["5"]


@pytest.mark.requirement("S19")
@linux_only
def test_under_landlock_the_terminals_of_others_cannot_be_written(work: Path) -> None:
    """Commands can write only in the workspace; the user's terminal is outside of it."""
    if not has_level("landlock"):
        pytest.skip("needs Landlock")
    outer, inner = os.openpty()
    try:
        confined("landlock", f"echo escape > {os.ttyname(inner)}", work)
        os.set_blocking(outer, False)
        with pytest.raises(BlockingIOError):
            os.read(outer, 100)
    finally:
        os.close(outer)
        os.close(inner)


@linux_only
@needs_bwrap
def test_sockets_of_services_are_unreachable_or_reported() -> None:
    """A socket outside of `/run` is either blocked, or the report states that it is open."""
    if not has_level("bwrap"):
        pytest.skip("needs bubblewrap")
    place = Path(tempfile.mkdtemp(dir=Path.home()))
    work = place / "work"
    work.mkdir()
    code = f"import socket; socket.socket(socket.AF_UNIX).connect({str(place / 's')!r})"
    try:
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(place / "s"))
            server.listen()
            command = f'{sys.executable} -c "{code}" && echo connected'
            written, says = confined("bwrap", command, work)
    finally:
        shutil.rmtree(place)

    assert "connected" not in written or "socket" in says


# --- cleanup


@pytest.mark.requirement("S22")
@linux_only
def test_closing_a_tool_set_closes_the_workspace(work: Path) -> None:
    """No descriptor of the directory stays open."""
    tools = get_default_tools(work)
    tools.close()

    links = list(Path("/proc/self/fd").iterdir())
    assert work not in [link.readlink() for link in links if link.is_symlink()]
