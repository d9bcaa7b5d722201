"""Servers in their own processes that fail, send wrong messages, flood the client or die."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import select
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncGenerator, Generator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest

import agents_tools
from agents_tools import FunctionTool, ToolProgressEvent, ToolTimeoutError
from agents_tools.errors import (
    MCPConnectionError,
    MCPError,
    MCPProtocolError,
    MCPTimeoutError,
    ToolLostError,
    UserError,
)
from agents_tools.mcp import MCPToolManager, ToolListChange, create_mcp_tools
from agents_tools.testing import call_tool
from tests.scale import IS_FULL, slow_case

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")

SERVER = Path(__file__).with_name("hostile_stdio.py")
ROOT = Path(agents_tools.__file__).parents[1]
BOUND = 45.0
"""Seconds after which a wait counts as endless."""
AT_ONCE = 5.0
"""Seconds for what has nothing to wait for, on a machine that may be slow."""
KILLS = 100 if IS_FULL else 10
TASK_ENDS = 2.0

NEEDS_TWO = pytest.mark.skipif(
    int(metadata.version("mcp").partition(".")[0]) < 2,
    reason="SDK 1.x supports one protocol era",
)
ERAS = pytest.mark.parametrize("mode", ["normal", pytest.param("modern", marks=NEEDS_TWO)])

Tool = FunctionTool[..., Any]


@dataclass(frozen=True, slots=True)
class ServerNotes:
    """The files that servers write in their folder."""

    folder: Path

    def lines(self, file: str) -> list[str]:
        path = self.folder / file
        return path.read_text().splitlines() if path.exists() else []

    def calls(self, tool: str) -> int:
        return self.lines("calls").count(tool)

    @property
    def pids(self) -> list[int]:
        return [int(line) for line in self.lines("starts")]

    @property
    def children(self) -> list[int]:
        return [int(line) for line in self.lines("children")]

    def command(self, mode: str = "normal") -> dict[str, Any]:
        args = ["-S", "-I", str(SERVER), mode, str(self.folder)]
        return {"command": sys.executable, "args": args}


@pytest.fixture
def notes(tmp_path: Path) -> Generator[ServerNotes]:
    """Return the notes of the servers of a test; all of them must have ended after it."""
    notes = ServerNotes(tmp_path)
    yield notes
    left = [pid for pid in (*notes.pids, *notes.children) if not has_ended(pid)]
    for pid in left:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    assert not left, f"processes have outlived the test: {left}"


def has_ended(pid: int, seconds: float = 5.0) -> bool:
    """Wait for the end of any process and return whether it ended."""
    try:
        descriptor = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([descriptor], [], [], seconds)[0])
    finally:
        os.close(descriptor)


@contextlib.asynccontextmanager
async def connected(
    notes: ServerNotes, mode: str = "normal", *, on_change: Any = None, **options: Any
) -> AsyncGenerator[tuple[MCPToolManager, dict[str, Tool]]]:
    """Yield a manager with one server, and its tools by their names on the server."""
    async with asyncio.timeout(BOUND), MCPToolManager(on_change=on_change) as manager:
        await manager.add_server("hostile", **notes.command(mode), **options)
        yield manager, tools_of(manager)


def tools_of(manager: MCPToolManager, server: str = "hostile") -> dict[str, Tool]:
    return {str(tool.origin.wire_name): tool for tool in manager.get_tools_by_server(server)}


async def call(tool: Tool, **arguments: Any) -> Any:
    """Call a tool as an agent does and check the event invariants."""
    return (await call_tool(tool, arguments)).outcome


async def still_works(tools: dict[str, Tool]) -> None:
    outcome = await call(tools["echo"], text="still here")
    assert (outcome.status, outcome.output) == ("ok", "still here")


async def connection_error(notes: ServerNotes, mode: str, **options: Any) -> MCPError:
    """Return the error with which a server cannot be added; its process has ended by then."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPError) as caught:
            await manager.add_server("hostile", **notes.command(mode), **options)
        assert caught.value.server == "hostile"
        assert "hostile" in str(caught.value)
        assert manager.get_server_names() == []
        assert manager.get_tools() == []
        assert all(has_ended(pid) for pid in notes.pids)
    return caught.value


# --- F25, S17: a server that dies in a call


@pytest.mark.requirement("F25")
async def test_a_call_whose_server_is_killed_is_lost_and_the_next_one_works(
    notes: ServerNotes,
) -> None:
    """The outcome of a call whose server died is unknown; the next call is not affected."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["die"])
        assert outcome.status == "lost"
        assert isinstance(outcome.error, ToolLostError)
        assert "hostile" in str(outcome.error)
        await still_works(tools)
    assert len(notes.pids) == 2
    assert notes.calls("die") == 1


@pytest.mark.requirement("F25")
async def test_the_error_of_a_call_whose_server_died_has_its_last_output(
    notes: ServerNotes,
) -> None:
    """The reason contains the exit code and the end of stderr."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["exit"])
        assert outcome.status == "lost"
        assert "exit code 7" in str(outcome.error)
        assert "last words 29" in str(outcome.error)
        assert "last words 9\n" not in str(outcome.error)
        await still_works(tools)


@pytest.mark.requirement("F25", "F28")
@pytest.mark.parametrize("name", ["half_line", "close_output"])
async def test_a_call_is_lost_when_its_answer_ends_in_the_middle(
    notes: ServerNotes, name: str
) -> None:
    """A partial answer is not an answer."""
    async with connected(notes) as (_, tools):
        assert (await call(tools[name])).status == "lost"
        await still_works(tools)


@pytest.mark.scaled
@pytest.mark.requirement("F25")
@pytest.mark.timeout(120)
async def test_many_kills_lose_as_many_calls_and_leave_nothing_behind(notes: ServerNotes) -> None:
    """No process, task or file descriptor is left over."""
    async with asyncio.timeout(100), MCPToolManager() as manager:
        await manager.add_server("hostile", **notes.command())
        tools = tools_of(manager)
        await call(tools["die"])
        await still_works(tools)
        files, tasks = open_files(), len(asyncio.all_tasks())
        for _ in range(KILLS):
            assert (await call(tools["die"])).status == "lost"
            await still_works(tools)
        assert await becomes_true(lambda: len(asyncio.all_tasks()) <= tasks)
        assert await becomes_true(lambda: open_files() <= files)
        assert len(set(notes.pids)) == KILLS + 2
        assert all(has_ended(pid) for pid in notes.pids[:-1])
        assert not has_ended(notes.pids[-1], 0)
        assert manager.get_stats()["by_server"]["hostile"]["connects"] == KILLS + 2
    assert has_ended(notes.pids[-1], 0)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def becomes_true(condition: Any) -> bool:
    """Run the loop until a condition holds; return whether it did."""
    until = asyncio.get_running_loop().time() + TASK_ENDS
    while not condition():
        if asyncio.get_running_loop().time() > until:
            return False
        await asyncio.sleep(0)
    return True


@pytest.mark.requirement("F25")
async def test_every_call_in_flight_has_one_outcome_when_the_server_dies(
    notes: ServerNotes,
) -> None:
    """Concurrent calls are all lost."""
    async with connected(notes) as (_, tools):
        calls = [asyncio.create_task(call(tools["hang"])) for _ in range(20)]
        await becomes_true(lambda: notes.calls("hang") == 20)
        assert (await call(tools["die"])).status == "lost"
        assert [outcome.status for outcome in await asyncio.gather(*calls)] == ["lost"] * 20
        await still_works(tools)
    assert len(notes.pids) == 2, "they share one new connection"


@pytest.mark.requirement("F25")
async def test_a_server_killed_between_two_calls_is_started_again(notes: ServerNotes) -> None:
    """A request that the server cannot have seen is sent to the new process."""
    async with connected(notes) as (_, tools):
        await still_works(tools)
        os.kill(notes.pids[0], signal.SIGKILL)
        assert has_ended(notes.pids[0])
        outcome = await call(tools["echo"], text="again")
        # lost, if the end of the process was not noticed yet
        assert outcome.status in {"ok", "lost"}
        await still_works(tools)
    assert len(notes.pids) == 2


@pytest.mark.requirement("S17")
async def test_the_idempotency_hint_of_an_untrusted_server_allows_no_second_call(
    notes: ServerNotes,
) -> None:
    """Any server can claim to be idempotent."""
    async with connected(notes) as (_, tools):
        assert (await call(tools["die_idempotent"])).status == "lost"
    assert notes.calls("die_idempotent") == 1


@pytest.mark.requirement("S17")
async def test_the_idempotency_hint_of_a_trusted_server_allows_one_second_call(
    notes: ServerNotes,
) -> None:
    """The outcome is that of the second call."""
    async with connected(notes, trusted=True) as (_, tools):
        outcome = await call(tools["die_idempotent"])
        assert (outcome.status, outcome.output) == ("ok", "second time")
        assert (await call(tools["die"])).status == "lost"
    assert notes.calls("die_idempotent") == 2
    assert notes.calls("die") == 1, "it promises nothing"


@pytest.mark.requirement("F25", "F27")
async def test_a_server_that_does_not_restart_is_abandoned(notes: ServerNotes) -> None:
    """Calls fail with the reason, and restarts are bounded."""
    async with connected(notes, "starts_once") as (_, tools):
        assert (await call(tools["die"])).status == "lost"
        for _ in range(12):
            outcome = await call(tools["echo"], text="x")
            assert outcome.status == "tool_error"
            assert isinstance(outcome.error, MCPConnectionError)
            assert "exit code 5" in str(outcome.error)
            assert "port in use" in str(outcome.error)
        assert len(notes.pids) <= 7


# --- F26: a server that never initializes


@pytest.mark.requirement("F26")
async def test_a_server_that_never_answers_is_abandoned_with_its_output(notes: ServerNotes) -> None:
    """The error contains the timeout, the option that sets it, and the end of stderr."""
    error = await connection_error(notes, "never_initializes", connect_timeout=0.5)
    assert isinstance(error, MCPConnectionError)
    assert "0.5 s (connect_timeout=0.5)" in str(error)
    assert "waiting for the database" in str(error)


@pytest.mark.requirement("F26")
async def test_an_answer_after_the_timeout_is_ignored(notes: ServerNotes) -> None:
    """It is dropped, and the same server name can be used again."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPConnectionError):
            await manager.add_server(
                "hostile", **notes.command("initializes_late"), connect_timeout=0.3
            )
        assert notes.lines("answered") == ["late"]
        assert manager.get_tools() == []
        await manager.add_server("hostile", **notes.command())
        await still_works(tools_of(manager))


@pytest.mark.requirement("F26")
async def test_a_cancelled_connection_leaves_no_process(notes: ServerNotes) -> None:
    """The caller can cancel the connection attempt."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        task = asyncio.create_task(
            manager.add_server("hostile", **notes.command("never_initializes"))
        )
        assert await becomes_true(lambda: notes.lines("requests"))
        task.cancel()
        async with asyncio.timeout(AT_ONCE):
            with pytest.raises(asyncio.CancelledError):
                await task
        assert all(has_ended(pid) for pid in notes.pids)
        assert manager.get_server_names() == []


# --- F27: a server that exits at once


@pytest.mark.requirement("F27")
async def test_a_server_that_exits_at_start_reports_the_reason(notes: ServerNotes) -> None:
    """The error has the exit code and the last lines of stderr, escaped for display."""
    error = await connection_error(notes, "dies_at_start")
    assert isinstance(error, MCPConnectionError)
    text = str(error)
    assert "exit code 3" in text
    assert "licence" in text
    assert "line 29" in text
    assert "line 5\n" not in text
    assert not {"\x1b", "\u202e"} & set(text)


@pytest.mark.requirement("F27")
async def test_a_server_that_exits_during_initialization_reports_the_reason(
    notes: ServerNotes,
) -> None:
    """As before, one message later."""
    text = str(await connection_error(notes, "dies_before_initialize"))
    assert "exit code 4" in text
    assert "cannot begin" in text


@pytest.mark.requirement("F27")
async def test_a_server_can_refuse_to_initialize(notes: ServerNotes) -> None:
    """Its error text is the reason."""
    assert "Licence expired" in str(await connection_error(notes, "refuses_initialize"))


@pytest.mark.requirement("F28")
@pytest.mark.parametrize("mode", ["shapeless_initialize", "unknown_version"])
async def test_a_server_with_an_invalid_initialize_result_is_rejected(
    notes: ServerNotes, mode: str
) -> None:
    await connection_error(notes, mode)


@pytest.mark.requirement("F28")
@pytest.mark.parametrize("mode", ["no_list", "shapeless_list"])
async def test_a_server_that_cannot_list_its_tools_is_rejected(
    notes: ServerNotes, mode: str
) -> None:
    await connection_error(notes, mode)


@pytest.mark.requirement("F27")
async def test_a_missing_program_is_named_in_the_error(notes: ServerNotes) -> None:
    """This is the most frequent fault of all."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPConnectionError, match="no-such-program"):
            await manager.add_server("hostile", command="no-such-program")


@pytest.mark.requirement("F27")
async def test_a_missing_working_folder_is_named_in_the_error(notes: ServerNotes) -> None:
    """The error must not claim that the program is missing."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPConnectionError, match="no-such-folder"):
            await manager.add_server("hostile", **notes.command(), cwd="/no-such-folder")


@pytest.mark.requirement("F26", "F27")
async def test_servers_that_fail_do_not_affect_the_others(notes: ServerNotes) -> None:
    """`failures` names the server and the reason; the rest of the configuration works."""
    modes = ["normal", "dies_at_start", "never_initializes", "endless_pages", "three_pages"]
    config = {"mcpServers": {mode: notes.command(mode) for mode in modes}}
    async with (
        asyncio.timeout(BOUND),
        MCPToolManager.from_config(config, connect_timeout=3.0) as manager,
    ):
        assert set(manager.failures) == {"dies_at_start", "never_initializes", "endless_pages"}
        assert "exit code 3" in str(manager.failures["dies_at_start"])
        assert "3 s" in str(manager.failures["never_initializes"])
        for mode in ("normal", "three_pages"):
            await still_works(tools_of(manager, mode))


# --- F28: invalid or unexpected messages

STRANGE = {
    "noise": "found",
    "logs": "found",
    "wrong_ids": "yours",
    "twice": "first",
    "text_id": "as text",
    "stderr_flood": "worked",
    "broken_structure": "usable",
}


@pytest.mark.requirement("F28")
@ERAS
@pytest.mark.parametrize("name", STRANGE)
async def test_a_valid_answer_is_found_among_invalid_messages(
    notes: ServerNotes, name: str, mode: str
) -> None:
    """Garbage around it, other ids, a second answer, a flood of stderr."""
    async with connected(notes, mode) as (_, tools):
        outcome = await call(tools[name])
        assert (outcome.status, outcome.output) == ("ok", STRANGE[name])
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_a_server_that_writes_garbage_around_each_line_works(notes: ServerNotes) -> None:
    """Banners, NULs, invalid UTF-8, lines in two halves, from the first message on."""
    async with connected(notes, "noisy") as (_, tools):
        await still_works(tools)
        assert (await call(tools["add"], a=1, b=2)).status == "ok"


@pytest.mark.requirement("F28")
async def test_invalid_utf8_affects_only_its_own_bytes(notes: ServerNotes) -> None:
    """The rest of the text arrives."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["bad_utf8"])
        assert outcome.status == "ok"
        assert str(outcome.output).startswith("broken ")
        assert str(outcome.output).endswith(" here")
        str(outcome.output).encode()
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_an_answer_that_is_too_deep_fails_only_its_call(notes: ServerNotes) -> None:
    """5,000 levels are more than a JSON parser accepts."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["deep"])
        assert outcome.status == "tool_error"
        assert isinstance(outcome.error, MCPProtocolError)
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_a_call_answered_with_a_wrong_id_ends_at_its_timeout(notes: ServerNotes) -> None:
    """An answer with an unknown id belongs to no call."""
    async with connected(notes, timeout=0.3) as (_, tools):
        outcome = await call(tools["only_wrong_id"])
        assert outcome.status == "timeout"
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_an_answer_after_the_cancellation_is_ignored(notes: ServerNotes) -> None:
    """It is not used as the answer of the next call either."""
    async with connected(notes, timeout=0.3) as (_, tools):
        outcome = await call(tools["late"])
        assert outcome.status == "timeout"
        await still_works(tools)
    assert len(notes.lines("cancelled")) == 1


NO_RESULTS = ["text", "list", "null", "number"]
STRANGE_RESULTS = [
    "empty",
    "content text",
    "content null",
    "content of numbers",
    "unknown block",
    "block without type",
    "block of a strange type",
    "text block without text",
    "text block of a number",
    "image of no base64",
    "image of a strange type",
    "resource of text",
    "link without address",
    "isError text",
    "structured list",
    "half a surrogate",
    "meta text",
]


@pytest.mark.requirement("F28")
@ERAS
async def test_results_of_a_wrong_shape_have_one_outcome(notes: ServerNotes, mode: str) -> None:
    """Usable results are used; others fail their call; both can be serialized."""
    async with connected(notes, mode, timeout=0.5) as (_, tools):
        found: dict[str, str] = {}
        for kind in (*NO_RESULTS, *STRANGE_RESULTS):
            outcome = await call(tools["shapeless"], kind=kind)
            found[kind] = outcome.status
            json.dumps(outcome.output, default=repr).encode()
            await still_works(tools)
    assert all(found[kind] in {"tool_error", "timeout"} for kind in NO_RESULTS), found
    assert {kind for kind in STRANGE_RESULTS if found[kind] != "ok"} == set(), found
    assert len(notes.pids) == 1


@pytest.mark.requirement("F28")
@pytest.mark.parametrize("name", ["no_result", "both", "refuse_badly"])
async def test_answers_that_are_neither_result_nor_error_have_one_outcome(
    notes: ServerNotes, name: str
) -> None:
    """They end with the call's timeout at the latest."""
    async with connected(notes, timeout=0.5) as (_, tools):
        outcome = await call(tools[name])
        assert outcome.status in {"tool_error", "timeout"} | ({"ok"} if name == "both" else set())
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_a_text_of_20_megabytes_arrives(notes: ServerNotes) -> None:
    """Reading a line takes time proportional to its length."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["big"], size=20_000_000)
        assert outcome.status == "ok"
        assert outcome.value.content == "x" * 20_000_000
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_a_line_of_70_megabytes_fails_only_its_call(notes: ServerNotes) -> None:
    """A message above the size limit is dropped, and the error says so."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["big"], size=70_000_000)
        assert outcome.status == "tool_error"
        assert "max_message" in str(outcome.error)
        await still_works(tools)
    assert len(notes.pids) == 1


@pytest.mark.requirement("F28")
async def test_arguments_of_megabytes_reach_a_server_that_answers_meanwhile(
    notes: ServerNotes,
) -> None:
    """Neither end blocks the other with full pipes."""
    async with connected(notes) as (_, tools):
        texts = [str(n) * 1_000_000 for n in range(8)]
        outcomes = await asyncio.gather(*[call(tools["echo"], text=text) for text in texts])
        assert [outcome.value.content for outcome in outcomes] == texts


# --- F29, S33: endless lists


@pytest.mark.requirement("F29", "S33")
async def test_an_endless_list_of_pages_is_rejected(notes: ServerNotes) -> None:
    """It stops at the hundredth page, and the error names the cursor."""
    text = str(await connection_error(notes, "endless_pages"))
    assert "100" in text
    assert "cursor" in text
    assert len(notes.lines("lists")) <= 101


@pytest.mark.requirement("F29", "S33")
async def test_a_repeated_page_cursor_is_rejected(notes: ServerNotes) -> None:
    """It stops at the repeated cursor, which the error names."""
    assert "'around'" in str(await connection_error(notes, "looping_pages"))
    assert len(notes.lines("lists")) <= 3


@pytest.mark.requirement("B42", "F29")
async def test_all_pages_are_read_once(notes: ServerNotes) -> None:
    """The list is complete, and a call of a tool on the second page requests no list."""
    async with connected(notes, "three_pages") as (_, tools):
        assert set(tools) == {"echo", "add"}
        for _ in range(3):
            assert (await call(tools["add"], a=1, b=2)).status == "ok"
    assert notes.lines("lists") == ["None", "2", "3"]


@pytest.mark.requirement("S33")
async def test_a_server_with_five_thousand_tools_connects(notes: ServerNotes) -> None:
    """The listed tools work."""
    async with connected(notes, "many_tools") as (manager, tools):
        assert 0 < len(tools) <= 5_000
        assert len(set(manager.get_tool_names())) == len(tools)


# --- F30: floods


@pytest.mark.requirement("F30")
@ERAS
async def test_a_hundred_thousand_notifications_do_not_bury_the_answer(
    notes: ServerNotes, mode: str
) -> None:
    """They do not accumulate in memory either."""
    async with connected(notes, mode) as (_, tools):
        await still_works(tools)
        before = peak_memory(reset=True)
        outcome = await tools["flood"].call(None, "{}")
        assert (outcome.status, outcome.output) == ("ok", "after the flood")
        assert peak_memory() - before < 32 << 20
        await still_works(tools)


@pytest.mark.requirement("F30")
async def test_a_subscriber_of_a_flood_gets_the_end_of_the_call(notes: ServerNotes) -> None:
    """Progress events can be dropped, the outcome cannot."""
    async with connected(notes) as (_, tools):
        said = await call_tool(tools["flood"], count=100_000)
        assert said.outcome.status == "ok"
        assert any(isinstance(event, ToolProgressEvent) for event in said.events)


def peak_memory(*, reset: bool = False) -> int:
    """Return the peak memory of this process in bytes since the last reset."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) << 10


# --- F31: changing lists and unusable tools


@pytest.mark.requirement("F31")
async def test_an_unusable_tool_is_skipped_with_the_reason(notes: ServerNotes) -> None:
    """One bad schema does not affect the other tools."""
    async with connected(notes, "bad_tools") as (manager, tools):
        skipped = manager.skipped["hostile"]
        assert {"text_schema", "array_schema", "no_schema", "null_schema"} <= set(skipped)
        assert all(isinstance(reason, str) and reason for reason in skipped.values())
        # These are offered, but without validation.
        assert set(skipped) & set(tools) == {"wrong_schema", "no_type"}
        assert not {"", "7"} & set(tools)
        await still_works(tools)
        assert (await call(tools["add"], a=1, b=2)).status == "ok"
        for name in ("strange_texts", "strange_hints", "bad_output"):
            assert name in tools or skipped[name]


@pytest.mark.requirement("F31")
async def test_a_deep_schema_does_not_affect_the_other_tools(notes: ServerNotes) -> None:
    """The tool is accepted, or skipped with the reason."""
    async with connected(notes, "deep_tool") as (manager, tools):
        assert "deep" in tools or "deep" in manager.skipped["hostile"]
        await still_works(tools)


@pytest.mark.requirement("F31")
async def test_a_schema_of_ten_thousand_levels_does_not_crash(notes: ServerNotes) -> None:
    """Either the error says that the list cannot be read, or the other tools work."""
    try:
        async with connected(notes, "very_deep_tool") as (_, tools):
            await still_works(tools)
    except MCPError as error:
        assert "hostile" in str(error)  # noqa: PT017 - one of two right outcomes


@pytest.mark.requirement("F31")
async def test_tools_of_the_same_name_are_distinguished(notes: ServerNotes) -> None:
    """The first of two equal names is used; names that become equal get different suffixes."""
    async with connected(notes, "twice_named") as (manager, tools):
        assert set(tools) == {"echo", "e.cho", "e/cho", "E.CHO"}
        names = manager.get_tool_names()
        assert len({name.lower() for name in names}) == len(names) == 4
        assert "echo" in manager.skipped["hostile"]
        for wire_name, tool in tools.items():
            outcome = await call(tool)
            assert outcome.output == f"{wire_name} was called"


@pytest.mark.requirement("F31")
async def test_a_tool_for_tasks_only_is_skipped(notes: ServerNotes) -> None:
    """A plain call of it would always fail."""
    async with connected(notes) as (manager, tools):
        assert "task" not in tools
        assert "task" in manager.skipped["hostile"]["task"]


class ChangeList:
    """Collects the changes that a manager reports."""

    def __init__(self) -> None:
        self.seen: asyncio.Queue[ToolListChange] = asyncio.Queue()

    def __call__(self, change: ToolListChange) -> None:
        self.seen.put_nowait(change)


@pytest.mark.requirement("F31")
@ERAS
async def test_a_list_that_changes_in_a_call_is_read_again(notes: ServerNotes, mode: str) -> None:
    """New tools can be called, removed tools are gone, and fifty notifications are one change."""
    changes = ChangeList()
    async with connected(notes, mode, on_change=changes) as (manager, tools):
        first = await changes.seen.get()
        assert "hostile_removed" in first.added
        old = tools["removed"]
        assert (await call(tools["change"])).status == "ok"
        change = await changes.seen.get()
        assert (change.added, change.removed) == (("hostile_added",), ("hostile_removed",))
        assert "hostile_added" in manager.get_tool_names()
        assert "hostile_removed" not in manager.get_tool_names()
        assert (await call(old)).status in {"ok", "tool_error"}
        await still_works(tools_of(manager))
    assert len(notes.lines("lists")) <= 4


@pytest.mark.requirement("F31")
async def test_a_changed_description_is_reported(notes: ServerNotes) -> None:
    """A changed description of an approved tool is a pin change."""
    changes = ChangeList()
    async with connected(notes, "rug_pull", on_change=changes) as (_, tools):
        await changes.seen.get()
        assert (await call(tools["announce"])).status == "ok"
        change = await changes.seen.get()
        assert [(pin.tool, pin.server) for pin in change.pins] == [("echo", "hostile")]


# --- S33: expensive schemas


@pytest.mark.requirement("S33")
async def test_a_catastrophic_pattern_does_not_stop_the_loop(notes: ServerNotes) -> None:
    """This holds for argument schemas and result schemas."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["regex"], text="a" * 60 + "!")
        assert outcome.status == "invalid_args"
        assert notes.calls("regex") == 0, "bad arguments do not reach a server"
        outcome = await call(tools["regex"], text="aaa")
        assert (outcome.status, outcome.output) == ("ok", "usable")
        await still_works(tools)


@pytest.mark.requirement("F28")
async def test_a_structured_result_that_violates_its_schema_is_kept_and_reported(
    notes: ServerNotes,
) -> None:
    """The text is usable; the application gets the schema violations."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["broken_structure"])
        assert (outcome.status, outcome.output) == ("ok", "usable")
        assert outcome.value.structured == {"sum": "many"}
        assert "sum" in str(outcome.metadata)


# --- errors that a server returns


@pytest.mark.requirement("B36", "B40")
async def test_the_model_gets_the_error_text_of_a_tool(notes: ServerNotes) -> None:
    """A result with `isError` is a tool error with the tool's own text."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["fail"])
        assert outcome.status == "tool_error"
        assert "The disk is full." in outcome.output
        await still_works(tools)


@pytest.mark.requirement("B40")
@pytest.mark.parametrize("code", [-32602, -32603, -32001, 0, 12345, 2**70])
async def test_a_protocol_error_is_a_tool_error(notes: ServerNotes, code: int) -> None:
    """Its text can be a megabyte long; the model gets a shortened one."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["refuse"], code=code, size=1_000_000)
        assert outcome.status == "tool_error"
        assert isinstance(outcome.error, MCPError)
        assert len(str(outcome.error)) < 5_000
        assert len(outcome.output) < 5_000
        await still_works(tools)


async def test_bad_arguments_do_not_reach_the_server(notes: ServerNotes) -> None:
    """The model gets the schema violations."""
    async with connected(notes) as (_, tools):
        outcome = await call(tools["add"], a="one", b=2)
        assert outcome.status == "invalid_args"
        assert notes.calls("add") == 0


@pytest.mark.parametrize("method", ["elicitation/create", "sampling/createMessage", "made/up"])
async def test_server_requests_without_a_handler_are_answered(
    notes: ServerNotes, method: str
) -> None:
    """A server that asks must not wait forever or block the client."""
    async with connected(notes, timeout=5.0) as (_, tools):
        outcome = await call(tools["ask"], method=method)
        assert outcome.status == "ok"
        (reply,) = map(json.loads, notes.lines("replies"))
        said = reply.get("result") or {}
        assert "error" in reply or said.get("action") in {"decline", "cancel"}
        await still_works(tools)


async def test_a_ping_of_the_server_is_answered(notes: ServerNotes) -> None:
    """Every client has to answer this request."""
    async with connected(notes) as (_, tools):
        assert (await call(tools["ask"], method="ping")).status == "ok"
        assert notes.lines("replies") == ['{"result": {}}']


# --- timeouts and cancellation


@pytest.mark.requirement("F28")
async def test_a_silent_call_times_out_and_is_cancelled_at_the_server(notes: ServerNotes) -> None:
    """The timeout is the client's, and the server is notified that the client stopped waiting."""
    async with connected(notes, timeout=0.3) as (_, tools):
        outcome = await call(tools["hang"])
        assert outcome.status == "timeout"
        assert isinstance(outcome.error, MCPTimeoutError)
        assert isinstance(outcome.error, ToolTimeoutError)
        assert "0.3 s" in str(outcome.error)
        await still_works(tools)
        assert len(notes.lines("cancelled")) == 1
    assert len(notes.pids) == 1


async def test_a_cancelled_call_is_cancelled_at_the_server(notes: ServerNotes) -> None:
    """The server can stop work that has no caller."""
    async with connected(notes) as (_, tools):
        task = asyncio.create_task(tools["hang"].invoke())
        assert await becomes_true(lambda: notes.calls("hang"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await still_works(tools)
        assert len(notes.lines("cancelled")) == 1


async def test_progress_resets_the_silence_timeout(notes: ServerNotes) -> None:
    """A call that reports progress can run longer than the silence timeout."""
    async with connected(notes, timeout=1.0) as (_, tools):
        said = await call_tool(tools["steps"], count=10, pause=0.15)
        assert said.outcome.status == "ok"
        steps = [event for event in said.events if isinstance(event, ToolProgressEvent)]
        assert [(step.current, step.total) for step in steps] == [(n, 10) for n in range(1, 11)]


async def test_progress_does_not_extend_the_total_timeout(notes: ServerNotes) -> None:
    """A server cannot keep a call alive forever by reporting progress."""
    async with connected(notes, timeout=1.0, max_time=0.4) as (_, tools):
        outcome = await call(tools["steps"], count=30, pause=0.05)
        assert outcome.status == "timeout"
        assert "max_time" in str(outcome.error)


# --- the end of a server


@pytest.mark.requirement("F25")
async def test_a_server_that_ignores_shutdown_is_killed_with_its_children(
    notes: ServerNotes,
) -> None:
    """It ignores the end of its input and SIGTERM, and so does its child."""
    async with connected(notes, "stubborn") as (_, tools):
        await still_works(tools)
    assert len(notes.pids) == len(notes.children) == 1
    assert all(has_ended(pid) for pid in (*notes.pids, *notes.children))


@pytest.mark.requirement("F25")
async def test_closing_leaves_no_child_process(notes: ServerNotes) -> None:
    """The servers are reaped; one guardian stays for all servers of this process."""
    async with connected(notes) as (_, tools):
        await still_works(tools)
    before = own_children()
    async with connected(notes) as (manager, tools):
        await manager.add_server("other", **notes.command())
        assert (await call(tools["die"])).status == "lost"
        await still_works(tools)
        assert len(own_children() - before) >= 2
    assert await becomes_true(lambda: own_children() <= before)


def own_children() -> set[int]:
    """Return the child processes that have not been reaped yet."""
    return {
        int(pid)
        for path in Path("/proc/self/task").glob("*/children")
        for pid in path.read_text().split()
    }


@pytest.mark.requirement("F25")
async def test_a_child_that_a_server_leaves_behind_is_killed(notes: ServerNotes) -> None:
    """The server itself has ended, but the child holds its pipes open."""
    async with connected(notes, "leaves_child") as (_, tools):
        await still_works(tools)
    assert all(has_ended(pid) for pid in (*notes.pids, *notes.children))


@pytest.mark.requirement("F25")
async def test_the_child_of_a_killed_server_is_killed(notes: ServerNotes) -> None:
    """The end of the call does not wait for the child that holds the pipe open."""
    async with connected(notes, "leaves_child") as (_, tools):
        assert (await call(tools["die"])).status == "lost"
        await still_works(tools)
        assert has_ended(notes.children[0])


@pytest.mark.requirement("F34")
async def test_an_exception_in_the_block_propagates_unchanged(notes: ServerNotes) -> None:
    """It is not wrapped in an exception group."""
    with pytest.raises(ZeroDivisionError):
        async with connected(notes):
            raise ZeroDivisionError


async def test_calls_in_flight_end_when_the_manager_is_closed(notes: ServerNotes) -> None:
    """Each call has one outcome, and a later call reports that the server was closed."""
    async with connected(notes) as (manager, tools):
        calls = [asyncio.create_task(call(tools["hang"])) for _ in range(5)]
        assert await becomes_true(lambda: notes.calls("hang") == 5)
        await manager.cleanup()
        assert {outcome.status for outcome in await asyncio.gather(*calls)} == {"lost"}
        outcome = await call(tools["echo"], text="x")
        assert outcome.status == "tool_error"
        assert "closed" in str(outcome.error)
    assert len(notes.pids) == 1


@pytest.mark.requirement("F34")
async def test_closing_twice_or_concurrently_is_allowed(notes: ServerNotes) -> None:
    """The second caller waits, or returns at once if the manager is closed."""
    async with connected(notes) as (manager, _):
        await asyncio.gather(*[manager.cleanup() for _ in range(5)])
        await manager.cleanup()
        assert all(has_ended(pid) for pid in notes.pids)


# --- F34: other tasks, orders and loops


@pytest.mark.requirement("F34")
async def test_a_manager_can_be_closed_by_another_task(notes: ServerNotes) -> None:
    """The connection is not bound to the task that opened it."""
    async with asyncio.timeout(BOUND):
        manager = MCPToolManager()
        await asyncio.create_task(manager.add_server("hostile", **notes.command()))
        await asyncio.create_task(still_works(tools_of(manager)))
        await asyncio.create_task(manager.cleanup())
    assert all(has_ended(pid) for pid in notes.pids)


@pytest.mark.requirement("F34")
async def test_managers_can_be_closed_in_the_order_they_were_opened(notes: ServerNotes) -> None:
    """Reverse order is not required."""
    async with asyncio.timeout(BOUND):
        managers = [MCPToolManager() for _ in range(3)]
        for manager in managers:
            await manager.add_server("hostile", **notes.command())
        for index, manager in enumerate(managers):
            await manager.cleanup()
            for other in managers[index + 1 :]:
                await still_works(tools_of(other))


@pytest.mark.requirement("F34")
async def test_servers_are_removed_and_added_in_any_order(notes: ServerNotes) -> None:
    """The lifetimes of servers are independent."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        names = ["one", "two", "three", "four"]
        await asyncio.gather(*[manager.add_server(name, **notes.command()) for name in names])
        for name in ("two", "one", "four"):
            await asyncio.create_task(manager.remove_server(name))
        assert manager.get_server_names() == ["three"]
        await manager.add_server("two", **notes.command())
        await manager.reload_server("three")
        for name in ("two", "three"):
            await still_works(tools_of(manager, name))
    assert len(notes.pids) == 6


@pytest.mark.requirement("F34")
def test_two_loops_use_two_managers_at_once(notes: ServerNotes) -> None:
    """Objects that belong to a loop are not shared."""

    async def work() -> list[str]:
        async with connected(notes) as (_, tools):
            outcomes = await asyncio.gather(*[call(tools["echo"], text=str(n)) for n in range(20)])
            assert (await call(tools["die"])).status == "lost"
            await still_works(tools)
            return [outcome.output for outcome in outcomes]

    with ThreadPoolExecutor(2) as threads:
        runs = [threads.submit(asyncio.run, work()) for _ in range(2)]
        assert [run.result(BOUND) for run in runs] == [[str(n) for n in range(20)]] * 2


@pytest.mark.requirement("C28", "F34")
async def test_the_tools_of_one_loop_are_called_from_another(notes: ServerNotes) -> None:
    """The call is sent to the loop that has the connection, and so is a cancellation."""

    async def elsewhere(tools: dict[str, Tool]) -> list[str]:
        outcomes = await asyncio.gather(*[call(tools["echo"], text=str(n)) for n in range(20)])
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await tools["hang"].invoke()
        assert (await call(tools["die"])).status == "lost"
        await still_works(tools)
        return [outcome.output for outcome in outcomes]

    async with connected(notes) as (_, tools):
        work = asyncio.to_thread(asyncio.run, elsewhere(tools))
        assert await work == [str(n) for n in range(20)]
        await still_works(tools)
    assert len(notes.lines("cancelled")) == 1


@pytest.mark.requirement("F34")
def test_a_manager_works_after_the_loop_it_was_opened_in_ends(notes: ServerNotes) -> None:
    """Programs that call `asyncio.run` several times reconnect to their servers."""
    manager = MCPToolManager()

    async def opening() -> None:
        async with asyncio.timeout(BOUND):
            await manager.add_server("hostile", **notes.command())
            await still_works(tools_of(manager))

    async def closing() -> None:
        async with asyncio.timeout(BOUND):
            await still_works(tools_of(manager))
            await manager.cleanup()

    asyncio.run(opening())
    assert has_ended(notes.pids[0]), "the end of the loop is the end of its servers"
    asyncio.run(closing())
    assert len(notes.pids) == 2


@pytest.mark.requirement("F34")
def test_threads_call_the_tools_of_a_program_without_a_loop(notes: ServerNotes) -> None:
    """Eight threads use one server; the only loop is the one in the background."""
    with create_mcp_tools({"mcpServers": {"hostile": notes.command()}}) as tools:
        echo = next(tool for tool in tools if tool.name == "hostile_echo")
        with ThreadPoolExecutor(8) as threads:
            texts = [str(n) for n in range(160)]
            results = list(threads.map(lambda text: echo.invoke_sync(text=text), texts))
        assert [result_text(result) for result in results] == texts
    assert all(has_ended(pid) for pid in notes.pids)


@pytest.mark.requirement("F34")
async def test_sync_tools_are_called_inside_a_loop(notes: ServerNotes) -> None:
    """An application with a loop can use the synchronous API too."""
    with create_mcp_tools({"mcpServers": {"hostile": notes.command()}}) as tools:
        echo = next(tool for tool in tools if tool.name == "hostile_echo")
        assert result_text(echo.invoke_sync(text="sync")) == "sync"
        assert result_text(await echo.invoke(text="async")) == "async"
    assert all(has_ended(pid) for pid in notes.pids)


@pytest.mark.requirement("F27")
def test_a_sync_program_gets_an_error_when_no_server_works(notes: ServerNotes) -> None:
    """The error contains the reason of the server."""
    with pytest.raises(MCPConnectionError, match="exit code 3"):
        create_mcp_tools({"mcpServers": {"hostile": notes.command("dies_at_start")}})


def result_text(result: Any) -> str:
    return str(getattr(result, "content", result))


# --- the end of the process that has the servers

PROGRAM = textwrap.dedent("""
    import asyncio, json, sys
    from agents_tools.mcp import MCPToolManager

    async def main():
        async with MCPToolManager() as manager:
            await manager.add_server("hostile", **json.loads(sys.argv[1]))
            tool = next(t for t in manager.get_tools() if t.name == "hostile_hang")
            print("ready", flush=True)
            await tool.invoke()

    asyncio.run(main())
""")

SYNC_PROGRAM = textwrap.dedent("""
    import json, sys
    from agents_tools.mcp import create_mcp_tools

    tools = create_mcp_tools({"mcpServers": {"hostile": json.loads(sys.argv[1])}})
    tool = next(t for t in tools if t.name == "hostile_hang")
    print("ready", flush=True)
    if sys.argv[2:] != ["end"]:
        tool.invoke_sync()
""")


@contextlib.contextmanager
def program(
    text: str, command: dict[str, Any], *options: str
) -> Generator[subprocess.Popen[bytes]]:
    """Run a program that has connected its server, in its own process group."""
    process = subprocess.Popen(  # noqa: S603 - our own words
        [sys.executable, "-c", text, json.dumps(command), *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        start_new_session=True,
    )
    try:
        assert process.stdout is not None
        ready, _, _ = select.select([process.stdout], [], [], BOUND)
        assert ready
        line = process.stdout.readline()
        assert line == b"ready\n", process.communicate(timeout=BOUND)
        yield process
    finally:
        process.kill()
        process.communicate(timeout=BOUND)


@pytest.mark.requirement("F25")
@pytest.mark.parametrize(
    "text", [slow_case(PROGRAM, id="async"), pytest.param(SYNC_PROGRAM, id="sync")]
)
@pytest.mark.parametrize("mode", ["normal", "stubborn"])
def test_the_servers_of_a_process_that_is_killed_end_with_it(
    notes: ServerNotes, mode: str, text: str
) -> None:
    """Nothing is left to close them; even a server that ignores all signals must end."""
    with program(text, notes.command(mode)) as process:
        process.kill()
        process.wait(BOUND)
        assert all(has_ended(pid, 8) for pid in (*notes.pids, *notes.children))


@pytest.mark.requirement("F25")
@pytest.mark.parametrize(
    ("signum", "text"),
    [
        pytest.param(signal.SIGINT, PROGRAM, id="ctrl-c-async"),
        slow_case(signal.SIGINT, SYNC_PROGRAM, id="ctrl-c-sync"),
        slow_case(signal.SIGTERM, PROGRAM, id="term-async"),
        pytest.param(signal.SIGTERM, SYNC_PROGRAM, id="term-sync"),
    ],
)
def test_the_servers_of_a_process_that_is_interrupted_end_with_it(
    notes: ServerNotes, signum: int, text: str
) -> None:
    """SIGINT and SIGTERM close them while a call is pending."""
    with program(text, notes.command()) as process:
        process.send_signal(signum)
        process.wait(BOUND)
        assert all(has_ended(pid, 8) for pid in notes.pids)


@pytest.mark.requirement("F25")
def test_servers_end_with_a_sync_program_that_exits_without_closing(notes: ServerNotes) -> None:
    """No `close()` is needed, the exit does not hang, and stderr has no error."""
    with program(SYNC_PROGRAM, notes.command(), "end") as process:
        assert process.wait(BOUND) == 0
        assert process.stderr is not None
        told = process.stderr.read().splitlines()
        assert [line for line in told if b"as a task only" not in line] == []
        assert all(has_ended(pid) for pid in notes.pids)


# --- S5, S21: the environment and command of a server


@pytest.mark.requirement("S21")
async def test_a_server_gets_the_allowed_variables_and_no_others(
    notes: ServerNotes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Secrets of this process are passed on only by name."""
    monkeypatch.setenv("SECRET_TOKEN", "secret")
    monkeypatch.setenv("WANTED", "wanted")
    monkeypatch.setenv("SHELL", "() { :; }; echo code")
    async with connected(notes, env={"GIVEN": "given"}, inherit_env=["WANTED", "ABSENT"]) as (
        _,
        tools,
    ):
        outcome = await call(tools["environment"])
        found = json.loads(outcome.value.content)
    allowed = {"HOME", "LOGNAME", "PATH", "TERM", "USER"}
    assert found.pop("GIVEN") == "given"
    assert found.pop("WANTED") == "wanted"
    found.pop("LC_CTYPE", None)  # set by the interpreter of the server itself
    assert found == {name: os.environ[name] for name in allowed if name in os.environ}


@pytest.mark.requirement("S5")
async def test_no_shell_reads_a_command(notes: ServerNotes) -> None:
    """A command is a program with a list of arguments."""
    mark = notes.folder / "mark"
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        with pytest.raises(MCPConnectionError):
            await manager.add_server("hostile", command=f"touch {mark}")
        with pytest.raises(MCPConnectionError):
            await manager.add_server(
                "hostile", command="true", args=[f"; touch {mark}", f"$({mark})"]
            )
    assert not mark.exists()


@pytest.mark.requirement("S5")
async def test_a_command_with_a_nul_is_refused(notes: ServerNotes) -> None:
    """The error names the server; it is not a crash."""
    async with asyncio.timeout(BOUND), MCPToolManager() as manager:
        for command, args in (("tr\0ue", []), ("true", ["a\0b"])):
            with pytest.raises((MCPConnectionError, UserError), match="hostile"):
                await manager.add_server("hostile", command=command, args=args)


@pytest.mark.requirement("S5")
def test_only_two_places_start_processes() -> None:
    """Servers start in one file and the guardian in another; neither uses a shell."""
    folder = Path(agents_tools.__file__).parent / "mcp"
    starting = {"Popen", "subprocess_exec", "create_subprocess_exec", "run", "spawnv", "execv"}
    never = {"subprocess_shell", "create_subprocess_shell", "system", "popen"}
    found: set[tuple[str, str]] = set()
    for path in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call):
                continue
            name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
            assert name not in never, f"{path.name}:{node.lineno}"
            assert not any(word.arg == "shell" for word in node.keywords)
            if name in starting - {"run"}:
                found.add((path.name, name))
    assert found == {("stdio.py", "subprocess_exec")}
