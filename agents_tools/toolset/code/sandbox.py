"""Runs a program in the sandbox of pydantic-monty, which has no files, network or modules of ours.

The interpreter is a process of its own. It stops at each call of a tool, and continues when the
result is sent to it. The same program with the same results makes the same calls: the clock stands
still, random numbers have a fixed seed, and results are sent one at a time.
"""

from __future__ import annotations

import asyncio
import os
import signal
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, Final, cast

import pydantic_monty as monty

from agents_tools.concurrency.supervisor import finish
from agents_tools.concurrency.threads import run_in_thread
from agents_tools.errors import UserError
from agents_tools.text.output import release_text
from agents_tools.tool.arguments import encode_arguments
from agents_tools.toolset.code.stubs import parameter_names
from agents_tools.toolset.code.values import ProgramError, TooLargeError, json_value, result_value

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from datetime import datetime
    from typing import Self

    from agents_tools.toolset.catalog import AnyTool
    from agents_tools.toolset.code.calls import EndedCall, ProgramCalls
    from agents_tools.toolset.code.limits import CodeLimits

__all__ = ["ProgramResult", "run_program"]

_EXCEPTIONS: Final = {
    "invalid_args": "ValueError",
    "timeout": "TimeoutError",
    "denied": "PermissionError",
}
"""The exception in the program for the status of a call; `RuntimeError` for the others."""
_SLEEPS: Final = frozenset({"time.sleep", "asyncio.sleep"})
_SUSPENSIONS_PER_CALL: Final = 8
_MIN_SUSPENSIONS: Final = 1_000
_MAX_TRACEBACK: Final = 1_500
_SCRIPT: Final = "<python-input-0>"


@dataclass(slots=True)
class ProgramResult:
    """The result of a program.

    Attributes:
        value: The value of its last line, as JSON.
        printed: What it printed.
        is_cut: Whether the beginning of a longer output is all that was kept.
        unawaited: The names of functions whose calls it did not await, and which did not run.
    """

    value: Any = None
    printed: str = ""
    is_cut: bool = False
    unawaited: list[str] = field(default_factory=list[str])


async def run_program(
    code: str,
    functions: Mapping[str, AnyTool],
    calls: ProgramCalls,
    limits: CodeLimits,
    *,
    started: datetime,
    on_print: Callable[[str], None],
) -> ProgramResult:
    """Run a program.

    Args:
        code: The program.
        functions: The tools by the names that it calls them by.
        calls: Makes its calls.
        limits: Its limits.
        started: The time that its clock shows.
        on_print: Receives what it prints.

    Raises:
        ProgramError: It ended with an error, or reached a limit.
    """
    program = _RunningProgram(code, functions, calls, limits, on_print)
    async with _Sandbox(program.options(started)) as sandbox:
        try:
            return await program.run(sandbox)
        except monty.MontySyntaxError as error:
            raise ProgramError(_report(error.display("traceback"), program)) from None
        except monty.MontyCrashedError as error:
            reason = "it used too much memory or time" if error.timed_out else str(error)
            raise ProgramError(_report(f"The sandbox ended: {reason}", program)) from None
        except monty.MontyRuntimeError as error:
            text = error.display("traceback")
            if text.startswith("TimeoutError: feed time limit"):  # without a traceback
                text = f"The program computed longer than {limits.seconds:g} s and was stopped."
            raise ProgramError(_report(text, program)) from None
        except monty.MontyError as error:  # of a value that cannot enter the sandbox
            raise ProgramError(_report(str(error), program)) from None


class _Sandbox:
    """The process of one sandbox, which ends with the block.

    The client of the process blocks, so that each turn of the program takes a thread. The async
    client of pydantic-monty 1.4 can abort this process when the interpreter ends after a program.

    Args:
        options: The limits and the rules of the sandbox.
    """

    session: monty.MontySession

    def __init__(self, options: Mapping[str, Any]) -> None:
        self._options = options
        self._stack = ExitStack()
        self._pid: int | None = None

    async def __aenter__(self) -> Self:
        """Start the process."""
        try:
            await self.turn(self._start)
        except BaseException:
            await self.__aexit__()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        """End the process."""
        await _finish(asyncio.ensure_future(run_in_thread(self._stack.close)))

    def _start(self) -> None:
        pool = self._stack.enter_context(monty.Monty(min_processes=1, max_processes=1))
        self.session = self._stack.enter_context(pool.checkout(**self._options))
        self._pid = self.session.worker_pid

    async def turn(self, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function of the client, and return its result; a cancellation ends the process."""
        running = asyncio.ensure_future(run_in_thread(function, *args, **options))
        try:
            return await asyncio.shield(running)
        except asyncio.CancelledError:
            if self._pid is not None and not running.done():
                with suppress(ProcessLookupError):
                    os.kill(self._pid, _KILL)
            await _finish(running)
            raise


_KILL: Final = getattr(signal, "SIGKILL", signal.SIGTERM)


async def _finish(task: asyncio.Task[Any]) -> None:
    if await finish(task, name="the sandbox of a program") and not task.cancelled():
        task.exception()  # marks the exception as retrieved


class _RunningProgram:
    """One program, from its start to its end."""

    def __init__(
        self,
        code: str,
        functions: Mapping[str, AnyTool],
        calls: ProgramCalls,
        limits: CodeLimits,
        on_print: Callable[[str], None],
    ) -> None:
        self._code = code
        self._functions = functions
        self._calls = calls
        self._limits = limits
        self._on_print = on_print
        self._made = 0
        self._slept = 0.0
        self._waiting: dict[int, tuple[str, str]] = {}  # by number: the function and the arguments
        self._numbers: dict[int, int] = {}  # the numbers of the started calls by id in the sandbox
        self._running: set[int] = set()
        self.result = ProgramResult()

    def options(self, started: datetime) -> dict[str, Any]:
        """Return the limits and the rules of the sandbox."""
        limits = self._limits
        return {
            "limits": {
                "max_feed_duration_secs": limits.seconds,
                "max_memory": limits.memory,
                "max_recursion_depth": limits.depth,
                "max_suspensions": _MIN_SUSPENSIONS + _SUSPENSIONS_PER_CALL * limits.calls,
            },
            "os_policy": {
                "datetime": started,
                "random_start": {"seed": 0},
                "process_time": "zero",
                "sleep": "call_host",
            },
        }

    async def run(self, sandbox: _Sandbox) -> ProgramResult:
        """Run the program to its end, and wait for the calls that it left running."""
        start = sandbox.session.feed_start
        step = await sandbox.turn(start, self._code, print_callback=self._print)
        while not isinstance(step, monty.MontyComplete):
            step = await sandbox.turn(await self._answer(step))
        while self._running:
            ended = await self._calls.next_finished(self._running)
            self._running.discard(ended.number)
        self.result.unawaited = [name for name, _ in self._waiting.values()]
        try:
            self.result.value = json_value(step.output)
        except TooLargeError as error:
            raise ProgramError(
                f"The result of the program is too large: {error}. Return less of it."
            ) from None
        return self.result

    def _print(self, stream: str, text: str) -> None:
        del stream
        room = self._limits.output - len(self.result.printed)
        self.result.is_cut = self.result.is_cut or len(text) > room
        if room > 0:
            self.result.printed += text[:room]
            if not self._calls.is_replaying:
                self._on_print(text[:room])

    async def _answer(self, step: Any) -> Callable[[], Any]:
        """Return the function that sends the program what it waits for."""
        if isinstance(step, monty.FutureSnapshot):
            self._start_calls()
            numbers = {self._numbers[one]: one for one in step.pending_call_ids}
            ended = await self._calls.next_finished(numbers)
            self._running.discard(ended.number)
            return partial(step.resume, {numbers[ended.number]: _settled(ended)})
        if isinstance(step, monty.NameLookupSnapshot):
            name = step.variable_name
            if step.object_id is None and name in self._functions:
                return partial(step.resume, value=_function(name))
            return step.resume
        if step.function_name in _SLEEPS and step.is_os_function:
            return partial(step.resume, await self._sleep(step.args))
        if step.is_os_function:
            return step.resume_not_handled  # files, network, environment, modules
        return partial(step.resume, self._call(step))

    async def _sleep(self, args: tuple[Any, ...]) -> Any:
        """Sleep, unless the program is repeated; return the answer to the program."""
        seconds = max(0.0, float(args[0])) if args else 0.0
        self._slept += seconds
        if self._slept > self._limits.seconds:
            message = f"The program sleeps longer than {self._limits.seconds:g} s in total"
            return _exception("TimeoutError", message)
        if not self._calls.is_replaying:
            await asyncio.sleep(seconds)
        return {"return_value": None}

    # --- calls

    def _call(self, step: monty.FunctionSnapshot) -> Any:
        """Note a call, which starts when the program awaits it; return the answer for now."""
        name = str(step.function_name)
        tool = self._functions.get(name)
        if tool is None or step.object_id is not None:
            return _exception("NameError", self._unknown(name))
        try:
            arguments = _arguments(name, tool, step.args, step.kwargs)
        except (TypeError, TooLargeError, UserError) as error:
            return _exception("TypeError", str(error))
        self._made += 1
        if self._made > self._limits.calls:
            line = self._code.encode()[: step.position.start].count(b"\n") + 1
            text = (
                f"The program made more than {self._limits.calls} calls and was stopped in line "
                f"{line}. Make fewer calls, or run several programs."
            )
            raise ProgramError(_report(text, self))
        self._waiting[self._made] = name, arguments
        self._numbers[step.call_id] = self._made
        return {"future": ...}

    def _start_calls(self) -> None:
        """Start the calls that the program has made since it last waited."""
        for number, (name, arguments) in self._waiting.items():
            self._calls.start(number, self._functions[name], arguments)
            self._running.add(number)
        self._waiting.clear()

    def _unknown(self, name: str) -> str:
        import difflib

        close = difflib.get_close_matches(name, self._functions, n=3, cutoff=0.5)
        hint = f" Did you mean {' or '.join(close)}?" if close else ""
        return f"name {name!r} is not defined.{hint}"


def _function(name: str) -> Any:
    """Return what stands for a tool that the program uses as a value; only its name matters."""

    def function() -> None:
        raise NotImplementedError

    function.__name__ = function.__qualname__ = name
    return function


def _arguments(
    name: str, tool: AnyTool, positional: tuple[Any, ...], keywords: Mapping[str, Any]
) -> str:
    """Return the arguments of a call as JSON text.

    Raises:
        TypeError: A parameter has two values, or there are too many.
        TooLargeError: A value is too large.
        UserError: The schema of the tool is invalid.
    """
    values: dict[str, Any] = {}
    if positional:
        parameters = parameter_names(tool.json_schema)
        if len(positional) > len(parameters):
            raise TypeError(
                f"{name}() takes {len(parameters)} arguments, got {len(positional)} positional ones"
            )
        values = dict(zip(parameters, positional, strict=False))
    for parameter, value in keywords.items():
        if parameter in values:
            raise TypeError(f"{name}() got two values for argument {parameter!r}")
        values[parameter] = value
    try:
        plain = json_value(values)
    except TooLargeError as error:
        raise TooLargeError(f"the arguments of {name}() are too large: {error}") from None
    return encode_arguments(plain, f"of tool {name!r}", "")


def _settled(ended: EndedCall) -> Any:
    if ended.status == "ok":
        return {"return_value": result_value(ended.text)}
    return _exception(_EXCEPTIONS.get(ended.status, "RuntimeError"), ended.text)


def _exception(kind: str, message: str) -> Any:
    return {"exc_type": cast("Any", kind), "message": message}


def _report(text: str, program: _RunningProgram) -> str:
    """Return the message for an error of a program: its traceback and what it printed."""
    lines = [line for line in text.replace(_SCRIPT, "program").splitlines() if line.strip()]
    message = "\n".join(lines)
    if len(message) > _MAX_TRACEBACK:
        half = _MAX_TRACEBACK // 2
        message = f"{message[:half]}\n…\n{message[-half:]}"
    if "'coroutine'" in message:
        message += "\nThe call of a tool returns its result only when it is awaited: await f(...)."
    printed = program.result.printed
    if printed:
        message = f"{printed.rstrip()}\n{message}"
    return release_text(message, to="model")
