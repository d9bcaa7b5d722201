"""One bash that runs command after command, and what it is connected by.

Commands get a terminal of their own as standard input and a pipe for what they write. By the
terminal, programs take input line by line, ask for passwords (`/dev/tty`), and are reached by C-c,
C-d and C-z; bash has job control, as for a person. By the pipe, nothing is cut to the width of a
screen, no pager starts, most programs leave out colours and progress bars, and when bash says that
a command has ended, all that it has written is there to be read. Bash itself reads what it is to
do from a pipe that commands do not have, and says on another how they ended.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import resource
import selectors
import signal
import struct
import subprocess
import termios
import threading
import time
from collections import deque
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from agents_tools.builtin._paths import DEFAULT_PROTECTED
from agents_tools.builtin.terminal._input_wait import waits_for_input
from agents_tools.builtin.terminal._output import TerminalOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.builtin.sandbox import Sandbox, SandboxedProcess
    from agents_tools.builtin.terminal._output import OutputFiles

__all__ = ["CommandReport", "SessionOptions", "ShellSession"]

_START_WITHIN = 10.0
_HIGHEST = 256
_LEAVE_WITHIN = 0.5
_AGAIN = 0.25
_CHUNK = 1 << 16
_BEGIN, _END, _FIELDS = b"\0\0", b".", 6
"""A report: what it begins with, its last field, and how many there are. C-c may cut one short."""
_OWN = "PWD OLDPWD SHLVL TMPDIR AGENTS_TOOLS_PROCESS"
"""Variables that each session has anew."""
_BASH = ("bash", "--norc", "--noprofile")
_ROWS, _COLUMNS = 50, 200
_SESSION_OF: int = getattr(termios, "TIOCGSID", 0x5429)
"""Asks a terminal for its session; the number is that of Linux."""

_ENVIRONMENT = {
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "PYTHONUNBUFFERED": "1",  # what a script prints is seen before it ends
    "SYSTEMD_PAGER": "cat",
    "TERM": "dumb",
}

_BOOT = """\
{{ : <"$3"; }} 2>/dev/null
if [ -n "$4" ] && ! {{ : </dev/tty; }} 2>/dev/null; then
  {{ read -r _ _ _ _ group _ </proc/self/stat; }} 2>/dev/null
  if [ "$group" != $$ ] && command -v setsid >/dev/null; then
    exec setsid "$BASH" --norc --noprofile -c "$4" bash "$1" "$2" "$3" ''
  fi
fi
exec 2>&"$1" {tty}<&"$1" {status}>&"$2" || exit 126
eval "exec $1<&- $2>&-"
PS1= PS2= exec "$BASH" --norc --noprofile --noediting -i
"""
"""Makes the terminal that of the session, which the leader of one does by opening it, and starts
the bash that stays. Under bubblewrap, the leader is another process, hence a session is made."""

_SETUP = """\
export -n PS1 PS2
PS4='+ '
exec 2>&1
set +o history +H
unset HISTFILE MAILCHECK TMOUT
umask {umask}
__agents_tools() {{
  [[ $__agents_tools_last == "$2" ]] && return
  PS1= PS2=
  {{
    builtin printf '\\0\\0%s\\0%s\\0%s\\0%s\\0:' "$2" "$1" "$PWD" "$-"
    builtin jobs -l
    builtin printf '\\0.'
  }} >&{status}
  __agents_tools_last=$2
  case $- in *[xv]*) builtin set +xv ;; esac
}}
__agents_tools_status() {{ return "$1"; }}
__agents_tools_left() {{
  builtin printf '%s\\0' "$PWD"
  builtin export -n {own}
  builtin export -p
}}
trap '__agents_tools_left >|{last} 2>/dev/null' EXIT
"""
"""No echo of what is typed, no history, and the function that says how a command has ended."""


@dataclass(frozen=True, slots=True)
class CommandReport:
    """How a command has ended.

    Attributes:
        status: Its exit status.
        cwd: Where the shell is now.
        flags: The options of the shell, `$-`.
        jobs: The background jobs that run or are stopped, a line each.
    """

    status: int
    cwd: str
    flags: str = ""
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """What a session begins with.

    Attributes:
        sandbox: How it is confined.
        working_dir: The workspace.
        cwd: Where it begins; the workspace if that is not there.
        exports: Commands that set variables of the environment, from the session before.
        protected: Names that commands may not change.
    """

    sandbox: Sandbox
    working_dir: Path
    cwd: str | None = None
    exports: str = ""
    protected: tuple[str, ...] = DEFAULT_PROTECTED


class ShellSession:
    """A bash, started at once.

    All of it is used by one thread at a time, whoever holds `lock`; `wake` may be called by any.

    Args:
        start: What it begins with.
        files: Where large outputs are kept.

    Attributes:
        cwd: Where bash was when it last said so.
        command: The latest command.
        report: How the latest command has ended; `None` while it runs.
        ended: Whether bash has ended.
        last_output: When something was written last, on the clock of `time.monotonic()`.
    """

    def __init__(self, start: SessionOptions, files: OutputFiles) -> None:
        self.lock = threading.RLock()
        self.output = TerminalOutput(files)
        self.report: CommandReport | None = None
        self.ended = False
        self.last_output = 0.0
        self.cwd = str(start.working_dir)
        self.command = ""
        self._token = 0
        self._reports = b""
        self._script: deque[memoryview] = deque()
        self._typed: deque[memoryview] = deque()
        self._undo = contextlib.ExitStack()
        self._last = files.path / f".last-{time.monotonic_ns()}"
        self._selector = selectors.DefaultSelector()
        with contextlib.ExitStack() as undo:
            self._undo = undo
            undo.callback(self._selector.close)
            self._connect(start, files)
            self._set_up(start)
            self._undo = undo.pop_all()

    # --- what is asked of it

    @property
    def handle(self) -> SandboxedProcess:
        """The process."""
        return self._handle

    @property
    def running(self) -> bool:
        """Return whether a command has not ended."""
        return self.report is None and not self.ended

    @property
    def takes_lines(self) -> bool:
        """Return whether the terminal hands over whole lines, and not each key at once."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ICANON)

    def run(self, command: str) -> None:
        """Begin with a command.

        Args:
            command: What bash reads; without NUL.
        """
        before = self.report
        prefix = ""
        if before is not None:
            if traced := "".join(one for one in "xv" if one in before.flags):
                prefix = f"\\builtin set -{traced};"
            elif before.status and "$?" in command and "e" not in before.flags:
                prefix = f"__agents_tools_status {before.status};"
        self._token += 1
        self.report = None
        self.command = command
        said = self._say_ended()
        quoted = (prefix + command).replace("'", "'\\''")
        tty, told = self._numbers
        line = f"\\builtin eval '{quoted}' <&{tty} {tty}<&- {told}>&-;"
        self._typed.clear()
        self._send(line.encode("utf-8", "surrogateescape") + said + b"\n" + said)

    def type(self, data: bytes) -> None:
        """Send input to what runs."""
        self._typed.append(memoryview(data))
        self._selector.modify(self._terminal, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def step(self, timeout: float, heard: Callable[[bytes], None] | None = None) -> None:
        """Wait until something happens, and deal with it.

        Args:
            timeout: The most seconds to wait.
            heard: Called with what was written.
        """
        events = self._selector.select(max(0.0, timeout))
        told = False
        for key, mask in events:
            if key.fd == self._out:
                self._read(self._out, heard)
            elif key.fd == self._terminal:
                self._with_terminal(mask, heard)
            elif key.fd == self._status:
                told = self._hear()
            elif key.fd == self._commands:
                self._write(self._commands, self._script)
            elif key.fd == self._wake_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, _CHUNK)
            else:
                self.ended = True
        if not events and self.handle.process.poll() is not None:
            self.ended = True
        if told or self.ended:
            self._drain(heard)

    def wake(self) -> None:
        """End the waiting of `step` in another thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"\0")

    def foreground(self) -> int | None:
        """Return the process group that has the terminal; `None` where it is the shell's own."""
        with contextlib.suppress(OSError):
            group = os.tcgetpgrp(self._terminal)
            if group > 1 and group != self.shell:
                return group
        return None

    def signal(self, number: int) -> None:
        """Send a signal to the command that runs; SIGINT to the shell if it is at work itself."""
        group = self.foreground()
        with contextlib.suppress(OSError):
            if group is not None:
                os.killpg(group, number)
                os.killpg(group, signal.SIGCONT)
            else:
                os.kill(self.shell, signal.SIGINT)
                self._send(b"\n" + self._say_ended())  # it forgets what it has read of the line

    def left(self) -> tuple[str | None, str]:
        """Return where bash was when it ended, and its exported variables, if it could say so."""
        try:
            data = self._last.read_text("utf-8", "surrogateescape")
        except OSError:
            return None, ""
        cwd, _, exports = data.partition("\0")
        return cwd, exports

    def close(self) -> None:
        """End bash and all that it has started."""
        with self.lock:
            self.ended = True
            self._undo.close()

    def settle(self, within: float) -> bool:
        """Wait until bash reads commands again, after a signal that may have come too late for one.

        Args:
            within: The most seconds to wait.

        Returns:
            Whether it does.
        """
        before = self.report
        self._token += 1
        self.report = None
        latest = time.monotonic() + within
        while self.running and time.monotonic() < latest:
            self._send(b"\n" + self._say_ended())  # again if a late signal has taken it
            again = time.monotonic() + _AGAIN
            while self.running and time.monotonic() < again:
                self.step(again - time.monotonic())
        settled = self.report is not None
        self.report = before
        return settled

    def waits_for_input(self) -> bool:
        """Return whether what runs waits for something to be typed."""
        return not self._typed and waits_for_input(self.shell, self.foreground(), self._device)

    def outputs(self) -> list[int]:
        """Return the descriptors that output comes by, unless there is too much of it."""
        if self.ended or self.output.full:
            return []
        watched = self._selector.get_map()
        return [fd for fd in (self._out, self._terminal) if fd in watched]

    def absorb(self, fd: int) -> None:
        """Read what has come by a descriptor."""
        self._read(fd, None)

    # --- beginning

    def _connect(self, start: SessionOptions, files: OutputFiles) -> None:
        theirs = self._undo.enter_context(contextlib.ExitStack())
        self._terminal, slave = os.openpty()
        self._later_close(self._terminal)
        theirs.callback(os.close, slave)
        _prepare(slave)
        self._device = os.fstat(slave).st_rdev
        self._modes = termios.tcgetattr(slave)
        script, self._commands = self._pipe(theirs, writing=True)
        out, self._out = self._pipe(theirs, writing=False)
        status, self._status = self._pipe(theirs, writing=False)
        self._wake_read, self._wake_write = os.pipe()
        self._later_close(self._wake_read)
        self._later_close(self._wake_write)
        self._numbers = _numbers(start.sandbox.limits.open_files, (slave, status))
        boot = _BOOT.format(tty=self._numbers[0], status=self._numbers[1])
        name = f"/proc/self/fd/{slave}" if Path("/proc/self/fd").exists() else os.ttyname(slave)
        sandbox = dataclasses.replace(
            start.sandbox,
            env={**_ENVIRONMENT, **start.sandbox.env},
            writable=(*start.sandbox.writable, files.path),
        )
        self._handle = sandbox.start(
            [*_BASH, "-c", boot, "bash", str(slave), str(status), name, boot],
            workspace=[start.working_dir],
            stdin=script,
            stdout=out,
            stderr=subprocess.STDOUT,
            pass_fds=(slave, status),
            protected=start.protected,
        )
        self._undo.callback(self._end)
        theirs.close()
        self.shell = self.handle.pid
        for fd in (self._out, self._status, self._terminal, self._commands, self._wake_read):
            os.set_blocking(fd, False)
        for fd in (self._out, self._status, self._terminal, self._wake_read):
            self._selector.register(fd, selectors.EVENT_READ)
        if hasattr(os, "pidfd_open"):
            with contextlib.suppress(OSError):
                pidfd = os.pidfd_open(self.handle.pid)
                self._later_close(pidfd)
                self._selector.register(pidfd, selectors.EVENT_READ)

    def _pipe(self, theirs: contextlib.ExitStack, *, writing: bool) -> tuple[int, int]:
        """Make a pipe; gives the end for bash, and the one for this process."""
        read, write = os.pipe()
        bash, own = (read, write) if writing else (write, read)
        theirs.callback(os.close, bash)
        self._later_close(own)
        return bash, own

    def _later_close(self, fd: int) -> None:
        self._undo.callback(os.close, fd)

    def _set_up(self, start: SessionOptions) -> None:
        setup = _SETUP.format(
            umask=f"{_umask():03o}",
            last=_quoted(str(self._last)),
            own=_OWN,
            status=self._numbers[1],
        )
        lines = [setup]
        if start.exports:
            lines.append(f"\\builtin eval {_quoted(start.exports)} 2>/dev/null\n")
        if start.cwd is not None:
            lines.append(f"{{ \\builtin cd -- {_quoted(start.cwd)}; }} 2>/dev/null\n")
        lines.append("__agents_tools 0 0\n")
        self._send("".join(lines).encode("utf-8", "surrogateescape"))
        latest = time.monotonic() + _START_WITHIN
        while self.running and time.monotonic() < latest:
            self.step(0.1)
        if self.report is None:
            said = self.output.take(500).text.strip()
            raise OSError(f"bash has not started{f': {said}' if said else ''}")
        self.output.take(0)
        self.shell = self._leader()

    def _leader(self) -> int:
        """Return the process that leads the session of the terminal: bash."""
        with contextlib.suppress(OSError):
            given = fcntl.ioctl(self._terminal, _SESSION_OF, b"\0\0\0\0")
            leader: int = struct.unpack("i", given)[0]
            if leader > 0:
                return leader
        return self.handle.pid

    # --- the end

    def _end(self) -> None:
        """End bash by the end of its input, so that its `trap … EXIT` runs, and the others."""
        self.output.close()
        process = self.handle.process
        if process.poll() is None and self.report is not None:
            # The end of what bash reads; the number stays taken until all are closed.
            os.dup2(self._wake_read, self._commands, inheritable=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE_WITHIN)
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.kill(self.shell, signal.SIGHUP)  # a bash like this one ignores SIGTERM
        self.handle.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_WITHIN)
        with contextlib.suppress(OSError):
            self._last.unlink()

    # --- what happens

    def _say_ended(self) -> bytes:
        """Return the line by which bash says how the latest command has ended, the first time only.

        It comes twice: bash forgets the rest of a line when a variable is unbound or C-c comes. An
        empty line is between, as after an open quote bash also forgets the first word of a line.
        """
        return f"{{ __agents_tools $? {self._token}; }} >/dev/null 2>&1\n".encode()

    def _send(self, data: bytes) -> None:
        self._script.append(memoryview(data))
        self._write(self._commands, self._script)

    def _write(self, fd: int, waiting: deque[memoryview]) -> None:
        """Write as much as there is room for; the rest when there is more."""
        try:
            while waiting:
                written = os.write(fd, waiting[0])
                waiting[0] = waiting[0][written:]
                if not waiting[0]:
                    waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:  # bash is gone: `ended` will say so
            waiting.clear()
        if fd == self._commands:
            self._watch_commands(bool(waiting))
        elif not waiting:
            self._selector.modify(fd, selectors.EVENT_READ)

    def _watch_commands(self, wanted: bool) -> None:
        watched = self._commands in self._selector.get_map()
        if wanted and not watched:
            self._selector.register(self._commands, selectors.EVENT_WRITE)
        elif watched and not wanted:
            self._selector.unregister(self._commands)

    def _with_terminal(self, mask: int, heard: Callable[[bytes], None] | None) -> None:
        if mask & selectors.EVENT_WRITE:
            self._write(self._terminal, self._typed)
        if mask & selectors.EVENT_READ:
            self._read(self._terminal, heard)

    def _read(self, fd: int, heard: Callable[[bytes], None] | None) -> int:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:  # nobody has the terminal any more
            data = b""
        if not data:
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
            return 0
        self.last_output = time.monotonic()
        self.output.add(data)
        if heard is not None:
            heard(data)
        return len(data)

    def _drain(self, heard: Callable[[bytes], None] | None) -> None:
        """Read what was there when the command ended, and no more: others may continue writing."""
        for fd in (self._out, self._terminal):
            waiting = _waiting(fd)
            while waiting > 0 and (count := self._read(fd, heard)):
                waiting -= count

    def _hear(self) -> bool:
        """Read reports; gives whether one is about the command that runs."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._status, _CHUNK)
            if not data:
                self._selector.unregister(self._status)
            self._reports += data
        begun = self._reports.split(_BEGIN)
        told = False
        for one in begun:
            fields = one.lstrip(b"\0").split(b"\0")
            if len(fields) == _FIELDS and fields[-1] == _END:
                told = self._take(fields[:-1]) or told
        last = begun[-1]
        self._reports = b"" if last.endswith(b"\0" + _END) else _BEGIN + last
        return told

    def _take(self, fields: list[bytes]) -> bool:
        token, status, cwd, flags, jobs = (
            part.decode("utf-8", "surrogateescape") for part in fields
        )
        if token != str(self._token) or not status.isdecimal():
            return False
        lines = tuple(" ".join(line.split()) for line in jobs[1:].splitlines())
        lines = tuple(one for one in lines if " Running " in one or " Stopped" in one)
        self.report = CommandReport(int(status), cwd, flags, lines)
        self.cwd = cwd
        if termios.tcgetattr(self._terminal) != self._modes:  # a program was ended in the middle
            with contextlib.suppress(termios.error):
                termios.tcsetattr(self._terminal, termios.TCSANOW, self._modes)
        return True


def _prepare(slave: int) -> None:
    """Make a terminal hand on what is typed as it is, by lines, and without an echo."""
    modes = termios.tcgetattr(slave)
    modes[0] = termios.ICRNL
    modes[1] &= ~termios.OPOST
    modes[3] = termios.ISIG | termios.ICANON | termios.IEXTEN
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    size = struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, size)


def _numbers(limit: int | None, taken: Sequence[int]) -> tuple[int, int]:
    """Return two free numbers for descriptors of bash, high ones, as commands use the low ones."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = min(one for one in (_HIGHEST, limit, allowed) if one is not None and one > 0)
    near = {one + more for one in taken for more in (0, 1)}  # bash loses the next one on closing
    first, second = [one for one in range(highest - 2, highest - 9, -1) if one not in near][:2]
    return first, second


def _waiting(fd: int) -> int:
    """Return how many bytes can be read at once."""
    try:
        given = fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    count: int = struct.unpack("i", given)[0]
    return count


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _umask() -> int:
    """Return the permissions that new files do not get: those of this process."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
