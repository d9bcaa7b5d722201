"""The executor of the skill tool."""

from __future__ import annotations

import codecs
import dataclasses
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agents_tools.builtin.paths import DEFAULT_PROTECTED, PathNotAllowed
from agents_tools.builtin.sandbox import Sandbox, SandboxedProcess
from agents_tools.builtin.skill_models import SkillAction, SkillObservation
from agents_tools.builtin.skill_registry import (
    SCRIPTS,
    Skill,
    SkillError,
    SkillRegistry,
    unknown_name_message,
)
from agents_tools.classes.definition import ToolExecutor
from agents_tools.errors import UserError, UserKeyError
from agents_tools.text.characters import escape_for_model
from agents_tools.tool.context import current_context

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.tool.context import ToolContext

__all__ = ["SkillExecutor"]

_MAX_REFERENCE_BYTES = 1024 * 1024
_MAX_LISTED = 100
_GRACE = 0.5
"""Seconds during which background processes of a script can still write output."""
_NO_CACHE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": os.devnull}
"""Cached bytecode next to a script could be run unnoticed in its place."""


class _SkillRequestError(Exception):
    """An invalid request of a model; the message is sent to the model."""


class SkillExecutor(ToolExecutor[SkillAction, SkillObservation]):
    """Executor that shows skills and runs their scripts.

    Args:
        registry: The skills.
        working_dir: The directory in which scripts start and which they may write.
        timeout: The maximum number of seconds of a script.
        max_output: The maximum number of characters of a reference or an output.
        sandbox: The sandbox of scripts.
    """

    def __init__(
        self,
        registry: SkillRegistry,
        working_dir: str | os.PathLike[str] | None = None,
        *,
        timeout: float = 120.0,
        max_output: int = 30_000,
        sandbox: Sandbox | None = None,
    ) -> None:
        self.registry = registry
        self.working_dir = Path(os.path.realpath(working_dir or "."))
        self._timeout = timeout
        self._max_output = max_output
        self._sandbox = sandbox or Sandbox()
        self._runs: set[_ScriptRun] = set()
        self._closed = False
        self._lock = threading.Lock()

    def __call__(self, action: SkillAction, conversation: object = None) -> SkillObservation:
        """Execute an action."""
        del conversation
        try:
            skill = self.registry[action.skill_name]
            if action.action == "get_info":
                return _observation(action, _info(skill))
            if action.action == "get_reference":
                return self._reference(action, skill)
            return self._script(action, skill)
        except (_SkillRequestError, SkillError, PathNotAllowed, UserKeyError) as error:
            return _observation(action, str(error), is_error=True)
        except (OSError, UserError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"The skill {action.skill_name!r} cannot be used: {why}"
            return _observation(action, text, is_error=True)

    def close(self) -> None:
        """Terminate all running scripts, including those that are being started."""
        with self._lock:
            self._closed = True
        for run in self._running():
            run.stop()
            run.kill()

    def interrupt(self) -> None:
        """Terminate the script of the current call; outside of a call, all scripts."""
        context = current_context()
        for run in self._running():
            if context is None or run.is_of(context):
                run.stop()

    def _running(self) -> list[_ScriptRun]:
        with self._lock:
            return list(self._runs)

    # --- references

    def _reference(self, action: SkillAction, skill: Skill) -> SkillObservation:
        name = _require_name("reference", action.reference_name, skill.references)
        with os.fdopen(skill.open_reference(name), "rb") as file:
            content = file.read(_MAX_REFERENCE_BYTES + 1)
        if b"\0" in content:
            raise _SkillRequestError(f"The reference {name!r} is not a text file.")
        text = escape_for_model(content[:_MAX_REFERENCE_BYTES].decode("utf-8", "replace"))
        cut = len(content) > _MAX_REFERENCE_BYTES or len(text) > self._max_output
        if cut:
            text = (
                f"{text[: self._max_output]}\n[Only the first {self._max_output:,} characters of "
                f"{name} are shown. The skill is in {skill.path}.]"
            )
        return _observation(action, text, truncated=cut)

    # --- scripts

    def _script(self, action: SkillAction, skill: Skill) -> SkillObservation:
        name = _require_name("script", action.script_name, list(skill.scripts))
        arguments = _arguments(action.script_args)
        if self._closed:
            raise _SkillRequestError("Scripts cannot be run: this tool is closed.")
        with tempfile.TemporaryDirectory(prefix="agents-tools-skill-") as folder:
            scripts = Path(folder, SCRIPTS)
            scripts.mkdir()
            try:
                skill.copy_scripts(scripts)
                running = self._start(skill, [*_command(scripts / name), *arguments], folder)
            except SkillError:
                raise
            except (UserError, OSError, ValueError) as error:
                why = getattr(error, "strerror", None) or error
                raise _SkillRequestError(f"The script {name!r} cannot be started: {why}") from None
            return self._finished(action, running)

    def _finished(self, action: SkillAction, running: SandboxedProcess) -> SkillObservation:
        """Wait for the end of a script and return its observation."""
        context = current_context()
        seconds = _seconds_left(self._timeout, context)
        run = _ScriptRun(running, context, self._max_output)
        with self._lock:
            self._runs.add(run)
            closed = self._closed  # `close` was called during the start and missed it
        try:
            if closed or (context is not None and context.cancelled):
                run.stop()
            code = run.wait(seconds)
        finally:
            with self._lock:
                self._runs.discard(run)
        return _script_observation(action, run, code, seconds)

    def _start(self, skill: Skill, argv: Sequence[str], copy: str) -> SandboxedProcess:
        own = {**_NO_CACHE, "SKILL_DIR": str(skill.path)}
        sandbox = dataclasses.replace(
            self._sandbox,
            env={**own, **self._sandbox.env},
            writable=(*self._sandbox.writable, copy),  # where temporary directories are hidden
        )
        return sandbox.start(
            argv,
            workspace=[self.working_dir],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            protected=(*DEFAULT_PROTECTED, *self.registry.protected(self.working_dir)),
        )


class _ScriptRun:
    """A running script, whose output is read in a separate thread."""

    def __init__(
        self, running: SandboxedProcess, context: ToolContext[Any] | None, most: int
    ) -> None:
        self._running = running
        self._context = context
        self.output = _BoundedOutput(most)
        self._stopped = threading.Event()
        self._reader = threading.Thread(
            target=self._read, name="agents-tools-skill-output", daemon=True
        )
        self._reader.start()

    @property
    def stopped(self) -> bool:
        """Return whether the script was stopped before its end."""
        return self._stopped.is_set()

    def is_of(self, context: ToolContext[Any]) -> bool:
        """Return whether the script belongs to a call, or to another cancelled call."""
        return self._context is context or (self._context is not None and self._context.cancelled)

    def stop(self) -> None:
        """Make `wait` terminate the script; never blocks, since an event loop may call it."""
        self._stopped.set()

    def kill(self) -> None:
        """Terminate the script."""
        self._running.kill_tree()

    def wait(self, seconds: float) -> int | None:
        """Wait for the end of the script, and terminate all processes that it started.

        Returns:
            The exit code; `None` if the script was terminated.
        """
        try:
            code = self._code_within(seconds)
            if code is not None:
                self._reader.join(_GRACE)
            return None if self.stopped else code
        finally:
            self._running.kill_tree()
            self._reader.join(_GRACE)
            self._running.close()

    def _code_within(self, seconds: float) -> int | None:
        """Poll for the end of the script as `Popen.wait` does, and also for `stop`."""
        latest = time.monotonic() + seconds
        pause = 0.0005
        while (code := self._running.process.poll()) is None:
            left = latest - time.monotonic()
            if left <= 0 or self._stopped.wait(min(pause, left)):
                return None
            pause = min(2 * pause, 0.05)
        return code

    def _read(self) -> None:
        pipe = self._running.process.stdout
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while pipe is not None:
            try:
                data = pipe.read(1 << 16)
            except (OSError, ValueError):  # closed by `wait`, which nothing could be read after
                data = b""
            text = decoder.decode(data or b"", final=not data)
            self.output.add(text)
            if text and self._context is not None:
                self._context.notify(text, is_delta=True)
            if not data:
                return


class _BoundedOutput:
    """The start and end of a text."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 2
        self._tail_room = most - most // 2
        self._head = ""
        self._tail = ""
        self._lost = 0

    def add(self, text: str) -> None:
        """Append text."""
        room = self._head_room - len(self._head)
        self._head += text[:room]
        tail = self._tail + text[room:]
        over = max(0, len(tail) - self._tail_room)
        self._lost += over
        self._tail = tail[over:]

    def text(self) -> tuple[str, bool]:
        """Return the text, and whether it is truncated."""
        if not self._lost:
            return self._head + self._tail, False
        return f"{self._head}\n[… {self._lost:,} characters omitted …]\n{self._tail}", True


# --- observations


def _observation(
    action: SkillAction, text: str, *, is_error: bool = False, **facts: Any
) -> SkillObservation:
    return SkillObservation.from_text(
        text, is_error=is_error, action=action.action, skill_name=action.skill_name, **facts
    )


def _script_observation(
    action: SkillAction, run: _ScriptRun, code: int | None, seconds: float
) -> SkillObservation:
    output, cut = run.output.text()
    if run.stopped:
        ending = "The script was stopped: the call was cancelled."
    elif code is None:
        ending = f"The script was terminated: it took longer than {seconds:g} s."
    else:
        ending = f"Exit code {code}."
    text = escape_for_model(output)
    return _observation(
        action,
        text + ("" if not text or text.endswith("\n") else "\n") + f"[{ending}]",
        is_error=code != 0,
        exit_code=code,
        timed_out=code is None and not run.stopped,
        truncated=cut,
    )


def _info(skill: Skill) -> str:
    lines = [f"# {skill.name}", skill.description, f"Folder: {skill.path}"]
    if skill.allowed_tools:
        lines.append(f"Tools it uses: {', '.join(skill.allowed_tools)}")
    if skill.mcp_servers:
        lines.append(f"MCP servers it uses: {', '.join(skill.mcp_servers)}")
    for kind, names in (("References", skill.references), ("Scripts", list(skill.scripts))):
        if names:
            more = " …" if len(names) > _MAX_LISTED else ""
            lines.append(f"{kind}: {', '.join(names[:_MAX_LISTED])}{more}")
    return escape_for_model("\n".join([*lines, "", skill.instructions]).rstrip())


# --- requests


def _require_name(kind: str, name: str | None, available: list[str]) -> str:
    """Return the full name of a reference or script; folder and suffix are optional."""
    if name is None:
        listed = ", ".join(available[:_MAX_LISTED]) or "none"
        raise _SkillRequestError(f"{kind}_name is missing. Available: {listed}.")
    requested = name.removeprefix("./").removeprefix(f"{kind}s/")
    if requested in available:
        return requested
    matches = [item for item in available if requested in {Path(item).name, Path(item).stem}]
    if len(matches) == 1:
        return matches[0]
    raise _SkillRequestError(unknown_name_message(kind, name, available))


def _arguments(arguments: str | list[str] | None) -> list[str]:
    """Return the arguments as a list; a string is split without a shell."""
    if isinstance(arguments, str):
        try:
            arguments = shlex.split(arguments)
        except ValueError as error:
            raise _SkillRequestError(
                f"script_args cannot be split: {error}. Close the quotes, or pass a list of "
                "strings."
            ) from None
    if any("\0" in argument for argument in arguments or ()):
        raise _SkillRequestError("script_args contain a NUL character. Remove it.")
    return arguments or []


def _command(script: Path) -> list[str]:
    """Return the command of a script, from its `#!` line, its suffix or its permissions."""
    with script.open("rb") as file:
        first = file.read(256).split(b"\n", 1)[0]
    line = os.fsdecode(first[2:]).strip() if first.startswith(b"#!") else ""
    program, _, option = line.partition(" ")
    known = Path(option.strip() if Path(program).name == "env" else program).name
    if known in {"python", "python3"} or (not line and script.suffix == ".py"):
        return [sys.executable, str(script)]
    if line:  # the rest of the line is one argument, as it is for the system
        return [program, *([option.strip()] if option.strip() else []), str(script)]
    if script.suffix in {".sh", ".bash"}:
        return [shutil.which("bash") or shutil.which("sh") or "sh", str(script)]
    if os.access(script, os.X_OK):
        return [str(script)]
    raise _SkillRequestError(
        f"The script {script.name!r} cannot be run: it needs a first line `#!...`, a suffix .py or "
        ".sh, or the permission to be executed."
    )


def _seconds_left(timeout: float, context: ToolContext[Any] | None) -> float:
    if context is None or context.deadline is None:
        return timeout
    return min(timeout, max(0.0, context.deadline - time.monotonic()))
