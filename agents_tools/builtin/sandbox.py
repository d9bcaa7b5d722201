"""Start programs with minimal permissions, and terminate all processes that they start.

```python
sandbox = Sandbox(level="auto")
with sandbox.start(["make", "test"], workspace=[Path("project")]) as running:
    output, errors = running.process.communicate()
```
"""

from __future__ import annotations

import contextlib
import dataclasses
import logging
import os
import secrets
import shutil
import subprocess
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self, TypeAlias

from agents_tools.builtin import bubblewrap, landlock, seccomp
from agents_tools.builtin.bubblewrap import Mount
from agents_tools.builtin.paths import DEFAULT_PROTECTED, Root
from agents_tools.builtin.protected_paths import Protection
from agents_tools.builtin.sandbox_levels import LEVELS, SandboxReport, choose, restrict
from agents_tools.builtin.spawn import (
    default_signals,
    run_in_lasting_thread,
    run_in_restricted_thread,
)
from agents_tools.concurrency import processes
from agents_tools.concurrency.processes import MARKER, ProcessTree, new_marker
from agents_tools.errors import UserValueError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

__all__ = [
    "Limits",
    "Sandbox",
    "SandboxReport",
    "SandboxedProcess",
    "sandbox_report",
]

logger = logging.getLogger("agents_tools.sandbox")

GRACE = 2.0
"""Seconds between SIGTERM and SIGKILL."""

_Stream: TypeAlias = "int | IO[bytes] | None"
_Path: TypeAlias = "str | os.PathLike[str]"

_INHERITED = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG")
_INHERITED_ON_WINDOWS = ("COMSPEC", "PATHEXT", "SYSTEMROOT", "USERPROFILE", "WINDIR")
_SHELL = "/bin/sh"
_UMASK = 0o077
_DEVICES = ("null", "zero", "full", "random", "urandom", "tty", "ptmx")
"""The shared devices in `/dev`, without the shared memory and terminals of other programs."""
_TEMPORARY = ("/tmp", "/var/tmp")  # noqa: S108 - hidden behind a private directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Resource limits for each process of a command; `None` is unlimited.

    `processes` does not apply to root, and at the level `process` root may raise the other limits.

    Attributes:
        cpu_seconds: The maximum CPU time in seconds.
        memory: The maximum address space in bytes.
        file_size: The maximum size of a written file in bytes.
        processes: The maximum number of processes of the user, including other programs.
        open_files: The maximum number of open file descriptors.

    Raises:
        UserError: A limit is not above zero.
    """

    cpu_seconds: int | None = None
    memory: int | None = None
    file_size: int | None = None
    processes: int | None = None
    open_files: int | None = 1024

    def __post_init__(self) -> None:
        """Validate the limits."""
        for one in dataclasses.fields(self):
            value = getattr(self, one.name)
            if value is not None and value < 1:
                raise UserValueError(
                    f"Limits({one.name}={value!r}) is not above zero. Use None for no limit."
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """The settings for starting programs: confinement, environment and limits.

    Attributes:
        level: `process` (children are terminated, nothing is confined), `auto` (the strongest
            available level), or `required:bwrap`, `required:landlock`, `required:process` (this
            level, or an error).
        network: Whether programs may use the network; the level `process` cannot prevent it.
        writable: Directories and files outside of the workspace that programs may write. With
            Landlock, programs that share memory need `/dev/shm` here, and programs that create
            terminals need `/dev/pts`.
        inherit_env: Names of additional environment variables to inherit from this process.
        env: Additional environment variables.
        limits: The resource limits.

    Raises:
        UserError: The level is unknown.
    """

    level: str = "process"
    network: bool = False
    writable: tuple[_Path, ...] = ()
    inherit_env: tuple[str, ...] = ()
    env: Mapping[str, str] = field(default_factory=dict[str, str])
    limits: Limits = field(default_factory=Limits)

    def __post_init__(self) -> None:
        """Validate the level."""
        if self.level not in {"auto", "process"}:
            required, _, level = self.level.partition(":")
            if required != "required" or level not in LEVELS:
                choose(self.level, network=self.network)

    def start(
        self,
        argv: Sequence[str],
        *,
        workspace: Sequence[_Path],
        cwd: _Path | None = None,
        stdin: _Stream = subprocess.PIPE,
        stdout: _Stream = subprocess.PIPE,
        stderr: _Stream = subprocess.PIPE,
        pass_fds: Sequence[int] = (),
        protected: Sequence[str] = DEFAULT_PROTECTED,
    ) -> SandboxedProcess:
        """Start a program in a new session.

        Args:
            argv: The program, which is searched on its own `PATH`, and its arguments.
            workspace: The directories that it may write.
            cwd: The directory in which it starts, relative to the first directory of the
                workspace, which is the default.
            stdin: As for `subprocess.Popen`; the pipes are not buffered.
            stdout: As above.
            stderr: As above.
            pass_fds: Additional file descriptors to pass.
            protected: Names in the workspace that it may not change, if the level supports that.

        Returns:
            The running program; close it to terminate all processes that it has started.

        Raises:
            UserError: The level, a directory or the program is not available.
            OSError: The program cannot be started.
        """
        with contextlib.ExitStack() as undo:
            roots = [undo.enter_context(Root(one)) for one in workspace]
            if not roots:
                raise UserValueError("A sandbox needs a workspace: pass at least one directory.")
            launch = _SandboxCommand(self, [root.path for root in roots], cwd, undo.pop_all())
            with launch.undo:
                launch.prepare(argv, roots, protected)
                process = launch.start(stdin, stdout, stderr, tuple(pass_fds))
                return SandboxedProcess(process, launch)


class SandboxedProcess:
    """A program that was started by `Sandbox.start`; leaving its `with` block closes it.

    Attributes:
        process: The process, with its pipes. At the level `bwrap` it is bubblewrap, which exits
            with the code of the program.
        report: The confinement of the program.
        temp_dir: A private directory, the `TMPDIR` of the program, removed by `close`.
    """

    def __init__(self, process: subprocess.Popen[bytes], launch: _SandboxCommand) -> None:
        self.process = process
        self.report = launch.report
        self.temp_dir = launch.temp_dir
        self._undo = launch.undo.pop_all()
        self._lock = threading.RLock()
        self._closed = False
        self._tree = ProcessTree(
            process, launch.marker, is_namespace=launch.report.level == "bwrap"
        )
        if os.name == "posix":
            processes.watch(process.pid)

    def __repr__(self) -> str:
        """Show the process id and the level."""
        return f"<SandboxedProcess {self.pid}, {self.report.level}>"

    def __enter__(self) -> Self:
        """Return itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Terminate all processes that were started."""
        self.close()

    @property
    def pid(self) -> int:
        """The id of the process."""
        return self.process.pid

    @property
    def pgid(self) -> int:
        """The id of its process group, which is also the id of its session."""
        return self.process.pid

    def descendants(self) -> list[int]:
        """Return the ids of running processes that it has started, oldest first.

        With bubblewrap, the program itself is one of them. The processes are only known on Linux.
        A process that was returned once is terminated by `kill_tree` even if it detaches later.
        """
        with self._lock:
            return self._tree.descendants()

    def kill_tree(self, grace: float = GRACE) -> int:
        """Terminate the program and all processes that it has started, including daemons.

        Args:
            grace: Seconds between SIGTERM and SIGKILL.

        Returns:
            The number of processes that could not be terminated, normally 0.
        """
        with self._lock:
            return self._tree.end(grace)

    def close(self) -> None:
        """Terminate all processes that were started, and remove the temporary directory."""
        with self._lock:
            if self._closed:
                return
            self._closed = True
            try:
                left = self.kill_tree()
                if left:
                    logger.warning("%d processes of %r could not be terminated.", left, self)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE)  # reap the process, which was terminated above
            finally:
                for pipe in (self.process.stdin, self.process.stdout, self.process.stderr):
                    if pipe is not None:
                        with contextlib.suppress(OSError):
                            pipe.close()
                if os.name == "posix":
                    processes.forget(self.pgid)
                self._undo.close()


def sandbox_report(sandbox: Sandbox | None = None) -> SandboxReport:
    """Return the level at which commands are started, and why it is not a stronger one.

    Args:
        sandbox: The sandbox; `Sandbox(level="auto")` by default.

    Raises:
        UserError: The required level is not available.
    """
    asked = sandbox or Sandbox(level="auto")
    return choose(asked.level, network=asked.network)


def _beneath(path: Path, directories: Iterable[_Path]) -> bool:
    return any(path.is_relative_to(one) for one in directories)


# --- one start


class _SandboxCommand:
    """The temporary resources of one started program, and their cleanup."""

    def __init__(
        self,
        sandbox: Sandbox,
        roots: Sequence[Path],
        cwd: _Path | None,
        undo: contextlib.ExitStack,
    ) -> None:
        self.sandbox = sandbox
        self.undo = undo
        self.roots = list(roots)
        with undo:
            self.writable = [*roots, *_existing(sandbox.writable)]
            self.report = choose(sandbox.level, network=sandbox.network, outside=self.writable)
            self.cwd = os.path.realpath(self.roots[0] / (cwd or "."))
            if not Path(self.cwd).is_dir():
                raise UserValueError(
                    f"The directory {self.cwd} does not exist. Pass an existing directory as cwd."
                )
            self.undo = undo.pop_all()
        self.marker = new_marker(secrets.token_hex(16))
        holder = Path(tempfile.mkdtemp(prefix=processes.TEMPORARY)).resolve()
        self.undo.callback(_remove, holder)
        processes.remove_at_exit(holder)
        self.temp_dir = holder / "own"
        self.hidden_temp = holder / "tmp"
        self.environment: dict[str, str] = {}
        self.argv: list[str] = []
        self._fds: list[int] = []
        self._protection: Protection | None = None

    def prepare(self, argv: Sequence[str], roots: Sequence[Root], protected: Sequence[str]) -> None:
        """Create the temporary directory, the environment and the command line."""
        self.temp_dir.mkdir(mode=0o700)
        self.environment = dict(self._environment())
        self.argv = [*_prologue(self.sandbox.limits), *self._resolved(argv)]
        if self.report.level == "bwrap":
            self._wrap(roots, protected)

    def start(
        self, stdin: _Stream, stdout: _Stream, stderr: _Stream, pass_fds: tuple[int, ...]
    ) -> subprocess.Popen[bytes]:
        """Start the program at its level."""

        def start() -> subprocess.Popen[bytes]:
            return subprocess.Popen(  # noqa: S603 - starting programs is the purpose of this module
                self.argv,
                bufsize=0,
                stdin=stdin,
                stdout=stdout,
                stderr=stderr,
                cwd=self.cwd,
                env=self.environment,
                start_new_session=True,
                umask=_UMASK if os.name == "posix" else -1,
                close_fds=True,
                pass_fds=(*pass_fds, *self._fds),
                preexec_fn=default_signals(),  # noqa: PLW1509 - it only calls signal.signal
            )

        if self.report.level == "bwrap":
            try:
                return run_in_lasting_thread(start)
            finally:
                self._close_fds()
        if self.report.level == "process":
            return start()
        terminals = [Path(f"/proc/self/fd/{fd}") for fd in pass_fds if os.isatty(fd)]
        devices = [Path("/dev", name) for name in _DEVICES]
        writable = [*self.writable, self.temp_dir, *devices, *terminals]
        network = self.sandbox.network
        ruleset = landlock.make_ruleset([str(one) for one in writable], network=network)
        try:
            return run_in_restricted_thread(lambda: restrict(ruleset, network=network), start)
        finally:
            os.close(ruleset)

    # --- environment and command line

    def _environment(self) -> Iterator[tuple[str, str]]:
        names = {*_INHERITED, *self.sandbox.inherit_env}
        if sys.platform == "win32":
            names.update(_INHERITED_ON_WINDOWS)
        names.update(name for name in os.environ if name.startswith("LC_"))
        own = {"TMPDIR": str(self.temp_dir), "PWD": self.cwd}
        if sys.platform == "win32":
            own |= {"TEMP": str(self.temp_dir), "TMP": str(self.temp_dir)}
        inherited = {name: os.environ[name] for name in names if name in os.environ}
        for name, value in {**inherited, **own, **self.sandbox.env}.items():
            if not value.startswith("()"):  # a function for some shells
                yield name, value
        yield MARKER, self.marker

    def _resolved(self, argv: Sequence[str]) -> list[str]:
        """Return the command with the path of the program; a prologue could not report an error."""
        if not argv:
            raise UserValueError("argv is empty. Pass the program and its arguments.")
        program = argv[0]
        if os.path.dirname(program):  # noqa: PTH120 - a path or a name, as text
            found = shutil.which(Path(self.cwd, program))
        else:
            found = shutil.which(program, path=self.environment.get("PATH", os.defpath))
        if found is None:
            raise UserValueError(
                f"The program {program!r} was not found or is not executable. Install it, or pass "
                "its path."
            )
        return [os.path.join(self.cwd, found), *argv[1:]]  # noqa: PTH118 - without resolving links

    # --- bubblewrap

    def _wrap(self, roots: Sequence[Root], protected: Sequence[str]) -> None:
        program, _ = bubblewrap.find(os.environ.get("PATH", os.defpath), self.writable)
        if program is None:
            raise UserValueError("The program bwrap was not found. Install bubblewrap again.")
        self.hidden_temp.mkdir(mode=0o700)
        self.hidden_temp.chmod(0o1777)
        descriptors = bubblewrap.takes_descriptors(program)
        self._protection = Protection(roots, protected, descriptors=descriptors)
        self.undo.callback(self._protection.close)
        self._fds = list(self._protection.fds)
        if said := self._protection.says:
            self.report = dataclasses.replace(self.report, says=f"{self.report.says} {said}")
        filter_fd = self._filter()
        self.argv = bubblewrap.command(
            program,
            self.argv,
            [*self._mounts(), *self._protection.mounts],
            cwd=self.cwd,
            network=self.sandbox.network,
            seccomp=filter_fd,
        )

    def _mounts(self) -> list[Mount]:
        """Return the view of files, from the root down."""
        found = {"/": Mount("/", "/")}
        for path in _TEMPORARY:
            if Path(path).is_dir() and not Path(path).is_symlink():
                found[path] = Mount(path, str(self.hidden_temp), writable=True)
        for prefix in map(
            Path, (sys.prefix, sys.base_prefix)
        ):  # a Python installation in a hidden directory
            if _beneath(prefix, _TEMPORARY) and not _beneath(prefix, self.writable):
                found[str(prefix)] = Mount(str(prefix), str(prefix))
        for path in map(str, (*self.writable, self.temp_dir)):
            kept = self._protection is not None and path in self._protection.read_only
            found[path] = Mount(path, path, writable=not kept)
        return sorted(found.values(), key=lambda mount: len(Path(mount.target).parts))

    def _filter(self) -> int | None:
        """Return a filter for sockets that a network namespace does not confine."""
        if self.sandbox.network or not seccomp.supported():
            return None
        fd = os.memfd_create("seccomp")
        self._fds.append(fd)
        self.undo.callback(self._close_fds)
        os.write(fd, seccomp.filter_calls(families=seccomp.NAMESPACED, own_limits=False))
        os.lseek(fd, 0, os.SEEK_SET)
        return fd

    def _close_fds(self) -> None:
        """Close the descriptors that bubblewrap has inherited."""
        own = set(self._protection.fds) if self._protection is not None else set[int]()
        if self._protection is not None:
            self._protection.close_fds()
        fds, self._fds = self._fds, []
        for fd in fds:
            if fd not in own:
                os.close(fd)


def _existing(paths: Sequence[_Path]) -> Iterator[Path]:
    for one in paths:
        path = Path(one).expanduser()
        if not path.exists():
            raise UserValueError(
                f"Sandbox(writable=...): the path {str(one)!r} does not exist. Create it first."
            )
        yield path.resolve()


def _prologue(limits: Limits) -> list[str]:
    """Return the shell command that sets the limits and then runs the program."""
    if not Path(_SHELL).exists():
        return []
    lines = [f"{{ {line}; }} || exit 126" for line in _limit_lines(limits)]
    return [_SHELL, "-c", "\n".join([*lines, "unset OLDPWD SHLVL", 'exec "$@"']), "sh"]


def _limit_lines(limits: Limits) -> Iterator[str]:
    import resource

    block = 1024 if sys.platform == "darwin" else 512
    if (seconds := _within_hard(limits.cpu_seconds, resource.RLIMIT_CPU)) is not None:
        later = _within_hard(seconds + 1, resource.RLIMIT_CPU)
        yield f"ulimit -S -t {seconds} && ulimit -H -t {later}"  # SIGXCPU, then SIGKILL
    if (size := _within_hard(limits.memory, resource.RLIMIT_AS)) is not None:
        yield f"ulimit -v {max(1, size // 1024)}"
    if (size := _within_hard(limits.file_size, resource.RLIMIT_FSIZE)) is not None:
        yield f"ulimit -f {max(1, size // block)}"
    if (count := _within_hard(limits.processes, resource.RLIMIT_NPROC)) is not None:
        yield f"ulimit -u {count} 2>/dev/null || ulimit -p {count}"  # bash, and then dash
    if (count := _within_hard(limits.open_files, resource.RLIMIT_NOFILE)) is not None:
        yield f"ulimit -n {count}"


def _within_hard(value: int | None, which: int) -> int | None:
    """Return a limit, reduced to the current hard limit."""
    import resource

    if value is None:
        return None
    hard = resource.getrlimit(which)[1]
    return value if hard == resource.RLIM_INFINITY else min(value, hard)


def _remove(directory: Path) -> None:
    processes.remove_directory(directory)
    processes.cancel_removal(directory)
