"""The sandbox, with real programs, at every level that this machine supports."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
import tempfile
import termios
import textwrap
import threading
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from agents_tools import UserError
from agents_tools.builtin import (
    Limits,
    Sandbox,
    bubblewrap as _bubblewrap,
    sandbox_report,
)
from agents_tools.builtin.paths import DEFAULT_PROTECTED
from agents_tools.builtin.sandbox import _TEMPORARY, SandboxedProcess
from agents_tools.concurrency import processes
from agents_tools.concurrency.processes import MARKER
from tests.waiting import until

pytestmark = pytest.mark.skipif(os.name != "posix", reason="needs a POSIX shell")

PYTHON = sys.executable
BWRAP = pytest.param("required:bwrap", marks=pytest.mark.external("bwrap"))
LEVELS = ("process", "required:landlock", BWRAP)
CONFINED = LEVELS[1:]


def _available(level: str) -> str:
    try:
        sandbox_report(Sandbox(level=level))
    except UserError as error:
        pytest.skip(str(error))
    return level


@pytest.fixture(params=LEVELS)
def level(request: pytest.FixtureRequest) -> str:
    """Each available level."""
    return _available(request.param)


@pytest.fixture(params=CONFINED)
def confined(request: pytest.FixtureRequest) -> str:
    """Each available level that confines programs."""
    return _available(request.param)


@pytest.fixture(params=[BWRAP])
def bwrap(request: pytest.FixtureRequest) -> str:
    """The strongest level."""
    return _available(request.param)


@pytest.fixture
def inside(tmp_path: Path) -> Path:
    """A workspace."""
    path = tmp_path / "inside"
    path.mkdir()
    return path


@pytest.fixture
def outside() -> Iterator[Path]:
    """A directory with a file, in no workspace and not in `/tmp`, which some levels hide."""
    places = (Path(__file__).parent, Path.home(), Path("/srv"))
    visible = (
        place
        for place in places
        if os.access(place, os.W_OK) and not any(map(place.is_relative_to, _TEMPORARY))
    )
    here = next(visible, None)
    if here is None:
        pytest.skip("no directory that can be written is outside of those that are hidden")
    with tempfile.TemporaryDirectory(prefix=".outside-", dir=here) as made:
        path = Path(made)
        (path / "kept").write_text("kept")
        yield path


def run(sandbox: Sandbox, argv: list[str] | str, *workspace: Path) -> tuple[int, str]:
    """Run a command (a list) or a shell script (a string), and return its exit code and all output."""
    words = ["sh", "-c", argv] if isinstance(argv, str) else argv
    with sandbox.start(
        words, workspace=workspace, stdin=subprocess.DEVNULL, stderr=subprocess.STDOUT
    ) as running:
        output, _ = running.process.communicate(timeout=15)
        return running.process.returncode, output.decode()


def python(code: str, *arguments: str) -> list[str]:
    return [PYTHON, "-I", "-S", "-c", textwrap.dedent(code), *arguments]


def is_there(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


# --- files


@pytest.mark.requirement("S9")
def test_writes_are_limited_to_the_roots(confined, inside, tmp_path, outside):
    """Only the roots, `writable` and the private directory can be changed."""
    second = tmp_path / "second"
    second.mkdir()
    also = tmp_path / "also"
    also.mkdir()
    script = f"""
    for one in {inside} {second} {also} "$TMPDIR"; do
      mkdir "$one/dir" && echo new > "$one/dir/new" && mv "$one/dir/new" "$one/new" || echo BAD $one
    done
    cd {outside}
    for try in 'echo > kept' 'echo >> kept' 'echo > new' 'rm kept' 'mv kept gone' 'mkdir dir' \\
        'ln -s kept link' 'mkfifo pipe' 'truncate -s 0 kept' 'ln kept hard' \\
        "mv kept {inside}/gone" "mv {inside}/new moved" "ln kept {inside}/hard"; do
      (eval "$try") 2>/dev/null && echo "DONE $try"
    done
    cat kept
    """
    sandbox = Sandbox(level=confined, writable=(also,))
    code, output = run(sandbox, script, inside, second)
    assert (code, output) == (0, "kept")
    assert [path.name for path in outside.iterdir()] == ["kept"]
    assert (inside / "new").read_text() == (second / "new").read_text() == "new\n"
    assert (also / "new").exists()


@pytest.mark.requirement("S9")
def test_the_system_is_not_writable(confined, inside):
    """This includes world-writable directories."""
    script = """
    for one in / /etc /usr /var /run /home /var/tmp/../lib /proc/sys/kernel /sys; do
      touch "$one/agents-tools-probe" 2>/dev/null && echo "WRITTEN $one"
    done
    echo something > /dev/null && cat /etc/passwd > /dev/null && echo fine
    """
    assert run(Sandbox(level=confined), script, inside) == (0, "fine\n")


SETTINGS = """
import os
for path in ("/proc/sys/kernel/core_pattern", "/proc/sys/vm/drop_caches", "/proc/sysrq-trigger",
             "/proc/1/oom_score_adj", "/sys/kernel/uevent_helper", "/dev/mem", "/dev/kmsg",
             "/etc/passwd"):
    try:
        os.close(os.open(path, os.O_WRONLY))
    except OSError:
        continue
    print("OPENED", path)
"""


@pytest.mark.requirement("S12")
def test_system_settings_cannot_be_opened_for_writing(confined, inside):
    """Root cannot either; some of the settings name programs that the kernel runs."""
    assert run(Sandbox(level=confined), python(SETTINGS), inside) == (0, "")


NAMESPACES = """
for flags in -m -Um -Urm; do
  unshare $flags sh -c '
    mount -o remount,rw / && echo REMOUNTED
    mount -o remount,bind,rw "$PWD/.mcp.json" && echo WRITABLE
    mount -t tmpfs none /mnt && echo MOUNTED
    umount -l "$PWD/.mcp.json" && echo UNCOVERED
    (echo x > "$PWD/.mcp.json") && echo WRITTEN
    (echo x > /etc/agents-tools-probe) && echo OUTSIDE
  ' 2>/dev/null
done
chroot / true 2>/dev/null && echo CHROOT
mknod device b 254 0 2>/dev/null && echo DEVICE
exit 0
"""


@pytest.mark.requirement("S12")
def test_mounts_cannot_be_undone(bwrap, inside):
    """Neither root nor a user in a new namespace can do it."""
    code, output = run(Sandbox(level=bwrap), NAMESPACES, inside)
    assert code == 0
    assert set(output.split()) <= {
        "MOUNTED"
    }  # in a private mount namespace, invisible to other processes


@pytest.mark.requirement("S9")
def test_links_do_not_lead_outside(confined, inside, outside):
    """The kernel resolves a link to outside, whoever created it and whenever."""
    (inside / "dir").symlink_to(outside)
    (inside / "file").symlink_to(outside / "kept")
    script = f"""
    ln -s {outside} made; ln -s $(realpath --relative-to=. {outside})/kept relative; ln -s made chain
    for one in dir/new made/new chain/new file relative; do
      (echo x > "$one") 2>/dev/null && echo "WRITTEN $one"
    done
    ln {outside}/kept hard 2>/dev/null && echo LINKED
    cat dir/kept
    """
    assert run(Sandbox(level=confined), script, inside) == (0, "kept")
    assert sorted(path.name for path in outside.iterdir()) == ["kept"]
    assert (outside / "kept").read_text() == "kept"


def test_the_level_process_confines_nothing(inside, outside):
    """The report states this, and it is true."""
    sandbox = Sandbox()
    assert run(sandbox, f"echo new > {outside}/new && cat {outside}/new", inside) == (0, "new\n")
    assert sandbox_report(sandbox).says.startswith("Nothing is confined")


@pytest.mark.requirement("S11")
def test_created_files_are_private_to_the_user(level, inside):
    """Files are 0600, even if the umask of this process is 0."""
    before = os.umask(0)
    try:
        with Sandbox(level=level).start(["sh", "-c", "echo > made"], workspace=[inside]) as running:
            running.process.communicate(timeout=30)
            assert stat.S_IMODE(running.temp_dir.stat().st_mode) == 0o700
            assert stat.S_IMODE(running.temp_dir.parent.stat().st_mode) == 0o700
    finally:
        os.umask(before)
    assert stat.S_IMODE((inside / "made").stat().st_mode) == 0o600
    assert not running.temp_dir.parent.exists()


@pytest.mark.requirement("S11")
def test_the_temporary_directory_is_always_removed(level, inside):
    """It can contain directories that its owner cannot enter."""
    script = f'cd "$TMPDIR" && mkdir -p a/b && ln -s {inside} link && chmod 0 a/b a'
    before = inside.stat().st_mode
    with Sandbox(level=level).start(["sh", "-c", script], workspace=[inside]) as running:
        running.process.communicate(timeout=30)
        assert (running.temp_dir / "a").exists()
    assert not running.temp_dir.parent.exists()
    assert inside.stat().st_mode == before


@pytest.mark.requirement("S11")
def test_tmp_is_private(bwrap, inside):
    """Files of others are not visible there, and files of the command do not appear outside."""
    probe = f"agents-tools-probe-{os.getpid()}"
    script = f"echo x > /tmp/{probe} && ls /tmp && cd /tmp && cat {probe}"
    code, output = run(Sandbox(level=bwrap), script, inside)
    assert code == 0
    seen = [word for word in output.split() if not word.startswith("agents-tools-")]
    assert set(seen) <= {"x", *inside.parts, *Path(sys.prefix).parts}
    assert not Path(tempfile.gettempdir(), probe).exists()


# --- protected names


@pytest.fixture
def repository(inside: Path) -> Path:
    """A workspace with some of the protected names."""
    (inside / ".git" / "hooks").mkdir(parents=True)
    (inside / ".git" / "config").write_text("[core]\n")
    (inside / ".vscode").mkdir()
    return inside


REPLACE = """
import os, sys
root, name, outside = sys.argv[1:]
path = os.path.join(root, name)
mine = os.path.join(root, "mine"); os.makedirs(mine, exist_ok=True)
file = os.path.join(root, "file"); open(file, "w").close()
def write(): open(path, "w").close()
def append(): open(path, "a").write("x")
def beneath(): open(os.path.join(path, "post-commit"), "w").close()
def make(): os.makedirs(path)
def remove(): os.unlink(path)
def remove_directory(): os.rmdir(path)
def over(): os.rename(file, path)
def directory_over(): os.rename(mine, path)
def hard(): os.link(file, path)
def soft(): os.symlink(file, path)
def away(): os.rename(path, path + ".old")
def parent():
    head = name.split("/")[0]
    os.rename(os.path.join(root, head), os.path.join(root, "old"))
def mode(): os.chmod(path, 0o777)
for attempt in (write, append, beneath, make, remove, remove_directory, over, directory_over, hard,
                soft, away, parent, mode):
    try:
        attempt()
    except OSError:
        continue
    print("DONE", attempt.__name__)
"""


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("name", DEFAULT_PROTECTED)
@pytest.mark.parametrize("present", [True, False])
def test_protected_names_cannot_be_changed(bwrap, inside, outside, name, present, request):
    """This holds for existing and missing names, and for renaming a directory above them."""
    if present:
        request.getfixturevalue("repository")
    before = _listing(inside)
    code, output = run(
        Sandbox(level=bwrap), python(REPLACE, str(inside), name, str(outside)), inside
    )
    assert (code, output) == (0, "")
    (inside / "file").unlink()
    (inside / "mine").rmdir()
    assert _listing(inside) == before  # the placeholders are gone


def _listing(directory: Path) -> dict[str, str]:
    return {
        str(path.relative_to(directory)): path.read_text() if path.is_file() else ""
        for path in directory.rglob("*")
    }


@pytest.mark.requirement("S12")
def test_the_rest_of_a_protected_directory_can_be_changed(bwrap, repository):
    """Git can still commit."""
    script = "echo x > .git/index.lock && mv .git/index.lock .git/index && echo {} > .vscode/s.json"
    assert run(Sandbox(level=bwrap), script, repository) == (0, "")
    assert (repository / ".git" / "index").exists()


GIT = """
export GIT_CONFIG_NOSYSTEM=1 HOME="$TMPDIR"
git config --file "$TMPDIR/.gitconfig" user.name a
git config --file "$TMPDIR/.gitconfig" user.email a@localhost
echo x > file && git add file && git commit -q -m one && git checkout -q -b other
git gc -q && git status --short && git log --format=%s
"""


@pytest.mark.requirement("S12")
def test_git_works_with_all_the_placeholders(bwrap, inside):
    """Git treats the placeholders as missing files."""
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    subprocess.run(["git", "init", "-q", str(inside)], check=True, timeout=30)  # noqa: S603, S607 - of this system
    before = {path.name for path in (inside / ".git").iterdir()}
    code, output = run(Sandbox(level=bwrap), GIT, inside)
    assert (code, output.splitlines()[-1]) == (0, "one"), output
    assert before <= {path.name for path in (inside / ".git").iterdir()}
    assert not (inside / ".git" / "commondir").exists()
    result = subprocess.run(["git", "-C", str(inside), "fsck"], check=False, timeout=30)  # noqa: S603, S607 - as above
    assert result.returncode == 0


@pytest.mark.requirement("S12")
def test_a_placeholder_stays_as_long_as_a_command_needs_it(bwrap, inside):
    """The end of one command must not remove the protection of another."""
    sandbox = Sandbox(level=bwrap)
    script = "echo ready; read -r _; echo x > .mcp.json; mkdir .vscode/x"
    with sandbox.start(["sh", "-c", script], workspace=[inside]) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == b"ready\n"
        assert run(sandbox, "true", inside) == (0, "")
        assert (inside / ".mcp.json").exists()
        _, errors = running.process.communicate(b"\n", timeout=30)
        assert errors.count(b"Is a directory") == 1
        assert errors.count(b"Read-only file system") == 1
    assert list(inside.iterdir()) == []


@pytest.mark.requirement("S12")
def test_a_placeholder_with_content_is_not_removed(bwrap, inside):
    """A user can write a configuration there while the command runs."""
    with Sandbox(level=bwrap).start(["cat"], workspace=[inside]):
        (inside / ".mcp.json").rmdir()
        (inside / ".mcp.json").write_text("{}")
    assert _listing(inside) == {".mcp.json": "{}"}


@pytest.mark.requirement("S12")
def test_a_protected_name_that_is_a_link_is_reported(bwrap, inside, outside):
    """Nothing can be mounted on a link, and the report states this."""
    (inside / ".mcp.json").symlink_to(outside / "kept")
    with Sandbox(level=bwrap).start(["cat"], workspace=[inside]) as running:
        assert running.report.says.endswith(f"because they are links: {inside / '.mcp.json'}.")


@pytest.mark.requirement("S12")
def test_names_are_protected_by_path_with_older_bubblewrap(bwrap, repository, outside, monkeypatch):
    """Older releases do not accept file descriptors."""
    monkeypatch.setattr(_bubblewrap, "takes_descriptors", lambda program: False)
    argv = python(REPLACE, str(repository), ".git/hooks", str(outside))
    assert run(Sandbox(level=bwrap), argv, repository) == (0, "")


# --- directories in which nothing can be mounted


NOBODY = 65534
BLOCKED = """
import os, resource, sys
from agents_tools.builtin.sandbox import Sandbox
from agents_tools.errors import UserError
root, blocked, script = sys.argv[1:]
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(int(blocked)); os.setuid(int(blocked))
os.chdir("/")
try:
    running = Sandbox(level="required:bwrap").start(["sh", "-c", script], workspace=[root])
except UserError as error:
    print("REFUSED", error)
else:
    with running:
        running.process.communicate(timeout=30)
        print(running.report.says)
"""


@pytest.fixture
def of_nobody() -> Iterator[Path]:
    """A workspace of an unprivileged user, which that user reaches."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as made:
        Path(made).chmod(0o755)
        path = Path(made, "work")
        (path / ".git" / "hooks").mkdir(parents=True)
        (path / "src").mkdir()
        yield path


def _as_nobody(path: Path, script: str) -> str:
    if os.geteuid() == 0:
        for one in (path, *path.rglob("*")):
            os.chown(one, NOBODY, NOBODY)
    result = subprocess.run(  # noqa: S603 - this interpreter, with the program above
        [PYTHON, "-c", BLOCKED, str(path), str(NOBODY), script],
        capture_output=True,
        timeout=15,
        check=False,
        cwd=Path(__file__).parents[2],
    )
    if b"is not available" in result.stdout:
        pytest.skip("needs permission to run as another user")
    assert result.returncode == 0, result.stderr
    return result.stdout.decode()


@pytest.mark.requirement("S12")
@pytest.mark.parametrize("mode", [0, 0o100, 0o200, 0o300, 0o400, 0o500])
def test_a_directory_without_mounts_is_read_only(bwrap, of_nobody, mode):
    """Its owner could unlock it, so it is made read-only, and the report states this."""
    (of_nobody / ".git").chmod(mode)
    script = "chmod 700 .git; mkdir -p .git/hooks; echo x > .git/hooks/x; echo x > .git/config"
    says = _as_nobody(of_nobody, f"{script}; mv .git old; echo x > src/made")
    (of_nobody / ".git").chmod(0o700)
    made = {str(path.relative_to(of_nobody)) for path in of_nobody.rglob("*")}
    assert made == {".git", ".git/hooks", "src", "src/made"}
    if mode != 0o300:
        assert f"Cannot be written, because names in them cannot be protected: {of_nobody}" in says


@pytest.mark.requirement("S12")
def test_a_workspace_without_placeholders_is_read_only(bwrap, of_nobody):
    """The owner could restore the permission that is missing."""
    (of_nobody / ".git" / "hooks").rmdir()
    (of_nobody / ".git").rmdir()
    of_nobody.chmod(0o500)
    says = _as_nobody(of_nobody, "chmod 700 .; mkdir -p .git/hooks; echo x > src/made")
    assert f"cannot be protected: {of_nobody}." in says
    of_nobody.chmod(0o700)
    assert [path.name for path in of_nobody.rglob("*")] == ["src"]


@pytest.mark.requirement("S12")
def test_a_start_without_descriptors_is_refused(bwrap, inside):
    """EMFILE must not leave the names unprotected; nothing is left behind."""
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    held: list[int] = []
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
        with contextlib.suppress(OSError):
            while True:
                held.append(os.open("/dev/null", os.O_RDONLY))
        for free in range(16):
            os.close(held.pop())
            started = None
            with contextlib.suppress(OSError, UserError):
                started = Sandbox(level=bwrap).start(
                    ["mkdir", "-p", ".git/hooks"], workspace=[inside]
                )
            if started is not None:
                with started:
                    assert started.process.wait(10) != 0, free
            assert list(inside.iterdir()) == [], free
    finally:
        for fd in held:
            os.close(fd)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


# --- network

NETWORK = """
import socket, sys
tcp, udp = int(sys.argv[1]), int(sys.argv[2])
try:
    socket.create_connection(("127.0.0.1", tcp), 5).close()
    print("tcp", end=" ")
except OSError: pass
try:
    socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b"x", ("127.0.0.1", udp))
    print("udp", end=" ")
except OSError: pass
one, other = socket.socketpair(); one.send(b"x"); print("pair" if other.recv(1) else "")
"""


@pytest.fixture
def listening() -> Iterator[tuple[socket.socket, socket.socket]]:
    """A TCP and a UDP socket on the loopback."""
    with socket.socket() as tcp, socket.socket(type=socket.SOCK_DGRAM) as udp:
        tcp.bind(("127.0.0.1", 0))
        tcp.listen()
        udp.bind(("127.0.0.1", 0))
        udp.settimeout(5)
        yield tcp, udp


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("network", [True, False])
def test_the_network_is_available_only_on_request(confined, inside, listening, network):
    """Without network neither TCP nor UDP works; local socket pairs do."""
    tcp, udp = listening
    argv = python(NETWORK, str(tcp.getsockname()[1]), str(udp.getsockname()[1]))
    code, output = run(Sandbox(level=confined, network=network), argv, inside)
    assert code == 0
    if network:
        assert output == "tcp udp pair\n"
        assert udp.recv(1) == b"x"
        return
    assert output in {
        "pair\n",
        "udp pair\n",
    }  # on its own loopback interface a datagram can be sent
    udp.setblocking(False)
    with pytest.raises(BlockingIOError):
        udp.recv(1)


FAMILIES = """
import ctypes, socket
def made(family, kind):
    try:
        socket.socket(family, kind).close()
    except OSError:
        return False
    return True
tried = {"inet": socket.AF_INET, "inet6": socket.AF_INET6, "packet": 17, "vsock": 40, "alg": 38}
print(*[name for name, family in tried.items() if made(family, socket.SOCK_DGRAM)])
libc = ctypes.CDLL(None, use_errno=True)
print(libc.syscall(425, 1, ctypes.create_string_buffer(120)), ctypes.get_errno())
print(libc.syscall(41 | 0x40000000, 2, 2, 0), ctypes.get_errno())
"""


@pytest.mark.requirement("S13")
def test_other_network_paths_are_blocked(confined, inside):
    """Raw packets, sockets to a virtual machine's host, io_uring, x32 calls."""
    code, output = run(Sandbox(level=confined), python(FAMILIES), inside)
    lines = output.splitlines()
    assert code == 0
    assert lines[0] in {"", "inet inet6", "inet"}
    assert lines[1] == "-1 1"
    assert lines[2] == "-1 38"


@pytest.mark.requirement("S13")
def test_sockets_of_services_are_hidden(bwrap, inside):
    """A service could do through them what the command cannot."""
    code, output = run(Sandbox(level=bwrap), "find /run -type s", inside)
    assert (code, output) == (0, "")


# --- what a program inherits


@pytest.mark.requirement("S21")
def test_the_environment_contains_only_the_allow_list(level, inside, monkeypatch):
    """Secrets and shell functions in particular are not inherited."""
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    monkeypatch.setenv("LC_PROBE", "C")
    monkeypatch.setenv("ASKED", "for")
    monkeypatch.setenv("SHELL", "() { :; }; echo bad")
    sandbox = Sandbox(level=level, inherit_env=("ASKED", "ABSENT"), env={"GIVEN": "1", "TERM": "x"})
    code, output = run(sandbox, ["/usr/bin/env", "-0"], inside)
    got = dict(line.split("=", 1) for line in output.rstrip("\0").split("\0"))
    allowed = {"HOME", "LOGNAME", "PATH", "TERM", "USER", "LANG"} | {
        name for name in os.environ if name.startswith("LC_")
    }
    own = {"TMPDIR", "PWD", MARKER, "ASKED", "GIVEN", "TERM"}
    assert code == 0
    assert set(got) - {"_"} == {name for name in allowed if name in os.environ} | own
    assert (got["GIVEN"], got["TERM"], got["ASKED"], got["PWD"]) == ("1", "x", "for", str(inside))


@pytest.mark.requirement("S22")
def test_no_descriptors_are_inherited(level, inside):
    """Only 0, 1 and 2 are open, even if this process has inheritable ones open."""
    reading, writing = os.pipe()
    os.set_inheritable(writing, True)
    try:
        code, output = run(
            Sandbox(level=level),
            python("import os; print(sorted(map(int, os.listdir('/proc/self/fd')))[:-1])"),
            inside,
        )
    finally:
        os.close(reading)
        os.close(writing)
    assert (code, output) == (0, "[0, 1, 2]\n")


@pytest.mark.requirement("S22")
def test_descriptors_that_are_passed_arrive(level, inside):
    reading, writing = os.pipe()
    try:
        argv = python(f"import os; os.write({writing}, b'here')")
        with Sandbox(level=level).start(argv, workspace=[inside], pass_fds=[writing]) as running:
            assert running.process.wait(10) == 0
        assert os.read(reading, 4) == b"here"
    finally:
        os.close(reading)
        os.close(writing)


@pytest.mark.requirement("S22")
def test_no_descriptors_are_left_open(level, inside):
    """This process keeps none open either."""
    run(Sandbox(level=level), "true", inside)
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        run(Sandbox(level=level), "true", inside)
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_a_program_starts_in_the_requested_directory(level, inside):
    """Relative directories and programs are resolved from the first root."""
    (inside / "sub").mkdir()
    program = inside / "sub" / "here"
    program.write_text("#!/bin/sh\npwd\n")
    program.chmod(0o755)
    with Sandbox(level=level).start(["./here"], workspace=[inside], cwd="sub") as running:
        output, _ = running.process.communicate(timeout=30)
    assert output.decode().strip() == str(inside / "sub")


def test_exit_codes_and_streams_are_passed_through(level, inside):
    """The program behaves like any other process."""
    with Sandbox(level=level).start(
        ["sh", "-c", "cat; echo bad >&2; exit 7"], workspace=[inside]
    ) as running:
        assert running.process.communicate(b"text", timeout=30) == (b"text", b"bad\n")
        assert running.process.returncode == 7
        assert os.getsid(0) != running.pgid == running.pid


# --- signals, and the end of processes


def test_signals_do_not_reach_other_programs(confined, inside):
    """Other programs of the user must not be ended."""
    other = subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE)
    try:
        script = f"kill -0 {other.pid} || kill -9 {other.pid} || kill -9 {os.getpid()} || echo no"
        code, output = run(Sandbox(level=confined), script, inside)
        assert (code, output.splitlines()[-1]) == (0, "no")
        assert other.poll() is None
    finally:
        other.communicate()


LIMIT = """
import resource, sys
other = int(sys.argv[1])
for change in ((), ((64, 64),)):
    try:
        resource.prlimit(other, resource.RLIMIT_NOFILE, *change)
    except OSError:
        continue
    print("LIMITED", change)
resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
print(resource.getrlimit(resource.RLIMIT_NOFILE))
"""


@pytest.mark.parametrize("network", [True, False])
def test_limits_of_other_programs_cannot_be_set(confined, inside, network):
    """A limit ends a program as a signal does; a program can set its own."""
    with subprocess.Popen(["/bin/cat"], stdin=subprocess.PIPE) as other:
        before = Path(f"/proc/{other.pid}/limits").read_text()
        code, output = run(
            Sandbox(level=confined, network=network), python(LIMIT, str(other.pid)), inside
        )
        assert Path(f"/proc/{other.pid}/limits").read_text() == before
    assert (code, output) == (0, "(32, 32)\n")


@pytest.mark.requirement("S19")
def test_only_the_terminal_that_is_passed_can_be_opened(confined, inside):
    """Terminals of the user and of other programs are outside of the workspace."""
    outer, own = os.openpty()
    other, others = os.openpty()
    code = f"""
    import os
    os.close(os.open("/proc/self/fd/{own}", os.O_WRONLY | os.O_NOCTTY)); print("own")
    try: os.write(os.open({os.ttyname(others)!r}, os.O_WRONLY | os.O_NOCTTY), b"escape")
    except OSError: print("closed")
    """
    try:
        with Sandbox(level=confined).start(
            python(code), workspace=[inside], pass_fds=[own], stderr=subprocess.STDOUT
        ) as running:
            output, _ = running.process.communicate(timeout=30)
        os.set_blocking(other, False)
        with pytest.raises(BlockingIOError):
            os.read(other, 100)
    finally:
        for fd in (outer, own, other, others):
            os.close(fd)
    if confined == "required:landlock":  # under bubblewrap the terminals are in a separate devpts
        assert output.split() == [b"own", b"closed"]


@pytest.mark.requirement("S19")
def test_terminals_of_others_can_be_neither_read_nor_configured(confined, inside):
    """A command could turn echo and Ctrl-C off, or read what the user types."""
    other, others = os.openpty()
    code = f"""
    import errno, os, termios
    for mode in (os.O_RDONLY, 3):  # with mode 3, a terminal can only be configured
        try:
            terminal = os.open({os.ttyname(others)!r}, mode | os.O_NOCTTY)
            modes = termios.tcgetattr(terminal)
            modes[3] &= ~(termios.ECHO | termios.ISIG)
            termios.tcsetattr(terminal, termios.TCSANOW, modes)
            print("CHANGED", mode)
            print(os.read(terminal, 100))
        except (OSError, termios.error): pass
    """
    os.write(other, b"password\n")
    before = termios.tcgetattr(others)
    try:
        assert run(Sandbox(level=confined), python(code), inside) == (0, "")
        assert termios.tcgetattr(others) == before
    finally:
        os.close(other)
        os.close(others)


@pytest.mark.requirement("S19")
def test_the_own_terminal_can_be_configured_and_read(confined, inside):
    """Programs ask for passwords and set their modes on it."""
    outer, own = os.openpty()
    code = f"""
    import os, termios
    os.open("/proc/self/fd/{own}", os.O_RDWR)  # a session leader without a terminal gets it
    terminal = os.open("/dev/tty", os.O_RDWR)
    modes = termios.tcgetattr(terminal)
    modes[3] &= ~termios.ECHO
    termios.tcsetattr(terminal, termios.TCSANOW, modes)
    print(os.read(terminal, 100))
    """
    os.write(outer, b"typed\n")
    level = Sandbox(level=confined)
    with level.start(
        python(code), workspace=[inside], pass_fds=[own], stderr=subprocess.STDOUT
    ) as it:
        output, _ = it.process.communicate(timeout=30)
    echo = termios.tcgetattr(own)[3] & termios.ECHO
    os.close(outer)
    os.close(own)
    if confined == "required:landlock":  # under bubblewrap another process leads the session
        assert (output, echo) == (b"b'typed\\n'\n", 0)


@pytest.mark.requirement("S19")
def test_programs_can_be_allowed_to_create_terminals(confined, inside):
    """Landlock then allows all other terminals too, so it must be requested."""
    writable = ("/dev/pts",) if confined == "required:landlock" else ()
    code = "import os; os.write(os.openpty()[1], b'x')"
    assert run(Sandbox(level=confined, writable=writable), python(code), inside) == (0, "")


FAMILY = """
import os, signal, sys, time
def daemon(*, clear):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            signal.signal(signal.SIGHUP, signal.SIG_IGN)
            if clear:
                os.execve("/bin/sleep", ["sleep", "1000"], {})
            while True: time.sleep(1000)
        os._exit(0)
for _ in range(int(sys.argv[1])):
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN if sys.argv[2] == "deaf" else signal.SIG_DFL)
        while True: time.sleep(1000)
daemon(clear=False)
if os.fork() == 0:
    os.setsid(); time.sleep(1000)
print("ready", flush=True)
time.sleep(1000)
"""


@contextlib.contextmanager
def family(level: str, inside: Path, children: int, kind: str = "") -> Generator[SandboxedProcess]:
    with Sandbox(level=level).start(
        python(FAMILY, str(children), kind), workspace=[inside], stderr=None
    ) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == b"ready\n"
        until(lambda: len(running.descendants()) >= children + 2)
        yield running


@pytest.mark.requirement("F14", "F15")
@pytest.mark.parametrize(("children", "kind"), [(2, ""), (3, "deaf"), (300, ""), (300, "deaf")])
def test_all_descendants_are_ended(level, inside, children, kind):
    """Daemons, processes in other sessions, many, and those that ignore SIGTERM."""
    with family(level, inside, children, kind) as running:
        pids = running.descendants()
        assert running.kill_tree(grace=0.3) == 0
        assert running.process.poll() is not None
        assert not [pid for pid in pids if is_there(pid)]
        assert running.descendants() == []


@pytest.mark.requirement("F14")
def test_a_daemon_is_found_after_its_program_has_ended(level, inside):
    """The program itself has ended, the daemon has not (under bubblewrap it has)."""
    script = f"setsid sh -c 'echo $$ > {inside}/pid; exec sleep 1000' <&- >&- 2>&- & wait_for=1\n"
    script += f"while [ ! -s {inside}/pid ]; do :; done"
    with Sandbox(level=level).start(["sh", "-c", script], workspace=[inside]) as running:
        assert running.process.wait(10) == 0
        left = running.descendants()
        assert len(left) == (0 if level == "required:bwrap" else 1)
        assert running.kill_tree() == 0
        assert not [pid for pid in left if is_there(pid)]


@pytest.mark.requirement("F14")
def test_a_known_process_is_found_after_it_detaches(inside):
    """It leaves the session, empties its environment, and loses its parent."""
    go = inside / "go"
    code = """
    import os, sys, time
    os.setsid()
    print(os.getpid(), flush=True)
    while not os.path.exists(sys.argv[1]): time.sleep(0.005)
    os.execve("/bin/sleep", ["sleep", "1000"], {})
    """
    script = 'python=$1; shift; "$python" "$@" & read -r _; exit 0'
    argv = ["sh", "-c", script, "sh", *python(code, str(go))]
    with Sandbox().start(argv, workspace=[inside]) as running:
        assert running.process.stdout is not None
        assert running.process.stdin is not None
        pid = int(running.process.stdout.readline())
        assert running.descendants() == [pid]
        running.process.stdin.write(b"\n")
        assert running.process.wait(10) == 0
        go.touch()
        until(lambda: Path(f"/proc/{pid}/cmdline").read_bytes().startswith(b"sleep"))
        assert running.kill_tree() == 0
        assert not is_there(pid)


@pytest.mark.requirement("F15")
def test_sigterm_is_sent_before_sigkill(level, inside):
    """A program can clean up."""
    script = "trap 'echo bye; exit 3' TERM; echo ready; while :; do sleep 0.01; done"
    with Sandbox(level=level).start(["sh", "-c", script], workspace=[inside]) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == b"ready\n"
        assert running.kill_tree(grace=5) == 0
        assert running.process.stdout.read() == b"bye\n"
        assert running.process.returncode == 3


BOMB = """
import mmap, os, signal, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
count = mmap.mmap(-1, 4096 * 1500)
def taken():
    found = count.find(b"\\0")
    if found < 0 or found >= 1500: return False
    count[found] = 1
    return True
while taken():
    try:
        if os.fork() == 0:
            if os.getpid() % 3 == 0: os.setsid()
    except OSError: break
time.sleep(1000)
"""
"""Everyone makes others, a third of them in sessions of their own; it ends at about 1,500."""


@pytest.mark.requirement("F14")
def test_a_fork_bomb_is_ended(level, inside):
    """It forks while processes are being ended, and ignores SIGTERM."""
    with Sandbox(level=level).start(python(BOMB), workspace=[inside], stderr=None) as running:
        until(lambda: len(running.descendants()) > 20)
        assert running.kill_tree(grace=0.2) == 0
        assert running.descendants() == []


@pytest.mark.requirement("F14")
def test_programs_of_others_are_not_ended(level, inside):
    """Programs outside of the sandbox and those of another sandbox keep running."""
    with (
        Sandbox(level=level).start(["cat"], workspace=[inside]) as other,
        family(level, inside, 2) as running,
    ):
        assert running.kill_tree() == 0
        assert other.process.poll() is None
        assert other.process.communicate(b"alive", timeout=30)[0] == b"alive"


@pytest.mark.requirement("F44")
def test_close_can_be_called_concurrently_and_repeatedly(level, inside):
    """The second call has nothing to do."""
    running = Sandbox(level=level).start(["sleep", "1000"], workspace=[inside])
    assert running.pgid in processes._guardian.groups
    threads = [threading.Thread(target=running.close) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(10)
    running.close()
    assert running.process.returncode is not None
    assert running.pgid not in processes._guardian.groups


FORKED = """
import os, sys
from agents_tools.builtin.sandbox import Sandbox
def start():
    with Sandbox(level=sys.argv[1]).start(["/bin/true"], workspace=[sys.argv[2]]) as running:
        return running.process.wait(10)
before = start()
pid = os.fork()
if pid == 0:
    os._exit(start())
print(before, os.waitpid(pid, 0)[1], start())
"""


@pytest.mark.requirement("F44")
def test_a_forked_process_can_start_programs(level, inside):
    """It does not have the threads of its parent."""
    result = subprocess.run(  # noqa: S603 - this interpreter, with the program above
        [PYTHON, "-c", FORKED, level, str(inside)], capture_output=True, check=True, timeout=15
    )
    assert result.stdout == b"0 0 0\n"


PARENT = """
import sys, threading
from agents_tools.builtin.sandbox import Sandbox
def start():
    global running
    running = Sandbox(level=sys.argv[1]).start(["sh", "-c", sys.argv[2]], workspace=[sys.argv[3]])
thread = threading.Thread(target=start); thread.start(); thread.join()
print(running.process.stdout.readline().decode(), flush=True)
import time; time.sleep(1000)
"""


@pytest.mark.requirement("F16")
def test_programs_are_ended_when_this_process_is_killed(level, inside, tmp_path):
    """Even by SIGKILL, and whichever thread started them."""
    script = "sleep 1000 & sleep 1000 & echo ready; wait"
    parent = subprocess.Popen(  # noqa: S603 - this interpreter, with the program above
        [PYTHON, "-c", PARENT, level, script, str(inside)],
        stdout=subprocess.PIPE,
        env={**os.environ, "TMPDIR": str(tmp_path)},
    )
    try:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"ready\n"  # it has outlived the thread
        marked = _with_marker(parent.pid)
        assert len(marked) >= 3
        parent.send_signal(signal.SIGKILL)
        until(lambda: not [pid for pid in marked if is_there(pid)])
    finally:
        parent.kill()
        parent.communicate()


LEFT = """
import os, sys
from agents_tools.builtin.sandbox import Sandbox
script = 'mkdir -p "$TMPDIR/a/b" && touch "$TMPDIR/a/b/c" && chmod 0 "$TMPDIR/a"; echo ready; cat'
running = [Sandbox(level=sys.argv[1]).start(["sh", "-c", script], workspace=[one])
           for one in sys.argv[2:]]
for one in running: one.process.stdout.readline()
assert sys.argv[1] != "required:bwrap" or os.path.exists(sys.argv[3] + "/.git/commondir")
Sandbox(level=sys.argv[1]).start(["true"], workspace=[sys.argv[2]]).close()
for one in sys.argv[2:]: print(sorted(os.listdir(one)))
sys.stdout.flush()
mine = os.path.join(sys.argv[2], ".mcp.json")
if os.path.isdir(mine): os.rmdir(mine)
open(mine, "w").write("{}")
os.kill(os.getpid(), 9)
"""


@pytest.mark.requirement("F16", "S11")
def test_files_are_removed_when_this_process_is_killed(level, inside, tmp_path):
    """Temporary directories and placeholders are removed; files with content stay."""
    odd = tmp_path / "an odd 'name' $HOME * "
    (odd / ".git").mkdir(parents=True)
    temporary = tmp_path / "with space "
    temporary.mkdir()
    (temporary / "agents-tools-other").mkdir()
    result = subprocess.run(  # noqa: S603 - this interpreter, with the program above
        [PYTHON, "-c", LEFT, level, str(inside), str(odd)],
        capture_output=True,
        check=False,
        timeout=15,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert result.returncode == -signal.SIGKILL, result.stderr
    assert (b".mcp.json" in result.stdout) == (level == "required:bwrap")
    until(lambda: [path.name for path in temporary.iterdir()] == ["agents-tools-other"])
    until(lambda: [path.name for path in odd.iterdir()] == [".git"])
    until(lambda: not any((odd / ".git").iterdir()))
    until(lambda: [path.name for path in inside.iterdir()] == [".mcp.json"])


@pytest.mark.requirement("F16")
def test_the_guardian_removes_only_its_own_files_and_ends(tmp_path):
    """It removes files by name or if they are empty, and follows no link."""
    kept, full, link = tmp_path / "kept", tmp_path / "full", tmp_path / "agents-tools-link"
    for one in (kept, full, tmp_path / "empty"):
        one.mkdir()
    (full / "file").touch()
    link.symlink_to(full)
    code = """
import os, sys
from agents_tools.concurrency import processes as _guardian
os.chdir(sys.argv[1])
for name in ("kept", "agents-tools-link"): _guardian.remove_at_exit(os.path.abspath(name))
for name in ("full", "empty", "none"): _guardian.remove_at_exit(os.path.abspath(name), only_empty=True)
_guardian.remove_at_exit("/tmp/a\\nb"); _guardian.cancel_removal("/tmp/a\\nb"); _guardian.cancel_removal("unknown")
os.kill(os.getpid(), 9)
"""
    code = code.replace("\\\\n", "\\n")
    subprocess.run([PYTHON, "-c", code, str(tmp_path)], check=False, timeout=15)  # noqa: S603 - this interpreter
    until(lambda: not (tmp_path / "empty").exists())
    assert sorted(path.name for path in tmp_path.iterdir()) == ["agents-tools-link", "full", "kept"]
    assert (full / "file").exists()


def _with_marker(ancestor: int) -> list[int]:
    """Return the processes with a marker that descend from one."""
    family = psutil.Process(ancestor).children(recursive=True)
    return sorted(one.pid for one in family if MARKER in one.environ())


@pytest.mark.requirement("F14")
def test_a_program_ends_with_its_namespace(bwrap, inside):
    """Its background processes end with it."""
    with Sandbox(level=bwrap).start(
        ["sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 & echo over"], workspace=[inside]
    ) as running:
        assert running.process.communicate(timeout=30)[0] == b"over\n"
        until(lambda: running.descendants() == [])


@pytest.mark.requirement("S20")
def test_other_processes_are_not_visible(bwrap, inside):
    """Their environments are not visible either."""
    code, output = run(Sandbox(level=bwrap), "ls /proc | grep -c '^[0-9]'", inside)
    assert code == 0
    assert int(output) <= 6


@pytest.mark.requirement("S20")
def test_other_environments_are_not_readable(confined, inside):
    """The environment of this process contains keys."""
    code, output = run(Sandbox(level=confined), f"cat /proc/{os.getpid()}/environ", inside)
    assert code != 0
    assert "PATH=" not in output


# --- limits


@pytest.mark.requirement("S29")
@pytest.mark.parametrize(
    ("limits", "code"),
    [
        (Limits(open_files=32), "[open('/dev/null') for _ in range(64)]"),
        (Limits(memory=256 << 20), "bytearray(512 << 20)"),
        (Limits(file_size=4096), "open('big', 'wb', 0).write(bytes(8192)) == 4096 or bad; 1/0"),
    ],
)
def test_limits_are_enforced(level, inside, limits, code):
    """Number of files, memory, file size."""
    status, output = run(Sandbox(level=level, limits=limits), python(code), inside)
    assert status != 0
    assert output.strip().splitlines()[-1].startswith(("OSError", "MemoryError", "ZeroDivision"))
    if (inside / "big").exists():
        assert (inside / "big").stat().st_size == 4096


@pytest.mark.requirement("S29")
def test_the_processor_time_is_limited(level, inside):
    """The program gets SIGXCPU after one second."""
    sandbox = Sandbox(level=level, limits=Limits(cpu_seconds=1))
    status, _ = run(sandbox, ["sh", "-c", "while :; do :; done"], inside)
    assert status in {-signal.SIGXCPU, 128 + signal.SIGXCPU}


@pytest.mark.requirement("S29")
def test_limits_apply_from_the_start_and_cannot_be_raised(confined, inside):
    """Root cannot raise them either, as it lacks the capability."""
    script = "ulimit -n; ulimit -p 2>/dev/null || ulimit -u; ulimit -n 4096 || echo no"
    sandbox = Sandbox(level=confined, limits=Limits(open_files=64, processes=500))
    code, output = run(sandbox, script, inside)
    lines = output.splitlines()
    assert (code, lines[0], lines[-1]) == (0, "64", "no")
    assert lines[1] == "500"


def test_a_limit_above_the_current_one_changes_nothing(inside):
    """A user with lower limits can still start programs."""
    run_limited = Sandbox(limits=Limits(open_files=1 << 30))
    assert run(run_limited, "true", inside) == (0, "")


# --- levels


def test_the_strongest_level_is_chosen(inside, monkeypatch):
    """`auto` tries each level in turn, and reports why it was not used."""
    bwrap = _available("required:bwrap")
    assert sandbox_report().level == "bwrap"
    assert sandbox_report().why_not == {}
    monkeypatch.setenv("PATH", str(inside))
    report = sandbox_report()
    assert report.level in {"landlock", "process"}
    assert "bwrap is not on PATH. Install bubblewrap" in report.why_not["bwrap"]
    with Sandbox(level="auto").start(["/bin/echo", "x"], workspace=[inside]) as running:
        assert running.report == report
        assert running.process.communicate(timeout=30)[0] == b"x\n"
    with pytest.raises(
        UserError, match=r"'bwrap' is not available: the program bwrap is not on PATH"
    ):
        sandbox_report(Sandbox(level=bwrap))
    with pytest.raises(UserError, match="is not available"):
        Sandbox(level=bwrap).start(["/bin/sh"], workspace=[inside])


def test_a_bwrap_that_does_not_work_is_not_used(tmp_path, inside, monkeypatch):
    """Its error output is reported with a remedy."""
    said = "bwrap: setting up uid map: Permission denied"
    fake = tmp_path / "bin" / "bwrap"
    fake.parent.mkdir()
    fake.write_text(f"#!/bin/sh\necho '{said}' >&2; exit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:/usr/sbin")
    why = sandbox_report().why_not["bwrap"]
    assert "setting up uid map: Permission denied" in why
    assert "apparmor_restrict_unprivileged_userns" in why


@pytest.mark.requirement("S5")
def test_a_bwrap_of_the_workspace_is_not_trusted(inside, tmp_path, monkeypatch):
    """The command could have put it there, also through a link."""
    fake = inside / "bwrap"
    fake.write_text("#!/bin/sh\ntouch was-run\n")
    fake.chmod(0o755)
    elsewhere = tmp_path / "bin"
    elsewhere.mkdir()
    (elsewhere / "bwrap").symlink_to(fake)
    for directory in (inside, elsewhere):
        monkeypatch.setenv("PATH", f"{directory}:.:relative")
        with pytest.raises(UserError, match="inside the workspace"):
            Sandbox(level="required:bwrap").start(["/bin/true"], workspace=[inside])
    assert not (inside / "was-run").exists()


def test_a_level_that_is_not_requested_is_not_tried():
    """The default reports how to get a stronger level."""
    report = sandbox_report(Sandbox())
    assert report.level == "process"
    assert report.why_not == {
        "bwrap": "not asked for. Use level='auto' or 'required:bwrap'.",
        "landlock": "not asked for. Use level='auto' or 'required:landlock'.",
    }


@pytest.mark.requirement("S13")
@pytest.mark.parametrize("network", [True, False])
def test_what_is_not_confined_is_reported(network):
    """Sockets, daemons and other gaps of a level are listed."""
    said = {
        level: sandbox_report(Sandbox(level=level, network=network)).says
        for level in ("process", "required:landlock", "required:bwrap")
        if _works(level)
    }
    assert "daemons that cut every tie" in said["process"]
    if "required:landlock" in said:
        assert "cannot signal or limit other processes" in said["required:landlock"]
        assert "Unix sockets" in said["required:landlock"]
    if "required:bwrap" in said:
        assert "Unix sockets outside of /run" in said["required:bwrap"]
        assert ("abstract" in said["required:bwrap"]) == network


def _works(level: str) -> bool:
    with contextlib.suppress(UserError):
        return bool(sandbox_report(Sandbox(level=level)))
    return False


def test_an_unknown_level_is_rejected():
    """A misspelled level would mean no confinement."""
    for wrong in ("bwrap", "required:docker", "required:", "none"):
        with pytest.raises(
            UserError, match=rf"sandbox level '{wrong}' is unknown: expected one of 'process'"
        ):
            Sandbox(level=wrong)


@pytest.mark.parametrize(
    ("argv", "options", "message"),
    [
        ([], {}, "argv is empty"),
        (["no-such-program"], {}, "program 'no-such-program' was not found"),
        (["./no-such-program"], {}, "program './no-such-program' was not found"),
        (["true"], {"cwd": "nowhere"}, "directory .*nowhere does not exist"),
        (["true"], {"workspace": []}, "needs a workspace"),
        (["true"], {"workspace": ["/no/such/place"]}, "'/no/such/place' cannot be used"),
    ],
)
def test_an_invalid_start_is_rejected(level, inside, tmp_path, monkeypatch, argv, options, message):
    """A failed start leaves nothing behind."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    given: dict[str, Any] = {"workspace": [inside], **options}
    with pytest.raises(UserError, match=message):
        Sandbox(level=level).start(argv, **given)
    with pytest.raises(UserError, match="does not exist"):
        Sandbox(level=level, writable=("/no/such",)).start(["true"], workspace=[inside])
    assert list(inside.iterdir()) == []
    assert list(tmp_path.iterdir()) == [inside]


@pytest.mark.parametrize("name", ["cpu_seconds", "memory", "open_files"])
def test_a_limit_must_be_positive(name):
    """Zero means "no limit" in some places and "nothing" in others."""
    with pytest.raises(UserError, match=rf"Limits\({name}=0\) is not above zero"):
        Limits(**{name: 0})


# --- on other systems


@pytest.mark.requirement("F15")
@pytest.mark.parametrize("kind", ["", "deaf"])
def test_children_are_ended_without_sessions_and_environments(inside, monkeypatch, kind):
    """Windows has no sessions, and macOS can hide the environment of a process."""
    monkeypatch.setattr(processes, "_session_of", lambda _: -1)
    monkeypatch.setattr(processes, "_environment_of", lambda _: {})
    deaf = "trap '' TERM;" if kind else ""
    script = f"{deaf} sleep 1000 & sleep 1000 & echo ready; wait; wait"
    with Sandbox().start(["sh", "-c", script], workspace=[inside]) as running:
        assert running.process.stdout is not None
        assert running.process.stdout.readline() == b"ready\n"
        found = running.descendants()
        assert len(found) == 2
        assert running.kill_tree(grace=2) == 0
        assert running.process.returncode is not None
        assert not [pid for pid in found if is_there(pid)]


@pytest.mark.requirement("S12")
def test_placeholders_are_not_added_to_git(bwrap, inside):
    """Only files that the command created are added and committed."""
    subprocess.run(["git", "init", "-q", str(inside)], check=True, timeout=30)  # noqa: S603, S607 - the git that is here
    script = (
        "echo x > own && git add -A && git -c user.name=a -c user.email=a@b commit -qm one && "
        "git status --porcelain && git ls-files"
    )
    assert run(Sandbox(level=bwrap), script, inside) == (0, "own\n")
