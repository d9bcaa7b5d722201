"""The background loop: sync code can call async functions from any thread."""

# pyright: reportPrivateUsage=false

from __future__ import annotations

import asyncio
import contextlib
import functools
import gc
import os
import signal
import subprocess
import sys
import threading
import weakref
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools.concurrency import bridge as _bridge
from agents_tools.concurrency.bridge import run_sync
from agents_tools.concurrency.threads import run_in_thread
from agents_tools.errors import (
    ToolCancelledError,
    ToolLostError,
    ToolOverloadedError,
    ToolTimeoutError,
    UserError,
    UserTypeError,
    UserValueError,
)
from agents_tools.mcp import call_async_from_sync
from tests.waiting import BOUND

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).parents[1]
PATIENCE = BOUND
BOTH = pytest.mark.parametrize("call", [call_async_from_sync, run_sync])


@pytest.fixture(autouse=True)
def _no_orphan_task() -> Iterator[None]:
    """Check that no test leaves a task on the background loop."""
    yield
    assert call_async_from_sync(_others_done, timeout=PATIENCE)


async def _others_done() -> bool:
    others = asyncio.all_tasks() - {asyncio.current_task()}
    if not others:
        return True
    _, left = await asyncio.wait(others, timeout=2)
    return not left


async def add(a: int, b: int) -> int:
    """Add, after giving way once."""
    await asyncio.sleep(0)
    return a + b


async def where() -> threading.Thread:
    """Return the thread on which this runs."""
    return threading.current_thread()


class Sleeper:
    """An async function that waits forever and records how it ends."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.cleaned_up = threading.Event()
        self.error: BaseException | None = None

    async def __call__(self) -> None:
        """Wait until cancelled."""
        self.begun.set()
        try:
            await asyncio.get_running_loop().create_future()
        except BaseException as error:
            self.error = error
            raise
        finally:
            await asyncio.sleep(0)
            self.cleaned_up.set()


def run_script(source: str, *, within: float = BOUND) -> subprocess.CompletedProcess[str]:
    """Run a program in its own process, with every warning an error."""
    return subprocess.run(  # noqa: S603 - its own interpreter, with a text from this file
        [sys.executable, "-W", "error", "-c", source],
        capture_output=True,
        text=True,
        timeout=within,
        check=False,
        cwd=ROOT,
    )


@pytest.mark.requirement("B38")
@BOTH
def test_sync_code_gets_the_result_of_an_async_function(call: Callable[..., Any]) -> None:
    assert call(add, 1, b=2) == 3


def test_every_call_shares_one_daemon_thread() -> None:
    """Connections made in one call must be usable in the next, on the same loop."""
    thread = call_async_from_sync(where)
    assert thread is run_sync(where)
    assert thread.daemon
    assert thread.name == "agents-tools-bridge"


def test_calls_from_many_threads_at_once_start_one_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two background loops would split connections between them."""
    monkeypatch.setattr(_bridge, "_bridge", None)
    barrier = threading.Barrier(8, timeout=PATIENCE)
    seen: list[threading.Thread] = []

    def ask() -> None:
        barrier.wait()
        seen.append(call_async_from_sync(where, timeout=PATIENCE))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert len(seen) == 8
    assert len(set(seen)) == 1


def test_calls_from_many_threads_run_concurrently() -> None:
    """A waiting call must not block the others."""
    meeting: list[asyncio.Barrier] = []

    async def meet() -> int:
        if not meeting:
            meeting.append(asyncio.Barrier(8))
        return await meeting[0].wait()

    places: list[int] = []
    threads = [
        threading.Thread(target=lambda: places.append(call_async_from_sync(meet, timeout=PATIENCE)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(PATIENCE)
    assert sorted(places) == list(range(8))


def test_context_variables_are_copied_to_the_function() -> None:
    """Values set there do not change the context of the caller."""
    var = ContextVar[str]("var")
    var.set("caller")

    async def look_and_set() -> str:
        seen = var.get()
        var.set("function")
        return seen

    assert call_async_from_sync(look_and_set) == "caller"
    assert call_async_from_sync(look_and_set) == "caller"
    assert var.get() == "caller"


def test_run_sync_passes_a_timeout_argument_to_the_function() -> None:
    """Only `call_async_from_sync` has its own timeout parameter."""

    async def wait(timeout: float) -> float:  # noqa: ASYNC109 - the name is the point
        return timeout

    assert run_sync(wait, timeout=3.0) == 3.0


@pytest.mark.requirement("F44")
async def test_a_call_inside_a_running_loop_works() -> None:
    """A sync library in a notebook has a loop running around it."""
    assert call_async_from_sync(add, 1, 2, timeout=PATIENCE) == 3
    assert run_sync(add, 3, 4) == 7


@pytest.mark.requirement("B38", "F44")
async def test_calls_nest_through_worker_threads() -> None:
    """A tool called over the bridge may call another one over it from its thread."""

    def sync_tool(depth: int) -> int:
        return 0 if depth == 0 else 1 + call_async_from_sync(async_tool, depth - 1)

    async def async_tool(depth: int) -> int:
        return await run_in_thread(sync_tool, depth)

    async with asyncio.timeout(PATIENCE):
        assert await run_in_thread(sync_tool, 10) == 10


@pytest.mark.requirement("F44")
@BOTH
def test_a_call_on_the_background_thread_is_refused(call: Callable[..., Any]) -> None:
    """The loop would wait for itself forever; the message says what to write instead."""

    async def outer() -> Any:
        return call(add, 1, 2)

    with pytest.raises(UserError, match=r"add .* wait for itself.*`await add\(…\)` there, or"):
        call_async_from_sync(outer, timeout=PATIENCE)


@pytest.mark.parametrize("kind", [ValueError, KeyError, SystemExit, KeyboardInterrupt])
def test_an_exception_of_the_function_is_raised_to_the_caller(kind: type[BaseException]) -> None:
    """The same exception object is raised, and the loop works for the next call."""
    error = kind("x")

    async def fail() -> None:
        await asyncio.sleep(0)
        raise error

    with pytest.raises(kind) as caught:
        run_sync(fail)
    assert caught.value is error
    assert run_sync(add, 1, 2) == 3


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
def test_a_task_that_raises_a_loop_ending_exception_does_not_end_the_loop(
    kind: type[BaseException],
) -> None:
    """Asyncio lets these two stop the loop; a shared loop has to continue."""

    async def fail() -> None:
        raise kind

    async def start_and_wait() -> str:
        task = asyncio.create_task(fail())
        with contextlib.suppress(kind):
            await task
        return "went on"

    thread = run_sync(where)
    assert call_async_from_sync(start_and_wait, timeout=PATIENCE) == "went on"
    assert run_sync(where) is thread


def test_a_function_that_calls_loop_stop_does_not_end_the_loop() -> None:
    """The loop is shared."""

    async def stop() -> str:
        asyncio.get_running_loop().stop()
        await asyncio.sleep(0)
        return "went on"

    assert call_async_from_sync(stop, timeout=PATIENCE) == "went on"


def test_a_function_that_raises_cancelled_error_is_a_cancelled_call() -> None:
    """Raised as it is, the error would look like a cancellation of the caller's own task."""

    async def give_up() -> None:
        raise asyncio.CancelledError

    with pytest.raises(ToolCancelledError, match="give_up was cancelled"):
        call_async_from_sync(give_up, timeout=PATIENCE)


def test_a_task_cancelled_before_its_first_step_ends_the_call() -> None:
    """The function never runs then, so it cannot notify the caller."""
    begun: list[bool] = []

    async def work() -> None:
        begun.append(True)

    call = _bridge._BridgeCall(_bridge._running_bridge(), work, (), {})

    def start_and_cancel() -> None:
        call.start()
        call._cancel()

    call.bridge.loop.call_soon_threadsafe(start_and_cancel)
    returned, error = call.outcome.result(PATIENCE)
    assert not returned
    assert isinstance(error, asyncio.CancelledError)
    assert begun == []


def test_a_timeout_ends_the_wait_and_cancels_the_function() -> None:
    """The caller returns at the deadline, and nothing keeps running."""
    sleeper = Sleeper()
    with pytest.raises(ToolTimeoutError, match=r"Sleeper had no result after 0\.02 s") as caught:
        call_async_from_sync(sleeper, timeout=0.02)
    assert isinstance(caught.value, TimeoutError)
    assert sleeper.cleaned_up.wait(PATIENCE)
    assert isinstance(sleeper.error, asyncio.CancelledError)


def test_a_function_that_cleans_up_without_its_caller_is_kept_alive() -> None:
    """A loop holds its tasks weakly: without a caller, they could be garbage collected."""
    cleaning, cleaned_up = threading.Event(), threading.Event()
    last_step: list[weakref.ref[asyncio.Future[None]]] = []

    async def work() -> None:
        loop = asyncio.get_running_loop()
        try:
            await loop.create_future()
        finally:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.sleep(0)
            future = loop.create_future()
            last_step.append(weakref.ref(future))
            cleaning.set()
            await future
            cleaned_up.set()

    with pytest.raises(ToolTimeoutError):
        call_async_from_sync(work, timeout=0.02)
    assert cleaning.wait(PATIENCE)
    run_sync(add, 1, 2)  # the loop waits for the future now

    async def collect_and_go_on() -> bool:
        gc.collect()
        future = last_step[0]()
        if future is not None:
            future.set_result(None)
        return future is not None

    assert run_sync(collect_and_go_on)
    assert cleaned_up.wait(PATIENCE)


def test_a_timeout_ends_the_wait_for_a_function_that_blocks_the_loop() -> None:
    """The waiting thread watches the deadline, so a blocked loop cannot delay it."""
    opened = threading.Event()

    async def block() -> None:
        opened.wait(PATIENCE)

    with pytest.raises(ToolTimeoutError):
        call_async_from_sync(block, timeout=0.02)
    opened.set()
    assert run_sync(add, 1, 2) == 3


@pytest.mark.parametrize("timeout", [float("inf"), 1e300, 60])
def test_a_very_long_timeout_is_accepted(timeout: float) -> None:
    """Operating systems refuse to wait for more than some years at once."""
    assert call_async_from_sync(add, 1, 2, timeout=timeout) == 3


@pytest.mark.parametrize("timeout", [0, -1.0, float("nan")])
def test_a_timeout_that_is_not_positive_is_refused(timeout: float) -> None:
    """It is an error of the caller, not a slow function."""
    with pytest.raises(UserValueError, match="expected a positive number of seconds"):
        call_async_from_sync(add, 1, 2, timeout=timeout)


def test_an_object_that_is_not_an_async_function_is_refused() -> None:
    """Each mistake has its own remedy."""
    not_async: Any = abs
    with pytest.raises(
        UserTypeError, match=r"abs is not an async function: it returned int.*directly"
    ):
        run_sync(not_async, -1)
    coroutine: Any = add(1, 2)
    with pytest.raises(UserTypeError, match=r"Pass the async function.*: add, …, not add\(…\)"):
        run_sync(coroutine)
    nothing: Any = None
    with pytest.raises(UserTypeError, match="expected an async function, got NoneType"):
        run_sync(nothing)


def test_a_partial_of_an_async_function_is_accepted() -> None:
    """It is the way to pass a keyword named `timeout`."""
    assert call_async_from_sync(functools.partial(add, 1, b=2), timeout=PATIENCE) == 3


def test_a_failed_call_leaves_no_reference_cycle() -> None:
    """Arguments and errors must be freed without the garbage collector."""

    class Payload:
        pass

    async def fail(_: Payload) -> None:
        raise ValueError

    def call() -> weakref.ref[Payload]:
        payload = Payload()
        with contextlib.suppress(ValueError):
            run_sync(fail, payload)
        return weakref.ref(payload)

    gc.collect()
    gc.disable()
    try:
        ref = call()
        run_sync(add, 1, 2)  # the loop has let go of the call before
        assert ref() is None
    finally:
        gc.enable()


_INTERRUPTED = """
import asyncio, sys
from agents_tools.concurrency.bridge import call_async_from_sync, run_sync

async def work():
    print("begun", flush=True)
    try:
        await asyncio.get_running_loop().create_future()
    except asyncio.CancelledError:
        print("cancelled", flush=True)
        {on_cancel}
        raise
    finally:
        print("cleaned up", flush=True)

async def count():
    return len(asyncio.all_tasks())

try:
    {call}
except KeyboardInterrupt:
    print("interrupted", run_sync(count), flush=True)
"""


def interrupted(source: str, *, times: int = 1) -> tuple[int, str, str]:
    """Run the program, press Ctrl-C after each printed line, and return the code and outputs."""
    program = subprocess.Popen(  # noqa: S603 - its own interpreter, with a text from this file
        [sys.executable, "-W", "error", "-c", source],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    with program:
        try:
            assert program.stdout is not None
            output = ""
            for _ in range(times):
                output += program.stdout.readline()
                program.send_signal(signal.SIGINT)
            out, err = program.communicate(timeout=BOUND)
            return program.returncode, output + out, err
        finally:
            program.kill()


@pytest.mark.requirement("F11")
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
@pytest.mark.parametrize("call", ["run_sync(work)", "call_async_from_sync(work, timeout=60)"])
def test_ctrl_c_cancels_the_function_and_is_raised(call: str) -> None:
    """The function cleans up first, as under `asyncio.run`, and no task is left."""
    code, out, err = interrupted(_INTERRUPTED.format(call=call, on_cancel="await asyncio.sleep(0)"))
    assert out == "begun\ncancelled\ncleaned up\ninterrupted 1\n"
    assert (code, err) == (0, "")


@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_a_second_ctrl_c_does_not_wait_for_the_cleanup() -> None:
    patient = "from agents_tools.concurrency import bridge\nbridge._GRACE = 600\n"
    source = _INTERRUPTED.format(call="run_sync(work)", on_cancel="await asyncio.sleep(600)")
    code, out, err = interrupted(patient + source, times=2)
    assert out == "begun\ncancelled\ninterrupted 2\n"
    assert (code, err) == (0, "")


@pytest.mark.requirement("F11")
@pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX signals")
def test_an_unhandled_ctrl_c_ends_the_program() -> None:
    """With the exit code of an interrupted program, and in time."""
    source = (
        "import asyncio\nfrom agents_tools.concurrency.bridge import run_sync\n"
        "async def work():\n    print('begun', flush=True)\n    await asyncio.sleep(600)\n"
        "run_sync(work)\n"
    )
    code, _, err = interrupted(source)
    assert code == -signal.SIGINT
    assert err.rstrip().endswith("KeyboardInterrupt")


@pytest.mark.requirement("F8")
def test_a_process_ends_though_a_function_hangs() -> None:
    """Background work must not keep the process alive."""
    done = run_script(
        """
import asyncio
from agents_tools.concurrency.bridge import call_async_from_sync
from agents_tools.errors import ToolTimeoutError
async def hang():
    while True:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            pass
try:
    call_async_from_sync(hang, timeout=0.02)
except ToolTimeoutError:
    print("timeout")
"""
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "timeout\n", "")


@pytest.mark.requirement("F44")
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
def test_the_bridge_works_in_a_forked_process_and_in_its_parent() -> None:
    """The child inherits the loop of the parent but not its thread."""
    done = run_script(
        """
import asyncio, gc, os, sys, threading, warnings
from agents_tools.concurrency import bridge as _bridge
from agents_tools.concurrency.bridge import call_async_from_sync, run_sync
warnings.simplefilter("ignore", DeprecationWarning)  # fork with threads

async def add(a, b):
    await asyncio.sleep(0.001)
    return a + b

def child():
    sys.stdout.flush()
    pid = os.fork()
    if not pid:
        status = 1
        try:
            gc.collect()
            assert call_async_from_sync(add, 3, 4, timeout=30) == 7
            status = 0
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])

assert run_sync(add, 1, 2) == 3
print("idle", child())

locked, leave = threading.Event(), threading.Event()
def hold():
    with _bridge._lock:
        locked.set()
        leave.wait(30)
holder = threading.Thread(target=hold)
holder.start()
locked.wait(30)
print("lock held", child())
leave.set()
holder.join()

async def fork_on_the_loop():
    return child()
print("on the loop", run_sync(fork_on_the_loop))
async def at_work():
    first = asyncio.create_task(add(1, 1))
    code = await asyncio.to_thread(child)
    return code, await first
print("at work", run_sync(at_work), flush=True)  # or the child prints it, too

pid = os.fork()
if not pid:  # a child that ends the ordinary way
    assert run_sync(add, 3, 4) == 7
    sys.exit(0)
print("ordinary end", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
assert run_sync(add, 1, 2) == 3

# A bridge whose thread is about to begin: the child must not close its loop.
starting = _bridge._Bridge.__new__(_bridge._Bridge)
starting.loop, starting.tasks = asyncio.new_event_loop(), set()
starting.thread = threading.Thread(target=starting.loop.run_forever, daemon=True)
_bridge._bridge = starting
del starting
print("starting", child())
_bridge._bridge.thread.start()
assert call_async_from_sync(add, 1, 2, timeout=30) == 3
"""
    )
    assert done.stderr == ""
    assert done.stdout == (
        "idle 0\nlock held 0\non the loop 0\nat work (0, 2)\nordinary end 0\nstarting 0\n"
    )
    assert done.returncode == 0


def test_a_loop_whose_thread_has_ended_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waiting callers get an error, and the next call works."""
    monkeypatch.setattr(_bridge, "_TICK", 0.01)
    asked = threading.Event()
    broken = _bridge._Bridge.__new__(_bridge._Bridge)
    broken.loop = asyncio.new_event_loop()
    broken.tasks = set()
    broken.thread = threading.Thread(target=asked.wait, args=(PATIENCE,))
    broken.thread.start()

    def ask(_: object) -> None:
        asked.set()

    monkeypatch.setattr(broken.loop, "call_soon_threadsafe", ask)
    monkeypatch.setattr(_bridge, "_bridge", broken)
    with pytest.raises(ToolLostError, match="background loop has ended"):
        run_sync(add, 1, 2)
    assert run_sync(add, 1, 2) == 3
    assert run_sync(where) is not broken.thread
    broken.loop.close()


def test_a_call_is_overloaded_if_no_thread_can_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Nothing was run, so the call can be retried."""

    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(_bridge, "_bridge", None)
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        with pytest.raises(ToolOverloadedError, match="can't start new thread"):
            run_sync(add, 1, 2)
    assert run_sync(add, 1, 2) == 3
