"""Contract tests for tool backends, which the author of any backend can run.

The workers of the backend serve `agents_tools.testing.backends:BACKEND_TOOLS`. The tools and the
tests communicate through files.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import tempfile
import threading
import time
import uuid
from contextlib import aclosing, asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from agents_tools.content.outputs import ToolOutputImage, ToolResult
from agents_tools.errors import ToolError
from agents_tools.execution import BackendHealth, CallEnvelope, CallEvent, pin_of, run_on
from agents_tools.execution.proxy import value_of
from agents_tools.tool.call import Call
from agents_tools.tool.context import ToolContext
from agents_tools.tool.decorators import function_tool
from agents_tools.tool.reporting import notify

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from agents_tools.events.base import Event
    from agents_tools.execution import DetachableBackend, ToolBackend

__all__ = ["BACKEND_TOOLS", "BackendContract", "BackendLawError"]

PATIENCE: Final = 20.0
"""The longest wait for an expected event, in seconds."""

_SOME: Final = 8
"""The number of additional descriptors and threads that are accepted."""


class BackendLawError(AssertionError):
    """A backend violates the contract; the message names the rule and the actual result."""


# --- the tools of the workers


@function_tool
async def backend_echo(value: Any, kind: str = "json") -> Any:
    """Return a value unchanged, as an image, or as a result in three parts."""
    if kind == "image":
        return ToolOutputImage(data=b"\x89PNG\r\n\x1a\n", mime_type="image/png")
    if kind == "result":
        return ToolResult(content="seen", structured=value, metadata={"kept": True})
    return value


@function_tool
def backend_fail(kind: str, message: str) -> str:
    """Fail in one of several ways, selected by `kind`."""
    if kind == "tool":
        raise ToolError(message)
    if kind == "result":
        return ToolResult(content=message, is_error=True)  # type: ignore[return-value]
    raise ValueError(message)


@function_tool
async def backend_say(count: int, until: str | None = None) -> int:
    """Emit some lines, the first at once and the others when a file exists."""
    for number in range(count):
        notify(f"line {number}", tag=str(number))
        await asyncio.sleep(0)
        if number == 0 and until is not None:
            await _file(until)
    return count


@function_tool
async def backend_inner(text: str) -> str:
    """Emit a line. `backend_outer` calls this tool."""
    notify(text)
    return text


@function_tool
async def backend_outer(text: str) -> str:
    """Emit a line, and call another tool that emits one."""
    notify("outer")
    return await backend_inner.invoke(text=text)


@function_tool
async def backend_once(log: str, until: str | None = None) -> int:
    """Log that the body runs, wait for a file if one is named, and return the number of runs."""
    with open(log, "a") as file:  # noqa: ASYNC230, PTH123 - a line in a local file
        file.write("ran\n")
    if until is not None:
        await _file(until)
    with open(log) as file:  # noqa: ASYNC230, PTH123 - as above
        return len(file.readlines())


@function_tool
async def backend_wait(folder: str, context: ToolContext) -> str:
    """Wait until the call is cancelled, and log its start and its cleanup."""
    attempt = context.attempt
    notify(f"attempt {attempt}")
    (Path(folder) / "started").write_text(str(os.getpid()))
    if attempt > 1:
        return f"attempt {attempt}"
    try:
        await asyncio.Event().wait()
    finally:
        (Path(folder) / "cleaned").touch()
    return "never"


BACKEND_TOOLS: Final = [
    backend_echo,
    backend_fail,
    backend_say,
    backend_inner,
    backend_outer,
    backend_once,
    backend_wait,
]
"""The tools that the workers of a tested backend must serve."""


async def _file(path: str) -> None:
    there = Path(path).exists
    while not there():  # noqa: ASYNC110 - another process creates it
        await asyncio.sleep(0.005)


# --- the contract


class BackendContract:
    """Tests that every backend must pass; pytest runs those of a subclass, with pytest-asyncio.

    ::

        class TestMyBackend(BackendContract):
            async def backend(self):
                return MyBackend(...)  # its workers serve BACKEND_TOOLS

            async def kill_worker(self, backend, pid):
                os.kill(pid, signal.SIGKILL)

    Attributes:
        killable: Whether `kill_worker` can kill a worker without this process.
        kills: The number of workers that are killed one after the other.
        streams: The number of calls that stream at the same time.
    """

    killable: ClassVar[bool] = True
    kills: ClassVar[int] = 10
    streams: ClassVar[int] = 200

    async def backend(self) -> ToolBackend:
        """Return a new backend; the test closes it."""
        raise NotImplementedError

    async def kill_worker(self, backend: ToolBackend, pid: int) -> None:
        """Kill the worker that runs a call, without cleanup, as `kill -9` does.

        Args:
            backend: The backend.
            pid: The process in which the tool runs.
        """
        raise NotImplementedError

    # --- results ----------------------------------------------------------------------------------

    async def test_values_come_back_as_they_would_from_here(self) -> None:
        """Values are sent as JSON and content blocks, with the same output for the model."""
        values: list[Any] = [
            *("", "text \u2028 \ud83d\ude00 'quoted'", 7, 1.5, True, None, [], {}),
            *([1, "a", None], {"type": "text", "lc": 1, "v": 2, "__class__": "x"}),
        ]
        async with self._opened() as backend:
            tool = run_on(backend)(backend_echo)
            for value in values:
                arguments = json.dumps({"value": value})
                here = await backend_echo.call(None, arguments)
                there = await tool.call(None, arguments)
                _is("the status", there.status, here.status)
                _is("the value", there.value, here.value)
                _is("the output", there.output, here.output)

    async def test_blocks_and_results_in_parts_come_back_whole(self) -> None:
        """An image stays an image, and data for programs only is not sent to the model."""
        async with self._opened() as backend:
            tool = run_on(backend)(backend_echo)
            for kind in ("image", "result"):
                arguments = json.dumps({"value": {"a": 1}, "kind": kind})
                here = await backend_echo.call(None, arguments)
                there = await tool.call(None, arguments)
                _is("the output", there.output, here.output)
                _is("the metadata", there.metadata, here.metadata)
            _is("the structured part", there.value.structured, {"a": 1})

    async def test_failures_are_reported_as_in_this_process(self) -> None:
        """A failure has the same output for the model and the same status."""
        async with self._opened() as backend:
            tool = run_on(backend)(backend_fail)
            for kind in ("tool", "value", "result"):
                arguments = json.dumps({"kind": kind, "message": "no 'such' thing"})
                here = await backend_fail.call(None, arguments)
                there = await tool.call(None, arguments)
                _is("the status", there.status, here.status)
                _is("the output", there.output, here.output)
                _is("the error", type(there.error), type(here.error))

    async def test_bad_arguments_never_reach_the_body(self) -> None:
        """Both sides validate: a worker trusts no arguments."""
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / "log"
                for arguments in ('{"log": 1}', "{}", "no JSON", '{"log": "x", "more": 1}'):
                    events = await _all(backend, _call("backend_once", arguments))
                    _is("the status", events[-1].payload["status"], "invalid_args")
                if log.exists():
                    raise BackendLawError("the body ran with bad arguments")

    async def test_a_tool_that_is_not_there_and_one_that_differs_are_refused(self) -> None:
        """A caller of another release gets an error before anything runs."""
        async with self._opened() as backend:
            for envelope in (
                _call("no_such_tool", "{}"),
                _call("backend_echo", '{"value": 1}', definition="0" * 64),
            ):
                events = await _all(backend, envelope)
                _is("the status", events[-1].payload["status"], "tool_error")
            right = _call("backend_echo", '{"value": 1}', definition=pin_of(backend_echo))
            _is("the status", (await _all(backend, right))[-1].payload["status"], "ok")

    # --- events -----------------------------------------------------------------------------------

    async def test_each_attempt_is_numbered_from_zero_and_ends_with_one_result(self) -> None:
        """The numbers show a reader whether events are missing."""
        async with self._opened() as backend:
            events = await _all(backend, _call("backend_say", '{"count": 5}'))
            _is("the numbers", [one.seq for one in events], list(range(len(events))))
            _is("the first", [one.kind for one in events[:2]], ["accepted", "started"])
            _is("the results", [one.kind for one in events].count("result"), 1)
            _is("the last", events[-1].kind, "result")
            for one in events:
                _is("an event", CallEvent.from_dict(json.loads(json.dumps(one.to_dict()))), one)

    async def test_events_arrive_in_order_while_the_body_runs(self) -> None:
        """The body waits for a file that the test creates after the first line."""
        async with self._opened() as backend, _received() as (events, context):
            with tempfile.TemporaryDirectory() as folder:
                until = Path(folder) / "go"
                tool = run_on(backend)(backend_say)
                arguments = json.dumps({"count": 50, "until": str(until)})
                task = asyncio.create_task(tool.call(context, arguments))
                await _until(lambda: bool(_lines(events)), "its first line")
                if task.done():
                    raise BackendLawError("its first line came with its result")
                until.touch()
                outcome = await task
            _is("the value", outcome.value, 50)
            _is("the lines", _lines(events), [f"line {n}" for n in range(50)])
            _is("the paths", {one.path for one in events}, {("call",)})
            _is("the starts", sum(one.type == "tool_stream_start_event" for one in events), 1)

    async def test_calls_inside_stay_below_the_call(self) -> None:
        """Nested calls in the worker have paths below the call in this process."""
        async with self._opened() as backend, _received() as (events, context):
            await run_on(backend)(backend_outer).call(context, '{"text": "inner"}')
            lines = [
                (one.path, one.tool_name) for one in events if one.type == "notify_stream_event"
            ]
            _is("the outer one", lines[0], (("call",), "backend_outer"))
            path, name = lines[1]
            _is("the inner one", (path[0], len(path), name), ("call", 2, "backend_inner"))

    async def test_many_calls_stream_at_once_and_nothing_is_lost_or_mixed_up(self) -> None:
        """Every stream has all its events, once and in order."""
        async with self._opened() as backend:

            async def one(number: int) -> None:
                count = 3 + number % 5
                events = await _all(backend, _call("backend_say", json.dumps({"count": count})))
                lines = [one.payload["data"] for one in events if one.kind == "event"]
                _is(f"the lines of call {number}", lines, [f"line {n}" for n in range(count)])
                _is("the numbers", [one.seq for one in events], list(range(len(events))))

            async with asyncio.TaskGroup() as group:
                for number in range(self.streams):
                    group.create_task(one(number))

    # --- cancellation and deadlines ---------------------------------------------------------------

    async def test_leaving_the_stream_cancels_the_call(self) -> None:
        """The cleanup of the tool runs, and the next call gets a worker."""
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                stream = backend.submit(_waiting(folder))
                async with aclosing(stream):
                    async for event in stream:
                        if event.kind == "event":
                            break
                await _exists(Path(folder) / "cleaned")
            await self._works(backend)

    async def test_a_cancelled_call_has_a_result_that_says_so(self) -> None:
        """Any caller that knows the id of a call can cancel it."""
        async with self._opened() as backend:
            if not backend.capabilities.cancel:
                return
            with tempfile.TemporaryDirectory() as folder:
                envelope = _waiting(folder)
                task = asyncio.create_task(_all(backend, envelope))
                await _exists(Path(folder) / "started")
                _is("cancel()", await backend.cancel(envelope.call_id, "enough"), True)
                _is("the status", (await task)[-1].payload["status"], "cancelled")
                await _exists(Path(folder) / "cleaned")
            _is("cancel() of no call", await backend.cancel("no such call"), False)
            await self._works(backend)

    async def test_a_call_is_over_at_its_deadline(self) -> None:
        """The result does not wait for the body."""
        async with self._opened() as backend:
            await self._works(backend)
            with tempfile.TemporaryDirectory() as folder:
                envelope = _waiting(folder, deadline=time.time() + 1.0)
                events = await _all(backend, envelope)
                _is("the status", events[-1].payload["status"], "timeout")
                await _exists(Path(folder) / "cleaned")
            await self._works(backend)

    async def test_a_call_whose_deadline_has_passed_is_not_started(self) -> None:
        """A call without a waiting caller is not started."""
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                log = Path(folder) / "log"
                arguments = json.dumps({"log": str(log)})
                late = _call("backend_once", arguments, deadline=time.time() - 5.0)
                events = await _all(backend, late)
                _is("the status", events[-1].payload["status"], "timeout")
                if log.exists():
                    raise BackendLawError("the body ran after its deadline")

    # --- repeated calls ---------------------------------------------------------------------------

    async def test_a_call_that_is_sent_again_runs_once_and_has_one_answer(self) -> None:
        """The same call, attempt and arguments."""
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                envelope = _call("backend_once", json.dumps({"log": f"{folder}/log"}))
                _is("a call that was not submitted", await backend.has_call(envelope), False)
                first = (await _all(backend, envelope))[-1]
                _is("a call that was submitted", await backend.has_call(envelope), True)
                again = (await _all(backend, envelope))[-1]
                _is("the second result", again.payload, first.payload)
                _is("its number", again.seq, first.seq)
                other = await _all(backend, envelope.again(2))
                _is("the value of another attempt", _value(other), 2)

    async def test_a_call_that_is_sent_again_while_it_runs_is_joined(self) -> None:
        """A caller that has lost its connection can reconnect and get the result."""
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                log, until = Path(folder) / "log", Path(folder) / "go"
                arguments = json.dumps({"log": str(log), "until": str(until)})
                envelope = _call("backend_once", arguments)
                first = asyncio.create_task(_all(backend, envelope))
                await _exists(log)
                second = asyncio.create_task(_all(backend, envelope))
                await asyncio.sleep(0)
                until.touch()
                _is("the values", [_value(await first), _value(await second)], [1, 1])

    async def test_a_detached_call_outlives_its_caller(self) -> None:
        """The process that continues the run submits the same call and gets its result."""
        async with self._opened() as backend:
            if not backend.capabilities.detach:
                return
            detachable = cast("DetachableBackend", backend)
            with tempfile.TemporaryDirectory() as folder:
                log, until = Path(folder) / "log", Path(folder) / "go"
                arguments = json.dumps({"log": str(log), "until": str(until)})
                envelope = _call("backend_once", arguments)
                stream = detachable.submit(envelope, is_detached=_yes)
                async with aclosing(stream):
                    async for event in stream:
                        if event.kind == "started":
                            break
                until.touch()
                _is("the value", _value(await _all(backend, envelope)), 1)

    # --- workers that die -------------------------------------------------------------------------

    async def test_a_call_whose_worker_dies_is_lost(self) -> None:
        """It runs again only if trusted code allows it, and is not reported as a failure."""
        if not self.killable:
            return
        async with self._opened() as backend:
            with tempfile.TemporaryDirectory() as folder:
                events = await self._killed(backend, folder, _waiting(folder))
            at_least_once = backend.capabilities.delivery == "at_least_once"
            if not at_least_once:
                _is("the status", events[-1].payload["status"], "lost")
            await self._works(backend)

    async def test_an_idempotent_call_is_run_again_when_its_worker_dies(self) -> None:
        """A new attempt has its own numbers from zero and is marked as restarted."""
        if not self.killable:
            return
        async with self._opened() as backend:
            if not backend.capabilities.restarts:
                return
            with tempfile.TemporaryDirectory() as folder:
                events = await self._killed(backend, folder, _waiting(folder, idempotent=True))
            second = [one for one in events if one.attempt == 2]  # noqa: PLR2004 - the next one
            _is("the numbers", [one.seq for one in second], list(range(len(second))))
            _is("the first of them", second[0].kind, "restarted")
            _is("the value", _value(events), "attempt 2")

    async def test_workers_that_are_killed_again_and_again_leave_nothing_behind(self) -> None:
        """Each call is lost, the next one works, and no descriptor or thread leaks."""
        if not self.killable:
            return
        async with self._opened() as backend:
            await self._works(backend)
            before = _belongings()
            for _ in range(self.kills):
                with tempfile.TemporaryDirectory() as folder:
                    await self._killed(backend, folder, _waiting(folder))
            await self._works(backend)
            await _until(
                lambda: all(
                    now <= then + 8 for now, then in zip(_belongings(), before, strict=True)
                ),
                f"as few descriptors and threads as before ({before}, now {_belongings()})",
            )

    # --- the backend itself -----------------------------------------------------------------------

    async def test_health_counts_what_runs(self) -> None:
        """An idle backend reports that it is idle."""
        async with self._opened() as backend:
            await self._works(backend)
            health = await backend.health()
            async with asyncio.timeout(PATIENCE):
                while health.busy:  # the result can come just before its worker is free
                    await asyncio.sleep(0.01)
                    health = await backend.health()
            _is("its class", type(health), BackendHealth)
            _is("ok, busy and waiting", (health.ok, health.busy, health.waiting), (True, 0, 0))

    async def test_closing_ends_what_runs_and_may_be_done_twice(self) -> None:
        """Waiting callers get a result, and the body is cleaned up or killed."""
        backend = await self.backend()
        with tempfile.TemporaryDirectory() as folder:
            task = asyncio.create_task(_all(backend, _waiting(folder)))
            await _exists(Path(folder) / "started")
            await backend.aclose()
            status = (await asyncio.wait_for(task, PATIENCE))[-1].payload["status"]
            if status not in {"cancelled", "lost"}:
                raise BackendLawError(f"the status of a call of a closed backend is {status!r}")
            await backend.aclose()

    # --- helpers ----------------------------------------------------------------------------------

    @asynccontextmanager
    async def _opened(self) -> AsyncGenerator[ToolBackend]:
        backend = await self.backend()
        try:
            yield backend
        finally:
            await backend.aclose()

    async def _works(self, backend: ToolBackend) -> None:
        events = await _all(backend, _call("backend_echo", '{"value": "works"}'))
        _is("the next call", _value(events), "works")

    async def _killed(
        self, backend: ToolBackend, folder: str, envelope: CallEnvelope
    ) -> list[CallEvent]:
        task = asyncio.create_task(_all(backend, envelope))
        try:
            started = Path(folder) / "started"
            await _until(lambda: started.exists() and bool(started.read_text()), "its start")
            await self.kill_worker(backend, int(started.read_text()))
            return await asyncio.wait_for(task, PATIENCE)
        finally:
            task.cancel()


def _call(tool: str, arguments: str, **more: Any) -> CallEnvelope:
    return CallEnvelope(call_id=uuid.uuid4().hex, tool=tool, arguments=arguments, **more)


def _waiting(folder: str, **more: Any) -> CallEnvelope:
    return _call("backend_wait", json.dumps({"folder": folder}), **more)


async def _yes() -> bool:
    return True


async def _all(backend: ToolBackend, envelope: CallEnvelope) -> list[CallEvent]:
    async with asyncio.timeout(3 * PATIENCE), aclosing(backend.submit(envelope)) as stream:
        return [event async for event in stream]


def _value(events: list[CallEvent]) -> Any:
    return value_of(events[-1].payload, Call())


@asynccontextmanager
async def _received() -> AsyncGenerator[tuple[list[Event], ToolContext[Any]]]:
    events: list[Event] = []
    yield events, ToolContext(tool_call_id="call", emit=events.append)


def _lines(events: list[Event]) -> list[str]:
    return [getattr(one, "data", "") for one in events if one.type == "notify_stream_event"]


async def _exists(path: Path) -> None:
    await _until(path.exists, f"{path.name!r} to be noted")


async def _until(condition: Callable[[], bool], what: str) -> None:
    latest = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > latest:
            raise BackendLawError(f"waited {PATIENCE:g} s for {what}: it did not come")
        await asyncio.sleep(0.005)


def _belongings() -> tuple[int, int]:
    gc.collect()
    descriptors = Path("/proc/self/fd")
    return (
        len(list(descriptors.iterdir())) if descriptors.exists() else 0,
        threading.active_count(),
    )


def _is(what: str, value: Any, expected: Any) -> None:
    if value != expected:
        raise BackendLawError(f"{what}: expected {expected!r:.500}, got {value!r:.500}")
