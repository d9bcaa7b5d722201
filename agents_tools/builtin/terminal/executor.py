"""The executor of the terminal tool, which has a persistent session."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.builtin.paths import DEFAULT_PROTECTED
from agents_tools.builtin.sandbox import Limits, Sandbox, sandbox_report
from agents_tools.builtin.terminal import drain
from agents_tools.builtin.terminal.keys import key_named, typed
from agents_tools.builtin.terminal.live_output import LiveOutput
from agents_tools.builtin.terminal.models import TerminalAction, TerminalObservation
from agents_tools.builtin.terminal.output import OutputExcerpt, OutputFiles
from agents_tools.builtin.terminal.session_queue import SessionQueue, SessionTurn
from agents_tools.classes.definition import ToolExecutor
from agents_tools.errors import ToolCancelledError, ToolError, UserValueError
from agents_tools.tool.context import current_context

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from agents_tools.builtin.terminal.session import ShellSession

__all__ = ["BashExecutor", "TerminalExecutor"]

_STOPPED = 124
_INTERRUPTED = 130
_MOST_SILENCES = 10
"""The maximum duration of a call in soft timeouts, even if its command keeps writing."""
_QUIET = 0.2
_LOOK_AGAIN = 0.3
_ASK, _TELL, _FORCE = 1.0, 2.0, 3.0
"""Seconds from SIGINT until SIGTERM, until SIGKILL, and until the session is terminated."""
_AGAIN = 0.05
_MOMENT = 0.2
_AT_ONCE = 0.2
_SETTLE_WITHIN = 2.0
_OWN_NAME = re.compile(r"\bbuiltin\s*\(\s*\)|\bfunction\s+builtin\b")
_RESETTING_KEYS = {b"\x03", b"\x1a", b"\x1c"}
"""C-c, C-z and C-\\: their signal can arrive just after the end of the command."""


class TerminalExecutor(ToolExecutor[TerminalAction, TerminalObservation]):
    """Executor with a persistent bash session, which starts with the first command.

    Calls from several threads run one after the other.

    Args:
        working_dir: The initial directory, which confined commands can write; the current
            directory by default.
        sandbox: The sandbox; by default commands are not confined, get a short environment, and are
            terminated with all their children.
        env: Environment variables in addition to those of the sandbox.
        limits: The resource limits of each process, instead of those of the sandbox.
        protected: Names that commands cannot change, if the sandbox level supports that.
        timeout: The default timeout of a command in seconds; `None` for none.
        soft_timeout: Seconds without output after which a call without timeout returns while its
            command continues. It also returns after ten times this duration, or 1 GiB of output.
        max_output: The maximum number of characters of a shown output.
        max_file: The maximum total size of the files with whole outputs, in bytes.

    Raises:
        UserError: A limit is not above zero.
    """

    def __init__(
        self,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        sandbox: Sandbox | None = None,
        env: Mapping[str, str] | None = None,
        limits: Limits | None = None,
        protected: Sequence[str] = DEFAULT_PROTECTED,
        timeout: float | None = None,
        soft_timeout: float = 30.0,
        max_output: int = 30_000,
        max_file: int = 1 << 30,
    ) -> None:
        given = {"soft_timeout": soft_timeout, "max_output": max_output, "max_file": max_file}
        for name, value in (*given.items(), ("timeout", timeout)):
            if value is not None and value <= 0:
                raise UserValueError(f"TerminalExecutor({name}={value!r}) is not above zero.")
        asked = sandbox or Sandbox()
        self.sandbox = dataclasses.replace(
            asked, env={**asked.env, **(env or {})}, limits=limits or asked.limits
        )
        self.protected = tuple(protected)
        self.working_dir = Path(working_dir or ".").absolute()
        self.timeout = timeout
        self.soft_timeout = soft_timeout
        self.max_output = max_output
        self.max_file = max_file
        self._turns = SessionQueue()
        self._session: ShellSession | None = None
        self._files: OutputFiles | None = None
        self._kept: tuple[str | None, str] = (None, "")
        self._closed = False

    @property
    def level(self) -> str:
        """The sandbox level: `process`, `landlock` or `bwrap`."""
        return sandbox_report(self.sandbox).level

    def __call__(self, action: TerminalAction, conversation: object = None) -> TerminalObservation:
        """Run a command, or send input to the running one.

        Args:
            action: The command, or the input.
            conversation: Not used.

        Returns:
            The output and the exit code.

        Raises:
            ToolError: Bash is not installed or cannot be started.
            ToolCancelledError: The call was cancelled before its turn came.
        """
        del conversation
        context = current_context()
        with self._turns.take(context) as turn:
            if self._closed:
                raise ToolError("The terminal is closed.")
            if turn.cancelled:
                raise ToolCancelledError("The call was cancelled before its turn came.")
            return _TerminalCall(self, action, turn, LiveOutput(context)).run()

    def interrupt(self) -> None:
        """Stop the command of the cancelled call; outside a tool call, the running command."""
        self._turns.cancel_abandoned()

    def close(self) -> None:
        """Terminate the session and its processes, and remove the files with its outputs."""
        self._closed = True
        self._turns.cancel_all()
        with self._turns.take(None):
            self.end_session()
            files, self._files = self._files, None
            if files is not None:
                files.close()

    def __del__(self) -> None:
        """Terminate the session if the executor was not closed."""
        if getattr(self, "_files", None) is not None:
            with contextlib.suppress(Exception):
                self.close()

    # --- the session

    def session(self, notes: list[str]) -> ShellSession:
        """Return the session; start a new one if it has ended.

        Args:
            notes: Gets a note if a new session had to be started.
        """
        before = self._session
        if before is not None:
            drain.leave(before)
            if not before.ended and before.handle.process.poll() is None:
                return before
            self.lost(notes)
        return self._start(notes)

    def _start(self, notes: list[str]) -> ShellSession:
        if os.name != "posix" or shutil.which("bash") is None:
            raise ToolError(
                "bash was not found, and the terminal needs it to run commands. Install bash; on "
                "Windows, use WSL."
            )
        from agents_tools.builtin.terminal.session import SessionOptions, ShellSession

        if self._files is None:
            self._files = OutputFiles(self.max_file)
        cwd, exports = self._kept
        start = SessionOptions(
            sandbox=self.sandbox,
            working_dir=self.working_dir,
            cwd=cwd,
            exports=exports,
            protected=self.protected,
        )
        try:
            session = ShellSession(start, self._files)
        except OSError as error:
            raise ToolError(f"The session could not be started: {error}") from error
        report = session.report
        if cwd is not None and report is not None and report.cwd != cwd:
            notes.append(f"{cwd} does not exist anymore; the new session is in {report.cwd}")
        self._session, self._kept = session, (None, "")
        return session

    def lost(self, notes: list[str]) -> int | None:
        """Discard a session that has ended, and keep its directory and exported variables.

        Args:
            notes: Gets a note on how it ended.

        Returns:
            The exit code of bash.
        """
        session = self._session
        if session is None:
            return None
        process = session.handle.process
        with contextlib.suppress(Exception):
            process.wait(1)
        code = process.returncode
        cwd, exports = session.left()
        known = session.cwd
        self._kept = (cwd or known, exports)
        self.end_session()
        rest = f"the next command starts a new one in {cwd or known}"
        if cwd is not None:
            notes.append(
                f"the session has ended; {rest}, with the exported variables, "
                "but without functions, aliases and other variables"
            )
        elif code is not None and code < 0:
            notes.append(f"the session was killed by {_signal_name(-code)}; {rest}")
        else:
            notes.append(f"the session has ended; {rest}, without its variables")
        return None if code is None else 128 - code if code < 0 else code

    def end_session(self) -> None:
        """Terminate the session and its processes, but keep its state for the next."""
        session, self._session = self._session, None
        if session is not None:
            drain.leave(session)
            session.close()

    def forget(self) -> None:
        """Terminate the session and drop its state."""
        self.end_session()
        self._kept = (None, "")


BashExecutor = TerminalExecutor


class _TerminalCall:
    """One call, from its turn to its observation."""

    def __init__(
        self,
        executor: TerminalExecutor,
        action: TerminalAction,
        turn: SessionTurn,
        live: LiveOutput,
    ) -> None:
        self.executor = executor
        self.action = action
        self.turn = turn
        self.live = live
        self.began = time.monotonic()
        self.notes: list[str] = []
        self.fields: dict[str, Any] = {}
        self.before: str | None = None

    def run(self) -> TerminalObservation:
        """Execute the action."""
        action, executor = self.action, self.executor
        if (fault := _fault(action)) is not None:
            return self._refused(fault)
        if action.reset:
            executor.forget()
            self.notes.append("a new session")
        session = executor.session(self.notes)
        self.turn.on_cancel = session.wake
        with session.lock:
            observation = self._with(session)
        if observation.running or observation.background:
            drain.watch(session)
        return observation

    def _with(self, session: ShellSession) -> TerminalObservation:
        if self.action.reset and not self.action.command:
            return self._observation(session, exit_code=0)
        if (fault := self._begin(session)) is not None:
            return self._refused(fault, session)
        self._follow(session)
        self.live.finish()
        if session.ended:
            return self._ended(session)
        if key_named(self.action.command) in _RESETTING_KEYS and not session.running:
            session.settle(_SETTLE_WITHIN)
        return self._finished(session)

    # --- start

    def _begin(self, session: ShellSession) -> str | None:
        """Send the command or input to the session, or return the reason why not."""
        action = self.action
        self.before = session.cwd
        key = key_named(action.command) if action.command.startswith(("C-", "^")) else None
        if not session.running:
            if action.is_input or key is not None:
                return "No command is running that accepts input. Use command without is_input."
            if action.command:
                session.run(action.command)
            return None
        if action.is_input or key is not None:
            if action.command:
                session.type(typed(action.command, by_line=session.takes_lines))
            return None
        if action.command:
            return (
                f"A command is still running: {session.command[:200]!r}. Type into it with "
                "is_input, end it with the input C-c, wait with an empty command, or start a new "
                "session with reset."
            )
        return None

    # --- while it runs

    def _follow(self, session: ShellSession) -> None:
        """Wait for the end of the command, or for another end of the call."""
        executor, began = self.executor, time.monotonic()
        seconds = self.action.timeout or executor.timeout
        soft = executor.soft_timeout
        look = began + _QUIET
        while session.running:
            now = time.monotonic()
            quiet = now - max(began, session.last_output)
            if self.turn.cancelled:
                self._stop(session, "the command was interrupted", exit_code=_INTERRUPTED)
            elif seconds is not None and now - began >= seconds:
                self._time_out(session, seconds)
            elif seconds is None and (quiet >= soft or now - began >= soft * _MOST_SILENCES):
                return self._goes_on(f"still running after {now - began:.0f} s")
            elif seconds is None and session.output.full:
                return self._goes_on("still running, and its output exceeds the limit")
            elif seconds is None and now >= look and quiet >= _QUIET:
                if session.waits_for_input() and not self._wrote(session, now):
                    return self._ask_for_input()
                look = now + _LOOK_AGAIN
            else:
                until = began + seconds - now if seconds else self._next_look(look, quiet, now)
                session.step(min(until, self.live.due), self.live.add)
                self.live.tick()
        return None

    def _wrote(self, session: ShellSession, since: float) -> bool:
        """Read what is written, and return whether there was anything since a time.

        A program writes its prompt before it waits, perhaps just before the wait was noticed.
        """
        session.step(0, self.live.add)
        return session.last_output > since

    def _next_look(self, look: float, quiet: float, now: float) -> float:
        """Return the seconds until the soft timeout, or until the input has to be checked."""
        return min(self.executor.soft_timeout - quiet, max(look - now, _QUIET - quiet))

    def _time_out(self, session: ShellSession, seconds: float) -> None:
        waited = " while it waited for input" if session.waits_for_input() else ""
        self.fields["timed_out"] = True
        self._stop(
            session, f"the command was stopped after {seconds:g} s{waited}", exit_code=_STOPPED
        )
        if waited:
            self.notes.append("to type into it, run it without timeout")

    def _ask_for_input(self) -> None:
        self.fields["waits_for_input"] = True
        self.notes.append(
            "waits for input; call again with is_input=true and a line as command, with C-d to end "
            "the input, or with C-c to stop it; no other command can run before"
        )

    def _goes_on(self, how: str) -> None:
        self.notes.append(
            f"{how}; send an empty command to wait, use is_input to type, or type C-c to stop it"
        )

    def _stop(self, session: ShellSession, why: str, *, exit_code: int) -> None:
        """Stop the command: SIGINT, SIGTERM, SIGKILL; finally terminate the whole session."""
        self.fields.update(exit_code=exit_code, is_error=True)
        began = time.monotonic()
        stopping = _StopRequest(session, began)
        while session.running and not stopping.given_up:
            stopping.push()
            session.step(_AGAIN, self.live.add)
        if not session.ended and (session.running or not session.settle(_SETTLE_WITHIN)):
            self.notes.append(
                f"{why}; it did not end, so the session was terminated; the next command starts a "
                f"new one in {session.cwd}"
            )
            self.fields["given_up"] = True
            session.handle.kill_tree(_AT_ONCE)
            session.ended = True
            return
        self.notes.append(why)

    # --- result

    def _finished(self, session: ShellSession) -> TerminalObservation:
        report = session.report
        if report is None:
            return self._observation(session, running=True, **self.fields)
        if report.cwd != self.before:
            self.notes.append(f"now in {report.cwd}")
        self.fields = {"exit_code": report.status, **self.fields}
        return self._observation(session, background=list(report.jobs), **self.fields)

    def _ended(self, session: ShellSession) -> TerminalObservation:
        """Return the observation for a bash that has ended, for example by `exit` or a signal."""
        executor = self.executor
        if self.fields.pop("given_up", False):
            shown = session.output.take(executor.max_output)
            executor.lost([])
            return self._observation(session, shown=shown, **self.fields)
        killed = session.handle.process.poll()
        shown = session.output.take(executor.max_output)
        code = executor.lost(self.notes)
        failed = killed is not None and killed < 0
        self.fields = {"exit_code": code, "is_error": failed, **self.fields}
        if "exit" in self.action.command and shown.text.endswith("exit\n"):
            shown = dataclasses.replace(shown, text=shown.text.removesuffix("exit\n"))
        return self._observation(session, shown=shown, **self.fields)

    def _refused(self, fault: str, session: ShellSession | None = None) -> TerminalObservation:
        return TerminalObservation.from_text(
            fault,
            is_error=True,
            command=_shown_command(self.action.command),
            running=session is not None and session.running,
            working_dir=session.cwd if session is not None else str(self.executor.working_dir),
            notes=self.notes,
            duration=time.monotonic() - self.began,
            sandbox=self.executor.level,
        )

    def _observation(
        self, session: ShellSession, shown: OutputExcerpt | None = None, **fields: Any
    ) -> TerminalObservation:
        if shown is None:
            shown = session.output.take(self.executor.max_output, more=bool(fields.get("running")))
        fields.pop("given_up", None)
        return TerminalObservation.from_text(
            shown.text,
            command=_shown_command(self.action.command),
            working_dir=session.cwd,
            duration=time.monotonic() - self.began,
            truncated=shown.truncated,
            output_file=shown.file,
            notes=self.notes,
            sandbox=session.handle.report.level,
            **fields,
        )


class _StopRequest:
    """Escalates the signals to a command, which can catch the first two; its shell continues."""

    def __init__(self, session: ShellSession, began: float) -> None:
        self._session = session
        self._began = began
        self._sent: tuple[int | None, int] | None = None
        self._again = began
        self._own_since: float | None = None

    @property
    def given_up(self) -> bool:
        """Return whether the command survived all signals, or the shell ignores the interrupt."""
        now = time.monotonic()
        own = self._own_since
        return now - self._began >= _FORCE or (own is not None and now - own >= _TELL)

    def push(self) -> None:
        """Send the signal that is due; repeat it, since a starting program can miss it."""
        now = time.monotonic()
        passed = now - self._began
        number = signal.SIGINT
        if passed >= _ASK:
            number = signal.SIGTERM if passed < _TELL else signal.SIGKILL
        group = self._session.foreground()
        if group is None and self._own_since is None:
            self._own_since = now
            if self._sent is not None:  # the shell is about to report the end of the command
                self._sent, self._again = (None, number), now + _MOMENT
        elif group is not None:
            self._own_since = None
        if (group, number) != self._sent or now >= self._again:
            self._session.signal(number)
            self._sent = (group, number)
            self._again = now + (_AGAIN if number == signal.SIGKILL else _MOMENT)


def _fault(action: TerminalAction) -> str | None:
    """Return the reason why a command cannot be run; `None` if it can."""
    if "\0" in action.command:
        return "The command contains a NUL character, which bash cannot read. Remove it."
    try:
        action.command.encode()
    except UnicodeEncodeError:
        return "The command contains a lone surrogate. Remove it."
    if _OWN_NAME.search(action.command):
        return "A function must not be named builtin. Rename it."
    return None


def _shown_command(command: str) -> str:
    return command if len(command) <= 10_000 else f"{command[:10_000]}…"  # noqa: PLR2004 - enough


def _signal_name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
