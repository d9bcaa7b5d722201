"""One bash process that runs consecutive commands, and its connections.

Commands have their own terminal as standard input and a pipe for their output. With the terminal,
programs read input line by line, ask for passwords (`/dev/tty`), and react to C-c, C-d and C-z;
bash has job control. With the pipe, lines are not wrapped to the screen, no pager starts, most
programs omit colours and progress bars, and when bash reports the end of a command, all its output
can be read. Bash reads its commands from a private pipe and reports their ends on another.
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

from agents_tools.builtin.paths import DEFAULT_PROTECTED
from agents_tools.builtin.terminal.input_wait import waits_for_input
from agents_tools.builtin.terminal.output import TerminalOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from agents_tools.builtin.sandbox import Sandbox, SandboxedProcess
    from agents_tools.builtin.terminal.output import OutputFiles

__all__ = ["CommandReport", "SessionOptions", "ShellSession"]

_START_WITHIN = 10.0
_HIGHEST = 256
_LEAVE_WITHIN = 0.5
_AGAIN = 0.25
_CHUNK = 1 << 16
_BEGIN, _END, _FIELDS = b"\0\0", b".", 6
"""A report: its start, its last field, and the number of fields. C-c can truncate a report."""
_OWN = "PWD OLDPWD SHLVL TMPDIR AGENTS_TOOLS_PROCESS"
"""Variables that each session sets itself."""
_BASH = ("bash", "--norc", "--noprofile")
_ROWS, _COLUMNS = 50, 200
_SESSION_OF: int = getattr(termios, "TIOCGSID", 0x5429)
"""The ioctl for the session of a terminal, on Linux."""

_ENVIRONMENT = {
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "PAGER": "cat",
    "PYTHONUNBUFFERED": "1",  # show the output of a script before it ends
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
"""Makes the terminal the controlling one, which a session leader does by opening it, and starts
the persistent bash. Under bubblewrap, another process leads, so a new session is created."""

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
  }} >&{status} || return
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
"""Disables echo and history, and defines the function that reports the end of a command."""


@dataclass(frozen=True, slots=True)
class CommandReport:
    """The result of a command.

    Attributes:
        status: Its exit status.
        cwd: The working directory of the shell.
        flags: The options of the shell, `$-`.
        jobs: The running or stopped background jobs, one line each.
    """

    status: int
    cwd: str
    flags: str = ""
    jobs: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOptions:
    """The settings of a new session.

    Attributes:
        sandbox: The sandbox.
        working_dir: The workspace.
        cwd: The initial directory; the workspace if it does not exist.
        exports: Commands that restore the environment variables of the previous session.
        protected: Names that commands cannot change.
    """

    sandbox: Sandbox
    working_dir: Path
    cwd: str | None = None
    exports: str = ""
    protected: tuple[str, ...] = DEFAULT_PROTECTED


class ShellSession:
    """A bash session, started by the constructor.

    Only the thread that holds `lock` can use it; any thread can call `wake`.

    Args:
        start: The settings.
        files: Stores large outputs.

    Attributes:
        cwd: The last reported working directory.
        command: The latest command.
        report: The report of the latest command; `None` while it runs.
        ended: Whether bash has ended.
        last_output: The time of the last output, as `time.monotonic()`.
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

    # --- interface

    @property
    def handle(self) -> SandboxedProcess:
        """The process."""
        return self._handle

    @property
    def running(self) -> bool:
        """Return whether a command is running."""
        return self.report is None and not self.ended

    @property
    def takes_lines(self) -> bool:
        """Return whether the terminal is in line mode."""
        return bool(termios.tcgetattr(self._terminal)[3] & termios.ICANON)

    def run(self, command: str) -> None:
        """Start a command.

        Args:
            command: The input of bash, without NUL.
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
        report_line = self._report_line()
        quoted = (prefix + command).replace("'", "'\\''")
        tty, status = self._numbers
        line = f"\\builtin eval '{quoted}' <&{tty} {tty}<&- {status}>&-;"
        self._reset_terminal()
        self._send(line.encode("utf-8", "surrogateescape") + report_line + b"\n" + report_line)

    def type(self, data: bytes) -> None:
        """Send input to the running command."""
        self._typed.append(memoryview(data))
        self._selector.modify(self._terminal, selectors.EVENT_READ | selectors.EVENT_WRITE)

    def step(self, timeout: float, on_output: Callable[[bytes], None] | None = None) -> None:
        """Wait for the next event and process it.

        Args:
            timeout: The maximum seconds to wait.
            on_output: Called with new output.
        """
        events = self._selector.select(max(0.0, timeout))
        reported = False
        for key, mask in events:
            if key.fd == self._out:
                self._read(self._out, on_output)
            elif key.fd == self._terminal:
                self._with_terminal(mask, on_output)
            elif key.fd == self._status:
                reported = self._read_reports()
            elif key.fd == self._commands:
                self._write(self._commands, self._script)
            elif key.fd == self._wake_read:
                with contextlib.suppress(BlockingIOError):
                    os.read(self._wake_read, _CHUNK)
            else:
                self.ended = True
        if not events and self.handle.process.poll() is not None:
            self.ended = True
        if reported or self.ended:
            self._drain(on_output)

    def wake(self) -> None:
        """Wake `step` in another thread."""
        with contextlib.suppress(OSError):
            os.write(self._wake_write, b"\0")

    def foreground(self) -> int | None:
        """Return the foreground process group; `None` if it is that of the shell."""
        with contextlib.suppress(OSError):
            group = os.tcgetpgrp(self._terminal)
            if group > 1 and group != self.shell:
                return group
        return None

    def signal(self, number: int) -> None:
        """Send a signal to the running command, or SIGINT to the shell if it runs a builtin."""
        group = self.foreground()
        with contextlib.suppress(OSError):
            if group is not None:
                os.killpg(group, number)
                os.killpg(group, signal.SIGCONT)
            else:
                os.kill(self.shell, signal.SIGINT)
                self._send(
                    b"\n" + self._report_line()
                )  # bash discards the part of the line read so far

    def left(self) -> tuple[str | None, str]:
        """Return the last directory and exported variables of an ended bash, as far as known."""
        try:
            data = self._last.read_text("utf-8", "surrogateescape")
        except OSError:
            return None, ""
        cwd, _, exports = data.partition("\0")
        return cwd, exports

    def close(self) -> None:
        """Terminate bash and all processes that it has started."""
        with self.lock:
            self.ended = True
            self._undo.close()

    def settle(self, within: float) -> bool:
        """Wait until bash reads commands again, after a signal that can arrive after the command.

        Args:
            within: The maximum seconds to wait.

        Returns:
            Whether bash is ready.
        """
        before = self.report
        self._token += 1
        self.report = None
        latest = time.monotonic() + within
        while self.running and time.monotonic() < latest:
            self._send(b"\n" + self._report_line())  # again if a late signal discarded it
            again = time.monotonic() + _AGAIN
            while self.running and time.monotonic() < again:
                self.step(again - time.monotonic())
        settled = self.report is not None
        self.report = before
        return settled

    def waits_for_input(self) -> bool:
        """Return whether the running command waits for input."""
        return not self._typed and waits_for_input(self.shell, self.foreground(), self._device)

    def outputs(self) -> list[int]:
        """Return the descriptors of the output, or none if there is too much output."""
        if self.ended or self.output.full:
            return []
        watched = self._selector.get_map()
        return [fd for fd in (self._out, self._terminal) if fd in watched]

    def absorb(self, fd: int) -> None:
        """Read available output from a descriptor."""
        self._read(fd, None)

    # --- start

    def _connect(self, start: SessionOptions, files: OutputFiles) -> None:
        bash_ends = self._undo.enter_context(contextlib.ExitStack())
        self._terminal, slave = os.openpty()
        self._later_close(self._terminal)
        bash_ends.callback(os.close, slave)
        _prepare(slave)
        self._device = os.fstat(slave).st_rdev
        self._modes = termios.tcgetattr(slave)
        script, self._commands = self._pipe(bash_ends, writing=True)
        out, self._out = self._pipe(bash_ends, writing=False)
        status, self._status = self._pipe(bash_ends, writing=False)
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
        bash_ends.close()
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

    def _pipe(self, bash_ends: contextlib.ExitStack, *, writing: bool) -> tuple[int, int]:
        """Create a pipe, and return the end for bash and the end for this process."""
        read, write = os.pipe()
        bash, own = (read, write) if writing else (write, read)
        bash_ends.callback(os.close, bash)
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
            output = self.output.take(500).text.strip()
            raise OSError(f"bash did not start{f': {output}' if output else ''}")
        self.output.take(0)
        self.shell = self._leader()

    def _leader(self) -> int:
        """Return the bash process, which leads the session of the terminal."""
        with contextlib.suppress(OSError):
            given = fcntl.ioctl(self._terminal, _SESSION_OF, b"\0\0\0\0")
            leader: int = struct.unpack("i", given)[0]
            if leader > 0:
                return leader
        return self.handle.pid

    # --- termination

    def _end(self) -> None:
        """Close the input of bash, so that its EXIT trap runs, and end all other processes."""
        self.output.close()
        process = self.handle.process
        if process.poll() is None and self.report is not None:
            # Bash reads the end of its input; the descriptor stays in use until all are closed.
            os.dup2(self._wake_read, self._commands, inheritable=False)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(_LEAVE_WITHIN)
        if process.poll() is None:
            with contextlib.suppress(OSError):
                os.kill(self.shell, signal.SIGHUP)  # an interactive bash ignores SIGTERM
        self.handle.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(_LEAVE_WITHIN)
        with contextlib.suppress(OSError):
            self._last.unlink()

    # --- events

    def _report_line(self) -> bytes:
        """Return the line with which bash reports the end of the latest command once.

        The line is sent twice, since bash discards the rest of a line after an unbound variable or
        C-c. An empty line is between, since after an open quote bash discards the next word too.

        Bash exits if it cannot report: after `ulimit -n` it cannot restore the descriptor. No end
        of the line is a command that exits.
        """
        report = f"{{ __agents_tools $? {self._token}; }} >/dev/null 2>&1"
        return f"if ! {report}; then \\builtin exit; fi\n".encode()

    def _send(self, data: bytes) -> None:
        self._script.append(memoryview(data))
        self._write(self._commands, self._script)

    def _write(self, fd: int, waiting: deque[memoryview]) -> None:
        """Write as much as possible now, and the rest later."""
        try:
            while waiting:
                written = os.write(fd, waiting[0])
                waiting[0] = waiting[0][written:]
                if not waiting[0]:
                    waiting.popleft()
        except BlockingIOError:
            pass
        except OSError:  # bash has ended: `ended` will report it
            waiting.clear()
        if fd == self._commands:
            self._watch_commands(bool(waiting))
        elif not waiting:
            self._selector.modify(fd, selectors.EVENT_READ)

    def _reset_terminal(self) -> None:
        """Discard input that no program has read, and restore the modes that a program changed."""
        self._typed.clear()
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self._terminal, termios.TCSAFLUSH, self._modes)

    def _watch_commands(self, wanted: bool) -> None:
        watched = self._commands in self._selector.get_map()
        if wanted and not watched:
            self._selector.register(self._commands, selectors.EVENT_WRITE)
        elif watched and not wanted:
            self._selector.unregister(self._commands)

    def _with_terminal(self, mask: int, on_output: Callable[[bytes], None] | None) -> None:
        if mask & selectors.EVENT_WRITE:
            self._write(self._terminal, self._typed)
        if mask & selectors.EVENT_READ:
            self._read(self._terminal, on_output)

    def _read(self, fd: int, on_output: Callable[[bytes], None] | None) -> int:
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return 0
        except OSError:  # no process has the terminal open anymore
            data = b""
        if not data:
            with contextlib.suppress(KeyError):
                self._selector.unregister(fd)
            return 0
        self.last_output = time.monotonic()
        self.output.add(data)
        if on_output is not None:
            on_output(data)
        return len(data)

    def _drain(self, on_output: Callable[[bytes], None] | None) -> None:
        """Read the output up to the end of the command only; background jobs can add more."""
        for fd in (self._out, self._terminal):
            waiting = _waiting(fd)
            while waiting > 0 and (count := self._read(fd, on_output)):
                waiting -= count

    def _read_reports(self) -> bool:
        """Read reports, and return whether one is for the running command."""
        with contextlib.suppress(BlockingIOError):
            data = os.read(self._status, _CHUNK)
            if not data:
                self._selector.unregister(self._status)
            self._reports += data
        begun = self._reports.split(_BEGIN)
        reported = False
        for one in begun:
            fields = one.lstrip(b"\0").split(b"\0")
            if len(fields) == _FIELDS and fields[-1] == _END:
                reported = self._take(fields[:-1]) or reported
        last = begun[-1]
        self._reports = b"" if last.endswith(b"\0" + _END) else _BEGIN + last
        return reported

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
        return True


def _prepare(slave: int) -> None:
    """Set a terminal to line mode without echo and translation."""
    modes = termios.tcgetattr(slave)
    modes[0] = termios.ICRNL
    modes[1] &= ~termios.OPOST
    modes[3] = termios.ISIG | termios.ICANON | termios.IEXTEN
    termios.tcsetattr(slave, termios.TCSANOW, modes)
    size = struct.pack("HHHH", _ROWS, _COLUMNS, 0, 0)
    fcntl.ioctl(slave, termios.TIOCSWINSZ, size)


def _numbers(limit: int | None, taken: Sequence[int]) -> tuple[int, int]:
    """Return two free high descriptor numbers for bash; commands use low ones."""
    allowed = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    highest = min(one for one in (_HIGHEST, limit, allowed) if one is not None and one > 0)
    near = {one + more for one in taken for more in (0, 1)}  # bash also closes the next one
    first, second = [one for one in range(highest - 2, highest - 9, -1) if one not in near][:2]
    return first, second


def _waiting(fd: int) -> int:
    """Return the number of bytes that can be read now."""
    try:
        given = fcntl.ioctl(fd, termios.FIONREAD, b"\0\0\0\0")
    except OSError:
        return 0
    count: int = struct.unpack("i", given)[0]
    return count


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def _umask() -> int:
    """Return the umask of this process."""
    with contextlib.suppress(OSError, IndexError, ValueError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
