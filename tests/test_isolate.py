"""Tools in processes that can be killed: `policies.isolate` and `ProcessBackend`."""

from __future__ import annotations

import asyncio
import json
import os
import re
import signal
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from agents_tools import FunctionTool, ToolContext, function_tool, listen, policies
from agents_tools.errors import ToolLostError, UserError
from agents_tools.execution import ProcessBackend, run_on
from agents_tools.policies import isolate
from tests import isolated_tools as tools
from tests.scale import slow_case
from tests.waiting import comes

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Iterator

    from agents_tools.events import Event

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="needs POSIX worker processes")


@asynccontextmanager
async def isolated(
    tool: FunctionTool[..., Any], **options: Any
) -> AsyncGenerator[FunctionTool[..., Any]]:
    policy = isolate(**options)
    try:
        yield policy(tool)
    finally:
        await policy.aclose()


@pytest.fixture(scope="module")
def shared() -> Iterator[ProcessBackend]:
    """Return one set of workers for all tests that need no settings of their own."""
    backend = ProcessBackend("tests.isolated_tools", workers=2)
    yield backend
    asyncio.run(backend.aclose())


def is_gone(pid: int) -> bool:
    try:
        line = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return line.rpartition(")")[2].split()[0] in {"Z", "X"}


async def pid_in(folder: Path, name: str = "pid") -> int:
    await comes(lambda: (folder / name).exists() and bool((folder / name).read_text()))
    return int((folder / name).read_text())


# --- unchanged behaviour


async def test_the_function_runs_in_another_process_and_its_value_comes_back() -> None:
    async with isolated(tools.whoami) as tool:
        first = await tool.invoke()
        assert first["parent"] == os.getpid() != first["pid"]
        assert await tool.invoke() == first


async def test_the_model_reads_the_same_text_of_an_unusual_result_or_error(
    shared: ProcessBackend,
) -> None:
    """The values cannot be sent to this process: the worker describes them."""
    for tool, arguments in (
        (tools.odd_result, {"kind": "table"}),
        (tools.odd_result, {"kind": "nothing"}),
        (tools.odd_result, {"kind": "lock"}),
        (tools.fail_in_tasks, {"message": "No tea."}),
        (tools.fail_in_tasks, {}),
        (tools.fail_silently, {}),
        *(
            (tools.fail_with, {"kind": kind})
            for kind in ("library", "model", "other", "exit", "key")
        ),
    ):
        text = json.dumps(arguments)
        async with listen():
            here = await tool.call(None, text)
            there = await run_on(shared)(tool).call(None, text)
        assert (there.status, there.output) == (here.status, here.output)
        assert _without_id(there.public_message) == _without_id(here.public_message)


def _without_id(message: str | None) -> str:
    return re.sub(r"error [0-9a-f]{8}", "error ID", str(message))


async def test_events_of_streams_and_nested_calls_keep_their_path(
    shared: ProcessBackend,
) -> None:
    """They have the id of this call; those of nested calls are below it."""
    emitted: list[Event] = []
    context = ToolContext(tool_call_id="c", emit=emitted.append)
    outcome = await run_on(shared)(tools.count).call(context, '{"to": 3}')
    assert outcome.value == "counted to 3"
    assert [(one.type, one.path) for one in emitted] == [
        ("tool_stream_start_event", ("c",)),
        *[("notify_stream_event", ("c",))] * 3,
        ("tool_stream_end_event", ("c",)),
    ]
    assert [one.seq for one in emitted] == [0, 1, 2, 3, 4]
    emitted.clear()
    context = ToolContext(tool_call_id="c", emit=emitted.append)
    assert (await run_on(shared)(tools.nested).call(context, '{"a": 1}')).value == 2
    inner = [one for one in emitted if len(one.path) == 2]
    assert [one.tool_name for one in inner] == ["add", "add"]
    assert {one.path[0] for one in inner} == {"c"}


async def test_a_stream_of_an_isolated_tool_can_be_read(shared: ProcessBackend) -> None:
    async with run_on(shared)(tools.count).stream(to=500) as stream:
        printed = [event async for event in stream if event.type == "notify_stream_event"]
    assert [event.data for event in printed] == [str(n) for n in range(500)]
    assert stream.result == "counted to 500"


async def test_a_tool_has_its_call_but_not_the_context_object(
    shared: ProcessBackend,
) -> None:
    """The context object is not sent to the worker."""
    tool = run_on(shared)(tools.read_context)
    context = ToolContext({"database": 1}, tool_call_id="c", run_id="r")
    key = context.idempotency_key
    seen = (await tool.call(context, '{"what": "all"}')).value
    assert seen == {"key": key, "attempt": 1, "has_deadline": False}


@pytest.mark.parametrize(
    ("use", "named"),
    [
        (".database", "ctx.context.database is"),
        ("['database']", "ctx.context['database'] is"),
        (" or", "ctx.context is"),
        (" in", "ctx.context is"),
        (" in a loop", "ctx.context is"),
        (".database =", "ctx.context.database is"),
        ("[] =", "ctx.context['database'] is"),
        ("(...)", "ctx.context(...) is"),
    ],
)
async def test_each_use_of_the_context_object_in_a_worker_is_an_error(
    shared: ProcessBackend, use: str, named: str
) -> None:
    """The error names the remedy; `ctx.context or default` must not use the default silently."""
    tool = run_on(shared)(tools.read_context)
    outcome = await tool.call(ToolContext({"database": 1}), json.dumps({"what": use}))
    assert outcome.status == "tool_error"
    assert named in str(outcome.output)
    assert "Pass the values that the tool needs as arguments" in str(outcome.output)


async def test_policies_run_in_this_process_in_any_order(tmp_path: Path) -> None:
    """They run once: the worker runs the bare function."""
    log = tmp_path / "log"
    async with isolated(policies.retry(3, backoff=0, on=ConnectionError)(tools.fail)) as tool:
        assert await tool.invoke(message="no", log=str(log)) == "third time lucky"
        assert log.read_text() == "ran\n" * 3
    async with isolated(tools.add) as tool:
        renamed = policies.rename("plus")(tool)
        assert await renamed.invoke(a=1, b=2) == 3
        assert "isolate" in repr(renamed)


async def test_class_based_tools_run_in_workers() -> None:
    """A worker finds them by name; the output for the model is the same."""
    there = "tests.isolated_tools:CLASS_BASED"
    async with ProcessBackend(there, workers=1) as backend:
        tool = run_on(backend)(tools.CLASS_BASED)  # type: ignore[type-var]
        outcome = await tool.call(None, '{"number": 21}')
    here = await tools.CLASS_BASED.as_function_tool().call(None, '{"number": 21}')
    assert outcome.output == here.output == '{"total":42}'


@pytest.mark.slow
async def test_a_tool_works_from_several_event_loops_and_threads() -> None:
    """Workers are not bound to an event loop."""
    async with isolated(tools.add, workers=2) as tool:
        assert await asyncio.to_thread(tool.invoke_sync, a=1, b=2) == 3
        results = await asyncio.gather(
            *(tool.invoke(a=n, b=n) for n in range(10)),
            *(asyncio.to_thread(lambda n=n: asyncio.run(tool.invoke(a=n, b=n))) for n in range(4)),
        )
    assert results == [0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 0, 2, 4, 6]


async def test_printed_text_does_not_mix_with_results(
    capfd: pytest.CaptureFixture[str],
) -> None:
    """It goes to the standard error of this process."""
    printed: list[str] = []
    async with isolated(tools.shout) as tool:
        assert await tool.invoke(text="hello") == "shouted"
        await comes(lambda: printed.append(capfd.readouterr().err) or len("".join(printed)) >= 18)
    assert "".join(printed) == "hello\n" * 3


# --- tools that must be killed


@pytest.mark.requirement("F7", "F6")
async def test_a_loop_that_holds_the_interpreter_is_killed_at_the_deadline(tmp_path: Path) -> None:
    """The result is on time, this process is not blocked, and the worker is replaced."""
    ticks = 0
    async with isolated(policies.timeout(1.5)(tools.hold_the_interpreter)) as tool:
        call = asyncio.create_task(tool.call(None, json.dumps({"folder": str(tmp_path)})))
        while not call.done():
            ticks += 1
            await asyncio.sleep(0.01)
        outcome = await call
        pid = await pid_in(tmp_path)
        await comes(lambda: is_gone(pid))
    assert outcome.status == "timeout"
    assert ticks > 10


@pytest.mark.requirement("F12")
@pytest.mark.parametrize(
    ("how", "why"), [("exit", "exit code 3"), ("segfault", "signal 11, SIGSEGV")]
)
async def test_a_worker_that_dies_loses_its_call_and_is_replaced(how: str, why: str) -> None:
    """It is unknown whether the call took effect; the next call works."""
    async with ProcessBackend(tools.ALL, workers=1) as backend:
        outcome = await run_on(backend)(tools.leave).call(None, json.dumps({"how": how}))
        assert outcome.status == "lost"
        assert why in str(outcome.output)
        assert isinstance(outcome.error, ToolLostError)
        assert await run_on(backend)(tools.add).invoke(a=1, b=1) == 2
        assert (await backend.health()).workers == 1


async def test_sys_exit_is_an_ordinary_tool_error(shared: ProcessBackend) -> None:
    outcome = await run_on(shared)(tools.leave).call(None, '{"how": "bye"}')
    assert outcome.status == "tool_error"
    assert "SystemExit" in str(outcome.output)
    assert "bye" not in str(outcome.public_message)


@pytest.mark.requirement("F13")
async def test_the_memory_limit_is_enforced() -> None:
    """A tool that allocates too much fails, and its worker is replaced."""
    async with isolated(tools.allocate, memory=1 << 30) as tool:
        outcome = await tool.call(None, json.dumps({"size": 1 << 31}))
        assert outcome.status == "tool_error"
        assert "MemoryError" in str(outcome.output)
        assert await tool.invoke(size=1000) == 1000


@pytest.mark.parametrize("which", [slow_case("wait"), "wait_in_a_thread"])
async def test_a_cancelled_call_frees_its_worker(which: str, tmp_path: Path) -> None:
    """An async tool cleans up and its worker stays; a thread can only be ended with its process."""
    tool = getattr(tools, which)
    async with ProcessBackend([tool, tools.whoami], workers=1) as backend:
        call = asyncio.create_task(run_on(backend)(tool).invoke(folder=str(tmp_path)))
        pid = await pid_in(tmp_path)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        after = (await run_on(backend)(tools.whoami).invoke())["pid"]
        assert (after == pid) is (tmp_path / "cleaned").exists() is (which == "wait")


@pytest.mark.slow
async def test_processes_started_by_a_tool_end_with_its_worker(tmp_path: Path) -> None:
    """Including a daemon in its own session."""
    async with isolated(policies.timeout(1.5)(tools.daemonize)) as tool:
        outcome = await tool.call(None, json.dumps({"folder": str(tmp_path)}))
        assert outcome.status == "timeout"
        daemon = await pid_in(tmp_path, "child")
        await comes(lambda: is_gone(daemon))


@pytest.mark.slow
async def test_a_worker_that_was_killed_between_calls_is_replaced() -> None:
    async with isolated(tools.whoami) as tool:
        first = (await tool.invoke())["pid"]
        os.kill(first, signal.SIGKILL)
        await comes(lambda: is_gone(first))
        assert (await tool.invoke())["pid"] != first


@pytest.mark.slow
async def test_a_worker_is_replaced_after_its_maximum_number_of_calls() -> None:
    async with isolated(tools.whoami, max_calls=2) as tool:
        pids = [(await tool.invoke())["pid"] for _ in range(4)]
    assert len(set(pids)) == 2


async def test_a_result_that_is_too_large_is_reported_as_a_failure(
    shared: ProcessBackend,
) -> None:
    """One message has at most 64 MiB; the worker survives."""
    tool = run_on(shared)(tools.huge)
    outcome = await tool.call(None, json.dumps({"size": 65 << 20}))
    assert outcome.status == "tool_error"
    assert "too large" in str(outcome.output)
    assert await tool.invoke(size=3) == "xxx"


# --- what a worker inherits from this process


@pytest.mark.requirement("S22")
async def test_a_worker_inherits_no_file_descriptors(tmp_path: Path) -> None:
    """Not even inheritable ones."""
    with (tmp_path / "secret").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        async with isolated(tools.look_around) as tool:
            links = (await tool.invoke())["links"]
    assert not [link for link in links if "secret" in link]
    others = [one for one in links if not one.startswith(("socket:", "anon_inode:", "/proc/"))]
    assert len(others) <= 3


@pytest.mark.requirement("S21")
async def test_a_worker_inherits_few_environment_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """The usual ones of a user, and those that are passed explicitly."""
    monkeypatch.setenv("API_KEY", "secret")
    monkeypatch.setenv("LANG", "C.UTF-8")
    async with isolated(tools.look_around, environment={"MODE": "test"}) as tool:
        seen = (await tool.invoke())["environment"]
    allowed = {"HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER", "LANG", "LC_ALL", "LC_CTYPE"}
    allowed |= {"TZ", "TMPDIR", "MODE", "AGENTS_TOOLS_PROCESS"}
    assert set(seen) <= allowed
    assert (seen["MODE"], seen["LANG"]) == ("test", "C.UTF-8")


async def test_a_worker_uses_the_import_path_of_this_process() -> None:
    async with isolated(tools.look_around) as tool:
        seen = await tool.invoke()
    assert seen["cwd"] == str(Path.cwd())
    assert [one for one in sys.path if one] == [one for one in seen["path"] if one in sys.path]


# --- tools that cannot be isolated


class Holder:
    def method(self, x: int) -> int:
        return x


def shadowed(x: int) -> int:
    return x


first_shadowed = shadowed
globals()["shadowed"] = len


def test_a_function_that_workers_cannot_import_is_refused_at_the_declaration() -> None:
    """The error names the function, its location and the remedy."""

    def local(x: int) -> int:
        return x

    for function in (local, lambda x: x, Holder().method, Holder.method):
        tool = function_tool(function, name_override="it")
        with pytest.raises(UserError, match="Move it to the top level of a module") as caught:
            isolate()(tool)
        assert "test_isolate" in str(caught.value)
    by_hand = FunctionTool(name="m", params_json_schema={}, on_invoke_tool=tools.add.on_invoke_tool)
    with pytest.raises(UserError, match="made from functions"):
        isolate()(by_hand)
    with pytest.raises(UserError, match="workers= is invalid"):
        isolate(workers=0)(tools.add)
    with pytest.raises(UserError, match="Put the policy above `@function_tool`"):
        isolate()(tools.add.__wrapped__)  # type: ignore[type-var]


async def test_a_name_that_refers_to_another_object_is_reported() -> None:
    tool = isolate()(function_tool(first_shadowed))
    with pytest.raises(UserError, match="something else"):
        await tool.invoke(x=1)


async def test_a_module_that_cannot_be_imported_is_reported() -> None:
    for target, message in (
        ("tests.no_such_module", "No module named"),
        ("tests.isolated_tools:no_such_name", "has no 'no_such_name'"),
        ("tests.waiting", "has no tools"),
    ):
        async with ProcessBackend(target, workers=1) as backend:
            with pytest.raises(UserError, match=message):
                await run_on(backend)(tools.add).invoke(a=1, b=1)
    for target in ("module:", "", 7):
        with pytest.raises(UserError):
            ProcessBackend(target)


# --- programs

PROGRAM = """
import asyncio
import os
import sys
import threading
from pathlib import Path
from agents_tools import function_tool
from agents_tools.policies import isolate

folder = {folder!r}

@isolate()
@function_tool
def whoami() -> int:
    return os.getpid()

@isolate()
@function_tool
def hang() -> int:
    import re
    (Path(folder) / "pid").write_text(str(os.getpid()))
    return len(re.match("(a+)+$", "a" * 64 + "b"))
"""


def run_program(folder: Path, body: str) -> subprocess.Popen[str]:
    path = folder / "program.py"
    path.write_text(PROGRAM.format(folder=str(folder)) + body)
    return subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-W", "always", path],
        stdin=-1,
        stdout=-1,
        stderr=-1,
        text=True,
        cwd=Path.cwd(),
    )


@pytest.mark.slow
async def test_functions_of_the_main_program_are_found(tmp_path: Path) -> None:
    """A worker imports the program, whose main code is below `if __name__`."""
    body = """
class OutOfTea(Exception): pass

@isolate()
@function_tool
def pour() -> str:
    raise OutOfTea("no tea")

if __name__ == "__main__":
    print(whoami.invoke_sync() != os.getpid())
    print(asyncio.run(pour.on_invoke_tool(None, "{}")))
"""
    with run_program(tmp_path, body) as program:
        out, err = program.communicate(timeout=50)
    assert (out, err) == ("True\nTool 'pour' failed: OutOfTea: no tea\n", "")


async def test_a_program_that_calls_tools_at_import_is_refused(tmp_path: Path) -> None:
    """It would start workers of workers without end."""
    with run_program(tmp_path, "whoami.invoke_sync()") as program:
        _, err = program.communicate(timeout=50)
    assert 'below `if __name__ == "__main__":`' in err


@pytest.mark.slow
def test_a_function_from_an_interactive_session_is_refused() -> None:
    program = "from tests.isolated_tools import *\nfrom agents_tools.policies import *\n"
    program += "def f(x: int) -> int: return x\nisolate()(function_tool(f))"
    done = subprocess.run(  # noqa: S603 - this interpreter
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert "Move the function to a module" in done.stderr


@pytest.mark.requirement("F8")
@pytest.mark.parametrize("how", ["it ends", "kill -9"])
async def test_no_worker_outlives_its_program(how: str, tmp_path: Path) -> None:
    """Not even one with a blocked interpreter, and the program does not wait for it."""
    body = 'if __name__ == "__main__":\n'
    body += "    threading.Thread(target=hang.invoke_sync, daemon=True).start()\n"
    body += "    sys.stdin.readline()\n"
    with run_program(tmp_path, body) as program:
        worker = await pid_in(tmp_path)
        if how == "it ends":
            program.communicate("\n", timeout=50)
        else:
            program.kill()
    await comes(lambda: is_gone(worker))
