"""Answers what a model asks of skills, and runs their scripts."""

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

from agents_tools._paths import DEFAULT_PROTECTED, PathRefused
from agents_tools._text import escape_for_model
from agents_tools.builtin._skill_messages import SkillAction, SkillObservation
from agents_tools.builtin._skills import SCRIPTS, Skill, SkillError, SkillRegistry, unknown
from agents_tools.builtin.sandbox import Sandbox, SandboxedProcess
from agents_tools.context import current_context
from agents_tools.definition import ToolExecutor
from agents_tools.errors import UserError, UserKeyError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from agents_tools.context import ToolContext

__all__ = ["SkillExecutor"]

_LARGEST_REFERENCE = 1024 * 1024
_SHOWN = 100
_GRACE = 0.5
"""Seconds in which what a script leaves running may still write to its output."""
_NO_CACHE = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONPYCACHEPREFIX": os.devnull}
"""Compiled files beside a script would be run in its place, and nothing would show it."""


class _Refused(Exception):  # noqa: N818 - says what happened to the request
    """A request that cannot be met; the text is for the model."""


class SkillExecutor(ToolExecutor[SkillAction, SkillObservation]):
    """Shows skills and runs their scripts.

    Args:
        registry: The skills.
        working_dir: Where scripts start, and what they may write.
        timeout: The seconds a script may take.
        max_output: The characters that are shown of a reference or of an output.
        sandbox: How scripts are started.
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
        self._runs: set[_Run] = set()
        self._closed = False
        self._lock = threading.Lock()

    def __call__(self, action: SkillAction, conversation: Any = None) -> SkillObservation:
        """Do what an action asks for."""
        del conversation
        try:
            skill = self.registry[action.skill_name]
            if action.action == "get_info":
                return _answer(action, _info(skill))
            if action.action == "get_reference":
                return self._reference(action, skill)
            return self._script(action, skill)
        except (_Refused, SkillError, PathRefused, UserKeyError) as error:
            return _answer(action, str(error), is_error=True)
        except (OSError, UserError) as error:
            why = getattr(error, "strerror", None) or error
            text = f"The skill {action.skill_name!r} cannot be used: {why}"
            return _answer(action, text, is_error=True)

    def close(self) -> None:
        """End the scripts that still run, and those that are just being started."""
        with self._lock:
            self._closed = True
        for run in self._running():
            run.stop()
            run.kill()

    def interrupt(self) -> None:
        """End the script of the call this is called for; without one, all."""
        context = current_context()
        for run in self._running():
            if context is None or run.is_of(context):
                run.stop()

    def _running(self) -> list[_Run]:
        with self._lock:
            return list(self._runs)

    # --- references

    def _reference(self, action: SkillAction, skill: Skill) -> SkillObservation:
        name = _found("reference", action.reference_name, skill.references)
        with os.fdopen(skill.open_reference(name), "rb") as file:
            content = file.read(_LARGEST_REFERENCE + 1)
        if b"\0" in content:
            raise _Refused(f"The reference {name!r} is no text.")
        text = escape_for_model(content[:_LARGEST_REFERENCE].decode("utf-8", "replace"))
        cut = len(content) > _LARGEST_REFERENCE or len(text) > self._max_output
        if cut:
            text = (
                f"{text[: self._max_output]}\n[Only the first {self._max_output:,} characters of "
                f"{name} are shown. The skill is in {skill.path}.]"
            )
        return _answer(action, text, truncated=cut)

    # --- scripts

    def _script(self, action: SkillAction, skill: Skill) -> SkillObservation:
        name = _found("script", action.script_name, list(skill.scripts))
        arguments = _arguments(action.script_args)
        if self._closed:
            raise _Refused("No script can be run any more: this tool was closed.")
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
                raise _Refused(f"The script {name!r} cannot be started: {why}") from None
            return self._finished(action, running)

    def _finished(self, action: SkillAction, running: SandboxedProcess) -> SkillObservation:
        """Wait for the end of a script, and tell of it."""
        context = current_context()
        seconds = _seconds_left(self._timeout, context)
        run = _Run(running, context, self._max_output)
        with self._lock:
            self._runs.add(run)
            closed = self._closed  # while it was started: `close` has not seen it
        try:
            if closed or (context is not None and context.cancelled):
                run.stop()
            code = run.wait(seconds)
        finally:
            with self._lock:
                self._runs.discard(run)
        return _told(action, run, code, seconds)

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


class _Run:
    """A script that runs: its output is read as it comes, in a thread of its own."""

    def __init__(
        self, running: SandboxedProcess, context: ToolContext[Any] | None, most: int
    ) -> None:
        self._running = running
        self._context = context
        self.output = _Bounded(most)
        self._stopped = threading.Event()
        self._reader = threading.Thread(
            target=self._read, name="agents-tools-skill-output", daemon=True
        )
        self._reader.start()

    @property
    def stopped(self) -> bool:
        """Whether the script was ended because nobody waits for it."""
        return self._stopped.is_set()

    def is_of(self, context: ToolContext[Any]) -> bool:
        """Tell whether it is the script of a call, or of one that nobody waits for either."""
        return self._context is context or (self._context is not None and self._context.cancelled)

    def stop(self) -> None:
        """Let `wait` end the script; never waits itself, as an event loop may call it."""
        self._stopped.set()

    def kill(self) -> None:
        """End the script now."""
        self._running.kill_tree()

    def wait(self, seconds: float) -> int | None:
        """Wait until the script is over, and end what it leaves behind.

        Returns:
            Its exit code; `None` if it was ended.
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
        """Look for the end of the script as `Popen.wait` does, and for `stop` as well."""
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


class _Bounded:
    """Text of which the beginning and the end are kept."""

    def __init__(self, most: int) -> None:
        self._head_room = most // 2
        self._tail_room = most - most // 2
        self._head = ""
        self._tail = ""
        self._lost = 0

    def add(self, text: str) -> None:
        """Put text at the end."""
        room = self._head_room - len(self._head)
        self._head += text[:room]
        tail = self._tail + text[room:]
        over = max(0, len(tail) - self._tail_room)
        self._lost += over
        self._tail = tail[over:]

    def text(self) -> tuple[str, bool]:
        """Give what is kept, and whether that is not all."""
        if not self._lost:
            return self._head + self._tail, False
        return f"{self._head}\n[… {self._lost:,} characters left out …]\n{self._tail}", True


# --- what a model reads


def _answer(
    action: SkillAction, text: str, *, is_error: bool = False, **facts: Any
) -> SkillObservation:
    return SkillObservation.from_text(
        text, is_error=is_error, action=action.action, skill_name=action.skill_name, **facts
    )


def _told(action: SkillAction, run: _Run, code: int | None, seconds: float) -> SkillObservation:
    output, cut = run.output.text()
    if run.stopped:
        ending = "The script was stopped: nobody waits for it any more."
    elif code is None:
        ending = f"The script was ended: it took longer than {seconds:g} s."
    else:
        ending = f"Exit code {code}."
    text = escape_for_model(output)
    return _answer(
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
            more = " …" if len(names) > _SHOWN else ""
            lines.append(f"{kind}: {', '.join(names[:_SHOWN])}{more}")
    return escape_for_model("\n".join([*lines, "", skill.instructions]).rstrip())


# --- what a model asks for


def _found(kind: str, name: str | None, there_are: list[str]) -> str:
    """Give the name of what is asked for: as it stands, or without its folder or its suffix."""
    if name is None:
        listed = ", ".join(there_are[:_SHOWN]) or "none"
        raise _Refused(f"{kind}_name is missing. There is: {listed}.")
    wanted = name.removeprefix("./").removeprefix(f"{kind}s/")
    if wanted in there_are:
        return wanted
    alike = [one for one in there_are if wanted in {Path(one).name, Path(one).stem}]
    if len(alike) == 1:
        return alike[0]
    raise _Refused(unknown(kind, name, there_are))


def _arguments(given: str | list[str] | None) -> list[str]:
    """Give the arguments one by one; no shell ever sees them."""
    if isinstance(given, str):
        try:
            given = shlex.split(given)
        except ValueError as error:
            raise _Refused(
                f"script_args cannot be split: {error}. Close the quotes, or give a list of texts."
            ) from None
    if any("\0" in one for one in given or ()):
        raise _Refused("script_args hold a NUL character, which no argument can.")
    return given or []


def _command(script: Path) -> list[str]:
    """Give what runs a script: what its first line says, or its suffix, or itself."""
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
    raise _Refused(
        f"The script {script.name!r} cannot be run: it needs a first line `#!...`, a suffix .py or "
        ".sh, or the permission to be executed."
    )


def _seconds_left(timeout: float, context: ToolContext[Any] | None) -> float:
    if context is None or context.deadline is None:
        return timeout
    return min(timeout, max(0.0, context.deadline - time.monotonic()))
